"""date_trunc, date_bin, age, justify, make and AT TIME ZONE (Python forms).

Units are those of ``datetime_extract``, which has extract and date_part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pgwire.codecs.domain import (
    EPOCH_2000_US,
    TIMESTAMP_INFINITY,
    US_PER_DAY,
    US_PER_HOUR,
    US_PER_MINUTE,
    US_PER_SECOND,
)
from pgwire.codecs.invalid import quoting
from pgwire.codecs.time.calendar import (
    END_TIMESTAMP_US,
    MIN_TIMESTAMP_US,
    civil_from_days,
    days_from_civil,
    in_date_range,
    is_infinite,
    month_days,
)
from pgwire.codecs.time.fields import Bad, offset_seconds
from pgwire.codecs.time.interval import show_postgres
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.time.extract import refuse_unit, unit_of
from planner.functions.time.values import (
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

python = REGISTRY.python

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
        raise refuse_unit(text, unit if unit.startswith("timezone") else "", type_name)
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
        raise refuse_unit(text, unit, "interval", "Months usually have fractional weeks.")
    raise refuse_unit(text, unit if unit.startswith("timezone") else "", "interval")


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
                quoting("invalid input syntax for type numeric time zone: ", name),
                hint='Numeric time zones must have "-" or "+" as first character.',
            )
        if name[:1] in "+-" and len(name) > 1:
            try:
                return us - offset_seconds(name) * US_PER_SECOND
            except Bad as bad:
                if bad.reason == "zone":
                    raise SqlError("22023", quoting("numeric time zone ", name, " out of range")) from None
                raise SqlError("22023", quoting("time zone ", name, " not recognized")) from None
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
