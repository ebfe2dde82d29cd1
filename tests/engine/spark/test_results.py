"""Large results on a real JVM: in order, ahead of the client but not far, and no job runs on for who has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.base.rows import RowStream
from engine.executors.spark.running import Running
from planner.base.errors import SqlError
from tests.engine.spark.conftest import Spark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ANSWER_S = 600.0
SERIES = "SELECT g, g::text, g * 2 AS g FROM generate_series(1, 6000000) g"
# The first row is there at once; the second never comes.
SLOW = """
SELECT 0 AS x UNION ALL
SELECT a FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b WHERE a < b AND a + b = -5
"""


async def start(spark: Spark, sql: str) -> tuple[RowStream, Running]:
    plan = spark.executor.prepare(spark.world.bind(sql), spark.world.catalog)
    stream = await spark.executor.run(plan, spark.world.context())
    query = stream.close.__self__  # type: ignore[attr-defined]
    assert isinstance(query, Running)
    return stream, query


async def until(true: Callable[[], bool | Awaitable[bool]]) -> None:
    while True:
        found = true()
        if found if isinstance(found, bool) else await found:
            return
        await asyncio.sleep(0.05)


def active_jobs(query: Running) -> int:
    """How many of the query's jobs run, as Spark says."""
    tracker: Any = query._live.context._jsc.sc().statusTracker()
    states = [tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(query._tag)]
    return sum(not state.isEmpty() and state.get().status().toString() == "RUNNING" for state in states)


def run(spark: Spark, body: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(body, ANSWER_S)  # type: ignore[arg-type]

    spark.runner.run(bounded())


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no more than a megabyte lie there unread."""
    monkeypatch.setattr("engine.executors.spark.spool.AHEAD_BYTES", 2 << 20)
    monkeypatch.setattr("engine.executors.spark.running.AHEAD_BYTES", 2 << 20)


def test_rows_come_in_order_and_jobs_wait_for_the_client(spark: Spark, little_room: None) -> None:
    async def body() -> None:
        slots = spark.executor.runtime.slots
        stream, query = await start(spark, SERIES)
        assert not query._produced  # the first row is here, the last is not made
        await until(lambda: slots.running == 0)
        assert not query._produced
        assert active_jobs(query) == 0
        expected = 1
        async for batch in stream.batches:
            numbers = batch.arrow.column(0).to_pylist()
            assert numbers == list(range(expected, expected + len(numbers)))
            assert batch.arrow.column(1)[0].as_py() == str(expected)
            assert batch.arrow.column(2)[-1].as_py() == 2 * numbers[-1]
            expected += len(numbers)
        assert expected == 6_000_001
        assert query._produced
        await until(lambda: not list(spark.executor.runtime.spool_dir.glob("hf_*")))

    run(spark, body())


def test_a_sorted_result_is_computed_once(spark: Spark, little_room: None) -> None:
    async def body() -> None:
        sql = "SELECT g % 7, g FROM generate_series(1, 3000000) g ORDER BY 1, 2 DESC"
        stream, query = await start(spark, sql)
        last = (-1, 0)
        count = 0
        async for batch in stream.batches:
            first, second = (column.to_pylist() for column in batch.arrow.columns)
            keys = [last, *((a, -b) for a, b in zip(first, second, strict=True))]
            assert keys == sorted(keys)
            last = keys[-1]
            count += len(first)
        assert count == 3_000_000
        tracker: Any = query._live.context._jsc.sc().statusTracker()
        stages = [
            s for job in tracker.getJobIdsForTag(query._tag) for s in tracker.getJobInfo(job).get().stageIds()
        ]
        ran = [
            s
            for s in set(stages)
            if tracker.getStageInfo(s).isDefined() and tracker.getStageInfo(s).get().numCompletedTasks()
        ]
        tasks = sum(tracker.getStageInfo(s).get().numCompletedTasks() for s in ran)
        # The series once (7), the sample of its order (7), and each partition of the result.
        assert query._spool is None
        assert tasks <= 7 + 7 + 8

    run(spark, body())


@pytest.mark.parametrize("how", ["close", "cancel", "cancel_start"])
def test_no_job_runs_on_for_who_has_gone(spark: Spark, how: str) -> None:
    async def body() -> None:
        slots = spark.executor.runtime.slots
        stream, query = await start(spark, SLOW)
        await until(lambda: active_jobs(query) > 0)
        assert slots.running == 1
        if how == "close":
            stream.close()
        elif how == "cancel":
            rows = aiter(stream.batches)
            await anext(rows)
            reading = asyncio.ensure_future(anext(rows))  # type: ignore[arg-type]
            await asyncio.sleep(0.2)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        else:
            stream.close()
            plan = spark.executor.prepare(
                spark.world.bind(SLOW.replace("SELECT 0 AS x UNION ALL", "")), spark.world.catalog
            )
            starting = asyncio.ensure_future(spark.executor.run(plan, spark.world.context()))
            await until(lambda: slots.running > 0)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
        await until(lambda: active_jobs(query) == 0 and slots.running == 0)
        await until(lambda: not list(spark.executor.runtime.spool_dir.glob("hf_*")))

    run(spark, body())


def test_a_small_result_needs_the_jvm_no_more(spark: Spark) -> None:
    async def body() -> None:
        stream, query = await start(spark, "SELECT a FROM t ORDER BY a")
        assert query._produced
        assert spark.executor.runtime.slots.running == 0
        assert [len(batch) async for batch in stream.batches] == [6]

    run(spark, body())


def test_a_task_that_fails_later_ends_the_rows_with_its_error(spark: Spark, little_room: None) -> None:
    """Not quietly: rows before it have gone out."""

    async def body() -> None:
        stream, _ = await start(spark, "SELECT 1 / (g - 5000000) FROM generate_series(1, 6000000) g")
        rows = 0

        async def read() -> None:
            nonlocal rows
            async for batch in stream.batches:
                rows += len(batch)

        with pytest.raises(SqlError) as caught:
            await read()
        assert (caught.value.sqlstate, caught.value.message) == ("22012", "division by zero")
        assert 0 < rows < 5_000_000
        await until(lambda: spark.executor.runtime.slots.running == 0)

    run(spark, body())


def test_wide_rows_pass_through_a_small_heap(spark: Spark) -> None:
    """A gigabyte and a half of text: no batch of sixteen thousand rows of it is ever made."""

    async def body() -> None:
        sql = "SELECT rpad(g::text, 100000, 'ab') FROM generate_series(1, 15000) g"
        stream, _ = await start(spark, sql)
        rows = size = 0
        async for batch in stream.batches:
            assert batch.arrow.nbytes <= 8 << 20
            rows += len(batch)
            size += batch.arrow.nbytes
        assert rows == 15_000
        assert size >= 15_000 * 100_000

    run(spark, body())


def test_a_product_of_few_rows_takes_no_files(spark: Spark) -> None:
    """By sizes alone Spark expects gigabytes: it multiplies the bytes of the tables."""

    async def body() -> None:
        stream, query = await start(spark, "SELECT v.k FROM s v, s w, s x, s y, s z WHERE v.k = 1")
        assert query._spool is None
        assert [batch.arrow.num_rows async for batch in stream.batches]

    run(spark, body())


def test_projections_over_few_rows_are_not_compiled(spark: Spark) -> None:
    def compiled(query: Running) -> int:
        metrics = query._live.context._jvm.org.apache.spark.metrics.source.CodegenMetrics
        return int(metrics.METRIC_COMPILATION_TIME().getCount())

    async def body() -> None:
        stream, query = await start(spark, "SELECT a FROM t")
        stream.close()
        before = compiled(query)
        sql = "SELECT v.a * 3 + w.a, upper(w.e) FROM t v JOIN t w ON v.a = w.a WHERE v.b > 0"
        stream, query = await start(spark, sql)
        assert [batch.arrow.num_rows async for batch in stream.batches]
        assert compiled(query) == before

    run(spark, body())


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 7, count(*) FROM s GROUP BY 1", [("7", "5")]),
        ("SELECT 1, a, count(*) FROM s WHERE a = 1 GROUP BY 1, 2 ORDER BY 1, 2", [("1", "1", "2")]),
        ("SELECT count(*), 2 FROM s GROUP BY 2 ORDER BY 2, 1", [("5", "2")]),
    ],
)
def test_constants_that_are_grouped_by_are_no_places(
    spark: Spark, sql: str, rows: list[tuple[str, ...]]
) -> None:
    assert spark.rows(sql) == rows
