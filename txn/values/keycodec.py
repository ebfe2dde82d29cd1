"""Memcomparable keys: bytes that sort as PostgreSQL sorts the key's values, NULLs last.

    key      = column column ...
    column   = 01 value | 02                     (02: NULL, so above every value)

    kind                       value bytes
    int16/32/64, date, time,
    timestamp, timestamptz     8, big-endian, sign bit flipped
    bool                       1
    float32/64                 8, of the double: sign flipped, or all bits if negative; NaN highest, -0 = 0
    decimal, numeric           class, then exponent and digits, inverted if negative; by value: 1.0 = 1.00
    text, bytes, tailed        bytes (of tailed: those compared) with 00 -> 00 FF, then 00
    uuid                       16
    interval                   16: microseconds with months of 30 days, as PostgreSQL compares them
    timetz                     8 + 8: UTC time, then zone
    list                       01 element | 02 ..., 00, then count of dimensions and their sizes; where not all lower
                               bounds are 1, the last size is one off, and they follow (``txn.values.columns.key_dims``)

Encodings are self-delimiting and no column starts with FF, so ``prefix + FF`` lies above every key that starts
with ``prefix`` and below every other one above it: ranges of keys are ranges of bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.huge_values import python_of
from txn.base.types import Key, KeyRange, PhysicalType, bounded
from txn.values.columns import (
    NO_TAIL,
    bound_by_key,
    flatten_list,
    int64_view,
    key_dims,
    nested,
    swap_big_endian,
    to_python,
    without_tail,
)
from txn.values.exact import is_long

NULL = b"\x02"
ABOVE = b"\xff"

_INT_KINDS = frozenset(("int16", "int32", "int64", "date", "time", "timestamp", "timestamptz"))
_INT64_MIN = -(1 << 63)
_LOW = 1 << 31
_DAY_US = 86_400_000_000
_MONTH_US = 30 * _DAY_US
_CUT = frozenset(("text", "bytes", "tailed"))
_OPEN = frozenset(("decimal", "numeric", "list"))
_WIDTH = 16  # bytes of a value of another kind, at most
PIECE = 1 << 16  # characters or bytes of a key that is made piece by piece
_ELEMENTS = 512  # elements likewise
_CHUNK = 4096  # rows encoded in Python between two chances for other threads
_pack_u64 = struct.Struct(">Q").pack
_pack_double = struct.Struct(">d").pack
_unpack_double = struct.Struct(">d").unpack
_INVERT = bytes(255 - i for i in range(256))
_BCD_UP = bytes(min(i + 1, 255) for i in range(256))
_BCD_DOWN = bytes(max(i - 1, 0) for i in range(256))
_SPECIAL_NUMBERS = {1: Decimal("-Infinity"), 3: Decimal(0), 5: Decimal("Infinity"), 6: Decimal("NaN")}


def is_int_kind(type_: PhysicalType) -> bool:
    """Return whether values of the type are plain integers of at most 64 bits."""
    return type_.kind in _INT_KINDS


def _int(value: int) -> bytes:
    return _pack_u64((value + 0x8000_0000_0000_0000) & 0xFFFF_FFFF_FFFF_FFFF)


def _bool(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _float(value: float) -> bytes:
    if value != value:
        return b"\xff\xf8\x00\x00\x00\x00\x00\x00"
    data = _pack_double(value + 0.0)  # -0.0 + 0.0 is 0.0
    if data[0] & 0x80:
        return data.translate(_INVERT)
    return bytes((data[0] | 0x80,)) + data[1:]


def _number(value: Decimal) -> bytes:
    if is_long(value):
        sign = int(value.is_signed())
        whole, _, fraction = format(value.copy_abs(), "f").partition(".")
        text, exponent = whole + fraction, -len(fraction)
    else:
        sign, digits, power = value.as_tuple()
        if not isinstance(power, int):
            if power == "F":
                return b"\x01" if sign else b"\x05"
            return b"\x06"
        text, exponent = "".join(map(str, digits)), power
    significant = text.lstrip("0")
    if not significant:
        return b"\x03"
    # 0.d1d2d3... x 10 ** magnitude, without trailing zeros
    magnitude = len(significant) + exponent
    significant = significant.rstrip("0")
    if len(significant) & 1:
        significant += "0"
    body = (magnitude + 0x4000_0000).to_bytes(4, "big")
    body += bytes.fromhex(significant).translate(_BCD_UP) + b"\x00"
    return b"\x02" + body.translate(_INVERT) if sign else b"\x04" + body


def _bytes(value: bytes) -> bytes:
    return value.replace(b"\x00", b"\x00\xff") + b"\x00"


def _tailed(value: bytes) -> bytes:
    return _bytes(without_tail(value))


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass").replace(b"\x00", b"\x00\xff") + b"\x00"


def _uuid(value: bytes) -> bytes:
    return bytes(value)


def _interval(value: tuple[int, int, int]) -> bytes:
    months, days, us = value
    return (months * _MONTH_US + days * _DAY_US + us + (1 << 127)).to_bytes(16, "big")


def _timetz(value: tuple[int, int]) -> bytes:
    us, west = value
    return _int(us + west * 1_000_000) + _int(west)


def _list_encoder(type_: PhysicalType) -> Callable[[Any], bytes]:
    if type_.element is None:
        raise ValueError("a list type needs an element type")
    element_type = type_.element
    element = value_encoder(element_type)

    def encode(value: tuple[Any, ...]) -> bytes:
        return b"".join(_list_pieces(value, element_type, element))

    return encode


def _list_pieces(
    value: tuple[Any, ...], element_type: PhysicalType, element: Callable[[Any], bytes] | None = None
) -> Iterator[bytes]:
    element = element or value_encoder(element_type)
    dims, elements = flatten_list(value, element_type)
    for at in range(0, len(elements), _ELEMENTS):
        yield b"".join([NULL if v is None else b"\x01" + element(v) for v in elements[at : at + _ELEMENTS]])
    sizes, lows = key_dims(value, dims)
    yield b"".join(
        (
            b"\x00",
            bytes((len(dims),)),
            *[d.to_bytes(4, "big") for d in sizes],
            *[(low + _LOW).to_bytes(4, "big") for low in lows],
        )
    )


_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    **dict.fromkeys(_INT_KINDS, _int),
    "bool": _bool,
    "float32": _float,
    "float64": _float,
    "decimal": _number,
    "numeric": _number,
    "text": _text,
    "bytes": _bytes,
    "tailed": _tailed,
    "uuid": _uuid,
    "interval": _interval,
    "timetz": _timetz,
}


def value_encoder(type_: PhysicalType) -> Callable[[Any], bytes]:
    """Return the encoder of non-NULL values of ``type_``, without the leading 01."""
    if type_.kind == "list":
        return _list_encoder(type_)
    return _ENCODERS[type_.kind]


# -- back from bytes -------------------------------------------------------------------------------

Decoder = Callable[[bytes, int], tuple[Any, int]]
"""``(data, at) -> (value, end)``: the value whose encoding begins at ``at``, and where it ends."""


def _fixed(size: int, decode: Callable[[bytes], Any]) -> Decoder:
    return lambda data, at: (decode(data[at : at + size]), at + size)


def _to_int(data: bytes) -> int:
    return int.from_bytes(data, "big") - 0x8000_0000_0000_0000


def _to_float(data: bytes) -> float:
    if data[0] & 0x80:
        return float(_unpack_double(bytes((data[0] & 0x7F,)) + data[1:])[0])
    return float(_unpack_double(data.translate(_INVERT))[0])


def _to_number(data: bytes, at: int) -> tuple[Decimal, int]:
    kind = data[at]
    at += 1
    if kind in _SPECIAL_NUMBERS:
        return _SPECIAL_NUMBERS[kind], at
    negative = kind == 2
    end = data.index(b"\xff" if negative else b"\x00", at + 4)
    body = data[at:end].translate(_INVERT) if negative else data[at:end]
    magnitude = int.from_bytes(body[:4], "big") - 0x4000_0000
    digits = body[4:].translate(_BCD_DOWN).hex()
    return Decimal(f"{'-' if negative else ''}{digits}E{magnitude - len(digits)}"), end + 1


def _to_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    end = at
    while True:
        end = data.index(b"\x00", end)
        if data[end + 1 : end + 2] != b"\xff":
            return data[at:end].replace(b"\x00\xff", b"\x00"), end + 1
        end += 2


def _to_tailed(data: bytes, at: int) -> tuple[bytes, int]:
    value, end = _to_bytes(data, at)
    return value + NO_TAIL, end


def _to_text(data: bytes, at: int) -> tuple[str, int]:
    value, end = _to_bytes(data, at)
    return value.decode("utf-8", "surrogatepass"), end


def _long_value(kind: str, data: memoryview, at: int) -> tuple[Any, int]:
    """Return the text, or the bytes, whose encoding begins at ``at``, and where that ends."""
    parts: list[memoryview] = []
    found = start = at
    while True:
        piece = bytes(data[found : found + PIECE])
        zero = piece.find(b"\x00")
        if zero < 0:
            found += len(piece)
            continue
        found += zero
        if bytes(data[found + 1 : found + 2]) != b"\xff":
            break
        parts.append(data[start : found + 1])
        found += 2
        start = found
    parts.append(data[start:found])
    whole = parts[0]
    if len(parts) > 1 or kind == "tailed":
        joined = bytearray()
        for part in parts:
            for begin in range(0, len(part), PIECE):
                joined += part[begin : begin + PIECE]
        if kind == "tailed":
            joined += NO_TAIL
        whole = memoryview(joined)
    making = python_of(whole, kind == "text")
    while True:
        try:
            next(making)
        except StopIteration as made:
            return made.value, found + 1


def _to_interval(data: bytes) -> tuple[int, int, int]:
    return 0, 0, int.from_bytes(data, "big") - (1 << 127)


def _to_timetz(data: bytes) -> tuple[int, int]:
    west = _to_int(data[8:])
    return _to_int(data[:8]) - west * 1_000_000, west


def _list_decoder(type_: PhysicalType) -> Decoder:
    if type_.element is None:
        raise ValueError("a list type needs an element type")
    element = value_decoder(type_.element)

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        flat: list[Any] = []
        while data[at]:
            if data[at] == 1:
                value, at = element(data, at + 1)
                flat.append(value)
            else:
                flat.append(None)
                at += 1
        dims = [
            int.from_bytes(data[at + 2 + 4 * i : at + 6 + 4 * i], "big") for i in range(data[at + 1])
        ]  # fmt: skip
        at += 2 + 4 * len(dims)
        off = bound_by_key(dims, len(flat))
        if not off:
            return nested(flat, dims), at
        dims[-1] -= off
        lows = [int.from_bytes(data[at + 4 * i : at + 4 + 4 * i], "big") - _LOW for i in range(len(dims))]
        return bounded(nested(flat, dims), tuple(lows)), at + 4 * len(dims)

    return decode


_DECODERS: dict[str, Decoder] = {
    **dict.fromkeys(_INT_KINDS, _fixed(8, _to_int)),
    "bool": _fixed(1, lambda data: data == b"\x01"),
    "float32": _fixed(8, _to_float),
    "float64": _fixed(8, _to_float),
    "decimal": _to_number,
    "numeric": _to_number,
    "text": _to_text,
    "bytes": _to_bytes,
    "tailed": _to_tailed,
    "uuid": _fixed(16, bytes),
    "interval": _fixed(16, _to_interval),
    "timetz": _fixed(16, _to_timetz),
}


def value_decoder(type_: PhysicalType) -> Decoder:
    """Return the decoder of non-NULL values of ``type_``, without the leading 01."""
    if type_.kind == "list":
        return _list_decoder(type_)
    return _DECODERS[type_.kind]


class KeyCodec:
    """The keys of one index: ``types`` of its columns in index order."""

    __slots__ = ("_decoders", "_encoders", "is_int", "types")

    def __init__(self, types: Sequence[PhysicalType]) -> None:
        """``is_int``: one column of an integer kind, for which sidecars keep plain 64-bit numbers."""
        self.types = tuple(types)
        self._encoders = tuple(value_encoder(t) for t in self.types)
        self._decoders = tuple(value_decoder(t) for t in self.types)
        self.is_int = len(self.types) == 1 and is_int_kind(self.types[0])

    def encode(self, key: Key) -> bytes:
        """Return the bytes of a key or of a prefix of one; None stands for NULL."""
        out = b""
        for value, encoder in zip(key, self._encoders, strict=False):
            out += NULL if value is None else b"\x01" + encoder(value)
        return out

    def pieces(self, key: Key) -> Iterator[bytes]:
        """Yield what ``encode`` returns piece by piece: of huge texts and bytes, and of arrays of many
        elements, some at a time.
        """
        for value, encoder, type_ in zip(key, self._encoders, self.types, strict=False):
            if value is None:
                yield NULL
            elif type_.kind in _CUT and len(value) > PIECE:
                yield b"\x01"
                end = len(value)
                if type_.kind == "tailed":
                    end -= 4 + int.from_bytes(value[-4:], "big")
                for at in range(0, end, PIECE):
                    piece = value[at : min(at + PIECE, end)]
                    if type_.kind == "text":
                        piece = piece.encode("utf-8", "surrogatepass")
                    yield piece.replace(b"\x00", b"\x00\xff")
                yield b"\x00"
            elif type_.kind == "list" and type_.element is not None and len(value) > _CHUNK:
                yield b"\x01"
                yield from _list_pieces(value, type_.element)
            else:
                yield b"\x01" + encoder(value)

    def decode(self, data: bytes) -> Key:
        """Return a full key that encodes to ``data``: equal to the one encoded, not always written alike.

        ``1.00`` comes back as ``1``, an interval as its length in microseconds.
        """
        at = 0
        out = []
        for decoder in self._decoders:
            value = None
            if data[at] == 1:
                value, at = decoder(data, at + 1)
            else:
                at += 1
            out.append(value)
        return tuple(out)

    def decode_long(self, data: memoryview) -> Key:
        """As ``decode``, of a key that may be megabytes, read where it lies: no step of it is long. Runs in a
        thread.
        """
        at = 0
        out = []
        for decoder, type_ in zip(self._decoders, self.types, strict=True):
            value = None
            at += 1
            if data[at - 1] == 1:
                if type_.kind in _CUT:
                    value, at = _long_value(type_.kind, data, at)
                else:
                    width = _WIDTH if type_.kind not in _OPEN else len(data)
                    value, size = decoder(bytes(data[at : at + width]), 0)
                    at += size
            out.append(value)
        return tuple(out)

    def bounds(self, wanted: KeyRange) -> tuple[bytes, bytes]:
        """Return (start, stop): exactly the keys in [start, stop) are in the range.

        A range with a bound holds no key whose bounded column is NULL; one without holds all of the prefix.
        """
        prefix = self.encode(wanted.prefix)
        start, stop = prefix, prefix + ABOVE
        if not (wanted.has_lower or wanted.has_upper):
            return start, stop
        encoder = self._encoders[len(wanted.prefix)]
        stop = prefix + NULL
        if wanted.has_lower:
            if wanted.lower is None:
                return start, start
            at = prefix + b"\x01" + encoder(wanted.lower)
            start = at if wanted.lower_inclusive else at + ABOVE
        if wanted.has_upper:
            if wanted.upper is None:
                return start, start
            at = prefix + b"\x01" + encoder(wanted.upper)
            stop = at + ABOVE if wanted.upper_inclusive else at
        return start, max(start, stop)

    def encode_arrow(self, columns: Sequence[Any], dims: Sequence[Any] | None = None) -> Any:
        """Return the keys of many rows as a pyarrow large_binary array.

        ``columns``: a pyarrow array (not chunked) per key column, of ``txn.values.columns`` types. Integer, text,
        bytes, uuid, bool and float columns are encoded without a Python loop. ``dims``: the companions of
        list columns, None for others. Runs in a thread.
        """
        pieces = [self._arrow_column(c, i, None if dims is None else dims[i]) for i, c in enumerate(columns)]
        if len(pieces) == 1:
            return pieces[0]
        return pc.binary_join_element_wise(*pieces, _binary(b""))

    def _arrow_column(self, column: Any, i: int, dims: Any) -> Any:
        kind = self.types[i].kind
        valid = column
        if kind in _INT_KINDS:
            flipped = pc.bit_wise_xor(int64_view(column).fill_null(0), pa.scalar(_INT64_MIN, pa.int64()))
            valid = swap_big_endian(flipped).cast(pa.large_binary())
        elif kind in ("float32", "float64"):
            valid = _arrow_floats(column)
        elif kind in ("text", "bytes"):
            data = column.cast(pa.large_binary()).fill_null(b"")
            escaped = pc.replace_substring(data, b"\x00", b"\x00\xff")
            valid = pc.binary_join_element_wise(escaped, _binary(b"\x00"), _binary(b""))
        elif kind == "uuid":
            valid = column.cast(pa.large_binary()).fill_null(b"")
        elif kind == "bool":
            valid = pc.if_else(column.fill_null(False), _binary(b"\x01"), _binary(b"\x00"))
        else:
            return self._python_column(column, i, dims)
        marked = pc.binary_join_element_wise(_binary(b"\x01"), valid, _binary(b""))
        if column.null_count:
            marked = pc.if_else(column.is_null(), _binary(NULL), marked)
        return marked

    def _python_column(self, column: Any, i: int, dims: Any) -> Any:
        encoder = self._encoders[i]
        chunks: list[Any] = []
        for at in range(0, len(column), _CHUNK):
            chunk_dims = None if dims is None else dims.slice(at, _CHUNK)
            values = to_python(column.slice(at, _CHUNK), self.types[i], chunk_dims)
            keys = [NULL if v is None else b"\x01" + encoder(v) for v in values]
            chunks.append(pa.array(keys, pa.large_binary()))
        return pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_binary())


def _binary(value: bytes) -> Any:
    return pa.scalar(value, pa.large_binary())


def _arrow_floats(column: Any) -> Any:
    doubles = pc.add(column.cast(pa.float64()).fill_null(0.0), pa.scalar(0.0))
    bits = doubles.view(pa.int64())
    negative = pc.less(bits, pa.scalar(0, pa.int64()))
    ordered = pc.if_else(
        negative, pc.bit_wise_not(bits), pc.bit_wise_xor(bits, pa.scalar(_INT64_MIN, pa.int64()))
    )
    nan = int.from_bytes(b"\xff\xf8\x00\x00\x00\x00\x00\x00", "big", signed=True)
    ordered = pc.if_else(pc.is_nan(doubles), pa.scalar(nan, pa.int64()), ordered)
    return swap_big_endian(ordered).cast(pa.large_binary())
