"""CREATE and REFRESH MATERIALIZED VIEW: AST -> bound statement.

    CREATE MATERIALIZED VIEW m (a) AS SELECT ...    columns as CREATE TABLE AS, text and dependencies as CREATE VIEW
    REFRESH MATERIALIZED VIEW m                     the stored text, bound anew against the catalog of now

A materialized view is read like a table: only these two statements see its query.
"""

from __future__ import annotations

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.change.changing_items import modifies
from planner.bind.context import BindContext
from planner.bind.define.relations import relations_named
from planner.bind.define.table.options import check_storage_options
from planner.bind.define.table.placing import creation_schema, persistence_of
from planner.bind.define.table.table import columns_of_query
from planner.bind.define.table.table_parts import check_access_method, check_tablespace
from planner.bind.query.select import bind_query, bind_view
from planner.bind.stored import stored_query
from planner.catalog.relation_kinds import STORING
from planner.query import QueryExpr


def bind_create(context: BindContext, node: ast.CreateTableAs) -> st.CreateMaterializedView:
    """CREATE MATERIALIZED VIEW.

    Raises SqlError 42601, 42701, 42P16, 42P02 (parameters), 0A000 (unlogged, over temporary relations,
    EXECUTE), and what its query raises.
    """
    if not isinstance(node.query, ast.Select | ast.SetOp | ast.Values):
        raise not_supported("CREATE MATERIALIZED VIEW AS EXECUTE", span=node.span)
    context.env.params.variable = False
    check_tablespace(node.tablespace)
    check_access_method(node.access_method)
    if modifies(node.query):
        raise SqlError("0A000", "materialized views must not use data-modifying statements in WITH")
    query = bind_query(context, node.query)
    schema = creation_schema(context, node.relation)
    depends = relations_named(query)
    if any(_is_temporary(context, oid) for oid in context.versions):
        raise SqlError("0A000", "materialized views must not use temporary tables or views")
    if persistence_of(node.relation, schema) == "u":
        raise SqlError("0A000", "materialized views cannot be unlogged")
    if schema == "pg_temp":  # its query runs restricted
        raise SqlError("42501", "cannot create temporary table within security-restricted operation")
    columns = columns_of_query(context, node, query)
    names = [column.name for column in columns]
    sql = stored_query(context, query, names)
    return st.CreateMaterializedView(
        schema=schema,
        name=node.relation.name,
        if_not_exists=node.if_not_exists,
        columns=columns,
        sql=sql,
        query=query,
        depends_on=depends,
        options=check_storage_options(node.options, "table"),
        with_data=node.with_data,
    )


def _is_temporary(context: BindContext, oid: int) -> bool:
    relation = context.catalog.relation_by_oid(oid)
    return relation is not None and relation.persistence == "t"


def bind_refresh(context: BindContext, node: ast.RefreshMaterializedView) -> st.RefreshMaterializedView:
    """REFRESH MATERIALIZED VIEW.

    Raises SqlError 42P01, 42809 and 0A000 (no materialized view; CONCURRENTLY of one without data), 42601, and 55000
    for CONCURRENTLY without a unique index.
    """
    reference = node.relation
    relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
    if relation.kind not in STORING:
        raise SqlError("42809", f'"{relation.name}" is not a table or materialized view')
    if relation.kind != "m":
        raise SqlError("0A000", f'"{relation.name}" is not a materialized view')
    if node.concurrently and not relation.populated:
        raise SqlError("0A000", "CONCURRENTLY cannot be used when the materialized view is not populated")
    if node.concurrently and not node.with_data:
        raise SqlError("42601", "CONCURRENTLY and WITH NO DATA options cannot be used together")
    if node.concurrently and not any(index.unique and not index.computed for index in relation.indexes):
        raise SqlError(
            "55000",
            f'cannot refresh materialized view "{relation.schema}.{relation.name}" concurrently',
            hint="Create a unique index with no WHERE clause on one or more columns of the materialized view.",
        )
    query: QueryExpr | None = bind_view(context, relation) if node.with_data else None
    return st.RefreshMaterializedView(table=relation.oid, query=query, concurrently=node.concurrently)
