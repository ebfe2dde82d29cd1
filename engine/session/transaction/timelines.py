"""Timelines in SQL: CREATE and DROP TIMELINE, and that a transaction keeps to one (A9, A12, U13).

    CREATE TIMELINE sensors                                    an oracle of its own, at once durable; then the catalog's row
    CREATE TABLE r (...) WITH (timeline = 'sensors')           for good: the timestamps of its rows are of that timeline
    SELECT ... FROM r                                          reads at a timestamp of sensors
    SELECT ... FROM r JOIN t                                   0A000: names both timelines, and who is in them
    BEGIN; SELECT ... FROM t; SELECT ... FROM r                25000 likewise: the first table settles it

The oracle is made before the row that names it commits, and goes after the row has gone; whichever way the
transaction ends, ``Database.settle_timeline`` makes the store agree with the catalog, and a start after a crash does.
The catalog, and so every schema change, is common to all timelines (``txn.log.timeline``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.spaces import objects_in
from engine.catalog.storage.store import INDEX
from engine.catalog.storage.stored import CATALOG_SHARD, key_of
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import DEFAULT_TIMELINE, RelationDef, TimelineDef
from txn.api import Transaction
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

Params = tuple[Any, ...]

_SHOWN = 3  # tables of one timeline that a message names


def unknown(name: str) -> SqlError:
    """Return the error for a timeline that does not exist."""
    return SqlError("42704", f'timeline "{name}" does not exist')


def gone(name: str) -> SqlError:
    """Return the error for a timeline that a past catalog, or a plan of just now, still knows."""
    error = unknown(name)
    error.detail = "It was dropped, and what its tables held earlier went with it."
    return error


def check_alone(plan: Plan, catalog: CatalogSnapshot) -> None:
    """Raise 0A000 if a statement reads, writes or defines over tables of several timelines."""
    if plan.crosses:
        relations = [r for r in map(catalog.relation_by_oid, plan.tables) if r is not None]
        raise crossing(relations, f"{plan.bound.tag} over tables of several timelines is not supported")


def crossing(relations: Iterable[RelationDef], message: str) -> SqlError:
    """Return the 0A000 error that says which of the relations is in which timeline."""
    return SqlError(
        "0A000",
        message,
        detail=_who_is_where(relations),
        hint="A statement reads one moment, and a moment belongs to one timeline.",
    )


def outside(timeline: str, other: str, relations: Iterable[RelationDef]) -> SqlError:
    """Return the 25000 error for a statement in one timeline whose transaction is in another."""
    return SqlError(
        "25000",
        f'the statement uses timeline "{timeline}", but its transaction is in timeline "{other}"',
        detail=_who_is_where(relations),
        hint="A transaction keeps to the timeline of the first table that it uses.",
    )


def _who_is_where(relations: Iterable[RelationDef]) -> str:
    by_timeline: dict[str, list[str]] = {}
    for relation in relations:
        by_timeline.setdefault(relation.timeline, []).append(f"{relation.schema}.{relation.name}")
    lines = []
    for timeline, names in sorted(by_timeline.items()):
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        verb = "are" if len(names) > 1 else "is"
        lines.append(f'{", ".join(sorted(names)[:_SHOWN])}{more} {verb} in timeline "{timeline}".')
    return " ".join(lines)


async def keep(session: Session, txn: Transaction, name: str) -> None:
    """Keep others from dropping a timeline until a writing transaction ends. Raises SqlError 42704: it is gone."""
    found = session.catalog.timelines.get(name)
    if found is not None and not await settle(txn.lookup(ShardId(CATALOG_SHARD), INDEX, [key_of(found)])):
        raise gone(name)


# --- CREATE and DROP ------------------------------------------------------------------------------


async def create_timeline(
    session: Session, plan: Plan, statement: st.CreateTimeline, params: Params
) -> Outcome:
    """CREATE TIMELINE. Raises SqlError 42501, 42710, 42939 for names that begin with pg_."""
    session, name = session, statement.name
    if session.catalog.has_timeline(name):
        if not statement.if_not_exists:
            raise SqlError("42710", f'timeline "{name}" already exists')
        session.notice(f'timeline "{name}" already exists, skipping', sqlstate="42710")
        return Command(plan.bound.tag)
    if name.startswith("pg_"):
        raise SqlError(
            "42939",
            f'unacceptable timeline name "{name}"',
            detail='The prefix "pg_" is reserved for system timelines.',
        )
    session.block.ensure_txn().on_end(partial(session.db.settle_timeline, name))
    await session.db.store.create_timeline(name)
    await session.view.change([TimelineDef(oid=session.db.allocate_oids(1), name=name)])
    return Command(plan.bound.tag)


async def drop_timeline(session: Session, plan: Plan, statement: st.DropTimeline, params: Params) -> Outcome:
    """DROP TIMELINE. Raises SqlError 42501, 42704; 2BP01 while a table is in it, or for the default one."""
    for name in statement.names:
        if name == DEFAULT_TIMELINE:
            raise SqlError(
                "2BP01", f"cannot drop timeline {name} because it is required by the database system"
            )
        found = session.catalog.timelines.get(name)
        if found is None:
            if not statement.if_exists:
                raise unknown(name)
            session.notice(f'timeline "{name}" does not exist, skipping')
            continue
        used = sorted(
            f"{'materialized view' if r.kind == 'm' else 'table'} {r.schema}.{r.name} is in timeline {name}"
            for r in session.catalog.user_relations()
            if r.stored and r.timeline == name
        )
        for space in session.db.spaces:
            count = sum(r.stored and r.timeline == name for r in space.catalog.user_relations())
            if count and space.oid != session.database_oid:
                used.append(objects_in(session.catalog, space.oid, count))
        used += [
            f"subscription {named.record.name} reads timeline {name}"
            for named in session.db.named
            if named.record.timeline == name
        ]
        if not used and session.db.store.has_timeline(name) and session.db.store.kept_durably(name):
            used.append(f"a subscription that is being created reads timeline {name}")
        if used:
            raise SqlError(
                "2BP01",
                f"cannot drop timeline {name} because other objects depend on it",
                detail="\n".join(used),
                hint="Drop these first.",
            )
        session.block.ensure_txn().on_end(partial(session.db.settle_timeline, name))
        await session.view.change([], [key_of(found)])
    return Command(plan.bound.tag)
