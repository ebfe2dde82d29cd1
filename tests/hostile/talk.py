"""A client without manners: raw bytes out, messages in, several connections to one server."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from tests.support.fields import FieldsClient, connect, fields_of

TIMEOUT_S = 60.0


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """Return one message."""
    return kind + struct.pack("!I", len(body) + 4) + body


def parse(sql: str, name: str = "", oids: Sequence[int] = ()) -> bytes:
    """Return Parse."""
    return frame(b"P", f"{name}\0{sql}\0".encode() + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(values: Sequence[bytes | None] = (), name: str = "", portal: str = "") -> bytes:
    """Return Bind with values in text."""
    body = [f"{portal}\0{name}\0".encode(), struct.pack("!HH", 0, len(values))]
    for value in values:
        body.append(struct.pack("!i", -1 if value is None else len(value)))
        body.append(value or b"")
    body.append(struct.pack("!H", 0))
    return frame(b"B", b"".join(body))


def execute(portal: str = "", rows: int = 0) -> bytes:
    """Return Execute."""
    return frame(b"E", portal.encode() + b"\0" + struct.pack("!I", rows))


SYNC = frame(b"S")


class Talk:
    """Connections to one server, which end with it."""

    def __init__(self, port: int, wait: Callable[[], None] = lambda: None) -> None:
        """``wait`` returns once the server has had time for what it was told."""
        self.port = port
        self.wait = wait
        self._clients: list[FieldsClient] = []
        self._sockets: list[socket.socket] = []

    def client(self) -> FieldsClient:
        """Return a new connection, authenticated."""
        made = connect(self.port, timeout_s=TIMEOUT_S)
        self._clients.append(made)
        return made

    def raw(self) -> socket.socket:
        """Return a new socket, on which nothing has been said."""
        made = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets.append(made)
        return made

    def close(self) -> None:
        """Leave without a word."""
        for client in self._clients:
            client._socket.close()
        for sock in self._sockets:
            sock.close()

    # ------------------------------------------------------------------ what rows of the table say

    def send(self, client: FieldsClient, pieces: Iterable[bytes]) -> None:
        """Send piece by piece; a server that hangs up in between has said why."""
        try:
            for piece in pieces:
                client.send_raw(piece)
        except (ConnectionError, BrokenPipeError):
            pass

    @contextmanager
    def sending(self, client: FieldsClient, data: bytes) -> Iterator[None]:
        """Send while the caller reads: neither side may wait for the other to read more than the sockets take."""
        writer = threading.Thread(target=self.send, args=(client, [data]), daemon=True)
        writer.start()
        yield
        writer.join()

    def states(self, client: FieldsClient) -> list[str]:
        """Read up to ReadyForQuery or the end; return the SQLSTATEs of errors."""
        found: list[str] = []
        while True:
            try:
                kind, body = client.answer()
            except ConnectionError:
                return found
            if kind == b"E":
                found.append(fields_of(body)["sqlstate"])
            if kind == b"Z":
                return found

    def until_closed(self, sock: socket.socket) -> bytes:
        """Read until the server hangs up."""
        found = b""
        while True:
            try:
                data = sock.recv(1 << 16)
            except ConnectionError:
                return found
            if not data:
                return found
            found += data

    def serves(self) -> bool:
        """Whether a newcomer is answered."""
        client = connect(self.port, timeout_s=TIMEOUT_S)
        answer = client.run("SELECT 1").rows
        client.close()
        return answer == [("1",)]
