"""ALTER COLUMN TYPE: the new value as an expression over the old row, and whether rows must change at all.

ALTER a TYPE bigint                    using = int8(a)                 rows are rewritten
ALTER f TYPE varchar(20), was (10)     using = f, relabelled           rows stay
ALTER b TYPE int USING b::int          using = CoerceViaIO(b)
"""

from __future__ import annotations

from dataclasses import replace

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.base.quoting import quote_identifier
from planner.bind.context import BindContext
from planner.bind.define.table.generated import generated_from, stored_generation
from planner.bind.define.table.sequence import BOUNDS, NO_IDENTITY_TYPE
from planner.bind.define.table.table_parts import column_type, declared_collation
from planner.bind.expression.expr import bind_kept
from planner.bind.scope import SYSTEM_COLUMNS
from planner.bind.stored import table_scope
from planner.bind.stored.evaluated import stored_default
from planner.bind.stored.runnable import must_be_called, runnable, runnable_now
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.row_parts import refuse_member
from planner.conversion.casts import try_coerce
from planner.conversion.pathways import CastContext
from planner.facts import BPCHAR, NUMERIC, VARBIT, VARCHAR
from planner.indexing.opclass import check_retyped
from planner.query import CoerceTypmod, Expr, RelabelType, Var
from planner.rules.plain import without_domains
from planner.types import SqlType
from planner.types.domains import domain_named, plain_type
from planner.types.facts import format_type


def alter_type(
    context: BindContext, relation: RelationDef, before: RelationDef, name: str, node: ast.ColumnDef
) -> tuple[st.ColumnRetype, RelationDef]:
    """Bind the action; returns it and the table with the column's new type. ``before``: the table as it was
    before the statement, whose columns USING reads, those too that the statement drops or gives another type.

    Raises SqlError 42703, 42804 (no automatic cast, of values or of the default; an operator class of an
    index), 42704 (an index of the type cannot be) and what the type and USING raise.
    """
    column = _retyped(relation, name)
    if column.declared != before.column(column.attnum).declared:
        raise SqlError("0A000", f'cannot alter type of column "{name}" twice')
    if node.type is None:
        raise AssertionError("ALTER COLUMN TYPE names no type")
    type_ = column_type(context, replace(node, name=name))
    if domain_named(type_) and relation.source_oid:
        raise not_supported("a column of a domain in the table of a source", span=node.span)
    _check_generated(context, relation, column, node)
    if column.identity and type_.oid not in BOUNDS:
        raise SqlError("22023", NO_IDENTITY_TYPE)
    if column.generated:
        _using(context, relation, column, type_, None)
        using: Expr = runnable(
            stored_generation(relation, column.attnum, context.catalog, type_), context.catalog
        )
        default = None
    elif relation.kind == "f":  # whose rows nobody converts
        if node.using is not None:
            raise SqlError("42809", f'"{relation.name}" is not a table')
        using = Var(type=column.declared, range=0, attnum=column.attnum, name=column.name)
        default = _default(context, column, type_)
    else:
        using = _using(context, before, column, type_, node.using)
        default = _default(context, column, type_)
    check_retyped(relation, column, plain_type(type_), context.catalog)
    changed = replace(column, type=plain_type(type_), domain=domain_named(type_), missing_value=None)
    action = st.ColumnRetype(
        column=name,
        type=type_,
        using=using,
        default=default,
        default_sql=column.default_sql,
        collation=declared_collation(context, node.collation, type_, None),
        rewrites=not keeps_values(using, column.attnum),
        dims=len(node.type.dims),
    )
    columns = tuple(changed if c.attnum == column.attnum else c for c in relation.columns)
    return action, replace(relation, columns=columns)


def check_written(
    context: BindContext, relation: RelationDef, before: RelationDef, name: str, node: ast.ColumnDef
) -> None:
    """Raise what USING raises by itself, then 42703 and 0A000 for the column: told before what the table does
    not allow, and before the type is looked up.
    """
    if node.using is not None:
        bind_kept(table_scope(context, before), node.using, "TRANSFORM")
    _retyped(relation, name)


def _retyped(relation: RelationDef, name: str) -> ColumnDef:
    column = next((c for c in relation.live if c.name == name), None)
    if column is not None:
        return column
    if name in SYSTEM_COLUMNS:
        raise SqlError("0A000", f'cannot alter system column "{name}"')
    raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')


def _check_generated(
    context: BindContext, relation: RelationDef, column: ColumnDef, node: ast.ColumnDef
) -> None:
    """Refuse USING for a generated column (42611), and another type for a column that one is computed from (0A000)."""
    if column.generated and node.using is not None:
        raise SqlError(
            "42611",
            "cannot specify USING when altering type of generated column",
            detail=f'Column "{column.name}" is a generated column.',
        )
    for attnum in generated_from(relation, (column.attnum,), context.catalog):
        if not relation.column(attnum).hidden:
            raise SqlError(
                "0A000",
                "cannot alter type of a column used by a generated column",
                detail=f'Column "{column.name}" is used by generated column "{relation.column(attnum).name}".',
            )


def _using(
    context: BindContext,
    relation: RelationDef,
    column: ColumnDef,
    type_: SqlType,
    written: ast.Expression | None,
) -> Expr:
    expr: Expr
    if written is None:
        expr = Var(type=column.declared, range=0, attnum=column.attnum, name=column.name)
        message = f'column "{column.name}" cannot be cast automatically to type {format_type(type_.oid)}'
        hint = (
            None
            if column.generated
            else (
                f'You might need to specify "USING {quote_identifier(column.name)}::'
                f'{format_type(type_.oid, type_.typmod)}".'
            )
        )
    else:
        expr = bind_kept(table_scope(context, relation), written, "TRANSFORM")
        message = (
            f'result of USING clause for column "{column.name}" cannot be cast automatically to type '
            f"{format_type(type_.oid)}"
        )
        hint = "You might need to add an explicit cast."
    coerced = try_coerce(expr, type_, CastContext.ASSIGNMENT, context.env)
    refuse_member(context.catalog, relation.row_type, type_.oid)
    if coerced is None:
        raise SqlError("42804", message, hint=hint)
    return without_domains(runnable_now(coerced, context))


def _default(context: BindContext, column: ColumnDef, type_: SqlType) -> Expr | None:
    """Return the column's default under the new type: its text, whose own casts alone are written, bound anew."""
    if column.default_sql is None:
        return None
    try:
        made = stored_default(column.default_sql, type_, context.catalog, calls=True)
        return None if must_be_called(made) else made
    except SqlError as error:
        if error.sqlstate != "42804":
            raise
        raise SqlError(
            "42804",
            f'default for column "{column.name}" cannot be cast automatically to type '
            f"{format_type(type_.oid)}",
        ) from None


def keeps_values(expr: Expr, attnum: int) -> bool:
    """Tell whether ``expr`` always is the stored value of column ``attnum`` as it stands."""
    if isinstance(expr, RelabelType):
        return keeps_values(expr.arg, attnum)
    if isinstance(expr, CoerceTypmod):
        return _is_wider(expr.arg.type, expr.type) and keeps_values(expr.arg, attnum)
    return isinstance(expr, Var) and expr.level == 0 and expr.attnum == attnum


def _is_wider(old: SqlType, new: SqlType) -> bool:
    """Tell whether every value of ``old`` passes a cast to ``new`` unchanged."""
    if old.oid != new.oid or old.typmod < 0 or new.oid == BPCHAR:
        return False
    if new.oid == NUMERIC:
        old_scale, new_scale = ((old.typmod - 4) & 0x7FF), ((new.typmod - 4) & 0x7FF)
        return old_scale == new_scale and new.typmod >= old.typmod
    return new.oid in (VARCHAR, VARBIT) and new.typmod >= old.typmod
