"""One client's session: drives a ``Backend`` by the messages of a ``Connection``.

    data_received ──► pump ──► handler ──► backend method ──► result now          ──► reply, next message
                                                         └──► awaitable: one task ──► reply, pump goes on

While every method answers at once, a whole batch (Bind, Describe, Execute, Sync) is handled inside
``data_received`` and leaves in one write: no task, no message objects (``bench/wire_loop.py``). The first
awaitable starts a task that carries on from there; until it ends, arriving bytes only gather, up to
``input_limit_bytes``, then reading pauses. Beside connections that read, those that write take turns (``pgwire.turns``). A task also takes over after ``BATCH_MESSAGES`` messages, so that
one pipelining client cannot hold the loop.

Promises: one ReadyForQuery per Query and Sync; after an error in the extended protocol everything is skipped
to Sync; calls into the backend never overlap; ``close`` is called exactly once per opened backend; whatever
goes wrong in one session stays there.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pgwire import decode
from pgwire import messages as m
from pgwire.auth.exchange import AuthenticationFailed, Exchange
from pgwire.auth.scram import ScramExchange, mock_verifier, parse_verifier
from pgwire.auth.trust import TrustExchange
from pgwire.backend import Authentication, Backend, FieldDescription, StatementDescription
from pgwire.connection import NO_FRAME, Connection
from pgwire.direct import Direct, read_ahead
from pgwire.encode import (
    BIND_COMPLETE,
    CLOSE_COMPLETE,
    NO_DATA,
    PARSE_COMPLETE,
    cached_row_description,
    parameter_description,
    parameter_status,
)
from pgwire.errors import BackendError, ErrorReport, LocalProtocolError, RemoteProtocolError
from pgwire.responder import WireResponder
from pgwire.startup import protocol_options, session_parameters
from pgwire.state import State

if TYPE_CHECKING:
    from pgwire.server import Server

LOG: Final = logging.getLogger("pgwire")

TLS_HANDSHAKE: Final = 0x16  # the first byte of a ClientHello; no start-up packet is that long
NEWEST_MINOR: Final = 2  # of protocol 3, in PostgreSQL since version 18: longer cancel keys
BATCH_MESSAGES: Final = 256  # handled in a row before other sessions get a turn
CANCEL_GRACE_S: Final = 5.0  # what a cancelled statement gets to end by itself
CLOSE_GRACE_S: Final = 10.0  # what a peer gets to take the last bytes

# What a reader's message may begin with for it to be handled in the middle of others' work: Bind, Parse, Query.
READS_AHEAD: Final = frozenset(b"BPQ")
NOT_WATCHED: Final = -1
NEVER_WATCHED: Final = -2  # TLS, or no socket

Step = Coroutine[Any, Any, None] | asyncio.Future[Any]
"""What is left of a message: a coroutine for a task to run, or a commit's outcome to be told of."""

INTERNAL_ERROR: Final = ErrorReport(
    severity="ERROR", sqlstate="XX000", message="internal error", hint="The server log has the details."
)
ADMIN_SHUTDOWN: Final = ErrorReport(
    severity="FATAL", sqlstate="57P01", message="terminating connection due to administrator command"
)


def _fatal(sqlstate: str, message: str) -> ErrorReport:
    return ErrorReport(severity="FATAL", sqlstate=sqlstate, message=message)


class Session:
    """The server's side of one socket.

    Attributes:
        pid: the number CancelRequest and pg_stat_activity use; 0 before authentication.
        key: its cancel key, unguessable: 4 bytes, 32 for clients that speak protocol 3.2.
        minor: of the protocol spoken: 3.0 to 3.2.
        peer: ``host:port`` of the client, or ``local``.
        parameters: what the client asked for when it connected, as the database saw it.
    """

    __slots__ = (
        "__weakref__",
        "_abort_timer",
        "_auth_timer",
        "_exchange",
        "_farewell",
        "_farewell_waits",
        "_fd",
        "_flush_wanted",
        "_grace_timer",
        "_loop",
        "_opened",
        "_pumping",
        "_put_off",
        "_reading_paused",
        "_server",
        "_task",
        "backend",
        "connection",
        "key",
        "minor",
        "parameters",
        "peer",
        "pid",
        "responder",
        "tls",
        "transport",
    )

    backend: Backend

    def __init__(self, server: Server, transport: asyncio.Transport, peer: str) -> None:
        """Start the protocol on a fresh socket; the authentication clock is running."""
        config = server.config
        self._server = server
        self._loop = asyncio.get_running_loop()
        self.transport = transport
        self.peer = peer
        self.pid = 0
        self.key = b""
        self.minor = 0
        self.tls = False
        self.parameters: Mapping[str, str] = {}
        self.connection = Connection(max_message_bytes=config.max_message_bytes)
        self.responder = WireResponder(
            self.connection,
            transport,
            on_idle_output=self._flush_when_idle,
            on_input_taken=self._resume_reading,
        )
        self._exchange: Exchange | None = None
        self._opened = False
        self._pumping = False
        self._put_off = False  # what has arrived waits for its turn
        self._fd = NOT_WATCHED  # the socket, while ``Turns`` looks at it
        self._task: asyncio.Future[Any] | None = None  # what runs: a task, or a commit that is waited for
        self._flush_wanted = False
        self._reading_paused = False
        self._farewell: ErrorReport | None = None
        self._farewell_waits = False
        self._grace_timer: asyncio.TimerHandle | None = None  # until the running task is cancelled
        self._abort_timer: asyncio.TimerHandle | None = None  # until a closing socket is cut
        self._auth_timer: asyncio.TimerHandle | None = self._loop.call_later(
            config.authentication_timeout_s, self._authentication_timed_out
        )

    # ------------------------------------------------------------------ what the socket reports

    def data_received(self, data: bytes) -> None:
        """Handle arriving bytes, at once if nothing is under way."""
        connection = self.connection
        if connection.state is State.CLOSED:
            return
        if not self._opened and data[0] == TLS_HANDSHAKE and connection.untouched and not self.tls:
            self._direct_tls(data)
            return
        connection.receive_data(data)
        if self._task is None and not self._put_off:
            if self._opened and self._gives_way():
                return
            step = self._pump()
            if step is not None:
                self._start(step)
            return
        self.responder.input_arrived()
        if connection.buffered > self._server.config.input_limit_bytes and not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def _gives_way(self) -> bool:
        """Whether what has arrived was put off, because this connection writes and others read."""
        turns = self._server.turns
        if not self.backend.wrote:
            turns.has_read()
            if self._fd == NOT_WATCHED:
                self._watch()
            return False
        if self._fd >= 0:
            self._unwatch()
        if not turns.contended:
            return False
        self._put_off = True
        turns.put_off(self._take_turn)
        return True

    def _watch(self) -> None:
        """Have messages handled in the middle of writers' work: this connection reads."""
        sock = None if self.tls else self.transport.get_extra_info("socket")
        if sock is None:
            self._fd = NEVER_WATCHED
            return
        self._fd = sock.fileno()
        self.responder.transport = Direct(self.transport, self._fd)
        self._server.turns.watch(self._fd, self._read_ahead)

    def _unwatch(self) -> None:
        """This connection writes now, or ends."""
        self._server.turns.unwatch(self._fd)
        self.responder.transport = self.transport
        self._fd = NOT_WATCHED

    def _read_ahead(self) -> None:
        """Handle what has arrived, in the middle of a writer's turn; leave it to the transport if anything is under way."""
        connection = self.connection
        if self._task is not None or self._put_off or self._reading_paused or connection.buffered:
            return
        data = read_ahead(self._fd)
        if not data:
            return
        if data[0] in READS_AHEAD:
            self.data_received(data)
        else:
            connection.receive_data(data)
            self._put_off = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Handle what has arrived while others went first."""
        self._put_off = False
        if self._task is None and self.connection.state is not State.CLOSED:
            step = self._pump()
            if step is not None:
                self._start(step)

    def connection_lost(self) -> None:
        """The socket is closed: stop what runs, then release the backend."""
        if self._fd >= 0:
            self._unwatch()
        self.connection.close()
        self.responder.disconnected()
        self._stop_timers()
        if self._task is None:
            self._close_backend()
        else:
            self._cancel_backend()
            self._grace_timer = self._loop.call_later(CANCEL_GRACE_S, self._task.cancel)

    def set_writing_paused(self, paused: bool) -> None:
        """The transport's buffer crossed its limit."""
        self.responder.set_paused(paused)

    # ------------------------------------------------------------------ what the server asks

    @property
    def busy(self) -> bool:
        """Whether a message is being handled right now, or waits for its turn."""
        return self._task is not None or self._put_off

    @property
    def idle(self) -> bool:
        """Whether the client may be sent away without losing anything: no statement, no transaction."""
        if self._task is not None or self._put_off:
            return False
        if not self._opened:
            return True
        return self.connection.state is State.READY and self.backend.status() == "I"

    def cancel(self) -> None:
        """Cancel the running statement, if any."""
        self._cancel_backend()

    def terminate(self, report: ErrorReport = ADMIN_SHUTDOWN, *, when_idle: bool = False) -> None:
        """End the session with ``report`` (FATAL): now if nothing runs, else when what runs has been cancelled.

        ``when_idle`` cancels nothing: the session ends once it is outside a statement and a transaction.
        """
        if self._farewell is not None and when_idle:
            return
        self._farewell = report
        self._farewell_waits = when_idle
        if self._task is None:
            self._maybe_leave()
        elif not when_idle:
            self.connection.farewell = report
            self._cancel_backend()
            if self._grace_timer is None:
                self._grace_timer = self._loop.call_later(CANCEL_GRACE_S, self._task.cancel)

    # ------------------------------------------------------------------ the pump

    def _pump(self) -> Step | None:
        """Handle messages until there are none, or one has to wait: then return what is left of it."""
        connection = self.connection
        next_frame = connection.next_frame
        responder = self.responder
        budget = BATCH_MESSAGES
        step: Step | None = None
        self._pumping = True
        while True:
            try:
                kind = next_frame()
                if kind == NO_FRAME:
                    break
                step = _HANDLERS[kind](self, connection.data, connection.start, connection.stop)
            except Exception as error:
                step = self._failure(error)
            if step is not None:
                break
            budget -= 1
            if budget == 0 or responder.paused:
                step = self._take_turns()
                break
        self._pumping = False
        if self._flush_wanted:
            self._flush_wanted = False
            responder.flush()
        if step is None:
            if self._reading_paused and connection.state is not State.CLOSED:
                # What is buffered, however much, is the beginning of a message: only its rest brings it on.
                self._reading_paused = False
                self.transport.resume_reading()
            if self._farewell is not None:
                self._maybe_leave()
        return step

    def _start(self, step: Step) -> None:
        """Let ``step`` go on by itself; what it waits for brings the session back."""
        if isinstance(step, asyncio.Future):
            self._task = step
            step.add_done_callback(self._synced)
        else:
            self._task = self._loop.create_task(self._run(step))

    def _synced(self, outcome: asyncio.Future[Any]) -> None:
        """The commit of a Sync or a Query is decided: go on, now or in its turn."""
        turns = self._server.turns
        if turns.contended:
            turns.put_off(partial(self._end_sync, outcome))
        else:
            self._end_sync(outcome)

    def _end_sync(self, outcome: asyncio.Future[Any]) -> None:
        """Answer the Sync or Query whose commit is decided, and go on pumping."""
        self._task = None
        step: Step | None = None
        if outcome.cancelled():
            self._abandon()
        else:
            try:
                self.backend.synced(outcome)
                self._ready()
            except Exception as error:
                step = self._failure(error)
            if step is None:
                step = self._pump()
        if step is not None:
            self._start(step)
        else:
            self._rest()

    async def _run(self, step: Step | None) -> None:
        """Finish a message that has to wait, then go on pumping; ends when there is nothing to do."""
        try:
            while step is not None and not isinstance(step, asyncio.Future):
                try:
                    await step
                    step = None
                except Exception as error:
                    step = self._failure(error)
                if step is None:
                    step = self._pump()
        except asyncio.CancelledError:
            self._abandon()
            step = None
        finally:
            self._task = None
            if isinstance(step, asyncio.Future):
                self._start(step)
            else:
                self._rest()

    def _rest(self) -> None:
        """Nothing is under way any more: do what had to wait for that."""
        if self._grace_timer is not None:
            self._grace_timer.cancel()
            self._grace_timer = None
        if self.responder.lost:
            self._close_backend()
        elif self._farewell is not None:
            self._maybe_leave()

    async def _take_turns(self) -> None:
        """Let other sessions run, and wait until this one's output has room."""
        await asyncio.sleep(0)
        if self.responder.paused:
            await self.responder.drain()

    def _failure(self, error: Exception) -> Step | None:
        """Answer for a handler that raised; return what is left to do."""
        if isinstance(error, BackendError):
            report = error.report
        elif isinstance(error, RemoteProtocolError):
            severity = "FATAL" if error.fatal else "ERROR"
            report = ErrorReport(severity=severity, sqlstate=error.sqlstate, message=error.message)
        elif isinstance(error, ConnectionError) and (
            self.responder.lost or self.connection.state is State.CLOSED
        ):
            return None
        else:
            LOG.error("unexpected error in session %d", self.pid, exc_info=error)
            report = INTERNAL_ERROR
        report = self.connection.outcome(report)
        state = self.connection.state
        self._flush_wanted = True
        if state is State.CLOSED or report.severity in ("FATAL", "PANIC"):
            self._leave(report)
            return None
        if state in (State.STARTUP, State.AUTH, State.READY, State.SKIP_UNTIL_SYNC):
            # Before the session is open every error ends it; in the other two only a bug can get here.
            self._leave(dataclasses.replace(report, severity="FATAL"))
            return None
        self.connection.error(report)
        if self.connection.state is State.SYNCING:
            self._ready()
            return None
        return self._after_failure()

    async def _after_failure(self) -> None:
        """Tell the backend about an error it did not report itself; a message that ends a batch also syncs."""
        ends_batch = self.connection.state in (State.SIMPLE, State.SYNCING)
        try:
            await _settled(self.backend.failed())
            if ends_batch:
                try:
                    pending = self.backend.sync()
                    if isinstance(pending, asyncio.Future):
                        await asyncio.wait([pending])
                        self.backend.synced(pending)
                    else:
                        await _settled(pending)
                except BackendError as error:
                    self.connection.error(error.report)
        except Exception as error:
            LOG.error("session %d cannot roll back", self.pid, exc_info=error)
            self._leave(dataclasses.replace(INTERNAL_ERROR, severity="FATAL"))
            return
        if ends_batch:
            self._ready()

    def _ready(self) -> None:
        """Queue ReadyForQuery, and flush soon."""
        connection = self.connection
        self._flush_wanted = True
        if connection.state is State.CLOSED:
            self._leave(None)
            return
        if self.responder.statuses:
            self.responder.report_statuses()
        connection.ready(self.backend.status())

    # ------------------------------------------------------------------ messages of an open session

    def _on_query(self, data: bytes, start: int, stop: int) -> Step | None:
        sql = decode.query(data, start, stop)
        pending = self.backend.query(sql, self.responder)
        if pending is not None:
            return pending if isinstance(pending, asyncio.Future) else self._await_ready(pending)
        self._ready()
        return None

    def _on_function_call(self, data: bytes, start: int, stop: int) -> Step | None:
        raise BackendError(
            ErrorReport(
                severity="ERROR", sqlstate="0A000", message="the fast-path function call is not supported"
            )
        )

    def _on_parse(self, data: bytes, start: int, stop: int) -> Step | None:
        name, sql, param_oids = decode.parse(data, start, stop)
        pending = self.backend.parse(name, sql, param_oids)
        if pending is not None:
            return self._await_reply(pending, PARSE_COMPLETE)
        self.connection.out.append(PARSE_COMPLETE)
        return None

    def _on_bind(self, data: bytes, start: int, stop: int) -> Step | None:
        portal, statement, param_formats, params, result_formats = decode.bind(data, start, stop)
        pending = self.backend.bind(portal, statement, param_formats, params, result_formats)
        if pending is not None:
            return self._await_reply(pending, BIND_COMPLETE)
        self.connection.out.append(BIND_COMPLETE)
        return None

    def _on_describe(self, data: bytes, start: int, stop: int) -> Step | None:
        subtype, name = decode.named(data, start, stop, "DESCRIBE")
        if subtype == 80:
            portal = self.backend.describe_portal(name)
            if type(portal) is tuple:
                self.connection.out.append(cached_row_description(portal))
                return None
            if portal is None:
                self.connection.out.append(NO_DATA)
                return None
            return self._await_portal(cast("Awaitable[tuple[FieldDescription, ...] | None]", portal))
        statement = self.backend.describe_statement(name)
        if isinstance(statement, StatementDescription):
            self._describe_statement(statement)
            return None
        return self._await_statement(statement)

    def _describe_portal(self, fields: tuple[FieldDescription, ...] | None) -> None:
        self.connection.out.append(NO_DATA if fields is None else cached_row_description(fields))

    def _describe_statement(self, statement: StatementDescription) -> None:
        self.connection.out.append(parameter_description(statement.param_oids))
        self._describe_portal(statement.fields)

    def _on_execute(self, data: bytes, start: int, stop: int) -> Step | None:
        portal, max_rows = decode.execute(data, start, stop)
        responder = self.responder
        responder.ended = False
        pending = self.backend.execute(portal, max_rows, responder)
        if pending is not None:
            return self._await_executed(pending)
        if not responder.ended:
            raise LocalProtocolError("execute returned without an end")
        return None

    def _on_close(self, data: bytes, start: int, stop: int) -> Step | None:
        subtype, name = decode.named(data, start, stop, "CLOSE")
        backend = self.backend
        pending = backend.close_portal(name) if subtype == 80 else backend.close_statement(name)
        if pending is not None:
            return self._await_reply(pending, CLOSE_COMPLETE)
        self.connection.out.append(CLOSE_COMPLETE)
        return None

    def _on_flush(self, data: bytes, start: int, stop: int) -> Step | None:
        decode.nothing(data, start, stop)
        self._flush_wanted = True
        return None

    def _on_sync(self, data: bytes, start: int, stop: int) -> Step | None:
        if start != stop:  # it still ends the batch, which fails
            self.connection.error(
                ErrorReport(severity="ERROR", sqlstate="08P01", message="invalid message format")
            )
            return self._after_failure()
        pending = self.backend.sync()
        if pending is not None:
            return pending if isinstance(pending, asyncio.Future) else self._await_ready(pending)
        self._ready()
        return None

    def _on_terminate(self, data: bytes, start: int, stop: int) -> Step | None:
        self._leave(None)
        return None

    async def _await_ready(self, pending: Awaitable[None]) -> None:
        await pending
        self._ready()

    async def _await_reply(self, pending: Awaitable[None], reply: bytes) -> None:
        await pending
        self.connection.out.append(reply)

    async def _await_executed(self, pending: Awaitable[None]) -> None:
        await pending
        if not self.responder.ended:
            raise LocalProtocolError("execute returned without an end")

    async def _await_portal(self, pending: Awaitable[tuple[FieldDescription, ...] | None]) -> None:
        self._describe_portal(await pending)

    async def _await_statement(self, pending: Awaitable[StatementDescription]) -> None:
        self._describe_statement(await pending)

    # ------------------------------------------------------------------ opening a session

    def _on_ssl_request(self, data: bytes, start: int, stop: int) -> Step | None:
        if self._server.config.tls is None or self.tls:
            self._reply_encryption(False)
            return None
        # Nothing may be read between the S and the handshake: the client's hello is not ours to decode.
        self.transport.pause_reading()
        self._reply_encryption(True)
        return self._start_tls()

    def _on_gssenc_request(self, data: bytes, start: int, stop: int) -> Step | None:
        self._reply_encryption(False)
        return None

    def _reply_encryption(self, accepted: bool) -> None:
        self.connection.send(m.EncryptionReply(accepted))
        self.responder.flush()

    def _direct_tls(self, hello: bytes) -> None:
        """The client begins with its handshake, without an SSLRequest (sslnegotiation=direct)."""
        if self._server.config.tls is None or self._task is not None:
            self._leave(None)  # it could not read an answer
            return
        self.transport.pause_reading()
        self._start(self._start_tls(hello))

    async def _start_tls(self, hello: bytes = b"") -> None:
        try:
            transport = await self._server.start_tls(self.transport, hello)
        except OSError as error:  # ssl.SSLError is one: there is no way left to tell the client
            LOG.info("TLS handshake with %s failed: %s", self.peer, error)
            self.connection.close()
            self.transport.abort()
            return
        self.tls = True
        self.transport = transport
        self.responder.transport = transport

    def _on_cancel_request(self, data: bytes, start: int, stop: int) -> Step | None:
        request = self.connection.startup_message
        assert isinstance(request, m.CancelRequest)
        self._server.cancel(request.pid, request.key)
        self._leave(None)
        return None

    def _on_startup(self, data: bytes, start: int, stop: int) -> Step | None:
        message = self.connection.startup_message
        assert isinstance(message, m.StartupMessage)
        return self._authenticate(message)

    async def _authenticate(self, message: m.StartupMessage) -> None:
        self._flush_wanted = True
        unknown = protocol_options(message.parameters)
        self.minor = min(message.minor, NEWEST_MINOR)
        if message.minor > NEWEST_MINOR or unknown:
            self.connection.send(m.NegotiateProtocolVersion(3 << 16 | self.minor, unknown))
        self.parameters = session_parameters(message.parameters)
        self._server.admit(self)
        wanted = await _settled(
            self._server.database.authentication(
                self.parameters["user"], self.parameters["database"], self.peer, self.tls
            )
        )
        if self.connection.state is State.CLOSED:
            return  # it has left before this task's turn came
        self._exchange = self._make_exchange(wanted)
        for request in self._exchange.start():
            self.connection.send(request)
        if self._exchange.done:
            await self._open()

    def _make_exchange(self, wanted: Authentication) -> Exchange:
        if wanted.method == "trust":
            return TrustExchange()
        verifier = parse_verifier(wanted.verifier) if wanted.verifier is not None else None
        mock = mock_verifier(self.parameters["user"], self._server.mock_secret)
        end_point = self._server.config.tls_end_point if self.tls else b""
        return ScramExchange(verifier, mock, self._server.random_bytes, end_point)

    def _on_password(self, data: bytes, start: int, stop: int) -> Step | None:
        exchange = self._exchange
        if exchange is None or exchange.done:
            raise RemoteProtocolError("unexpected password message", fatal=True)
        try:
            answers = exchange.step(data[start:stop])
        except AuthenticationFailed:
            user = self.parameters["user"]
            raise BackendError(_fatal("28P01", f'password authentication failed for user "{user}"')) from None
        for answer in answers:
            self.connection.send(answer)
        self._flush_wanted = True
        return self._open() if exchange.done else None

    async def _open(self) -> None:
        """Authentication succeeded: open the database session and greet."""
        connection = self.connection
        connection.send(m.AuthenticationOk())
        self._server.register(self)
        backend, settings = await _settled(
            self._server.database.connect(self.parameters, self.pid, self.peer, self.responder)
        )
        self.backend = backend
        self._opened = True
        if connection.state is State.CLOSED:  # left, or timed out, while the database was connecting
            if self.responder.lost:
                return  # _run closes the backend
            self._leave(None)
            return
        for name, value in settings.items():
            connection.advance(83)
            connection.out.append(parameter_status(name, value))
            self.responder.reported[name] = value
        connection.send(m.BackendKeyData(self.pid, self.key))
        if self._auth_timer is not None:
            self._auth_timer.cancel()
            self._auth_timer = None
        self._ready()

    def _authentication_timed_out(self) -> None:
        self._auth_timer = None
        if self.connection.state is State.STARTUP:
            self._leave(None)  # who has not introduced itself may not even speak this protocol
        else:
            self._leave(_fatal("57014", "canceling authentication due to timeout"))
        if self._task is not None:
            self._task.cancel()

    # ------------------------------------------------------------------ ending a session

    def _maybe_leave(self) -> None:
        """Say farewell if it is time."""
        if self._farewell is not None and (not self._farewell_waits or self.idle):
            self._leave(self._farewell)

    def _leave(self, report: ErrorReport | None) -> None:
        """Send ``report`` if there is one, and close the socket once the peer has taken it."""
        self._farewell = None
        if report is not None and not self.connection.parted:
            self.connection.error(report)
        self.responder.flush()
        self.connection.close()
        self._stop_timers()
        if not self.responder.lost:
            self.transport.close()
            self._abort_timer = self._loop.call_later(CLOSE_GRACE_S, self.transport.abort)

    def _abandon(self) -> None:
        """The task was cancelled: its statement did not end in time, or the loop is going down."""
        self._leave(self._farewell)

    def _cancel_backend(self) -> None:
        if self._opened:
            try:
                self.backend.cancel()
            except Exception as error:
                LOG.error("session %d: cancel failed", self.pid, exc_info=error)

    def _close_backend(self) -> None:
        """Release the backend, once; runs after the socket is closed and nothing is under way."""
        self._server.forget(self)
        self.responder.let_go()
        if not self._opened:
            return
        self._opened = False
        try:
            pending = self.backend.close()
        except Exception as error:
            LOG.error("session %d: close failed", self.pid, exc_info=error)
            return
        if pending is not None:
            self._server.finish_later(self._finish_close(pending))

    async def _finish_close(self, pending: Awaitable[None]) -> None:
        try:
            await pending
        except Exception as error:
            LOG.error("session %d: close failed", self.pid, exc_info=error)

    def _stop_timers(self) -> None:
        for timer in (self._auth_timer, self._abort_timer):
            if timer is not None:
                timer.cancel()
        self._auth_timer = self._abort_timer = None

    # ------------------------------------------------------------------ odds and ends of flow control

    def _resume_reading(self) -> None:
        if not self._reading_paused or self.connection.state is State.CLOSED:
            return
        if self.connection.buffered <= self._server.config.input_limit_bytes:
            self._reading_paused = False
            self.transport.resume_reading()

    def _flush_when_idle(self) -> None:
        """A remark came between statements: nobody else will flush it."""
        if not self._pumping:
            self._loop.call_soon(self.responder.flush)
        self._flush_wanted = True


async def _settled(result: Any) -> Any:
    """Await ``result`` if it is awaitable."""
    return await result if inspect.isawaitable(result) else result


Handler = Callable[[Session, bytes, int, int], Step | None]

_HANDLERS: Final[dict[int, Handler]] = {
    ord("Q"): Session._on_query,
    ord("F"): Session._on_function_call,
    ord("P"): Session._on_parse,
    ord("B"): Session._on_bind,
    ord("D"): Session._on_describe,
    ord("E"): Session._on_execute,
    ord("C"): Session._on_close,
    ord("H"): Session._on_flush,
    ord("S"): Session._on_sync,
    ord("X"): Session._on_terminate,
    ord("p"): Session._on_password,
    m.SSL_REQUEST: Session._on_ssl_request,
    m.GSSENC_REQUEST: Session._on_gssenc_request,
    m.CANCEL_REQUEST: Session._on_cancel_request,
    m.STARTUP_MESSAGE: Session._on_startup,
}
