"""RAISE, ASSERT and what EXCEPTION knows of an error: fields of reports and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.base.where import settled
from engine.programs.plpgsql.frame import Frame
from engine.session.errors import report_of
from pgwire.codecs.domain import TUPLE_TYPES
from pgwire.codecs.registry import text_output
from pgwire.errors import ErrorReport
from pgwire.give_way import openly
from pgwire.long.values import joined
from planner.base.errors import Span, SqlError
from planner.facts import TEXT
from planner.functions.system.reg_output import named_output
from planner.functions.values.reg import NAMED
from planner.plpgsql import tree
from planner.plpgsql.conditions import state_named
from planner.types import SqlType
from txn.base.errors import Deadlock, SchemaChanged, WriteConflict

if TYPE_CHECKING:
    from engine.session.session import Session

_TEXT: Final = SqlType(TEXT)
_SEVERITY: Final = {"warning": "WARNING", "notice": "NOTICE", "info": "INFO", "log": "LOG", "debug": "DEBUG"}
_OFF: Final = ("off", "false", "no", "0")
_STATES: Final = {"warning": "01000", "exception": "P0001"}
_RETRIED: Final = (WriteConflict, Deadlock, SchemaChanged)
"""Errors that no handler takes: the transaction was overtaken, so that its statement is run again, or fails
as a whole."""

FIELDS: Final = {
    "returned_sqlstate": "sqlstate", "message_text": "message", "pg_exception_detail": "detail",
    "pg_exception_hint": "hint", "pg_exception_context": "where", "column_name": "column",
    "constraint_name": "constraint", "pg_datatype_name": "datatype", "table_name": "table", "schema_name": "schema",
}  # fmt: skip
"""Items of GET STACKED DIAGNOSTICS: fields of a report."""


def caught(session: Session, error: Exception) -> ErrorReport | None:
    """Return the report of an error that a handler may take, None for one that none does."""
    if isinstance(error, _RETRIED):
        return None
    report = report_of(error, session.catalog, session.surroundings)
    return None if report is None or report.severity != "ERROR" else report


def with_where(report: ErrorReport, where: str) -> ErrorReport:
    """Return a report with another CONTEXT."""
    return replace(report, where=where)


def is_tuple_type(element: int) -> bool:
    """Tell whether values of a type are tuples themselves (``pgwire.codecs.array``)."""
    return element in TUPLE_TYPES


def as_error(report: ErrorReport) -> SqlError:
    """Return an error with the fields of a report, to be raised again."""
    made = SqlError(
        report.sqlstate, report.message, detail=report.detail, hint=report.hint, where=report.where, schema=report.schema,
        table=report.table, column=report.column, datatype=report.datatype, constraint=report.constraint,
    )  # fmt: skip
    if report.internal_query is not None and report.internal_position is not None:
        at = report.internal_position - 1
        made.query, made.span = report.internal_query, Span(at, at)
    return made


async def run_raise(frame: Frame, statement: tree.Raise, around: Callable[[], list[str]]) -> None:
    """RAISE: an error, or a message to the client. ``around``: CONTEXT of the calls around this one."""
    if statement.condition is None and statement.message is None and not statement.options:
        if not frame.handling:
            raise SqlError("0Z002", "RAISE without parameters cannot be used outside an exception handler")
        raise settled(as_error(frame.handling[-1]))  # with the CONTEXT that it had
    state = statement.state
    message: str | None = None
    if statement.message is not None:
        message = await _formatted(frame, statement.message, statement.params)
    options: dict[str, str] = {}
    for name, piece in statement.options:
        value = await _text_of(frame, piece)
        if value is None:
            raise SqlError("22004", "RAISE statement option cannot be null")
        if (
            name in options
            or (name == "errcode" and state is not None)
            or (name == "message" and message is not None)
        ):
            raise SqlError("42601", f"RAISE option already specified: {name.upper()}")
        options[name] = value
        if name == "errcode":
            state = state_named(value)
            if state is None:
                raise SqlError("42704", f'unrecognized exception condition "{value}"')
        elif name == "message":
            message = value
    if message is None:
        named = statement.condition or options.get("errcode")
        message = named or state or ("P0001" if statement.level == "exception" else "00000")
    fields: dict[str, Any] = {
        name: options.get(name)
        for name in ("detail", "hint", "column", "constraint", "datatype", "table", "schema")
    }
    state = state or _STATES.get(statement.level, "00000")
    if statement.level == "exception":
        raise SqlError(state, message, **fields)
    where = "\n".join([frame.where, *around()])
    frame.session.tell(
        ErrorReport(
            severity=_SEVERITY[statement.level], sqlstate=state, message=message, where=where, **fields
        )
    )


async def _formatted(frame: Frame, message: str, params: list[tree.Piece]) -> str:
    """Return a format with its parameters in the place of ``%``."""
    parts: list[str] = []
    given = iter(params)
    at = 0
    while at < len(message):
        char = message[at]
        if char != "%":
            parts.append(char)
        elif message[at + 1 : at + 2] == "%":
            parts.append("%")
            at += 1
        else:
            value = await _text_of(frame, next(given))
            parts.append("<NULL>" if value is None else value)
        at += 1
    return openly(joined, parts)


async def _text_of(frame: Frame, piece: tree.Piece) -> str | None:
    """Return an expression's value as it prints."""
    value, type_ = await frame.value(piece)
    return shown(frame, value, type_)


def shown(frame: Frame, value: Any, type_: SqlType) -> str | None:
    """Return a value as it prints under the session's settings."""
    if value is None:
        return None
    if type_.oid == TEXT and isinstance(value, str):
        return value
    if type_.oid in NAMED:
        return str(named_output(frame.session, type_.oid, value))
    return text_output(type_.oid, value, frame.session.output_settings)


async def run_assert(frame: Frame, statement: tree.Assert) -> None:
    """ASSERT. Raises SqlError P0004."""
    if frame.session.settings.stored("plpgsql.check_asserts") in _OFF:
        return
    if await frame.truth(statement.condition):
        return
    message = None
    if statement.message is not None:
        message = await _text_of(frame, statement.message)
    raise SqlError("P0004", "assertion failed" if message is None else message)


async def run_diagnostics(frame: Frame, statement: tree.Diagnostics, around: list[str]) -> None:
    """GET [STACKED] DIAGNOSTICS. Raises SqlError 0Z002 for a stacked one where nothing is handled."""
    if statement.stacked and not frame.handling:
        raise SqlError("0Z002", "GET STACKED DIAGNOSTICS cannot be used outside an exception handler")
    for target, item in statement.items:
        if item == "row_count":
            await frame.assign(target, frame.row_count, SqlType(20))
        elif item == "pg_context":
            await frame.assign(target, "\n".join([frame.where, *around]), _TEXT)
        else:
            value = getattr(frame.handling[-1], FIELDS[item])
            await frame.assign(target, value or "", _TEXT)
