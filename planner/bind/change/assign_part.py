"""Assignment to parts of columns: ``SET c.f = x``, ``SET a[1].f = x``, ``INSERT INTO t (c.f, c.g)``.

UPDATE t SET c.f = 1           c := ComposeRow(Row(1, (c).g))             the other attributes as they are
UPDATE t SET a[2].f = 1        a := ArrayAssign(a, 2, ComposeRow(Row(1, (a[2]).g)))
UPDATE t SET j['a'][0] = 1     j := ArrayAssign(j, ['a', 0], 1)          so of a jsonb, and of an hstore
INSERT INTO t (c.f, a[1])      INSERT INTO t (c, a): as UPDATE of NULL    those that are not named are NULL
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.expression.expr import bind_expr, register
from planner.bind.expression.subscripts import hstore_key, jsonb_keys, subscript, subscripts_of
from planner.bind.scope import Scope
from planner.catalog import ColumnDef, RelationDef, RowType
from planner.conversion.casts import try_coerce
from planner.conversion.composite import compose, decomposed, is_composite
from planner.conversion.env import CoerceEnv
from planner.conversion.pathways import CastContext
from planner.facts import HSTORE, INT2VECTOR, JSONB, NAME, OIDVECTOR, RECORD, TEXT
from planner.query import ArrayAssign, Const, Expr, FieldSelect, RelabelType, RowExpr
from planner.types import SqlType
from planner.types.domains import base_oid, base_type, is_domain
from planner.types.facts import coordinates_of, format_type

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
    if coerced is None:
        raise AssertionError("a value that was assignable is not coerced")
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
    if not isinstance(field, str):
        raise AssertionError(f"a field is named by {type(field).__name__}")
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


Given = Callable[[Sequence[ast.Expression]], list[ast.Expression]]


def whole_columns(
    named: Sequence[ast.TargetColumn], relation: RelationDef
) -> tuple[tuple[ast.TargetColumn, ...], Given]:
    """Return the columns whose parts are named, each once, and what makes their values of those that were written.

    That raises SqlError 42601 for more or fewer values than names. Raises SqlError 42703; 42701 for a column
    that is named as a whole, too.
    """
    columns: list[ast.TargetColumn] = []
    positions: list[list[int]] = []
    for position, target in enumerate(named):
        known = next((i for i, c in enumerate(columns) if c.name == target.name), None)
        if known is None:
            columns.append(replace(target, steps=()))
            positions.append([position])
            continue
        if not target.steps or not named[positions[known][0]].steps:
            raise SqlError("42701", f'column "{target.name}" specified more than once', span=target.span)
        positions[known].append(position)
    types = [_type_of(relation, column) for column in columns]

    def given(values: Sequence[ast.Expression]) -> list[ast.Expression]:
        if len(values) > len(named):
            words = "INSERT has more expressions than target columns"
            raise SqlError("42601", words, span=values[len(named)].span)
        if len(values) < len(named):
            words = "INSERT has more target columns than expressions"
            raise SqlError("42601", words, span=named[len(values)].span)
        made: list[ast.Expression] = []
        for column, type_, places in zip(columns, types, positions, strict=True):
            targets = [named[place] for place in places]
            if not targets[0].steps:
                made.append(values[places[0]])
                continue
            parts = [
                ast.Part(steps=target.steps, value=values[place], span=target.span)
                for target, place in zip(targets, places, strict=True)
            ]
            made.append(ast.OfParts(column=column.name, type=type_, parts=tuple(parts), span=column.span))
        return made

    return tuple(columns), given


def without_parts(node: ast.Insert, relation: RelationDef) -> ast.Insert:
    """Return an INSERT that names parts of columns as one that names columns. Raises SqlError as ``whole_columns``."""
    if not any(column.steps for column in node.columns):
        return node
    if node.query is None:
        raise not_supported("INSERT ... DEFAULT VALUES into parts of columns", span=node.columns[0].span)
    columns, given = whole_columns(node.columns, relation)
    query = node.query
    plain = isinstance(query, ast.Values) and not (
        query.with_ or query.order or query.limit or query.offset or query.locking
    )
    if plain and isinstance(query, ast.Values):
        rows = tuple([tuple(given(values)) for values in query.rows])
        return replace(node, columns=columns, query=replace(query, rows=rows))
    spans = [query.span] * len(node.columns)
    outside: Mapping[int, ast.Expression] = {}
    if isinstance(query, ast.Select):
        stars = sum(is_star(target.expr) for target in query.targets)
        if not stars:
            spans = [target.expr.span for target in query.targets]
        if stars <= 1 and query.distinct is None:
            query, outside = _without_literals(query, len(spans))
    names = tuple(f"column{i}" for i in range(1, len(spans) + 1))
    inputs = [
        outside.get(place) or ast.ColumnRef(names=(_SOURCE, name), span=span)
        for place, (name, span) in enumerate(zip(names, spans, strict=True))
    ]
    source = ast.SubqueryRef(query=query, alias=ast.Alias(name=_SOURCE, columns=names), span=query.span)
    items = tuple(ast.TargetItem(expr=value) for value in given(inputs))
    return replace(node, columns=columns, query=ast.Select(targets=items, from_=(source,)))


def is_star(expr: ast.Expression) -> bool:
    """Tell whether an item of a select list stands for several columns."""
    if isinstance(expr, ast.Indirection):
        return isinstance(expr.steps[-1], ast.Star)
    return isinstance(expr, ast.ColumnRef) and expr.star


def _without_literals(query: ast.Select, width: int) -> tuple[ast.Select, Mapping[int, ast.Expression]]:
    """Return a query of ``width`` columns with NULL for its strings and parameters, and these, by place.

    They take the type of their part of the column; not so those that ORDER BY and GROUP BY name, which are
    texts. One item may be a star.
    """
    keys = [*query.group, *(item.expr for item in query.order)]
    named = {key.value for key in keys if isinstance(key, ast.Constant)}
    named |= {key.names[0] for key in keys if isinstance(key, ast.ColumnRef) and len(key.names) == 1}
    targets: list[ast.TargetItem] = []
    outside: dict[int, ast.Expression] = {}
    place = 0
    for target in query.targets:
        moves = isinstance(target.expr, ast.ParamRef) or (
            isinstance(target.expr, ast.Constant) and target.expr.kind == "string"
        )
        if moves and place + 1 not in named and (not target.name or target.name not in named):
            outside[place] = target.expr
            target = replace(target, expr=ast.Constant(kind="null", value=None, span=target.expr.span))
        targets.append(target)
        place += 1 + width - len(query.targets) if is_star(target.expr) else 1
    return replace(query, targets=tuple(targets)), outside


_SOURCE = "*SELECT*"


def _type_of(relation: RelationDef, target: ast.TargetColumn) -> SqlType:
    for column in relation.live:
        if column.name == target.name:
            return column.declared
    raise SqlError(
        "42703", f'column "{target.name}" of relation "{relation.name}" does not exist', span=target.span
    )


def bind_of_parts(scope: Scope, node: ast.OfParts) -> Expr:
    """Return the value of a column of which parts are given; what its domain demands is asked of the whole."""
    made: Expr = Const(type=base_type(node.type), value=None, span=node.span)
    for part in node.parts:
        value = None if isinstance(part.value, ast.Default) else bind_expr(scope, part.value)
        made = with_part(scope, made, node.column, made.type, part.steps, value, part.span)
    if not is_domain(node.type.oid):
        return made
    coerced = try_coerce(made, node.type, CastContext.ASSIGNMENT, scope.context.env)
    if coerced is None:
        raise AssertionError("a value that was assignable is not coerced")
    return coerced


register(ast.OfParts, bind_of_parts)
