r"""What a pattern means: an expression is branches of items, an item an atom and how often it comes.

^a(b|c)*?     Branch(Item(Guard.BEGIN), Item(Chars({a})), Item(Group(1, (Branch(b), Branch(c))), 0, None, SHORTER))
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, TypeAlias

from planner.patterns.charset import CharSet

LONGER: Final = 1  # prefers longer matches
SHORTER: Final = 2


class Guard(enum.Enum):
    """A condition on a place between two characters."""

    BEGIN = "the text begins here"
    END = "the text ends here"
    LINE_BEGIN = "a line begins here"
    LINE_END = "a line ends here"
    WORD_BEGIN = "a word begins here"
    WORD_END = "a word ends here"
    BOUNDARY = "a word begins or ends here"
    NO_BOUNDARY = "no word begins or ends here"


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A condition on what follows (``ahead``) or precedes a place: that ``body`` matches there, or that it does not."""

    ahead: bool
    positive: bool
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Brackets; ``number`` 0: they capture nothing."""

    number: int
    body: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Back:
    """What a group has matched, once more; ``group`` is that group."""

    group: Group


Atom: TypeAlias = Chars | Guard | Look | Group | Back


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An atom ``low`` to ``high`` times, None: without end; ``prefers``: LONGER, SHORTER, or 0 for neither."""

    atom: Atom
    low: int = 1
    high: int | None = 1
    prefers: int = 0


Branch: TypeAlias = tuple[Item, ...]
Expression: TypeAlias = tuple[Branch, ...]
