"""Indexes that CREATE INDEX and REINDEX CONCURRENTLY leave behind where they fail: named, but not built
(``RelationDef.unbuilt``).

    CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)     23505, a cancel, a time-out, what an expression raises
      its transaction                               rolled back
      a transaction of its own                      t.unbuilt = (i,)        indisvalid, indisready false
    REINDEX INDEX i, REINDEX TABLE t                built under the table's lock, t.indexes = (..., i)

PostgreSQL makes the index known first and builds it then; here it becomes known when it is built, or when
that has failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.definitions.table.rewrite import store_definition, store_with_hidden
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.table.index import computed_index, index_keys, with_hidden
from planner.bind.define.table.naming import choose_name
from planner.catalog import IndexDef, RelationDef, with_index_changed
from planner.partitions.bounds import descendants
from txn.base.errors import TxnError

if TYPE_CHECKING:
    from engine.session.session import Session

log = logging.getLogger("holdfast")

LEAVE_WAITS_MS: Final = 1000
"""How long the statement that has failed waits for those who have the table locked; then nothing is left behind."""


# --- what fails ---------------------------------------------------------------------------------------


def leaves(session: Session, table: RelationDef, indexes: Sequence[IndexDef]) -> None:
    """Say that the running statement, should it fail from now on, leaves these indexes behind; a temporary
    table's none.
    """
    session.ahead.left = () if table.persistence == "t" else tuple((table.oid, index) for index in indexes)


def again_beside(session: Session, table: RelationDef, index: IndexDef) -> IndexDef:
    """Return what REINDEX CONCURRENTLY makes beside an index: one like it under a name of its own, of no constraint."""
    name = choose_name(
        index.name, (), "ccnew", lambda name: session.catalog.relation(table.schema, name) is not None
    )
    return replace(
        index,
        name=name,
        constraint_oid=0,
        parent=0,
        clustered=False,
        replica_identity=False,
        deferrable=False,
    )


async def leave_behind(session: Session) -> None:
    """Store what the statement that has failed leaves behind, in a transaction of its own, which a further
    cancel does not reach.

    The failed one must hold no locks any more. Nothing is stored where the table is gone, the name taken by now, or the
    table locked for longer than ``LEAVE_WAITS_MS``.
    """
    left, session.ahead.left = session.ahead.left, ()
    await asyncio.shield(asyncio.ensure_future(_store(session, left)))


async def _store(session: Session, left: Sequence[tuple[int, IndexDef]]) -> None:
    beside = session.db.ports.beside(session)
    try:
        beside.block.begin_writing().set_lock_timeout(LEAVE_WAITS_MS)
        for oid, index in left:
            await beside.view.locks.take_relation(oid)
            table = beside.catalog.relation_by_oid(oid)
            if table is not None and beside.catalog.relation(table.schema, index.name) is None:
                await store_definition(beside, _with_unbuilt(beside, table, index))
        await beside.block.commit()
    except (TxnError, SqlError) as error:
        if beside.block.txn is not None:
            beside.block.rollback()
        log.warning("no invalid index is left behind: %s", error)
    finally:
        beside.let_go()


def _with_unbuilt(session: Session, table: RelationDef, index: IndexDef) -> RelationDef:
    if index.computed:
        keys, where = index_keys(index, table, session.catalog)
        index, hidden = computed_index(index, table, keys, where, session.catalog)
        table = with_hidden(table, [replace(column, dropped=True) for column in hidden])
    index = replace(index, oid=session.db.allocate_oids(1), valid=False)
    return replace(table, unbuilt=(*table.unbuilt, index))


# --- what builds --------------------------------------------------------------------------------------


async def build_left(session: Session, statement: st.Maintenance, tables: Sequence[int]) -> None:
    """REINDEX: build what CONCURRENTLY has left behind of the indexes that are named, or of all of ``tables``
    and their partitions.

    CONCURRENTLY of a table passes over them with a WARNING. Raises SqlError 25006, 23505, what expressions raise.
    """
    named = [r for r in map(session.catalog.relation_by_oid, statement.relations) if r is not None]
    indexes = {relation.oid for relation in named if relation.kind == "i"}
    for oid in tables:
        above = session.catalog.relation_by_oid(oid)
        for table in (above, *descendants(above, session.catalog)) if above is not None else ():
            concurrently = statement.concurrently and table.persistence != "t"
            if concurrently and not indexes:
                for index in table.unbuilt:
                    words = (
                        f'cannot reindex invalid index "{table.schema}.{index.name}" concurrently, skipping'
                    )
                    session.warning(words, "0A000")
            if not indexes and named and above is table:
                _tell_of_none(session, table, concurrently=concurrently)
            if concurrently and not indexes:
                continue
            wanted = [i for i in table.unbuilt if not indexes or not indexes.isdisjoint({i.oid, i.parent})]
            if not wanted:
                continue
            if session.block.ensure_txn().read_only:
                raise SqlError("25006", "cannot execute REINDEX in a read-only transaction")
            session.block.wrote = True
            await session.view.locks.take_relation(table.oid)
            await build_unbuilt(session, table, [i.oid for i in wanted], concurrently=concurrently)
    session.ahead.left = ()


def _tell_of_none(session: Session, table: RelationDef, *, concurrently: bool) -> None:
    """Say of a table that was named if it has nothing to be built anew."""
    if table.kind == "p" or (table.indexes if concurrently else table.every_index):
        return
    words = "that can be reindexed concurrently" if concurrently else "to reindex"
    session.notice(f'table "{table.name}" has no indexes {words}')


async def build_unbuilt(
    session: Session, table: RelationDef, oids: Collection[int], *, concurrently: bool = False
) -> None:
    """Build those of a table's indexes that are not, which then serve as any other; the table is locked until
    the transaction ends.

    ``concurrently``: while one is built it has the name under which it would be left behind. Raises SqlError
    23505, what expressions raise.
    """
    for oid in oids:
        before = session.catalog.relation_by_oid(table.oid)
        index = next((i for i in before.unbuilt if i.oid == oid), None) if before is not None else None
        if before is None or index is None:
            continue
        named = again_beside(session, before, index) if concurrently else index
        if concurrently:
            leaves(session, before, [named])
        changed = replace(
            before,
            columns=tuple(
                replace(c, dropped=False) if c.hidden and c.attnum in index.kept else c
                for c in before.columns
            ),
            indexes=(*before.indexes, replace(index, name=named.name, valid=True)),
            unbuilt=tuple(i for i in before.unbuilt if i.oid != oid),
        )
        if index.computed:
            await store_with_hidden(session, before, changed)
        else:
            await store_definition(session, changed)
        stored = session.catalog.relation_by_oid(table.oid)
        if named.name != index.name and stored is not None:
            await store_definition(
                session, with_index_changed(stored, oid, partial(_renamed, name=index.name))
            )


def _renamed(index: IndexDef, name: str) -> IndexDef:
    return replace(index, name=name)
