"""Assignment to parts of columns: ``SET c.f = x``, ``SET a[1].f = x``, ``INSERT INTO t (c.f, c.g)``.

UPDATE t SET c.f = 1           c := ComposeRow(Row(1, (c).g))             the other attributes as they are
UPDATE t SET a[2].f = 1        a := ArrayAssign(a, 2, ComposeRow(Row(1, (a[2]).g)))
UPDATE t SET j['a'][0] = 1     j := ArrayAssign(j, ['a', 0], 1)          so of a jsonb, and of an hstore
INSERT INTO t (c.f, d)         INSERT INTO t (c, d) ... ROW(1, NULL)      those that are not named are NULL
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner import ast
from planner.bind.subscripts import hstore_key, jsonb_keys, subscript, subscripts_of
from planner.casts import CastContext, CoerceEnv, try_coerce
from planner.catalog import Catalog, ColumnDef, RelationDef, RowType
from planner.composite import compose, decomposed, is_composite
from planner.domains import base_oid, base_type, is_domain
from planner.errors import Span, SqlError, not_supported
from planner.facts import HSTORE, INT2VECTOR, JSONB, NAME, OIDVECTOR, RECORD, TEXT
from planner.query import ArrayAssign, Expr, FieldSelect, RelabelType, RowExpr
from planner.scope import Scope
from planner.typefacts import coordinates_of, format_type
from planner.types import SqlType

Step = ast.SubscriptStep | ast.Node | str


def with_part(
    scope: Scope,
    old: Expr,
    name: str,
    type_: SqlType,
    steps: Sequence[Step],
    value: Expr | None,
    span: Span | None,
) -> Expr:
    """Return ``old`` (the column or field ``name`` of ``type_``) with the part replaced that ``steps`` name.

    ``value`` None is DEFAULT. Raises SqlError 42804 and 42703 as PostgreSQL does, 0A000 for DEFAULT.
    """
    env = scope.context.env
    under = base_type(type_)
    if is_domain(type_.oid):
        old = RelabelType(arg=old, type=under, span=old.span)
    if isinstance(steps[0], str):
        made = _with_field(scope, old, name, under, steps, value, span)
    else:
        made = _with_element(scope, old, name, under, steps, value, span)
    if not is_domain(type_.oid):
        return made
    coerced = try_coerce(made, type_, CastContext.ASSIGNMENT, env)
    assert coerced is not None
    return coerced


def _with_field(
    scope: Scope,
    old: Expr,
    name: str,
    type_: SqlType,
    steps: Sequence[Step],
    value: Expr | None,
    span: Span | None,
) -> Expr:
    env = scope.context.env
    field = steps[0]
    assert isinstance(field, str)
    row = env.row_type(base_oid(type_.oid)) if is_composite(type_.oid) else None
    if row is None:
        raise SqlError(
            "42804",
            f'cannot assign to field "{field}" of column "{name}" because its type {format_type(type_.oid)} '
            "is not a composite type",
            span=span,
        )
    column = _attribute(row, field, name, span)
    parts = decomposed(old, env.row_type)
    fields: list[Expr] = []
    for position, other in enumerate(row.live):
        present: Expr = FieldSelect(type=other.declared, arg=parts, index=position, span=span)
        if isinstance(parts, RowExpr):
            present = parts.fields[position]
        if other is not column:
            fields.append(present)
        elif len(steps) > 1:
            fields.append(with_part(scope, present, field, other.declared, steps[1:], value, span))
        else:
            fields.append(_field_value(env, value, column, span))
    made = RowExpr(
        type=SqlType(RECORD), fields=tuple(fields), names=tuple(c.name for c in row.live), span=span
    )
    return compose(made, row, explicit=False, span=span)


def _attribute(row: RowType, field: str, name: str, span: Span | None) -> ColumnDef:
    for column in row.live:
        if column.name == field:
            return column
    raise SqlError(
        "42703",
        f'cannot assign to field "{field}" of column "{name}" because there is no such column in data type '
        f"{format_type(row.oid)}",
        span=span,
    )


def _field_value(env: CoerceEnv, value: Expr | None, column: ColumnDef, span: Span | None) -> Expr:
    if value is None:
        raise SqlError("0A000", "cannot set a subfield to DEFAULT", span=span)
    made = try_coerce(value, column.declared, CastContext.ASSIGNMENT, env)
    if made is None:
        raise SqlError(
            "42804",
            f'subfield "{column.name}" is of type {format_type(column.declared.oid)} but expression is of type '
            f"{format_type(value.type.oid)}",
            hint="You will need to rewrite or cast the expression.",
            span=span,
        )
    return made


def _with_element(
    scope: Scope,
    old: Expr,
    name: str,
    type_: SqlType,
    steps: Sequence[Step],
    value: Expr | None,
    span: Span | None,
) -> Expr:
    env, oid = scope.context.env, type_.oid
    if oid in (NAME, INT2VECTOR, OIDVECTOR):
        raise not_supported(f"assignment to a part of a {format_type(oid)} column", span=span)
    count = next((i for i, step in enumerate(steps) if isinstance(step, str)), len(steps))
    subscripts = [step for step in steps[:count] if isinstance(step, ast.SubscriptStep)]
    indexes: tuple[tuple[Expr | None, Expr | None], ...]
    element, indexes, is_slice = oid, (), False
    if oid == JSONB:
        indexes = tuple((None, key) for key in jsonb_keys(scope, subscripts))
    elif oid == HSTORE:
        element, indexes = TEXT, ((None, hstore_key(scope, subscripts)),)
    else:
        element, indexes, is_slice = subscripts_of(scope, oid, subscripts, span)
    if count < len(steps):
        if is_slice:
            raise not_supported("assignment to a field of a slice", span=span)
        inner = SqlType(element)
        present = subscript(scope, old, subscripts, span)
        made = with_part(scope, present, name, inner, steps[count:], value, span)
        return ArrayAssign(type=type_, arg=old, indexes=indexes, value=made, span=span)
    if value is None:
        raise SqlError("0A000", "cannot set an array element to DEFAULT", span=span)
    wanted = SqlType(oid if is_slice else element, type_.typmod)
    coerced = try_coerce(value, wanted, CastContext.ASSIGNMENT, env)
    if coerced is None:
        raise SqlError(
            "42804",
            f'subscripted assignment to "{name}" requires type {format_type(wanted.oid)} but expression is of '
            f"type {format_type(value.type.oid)}",
            hint="You will need to rewrite or cast the expression.",
            span=span,
        )
    if is_slice and coordinates_of(oid)[0]:
        raise SqlError("0A000", "updates on slices of fixed-length arrays not implemented")
    return ArrayAssign(type=type_, arg=old, indexes=indexes, value=coerced, is_slice=is_slice, span=span)


# --- INSERT ---------------------------------------------------------------------------------------


def without_parts(node: ast.Insert, relation: RelationDef, catalog: Catalog) -> ast.Insert:
    """Return an INSERT that names parts of columns as one that names columns, and gives rows for those of several parts.

    Raises SqlError 42703, 42804, 42701 for the same part twice; 0A000 for elements of arrays, and DEFAULT for a part.
    """
    if not any(column.steps for column in node.columns):
        return node
    if node.query is None:
        raise not_supported("INSERT ... DEFAULT VALUES into parts of columns", span=node.columns[0].span)
    columns: list[ast.TargetColumn] = []
    plans: list[int | dict[str, object]] = []
    for position, target in enumerate(node.columns):
        known = next((i for i, c in enumerate(columns) if c.name == target.name), None)
        if not target.steps:
            if known is not None:
                raise _twice(target)
            columns.append(target)
            plans.append(position)
            continue
        if known is None:
            columns.append(replace(target, steps=()))
            plans.append({})
            known = len(plans) - 1
        tree = plans[known]
        if not isinstance(tree, dict):
            raise _twice(target)
        _plant(tree, target, position)
    rows = [_row_of(relation, column, catalog) for column in columns]
    query = node.query
    plain = isinstance(query, ast.Values) and not (
        query.with_ or query.order or query.limit or query.offset or query.locking
    )
    if plain and isinstance(query, ast.Values):
        made: list[tuple[ast.Expression, ...]] = []
        for values in query.rows:
            if len(values) != len(node.columns):
                more = len(values) > len(node.columns)
                words = (
                    "INSERT has more expressions than target columns"
                    if more
                    else "INSERT has more target columns than expressions"
                )
                raise SqlError("42601", words, span=node.columns[0].span)
            made.append(
                tuple(
                    _value(plan, values, row, column, catalog)
                    for plan, row, column in zip(plans, rows, columns, strict=True)
                )
            )
        return replace(node, columns=tuple(columns), query=replace(query, rows=tuple(made)))
    names = tuple(f"column{i}" for i in range(1, len(node.columns) + 1))
    inputs = tuple(ast.ColumnRef(names=(_SOURCE, name), span=query.span) for name in names)
    source = ast.SubqueryRef(query=query, alias=ast.Alias(name=_SOURCE, columns=names), span=query.span)
    targets = tuple(
        ast.TargetItem(expr=_value(plan, inputs, row, column, catalog))
        for plan, row, column in zip(plans, rows, columns, strict=True)
    )
    return replace(node, columns=tuple(columns), query=ast.Select(targets=targets, from_=(source,)))


_SOURCE = "*SELECT*"


def _twice(target: ast.TargetColumn) -> SqlError:
    return SqlError("42701", f'column "{target.name}" specified more than once', span=target.span)


def _plant(tree: dict[str, object], target: ast.TargetColumn, position: int) -> None:
    """Note in the tree of a column's fields which value goes to the part that ``target`` names."""
    *outer, last = target.steps
    for step in outer:
        inner = tree.setdefault(_field_name(step, target), {})
        if not isinstance(inner, dict):
            raise _twice(target)
        tree = inner
    if _field_name(last, target) in tree:
        raise _twice(target)
    tree[_field_name(last, target)] = (position, target)


def _field_name(step: Step, target: ast.TargetColumn) -> str:
    if not isinstance(step, str):
        raise not_supported("INSERT into a part of a column", span=target.span)
    return step


def _row_of(relation: RelationDef, target: ast.TargetColumn, catalog: Catalog) -> SqlType:
    for column in relation.live:
        if column.name == target.name:
            return column.declared
    raise SqlError(
        "42703", f'column "{target.name}" of relation "{relation.name}" does not exist', span=target.span
    )


def _first_of(plan: object, target: ast.TargetColumn) -> ast.TargetColumn:
    """Return the first target that was written for a part of a column."""
    while isinstance(plan, dict):
        plan = next(iter(plan.values()))
    return plan[1] if isinstance(plan, tuple) else target


def _value(
    plan: object, values: Sequence[ast.Expression], type_: SqlType, target: ast.TargetColumn, catalog: Catalog
) -> ast.Expression:
    """Return what goes to a column: one of the values, or a row of some of them."""
    if isinstance(plan, int):
        return values[plan]
    if isinstance(plan, tuple):
        return values[plan[0]]
    assert isinstance(plan, dict)
    fields = list(plan)
    row = catalog.row_type(base_oid(type_.oid))
    if row is None:
        raise SqlError(
            "42804",
            f'cannot assign to field "{fields[0]}" of column "{target.name}" because its type '
            f"{format_type(type_.oid)} is not a composite type",
            span=target.span,
        )
    for field in fields:
        _attribute(row, field, target.name, _first_of(plan[field], target).span)
    items: list[ast.Expression] = []
    for column in row.live:
        if column.name not in plan:
            items.append(ast.Constant(kind="null", value=None, span=target.span))
            continue
        item = _value(plan[column.name], values, column.declared, target, catalog)
        if isinstance(item, ast.Default):
            raise SqlError("0A000", "cannot set a subfield to DEFAULT", span=target.span)
        items.append(item)
    return ast.Row(items=tuple(items), span=target.span)
