"""tsvector: sorted lexemes with their positions (manual 8.11.1), and how PostgreSQL reads, prints and orders them.

    'a:1A fat:2,4C'   bytes   varsize · lexemes · [ 0 a NUL · ~count · ~place ] [ 0 fat NUL · ~count · ~place ~place ]

A *place* is a position with its weight, ``position | weight << 14``, weights D to A being 0 to 3. Values are
bytes that order as PostgreSQL orders the type: by size, then lexeme for lexeme, more positions first
(``silly_cmp_tsvector``). A lexeme without positions begins with 1.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final, TypeAlias

from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import quoting
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text import int_of
from pgwire.codecs.text.encodings import encoding
from pgwire.give_way import PACE, give_way, paced, paced_iter
from pgwire.kept import LONG, kept
from pgwire.long.values import in_order, joined_up, run_end, utf8_length
from pgwire.release import release

Places: TypeAlias = tuple[int, ...]
Vector: TypeAlias = tuple[tuple[str, Places], ...]
"""Lexemes in the order of their bytes, each with its places in ascending order of positions."""

MAX_LEXEME_BYTES: Final = 2047
MAX_BYTES: Final = 2**20 - 1
MAX_PLACES: Final = 256
LAST_POSITION: Final = 2**14 - 1
WEIGHTS: Final = "DCBA"

_SPACES: Final = frozenset(" \t\n\v\f\r\u1680\u2028\u2029\u205f\u3000") | {
    chr(c) for c in (*range(0x2000, 0x2007), 0x2008, 0x2009, 0x200A)
}
OPERATORS: Final = frozenset("!&|()<")
_SPACE_RUN: Final = re.compile(f"[{''.join(sorted(_SPACES))}]*")
_DIGITS: Final = frozenset("0123456789")
_DIGIT_RUN: Final = re.compile("[0-9]*")
_HEAD: Final = struct.Struct(">II")
_BINARY_SIZE_MAX: Final = 2**28


def position(place: int) -> int:
    """Return the position of a place: 1 .. 16383."""
    return place & LAST_POSITION


def weight(place: int) -> int:
    """Return the weight of a place: 0 (D) .. 3 (A)."""
    return place >> 14


def limited(number: int) -> int:
    """Return a position, the last one for all beyond it."""
    return min(number, LAST_POSITION)


# -- values ---------------------------------------------------------------------------------------------


def pack(vector: Iterable[tuple[str, Places]]) -> bytes:
    """Return the value of sorted lexemes; 54000 where they are more than a megabyte."""
    made = bytearray()
    count = used = 0
    for lexeme, places in paced_iter(vector):
        data = lexeme.encode("utf-8")
        count += 1
        used += len(data)
        if places:
            used += (used & 1) + 2 + 2 * len(places)
            keys = [0xFFFF - ((p & LAST_POSITION) << 2 | p >> 14) for p in places]
            made += b"\0" + data + b"\0" + struct.pack(f">{len(keys) + 1}H", 0xFFFF - len(places), *keys)
        else:
            made += b"\1" + data + b"\0"
    if used > MAX_BYTES:
        raise DataError("54000", f"string is too long for tsvector ({used} bytes, max {MAX_BYTES} bytes)")
    return _HEAD.pack(8 + 4 * count + used, count) + made


@kept(64, short=1 << 14)
def unpack(value: bytes) -> Vector:
    """Return the lexemes of a value."""
    return tuple(_entries(value))


def walk(value: bytes) -> Iterator[tuple[str, Places]]:
    """Yield what ``unpack`` returns, giving way; of a long value an entry at a time, so that they do not all
    go in one step at the end.
    """
    return _entries(value) if len(value) > LONG else paced_iter(unpack(value))


def _entries(value: bytes) -> Iterator[tuple[str, Places]]:
    count = _HEAD.unpack_from(value)[1]
    at = _HEAD.size
    for _ in paced(range(count)):
        bare = value[at]
        end = value.index(0, at + 1)
        lexeme = value[at + 1 : end].decode("utf-8")
        at = end + 1
        places: Places = ()
        if not bare:
            number = 0xFFFF - (value[at] << 8 | value[at + 1])
            keys = struct.unpack_from(f">{number}H", value, at + 2)
            places = tuple((0xFFFF - k) >> 2 | ((0xFFFF - k) & 3) << 14 for k in keys)
            at += 2 + 2 * number
        yield lexeme, places


def size(value: bytes) -> int:
    """Return how many lexemes a value has."""
    return int(_HEAD.unpack_from(value)[1])


EMPTY: Final = pack(())


def ordered_places(places: Iterable[int]) -> Places:
    """Return places in order, of each position the one with the greatest weight; at most 256, none after the
    last position.
    """
    best: dict[int, int] = {}
    for place in places:
        at = place & LAST_POSITION
        best[at] = max(best.get(at, 0), place)
    return tuple(best[at] for at in sorted(best))[:MAX_PLACES]


def merged(words: Iterable[tuple[str, Iterable[int]]]) -> bytes:
    """Return the value of lexemes in any order, places of equal ones joined."""
    by_lexeme: dict[str, list[int]] = {}
    for lexeme, places in paced_iter(words):
        by_lexeme.setdefault(lexeme, []).extend(places)
    ordered = in_order(list(by_lexeme))
    try:
        return pack((lexeme, ordered_places(by_lexeme[lexeme])) for lexeme in ordered)
    finally:
        release(by_lexeme, ordered)


# -- text -----------------------------------------------------------------------------------------------


class Scanner:
    """Reads lexemes one after the other from the text of a tsvector, or operands from that of a tsquery.

    ``query``: operators end a lexeme, and positions are left alone. ``web``: quotes and backslashes are plain
    characters, and ``"`` ends one.
    """

    def __init__(self, text: str, *, query: bool = False, web: bool = False) -> None:
        """Begin at the start of a text."""
        self.text = text
        self.at = 0
        self.query = query
        self.web = web

    def error(self) -> DataError:
        """Return 42601 that names the whole text."""
        return DataError(
            "42601", quoting(f"syntax error in {'tsquery' if self.query else 'tsvector'}: ", self.text)
        )

    def skip_spaces(self) -> str:
        """Go to the next character that is no space, and return it; "" at the end."""
        text, at = self.text, self.at
        if text[at : at + 1] in _SPACES:
            at = self.at = run_end(_SPACE_RUN, text, at + 1)
        return text[at : at + 1]

    def next(self) -> tuple[str, list[int]] | None:
        """Return the next lexeme and its places, None at the end. DataError 42601."""
        first = self.skip_spaces()
        if not first:
            return None
        if first == "'" and not self.web:
            lexeme = self._quoted()
        elif self.query and first in OPERATORS:
            raise self.error()
        else:
            lexeme = self._plain()
        if self.query or self.text[self.at : self.at + 1] != ":":
            return lexeme, []
        self.at += 1
        return lexeme, self._places()

    def _escaped(self) -> str:
        self.at += 1
        if self.at >= len(self.text):
            raise DataError("42601", quoting("there is no escaped character: ", self.text))
        return self.text[self.at]

    def _quoted(self) -> str:
        found: list[str] = []
        text = self.text
        self.at += 1
        while True:
            if self.at >= len(text):
                raise self.error()
            char = text[self.at]
            if char == "\\":
                char = self._escaped()
            elif char == "'":
                self.at += 1
                if text[self.at : self.at + 1] != "'":
                    break
            found.append(char)
            self.at += 1
            if not len(found) % PACE:
                give_way()
        if not found:
            raise self.error()
        return joined_up(found)

    def _plain(self) -> str:
        found: list[str] = []
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == "\\" and not self.web:
                char = self._escaped()
            elif (
                (found and char == ":")
                or char in _SPACES
                or (self.query and char in OPERATORS)
                or (self.web and char == '"')
            ):
                break
            found.append(char)
            self.at += 1
            if not len(found) % PACE:
                give_way()
        if not found:
            raise self.error()
        return joined_up(found)

    def _places(self) -> list[int]:
        """Read ``1A,2,3C``."""
        found: list[int] = []
        text = self.text
        while True:
            start = self.at
            self.at = run_end(_DIGIT_RUN, text, start)
            if start == self.at:
                raise self.error()
            place = limited(int_of(text[start : self.at]))
            if place == 0:
                raise DataError("42601", quoting("wrong position info in tsvector: ", text))
            while self.at < len(text) and (char := text[self.at]) != ",":
                if char in _SPACES:
                    found.append(place)
                    return found
                if char in "aA*bBcCdD":
                    if weight(place):
                        raise self.error()
                    place |= WEIGHTS.index("A" if char == "*" else char.upper()) << 14
                elif char not in _DIGITS:
                    raise self.error()
                self.at += 1
                give_way()
            found.append(place)
            if self.at >= len(text):
                return found
            self.at += 1


def parse(text: str) -> bytes:
    """Read a tsvector: 42601, 54000."""
    scanner = Scanner(text)
    words: list[tuple[str, list[int]]] = []
    used = 0
    while (word := scanner.next()) is not None:
        give_way()
        length = utf8_length(word[0])
        if length > MAX_LEXEME_BYTES:
            raise DataError("54000", f"word is too long ({length} bytes, max {MAX_LEXEME_BYTES} bytes)")
        used += length
        if used > MAX_BYTES:
            raise DataError("54000", f"string is too long for tsvector ({used} bytes, max {MAX_BYTES} bytes)")
        words.append(word)
    try:
        return merged(words)
    finally:
        release(words)


def quoted(lexeme: str) -> str:
    """Return a lexeme as tsvector and tsquery print it."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def show_place(place: int) -> str:
    """Return a position with its weight, D left out."""
    letter = WEIGHTS[weight(place)]
    return f"{position(place)}{'' if letter == 'D' else letter}"


def show(value: bytes) -> str:
    """Print a tsvector."""
    return joined_up(
        [
            quoted(lexeme) + (":" + ",".join(map(show_place, places)) if places else "")
            for lexeme, places in walk(value)
        ],
        " ",
    )


# -- binary form ----------------------------------------------------------------------------------------


def receiver(settings: CodecSettings) -> Callable[[bytes], bytes]:
    """Return the function that reads the binary form: 22P03 for what is malformed, 08P01 where it ends early."""
    decode = encoding(settings.encoding).decode

    def recv(data: bytes) -> bytes:
        data = bytes(data)
        try:
            (count,) = struct.unpack_from(">i", data)
            if not 0 <= count < _BINARY_SIZE_MAX:
                raise DataError("22P03", "invalid size of tsvector")
            at = 4
            words: list[tuple[str, Places]] = []
            for _ in paced(range(count)):
                end = data.index(0, at)
                lexeme = decode(data[at:end])
                (number,) = struct.unpack_from(">H", data, end + 1)
                if number > MAX_PLACES:
                    raise DataError("22P03", "unexpected number of tsvector positions")
                at = end + 3 + 2 * number
                words.append((lexeme, _checked(lexeme, struct.unpack_from(f">{number}H", data, end + 3))))
        except (struct.error, ValueError):
            raise DataError("08P01", "insufficient data left in message") from None
        if at != len(data):
            raise DataError("22P03", "incorrect binary data format")
        ordered = in_order(words)
        try:
            return pack(ordered)
        finally:
            release(words, ordered)

    return recv


def _checked(lexeme: str, places: Places) -> Places:
    if not lexeme:
        raise DataError("22P03", "invalid tsvector: empty lexeme")
    if len(lexeme.encode("utf-8")) > MAX_LEXEME_BYTES:
        raise DataError("22P03", "invalid tsvector: lexeme too long")
    if any(position(a) >= position(b) for a, b in pairwise(places)):
        raise DataError("22P03", "position information is misordered")
    return places


def sender(settings: CodecSettings) -> Callable[[bytes], bytes]:
    """Return the function that writes the binary form, lexemes in the client's encoding."""
    encode = encoding(settings.encoding).encode

    def send(value: bytes) -> bytes:
        sent = bytearray(struct.pack(">I", size(value)))
        for lexeme, places in walk(value):
            sent += encode(lexeme) + b"\0" + struct.pack(f">{len(places) + 1}H", len(places), *places)
        return bytes(sent)

    return send
