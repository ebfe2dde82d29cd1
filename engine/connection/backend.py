"""One connection's side of the wire: what pgwire asks a database to do, over one ``Session``.

    Query    text ──> statements ──> each: plan, run, rows out          engine/connection/simple.py
    Parse    text ──> plan (cached)                                     engine/connection/prepared.py
    Bind     parameters ──> portal    Execute  portal ──> rows out      engine/connection/extended.py
    Sync     ends the implicit transaction                              engine/session/transaction/block.py
    cancel   interrupts what runs                                       engine/session/interrupts.py

Hot path: a portal whose statement is served by the row executor without waiting runs synchronously inside the
message handler; everything else runs as a coroutine that can be interrupted.

What is raised towards pgwire is a ``BackendError`` with the report for the client; any other exception is a bug.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from engine.base.loop.strands import may_wait, wait
from engine.connection import extended, long_messages, shared_portals, simple
from engine.connection.function_call import run_function
from engine.connection.prepared import PreparedStatements
from engine.plans.planning import IN_FAILED_BLOCK, LONG_TEXT, Planning
from engine.session.cursors import Cursors
from engine.session.errors import in_bounds, report_of
from engine.session.interrupts import CANCELED, Interrupts
from engine.session.plans.plan import Plan
from engine.session.portal import Cursor, Portal, Prepared
from engine.session.session import Session
from engine.session.statement_log import SHOWN, StatementLog, level_of_plan, shown
from engine.session.time_limits import TRANSACTION_TIMEOUT, IdleLimit
from engine.session.transaction.block_state import FAILED, IDLE, IMPLICIT, status_byte
from engine.statements.cursors import result_columns
from engine.statements.output import field_descriptions
from pgwire.backend import (
    BindFields,
    CallFields,
    FieldDescription,
    MaybeAwaitable,
    ParseFields,
    Responder,
    StatementDescription,
    TransactionStatus,
)
from pgwire.errors import BackendError, ErrorReport
from pgwire.release import release_error
from pgwire.voice import Severity
from planner.base.errors import SqlError
from planner.functions.system.names import other_type_name
from planner.functions.system.reg_output import reg_output
from planner.functions.values.reg import reg_input
from planner.query import OutputColumn

T = TypeVar("T")

log = logging.getLogger("holdfast")

COMMITTED: Final = "The transaction was committed before its answer could be given in full."
"""DETAIL of what ends a session that can neither be told of success nor of failure."""

FASTPATH: Final = "fastpath function call"
_ACTIVITY = ("idle", "idle", "idle in transaction", "idle in transaction (aborted)")  # by BlockState


class Connection:
    """Implements ``pgwire.backend.Backend`` over one ``Session``."""

    def __init__(self, session: Session) -> None:
        """Serve ``session``."""
        self.db = session.db
        self.session = session
        session.connection = self
        self.planning = Planning(session)
        self.prepared = PreparedStatements(session, self.planning)
        self.portals: dict[str, Portal] = {}
        self.cursors = session.cursors = Cursors(session, self.portals)
        self.interrupts = Interrupts(session)
        self.log = session.log = StatementLog(session)
        self._idle_limit = IdleLimit(self._end)
        self._tag = ""  # of the Query whose commit is waited for
        session.account.hears = self._hear
        names = session.account.names
        names.find = partial(other_type_name, session)
        names.show, names.read = partial(reg_output, session), partial(reg_input, session)
        self._counted = False  # parameters of portals are among what the session keeps
        session.block.on_end.append(self._block_ended)

    def _hear(self, severity: Severity, sqlstate: str, message: str) -> None:
        """Tell the client what a function has to say, and wait while it does not read: a statement may call
        one for each of millions of rows.
        """
        self.session.notice(message, severity=severity, sqlstate=sqlstate)
        if self.session.out.paused and may_wait():
            wait(self.session.out.drain())

    # -- errors and interruption -------------------------------------------------------------------

    def report(self, error: BaseException) -> ErrorReport | None:
        """Return the report of an expected error, with what others run where it concerns them; None for a bug."""
        report = report_of(error, self.session.catalog, self.session.surroundings)
        if report is not None:
            self.session.space.losses.note(error, self.session.clock_time_us(), retried=False)
            report = in_bounds(report)
            if self.session.cancelled.decided and report.severity == "ERROR":
                report = replace(report, severity="FATAL", detail=COMMITTED)
            elif report.severity == "ERROR" and self.session.settings.get("exit_on_error") == "on":
                report = replace(report, severity="FATAL")
            self.log.report(report)
            if self.interrupts.waiting:  # what takes no slice gathers nothing that is worth it
                release_error(error)
        return report

    def _fail(self, error: BaseException) -> BaseException:
        """Return the error to raise towards pgwire: a report, or the bug itself."""
        report = self.report(error)
        return error if report is None else BackendError(report)

    async def _reporting(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except Exception as error:
            raise self._fail(error) from error

    async def _after(self, work: Awaitable[object], then: Callable[[], None]) -> None:
        """Wait for what a message has begun, and let the log look at how long it took."""
        await self._reporting(work)
        if self.session.derived.logs:
            then()

    def _logging(self, work: Awaitable[None] | None, portal: Portal) -> MaybeAwaitable[None]:
        """Let the log look at how long an Execute took."""
        if work is None:
            self.log.end(portal)
            return None

        async def whole() -> None:
            await self._reporting(work)
            self.log.end(portal)

        return whole()

    def cancel(self, *, ends: bool = False) -> None:
        """CancelRequest: interrupts the running statement, if any; what the statement does with it if the
        connection does not end.
        """
        self.interrupts.cancel(ends=ends)

    def unmet(self) -> ErrorReport | None:
        """See ``pgwire.backend.Backend``."""
        if not self.interrupts.unmet():
            return None
        self.session.cancelled.decided = False  # what was committed is answered
        return self.report(SqlError("57014", CANCELED))

    def is_short(self, plan: Plan) -> bool:
        """Tell whether what a plan computes surely takes no time worth naming; a COMMIT may have checks and
        triggers to run.
        """
        return plan.short and (plan.control != "commit" or self.session.block.commits_plainly)

    def transaction_timed_out(self) -> None:
        """transaction_timeout has passed: end the connection, and before that what it runs."""
        if not self.interrupts.end_transaction():
            self._end(TRANSACTION_TIMEOUT)

    def _end(self, report: ErrorReport) -> None:
        self.db.terminate(self.session.pid, report)

    # -- extended protocol -------------------------------------------------------------------------

    def parse(self, name: str, sql: str, param_oids: Sequence[int]) -> MaybeAwaitable[None]:
        """Create a prepared statement."""
        self.touch(sql)
        logs = self.session.derived.logs
        if logs:
            self.log.begin(f"parse {name or '<unnamed>'}: {shown(sql)}")
        if not name:
            self.prepared.close("")  # gone even where the new one is no statement
        try:
            oids = tuple(param_oids)
            work: MaybeAwaitable[object]
            if len(sql) > LONG_TEXT:
                work = self.interrupts.run(self.prepared.prepare_long(name, sql, oids))
            elif not self.session.derived.rereads and (plan := self.planning.kept(sql, oids)) is not None:
                work = self.prepared.prepare(name, sql, oids, plan=plan)
            else:
                work = self.interrupts.call(self.prepared.prepare, name, sql, oids)
            if isinstance(work, Awaitable):
                return self._after(work, self.log.end)
            self.session.cancelled.check()
        except Exception as error:
            raise self._fail(error) from error
        if logs:
            self.log.end()
        return None

    def bind(
        self,
        portal: str,
        statement: str,
        param_formats: Sequence[int],
        params: Sequence[bytes | None],
        result_formats: Sequence[int],
        small: bool = False,
    ) -> MaybeAwaitable[None]:
        """Create a portal with its parameter values."""
        if self._idle_limit.timer is not None:
            self._idle_limit.stop()
        session = self.session
        session.cancelled.decided = False  # what was committed is answered
        logs = session.derived.logs
        try:
            if logs:
                named = (statement or "<unnamed>") + (f"/{portal}" if portal else "")
                self.log.begin(f"bind {named}: {shown(self.prepared.get(statement).text)}")
            prepared = self.prepared.get(statement)
            plan = prepared.plan
            if small and (plan is None or plan.short):  # it surely takes no time worth naming
                extended.bind_portal(self, portal, prepared, param_formats, params, result_formats)
            else:
                self.interrupts.reset()
                made = self.interrupts.call(
                    extended.bind_counted, self, portal, prepared, param_formats, params, result_formats
                )
                if made is not None:
                    return self._after(made, lambda: self.log.end(self.portals[portal]))
        except Exception as error:
            raise self._fail(error) from error
        if logs:
            self.log.end(self.portals[portal])
        return None

    def long_parse(self, message: Awaitable[ParseFields]) -> MaybeAwaitable[None]:
        """See ``pgwire.backend.Backend``."""
        self.touch("")
        return self._read_long(long_messages.parse(self, message))

    def long_bind(self, message: Awaitable[BindFields]) -> MaybeAwaitable[None]:
        """See ``pgwire.backend.Backend``."""
        self._idle_limit.stop()
        self.interrupts.reset()
        return self._read_long(long_messages.bind(self, message))

    def _read_long(self, work: Coroutine[Any, Any, None]) -> MaybeAwaitable[None]:
        try:
            pending = self.interrupts.run(work)
        except Exception as error:
            raise self._fail(error) from error
        return None if pending is None else self._reporting(pending)

    def describe_statement(self, name: str) -> MaybeAwaitable[StatementDescription]:
        """Describe a prepared statement; runs nothing."""
        self._idle_limit.stop()
        self.session.cancelled.decided = False  # what was committed is answered
        try:
            prepared = self.prepared.get(name)
            if self.session.block.state is FAILED and (
                prepared.plan is not None and prepared.plan.columns is not None
            ):
                raise SqlError("25P02", IN_FAILED_BLOCK)
            if prepared.plan is None or prepared.plan.short:
                return self._described(prepared)
            self.interrupts.reset()
            described = self.interrupts.call(self._described, prepared)
        except Exception as error:
            raise self._fail(error) from error
        return self._reporting(described) if isinstance(described, Awaitable) else described

    def _described(self, prepared: Prepared) -> StatementDescription:
        plan = self.prepared.fresh_plan(prepared)
        columns = None if plan is None else result_columns(self.session, plan)
        fields = None if columns is None else field_descriptions(columns, (), plan)
        return StatementDescription(param_oids=prepared.param_oids, fields=fields)

    def describe_portal(self, name: str) -> MaybeAwaitable[tuple[FieldDescription, ...] | None]:
        """Describe a portal with its result formats; runs nothing."""
        if self._idle_limit.timer is not None:
            self._idle_limit.stop()
        self.session.cancelled.decided = False  # what was committed is answered
        portal = self.portals.get(name)
        if portal is None:
            cursor = self.cursors.find(name)  # a SQL cursor is a portal too
            if cursor is not None:
                return field_descriptions(cursor.columns, ())
            raise self._fail(SqlError("34000", f'portal "{name}" does not exist'))
        columns = None if portal.plan is None else result_columns(self.session, portal.plan)
        return None if columns is None else field_descriptions(columns, portal.result_formats, portal.plan)

    def execute(self, portal: str, max_rows: int, out: Responder) -> MaybeAwaitable[None]:
        """Run or continue a portal."""
        found = self.portals.get(portal)
        if found is None or found.cursor is not None:
            return self._execute_shared(portal, found, max_rows, out)
        self.session.block.executes += 1
        plan = found.plan
        if plan is None:
            out.empty_query()
            return None
        logs = self.session.derived.logs
        if logs:
            self.log.execute(found)
        try:
            result = extended.execute(self, found, plan, max_rows, out)
        except Exception as error:
            raise self._fail(error) from error
        if logs:
            return self._logging(result, found)
        return None if result is None else self._reporting(result)

    def _execute_shared(
        self, name: str, portal: Portal | None, max_rows: int, out: Responder
    ) -> MaybeAwaitable[None]:
        """Go on with a cursor, or with a portal that FETCH has read from."""
        self.session.cancelled.decided = False
        cursor = self.cursors.find(name) if portal is None else None
        if portal is not None:
            work = shared_portals.execute_portal(self, portal, max_rows, out)
        elif cursor is not None:
            work = shared_portals.execute_cursor(self, cursor, max_rows, out)
        else:
            raise self._fail(SqlError("34000", f'portal "{name}" does not exist'))
        self.session.block.executes += 1
        try:
            result = self.interrupts.run(work)
        except Exception as error:
            raise self._fail(error) from error
        return None if result is None else self._reporting(result)

    def columns_of(self, plan: Plan) -> tuple[OutputColumn, ...] | None:
        """Return the columns of a plan's result, None where it has no rows."""
        return result_columns(self.session, plan)

    def cursor_of(self, name: str) -> Awaitable[Cursor]:
        """Return what FETCH and MOVE read. Raises SqlError 34000, and as ``shared_portals.cursor_of``."""
        portal = self.portals.get(name)
        if portal is not None:
            return shared_portals.cursor_of(self, portal, self.session.out)
        return self.cursors.named(name)

    def close_statement(self, name: str) -> MaybeAwaitable[None]:
        """Close a prepared statement."""
        self._idle_limit.stop()
        self.prepared.close(name)
        return None

    def close_portal(self, name: str) -> MaybeAwaitable[None]:
        """Close a portal."""
        self._idle_limit.stop()
        portal = self.portals.pop(name, None)
        if portal is not None:
            portal.close()
            if portal.param_bytes:
                self.count_portals()
        elif self.cursors.find(name) is not None:
            self.cursors.close(name)
        return None

    def count_portals(self) -> None:
        """Count what parameters of portals take between statements. SqlError 53200: then the last portal is none."""
        size = sum(portal.param_bytes for portal in self.portals.values())
        try:
            self.session.held.hold("portals", size)
        except SqlError:
            self.portals.popitem()
            raise
        self._counted = size > 0

    def sync(self) -> MaybeAwaitable[None] | asyncio.Future[Any]:
        """End the implicit transaction."""
        block = self.session.block
        block.executes = 0
        if block.state is not IMPLICIT:
            if block.state is IDLE and self.portals:
                self._drop_portals()
            self._idle()
            return None
        try:
            work: Awaitable[None] | None = None
            if not block.commit_read():
                if block.commits_plainly:
                    outcome = block.start_commit()
                    if outcome is not None:
                        return outcome  # ``synced`` is called when it is decided
                else:  # checks and triggers that waited for the end
                    self.interrupts.goes_on()
                    work = self.interrupts.run(block.commit())
        except Exception as error:
            raise self._fail(error) from error
        if work is not None:
            return self._end_sync(work)
        self._idle()
        return None

    def synced(self, outcome: asyncio.Future[Any]) -> None:
        """The commit that ``sync`` or ``query`` started is decided."""
        tag, self._tag = self._tag, ""
        if tag:
            simple.end_commit(self, tag, outcome, self.session.out)
            self._idle()
            return
        try:
            self.session.block.finish_commit(outcome)
        except Exception as error:
            raise self._fail(error) from error
        self._idle()

    async def _end_sync(self, work: Awaitable[None]) -> None:
        await self._reporting(work)
        self._idle()

    def failed(self) -> MaybeAwaitable[None]:
        """An error was sent: what the statement did is undone."""
        self.session.block.fail()
        return None

    # -- simple protocol ---------------------------------------------------------------------------

    def query(self, sql: str, out: Responder) -> MaybeAwaitable[None] | asyncio.Future[Any]:
        """Run all statements of a Query message."""
        self.prepared.close("")
        if "" in self.portals:
            self.close_portal("")
        self.touch(sql)
        derived = self.session.derived
        cached = None if derived.rereads else self.planning.cached(sql)
        if derived.logs:
            self.log.begin(f"statement: {shown(sql)}")
            if cached is not None:
                self.log.statement((level_of_plan(cached[0]),))
        work: str | simple.Left | None
        short = False
        if cached is not None:
            plan, values = cached
            if simple.answer_point(self, plan, values, out):
                self._idle()
                return None
            work = simple.begin(self, sql, plan, values, out)
            if work is None:
                self._idle()
                return None
            short = plan.short and (not plan.control or self.is_short(plan))
        else:
            work = simple.run_text(self, sql, None, out)
        result = work if isinstance(work, str) else self.interrupts.run(work, short=short)
        if isinstance(result, str):
            commit = simple.start_commit(self, result, out)
            if commit is not None:
                self._tag = result
                return commit  # ``synced`` is called when it is decided
        elif result is not None:
            return self._end_query(result)
        self._idle()
        return None

    def long_query(self, text: Awaitable[str], out: Responder) -> MaybeAwaitable[None]:
        """See ``pgwire.backend.Backend``."""
        self.prepared.close("")
        if "" in self.portals:
            self.close_portal("")
        self.touch("")
        pending = self.interrupts.run(long_messages.query(self, text, out))
        if pending is not None:
            return self._end_query(pending)
        self._idle()
        return None

    async def _end_query(self, work: Awaitable[object]) -> None:
        try:
            await work
        except (SqlError, BackendError) as error:  # a cancel between statements
            self.session.block.fail()
            report = self.report(error)
            if report is None:
                raise AssertionError("an error that ends a query has no report") from error
            self.session.out.error(report)
        self._idle()

    # -- the fast path -----------------------------------------------------------------------------

    def call_function(
        self,
        oid: int,
        formats: Sequence[int],
        args: Sequence[bytes | None],
        result_format: int,
        out: Responder,
    ) -> MaybeAwaitable[None]:
        """Run a function by its oid."""
        self.touch("")
        self.session.activity = FASTPATH
        if self.session.derived.logs:
            self.log.begin(f"{FASTPATH}: (OID {oid})")
        return self._call(run_function(self, oid, formats, args, result_format, out))

    def long_call(self, message: Awaitable[CallFields], out: Responder) -> MaybeAwaitable[None]:
        """See ``pgwire.backend.Backend``."""
        self.touch("")
        self.session.activity = FASTPATH
        return self._call(long_messages.call(self, message, out))

    def _call(self, running: Coroutine[Any, Any, None]) -> MaybeAwaitable[None]:
        try:
            work = self.interrupts.run(running)
        except Exception as error:
            raise self._fail(error) from error
        if work is not None:
            return self._end_sync(work)
        self._idle()
        return None

    # -- the rest ----------------------------------------------------------------------------------

    def status(self) -> TransactionStatus:
        """Return the transaction status byte."""
        return status_byte(self.session.block.state)

    @property
    def wrote(self) -> bool:
        """See ``pgwire.backend.Backend``."""
        return self.session.block.wrote

    def close(self) -> MaybeAwaitable[None]:
        """The connection ended: roll back and release everything."""
        self._idle_limit.stop()
        self.log.ends()
        self.interrupts.close()
        self.session.channels.close()
        self._drop_portals()
        self.cursors.close_all()
        self.session.block.rollback()
        self.session.account.clear()
        self.session.held.release()
        return self.db.session_closed(self)

    def let_go(self) -> None:
        """The session is over: what it kept goes now, and it itself: no collection of cycles is needed."""
        session = self.session
        self.log.let_go()
        self.prepared.clear()
        self.portals.clear()
        session.settings.let_go()
        session.let_go()
        self.__dict__ = {"db": self.db}

    def touch(self, text: str) -> None:
        """A statement begins."""
        session = self.session
        if self._idle_limit.timer is not None:
            self._idle_limit.stop()
        self.interrupts.reset()
        if self.db.lease is not None:
            session.out.rests = True
        session.query_text = text
        session.activity = "active"
        now_us = session.statement_time_us = session.state_change_us = self.db.clock_us()
        session.begin_time(now_us)

    def _idle(self) -> None:
        """A Query or Sync is done: outside a block, settings changed by it are there to stay."""
        session = self.session
        if self.log.running:
            self.log.end()
        if len(session.query_text) > SHOWN:
            session.query_text = shown(session.query_text)
            session.running = None  # its plan is as long as the text
        state = session.block.state
        if state is IDLE:
            session.timed = False
            session.settings.commit()
        session.activity = _ACTIVITY[state]
        session.channels.flush()
        derived = session.derived
        if derived.idle_limits:
            self._idle_limit.start(derived, in_block=session.block.in_block)

    def _drop_portals(self) -> None:
        for portal in self.portals.values():
            portal.close()
        self.portals.clear()
        if self._counted:
            self.count_portals()

    def _block_ended(self, committed: bool) -> None:
        self._drop_portals()
        self.cursors.block_ended(committed)
