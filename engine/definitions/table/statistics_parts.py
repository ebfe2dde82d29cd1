"""Extended statistics as parts of their tables: what goes with a column, a schema or a role, what LIKE
copies, who owns them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.state import CatalogSnapshot
from engine.session.plans.plan import Replan
from planner.bind.define.statistics import columns_of
from planner.bind.define.table.naming import choose_name
from planner.catalog import Catalog, RelationDef
from planner.catalog.statistics import StatisticsDef
from planner.information.statistics import statistics_name

if TYPE_CHECKING:
    from engine.session.session import Session


def statistics_words(session: Session, one: StatisticsDef) -> str:
    """Return what messages about what depends on what call statistics."""
    return f"statistics object {statistics_name(session, one)}"


def statistics_of(session: Session, oid: int) -> tuple[RelationDef, StatisticsDef]:
    """Return statistics and their table. Raises Replan where they have been dropped since."""
    found = session.catalog.statistics_by_oid(oid)
    if found is None:
        raise Replan  # dropped since the plan was made
    return found


async def store_statistics(session: Session, table: RelationDef, changed: StatisticsDef) -> None:
    """Store statistics of a table anew."""
    kept = tuple(changed if one.oid == changed.oid else one for one in table.statistics)
    await session.view.change([replace(table, statistics=kept)])


async def drop_statistics_of(session: Session, table: RelationDef, oids: Collection[int]) -> None:
    """Drop statistics of a table; comments on them go with the change."""
    kept = tuple(one for one in table.statistics if one.oid not in oids)
    await session.view.change([replace(table, statistics=kept)])


async def drop_statistics_in(session: Session, schemas: Collection[int]) -> None:
    """Drop the statistics in schemas, of tables wherever these are."""
    for oid, (_table, one) in list(session.catalog.statistics().items()):
        if one.schema_oid in schemas:
            await drop_statistics_of(session, statistics_of(session, oid)[0], [oid])


def without_statistics_on(table: RelationDef, attnums: Collection[int], catalog: Catalog) -> RelationDef:
    """Return a table without the statistics that are over, or name, one of some columns."""
    if not table.statistics:
        return table
    kept = [one for one in table.statistics if columns_of(one, table, catalog).isdisjoint(attnums)]
    return replace(table, statistics=tuple(kept))


# --- LIKE ... INCLUDING STATISTICS ----------------------------------------------------------------


def with_copied(session: Session, table: RelationDef, copied: Collection[StatisticsDef]) -> RelationDef:
    """Return a new table with copies of another's statistics, in its own schema and under names of its own."""
    names: set[str] = set()
    made: list[StatisticsDef] = []

    def taken(name: str) -> bool:
        return name in names or session.catalog.statistics_named(table.schema_oid, name) is not None

    for one in copied:
        columns = [table.column(attnum).name for attnum in one.attnums]
        name = choose_name(table.name, [*columns, *("expr" for _ in one.expressions)], "stat", taken)
        names.add(name)
        oid = session.db.allocate_oids(1)
        made.append(replace(one, oid=oid, schema_oid=table.schema_oid, name=name, owner=session.role_oid))
    return replace(table, statistics=tuple(made))


# --- owners ---------------------------------------------------------------------------------------


def statistics_owned_by(catalog: CatalogSnapshot, role: int) -> list[tuple[RelationDef, StatisticsDef]]:
    """Return the statistics that a role owns, oldest first, each with its table."""
    return [(table, one) for table, one in catalog.statistics().values() if one.owner == role]


async def drop_statistics_owned(session: Session, roles: Collection[int]) -> None:
    """Drop the statistics that roles own."""
    for role in sorted(roles):
        for _table, one in statistics_owned_by(session.catalog, role):
            await drop_statistics_of(session, statistics_of(session, one.oid)[0], [one.oid])


async def reassign_statistics(session: Session, roles: Collection[int], to: int) -> None:
    """Give the statistics that roles own to another one."""
    for role in sorted(roles):
        for _table, one in statistics_owned_by(session.catalog, role):
            await store_statistics(session, statistics_of(session, one.oid)[0], replace(one, owner=to))
