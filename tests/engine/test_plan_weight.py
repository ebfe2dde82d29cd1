"""Plans are kept by what they take: a short text may stand for a wide plan."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from engine.catalog.state import CatalogSnapshot
from engine.reads.by_text import BYTES, ByText, Shared
from engine.reads.caches import PlanCaches
from engine.reads.weight import OF_PLACE
from tests.support.engine import Failed, Session, open_database
from txn.coordinator import TxnOptions
from txn.persist.memory import MemoryDisk
from txn.slices import at_once


def test_what_is_heavy_makes_others_go() -> None:
    kept: ByText[str] = ByText(entries=100, characters=1000)
    for number in range(10):
        kept.put((f"text {number}", (), None), str(number), 300)
    assert [n for n in range(10) if (f"text {n}", (), None) in kept] == [7, 8, 9]
    assert kept.drop(("text 8", (), None))
    kept.put(("light", (), None), "light")
    kept.put(("text 7", (), None), "again", 300)
    assert [n for n in range(10) if (f"text {n}", (), None) in kept] == [7, 9]
    assert ("light", (), None) in kept


def test_what_is_shared_counts_as_long_as_one_has_it_and_leaves_room() -> None:
    kept: ByText[str] = ByText(entries=100, characters=1000)

    def held() -> list[int]:
        return [n for n in range(20) if (f"{n:02}", (), None) in kept]

    for number in range(20):
        kept.put((f"{number:02}", (), None), "", 0, Shared(number // 2, 120))
    assert held() == list(range(4, 20)), "eight times 122 and their texts"
    assert kept.drop(("05", (), None))
    kept.put(("00", (), None), "", 0, Shared(9, 120))
    assert held() == [0, 4, *range(6, 20)]
    kept.put(("01", (), None), "", 0, Shared(10, 10**9))
    assert held() == [0, 1, *range(6, 20)], (
        "the last one that had the second has gone, and the new one counts for an eighth"
    )


def test_a_session_keeps_few_prepared_statements_over_wide_tables(tmp_path: Path) -> None:
    async def whole() -> None:
        database = await open_database(MemoryDisk(), data_dir=str(tmp_path))
        try:
            session = Session(database, 1)
            await session.run(f"CREATE TABLE wide ({', '.join(f'c{n} int' for n in range(1500))})")
            await session.run("CREATE TABLE narrow (c1 int)")
            for number in range(300):
                await session.run(f"PREPARE n{number} AS SELECT * FROM narrow")
            for number in range(5):
                await session.run(f"PREPARE w{number} AS SELECT * FROM wide")
            many = " ".join(f"PREPARE w{number} AS SELECT * FROM wide;" for number in range(5, 100))
            with pytest.raises(Failed) as caught:
                await session.run(many)
            assert caught.value.report.sqlstate == "53200"
            await session.run("DEALLOCATE ALL")
            await session.run("PREPARE w AS SELECT * FROM wide")
        finally:
            await database.close()

    asyncio.run(whole())


def test_plans_keep_no_more_catalogs_than_they_may_take_memory(tmp_path: Path) -> None:
    """Each DDL makes a catalog, and a plan that was bound against it has it: of thousands of tables a plan may have a megabyte."""

    async def whole() -> None:
        database = await open_database(MemoryDisk(), TxnOptions(retention_ms=0), data_dir=str(tmp_path))
        session = Session(database, 1)

        def catalogs() -> int:
            at_once(database.store.core.forgetting())
            gc.collect()
            return sum(type(item) is CatalogSnapshot and item.database == 5 for item in gc.get_objects())

        await session.run("CREATE TABLE stays (a int)")
        await session.run("SELECT a FROM stays")
        before = catalogs()
        places = 2 * len(session.connection.session.catalog.relations_by_oid)
        database.plans = PlanCaches(int(10 * OF_PLACE * places) * 2 * BYTES)
        for number in range(40):
            await session.run(f"CREATE TABLE gone{number} (a int)")
            await session.run("SELECT a FROM stays")
            await session.run(f"SELECT a + 1 FROM gone{number}")
            await session.run(f"DROP TABLE gone{number}")
        for _ in range(100):  # what has gone is freed in turns of the loop
            if catalogs() <= before + 20:
                break
            await asyncio.sleep(0.02)
        assert catalogs() <= before + 20
        await database.close()

    asyncio.run(whole())
