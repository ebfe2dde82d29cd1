"""What Spark's optimizer is told of a table's files: rows, bounds, distinct values; and what it makes of that."""

from __future__ import annotations

import argparse
import asyncio
import datetime
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.base.config import load
from engine.base.spark_properties import COST_BASED, REORDERS, application
from engine.executors.spark.running import Running
from engine.executors.spark.statistics import figures_of, is_wanted, with_figures
from engine.executors.statistics.figures import ColumnSummary
from engine.server.database import Database
from tests.engine.spark.conftest import Spark
from tests.support.engine import Failed, Session
from txn.base.types import PhysicalType

DDL = "c1 INT, c2 STRING, c3 DATE, c4 BIGINT, c5 TIMESTAMP, c6 DECIMAL(9,2), c7 TIMESTAMP_NTZ, c8 DOUBLE, c9 BOOLEAN, s_row_id BIGINT"
TYPES = {
    1: PhysicalType(kind="int32"),
    2: PhysicalType(kind="text"),
    3: PhysicalType(kind="date"),
    4: PhysicalType(kind="int64"),
    5: PhysicalType(kind="timestamptz"),
    6: PhysicalType(kind="decimal", precision=9, scale=2),
    7: PhysicalType(kind="timestamp"),
    8: PhysicalType(kind="float64"),
    9: PhysicalType(kind="bool"),
}
DAY_US = 86_400_000_000


def summaries(rows: int) -> dict[int, ColumnSummary]:
    """Return what is known of the files of ``write`` from 1 on."""
    return {
        1: ColumnSummary(0.0, rows, 1, rows, 0, 0),
        2: ColumnSummary(0.0, 10.2, None, None, 2.0, 2),
        3: ColumnSummary(0.0, 3, 20454, 20456, 0, 0),
        4: ColumnSummary(1.0, 0, None, None, 0, 0),
        5: ColumnSummary(0.0, rows, DAY_US, rows * DAY_US, 0, 0),
        6: ColumnSummary(0.0, rows, 25, rows * 25, 0, 0),
        7: ColumnSummary(0.0, rows, DAY_US, rows * DAY_US, 0, 0),
        8: ColumnSummary(0.0, rows, 0.5, rows * 0.5, 0, 0),
        9: ColumnSummary(0.0, 2, 0, 1, 0, 0),
    }


def write(path: Path, first: int, rows: int) -> str:
    numbers = range(first, first + rows)
    table = pa.table(
        {
            "c1": pa.array(numbers, pa.int32()),
            "c2": pa.array([f"x{n % 10}" for n in numbers]),
            "c3": pa.array([datetime.date(2026, 1, 1 + n % 3) for n in numbers]),
            "c4": pa.array([None] * rows, pa.int64()),
            "c5": pa.array([n * DAY_US for n in numbers], pa.timestamp("us", "UTC")),
            "c6": pa.array([n * 25 for n in numbers], pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(9, 2)),
            "c7": pa.array([n * DAY_US for n in numbers], pa.timestamp("us")),
            "c8": pa.array([n * 0.5 for n in numbers]),
            "c9": pa.array([n % 2 == 0 for n in numbers]),
            "s_row_id": pa.array(numbers, pa.int64()),
        }
    )  # fmt: skip
    pq.write_table(table, path)
    return str(path)


def test_figures_are_written_as_sparks_catalog_does() -> None:
    columns = {**summaries(1000), 10: ColumnSummary(0.5, 7, None, None, 12, 30)}
    types = {**TYPES, 10: PhysicalType(kind="numeric")}
    found = figures_of(columns, types, 1000, bounded=True)
    common = {"version": "2", "nullCount": "0"}
    assert found == {
        "c1": common | {"distinctCount": "1000", "min": "1", "max": "1000"},
        "c2": common | {"distinctCount": "10", "avgLen": "2", "maxLen": "2"},
        "c3": common | {"distinctCount": "3", "min": "2026-01-01", "max": "2026-01-03"},
        "c4": {"version": "2", "nullCount": "1000", "distinctCount": "0"},
        "c5": common | {"distinctCount": "1000", "min": "1970-01-02 00:00:00.000000", "max": "1972-09-27 00:00:00.000000"},
        "c6": common | {"distinctCount": "1000", "min": "0.25", "max": "250.00"},
        "c7": common | {"distinctCount": "1000", "min": "1970-01-02 00:00:00.000000", "max": "1972-09-27 00:00:00.000000"},
        "c8": common | {"distinctCount": "1000", "min": "0.5", "max": "500.0"},
        "c9": common | {"distinctCount": "2", "min": "false", "max": "true"},
    }  # fmt: skip
    # what is not known of all rows would hide those beyond
    assert not any("min" in each for each in figures_of(columns, types, 1000, bounded=False).values())


def test_infinite_bounds_are_none() -> None:
    columns = {3: ColumnSummary(0, 5, 0, 2**31 - 1, 0, 0), 5: ColumnSummary(0, 5, 0, 2**63 - 1, 0, 0)}
    found = figures_of(columns, TYPES, 10, bounded=True)
    assert "max" not in found["c3"] | found["c5"]


def test_they_are_handed_over_unless_switched_off(tmp_path: Path) -> None:
    assert is_wanted({})
    assert is_wanted({COST_BASED: "True"})
    assert not is_wanted({COST_BASED: "false"})
    made = application("local[2]", {}, tmp_path)
    assert (made[COST_BASED], made[REORDERS]) == ("true", "true")
    assert application("local[2]", {REORDERS: "false"}, tmp_path)[REORDERS] == "false"


def counted(live: Any, session: Any, folder: Path, name: str, rows: int) -> tuple[Any, Any]:
    """Return frames over a file of so many rows, one without figures and one with them."""
    path = write(folder / f"{name}.parquet", 1, rows)
    frame = session.read.schema(DDL).parquet(path)
    columns = figures_of(summaries(rows), TYPES, rows, bounded=True)
    return frame, with_figures(session, frame, rows, Path(path).stat().st_size, columns)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_estimates_rows_by_them(spark: Spark, tmp_path: Path) -> None:
    live = spark.runner.run(spark.executor.runtime.live())
    session = live.session.newSession()
    active = session._jvm.org.apache.spark.sql.classic.SparkSession
    frame, told = counted(live, session, tmp_path, "a", 1000)
    assert told.selectExpr("*", "_metadata.row_index AS s_pos").where("c1 <= 100").count() == 100

    def estimate(rows: object) -> str:
        return str(rows._jdf.queryExecution().optimizedPlan().stats().rowCount().toString())  # type: ignore[attr-defined]

    active.setActiveSession(session._jsparkSession)  # whose properties an estimate goes by
    try:
        assert estimate(frame) == "None"
        assert estimate(told) == "Some(1000)"
        assert estimate(told.where("c1 <= 100")) == "Some(100)"
        assert estimate(told.where("c2 = 'x3'")) == "Some(100)"
        assert estimate(told.where("c3 = date '2026-01-02'")) == "Some(334)"
        assert estimate(told.where("c4 IS NOT NULL")) == "Some(0)"
        assert estimate(told.where("c5 >= timestamp '1972-06-19 00:00:00'")) == "Some(101)"
        assert estimate(told.where("c6 < 25.00")) == "Some(100)"
        assert estimate(told.where("c8 > 400")) == "Some(201)"
        both = told.alias("a").join(told.alias("b"), "c1")
        assert estimate(both) == "Some(1000)"
        assert estimate(told.groupBy("c2", "c3").count()) == "Some(30)"
        session.conf.set("spark.sql.cbo.enabled", "false")
        assert estimate(told.where("c1 <= 101")) == "None"
    finally:
        active.setActiveSession(live.session._jsparkSession)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_plans_change_by_them(spark: Spark, tmp_path: Path) -> None:
    live = spark.runner.run(spark.executor.runtime.live())
    session = live.session.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")  # plans as they are made, not as they become
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "10000")
    for name, rows in (("big", 20_000), ("middle", 5_000), ("small", 2_000)):
        frame, told = counted(live, session, tmp_path, name, rows)
        frame.createOrReplaceTempView(f"plain_{name}")
        told.createOrReplaceTempView(f"told_{name}")
    active = session._jvm.org.apache.spark.sql.classic.SparkSession
    active.setActiveSession(session._jsparkSession)

    def plan(sql: str) -> str:
        return str(session.sql(sql)._jdf.queryExecution().executedPlan().toString())

    def first_join(sql: str) -> str:
        """Return the condition of the join that is done first."""
        tree = str(session.sql(sql)._jdf.queryExecution().optimizedPlan().toString())
        joins = [line for line in tree.splitlines() if "Join Inner" in line]
        return re.sub(r"#\d+L?", "", max(joins, key=lambda line: line.index("Join"))).partition("Inner, ")[2]

    try:
        # a few rows of five thousand fit a broadcast, which the sizes of files do not tell
        few = "SELECT count(*) FROM {0}_big b, {0}_middle m WHERE b.c1 = m.c1 AND m.c6 < 2.00"
        assert "BroadcastHashJoin" not in plan(few.format("plain"))
        assert "BroadcastHashJoin" in plan(few.format("told"))
        assert session.sql(few.format("told")).collect() == session.sql(few.format("plain")).collect()
        # the join that leaves fewest rows comes first: not that of values that many rows share
        joins = (
            "SELECT count(*) FROM {0}_big b, {0}_middle m, {0}_small s "
            "WHERE b.c2 = m.c2 AND b.c1 = s.c1 AND s.c8 < 3"
        )
        assert first_join(joins.format("plain")) == "(c2 = c2)"
        assert first_join(joins.format("told")) == "(c1 = c1)"
        assert session.sql(joins.format("told")).collect() == session.sql(joins.format("plain")).collect()
    finally:
        active.setActiveSession(live.session._jsparkSession)


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_queries_hand_over_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server: the first query has the table counted, the next one hands over rows, NULLs, bounds and distinct values, hot rows among them."""
    config = load(
        argparse.Namespace(config=None, spark_start="lazy", spark_master="local[2]", memory=3 << 30, data_dir=str(tmp_path)),
        {},
    )  # fmt: skip

    def told(live: Any) -> list[tuple[str, dict[str, str]]]:
        """Return the rows and the columns' figures of each view that queries have made, newest last."""
        active = live.session._jvm.org.apache.spark.sql.classic.SparkSession
        active.setActiveSession(live.session._jsparkSession)
        found = []
        for entry in live.table_views(live.session)._entries.values():
            plan = live.session.table(entry.view)._jdf.queryExecution().analyzed()
            stats = plan.collectLeaves().head().stats()
            texts = str(stats.attributeStats().mkString("\n")).splitlines()
            columns = {line.split("#")[0]: line.split("->")[1].strip() for line in texts}
            found.append((str(stats.rowCount().toString()), columns))
        return found

    async def run() -> None:
        database = await Database.open(config)
        try:
            session = Session(database, 1)
            for sql in (
                "CREATE TABLE t (id int PRIMARY KEY, word text)",
                "INSERT INTO t SELECT n, CASE WHEN n % 2 = 0 THEN 'w' || n % 9 END FROM generate_series(1, 20000) AS n",
                "VACUUM t",
                "DELETE FROM t WHERE id > 19000",
                "SET executor = spark",
            ):
                await session.run(sql)
            query = "SELECT count(*), count(DISTINCT word), max(id) FROM t"
            assert await session.run(query) == [("19000", "9", "19000")]
            assert database.spark is not None
            assert database.statistics is not None
            live = await database.spark.runtime.live()
            await asyncio.gather(*database.statistics._tasks.values())
            assert await session.run(query) == [("19000", "9", "19000")]
            rows, columns = told(live)[-1]
            assert rows == "Some(19000)"
            assert columns["c1"].startswith("ColumnStat(Some(19000),Some(1),Some(20000),Some(0)")
            assert columns["c2"].startswith("ColumnStat(Some(9),None,None,Some(9500),Some(2),Some(2)")
            await session.run("INSERT INTO t VALUES (50000, 'hot')")
            assert await session.run(query) == [("19001", "10", "50000")]
            rows, columns = told(live)[-1]
            assert rows == "Some(19001)"
            assert columns["c1"].startswith("ColumnStat(Some(19001),Some(1),Some(50000),Some(0)")
            # a query that the JVM did not survive is planned by sizes of files
            begin = Running._begin

            def fatal(self: Running, sql: str) -> None:
                live.gateway.process.kill()
                begin(self, sql)

            with monkeypatch.context() as patch:
                patch.setattr(Running, "_begin", fatal)
                with pytest.raises(Failed) as failed:
                    await session.run(query)
            assert failed.value.report.sqlstate == "58000"
            assert await session.run(query) == [("19001", "10", "50000")]
            live = await database.spark.runtime.live()
            assert told(live)[-1] == ("None", {})
            assert await session.run("SELECT max(id) FROM t") == [("50000",)]
            rows, columns = told(live)[-1]
            assert (rows, list(columns)) == (
                "Some(19001)",
                ["c1"],
            )  # hot rows are counted as far as they are read
        finally:
            await database.close()

    asyncio.run(run())
