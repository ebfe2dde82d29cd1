r"""The encodings of East Asia: characters of one to four bytes.

    EUC_JP   a   \xa4\xa2   \x8e\xb1   \x8f\xb0\xa1         SJIS   a   \xb1   \x82\xa0   (a second byte may be ASCII's)

``length`` of each is PostgreSQL's rule for what a character looks like (wchar.c); bytes that break it are 22021. Bytes
that keep it and mean nothing are 22P05. What they mean is a table: of a codec of Python where that is the same, else a
codec's with the corrections in ``data/``, which ``tools/gen_encodings.py`` writes from a PostgreSQL 15.

A table is made when its encoding is first asked for, which takes 10 to 40 milliseconds of a thread
(``encodings.at_hand``); a character then costs a look-up.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from pgwire.codecs.text.encodings import Encoding, first_fault, invalid, missing
from pgwire.give_way import give_way, paced_iter
from pgwire.long.values import byte_pieces, decoded, encoded, find, joined, joined_bytes, pieces
from pgwire.release import release

Rule: TypeAlias = Callable[[bytes, int], int]
"""Bytes and an offset to the number of bytes of a character; see ``Encoding``."""

DATA: Final = Path(__file__).parent / "data"

SS2: Final = 0x8E
SS3: Final = 0x8F


# -- what characters look like --------------------------------------------------------------------------------


def _right(byte: int) -> bool:
    """Whether a byte is one of EUC's upper 94."""
    return 0xA1 <= byte <= 0xFE


def _size_euc(data: bytes, at: int) -> int:
    first = data[at]
    return 1 if first < 0x80 else 3 if first == SS3 else 2


def _size_euc_cn(data: bytes, at: int) -> int:
    return 1 if data[at] < 0x80 else 2


def _size_euc_tw(data: bytes, at: int) -> int:
    first = data[at]
    return 1 if first < 0x80 else 4 if first == SS2 else 3 if first == SS3 else 2


def _size_sjis(data: bytes, at: int) -> int:
    first = data[at]
    return 1 if first < 0x80 or 0xA1 <= first <= 0xDF else 2


def _size_gb18030(data: bytes, at: int) -> int:
    if data[at] < 0x80:
        return 1
    return 4 if at + 1 < len(data) and 0x30 <= data[at + 1] <= 0x39 else 2


def _euc_jp(data: bytes, at: int) -> int:
    size = _size_euc(data, at)
    rest = data[at + 1 : at + size]
    if len(rest) < size - 1:
        return -1
    if size == 1:
        return 1
    if data[at] == SS2:
        return 2 if 0xA1 <= rest[0] <= 0xDF else -1
    if data[at] == SS3:
        return 3 if _right(rest[0]) and _right(rest[1]) else -1
    return 2 if _right(data[at]) and _right(rest[0]) else -1


def _euc_kr(data: bytes, at: int) -> int:
    if data[at] < 0x80:
        return 1
    return 2 if at + 1 < len(data) and _right(data[at]) and _right(data[at + 1]) else -1


def _euc_tw(data: bytes, at: int) -> int:
    size = _size_euc_tw(data, at)
    rest = data[at + 1 : at + size]
    if len(rest) < size - 1 or size == 3:
        return -1
    if size == 4:
        return 4 if 0xA1 <= rest[0] <= 0xA7 and _right(rest[1]) and _right(rest[2]) else -1
    return size if size == 1 or _right(rest[0]) else -1


def _johab(data: bytes, at: int) -> int:
    """Judge as PostgreSQL does, which takes Johab for a kind of EUC: characters with a second byte below 0xa1
    do not arrive.
    """
    size = _size_euc(data, at)
    rest = data[at + 1 : at + size]
    return size if len(rest) == size - 1 and all(map(_right, rest)) else -1


def _sjis(data: bytes, at: int) -> int:
    if _size_sjis(data, at) == 1:
        return 1
    if at + 1 == len(data):
        return -1
    first, second = data[at], data[at + 1]
    head = 0x81 <= first <= 0x9F or 0xE0 <= first <= 0xFC
    return 2 if head and (0x40 <= second <= 0x7E or 0x80 <= second <= 0xFC) else -1


def _big5(data: bytes, at: int) -> int:
    if data[at] < 0x80:
        return 1
    # 0x8d 0x20 is set aside as what is never a character (wchar.c, NONUTF8_INVALID_BYTE0).
    return 2 if at + 1 < len(data) and data[at + 1] and data[at : at + 2] != b"\x8d " else -1


def _gb18030(data: bytes, at: int) -> int:
    size = _size_gb18030(data, at)
    if size == 1:
        return 1
    rest = data[at + 1 : at + size]
    if len(rest) < size - 1 or not 0x81 <= data[at] <= 0xFE:
        return -1
    if size == 4:
        return 4 if 0x81 <= rest[1] <= 0xFE and 0x30 <= rest[2] <= 0x39 else -1
    return 2 if 0x40 <= rest[0] <= 0x7E or 0x80 <= rest[0] <= 0xFE else -1


# -- codecs of Python that have PostgreSQL's map ---------------------------------------------------------------


STEP: Final = 1024  # characters that are converted at once


class _Ruled:
    """What the encodings of this module have in common: characters by a rule."""

    utf8: Final = False
    lookalikes: Mapping[int, str] = {}

    def __init__(self, name: str, rule: Rule, size: Rule) -> None:
        """``rule``: the length of a valid character or -1; ``size``: the length that its first bytes announce."""
        self.name = name
        self.length = rule
        self.announced = size

    def verify(self, data: bytes) -> None:
        """See ``Encoding``."""
        if data.isascii() and find(data, b"\0") < 0:
            return
        at, length, steps = 0, self.length, 0
        while at < len(data):
            steps += 1
            if not steps % STEP:
                give_way()
            size = -1 if data[at] == 0 else length(data, at)
            if size < 0:
                raise invalid(self.name, data[at : at + self.announced(data, at)])
            at += size


class _Direct(_Ruled):
    """An encoding whose map is that of a codec of Python, but for characters that PostgreSQL encodes besides."""

    def __init__(self, name: str, codec: str, rule: Rule, size: Rule, extra: Mapping[str, bytes]) -> None:
        """``codec``: Python's name of it."""
        super().__init__(name, rule, size)
        self._codec = codec
        self._extra = extra

    def decode(self, data: bytes) -> str:
        """See ``Encoding``."""
        try:
            if find(data, b"\0") < 0:
                reader = codecs.getincrementaldecoder(self._codec)()
                parts = [reader.decode(piece) for piece in byte_pieces(data, 16 * STEP)]
                return joined([*parts, reader.decode(b"", True)])
        except UnicodeDecodeError:
            pass
        raise first_fault(self, data, lambda one: one.decode(self._codec))

    def encode(self, text: str) -> bytes:
        """See ``Encoding``."""
        return joined_bytes([self._encoded(piece) for piece in pieces(text, STEP)])

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode(self._codec)
        except UnicodeEncodeError:
            return b"".join(map(self._character, text))

    def _character(self, character: str) -> bytes:
        try:
            return character.encode(self._codec)
        except UnicodeEncodeError:
            found = self._extra.get(character)
            if found is None:
                raise missing(character, self.name) from None
            return found


# -- tables ----------------------------------------------------------------------------------------------------


def base(codec: str, size: Rule) -> dict[bytes, str]:
    """Return what a codec of Python makes of every character of one to three bytes that begins above ASCII.

    All in one go, with line feeds between, which are no part of any: one by one they would take twenty times as long.
    What the codec would not send for the character it read is left out.
    """
    if not codec:
        return {}
    sizes = {first: size(bytes((first,)), 0) for first in range(0x81, 0xFF)}
    units = [bytes((first,)) for first, count in sizes.items() if count == 1]
    seconds = range(0xA1 if codec.startswith("euc") else 0x31, 0xFF)
    units += [bytes((first, b)) for first, count in sizes.items() if count == 2 for b in seconds]
    units += [
        bytes((first, a, b)) for first, count in sizes.items() if count == 3 for a in seconds for b in seconds
    ]
    texts = b"\n".join(units).decode(codec, "replace").split("\n")
    back = "\n".join(texts).encode(codec, "replace").split(b"\n")
    read = zip(units, texts, back, strict=True)
    table = {unit: text for unit, text, sent in paced_iter(read, STEP) if sent == unit}
    return {
        unit: text for unit, text in paced_iter(table.items(), STEP) if len(text) == 1 or min(text) >= "\x80"
    }


def _run(text: str) -> Iterator[bytes]:
    """Yield the bytes that ``a145``, or ``a147+3``, stands for."""
    first, _, count = text.partition("+")
    for number in range(int(first, 16), int(first, 16) + int(count or 1)):
        yield number.to_bytes(len(first) // 2, "big")


def sending(table: dict[bytes, str]) -> dict[str, bytes]:
    """Return the bytes of each text of a table: the first, where several mean the same."""
    return {text: unit for unit, text in paced_iter(reversed(table.items()), STEP)}


class Corrections:
    """What a file of ``data/`` says: one line for each run of bytes, or for a character.

        = a4d4 3164 3165+2     a4d4 means U+3164, a4d5 and a4d6 mean U+3165 and U+3166
        - a145 a147+3          a145, a147, a148 and a149 mean nothing
        > 2116 ade2            U+2116 is sent as ade2, though other bytes mean it, too
        > 203e -               U+203E is not sent

    Bytes that break the rule of the encoding mean something only to who is sent them (EUC_TW's plane 15, half
    of Johab).
    """

    def __init__(self, lines: Iterable[str]) -> None:
        """Read them."""
        self.means: dict[bytes, str] = {}
        self.nothing: list[bytes] = []
        self.sent: dict[str, bytes | None] = {}
        for line in paced_iter(lines):
            kind, key, *values = line.split()
            if kind == "=":
                unit = int(key, 16)
                for value in values:
                    first, _, count = value.partition("+")
                    for code in range(int(first, 16), int(first, 16) + int(count or 1)):
                        self.means[unit.to_bytes(len(key) // 2, "big")] = chr(code)
                        unit += 1
            elif kind == "-":
                for first in (key, *values):
                    self.nothing += _run(first)
            elif kind == ">":
                self.sent[chr(int(key, 16))] = None if values == ["-"] else bytes.fromhex(values[0])

    def table(self, table: dict[bytes, str]) -> dict[bytes, str]:
        """Return a codec's table with what bytes really mean."""
        nothing = frozenset(self.nothing)
        kept = {unit: text for unit, text in paced_iter(table.items(), STEP) if unit not in nothing}
        return kept | self.means

    def sending(self, table: dict[bytes, str]) -> dict[str, bytes]:
        """Return how texts are really sent, given what bytes mean."""
        sent = {**sending(table), **self.sent}
        return {text: unit for text, unit in paced_iter(sent.items(), STEP) if unit is not None}


class _Table(_Ruled):
    """An encoding by two dictionaries, from characters' bytes to texts and back."""

    def __init__(self, name: str, codec: str, rule: Rule, size: Rule, pattern: bytes) -> None:
        """``codec``: the codec of Python that is nearest, or nothing; ``pattern``: cuts bytes into characters."""
        super().__init__(name, rule, size)
        corrections = Corrections((DATA / f"{name.lower()}.txt").read_text("ascii").splitlines())
        table = corrections.table(base(codec, size))
        ascii_ = {chr(code): bytes((code,)) for code in range(1, 0x80)}
        self._sent = corrections.sending(table) | ascii_
        self.lookalikes = {
            ord(text): unit.decode("ascii")
            for text, unit in paced_iter(self._sent.items(), STEP)
            if unit[0] < 0x80 and not text.isascii()
        }
        self._means = {
            unit: text for unit, text in paced_iter(table.items(), STEP) if rule(unit, 0) == len(unit)
        }
        self._means |= {unit: text for text, unit in ascii_.items()}
        self._cut = re.compile(pattern + rb"|[\x80-\xff][\x00-\xff]|[\x00-\xff]")
        pairs = [text for text in self._sent if len(text) > 1]
        self._pairs = re.compile("|".join([*pairs, "(?s:.)"])) if pairs else None

    def decode(self, data: bytes) -> str:
        """See ``Encoding``."""
        if data.isascii() and find(data, b"\0") < 0:
            return decoded(data)
        parts: list[str] = []
        known = 0  # how many bytes have been read
        found = self._cut.finditer(data)
        try:
            while some := list(islice(found, STEP)):
                parts.append("".join([self._means[match[0]] for match in some]))
                known = some[-1].end()
                give_way()
        except KeyError:
            release(parts)
            raise first_fault(self, data, self._means.__getitem__, known) from None
        return joined(parts)

    def encode(self, text: str) -> bytes:
        """See ``Encoding``."""
        if text.isascii():
            return encoded(text)
        characters: Iterable[str]
        characters = text
        if self._pairs is not None:
            characters = (match[0] for match in self._pairs.finditer(text))
        try:
            parts: list[bytes] = []
            units = map(self._sent.__getitem__, characters)
            while some := b"".join(islice(units, STEP)):
                parts.append(some)
                give_way()
            return joined_bytes(parts)
        except KeyError as error:
            raise missing(error.args[0], self.name) from None


def _direct(
    name: str, codec: str, rule: Rule, size: Rule, extra: Mapping[str, bytes] | None = None
) -> Callable[[], Encoding]:
    return lambda: _Direct(name, codec, rule, size, extra or {})


def _table(
    name: str, codec: str, rule: Rule, size: Rule, pattern: bytes = b"[\x00-\x7f]"
) -> Callable[[], Encoding]:
    return lambda: _Table(name, codec, rule, size, pattern)


_THREE: Final = rb"\x8f[\x00-\xff]{2}"

TABLES: Final[Mapping[str, tuple[str, Rule, Rule]]] = {
    "EUC_JP": ("euc_jp", _euc_jp, _size_euc),
    "EUC_KR": ("euc_kr", _euc_kr, _size_euc),
    "EUC_TW": ("", _euc_tw, _size_euc_tw),
    "EUC_JIS_2004": ("euc_jis_2004", _euc_jp, _size_euc),
    "SJIS": ("shift_jis", _sjis, _size_sjis),
    "BIG5": ("big5", _big5, _size_euc_cn),
    "UHC": ("cp949", _big5, _size_euc_cn),
    "JOHAB": ("johab", _johab, _size_euc),
    "SHIFT_JIS_2004": ("shift_jis_2004", _sjis, _size_sjis),
}
"""Those with corrections: the codec of Python to start from, the rule, and the announced size."""

_PATTERNS: Final[Mapping[str, bytes]] = {
    "EUC_JP": _THREE, "EUC_JIS_2004": _THREE, "JOHAB": _THREE, "EUC_TW": rb"\x8e[\x00-\xff]{3}",
    "SJIS": rb"[\xa1-\xdf]", "SHIFT_JIS_2004": rb"[\xa1-\xdf]",
}  # fmt: skip

MAKERS: Final[Mapping[str, Callable[[], Encoding]]] = {
    "EUC_CN": _direct("EUC_CN", "gb2312", _euc_kr, _size_euc_cn),
    "GBK": _direct("GBK", "gbk", _big5, _size_euc_cn, {"€": b"\x80"}),
    "GB18030": _direct("GB18030", "gb18030", _gb18030, _size_gb18030),
    **{
        name: _table(name, *found, *([_PATTERNS[name]] if name in _PATTERNS else []))
        for name, found in TABLES.items()
    },
}
