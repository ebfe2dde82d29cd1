"""One client's session: drives a ``Backend`` by the messages of a ``Connection``.

    data_received ──► pump ──► handler ──► backend method ──► result now          ──► reply, next message
                                                         └──► awaitable: one task ──► reply, pump goes on

While every method answers at once, a whole batch (Bind, Describe, Execute, Sync) is handled inside
``data_received`` and leaves in one write: no task, no message objects (``bench/wire_loop.py``). The first
awaitable starts a task that carries on from there; until it ends, arriving bytes only gather, up to
``input_limit_bytes``, then reading pauses. Beside connections that read, those that write take turns
(``pgwire.session.turns``). A task also takes over after ``BATCH_MESSAGES`` messages, or a slice of time, so
that one pipelining client cannot hold the loop.

Promises: one ReadyForQuery per Query and Sync; after an error in the extended protocol everything is skipped
to Sync; calls into the backend never overlap; ``close`` is called exactly once per opened backend; whatever
goes wrong in one session stays there.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Coroutine, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Final

from pgwire.auth.exchange import Exchange
from pgwire.backend import Backend, settled
from pgwire.codecs.errors import DataError
from pgwire.connection import DROPPING, KEPT_BYTES, NO_FRAME, Connection
from pgwire.errors import BackendError, ErrorReport, RemoteProtocolError, fatal
from pgwire.give_way import SLICE_S
from pgwire.release import release_error
from pgwire.session import opening, serving
from pgwire.session.direct import Direct, read_ahead
from pgwire.session.ports import Host, Step
from pgwire.session.responder import WireResponder
from pgwire.state import AUTH, CLOSED, EXTENDED, READY, SIMPLE, SKIP_UNTIL_SYNC, STARTUP, SYNCING

LOG: Final = logging.getLogger("pgwire")

TLS_HANDSHAKE: Final = 0x16  # the first byte of a ClientHello; no start-up packet is that long
BATCH_MESSAGES: Final = 256  # handled in a row before other sessions get a turn
LOOKS_AT_CLOCK: Final = 8  # messages between two looks whether that has taken a slice of time already
MOST_LOOKS: Final = BATCH_MESSAGES // LOOKS_AT_CLOCK - 1
MANY_ANSWERS: Final = 1024  # pieces of output that wait for a Sync or a Flush: then they leave without one
CANCEL_GRACE_S: Final = 5.0  # what a cancelled statement gets to end by itself
FIRST_LOOK_S: Final = 0.1  # until a client that sends no more is first looked for
LAST_LOOK_S: Final = 60.0  # between two such looks at most
CLOSE_GRACE_S: Final = 10.0  # what a peer gets to take the last bytes

# What is answered with a cancel that came between two messages, and what is handled before that is decided:
# Sync, and what is not here yet, let it be forgotten.
REFUSED: Final = frozenset(b"PBDEQF")
PASSED_OVER: Final = frozenset(b"CH")

# What a reader's message may begin with for it to be handled in the middle of others' work: Bind, Parse, Query.
READS_AHEAD: Final = frozenset(b"BPQ")
NOT_WATCHED: Final = -1
NEVER_WATCHED: Final = -2  # TLS, or no socket

INTERNAL_ERROR: Final = ErrorReport(
    severity="ERROR", sqlstate="XX000", message="internal error", hint="The server log has the details."
)
OUT_OF_STEP: Final = fatal("08P01", "terminating connection because protocol synchronization was lost")
ADMIN_SHUTDOWN: Final = fatal("57P01", "terminating connection due to administrator command")


class Session:
    """The server's side of one socket.

    Attributes:
        pid: the number CancelRequest and pg_stat_activity use; 0 before authentication. key: its cancel key,
        unguessable: 4 bytes, 32 for clients that speak protocol 3.2. minor: of the protocol spoken: 3.0 to
        3.2. peer: ``host:port`` of the client, or ``local``. parameters: what the client asked for when it
        connected, as the database saw it. opened: the backend is there; before that
        ``pgwire.session.opening`` handles messages, then ``pgwire.session.serving``. exchange: the
        authentication under way, or done. flush_wanted: what is queued leaves when the pump rests.
    """

    __slots__ = (
        "__weakref__",
        "_abort_timer",
        "_auth_timer",
        "_between",
        "_farewell",
        "_farewell_waits",
        "_fd",
        "_grace_timer",
        "_look_timer",
        "_loop",
        "_pumping",
        "_put_off",
        "_reading_paused",
        "_task",
        "_withdrawn",
        "backend",
        "connection",
        "exchange",
        "flush_wanted",
        "key",
        "minor",
        "opened",
        "parameters",
        "peer",
        "pid",
        "responder",
        "server",
        "tls",
        "transport",
    )

    backend: Backend

    def __init__(self, server: Host[Session], transport: asyncio.Transport, peer: str) -> None:
        """Start the protocol on a fresh socket; the authentication clock is running."""
        config = server.config
        self.server = server
        self._loop = asyncio.get_running_loop()
        self.transport = transport
        self.peer = peer
        self.pid = 0
        self.key = b""
        self.minor = 0
        self.tls = False
        self.parameters: Mapping[str, str] = {}
        self.connection = Connection(max_message_bytes=config.max_message_bytes, room=server.room)
        self.responder = WireResponder(
            self.connection,
            transport,
            on_idle_output=self._flush_when_idle,
            on_input_taken=self._resume_reading,
            standing=server.database.standing,
            on_fallen=self._fallen,
        )
        self.exchange: Exchange | None = None
        self.opened = False
        self._pumping = False
        self._put_off = False  # what has arrived waits for its turn
        self._fd = NOT_WATCHED  # the socket, while ``Turns`` looks at it
        self._task: asyncio.Future[Any] | None = None  # what runs: a task, or a commit that is waited for
        self.flush_wanted = False
        self._reading_paused = False
        self._farewell: ErrorReport | None = None
        self._farewell_waits = False
        self._grace_timer: asyncio.TimerHandle | None = None  # until the running task is cancelled
        self._look_timer: asyncio.TimerHandle | None = (
            None  # until it is asked whether a silent client is there
        )
        self._between = False  # others have their turn between two messages
        self._withdrawn = False  # a cancel has come, and may have met nothing
        self._abort_timer: asyncio.TimerHandle | None = None  # until a closing socket is cut
        self._auth_timer: asyncio.TimerHandle | None = self._loop.call_later(
            config.authentication_timeout_s, self._authentication_timed_out
        )

    # ------------------------------------------------------------------ what the socket reports

    def data_received(self, data: bytes) -> None:
        """Handle arriving bytes, at once if nothing is under way."""
        connection = self.connection
        if connection.state is CLOSED:
            return
        if not self.opened and data[0] == TLS_HANDSHAKE and connection.untouched and not self.tls:
            opening.direct_tls(self, data)
            return
        connection.receive_data(data)
        if self._task is None and not self._put_off:
            if self.opened and self._gives_way():
                return
            step = self._pump()
            if step is not None:
                self.start(step)
            return
        self.responder.input_arrived()
        if connection.buffered > self.server.config.input_limit_bytes and not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def _gives_way(self) -> bool:
        """Whether what has arrived was put off, because this connection writes and others read."""
        turns = self.server.turns
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
        self.server.turns.watch(self._fd, self._read_ahead)

    def _unwatch(self) -> None:
        """This connection writes now, or ends."""
        self.server.turns.unwatch(self._fd)
        self.responder.transport = self.transport
        self._fd = NOT_WATCHED

    def _read_ahead(self) -> None:
        """Handle what has arrived, in the middle of a writer's turn; leave it to the transport if anything is
        under way.
        """
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
        if self._task is None and self.connection.state is not CLOSED:
            step = self._withdraw() if self._withdrawn else None
            if step is None:
                step = self._pump()
            if step is not None:
                self.start(step)
            else:
                self._rest()

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
            self._cancel_backend(ends=True)
            self._cancel_later(self._task)

    def input_ended(self) -> bool:
        """The client sends no more. Return whether the socket stays open: what was sent is answered first, to its end.

        That looks the same as a client that has left. So it is told something that changes nothing, ever less
        often: who has left makes the socket fail, and what runs ends.
        """
        if self.tls or not self.opened:
            return False  # TLS has no half-closed connections
        if self._fd >= 0:
            self._unwatch()
        self._fd = NEVER_WATCHED
        if not self.responder.input_over:
            self.responder.end_input()
            if self.busy:
                self._look_for_client(FIRST_LOOK_S)
            elif self.connection.state is READY:
                self.leave(None)
            else:
                return False  # what has not been synced is not answered
        return True

    def _look_for_client(self, wait_s: float) -> None:
        self._look_timer = self._loop.call_later(wait_s, self._look, wait_s)

    def _look(self, waited_s: float) -> None:
        self._look_timer = None
        if self.busy:
            self.responder.say_nothing_new()
            self._look_for_client(min(2 * waited_s, LAST_LOOK_S))

    def set_writing_paused(self, paused: bool) -> None:
        """The transport's buffer crossed its limit."""
        self.responder.set_paused(paused)

    # ------------------------------------------------------------------ what the server asks

    @property
    def busy(self) -> bool:
        """Whether a message is being handled right now, or waits for its turn."""
        return self._task is not None or self._put_off

    @property
    def running(self) -> object:
        """What handles a message right now, one object from its beginning to its end; itself where one waits
        for its turn, None where none does.
        """
        return self._task if self._task is not None else self if self._put_off else None

    @property
    def idle(self) -> bool:
        """Whether the client may be sent away without losing anything: no statement, no transaction."""
        if self._task is not None or self._put_off:
            return False
        if not self.opened:
            return True
        return self.connection.state is READY and self.backend.status() == "I"

    def cancel(self) -> None:
        """Cancel the running statement, if any, and where it has ended or cannot be met what comes next of
        the same batch.

        Short statements are met in no other way: this is called where others have their turn, and there none
        of them runs. Where one batch has ended and the next has arrived it is the one that the cancel meets.
        """
        if self.busy and self.connection.state in (READY, EXTENDED):
            self._withdrawn = True
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
            self._cancel_backend(ends=True)
            self._cancel_later(self._task)

    def _cancel_later(self, task: asyncio.Future[Any]) -> None:
        """Cut short what has been asked to end and does not; but a commit that is waited for is decided,
        however long it takes.
        """
        if self._grace_timer is None and isinstance(task, asyncio.Task):
            self._grace_timer = self._loop.call_later(CANCEL_GRACE_S, self._cut_short, task)

    def _cut_short(self, task: asyncio.Task[Any]) -> None:
        """Cancel what still runs; between two messages nothing does, and what the first has committed is
        answered by the Sync behind it.
        """
        if task is not self._task:
            return
        if self._between:
            self._loop.call_soon(self._cut_short, task)
        else:
            task.cancel()

    # ------------------------------------------------------------------ the pump

    def _pump(self) -> Step | None:
        """Handle messages until there are none, or one has to wait: then return what is left of it."""
        connection = self.connection
        next_frame = connection.next_frame
        responder = self.responder
        budget = LOOKS_AT_CLOCK
        looks = MOST_LOOKS
        ends = 0.0
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
            if not budget and looks:
                looks -= 1
                now = perf_counter()
                if not ends:
                    ends = now + SLICE_S
                if now <= ends:
                    budget = LOOKS_AT_CLOCK
            if budget and not responder.paused:
                continue
            step = self._take_turns()
            if len(connection.out) >= MANY_ANSWERS:
                self.flush_wanted = True
            break
        self._pumping = False
        if self.flush_wanted:
            self.flush_wanted = False
            responder.flush()
        if step is not None:
            if connection.stop > KEPT_BYTES:
                connection.let_go()
        else:
            if self._reading_paused and connection.state is not CLOSED:
                # What is buffered, however much, is the beginning of a message: only its rest brings it on.
                self._reading_paused = False
                self.transport.resume_reading()
            if self._farewell is not None:
                self._maybe_leave()
        return step

    def start(self, step: Step) -> None:
        """Let ``step`` go on by itself; what it waits for brings the session back."""
        if isinstance(step, asyncio.Future):
            self._task = step
            step.add_done_callback(self._synced)
        else:
            self._task = self._loop.create_task(self._run(step))

    def _synced(self, outcome: asyncio.Future[Any]) -> None:
        """The commit of a Sync or a Query is decided: go on, now or in its turn."""
        turns = self.server.turns
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
                self.ready()
            except Exception as error:
                step = self._failure(error)
            if step is None:
                step = self._pump()
        if step is not None:
            self.start(step)
        else:
            self._rest()

    async def _run(self, step: Step | None) -> None:
        """Finish a message that has to wait, then go on pumping; ends when there is nothing to do.

        What is awaited may not wait at all (an error's rollback): others have their turn after a slice of
        such steps, however many messages there are.
        """
        ends = perf_counter() + SLICE_S
        try:
            while step is not None and not isinstance(step, asyncio.Future):
                try:
                    await step
                    step = None
                except Exception as error:
                    self._withdrawn = False  # met, or the batch has ended anyway
                    step = self._failure(error)
                if step is None:
                    if self.connection.buffered and perf_counter() >= ends:
                        await self._take_turns()
                        ends = perf_counter() + SLICE_S
                    if self._withdrawn:
                        step = self._withdraw()
                    if step is None:
                        step = self._pump()
        except asyncio.CancelledError:
            self._abandon()
            step = None
        finally:
            self._task = None
            if isinstance(step, asyncio.Future):
                self.start(step)
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
        elif self.responder.input_over and self.connection.state is not CLOSED:
            self.leave(OUT_OF_STEP if self.responder.cut_off else None)

    def _take_turns(self) -> Coroutine[Any, Any, None]:
        """Let other sessions run, and wait until this one's output has room."""
        self._between = True
        return self._others_turn()

    async def _others_turn(self) -> None:
        await asyncio.sleep(0)
        self._between = False
        # What is passed over answers nothing, and its Sync ends the statement, for those who look as well.
        if self.responder.paused and self.connection.state is not SKIP_UNTIL_SYNC:
            await self.responder.drain()

    def _withdraw(self) -> Step | None:
        """Answer what comes next of a batch, or of many, with the cancel that nothing has met; forget it
        where nothing comes.
        """
        self._withdrawn = False
        connection = self.connection
        step: Step | None = None
        self._pumping = True
        try:
            while (kind := connection.upcoming) in PASSED_OVER:
                connection.next_frame()
                step = _HANDLERS[kind](self, connection.data, connection.start, connection.stop)
                if step is not None:
                    self._withdrawn = True  # asked again behind it
                    break
            report = self.backend.unmet() if kind in REFUSED else None
            if report is not None:
                connection.next_frame()
                connection.has_read()
                raise BackendError(report)
        except Exception as error:
            step = self._failure(error)
        self._pumping = False
        return step

    def _failure(self, error: Exception) -> Step | None:
        """Answer for a handler that raised; return what is left to do."""
        if isinstance(error, BackendError):
            report = error.report
        elif isinstance(error, RemoteProtocolError):
            severity = "FATAL" if error.fatal else "ERROR"
            report = ErrorReport(
                severity=severity,
                sqlstate=error.sqlstate,
                message=error.message,
                detail=error.detail,
                hint=error.hint,
            )
        elif isinstance(error, DataError):  # a description that the client's encoding has no characters for
            report = ErrorReport(severity="ERROR", sqlstate=error.sqlstate, message=error.message)
        elif isinstance(error, ConnectionError) and (self.responder.lost or self.connection.state is CLOSED):
            return None
        else:
            LOG.error("unexpected error in session %d", self.pid, exc_info=error)
            report = INTERNAL_ERROR
        release_error(error)  # a frame that refers to it would keep the statement until a full collection
        report = self.connection.outcome(report)
        state = self.connection.state
        self.flush_wanted = True
        if state is CLOSED or report.severity in ("FATAL", "PANIC"):
            self.leave(report)
            return None
        if state in (STARTUP, AUTH, READY, SKIP_UNTIL_SYNC):
            # Before the session is open every error ends it; in the other two only a bug can get here.
            self.leave(dataclasses.replace(report, severity="FATAL"))
            return None
        self.connection.error(report)
        if self.connection.state is SYNCING:
            self.ready()
            return None
        return self.after_failure()

    async def after_failure(self) -> None:
        """Tell the backend about an error it did not report itself; a message that ends a batch also syncs."""
        ends_batch = self.connection.state in (SIMPLE, SYNCING)
        try:
            await settled(self.backend.failed())
            if ends_batch:
                try:
                    pending = self.backend.sync()
                    if isinstance(pending, asyncio.Future):
                        await asyncio.wait([pending])
                        self.backend.synced(pending)
                    else:
                        await settled(pending)
                except BackendError as error:
                    self.connection.error(error.report)
        except Exception as error:
            LOG.error("session %d cannot roll back", self.pid, exc_info=error)
            self.leave(dataclasses.replace(INTERNAL_ERROR, severity="FATAL"))
            return
        if ends_batch:
            self.ready()

    def ready(self) -> None:
        """Queue ReadyForQuery, and flush soon."""
        connection = self.connection
        self.flush_wanted = True
        if connection.state is CLOSED:
            self.leave(None)
            return
        if self.responder.statuses:
            self.responder.report_statuses()
        connection.ready(self.backend.status())

    # ------------------------------------------------------------------ its beginning and its end

    def authenticated(self) -> None:
        """The client is who it says, and let in: the authentication clock stops."""
        if self._auth_timer is not None:
            self._auth_timer.cancel()
            self._auth_timer = None

    def _authentication_timed_out(self) -> None:
        self._auth_timer = None
        self._not_let_in(fatal("57014", "canceling authentication due to timeout"))

    def crowded_out(self) -> None:
        """Others want to authenticate, too, and this client has been at it for longer than they."""
        LOG.info("connection from %s closed: too many are not authenticated", self.peer)
        self._not_let_in(fatal("53300", "too many connections that are not authenticated"))

    def _not_let_in(self, report: ErrorReport) -> None:
        if self.connection.state is STARTUP:
            self.leave(None)  # who has not introduced itself may not even speak this protocol
        else:
            self.leave(report)
        if self._task is not None:
            self._loop.call_soon(
                self._task.cancel
            )  # behind its first step: without one it would clean up nothing

    def _maybe_leave(self) -> None:
        """Say farewell if it is time."""
        if self._farewell is not None and (not self._farewell_waits or self.idle):
            self.leave(self._farewell)

    def leave(self, report: ErrorReport | None) -> None:
        """Send ``report`` if there is one, and close the socket once the peer has taken it."""
        self._farewell = None
        whole = self.responder.drop_unsure()
        if report is not None and whole and not self.connection.parted:
            self.connection.error(report)
        self.responder.flush()
        self.connection.close()
        self._stop_timers()
        if not self.responder.lost:
            self.responder.when_complete(self.transport.close)
            self._abort_timer = self._loop.call_later(CLOSE_GRACE_S, self.transport.abort)

    def _fallen(self, error: Exception) -> None:
        """Another server leads: what was to be said may be wrong by now."""
        report = error.report if isinstance(error, BackendError) else fatal("57P01", str(error))
        self.terminate(report)

    def _abandon(self) -> None:
        """The task was cancelled: its statement did not end in time, or the loop is going down."""
        self.leave(self._farewell)

    def _cancel_backend(self, *, ends: bool = False) -> None:
        if self.opened:
            try:
                self.backend.cancel(ends=ends)
            except Exception as error:
                LOG.error("session %d: cancel failed", self.pid, exc_info=error)

    def _close_backend(self) -> None:
        """Release the backend, once; runs after the socket is closed and nothing is under way."""
        self.server.forget(self)
        self.responder.let_go()
        if not self.opened:
            return
        self.opened = False
        try:
            pending = self.backend.close()
        except Exception as error:
            LOG.error("session %d: close failed", self.pid, exc_info=error)
            return
        if pending is not None:
            self.server.finish_later(self._finish_close(pending))

    async def _finish_close(self, pending: Awaitable[None]) -> None:
        try:
            await pending
        except Exception as error:
            LOG.error("session %d: close failed", self.pid, exc_info=error)

    def _stop_timers(self) -> None:
        for timer in (self._auth_timer, self._abort_timer, self._look_timer):
            if timer is not None:
                timer.cancel()
        self._auth_timer = self._abort_timer = None

    # ------------------------------------------------------------------ odds and ends of flow control

    def _resume_reading(self) -> None:
        if not self._reading_paused or self.connection.state is CLOSED:
            return
        if self.connection.buffered <= self.server.config.input_limit_bytes:
            self._reading_paused = False
            self.transport.resume_reading()

    def _flush_when_idle(self) -> None:
        """A remark came between statements: nobody else will flush it."""
        if not self._pumping:
            self._loop.call_soon(self.responder.flush)
        self.flush_wanted = True


def _on_dropping(session: Session, data: bytes, start: int, stop: int) -> Step:
    return session._take_turns()


_HANDLERS: Final = {**serving.HANDLERS, **opening.OPENING_HANDLERS, DROPPING: _on_dropping}
