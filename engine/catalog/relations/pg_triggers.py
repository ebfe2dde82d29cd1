"""pg_trigger, and information_schema's views of triggers. Triggers of foreign keys, which PostgreSQL has
besides, do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final

from engine.catalog.referred import by_referred_in_triggers
from engine.catalog.relations.pg_functions import objects_named
from engine.catalog.relations.sources import RowDict, by_oid, of_each, relation
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_CLASS_OID, PG_CONSTRAINT_OID, PG_PROC_OID, PG_TRIGGER_OID
from planner.bind.define.table.generated import columns_used
from planner.bind.define.trigger import stored_condition
from planner.catalog import RelationDef
from planner.catalog.rights import Rights
from planner.catalog.trigger import TriggerDef
from planner.deparse.trigger import EVENT_WORDS, TIMING_WORDS
from planner.information.triggers import condition_text, trigger_text
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


@of_each("pg_trigger", keys={"tgrelid": by_oid})
def pg_trigger(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_trigger of a table."""
    for trigger in item.triggers:
        timing = next((c for c in item.constraints if c.oid == trigger.constraint), None)
        yield {
            "oid": trigger.oid, "tgrelid": item.oid, "tgparentid": trigger.parent, "tgname": trigger.name, "tgfoid": trigger.function,
            "tgtype": trigger.type_bits, "tgenabled": trigger.enabled, "tgnargs": len(trigger.args),
            "tgattr": trigger.attnums, "tgargs": b"".join(arg.encode() + b"\0" for arg in trigger.args),
            "tgqual": trigger.when_sql or None, "tgconstraint": trigger.constraint,
            "tgconstrrelid": trigger.from_table, "tgdeferrable": timing is not None and timing.deferrable,
            "tginitdeferred": timing is not None and timing.deferred,
            "tgoldtable": trigger.old_table or None, "tgnewtable": trigger.new_table or None,
        }  # fmt: skip


@of_each("pg_depend", keys={"refobjid": by_referred_in_triggers})
def pg_depend(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend: triggers on their tables and functions, and on what their conditions name."""
    for trigger in item.triggers:
        head = {"classid": PG_TRIGGER_OID, "objid": trigger.oid}
        yield {**head, "refclassid": PG_CLASS_OID, "refobjid": item.oid, "refobjsubid": 0, "deptype": "a"}
        if trigger.from_table:
            yield {**head, "refclassid": PG_CLASS_OID, "refobjid": trigger.from_table, "refobjsubid": 0, "deptype": "a"}  # fmt: skip
        if trigger.constraint:
            yield {
                "classid": PG_CONSTRAINT_OID, "objid": trigger.constraint, "refclassid": PG_TRIGGER_OID,
                "refobjid": trigger.oid, "refobjsubid": 0, "deptype": "i",
            }  # fmt: skip
        condition = stored_condition(trigger, item, session.catalog)
        tested = () if condition is None else sorted(a for a in columns_used(condition) if a > 0)
        for attnum in (*trigger.attnums, *tested):  # a column that both name is told twice
            yield {**head, "refclassid": PG_CLASS_OID, "refobjid": item.oid, "refobjsubid": attnum, "deptype": "n"}  # fmt: skip
        if trigger.function >= FIRST_USER_OID:
            yield {**head, "refclassid": PG_PROC_OID, "refobjid": trigger.function, "refobjsubid": 0, "deptype": "n"}  # fmt: skip
        for of, oid in objects_named(session, trigger.when_sql):
            yield {**head, "refclassid": of, "refobjid": oid, "refobjsubid": 0, "deptype": "n"}


_MANIPULATIONS: Final = "idu"  # TRUNCATE is not the standard's


def _seen(session: Reading, letters: str) -> Iterator[RelationDef]:
    """Yield the tables with triggers that the user owns, or has one of some rights on."""
    catalog: CatalogSnapshot = session.catalog
    rights = Rights(session.rights_catalog, session.role)
    for table in catalog.user_relations():
        others = table.schema.startswith("pg_temp_") and table.schema != session.temp_schema
        if table.triggers and not others:
            of_columns = any(rights.column(table, c.attnum, "awx") for c in table.live)
            if rights.owns(table.owner) or rights.relation(table, letters) or of_columns:
                yield table


@relation("information_schema.triggers", "session")
def information_triggers(session: Reading) -> Iterator[RowDict]:
    """Yield the triggers of tables, once for each kind of change; their order is among those of one kind."""
    rights = Rights(session.rights_catalog, session.role)
    for table in _seen(session, "awdDxt"):
        for letter in _MANIPULATIONS:
            fired = [trigger for trigger in table.triggers if letter in trigger.events]
            fired.sort(key=_kind)  # stable: by name within each
            for _, group in groupby(fired, _kind):
                for order, trigger in enumerate(group, 1):
                    text = trigger_text(session, table, trigger)
                    condition = condition_text(session, table, trigger, pretty=False)
                    yield {
                        "trigger_catalog": session.database, "trigger_schema": table.schema, "trigger_name": trigger.name,
                        "event_manipulation": EVENT_WORDS[letter], "event_object_catalog": session.database,
                        "event_object_schema": table.schema, "event_object_table": table.name, "action_order": order,
                        "action_condition": (condition or None) if rights.owns(table.owner) else None,
                        "action_statement": text[text.index(" EXECUTE FUNCTION ") + 1 :],
                        "action_orientation": "ROW" if trigger.row else "STATEMENT",
                        "action_timing": TIMING_WORDS[trigger.timing],
                        "action_reference_old_table": trigger.old_table or None,
                        "action_reference_new_table": trigger.new_table or None,
                    }  # fmt: skip


def _kind(trigger: TriggerDef) -> tuple[bool, str]:
    return trigger.row, trigger.timing


@relation("information_schema.triggered_update_columns", "session")
def triggered_update_columns(session: Reading) -> Iterator[RowDict]:
    """Yield the columns of UPDATE OF."""
    rights = Rights(session.rights_catalog, session.role)
    for table in _seen(session, ""):
        for trigger in table.triggers:
            for attnum in trigger.attnums:
                if rights.owns(table.owner) or rights.column(table, attnum, "awx"):
                    yield {
                        "trigger_catalog": session.database, "trigger_schema": table.schema, "trigger_name": trigger.name,
                        "event_object_catalog": session.database, "event_object_schema": table.schema,
                        "event_object_table": table.name, "event_object_column": table.column(attnum).name,
                    }  # fmt: skip
