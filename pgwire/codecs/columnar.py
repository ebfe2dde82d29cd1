r"""Arrow record batches -> framed DataRow messages, by column.

    column      cast to text                          12        NULL
    cell        length bytes joined with it           0000 0002 "12"   ffff ffff
    row         'D' + total + columns + cells         one variadic join; its data buffer is the messages

Everything runs inside Arrow's kernels: lengths come from a table of big-endian strings by ``take``, so a row of
five columns costs a third of a microsecond. Where Arrow's text differs from PostgreSQL's (floats, tiny
decimals, years outside 1 to 9999, infinities, other styles than ISO) the column is encoded value by value with the
codecs of ``registry``.

Physical columns are those of the transaction layer's parts and of the engines: timestamps of any unit, numeric
as decimal128 or struct(unscaled, scale), interval as struct(months, days, us), timetz as struct(us, west), uuid
as 16 bytes, arrays as lists or struct(dims, list).
"""

from __future__ import annotations

import array
import functools
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pgwire.codecs import domain, numeric
from pgwire.codecs.domain import DATE_INFINITY, TIMESTAMP_INFINITY
from pgwire.codecs.registry import binary_encoder, codec, kept_for_settings, text_encoder
from pgwire.codecs.rows import format_of
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text.encodings import encoding
from pgwire.codecs.time.zone import zone
from pgwire.give_way import give_way, paced

BatchEncoder: TypeAlias = Callable[[Any], tuple[Any, int]]

_TABLE: Final = 65536
CHUNK_ROWS: Final = 16384
JOINED: Final = 128
"""Columns that are joined in one call."""
LEAST_ROWS: Final = 1024
"""Rows of the widest: a column has a cost of its own for each chunk."""
CHUNK_CELLS: Final = 8 * CHUNK_ROWS
"""Cells of the rows that are joined in one call: some milliseconds."""
_PIECE: Final = 8192  # elements of lists that become values between two looks at the clock
_US: Final = {"s": 1_000_000, "ms": 1000, "us": 1}
_MIN_ISO_US: Final = -62135596800000000  # 0001-01-01
_END_ISO_US: Final = 253402300800000000  # 10000-01-01


@functools.cache
def length_table() -> Any:
    """Return the four-byte lengths 0, 1, 2 … as an Arrow array, to be taken from by length."""
    return pa.array([n.to_bytes(4, "big") for n in range(_TABLE)], pa.binary())


@functools.cache
def _header_table() -> Any:
    """Return the kinds and lengths of DataRows by the total length of their cells; the number of columns follows."""
    return pa.array([b"D" + (n + 6).to_bytes(4, "big") for n in range(_TABLE)], pa.binary())


# -- values out of Arrow -----------------------------------------------------------------------------------


def values_of(column: Any) -> list[Any]:
    """Return an Arrow column as values of the value domain; its Arrow type tells the physical kind.

    Timestamps, dates and times come out as integers, structs as the tuples they stand for.
    """
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        if pa.types.is_time32(kind):
            ints: list[Any] = column.cast(pa.int32()).to_pylist()
        else:
            ints = column.cast(pa.int64()).to_pylist()
        if kind.unit == "ns":
            return [None if v is None else v // 1000 for v in ints]
        scale = _US[kind.unit]
        if scale == 1:
            return ints
        return [None if v is None else v * scale for v in ints]
    if pa.types.is_date32(kind):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_date64(kind):
        return [None if v is None else v // 86_400_000 for v in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_struct(kind):
        return _struct_values(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_values(column)
    if pa.types.is_interval(kind):
        return [None if v is None else (v.months, v.days, v.nanoseconds // 1000) for v in column.to_pylist()]
    if pa.types.is_dictionary(kind):
        return values_of(column.dictionary_decode())
    return list(column.to_pylist())


def _struct_values(column: Any) -> list[Any]:
    names = [field.name for field in column.type]
    parts = [values_of(part) for part in column.flatten()]
    valid = column.is_valid().to_pylist()
    match names:
        case ["u", "s"]:
            return [numeric_value(u, s) if ok else None for u, s, ok in zip(*parts, valid, strict=True)]
        case ["dims", *_]:
            return [
                reshape(items, dims) if ok else None for dims, items, ok in zip(*parts, valid, strict=True)
            ]
        case _:
            rows = zip(*parts, strict=True) if parts else (() for _ in valid)
            return [tuple(row) if ok else None for row, ok in zip(rows, valid, strict=True)]


def numeric_value(unscaled: Any, scale: int) -> Decimal:
    """Build a numeric from its struct; scales -1, -2, -3 stand for NaN, -Infinity, Infinity."""
    if scale < 0:
        return (numeric.NAN, numeric.NEGATIVE_INFINITY, numeric.INFINITY)[-1 - scale]
    return Decimal(int(unscaled)).scaleb(-scale, numeric.CONTEXT)


def reshape(items: Any, dims: Any) -> tuple[Any, ...]:
    """Nest a flat sequence by the length of each dimension."""
    level = list(items)
    for length in reversed(list(dims)[1:]):
        level = [tuple(level[i : i + length]) for i in range(0, len(level), length)]
    return tuple(level)


def _in_pieces(column: Any) -> list[Any]:
    """Return the elements of lists, of which one list may have millions."""
    if len(column) <= _PIECE:
        return values_of(column)
    found: list[Any] = []
    for start in range(0, len(column), _PIECE):
        found += values_of(column.slice(start, _PIECE))
        give_way()
    return found


def _list_values(column: Any) -> list[Any]:
    flat = _in_pieces(column.flatten())
    lengths = pc.list_value_length(column).to_pylist()
    out: list[Any] = []
    at = 0
    for length in paced(lengths):
        if length is None:
            out.append(None)
        else:
            out.append(tuple(flat[at : at + length]))
            at += length
    return out


# -- one column -> binary array of cells' bytes ----------------------------------------------------------


def _by_value(column: Any, encode: Callable[[Any], bytes]) -> Any:
    return pa.array([None if v is None else encode(v) for v in values_of(column)], pa.binary())


def in_encoding(texts: Any, name: str) -> Any:
    """Return a binary array of UTF-8 in a client's encoding. Raises DataError 22P05."""
    if name == "UTF8" or pc.all(pc.string_is_ascii(texts.cast(pa.string()))).as_py() is not False:
        return texts
    write = encoding(name).encode
    return pa.array([None if v is None else write(v.decode()) for v in texts.to_pylist()], pa.binary())


def text_column(column: Any, oid: int, settings: CodecSettings) -> Any:
    """Return the text form of a column as a binary array, in UTF-8."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return text_column(column.dictionary_decode(), oid, settings)
    if pa.types.is_integer(kind) and oid in _INTEGERS:
        return column.cast(pa.string()).cast(pa.binary())
    if pa.types.is_string(kind) and oid not in _PARSED:
        return column.cast(pa.binary())
    if pa.types.is_large_string(kind) and oid not in _PARSED:
        return column.cast(pa.string()).cast(pa.binary())
    if pa.types.is_boolean(kind) and oid == domain.BOOL:
        return pc.if_else(column, pa.scalar(b"t", pa.binary()), pa.scalar(b"f", pa.binary()))
    if pa.types.is_decimal128(kind) and oid == domain.NUMERIC and 0 <= kind.scale <= 6:
        return column.cast(pa.string()).cast(pa.binary())
    limit = _PLAIN_FLOATS.get((oid, str(kind)))
    if limit is not None and settings.extra_float_digits > 0 and _plain_floats(column, limit):
        return column.cast(pa.string()).cast(pa.binary())
    if pa.types.is_date32(kind) and oid == domain.DATE and settings.date_style == "ISO":
        days = pc.min_max(column.cast(pa.int32()))
        if _within(days, -719162, 2932896):
            return column.cast(pa.string()).cast(pa.binary())
    if pa.types.is_timestamp(kind) and settings.date_style == "ISO" and kind.unit == "us":
        quick = _timestamp_text(column, oid, settings)
        if quick is not None:
            return quick
    return _by_value(column, text_encoder(oid, settings))


# Types whose strings, where an engine hands over a string, are not already their text form.
_PARSED: Final = frozenset({domain.BYTEA, domain.UUID, domain.RECORD})
_INTEGERS: Final = frozenset({
    domain.INT2, domain.INT4, domain.INT8, domain.OID, domain.XID, domain.CID, domain.NUMERIC,
})  # fmt: skip


# Both print the shortest digits, and without an exponent up to here (Arrow's limit; PostgreSQL's for float4).
_PLAIN_FLOATS: Final = {(domain.FLOAT8, "double"): 1e10, (domain.FLOAT4, "float"): 1e6}


def _plain_floats(column: Any, limit: float) -> bool:
    """Whether all values are 0 or of a size that Arrow prints as PostgreSQL does."""
    size = pc.abs(column)
    least, most = pc.min(size).as_py(), pc.max(size).as_py()
    if least is None:
        return True
    if not most < limit or pc.any(pc.is_nan(column)).as_py():
        return False
    if least >= 1e-4:
        return True
    smallest = pc.min(size.filter(pc.not_equal(size, pa.scalar(0, column.type)))).as_py()
    return smallest is None or smallest >= 1e-4


def _within(bounds: Any, low: int, end: int) -> bool:
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    return least is None or (least >= low and most < end)


def _timestamp_text(column: Any, oid: int, settings: CodecSettings) -> Any:
    """Return ISO text by kernels, or None where the zone or the years need the codecs."""
    naive = column.cast(pa.int64())
    if not _within(pc.min_max(naive), _MIN_ISO_US + 10**11, _END_ISO_US - 10**11):
        return None
    suffix = ""
    if oid == domain.TIMESTAMPTZ:
        if zone(settings.time_zone).fixed != 0:
            return None
        suffix = "+00"
    elif oid != domain.TIMESTAMP:
        return None
    text = naive.cast(pa.timestamp("us")).cast(pa.string())
    # Arrow prints six digits always.
    text = pc.replace_substring_regex(text, r"\.?0+$", suffix) if suffix == "" else text
    if suffix:
        text = pc.binary_join_element_wise(pc.replace_substring_regex(text, r"\.?0+$", ""), suffix, "")
    return text.cast(pa.binary())


_SWAPPED: Final = {
    domain.INT2: (pa.int16(), "h", 2), domain.INT4: (pa.int32(), "i", 4), domain.INT8: (pa.int64(), "q", 8),
    domain.FLOAT4: (pa.float32(), "f", 4), domain.FLOAT8: (pa.float64(), "d", 8), domain.TIME: (pa.int64(), "q", 8),
    domain.DATE: (pa.int32(), "i", 4), domain.TIMESTAMP: (pa.int64(), "q", 8),
    domain.TIMESTAMPTZ: (pa.int64(), "q", 8),
}  # fmt: skip


def _binary_column(column: Any, oid: int, settings: CodecSettings) -> Any:
    """Return the binary form of a column as a binary array."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _binary_column(column.dictionary_decode(), oid, settings)
    if (pa.types.is_string(kind) or pa.types.is_large_string(kind)) and oid in _TEXTS:
        return in_encoding(column.cast(pa.binary()), settings.encoding)
    swapped = _SWAPPED.get(oid)
    fits = swapped is not None and not pa.types.is_decimal(kind) and not pa.types.is_nested(kind)
    if swapped is not None and fits and sys.byteorder == "little":
        numbers = _wire_numbers(column, oid, swapped[0])
        if numbers is not None:
            return _swap(numbers, swapped[1], swapped[2])
    return _by_value(column, binary_encoder(oid, settings))


_TEXTS: Final = frozenset({domain.TEXT, domain.VARCHAR, domain.BPCHAR, domain.NAME, domain.JSON})


def _wire_numbers(column: Any, oid: int, arrow_type: Any) -> Any:
    """Return the column as the numbers PostgreSQL sends, or None if some value needs the codec."""
    kind = column.type
    if oid in (domain.TIMESTAMP, domain.TIMESTAMPTZ, domain.TIME):
        if not (pa.types.is_timestamp(kind) or pa.types.is_time64(kind)) or kind.unit != "us":
            return None
        numbers = column.cast(pa.int64())
        if oid == domain.TIME:
            return numbers
        if not _within(pc.min_max(numbers), -TIMESTAMP_INFINITY + 1, TIMESTAMP_INFINITY):
            return None
        return pc.subtract(numbers, domain.EPOCH_2000_US)
    if oid == domain.DATE:
        if not pa.types.is_date32(kind):
            return None
        numbers = column.cast(pa.int32())
        if not _within(pc.min_max(numbers), -DATE_INFINITY + 1, DATE_INFINITY):
            return None
        return pc.subtract(numbers, pa.scalar(domain.EPOCH_2000_DAYS, pa.int32()))
    return column.cast(arrow_type) if kind != arrow_type else column


def _swap(numbers: Any, code: str, size: int) -> Any:
    """Byte-swap a numeric column into a binary array of ``size`` bytes each."""
    count = len(numbers)
    filled = pc.fill_null(numbers, 0) if numbers.null_count else numbers
    data = filled.buffers()[1].slice(filled.offset * size, count * size) if count else b""
    swapped = array.array(code, bytes(data))
    swapped.byteswap()
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), count, [None, pa.py_buffer(swapped)])
    cells = fixed.cast(pa.binary())
    return (
        pc.if_else(numbers.is_valid(), cells, pa.scalar(None, pa.binary())) if numbers.null_count else cells
    )


# -- rows ------------------------------------------------------------------------------------------------


def _concatenated(cells: list[Any]) -> Any:
    give_way()
    return pc.binary_join_element_wise(*cells, b"")


def _frame(cells: list[Any], rows: int) -> bytes | Any | None:
    """Join cells of ``rows`` rows to DataRow messages; None if a row is too long for the tables."""
    table = length_table()
    total: Any = None
    joined: list[Any] = []
    for cell in cells:
        give_way()
        length = pc.binary_length(cell)
        prefix: Any
        if cell.null_count:
            known = pc.fill_null(length, 0)
            longest = pc.max(known).as_py()
            if longest is not None and longest >= _TABLE:
                return None
            prefix = pc.if_else(
                cell.is_valid(), table.take(known), pa.scalar(b"\xff\xff\xff\xff", pa.binary())
            )
            cell = pc.fill_null(cell, b"")
            length = known
        else:
            longest = pc.max(length).as_py()
            if longest is not None and longest >= _TABLE:
                return None
            prefix = table.take(length)
        joined += [prefix, cell]
        total = length if total is None else pc.add(total, length)
    total = pc.add(total, 4 * len(cells))
    if pc.max(total).as_py() >= _TABLE:
        return None
    header = _header_table().take(total)
    joined.insert(0, pa.scalar(len(cells).to_bytes(2, "big"), pa.binary()))
    while len(joined) > JOINED:  # a call takes longer for each column the more there are
        joined = [_concatenated(joined[at : at + JOINED]) for at in paced(range(0, len(joined), JOINED), 1)]
    framed = pc.binary_join_element_wise(header, *joined, b"")
    offsets = framed.buffers()[1]
    data = framed.buffers()[2]
    start = int.from_bytes(offsets.slice(framed.offset * 4, 4).to_pybytes(), sys.byteorder)
    end = int.from_bytes(offsets.slice((framed.offset + rows) * 4, 4).to_pybytes(), sys.byteorder)
    return memoryview(data)[start:end]


def _frame_slowly(cells: list[Any]) -> bytearray:
    """Frame rows of any length in Python."""
    out = bytearray()
    columns = len(cells).to_bytes(2, "big")
    for row in zip(*(cell.to_pylist() for cell in cells), strict=True):
        give_way()
        body = bytearray(columns)
        for data in row:
            if data is None:
                body += b"\xff\xff\xff\xff"
            else:
                body += len(data).to_bytes(4, "big")
                body += data
        out += b"D" + (len(body) + 4).to_bytes(4, "big")
        out += body
    return out


@kept_for_settings(256)
def batch_encoder(
    type_oids: tuple[int, ...], formats: tuple[int, ...], settings: CodecSettings
) -> BatchEncoder:
    """Return the function from a RecordBatch to (bytes-like of DataRow messages, number of rows).

    ``type_oids`` are the wire types per column, ``formats`` format codes as in Bind. The result may be a
    memoryview of Arrow memory or a bytearray. Pure: may run in any thread.

    Raises:
        DataError: 0A000 for a type without codec (when a batch needs it); 22P05 for a character that the
        client's encoding lacks.
    """
    each = tuple(format_of(formats, i) for i in range(len(type_oids)))
    at_once = max(min(CHUNK_ROWS, CHUNK_CELLS // max(len(type_oids), 1)), LEAST_ROWS)

    def encode(batch: Any) -> tuple[Any, int]:
        rows = batch.num_rows
        if rows == 0:
            return b"", 0
        if not type_oids:
            return b"D\x00\x00\x00\x06\x00\x00" * rows, rows
        if rows <= at_once:
            return chunk(batch), rows
        out = bytearray()
        for at in range(0, rows, at_once):
            out += chunk(batch.slice(at, at_once))
        return out, rows

    def shown(column: Any, oid: int) -> Any:
        texts = text_column(column, oid, settings)
        return texts if codec(oid).ascii else in_encoding(texts, settings.encoding)

    def chunk(batch: Any) -> Any:
        cells = []
        for i, (oid, format_) in enumerate(zip(type_oids, each, strict=True)):
            give_way()
            column = batch.column(i)
            cells.append(_binary_column(column, oid, settings) if format_ else shown(column, oid))
        framed = _frame(cells, batch.num_rows)
        return _frame_slowly(cells) if framed is None else framed

    return encode
