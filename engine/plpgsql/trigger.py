"""Calls of trigger functions (manual 43.10.1): NEW, OLD and TG_... are variables, and what is returned is the row to go on with.

run_trigger(function, event)     BEFORE ROW, INSTEAD OF     a row, or None: the row is left out
AFTER, STATEMENT           None, whatever is returned
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.plpgsql.body import Body
from engine.plpgsql.event import TriggerEvent
from engine.plpgsql.frame import Frame
from engine.plpgsql.routine import run_frame, signature
from pgwire.codecs.composite import pack_row
from planner.bind.calls import result_row
from planner.catalog import FunctionDef
from planner.errors import SqlError
from planner.plpgsql.check import place
from planner.query import OutputColumn
from planner.types import SqlType
from txn.types import Row


async def run_trigger(function: FunctionDef, event: TriggerEvent) -> Row | None:
    """Call a trigger function for an event, in the transaction of ``event.session``, as a statement of its own.

    Returns the row to go on with, values of ``event.table.live``; None to leave the row out, and whenever the result means nothing.

    Raises SqlError 42804 (a row of other columns), 2F005 (no RETURN), 54001 (too deep) and what its statements raise.
    """
    session = event.session
    routines = session.system.routines
    table = event.table
    row_type = SqlType(table.oid + 1)  # of the relation's rows
    async with routines.called(function):
        body = routines.body(
            ("trigger", function.oid, table.oid, table.version, event.transitions),
            function,
            lambda: _read(event, function, row_type),
        )
        frame = Frame(session, body, lambda: signature(session, function))
        frame.columns = tuple(OutputColumn(name=c.name, type=c.declared) for c in table.live)
        frame.mismatch = "returned row structure does not match the structure of the triggering table"
        frame.leaving = "during function exit"
        special = body.routine.special
        told: dict[str, Any] = {
            "new": _packed(event, event.new),
            "old": _packed(event, event.old),
            "tg_name": event.name,
            "tg_when": event.when,
            "tg_level": event.level,
            "tg_op": event.op,
            "tg_relid": table.oid,
            "tg_relname": table.name,
            "tg_table_name": table.name,
            "tg_table_schema": table.schema,
            "tg_nargs": len(event.args),
            "tg_argv": event.args,
        }
        for name, value in told.items():
            frame.values[special[name]] = value
        await run_frame(routines, frame)
    if event.level == "STATEMENT" or event.when == "AFTER":
        return None
    found: Sequence[Any] | None = frame.result
    return None if found is None else tuple(found)


def _read(event: TriggerEvent, function: FunctionDef, row_type: SqlType) -> Body:
    try:
        return Body(event.session, function, (), "trigger", row_type, event.steps)
    except SqlError as error:
        place(error, function.source, None)
        raise


def _packed(event: TriggerEvent, row: Row | None) -> bytes | None:
    """Return a row of the table as a value of its row type."""
    if row is None:
        return None
    made = result_row(event.session.catalog, event.table.oid + 1)
    assert made is not None
    return pack_row(row, made.slots, tuple(c.type.oid for c in made.live), len(made.columns))
