"""Date/time templates of to_char, to_timestamp and to_date: cutting them into patterns.

A template is patterns (``YYYY``, ``Mon`` ...; upper and lower case as listed, nothing in between), modifiers around
them (``FM``, ``TM`` before, ``TH``, ``th``, ``SP`` after), quoted text, separators and other characters.
"""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

from pgwire.give_way import give_way
from planner.base.errors import SqlError

_UPPER = [
    "A.D.",
    "A.M.",
    "AD",
    "AM",
    "B.C.",
    "BC",
    "CC",
    "DAY",
    "DDD",
    "DD",
    "DY",
    "D",
    "FF1",
    "FF2",
    "FF3",
    "FF4",
    "FF5",
    "FF6",
    "FX",
    "HH24",
    "HH12",
    "HH",
    "IDDD",
    "ID",
    "IW",
    "IYYY",
    "IYY",
    "IY",
    "I",
    "J",
    "MI",
    "MM",
    "MONTH",
    "MON",
    "MS",
    "OF",
    "P.M.",
    "PM",
    "Q",
    "RM",
    "SSSSS",
    "SSSS",
    "SS",
    "TZH",
    "TZM",
    "TZ",
    "US",
    "WW",
    "W",
    "Y,YYY",
    "YYYY",
    "YYY",
    "YY",
    "Y",
]
_WORDS = sorted(
    {*_UPPER, *(word.lower() for word in _UPPER), "Day", "Dy", "Month", "Mon"}, key=len, reverse=True
)
_NOT_DIGITS = frozenset(
    [
        "A.D.",
        "A.M.",
        "AD",
        "AM",
        "B.C.",
        "BC",
        "DAY",
        "DY",
        "FX",
        "MONTH",
        "MON",
        "OF",
        "P.M.",
        "PM",
        "RM",
        "TZH",
        "TZ",
    ]
)
_GREGORIAN = frozenset(
    ["DDD", "DD", "D", "MM", "MONTH", "MON", "RM", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y"]
)
_ISO = frozenset(["IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I"])


class Pattern(NamedTuple):
    """A piece of a template.

    ``kind`` is action, char, separator or space. For an action ``key`` is the pattern in upper case, ``text`` as it
    was written (its case chooses the output's).
    """

    kind: str
    text: str
    key: str = ""
    fill: bool = False  # FM
    names: bool = False  # TM
    ordinal: str = ""  # "TH" or "th"
    spelled: bool = False  # SP

    @property
    def digits(self) -> bool:
        """Whether the pattern reads digits."""
        return self.key not in _NOT_DIGITS

    @property
    def calendar(self) -> str:
        """Return gregorian, iso or nothing."""
        return "gregorian" if self.key in _GREGORIAN else "iso" if self.key in _ISO else ""


_STRICT_SEPARATORS: Final = "-./,':; "
KEPT_CHARACTERS: Final = 256
"""Of a template whose patterns are kept for the next call."""


def parse_template(template: str) -> tuple[Pattern, ...]:
    """Cut a template into patterns. Anything is a template."""
    return (_kept if len(template) <= KEPT_CHARACTERS else _parse)(template)


def parse_strict(template: str) -> tuple[Pattern, ...]:
    """Cut a template of SQL/JSON, which has patterns, texts in quotes and some separators. Raises SqlError
    22007 for others.
    """
    return (_kept_strict if len(template) <= KEPT_CHARACTERS else _parse_strict)(template)


def _parse_strict(template: str) -> tuple[Pattern, ...]:
    return _parse(template, strict=True)


def _parse(template: str, strict: bool = False) -> tuple[Pattern, ...]:
    out: list[Pattern] = []
    at, end = 0, len(template)
    while at < end:
        give_way()
        fill = names = False
        if template[at : at + 2] in ("FM", "fm"):
            fill, at = True, at + 2
        elif template[at : at + 2] in ("TM", "tm"):
            names, at = True, at + 2
        if at >= end:
            break
        word = next((w for w in _WORDS if template.startswith(w, at)), "")
        if word:
            at += len(word)
            ordinal, spelled = "", False
            if template[at : at + 2] in ("TH", "th"):
                ordinal, at = template[at : at + 2], at + 2
            elif template[at : at + 2] in ("SP", "sp"):
                spelled, at = True, at + 2
            out.append(Pattern("action", word, word.upper(), fill, names, ordinal, spelled))
            continue
        char = template[at]
        if char == '"':
            at += 1
            while at < end and template[at] != '"':
                if template[at] == "\\" and at + 1 < end:
                    at += 1
                out.append(Pattern("char", template[at]))
                at += 1
            at += 1
            continue
        if strict and char not in _STRICT_SEPARATORS:
            raise SqlError("22007", f'invalid datetime format separator: "{char}"')
        if char == "\\" and template[at + 1 : at + 2] == '"':
            at += 1
            char = template[at]
        kind = "space" if char.isspace() else "separator" if is_separator(char) else "char"
        out.append(Pattern(kind, char))
        at += 1
    return tuple(out)


_kept = functools.lru_cache(maxsize=512)(_parse)
_kept_strict = functools.lru_cache(maxsize=512)(_parse_strict)


def is_separator(char: str) -> bool:
    """Whether a character counts as a separator: printable ASCII, no letter, no digit, no blank."""
    return " " < char < "\x7f" and not char.isalnum()


def ordinal_suffix(number: str, *, upper: bool) -> str:
    """Return st, nd, rd or th for a number's text; 22P02 for NaN and infinity."""
    last = number[-1:]
    if not last.isdigit():
        raise SqlError("22P02", f'"{number}" is not a number')
    if len(number) > 1 and number[-2] == "1":
        last = "0"
    suffix = {"1": "st", "2": "nd", "3": "rd"}.get(last, "th")
    return suffix.upper() if upper else suffix
