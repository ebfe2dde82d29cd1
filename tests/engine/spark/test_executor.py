"""The Spark executor on a real JVM: snapshots, values, streaming, cancelling, errors, crashes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.executors.spark import reaper
from planner import facts as f
from planner.base.errors import SqlError
from tests.engine.spark.conftest import Spark
from tests.golden.harness import parse
from tests.support.lowered import printed

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1800),
]  # a script is many queries, the machine may be busy

SCRIPTS = sorted((Path(__file__).parents[2] / "golden" / "lower").glob("*.txt"))
ANSWER_S = 900.0  # generous: a machine with two cores may do much else
ENDLESS = "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b WHERE a < b"


def test_hidden_rows_stay_hidden_and_hot_rows_show(spark: Spark) -> None:
    assert spark.rows("SELECT count(*), count(DISTINCT a) FROM t") == [("6", "6")]


def test_tables_that_have_not_changed_are_registered_once(spark: Spark) -> None:
    def views() -> set[str]:
        return {table.name for table in live.small.catalog.listTables()}

    live: Any = spark.executor.runtime._live or spark.runner.run(spark.executor.runtime.live())
    found = spark.rows("SELECT sum(a) FROM t")
    before = views()
    assert spark.rows("SELECT sum(a) FROM t") == found
    assert views() == before
    oid = next(r.oid for r in spark.world.catalog.by_oid.values() if r.name == "t")
    old = spark.world.snapshots[oid]
    spark.world.snapshots[oid] = replace(old, hot=old.hot.slice(0, 0))
    try:
        assert spark.rows("SELECT sum(a) FROM t") != found
        assert views() > before
    finally:
        spark.world.snapshots[oid] = old
    assert spark.rows("SELECT sum(a) FROM t") == found


def test_only_what_nobody_handles_ends_the_jvm(spark: Spark) -> None:
    """Spark asks for memory and spills where the heap has none: the JVM must not end at the first such refusal."""
    live: Any = spark.executor.runtime._live or spark.runner.run(spark.executor.runtime.live())
    jvm = live.context._jvm
    options = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert not [option for option in options if "OutOfMemoryError" in option]
    handler = jvm.java.lang.Thread.getDefaultUncaughtExceptionHandler()
    assert handler.getClass().getSimpleName() == "SparkUncaughtExceptionHandler"


def test_queries_over_more_rows_shuffle_into_more_partitions(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    live: Any = spark.executor.runtime._live or spark.runner.run(spark.executor.runtime.live())
    monkeypatch.setattr("engine.executors.spark.runtime.SMALL_ROWS", 0)
    sql = "SELECT a, count(*) FROM t GROUP BY a ORDER BY a"
    found = spark.rows(sql)
    usual = live.session_for(8, makes_rows=False)
    assert usual is live.session
    monkeypatch.setattr("engine.base.spark_properties.PARTITION_ROWS", 1)
    larger = live.session_for(8, makes_rows=False)
    assert larger is live.session_for(8, makes_rows=False)
    assert int(larger.conf.get("spark.sql.shuffle.partitions")) == 4 * live.partitions
    assert spark.rows(sql) == found
    assert larger.catalog.listTables(), "the query ran there"


def test_many_hot_rows_go_by_a_file(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.executors.spark.relations.MAX_INLINE_ROWS", 1)
    assert spark.rows("SELECT sum(a), max(d), max(i) FROM t") == [
        ("21", "12345678901234567890.5", "2024-02-29 00:00:00")
    ]
    assert list(spark.executor.runtime.tables_dir.iterdir()) != []


def test_a_column_added_later_reads_as_its_missing_value(spark: Spark) -> None:
    world = spark.world
    oid = next(r.oid for r in world.catalog.by_oid.values() if r.name == "t")
    old = world.snapshots[oid]
    columns = tuple(
        replace(c, missing_value=Decimal("7.5")) if c.attnum == 4 else c for c in old.spec.columns
    )
    part = old.parts[0]
    without = replace(part, ref=replace(part.ref, columns=tuple(a for a in part.ref.columns if a != 4)))
    world.snapshots[oid] = replace(old, spec=replace(old.spec, columns=columns), parts=(without,))
    try:
        found = spark.rows("SELECT d, count(*) FROM t GROUP BY d ORDER BY d")
    finally:
        world.snapshots[oid] = old
    assert found == [("0.001", "1"), ("1.5", "1"), ("7.5", "4")]


@pytest.mark.parametrize(
    ("oid", "type_name", "value", "text"),
    [
        (f.INT8, "int8", -(2**63), "-9223372036854775808"),
        (f.NUMERIC, "numeric", Decimal("1.500"), "1.500"),
        (f.NUMERIC, "numeric", Decimal("NaN"), "NaN"),
        (f.NUMERIC, "numeric", Decimal("9" * 38), "9" * 38),
        (f.TEXT, "text", "it's \\ é \n\t", "it's \\ é \n\t"),
        (f.BOOL, "bool", True, "t"),
        (f.FLOAT8, "float8", 1e-300, "1e-300"),
        (f.DATE, "date", -1, "1969-12-31"),
        (f.TIMESTAMP, "timestamp", 1, "1970-01-01 00:00:00.000001"),
        (f.TIMESTAMPTZ, "timestamptz", 0, "1970-01-01 00:00:00+00"),
        (f.INTERVAL, "interval", (14, -3, 5), "1 year 2 mons -3 days +00:00:00.000005"),
        (f.BYTEA, "bytea", b"\x00\xff", "\\x00ff"),
        (f.UUID, "uuid", bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (f.TIME, "time", 86_399_999_999, "23:59:59.999999"),
    ],
)
def test_parameters_and_null_make_the_round_trip(
    spark: Spark, oid: int, type_name: str, value: Any, text: str
) -> None:
    sql = f"SELECT x FROM (VALUES ($1::{type_name}), (NULL)) v(x) ORDER BY x"
    assert spark.rows(sql, (value,), (oid,)) == [(text,), (None,)]


def test_every_stored_type_reads_back(spark: Spark) -> None:
    columns = {
        "k": ["1", "2", "3", "4", "5", None],
        "b": ["t", "f", None, "t", "f", "t"],
        "s": ["1", "-32768", "3", None, "5", "6"],
        "r": ["1.5", "-0.1", "0.25", None, "NaN", "Infinity"],
        "n": ["1.50", "NaN", "100", None, "0.001", "-7"],
        "y": ["\\x00ff", "\\x", "\\x61", None, "\\x62", "\\x63"],
        "u": ["00010203-0405-0607-0809-0a0b0c0d0e0f"] * 5 + [None],
        "d": ["2020-02-29", "infinity", "-infinity", None, "0001-01-01", "9999-12-31"],
        "m": ["12:34:56.789", "00:00:00", "23:59:59.999999", None, "01:00:00", "02:00:00"],
        "w": ["12:34:56+02", "00:00:00+00", "23:59:59-11", None, "01:00:00+00", "02:00:00+00"],
        "p": ["2020-02-29 01:02:03.456789", "infinity", "-infinity", None, "0001-01-01 00:00:00", "1582-10-10 00:00:00"],
        "q": ["2020-02-29 01:02:03.456789+00", "infinity", "-infinity", None, "0001-01-01 00:00:00+00", "1582-10-10 00:00:00+00"],
        "i": ["1 year 2 mons -3 days +00:00:05", "00:00:00.000001", "-1 mons", None, "1 day", "2 days"],
        "a": ["{1,NULL,3}", "{}", "{4}", None, "{5}", "{6}"],
        "x": ["{00010203-0405-0607-0809-0a0b0c0d0e0f}", "{}", "{NULL}", None, "{}", "{}"],
    }  # fmt: skip
    types = ["k int4", "b bool", "s int2", "r float4", "n numeric", "y bytea", "u uuid", "d date", "m time",
             "w timetz", "p timestamp", "q timestamptz", "i interval", "a _int4", "x _uuid"]  # fmt: skip
    expected = list(zip(*columns.values(), strict=True))
    spark.world.table("every", *types, rows=expected)
    found = spark.rows("SELECT * FROM every ORDER BY k")
    assert found == expected


def test_a_result_streams_and_stops_when_closed(spark: Spark) -> None:
    async def run() -> int:
        query = spark.world.bind("SELECT g, repeat('x', 100) FROM generate_series(1, 1000000) g")
        plan = spark.executor.prepare(query, spark.world.catalog)
        result = await spark.executor.run(plan, spark.world.context())
        seen = 0
        async for batch in result.batches:
            seen += len(batch)
            if seen > 50_000:
                break
        result.close()
        result.close()
        return seen

    assert 50_000 < spark.runner.run(run()) < 200_000


def test_cancelling_stops_the_job_with_57014(spark: Spark) -> None:
    async def run() -> float:
        context = spark.world.context()
        context.cancelled = threading.Event()
        plan = spark.executor.prepare(spark.world.bind(ENDLESS), spark.world.catalog)
        asyncio.get_running_loop().call_later(2, context.cancelled.set)
        started = time.monotonic()
        with pytest.raises(SqlError) as caught:
            await spark.executor.run(plan, context)
        assert caught.value.sqlstate == "57014"
        return time.monotonic() - started

    spark.runner.run(asyncio.wait_for(run(), ANSWER_S))
    _no_job_runs(spark)


def test_a_cancelled_task_cancels_its_job(spark: Spark) -> None:
    async def run() -> None:
        plan = spark.executor.prepare(spark.world.bind(ENDLESS), spark.world.catalog)
        task = asyncio.ensure_future(spark.executor.run(plan, spark.world.context()))
        await asyncio.sleep(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    spark.runner.run(asyncio.wait_for(run(), ANSWER_S))
    _no_job_runs(spark)
    assert spark.rows("SELECT count(*) FROM t") == [("6",)]


def _no_job_runs(spark: Spark) -> None:
    live: Any = spark.executor.runtime._live
    deadline = time.monotonic() + ANSWER_S
    while list(live.context.statusTracker().getActiveJobsIds()):
        assert time.monotonic() < deadline, "a job runs on"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("SELECT a + 2147483647 FROM t", "22003", "integer out of range"),
        ("SELECT b + 1 FROM t", "22003", "bigint out of range"),
        ("SELECT (a * 100000)::int2 FROM t", "22003", "smallint out of range"),
        ("SELECT 1 / (a - 1) FROM t", "22012", "division by zero"),
        ("SELECT c / (a - 1) FROM t", "22012", "division by zero"),
        ("SELECT e::int FROM t WHERE a = 1", "22P02", 'invalid input syntax for type integer: "abc"'),
        (
            "SELECT (a::text || '9999999999')::int FROM t WHERE a = 1",
            "22003",
            'value "19999999999" is out of range for type integer',
        ),
        (
            "SELECT (SELECT k FROM s) FROM t",
            "21000",
            "more than one row returned by a subquery used as an expression",
        ),
        ("SELECT substring(e, 1, -a) FROM t", "22011", "negative substring length not allowed"),
    ],
)
def test_errors_have_postgresql_s_sqlstates(spark: Spark, sql: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        spark.rows(sql)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_spark_answers_as_postgresql_does_or_refuses(script: Path, spark: Spark) -> None:
    """The scripts hold PostgreSQL's answers; 0A000 is allowed, another answer is not."""
    wrong: list[str] = []
    refused = total = 0
    for block in parse(script.read_text(encoding="utf-8")):
        if not block.commands:
            continue
        query = "\n".join(block.commands)
        total += 1
        try:
            found = [part for line in printed(spark.rows(query), query) for part in line.split("\n")]
        except SqlError as error:
            if error.sqlstate == "0A000":
                refused += 1
                print(f"refused: {query}: {error.message}")
                continue
            found = [f"ERROR {error.sqlstate}"]
        if found != block.output:
            wrong.append("\n".join([query, "expected", *block.output, "found", *found]))
    assert not wrong, "\n\n".join(wrong)
    assert refused < total / 2


def test_the_jvm_ends_and_the_next_query_starts_another(spark: Spark) -> None:
    live: Any = spark.runner.run(spark.executor.runtime.live())
    os.kill(live.gateway.process.pid, signal.SIGKILL)
    live.gateway.process.wait(60)
    assert not spark.executor.ready
    assert spark.rows("SELECT count(*) FROM t") == [("6",)]
    assert spark.executor.runtime._live is not live


def test_a_crash_during_a_query_is_58000(spark: Spark) -> None:
    async def run() -> None:
        live: Any = await spark.executor.runtime.live()
        plan = spark.executor.prepare(spark.world.bind(ENDLESS), spark.world.catalog)
        task = asyncio.ensure_future(spark.executor.run(plan, spark.world.context()))
        await asyncio.sleep(2)
        os.kill(live.gateway.process.pid, signal.SIGKILL)
        with pytest.raises(SqlError) as caught:
            await task
        assert caught.value.sqlstate == "58000"

    spark.runner.run(asyncio.wait_for(run(), ANSWER_S))


def test_a_cancelled_query_that_does_not_stop_costs_the_jvm_and_no_later_query(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join of two generated arrays never asks whether it was cancelled; here two of them take both cores."""
    monkeypatch.setattr(reaper, "REAP_AFTER_S", 1.0)
    stubborn = "SELECT count(*) FROM t, generate_series(1, 3000000 + a) x, generate_series(1, 3000000 + a) y WHERE x < y"

    async def run() -> None:
        live: Any = await spark.executor.runtime.live()
        plan = spark.executor.prepare(spark.world.bind(stubborn), spark.world.catalog)
        tasks = [asyncio.ensure_future(spark.executor.run(plan, spark.world.context())) for _ in range(2)]
        tracker = live.context._jsc.sc().statusTracker()
        while sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos()) < 2:
            assert not any(task.done() for task in tasks)
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while spark.executor.runtime._live is live:
            await asyncio.sleep(0.1)

    spark.runner.run(asyncio.wait_for(run(), ANSWER_S))
    assert spark.rows("SELECT count(*) FROM t") == [("6",)]


def test_a_cancelled_query_that_stops_leaves_the_jvm_alone(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "REAP_AFTER_S", 1.0)

    async def run() -> None:
        live: Any = await spark.executor.runtime.live()
        plan = spark.executor.prepare(spark.world.bind(ENDLESS), spark.world.catalog)
        task = asyncio.ensure_future(spark.executor.run(plan, spark.world.context()))
        await asyncio.sleep(2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for wanted in (True, False):  # the reaper looks, and is content
            while (spark.executor.runtime._reaper._task is not None) is not wanted:
                await asyncio.sleep(0.1)
        assert spark.executor.runtime._live is live

    spark.runner.run(asyncio.wait_for(run(), ANSWER_S))
