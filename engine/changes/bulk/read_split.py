"""One split of a file -> Arrow batches of a table, with the functions that COPY FROM STDIN reads with.

    bytes [start, end) ──blocks──> plain pieces by column ──┬──> batches c1, c2, ...
                                   other pieces, row by row ─┘

Text, CSV, binary and JSON lines are read here, Parquet files by ``read_parquet``. What a split yields does
not depend on how the file was cut: neither rows, nor the lines that errors name (``tests/engine/bulk``).
Synchronous: it runs in a thread of the server, or in a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from engine.base.server_files import file_error, shrunk
from engine.base.stored_objects import open_bytes
from engine.catalog.physical import shard_column
from engine.changes.bulk.read_parquet import BATCH_ROWS, ParquetRows
from engine.changes.bulk.splits import Split, whole
from engine.changes.writes.copy_bulk import AHEAD_BYTES, ColumnLoader, Piece, parted, row_batches, serves
from engine.changes.writes.copy_rows import LoadSpec, Rejects, RowLoader, RowWatch
from engine.session.progress import CopyProgress
from pgwire.codecs.copy import copy_context, with_context
from pgwire.codecs.copy.encoding import Transcoder
from pgwire.codecs.copy.json import JsonDecoder
from pgwire.codecs.copy.lines import CopyDecoder, LineDecoder
from pgwire.codecs.copy.reading import copy_decoder
from pgwire.codecs.errors import DataError
from pgwire.codecs.text.encodings import encoding
from planner.evaluate import Env, Shared
from planner.facts import BYTEA, facts

BLOCK_BYTES: Final = 1 << 20
CAREFUL_BYTES: Final = 64 << 10  # read row by row at once
GENTLE_BLOCK_BYTES: Final = 32 << 10  # the same on the event loop: a millisecond or two between two batches
GENTLE_CAREFUL_BYTES: Final = 4 << 10
GENTLE_BATCH_ROWS: Final = 256
MOST_BYTES: Final = 1 << 62
HEAD_BYTES: Final = 8 << 10  # read row by row until it is known how lines end


@dataclass(slots=True)
class Reading:
    """What has come of a split so far. ``read``: bytes; ``excluded``: rows that WHERE left out."""

    rows: int = 0
    read: int = 0
    excluded: int = 0
    rejects: Rejects = field(default_factory=Rejects)
    next_line: int | None = None


class Bytes(Protocol):
    """Where rows are read from: a file, or what arrives."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end."""


def worker_env(params: tuple[Any, ...] = ()) -> Env:
    """Return the environment for expressions that ask no session for anything (see
    ``engine.changes.bulk.portable``).
    """
    return Env(params, shared=Shared())


def make_decoder(spec: LoadSpec) -> CopyDecoder:
    """Return the decoder of a load's format."""
    relation = spec.relation
    columns = [relation.column(attnum) for attnum in spec.attnums]
    names = [c.name for c in columns]
    if spec.options.format == "json":
        types = facts().types
        arrays = frozenset(
            i for i, c in enumerate(columns) if c.type.oid in types and types[c.type.oid].category == "A"
        )
        return JsonDecoder(spec.options, relation.name, names, arrays)
    decoder = copy_decoder(spec.options, relation.name, names)
    if isinstance(decoder, LineDecoder):
        decoder.digits = frozenset(i for i, c in enumerate(columns) if c.type.oid == BYTEA)
    return decoder


def read_split(
    spec: LoadSpec,
    env: Env,
    split: Split,
    reading: Reading,
    *,
    keep: int = 0,
    gentle: bool = False,
    watch: RowWatch | None = None,
) -> Iterator[Any]:
    """Yield a split's rows as batches; ``reading`` is kept up to date.

    ``keep``: how many rows left out under ON_ERROR ignore are remembered. ``gentle``: in small batches, for
    the event loop. ``watch``: is told where rows stand that it looks out for.

    Raises:
        DataError: of the first bad row; its CONTEXT names line and file.
        SqlError: 58P01, 42501, 58030 for a file that cannot be read.
    """
    progress = CopyProgress("COPY FROM", spec.relation.oid, "FILE")
    loader = RowLoader(spec, env, progress, file=split.name, keep=keep)
    reading.rejects = loader.rejects
    loader.watch = watch
    if spec.options.format == "parquet":
        for batch in ParquetRows(loader, split, GENTLE_BATCH_ROWS if gentle else BATCH_ROWS).batches():
            reading.rows += batch.num_rows
            yield batch
        reading.read, reading.excluded = split.size, progress.excluded
        return
    try:
        with open_bytes(split.path, split.start, split.end) as file:
            for batch in _Lines(loader, split, reading, gentle).batches(file):
                reading.rows += batch.num_rows
                yield batch
    except OSError as error:
        raise file_error(error, split.name, "reading") from None
    finally:
        reading.excluded = progress.excluded


class Broken(Exception):
    """The bytes of a stream have ended before their end."""


def read_stream(spec: LoadSpec, env: Env, stream: Bytes, reading: Reading, *, keep: int = 0) -> Iterator[Any]:
    """Yield the rows of a stream as ``read_split`` those of a file; errors name no file.

    Raises:
        DataError: of the first bad row.
        Broken: as ``stream`` raised it, after all whole rows; ``reading.next_line`` is the one that would come next.
    """
    progress = CopyProgress("COPY FROM", spec.relation.oid, "PIPE")
    loader = RowLoader(spec, env, progress, keep=keep)
    reading.rejects = loader.rejects
    lines = _Lines(loader, whole(0, "", "", MOST_BYTES), reading, False)
    try:
        for batch in lines.batches(stream):
            reading.rows += batch.num_rows
            reading.excluded = progress.excluded
            yield batch
    except Broken:
        reading.next_line = lines.next_line()
        raise
    finally:
        reading.excluded = progress.excluded


class _Lines:
    """Reads a split of a file in a format that bytes are fed to."""

    def __init__(self, loader: RowLoader, split: Split, reading: Reading, gentle: bool) -> None:
        self._block_bytes = GENTLE_BLOCK_BYTES if gentle else BLOCK_BYTES
        self._careful_bytes = GENTLE_CAREFUL_BYTES if gentle else CAREFUL_BYTES
        self._loader = loader
        self._split = split
        self._reading = reading
        self._columns = [shard_column(c) for c in loader.relation.stored_columns]
        self._transcoder = (
            None if loader.spec.encoding == "UTF8" else Transcoder(encoding(loader.spec.encoding))
        )
        self._decoder = decoder = make_decoder(loader.spec)
        if not split.first and isinstance(decoder, LineDecoder | JsonDecoder):
            decoder.resume(split.eol, split.line)
        self._held: list[bytes] = []  # has been read, and is not yet with the decoder
        self._by_column: ColumnLoader | None = None
        if self._transcoder is None and serves(loader, decoder):  # faults come behind the rows before them
            self._by_column = ColumnLoader(loader, self._columns, decoder)

    def batches(self, file: Bytes) -> Iterator[Any]:
        try:
            if self._by_column is None:
                while data := self._next(file, self._block_bytes):
                    yield from self._careful(data)
            else:
                yield from self._plain(file, self._by_column)
            yield from row_batches(self._columns, self._loader.finish(self._decoder))
        except DataError as error:
            if not error.where or f'file "{self._split.name}"' not in error.where:
                error = self._loader.locate(error)
            raise error

    def _next(self, file: Bytes, size: int) -> bytes:
        """Return what comes next of the split, in UTF-8; nothing at its end."""
        transcoder = self._transcoder
        while True:
            split = self._split
            data = file.read(min(size, split.end - split.start - self._reading.read))
            self._reading.read += len(data)
            if not data and self._reading.read < split.end - split.start and split.end != MOST_BYTES:
                raise shrunk(split.name, split.end, split.start + self._reading.read)
            if transcoder is None:
                return data
            if transcoder.fault is not None:
                line = self._decoder.next_line or 1
                raise with_context(transcoder.fault, copy_context(self._loader.relation.name, line))
            text = transcoder.feed(data) if data else transcoder.finish()
            if text or (not data and transcoder.fault is None):
                return text

    def _careful_block(self, blocks: list[bytes]) -> Iterator[Any]:
        """Read the one block row by row; it is taken out of ``blocks``: of a row of many megabytes nothing is
        here twice.
        """
        pieces = [blocks[0][at : at + BLOCK_BYTES] for at in range(0, len(blocks[0]), BLOCK_BYTES)]
        blocks.clear()
        pieces.reverse()
        while pieces:
            yield from self._careful(pieces.pop())

    def _careful(self, data: bytes) -> Iterator[Any]:
        at = 0
        while at < len(data):
            # Where a line has not ended for long, its end is not likely to be near.
            held = self._decoder.rest.size if isinstance(self._decoder, LineDecoder | JsonDecoder) else 0
            size = max(self._careful_bytes, held)
            yield from row_batches(self._columns, self._loader.feed(self._decoder, data[at : at + size]))
            at += size

    def _plain(self, file: Bytes, columns: ColumnLoader) -> Iterator[Any]:
        decoder = columns.decoder
        while (not decoder.eol or decoder.header_pending) and (data := self._next(file, HEAD_BYTES)):
            yield from self._careful(data)
        held = self._held = [decoder.take_rest()]
        size = len(held[0])
        while data := self._next(file, self._block_bytes):
            held.append(data)
            size += len(data)
            if (
                decoder.digits and size > AHEAD_BYTES
            ):  # what has come of a long row is the decoder's, in pieces
                end = data.rfind(b"\n") + 1
                held[-1] = data[: end or len(data)]
                rest = data[end:] if end else b""
                del data
                while held:
                    yield from self._careful(held.pop(0))
                held.append(rest)
                size = len(rest) if end else size
                continue
            if b"\n" not in data:
                continue
            blocks = [b"".join(held)]
            held.clear()
            held.append(parted(blocks, columns.splitter.cut(blocks[0])))
            size = len(held[0])
            del data
            pieces = columns.read(blocks.pop())[::-1]
            while pieces:  # each is let go of before the next one
                yield from self._believe(pieces, columns)
        blocks = [b"".join(held)]
        held.clear()
        yield from self._careful_block(blocks)

    def next_line(self) -> int | None:
        """Read what is held, and return ``CopyDecoder.next_line``. Raises DataError of a bad row in it."""
        for _ in self._careful(b"".join(self._held)):
            pass
        return self._decoder.next_line

    def _believe(self, pieces: list[Piece], columns: ColumnLoader) -> Iterator[Any]:
        """Yield the batches of the piece whose turn has come, the last one, which is taken out of ``pieces``."""
        piece = pieces.pop()
        if piece.columns is not None and columns.decoder.between_rows:
            for _ in () if columns.early else columns.add_defaults(piece.rows, piece.columns):
                pass
            batch = columns.batch(piece.rows, piece.columns)
            watch = self._loader.watch
            if batch is not None and (watch is None or not watch.in_batch(batch)):
                columns.decoder.pass_lines(piece.lines)
                columns.leave_out(piece.excluded)
                handed = [batch]
                del piece, batch
                yield handed.pop()
                return
        blocks = [piece.data]
        del piece
        yield from self._careful_block(blocks)
