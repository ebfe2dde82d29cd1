"""UPDATE, DELETE and ON CONFLICT in bodies by BEGIN ATOMIC: bound to be printed (``planner.deparse.changes``), and bound anew where they run.

    UPDATE t SET a = $1, (b, c) = (SELECT ...), d = DEFAULT FROM u WHERE ... RETURNING t.a     KeptChange

What rows these change is computed by ``planner.bind.change.dml`` from the text; here nothing is put in the place of what was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import not_supported
from planner.bind.change.arbiters import constraint_named
from planner.bind.change.assign import BoundAssignment, assigned, bind_assignments, target_column
from planner.bind.change.dml import bind_delete, bind_returning, bind_update, changed_scope
from planner.bind.context import BindContext
from planner.bind.define.table.table_parts import column_collation
from planner.bind.expression.expr import bind_boolean, bind_clause
from planner.bind.scope import Scope
from planner.bind.stored import table_range, table_scope
from planner.catalog import RelationDef
from planner.conversion.casts import resolve_unknown
from planner.query import (
    CollateExpr,
    Const,
    Expr,
    FieldSelect,
    KeptChange,
    KeptConflict,
    Select,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Target,
    Written,
)
from planner.query.rewrite import shift_query
from planner.statements.parsed import command_tag
from planner.types.domains import plain_type


def kept_change(context: BindContext, node: ast.Update | ast.Delete, *, hint: str) -> KeptChange:
    """Bind an UPDATE or DELETE to be printed.

    Raises what binding it to be run raises; SqlError 0A000 for changes through views, of rows of cursors, of parts of columns, and by
    WITH items that change rows.
    """
    bound = bind_update(context, node) if isinstance(node, ast.Update) else bind_delete(context, node)
    relation = context.relation(node.relation.schema, node.relation.name)
    what = f"{command_tag(node)} {{}} in BEGIN ATOMIC"
    if bound.through is not None or relation.kind == "v":
        raise not_supported(what.format("through a view"), hint=hint)
    if isinstance(node.where, ast.CurrentOf):
        raise not_supported(what.format("WHERE CURRENT OF"), hint=hint)
    others = node.from_ if isinstance(node, ast.Update) else node.using
    scope, from_ = changed_scope(context, node.relation, relation, node.with_, others)
    where = None if node.where is None else bind_boolean(scope, node.where, "WHERE")
    returning, columns = bind_returning(scope, node.returning)
    nodes = node.assignments if isinstance(node, ast.Update) else ()
    columns_of, values, defaults = _assignments(context, scope, nodes, relation, what, hint)
    return KeptChange(
        kind="update" if isinstance(node, ast.Update) else "delete",
        table=relation.oid,
        shown=Select(
            columns=columns,
            targets=(*returning, *values),
            ranges=tuple(scope.finished_ranges()),
            from_=from_,
            where=where,
            ctes=tuple(scope.bound_ctes),
        ),
        assigned=columns_of,
        defaults=defaults,
    )


def kept_conflict(context: BindContext, node: ast.Insert, *, hint: str) -> KeptConflict:
    """Bind ON CONFLICT to be printed, of an INSERT that can be bound to be run. Raises SqlError 0A000 for operator classes and parts of columns."""
    clause = node.on_conflict
    assert clause is not None
    relation = context.relation(node.relation.schema, node.relation.name)
    scope = table_scope(context, relation)
    keys: list[Expr] = []
    for element in clause.elements:
        if element.opclass:
            raise not_supported("ON CONFLICT with an operator class in BEGIN ATOMIC", hint=hint)
        written = ast.ColumnRef(names=(element.name,)) if element.expr is None else element.expr
        key = resolve_unknown(bind_clause(scope, written, "INDEX"), context.env)
        if element.collation:
            collation = column_collation(context, element.collation, plain_type(key.type), None)
            key = CollateExpr(type=key.type, arg=key, collation=collation)
        keys.append(key)
    where = None if clause.element_where is None else bind_boolean(scope, clause.element_where, "INDEX WHERE")
    constraint = 0
    if clause.constraint:
        constraint = constraint_named(context, clause.constraint, relation).oid
        context.keys.add((1, constraint))  # what is there as long as the body is
    change = None if clause.action == "nothing" else _update(context, node, clause, relation, hint)
    return KeptConflict(keys=tuple(keys), key_where=where, constraint=constraint, change=change)


def _update(
    context: BindContext, node: ast.Insert, clause: ast.OnConflict, relation: RelationDef, hint: str
) -> KeptChange:
    scope = Scope(context=context)
    alias = "" if node.relation.alias is None else node.relation.alias.name
    excluded = replace(table_range(relation, "excluded"), written=Written(aliased=True))
    for made in (table_range(relation, alias), excluded):
        origins = [(relation.oid, column.attnum) for column in relation.live]
        index = scope.add_range(made, origins)
        scope.add_namespace([scope.item(index, relation=relation, aliased=made.alias != relation.name)])
    assigned_, values, defaults = _assignments(
        context, scope, clause.assignments, relation, "INSERT {} in BEGIN ATOMIC", hint
    )
    where = None if clause.where is None else bind_boolean(scope, clause.where, "WHERE")
    return KeptChange(
        kind="update",
        table=relation.oid,
        shown=Select(columns=(), targets=values, ranges=tuple(scope.finished_ranges()), where=where),
        assigned=assigned_,
        defaults=defaults,
    )


def _assignments(
    context: BindContext,
    scope: Scope,
    nodes: Sequence[ast.Assignment],
    relation: RelationDef,
    what: str,
    hint: str,
) -> tuple[tuple[tuple[int, ...], ...], tuple[Target, ...], frozenset[int]]:
    """Return of each value of SET the columns, the value, and the numbers of those that are DEFAULT, as in ``KeptChange``."""
    columns_of: list[tuple[int, ...]] = []
    values: list[Target] = []
    defaults: set[int] = set()
    for item in bind_assignments(scope, nodes):
        if item.node.steps:
            raise not_supported(what.format("of a part of a column"), hint=hint)
        attnum = target_column(relation, item.node).attnum
        same = _sub_select(item)
        if same is not None and isinstance(item.value, FieldSelect) and item.value.index:
            columns_of[-1] = (*columns_of[-1], attnum)
            continue
        columns_of.append((attnum,))
        if item.value is None:
            defaults.add(len(values))
        values.append(Target(expr=_value(item, relation, context), name=f"new_{attnum}"))
    return tuple(columns_of), tuple(values), frozenset(defaults)


def _value(item: BoundAssignment, relation: RelationDef, context: BindContext) -> Expr:
    """Return what is printed for a value."""
    column = target_column(relation, item.node)
    if item.value is None:
        return Const(type=column.type, value=None)
    return _sub_select(item) or assigned(item.value, column, context.env)


def _sub_select(item: BoundAssignment) -> SubLink | None:
    """Return the sub-select, as it was written, that gives several columns their values; None for any other value."""
    value = item.value
    made = value.arg if isinstance(value, FieldSelect) else None
    if (
        not isinstance(made, SubLink)
        or made.kind is not SubLinkKind.SCALAR
        or not isinstance(made.query, Select)
    ):
        return None
    (inner,) = made.query.ranges or (None,)
    if not isinstance(inner, SubqueryRange) or inner.alias != "*SELECT*":
        return None
    return SubLink(type=made.query.columns[0].type, kind=made.kind, query=shift_query(inner.query, -1))
