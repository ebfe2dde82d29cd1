"""Values on their way between a referencing column and the one it refers to.

Both columns compare in one btree family, or the referencing one coerces implicitly; so there are few pairs:

    int2 int4 int8 oid       among each other          the same integers
    float4 float8            among each other          the same floats
    text varchar name        among each other          the same text
    char(n)                  to char(m) and text       blanks at the end do not count
    integer -> numeric       Decimal, and back where it is whole
    integer, numeric -> float    no way back: many values have one float

Values are those of ``planner.types``.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from pgwire.codecs.typmod import typmod_function
from planner.base.errors import SqlError, not_supported
from planner.facts import (
    BPCHAR,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NAME,
    NUMERIC,
    OID,
    REGCLASS,
    REGNAMESPACE,
    REGPROC,
    REGROLE,
    REGTYPE,
    TEXT,
    VARCHAR,
)
from planner.types import SqlType
from planner.types.facts import format_type

Convert = Callable[[Any], Any]

_INTS: Final = frozenset((INT2, INT4, INT8, OID, REGCLASS, REGTYPE, REGROLE, REGNAMESPACE, REGPROC))
_FLOATS: Final = frozenset((FLOAT4, FLOAT8))
_TEXTS: Final = frozenset((TEXT, VARCHAR, NAME))
_BITS: Final = {INT2: 16, INT4: 32, INT8: 64}
_RANGE_WORDS: Final = {INT2: "smallint", INT4: "integer", INT8: "bigint"}

NO_SUCH_VALUE: Final = object()
"""What a conversion answers for a value that the other column cannot hold: nothing equals it there."""


def _same(value: Any) -> Any:
    return value


def _kind(oid: int) -> str:
    if oid in _INTS:
        return "int"
    if oid in _FLOATS:
        return "float"
    if oid in _TEXTS:
        return "text"
    return {NUMERIC: "numeric", BPCHAR: "char"}.get(oid, "")


def converter(source: SqlType, target: SqlType) -> Convert | None:
    """Return what turns a value of ``source`` into the equal one of ``target``; None where none is sure to exist.

    The function answers NO_SUCH_VALUE where ``target`` has no equal value. NULL is not given to it. Raises SqlError
    0A000 for types that are not in the module's table.
    """
    own, other = _kind(source.oid), _kind(target.oid)
    if "char" in (own, other) and own in ("char", "text") and other in ("char", "text"):
        return _blank_converter(target)
    if source.oid == target.oid or (own and own == other):
        return _same
    found = _CONVERTERS.get((own, other))
    if found is not None:
        return found
    if (own, other) in _LOSSY:
        return None
    raise not_supported(f"a foreign key from {format_type(source.oid)} to {format_type(target.oid)}")


def _blank_converter(target: SqlType) -> Convert:
    width = target.typmod - 4 if target.oid == BPCHAR else 0

    def convert(value: str) -> Any:
        text = value.rstrip(" ")
        return NO_SUCH_VALUE if width > 0 and len(text) > width else text.ljust(width)

    return convert


def _whole(value: Decimal) -> Any:
    if not value.is_finite() or value != value.to_integral_value():
        return NO_SUCH_VALUE
    return int(value)


_CONVERTERS: Final[dict[tuple[str, str], Convert]] = {
    ("int", "numeric"): Decimal,
    ("numeric", "int"): _whole,
    ("int", "float"): float,
    ("numeric", "float"): float,
}
_LOSSY: Final = frozenset((("float", "int"), ("float", "numeric")))


def assigner(source: SqlType, target: SqlType) -> Convert:
    """Return what stores a value of ``source`` in a column of ``target`` (ON UPDATE CASCADE).

    The function raises SqlError 22003, 22001 or DataError for values that do not fit. NULL is not given to it.
    """
    own, other = _kind(source.oid), _kind(target.oid)
    fit = typmod_function(target.oid, target.typmod)

    def assign(value: Any) -> Any:
        if other == "int" and own != "int":
            value = int(Decimal(value).to_integral_value(ROUND_HALF_UP) if own == "numeric" else round(value))
        elif other == "numeric" and own != "numeric":
            value = Decimal(repr(value) if own == "float" else value)
        elif other == "float" and own != "float":
            value = float(value)
        elif own == "char" and other == "text":
            value = value.rstrip(" ")
        bits = _BITS.get(target.oid)
        if bits is not None and not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise SqlError("22003", f"{_RANGE_WORDS[target.oid]} out of range")
        return value if fit is None else fit(value)

    return assign


def same_image(old: Any, new: Any) -> bool:
    """Tell whether two values are stored alike: 1.0 and 1.00 are equal but not the same."""
    if old is new:
        return True
    if old is None or new is None or old != new:
        return False
    return not isinstance(old, Decimal | float) or str(old) == str(new)
