"""to_char of timestamps and intervals (Python forms)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pgwire.codecs.domain import EPOCH_1970_JDATE, US_PER_DAY
from pgwire.codecs.time.calendar import (
    DAY_NAMES,
    DAYS_SHORT,
    MONTH_NAMES,
    MONTHS_SHORT,
    civil_from_days,
    day_of_year,
    is_infinite,
    iso_week,
    iso_week_start,
    weekday,
)
from pgwire.codecs.time.interval import split
from pgwire.give_way import paced
from pgwire.long.values import joined
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.time.formatting_pattern import Pattern, ordinal_suffix, parse_template
from planner.functions.time.values import Interval, session_zone, truncated

ROMAN_MONTHS = ("XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I")


@dataclass(slots=True)
class _Fields:
    """What patterns print; for an interval the parts with their signs."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    us: int
    days: int  # since 1970, of timestamps
    day_of_year: int
    offset: int | None = None
    zone: str = ""
    is_interval: bool = False

    @property
    def shown_year(self) -> int:
        return self.year if self.is_interval or self.year > 0 else 1 - self.year


def _invalid_for_interval() -> SqlError:
    return SqlError(
        "22007",
        "invalid format specification for an interval value",
        hint="Intervals are not tied to specific calendar dates.",
    )


_CALENDAR_ONLY = frozenset(
    ["A.D.", "AD", "B.C.", "BC", "MONTH", "MON", "DAY", "DY", "D", "ID", "TZ", "TZH", "TZM", "OF"]
)


def _number(value: int, width: int, pattern: Pattern) -> str:
    """Print with leading zeros (the sign takes a place of its own) unless FM."""
    if pattern.fill:
        return str(value)
    return f"{value:0{width if value >= 0 else width + 1}d}"


def _plain(value: int, width: int, pattern: Pattern) -> str:
    """Print with leading zeros (the sign counts) unless FM."""
    return str(value) if pattern.fill else f"{value:0{width}d}"


def _name(full: str, pattern: Pattern, width: int) -> str:
    """Print a name in the case of its pattern, padded unless FM or TM."""
    text = pattern.text
    shown = full.upper() if text.isupper() else full.lower() if text.islower() else full
    return shown if pattern.fill or pattern.names else shown.ljust(width)


def _rem(value: int, by: int) -> int:
    return int(math.fmod(value, by))


def _show(f: _Fields, p: Pattern) -> str:
    """Print one pattern, without its ordinal suffix."""
    if f.is_interval and p.key in _CALENDAR_ONLY:
        raise _invalid_for_interval()
    match p.key:
        case "AM" | "PM" | "A.M." | "P.M.":
            shown = "P" if _rem(f.hour, 24) >= 12 else "A"
            shown += ".M." if "." in p.key else "M"
            return shown if p.text.isupper() else shown.lower()
        case "HH" | "HH12":
            hour = _rem(f.hour, 12)
            return _number(12 if hour == 0 else hour, 2, p)
        case "HH24":
            return _number(f.hour, 2, p)
        case "MI":
            return _number(f.minute, 2, p)
        case "SS":
            return _number(f.second, 2, p)
        case "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6":
            digits = int(p.key[2])
            return f"{truncated(f.us, 10 ** (6 - digits)):0{digits}d}"
        case "MS":
            return f"{truncated(f.us, 1000):03d}"
        case "US":
            return f"{f.us:06d}"
        case "SSSS" | "SSSSS":
            return str(f.hour * 3600 + f.minute * 60 + f.second)
        case "TZ":
            return f.zone if p.text.isupper() else f.zone.lower()
        case "TZH":
            return f"{'-' if (f.offset or 0) < 0 else '+'}{abs(f.offset or 0) // 3600:02d}"
        case "TZM":
            return f"{abs(f.offset or 0) % 3600 // 60:02d}"
        case "OF":
            hours, minutes = abs(f.offset or 0) // 3600, abs(f.offset or 0) % 3600 // 60
            shown = f"{hours}" if p.fill else f"{hours:02d}"
            return f"{'-' if (f.offset or 0) < 0 else '+'}{shown}" + (f":{minutes:02d}" if minutes else "")
        case "AD" | "BC" | "A.D." | "B.C.":
            shown = "BC" if f.year <= 0 else "AD"
            shown = f"{shown[0]}.{shown[1]}." if "." in p.key else shown
            return shown if p.text.isupper() else shown.lower()
        case "MONTH":
            return _name(MONTH_NAMES[f.month - 1], p, 9)
        case "MON":
            return _name(MONTHS_SHORT[f.month - 1], p, 0)
        case "DAY":
            return _name(DAY_NAMES[weekday(f.days)], p, 9)
        case "DY":
            return _name(DAYS_SHORT[weekday(f.days)], p, 0)
        case _:
            return _show_date(f, p)


def _show_date(f: _Fields, p: Pattern) -> str:
    match p.key:
        case "MM":
            return _number(f.month, 2, p)
        case "DDD":
            return _plain(f.day_of_year, 3, p)
        case "IDDD":
            return _plain(f.days - iso_week_start(iso_week(f.days)[0], 1) + 1, 3, p)
        case "DD":
            return _plain(f.day, 2, p)
        case "D":
            return str(weekday(f.days) + 1)
        case "ID":
            return str(weekday(f.days) or 7)
        case "WW":
            return _plain(truncated(f.day_of_year - 1, 7) + 1, 2, p)
        case "IW":
            return _plain(iso_week(f.days)[1], 2, p)
        case "W":
            return str(truncated(f.day - 1, 7) + 1)
        case "Q":
            return str(truncated(f.month - 1, 3) + 1) if f.month else ""
        case "CC":
            if f.is_interval:
                century = truncated(f.year, 100)
            else:
                century = (f.year - 1) // 100 + 1 if f.year > 0 else truncated(f.year, 100) - 1
            return _number(century, 2, p) if -99 <= century <= 99 else str(century)
        case "J":
            return str(f.days + EPOCH_1970_JDATE)
        case "RM":
            return _roman_month(f, p)
        case "Y,YYY":
            thousands = truncated(f.shown_year, 1000)
            return f"{thousands},{f.shown_year - thousands * 1000:03d}"
        case _:
            year = f.shown_year
            if p.key[0] == "I":
                iso = iso_week(f.days)[0]
                year = iso if iso > 0 or f.is_interval else 1 - iso
            width = {"YYYY": 4, "IYYY": 4, "YYY": 3, "IYY": 3, "YY": 2, "IY": 2, "Y": 1, "I": 1}[p.key]
            shown = year if width == 4 else _rem(year, 10**width)
            return str(shown) if p.fill else f"{shown:0{width if f.shown_year >= 0 else width + 1}d}"


def _roman_month(f: _Fields, p: Pattern) -> str:
    if not f.month and not f.year:
        return ""
    if f.month == 0:
        shown = ROMAN_MONTHS[0] if f.year >= 0 else ROMAN_MONTHS[11]
    elif f.month < 0:
        shown = ROMAN_MONTHS[-1 * (f.month + 1)]
    else:
        shown = ROMAN_MONTHS[12 - f.month]
    shown = shown if p.text.isupper() else shown.lower()
    return shown if p.fill else shown.ljust(4)


_NO_SUFFIX = frozenset(
    [
        "AM",
        "PM",
        "A.M.",
        "P.M.",
        "AD",
        "BC",
        "A.D.",
        "B.C.",
        "MONTH",
        "MON",
        "DAY",
        "DY",
        "TZ",
        "RM",
        "OF",
        "FX",
    ]
)


def _format(fields: _Fields, template: str) -> str:
    out: list[str] = []
    for pattern in paced(parse_template(template)):
        if pattern.kind != "action":
            out.append(pattern.text)
            continue
        if pattern.key == "FX":
            continue
        shown = _show(fields, pattern)
        if pattern.ordinal and shown and pattern.key not in _NO_SUFFIX:
            shown += ordinal_suffix(shown, upper=pattern.ordinal == "TH")
        out.append(shown)
    return joined(out)


def _fields_of(us: int, offset: int | None = None, zone: str = "") -> _Fields:
    days, rest = divmod(us, US_PER_DAY)
    year, month, day = civil_from_days(days)
    seconds, fraction = divmod(rest, 1_000_000)
    return _Fields(
        year=year, month=month, day=day, hour=seconds // 3600, minute=seconds // 60 % 60, second=seconds % 60,
        us=fraction, days=days, day_of_year=day_of_year(days), offset=offset, zone=zone,
    )  # fmt: skip


def timestamp_to_char(us: int, template: str) -> str | None:
    """Print a plain timestamp; NULL for infinities and an empty template."""
    return None if is_infinite(us) or not template else _format(_fields_of(us), template)


def timestamptz_to_char(session: EvalSession, us: int, template: str) -> str | None:
    """Print an instant in the session's zone; NULL for infinities and an empty template."""
    if is_infinite(us) or not template:
        return None
    place = session_zone(session)
    offset = place.offset_at(us)
    fields = _fields_of(us + offset * 1_000_000, offset, place.abbreviation_at(us))
    return _format(fields, template)


def time_of_day(session: EvalSession) -> str | None:
    """SQL's ``timeofday``: what the clock says, spelled out."""
    return timestamptz_to_char(session, session.clock_time_us(), "Dy Mon DD HH24:MI:SS.US YYYY TZ")


def _julian_day(year: int, month: int, day: int) -> int:
    """Return the Julian day of a date whose parts may be beyond any calendar; for those PostgreSQL's formula
    is the definition.
    """
    month, year = (month + 1, year + 4800) if month > 2 else (month + 13, year + 4799)
    century = truncated(year, 100)
    julian = year * 365 - 32167 + truncated(year, 4) - century + truncated(century, 4)
    return julian + truncated(7834 * month, 256) + day


def interval_to_char(value: Interval, template: str) -> str | None:
    """Print an interval; 22007 for patterns that need a calendar date; NULL for an empty template."""
    if not template:
        return None
    years, months, days, hour, minute, second, us = split(value)
    # Julian days and weeks count from the date that the parts would be.
    fields = _Fields(
        year=years, month=months, day=days, hour=hour, minute=minute, second=second, us=us,
        days=_julian_day(years, months, days) - EPOCH_1970_JDATE,
        day_of_year=value[0] * 30 + days, is_interval=True,
    )  # fmt: skip
    return _format(fields, template)


def _register() -> None:
    python: Callable[..., None] = REGISTRY.python
    python("to_char(timestamp,text)", timestamp_to_char)
    python("timeofday()", time_of_day, needs_session=True)
    python("to_char(timestamptz,text)", timestamptz_to_char, needs_session=True)
    python("to_char(interval,text)", interval_to_char)


_register()
