"""UPDATE and DELETE in bodies by BEGIN ATOMIC: bound to be printed (``planner.deparse_changes``), and bound anew where they run.

    UPDATE t SET a = $1, (b, c) = (SELECT ...), d = DEFAULT FROM u WHERE ... RETURNING t.a     KeptChange

What rows these change is computed by ``planner.bind.dml`` from the text; here nothing is put in the place of what was written.
"""

from __future__ import annotations

from planner import ast
from planner.bind.assign import BoundAssignment, assigned, bind_assignments, target_column
from planner.bind.context import BindContext
from planner.bind.dml import bind_delete, bind_returning, bind_update, changed_scope
from planner.bind.expr import bind_boolean
from planner.catalog import RelationDef
from planner.classify import command_tag
from planner.errors import not_supported
from planner.query import (
    Const,
    Expr,
    FieldSelect,
    KeptChange,
    Select,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Target,
)
from planner.rewrite import shift_query


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
    columns_of: list[tuple[int, ...]] = []
    values: list[Target] = []
    defaults: set[int] = set()
    for item in bind_assignments(scope, node.assignments) if isinstance(node, ast.Update) else ():
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
        assigned=tuple(columns_of),
        defaults=frozenset(defaults),
    )


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
