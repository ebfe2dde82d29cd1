"""A Spark query whose rows become parts of a table without passing through the server.

DataFrame ─ by ranges of the primary key, sorted ─► Arrow batches ─► Python workers (``part_worker``) ─► parts
            (tables without one: as they come)                            └── names and sizes ──► server
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.executors.spark.part_worker import PartTask, Target, Written, read_answers
from engine.executors.spark.workers import prepare_workers
from txn.persist.parts.job import PartJob
from txn.values.columns import is_near


class OtherForm(Exception):
    """The query's columns are not held as the table's: its rows have to go through values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """How rows of a query go to a table.

    ``targets``: what goes to which column. ``key``: names of the targets that parts are sorted by; the rows
    are divided by ranges of it. Empty: as they come. ``ids``: the column with the row ids of what they
    replace; ``repeated``: an id may be there several times, and any one row of it counts.
    """

    targets: Sequence[Target]
    key: Sequence[str] = ()
    ids: int | None = None
    repeated: bool = False


def write_frame(context: Any, frame: Any, schema: Any, job: PartJob, rows: Rows) -> Written:
    """Run a query and have its rows written as parts. Blocks; the thread's job tags are on all its jobs.

    Args:
        context: the SparkContext.
        frame: the query, a Java Dataset.
        schema: its columns as Arrow has them.
        job: which table, and where to; of ``Transaction.bulk_insert_parts``.
        rows: what of it goes where.

    Raises:
        OtherForm: a column is held in another form; nothing was run.
        NullInColumn, OutOfSpace: see ``part_job.write_parts``.
        Exception: what the JVM raised.
    """
    for target in rows.targets:
        if target.source is not None and not is_near(schema.field(target.source).type, target.type):
            raise OtherForm(f"{target.name} is {schema.field(target.source).type}")
    from pyspark.core.rdd import RDD
    from pyspark.serializers import NoOpSerializer

    prepare_workers(context)
    batches = _divided(context, frame, rows).toArrowBatchRdd().toJavaRDD()
    task = PartTask(job, schema, rows.targets, batches.partitions().size(), rows.ids)
    answers = RDD(batches, context, NoOpSerializer()).mapPartitionsWithIndex(task).collect()
    return read_answers(answers)


def _divided(context: Any, frame: Any, rows: Rows) -> Any:
    """Return the frame by ranges of the key, sorted by it."""
    source = {target.name: target.source for target in rows.targets}
    positions = [at for name in rows.key if (at := source[name]) is not None]
    if not positions and not rows.repeated:
        return frame
    # by position: a query may have several columns of one name
    names = [f"v{i}" for i in range(len(frame.columns()))]
    frame = frame.toDF(_sequence(context, names))
    if rows.ids is not None and rows.repeated:
        frame = frame.dropDuplicates(_strings(context, [names[rows.ids]]))
    if positions:
        columns = _sequence(context, [frame.col(names[i]) for i in positions])
        frame = frame.repartitionByRange(columns).sortWithinPartitions(columns)
    return frame


def _sequence(context: Any, items: Sequence[Any]) -> Any:
    """Return a Scala Seq."""
    return context._jvm.PythonUtils.toSeq(list(items))


def _strings(context: Any, items: Sequence[str]) -> Any:
    """Return a Java array of strings."""
    made = context._gateway.new_array(context._jvm.java.lang.String, len(items))
    for i, item in enumerate(items):
        made[i] = item
    return made
