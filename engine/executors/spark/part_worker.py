"""What a Python worker of a Spark executor does in a bulk load: a partition's Arrow batches become parts.

    partition of the query's result ──Arrow batches──► PartTask ──► txn.persist.parts.job ──► answers, a few bytes each

This module runs in the workers: it imports PySpark only there, and nothing of the server. An error that a
client is to see is an answer as well, because Spark would repeat the task and then report a stack.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from txn.base.errors import NullInColumn, OutOfSpace
from txn.persist.parts.job import PartJob, WrittenPart, write_parts
from txn.values.columns import as_stored

_PART, _NULL, _FULL, _IDS = b"p", b"n", b"f", b"i"


@dataclass(frozen=True, slots=True)
class Target:
    """A column of the table's parts: its name and Arrow type, and which column of the rows goes there (None: NULL)."""

    name: str
    type: Any
    source: int | None


def table_batch(batch: Any, targets: Sequence[Target]) -> Any:
    """Return a batch of rows as one of the table's columns."""
    arrays = []
    for target in targets:
        if target.source is None:
            arrays.append(pa.nulls(batch.num_rows, target.type))
            continue
        arrays.append(as_stored(batch.column(target.source), target.type))
    return pa.RecordBatch.from_arrays(arrays, names=[target.name for target in targets])


class PartTask:
    """The function of every task of a job: called with a partition's number and its batches as bytes."""

    def __init__(
        self, job: PartJob, schema: Any, targets: Sequence[Target], tasks: int, ids: int | None = None
    ) -> None:
        """``schema``: of the batches. ``tasks``: how many partitions there are.

        ``ids``: the column, of int64 without NULLs, whose values the server wants as well: rows that these replace.
        """
        self._ids = ids
        self._job = job
        self._schema = schema
        self._targets = tuple(targets)
        self._tasks = tasks

    def __call__(self, index: int, payloads: Iterable[Any]) -> Iterator[bytes]:
        """Write the partition; yield an answer for each part, and one for what went wrong."""
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        found: list[bytes] = []
        batches = (self._read(bytes(payload), found) for payload in payloads)
        try:
            for part in write_parts(self._job, index, self._tasks, str(attempt), batches):
                yield _PART + part.encode()
            if found:
                yield _IDS + b"".join(found)
        except NullInColumn as error:
            yield _NULL + msgspec.msgpack.encode((error.attnum, error.row))
        except OutOfSpace as error:
            yield _FULL + str(error).encode()

    def _read(self, payload: bytes, found: list[bytes]) -> Any:
        batch = pa.ipc.read_record_batch(pa.py_buffer(payload), self._schema)
        if self._ids is not None:
            found.append(array("q", batch.column(self._ids).to_pylist()).tobytes())
        return table_batch(batch, self._targets)


@dataclass(frozen=True, slots=True)
class Written:
    """What the tasks of a job have written, and the row ids that they were asked for."""

    parts: list[WrittenPart]
    row_ids: array[int]


def read_answers(answers: Iterable[bytes]) -> Written:
    """Return what the tasks have done.

    Raises:
        NullInColumn, OutOfSpace: the first that a task has reported.
    """
    parts: list[WrittenPart] = []
    row_ids = array("q")
    for answer in answers:
        kind, content = answer[:1], answer[1:]
        if kind == _NULL:
            attnum, row = msgspec.msgpack.decode(content, type=tuple[int, bytes])
            raise NullInColumn(attnum, row)
        if kind == _FULL:
            raise OutOfSpace(content.decode())
        if kind == _IDS:
            row_ids.frombytes(content)
        else:
            parts.append(WrittenPart.decode(content))
    return Written(parts, row_ids)
