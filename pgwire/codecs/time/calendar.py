"""Proleptic Gregorian calendar arithmetic on plain integers, and the ranges of the date/time types.

    days     since 1970-01-01
    us       microseconds since 1970-01-01 00:00
    year     astronomical: 1 BC is 0, 2 BC is -1 (PostgreSQL prints ``year <= 0`` as ``1 - year`` BC)

``datetime.date`` knows years 1 to 9999 only, PostgreSQL 4714 BC to 5874897 (dates) and 294276 (timestamps).
A timestamp is an int64 of microseconds since *1970* here, so the last ones are in January 294247, 29 years
before PostgreSQL's.
"""

from __future__ import annotations

import datetime
from typing import Final

from pgwire.codecs.domain import DATE_INFINITY, TIMESTAMP_INFINITY, US_PER_DAY
from pgwire.codecs.errors import DataError

MIN_DAYS: Final = -2440588  # 4714-11-24 BC, Julian day 0
END_DATE_DAYS: Final = 2145042906  # exclusive: 5874898-01-01
END_TIMESTAMP_US: Final = TIMESTAMP_INFINITY  # exclusive
MIN_TIMESTAMP_US: Final = MIN_DAYS * US_PER_DAY

_ORDINAL_1970: Final = 719163
_date = datetime.date
_from_ordinal = datetime.date.fromordinal

MONTH_NAMES: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
MONTHS_SHORT: Final = tuple(name[:3] for name in MONTH_NAMES)
DAY_NAMES: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
DAYS_SHORT: Final = tuple(name[:3] for name in DAY_NAMES)
_MONTH_DAYS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    """Whether the astronomical year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_days(year: int, month: int) -> int:
    """Return the number of days of a month (1 to 12)."""
    return 29 if month == 2 and is_leap(year) else _MONTH_DAYS[month]


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return days since 1970-01-01; any astronomical year, month 1 to 12; day may be out of its month."""
    if 1 <= year <= 9999:
        return _date(year, month, 1).toordinal() - _ORDINAL_1970 + day - 1
    # The calendar repeats every 400 years of 146097 days.
    cycles, rest = divmod(year - 1, 400)
    return _date(rest + 1, month, 1).toordinal() - _ORDINAL_1970 + day - 1 + cycles * 146097


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return (astronomical year, month, day)."""
    ordinal = days + _ORDINAL_1970
    if 1 <= ordinal <= 3652059:
        date = _from_ordinal(ordinal)
        return date.year, date.month, date.day
    cycles, rest = divmod(ordinal - 1, 146097)
    date = _from_ordinal(rest + 1)
    return date.year + cycles * 400, date.month, date.day


def weekday(days: int) -> int:
    """Return the day of the week, Sunday = 0."""
    return (days + 4) % 7


def day_of_year(days: int) -> int:
    """Return 1 to 366."""
    return days - days_from_civil(civil_from_days(days)[0], 1, 1) + 1


def iso_week(days: int) -> tuple[int, int]:
    """Return (ISO year, ISO week)."""
    thursday = days - (days + 3) % 7 + 3
    year = civil_from_days(thursday)[0]
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1


def iso_week_start(year: int, week: int) -> int:
    """Return the days of the Monday that begins an ISO week."""
    fourth = days_from_civil(year, 1, 4)
    return fourth - (fourth + 3) % 7 + (week - 1) * 7


def in_date_range(days: int) -> bool:
    """Whether a finite date is one PostgreSQL can hold."""
    return MIN_DAYS <= days < END_DATE_DAYS


def check_timestamp(us: int) -> int:
    """Return ``us``; 22008 if it is outside the range of timestamps."""
    if MIN_TIMESTAMP_US <= us < END_TIMESTAMP_US:
        return us
    raise DataError("22008", "timestamp out of range")


def check_date(days: int) -> int:
    """Return ``days``; 22008 if it is outside the range of dates."""
    if MIN_DAYS <= days < END_DATE_DAYS:
        return days
    raise DataError("22008", "date out of range")


def is_infinite_date(days: int) -> bool:
    """Whether a date value is infinity or -infinity."""
    return days in (DATE_INFINITY, -DATE_INFINITY)


def is_infinite(us: int) -> bool:
    """Whether a timestamp value is infinity or -infinity."""
    return us in (TIMESTAMP_INFINITY, -TIMESTAMP_INFINITY)
