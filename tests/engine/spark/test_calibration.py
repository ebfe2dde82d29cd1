"""``holdfast calibrate``: what is made of times, how it is kept, who uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.executors.spark.calibration import (  # fmt: skip
    CEILING,
    FILE,
    FLOOR_BYTES,
    FLOOR_ROWS,
    NEVER,
    Calibration,
    IndexPoint,
    Line,
    Point,
    fit,
    load,
    recommend,
    recommend_index,
    store,
)
from tests.support.server import ROOT, ServerProcess

MB = 2**20
GB = 2**30


def points(local: tuple[float, float], spark: tuple[float, float]) -> list[Point]:
    """Points on two lines, each given by seconds at all and seconds per megabyte."""
    return [
        Point(n * MB, local[0] + local[1] * n, spark[0] + spark[1] * n) for n in (10, 40, 160)
    ]  # fmt: skip


def test_a_line_goes_through_points_on_it() -> None:
    line = fit([10, 40, 160], [1.0, 1.3, 2.5])
    assert (round(line.start_s, 9), round(line.per_byte_s, 9)) == (0.9, 0.01)
    assert fit([1, 3], [2.0, 1.0]) == Line(1.5, 0.0)  # a slope below zero is noise


def test_where_the_lines_cross_spark_takes_over() -> None:
    found, because = recommend(points((0.01, 0.02), (1.01, 0.01)), GB)
    assert abs(found - 100 * MB) < MB
    assert because == "Spark is quicker above this size"
    found, because = recommend(points((0.01, 0.02), (10.01, 0.01)), GB)
    assert abs(found - 1000 * MB) < MB
    assert because.endswith("(beyond what was measured)")


@pytest.mark.parametrize(
    ("local", "spark", "because"),
    [
        ((0.01, 0.01), (1.0, 0.02), "DuckDB is quicker at every size"),
        ((1.0, 0.01), (0.5, 0.02), "do not favour Spark"),
        ((0.0, 0.010001), (1.0, 0.01), "Spark is quicker above"),  # but only past what DuckDB's memory allows
    ],
)
def test_duckdb_s_memory_bounds_what_it_gets(
    local: tuple[float, float], spark: tuple[float, float], because: str
) -> None:
    found, text = recommend(points(local, spark), 100 * MB)
    assert found == CEILING * 100 * MB
    assert because in text


def test_spark_that_is_always_quicker_still_leaves_the_smallest() -> None:
    assert recommend(points((1.0, 0.02), (0.5, 0.01)), GB)[0] == FLOOR_BYTES


@pytest.mark.parametrize(
    ("local", "spark", "rows", "because"),
    [
        ((0.0, 2.0), (1.5, 1.0), 1_500_000, "quicker above so many rows"),
        ((0.0, 2.0), (9.0, 1.0), 9_000_000, "(beyond what was measured)"),
        ((0.0, 2.0), (0.001, 1.0), FLOOR_ROWS, "quicker above so many rows"),
        ((0.5, 2.0), (0.0, 1.0), FLOOR_ROWS, "quicker above so many rows"),
        ((0.0, 1.0), (0.5, 1.5), NEVER, "the server builds indexes quicker at every size"),
    ],
)
def test_index_builds_have_a_threshold_of_their_own(
    local: tuple[float, float], spark: tuple[float, float], rows: int, because: str
) -> None:
    """Lines given by seconds at all and seconds per million rows."""
    measured = [IndexPoint(n * 10**6, local[0] + local[1] * n, spark[0] + spark[1] * n) for n in (1, 2, 4)]
    found, text = recommend_index(measured)
    assert abs(found - rows) <= 1
    assert because in text


def made(threshold: int = 123_456_789) -> Calibration:
    return Calibration(threshold, "because", "2026-11-22", "local[*]", 2, (Point(1, 0.5, 1.5),))


def test_it_is_kept_and_found_again(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    store(tmp_path, made())
    assert load(tmp_path) == made()
    whole = replace(made(), index_spark_min_rows=7_000_000, index_points=(IndexPoint(10, 0.5, 1.5),))
    store(tmp_path, whole)
    assert load(tmp_path) == whole


def test_one_from_before_index_builds_were_measured_is_whole(tmp_path: Path) -> None:
    store(tmp_path, made())
    path = tmp_path / FILE
    kept = json.loads(path.read_text())
    del kept["index_spark_min_rows"], kept["index_points"]
    path.write_text(json.dumps(kept))
    assert load(tmp_path) == made()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"points": [], "local_executor_max_bytes": 1}'])
def test_a_file_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError):
        load(tmp_path)


def test_the_server_uses_what_was_measured_and_explain_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ServerProcess(data).stop()
    store(data, replace(made(), index_spark_min_rows=7_654_321))
    server = ServerProcess(data)
    try:
        client = server.connect()
        assert client.run("SHOW index_spark_min_rows").rows == [("7654321",)]
        client.run("CREATE TABLE t (a int)")
        client.run("INSERT INTO t SELECT generate_series(1, 2000)")

        def reason() -> str:
            lines = [row[0] or "" for row in client.run("EXPLAIN SELECT sum(a) FROM t").rows]
            return next(line for line in lines if line.startswith("Reason: "))

        assert reason().endswith(
            "no more than local_executor_max_bytes = 123456789 (measured by holdfast calibrate on 2026-11-22)"
        )
        client.run("SET local_executor_max_bytes = 10")
        assert reason().endswith("more than local_executor_max_bytes = 10 (set), but Spark is not up")
        client.run("RESET local_executor_max_bytes")
        assert "= 123456789 (measured" in reason()
        client.run("SET local_executor_max_bytes = 8589934592")
        assert reason().endswith("= 8589934592 (the default)")
        client.close()
    finally:
        server.stop()


def calibrate(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine", "calibrate", *words], capture_output=True, text=True, check=False,
        timeout=1200, env=os.environ | {"PYTHONPATH": ROOT},
    )  # fmt: skip


def test_without_spark_there_is_nothing_to_measure(tmp_path: Path) -> None:
    done = calibrate("--spark-start", "off", "--data-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "spark_start is off" in done.stderr
    assert calibrate("--rows", "1").returncode == 2
    done = calibrate("--store", "--data-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "start the server once" in done.stderr


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_it_measures_prints_and_stores(tmp_path: Path) -> None:
    ServerProcess(tmp_path).stop()
    done = calibrate("--rows", "16000", "--memory", "2GB", "--data-dir", str(tmp_path), "--store")
    assert done.returncode == 0, done.stderr
    found = load(tmp_path)
    assert found is not None
    assert f"local_executor_max_bytes = {found.local_executor_max_bytes}\n" in done.stdout
    assert [point.bytes for point in found.points] == sorted(point.bytes for point in found.points)
    assert all(point.local_s > 0 and point.spark_s > 0 for point in found.points)
    assert f"index_spark_min_rows = {found.index_spark_min_rows}\n" in done.stdout
    assert [point.rows for point in found.index_points] == [1000, 4000, 16000]
    assert all(point.local_s > 0 and point.spark_s > 0 for point in found.index_points)
