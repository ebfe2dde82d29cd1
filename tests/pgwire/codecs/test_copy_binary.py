"""COPY FROM in binary format, whatever pieces it comes in."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from pgwire.codecs.copy import BINARY_SIGNATURE
from pgwire.codecs.copy.binary import BinaryDecoder
from pgwire.codecs.copy.lines import Rest
from pgwire.codecs.errors import DataError

ROWS: list[list[bytes | None]] = [[b"", None, b"abc"], [None, None, None], [b"x" * 300, b"\x00", b""]]


def encoded(rows: Sequence[Sequence[bytes | None]], extension: bytes = b"ext") -> bytes:
    def field(value: bytes | None) -> bytes:
        return struct.pack(">i", -1 if value is None else len(value)) + (value or b"")

    head = BINARY_SIGNATURE + struct.pack(">ii", 0, len(extension)) + extension
    return head + b"".join(struct.pack(">h", len(row)) + b"".join(map(field, row)) for row in rows)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 19, 64, 1000])
@pytest.mark.parametrize("end", [b"\xff\xff", b""])
def test_pieces_of_any_size(size: int, end: bytes) -> None:
    data = encoded(ROWS) + end
    decoder = BinaryDecoder("t", ("a", "b", "c"))
    rows: list[list[bytes | None]] = []
    lines: list[int] = []
    for at in range(0, len(data), size):
        before = decoder.save()
        decoder.feed(data[at : at + size])
        decoder.restore(before)
        found = decoder.feed(data[at : at + size])
        rows += found.rows
        lines += found.lines
    assert decoder.finish().rows == []
    assert rows == ROWS
    assert lines == [1, 2, 3]


def test_an_end_within_a_row_names_line_and_column() -> None:
    data = encoded(ROWS)
    last = len(encoded(ROWS[:2]))
    for cut, column in (
        (last + 2, "a"),
        (last + 5, "a"),
        (last + 305, "a"),
        (last + 306, "b"),
        (len(data) - 1, "c"),
    ):
        for size in (1, 7, len(data)):
            decoder = BinaryDecoder("t", ("a", "b", "c"))
            for at in range(0, cut, size):
                decoder.feed(data[at : min(at + size, cut)])
            with pytest.raises(DataError, match="unexpected EOF in COPY data") as caught:
                decoder.finish()
            assert caught.value.where == f"COPY t, line 3, column {column}"


def test_a_long_field_is_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = 0
    whole = Rest.whole

    def counted(self: Rest, data: bytes = b"") -> bytes:
        nonlocal joined
        made = whole(self, data)
        joined += len(made)
        return made

    monkeypatch.setattr(Rest, "whole", counted)
    row: list[bytes | None] = [bytes(400_000), bytes(600_000)]
    data = encoded([row])
    decoder = BinaryDecoder("t", ("a", "b"))
    found: list[list[bytes | None]] = []
    for at in range(0, len(data), 1000):
        decoder.save()
        found += decoder.feed(data[at : at + 1000]).rows
    assert found == [row]
    assert joined < 1.2 * len(data)
