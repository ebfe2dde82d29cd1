"""Client encodings: names, round trips, errors, streams; beside PostgreSQL they are in ``tests/differential``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgwire.codecs.columnar import batch_encoder
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.encoding import Transcoder
from pgwire.codecs.copy.reading import copy_decoder
from pgwire.codecs.copy.writing import copy_batch_encoder, copy_row_encoder
from pgwire.codecs.domain import INT4, JSONB, TEXT
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import binary_input, binary_output
from pgwire.codecs.rows import row_encoder
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text.encodings import NAMES, UTF8, canonical, convertible, encoding
from pgwire.connection import Connection
from pgwire.errors import ErrorReport, RemoteProtocolError
from pgwire.messages import decode
from pgwire.messages.encode import cached_row_description
from pgwire.state import State

T = TypeVar("T")
U = TypeVar("U")
FOREIGN = [name for name in NAMES if convertible(name) and name not in ("UTF8", "SQL_ASCII")]
SJIS = CodecSettings(encoding="SJIS")
SO = b"\x83\x5c"  # the kana whose second byte is a backslash

SAMPLES = {
    "EUC_JP": ("ソaｱ丂", b"\xa5\xbda\x8e\xb1\x8f\xb0\xa1"), "EUC_CN": ("中文", b"\xd6\xd0\xce\xc4"),
    "EUC_KR": ("한글", b"\xc7\xd1\xb1\xdb"), "EUC_TW": ("中乂", b"\xc4\xe3\x8e\xa2\xa1\xa1"),
    "EUC_JIS_2004": ("か゚か", b"\xa4\xf7\xa4\xab"), "SHIFT_JIS_2004": ("か゚か", b"\x82\xf5\x82\xa9"),
    "SJIS": ("ソ①ｱ", SO + b"\x87\x40\xb1"), "BIG5": ("功", b"\xa5\x5c"), "GBK": ("誠", b"\xd5\x5c"),
    "GB18030": ("€😀", b"\xa2\xe3\x94\x39\xfc\x36"), "UHC": ("똠", b"\x8c\x63"),
    "LATIN1": ("café", b"caf\xe9"), "LATIN9": ("€", b"\xa4"), "WIN1252": ("€“", b"\x80\x93"),
    "KOI8R": ("Привет", b"\xf0\xd2\xc9\xd7\xc5\xd4"), "WIN866": ("Привет", b"\x8f\xe0\xa8\xa2\xa5\xe2"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str) -> None:
    text, data = SAMPLES[name]
    assert encoding(name).encode(text) == data
    assert encoding(name).decode(data) == text


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("latin1", "LATIN1"), ("Latin-1", "LATIN1"), ("ISO_8859-1", "LATIN1"), ("iso 8859 15", "LATIN9"),
        ("win1252", "WIN1252"), ("Windows-1252", "WIN1252"), ("WIN", "WIN1251"), ("unicode", "UTF8"),
        ("utf-8", "UTF8"), ("shift_jis", "SJIS"), ("Mskanji", "SJIS"), ("sql_ascii", "SQL_ASCII"),
        ("koi8", "KOI8R"), ("EUC-JP", "EUC_JP"), ("tcvn5712", "WIN1258"), ("cp1252", None), ("", None),
        ("latin11", None), ("lätin1", None), ("-" * 60 + "utf8", None),
    ],
)  # fmt: skip
def test_names(spelled: str, name: str | None) -> None:
    assert canonical(spelled) == name


def attempt(function: Callable[[T], U], argument: T) -> U | str:
    """Return the result, or the SQLSTATE of the error."""
    try:
        return function(argument)
    except DataError as error:
        return "error " + error.sqlstate


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(FOREIGN), data=st.binary(max_size=12))
def test_any_bytes(name: str, data: bytes) -> None:
    """What decodes means the same after a round trip; what does not is no text or unknown."""
    of = encoding(name)
    read = attempt(of.decode, data)
    if read not in ("error 22021", "error 22P05"):
        assert of.decode(of.encode(read)) == read
        assert attempt(of.verify, data) is None


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(FOREIGN),
    text=st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8),
)
def test_any_text(name: str, text: str) -> None:
    """A text, which has no NUL, goes out in its own bytes character by character, or one of them is missing."""
    of = encoding(name)
    each = [attempt(of.encode, character) for character in text]
    sent = attempt(of.encode, text)
    if "error 22P05" in each:
        assert sent == "error 22P05"
    elif name not in ("EUC_JIS_2004", "SHIFT_JIS_2004"):  # which have bytes for two characters
        assert sent == b"".join(piece for piece in each if isinstance(piece, bytes))


@pytest.mark.parametrize(
    ("name", "data", "sqlstate", "message"),
    [
        ("SJIS", b"a\x83\x20", "22021", 'invalid byte sequence for encoding "SJIS": 0x83 0x20'),
        ("SJIS", b"a\x83", "22021", 'invalid byte sequence for encoding "SJIS": 0x83'),
        ("EUC_JP", b"\x8f\xa1", "22021", 'invalid byte sequence for encoding "EUC_JP": 0x8f 0xa1'),
        ("LATIN1", b"a\0", "22021", 'invalid byte sequence for encoding "LATIN1": 0x00'),
        ("UTF8", b"a\xe9bcd", "22021", 'invalid byte sequence for encoding "UTF8": 0xe9 0x62 0x63'),
        ("SQL_ASCII", b"\xff", "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
        ("WIN1252", b"a\x81", "22P05",
         'character with byte sequence 0x81 in encoding "WIN1252" has no equivalent in encoding "UTF8"'),
        ("BIG5", b"\xff\x40", "22P05",
         'character with byte sequence 0xff 0x40 in encoding "BIG5" has no equivalent in encoding "UTF8"'),
    ],
)  # fmt: skip
def test_wrong_bytes(name: str, data: bytes, sqlstate: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        encoding(name).decode(data)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


# -- values ----------------------------------------------------------------------------------------------------


def framed(*cells: bytes) -> bytes:
    body = len(cells).to_bytes(2, "big") + b"".join(len(c).to_bytes(4, "big") + c for c in cells)
    return b"D" + (len(body) + 4).to_bytes(4, "big") + body


def test_rows_by_value_and_by_column() -> None:
    rows: list[tuple[Any, ...]] = [("ソ", 1), ("a", 2)]
    batch = pa.RecordBatch.from_pydict({"t": ["ソ", "a"], "n": pa.array([1, 2], pa.int32())})
    for formats, one in (((0,), b"1"), ((1,), b"\0\0\0\1")):
        two = one[:-1] + bytes([one[-1] + 1])
        wanted = framed(SO, one) + framed(b"a", two)
        assert bytes(row_encoder((TEXT, INT4), formats, SJIS)(rows)[0]) == wanted
        assert bytes(batch_encoder((TEXT, INT4), formats, SJIS)(batch)[0]) == wanted


def test_characters_that_rows_cannot_hold() -> None:
    latin = CodecSettings(encoding="LATIN1")
    batch = pa.RecordBatch.from_pydict({"t": ["a", "€"]})
    for encode in (
        lambda: row_encoder((TEXT,), (0,), latin)([("€",)]),
        lambda: batch_encoder((TEXT,), (0,), latin)(batch),
        lambda: batch_encoder((TEXT,), (1,), latin)(batch),
    ):
        with pytest.raises(DataError, match="0xe2 0x82 0xac") as caught:
            encode()
        assert caught.value.sqlstate == "22P05"


@pytest.mark.parametrize(
    ("oid", "value", "data"),
    [
        (TEXT, "ソ", SO), (JSONB, '"ソ"', b'\x01"' + SO + b'"'),
        (1009, ("ソ",), bytes.fromhex("0000000100000000000000190000000100000001 00000002") + SO),
    ],
)  # fmt: skip
def test_binary_forms(oid: int, value: Any, data: bytes) -> None:
    assert binary_output(oid, value, SJIS) == data
    assert binary_input(oid, data, SJIS) == value


# -- COPY ------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text("aソ功|\\\t ", max_size=4), min_size=1, max_size=6),
    st.integers(1, 9),
    st.sampled_from(["text", "csv"]),
)
def test_copy_reads_what_it_wrote(texts: list[str], step: int, format_: Any) -> None:
    """Second bytes that look like delimiters and backslashes are part of their characters."""
    options = CopyOptions(format=format_, delimiter="|", null="\\N")
    body = bytes(copy_row_encoder((TEXT,), options, SJIS)([(text,) for text in texts])[0])
    by_column = copy_batch_encoder((TEXT,), options, SJIS)(pa.RecordBatch.from_pydict({"t": texts}))[0]
    assert bytes(by_column) == body
    transcoder, decoder = Transcoder(encoding("SJIS")), copy_decoder(options, "t", ["t"])
    found: list[Any] = []
    for at in range(0, len(body), step):
        found += decoder.feed(transcoder.feed(body[at : at + step])).rows
    found += decoder.feed(transcoder.finish()).rows + decoder.finish().rows
    assert found == [[text] for text in texts]


def test_the_yen_sign_is_escaped_as_the_backslash_it_becomes() -> None:
    assert copy_row_encoder((TEXT,), CopyOptions(), SJIS)([("¥a",)])[0] == b"\\\\a\n"
    batch = pa.RecordBatch.from_pydict({"t": ["¥a"]})
    assert copy_batch_encoder((TEXT,), CopyOptions(), SJIS)(batch)[0] == b"\\\\a\n"


def test_lines_before_a_fault_arrive() -> None:
    transcoder = Transcoder(encoding("SJIS"))
    assert transcoder.feed(b"a\n" + SO + b"\nb\x83\nc\n") == "a\nソ\n".encode()
    assert transcoder.fault is not None
    assert transcoder.fault.message == 'invalid byte sequence for encoding "SJIS": 0x83 0x0a'


# -- messages --------------------------------------------------------------------------------------------------


def test_a_connection_speaks_an_encoding() -> None:
    connection = Connection()
    connection.state = State.SIMPLE
    connection.speak(encoding("LATIN1"))
    assert connection.read(b"caf\xe9") == "café"
    connection.error(ErrorReport(severity="ERROR", sqlstate="22P02", message="é"))
    assert b"M\xe9\0" in connection.data_to_send()
    connection.error(ErrorReport(severity="ERROR", sqlstate="22P02", message="€", detail="d"))
    said = connection.data_to_send()
    assert b"C22P05\0" in said  # what PostgreSQL says instead
    assert b"0xe2 0x82 0xac" in said
    connection.speak(encoding("SJIS"))
    with pytest.raises(RemoteProtocolError) as caught:
        connection.read(b"\x83")
    assert (caught.value.sqlstate, caught.value.fatal) == ("22021", False)


def test_utf8_takes_the_way_it_always_took() -> None:
    """No detour for who speaks UTF8: the very functions of a connection that knows of no encodings."""
    connection = Connection()
    for name in ("UTF8", "SQL_ASCII"):
        connection.speak(encoding("LATIN1"))
        connection.speak(encoding(name))
        assert connection.read is decode.utf8
        assert connection.describe is cached_row_description
    assert UTF8.utf8
    assert not any(encoding(name).utf8 for name in FOREIGN)
