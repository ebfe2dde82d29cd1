"""SUBSCRIBE: the query, the two moments, and the columns of the result.

    SUBSCRIBE t WITH (progress)   ->   holdfast_timestamp, holdfast_progressed, holdfast_diff, columns of t

A subscription is about stored tables: catalog relations have no history of their own. Its query is asked again and
again, so it must not be volatile; ``now()`` and settings are those of its start.
"""

from __future__ import annotations

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.expression.expr import bind_clause
from planner.bind.query.select import bind_query
from planner.bind.scope import Scope
from planner.conversion.casts import try_coerce
from planner.conversion.pathways import CastContext
from planner.deparse import deparse_query
from planner.facts import BOOL, INT2, INT4, INT8, INTERVAL, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, VARCHAR
from planner.query import Expr, OutputColumn, QueryExpr, RelationRange
from planner.query.walk import ranges_of
from planner.rules.fold import fold
from planner.rules.stable import extract_stable
from planner.statements.classify import is_volatile
from planner.types import SqlType

_UNKNOWN = 705
MOMENT_TYPES = frozenset(
    (INT2, INT4, INT8, NUMERIC, TEXT, VARCHAR, _UNKNOWN, TIMESTAMP, TIMESTAMPTZ, INTERVAL)
)


def bind_subscribe(context: BindContext, node: ast.Subscribe) -> st.Subscribe:
    """Bind SUBSCRIBE.

    Raises SqlError 0A000 for catalog relations, volatile functions and locking clauses; 42804 for a moment of another
    type; whatever binding the query raises.
    """
    if node.query is None:
        raise AssertionError("SUBSCRIBE has no query")
    query = _query(context, node.query)
    columns = [OutputColumn(name="holdfast_timestamp", type=SqlType(INT8))]
    if node.progress:
        columns.append(OutputColumn(name="holdfast_progressed", type=SqlType(BOOL)))
    columns.append(OutputColumn(name="holdfast_diff", type=SqlType(INT8)))
    return st.Subscribe(
        query=query,
        subscription=node.subscription,
        as_of=_moment(context, node.as_of, "AS OF"),
        up_to=_moment(context, node.up_to, "UP TO"),
        snapshot=node.snapshot,
        progress=node.progress,
        columns=(*columns, *query.columns),
    )


def _query(context: BindContext, node: ast.QueryNode) -> QueryExpr:
    if node.locking:
        raise not_supported("SUBSCRIBE to a query that locks rows", span=node.span)
    query = bind_query(context, node)
    for item in ranges_of(query):
        if isinstance(item, RelationRange) and item.virtual:
            raise not_supported(f'SUBSCRIBE to the catalog relation "{item.name}"', span=node.span)
        relation = context.catalog.relation_by_oid(item.oid) if isinstance(item, RelationRange) else None
        if relation is not None and relation.kind == "p":
            raise not_supported(f'SUBSCRIBE to the partitioned table "{relation.name}"', span=node.span)
    if any(isinstance(item, RelationRange) and item.sample is not None for item in ranges_of(query)):
        raise not_supported("SUBSCRIBE to a sample of a table", span=node.span)
    if is_volatile(query):
        raise not_supported("SUBSCRIBE to a query with a volatile function", span=node.span)
    return query


def bind_create(context: BindContext, node: ast.CreateSubscription) -> st.CreateSubscription:
    """Bind CREATE SUBSCRIPTION. Raises as ``bind_subscribe``, and 0A000 for temporary tables and no table at all."""
    query = _query(context, node.query)
    relations = [item for item in ranges_of(query) if isinstance(item, RelationRange)]
    if not relations:
        raise not_supported("a subscription to a query without a table", span=node.query.span)
    for item in relations:
        relation = context.catalog.relation_by_oid(item.oid)
        if relation is not None and relation.persistence == "t":
            raise not_supported(f'a subscription to the temporary table "{item.name}"', span=node.query.span)
    if extract_stable(fold(query), 0)[1]:
        raise not_supported(
            "a named subscription to a query with now() or a setting: it would mean something else whenever it goes on",
            span=node.query.span,
        )
    return st.CreateSubscription(
        name=node.name,
        query=query,
        sql=deparse_query(query, names=[column.name for column in query.columns]),
        snapshot=node.snapshot,
        if_not_exists=node.if_not_exists,
    )


def bind_acknowledge(context: BindContext, node: ast.AcknowledgeSubscription) -> st.AcknowledgeSubscription:
    """Bind ALTER SUBSCRIPTION ... ACKNOWLEDGE. Raises 42804 for what names no moment."""
    to = _moment(context, node.to, "ACKNOWLEDGE")
    if to is None:
        raise AssertionError("ACKNOWLEDGE names no moment")
    return st.AcknowledgeSubscription(name=node.name, to=to)


def bind_drop(context: BindContext, node: ast.DropSubscription) -> st.DropSubscription:
    """Bind DROP SUBSCRIPTION."""
    return st.DropSubscription(name=node.name, if_exists=node.if_exists)


def bind_cursor(context: BindContext, node: ast.DeclareCursor, inner: ast.Subscribe) -> st.DeclareSubscribe:
    """Bind DECLARE ... CURSOR FOR SUBSCRIBE. Raises 0A000 for WITH HOLD and SCROLL."""
    if node.insensitive and node.asensitive:
        raise SqlError("42P11", "cannot specify both INSENSITIVE and ASENSITIVE")
    if node.hold:
        raise not_supported("a cursor WITH HOLD for SUBSCRIBE", span=node.span)
    if node.scroll or node.insensitive:
        raise not_supported("a cursor for SUBSCRIBE that is SCROLL or INSENSITIVE", span=node.span)
    return st.DeclareSubscribe(name=node.name, subscribe=bind_subscribe(context, inner), binary=node.binary)


def _moment(context: BindContext, node: ast.Expression | None, clause: str) -> Expr | None:
    if node is None:
        return None
    expr = bind_clause(Scope(context=context), node, clause)
    if expr.type.oid == _UNKNOWN:  # a parameter that nothing else gives a type
        expr = try_coerce(expr, SqlType(TEXT), CastContext.IMPLICIT, context.env) or expr
    if expr.type.oid not in MOMENT_TYPES:
        raise SqlError(
            "42804",
            f"argument of {clause} must be a timestamp, an interval, an integer or a text that reads as one",
            span=node.span,
        )
    if is_volatile(expr):
        raise not_supported(f"a volatile function in {clause}", span=node.span)
    return expr
