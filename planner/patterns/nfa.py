"""Items to a nondeterministic automaton: states, and arcs that take nothing, a character of a set, or hold at a place.

    a(b|c)*     0 ─a→ 1 ──→ 2 ─b→ 3 ──→ 2 ──→ 4
                          2 ─c→ 3

Every repetition is written out ({2,5} is five copies), so states are bounded by ``MAX_STATES``. A back
reference stands for whatever its group could match, without the group's conditions: ``dissect`` compares what
it did match.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from pgwire.give_way import paced
from planner.patterns.charset import CharSet
from planner.patterns.options import MAX_STATES, TOO_COMPLEX, invalid
from planner.patterns.steps import spend
from planner.patterns.tree import Back, Branch, Chars, Expression, Group, Guard, Item, Look

T = TypeVar("T")

Condition: TypeAlias = Guard | int
"""What must hold at a place: a guard, or the number of a look-around (``Nfa.looks``)."""


@dataclass(slots=True)
class Nfa:
    """An automaton; ``sets`` and ``looks`` are shared by all of one pattern."""

    sets: dict[CharSet, int]
    looks: list[Look]
    start: int = 0
    final: int = 1
    free: list[list[int]] = field(default_factory=list)  # by state: where to without a character
    takes: list[list[tuple[int, int]]] = field(default_factory=list)  # (number of the set, where to)
    holds: list[list[tuple[Condition, int]]] = field(default_factory=list)  # (condition, where to)
    guarded: bool = False  # whether any condition depends on the characters around a place
    looking: bool = False  # whether any is a look-around

    def state(self) -> int:
        """Add a state. Raises 2201B where they are too many."""
        number = len(self.free)
        if number >= MAX_STATES:
            raise invalid(TOO_COMPLEX)
        if number % 256 == 0:
            spend(1024)
        self.free.append(_NONE)
        self.takes.append(_NONE)
        self.holds.append(_NONE)
        return number

    def go(self, state: int, to: int) -> None:
        """Add an arc that takes nothing."""
        _add(self.free, state, to)

    def take(self, state: int, number: int, to: int) -> None:
        """Add an arc that takes a character of a set."""
        _add(self.takes, state, (number, to))

    def hold(self, state: int, condition: Condition, to: int) -> None:
        """Add an arc that needs a condition."""
        _add(self.holds, state, (condition, to))

    def reversed(self) -> Nfa:
        """Return the automaton that reads from the end to the beginning."""
        other = Nfa(self.sets, self.looks, self.final, self.start, guarded=self.guarded, looking=self.looking)
        spend(len(self.free))
        other.free = [_NONE] * len(self.free)
        other.takes = [_NONE] * len(self.free)
        other.holds = [_NONE] * len(self.free)
        for state in paced(range(len(self.free))):
            for to in self.free[state]:
                other.go(to, state)
            for chars, to in self.takes[state]:
                other.take(to, chars, state)
            for condition, to in self.holds[state]:
                other.hold(to, condition, state)
        return other


_NONE: Final[list[Any]] = []
"""The arcs of a state that has none, and never changed: most states have arcs of one kind."""


def _add(arcs: list[list[T]], state: int, arc: T) -> None:
    if arcs[state] is _NONE:
        arcs[state] = [arc]
    else:
        arcs[state].append(arc)


def build(items: Branch, sets: dict[CharSet, int], looks: list[Look]) -> Nfa:
    """Return the automaton of items one after the other; sets and look-arounds not met before are added to
    the given ones.
    """
    nfa = Nfa(sets, looks)
    nfa.start, nfa.final = nfa.state(), nfa.state()
    _items(nfa, items, nfa.start, nfa.final, True)
    return nfa


def _expression(nfa: Nfa, branches: Expression, start: int, end: int, conditions: bool) -> None:
    for branch in branches:
        _items(nfa, branch, start, end, conditions)


def _items(nfa: Nfa, items: Branch, start: int, end: int, conditions: bool) -> None:
    for item in items:
        after = nfa.state()
        _item(nfa, item, start, after, conditions)
        start = after
    nfa.go(start, end)


def _item(nfa: Nfa, item: Item, start: int, end: int, conditions: bool) -> None:
    low, high = item.low, item.high
    for _ in range(low if high is not None else low - 1):
        after = nfa.state()
        _atom(nfa, item, start, after, conditions)
        start = after
    if high is None:
        round_start, round_end = nfa.state(), nfa.state()
        nfa.go(start, round_start)
        _atom(nfa, item, round_start, round_end, conditions)
        nfa.go(round_end, round_start)
        nfa.go(round_end, end)
        if low == 0:
            nfa.go(start, end)
        return
    for _ in range(high - low):
        after = nfa.state()
        nfa.go(start, end)
        _atom(nfa, item, start, after, conditions)
        start = after
    nfa.go(start, end)


def _atom(nfa: Nfa, item: Item, start: int, end: int, conditions: bool) -> None:
    atom = item.atom
    if isinstance(atom, Chars):
        nfa.take(start, nfa.sets.setdefault(atom.chars, len(nfa.sets)), end)
    elif isinstance(atom, Group):
        _expression(nfa, atom.body, start, end, conditions)
    elif isinstance(atom, Back):
        _expression(nfa, atom.group.body, start, end, False)
    elif not conditions:
        nfa.go(start, end)
    elif isinstance(atom, Guard):
        nfa.guarded = True
        nfa.hold(start, atom, end)
    else:
        nfa.looking = True
        if atom not in nfa.looks:
            nfa.looks.append(atom)
        nfa.hold(start, nfa.looks.index(atom), end)
