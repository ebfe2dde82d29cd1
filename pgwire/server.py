"""The asyncio server: sockets in, sessions out. The only module that touches transports.

    Server ── listens ──► WireProtocol (one per socket) ──► Session ──► Backend
       ├── lobby: sessions that have not proved who they are
       └── registry: pid ──► session (with its cancel key)

Works on asyncio's own loop and on uvloop. Everything has a limit: sockets, sessions, message size, input and
output buffers, time to authenticate, time to drain (``ServerConfig``).

Shutting down (``drain``): no new connections; idle sessions are told 57P01 and closed; busy ones may finish
their transaction until the timeout, then they are cancelled.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import socket
import ssl
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from pgwire import tcp
from pgwire.auth.exchange import RandomBytes
from pgwire.backend import Database
from pgwire.errors import BackendError, ErrorReport
from pgwire.messages.framing import DEFAULT_MAX_MESSAGE_BYTES, Room
from pgwire.session import ADMIN_SHUTDOWN, CANCEL_GRACE_S, Session
from pgwire.session.lobby import Lobby
from pgwire.session.turns import Turns

LOG: Final = logging.getLogger("pgwire")

KEY_BYTES: Final = 4  # of protocol 3.0
LONG_KEY_BYTES: Final = 32  # of protocol 3.2, which takes any length
ALPN: Final = "postgresql"
MAX_PID: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where to listen and what one client may use.

    Attributes:
        host: address to bind; several with an iterable are not supported, "" binds all. port: TCP port; 0
        lets the system choose (``Server.port`` tells). unix_directory: also listen on
        ``<directory>/.s.PGSQL.<port>`` if set. tls: context with a certificate; without one SSLRequest is
        answered N. tls_end_point: what SCRAM binds to over TLS (``pgwire.auth.end_point``); empty: channel
        binding is not offered. max_connections: authenticated sessions; more get FATAL 53300. Others have
        places of their own (``pgwire.session.lobby``). max_message_bytes: largest Query, Parse, Bind or
        CopyData. authentication_timeout_s: from accept to the first ReadyForQuery. input_limit_bytes: what
        may arrive while a message is handled before reading pauses. output_limit_bytes: what the transport
        may hold before ``drain`` suspends.
    """

    host: str = "127.0.0.1"
    port: int = 5432
    unix_directory: str | None = None
    tls: ssl.SSLContext | None = None
    tls_end_point: bytes = b""
    max_connections: int = 100
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    authentication_timeout_s: float = 60.0
    input_limit_bytes: int = 256 << 10
    output_limit_bytes: int = 1 << 20


class WireProtocol(asyncio.Protocol):
    """Hands what asyncio reports about one socket to its session."""

    __slots__ = ("_server", "_session")

    def __init__(self, server: Server) -> None:
        """Wait for a connection."""
        self._server = server
        self._session: Session | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start a session, or drop the socket if there are too many."""
        sock = cast("asyncio.Transport", transport)
        self._session = self._server.accept(sock)
        if self._session is None:
            sock.abort()

    def data_received(self, data: bytes) -> None:
        """Hand on what arrived."""
        if self._session is not None:
            self._session.data_received(data)

    def eof_received(self) -> bool:
        """The peer sends no more: keep the socket open while there is something to answer."""
        return self._session is not None and self._session.input_ended()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the session."""
        if self._session is not None:
            self._session.connection_lost()
            self._session = None

    def pause_writing(self) -> None:
        """The transport holds more than the output limit."""
        if self._session is not None:
            self._session.set_writing_paused(True)

    def resume_writing(self) -> None:
        """The transport has room again."""
        if self._session is not None:
            self._session.set_writing_paused(False)


class Server:
    """A PostgreSQL wire server over one ``Database``.

    Attributes:
        random_bytes: source of nonces and cancel keys.
        mock_secret: what the salts of unknown users derive from; give a stored one to keep them stable across
            restarts.
        turns: whose statements are handled first.
    """

    def __init__(
        self,
        database: Database,
        config: ServerConfig,
        *,
        random_bytes: RandomBytes = secrets.token_bytes,
        mock_secret: bytes | None = None,
        room: Room | None = None,
    ) -> None:
        """Prepare; ``start`` listens. ``room``: what long messages of all clients may take together; without
        it nothing bounds them.
        """
        self.database = database
        self.config = config
        self.random_bytes = random_bytes
        self.mock_secret = mock_secret if mock_secret is not None else random_bytes(32)
        self._sockets: set[Session] = set()
        self._sessions: dict[int, Session] = {}
        self._last_pid = 0
        self._admitted: set[Session] = set()
        self._listeners: list[asyncio.AbstractServer] = []
        self._closing_tasks: set[asyncio.Task[None]] = set()
        self._all_gone = asyncio.Event()
        self._all_gone.set()
        self._draining = False
        self._lobby: Lobby | None = None
        self._port = config.port
        self.turns = Turns()
        self.room = room

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Bind and accept connections; OSError if an address is taken."""
        loop = asyncio.get_running_loop()
        config = self.config
        if config.tls is not None:
            config.tls.set_alpn_protocols([ALPN])
        listener = await loop.create_server(
            lambda: WireProtocol(self), config.host or None, config.port, backlog=1024
        )
        self._listeners.append(listener)
        self._port = int(listener.sockets[0].getsockname()[1])
        if config.unix_directory is not None:
            path = Path(config.unix_directory) / f".s.PGSQL.{self._port}"
            self._listeners.append(await loop.create_unix_server(lambda: WireProtocol(self), str(path)))

    @property
    def port(self) -> int:
        """The TCP port, once started."""
        return self._port

    async def drain(self, timeout_s: float) -> None:
        """Shut down gracefully; returns when every session is closed. Idempotent.

        Idle sessions get FATAL 57P01 at once. Others may end their statement and transaction until
        ``timeout_s`` has passed; then statements are cancelled and the sessions end with 57P01 as well.
        """
        self._draining = True
        for listener in self._listeners:
            listener.close()
        for session in list(self._sockets):
            session.terminate(ADMIN_SHUTDOWN, when_idle=True)
        if not await self._gone_within(timeout_s):
            for session in list(self._sockets):
                session.terminate(ADMIN_SHUTDOWN)
            if not await self._gone_within(2 * CANCEL_GRACE_S):
                for session in list(self._sockets):
                    session.transport.abort()
                await self._gone_within(2 * CANCEL_GRACE_S)
        while self._closing_tasks:
            await asyncio.wait(self._closing_tasks)
        for listener in self._listeners:
            await listener.wait_closed()
        self.turns.close()
        if self._lobby is not None:
            self._lobby.close()

    async def _gone_within(self, timeout_s: float) -> bool:
        try:
            await asyncio.wait_for(self._all_gone.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    # ------------------------------------------------------------------ what the engine asks

    @property
    def sessions(self) -> Mapping[int, Session]:
        """Authenticated sessions by pid (a live view)."""
        return MappingProxyType(self._sessions)

    def cancel(self, pid: int, key: bytes) -> bool:
        """Cancel what session ``pid`` runs if ``key`` is its key; return whether it was."""
        session = self._sessions.get(pid)
        # Compared in constant time, and against something even where there is no such session.
        matches = hmac.compare_digest(session.key if session is not None else bytes(len(key)), key)
        if session is None or not matches:
            LOG.info("cancel request with a wrong key for pid %d", pid)
            return False
        session.cancel()
        return True

    def interrupt(self, pid: int) -> bool:
        """Cancel what session ``pid`` runs (pg_cancel_backend); False if there is none."""
        session = self._sessions.get(pid)
        if session is not None:
            session.cancel()
        return session is not None

    def terminate(self, pid: int, report: ErrorReport = ADMIN_SHUTDOWN) -> bool:
        """End session ``pid`` with ``report``, cancelling what it runs (pg_terminate_backend, timeouts)."""
        session = self._sessions.get(pid)
        if session is not None:
            session.terminate(report)
        return session is not None

    # ------------------------------------------------------------------ what sessions ask

    def accept(self, transport: asyncio.Transport) -> Session | None:
        """Return a session for a new socket; None while the server stops. One that waits for longer may go for it."""
        if self._draining:
            return None
        if self._lobby is None:
            self._lobby = Lobby(
                asyncio.get_running_loop(), lambda: self.config.max_connections - len(self._admitted)
            )
        transport.set_write_buffer_limits(high=self.config.output_limit_bytes)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # notices peers that vanished
            tcp.bound_unsent(sock)
        session = Session(self, transport, _peer_name(transport))
        self._sockets.add(session)
        self._all_gone.clear()
        self._lobby.enter(session)
        return session

    def check_room(self) -> None:
        """Raise 53300 or 57P03 (FATAL) if nobody can be let in now, whoever it is."""
        if self._draining:
            raise BackendError(
                ErrorReport(
                    severity="FATAL", sqlstate="57P03", message="the database system is shutting down"
                )
            )
        if len(self._admitted) >= self.config.max_connections:
            raise BackendError(
                ErrorReport(severity="FATAL", sqlstate="53300", message="sorry, too many clients already")
            )

    def admit(self, session: Session) -> None:
        """Give a session that has proved who it is one of the places; 53300 or 57P03 (FATAL) if there is none."""
        self.check_room()
        self._admitted.add(session)
        if self._lobby is not None:
            self._lobby.leave(session)

    def register(self, session: Session) -> None:
        """Give an authenticated session its pid and key."""
        pid = self._last_pid % MAX_PID + 1
        while pid in self._sessions:
            pid = pid % MAX_PID + 1
        self._last_pid = pid
        session.pid = pid
        session.key = self.random_bytes(KEY_BYTES if session.minor < 2 else LONG_KEY_BYTES)
        self._sessions[pid] = session

    def forget(self, session: Session) -> None:
        """A session's socket is closed."""
        self._sockets.discard(session)
        self._admitted.discard(session)
        if self._lobby is not None:
            self._lobby.leave(session)
        if self._sessions.get(session.pid) is session:
            del self._sessions[session.pid]
        if not self._sockets:
            self._all_gone.set()

    def finish_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what a closed session still has to do; ``drain`` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._closing_tasks.add(task)
        task.add_done_callback(self._closing_tasks.discard)

    async def start_tls(self, transport: asyncio.Transport, hello: bytes = b"") -> asyncio.Transport:
        """Upgrade a socket; OSError if the handshake fails or takes too long.

        ``hello``: what has been read of the handshake already, where it came without an SSLRequest; the
        client must have named the protocol then (ALPN), so that a handshake meant for another server leads
        nowhere.
        """
        if self.config.tls is None:
            raise AssertionError("TLS starts without a certificate")
        plain = transport.get_protocol()
        upgrade = asyncio.get_running_loop().create_task(
            asyncio.get_running_loop().start_tls(
                transport,
                plain,
                self.config.tls,
                server_side=True,
                ssl_handshake_timeout=self.config.authentication_timeout_s,
            )
        )
        try:
            if hello:
                await _hand_over(transport, plain, hello)
            upgraded = await upgrade
        finally:
            upgrade.cancel()
        if upgraded is None:
            raise ConnectionResetError("the client has disconnected")
        tls = upgraded.get_extra_info("ssl_object")
        if hello and tls.selected_alpn_protocol() != ALPN:
            upgraded.abort()
            raise ssl.SSLError("direct TLS without the protocol's name (ALPN)")
        upgraded.set_write_buffer_limits(high=self.config.output_limit_bytes)
        return upgraded


async def _hand_over(transport: asyncio.Transport, plain: asyncio.BaseProtocol, hello: bytes) -> None:
    """Give bytes that were read before the upgrade to the protocol that takes over with it."""
    await asyncio.sleep(0)
    while transport.get_protocol() is plain:
        await asyncio.sleep(0)
    await asyncio.sleep(0)  # it is told of its transport in the turn after it was put in place
    taker = cast("asyncio.BufferedProtocol", transport.get_protocol())
    while hello:
        room = cast("memoryview", taker.get_buffer(len(hello)))
        count = min(len(room), len(hello))
        room[:count] = hello[:count]
        taker.buffer_updated(count)
        hello = hello[count:]


def _peer_name(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple) or len(peer) < 2:
        return "local"
    host, port = peer[0], peer[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
