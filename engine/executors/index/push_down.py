"""Conditions over a sub-select's columns, tested inside of it, where they may find a key.

    FROM (SELECT t.oid AS id, ... FROM pg_type t JOIN ...) ti WHERE ti.id = 16384
    FROM (SELECT t.oid AS id, ... FROM pg_type t JOIN ... WHERE t.oid = 16384) ti

Only where the sub-select gives a row for each row of its FROM that passes WHERE: no groups, windows, limits,
DISTINCT ON, sets. Arms of UNION ALL are served each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.executors.expressions import has_sublink, is_volatile
from engine.executors.index.access.choice import stands_alone
from planner.facts import BOOL
from planner.indexing.comparisons import conjuncts_of
from planner.query import (
    Aggregate,
    BoolExpr,
    Expr,
    FuncExpr,
    GroupingFunc,
    QueryExpr,
    Select,
    SetOp,
    SubLink,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.walk import children, walk
from planner.types import SqlType


def _movable(node: object, range_: int) -> bool:
    """Tell whether a condition looks at the columns of one range, and at nothing else outside of itself."""
    if isinstance(node, Var):
        return node.level == 0 and node.range == range_ and node.attnum > 0
    if isinstance(node, Aggregate | GroupingFunc):
        return False
    if isinstance(node, SubLink):
        return stands_alone(node.query) and all(_movable(left, range_) for left in node.lefts)
    return all(_movable(child, range_) for child in children(node))


def _moved(node: object, values: Sequence[Expr]) -> Any:
    """Return a condition over the values that a sub-select's columns are."""
    if isinstance(node, Var):
        return values[node.attnum - 1]
    if isinstance(node, SubLink):
        return replace(node, lefts=tuple(_moved(left, values) for left in node.lefts))
    return replace_children(node, lambda child: _moved(child, values))


def _used(node: object) -> set[int]:
    if isinstance(node, Var):
        return {node.attnum}
    inside = node.lefts if isinstance(node, SubLink) else children(node)
    return {attnum for child in inside for attnum in _used(child)}


def _takes(query: QueryExpr, condition: Expr) -> bool:
    """Tell whether a sub-select may test a condition over its columns itself."""
    if query.limit is not None or query.offset is not None or query.ctes:
        return False
    if isinstance(query, SetOp):
        if query.op != "union" or not query.all:
            return False
        return _takes(query.left, condition) and _takes(query.right, condition)
    if not isinstance(query, Select) or query.grouped or query.windows:
        return False
    if any(not mark.above for mark in query.row_marks):
        return False
    if query.distinct not in (False, True) or not query.from_:
        return False
    if any(isinstance(x, FuncExpr) and x.returns_set for t in query.targets for x in walk(t.expr)):
        return False
    values = [target.expr for target in query.targets if not target.junk]
    return all(
        attnum <= len(values) and not has_sublink(values[attnum - 1]) and not is_volatile(values[attnum - 1])
        for attnum in _used(condition)
    )


def _with(query: QueryExpr, condition: Expr) -> QueryExpr:
    if isinstance(query, SetOp):
        return replace(query, left=_with(query.left, condition), right=_with(query.right, condition))
    if not isinstance(query, Select):
        raise AssertionError(f"an arm of a set operation is {type(query).__name__}")
    values = [target.expr for target in query.targets if not target.junk]
    conjuncts = conjuncts_of(query.where)
    moved = _moved(condition, values)
    if any(repr(moved) == repr(known) for known in conjuncts):  # 1.0 is not 1.00
        return query
    conjuncts = [*conjuncts, moved]
    if len(conjuncts) == 1:
        return replace(query, where=conjuncts[0])
    return replace(query, where=BoolExpr(type=SqlType(BOOL), kind="and", args=tuple(conjuncts)))


def pushed_down(query: QueryExpr, range_: int, conjuncts: Sequence[Expr]) -> tuple[QueryExpr, list[Expr]]:
    """Return the sub-select of ``range_`` with the conditions that it tests itself, and the conditions left."""
    left: list[Expr] = []
    for condition in conjuncts:
        if (
            not is_volatile(condition)
            and _movable(condition, range_)
            and _used(condition)
            and _takes(query, condition)
        ):
            query = _with(query, condition)
        else:
            left.append(condition)
    return query, left
