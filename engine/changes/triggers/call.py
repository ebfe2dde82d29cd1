"""One call of a trigger function, within the statement that fires the trigger.

    UPDATE t                     statement 5 of the transaction, depth 0
       └── trigger function      depth 1: pg_trigger_depth()
              UPDATE log ...     statement 6: sees what 5 has staged so far
       <── row, or none          statement 5 goes on, and sees none of it

PostgreSQL's own trigger functions are here (``suppress_redundant_updates_trigger``, manual 9.28) or called
from here, as is that of the extension lo.
"""

from __future__ import annotations

from typing import Final

from engine.changes.constraints.values import same_image
from engine.changes.triggers.large_objects import LO_MANAGE, manage
from engine.changes.triggers.text_search import TSVECTOR_UPDATE, TSVECTOR_UPDATE_COLUMN, update_vector
from engine.session.trigger_event import TriggerEvent
from planner.base.errors import SqlError
from planner.bind.define.trigger import SUPPRESS_REDUNDANT_UPDATES
from planner.catalog.trigger import NO_TRANSITIONS, TriggerDef
from planner.query import NEW_ROWS, OLD_ROWS
from txn.base.types import Row

MAX_DEPTH: Final = 100
"""So deep triggers may fire each other; deeper is 54001."""


async def call(trigger: TriggerDef, event: TriggerEvent) -> Row | None:
    """Run a trigger's function; return the row to go on with, of ``event.table.live``, None to leave the row out.

    Raises SqlError 54001 where triggers fire each other too deep, 39P01 from PostgreSQL's own functions, and
    what the function raises.
    """
    session = event.session
    in_use = session.timing.in_use
    if len(in_use) >= MAX_DEPTH:
        raise SqlError(
            "54001", "stack depth limit exceeded", hint=f"Triggers may fire each other {MAX_DEPTH} deep."
        )
    txn = session.block.ensure_txn()
    number = txn.statement
    parts, session.parts = session.parts, None
    transitions, session.transitions = session.transitions, {}
    if event.transitions != NO_TRANSITIONS:
        session.transitions = {OLD_ROWS: event.old_rows, NEW_ROWS: event.new_rows}
    in_use.append(event.table.oid)
    try:
        return await _run(trigger, event)
    finally:
        in_use.pop()
        session.parts = parts
        session.transitions = transitions
        txn.resume_statement(number)


async def _run(trigger: TriggerDef, event: TriggerEvent) -> Row | None:
    if trigger.function == SUPPRESS_REDUNDANT_UPDATES:
        return _suppress_redundant_updates(event)
    if trigger.function in (TSVECTOR_UPDATE, TSVECTOR_UPDATE_COLUMN):
        return update_vector(event, from_column=trigger.function == TSVECTOR_UPDATE_COLUMN)
    function = event.session.catalog.function_by_oid(trigger.function)
    if function is None:
        raise AssertionError(f"trigger {trigger.name} has function {trigger.function}, which is none")
    if function.internal == LO_MANAGE:
        return await manage(event)
    return await event.session.db.ports.call_trigger(function, event)


def _suppress_redundant_updates(event: TriggerEvent) -> Row | None:
    """Return None for an update that changes nothing. Generated columns are not looked at: they follow from
    the others.
    """
    for wrong, rule in (
        (event.op != "UPDATE", "called on update"),
        (event.when != "BEFORE", "called before update"),
        (event.level != "ROW", "called for each row"),
    ):
        if wrong:
            raise SqlError("39P01", f"suppress_redundant_updates_trigger: must be {rule}")
    old, new = event.old, event.new
    if old is None:
        raise AssertionError("an UPDATE trigger fires without the old row")
    if new is None:
        raise AssertionError("an UPDATE trigger fires without the new row")
    plain = [i for i, column in enumerate(event.table.live) if not column.generated]
    return None if all(same_image(old[i], new[i]) for i in plain) else new
