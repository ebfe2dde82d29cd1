"""WINDOW clauses and OVER (...): definitions with inheritance resolved, shared where equal.

A definition may build on a named one: it takes that one's PARTITION BY, may add ORDER BY if the base has
none, and the base must have no frame. Offsets of a RANGE frame need the type's in_range support function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner import ast
from planner.base.errors import SqlError
from planner.bind.expression.expr import bind_clause
from planner.bind.query.sortgroup import sort_operators
from planner.bind.scope import Scope
from planner.conversion.casts import coerce_to_specific, coerce_type
from planner.conversion.order import default_equality, find_less, in_range_proc, unordered_field
from planner.conversion.pathways import CastContext
from planner.conversion.polymorphic import can_coerce
from planner.facts import DATE, INT8, INTERVAL, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, UNKNOWN
from planner.query import Expr, FrameBound, SortBy, Window
from planner.query.exprs import reads_own_columns
from planner.query.location import location
from planner.types import SqlType
from planner.types.facts import format_type


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWindow:
    """A definition whose PARTITION BY and ORDER BY wait until the select list is bound.

    ``definition`` None: an alias of another entry (OVER name).
    """

    definition: ast.WindowDef
    name: str = ""


def use_window(scope: Scope, over: ast.WindowDef) -> int:
    """Return the index in ``Scope.windows`` for an OVER clause. Raises 42704 for an unknown name.

    Equal definitions share one entry, with one of the WINDOW clause, too; definitions are bound by
    ``bind_windows`` after the select list, as PostgreSQL does.
    """
    if over.name:
        index = scope.window_names.get(over.name)
        if index is None:
            raise SqlError("42704", f'window "{over.name}" does not exist', span=over.span)
        return index
    for index, pending in enumerate(scope.windows):
        if replace(pending.definition, name="") == over:
            return index
    scope.windows.append(PendingWindow(definition=over))
    return len(scope.windows) - 1


def declare_windows(scope: Scope, definitions: Sequence[ast.WindowDef]) -> None:
    """Enter the WINDOW clause's names. Raises 42P20 for a name used twice."""
    for definition in definitions:
        if definition.name in scope.window_names:
            raise SqlError("42P20", f'window "{definition.name}" is already defined', span=definition.span)
        scope.window_names[definition.name] = len(scope.windows)
        scope.windows.append(PendingWindow(definition=definition, name=definition.name))


def bind_windows(scope: Scope) -> tuple[Window, ...]:
    """Bind all entered definitions, in order; later ones may build on earlier ones."""
    bound: list[Window] = []
    for pending in scope.windows:
        made = _window(scope, pending.definition, bound)
        bound.append(replace(made, name=pending.name, base=pending.definition.base))
    return tuple(bound)


def _window(scope: Scope, node: ast.WindowDef, earlier: Sequence[Window]) -> Window:
    base: Window | None = None
    if node.base:
        index = scope.window_names.get(node.base)
        if index is None or index >= len(earlier):
            raise SqlError("42704", f'window "{node.base}" does not exist', span=node.span)
        base = earlier[index]
    order = _sort_list(scope, node.order, "WINDOW ORDER")  # whose errors PostgreSQL tells first
    partition = _sort_list(scope, [ast.SortItem(expr=e) for e in node.partition], "WINDOW PARTITION")
    if base is not None:
        if partition:
            raise SqlError(
                "42P20",
                f'cannot override PARTITION BY clause of window "{node.base}"',
                span=node.span,
            )
        if order and base.order:
            raise SqlError(
                "42P20", f'cannot override ORDER BY clause of window "{node.base}"', span=node.span
            )
        if _has_frame(scope, node.base):
            if node.order or node.frame is not None:
                raise SqlError(
                    "42P20",
                    f'cannot copy window "{node.base}" because it has a frame clause',
                    span=node.span,
                )
            raise SqlError(
                "42P20",
                f'cannot copy window "{node.base}" because it has a frame clause',
                hint="Omit the parentheses in this OVER clause.",
                span=node.span,
            )
        partition = base.partition
        order = order or base.order
    if node.frame is None:
        return Window(partition=partition, order=order)
    return _framed(scope, node.frame, partition, order)


def _has_frame(scope: Scope, name: str) -> bool:
    pending: PendingWindow = scope.windows[scope.window_names[name]]
    return pending.definition.frame is not None


def _sort_list(scope: Scope, items: Sequence[ast.SortItem], clause: str) -> tuple[SortBy, ...]:
    keys: list[SortBy] = []
    for item in items:
        expr = bind_clause(scope, item.expr, clause)
        if expr.type.oid == UNKNOWN:
            expr = coerce_type(expr, SqlType(TEXT), CastContext.IMPLICIT, scope.context.env)
        rows = scope.context.env.row_type
        unordered = find_less(expr.type.oid) is None or unordered_field(expr.type.oid, rows, 1)
        if clause == "WINDOW PARTITION" and unordered:
            eq = default_equality(expr.type.oid, expr.span, rows).proc
            keys.append(SortBy(expr=expr, eq=eq))
            continue
        descending, lt, eq = sort_operators(expr.type.oid, item, expr.span, scope.context.env.row_type)
        nulls_first = item.nulls == "first" if item.nulls else descending
        key = SortBy(expr=expr, descending=descending, nulls_first=nulls_first, lt=lt, eq=eq)
        if not any(other.expr == expr for other in keys):
            keys.append(key)
    return tuple(keys)


def _framed(
    scope: Scope, frame: ast.Frame, partition: tuple[SortBy, ...], order: tuple[SortBy, ...]
) -> Window:
    ranks = ("unbounded_preceding", "preceding", "current", "following", "unbounded_following")
    start, end, span = frame.start, frame.end, frame.span
    if start == "unbounded_following":
        raise SqlError("42P20", "frame start cannot be UNBOUNDED FOLLOWING", span=span)
    if end == "unbounded_preceding":
        raise SqlError("42P20", "frame end cannot be UNBOUNDED PRECEDING", span=span)
    if ranks.index(start) > ranks.index(end):
        if start == "current":
            message = "frame starting from current row cannot have preceding rows"
        else:
            message = (
                "frame starting from following row cannot have preceding rows"
                if (end == "preceding")
                else "frame starting from following row cannot end with current row"
            )
        raise SqlError("42P20", message, span=span)
    offsets = (frame.start_offset, frame.end_offset)
    in_range = 0
    if frame.mode == "groups" and not order:
        raise SqlError("42P20", "GROUPS mode requires an ORDER BY clause", span=span)
    bound: list[Expr | None] = []
    for offset in offsets:
        if offset is None:
            bound.append(None)
            continue
        if frame.mode == "range" and len(order) != 1:
            raise SqlError(
                "42P20",
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                span=span,
            )
        expr, proc = _offset(scope, offset, frame.mode, order)
        in_range = in_range or proc
        bound.append(expr)
    return Window(
        partition=partition,
        order=order,
        mode=frame.mode,
        start=FrameBound(kind=start, offset=bound[0]),
        end=FrameBound(kind=end, offset=bound[1]),
        exclude=frame.exclude,
        in_range=in_range,
        written="between" if frame.between else "start",
    )


def _offset(scope: Scope, node: ast.Expression, mode: str, order: Sequence[SortBy]) -> tuple[Expr, int]:
    """Bind a frame offset; returns it and the in_range proc (RANGE mode)."""
    word = mode.upper()
    clause = f"WINDOW FRAME {word}"
    expr = bind_clause(scope, node, clause)
    proc = 0
    if mode == "range":
        expr, proc = _range_offset(scope, expr, order[0].expr.type.oid)
    else:
        expr = coerce_to_specific(expr, INT8, word, scope.context.env)
    _no_variables(expr, word)
    return expr, proc


def _no_variables(expr: Expr, word: str) -> None:
    if reads_own_columns(expr):
        raise SqlError("42P10", f"argument of {word} must not contain variables", span=location(expr))


_OFFSET_TYPES = {
    DATE: (INTERVAL,),
    TIME: (INTERVAL,),
    TIMETZ: (INTERVAL,),
    TIMESTAMP: (INTERVAL,),
    TIMESTAMPTZ: (INTERVAL,),
    INTERVAL: (INTERVAL,),
}


def _range_offset(scope: Scope, expr: Expr, ordered: int) -> tuple[Expr, int]:
    """Choose the in_range function for an offset as PostgreSQL does: exact, else one that coercion reaches."""
    env = scope.context.env
    wanted = ordered if expr.type.oid == UNKNOWN and ordered not in _OFFSET_TYPES else expr.type.oid
    proc = in_range_proc(ordered, wanted)
    if proc:
        return coerce_type(expr, SqlType(wanted), CastContext.IMPLICIT, env), proc
    candidates = _OFFSET_TYPES.get(ordered) or tuple(
        oid for oid in (ordered, 21, 23, 20, 701, 1700) if in_range_proc(ordered, oid)
    )
    fitting = [oid for oid in candidates if can_coerce(expr.type.oid, oid, CastContext.IMPLICIT)]
    if not candidates:
        raise SqlError(
            "0A000",
            f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {format_type(ordered)}",
            span=location(expr),
        )
    if not fitting:
        raise SqlError(
            "0A000",
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type "
            f"{format_type(ordered)} and offset type {format_type(expr.type.oid)}",
            hint="Cast the offset value to an appropriate type.",
            span=location(expr),
        )
    oid = fitting[0]
    return coerce_type(expr, SqlType(oid), CastContext.IMPLICIT, env), in_range_proc(ordered, oid)
