"""Sets of characters: what a character, a bracket expression or a class escape of a pattern takes.

A set is sorted, disjoint ranges of code points, both ends included. Classes are those of a database with
UTF-8 and the locale C.UTF-8 (``character_classes.csv``), cases the simple mappings of single characters.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from planner.base.letters import lower_char, upper_char
from planner.facts import rows

Ranges = tuple[tuple[int, int], ...]
LAST: Final = 0x10FFFF


@dataclass(frozen=True, slots=True)
class CharSet:
    """A set of characters."""

    ranges: Ranges

    def __contains__(self, character: str) -> bool:
        """Tell whether a character is in it, in the logarithm of its ranges."""
        code = ord(character)
        at = bisect_right(self.ranges, (code, LAST)) - 1
        return at >= 0 and code <= self.ranges[at][1]

    def isdisjoint(self, other: CharSet) -> bool:
        """Tell whether no character is in both."""
        i = j = 0
        while i < len(self.ranges) and j < len(other.ranges):
            (low, high), (start, end) = self.ranges[i], other.ranges[j]
            if high < start:
                i += 1
            elif end < low:
                j += 1
            else:
                return False
        return True

    @property
    def only(self) -> str | None:
        """The one character of a set that has no other."""
        if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]:
            return chr(self.ranges[0][0])
        return None


def union(parts: Iterable[Ranges]) -> Ranges:
    """Return the ranges of all parts, merged."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(r for part in parts for r in part):
        if found and low <= found[-1][1] + 1:
            if high > found[-1][1]:
                found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """Return the ranges of all other characters."""
    found = []
    start = 0
    for low, high in ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        found.append((start, LAST))
    return tuple(found)


EVERYTHING: Final = CharSet(((0, LAST),))
NEWLINE: Final = CharSet(((10, 10),))
NOT_NEWLINE: Final = CharSet(complement(NEWLINE.ranges))

_SIMPLE: Final[dict[str, Ranges]] = {
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 159)),
    "digit": ((48, 57),),
    "space": ((9, 13), (32, 32), (5760, 5760), (8192, 8198), (8200, 8202), (8232, 8233), (8287, 8287), (12288, 12288)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}  # fmt: skip
_LINE_ENDS: Final[Ranges] = ((9, 13), (8232, 8233))  # blanks that are not printed

CLASSES: Final = frozenset({*_SIMPLE, "alnum", "alpha", "graph", "lower", "print", "punct", "upper", "word"})
"""Names of classes."""


@functools.cache
def _tables() -> dict[str, Ranges]:
    found: dict[str, list[tuple[int, int]]] = {}
    for row in rows("character_classes"):
        found.setdefault(row["class"], []).append((int(row["first"]), int(row["last"])))
    return {name: tuple(ranges) for name, ranges in found.items()}


@functools.cache
def class_ranges(name: str) -> Ranges:
    """Return the characters of a class of ``CLASSES``."""
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name == "alnum":
        return union([class_ranges("alpha"), _SIMPLE["digit"]])
    if name == "word":
        return union([class_ranges("alnum"), ((95, 95),)])
    if name == "punct":
        return _without(class_ranges("graph"), class_ranges("alnum"))
    if name == "print":
        return union([class_ranges("graph"), _without(_SIMPLE["space"], _LINE_ENDS)])
    return _tables()[name]


def _without(ranges: Ranges, taken: Ranges) -> Ranges:
    return complement(union([complement(ranges), taken]))


# --- cases ----------------------------------------------------------------------------------------


@functools.cache
def _cased() -> tuple[list[int], list[Ranges]]:
    """Return every character that has another case, and those other forms."""
    codes, forms = [], []
    for low, high in union([class_ranges("upper"), class_ranges("lower")]):
        for code in range(low, high + 1):
            others = {ord(form) for form in _forms(chr(code))} - {code}
            if others:
                codes.append(code)
                forms.append(tuple((other, other) for other in sorted(others)))
    return codes, forms


def preload() -> None:
    """Read what the first pattern would need else: some tens of milliseconds. Idempotent."""
    class_ranges("word")
    _cased()


def both_cases(ranges: Ranges) -> Ranges:
    """Return the ranges with the other cases of what is in them."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return union([ranges, *((((ord(form), ord(form)),)) for form in _forms(chr(ranges[0][0])))])
    codes, forms = _cased()
    found = [ranges]
    for low, high in ranges:
        found += forms[bisect_left(codes, low) : bisect_right(codes, high)]
    return union(found)


def _forms(c: str) -> tuple[str, str]:
    return lower_char(c), upper_char(c)


def any_case(c: str) -> Ranges:
    """Return the small and the large form of a character: what a literal takes where case is ignored."""
    return union([((ord(form), ord(form)),) for form in _forms(c)])
