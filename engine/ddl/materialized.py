"""Materialized views: tables that hold what a query returned when it was last run for them.

    CREATE MATERIALIZED VIEW    a relation of kind m, a shard of its own, filled as CREATE TABLE AS fills its table
    REFRESH                     a new generation of the shard, filled by the query of now
    REFRESH CONCURRENTLY        the rows that differ are deleted and inserted; the others stay as they are

What a refresh reads, and what it writes, belong to one transaction: whoever sees its rows sees them with everything that
was committed before it, and nobody waits for it to read the view, whichever form it has. It lets no scan of what it reads
be overtaken: like INSERT ... SELECT it runs again, and at last locks the tables (``engine.transaction.races``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.catalog.physical import shard_spec
from engine.connection.portal import Command, Outcome
from engine.connection.session import Session
from engine.ddl.create import OIDS_PER_RELATION, exists_already, fill_from, target_schema
from engine.ddl.drop import table_of
from engine.ddl.in_use import refuse_change
from engine.ddl.keys import building_indexes
from engine.eager import settle
from engine.executor import ExecContext
from engine.reads.plans import Plan
from engine.reads.query import CompiledQuery, collect, compiled_query, context, prepare_source, run_query
from engine.routines.acting import acting_as
from engine.slices import in_slices
from engine.transaction.timelines import crossing, unknown
from engine.writes.dml import tables_to_lock
from engine.writes.shape import row_record, whole_rows
from pgwire.codecs.registry import text_output
from planner import statements as st
from planner.bind.options import TIMELINE
from planner.catalog import DEFAULT_TIMELINE, ColumnDef, RelationDef
from planner.domains import domain_named, plain_type
from planner.errors import SqlError
from planner.facts import RECORD
from txn.types import Row, RowId, ShardId

if TYPE_CHECKING:
    from engine.connection.backend import Connection

Params = tuple[Any, ...]

NEW_ROWS: Final = "new data for materialized view"


async def create(
    conn: Connection, plan: Plan, statement: st.CreateMaterializedView, params: Params
) -> Outcome:
    """CREATE MATERIALIZED VIEW. It is in the timeline that its query reads, unless WITH says which.

    Raises SqlError 42P07, 3F000, 42704, 0A000 (a timeline other than its query's).
    """
    session = conn.session
    schema, schema_oid = await target_schema(session, statement.schema, "p")
    if exists_already(session, schema, statement.name, statement.if_not_exists):
        return Command(plan.bound.tag)
    options = dict(statement.options)
    if plan.timeline not in ("", DEFAULT_TIMELINE):
        options.setdefault(TIMELINE, plan.timeline)
    relation = RelationDef(
        oid=session.db.allocate_oids(OIDS_PER_RELATION),
        schema_oid=schema_oid,
        schema=schema,
        name=statement.name,
        kind="m",
        columns=tuple(
            ColumnDef(
                attnum=number,
                name=column.name,
                type=plain_type(column.type),
                collation=column.collation,
                domain=domain_named(column.type),
                dims=0,
            )
            for number, column in enumerate(statement.columns, 1)
        ),
        version=session.db.next_catalog_version(),
        view_sql=statement.sql,
        view_path=session.search_path,
        depends_on=tuple(sorted(statement.depends_on)),
        owner=session.role_oid,
        options=options,
        populated=statement.with_data,
    )
    if not session.catalog.has_timeline(relation.timeline):
        raise unknown(relation.timeline)
    if plan.timeline and plan.timeline != relation.timeline:
        read = [r for r in map(session.catalog.relation_by_oid, plan.tables) if r is not None]
        raise crossing(
            [relation, *read], "a materialized view over tables of another timeline is not supported"
        )
    session.block.enter(relation.timeline, plan.tables)
    session.block.ensure_txn().create_shard(shard_spec(relation))
    await session.view.change([relation])
    if not statement.with_data:
        return Command(plan.bound.tag)
    with acting_as(session, relation.owner, restricted=True):
        query, ctx = await _prepare(session, plan, relation, statement, params)
        running = run_query(session, plan, "query", query.query, ctx)
        count = await fill_from(session, relation, query, ctx, running)
    return Command(f"SELECT {count}")


async def refresh(
    conn: Connection, plan: Plan, statement: st.RefreshMaterializedView, params: Params
) -> Outcome:
    """REFRESH MATERIALIZED VIEW.

    Raises SqlError 23505 where the new rows do not fit a unique index, 21000 (CONCURRENTLY) for rows that are there twice.
    """
    session = conn.session
    relation = table_of(session, statement.table)
    refuse_change(session, relation, "REFRESH MATERIALIZED VIEW")
    txn, shard = session.block.ensure_txn(), ShardId(relation.oid)
    populated = replace(
        relation, populated=statement.query is not None, version=session.db.next_catalog_version()
    )
    if populated.populated != relation.populated:
        await session.view.change([populated])
    if statement.query is None:
        await settle(txn.truncate(shard))
        return Command(plan.bound.tag)
    with acting_as(session, relation.owner, restricted=True):
        await _fill_again(session, plan, relation, statement, params)
    return Command(plan.bound.tag)


async def _fill_again(
    session: Session,
    plan: Plan,
    relation: RelationDef,
    statement: st.RefreshMaterializedView,
    params: Params,
) -> None:
    query, ctx = await _prepare(session, plan, relation, statement, params)
    if statement.concurrently:
        result = await run_query(session, plan, "query", query.query, ctx)
        await _replace_what_differs(session, relation, await collect(session, result))
        return
    await settle(session.block.ensure_txn().truncate(ShardId(relation.oid)))
    with building_indexes(relation, session):
        running = run_query(session, plan, "query", query.query, ctx)
        await fill_from(session, relation, query, ctx, running)


async def _prepare(
    session: Session,
    plan: Plan,
    relation: RelationDef,
    statement: st.CreateMaterializedView | st.RefreshMaterializedView,
    params: Params,
) -> tuple[CompiledQuery, ExecContext]:
    """Return the view's query, and what it runs with in the session's transaction, which is going to write the view."""
    assert statement.query is not None
    query = compiled_query(plan, "query", statement.query)
    prepare_source(session, query)
    scans = tables_to_lock(session, plan, "query")
    await settle(session.block.ensure_txn().begin_write([ShardId(relation.oid)], scans))
    return query, context(session, plan, params)


# --- CONCURRENTLY -------------------------------------------------------------------------------


async def _replace_what_differs(session: Session, relation: RelationDef, new: Sequence[Row]) -> None:
    """Make the rows of a materialized view those of ``new``; rows are equal that print alike."""
    txn, shard = session.block.ensure_txn(), ShardId(relation.oid)
    wanted: dict[str, list[Row]] = {}

    complete = whole_rows(session, relation)

    def gather(rows: Sequence[Row]) -> list[Row]:
        for seen, row in zip(rows, complete(rows), strict=True):
            same = wanted.setdefault(repr(row), [])
            if same and None not in seen:
                raise SqlError(
                    "21000",
                    f'{NEW_ROWS} "{relation.name}" contains duplicate rows without any null columns',
                    detail=f"Row: {text_output(RECORD, row_record(relation)(row))}",
                )
            same.append(row)
        return []

    await in_slices(new, gather)
    gone: list[RowId] = []
    async for chunk in txn.scan(shard):
        for stored in chunk:
            same = wanted.get(repr(stored.values))
            if same:
                same.pop()
            else:
                gone.append(stored.row_id)
    added = [row for same in wanted.values() for row in same]
    txn.next_statement()
    if gone:
        await settle(txn.delete(shard, gone))
    if added:
        await settle(txn.insert(shard, added))
