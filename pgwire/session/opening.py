"""How a session begins: encryption, start-up, authentication, greeting.

SSLRequest ──► S, handshake      ClientHello ──► handshake (direct TLS)      GSSENCRequest ──► N
CancelRequest ──► somebody else's session, and goodbye StartupMessage ──► database.authentication ──► password
messages ──► database.connect ──► ParameterStatus ..., ReadyForQuery
"""

from __future__ import annotations

import logging
from typing import Final

from pgwire import messages as m
from pgwire.auth.exchange import AuthenticationFailed, Exchange
from pgwire.auth.scram import ScramExchange, is_usable, mock_verifier, parse_verifier
from pgwire.auth.trust import TrustExchange
from pgwire.backend import Authentication, settled
from pgwire.errors import BackendError, RemoteProtocolError, fatal
from pgwire.messages.encode import parameter_status
from pgwire.messages.startup import protocol_options, session_parameters
from pgwire.session.ports import Handler, Peer, Step
from pgwire.state import CLOSED

LOG: Final = logging.getLogger("pgwire")

NEWEST_MINOR: Final = 2  # of protocol 3, in PostgreSQL since version 18: longer cancel keys


def _on_ssl_request(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    if session.server.config.tls is None or session.tls:
        _reply_encryption(session, False)
        return None
    # Nothing may be read between the S and the handshake: the client's hello is not ours to decode.
    session.transport.pause_reading()
    _reply_encryption(session, True)
    return _start_tls(session)


def _on_gssenc_request(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    _reply_encryption(session, False)
    return None


def _reply_encryption(session: Peer, accepted: bool) -> None:
    session.connection.send(m.EncryptionReply(accepted))
    session.responder.flush()


def direct_tls(session: Peer, hello: bytes) -> None:
    """The client begins with its handshake, without an SSLRequest (sslnegotiation=direct)."""
    if session.server.config.tls is None or session.busy:
        session.leave(None)  # it could not read an answer
        return
    session.transport.pause_reading()
    session.start(_start_tls(session, hello))


async def _start_tls(session: Peer, hello: bytes = b"") -> None:
    transport = None
    try:
        transport = await session.server.start_tls(session.transport, hello)
    except OSError as error:  # ssl.SSLError is one: there is no way left to tell the client
        LOG.info("TLS handshake with %s failed: %s", session.peer, error)
        session.connection.close()
        session.transport.abort()
        return
    finally:
        if transport is None:  # nobody tells the session of a socket that is closed within the handshake
            session.connection_lost()
    session.tls = True
    session.transport = transport
    session.responder.transport = transport


def _on_cancel_request(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    request = session.connection.startup_message
    if not isinstance(request, m.CancelRequest):
        raise AssertionError(f"a cancel request was read as {type(request).__name__}")
    session.server.cancel(request.pid, request.key)
    session.leave(None)
    return None


def _on_startup(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    message = session.connection.startup_message
    if not isinstance(message, m.StartupMessage):
        raise AssertionError(f"a startup message was read as {type(message).__name__}")
    return _authenticate(session, message)


async def _authenticate(session: Peer, message: m.StartupMessage) -> None:
    session.flush_wanted = True
    unknown = protocol_options(message.parameters)
    session.minor = min(message.minor, NEWEST_MINOR)
    if message.minor > NEWEST_MINOR or unknown:
        session.connection.send(m.NegotiateProtocolVersion(3 << 16 | session.minor, unknown))
    session.parameters = session_parameters(message.parameters)
    session.server.check_room()
    wanted = await settled(
        session.server.database.authentication(
            session.parameters["user"], session.parameters["database"], session.peer, session.tls
        )
    )
    if session.connection.state is CLOSED:
        return  # it has left before this task's turn came
    session.exchange = _make_exchange(session, wanted)
    for request in session.exchange.start():
        session.connection.send(request)
    if session.exchange.done:
        await _open(session)


def _make_exchange(session: Peer, wanted: Authentication) -> Exchange:
    if wanted.method == "trust":
        return TrustExchange()
    verifier = parse_verifier(wanted.verifier) if wanted.verifier is not None else None
    if verifier is not None and not is_usable(verifier):
        verifier = None
    mock = mock_verifier(session.parameters["user"], session.server.mock_secret)
    end_point = session.server.config.tls_end_point if session.tls else b""
    return ScramExchange(verifier, mock, session.server.random_bytes, end_point)


def _on_password(session: Peer, data: bytes, start: int, stop: int) -> Step | None:
    exchange = session.exchange
    if exchange is None or exchange.done:
        raise RemoteProtocolError("unexpected password message", fatal=True)
    try:
        answers = exchange.step(data[start:stop])
    except AuthenticationFailed:
        user = session.parameters["user"]
        raise BackendError(fatal("28P01", f'password authentication failed for user "{user}"')) from None
    for answer in answers:
        session.connection.send(answer)
    session.flush_wanted = True
    return _open(session) if exchange.done else None


async def _open(session: Peer) -> None:
    """Authentication succeeded: open the database session and greet."""
    connection = session.connection
    session.server.admit(session)
    connection.send(m.AuthenticationOk())
    session.server.register(session)
    backend, settings = await settled(
        session.server.database.connect(session.parameters, session.pid, session.peer, session.responder)
    )
    session.backend = backend
    session.opened = True
    if connection.state is CLOSED:  # left, or timed out, while the database was connecting
        if session.responder.lost:
            return  # _run closes the backend
        session.leave(None)
        return
    for name, value in settings.items():
        connection.advance(83)
        connection.out.append(parameter_status(name, value))
        session.responder.reported[name] = value
    connection.send(m.BackendKeyData(session.pid, session.key))
    session.authenticated()
    session.ready()


OPENING_HANDLERS: Final[dict[int, Handler]] = {
    ord("p"): _on_password,
    m.SSL_REQUEST: _on_ssl_request,
    m.GSSENC_REQUEST: _on_gssenc_request,
    m.CANCEL_REQUEST: _on_cancel_request,
    m.STARTUP_MESSAGE: _on_startup,
}
