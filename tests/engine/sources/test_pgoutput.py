"""pgoutput's messages as PostgreSQL 15 sent them (recorded), and bytes that it never sends."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as strategies

from engine.feeds.sources.changes import UNCHANGED
from engine.feeds.sources.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    MalformedMessage,
    Message,
    Other,
    Relation,
    RelationColumn,
    Truncate,
    Update,
    decode,
    lsn_of,
    lsn_text,
)

REC, FULL = 0x642A, 0x6431
RECORDED: list[tuple[bytes, Message]] = [
    (b"B\x00\x00\x00\x00SL\xdbh\x00\x03\x03\xd1\x82\x96\x9b2\x00\n\x11\x8c",
     Begin(0x534CDB68, 848623304088370, 659852)),
    (b"R\x00\x00d*public\x00rec\x00d\x00\x03\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff\x00v\x00\x00\x00\x00\x19\xff\xff\xff\xff"
     b"\x00n\x00\x00\x00\x06\xa4\x00\x06\x00\x06",
     Relation(REC, "public", "rec", "d", (RelationColumn("id", 23, -1, True), RelationColumn("v", 25, -1, False),
                                          RelationColumn("n", 1700, 393222, False)))),
    (b"I\x00\x00d*N\x00\x03t\x00\x00\x00\x011t\x00\x00\x00\x02\xc3\xa9t\x00\x00\x00\x041.50",
     Insert(REC, ("1", "é", "1.50"))),
    (b"I\x00\x00d*N\x00\x03t\x00\x00\x00\x012nn", Insert(REC, ("2", None, None))),
    (b"U\x00\x00d*N\x00\x03t\x00\x00\x00\x013ut\x00\x00\x00\x042.00",
     Update(REC, "", None, ("3", UNCHANGED, "2.00"))),
    (b"U\x00\x00d*K\x00\x03t\x00\x00\x00\x013nnN\x00\x03t\x00\x00\x00\x014ut\x00\x00\x00\x042.00",
     Update(REC, "K", ("3", None, None), ("4", UNCHANGED, "2.00"))),
    (b"D\x00\x00d*K\x00\x03t\x00\x00\x00\x012nn", Delete(REC, "K", ("2", None, None))),
    (b"U\x00\x00d1O\x00\x02t\x00\x00\x00\x011t\x00\x00\x00\x01aN\x00\x02t\x00\x00\x00\x011t\x00\x00\x00\x01b",
     Update(FULL, "O", ("1", "a"), ("1", "b"))),
    (b"D\x00\x00d1O\x00\x02t\x00\x00\x00\x011t\x00\x00\x00\x01b", Delete(FULL, "O", ("1", "b"))),
    (b"T\x00\x00\x00\x02\x00\x00\x00d*\x00\x00d1", Truncate((REC, FULL))),
    (b"C\x00\x00\x00\x00\x00SL\xdbh\x00\x00\x00\x00SL\xde\x08\x00\x03\x03\xd1\x82\x96\x9b2",
     Commit(0x534CDB68, 0x534CDE08, 848623304088370)),
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), RECORDED)
def test_what_postgresql_sends(data: bytes, message: Message) -> None:
    assert decode(data) == message


@pytest.mark.parametrize(("data", "message"), RECORDED)
def test_messages_that_are_cut_off_or_too_long(data: bytes, message: Message) -> None:
    for end in range(len(data)):
        with pytest.raises(MalformedMessage) as error:
            decode(data[:end])
        assert error.value.sqlstate == "08P01"
    with pytest.raises(MalformedMessage):
        decode(data + b"\0")


@given(strategies.binary(max_size=200))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        decode(data)


def test_what_changes_nothing_here() -> None:
    assert decode(b"O\0\0\0\0\0\0\0\x01origin\0") == Other("O")
    assert decode(b"Y\0\0\0\x01public\0mood\0") == Other("Y")


def test_log_sequence_numbers() -> None:
    assert lsn_of("16/B374D848") == 0x16B374D848
    assert lsn_text(0x16B374D848) == "16/B374D848"
    assert lsn_text(lsn_of("0/0")) == "0/0"
