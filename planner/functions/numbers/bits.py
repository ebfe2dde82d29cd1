"""bit and varbit: strings of 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_, xor
from typing import Final

from pgwire.give_way import paced
from pgwire.long.values import count, cut, find, joined, mapped, repeated
from planner.base.errors import SqlError
from planner.base.large import concatenated, foresee
from planner.functions.registry import REGISTRY
from planner.functions.values.casts import apply


def _same_length(a: str, b: str, what: str) -> None:
    if len(a) != len(b):
        raise SqlError("22026", f"cannot {what} bit strings of different sizes")


def _number(bits: str) -> int:
    return int(bits, 2) if bits else 0


def _bits(value: int, length: int) -> str:
    return f"{value:0{length}b}" if length else ""


_PIECE: Final = 1 << 16
"""Bits of one call of C."""


def _combined(a: str, b: str, combine: Callable[[int, int], int]) -> str:
    """Combine strings of one length bit by bit."""
    return joined(
        [
            _bits(combine(_number(part), _number(b[at : at + _PIECE])), len(part))
            for at in paced(range(0, len(a), _PIECE), 1)
            for part in (a[at : at + _PIECE],)
        ]
    )


def bit_and(a: str, b: str) -> str:
    """A & b."""
    _same_length(a, b, "AND")
    return _combined(a, b, and_)


def bit_or(a: str, b: str) -> str:
    """A | b."""
    _same_length(a, b, "OR")
    return _combined(a, b, or_)


def bit_xor(a: str, b: str) -> str:
    """A # b."""
    _same_length(a, b, "XOR")
    return _combined(a, b, xor)


def bit_not(bits: str) -> str:
    """~ bits."""
    return mapped(bits, lambda part: part.translate(_OTHER))


_OTHER: Final = {48: "1", 49: "0"}


def shift_left(bits: str, n: int) -> str:
    """Bits << n: the length stays."""
    if n < 0:
        return shift_right(bits, -n)
    n = min(n, len(bits))
    return concatenated(cut(bits, n), repeated("0", n))


def shift_right(bits: str, n: int) -> str:
    """Bits >> n."""
    if n < 0:
        return shift_left(bits, -n)
    n = min(n, len(bits))
    return concatenated(repeated("0", n), cut(bits, 0, len(bits) - n))


def of_int(width: int) -> object:
    """Return the cast integer -> bit(n): sign-extended on the left, the high bits dropped."""

    def cast(value: int, typmod: int) -> str:
        length = typmod if typmod > 0 else 1
        if length <= width:
            return _bits(value % (1 << length), length)
        foresee(length)
        return concatenated(
            repeated("1" if value < 0 else "0", length - width), _bits(value % (1 << width), width)
        )

    return cast


def to_int(width: int, label: str) -> object:
    """Return the cast bit -> integer: the bits as a two's complement number."""

    def cast(bits: str) -> int:
        if len(bits) > width:
            raise SqlError("22003", f"{label} out of range")
        value = _number(bits)
        return value - (1 << width) if len(bits) == width and value >> (width - 1) else value

    return cast


def substring(bits: str, start: int, length: int | None = None) -> str:
    """SQL's ``substring``."""
    if length is None:
        return cut(bits, max(start - 1, 0))
    if length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return cut(bits, max(start - 1, 0), max(start + length - 1, 0))


def overlay(bits: str, new: str, start: int, length: int | None = None) -> str:
    """SQL's ``overlay``."""
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    end = start + (len(new) if length is None else length)
    return joined((cut(bits, 0, start - 1), new, cut(bits, max(end - 1, 0))))


def _index(bits: str, n: int) -> None:
    if not 0 <= n < len(bits):
        raise SqlError("2202E", f"bit index {n} out of valid range (0..{len(bits) - 1})")


def get_bit(bits: str, n: int) -> int:
    """SQL's ``get_bit``: counted from 0 at the left."""
    _index(bits, n)
    return int(bits[n])


def set_bit(bits: str, n: int, value: int) -> str:
    """SQL's ``set_bit``."""
    _index(bits, n)
    if value not in (0, 1):
        raise SqlError("22023", "new bit must be 0 or 1")
    return joined((cut(bits, 0, n), str(value), cut(bits, n + 1)))


def _length_coercion(oid: int) -> object:
    def coerce(bits: str, typmod: int, explicit: bool) -> str:
        return str(apply(oid, bits, typmod, explicit))

    return coerce


def _register() -> None:
    python = REGISTRY.python
    python("bitand(bit,bit)", bit_and)
    python("bitor(bit,bit)", bit_or)
    python("bitxor(bit,bit)", bit_xor)
    python("bitnot(bit)", bit_not)
    python("bitshiftleft(bit,int4)", shift_left)
    python("bitshiftright(bit,int4)", shift_right)
    python("bitcat(varbit,varbit)", concatenated)
    python("length(bit)", len)
    python("bit_length(bit)", len)
    python("octet_length(bit)", lambda b: (len(b) + 7) // 8)
    python("bit_count(bit)", lambda b: count(b, "1"))
    python("bit(int4,int4)", of_int(32))  # type: ignore[arg-type]
    python("bit(int8,int4)", of_int(64))  # type: ignore[arg-type]
    python("int4(bit)", to_int(32, "integer"))  # type: ignore[arg-type]
    python("int8(bit)", to_int(64, "bigint"))  # type: ignore[arg-type]
    python("bit(bit,int4,bool)", _length_coercion(1560))  # type: ignore[arg-type]
    python("varbit(varbit,int4,bool)", _length_coercion(1562))  # type: ignore[arg-type]
    for name in ("substring",):
        python(f"{name}(bit,int4)", substring)
        python(f"{name}(bit,int4,int4)", substring)
    python("overlay(bit,bit,int4)", overlay)
    python("overlay(bit,bit,int4,int4)", overlay)
    python("position(bit,bit)", lambda b, sub: find(b, sub) + 1 if b else 0)
    python("get_bit(bit,int4)", get_bit)
    python("set_bit(bit,int4,int4)", set_bit)


_register()
