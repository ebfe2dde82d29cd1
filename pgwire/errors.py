"""Protocol errors and the report a client gets.

``ErrorReport`` is a value: the fields of ErrorResponse and NoticeResponse (PostgreSQL manual 55.8).
``RemoteProtocolError`` means the peer broke the protocol; ``LocalProtocolError`` that our own side asked
the state machine for something illegal, which is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """Fields of an error or notice. ``position`` counts characters from 1.

    ``routine`` is PostgreSQL's name of the function that found the error, given only where clients decide by
    it. ``log_detail``: DETAIL as the server's log has it, where that is longer; no client sees it.
    """

    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    internal_position: int | None = None
    internal_query: str | None = None
    where: str | None = None
    schema: str | None = None
    table: str | None = None
    column: str | None = None
    datatype: str | None = None
    constraint: str | None = None
    routine: str | None = None
    log_detail: str | None = None


class RemoteProtocolError(Exception):
    """The peer sent what the protocol forbids; ``fatal`` when framing is lost (connection closes)."""

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str = "08P01",
        fatal: bool = False,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Make an error; 08P01 unless said otherwise."""
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.fatal = fatal
        self.detail = detail
        self.hint = hint


class LocalProtocolError(Exception):
    """Our side asked for an illegal transition: a bug in the caller."""


class BackendError(Exception):
    """What a Backend raises to make the connection send an ErrorResponse and fail the statement."""

    def __init__(self, report: ErrorReport) -> None:
        """Wrap a report; severity FATAL also closes the connection after it is sent."""
        super().__init__(report.message)
        self.report = report


def fatal(sqlstate: str, message: str) -> ErrorReport:
    """Return a report that ends its session."""
    return ErrorReport(severity="FATAL", sqlstate=sqlstate, message=message)
