"""Messages of megabytes, which are read while others run: reading is the first part of the statement
(``pgwire.messages.long``).

    message, not read ──await──> its fields ──> what a short one does
    └──────────── a cancel or statement_timeout ends it anywhere here ────────────┘

Each function is a coroutine for ``Interrupts.run``. They raise as what short messages do, and
RemoteProtocolError for what is no message.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from engine.connection import extended, simple
from engine.connection.function_call import run_function
from engine.plans.planning import LONG_TEXT
from engine.session.statement_log import shown
from pgwire.backend import BindFields, CallFields, ParseFields, Responder

if TYPE_CHECKING:
    from engine.connection.backend import Connection


async def query(conn: Connection, text: Awaitable[str], out: Responder) -> None:
    """Run the statements of a Query."""
    sql = await text
    conn.session.query_text = sql
    if conn.session.derived.logs:
        conn.log.begin(f"statement: {shown(sql)}")
    await simple.run_text(conn, sql, None, out)


async def parse(conn: Connection, message: Awaitable[ParseFields]) -> None:
    """Create a prepared statement."""
    name, sql, oids = await message
    conn.session.query_text = sql
    logs = conn.session.derived.logs
    if logs:
        conn.log.begin(f"parse {name or '<unnamed>'}: {shown(sql)}")
    if not name:
        conn.prepared.close("")  # gone even where the new one is no statement
    if len(sql) > LONG_TEXT:
        await conn.prepared.prepare_long(name, sql, oids)
    else:
        conn.prepared.prepare(name, sql, oids)
    if logs:
        conn.log.end()


async def bind(conn: Connection, message: Awaitable[BindFields]) -> None:
    """Create a portal."""
    portal, statement, param_formats, params, result_formats = await message
    prepared = conn.prepared.get(statement)
    logs = conn.session.derived.logs
    if logs:
        named = (statement or "<unnamed>") + (f"/{portal}" if portal else "")
        conn.log.begin(f"bind {named}: {shown(prepared.text)}")
    extended.bind_counted(conn, portal, prepared, param_formats, params, result_formats)
    if logs:
        conn.log.end(conn.portals[portal])


async def call(conn: Connection, message: Awaitable[CallFields], out: Responder) -> None:
    """Run a function by its oid."""
    oid, formats, args, result_format = await message
    if conn.session.derived.logs:
        conn.log.begin(f"fastpath function call: (OID {oid})")
    await run_function(conn, oid, formats, args, result_format, out)
