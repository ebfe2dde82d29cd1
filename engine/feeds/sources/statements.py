"""CREATE, ALTER and DROP SOURCE: rows of the catalog, which the running sources follow once they commit.

create    table(s) + shard of offsets + the source, in one transaction ──(applied)──> its task begins
pause     the source's row, locked X: between two batches                ──(applied)──> its task ends
drop      ends the task; what upstream keeps for it; table(s), offsets, the source
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.base.stored_objects import beside
from engine.catalog.physical import shard_spec
from engine.catalog.storage.stored import key_of
from engine.definitions.dropping.drop import drop_relations
from engine.definitions.named_places import exists_already, target_schema
from engine.definitions.needs.privileges import check as check_privileges
from engine.definitions.table.create import new_table
from engine.definitions.table.keys import add_keys
from engine.feeds.sources import kafka_topic, postgres_slot, rate
from engine.feeds.sources import offsets as stored
from engine.feeds.sources.feeding import feeding
from engine.feeds.sources.files_folder import check_folders
from engine.feeds.sources.files_read import csv_options
from engine.feeds.sources.options import Options, check
from engine.feeds.sources.postgres_tables import UpstreamTable, encoded
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.transaction.timelines import unknown
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.catalog import RelationDef, SourceDef
from planner.parse import parse
from txn.base.types import ShardId
from txn.persist.blobs.object_url import is_object_url

if TYPE_CHECKING:
    from engine.session.session import Session

Params = tuple[Any, ...]


async def create(session: Session, plan: Plan, statement: st.CreateSource, params: Params) -> Outcome:
    """CREATE SOURCE.

    Raises SqlError 42501, 42710, 42P07, 42704 (timeline), 22023 (options), and what its kind raises about upstream.
    """
    options = check(statement.kind, statement.options)
    tables, tables_from = await _tables(session, statement, options)
    await session.view.start_ddl(plan)
    check_privileges(session, plan)
    if statement.name in session.catalog.sources:
        if not statement.if_not_exists:
            raise SqlError("42710", f'source "{statement.name}" already exists')
        session.notice(f'source "{statement.name}" already exists, skipping', sqlstate="42710")
        return Command(plan.bound.tag)
    source = SourceDef(
        oid=session.db.allocate_oids(1),
        name=statement.name,
        kind=statement.kind,
        owner=session.role_oid,
        options=options,
        created_us=session.statement_time_us,
    )
    relations = [await _relation(session, table, source.oid) for table in tables]
    source = replace(
        source,
        tables=tuple(r.oid for r in relations),
        tables_from=tuple(map(encoded, tables_from)),
        timeline=relations[0].timeline,
    )
    if not session.catalog.has_timeline(source.timeline):
        raise unknown(source.timeline)
    txn = session.block.ensure_txn()
    for relation in relations:
        txn.create_shard(shard_spec(relation))
    txn.create_shard(stored.spec_of(source))
    await session.view.change([*relations, source])
    txn.on_applied(lambda _ts: feeding(session.db).sources.follow())
    return Command(plan.bound.tag)


async def _tables(
    session: Session, statement: st.CreateSource, options: dict[str, str]
) -> tuple[list[st.CreateTable], list[UpstreamTable]]:
    """Return the tables that a source is going to write, and what each is upstream where that is a table.

    What upstream has to be asked for is entered among the options.
    """
    kind = statement.kind
    if kind == "rate":
        if statement.has_columns:
            raise SqlError(
                "42601", "a RATE source has columns of its own", detail=f"They are {rate.COLUMNS}."
            )
        return [_with_columns(session, statement.table, rate.COLUMNS)], []
    if kind == "files":
        _check_files(statement, options)
        path, move_to = options["path"], options.get("move_to")
        await beside(is_object_url(path), check_folders, path, move_to, session.db.server_files)
        return [statement.table], []
    if kind == "postgres":
        if statement.has_columns or statement.table.name != statement.name:
            raise SqlError(
                "42601",
                "a POSTGRES source has the tables of its publication",
                hint="Its option schema says where they go.",
            )
        found = await postgres_slot.look(options, _slot_name(session, statement.name))
        schema = options.get("schema", statement.table.schema)
        return [_followed(session, statement.table, schema, table) for table in found], found
    if not statement.table.columns:
        raise SqlError("42601", "a KAFKA source requires columns")
    _check_envelope(statement, Options("kafka", options))
    await kafka_topic.look(feeding(session.db), statement.table, options)
    return [statement.table], []


def _check_files(statement: st.CreateSource, given: dict[str, str]) -> None:
    """Check what the options of a FILES source say together. Raises SqlError 42601, 22023."""
    options = Options("files", given)
    if not statement.table.columns:
        raise SqlError("42601", "a FILES source requires columns")
    _check_envelope(statement, options)
    form = options.need("format")
    if form == "csv":
        csv_options(options)
    else:
        for name in ("header", "delimiter", "null", "quote", "escape"):
            if name in given:
                raise SqlError("22023", f'option "{name}" goes with the format csv')
    if (options.need("after") == "move") != ("move_to" in given):
        raise SqlError("22023", 'the option "move_to" goes with after = move')


def _check_envelope(statement: st.CreateSource, options: Options) -> None:
    if options.need("envelope") == "upsert" and not any(key.primary for key in statement.table.keys):
        raise SqlError("22023", "envelope = upsert requires a primary key")


def _slot_name(session: Session, source: str) -> str:
    """Return a name for a replication slot that nobody else has."""
    plain = re.sub("[^a-z0-9_]", "_", source.lower())[:40]
    return f"holdfast_{plain}_{session.random_bytes(4).hex()}"


def _followed(
    session: Session, table: st.CreateTable, schema: str, upstream: UpstreamTable
) -> st.CreateTable:
    """Return the table for one of a publication. Raises SqlError 0A000 for types that there are not here."""
    try:
        made = _with_columns(session, table, upstream.definition())
    except SqlError as error:
        raise SqlError(
            "0A000" if error.sqlstate == "42704" else error.sqlstate,
            error.message,
            detail=f"Table {upstream.shown} of the publication is ({upstream.definition()}).",
        ) from None
    return replace(made, schema=schema, name=upstream.name)


def _with_columns(session: Session, table: st.CreateTable, columns: str) -> st.CreateTable:
    """Return a table with columns that are written as in CREATE TABLE."""
    [parsed] = parse(f"CREATE TABLE t ({columns})")
    bound = bind_statement(parsed.statement, parsed.text, session.catalog, ("public",)).statement
    if not isinstance(bound, st.CreateTable):
        raise AssertionError(f"CREATE TABLE is bound as {type(bound).__name__}")
    return replace(table, columns=bound.columns, keys=bound.keys)


async def _relation(session: Session, table: st.CreateTable, source_oid: int) -> RelationDef:
    """Return the definition of a new table. Raises SqlError 42P07, 3F000, 42501."""
    place = await target_schema(session, table.schema, table.persistence)
    exists_already(session, place[0], table.name, if_not_exists=False)
    return add_keys(session, new_table(session, place, table, source_oid), table.keys)


# --- ALTER and DROP -------------------------------------------------------------------------------


def _named(session: Session, name: str, if_exists: bool) -> SourceDef | None:
    """Return a source, None if it may be missing and is. Raises SqlError 42704."""
    source = session.catalog.sources.get(name)
    if source is None:
        if not if_exists:
            raise SqlError("42704", f'source "{name}" does not exist')
        session.notice(f'source "{name}" does not exist, skipping')
        return None
    return source


async def alter(session: Session, plan: Plan, statement: st.AlterSource, params: Params) -> Outcome:
    """ALTER SOURCE ... PAUSE or RESUME. Once PAUSE has committed no batch does; RESUME also tries a stopped
    source again.
    """
    await session.view.start_ddl(plan)
    check_privileges(session, plan)
    source = _named(session, statement.name, statement.if_exists)
    if source is None:
        return Command(plan.bound.tag)
    if source.paused != statement.pause:
        await session.view.change([replace(source, paused=statement.pause)])
    again = None if statement.pause else source.oid
    session.block.ensure_txn().on_applied(lambda _ts: feeding(session.db).sources.follow(again))
    return Command(plan.bound.tag)


async def drop(session: Session, plan: Plan, statement: st.DropSource, params: Params) -> Outcome:
    """DROP SOURCE: with its tables. Raises SqlError 42704, 42501, 2BP01 for what depends on those."""
    await session.view.start_ddl(plan)
    check_privileges(session, plan)
    found = [_named(session, name, statement.if_exists) for name in dict.fromkeys(statement.names)]
    sources = [source for source in found if source is not None]
    if any(source.kind == "postgres" for source in sources):
        session.block.must_be_alone("DROP SOURCE of a POSTGRES source")
    if sources:
        session.block.ensure_txn().on_end(feeding(session.db).sources.follow)
    for source in sources:
        await _drop(session, source, cascade=statement.cascade)
    for source in sources:
        if source.kind == "postgres":
            await _drop_slot(session, source)
    return Command(plan.bound.tag)


async def _drop(session: Session, source: SourceDef, *, cascade: bool) -> None:
    catalog = session.catalog
    relations = [r for r in map(catalog.relation_by_oid, source.tables) if r is not None]
    await drop_relations(session, relations, cascade=cascade, of_source=source.oid)
    await settle(session.block.ensure_txn().drop_shard(ShardId(source.oid)))
    await session.view.change([], [key_of(source)])


async def _drop_slot(session: Session, source: SourceDef) -> None:
    """Drop what upstream keeps for a source. If that cannot be done the source goes all the same, with a warning."""
    await feeding(session.db).sources.halt(source.oid)
    wrong = await postgres_slot.drop(source)
    if wrong is not None:
        slot = source.options["slot"]
        session.notice(
            f'replication slot "{slot}" of source "{source.name}" was left behind upstream: {wrong}',
            severity="WARNING",
            sqlstate="01000",
            hint=f"Upstream keeps its log for it until it is dropped there: SELECT pg_drop_replication_slot('{slot}').",
        )
