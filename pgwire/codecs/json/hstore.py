"""hstore: sets of keys with values (manual F.18), as bytes that order as PostgreSQL orders them (hstore_cmp).

value   = b""                                            no keys
| strings 00 count (end)*2n (null)*n             count and ends four bytes each, null 00 or 01
strings   key value key value ...                        shorter keys first, equally long ones by their bytes; NULL: nothing

"b"=>"1", "aa"=>NULL     ->     "b1aa" 00 00000002 00000001 00000002 00000004 00000004 00 01
"""

from __future__ import annotations

import re
import struct
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from pgwire.codecs.errors import DataError
from pgwire.codecs.text import decode as decode_text
from pgwire.codecs.text import parse_text
from pgwire.give_way import give_way, paced, paced_iter
from pgwire.kept import kept
from pgwire.long.values import (
    PIECE,
    concatenated,
    cut,
    cut_bytes,
    decoded,
    encoded,
    find,
    in_order,
    joined,
    joined_bytes,
    joined_bytes_up,
    joined_up,
    replaced,
    run_end,
    utf8_length,
)
from pgwire.release import mind_long, release

Pairs = Mapping[str, str | None]

_BLANKS: Final = re.compile(r"[ \t\n\v\f\r]*")
_KEY: Final = re.compile(r"(?:[^\\= \t\n\v\f\r]++|\\.)+", re.DOTALL)
_VALUE: Final = re.compile(r"(?:[^\\, \t\n\v\f\r]++|\\.)+", re.DOTALL)
_QUOTED: Final = re.compile(r'(?:[^\\"]++|\\.)+', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_WINDOW: Final = 1 << 14
"""Characters that are looked at in one call."""
_UINT32: Final = struct.Struct(">I")
_TWO: Final = struct.Struct(">II")
_THREE: Final = struct.Struct(">III")
_INT32: Final = struct.Struct(">i")
EMPTY: Final = b""


MANY: Final = 4096
"""Pairs of a value from which on no dict is made of them."""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(value: bytes, start: int, end: int) -> str:
    return decoded(cut_bytes(value, start, end), "surrogatepass")


def pack(pairs: Iterable[tuple[str, str | None]]) -> bytes:
    """Return the value of a set; of pairs with one key the first counts."""
    coded = in_order(
        mind_long([(len(key := encoded(name, _bytes)), key, value) for name, value in paced_iter(pairs)]),
        lambda item: item[:2],
    )
    if not coded:
        return EMPTY
    parts: list[bytes] = []
    ends, nulls = bytearray(), bytearray()
    at = 0
    last: bytes | None = None
    for _size, key, value in paced(coded):
        if key == last:
            continue
        last = key
        for part in (key, b"" if value is None else encoded(value, _bytes)):
            parts.append(part)
            at += len(part)
            ends += _UINT32.pack(at)
        nulls.append(value is None)
    release(coded)
    return joined_bytes([joined_bytes_up(parts), b"\x00", _UINT32.pack(len(nulls)), ends, nulls])


class _Stored(Mapping[str, str | None]):
    """The pairs of a long value where they stand, found by their order: a dict of them all is moved as one
    call of C whenever it is full.
    """

    __slots__ = ("_count", "_ends", "_nulls", "_value")

    def __init__(self, value: bytes, stop: int, count: int) -> None:
        """``stop``: where its strings end."""
        self._value = value
        self._count = count
        self._ends = stop + 5
        self._nulls = self._ends + 8 * count

    def _places(self, number: int) -> tuple[int, int, int]:
        """Return where a key begins, ends, and where its value ends."""
        at = self._ends + 8 * number
        if not number:
            return (0, *_TWO.unpack_from(self._value, at))
        return cast("tuple[int, int, int]", _THREE.unpack_from(self._value, at - 4))

    def _held(self, number: int, middle: int, end: int) -> str | None:
        return None if self._value[self._nulls + number] else _text(self._value, middle, end)

    def __getitem__(self, key: str) -> str | None:
        wanted = encoded(key, _bytes)
        low, high = 0, self._count
        while low < high:
            number = (low + high) // 2
            start, middle, end = self._places(number)
            size = middle - start
            here = cut_bytes(self._value, start, middle) if size == len(wanted) else b""
            if size == len(wanted) and here == wanted:
                return self._held(number, middle, end)
            if (size, here) < (len(wanted), wanted):
                low = number + 1
            else:
                high = number
        raise KeyError(key)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        for number in paced(range(self._count)):
            start, middle, _ = self._places(number)
            yield _text(self._value, start, middle)

    def items(self) -> ItemsView[str, str | None]:
        return _Items(self)

    def pairs(self) -> Iterator[tuple[str, str | None]]:
        """Yield keys with their values."""
        for number in paced(range(self._count)):
            start, middle, end = self._places(number)
            yield _text(self._value, start, middle), self._held(number, middle, end)


class _Items(ItemsView[str, str | None]):
    _mapping: _Stored

    def __iter__(self) -> Iterator[Any]:
        return self._mapping.pairs()


@kept(4096)
def unpack(value: bytes) -> Pairs:
    """Return the pairs of a value in its order; the mapping is shared and must not be changed."""
    if not value:
        return {}
    stop = find(value, b"\x00")
    (count,) = _UINT32.unpack_from(value, stop + 1)
    if count > MANY or len(value) > PIECE:
        return _Stored(value, stop, count)
    ends = struct.unpack_from(f">{2 * count}I", value, stop + 5)
    nulls = stop + 5 + 8 * count
    found: dict[str, str | None] = {}
    at = 0
    for number in paced(range(count)):
        middle, end = ends[2 * number], ends[2 * number + 1]
        name = value[at:middle].decode("utf-8", "surrogatepass")
        found[name] = None if value[nulls + number] else value[middle:end].decode("utf-8", "surrogatepass")
        at = end
    return found


# -- text ------------------------------------------------------------------------------------------------


def _unended() -> DataError:
    return DataError("XX000", "Unexpected end of string")


def _escaped(found: re.Match[str]) -> str:
    return found[1]


class _Reader:
    """Reads the text form as PostgreSQL's parser does (hstore_io.c): what is odd there is odd here."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def _here(self) -> str:
        return self.text[self.at : self.at + 1]

    def _unexpected(self) -> DataError:
        place = utf8_length(cut(self.text, 0, self.at))
        return DataError("XX000", f'Syntax error near "{self._here()}" at position {place}')

    def pairs(self) -> list[tuple[str, str | None]]:
        """Return the pairs in the order they are written."""
        found: list[tuple[str, str | None]] = []
        while (key := self._word(is_key=True)) is not None:
            give_way()
            self._expect("=", spaces=True)
            self._expect(">")
            word = self._word(is_key=False)
            if word is None:
                raise _unended()
            value, quoted = word
            found.append(
                (key[0], None if not quoted and len(value) == 4 and value.lower() == "null" else value)
            )
            self._skip_spaces()
            if not self._here():
                break
            if self._here() != ",":
                raise self._unexpected()
            self.at += 1
        return found

    def _expect(self, wanted: str, *, spaces: bool = False) -> None:
        if spaces:
            self._skip_spaces()
        if not self._here():
            raise _unended()
        if self._here() != wanted:
            raise self._unexpected()
        self.at += 1

    def _word(self, *, is_key: bool) -> tuple[str, bool] | None:
        """Return a key or value and whether it was quoted; None at the end of the text."""
        self._skip_spaces()
        if not self._here():
            return None
        if self._here() == '"':
            return self._quoted(), True
        if self._here() == "=" and is_key:
            raise self._unexpected()
        first = ""
        if self._here() != "\\":  # a word may begin with what would end it
            first = self._here()
            self.at += 1
        word = concatenated(first, self._run(_KEY if is_key else _VALUE))
        if self._here() == "\\":
            raise _unended()
        return word, False

    def _quoted(self) -> str:
        self.at += 1
        word = self._run(_QUOTED)
        if self._here() != '"':
            raise _unended()
        self.at += 1
        return word

    def _run(self, run: re.Pattern[str]) -> str:
        """Read characters and escapes as far as they go."""
        text, at = self.text, self.at
        parts: list[str] = []
        while True:
            stop = at + _WINDOW
            found = run.match(text, at, stop)
            end = at if found is None else found.end()
            piece = text[at:end]
            parts.append(_ESCAPED.sub(_escaped, piece) if "\\" in piece else piece)
            at = end
            if end < stop - 1 or (end < stop and not text.startswith("\\", end)):
                self.at = at
                return joined(parts)
            give_way()

    def _skip_spaces(self) -> None:
        self.at = run_end(_BLANKS, self.text, self.at)


def parse(text: str) -> bytes:
    """Read ``a=>1, "b c"=>NULL``. Raises DataError XX000 as PostgreSQL 15 does, 22021."""
    return pack(mind_long(_Reader(parse_text(text)).pairs()))


def _quote(text: str) -> str:
    escaped = replaced(replaced(text, "\\", "\\\\"), '"', '\\"')
    return joined(('"', escaped, '"'))


def show(value: bytes) -> str:
    """Print a value."""
    shown: list[str] = []
    for name, text in paced_iter(unpack(value).items()):
        shown += (", " if shown else "", _quote(name), "=>", "NULL" if text is None else _quote(text))
    return joined_up(shown)


# -- binary ----------------------------------------------------------------------------------------------


def receive(data: bytes) -> bytes:
    """Read the binary form: a count, then lengths and texts of keys and values, -1 for NULL; 22P03, 22021, 22004."""
    view = bytes(data)
    at = 0

    def number() -> int:
        nonlocal at
        if at + 4 > len(view):
            raise DataError("08P01", "insufficient data left in message")
        at += 4
        return int(_INT32.unpack_from(view, at - 4)[0])

    def text(size: int) -> str:
        nonlocal at
        if size < 0 or at + size > len(view):
            raise DataError("08P01", "insufficient data left in message")
        at += size
        return decode_text(view[at - size : at])

    count = number()
    if count < 0:
        raise DataError("22P03", f"number of pairs ({count}) exceeds the maximum allowed (178956970)")
    found: list[tuple[str, str | None]] = []
    for _ in paced(range(count)):
        size = number()
        if size < 0:
            raise DataError("22004", "null value not allowed for hstore key")
        key = text(size)
        size = number()
        found.append((key, None if size < 0 else text(size)))
    try:
        return pack(found)
    finally:
        release(found)


def send(value: bytes) -> bytes:
    """Return the binary form."""
    pairs = unpack(value)
    parts = [_INT32.pack(len(pairs))]
    for item in (text for pair in paced_iter(pairs.items()) for text in pair):
        data = None if item is None else encoded(item, _bytes)
        parts += [_INT32.pack(-1)] if data is None else [_INT32.pack(len(data)), data]
    return joined_bytes_up(parts)
