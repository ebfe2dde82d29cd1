"""FROM: tables, views, sub-selects, functions and joins become ranges, a join tree and a namespace.

    bind_from(scope, items)   fills scope.ranges and scope.namespace, returns the join trees

Items are read left to right; those already read are visible to LATERAL ones only, until FROM ends. A view is
its stored query as a SubqueryRange, bound under its own search path. A WITH name hides relations of that name.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from planner import ast
from planner.bind.columns import function_columns
from planner.bind.context import WithStep
from planner.bind.expr import bind_boolean, bind_clause
from planner.bind.output_names import column_name
from planner.casts import resolve_unknown
from planner.catalog import RelationDef
from planner.common_types import coerce_to_common, select_common_type, select_common_typmod
from planner.composite import is_composite
from planner.domains import base_oid
from planner.errors import Span, SqlError
from planner.facts import BOOL, INT8, RECORD, facts
from planner.query import (
    BoolExpr,
    CoalesceExpr,
    CteRange,
    Expr,
    FromItem,
    FuncExpr,
    FunctionRange,
    Join,
    JoinKind,
    RangeColumn,
    RangeRef,
    RelationRange,
    SqlCall,
    StepRange,
    SubqueryRange,
    Var,
)
from planner.resolve import make_operator
from planner.scope import Item, Origin, Scope, check_names, index_names
from planner.types import SqlType

_JOIN_KINDS = {
    "inner": JoinKind.INNER,
    "left": JoinKind.LEFT,
    "right": JoinKind.RIGHT,
    "full": JoinKind.FULL,
}


def bind_from(scope: Scope, nodes: Sequence[ast.FromNode]) -> tuple[FromItem, ...]:
    """Bind a FROM list into ``scope``; returns its items, to be cross-joined.

    Raises SqlError 42P01, 42712, 42702, 42703, 42P10, 42804.
    """
    trees: list[FromItem] = []
    before = scope.clause
    scope.clause = "FROM"
    for node in nodes:
        tree, items = bind_from_item(scope, node)
        check_names(scope.namespace, items)
        for item in items:
            item.lateral_only = True
            item.lateral_ok = True
        scope.namespace.extend(items)
        trees.append(tree)
    for item in scope.namespace:
        item.lateral_only = False
    scope.clause = before
    return tuple(trees)


def bind_from_item(scope: Scope, node: ast.FromNode) -> tuple[FromItem, list[Item]]:
    """Bind one FROM entry; returns its tree and what it makes visible."""
    if isinstance(node, ast.TableRef):
        index, item = bind_table(scope, node)
    elif isinstance(node, ast.SubqueryRef):
        index, item = _subquery(scope, node)
    elif isinstance(node, ast.FunctionRef):
        index, item = _function(scope, node)
    else:
        return _join(scope, node)
    return RangeRef(range=index), [item]


# --- columns and aliases ------------------------------------------------------------------------


def _renamed(
    columns: Sequence[RangeColumn], alias: ast.Alias | None, name: str, what: str = "table"
) -> tuple[RangeColumn, ...]:
    """Apply an alias's column names. Raises 42P10 when there are too many."""
    if alias is None or not alias.columns:
        return tuple(columns)
    if len(alias.columns) > len(columns):
        raise SqlError(
            "42P10",
            f'{what} "{name}" has {len(columns)} columns available but '
            f"{len(alias.columns)} columns specified",
        )
    return tuple(
        [
            replace(column, name=alias.columns[i]) if i < len(alias.columns) else column
            for i, column in enumerate(columns)
        ]
    )


_COLUMN_CACHE: dict[int, tuple[RelationDef, tuple[RangeColumn, ...], list[str], dict[str, int]]] = {}
_COLUMN_CACHE_LIMIT = 4096


def _relation_columns(
    relation: RelationDef,
) -> tuple[tuple[RangeColumn, ...], list[str], dict[str, int]]:
    """Return a relation's live columns, their names and name index (kept while the definition lives)."""
    key = id(relation)
    cached = _COLUMN_CACHE.get(key)
    if cached is not None and cached[0] is relation:
        return cached[1], cached[2], cached[3]
    columns = tuple(
        [
            RangeColumn(name=column.name, type=column.declared, attnum=column.attnum)
            for column in relation.live
        ]
    )
    names = [column.name for column in columns]
    if len(_COLUMN_CACHE) >= _COLUMN_CACHE_LIMIT:
        _COLUMN_CACHE.clear()
    _COLUMN_CACHE[key] = (relation, columns, names, index_names(names))
    return columns, names, _COLUMN_CACHE[key][3]


def bind_table(scope: Scope, node: ast.TableRef) -> tuple[int, Item]:
    """Bind a relation name in FROM: WITH item, table, virtual relation or view."""
    if not node.schema:
        entry = scope.find_cte(node.name)
        if entry is not None:
            return _cte_reference(scope, node, *entry)
        if any(node.name in level.future_ctes for _, level in scope.levels()):
            _refuse_future(scope, node)
    context = scope.context
    if not node.schema and node.name in context.steps:
        return _step_reference(scope, node, context.steps[node.name])
    if not node.schema and node.name in context.future_steps:
        _refuse_future(scope, node)
    relation = context.relation(node.schema, node.name, node.span, catalog=node.catalog)
    return range_of_relation(scope, relation, node)


def _step_reference(scope: Scope, node: ast.TableRef, step: WithStep) -> tuple[int, Item]:
    if step.columns is None:
        raise SqlError("0A000", f'WITH query "{node.name}" does not have a RETURNING clause', span=node.span)
    alias = node.alias.name if node.alias is not None else node.name
    columns = tuple(
        [
            RangeColumn(name=column.name, type=column.type, attnum=position)
            for position, column in enumerate(step.columns, 1)
        ]
    )
    renamed = _renamed(columns, node.alias, alias)
    index = scope.add_range(StepRange(alias=alias, columns=renamed, step=step.number, name=node.name))
    return index, scope.item(index, aliased=node.alias is not None)


def _refuse_future(scope: Scope, node: ast.TableRef) -> None:
    """Raise 42P01 with PostgreSQL's advice when only a later WITH item has the name."""
    if scope.context.find_relation("", node.name) is None:
        raise SqlError(
            "42P01",
            f'relation "{node.name}" does not exist',
            detail=f'There is a WITH item named "{node.name}", but it cannot be referenced from '
            "this part of the query.",
            hint="Use WITH RECURSIVE, or re-order the WITH items to remove forward references.",
            span=node.span,
        )


def range_of_relation(scope: Scope, relation: RelationDef, node: ast.TableRef) -> tuple[int, Item]:
    """Add a relation as a range of ``scope`` (DML targets too); returns its index and namespace entry.

    Raises SqlError 42809 for an index.
    """
    if relation.kind == "c":
        raise SqlError("42809", f'"{relation.name}" is a composite type', span=node.span)
    if relation.kind == "i":
        raise SqlError(
            "42809",
            f'"{relation.name}" is an index',
            span=node.span,
        )
    alias = node.alias.name if node.alias is not None else node.name
    context = scope.context
    if relation.kind == "v" and not relation.virtual:
        return _view(scope, relation, node, alias)
    columns, names, index = _relation_columns(relation)
    renamed = columns
    if node.alias is not None and node.alias.columns:
        renamed = _renamed(columns, node.alias, alias)
        names = [column.name for column in renamed]
        index = index_names(names)
    made = RelationRange(
        alias=alias,
        columns=renamed,
        oid=relation.oid,
        schema=relation.schema,
        name=relation.name,
        virtual=relation.virtual or relation.kind == "S",
        materialized=relation.kind == "m",
        only=node.only and relation.kind == "p",
    )
    context.reads.add(relation.oid)
    if made.virtual:
        context.flags.add("virtual")
    position = scope.add_range(made, [(relation.oid, column.attnum) for column in columns])
    item = Item(
        name=alias,
        names=names,
        index=index,
        range=position,
        columns=renamed,
        relation=relation,
        aliased=node.alias is not None,
    )
    return position, item


def _view(scope: Scope, relation: RelationDef, node: ast.TableRef, alias: str) -> tuple[int, Item]:
    from planner.bind.query import bind_view

    query = bind_view(scope.context, relation)
    live = relation.live
    columns = tuple(
        [
            RangeColumn(name=column.name, type=output.type, attnum=position)
            for position, (column, output) in enumerate(zip(live, query.columns, strict=True), 1)
        ]
    )
    renamed = _renamed(columns, node.alias, alias)
    made = SubqueryRange(
        alias=alias,
        columns=renamed,
        query=query,
        view=(relation.oid, relation.schema, relation.name),
    )
    index = scope.add_range(made, [(relation.oid, column.attnum) for column in live])
    item = scope.item(index, relation=relation, aliased=node.alias is not None)
    return index, item


def _cte_reference(scope: Scope, node: ast.TableRef, level: int, entry: object) -> tuple[int, Item]:
    from planner.scope import CteEntry

    assert isinstance(entry, CteEntry)
    entry.references += 1
    alias = node.alias.name if node.alias is not None else node.name
    columns = tuple(
        [
            RangeColumn(name=column.name, type=column.type, attnum=position)
            for position, column in enumerate(entry.columns, 1)
        ]
    )
    made = CteRange(
        alias=alias,
        columns=_renamed(columns, node.alias, alias),
        name=entry.name,
        level=level,
        recursive_ref=entry.recursive,
    )
    index = scope.add_range(made, entry.origins or None)
    return index, scope.item(index, aliased=node.alias is not None)


# --- sub-selects --------------------------------------------------------------------------------


def _subquery(scope: Scope, node: ast.SubqueryRef) -> tuple[int, Item]:
    from planner.bind.query import bind_query

    assert node.alias is not None
    before = scope.lateral_active
    scope.lateral_active = node.lateral
    try:
        query = bind_query(scope.context, node.query, scope)
    finally:
        scope.lateral_active = before
    columns = tuple(
        [
            RangeColumn(name=column.name, type=column.type, attnum=position)
            for position, column in enumerate(query.columns, 1)
        ]
    )
    alias = node.alias.name
    made = SubqueryRange(
        alias=alias,
        columns=_renamed(columns, node.alias, alias),
        query=query,
        lateral=node.lateral,
    )
    origins = [(column.table_oid, column.attnum) for column in query.columns]
    index = scope.add_range(made, origins)
    return index, scope.item(index, aliased=True)


# --- functions ----------------------------------------------------------------------------------


def _function(scope: Scope, node: ast.FunctionRef) -> tuple[int, Item]:
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
    made = FunctionRange(
        alias=alias_name,
        slots=slots if any(places is not None for places in slots) else (),
        columns=_renamed(columns, node.alias, alias_name),
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
    if single and not node.ordinality and slots[0] is not None:
        item.row = base_oid(calls[0][0].type.oid)
    return index, item


def _attribute_places(scope: Scope, expr: Expr) -> tuple[int, ...] | None:
    """Return where values of a composite type have its attributes, None for any other type."""
    row = scope.context.env.row_type(base_oid(expr.type.oid)) if is_composite(expr.type.oid) else None
    return None if row is None else row.slots


_Call = tuple[Expr, str, tuple[ast.ColumnDefinition, ...]]


def _reads_outside(calls: Sequence[_Call]) -> bool:
    from planner.walk import walk

    return any(
        isinstance(found, Var) and found.level == 0 and found.range >= 0
        for expr, _, _ in calls
        for found in walk(expr)
    )


def _calls(scope: Scope, node: ast.FunctionRef) -> list[_Call]:
    from planner.bind.funcs import bind_call

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


def _function_output(
    scope: Scope, expr: Expr, name: str, definitions: Sequence[ast.ColumnDefinition], span: Span | None
) -> list[tuple[str, SqlType]]:
    """Return (name, type) of the columns a function contributes."""
    if isinstance(expr, FuncExpr):
        declared = function_columns(expr)
        if declared is not None and (len(declared) > 1 or expr.type.oid == RECORD):
            if definitions:
                raise SqlError(
                    "42601",
                    "a column definition list is redundant for a function with OUT parameters",
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


# --- joins --------------------------------------------------------------------------------------


def _visible_columns(scope: Scope, items: Sequence[Item]) -> list[tuple[str, Expr]]:
    return [
        (name, _column(scope, item, position))
        for item in items
        if item.by_column
        for position, name in enumerate(item.names)
    ]


def _column(scope: Scope, item: Item, position: int) -> Expr:
    """Return a column's expression without noting it as used (a join's column list is no use)."""
    if item.range >= 0:
        column = item.columns[position]
        return Var(type=column.type, range=item.range, attnum=column.attnum, name=column.name)
    return item.exprs[position]


def _join(scope: Scope, node: ast.JoinRef) -> tuple[FromItem, list[Item]]:
    left_tree, left_items = bind_from_item(scope, node.left)
    depth = len(scope.namespace)
    lateral_ok = node.kind in ("inner", "left")
    for item in left_items:
        item.lateral_only, item.lateral_ok = True, lateral_ok
    scope.namespace.extend(left_items)
    right_tree, right_items = bind_from_item(scope, node.right)
    del scope.namespace[depth:]
    check_names(left_items, right_items)
    for item in left_items:
        item.lateral_only, item.lateral_ok = False, True
    kind = _JOIN_KINDS[node.kind]
    using = node.using
    if node.natural:
        left_names = [name for name, _ in _visible_columns(scope, left_items)]
        right_names = {name for name, _ in _visible_columns(scope, right_items)}
        using = tuple([name for name in left_names if name in right_names])
    items = [*left_items, *right_items]
    on: Expr | None = None
    merged_item: Item | None = None
    if using or node.natural:
        on, merged_item = _using(scope, node, kind, using, left_items, right_items)
    elif node.on is not None:
        on = _join_condition(scope, node.on, items)
    tree = Join(kind=kind, left=left_tree, right=right_tree, on=on, using=tuple(using))
    if merged_item is None and node.alias is None:
        return tree, items
    if merged_item is None:
        columns = _visible_columns(scope, items)
        merged_item = _join_item(columns)
    for item in items:
        item.by_column = False
        if node.alias is not None:
            item.by_table = False
    if node.alias is not None:
        merged_item.name, merged_item.by_table, merged_item.aliased = node.alias.name, True, True
        if node.alias.columns:
            if len(node.alias.columns) > len(merged_item.names):
                raise SqlError(
                    "42P10",
                    f'join expression "{node.alias.name}" has {len(merged_item.names)} columns '
                    f"available but {len(node.alias.columns)} columns specified",
                )
            names = [*node.alias.columns, *merged_item.names[len(node.alias.columns) :]]
            merged_item.names, merged_item.index = names, index_names(names)
    extra: list[Item] = []
    if node.using_alias is not None:
        width = len(using)
        names = list(merged_item.names[:width])
        extra.append(
            Item(
                name=node.using_alias.name,
                names=names,
                index=index_names(names),
                exprs=merged_item.exprs[:width],
                aliased=True,
                by_column=False,
            )
        )
        check_names(items, extra)
    return tree, [*[item for item in items if item.by_table], merged_item, *extra]


def _join_item(columns: Sequence[tuple[str, Expr]]) -> Item:
    names = [name for name, _ in columns]
    return Item(
        name="",
        names=names,
        index=index_names(names),
        exprs=[expr for _, expr in columns],
        by_table=False,
    )


def _join_condition(scope: Scope, node: ast.Expression, items: Sequence[Item]) -> Expr:
    """Bind ON: it sees the two sides alone, and outer queries."""
    outside = scope.namespace
    lateral = scope.lateral_active
    scope.namespace = list(items)
    scope.lateral_active = True
    try:
        return bind_boolean(scope, node, "JOIN/ON")
    finally:
        scope.namespace = outside
        scope.lateral_active = lateral


def _using(
    scope: Scope,
    node: ast.JoinRef,
    kind: JoinKind,
    using: Sequence[str],
    left_items: Sequence[Item],
    right_items: Sequence[Item],
) -> tuple[Expr | None, Item]:
    """Bind USING and NATURAL: the condition, and the join's columns with the merged ones first."""
    lefts = _visible_columns(scope, left_items)
    rights = _visible_columns(scope, right_items)
    env = scope.context.env
    conditions: list[Expr] = []
    merged: list[tuple[str, Expr]] = []
    seen: set[str] = set()
    for name in using:
        if name in seen and not node.natural:
            raise SqlError("42701", f'column name "{name}" appears more than once in USING clause')
        seen.add(name)
        left = _only(lefts, name, "left")
        right = _only(rights, name, "right")
        scope.use_all(left)
        scope.use_all(right)
        conditions.append(make_operator("=", left, right, env))
        merged.append((name, _merged(scope, kind, left, right)))
    on: Expr | None = None
    if len(conditions) == 1:
        on = conditions[0]
    elif conditions:
        on = BoolExpr(type=SqlType(BOOL), kind="and", args=tuple(conditions))
    rest = [pair for pair in lefts if pair[0] not in seen]
    rest += [pair for pair in rights if pair[0] not in seen]
    return on, _join_item([*merged, *rest])


def _only(columns: Sequence[tuple[str, Expr]], name: str, side: str) -> Expr:
    found = [expr for column, expr in columns if column == name]
    if not found:
        raise SqlError("42703", f'column "{name}" specified in USING clause does not exist in {side} table')
    if len(found) > 1:
        raise SqlError("42702", f'common column name "{name}" appears more than once in {side} table')
    return found[0]


def _merged(scope: Scope, kind: JoinKind, left: Expr, right: Expr) -> Expr:
    """Return the one column USING makes of two: the side that is never null-extended, else COALESCE."""
    env = scope.context.env
    oid = select_common_type([left, right], "JOIN/USING")
    typmod = select_common_typmod([left, right], oid)
    a = coerce_to_common(left, oid, "JOIN/USING", env)
    b = coerce_to_common(right, oid, "JOIN/USING", env)
    if kind is JoinKind.INNER:
        return a if isinstance(a, Var) or not isinstance(b, Var) else b
    if kind is JoinKind.LEFT:
        return a
    if kind is JoinKind.RIGHT:
        return b
    return CoalesceExpr(type=SqlType(oid, typmod), args=(a, b))


def column_origins(scope: Scope, exprs: Sequence[Expr]) -> tuple[Origin, ...]:
    """Return where each expression's value comes from, for RowDescription."""
    found: list[Origin] = []
    for expr in exprs:
        if isinstance(expr, Var) and expr.range >= 0:
            owner = scope.at(expr.level)
            made = owner.ranges[expr.range]
            if isinstance(made, RelationRange):
                found.append((made.oid, expr.attnum))
            elif expr.attnum > 0:
                found.append(owner.origins[expr.range][expr.attnum - 1])
            else:
                found.append((0, 0))
        else:
            found.append((0, 0))
    return tuple(found)
