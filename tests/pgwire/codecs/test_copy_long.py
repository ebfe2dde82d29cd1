"""COPY FROM of long lines: cut from the pieces in which they came they are read as in one text, errors included."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from pgwire.codecs import bytea
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy import long as copy_long
from pgwire.codecs.copy.lines import LineDecoder
from pgwire.codecs.copy.reading import copy_decoder
from pgwire.codecs.errors import DataError

OPTIONS = [
    CopyOptions(),
    CopyOptions(null=""),
    CopyOptions(delimiter=",", null="ab"),
    CopyOptions(delimiter="A"),
    CopyOptions(header="match"),
    CopyOptions(format="csv"),
    CopyOptions(format="csv", null="ab"),
    CopyOptions(format="csv", delimiter="a"),
    CopyOptions(format="csv", quote="a", delimiter=";"),
    CopyOptions(format="csv", quote="'", escape="\\"),
    CopyOptions(format="csv", force_null=frozenset((0, 1)), force_not_null=frozenset((2,))),
]
DIGITS = b"00 0123456789abcdef ABCDEF 0aB a".split()
ODD = [b"\\", b"\\.", b"\\n", b"\\x4", b"\\101", b"\\377", b"\\N", b"\r", b"\n", b'"', b'""', b"'", b"\t", b",", b";", b"a", b"A", b"ab",
       b"\xc3\xa4", b"\xff", b"\0", b" ", b"g"]  # fmt: skip


def _field(rng: Random, options: CopyOptions) -> bytes:
    text = options.format == "text"
    found = b""
    kind = rng.randrange(6)
    if kind < 4:
        found = (b"\\\\x" if text else b"\\x") + b"".join(rng.choices(DIGITS, k=rng.randrange(5)))
    if kind in (3, 4):
        found += b"".join(rng.choices(ODD, k=1 + rng.randrange(2)))
    elif kind == 5:
        found = rng.choice([b"", b"ab", b"\\N", b"plain", b"\xc3\xa4"])
    if not text and rng.randrange(2):
        quote = options.effective_quote.encode()
        found = quote + found + quote
    return found


def _rows(options: CopyOptions, data: bytes, size: int, digits: frozenset[int]) -> Any:
    decoder = copy_decoder(options, "t", ("a", "b", "c"))
    assert isinstance(decoder, LineDecoder)
    decoder.digits = digits
    rows: list[Any] = []
    lines: list[int] = []
    try:
        for at in range(0, len(data) + 1, size):
            found = decoder.feed(data[at : at + size]) if at < len(data) else decoder.finish()
            rows += found.rows
            lines += found.lines
        if len(data) % size:
            found = decoder.finish()
            rows += found.rows
            lines += found.lines
    except DataError as error:
        return error.sqlstate, error.message, error.where
    return [[_value(field) for field in row] for row in rows], lines


def _value(field: Any) -> Any:
    """Return what a bytea reads as: digits as the text that they stand for."""
    if field is None:
        return None
    try:
        return bytea.parse(field)
    except DataError as error:
        return error.sqlstate, error.message


def test_a_long_line_in_pieces_reads_as_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(5)
    seen = 0
    for options, _ in product(OPTIONS, range(250)):
        delimiter = options.effective_delimiter.encode()
        count = rng.choice([3, 3, 3, 3, 2, 4])
        lines = [
            delimiter.join([_field(rng, options) for _ in range(count)]) for _ in range(rng.randrange(1, 3))
        ]
        if options.header:
            lines.insert(0, delimiter.join([b"a", b"b", b"c"]))
        data = b"\n".join(lines) + rng.choice([b"\n", b"\n", b"", b"\r\n"])
        size = rng.randrange(1, 12)
        whole = _rows(options, data, size, frozenset())
        with monkeypatch.context() as patch:
            patch.setattr(copy_long, "LINE_BYTES", 1)
            patch.setattr(copy_long, "FIELD_BYTES", 1)
            made = []
            patch.setattr(
                copy_long, "Digits", lambda pieces, made=made: made.append(1) or bytea.Digits(pieces)
            )
            assert _rows(options, data, size, frozenset((0, 1))) == whole, (options, data, size)
            seen += len(made)
    assert seen > 500  # it was the other way indeed


@pytest.mark.parametrize("sizes", [(1,), (2,), (3, 5), (1 << 12,), (7, 1 << 12)])
def test_digits_in_any_pieces_mean_the_same(sizes: tuple[int, ...]) -> None:
    value = bytes(range(256)) * 64
    text = value.hex().encode()
    pieces: list[bytea.Piece] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        piece = text[at : at + size]
        pieces.append(bytea.packed(piece if len(pieces) % 3 else piece.upper()))
        at += size
    assert b"".join(map(bytea.unpacked, pieces)).lower() == text
    assert bytea.Digits(pieces).value() == value
    assert bytea.Digits(pieces).beginning.lower().startswith("\\x" + text[:100].decode())
    with pytest.raises(DataError, match="odd number of digits"):
        bytea.Digits([*pieces, b"a"]).value()
