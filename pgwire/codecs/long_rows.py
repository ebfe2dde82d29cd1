"""Rows with values of many megabytes: framed messages in pieces, so that a value is never copied as a whole.

    row ──> cells, each a source of pieces ──> lengths, by making the pieces once ──> 'D' length columns | cell pieces …
                                                                                      'd' length         | cell pieces …

The pieces are made twice, once to be counted: the length comes first on the wire. A piece is about ``PIECE_BYTES``, a
fraction of a millisecond to make; b"" stands for one that was counted, so that whoever takes them can let others go on.
What is no text and no bytea (arrays, ranges …) is printed as a whole first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from pgwire.codecs import domain
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import binary_encoder, text_printer
from pgwire.codecs.rows import format_of
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text.encodings import encoding

PIECE_BYTES: Final = 256 << 10
MAX_MESSAGE_BYTES: Final = 0x3FFFFFFF  # PostgreSQL's: no string buffer is longer

Pieces: TypeAlias = Callable[[], Iterator[bytes | memoryview]]
"""The pieces of a cell; the same at each call."""
Cell: TypeAlias = Callable[[Any], Pieces]
"""From a value that is not NULL to its pieces."""
LongRow: TypeAlias = Callable[[tuple[Any, ...]], Iterator[bytes | memoryview]]

_TEXTS: Final = frozenset(
    {domain.TEXT, domain.VARCHAR, domain.BPCHAR, domain.JSON, domain.JSONB, domain.UNKNOWN}
)
_NULL: Final = b"\xff\xff\xff\xff"


def text_pieces(text: str, write: Callable[[str], bytes] = str.encode) -> Iterator[bytes]:
    """Yield a text in an encoding."""
    for at in range(0, len(text), PIECE_BYTES):
        yield write(text[at : at + PIECE_BYTES])


def byte_pieces(data: bytes) -> Iterator[memoryview]:
    """Yield bytes as they are."""
    view = memoryview(data)
    for at in range(0, len(data), PIECE_BYTES):
        yield view[at : at + PIECE_BYTES]


def hex_pieces(value: bytes, prefix: bytes = b"\\x") -> Iterator[bytes]:
    """Yield the hexadecimal form of a bytea."""
    yield prefix
    step = PIECE_BYTES // 2
    for at in range(0, len(value), step):
        yield value[at : at + step].hex().encode("ascii")


def cell_of(oid: int, format_: int, settings: CodecSettings) -> Cell:
    """Return what cuts the wire form of a type's values."""
    if format_ and oid not in _TEXTS - {domain.JSONB}:
        encode = binary_encoder(oid, settings)  # of a bytea: itself

        def binary(value: Any) -> Pieces:
            data = encode(value)
            return lambda: byte_pieces(data)

        return binary
    if oid == domain.BYTEA and settings.bytea_output == "hex":
        return lambda value: lambda: hex_pieces(value)
    write = encoding(settings.encoding).encode
    if oid in _TEXTS:
        return lambda value: lambda: text_pieces(value, write)
    show = text_printer(oid, settings)

    def printed(value: Any) -> Pieces:
        text = show(value)
        return lambda: text_pieces(text, write)

    return printed


def long_data_row(type_oids: Sequence[int], formats: Sequence[int], settings: CodecSettings) -> LongRow:
    """Return the function from a row to the pieces of its DataRow.

    The function raises DataError 22P05 for a character that the client's encoding lacks, 54000 for more than
    a message may hold.
    """
    cells = [cell_of(oid, format_of(formats, i), settings) for i, oid in enumerate(type_oids)]
    columns = len(cells).to_bytes(2, "big")

    def encode(row: tuple[Any, ...]) -> Iterator[bytes | memoryview]:
        pieces = [None if value is None else cell(value) for cell, value in zip(cells, row, strict=True)]
        return _sized(b"D", columns, pieces)

    return encode


def long_binary_row(type_oids: Sequence[int], settings: CodecSettings) -> LongRow:
    """Return the function from a row to the pieces of its CopyData in binary. Raises as ``long_data_row``."""
    cells = [cell_of(oid, 1, settings) for oid in type_oids]
    columns = len(cells).to_bytes(2, "big")

    def encode(row: tuple[Any, ...]) -> Iterator[bytes | memoryview]:
        pieces = [None if value is None else cell(value) for cell, value in zip(cells, row, strict=True)]
        return _sized(b"d", columns, pieces)

    return encode


def _sized(kind: bytes, head: bytes, cells: Sequence[Pieces | None]) -> Iterator[bytes | memoryview]:
    """Frame cells, each behind its length."""
    lengths: list[int] = []
    total = 4 + len(head) + 4 * len(cells)
    for cell in cells:
        length = 0
        if cell is not None:
            for piece in cell():
                length += len(piece)
                yield b""
        lengths.append(length)
        total += length
    yield kind + _length(total) + head
    for cell, length in zip(cells, lengths, strict=True):
        if cell is None:
            yield _NULL
        else:
            yield length.to_bytes(4, "big")
            yield from cell()


def framed_parts(kind: bytes, parts: Sequence[Pieces]) -> Iterator[bytes | memoryview]:
    """Frame what follows one another without lengths of its own."""
    total = 4
    for part in parts:
        for piece in part():
            total += len(piece)
            yield b""
    yield kind + _length(total)
    for part in parts:
        yield from part()


def _length(total: int) -> bytes:
    if total > MAX_MESSAGE_BYTES:
        detail = f"A message of {total} bytes is longer than {MAX_MESSAGE_BYTES}."
        raise DataError("54000", "out of memory", detail=detail)
    return total.to_bytes(4, "big")
