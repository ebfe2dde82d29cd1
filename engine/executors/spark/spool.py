"""A result that Spark's tasks write to files, and the server reads in order.

    last stage      p0 p1 p2 p3  |  p4 ... p11  |  p12 ...          partitions, in windows of growing size
                        v              v
    a job each       window 0       window 1                        computed in parallel, ahead of the client
                        v              v
    spool/hf_7/0/part-00000*.parquet ...                        appear whole: a task renames its file when it is done
                        v
    reader          p0, p1, p2, ... row group by row group      each file deleted when it has been read

Neither the JVM nor the server ever holds a partition: a task keeps one row group (``GROUP_BYTES``), the
reader another. The next window begins while less than ``AHEAD_BYTES`` lie unread, so a client that does not
read stops the query between two windows, with no job running. Nothing is computed twice: windows are slices
of one RDD, whose earlier stages ran once.

Functions of the class block, and run in threads; ``next_window`` is pure. The folder has to be one that
Spark's executors and the server share.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.base.spark_properties import BATCH_ROWS
from planner.base.errors import SqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP_BYTES: Final = 8 << 20
AHEAD_BYTES: Final = 256 << 20
DIRECT_BYTES: Final = 4 << 20
"""What is estimated to be no more is not worth files: it comes straight from the JVM."""
GROWTH: Final = 4
MAX_WINDOW: Final = 4096  # partitions
_OPTIONS: Final = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    "parquet.block.size": str(GROUP_BYTES),
    "parquet.page.size": str(1 << 20),
    # A task that commits renames its file into the window's folder then, not when the whole job is done.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "parquet.column.statistics.enabled": "false",
    "maxRecordsPerFile": "0",  # one file per partition: the reader knows by its name that a partition is whole
}
_PART = re.compile(r"part-(\d{5,})-.*\.parquet\Z")


def next_window(done: int, last: int, done_bytes: int, cores: int, total: int) -> int:
    """Return how many partitions the next window has: 0 when all are done.

    Args:
        done: partitions written.
        last: of them in the last window; 0 before the first.
        done_bytes: what the written ones took.
        cores: tasks that run at once.
        total: partitions of the result.

    The first window is one wave of tasks, so that rows leave soon. Later ones grow to what half of ``AHEAD_BYTES`` is
    likely to hold, because each costs a job, but no faster than ``GROWTH`` times.
    """
    left = total - done
    if not last:
        return min(left, max(cores, 1))
    each = max(done_bytes // done, 1)
    fitting = AHEAD_BYTES // 2 // each
    return min(left, max(min(fitting, last * GROWTH, MAX_WINDOW), cores, 1))


@dataclass(slots=True)
class _Window:
    """Partitions ``first`` .. ``end - 1``, written to ``folder``.

    ``done``: the job has ended well. ``read``: bytes of files that were read and deleted. ``there``: what had
    files when it was done, counted from ``first``: one that is missing later has been taken away, it was not
    empty.
    """

    folder: Path
    first: int
    end: int
    done: bool = False
    read: int = 0
    there: frozenset[int] = frozenset()


def file_of(folder: Path, index: int) -> Path | None:
    """Return the committed file of a window's ``index``-th partition, None if there is none (yet, or it is empty)."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return None
    return next((folder / name for name in names if list(_indexes([name])) == [index]), None)


def _indexes(names: Iterable[str]) -> Iterator[int]:
    """Yield the partition of each file of a window, counted from its first."""
    for name in names:
        match = _PART.match(name)
        if match is not None:
            yield int(match.group(1))


class Spool:
    """One result. ``write`` is called for one window after the other, in one thread; the reader's methods in
    another.
    """

    def __init__(
        self, jvm: Any, session: SparkSession, rdd: Any, schema_json: str, schema: Any, folder: Path
    ) -> None:
        """Note what to write.

        Args:
            jvm: py4j's view of the JVM.
            session: a Java SparkSession.
            rdd: the result as RDD of Spark's rows, the stages before the last one done.
            schema_json: the result's schema as Spark prints it.
            schema: the same in Arrow's types; names do not matter.
            folder: for this result alone; made by Spark, removed by ``discard``.
        """
        self._jvm = jvm
        self._session = session
        self._rdd = rdd
        self._schema = schema
        self._folder = folder
        fields = json.loads(schema_json)
        for number, field in enumerate(fields["fields"]):
            field["name"] = f"c{number}"  # a result may have two columns of one name, a file may not
        self._row_type = jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(fields))
        self.partitions = int(rdd.getNumPartitions())
        self._windows: list[_Window] = []
        self._next = 0  # the partition to read next
        self._written = 0  # partitions of windows that are done
        self._bytes = 0  # that those took

    # -- writing -------------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether every partition has been written."""
        return self._written >= self.partitions

    def unread_bytes(self) -> int:
        """Return how much lies there unread; looks at the files."""
        return sum(
            _size(path) for each in self._windows if each.end > self._next for path in _files(each.folder)
        )

    def write(self, cores: int) -> None:
        """Write the next window with ``cores`` tasks at once; blocks until its job has ended.

        Raises:
            Exception: what the JVM raised.
            SqlError: 58030 if the executors do not write where the server reads.
        """
        last = self._windows[-1].end - self._windows[-1].first if self._windows else 0
        first = self._written
        end = first + next_window(first, last, self._bytes, cores, self.partitions)
        window = _Window(self._folder / str(len(self._windows)), first, end)
        self._windows.append(window)
        immutable = self._jvm.scala.collection.immutable
        # A set of numbers is a function that says whether a number is in it.
        wanted = getattr(getattr(immutable, "Range$"), "MODULE$").apply(first, end).toSet()
        rdd = self._jvm.org.apache.spark.rdd.PartitionPruningRDD.create(self._rdd, wanted)
        writer = self._session.internalCreateDataFrame(rdd, self._row_type, False).write()
        for name, value in _OPTIONS.items():
            writer = writer.option(name, value)
        writer.parquet(window.folder.as_uri())
        if not window.folder.is_dir():
            raise SqlError(
                "58030",
                f'Spark\'s executors do not write where the server reads: there is no "{window.folder}"',
                hint="That folder has to be shared by all machines of the cluster.",
            )
        self._bytes += window.read + sum(_size(path) for path in _files(window.folder))
        self._written = end
        window.there = frozenset(_indexes(os.listdir(window.folder)))
        window.done = True

    # -- reading -------------------------------------------------------------------------------------

    def next_file(self) -> Path | None:
        """Return the file of the next partition that has rows once it is there, None while it is not.

        Empty partitions have no file, which is known when their window is done; ``at_end`` tells the end.

        Raises:
            SqlError: 58030 if somebody has removed a file.
        """
        while self._next < self.partitions:
            window = self._window(self._next)
            if window is None:
                return None
            done = window.done  # asked before looking: what is not there then will not come
            found = file_of(window.folder, self._next - window.first)
            if found is not None:
                return found
            if not done:
                return None
            if self._next - window.first in window.there:
                raise SqlError(
                    "58030",
                    f'a file of a result of Spark was removed from "{window.folder}" before it was read',
                )
            self._next += 1
        return None

    def _window(self, partition: int) -> _Window | None:
        return next((each for each in self._windows if each.first <= partition < each.end), None)

    @property
    def position(self) -> int:
        """The partition that is read, or comes next."""
        return self._next

    @property
    def at_end(self) -> bool:
        """Whether every partition has been read, or passed as empty."""
        return self._next >= self.partitions

    def read(self, path: Path) -> Iterator[Any]:
        """Yield the batches of a file returned by ``next_file``, then delete it and go on to the next partition.

        Batches have at most ``BATCH_ROWS`` rows; those of one row group share memory of about ``GROUP_BYTES``.
        """
        size = _size(path)
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                table = self._typed(file.read_row_group(group, use_threads=False))
                yield from table.to_batches(max_chunksize=BATCH_ROWS)
        for leaving in (path, path.with_name(f".{path.name}.crc")):
            leaving.unlink(missing_ok=True)
        window = self._window(self._next)
        if window is None:
            raise AssertionError("the spool has no window where rows were counted")
        window.read += size
        self._next += 1

    def _typed(self, table: Any) -> Any:
        if not self._schema:  # no column: the rows alone count
            return table
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(table.columns, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, names=self._schema.names)

    def discard(self) -> None:
        """Delete what is left; nothing may be written any more."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _files(folder: Path) -> list[Path]:
    """Return the committed files of a window."""
    try:
        return [folder / name for name in os.listdir(folder) if _PART.match(name)]
    except FileNotFoundError:  # its job has not begun
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def estimated_bytes(frame: Any) -> int:
    """Return Spark's estimate of a result's size, an upper bound but for rows that functions make."""
    return int(frame.queryExecution().optimizedPlan().stats().sizeInBytes())


def measured_bytes(jvm: Any, frame: Any) -> int | None:
    """Return how much the stages before the last one gave it, once they have run; None where it reads files itself."""
    plan = frame.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() != "AdaptiveSparkPlanExec":
        return None
    total = 0
    for leaf in jvm.scala.jdk.javaapi.CollectionConverters.asJava(plan.executedPlan().collectLeaves()):
        if leaf.getClass().getSimpleName() != "ShuffleQueryStageExec":
            return None
        total += int(leaf.getRuntimeStatistics().sizeInBytes())
    return total


def free_broadcasts(jvm: Any, frame: Any) -> None:
    """Give back the memory of tables that a query which has ended had broadcast.

    Spark frees them once its collector finds nobody knows them any more, which in a small heap is when the next query's
    tables have found no room.
    """
    todo = [frame.queryExecution().executedPlan()]
    while todo:
        plan = todo.pop()
        kind = plan.getClass().getSimpleName()
        if kind == "AdaptiveSparkPlanExec":
            todo.append(plan.executedPlan())
        elif kind.endswith("QueryStageExec"):
            inner = plan.plan()
            if kind == "BroadcastQueryStageExec" and plan.isMaterialized() and _is_broadcast(inner):
                inner.relationFuture().get().destroy()
            todo.append(inner)
        else:
            leaves = jvm.scala.jdk.javaapi.CollectionConverters.asJava(plan.collectLeaves())
            todo += [leaf for leaf in leaves if leaf.getClass().getSimpleName().endswith("QueryStageExec")]


def _is_broadcast(plan: Any) -> bool:
    return bool(plan.getClass().getSimpleName() == "BroadcastExchangeExec")  # and not another one used again
