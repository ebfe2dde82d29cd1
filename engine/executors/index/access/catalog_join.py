"""Joins with catalog relations by the value of one column each, a batch of left rows at a time.

    pg_class c  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace  LEFT JOIN pg_am a ON a.oid = c.relam

    rows of c         (16384, 't', 2200, 2, ..)   (16390, 'v', 2200, 0, ..)      as the cache keeps them
    rows of n, found  (2200, 'public', ..)        (2200, 'public', ..)           by 2200, 2200
    rows of a, found  (2, 'heap', ..)             (NULL, NULL, ..)               by 2, 0
    joined            (16384, 't', 'public', 'heap')   ...                       the columns asked for, or expressions over them

Joins of such joins are one: rows found stay apart (*pieces*) until all are there, and none is copied on its
way. Few values are looked up one by one and kept while the join runs; from ``MANY`` on an index over the
whole relation finds the rows, which costs more at first and less for each.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress
from types import NoneType
from typing import Any, NamedTuple, cast

from engine.base.rows import RowTuple
from engine.catalog.kept import Found, as_rows
from engine.executors.expressions import has_sublink
from engine.executors.index.access.virtual_sources import CatalogSource, FindAll, Finder, VirtualLookup
from engine.executors.index.joins import DependentJoin
from engine.executors.index.nodes import Node, plain_function
from engine.executors.index.sources import Columns, SourceNode
from engine.executors.index.state import BATCH, Item, Pipe, Rows, evaluate_rows
from planner.evaluate import Env, Layout, RowFunction, compile_column, compile_map, walk
from planner.query import Expr, JoinKind, Var

KEPT_VALUES = 16_384
MANY = 512

Pieces = list[Rows]
"""For each range its rows, all lists as long: the first of each belong together."""


class _Step(NamedTuple):
    """One join of several.

    Attributes:
        right: where rows are looked up.
        piece: the number of the range whose rows have the value looked up.
        values: gives the values of that range's rows.
        empty: stands where no row is found, in an outer join, else None.
    """

    right: VirtualLookup
    piece: int
    values: RowFunction
    empty: RowTuple | None


class CatalogJoin(DependentJoin):
    """For each left row, the rows of a catalog relation with its value; INNER or LEFT.

    Attributes:
        base: gives the rows of the first piece.
        entire: whether those are a catalog relation's as the cache keeps them, else ``base``'s own.
        pieces: where columns stand in the rows of each piece.
        steps: what is joined to them, in order; one alone where the join has a condition.
        of_pieces: the functions that take rows in pieces.
    """

    def __init__(self, left: Node, right: VirtualLookup, kind: JoinKind, conjuncts: Sequence[Expr]) -> None:
        super().__init__(left, right, kind, conjuncts)
        self.empty = (None,) * right.width_found if kind is JoinKind.LEFT else None
        self.base: Node = left
        self.entire = False
        self.pieces: tuple[Columns, ...] = (left.layout.columns,)
        self.steps: tuple[_Step, ...] = ()
        if self.test is None and isinstance(left, CatalogJoin) and left.test is None:
            if _piece_of(right.key, left.pieces) is not None:
                self.base, self.entire = left.base, left.entire
                self.pieces, self.steps = left.pieces, left.steps
        elif self.test is None and isinstance(left, SourceNode) and isinstance(left.source, CatalogSource):
            self.entire, self.pieces = left.source.entire, (left.source.columns_found,)
        piece = _piece_of(right.key, self.pieces) or 0
        values = compile_column(right.key, replace(right.outer, columns=self.pieces[piece]))
        self.steps = (*self.steps, _Step(right, piece, values, self.empty))
        self.pieces = (*self.pieces, right.columns_found)
        self.of_pieces: set[RowFunction] = set()

    @cached_property
    def flat(self) -> RowFunction:
        """Return the function from rows in pieces to those of ``layout``."""
        cells = ["None"] * self.width
        for number, columns in enumerate(self.pieces):
            for key, place in columns.items():
                position = self.layout.columns.get(key)
                if position is not None:
                    cells[position] = f"r{number}[{place}]"
        if not self.entire:
            cells[: self.base.width] = ["*r0"]
        row = ", ".join(f"r{number}" for number in range(len(self.pieces)))
        return plain_function(eval(f"lambda rows, e: [({', '.join(cells)},) for {row} in rows]"))

    def pipe(self, e: Env) -> Pipe:
        """Join; the columns of all ranges stand side by side."""
        return self._joined(self.flat, e)

    def mapping(self, exprs: Sequence[Expr | int]) -> RowFunction:
        """Compute expressions over the pieces, which need not become one row then."""
        if self._over_pieces(exprs):
            function = compile_map(exprs, Layout(pieces=self.pieces, outer=self.layout.outer))
            if not function.may_suspend:
                self.of_pieces.add(function)
                return function
        return super().mapping(exprs)

    def mapped(self, function: RowFunction, e: Env) -> Pipe:
        """Join, and compute."""
        return self._joined(function, e) if function in self.of_pieces else super().mapped(function, e)

    def _over_pieces(self, exprs: Sequence[Expr | int]) -> bool:
        """Tell whether expressions can be computed over pieces: their columns are there, and no sub-select
        sees the row.
        """
        if self.test is not None or self.layout.exprs:
            return False
        known = {key for columns in self.pieces for key in columns}
        return not any(
            isinstance(x, int)
            or has_sublink(x)
            or any(isinstance(v, Var) and v.level == 0 and (v.range, v.attnum) not in known for v in walk(x))
            for x in exprs
        )

    def _joined(self, made: RowFunction, e: Env) -> Pipe:
        """Give what ``made`` makes of rows in pieces."""
        for step in self.steps:
            yield from step.right.prepare(e)
        findings = [_Finding(step.right, e) for step in self.steps]
        base = self.base
        if self.entire:
            if not isinstance(base, SourceNode):
                raise AssertionError(f"rows of a catalog are read by {type(base).__name__}")
            if not isinstance(base.source, CatalogSource):
                raise AssertionError(f"rows of a catalog come from {type(base.source).__name__}")
            source = base.source.fetch_entire((), e)
        else:
            source = base.pipe(e)
        for item in source:
            if item.__class__ is list:
                yield from self._with_steps([item], 0, findings, made, e)
            else:
                yield item

    def _with_steps(
        self, pieces: Pieces, first: int, findings: Sequence[_Finding], made: RowFunction, e: Env
    ) -> Pipe:
        """Join a batch with the steps from ``first`` on."""
        for number in range(first, len(self.steps)):
            step = self.steps[number]
            found = yield from findings[number].of(step.values(pieces[step.piece], e), e)
            if self.test is not None:
                yield from self._tested(pieces[0], found, self.test, e)
                return
            kinds = set(map(type, found))
            if list in kinds:
                for some in _spread(pieces, found, step.empty):
                    yield from self._with_steps(some, number + 1, findings, made, e)
                return
            if NoneType not in kinds:
                rows = found
            elif step.empty is not None:
                rows = [step.empty if row is None else row for row in found]
            else:
                there = [row is not None for row in found]
                pieces = [list(compress(piece, there)) for piece in pieces]
                rows = list(compress(found, there))
            pieces = [*pieces, cast("Rows", rows)]
        yield made(list(zip(*pieces, strict=True)), e) or None

    def _tested(self, lefts: Rows, found: Sequence[Found], test: RowFunction, e: Env) -> Pipe:
        """Join row by row: the join has a condition."""
        out: Rows = []
        for left, rights in zip(lefts, map(as_rows, found), strict=True):
            matched = False
            for i in range(0, len(rights), BATCH):
                rows = self.flat([(left, right) for right in rights[i : i + BATCH]], e)
                rows = yield from evaluate_rows(test, rows, e)
                if rows:
                    matched = True
                    out += rows
                if len(out) >= BATCH:
                    yield out
                    out = []
            if self.empty is not None and not matched:
                out += self.flat([(left, self.empty)], e)
            if len(out) >= BATCH:
                yield out
                out = []
        yield out or None


def _spread(pieces: Pieces, found: Sequence[Found], empty: RowTuple | None) -> Iterator[Pieces]:
    """Yield ``pieces`` with the rows found beside them, once for each row found, in batches."""
    numbers: list[int] = []
    rows: Rows = []
    for number, each in enumerate(found):
        if each.__class__ is list:
            numbers += [number] * len(each)
            rows += each
        elif each is not None or empty is not None:
            numbers.append(number)
            rows.append(cast("RowTuple", empty if each is None else each))
        while len(rows) >= BATCH:
            yield [*([piece[n] for n in numbers[:BATCH]] for piece in pieces), rows[:BATCH]]
            del numbers[:BATCH], rows[:BATCH]
    if rows:
        yield [*([piece[n] for n in numbers] for piece in pieces), rows]


def _piece_of(value: Expr, pieces: Sequence[Columns]) -> int | None:
    """Return the number of the piece whose columns are all that ``value`` reads, None where it takes several."""
    read = [(x.range, x.attnum) for x in walk(value) if isinstance(x, Var) and x.level == 0]
    return next((n for n, columns in enumerate(pieces) if all(key in columns for key in read)), None)


class _Finding:
    """What has been found in one relation while a join runs, by value."""

    __slots__ = ("_all", "_asked", "_find", "_known", "_right")

    def __init__(self, right: VirtualLookup, e: Env) -> None:
        self._right = right
        self._find: Finder = right.finder(e)
        self._all: FindAll | None = None
        self._known: dict[Any, Found] = {}
        self._asked = 0

    def of(self, values: Sequence[Any], e: Env) -> Generator[Item, None, Sequence[Found]]:
        """Return what there is for each of the values of a batch, with turns for others while an index is made."""
        if self._all is not None:
            return self._all(values)
        known = self._known
        new = set(values).difference(known)
        if new:
            self._asked += len(new)
            if self._asked > MANY:
                yield from self._right.prepare(e, many=True)
                self._all = self._right.find_all(e)
                if self._all is not None:
                    return self._all(values)
            if len(known) + len(new) > KEPT_VALUES:
                known.clear()
                new = set(values)
            known.update(self._right.found_each(new, self._find, e))
        return [known[value] for value in values]
