"""Long texts and bytea, made, cut, searched, compared and encoded piece by piece, so that others run in between.

    repeat('x', 60 MB)     repeated("x", n) ──► one allocation, filled a piece at a time ──► give_way() ──► … ──► str
    a || b || c            joined((a, b, c))
    upper(a), a::bytea     mapped(a, str.upper), encoded(a)

One operation of Python on a text of 60 MB is one long call of C: a copy takes about a millisecond for each
megabyte, most of it for the pages that it touches first. What is shorter than ``LONG`` is left to Python. A
text is allocated at its full length and width by CPython's documented ``PyUnicode_New`` and filled by
``PyUnicode_CopyCharacters``; nobody else sees it before it is whole.

The length of a result is the caller's to bound (``planner.base.large.foresee``).
"""

from __future__ import annotations

import codecs
import ctypes
import heapq
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, AnyStr, Final, TypeVar

from pgwire.give_way import give_way, outside, paced, paced_iter
from pgwire.release import mind_huge, release, release_all

PIECE: Final = 1 << 20
"""Characters or bytes of one call of C: about a millisecond."""
LONG: Final = 2 * PIECE
"""What is shorter is one call of C."""
MANY_CHARACTERS: Final = 4096
"""Of a set given as text: more are looked at once, and what comes twice is left out."""
_GROUP: Final = 1 << 12
"""Bytes objects of which a long one is made that are joined at once."""
MANY_TEXTS: Final = 1 << 15
"""Texts that one call joins, however short: half a millisecond."""
SORTED_AT_ONCE: Final = 2048
"""Items of one call of ``sorted``."""

T = TypeVar("T")

_API: Final = ctypes.pythonapi
_new = _API.PyUnicode_New
_new.restype, _new.argtypes = ctypes.c_void_p, (ctypes.c_ssize_t, ctypes.c_uint32)
_copy = _API.PyUnicode_CopyCharacters
_copy.restype = ctypes.c_ssize_t
_copy.argtypes = (
    ctypes.c_void_p, ctypes.c_ssize_t, ctypes.py_object, ctypes.c_ssize_t, ctypes.c_ssize_t,
)  # fmt: skip
_drop = _API.Py_DecRef
_drop.restype, _drop.argtypes = None, (ctypes.c_void_p,)
_new_bytes = _API.PyBytes_FromStringAndSize
_new_bytes.restype, _new_bytes.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t)
_address = _API.PyBytes_AsString
_address.restype, _address.argtypes = ctypes.c_void_p, (ctypes.py_object,)

_WIDTHS: Final = {1: 0xFF, 2: 0xFFFF, 4: 0x10FFFF}
_ASCII: Final = 0x7F


class _Text:
    """A text while it is made: ``add`` until it is full, then ``done``; ``close`` in a ``finally``."""

    def __init__(self, length: int, widest: int) -> None:
        """``widest``: the largest code point that may come, as ``_widest`` tells. Raises MemoryError."""
        found = _new(length, widest)
        if not found:
            raise MemoryError
        self.filled = 0  # characters that are there
        self._ascii = widest == _ASCII
        self._address: int | None = found

    def add(self, text: str, start: int = 0, end: int | None = None) -> None:
        """Put ``text[start:end]`` behind what is there."""
        end = len(text) if end is None else end
        while start < end:
            count = min(PIECE, end - start)
            if self._ascii and not text.isascii():
                # CPython looks at the beginning of the text, not at what is copied, and refuses all of it for
                # one wide character there
                copied = _copy(self._address, self.filled, text[start : start + count], 0, count)
            else:
                copied = _copy(self._address, self.filled, text, start, count)
            if copied != count:
                raise SystemError("a text was not copied")
            self.filled += count
            start += count
            if count == PIECE:
                give_way()

    def done(self) -> str:
        """Return the text."""
        return mind_huge(str(ctypes.cast(ctypes.c_void_p(self._address), ctypes.py_object).value))

    def begun(self) -> str:
        """Return a copy of what is there, of a text that does not become full."""
        return cut(self.done(), 0, self.filled)

    def close(self) -> None:
        """Give up this object's hold on the text."""
        address, self._address = self._address, None
        if address is not None:
            _drop(address)


def _widest(text: str, start: int = 0, end: int | None = None) -> int:
    """Return the bound of the narrowest form that CPython has for ``text[start:end]``; every string of it has
    that form.
    """
    if text.isascii():
        return _ASCII
    found = 0
    for at in _paced(range(start, len(text) if end is None else end, PIECE)):
        piece = text[at : at + PIECE if end is None else min(at + PIECE, end)]
        if not piece.isascii():
            # The form shows in what one more character takes, of copies that hold nothing else yet: ``piece``
            # may be a text that keeps its encoded form beside it.
            found = max(found, sys.getsizeof(piece + "  ") - sys.getsizeof(piece + " "))
    return _WIDTHS[found] if found else _ASCII


def run_end(characters: re.Pattern[str], text: str, at: int) -> int:
    """Return where a run ends that begins at ``at``. ``characters``: any number of them, each by itself."""
    while True:
        stop = at + PIECE // 8
        found = characters.match(text, at, stop)
        if found is None or found.end() < stop:
            return at if found is None else found.end()
        at = stop
        give_way()


def pieces(text: str, size: int = 0) -> Iterator[str]:
    """Yield a text in slices, giving way behind each of a long one."""
    size = size or PIECE
    if len(text) <= size:
        yield text
        return
    for at in range(0, len(text), size):
        yield text[at : at + size]
        give_way()


def byte_pieces(data: bytes | bytearray | memoryview, size: int = 0) -> Iterator[bytes]:
    """Yield bytes in slices, giving way behind each of a long one."""
    size = size or PIECE
    if len(data) <= size:
        yield bytes(data)
        return
    for at in range(0, len(data), size):
        yield bytes(data[at : at + size])
        give_way()


# --- sequences ------------------------------------------------------------------------------------


def _itself(item: Any) -> Any:
    return item


def in_order(items: Sequence[T], key: Callable[[T], Any] = _itself) -> list[T]:
    """Return items in order, those that are equal in the order they came: of many some are sorted at a time,
    and merged.
    """
    if len(items) <= SORTED_AT_ONCE:
        return sorted(items, key=key)
    runs = [
        sorted(items[at : at + SORTED_AT_ONCE], key=key)
        for at in paced(range(0, len(items), SORTED_AT_ONCE), 1)
    ]
    try:
        return list(paced_iter(heapq.merge(*runs, key=key)))
    finally:
        release_all(runs)


# --- texts ----------------------------------------------------------------------------------------


def joined(texts: Sequence[str], separator: str = "") -> str:
    """Return ``separator.join(texts)``."""
    total = len(separator) * max(len(texts) - 1, 0)
    for at in range(0, len(texts), 4096):
        total += sum(map(len, texts[at : at + 4096]))
        if len(texts) > 4096:
            give_way()
    if len(texts) < MANY_TEXTS and (
        total < LONG // 4 or (total < LONG and separator.isascii() and all(map(str.isascii, texts)))
    ):  # characters take up to four bytes
        return separator.join(texts)
    groups: Iterable[str] = _groups(texts, separator)
    widest = _ASCII
    if not (separator.isascii() and all(map(str.isascii, paced(texts, 4096)))):
        groups = list(groups)
        widest = max(map(_widest, groups))
    made = _Text(total, widest)
    try:
        for group in groups:
            made.add(group)
            give_way()
        return made.done()
    finally:
        made.close()


def joined_up(texts: list[str], separator: str = "") -> str:
    """Return ``separator.join(texts)``, of a list that is nobody else's: it is freed in slices."""
    try:
        return joined(texts, separator)
    finally:
        release(texts)


def _groups(texts: Sequence[str], separator: str) -> Iterator[str]:
    """Yield texts that together are ``separator.join(texts)``: long ones as they are, short ones by the piece."""
    held: list[str] = []
    size = 0
    last = len(texts) - 1
    for number, text in enumerate(texts):
        if len(text) >= PIECE:
            if held:
                yield separator.join(held) + separator
                held, size = [], 0
            yield text
            if number != last and separator:
                yield separator
            continue
        held.append(text)
        size += len(text) + len(separator) + 8
        if size >= PIECE or len(held) == MANY_TEXTS:
            yield separator.join(held) + (separator if number != last else "")
            held, size = [], 0
            give_way()
    if held:
        yield separator.join(held)


def padded(text: str, length: int, fill: str = " ") -> str:
    """Return ``text.ljust(length, fill)``."""
    return concatenated(text, repeated(fill, length - len(text))) if length > len(text) else text


def concatenated(a: str, b: str) -> str:
    """Return ``a + b``."""
    return a + b if len(a) + len(b) < LONG else joined((a, b))


def repeated(text: str, count: int) -> str:
    """Return ``text * count``."""
    total = len(text) * max(count, 0)
    if total < LONG:
        return text * count
    unit = text * max(PIECE // len(text), 1)
    made = _Text(total, _widest(text))
    try:
        for at in range(0, total, len(unit)):
            made.add(unit, 0, min(len(unit), total - at))
        return made.done()
    finally:
        made.close()


def cut(text: str, start: int, end: int | None = None) -> str:
    """Return ``text[start:end]``."""
    start, end, _ = slice(start, end).indices(len(text))
    if end - start < LONG or end - start == len(text):
        return text[start:end]
    made = _Text(end - start, _widest(text, start, end))
    try:
        made.add(text, start, end)
        return made.done()
    finally:
        made.close()


def _paced(items: Iterable[int]) -> Iterator[int]:
    for item in items:
        yield item
        give_way()


def mapped(text: str, change: Callable[[str], str], size: int = 0) -> str:
    """Return ``change(text)``, of a change that looks at each character by itself."""
    size = size or PIECE
    if len(text) <= size:
        return change(text)
    return filled(len(text), text, (change(piece) for piece in pieces(text, size)))


def filled(length: int, like: str, parts: Iterator[str]) -> str:
    """Return ``"".join(parts)``, of which it is likely that it has ``length`` characters, and the form of
    ``like``: then no part is kept.
    """
    if length < LONG:
        return "".join(parts)
    if not like.isascii():
        return joined(list(parts))
    made = _Text(length, _ASCII)
    try:
        for part in parts:
            if not part.isascii() or made.filled + len(part) > length:
                return joined([made.begun(), part, *parts])
            made.add(part)
        return made.done() if made.filled == length else made.begun()
    finally:
        made.close()


def reversed_text(text: str) -> str:
    """Return the characters from the last to the first."""
    if len(text) < LONG:
        return text[::-1]
    ends = range(len(text), 0, -PIECE)
    return filled(len(text), text, (text[max(end - PIECE, 0) : end][::-1] for end in _paced(ends)))


def replaced(text: str, old: str, new: str) -> str:
    """Return ``text.replace(old, new)``; ``old`` is not empty."""
    if len(text) + len(new) < PIECE // 4 or (len(text) * max(len(new), 1) < LONG and len(text) < PIECE):
        return text.replace(old, new)
    return joined([new.join(fields) for fields in _windows(text, old)])


def _windows(text: str, separator: str) -> Iterator[list[str]]:
    """Yield what ``split`` makes of one stretch of a text after the other; the last field of each goes on in
    the next.
    """
    at = 0
    if len(separator) > PIECE // 16:
        while (end := find(text, separator, at)) >= 0:
            yield [cut(text, at, end), ""]
            at = end + len(separator)
        yield [cut(text, at)]
        return
    while at < len(text):
        end = min(len(text), at + max(PIECE // 16, 2 * len(separator)))
        fields = text[at:end].split(separator)
        # The tail may hold the beginning of a separator: it is looked at again with what follows.
        kept = 0 if end == len(text) else min(len(fields[-1]), len(separator) - 1)
        fields[-1] = fields[-1][: len(fields[-1]) - kept]
        at = end - kept
        yield fields
        give_way()


def split(text: str, separator: str, most: int = -1) -> list[str]:
    """Return ``text.split(separator, most)``; the separator is not empty."""
    if len(text) <= PIECE // 4:
        return text.split(separator, most)
    if most >= 0:
        return _split_some(text, separator, most)
    if find(text, separator) < 0:
        return [text]
    found: list[str] = []
    begun: list[str] = []  # of the field that has not ended yet
    for fields in _windows(text, separator):
        begun.append(fields[0])
        if len(fields) > 1:
            found.append(joined(begun))
            found += fields[1:-1]
            begun = [fields[-1]]
    found.append(joined(begun))
    return found


def field(text: str, separator: str, number: int) -> str:
    """Return ``text.split(separator)[number]``, "" where there is none; the separator is not empty."""
    if len(text) <= PIECE // 4:
        found = text.split(separator)
        return found[number] if -len(found) <= number < len(found) else ""
    if number < 0:
        number += sum(len(fields) - 1 for fields in _windows(text, separator)) + 1
        if number < 0:
            return ""
    first = 0  # the number of the field that has not ended yet
    begun: list[str] = []
    for fields in _windows(text, separator):
        begun.append(fields[0])
        if len(fields) == 1:
            continue
        if number == first:
            break
        if number < first + len(fields) - 1:
            return fields[number - first]
        first += len(fields) - 1
        begun = [fields[-1]]
    return joined(begun) if number == first else ""


def _split_some(text: str, separator: str, most: int) -> list[str]:
    found: list[str] = []
    at = 0
    while len(found) < most and (end := find(text, separator, at)) >= 0:
        found.append(cut(text, at, end))
        at = end + len(separator)
        give_way()
    return [*found, cut(text, at)]


def fields(text: str, separator: str) -> Iterator[str]:
    """Yield what ``text.split(separator)`` holds, one by one; the separator is not empty."""
    if len(text) <= PIECE // 4:
        yield from text.split(separator)
        return
    at = 0
    while (end := find(text, separator, at)) >= 0:
        yield cut(text, at, end)
        at = end + len(separator)
        give_way()
    yield cut(text, at)


def count(text: str, part: str) -> int:
    """Return ``text.count(part)``; of a long text and a part of several characters less by what stands at
    borders of pieces.
    """
    return sum([piece.count(part) for piece in pieces(text, PIECE // 16)])


def find(value: AnyStr, part: AnyStr, start: int = 0) -> int:
    """Return ``value.find(part, start)``, of a text or bytea."""
    if len(value) - start < LONG:
        return value.find(part, start)
    if len(part) > PIECE:
        return _find_long(value, part, start)
    for at in range(start, len(value), PIECE):
        found = value.find(part, at, at + PIECE + len(part) - 1)
        if found >= 0:
            return found
        give_way()
    return len(value) if not part and start <= len(value) else -1


@outside(LONG)
def _find_long(value: AnyStr, part: AnyStr, start: int) -> int:
    return value.find(part, start)


def stripped(text: str, characters: str, left: bool, right: bool) -> str:
    """Return the text without any of ``characters`` at its ends."""
    if len(text) <= PIECE // 16 and len(characters) <= MANY_CHARACTERS:
        return (
            text.strip(characters) if left and right
            else text.lstrip(characters) if left
            else text.rstrip(characters)
        )  # fmt: skip
    if len(characters) > MANY_CHARACTERS:
        distinct: set[str] = set()
        for part in pieces(characters, PIECE // 16):
            distinct.update(part)
        characters = "".join(distinct)
    return cut(text, *bare(text, 0, len(text), characters, left=left, right=right))


def bare(
    text: str, start: int, end: int, characters: str | None = None, *, left: bool = True, right: bool = True
) -> tuple[int, int]:
    """Return where ``text[start:end]`` begins and ends without any of ``characters``, by default blanks, at
    its ends.
    """
    step = PIECE // 16
    while left and start < end:
        piece = text[start : min(start + step, end)]
        rest = len(piece.lstrip(characters))
        start += len(piece) - rest
        if rest:
            break
        give_way()
    while right and start < end:
        piece = text[max(end - step, start) : end]
        rest = len(piece.rstrip(characters))
        end -= len(piece) - rest
        if rest:
            break
        give_way()
    return start, end


def equal(a: str, b: str) -> bool:
    """Return ``a == b``."""
    if len(a) != len(b):
        return False
    return a == b if len(a) < 8 * PIECE else compared(a, b) == 0


def compared(a: str, b: str) -> int:
    """Return -1, 0 or 1 as ``a`` is before, equal to or behind ``b``, by code points."""
    if a is b:
        return 0
    shorter = min(len(a), len(b))
    if shorter >= 8 * PIECE:
        for at in range(0, shorter, PIECE):
            one, other = a[at : at + PIECE], b[at : at + PIECE]
            if one != other:
                return -1 if one < other else 1
            give_way()
        return (len(a) > len(b)) - (len(a) < len(b))
    return (a > b) - (a < b)


class Ordered:
    """A long text as a key of a sort: compared with others of its kind piece by piece, by code points."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __lt__(self, other: Ordered) -> bool:
        return compared(self._text, other._text) < 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordered) and equal(self._text, other._text)

    __hash__ = None  # type: ignore[assignment]  # it is sorted by, no more


# --- texts and bytes ------------------------------------------------------------------------------


def encoded(text: str, encode: Callable[[str], bytes] = str.encode) -> bytes:
    """Return ``encode(text)``, by default in UTF-8; of an encoding without shifts."""
    if len(text) <= PIECE:
        return encode(text)
    if not text.isascii():
        return joined_bytes([encode(piece) for piece in pieces(text)])
    return filled_bytes(len(text), (encode(piece) for piece in pieces(text)))


def utf8_length(text: str) -> int:
    """Return ``len(text.encode())``."""
    if text.isascii():
        return len(text)
    return sum([len(piece.encode("utf-8", "surrogatepass")) for piece in pieces(text)])


def decoded(data: bytes | memoryview, errors: str = "strict") -> str:
    """Return ``data.decode(errors=errors)``. Raises UnicodeDecodeError, whose ``start`` is that in ``data``."""
    if len(data) <= PIECE:
        return str(data, "utf-8", errors)
    return filled(len(data), _like(data), _decoded(data, errors))


def _like(data: bytes | memoryview) -> str:
    """Return a text of the form that the bytes of a text in UTF-8 have: ASCII or not."""
    for piece in byte_pieces(data):
        if not piece.isascii():
            return "\x80"
    return ""


def _decoded(data: bytes | memoryview, errors: str) -> Iterator[str]:
    at = 0
    while at < len(data):
        end = min(at + PIECE, len(data))
        try:
            text, used = codecs.utf_8_decode(data[at:end], errors, end == len(data))
        except UnicodeDecodeError as error:
            raise UnicodeDecodeError(
                error.encoding,
                data if isinstance(data, bytes) else b"",
                at + error.start,
                at + error.end,
                error.reason,
            ) from None
        yield text
        at += used  # a character that is cut off is left to the next piece
        give_way()


def joined_bytes(parts: Sequence[bytes | bytearray]) -> bytes:
    """Return ``b"".join(parts)``."""
    if len(parts) <= MANY_TEXTS:
        total = sum(map(len, parts))
        if total < LONG:
            return b"".join(parts)
    else:
        total = sum([sum(map(len, parts[at : at + _GROUP])) for at in _paced(range(0, len(parts), _GROUP))])
    together = min(PIECE // (total // len(parts) + 1), _GROUP)
    return filled_bytes(total, parts if together <= 1 else _grouped(parts, together))


def joined_bytes_up(parts: list[bytes]) -> bytes:
    """Return ``b"".join(parts)``, of a list that is nobody else's: it is freed in slices."""
    try:
        return joined_bytes(parts)
    finally:
        release(parts)


def _grouped(parts: Sequence[bytes | bytearray], together: int) -> Iterator[bytes | bytearray]:
    """Yield bytes that together are those of ``parts``: some short ones joined."""
    for at in range(0, len(parts), together):
        group = parts[at : at + together]
        if sum(map(len, group)) < 2 * PIECE:
            yield b"".join(group)
        else:
            yield from group


def filled_bytes(length: int, parts: Iterable[bytes | bytearray]) -> bytes:
    """Return ``b"".join(parts)``, which has ``length`` bytes; no part is kept."""
    made: bytes = _new_bytes(None, length)
    at: int = _address(made)
    end = at + length
    for part in parts:
        for piece in byte_pieces(part):
            if at + len(piece) > end:
                raise SystemError("more bytes than were said")
            ctypes.memmove(at, piece, len(piece))
            at += len(piece)
        give_way()
    if at != end:
        raise SystemError("fewer bytes than were said")
    return mind_huge(made)


def cut_bytes(data: bytes, start: int, end: int | None = None) -> bytes:
    """Return ``data[start:end]``."""
    start, end, _ = slice(start, end).indices(len(data))
    if end - start < LONG or end - start == len(data):
        return data[start:end]
    return filled_bytes(end - start, _slices(data, start, end))


def _slices(data: bytes, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, PIECE):
        yield data[at : min(at + PIECE, end)]


def spliced(data: bytes, start: int, end: int, new: bytes) -> bytes:
    """Return ``data[:start] + new + data[end:]``, of which nothing is there twice."""
    start, end = min(start, len(data)), min(end, len(data))
    total = start + len(new) + len(data) - end
    if total < LONG:
        return data[:start] + new + data[end:]
    return filled_bytes(total, chain(_slices(data, 0, start), (new,), _slices(data, end, len(data))))


def mapped_bytes(data: bytes, change: Callable[[bytes], bytes], size: int = 0) -> bytes:
    """Return ``change(data)``, of a change that looks at each ``size`` bytes by themselves."""
    size = size or PIECE
    if len(data) <= size:
        return change(data)
    return joined_bytes([change(piece) for piece in byte_pieces(data, size)])
