"""The extended protocol: parameters make a portal of a prepared statement, Execute runs it or goes on with it.

    Bind      parameters ──> portal
    Execute   portal ──> rows out, until the row limit suspends it
                │ point read, all of its transaction     ``_point``        no transaction, no coroutine
                │ read by a key                          ``_quick``        no coroutine, unless it has to wait
                │ change by itself of one row            ``_change``       no dispatch; no coroutine, unless it has to wait
                │ INSERT of one row in a block           ``_insert_row``   no dispatch
                └ everything else                        ``_execute``      over ``engine.statements.run``, with retries

The short ways do what the general one does and fall back to it where there is more to do. They are taken only while
the server knows that it leads: the general one waits for that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.base.rows import ReadyRows
from engine.changes.writes.dml import run_insert
from engine.changes.writes.one_row import LOST, may_run_again
from engine.definitions.needs.privileges import check as check_privileges
from engine.plans.planning import ENDS_FAILURE, IN_FAILED_BLOCK
from engine.plans.query import read_point, start_quick
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome, Portal, Prepared, RowReader, Rows
from engine.session.transaction.block_state import FAILED, IDLE
from engine.session.transaction.races import note_loss, note_rerun
from engine.statements.output import encoder_of, send_ready, send_rows
from engine.statements.retry import run_with_retries
from pgwire.backend import MaybeAwaitable, Responder
from pgwire.codecs.rows import LongRows
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.base.large import LARGE_BYTES
from planner.statements import Call, DeclareCursor, Transaction
from txn.base.errors import Deadlock, WriteConflict

if TYPE_CHECKING:
    from engine.connection.backend import Connection
    from engine.session.session import Session

MAX_PORTALS = 1000
_CHANGES = ("INSERT ", "UPDATE ", "DELETE ", "MERGE ")


def bind_portal(
    conn: Connection,
    name: str,
    prepared: Prepared,
    param_formats: Sequence[int],
    raw: Sequence[bytes | None],
    result_formats: Sequence[int],
    *,
    small: bool = True,
) -> None:
    """Make a portal of a prepared statement and its parameter values; ``small``: of at most ``SMALL_BYTES``.

    Raises SqlError 42P03, 08P01 (numbers that do not fit), 53400, 25P02, what decoding a value raises, and what constants do (``Plan.fails``).
    """
    if conn.session.block.state is FAILED and (prepared.plan is None or not _runs_when_failed(prepared.plan)):
        raise SqlError("25P02", IN_FAILED_BLOCK)
    oids = prepared.param_oids
    if len(raw) != len(oids):
        raise SqlError(
            "08P01",
            f"bind message supplies {len(raw)} parameters, but prepared statement "
            f'"{prepared.name}" requires {len(oids)}',
        )
    if len(param_formats) > 1 and len(param_formats) != len(raw):
        raise SqlError(
            "08P01",
            f"bind message has {len(param_formats)} parameter formats but {len(raw)} parameters",
        )
    if name and (name in conn.portals or conn.cursors.find(name) is not None):
        raise SqlError("42P03", f'cursor "{name}" already exists')
    if len(conn.portals) >= MAX_PORTALS:
        raise SqlError("53400", f"more than {MAX_PORTALS} open portals")
    if prepared.reads_clock:
        conn.session.begin_time(conn.db.clock_us())
    plan = conn.prepared.fresh_plan(prepared)
    values = conn.prepared.wire_values(prepared, param_formats, raw, name, small) if oids else ()
    old = conn.portals.pop(name, None)
    if old is not None:
        old.close()
        if old.param_bytes:
            conn.count_portals()
    columns = None
    if plan is not None:
        columns = plan.columns
        if plan.fails is not None and not isinstance(plan.bound.statement, DeclareCursor):
            raise plan.fails.copy()
    width = 0 if columns is None else len(columns)
    if len(result_formats) > 1 and columns is not None and len(result_formats) != width:
        raise SqlError(
            "08P01",
            f"bind message has {len(result_formats)} result formats but query has {width} columns",
        )
    made = conn.portals[name] = Portal(name, prepared, plan, values, tuple(result_formats))
    made.savepoint_depth = len(conn.session.block.savepoints)
    if name:
        made.created_us = conn.db.clock_us()


def bind_counted(
    conn: Connection,
    name: str,
    prepared: Prepared,
    param_formats: Sequence[int],
    raw: Sequence[bytes | None],
    result_formats: Sequence[int],
) -> None:
    """As ``bind_portal``, of any values: large ones count as what the session keeps. Raises SqlError 53200 besides."""
    bind_portal(conn, name, prepared, param_formats, raw, result_formats, small=False)
    size = sum(map(len, filter(None, raw)))
    if size >= LARGE_BYTES:
        portal = conn.portals[name]
        portal.param_bytes = openly(row_bytes, portal.params)  # digits of a bytea are twice as long
        conn.count_portals()


def execute(
    conn: Connection, portal: Portal, plan: Plan, max_rows: int, out: Responder
) -> MaybeAwaitable[None]:
    """Run or continue a portal; ``max_rows`` 0 is no limit. Raises SqlError and txn's errors, at once or when awaited."""
    session = conn.session
    if session.block.state is FAILED and not _runs_when_failed(plan):
        raise SqlError("25P02", IN_FAILED_BLOCK)
    session.running = plan
    conn.touch(portal.prepared.text)  # also of one that goes on: the time limits count anew
    if portal.outcome is None and not portal.done:
        session.block.reads_alone = plan.only_reads and out.sync_follows
        leading = conn.db.leading()  # else run() waits, which the short ways do not
        if (
            plan.point is not None
            and session.block.reads_alone
            and leading
            and _point(session, portal, plan, max_rows, out)
        ):
            return None
        if (
            plan.quick is not None
            and plan.short
            and leading
            and not portal.param_bytes
            and (plan.only_reads or not conn.db.turns.preempting)
            and _quick(session, portal, plan, max_rows, out)
        ):
            return None
        if (plan.alone is not None or plan.one_row) and leading and session.derived.short_ways:
            return _change(conn, portal, plan, out)
    short = plan.short and not portal.param_bytes and (not plan.control or conn.is_short(plan))
    return conn.interrupts.run(_execute(conn, portal, max_rows, out), short=short)


def _change(conn: Connection, portal: Portal, plan: Plan, out: Responder) -> MaybeAwaitable[None]:
    """Run a change of one row: on the spot where it begins a transaction and need not wait."""
    block = conn.session.block
    alone = block.txn is None and block.state is IDLE
    short = plan.short and not portal.param_bytes
    if alone and plan.alone is not None and not portal.param_bytes and not conn.db.turns.preempting:
        result: Command | Awaitable[Command] | None = plan.alone(conn.session, plan, portal.params)
        if type(result) is Command:
            _complete(portal, result, out)
            return None
        if result is not None:
            return conn.interrupts.run(_changed(conn, portal, plan, out, result), short=True)
        if block.txn is not None:
            block.restart()
    if plan.one_row:
        return conn.interrupts.run(_insert_row(conn, portal, plan, out, alone), short=short)
    return conn.interrupts.run(_execute(conn, portal, 0, out), short=short)


async def _changed(
    conn: Connection, portal: Portal, plan: Plan, out: Responder, result: Command | Awaitable[Command]
) -> None:
    """Wait for a change by itself of one row; where it loses a race, start over the general way."""
    try:
        outcome = await settle(result)
    except LOST as lost:
        if not may_run_again(conn.session, plan, lost):
            raise
        await _execute(conn, portal, 0, out)
        return
    _complete(portal, outcome, out)


async def _insert_row(conn: Connection, portal: Portal, plan: Plan, out: Responder, alone: bool) -> None:
    """Run an INSERT of one row the short way; where it loses a race, start over the general way."""
    session = conn.session
    try:
        session.block.ensure_txn().next_statement()
        if not alone:
            session.block.renew_limits()
        check_privileges(session, plan)
        session.block.enter(plan.enters, plan.tables)
        statement: Any = plan.bound.statement
        outcome = await run_insert(session, plan, statement, portal.params)
        own_rows, txn = session.block.own_rows, session.block.txn
        if not alone and txn is not None and not (plan.leaves_little and own_rows.may_wait):
            counting = own_rows.count(txn)
            if counting is not None:
                await counting
    except (Replan, WriteConflict, Deadlock) as lost:
        if not isinstance(lost, Replan) and not (alone and plan.retryable):
            note_loss(session, lost)
            raise
        if alone:
            note_rerun(session, lost)
            session.block.restart()
        await _execute(conn, portal, 0, out)
        return
    assert isinstance(outcome, Command)
    _complete(portal, outcome, out)


def _complete(portal: Portal, outcome: Command, out: Responder) -> None:
    portal.outcome = outcome
    portal.done = True
    out.command_complete(outcome.tag)


def _quick(session: Session, portal: Portal, plan: Plan, max_rows: int, out: Responder) -> bool:
    """Answer a point read on the spot; False leaves the portal to the general path, maybe started."""
    result = start_quick(session, plan, portal.params)
    if result is None:
        return False
    columns = plan.columns
    assert columns is not None
    if not isinstance(result, ReadyRows) or (max_rows and len(result.rows) >= max_rows):
        portal.started = result
        return False
    rows = result.rows
    if rows:
        try:
            data, count = encoder_of(plan, columns, portal.result_formats, session).rows(rows)
        except LongRows:
            portal.started = result
            return False
        out.data_rows(data, count)
    portal.outcome = Rows(columns, result)
    portal.done = True
    out.command_complete(f"SELECT {len(rows)}")
    return True


def _point(session: Session, portal: Portal, plan: Plan, max_rows: int, out: Responder) -> bool:
    """Answer a point read that is all of its transaction; False leaves the portal as it is."""
    if session.block.state is not IDLE or max_rows:
        return False
    rows = read_point(session, plan, portal.params)
    if rows is None:
        return False
    assert plan.columns is not None
    if rows:
        try:
            data, count = encoder_of(plan, plan.columns, portal.result_formats, session).rows(rows)
        except LongRows:
            return False
        out.data_rows(data, count)
    portal.outcome = Rows(plan.columns, ReadyRows(plan.columns, rows))
    portal.done = True
    out.command_complete("SELECT 1" if len(rows) == 1 else f"SELECT {len(rows)}")
    return True


async def started(conn: Connection, portal: Portal, out: Responder, *, whole: bool = False) -> Outcome:
    """Return a portal's outcome; runs its statement if nobody has. ``whole`` as for ``run_with_retries``."""
    if portal.outcome is not None:
        return portal.outcome
    plan = portal.plan
    assert plan is not None
    begun, portal.started = portal.started, None
    if begun is not None:
        assert plan.columns is not None
        portal.outcome = Rows(plan.columns, await settle(begun))
    else:
        portal.outcome, portal.plan = await run_with_retries(
            conn.planning,
            plan,
            portal.params,
            out,
            portal.prepared,
            whole=whole,
            formats=portal.result_formats,
        )
        conn.db.turns.yield_to_readers()
        if isinstance(portal.plan.bound.statement, Call):  # the end of a transaction within it is not its own
            conn.portals.setdefault(portal.name, portal)
    return portal.outcome


async def _execute(conn: Connection, portal: Portal, max_rows: int, out: Responder) -> None:
    if portal.done:
        if isinstance(portal.outcome, Rows):
            out.command_complete(last_completion(portal.outcome, 0))
            return
        raise SqlError("55000", f'portal "{portal.name}" cannot be run')
    outcome = await started(conn, portal, out, whole=out.sync_follows)
    plan = portal.plan
    assert plan is not None
    if isinstance(outcome, Command):
        _complete(portal, outcome, out)
        return
    encode = encoder_of(plan, outcome.columns, portal.result_formats, conn.session)
    result = outcome.result
    if isinstance(result, ReadyRows) and portal.reader is None:
        rows = result.rows
        committed = conn.session.cancelled.decided  # then nothing may wait: it is answered with success
        if max_rows == 0 or len(rows) < max_rows or committed:
            suspended = 0 < max_rows <= len(rows)
            if rows:
                await send_ready(rows[:max_rows] if suspended else rows, encode, out, plan)
            portal.done = True
            if suspended:
                out.portal_suspended()
            else:
                out.command_complete(outcome.completion(len(rows)))
            return
    if portal.reader is None:
        portal.reader = RowReader(result, portal.name, conn.session)
    if portal.reader.live:
        conn.interrupts.goes_on()
    sent = await send_rows(portal.reader, encode, out, max_rows)
    portal.sent += sent
    if max_rows and sent == max_rows:
        out.portal_suspended()
        return
    portal.done = True
    portal.reader.close()
    out.command_complete(last_completion(outcome, sent) if portal.sent > sent else outcome.completion(sent))


def last_completion(outcome: Rows, count: int) -> str:
    """Return the tag of an Execute that was not the portal's first: of changes, too, it counts what was sent since."""
    tag = outcome.completion(count)
    return f"{tag[: tag.rindex(' ')]} {count}" if tag.startswith(_CHANGES) else tag


def _runs_when_failed(plan: Plan) -> bool:
    statement = plan.bound.statement
    return isinstance(statement, Transaction) and statement.action in ENDS_FAILURE
