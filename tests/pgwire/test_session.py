"""Sessions over a transport that only records: whatever arrives, however it arrives."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgwire import messages as m
from pgwire.client import ClientConnection
from pgwire.connection import NEED_DATA
from pgwire.messages.encode import encode_frontend
from pgwire.server import Server, ServerConfig
from pgwire.session import Session
from pgwire.session.turns import Turns
from pgwire.state import CLOSED
from tests.support.wire_backend import TinyDatabase

START = encode_frontend(m.StartupMessage({"user": "u"}))


class Recorder:
    """A transport that keeps what is written and what is asked of it."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.closed = False
        self.reading = True

    def write(self, data: bytes) -> None:
        assert not self.closed, "written after close"
        self.written += data

    def get_extra_info(self, name: str) -> None:
        """Return None: there is no socket."""

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


async def settle(session: Session) -> None:
    for _ in range(2000):
        if not session.busy:
            return
        await asyncio.sleep(0)


async def converse(
    pieces: list[bytes], *, late: bool, wait: bool, put_off: bool = False
) -> tuple[list[Any], TinyDatabase, Session]:
    """Feed a session and hang up; return what it said. With ``put_off`` it gives way to readers all the time."""
    database = TinyDatabase(late=late, wrote=put_off)
    server = Server(database, ServerConfig(input_limit_bytes=64, max_message_bytes=10_000))
    server.turns = Turns(clock=lambda: 0.0)
    if put_off:
        server.turns.has_read()
    recorder: Any = Recorder()
    session = Session(server, recorder, "test")
    session.data_received(START)
    await settle(session)
    for piece in pieces:
        while not recorder.reading and session.busy:
            await asyncio.sleep(0)
        assert recorder.reading or recorder.closed, "nothing is under way, and nothing more can arrive"
        session.data_received(piece)
        if wait:
            await settle(session)
    await settle(session)
    copying = session.busy  # only a COPY that waits for more data is still busy now
    assert recorder.reading or recorder.closed or copying
    session.connection_lost()
    await settle(session)
    assert not session.busy
    client = ClientConnection()
    client.receive_data(bytes(recorder.written))
    said: list[Any] = []
    while (event := client.next_event()) is not NEED_DATA:
        if not isinstance(event, m.BackendKeyData):
            said.append(event)
    assert len(client._frames) == 0, "the server stopped in the middle of a message"
    return said, database, session


texts = st.sampled_from(
    [
        "SELECT 1", "SELECT 1; SELECT 2", "SELEC", "", "BEGIN", "COMMIT", "ROLLBACK", "SELECT boom()",
        "SELECT generate_series(1, 4) AS n", "SELECT 1 / (n - 1) AS q FROM generate_series(1, 3) n",
        "COPY t FROM STDIN", "COPY (SELECT generate_series(1, 3)) TO STDOUT",
        "DO $$ BEGIN RAISE NOTICE 'hello'; END $$", "SET datestyle = 'SQL, MDY'",
    ]
)  # fmt: skip
names = st.sampled_from(["", "a"])
of_batches = (
    st.builds(m.Parse, names, texts),
    st.builds(m.Bind, names, names),
    st.builds(m.Describe, st.sampled_from("SP"), names),
    st.builds(m.Execute, names, st.integers(0, 3)),
    st.builds(m.Close, st.sampled_from("SP"), names),
    st.builds(m.Sync),
    st.builds(m.Sync),
    st.builds(m.Flush),
)
good = st.one_of(
    *of_batches,
    st.builds(m.Query, texts),
    st.builds(m.FunctionCall, st.just(b"")),
    st.builds(m.CopyData, st.sampled_from([b"1\n", b"2\n3\n", b"x\n", b""])),
    st.builds(m.CopyDone),
    st.builds(m.CopyFail, st.just("no")),
).map(encode_frontend)
bad = st.sampled_from(
    [b"B\0\0\0\5\0", b"D\0\0\0\6X\0", b"Q\0\0\0\5x", b"P\0\0\0\4", b"S\0\0\0\5x", b"E\0\0\0\4"]
)
conversations = st.lists(good | good | good | bad, max_size=12)


@settings(max_examples=60, deadline=None)
@given(messages=conversations, cuts=st.lists(st.integers(1, 300), max_size=6))
def test_answers_do_not_depend_on_timing(messages: list[bytes], cuts: list[int]) -> None:
    """At once or later, in one packet, in pieces or one by one: the same bytes go out."""
    messages = [*messages, encode_frontend(m.Flush())]  # else it is open when the last answers go out
    data = b"".join(messages)
    places = [0, *sorted({cut for cut in cuts if cut < len(data)}), len(data)]
    pieces = [data[start:stop] for start, stop in pairwise(places)]
    expected, *_ = asyncio.run(converse([data], late=False, wait=False))
    for late in (False, True):
        for split, wait in ((messages, True), (pieces, False), ([data], False)):
            said, *_ = asyncio.run(converse(split, late=late, wait=wait))
            assert said == expected
        said, *_ = asyncio.run(converse(pieces, late=late, wait=False, put_off=True))
        assert said == expected


@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(st.one_of(*of_batches).map(encode_frontend) | bad, max_size=5), max_size=4))
def test_every_sync_is_answered_once(batches: list[list[bytes]]) -> None:
    data = [
        message for batch in batches for message in [*(b for b in batch if b[:1] not in b"QS"), b"S\0\0\0\4"]
    ]
    said, database, _ = asyncio.run(converse([b"".join(data)], late=False, wait=False))
    if any(isinstance(event, m.CopyInResponse) for event in said):
        return  # Sync is swallowed during copy-in
    assert sum(isinstance(event, m.ReadyForQuery) for event in said) == 1 + len(batches)
    backend = database.backends[0]
    assert backend.calls.count("sync") == len(batches)
    assert backend.calls.count("failed") == sum(isinstance(event, m.ErrorResponse) for event in said)
    assert backend.closed == 1


@settings(max_examples=100, deadline=None)
@given(data=st.lists(st.binary(max_size=60) | good, max_size=8).map(b"".join), late=st.booleans())
def test_no_input_breaks_a_session(data: bytes, late: bool) -> None:
    said, database, session = asyncio.run(converse([data], late=late, wait=False))
    assert database.backends[0].closed == 1
    fatal = [e for e in said if isinstance(e, m.ErrorResponse) and e.report.severity == "FATAL"]
    assert len(fatal) <= 1
    assert not fatal or said[-1] is fatal[0]
    assert session.responder.lost


@pytest.mark.parametrize("put_off", [False, True])
def test_a_message_beyond_the_input_limit_arrives_whole(put_off: bool) -> None:
    """It comes while another is answered or waits for its turn: reading pauses, and must go on for the rest of it."""
    large = encode_frontend(m.Query("SELECT 1" + " " * 500))
    pieces = [encode_frontend(m.Query("SELECT 1")) + large[:200], large[200:400], large[400:]]
    said, *_ = asyncio.run(converse(pieces, late=True, wait=False, put_off=put_off))
    assert [type(event) for event in said].count(m.ReadyForQuery) == 3  # one of the start


def test_a_client_that_leaves_while_it_is_let_in_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> Session:
        server = Server(TinyDatabase(), ServerConfig())
        recorder: Any = Recorder()
        session = Session(server, recorder, "test")
        session.data_received(START)
        assert session.busy
        session.connection_lost()
        await settle(session)
        return session

    assert not asyncio.run(main()).busy
    assert caplog.messages == []


def test_a_time_out_that_meets_the_first_step_leaves_nothing() -> None:
    async def main() -> Session:
        recorder: Any = Recorder()
        session = Session(Server(TinyDatabase(), ServerConfig()), recorder, "test")
        session.data_received(START)
        session._authentication_timed_out()  # in the same turn: the task has not begun
        await settle(session)
        session.connection_lost()
        return session

    assert not asyncio.run(main()).busy


@pytest.mark.parametrize("end", ["leaves", "is sent away"])
def test_a_commit_is_waited_for_however_the_client_ends(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Whether it has happened is what its backend has to know: others are told of it."""
    monkeypatch.setattr("pgwire.session.CANCEL_GRACE_S", 0.0)

    async def main() -> None:
        database = TinyDatabase()
        server = Server(database, ServerConfig())
        recorder: Any = Recorder()
        session = Session(server, recorder, "test")
        session.data_received(START)
        await settle(session)
        [backend] = database.backends
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        told: list[asyncio.Future[Any]] = []
        monkeypatch.setattr(backend, "sync", lambda: outcome)
        monkeypatch.setattr(backend, "synced", told.append)
        session.data_received(encode_frontend(m.Sync()))
        if end == "leaves":
            session.connection_lost()
        else:
            session.terminate()
        await asyncio.sleep(0.01)
        assert session.busy
        assert not outcome.done()
        outcome.set_result(None)
        await settle(session)
        assert told == [outcome]
        assert session.connection.state is CLOSED

    asyncio.run(main())


def test_answers_without_a_sync_do_not_gather() -> None:
    async def main() -> int:
        recorder: Any = Recorder()
        session = Session(Server(TinyDatabase(), ServerConfig()), recorder, "test")
        session.data_received(START)
        await settle(session)
        session.data_received(encode_frontend(m.Parse("a", "BEGIN")))
        round_ = encode_frontend(m.Bind("", "a")) + encode_frontend(m.Execute("", 0))
        session.data_received(round_ * 2000)
        await settle(session)
        return len(session.connection.out)

    assert asyncio.run(main()) < 2000
