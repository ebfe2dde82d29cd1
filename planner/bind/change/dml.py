"""INSERT, UPDATE and DELETE: AST -> Query tree.

    INSERT INTO t (b) SELECT x FROM s      source = Select(x as t.b's type), defaults = [(a, ...)]
    UPDATE t SET b = s.y FROM s WHERE ...  source = Select(row id, old columns, new b, extras) over t, s
    DELETE FROM t USING s WHERE ...        source = Select(row id, old columns, extras) over t, s

The source is an ordinary query that any executor runs; *extras* are what RETURNING needs beside the row (see
``planner.bind.change.returning``). The order in which parts are bound is PostgreSQL's, since it decides
parameter types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import SqlError, not_supported
from planner.bind.change.arbiters import NoArbiter, target_of
from planner.bind.change.assign import (
    BoundAssignment,
    bind_assignments,
    complete_assignments,
    default_of,
    refuse_transition,
    target_column,
    target_relation,
)
from planner.bind.change.assign_part import without_parts
from planner.bind.change.current_of import bind_current_of
from planner.bind.change.insert_source import insert_source, refuse_view_defaults, with_defaults
from planner.bind.change.returning import split_returning
from planner.bind.change.updatable import (
    NoTarget,
    ViewTarget,
    assigned_of,
    conflict_checks,
    stored_checks,
    through_views,
    view_item,
    view_target,
    with_base_names,
)
from planner.bind.context import BindContext
from planner.bind.define.table.generated import generated_from, with_values
from planner.bind.expression.expr import bind_boolean
from planner.bind.query.from_ import bind_from, range_of_relation
from planner.bind.query.select import bind_targets, output_columns, resolve_targets
from planner.bind.query.with_ import bind_with
from planner.bind.scope import Scope
from planner.bind.stored.runnable import must_be_called
from planner.catalog import ColumnDef, RelationDef
from planner.facts import INT8
from planner.query import (
    ROW_ID,
    Const,
    Delete,
    Expr,
    FromItem,
    Insert,
    OnConflict,
    OutputColumn,
    QueryExpr,
    Range,
    RangeRef,
    RelationRange,
    RowCheck,
    Select,
    Target,
    Update,
    Var,
)
from planner.query.tables import table_range
from planner.types import SqlType

_ROW_ID_TYPE = SqlType(INT8)


# --- INSERT ---------------------------------------------------------------------------------------


def bind_insert(context: BindContext, node: ast.Insert) -> Insert:
    """Bind INSERT.

    Raises SqlError 42601 (counts, clauses), 42701, 42703, 42804, 42P10 (no arbiter index), 428C9 and what the
    source raises.
    """
    relation, view, refused = _target(context, node.relation, "insert")
    if view is not None:
        relation = view.inserted_base(node.overriding)
    of_view: list[ColumnDef] = []
    node = without_parts(node, relation if view is None else view.view)
    if view is None:
        columns = insert_columns(relation, node.columns)
    else:
        of_view = insert_columns(view.view, node.columns)
        if isinstance(node.query, ast.Values | None):
            of_view = _first_columns(node, of_view)
        columns = of_view

    def stored(listed: list[ColumnDef]) -> list[ColumnDef]:
        nonlocal of_view
        if view is None:
            return listed
        of_view = listed
        return [relation.column(view.base_attnum(column.attnum, "insert")) for column in listed]

    source: QueryExpr | None = None
    if node.query is not None:
        source, columns = insert_source(context, node, relation, columns, stored)
    else:
        columns = []
    if view is not None:
        view.refuse_inserted([column.attnum for column in of_view])
        refuse_view_defaults(relation, view.table, columns, node)
    named = {column.attnum for column in columns}
    defaults: list[tuple[int, Expr]] = []
    called: list[tuple[ColumnDef, Expr]] = []
    for column in relation.live:
        if column.attnum in named:
            continue
        default = default_of(column, context)
        if default is not None and must_be_called(default):
            called.append((column, default))
        elif default is not None:
            defaults.append((column.attnum, default))
    if called:
        source = with_defaults(source, columns, called)
    scope = _target_scope(context, node.relation, relation, view)
    on_conflict, no_arbiter = (
        _on_conflict(context, node.on_conflict, relation, scope, view)
        if node.on_conflict is not None
        else (None, None)
    )
    if on_conflict is not None and on_conflict.action == "update":
        scope.add_range(table_range(relation, "excluded"))  # for the hint only: it is not visible
    targets, outputs = bind_returning(scope, node.returning)
    through = None
    row_checks: tuple[RowCheck, ...] = ()
    if view is not None:
        row_checks = stored_checks(view)
        if on_conflict is not None and on_conflict.action == "update":
            row_checks = (*conflict_checks(view), *row_checks)
        changed = node.on_conflict.assignments if node.on_conflict is not None else ()
        through = through_views(view, [column.attnum for column in of_view], assigned_of(view, changed))
    if refused is not None:
        raise refused.refused([column.attnum for column in columns])
    if no_arbiter is not None:
        raise no_arbiter
    return Insert(
        through=through,
        table=relation.oid,
        attnums=tuple(column.attnum for column in (*columns, *(column for column, _ in called))),
        filled=frozenset(column.attnum for column, _ in called),
        source=source,
        defaults=tuple(defaults),
        on_conflict=on_conflict,
        returning=targets,
        columns=outputs,
        overriding=node.overriding,
        row_checks=row_checks,
        alias="" if node.relation.alias is None else node.relation.alias.name,
    )


def insert_columns(relation: RelationDef, nodes: Sequence[ast.TargetColumn]) -> list[ColumnDef]:
    """Return the columns that INSERT names, all without a list. Raises SqlError 42703, 42701."""
    if not nodes:
        return list(relation.live)
    columns: list[ColumnDef] = []
    seen: set[int] = set()
    for node in nodes:
        column = target_column(relation, node, inserting=True)
        if column.attnum in seen:
            raise SqlError("42701", f'column "{node.name}" specified more than once', span=node.span)
        seen.add(column.attnum)
        columns.append(column)
    return columns


# --- ON CONFLICT ------------------------------------------------------------------------------------


def _on_conflict(
    context: BindContext,
    node: ast.OnConflict,
    relation: RelationDef,
    outer: Scope,
    view: ViewTarget | None,
) -> tuple[OnConflict, SqlError | None]:
    """Return the clause, and why no index serves it, for when all else is found right."""
    if node.action == "update" and not node.elements and not node.constraint:
        raise SqlError(
            "42601",
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).",
            span=node.span,
        )
    assignments = node.assignments
    if view is not None:
        if node.constraint:  # PostgreSQL looks for it at the view, which has none
            raise SqlError(
                "42704", f'constraint "{node.constraint}" for table "{view.view.name}" does not exist'
            )
        node = _over_base_table(node, view)
        assignments = with_base_names(view, assignments)
    missing: SqlError | None = None
    try:
        target_clause = target_of(context, node, relation)
    except NoArbiter as found:
        target_clause, missing = found.clause, found.error
    if node.action == "nothing":
        return target_clause, missing
    scope = Scope(context=context, ctes=outer.ctes)
    origins = [(relation.oid, column.attnum) for column in relation.live]
    target = outer.ranges[0]
    for made, aliased in ((target, outer.namespace[0].aliased), (table_range(relation, "excluded"), True)):
        index = scope.add_range(made, origins)
        item = scope.item(index, relation=relation, aliased=aliased)
        if view is not None:
            item = view_item(scope, view, ast.TableRef(name=item.name), index, item)
        item.stored = made is target
        scope.add_namespace([item])
    bound = bind_assignments(scope, assignments)
    where = bind_boolean(scope, node.where, "WHERE") if node.where is not None else None
    clause = replace(target_clause, assignments=_assigned(relation, view, bound, context), where=where)
    return clause, missing


# --- UPDATE, DELETE ---------------------------------------------------------------------------------


def _target(
    context: BindContext, node: ast.TableRef, what: str
) -> tuple[RelationDef, ViewTarget | None, NoTarget | None]:
    """Return the table that DML writes, and the view that it names where it is written through that; why it
    cannot be, for when all else is found right.

    A view with INSTEAD OF triggers for what is done stands for itself, as a table would.
    """
    refuse_transition(context, node)
    found = context.relation(node.schema, node.name, node.span, catalog=node.catalog, read=True)
    if found.kind == "m":
        error = SqlError("42809", f'cannot change materialized view "{found.name}"')
        return found, None, NoTarget(levels=(), what=what, error=error)
    if found.kind != "v" or found.virtual:
        return target_relation(context, node), None, None
    if found.has_instead(what[0]):
        return found, None, None
    view = view_target(context, found, what)
    return (found, None, view) if isinstance(view, NoTarget) else (view.base, view, None)


def _first_columns(node: ast.Insert, columns: list[ColumnDef]) -> list[ColumnDef]:
    """Return as many columns of a view as VALUES, or DEFAULT VALUES, gives: INSERT without a list may give fewer."""
    if node.query is None:
        return []
    return (
        columns
        if node.columns or not isinstance(node.query, ast.Values)
        else columns[: len(node.query.rows[0])]
    )


def _over_base_table(node: ast.OnConflict, view: ViewTarget) -> ast.OnConflict:
    """Return a conflict target under the names of the base table. Raises SqlError 42703; 0A000 for expressions."""
    by_name = {column.name: column.attnum for column in view.view.live}
    elements = []
    for element in node.elements:
        if element.expr is not None and not isinstance(element.expr, ast.ColumnRef):
            raise not_supported("ON CONFLICT with an expression through a view", span=node.infer_span)
        name = element.name or element.expr.names[-1]  # type: ignore[union-attr]
        if name not in by_name:
            raise SqlError("42703", f'column "{name}" does not exist', span=node.infer_span)
        view.named.add(by_name[name])
        expr = view.levels[0].exprs[by_name[name] - 1]
        if not isinstance(expr, Var) or expr.attnum <= 0:
            raise SqlError(
                "42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification"
            )
        elements.append(replace(element, name=view.base.column(expr.attnum).name, expr=None))
    if node.element_where is not None:
        raise not_supported("ON CONFLICT ... WHERE through a view", span=node.infer_span)
    return replace(node, elements=tuple(elements))


def _target_scope(
    context: BindContext, node: ast.TableRef, relation: RelationDef, view: ViewTarget | None = None
) -> Scope:
    """Return a scope whose range 0 is the table to be changed, under its alias."""
    scope = Scope(context=context, parent=context.around)
    reads = set(context.reads)
    _, item = range_of_relation(scope, relation, _without_columns(node, view))
    context.reads.intersection_update(reads)  # the target is written; a read of it is noted where it happens
    if view is not None:
        item = view_item(scope, view, node, 0, item)
    scope.add_namespace([item])
    return scope


def _assigned(
    relation: RelationDef, view: ViewTarget | None, bound: Sequence[BoundAssignment], context: BindContext
) -> tuple[tuple[int, Expr], ...]:
    if view is None:
        return complete_assignments(relation, bound, context.env)
    return complete_assignments(view.with_own_defaults(), bound, context.env, through_view=True)


def bind_update(context: BindContext, node: ast.Update) -> Update:
    """Bind UPDATE. Raises SqlError 42601, 42703, 42804, 428C9 and what its clauses raise."""
    relation, view, refused = _target(context, node.relation, "update")
    scope, from_ = changed_scope(context, node.relation, relation, node.with_, node.from_, view)
    assignments = node.assignments if view is None else with_base_names(view, node.assignments)
    # what SET says comes last, as in PostgreSQL: of several mistakes the other's is told, and parameters take
    # the types they have there
    where = _where(scope, node.where, relation, view)
    returning, outputs = bind_returning(scope, node.returning)
    values = _assigned(relation, view, bind_assignments(scope, assignments), context)
    new = dict(values)
    if returning and relation.generated:
        computed = generated_from(relation, new, context.catalog)
        new |= {attnum: with_values(expr, new) for attnum, expr in computed.items()}
    through = None
    if view is not None:
        through = through_views(view, updated=assigned_of(view, node.assignments))
    returning, extras = split_returning(returning, new, final=not _changed_by_triggers(relation))
    source = rows_to_change(
        scope, relation, from_, where, [*((f"new_{attnum}", expr) for attnum, expr in values)], extras
    )
    if view is not None:
        source = view.behind(source, where)
    if refused is not None:
        raise refused.refused([attnum for attnum, _ in values])
    return Update(
        through=through,
        table=relation.oid,
        source=source,
        assigned=tuple(attnum for attnum, _ in values),
        returning=returning,
        columns=outputs,
        row_checks=() if view is None else stored_checks(view),
        current_of=isinstance(node.where, ast.CurrentOf),
    )


def _changed_by_triggers(relation: RelationDef) -> bool:
    """Tell whether triggers may give an updated row other values than the statement does."""
    return any(t.timing in "bi" and t.row and "u" in t.events for t in relation.triggers)


def bind_delete(context: BindContext, node: ast.Delete) -> Delete:
    """Bind DELETE. Raises what its clauses raise."""
    relation, view, refused = _target(context, node.relation, "delete")
    scope, from_ = changed_scope(context, node.relation, relation, node.with_, node.using, view)
    where = _where(scope, node.where, relation, view)
    returning, outputs = bind_returning(scope, node.returning)
    through = None
    if view is not None:
        through = through_views(view)
    returning, extras = split_returning(returning, {}, deletes=True)
    source = rows_to_change(scope, relation, from_, where, [], extras)
    if view is not None:
        source = view.behind(source, where)
    if refused is not None:
        raise refused.refused()
    return Delete(
        table=relation.oid,
        source=source,
        returning=returning,
        columns=outputs,
        through=through,
        current_of=isinstance(node.where, ast.CurrentOf),
    )


def _where(
    scope: Scope, node: ast.Expression | None, relation: RelationDef, view: ViewTarget | None
) -> Expr | None:
    if isinstance(node, ast.CurrentOf):
        return bind_current_of(scope.context, relation, view, node)
    return None if node is None else bind_boolean(scope, node, "WHERE")


def changed_scope(
    context: BindContext,
    node: ast.TableRef,
    relation: RelationDef,
    with_: ast.With | None,
    others: Sequence[ast.FromNode],
    view: ViewTarget | None = None,
) -> tuple[Scope, tuple[FromItem, ...]]:
    """Bind WITH, the target as range 0 and the other FROM items (which may not look at the target)."""
    scope = Scope(context=context, parent=context.around)
    if with_ is not None:
        bind_with(scope, with_)
    _, item = range_of_relation(scope, relation, _without_columns(node, view))
    if view is not None:
        item = view_item(scope, view, node, 0, item)
        for condition in view.where:
            scope.use_all(condition)
    scope.namespace.append(item)
    from_: tuple[FromItem, ...] = (RangeRef(range=0),)
    if others:
        item.lateral_only, item.lateral_ok = True, False
        from_ = (*from_, *bind_from(scope, others))
        item.lateral_only, item.lateral_ok = False, True
    return scope, from_


def _without_columns(node: ast.TableRef, view: ViewTarget | None) -> ast.TableRef:
    """Return the target without the names that its alias gives to columns, which are the view's."""
    if view is None or node.alias is None:
        return node
    return replace(node, alias=replace(node.alias, columns=()))


def rows_to_change(
    scope: Scope,
    relation: RelationDef,
    from_: tuple[FromItem, ...],
    where: Expr | None,
    values: Sequence[tuple[str, Expr]],
    extras: Sequence[Expr],
) -> Select:
    """Build the query that finds the rows: row id (0 of a view's rows), old columns, new values, extras."""
    of_view = relation.kind == "v"
    row_id: Expr = Const(type=_ROW_ID_TYPE, value=0)
    if not of_view:
        row_id = Var(type=_ROW_ID_TYPE, range=0, attnum=ROW_ID, name="row_id")
    outputs: list[tuple[str, Expr]] = [("row_id", row_id)]
    for column in relation.live:
        outputs.append((column.name, Var(type=column.type, range=0, attnum=column.attnum, name=column.name)))
    outputs.extend(values)
    outputs.extend((f"extra_{number}", extra) for number, extra in enumerate(extras, 1))
    ranges: list[Range] = list(scope.finished_ranges())
    first = ranges[0]
    if not of_view:
        if not isinstance(first, RelationRange):
            raise AssertionError(f"the rows of {type(first).__name__} are to be changed")
        every = frozenset(column.attnum for column in relation.live) | {ROW_ID}
        ranges[0] = replace(first, used=first.used | every)
    return Select(
        columns=tuple(OutputColumn(name=name, type=expr.type) for name, expr in outputs),
        targets=tuple(Target(expr=expr, name=name) for name, expr in outputs),
        ranges=tuple(ranges),
        from_=from_,
        where=where,
        ctes=tuple(scope.bound_ctes),
    )


# --- RETURNING --------------------------------------------------------------------------------------


def bind_returning(
    scope: Scope, nodes: Sequence[ast.TargetItem]
) -> tuple[tuple[Target, ...], tuple[OutputColumn, ...]]:
    """Bind what RETURNING gives. Raises SqlError 42601 for nothing."""
    if not nodes:
        return (), ()
    targets = bind_targets(scope, nodes, "RETURNING")
    if not targets:  # the rows have no columns
        raise SqlError("42601", "RETURNING must have at least one column", span=nodes[0].span)
    resolve_targets(scope, targets)
    return tuple(targets), output_columns(scope, targets)
