"""Where in the text an error about a whole expression points."""

from __future__ import annotations

from planner.base.errors import Span
from planner.query import (
    ArrayCoerce,
    BooleanTest,
    BoolExpr,
    CoerceToDomain,
    CoerceTypmod,
    CoerceViaIO,
    CollateExpr,
    ComposeRow,
    DecomposeRow,
    DistinctExpr,
    Expr,
    FieldSelect,
    FuncExpr,
    NullIf,
    NullTest,
    OpExpr,
    RelabelType,
    RowCompare,
    ScalarArrayOp,
    SubLink,
    Subscript,
)

_LEFTMOST = (
    FuncExpr, OpExpr, DistinctExpr, NullIf, ScalarArrayOp, BoolExpr, RelabelType, CoerceViaIO, CoerceTypmod,
    CoerceToDomain, ArrayCoerce, NullTest, BooleanTest, SubLink, RowCompare, ComposeRow, DecomposeRow,
)  # fmt: skip


def location(expr: Expr) -> Span | None:
    """Return where an error about the whole of ``expr`` points: its leftmost part, as PostgreSQL does.

    (A node's own span is its operator or first token.) Constructs with brackets of their own begin there.
    """
    if isinstance(expr, FieldSelect | Subscript | CollateExpr):
        return location(expr.arg)
    if not isinstance(expr, _LEFTMOST):
        return expr.span
    found = expr.span
    for child in _operands(expr):
        span = location(child)
        if span is not None and (found is None or span.start < found.start):
            found = span
    return found


def _operands(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, FuncExpr | OpExpr | BoolExpr):
        return expr.args
    if isinstance(expr, DistinctExpr | NullIf):
        return (expr.left, expr.right)
    if isinstance(expr, ScalarArrayOp):
        return (expr.scalar, expr.array)
    if isinstance(expr, SubLink | RowCompare):
        return expr.lefts
    if isinstance(
        expr,
        RelabelType
        | CoerceViaIO
        | CoerceTypmod
        | CoerceToDomain
        | ArrayCoerce
        | NullTest
        | BooleanTest
        | ComposeRow
        | DecomposeRow,
    ):
        return (expr.arg,)
    return ()
