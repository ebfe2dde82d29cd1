"""The simple protocol: one Query message, any number of statements, one implicit transaction unless BEGIN.

    text ──> plan cached by the text, or by its template ──> run, answer
        └──> statements ──> each: bind, run, answer               the rest is not run after an error

Results are text. What is a transaction by itself commits before its CommandComplete is sent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.connection.output import encoder_of, field_descriptions, send_rows
from engine.connection.portal import Command, Outcome, RowReader, Rows
from engine.connection.rows import ReadyRows
from engine.reads.planning import LONG_TEXT, CachedText
from engine.reads.plans import PLAN_CACHE_MAX_TEXT, Plan
from engine.reads.query import read_point
from engine.transaction.block_state import BlockState
from engine.transaction.retry import run_with_retries
from pgwire.backend import Responder
from planner.parse import Parsed, parse

if TYPE_CHECKING:
    from engine.connection.backend import Connection
    from engine.connection.session import Session


async def run_text(conn: Connection, sql: str, out: Responder) -> None:
    """Run the statements of a Query message and send what they answer, errors included.

    What is no report for the client (a bug) is raised.
    """
    session = conn.session
    try:
        cached = conn.planning.cached(sql)
        if cached is not None:
            plan, values = cached
            source = CachedText(sql)
            session.block.reads_alone = plan.only_reads
            if plan.point is not None and session.block.state is BlockState.IDLE and conn.db.leading():
                rows = read_point(session, plan, values)
                if rows is not None and plan.columns is not None:
                    found = Rows(plan.columns, ReadyRows(plan.columns, rows))
                    await _answer(session, found, plan, out, alone=True)
                    return
            outcome, plan = await run_with_retries(conn, plan, values, out, source, whole=True)
            await _answer(session, outcome, plan, out, alone=True)
            if session.block.state is BlockState.IMPLICIT:
                await session.block.commit()
            return
        if len(sql) > LONG_TEXT:
            statements = await asyncio.to_thread(parse, sql)
        else:
            statements = parse(sql)
        if not statements:
            out.empty_query()
            return
        alone = len(statements) == 1
        session.block.one_of_several = not alone
        for statement in statements:
            await _simple(conn, statement, out, alone=alone)
        if session.block.state is BlockState.IMPLICIT:
            await session.block.commit()
    except Exception as error:
        reason = await conn.db.reason(error)
        report = conn.report(reason)
        if report is None:
            session.block.fail()
            raise
        out.error(report)
        session.block.fail()
    finally:
        session.block.one_of_several = False


async def _simple(conn: Connection, statement: Parsed, out: Responder, *, alone: bool) -> None:
    session = conn.session
    if len(statement.text) > LONG_TEXT:
        plan = await conn.planning.bind_long(statement, variable_params=False)
    else:
        plan = conn.planning.bind(statement, variable_params=False)
    session.cancelled.check()
    session.block.reads_alone = alone and plan.only_reads
    if plan.cacheable and not session.view.is_private and len(statement.text) <= PLAN_CACHE_MAX_TEXT:
        conn.planning.remember(statement.text, plan)
    outcome, plan = await run_with_retries(conn, plan, (), out, statement, whole=alone)
    await _answer(session, outcome, plan, out, alone=alone)


async def _answer(session: Session, outcome: Outcome, plan: Plan, out: Responder, *, alone: bool) -> None:
    """Send a simple statement's outcome; commit first what is a transaction by itself."""
    if isinstance(outcome, Command):
        if alone and session.block.state is BlockState.IMPLICIT:
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
    if alone and session.block.state is BlockState.IMPLICIT:
        await session.block.commit()
    out.command_complete(outcome.completion(count))
