"""Counting tables of a running server: after changes and merges, over a restart, for queries on Spark that want it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from engine.base.eager import settle
from engine.executors.statistics.keeper import Statistics
from engine.executors.statistics.sketch import STANDARD_ERROR
from tests.engine.statistics.opened import opened
from tests.support.engine import Session
from txn.base.types import ShardId, Snapshot

ROWS = 20_000
MAKE = f"""
    CREATE TABLE t (id int PRIMARY KEY, k int, word text, day date);
    INSERT INTO t SELECT n, n % 1000, CASE WHEN n % 4 > 0 THEN 'word ' || n % 50 END, date '2026-01-01' + n % 30
    FROM generate_series(1, {ROWS}) AS n;
    VACUUM t
"""


async def make(session: Session) -> int:
    for statement in MAKE.split(";"):
        await session.run(statement)
    return int((await session.run("SELECT 't'::regclass::oid"))[0][0])


async def stats(session: Session) -> dict[str, tuple[float, int, float]]:
    rows = await session.run(
        "SELECT attname, null_frac, avg_width, n_distinct FROM pg_stats WHERE tablename = 't'"
    )
    return {row[0]: (float(row[1]), int(row[2]), float(row[3])) for row in rows}


async def snapshot(database: Any, shard: int) -> Snapshot:
    txn = database.store.begin(read_only=True)
    try:
        found: Snapshot = await settle(txn.snapshot(ShardId(shard)))
    finally:
        txn.rollback()
    return found


def parts(found: Snapshot) -> dict[str, int]:
    return {part.ref.name: part.ref.rows for part in found.parts}


def near(number: float) -> Any:
    return pytest.approx(number, rel=3 * STANDARD_ERROR)


async def idle(statistics: Statistics) -> None:
    await asyncio.gather(*statistics._tasks.values())


def test_analyze_counts_parts_and_new_rows(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as (_, session, _statistics):
            await make(session)
            assert await stats(session) == {}
            await session.run("ANALYZE t")
            found = await stats(session)
            assert found["id"] == (0.0, 4, -1.0)
            assert found["k"] == (0.0, 4, near(1000))
            assert found["word"] == (0.25, 8, near(50))
            assert found["day"] == (0.0, 4, near(30))
            # rows that are in memory only
            await session.run(
                "INSERT INTO t SELECT n, n, 'other ' || n FROM generate_series(20001, 25000) AS n"
            )
            await session.run("ANALYZE t")
            found = await stats(session)
            assert found["id"] == (0.0, 4, -1.0)
            assert found["k"][2] == near(-6000 / 25_000)  # more than a tenth of the rows: a share
            assert found["day"][0] == pytest.approx(0.2)

    asyncio.run(run())


async def distinct(session: Session, column: str) -> int:
    return int((await session.run(f"SELECT count(DISTINCT {column}) FROM t"))[0][0])


def test_updates_deletes_and_merges_are_followed(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as (database, session, statistics):
            shard = await make(session)
            await session.run("ANALYZE t")
            await session.run("UPDATE t SET id = id WHERE id % 20 = 0")
            counted = parts(await snapshot(database, shard))
            await session.run("ANALYZE t")
            few = statistics.known(shard, counted)
            assert few is not None
            assert [part.rows for part in few.parts] == list(
                counted.values()
            )  # a twentieth has ended: as before
            await session.run("DELETE FROM t WHERE k >= 300")
            await session.run("UPDATE t SET k = 7, word = 'same', day = day + 1000 WHERE k >= 100")
            await session.run("ANALYZE t")
            found = await stats(session)
            assert found["k"][2] == near(await distinct(session, "k"))
            assert found["word"][2] == near(await distinct(session, "word"))
            assert found["day"][2] == near(await distinct(session, "day"))
            assert found["id"] == (0.0, 4, -1.0)
            assert statistics.records[shard].rows == 6000
            many = statistics.known(shard, counted)
            assert many is not None
            assert max(part.rows for part in many.parts) < 6000  # without those that have ended
            for first in range(ROWS, ROWS + 900, 100):
                await session.run(
                    f"INSERT INTO t SELECT n, n FROM generate_series({first + 1}, {first + 100}) AS n"
                )
                await session.run("VACUUM t")
            await session.run("VACUUM ANALYZE t")
            snap = await snapshot(database, shard)
            assert len(snap.parts) < 9  # the small ones were merged
            known = statistics.known(shard, parts(snap))
            assert known is not None
            assert known.complete
            assert statistics._table(shard).keys() == parts(snap).keys()
            assert statistics.records[shard].rows == 6900
            assert (await stats(session))["k"][2] == near(-(await distinct(session, "k")) / 6900)

    asyncio.run(run())


def test_figures_survive_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def first() -> tuple[int, dict[str, tuple[float, int, float]]]:
        async with opened(tmp_path) as (_, session, _statistics):
            shard = await make(session)
            await session.run("CREATE TABLE gone AS SELECT 1 AS a")
            await session.run("VACUUM ANALYZE")
            await session.run("DROP TABLE gone")
            return shard, await stats(session)

    async def second(shard: int) -> dict[str, tuple[float, int, float]]:
        async with opened(tmp_path) as (database, session, statistics):
            found = await stats(session)
            snap = await snapshot(database, shard)
            known = await asyncio.to_thread(statistics.known, shard, parts(snap))
            assert known is not None  # read, not counted: the counter is broken
            assert known.complete
            assert sorted(statistics.records) == [shard]
            await session.run("ANALYZE t")
            assert await stats(session) == found
            return found

    shard, before = asyncio.run(first())
    assert len(before) == 4
    monkeypatch.setattr("engine.executors.local.figures.DuckCounter.part", None)
    assert asyncio.run(second(shard)) == before
    assert [p.name for p in (tmp_path / "statistics").glob("*.parts")] == [f"{shard}.parts"]


def test_a_query_that_wants_figures_finds_them_the_next_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as (database, session, statistics):
            shard = await make(session)
            snap = await snapshot(database, shard)
            assert statistics.known(shard, parts(snap)) is None
            statistics.wanted(snap)
            statistics.wanted(snap)
            assert len(statistics._tasks) == 1  # it is being counted
            await idle(statistics)
            known = statistics.known(shard, parts(snap))
            assert known is not None
            assert known.complete
            assert sum(part.rows for part in known.parts) == ROWS
            assert (await stats(session))["id"] == (0.0, 4, -1.0)
            [(asked, by_itself)] = await session.run(
                "SELECT last_analyze IS NOT NULL, last_autoanalyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 't'"
            )
            assert (asked, by_itself) == ("f", "t")
            statistics.wanted(snap)  # nothing is new
            assert not statistics._tasks
            # most of the rows speak for the others, but not for their bounds
            few = {**parts(snap), "another": ROWS // 20}
            partly = statistics.known(shard, few)
            assert partly is not None
            assert not partly.complete
            assert statistics.known(shard, {**parts(snap), "another": ROWS // 5}) is None

    asyncio.run(run())


def test_a_table_that_has_gone_meanwhile_is_passed_over(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as (database, session, statistics):
            shard = await make(session)
            snap = await snapshot(database, shard)
            await session.run("DROP TABLE t")
            statistics.wanted(snap)
            await idle(statistics)
            assert statistics.known(shard, parts(snap)) is None
            assert not statistics.records
            # one of a transaction that still runs is nobody else's
            await session.run("BEGIN")
            await session.run("CREATE TABLE mine AS SELECT 1 AS a")
            await session.run("ANALYZE mine")
            await session.run("COMMIT")
            assert not statistics.records

    asyncio.run(run())


def test_a_part_that_cannot_be_read_leaves_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with opened(tmp_path) as (database, session, statistics):
            shard = await make(session)
            await session.run("INSERT INTO t VALUES (0)")
            await session.run("VACUUM t")
            snap = await snapshot(database, shard)
            small = min(snap.parts, key=lambda part: part.ref.rows)
            Path(small.ref.path).write_bytes(b"PAR1")
            await session.run("ANALYZE t")
            assert f"a part of table {shard} has no statistics" in caplog.text
            known = statistics.known(shard, parts(snap))
            assert known is not None
            assert not known.complete
            assert shard not in statistics.records

    asyncio.run(run())


def test_figures_of_tables_used_long_ago_leave_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.executors.statistics.keeper.KEPT_BYTES", 5000)

    async def run() -> None:
        async with opened(tmp_path) as (database, session, statistics):
            shard = await make(session)
            await session.run("CREATE TABLE other AS SELECT 1 AS a, 2 AS b")
            await session.run("VACUUM ANALYZE")
            assert len(statistics._tables) == 1
            known = statistics.known(shard, parts(await snapshot(database, shard)))
            assert known is not None  # read again

    asyncio.run(run())
