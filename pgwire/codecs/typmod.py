"""What a declared length, precision or set of fields does to a value.

``typmod_function`` serves input (assignment rules: too long is an error) and casts (``explicit``: cut off), so
both do the same. The typmod encodings are PostgreSQL's:

    varchar, bpchar      length + 4
    bit, varbit          length
    numeric(p,s)         (p << 16 | s & 0x7ff) + 4; s is signed, 11 bits
    time*, timestamp*    digits of the second
    interval             fields << 16 | digits (0xffff: not given)
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Final

from pgwire.bounded import alike
from pgwire.codecs import domain, numeric
from pgwire.codecs.domain import EPOCH_2000_US, TIMESTAMP_INFINITY, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE
from pgwire.codecs.errors import DataError
from pgwire.codecs.time import interval
from pgwire.long.values import bare, cut, padded

_FULL_PRECISION: Final = 0xFFFF


def numeric_limits(typmod: int) -> tuple[int, int]:
    """Return (precision, scale) of a numeric typmod."""
    packed = typmod - 4
    return packed >> 16 & 0xFFFF, ((packed & 0x7FF) ^ 1024) - 1024


def apply_numeric(value: Decimal, typmod: int) -> Decimal:
    """Round to the scale; 22003 ``numeric field overflow`` with its detail when the precision is passed."""
    precision, scale = numeric_limits(typmod)
    if value.is_nan():
        return value
    if value.is_infinite():
        raise DataError(
            "22003",
            "numeric field overflow",
            detail=f"A field with precision {precision}, scale {scale} cannot hold an infinite value.",
        )
    rounded = numeric.round_to(value, scale)
    if rounded and rounded.adjusted() >= precision - scale:
        whole = precision - scale
        limit = f"10^{whole}" if whole else "1"
        raise DataError(
            "22003",
            "numeric field overflow",
            detail=f"A field with precision {precision}, scale {scale} must round to an absolute value "
            f"less than {limit}.",
        )
    return rounded


def apply_varchar(value: str, typmod: int, explicit: bool = False) -> str:
    """Check or cut to the length; blanks past it are always dropped. 22001."""
    length = typmod - 4
    if len(value) <= length:
        return value
    if not explicit and bare(value, length, len(value), " ", left=False)[1] > length:
        raise DataError("22001", f"value too long for type character varying({length})")
    return cut(value, 0, length)


def apply_bpchar(value: str, typmod: int, explicit: bool = False) -> str:
    """Pad with blanks to the length, or check and cut as for varchar. 22001."""
    length = typmod - 4
    if len(value) <= length:
        return padded(value, length)
    if not explicit and bare(value, length, len(value), " ", left=False)[1] > length:
        raise DataError("22001", f"value too long for type character({length})")
    return cut(value, 0, length)


def apply_bit(value: str, typmod: int, explicit: bool = False) -> str:
    """Require the exact length (22026), or cut and fill with zeros on the right when explicit."""
    if len(value) == typmod:
        return value
    if not explicit:
        raise DataError("22026", f"bit string length {len(value)} does not match type bit({typmod})")
    return padded(cut(value, 0, typmod), typmod, "0")


def apply_varbit(value: str, typmod: int, explicit: bool = False) -> str:
    """Check (22001) or cut to the length."""
    if len(value) <= typmod:
        return value
    if not explicit:
        raise DataError("22001", f"bit string too long for type bit varying({typmod})")
    return cut(value, 0, typmod)


def round_half_away(value: int, unit: int) -> int:
    """Round to a multiple of ``unit``, halves away from zero."""
    half = unit // 2
    return (value + half) // unit * unit if value >= 0 else -((half - value) // unit * unit)


def apply_time(value: int, typmod: int) -> int:
    """Round a time of day to ``typmod`` digits of the second."""
    return value if typmod >= 6 else round_half_away(value, 10 ** (6 - typmod))


def apply_timestamp(value: int, typmod: int) -> int:
    """Round a timestamp to ``typmod`` digits of the second, halves away from the year 2000."""
    if typmod >= 6 or value in (TIMESTAMP_INFINITY, -TIMESTAMP_INFINITY):
        return value
    return round_half_away(value - EPOCH_2000_US, 10 ** (6 - typmod)) + EPOCH_2000_US


def interval_limits(typmod: int) -> tuple[int, int]:
    """Return (fields, precision) of an interval typmod; -1 means all of both."""
    if typmod < 0:
        return interval.FULL_RANGE, _FULL_PRECISION
    return typmod >> 16 & 0x7FFF, typmod & 0xFFFF


def apply_interval(value: interval.Interval, typmod: int) -> interval.Interval:
    """Drop what lies right of the declared fields, then round the seconds."""
    fields, precision = interval_limits(typmod)
    months, days, us = value
    if fields != interval.FULL_RANGE:
        if fields == interval.YEAR:
            years = abs(months) // 12 * 12
            months, days, us = (-years if months < 0 else years), 0, 0
        elif fields in (interval.MONTH, interval.YEAR | interval.MONTH):
            days = us = 0
        elif fields == interval.DAY:
            us = 0
        elif not fields & interval.SECOND:
            unit = US_PER_MINUTE if fields & interval.MINUTE else US_PER_HOUR
            us = abs(us) // unit * unit * (-1 if us < 0 else 1)
    if precision < 6:
        us = round_half_away(us, 10 ** (6 - precision))
        if not -(2**63) <= us < 2**63:
            raise DataError("22008", "interval out of range")
    return months, days, us


def typmod_function(type_oid: int, typmod: int, *, explicit: bool = False) -> Callable[[Any], Any] | None:
    """Return what to call on each non-NULL value for a typmod; None where nothing is to be done.

    Works for arrays too (each element).
    """
    if typmod < 0:
        return None
    element = domain.ARRAY_ELEMENT.get(type_oid)
    if element is not None:
        inner = typmod_function(element, typmod, explicit=explicit)
        return None if inner is None else partial(_each, inner, element in domain.TUPLE_TYPES)
    match type_oid:
        case domain.NUMERIC:
            return lambda value: apply_numeric(value, typmod)
        case domain.VARCHAR:
            return lambda value: apply_varchar(value, typmod, explicit)
        case domain.BPCHAR:
            return lambda value: apply_bpchar(value, typmod, explicit)
        case domain.BIT:
            return lambda value: apply_bit(value, typmod, explicit)
        case domain.VARBIT:
            return lambda value: apply_varbit(value, typmod, explicit)
        case domain.TIME:
            return lambda value: apply_time(value, typmod)
        case domain.TIMETZ:
            return lambda value: (min(apply_time(value[0], typmod), US_PER_DAY), value[1])
        case domain.TIMESTAMP | domain.TIMESTAMPTZ:
            return lambda value: apply_timestamp(value, typmod)
        case domain.INTERVAL:
            return lambda value: apply_interval(value, typmod)
        case _:
            return None


def _each(inner: Callable[[Any], Any], leaf_is_tuple: bool, value: Any) -> Any:
    """Return an array's value with ``inner`` of each element."""
    if value is None:
        return None
    is_level = isinstance(value, tuple) and not (
        leaf_is_tuple and value and all(isinstance(item, int) for item in value)
    )
    if not is_level:
        return inner(value)
    return alike(tuple([_each(inner, leaf_is_tuple, item) for item in value]), value)


def apply_typmod(type_oid: int, value: Any, typmod: int, *, explicit: bool = False) -> Any:
    """Apply a typmod to one value; NULL stays NULL. Raises as the functions above."""
    if value is None or typmod < 0:
        return value
    function = typmod_function(type_oid, typmod, explicit=explicit)
    return value if function is None else function(value)
