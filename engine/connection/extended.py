"""The extended protocol: parameters make a portal of a prepared statement, Execute runs it or goes on with it.

Bind      parameters ──> portal
Execute   portal ──> rows out, until the row limit suspends it
│ point read, all of its transaction     ``_point``     no transaction
│ what its plan can do on the spot       ``at_once``    no coroutine, unless it has to wait
└ everything else                        ``_execute``   over ``engine.statements.retry`` and ``run``
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from engine.base.rows import ReadyRows
from engine.plans.planning import ENDS_FAILURE, IN_FAILED_BLOCK
from engine.plans.query import read_point
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, Portal, Prepared, RowReader, Rows
from engine.session.transaction.block_state import FAILED, IDLE
from engine.statements.at_once import at_once
from engine.statements.output import encoder_of, send_ready, send_rows
from engine.statements.retry import run_with_retries
from pgwire.backend import MaybeAwaitable, Responder
from pgwire.codecs.rows import LongRows
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.base.large import LARGE_BYTES
from planner.statements import Call, DeclareCursor, Transaction

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

    Raises SqlError 42P03, 08P01 (numbers that do not fit), 53400, 25P02, what decoding a value raises, and
    what constants do (``Plan.fails``).
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
    """Run or continue a portal; ``max_rows`` 0 is no limit. Raises SqlError and txn's errors, at once or when
    awaited.
    """
    session = conn.session
    block = session.block
    if block.state is FAILED and not _runs_when_failed(plan):
        raise SqlError("25P02", IN_FAILED_BLOCK)
    session.running = plan
    conn.touch(portal.prepared.text)  # also of one that goes on: the time limits count anew
    begun: Outcome | Awaitable[Outcome] | None = None
    alone = block.txn is None and block.state is IDLE
    if portal.outcome is None and not portal.done:
        block.reads_alone = plan.only_reads and out.sync_follows
        if (
            plan.point is not None
            and block.reads_alone
            and conn.db.leading()  # else run() waits, which this does not
            and _point(session, portal, plan, max_rows, out)
        ):
            return None
        if plan.short and not portal.param_bytes:  # what takes longer has to be where it can give way
            begun = at_once(session, plan, portal.params)
            if type(begun) is Command:
                _complete(portal, begun, out)
                return None
            if type(begun) is Rows:
                if _answered(session, portal, plan, begun, max_rows, out):
                    return None
                portal.outcome, begun = begun, None
    waited: Any = begun
    short = plan.short and not portal.param_bytes and (not plan.control or conn.is_short(plan))
    return conn.interrupts.run(_execute(conn, portal, max_rows, out, waited, alone), short=short)


def _complete(portal: Portal, outcome: Command, out: Responder) -> None:
    portal.outcome = outcome
    portal.done = True
    out.command_complete(outcome.tag)


def _answered(
    session: Session, portal: Portal, plan: Plan, outcome: Rows, max_rows: int, out: Responder
) -> bool:
    """Answer with all rows of a read by key on the spot; False: they are too long, or more than are asked for."""
    result = outcome.result
    if type(result) is not ReadyRows or (max_rows and len(result.rows) >= max_rows):
        return False
    rows = result.rows
    if rows:
        try:
            data, count = encoder_of(plan, outcome.columns, portal.result_formats, session).rows(rows)
        except LongRows:
            return False
        out.data_rows(data, count)
    portal.outcome = outcome
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
    if plan.columns is None:
        raise AssertionError("a plan that returns rows has no columns")
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


async def started(
    conn: Connection,
    portal: Portal,
    out: Responder,
    *,
    whole: bool = False,
    begun: Awaitable[Outcome] | None = None,
    alone: bool = False,
) -> Outcome:
    """Return a portal's outcome; runs its statement if nobody has. ``whole``, ``begun`` and ``alone`` as for
    ``run_with_retries``.
    """
    if portal.outcome is not None:
        return portal.outcome
    plan = portal.plan
    if plan is None:
        raise AssertionError("a portal is started without a plan")
    portal.outcome, portal.plan = await run_with_retries(
        conn.planning, plan, portal.params, out, portal.prepared,
        whole=whole, formats=portal.result_formats, begun=begun, alone=alone,
    )  # fmt: skip
    conn.db.turns.yield_to_readers()
    if isinstance(portal.plan.bound.statement, Call):  # the end of a transaction within it is not its own
        conn.portals.setdefault(portal.name, portal)
    return portal.outcome


async def _execute(
    conn: Connection,
    portal: Portal,
    max_rows: int,
    out: Responder,
    begun: Awaitable[Outcome] | None = None,
    alone: bool = False,
) -> None:
    if portal.done:
        if isinstance(portal.outcome, Rows):
            out.command_complete(last_completion(portal.outcome, 0))
            return
        raise SqlError("55000", f'portal "{portal.name}" cannot be run')
    outcome = await started(conn, portal, out, whole=out.sync_follows, begun=begun, alone=alone)
    plan = portal.plan
    if plan is None:
        raise AssertionError("a portal is run without a plan")
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
