"""INSERT, UPDATE, DELETE and MERGE in bodies by BEGIN ATOMIC: bound to be printed
(``planner.deparse.changes``), and bound anew where they run.

    UPDATE t SET a = $1, (b, c) = (SELECT ...), d = DEFAULT FROM u WHERE ... RETURNING t.a     KeptChange

What rows these change is computed by ``planner.bind.change.dml`` from the text; here nothing is put in the
place of what was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgwire.codecs.settings import STORED_TEXT
from planner import ast
from planner.base.errors import not_supported
from planner.bind.change.arbiters import constraint_named
from planner.bind.change.assign import BoundAssignment, assigned, bind_assignments, target_column
from planner.bind.change.changing_items import modifies, read_by_changes
from planner.bind.change.dml import (
    bind_delete,
    bind_insert,
    bind_returning,
    bind_update,
    changed_scope,
    insert_columns,
)
from planner.bind.change.insert_source import insert_cells, query_as_written
from planner.bind.change.merge import bind_merge
from planner.bind.context import BindContext
from planner.bind.define.table.table_parts import column_collation
from planner.bind.expression.expr import bind_boolean, bind_clause
from planner.bind.scope import Scope
from planner.bind.stored import table_scope
from planner.catalog import RelationDef
from planner.conversion.casts import coerce_to_boolean, resolve_unknown
from planner.query import (
    CollateExpr,
    Const,
    Expr,
    FieldSelect,
    Insert,
    KeptAction,
    KeptChange,
    KeptConflict,
    KeptMerge,
    OutputColumn,
    Select,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Target,
    Values,
    Written,
)
from planner.query.numbered import numbered
from planner.query.rewrite import shift_query
from planner.query.tables import table_range
from planner.query.walk import walk
from planner.statements.parsed import command_tag
from planner.types.domains import plain_type


def kept_item(scope: Scope, item: ast.Cte) -> tuple[Insert | KeptChange, tuple[OutputColumn, ...]]:
    """Bind an item of WITH that changes data to be printed; returns it with the columns that RETURNING gives.
    Raises as ``kept_change`` does.
    """
    context = replace(scope.context, around=scope, changing=frozenset())
    node = item.query
    if isinstance(node, ast.Insert):
        insert = kept_insert(context, node, hint=None)
        return insert, insert.columns
    if not isinstance(node, ast.Update | ast.Delete):
        raise AssertionError(f"a change that is kept is {type(node).__name__}")
    made = kept_change(context, node, hint=None, runs=False)
    return made, made.shown.columns


def kept_insert(context: BindContext, node: ast.Insert, *, hint: str | None, runs: bool = True) -> Insert:
    """Bind an INSERT to be printed.

    Raises what binding it to be run raises; SqlError 0A000 for DEFAULT among values, views, defaults that
    call functions, and WITH where there is no source that it is part of or ON CONFLICT or RETURNING reads
    from it.
    """
    if node.query is not None and any(isinstance(item, ast.Default) for item in walk(node.query)):
        raise not_supported("INSERT of DEFAULT in BEGIN ATOMIC", hint=hint)
    if node.with_ is not None and (node.query is None or read_by_changes(node)):
        what = "without a source" if node.query is None else "that RETURNING or ON CONFLICT reads"
        raise not_supported(f"INSERT with WITH {what} in BEGIN ATOMIC", hint=hint)
    bound = bind_insert(replace(context, defines=True), node)
    if bound.through is not None or bound.filled:
        what = "through a view" if bound.through is not None else "with a default that calls a function"
        raise not_supported(f"INSERT {what} in BEGIN ATOMIC", hint=hint)
    if (
        bound.source is not None
        and not isinstance(bound.source, Values)
        and not isinstance(node.query, ast.Values)
    ):
        bound = replace(bound, source=query_as_written(context, node, bound.table))
    bound = replace(
        bound, alias=_alias_of(context, node), with_items=0 if node.with_ is None else len(node.with_.ctes)
    )
    if node.on_conflict is None:
        return bound
    return replace(bound, on_conflict=None, kept=kept_conflict(context, node, hint=hint))


def kept_merge(context: BindContext, node: ast.Merge, *, runs: bool = True) -> KeptMerge:
    """Bind a MERGE to be printed. Raises what binding it to be run raises; SqlError 0A000 for parts of
    columns and items of WITH that change rows.
    """
    if runs and not modifies(node):
        bind_merge(context, node)
    relation = context.relation(node.relation.schema, node.relation.name)
    scope, from_ = changed_scope(context, node.relation, relation, node.with_, (node.source,))
    on = bind_boolean(scope, node.on, "JOIN/ON")
    actions = tuple([_kept_action(context, scope, relation, clause) for clause in node.clauses])
    shown = Select(
        columns=(), targets=(), ranges=tuple(scope.finished_ranges()), from_=from_[1:], where=on,
        ctes=tuple(scope.bound_ctes),
    )  # fmt: skip
    return KeptMerge(table=relation.oid, shown=shown, actions=actions)


def _kept_action(
    context: BindContext, scope: Scope, relation: RelationDef, node: ast.MergeWhen
) -> KeptAction:
    visible = scope.namespace
    if not node.matched:
        scope.namespace = [item for item in visible if item.range != 0]
    condition = None
    if node.condition is not None:
        condition = coerce_to_boolean(bind_clause(scope, node.condition, "MERGE WHEN"), "WHEN", context.env)
    assigned_: tuple[tuple[int, ...], ...] = ()
    values: tuple[Expr, ...] = ()
    defaults: frozenset[int] = frozenset()
    if node.action == "update":
        assigned_, targets, defaults = _assignments(
            context, scope, node.assignments, relation, "MERGE {} in BEGIN ATOMIC", None
        )
        values = tuple(target.expr for target in targets)
    elif node.values is not None:
        if any(column.steps for column in node.columns):
            raise not_supported("MERGE of a part of a column in BEGIN ATOMIC")
        columns = insert_columns(relation, node.columns)
        before, scope.clause = scope.clause, "VALUES"
        cells = insert_cells(scope, node.values)
        scope.clause = before
        columns = columns[: len(cells)]
        assigned_ = tuple((column.attnum,) for column in columns)
        values = tuple(
            Const(type=column.type, value=None)
            if isinstance(cell, ast.Default)
            else assigned(cell, column, context.env)
            for cell, column in zip(cells, columns, strict=True)
        )
        defaults = frozenset(i for i, cell in enumerate(cells) if isinstance(cell, ast.Default))
    scope.namespace = visible
    return KeptAction(
        matched=node.matched, action=node.action, condition=condition, assigned=assigned_, values=values,
        defaults=defaults, overriding=node.overriding,
    )  # fmt: skip


def kept_change(
    context: BindContext, node: ast.Update | ast.Delete, *, hint: str | None, runs: bool = True
) -> KeptChange:
    """Bind an UPDATE or DELETE to be printed; ``runs``: find out first that it can be bound to be run.

    Raises what binding it to be run raises; SqlError 0A000 for changes through views, of rows of cursors and
    of parts of columns.
    """
    if runs and not modifies(node):
        _ = bind_update(context, node) if isinstance(node, ast.Update) else bind_delete(context, node)
    relation = context.relation(node.relation.schema, node.relation.name)
    what = f"{command_tag(node)} {{}} in BEGIN ATOMIC"
    if relation.kind == "v":
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


def kept_conflict(context: BindContext, node: ast.Insert, *, hint: str | None) -> KeptConflict:
    """Bind ON CONFLICT to be printed, of an INSERT that can be bound to be run. Raises SqlError 0A000 for
    operator classes and parts of columns.
    """
    clause = node.on_conflict
    if clause is None:
        raise AssertionError("an INSERT has no ON CONFLICT")
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


def _alias_of(context: BindContext, node: ast.Insert) -> str:
    """Return the alias of an INSERT's table; "" for none, and where a stored text has a number alone
    (``planner.query.numbered``).
    """
    alias = "" if node.relation.alias is None else node.relation.alias.name
    found = numbered(alias) if context.env.settings is STORED_TEXT else None
    return alias if found is None else found.name if found.aliased else ""


def _update(
    context: BindContext, node: ast.Insert, clause: ast.OnConflict, relation: RelationDef, hint: str | None
) -> KeptChange:
    scope = Scope(context=context)
    alias = "" if node.relation.alias is None else node.relation.alias.name
    row = table_range(relation, _alias_of(context, node))
    excluded = replace(table_range(relation, "excluded"), written=Written(aliased=True))
    for made, name in ((row, alias or relation.name), (excluded, "excluded")):
        origins = [(relation.oid, column.attnum) for column in relation.live]
        index = scope.add_range(made, origins)
        item = scope.item(index, relation=relation, aliased=name != relation.name)
        item.name = name
        scope.add_namespace([item])
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
    hint: str | None,
) -> tuple[tuple[tuple[int, ...], ...], tuple[Target, ...], frozenset[int]]:
    """Return of each value of SET the columns, the value, and the numbers of those that are DEFAULT, as in
    ``KeptChange``.
    """
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
