"""Parquet files with columns of huge values, which are written from where they lie.

    a row group of the table ─┬─ its other columns ──pyarrow──► a small file in memory ──its chunks──┐
                              └─ its huge columns  ──pages of values, piece by piece─────────────────┴──► file
    footers of the small files ──offsets, sizes and codecs of what was really written──► one footer

Arrow's own writer has a value four times before it is in the file: in its table, as encoded, as a page, and
as what it gives to Python. Here it is there once. The pages are those of the format's first version: plain
values, levels of one bit, a checksum each, and zstd in a stream where that is worth it. Footers are Thrift's
compact protocol, read and written as far as they need to be: what is not known of them is kept as it is.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, BinaryIO, Final
from zlib import crc32

import pyarrow as pa

from txn.base.huge_values import views_of
from txn.values.arrow import ArrowTable

PIECE_BYTES: Final = 1 << 20
"""Written and compressed at once; other threads run in between."""
PAGE_BYTES: Final = 8 << 20
"""A page ends with the value that fills it."""
_MAGIC: Final = b"PAR1"
_LENGTH: Final = struct.Struct("<I")

# -- Thrift: a struct is a dict of its fields by number, each with its kind; a list has the kind of its items ----------

_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_BOOLS: Final = (_TRUE, _FALSE)
_INTEGERS: Final = (_I16, _I32, _I64)

Struct = dict[int, tuple[int, Any]]


class _Reader:
    """Reads structs."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _bytes(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def struct(self) -> Struct:
        """Read a struct up to its end."""
        fields: Struct = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = (kind, None if kind in _BOOLS else self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return head & 15, [self._value(head & 15) for _ in range(count)]
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _I8 or kind in _BOOLS:  # bools, too, are bytes in lists
            return self._byte()
        raise ValueError(f"a Parquet footer with a field of the Thrift kind {kind}")


class _Writer:
    """Writes structs to ``data``."""

    def __init__(self) -> None:
        self.data = bytearray()

    def _varint(self, value: int) -> None:
        while value >= 0x80:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def _integer(self, value: int) -> None:
        self._varint(value << 1 if value >= 0 else (~value << 1) | 1)

    def struct(self, fields: Struct) -> None:
        """Write a struct."""
        before = 0
        for number, (kind, value) in sorted(fields.items()):
            if 0 < number - before < 16:
                self.data.append((number - before) << 4 | kind)
            else:
                self.data.append(kind)
                self._integer(number)
            before = number
            if kind not in _BOOLS:
                self._value(kind, value)
        self.data.append(0)

    def _value(self, kind: int, value: Any) -> None:
        if kind in _INTEGERS:
            self._integer(value)
        elif kind == _BINARY:
            self._varint(len(value))
            self.data += value
        elif kind == _STRUCT:
            self.struct(value)
        elif kind in (_LIST, _SET):
            of, items = value
            self.data.append(min(len(items), 15) << 4 | of)
            if len(items) >= 15:
                self._varint(len(items))
            for item in items:
                self._value(of, item)
        elif kind == _DOUBLE:
            self.data += value
        else:
            self.data.append(value)


def written(fields: Struct) -> bytes:
    """Return a struct as it is in a file."""
    writer = _Writer()
    writer.struct(fields)
    return bytes(writer.data)


def read(data: bytes) -> Struct:
    """Return the struct that ``data`` begins with."""
    return _Reader(data).struct()


# -- Parquet's fields that are needed here, by their numbers ---------------------------------------------------------

_META_ROWS, _META_GROUPS = 3, 4
_GROUP_COLUMNS, _GROUP_BYTES, _GROUP_OFFSET, _GROUP_COMPRESSED, _GROUP_ORDINAL = 1, 2, 5, 6, 7
_CHUNK_OFFSET, _CHUNK_META = 2, 3
_PATH, _CODEC, _UNCOMPRESSED, _COMPRESSED, _DATA_AT, _DICTIONARY_AT = 3, 4, 6, 7, 9, 11
_PAGE_COUNTS, _SIZES = 13, 16
_PLAIN, _RLE, _DATA_PAGE = 0, 3, 0
_AS_IT_IS, _ZSTD = 0, 6


def write(
    file: BinaryIO, table: ArrowTable, huge: dict[str, bool], group_rows: int, write_small: Callable[[Any, Any], None]
) -> None:  # fmt: skip
    """Write a table as a Parquet file; in a thread.

    Args:
        file: to write to. table: a pyarrow.Table of one row or more. huge: its columns of text or bytes that
        are written here; True: compressed. group_rows: how many rows a row group has. write_small: writes a
        table, which is one row group, as a Parquet file; the huge columns without compression, dictionary and
        bounds.
    """
    file.write(_MAGIC)
    at = len(_MAGIC)
    footer: Struct = {}
    groups: list[Struct] = []
    for start in range(0, table.num_rows, group_rows):
        rows = table.slice(start, group_rows)
        small = io.BytesIO()
        write_small(_emptied(rows, huge), small)
        data = small.getbuffer()
        length = _LENGTH.unpack_from(data, len(data) - 8)[0]
        meta = read(bytes(data[-8 - length : -8]))
        (group,) = meta[_META_GROUPS][1][1]
        begin = at
        for chunk in group[_GROUP_COLUMNS][1][1]:
            column = chunk[_CHUNK_META][1]
            name = b".".join(column[_PATH][1][1]).decode()
            if name in huge:
                at = _write_column(file, at, column, rows, name, huge[name])
            else:
                at = _copy_column(file, at, column, data)
            chunk[_CHUNK_OFFSET] = (_I64, 0)
        columns = [chunk[_CHUNK_META][1] for chunk in group[_GROUP_COLUMNS][1][1]]
        group[_GROUP_BYTES] = (_I64, sum(c[_UNCOMPRESSED][1] for c in columns))
        group[_GROUP_COMPRESSED] = (_I64, sum(c[_COMPRESSED][1] for c in columns))
        group[_GROUP_OFFSET] = (_I64, begin)
        group[_GROUP_ORDINAL] = (_I16, len(groups))
        groups.append(group)
        footer = footer or meta
    footer[_META_ROWS] = (_I64, table.num_rows)
    footer[_META_GROUPS] = (_LIST, (_STRUCT, groups))
    end = written(footer)
    file.write(end + _LENGTH.pack(len(end)) + _MAGIC)


def _emptied(rows: Any, huge: dict[str, bool]) -> Any:
    """Return rows with empty values instead of huge ones."""
    for name in huge:
        at = rows.schema.get_field_index(name)
        field = rows.schema.field(at)
        empty = ["" if valid else None for valid in rows.column(at).is_valid().to_pylist()]
        rows = rows.set_column(at, field, pa.array(empty, field.type))
    return rows


def _copy_column(file: BinaryIO, at: int, column: Struct, data: memoryview) -> int:
    """Copy a chunk out of a small file, and note where it is now; return where it ends."""
    pages = column[_DATA_AT][1]
    begin = min(pages, column[_DICTIONARY_AT][1]) if _DICTIONARY_AT in column else pages
    size = column[_COMPRESSED][1]
    file.write(data[begin : begin + size])
    for field in (_DATA_AT, _DICTIONARY_AT):
        if field in column:
            column[field] = (_I64, column[field][1] - begin + at)
    return at + int(size)


def _write_column(file: BinaryIO, at: int, column: Struct, rows: Any, name: str, compressed: bool) -> int:
    """Write a chunk of huge values, and note what it is; return where it ends."""
    begin, plain = at, 0
    nullable = rows.schema.field(name).nullable
    for values in _pages(rows.column(name)):
        head = _levels(values) if nullable else b""
        size = len(head) + sum(_LENGTH.size + len(v) for v in values if v is not None)
        body: Sequence[memoryview] | Iterator[memoryview]
        if compressed:
            body = _compressed(_body(head, values))
            stored = sum(map(len, body))
        else:
            stored = size
            body = list(_body(head, values))
        crc = 0
        for piece in body:
            crc = crc32(piece, crc)
        header = written({
            1: (_I32, _DATA_PAGE), 2: (_I32, size), 3: (_I32, stored), 4: (_I32, crc - (crc >> 31 << 32)),
            5: (_STRUCT, {1: (_I32, len(values)), 2: (_I32, _PLAIN), 3: (_I32, _RLE), 4: (_I32, _RLE)}),
        })  # fmt: skip
        file.write(header)
        for piece in body:
            file.write(piece)
        at += len(header) + stored
        plain += len(header) + size
    column[_CODEC] = (_I32, _ZSTD if compressed else _AS_IT_IS)
    column[_UNCOMPRESSED], column[_COMPRESSED] = (_I64, plain), (_I64, at - begin)
    column[_DATA_AT] = (_I64, begin)
    for field in (_PAGE_COUNTS, _SIZES):  # of the empty values; nobody has to have them
        column.pop(field, None)
    return at


def _pages(column: Any) -> Iterator[list[memoryview | None]]:
    """Yield a column's values, those of a page at a time, none of them copied."""
    page: list[memoryview | None] = []
    size = 0
    for chunk in column.chunks:
        for view in views_of(chunk):
            page.append(view)
            size += 0 if view is None else len(view)
            if size >= PAGE_BYTES:
                yield page
                page, size = [], 0
    if page:
        yield page


def _levels(values: Sequence[memoryview | None]) -> bytes:
    """Return which values are not NULL, as runs."""
    writer = _Writer()
    for there, run in groupby(values, lambda value: value is not None):
        writer._varint(sum(1 for _ in run) << 1)
        writer.data.append(there)
    return _LENGTH.pack(len(writer.data)) + writer.data


def _body(head: bytes, values: Sequence[memoryview | None]) -> Iterator[memoryview]:
    """Yield what a page holds, in pieces."""
    yield memoryview(head)
    for value in values:
        if value is not None:
            yield memoryview(_LENGTH.pack(len(value)))
            for at in range(0, len(value), PIECE_BYTES):
                yield value[at : at + PIECE_BYTES]


class _Gathered:
    """A file whose writes are kept as they come."""

    closed = False

    def __init__(self) -> None:
        self.pieces: list[memoryview] = []

    def write(self, data: bytes) -> int:
        """Keep it."""
        self.pieces.append(memoryview(data))
        return len(data)

    def flush(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def _compressed(pieces: Iterator[memoryview]) -> list[memoryview]:
    """Return pieces compressed as one frame."""
    found: Any = _Gathered()
    with pa.CompressedOutputStream(pa.PythonFile(found, mode="w"), "zstd") as stream:
        for piece in pieces:
            stream.write(piece)
    return list(found.pieces)
