"""extract and date_part: a field of a date, time or interval (Python forms).

A unit is looked up among the words that interval and timestamp input know (``secs``, ``mons`` ...). One that
exists but has no meaning for the type is 0A000, an unknown one 22023. Infinite timestamps give infinity for
units that grow with time (year, epoch ...) and NULL for those that repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pgwire.codecs.domain import (
    EPOCH_1970_JDATE,
    TIMESTAMP_INFINITY,
    US_PER_DAY,
    US_PER_HOUR,
    US_PER_MINUTE,
    US_PER_SECOND,
)
from pgwire.codecs.time.calendar import (
    civil_from_days,
    day_of_year,
    is_infinite,
    is_infinite_date,
    iso_week,
    weekday,
)
from pgwire.codecs.time.fields import WORDS, look_up
from pgwire.codecs.time.interval import UNITS
from planner.base.errors import SqlError
from planner.functions.numbers.numeric import add, div
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.time.values import Interval, session_zone, truncated
from planner.parse.long_names import MAX_NAME_BYTES, cut

python = REGISTRY.python

_NAMES = {
    "timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone", "date": "date",
    "time": "time without time zone", "timetz": "time with time zone", "interval": "interval",
}  # fmt: skip
_EXTRA = {
    "timezone": "timezone", "timezone_h": "timezone_hour", "timezone_m": "timezone_minute",
}  # fmt: skip
_SPECIAL_UNITS = frozenset({"epoch", "dow", "doy", "isodow", "isoyear", "julian"})
_GROWING = frozenset({"year", "decade", "century", "millennium", "julian", "isoyear", "epoch"})


def unit_of(text: str) -> str:
    """Return the canonical name of a unit, or "" if there is none of that name."""
    word = _kept(text)
    found = look_up(word, UNITS)
    if found is not None and found[0] == "units":
        return str(found[1])
    extra = _EXTRA.get(word[:10])
    if extra is not None:
        return extra
    special = look_up(word, WORDS)
    if special is None:
        return ""
    name = str(special[1])
    if special[0] == "units" or name == "epoch":
        return name
    return ""


def _kept(text: str) -> str:
    """Return a unit as it is looked up and told: a name, of which no more is kept than of others."""
    return cut(text[:MAX_NAME_BYTES]).lower()


def refuse_unit(text: str, unit: str, type_name: str, detail: str | None = None) -> SqlError:
    """Return the error for a unit that a type does not have: 0A000, or 22023 for a word (``unit`` empty) that
    is none.
    """
    if unit:
        return SqlError(
            "0A000", f'unit "{_kept(text)}" not supported for type {_NAMES[type_name]}', detail=detail
        )
    return SqlError("22023", f'unit "{_kept(text)}" not recognized for type {_NAMES[type_name]}')


def _scaled(us: int, digits: int) -> Decimal:
    return Decimal(us).scaleb(-digits)


def _time_part(unit: str, us: int) -> Decimal | int | None:
    """Return a unit of a time of day (or of an interval's time, with its sign)."""
    sign, us = (-1, -us) if us < 0 else (1, us)
    match unit:
        case "microsecond":
            return sign * (us % US_PER_MINUTE)
        case "millisecond":
            return _scaled(sign * (us % US_PER_MINUTE), 3)
        case "second":
            return _scaled(sign * (us % US_PER_MINUTE), 6)
        case "minute":
            return sign * (us // US_PER_MINUTE % 60)
        case "hour":
            return sign * (us // US_PER_HOUR)
        case _:
            return None


def _shown_year(year: int) -> int:
    return year if year > 0 else year - 1


def _date_part(unit: str, days: int) -> int | None:
    """Return a unit of a finite date."""
    year, month, day = civil_from_days(days)
    match unit:
        case "day":
            return day
        case "month":
            return month
        case "quarter":
            return (month - 1) // 3 + 1
        case "week":
            return iso_week(days)[1]
        case "year":
            return _shown_year(year)
        case "decade":
            # Floor, so that year 0 (1 BC) belongs to decade 0 and 11 BC to decade -1.
            return year // 10
        case "century":
            return (year + 99) // 100 if year > 0 else -((100 - year) // 100)
        case "millennium":
            return (year + 999) // 1000 if year > 0 else -((1000 - year) // 1000)
        case "isoyear":
            return _shown_year(iso_week(days)[0])
        case "dow":
            return weekday(days)
        case "isodow":
            return weekday(days) or 7
        case "doy":
            return day_of_year(days)
        case _:
            return None


_REPEATING = frozenset({
    "microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "week", "dow", "isodow",
    "doy", "timezone", "timezone_hour", "timezone_minute",
})  # fmt: skip


def _infinite(text: str, unit: str, positive: bool, type_name: str) -> Decimal | None:
    if unit in _GROWING:
        return Decimal("Infinity" if positive else "-Infinity")
    time_of_date = type_name == "date" and unit in (
        "microsecond", "millisecond", "second", "minute", "hour", "timezone", "timezone_hour", "timezone_minute",
    )  # fmt: skip
    if unit in _REPEATING and not time_of_date:
        return None
    raise refuse_unit(text, unit, type_name)


def _julian(days: int, rest: int) -> Decimal:
    return add(Decimal(days + EPOCH_1970_JDATE), div(Decimal(rest), Decimal(US_PER_DAY)))


def extract_timestamp(text: str, us: int) -> Decimal | int | None:
    """extract() from a plain timestamp."""
    unit = unit_of(text)
    if is_infinite(us):
        return _infinite(text, unit, us > 0, "timestamp")
    days, rest = divmod(us, US_PER_DAY)
    if unit == "epoch":
        return _scaled(us, 6)
    if unit == "julian":
        return _julian(days, rest)
    part = _time_part(unit, rest)
    if part is None:
        part = _date_part(unit, days)
    if part is None:
        raise refuse_unit(text, unit, "timestamp")
    return part


def _zone_part(unit: str, offset: int) -> int | None:
    match unit:
        case "timezone":
            return offset
        case "timezone_hour":
            return truncated(offset, 3600)
        case "timezone_minute":
            return int(math.fmod(truncated(offset, 60), 60))
        case _:
            return None


def extract_timestamptz(session: EvalSession, text: str, us: int) -> Decimal | int | None:
    """extract() from a timestamp with time zone, in the session's zone."""
    unit = unit_of(text)
    if is_infinite(us):
        return _infinite(text, unit, us > 0, "timestamptz")
    if unit == "epoch":
        return _scaled(us, 6)
    offset = session_zone(session).offset_at(us)
    part: Decimal | int | None = _zone_part(unit, offset)
    if part is not None:
        return part
    days, rest = divmod(us + offset * US_PER_SECOND, US_PER_DAY)
    if unit == "julian":
        return _julian(days, rest)
    part = _time_part(unit, rest)
    if part is None:
        part = _date_part(unit, days)
    if part is None:
        raise refuse_unit(text, unit, "timestamptz")
    return part


def extract_date(text: str, days: int) -> Decimal | int | None:
    """extract() from a date; units of time are 0A000."""
    unit = unit_of(text)
    if is_infinite_date(days):
        return _infinite(text, unit, days > 0, "date")
    if unit == "epoch":
        return days * 86400
    if unit == "julian":
        return days + EPOCH_1970_JDATE
    part = _date_part(unit, days)
    if part is None:
        raise refuse_unit(text, unit, "date")
    return part


def extract_time(text: str, us: int) -> Decimal | int:
    """extract() from a time of day."""
    unit = unit_of(text)
    part = _scaled(us, 6) if unit == "epoch" else _time_part(unit, us)
    if part is None:
        raise refuse_unit(text, unit, "time")
    return part


def extract_timetz(text: str, time: tuple[int, int]) -> Decimal | int:
    """extract() from a time with zone."""
    unit = unit_of(text)
    if unit == "epoch":
        return _scaled(time[0] + time[1] * US_PER_SECOND, 6)
    part: Decimal | int | None = _zone_part(unit, -time[1])
    if part is None:
        part = _time_part(unit, time[0])
    if part is None:
        raise refuse_unit(text, unit, "timetz")
    return part


def extract_interval(text: str, value: Interval) -> Decimal | int:
    """extract() from an interval; a year counts 365.25 days in its epoch."""
    unit = unit_of(text)
    months, days, us = value
    years = truncated(months, 12)
    rest = months - years * 12
    match unit:
        case "epoch":
            quarter_days = 1461 * years + 120 * rest + 4 * days
            return _scaled(quarter_days * (86400 // 4) * US_PER_SECOND + us, 6)
        case "day":
            return days
        case "month":
            return rest
        case "quarter":
            return truncated(rest, 3) + 1
        case "year":
            return years
        case "decade" | "century" | "millennium":
            return truncated(years, {"decade": 10, "century": 100, "millennium": 1000}[unit])
        case _:
            part = _time_part(unit, us)
    if part is None:
        raise refuse_unit(text, unit, "interval")
    return part


def _interval_part(text: str, value: Interval) -> float:
    """date_part() of an interval."""
    if unit_of(text) == "epoch":
        years = truncated(value[0], 12)
        seconds = value[2] / 1e6 + 365.25 * 86400 * years
        return seconds + 30 * 86400.0 * (value[0] - years * 12) + 86400.0 * value[1]
    return float(extract_interval(text, value))


def _numeric(function: Callable[..., Any]) -> Callable[..., Decimal | None]:
    """Return extract(): the part as numeric."""

    def call(*args: Any) -> Decimal | None:
        part = function(*args)
        return None if part is None else Decimal(part)

    return call


def _double(function: Callable[..., Any]) -> Callable[..., float | None]:
    """Return date_part(): the part as float8, computed in floating point as PostgreSQL does."""

    def call(*args: Any) -> float | None:
        part = function(*args)
        if part is None:
            return None
        if isinstance(part, Decimal) and part.is_finite() and part.as_tuple().exponent == -6:
            return float(int(part.scaleb(6))) / 1e6
        return float(part)

    return call


def _register() -> None:
    for t, function, zoned in (
        ("timestamp", extract_timestamp, False), ("timestamptz", extract_timestamptz, True),
        ("date", extract_date, False), ("time", extract_time, False), ("timetz", extract_timetz, False),
        ("interval", extract_interval, False),
    ):  # fmt: skip
        python(f"extract(text,{t})", _numeric(function), needs_session=zoned)
        if t not in ("date", "interval"):
            python(f"date_part(text,{t})", _double(function), needs_session=zoned)
    part = _double(extract_timestamp)
    python("date_part(text,interval)", _interval_part)
    python(
        "date_part(text,date)",
        lambda text, days: (
            part(text, TIMESTAMP_INFINITY * (1 if days > 0 else -1))
            if is_infinite_date(days)
            else part(text, days * US_PER_DAY)
        ),
    )


_register()
