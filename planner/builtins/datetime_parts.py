"""extract, date_part, date_trunc, date_bin, age, justify, make and AT TIME ZONE (Python forms).

A unit is looked up among the words that interval and timestamp input know (``secs``, ``mons`` ...). One that
exists but has no meaning for the type is 0A000, an unknown one 22023. Infinite timestamps give infinity for
units that grow with time (year, epoch ...) and NULL for those that repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pgwire.codecs.calendar import (
    END_TIMESTAMP_US,
    MIN_TIMESTAMP_US,
    civil_from_days,
    day_of_year,
    days_from_civil,
    in_date_range,
    is_infinite,
    is_infinite_date,
    iso_week,
    month_days,
    weekday,
)
from pgwire.codecs.datetime_fields import WORDS, look_up
from pgwire.codecs.domain import (
    EPOCH_1970_JDATE,
    EPOCH_2000_US,
    TIMESTAMP_INFINITY,
    US_PER_DAY,
    US_PER_HOUR,
    US_PER_MINUTE,
    US_PER_SECOND,
)
from pgwire.codecs.interval import UNITS, show_postgres
from planner.builtins.datetime_values import (
    Interval,
    instant,
    interval,
    justify_days,
    justify_hours,
    justify_interval,
    local,
    out_of_range,
    session_zone,
    truncated,
    zone_offset_at,
    zone_offset_for_local,
)
from planner.builtins.numeric import add, div
from planner.builtins.registry import REGISTRY
from planner.builtins.session import EvalSession
from planner.errors import SqlError

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
    word = text.lower()
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


def _refuse(text: str, unit: str, type_name: str, detail: str | None = None) -> SqlError:
    if unit:
        return SqlError(
            "0A000", f'unit "{text.lower()}" not supported for type {_NAMES[type_name]}', detail=detail
        )
    return SqlError("22023", f'unit "{text.lower()}" not recognized for type {_NAMES[type_name]}')


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
    raise _refuse(text, unit, type_name)


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
        raise _refuse(text, unit, "timestamp")
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
        raise _refuse(text, unit, "timestamptz")
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
        raise _refuse(text, unit, "date")
    return part


def extract_time(text: str, us: int) -> Decimal | int:
    """extract() from a time of day."""
    unit = unit_of(text)
    part = _scaled(us, 6) if unit == "epoch" else _time_part(unit, us)
    if part is None:
        raise _refuse(text, unit, "time")
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
        raise _refuse(text, unit, "timetz")
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
        raise _refuse(text, unit, "interval")
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


# -- date_trunc, date_bin ------------------------------------------------------------------------

_SMALL = {
    "hour": US_PER_HOUR, "minute": US_PER_MINUTE, "second": US_PER_SECOND, "millisecond": 1000, "microsecond": 1,
}  # fmt: skip


def _trunc_days(unit: str, days: int) -> int | None:
    """Return the first day of the unit a date lies in, or None for another unit."""
    year, month, _ = civil_from_days(days)
    match unit:
        case "day":
            return days
        case "week":
            return days - (days + 3) % 7
        case "month":
            return days_from_civil(year, month, 1)
        case "quarter":
            return days_from_civil(year, (month - 1) // 3 * 3 + 1, 1)
        case "year":
            return days_from_civil(year, 1, 1)
        case "decade":
            return days_from_civil(year // 10 * 10, 1, 1)
        case "century":
            return days_from_civil((year - 1) // 100 * 100 + 1, 1, 1)
        case "millennium":
            return days_from_civil((year - 1) // 1000 * 1000 + 1, 1, 1)
        case _:
            return None


def trunc_timestamp(text: str, us: int, type_name: str = "timestamp") -> int:
    """date_trunc() of a local time; 22008 if the unit begins before the first timestamp."""
    if is_infinite(us):
        return us
    unit = unit_of(text)
    small = _SMALL.get(unit)
    if small is not None:
        return us // small * small
    days = _trunc_days(unit, us // US_PER_DAY)
    if days is None:
        raise _refuse(text, unit if unit.startswith("timezone") else "", type_name)
    if not in_date_range(days):
        raise out_of_range()
    return days * US_PER_DAY


def trunc_timestamptz(
    text: str, us: int, offset_at: Callable[[int], int], to_instant: Callable[[int], int]
) -> int:
    """date_trunc() in a zone; within a day the offset of the instant stays."""
    if is_infinite(us):
        return us
    offset = offset_at(us) * US_PER_SECOND
    cut = trunc_timestamp(text, us + offset, "timestamptz")
    return cut - offset if unit_of(text) in _SMALL else to_instant(cut)


def _trunc_in_session(session: EvalSession, text: str, us: int) -> int:
    place = session_zone(session)
    return trunc_timestamptz(text, us, place.offset_at, lambda cut: instant(cut, place))


def _trunc_in_zone(session: EvalSession, text: str, us: int, name: str) -> int:
    return trunc_timestamptz(
        text,
        us,
        lambda at: zone_offset_at(name, at),
        lambda cut: cut - zone_offset_for_local(name, cut) * US_PER_SECOND,
    )


def trunc_interval(text: str, value: Interval) -> Interval:
    """date_trunc() of an interval; weeks are 0A000."""
    unit = unit_of(text)
    months, days, us = value
    small = _SMALL.get(unit)
    if small is not None:
        return months, days, truncated(us, small) * small
    scale = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}.get(
        unit
    )
    if scale is not None:
        return truncated(months, scale) * scale, 0, 0
    if unit == "day":
        return months, days, 0
    if unit == "week":
        raise _refuse(text, unit, "interval", "Months usually have fractional weeks.")
    raise _refuse(text, unit if unit.startswith("timezone") else "", "interval")


INT8_MAX = 2**63 - 1


def date_bin(stride: Interval, us: int, origin: int) -> int:
    """Return the start of the bin of ``stride`` from ``origin`` that ``us`` lies in; 0A000, 22008."""
    if is_infinite(us):
        return us
    if is_infinite(origin):
        raise SqlError("22008", "origin out of range")
    if stride[0]:
        raise SqlError("0A000", "timestamps cannot be binned into intervals containing months or years")
    size = stride[1] * US_PER_DAY + stride[2]
    if size > INT8_MAX:
        raise SqlError("22008", "interval out of range")
    if size <= 0:
        raise SqlError("22008", "stride must be greater than zero")
    if abs(us - origin) > INT8_MAX:
        raise SqlError("22008", "interval out of range")
    start = origin + (us - origin) // size * size
    if not MIN_TIMESTAMP_US <= start < END_TIMESTAMP_US:
        raise out_of_range()
    return start


# -- age, make, time zones -----------------------------------------------------------------------


def age(later: int, earlier: int) -> Interval:
    """Return years, months, days and time between two local times."""
    if is_infinite(later) or is_infinite(earlier):
        raise out_of_range()
    flip = later < earlier
    high, low = (earlier, later) if flip else (later, earlier)
    high_days, high_us = divmod(high, US_PER_DAY)
    low_days, low_us = divmod(low, US_PER_DAY)
    y1, m1, d1 = civil_from_days(high_days)
    y2, m2, d2 = civil_from_days(low_days)
    years, months, days, us = y1 - y2, m1 - m2, d1 - d2, high_us - low_us
    if us < 0:
        us += US_PER_DAY
        days -= 1
    while days < 0:
        # The length of the earlier timestamp's month.
        days += month_days(y2, m2)
        months -= 1
    while months < 0:
        months += 12
        years -= 1
    sign = -1 if flip else 1
    return interval(sign * (years * 12 + months), sign * days, sign * us)


def _today(session: EvalSession) -> int:
    return local(session.transaction_time_us, session_zone(session)) // US_PER_DAY * US_PER_DAY


def _age_tz(session: EvalSession, later: int, earlier: int) -> Interval:
    place = session_zone(session)
    return age(local(later, place), local(earlier, place))


def make_date(year: int, month: int, day: int) -> int:
    """Return a date; a negative year is BC; 22008."""
    astronomical = year + 1 if year < 0 else year
    fits = year != 0 and 1 <= month <= 12 and day >= 1 and abs(year) < 6_000_000
    if not fits or day > month_days(astronomical, month):
        raise SqlError("22008", f"date field value out of range: {year}-{month:02d}-{day:02d}")
    days = days_from_civil(astronomical, month, day)
    if not in_date_range(days):
        raise SqlError("22008", f"date out of range: {year}-{month:02d}-{day:02d}")
    return days


def make_time(hour: int, minute: int, second: float) -> int:
    """Return a time of day; 22008."""
    us = -1
    if 0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= second <= 60:
        us = (hour * 60 + minute) * US_PER_MINUTE + round(second * US_PER_SECOND)
    if not 0 <= us <= US_PER_DAY:
        shown = f"{second:02g}" if second >= 10 or second != int(second or 0) else f"{int(second):02d}"
        raise SqlError("22008", f"time field value out of range: {hour}:{minute:02d}:{shown}")
    return us


def make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    """Return a timestamp; 22008."""
    us = make_date(year, month, day) * US_PER_DAY + make_time(hour, minute, second)
    if us >= TIMESTAMP_INFINITY:
        raise SqlError(
            "22008", f"timestamp out of range: {year}-{month:02d}-{day:02d} {hour}:{minute:02d}:{second:02g}"
        )
    return us


def make_interval(
    years: int, months: int, weeks: int, days: int, hours: int, minutes: int, seconds: float
) -> Interval:
    """Return an interval; 22008."""
    if math.isinf(seconds) or math.isnan(seconds):
        raise SqlError("22008", "interval out of range")
    us = hours * US_PER_HOUR + minutes * US_PER_MINUTE + round(seconds * US_PER_SECOND)
    return interval(years * 12 + months, weeks * 7 + days, us)


def _make_timestamptz(session: EvalSession, *parts: Any) -> int:
    us = make_timestamp(*parts[:6])
    if len(parts) > 6:
        name: str = parts[6]
        if name[:1].isdigit():
            raise SqlError(
                "22023",
                f'invalid input syntax for type numeric time zone: "{name}"',
                hint='Numeric time zones must have "-" or "+" as first character.',
            )
        if name[:1] in "+-" and len(name) > 1:
            from pgwire.codecs.datetime_fields import Bad, offset_seconds

            try:
                return us - offset_seconds(name) * US_PER_SECOND
            except Bad as bad:
                if bad.reason == "zone":
                    raise SqlError("22023", f'numeric time zone "{name}" out of range') from None
                raise SqlError("22023", f'time zone "{name}" not recognized') from None
        return us - zone_offset_for_local(name, us) * US_PER_SECOND
    return instant(us, session_zone(session))


def epoch_to_timestamptz(seconds: float) -> int:
    """to_timestamp(float8); 22008 for NaN and what does not fit."""
    if math.isnan(seconds):
        raise SqlError("22008", "timestamp cannot be NaN")
    if math.isinf(seconds):
        return TIMESTAMP_INFINITY if seconds > 0 else -TIMESTAMP_INFINITY
    us = round((seconds - EPOCH_2000_US / US_PER_SECOND) * US_PER_SECOND) + EPOCH_2000_US
    if not -211813488000000000 <= us < TIMESTAMP_INFINITY:
        raise SqlError("22008", f'timestamp out of range: "{seconds:g}"')
    return us


def _zone_interval(value: Interval) -> int:
    """Return the offset in microseconds that an interval stands for; 22023 with months or days."""
    if value[0] or value[1]:
        raise SqlError(
            "22023", f'interval time zone "{show_postgres(value)}" must not include months or days'
        )
    return value[2]


def _register_zones() -> None:
    def shift(us: int, offset: int) -> int:
        if is_infinite(us):
            return us
        moved = us + offset
        if not -211813488000000000 <= moved < TIMESTAMP_INFINITY:
            raise out_of_range()
        return moved

    def to_local(name: str, us: int) -> int:
        return us if is_infinite(us) else shift(us, zone_offset_at(name, us) * US_PER_SECOND)

    def to_instant(name: str, us: int) -> int:
        return us if is_infinite(us) else shift(us, -zone_offset_for_local(name, us) * US_PER_SECOND)

    def timetz(offset: int, time: tuple[int, int]) -> tuple[int, int]:
        return (time[0] + (time[1] + offset) * US_PER_SECOND) % US_PER_DAY, -offset

    def timetz_named(session: EvalSession, name: str, time: tuple[int, int]) -> tuple[int, int]:
        return timetz(zone_offset_at(name, session.transaction_time_us), time)

    python("timezone(text,timestamptz)", to_local)
    python("timezone(text,timestamp)", to_instant)
    python("timezone(interval,timestamptz)", lambda value, us: shift(us, _zone_interval(value)))
    python("timezone(interval,timestamp)", lambda value, us: shift(us, -_zone_interval(value)))
    python("timezone(text,timetz)", timetz_named, needs_session=True)
    python(
        "timezone(interval,timetz)",
        lambda value, time: timetz(truncated(_zone_interval(value), US_PER_SECOND), time),
    )


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
    python("date_trunc(text,timestamp)", trunc_timestamp)
    python("date_trunc(text,timestamptz)", _trunc_in_session, needs_session=True)
    python("date_trunc(text,timestamptz,text)", _trunc_in_zone, needs_session=True)
    python("date_trunc(text,interval)", trunc_interval)
    python("date_bin(interval,timestamp,timestamp)", date_bin)
    python("date_bin(interval,timestamptz,timestamptz)", date_bin)
    python("age(timestamp,timestamp)", age)
    python("age(timestamptz,timestamptz)", _age_tz, needs_session=True)
    python("age(timestamp)", lambda s, us: age(_today(s), us), needs_session=True)
    python("age(timestamptz)", lambda s, us: age(_today(s), local(us, session_zone(s))), needs_session=True)
    python("justify_days(interval)", justify_days)
    python("justify_hours(interval)", justify_hours)
    python("justify_interval(interval)", justify_interval)
    python("make_date(int4,int4,int4)", make_date)
    python("make_time(int4,int4,float8)", make_time)
    python("make_timestamp(int4,int4,int4,int4,int4,float8)", make_timestamp)
    python("make_timestamptz(int4,int4,int4,int4,int4,float8)", _make_timestamptz, needs_session=True)
    python("make_timestamptz(int4,int4,int4,int4,int4,float8,text)", _make_timestamptz, needs_session=True)
    python("make_interval(int4,int4,int4,int4,int4,int4,float8)", make_interval)
    python("to_timestamp(float8)", epoch_to_timestamptz)


_register()
_register_zones()
