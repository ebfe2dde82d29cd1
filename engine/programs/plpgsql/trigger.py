"""Calls of trigger functions (manual 43.10.1): NEW, OLD and TG_... are variables, and what is returned is the
row to go on with.

run_trigger(function, event)     BEFORE ROW, INSTEAD OF     a row, or None: the row is left out
AFTER, STATEMENT           None, whatever is returned
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.programs.plpgsql.body import Body
from engine.programs.plpgsql.frame import Frame
from engine.programs.plpgsql.open_row import OpenRow
from engine.programs.plpgsql.routine import run_frame, signature
from engine.programs.routines.of_session import routines_of
from engine.session.trigger_event import TriggerEvent
from planner.base.errors import SqlError
from planner.catalog import FunctionDef
from planner.plpgsql.check import place
from planner.types import SqlType
from txn.base.types import Row


async def run_trigger(function: FunctionDef, event: TriggerEvent) -> Row | None:
    """Call a trigger function for an event, in the transaction of ``event.session``, as a statement of its own.

    Returns the row to go on with, values of ``event.table.live``; None to leave the row out, and whenever the
    result means nothing.

    Raises SqlError 42804 (a row of other columns), 2F005 (no RETURN), 54001 (too deep) and what its statements raise.
    """
    session = event.session
    routines = routines_of(session)
    table = event.table
    row_type = SqlType(table.oid + 1)  # of the relation's rows
    with routines.called(function):
        body = routines.body(
            ("trigger", function.oid, table.oid, table.version, event.transitions),
            function,
            lambda: _read(event, function, row_type),
        )
        form = body.row_form
        if form is None:
            raise AssertionError("the routine has no form for rows")
        frame = Frame(session, body, lambda: signature(session, function))
        frame.columns = form.outputs
        frame.mismatch = "returned row structure does not match the structure of the triggering table"
        frame.leaving = "during function exit"
        frame.ignored = event.level == "STATEMENT"
        special, values = body.routine.special, frame.values
        values[special["new"]] = None if event.new is None else OpenRow(form, event.new)
        values[special["old"]] = None if event.old is None else OpenRow(form, event.old)
        values[special["tg_name"]] = event.name
        values[special["tg_when"]] = event.when
        values[special["tg_level"]] = event.level
        values[special["tg_op"]] = event.op
        values[special["tg_relid"]] = table.oid
        values[special["tg_relname"]] = values[special["tg_table_name"]] = table.name
        values[special["tg_table_schema"]] = table.schema
        values[special["tg_nargs"]] = len(event.args)
        values[special["tg_argv"]] = event.args
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
