"""VACUUM, ANALYZE, CHECKPOINT, REINDEX and CLUSTER (manual, part VI).

    VACUUM, CLUSTER, CHECKPOINT    hot rows become parts, which is what reclaiming, ordering and checkpointing mean here
    ANALYZE, VACUUM (ANALYZE)      columns are counted (engine.executors.statistics), after that
    REINDEX                        what expressions of users' objects give is computed anew, indexes that CONCURRENTLY has
                                   left behind are built; else nothing

VERBOSE tells of each table, as INFO: what is done, and what there is then.

An index cannot come to differ from its table as PostgreSQL's may after a crash, so there is nothing to make
anew, but where a text search configuration has changed that an index's expression names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.definitions.analyze_extended import analyze_extended
from engine.definitions.dropping.drop import table_of
from engine.definitions.dropping.function_uses import remake_indexes
from engine.definitions.needs.privileges import maintainable
from engine.definitions.table.tuning import tune
from engine.definitions.table.unbuilt import build_left
from engine.executors.server import executing
from engine.session.in_use import refuse_change
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.partitions.bounds import descendants
from txn.base.types import ShardId
from txn.inspect import shard_facts

if TYPE_CHECKING:
    from engine.base.statistics_records import ExtendedRecord
    from engine.session.session import Session
    from planner.catalog import IndexDef, RelationDef


async def maintain(
    session: Session, plan: Plan, statement: st.Maintenance, params: tuple[Any, ...]
) -> Outcome:
    """Run one. What it may not or cannot work on is skipped with a WARNING. Raises SqlError 25001 (in a block)."""
    if statement.alone:
        session.block.must_be_alone(statement.alone)
    if statement.what == "reindex":
        _refuse_partitioned(session, statement)
    for name in spaced(statement.not_tables):
        verb = statement.what
        session.warning(f'skipping "{name}" --- cannot {verb} non-tables or special system tables', "01000")
    tables = list(statement.tables)
    if statement.what in ("vacuum", "analyze"):
        tables = maintainable(session, tables, statement.what)
        _check_columns(session, statement, tables)
    if statement.what == "cluster" and statement.named:
        for relation in filter(None, map(session.catalog.relation_by_oid, tables)):
            refuse_change(session, relation, "CLUSTER")
    told = _Told(session) if statement.verbose else None
    if statement.what == "vacuum" or (statement.what == "cluster" and statement.named):
        await _flush(
            session, tables if statement.named else _unless_all(session, statement.what), statement.what, told
        )
    elif statement.what == "checkpoint":
        began_us = session.db.clock_us()
        await session.db.store.flush()
        session.db.upkeep.note_checkpoint(began_us, session.db.clock_us())
    elif statement.what == "reindex":
        reached = tables if statement.named else _within(session, statement)
        await remake_indexes(session, reached, concurrently=statement.concurrently)
        await build_left(session, statement, reached)
        if told is not None:
            told.indexes(reached)
    if statement.index:
        await _mark_clustered(session, statement)
    if statement.analyze:
        await _analyze(session, tables if statement.named else _all(session, statement.what), told)
    if statement.what in ("vacuum", "analyze"):
        session.db.virtual.recount()
    return Command(statement.what.upper())


async def _mark_clustered(session: Session, statement: st.Maintenance) -> None:
    """Mark the index that CLUSTER goes by from now on; of a partitioned table the indexes of its partitions
    that are parts of it.
    """
    for oid in statement.relations:
        table = table_of(session, oid)
        for part in (table, *descendants(table, session.catalog)):
            own = next((i.oid for i in part.indexes if statement.index in _with_parents(session, i)), 0)
            if part.kind != "p" and own:
                await tune(session, part, st.MarkClustered(index=own))


def _with_parents(session: Session, index: IndexDef) -> Iterator[int]:
    """Yield the oids of an index and of those that it is a part of."""
    found: IndexDef | None = index
    while found is not None:
        yield found.oid
        above = session.catalog.relation_by_oid(found.parent) if found.parent else None
        table = None if above is None else session.catalog.relation_by_oid(above.table_oid)
        oid = found.parent
        found = None if table is None else next((i for i in table.indexes if i.oid == oid), None)


def _refuse_partitioned(session: Session, statement: st.Maintenance) -> None:
    """Raise SqlError 25001 within a block for REINDEX of a partitioned table or index, of which PostgreSQL
    commits each partition's.
    """
    for oid in statement.relations:
        relation = session.catalog.relation_by_oid(oid)
        table = (
            relation
            if relation is None or relation.kind != "i"
            else session.catalog.relation_by_oid(relation.table_oid)
        )
        if relation is not None and table is not None and table.kind == "p":
            session.block.must_be_alone("REINDEX INDEX" if relation.kind == "i" else "REINDEX TABLE")


class _Told:
    """What VERBOSE tells, as INFO."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def begins(self, verb: str, oid: int) -> None:
        """Say what is done to a table."""
        self._say(f'{verb} "{self._name(oid)}"')

    def flushed(self, verb: str, oid: int) -> None:
        """Say what is in a table's parts now."""
        facts = shard_facts(self._session.db.store.core, ShardId(oid))
        if facts is not None:
            self._say(
                f'finished {verb} "{self._name(oid)}"',
                f"Parts: {facts.parts}, rows changed of late in memory: {facts.hot_rows}, bytes: {facts.bytes}.",
            )

    def counted(self, oid: int) -> None:
        """Say how many rows of a table were counted."""
        statistics, relation = self._session.db.statistics, self._session.catalog.relation_by_oid(oid)
        record = statistics.records.get(oid) if statistics is not None else None
        if relation is not None and record is not None:
            self._say(f'"{relation.name}": counted {record.rows} rows in {len(record.columns)} columns')

    def indexes(self, oids: Sequence[int]) -> None:
        """Say of every index of some tables that nothing was to be done."""
        for oid in oids:
            relation = self._session.catalog.relation_by_oid(oid)
            for index in relation.indexes if relation is not None else ():
                self._say(
                    f'index "{index.name}" is current', "It changes with its table: there is nothing to do."
                )

    def _name(self, oid: int) -> str:
        relation = self._session.catalog.relation_by_oid(oid)
        return str(oid) if relation is None else f"{relation.schema}.{relation.name}"

    def _say(self, message: str, detail: str | None = None) -> None:
        self._session.notice(message, severity="INFO", detail=detail)


async def _flush(session: Session, oids: Sequence[int] | None, what: str, told: _Told | None) -> None:
    """Have the hot rows of tables become parts, of all tables at once where ``oids`` is None and nobody wants
    to be told.
    """
    worked_on = _all(session, what) if oids is None else oids
    if oids is None and told is None:
        await session.db.store.flush()
    else:
        verb = "vacuuming" if what == "vacuum" else "clustering"
        for oid in worked_on:
            if told is not None:
                told.begins(verb, oid)
            await session.db.store.flush(ShardId(oid))
            if told is not None:
                told.flushed(verb, oid)
    if what == "vacuum":
        session.db.upkeep.note_vacuum(worked_on, session.db.clock_us())


def _check_columns(session: Session, statement: st.Maintenance, tables: Sequence[int]) -> None:
    """Raise SqlError 42703, 42701 for columns that are to be counted of ``tables``, which the user may work on."""
    for oid, sqlstate, message in statement.wrong_columns:
        relation = session.catalog.relation_by_oid(oid)
        if oid in tables or (relation is not None and relation.kind == "p"):
            raise SqlError(sqlstate, message)


def _all(session: Session, what: str) -> list[int]:
    return maintainable(session, [table.oid for table in _tables(session)], what)


def _tables(session: Session) -> list[RelationDef]:
    return [r for r in session.catalog.user_relations() if r.stored]


def _unless_all(session: Session, what: str) -> list[int] | None:
    """Return the tables that the user may work on, None for all there are."""
    allowed = _all(session, what)
    return None if len(allowed) == len(_tables(session)) else allowed


def _within(session: Session, statement: st.Maintenance) -> list[int]:
    """Return the tables of a schema or of the database; those of the catalog have nothing to be made anew."""
    if statement.object == "system":
        return []
    return [t.oid for t in _tables(session) if statement.object != "schema" or t.schema == statement.name]


async def _analyze(session: Session, oids: Sequence[int], told: _Told | None) -> None:
    statistics = executing(session.db).statistics
    if statistics is None:
        return
    named = [r for r in map(session.catalog.relation_by_oid, oids) if r is not None]
    relations = list({r.oid: r for one in named for r in (one, *descendants(one, session.catalog))}.values())
    if told is None:
        await statistics.analyze([(relation.oid, relation.timeline) for relation in relations])
    else:
        for relation in relations:
            told.begins("analyzing", relation.oid)
            await statistics.analyze([(relation.oid, relation.timeline)])
            told.counted(relation.oid)
    found: dict[int, ExtendedRecord] = {}
    for relation in relations:
        if relation.statistics:
            found |= await analyze_extended(session, relation)
    if found:
        living = {oid for space in session.db.spaces for oid in space.catalog.statistics()}
        await statistics.note_extended(found, living | session.catalog.statistics().keys())
