"""The messages of protocol 3.0 as values (PostgreSQL manual 55.7).

A message is what it means, not its bytes: ``encode`` and ``decode`` turn one into the other. The server's
hot path does not build these values (see ``session``); tests, the client side and everything that is not
measured in microseconds do.

Text is ``str``; on the wire it is in the client's encoding, UTF-8 unless something else was agreed on. Fields
are in wire order, so the values read like the manual: ``Bind("", "s1", (0,), (b"42",), (1,))``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pgwire.backend import FieldDescription, TransactionStatus
from pgwire.errors import ErrorReport

# Start-up requests have no type byte; these numbers stand for one where a message kind is needed.
SSL_REQUEST = 256
GSSENC_REQUEST = 257
CANCEL_REQUEST = 258
STARTUP_MESSAGE = 259

SSL_REQUEST_CODE = 80877103
GSSENC_REQUEST_CODE = 80877104
CANCEL_REQUEST_CODE = 80877102

# ---------------------------------------------------------------------------- frontend


@dataclass(frozen=True, slots=True)
class SSLRequest:
    """Asks for TLS; answered by one byte, S or N."""


@dataclass(frozen=True, slots=True)
class GSSENCRequest:
    """Asks for GSSAPI encryption; answered N."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Asks, on a connection of its own, to cancel what session ``pid`` is doing. ``key``: 4 bytes, up to 256
    from 3.2 on.
    """

    pid: int
    key: bytes


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """Opens a session: user, database, options and settings."""

    parameters: Mapping[str, str]
    major: int = 3
    minor: int = 0


@dataclass(frozen=True, slots=True)
class PasswordMessage:
    """An answer in an authentication exchange; what it holds depends on what was asked."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Query:
    """Simple protocol: run every statement of ``sql``."""

    sql: str


@dataclass(frozen=True, slots=True)
class Parse:
    """Create a prepared statement; an oid of 0 leaves that parameter's type open."""

    statement: str
    sql: str
    param_oids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bind:
    """Create a portal. No format codes mean all text, one code is for all values."""

    portal: str = ""
    statement: str = ""
    param_formats: tuple[int, ...] = ()
    params: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Describe:
    """Describe a statement (S) or portal (P)."""

    kind: Literal["S", "P"]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a portal; ``max_rows`` 0 means all."""

    portal: str = ""
    max_rows: int = 0


@dataclass(frozen=True, slots=True)
class Close:
    """Close a statement (S) or portal (P)."""

    kind: Literal["S", "P"]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Flush:
    """Deliver what is buffered."""


@dataclass(frozen=True, slots=True)
class Sync:
    """End of an extended-protocol batch."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The fast-path call of a function; its body stays bytes (``pgwire.messages.decode.function_call``)."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CopyFail:
    """The client gives up COPY FROM STDIN."""

    message: str


@dataclass(frozen=True, slots=True)
class Terminate:
    """Goodbye."""


# ---------------------------------------------------------------------------- both directions


@dataclass(frozen=True, slots=True)
class CopyData:
    """A piece of COPY data."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CopyDone:
    """COPY data ends."""


# ---------------------------------------------------------------------------- backend


@dataclass(frozen=True, slots=True)
class EncryptionReply:
    """The one byte that answers SSLRequest or GSSENCRequest: S or N."""

    accepted: bool


@dataclass(frozen=True, slots=True)
class AuthenticationOk:
    """The client is who it says."""


@dataclass(frozen=True, slots=True)
class AuthenticationSASL:
    """Choose one of these SASL mechanisms."""

    mechanisms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuthenticationSASLContinue:
    """A SASL challenge."""

    data: bytes


@dataclass(frozen=True, slots=True)
class AuthenticationSASLFinal:
    """The SASL outcome, with the server's proof."""

    data: bytes


@dataclass(frozen=True, slots=True)
class BackendKeyData:
    """What a CancelRequest must carry."""

    pid: int
    key: bytes


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """The version that is spoken (major << 16 | minor), and the ``_pq_.`` options it ignores."""

    version: int
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    """A reported setting has this value."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ReadyForQuery:
    """The server awaits the next batch; I idle, T in a block, E in a failed block."""

    status: TransactionStatus


@dataclass(frozen=True, slots=True)
class ParseComplete:
    """Parse succeeded."""


@dataclass(frozen=True, slots=True)
class BindComplete:
    """Bind succeeded."""


@dataclass(frozen=True, slots=True)
class CloseComplete:
    """Close succeeded."""


@dataclass(frozen=True, slots=True)
class ParameterDescription:
    """A statement's parameter types."""

    param_oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RowDescription:
    """The columns of the rows to come."""

    fields: tuple[FieldDescription, ...]


@dataclass(frozen=True, slots=True)
class FunctionCallResponse:
    """What a fast-path call returned, in the format that was asked for; None is NULL."""

    value: bytes | None


@dataclass(frozen=True, slots=True)
class NoData:
    """No rows will come."""


@dataclass(frozen=True, slots=True)
class DataRow:
    """One row; None is NULL."""

    values: tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class CommandComplete:
    """A statement ended."""

    tag: str


@dataclass(frozen=True, slots=True)
class EmptyQueryResponse:
    """There was no statement to run."""


@dataclass(frozen=True, slots=True)
class PortalSuspended:
    """The row limit of Execute was reached."""


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """A statement, or with severity FATAL the session, failed."""

    report: ErrorReport


@dataclass(frozen=True, slots=True)
class NoticeResponse:
    """A warning or remark."""

    report: ErrorReport


@dataclass(frozen=True, slots=True)
class NotificationResponse:
    """NOTIFY by session ``pid``."""

    pid: int
    channel: str
    payload: str


@dataclass(frozen=True, slots=True)
class CopyInResponse:
    """Send COPY data now; formats 0 text, 1 binary."""

    format: int = 0
    column_formats: tuple[int, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class CopyOutResponse:
    """COPY data follows."""

    format: int = 0
    column_formats: tuple[int, ...] = field(default=())


FrontendMessage: TypeAlias = (
    SSLRequest | GSSENCRequest | CancelRequest | StartupMessage | PasswordMessage | Query | Parse | Bind
    | Describe | Execute | Close | Flush | Sync | FunctionCall | CopyData | CopyDone | CopyFail | Terminate
)  # fmt: skip

BackendMessage: TypeAlias = (
    EncryptionReply | AuthenticationOk | AuthenticationSASL | AuthenticationSASLContinue
    | AuthenticationSASLFinal | BackendKeyData | NegotiateProtocolVersion | ParameterStatus | ReadyForQuery
    | ParseComplete | BindComplete | CloseComplete | ParameterDescription | RowDescription | NoData | FunctionCallResponse | DataRow
    | CommandComplete | EmptyQueryResponse | PortalSuspended | ErrorResponse | NoticeResponse
    | NotificationResponse | CopyInResponse | CopyOutResponse | CopyData | CopyDone
)  # fmt: skip
