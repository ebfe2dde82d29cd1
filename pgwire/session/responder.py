"""The ``Responder`` a backend talks to, and the output buffer behind it.

    backend ── data_rows, command_complete … ──► connection.out ── flush ──► transport ──► socket
                                                     ▲                           │
                      drain() waits here ────────────┴──── output limit ◄────────┘

Messages are joined and handed to the transport in one write per batch, or whenever ``WRITE_BYTES`` have
gathered. While the transport holds more than its limit, ``drain`` suspends: that is the back-pressure that
reaches executors.

Where another server may take this one's place (``Standing``), what a client is told leaves only while that is
sure not to have happened, whatever has been waited for before: results, completions and notifications are
kept back until it is sure again, or dropped when it never will be. Errors, and what the backend says rests on
nothing of the kind (``rests``), are not kept back by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from pgwire import tcp
from pgwire.backend import Encryption, FieldDescription, Standing
from pgwire.codecs.errors import DataError
from pgwire.codecs.text.encodings import encoding
from pgwire.connection import Connection, CopyFailed
from pgwire.errors import BackendError, ErrorReport, LocalProtocolError, RemoteProtocolError
from pgwire.messages import encode
from pgwire.state import CLOSED, EXTENDED, READY, SIMPLE

WRITE_BYTES: Final = 64 << 10
LONG_BYTES: Final = 256 << 10
"""Encoded rows, or what else is queued, that are handed to the transport as they are."""


class Writer(Protocol):
    """What is needed of a transport (asyncio's and uvloop's have it)."""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Take bytes to send; never blocks."""

    def get_write_buffer_size(self) -> int:
        """Return how many bytes have not been sent yet."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the ``socket``, None if there is none."""


class WireResponder:
    """One connection's output.

    Attributes:
        ended: Execute has had its CommandComplete, EmptyQueryResponse or PortalSuspended.
        paused: the transport holds more than the output limit.
        lost: the peer is gone; output is discarded.
        input_over: the peer sends no more.
        cut_off: that was in the middle of a COPY.
        statuses: settings to report before the next ReadyForQuery.
        on_idle_output: called when something is queued while no message is being handled.
        on_input_taken: called when COPY data has been taken out of the input buffer.
        rests: what is answered rests on what only the server knows that leads (``pgwire.backend.Responder``).
        standing: whether this server is sure to lead; None: no other can.
    """

    __slots__ = (
        "_broken",
        "_confirming",
        "_connection",
        "_full",
        "_input_waiter",
        "_late",
        "_out",
        "_rest",
        "_rest_waiter",
        "_size",
        "_unsure",
        "_when_complete",
        "_write_waiter",
        "cut_off",
        "ended",
        "input_over",
        "lost",
        "on_fallen",
        "on_idle_output",
        "on_input_taken",
        "paused",
        "reported",
        "rests",
        "standing",
        "statuses",
        "transport",
    )

    def __init__(
        self,
        connection: Connection,
        transport: Writer,
        *,
        on_idle_output: Callable[[], None],
        on_input_taken: Callable[[], None],
        standing: Standing | None = None,
        on_fallen: Callable[[Exception], None] | None = None,
    ) -> None:
        """Write the output of ``connection`` to ``transport``. ``on_fallen``: called with why nothing kept
        back will ever be sent.
        """
        self._connection = connection
        self._out = connection.out
        self._size = 0
        self._late: list[bytes] | None = None  # remarks that wait for the end of a message in pieces
        self._rest: asyncio.Task[None] | None = None  # sends the rest of a message whose statement has ended
        self._rest_waiter: asyncio.Future[None] | None = None
        self._when_complete: list[Callable[[], None]] = []
        self._broken = False  # in the middle of a message that will never be whole
        self._write_waiter: asyncio.Future[None] | None = None
        self._input_waiter: asyncio.Future[None] | None = None
        self.transport = transport
        self.ended = False
        self.lost = False
        self.input_over = False
        self.cut_off = False
        self.paused = False
        self.statuses: dict[str, str] = {}
        self.reported: dict[str, str] = {}  # what the client knows
        self.on_idle_output = on_idle_output
        self.on_input_taken = on_input_taken
        self.standing = standing
        self.on_fallen = on_fallen
        self.rests = True
        self._unsure = False  # something is queued that may not leave unless this server leads
        self._full = False  # the transport holds more than its limit
        self._confirming: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ results

    def row_description(self, fields: Sequence[FieldDescription]) -> None:
        """Queue RowDescription; only the simple protocol sends it here."""
        if self._connection.state not in (SIMPLE, CLOSED):
            raise LocalProtocolError(
                "row_description is for the simple protocol; Describe answers it otherwise"
            )
        self._out.append(self._connection.describe(fields))

    def data_rows(self, encoded: bytes | bytearray | memoryview, count: int) -> None:
        """Queue framed DataRow messages. ``encoded`` must not change afterwards: it is not copied."""
        self._connection.advance(68)
        if self.standing is not None and self.rests:
            self._unsure = True
        self._out.append(encoded)
        self._size += len(encoded)
        if self._size >= WRITE_BYTES:
            self.flush()

    def function_result(self, value: bytes | memoryview | None) -> None:
        """Queue FunctionCallResponse."""
        self._connection.advance(86)
        if self.standing is not None and self.rests:
            self._unsure = True
        self._out.append(encode.function_call_response(value))

    def command_complete(self, tag: str) -> None:
        """Queue CommandComplete."""
        self._end(67, encode.command_complete(tag))

    def empty_query(self) -> None:
        """Queue EmptyQueryResponse."""
        self._end(73, encode.EMPTY_QUERY)

    def portal_suspended(self) -> None:
        """Queue PortalSuspended."""
        self._end(115, encode.PORTAL_SUSPENDED)

    def _end(self, kind: int, data: bytes) -> None:
        """Queue a message that ends a statement; Execute has exactly one."""
        connection = self._connection
        connection.advance(kind)
        if self.ended and connection.state is EXTENDED:
            raise LocalProtocolError("execute has ended twice")
        self.ended = True
        if self.standing is not None and self.rests:
            self._unsure = True
        self._out.append(data)

    @property
    def sync_follows(self) -> bool:
        """See ``pgwire.backend.Responder``."""
        return self._connection.sync_follows

    # ------------------------------------------------------------------ remarks

    def notice(self, report: ErrorReport) -> None:
        """Queue NoticeResponse, and send it: whoever runs something long wants to say so now. Raises
        DataError 22P05.
        """
        self._remark(78, encode.notice_response(report, self._connection.write))
        self.flush()

    def parameter_status(self, name: str, value: str) -> None:
        """Report a setting: at once between statements, else just before ReadyForQuery, its last value only."""
        self.statuses[name] = value
        if self._connection.state is READY:
            self.report_statuses()

    def report_statuses(self) -> None:
        """Queue ParameterStatus for what is not as it was when the client was last told."""
        for name, value in self.statuses.items():
            if self.reported.get(name) != value:
                self.reported[name] = value
                self._remark(83, self._status(name, value))
        self.statuses.clear()

    def _status(self, name: str, value: str) -> bytes:
        """Return ParameterStatus. No statement is there to fail for a name of a role that the client's
        encoding lacks.
        """
        try:
            return encode.parameter_status(name, value, self._connection.write)
        except DataError:
            return encode.parameter_status(name, value.encode("ascii", "replace").decode())

    def client_encoding(self, name: str) -> None:
        """From now on the client's texts are in encoding ``name``."""
        self._connection.speak(encoding(name))

    def tcp_options(self) -> Mapping[str, int]:
        """Return what holds for the client's socket."""
        return tcp.read(self.transport.get_extra_info("socket"))

    def encryption(self) -> Encryption | None:
        """Return how the connection is encrypted, None if it is not."""
        tls = self.transport.get_extra_info("ssl_object")
        cipher = None if tls is None else tls.cipher()
        return None if cipher is None else Encryption(tls.version() or "", cipher[0], cipher[2])

    def unsent(self) -> int:
        """Return how many bytes wait for the client: in the transport, and in the system."""
        if self.lost:
            return 0
        sock = self.transport.get_extra_info("socket")
        return self.transport.get_write_buffer_size() + (0 if sock is None else tcp.unsent(sock))

    def set_tcp_option(self, name: str, value: int) -> None:
        """Set an option of the client's socket. Raises BackendError 22023."""
        tcp.write(self.transport.get_extra_info("socket"), name, value)

    def notification(self, pid: int, channel: str, payload: str) -> None:
        """Queue NotificationResponse; a WARNING 22P05 in its place where the client's encoding lacks a
        character of it.
        """
        try:
            data = encode.notification(pid, channel, payload, self._connection.write)
        except DataError as error:
            report = ErrorReport(severity="WARNING", sqlstate=error.sqlstate, message=error.message)
            self._remark(78, encode.notice_response(report))
            return
        if self.standing is not None:
            self._unsure = True
        self._remark(65, data)

    def _remark(self, kind: int, data: bytes) -> None:
        """Queue a message that may come at any time; the peer being gone is no error here."""
        connection = self._connection
        if connection.state is CLOSED:
            return
        connection.advance(kind)
        (self._out if self._late is None else self._late).append(data)
        if connection.state is READY:
            self.on_idle_output()

    def error(self, report: ErrorReport) -> None:
        """Queue ErrorResponse. One that ends the session takes the place of what is kept back."""
        if report.severity not in ("FATAL", "PANIC") or self.drop_unsure():
            self._connection.error(report)
        else:
            self._connection.close()

    # ------------------------------------------------------------------ COPY

    def copy_out(self, format: int, column_formats: Sequence[int]) -> None:
        """Queue CopyOutResponse."""
        self._connection.advance(72)
        self._out.append(encode.copy_response(b"H", format, column_formats))

    def copy_data(self, data: bytes | bytearray | memoryview) -> None:
        """Queue one CopyData message."""
        self._connection.advance(100)
        if self.standing is not None and self.rests:
            self._unsure = True
        self._out.append(encode.copy_data(data))
        self._size += len(data)
        if self._size >= WRITE_BYTES:
            self.flush()

    def copy_rows(self, framed: bytes | bytearray | memoryview) -> None:
        """Queue framed CopyData messages. ``framed`` must not change afterwards: it is not copied."""
        self._connection.advance(100)
        if self.standing is not None and self.rests:
            self._unsure = True
        self._out.append(framed)
        self._size += len(framed)
        if self._size >= WRITE_BYTES:
            self.flush()

    def copy_done(self) -> None:
        """Queue CopyDone."""
        self._connection.advance(99)
        self._out.append(encode.COPY_DONE)

    def copy_in(self, format: int, column_formats: Sequence[int]) -> AsyncIterator[bytes]:
        """Send CopyInResponse and return the client's data."""
        self._connection.advance(71)
        self._out.append(encode.copy_response(b"G", format, column_formats))
        self.flush()
        return CopyIn(self, self._connection)

    # ------------------------------------------------------------------ buffer

    def flush(self) -> None:
        """Hand all queued bytes to the transport, in one write but for what is long and would be copied; keep
        them back while it is not sure that they still hold.
        """
        out = self._out
        if out:
            if self._unsure:
                if self._kept_back():
                    return
                self._unsure = False
            if len(out) == 1 or self._size < LONG_BYTES:
                data = out[0] if len(out) == 1 else b"".join(out)
                out.clear()
                if not self.lost:
                    self.transport.write(data)
            else:
                pieces = tuple(_pieces(out))
                out.clear()
                for piece in () if self.lost else pieces:
                    self.transport.write(piece)
        self._size = 0

    def _kept_back(self) -> bool:
        """Tell whether what is queued has to wait for the rest of a message, or until it is sure that this
        server leads; sees to it that it leaves then.
        """
        if self._rest is not None or self._broken:
            return True
        standing = self.standing
        if standing is None or standing.valid():
            return False
        if self._confirming is None and not self.lost:
            self.paused = True
            self._confirming = asyncio.get_running_loop().create_task(self._confirm(standing))
        return True

    async def _confirm(self, standing: Standing) -> None:
        """Wait until this server is sure to lead again, and send what was kept back, or drop it."""
        try:
            await standing.wait_valid()
        except Exception as error:
            self.drop_unsure()
            if self.on_fallen is not None:
                self.on_fallen(error)
            return
        self._confirming = None
        self.flush()
        if self._confirming is None:
            self.set_paused(self._full)

    def confirmed(self) -> None:
        """See ``pgwire.backend.Responder``."""
        self.rests = False
        self._unsure = self._rest is not None

    def drop_unsure(self) -> bool:
        """Drop what is kept back, if anything is; False where the rest of a message that was sent in part is
        among it.
        """
        if self._broken:
            return False
        if not self._unsure or self.standing is None or self.standing.valid():
            return True
        self._out.clear()
        self._unsure = self._rest is not None
        return self._late is None and self._rest is None

    async def drain(self) -> None:
        """Write, and suspend while the transport is over its limit; ConnectionError if the peer left."""
        self.flush()
        while self.paused and not self.lost:
            await self._wait("_write_waiter")
        if self.lost:
            raise ConnectionResetError("the client has disconnected")

    async def long_message(self, kind: int, pieces: Iterator[bytes | memoryview]) -> None:
        """See ``pgwire.backend.Responder``."""
        self._connection.advance(kind)
        if self.standing is not None and self.rests:
            self._unsure = True
        try:
            for piece in pieces:
                if piece:
                    if self._late is None:
                        self._late = []
                    self._out.append(piece)
                    self._size += len(piece)
                try:
                    if self._size >= WRITE_BYTES:
                        await self.drain()
                    if not self._size:
                        await asyncio.sleep(0)
                except BaseException:
                    if self._late is not None and not self.lost:
                        self._complete(pieces)
                    raise
        finally:
            if self._late is not None:
                self._out += self._late
                self._late = None

    def _complete(self, pieces: Iterator[bytes | memoryview]) -> None:
        """See to it that the rest of a message is sent although its statement ends now; what is queued later
        is kept back until then.
        """
        head, unsure = self._out.copy(), self._unsure
        self._out.clear()
        self._size = 0
        self.paused = self._unsure = True
        self._rest = asyncio.get_running_loop().create_task(self._send_rest(head, pieces, unsure))

    async def _send_rest(
        self, gathered: list[Any], pieces: Iterator[bytes | memoryview], unsure: bool
    ) -> None:
        """Send the rest of a message as the client takes it, then what was kept back behind it."""
        try:
            size = 0
            for piece in pieces:
                gathered.append(piece)
                size += len(piece)
                await asyncio.sleep(0)
                if size >= WRITE_BYTES:
                    await self._room(unsure)
                    self.transport.write(b"".join(gathered))
                    gathered, size = [], 0
            await self._room(unsure)
            self.transport.write(b"".join(gathered))
        except Exception as error:
            self._broken = True
            if self.on_fallen is not None:
                self.on_fallen(error)
            raise
        finally:
            self._rest = None
        self.flush()
        self.set_paused(self._full)
        self._tell_complete()

    async def _room(self, unsure: bool) -> None:
        """Wait until the transport is below its limit, and what is sent holds."""
        while self._full:
            await self._wait("_rest_waiter")
        if unsure and self.standing is not None and not self.standing.valid():
            await self.standing.wait_valid()

    def when_complete(self, then: Callable[[], None]) -> None:
        """See ``pgwire.backend.Responder``."""
        if self._rest is None:
            then()
        else:
            self._when_complete.append(then)

    def _tell_complete(self) -> None:
        while self._when_complete:
            self._when_complete.pop()()

    async def more_input(self) -> None:
        """Suspend until more bytes have been received; ConnectionError if the peer left, BackendError 08006
        if it sends no more.
        """
        if self.input_over:
            self.cut_off = True
            message = "unexpected EOF on client connection with an open transaction"
            raise BackendError(ErrorReport(severity="ERROR", sqlstate="08006", message=message))
        if not self.lost:
            await self._wait("_input_waiter")
        if self.lost:
            raise ConnectionResetError("the client has disconnected")

    def end_input(self) -> None:
        """The peer sends no more: wake a COPY that waits for data."""
        self.input_over = True
        self.input_arrived()

    def say_nothing_new(self) -> None:
        """Send the client something that changes nothing, at once: it is answered by an error where the
        client has left.
        """
        if self._late is None and self._rest is None:
            self._remark(83, self._status("integer_datetimes", "on"))
            self.flush()

    async def _wait(self, slot: str) -> None:
        waiter: asyncio.Future[None] | None = getattr(self, slot)
        if waiter is None or waiter.done():
            waiter = asyncio.get_running_loop().create_future()
            setattr(self, slot, waiter)
        # Shielded: a backend that stops waiting must not cancel the future for others.
        await asyncio.shield(waiter)

    @staticmethod
    def _wake(waiter: asyncio.Future[None] | None) -> None:
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def input_arrived(self) -> None:
        """Wake a COPY that waits for data."""
        if self._input_waiter is not None:
            self._wake(self._input_waiter)
            self._input_waiter = None

    def set_paused(self, paused: bool) -> None:
        """The transport crossed its limit, upwards or downwards."""
        self._full = paused
        if not paused:
            self._wake(self._rest_waiter)
            self._rest_waiter = None
        self.paused = paused = paused or self._confirming is not None or self._rest is not None
        if not paused:
            self._wake(self._write_waiter)
            self._write_waiter = None

    def disconnected(self) -> None:
        """The socket is gone: wake everyone; what they wait for raises ConnectionError."""
        self.lost = True
        self._out.clear()
        if self._confirming is not None:
            self._confirming.cancel()
            self._confirming = None
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        self._tell_complete()
        self._wake(self._write_waiter)
        self._wake(self._input_waiter)

    def let_go(self) -> None:
        """Drop the references to the session: what is closed must not wait for a full garbage collection."""
        self.on_idle_output = self.on_input_taken = _nothing
        self.on_fallen = None


def _nothing() -> None:
    """Stand in for a callback after the end."""


class CopyIn:
    """The client's COPY data as an asynchronous iterator; abandoning it is fine (the COPY then fails)."""

    __slots__ = ("_connection", "_held", "_responder")

    def __init__(self, responder: WireResponder, connection: Connection) -> None:
        """Read from ``connection``."""
        self._responder = responder
        self._connection = connection
        self._held = False  # the loop, since the chunk before

    def __aiter__(self) -> CopyIn:
        """Return itself."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk. Between two the loop gets to look at other connections.

        Raises:
            BackendError: 57014 after CopyFail; 08P01 FATAL after a message that is illegal here.
            ConnectionError: the client left.
        """
        if self._held:
            await asyncio.sleep(0)
        self._held = True
        while True:
            try:
                chunk = self._connection.copy_chunk()
            except CopyFailed as failure:
                raise BackendError(
                    ErrorReport(
                        severity="ERROR", sqlstate="57014", message=f"COPY from stdin failed: {failure}"
                    )
                ) from None
            except RemoteProtocolError as error:
                raise BackendError(
                    ErrorReport(severity="FATAL", sqlstate=error.sqlstate, message=error.message)
                ) from None
            if chunk is None:
                raise StopAsyncIteration
            if chunk:
                self._responder.on_input_taken()
                return chunk
            self._responder.on_input_taken()
            if self._connection.dropping:
                await asyncio.sleep(0)
            else:
                await self._responder.more_input()


def _pieces(queued: Sequence[bytes | bytearray | memoryview]) -> Iterator[bytes | bytearray | memoryview]:
    """Yield what is queued, short ones joined, long ones as they are: to copy ten megabytes takes as many
    milliseconds.
    """
    short: list[bytes | bytearray | memoryview] = []
    for one in queued:
        if len(one) < LONG_BYTES:
            short.append(one)
            continue
        if short:
            yield b"".join(short)
            short = []
        yield one
    if short:
        yield b"".join(short)
