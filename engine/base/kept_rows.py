"""What a cursor has read of its result: any part of it again, in bounded memory.

    row     0 ......... 40,000 ......... 70,000 ....
    chunk   [ in a file ][ in a file     ][ memory ]      older chunks move out once ``KEPT_BYTES`` are exceeded, less where there are many cursors

The file has no name and is gone with the cursor, or the server. A cursor that cannot scroll forgets what it
has passed. Batches stay as they came, Arrow or rows; only what is asked for becomes tuples. Files are written
and read in threads, of which one at a time has the file: who gave up waiting for it (a cancelled FETCH)
leaves it to end first.
"""

from __future__ import annotations

import asyncio
import bisect
import pickle
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from engine.base import accounts
from engine.base.loop.descriptors import Descriptors
from engine.base.rows import RowBatch, RowTuple
from engine.base.temp_files import TempFiles
from engine.base.troubles import TROUBLES
from pgwire.codecs.sizes import Measure
from planner.base.errors import SqlError
from txn.persist.trouble import again, exactly, number_of, reason_of, said

KEPT_BYTES: Final = (
    16 << 20
)  # in memory, of all cursors of a session together, but for a few kilobytes of each
CELL_BYTES: Final = 64  # a value of a tuple, beside what one of any size takes


@dataclass(slots=True)
class _Chunk:
    """Rows ``first`` .. ``first + count - 1``; ``batch`` None: they are in the file."""

    first: int
    count: int
    size: int
    batch: RowBatch | None
    offset: int = 0
    length: int = 0


class KeptRows:
    """Rows by position, from 0. Used by one task at a time."""

    def __init__(
        self,
        folder: Path,
        to_rows: Callable[[Any], list[RowTuple]],
        measure: Measure | None = None,
        most: Callable[[], int] = lambda: KEPT_BYTES,
        descriptors: Descriptors | None = None,
        called: str = "the rows of a cursor",
        files: TempFiles | None = None,
    ) -> None:
        """Keep none yet.

        ``folder``: for the file. ``to_rows``: makes tuples of an Arrow batch. ``measure``: of tuples.
        ``most``: bytes in memory. ``descriptors``: of the process, one of which the file takes; None: it is
        not counted. ``called``: what errors call them. ``files``: with which the file counts; None: with
        nothing.
        """
        self._files = files
        self._counted = 0
        self._descriptors = descriptors
        self._taken = 0
        self._called = called
        self._most = most
        self._measure = measure
        self._folder = folder
        self._to_rows = to_rows
        self._chunks: list[_Chunk] = []
        self._inside = 0  # of the chunks, the first that is in memory
        self._memory = 0
        self._count = 0
        self._file: BinaryIO | None = None
        self._at_file: asyncio.Future[Any] | None = None  # the thread that has it, while one does

    def __len__(self) -> int:
        """How many rows have been read, forgotten ones included."""
        return self._count

    def skip(self, count: int) -> None:
        """Count rows that were read before, and will not be asked for."""
        self._count += count

    async def add(self, batch: RowBatch) -> None:
        """Keep the next rows.

        Raises:
            SqlError: 53100 if there is no room for the file, 53400 past ``temp_file_limit``.
        """
        count = len(batch)
        if not count:
            return
        if batch.rows is not None:
            size = count * max(len(batch.rows[0]), 1) * CELL_BYTES
            if self._measure is not None:
                size += self._measure(batch.rows)
        else:
            size = batch.arrow.nbytes
        self._chunks.append(_Chunk(self._count, count, size, batch))
        self._count += count
        self._memory += size
        if self._memory > (most := self._most()):
            await self._move_out(most // 2)

    async def _move_out(self, staying: int) -> None:
        """Write what is older than the last ``staying`` bytes."""
        leaving = []
        while self._memory > staying and self._inside < len(self._chunks):
            chunk = self._chunks[self._inside]
            leaving.append(chunk)
            self._memory -= chunk.size
            self._inside += 1
        if leaving:
            await self._take_descriptor()
            try:
                await self._in_thread(self._write, leaving)
            except OSError as error:
                raise refused(f"write {self._called}", error) from error

    async def _take_descriptor(self) -> None:
        descriptors = self._descriptors
        if descriptors is None or self._taken:
            return
        if not await descriptors.take(1):
            raise SqlError(
                "53000",
                f"could not keep {self._called} in a file: {descriptors.taken} of {descriptors.limit} file descriptors are taken",
            )
        self._taken = 1

    async def _in_thread(self, work: Callable[[Any], Any], what: Any) -> Any:
        """Return ``work(what)``, which uses the file; it goes on where this is cancelled."""
        while self._at_file is not None:
            await asyncio.wait((self._at_file,))
        future = self._at_file = asyncio.get_running_loop().run_in_executor(None, work, what)
        future.add_done_callback(self._file_is_free)
        return await asyncio.shield(future)

    def _file_is_free(self, future: asyncio.Future[Any]) -> None:
        self._at_file = None
        if not future.cancelled():
            future.exception()  # taken note of: who asked may have gone

    def _write(self, chunks: list[_Chunk]) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="cursor-", dir=self._folder)  # noqa: SIM115 - closed by ``close``
        file = self._file
        offset = file.seek(0, 2)
        for chunk in chunks:
            data = _packed(chunk.batch)
            if self._files is not None:
                self._files.grow(len(data))
                self._counted += len(data)
            file.write(data)
            chunk.offset, chunk.length = offset, len(data)
            offset += len(data)
        file.flush()
        for chunk in chunks:
            chunk.batch = None

    async def batches(self, start: int, end: int) -> AsyncIterator[RowBatch]:
        """Yield rows ``start`` .. ``end - 1`` as far as they were read, a chunk or a part of one at a time."""
        at = bisect.bisect_right(self._chunks, start, key=lambda chunk: chunk.first) - 1
        for chunk in self._chunks[max(at, 0) :]:
            if chunk.first >= end:
                return
            low, high = max(start - chunk.first, 0), min(end - chunk.first, chunk.count)
            if low >= high:
                continue
            batch = chunk.batch
            if batch is None:
                batch = await self._in_thread(self._loaded, chunk)
            if batch.rows is not None:
                yield RowBatch(rows=batch.rows[low:high])
            else:
                yield RowBatch(arrow=batch.arrow.slice(low, high - low))

    async def batches_back(self, start: int, end: int) -> AsyncIterator[RowBatch]:
        """Yield rows ``end - 1`` .. ``start`` in this order, as far as they were read, a chunk or a part of
        one at a time.
        """
        chunks = self._chunks
        for at in range(len(chunks) - 1, -1, -1):
            chunk = chunks[at]
            if chunk.first + chunk.count <= start:
                return
            if chunk.first < end:
                async for batch in self.batches(max(chunk.first, start), min(chunk.first + chunk.count, end)):
                    rows = batch.rows if batch.rows is not None else self._to_rows(batch.arrow)
                    yield RowBatch(rows=rows[::-1])

    def _loaded(self, chunk: _Chunk) -> RowBatch:
        if self._file is None:
            raise AssertionError("a chunk was written, and there is no file")
        file = self._file

        def read() -> bytes:
            file.seek(chunk.offset)
            return exactly(file, chunk.length)

        try:
            return _unpacked(again(read))
        except OSError as error:
            raise refused(f"read {self._called}", error) from error

    async def rows(self, start: int, end: int) -> list[RowTuple]:
        """Return rows ``start`` .. ``end - 1`` as far as they were read. Raises SqlError 53200 where they are
        too much for a statement.
        """
        found: list[RowTuple] = []
        async for batch in self.batches(start, end):
            found.extend(batch.rows if batch.rows is not None else self._to_rows(batch.arrow))
            accounts.check()
        return found

    def tuples(self, batch: RowBatch) -> list[RowTuple]:
        """Return a batch as rows."""
        return list(batch.rows) if batch.rows is not None else self._to_rows(batch.arrow)

    def forget(self, before: int) -> None:
        """Drop rows before ``before``, which nobody will ask for again."""
        gone = 0
        while gone < len(self._chunks) and self._chunks[gone].first + self._chunks[gone].count <= before:
            if self._chunks[gone].batch is not None:
                self._memory -= self._chunks[gone].size
            gone += 1
        del self._chunks[:gone]
        self._inside = max(self._inside - gone, 0)

    def close(self) -> None:
        """Drop everything."""
        self._chunks.clear()
        if self._at_file is None:
            self._close_file()
        else:
            self._at_file.add_done_callback(lambda _: self._close_file())

    def _close_file(self) -> None:
        file, self._file = self._file, None
        counted, self._counted = self._counted, 0
        if counted and self._files is not None:
            self._files.shrink(counted)
        if file is None:
            self._is_closed()
            return
        # The file has no name any more: its pages are freed within the call, some 70 ms for each 200 MB.
        closing = asyncio.get_running_loop().run_in_executor(None, file.close)
        closing.add_done_callback(self._is_closed)

    def _is_closed(self, closing: asyncio.Future[None] | None = None) -> None:
        if closing is not None and not closing.cancelled():
            closing.exception()  # nothing of the file is wanted any more
        taken, self._taken = self._taken, 0
        if taken and self._descriptors is not None:
            self._descriptors.give(taken)


def refused(verb: str, error: OSError) -> SqlError:
    """Return the error for rows that could not be written to a file or read from it: 53100, 53000, 58030."""
    number = number_of(error)
    return SqlError(TROUBLES[said(number).kind], f"could not {verb}: {reason_of(error, number)}")


def _packed(batch: RowBatch | None) -> bytes:
    if batch is None:
        raise AssertionError("a chunk is packed that has no rows in memory")
    if batch.rows is not None:
        return b"R" + pickle.dumps(list(batch.rows), protocol=5)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.arrow.schema) as writer:
        writer.write_batch(batch.arrow)
    return b"A" + bytes(sink.getvalue())


def _unpacked(data: bytes) -> RowBatch:
    body = memoryview(data)[1:]
    if data[:1] == b"R":
        return RowBatch(rows=pickle.loads(body))
    return RowBatch(arrow=pa.ipc.open_stream(pa.py_buffer(body)).read_next_batch())
