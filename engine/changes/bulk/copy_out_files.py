"""COPY TO files on the server: one file by the server, or a directory of files by Spark's executors.

    query ──route──┬─ Spark ──> executors: path.<random>/part-00000.csv ... ──rename──> path/
                   └─ else ──> server: one file, or (path ends in /) a directory with one file

What is written comes into being under its name at once and whole, or not at all. A file replaces one of the
same name, as in PostgreSQL; a directory never does (58P02). Text and CSV files of a directory have their own
headers each, so that COPY FROM the directory, with the same options, reads the rows back. Objects of a store:
``engine.changes.bulk.copy_out_objects``.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from engine.base.pieces import cut
from engine.base.regular_files import NotRegularFile
from engine.base.server_files import Roots, exists_error, file_error, target
from engine.base.troubles import file_state
from engine.changes.bulk.write_rows import Sheet, Sink, write_file
from engine.session.portal import RowReader
from engine.session.progress import CopyProgress
from pgwire.codecs.sizes import measure_of
from planner.base.errors import SqlError
from planner.functions.session import EvalSession

Written = tuple[str, int, int]
"""A file that an executor wrote: its name, rows, bytes."""


async def write_here(
    name: str,
    roots: Roots,
    sheet: Sheet,
    reader: RowReader,
    progress: CopyProgress,
    session: EvalSession,
) -> int:
    """Write a result in this process; return the number of rows. Raises SqlError as ``file_error``, and 58P02."""
    if name.endswith("/"):
        async with new_directory(name, roots) as folder:
            path = os.path.join(folder, f"part-00000{sheet.suffix}")
            with await _opened(name, lambda: open(path, "xb", buffering=1 << 20)) as file:
                return await fill(file, sheet, reader, progress, session)
    path = await asyncio.to_thread(target, name, roots)
    await _opened(name, partial(_check_replaceable, path))
    folder, base = os.path.split(path)
    temporary = os.path.join(folder, f".{base}.{secrets.token_hex(8)}")
    try:
        with await _opened(name, lambda: open(temporary, "xb", buffering=1 << 20)) as file:
            count = await fill(file, sheet, reader, progress, session)
        await asyncio.to_thread(os.replace, temporary, path)
    except OSError as error:
        raise file_error(error, name, "writing") from None
    finally:
        await asyncio.to_thread(_unlink, temporary)
    return count


def _check_replaceable(path: str) -> None:
    """Raise IsADirectoryError or NotRegularFile for what is there and no file: a directory, a device, a pipe."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise NotRegularFile(errno.EINVAL, "Not a regular file", path)


def _unlink(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)


async def _opened(name: str, work: Callable[[], Any]) -> Any:
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise file_error(error, name, "writing") from None


async def fill(
    file: BinaryIO, sheet: Sheet, reader: RowReader, progress: CopyProgress, session: EvalSession
) -> int:
    """Write a result to a local file, durably; return the number of rows. Raises SqlError as ``file_state``."""
    try:
        sink = Sink(file, sheet, session)
        measure = measure_of(sheet.oids)
        async for batch in reader.take(0):
            for part, _long in cut(batch, measure):
                await asyncio.to_thread(sink.write, part.rows, part.arrow)
            progress.tuples = sink.rows
            progress.bytes = file.tell() if file.seekable() else progress.bytes
        sink.close()
        await asyncio.to_thread(_sync, file)
    except OSError as error:
        raise SqlError(file_state(error), f"could not write to COPY file: {error.strerror}") from None
    return sink.rows


def _sync(file: BinaryIO) -> None:
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fsync(file.fileno())


@asynccontextmanager
async def new_directory(name: str, roots: Roots) -> AsyncIterator[str]:
    """Make a directory to be filled, which gets its name in the end, or is removed.

    Raises SqlError 58P02 if there is something of that name, 42501, and others of ``file_error``.
    """
    path = await asyncio.to_thread(target, name.rstrip("/") or "/", roots)
    if os.path.lexists(path):
        raise exists_error(name)
    folder, base = os.path.split(path)
    temporary = os.path.join(folder, f".{base}.{secrets.token_hex(8)}")
    try:
        await asyncio.to_thread(os.mkdir, temporary)
        yield temporary
        if os.path.lexists(path):
            raise exists_error(name)
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


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A directory that executors write to (``engine.changes.bulk.export_task``). Can be pickled."""

    path: str

    def write(self, name: str, sheet: Sheet, batches: Iterable[Any]) -> tuple[int, int]:
        """Write batches as a file; return how many rows and bytes it has. Raises OSError, DataError."""
        return write_file(os.path.join(self.path, name), sheet, batches)

    def adopt(self, written: Sequence[Written], suffix: str) -> tuple[int, int]:
        """Keep the files that have rows, at least one of all, numbered in their order; return their rows and bytes.

        Files of attempts that did not count are deleted.
        """
        rows = size = 0
        kept = with_rows(written)
        names = {name for name, _rows, _size in kept}
        for entry in os.listdir(self.path):
            if entry not in names:
                os.unlink(os.path.join(self.path, entry))
        for number, (name, count, length) in enumerate(kept):
            os.rename(os.path.join(self.path, name), os.path.join(self.path, f"part-{number:05}{suffix}"))
            rows += count
            size += length
        return rows, size


def with_rows(written: Sequence[Written]) -> Sequence[Written]:
    """Return the files that have rows, at least one of all."""
    return [one for one in written if one[1]] or written[:1]
