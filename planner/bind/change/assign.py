"""Assignment: which column is written, and the value made fit for it.

    INSERT INTO t (a, b) VALUES (1, 'x')       assigned(column a, Const 1), assigned(column b, 'x')
    UPDATE t SET (a, b) = (SELECT ...)         one sub-select of a row, and a field of it per column

Values are converted in assignment context; unknown literals are read as the column's type, open parameters
take it. UPDATE stores parts of arrays: ``SET a[1] = x, a[2] = y`` is one value, ArrayAssign over ArrayAssign
over the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgwire.give_way import give_way
from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.change.assign_part import with_part
from planner.bind.context import BindContext
from planner.bind.expression.columns import expand_stars
from planner.bind.expression.expr import bind_expr
from planner.bind.recursion import QUERY
from planner.bind.scope import SYSTEM_COLUMNS, Scope
from planner.bind.stored.evaluated import column_default
from planner.bind.stored.runnable import must_be_called
from planner.catalog import ColumnDef, RelationDef
from planner.conversion.casts import coerce_to_column
from planner.conversion.env import CoerceEnv
from planner.facts import RECORD
from planner.query import (
    Const,
    Expr,
    FieldSelect,
    OutputColumn,
    QueryExpr,
    RangeColumn,
    RangeRef,
    RowExpr,
    Select,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Target,
    Var,
)
from planner.query.location import location
from planner.query.rewrite import shift_query
from planner.statements.classify import is_volatile
from planner.types import SqlType
from planner.types.facts import format_type

_ROW = SqlType(RECORD)
_ANONYMOUS = "*SELECT*"


def target_relation(context: BindContext, node: ast.TableRef) -> RelationDef:
    """Return the table that DML writes.

    Raises SqlError 42P01 (no such relation), 42809 (an index or sequence), 42501 (a system catalog), 0A000 (a
    transition table).
    """
    refuse_transition(context, node)
    relation = context.relation(node.schema, node.name, node.span, catalog=node.catalog, read=True)
    if relation.kind == "c":
        raise SqlError("42809", f'"{relation.name}" is a composite type', span=node.span)
    if relation.kind == "i":
        raise SqlError("42809", f'"{relation.name}" is an index', span=node.span)
    if relation.kind == "S":
        raise SqlError("42809", f'cannot change sequence "{relation.name}"')
    if relation.virtual:
        if relation.kind == "r" and context.security is not None and not context.security.role.superuser:
            raise SqlError("42501", f"permission denied for table {relation.name}")
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    return relation


def refuse_transition(context: BindContext, node: ast.TableRef) -> None:
    """Raise SqlError 0A000 for a transition table: unlike WITH items they hide tables."""
    step = None if node.schema else context.steps.get(node.name)
    if step is not None and step.number < 0:
        raise SqlError("0A000", f'relation "{node.name}" cannot be the target of a modifying statement')


def target_column(relation: RelationDef, node: ast.TargetColumn, *, inserting: bool = False) -> ColumnDef:
    """Return the column that ``node`` names.

    Raises SqlError 42703 for unknown ones (to INSERT system columns are unknown, too), 0A000 for INSERT into parts of
    columns and, in UPDATE, system columns.
    """
    for column in relation.live:
        if column.name == node.name:
            if node.steps and inserting:
                raise not_supported("INSERT into a part of a column", span=node.span)
            return column
    if node.name in SYSTEM_COLUMNS and not inserting:
        raise SqlError("0A000", f'cannot assign to system column "{node.name}"', span=node.span)
    raise SqlError(
        "42703", f'column "{node.name}" of relation "{relation.name}" does not exist', span=node.span
    )


def assigned(expr: Expr, column: ColumnDef, env: CoerceEnv) -> Expr:
    """Convert a value to its column's type; 42804 in PostgreSQL's words."""
    type_ = column.declared
    if expr.type == type_:
        return expr
    coerced = coerce_to_column(expr, type_, env)
    if coerced is None:
        raise SqlError(
            "42804",
            f'column "{column.name}" is of type {format_type(type_.oid)} but expression is of type '
            f"{format_type(expr.type.oid)}",
            hint="You will need to rewrite or cast the expression.",
            span=location(expr),
        )
    return coerced


def default_value(column: ColumnDef, context: BindContext, span: Span | None = None) -> Expr:
    """Return what DEFAULT means for a column: its default expression, its domain's, or NULL."""
    default = default_of(column, context)
    if default is None:
        return Const(type=column.type, value=None, span=span)
    return default


def default_of(column: ColumnDef, context: BindContext) -> Expr | None:
    """Return a column's default expression, or its domain's, for a query of the statement, which may call
    what it calls; or None.
    """
    made = column_default(column, context.catalog, context.functions, calls=True)
    if made is not None and must_be_called(made):
        context.flags.add("function")
        if is_volatile(made):
            context.flags.add("volatile")
    return made


# --- SET ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class BoundAssignment:
    """One column, or part of one, of a SET list: ``value`` None is DEFAULT. Not converted yet."""

    node: ast.TargetColumn
    value: Expr | None
    scope: Scope


def bind_assignments(scope: Scope, nodes: Sequence[ast.Assignment]) -> list[BoundAssignment]:
    """Bind the right sides of SET, in order, under the clause UPDATE.

    Raises SqlError 42601 when a multiple assignment's counts differ, 0A000 for a source that is neither a row
    nor a sub-select.
    """
    found: list[BoundAssignment] = []
    before, scope.clause = scope.clause, "UPDATE"
    for node in nodes:
        if node.multiple:
            found.extend(_multiple(scope, node))
        elif isinstance(node.value, ast.Default):
            found.append(BoundAssignment(node.columns[0], None, scope))
        else:
            found.append(BoundAssignment(node.columns[0], bind_expr(scope, node.value), scope))
    scope.clause = before
    return found


def _multiple(scope: Scope, node: ast.Assignment) -> list[BoundAssignment]:
    value = node.value
    if isinstance(value, ast.Row):
        items: list[Expr | None] = []
        for item in value.items:
            if isinstance(item, ast.Default):
                items.append(None)
            else:
                items.extend(expand_stars(scope, (item,)))
        _same_count(node, len(items))
        return [BoundAssignment(c, e, scope) for c, e in zip(node.columns, items, strict=True)]
    if isinstance(value, ast.SubLink) and value.kind == "scalar":
        query = QUERY.call(scope.context, value.query, scope)
        _same_count(node, len(query.columns))
        if is_volatile(query):
            raise not_supported(
                "a volatile sub-select as the source of a multiple-column assignment", span=value.span
            )
        row = SubLink(type=_ROW, kind=SubLinkKind.SCALAR, query=as_row(query), span=value.span)
        return [
            BoundAssignment(
                target,
                FieldSelect(type=column.type, arg=row, index=index, span=value.span),
                scope,
            )
            for index, (target, column) in enumerate(zip(node.columns, query.columns, strict=True))
        ]
    raise SqlError(
        "0A000",
        "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        span=value.span,
    )


def _same_count(node: ast.Assignment, count: int) -> None:
    if count != len(node.columns):
        raise SqlError(
            "42601",
            "number of columns does not match number of values",
            span=node.value.span or node.span,
        )


def as_row(query: QueryExpr) -> Select:
    """Return a query of one column: each row of ``query`` as one row value."""
    columns = query.columns
    inner = SubqueryRange(
        alias=_ANONYMOUS,
        columns=tuple(RangeColumn(name=c.name, type=c.type, attnum=i) for i, c in enumerate(columns, 1)),
        query=shift_query(query, 1),
    )
    fields = tuple(Var(type=c.type, range=0, attnum=i, name=c.name) for i, c in enumerate(columns, 1))
    row = RowExpr(type=_ROW, fields=fields, names=tuple(c.name for c in columns))
    return Select(
        columns=(OutputColumn(name="row", type=_ROW),),
        targets=(Target(expr=row, name="row"),),
        ranges=(inner,),
        from_=(RangeRef(range=0),),
    )


def complete_assignments(
    relation: RelationDef, bound: Sequence[BoundAssignment], env: CoerceEnv, *, through_view: bool = False
) -> tuple[tuple[int, Expr], ...]:
    """Match SET items with columns and convert their values: (attnum, value) in SET order.

    ``through_view``: DEFAULT is the view's, which has none for columns that only their table computes;
    ``relation`` has its defaults. Raises SqlError 42601 for a column assigned twice, 42703, 42804, and 428C9
    for generated columns.
    """
    result: dict[int, Expr] = {}
    whole: set[int] = set()
    twice: SqlError | None = None
    refused: dict[int, SqlError] = {}  # which come after what is wrong with the values
    for item in bound:
        give_way()
        column = target_column(relation, item.node)
        parts = bool(item.node.steps)
        if column.attnum in whole or (column.attnum in result and not parts):
            twice = twice or SqlError("42601", f'multiple assignments to same column "{column.name}"')
        if not parts:
            whole.add(column.attnum)
        if (item.value is not None or through_view) and (column.generated or column.identity == "a"):
            what = (
                "a generated column" if column.generated else "an identity column defined as GENERATED ALWAYS"
            )
            refused[column.attnum] = SqlError(
                "428C9",
                f'column "{column.name}" can only be updated to DEFAULT',
                detail=f'Column "{column.name}" is {what}.',
            )
        if parts:
            old = result.get(column.attnum)
            if old is None:
                old = Var(type=column.declared, range=0, attnum=column.attnum, name=column.name, rest=True)
            value = with_part(
                item.scope, old, column.name, column.declared, item.node.steps, item.value, item.node.span
            )
        elif item.value is None:
            value = default_value(column, item.scope.context, item.node.span)
        else:
            value = assigned(item.value, column, env)
        result[column.attnum] = value
    if twice is not None:
        raise twice
    if refused:
        raise refused[min(refused)]
    return tuple(result.items())
