"""WHERE CURRENT OF: the row that a cursor stands on, found by its primary key, or by its row id where the
table has none.

    DECLARE c CURSOR FOR SELECT b FROM t                the query also gives t's primary key, which the cursor keeps to itself
    UPDATE t SET b = 1 WHERE CURRENT OF c               UPDATE t SET b = 1 WHERE id = CursorValue(c, t, id)

A cursor FOR UPDATE (or SHARE) gives the keys of all tables it locks, any other that of the one table it
reads, if each of its rows is one of that (PostgreSQL's simply updatable scan). After an UPDATE of the key
itself the cursor no longer finds the row.
"""

from __future__ import annotations

from dataclasses import replace

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.change.updatable import ViewTarget, all_conditions
from planner.bind.context import BindContext
from planner.bind.query.fetched import as_asked
from planner.catalog import RelationDef
from planner.conversion.resolve import make_operator
from planner.facts import INT8
from planner.query import (
    ROW_ID,
    CursorValue,
    Expr,
    FuncExpr,
    OutputColumn,
    QueryExpr,
    RangeRef,
    RelationRange,
    Select,
    Target,
    Var,
    WindowFunc,
)
from planner.query.walk import walk
from planner.statements import CursorKey
from planner.types import SqlType


def bind_current_of(
    context: BindContext, relation: RelationDef, view: ViewTarget | None, node: ast.CurrentOf
) -> Expr:
    """Return the condition for range 0, ``relation``. Raises SqlError 0A000 for views and partitioned tables
    without a primary key.
    """
    if view is not None:
        raise SqlError("0A000", "WHERE CURRENT OF on a view is not implemented")
    key = _key(relation)
    if not key:
        raise not_supported("WHERE CURRENT OF on a partitioned table without a primary key", span=node.span)
    variable = None if context.variables is None else context.variables.cursor(node.cursor, node.span)
    conditions: list[Expr] = []
    for attnum in key:
        var = _var(relation, attnum, 0)
        value = CursorValue(
            type=var.type,
            cursor=node.cursor,
            variable=variable,
            table=relation.oid,
            table_name=relation.name,
            attnum=attnum,
        )
        conditions.append(make_operator("=", var, value, context.env, node.span))
    condition = all_conditions(conditions)
    if condition is None:
        raise AssertionError("the row of a cursor has no key")
    return condition


def for_cursor(context: BindContext, statement: st.Statement) -> st.Statement:
    """Return a statement as a cursor reads it: a query with keys, as ``with_keys``; any other as it is."""
    if not isinstance(statement, st.QueryStatement):
        return statement
    query, keys = with_keys(context, statement.query)
    return st.QueryStatement(query=as_asked(query), keys=keys, fetched=True)


def with_keys(context: BindContext, query: QueryExpr) -> tuple[QueryExpr, tuple[CursorKey, ...]]:
    """Return a cursor's query with the keys of the tables whose rows it stands on behind its columns, and
    where those are.
    """
    if not isinstance(query, Select):
        return query, ()
    columns, keys = list(query.columns), []
    more: list[Target] = []
    for number in [mark.range for mark in query.row_marks] or _scanned(query):
        range_ = query.ranges[number]
        relation = context.catalog.relation_by_oid(range_.oid) if isinstance(range_, RelationRange) else None
        key = () if relation is None else _key(relation)
        if relation is None or not key:
            continue
        keys.append(CursorKey(table=relation.oid, attnums=key, position=len(columns) - len(query.columns)))
        for attnum in key:
            var = _var(relation, attnum, number)
            more.append(Target(expr=var, name=var.name))
            columns.append(OutputColumn(name=var.name, type=var.type))
    if not more:
        return query, ()
    shown = len(query.columns)  # what ORDER BY alone needs stands behind them
    order = [
        key if key.target < shown else replace(key, target=key.target + len(more)) for key in query.order
    ]
    targets = (*query.targets[:shown], *more, *query.targets[shown:])
    return replace(query, targets=targets, columns=tuple(columns), order=tuple(order)), tuple(keys)


def _scanned(query: Select) -> list[int]:
    """Return the one range of a query each of whose rows is a row of that; nothing for others."""
    combined = query.grouped or query.distinct or query.ctes
    if combined or len(query.from_) != 1 or not isinstance(query.from_[0], RangeRef):
        return []
    for target in query.targets:
        for node in walk(target.expr):
            if isinstance(node, WindowFunc) or (isinstance(node, FuncExpr) and node.returns_set):
                return []
    return [query.from_[0].range]


def _key(relation: RelationDef) -> tuple[int, ...]:
    """Return the columns that find a row of a table, nothing where none do: row ids of partitions are not unique."""
    for index in relation.indexes:
        if index.primary:
            return index.attnums
    return (ROW_ID,) if relation.kind == "r" and relation.stored else ()


def _var(relation: RelationDef, attnum: int, range_: int) -> Var:
    if attnum == ROW_ID:
        return Var(type=SqlType(INT8), range=range_, attnum=ROW_ID, name="row_id")
    column = relation.column(attnum)
    return Var(type=column.type, range=range_, attnum=attnum, name=column.name)
