r"""Patterns that Python's ``re`` may match in place of the automata: it is ten times as fast on short texts.

Two questions are asked of a tree:

    is the answer the same?   whether there is a match: always, without look-arounds and back references (all ways are tried).
                              Which match, and its groups: where the next character says how to go on, so that there is
                              one way only, (\w+)-(\d+)$; or where one item alone may be long or short, <.*?>
    does it end soon?         ``re`` may try n^k ways with k loops in a row, 2^n with loops in loops that overlap

What is not sure is left to the automata. ``limit`` is the length of texts up to which ``re`` takes no more
than ``MAX_STEPS``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from planner.patterns.charset import EVERYTHING, LAST, CharSet, Ranges, class_ranges, union
from planner.patterns.steps import spend
from planner.patterns.tree import (
    SHORTER,
    Back,
    Branch,
    Chars,
    Expression,
    Group,
    Guard,
    Item,
    Look,
)

MAX_STEPS: Final = 300_000  # that ``re`` may need in the worst case: some milliseconds
MAX_SIZE: Final = 1_000  # of what is written for ``re``, in items: it compiles one in 5 µs, without a pause
_COMPILED: Final = 100  # steps that ``re`` takes to compile an item
MAX_RANGES: Final = 1_000  # of characters: ``re`` takes some milliseconds to compile as many
FEW_RANGES: Final = 100
MANY: Final = 8  # rounds up to which a loop within a loop stays harmless
_ASCII: Final[Ranges] = ((0, 127),)
_NOTHING: Final = CharSet(())


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A pattern for ``re``; ``exact``: it finds the same match and groups, and not just whether there is one."""

    expression: Expression
    limit: int
    exact: bool

    def compile(self, *, ascii_only: bool) -> re.Pattern[str] | None:
        """Return the pattern, for texts of ASCII alone or for all texts; None where it would be too large."""
        writer = _Writer(ascii_only)
        text = writer.expression(self.expression)
        if writer.ranges > MAX_RANGES:
            return None
        spend(len(text) * _COMPILED)  # before it: what it takes then comes behind a pause
        return re.compile(text, re.DOTALL)


def trimmed(expression: Expression) -> Expression:
    """Return an expression without ``.*`` at its ends: the same texts have a match."""
    if len(expression) != 1:
        return expression
    items = list(expression[0])
    while items and _takes_anything(items[0]):
        items.pop(0)
    while items and _takes_anything(items[-1]):
        items.pop()
    return (tuple(items),)


def _takes_anything(item: Item) -> bool:
    return isinstance(item.atom, Chars) and item.atom.chars == EVERYTHING and item.low == 0


def shortcut(expression: Expression, groups: int) -> Shortcut | None:
    """Return how ``re`` may match an expression with so many capturing groups; None: not at all."""
    size = _size(expression)
    if size is None or _ambiguous(expression):
        return None
    single_path = _unique(expression, _NOTHING)
    loops = _loops(expression)
    if single_path:
        loops = min(loops, 1)
    anchored = all(branch and branch[0].atom is Guard.BEGIN for branch in expression)
    power = loops + (0 if anchored else 1)
    limit = int((MAX_STEPS / max(size, 1)) ** (1 / max(power, 1)))
    exact = single_path or _one_choice(expression)
    if _captures(expression) != groups:  # a group within {0} has a number, but is not there
        exact = False
    return Shortcut(expression, limit, exact)


def _size(expression: Expression) -> int | None:
    """Return how many items are tried one after the other at most; None where ``re`` does not do one, or they
    are too many.
    """
    total = 1
    for branch in expression:
        for item in branch:
            if isinstance(item.atom, Look | Back):
                return None
            inner = _size(item.atom.body) if isinstance(item.atom, Group) else 1
            if inner is None:
                return None
            total += inner * max(item.low, item.high or 1, 1)
            if total > MAX_SIZE:
                return None
    return total


# --- is it the same answer? -------------------------------------------------------------------------


def _first(expression: Expression) -> tuple[CharSet, bool]:
    """Return which characters an expression may begin with, and whether it may be empty."""
    parts, empty = [], False
    for branch in expression:
        for item in branch:
            chars, nullable = _item_first(item)
            parts.append(chars.ranges)
            if not nullable:
                break
        else:
            empty = True
    return CharSet(union(parts)), empty


def _item_first(item: Item) -> tuple[CharSet, bool]:
    atom = item.atom
    if isinstance(atom, Chars):
        return (atom.chars if item.high != 0 else _NOTHING), item.low == 0
    if isinstance(atom, Group):
        chars, nullable = _first(atom.body)
        return chars, nullable or item.low == 0
    return _NOTHING, True


def _unique(expression: Expression, follow: CharSet) -> bool:
    """Tell whether the next character always says how to go on, all quantifiers being greedy; ``follow`` is
    what may come behind.
    """
    firsts = [_first((branch,)) for branch in expression]
    if any(empty for _, empty in firsts[:-1]):
        return False  # ``re`` would not try the later branches
    others = [chars for chars, _ in firsts]
    if len(others) > 1:
        if firsts[-1][1]:
            others.append(follow)
        for number, chars in enumerate(others):
            if any(not chars.isdisjoint(other) for other in others[number + 1 :]):
                return False
    return all(_unique_branch(branch, follow) for branch in expression)


def _unique_branch(branch: Branch, follow: CharSet) -> bool:
    for item in reversed(branch):
        if item.prefers == SHORTER:
            return False
        atom = item.atom
        chars, nullable = _item_first(item)
        varies = item.low != item.high
        if not isinstance(atom, Guard):
            if varies and not chars.isdisjoint(follow):
                return False
            if isinstance(atom, Group) and not _unique_group(atom, item, chars, follow):
                return False
        follow = CharSet(union([chars.ranges, follow.ranges])) if nullable else chars
    return True


def _unique_group(group: Group, item: Item, chars: CharSet, follow: CharSet) -> bool:
    if item.low == item.high == 1:
        return _unique(group.body, follow)
    if _first(group.body)[1]:
        return False
    if item.high == 1:
        return _unique(group.body, follow)
    if _captures(group.body):
        return False  # ``re`` keeps what an earlier round captured
    return _unique(group.body, CharSet(union([chars.ranges, follow.ranges])))


def _captures(expression: Expression) -> int:
    """Return the number of capturing groups."""
    return sum(
        (item.atom.number > 0) + _captures(item.atom.body)
        for branch in expression
        for item in branch
        if isinstance(item.atom, Group)
    )


def _one_choice(expression: Expression) -> bool:
    """Tell whether one item is all there is to choose."""
    choices = _choices(expression)
    return choices is not None and choices <= 1


def _choices(expression: Expression) -> int | None:
    if len(expression) != 1:
        return None
    found = 0
    for item in expression[0]:
        if isinstance(item.atom, Group):
            inner = _choices(item.atom.body)
            if inner is None or not item.low == item.high == 1 or item.prefers:
                return None
            found += inner
        elif item.low != item.high:
            found += 1
        elif item.prefers:
            return None
    return found


# --- does it end soon? ------------------------------------------------------------------------------


def _loops(expression: Expression) -> int:
    """Return how many loops follow one another at most: ``re`` tries every way to share a text among them."""
    most = 0
    for branch in expression:
        total = 0
        for item in branch:
            if item.low != item.high:
                total += 1
            if isinstance(item.atom, Group) and item.high is not None and (item.high <= MANY):
                total += _loops(item.atom.body) * max(item.high, 1)
        most = max(most, total)
    return most


def _ambiguous(expression: Expression) -> bool:
    """Tell whether a loop may go over the same text in more than one way, so that ways multiply."""
    for branch in expression:
        for item in branch:
            if isinstance(item.atom, Group):
                many = item.high is None or item.high > MANY
                if (many and not _unmistakable(item.atom.body)) or _ambiguous(item.atom.body):
                    return True
    return False


def _unmistakable(body: Expression) -> bool:
    r"""Tell whether it is plain from a text where each round of a loop over ``body`` ends.

    That is so where all rounds have one form without choices, or where one character in each is sure to be
    there and occurs nowhere else in it, ``(?:\w+,)*``; or where the first says which of several plain forms
    follows, ``(?:foo|bar)*``.
    """
    if len(body) > 1:
        seen = _NOTHING
        for branch in body:
            items = _flat((branch,))
            if not items or not all(fixed for _, fixed in items) or not seen.isdisjoint(items[0][0]):
                return False
            seen = CharSet(union([seen.ranges, items[0][0].ranges]))
        return True
    found = _flat(body)
    if found is None:
        return False
    loose = [chars for chars, fixed in found if not fixed]
    if not found:
        return False
    if not loose:
        return True
    certain = [chars for chars, fixed in found if fixed]
    return any(all(chars.isdisjoint(other) for other in loose) for chars in certain)


def _flat(body: Expression) -> list[tuple[CharSet, bool]] | None:
    """Return a sequence's elements: what each takes, and whether it takes exactly one; None for anything deeper."""
    if len(body) != 1:
        return None
    found: list[tuple[CharSet, bool]] = []
    for item in body[0]:
        varies = item.low != item.high
        if isinstance(item.atom, Chars):
            found += [(item.atom.chars, not varies)] * max(1, item.low if not varies else 1)
        elif isinstance(item.atom, Group):
            inner = _flat(item.atom.body)
            if inner is None or (item.low, item.high) != (1, 1):
                return None
            found += inner
        else:
            return None
    return found


# --- writing ----------------------------------------------------------------------------------------


class _Writer:
    """Writes a tree as ``re`` reads it."""

    def __init__(self, ascii_only: bool) -> None:
        self._ascii = ascii_only
        self.ranges = 0  # written so far

    def expression(self, branches: Expression) -> str:
        return "|".join("".join(map(self._item, branch)) for branch in branches)

    def _item(self, item: Item) -> str:
        atom = item.atom
        if isinstance(atom, Chars):
            text = self._chars(atom.chars)
        elif isinstance(atom, Group):
            text = f"({'' if atom.number else '?:'}{self.expression(atom.body)})"
        else:
            if not isinstance(atom, Guard):
                raise AssertionError(f"an atom is {type(atom).__name__}")
            return self._guard(atom)
        if item.low == item.high == 1:
            return text
        high = "" if item.high is None else item.high
        return f"{text}{{{item.low},{high}}}{'?' if item.prefers == SHORTER else ''}"

    def _guard(self, guard: Guard) -> str:
        word = self._chars(CharSet(class_ranges("word")))
        begins, ends = f"(?<!{word})(?={word})", f"(?<={word})(?!{word})"
        return {
            Guard.BEGIN: r"\A", Guard.END: r"\Z", Guard.LINE_BEGIN: "(?m:^)", Guard.LINE_END: "(?m:$)",
            Guard.WORD_BEGIN: begins, Guard.WORD_END: ends, Guard.BOUNDARY: f"(?:{begins}|{ends})",
            Guard.NO_BOUNDARY: f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))",
        }[guard]  # fmt: skip

    def _chars(self, chars: CharSet) -> str:
        if chars == EVERYTHING:
            return "."
        ranges: list[str] = []
        for low, high in chars.ranges:
            if self._ascii:
                if low > 127:
                    break
                high = min(high, 127)
            ranges.append(_escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}")
        self.ranges += len(ranges)
        if not ranges:
            return r"[^\s\S]"
        if len(ranges) == 1 and len(chars.ranges) == 1 and chars.only is not None:
            return re.escape(chars.only)
        return f"[{''.join(ranges)}]"


def _escaped(code: int) -> str:
    c = chr(code)
    return c if code > 127 or c.isalnum() else f"\\x{code:02x}"


def written(chars: CharSet) -> str:
    """Return a set as ``re`` reads it; of one with many ranges, all beyond ASCII."""
    if len(chars.ranges) > FEW_RANGES:
        chars = CharSet(union([chars.ranges, ((128, LAST),)]))
    return _Writer(False)._chars(chars)
