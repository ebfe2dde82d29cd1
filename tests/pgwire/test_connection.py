"""Two connections back to back, no socket: what one side says the other side hears."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgwire import messages as m
from pgwire.client import ClientConnection
from pgwire.connection import DROPPED_AT_ONCE, DROPPING, NEED_DATA, PAUSED, Connection, CopyFailed
from pgwire.errors import ErrorReport, LocalProtocolError, RemoteProtocolError
from pgwire.messages.decode import LONG_TEXT_BYTES
from pgwire.messages.encode import encode_frontend
from pgwire.messages.framing import GROWING_BYTES, HELD_BYTES, Room
from pgwire.state import State

ERROR = ErrorReport(severity="ERROR", sqlstate="22012", message="division by zero")
FATAL = ErrorReport(severity="FATAL", sqlstate="57P01", message="bye")


class Pair:
    """A client and a server connection; bytes cross in pieces of at most ``step``."""

    def __init__(self, step: int = 1 << 30, **options: Any) -> None:
        self.client = ClientConnection()
        self.server = Connection(**options)
        self.step = step

    def say(self, *said: m.FrontendMessage) -> None:
        for message in said:
            self.client.send(message)
        data = self.client.data_to_send()
        for start in range(0, len(data), self.step):
            self.server.receive_data(data[start : start + self.step])

    def answer(self, *answers: m.BackendMessage) -> list[object]:
        """Send from the server; return what the client hears."""
        for message in answers:
            self.server.send(message)
        data = self.server.data_to_send()
        for start in range(0, len(data), self.step):
            self.client.receive_data(data[start : start + self.step])
        heard = []
        while (event := self.client.next_event()) is not NEED_DATA:
            heard.append(event)
        return heard

    def ready(self) -> Pair:
        """Bring both sides to READY."""
        self.say(m.StartupMessage({"user": "u"}))
        assert self.server.next_event() == m.StartupMessage({"user": "u"})
        self.answer(m.AuthenticationOk(), m.ReadyForQuery("I"))
        assert self.server.state is State.READY
        return self


@pytest.mark.parametrize("step", [1, 3, 1 << 30])
def test_a_session_from_start_to_end(step: int) -> None:
    pair = Pair(step)
    pair.say(m.SSLRequest())
    assert pair.server.next_event() == m.SSLRequest()
    assert pair.answer(m.EncryptionReply(False)) == [m.EncryptionReply(False)]
    pair.say(m.StartupMessage({"user": "u", "database": "d"}))
    assert pair.server.next_event() == m.StartupMessage({"user": "u", "database": "d"})
    greeting = [m.AuthenticationOk(), m.ParameterStatus("a", "b"), m.BackendKeyData(7, b"\xff" * 4)]
    assert pair.answer(*greeting, m.ReadyForQuery("I")) == [*greeting, m.ReadyForQuery("I")]

    batch = [
        m.Parse("s", "SELECT 1", (23,)),
        m.Bind("p", "s", (1,), (b"x", None), (0,)),
        m.Describe("P", "p"),
    ]
    pair.say(*batch, m.Execute("p", 5), m.Sync())
    for message in batch:
        assert pair.server.next_event() == message
    replies = [m.ParseComplete(), m.BindComplete(), m.NoData()]
    assert pair.answer(*replies) == replies
    assert pair.server.next_event() == m.Execute("p", 5)
    rows = [m.DataRow((b"1", None)), m.PortalSuspended()]
    assert pair.answer(*rows) == rows
    assert pair.server.next_event() == m.Sync()
    assert pair.server.next_event() is PAUSED
    assert pair.answer(m.ReadyForQuery("T")) == [m.ReadyForQuery("T")]
    pair.say(m.Terminate())
    assert pair.server.next_event() == m.Terminate()
    assert pair.server.state is State.CLOSED


def test_after_an_error_everything_is_skipped_to_sync() -> None:
    pair = Pair().ready()
    pair.say(m.Parse("", "x"), m.Bind(), m.Execute(), m.Query("q"), m.CopyData(b"d"), m.Sync())
    assert pair.server.next_event() == m.Parse("", "x")
    pair.answer(m.ErrorResponse(ERROR))
    assert pair.server.next_event() == m.Sync()
    pair.answer(m.ReadyForQuery("I"))
    assert pair.server.next_event() is NEED_DATA


def test_query_pauses_reading_until_ready_for_query() -> None:
    pair = Pair().ready()
    pair.say(m.Query("one"), m.Query("two"))
    assert pair.server.next_event() == m.Query("one")
    assert pair.server.next_event() is PAUSED
    pair.answer(m.CommandComplete("SELECT 1"), m.ReadyForQuery("I"))
    assert pair.server.next_event() == m.Query("two")


def test_ready_for_query_twice_is_our_own_mistake() -> None:
    pair = Pair().ready()
    with pytest.raises(LocalProtocolError):
        pair.server.send(m.ReadyForQuery("I"))
    assert pair.server.data_to_send() == b""


def test_rows_after_an_error_are_our_own_mistake() -> None:
    pair = Pair().ready()
    pair.say(m.Execute())
    pair.server.next_event()
    pair.answer(m.ErrorResponse(ERROR))
    with pytest.raises(LocalProtocolError):
        pair.server.send(m.DataRow(()))


def test_a_fatal_error_closes_from_any_state() -> None:
    pair = Pair().ready()
    assert pair.answer(m.ErrorResponse(FATAL)) == [m.ErrorResponse(FATAL)]
    assert pair.server.state is State.CLOSED
    pair.say(m.Query("x"))
    assert pair.server.next_event() is PAUSED


def copy_in(pair: Pair) -> None:
    pair.say(m.Query("COPY"))
    assert pair.server.next_event() == m.Query("COPY")
    assert pair.answer(m.CopyInResponse(0, (0, 1))) == [m.CopyInResponse(0, (0, 1))]


def read_copy(connection: Connection) -> bytes:
    data = b""
    while (chunk := connection.copy_chunk()) is not None:
        assert chunk, "more was promised"
        data += chunk
    return data


@pytest.mark.parametrize("step", [1, 7, 1 << 30])
def test_copy_data_arrives_whole(step: int) -> None:
    pair = Pair(step).ready()
    copy_in(pair)
    lines = [b"%d\n" % i for i in range(1000)]
    pair.say(*map(m.CopyData, lines), m.CopyData(b""), m.Flush(), m.Sync(), m.CopyData(b"end"), m.CopyDone())
    assert read_copy(pair.server) == b"".join(lines) + b"end"
    assert pair.server.state is State.SIMPLE


def test_copy_data_is_handed_out_before_its_message_is_complete() -> None:
    pair = Pair().ready()
    copy_in(pair)
    data = encode_frontend(m.CopyData(b"x" * 1000))
    pair.server.receive_data(data[:300])
    assert pair.server.copy_chunk() == b"x" * 295
    assert pair.server.copy_chunk() == b""
    assert pair.server.buffered == 0
    pair.server.receive_data(data[300:])
    assert pair.server.copy_chunk() == b"x" * 705


def test_the_rest_of_a_failed_copys_data_is_skipped() -> None:
    pair = Pair().ready()
    copy_in(pair)
    data = encode_frontend(m.CopyData(b"x" * 1000)) + encode_frontend(m.CopyDone())
    pair.server.receive_data(data[:300])
    pair.server.copy_chunk()
    pair.answer(m.ErrorResponse(ERROR), m.ReadyForQuery("I"))
    pair.server.receive_data(data[300:])
    pair.say(m.Query("next"))
    assert pair.server.next_event() == m.Query("next")


def test_copy_fail_says_why_after_the_data_before_it() -> None:
    pair = Pair().ready()
    copy_in(pair)
    pair.say(m.CopyData(b"a"), m.CopyFail("why not"))
    assert pair.server.copy_chunk() == b"a"
    with pytest.raises(CopyFailed, match="why not"):
        pair.server.copy_chunk()
    assert pair.server.state is State.SIMPLE


def test_another_message_during_copy_loses_the_stream() -> None:
    pair = Pair().ready()
    copy_in(pair)
    pair.say(m.Query("x"))
    with pytest.raises(RemoteProtocolError) as caught:
        pair.server.copy_chunk()
    assert caught.value.fatal
    assert pair.server.state is State.CLOSED


def test_a_long_message_is_put_together_while_it_comes() -> None:
    pair = Pair(max_message_bytes=1 << 30).ready()
    sql = "SELECT '" + "x\u00e4" * (GROWING_BYTES // 2) + "'"
    data = b"".join(
        encode_frontend(message) for message in (m.Sync(), m.Query(sql), m.Sync(), m.Query("SELECT 2"))
    )
    step = 100_000
    assert pair.server.next_event() is NEED_DATA
    heard: list[object] = []
    most_chunks = 0
    for start in range(0, len(data), step):
        pair.server.receive_data(data[start : start + step])
        while (event := pair.server.next_event()) not in (NEED_DATA, PAUSED):
            heard.append(event)
            if isinstance(event, m.Sync | m.Query):
                pair.server.send(m.ReadyForQuery("I"))
        assert pair.server.buffered <= len(data)
        most_chunks = max(most_chunks, len(pair.server._frames.more))
    assert heard == [m.Sync(), m.Query(sql), m.Sync(), m.Query("SELECT 2")]
    assert most_chunks == 1, "chunks wait to be joined in one step"
    assert not pair.server.buffered


def test_a_long_text_that_is_none_is_refused_by_its_byte() -> None:
    pair = Pair(max_message_bytes=1 << 30).ready()
    text = b"SELECT '" + b"x" * LONG_TEXT_BYTES + b"\xff'\0"
    pair.server.receive_data(b"Q" + (len(text) + 4).to_bytes(4, "big") + text)
    with pytest.raises(RemoteProtocolError, match="0xff") as caught:
        pair.server.next_event()
    assert caught.value.sqlstate == "22021"


def test_a_trickling_message_is_joined_once() -> None:
    pair = Pair().ready()
    message = m.Query("x" * 500_000)
    data = encode_frontend(message)
    for start in range(0, len(data), 1000):
        assert pair.server.next_event() is NEED_DATA
        pair.server.receive_data(data[start : start + 1000])
    assert len(pair.server._frames.more) > 400, "joined while incomplete"
    assert pair.server.next_event() == message


def test_a_large_message_is_not_kept_after_it_was_handled() -> None:
    pair = Pair().ready()
    pair.say(m.Query("x" * 500_000))
    pair.server.next_event()
    pair.answer(m.ReadyForQuery("I"))
    assert pair.server.next_event() is NEED_DATA
    assert len(pair.server.data) == len(pair.server._frames.data) == 0


def _long(kind: bytes, size: int) -> bytes:
    return kind + (size + 4).to_bytes(4, "big") + b"\0" * size


@pytest.mark.parametrize("kind", [b"Q", b"F", b"P", b"B"])
def test_a_long_message_without_room_is_dropped_as_it_comes(kind: bytes) -> None:
    room = Room(3 * HELD_BYTES)
    other = Pair(max_message_bytes=1 << 30, room=room).ready()
    other.server.receive_data(_long(b"Q", 2 * HELD_BYTES)[:1000])
    assert other.server.next_event() is NEED_DATA
    assert room.taken == 2 * HELD_BYTES + 4
    pair = Pair(max_message_bytes=1 << 30, room=room).ready()
    data = _long(kind, 2 * HELD_BYTES)
    pair.server.receive_data(data[:10])
    with pytest.raises(RemoteProtocolError) as caught:
        pair.server.next_event()
    assert (caught.value.sqlstate, caught.value.fatal) == ("53200", False)
    assert caught.value.detail == "A message of 2 MB; all clients' messages have 2 MB, and may have 3 MB."
    pair.server.error(ErrorReport(severity="ERROR", sqlstate="53200", message="out of memory"))
    if pair.server.state is State.SIMPLE:
        pair.server.ready("I")
    for at in range(10, len(data), 100_000):
        pair.server.receive_data(data[at : at + 100_000])
        assert pair.server.next_event() is NEED_DATA
        assert pair.server.buffered == 0, "what nobody will read is kept"
    pair.server.receive_data(encode_frontend(m.Sync()))
    assert pair.server.next_event() == m.Sync()
    other.server.close()
    assert room.taken == 0


def test_a_long_message_needs_what_the_process_has_left_twice() -> None:
    left = 5 * HELD_BYTES
    room = Room(8 * HELD_BYTES, lambda wanted: left)
    assert room.take(2 * HELD_BYTES)
    assert not room.take(3 * HELD_BYTES)
    assert str(room) == "all clients' messages have 2 MB, and may have 8 MB; the server has 5 MB left"
    left = 0
    assert room.take(HELD_BYTES)  # a little
    assert not room.take(2 * HELD_BYTES)
    assert room.taken == 3 * HELD_BYTES


def test_room_is_given_back_once_a_long_message_has_been_read() -> None:
    room = Room(3 * HELD_BYTES)
    pair = Pair(max_message_bytes=1 << 30, room=room).ready()
    for _ in range(2):
        data = encode_frontend(m.Query("x" * 2 * HELD_BYTES))
        pair.server.receive_data(data[:100])
        assert pair.server.next_event() is NEED_DATA
        pair.server.receive_data(data[100:])
        assert isinstance(pair.server.next_event(), m.Query)
        assert room.taken > 2 * HELD_BYTES
        pair.server.has_read()
        assert room.taken == 0
        pair.answer(m.ReadyForQuery("I"))


def test_long_messages_that_are_dropped_are_not_gathered() -> None:
    pair = Pair(max_message_bytes=1 << 30, room=Room(HELD_BYTES)).ready()
    data = _long(b"d", 2 * HELD_BYTES)
    for at in range(0, len(data), 100_000):
        pair.server.receive_data(data[at : at + 100_000])
        assert pair.server.next_event() is NEED_DATA
        assert pair.server.buffered == 0
    copy_in(pair)
    pair.server.receive_data(encode_frontend(m.Sync()) + data[:100_000])
    assert pair.server.copy_chunk() == b""
    assert pair.server.dropping
    assert len(pair.server.copy_chunk() or b"") == 100_000 - 5


def test_message_limit_is_checked_on_the_length_word_alone() -> None:
    pair = Pair(max_message_bytes=1000).ready()
    pair.server.receive_data(b"Q" + (1001).to_bytes(4, "big"))
    with pytest.raises(RemoteProtocolError) as caught:
        pair.server.next_event()
    assert caught.value.fatal
    assert pair.server.state is State.CLOSED


# ---------------------------------------------------------------------------- random input

ready_bytes = st.binary(max_size=200)
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
formats = st.lists(st.integers(0, 1), max_size=3).map(tuple)
frontend_messages = st.one_of(
    st.builds(m.Query, names),
    st.builds(m.Parse, names, names, st.lists(st.integers(0, 2**32 - 1), max_size=3).map(tuple)),
    st.builds(m.Describe, st.sampled_from("SP"), names),
    st.builds(m.Close, st.sampled_from("SP"), names),
    st.builds(m.Execute, names, st.integers(0, 2**31 - 1)),
    st.builds(m.Flush),
    st.builds(m.Sync),
    st.builds(m.FunctionCall, st.binary(max_size=9)),
    st.lists(st.none() | st.binary(max_size=9), max_size=4).flatmap(
        lambda params: st.builds(
            m.Bind,
            names,
            names,
            st.sampled_from([(), (0,), (1,), (1,) * len(params)]),
            st.just(tuple(params)),
            formats,
        )
    ),
)


def drain(connection: Connection, *, seed: int) -> list[object]:
    """Take events as a server would, answering so that reading goes on; errors are listed too."""
    seen: list[object] = []
    while True:
        try:
            event = connection.next_event()
        except RemoteProtocolError as error:
            seen.append((error.sqlstate, error.message, error.fatal))
            if error.fatal:
                assert connection.state is State.CLOSED
                return seen
            if connection.state is State.EXTENDED:
                connection.error(ERROR)
            continue
        match event:
            case m.CopyDone() | m.CopyData() | m.CopyFail():
                raise AssertionError("COPY messages are dropped outside COPY")
            case _ if event is NEED_DATA:
                return seen
            case _ if event is PAUSED:
                if connection.state is State.CLOSED:
                    return seen
                connection.ready("I")
            case m.Parse(_, sql) if len(sql) % 4 == seed:
                seen.append(event)
                connection.error(ERROR)
            case _:
                seen.append(event)


def ready_connection() -> Connection:
    return Pair().ready().server


@settings(max_examples=150)
@given(
    data=st.lists(ready_bytes | frontend_messages.map(encode_frontend), max_size=8).map(b"".join),
    seed=st.integers(0, 3),
)
def test_any_bytes_give_events_or_protocol_errors(data: bytes, seed: int) -> None:
    connection = ready_connection()
    connection.receive_data(data)
    drain(connection, seed=seed)


@settings(max_examples=150)
@given(
    data=st.lists(frontend_messages.map(encode_frontend) | st.binary(max_size=20), max_size=8).map(b"".join),
    cuts=st.lists(st.integers(0, 400), max_size=10),
    seed=st.integers(0, 3),
)
def test_how_bytes_are_split_changes_nothing(data: bytes, cuts: list[int], seed: int) -> None:
    whole = ready_connection()
    whole.receive_data(data)
    expected = drain(whole, seed=seed)

    pieces = ready_connection()
    places = sorted({cut for cut in cuts if cut < len(data)} | {0, len(data)})
    seen: list[object] = []
    for start, stop in pairwise(places):
        pieces.receive_data(data[start:stop])
        seen += drain(pieces, seed=seed)
    assert seen == expected


@settings(max_examples=150)
@given(data=st.binary(max_size=300))
def test_any_first_bytes_are_a_start_up_packet_or_refused(data: bytes) -> None:
    connection = Connection()
    connection.receive_data(data)
    refusals = []
    try:
        event = connection.next_event()
    except RemoteProtocolError as error:
        refusals.append(error)
    if refusals:
        assert refusals[0].fatal
        assert connection.state is State.CLOSED
    else:
        assert event is NEED_DATA or connection.state in (State.STARTUP, State.AUTH, State.CLOSED)


@given(message=frontend_messages)
def test_frontend_messages_survive_the_wire(message: m.FrontendMessage) -> None:
    connection = ready_connection()
    connection.receive_data(encode_frontend(message))
    assert connection.next_event() == message
    assert connection.buffered == 0


@settings(max_examples=100)
@given(
    pieces=st.lists(st.binary(max_size=40), max_size=8),
    cuts=st.lists(st.integers(1, 60), min_size=1, max_size=20),
)
def test_copy_data_survives_any_split(pieces: list[bytes], cuts: list[int]) -> None:
    pair = Pair().ready()
    copy_in(pair)
    data = b"".join(encode_frontend(m.CopyData(piece)) for piece in pieces) + encode_frontend(m.CopyDone())
    heard = b""
    start = turn = 0
    while True:
        chunk = pair.server.copy_chunk()
        if chunk is None:
            break
        heard += chunk
        if not chunk:
            assert start < len(data)
            stop = start + cuts[turn % len(cuts)]
            pair.server.receive_data(data[start:stop])
            start, turn = stop, turn + 1
    assert heard == b"".join(pieces)


optional_text = st.none() | names
reports = st.builds(
    ErrorReport,
    severity=st.sampled_from(["ERROR", "WARNING"]),
    sqlstate=st.sampled_from(["22012", "XX000"]),
    message=names,
    detail=optional_text,
    hint=optional_text,
    position=st.none() | st.integers(1, 10**6),
    internal_position=st.none() | st.integers(1, 10**6),
    internal_query=optional_text,
    where=optional_text,
    schema=optional_text,
    table=optional_text,
    column=optional_text,
    datatype=optional_text,
    constraint=optional_text,
)


@given(report=reports)
def test_every_field_of_a_report_survives_the_wire(report: ErrorReport) -> None:
    pair = Pair().ready()
    pair.say(m.Query(""))
    pair.server.next_event()
    assert pair.answer(m.ErrorResponse(report)) == [m.ErrorResponse(report)]


def test_a_nul_in_a_message_cannot_shift_the_fields() -> None:
    report = ErrorReport(severity="ERROR", sqlstate="22012", message="a\0Mb", hint="c\0")
    pair = Pair().ready()
    pair.say(m.Query(""))
    pair.server.next_event()
    [heard] = pair.answer(m.ErrorResponse(report))
    assert isinstance(heard, m.ErrorResponse)
    assert (heard.report.message, heard.report.hint) == ("aMb", "c")


def test_messages_that_are_dropped_come_in_portions() -> None:
    connection = Connection()
    connection.state = State.SKIP_UNTIL_SYNC
    connection.receive_data(b"H\0\0\0\4" * (2 * DROPPED_AT_ONCE + 5) + b"S\0\0\0\4")
    assert [connection.next_frame() for _ in range(3)] == [DROPPING, DROPPING, ord("S")]
    connection.state = State.SKIP_UNTIL_SYNC
    connection.receive_data(b"H\0\0\0\4" * (2 * DROPPED_AT_ONCE) + b"S\0\0\0\4")
    assert connection.next_event() == m.Sync()
