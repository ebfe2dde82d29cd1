"""The client's side of the protocol without a socket: for paired tests and small tools.

    send(frontend message) ──► data_to_send() ──►  server  ──► receive_data() ──► next_event()

It keeps no table of states: what a server may answer is the server's promise, which the tests check. It only
has to know when a single byte is due instead of a message (after SSLRequest and GSSENCRequest).
"""

from __future__ import annotations

from pgwire import messages as m
from pgwire.connection import NEED_DATA, Signal
from pgwire.errors import RemoteProtocolError
from pgwire.messages import decode
from pgwire.messages.encode import encode_frontend
from pgwire.messages.framing import DEFAULT_MAX_MESSAGE_BYTES, HEADER, FrameBuffer


class ClientConnection:
    """Frontend messages to bytes, bytes to backend messages."""

    def __init__(self) -> None:
        """Start before the start-up packet."""
        self._frames = FrameBuffer()
        self._out = bytearray()
        self._bytes_due = 0

    def send(self, message: m.FrontendMessage) -> None:
        """Queue a message, legal or not: what is legal is for the server to judge."""
        self._out += encode_frontend(message)
        if isinstance(message, m.SSLRequest | m.GSSENCRequest):
            self._bytes_due += 1

    def send_raw(self, data: bytes) -> None:
        """Queue bytes as they are."""
        self._out += data

    def data_to_send(self) -> bytes:
        """Return and forget all queued bytes."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def receive_data(self, data: bytes) -> None:
        """Add bytes from the server."""
        self._frames.feed(data)

    def next_event(self) -> m.BackendMessage | Signal:
        """Return the next message or NEED_DATA.

        Raises:
            RemoteProtocolError: the server sent something that is no message.
        """
        frames = self._frames
        if self._bytes_due:
            if frames.has(1):
                head = frames.data[frames.pos]
                if head in b"SN":
                    self._bytes_due -= 1
                    return m.EncryptionReply(frames.take(1) == b"S")
                self._bytes_due = 0  # an ErrorResponse instead of the byte
            else:
                return NEED_DATA
        if frames.waiting or not frames.has(5):
            return NEED_DATA
        kind, length = HEADER.unpack_from(frames.data, frames.pos)
        if kind not in decode.BACKEND_KINDS:
            raise RemoteProtocolError(f"invalid backend message type {kind}", fatal=True)
        if not 4 <= length <= 2 * DEFAULT_MAX_MESSAGE_BYTES:
            raise RemoteProtocolError("invalid message length", fatal=True)
        if not frames.has(1 + length):
            return NEED_DATA
        return decode.backend(kind, frames.take(1 + length)[5:])
