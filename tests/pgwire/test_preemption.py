"""Reads that arrive in the middle of a writer's turn go first, and nothing else does (``Turns.yield_to_readers``).

Sessions over real sockets whose transport delivers and sends nothing by itself: what is answered came that way.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pgwire import messages as m
from pgwire.messages.encode import encode_frontend
from pgwire.server import Server, ServerConfig
from pgwire.session import Session
from pgwire.session.turns import SLICE_S, WRITERS_SHARE, Turns
from tests.pgwire.test_session import START, Recorder, settle
from tests.pgwire.test_turns import Clock
from tests.support.wire_backend import TinyDatabase


def asks(number: int) -> bytes:
    return encode_frontend(m.Query(f"SELECT {number}"))


class Idle(Recorder):
    """A transport whose turn never comes: it has the socket, and keeps what it is given to write."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self.sock = sock
        self.queued = 0

    def get_extra_info(self, name: str) -> Any:
        return self.sock if name == "socket" else None

    def get_write_buffer_size(self) -> int:
        return self.queued


class Peer:
    """A client's end of a socket, and the session at the other."""

    def __init__(self, server: Server) -> None:
        self.client, theirs = socket.socketpair()
        self.client.setblocking(False)
        theirs.setblocking(False)
        self.transport = Idle(theirs)
        transport: Any = self.transport
        self.session = Session(server, transport, "test")
        self.session.data_received(START)

    def read_once(self) -> None:
        """Ask by the transport, as all begins."""
        self.session.data_received(asks(1))
        assert self.received().endswith(b"Z\0\0\0\5I")

    def received(self) -> bytes:
        try:
            return self.client.recv(1 << 20)
        except BlockingIOError:
            return b""


@asynccontextmanager
async def rig(
    count: int = 1, spent: Callable[[], float] | None = None
) -> AsyncIterator[tuple[Server, list[Peer]]]:
    """Give a server and ``count`` readers, of which each has read."""
    server = Server(TinyDatabase(), ServerConfig())
    server.turns = Turns(clock=lambda: 0.0, spent=spent or Clock())  # whoever has read, has read just now
    peers = [Peer(server) for _ in range(count)]
    try:
        for peer in peers:
            await settle(peer.session)
            peer.read_once()
        yield server, peers
    finally:
        server.turns.close()
        for peer in peers:
            peer.session.connection_lost()
            peer.client.close()
            peer.transport.sock.close()


def test_a_read_is_answered_before_the_turn_ends() -> None:
    async def main() -> None:
        async with rig() as (server, (peer,)):
            peer.client.send(asks(7))
            assert peer.received() == b""
            server.turns.yield_to_readers()
            answer = peer.received()
            assert b"\0\0\0\1" + b"7" in answer
            assert answer.endswith(b"Z\0\0\0\5I")
            server.turns.yield_to_readers()
            assert peer.received() == b""

    asyncio.run(main())


def test_between_pieces_of_a_slice_readers_go_first() -> None:
    async def main() -> None:
        async with rig() as (server, (peer,)):
            said: list[bytes] = []
            server.turns.put_off(lambda: peer.client.send(asks(7)) and None)
            server.turns.put_off(lambda: said.append(peer.received()))
            await asyncio.sleep(0)
            assert said[0].endswith(b"Z\0\0\0\5I")

    asyncio.run(main())


def test_messages_keep_their_order() -> None:
    async def main() -> None:
        async with rig() as (server, (peer,)):
            peer.client.send(encode_frontend(m.Sync()))  # no read: it waits for the next turn
            server.turns.yield_to_readers()
            assert peer.session.busy
            peer.client.send(asks(7))
            server.turns.yield_to_readers()
            assert peer.received() == b""
            await asyncio.sleep(0)
            assert peer.received() == b"Z\0\0\0\5I"
            server.turns.yield_to_readers()
            assert b"7" in peer.received()

    asyncio.run(main())


def test_the_rest_of_a_message_is_left_to_the_transport() -> None:
    async def main() -> None:
        async with rig() as (server, (peer,)):
            whole = asks(7)
            peer.client.send(whole[:9])
            server.turns.yield_to_readers()
            peer.client.send(whole[9:])
            server.turns.yield_to_readers()
            assert peer.received() == b""
            peer.session.data_received(peer.transport.sock.recv(1000))
            assert b"7" in peer.received()

    asyncio.run(main())


def test_output_that_waits_is_not_overtaken() -> None:
    async def main() -> None:
        async with rig() as (server, (peer,)):
            peer.transport.queued = 10
            before = len(peer.transport.written)
            peer.client.send(asks(7))
            server.turns.yield_to_readers()
            assert peer.received() == b""
            assert b"7" in bytes(peer.transport.written[before:])

    asyncio.run(main())


def test_what_the_socket_does_not_take_is_the_transport_s() -> None:
    async def main() -> None:
        async with rig() as (server, (peer,)):
            peer.transport.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            before = len(peer.transport.written)
            query = "SELECT repeat('x', 50000) AS r FROM generate_series(1, 20)"
            peer.client.send(encode_frontend(m.Query(query)))
            server.turns.yield_to_readers()
            rest = bytes(peer.transport.written[before:])
            got = peer.received()
            assert got
            assert rest.endswith(b"Z\0\0\0\5I")
            assert (got + rest).count(b"x" * 50000) == 20

    asyncio.run(main())


@pytest.mark.parametrize("how", ["gone", "reset"])
def test_a_reader_that_has_gone_is_the_transport_s(how: str) -> None:
    async def main() -> None:
        async with rig() as (server, (peer,)):
            if how == "reset":
                peer.client.send(asks(7))
            peer.client.close()
            server.turns.yield_to_readers()
            if how == "reset":  # the answer met nobody
                assert bytes(peer.transport.written).endswith(b"Z\0\0\0\5I")
            peer.session.connection_lost()
            server.turns.yield_to_readers()

    asyncio.run(main())


def test_a_connection_that_writes_is_not_watched() -> None:
    async def main() -> None:
        async with rig() as (server, (peer,)):
            backend: Any = peer.session.backend
            backend.wrote = True
            peer.session.data_received(asks(5))  # waits for its turn, beside readers
            await settle(peer.session)
            assert bytes(peer.transport.written).endswith(b"Z\0\0\0\5I")
            peer.client.send(asks(7))
            server.turns.yield_to_readers()
            assert peer.received() == b""
            backend.wrote = False
            peer.session.data_received(peer.transport.sock.recv(1000))
            peer.client.send(asks(8))
            server.turns.yield_to_readers()
            assert b"8" in peer.received()

    asyncio.run(main())


def test_a_reader_s_message_has_no_readers_in_its_middle() -> None:
    async def main() -> None:
        async with rig(2) as (server, (one, two)):
            seen: list[tuple[bool, bytes]] = []
            backend: Any = one.session.backend
            query = backend.query

            def within(sql: str, out: Any) -> Any:
                two.client.send(asks(9))
                server.turns.yield_to_readers()
                seen.append((server.turns.preempting, two.received()))
                return query(sql, out)

            backend.query = within
            one.client.send(asks(7))
            server.turns.yield_to_readers()
            assert seen == [(True, b"")]
            assert not server.turns.preempting
            assert b"7" in one.received()

    asyncio.run(main())


def test_those_who_give_way_get_on() -> None:
    async def main() -> None:
        spent = Clock()
        async with rig(4, spent) as (server, peers):
            for peer in peers:
                backend: Any = peer.session.backend
                query = backend.query

                def costly(sql: str, out: Any, query: Any = query) -> Any:
                    spent.now += SLICE_S * 0.6
                    return query(sql, out)

                backend.query = costly
            for peer in peers:
                peer.client.send(asks(7))
            server.turns.yield_to_readers()
            assert sum(bool(peer.received()) for peer in peers) == 2
            # and a slice in whose middle they came is as much longer
            done: list[int] = []

            def piece() -> None:
                spent.now += SLICE_S * 0.5
                done.append(1)

            for _ in range(8):
                server.turns.put_off(piece)
            await asyncio.sleep(0)
            others = 2 * SLICE_S * 0.6
            assert len(done) >= (SLICE_S + WRITERS_SHARE * others) / (SLICE_S * 0.5) - 1
            for _ in range(10):
                await asyncio.sleep(0)

    asyncio.run(main())
