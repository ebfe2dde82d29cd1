"""A message in pieces whose statement is interrupted: the statement ends at once, the client gets the message whole, and then what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from pgwire.connection import Connection
from pgwire.errors import BackendError, ErrorReport
from pgwire.session.responder import LONG_BYTES, WireResponder
from pgwire.state import SIMPLE

PIECE = b"x" * (256 << 10)
PIECES = 100
HEAD = b"d" + (4 + PIECES * len(PIECE)).to_bytes(4, "big")
CANCELED = ErrorReport(severity="ERROR", sqlstate="57014", message="canceling statement due to user request")
DATA_ROW = ord("D")


class Client:
    """Takes nothing until it is told to; then ``most`` bytes each time."""

    def __init__(self) -> None:
        self.taken = b""
        self.waits: list[bytes] = []
        self.responder: WireResponder

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self.waits.append(bytes(data))
        self.responder.set_paused(True)

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.waits))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def read(self) -> None:
        self.taken += b"".join(self.waits)
        self.waits.clear()
        self.responder.set_paused(False)


class Fallen:
    """Another server leads."""

    def valid(self) -> bool:
        return False

    async def wait_valid(self) -> None:
        raise BackendError(ErrorReport(severity="FATAL", sqlstate="57P01", message="deposed"))


class Message:
    """A long one, that counts what was made of it. ``fails``: the piece that cannot be made."""

    def __init__(self, fails: int = -1) -> None:
        self.made = 0
        self.closed = False
        self._fails = fails

    def pieces(self) -> Iterator[bytes | memoryview]:
        try:
            yield HEAD
            for number in range(PIECES):
                if number == self._fails:
                    raise RuntimeError
                self.made += 1
                yield PIECE
        finally:
            self.closed = True


async def interrupted(message: Message) -> tuple[WireResponder, Client]:
    """Begin with the message, and cancel its statement where it waits for the client."""
    connection = Connection()
    connection.state = SIMPLE
    client = Client()
    responder = client.responder = WireResponder(
        connection, client, on_idle_output=lambda: None, on_input_taken=lambda: None
    )
    responder.row_description(())
    running = asyncio.get_running_loop().create_task(responder.long_message(DATA_ROW, message.pieces()))
    while not client.waits:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    return responder, client


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 60))


def test_the_statement_ends_and_the_message_waits_for_the_client() -> None:
    async def body() -> None:
        message = Message()
        responder, client = await interrupted(message)
        responder.error(CANCELED)
        responder.flush()
        told: list[bool] = []
        responder.when_complete(lambda: told.append(True))
        for _ in range(10 * PIECES):
            await asyncio.sleep(0)
        assert message.made < 5, "more was made than the client takes"
        assert not told
        assert responder.paused
        while not told:
            client.read()
            await asyncio.sleep(0)
        client.read()
        start = client.taken.index(HEAD)
        end = start + len(HEAD) + PIECES * len(PIECE)
        assert client.taken[start + len(HEAD) : end] == PIECE * PIECES
        assert client.taken[end:].startswith(b"E")
        assert b"57014" in client.taken[end:]
        assert message.closed
        responder.when_complete(lambda: told.append(True))
        assert told == [True, True]
        assert not responder.paused

    run(body)


def test_a_client_that_leaves_ends_the_message() -> None:
    async def body() -> None:
        message = Message()
        responder, _client = await interrupted(message)
        told: list[bool] = []
        responder.when_complete(lambda: told.append(True))
        responder.disconnected()
        for _ in range(3):
            await asyncio.sleep(0)
        assert told == [True]
        assert message.closed

    run(body)


@pytest.mark.parametrize("fails", [20, -1])
def test_nothing_follows_a_message_that_will_never_be_whole(fails: int) -> None:
    """A piece of it cannot be made, or another server leads: whatever was said in the middle of it would be taken for its rest."""

    async def body() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        message = Message(fails)
        responder, client = await interrupted(message)
        fallen: list[Exception] = []
        responder.on_fallen = fallen.append
        if fails < 0:
            responder.standing = Fallen()
            responder.rests = True
            rest = responder._rest
            assert rest is not None
            rest.cancel()
            await asyncio.sleep(0)
            responder._rest = asyncio.get_running_loop().create_task(
                responder._send_rest([], message.pieces(), True)
            )
        while not fallen:
            client.read()
            await asyncio.sleep(0)
        responder.error(CANCELED)
        assert not responder.drop_unsure()
        responder.flush()
        client.read()
        assert b"57014" not in client.taken

    run(body)


def test_long_rows_are_handed_on_without_a_copy() -> None:
    """What is short goes in one write, what is long by itself; the order stays."""
    written: list[Any] = []

    class Wire(Client):
        def write(self, data: bytes | bytearray | memoryview, /) -> None:
            written.append(data)

    async def body() -> None:
        connection = Connection()
        connection.state = SIMPLE
        responder = WireResponder(connection, Wire(), on_idle_output=int, on_input_taken=int)
        long = bytearray(LONG_BYTES)
        for rows in (b"D1", long):
            responder.row_description(())
            responder.data_rows(rows, 1)
        responder.flush()
        assert written[1] is long
        assert len(written) == 2
        assert written[0].count(b"T") == 2
        assert b"D1" in written[0]
        responder.data_rows(b"D2", 1)
        responder.data_rows(b"D3", 1)
        responder.flush()
        assert written[2] == b"D2D3"

    run(body)
