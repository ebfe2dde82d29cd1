"""Printing of dates, times and timestamps in the four DateStyles.

    ISO        1997-12-17 07:37:16-08
    SQL        12/17/1997 07:37:16 PST
    Postgres   Wed Dec 17 07:37:16 1997 PST
    German     17.12.1997 07:37:16 PST

With order DMY the day comes first in SQL and Postgres style. Years BC get the suffix ``BC``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Final

from pgwire.codecs.domain import DATE_INFINITY, TIMESTAMP_INFINITY, US_PER_DAY
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.time.calendar import DAYS_SHORT, MONTHS_SHORT, civil_from_days, weekday
from pgwire.codecs.time.zone import Zone, zone

_EPOCH: Final = datetime(1970, 1, 1)
_LOW: Final = int((datetime(1, 1, 2) - _EPOCH) / timedelta(microseconds=1))
_HIGH: Final = int((datetime(9999, 12, 30) - _EPOCH) / timedelta(microseconds=1))
_LOW_DAY, _HIGH_DAY = _LOW // US_PER_DAY, _HIGH // US_PER_DAY
_ORDINAL_1970: Final = 719163


def show_time(us: int) -> str:
    """Print microseconds of a day as ``HH:MM:SS[.ffffff]``, without trailing zeros; 24:00:00 is possible."""
    seconds, fraction = divmod(us, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def show_offset(east: int) -> str:
    """Print an offset in seconds east as ``+HH[:MM[:SS]]``."""
    sign, east = ("-", -east) if east < 0 else ("+", east)
    minutes, second = divmod(east, 60)
    hour, minute = divmod(minutes, 60)
    if second:
        return f"{sign}{hour:02d}:{minute:02d}:{second:02d}"
    return f"{sign}{hour:02d}:{minute:02d}" if minute else f"{sign}{hour:02d}"


def show_timetz(value: tuple[int, int]) -> str:
    """Print a time with its offset (the value holds seconds west)."""
    return show_time(value[0]) + show_offset(-value[1])


@functools.lru_cache(maxsize=8192)
def _iso_date(days: int) -> str:
    if _LOW_DAY < days < _HIGH_DAY:
        return date.fromordinal(days + _ORDINAL_1970).isoformat()
    if days == DATE_INFINITY:
        return "infinity"
    if days == -DATE_INFINITY:
        return "-infinity"
    year, month, day = civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}" if year > 0 else f"{1 - year:04d}-{month:02d}-{day:02d} BC"


def date_printer(settings: CodecSettings) -> Callable[[int], str]:
    """Return the function that prints dates under ``settings``."""
    style, order = settings.date_style, settings.date_order
    if style == "ISO":
        return _iso_date

    def show(days: int) -> str:
        if days in (DATE_INFINITY, -DATE_INFINITY):
            return _iso_date(days)
        year, month, day = civil_from_days(days)
        shown, suffix = (year, "") if year > 0 else (1 - year, " BC")
        if style == "German":
            return f"{day:02d}.{month:02d}.{shown:04d}{suffix}"
        mark = "/" if style == "SQL" else "-"
        first, second = (day, month) if order == "DMY" else (month, day)
        return f"{first:02d}{mark}{second:02d}{mark}{shown:04d}{suffix}"

    return show


def _special(us: int) -> str | None:
    if us == TIMESTAMP_INFINITY:
        return "infinity"
    return "-infinity" if us == -TIMESTAMP_INFINITY else None


def _iso_parts(us: int) -> tuple[str, str]:
    """Return the text without zone, and ``" BC"`` or nothing."""
    days, rest = divmod(us, US_PER_DAY)
    text = _iso_date(days)
    if text.endswith(" BC"):
        return f"{text[:-3]} {show_time(rest)}", " BC"
    return f"{text} {show_time(rest)}", ""


def _iso_timestamp(us: int) -> str:
    if _LOW < us < _HIGH:
        text = (_EPOCH + timedelta(microseconds=us)).isoformat(" ")
        return text.rstrip("0") if len(text) > 19 else text
    special = _special(us)
    return special if special is not None else "".join(_iso_parts(us))


def _styled(us: int, settings: CodecSettings, zone_text: str) -> str:
    """Print a finite local time in a style other than ISO; ``zone_text`` comes with its blank."""
    days, rest = divmod(us, US_PER_DAY)
    year, month, day = civil_from_days(days)
    shown, suffix = (year, "") if year > 0 else (1 - year, " BC")
    time = show_time(rest)
    if settings.date_style == "Postgres":
        name = MONTHS_SHORT[month - 1]
        shown_day = f"{day:02d} {name}" if settings.date_order == "DMY" else f"{name} {day:02d}"
        return f"{DAYS_SHORT[weekday(days)]} {shown_day} {time} {shown:04d}{zone_text}{suffix}"
    if settings.date_style == "German":
        return f"{day:02d}.{month:02d}.{shown:04d} {time}{zone_text}{suffix}"
    first, second = (day, month) if settings.date_order == "DMY" else (month, day)
    return f"{first:02d}/{second:02d}/{shown:04d} {time}{zone_text}{suffix}"


def timestamp_printer(settings: CodecSettings) -> Callable[[int], str]:
    """Return the function that prints timestamps without time zone under ``settings``."""
    if settings.date_style == "ISO":
        return _iso_timestamp

    def show(us: int) -> str:
        special = _special(us)
        return special if special is not None else _styled(us, settings, "")

    return show


def timestamptz_printer(settings: CodecSettings) -> Callable[[int], str]:
    """Return the function that prints timestamps with time zone in the zone of ``settings``."""
    place = zone(settings.time_zone)
    if settings.date_style == "ISO":
        return _iso_zoned(place)

    def show(us: int) -> str:
        special = _special(us)
        if special is not None:
            return special
        local = us + place.offset_at(us) * 1_000_000
        return _styled(local, settings, " " + place.abbreviation_at(us)[:10])

    return show


def _iso_zoned(place: Zone) -> Callable[[int], str]:
    epoch, delta = _EPOCH, timedelta
    offset_at, fixed = place.offset_at, place.fixed
    suffixes = {0: "+00"}
    margin = US_PER_DAY

    def show(us: int) -> str:
        offset = fixed if fixed is not None else offset_at(us)
        suffix = suffixes.get(offset)
        if suffix is None:
            suffix = suffixes[offset] = show_offset(offset)
        if _LOW + margin < us < _HIGH - margin:
            text = (epoch + delta(0, offset, us)).isoformat(" ")
            return (text.rstrip("0") if len(text) > 19 else text) + suffix
        special = _special(us)
        if special is not None:
            return special
        text, era = _iso_parts(us + offset * 1_000_000)
        return text + suffix + era

    return show
