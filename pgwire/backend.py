"""The Protocol a database implements to be served over pgwire.

One ``Backend`` per connection; calls never overlap, in message order. Any method may return its result at
once or an awaitable of it: the connection runs at-once results without a task switch, which is what makes a
point read cheap, and awaits the others while reading from the socket pauses. A method fails by raising
``BackendError``; anything else is a bug, reported as XX000 and logged.

The server side owns message order (skip-until-Sync, ReadyForQuery, COPY sub-protocol, back-pressure);
the backend owns prepared statements, portals, transactions and values.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from pgwire.errors import ErrorReport

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]

ParseFields: TypeAlias = tuple[str, str, tuple[int, ...]]
"""Statement name, text and parameter oids."""
BindFields: TypeAlias = tuple[str, str, tuple[int, ...], list[bytes | None], tuple[int, ...]]
"""Portal, statement, parameter formats, parameters and result formats."""
CallFields: TypeAlias = tuple[int, tuple[int, ...], list[bytes | None], int]
"""The function's oid, argument formats, arguments and result format."""

SMALL_BYTES: Final = 2048
"""Of values that are converted, whatever their types, in no time worth naming."""


async def settled(result: MaybeAwaitable[T]) -> T:
    """Return what a method answered, at once or later."""
    return await result if isinstance(result, Awaitable) else result


TransactionStatus: TypeAlias = Literal["I", "T", "E"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDescription:
    """One column of RowDescription. ``format`` 0 text, 1 binary."""

    name: str
    type_oid: int
    type_size: int
    typmod: int = -1
    table_oid: int = 0
    attnum: int = 0
    format: int = 0


class Fields(tuple[FieldDescription, ...]):
    """The columns of results that come again and again; ``encoded``: what RowDescription says of them in
    UTF-8, once that was asked for.
    """

    encoded: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementDescription:
    """What Describe(statement) answers; ``fields`` None is NoData."""

    param_oids: tuple[int, ...]
    fields: tuple[FieldDescription, ...] | None


class Encryption(NamedTuple):
    """How a connection is encrypted: protocol and cipher as OpenSSL names them, ``bits`` of its secret."""

    version: str
    cipher: str
    bits: int


class Responder(Protocol):
    """How a backend answers during ``query`` and ``execute``. Implemented by the connection.

    Nothing is written to the socket until the connection flushes; ``drain`` suspends while more than the
    output limit is buffered (the back-pressure that reaches executors).
    """

    @property
    def sync_follows(self) -> bool:
        """During ``execute``: whether Sync is known to come next, so that nothing joins the transaction.

        False says nothing: the next message may not have arrived yet.
        """

    @property
    def paused(self) -> bool:
        """Whether more is buffered than the output limit: the client does not read as fast as it is sent to."""

    @property
    def lost(self) -> bool:
        """Whether the client has gone: what is sent is discarded."""

    rests: bool
    """Whether what is sent from now on rests on what only the server knows that leads (``Standing``): it is
    kept back while that is not sure. True unless the backend says otherwise."""

    def confirmed(self) -> None:
        """This server has led until now, so that all that is queued holds, and so does the end of the
        statement that runs.
        """

    def row_description(self, fields: Sequence[FieldDescription]) -> None:
        """Queue RowDescription (simple protocol only; the extended protocol sends it on Describe). DataError 22P05."""

    def data_rows(self, encoded: bytes | bytearray | memoryview, count: int) -> None:
        """Queue ``count`` complete, already framed DataRow messages (see pgwire.codecs.rows).

        ``encoded`` is not copied: the caller must not change it afterwards.
        """

    def function_result(self, value: bytes | memoryview | None) -> None:
        """Queue FunctionCallResponse; None is NULL."""

    def command_complete(self, tag: str) -> None:
        """Queue CommandComplete, e.g. ``INSERT 0 1``."""

    def empty_query(self) -> None:
        """Queue EmptyQueryResponse."""

    def portal_suspended(self) -> None:
        """Queue PortalSuspended."""

    def notice(self, report: ErrorReport) -> None:
        """Queue NoticeResponse. Raises DataError 22P05 where the client's encoding lacks a character of it."""

    def parameter_status(self, name: str, value: str) -> None:
        """Queue ParameterStatus: it goes out just before ReadyForQuery, with the last value given."""

    def client_encoding(self, name: str) -> None:
        """Read and write texts in this encoding (a canonical name of ``pgwire.codecs.text.encodings``) from now on.

        That is for the messages. Rows and COPY data, whose values the backend encodes, are as ``CodecSettings`` say.
        Parameters of Bind arrive as the client sent them.
        """

    def tcp_options(self) -> Mapping[str, int]:
        """Return the options of the client's socket (``pgwire.tcp``); none where it is none of TCP."""

    def encryption(self) -> Encryption | None:
        """Return how the connection is encrypted, None if it is not."""

    def unsent(self) -> int:
        """Return how many bytes wait for the client to take them."""

    def set_tcp_option(self, name: str, value: int) -> None:
        """Set one; nothing happens where there is no TCP. Raises BackendError 22023."""

    def notification(self, pid: int, channel: str, payload: str) -> None:
        """Queue NotificationResponse (LISTEN). PostgreSQL sends it outside transaction blocks only."""

    def error(self, report: ErrorReport) -> None:
        """Queue ErrorResponse. ``query`` uses it itself; other methods raise BackendError instead."""

    def copy_out(self, format: int, column_formats: Sequence[int]) -> None:
        """Queue CopyOutResponse."""

    def copy_data(self, data: bytes | bytearray | memoryview) -> None:
        """Queue one CopyData message (copied)."""

    def copy_rows(self, framed: bytes | bytearray | memoryview) -> None:
        """Queue CopyData messages that are framed already, one per row (see pgwire.codecs.copy.writing)."""

    def copy_done(self) -> None:
        """Queue CopyDone."""

    def copy_in(self, format: int, column_formats: Sequence[int]) -> AsyncIterator[bytes]:
        """Queue CopyInResponse, flush, and return the client's data chunks until CopyDone.

        CopyFail raises BackendError 57014 with PostgreSQL's wording; so does a protocol violation (08P01,
        FATAL); a client that disconnects raises ConnectionError. Chunks need not end at row ends. A backend
        that fails may stop iterating; the rest of the data is skipped.
        """

    async def long_message(self, kind: int, pieces: Iterator[bytes | memoryview]) -> None:
        """Queue one framed DataRow (68) or CopyData (100) that comes in pieces, and wait for the client between them.

        Empty pieces are chances for others to go on. Whatever interrupts the wait is raised at once; a
        message whose first bytes are queued is completed all the same, as the client takes it, and all that
        is sent later follows it. Nothing else is sent in the middle of it.
        """

    def when_complete(self, then: Callable[[], None]) -> None:
        """Call ``then`` once nothing is left to be sent of a message that was interrupted, at once if nothing is."""

    async def drain(self) -> None:
        """Suspend until the buffered output is below the limit; raises ConnectionError if the peer left."""


class Backend(Protocol):
    """One connection's database session."""

    def parse(self, name: str, sql: str, param_oids: Sequence[int]) -> MaybeAwaitable[None]:
        """Create prepared statement ``name`` ("" = unnamed); 42P05 if a named one exists."""

    def bind(
        self,
        portal: str,
        statement: str,
        param_formats: Sequence[int],
        params: Sequence[bytes | None],
        result_formats: Sequence[int],
        small: bool = False,
    ) -> MaybeAwaitable[None]:
        """Create a portal; 26000 unknown statement, 42P03 named portal exists, 08P01 wrong counts.

        ``small``: of a message of at most ``SMALL_BYTES``.
        """

    def describe_statement(self, name: str) -> MaybeAwaitable[StatementDescription]:
        """Describe a statement; never executes anything."""

    def describe_portal(self, name: str) -> MaybeAwaitable[tuple[FieldDescription, ...] | None]:
        """Describe a portal with its result formats; 34000 if unknown."""

    def execute(self, portal: str, max_rows: int, out: Responder) -> MaybeAwaitable[None]:
        """Run or continue a portal. ``max_rows`` 0 = all. Ends with exactly one of command_complete,
        empty_query or portal_suspended, or raises.
        """

    def close_statement(self, name: str) -> MaybeAwaitable[None]:
        """Close a prepared statement; unknown names are fine."""

    def close_portal(self, name: str) -> MaybeAwaitable[None]:
        """Close a portal; unknown names are fine."""

    def sync(self) -> MaybeAwaitable[None] | asyncio.Future[Any]:
        """Sync arrived: commit the implicit transaction (or roll it back after a failure).

        May raise: a failed commit is reported before ReadyForQuery. Where a commit is all that is left to wait for,
        it may return the commit's ``asyncio.Future``; no task is made then, and ``synced`` ends the work.
        """

    def synced(self, outcome: asyncio.Future[Any]) -> None:
        """The future that ``sync`` or ``query`` returned is done, with a result or an exception; raises as
        ``sync`` does.
        """

    def failed(self) -> MaybeAwaitable[None]:
        """An error was sent in the extended protocol; what follows is skipped until Sync.

        Also called, with ``sync`` right behind it, when a simple message failed outside ``query``'s own error
        handling: malformed Query, FunctionCall, or an exception out of ``query``.
        """

    def query(self, sql: str, out: Responder) -> MaybeAwaitable[None] | asyncio.Future[Any]:
        """Run a simple Query: all its statements, stopping at the first error (sent through out.error).

        Where a commit is all that is left to wait for, it may return the commit's future, as ``sync`` does.
        """

    def long_query(self, text: Awaitable[str], out: Responder) -> MaybeAwaitable[None]:
        """As ``query``, of a text that has arrived and is still to be read: a cancel or time-out ends that,
        too, and counts from now on.

        ``text`` raises RemoteProtocolError and DataError, which are raised on; so it is with the other
        ``long_`` messages.
        """

    def long_parse(self, message: Awaitable[ParseFields]) -> MaybeAwaitable[None]:
        """As ``parse``, of a message that is still to be read."""

    def long_bind(self, message: Awaitable[BindFields]) -> MaybeAwaitable[None]:
        """As ``bind``, of a message that is still to be read."""

    def long_call(self, message: Awaitable[CallFields], out: Responder) -> MaybeAwaitable[None]:
        """As ``call_function``, of a message that is still to be read."""

    def call_function(
        self,
        oid: int,
        formats: Sequence[int],
        args: Sequence[bytes | None],
        result_format: int,
        out: Responder,
    ) -> MaybeAwaitable[None]:
        """Run a function by its oid (FunctionCall, the fast path) and answer with ``out.function_result``;
        raises BackendError.

        ``formats``: of the arguments: none, one for all, or one each. Outside a block it is a transaction by
        itself, committed here.
        """

    def status(self) -> TransactionStatus:
        """Return the ReadyForQuery byte."""

    @property
    def wrote(self) -> bool:
        """Whether the running transaction, or the last one if none runs, is one that writes (see
        ``pgwire.session.turns``).
        """

    def cancel(self, *, ends: bool = False) -> None:
        """A CancelRequest with this connection's key arrived; may be called at any time. ``ends``: the
        connection is to end, too.
        """

    def unmet(self) -> ErrorReport | None:
        """Return what answers the next message of a batch if the last cancel has met nothing: what ran had
        ended, or could not be interrupted.

        Asked between two messages, once for a cancel.
        """

    def close(self) -> MaybeAwaitable[None]:
        """The connection ended (Terminate, EOF or a fatal error): release everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authentication:
    """What the database wants of a user: trust, cleartext, or SCRAM with this verifier.

    ``verifier`` None with method scram means: unknown user or no password; the exchange is played to its
    end against a mock verifier and then fails with 28P01, so that names cannot be probed.
    """

    method: Literal["trust", "scram-sha-256"]
    verifier: str | None = None


class Standing(Protocol):
    """Whether a server still leads, where another one may take its place: what it knows may be out of date then."""

    def valid(self) -> bool:
        """Tell whether it is sure to lead; costs next to nothing."""

    async def wait_valid(self) -> None:
        """Return once it is sure. Raises BackendError (FATAL) when it never will be."""


class Database(Protocol):
    """What the server asks when a client connects."""

    @property
    def standing(self) -> Standing | None:
        """What answers rest on; None: no other server can lead."""

    def authentication(
        self, user: str, database: str, peer: str, tls: bool
    ) -> MaybeAwaitable[Authentication]:
        """Choose the method. May raise BackendError (FATAL 28000, 53300 too many connections ...).

        ``peer`` is ``host:port``, ``[host]:port`` for IPv6, ``local`` for a Unix socket.
        """

    def connect(
        self, parameters: Mapping[str, str], pid: int, peer: str, out: Responder
    ) -> MaybeAwaitable[tuple[Backend, Mapping[str, str]]]:
        """Open a session after authentication; returns the backend and the ParameterStatus values.

        ``parameters`` are the start-up packet's (user, database, application_name, settings ...); database
        defaults to the user; the settings of ``options`` (-c name=value) have been merged in, those given
        directly win, as in PostgreSQL, and ``options`` itself is gone. Names are as the client spelt them.
        Raises BackendError FATAL: 3D000 unknown database, 22023 bad setting ...
        ``out`` is this connection's responder for messages outside statements (notices).
        """
