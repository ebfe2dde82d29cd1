"""A range of a primary key is read in parts by who takes no locks: the rows are those of one look, in order."""

from __future__ import annotations

import asyncio
import random

import pytest

from engine.executors.index import sources
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk


def test_parts_of_ranges_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FIRST_ROWS", 3)
    monkeypatch.setattr("engine.executors.index.executor.FIRST_ROWS", 3)
    monkeypatch.setattr(sources, "MOST_ROWS", 7)
    asked: list[tuple[object, int]] = []
    made = sources.Part

    def part(behind: object, most: int) -> sources.Part:
        asked.append((behind, most))
        return made(behind, most)

    monkeypatch.setattr(sources, "Part", part)
    pick = random.Random(7)

    async def body() -> None:
        database = await open_database(MemoryDisk())
        try:
            session = Session(database, 1)
            await session.run(
                "CREATE TABLE t (a int PRIMARY KEY, b text); CREATE TABLE u (a int, k text, PRIMARY KEY (a, k));"
                "INSERT INTO t SELECT g * 3, 'x' || g FROM generate_series(-50, 50) g;"
                "INSERT INTO u SELECT g / 20, 'k' || g FROM generate_series(0, 99) g"
            )
            ids = list(range(-150, 151, 3))
            for _ in range(40):
                low, high = sorted(pick.randint(-160, 160) for _ in range(2))
                found = await session.run(f"SELECT a FROM t WHERE a >= {low} AND a < {high} ORDER BY a")
                assert [int(a or 0) for (a,) in found] == [i for i in ids if low <= i < high]
                found = await session.run(f"SELECT a FROM t WHERE a > {low} AND a <= {high} ORDER BY a DESC")
                assert [int(a or 0) for (a,) in found] == [i for i in ids if low < i <= high][::-1]
            for a in range(6):
                found = await session.run(f"SELECT k FROM u WHERE a = {a} ORDER BY k")
                assert [k for (k,) in found] == sorted(f"k{n}" for n in range(100) if n // 20 == a)
            assert max(most for _, most in asked) == 7
            assert any(behind is not None for behind, _ in asked)
            asked.clear()
            assert len(await session.run("SELECT a FROM t WHERE a >= 0 AND a < 90 FOR UPDATE")) == 30
            await session.run("BEGIN; UPDATE t SET b = '' WHERE a = 0")
            assert len(await session.run("SELECT a FROM t WHERE a >= 0 AND a < 90")) == 30
            await session.run("COMMIT")
            assert not asked, "who locks what it reads asks once"
        finally:
            await database.close()

    asyncio.run(body())
