"""Which tables TRUNCATE empties: those that are named, their partitions, and with CASCADE what refers to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from engine.catalog.reference_checks import references_to
from engine.session.plans.plan import Replan
from pgwire.give_way import give_way, paced
from planner.base.errors import SqlError
from planner.partitions.bounds import ancestors, descendants

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from planner import statements as st
    from planner.catalog import RelationDef


def truncated(
    catalog: CatalogSnapshot, statement: st.Truncate
) -> tuple[list[RelationDef], list[RelationDef]]:
    """Return all tables that become empty, and those among them that CASCADE adds, without the partitions of these.

    What is left out refers to none of them, where ``refuse_referenced`` has nothing against it. Raises Replan
    for a table that has been dropped.
    """
    tables: dict[int, RelationDef] = {}
    open_: list[RelationDef] = []
    cascaded: list[RelationDef] = []

    def add(table: RelationDef) -> None:
        for item in (table, *descendants(table, catalog)):
            if item.oid not in tables:
                tables[item.oid] = item
                open_.append(item)

    for oid in paced(statement.tables):
        named = catalog.relation_by_oid(oid)
        if named is None:
            raise Replan
        add(named)
    for table in open_ if statement.cascade else ():  # grows
        give_way()
        for child, _constraint in references_to(catalog, table):
            if not _among(child, tables, catalog):
                cascaded.append(child)
                add(child)
    return list(tables.values()), cascaded


def refuse_referenced(catalog: CatalogSnapshot, tables: Sequence[RelationDef]) -> None:
    """Raise SqlError 0A000 for a table that a foreign key of a table left out refers to."""
    oids = {table.oid for table in tables}
    for table in paced(tables):
        for child, _constraint in references_to(catalog, table):
            if not _among(child, oids, catalog):
                raise SqlError(
                    "0A000",
                    "cannot truncate a table referenced in a foreign key constraint",
                    detail=f'Table "{child.name}" references "{table.name}".',
                    hint=f'Truncate table "{child.name}" at the same time, or use TRUNCATE ... CASCADE.',
                )


def _among(table: RelationDef, oids: Collection[int], catalog: CatalogSnapshot) -> bool:
    return table.oid in oids or any(above.oid in oids for above in ancestors(table, catalog))
