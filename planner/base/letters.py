"""Case of letters, as the C.UTF-8 locale has it: character by character, whatever the string is."""

from __future__ import annotations

from typing import Final

from pgwire.give_way import paced
from pgwire.long import values as long

_PACE: Final = 4096  # characters, a fraction of a millisecond


_PIECE: Final = 32768  # characters of one call of C


def upper_char(c: str) -> str:
    """Return the upper-case form that is one character: C.UTF-8 maps character by character.

    Where the full form is longer, the title-case form may be the single character (U+1F80 and its kin).
    """
    u = c.upper()
    if len(u) > 1:
        u = c.title()
    return u if len(u) == 1 else c


def lower_char(c: str) -> str:
    """Return the lower-case form's first character: only U+0130 has more, and C.UTF-8 keeps its i."""
    return c.lower()[0]


def _upper(s: str) -> str:
    return "".join(map(upper_char, paced(s, _PACE)))


def _lower(s: str) -> str:
    return "".join(map(lower_char, paced(s, _PACE)))


def upper(s: str) -> str:
    """SQL's ``upper``."""
    return long.mapped(s, str.upper if s.isascii() else _upper, _PIECE)


def lower(s: str) -> str:
    """SQL's ``lower``."""
    return long.mapped(s, str.lower if s.isascii() else _lower, _PIECE)
