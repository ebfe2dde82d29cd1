"""CREATE and ALTER: bound DDL to catalog changes and shard changes in one transaction (U10).

Each function runs under its locks in the catalog (``CatalogView.start_ddl``) against the latest one, builds new frozen
``RelationDef`` values, stages them through ``CatalogView.change``, and tells ``txn`` what changes in the
shard. Everything becomes visible, and durable, in the one log entry of the commit.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from engine.base.eager import settle
from engine.base.executor import ExecContext, Result
from engine.base.rows import ReadyRows
from engine.catalog.physical import shard_spec
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_LARGEOBJECT_OID, PG_NAMESPACE_OID, CommentDef, Stored, key_of
from engine.changes.bulk.changes import BULK_ROWS
from engine.changes.bulk.spark_load import load_on_spark
from engine.changes.writes.insert_bulk import BulkSource
from engine.changes.writes.shape import TableShape, whole_rows
from engine.definitions import constraints as define
from engine.definitions.comment_copies import copied_comments
from engine.definitions.dropping.drop import replace_table, table_of
from engine.definitions.foreign_parts import check_table_options
from engine.definitions.named_places import exists_already, refuse_type_name, target_schema
from engine.definitions.needs.privileges import check as check_privileges
from engine.definitions.sequences import with_sequences
from engine.definitions.stored_queries import rebase_queries
from engine.definitions.table.alter import apply_actions
from engine.definitions.table.alter_columns import add_computed_index
from engine.definitions.table.index_ahead import index_of, lock_between_writers
from engine.definitions.table.keys import add_checks, add_keys, unused_name
from engine.definitions.table.partitions import (
    check_keys,
    check_rows,
    default_of,
    inherit,
    inherit_below,
    joined,
    parent_changed,
    refuse_keys_over_foreign,
)
from engine.definitions.table.statistics_parts import with_copied
from engine.definitions.table.temporary import TableActions
from engine.definitions.table.unbuilt import leaves
from engine.definitions.table.view_nesting import check_nesting
from engine.definitions.type_names import make_room
from engine.plans.query import CompiledQuery, compiled_query, context, execute, run_query
from engine.session.acting import acting_as
from engine.session.in_use import refuse_change
from engine.session.large_objects import statements as large_objects
from engine.session.named_roles import name_of_schema, named_role
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from engine.session.transaction.time_travel import read_past
from engine.session.transaction.timelines import crossing, unknown
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.bind.context import make_context
from planner.bind.define.relations import SCHEMA_ELEMENTS, following, placed_element
from planner.bind.define.table.index import with_hidden
from planner.bind.define.table.table import late_defaults
from planner.bind.define.table.typed import attributes_of
from planner.catalog import AclDef, ColumnDef, RelationDef, SchemaDef
from planner.catalog.acl import reowned
from planner.conversion.collations import name_of
from planner.types.domains import domain_named, plain_type
from planner.types.facts import format_type
from txn.base.types import Row, ShardId

Params = tuple[Any, ...]
OIDS_PER_RELATION = 3


# --- CREATE -------------------------------------------------------------------------------------


def new_table(
    session: Session, place: tuple[str, int], table: st.CreateTable, source_oid: int = 0
) -> RelationDef:
    """Return the definition of a new table without its keys; ``place``: name and oid of its schema.

    The oids below its own are those of the sequences that come with it, which PostgreSQL makes first.
    """
    before = sum(column.sequence is not None for column in table.columns)
    return RelationDef(
        oid=session.db.allocate_oids(before + OIDS_PER_RELATION) + before,
        schema_oid=place[1],
        schema=place[0],
        name=table.name,
        kind="f" if table.server else "r" if table.partition_key is None else "p",
        partition_key=table.partition_key,
        columns=tuple(
            ColumnDef(
                attnum=number,
                name=column.name,
                type=plain_type(column.type),
                not_null=column.not_null,
                default_sql=column.default_sql,
                collation=column.collation,
                generated=column.generated,
                domain=domain_named(column.type),
                dims=column.dims,
                storage=column.storage,
                compression=column.compression,
                foreign_options=column.foreign_options,
            )
            for number, column in enumerate(table.columns, 1)
        ),
        version=session.db.next_catalog_version(),
        owner=session.role_oid,
        persistence=table.persistence,
        options=dict(table.options),
        source_oid=source_oid,
        of_type=table.of_type,
        server=table.server,
        foreign_options=table.foreign_options,
    )


async def create_table(session: Session, plan: Plan, statement: st.CreateTable, params: Params) -> Outcome:
    """CREATE TABLE [AS]."""
    schema, schema_oid = await target_schema(session, statement.schema, statement.persistence)
    await make_room(session, schema, statement.name)
    if exists_already(session, schema, statement.name, statement.if_not_exists):
        return Command(plan.bound.tag if statement.query is None else "CREATE TABLE AS")
    relation = new_table(session, (schema, schema_oid), statement)
    if statement.of_type:
        made = session.catalog.type_by_oid(statement.of_type)
        if made is None or [c.name for c in attributes_of(made)] != [c.name for c in statement.columns]:
            raise Replan  # it has been changed since
    if statement.parent:
        relation = joined(session, plan, relation, statement)
    oid = relation.oid
    if not session.catalog.has_timeline(relation.timeline):
        raise unknown(relation.timeline)
    if statement.query is not None:
        if plan.timeline and plan.timeline != relation.timeline:
            read = [r for r in map(session.catalog.relation_by_oid, plan.tables) if r is not None]
            message = "CREATE TABLE AS from a query over tables of another timeline is not supported"
            raise crossing([relation, *read], message)
        session.block.enter(relation.timeline, plan.tables)
    relation, sequences = with_sequences(session, relation, statement.columns, new=True)
    relation = _with_late_defaults(session, plan, statement, relation, sequences)
    relation = add_keys(session, relation, [key for key in statement.keys if not key.expressions])
    relation = add_checks(session, relation, statement.checks)
    for index in statement.indexes:
        relation = _with_index(session, relation, index)
    if statement.statistics:
        relation = with_copied(session, relation, statement.statistics)
    # the hidden columns of the indexes are numbered: those of these come behind them
    relation = add_keys(session, relation, [key for key in statement.keys if key.expressions])
    check_keys(relation)
    default = None
    if statement.parent:
        parent = table_of(session, statement.parent)
        default = default_of(session, parent)
        relation = await inherit(session, relation, parent, made=True)
        check_keys(relation)
    if relation.server:
        check_table_options(session, relation)
    else:
        session.block.ensure_txn().create_shard(shard_spec(relation))
        session.block.new_storage.note(relation.oid, len(session.block.savepoints))
    relation = await define.add_foreign_keys(session, relation, statement.foreign_keys, validated=True)
    comments = copied_comments(session.catalog, relation, statement.commented)
    await session.view.change([relation, *sequences, *comments])
    if statement.parent:
        await parent_changed(session, table_of(session, statement.parent), default)
    if default is not None:
        session.block.ensure_txn().next_statement()
        await check_rows(session, table_of(session, default.oid), default=True)
    if statement.on_commit == "drop" or statement.on_commit == "delete":
        if session.commit_actions is None:
            session.commit_actions = TableActions()
        session.commit_actions.add(oid, statement.on_commit)
    if statement.query is None:
        return Command(plan.bound.tag)
    if not statement.with_data:
        return Command("SELECT 0" if statement.executed else "CREATE TABLE AS")
    ctx = context(session, plan, params)
    if plan.as_of is None:
        query = compiled_query(plan, "query", statement.query)
        running = run_query(session, plan, "query", statement.query, ctx)
        return Command(f"SELECT {await fill_from(session, relation, query, ctx, running)}")
    past = await read_past(session, plan.as_of, relation.timeline)
    try:
        source = CompiledQuery(statement.query, session.past(past.read_ts))
        ctx = replace(ctx, txn=past)
        running = execute(session, source, ctx)
        return Command(f"SELECT {await fill_from(session, relation, source, ctx, running)}")
    finally:
        past.rollback()


def _with_late_defaults(
    session: Session,
    plan: Plan,
    statement: st.CreateTable,
    relation: RelationDef,
    sequences: Sequence[Stored],
) -> RelationDef:
    """Return a new table with the defaults that name it or its sequences. Raises SqlError 42P01 for what is
    not made either.
    """
    if all(column.late is None for column in statement.columns):
        return relation
    made = session.catalog.with_changes([relation, *sequences], (), session.db.next_catalog_version())
    temporary = (relation.schema,) if relation.persistence == "t" else ()
    context = make_context(
        made,
        tuple(dict.fromkeys((*temporary, *statement.path))),
        text=plan.bound.text,
        settings=session.bind_settings,
        database=session.database,
        variable_params=False,
        security=session.row_security,
    )
    return replace(relation, columns=late_defaults(relation.columns, statement.columns, context))


def _with_index(session: Session, relation: RelationDef, statement: st.CreateIndex) -> RelationDef:
    """Return a new table with an index that serves no constraint (LIKE ... INCLUDING INDEXES)."""
    taken = [relation.name, *(i.name for i in relation.every_index), *(c.name for c in relation.constraints)]
    name = unused_name(session, relation.schema, relation.name, statement.names, "idx", taken)
    index = replace(index_of(statement, name), oid=session.db.allocate_oids(1))
    return replace(with_hidden(relation, statement.hidden), indexes=(*relation.indexes, index))


async def fill_from(
    session: Session,
    relation: RelationDef,
    query: CompiledQuery,
    ctx: ExecContext,
    running: Coroutine[Any, Any, Result],
) -> int:
    """Insert what a query selects, as ``fill``, on Spark without its rows coming here; else ``running`` starts it."""
    attnums = [c.attnum for c in relation.live]
    try:
        loaded = await load_on_spark(session, query, ctx, TableShape.of(relation, session), attnums)
        return loaded if loaded is not None else await fill(session, relation, await running)
    finally:
        running.close()


async def fill(session: Session, relation: RelationDef, result: Result) -> int:
    """Insert what a query selects into an empty table of its columns; return how many rows that are."""
    oid = relation.oid
    attnums = [c.attnum for c in relation.live]
    complete = whole_rows(session, relation)
    txn = session.block.ensure_txn()
    txn.next_statement()
    if isinstance(result, ReadyRows):
        rows: Sequence[Row] = result.rows
    else:
        bulk = BulkSource(session, relation, attnums, result, complete)
        try:
            few = await bulk.few(BULK_ROWS)
            if few is None:
                count = await txn.bulk_insert(ShardId(oid), bulk.batches())
                bulk.raise_refused()
                return count
        finally:
            bulk.close()
        rows = few
    await settle(txn.insert(ShardId(oid), complete(rows)))
    return len(rows)


def refuse_reserved_schema(name: str) -> None:
    """Raise SqlError 42939 for a name that no schema may get."""
    if name.startswith("pg_"):
        raise SqlError(
            "42939",
            f'unacceptable schema name "{name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )


async def create_schema(session: Session, plan: Plan, statement: st.CreateSchema, params: Params) -> Outcome:
    """CREATE SCHEMA. Raises SqlError 42P06, 42939, 42P15, and what its elements raise."""
    name = name_of_schema(session, statement)
    refuse_reserved_schema(name)
    if session.catalog.schema(name) is not None:
        if not statement.if_not_exists:
            raise SqlError("42P06", f'schema "{name}" already exists')
        session.notice(f'schema "{name}" already exists, skipping', sqlstate="42P06")
        return Command("CREATE SCHEMA")
    elements = [placed_element(name, element) for element in sorted(statement.elements, key=_element_order)]
    owner = session.role_oid
    if statement.owner is not None:
        owner = named_role(session, statement.owner).oid
    await session.view.change([SchemaDef(oid=session.db.allocate_oids(1), name=name, owner=owner)])
    with nullcontext() if owner == session.role_oid else acting_as(session, owner, restricted=False):
        for element in elements:
            await _create_element(session, plan, name, element)
    return Command("CREATE SCHEMA")


def _element_order(element: ast.StatementNode) -> int:
    """Sequences come first, then tables, views, indexes, triggers, privileges, in whatever order they are
    written (manual, CREATE SCHEMA).
    """
    return SCHEMA_ELEMENTS.index(type(element))


async def _create_element(session: Session, plan: Plan, schema: str, element: ast.StatementNode) -> None:
    """Bind and run one element of CREATE SCHEMA, as who runs it may; unqualified names mean the new schema first."""
    session.block.ensure_txn().next_statement()
    bound = bind_statement(
        element,
        plan.bound.text,
        session.catalog,
        (schema, *session.search_path),
        settings=session.bind_settings,
        database=session.database,
        security=session.row_security,
    )
    inner = Plan(bound, session.catalog)
    check_privileges(session, inner)
    await session.db.ports.specs[type(bound.statement)].handler(session, inner, bound.statement, ())


async def alter_schema_owner(
    session: Session, plan: Plan, statement: st.AlterSchemaOwner, params: Params
) -> Outcome:
    """ALTER SCHEMA ... OWNER TO."""
    schema = session.catalog.schema(statement.schema)
    if schema is None:
        raise SqlError("3F000", f'schema "{statement.schema}" does not exist')
    owner = named_role(session, statement.role).oid
    changed: list[Stored] = [replace(schema, owner=owner)]
    items = session.catalog.acl(PG_NAMESPACE_OID, schema.oid)
    if items is not None:
        acl = reowned(items, schema.owner, owner)
        changed.append(AclDef(class_oid=PG_NAMESPACE_OID, object_oid=schema.oid, sub_id=0, items=acl))
    await session.view.change(changed)
    return Command(plan.bound.tag)


async def create_view(session: Session, plan: Plan, statement: st.CreateView, params: Params) -> Outcome:
    """CREATE [OR REPLACE] VIEW."""
    if statement.follows:
        session.notice(following(statement.name))
    schema, schema_oid = await target_schema(session, statement.schema, statement.persistence)
    old = session.catalog.relation(schema, statement.name)
    if old is not None:
        if not statement.replace:
            raise SqlError("42P07", f'relation "{statement.name}" already exists')
        if old.kind != "v":
            raise SqlError("42809", f'"{statement.name}" is not a view')
        _check_replaced_columns(old, statement, session.catalog)
    else:
        await make_room(session, schema, statement.name)
        refuse_type_name(session, schema, statement.name)
    check_nesting(session.catalog, statement.name, statement.depends_on, old)
    relation = RelationDef(
        oid=old.oid if old is not None else session.db.allocate_oids(OIDS_PER_RELATION),
        schema_oid=schema_oid,
        schema=schema,
        name=statement.name,
        kind="v",
        columns=tuple(
            ColumnDef(
                attnum=number,
                name=column.name,
                type=plain_type(column.type),
                domain=domain_named(column.type),
                dims=0,
                collation=collation,
                default_sql=old.columns[number - 1].default_sql
                if old is not None and number <= len(old.columns)
                else None,
            )
            for number, (column, collation) in enumerate(
                zip(statement.columns, statement.collations, strict=True), 1
            )
        ),
        version=session.db.next_catalog_version(),
        view_sql=statement.sql,
        view_path=session.search_path,
        depends_on=tuple(sorted(statement.depends_on)),
        owner=old.owner if old is not None else session.role_oid,
        persistence=statement.persistence,
        options=dict(statement.options),
        triggers=old.triggers if old is not None else (),
    )
    before = session.catalog
    await session.view.change([relation])
    if old is not None and len(old.columns) < len(relation.columns):
        await rebase_queries(session, {relation.oid}, before)
    return Command("CREATE VIEW")


def _check_replaced_columns(old: RelationDef, statement: st.CreateView, catalog: CatalogSnapshot) -> None:
    """CREATE OR REPLACE VIEW may only add columns at the end (42P16)."""
    if len(statement.columns) < len(old.columns):
        raise SqlError("42P16", "cannot drop columns from view")
    for before, after in zip(old.columns, statement.columns, strict=False):
        if before.name != after.name:
            raise SqlError(
                "42P16",
                f'cannot change name of view column "{before.name}" to "{after.name}"',
                hint="Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            )
        if before.declared != after.type:
            was, now = format_type(*before.declared), format_type(*after.type)
            raise SqlError(
                "42P16",
                f'cannot change data type of view column "{before.name}" from {was} to {now}',
            )
        wanted = statement.collations[before.attnum - 1]
        if before.collation not in (0, wanted):  # 0: defined when views did not keep it
            raise SqlError(
                "42P16",
                f'cannot change collation of view column "{before.name}" from "{name_of(before.collation, catalog)}" to '
                f'"{name_of(wanted, catalog)}"',
            )


async def create_index(session: Session, plan: Plan, statement: st.CreateIndex, params: Params) -> Outcome:
    """CREATE [UNIQUE] INDEX: built ahead (``engine.definitions.table.index_ahead``), made known under a table lock."""
    table = table_of(session, statement.table)
    name = statement.name
    if name is None:
        name = unused_name(session, table.schema, table.name, statement.names, "idx")
    elif exists_already(session, table.schema, name, statement.if_not_exists):
        return Command("CREATE INDEX")
    refuse_change(session, table, "CREATE INDEX")
    index = index_of(statement, name)
    index = replace(index, oid=session.ahead.oid_of(table, index))
    if table.kind == "p":
        check_keys(replace(table, indexes=(index,)))
        if index.unique and not statement.only:
            refuse_keys_over_foreign(session, table, key=False)
        index = replace(index, valid=not (statement.only and session.catalog.partitions_of(table.oid)))
    if statement.concurrently:
        leaves(session, table, [index])
    if statement.hidden:
        with acting_as(session, table.owner, restricted=True):
            await add_computed_index(session, plan, table, index, statement.hidden)
        if table.kind == "p" and not statement.only:
            await inherit_below(session, table_of(session, table.oid), "CREATE INDEX")
        return Command("CREATE INDEX")
    if statement.concurrently:
        await lock_between_writers(session, ShardId(table.oid))
    await replace_table(
        session,
        replace(
            table,
            indexes=(*table.indexes, index),
            version=session.db.next_catalog_version(),
        ),
    )
    if table.kind == "p" and not statement.only:
        await inherit_below(session, table_of(session, table.oid), "CREATE INDEX")
    return Command("CREATE INDEX")


# --- ALTER ----------------------------------------------------------------------------------------


async def alter_table(session: Session, plan: Plan, statement: st.AlterTable, params: Params) -> Outcome:
    """ALTER TABLE: all actions, in order."""
    await apply_actions(session, plan, statement)
    return Command(plan.bound.tag)


async def comment(session: Session, plan: Plan, statement: st.Comment, params: Params) -> Outcome:
    """COMMENT ON; an empty text or NULL removes the comment."""
    if statement.class_oid == PG_LARGEOBJECT_OID:
        await large_objects.check_commentable(session, statement.object_oid)
    item = CommentDef(
        class_oid=statement.class_oid,
        object_oid=statement.object_oid,
        sub_id=statement.sub_id,
        text=statement.text or "",
    )
    if statement.text:
        await session.view.change([item])
    else:
        await session.view.change([], [key_of(item)])
    return Command("COMMENT")
