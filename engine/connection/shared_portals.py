"""Portals and cursors by each other's commands: they have one namespace and one place in their rows (manual
55.2.3, FETCH).

    Bind    c ──> portal    FETCH, MOVE, CLOSE c            go on where Execute stopped, forward only
    DECLARE c ──> cursor    Execute, Describe, Close of c   go on where FETCH stopped

A portal that FETCH was asked of has a ``Cursor`` from then on, and Execute reads from it, too: so neither
loses rows that the other one has read ahead, and a cancelled FETCH loses none (L40).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from engine.base.rows import ReadyRows, RowBatch
from engine.connection.extended import last_completion, started
from engine.plans.planning import IN_FAILED_BLOCK
from engine.session.portal import Cursor, Portal, RowReader, Rows
from engine.session.transaction.block_state import BlockState
from engine.statements.output import Encoder, expand_formats, send_batch
from pgwire.backend import Responder
from planner.base.errors import SqlError, not_supported
from planner.statements import Fetch, Subscribe

if TYPE_CHECKING:
    from engine.connection.backend import Connection


async def cursor_of(conn: Connection, portal: Portal, out: Responder) -> Cursor:
    """Return the cursor over a portal's rows, which a FETCH is to read; starts the portal if nobody has.

    Raises SqlError 55000 (the portal runs already), 0A000 (it gives no rows, or never ends), and what its
    statement raises.
    """
    if portal.cursor is not None:
        return portal.cursor
    plan = portal.plan
    statement = None if plan is None else plan.bound.statement
    fetches = isinstance(statement, Fetch) and not statement.move  # of what is found out when it runs
    if plan is None or not (fetches or conn.columns_of(plan)):
        raise not_supported("FETCH from a portal whose statement returns no rows")
    if isinstance(statement, Subscribe):
        raise not_supported("FETCH from a portal of SUBSCRIBE")
    if portal.starting:
        raise SqlError("55000", f'portal "{portal.name}" cannot be run')
    portal.starting = True
    try:
        outcome = await started(conn, portal, out)
    finally:
        portal.starting = False
    if not isinstance(outcome, Rows):
        raise AssertionError(f"a statement that returns rows ended as {type(outcome).__name__}")
    passed = portal.sent
    if portal.done and portal.reader is None:  # all at once
        if not isinstance(outcome.result, ReadyRows):
            raise AssertionError(f"rows that are all there are {type(outcome.result).__name__}")
        passed = len(outcome.result.rows)
        portal.reader = RowReader(ReadyRows(outcome.columns, ()))
    reader = portal.reader = portal.reader or RowReader(outcome.result, portal.name)
    cursor = portal.cursor = Cursor(
        name=portal.name,
        text=portal.prepared.text,
        columns=outcome.columns,
        reader=reader,
        store=conn.cursors.store_of(outcome),
        scroll=False,
        hold=False,
        binary=False,
        created_us=portal.created_us,
        position=passed + portal.done,
        exhausted=portal.done,
    )
    cursor.store.skip(passed)
    return cursor


async def execute_portal(conn: Connection, portal: Portal, max_rows: int, out: Responder) -> None:
    """Go on with a portal that FETCH has read from."""
    outcome, cursor = portal.outcome, portal.cursor
    if not isinstance(outcome, Rows):
        raise AssertionError(f"a statement that returns rows ended as {type(outcome).__name__}")
    if cursor is None:
        raise AssertionError("a portal that is shared has no cursor")
    first = cursor.position == 0
    conn.touch(portal.prepared.text)

    def tag(sent: int) -> str:
        return outcome.completion(sent) if first else last_completion(outcome, sent)

    await _execute(conn, cursor, portal.result_formats, max_rows, out, tag)


async def execute_cursor(conn: Connection, cursor: Cursor, max_rows: int, out: Responder) -> None:
    """Send the next ``max_rows`` rows of a cursor (0: all) as text, as Execute of a portal of its name asks.

    As in PostgreSQL that it is BINARY counts only for FETCH.

    Raises SqlError 25P02, and what reading raises.
    """
    if conn.session.block.state is BlockState.FAILED:
        raise SqlError("25P02", IN_FAILED_BLOCK)
    conn.touch(cursor.text)
    await _execute(conn, cursor, (), max_rows, out, "SELECT {}".format)


async def _execute(
    conn: Connection,
    cursor: Cursor,
    formats: Sequence[int],
    max_rows: int,
    out: Responder,
    tag: Callable[[int], str],
) -> None:
    request = Fetch(cursor=cursor.name, direction="forward", count=max_rows or None)
    oids = tuple(column.type.oid for column in cursor.columns)
    encode = Encoder(oids, expand_formats(tuple(formats), len(oids)), conn.session)
    sent = 0
    async for batch in _batches(conn, cursor, request):
        sent += await send_batch(batch, encode, out)
    if max_rows and sent == max_rows:
        out.portal_suspended()
    else:
        out.command_complete(tag(sent))


async def _batches(conn: Connection, cursor: Cursor, request: Fetch) -> AsyncIterator[RowBatch]:
    many = conn.cursors.stream(cursor, request)
    if many is None:
        rows = await conn.cursors.fetch(cursor, request)
        if rows:
            yield RowBatch(rows=rows)
        return
    async for batch in many:
        yield batch
