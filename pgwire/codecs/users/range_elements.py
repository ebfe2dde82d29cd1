"""Elements of ranges as bytes that order as they do and end themselves: what stands in a bound
(``pgwire.codecs.users.ranges``).

    integers, dates, times    8 bytes, sign flipped                    the same width for all: engines find them by their place
    numeric                   01 .. 06, then exponent and digits       display scales apart
    float                     10, 8 bytes                              NaN above all, -0 equal to 0
    text                      11, its bytes, 00                        00 in it as 00 ff
    addresses, uuid           12, their bytes, 00                      likewise
    arrays, intervals, ...    13, what is compared of them, 00         likewise (``pgwire.codecs.users.composite_keys``)

A key but the last is read back without its type.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, Final

from pgwire.codecs import domain

SIGN: Final = 0x8000_0000_0000_0000
MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
FIXED: Final = frozenset(
    (
        domain.INT2, domain.INT4, domain.INT8, domain.OID, domain.DATE, domain.TIME, domain.TIMESTAMP,
        domain.TIMESTAMPTZ, 790,
    )
)  # fmt: skip
"""Types whose values are integers; 790 is money."""
FLOATS: Final = frozenset((domain.FLOAT4, domain.FLOAT8))
TEXTS: Final = frozenset((domain.TEXT, domain.VARCHAR))
# bytea, uuid, inet, cidr, macaddr, macaddr8 (``pgwire.codecs.network``)
BYTES: Final = frozenset((domain.BYTEA, domain.UUID, 869, 650, 829, 774))
SUBTYPES: Final = FIXED | FLOATS | TEXTS | BYTES | {domain.NUMERIC}
"""Types that have keys of their own, from which the values are read back; of others a range keeps the values
beside the keys."""

_INVERT: Final = bytes(255 - i for i in range(256))
_BCD_UP: Final = bytes(min(i + 1, 255) for i in range(256))
_BCD_DOWN: Final = bytes(max(i - 1, 0) for i in range(256))
_SPECIAL: Final = {1: Decimal("-Infinity"), 3: Decimal(0), 5: Decimal("Infinity"), 6: Decimal("NaN")}
_FLOAT, _TEXT, _BYTES, KEPT = 0x10, 0x11, 0x12, 0x13
_DOUBLE: Final = struct.Struct(">d")


def fixed_key(value: int) -> bytes:
    """Return the key of an integer."""
    return ((value + SIGN) & MASK).to_bytes(8, "big")


def number_key(value: Decimal) -> bytes:
    """Return bytes that order as numerics do; they end themselves, and display scales do not count."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return b"\x06" if exponent != "F" else b"\x01" if sign else b"\x05"
    significant = str(Decimal((0, digits, 0)))  # of many digits much sooner than digit by digit
    if significant == "0":
        return b"\x03"
    magnitude = len(significant) + exponent
    significant = significant.rstrip("0")
    significant += "0" * (len(significant) & 1)
    body = (
        (magnitude + 0x4000_0000).to_bytes(4, "big") + bytes.fromhex(significant).translate(_BCD_UP) + b"\x00"
    )
    return b"\x02" + body.translate(_INVERT) if sign else b"\x04" + body


def other_key(subtype: int, value: Any) -> bytes:
    """Return the key of a value of a type that is neither an integer nor numeric."""
    if subtype in FLOATS:
        if value != value:
            return bytes((_FLOAT,)) + b"\xff" * 8
        packed = _DOUBLE.pack(value + 0.0)
        return bytes((_FLOAT,)) + (
            packed.translate(_INVERT) if packed[0] & 0x80 else bytes((packed[0] | 0x80,)) + packed[1:]
        )
    if subtype in TEXTS:
        return bytes((_TEXT,)) + _ended(value.encode("utf-8", "surrogatepass"))
    return bytes((_BYTES,)) + _ended(value)


def kept_key(compared: bytes) -> bytes:
    """Return the key of a value that is kept beside it: ``compared`` is what orders as the type does."""
    return bytes((KEPT,)) + _ended(compared)


def _ended(data: bytes) -> bytes:
    return data.replace(b"\x00", b"\x00\xff") + b"\x00"


def value_of(key: bytes, scale: int) -> Any:
    """Return the value of a key that is no integer's; ``scale``: the display scale of a numeric."""
    kind = key[0]
    if kind == _FLOAT:
        packed = key[1:]
        if packed == b"\xff" * 8:
            return float("nan")
        raw = bytes((packed[0] & 0x7F,)) + packed[1:] if packed[0] & 0x80 else packed.translate(_INVERT)
        return _DOUBLE.unpack(raw)[0]
    if kind in (_TEXT, _BYTES):
        data = key[1:-1].replace(b"\x00\xff", b"\x00")
        return data.decode("utf-8", "surrogatepass") if kind == _TEXT else data
    return _number_of(key, scale)


def _number_of(data: bytes, scale: int) -> Decimal:
    kind = data[0]
    if kind in _SPECIAL:
        value = _SPECIAL[kind]
        return Decimal((0, (0,), -scale)) if kind == 3 else value
    body = data[1:-1].translate(_INVERT) if kind == 2 else data[1:-1]
    magnitude = int.from_bytes(body[:4], "big") - 0x4000_0000
    digits = body[4:].translate(_BCD_DOWN).hex().rstrip("0")
    wanted = max(magnitude + scale, len(digits))
    return Decimal(f"{'-' if kind == 2 else ''}{digits.ljust(wanted, '0')}E{magnitude - wanted}")


def key_end(data: bytes, at: int) -> int:
    """Return where a key that is no integer's ends."""
    kind = data[at]
    if kind in _SPECIAL:
        return at + 1
    if kind == _FLOAT:
        return at + 9
    if kind in (_TEXT, _BYTES, KEPT):
        end = data.index(b"\x00", at + 1)
        while data[end + 1] == 0xFF:  # escaped: behind a key that has ended comes a small number
            end = data.index(b"\x00", end + 2)
        return end + 1
    return data.index(b"\xff" if kind == 2 else b"\x00", at + 5) + 1
