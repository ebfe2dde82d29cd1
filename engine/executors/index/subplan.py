"""Sub-selects in expressions: compiled plans that generated code calls with (row, env).

A sub-select that does not look at the row is run once and its rows are kept: for the whole execution when nothing
outside matters, else for the env it belongs to. A correlated one is run for each row. When a run meets a Wait it
raises Suspend with its generator; the node finishes it and evaluates the batch again (see ``state``).

    (SELECT count(*) FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)
                                           ^ the rows outside for which this finds nothing share one answer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.executors.expressions import is_volatile
from engine.executors.index.access.choice import outer_levels, stands_alone
from engine.executors.index.access.virtual_sources import VirtualLookup
from engine.executors.index.aggregate import AggregateNode
from engine.executors.index.joins import DependentJoin, HashJoin, LoopJoin
from engine.executors.index.keyed import KeySet
from engine.executors.index.nodes import Cut, Distinct, Filter, Limit, Node, Project, Sort
from engine.executors.index.sources import SourceNode
from engine.executors.index.state import ExecState, Pipe, Rows, SubRun, Wait
from pgwire.give_way import give_way, paced
from pgwire.long.arrays import gathered, tupled
from pgwire.long.hashes import hashed
from planner.base.errors import SqlError
from planner.evaluate import Env, Layout, RowFunction, Suspend, compile_operator, compile_row, walk
from planner.facts import INT4, facts
from planner.functions.aggregates.states import ArrayAgg
from planner.functions.inline import simple_equality
from planner.functions.values.compare import hash_key, may_be_long
from planner.query import (
    Const,
    FuncExpr,
    JoinKind,
    OutputColumn,
    QueryExpr,
    Select,
    SubLink,
    SubLinkKind,
    Target,
    Var,
)
from planner.types import SqlType

_counter = iter(range(1, 1 << 62))
# nodes whose answer depends on nothing else where their first input is empty
_EMPTY_FOR_EMPTY = (
    AggregateNode,
    Cut,
    DependentJoin,
    Distinct,
    Filter,
    HashJoin,
    Limit,
    LoopJoin,
    Project,
    Sort,
)


class Subplan:
    """A compiled sub-select body."""

    def __init__(self, plan: Node, query: object) -> None:
        self.plan = plan
        self.id = next(_counter)
        levels, with_level = outer_levels(query)
        self.correlated = 1 in levels
        self.constant = not levels and not with_level
        self.lookup = _deciding_lookup(plan, query) if self.correlated else None

    def rows(self, row: Any, e: Env, stop_after: int = 0) -> Rows:
        """Return the rows for ``row``; at least ``stop_after`` (if set) when there are that many."""
        shared: ExecState = e.shared
        if self.correlated:
            if shared.memo:
                known: Rows | None = shared.memo.get((self.id, _identity(row)))
                if known is not None:
                    return known
        else:
            cache = self._cache(e)
            kept: Rows | None = cache.get(self.id)
            if kept is not None:
                return kept
        inside = e.child(row)
        finds_nothing = self.lookup is not None and self.lookup.finds_nothing(inside)
        if finds_nothing:
            answer: Rows | None = shared.cache.get(self.id)
            if answer is not None:
                return answer
        rows: Rows = []
        pipe = self.plan.pipe(inside)
        log, cursor, memo = shared.log, shared.cursor, shared.memo
        shared.log, shared.cursor = [], 0
        met: Wait | None = None
        try:
            for item in pipe:
                give_way()
                if item.__class__ is list:
                    rows.extend(item)
                    if stop_after and len(rows) >= stop_after:
                        pipe.close()
                        break
                elif isinstance(item, Wait):
                    met = item
                    break
        finally:
            shared.log, shared.cursor, shared.memo = log, cursor, memo
        if met is not None:
            raise Suspend("load", self._run(pipe, rows, met, stop_after, row, e))
        if not self.correlated:
            self._cache(e)[self.id] = rows
        elif finds_nothing:
            shared.cache[self.id] = rows
        return rows

    def _cache(self, e: Env) -> dict[int, Any]:
        if self.constant:
            cache: dict[int, Any] = e.shared.cache
            return cache
        if e.cache is None:
            e.cache = {}
        return e.cache

    def _run(self, pipe: Pipe, rows: Rows, met: Wait, stop_after: int, row: Any, e: Env) -> SubRun:
        if self.correlated:
            memo = e.shared.memo
            key = (self.id, _identity(row))

            def remember(found: Rows) -> None:
                memo[key] = found

            return SubRun(pipe, rows, met, stop_after, remember)
        cache = self._cache(e)

        def keep(found: Rows) -> None:
            cache[self.id] = found

        return SubRun(pipe, rows, met, stop_after, keep)


def _deciding_lookup(plan: Node, query: object) -> VirtualLookup | None:
    """Return the look-up in a catalog relation from which all rows of a sub-select come, if nothing but WHERE
    looks outside.

    Where it finds nothing, the answer is the same whatever the row outside.
    """
    if not isinstance(query, Select) or query.ctes or is_volatile(query):
        return None
    if not stands_alone(replace(query, where=None)):
        return None
    node = plan
    while not isinstance(node, SourceNode):
        if not isinstance(node, _EMPTY_FOR_EMPTY) or (
            isinstance(node, HashJoin | LoopJoin) and node.kind is JoinKind.FULL
        ):
            return None
        node = node.inputs[0]
    source = node.source
    return source if isinstance(source, VirtualLookup) and source.by_batches else None


def only_existence(query: QueryExpr) -> QueryExpr:
    """Return ``query`` without what EXISTS does not look at: select list, DISTINCT, ORDER BY (as PostgreSQL does)."""
    if (
        not isinstance(query, Select)
        or query.grouped
        or query.windows
        or query.limit is not None
        or query.row_marks
    ):
        return query
    if query.offset is not None or any(
        isinstance(x, FuncExpr) and x.returns_set for t in query.targets for x in walk(t.expr)
    ):
        return query
    one = Const(type=SqlType(INT4), value=1)
    column = OutputColumn(name="", type=one.type)
    return replace(query, targets=(Target(expr=one, name=""),), columns=(column,), distinct=False, order=())


def _identity(row: Any) -> Any:
    """Return a key under which equal rows are one: values with their classes and texts (1.0 is not 1.00)."""
    return repr(row)


def compile_sublink(
    link: SubLink, layout: Layout, planned: Callable[[Any, Layout | None], Node]
) -> Callable[[Any, Env], Any]:
    """Return ``f(row, env)`` for a sub-select; ``planned`` plans a query under an outer layout."""
    if link.kind is SubLinkKind.EXISTS:
        body = only_existence(link.query)
        plan = Subplan(planned(body, layout), body)
        return lambda r, e: bool(plan.rows(r, e, 1))
    plan = Subplan(planned(link.query, layout), link.query)
    if link.kind is SubLinkKind.SCALAR:

        def scalar(r: Any, e: Env) -> Any:
            found = plan.rows(r, e, 2)
            if len(found) > 1:
                raise _too_many()
            return found[0][0] if found else None

        return scalar
    if link.kind is SubLinkKind.ARRAY:
        return _array(plan, link.query.columns[0].type.oid)
    lefts = compile_row(link.lefts, layout)
    compare = _comparison(link, layout)
    if link.kind is SubLinkKind.ROW:

        def one_row(r: Any, e: Env) -> Any:
            found = plan.rows(r, e, 2)
            if len(found) > 1:
                raise _too_many()
            return compare(lefts(r, e), found[0], e) if found else None

        return one_row
    if link.kind is SubLinkKind.ANY:
        hashed = _hashed(link, plan, lefts)
        if hashed is not None:
            return hashed
        return _quantified(plan, lefts, compare, True)
    return _quantified(plan, lefts, compare, False)


def _array(plan: Subplan, type_oid: int) -> Callable[[Any, Env], Any]:
    """Return ``ARRAY(SELECT …)``: what array_agg makes of the rows, and an empty array of none."""
    if not ArrayAgg((type_oid,)).arrays:
        return lambda r, e: tupled(gathered(row[0] for row in paced(plan.rows(r, e))))

    def of_arrays(r: Any, e: Env) -> Any:
        made = ArrayAgg((type_oid,))
        for row in paced(plan.rows(r, e)):
            made.step(row[0])
        found = made.result()
        return () if found is None else found

    return of_arrays


def _too_many() -> SqlError:
    return SqlError("21000", "more than one row returned by a subquery used as an expression")


def _quantified(
    plan: Subplan, lefts: RowFunction, compare: Callable[[Any, Any, Env], bool | None], any_: bool
) -> Callable[[Any, Env], bool | None]:
    def test(r: Any, e: Env) -> bool | None:
        values = lefts(r, e)
        result: bool | None = not any_
        for row in paced(plan.rows(r, e), 16):
            got = compare(values, row, e)
            if got is any_:
                return any_
            if got is None:
                result = None
        return result

    return test


def _hashed(link: SubLink, plan: Subplan, lefts: RowFunction) -> Callable[[Any, Env], bool | None] | None:
    """Return IN over a set, where the rows do not depend on the row outside and equality hashes."""
    if plan.correlated or len(link.lefts) != 1 or link.row_kind:
        return None
    cast = link.casts[0] if link.casts else None
    if cast is not None and not (isinstance(cast, Var) and cast.range == -1):
        return None
    proc = link.procs[0]
    fact = facts().procs.get(proc)
    key = None
    if not simple_equality(proc):
        if fact is None or fact.name not in ("numeric_eq", "float8eq", "float4eq", "bpchareq"):
            return None
        key = hash_key(fact.arg_types[0])
    slot = -plan.id
    long = fact is not None and may_be_long(fact.arg_types[0])

    def test(r: Any, e: Env) -> bool | None:
        rows = plan.rows(r, e)
        cache = plan._cache(e)
        known = cache.get(slot)
        if known is None:
            members = KeySet()
            has_null = False
            for row in paced(rows):
                value = row[0]
                if value is None:
                    has_null = True
                else:
                    value = value if key is None else key(value)
                    members.add_one(hashed(value) if long else value)
            known = cache[slot] = (members.has(), has_null)
        is_member, has_null = known
        if not rows:
            return False
        value = lefts(r, e)[0]
        if value is None:
            return None
        value = value if key is None else key(value)
        if is_member(hashed(value) if long else value):
            return True
        return None if has_null else False

    return test


def _comparison(link: SubLink, layout: Layout) -> Callable[[Any, Any, Env], bool | None]:
    """Return ``f(left values, row, env)``: the comparisons joined as the link says."""
    output = Layout(columns={(-1, i + 1): i for i in range(len(link.query.columns))}, subplan=layout.subplan)
    count = len(link.lefts)
    cast = compile_row(link.casts, output) if link.casts else None
    right_types = [x.type.oid for x in link.casts] or [c.type.oid for c in link.query.columns]
    operators = [
        compile_operator(proc, link.lefts[i].type.oid, right_types[i]) for i, proc in enumerate(link.procs)
    ]
    if link.row_kind:
        equals = [
            compile_operator(proc, link.lefts[i].type.oid, right_types[i])
            for i, proc in enumerate(link.eq_procs)
        ]
        swap = link.row_kind in (">", ">=")
        at_end = link.row_kind in ("<=", ">=")
        if swap:
            operators = [
                compile_operator(proc, right_types[i], link.lefts[i].type.oid)
                for i, proc in enumerate(link.procs)
            ]

        def ordered(lefts: Any, row: Any, e: Env) -> bool | None:
            rights = cast(row, e) if cast is not None else row
            for i in range(count):
                same = equals[i](lefts[i], rights[i], e)
                if same is None:
                    return None
                if not same:
                    pair = (rights[i], lefts[i]) if swap else (lefts[i], rights[i])
                    got: bool | None = operators[i](*pair, e)
                    return got
            return at_end

        return ordered
    stop = link.join_or

    def joined(lefts: Any, row: Any, e: Env) -> bool | None:
        rights = cast(row, e) if cast is not None else row
        result: bool | None = not stop
        for i in range(count):
            got: bool | None = operators[i](lefts[i], rights[i], e)
            if got is stop:
                return stop
            if got is None:
                result = None
        return result

    return joined
