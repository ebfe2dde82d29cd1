"""What the parts of a session ask of each other, and a session of its server: no part needs to know who
stands above it.

Server  ── is a Host ──►  Session  ── is a Peer ──►  opening, serving: the handlers of messages
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

from pgwire.auth.exchange import Exchange, RandomBytes
from pgwire.backend import Backend, Database
from pgwire.connection import Connection
from pgwire.errors import ErrorReport
from pgwire.messages.framing import Room
from pgwire.session.responder import WireResponder
from pgwire.session.turns import Turns

Step = Coroutine[Any, Any, None] | asyncio.Future[Any]
"""What is left of a message: a coroutine for a task to run, or a commit's outcome to be told of."""


S_contra = TypeVar("S_contra", contravariant=True)  # the server's class of sessions


class Limits(Protocol):
    """What a session reads of its server's configuration (``pgwire.server.ServerConfig``)."""

    @property
    def tls(self) -> ssl.SSLContext | None:
        """Return the context with a certificate; None: TLS is not offered."""

    @property
    def tls_end_point(self) -> bytes:
        """Return what SCRAM binds to over TLS; empty: channel binding is not offered."""
        ...

    @property
    def max_message_bytes(self) -> int:
        """Return the size of the largest message."""
        ...

    @property
    def authentication_timeout_s(self) -> float:
        """Return how long a client may take from accept to the first ReadyForQuery."""
        ...

    @property
    def input_limit_bytes(self) -> int:
        """Return what may arrive while a message is handled before reading pauses."""
        ...


class Host(Protocol[S_contra]):
    """The server, as its sessions see it.

    ``room``: what their long messages may take together, None: not counted; ``turns``: who reads while others
    write; ``mock_secret``: what verifiers of users who are not there are made of.
    """

    database: Database
    room: Room | None
    turns: Turns
    mock_secret: bytes
    random_bytes: RandomBytes

    @property
    def config(self) -> Limits:
        """Return what one client may use."""
        ...

    def cancel(self, pid: int, key: bytes) -> bool:
        """Cancel what another session runs, if ``key`` is its key. Tells whether it is."""
        ...

    def check_room(self) -> None:
        """Raise BackendError 53300 or 57P03 where no session may begin now."""

    def admit(self, session: S_contra) -> None:
        """Take a session that has proved who it is. Raises BackendError as ``check_room``."""

    def register(self, session: S_contra) -> None:
        """Give a session its number and key."""

    def forget(self, session: S_contra) -> None:
        """Forget a session that has ended. Idempotent."""

    def finish_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done that outlives its session; the server's end waits for it."""

    async def start_tls(self, transport: asyncio.Transport, hello: bytes = b"") -> asyncio.Transport:
        """Return the transport that encrypts; ``hello`` has arrived already. Raises OSError where the
        handshake fails.
        """
        ...


class Peer(Protocol):
    """A session, as the handlers of its messages see it (``pgwire.session.Session``, whose attributes these are)."""

    backend: Backend
    connection: Connection
    exchange: Exchange | None
    flush_wanted: bool
    key: bytes
    minor: int
    opened: bool
    parameters: Mapping[str, str]
    peer: str
    pid: int
    responder: WireResponder
    server: Host[Any]
    tls: bool
    transport: asyncio.Transport

    @property
    def busy(self) -> bool:
        """Tell whether a message is being handled."""
        ...

    def start(self, step: Step) -> None:
        """Have what is left of a message done by a task."""

    def ready(self) -> None:
        """Say that the next message may come (ReadyForQuery)."""

    def authenticated(self) -> None:
        """Stop the clock of authentication."""

    def leave(self, report: ErrorReport | None) -> None:
        """End the session, with a last word if there is one."""

    async def after_failure(self) -> None:
        """Have the backend told that a message has failed."""

    def connection_lost(self) -> None:
        """Take note that the socket is gone."""


Handler = Callable[[Peer, bytes, int, int], Step | None]
"""Handles the message in ``data[start:stop]``; None: it is done."""
