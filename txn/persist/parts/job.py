"""Parts written by processes elsewhere: what a server tells its workers, what they do, what they tell it.

    server                       worker: one task of the job                      server
    PartJob  ──pickled──►  batches ─► tables of at most part_rows ─► write_part  ──WrittenPart──►  adopts, or deletes

The workers use the very code that the server uses (``persist.part_write``), under a grant of the blob store
that ends with the job: a task that lives on, or a second attempt of it, cannot add files to what the server
has adopted or swept. Names carry the epoch, the job, the task and the worker, so attempts never meet.

Row ids need no agreement: the n-th part of task i has those from ``first + (n * tasks + i) * part_rows`` on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from txn.base.errors import NullInColumn
from txn.base.types import PartRef
from txn.persist.location import BlobGrant, in_thread
from txn.persist.parts.write import sort_table, write_part
from txn.values.columns import table_schema
from txn.values.encoding import decode_spec
from txn.values.exact import concatenated, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PartJob:
    """What workers need to know. Can be pickled if the grant can.

    ``prefix``: of the parts' names. ``spec``: the shard's, encoded. ``first_row_id``: from there on nobody
    else takes ids while the job runs. ``part_rows``, ``part_bytes``: bounds of one part. ``not_null``:
    attnums without NULLs.
    """

    prefix: str
    grant: BlobGrant
    spec: bytes
    first_row_id: int
    part_rows: int
    part_bytes: int
    not_null: tuple[int, ...] = ()

    def requiring(self, not_null: Iterable[int]) -> PartJob:
        """Return the job with columns in which no NULL may be."""
        return replace(self, not_null=tuple(not_null))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPart:
    """A part that is durable under its name. ``next_row_id``: above all row ids of the part."""

    ref: PartRef
    next_row_id: int

    def encode(self) -> bytes:
        """Return it as bytes."""
        return msgspec.msgpack.encode(self)

    @staticmethod
    def decode(data: bytes) -> WrittenPart:
        """Return what ``encode`` made into bytes."""
        return msgspec.msgpack.decode(data, type=WrittenPart)


def write_parts(
    job: PartJob, task: int, tasks: int, worker: str, batches: Iterable[Any]
) -> Iterator[WrittenPart]:
    """Write a task's batches as parts; each is durable when it is yielded. Blocks; for a process of its own.

    Args:
        job: as the server made it. task: the number of this task, 0 .. tasks - 1. tasks: how many the job
        has. worker: nobody else's name within the job (``[0-9a-z-]+``). batches: pyarrow.RecordBatches with
        the columns of ``txn.values.columns.table_schema`` but ``s_row_id`` and ``s_begin``.

    Raises:
        NullInColumn: for the first row with a NULL that may not be.
        OutOfSpace, Indeterminate: the store failed, or the grant has ended.
    """
    spec = decode_spec(job.spec)
    blob = job.grant.open(f"{task}-{worker}")
    schema = table_schema(spec.columns)
    for number, rows in enumerate(_pieces(job, batches)):
        count = rows.num_rows
        first = job.first_row_id + (number * tasks + task) * job.part_rows
        ones = pa.repeat(pa.scalar(1, pa.int64()), count)
        row_ids = pc.cumulative_sum(ones, start=pa.scalar(first - 1, pa.int64()))
        begins = pa.repeat(pa.scalar(0, pa.int64()), count)
        # Sorted first, so that ids rise with the position: they take no room then.
        ordered = sort_table(_with(rows, row_ids, begins, schema), spec)
        ordered = ordered.set_column(
            ordered.column_names.index("s_row_id"), schema.field("s_row_id"), row_ids
        )
        name = f"{job.prefix}-{task}-{worker}-{number}"
        ref = asyncio.run(write_part(blob, in_thread, name, spec, ordered, sort=False))
        yield WrittenPart(ref=ref, next_row_id=first + count)


def _with(rows: Any, row_ids: Any, begins: Any, schema: Any) -> Any:
    columns = [rows.column(name) for name in schema.names[:-2]]
    return table_of([*columns, row_ids, begins], schema)


def _pieces(job: PartJob, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of what makes one part each."""
    gathered: list[Any] = []
    rows = size = 0
    for batch in batches:
        _check_nulls(job, batch)
        at = 0
        while at < batch.num_rows:
            piece = batch.slice(at, job.part_rows - rows)
            gathered.append(piece)
            at += piece.num_rows
            rows += piece.num_rows
            size += piece.nbytes
            if rows >= job.part_rows or size >= job.part_bytes:
                yield _together(gathered)
                gathered, rows, size = [], 0, 0
    if gathered:
        yield _together(gathered)


def _together(batches: Iterable[Any]) -> Any:
    return concatenated([pa.Table.from_batches([batch]) for batch in batches])


def _check_nulls(job: PartJob, batch: Any) -> None:
    for attnum in job.not_null:
        column = batch.column(f"c{attnum}")
        if column.null_count:
            at = pc.index(column.is_null(), pa.scalar(True)).as_py()
            raise NullInColumn(attnum, _one_row(batch.slice(at, 1)))


def _one_row(batch: Any) -> bytes:
    """Return a row as an Arrow stream, which crosses to another process with its types."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
