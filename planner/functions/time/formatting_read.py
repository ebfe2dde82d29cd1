"""to_timestamp(text, text) and to_date: reading a text by a template (Python forms).

Outside FX mode the template is loose: blanks before fields are skipped, a separator matches any separator or
nothing, other characters skip one each. A number takes as many characters as its pattern has, unless FM, TH or
something that is not a digit follows: then all digits there are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pgwire.codecs.domain import EPOCH_1970_JDATE, TIMESTAMP_INFINITY, US_PER_DAY
from pgwire.codecs.invalid import quoting
from pgwire.codecs.text import int_of
from pgwire.codecs.time.calendar import (
    DAY_NAMES,
    DAYS_SHORT,
    MONTH_NAMES,
    MONTHS_SHORT,
    civil_from_days,
    days_from_civil,
    in_date_range,
    iso_week_start,
    month_days,
)
from pgwire.give_way import paced
from planner.base.errors import SqlError
from planner.facts import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.time.formatting import ROMAN_MONTHS
from planner.functions.time.formatting_pattern import Pattern, is_separator, parse_strict, parse_template
from planner.functions.time.values import session_zone

_TIMED = frozenset(
    ("AM", "PM", "A.M.", "P.M.", "HH", "HH12", "HH24", "MI", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "SSSS", "SSSSS")
)  # fmt: skip
_ZONED = frozenset(("TZ", "OF", "TZH", "TZM"))
_INTEGER = re.compile(r"\s*[+-]?[0-9]+")
_FM_HINT = 'If your source string is not fixed-width, try using the "FM" modifier.'


def _error(
    message: str, detail: str | None = None, hint: str | None = None, sqlstate: str = "22007"
) -> SqlError:
    return SqlError(sqlstate, message, detail=detail, hint=hint)


@dataclass(slots=True)
class _Read:
    """Values found so far, by what they say; 0 counts as not given, as in PostgreSQL."""

    values: dict[str, int] = field(default_factory=dict)
    clock12: bool = False
    calendar: str = ""
    year_digits: int = 0
    zone_sign: int = 0
    precision: int = 0
    """Digits of a second that FF1 to FF6 ask for; 0: as many as there are."""

    def get(self, name: str) -> int:
        return self.values.get(name, 0)

    def put(self, name: str, value: int, pattern: Pattern, stands_for: int | None = None) -> None:
        """Keep what was read, or what it ``stands_for``. Raises SqlError 22007 if it is another value than
        the one known.
        """
        known = self.values.get(name, 0)
        if known not in (0, value):
            raise _error(
                f'conflicting values for "{pattern.text}" field in formatting string',
                "This value contradicts a previous setting for the same field type.",
            )
        self.values[name] = value if stands_for is None else stands_for


class _Reader:
    """Walks template and text together; ``strict``: as SQL/JSON has it, separators match and all is read."""

    def __init__(self, text: str, template: str, *, strict: bool = False) -> None:
        self.text = text
        self.at = 0
        self.strict = strict
        self.patterns = parse_strict(template) if strict else parse_template(template)
        self.found = _Read()

    def run(self) -> _Read:
        fixed = self.strict
        skipped = 0
        text = self.text
        for index, p in enumerate(paced(self.patterns)):
            if self.at >= len(text):
                if self.strict:
                    raise _error("input string is too short for datetime format")
                break
            if self.strict and p.kind != "action":
                if text[self.at] != p.text:
                    what = "character" if p.kind == "char" else "separator"
                    raise _error(f'unmatched format {what} "{p.text}"')
                self.at += 1
                continue
            if not fixed and (p.kind != "char" or p.text.isspace()) and (p.kind == "action" or index == 0):
                skipped += self.blanks()
            if p.kind in ("space", "separator"):
                if fixed:
                    self.at += 1
                else:
                    skipped -= 1
                    if self.at < len(text) and (text[self.at].isspace() or is_separator(text[self.at])):
                        self.at += 1
                        skipped += 1
                continue
            if p.kind == "char":
                if not fixed and skipped > 0:
                    skipped -= 1
                else:
                    self.at += 1
                continue
            if p.calendar:
                if self.found.calendar not in ("", p.calendar):
                    raise _error(
                        "invalid combination of date conventions",
                        hint="Do not mix Gregorian and ISO week date conventions in a formatting template.",
                    )
                self.found.calendar = p.calendar
            if p.key == "FX":
                fixed = True
                continue
            self.take(p, index, skipped)
            if not fixed:
                skipped = self.blanks()
        if self.strict:
            self.blanks()
            if self.at < len(text):
                raise _error("trailing characters remain in input string after datetime format")
        return self.found

    def blanks(self) -> int:
        start = self.at
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at - start

    # -- one field -----------------------------------------------------------------------------------

    def take(self, p: Pattern, index: int, skipped: int) -> None:
        found = self.found
        match p.key:
            case "AM" | "PM":
                found.put("pm", self.word(("AM", "PM"), p), p)
                found.clock12 = True
            case "A.M." | "P.M.":
                found.put("pm", self.word(("A.M.", "P.M."), p), p)
                found.clock12 = True
            case "AD" | "BC":
                found.put("bc", self.word(("AD", "BC"), p), p)
            case "A.D." | "B.C.":
                found.put("bc", self.word(("A.D.", "B.C."), p), p)
            case "HH" | "HH12":
                found.put("hour", self.number(p, index, 2)[0], p)
                found.clock12 = True
            case "HH24":
                found.put("hour", self.number(p, index, 2)[0], p)
            case "MI" | "SS":
                found.put({"MI": "minute", "SS": "second"}[p.key], self.number(p, index, 2)[0], p)
            case "MS":
                value, digits = self.number(p, index, 3)
                found.put("ms", value, p, value * {1: 100, 2: 10}.get(digits, 1))
            case "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6":
                width = 6
                if p.key != "US":
                    width = found.precision = int(p.key[2])
                value, digits = self.number(p, index, width)
                found.put("us", value, p, value * 10 ** max(6 - digits, 0))
            case "SSSS" | "SSSSS":
                found.put("seconds", self.number(p, index, len(p.key))[0], p)
            case "TZ" | "OF":
                raise SqlError("0A000", f'formatting field "{p.text}" is only supported in to_char')
            case "TZH":
                self.zone_hour(p, index, skipped)
            case "TZM":
                found.zone_sign = found.zone_sign or 1
                found.put("zone_minute", self.number(p, index, 2)[0], p)
            case "MONTH" | "MON":
                names = MONTH_NAMES if p.key == "MONTH" else MONTHS_SHORT
                found.put("month", self.word(names, p) + 1, p)
            case "RM":
                found.put("month", 12 - self.word(ROMAN_MONTHS, p), p)
            case "DAY" | "DY":
                names = DAY_NAMES if p.key == "DAY" else DAYS_SHORT
                found.put("weekday", self.word(names, p) + 1, p)
            case "ID":
                day = self.number(p, index, 1)[0]
                found.put("weekday", day, p, day + 1 if day < 7 else 1)  # what is too much is Sunday
            case "Q":
                self.number(p, index, 1)
            case "MM" | "DD" | "DDD" | "IDDD" | "D" | "WW" | "IW" | "W" | "CC" | "J":
                name = {"MM": "month", "DD": "day", "DDD": "doy", "IDDD": "doy", "D": "weekday", "WW": "week",
                        "IW": "week", "W": "month_week", "CC": "century", "J": "julian"}[p.key]  # fmt: skip
                found.put(name, self.number(p, index, 3 if p.key == "IDDD" else len(p.key))[0], p)
            case _:
                self.year(p, index)
        if p.ordinal:
            self.at += 2

    def year(self, p: Pattern, index: int) -> None:
        if p.key == "Y,YYY":
            match = re.compile(r"\s*([+-]?[0-9]+),([0-9]{1,3})").match(self.text, self.at)
            if match is None:
                raise _error('invalid input string for "Y,YYY"')
            self.at = match.end()
            self.found.put("year", int_of(match[1]) * 1000 + int(match[2]), p)
            self.found.year_digits = 4
            return
        width = {"YYYY": 4, "IYYY": 4, "YYY": 3, "IYY": 3, "YY": 2, "IY": 2, "Y": 1, "I": 1}[p.key]
        value, digits = self.number(p, index, len(p.key))
        read = value
        if width < 4 and digits < 4:
            value += 2000 if value < 70 else 1900 if value < 100 else 2000 if value < 520 else (
                1000 if value < 1000 else 0)  # fmt: skip
        self.found.put("year", read, p, value)
        self.found.year_digits = width

    def zone_hour(self, p: Pattern, index: int, skipped: int) -> None:
        sign = self.text[self.at : self.at + 1]
        if sign and sign in "+- ":
            self.found.zone_sign = -1 if sign == "-" else 1
            self.at += 1
        else:
            minus = skipped > 0 and self.text[self.at - 1 : self.at] == "-"
            self.found.zone_sign = -1 if minus else 1
        self.found.put("zone_hour", self.number(p, index, 2)[0], p)

    def next_is_no_digit(self, p: Pattern, index: int) -> bool:
        if p.ordinal:
            return True
        if index + 1 >= len(self.patterns):
            return True
        following = self.patterns[index + 1]
        if following.kind == "action":
            return not following.digits
        return not following.text.isdigit()

    def number(self, p: Pattern, index: int, width: int) -> tuple[int, int]:
        """Read an integer; return it and how many characters it took."""
        start = self.at
        if p.fill or self.next_is_no_digit(p, index):
            match = _INTEGER.match(self.text, start)
            if match is None:
                raise self.no_integer(p, start, width)
            value, self.at = int_of(match[0].lstrip()), match.end()
        else:
            self.blanks()
            piece = self.text[self.at : self.at + width]
            if len(piece) < width:
                raise _error(
                    f'source string too short for "{p.text}" formatting field',
                    f"Field requires {width} characters, but only {len(piece)} remain.",
                    _FM_HINT,
                )
            match = _INTEGER.match(piece)
            used = match.end() if match else 0
            if match is None:
                raise self.no_integer(p, start, width)
            if used < width:
                raise _error(
                    f'invalid value "{piece}" for "{p.text}"',
                    f"Field requires {width} characters, but only {used} could be parsed.",
                    _FM_HINT,
                )
            value = int_of(match[0].lstrip())
            self.at += used
        if not -(2**31) <= value < 2**31:
            raise _error(
                f'value for "{p.text}" in source string is out of range',
                "Value must be in the range -2147483648 to 2147483647.",
                sqlstate="22008",
            )
        return value, self.at - start

    def no_integer(self, p: Pattern, start: int, width: int) -> SqlError:
        piece = self.text[start:].lstrip()[:width]
        return _error(f'invalid value "{piece}" for "{p.text}"', "Value must be an integer.")

    def word(self, words: tuple[str, ...], p: Pattern) -> int:
        """Match one of ``words`` in any case; return its index."""
        rest = self.text[self.at :].lower()
        for index, word in sorted(enumerate(words), key=lambda item: -len(item[1])):
            if rest.startswith(word.lower()):
                self.at += len(word)
                return index
        piece = re.split(r"\s", self.text[self.at :], maxsplit=1)[0]
        raise _error(
            f'invalid value "{piece}" for "{p.text}"',
            "The given value did not match any of the allowed values for this field.",
        )


def _overflow(text: str) -> SqlError:
    return _error(quoting("date/time field value out of range: ", text), sqlstate="22008")


def _year(r: _Read) -> tuple[int, bool]:
    """Return the astronomical year and whether one was given."""
    century = -r.get("century") if r.get("bc") else r.get("century")
    year = r.get("year")
    if year:
        if century and r.year_digits <= 2:
            short = year % 100
            if not short:
                return century * 100 + (0 if century >= 0 else 1), True
            return ((century + 1) * 100 - short + 1 if century < 0 else short + (century - 1) * 100), True
        year = -year if r.get("bc") else year
        return (year + 1 if year < 0 else year), True
    if century:
        return ((century - 1) * 100 + 1 if century >= 0 else century * 100 + 1), True
    return 0, False


def _date(r: _Read, text: str) -> int:
    """Return days since 1970 of what was read; 1 January of year 0 (1 BC) where nothing was."""
    year, has_year = _year(r)
    month = day = 1
    doy = r.get("doy")
    if r.get("julian"):
        year, month, day = civil_from_days(r.get("julian") - EPOCH_1970_JDATE)
    if r.get("week"):
        if r.calendar == "iso":
            start = iso_week_start(year, r.get("week"))
            if r.get("weekday"):
                start += (r.get("weekday") + 5) % 7
            year, month, day = civil_from_days(start)
        else:
            doy = (r.get("week") - 1) * 7 + 1
    day = (r.get("month_week") - 1) * 7 + 1 if r.get("month_week") else r.get("day") or day
    month = r.get("month") or month
    if doy and (month <= 1 or day <= 1):
        if not year and not r.get("bc"):
            raise _error("cannot calculate day of year without year information")
        if r.calendar == "iso":
            year, month, day = civil_from_days(iso_week_start(year, 1) + doy - 1)
        else:
            of_year, before = 1, 0
            while of_year < 12 and doy > before + month_days(year, of_year):
                before += month_days(year, of_year)
                of_year += 1
            # A month or a day that was read stays, as in PostgreSQL.
            month = of_year if month <= 1 else month
            day = doy - before if day <= 1 else day
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        raise _overflow(text)
    complete = has_year or r.get("julian")
    if (complete or day > 31) and day > month_days(year, month):
        raise _overflow(text)
    return days_from_civil(year, month, day)


def _time(r: _Read, text: str) -> int:
    seconds = r.get("seconds")
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    hour, minute, second = r.get("hour") or hour, r.get("minute") or minute, r.get("second") or second
    if r.clock12:
        if not 1 <= hour <= 12:
            raise _error(
                f'hour "{hour}" is invalid for the 12-hour clock',
                hint="Use the 24-hour clock, or give an hour between 1 and 12.",
            )
        hour = hour % 12 + (12 if r.get("pm") else 0)
    us = r.get("ms") * 1000 + r.get("us")
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= us < 1_000_000):
        raise _overflow(text)
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + us


def to_date(text: str, template: str) -> int:
    """Read a date; 22007, 22008."""
    found = _Reader(text, template).run()
    days = _date(found, text)
    _time(found, text)
    if not in_date_range(days):
        raise _error(quoting("date out of range: ", text), sqlstate="22008")
    return days


def _zone(r: _Read, text: str) -> int:
    """Return seconds east of UTC."""
    hours, minutes = r.get("zone_hour"), r.get("zone_minute")
    if not 0 <= hours <= 15 or not 0 <= minutes <= 59:
        raise _error(quoting("time zone displacement out of range: ", text), sqlstate="22009")
    return r.zone_sign * (hours * 3600 + minutes * 60)


def rounded_to(us: int, digits: int) -> int:
    """Return microseconds with so many digits of the second, halves away from zero; 0 keeps all."""
    if not digits:
        return us
    step: int = 10 ** (6 - digits)
    return (us + step // 2) // step * step if us >= 0 else -((-us + step // 2) // step * step)


def to_timestamp(session: EvalSession, text: str, template: str) -> int:
    """Read an instant, in the session's zone unless TZH was read; 22007, 22008."""
    found = _Reader(text, template).run()
    us = _date(found, text) * US_PER_DAY + _time(found, text)
    if found.zone_sign:
        us -= _zone(found, text) * 1_000_000
    else:
        us -= session_zone(session).offset_for_local(us) * 1_000_000
    us = rounded_to(us, found.precision)
    if not -211813488000000000 <= us < TIMESTAMP_INFINITY:
        raise _error("timestamp out of range", sqlstate="22008")
    return us


def read_moment(text: str, template: str) -> tuple[int, int, int]:
    """Read a date or time by a strict template, whose fields say of which type it is.

    Returns:
        The type's oid; days since 1970 or microseconds as the type has them; the zone in seconds east, 0
        where the type has none.

    Raises:
        SqlError: 22007, 22008, 22009; 0A000 for fields that are only written.
    """
    reader = _Reader(text, template, strict=True)
    if not template:
        raise _error("datetime format is not dated and not timed")
    found = reader.run()
    keys = {p.key for p in reader.patterns if p.kind == "action"}
    timed, zoned = bool(keys & _TIMED), bool(keys & _ZONED)
    days, us = _date(found, text), rounded_to(_time(found, text), found.precision)
    zone = _zone(found, text) if found.zone_sign else 0
    if not keys - _TIMED - _ZONED - {"FX"}:
        if not timed:
            raise _error("datetime format is not dated and not timed")
        return (TIMETZ, us, zone) if zoned else (TIME, us, 0)
    if not timed:
        if zoned:
            raise _error("datetime format is zoned but not timed")
        if not in_date_range(days):
            raise _error(quoting("date out of range: ", text), sqlstate="22008")
        return DATE, days, 0
    us += days * US_PER_DAY - zone * 1_000_000
    if not -211813488000000000 <= us < TIMESTAMP_INFINITY:
        name = "timestamptz" if zoned else "timestamp"
        raise _error(f"{name} out of range", sqlstate="22008")
    return (TIMESTAMPTZ, us, zone) if zoned else (TIMESTAMP, us, 0)


REGISTRY.python("to_date(text,text)", to_date)
REGISTRY.python("to_timestamp(text,text)", to_timestamp, needs_session=True)
