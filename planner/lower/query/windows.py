"""Window function calls: partitions, orders and frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner import query as q
from planner.base.errors import not_supported
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.value import Val, kind_of
from planner.lower.query import expr as expressions
from planner.lower.query.aggregation import AggregateCall, lower_call, under_filter
from planner.types.facts import format_type

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext

_SIDES = {"preceding": "PRECEDING", "following": "FOLLOWING"}


def lower_window(lw: LoweringContext, expr: q.WindowFunc, window: q.Window) -> Val:
    """Return the call of a window function or windowed aggregate.

    Raises:
        SqlError: 0A000 for frames the engine does not have.
    """
    partition = [expressions.sort_key(lw.d, lw.expr(s.expr)) for s in window.partition]
    order = [
        b.ordered(expressions.sort_key(lw.d, lw.expr(s.expr)), s.descending, s.nulls_first)
        for s in window.order
    ]
    if any(b.may_fail(node) for node in (*partition, *order)) and lw.d.name == "duckdb":
        raise not_supported("a window ordered by an expression that may fail in this executor")
    spec = _frame(lw, window)
    condition = None if expr.filter is None else lw.condition(expr.filter)
    call = AggregateCall(
        lw.d,
        star=expr.star,
        condition=condition,
        over=lambda made: b.window(made, partition, order, spec),
        unframed=lambda made: b.window(made, partition, order, None),
    )
    args = [under_filter(lw, lw.expr(a), condition) for a in expr.args]
    return lower_call(lw, call, expr.proc, args, expr.type)


def _frame(lw: LoweringContext, window: q.Window) -> Node | None:
    default = (
        window.mode == "range"
        and window.start.kind == "unbounded_preceding"
        and window.end.kind == "current"
        and window.exclude == "none"
    )
    if default:
        return None
    if lw.d.name == "spark" and (window.mode == "groups" or window.exclude != "none"):
        raise not_supported("GROUPS or EXCLUDE in a window frame in this executor")
    exclude = {"none": None, "current": "CURRENT ROW", "group": "GROUP", "ties": "TIES"}[window.exclude]
    return b.frame(window.mode, _bound(lw, window, window.start), _bound(lw, window, window.end), exclude)


def _invalid(offset: object) -> bool:
    """Tell whether a frame offset is one that 22004 or 22013 has to answer."""
    return offset is None or (isinstance(offset, tuple) and any(part < 0 for part in offset))


def _bound(lw: LoweringContext, window: q.Window, bound: q.FrameBound) -> tuple[Node | str, str]:
    match bound.kind:
        case "unbounded_preceding":
            return "UNBOUNDED", "PRECEDING"
        case "unbounded_following":
            return "UNBOUNDED", "FOLLOWING"
        case "current":
            return "CURRENT ROW", ""
    if bound.offset is None:
        raise AssertionError("PRECEDING or FOLLOWING has no offset")
    offset = lw.expr(bound.offset)
    invalid = isinstance(bound.offset, q.Const) and _invalid(bound.offset.value)
    if lw.d.name == "spark" and isinstance(offset.constant, int | float):
        invalid = offset.constant < 0  # Spark takes it for a bound on the other side
    if invalid:
        raise not_supported("a NULL or negative frame offset in this executor")
    if window.mode == "range":
        ordered = lw.expr(window.order[0].expr)
        if kind_of(ordered.type.oid) in (
            "interval",
            "timetz",
        ):  # stored as keys, to which the engine adds nothing
            raise not_supported(f"RANGE with an offset over {format_type(ordered.type.oid)} in this executor")
        if kind_of(offset.type.oid) == "interval":
            return lw.d.frame_interval(offset, ordered), _SIDES[bound.kind]
        if ordered.num is not None:
            raise not_supported("RANGE with an offset over numeric in this executor")
    if window.mode == "rows" and lw.d.name == "spark":
        return b.cast(offset.node, lw.d.types["int32"]), _SIDES[bound.kind]
    return offset.node, _SIDES[bound.kind]
