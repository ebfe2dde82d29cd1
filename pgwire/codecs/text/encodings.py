"""Client encodings: names, and texts to bytes and back (manual 24.3).

    client's bytes ──decode──> str ──encode──> client's bytes          str: what the server thinks in, stored as UTF8

``encoding(name)`` returns the one ``Encoding`` of a name, by all of PostgreSQL's spellings. Which bytes mean which
characters is PostgreSQL 15's maps: for encodings of one byte, GBK, EUC_CN and GB18030 those of Python's codecs,
which are equal; for the others those of a codec with corrections (``multibyte``).

Bytes below 0x80 are ASCII in all of them, so a text of ASCII alone is never looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from pgwire.codecs.errors import DataError
from pgwire.give_way import PACE, give_way
from pgwire.long import values as long

# PostgreSQL's encodings by number (pg_wchar.h).
NAMES: Final = (
    "SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL", "LATIN1", "LATIN2",
    "LATIN3", "LATIN4", "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10", "WIN1256", "WIN1258", "WIN866",
    "WIN874", "KOI8R", "WIN1251", "WIN1252", "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250",
    "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U", "SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB",
    "SHIFT_JIS_2004",
)  # fmt: skip
NUMBERS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(NAMES)}
CLIENT_ONLY: Final = frozenset(("SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004"))
"""Those that no database is in: a byte that is a backslash elsewhere may be half of a character."""

_LONGEST_NAME: Final = 63  # bytes; no longer name is known

_ALIASES: Final[Mapping[str, str]] = {
    **{name.replace("_", "").lower(): name for name in NAMES},
    **{f"windows{page}": f"WIN{page}" for page in (866, 874, *range(1250, 1259))},
    **{f"iso8859{part}": f"LATIN{n}" for n, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1)},
    "unicode": "UTF8", "koi8": "KOI8R", "win": "WIN1251", "alt": "WIN866", "abc": "WIN1258", "tcvn": "WIN1258",
    "tcvn5712": "WIN1258", "vscii": "WIN1258", "mskanji": "SJIS", "shiftjis": "SJIS", "win932": "SJIS",
    "windows932": "SJIS", "win936": "GBK", "windows936": "GBK", "win949": "UHC", "windows949": "UHC",
    "win950": "BIG5", "windows950": "BIG5",
}  # fmt: skip
"""encnames.c: names in lower case without what is neither letter nor digit."""

_TWO_BYTES: Final = frozenset(("SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC"))
_FOUR_BYTES: Final = frozenset(("UTF8", "GB18030", "EUC_TW", "MULE_INTERNAL"))


def canonical(name: str) -> str | None:
    """Return PostgreSQL's name of an encoding; None for an unknown one. Case and punctuation do not matter."""
    if len(name.encode()) > _LONGEST_NAME:
        return None
    return _ALIASES.get("".join([c for c in name.lower() if c.isascii() and c.isalnum()]))


def longest_character(number: int) -> int | None:
    """Return the bytes of the longest character of encoding ``number`` (pg_encoding_max_length); None: no
    such number.
    """
    if not 0 <= number < len(NAMES):
        return None
    name = NAMES[number]
    if name in _TWO_BYTES:
        return 2
    if name in _FOUR_BYTES:
        return 4
    return 3 if name.startswith("EUC_") or name == "JOHAB" else 1


class Encoding(Protocol):
    """One client encoding.

    ``utf8``: texts travel as the server keeps them, and nothing is converted (UTF8, and SQL_ASCII, which says that
    the client takes whatever comes).
    """

    @property
    def name(self) -> str:
        """PostgreSQL's name."""

    @property
    def utf8(self) -> bool:
        """Whether its bytes are the server's."""

    @property
    def lookalikes(self) -> Mapping[int, str]:
        """Characters that are sent as the byte of an ASCII character (SJIS's yen sign as a backslash), for
        ``str.translate``.
        """

    def decode(self, data: bytes) -> str:
        """Return the text. Raises DataError 22021 (no character of the encoding, or NUL), 22P05 (not in UTF8)."""

    def encode(self, text: str) -> bytes:
        """Return the bytes. Raises DataError 22P05 for the first character the encoding lacks."""

    def verify(self, data: bytes) -> None:
        """Check that the bytes form characters, known or not. Raises DataError 22021."""

    def length(self, data: bytes, at: int) -> int:
        """Return the bytes of the valid character at ``at``, -1 if it is none."""

    def announced(self, data: bytes, at: int) -> int:
        """Return how many bytes the character at ``at`` would have by its first ones; it may be cut off."""


def shown(data: bytes) -> str:
    """Return bytes as errors list them, eight at most: ``0xe2 0x82 0xac``."""
    return " ".join([f"0x{byte:02x}" for byte in data[:8]])


def invalid(encoding: str, data: bytes) -> DataError:
    """Return 22021 for the bytes of what should be one character."""
    return DataError("22021", f'invalid byte sequence for encoding "{encoding}": {shown(data)}')


def untranslatable(source: str, data: bytes, target: str) -> DataError:
    """Return 22P05 for a character that another encoding lacks."""
    return DataError(
        "22P05",
        f'character with byte sequence {shown(data)} in encoding "{source}" has no equivalent in encoding "{target}"',
    )


def missing(character: str, target: str) -> DataError:
    """Return 22P05 for a character of the server that encoding ``target`` lacks."""
    return untranslatable("UTF8", character.encode("utf-8", "surrogatepass"), target)


def first_fault(
    encoding: Encoding, data: bytes, known: Callable[[bytes], object], start: int = 0
) -> DataError:
    """Return the error of bytes that did not decode: of the first character that is none, or that ``known``
    refuses; all before ``start`` are known.
    """
    at, steps = start, 0
    while at < len(data):
        steps += 1
        if not steps % PACE:
            give_way()
        length = -1 if data[at] == 0 else encoding.length(data, at)
        if length < 0:
            return invalid(encoding.name, data[at : at + encoding.announced(data, at)])
        try:
            known(data[at : at + length])
        except (LookupError, UnicodeDecodeError):
            return untranslatable(encoding.name, data[at : at + length], "UTF8")
        at += length
    raise AssertionError("all characters are known one by one")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


class Utf8:
    """UTF8, and SQL_ASCII, whose bytes have to be valid UTF8 all the same: the server stores nothing else."""

    utf8: Final = True
    lookalikes: Final[Mapping[int, str]] = {}

    def __init__(self, name: str) -> None:
        """Be called ``name``; errors say UTF8 all the same."""
        self.name = name

    def decode(self, data: bytes) -> str:
        """See ``Encoding``."""
        try:
            text = long.decoded(data)
        except UnicodeDecodeError as error:
            at = error.start
            raise invalid("UTF8", data[at : at + self.announced(data, at)]) from None
        if long.find(text, "\0") >= 0:
            raise invalid("UTF8", b"\0")
        return text

    def encode(self, text: str) -> bytes:
        """See ``Encoding``; a lone surrogate, which no valid input brings in, becomes a question mark."""
        return text.encode("utf-8", "replace") if len(text) <= long.LONG else long.encoded(text, _utf8)

    def verify(self, data: bytes) -> None:
        """See ``Encoding``."""
        self.decode(data)

    def length(self, data: bytes, at: int) -> int:
        """See ``Encoding``."""
        size = self.announced(data, at)
        try:
            return size if len(data[at : at + size].decode()) == 1 else -1
        except UnicodeDecodeError:
            return -1

    def announced(self, data: bytes, at: int) -> int:
        """See ``Encoding``."""
        first = data[at]
        return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4 if first < 0xF8 else 1


class SingleByte:
    """An encoding of one byte a character, whose map is that of a codec of Python."""

    utf8: Final = False
    lookalikes: Final[Mapping[int, str]] = {}

    def __init__(self, name: str, codec: str) -> None:
        """``codec``: Python's name of it."""
        self.name = name
        self._codec = codec

    def decode(self, data: bytes) -> str:
        """See ``Encoding``."""
        if long.find(data, b"\0") >= 0:
            raise first_fault(self, data, lambda one: one.decode(self._codec))
        try:
            return long.joined([piece.decode(self._codec) for piece in long.byte_pieces(data)])
        except UnicodeDecodeError:
            raise first_fault(self, data, lambda one: one.decode(self._codec)) from None

    def encode(self, text: str) -> bytes:
        """See ``Encoding``."""
        try:
            return long.encoded(text, lambda piece: piece.encode(self._codec))
        except UnicodeEncodeError as error:
            raise missing(error.object[error.start], self.name) from None

    def verify(self, data: bytes) -> None:
        """See ``Encoding``: any byte but NUL is a character, known or not."""
        if long.find(data, b"\0") >= 0:
            raise invalid(self.name, b"\0")

    def length(self, data: bytes, at: int) -> int:
        """See ``Encoding``."""
        return 1

    def announced(self, data: bytes, at: int) -> int:
        """See ``Encoding``."""
        return 1


_CODECS: Final[Mapping[str, str]] = {
    **{f"LATIN{n}": f"iso8859_{part}" for n, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1)},
    **{f"ISO_8859_{part}": f"iso8859_{part}" for part in range(5, 9)},
    **{f"WIN{page}": f"cp{page}" for page in (866, 874, *range(1250, 1259))},
    "KOI8R": "koi8_r", "KOI8U": "koi8_u",
}  # fmt: skip


_made: Final[dict[str, Encoding]] = {
    "UTF8": Utf8("UTF8"), "SQL_ASCII": Utf8("SQL_ASCII"),
    **{name: SingleByte(name, codec) for name, codec in _CODECS.items()},
}  # fmt: skip


def at_hand(name: str) -> bool:
    """Whether ``encoding`` answers at once: its tables, if it needs some, have been made. Any thread may make them."""
    return name in _made


def encoding(name: str) -> Encoding:
    """Return an encoding by its canonical name. KeyError for an unknown one, and MULE_INTERNAL, which is not
    converted.
    """
    found = _made.get(name)
    if found is None:
        from pgwire.codecs.text import multibyte  # which reads this module

        found = _made[name] = multibyte.MAKERS[name]()
    return found


UTF8: Final = encoding("UTF8")


def convertible(name: str) -> bool:
    """Whether a client may speak the encoding of this canonical name: all but MULE_INTERNAL."""
    return name in NUMBERS and name != "MULE_INTERNAL"
