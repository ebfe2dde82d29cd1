r"""COPY FROM, a large load: the client's bytes -> Arrow batches, by column in threads, in bounded memory.

    chunks ──> blocks of whole rows ──thread──> plain pieces: Arrow columns (``pgwire.codecs.copy.columns``)
                                          └───> other pieces, back to the loop: row by row
                                          (``engine.changes.writes.copy_rows``)

Blocks are read ahead of their turn, but believed in turn: a plain piece counts only if the row decoder, which has
seen everything before it, stands between two rows. So quotes over block ends, ``\\.`` and errors are always the
decoder's business, and line numbers go on as if it had read every line itself.

The event loop is held for some tenths of a millisecond at a time (a slice of SLICE_BYTES, row by row),
whatever the data.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from engine.base import accounts
from engine.base.pieces import FEW_BYTES
from engine.base.slices import given_way
from engine.catalog.physical import shard_column
from engine.changes.writes.copy_conditions import Conditions
from engine.changes.writes.copy_rows import RowLoader
from pgwire.codecs.copy.columns import ColumnReader, PlainSplitter, column_reader
from pgwire.codecs.copy.lines import CopyDecoder, LineDecoder
from pgwire.codecs.errors import DataError
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import openly
from txn.base.types import Row, ShardColumn
from txn.values.columns import column_arrays, column_arrays_slowly, column_fields
from txn.values.exact import batch_of

SLICE_BYTES: Final = 2 << 10  # read row by row between two turns of the loop: some 0.1 ms of short rows
LONG_SLICE_BYTES: Final = 16 << 10  # the same within a long row
BLOCK_BYTES: Final = 128 << 10  # read by column at once: reading holds the GIL for parts of a millisecond
PIECE_BYTES: Final = (
    64 << 10,
    8 << 10,
)  # what a block that is not plain is cut into, and what such a piece is
BATCH_ROWS: Final = 400  # of rows that went through Python, per Arrow batch
BATCH_BYTES: Final = 4 << 20  # of them, about
DEFAULT_ROWS: Final = 1_000  # of default expressions between two turns of the loop
AHEAD: Final = 2  # blocks being read
CAREFUL_BYTES: Final = 1 << 20  # of a block read row by row, cut off at once
AHEAD_BYTES: Final = 4 << 20  # a block of more is read alone
PATIENCE: Final = 8  # blocks without any plain piece after which blocks are not cut any more


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole rows: as read by column, or (``columns`` None) as bytes. ``excluded``: those that WHERE has left
    out of ``rows``.
    """

    data: bytes
    lines: int = 0
    rows: int = 0
    excluded: int = 0
    columns: dict[str, Any] | None = None


def table_batches(columns: Sequence[ShardColumn]) -> Any:
    """Return the Arrow schema of a load's batches."""
    return pa.schema([field for column in columns for field in column_fields(column)])


def row_batches(columns: Sequence[ShardColumn], rows: list[Row]) -> Iterator[Any]:
    """Yield table rows as Arrow batches; they are taken out of ``rows``, where nothing is left of them."""
    schema = table_batches(columns)
    start = 0
    while start < len(rows):
        size = stop = 0
        for stop in range(start, min(start + BATCH_ROWS, len(rows))):
            size += row_bytes(rows[stop])
            if size > BATCH_BYTES:
                break
        some = rows[start : stop + 1]
        rows[start : stop + 1] = [()] * len(some)
        start = stop + 1
        arrays: list[Any] = []
        for column in columns:
            arrays += given_way(column_arrays_slowly([row[column.attnum - 1] for row in some], column))
        some.clear()
        batches = [batch_of(arrays, schema)]
        arrays.clear()
        yield batches.pop()


def _each(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches on the event loop, each made as open code."""
    while (batch := openly(next, batches, None)) is not None:
        yield batch


class BulkLoad:
    """One COPY FROM: its first rows, then the rest as Arrow batches. Used once, from the event loop."""

    def __init__(self, loader: RowLoader, decoder: CopyDecoder, chunks: AsyncIterator[bytes]) -> None:
        """Read ``chunks``."""
        self._loader = loader
        self._decoder = decoder
        self._chunks = chunks
        self.ended = False
        """Whether ``first_rows`` were all."""
        self._left = b""  # of a chunk that ``first_rows`` did not use up
        self._columns = [shard_column(c) for c in loader.relation.stored_columns]
        self._by_column = ColumnLoader(loader, self._columns, decoder) if serves(loader, decoder) else None

    async def first_rows(self, limit: int, most_bytes: int) -> list[Row]:
        """Return table rows: all of them if there are at most ``limit`` in ``most_bytes`` of data, else some;
        ``ended`` tells.

        Raises SqlError 53200 where they are more than the statement may have.
        """
        rows: list[Row] = []
        size = 0
        async for chunk in self._chunks:
            at = 0
            if size > FEW_BYTES:
                accounts.check()
            while at < len(chunk):
                end = at + self._slice_bytes()
                rows += openly(self._loader.feed, self._decoder, chunk[at:end])
                size += min(end, len(chunk)) - at
                at = end
                if rows and (len(rows) > limit or size > most_bytes):
                    self._left = chunk[at:]
                    return rows
                if at < len(chunk):
                    await asyncio.sleep(0)
        rows += openly(self._loader.finish, self._decoder)
        if len(rows) > limit:
            self._chunks = _nothing()
        else:
            self.ended = True
        return rows

    async def batches(self, first: list[Row]) -> AsyncIterator[Any]:
        """Yield Arrow batches (columns ``c<attnum>``) of ``first``, whose rows are taken out, and of all that follows.

        Raises what the careful path raises, with the same CONTEXT; the load is dead then.
        """
        for batch in _each(row_batches(self._columns, first)):
            yield batch
            await asyncio.sleep(0)
        rest = self._careful_stream() if self._by_column is None else self._column_stream(self._by_column)
        async for batch in rest:
            handed = [batch]
            del batch
            yield handed.pop()
        for batch in _each(row_batches(self._columns, openly(self._loader.finish, self._decoder))):
            yield batch

    # -- row by row --------------------------------------------------------------------------------

    def _slice_bytes(self) -> int:
        # Where a line has not ended for long, its end is not likely to be near.
        held = self._decoder.rest.size if isinstance(self._decoder, LineDecoder) else 0
        return max(SLICE_BYTES, min(held, LONG_SLICE_BYTES))

    async def _careful_stream(self) -> AsyncIterator[Any]:
        pending: list[Row] = []
        size = 0
        async for chunk in self._all_chunks():
            at = 0
            size += len(chunk)
            while at < len(chunk):
                end = at + self._slice_bytes()
                pending += openly(self._loader.feed, self._decoder, chunk[at:end])
                at = end
                if len(pending) >= BATCH_ROWS or size > BATCH_BYTES:
                    size = 0
                    for batch in _each(row_batches(self._columns, pending)):
                        yield batch
                    pending = []
                await asyncio.sleep(0)
        for batch in _each(row_batches(self._columns, pending)):
            yield batch

    async def _careful(self, blocks: list[bytes]) -> AsyncIterator[Any]:
        """Read the one block, which is taken out of ``blocks``: of a row of many megabytes nothing is here twice."""
        pieces = [blocks[0][at : at + CAREFUL_BYTES] for at in range(0, len(blocks[0]), CAREFUL_BYTES)]
        blocks.clear()
        pieces.reverse()
        while pieces:
            data = pieces.pop()
            at = 0
            while at < len(data):
                end = at + self._slice_bytes()
                rows = openly(self._loader.feed, self._decoder, data[at:end])
                at = end
                for batch in _each(row_batches(self._columns, rows)):
                    handed = [batch]
                    del batch
                    yield handed.pop()
                await asyncio.sleep(0)

    async def _all_chunks(self) -> AsyncIterator[bytes]:
        left, self._left = self._left, b""
        if left:
            yield left
        async for chunk in self._chunks:
            yield chunk

    # -- by column ---------------------------------------------------------------------------------

    async def _column_stream(self, columns: ColumnLoader) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        reading: deque[asyncio.Future[list[Piece]]] = deque()
        async for block, whole in self._blocks(columns):
            if not whole:
                while reading:
                    async for batch in self._believe(await reading.popleft(), columns):
                        handed = [batch]
                        del batch
                        yield handed.pop()
                parts = [block]
                del block
                async for batch in self._careful(parts):
                    handed = [batch]
                    del batch
                    yield handed.pop()
                continue
            long = len(block) > AHEAD_BYTES  # of rows of many megabytes no more than one is here at a time
            reading.append(loop.run_in_executor(None, columns.read, block))
            del block
            while len(reading) >= AHEAD or (long and reading):
                async for batch in self._believe(await reading.popleft(), columns):
                    handed = [batch]
                    del batch  # who takes it is the only one who has it, as it may be a row of many megabytes
                    yield handed.pop()
        while reading:
            async for batch in self._believe(await reading.popleft(), columns):
                handed = [batch]
                del batch
                yield handed.pop()
        if self._left:
            left = [self._left]
            self._left = b""
            async for batch in self._careful(left):
                yield batch

    async def _blocks(self, columns: ColumnLoader) -> AsyncIterator[tuple[bytes, bool]]:
        """Yield about BLOCK_BYTES at a time, up to a row's end, and True; the rest without one stays in ``_left``.

        What has come of a row of many megabytes is the decoder's, which keeps digits in pieces: that comes with False.
        """
        decoder = columns.decoder
        held = [decoder.take_rest()]
        size = len(held[0])
        async for chunk in self._all_chunks():
            held.append(chunk)
            size += len(chunk)
            if decoder.digits and size > AHEAD_BYTES:
                end = chunk.rfind(b"\n") + 1
                held[-1] = chunk[: end or len(chunk)]
                rest = chunk[end:] if end else b""
                held.reverse()
                while held:
                    yield held.pop(), False
                held.append(rest)
                size = len(rest) if end else size
                continue
            if size < BLOCK_BYTES or b"\n" not in chunk:
                continue
            blocks = [b"".join(held)]
            held.clear()
            held.append(parted(blocks, columns.splitter.cut(blocks[0])))
            size = len(held[0])
            yield blocks.pop(), True  # the block is the reader's alone
        blocks = [b"".join(held)]
        held.clear()
        self._left = parted(blocks, columns.splitter.cut(blocks[0]))
        if blocks[0]:
            yield blocks.pop(), True

    async def _believe(self, pieces: list[Piece], columns: ColumnLoader) -> AsyncIterator[Any]:
        """Yield the batches of pieces whose turn has come, which are taken out of ``pieces``."""
        pieces.reverse()
        while pieces:
            piece = pieces.pop()
            batch = None
            if piece.columns is not None and columns.decoder.between_rows:
                for _ in () if columns.early else columns.add_defaults(piece.rows, piece.columns):
                    await asyncio.sleep(0)
                batch = columns.batch(piece.rows, piece.columns)
            if batch is None:
                data = [piece.data]
                del piece
                async for one in self._careful(data):
                    handed = [one]
                    del one
                    yield handed.pop()
                continue
            columns.decoder.pass_lines(piece.lines)
            columns.leave_out(piece.excluded)
            handed = [batch]
            del piece, batch
            yield handed.pop()


def parted(blocks: list[bytes], cut: int) -> bytes:
    """Leave the first ``cut`` bytes of the one block in its place; return the others."""
    if cut == len(blocks[0]):
        return b""
    rest = blocks[0][cut:]
    blocks[0] = blocks[0][:cut]
    return rest


async def _nothing() -> AsyncIterator[bytes]:
    """Yield no chunk."""
    none: tuple[bytes, ...] = ()
    for chunk in none:
        yield chunk


def serves(loader: RowLoader, decoder: CopyDecoder) -> bool:
    """Return whether rows may be loaded by column: expressions over them, if any, need no session."""
    plain = PlainSplitter.serves(loader.options, len(loader.targets))
    return (
        plain and isinstance(decoder, LineDecoder) and (not loader.by_row or Conditions.serves(loader.spec))
    )


class BatchMaker:
    """Completes columns that were read to batches of the table."""

    def __init__(self, loader: RowLoader, columns: Sequence[ShardColumn]) -> None:
        """``columns``: the live ones of the table."""
        self._loader = loader
        self._shard_columns = {column.attnum: column for column in columns}
        self._schema = table_batches(columns)
        self._conditions = Conditions(loader.spec, loader.env, columns) if loader.by_row else None

    @property
    def early(self) -> bool:
        """Whether ``finish`` has something to do: defaults are part of it then."""
        return self._conditions is not None

    def finish(self, rows: int, read: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Add defaults, leave out what WHERE leaves out, add generated columns, look at CHECK; ``early`` has to hold.

        Return how many rows stay, and their columns; None if the careful path has to look. Runs in any thread.
        """
        if self._conditions is None:
            raise AssertionError("the loader ends before its conditions are known")
        for _ in self.add_defaults(rows, read):
            pass
        return self._conditions.apply(rows, read)

    def leave_out(self, rows: int) -> None:
        """Count rows that WHERE has left out."""
        self._loader.leave_out(rows)

    def add_defaults(self, rows: int, read: dict[str, Any]) -> Iterator[None]:
        """Add the defaults of ``rows`` rows to the columns that were read, a slice at a time."""
        for position, make in self._loader.defaults:
            values: list[Any] = []
            for start in range(0, rows, DEFAULT_ROWS):
                values += [make((), self._loader.env) for _ in range(min(DEFAULT_ROWS, rows - start))]
                yield
            column = self._shard_columns[position + 1]
            for field, array in zip(column_fields(column), column_arrays(values, column), strict=True):
                read[field.name] = array

    def batch(self, rows: int, read: dict[str, Any]) -> Any:
        """Return the columns as a batch of the table; None if the careful path has an error to report."""
        for position, _name in self._loader.shape.not_null:
            array = read.get(f"c{position + 1}")
            if array is None or array.null_count:
                return None
        arrays = [read[f.name] if f.name in read else pa.nulls(rows, f.type) for f in self._schema]
        return batch_of(arrays, self._schema)


class ColumnLoader(BatchMaker):
    """Reads blocks by column; ``read`` runs in threads, several at a time."""

    def __init__(self, loader: RowLoader, columns: Sequence[ShardColumn], decoder: CopyDecoder) -> None:
        if not isinstance(decoder, LineDecoder):
            raise AssertionError(f"lines are read by {type(decoder).__name__}")
        self.decoder = decoder
        self.splitter = PlainSplitter(loader.options, len(loader.targets))
        super().__init__(loader, columns)
        by_attnum = {column.attnum: column for column in columns}
        settings = loader.settings
        self._targets: list[tuple[ShardColumn, ColumnReader | None]] = [
            (by_attnum[c.attnum], column_reader(c.type.oid, c.type.typmod, settings)) for c in loader.targets
        ]
        self._hopeless = 0  # blocks in a row without a plain piece

    def read(self, block: bytes) -> list[Piece]:
        """Return a block's pieces in order. Pure but for a guess about what is worth trying."""
        pieces = list(self._pieces(block, PIECE_BYTES if self._hopeless < PATIENCE else ()))
        self._hopeless = self._hopeless + 1 if all(p.columns is None for p in pieces) else 0
        return pieces

    def _pieces(self, block: bytes, sizes: Sequence[int]) -> Iterator[Piece]:
        piece = self._plain(block)
        if piece is not None:
            yield piece
            return
        if not sizes or len(block) <= sizes[0]:
            yield Piece(block)
            return
        at = 0
        while at < len(block):
            cut = self.splitter.cut(block[at : at + sizes[0]]) or len(block) - at
            yield from self._pieces(block[at : at + cut], sizes[1:])
            at += cut

    def _plain(self, block: bytes) -> Piece | None:
        texts = self.splitter.split(block, crlf=self.decoder.eol == "\r\n")
        if texts is None:
            return None
        read: dict[str, Any] = {}
        for at, (text, (column, reader)) in enumerate(zip(texts, self._targets, strict=True)):
            values = None if reader is None else reader(text)
            if values is not None:
                read[f"c{column.attnum}"] = values
                continue
            try:
                arrays = self._by_value(at, text.to_pylist(), column)
            except (DataError, OverflowError, pa.ArrowInvalid):
                return None
            for field, array in zip(column_fields(column), arrays, strict=True):
                read[field.name] = array
        rows = len(texts[0])
        if not self.early:
            return Piece(block, block.count(b"\n"), rows, 0, read)
        kept = self.finish(rows, read)
        return None if kept is None else Piece(block, block.count(b"\n"), kept[0], rows - kept[0], kept[1])

    def _by_value(self, at: int, texts: Sequence[Any], column: ShardColumn) -> list[Any]:
        """Read a column with its codec, as the careful path does; errors are left to that."""
        decode, coerce = self._loader.decoders[at], self._loader.coercions[at]
        values = [None if text is None else decode(text) for text in texts]
        if coerce is not None:
            values = [None if value is None else coerce(value) for value in values]
        return column_arrays(values, column)
