"""The simple protocol: one Query message, any number of statements, one implicit transaction unless BEGIN.

    text ──> plan cached by the text, or by its template ──> run, answer
        │                                ├ BEGIN, COMMIT ──> the block, no dispatch
        │                                ├ a point read, all of its transaction (``answer_point``): no transaction
        │                                └ what its plan can do on the spot (``at_once``): no coroutine, unless it has to wait
        └──> statements ──> each: bind, run, answer               the rest is not run after an error

Results are text. What is a transaction by itself commits before its CommandComplete is sent. Where that
commit is all that is left, the session waits for its future itself (``start_commit``, ``end_commit``), and no
task is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from engine.base.loop.threads import beside
from engine.base.rows import ReadyRows
from engine.plans.planning import LONG_TEXT, CachedText
from engine.plans.query import read_point
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, Prepared, RowReader, Rows
from engine.session.statement_log import level_of
from engine.session.transaction.block_state import BLOCK, IDLE, IMPLICIT
from engine.statements.at_once import at_once
from engine.statements.output import encoder_of, field_descriptions, send_ready, send_rows
from engine.statements.retry import run_with_retries
from pgwire.backend import Responder
from pgwire.codecs.errors import DataError
from pgwire.codecs.rows import LongRows
from pgwire.give_way import openly
from pgwire.release import release_all
from planner import ast
from planner.base.errors import SqlError
from planner.parse import Parsed, parse
from txn.base.errors import TxnError
from txn.base.types import Timestamp

if TYPE_CHECKING:
    from engine.connection.backend import Connection
    from engine.session.session import Session
    from planner.query import OutputColumn
    from planner.statements import Transaction


Left: TypeAlias = Coroutine[Any, Any, str | None]
"""What is left to do of a Query; it ends as ``run_text`` does."""
STATEMENTS_IN_A_ROW: Final = 16
"""Of one message, before others get their turn."""


def answer_point(conn: Connection, plan: Plan, values: tuple[Any, ...], out: Responder) -> bool:
    """Answer a Query that is a read by key and a transaction by itself, on the spot; False: ``run_text`` has to.

    Takes no locks and changes nothing that others see, so it may come in the middle of their work
    (``pgwire.session.turns``).
    """
    session = conn.session
    if plan.point is None or session.block.state is not IDLE or not conn.db.leading():
        return False
    try:
        rows = read_point(session, plan, values)
    except (SqlError, TxnError):
        return False  # the general way meets the same, and reports it
    return rows is not None and plan.columns is not None and _sent(session, plan, plan.columns, rows, out)


def _sent(
    session: Session, plan: Plan, columns: tuple[OutputColumn, ...], rows: Sequence[Any], out: Responder
) -> bool:
    """Send the rows of a read by key, all that its Query answers; False: that is for the general way, which
    reports what is wrong.
    """
    try:
        data, count = encoder_of(plan, columns, (), session).rows(rows) if rows else (b"", 0)
    except (LongRows, DataError):  # too long to be sent at once, or no character of the client's encoding
        return False
    out.row_description(field_descriptions(columns, (), plan))
    if rows:
        out.data_rows(data, count)
    out.command_complete("SELECT 1" if len(rows) == 1 else f"SELECT {len(rows)}")
    return True


def begin(
    conn: Connection, sql: str, plan: Plan, values: tuple[Any, ...], out: Responder
) -> str | Left | None:
    """Run a Query of one statement whose plan is known, on the spot as far as it goes.

    Returns the tag of what is to be committed before it is answered (``start_commit``), or what is left to
    do, as ``run_text``; None: all is answered.
    """
    session = conn.session
    block = session.block
    if plan.at_once is None or not plan.short:  # what takes longer has to be where it can give way
        return run_text(conn, sql, (plan, values), out)
    session.running = plan
    block.reads_alone = plan.only_reads
    alone = block.txn is None and block.state is IDLE
    try:
        begun = at_once(session, plan, values)
        if type(begun) is Rows and block.state is BLOCK:
            ready = begun.result
            if type(ready) is ReadyRows and _sent(session, plan, begun.columns, ready.rows, out):
                return None
    except Exception as error:
        return _failed(conn, error, out)
    if type(begun) is Command:
        return begun.tag if _commits_plainly(conn) else _end(conn, begun, plan, out)
    if type(begun) is Rows:
        return _end(conn, begun, plan, out)
    waited: Any = begun
    return run_text(conn, sql, (plan, values), out, waited, alone)


async def _end(conn: Connection, outcome: Outcome, plan: Plan, out: Responder) -> None:
    """Send what a statement has answered on the spot."""
    try:
        await _answer(conn.session, outcome, plan, out)
    except Exception as error:
        await _failed(conn, error, out)


async def _failed(conn: Connection, error: Exception, out: Responder) -> None:
    """Report why a Query has failed and undo what it did. What is no report for the client (a bug) is raised."""
    report = conn.report(await conn.db.reason(error))
    if report is None:
        conn.session.block.fail()
        raise error
    out.error(report)
    conn.session.block.fail()


async def run_text(
    conn: Connection,
    sql: str,
    cached: tuple[Plan, tuple[Any, ...]] | None,
    out: Responder,
    begun: Awaitable[Outcome] | None = None,
    alone: bool = False,
) -> str | None:
    """Run the statements of a Query message and send what they answer, errors included. ``cached``: its plan, if known.

    ``begun`` and ``alone`` as for ``run_with_retries``.
    Returns the tag of a statement whose transaction the caller has to commit before it is answered (``start_commit``),
    None if all is answered. What is no report for the client (a bug) is raised.
    """
    session = conn.session
    block = session.block
    try:
        if cached is not None:
            plan, values = cached
            if plan.control:
                if plan.control == "begin":
                    block.begin(cast("Transaction", plan.bound.statement))
                    out.command_complete(plan.bound.tag)
                    return None
                if block.state is BLOCK and not conn.cursors.any and _commits_plainly(conn):
                    return "COMMIT"
            block.reads_alone = plan.only_reads
            if begun is None and not plan.short:
                alone = block.txn is None and block.state is IDLE
                first = at_once(session, plan, values)
                if isinstance(first, Command | Rows):
                    await _answer(session, first, plan, out)
                    return None
                begun = first
            outcome, plan = await run_with_retries(
                conn.planning, plan, values, out, CachedText(sql), whole=True, begun=begun, alone=alone
            )
            conn.db.turns.yield_to_readers()
            if type(outcome) is Command:
                if block.state is not IMPLICIT:
                    out.command_complete(outcome.tag)
                    return None
                if _commits_plainly(conn):
                    return outcome.tag
            await _answer(session, outcome, plan, out)
            return None
        if session.derived.rereads:
            sql = session.standard_text(sql)
        conn.planning.tell_truncated(sql)
        if len(sql) > LONG_TEXT:
            statements = await beside(parse, sql)
        else:
            statements = openly(parse, sql)
        if session.derived.logs:
            runs = [_executed(conn, s.statement) for s in statements]
            levels = [level_of(s.statement, p) for s, p in zip(statements, runs, strict=True)]
            conn.log.statement(levels, next(filter(None, runs), None))
        if not statements:
            out.empty_query()
            return None
        alone = len(statements) == 1
        session.block.one_of_several = not alone
        for number, statement in enumerate(statements):
            if number:  # no wait behind the last one: what it committed is answered with success
                conn.interrupts.next_statement()
                if number % STATEMENTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)
                else:
                    await session.cancelled.turn()  # those that define something take long
                await session.heard()
            await _simple(conn, statement, out, alone=alone, last=number == len(statements) - 1)
        if len(sql) > LONG_TEXT:
            del statement
            release_all(statements)
    except Exception as error:
        await _failed(conn, error, out)
    finally:
        session.block.one_of_several = False
    return None


def _executed(conn: Connection, statement: ast.StatementNode) -> Prepared | None:
    """Return the prepared statement that an EXECUTE names, if there is one."""
    return conn.prepared.find(statement.name) if isinstance(statement, ast.Execute) else None


def _commits_plainly(conn: Connection) -> bool:
    """Tell whether the running transaction's commit can be waited for without a task.

    Not where a time-out may have to interrupt the wait, or where what it fails with may have to be looked
    into. Nor in a task that is there already.
    """
    session = conn.session
    block = session.block
    return (
        block.txn is not None
        and block.commits_plainly
        and not conn.interrupts.waiting
        and not session.cancelled.deadline_s
        and not session.derived.transaction_timeout_ms
        and conn.db.lease is None
    )


def start_commit(conn: Connection, tag: str, out: Responder) -> asyncio.Future[Timestamp] | None:
    """Commit, then answer with ``tag``, or with the error. Of a commit that has to wait: return its future,
    for ``end_commit``.
    """
    try:
        outcome = conn.session.block.start_commit()
    except Exception as error:
        _refused(conn, error, out)
        return None
    if outcome is None:
        out.command_complete(tag)
    return outcome


def end_commit(conn: Connection, tag: str, outcome: asyncio.Future[Timestamp], out: Responder) -> None:
    """The commit is decided: answer."""
    try:
        conn.session.block.finish_commit(outcome)
    except Exception as error:
        _refused(conn, error, out)
        return
    out.command_complete(tag)


def _refused(conn: Connection, error: Exception, out: Responder) -> None:
    """Send why a commit has failed; its transaction has ended. What is no report for the client is raised."""
    report = conn.report(error)
    if report is None:
        raise error
    out.error(report)


async def _simple(conn: Connection, statement: Parsed, out: Responder, *, alone: bool, last: bool) -> None:
    """Run one statement of a Query, ``alone`` or with others; the ``last`` one commits what they are together
    before it is answered.
    """
    session = conn.session
    if len(statement.text) > LONG_TEXT:
        plan = await conn.planning.bind_long(statement, variable_params=False)
    else:
        plan = conn.planning.bind(statement, variable_params=False)
    session.cancelled.check()
    session.block.reads_alone = alone and plan.only_reads
    conn.planning.remember(statement.text, plan)
    outcome, plan = await run_with_retries(conn.planning, plan, (), out, statement, whole=alone)
    await _answer(session, outcome, plan, out, last=last)
    if len(statement.text) > LONG_TEXT:
        release_all([plan, outcome])


async def _answer(
    session: Session, outcome: Outcome, plan: Plan, out: Responder, *, last: bool = True
) -> None:
    """Send a simple statement's outcome; the ``last`` one of a Query first commits its transaction, unless
    that is a block.

    Nothing waits behind the commit.
    """
    if isinstance(outcome, Command):
        if last and session.block.state is IMPLICIT:
            await session.block.commit()
        out.command_complete(outcome.tag)
        return
    formats = (1,) if outcome.binary else ()
    out.row_description(field_descriptions(outcome.columns, formats, plan))
    encode = encoder_of(plan, outcome.columns, formats, session)
    result = outcome.result
    if isinstance(result, ReadyRows):
        count = len(result.rows)
        if count:
            await send_ready(result.rows, encode, out, plan)
    else:
        reader = RowReader(result)
        try:
            if reader.live:
                await out.drain()  # it may be long before the first row comes
            count = await send_rows(reader, encode, out, 0)
        finally:
            reader.close()
    if last and session.block.state is IMPLICIT:
        await session.block.commit()
    out.command_complete(outcome.completion(count))
