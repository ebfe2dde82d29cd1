"""A row in pieces is the row: every way of writing a long one gives the bytes that the short one has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgwire.codecs import bytea, domain, long_rows, rows
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy import writing as copy_out
from pgwire.codecs.copy.writing import copy_long_row, copy_row_encoder
from pgwire.codecs.errors import DataError
from pgwire.codecs.long_rows import long_data_row
from pgwire.codecs.rows import LongRows, row_encoder
from pgwire.codecs.settings import CodecSettings

TYPES = (domain.INT4, domain.TEXT, domain.BYTEA, domain.JSONB, domain.FLOAT8, 1009, domain.VARCHAR)
ROWS = [
    (
        1,
        "plain text, longer than some pieces",
        b"\x00\xff" * 40,
        '{"a": "b\\nc"}',
        0.1,
        ("x", "y z", None),
        "",
    ),
    (None, None, None, None, None, None, None),
    (7, 'tab\t, back\\slash, "quote", line\r\nend \xe4\u20ac\U0001f600' * 3, b"", "null", -0.0, (), "\\."),
    (2, "\\N", b"\\x", '"\\\\"', 1e300, ("a,b", '"'), "a;b|c,d"),
]


@pytest.fixture(params=[1, 2, 7, 1 << 18])
def _small_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    size = max(request.param, 2)  # half of one is a byte of bytea
    monkeypatch.setattr(long_rows, "PIECE_BYTES", size)
    monkeypatch.setattr(copy_out, "PIECE_BYTES", size)


def joined(pieces: Iterator[bytes | memoryview]) -> bytes:
    return b"".join(pieces)


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("formats", [(), (1,), (0, 1, 0, 1, 0, 1, 1)])
@pytest.mark.parametrize("settings", [CodecSettings(), CodecSettings(bytea_output="escape")])
def test_data_rows(formats: tuple[int, ...], settings: CodecSettings) -> None:
    long, short = long_data_row(TYPES, formats, settings), row_encoder(TYPES, formats, settings)
    for row in ROWS:
        assert joined(long(row)) == bytes(short([row])[0])


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize(
    "options",
    [
        CopyOptions(),
        CopyOptions(delimiter="|", null="nix"),
        CopyOptions(format="binary"),
        CopyOptions(format="csv"),
        CopyOptions(format="csv", delimiter=";", quote="'", escape="\\", null="nix"),
        CopyOptions(format="csv", force_quote=frozenset((1, 2))),
    ],
    ids=str,
)
def test_rows_of_copy(options: CopyOptions) -> None:
    for settings in (CodecSettings(), CodecSettings(encoding="EUC_JP"), CodecSettings(bytea_output="escape")):
        long = copy_long_row(TYPES, options, settings)
        short = copy_row_encoder(TYPES, options, settings, framed=True)
        for row in ROWS:
            try:
                expected: object = short([row])[0]
            except DataError as error:
                expected = (error.sqlstate, error.message)
            found: object
            try:
                found = joined(long(row))
            except DataError as error:
                found = (error.sqlstate, error.message)
            assert found == expected


def test_one_column_of_csv_that_looks_like_the_end_is_quoted() -> None:
    options = CopyOptions(format="csv")
    long, short = (
        copy_long_row((domain.TEXT,), options, CodecSettings()),
        copy_row_encoder((domain.TEXT,), options, CodecSettings(), framed=True),
    )
    for text in ("\\.", "\\.x", "a"):
        assert joined(long((text,))) == short([(text,)])[0]


def test_rows_of_many_bytes_are_not_put_together() -> None:
    encode = row_encoder((domain.TEXT,), (), CodecSettings())
    with pytest.raises(LongRows):
        encode([("x" * 9000,)] * (rows.LONG_BYTES // 9000 + 1))
    assert encode([("x" * 9000,)] * 10)[1] == 10


def test_a_message_is_as_long_as_postgresql_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_rows, "MAX_MESSAGE_BYTES", 100)
    with pytest.raises(DataError) as caught:
        joined(long_data_row((domain.TEXT,), (), CodecSettings())(("x" * 100,)))
    assert caught.value.sqlstate == "54000"


def test_a_long_bytea_is_not_printed_before_it_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[int] = []

    def counting(value: bytes) -> str:
        printed.append(len(value))
        return bytea.show_hex(value)

    monkeypatch.setattr(rows, "text_printer", lambda oid, settings: counting if oid == domain.BYTEA else str)
    encode = row_encoder((domain.INT4, domain.BYTEA, domain.BYTEA), (), CodecSettings())
    with pytest.raises(LongRows):
        encode([(1, b"x" * (rows.LONG_BYTES + 1), None)])
    assert printed == []
    assert encode([(1, b"x", b"y")])[1] == 1
    assert printed == [1, 1]
