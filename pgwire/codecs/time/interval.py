"""interval; value ``(months, days, microseconds)``.

Reading: PostgreSQL's verbose form (``1 year 2 days ago``), SQL's (``1-2 3 04:05:06``), ISO 8601 with
designators (``P1Y2DT3H``) or in the alternative form (``P0001-02-03T04:05:06``). The text is taken from right
to left, so that a unit is known before its number. Fractions of a unit spill into smaller ones: of a month
into days of 24 hours (30 to a month), of a year into whole months.

Printing: four IntervalStyles.

``fields`` (which of ``YEAR TO MONTH``, ``DAY TO SECOND`` ... was declared) are bits as in a typmod.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.domain import US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND
from pgwire.codecs.errors import DataError
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text import int_of
from pgwire.codecs.time.fields import Bad, Kind, data_error, fraction_us, integer, look_up, split_fields

Interval = tuple[int, int, int]

# Bits of the field mask in an interval's typmod.
MONTH, YEAR, DAY, HOUR, MINUTE, SECOND = 1 << 1, 1 << 2, 1 << 3, 1 << 10, 1 << 11, 1 << 12
FULL_RANGE: Final = 0x7FFF

UNITS: Final[dict[str, tuple[str, int | str]]] = {"@": ("ignore", 0), "ago": ("ago", 0)}
for _unit, _names in {
    "century": "c cent centuries century",
    "day": "d day days",
    "decade": "dec decade decades decs",
    "hour": "h hour hours hr hrs",
    "minute": "m min mins minute minutes",
    "millennium": "mil millennia millennium mils",
    "month": "mon mons month months",
    "millisecond": "ms msec msecs mseconds millisecon",
    "microsecond": "us usec usecs usecond useconds microsecon",
    "second": "s sec secs second seconds",
    "week": "w week weeks",
    "year": "y year years yr yrs",
    "quarter": "qtr quarter",
}.items():
    UNITS.update(dict.fromkeys(_names.split(), ("units", _unit)))

_TIME_UNITS: Final = {
    "microsecond": 1, "millisecond": 1000, "second": US_PER_SECOND, "minute": US_PER_MINUTE,
    "hour": US_PER_HOUR,
}  # fmt: skip
_CLOCK: Final = ("hour", "minute", "second", "subsecond", "millisecond", "microsecond")
_YEAR_UNITS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_RIGHTMOST: Final = {
    YEAR: "year", MONTH: "month", YEAR | MONTH: "month", DAY: "day", HOUR: "hour", DAY | HOUR: "hour",
    MINUTE: "minute", HOUR | MINUTE: "minute", DAY | HOUR | MINUTE: "minute",
}  # fmt: skip


class _Sum:
    """The interval being added up; every part is checked to stay in its size."""

    __slots__ = ("days", "months", "us", "years")

    def __init__(self) -> None:
        self.years = self.months = self.days = self.us = 0

    def add(self, unit: str, whole: int, fraction: float) -> None:
        """Add ``whole + fraction`` units."""
        if unit in _TIME_UNITS:
            scale = _TIME_UNITS[unit]
            self.us = _bounded(self.us + whole * scale, 64)
            self.add_fraction_us(fraction, scale)
        elif unit == "day":
            self.days = _bounded(self.days + whole, 32)
            self.add_fraction_us(fraction, US_PER_DAY)
        elif unit == "week":
            self.days = _bounded(self.days + whole * 7, 32)
            self.add_fraction_days(fraction, 7)
        elif unit == "month":
            self.months = _bounded(self.months + whole, 32)
            self.add_fraction_days(fraction, 30)
        elif unit in _YEAR_UNITS:
            scale = _YEAR_UNITS[unit]
            self.years = _bounded(self.years + whole * scale, 32)
            self.months = _bounded(self.months + round(fraction * scale * 12), 32)
        else:
            raise Bad

    def add_fraction_us(self, fraction: float, scale: int) -> None:
        if fraction == 0:
            return
        scaled = fraction * scale
        us = int(scaled)
        rest = scaled - us
        us += 1 if rest > 0.5 else -1 if rest < -0.5 else 0
        self.us = _bounded(self.us + us, 64)

    def add_fraction_days(self, fraction: float, scale: int) -> None:
        if fraction == 0:
            return
        scaled = fraction * scale
        days = int(scaled)
        self.days = _bounded(self.days + days, 32)
        self.add_fraction_us(scaled - days, US_PER_DAY)

    def negate(self) -> None:
        self.years, self.months = -self.years, -self.months
        self.days, self.us = _bounded(-self.days, 32), _bounded(-self.us, 64)

    def value(self) -> Interval:
        months = self.years * 12 + self.months
        if not -(2**31) <= months < 2**31:
            raise DataError("22008", "interval out of range")
        return months, self.days, self.us


def _bounded(value: int, bits: int) -> int:
    if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        return value
    raise Bad("interval")


def parse(text: str, settings: CodecSettings, fields: int = FULL_RANGE) -> Interval:
    """Read an interval in any of the forms; ``fields`` says what a number without a unit means.

    The result is not yet cut down to the declared fields (see ``typmod.apply_interval``).

    Raises:
        DataError: 22007 bad syntax, 22015 a field or 22008 the whole is out of range.
    """
    total = _Sum()
    try:
        try:
            _read_units(split_fields(text), total, settings, fields)
        except Bad as error:
            if error.reason != "format":
                raise
            total = _Sum()
            _read_iso(text, total)
    except Bad as error:
        raise data_error(Bad("interval") if error.reason == "field" else error, text, "interval") from None
    return total.value()


def _read_units(fields: list[tuple[Kind, str]], total: _Sum, settings: CodecSettings, range_: int) -> None:
    """Take the fields from right to left.

    As in PostgreSQL 15 a clock time replaces what fractions of days gave so far, and a unit without a number is
    passed over.
    """
    force_negative = (
        settings.interval_style == "sql_standard"
        and bool(fields)
        and fields[0][1][0] == "-"
        and not any(text[0] in "+-" for _, text in fields[1:])
    )
    seen: set[str] = set()
    unit = ""
    before = False
    for kind, text in reversed(fields):
        if kind is Kind.TIME:
            us = _clock(text, range_)
            total.us = -us if force_negative and us > 0 else us
            found = set(_CLOCK)
            unit = "day"
        elif kind in (Kind.OFFSET, Kind.DATE, Kind.NUMBER):
            clock = _signed_clock(text, range_) if kind is Kind.OFFSET and ":" in text else None
            if clock is not None:
                total.us = -clock if force_negative and clock > 0 else clock
                found = set(_CLOCK)
                unit = "day"
            else:
                if not unit:
                    unit = _RIGHTMOST.get(range_, "second")
                unit, found = _read_number(text, unit, total, force_negative)
        else:
            entry = look_up(text, UNITS)
            if entry is None:
                raise Bad
            if entry[0] == "ignore":
                continue
            found = set()
            if entry[0] == "ago":
                before = True
                unit = "ago"
            else:
                unit = str(entry[1])
        if found & seen:
            raise Bad
        seen |= found
    if not seen:
        raise Bad
    if before:
        total.negate()


def _read_number(text: str, unit: str, total: _Sum, negative: bool) -> tuple[str, set[str]]:
    """Add one number; return its unit (SQL's years-months sets it) and what it counts as."""
    digits = 1 if text[:1] in "+-" else 0
    while digits < len(text) and text[digits].isdigit():
        digits += 1
    head, rest = text[:digits], text[digits:]
    whole = int_of(head) if head not in ("", "+", "-") else 0
    if not -(2**63) <= whole < 2**63:
        raise Bad("field")
    fraction = 0.0
    if rest[:1] == "-":
        months, tail = integer(rest[1:])
        if not 0 <= months < 12:
            raise Bad("field")
        if tail:
            raise Bad
        unit = "month"
        whole = whole * 12 + (-months if text[0] == "-" else months)
    elif rest[:1] == ".":
        if len(rest) > 1 and not rest[1:].isdigit():
            raise Bad
        fraction = float("0" + rest + "0")
        if text[0] == "-":
            fraction = -fraction
    elif rest:
        raise Bad
    if negative:
        whole, fraction = -abs(whole), -abs(fraction)
    total.add(unit, whole, fraction)
    if unit == "second" and fraction:
        return unit, {"second", "subsecond", "millisecond", "microsecond"}
    # What stands before hours without a unit of its own is days.
    return ("day" if unit == "hour" else unit), {unit}


def _signed_clock(text: str, range_: int) -> int | None:
    try:
        us = _clock(text[1:], range_)
    except Bad:
        return None
    return -us if text[0] == "-" else us


def _clock(text: str, range_: int) -> int:
    """Read ``h:m[:s[.f]]`` (``m:s`` for MINUTE TO SECOND, and where seconds have a fraction)."""
    first, _, rest = text.partition(":")
    if not first.isdigit():
        raise Bad
    hour = int_of(first)
    if hour >= 2**63:
        raise Bad("field")
    minute, rest = integer(rest)
    second = us = 0
    if not rest:
        if range_ == MINUTE | SECOND:
            if not 0 <= hour < 2**31:
                raise Bad("field")
            hour, minute, second = 0, hour, minute
    elif rest[0] == ".":
        us = fraction_us(rest)
        hour, minute, second = 0, hour, minute
    elif rest[0] == ":":
        second, rest = integer(rest[1:])
        if rest[:1] == ".":
            us = fraction_us(rest)
        elif rest:
            raise Bad
    else:
        raise Bad
    if not 0 <= minute <= 59 or not 0 <= second <= 60:
        raise Bad("field")
    return _bounded(hour * US_PER_HOUR + minute * US_PER_MINUTE + second * US_PER_SECOND + us, 64)


class _Iso:
    """A cursor over an ISO 8601 interval."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def next(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def number(self) -> tuple[int, float, int]:
        """Read ``[-]digits[.digits]``; return whole, fraction and the number of whole digits."""
        sign = 1
        if self.peek() == "-":
            sign = -1
            self.at += 1
        elif self.peek() == "+":
            raise Bad
        start = self.at
        while self.peek().isdigit():
            self.at += 1
        digits = self.text[start : self.at]
        fraction = 0.0
        if self.peek() == ".":
            start = self.at
            self.at += 1
            while self.peek().isdigit():
                self.at += 1
            fraction = float("0" + self.text[start : self.at] + "0")
        elif not digits:
            raise Bad
        if len(digits) > 19:
            raise Bad("field")
        return sign * int(digits or 0), sign * fraction, len(digits) if sign > 0 else 0


def _read_iso(text: str, total: _Sum) -> None:
    """Read ``P...``: with designators, or in the basic or extended alternative form."""
    if len(text) < 2 or text[0] != "P":
        raise Bad
    cursor = _Iso(text)
    in_date, have_field = True, False
    while cursor.peek():
        if cursor.peek() == "T":
            in_date = have_field = False
            cursor.at += 1
            continue
        whole, fraction, width = cursor.number()
        unit = cursor.next()
        units = {"Y": "year", "M": "month", "W": "week", "D": "day"} if in_date else {
            "H": "hour", "M": "minute", "S": "second"}  # fmt: skip
        if unit in units:
            total.add(units[unit], whole, fraction)
        elif in_date and unit in ("T", "") and width == 8 and not have_field:
            total.add("year", whole // 10000, 0)
            total.add("month", whole // 100 % 100, 0)
            total.add("day", whole % 100, fraction)
            if not unit:
                return
            in_date = have_field = False
            continue
        elif not in_date and unit == "" and width == 6 and not have_field:
            total.add("hour", whole // 10000, 0)
            total.add("minute", whole // 100 % 100, 0)
            total.add("second", whole % 100, fraction)
            return
        elif unit in (("T", "", "-") if in_date else ("", ":")):
            if have_field:
                raise Bad
            if not in_date:
                _read_iso_parts(cursor, total, ("hour", "minute", "second"), whole, fraction, unit)
                return
            if _read_iso_parts(cursor, total, ("year", "month", "day"), whole, fraction, unit):
                return
            in_date = have_field = False
            continue
        else:
            raise Bad
        have_field = True


def _read_iso_parts(
    cursor: _Iso, total: _Sum, units: tuple[str, str, str], whole: int, fraction: float, mark: str
) -> bool:
    """Read ``y-m-d`` or ``h:m:s`` after its first number; whether the text ended (else at T)."""
    separator = "-" if units[0] == "year" else ":"
    for index, unit in enumerate(units):
        total.add(unit, whole, fraction)
        if not mark:
            return True
        if mark == "T" and separator == "-":
            return False
        if mark != separator or index == 2:
            raise Bad
        whole, fraction, _ = cursor.number()
        mark = cursor.next()
    raise Bad


# -- printing ----------------------------------------------------------------------------------------------


def _seconds(second: int, us: int, *, fill: bool) -> str:
    text = f"{second:02d}" if fill else str(second)
    return f"{text}.{us:06d}".rstrip("0") if us else text


def split(value: Interval) -> tuple[int, int, int, int, int, int, int]:
    """Return (years, months, days, hours, minutes, seconds, us), each with the sign of its part."""
    months, days, us = value
    sign = -1 if months < 0 else 1
    years, rest = divmod(abs(months), 12)
    time_sign = -1 if us < 0 else 1
    seconds, fraction = divmod(abs(us), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return (
        sign * years, sign * rest, days, time_sign * hour, time_sign * minute, time_sign * second,
        time_sign * fraction,
    )  # fmt: skip


def show_postgres(value: Interval) -> str:
    """Print ``1 year 2 mons -3 days +04:05:06``."""
    years, months, days, hour, minute, second, us = split(value)
    parts: list[str] = []
    before = False
    for number, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            plus = "+" if before and number > 0 else ""
            parts.append(f"{plus}{number} {unit}{'' if number == 1 else 's'}")
            before = number < 0
    if not parts or value[2]:
        sign = "-" if value[2] < 0 else "+" if before else ""
        parts.append(f"{sign}{abs(hour):02d}:{abs(minute):02d}:{_seconds(abs(second), abs(us), fill=True)}")
    return " ".join(parts)


def show_verbose(value: Interval) -> str:
    """Print ``@ 1 year 2 mons 4 hours 5 mins 6 secs ago``."""
    years, months, days, hour, minute, second, us = split(value)
    text = "@"
    zero, before = True, False
    for number, unit in ((years, "year"), (months, "mon"), (days, "day"), (hour, "hour"), (minute, "min")):
        if not number:
            continue
        if zero:
            before, number, zero = number < 0, abs(number), False
        elif before:
            number = -number
        text += f" {number} {unit}{'' if number == 1 else 's'}"
    if second or us:
        sign = ""
        if second < 0 or us < 0:
            if zero:
                before = True
            elif not before:
                sign = "-"
        elif before:
            sign = "-"
        plural = "" if abs(second) == 1 and not us else "s"
        text += f" {sign}{_seconds(abs(second), abs(us), fill=False)} sec{plural}"
        zero = False
    return text + (" 0" if zero else "") + (" ago" if before else "")


def show_sql(value: Interval) -> str:
    """Print ``1-2``, ``3 4:05:06``, or with all signs ``+1-2 -3 +4:05:06`` where they are mixed."""
    parts = split(value)
    years, months, days, hour, minute, second, us = parts
    negative, positive = any(p < 0 for p in parts), any(p > 0 for p in parts)
    if not negative and not positive:
        return "0"
    year_month, day_time = bool(years or months), bool(days or value[2])
    if (negative and positive) or (year_month and day_time):
        year_sign = "-" if years < 0 or months < 0 else "+"
        day_sign = "-" if days < 0 else "+"
        time_sign = "-" if value[2] < 0 else "+"
        return (
            f"{year_sign}{abs(years)}-{abs(months)} {day_sign}{abs(days)} "
            f"{time_sign}{abs(hour)}:{abs(minute):02d}:{_seconds(abs(second), abs(us), fill=True)}"
        )
    sign = "-" if negative else ""
    years, months, days, hour, minute, second, us = map(abs, parts)
    if year_month:
        return f"{sign}{years}-{months}"
    time = f"{hour}:{minute:02d}:{_seconds(second, us, fill=True)}"
    return f"{sign}{days} {time}" if days else sign + time


def show_iso(value: Interval) -> str:
    """Print ``P1Y2M3DT4H5M6S``."""
    years, months, days, hour, minute, second, us = split(value)
    text = "".join([f"{n}{u}" for n, u in ((years, "Y"), (months, "M"), (days, "D")) if n])
    time = "".join([f"{n}{u}" for n, u in ((hour, "H"), (minute, "M")) if n])
    if second or us:
        time += ("-" if second < 0 or us < 0 else "") + _seconds(abs(second), abs(us), fill=False) + "S"
    if not text and not time:
        return "PT0S"
    return f"P{text}T{time}" if time else f"P{text}"


def printer(settings: CodecSettings) -> Callable[[Interval], str]:
    """Return the function that prints intervals in the style of ``settings``."""
    return {
        "postgres": show_postgres, "postgres_verbose": show_verbose, "sql_standard": show_sql,
        "iso_8601": show_iso,
    }[settings.interval_style]  # fmt: skip


_WIRE: Final = struct.Struct(">qii")


def recv(data: bytes) -> Interval:
    """Read int64 microseconds, int32 days, int32 months."""
    if len(data) != 16:
        raise DataError(*wrong_length(data, 16))
    us, days, months = _WIRE.unpack(data)
    return months, days, us


def send(value: Interval) -> bytes:
    """Return microseconds, days, months."""
    return _WIRE.pack(value[2], value[1], value[0])
