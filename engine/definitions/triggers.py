"""CREATE, ALTER, DROP TRIGGER, and ALTER TABLE ENABLE and DISABLE TRIGGER.

A trigger is kept with its table: whatever changes it gives the table a new version, so plans are made anew,
and waits for the transactions that have written the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from engine.base.eager import settle
from engine.changes.triggers.firing import compiled
from engine.definitions.dropping.drop import table_of
from engine.definitions.table.partitions import inherit_below
from engine.definitions.table.trigger_dependencies import comments_of, trigger_words, without_triggers
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.catalog.trigger import TriggerDef
from txn.base.types import ShardId

Params = tuple[Any, ...]


async def create_trigger(
    session: Session, plan: Plan, statement: st.CreateTrigger, params: Params
) -> Outcome:
    """CREATE [OR REPLACE] [CONSTRAINT] TRIGGER. Raises SqlError 42710."""
    table = table_of(session, statement.table)
    made = statement.trigger
    old = next((trigger for trigger in table.triggers if trigger.name == made.name), None)
    if old is not None and not statement.replace:
        raise SqlError("42710", f'trigger "{made.name}" for relation "{table.name}" already exists')
    if old is not None and old.parent:
        raise SqlError(
            "42710",
            f'trigger "{made.name}" for relation "{table.name}" is an internal or a child trigger',
        )
    if old is not None and old.constraint:
        raise SqlError("42710", f'trigger "{made.name}" for relation "{table.name}" is a constraint trigger')
    made = replace(made, oid=session.db.allocate_oids(1) if old is None else old.oid)
    if statement.constraint is not None:
        if any(c.name == made.name for c in table.constraints):
            raise SqlError("42710", f'constraint "{made.name}" for relation "{table.name}" already exists')
        constraint = replace(statement.constraint, oid=session.db.allocate_oids(1))
        made = replace(made, constraint=constraint.oid)
        table = replace(table, constraints=(*table.constraints, constraint))
    await _store(session, table, [*(t for t in table.triggers if t is not old), made])
    compiled(session, table_of(session, table.oid))  # what cannot be evaluated is refused now
    if table.kind == "p" and made.row:
        if made.old_table or made.new_table:
            raise SqlError(
                "0A000",
                f'"{table.name}" is a partitioned table',
                detail="ROW triggers with transition tables are not supported on partitioned tables.",
            )
        if old is not None:
            await _drop_clones(session, table, [old])
        if statement.replace:
            await _drop_namesakes(session, table, made.name)
        await inherit_below(session, table_of(session, table.oid))
    return Command("CREATE TRIGGER")


async def rename_trigger(
    session: Session, plan: Plan, statement: st.RenameTrigger, params: Params
) -> Outcome:
    """ALTER TRIGGER ... RENAME TO. Raises SqlError 42704, 42710."""
    table = table_of(session, statement.table)
    old = trigger_of(table, statement.name)
    if old.parent:
        above = table_of(session, table.partition_of)
        raise SqlError(
            "0A000",
            f'cannot rename trigger "{old.name}" on table "{table.name}"',
            hint=f'Rename the trigger on the partitioned table "{above.name}" instead.',
        )
    await _rename(session, table, old, statement.new)
    return Command("ALTER TRIGGER")


async def _rename(session: Session, table: RelationDef, old: TriggerDef, new: str) -> None:
    if new != old.name and any(trigger.name == new for trigger in table.triggers):
        raise SqlError("42710", f'trigger "{new}" for relation "{table.name}" already exists')
    changed = replace(old, name=new)
    await _store(session, table, [changed if trigger is old else trigger for trigger in table.triggers])
    for child in session.catalog.partitions_of(table.oid):
        own = next((t for t in child.triggers if t.parent == old.oid), None)
        if own is not None:
            await _rename(session, child, own, new)


async def _drop_clones(session: Session, table: RelationDef, gone: Collection[TriggerDef]) -> None:
    """Drop what partitions have of the triggers ``gone`` of their table."""
    oids = {trigger.oid for trigger in gone}
    for child in session.catalog.partitions_of(table.oid):
        own = [trigger for trigger in child.triggers if trigger.parent in oids]
        if own:
            kept = without_triggers(child, own)
            await _store(session, kept, kept.triggers)
            await _drop_clones(session, child, own)


async def _drop_namesakes(session: Session, table: RelationDef, name: str) -> None:
    """Drop partitions' own triggers of a name: CREATE OR REPLACE TRIGGER of their table replaces them. Raises
    SqlError 42710.
    """
    for child in session.catalog.partitions_of(table.oid):
        own = next((trigger for trigger in child.triggers if trigger.name == name), None)
        if own is not None and own.constraint:
            raise SqlError("42710", f'trigger "{name}" for relation "{child.name}" is a constraint trigger')
        if own is not None:
            await drop_triggers(session, child, [name])
        await _drop_namesakes(session, table_of(session, child.oid), name)


async def drop_trigger(session: Session, plan: Plan, statement: st.DropTrigger, params: Params) -> Outcome:
    """DROP TRIGGER. Raises SqlError 42704."""
    table = table_of(session, statement.table)
    found = trigger_of(table, statement.name)
    if found.parent:
        above = session.catalog.trigger_by_oid(found.parent)
        needs = "" if above is None else trigger_words(session, above[1], above[0])
        raise SqlError(
            "2BP01",
            f"cannot drop {trigger_words(session, found, table)} because {needs} requires it",
            hint=f"You can drop {needs} instead.",
        )
    await drop_triggers(session, table, [statement.name])
    return Command("DROP TRIGGER")


async def drop_triggers(session: Session, table: RelationDef, names: Iterable[str]) -> None:
    """Drop triggers of a table, with their comments."""
    gone = [trigger for trigger in table.triggers if trigger.name in set(names)]
    kept = without_triggers(table, gone)
    await _store(session, kept, kept.triggers)
    await _drop_clones(session, table, gone)
    await session.view.change([], comments_of(gone))


async def enable_triggers(session: Session, table: RelationDef, action: st.EnableTriggers) -> None:
    """ENABLE and DISABLE TRIGGER; ALL means foreign keys, too. Raises SqlError 42704; 42501 for foreign keys
    unless the user is a superuser.
    """
    if action.everything:
        keys = (*table.foreign_keys, *(key for _, key in session.catalog.foreign_keys_to(table.oid)))
        if keys and not session.role.superuser:
            raise SqlError(
                "42501", f'permission denied: "RI_ConstraintTrigger_{keys[0].oid}" is a system trigger'
            )
        table = replace(table, keys_off=action.enabled == "D")
    if action.name is not None:
        trigger_of(table, action.name)
    await _store(
        session,
        table,
        [
            replace(trigger, enabled=action.enabled) if action.name in (None, trigger.name) else trigger
            for trigger in table.triggers
        ],
    )


def trigger_of(table: RelationDef, name: str) -> TriggerDef:
    """Return a table's trigger. Raises SqlError 42704."""
    found = next((trigger for trigger in table.triggers if trigger.name == name), None)
    if found is None:
        raise SqlError("42704", f'trigger "{name}" for table "{table.name}" does not exist')
    return found


async def _store(session: Session, table: RelationDef, triggers: Iterable[TriggerDef]) -> None:
    if table.stored:
        await settle(session.block.ensure_txn().lock_table(ShardId(table.oid), "X"))
    by_name = tuple(sorted(triggers, key=lambda trigger: trigger.name))
    version = session.db.next_catalog_version()
    await session.view.change([replace(table, triggers=by_name, version=version)])
