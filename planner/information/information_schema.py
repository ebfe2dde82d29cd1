"""The functions of information_schema: what its views are made with, and what JDBC drivers call.

    information_schema._pg_expandarray(indkey)  ->  (x, n) for each element and its position from 1
    information_schema._pg_char_max_length(atttypid, atttypmod)  ->  20 for varchar(20)

They split a type and its typmod into the columns that the standard has (manual, chapter 37). NULL where a figure
does not apply to the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from planner.facts import (
    BIT,
    BPCHAR,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    VARBIT,
    VARCHAR,
)
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.information.definitions import find_index
from planner.types.facts import interval_fields

MAX_OCTETS = 1 << 30
UTF8_MAX_BYTES = 4
_HEADER = 4  # varchar(n), char(n) and numeric(p,s) keep n or (p,s) plus this in their typmod
_INTEGER_BITS = {INT2: 16, INT4: 32, INT8: 64}
_FLOAT_BITS = {FLOAT4: 24, FLOAT8: 53}
_NO_PRECISION = 0xFFFF


def expand_array(array: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """Yield each element of a one-dimensional array and its position from 1."""
    return ((element, position) for position, element in enumerate(array, 1))


def index_position(session: EvalSession, index_oid: int, number: int) -> int | None:
    """Return the position from 1 of a table's column in an index."""
    found = find_index(session, index_oid)
    if found is None:
        return None
    attnum = found[0].numbered(number)
    attnums = found[1].key_columns + found[1].include
    return attnums.index(attnum) + 1 if attnum in attnums else None


def char_max_length(oid: int, typmod: int) -> int | None:
    """Return character_maximum_length: of char, varchar, bit and varbit with a length."""
    if typmod == -1:
        return None
    if oid in (BPCHAR, VARCHAR):
        return typmod - _HEADER
    return typmod if oid in (BIT, VARBIT) else None


def char_octet_length(oid: int, typmod: int) -> int | None:
    """Return character_octet_length of the text types."""
    if oid not in (TEXT, BPCHAR, VARCHAR):
        return None
    if typmod == -1:
        return MAX_OCTETS
    length = char_max_length(oid, typmod)
    return None if length is None else length * UTF8_MAX_BYTES


def numeric_precision(oid: int, typmod: int) -> int | None:
    """Return numeric_precision: binary digits of integers and floats, decimal ones of numeric(p,s)."""
    if oid == NUMERIC:
        return None if typmod == -1 else ((typmod - _HEADER) >> 16) & 0xFFFF
    return _INTEGER_BITS.get(oid) or _FLOAT_BITS.get(oid)


def numeric_precision_radix(oid: int, typmod: int) -> int | None:
    """Return numeric_precision_radix: 2 or 10."""
    if oid in _INTEGER_BITS or oid in _FLOAT_BITS:
        return 2
    return 10 if oid == NUMERIC else None


def numeric_scale(oid: int, typmod: int) -> int | None:
    """Return numeric_scale: 0 for integers, s of numeric(p,s)."""
    if oid in _INTEGER_BITS:
        return 0
    if oid != NUMERIC or typmod == -1:
        return None
    return (typmod - _HEADER) & 0xFFFF


def datetime_precision(oid: int, typmod: int) -> int | None:
    """Return datetime_precision: digits of the fraction of a second, 0 for dates."""
    if oid == DATE:
        return 0
    if oid in (TIME, TIMETZ, TIMESTAMP, TIMESTAMPTZ):
        return typmod if typmod >= 0 else 6
    if oid == INTERVAL:
        precision = typmod & _NO_PRECISION
        return 6 if typmod < 0 or precision == _NO_PRECISION else precision
    return None


def interval_type(oid: int, typmod: int) -> str | None:
    """Return interval_type: the fields of an interval, e.g. ``DAY TO SECOND``; NULL where all are."""
    if oid != INTERVAL or typmod < 0:
        return None
    return interval_fields(typmod).partition("(")[0].strip().upper() or None


def _register() -> None:
    python: Callable[..., None] = REGISTRY.python
    python("_pg_expandarray(anyarray)", expand_array)
    python("_pg_index_position(oid,int2)", index_position, needs_session=True)
    for name, form in (
        ("char_max_length", char_max_length), ("char_octet_length", char_octet_length),
        ("numeric_precision", numeric_precision), ("numeric_precision_radix", numeric_precision_radix),
        ("numeric_scale", numeric_scale), ("datetime_precision", datetime_precision),
        ("interval_type", interval_type),
    ):  # fmt: skip
        python(f"_pg_{name}(oid,int4)", form)


_register()
