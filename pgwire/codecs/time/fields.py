"""Text of a date, time or interval -> fields: the scanner and word lists that their readers share.

    "Dec 17 07:37:16.5 1997 America/New_York"
    STRING dec · NUMBER 17 · TIME 07:37:16.5 · NUMBER 1997 · DATE america/new_york

A field's kind is only a first guess by its punctuation; the readers decide what it is.
"""

from __future__ import annotations

import enum
from typing import Final

from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax, quoting
from pgwire.give_way import give_way
from pgwire.long.values import joined


class Kind(enum.Enum):
    """What a field looks like."""

    NUMBER = "number"
    DATE = "date"  # digits or letters joined by - / . or a zone name
    TIME = "time"  # has a colon
    STRING = "string"
    OFFSET = "offset"  # sign and digits
    SPECIAL = "special"  # sign and letters


class Bad(Exception):
    """A text that cannot be read; ``reason`` picks the SQLSTATE (see ``data_error``)."""

    def __init__(self, reason: str = "format") -> None:
        super().__init__(reason)
        self.reason = reason


class UnknownZone(Exception):
    """A zone name that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def data_error(error: Bad | UnknownZone, text: str, type_name: str) -> DataError:
    """Return what the client sees: 22007 bad format, 22008, 22009, 22015 out of range, 22023 unknown zone."""
    if isinstance(error, UnknownZone):
        return DataError("22023", quoting("time zone ", error.name, " not recognized"))
    match error.reason:
        case "field":
            return DataError("22008", quoting("date/time field value out of range: ", text))
        case "month-day":
            return DataError(
                "22008",
                quoting("date/time field value out of range: ", text),
                hint='Perhaps you need a different "datestyle" setting.',
            )
        case "interval":
            return DataError("22015", quoting("interval field value out of range: ", text))
        case "zone":
            return DataError("22009", quoting("time zone displacement out of range: ", text))
        case _:
            return invalid_syntax(type_name, text, "22007")


MAX_FIELDS: Final = 25
MAX_FIELD: Final = 255
_DIGITS: Final = frozenset("0123456789")
_SPACE: Final = frozenset(" \t\n\r\f\v")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ALNUM: Final = _DIGITS | _LETTERS
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

# word -> (class, value). Words of more than ten letters are compared by their first ten.
WORDS: Final[dict[str, tuple[str, int | str]]] = {
    "-infinity": ("reserved", "-infinity"), "ad": ("era", 0), "allballs": ("reserved", "allballs"),
    "am": ("ampm", "am"), "pm": ("ampm", "pm"), "at": ("ignore", 0), "on": ("ignore", 0), "bc": ("era", 1),
    "dst": ("dst", 3600), "epoch": ("reserved", "epoch"), "infinity": ("reserved", "infinity"),
    "now": ("reserved", "now"), "today": ("reserved", "today"), "tomorrow": ("reserved", "tomorrow"),
    "yesterday": ("reserved", "yesterday"), "t": ("isotime", "time"),
    "d": ("units", "day"), "dow": ("units", "dow"), "doy": ("units", "doy"), "h": ("units", "hour"),
    "isodow": ("units", "isodow"), "isoyear": ("units", "isoyear"), "j": ("units", "julian"),
    "jd": ("units", "julian"), "julian": ("units", "julian"), "m": ("units", "month"),
    "mm": ("units", "minute"), "s": ("units", "second"), "y": ("units", "year"),
    **{name: ("month", n) for n, names in enumerate((
        "jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
        "sep sept september", "oct october", "nov november", "dec december"), 1) for name in names.split()},
    **{name: ("dow", n) for n, names in enumerate((
        "sun sunday", "mon monday", "tue tues tuesday", "wed weds wednesday", "thu thur thurs thursday",
        "fri friday", "sat saturday")) for name in names.split()},
}  # fmt: skip


def look_up(word: str, table: dict[str, tuple[str, int | str]]) -> tuple[str, int | str] | None:
    """Find a word, comparing at most ten letters."""
    return table.get(word) if len(word) <= 10 else _truncated(table).get(word[:10])


_TRUNCATED: dict[int, dict[str, tuple[str, int | str]]] = {}


def _truncated(table: dict[str, tuple[str, int | str]]) -> dict[str, tuple[str, int | str]]:
    short = _TRUNCATED.get(id(table))
    if short is None:
        short = _TRUNCATED[id(table)] = {word[:10]: entry for word, entry in table.items() if len(word) >= 10}
    return short


def split_fields(text: str) -> list[tuple[Kind, str]]:
    """Cut ``text`` into fields, letters in lower case. Gives way.

    Raises:
        Bad: a character that belongs to nothing, more than 25 fields, or a field of more than 255 characters.
    """
    fields: list[tuple[Kind, str]] = []
    at, end = 0, len(text)
    text = joined((text, "\0"))

    def run(start: int, allowed: frozenset[str]) -> int:
        last = start + MAX_FIELD
        while text[start] in allowed:
            if start >= last:
                raise Bad  # PostgreSQL has no more room for all fields of an interval, less for others
            start += 1
        return start

    def blanks(start: int) -> int:
        while text[start] in _SPACE:
            start += 1
            if not start & 255:
                give_way()
        return start

    while at < end:
        char = text[at]
        if char in _SPACE:
            at = blanks(at)
            continue
        start = at
        if char in _DIGITS:
            at = run(at, _DIGITS)
            mark = text[at]
            if mark == ":":
                kind, at = Kind.TIME, run(at, _DIGITS | {":", "."})
            elif mark in "-/.":
                at += 1
                if text[at] in _DIGITS:
                    kind = Kind.NUMBER if mark == "." else Kind.DATE
                    at = run(at, _DIGITS)
                    if text[at] == mark:
                        kind, at = Kind.DATE, run(at, _DIGITS | {mark})
                else:
                    kind, at = Kind.DATE, run(at, _ALNUM | {mark})
            else:
                kind = Kind.NUMBER
            piece = text[start:at]
        elif char == ".":
            kind, at = Kind.NUMBER, run(at + 1, _DIGITS)
            piece = text[start:at]
        elif char in _LETTERS:
            at = run(at, _LETTERS)
            mark = text[at]
            # A word may go on as a date (jan-1-2000) or as a zone name with punctuation.
            goes_on = mark in "-/." or (
                (mark == "+" or mark in _DIGITS) and look_up(text[start:at].lower(), WORDS) is None
            )
            if goes_on:
                kind, at = Kind.DATE, run(at, _ALNUM | frozenset("+-/_.:"))
            else:
                kind = Kind.STRING
            piece = text[start:at]
        elif char in "+-":
            at = blanks(at + 1)
            if text[at] in _DIGITS:
                kind, first = Kind.OFFSET, at
                at = run(at, _DIGITS | {":", ".", "-"})
            elif text[at] in _LETTERS:
                kind, first = Kind.SPECIAL, at
                at = run(at, _LETTERS)
            else:
                raise Bad
            piece = char + text[first:at]
        elif char in _PUNCTUATION:
            at += 1
            if not at & 255:
                give_way()
            continue
        else:
            raise Bad
        if len(fields) >= MAX_FIELDS:
            raise Bad
        fields.append((kind, piece.lower()))
    return fields


def integer(text: str) -> tuple[int, str]:
    """Read a leading integer with optional sign; return it and the rest. ``Bad('field')`` past 32 bits."""
    at = 1 if text[:1] in ("+", "-") else 0
    while at < len(text) and text[at] in _DIGITS:
        at += 1
    if at == 0 or text[:at] in ("+", "-"):
        return 0, text
    value = int(text[:at]) if at < 20 else 1 << 70
    if not -(2**31) <= value < 2**31:
        raise Bad("field")
    return value, text[at:]


def fraction_us(text: str) -> int:
    """Read ``.ddd`` as microseconds, rounded half to even as floating point does; ``Bad`` on junk."""
    digits = text[1:]
    if not digits:
        return 0
    if not all(c in _DIGITS for c in digits):
        raise Bad
    return round(float("0." + digits) * 1_000_000)


def offset_seconds(text: str) -> int:
    """Read ``+HH[:MM[:SS]]`` or ``+HHMM``; return seconds *east*. ``Bad('zone')`` past 15:59:59."""
    if text[:1] not in ("+", "-"):
        raise Bad
    digits = text[1:]
    try:
        hour, rest = integer(digits)
        minute = second = 0
        if rest[:1] == ":":
            minute, rest = integer(rest[1:])
            if rest[:1] == ":":
                second, rest = integer(rest[1:])
        elif not rest and len(digits) > 2:
            hour, minute = divmod(hour, 100)
    except Bad:
        raise Bad("zone") from None
    if not 0 <= hour <= 15 or not 0 <= minute <= 59 or not 0 <= second <= 59:
        raise Bad("zone")
    if rest:
        raise Bad
    east = hour * 3600 + minute * 60 + second
    return -east if text[0] == "-" else east
