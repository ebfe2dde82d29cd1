"""The messages of an open session: each asks the backend, and queues the answer.

    Query, FunctionCall ──► backend.query, backend.call_function ──► ReadyForQuery
    Parse, Bind, Describe, Execute, Close ──► backend ──► their replies        Sync ──► backend.sync ──► ReadyForQuery

A handler returns None where the backend answered at once, else what is left to wait for (``pgwire.session``).
Whatever it raises the session answers for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from pgwire.backend import SMALL_BYTES, FieldDescription, MaybeAwaitable, StatementDescription
from pgwire.errors import ErrorReport, LocalProtocolError
from pgwire.messages import decode
from pgwire.messages import long as long_messages
from pgwire.messages.encode import (
    BIND_COMPLETE,
    CLOSE_COMPLETE,
    NO_DATA,
    PARSE_COMPLETE,
    parameter_description,
)
from pgwire.messages.long import CONVERTED_BYTES, LONG_BYTES, is_long
from pgwire.session.ports import Handler, Peer, Step

T = TypeVar("T")


def _on_query(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    if stop - start > CONVERTED_BYTES and is_long(stop - start, session.connection.read):
        text = _counted(session, long_messages.query, data, start, stop, session.connection.read)
        return _ready_after(session, session.backend.long_query(text, session.responder))
    sql = decode.query(data, start, stop, session.connection.read)
    pending = session.backend.query(sql, session.responder)
    if pending is not None:
        return pending if isinstance(pending, asyncio.Future) else _await_ready(session, pending)
    session.ready()
    return None


def _on_function_call(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    if stop - start > LONG_BYTES:
        call = _counted(session, long_messages.function_call, data, start, stop)
        return _ready_after(session, session.backend.long_call(call, session.responder))
    oid, formats, args, result_format = decode.function_call(data, start, stop)
    pending = session.backend.call_function(oid, formats, args, result_format, session.responder)
    if pending is not None:
        return _await_ready(session, pending)
    session.ready()
    return None


def _on_parse(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    if stop - start > CONVERTED_BYTES and is_long(stop - start, session.connection.read):
        message = _counted(session, long_messages.parse, data, start, stop, session.connection.read)
        return _replied_after(session, session.backend.long_parse(message), PARSE_COMPLETE)
    name, sql, param_oids = decode.parse(data, start, stop, session.connection.read)
    pending = session.backend.parse(name, sql, param_oids)
    if pending is not None:
        return _await_reply(session, pending, PARSE_COMPLETE)
    session.connection.out.append(PARSE_COMPLETE)
    return None


def _on_bind(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    small = stop - start <= SMALL_BYTES
    if not small and stop - start > LONG_BYTES:
        message = _counted(session, long_messages.bind, data, start, stop, session.connection.read)
        return _replied_after(session, session.backend.long_bind(message), BIND_COMPLETE)
    read = session.connection.read
    portal, statement, param_formats, params, result_formats = decode.bind(data, start, stop, read)
    pending = session.backend.bind(portal, statement, param_formats, params, result_formats, small)
    if pending is not None:
        return _await_reply(session, pending, BIND_COMPLETE)
    session.connection.out.append(BIND_COMPLETE)
    return None


def _on_describe(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    subtype, name = decode.named(data, start, stop, "DESCRIBE", session.connection.read)
    if subtype == 80:
        portal = session.backend.describe_portal(name)
        if isinstance(portal, tuple):
            session.connection.out.append(session.connection.describe(portal))
            return None
        if portal is None:
            session.connection.out.append(NO_DATA)
            return None
        return _await_portal(session, portal)
    statement = session.backend.describe_statement(name)
    if isinstance(statement, StatementDescription):
        _describe_statement(session, statement)
        return None
    return _await_statement(session, statement)


def _describe_portal(session: Peer, fields: tuple[FieldDescription, ...] | None) -> None:
    session.connection.out.append(NO_DATA if fields is None else session.connection.describe(fields))


def _describe_statement(session: Peer, statement: StatementDescription) -> None:
    session.connection.out.append(parameter_description(statement.param_oids))
    _describe_portal(session, statement.fields)


def _on_execute(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    portal, max_rows = decode.execute(data, start, stop, session.connection.read)
    responder = session.responder
    responder.ended = False
    pending = session.backend.execute(portal, max_rows, responder)
    if pending is not None:
        return _await_executed(session, pending)
    if not responder.ended:
        raise LocalProtocolError("execute returned without an end")
    return None


def _on_close(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    subtype, name = decode.named(data, start, stop, "CLOSE", session.connection.read)
    backend = session.backend
    pending = backend.close_portal(name) if subtype == 80 else backend.close_statement(name)
    if pending is not None:
        return _await_reply(session, pending, CLOSE_COMPLETE)
    session.connection.out.append(CLOSE_COMPLETE)
    return None


def _on_flush(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    decode.nothing(data, start, stop)
    session.flush_wanted = True
    return None


def _on_sync(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    if start != stop:  # it still ends the batch, which fails
        session.connection.error(
            ErrorReport(severity="ERROR", sqlstate="08P01", message="invalid message format")
        )
        return session.after_failure()
    pending = session.backend.sync()
    if pending is not None:
        return pending if isinstance(pending, asyncio.Future) else _await_ready(session, pending)
    session.ready()
    return None


def _on_terminate(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    session.leave(None)
    return None


async def _counted(session: Peer, read: Callable[..., Coroutine[Any, Any, T]], *message: Any) -> T:
    """Read a long message, whose bytes count until it has been read."""
    try:
        return await read(*message)
    finally:
        session.connection.has_read()


def _ready_after(session: Peer, pending: MaybeAwaitable[None]) -> Step | None:
    if pending is not None:
        return _await_ready(session, pending)
    session.ready()
    return None


def _replied_after(session: Peer, pending: MaybeAwaitable[None], reply: bytes) -> Step | None:
    if pending is not None:
        return _await_reply(session, pending, reply)
    session.connection.out.append(reply)
    return None


async def _await_ready(session: Peer, pending: Awaitable[None]) -> None:
    await pending
    session.ready()


async def _await_reply(session: Peer, pending: Awaitable[None], reply: bytes) -> None:
    await pending
    session.connection.out.append(reply)


async def _await_executed(session: Peer, pending: Awaitable[None]) -> None:
    await pending
    if not session.responder.ended:
        raise LocalProtocolError("execute returned without an end")


async def _await_portal(session: Peer, pending: Awaitable[tuple[FieldDescription, ...] | None]) -> None:
    _describe_portal(session, await pending)


async def _await_statement(session: Peer, pending: Awaitable[StatementDescription]) -> None:
    _describe_statement(session, await pending)


HANDLERS: Final[dict[int, Handler]] = {
    ord("Q"): _on_query,
    ord("F"): _on_function_call,
    ord("P"): _on_parse,
    ord("B"): _on_bind,
    ord("D"): _on_describe,
    ord("E"): _on_execute,
    ord("C"): _on_close,
    ord("H"): _on_flush,
    ord("S"): _on_sync,
    ord("X"): _on_terminate,
}
