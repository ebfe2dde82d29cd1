"""COPY TO files on the server: one file by the server, or a directory of files by Spark's executors.

    query ──route──┬─ Spark ──> executors: path.<random>/part-00000.csv ... ──rename──> path/
                   └─ else ──> server: one file, or (path ends in /) a directory with one file

What is written comes into being under its name at once and whole, or not at all. A file replaces one of the same name, as in
PostgreSQL; a directory never does (58P02). Text and CSV files of a directory have their own headers each, so that COPY FROM the
directory, with the same options, reads the rows back.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import pyarrow as pa

from engine.bulk.server_files import file_error, target
from engine.bulk.write_rows import Sheet, Sink, write_file
from engine.connection.portal import RowReader
from engine.writes.progress import CopyProgress
from pgwire.codecs.errors import DataError
from planner.errors import SqlError

Written = tuple[str, int, int]
"""A file that an executor wrote: its name, rows, bytes."""


async def write_here(
    name: str,
    roots: Sequence[str],
    sheet: Sheet,
    reader: RowReader,
    progress: CopyProgress,
    session: Any,
) -> int:
    """Write a result in this process; return the number of rows. Raises SqlError as ``file_error``, and 58P02."""
    if name.endswith("/"):
        async with new_directory(name, roots) as folder:
            path = os.path.join(folder, f"part-00000{sheet.suffix}")
            with await _opened(name, lambda: open(path, "xb", buffering=1 << 20)) as file:
                return await _fill(file, sheet, reader, progress, session)
    path = await asyncio.to_thread(target, name, roots)
    if await asyncio.to_thread(_is_odd, path):
        with await _opened(name, lambda: open(path, "wb")) as file:
            return await _fill(file, sheet, reader, progress, session)
    folder, base = os.path.split(path)
    temporary = os.path.join(folder, f".{base}.{secrets.token_hex(8)}")
    try:
        with await _opened(name, lambda: open(temporary, "xb", buffering=1 << 20)) as file:
            count = await _fill(file, sheet, reader, progress, session)
        await asyncio.to_thread(os.replace, temporary, path)
    except OSError as error:
        raise file_error(error, name, "writing") from None
    finally:
        await asyncio.to_thread(_unlink, temporary)
    return count


def _is_odd(path: str) -> bool:
    """Return whether a path names what cannot be replaced: a directory, a device, a pipe."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _unlink(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)


async def _opened(name: str, work: Callable[[], Any]) -> Any:
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise file_error(error, name, "writing") from None


async def _fill(file: BinaryIO, sheet: Sheet, reader: RowReader, progress: CopyProgress, session: Any) -> int:
    try:
        sink = Sink(file, sheet, session)
        async for batch in reader.take(0):
            await asyncio.to_thread(sink.write, batch.rows, batch.arrow)
            progress.tuples = sink.rows
            progress.bytes = file.tell() if file.seekable() else progress.bytes
        sink.close()
        await asyncio.to_thread(_sync, file)
    except OSError as error:
        raise SqlError(
            "53100" if error.errno == 28 else "58030", f"could not write to COPY file: {error.strerror}"
        ) from None
    return sink.rows


def _sync(file: BinaryIO) -> None:
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fsync(file.fileno())


@asynccontextmanager
async def new_directory(name: str, roots: Sequence[str]) -> AsyncIterator[str]:
    """Make a directory to be filled, which gets its name in the end, or is removed.

    Raises SqlError 58P02 if there is something of that name, 42501, and others of ``file_error``.
    """
    path = await asyncio.to_thread(target, name.rstrip("/") or "/", roots)
    if os.path.lexists(path):
        raise _exists(name)
    folder, base = os.path.split(path)
    temporary = os.path.join(folder, f".{base}.{secrets.token_hex(8)}")
    try:
        await asyncio.to_thread(os.mkdir, temporary)
        yield temporary
        if os.path.lexists(path):
            raise _exists(name)
        await asyncio.to_thread(os.rename, temporary, path)
    except OSError as error:
        raise file_error(error, name, "writing") from None
    finally:
        await asyncio.to_thread(_remove, temporary)


def _remove(folder: str) -> None:
    """Remove a directory that tasks may still be writing to: under another name first, where they make no new file."""
    if os.path.lexists(folder):
        os.rename(folder, folder + ".gone")
        shutil.rmtree(folder + ".gone", ignore_errors=True)


def _exists(name: str) -> SqlError:
    return SqlError(
        "58P02", f'"{name}" already exists', hint="COPY TO a directory writes a new one; it replaces nothing."
    )


class ExportTask:
    """The function of every task of an export: called with a partition's number and its batches as bytes."""

    def __init__(self, folder: str, sheet: Sheet, schema: Any, wanted: Sequence[Any]) -> None:
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
            rows, size = write_file(os.path.join(self._folder, name), self._sheet, self._read(payloads))
        except DataError as error:
            yield "failed", (error.sqlstate, error.message, error.detail)
            return
        except OSError as error:
            yield "failed", ("58030", f"could not write to COPY file: {error.strerror}", None)
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


def adopt(folder: str, sheet: Sheet, answers: Iterable[tuple[str, Any]]) -> tuple[int, int]:
    """Keep the files that tasks have reported, under their last names; return their rows and bytes. Blocks.

    Files of attempts that did not count are deleted, and files without rows, but for one.

    Raises SqlError for a task that failed.
    """
    rows = size = 0
    written: list[Written] = []
    for kind, content in answers:
        if kind == "failed":
            sqlstate, message, detail = content
            raise SqlError(sqlstate, message, detail=detail)
        written.append(content)
    kept = [one for one in written if one[1]] or written[:1]
    names = {name for name, _rows, _size in kept}
    for entry in os.listdir(folder):
        if entry not in names:
            os.unlink(os.path.join(folder, entry))
    for number, (name, count, length) in enumerate(kept):
        os.rename(os.path.join(folder, name), os.path.join(folder, f"part-{number:05}{sheet.suffix}"))
        rows += count
        size += length
    return rows, size
