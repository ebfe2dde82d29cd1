"""Outer joins that a condition above makes inner ones: rows that the join would fill with NULLs would not pass.

    a LEFT JOIN b ON ... WHERE b.x = 1        ──>        a JOIN b ON ... WHERE b.x = 1

A condition *refuses NULLs* of a range if it cannot be TRUE when all columns of that range are NULL. Inner
joins are joined in any order and reached by key, outer ones are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pgwire.give_way import give_way
from planner.facts import facts
from planner.indexing.comparisons import conjuncts_of
from planner.query import (
    BoolExpr,
    Expr,
    FromItem,
    FuncExpr,
    Join,
    JoinKind,
    NullTest,
    OpExpr,
    RangeRef,
    RelabelType,
    ScalarArrayOp,
    Var,
)

_NONE: frozenset[int] = frozenset()


def _null_with(expr: Expr) -> frozenset[int]:
    """Return the ranges with whose columns ``expr`` is NULL."""
    while isinstance(expr, RelabelType):
        expr = expr.arg
    if isinstance(expr, Var):
        return frozenset((expr.range,)) if expr.level == 0 and expr.range >= 0 and expr.attnum > 0 else _NONE
    if isinstance(expr, OpExpr | FuncExpr):
        fact = facts().procs.get(expr.proc)
        if fact is None or not fact.strict or fact.returns_set:
            return _NONE
        return frozenset().union(*map(_null_with, expr.args))
    return _NONE


def _not_true_with(expr: Expr) -> frozenset[int]:
    """Return the ranges with whose columns NULL ``expr`` is not TRUE."""
    if isinstance(expr, BoolExpr):
        if expr.kind == "not":
            return _null_with(expr.args[0])
        parts = [_not_true_with(arg) for arg in expr.args]
        return frozenset().union(*parts) if expr.kind == "and" else parts[0].intersection(*parts[1:])
    if isinstance(expr, NullTest):
        return _null_with(expr.arg) if expr.negated else _NONE
    if isinstance(expr, ScalarArrayOp):
        fact = facts().procs.get(expr.proc)
        # ALL over an empty array is TRUE whatever is compared
        return _null_with(expr.scalar) if expr.use_any and fact is not None and fact.strict else _NONE
    return _null_with(expr)


def _refused(conditions: Iterable[Expr]) -> frozenset[int]:
    return frozenset().union(*map(_not_true_with, conditions))


def _ranges(item: FromItem) -> set[int]:
    return {item.range} if isinstance(item, RangeRef) else _ranges(item.left) | _ranges(item.right)


def _reduced(item: FromItem, refused: AbstractSet[int]) -> FromItem:
    if isinstance(item, RangeRef):
        return item
    give_way()
    kind = item.kind
    if kind in (JoinKind.LEFT, JoinKind.FULL) and refused & _ranges(item.right):
        kind = JoinKind.INNER if kind is JoinKind.LEFT else JoinKind.RIGHT
    if kind in (JoinKind.RIGHT, JoinKind.FULL) and refused & _ranges(item.left):
        kind = JoinKind.INNER if kind is JoinKind.RIGHT else JoinKind.LEFT
    own = _refused(conjuncts_of(item.on))
    left: AbstractSet[int] = _NONE
    right: AbstractSet[int] = _NONE
    if kind is JoinKind.INNER:
        left = right = refused | own
    elif kind is JoinKind.LEFT:  # a row of the left side comes out whatever ON says
        left, right = refused, own
    elif kind is JoinKind.RIGHT:
        left, right = own, refused
    return replace(item, kind=kind, left=_reduced(item.left, left), right=_reduced(item.right, right))


def reduced(items: Sequence[FromItem], where: Sequence[Expr]) -> tuple[FromItem, ...]:
    """Return FROM with outer joins made inner ones where ``where`` allows it."""
    if not any(isinstance(item, Join) for item in items):
        return tuple(items)
    refused = _refused(where)
    return tuple(_reduced(item, refused) for item in items)
