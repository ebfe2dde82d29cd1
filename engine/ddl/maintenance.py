"""VACUUM, ANALYZE, CHECKPOINT, REINDEX and CLUSTER (manual, part VI).

    VACUUM, CLUSTER, CHECKPOINT    hot rows become parts, which is what reclaiming, ordering and checkpointing mean here
    ANALYZE, VACUUM (ANALYZE)      columns are counted (engine.statistics), after that
    REINDEX                        nothing

An index cannot come to differ from its table as PostgreSQL's may after a crash, so there is nothing to make anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.connection.portal import Command, Outcome
from engine.ddl.privileges import maintainable
from engine.reads.plans import Plan
from pgwire.backend import Responder
from planner import statements as st
from txn.types import ShardId

if TYPE_CHECKING:
    from engine.connection.backend import Connection
    from engine.connection.session import Session


async def maintain(
    conn: Connection, plan: Plan, statement: st.Maintenance, params: tuple[Any, ...], out: Responder
) -> Outcome:
    """Run one. What it may not or cannot work on is skipped with a WARNING. Raises SqlError 25001 (in a block)."""
    session = conn.session
    if statement.alone:
        session.block.must_be_alone(statement.alone)
    for name in statement.not_tables:
        verb = statement.what
        session.warning(f'skipping "{name}" --- cannot {verb} non-tables or special system tables', "01000")
    tables = maintainable(session, statement.tables, statement.what)
    if statement.what in ("vacuum", "cluster") and statement.named:
        for oid in tables:
            await session.db.store.flush(ShardId(oid))
    elif statement.what in ("vacuum", "checkpoint"):
        await session.db.store.flush()
    if statement.analyze:
        await _analyze(session, tables if statement.named else _all(session, statement.what))
    return Command(statement.what.upper())


def _all(session: Session, what: str) -> list[int]:
    tables = [r.oid for r in session.catalog.user_relations() if r.kind in "rm" and r.stored]
    return maintainable(session, tables, what)


async def _analyze(session: Session, oids: Sequence[int]) -> None:
    statistics = session.db.statistics
    if statistics is None:
        return
    relations = [r for r in map(session.catalog.relation_by_oid, oids) if r is not None]
    await statistics.analyze([(relation.oid, relation.timeline) for relation in relations])
