"""The join with a catalog relation by the value of one column, a batch of left rows at a time.

left rows      (.., 16384, ..)  (.., 16384, ..)  (.., 11, ..)
values              16384            16384           11            computed for the batch
right rows       found once                       found once       kept by value while the join runs, filtered and narrowed

Most values have one right row, or none: then a batch is joined without a look at each of its rows. From ``MANY`` values on an
index over the whole relation finds the rows, batch by batch and without keeping them, which costs more at first and less for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from engine.catalog.kept import Found, as_rows
from engine.connection.rows import RowTuple
from engine.index.joins import DependentJoin
from engine.index.nodes import Node
from engine.index.state import BATCH, Pipe, Rows, evaluate_rows
from engine.index.virtual_sources import FindAll, Finder, VirtualLookup
from planner.evaluate import Env
from planner.query import Expr, JoinKind

KEPT_VALUES = 16_384
MANY = 512


class _Several:
    """Stands for several right rows."""


_SEVERAL: Final = _Several()


class CatalogJoin(DependentJoin):
    """For each left row, the rows of a catalog relation with its value; INNER or LEFT."""

    def __init__(self, left: Node, right: VirtualLookup, kind: JoinKind, conjuncts: Sequence[Expr]) -> None:
        super().__init__(left, right, kind, conjuncts)
        self.lookup = right
        self.empty = (None,) * right.width if kind is JoinKind.LEFT else None
        self.joined = _joining(right.cells, outer=kind is JoinKind.LEFT)

    def pipe(self, e: Env) -> Pipe:
        """Join."""
        lookup = self.lookup
        yield from lookup.prepare(e)
        matches = _Matches(lookup, self.empty)
        find = lookup.finder(e)
        find_all: FindAll | None = None
        asked = 0
        for item in self.inputs[0].pipe(e):
            if item.__class__ is not list:
                yield item
                continue
            values = lookup.values(item, e)
            if find_all is not None:
                yield from self._found(item, find_all(values), e)
                continue
            new = set(values).difference(matches.one)
            if new:
                asked += len(new)
                if asked > MANY:
                    yield from lookup.prepare(e, many=True)
                    find_all = lookup.find_all(e)
                    if find_all is not None:
                        yield from self._found(item, find_all(values), e)
                        continue
                matches.look_up(new, values, find, e)
            if self.test is None and not matches.several:
                one = matches.one
                out = [
                    left + right
                    for left, value in zip(item, values, strict=True)
                    if (right := one[value]) is not None
                ]
                yield out or None
            else:
                yield from self._each(item, map(matches.rows, values), e)

    def _found(self, lefts: Rows, found: Sequence[Found], e: Env) -> Pipe:
        """Join a batch with what was found of each value, all columns of it."""
        if self.test is None and list not in set(map(type, found)):
            yield self.joined(lefts, found, self.empty) or None
            return
        narrowed = self.lookup.narrowed
        rows = map(as_rows, found)
        yield from self._each(lefts, rows if narrowed is None else map(narrowed, rows), e)

    def _each(self, lefts: Rows, rights: Iterable[Rows], e: Env) -> Pipe:
        """Join row by row: some have several matches, or the join has a condition."""
        test, empty = self.test, self.empty
        out: Rows = []
        for left, found in zip(lefts, rights, strict=True):
            matched = False
            for i in range(0, len(found), BATCH):
                rows = [left + right for right in found[i : i + BATCH]]
                if test is not None:
                    rows = yield from evaluate_rows(test, rows, e)
                if rows:
                    matched = True
                    out += rows
                if len(out) >= BATCH:
                    yield out
                    out = []
            if empty is not None and not matched:
                out.append(left + empty)
            if len(out) >= BATCH:
                yield out
                out = []
        yield out or None


def _joining(
    cells: Sequence[int] | None, *, outer: bool
) -> Callable[[Rows, Sequence[Found], RowTuple | None], Rows]:
    """Return the join of left rows with one right row each, or None, of which it takes ``cells`` (None: all).

    With ``outer`` the third argument stands where there is none.
    """
    right = "r" if cells is None else f"({''.join(f'r[{cell}], ' for cell in cells)})"
    if outer:
        source = f"lambda lefts, found, empty: [l + (empty if r is None else {right}) for l, r in zip(lefts, found)]"
    else:
        source = f"lambda lefts, found, empty: [l + {right} for l, r in zip(lefts, found) if r is not None]"
    made: Callable[[Rows, Sequence[Found], RowTuple | None], Rows] = eval(source)
    return made


class _Matches:
    """The right rows of the values met.

    Attributes:
        one: by value: its row; where it has none, ``empty``; ``_SEVERAL`` where it has more, which ``several`` has.
        empty: the row that stands for none in an outer join, else None.
    """

    __slots__ = ("empty", "lookup", "none", "one", "several")

    def __init__(self, lookup: VirtualLookup, empty: RowTuple | None) -> None:
        self.lookup = lookup
        self.empty = empty
        self.one: dict[Any, Any] = {}
        self.several: dict[Any, Rows] = {}
        self.none: set[Any] = set()

    def look_up(self, new: set[Any], values: Sequence[Any], find: Finder, e: Env) -> None:
        """Find the rows of ``new`` ones among ``values``, those of a batch."""
        if len(self.one) + len(new) > KEPT_VALUES:
            self.one.clear()
            self.several.clear()
            self.none.clear()
            new = set(values)
        for value, found in self.lookup.passing_each(new, find, e):
            if len(found) == 1:
                self.one[value] = found[0]
            elif found:
                self.one[value] = _SEVERAL
                self.several[value] = found
            else:
                self.one[value] = self.empty
                self.none.add(value)

    def rows(self, value: Any) -> Rows:
        """Return the rows of a value that has been looked up."""
        if value in self.none:
            return []
        several = self.several.get(value)
        return [self.one[value]] if several is None else several
