"""What Spark's optimizer is told of a table's files: rows, bounds, distinct values."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.spark.part_bounds import Bounds
from engine.spark.statistics import ColumnFigures, columns_of, is_wanted, with_figures
from tests.engine.spark.conftest import Spark

DDL = "c1 INT, c2 STRING, c3 DATE, c4 BIGINT, s_row_id BIGINT"


def write(path: Path, first: int, rows: int) -> str:
    numbers = range(first, first + rows)
    table = pa.table(
        {
            "c1": pa.array(numbers, pa.int32()),
            "c2": pa.array([f"x{n}" for n in numbers]),
            "c3": pa.array([datetime.date(2026, 1, 1 + n % 3) for n in numbers]),
            "c4": pa.array([None] * rows, pa.int64()),
            "s_row_id": pa.array(numbers, pa.int64()),
        }
    )
    pq.write_table(table, path)
    return str(path)


def test_bounds_are_those_of_all_files(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.parquet", 1, 100), write(tmp_path / "b.parquet", 1001, 50)]
    found = columns_of(DDL, paths, 150, Bounds())
    assert found == {
        "c1": ColumnFigures("1", "1050", 150),  # no more distinct values than rows
        "c3": ColumnFigures("2026-01-01", "2026-01-03", 3),
    }


def test_files_elsewhere_are_not_opened(tmp_path: Path) -> None:
    assert columns_of(DDL, ["s3://bucket/a.parquet"], 10, Bounds()) == {}
    assert columns_of(DDL, [], 10, Bounds()) == {}


def test_they_are_gathered_only_where_spark_uses_them() -> None:
    assert not is_wanted({})
    assert not is_wanted({"spark.sql.cbo.enabled": "false"})
    assert is_wanted({"spark.sql.cbo.enabled": "True"})


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_estimates_rows_by_them(spark: Spark, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", 1, 1000)
    live = spark.runner.run(spark.executor.runtime.live())
    session = live.session.newSession()
    session.conf.set("spark.sql.cbo.enabled", "true")
    active = session._jvm.org.apache.spark.sql.classic.SparkSession
    frame = session.read.schema(DDL).parquet(path)
    columns = columns_of(DDL, [path], 1000, Bounds())
    told = with_figures(session, frame, 1000, Path(path).stat().st_size, columns)
    assert told.selectExpr("*", "_metadata.row_index AS s_pos").where("c1 <= 100").count() == 100

    def estimate(rows: object) -> str:
        return str(rows._jdf.queryExecution().optimizedPlan().stats().rowCount().toString())  # type: ignore[attr-defined]

    active.setActiveSession(session._jsparkSession)  # whose properties an estimate goes by
    try:
        assert estimate(frame) == "None"
        assert estimate(told) == "Some(1000)"
        assert estimate(told.where("c1 <= 100")) == "Some(100)"
        assert estimate(told.where("c3 = date '2026-01-02'")) == "Some(334)"
        both = told.alias("a").join(told.alias("b"), "c1")
        assert estimate(both) == "Some(1000)"
    finally:
        active.setActiveSession(live.session._jsparkSession)
