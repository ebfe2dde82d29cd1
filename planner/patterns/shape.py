r"""Which parts of an expression have to be told apart, and what each prefers: a tree of nodes over the tree of items.

    PLAIN    items of which only the whole counts; an automaton does all of it
    CONCAT   children one after the other
    EITHER   one of the children, the first that fits
    REPEAT   the child low to high times, where it captures and may also be absent, or refers back
    BACK     a back reference, low to high times
    SAME     the child, captured once more: ((x))

A part is told apart where it captures, refers back, or prefers otherwise than what precedes it. That decides
matches, so the steps are PostgreSQL's: a branch is as greedy as its first item with a preference; ``|`` makes
an expression greedy; ``{m}`` passes on what its atom prefers, ``{m,n}`` does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from planner.patterns.steps import spend
from planner.patterns.tree import LONGER, SHORTER, Back, Branch, Expression, Group, Guard, Item, Look

MIXED: Final = 4  # both preferences below
CAPTURES: Final = 8
REFERS: Final = 16  # a back reference below
_UP: Final = MIXED | CAPTURES | REFERS  # what a parent has where a child has it
_PREFERENCES: Final = LONGER | SHORTER


class Kind(Enum):
    """Kinds of nodes."""

    PLAIN = "plain"
    CONCAT = "concat"
    EITHER = "either"
    REPEAT = "repeat"
    BACK = "back"
    SAME = "same"


@dataclass(slots=True, eq=False)
class Node:
    """A node; ``items`` is what it stands for as a whole, ``capture`` the number of its group or 0."""

    kind: Kind
    flags: int
    items: Branch
    children: list[Node] = field(default_factory=list)
    capture: int = 0
    low: int = 1
    high: int | None = 1
    group: int = 0  # of BACK: the number of the group it refers to

    @property
    def shorter(self) -> bool:
        """Tell whether it prefers the shortest match."""
        return bool(self.flags & SHORTER)

    @property
    def refers(self) -> bool:
        """Tell whether there is a back reference below: then an automaton says what may match, not what does."""
        return bool(self.flags & REFERS)


def shape(expression: Expression) -> Node:
    """Return the node of an expression."""
    if len(expression) == 1:
        return _branch(expression[0])
    children = [_branch(branch) for branch in expression]
    flags = LONGER
    for child in children:
        flags |= _up(flags | child.flags)
    items = (Item(Group(0, expression)),)
    if not flags & _UP:
        return Node(Kind.PLAIN, flags, items)
    return Node(Kind.EITHER, flags, items, children)


def _up(flags: int) -> int:
    """Return what a parent of nodes with these flags has of them."""
    return flags & _UP | (MIXED if flags & _PREFERENCES == _PREFERENCES else 0)


def _combine(first: int, second: int) -> int:
    """Return the flags of two parts together: the preference is the first's, if it has one."""
    return _up(first | second) | (first & _PREFERENCES or second & _PREFERENCES)


def _branch(items: Branch) -> Node:
    """Return the node of a branch: what can stay together, then the first part that cannot, then the rest."""
    flags = 0
    for number, item in enumerate(items):
        atom = item.atom
        if isinstance(atom, Guard | Look):
            continue
        inner: Node | None = None
        if isinstance(atom, Group):
            inner = _captured(shape(atom.body), atom)
        elif isinstance(atom, Back):
            inner = Node(Kind.BACK, REFERS, (Item(atom),), group=atom.group.number)
        together = flags | item.prefers | (inner.flags if inner is not None else 0)
        told_apart = isinstance(atom, Back) or (isinstance(atom, Group) and atom.number)
        if not told_apart and not _up(together) & _UP:
            flags = together
            continue
        part = _quantified(inner or Node(Kind.PLAIN, 0, (Item(atom),)), item)
        return _joined(items, number, flags, part, item.prefers)
    return Node(Kind.PLAIN, flags, items)


def _captured(node: Node, group: Group) -> Node:
    if group.number == 0:
        return node
    if node.capture:
        return Node(Kind.SAME, node.flags | CAPTURES, node.items, [node], group.number)
    node.flags |= CAPTURES
    node.capture = group.number
    return node


def _quantified(atom: Node, item: Item) -> Node:
    """Return the node of an item whose atom is told apart."""
    low, high, prefers = item.low, item.high, item.prefers
    if atom.kind is Kind.BACK and not atom.capture and isinstance(item.atom, Back):
        atom.low, atom.high, atom.items = low, high, (item,)
        atom.flags |= _combine(prefers, atom.flags)
        return atom
    preference = atom.flags & (_PREFERENCES | MIXED)
    if low == high == 1 and (prefers == 0 or preference == 0 or prefers == preference):
        return atom
    flags = _combine(prefers, atom.flags)
    if not atom.flags & (CAPTURES | REFERS):
        return Node(Kind.PLAIN, flags, (item,))
    if low > 0 and not atom.flags & REFERS:
        # only the last round's captures count
        before = Item(item.atom, low - 1, None if high is None else high - 1, prefers)
        first = Node(Kind.PLAIN, flags & _PREFERENCES, (before,))
        return Node(Kind.CONCAT, flags, (item,), [first, atom])
    return Node(Kind.REPEAT, flags, (item,), [atom], low=low, high=high)


def _joined(items: Branch, number: int, flags: int, part: Node, prefers: int) -> Node:
    """Return the node of a branch: the items before ``number``, which have these flags, ``part``, and the rest.

    ``prefers`` is the preference of the part's quantifier, which counts here even where it left the part as
    it was ({1,1}).
    """
    spend(100 + len(items) // 8)  # what is left of the branch is copied
    before = Node(Kind.PLAIN, flags, items[:number])
    if number + 1 == len(items):
        if number == 0:
            return part
        return Node(Kind.CONCAT, flags | _combine(flags, part.flags), items, [before, part])
    rest = _branch(items[number + 1 :])
    later = _combine(prefers, part.flags)
    later |= _combine(later, rest.flags)
    whole = flags | _combine(flags, later)
    if number == 0:
        return Node(Kind.CONCAT, whole, items, [part, rest])
    tail = items[number:]
    if part.kind is rest.kind is Kind.PLAIN and not _up(part.flags | rest.flags) & _UP:
        end = Node(Kind.PLAIN, _combine(part.flags, rest.flags), tail)
    else:
        end = Node(Kind.CONCAT, later, tail, [part, rest])
    return Node(Kind.CONCAT, whole, items, [before, end])
