"""Dates, times and intervals: operators, comparisons, casts and the clock (Python forms).

Operators and casts are registered under the pg_proc functions that implement them. Arithmetic in calendar units
is ``datetime_values``; extract is ``datetime_extract``, date_trunc and its kin are ``datetime_parts``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from pgwire.codecs.domain import TIMESTAMP_INFINITY, US_PER_DAY
from pgwire.codecs.time.calendar import check_date, check_timestamp, is_infinite, is_infinite_date
from pgwire.codecs.time.zone import Zone
from pgwire.codecs.typmod import apply_interval, apply_time, apply_timestamp
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.time.values import (
    Interval,
    add_interval,
    date_to_instant,
    date_to_timestamp,
    instant,
    interval,
    justify_hours,
    local,
    negate,
    session_zone,
    timestamp_to_date,
)
from planner.functions.values.compare import interval_length, register_comparisons

python = REGISTRY.python

# -- intervals -----------------------------------------------------------------------------------


def interval_add(a: Interval, b: Interval) -> Interval:
    """Add part by part; 22008."""
    return interval(a[0] + b[0], a[1] + b[1], a[2] + b[2])


def interval_subtract(a: Interval, b: Interval) -> Interval:
    """Subtract part by part; 22008."""
    return interval(a[0] - b[0], a[1] - b[1], a[2] - b[2])


def _round_us(seconds: float) -> float:
    return round(seconds * 1_000_000) / 1_000_000


def _scaled(value: Interval, apply: Callable[[int], float]) -> Interval:
    """Multiply or divide each part; what is left of months becomes days, of days time."""

    def whole(part: int) -> int:
        result = apply(part)
        if math.isnan(result) or not -(2.0**31) <= result < 2.0**31:
            raise SqlError("22008", "interval out of range")
        return int(result)

    months, days = whole(value[0]), whole(value[1])
    rest_days = _round_us((apply(value[0]) - months) * 30)
    seconds = _round_us((apply(value[1]) - days + rest_days - int(rest_days)) * 86400)
    if abs(seconds) >= 86400:
        more = int(seconds / 86400)
        days += more
        seconds -= more * 86400
    days += int(rest_days)
    us = apply(value[2]) + seconds * 1_000_000
    if math.isnan(us) or not -(2.0**63) <= us < 2.0**63:
        raise SqlError("22008", "interval out of range")
    return interval(months, days, round(us))


def interval_multiply(value: Interval, factor: float) -> Interval:
    """Multiply by a number; 22008."""
    return _scaled(value, lambda part: part * factor)


def interval_divide(value: Interval, divisor: float) -> Interval:
    """Divide by a number; 22012, 22008."""
    if divisor == 0:
        raise SqlError("22012", "division by zero")
    return _scaled(value, lambda part: part / divisor)


# -- dates and timestamps ------------------------------------------------------------------------


def date_plus(days: int, more: int) -> int:
    """Add days; infinities stay; 22008."""
    return days if is_infinite_date(days) else check_date(days + more)


def date_minus(a: int, b: int) -> int:
    """Return the days between; 22008 for infinities."""
    if is_infinite_date(a) or is_infinite_date(b):
        raise SqlError("22008", "cannot subtract infinite dates")
    return a - b


def timestamp_minus(a: int, b: int) -> Interval:
    """Return days and time between; 22008 for infinities."""
    if is_infinite(a) or is_infinite(b):
        raise SqlError("22008", "cannot subtract infinite timestamps")
    return justify_hours(interval(0, 0, a - b))


def date_and_time(days: int, us: int) -> int:
    """Return date plus time of day."""
    start = date_to_timestamp(days)
    return start if is_infinite(start) else check_timestamp(start + us)


def date_and_timetz(days: int, time: tuple[int, int]) -> int:
    """Return date plus time with zone."""
    start = date_to_timestamp(days)
    return start if is_infinite(start) else check_timestamp(start + time[0] + time[1] * 1_000_000)


def time_plus(us: int, value: Interval) -> int:
    """Add an interval's time, wrapping at midnight."""
    return (us + value[2]) % US_PER_DAY


def timetz_plus(time: tuple[int, int], value: Interval) -> tuple[int, int]:
    """Add an interval's time, wrapping at midnight; the zone stays."""
    return (time[0] + value[2]) % US_PER_DAY, time[1]


def _register_arithmetic() -> None:
    python("interval_pl(interval,interval)", interval_add)
    python("interval_mi(interval,interval)", interval_subtract)
    python("interval_um(interval)", negate)
    python("interval_mul(interval,float8)", interval_multiply)
    python("mul_d_interval(float8,interval)", lambda factor, value: interval_multiply(value, factor))
    python("interval_div(interval,float8)", interval_divide)
    python("date_pli(date,int4)", date_plus)
    python("integer_pl_date(int4,date)", lambda more, days: date_plus(days, more))
    python("date_mii(date,int4)", lambda days, less: date_plus(days, -less))
    python("date_mi(date,date)", date_minus)
    python("date_pl_interval(date,interval)", lambda d, i: add_interval(date_to_timestamp(d), i))
    python("interval_pl_date(interval,date)", lambda i, d: add_interval(date_to_timestamp(d), i))
    python("date_mi_interval(date,interval)", lambda d, i: add_interval(date_to_timestamp(d), negate(i)))
    python("datetime_pl(date,time)", date_and_time)
    python("timestamp(date,time)", date_and_time)
    python("timedate_pl(time,date)", lambda us, days: date_and_time(days, us))
    python("datetimetz_pl(date,timetz)", date_and_timetz)
    python("timestamptz(date,timetz)", date_and_timetz)
    python("timetzdate_pl(timetz,date)", lambda time, days: date_and_timetz(days, time))
    python("timestamp_mi(timestamp,timestamp)", timestamp_minus)
    python("timestamptz_mi(timestamptz,timestamptz)", timestamp_minus)
    python("timestamp_pl_interval(timestamp,interval)", add_interval)
    python("timestamp_mi_interval(timestamp,interval)", lambda us, i: add_interval(us, negate(i)))
    python("interval_pl_timestamp(interval,timestamp)", lambda i, us: add_interval(us, i))
    zoned: dict[str, Callable[..., Any]] = {
        "timestamptz_pl_interval(timestamptz,interval)": lambda s, us, i: add_interval(
            us, i, session_zone(s)
        ),
        "timestamptz_mi_interval(timestamptz,interval)": lambda s, us, i: add_interval(
            us, negate(i), session_zone(s)
        ),
        "interval_pl_timestamptz(interval,timestamptz)": lambda s, i, us: add_interval(
            us, i, session_zone(s)
        ),
    }
    for signature, function in zoned.items():
        python(signature, function, needs_session=True)
    python("time_mi_time(time,time)", lambda a, b: (0, 0, a - b))
    python("time_pl_interval(time,interval)", time_plus)
    python("interval_pl_time(interval,time)", lambda i, us: time_plus(us, i))
    python("time_mi_interval(time,interval)", lambda us, i: time_plus(us, (0, 0, -i[2])))
    python("timetz_pl_interval(timetz,interval)", timetz_plus)
    python("interval_pl_timetz(interval,timetz)", lambda i, time: timetz_plus(time, i))
    python("timetz_mi_interval(timetz,interval)", lambda time, i: timetz_plus(time, (0, 0, -i[2])))


# -- comparisons ---------------------------------------------------------------------------------

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge,
}  # fmt: skip


def timetz_key(time: tuple[int, int]) -> tuple[int, int]:
    """Return what orders times with zone: the UTC time, then the zone."""
    return time[0] + time[1] * 1_000_000, time[1]


def _wide(days: int) -> int:
    """Return a date's midnight in microseconds, of any size."""
    if is_infinite_date(days):
        return TIMESTAMP_INFINITY if days > 0 else -TIMESTAMP_INFINITY
    us = days * US_PER_DAY
    # A date past the last timestamp is above all of them, but below infinity.
    return us if us < TIMESTAMP_INFINITY else TIMESTAMP_INFINITY - 1


def _wide_instant(days: int, place: Zone) -> int:
    us = _wide(days)
    return us if is_infinite(us) else us - place.offset_for_local(us) * 1_000_000


def _by(
    left: Callable[[Any], Any] | None, right: Callable[[Any], Any] | None
) -> dict[str, Callable[[Any, Any], bool]]:
    def make(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
        return lambda a, b: compare(left(a) if left else a, right(b) if right else b)

    return {name: make(compare) for name, compare in _COMPARE.items()}


def _register_comparisons() -> None:
    for t in ("date", "time", "timestamp", "timestamptz"):
        register_comparisons(_COMPARE, f"{t}_%s", t, t, f"{t}_cmp")
        python(f"{t}_larger({t},{t})", max)
        python(f"{t}_smaller({t},{t})", min)
    for t, key in (("interval", interval_length), ("timetz", timetz_key)):
        register_comparisons(_by(key, key), f"{t}_%s", t, t, f"{t}_cmp")
        python(f"{t}_larger({t},{t})", _chooser(key, larger=True))
        python(f"{t}_smaller({t},{t})", _chooser(key, larger=False))
    register_comparisons(_by(_wide, None), "date_%s_timestamp", "date", "timestamp", "date_cmp_timestamp")
    register_comparisons(_by(None, _wide), "timestamp_%s_date", "timestamp", "date", "timestamp_cmp_date")
    keys: dict[str, Callable[[Any, Zone], int]] = {
        "date": _wide_instant,
        "timestamp": lambda us, place: us if is_infinite(us) else us - place.offset_for_local(us) * 1_000_000,
        "timestamptz": lambda us, place: us,
    }
    for left, right in (("date", "timestamptz"), ("timestamp", "timestamptz")):
        for a, b in ((left, right), (right, left)):
            for name, compare in _COMPARE.items():
                python(f"{a}_{name}_{b}({a},{b})", _zoned(keys[a], keys[b], compare), needs_session=True)
            three = _zoned(keys[a], keys[b], lambda x, y: (x > y) - (x < y))
            python(f"{a}_cmp_{b}({a},{b})", three, needs_session=True)


def _zoned(
    left: Callable[[Any, Zone], int], right: Callable[[Any, Zone], int], compare: Callable[[int, int], Any]
) -> Callable[..., Any]:
    def function(session: EvalSession, a: Any, b: Any) -> Any:
        place = session_zone(session)
        return compare(left(a, place), right(b, place))

    return function


def _chooser(key: Callable[[Any], Any], *, larger: bool) -> Callable[[Any, Any], Any]:
    if larger:
        return lambda a, b: a if key(a) > key(b) else b
    return lambda a, b: a if key(a) < key(b) else b


# -- casts ---------------------------------------------------------------------------------------


def _time_of(us: int) -> int | None:
    return None if is_infinite(us) else us % US_PER_DAY


def timestamptz_to_timetz(session: EvalSession, us: int) -> tuple[int, int] | None:
    """Return the local time with its offset; NULL for infinities."""
    if is_infinite(us):
        return None
    offset = session_zone(session).offset_at(us)
    return (us + offset * 1_000_000) % US_PER_DAY, -offset


def time_to_timetz(session: EvalSession, us: int) -> tuple[int, int]:
    """Give a time the offset that the session's zone has today."""
    place = session_zone(session)
    today = local(session.transaction_time_us, place) // US_PER_DAY
    return us, -place.offset_for_local(today * US_PER_DAY + us)


def _register_casts() -> None:
    python("timestamp(date)", date_to_timestamp)
    python("date(timestamp)", timestamp_to_date)
    python("time(timestamp)", _time_of)
    python("time(interval)", lambda value: value[2] % US_PER_DAY)
    python("time(timetz)", lambda time: time[0])
    python("interval(time)", lambda us: (0, 0, us))
    zoned: dict[str, Callable[..., Any]] = {
        "timestamptz(date)": lambda s, days: date_to_instant(days, session_zone(s)),
        "timestamptz(timestamp)": lambda s, us: instant(us, session_zone(s)),
        "timestamptz(date,time)": lambda s, days, us: instant(date_and_time(days, us), session_zone(s)),
        "timestamp(timestamptz)": lambda s, us: local(us, session_zone(s)),
        "date(timestamptz)": lambda s, us: timestamp_to_date(local(us, session_zone(s))),
        "time(timestamptz)": lambda s, us: _time_of(local(us, session_zone(s))),
        "timetz(timestamptz)": timestamptz_to_timetz,
        "timetz(time)": time_to_timetz,
    }
    for signature, function in zoned.items():
        python(signature, function, needs_session=True)
    python("timestamp(timestamp,int4)", _with_typmod(apply_timestamp))
    python("timestamptz(timestamptz,int4)", _with_typmod(apply_timestamp))
    python("time(time,int4)", _with_typmod(apply_time))
    python("timetz(timetz,int4)", lambda time, typmod: (
        time if typmod < 0 else (apply_time(time[0], typmod), time[1])
    ))  # fmt: skip
    python("interval(interval,int4)", _with_typmod(apply_interval))


def _with_typmod(apply: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    return lambda value, typmod: value if typmod < 0 else apply(value, typmod)


# -- clock, series, overlaps ---------------------------------------------------------------------


def _series(start: int, stop: int, step: Interval, place: Zone | None) -> Iterator[int]:
    """Yield ``start``, then each with ``step`` added once more, to ``stop`` inclusive; 22023 for step 0."""
    size = interval_length(step)
    if size == 0:
        raise SqlError("22023", "step size cannot equal zero")
    current = start
    while current <= stop if size > 0 else current >= stop:
        yield current
        if is_infinite(current):
            return
        current = add_interval(current, step, place)


def overlaps(a1: Any, a2: Any, b1: Any, b2: Any) -> bool | None:
    """SQL's OVERLAPS: half-open periods, ends in any order, NULL where it is not decided."""
    if a1 is None:
        a1, a2 = a2, None
        if a1 is None:
            return None
    elif a2 is not None and a1 > a2:
        a1, a2 = a2, a1
    if b1 is None:
        b1, b2 = b2, None
        if b1 is None:
            return None
    elif b2 is not None and b1 > b2:
        b1, b2 = b2, b1
    if a1 == b1:
        return None if a2 is None or b2 is None else True
    if a1 > b1:
        a1, a2, b1, b2 = b1, b2, a1, a2
    # The first period begins earlier: they overlap if it ends after the second begins.
    if a2 is None:
        return None
    if b1 < a2:
        return True
    return None if b2 is None else False


def _overlaps_from(
    add: Callable[..., Any], first: bool, second: bool, *, key: Callable[[Any], Any] | None = None
) -> Callable[..., bool | None]:
    """Return OVERLAPS where the first or second period is given by its length."""

    def end(session: EvalSession | None, start: Any, value: Any) -> Any:
        return None if start is None or value is None else add(session, start, value)

    def function(session: EvalSession | None, a1: Any, a2: Any, b1: Any, b2: Any) -> bool | None:
        if first:
            a2 = end(session, a1, a2)
        if second:
            b2 = end(session, b1, b2)
        return (
            overlaps(*(None if v is None or key is None else key(v) for v in (a1, a2, b1, b2)))
            if key
            else (overlaps(a1, a2, b1, b2))
        )

    return function


def _register_rest() -> None:
    python("now()", lambda s: s.transaction_time_us, needs_session=True)
    python("transaction_timestamp()", lambda s: s.transaction_time_us, needs_session=True)
    python("statement_timestamp()", lambda s: s.statement_time_us, needs_session=True)
    python("clock_timestamp()", lambda s: s.clock_time_us(), needs_session=True)
    python(
        "generate_series(timestamp,timestamp,interval)",
        lambda start, stop, step: _series(start, stop, step, None),
    )
    python(
        "generate_series(timestamptz,timestamptz,interval)",
        lambda s, start, stop, step: _series(start, stop, step, session_zone(s)),
        needs_session=True,
    )
    adders: dict[str, Callable[..., Any]] = {
        "timestamp": lambda _, us, i: add_interval(us, i),
        "timestamptz": lambda s, us, i: add_interval(us, i, session_zone(s)),
        "time": lambda _, us, i: time_plus(us, i),
    }
    for t, add in adders.items():
        for first in (False, True):
            for second in (False, True):
                ends = ["interval" if flag else t for flag in (first, second)]
                signature = f"overlaps({t},{ends[0]},{t},{ends[1]})"
                python(signature, _overlaps_from(add, first, second), needs_session=True)
    python(
        "overlaps(timetz,timetz,timetz,timetz)",
        _overlaps_from(adders["time"], False, False, key=timetz_key),
        needs_session=True,
    )
    for t, test in (("date", is_infinite_date), ("timestamp", is_infinite), ("timestamptz", is_infinite)):
        python(f"isfinite({t})", _finite(test))
    python("isfinite(interval)", lambda value: True)


def _finite(infinite: Callable[[int], bool]) -> Callable[[int], bool]:
    return lambda value: not infinite(value)


_register_arithmetic()
_register_comparisons()
_register_casts()
_register_rest()
