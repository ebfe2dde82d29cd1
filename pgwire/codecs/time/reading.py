"""Reading dates, times and timestamps as liberally as PostgreSQL does.

The fields of ``datetime_fields`` are taken left to right; what a number means depends on what is known
already, on DateOrder and on its length. ``_Reader`` holds that state. The rules, in short:

    a number first      3 or more digits (or order YMD): year; else month or day by DateOrder
    6 or more digits    yymmdd or yyyymmdd while the date is open, then hhmmss
    a word              zone abbreviation, month, weekday (ignored), am/pm, ad/bc, or a label of what follows
    one or two digits   of year: 1970 to 2069
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from pgwire.codecs.domain import EPOCH_1970_JDATE, US_PER_DAY
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text import int_of
from pgwire.codecs.time.calendar import civil_from_days, days_from_civil, month_days
from pgwire.codecs.time.fields import (
    WORDS,
    Bad,
    Kind,
    UnknownZone,
    fraction_us,
    integer,
    look_up,
    offset_seconds,
    split_fields,
)
from pgwire.codecs.time.zone import ABBREVIATIONS, Zone, abbreviation_offset, find_zone, zone

_YEAR, _MONTH, _DAY, _HOUR, _MINUTE, _SECOND, _ZONE, _DST, _DST_MOD, _DOY = (1 << n for n in range(10))
_AMPM, _ERA, _DOW, _RESERVED = (1 << n for n in range(10, 14))
_DATE: Final = _YEAR | _MONTH | _DAY
_TIME: Final = _HOUR | _MINUTE | _SECOND

Special = Literal["", "epoch", "infinity", "-infinity"]


_LEADING: Final = re.compile("[0-9]+", re.ASCII)
_FRACTION: Final = re.compile(r"[0-9]+(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)


@dataclass(slots=True)
class Moment:
    """What was read: local days since 1970, microseconds of the day, offset east (None: not asked for).

    ``special`` is set instead for epoch and the infinities.
    """

    special: Special = ""
    days: int = 0
    time_us: int = 0
    offset: int = 0


class _Reader:
    """State while the fields of one text are taken; a subclass of the rules for each of the two entries."""

    def __init__(self, settings: CodecSettings, *, time_only: bool) -> None:
        self.settings = settings
        self.time_only = time_only
        self.session_zone: Callable[[], Zone] = lambda: zone(settings.time_zone)
        self.seen = 0
        self.label = ""
        self.year = self.month = self.day = self.doy = 0
        self.hour = self.minute = self.second = self.us = 0
        self.offset = 0
        self.named: Zone | None = None
        self.abbreviation = ""
        self.text_month = self.julian = self.two_digits = self.bc = False
        self.ampm = ""
        self.special: Special = ""

    # -- one field -----------------------------------------------------------------------------------

    def take(self, fields: list[tuple[Kind, str]]) -> None:
        """Take every field; ``Bad`` when two say the same thing."""
        for index, (kind, text) in enumerate(fields):
            match kind:
                case Kind.DATE:
                    mask = self.date_field(fields, index, text)
                case Kind.TIME:
                    if self.label not in ("", "time") and not self.time_only:
                        raise Bad
                    if not self.time_only:
                        self.label = ""
                    mask = self.clock(text)
                case Kind.OFFSET:
                    self.offset = offset_seconds(text)
                    mask = _ZONE
                case Kind.NUMBER:
                    mask = self.labelled(text) if self.label else self.number_field(fields, index, text)
                case Kind.STRING | Kind.SPECIAL:
                    found = self.word(fields, index, text)
                    if found is None:
                        continue
                    mask = found
            if mask & self.seen:
                raise Bad
            self.seen |= mask

    def date_field(self, fields: list[tuple[Kind, str]], index: int, text: str) -> int:
        if self.label == "julian":
            value, rest = integer(text)
            if value < 0:
                raise Bad("field")
            self.set_julian(value)
            self.offset = offset_seconds(rest)
            self.label = ""
            return _DATE | _TIME | _ZONE
        if self.time_only:
            takes_date = index == 0 and len(fields) >= 2 and (
                fields[-1][0] is Kind.DATE or fields[1][0] is Kind.TIME
            )  # fmt: skip
            if takes_date:
                return self.date(text)
            return self.time_or_zone(text)
        if self.label or self.seen & (_MONTH | _DAY) == _MONTH | _DAY:
            return self.time_or_zone(text)
        return self.date(text)

    def time_or_zone(self, text: str) -> int:
        """A DATE field after the date: ``hhmmss-zz``, or a zone name with punctuation."""
        if text[0].isdigit() or self.label:
            if self.label not in ("", "time") and not self.time_only:
                raise Bad
            self.label = ""
            cut = text.find("-")
            if self.seen & _TIME == _TIME or cut < 0:
                raise Bad
            self.offset = offset_seconds(text[cut:])
            return self.run_together(text[:cut], self.seen | (_DATE if self.time_only else 0)) | _ZONE
        return self.zone_name(text)

    def zone_name(self, text: str) -> int:
        self.named = find_zone(text)
        if self.named is None:
            raise UnknownZone(text)
        return _ZONE

    def date(self, text: str) -> int:
        """Read ``y-m-d`` in any order and with a month's name; all of it must be there."""
        parts: list[str] = []
        at = 0
        while at < len(text):
            while at < len(text) and not text[at].isalnum():
                at += 1
            if at == len(text):
                raise Bad
            start = at
            test = str.isdigit if text[at].isdigit() else str.isalpha
            while at < len(text) and test(text[at]):
                at += 1
            parts.append(text[start:at].lower())
            at += 1 if at < len(text) and not text[at].isalnum() else 0
        mask = 0
        text_month = False
        for part in parts:
            if part[0].isalpha():
                entry = look_up(part, WORDS)
                if entry is None or entry[0] not in ("month", "ignore"):
                    raise Bad
                if entry[0] == "ignore":
                    continue
                if (self.seen | mask) & _MONTH:
                    raise Bad
                self.month, text_month = int(entry[1]), True
                mask |= _MONTH
        for part in parts:
            if part[0].isdigit():
                bit = self.number(part, self.seen | mask, text_month)
                if bit & (self.seen | mask):
                    raise Bad
                mask |= bit
        if (self.seen | mask) & ~(_DOY | _ZONE) != _DATE:
            raise Bad
        return mask

    def clock(self, text: str) -> int:
        """Read ``h:m[:s[.f]]``, or ``m:s.f``."""
        self.hour, self.minute, self.second, self.us = clock(text)
        us = clock_us(self.hour, self.minute, self.second, self.us)
        if not self.time_only and (us > US_PER_DAY or self.hour > 24):
            raise Bad("field")
        return _TIME

    def labelled(self, text: str) -> int:
        """A number whose meaning the word before it told."""
        label, self.label = self.label, ""
        self.special = ""
        value, rest = integer(text)
        if rest[:1] == ".":
            if label not in ("julian", "time", "second"):
                raise Bad
        elif rest:
            raise Bad
        match label:
            case "year":
                self.year = value
                return _YEAR
            case "month":
                if self.seen & _MONTH and self.seen & _HOUR:
                    self.minute = value
                    return _MINUTE
                self.month = value
                return _MONTH
            case "day":
                self.day = value
                return _DAY
            case "hour":
                self.hour = value
                return _HOUR
            case "minute":
                self.minute = value
                return _MINUTE
            case "second":
                self.second = value
                self.us = fraction_us(rest) if rest else 0
                return _SECOND
            case "julian":
                if value < 0:
                    raise Bad("field")
                self.set_julian(value)
                if not rest:
                    return _DATE
                self.split_time(int(float("0" + rest) * US_PER_DAY))
                return _DATE | _TIME
            case "time":
                if self.run_together(text, self.seen | _DATE) != _TIME:
                    raise Bad
                return _TIME
            case _:
                raise Bad

    def number_field(self, fields: list[tuple[Kind, str]], index: int, text: str) -> int:
        """A number without a label."""
        dot = text.find(".")
        if self.time_only:
            if dot >= 0:
                if index == 0 and len(fields) >= 2 and fields[-1][0] is Kind.DATE:
                    return self.date(text)
                if dot > 2:
                    return self.run_together(text, self.seen | _DATE)
                raise Bad
            if len(text) > 4:
                return self.run_together(text, self.seen | _DATE)
            return self.number(text, self.seen | _DATE, False)
        if dot >= 0 and not self.seen & _DATE:
            return self.date(text)
        if dot > 2:
            return self.run_together(text, self.seen)
        if len(text) >= 6 and (not self.seen & _DATE or not self.seen & _TIME):
            return self.run_together(text, self.seen)
        return self.number(text, self.seen, self.text_month)

    def number(self, text: str, seen: int, text_month: bool) -> int:
        """One number of a date, or a time run together; sets the field and returns its bit."""
        value, rest = integer(text)
        if rest == text:
            raise Bad
        if rest[:1] == ".":
            if len(text) - len(rest) > 2:
                return self.run_together(text, seen | _DATE)
            self.us = fraction_us(rest)
        elif rest:
            raise Bad
        length, order = len(text), self.settings.date_order
        if length == 3 and seen & _DATE == _YEAR and 1 <= value <= 366:
            self.doy = value
            return _DOY | _MONTH | _DAY
        match seen & _DATE:
            case 0:
                bit = _YEAR if length >= 3 or order == "YMD" else _DAY if order == "DMY" else _MONTH
            case 1:  # _YEAR
                bit = _MONTH
            case 2:  # _MONTH
                bit = _DAY
                if text_month and (length >= 3 or order == "YMD"):
                    bit = _YEAR
            case 3:  # _YEAR | _MONTH
                bit = _DAY
                if text_month and length >= 3 and self.two_digits:
                    # The first number was the day after all: 17-Dec-1997 under order YMD.
                    self.day, self.year, self.two_digits = self.year, value, False
                    return _DAY
            case 4:  # _DAY
                bit = _MONTH
            case 6:  # _MONTH | _DAY
                bit = _YEAR
            case 7:
                return self.run_together(text, seen)
            case _:
                raise Bad
        if bit == _YEAR:
            self.year, self.two_digits = value, length <= 2
        elif bit == _MONTH:
            self.month = value
        else:
            self.day = value
        return bit

    def run_together(self, text: str, seen: int) -> int:
        """Read yymmdd, yyyymmdd, hhmmss[.f] or hhmm."""
        digits, dot, fraction = text.partition(".")
        if dot:
            exact = _FRACTION.match(fraction)
            self.us = round(float("0." + (exact[0] if exact else "0")) * 1_000_000)
        elif seen & _DATE != _DATE and len(digits) >= 6:
            if len(digits) > 14:
                raise Bad("field")
            self.day, self.month, self.year = map(_atoi, (digits[-2:], digits[-4:-2], digits[:-4]))
            if len(digits) == 6:
                self.two_digits = True
            return _DATE
        if seen & _TIME != _TIME and len(digits) in (4, 6):
            self.hour, self.minute = _atoi(digits[:2]), _atoi(digits[2:4])
            self.second = _atoi(digits[4:]) if len(digits) == 6 else 0
            return _TIME
        raise Bad

    def word(self, fields: list[tuple[Kind, str]], index: int, text: str) -> int | None:
        """Take a word; None if it means nothing."""
        from_abbreviation = abbreviation_offset(text, 0)
        if from_abbreviation is not None:
            self.abbreviation, self.offset = text, 0
            meaning = ABBREVIATIONS[text]
            return _ZONE | _DST if isinstance(meaning, tuple) and meaning[1] else _ZONE
        entry = look_up(text, WORDS)
        if entry is None:
            self.named = find_zone(text)
            if self.named is None:
                raise Bad
            return _ZONE
        kind, value = entry
        match kind:
            case "ignore":
                return None
            case "reserved":
                return self.reserved(str(value))
            case "month":
                if self.time_only:
                    raise Bad
                mask = _MONTH
                swaps = self.seen & _MONTH and not self.text_month and not self.seen & _DAY
                if swaps and 1 <= self.month <= 31:
                    self.day, mask = self.month, _DAY
                self.text_month, self.month = True, int(value)
                return mask
            case "dst":
                self.offset += int(value)
                return _DST | _DST_MOD
            case "ampm":
                self.ampm = str(value)
                return _AMPM
            case "era":
                self.bc = value == 1
                return _ERA
            case "dow":
                if self.time_only:
                    raise Bad
                return _DOW
            case "units":
                self.label = str(value)
                return 0
            case _:  # "t" before an ISO time
                if not self.time_only and self.seen & _DATE != _DATE:
                    raise Bad
                if index + 1 >= len(fields) or fields[index + 1][0] not in (
                    Kind.NUMBER,
                    Kind.TIME,
                    Kind.DATE,
                ):
                    raise Bad
                self.label = "time"
                return 0

    def reserved(self, word: str) -> int:
        """Take now, today and so on; the last such word counts."""
        self.special = ""
        if word == "allballs":
            self.hour = self.minute = self.second = self.us = 0
            if not self.time_only:
                self.offset = 0
            return _TIME | _ZONE
        now = self.settings.now_us
        offset = self.session_zone().offset_at(now)
        days, rest = divmod(now + offset * 1_000_000, US_PER_DAY)
        if word == "now":
            self.split_time(rest)
            self.offset = offset
            if self.time_only:
                return _TIME
            self.year, self.month, self.day = civil_from_days(days)
            self.julian = True  # the year is final
            return _DATE | _TIME | _ZONE
        if self.time_only:
            raise Bad
        if word in ("today", "tomorrow", "yesterday"):
            days += {"today": 0, "tomorrow": 1, "yesterday": -1}[word]
            self.year, self.month, self.day = civil_from_days(days)
            return _DATE
        if word == "epoch":
            self.special = "epoch"
        else:
            self.special = "infinity" if word == "infinity" else "-infinity"
        return _RESERVED

    def set_julian(self, number: int) -> None:
        self.year, self.month, self.day = civil_from_days(number - EPOCH_1970_JDATE)
        self.julian = True

    def split_time(self, us: int) -> None:
        seconds, self.us = divmod(us, 1_000_000)
        minutes, self.second = divmod(seconds, 60)
        self.hour, self.minute = divmod(minutes, 60)

    # -- all fields known ----------------------------------------------------------------------------

    def check_date(self) -> None:
        """Give the year its century and era, and check month and day as far as they are known."""
        if self.seen & _YEAR and not self.julian:
            if self.bc:
                if self.year <= 0:
                    raise Bad("field")
                self.year = 1 - self.year
            elif self.two_digits:
                if self.year < 0:
                    raise Bad("field")
                if self.year < 70:
                    self.year += 2000
                elif self.year < 100:
                    self.year += 1900
            elif self.year <= 0:
                raise Bad("field")
        if self.seen & _DOY:
            days = days_from_civil(self.year, 1, 1) + self.doy - 1
            self.year, self.month, self.day = civil_from_days(days)
        if self.seen & _MONTH and not 1 <= self.month <= 12:
            raise Bad("month-day")
        if self.seen & _DAY and not 1 <= self.day <= 31:
            raise Bad("month-day")
        if self.seen & _DATE == _DATE and self.day > month_days(self.year, self.month):
            raise Bad("field")

    def check_clock(self) -> int:
        """Apply am/pm and return microseconds of the day."""
        if self.ampm:
            if self.hour > 12:
                raise Bad("field")
            if self.ampm == "am" and self.hour == 12:
                self.hour = 0
            elif self.ampm == "pm" and self.hour != 12:
                self.hour += 12
        us = clock_us(self.hour, self.minute, self.second, self.us)
        if not self.time_only:
            # Digits run together are not checked: 1997 is 19:97, and that 20:37.
            return us
        out = self.hour < 0 or not 0 <= self.minute <= 59 or not 0 <= self.second <= 60
        if out or self.hour > 24 or us > US_PER_DAY:
            raise Bad("field")
        return us

    def final_offset(self, days: int | None, time_us: int) -> int:
        """Return the offset east, resolving names at the local time (at today's date if none was given)."""
        if self.named is not None:
            if self.seen & _DST_MOD:
                raise Bad
            if self.named.fixed is not None:
                return self.named.fixed
            if days is None:
                raise Bad
            return self.named.offset_for_local(days * US_PER_DAY + time_us)
        if self.seen & _ZONE and not self.abbreviation:
            return self.offset
        if not self.seen & _ZONE and self.seen & _DST_MOD:
            raise Bad
        meaning = ABBREVIATIONS.get(self.abbreviation)
        if isinstance(meaning, tuple):
            return meaning[0] + self.offset
        if days is None:
            if self.seen & _DATE:
                raise Bad  # part of a date does not tell the offset
            now = self.settings.now_us
            days = (now + self.session_zone().offset_at(now) * 1_000_000) // US_PER_DAY
        local = days * US_PER_DAY + time_us
        if self.abbreviation:
            found = abbreviation_offset(self.abbreviation, local)
            return (found or 0) + self.offset
        return self.session_zone().offset_for_local(local)


def _atoi(text: str) -> int:
    """Read leading digits; anything else is 0, as PostgreSQL has it in run-together fields."""
    match = _LEADING.match(text)
    return int_of(match[0]) if match else 0


def clock_us(hour: int, minute: int, second: int, us: int) -> int:
    """Return microseconds since midnight."""
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + us


def clock(text: str) -> tuple[int, int, int, int]:
    """Read ``h:m``, ``h:m:s[.f]`` or ``m:s.f`` into (hour, minute, second, us); hours are not limited here."""
    first, colon, rest = text.partition(":")
    if not colon or not (first.isdigit() or not first):
        raise Bad
    hour = int_of(first or "0")
    minute, rest = integer(rest)
    second = us = 0
    if rest[:1] == ".":
        us = fraction_us(rest)
        hour, minute, second = 0, hour, minute
    elif rest[:1] == ":":
        second, rest = integer(rest[1:])
        if rest[:1] == ".":
            us = fraction_us(rest)
        elif rest:
            raise Bad
    elif rest:
        raise Bad
    if not 0 <= minute <= 59 or not 0 <= second <= 60 or not 0 <= us <= 1_000_000:
        raise Bad("field")
    return hour, minute, second, us


def read_moment(text: str, settings: CodecSettings, *, zoned: bool) -> Moment:
    """Read a date or timestamp. ``offset`` is resolved only if ``zoned``.

    Raises:
        Bad, UnknownZone: see ``datetime_fields.data_error``.
    """
    reader = _Reader(settings, time_only=False)
    reader.take(split_fields(text))
    reader.check_date()
    time_us = reader.check_clock()
    if reader.special:
        return Moment(special=reader.special)
    if reader.seen & _DATE != _DATE or (reader.seen & _DST_MOD and not reader.seen & _ZONE):
        raise Bad
    days = days_from_civil(reader.year, reader.month, reader.day)
    named = reader.named is not None or reader.abbreviation
    offset = reader.final_offset(days, time_us) if zoned or named else 0
    return Moment(days=days, time_us=time_us, offset=offset)


def read_clock(text: str, settings: CodecSettings) -> tuple[int, int]:
    """Read a time of day with optional zone and date: (microseconds, seconds east).

    Raises:
        Bad, UnknownZone: see ``datetime_fields.data_error``.
    """
    reader = _Reader(settings, time_only=True)
    reader.take(split_fields(text))
    reader.check_date()
    time_us = reader.check_clock()
    if reader.seen & _TIME != _TIME:
        raise Bad
    days = None
    if reader.seen & _DATE == _DATE:
        days = days_from_civil(reader.year, reader.month, reader.day)
    return time_us, reader.final_offset(days, time_us)
