"""What one task of a COPY TO does on an executor of Spark: a partition of the result becomes one file of a folder.

partition ──Arrow batches──► ExportTask ──► folder/part-<partition>-<attempt>.csv        Answer: its name, or the error
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from engine.base.stored_objects import words_of
from engine.base.troubles import file_state
from engine.changes.bulk.copy_out_files import Written
from engine.changes.bulk.write_rows import Sheet
from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError


class Folder(Protocol):
    """Where tasks write: a directory that they share with the server, or a folder of a store."""

    def write(self, name: str, sheet: Sheet, batches: Iterable[Any]) -> tuple[int, int]:
        """Write a file of batches; return how many rows and bytes it has. Raises OSError, DataError."""

    def adopt(self, written: Sequence[Written], suffix: str) -> tuple[int, int]:
        """Keep these files and no others; return their rows and bytes. Raises OSError."""


class ExportTask:
    """The function of every task of an export: called with a partition's number and its batches as bytes."""

    def __init__(self, folder: Folder, sheet: Sheet, schema: Any, wanted: Sequence[Any]) -> None:
        """``schema``: of the batches. ``wanted``: the types that columns must have where Spark's differ, else None."""
        self._folder = folder
        self._sheet = sheet
        self._schema = schema
        self._wanted = tuple(wanted)

    def __call__(self, index: int, payloads: Iterable[Any]) -> Iterator[tuple[str, Any]]:
        """Write one file; yield ("written", ...) or ("failed", what the client is to be told)."""
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        name = f"part-{index:05}-{attempt}{self._sheet.suffix}"
        try:
            rows, size = self._folder.write(name, self._sheet, self._read(payloads))
        except DataError as error:
            yield "failed", (error.sqlstate, error.message, error.detail)
            return
        except OSError as error:
            state, words = (file_state(error), error.strerror) if error.errno is not None else words_of(error)
            yield "failed", (state, f"could not write to COPY file: {words}", None)
            return
        yield "written", (name, rows, size)

    def _read(self, payloads: Iterable[Any]) -> Iterator[Any]:
        for payload in payloads:
            batch = pa.ipc.read_record_batch(pa.py_buffer(bytes(payload)), self._schema)
            columns = [
                column if wanted is None else column.cast(wanted)
                for column, wanted in zip(batch.columns, self._wanted, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def adopt(folder: Folder, sheet: Sheet, answers: Iterable[tuple[str, Any]]) -> tuple[int, int]:
    """Keep the files that tasks have reported, in the order of the tasks; return their rows and bytes. Blocks.

    Raises SqlError for a task that failed.
    """
    written: list[Written] = []
    for kind, content in answers:
        if kind == "failed":
            sqlstate, message, detail = content
            raise SqlError(sqlstate, message, detail=detail)
        written.append(content)
    return folder.adopt(written, sheet.suffix)
