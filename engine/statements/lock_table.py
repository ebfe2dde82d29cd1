"""LOCK TABLE: PostgreSQL's eight levels as the five table locks there are.

    ACCESS SHARE, ROW SHARE            IS     what readers for update and writers of other rows tolerate
    ROW EXCLUSIVE                      IX
    SHARE                              S
    SHARE UPDATE, SHARE ROW EXCLUSIVE  SIX    (the first is a little stronger than PostgreSQL's)
    EXCLUSIVE, ACCESS EXCLUSIVE        X

A lock makes the transaction a writing one: it moves to the latest state, so what it reads next is what the
lock protects. Transactions that only read never wait for a lock (P5), so none keeps them out. A READ ONLY
transaction sees one moment anyway: the levels it may ask for (up to ROW EXCLUSIVE) need nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.base.eager import settle
from engine.session.plans.plan import Plan
from engine.session.portal import Command
from engine.session.session import Session
from engine.session.transaction.timelines import crossing
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog.relation_kinds import TABLES
from txn.api import TableLock
from txn.base.types import ShardId

ROW_EXCLUSIVE = 3
_NEVER_WAIT_MS = -1
LOCKS: dict[int, TableLock] = {1: "IS", 2: "IS", 3: "IX", 4: "SIX", 5: "S", 6: "SIX", 7: "X", 8: "X"}


@contextmanager
def waiting(session: Session, may: bool) -> Iterator[None]:
    """Let the transaction wait for no lock unless it ``may``: 55P03 where it would have to."""
    txn = session.block.ensure_txn()
    if not may:
        txn.set_lock_timeout(_NEVER_WAIT_MS)
    try:
        yield
    finally:
        if not may:
            txn.set_lock_timeout(session.derived.lock_timeout_ms)


async def lock_table(
    session: Session, plan: Plan, statement: st.LockTable, params: tuple[Any, ...]
) -> Command:
    """Lock tables, and those that views read, until the transaction ends. Views themselves have no locks.

    Raises 55P03 with NOWAIT when it would have to wait, 25P01 outside a transaction block, 25006 for a strong
    lock in a READ ONLY one.
    """
    if session.block.is_alone:
        raise SqlError("25P01", "LOCK TABLE can only be used in transaction blocks")
    txn = session.block.ensure_txn()
    if txn.read_only:
        if statement.mode > ROW_EXCLUSIVE:
            raise SqlError("25006", "cannot execute LOCK TABLE in a read-only transaction")
        return Command("LOCK TABLE")
    read = (oid for oid, _ in statement.beneath)
    oids = dict.fromkeys((*statement.tables, *read, *statement.partitions))
    found = (session.catalog.relation_by_oid(oid) for oid in oids)
    relations = [r for r in found if r is not None and r.kind in TABLES and not r.virtual]
    if len({relation.timeline for relation in relations}) > 1:
        raise crossing(relations, "LOCK TABLE over tables of several timelines is not supported")
    with waiting(session, not statement.nowait):
        for relation in relations:
            await settle(txn.lock_table(ShardId(relation.oid), LOCKS[statement.mode]))
    await session.view.start_write(plan, ())
    return Command("LOCK TABLE")
