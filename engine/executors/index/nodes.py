"""Plan nodes of the row executor: each turns batches of rows into batches of rows.

    Limit
      Sort  name
        Project  name, count(*)
          Filter
            ...

A node knows its ``layout`` (where values stand in its rows), its children and how it prints. ``pipe(env)`` starts
it; the batches it yields are fresh lists that the consumer may keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Any, TypeAlias, cast

from engine.base.explain.tree import Measured
from engine.base.pieces import PART_BYTES
from engine.base.rows import RowTuple
from engine.executors.index.access.choice import in_order_of_cost
from engine.executors.index.keyed import KeySet
from engine.executors.index.sorting import RUN, OrderItem, compare_key, merged, sort_rows
from engine.executors.index.state import BATCH, FEW, Pipe, Rows, evaluate, evaluate_rows, gather, stepwise
from pgwire.codecs.system import RecordValue
from pgwire.give_way import give_way, paced
from pgwire.long.hashes import LONG, hashed
from pgwire.release import let_go, release
from planner.base.errors import SqlError
from planner.base.large import METER
from planner.bind.expression.columns import function_columns
from planner.evaluate import (
    EMPTY_LAYOUT,
    Env,
    Layout,
    RowFunction,
    compile_expr,
    compile_filter,
    compile_map,
    compile_row,
)
from planner.evaluate.env import Subplanner
from planner.facts import RECORD
from planner.functions.values.compare import hash_key, may_be_long
from planner.functions.values.record_keys import has_records, meet
from planner.query import Const, Expr, FuncExpr, QueryExpr, SqlCall, SubLink, Var
from planner.types import SqlType

WIDE = 100
"""Columns of a projection from which on a batch of it may take longer than a slice."""
PICKED = 20_000
"""Values that such a projection picks between two looks at the clock."""


class Node:
    """A node: ``layout`` of its rows, their ``width``, and its inputs.

    ``block``: the query whose whole plan it is. ``measured``: what it does, where somebody wants to know
    (``engine.executors.index.measured``).
    """

    block: QueryExpr | None = None
    measured: Measured | None = None

    def __init__(self, layout: Layout, width: int, *inputs: Node) -> None:
        self.layout = layout
        self.width = width
        self.inputs = inputs

    def pipe(self, e: Env) -> Pipe:
        """Start the node for one env."""
        raise NotImplementedError

    def mapping(self, exprs: Sequence[Expr | int]) -> RowFunction:
        """Return the function for ``mapped`` that computes ``exprs``; a number stands for the value at that
        place of the row.
        """
        return projection(exprs, self.layout)

    def mapped(self, function: RowFunction, e: Env) -> Pipe:
        """Start the node for one env, giving what ``function``, of ``mapping``, makes of its rows."""
        return apply(function, self.pipe(e), e)


def apply(function: RowFunction, source: Pipe, e: Env) -> Pipe:
    """Map a batch function over a pipeline. What was handed on is let go before more is asked for: one row
    may be large.
    """
    if function.may_suspend:
        for item in source:
            if item.__class__ is not list:
                yield item
            elif not function.grows:
                out = yield from evaluate_rows(function, item, e)
                item = None
                if out:
                    yield out
                del out
            else:
                for at in range(0, len(item), FEW):
                    out = yield from evaluate(function, item[at : at + FEW], e)
                    if out:
                        yield out
                    del out
                item = None
        return
    if function.grows:
        yield from _apply_by_bytes(function, source, e)
        return
    for item in source:
        if item.__class__ is list:
            out = function(item, e)
            item = None
            if out:
                yield out
            del out
        else:
            yield item


def _apply_by_bytes(function: RowFunction, source: Pipe, e: Env) -> Pipe:
    """Map a batch function that may make large values: a few rows at a time where it does, so that they go on
    as they come.
    """
    step = 1
    for item in source:
        if item.__class__ is not list:
            yield item
            continue
        at = 0
        while at < len(item):
            before = METER.made
            out = function(item[at : at + step] if at or step < len(item) else item, e)
            at += step
            if METER.made - before > PART_BYTES // 4:
                step = max(step // 4, 1)
            elif step < BATCH:
                step *= 4
            if at >= len(item):
                item = []
            if out:
                yield out
            del out  # before the next ones are made


class OneRow(Node):
    """One empty row: a SELECT without FROM."""

    def __init__(self, outer: Layout | None, subplan: Any) -> None:
        super().__init__(Layout(outer=outer, subplan=subplan), 0)

    def pipe(self, e: Env) -> Pipe:
        """Yield the row."""
        yield [()]


class Filter(Node):
    """Rows for which all conjuncts are TRUE."""

    def __init__(self, child: Node, conjuncts: Sequence[Expr]) -> None:
        super().__init__(child.layout, child.width, child)
        self.conjuncts = in_order_of_cost(conjuncts)
        self.function = compile_filter(self.conjuncts, child.layout)

    def pipe(self, e: Env) -> Pipe:
        """Filter."""
        return apply(self.function, self.inputs[0].pipe(e), e)


class Project(Node):
    """The values of expressions; the layout knows outputs only by position."""

    def __init__(self, child: Node, exprs: Sequence[Expr], names: Sequence[str] = ()) -> None:
        super().__init__(Layout(outer=child.layout.outer, subplan=child.layout.subplan), len(exprs), child)
        self.names = names
        self.exprs = exprs
        self.function = child.mapping(exprs)

    def pipe(self, e: Env) -> Pipe:
        """Project."""
        return self.inputs[0].mapped(self.function, e)


def plain_function(function: Callable[[Any, Env], Any]) -> RowFunction:
    """Mark a hand-written batch function as one that never suspends."""
    function.may_suspend = function.grows = False  # type: ignore[attr-defined]  # marks that RowFunction declares
    return cast("RowFunction", function)


def projection(exprs: Sequence[Expr | int], layout: Layout) -> RowFunction:
    """Return the batch function that computes ``exprs``; plain columns become an itemgetter."""
    positions = [
        x if isinstance(x, int)
        else layout.columns.get((x.range, x.attnum)) if isinstance(x, Var) and x.level == 0 else None
        for x in exprs
    ]  # fmt: skip
    if len(positions) > 1 and all(p is not None for p in positions):
        getter = itemgetter(*positions)

        def pick(rows: Rows, e: Env) -> Rows:
            return list(map(getter, rows))

        if len(positions) > WIDE:
            every = max(1, PICKED // len(positions))

            def pick_wide(rows: Rows, e: Env) -> Rows:
                return list(map(getter, paced(rows, every)))

            return plain_function(pick_wide)

        return plain_function(pick)
    if positions and positions[0] is not None and len(positions) == 1:
        position = positions[0]
        return plain_function(lambda rows, e: [(r[position],) for r in rows])
    return compile_map(exprs, layout)


class InTurn(Node):
    """Rows as they are asked for; ``how``: as of a query, "found" all of them before the first is given on
    (``engine.changes.writes.in_turn``).
    """

    def __init__(self, child: Node, how: str) -> None:
        super().__init__(child.layout, child.width, child)
        self.how = how

    def pipe(self, e: Env) -> Pipe:
        """Gather, where that is asked for, and give out."""
        if self.how != "found":
            yield from stepwise(self.inputs[0].pipe(e), self.how, e)
            return
        rows = yield from gather(self.inputs[0].pipe(e))
        try:
            for row in rows:
                yield [row]
        finally:
            release(rows)


class Cut(Node):
    """The first ``width`` columns (junk columns dropped)."""

    def __init__(self, child: Node, width: int) -> None:
        super().__init__(child.layout, width, child)

    def pipe(self, e: Env) -> Pipe:
        """Cut each row."""
        width = self.width
        for item in self.inputs[0].pipe(e):
            if item.__class__ is list:
                rows = [r[:width] for r in item]
                item = None
                yield rows
                del rows
            else:
                yield item


Beside: TypeAlias = tuple[int, Expr]
"""How many of a ProjectSet's functions stand before an expression in the select list, and the expression."""


class ProjectSet(Node):
    """Set-returning functions of a select list, in lockstep: as many rows as the longest has, NULLs after it.

    ``beside``: volatile expressions that are computed for each of these rows, and once more to find that
    there is no other, as PostgreSQL does; their values stand behind those of the functions. ``one_by_one``:
    nothing is computed before it is asked for.
    """

    def __init__(
        self,
        child: Node,
        functions: Sequence[FuncExpr],
        beside: Sequence[Beside] = (),
        one_by_one: bool = False,
    ) -> None:
        layout = Layout(
            columns=child.layout.columns,
            exprs={**child.layout.exprs, **{f: child.width + i for i, f in enumerate(functions)}},
            outer=child.layout.outer,
            subplan=child.layout.subplan,
        )
        super().__init__(layout, child.width + len(functions) + len(beside), child)
        self.function = compile_row(functions, child.layout)
        self.records = {
            i: made for i, f in enumerate(functions) if (made := _record_maker(f)) is not None
        }  # of those that yield rows as plain tuples
        self.size = 1 if one_by_one else BATCH
        self.first: RowFunction | None = None
        if beside:
            firsts: list[Expr] = list(functions)
            self.places = [before + i for i, (before, _) in enumerate(beside)]
            for place, (_, expr) in zip(self.places, beside, strict=True):
                firsts.insert(place, expr)
            own = replace(child.layout, subplan=_planned_once(child.layout.subplan))
            self.first = compile_row(firsts, own)
            self.again = compile_row([expr for _, expr in beside], own)

    def pipe(self, e: Env) -> Pipe:
        """Expand."""
        if self.first is not None:
            yield from self._beside(self.first, e)
            return
        function = self.function
        out: Rows = []
        sets: Sequence[Any] = ()
        try:
            for item in self.inputs[0].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                for row in item:
                    if function.may_suspend:
                        sets = yield from evaluate(function, row, e)
                    else:
                        sets = function(row, e)
                    give_way()
                    if self.records:
                        sets = self._as_records(sets)
                    for values in lockstep(sets):
                        out.append(row + values)
                        if len(out) >= self.size:
                            yield out
                            out = []
                    release_sets(sets)
                    sets = ()
            if out:
                yield out
        finally:
            release_sets(sets)

    def _as_records(self, sets: Sequence[Any]) -> list[Any]:
        """Return the sets of functions, rows of built-in ones as records."""
        records = self.records
        return [
            map(records[i], found) if i in records and found is not None else found
            for i, found in enumerate(sets)
        ]

    def _beside(self, first: RowFunction, e: Env) -> Pipe:
        """Expand, and compute for each row: with the functions' arguments in the order of the select list,
        then alone.
        """
        again, places = self.again, self.places
        out: Rows = []
        sets: Sequence[Any] = ()
        try:
            for item in self.inputs[0].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                for row in item:
                    values = (yield from evaluate(first, row, e)) if first.may_suspend else first(row, e)
                    more = tuple([values[place] for place in places])
                    sets = self._as_records(
                        [value for place, value in enumerate(values) if place not in places]
                    )
                    for found in lockstep(sets):
                        give_way()
                        out.append(row + found + more)
                        if len(out) >= self.size:
                            yield out
                            out = []
                        more = tuple(
                            (yield from evaluate(again, row, e)) if again.may_suspend else again(row, e)
                        )
                    release_sets(sets)
                    sets, values = (), ()
            if out:
                yield out
        finally:
            release_sets(sets)


def _planned_once(subplan: Subplanner | None) -> Subplanner | None:
    """Return a ``Layout.subplan`` that plans each sub-select once, however often it is compiled: one that
    reads nothing of the row runs once.
    """
    if subplan is None:
        return None
    plan = subplan
    made: dict[int, tuple[SubLink, Any]] = {}

    def planned(link: SubLink, layout: Layout) -> Any:
        if id(link) not in made:
            made[id(link)] = link, plan(link, layout)
        return made[id(link)][1]

    return planned


def _record_maker(function: FuncExpr) -> Callable[[Any], Any] | None:
    """Return what makes records of a built-in function's rows, which know the types and names of its OUT
    columns; None for other functions.
    """
    if function.type.oid != RECORD or isinstance(function, SqlCall):
        return None
    columns = function_columns(function)
    if columns is None:
        return None
    names, types = tuple(name for name, _ in columns), tuple(type_.oid for _, type_ in columns)

    def made(value: Any) -> Any:
        return value if value is None or isinstance(value, RecordValue) else RecordValue(value, types, names)

    return made


def release_sets(sets: Sequence[Any]) -> None:
    """Let go of what set-returning functions gave: a whole set has as many values as its array, or its text
    has words.
    """
    for found in sets:
        if isinstance(found, tuple | list):
            let_go(found)


def lockstep(sets: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield tuples with one value of each set until all are used up; NULL where a set is."""
    if len(sets) == 1:
        if sets[0] is not None:
            for value in sets[0]:
                yield (value,)
        return
    iterators = [iter(s) if s is not None else iter(()) for s in sets]
    done = object()
    while True:
        values = [next(it, done) for it in iterators]
        if all(v is done for v in values):
            return
        yield tuple(None if v is done else v for v in values)


def _constant_row(row: Sequence[Expr]) -> RowTuple | None:
    """Return the values of a row that is made of constants, else None."""
    values = []
    for cell in row:
        if cell.__class__ is not Const:
            return None
        values.append(cell.value)
    return tuple(values)


class ValuesNode(Node):
    """Rows of expressions."""

    def __init__(
        self,
        rows: Sequence[Sequence[Expr]],
        width: int,
        outer: Layout | None,
        subplan: Any,
        in_turn: bool = False,
    ) -> None:
        super().__init__(Layout(outer=outer, subplan=subplan), width)
        self.count = len(rows)
        self.batch = 1 if in_turn else BATCH
        layout = Layout(outer=outer, subplan=subplan)
        # a row of constants needs no code: INSERT ... VALUES of thousands of rows
        self.functions: list[RowFunction | RowTuple] = [
            constant if (constant := _constant_row(row)) is not None else compile_row(row, layout)
            for row in rows
        ]

    def pipe(self, e: Env) -> Pipe:
        """Evaluate row by row."""
        out: Rows = []
        for function in self.functions:
            if isinstance(function, tuple):
                row = function
            elif function.may_suspend:
                row = yield from evaluate(function, (), e)
            else:
                row = function((), e)
            out.append(row)
            if len(out) >= self.batch:
                yield out
                out = []
        if out:
            yield out


class Sort(Node):
    """All rows in order; with ``counts`` (LIMIT and OFFSET above it) only as many as can come out.

    More than ``RUN`` rows are sorted in runs and merged, so that the loop gets its turns.
    """

    def __init__(self, child: Node, items: Sequence[OrderItem], counts: Sequence[Expr] = ()) -> None:
        super().__init__(child.layout, child.width, child)
        self.items = list(items)
        layout = Layout(outer=child.layout.outer, subplan=child.layout.subplan)
        self.counts = compile_row(counts, layout) if counts else None

    def _top(self, e: Env) -> Any:
        if self.counts is None:
            return None
        counts = self.counts
        values = (yield from evaluate(counts, (), e)) if counts.may_suspend else counts((), e)
        if values[0] is None:
            return None
        return max(sum(int(v) for v in values if v is not None), 0)

    def pipe(self, e: Env) -> Pipe:
        """Collect, sort, give out."""
        top = yield from self._top(e)
        few = top is not None and top <= RUN
        rows: Rows = []
        runs: list[Rows] = []
        try:
            for item in self.inputs[0].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                rows.extend(item)
                if few:
                    if len(rows) > 2 * top + 4 * BATCH:
                        rows = sort_rows(rows, self.items)
                        rest = rows[top:]
                        del rows[top:]
                        release(rest)
                        del rest
                elif len(rows) >= RUN:
                    runs.append(sort_rows(rows, self.items))
                    rows = []
                yield None
            rows = sort_rows(rows, self.items)
            if not runs:
                yield from chunks(rows)
                return
            runs.append(rows)
            out: Rows = []
            for row in islice(merged(runs, self.items), top):
                out.append(row)
                if len(out) >= BATCH:
                    yield out
                    out = []
            if out:
                yield out
        finally:
            release(rows, *runs)


def chunks(rows: Rows) -> Pipe:
    """Give out rows in batches."""
    if len(rows) <= BATCH:
        if rows:
            yield rows
        return
    for i in range(0, len(rows), BATCH):
        yield rows[i : i + BATCH]


def row_key(types: Sequence[SqlType], positions: Sequence[int]) -> Callable[[tuple[Any, ...]], Any]:
    """Return the function giving the equality key of columns of a row (NULLs are equal)."""
    keys = [(p, hash_key(types[i].oid)) for i, p in enumerate(positions)]
    longs = [i for i in range(len(keys)) if may_be_long(types[i].oid)]
    if all(k is None for _, k in keys):
        if len(keys) == 1:
            return _one_long(keys[0][0]) if longs else itemgetter(keys[0][0])
        if not keys:
            return lambda row: ()
        get = itemgetter(*[p for p, _ in keys])
        return _some_long(get, longs) if longs else get

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(row[p] if k is None or row[p] is None else k(row[p]) for p, k in keys)

    return _some_long(key, longs) if longs else key


def _one_long(position: int) -> Callable[[tuple[Any, ...]], Any]:
    """Return what takes one text out of a row, its hash known if that takes long."""

    def key(row: tuple[Any, ...]) -> Any:
        value = row[position]
        return value if value is None or len(value) < LONG else hashed(value)

    return key


def _some_long(
    get: Callable[[tuple[Any, ...]], Any], longs: Sequence[int]
) -> Callable[[tuple[Any, ...]], Any]:
    """Return ``get``, whose results have texts at ``longs``."""

    def key(row: tuple[Any, ...]) -> Any:
        found = get(row)
        for i in longs:
            value = found[i]
            if value is not None and len(value) >= LONG:
                hashed(value)
        return found

    return key


def records_among(types: Sequence[SqlType]) -> tuple[int, ...]:
    """Return the positions in a key whose records may not compare with each other (``record_keys.meet``)."""
    return tuple([i for i, type_ in enumerate(types) if has_records(type_.oid)])


class Distinct(Node):
    """The first row of each set of equal rows; on sorted input this is DISTINCT ON."""

    def __init__(self, child: Node, types: Sequence[SqlType], positions: Sequence[int]) -> None:
        super().__init__(child.layout, child.width, child)
        self.key = row_key(types, positions)
        self.records = records_among(types)

    def pipe(self, e: Env) -> Pipe:
        """Pass on rows not seen before."""
        seen = KeySet()
        try:
            for item in self.inputs[0].pipe(e):
                yield (seen.new(item, self.key) or None) if item.__class__ is list else item
            if self.records:
                meet(seen, self.records)
        finally:
            seen.release()


def count_of(value: Any, what: str) -> int | None:
    """Return a LIMIT or OFFSET value; None for NULL; 2201W / 2201X when negative."""
    if value is None:
        return None
    number = int(value)
    if number < 0:
        state = "2201W" if what == "LIMIT" else "2201X"
        raise SqlError(state, f"{what} must not be negative")
    return number


class Limit(Node):
    """OFFSET and LIMIT; ``ties`` keeps the peers of the last row."""

    def __init__(
        self, child: Node, limit: Expr | None, offset: Expr | None, ties: Sequence[OrderItem] | None,
        outer: Layout | None, subplan: Any,
    ) -> None:  # fmt: skip
        super().__init__(child.layout, child.width, child)
        layout = Layout(outer=outer, subplan=subplan)
        self.limit = compile_expr(limit, layout) if limit is not None else None
        self.offset = compile_expr(offset, layout) if offset is not None else None
        self.ties = compare_key(ties) if ties is not None else None

    def _bound(self, function: RowFunction | None, what: str, e: Env) -> Any:
        value = None
        if function is not None:
            value = (yield from evaluate(function, (), e)) if function.may_suspend else function((), e)
        return count_of(value, what)

    def pipe(self, e: Env) -> Pipe:
        """Skip and stop; the input is closed early."""
        skip = (yield from self._bound(self.offset, "OFFSET", e)) or 0
        left = yield from self._bound(self.limit, "LIMIT", e)
        if left == 0:
            return
        source = self.inputs[0].pipe(e)
        last: Any = None
        try:
            for item in source:
                if item.__class__ is not list:
                    yield item
                    continue
                rows: Rows = item
                item = None
                if skip:
                    dropped = min(skip, len(rows))
                    skip -= dropped
                    rows = rows[dropped:]
                if not rows:
                    continue
                if left is None:
                    yield rows
                    rows = []
                    continue
                if left:
                    head = rows[:left]
                    left -= len(head)
                    rows = rows[len(head) :]
                    if left == 0 and self.ties is not None:
                        last = self.ties(head[-1])
                    yield head
                    del head
                    if left == 0 and self.ties is None:
                        return
                if left == 0 and self.ties is not None:
                    for i, row in enumerate(paced(rows)):
                        if self.ties(row) != last:
                            if i:
                                yield rows[:i]
                            return
                    if rows:
                        yield rows
        finally:
            source.close()


__all__ = [
    "EMPTY_LAYOUT", "Cut", "Distinct", "Filter", "Limit", "Node", "OneRow", "Project", "ProjectSet",
    "Sort", "ValuesNode", "apply", "chunks", "lockstep", "projection",
    "row_key",
]  # fmt: skip
