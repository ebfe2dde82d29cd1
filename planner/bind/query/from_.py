"""FROM: tables, views, sub-selects, functions and joins become ranges, a join tree and a namespace.

    bind_from(scope, items)   fills scope.ranges and scope.namespace, returns the join trees

Items are read left to right; those already read are visible to LATERAL ones only, until FROM ends. A view is
its stored query as a SubqueryRange, bound under its own search path. A WITH name hides relations of that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pgwire.codecs.settings import STORED_TEXT
from pgwire.give_way import give_way, paced
from planner import ast
from planner.base.errors import SqlError
from planner.bind.context import BindContext, WithStep
from planner.bind.expression.expr import bind_boolean
from planner.bind.query.from_function import bind_function
from planner.bind.query.sample import bind_sample, refused_sample
from planner.bind.recursion import QUERY, VIEW
from planner.bind.scope import (
    CteEntry,
    Item,
    Mark,
    Origin,
    Scope,
    check_names,
    index_names,
    under_alias,
    written_as,
)
from planner.bind.stored.readers import is_barrier
from planner.catalog import RelationDef
from planner.catalog.kept import kept_with_definition
from planner.catalog.relation_kinds import SAMPLED
from planner.conversion.collations import COLLATIONS, mixing
from planner.conversion.common_types import coerce_to_common, select_common_type, select_common_typmod
from planner.conversion.resolve import make_operator
from planner.facts import BOOL
from planner.query import (
    BoolExpr,
    CoalesceExpr,
    CteRange,
    Expr,
    FromItem,
    Join,
    JoinKind,
    JoinWritten,
    RangeColumn,
    RangeRef,
    RelationRange,
    StepRange,
    SubqueryRange,
    Var,
    Written,
)
from planner.query.numbered import Numbered, numbered
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
        index, item = bind_function(scope, node)
    else:
        return _join(scope, node)
    return RangeRef(range=index), [item]


# --- columns and aliases ------------------------------------------------------------------------


_Columns: TypeAlias = tuple[tuple[RangeColumn, ...], list[str], dict[str, int], bool]


@kept_with_definition
def _relation_columns(
    relation: RelationDef,
) -> _Columns:
    """Return a relation's live columns, their names and name index, and if their collations may contradict others.

    It is kept while the definition lives.
    """
    columns = tuple(
        [
            RangeColumn(name=column.name, type=column.declared, attnum=column.attnum)
            for column in relation.live
        ]
    )
    names = [column.name for column in columns]
    return columns, names, index_names(names), mixing(relation)


def bind_table(scope: Scope, node: ast.TableRef) -> tuple[int, Item]:
    """Bind a relation name in FROM: WITH item, table, virtual relation or view."""
    if not node.schema:
        entry = scope.find_cte(node.name)
        if entry is not None:
            if node.sample is not None:
                raise refused_sample(node)
            if not entry[1].returns:
                raise _no_rows(node)
            return _cte_reference(scope, node, *entry)
        if any(node.name in level.future_ctes for _, level in scope.levels()):
            _refuse_future(scope, node)
    context = scope.context
    if not node.schema and node.name in context.steps:
        if node.sample is not None:
            raise refused_sample(node)
        return _step_reference(scope, node, context.steps[node.name])
    if not node.schema and node.name in context.future_steps:
        _refuse_future(scope, node)
    relation = context.relation(node.schema, node.name, node.span, catalog=node.catalog, read=True)
    return range_of_relation(scope, relation, node)


def _no_rows(node: ast.TableRef) -> SqlError:
    return SqlError("0A000", f'WITH query "{node.name}" does not have a RETURNING clause', span=node.span)


def _step_reference(scope: Scope, node: ast.TableRef, step: WithStep) -> tuple[int, Item]:
    if step.columns is None:
        raise _no_rows(node)
    alias = node.alias.name if node.alias is not None else node.name
    columns = tuple(
        [
            RangeColumn(name=column.name, type=column.type, attnum=position)
            for position, column in enumerate(step.columns, 1)
        ]
    )
    renamed = under_alias(columns, node.alias, alias)
    made = StepRange(
        alias=alias,
        columns=renamed,
        written=written_as(columns, node.alias),
        step=step.number,
        name=node.name,
    )
    index = scope.add_range(made)
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

    Raises SqlError 42809 for an index, 0A000 for a sample of what is no table.
    """
    if relation.kind == "c":
        raise SqlError("42809", f'"{relation.name}" is a composite type', span=node.span)
    if relation.kind == "i":
        raise SqlError(
            "42809",
            f'"{relation.name}" is an index',
            span=node.span,
        )
    context = scope.context
    alias, called = _called(context, node, relation.name)
    if node.sample is not None and relation.kind not in SAMPLED:
        raise refused_sample(node)
    if relation.kind == "v" and not relation.virtual:
        return _view(scope, relation, node, alias, called)
    columns, names, index, mixed = _relation_columns(relation)
    renamed = columns
    if node.alias is not None and node.alias.columns:
        renamed = under_alias(columns, node.alias, alias)
        names = [column.name for column in renamed]
        index = index_names(names)
    made = RelationRange(
        alias=called.name if called is not None else alias,
        columns=renamed,
        written=_written(columns, node, called),
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
    if mixed:
        context.flags.add(COLLATIONS)
    position = scope.add_range(made, [(relation.oid, column.attnum) for column in columns])
    if node.sample is not None:  # its arguments may not name the table, and are told so
        scope.ranges[position] = replace(made, sample=bind_sample(scope, node.sample))
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


def _called(context: BindContext, node: ast.TableRef, name: str) -> tuple[str, Numbered | None]:
    """Return what a query calls a relation, or item of WITH, ``name``, and what a stored text means by that,
    None for what it says.
    """
    alias = node.alias.name if node.alias is not None else node.name
    found = numbered(alias) if node.alias is not None and context.env.settings is STORED_TEXT else None
    return alias, found if found is None or found.aliased else found._replace(name=name)


def _written(columns: Sequence[RangeColumn], node: ast.TableRef, called: Numbered | None) -> Written:
    made = written_as(columns, node.alias, node.only)
    return made if called is None or called.aliased else replace(made, aliased=False)


def _view(
    scope: Scope, relation: RelationDef, node: ast.TableRef, alias: str, called: Numbered | None
) -> tuple[int, Item]:
    query = VIEW.call(scope.context, relation)
    live = relation.live
    columns = tuple(
        [
            RangeColumn(name=column.name, type=output.type, attnum=position)
            for position, (column, output) in enumerate(zip(live, query.columns, strict=True), 1)
        ]
    )
    renamed = under_alias(columns, node.alias, alias)
    made = SubqueryRange(
        alias=called.name if called is not None else alias,
        columns=renamed,
        written=_written(columns, node, called),
        query=query,
        view=(relation.oid, relation.schema, relation.name),
        barrier=is_barrier(relation),
    )
    index = scope.add_range(made, [(relation.oid, column.attnum) for column in live])
    item = scope.item(index, relation=relation, aliased=node.alias is not None)
    item.name = alias
    return index, item


def _cte_reference(scope: Scope, node: ast.TableRef, level: int, entry: object) -> tuple[int, Item]:
    if not isinstance(entry, CteEntry):
        raise AssertionError(f"a WITH item is kept as {type(entry).__name__}")
    entry.references += 1
    if not entry.hashable:
        raise SqlError(
            "0A000", "could not implement recursive UNION", detail="All column datatypes must be hashable."
        )
    alias, called = _called(scope.context, node, entry.name)
    columns = tuple(
        [
            RangeColumn(name=column.name, type=column.type, attnum=position)
            for position, column in enumerate(entry.columns, 1)
        ]
    )
    made = CteRange(
        alias=called.name if called is not None else alias,
        columns=under_alias(columns, node.alias, alias),
        written=_written(columns, node, called),
        name=entry.name,
        level=level,
        recursive_ref=entry.recursive,
    )
    index = scope.add_range(made, entry.origins or None)
    item = scope.item(index, aliased=node.alias is not None)
    item.name = alias
    item.unlisted = [
        RangeColumn(name=column.name, type=column.type, attnum=position)
        for position, column in enumerate(entry.unlisted, len(columns) + 1)
    ]
    return index, item


# --- sub-selects --------------------------------------------------------------------------------


def _subquery(scope: Scope, node: ast.SubqueryRef) -> tuple[int, Item]:
    if node.alias is None:
        raise AssertionError("a sub-query in FROM has no alias")
    before = scope.lateral_active
    scope.lateral_active = node.lateral
    try:
        query = QUERY.call(scope.context, node.query, scope)
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
        columns=under_alias(columns, node.alias, alias),
        written=written_as(columns, node.alias),
        query=query,
        lateral=node.lateral,
    )
    origins = [(column.table_oid, column.attnum) for column in query.columns]
    index = scope.add_range(made, origins)
    return index, scope.item(index, aliased=True)


# --- joins --------------------------------------------------------------------------------------


_Column = tuple[str, Expr, Mark | None]


def _visible_columns(scope: Scope, items: Sequence[Item]) -> list[_Column]:
    return [
        (name, _column(scope, item, position), item.marks[position] if item.marks else None)
        for item in items
        if item.by_column
        for position, name in enumerate(paced(item.names))
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
        left_names = [name for name, _, _ in _visible_columns(scope, left_items)]
        right_names = {name for name, _, _ in _visible_columns(scope, right_items)}
        using = tuple([name for name in left_names if name in right_names])
    items = [*left_items, *right_items]
    on: Expr | None = None
    merged_item: Item | None = None
    scope.joins += 1
    written = JoinWritten(
        number=scope.joins,
        called=node.using_alias.name if node.using_alias is not None else "",
        alias=node.alias.name if node.alias is not None else "",
        columns=node.alias.columns if node.alias is not None else (),
    )
    if using or node.natural:
        on, merged_item, written = _using(scope, node, kind, using, left_items, right_items, written)
    elif node.on is not None:
        on = _join_condition(scope, node.on, items)
    tree = Join(kind=kind, left=left_tree, right=right_tree, on=on, written=written)
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
        merged_item.join = written.number
        merged_item.marks = [(written.number, place) for place in range(len(merged_item.exprs))]
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
    if node.using_alias is not None and node.alias is None:  # which hides it, as it hides all within
        width = len(using)
        names = list(merged_item.names[:width])
        extra.append(
            Item(
                name=node.using_alias.name,
                names=names,
                index=index_names(names),
                exprs=merged_item.exprs[:width],
                marks=merged_item.marks[:width],
                aliased=True,
                by_column=False,
            )
        )
        check_names(items, extra)
    return tree, [*[item for item in items if item.by_table], merged_item, *extra]


def _join_item(columns: Sequence[_Column]) -> Item:
    names = [name for name, _, _ in columns]
    return Item(
        name="",
        names=names,
        index=index_names(names),
        exprs=[expr for _, expr, _ in columns],
        marks=[mark for _, _, mark in columns],
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
    written: JoinWritten,
) -> tuple[Expr | None, Item, JoinWritten]:
    """Bind USING and NATURAL: the condition, the join's columns with the merged ones first, and what is
    printed of it.
    """
    lefts = _visible_columns(scope, left_items)
    rights = _visible_columns(scope, right_items)
    env = scope.context.env
    conditions: list[Expr] = []
    merged: list[_Column] = []
    places: list[tuple[int, int]] = []
    seen: set[str] = set()
    of_left, of_right = _by_name(lefts), _by_name(rights)
    for name in using:
        give_way()
        if name in seen and not node.natural:
            raise SqlError("42701", f'column name "{name}" appears more than once in USING clause')
        seen.add(name)
        places.append((_only(of_left, name, "left"), _only(of_right, name, "right")))
        _, left, left_mark = lefts[places[-1][0]]
        _, right, right_mark = rights[places[-1][1]]
        scope.use_all(left)
        scope.use_all(right)
        conditions.append(make_operator("=", left, right, env))
        made = _merged(scope, kind, left, right)
        mark = left_mark if made is left else right_mark if made is right else (written.number, len(merged))
        merged.append((name, made, mark))
    on: Expr | None = None
    if len(conditions) == 1:
        on = conditions[0]
    elif conditions:
        on = BoolExpr(type=SqlType(BOOL), kind="and", args=tuple(conditions))
    rest = [pair for pair in paced(lefts) if pair[0] not in seen]
    rest += [pair for pair in paced(rights) if pair[0] not in seen]
    written = replace(
        written,
        using=tuple(using),
        merged=tuple(places),
        computed=tuple(not isinstance(expr, Var) for _, expr, _ in merged),
    )
    return on, _join_item([*merged, *rest]), written


def _by_name(columns: Sequence[_Column]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, (name, _, _) in enumerate(paced(columns)):
        found.setdefault(name, []).append(place)
    return found


def _only(columns: Mapping[str, Sequence[int]], name: str, side: str) -> int:
    """Return the place of the only column of that name."""
    found = columns.get(name, ())
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
    """Return where each expression's value comes from, for RowDescription: a relation and SQL's number of its
    column.
    """
    find = scope.context.catalog.relation_by_oid
    found: list[Origin] = []
    for expr in paced(exprs):
        if isinstance(expr, Var) and expr.range >= 0:
            owner = scope.at(expr.level)
            made = owner.ranges[expr.range]
            if isinstance(made, RelationRange):
                relation = find(made.oid)
                number = expr.attnum if relation is None else relation.number(expr.attnum)
                found.append((made.oid, number))
            elif expr.attnum > 0:
                found.append(owner.origins[expr.range][expr.attnum - 1])
            else:
                found.append((0, 0))
        else:
            found.append((0, 0))
    return tuple(found)
