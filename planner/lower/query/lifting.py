"""Scalar sub-selects of Spark as joins.

    SELECT … FROM a, b WHERE a.x < (SELECT avg(c.y) FROM c WHERE c.k = b.k AND c.z = 1)

    SELECT … FROM a CROSS JOIN b
      JOIN (SELECT avg(c.y) AS q1, c.k AS q2 FROM c WHERE c.z = 1 GROUP BY c.k) AS s ON s.q2 = b.k
    WHERE a.x < s.q1                                       (LEFT JOIN where rows without a match may stay)

Spark rewrites such sub-selects itself, but only where the aggregate is the outermost of the sub-select does
it join by the sub-select's own column; below a projection it first collects the distinct values of ``b.k`` by
a join of its own. Values that take part in an expression more than once (numerics of varying scale) would
moreover have to be named, which Spark allows of a column alone. So each becomes a column: one row per key, or
one row at all where nothing is correlated.

Lifted are aggregates of everything whose references to the query around are sides of equalities AND joins;
others stay for Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from planner import facts as f
from planner import query as q
from planner.facts import facts
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.from_items import terms
from planner.lower.kit.value import Floating, Val
from planner.lower.query import expr as expressions
from planner.query.exprs import free_levels
from planner.query.rewrite import shift_levels
from planner.query.walk import children, walk
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext

_KEY_TYPES: Final = frozenset(
    (f.BOOL, f.INT2, f.INT4, f.INT8, f.NUMERIC, f.TEXT, f.VARCHAR, f.BPCHAR, f.DATE, f.TIMESTAMP, f.TIMESTAMPTZ, f.UUID)
)  # fmt: skip
"""Types whose groups are what their ``=`` calls equal, among each other too."""
_PASSING: Final = (q.RelabelType, q.CoerceViaIO, q.CoerceTypmod)


@dataclass(frozen=True, slots=True)
class _Key:
    """An equality ``proc`` of something of the sub-select (``inner``) with something of the query around it."""

    proc: int
    inner: q.Expr
    outer: q.Expr
    turned: bool  # outer = inner


@dataclass(frozen=True, slots=True)
class Lift:
    """A sub-select that becomes a FROM item.

    Attributes:
        link: where it stands.
        query: one row per key; its columns are the value and the keys. Nothing in it is correlated.
        keys: () for one row at all.
        needs: the ranges of the query around that are joined before: those of the condition in which it stands, so
            that Spark finds the condition right above the join.
        counts: whether the value is 0, not NULL, where no row belongs to a key.
        inner: whether a condition fails where the value is NULL, so that rows without a value need not stay. Spark sees
            that of plain comparisons alone, and orders inner joins more freely.
    """

    link: q.SubLink
    query: q.Select
    keys: tuple[_Key, ...]
    needs: frozenset[int]
    counts: bool
    inner: bool


def lifts_in(where: q.Expr | None, values: Iterable[q.Expr] = ()) -> list[Lift]:
    """Return what can be lifted out of a condition and other expressions over the rows of one FROM, each once."""
    found: dict[q.SubLink, q.Expr] = {}
    failing: set[q.SubLink] = set()
    for term in terms(where):
        for link in _links(term):
            found.setdefault(link, term)
        failing |= _nulls_of(term)
    for value in values:
        for link in _links(value):
            found.setdefault(link, value)
    lifts = (_lift(link, _ranges(term), link in failing) for link, term in found.items())
    return [lift for lift in lifts if lift is not None]


def _nulls_of(expr: Any) -> set[q.SubLink]:
    """Return the scalar sub-selects that make an expression NULL where they are."""
    if isinstance(expr, q.SubLink):
        return {expr} if expr.kind is q.SubLinkKind.SCALAR else set()
    if isinstance(expr, q.FuncExpr | q.OpExpr):
        return set().union(*map(_nulls_of, expr.args)) if facts().procs[expr.proc].strict else set()
    return _nulls_of(expr.arg) if isinstance(expr, _PASSING) else set()


def _ranges(node: object, depth: int = 0) -> frozenset[int]:
    """Return the ranges of the query around that an expression reads, in its sub-selects too."""
    if isinstance(node, q.Var):
        return frozenset((node.range,)) if node.level == depth and node.range >= 0 else frozenset()
    depth += isinstance(node, q.QueryBase)
    return frozenset().union(*(_ranges(child, depth) for child in children(node)))


def _links(node: object) -> Iterator[q.SubLink]:
    """Yield the scalar sub-selects below a node that belong to its own query level."""
    if isinstance(node, q.SubLink) and node.kind is q.SubLinkKind.SCALAR:
        yield node
    for child in children(node):
        if not isinstance(child, q.QueryBase):
            yield from _links(child)


def _lift(link: q.SubLink, needs: frozenset[int], fails: bool) -> Lift | None:
    query = link.query
    if not isinstance(query, q.Select) or not query.grouped or query.group or query.grouping_sets:
        return None
    if query.having or query.limit or query.offset or query.windows or query.ctes or len(query.targets) != 1:
        return None
    if any(isinstance(n, q.FuncExpr | q.OpExpr) and _moves(n.proc) for n in walk(query)):
        return None
    kept: list[q.Expr] = []
    keys: list[_Key] = []
    for term in terms(query.where):
        key = _key(term)
        if key is None:
            kept.append(term)
        else:
            keys.append(key)
    where = None if not kept else kept[0] if len(kept) == 1 else q.BoolExpr(type=SqlType(f.BOOL), kind="and", args=tuple(kept))  # fmt: skip
    value = query.targets[0]
    counts = keys != [] and _is_count(value.expr)
    if keys and not counts and not null_of_nothing(value.expr):
        return None
    group = tuple(dict.fromkeys(key.inner for key in keys))
    targets = (value, *(q.Target(expr=expr, name=f"k{i + 1}") for i, expr in enumerate(group)))
    columns = tuple(q.OutputColumn(name=t.name, type=t.expr.type) for t in targets)
    made = replace(query, targets=targets, columns=columns, where=where, group=group, order=())
    if free_levels(made) != ([], []):
        return None
    return Lift(link, made, tuple(keys), needs, counts, fails and not counts)


def _key(term: q.Expr) -> _Key | None:
    """Return a conjunct as the equality of an own and an outer expression, if it is one."""
    if not isinstance(term, q.OpExpr) or len(term.args) != 2 or facts().operators[term.op].name != "=":
        return None
    if any(arg.type.oid not in _KEY_TYPES for arg in term.args):
        return None
    if any(isinstance(n, q.SubLink | q.Aggregate) for n in walk(term)):
        return None
    left, right = (set(free_levels(arg)[0]) for arg in term.args)
    if left == {0} and right == {1}:
        return _Key(term.proc, term.args[0], shift_levels(term.args[1], -1), False)
    if left == {1} and right == {0}:
        return _Key(term.proc, term.args[1], shift_levels(term.args[0], -1), True)
    return None


def _moves(proc: int) -> bool:
    fact = facts().procs.get(proc)
    return fact is None or fact.volatility == "v" or fact.returns_set


def _is_count(expr: q.Expr) -> bool:
    return isinstance(expr, q.Aggregate) and facts().procs[expr.proc].name == "count"


def null_of_nothing(expr: q.Expr) -> bool:
    """Return whether an expression over aggregates is certainly NULL where these have no rows."""
    if isinstance(expr, q.Aggregate):
        return facts().procs[expr.proc].name not in ("count", "regr_count") and not expr.direct
    if isinstance(expr, q.FuncExpr | q.OpExpr):
        return facts().procs[expr.proc].strict and any(null_of_nothing(arg) for arg in expr.args)
    return isinstance(expr, _PASSING) and null_of_nothing(expr.arg)


def join_lifted(lw: LoweringContext, source: Node, lifts: Sequence[Lift], lifted: dict[q.Expr, Val]) -> Node:
    """Return ``source`` joined with the sub-selects, and note the columns that stand for them.

    A sub-select that is not correlated stays what it is unless its value is a numeric of varying scale.
    """
    for lift in lifts:
        result = lw.query(lift.query)
        column = result.columns[0]
        if not lift.keys and not isinstance(column.num, Floating):
            node = b.scalar(result.node, one_row=True, correlated=False)
            lifted[lift.link] = Val(node, lift.link.type, column.num, padded=column.padded)
            continue
        label = lw.d.fresh("s")
        value, *group = result.values(label)
        found = dict(zip(lift.query.group, group, strict=True))
        tests = []
        for key in lift.keys:
            sides = [found[key.inner], lw.expr(key.outer)]
            if key.turned:
                sides.reverse()
            tests.append(expressions.call(lw, key.proc, sides, SqlType(f.BOOL)).node)
        kind = "CROSS" if not tests else "INNER" if lift.inner else "LEFT"
        source = b.join(source, b.derived(result.node, label), kind, b.and_(*tests) if tests else None)
        node = b.fn("coalesce", value.node, b.integer(0)) if lift.counts else value.node
        lifted[lift.link] = replace(value, node=node, type=lift.link.type)
    return source
