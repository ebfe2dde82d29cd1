"""FROM items and conditions: their ranges, their terms, and how they are put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planner import facts as f
from planner import query as q
from planner.conversion.order import default_equality
from planner.query.walk import children
from planner.types import SqlType

BOOL: Final = SqlType(f.BOOL)


def ranges_in(item: q.FromItem) -> frozenset[int]:
    """Return the ranges that a FROM item joins."""
    if isinstance(item, q.RangeRef):
        return frozenset((item.range,))
    return ranges_in(item.left) | ranges_in(item.right)


def as_range(query: q.QueryExpr, alias: str) -> q.SubqueryRange:
    """Return a query as a FROM entry."""
    columns = tuple(q.RangeColumn(name=c.name, type=c.type, attnum=n) for n, c in enumerate(query.columns, 1))
    return q.SubqueryRange(alias=alias, columns=columns, query=query)


def over(query: q.QueryExpr) -> q.Select:
    """Return ``SELECT * FROM (query)``; the query reads nothing from outside."""
    range_ = as_range(query, "s")
    shown = ((c.name, q.Var(type=c.type, range=0, attnum=c.attnum)) for c in range_.columns)
    targets = tuple(q.Target(expr=var, name=name) for name, var in shown)
    return q.Select(columns=query.columns, targets=targets, ranges=(range_,), from_=(q.RangeRef(range=0),))


def ranges_of(node: object, depth: int = 0) -> set[int]:
    """Return the ranges that something reads of the query in which it stands."""
    if isinstance(node, q.Var):
        return {node.range} if node.level == depth and node.range >= 0 else set()
    inner = depth + isinstance(node, q.QueryBase)
    return set().union(*(ranges_of(child, inner) for child in children(node)))


def terms(expr: q.Expr | None) -> Iterator[q.Expr]:
    """Yield what an expression joins by AND."""
    if isinstance(expr, q.BoolExpr) and expr.kind == "and":
        for arg in expr.args:
            yield from terms(arg)
    elif expr is not None:
        yield expr


def conjunction(terms: Sequence[q.Expr]) -> q.Expr | None:
    """Return the terms joined by AND; None of none."""
    if len(terms) < 2:
        return terms[0] if terms else None
    return q.BoolExpr(type=BOOL, kind="and", args=tuple(terms))


def same(left: q.Expr, right: q.Expr) -> q.Expr:
    """Return ``left IS NOT DISTINCT FROM right``."""
    proc = default_equality(left.type.oid).proc
    return q.DistinctExpr(type=BOOL, proc=proc, left=left, right=right, negated=True)


def crossed(left: q.FromItem, right: q.FromItem) -> q.FromItem:
    """Return a cross join."""
    return q.Join(kind=q.JoinKind.INNER, left=left, right=right, on=None)


def chained(items: Sequence[q.FromItem]) -> q.FromItem:
    """Return a FROM list as one item."""
    made, *others = items
    for item in others:
        made = crossed(made, item)
    return made
