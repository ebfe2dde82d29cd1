"""COPY FROM of lines of many megabytes: how often one is held at a time while it is read."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any, Final

import pytest

from engine.changes.bulk.read_split import Reading, read_stream, worker_env
from pgwire.codecs.copy import CopyOptions
from planner.facts import BYTEA
from tests.engine.bulk.loads import TEXT, spec

LINE: Final = 8 << 20
LINES: Final = 3
PIECE: Final = 64 << 10


class Arriving:
    """What a client sends, made as it is read: nothing of it is kept."""

    def __init__(self, head: bytes, filling: bytes, tail: bytes = b"") -> None:
        self._pieces = self._made(head, filling, tail)

    @staticmethod
    def _made(head: bytes, filling: bytes, tail: bytes) -> Iterator[bytes]:
        yield b"short\n" * 4
        for _ in range(LINES):
            if head:
                yield head
            for _ in range(LINE // PIECE):
                yield filling * (PIECE // len(filling))
            yield tail + b"\n"

    def read(self, size: int, /) -> bytes:
        return next(self._pieces, b"")


@pytest.mark.parametrize(("head", "most"), [(b"", 2.5), (b"a\\tb", 5.2)], ids=["by column", "by row"])
def test_a_long_line_is_held_a_few_times_at_most(head: bytes, most: float) -> None:
    # by row: the batch that was yielded last is a view of its value, which Python has
    load = spec(CopyOptions(), TEXT)
    reading = Reading()
    tracemalloc.start()
    try:
        for batch in read_stream(load, worker_env(), Arriving(head, b"x"), reading):
            assert batch.num_rows
            del batch
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reading.rows == 4 + LINES
    assert peak < most * LINE, f"{peak / LINE:.1f} copies"


@pytest.mark.parametrize(
    ("format_", "head", "tail"),
    [("text", b"\\\\x", b""), ("csv", b"\\x", b""), ("csv", b'"\\x', b'"')],
    ids=["text", "csv", "quoted"],
)
def test_a_long_bytea_is_never_one_text(format_: Any, head: bytes, tail: bytes) -> None:
    """Its digits, twice as long as itself, are held as what they mean."""
    load = spec(CopyOptions(format=format_), BYTEA)
    reading = Reading()
    tracemalloc.start()
    try:
        for batch in read_stream(load, worker_env(), Arriving(head, b"0f", tail), reading):
            if batch.num_rows == 1:
                assert batch.column(0)[0].as_buffer().size == LINE // 2
            del batch
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reading.rows == 4 + LINES
    assert peak < 1.7 * LINE, f"{peak / LINE:.1f} times the line"
