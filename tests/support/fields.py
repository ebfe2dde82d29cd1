"""A client that shows every field of an error, and raw frames for what no client would send."""

from __future__ import annotations

import socket
import struct
from typing import Any

from sqllogictest.client import Client, ServerError, Target

_NAMES = {
    "C": "sqlstate", "M": "message", "D": "detail", "H": "hint", "P": "position", "s": "schema", "t": "table",
    "c": "column", "n": "constraint", "d": "datatype", "W": "where", "S": "severity",
}  # fmt: skip


class FieldsClient(Client):
    """``fails(sql)`` returns the fields of the error by name; the session goes on. ``key``: pid and key for ``cancel``."""

    key: tuple[int, bytes]

    def fails(self, sql: str, protocol: Any = "simple") -> dict[str, str]:
        self._bodies: list[bytes] = []
        try:
            self.run(sql, protocol)
        except ServerError:
            return fields_of(self._bodies[0])
        raise AssertionError(f"no error from: {sql[:200]}")

    def _receive(self) -> tuple[bytes, bytes]:
        kind, body = super()._receive()
        if kind == b"E" and hasattr(self, "_bodies"):
            self._bodies.append(body)
        elif kind == b"K":
            self.key = (int.from_bytes(body[:4], "big"), body[4:])
        return kind, body

    def send(self, kind: bytes, body: bytes = b"") -> None:
        self._socket.sendall(kind + struct.pack("!I", len(body) + 4) + body)

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def cancel(self) -> None:
        """Ask the server to cancel what this connection runs; returns when it has read that."""
        pid, key = self.key
        with socket.create_connection(self._socket.getpeername(), 60) as sock:
            sock.sendall(struct.pack("!III", 12 + len(key), 80877102, pid) + key)
            sock.recv(1)

    def answer(self) -> tuple[bytes, bytes]:
        return self._receive()

    def until_ready(self) -> list[tuple[bytes, bytes]]:
        found = [self._receive()]
        while found[-1][0] != b"Z":
            found.append(self._receive())
        return found


def fields_of(body: bytes) -> dict[str, str]:
    parts = [p.decode("utf-8", "replace") for p in body.split(b"\0") if p]
    return {_NAMES[p[0]]: p[1:] for p in parts if p[0] in _NAMES}


def connect(port: int, user: str = "postgres", timeout_s: float = 60.0) -> FieldsClient:
    return FieldsClient(Target("127.0.0.1", port, user, "", "postgres"), timeout_s=timeout_s)
