"""What of a composite value is compared: its attributes as bytes that order as they do.

    key        = attribute ... FF                    NULLs at the end are left out: an attribute that was added later is one
    attribute  = 01 value | FE                       FE: NULL, so above every value

    integers, dates, times, enums       8, big-endian, sign bit flipped
    float                               8, of the double: sign flipped, or all bits if negative; NaN highest, -0 = 0
    numeric                             ``pgwire.codecs.users.ranges``: by value, 1.0 = 1.00
    text, bytea and what is like them   00 -> 00 FF, then 00 (char(n) without the blanks at its end)
    interval, timetz                    16 each, as PostgreSQL compares them
    arrays                              01 element | FE ..., 00, then the number of dimensions and their sizes; where not all lower
                                        bounds are 1, the last size is one less or more, as they are, and they follow
    composite types                     the key
    jsonb                               rank, then size and parts
    json, jsonpath, snapshots           nothing: they have no order, and whoever compares is refused before

Every form ends itself, so that the key of a row is those of its attributes one after another.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from pgwire.bounded import BoundedArray, ones
from pgwire.codecs import domain
from pgwire.codecs.array import dimensions, flatten
from pgwire.codecs.domain import US_PER_DAY
from pgwire.codecs.users.range_elements import number_key
from pgwire.codecs.users.ranges import MULTIRANGES, RANGES, comparable
from pgwire.give_way import paced

KeyOf = Callable[[Any], bytes]

END: Final = b"\xff"
_VALUE: Final = b"\x01"
_NULL: Final = b"\xfe"
_SIGN: Final = 1 << 63
_MASK: Final = (1 << 64) - 1
_INVERT: Final = bytes(255 - i for i in range(256))
_PACK_DOUBLE: Final = struct.Struct(">d").pack
_MONTH_DAYS: Final = 30
# and pseudo-types that no attribute has
_WITHOUT_ORDER: Final = frozenset((domain.JSON, domain.JSONPATH, domain.TXID_SNAPSHOT, domain.PG_SNAPSHOT))
_NUMBERS: Final = frozenset(
    (
        domain.INT2, domain.INT4, domain.INT8, domain.OID, domain.XID, domain.CID, domain.DATE, domain.TIME,
        domain.TIMESTAMP, domain.TIMESTAMPTZ, domain.XID8, 790, *domain.REG_TYPES,
    )
)  # fmt: skip

_elements: dict[int, int] = {}
"""Array types over users' types: their elements."""
_enums: set[int] = set()
_rows: set[int] = set()
_plain: dict[int, int] = {}
"""Domains: the types under them."""
_made: dict[int, KeyOf] = {}


def know_enum(oid: int, array_oid: int) -> None:
    """Say that a type is an enum."""
    _enums.add(oid)
    _elements[array_oid] = oid


def know_array(array_oid: int, oid: int) -> None:
    """Say that a type is an array of a user's range or multirange type."""
    _elements[array_oid] = oid


def know_row(oid: int, array_oid: int) -> None:
    """Say that a type is composite."""
    _rows.add(oid)
    _elements[array_oid] = oid


def know_domain(oid: int, array_oid: int, plain: int) -> None:
    """Say that a type is a domain over ``plain``; ``array_oid`` 0: there are no arrays of it."""
    _plain[oid] = plain
    if array_oid:
        _elements[array_oid] = plain


def is_row(oid: int) -> bool:
    """Tell whether a type is composite."""
    return oid in _rows


def row_key(values: Sequence[Any], types: Sequence[int]) -> bytes:
    """Return the key of a row: one type for each value."""
    parts: list[bytes] = []
    count = len(values)
    while count and values[count - 1] is None:
        count -= 1
    for value, oid in zip(paced(values[:count]), types, strict=False):
        parts.append(_NULL if value is None else _VALUE + key_of(oid)(value))
    parts.append(END)
    return b"".join(parts)


def forget(oid: int) -> None:
    """Take back what is known of a type."""
    _enums.discard(oid)
    _rows.discard(oid)
    _plain.pop(oid, None)
    _elements.pop(oid, None)
    _made.pop(oid, None)


def key_of(oid: int) -> KeyOf:
    """Return the function from a type's values, not NULL, to their keys."""
    made = _made.get(oid)
    if made is None:
        made = _made[oid] = _make(oid)
    return made


def _make(oid: int) -> KeyOf:
    oid = _plain.get(oid, oid)
    found = _KEYS.get(oid)
    if found is not None:
        return found
    if oid in _NUMBERS or oid in _enums:
        return _int
    if oid in _WITHOUT_ORDER:
        return lambda value: b""
    if oid in _rows:
        return comparable
    element = _elements.get(oid) or domain.ARRAY_ELEMENT.get(oid, 0)
    if element:
        return _array_key(element)
    ranges = RANGES.get(oid) or MULTIRANGES.get(oid)
    if ranges is not None and ranges.tailed:
        return lambda value: _bytes(comparable(value))
    return _any


def _int(value: int) -> bytes:
    return ((value + _SIGN) & _MASK).to_bytes(8, "big")


def _float(value: float) -> bytes:
    if value != value:
        return END * 8
    packed = _PACK_DOUBLE(value + 0.0)
    return packed.translate(_INVERT) if packed[0] & 0x80 else bytes((packed[0] | 0x80,)) + packed[1:]


def _bytes(value: bytes) -> bytes:
    return value.replace(b"\x00", b"\x00\xff") + b"\x00"


def _text(value: str) -> bytes:
    return _bytes(value.encode("utf-8", "surrogatepass"))


def _any(value: Any) -> bytes:
    return _text(value) if isinstance(value, str) else _bytes(value)


def _interval(value: tuple[int, int, int]) -> bytes:
    length = (value[0] * _MONTH_DAYS + value[1]) * US_PER_DAY + value[2]
    return (length + (1 << 127)).to_bytes(16, "big")


def _timetz(value: tuple[int, int]) -> bytes:
    return _int(value[0] + value[1] * 1_000_000) + _int(value[1])


def _array_key(element: int) -> KeyOf:
    inner = key_of(element)
    tuple_leaf = _plain.get(element, element) in domain.TUPLE_TYPES

    def key(value: tuple[Any, ...]) -> bytes:
        sizes = dimensions(value, tuple_leaf)
        items = flatten(value, len(sizes)) if sizes else []
        parts = [_NULL if item is None else _VALUE + inner(item) for item in items]
        parts.append(bytes((0, len(sizes))))
        if type(value) is BoundedArray:
            # There is but one size that fits the number of elements, so that another one next to it only
            # places the bounds.
            sizes = (*sizes[:-1], sizes[-1] + (1 if value.lows > ones(len(sizes)) else -1))
            parts += [size.to_bytes(4, "big") for size in sizes]
            parts += [(low + (1 << 31)).to_bytes(4, "big") for low in value.lows]
        else:
            parts += [size.to_bytes(4, "big") for size in sizes]
        return b"".join(parts)

    return key


def _vector(value: tuple[int, ...]) -> bytes:
    return b"".join([_VALUE + _int(item) for item in value]) + b"\x00"


def _jsonb(text: str) -> bytes:
    value = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    return b"\x01" if value == [] else _json_key(value)


def _json_key(value: Any) -> bytes:
    """Jsonb orders Object > Array > Boolean > Number > String > Null; a whole value that is an empty array is
    below all.
    """
    if value is None:
        return b"\x02"
    if isinstance(value, str):
        return b"\x03" + _text(value)
    if isinstance(value, bool):
        return bytes((5, value))
    if isinstance(value, list):
        items = b"".join(map(_json_key, value))
        return b"\x06" + len(value).to_bytes(4, "big") + items
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda item: (len(item[0].encode()), item[0]))
        parts = b"".join([_text(name) + _json_key(item) for name, item in pairs])
        return b"\x07" + len(pairs).to_bytes(4, "big") + parts
    return b"\x04" + number_key(value)


_KEYS: dict[int, KeyOf] = {
    domain.CITEXT: lambda value: _bytes(comparable(value)),
    domain.BOOL: lambda value: b"\x01" if value else b"\x00",
    domain.FLOAT4: _float,
    domain.FLOAT8: _float,
    domain.NUMERIC: number_key,
    domain.TEXT: _text,
    domain.VARCHAR: _text,
    domain.BPCHAR: lambda value: _text(value.rstrip(" ")),
    domain.INTERVAL: _interval,
    domain.TIMETZ: _timetz,
    domain.TID: lambda value: _int(value >> 16) + _int(value & 0xFFFF),
    domain.INT2VECTOR: _vector,
    domain.OIDVECTOR: _vector,
    domain.JSONB: _jsonb,
}
