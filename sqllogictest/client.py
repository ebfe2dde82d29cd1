"""A small PostgreSQL client: every value comes back as the server's own text.

sqllogictest compares text, so a driver that converts values would hide what the server printed. Both protocols are
spoken: ``simple`` sends Query, ``extended`` sends Parse, Bind, Describe, Execute, Sync. Trust and SCRAM-SHA-256
authentication. Blocking sockets: a runner gives each file a thread.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import struct
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote, urlsplit

Protocol = Literal["simple", "extended"]
CONNECT_TIMEOUT_S = 10.0


class ServerError(Exception):
    """An ErrorResponse: ``sqlstate`` and ``message``."""

    def __init__(self, sqlstate: str, message: str) -> None:
        """Keep the two fields sqllogictest looks at."""
        super().__init__(f"{sqlstate} {message}")
        self.sqlstate = sqlstate
        self.message = message


@dataclass(frozen=True, slots=True)
class Target:
    """Where and as whom to connect, from a postgresql:// URL."""

    host: str
    port: int
    user: str
    password: str
    database: str

    @classmethod
    def from_url(cls, url: str) -> Target:
        """Parse ``postgresql://user:password@host:port/database``."""
        parts = urlsplit(url)
        if parts.scheme not in ("postgresql", "postgres"):
            raise ValueError(f"{url}: expected a postgresql:// URL")
        user = unquote(parts.username or "postgres")
        return cls(
            parts.hostname or "127.0.0.1",
            parts.port or 5432,
            user,
            unquote(parts.password or ""),
            unquote(parts.path.lstrip("/")) or user,
        )


@dataclass(slots=True)
class Result:
    """One statement's answer: rows of texts (None is NULL), type oids, and the command tag."""

    rows: list[tuple[str | None, ...]] = field(default_factory=list)
    oids: tuple[int, ...] = ()
    tag: str = ""


class Client:
    """One connection."""

    def __init__(self, target: Target, *, timeout_s: float) -> None:
        """Connect and authenticate; ServerError when refused, OSError when unreachable."""
        self._socket = socket.create_connection((target.host, target.port), CONNECT_TIMEOUT_S)
        self._socket.settimeout(timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self._at = 0  # what of it has been read
        try:
            self._start(target)
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        """Say goodbye; idempotent."""
        try:
            self._socket.sendall(b"X\0\0\0\4")
        except OSError:
            pass  # the server is gone already, which is what we want
        self._socket.close()

    def run(self, sql: str, protocol: Protocol = "simple") -> Result:
        """Run one statement (or, with the simple protocol, several; the last result counts)."""
        text = sql.encode() + b"\0"
        if protocol == "simple":
            self._send(b"Q", text)
        else:
            self._send(b"P", b"\0" + text + b"\0\0")
            self._send(b"B", b"\0\0\0\0\0\0\0\0")
            self._send(b"D", b"P\0")
            self._send(b"E", b"\0\0\0\0\0")
            self._send(b"S", b"")
        result = Result()
        error: ServerError | None = None
        while True:
            kind, body = self._receive()
            if kind == b"T":
                result = Result(oids=_field_oids(body))
            elif kind == b"D":
                result.rows.append(_row(body))
            elif kind == b"C":
                result.tag = body[:-1].decode()
            elif kind == b"E":
                error = error or _error(body)
            elif kind == b"G":
                self._send(b"f", b"sqllogictest sends no COPY data\0")
            elif kind == b"Z":
                if error is not None:
                    raise error
                return result

    def _send(self, kind: bytes, body: bytes) -> None:
        self._socket.sendall(kind + struct.pack("!I", len(body) + 4) + body)

    def _exactly(self, count: int) -> bytes:
        held, at = self._buffer, self._at
        end = at + count
        if len(held) < end:
            parts, size = [held[at:]], len(held) - at
            while size < count:
                data = self._socket.recv(1 << 16)
                if not data:
                    raise ConnectionError("the server closed the connection")
                parts.append(data)
                size += len(data)
            held, at, end = b"".join(parts), 0, count
            self._buffer = held
        self._at = end
        found = held[at:end]
        if end == len(held):
            self._buffer, self._at = b"", 0
        return found

    def _receive(self) -> tuple[bytes, bytes]:
        head = self._exactly(5)
        return head[:1], self._exactly(int.from_bytes(head[1:], "big") - 4)

    def _start(self, target: Target) -> None:
        fields = {"user": target.user, "database": target.database, "client_encoding": "UTF8"}
        body = b"".join(f"{k}\0{v}\0".encode() for k, v in fields.items()) + b"\0"
        self._socket.sendall(struct.pack("!II", len(body) + 8, 196608) + body)
        scram = _Scram(target.password)
        while True:
            kind, body = self._receive()
            if kind == b"E":
                raise _error(body)
            if kind == b"R":
                code = int.from_bytes(body[:4], "big")
                if code == 10:
                    first = scram.first()
                    self._send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first)
                elif code == 11:
                    self._send(b"p", scram.final(body[4:]))
                elif code == 12:
                    scram.verify(body[4:])
                elif code != 0:
                    raise ServerError("08004", f"authentication method {code} is not known here")
            elif kind == b"Z":
                return


class _Scram:
    """The client side of SCRAM-SHA-256 (RFC 7677) without channel binding."""

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        self._nonce = base64.b64encode(secrets.token_bytes(18)).decode()
        self._signature = b""

    def first(self) -> bytes:
        self._bare = f"n=,r={self._nonce}"
        return f"n,,{self._bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        text = challenge.decode()
        parts = dict(part.split("=", 1) for part in text.split(","))
        if not parts["r"].startswith(self._nonce):
            raise ServerError("08P01", "the server changed our nonce")
        salted = hashlib.pbkdf2_hmac("sha256", self._password, base64.b64decode(parts["s"]), int(parts["i"]))
        client = hmac.digest(salted, b"Client Key", "sha256")
        without = f"c=biws,r={parts['r']}"
        auth = f"{self._bare},{text},{without}".encode()
        mask = hmac.digest(hashlib.sha256(client).digest(), auth, "sha256")
        proof = bytes(a ^ b for a, b in zip(client, mask, strict=True))
        server = hmac.digest(salted, b"Server Key", "sha256")
        self._signature = hmac.digest(server, auth, "sha256")
        return f"{without},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, answer: bytes) -> None:
        parts = dict(part.split("=", 1) for part in answer.decode().split(","))
        if not hmac.compare_digest(base64.b64decode(parts["v"]), self._signature):
            raise ServerError("08P01", "the server does not know the password")


def _field_oids(body: bytes) -> tuple[int, ...]:
    position, oids = 2, []
    for _ in range(int.from_bytes(body[:2], "big")):
        position = body.index(b"\0", position) + 1
        oids.append(int.from_bytes(body[position + 6 : position + 10], "big"))
        position += 18
    return tuple(oids)


def _row(body: bytes) -> tuple[str | None, ...]:
    position = 2
    cells: list[str | None] = []
    for _ in range(int.from_bytes(body[:2], "big")):
        length = int.from_bytes(body[position : position + 4], "big", signed=True)
        position += 4
        if length < 0:
            cells.append(None)
        else:
            cells.append(body[position : position + length].decode("utf-8", "replace"))
            position += length
    return tuple(cells)


def _error(body: bytes) -> ServerError:
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    return ServerError(fields.get(b"C", "XX000"), fields.get(b"M", ""))
