"""WHERE CURRENT OF: the row that a cursor FOR UPDATE (or SHARE) stands on, found by its primary key.

    DECLARE c CURSOR FOR SELECT b FROM t FOR UPDATE     the query also gives t's primary key, which the cursor keeps to itself
    UPDATE t SET b = 1 WHERE CURRENT OF c               UPDATE t SET b = 1 WHERE id = CursorValue(c, t, id)

The row is locked, so nobody else changes its key; after an UPDATE of the key itself the cursor no longer finds it.
"""

from __future__ import annotations

from dataclasses import replace

from planner import ast
from planner.bind.context import BindContext
from planner.bind.updatable import ViewTarget, all_conditions
from planner.catalog import IndexDef, RelationDef
from planner.errors import SqlError, not_supported
from planner.query import (
    CursorValue,
    Expr,
    OutputColumn,
    QueryExpr,
    RelationRange,
    Select,
    Target,
    Var,
)
from planner.resolve import make_operator
from planner.statements import CursorKey


def bind_current_of(
    context: BindContext, relation: RelationDef, view: ViewTarget | None, node: ast.CurrentOf
) -> Expr:
    """Return the condition for range 0, ``relation``. Raises SqlError 0A000 for views and tables without a primary key."""
    if view is not None:
        raise SqlError("0A000", "WHERE CURRENT OF on a view is not implemented")
    key = _primary_key(relation)
    if key is None:
        raise not_supported("WHERE CURRENT OF on a table without a primary key", span=node.span)
    conditions: list[Expr] = []
    for attnum in key.attnums:
        column = relation.column(attnum)
        var = Var(type=column.type, range=0, attnum=attnum, name=column.name)
        value = CursorValue(
            type=column.type,
            cursor=node.cursor,
            table=relation.oid,
            table_name=relation.name,
            attnum=attnum,
        )
        conditions.append(make_operator("=", var, value, context.env, node.span))
    condition = all_conditions(conditions)
    assert condition is not None
    return condition


def with_keys(context: BindContext, query: QueryExpr) -> tuple[QueryExpr, tuple[CursorKey, ...]]:
    """Return a cursor's query with the primary keys of the tables it locks behind its columns, and where those are."""
    if not isinstance(query, Select) or not query.row_marks:
        return query, ()
    targets, columns, keys = list(query.targets), list(query.columns), []
    for mark in query.row_marks:
        range_ = query.ranges[mark.range]
        relation = context.catalog.relation_by_oid(range_.oid) if isinstance(range_, RelationRange) else None
        key = None if relation is None else _primary_key(relation)
        if relation is None or key is None:
            continue
        keys.append(
            CursorKey(table=relation.oid, attnums=key.attnums, position=len(columns) - len(query.columns))
        )
        for attnum in key.attnums:
            column = relation.column(attnum)
            var = Var(type=column.type, range=mark.range, attnum=attnum, name=column.name)
            targets.append(Target(expr=var, name=column.name))
            columns.append(OutputColumn(name=column.name, type=column.type))
    return replace(query, targets=tuple(targets), columns=tuple(columns)), tuple(keys)


def _primary_key(relation: RelationDef) -> IndexDef | None:
    return next((index for index in relation.indexes if index.primary), None)
