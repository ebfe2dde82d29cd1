"""One server connection without its socket: bytes in, messages out, and the other way round.

    receive_data(bytes) ──► FrameBuffer ──► next_event() ──► frontend message | NEED_DATA | PAUSED
    data_to_send()      ◄── out         ◄── send(backend message)

Every message, in either direction, is a row of the tables in ``state``; what has no row is refused. The
peer's mistakes raise ``RemoteProtocolError`` (``fatal`` when the stream cannot be trusted any more), our own
``LocalProtocolError``.

Two ways in, one set of rules: ``next_event``/``send`` speak message values; ``next_frame`` hands out a type
byte and leaves the payload in the buffer (``data[start:stop]``), and ``out`` takes encoded bytes, for the
session's hot path (``bench/wire_loop.py`` measures it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache, partial
from typing import Final, TypeAlias

from pgwire import messages as m
from pgwire.backend import FieldDescription, TransactionStatus
from pgwire.codecs.errors import DataError
from pgwire.codecs.text.encodings import UTF8, Encoding
from pgwire.errors import ErrorReport, LocalProtocolError, RemoteProtocolError
from pgwire.messages import decode
from pgwire.messages.encode import (
    READY_FOR_QUERY,
    Write,
    cached_row_description,
    encode_backend,
    error_response,
    row_description,
)
from pgwire.messages.framing import (
    DEFAULT_MAX_MESSAGE_BYTES,
    HEADER,
    HELD_BYTES,
    MAX_STARTUP_BYTES,
    UINT32,
    FrameBuffer,
    Room,
    frame_limits,
)
from pgwire.state import ACTED_ON, AUTH, CLOSED, COPY_IN, DROPPED, RECEIVE, SEND, STARTUP

NO_FRAME: Final = 0  # next_frame: nothing to act on now
DROPPING: Final = 1  # next_frame: many messages were dropped and more have come; others go first
DROPPED_AT_ONCE: Final = 2000  # a millisecond
KEPT_BYTES: Final = 64 << 10  # a consumed buffer larger than this is let go
COPY_CHUNK_BYTES: Final = (
    64 << 10
)  # copy_chunk hands out about this much at a time: a fraction of a millisecond

_COPY_DATA: Final = ord("d")
_COPY_DONE: Final = ord("c")
_COPY_FAIL: Final = ord("f")


class Signal(Enum):
    """What ``next_event`` returns instead of a message."""

    NEED_DATA = "need data"
    PAUSED = "paused"


NEED_DATA: Final = Signal.NEED_DATA
PAUSED: Final = Signal.PAUSED
Event: TypeAlias = m.FrontendMessage | Signal


class CopyFailed(Exception):
    """The client sent CopyFail; the message is its reason."""


@lru_cache(maxsize=8)
def _limits(max_message_bytes: int) -> dict[int, int]:
    return frame_limits(max_message_bytes)


class Connection:
    """The protocol state of one client, server side.

    Attributes:
        state: where we are; changed by the tables only.
        out: encoded bytes waiting for ``data_to_send``, in order.
        data, start, stop: payload of the frame that ``next_frame`` returned last.
        startup_message: value of the last start-up packet.
    """

    __slots__ = (
        "_encryption_asked",
        "_frames",
        "_held",
        "_left",
        "_limits",
        "_room",
        "data",
        "describe",
        "dropping",
        "farewell",
        "out",
        "parted",
        "read",
        "start",
        "startup_message",
        "state",
        "stop",
        "write",
    )

    def __init__(
        self, *, max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES, room: Room | None = None
    ) -> None:
        """Start in state STARTUP.

        ``max_message_bytes`` bounds the length word of any one message, ``room`` what all connections' long
        ones take together.
        """
        self.state = STARTUP
        self.out: list[bytes | bytearray | memoryview] = []
        self.data = b""
        self.farewell: ErrorReport | None = None
        """What a session that is being ended says in place of its statement's cancellation (57014)."""
        self.parted = False
        """An error that ends the session has been sent."""
        self.read: decode.Read = decode.utf8
        """What reads texts of the client."""
        self.write: Write = UTF8.encode
        """What writes texts to it."""
        self.describe: Callable[[Sequence[FieldDescription]], bytes] = cached_row_description
        """What encodes RowDescription."""
        self.start = 0
        self.stop = 0
        self.startup_message: m.FrontendMessage | None = None
        self._frames = FrameBuffer()
        self._limits = _limits(max_message_bytes)
        self._left = 0  # bytes of the current message that have not been consumed: of CopyData, or of one that nobody reads
        self._room = room
        self._held = 0  # that a long message has taken of it
        self.dropping = False  # ``copy_chunk`` stopped among many Flush and Sync: others get their turn
        self._encryption_asked: set[int] = set()

    def speak(self, encoding: Encoding) -> None:
        """From now on the client's texts are in ``encoding``, both ways."""
        self.write = encoding.encode
        if encoding.utf8:
            self.read = decode.utf8
            self.describe = cached_row_description
        else:
            self.read = decode.reader(encoding)
            self.describe = partial(row_description, write=encoding.encode)

    # ------------------------------------------------------------------ input

    def receive_data(self, data: bytes) -> None:
        """Add bytes from the peer. Never raises; ``next_event`` judges them."""
        self._frames.feed(data)

    @property
    def buffered(self) -> int:
        """Received bytes that nothing has consumed."""
        return len(self._frames)

    def let_go(self) -> None:
        """Drop the payload of the frame that ``next_frame`` returned last: it has been read, and is long."""
        self._frames.forget_read()
        self.data = b""
        self.start = self.stop = 0

    def has_read(self) -> None:
        """The last message, a long one, has been made into what is wanted of it: its bytes count no more.
        Idempotent.
        """
        if self._room is not None:
            self._room.give(self._held)
        self._held = 0

    def discard_input(self) -> None:
        """Forget received bytes (the connection is ending)."""
        self._frames.clear()
        self._left = 0
        self.has_read()

    def next_event(self) -> Event:
        """Return the next message, or NEED_DATA, or PAUSED while the server has to act first.

        Raises:
            RemoteProtocolError: the state is CLOSED afterwards if it is fatal; else that of the transition
                the message would have made, and the caller answers with an error: so it does with 53200 where
                there is no room for a long message, which is dropped as it comes.
        """
        if not RECEIVE[self.state]:
            return PAUSED
        while (kind := self.next_frame()) == DROPPING:
            pass
        if kind == NO_FRAME:
            return NEED_DATA
        if kind > 255:
            if self.startup_message is None:
                raise AssertionError(
                    "a request that is no protocol version has not been read as a startup message"
                )
            return self.startup_message
        return decode.frontend(kind, self.data, self.start, self.stop, self.read)

    @property
    def untouched(self) -> bool:
        """Whether nothing at all has been received, not even a request for encryption."""
        return self.state is STARTUP and not self._encryption_asked and not len(self._frames)

    @property
    def sync_follows(self) -> bool:
        """Whether the next message, already here, is Sync."""
        frames = self._frames
        return frames.data[frames.pos : frames.pos + 1] == b"S"

    @property
    def upcoming(self) -> int:
        """The next message's type, if it is here as a whole and means something in this state; else NO_FRAME."""
        frames = self._frames
        if self._left or frames.waiting or not frames.has(5):
            return NO_FRAME
        kind: int
        kind, length = HEADER.unpack_from(frames.data, frames.pos)
        known = kind in ACTED_ON[self.state] and 4 <= length <= self._limits[kind]
        return kind if known and length < len(frames) else NO_FRAME

    def next_frame(self) -> int:
        """Return the next message's type and make its transition; NO_FRAME if there is none to act on,
        DROPPING to be asked again.

        In state STARTUP the type is one of the numbers above 255 of ``messages`` and the value is in
        ``startup_message``. Raises as ``next_event``, but leaves payloads unread.
        """
        # The usual case first: a whole frame is there and means something in this state.
        frames = self._frames
        data = frames.data
        pos = frames.pos
        left = len(data) - pos
        if left == 0 and not frames.more:
            if pos > KEPT_BYTES:
                self.data = frames.data = b""
                self.start = self.stop = frames.pos = 0
            return NO_FRAME
        if left >= 5 and not self._left:
            kind: int
            kind, length = HEADER.unpack_from(data, pos)
            after = ACTED_ON[self.state].get(kind)
            if after is not None and 4 <= length < left and length <= self._limits[kind]:
                self.data = data
                self.start = pos + 5
                self.stop = frames.pos = pos + 1 + length
                self.state = after
                return kind
        return self._next_frame_with_care()

    def _next_frame_with_care(self) -> int:
        """Do what ``next_frame`` does where something is missing, meaningless, illegal or a start-up packet."""
        frames = self._frames
        dropped = 0
        while True:
            state = self.state
            table = RECEIVE[state]
            if not table:
                return NO_FRAME
            if state is STARTUP:
                return self._next_startup()
            if self._left and not self._skip_rest():
                return NO_FRAME
            if frames.waiting or not frames.has(5):
                return NO_FRAME
            kind, length = HEADER.unpack_from(frames.data, frames.pos)
            limit = self._limits.get(kind)
            after = table.get(kind)
            if after is None or limit is None or not 4 <= length <= limit:
                raise self._refuse(kind, length, limit)
            if length > HELD_BYTES and len(frames) <= length:
                if state in COPY_IN:
                    return DROPPING  # COPY data, which need not be whole: ``copy_chunk`` takes it
                if kind in DROPPED[state]:
                    self._skip(length)
                    continue
                if not self._hold(length):
                    self._skip(length)
                    self.state = after
                    raise self._no_room(length)
            if not frames.has(1 + length):
                return NO_FRAME
            pos = frames.pos
            frames.pos = pos + 1 + length
            if kind in DROPPED[state]:
                dropped += 1
                if dropped == DROPPED_AT_ONCE:
                    return DROPPING
                continue
            self.data = frames.data
            self.start = pos + 5
            self.stop = frames.pos
            self.state = after
            return int(kind)

    def _hold(self, length: int) -> bool:
        """Take room for a message that has begun to come; False: there is none."""
        self.has_read()
        if self._room is not None:
            if not self._room.take(length):
                return False
            self._held = length
        return True

    def _no_room(self, length: int) -> RemoteProtocolError:
        if self._room is None:
            raise AssertionError("there is no room where no limit is set")
        return RemoteProtocolError(
            "out of memory",
            sqlstate="53200",
            detail=f"A message of {length >> 20} MB; {self._room}.",
            hint='Send less at a time, or raise the setting "memory", of which messages may take a quarter.',
        )

    def _skip(self, length: int) -> None:
        """Drop the message whose head is looked at, what has come and what comes."""
        self._frames.pos += 5
        self._left = length - 4

    def _refuse(self, kind: int, length: int, limit: int | None) -> RemoteProtocolError:
        """Return the error for a frame that may not come now; the stream cannot be followed any further."""
        state = self.state
        if state is AUTH:
            message = f"expected password response, got message type {kind}"
        elif limit is None or kind == ord("p"):
            message = f"invalid frontend message type {kind}"
        elif kind not in RECEIVE[state] and state in COPY_IN:
            message = f"unexpected message type 0x{kind:02X} during COPY from stdin"
        else:
            message = "invalid message length"
        self.close()
        return RemoteProtocolError(message, fatal=True)

    def _next_startup(self) -> int:
        """Return the kind of the next start-up packet."""
        frames = self._frames
        try:
            if not frames.has(4):
                return NO_FRAME
            length = UINT32.unpack_from(frames.data, frames.pos)[0]
            if not 8 <= length <= MAX_STARTUP_BYTES:
                raise RemoteProtocolError("invalid length of startup packet", fatal=True)
            if not frames.has(length):
                return NO_FRAME
            kind, message = decode.startup(frames.take(length)[4:])
            if kind in (m.SSL_REQUEST, m.GSSENC_REQUEST):
                # Each may be asked once, and nothing may follow before the answer: bytes sent in the clear
                # behind the request could be taken for encrypted ones (CVE-2021-23214).
                if kind in self._encryption_asked:
                    code = m.SSL_REQUEST_CODE if kind == m.SSL_REQUEST else m.GSSENC_REQUEST_CODE
                    raise RemoteProtocolError(
                        f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0 to 3.2",
                        sqlstate="0A000",
                        fatal=True,
                    )
                self._encryption_asked.add(kind)
                if len(frames):
                    name = "SSL" if kind == m.SSL_REQUEST else "GSSAPI encryption"
                    raise RemoteProtocolError(f"received unencrypted data after {name} request", fatal=True)
        except RemoteProtocolError:
            self.close()
            raise
        self.startup_message = message
        self.state = RECEIVE[STARTUP][kind]
        return kind

    # ------------------------------------------------------------------ COPY FROM STDIN

    def copy_chunk(self) -> bytes | None:
        """Return COPY data that has arrived, b"" if more is needed (or ``dropping``), None at CopyDone (which
        leaves copy-in).

        Pieces need not end where CopyData messages end. Only legal in a copy-in state.

        Raises:
            CopyFailed: CopyFail came; copy-in is left.
            RemoteProtocolError: another message came (fatal, CLOSED).
        """
        if self.state not in COPY_IN:
            raise LocalProtocolError(f"COPY data asked for in state {self.state.value}")
        frames = self._frames
        parts: list[bytes] = []
        size = 0
        self.dropping = False
        while size < COPY_CHUNK_BYTES:
            if self._left:
                piece = frames.take_partial(self._left)
                if not piece:
                    break
                self._left -= len(piece)
                size += len(piece)
                parts.append(piece)
                continue
            if not frames.has(5):
                break
            size += self._copy_whole(parts)
            if not frames.has(5):
                break
            kind, length = HEADER.unpack_from(frames.data, frames.pos)
            if kind == _COPY_DATA and 4 <= length <= self._limits[kind]:
                frames.pos += 5
                self._left = length - 4
                continue
            if any(parts):
                break
            # next_frame drops Flush and Sync and refuses everything but CopyDone and CopyFail.
            kind = self.next_frame()
            if kind == DROPPING:
                self.dropping = True
                break
            if kind == NO_FRAME:
                break
            if kind == _COPY_DATA:  # behind a dropped message
                parts.append(self.data[self.start : self.stop])
                continue
            if kind == _COPY_DONE:
                decode.nothing(self.data, self.start, self.stop)
                return None
            raise CopyFailed(decode.query(self.data, self.start, self.stop, self.read))
        return b"".join(parts)

    def _copy_whole(self, parts: list[bytes]) -> int:
        """Move the complete CopyData frames at hand to ``parts``, a tight loop: psql sends one per line."""
        frames = self._frames
        data = frames.data
        pos = frames.pos
        end = len(data) - 5
        first = pos
        unpack = UINT32.unpack_from
        limit = self._limits[_COPY_DATA]
        while pos <= end and data[pos] == _COPY_DATA:
            length = unpack(data, pos + 1)[0]
            stop = pos + 1 + length
            if stop > end + 5 or not 4 <= length <= limit:
                break
            parts.append(data[pos + 5 : stop])
            pos = stop
            if pos - first > COPY_CHUNK_BYTES:
                break
        frames.pos = pos
        return pos - first

    def _skip_rest(self) -> bool:
        """Drop the rest of a message that nobody reads: CopyData whose COPY has failed, what is too long;
        return whether all has arrived.
        """
        while self._left:
            piece = self._frames.take_partial(self._left)
            if not piece:
                return False
            self._left -= len(piece)
        return True

    # ------------------------------------------------------------------ output

    def send(self, message: m.BackendMessage) -> None:
        """Queue a message and make its transition.

        Raises:
            LocalProtocolError: it has no row in the current state; nothing is queued.
        """
        data = encode_backend(message)
        if isinstance(message, m.ErrorResponse):
            self.error(message.report)
            return
        if not isinstance(message, m.EncryptionReply):
            self.advance(data[0])
        self.out.append(data)

    def advance(self, kind: int) -> None:
        """Make the transition of backend message type ``kind``, whose bytes the caller queues.
        ConnectionError if closed.
        """
        after = SEND[self.state].get(kind)
        if after is None:
            if self.state is CLOSED:  # by the statement itself, or while nothing could interrupt it
                raise ConnectionError("the connection was closed before its statement ended")
            raise LocalProtocolError(f"message {chr(kind)!r} is illegal in state {self.state.value}")
        self.state = after

    def outcome(self, report: ErrorReport) -> ErrorReport:
        """Return what to say of a failed statement: that it was cancelled is no news to who is being sent away."""
        return self.farewell if self.farewell is not None and report.sqlstate == "57014" else report

    def error(self, report: ErrorReport) -> None:
        """Queue ErrorResponse. FATAL and PANIC close the connection, from any state."""
        report = self.outcome(report)
        if report.severity in ("FATAL", "PANIC"):
            self.parted = True
            self.state = CLOSED
        elif self.state is not CLOSED:  # a lost stream: the error that says so comes after the fact
            self.advance(ord("E"))
        try:
            data = error_response(report, self.write)
        except DataError as error:  # what it says cannot be said; that can, as PostgreSQL does
            report = ErrorReport(severity=report.severity, sqlstate=error.sqlstate, message=error.message)
            data = error_response(report, self.write)
        self.out.append(data)

    def ready(self, status: TransactionStatus) -> None:
        """Queue ReadyForQuery: the batch is answered."""
        self.advance(90)
        self.out.append(READY_FOR_QUERY[status])

    def data_to_send(self) -> bytes:
        """Return and forget all queued bytes."""
        data = b"".join(self.out)
        self.out.clear()
        return data

    def close(self) -> None:
        """Enter CLOSED: nothing is read or accepted any more (what is queued can still be sent)."""
        self.state = CLOSED
        self.discard_input()
        self.data = b""  # the last message, which may be long
        self.start = self.stop = 0
