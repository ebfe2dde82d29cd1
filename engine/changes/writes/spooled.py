"""Rows that a statement has gathered and looks at again, in order: the last ones in memory, the rest in a file.

    extend ──> tail ──64 kB──> chunk, packed ──1 MB of them──> file without a name
    row 0 ............. 40,000 .............. 41,000 .. 41,200
          [  in the file      ][ packed, in memory  ][ tail  ]

What RETURNING has made, what AFTER triggers and foreign keys are told of, transition tables and what items of
WITH return are such rows where a statement has many. It is a ``Sequence``, so that whoever takes a list of
rows takes these: chunk after chunk is read again, one is remembered. A chunk is small enough to be read
between two turns of the loop; one with huge values is read and written in a thread where its strand may wait
(``beside``).

Nobody changes it once it is read elsewhere. The file goes with the object, or the server.
"""

from __future__ import annotations

import asyncio
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias, overload

from engine.base.kept_rows import CELL_BYTES, refused
from engine.base.loop.descriptors import Descriptors
from engine.base.temp_files import TempFiles
from pgwire.codecs.sizes import row_bytes
from pgwire.codecs.users.packed import pack_rows, unpack_rows
from pgwire.give_way import beside, give_way, openly
from pgwire.release import let_go
from planner.base.errors import SqlError
from txn.base.types import Row
from txn.persist.trouble import again, exactly

if TYPE_CHECKING:
    from engine.session.session import Session

CHUNK_BYTES: Final = 64 << 10
"""Of rows, as they are in memory: so many are packed and read again at once."""
CHUNK_ROWS: Final = 500
BUFFER_BYTES: Final = 1 << 20
"""Of chunks, packed, that wait to be written together."""
LISTED: Final = 2000
"""Rows that are as well kept in a list."""
HUGE_BYTES: Final = 1 << 20
"""Chunks that are larger are written and read in a thread."""


class SpooledRows(Sequence[Row]):
    """Rows in the order in which they were added. Used by one statement at a time, on the event loop."""

    __slots__ = ("_buffer", "_buffered", "_called", "_count", "_counted", "_descriptors", "_end", "_file", "_files", "_firsts", "_folder", "_last", "_places", "_size", "_tail")  # fmt: skip

    def __init__(
        self, folder: Path, descriptors: Descriptors | None, called: str, files: TempFiles | None = None
    ) -> None:
        """Have no rows. ``folder``: for the file; ``descriptors``: one of which it takes; ``called``: what
        errors call the rows; ``files``: with which it counts.
        """
        self._files = files
        self._folder = folder
        self._descriptors = descriptors
        self._called = called
        self._file: BinaryIO | None = None
        self._end = 0  # of what is in the file
        self._counted = 0  # of it with ``files``
        self._firsts: list[int] = []  # of each chunk, its first row
        self._places: list[tuple[int, int]] = []  # and where it is: offset and length
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._tail: list[Row] = []
        self._size = 0  # of the tail, in bytes
        self._count = 0
        self._last: tuple[int, list[Row]] = (-1, [])  # the chunk that was read last

    @classmethod
    def of(cls, session: Session, called: str) -> SpooledRows:
        """Make one for a statement of a session."""
        db = session.db
        return cls(Path(db.config.data_dir), db.descriptors, called, session.temp)

    def another(self) -> SpooledRows:
        """Return one without rows, for rows of the same statement."""
        return SpooledRows(self._folder, self._descriptors, self._called, self._files)

    # -- adding ------------------------------------------------------------------------------------

    def extend(self, rows: Iterable[Row]) -> None:
        """Add rows, giving way in between. Raises SqlError 53100, 53000 and 58030 where the file cannot be
        written, 53400 past ``temp_file_limit``.
        """
        for row in rows:
            self.append(row)

    def append(self, row: Row) -> None:
        """Add a row. Raises as ``extend``."""
        self._tail.append(row)
        self._count += 1
        self._size += row_bytes(row) + CELL_BYTES
        if self._size >= CHUNK_BYTES or len(self._tail) >= CHUNK_ROWS:
            self._seal()
            give_way()

    def _seal(self) -> None:
        rows, size, self._tail, self._size = self._tail, self._size, [], 0
        self._firsts.append(self._count - len(rows))
        data = beside(pack_rows, rows) if size > HUGE_BYTES else None
        if data is None:
            data = pack_rows(rows)
        self._places.append((self._end + self._buffered, len(data)))
        self._buffer.append(data)
        self._buffered += len(data)
        if self._buffered >= BUFFER_BYTES:
            self._write()

    def _write(self) -> None:
        if self._files is not None:
            self._files.grow(self._buffered)
            self._counted += self._buffered
        if self._file is None:
            descriptors = self._descriptors
            if descriptors is not None and not descriptors.take_now(1):
                self._descriptors = None
                raise SqlError(
                    "53000",
                    f"could not keep {self._called} in a file: {descriptors.taken} of {descriptors.limit} file descriptors are taken",
                )
        try:
            if self._file is None:
                try:
                    self._file = tempfile.TemporaryFile(prefix="rows-", dir=self._folder)  # noqa: SIM115 - closed by ``close``
                except BaseException:
                    if self._descriptors is not None:
                        self._descriptors.give(1)
                    raise
            self._file.seek(self._end)
            for data in self._buffer:
                if len(data) <= HUGE_BYTES or beside(self._file.write, data) is None:
                    self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise refused(f"write {self._called}", error) from error
        self._end += self._buffered
        self._buffer.clear()
        self._buffered = 0

    # -- reading -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many rows there are."""
        return self._count

    def _chunk(self, number: int) -> list[Row]:
        """Return the rows of a chunk. Raises SqlError 58030."""
        if self._last[0] != number:
            self._last = (-1, [])
            rows = beside(self._loaded, number) if self._places[number][1] > HUGE_BYTES else None
            self._last = (number, self._loaded(number) if rows is None else rows)
        return self._last[1]

    def _loaded(self, number: int) -> list[Row]:
        offset, length = self._places[number]
        at = self._end
        for data in self._buffer if offset >= at else ():
            if at == offset:
                found: list[Row] = unpack_rows(data)
                return found
            at += len(data)
        file = self._file
        if file is None:
            raise AssertionError("rows were spooled, and there is no file")

        def read() -> bytes:
            file.seek(offset)
            return exactly(file, length)

        try:
            rows: list[Row] = unpack_rows(again(read))
        except OSError as error:
            raise refused(f"read {self._called}", error) from error
        return rows

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows, those that are added meanwhile not."""
        yield from self._between(0, self._count)

    def _between(self, start: int, stop: int) -> Iterator[Row]:
        while start < stop:
            number = bisect_right(self._firsts, start) - 1
            rows = self._chunk(number) if number >= 0 else self._tail
            first = self._firsts[number] if number >= 0 else 0
            if start - first >= len(rows):  # it is in the tail
                first += len(rows)
                rows = self._tail
            some = rows[start - first : stop - first]
            yield from some
            start += len(some)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        """Return a row, or a list of some."""
        if isinstance(at, slice):
            start, stop, step = at.indices(self._count)
            if step != 1:
                return [self[i] for i in range(start, stop, step)]
            return list(self._between(start, stop))
        if at < 0:
            at += self._count
        if not 0 <= at < self._count:
            raise IndexError(at)
        return next(self._between(at, at + 1))

    # -- end ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop everything. Idempotent."""
        file, self._file = self._file, None
        counted, self._counted = self._counted, 0
        if counted and self._files is not None:
            self._files.shrink(counted)
        self._tail, self._buffer, self._last = [], [], (-1, [])
        self._firsts, self._places, self._count = [], [], 0
        if file is None:
            return
        descriptors = self._descriptors
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            file.close()
            if descriptors is not None:
                descriptors.give(1)
            return
        # its pages are freed within the call, some 70 ms for each 200 MB
        closing = loop.run_in_executor(None, file.close)
        closing.add_done_callback(lambda done: _closed(done, descriptors))

    def __del__(self) -> None:
        """Have the file closed."""
        self.close()


Gathering: TypeAlias = list[Row] | SpooledRows


def gathered(session: Session, rows: Gathering, more: Sequence[Row], called: str) -> Gathering:
    """Return rows with more behind them: a list, up to ``LISTED`` of them, which may be the same one."""
    if isinstance(rows, list) and len(rows) + len(more) > LISTED:
        first, rows = rows, SpooledRows.of(session, called)
        openly(rows.extend, first)
        let_go(first)
    openly(rows.extend, more)
    return rows


def _closed(closing: asyncio.Future[Any], descriptors: Descriptors | None) -> None:
    if not closing.cancelled():
        closing.exception()  # nothing of the file is wanted any more
    if descriptors is not None:
        descriptors.give(1)
