"""Schemas, views, DROP, TRUNCATE (tables: ``planner.bind.define.table.table``, indexes: ``index``, ALTER and
RENAME: ``alter``).

What does not exist yet is described (``st.CreateView``, ``st.KeySpec`` ...), what exists is named by oid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pgwire.give_way import give_way, paced
from pgwire.voice import notice
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.change.changing_items import modifies
from planner.bind.change.updatable import obstacle_to_check
from planner.bind.context import BindContext
from planner.bind.define.table.options import check_storage_options, option_text
from planner.bind.define.table.placing import creation_schema, persistence_of
from planner.bind.define.types import bind_drop_type
from planner.bind.query.select import bind_query
from planner.bind.session.utility import owner_name
from planner.bind.stored import stored_query
from planner.catalog.relation_kinds import TRUNCATED
from planner.conversion.collations import COLLATE_HINT, query_collations, type_collation
from planner.conversion.type_names import check_column_type
from planner.facts import CID
from planner.query import Expr, OutputColumn, QueryExpr, RelationRange, SubqueryRange
from planner.query.walk import children

# --- schemas ----------------------------------------------------------------------------------------


def bind_create_schema(context: BindContext, node: ast.CreateSchema) -> st.CreateSchema:
    """CREATE SCHEMA [AUTHORIZATION role] [element ...]: what is in it is bound when it runs. Raises SqlError
    0A000 for elements of other kinds.
    """
    for element in node.elements:
        if not isinstance(element, SCHEMA_ELEMENTS):
            raise not_supported("CREATE SCHEMA with this schema element", span=element.span)
    owner: str | None = None
    name = node.name
    if node.owner is not None:
        special = node.owner.special
        owner = None if special in ("current_user", "current_role") else owner_name(node.owner)
        name = name or ("" if special else node.owner.name)
    return st.CreateSchema(
        name=name, if_not_exists=node.if_not_exists, owner=owner, elements=tuple(node.elements)
    )


def bind_create_timeline(context: BindContext, node: ast.CreateTimeline) -> st.CreateTimeline:
    """CREATE TIMELINE."""
    return st.CreateTimeline(name=node.name, if_not_exists=node.if_not_exists)


def bind_drop_timeline(context: BindContext, node: ast.DropTimeline) -> st.DropTimeline:
    """DROP TIMELINE. Raises SqlError 0A000 for CASCADE: the tables of a timeline are dropped by name."""
    if node.cascade:
        raise not_supported("DROP TIMELINE ... CASCADE", span=node.span)
    return st.DropTimeline(names=node.names, if_exists=node.if_exists)


_PLACED = ast.CreateSequence | ast.CreateTable | ast.CreateView | ast.CreateIndex | ast.CreateTrigger
SCHEMA_ELEMENTS = (
    ast.CreateSequence, ast.CreateTable, ast.CreateView, ast.CreateIndex, ast.CreateTrigger, ast.Grant,
)  # fmt: skip
"""What CREATE SCHEMA may hold, in the order in which PostgreSQL makes it."""


def placed_element(schema: str, element: ast.StatementNode) -> ast.StatementNode:
    """Return an element of CREATE SCHEMA as a statement about the new schema. Raises SqlError 42P15 where it
    names another one.
    """
    if not isinstance(element, _PLACED):
        return element  # GRANT: its objects are looked up, in the new schema first
    named = element.relation.schema
    if named not in ("", schema):
        raise SqlError(
            "42P15", f"CREATE specifies a schema ({named}) different from the one being created ({schema})"
        )
    return replace(element, relation=replace(element.relation, schema=schema))


# --- views ------------------------------------------------------------------------------------------


def bind_create_view(context: BindContext, node: ast.CreateView) -> st.CreateView:
    """CREATE [OR REPLACE] VIEW.

    Raises SqlError 42601 (more names than columns), 42701, 42P16 (pseudo-types), 42P02 (parameters), 0A000 (CHECK
    OPTION).
    """
    options = view_options(node.options)
    if node.check_option:
        options["check_option"] = node.check_option
    if modifies(node.query):
        raise SqlError("0A000", "views must not contain data-modifying statements in WITH")
    query = bind_query(context, node.query)
    if len(node.columns) > len(query.columns):
        raise SqlError("42601", "CREATE VIEW specifies more column names than columns")
    depends = relations_named(query)
    temporary = any(_is_temporary(context, oid) for oid in depends)
    follows = temporary and node.relation.persistence != "t"
    try:
        schema = creation_schema(context, node.relation)
        if follows and node.relation.schema and schema != "pg_temp":
            raise SqlError("42P16", "cannot create temporary relation in non-temporary schema")
    except SqlError:
        if follows:
            notice(following(node.relation.name))
        raise
    names = [*node.columns, *(c.name for c in query.columns[len(node.columns) :])]
    columns: list[OutputColumn] = []
    for name, column in zip(names, query.columns, strict=True):
        check_view_column(name, column)
        if name in {c.name for c in columns}:
            raise SqlError("42701", f'column "{name}" specified more than once')
        columns.append(replace(column, name=name))
    if "check_option" in options:
        check_checkable(query)
    sql = stored_query(context, query, names)
    return st.CreateView(
        schema="pg_temp" if temporary and not node.relation.schema else schema,
        name=node.relation.name,
        replace=node.replace,
        columns=tuple(columns),
        collations=_view_collations(context, query, names),
        sql=sql,
        query=query,
        options=options,
        depends_on=depends,
        persistence="t" if temporary else persistence_of(node.relation, schema),
        follows=follows,
    )


def following(name: str) -> str:
    """Return what is told of a view that is temporary because of what it reads."""
    return f'view "{name}" will be a temporary view'


def _view_collations(context: BindContext, query: QueryExpr, names: Sequence[str]) -> tuple[int, ...]:
    """Return the collations of a view's columns. Raises SqlError 42P22 where one is a text of no collation, 42P21."""
    found = query_collations(query, context.catalog)
    for name, column, collation in zip(names, query.columns, found, strict=True):
        if not collation and type_collation(column.type, context.catalog):
            raise SqlError(
                "42P22",
                f'could not determine which collation to use for view column "{name}"',
                hint=COLLATE_HINT,
            )
    return tuple(found)


def view_options(nodes: Sequence[ast.Option]) -> dict[str, str]:
    """Return the options of a view: check_option local or cascaded, security_barrier, security_invoker.
    SqlError 22023.
    """
    checks = [option for option in nodes if option.name == "check_option"]
    options = dict(check_storage_options([option for option in nodes if option not in checks], "view"))
    for option in checks:
        text = option_text(option)
        text = "true" if text is None else text
        if text.lower() not in ("local", "cascaded"):
            raise SqlError(
                "22023",
                f'invalid value for enum option "check_option": {text}',
                detail='Valid values are "local" and "cascaded".',
            )
        options["check_option"] = text
    return options


def check_checkable(query: QueryExpr) -> None:
    """Refuse WITH CHECK OPTION for what cannot be written through (0A000)."""
    why = obstacle_to_check(query)
    if why is not None:
        raise SqlError(
            "0A000", "WITH CHECK OPTION is supported only on automatically updatable views", hint=why
        )


def check_view_column(name: str, column: OutputColumn) -> None:
    """Refuse pseudo-types (42P16): the type of cmin and cmax cannot be stored, but selected."""
    if column.type.oid != CID:
        check_column_type(name, column.type)


def _is_temporary(context: BindContext, oid: int) -> bool:
    relation = context.catalog.relation_by_oid(oid)
    return relation is not None and relation.persistence == "t"


def relations_named(query: QueryExpr | Expr) -> frozenset[int]:
    """Return the oids of tables and views that a query, or the sub-selects of an expression, name themselves
    (not those inside other views).
    """
    found: set[int] = set()
    _add_named(found, query)
    return frozenset(found)


def _add_named(found: set[int], node: object) -> None:
    if isinstance(node, RelationRange):
        found.add(node.oid)
    elif isinstance(node, SubqueryRange) and node.view is not None:
        found.add(node.view[0])
        return
    give_way()
    for child in children(node):
        _add_named(found, child)


# --- DROP, TRUNCATE -----------------------------------------------------------------------------------


def bind_drop(context: BindContext, node: ast.Drop) -> st.Drop | st.DropType:
    """DROP TABLE, FOREIGN TABLE, VIEW, MATERIALIZED VIEW, INDEX, SEQUENCE, SCHEMA: names are resolved when it
    runs, one by one.
    """
    words: dict[
        str, Literal["table", "foreign table", "view", "materialized view", "index", "sequence", "schema"]
    ] = {
        "table": "table",
        "foreign table": "foreign table",
        "view": "view",
        "materialized view": "materialized view",
        "index": "index",
        "sequence": "sequence",
        "schema": "schema",
    }
    if node.what in ("type", "domain"):
        return bind_drop_type(context, node)
    what = words.get(node.what)
    if what is None:
        raise not_supported(f"DROP {node.what.upper()}", span=node.span)
    names: list[tuple[str, str]] = []
    for name in paced(node.names):
        if len(name) > 2 and context.database and name[0] != context.database:
            raise SqlError("0A000", f'cross-database references are not implemented: "{".".join(name)}"')
        names.append((name[-2] if len(name) > 1 else "", name[-1]))
    if node.concurrently and len(names) > 1:
        raise SqlError("0A000", "DROP INDEX CONCURRENTLY does not support dropping multiple objects")
    if node.concurrently and node.cascade:
        raise SqlError("0A000", "DROP INDEX CONCURRENTLY does not support CASCADE")
    return st.Drop(
        what=what, names=tuple(names), if_exists=node.if_exists, cascade=node.cascade,
        concurrently=node.concurrently,
    )  # fmt: skip


def bind_truncate(context: BindContext, node: ast.Truncate) -> st.Truncate:
    """TRUNCATE. Raises SqlError 42P01, 42809 (not a table), 42501 (a system catalog)."""
    tables: list[int] = []
    for reference in paced(node.relations):
        relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
        if relation.kind not in TRUNCATED:
            raise SqlError("42809", f'"{relation.name}" is not a table')
        if relation.virtual:
            raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
        if relation.kind == "p" and reference.only:
            raise SqlError(
                "42809",
                "cannot truncate only a partitioned table",
                hint="Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly.",
            )
        if relation.oid not in tables:
            tables.append(relation.oid)
    return st.Truncate(tables=tuple(tables), restart_identity=node.restart_identity, cascade=node.cascade)
