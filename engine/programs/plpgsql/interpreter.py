"""Runs the statements of a PL/pgSQL function one after another.

    statements ──> a statement ──> nothing          the next one
                                   Signal           EXIT, CONTINUE, RETURN: whoever it is for is around this one
                                   an error         the block around has a handler, or it goes on to the caller

A block with EXCEPTION is a part of the transaction that can be undone by itself: what fails in it is undone
before its handler runs. Errors by which a transaction loses a race are never handled: the statement that
called the function runs again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.base.where import tell_where, told
from engine.programs.plpgsql import dynamic, parts, raising, results
from engine.programs.plpgsql.constants import converted
from engine.programs.plpgsql.extra_checks import extra_level
from engine.programs.plpgsql.frame import Frame, affected
from engine.programs.plpgsql.program import Program
from engine.programs.plpgsql.signals import RETURN, Signal, after
from engine.programs.routines.of_session import routines_of
from engine.session.portal import Cursor, Rows
from pgwire.bounded import BoundedArray, bounded
from pgwire.codecs.array import dimensions
from pgwire.give_way import openly
from planner import ast
from planner.base.arrays import flat
from planner.base.errors import SqlError
from planner.evaluate import Env, Shared
from planner.facts import INT4, TEXT
from planner.plpgsql import tree
from planner.plpgsql.conditions import handles
from planner.query import OutputColumn
from planner.types import SqlType
from planner.types.facts import element_of, format_type
from txn.base.errors import WaitCancelled

if TYPE_CHECKING:
    from engine.session.session import Session
    from pgwire.errors import ErrorReport


_INT4: Final = SqlType(INT4)
_TEXT: Final = SqlType(TEXT)
_MAX_INT4: Final = 2**31 - 1
AHEAD_FIRST: Final = 10
AHEAD: Final = 50
"""So many rows a loop over a query fetches at first, and then each time, as in PostgreSQL: what they compute
is done by then."""
_CHANGES: Final = ast.Insert | ast.Update | ast.Delete | ast.Merge


class Interpreter:
    """Runs one frame. ``around``: CONTEXT of the calls around it, innermost first, asked for when it is told."""

    __slots__ = ("around", "frame", "session")

    def __init__(self, frame: Frame, around: Callable[[], list[str]]) -> None:
        """Run ``frame``."""
        self.frame = frame
        self.session: Session = frame.session
        self.around = around

    async def run(self) -> None:
        """Run the whole body; what it returns is in the frame. Raises SqlError 2F005 where it ends without RETURN."""
        frame = self.frame
        try:
            program = frame.body.program(frame.scalar)
            if program is None:
                signal = await self.block(frame.body.routine.body)
            else:
                signal = await self._drive(program)
            if signal is None and self._must_return():
                frame.line, frame.doing = 0, ""
                raise _no_return(frame)
            await results.convert_returned(frame)
        except Exception as error:
            tell_where(error, f"PL/pgSQL function {frame.signature}" if _without_line(error) else frame.where)
            raise

    async def _drive(self, program: Program) -> Signal | None:
        """Run a body's program: do what it asks for, let others have their turn where it asks for nothing."""
        frame = self.frame
        running = program(frame.values, Env((), self.session, shared=Shared()), frame)
        answer: Any = None
        while True:
            try:
                asked = openly(running.send, answer)  # it computes with variables and changes nothing else
            except StopIteration as done:
                signal: Signal | None = done.value
                return signal
            if asked is None or self.session.cancelled.reason:
                await frame.turn()
            if asked is None:
                answer = None
            else:
                answer = await asked(self)

    def _must_return(self) -> bool:
        function = self.frame.body.function
        routine = self.frame.body.routine
        if function.returns_set or routine.outputs:
            return False
        return function.kind == "f" and function.result != 2278

    # -- statements --------------------------------------------------------------------------------

    async def statements(self, body: Sequence[tree.Statement]) -> Signal | None:
        """Run statements until one signals."""
        frame = self.frame
        for statement in body:
            frame.line, frame.what = statement.line, statement.what
            if frame.due():
                await frame.turn()
            signal = await _RUN[type(statement)](self, statement)
            if signal is not None:
                return signal
        return None

    def one(self, statement: tree.Statement) -> Awaitable[Signal | None]:
        """Run one statement, whose line the frame has."""
        return _RUN[type(statement)](self, statement)

    async def block(self, block: tree.Block) -> Signal | None:
        """Run DECLARE ... BEGIN ... EXCEPTION ... END."""
        frame = self.frame
        frame.line = block.line
        if not block.handlers:
            await self.declare(block)
            return self._left(await self.statements(block.body), block.label)
        await self.declare(block)
        point = self.session.block.begin_part()
        cursors = self.session.connection.cursors
        opened = cursors.names
        handling = len(frame.handling)
        frame.parts += 1
        try:
            try:
                signal = await self.statements(block.body)
            finally:
                frame.parts -= 1
        except (Exception, asyncio.CancelledError) as error:
            report = await self._report(block, error)
            handler = None if report is None else _handler(block, report.sqlstate)
            if handler is None or report is None:
                raise
            lines = [frame.where, *self.around()]
            where = "\n".join(([report.where] if report.where else []) + lines)
            await self.session.block.undo_part(point)
            cursors.close_others(opened)
            frame.doing = ""
            frame.sql = None
            frame.handling.append(raising.with_where(report, where))
            frame.values[block.state] = report.sqlstate
            frame.values[block.message] = report.message
            try:
                signal = await self.statements(handler.body)
            finally:
                del frame.handling[handling:]
        return self._left(signal, block.label)

    async def _report(self, block: tree.Block, error: BaseException) -> ErrorReport | None:
        """Return what a handler is told of an error; None for what none of the block's may take. Apart, so
        that no frame keeps the error it is in.
        """
        met = error if isinstance(error, Exception) else None
        if met is None or getattr(met, "sqlstate", "") == "57014" or isinstance(met, WaitCancelled):
            if _handler(block, "57014") is None:
                return None  # it stays what it is
            met = await self.session.connection.interrupts.caught(error)
        return None if met is None else raising.caught(self.session, met)

    def _left(self, signal: Signal | None, label: str) -> Signal | None:
        """Return what goes on behind a block: EXIT of its label ends there."""
        if signal is not None and signal.kind == "exit" and label and signal.label == label:
            return None
        return signal

    async def declare(self, block: tree.Block) -> None:
        """Make the variables of a block."""
        frame = self.frame
        if not block.declares:
            frame.declaring = 0
            return
        variables = frame.body.routine.variables
        for number in block.declares:
            variable = variables[number]
            frame.declaring, frame.doing = (
                variable.line,
                "during statement block local variable initialization",
            )
            if variable.default is None:
                frame.values[number] = None if variable.cursor is None else variable.name
                if variable.kind == "scalar":
                    await dynamic.check_domain(frame, variable)
                continue
            value, type_ = await frame.value(variable.default)
            await frame.store(number, value, type_)
        frame.declaring, frame.doing = 0, ""  # a handler of an error above tells that variable's line

    async def _block(self, statement: tree.Block) -> Signal | None:
        return await self.block(statement)

    async def _assign(self, statement: tree.Assign) -> Signal | None:
        frame = self.frame
        piece, target = statement.value, statement.target
        if target.steps:
            await parts.run_assign_part(frame, statement)
            return None
        value, type_ = await frame.value(piece)
        variable = frame.body.routine.variables[target.variable]
        if variable.kind in ("row", "record") and value is not None and not frame.is_row(type_):
            # as of any type: by printing and reading (DECLARE takes rows alone)
            if variable.kind == "record":
                raise SqlError("0A000", "input of anonymous composite types is not implemented")
            await frame.assign(target, await frame.cast(value, type_, variable.type), variable.type)
        elif variable.kind == "scalar" and frame.body.ready(piece, frame.values).constant:
            ready = frame.body.ready(piece, frame.values)
            value = await converted(frame, piece, ready, value, type_, variable.type)
            await frame.assign(target, value, variable.type)
        else:
            ready = frame.body.ready(piece, frame.values)
            if variable.kind == "scalar" and ready.function is None:  # its conversion is part of the query
                with told(piece):
                    value, type_ = await frame.cast(value, type_, variable.type), variable.type
            await frame.assign(target, value, type_)
        return None

    async def _if(self, statement: tree.If) -> Signal | None:
        for condition, body in statement.branches:
            if await self.frame.truth(condition):
                return await self.statements(body)
        return await self.statements(statement.otherwise)

    async def _case(self, statement: tree.Case) -> Signal | None:
        frame = self.frame
        if statement.subject is not None:
            value, type_ = await frame.value(statement.subject)
            frame.values[statement.variable] = (type_.oid, value)
        for condition, body in statement.whens:
            if await frame.truth(condition):
                return await self.statements(body)
        if statement.otherwise is None:
            raise SqlError("20000", "case not found", hint="CASE statement is missing ELSE part.")
        return await self.statements(statement.otherwise)

    # -- loops -------------------------------------------------------------------------------------

    async def _loop(self, statement: tree.Loop) -> Signal | None:
        while True:
            ends, signal = after(await self.statements(statement.body), statement.label)
            if ends:
                return signal
            await self._again(statement)

    async def _while(self, statement: tree.While) -> Signal | None:
        while await self.frame.truth(statement.condition):
            ends, signal = after(await self.statements(statement.body), statement.label)
            if ends:
                return signal
            await self._again(statement)
        return None

    async def _again(self, statement: tree.Statement) -> None:
        frame = self.frame
        frame.line, frame.what = statement.line, statement.what
        if frame.due():
            await frame.turn()

    async def _for_integer(self, statement: tree.ForInteger) -> Signal | None:
        frame = self.frame
        low = await self._bound(statement.lower, "lower bound")
        high = await self._bound(statement.upper, "upper bound")
        step = 1 if statement.step is None else await self._bound(statement.step, "BY value")
        if step <= 0:
            raise SqlError("22023", "BY value of FOR loop must be greater than zero")
        found = False
        result: Signal | None = None
        while low >= high if statement.reverse else low <= high:
            found = True
            frame.values[statement.variable] = low
            ends, result = after(await self.statements(statement.body), statement.label)
            if ends:
                break
            low = low - step if statement.reverse else low + step
            if not -_MAX_INT4 - 1 <= low <= _MAX_INT4:
                break
            await self._again(statement)
        frame.values[frame.body.routine.found] = found
        return result

    async def _bound(self, piece: tree.Piece, what: str) -> int:
        found = await self.frame.integer(piece)
        if found is None:
            raise SqlError("22004", f"{what} of FOR loop cannot be null")
        return found

    async def _for_rows(self, statement: tree.ForRows) -> Signal | None:
        frame = self.frame
        cursors = dynamic.cursors_of(frame)
        if statement.dynamic:
            outcome = await dynamic.opened(frame, statement.query, statement.params, keeps=False)
        else:
            with told(statement.query):
                frame.check_planned(statement.query)
            outcome = await frame.fetched(statement.query)
        cursor = dynamic.made_cursor(frame, cursors.free_name(), outcome, scroll=False, loop=True)
        changes = outcome.tag != "SELECT"
        routines = routines_of(self.session)
        routines.changing_loops += changes
        ahead = (
            (AHEAD_FIRST, AHEAD) if frame.atomic or cursor.ahead else (1, 1)
        )  # as others may change the rows behind COMMIT
        try:
            return await self._each_row(
                statement, statement.into, cursor, statement.label, statement.body, ahead
            )
        finally:
            routines.changing_loops -= changes
            dynamic.end_cursor(frame, cursor)

    async def _each_row(
        self, statement: tree.Statement, into: tree.Into, cursor: Cursor, label: str, body: Sequence[tree.Statement], ahead: tuple[int, int],
    ) -> Signal | None:  # fmt: skip
        frame = self.frame
        cursors = dynamic.cursors_of(frame)
        result: Signal | None = None
        rows = await cursors.next_rows(cursor, ahead[0])
        found = bool(rows)
        if not found:
            await frame.into(into, cursor.columns, None)
        ends = False
        while rows and not ends:
            for row in rows:
                await frame.into(into, cursor.columns, row)
                ends, result = after(await self.statements(body), label)
                if ends:
                    break
                await self._again(statement)
            if not ends:
                rows = await cursors.next_rows(cursor, ahead[1])
        frame.values[frame.body.routine.found] = found
        return result

    async def _for_cursor(self, statement: tree.ForCursor) -> Signal | None:
        frame = self.frame
        variable = frame.body.routine.variables[statement.cursor]
        if variable.cursor is None:
            raise AssertionError("the variable of a loop over a cursor is no cursor")
        if dynamic.is_open(frame, variable):
            raise SqlError("42P03", f'cursor "{frame.values[variable.number]}" already in use')
        await dynamic.take_arguments(frame, variable.cursor, statement.arguments)
        outcome = await frame.opened(variable.cursor.query)
        name = frame.values[variable.number] or variable.name
        cursor = dynamic.made_cursor(frame, name, outcome, loop=True)
        into = tree.Into([tree.Target(statement.variable)], whole=True)
        try:  # one row at a time: FETCH within the loop, and WHERE CURRENT OF, go by where it stands
            return await self._each_row(statement, into, cursor, statement.label, statement.body, (1, 1))
        finally:
            dynamic.end_cursor(frame, cursor)

    async def _for_each(self, statement: tree.ForEach) -> Signal | None:
        frame = self.frame
        array, type_ = await frame.value(statement.array)
        if array is None:
            raise SqlError("22004", "FOREACH expression must not be null")
        element = element_of(type_.oid)
        domain = frame.body.ready(statement.array, frame.values).domain
        if not element or domain is not None:
            shown = format_type((domain or type_).oid)
            raise SqlError("42804", f"FOREACH expression must yield an array, not type {shown}")
        leaf = bool(array) and raising.is_tuple_type(element)
        depth = len(dimensions(array, leaf)) if array else 0
        if not 0 <= statement.slice <= depth:
            raise SqlError(
                "2202E", f"slice dimension ({statement.slice}) is out of the valid range 0..{depth}"
            )
        _check_loop_variable(frame, statement)
        parts = _slices(array, depth - statement.slice) if statement.slice else flat(array, leaf)
        given = SqlType(type_.oid if statement.slice else element)
        result: Signal | None = None
        for part in parts:
            target = statement.into.targets[0]
            if statement.into.whole or len(statement.into.targets) == 1:
                await frame.assign(target, part, given)
            else:
                record = frame.record(part, given)
                columns = (
                    []
                    if record is None
                    else [
                        OutputColumn(name=n, type=SqlType(t))
                        for n, t in zip(record.names, record.types, strict=True)
                    ]
                )
                await frame.into(statement.into, columns, record)
            ends, result = after(await self.statements(statement.body), statement.label)
            if ends:
                break
            await self._again(statement)
        frame.values[frame.body.routine.found] = bool(parts)
        return result

    async def _exit(self, statement: tree.Exit) -> Signal | None:
        if statement.condition is not None and not await self.frame.truth(statement.condition):
            return None
        return Signal("exit" if statement.is_exit else "continue", statement.label)

    # -- results -----------------------------------------------------------------------------------

    async def _return(self, statement: tree.Return) -> Signal | None:
        await results.run_return(self.frame, statement)
        return RETURN

    async def _return_next(self, statement: tree.ReturnNext) -> Signal | None:
        await results.run_return_next(self.frame, statement)
        return None

    async def _return_query(self, statement: tree.ReturnQuery) -> Signal | None:
        frame = self.frame
        if statement.dynamic:
            columns, rows = await dynamic.query_of(
                frame, statement.query, statement.params, lambda given: results.check_query(frame, given)
            )
            await results.add_query(frame, columns, rows)
        else:
            plan = frame.body.ready(statement.query, frame.values).plan
            if plan.columns is not None:
                with told(statement.query):
                    frame.check_planned(statement.query)
                    results.check_query(frame, frame.told(statement.query, plan.columns))
            columns, rows = dynamic.rows_of(await frame.run(statement.query))
            with told(statement.query):
                await results.add_query(frame, frame.told(statement.query, columns), rows, domains=True)
        frame.row_count = len(rows)
        frame.values[frame.body.routine.found] = bool(rows)
        return None

    # -- SQL ---------------------------------------------------------------------------------------

    async def _perform(self, statement: tree.Perform) -> Signal | None:
        frame = self.frame
        ready = frame.body.ready(statement.query, frame.values)
        frame.plan(ready, statement.query)
        if ready.plain:
            with told(statement.query):
                frame.plain(ready)
            count = 1
        else:
            count = affected(await frame.run(statement.query))
        frame.row_count = count
        frame.values[frame.body.routine.found] = count > 0
        return None

    async def _sql(self, statement: tree.Sql) -> Signal | None:
        frame = self.frame
        node = frame.body.ready(statement.statement, frame.values).node
        outcome = await frame.run(statement.statement, enough=_enough(frame, statement.into, node))
        count = affected(outcome)
        changes = isinstance(node, _CHANGES)
        if isinstance(outcome, Rows):
            outcome = replace(outcome, columns=frame.told(statement.statement, outcome.columns))
        if statement.into is not None and not changes:
            count = min(count, 1)  # SELECT INTO stops behind the row that it takes
        frame.row_count = count
        if changes or isinstance(outcome, Rows):
            frame.values[frame.body.routine.found] = count > 0
        await dynamic.take_rows(frame, outcome, statement.into, changes=changes, select=not changes)
        return None

    async def _execute(self, statement: tree.Execute) -> Signal | None:
        frame = self.frame
        done = await dynamic.execute(frame, statement.text, statement.params)
        if done is None:
            frame.row_count = 0
            if statement.into is not None:
                raise SqlError("42601", "INTO used with a command that cannot return data")
            return None
        outcome, node = done
        frame.row_count = affected(outcome)
        if statement.into is not None:
            changes = isinstance(node, _CHANGES)
            if not isinstance(outcome, Rows):
                raise SqlError("42601", "INTO used with a command that cannot return data")
            await dynamic.take_rows(
                frame, outcome, statement.into, changes=changes, select=True, dynamic=True
            )
        return None

    async def _call(self, statement: tree.CallRoutine) -> Signal | None:
        await dynamic.call(self.frame, statement)
        return None

    async def _end_transaction(self, statement: tree.EndTransaction) -> Signal | None:
        await dynamic.end_transaction(self.frame, statement)
        return None

    async def _diagnostics(self, statement: tree.Diagnostics) -> Signal | None:
        await raising.run_diagnostics(self.frame, statement, self.around())
        return None

    async def _raise(self, statement: tree.Raise) -> Signal | None:
        await raising.run_raise(self.frame, statement, self.around)
        await self.session.heard()
        return None

    async def _assert(self, statement: tree.Assert) -> Signal | None:
        await raising.run_assert(self.frame, statement)
        return None

    async def _open(self, statement: tree.Open) -> Signal | None:
        await dynamic.open_cursor(self.frame, statement)
        return None

    async def _fetch(self, statement: tree.Fetch) -> Signal | None:
        await dynamic.fetch(self.frame, statement)
        return None

    async def _close(self, statement: tree.Close) -> Signal | None:
        dynamic.close(self.frame, statement)
        return None


def _enough(frame: Frame, into: tree.Into | None, node: ast.StatementNode) -> int | None:
    """Return how many rows INTO looks at: the one that it takes, and another where that is wrong."""
    if into is None:
        return None
    alone = into.strict or isinstance(node, _CHANGES) or extra_level(frame.session, "too_many_rows")
    return 2 if alone else 1


_Run = Callable[[Interpreter, Any], Awaitable[Signal | None]]

_RUN: Final[dict[type[tree.Statement], _Run]] = {
    tree.Block: Interpreter._block,
    tree.Assign: Interpreter._assign,
    tree.If: Interpreter._if,
    tree.Case: Interpreter._case,
    tree.Loop: Interpreter._loop,
    tree.While: Interpreter._while,
    tree.ForInteger: Interpreter._for_integer,
    tree.ForRows: Interpreter._for_rows,
    tree.ForCursor: Interpreter._for_cursor,
    tree.ForEach: Interpreter._for_each,
    tree.Exit: Interpreter._exit,
    tree.Return: Interpreter._return,
    tree.ReturnNext: Interpreter._return_next,
    tree.ReturnQuery: Interpreter._return_query,
    tree.Perform: Interpreter._perform,
    tree.Sql: Interpreter._sql,
    tree.Execute: Interpreter._execute,
    tree.CallRoutine: Interpreter._call,
    tree.EndTransaction: Interpreter._end_transaction,
    tree.Diagnostics: Interpreter._diagnostics,
    tree.Raise: Interpreter._raise,
    tree.Assert: Interpreter._assert,
    tree.Open: Interpreter._open,
    tree.Fetch: Interpreter._fetch,
    tree.Close: Interpreter._close,
}


def _check_loop_variable(frame: Frame, statement: tree.ForEach) -> None:
    """Raise SqlError 42804 where the variable of FOREACH is an array and its values are elements, or the
    other way round.
    """
    target = statement.into.targets[0]
    one = len(statement.into.targets) == 1 and not target.steps
    variable = frame.body.routine.variables[target.variable]
    is_array = one and variable.kind == "scalar" and bool(element_of(variable.type.oid))
    if statement.slice and not is_array:
        raise SqlError("42804", "FOREACH ... SLICE loop variable must be of an array type")
    if not statement.slice and is_array:
        raise SqlError("42804", "FOREACH loop variable must not be of an array type")


def _handler(block: tree.Block, sqlstate: str) -> tree.Handler | None:
    return next((h for h in block.handlers if handles(h.states, sqlstate)), None)


def _slices(array: Any, levels: int) -> list[Any]:
    """Return the parts of an array that are ``levels`` dimensions down; they begin where they do in it."""
    parts = [array]
    for _ in range(levels):
        parts = [inner for part in parts for inner in part]
    if levels and type(array) is BoundedArray:
        return [bounded(part, array.lows[levels:]) for part in parts]
    return parts


def _no_return(frame: Frame) -> SqlError:
    what = "trigger procedure" if frame.body.routine.special else "function"
    return SqlError("2F005", f"control reached end of {what} without RETURN")


def _without_line(error: Exception) -> bool:
    return isinstance(error, SqlError) and error.sqlstate == "2F005" and error.where is None
