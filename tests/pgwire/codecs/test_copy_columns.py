"""Reading COPY data by column gives what reading it field by field gives, or declines."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pgwire.codecs import domain
from pgwire.codecs.columnar import values_of
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.columns import PlainSplitter, column_reader
from pgwire.codecs.copy.reading import copy_decoder
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_decoder
from pgwire.codecs.settings import DEFAULT, CodecSettings
from pgwire.codecs.typmod import typmod_function
from tests.pgwire.codecs import samples

TEXT = CopyOptions()
CSV = CopyOptions(format="csv")


def numeric(precision: int, scale: int) -> int:
    return (precision << 16 | scale) + 4


def stamp(r: random.Random, zone: str = "") -> str:
    fraction = r.choice(["", ".5", ".123456", ".10"])
    return (
        f"{r.randint(1, 9999):04}-{r.randint(1, 12):02}-{r.randint(1, 28):02} "
        f"{r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}{fraction}{zone}"
    )


def hexes(r: random.Random) -> str:
    text = f"{r.getrandbits(128):032x}"
    return "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])


def decimal(r: random.Random, digits: int, scale: int) -> str:
    return f"{r.choice(['', '-'])}{r.randrange(10**digits)}{r.choice(['', f'.{r.randrange(10**scale):0{scale}}'])}"


# name -> (oid, typmod, a maker of texts that are plain)
Maker = Callable[[random.Random], str]
PLAIN: dict[str, tuple[int, int, Maker]] = {
    "int2": (domain.INT2, -1, lambda r: str(r.randint(-(2**15), 2**15 - 1))),
    "int4": (domain.INT4, -1, lambda r: f"{r.randint(-(2**31), 2**31 - 1):05}"),
    "int8": (domain.INT8, -1, lambda r: str(r.randint(-(2**63), 2**63 - 1))),
    "float8": (domain.FLOAT8, -1, lambda r: repr(r.uniform(-1, 1) * 10 ** r.randint(-200, 200))),
    "float4": (domain.FLOAT4, -1, lambda r: repr(r.uniform(-1, 1) * 10 ** r.randint(-20, 30))),
    "numeric(12,2)": (domain.NUMERIC, numeric(12, 2), lambda r: decimal(r, 9, 2)),
    "numeric(38,10)": (domain.NUMERIC, numeric(38, 10), lambda r: decimal(r, 20, 7)),
    "numeric": (domain.NUMERIC, -1, lambda r: decimal(r, 30, 6)),
    "text": (domain.TEXT, -1, lambda r: r.choice(["", "ä", " a ", "x" * 70, "it's"])),
    "varchar(4)": (domain.VARCHAR, 8, lambda r: r.choice(["", "ä", "äöüß", "abcd"])),
    "char(4)": (domain.BPCHAR, 8, lambda r: r.choice(["", "ä", "äöü", "abcd", "a "])),
    "date": (domain.DATE, -1, lambda r: stamp(r)[:10]),
    "timestamp": (domain.TIMESTAMP, -1, stamp),
    "timestamptz": (domain.TIMESTAMPTZ, -1, lambda r: stamp(r, r.choice(["+00", "-05", "+14"]))),
    "timestamptz, zone of the session": (domain.TIMESTAMPTZ, -1, stamp),
    "bool": (domain.BOOL, -1, lambda r: r.choice(["t", "f", "true", "false", "1", "0"])),
    "uuid": (domain.UUID, -1, hexes),
}  # fmt: skip

ODD = [
    "", " ", "1 ", " 1", "0x10", "1_000", "+1", "1e3", "1E-3", "--1", "-", ".", "-.", "1.", ".5", "-0", "-0.00",
    "1.2.3", "1-2", "nan", "NaN", "inf", "-Infinity", "1e400", "1e-400", "5e-324", "1e39", "1e-46", "1e-310", "0e5",
    "32768", "2147483648", "9223372036854775808", "99999999999", "1.005", "9999999999.995", "0" * 45, "1" * 39,
    "0." + "0" * 40 + "1", "2024-02-30", "2024-1-1", "20240101", "0000-01-01", "0001-01-01", "2024-01-02 24:00:00",
    "2024-01-02 03:04:60", "2024-01-02 03:04", "2024-01-02 03", "2024-01-02T03:04:05", "2024-01-02 03:04:05.1234567",
    "2024-01-02 03:04:05Z", "2024-01-02 03:04:05+05:30", "2024-01-02 03:04:05+0530", "2024-01-02 03:04:05-16",
    "0001-01-01 00:00:00+14", "9999-12-31 23:59:59-14", "0000-12-31 23:59:59", "0001-01-01 00:00:00+00", "infinity",
    "now", "today", "yes", "on", "T", "TRUE", "tr", "2", "abcde", "abcd ", "äöüßx", "abcd  x",
    "00112233445566778899aabbccddeeff", "{00112233-4455-6677-8899-aabbccddeeff}",
    "0011-2233-4455-6677-8899-aabb-ccdd-eeff", "00112233-4455-6677-8899-AABBCCDDEEFF",
    "0011223-34455-6677-8899-aabbccddeeff", "00112233-4455-6677-8899-aabbccddeefg", "         -    -    -    -            ",
]  # fmt: skip


def expected(oid: int, typmod: int, texts: list[str | None], settings: CodecSettings) -> list[Any] | None:
    """The values by the careful path, None if one does not read."""
    decode, coerce = text_decoder(oid, settings), typmod_function(oid, typmod)
    try:
        values = [None if t is None else decode(t) for t in texts]
        return values if coerce is None else [None if v is None else coerce(v) for v in values]
    except DataError:
        return None


def plain(oid: int, typmod: int, texts: list[str | None], settings: CodecSettings) -> list[Any] | None:
    reader = column_reader(oid, typmod, settings)
    assert reader is not None
    array = reader(pa.array(texts, pa.string()))
    return None if array is None else values_of(array)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_columns_are_read_by_column_and_equal(name: str) -> None:
    oid, typmod, make = PLAIN[name]
    r = random.Random(name)
    for nulls in (0.0, 0.2, 1.0):
        texts = [None if r.random() < nulls else make(r) for _ in range(500)]
        wanted = expected(oid, typmod, texts, DEFAULT)
        found = plain(oid, typmod, texts, DEFAULT)
        assert wanted is not None
        assert found is not None
        assert [repr(v) for v in found] == [repr(v) for v in wanted]


ALL_ODD = [*ODD, *samples._DATES[::4], *samples._STAMPS[::4]]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("settings", [DEFAULT, CodecSettings(time_zone="America/New_York", date_order="DMY")])
def test_odd_texts_are_declined_or_read_the_same(name: str, settings: CodecSettings) -> None:
    oid, typmod, make = PLAIN[name]
    r = random.Random(1)
    for odd in ALL_ODD:
        cases: list[list[str | None]] = [[odd], [None, make(r), odd, make(r)]]
        for texts in cases:
            found = plain(oid, typmod, texts, settings)
            if found is None:
                continue
            wanted = expected(oid, typmod, texts, settings)
            assert wanted is not None, f"{odd!r} must not read"
            # numeric has no negative zero, Decimal does
            assert [
                str(v).replace("-0.00", "0.00") if oid == domain.NUMERIC and not v else repr(v) for v in found
            ] == [
                str(v).replace("-0.00", "0.00") if oid == domain.NUMERIC and not v else repr(v)
                for v in wanted
            ], odd


def test_slices_of_arrays_are_read_alike() -> None:
    for oid, typmod, make in PLAIN.values():
        r = random.Random(2)
        texts: list[str | None] = [make(r) for _ in range(20)]
        reader = column_reader(oid, typmod, DEFAULT)
        assert reader is not None
        assert values_of(reader(pa.array(["x", *texts, "x"]).slice(1, 20))) == expected(
            oid, typmod, texts, DEFAULT
        )


FIELDS = [
    "", "a", "\\N", "N", "ä", '"', '""', '"a"', '"a,b"', '"a""b"', 'a"b', '"a"b', '"a\nb"', '"', "\\", "\\.", "\\n", "a\\Nb",
    "NULL", " ", "\r", "\0", '"\r\n"', "\t", ",",
]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        TEXT, CSV, CopyOptions(null="NULL"), CopyOptions(null=""), CopyOptions(delimiter="|"), CopyOptions(null="\\X"),
        CopyOptions(format="csv", null="NULL"), CopyOptions(format="csv", delimiter="]", quote="'"),
        CopyOptions(format="csv", quote="^"), CopyOptions(format="csv", escape="\\"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_split_blocks_hold_what_the_decoder_finds(options: CopyOptions, width: int, eol: str) -> None:
    r = random.Random(f"{options}{width}{eol}")
    splitter = PlainSplitter(options, width)
    delimiter = options.effective_delimiter
    believed = 0
    quoted = [f.replace('"', options.effective_quote) for f in FIELDS]
    for _ in range(250):
        fields = quoted if r.random() < 0.5 else ["a", "", options.effective_null, quoted[7], "b c"]
        few = [r.choice(fields) for _ in range(3)]
        lines = [
            delimiter.join(r.choice(few) for _ in range(width if r.random() < 0.99 else r.randint(1, 4)))
            for _ in range(r.randint(1, 4))
        ]
        block = "".join(line + eol for line in lines).encode()
        columns = splitter.split(block, crlf=eol == "\r\n")
        if columns is None:
            continue
        believed += 1
        decoder = copy_decoder(options, "t", [f"c{i}" for i in range(width)])
        # Lines before it tell how lines end.
        first = (delimiter.join("x" * width) + eol).encode()
        assert len(decoder.feed(first).rows) == 1
        rows = decoder.feed(block).rows
        assert [list(row) for row in zip(*(c.to_pylist() for c in columns), strict=True)] == rows, block
        assert decoder.between_rows, block  # type: ignore[attr-defined]
    assert believed > 5


def test_cut_finds_row_ends_outside_quotes() -> None:
    splitter = PlainSplitter(CSV, 2)
    assert splitter.cut(b'a,b\n"c\nd",e\n"f\n') == len(b'a,b\n"c\nd",e\n')
    assert splitter.cut(b"a,b") == 0
    assert PlainSplitter(TEXT, 2).cut(b'a\t"\nb') == 4


@pytest.mark.parametrize(("null", "width"), [(None, 2), (None, 1), ("a", 2)])
def test_quotes_anywhere_split_as_the_row_decoder_splits_them(null: str | None, width: int) -> None:
    options = CopyOptions(format="csv", null=null)
    splitter = PlainSplitter(options, width)
    r = random.Random(f"{null} {width}")
    plain = 0
    for _ in range(6000):
        if r.random() < 0.5:
            text = "".join(r.choice('"",,\n\nab') for _ in range(r.randint(1, 14))) + "\n"
        else:
            fields = ("".join(r.choice('ab,\n"') for _ in range(r.randint(0, 3))) for _ in range(width * 3))
            cells = [f'"{field}"' if r.random() < 0.7 else field for field in fields]
            text = "".join(",".join(cells[i : i + width]) + "\n" for i in range(0, len(cells), width))
        found = splitter.split(text.encode())
        if found is None:
            continue
        plain += '"' in text
        decoder = copy_decoder(options, "t", ["x", "y"][:width])
        rows = decoder.feed(text.encode()).rows + decoder.finish().rows
        assert [list(row) for row in zip(*(column.to_pylist() for column in found), strict=True)] == rows, (
            text
        )
    assert plain > 100
