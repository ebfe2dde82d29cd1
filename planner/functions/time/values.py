"""Calendar arithmetic on values: what the date/time functions of all files here are made of.

Values are those of ``planner.types``: days, microseconds, ``(months, days, us)``. A zone is a
``pgwire.codecs.time.zone.Zone``; None means plain timestamps.
"""

from __future__ import annotations

from pgwire.codecs.domain import DATE_INFINITY, TIMESTAMP_INFINITY, US_PER_DAY
from pgwire.codecs.invalid import quoting
from pgwire.codecs.time.calendar import (
    check_timestamp,
    civil_from_days,
    days_from_civil,
    is_infinite,
    month_days,
)
from pgwire.codecs.time.zone import (
    LONGEST_NAME,
    Zone,
    abbreviation_offset,
    abbreviation_offset_at,
    find_zone,
    zone,
)
from planner.base.errors import SqlError
from planner.functions.session import EvalSession

Interval = tuple[int, int, int]


def session_zone(session: EvalSession) -> Zone:
    """Return the zone of the TimeZone setting."""
    return zone(session.output_settings.time_zone)


def out_of_range() -> SqlError:
    """Return 22008 ``timestamp out of range``."""
    return SqlError("22008", "timestamp out of range")


def interval(months: int, days: int, us: int) -> Interval:
    """Return the interval; 22008 when a part leaves its size."""
    if -(2**31) <= months < 2**31 and -(2**31) <= days < 2**31 and -(2**63) <= us < 2**63:
        return months, days, us
    raise SqlError("22008", "interval out of range")


def local(us: int, place: Zone) -> int:
    """Return the local time (as if it were UTC) of an instant; infinities stay."""
    return us if is_infinite(us) else us + place.offset_at(us) * 1_000_000


def instant(local_us: int, place: Zone) -> int:
    """Return the instant of a local time; infinities stay; 22008 out of range."""
    if is_infinite(local_us):
        return local_us
    return check_timestamp(local_us - place.offset_for_local(local_us) * 1_000_000)


def date_to_timestamp(days: int) -> int:
    """Return midnight of a date; 22008 past the last timestamp."""
    if days in (DATE_INFINITY, -DATE_INFINITY):
        return TIMESTAMP_INFINITY if days > 0 else -TIMESTAMP_INFINITY
    us = days * US_PER_DAY
    if us >= TIMESTAMP_INFINITY:
        raise SqlError("22008", "date out of range for timestamp")
    return us


def date_to_instant(days: int, place: Zone) -> int:
    """Return the instant of a date's local midnight."""
    us = date_to_timestamp(days)
    if is_infinite(us):
        return us
    us -= place.offset_for_local(us) * 1_000_000
    if us >= TIMESTAMP_INFINITY:
        raise SqlError("22008", "date out of range for timestamp")
    return check_timestamp(us)


def timestamp_to_date(us: int) -> int:
    """Return the date of a timestamp."""
    if is_infinite(us):
        return DATE_INFINITY if us > 0 else -DATE_INFINITY
    return us // US_PER_DAY


def add_months(us: int, months: int) -> int:
    """Add calendar months to a local time; the day is cut to the month's last."""
    days, rest = divmod(us, US_PER_DAY)
    year, month, day = civil_from_days(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    if not -4800 < year < 300_000:
        raise out_of_range()
    return days_from_civil(year, month, min(day, month_days(year, month))) * US_PER_DAY + rest


def add_interval(us: int, value: Interval, place: Zone | None = None) -> int:
    """Add an interval: months and days to the local time, then microseconds; 22008 out of range."""
    if is_infinite(us):
        return us
    months, days, rest = value
    if place is None or place.fixed is not None:
        if months:
            offset = 0 if place is None else (place.fixed or 0) * 1_000_000
            us = add_months(us + offset, months) - offset
        return check_timestamp(us + days * US_PER_DAY + rest)
    if months:
        moved = check_timestamp(add_months(local(us, place), months))
        us = moved - place.offset_for_local(moved) * 1_000_000
    if days:
        moved = check_timestamp(local(us, place) + days * US_PER_DAY)
        us = moved - place.offset_for_local(moved) * 1_000_000
    return check_timestamp(us + rest)


def negate(value: Interval) -> Interval:
    """Return the opposite interval; 22008 on overflow."""
    return interval(-value[0], -value[1], -value[2])


def truncated(value: int, unit: int) -> int:
    """Divide and drop the rest towards zero."""
    return -(-value // unit) if value < 0 else value // unit


def justify_hours(value: Interval) -> Interval:
    """Move whole days out of the time, and make both of one sign."""
    months, days, us = value
    whole = truncated(us, US_PER_DAY)
    us -= whole * US_PER_DAY
    days += whole
    if days > 0 > us:
        us, days = us + US_PER_DAY, days - 1
    elif days < 0 < us:
        us, days = us - US_PER_DAY, days + 1
    return interval(months, days, us)


def justify_days(value: Interval) -> Interval:
    """Move whole months of 30 days out of the days, and make both of one sign."""
    months, days, us = value
    whole = truncated(days, 30)
    days -= whole * 30
    months += whole
    if months > 0 > days:
        days, months = days + 30, months - 1
    elif months < 0 < days:
        days, months = days - 30, months + 1
    return interval(months, days, us)


def justify_interval(value: Interval) -> Interval:
    """Do both, and make all three parts of one sign."""
    months, days, us = value
    whole = truncated(us, US_PER_DAY)
    us -= whole * US_PER_DAY
    days += whole
    whole = truncated(days, 30)
    days -= whole * 30
    months += whole
    if months > 0 and (days < 0 or (days == 0 and us < 0)):
        days, months = days + 30, months - 1
    elif months < 0 and (days > 0 or (days == 0 and us > 0)):
        days, months = days - 30, months + 1
    if days > 0 > us:
        us, days = us + US_PER_DAY, days - 1
    elif days < 0 < us:
        us, days = us - US_PER_DAY, days + 1
    return interval(months, days, us)


def zone_offset_for_local(name: str, local_us: int) -> int:
    """Return seconds east at a local time for an abbreviation or zone name; 22023 for neither."""
    offset = abbreviation_offset(name[:LONGEST_NAME].lower(), local_us)
    return zone(name).offset_for_local(local_us) if offset is None else offset


def zone_offset_at(name: str, us: int) -> int:
    """Return seconds east at an instant for an abbreviation or zone name; 22023 for neither."""
    offset = abbreviation_offset_at(name[:LONGEST_NAME].lower(), us)
    if offset is not None:
        return offset
    found = find_zone(name)
    if found is None:
        raise SqlError("22023", quoting("time zone ", name, " not recognized"))
    return found.offset_at(us)
