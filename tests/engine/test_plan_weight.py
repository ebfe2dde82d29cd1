"""Plans are kept by what they take: a short text may stand for a wide plan."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.reads.by_text import ByText
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk


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
