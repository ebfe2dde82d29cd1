r"""COPY FROM by column: blocks of whole rows -> Arrow columns, where Arrow reads exactly what PostgreSQL reads.

    block of rows  --split_plain-->  one string array per column  --column_reader-->  physical arrays
        |                                  |
        none: the block is not plain       none: the column is not plain

"Plain" is decided before Arrow's answer is believed, because Arrow accepts more than PostgreSQL and elsewhere
less: the bytes of a column must be of a small alphabet, lengths must be those of the one accepted form, results
must lie inside the type's bounds. What is not plain says nothing about its validity: the caller reads the block
with ``copy_in``, or the column value by value, and gets PostgreSQL's answer or error from there.

Everything here is pure and may run in any thread; nearly all of the time is spent without the GIL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from pgwire.codecs import domain
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.time.zone import zone
from pgwire.codecs.typmod import numeric_limits

ColumnReader: TypeAlias = Callable[[Any], Any]
"""A string array -> the array of its values, or None if it is not plain."""

CUT_TRIES: Final = 64  # row ends looked at for one outside quotes
MAX_DIGITS: Final = 38
_EMPTY_LINE: Final = re.compile(rb"\n\n")  # a third of what ``in`` takes, and the GIL is held meanwhile
_BOM: Final = b"\xef\xbb\xbf"
_FIRST_DAY: Final = -719162  # 0001-01-01
_FIRST_US: Final = _FIRST_DAY * 86_400_000_000
_OFFSET: Final = re.compile(r"[+-](?:0[0-9]|1[0-4])")


class PlainSplitter:
    """Splits blocks of one COPY into string columns."""

    __slots__ = ("_convert", "_csv", "_delimiter", "_null", "_quote", "_quoted", "_width")

    def __init__(self, options: CopyOptions, width: int) -> None:
        """Prepare for ``width`` columns; ``serves`` tells for which options that makes sense."""
        self._csv = options.format == "csv"
        self._width = width
        self._delimiter = options.effective_delimiter
        self._null = options.effective_null.encode("utf-8")
        self._quote = b""
        self._quoted: re.Pattern[bytes] | None = None
        if self._csv:
            self._quote = options.effective_quote.encode("utf-8")
            if options.effective_escape == options.effective_quote:
                quote, delimiter = re.escape(self._quote), re.escape(self._delimiter.encode("utf-8"))
                # A quoted field is a whole field: its quotes stand next to delimiters or row ends.
                self._quoted = re.compile(
                    rb"(?:(?<=[%b\n])|\A)%b(?:[^%b]++|%b%b)*+%b(?=[%b\n])"
                    % (delimiter, quote, quote, quote, quote, quote, delimiter)
                )
        self._convert = pcsv.ConvertOptions(
            column_types={f"c{i}": pa.string() for i in range(width)},
            null_values=[options.effective_null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    @staticmethod
    def serves(options: CopyOptions, width: int) -> bool:
        """Return whether blocks under these options can be plain at all."""
        return (
            options.format in ("text", "csv")
            and width > 0
            and not (options.force_null or options.force_not_null)
        )

    def cut(self, block: bytes) -> int:
        """Return where the last whole row of ``block`` ends (0: nowhere); a guess where quotes are odd."""
        end = block.rfind(b"\n") + 1
        if not self._csv or not end or self._quote not in block:
            return end
        odd = block.count(self._quote, 0, end) % 2
        at = end
        for _ in range(CUT_TRIES):
            if not odd:
                return at
            before = block.rfind(b"\n", 0, at - 1) + 1
            if not before:
                break
            odd ^= block.count(self._quote, before, at) % 2
            at = before
        return end

    def split(self, block: bytes, *, crlf: bool = False) -> list[Any] | None:
        """Return one string array per column for a block of whole rows that end in newlines, or None.

        ``crlf``: rows of this COPY end in carriage return and newline. NULLs are those of the null string. None
        also for whatever ``copy_in`` refuses.
        """
        if not block.endswith(b"\n") or b"\0" in block or block.startswith(_BOM):
            return None
        if crlf:
            if not block.count(b"\r") == block.count(b"\n") == block.count(b"\r\n") or self._quotes(block):
                return None
            block = block.replace(b"\r\n", b"\n")
        elif b"\r" in block:
            return None
        if self._null and self._width > 1 and _has_empty_line(block):
            return None  # Arrow takes an empty line for a row of empty fields
        slashes, quotes, quoting = 0, 0, False
        if self._csv:
            if b"\\" in block and (b"\n\\.\n" in block or block.startswith(b"\\.\n")):
                return None
            quoting = self._quotes(block)
            if quoting:
                if self._quoted is None:
                    return None
                quotes = block.count(self._quote)
                if quotes % 2 or (self._null and not self._whole_fields(block)):
                    return None
        elif b"\\" in block:
            slashes = block.count(b"\\")
            if self._null != b"\\N" or slashes != block.count(b"\\N"):
                return None
        columns = self._parse(block, quoting)
        if columns is None:
            return None
        # Without a quote in the data all have opened or closed a field, for Arrow as for PostgreSQL.
        if (
            quotes
            and not self._null
            and _size(columns) + quotes != len(block)
            and not self._whole_fields(block)
        ):
            return None
        # Every backslash is that of a field which is the null string, and nothing else.
        if slashes and sum(c.null_count for c in columns) != slashes:
            return None
        # An empty line is a row of NULLs then: only where all columns have some, there may be one.
        if (
            not self._null
            and self._width > 1
            and all(c.null_count for c in columns)
            and _has_empty_line(block)
        ):
            return None
        return columns

    def _whole_fields(self, block: bytes) -> bool:
        """Return whether all quoted fields are whole ones, so that Arrow reads them, and quotes in them, as
        PostgreSQL.
        """
        if self._quoted is None:
            raise AssertionError("fields are looked at before quotes are")
        return self._quote not in self._quoted.sub(b"", block)

    def _quotes(self, block: bytes) -> bool:
        return self._csv and self._quote in block

    def _parse(self, block: bytes, quoting: bool) -> list[Any] | None:
        source: Any = pa.BufferReader(block)
        try:
            table = pcsv.read_csv(
                source,
                read_options=pcsv.ReadOptions(
                    use_threads=False,
                    block_size=len(block) + 1,
                    column_names=[f"c{i}" for i in range(self._width)],
                ),
                parse_options=pcsv.ParseOptions(
                    delimiter=self._delimiter,
                    quote_char=self._quote.decode("utf-8") if quoting else False,
                    double_quote=quoting,
                    escape_char=False,
                    newlines_in_values=quoting,
                    ignore_empty_lines=False,
                ),
                convert_options=self._convert,
            )
        except pa.ArrowInvalid:
            return None
        return [_whole(column) for column in table.columns]


def _has_empty_line(block: bytes) -> bool:
    return block.startswith(b"\n") or _EMPTY_LINE.search(block) is not None


def _size(columns: list[Any]) -> int:
    """Return how many bytes the fields take with what separates them, but for quotes."""
    return sum(_bytes(column) for column in columns) + len(columns) * len(columns[0])


def _whole(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


# -- what a column is made of --------------------------------------------------------------------------


def _text(column: Any) -> bytes:
    """Return the characters of all values, one behind the other."""
    offsets, data = column.buffers()[1], column.buffers()[2]
    if data is None or not len(column):
        return b""
    bounds = memoryview(offsets).cast("i")
    return bytes(memoryview(data)[bounds[column.offset] : bounds[column.offset + len(column)]])


def _bytes(column: Any) -> int:
    """Return how many bytes all values have together."""
    bounds = memoryview(column.buffers()[1]).cast("i")
    return int(bounds[column.offset + len(column)] - bounds[column.offset])


def _only(column: Any, alphabet: bytes) -> bool:
    """Return whether all characters are of ``alphabet``."""
    return not _text(column).translate(None, alphabet)


def _lengths(column: Any) -> set[int]:
    """Return the lengths in bytes that occur among the values (not NULL)."""
    return {n for n in pc.unique(pc.binary_length(column)).to_pylist() if n is not None}


def _longest(column: Any) -> int:
    return pc.max(pc.binary_length(column)).as_py() or 0


def _longest_whole(column: Any) -> int:
    """Return the most characters before a decimal point."""
    point = pc.find_substring(column, ".")
    whole = pc.if_else(pc.less(point, pa.scalar(0, point.type)), pc.binary_length(column), point)
    return pc.max(whole).as_py() or 0


def _cast(column: Any, type_: Any) -> Any:
    """Cast, or None where a value does not read."""
    try:
        return pc.cast(column, type_)
    except pa.ArrowInvalid:
        return None


# -- readers -------------------------------------------------------------------------------------------


def _integers(type_: Any) -> ColumnReader:
    def read(column: Any) -> Any:
        return _cast(column, type_) if _only(column, b"0123456789-") else None  # no 0x10

    return read


def _floats(type_: Any, tiny: float) -> ColumnReader:
    def read(column: Any) -> Any:
        if not _only(column, b"0123456789-+.eE"):
            return None
        values = _cast(column, type_)
        if values is None or values.null_count == len(values):
            return values
        size = pc.abs(values)
        if pc.max(size).as_py() == float("inf"):
            return None
        small = pc.less(size, pa.scalar(tiny, type_))
        if pc.any(small).as_py() and _text(column.filter(small)).strip(b"0-."):
            return None  # perhaps too small: an error that Arrow does not know
        return values

    return read


def _decimals(precision: int, scale: int) -> ColumnReader:
    type_ = pa.decimal128(precision, scale)

    def read(column: Any) -> Any:
        if not _only(column, b"0123456789-."):
            return None
        longest = _longest(column)
        if longest > MAX_DIGITS or (
            longest > MAX_DIGITS - scale and _longest_whole(column) > MAX_DIGITS - scale
        ):
            return None  # might not fit 128 bits on the way
        # More digits behind the point than the scale, or too many before it, do not read.
        return _cast(column, type_)

    return read


def _numerics(column: Any) -> Any:
    """Read numeric without typmod: unscaled value, and the scale as written."""
    if not _only(column, b"0123456789-.") or _longest(column) > MAX_DIGITS:
        return None
    points = pc.count_substring(column, ".")
    if (pc.max(points).as_py() or 0) > 1:
        return None
    digits = pc.replace_substring(column, ".", "")
    unscaled = _cast(digits, pa.decimal128(MAX_DIGITS, 0))
    if unscaled is None:
        return None
    behind = pc.subtract(pc.subtract(pc.binary_length(column), pc.find_substring(column, ".")), 1)
    scales = pc.if_else(pc.equal(points, pa.scalar(0, points.type)), pa.scalar(0, pa.int32()), behind).cast(
        pa.int32()
    )
    fields = [pa.field("u", unscaled.type), pa.field("s", pa.int32())]
    return pa.StructArray.from_arrays([unscaled, scales], fields=fields, mask=column.is_null())


def _as_it_is(column: Any) -> Any:
    return column


def _varchars(limit: int) -> ColumnReader:
    def read(column: Any) -> Any:
        return column if (pc.max(pc.utf8_length(column)).as_py() or 0) <= limit else None

    return read


def _padded(limit: int) -> ColumnReader:
    def read(column: Any) -> Any:
        if (pc.max(pc.utf8_length(column)).as_py() or 0) > limit:
            return None
        return pc.utf8_rpad(column, limit, " ")

    return read


def _not_before(values: Any, numbers: Any, first: int) -> Any:
    """Return ``values`` if none lies before the year 1, which has another name than Arrow's 0000."""
    least = None if values is None else pc.min(values.view(numbers)).as_py()
    return None if least is not None and least < first else values


def _dates(column: Any) -> Any:
    if not _lengths(column) <= {10} or not _only(column, b"0123456789-"):
        return None
    return _not_before(_cast(column, pa.date32()), pa.int32(), _FIRST_DAY)


# "2024-01-02", or with "03:04:05", or with one to six digits behind that and a point.
_STAMP_LENGTHS: Final = frozenset({10, 19, 21, 22, 23, 24, 25, 26})


def _timestamps(column: Any) -> Any:
    if not _lengths(column) <= _STAMP_LENGTHS or not _only(column, b"0123456789-:. "):
        return None
    return _not_before(_cast(column, pa.timestamp("us")), pa.int64(), _FIRST_US)


def _instants(settings: CodecSettings) -> ColumnReader:
    is_utc = zone(settings.time_zone).fixed == 0
    type_ = pa.timestamp("us", tz="UTC")
    zoned = frozenset(n + 3 for n in _STAMP_LENGTHS - {10})

    def read(column: Any) -> Any:
        if is_utc and (plain := _timestamps(column)) is not None:
            return plain.view(pa.int64()).view(type_)
        if not _lengths(column) <= zoned or not _only(column, b"0123456789-+:. "):
            return None
        tails = pc.unique(pc.utf8_slice_codeunits(column, -3)).to_pylist()
        if not all(tail is None or _OFFSET.fullmatch(tail) for tail in tails):
            return None
        # A day inside the first year's bound, so that an offset cannot lead out of it.
        return _not_before(_cast(column, type_), pa.int64(), _FIRST_US + 86_400_000_000)

    return read


_BOOLS: Final = {"t": True, "f": False, "true": True, "false": False, "1": True, "0": False}


def _bools(column: Any) -> Any:
    words = column.dictionary_encode()
    values = [_BOOLS.get(word) for word in words.dictionary.to_pylist()]
    if None in values:
        return None
    return pa.array(values, pa.bool_()).take(words.indices)


def _uuids(column: Any) -> Any:
    """Read 00112233-4455-6677-8899-aabbccddeeff, which is how PostgreSQL writes them."""
    if not _lengths(column) <= {36}:
        return None
    text = _text(column)
    count = len(column) - column.null_count
    if len(text) != 36 * count:
        return None
    for at in (8, 13, 18, 23):
        if text[at::36] != b"-" * count:
            return None
    if text.count(b"-") != 4 * count or text.translate(None, b"0123456789abcdefABCDEF-"):
        return None
    data = bytes.fromhex(text.replace(b"-", b"").decode("ascii"))
    values = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(data)])
    if not column.null_count:
        return values
    valid = column.is_valid()
    order = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    return values.take(pc.if_else(valid, order, pa.scalar(None, pa.int64())))


def column_reader(oid: int, typmod: int, settings: CodecSettings) -> ColumnReader | None:
    """Return the reader of a column type, whose arrays have the type's physical form; None if there is none.

    The reader answers None for a column that is not plain; what it does answer is what the text decoder and
    the typmod of ``oid`` make of every value.
    """
    match oid:
        case domain.INT2:
            return _integers(pa.int16())
        case domain.INT4:
            return _integers(pa.int32())
        case domain.INT8:
            return _integers(pa.int64())
        case domain.FLOAT8:
            return _floats(pa.float64(), 1e-300)
        case domain.FLOAT4:
            return _floats(pa.float32(), 1e-30)
        case domain.NUMERIC:
            if typmod < 0:
                return _numerics
            precision, scale = numeric_limits(typmod)
            return _decimals(precision, scale) if 0 <= scale <= precision <= MAX_DIGITS else None
        case domain.TEXT:
            return _as_it_is
        case domain.VARCHAR:
            return _as_it_is if typmod < 0 else _varchars(typmod - 4)
        case domain.BPCHAR:
            return _as_it_is if typmod < 0 else _padded(typmod - 4)
        case domain.DATE:
            return _dates
        case domain.TIMESTAMP if not 0 <= typmod < 6:
            return _timestamps
        case domain.TIMESTAMPTZ if not 0 <= typmod < 6:
            return _instants(settings)
        case domain.BOOL:
            return _bools
        case domain.UUID:
            return _uuids
        case _:
            return None
