"""Results in files, without a JVM: which windows are made, and what a reader sees while files appear."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.executors.spark.spool import (
    AHEAD_BYTES,
    GROWTH,
    MAX_WINDOW,
    Spool,
    _Window,
    free_broadcasts,
    next_window,
)
from engine.executors.spark.stream import KEPT_BYTES, Collected
from planner.base.errors import SqlError

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])
JSON = '{"type":"struct","fields":[{"name":"a"},{"name":"a"}]}'


@given(
    total=st.integers(1, 5000),
    cores=st.integers(1, 64),
    each=st.lists(st.integers(0, AHEAD_BYTES), min_size=1, max_size=5),
)
def test_windows_cover_every_partition_once_and_stay_bounded(total: int, cores: int, each: list[int]) -> None:
    done = last = size = 0
    windows = 0
    while found := next_window(done, last, size, cores, total):
        assert found <= max(last * GROWTH, cores) or not last
        assert found <= max(MAX_WINDOW, cores)
        if last:  # more than a wave of tasks only if half of the space is likely to hold it
            assert found <= cores or found * max(size // done, 1) <= AHEAD_BYTES // 2
        done, last = done + found, found
        size += found * each[windows % len(each)]
        windows += 1
    assert done == total


def test_the_first_window_is_one_wave() -> None:
    assert next_window(0, 0, 0, 2, 100) == 2
    assert next_window(0, 0, 0, 8, 3) == 3


class Writer:
    """Stands for Spark: partitions appear when the test says so."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.jvm: Any = SimpleNamespace(
            org=SimpleNamespace(
                apache=SimpleNamespace(
                    spark=SimpleNamespace(
                        sql=SimpleNamespace(types=SimpleNamespace(DataType=SimpleNamespace(fromJson=str)))
                    )
                )
            )
        )
        rdd = SimpleNamespace(getNumPartitions=lambda: partitions)
        self.folder = folder / "hf_1"
        self.spool = Spool(self.jvm, None, rdd, JSON, SCHEMA, self.folder)

    def window(self, first: int, end: int) -> _Window:
        made = _Window(self.folder / str(len(self.spool._windows)), first, end)
        self.spool._windows.append(made)
        return made

    def file(self, window: _Window, index: int, rows: int) -> None:
        window.folder.mkdir(parents=True, exist_ok=True)
        table = pa.table({"c0": pa.array(range(rows), pa.int64()), "c1": [f"{index}"] * rows})
        pq.write_table(table, window.folder / f"part-{index:05d}-00-c000.parquet", row_group_size=100)
        (window.folder / f".part-{index:05d}-00-c000.parquet.crc").write_bytes(b"crc")

    def rest(self) -> list[tuple[str, int]]:
        """Read what is there: (partition's text, rows) of each file."""
        out = []
        while (path := self.spool.next_file()) is not None:
            batches = list(self.spool.read(path))
            assert all(batch.schema.names == ["n", "t"] for batch in batches)
            numbers = [n for batch in batches for n in batch.column(0).to_pylist()]
            assert numbers == list(range(len(numbers)))
            out.append((batches[0].column(1)[0].as_py(), len(numbers)))
        return out


def test_partitions_are_read_in_order_whatever_the_order_they_come_in(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 4)
    first = writer.window(0, 3)
    assert writer.rest() == []  # its folder is not there yet
    writer.file(first, 1, 250)
    assert writer.rest() == []
    assert writer.spool.unread_bytes() > 0
    writer.file(first, 0, 1)
    assert writer.rest() == [("0", 1), ("1", 250)]
    assert writer.spool.unread_bytes() == 0
    assert not list(first.folder.iterdir())  # read files are gone, their checksums too
    writer.file(first, 2, 7)
    first.done = True
    second = writer.window(3, 4)
    writer.file(second, 0, 2)
    assert writer.rest() == [("2", 7), ("0", 2)]
    assert writer.spool.at_end


def test_an_empty_partition_is_known_when_its_window_is_done(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 4)
    window = writer.window(0, 4)
    writer.file(window, 2, 5)
    assert writer.rest() == []
    assert not writer.spool.at_end
    window.done = True
    assert writer.rest() == [("2", 5)]
    assert writer.spool.at_end


def test_half_written_files_are_not_seen(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 1)
    window = writer.window(0, 1)
    attempt = window.folder / "_temporary" / "0" / "_temporary" / "attempt_0"
    attempt.mkdir(parents=True)
    (attempt / "part-00000-00-c000.parquet").write_bytes(b"PAR1")
    assert writer.rest() == []
    assert writer.spool.unread_bytes() == 0


def test_discard_leaves_nothing(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 2)
    writer.file(writer.window(0, 2), 1, 5)
    writer.spool.discard()
    assert list(tmp_path.iterdir()) == []


class Session:
    """Stands for a SparkSession whose jobs write the partitions of ``rows`` that have any."""

    def __init__(self, writer: Writer, rows: dict[int, int]) -> None:
        self.writer, self.rows = writer, rows

    def internalCreateDataFrame(self, *_: object) -> Session:
        return self

    def write(self) -> Session:
        return self

    def option(self, *_: object) -> Session:
        return self

    def parquet(self, uri: str) -> None:
        window = self.writer.spool._windows[-1]
        window.folder.mkdir(parents=True)
        for index, rows in self.rows.items():
            self.writer.file(window, index, rows)


def test_a_file_that_was_removed_is_not_an_empty_partition(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 4)
    immutable = {"Range$": SimpleNamespace(MODULE=0)}
    writer.jvm.scala = SimpleNamespace(collection=SimpleNamespace(immutable=SimpleNamespace(**immutable)))
    range_ = SimpleNamespace(apply=lambda first, end: SimpleNamespace(toSet=lambda: range(first, end)))
    setattr(immutable["Range$"], "MODULE$", range_)
    spark = writer.jvm.org.apache.spark
    spark.rdd = SimpleNamespace(PartitionPruningRDD=SimpleNamespace(create=lambda rdd, wanted: rdd))
    writer.spool._session = Session(writer, {0: 5, 2: 7})
    writer.spool.write(4)
    assert writer.spool.complete
    path = writer.spool.next_file()
    assert path is not None
    assert sum(batch.num_rows for batch in writer.spool.read(path)) == 5
    [left] = [p for p in path.parent.iterdir() if p.suffix == ".parquet"]
    for gone in (left.unlink, lambda: path.parent.rename(tmp_path / "elsewhere")):
        gone()
        with pytest.raises(SqlError, match="was removed") as removed:
            writer.spool.next_file()
        assert removed.value.sqlstate == "58030"
    assert not writer.spool.at_end


class Batches:
    """Stands for the JVM's stream."""

    def __init__(self, batches: list[Any], error: Exception | None = None) -> None:
        self.batches, self.error = batches, error

    def next(self) -> Any:
        if self.batches:
            return self.batches.pop(0)
        if self.error is not None:
            raise self.error
        return None


def wide(number: int) -> Any:
    return pa.record_batch(
        [pa.array([number], pa.int64()), pa.array(["x" * (KEPT_BYTES // 3)])], schema=SCHEMA
    )


def test_a_small_result_that_is_large_goes_on_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hf_1.arrow"
    collected = Collected(Batches([wide(n) for n in range(6)]), SCHEMA, path)  # type: ignore[arg-type]
    assert path.stat().st_size > 3 * (KEPT_BYTES // 3)
    found = []
    while (batch := collected.next()) is not None:
        found.append(batch.column(0)[0].as_py())
    assert found == list(range(6))
    collected.discard()
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    batches = Batches([wide(n) for n in range(4)], EOFError("gone"))
    with pytest.raises(EOFError):
        Collected(batches, SCHEMA, tmp_path / "hf_1.arrow")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


class Plan:
    """A node of a physical plan, as far as ``free_broadcasts`` looks at it."""

    def __init__(self, kind: str, *inner: Plan, done: bool = True) -> None:
        self.kind, self.inner, self.done, self.destroyed = kind, inner, done, 0

    def getClass(self) -> Plan:
        return self

    def getSimpleName(self) -> str:
        return self.kind

    def isMaterialized(self) -> bool:
        return self.done

    def executedPlan(self) -> Plan:
        return self.inner[0]

    plan = executedPlan

    def queryExecution(self) -> Plan:
        return self

    def collectLeaves(self) -> list[Plan]:
        return list(self.inner)

    def relationFuture(self) -> Plan:
        assert self.done, "asking would begin it"
        return self

    def get(self) -> Plan:
        return self

    def destroy(self) -> None:
        self.destroyed += 1


def test_broadcast_tables_of_all_stages_are_freed_once() -> None:
    first, second = Plan("BroadcastExchangeExec"), Plan("BroadcastExchangeExec", Plan("FileSourceScanExec"))
    never = Plan("BroadcastExchangeExec", done=False)
    shuffle = Plan(
        "ShuffleQueryStageExec", Plan("ShuffleExchangeExec", Plan("BroadcastQueryStageExec", first))
    )
    top = Plan(
        "ProjectExec",
        shuffle,
        Plan("BroadcastQueryStageExec", second),
        Plan("BroadcastQueryStageExec", Plan("ReusedExchangeExec", first)),
        Plan("BroadcastQueryStageExec", never, done=False),
        Plan("FileSourceScanExec"),
    )
    jvm: Any = SimpleNamespace()
    jvm.scala = jvm.jdk = jvm.javaapi = jvm.CollectionConverters = jvm
    jvm.asJava = list
    free_broadcasts(jvm, Plan("QueryExecution", Plan("AdaptiveSparkPlanExec", top)))
    assert (first.destroyed, second.destroyed, never.destroyed) == (1, 1, 0)
