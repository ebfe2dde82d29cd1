"""What triggers of tables depend on, and what goes and is named with them: for DDL that changes tables, and
that of triggers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.graph import relations_naming
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_CONSTRAINT_OID, PG_TRIGGER_OID, StoredKey
from engine.session.catalog.names import described
from planner.bind.define.table.generated import columns_used
from planner.bind.define.trigger import stored_condition
from planner.catalog import Catalog, RelationDef
from planner.catalog.trigger import TriggerDef

if TYPE_CHECKING:
    from engine.session.session import Session


def columns_of(trigger: TriggerDef, table: RelationDef, catalog: Catalog) -> set[int]:
    """Return the columns that a trigger names; a whole row names none, as in PostgreSQL."""
    condition = stored_condition(trigger, table, catalog)
    used = set(trigger.attnums) if condition is None else {*trigger.attnums, *columns_used(condition)}
    return {attnum for attnum in used if attnum > 0}


def trigger_words(session: Session, trigger: TriggerDef, table: RelationDef) -> str:
    """Return how messages call a trigger: unlike other names PostgreSQL never quotes its one."""
    return f"trigger {trigger.name} on {described(session, table)}"


def without_triggers(table: RelationDef, gone: Collection[TriggerDef]) -> RelationDef:
    """Return a table without some triggers, and the constraints that these are."""
    constraints = {trigger.constraint for trigger in gone if trigger.constraint}
    return replace(
        table,
        triggers=tuple([trigger for trigger in table.triggers if trigger not in gone]),
        constraints=tuple([c for c in table.constraints if c.oid not in constraints]),
    )


def comments_of(triggers: Iterable[TriggerDef]) -> list[StoredKey]:
    """Return the keys of what comments there may be on triggers, and on the constraints that they are."""
    found: list[StoredKey] = []
    for trigger in triggers:
        found.append((f"comment/{PG_TRIGGER_OID}", trigger.oid, 0))
        if trigger.constraint:
            found.append((f"comment/{PG_CONSTRAINT_OID}", trigger.constraint, 0))
    return found


def triggers_from(catalog: CatalogSnapshot, oids: Collection[int]) -> list[tuple[RelationDef, TriggerDef]]:
    """Return the constraint triggers whose FROM names one of some relations, and that are not on one of them."""
    return [
        (table, trigger)
        for table in relations_naming(catalog, oids)
        if table.oid not in oids
        for trigger in table.triggers
        if trigger.from_table in oids
    ]
