"""What FILTER leaves out is not computed: ``sum(1 / n) FILTER (WHERE n > 0)`` meets no division by zero.

    sum(1 / n) FILTER (WHERE n > 0)   over work rows   (CASE WHEN n > 0 THEN 1 / n END, n > 0)

Executors compute the arguments of all rows before they look at the condition, so they compute them under it.
Rows that fail it are dropped all the same; which value they have there does not matter.
"""

from __future__ import annotations

from planner.query import CaseExpr, CaseWhen, Const, Expr, Param, Var


def under_filter(expr: Expr, condition: Expr | None) -> Expr:
    """Return ``expr`` so that it is evaluated only where ``condition`` holds, if evaluating it could fail;
    NULL elsewhere.
    """
    if condition is None or isinstance(expr, Var | Const | Param):
        return expr
    return CaseExpr(
        type=expr.type,
        whens=(CaseWhen(condition=condition, result=expr),),
        default=Const(type=expr.type, value=None),
    )
