"""Calls of PL/pgSQL functions and procedures, and DO blocks.

SELECT f(1)   a statement of the transaction
└── f       a frame: its variables, its statements each a statement of the transaction
└── g(2)   a call within
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.programs.plpgsql.body import Body
from engine.programs.plpgsql.frame import Frame
from engine.programs.plpgsql.interpreter import Interpreter
from engine.programs.plpgsql.results import finished
from engine.programs.routines.of_session import routines_of
from planner.base.errors import SqlError
from planner.catalog import FunctionDef
from planner.conversion.polymorphic import enforce
from planner.facts import RECORD, REGPROCEDURE, TRIGGER, VOID
from planner.functions.system.reg_output import named_output
from planner.plpgsql.check import place
from planner.plpgsql.declarations import RoutineKind
from planner.query import OutputColumn, SqlCall
from planner.types import SqlType
from planner.types.domains import is_domain
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.programs.routines.calls import Routines
    from engine.session.session import Session

INLINE: Final = "inline_code_block"
"""What a DO block is called."""


def signature(session: Session, function: FunctionDef) -> str:
    """Return a function as CONTEXT shows it: with the types of its arguments, its schema where the path does
    not find it.
    """
    if not function.oid:
        return function.name
    return str(named_output(session, REGPROCEDURE, function.oid))


async def call_function(
    routines: Routines, function: FunctionDef, call: SqlCall, args: Row, *, atomic: bool
) -> tuple[Sequence[OutputColumn], Sequence[Row]]:
    """Run a function or procedure; return its columns and rows. ``atomic``: it cannot end transactions.

    Raises what its statements raise, 2F005.
    """
    session = routines.session
    if function.result == TRIGGER:
        raise SqlError(
            "0A000",
            "trigger functions can only be called as triggers",
            where=f'compilation of PL/pgSQL function "{function.name}" near line 1',
        )
    types = call.domains or tuple(arg.type.oid for arg in call.args)
    kind: RoutineKind = "procedure" if function.kind == "p" else "function"
    body = routines.body(
        ("plpgsql", function.oid, types), function, lambda: _read(session, function, types, kind)
    )
    frame = Frame(session, body, lambda: signature(session, function))
    frame.atomic = atomic
    if call.outputs:
        frame.columns = call.outputs
        if len(call.outputs) == 1 and call.type.oid != RECORD:
            frame.scalar = call.type
    elif call.type.oid != RECORD:
        # executors see what a domain is over; what it demands is looked at here
        result = enforce(types, function.inputs, function.result)[1]
        frame.scalar = SqlType(result) if is_domain(result) else call.type
        frame.columns = body.columns(call.type)
    if body.routine.outputs and function.kind == "p":
        frame.columns = call.outputs
    for number, value in zip(body.routine.inputs, args, strict=True):
        variable = body.routine.variables[number]
        frame.doing = "during function entry"
        if variable.kind != "record" or value is None:
            frame.values[number] = value
        else:
            await frame.store(number, value, variable.type)
    frame.doing = ""
    await run_frame(routines, frame)
    return finished(frame)


def _read(session: Session, function: FunctionDef, types: Sequence[int], kind: RoutineKind) -> Body:
    try:
        return Body(session, function, types, kind)
    except SqlError as error:
        place(error, function.source, None)
        raise


async def run_frame(routines: Routines, frame: Frame) -> None:
    """Run the body of a call that has its arguments."""
    stack = routines.stack

    stack.append(frame)
    try:
        await Interpreter(frame, partial(routines.context, frame)).run()
    finally:
        stack.pop()


async def run_do(session: Session, source: str, source_at: int | None, *, alone: bool, atomic: bool) -> None:
    """DO. ``alone``: it is the client's statement, in whose text errors of reading it have their place;
    ``atomic`` as for functions.
    """
    function = FunctionDef(
        oid=0, schema_oid=0, schema="", name=INLINE, modes=(), names=(), types=(), result=VOID, source=source,
        language="plpgsql",
    )  # fmt: skip
    try:
        body = Body(session, function, (), "block")
    except SqlError as error:
        place(error, source, source_at if alone else None)
        raise
    routines = routines_of(session)
    frame = Frame(session, body, lambda: INLINE)
    frame.scalar = SqlType(VOID)
    frame.atomic = atomic
    with routines.within():
        await run_frame(routines, frame)
