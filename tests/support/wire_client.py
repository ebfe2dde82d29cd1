"""A blocking client that speaks message by message."""

from __future__ import annotations

import dataclasses
import secrets
import socket

from pgwire import messages as m
from pgwire.auth.scram import ScramClient
from pgwire.client import ClientConnection
from pgwire.connection import NEED_DATA

TIMEOUT_S = 10


class WireClient:
    """One socket. ``key`` and ``pid`` are the server's BackendKeyData."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self.connection = ClientConnection()
        self.pid = 0
        self.key = b""

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def send(self, *messages: m.FrontendMessage, step: int | None = None) -> None:
        """Write ``messages`` and what is queued, in one piece or in pieces of ``step`` bytes."""
        for message in messages:
            self.connection.send(message)
        data = self.connection.data_to_send()
        try:
            if step is None:
                self.socket.sendall(data)
            else:
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for start in range(0, len(data), step):
                    self.socket.sendall(data[start : start + step])
        except ConnectionError:
            pass  # the server has closed; what it said is still to be read

    def receive(self) -> m.BackendMessage | None:
        """Return the next message; None at EOF."""
        while (event := self.connection.next_event()) is NEED_DATA:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.connection.receive_data(data)
        if isinstance(event, m.BackendKeyData):
            self.pid, self.key = event.pid, event.key
        return event  # type: ignore[return-value]

    def until(self, *kinds: type, count: int = 1) -> list[m.BackendMessage]:
        """Receive up to and with the ``count``-th message of ``kinds``, or to EOF (a list without it)."""
        found: list[m.BackendMessage] = []
        while count:
            message = self.receive()
            if message is None:
                break
            found.append(message)
            count -= isinstance(message, kinds)
        return found

    def start(self, password: str | None = None, **parameters: str) -> list[m.BackendMessage]:
        """Open a session; returns everything the server said up to ReadyForQuery, an error or EOF."""
        parameters.setdefault("user", "postgres")
        self.send(m.StartupMessage(parameters))
        said = self.until(m.ReadyForQuery, m.ErrorResponse, m.AuthenticationSASL)
        if said and isinstance(said[-1], m.AuthenticationSASL):
            said += self.scram(password or "")
        return said

    def scram(self, password: str) -> list[m.BackendMessage]:
        """Play SCRAM-SHA-256; returns what the server said."""
        scram = ScramClient(password, secrets.token_bytes)
        self.send(m.PasswordMessage(scram.first()))
        said = self.until(m.AuthenticationSASLContinue, m.ErrorResponse)
        if not said or not isinstance(said[-1], m.AuthenticationSASLContinue):
            return said
        self.send(m.PasswordMessage(scram.final(said[-1].data)))
        rest = self.until(m.ReadyForQuery, m.ErrorResponse)
        if isinstance(rest[0], m.AuthenticationSASLFinal):
            assert scram.verify(rest[0].data)
        return said + rest

    def query(self, sql: str) -> list[m.BackendMessage]:
        self.send(m.Query(sql))
        return self.until(m.ReadyForQuery)


def show(message: m.BackendMessage) -> str:
    """Return one line: the message's name and what it holds."""
    name = type(message).__name__
    match message:
        case m.ErrorResponse(report) | m.NoticeResponse(report):
            extra = [
                f"{f.name}={getattr(report, f.name)!r}"
                for f in dataclasses.fields(report)
                if f.name not in ("severity", "sqlstate", "message") and getattr(report, f.name) is not None
            ]
            return " ".join([name, report.severity, report.sqlstate, report.message, *extra])
        case m.RowDescription(fields):
            shown = (f"{f.name}:{f.type_oid}" + (":binary" if f.format else "") for f in fields)
            return " ".join([name, *shown])
        case m.DataRow(values):
            return " ".join([name, *("NULL" if v is None else ascii(v)[1:] for v in values)])
        case m.AuthenticationSASLContinue() | m.AuthenticationSASLFinal():
            return name
        case _:
            values = (getattr(message, f.name) for f in dataclasses.fields(message))
            return " ".join([name, *map(str, values)])
