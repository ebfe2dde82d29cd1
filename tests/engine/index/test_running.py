"""Waiting, cancelling, sleeping: how pipelines behave while they run."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine.base.rows import ReadyRows, RowStream
from planner.base.errors import SqlError
from tests.engine.index.harness import Database
from tests.engine.index.tables import make


@pytest.fixture(scope="module")
def db() -> Database:
    return make()


def test_sub_selects_in_expressions_can_wait_for_scans_and_lookups(db: Database) -> None:
    sql = "SELECT id, (SELECT title FROM dept WHERE id = e.dept), (SELECT count(*) FROM m) FROM emp e ORDER BY id"
    assert db.run(sql, cold=True) == db.run(sql)


def test_a_volatile_value_is_computed_once_although_the_batch_is_evaluated_again(db: Database) -> None:
    draws: list[float] = []
    original = db.session.random

    def counting() -> float:
        draws.append(original())
        return draws[-1]

    db.session.random = counting  # type: ignore[method-assign]
    try:
        db.run("SELECT random(), (SELECT count(*) FROM emp), pg_sleep(0.001)", cold=True)
    finally:
        db.session.random = original  # type: ignore[method-assign]
    assert len(draws) == 1


def test_sleeping_does_not_block_the_loop(db: Database) -> None:
    bound, plan = db.prepare("SELECT pg_sleep(0.05), 1")
    turns = 0

    async def run() -> int:
        nonlocal turns

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.005)

        ticking = asyncio.create_task(tick())
        result = db.executor.run(plan, db.context(bound))
        assert isinstance(result, RowStream)
        rows = [row async for batch in result.batches for row in batch.rows or ()]
        ticking.cancel()
        return len(rows)

    assert asyncio.run(run()) == 1
    assert turns >= 4


def test_a_cancelled_statement_stops_with_57014(db: Database) -> None:
    bound, plan = db.prepare("SELECT count(*) FROM generate_series(1, 100000000) x")
    ctx = db.context(bound)
    ctx.cancelled = threading.Event()

    async def run() -> Any:
        result = db.executor.run(plan, ctx)
        assert isinstance(result, RowStream)
        ctx.cancelled.set()
        return [batch async for batch in result.batches]

    with pytest.raises(SqlError) as caught:
        asyncio.run(run())
    assert caught.value.sqlstate == "57014"


def test_the_loop_gets_turns_during_a_long_aggregation(db: Database) -> None:
    bound, plan = db.prepare("SELECT x % 7, count(*) FROM generate_series(1, 1000000) x GROUP BY 1")
    gaps: list[float] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        async def tick() -> None:
            last = loop.time()
            while True:
                await asyncio.sleep(0)
                now = loop.time()
                gaps.append(now - last)
                last = now

        ticking = asyncio.create_task(tick())
        result = db.executor.run(plan, db.context(bound))
        if isinstance(result, RowStream):
            async for _ in result.batches:
                pass
        ticking.cancel()

    asyncio.run(run())
    assert len(gaps) > 5


def test_limit_stops_its_input(db: Database) -> None:
    sql = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t LIMIT 5"
    assert [r[0] for r in db.run(sql)] == ["1", "2", "3", "4", "5"]


def test_closing_a_stream_early_is_clean(db: Database) -> None:
    bound, plan = db.prepare("SELECT * FROM m")

    async def run() -> None:
        result = db.executor.run(plan, db.context(bound))
        assert isinstance(result, RowStream)
        async for _ in result.batches:
            break
        await result.batches.aclose()  # type: ignore[attr-defined]

    asyncio.run(run())


def test_parameters_reach_every_level(db: Database) -> None:
    rows = db.run(
        "SELECT id FROM emp e WHERE dept = $1 AND EXISTS (SELECT 1 FROM dept WHERE id = e.dept AND title = $2)"
        " ORDER BY id LIMIT $3",
        (1, "eng", 2),
        (23, 25, 20),
    )
    assert rows == [("1",), ("2",)]


def test_constants_answer_at_once(db: Database) -> None:
    bound, plan = db.prepare("SELECT 1")
    assert isinstance(db.executor.run(plan, db.context(bound)), ReadyRows)
