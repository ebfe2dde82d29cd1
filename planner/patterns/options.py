"""Options of regular expressions: flags arguments, and the bits a compilation goes by.

PostgreSQL's bits are kept, since which of them exclude each other, and in which order letters set and clear them, is
seen: ``(?q)`` clears what ``(?e)`` sets.
"""

from __future__ import annotations

from typing import Final

from pgwire.give_way import paced
from planner.base.errors import SqlError

EXTENDED: Final = 1  # EREs; without it BREs
ADVANCED_FORMS: Final = 2  # with EXTENDED: AREs
ADVANCED: Final = EXTENDED | ADVANCED_FORMS
QUOTE: Final = 4  # a literal string
IGNORE_CASE: Final = 8
EXPANDED: Final = 32  # blanks and comments are left out
LINE_STOP: Final = 64  # . and [^...] stop at line ends
LINE_ANCHOR: Final = 128  # ^ and $ match at line ends
NEWLINE: Final = LINE_STOP | LINE_ANCHOR

_LETTERS: Final = {
    "b": (ADVANCED | QUOTE, 0), "c": (IGNORE_CASE, 0), "e": (ADVANCED_FORMS | QUOTE, EXTENDED), "i": (0, IGNORE_CASE),
    "m": (0, NEWLINE), "n": (0, NEWLINE), "p": (LINE_ANCHOR, LINE_STOP), "q": (ADVANCED, QUOTE), "s": (NEWLINE, 0),
    "t": (EXPANDED, 0), "w": (LINE_STOP, LINE_ANCHOR), "x": (0, EXPANDED),
}  # fmt: skip
"""Option letters: (bits to clear, bits to set)."""


def with_letter(bits: int, letter: str) -> int | None:
    """Return the bits after an option letter, None for a letter that is none."""
    found = _LETTERS.get(letter)
    return None if found is None else bits & ~found[0] | found[1]


def parse_flags(flags: str, *, allow_global: bool = False, function: str = "") -> tuple[int, bool]:
    """Read a flags argument: the bits, and whether ``g`` was among them.

    Raises 22023 for an unknown letter, and for ``g`` where ``function``, or anything not ``allow_global``,
    does not take it.
    """
    bits, everywhere = ADVANCED, False
    for letter in paced(flags, 1024):
        if letter == "g" and (allow_global or function):
            everywhere = True
            continue
        # PostgreSQL clears too much for ``e``, so that it is ``b`` here; embedded in a pattern it is not
        after = with_letter(bits, "b" if letter == "e" else letter)
        if after is None:
            raise SqlError("22023", f'invalid regular expression option: "{letter}"')
        bits = after
    if everywhere and not allow_global:
        raise SqlError("22023", f'{function} does not support the "global" option')
    return bits, everywhere


def invalid(reason: str) -> SqlError:
    """Return 2201B."""
    return SqlError("2201B", f"invalid regular expression: {reason}")


MAX_STATES: Final = 100_000
"""Of the automaton of a pattern: it has one for each of the pattern's items at least."""
TOO_COMPLEX: Final = "regular expression is too complex"
