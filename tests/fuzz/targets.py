"""What is fuzzed besides the whole server: one function of bytes each, which raises where a promise is broken.

wire      the protocol's decoder and state machine, whatever the pieces in which bytes arrive
values    text and binary forms of every type, and arrays of it
copy      COPY's three formats, with all options
sql       parser, binder and both lowerings
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pgwire import messages as m
from pgwire.codecs import registry
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.reading import copy_decoder
from pgwire.codecs.errors import DataError
from pgwire.connection import NEED_DATA, PAUSED, Connection, CopyFailed
from pgwire.errors import ErrorReport, LocalProtocolError, RemoteProtocolError
from pgwire.state import COPY_IN, State
from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.lower.kit.duckdb import DuckDialect
from planner.lower.kit.spark import SparkDialect
from planner.lower.query.lowering import lower_query
from planner.parse import parse
from planner.query import QueryExpr, Select, SetOp, Values
from tests.support.catalog import MemoryCatalog

MAX_MESSAGE = 1 << 16


class Broken(Exception):
    """A promise was broken: the finding."""


# ------------------------------------------------------------------------------------------------- wire


def wire(data: bytes) -> None:
    """Feed a stream whole and in pieces: the same messages and errors come of it."""
    if not data:
        return
    size = 1 + data[0] % 9
    whole = _events(data[1:], len(data))
    pieces = _events(data[1:], size)
    early = whole and isinstance(whole[-1], tuple) and "received unencrypted data" in str(whole[-1][-1])
    if whole != pieces and not early:  # what may not come before an answer is told by when it comes
        raise Broken(f"in pieces of {size} bytes it reads {pieces!r:.300}, whole {whole!r:.300}")


def _events(data: bytes, size: int) -> list[Any]:
    """Return what a server would act on; a stand-in for the session answers, so that states go on."""
    connection = Connection(max_message_bytes=MAX_MESSAGE)
    found: list[Any] = []
    copied = b""
    for at in range(0, len(data), size):
        connection.receive_data(data[at : at + size])
        while True:
            try:
                if connection.state in COPY_IN:
                    chunk = connection.copy_chunk()
                    if chunk is not None:
                        copied += chunk
                        if not chunk:
                            break
                        continue
                    found.append(("copy", copied))
                    copied = b""
                    _answer(connection, m.CommandComplete("COPY 0"))
                else:
                    event = connection.next_event()
                    if event is NEED_DATA or event is PAUSED:
                        break
                    found.append(event)
                    _react(connection, event)
            except CopyFailed as failed:
                found.append(("copy failed", copied, str(failed)))
                copied = b""
                connection.error(ErrorReport(severity="ERROR", sqlstate="57014", message="COPY failed"))
            except RemoteProtocolError as error:
                found.append((error.sqlstate, str(error)))
                if error.fatal:
                    if connection.state is not State.CLOSED:
                        raise Broken("a fatal error leaves the connection open") from error
                    return found
                report = ErrorReport(severity="ERROR", sqlstate=error.sqlstate, message="bad")
                connection.error(report)
            if connection.state in (State.SIMPLE, State.SYNCING):
                connection.ready("I")
    return found


def _react(connection: Connection, event: Any) -> None:
    """Bring the states on as a session would."""
    state = connection.state
    if state is State.AUTH:
        if isinstance(event, m.StartupMessage):
            connection.send(m.AuthenticationSASL(("SCRAM-SHA-256",)))
        else:
            connection.send(m.AuthenticationOk())
            connection.ready("I")
    elif isinstance(event, m.Query | m.Execute) and "p" in getattr(
        event, "sql", getattr(event, "portal", "")
    ):
        connection.send(m.CopyInResponse(0, ()))


def _answer(connection: Connection, message: m.BackendMessage) -> None:
    try:
        connection.send(message)
    except LocalProtocolError as error:
        raise Broken(str(error)) from error


# ----------------------------------------------------------------------------------------------- values

POSTGRES_INTERNAL = (
    "unsupported jsonb version number", "unsupported jsonpath version number", "invalid size of ts", "malformed tsquery",
    "invalid tsquery", "unrecognized tsquery node type", "tsquery stack too small", "invalid tsvector",
    "cache lookup failed for text search dictionary", "expected source encoding", "expected destination encoding",
    "unexpected number of tsvector positions", "position information is misordered", "Unexpected end of string", "Syntax error near",
)  # fmt: skip
"""What PostgreSQL answers with XX000 as well."""
TYPES = tuple(sorted(registry.CODECS))


def values(data: bytes) -> None:
    """Read a value of a type chosen by the first two bytes; what was read goes both ways and comes back the same."""
    if len(data) < 2:
        return
    oid, binary, body = TYPES[(data[0] << 1 | data[1] >> 7) % len(TYPES)], data[1] & 1, data[2:]
    try:
        if binary:
            value = registry.binary_input(oid, body)
        else:
            value = registry.text_input(oid, body.decode("utf-8", "replace").replace("\0", ""))
    except DataError as error:
        if error.sqlstate[:2] == "XX" and not error.message.startswith(POSTGRES_INTERNAL):
            raise Broken(f"{error.sqlstate} {error}") from error
        return
    except RecursionError:
        return  # 54001 (engine/session/errors.py)
    try:
        sent = registry.binary_output(oid, value)
        if registry.binary_output(oid, registry.binary_input(oid, sent)) != sent:
            raise Broken(f"type {oid}: binary form {sent!r:.200} of {value!r:.200} comes back another")
        shown = registry.text_output(oid, value)
        if registry.text_output(oid, registry.text_input(oid, shown)) != shown:
            raise Broken(f"type {oid}: text form {shown!r:.200} of {value!r:.200} comes back another")
    except DataError as error:
        if error.sqlstate != "0A000":  # void, record and the like go one way
            raise Broken(f"type {oid}: {value!r:.200} was read and cannot be written: {error}") from error


# ------------------------------------------------------------------------------------------------- copy

_DELIMITERS = (None, ",", "|", "\x01")
_COLUMNS = ("a", "b", "c")


def copy(data: bytes) -> None:
    """Read COPY data with options chosen by the first two bytes, whole and in pieces."""
    if len(data) < 3:
        return
    first, second, body = data[0], data[1], data[3:]
    format_ = ("text", "csv", "binary")[first % 3]
    lines = format_ != "binary"
    options = CopyOptions(
        format=format_,  # type: ignore[arg-type]
        delimiter=_DELIMITERS[first >> 2 & 3] if lines else None,
        null=(None, "NULL", "", "x")[first >> 4 & 3] if lines else None,
        header=(False, True, "match", False)[first >> 6] if lines else False,  # type: ignore[arg-type]
        quote=(None, "'")[second & 1] if format_ == "csv" else None,
        escape=(None, "\\")[second >> 1 & 1] if format_ == "csv" else None,
    )
    try:
        options.check("from")
    except DataError:
        return
    whole = _rows(options, body, len(body) + 1)
    size = 1 + data[2] % 17
    pieces = _rows(options, body, size)
    if whole != pieces:
        raise Broken(f"in pieces of {size} bytes it reads {pieces!r:.300}, whole {whole!r:.300}")


def _rows(options: CopyOptions, body: bytes, size: int) -> Any:
    decoder = copy_decoder(options, "t", _COLUMNS)
    rows: list[Any] = []
    try:
        for at in range(0, len(body), size):
            rows += decoder.feed(body[at : at + size]).rows
        rows += decoder.finish().rows
    except DataError as error:
        if error.sqlstate[:2] == "XX":
            raise Broken(f"{error.sqlstate} {error}") from error
        return error.sqlstate, error.message, error.where
    return rows


# -------------------------------------------------------------------------------------------------- sql


@cache
def _catalog() -> MemoryCatalog:
    catalog = MemoryCatalog()
    catalog.table("t", "id int4 pk", "n int4", "v text", "d numeric(12,3)", "j jsonb", "a int4[]")
    catalog.table("u", "id int4", "at timestamptz", "k uuid")
    catalog.view("w", "SELECT id, n FROM public.t", "id int4", "n int4")
    return catalog


def sql(data: bytes) -> None:
    """Parse, bind and lower a text: an answer or an error that PostgreSQL knows."""
    text = data.decode("utf-8", "surrogatepass" if data[:1] == b"\xed" else "replace")
    try:
        parsed = parse(text)
    except DataError as error:
        _check_error(error, text)
        return
    for statement in parsed:
        if text[statement.span.start : statement.span.end] != statement.text:
            raise Broken(f"a statement's text is not at its span: {statement.text!r:.200}")
        if "subscription" in statement.text.lower():
            continue  # named ones are put in by the engine before binding
        try:
            bound = bind_statement(statement.statement, statement.text, _catalog(), ("public",))
            query = bound.statement
        except DataError as error:
            _check_error(error, text)
            continue
        if isinstance(query, Select | SetOp | Values):
            _lower(query, text)


def _lower(query: QueryExpr, text: str) -> None:
    for dialect in (DuckDialect({}), SparkDialect()):
        try:
            lower_query(query, dialect)
        except DataError as error:
            _check_error(error, text)
        except RecursionError:
            pass  # 54001 (engine/session/errors.py)


def _check_error(error: DataError, text: str) -> None:
    if error.sqlstate[:2] == "XX":
        raise Broken(f"{error.sqlstate} {error}") from error
    span = getattr(error, "span", None)
    if isinstance(error, SqlError) and span is not None and not 0 <= span.start <= len(text):
        raise Broken(f"position {span.start} is outside of the text: {error}")
