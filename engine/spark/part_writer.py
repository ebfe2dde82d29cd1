"""A Spark query whose rows become parts of a table without passing through the server.

DataFrame ─ by ranges of the primary key, sorted ─► Arrow batches ─► Python workers (``part_worker``) ─► parts
            (tables without one: as they come)                            └── names and sizes ──► server
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.spark.part_worker import PartTask, Target, read_answers
from engine.spark.workers import prepare_workers
from txn.columns import is_near
from txn.persist.part_job import PartJob, WrittenPart


class OtherForm(Exception):
    """The query's columns are not held as the table's: its rows have to go through values."""


def write_frame(
    context: Any, frame: Any, schema: Any, job: PartJob, targets: Sequence[Target], key: Sequence[str]
) -> list[WrittenPart]:
    """Run a query and have its rows written as parts. Blocks; the thread's job tags are on all its jobs.

    Args:
        context: the SparkContext.
        frame: the query, a Java Dataset.
        schema: its columns as Arrow has them.
        job: which table, and where to; of ``Transaction.bulk_insert_parts``.
        targets: what goes to which column.
        key: names of the targets that parts are sorted by; the rows are divided by ranges of it. Empty: as they come.

    Raises:
        OtherForm: a column is held in another form; nothing was run.
        NullInColumn, OutOfSpace: see ``part_job.write_parts``.
        Exception: what the JVM raised.
    """
    for target in targets:
        if target.source is not None and not is_near(schema.field(target.source).type, target.type):
            raise OtherForm(f"{target.name} is {schema.field(target.source).type}")
    from pyspark.core.rdd import RDD
    from pyspark.serializers import NoOpSerializer

    prepare_workers(context)
    batches = _divided(context, frame, targets, key).toArrowBatchRdd().toJavaRDD()
    task = PartTask(job, schema, targets, batches.partitions().size())
    answers = RDD(batches, context, NoOpSerializer()).mapPartitionsWithIndex(task).collect()
    return read_answers(answers)


def _divided(context: Any, frame: Any, targets: Sequence[Target], key: Sequence[str]) -> Any:
    """Return the frame by ranges of the key, sorted by it."""
    source = {target.name: target.source for target in targets}
    positions = [at for name in key if (at := source[name]) is not None]
    if not positions:
        return frame
    # by position: a query may have several columns of one name
    names = [f"v{i}" for i in range(len(frame.columns()))]
    renamed = frame.toDF(_sequence(context, names))
    columns = _sequence(context, [renamed.col(names[i]) for i in positions])
    return renamed.repartitionByRange(columns).sortWithinPartitions(columns)


def _sequence(context: Any, items: Sequence[Any]) -> Any:
    """Return a Scala Seq."""
    return context._jvm.PythonUtils.toSeq(list(items))
