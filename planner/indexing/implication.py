"""Whether one condition follows from others: which partial indexes have all rows that a query asks for.

A conjunct follows if it is among those given, or if it is a comparison with a constant, a list of constants
or IS NOT NULL and a narrower comparison of the same expression is given. What is not recognized does not
follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.facts import BOOL
from planner.indexing.comparisons import FLIP, Operator, key_operators
from planner.query import (
    ArrayExpr,
    BooleanTest,
    BoolExpr,
    Const,
    Expr,
    FuncExpr,
    NullTest,
    OpExpr,
    ScalarArrayOp,
)


def implied(wanted: Expr, conjuncts: Sequence[Expr]) -> bool:
    """Tell whether ``wanted`` is true wherever all of ``conjuncts`` are."""
    return any(_implies(given, wanted) for conjunct in conjuncts for given in (conjunct, _plain(conjunct)))


def _implies(given: Expr, wanted: Expr) -> bool:
    if given == wanted or given == _plain(wanted):
        return True
    if isinstance(wanted, BoolExpr) and wanted.kind == "or":
        return any(_implies(given, arm) for arm in wanted.args)
    if isinstance(wanted, NullTest) and wanted.negated:
        return any(side == wanted.arg for side in _compared_sides(given))
    read = _comparison(given)
    if read is None:
        return False
    expr, operator, constant = read
    if not isinstance(constant, Const) or constant.value is None:
        return False
    values = _members(wanted, expr)
    if values is not None:
        return operator == "=" and constant.value in values
    other = _comparison(wanted)
    if other is None or other[0] != expr:
        return False
    bound = other[2]
    if not isinstance(bound, Const) or bound.type.oid != constant.type.oid or bound.value is None:
        return False
    return _narrower(operator, constant.value, other[1], bound.value)


def _plain(expr: Expr) -> Expr:
    """Return a boolean condition without what says nothing: ``b = true`` and ``b IS TRUE`` are ``b``."""
    if isinstance(expr, BooleanTest) and expr.test != "unknown" and not expr.negated:
        return expr.arg if expr.test == "true" else BoolExpr(type=expr.type, kind="not", args=(expr.arg,))
    if isinstance(expr, OpExpr) and len(expr.args) == 2 and key_operators().get(expr.proc) == "=":
        left, right = expr.args
        if isinstance(right, Const) and right.type.oid == BOOL and isinstance(right.value, bool):
            return left if right.value else BoolExpr(type=expr.type, kind="not", args=(left,))
    return expr


def _compared_sides(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands of a comparison, none of which can be NULL where it is true."""
    if isinstance(expr, OpExpr | FuncExpr) and expr.proc in key_operators():
        return expr.args
    if isinstance(expr, ScalarArrayOp) and expr.use_any and expr.proc in key_operators():
        return (expr.scalar,)
    return ()


def _comparison(expr: Expr) -> tuple[Expr, Operator, Expr] | None:
    """Return ``expr op value`` with the constant on the right, None for anything else."""
    if not isinstance(expr, OpExpr) or len(expr.args) != 2:
        return None
    operator = key_operators().get(expr.proc)
    if operator is None:
        return None
    left, right = expr.args
    return (right, FLIP[operator], left) if isinstance(left, Const) else (left, operator, right)


def _members(expr: Expr, scalar: Expr) -> list[object] | None:
    """Return the constants of ``scalar IN (...)``."""
    if not isinstance(expr, ScalarArrayOp) or not expr.use_any or expr.scalar != scalar:
        return None
    if key_operators().get(expr.proc) != "=":
        return None
    if isinstance(expr.array, Const) and isinstance(expr.array.value, list | tuple):
        return list(expr.array.value)
    if isinstance(expr.array, ArrayExpr) and all(isinstance(e, Const) for e in expr.array.elements):
        return [e.value for e in expr.array.elements if isinstance(e, Const)]
    return None


def _narrower(operator: Operator, value: Any, wanted: Operator, bound: Any) -> bool:
    """Tell whether ``x operator value`` implies ``x wanted bound``; values of one type, ordered as Python
    orders them.
    """
    try:
        if operator == "=":
            return bool(
                {
                    "=": value == bound,
                    "<": value < bound,
                    "<=": value <= bound,
                    ">": value > bound,
                    ">=": value >= bound,
                }[wanted]
            )
        if operator in ("<", "<=") and wanted in ("<", "<="):
            return bool(value < bound or (value == bound and (wanted == "<=" or operator == "<")))
        if operator in (">", ">=") and wanted in (">", ">="):
            return bool(value > bound or (value == bound and (wanted == ">=" or operator == ">")))
    except TypeError:
        return False
    return False
