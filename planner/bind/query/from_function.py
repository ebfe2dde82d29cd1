"""FROM: functions. Calls become one range: their columns side by side, then the ordinality.

    unnest(a, b) WITH ORDINALITY      FunctionRange(functions=(unnest(a), unnest(b)), widths=(1, 1))    columns a, b, ordinality

What a function's columns are is, in this order: its OUT parameters, the attributes of the composite type that
it returns, the column definition list for ``record``, or one column named as the function.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from pgwire.codecs.settings import STORED_TEXT
from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.expression.columns import function_columns
from planner.bind.expression.expr import bind_clause
from planner.bind.expression.funcs import bind_call
from planner.bind.expression.output_names import column_name
from planner.bind.scope import Item, Scope, under_alias, written_as
from planner.bind.stored.named_columns import given_type
from planner.conversion.casts import resolve_unknown
from planner.conversion.composite import is_composite
from planner.facts import INT8, RECORD, facts
from planner.query import Expr, FuncExpr, FunctionRange, RangeColumn, SqlCall, Var
from planner.query.walk import walk
from planner.types import SqlType
from planner.types.domains import base_oid, is_domain


def bind_function(scope: Scope, node: ast.FunctionRef) -> tuple[int, Item]:
    """Make a range of a function, or of ROWS FROM several; returns its number and what it makes visible.
    Raises 42601, 42P10.
    """
    before = scope.lateral_active, scope.clause
    scope.lateral_active, scope.clause = True, "FROM FUNCTION"
    try:
        calls = _calls(scope, node)
    finally:
        scope.lateral_active, scope.clause = before
    alias_name = node.alias.name if node.alias is not None else calls[0][1]
    single = len(calls) == 1
    columns: list[RangeColumn] = []
    widths: list[int] = []
    defined: list[tuple[tuple[str, SqlType], ...]] = []
    for expr, name, definitions in calls:
        listed = definitions or (node.definitions if single else ())
        scalar_name = alias_name if single and node.alias is not None else name
        found = _function_output(scope, expr, scalar_name, listed, node.span)
        defined.append(tuple(found) if listed else ())
        widths.append(len(found))
        for column, type_ in found:
            columns.append(RangeColumn(name=column, type=type_, attnum=len(columns) + 1))
    if node.ordinality:
        if node.definitions:
            raise SqlError(
                "42601",
                "WITH ORDINALITY cannot be used with a column definition list",
                hint="Put the column definition list inside ROWS FROM().",
                span=node.span,
            )
        columns.append(RangeColumn(name="ordinality", type=SqlType(INT8), attnum=len(columns) + 1))
    slots = tuple(_attribute_places(scope, expr) for expr, _, _ in calls)
    written = written_as(columns, node.alias)
    if written.named and scope.context.env.settings is STORED_TEXT:
        # stored texts name all columns that there were
        written = replace(written, unnamed=len(columns) - written.named)
    made = FunctionRange(
        alias=alias_name,
        slots=slots if any(places is not None for places in slots) else (),
        columns=under_alias(columns, node.alias, alias_name),
        written=written,
        functions=tuple([expr for expr, _, _ in calls]),
        widths=tuple(widths),
        defined=tuple(defined) if any(defined) else (),
        ordinality=node.ordinality,
        lateral=_reads_outside(calls) or node.lateral,
    )
    index = scope.add_range(made)
    item = scope.item(index, aliased=node.alias is not None)
    item.scalar = (
        single
        and not node.ordinality
        and calls[0][0].type.oid != RECORD
        and len(columns) == 1
        and slots[0] is None
    )
    if single and not node.ordinality:
        item.row = _row_type(scope, calls[0][0])
        given = given_type(calls[0][0], scope.context.catalog)
        item.domain = given if item.row and is_domain(given) else 0
    return index, item


def _row_type(scope: Scope, expr: Expr) -> int:
    """Return the composite type of what a function gives, 0 for any other."""
    oid = given_type(expr, scope.context.catalog)
    return base_oid(oid) if is_composite(oid) and scope.context.env.row_type(base_oid(oid)) else 0


def _attribute_places(scope: Scope, expr: Expr) -> tuple[int, ...] | None:
    """Return where values of a composite type have its attributes, None for any other type."""
    row = scope.context.env.row_type(base_oid(expr.type.oid)) if is_composite(expr.type.oid) else None
    return None if row is None else row.slots


_Call = tuple[Expr, str, tuple[ast.ColumnDefinition, ...]]


def _reads_outside(calls: Sequence[_Call]) -> bool:
    return any(
        isinstance(found, Var) and found.level == 0 and found.range >= 0
        for expr, _, _ in calls
        for found in walk(expr)
    )


def _calls(scope: Scope, node: ast.FunctionRef) -> list[_Call]:
    calls: list[_Call] = []
    for call, definitions in node.functions:
        name = column_name(call)
        parts: Sequence[ast.Expression] = (call,)
        if isinstance(call, ast.FuncCall):
            plain = not (call.star or call.distinct or call.order or call.variadic)
            if call.name == ("unnest",) and len(call.args) > 1 and plain and not definitions:
                # unnest(a, b) in FROM is one call per array, side by side
                parts = [
                    ast.FuncCall(name=("pg_catalog", "unnest"), args=(arg,), span=call.span)
                    for arg in call.args
                ]
        for part in parts:
            if isinstance(part, ast.FuncCall):
                expr = bind_call(scope, part, in_from=True)
            else:
                expr = bind_clause(scope, part, "FROM FUNCTION")
            calls.append((resolve_unknown(expr, scope.context.env), name, definitions))
    return calls


def _names_type(scope: Scope, expr: FuncExpr) -> bool:
    """Tell whether a function that returns a row names the type of it, instead of its columns."""
    function = scope.context.catalog.function_by_oid(expr.proc) if isinstance(expr, SqlCall) else None
    return (expr.type.oid if function is None else function.result) != RECORD


def _function_output(
    scope: Scope, expr: Expr, name: str, definitions: Sequence[ast.ColumnDefinition], span: Span | None
) -> list[tuple[str, SqlType]]:
    """Return (name, type) of the columns a function contributes."""
    if isinstance(expr, FuncExpr):
        declared = function_columns(expr)
        if declared is not None and (len(declared) > 1 or expr.type.oid == RECORD):
            if definitions:
                words = (
                    "returning a named composite type" if _names_type(scope, expr) else "with OUT parameters"
                )
                raise SqlError(
                    "42601",
                    f"a column definition list is redundant for a function {words}",
                    span=definitions[0].span,
                )
            return declared
    if is_composite(expr.type.oid):
        row = scope.context.env.row_type(base_oid(expr.type.oid))
        if row is not None:
            if definitions:
                raise SqlError(
                    "42601",
                    "a column definition list is redundant for a function returning a named composite type",
                    span=definitions[0].span,
                )
            return [(column.name, column.declared) for column in row.live]
    if expr.type.oid == RECORD:
        if not definitions and isinstance(expr, SqlCall) and _names_type(scope, expr):
            return []  # the type has no columns
        if not definitions:
            raise SqlError(
                "42601",
                'a column definition list is required for functions returning "record"',
                span=expr.span or span,
            )
        return [(item.name, scope.context.type_of(item.type)) for item in definitions]
    if definitions:
        raise SqlError(
            "42601",
            'a column definition list is only allowed for functions returning "record"',
            span=definitions[0].span,
        )
    if isinstance(expr, SqlCall):
        name = expr.outputs[0].name if len(expr.outputs) == 1 else name
    elif isinstance(expr, FuncExpr):
        name = _single_output_name(expr.proc) or name
    return [(name, expr.type)]


@functools.cache
def _single_output_name(oid: int) -> str:
    """Return the name of a function's only OUT parameter, "" where there is none."""
    proc = facts().procs[oid]
    outs = [
        name
        for mode, name in zip(proc.arg_modes or (), proc.arg_names or (), strict=False)
        if mode in ("o", "b")
    ]
    return outs[0] if len(outs) == 1 else ""
