"""COPY FROM of lines that are long, or have fields without end: what is held of them at once."""

from __future__ import annotations

import tracemalloc

import pytest

from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.reading import CopyDecoder, copy_decoder
from pgwire.codecs.errors import DataError

LINE_BYTES = 6_000_000
CHUNK_BYTES = 1 << 16

FIELD = b"x" * 96
COUNT = LINE_BYTES // 100

LINES = {
    "text": b"\t".join([FIELD] * COUNT) + b"\n",
    "text with an escape": b"\t".join([FIELD] * COUNT) + b"\\n\n",
    "csv": b",".join([FIELD] * COUNT) + b"\n",
    "csv with quotes": b",".join([b'"%b"' % FIELD] * COUNT) + b"\n",
}


def _feed(decoder: CopyDecoder, line: bytes) -> None:
    for at in range(0, len(line), CHUNK_BYTES):
        decoder.feed(line[at : at + CHUNK_BYTES])


@pytest.mark.parametrize("header", [None, "match"])
@pytest.mark.parametrize("name", LINES)
def test_a_line_of_fields_without_end_is_held_three_times_at_most(name: str, header: str | None) -> None:
    line = LINES[name]
    options = CopyOptions(format=name.split()[0], header=header)
    decoder = copy_decoder(options, "t", ["a", "b"])
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            _feed(decoder, line)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    message = "extra data after last expected column"
    if header is not None:
        message = f"wrong number of fields in header line: got {COUNT}, expected 2"
    assert str(caught.value) == message
    assert peak < 3 * len(line), f"{peak / len(line):.1f} times the line"
