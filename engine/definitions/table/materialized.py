"""Materialized views: tables that hold what a query returned when it was last run for them.

    CREATE MATERIALIZED VIEW    a relation of kind m, a shard of its own, filled as CREATE TABLE AS fills its table
    REFRESH                     a new generation of the shard, filled by the query of now
    REFRESH CONCURRENTLY        the rows that differ are deleted and inserted; the others stay as they are

What a refresh reads, and what it writes, belong to one transaction: whoever sees its rows sees them with
everything that was committed before it, and nobody waits for it to read the view, whichever form it has. It
lets no scan of what it reads be overtaken: like INSERT ... SELECT it runs again, and at last locks the tables
(``engine.session.transaction.races``).
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from struct import Struct
from typing import Any, Final

from engine.base import accounts
from engine.base.eager import settle
from engine.base.executor import ExecContext
from engine.base.kept_rows import KeptRows
from engine.base.rows import ReadyRows, RowBatch, RowStream
from engine.base.slices import SLICE_ROWS
from engine.catalog.physical import shard_spec
from engine.changes.bulk.changes import delete_ids
from engine.changes.writes.dml import tables_to_lock
from engine.changes.writes.shape import row_record, whole_rows
from engine.definitions.dropping.drop import table_of
from engine.definitions.named_places import exists_already, target_schema
from engine.definitions.table.create import OIDS_PER_RELATION, fill_from
from engine.definitions.table.keys import building_indexes
from engine.definitions.table.rewrite import FewOrMore
from engine.definitions.table.unbuilt import build_unbuilt
from engine.definitions.type_names import make_room
from engine.plans.query import CompiledQuery, compiled_query, context, prepare_source, run_query
from engine.session.acting import acting_as
from engine.session.in_use import refuse_change
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from engine.session.transaction.timelines import crossing, unknown
from pgwire.codecs.registry import text_output
from pgwire.codecs.sizes import measure_of
from pgwire.give_way import give_way, openly, paced_iter
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.table.options import TIMELINE
from planner.catalog import DEFAULT_TIMELINE, ColumnDef, RelationDef
from planner.facts import BYTEA, RECORD
from planner.query import OutputColumn
from planner.types.domains import domain_named, plain_type
from txn.base.types import Row, ShardId

Params = tuple[Any, ...]

NEW_ROWS: Final = "new data for materialized view"
BUCKETS: Final = 256  # by the first byte of a digest
ENTRY: Final = Struct("=16sq")
TAIL_BYTES: Final = 16 << 10
PIECE: Final = 1 << 20  # of a long value
KEPT_BYTES: Final = 4 << 20  # in memory, of each of three stores of rows


async def create(
    session: Session, plan: Plan, statement: st.CreateMaterializedView, params: Params
) -> Outcome:
    """CREATE MATERIALIZED VIEW. It is in the timeline that its query reads, unless WITH says which.

    Raises SqlError 42P07, 3F000, 42704, 0A000 (a timeline other than its query's).
    """
    schema, schema_oid = await target_schema(session, statement.schema, "p")
    await make_room(session, schema, statement.name)
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
    session: Session, plan: Plan, statement: st.RefreshMaterializedView, params: Params
) -> Outcome:
    """REFRESH MATERIALIZED VIEW.

    Raises SqlError 23505 where the new rows do not fit a unique index, 21000 (CONCURRENTLY) for rows that are
    there twice.
    """
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
        await _replace_what_differs(session, relation, result)
        return
    await settle(session.block.ensure_txn().truncate(ShardId(relation.oid)))
    with building_indexes(relation, session):
        running = run_query(session, plan, "query", query.query, ctx)
        await fill_from(session, relation, query, ctx, running)
    await build_unbuilt(session, relation, [index.oid for index in relation.unbuilt])


async def _prepare(
    session: Session,
    plan: Plan,
    relation: RelationDef,
    statement: st.CreateMaterializedView | st.RefreshMaterializedView,
    params: Params,
) -> tuple[CompiledQuery, ExecContext]:
    """Return the view's query, and what it runs with in the session's transaction, which is going to write the view."""
    if statement.query is None:
        raise AssertionError("a materialized view has no query")
    query = compiled_query(plan, "query", statement.query)
    prepare_source(session, query)
    scans = tables_to_lock(session, plan, "query")
    await settle(session.block.ensure_txn().begin_write([ShardId(relation.oid)], scans))
    return query, context(session, plan, params)


# --- CONCURRENTLY -------------------------------------------------------------------------------


class _Digests:
    """Numbers of rows, by digests of what the rows print as: a few kilobytes of each bucket, the rest in a file."""

    def __init__(self, session: Session) -> None:
        self._kept = _store(session, (), (BYTEA,))
        self._tails = [bytearray() for _ in range(BUCKETS)]
        self._places: list[list[int]] = [[] for _ in range(BUCKETS)]

    def add(self, rows: Iterable[Row], numbers: Iterable[int]) -> None:
        """Note rows, whose number is what comes of them."""
        tails = self._tails
        for row, number in zip(rows, numbers, strict=True):
            digest = _digest(row)
            tails[digest[0]] += ENTRY.pack(digest, number)
            give_way()

    async def settle(self) -> None:
        """Let what has gathered go to the file."""
        for tail, places in zip(self._tails, self._places, strict=True):
            if len(tail) >= TAIL_BYTES:
                places.append(len(self._kept))
                await self._kept.add(RowBatch(rows=[(bytes(tail),)]))
                tail.clear()

    async def of(self, bucket: int) -> bytes:
        """Return the entries of a bucket."""
        found = [row[0] for place in self._places[bucket] for row in await self._kept.rows(place, place + 1)]
        return b"".join([*found, self._tails[bucket]])

    def close(self) -> None:
        """Drop everything."""
        self._kept.close()


def _digest(row: Row) -> bytes:
    """Return a digest of what a row prints as; long values are read piece by piece, from where they lie."""
    parts = blake2b(digest_size=16)
    for value in row:
        if isinstance(value, (bytes, str)) and len(value) > PIECE:
            parts.update(f"{type(value).__name__} {len(value)} ".encode())
            whole = memoryview(value) if isinstance(value, bytes) else value
            for start in range(0, len(value), PIECE):
                piece = whole[start : start + PIECE]
                parts.update(
                    piece if isinstance(piece, memoryview) else piece.encode("utf-8", "surrogatepass")
                )
                give_way()
        else:
            parts.update(f"{value!r}, ".encode("utf-8", "surrogatepass"))
    return parts.digest()


def _store(session: Session, columns: Sequence[OutputColumn], oids: Sequence[int]) -> KeptRows:
    db = session.db
    return KeptRows(
        Path(db.config.data_dir),
        lambda batch: db.arrow_rows(batch, columns),
        measure_of(oids),
        lambda: KEPT_BYTES,
        db.descriptors,
        NEW_ROWS,
        session.temp,
    )


async def _replace_what_differs(
    session: Session, relation: RelationDef, result: ReadyRows | RowStream
) -> None:
    """Make the rows of a materialized view those of ``result``; rows are equal that print alike.

    The new ones wait in a file, and are compared a bucket at a time: neither they nor the old ones are ever
    all in memory.
    """
    txn, shard = session.block.ensure_txn(), ShardId(relation.oid)
    width = len(relation.live)  # what indexes keep for themselves is behind, and made of it
    kept = _store(session, result.columns, [c.type.oid for c in relation.live])
    new, old = _Digests(session), _Digests(session)
    try:
        async for rows, batch in _batches(result, kept):
            first = len(kept)
            numbers = [2 * at + (None in row) for at, row in enumerate(rows, first)]
            openly(new.add, rows, numbers)
            await new.settle()
            await kept.add(batch)
            accounts.check()
        async for chunk in txn.scan(shard):
            openly(old.add, [one.values[:width] for one in chunk], [one.row_id for one in chunk])
            del chunk
            await old.settle()
            accounts.check()
        gone = array("q")
        added = bytearray(len(kept))
        for bucket in range(BUCKETS):
            twice = openly(_compare, await new.of(bucket), await old.of(bucket), added, gone)
            if twice is not None:
                [row] = await kept.rows(twice, twice + 1)
                raise SqlError(
                    "21000",
                    f'{NEW_ROWS} "{relation.name}" contains duplicate rows without any null columns',
                    detail=f"Row: {text_output(RECORD, row_record(relation)(row))}",
                )
            await asyncio.sleep(0)
        txn.next_statement()
        await delete_ids(session, shard, gone)
        source = FewOrMore(relation, _of(kept, added, whole_rows(session, relation)))
        few = await source.few()
        if few is None:
            await txn.bulk_insert(shard, source.batches())
        elif few:
            await settle(txn.insert(shard, few))
    finally:
        for one in (kept, new, old):
            one.close()


async def _batches(
    result: ReadyRows | RowStream, kept: KeptRows
) -> AsyncIterator[tuple[Sequence[Row], RowBatch]]:
    """Yield a result in batches of a few megabytes, each as rows, too."""
    if isinstance(result, ReadyRows):
        for start in range(0, len(result.rows), SLICE_ROWS):
            some = result.rows[start : start + SLICE_ROWS]
            yield some, RowBatch(rows=some)
        return
    try:
        async for batch in result.batches:
            for start in range(0, len(batch), SLICE_ROWS):
                if batch.rows is not None:
                    part = RowBatch(rows=batch.rows[start : start + SLICE_ROWS])
                else:
                    part = RowBatch(arrow=batch.arrow.slice(start, SLICE_ROWS))
                yield openly(kept.tuples, part), part
    finally:
        result.close()


def _compare(new: bytes, old: bytes, added: bytearray, gone: array[int]) -> int | None:
    """Mark the rows of one bucket that are to be added, and those that are to go; return a row without NULLs
    that is there twice, if any is.
    """
    wanted: dict[bytes, list[int]] = {}
    for digest, number in paced_iter(ENTRY.iter_unpack(new)):
        same = wanted.setdefault(digest, [])
        same.append(number >> 1)
        if len(same) > 1 and not number & 1:
            return same[0]
    for digest, row_id in paced_iter(ENTRY.iter_unpack(old)):
        same = wanted.get(digest, [])
        if same:
            same.pop()
        else:
            gone.append(row_id)
    for same in paced_iter(wanted.values()):
        for number in same:
            added[number] = 1
    return None


async def _of(
    kept: KeptRows, chosen: bytearray, complete: Callable[[Sequence[Row]], Sequence[Row]]
) -> AsyncIterator[Sequence[Row]]:
    """Yield rows that are chosen, as they are stored."""
    at = chosen.find(1)
    if at < 0:
        return
    async for batch in kept.batches(at, len(kept)):
        rows = list(compress(openly(kept.tuples, batch), memoryview(chosen)[at : at + len(batch)]))
        at += len(batch)
        if rows:
            yield openly(complete, rows)
