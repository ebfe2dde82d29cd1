"""One connection's side of the wire: prepared statements, portals, simple queries.

    Query    text ──> statements ──> each: plan, run, rows out; one implicit transaction unless BEGIN
    Parse    text ──> plan (cached)          Bind     parameters ──> portal
    Execute  portal ──> rows out             Sync     ends the implicit transaction

Hot path: a portal whose statement is served by the row executor without waiting runs synchronously inside the
message handler; everything else runs as a coroutine that a CancelRequest, statement_timeout or disconnect can
interrupt (L39). After the durable point of a commit a cancel no longer reaches it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from engine import run
from engine.cursors import Cursors
from engine.derived import Derived
from engine.dml import make_env, run_insert
from engine.eager import eager, settle
from engine.errors import report_of
from engine.executor import RowsChanged
from engine.index_ahead import refuse_in_block
from engine.output import encoder_of, expand_formats, field_descriptions, param_decoder, send_rows
from engine.planning import IN_FAILED_BLOCK, CachedText, Planning
from engine.plans import PLAN_CACHE_MAX_TEXT, Plan
from engine.portal import Command, Outcome, Portal, Prepared, RowReader, Rows
from engine.privileges import check as check_privileges
from engine.query import context, read_point, start_quick
from engine.races import may_race, note_loss, statement_point, undo_statement
from engine.rows import ReadyRows
from engine.session import Replan, Session
from engine.temporary import drop_temporaries
from engine.time_travel import catalog_at
from engine.txn_block import BlockState, status_byte
from pgwire.backend import (
    FieldDescription,
    MaybeAwaitable,
    Responder,
    StatementDescription,
    TransactionStatus,
)
from pgwire.errors import BackendError, ErrorReport
from planner.bind import coerce_argument
from planner.errors import SqlError
from planner.evaluate import compile_expr
from planner.parse import Parsed, parse
from planner.statements import ExecutePrepared, StatementClass, Transaction
from txn.errors import Deadlock, SchemaChanged, TxnError, WriteConflict

if TYPE_CHECKING:
    from engine.database import Database

T = TypeVar("T")

log = logging.getLogger("holdfast")

_IDLE_SESSION = ErrorReport(
    severity="FATAL", sqlstate="57P05", message="terminating connection due to idle-session timeout"
)
_IDLE_IN_TRANSACTION = ErrorReport(
    severity="FATAL", sqlstate="25P03", message="terminating connection due to idle-in-transaction timeout"
)
_TRANSACTION_TIMEOUT = ErrorReport(
    severity="FATAL", sqlstate="25P04", message="terminating connection due to transaction timeout"
)
MAX_PORTALS = 1000
MAX_PREPARED = 10_000
MAX_REPLANS = 10
MAX_RERUNS = (
    1000  # of a statement whose rows to be locked had changed; each run holds the locks of those before
)
AUTOCOMMIT_RETRIES = 5
OPTIMISTIC_TRIES = 3  # then a statement's scans lock their tables (U4)
RETRY_PAUSE_S = 0.02
_WAITING_POLICIES = ("detect", "timeout")  # who runs again waits in the queue, so it need not wait before
PARSE_IN_THREAD_CHARS = 16 * 1024

_ACTIVITY = ("idle", "idle", "idle in transaction", "idle in transaction (aborted)")  # by BlockState


class Connection:
    """Implements ``pgwire.backend.Backend`` over one ``Session``."""

    def __init__(self, database: Database, session: Session) -> None:
        """Serve ``session``."""
        self.db = database
        self.session = session
        self.prepared: dict[str, Prepared] = {}
        self.portals: dict[str, Portal] = {}
        self.cursors = Cursors(session)
        self.planning = Planning(database, session)
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._goes_on = False  # what runs is not meant to end: statement_timeout does not count
        self._idle_timer: asyncio.TimerHandle | None = None
        session.on_block_end.append(self._block_ended)

    # -- errors and interruption -------------------------------------------------------------------

    def _backend_error(self, error: BaseException) -> BackendError | None:
        report = self._report(error)
        return None if report is None else BackendError(report)

    def _report(self, error: BaseException) -> ErrorReport | None:
        """Return the report of an expected error, with what others run where it concerns them."""
        return report_of(error, self.session.catalog, self.session.surroundings)

    def _guard(self, coro: Coroutine[Any, Any, T]) -> MaybeAwaitable[T]:
        """Run a statement's coroutine: at once if it can, else interruptibly."""
        result = eager(coro)
        if result is not None and isinstance(result, Awaitable):
            return self._interruptible(result)
        return result

    async def _interruptible(self, work: Awaitable[T]) -> T:
        async def body() -> T:
            return await work

        loop = asyncio.get_running_loop()
        task = loop.create_task(body())
        self._task = task
        timeout_ms = self.session.derived.statement_timeout_ms
        if timeout_ms and not self._goes_on:
            self._timer = loop.call_later(
                timeout_ms / 1000, self._interrupt, "canceling statement due to statement timeout"
            )
        try:
            return await task
        except asyncio.CancelledError:
            if self.session.cancel_requested:
                raise self._cancelled() from None
            if not task.done():
                task.cancel()
            raise
        finally:
            self._task = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def goes_on(self) -> None:
        """Say that the running statement is not meant to end (SUBSCRIBE): statement_timeout no longer counts."""
        self._goes_on = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cancelled(self) -> SqlError | BackendError:
        reason = self.session.cancel_requested
        self.session.cancel_requested = ""
        if reason == _TRANSACTION_TIMEOUT.message:
            return BackendError(_TRANSACTION_TIMEOUT)
        return SqlError("57014", reason)

    def _interrupt(self, reason: str) -> None:
        if self._task is not None and not self._task.done():
            self.session.cancel_requested = reason
            self._task.cancel()

    def transaction_timed_out(self) -> None:
        """transaction_timeout has passed: end the connection, and before that what it runs."""
        if self._task is not None:
            self._interrupt(_TRANSACTION_TIMEOUT.message)
        else:
            self.db.terminate(self.session.pid, _TRANSACTION_TIMEOUT)

    def cancel(self) -> None:
        """CancelRequest: interrupts the running statement, if any."""
        self._interrupt("canceling statement due to user request")

    # -- extended protocol -------------------------------------------------------------------------

    def parse(self, name: str, sql: str, param_oids: Sequence[int]) -> MaybeAwaitable[None]:
        """Create a prepared statement."""
        if name and name in self.prepared:
            raise self._fail(SqlError("42P05", f'prepared statement "{name}" already exists'))
        if len(self.prepared) >= MAX_PREPARED:
            raise self._fail(SqlError("53400", f"more than {MAX_PREPARED} prepared statements"))
        self._touch(sql)
        oids = tuple(param_oids)
        try:
            self.prepare(name, sql, oids)
        except Exception as error:
            raise self._fail(error) from error
        return None

    def prepare(self, name: str, sql: str, oids: tuple[int, ...], *, from_sql: bool = False) -> Prepared:
        """Plan ``sql`` and remember it as ``name``."""
        plan = self.planning.plan_text(sql, oids)
        params = plan.bound.params if plan is not None else oids
        prepared = Prepared(name, sql, plan, params, from_sql, self.db.clock_us())
        self.prepared[name] = prepared
        return prepared

    def fresh_plan(self, prepared: Prepared) -> Plan | None:
        """Return the statement's plan, made anew if the catalog moved on."""
        plan = prepared.plan
        if plan is None:
            return None
        if plan.as_of is not None and self.session.txn is None:
            with self.session.looking_at(catalog_at(self.session, plan.as_of)):
                fresh = plan.fresh(self.session.catalog)
        else:
            fresh = plan.fresh(self.session.catalog)
        if fresh:
            return plan
        again = self.planning.plan_text(prepared.text, prepared.param_oids)
        if again is None or _shape(again) != _shape(plan):
            raise SqlError("0A000", "cached plan must not change result type")
        prepared.plan = again
        return again

    def bind(
        self,
        portal: str,
        statement: str,
        param_formats: Sequence[int],
        params: Sequence[bytes | None],
        result_formats: Sequence[int],
    ) -> MaybeAwaitable[None]:
        """Create a portal with its parameter values."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        try:
            self._bind_portal(portal, statement, param_formats, params, result_formats)
        except Exception as error:
            raise self._fail(error) from error
        return None

    def _bind_portal(
        self,
        name: str,
        statement: str,
        param_formats: Sequence[int],
        raw: Sequence[bytes | None],
        result_formats: Sequence[int],
    ) -> None:
        prepared = self.prepared.get(statement)
        if prepared is None:
            shown = f'prepared statement "{statement}"' if statement else "unnamed prepared statement"
            raise SqlError("26000", f"{shown} does not exist")
        if self.session.state is BlockState.FAILED and (
            prepared.plan is None or not _runs_when_failed(prepared.plan)
        ):
            raise SqlError("25P02", IN_FAILED_BLOCK)
        oids = prepared.param_oids
        if len(raw) != len(oids):
            raise SqlError(
                "08P01",
                f"bind message supplies {len(raw)} parameters, but prepared statement "
                f'"{statement}" requires {len(oids)}',
            )
        if len(param_formats) > 1 and len(param_formats) != len(raw):
            raise SqlError(
                "08P01",
                f"bind message has {len(param_formats)} parameter formats but {len(raw)} parameters",
            )
        if name and name in self.portals:
            raise SqlError("42P03", f'cursor "{name}" already exists')
        if len(self.portals) >= MAX_PORTALS:
            raise SqlError("53400", f"more than {MAX_PORTALS} open portals")
        plan = self.fresh_plan(prepared)
        values = self._param_values(prepared, param_formats, raw) if oids else ()
        old = self.portals.pop(name, None)
        if old is not None:
            _close(old)
        columns = plan.columns if plan is not None else None
        width = 0 if columns is None else len(columns)
        if len(result_formats) > 1 and columns is not None and len(result_formats) != width:
            raise SqlError(
                "08P01",
                f"bind message has {len(result_formats)} result formats but query has {width} columns",
            )
        self.portals[name] = Portal(name, prepared, plan, values, tuple(result_formats))

    def _param_values(
        self, prepared: Prepared, formats: Sequence[int], raw: Sequence[bytes | None]
    ) -> tuple[Any, ...]:
        """Return parameter values; the decoders are kept with the statement while formats stay the same."""
        session = self.session
        settings = session.codec_settings if prepared.reads_clock else session.output_settings
        key = (tuple(formats), settings)
        if prepared.decoder_key != key:
            each = expand_formats(key[0], len(raw))
            prepared.decoders = [
                param_decoder(oid, format_, settings, self.session)
                for oid, format_ in zip(prepared.param_oids, each, strict=True)
            ]
            prepared.decoder_key = key
        return tuple(
            [
                None if data is None else decode(data)
                for decode, data in zip(prepared.decoders, raw, strict=True)
            ]
        )

    def describe_statement(self, name: str) -> MaybeAwaitable[StatementDescription]:
        """Describe a prepared statement; runs nothing."""
        prepared = self.prepared.get(name)
        try:
            if prepared is None:
                shown = f'prepared statement "{name}"' if name else "unnamed prepared statement"
                raise SqlError("26000", f"{shown} does not exist")
            if self.session.state is BlockState.FAILED and (
                prepared.plan is not None and prepared.plan.columns is not None
            ):
                raise SqlError("25P02", IN_FAILED_BLOCK)
            plan = self.fresh_plan(prepared)
        except Exception as error:
            raise self._fail(error) from error
        columns = None if plan is None else self._columns(plan)
        fields = None if columns is None else field_descriptions(columns, (), plan)
        return StatementDescription(param_oids=prepared.param_oids, fields=fields)

    def describe_portal(self, name: str) -> MaybeAwaitable[tuple[FieldDescription, ...] | None]:
        """Describe a portal with its result formats; runs nothing."""
        portal = self.portals.get(name)
        if portal is None:
            cursor = self.cursors.find(name)  # a SQL cursor is a portal too
            if cursor is not None:
                return field_descriptions(cursor.columns, (int(cursor.binary),))
            raise self._fail(SqlError("34000", f'portal "{name}" does not exist'))
        columns = None if portal.plan is None else self._columns(portal.plan)
        return None if columns is None else field_descriptions(columns, portal.result_formats, portal.plan)

    def _columns(self, plan: Plan) -> Any:
        """Return a plan's result columns; FETCH and EXECUTE take theirs from what they name."""
        return run.result_columns(self, plan)

    def execute(self, portal: str, max_rows: int, out: Responder) -> MaybeAwaitable[None]:
        """Run or continue a portal."""
        found = self.portals.get(portal)
        if found is None:
            raise self._fail(SqlError("34000", f'portal "{portal}" does not exist'))
        plan = found.plan
        if plan is None:
            out.empty_query()
            return None
        session = self.session
        try:
            if session.state is BlockState.FAILED and not _runs_when_failed(plan):
                raise SqlError("25P02", IN_FAILED_BLOCK)
            if found.outcome is None and not found.done:
                self._touch(found.prepared.text)
                session.reads_alone = plan.only_reads and out.sync_follows
                leading = self.db.leading()  # else run() waits, which the short ways do not
                if (
                    plan.point is not None
                    and session.reads_alone
                    and leading
                    and self._point(found, plan, max_rows, out)
                ):
                    return None
                if plan.quick is not None and leading and self._quick(found, plan, max_rows, out):
                    return None
                if plan.one_row and leading:
                    result = self._guard(self._insert_row(found, plan, out))
                    return None if result is None else self._reporting(result)
            result = self._guard(self._execute(found, max_rows, out))
        except Exception as error:
            raise self._fail(error) from error
        if isinstance(result, Awaitable):
            return self._reporting(result)
        return None

    async def _insert_row(self, portal: Portal, plan: Plan, out: Responder) -> None:
        """Run an INSERT of one row the short way; where it loses a race, start over the general way."""
        session = self.session
        alone = session.txn is None and session.state is BlockState.IDLE
        try:
            session.ensure_txn().next_statement()
            if not alone:
                session.renew_limits()
            check_privileges(session, plan)
            statement: Any = plan.bound.statement
            outcome = await run_insert(session, plan, statement, portal.params)
        except (Replan, WriteConflict, Deadlock) as lost:
            if not isinstance(lost, Replan) and not (alone and plan.retryable):
                note_loss(session, lost)
                raise
            if alone:
                session.restart()
            await self._execute(portal, 0, out)
            return
        assert isinstance(outcome, Command)
        portal.outcome = outcome
        portal.done = True
        out.command_complete(outcome.tag)

    def _quick(self, portal: Portal, plan: Plan, max_rows: int, out: Responder) -> bool:
        """Answer a point read on the spot; False leaves the portal to the general path, maybe started."""
        result = start_quick(self.session, plan, portal.params)
        if result is None:
            return False
        columns = plan.columns
        assert columns is not None
        if not isinstance(result, ReadyRows) or (max_rows and len(result.rows) >= max_rows):
            portal.started = result
            return False
        rows = result.rows
        if rows:
            data, count = encoder_of(plan, columns, portal.result_formats, self.session).rows(rows)
            out.data_rows(data, count)
        portal.outcome = Rows(columns, result)
        portal.done = True
        out.command_complete(f"SELECT {len(rows)}")
        return True

    def _point(self, portal: Portal, plan: Plan, max_rows: int, out: Responder) -> bool:
        """Answer a point read that is all of its transaction; False leaves the portal as it is."""
        session = self.session
        if session.state is not BlockState.IDLE or max_rows:
            return False
        rows = read_point(session, plan, portal.params)
        if rows is None:
            return False
        assert plan.columns is not None
        if rows:
            data, count = encoder_of(plan, plan.columns, portal.result_formats, session).rows(rows)
            out.data_rows(data, count)
        portal.outcome = Rows(plan.columns, ReadyRows(plan.columns, rows))
        portal.done = True
        out.command_complete("SELECT 1" if len(rows) == 1 else f"SELECT {len(rows)}")
        return True

    async def _reporting(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except Exception as error:
            raise self._fail(error) from error

    async def _execute(self, portal: Portal, max_rows: int, out: Responder) -> None:
        plan = portal.plan
        assert plan is not None
        if portal.done:
            if isinstance(portal.outcome, Rows):
                out.command_complete(portal.outcome.completion(0))
                return
            raise SqlError("55000", f'portal "{portal.name}" cannot be run')
        outcome = portal.outcome
        if outcome is None:
            started, portal.started = portal.started, None
            if started is not None:
                assert plan.columns is not None
                outcome = Rows(plan.columns, await settle(started))
            else:
                outcome, plan = await self._run_with_retries(
                    plan, portal.params, out, portal.prepared, whole=out.sync_follows
                )
                portal.plan = plan
            portal.outcome = outcome
        if isinstance(outcome, Command):
            portal.done = True
            out.command_complete(outcome.tag)
            return
        encode = encoder_of(plan, outcome.columns, portal.result_formats, self.session)
        result = outcome.result
        if isinstance(result, ReadyRows) and portal.reader is None:
            rows = result.rows
            if max_rows == 0 or len(rows) < max_rows:
                if rows:
                    data, count = encode.rows(rows)
                    out.data_rows(data, count)
                portal.done = True
                out.command_complete(outcome.completion(len(rows)))
                return
        if portal.reader is None:
            portal.reader = RowReader(result)
        if portal.reader.live:
            self.goes_on()
        sent = await send_rows(portal.reader, encode, out, max_rows)
        portal.sent += sent
        if max_rows and sent == max_rows:
            out.portal_suspended()
            return
        portal.done = True
        portal.reader.close()
        out.command_complete(outcome.completion(sent))

    async def _run_with_retries(
        self,
        plan: Plan,
        params: tuple[Any, ...],
        out: Responder,
        source: Prepared | Parsed | CachedText,
        *,
        whole: bool,
    ) -> tuple[Outcome, Plan]:
        """Run a plan; bind again when the catalog moved; retry serialization failures and deadlocks.

        A retry is possible only while not a byte was sent for the statement (DESIGN section 7; N8, Q13): with its
        transaction, where that holds nothing else (a statement by itself, the first one of a block), else within
        it, where nothing but the statement's own scans was overtaken. Under policies that refuse to wait it
        comes after a pause, twice as long each time. ``whole``: nothing else will join the statement, so that one
        whose scans were not locked may commit here, where a lost race can still be run again.
        """
        session = self.session
        alone = session.txn is None and session.state is BlockState.IDLE
        refuse_in_block(session, plan)
        again_from_start = alone or session.block_is_untouched
        by_itself = alone and whole
        hopeful = plan.retryable and (by_itself or may_race(session))
        undo = None if again_from_start or not plan.retryable else statement_point(session)
        retries = replans = reruns = 0
        while True:
            session.optimistic = hopeful and retries < OPTIMISTIC_TRIES
            try:
                outcome = await run.run(self, plan, params, out)
                if by_itself and session.optimistic and session.watching and _is_complete(outcome):
                    await session.commit()
                return outcome, plan
            except Replan:
                replans += 1
                if replans > MAX_REPLANS:
                    raise SqlError(
                        "40001", "the tables of this statement keep changing their definition"
                    ) from None
                plan, again = self.planning.plan_again(source)
                params = params if again is None else again
            except RowsChanged:
                reruns += 1
                made_something = plan.bound.class_ is StatementClass.DDL  # CREATE TABLE AS
                if reruns > MAX_RERUNS or made_something:
                    raise SqlError(
                        "40001",
                        "could not serialize access: the rows to be locked keep changing",
                        hint="The transaction might succeed if retried.",
                    ) from None
            except (WriteConflict, Deadlock, SchemaChanged) as error:
                if retries >= AUTOCOMMIT_RETRIES or not plan.retryable:
                    note_loss(session, error)
                    raise
                if not again_from_start:
                    if (
                        not isinstance(error, WriteConflict)
                        or undo is None
                        or not undo_statement(session, undo)
                    ):
                        note_loss(session, error)
                        raise
                    retries += 1
                    continue
                if self.db.config.deadlock_policy not in _WAITING_POLICIES:
                    await asyncio.sleep(RETRY_PAUSE_S * 2**retries * (0.5 + self.db.random()))
                retries += 1
                if alone:
                    session.restart()
                else:
                    session.restart_block()
                if not plan.fresh(session.catalog):
                    plan, again = self.planning.plan_again(source)
                    params = params if again is None else again

    def argument_values(
        self, plan: Plan, statement: ExecutePrepared, oids: tuple[int, ...], params: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Return EXECUTE's argument values, converted to the prepared statement's parameter types."""
        ctx = context(self.session, plan, params)
        env = make_env(ctx)
        values = []
        for position, (expr, oid) in enumerate(zip(statement.args, oids, strict=True), 1):
            try:
                coerced = coerce_argument(expr, oid, settings=self.session.codec_settings)
            except SqlError as error:
                if error.sqlstate == "42804":
                    error.message = error.message.replace("$n", f"${position}")
                raise
            values.append(compile_expr(coerced)((), env))
        return tuple(values)

    def close_statement(self, name: str) -> MaybeAwaitable[None]:
        """Close a prepared statement."""
        self.prepared.pop(name, None)
        return None

    def close_portal(self, name: str) -> MaybeAwaitable[None]:
        """Close a portal."""
        portal = self.portals.pop(name, None)
        if portal is not None:
            _close(portal)
        elif self.cursors.find(name) is not None:
            self.cursors.close(name)
        return None

    def sync(self) -> MaybeAwaitable[None]:
        """End the implicit transaction."""
        session = self.session
        if session.state is not BlockState.IMPLICIT:
            if session.state is BlockState.IDLE and self.portals:
                self._drop_portals()
            self._idle()
            return None
        try:
            if session.commit_read():
                result: Any = None
            elif session.commits_plainly:
                result = session.start_commit()
                if result is not None:
                    return result  # type: ignore[no-any-return]
            else:
                result = eager(session.commit())
        except Exception as error:
            raise self._fail(error) from error
        if isinstance(result, Awaitable):
            return self._finish_sync(result)
        self._idle()
        return None

    def synced(self, outcome: asyncio.Future[Any]) -> None:
        """The commit that ``sync`` started is decided."""
        try:
            self.session.finish_commit(outcome)
        except Exception as error:
            raise self._fail(error) from error
        self._idle()

    async def _finish_sync(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            raise self._fail(error) from error
        self._idle()

    def failed(self) -> MaybeAwaitable[None]:
        """An error was sent: what the statement did is undone."""
        self.session.fail()
        return None

    # -- simple protocol ---------------------------------------------------------------------------

    def query(self, sql: str, out: Responder) -> MaybeAwaitable[None]:
        """Run all statements of a Query message."""
        self.prepared.pop("", None)
        self.close_portal("")
        self._touch(sql)
        result = self._guard(self._query(sql, out))
        if isinstance(result, Awaitable):
            return self._end_query(result)
        self._idle()
        return None

    async def _end_query(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (SqlError, BackendError) as error:  # a cancel between statements
            self.session.fail()
            report = self._report(error)
            assert report is not None
            self.session.out.error(report)
        self._idle()

    async def _query(self, sql: str, out: Responder) -> None:
        session = self.session
        try:
            cached = self.planning.cached(sql)
            if cached is not None:
                plan, values = cached
                source = CachedText(sql)
                session.reads_alone = plan.only_reads
                if plan.point is not None and session.state is BlockState.IDLE and self.db.leading():
                    rows = read_point(session, plan, values)
                    if rows is not None and plan.columns is not None:
                        found = Rows(plan.columns, ReadyRows(plan.columns, rows))
                        await self._answer(found, plan, out, alone=True)
                        return
                outcome, plan = await self._run_with_retries(plan, values, out, source, whole=True)
                await self._answer(outcome, plan, out, alone=True)
                if session.state is BlockState.IMPLICIT:
                    await session.commit()
                return
            if len(sql) > PARSE_IN_THREAD_CHARS:
                statements = await asyncio.to_thread(parse, sql)
            else:
                statements = parse(sql)
            if not statements:
                out.empty_query()
                return
            alone = len(statements) == 1
            session.one_of_several = not alone
            for statement in statements:
                await self._simple(statement, out, alone=alone)
            if session.state is BlockState.IMPLICIT:
                await session.commit()
        except Exception as error:
            report = self._report(error)
            if report is None:
                session.fail()
                raise
            out.error(report)
            session.fail()
        finally:
            session.one_of_several = False

    async def _simple(self, statement: Parsed, out: Responder, *, alone: bool) -> None:
        session = self.session
        plan = self.planning.bind(statement, variable_params=False)
        session.reads_alone = alone and plan.only_reads
        if plan.cacheable and not session.in_own_ddl and len(statement.text) <= PLAN_CACHE_MAX_TEXT:
            self.planning.remember(statement.text, plan)
        outcome, plan = await self._run_with_retries(plan, (), out, statement, whole=alone)
        await self._answer(outcome, plan, out, alone=alone)

    async def _answer(self, outcome: Outcome, plan: Plan, out: Responder, *, alone: bool) -> None:
        """Send a simple statement's outcome; commit first what is a transaction by itself."""
        session = self.session
        if isinstance(outcome, Command):
            if alone and session.state is BlockState.IMPLICIT:
                await session.commit()
            out.command_complete(outcome.tag)
            return
        formats = (1,) if outcome.binary else ()
        out.row_description(field_descriptions(outcome.columns, formats, plan))
        encode = encoder_of(plan, outcome.columns, formats, session)
        result = outcome.result
        if isinstance(result, ReadyRows):
            count = len(result.rows)
            if count:
                data, _ = encode.rows(result.rows)
                out.data_rows(data, count)
        else:
            reader = RowReader(result)
            try:
                if reader.live:
                    await out.drain()  # it may be long before the first row comes
                count = await send_rows(reader, encode, out, 0)
            finally:
                reader.close()
        if alone and session.state is BlockState.IMPLICIT:
            await session.commit()
        out.command_complete(outcome.completion(count))

    # -- the rest ----------------------------------------------------------------------------------

    def status(self) -> TransactionStatus:
        """Return the transaction status byte."""
        return status_byte(self.session.state)

    def close(self) -> MaybeAwaitable[None]:
        """The connection ended: roll back and release everything."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._task is not None:
            self._task.cancel()
        self._drop_portals()
        self.cursors.close_all()
        self.session.rollback()
        return self.db.session_closed(self)

    async def drop_temporaries(self) -> None:
        """Drop the session's temporary tables in a transaction of its own (end of session)."""
        session = self.session
        try:
            await drop_temporaries(session)
        except TxnError as error:
            log.warning("temporary tables of pid %d stay until the next start: %s", session.pid, error)

    def _touch(self, text: str) -> None:
        session = self.session
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        self._goes_on = False
        session.query_text = text
        session.activity = "active"
        session.statement_time_us = session.state_change_us = self.db.clock_us()
        session.cancel_requested = ""

    def _idle(self) -> None:
        """A Query or Sync is done: outside a block, settings changed by it are there to stay."""
        session = self.session
        if session.state is BlockState.IDLE:
            session.settings.commit()
        session.activity = _ACTIVITY[session.state]
        derived = session.derived
        if derived.idle_limits:
            self._limit_idleness(derived)

    def _limit_idleness(self, derived: Derived) -> None:
        """Start the clock that ends a session whose client says nothing for too long."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        inside = self.session.state in (BlockState.BLOCK, BlockState.FAILED)
        limit_ms = derived.idle_in_transaction_ms if inside else derived.idle_session_ms
        if limit_ms:
            report = _IDLE_IN_TRANSACTION if inside else _IDLE_SESSION
            self._idle_timer = asyncio.get_running_loop().call_later(
                limit_ms / 1000, self.db.terminate, self.session.pid, report
            )

    def _fail(self, error: BaseException) -> BaseException:
        """Return the error to raise towards the connection: a report, or the bug itself."""
        reported = self._backend_error(error)
        return error if reported is None else reported

    def _drop_portals(self) -> None:
        for portal in self.portals.values():
            _close(portal)
        self.portals.clear()

    def _block_ended(self, committed: bool) -> None:
        self._drop_portals()
        self.cursors.block_ended(committed)


def _close(portal: Portal) -> None:
    if portal.reader is not None:
        portal.reader.close()
    elif isinstance(portal.outcome, Rows) and not isinstance(portal.outcome.result, ReadyRows):
        portal.outcome.result.close()


def _is_complete(outcome: Outcome) -> bool:
    """Tell whether all that a statement answers is there, so that its transaction may end."""
    return isinstance(outcome, Command) or isinstance(outcome.result, ReadyRows)


def _runs_when_failed(plan: Plan) -> bool:
    statement = plan.bound.statement
    return isinstance(statement, Transaction) and statement.action in (
        "commit", "rollback", "rollback_to",
    )  # fmt: skip


def _shape(plan: Plan) -> Any:
    columns = plan.columns
    return None if columns is None else [(c.name, c.type) for c in columns]
