"""Column references, stars, fields of row values and what subscripts follow.

    a        t.a        s.t.a        column, through all query levels outwards
    t        (t).a      (f(x)).*     whole rows and their fields
    x[1]     x[2:3]                  subscripts and slices, see ``planner.bind.expression.subscripts``

Where a table has no such column, ``t.f`` may still be the function ``f(t)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgwire.give_way import paced
from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.expression.expr import bind_expr, register
from planner.bind.expression.subscripts import subscript
from planner.bind.recursion import CALL_ON
from planner.bind.scope import Item, Scope, missing_column, missing_table
from planner.conversion.composite import is_composite, opened
from planner.facts import RECORD, UNKNOWN, facts
from planner.query import (
    ComposeRow,
    CteRange,
    DecomposeRow,
    Expr,
    FieldSelect,
    FuncExpr,
    QueryExpr,
    RowExpr,
    SetOp,
    SqlCall,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Values,
    Var,
)
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import element_of, format_type

# Fields a ROW may have, as PostgreSQL.
MAX_ROW_FIELDS = 1664


def _column_ref(scope: Scope, node: ast.ColumnRef) -> Expr:
    variables = scope.context.variables
    return _column(scope, node) if variables is None else variables.resolve(scope, node, _column)


def _column(scope: Scope, node: ast.ColumnRef) -> Expr:
    names = node.names
    if scope.clause == "DEFAULT":
        raise SqlError("0A000", "cannot use column reference in DEFAULT expression", span=node.span)
    if node.star:
        return _row_of(scope, names, node.span)
    if len(names) == 1:
        found = scope.find_column(names[0], node.span)
        if found is not None:
            return found
        whole = scope.find_item("", names[0], node.span)
        if whole is not None:
            return scope.whole_row(*whole, node.span)
        argument = _argument(scope, node)
        if argument is not None:
            return argument
        raise missing_column(scope, "", names[0], node.span)
    schema, table, column = _split(scope, names, node.span)
    entry = scope.find_item(schema, table, node.span)
    if entry is None:
        argument = _argument(scope, node) or _field_of_argument(scope, node)
        if argument is not None:
            return argument
        raise missing_table(scope, schema, table, node.span)
    found = scope.item_column(*entry, column, node.span)
    if found is not None:
        return found
    as_function = _function_of_row(scope, entry, column, node.span)
    if as_function is not None:
        return as_function
    raise missing_column(scope, table, column, node.span)


def _argument(scope: Scope, node: ast.ColumnRef) -> Expr | None:
    """Return the argument that a name means in a function's body, None where it is none."""
    return _whole_argument(scope, node.names, node.span)


def _whole_argument(scope: Scope, names: ast.Name, span: Span | None) -> Expr | None:
    """Return the argument of an SQL function that ``names`` mean, also in front of ``.*``; None where they are none."""
    arguments = scope.context.arguments
    number = 0 if arguments is None else arguments.number(names)
    return scope.context.env.params.reference(number, span) if number else None


def _field_of_argument(scope: Scope, node: ast.ColumnRef) -> Expr | None:
    """Return ``argument.field`` or ``function.argument.field`` in a function's body, None where it is none."""
    arguments = scope.context.arguments
    number = 0 if arguments is None else arguments.number(node.names[:-1])
    if not number:
        return None
    value = scope.context.env.params.reference(number, node.span)
    return select_field(scope, value, node.names[-1], node.span) if is_row(value) else None


def _row_of(scope: Scope, names: ast.Name, span: Span | None) -> Expr:
    """Return ``t.*`` where one value is wanted: the whole row."""
    if not names:
        raise SqlError("42601", 'row expansion via "*" is not supported here', span=span)
    schema = names[-2] if len(names) > 1 else ""
    entry = scope.find_item(schema, names[-1], span)
    if entry is None:
        argument = _whole_argument(scope, names, span)
        if argument is not None:
            return argument
        fields = _variable_row(scope, names, span)
        if fields is not None:
            exprs, shown = tuple(e for _, e in fields), tuple(n for n, _ in fields)
            return RowExpr(type=SqlType(RECORD), fields=exprs, names=shown, span=span)
        raise missing_table(scope, schema, names[-1], span)
    return scope.whole_row(*entry, span)


def _variable_row(scope: Scope, names: ast.Name, span: Span | None) -> list[tuple[str, Expr]] | None:
    """Return the fields of a variable of the PL/pgSQL function that is bound, None where it is none."""
    variables = scope.context.variables
    return None if variables is None else variables.row(scope, names, span)


def _split(scope: Scope, names: ast.Name, span: Span | None) -> tuple[str, str, str]:
    """Split a qualified column name into (schema, table, column); checks a catalog part."""
    if len(names) == 2:
        return "", names[0], names[1]
    if len(names) == 3:
        return names
    if len(names) == 4:
        database = scope.context.database
        if database and names[0] != database:
            raise SqlError(
                "0A000",
                f"cross-database references are not implemented: {'.'.join(names)}",
                span=span,
            )
        return names[1], names[2], names[3]
    raise SqlError("42601", f"improper qualified name (too many dotted names): {'.'.join(names)}", span=span)


def _function_of_row(
    scope: Scope, entry: tuple[int, Scope, Item], name: str, span: Span | None
) -> Expr | None:
    """Return ``name(row)`` if that is a function of a row value, else None."""
    if name not in facts().procs_by_name and not scope.context.catalog.functions_named(name):
        return None
    return CALL_ON.call(scope, name, scope.whole_row(*entry, span), span)


# --- stars --------------------------------------------------------------------------------------


def star_columns(scope: Scope, names: ast.Name, span: Span | None) -> list[tuple[str, Expr]]:
    """Return (name, expression) of what ``*`` or ``names.*`` stands for.

    Raises SqlError 42601 for a bare star without FROM, 42P01 for an unknown table.
    """
    if not names:
        items = [item for item in scope.namespace if item.by_column]
        if not scope.namespace:
            raise SqlError("42601", "SELECT * with no tables specified is not valid", span=span)
        return [
            (name, item.expr(scope, position, 0, span))
            for item in items
            if not item.lateral_only
            for position, name in enumerate(item.names)
        ]
    schema, table = "", names[-1]
    if len(names) > 1:
        _, schema, table = (
            _split(scope, (*names[:-1], names[-1]), span) if (len(names) == 3) else ("", names[0], names[1])
        )
    entry = scope.find_item(schema, table, span)
    if entry is None:
        argument = _whole_argument(scope, names, span)
        if argument is not None:
            return row_fields(scope, argument, span if is_row(argument) else None)
        fields = _variable_row(scope, names, span)
        if fields is not None:
            return fields
        raise missing_table(scope, schema, table, span)
    level, owner, item = entry
    return [(name, item.expr(owner, position, level, span)) for position, name in enumerate(item.names)]


def expand_stars(scope: Scope, nodes: Sequence[ast.Expression]) -> tuple[Expr, ...]:
    """Bind a list in which ``t.*`` may stand for several values (ROW(...), VALUES, IN)."""
    found: list[Expr] = []
    for node in nodes:
        expanded = star_of(scope, node)
        if expanded is None:
            found.append(bind_expr(scope, node))
        else:
            found.extend([expr for _, expr in expanded])
    return tuple(found)


def star_of(scope: Scope, node: ast.Expression) -> list[tuple[str, Expr]] | None:
    """Return what a star item stands for, None when the node is no star."""
    if isinstance(node, ast.ColumnRef) and node.star:
        return star_columns(scope, node.names, node.span)
    if isinstance(node, ast.Indirection) and isinstance(node.steps[-1], ast.Star):
        inner: ast.Expression = node.arg
        if len(node.steps) > 1:
            inner = ast.Indirection(arg=node.arg, steps=node.steps[:-1], span=node.span)
        return row_fields(scope, bind_expr(scope, inner), node.span)
    return None


# --- row values ---------------------------------------------------------------------------------


def is_row(expr: Expr) -> bool:
    """Tell whether an expression is a row value: an anonymous one, or one of a composite type."""
    return expr.type.oid == RECORD or is_composite(expr.type.oid)


def row_columns(scope: Scope, expr: Expr) -> list[tuple[str, SqlType]] | None:
    """Return (name, type) of a row value's fields, None where they are not known while binding."""
    if is_composite(expr.type.oid):
        row = scope.context.env.row_type(base_oid(expr.type.oid))
        return None if row is None else [(c.name, c.declared) for c in row.live]
    if isinstance(expr, DecomposeRow):
        return [(n, SqlType(oid)) for n, oid in zip(expr.names, expr.types, strict=True)]
    if isinstance(expr, RowExpr):
        return [(n, e.type) for n, e in zip(expr.names, expr.fields, strict=True)]
    if isinstance(expr, Var) and expr.range >= 0:
        owner = scope.at(expr.level)
        made = owner.ranges[expr.range]
        if expr.attnum == 0:
            return [(column.name, column.type) for column in made.columns]
        if isinstance(made, SubqueryRange):
            return _output_row(owner, made.query, expr.attnum - 1)
        if isinstance(made, CteRange):
            definer = owner.at(made.level)
            for cte in definer.bound_ctes:
                if cte.name == made.name:
                    return _output_row(definer, cte.query, expr.attnum - 1)
        return None
    if isinstance(expr, FuncExpr):
        return function_columns(expr)
    if isinstance(expr, SubLink) and expr.kind is SubLinkKind.SCALAR:
        return _output_row(scope, expr.query, 0)
    return None


def _output_row(outside: Scope, query: QueryExpr, position: int) -> list[tuple[str, SqlType]] | None:
    """Return the fields of a row that is output column ``position`` of a query inside ``outside``."""
    inner = Scope(context=outside.context, parent=outside)
    inner.bound_ctes = list(query.ctes)
    if isinstance(query, SetOp):
        return _output_row(inner, query.left, position)
    if isinstance(query, Values):
        return row_columns(inner, query.rows[0][position])
    inner.ranges = list(query.ranges)
    outputs = [target for target in query.targets if not target.junk]
    return row_columns(inner, outputs[position].expr)


def function_columns(expr: FuncExpr) -> list[tuple[str, SqlType]] | None:
    """Return (name, type) of a record function's OUT columns, None where it has none."""
    if isinstance(expr, SqlCall):
        return [(column.name, column.type) for column in expr.outputs] or None
    proc = facts().procs[expr.proc]
    if proc.all_arg_types is None or proc.arg_modes is None:
        return None
    names = proc.arg_names or ("",) * len(proc.arg_modes)
    columns = [
        (name or f"column{i}", SqlType(_concrete(oid, expr)))
        for i, (oid, mode, name) in enumerate(
            (triple for triple in zip(proc.all_arg_types, proc.arg_modes, names, strict=True)
             if triple[1] in ("o", "b", "t")),
            1,
        )
        if mode
    ]  # fmt: skip
    return columns or None


def _concrete(oid: int, expr: FuncExpr) -> int:
    """Return the actual type of an OUT column whose declared type may be polymorphic."""
    fact = facts().types.get(oid)
    if fact is None or fact.kind != "p" or not expr.args:
        return oid
    proc = facts().procs[expr.proc]
    for declared, arg in zip(proc.arg_types, expr.args, strict=False):
        name = facts().types[declared].name
        if fact.name == "anyelement" and name == "anyarray":
            return element_of(arg.type.oid)
        if declared == oid:
            return arg.type.oid
    return oid


def row_fields(scope: Scope, expr: Expr, span: Span | None) -> list[tuple[str, Expr]]:
    """Return (name, expression) of every field of a row value. Raises SqlError 42809."""
    if not is_row(expr):
        raise SqlError("42809", f"type {format_type(expr.type.oid)} is not composite")
    columns = row_columns(scope, expr)
    if columns is None:
        raise SqlError("42809", "record type has not been registered", span=span)
    whole = opened(expr, scope.context.env.row_type)  # once for all: it lists every field
    return [
        (name, _field_of(scope, whole, position, type_, name, span))
        for position, (name, type_) in enumerate(paced(columns))
    ]


def _field_of(scope: Scope, expr: Expr, position: int, type_: SqlType, name: str, span: Span | None) -> Expr:
    """Return field ``position`` of an anonymous row, without building the row where that is possible."""
    if isinstance(expr, RowExpr) and type_.oid == UNKNOWN:
        return expr.fields[position]
    if isinstance(expr, Var) and expr.attnum == 0 and expr.range >= 0:
        owner = scope.at(expr.level)
        column = owner.ranges[expr.range].columns[position]
        owner.use(expr.range, column.attnum)
        return Var(
            type=column.type,
            range=expr.range,
            attnum=column.attnum,
            level=expr.level,
            name=name,
            span=span,
        )
    return FieldSelect(type=type_, arg=expr, index=position, name=name, span=span)


def select_field(scope: Scope, expr: Expr, name: str, span: Span | None) -> Expr:
    """Return ``(expr).name``: a field, else the function ``name(expr)``. Raises SqlError 42809, 42703."""
    columns = row_columns(scope, expr) if is_row(expr) else None
    item = _renamed_item(scope, expr)
    if item is not None:
        found = scope.item_column(*item, name, span)
        if found is not None:
            return found
        columns = None
    for position, (field, type_) in enumerate(columns or ()):
        if field == name:
            return _field_of(scope, opened(expr, scope.context.env.row_type), position, type_, name, span)
    if name in facts().procs_by_name or scope.context.catalog.functions_named(name):
        call = CALL_ON.call(scope, name, expr, span)
        if call is not None:
            return call
    if not is_row(expr):
        raise SqlError(
            "42809",
            f"column notation .{name} applied to type {format_type(expr.type.oid)}, "
            "which is not a composite type",
            span=span,
        )
    if isinstance(expr, ComposeRow):
        expr = expr.arg
    if isinstance(expr, Var) and expr.attnum == 0:
        made = scope.at(expr.level).ranges[expr.range]
        raise SqlError("42703", f"column {made.alias}.{name} does not exist", span=span)
    if is_composite(expr.type.oid):
        raise SqlError(
            "42703", f'column "{name}" not found in data type {format_type(expr.type.oid)}', span=span
        )
    raise SqlError("42703", f'could not identify column "{name}" in record data type', span=span)


def _renamed_item(scope: Scope, expr: Expr) -> tuple[int, Scope, Item] | None:
    """Return what a whole row is of, where its columns have other names in FROM than in its type: by those
    they are known.
    """
    if (
        not isinstance(expr, ComposeRow)
        or not isinstance(expr.arg, Var)
        or expr.arg.attnum
        or expr.arg.range < 0
    ):
        return None
    owner, index = scope.at(expr.arg.level), expr.arg.range
    if tuple([column.name for column in owner.ranges[index].columns]) == expr.names:
        return None
    item = next((item for item in owner.visible() if item.range == index), None)
    return None if item is None else (expr.arg.level, owner, item)


# --- indirection --------------------------------------------------------------------------------


def _indirection(scope: Scope, node: ast.Indirection) -> Expr:
    # (t).a where t is a table: no need to go through the row
    expr = bind_expr(scope, node.arg)
    subscripts: list[ast.SubscriptStep] = []
    for step in node.steps:
        if isinstance(step, ast.SubscriptStep):
            subscripts.append(step)
            continue
        if subscripts:
            expr = subscript(scope, expr, subscripts, node.span)
            subscripts = []
        if isinstance(step, ast.Star):
            raise SqlError("42601", 'row expansion via "*" is not supported here', span=node.span)
        expr = select_field(scope, expr, step, node.span)
    if subscripts:
        expr = subscript(scope, expr, subscripts, node.span)
    return expr


def _row(scope: Scope, node: ast.Row) -> Expr:
    fields = expand_stars(scope, node.items)
    if len(fields) > MAX_ROW_FIELDS:
        raise SqlError("54011", f"ROW expressions can have at most {MAX_ROW_FIELDS} entries", span=node.span)
    names = tuple([f"f{i}" for i in range(1, len(fields) + 1)])
    return RowExpr(type=SqlType(RECORD), fields=fields, names=names, span=node.span)


register(ast.ColumnRef, _column_ref)
register(ast.Row, _row)
register(ast.Indirection, _indirection)
