"""Plans are kept by what they take: a short text may stand for a wide plan."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from engine.catalog.state import CatalogSnapshot
from engine.executors.index.access import computed_keys
from engine.session.plans.by_text import ByText
from tests.support.engine import Failed, Session, open_database
from txn.base.slices import at_once
from txn.persist.memory import MemoryDisk
from txn.transaction.coordinator import TxnOptions


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


def test_kept_plans_keep_no_catalogs(tmp_path: Path) -> None:
    """Each DDL makes a catalog: of thousands of tables one takes a megabyte, and there may be a plan for each."""

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
        for number in range(40):
            await session.run(f"CREATE TABLE gone{number} (a int)")
            await session.run("SELECT a FROM stays")
            await session.run(f"SELECT a + 1 FROM gone{number}")
            await session.run(f"PREPARE p{number} AS SELECT a + 1 FROM gone{number}; EXECUTE p{number}")
            await session.run(f"DROP TABLE gone{number}")
        for _ in range(100):  # what has gone is freed in turns of the loop
            if catalogs() <= before + 2:
                break
            await asyncio.sleep(0.02)
        assert catalogs() <= before + 2
        await database.close()

    asyncio.run(whole())


def test_kept_keys_of_indexes_are_few_where_their_texts_are_long(tmp_path: Path) -> None:
    """Each definition of a table makes them anew, and a condition may be as long as a client likes."""

    async def whole() -> None:
        database = await open_database(MemoryDisk(), data_dir=str(tmp_path))
        session = Session(database, 1)
        await session.run("CREATE TABLE t (a int, b text)")
        many = " OR ".join(f"a = {n}" for n in range(1000))
        await session.run(f"CREATE INDEX ON t (lower(b)) WHERE {many}")
        for number in range(40):
            await session.run(f"ALTER TABLE t ADD c{number} int")
            await session.run("SELECT a FROM t WHERE lower(b) = 'x' AND a = 5")
        texts = [key[0] for key in computed_keys._kept._items]
        assert 0 < sum(map(len, texts)) <= computed_keys.CHARACTERS
        await database.close()

    asyncio.run(whole())
