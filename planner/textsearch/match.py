"""Whether a query matches (manual 9.13, ``@@``), in three-valued logic with positions below phrase operators.

    above phrases   YES, NO, MAYBE of each operand           (!x & y) | z
    within them     positions at which an operand ends:      x <-> (y | !z)      {3, 7}, or everywhere but {3, 7}

A lexeme without positions is MAYBE within a phrase, which then is no match; PostgreSQL's ``TS_execute`` has
these rules.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from pgwire.codecs.text import tsquery, tsvector
from pgwire.codecs.text.tsquery import AND, NOT, OR, PHRASE, Item, Operator, Word
from pgwire.codecs.text.tsvector import Places, Vector, position, weight
from pgwire.give_way import PACE, give_way, paced
from pgwire.kept import kept
from pgwire.release import let_go

NO, MAYBE, YES = 0, 1, 2


class Match(NamedTuple):
    """What is known of a subtree.

    ``answer``: NO, MAYBE, YES. Within phrases, where it is YES: ``places`` are the positions at which it
    matches, or with ``negated`` those at which it does not, ``width`` how far from its last word its first
    one is.
    """

    answer: int
    places: tuple[int, ...] = ()
    negated: bool = False
    width: int = 0


Find: TypeAlias = Callable[[int, Word, bool], Match]
"""What an operand matches: its place among the query's items, itself, and whether positions are wanted."""

_NONE: Final = Match(NO)
_UNSURE: Final = Match(MAYBE)


def within_phrases(items: Sequence[Item]) -> list[bool]:
    """Return for each item whether positions are wanted of it: it is an operand of a phrase, or below one."""
    found = [False] * len(items)
    open_: list[tuple[bool, int]] = []  # of operators from the root down: what holds below, operands to go
    for place in range(len(items) - 1, -1, -1):
        if not place % PACE:
            give_way()
        item = items[place]
        inside = open_[-1][0] if open_ else False
        found[place] = inside
        if isinstance(item, Operator):
            open_.append((inside or item.kind == PHRASE, 1 if item.kind == NOT else 2))
            continue
        while open_:
            below, left = open_.pop()
            if left > 1:
                open_.append((below, left - 1))
                break
            if not len(open_) % PACE:
                give_way()
    return found


def execute(items: Sequence[Item], find: Find, *, ignore_not: bool = False) -> int:
    """Return NO, MAYBE or YES for a query that is not empty. ``ignore_not``: every NOT is taken for true."""
    inside = within_phrases(items)
    stack: list[Match] = []
    for place, item in enumerate(items):
        give_way()
        wanted = inside[place]
        if isinstance(item, Word):
            stack.append(find(place, item, wanted))
            continue
        if not isinstance(item, Operator):
            raise AssertionError(f"{type(item).__name__} in a tsquery is neither a word nor an operator")
        if item.kind == NOT:
            operand = stack.pop()
            if ignore_not:
                stack.append(Match(YES, (), True))
            else:
                stack.append(_negated(operand) if wanted else Match(YES - operand.answer))
            continue
        right, left = stack.pop(), stack.pop()
        if item.kind == PHRASE:
            found = _both(left, right, item)
            if not wanted and found.answer == MAYBE:
                found = _NONE
            stack.append(found)
        elif wanted:
            stack.append(_both(left, right, item) if item.kind == AND else _either(left, right))
        elif item.kind == AND:
            stack.append(Match(min(left.answer, right.answer)))
        else:
            stack.append(Match(max(left.answer, right.answer)))
    (result,) = stack
    return result.answer


def _negated(operand: Match) -> Match:
    if operand.answer == MAYBE:
        return _UNSURE
    if operand.answer == NO:
        return Match(YES, (), True)
    if operand.places:
        return operand._replace(negated=not operand.negated)
    return _NONE  # it matched everywhere


def _merge(left: Match, right: Match, shifts: tuple[int, int], keep: str) -> tuple[int, ...]:
    """Join positions: ``keep`` those of the left side alone (l), of both (b), of the right side alone (r)."""
    a = {p + shifts[0] for p in left.places}
    b = {p + shifts[1] for p in right.places}
    found: set[int] = set()
    if "l" in keep:
        found |= a - b
    if "b" in keep:
        found |= a & b
    if "r" in keep:
        found |= b - a
    return tuple(sorted(found))


def _listed(places: tuple[int, ...], width: int) -> Match:
    return Match(YES, places, False, width) if places else _NONE


def _both(left: Match, right: Match, operator: Operator) -> Match:
    """Match AND, or PHRASE, where positions are wanted."""
    if left.answer == NO or right.answer == NO:
        return _NONE
    if left.answer == MAYBE or right.answer == MAYBE:
        return _UNSURE
    if operator.kind == PHRASE:
        shifts = operator.distance + right.width, 0
        width = operator.distance + left.width + right.width
    else:
        width = max(left.width, right.width)
        shifts = width - left.width, width - right.width
    if left.negated and right.negated:
        return Match(YES, _merge(left, right, shifts, "lbr"), True, width)
    if left.negated:
        return _listed(_merge(left, right, shifts, "r"), width)
    if right.negated:
        return _listed(_merge(left, right, shifts, "l"), width)
    return _listed(_merge(left, right, shifts, "b"), width)


def _either(left: Match, right: Match) -> Match:
    """Match OR where positions are wanted."""
    if left.answer == NO and right.answer == NO:
        return _NONE
    if left.answer == MAYBE or right.answer == MAYBE:
        return _UNSURE
    left = left._replace(width=0) if left.answer == NO else left
    right = right._replace(width=0) if right.answer == NO else right
    width = max(left.width, right.width)
    shifts = width - left.width, width - right.width
    if left.negated and right.negated:
        return Match(YES, _merge(left, right, shifts, "b"), True, width)
    if left.negated:
        return Match(YES, _merge(left, right, shifts, "l"), True, width)
    if right.negated:
        return Match(YES, _merge(left, right, shifts, "r"), True, width)
    return _listed(_merge(left, right, shifts, "lbr"), width)


# -- tsvectors ------------------------------------------------------------------------------------------


_LEXEME: Final = itemgetter(0)


def entries_of(vector: Vector, word: Word) -> Vector:
    """Return the entries of a tsvector that an operand means: the lexeme, or all that begin with it."""
    text = word.text
    first = last = bisect_left(vector, text, key=_LEXEME)
    if word.prefix:
        last = bisect_right(vector, text, first, key=lambda entry: entry[0][: len(text)])
    elif first < len(vector) and vector[first][0] == text:
        last += 1
    return vector[first:last]


def _entry(places: Places, word: Word, wanted: bool) -> Match:
    if not places:
        return _UNSURE if wanted else Match(YES)  # weights are not asked for, either
    if word.weights:
        places = tuple(p for p in places if word.weights >> weight(p) & 1)
    if not places:
        return _NONE
    return Match(YES, tuple(map(position, places)) if wanted else ())


def finder(vector: Vector) -> Find:
    """Return what operands match in a tsvector."""

    def find(_: int, word: Word, wanted: bool) -> Match:
        found: list[Match] = []
        for _lexeme, places in paced(entries_of(vector, word)):
            match = _entry(places, word, wanted)
            if match.answer == MAYBE or (match.answer == YES and not wanted):
                return match
            found.append(match)
        return _listed(tuple(sorted({p for match in paced(found) for p in match.places})), 0)

    return find


@kept(256)
def _needles(query: bytes) -> tuple[bytes, ...] | None:
    """Return byte strings one of which is in every tsvector that matches; None where a match may have none."""
    words = required(query, lambda _: 1)
    if words is None:
        return None
    return tuple(word.text.encode("utf-8") + (b"" if word.prefix else b"\0") for word in paced(words))


def matches(vector: bytes, query: bytes) -> bool:
    """SQL's ``tsvector @@ tsquery``: the empty query matches nothing."""
    needles = _needles(query)
    if needles is not None and not any(needle in vector for needle in paced(needles, 1)):
        return False  # most rows of a scan: their lexemes need not be read
    items = tsquery.unpack(query)
    if not items:
        return False
    entries = tsvector.unpack(vector)
    try:
        if len(items) == 1:
            return finder(entries)(0, items[0], False).answer == YES  # type: ignore[arg-type]
        return execute(items, finder(entries)) == YES
    finally:
        let_go(entries, items)


# -- what a match needs ---------------------------------------------------------------------------------


def without_nots(items: Sequence[Item]) -> list[Item]:
    """Return what of a query an index can be asked for (querytree()): without NOT, nothing where that may be
    anything.
    """
    out: list[Item] = []

    def leaf(item: Item) -> tuple[int, bool]:
        """Return where in ``out`` a subtree begins, and whether anything of it is there: nothing comes behind
        it before its operator does.
        """
        out.append(item)
        return len(out) - 1, True

    def negate(inner: tuple[int, bool]) -> tuple[int, bool]:
        del out[inner[0] :]
        return inner[0], False

    def join(operator: Operator, a: tuple[int, bool], b: tuple[int, bool]) -> tuple[int, bool]:
        if a[1] and b[1]:
            out.append(operator)
        elif operator.kind == OR:
            return negate(a)
        return a[0], a[1] or b[1]

    if items:
        tsquery.fold(items, leaf, negate, join)
    return out


def required(query: bytes, rows: Callable[[Word], int]) -> tuple[Word, ...] | None:
    """Return operands one of which every match has, of several such sets the one with the fewest rows.

    ``rows``: how many an operand has at most. None where a match may have none of the query's operands.
    """

    def join(operator: Operator, a: _Needs, b: _Needs) -> _Needs:
        if a is None or b is None:
            return None if operator.kind == OR else a or b
        if operator.kind == OR:
            more, less = (a, b) if len(a[0]) >= len(b[0]) else (b, a)
            more[0].extend(less[0])
            return more[0], a[1] + b[1]
        return min(a, b, key=itemgetter(1))

    items = tsquery.unpack(query)
    if not items:
        return ()
    found = tsquery.fold(items, lambda word: ([word], rows(word)), lambda _: None, join)
    return None if found is None else tuple(found[0])


_Needs: TypeAlias = tuple[list[Word], int] | None
"""Operands one of which every match has, and how many rows they have together."""
