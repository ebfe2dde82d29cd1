"""What of the outermost select list is computed in Python, from columns the engine delivers.

    SELECT dept, avg(pay), to_char(max(day), 'YYYY') FROM emp GROUP BY dept

    engine   dept, sum(pay), count(pay), max(day)
    Python   dept, sum / count with PostgreSQL's scale, to_char(...)

Functions without an engine form are served that way, and divisions of numerics: exact division in an engine is a
long expression, one in Python is a microsecond. Targets that ORDER BY or DISTINCT look at stay in the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner import facts as f
from planner import query as q
from planner.base.errors import SqlError
from planner.facts import facts
from planner.lower.kit.value import Val
from planner.query.rewrite import replace_children
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext

COMPUTED = (
    q.FuncExpr, q.OpExpr, q.RelabelType, q.CoerceViaIO, q.CoerceTypmod, q.CoerceToDomain, q.BoolExpr, q.NullTest, q.BooleanTest,
    q.DistinctExpr, q.NullIf, q.ScalarArrayOp, q.CaseExpr, q.CoalesceExpr, q.MinMaxExpr, q.ArrayExpr, q.RowExpr,
    q.RowCompare, q.ArrayCoerce, q.Subscript, q.FieldSelect, q.CaseWhen,
)  # fmt: skip


def _proc(signature: str) -> int:
    return facts().proc_by_signature[signature]


def split(
    lw: LoweringContext, expr: q.Expr, leaf: Callable[[q.Expr, Val], q.Expr], *, divides: bool = True
) -> q.Expr:
    """Return ``expr`` for Python to compute; ``leaf`` is told which sub-expressions the engine delivers,
    and answers with what stands for them.

    An expression that the engine computes wholly is one leaf. ``divides``: divisions of numerics are Python's
    all the same.

    Raises:
        SqlError: 0A000 where neither can compute a part.
    """
    if isinstance(expr, q.Const | q.Param):
        return expr
    if not (divides and _prefers_python(expr)) or lw.substituted(expr) is not None:
        try:
            return leaf(expr, lw.expr(expr))
        except SqlError as error:
            if error.sqlstate != "0A000" or not isinstance(expr, COMPUTED) or _returns_set(expr):
                raise
    if isinstance(expr, q.ArrayCoerce):  # what becomes of each element is Python's, over a placeholder for it
        return replace(expr, arg=split(lw, expr.arg, leaf, divides=divides))
    return replace_children(expr, lambda child: _split_child(lw, child, leaf, divides))


def _split_child(
    lw: LoweringContext, child: Any, leaf: Callable[[q.Expr, Val], q.Expr], divides: bool
) -> Any:
    if isinstance(child, q.CaseWhen):
        return replace_children(child, lambda inner: _split_child(lw, inner, leaf, divides))
    return split(lw, child, leaf, divides=divides)


def _returns_set(expr: q.Expr) -> bool:
    return isinstance(expr, q.FuncExpr) and expr.returns_set


def _prefers_python(expr: Any) -> bool:
    """Return whether a numeric division is among what Python may compute here."""
    if not isinstance(expr, COMPUTED):
        return False
    if isinstance(expr, q.OpExpr | q.FuncExpr) and expr.proc == _proc("numeric_div(numeric,numeric)"):
        return True
    found = False

    def look(child: Any) -> Any:
        nonlocal found
        found = found or _prefers_python(child)
        return child

    replace_children(expr, look)
    return found


def open_averages(select: q.Select) -> q.Select:
    """Write avg of integers and numerics in the select list as sum / count, so that Python can divide."""
    kept = {key.target for key in select.order}
    if select.distinct is not False:
        return select
    targets = tuple(
        target if position in kept or target.junk else replace(target, expr=_open_average(target.expr))
        for position, target in enumerate(select.targets)
    )
    return replace(select, targets=targets)


def _open_average(expr: Any) -> Any:
    if isinstance(expr, q.Aggregate | q.WindowFunc) and facts().procs[expr.proc].name == "avg":
        return _as_division(expr)
    if isinstance(expr, COMPUTED):
        return replace_children(expr, _open_average)
    return expr


def _as_division(expr: q.Aggregate | q.WindowFunc) -> q.Expr:
    argument = expr.args[0].type.oid
    names = {f.INT2: "int2", f.INT4: "int4", f.INT8: "int8", f.NUMERIC: "numeric"}
    if argument not in names or (isinstance(expr, q.Aggregate) and expr.level):
        return expr
    numeric, bigint = SqlType(f.NUMERIC), SqlType(f.INT8)
    sums_to = bigint if argument in (f.INT2, f.INT4) else numeric
    total: q.Expr = replace(expr, proc=_proc(f"sum({names[argument]})"), type=sums_to)
    count = replace(expr, proc=_proc("count(any)"), type=bigint)
    convert = _proc("numeric(int8)")
    if sums_to is bigint:
        total = q.FuncExpr(type=numeric, proc=convert, args=(total,))
    divisor = q.FuncExpr(type=numeric, proc=convert, args=(count,))
    return q.FuncExpr(
        type=numeric, span=expr.span, proc=_proc("numeric_div(numeric,numeric)"), args=(total, divisor)
    )
