"""Messages of many megabytes: put together once, read in pieces, and read as short ones are."""

from __future__ import annotations

import asyncio
import inspect
import struct
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from pgwire import messages as m
from pgwire.connection import NO_FRAME, Connection
from pgwire.errors import RemoteProtocolError
from pgwire.messages import decode
from pgwire.messages import long as long_messages
from pgwire.messages.encode import encode_frontend
from pgwire.messages.framing import FrameBuffer
from pgwire.messages.long import LONG_BYTES, PIECE_BYTES
from pgwire.session.serving import HANDLERS
from pgwire.state import READY

CHUNK = 64 << 10
LONG = LONG_BYTES + PIECE_BYTES // 2
# two and three bytes a character, which pieces cut through
TEXT = "SELECT '" + "xä€" * (LONG // 5) + "'"


class Counting(FrameBuffer):
    """Counts how often bytes are put together."""

    begun = 0

    def _grow(self, wanted: int) -> None:
        Counting.begun += 1
        super()._grow(wanted)


@pytest.mark.parametrize(
    "message",
    [
        m.Query(TEXT),
        m.Parse("s", TEXT, (25,)),
        m.Bind("p", "s", (0,), (b"y" * LONG, None), (0,)),
    ],
    ids=["Query", "Parse", "Bind"],
)
def test_a_long_message_is_put_together_once_however_it_comes(
    message: m.FrontendMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgwire.connection.FrameBuffer", Counting)
    Counting.begun = 0
    connection = Connection()
    connection.state = READY
    data = encode_frontend(message) + encode_frontend(m.Sync())
    heard = []
    for start in range(0, len(data), CHUNK):
        connection.receive_data(data[start : start + CHUNK])
        while (kind := connection.next_frame()) != NO_FRAME:
            if kind != ord("S"):
                heard.append(decode.frontend(kind, connection.data, connection.start, connection.stop))
            connection.let_go()
            connection.state = READY
    assert heard == [message]
    assert Counting.begun == 1
    assert connection.buffered == 0


def payload(message: m.FrontendMessage) -> bytes:
    return encode_frontend(message)[5:]


@pytest.mark.parametrize(
    "data",
    [
        payload(m.Query(TEXT)),
        payload(m.Query(TEXT))[:-1],
        payload(m.Query(TEXT)) + b"x",
        b"SELECT '\xff" + b"x" * LONG + b"'\0",
        b"SELECT '" + b"x" * LONG + b"\xe2\0",
        b"x" * (PIECE_BYTES - 2) + b"\xe2\x82" + b"x" * LONG + b"\0",
        b"x" * (PIECE_BYTES - 1) + b"\xf0\x9f\x98\x80" + b"x" * LONG + b"\xc0\xaf\0",
        b"x" * (PIECE_BYTES - 1) + b"\xed\xa0\x80" + b"x" * LONG + b"\0",
        b"x" * PIECE_BYTES + b"\0",
        b"x" * (PIECE_BYTES - 1) + b"\xc3\0",
    ],
)
def test_a_long_query_is_read_as_a_short_one(data: bytes) -> None:
    same("query", data)


@pytest.mark.parametrize(
    "data",
    [
        payload(m.Parse("s", TEXT, (25, 23))),
        payload(m.Parse("", TEXT, ())),
        payload(m.Parse("s", TEXT, (25, 23)))[:-1],
        payload(m.Parse("s", TEXT, ())) + b"x",
        b"s\0\xff" + b"x" * LONG + b"\0\0\0",
        b"s" * LONG,
    ],
)
def test_a_long_parse_is_read_as_a_short_one(data: bytes) -> None:
    same("parse", data)


BOUND = m.Bind("p", "s", (0, 1, 0), (b"a", b"y" * LONG, b"z" * (2 * LONG)), (1, 0))


@pytest.mark.parametrize(
    "data",
    [
        payload(BOUND),
        payload(m.Bind("", "", (), (None, b"y" * LONG, b"", b"b"), ())),
        payload(m.Bind("", "", (), (b"y" * 1000,) * (LONG // 1000), ())),
        payload(BOUND)[:-1],
        payload(BOUND)[: -LONG // 2],
        payload(BOUND) + b"xx",
        payload(m.Bind("p", "s", (0, 1), (b"a", b"y" * LONG, None), ())),
        payload(m.Bind("p", "s", (7,), (b"y" * LONG,), ())),
        b"p" * LONG,
    ],
)
def test_a_long_bind_is_read_as_a_short_one(data: bytes) -> None:
    same("bind", data)


CALLED = (
    b"\0\0\3\xbb" + b"\0\2\0\0\0\1" + b"\0\2" + b"\0\0\0\1a" + struct.pack("!i", 2 * LONG) + b"y" * (2 * LONG)
)


@pytest.mark.parametrize(
    "data",
    [
        CALLED + b"\0\1",
        CALLED + b"\0\1x",
        CALLED,
        CALLED[:-LONG],
        b"\0\0\3\xbb" + b"\0\1\0\7" + CALLED[10:] + b"\0\1",
        b"\0\0\3\xbb" + b"\0\3\0\0\0\0\0\0" + CALLED[10:] + b"\0\1",
    ],
)
def test_a_long_function_call_is_read_as_a_short_one(data: bytes) -> None:
    same("function_call", data)


LONG_ONES = [
    ("long_query", m.Query(TEXT)),
    ("long_parse", m.Parse("s", TEXT, ())),
    ("long_bind", m.Bind("p", "s", (), (b"y" * (2 * LONG),), ())),
    ("long_call", m.FunctionCall(CALLED + b"\0\1")),
]


@pytest.mark.parametrize(("name", "message"), LONG_ONES, ids=[name for name, _ in LONG_ONES])
def test_the_reading_of_a_long_message_is_the_backends_to_wait_for(
    name: str, message: m.FrontendMessage
) -> None:
    """So that a cancel or a time-out of the statement ends it, too."""
    handed: list[Coroutine[Any, Any, Any]] = []

    class Backend:
        def __getattr__(self, called: str) -> Callable[..., None]:
            assert called == name
            return lambda reading, *rest: handed.append(reading)

    session: Any = SimpleNamespace(
        backend=Backend(),
        responder=None,
        connection=SimpleNamespace(read=decode.utf8, out=[]),
        ready=lambda: None,
    )
    data = encode_frontend(message)
    assert HANDLERS[data[0]](session, data, 5, len(data)) is None
    (reading,) = handed
    assert inspect.getcoroutinestate(reading) == inspect.CORO_CREATED
    reading.close()


def same(name: str, payload: bytes) -> None:
    """What a message is read as does not depend on the way, nor on what stands beside it in the buffer."""

    def outcome(read: object) -> object:
        try:
            return read()  # type: ignore[operator]
        except RemoteProtocolError as error:
            return (error.message, error.sqlstate)

    data, start, stop = b"abc" + payload + b"X\0\0\0\4", 3, 3 + len(payload)
    read = () if name == "function_call" else (decode.utf8,)
    short = outcome(lambda: getattr(decode, name)(data, start, stop, *read))
    coroutine = getattr(long_messages, name)
    assert outcome(lambda: asyncio.run(coroutine(data, start, stop, *read))) == short


def test_of_more_arguments_than_any_function_has_none_is_read() -> None:
    """Whoever calls it says how many are wanted: 60,000 took 30 ms."""
    head = struct.pack("!IHH", 1397, 0, decode.MOST_ARGUMENTS + 1)
    assert decode.function_call(head, 0, len(head)) == (1397, (), [None] * (decode.MOST_ARGUMENTS + 1), 0)
