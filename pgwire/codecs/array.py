r"""Arrays of any type with a codec; value: nested ``tuple``, ``()`` when empty.

    {1,2,NULL}   {{"a b","c\"d"},{e,"null"}}   (1, 2, None)   (("a b", 'c"d'), ("e", "null"))

An array with other lower bounds than 1 is a ``BoundedArray`` (``pgwire.bounded``); its bounds are printed in
front, ``[0:2]={1,2,3}``. Some element types are tuples themselves (interval, timetz, tid, record):
``leaf_is_tuple`` tells, so that nesting is not mistaken for a dimension.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pgwire.bounded import BoundedArray, bounded, lower_bounds, plain
from pgwire.codecs.domain import BOX, OID
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import quoting
from pgwire.codecs.text import int_of
from pgwire.give_way import give_way, paced
from pgwire.long.arrays import LONG, holds, listed, tupled
from pgwire.long.values import PIECE, cut_bytes, joined, joined_bytes, joined_up, replaced, run_end
from pgwire.release import mind

Array: TypeAlias = tuple[Any, ...]

MAX_DIMENSIONS: Final = 6
MAX_ELEMENTS: Final = 134_217_727
MAX_INT: Final = (1 << 31) - 1
FIRST_ASSIGNED_OID: Final = 10_000  # oids from here on are not the same on all servers
_SPACE: Final = " \t\n\r\f\v"
_BLANK: Final = re.compile(r"[ \t\n\r\f\v]*")
_PLAIN: Final = {
    mark: re.compile(rf'[^"\\{{}}{mark}\s]+(?:[ \t]+[^"\\{{}}{mark}\s]+)*') for mark in (",", ";")
}
_FLAT: Final = re.compile(r'\{[^"\\{}\s]+\}')
_NULLS: Final = frozenset(map("".join, itertools.product("nN", "uU", "lL", "lL")))
_NEEDS_QUOTES: Final = {
    mark: re.compile(rf'[{{}}"{mark}\\\s]|\A\Z|\A[nN][uU][lL][lL]\Z') for mark in (",", ";")
}
_UNQUOTED: Final = {mark: re.compile(rf'[^{{}}"{mark}\\\s]*') for mark in (",", ";")}
_BOUNDS: Final = re.compile(r"\[(?:([+\-0-9]+):)?([+\-0-9]+)\]")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


def delimiter_of(element_oid: int) -> str:
    """Return what stands between elements of a type in an array's text (pg_type.typdelim): ``;`` between boxes."""
    return ";" if element_oid == BOX else ","


def dimensions(value: Array, leaf_is_tuple: bool = False) -> tuple[int, ...]:
    """Return the length of each dimension; ``()`` for an empty array. A record (a subclass of tuple) is never one."""
    lengths: list[int] = []
    level: Any = value
    if type(level) is BoundedArray:
        lengths.append(len(level))
        level = level[0]
    while type(level) is tuple and level and not (lengths and leaf_is_tuple and _is_leaf(level)):
        lengths.append(len(level))
        level = level[0]
    return tuple(lengths)


def around(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the array whose parts are arrays, all of the same dimensions and bounds: it begins at 1, they do
    as they did.
    """
    first = parts[0]
    if type(first) is not BoundedArray:
        return parts
    return bounded(tupled([plain(part) for part in paced(parts, 1)]), (1, *first.lows))


def array_shape(value: Array, leaf_is_tuple: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what arrays in an array have to share: the lengths of their dimensions, and their lower bounds."""
    lengths = dimensions(value, leaf_is_tuple)
    return lengths, lower_bounds(value, len(lengths))


def _is_leaf(value: Array) -> bool:
    """Whether a tuple inside an array of tuple-valued elements is an element and not a dimension."""
    return not any(item is None or isinstance(item, tuple) for item in value)


def flatten(value: Array, depth: int) -> list[Any]:
    """Return the elements of an array of ``depth`` dimensions in order."""
    items = listed(value)
    for _ in range(depth - 1):
        items = [inner for item in paced(items) for inner in item]
        if len(items) >= LONG:
            mind(items)
    return items


SHORT: Final = 1 << 16
"""Characters of a text that is looked through as a whole."""
_WINDOW: Final = 1 << 16
"""Characters of an element that are looked at in one call."""
_ENDS: Final = re.compile(r'["\\]')


def nest(items: list[Any], lengths: tuple[int, ...]) -> Array:
    """Build the nested tuple of a flat list."""
    if not items:
        return ()
    for length in reversed(lengths[1:]):
        items = [tupled(items[i : i + length]) for i in paced(range(0, len(items), length))]
    return tupled(items)


def _malformed(text: str, detail: str) -> DataError:
    return DataError("22P02", quoting("malformed array literal: ", text), detail=detail)


def check_size(lengths: tuple[int, ...]) -> None:
    """Raise 54000 for too many dimensions or elements."""
    if len(lengths) > MAX_DIMENSIONS:
        raise DataError(
            "54000",
            f"number of array dimensions ({len(lengths)}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
        )
    total = 1
    for length in lengths:
        total *= length
    if total > MAX_ELEMENTS:
        raise DataError("54000", f"array size exceeds the maximum allowed ({MAX_ELEMENTS})")


def check_bounds(lengths: tuple[int, ...], lows: tuple[int, ...]) -> None:
    """Raise 54000 for a lower bound whose dimension would end past the largest integer."""
    for length, low in zip(lengths, lows, strict=True):
        if low + length > MAX_INT:
            raise DataError("54000", f"array lower bound is too large: {low}")


def _atoi(text: str) -> int:
    """Return what C's atoi makes of signs and digits."""
    match = _NUMBER.match(text)
    value = 0 if match is None else max(min(int_of(match[0]), (1 << 63) - 1), -(1 << 63))
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def parse(text: str, element: Callable[[str], Any], delimiter: str = ",", nulls: bool = True) -> Array:
    """Read an array; ``element`` reads one element's text, ``delimiter`` is ``,`` or ``;``, ``nulls``: NULL
    without quotes is no text.

    Raises:
        DataError: 22P02 ``malformed array literal`` with PostgreSQL's details; 2202E dimensions that do not
            fit; 54000 more dimensions or larger bounds than there are; what ``element`` raises.
    """
    if len(text) <= SHORT and _FLAT.fullmatch(text):
        parts = text[1:-1].split(delimiter)
        if "" not in parts:
            return tupled([None if nulls and p in _NULLS else element(p) for p in paced(parts)])
    at = _skip(text, 0)
    bounds: list[int] = []
    low_bounds: list[int] = []
    if text[at : at + 1] == "[":
        while text[at : at + 1] == "[":
            if len(bounds) >= MAX_DIMENSIONS:
                check_size((1,) * (MAX_DIMENSIONS + 1))
            match = _BOUNDS.match(text, at)
            if match is None:
                raise _malformed(text, _missing(text[at + 1 :]))
            low, high = _atoi(match[1] or "1"), _atoi(match[2])
            if high < low:
                raise DataError("2202E", "upper bound cannot be less than lower bound")
            low_bounds.append(low)
            bounds.append(high - low + 1)
            at = _skip(text, match.end())
        if text[at : at + 1] != "=":
            raise _malformed(text, 'Missing "=" after array dimensions.')
        at = _skip(text, at + 1)
        if text[at : at + 1] != "{":
            raise _malformed(text, 'Array contents must start with "{".')
    elif text[at : at + 1] != "{":
        raise _malformed(text, 'Array value must start with "{" or dimension information.')
    whole = text
    text, at = text[at:], 0  # errors show what follows blanks and bounds
    value, end = _Reader(text, delimiter, _NULLS if nulls else frozenset()).level(at, 1)
    if _skip(text, end) != len(text):
        raise _malformed(text, "Junk after closing right brace.")
    lengths = _measure(value, text)
    if bounds and list(lengths) != bounds:
        raise _malformed(whole, "Specified array dimensions do not match array contents.")
    check_bounds(tuple(bounds), tuple(low_bounds))
    return bounded(_freeze(value, element), tuple(low_bounds)) if lengths else ()


def _missing(text: str) -> str:
    """Return what is wrong with dimensions that begin so, behind their bracket."""
    behind = text.lstrip("0123456789+-")
    if behind == text:
        return '"[" must introduce explicitly-specified array dimensions.'
    if behind[:1] == ":" and behind[1:].lstrip("0123456789+-") == behind[1:]:
        return "Missing array dimension value."
    return 'Missing "]" after array dimensions.'


def _skip(text: str, at: int) -> int:
    if text[at : at + 1] not in _SPACE:
        return at
    return run_end(_BLANK, text, at)


class _Reader:
    """Recursive reader; dimensions are lists, elements 1-tuples of their text, so that both stay apart."""

    def __init__(self, text: str, delimiter: str, nulls: frozenset[str]) -> None:
        self.text = text
        self.delimiter = delimiter
        self.nulls = nulls
        self.stops = delimiter + "}"

    def level(self, at: int, depth: int) -> tuple[list[Any], int]:
        """Read ``{...}`` at ``at``; return its items and the position after it."""
        text = self.text
        if depth > MAX_DIMENSIONS:
            raise DataError(
                "54000",
                f"number of array dimensions ({depth}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
            )
        items: list[Any] = []
        at = _skip(text, at + 1)
        if text[at : at + 1] == "}":
            if depth > 1:
                raise _malformed(text, 'Unexpected "}" character.')
            return items, at + 1
        while True:
            give_way()
            at = _skip(text, at)
            char = text[at : at + 1]
            if char == "{":
                if items and not isinstance(items[-1], list):
                    raise _malformed(text, 'Unexpected "{" character.')
                item: Any
                item, at = self.level(at, depth + 1)
                items.append(item)
            elif char == "":
                raise _malformed(text, "Unexpected end of input.")
            elif char in self.stops:
                raise _malformed(text, f'Unexpected "{char}" character.')
            else:
                if items and isinstance(items[-1], list):
                    raise _malformed(text, "Unexpected array element.")
                item, at = self.item(at)
                items.append((item,))
            at = _skip(text, at)
            char = text[at : at + 1]
            if char == "}":
                return items, at + 1
            if char == "":
                raise _malformed(text, "Unexpected end of input.")
            if char == "{":
                raise _malformed(text, 'Unexpected "{" character.')
            if char == "\\":
                raise _malformed(text, 'Unexpected "\\" character.')
            if char != self.delimiter:
                raise _malformed(text, "Unexpected array element.")
            at += 1

    def item(self, at: int) -> tuple[str | None, int]:
        """Read one element's text, quoted or not."""
        text = self.text
        if text[at] == '"':
            piece, at = self.quoted(at)
            return piece, at
        match = _PLAIN[self.delimiter].match(text, at, at + _WINDOW)
        if (
            match is not None
            and match.end() < at + _WINDOW
            and text[match.end() : match.end() + 1] in (self.delimiter, "}")
        ):
            piece = match[0]
            return (None if piece in self.nulls else piece), match.end()
        out: list[str] = []
        kept = 0  # blanks at the end are dropped, but not escaped ones
        escaped = False
        looked = at
        while True:
            char = text[at : at + 1]
            if at - looked >= 1024:
                looked = at
                give_way()
            if char == "":
                raise _malformed(text, "Unexpected end of input.")
            if char in self.stops:
                break
            if char == "{":
                raise _malformed(text, 'Unexpected "{" character.')
            if char == '"':
                raise _malformed(text, "Unexpected array element.")
            if char == "\\":
                at += 1
                if at >= len(text):
                    raise _malformed(text, "Unexpected end of input.")
                escaped = True
                out.append(text[at])
                kept = len(out)
            else:
                out.append(char)
                if char not in _SPACE:
                    kept = len(out)
            at += 1
        piece = joined(out[:kept])
        return (None if not escaped and piece in self.nulls else piece), at

    def quoted(self, at: int) -> tuple[str, int]:
        text = self.text
        out: list[str] = []
        at += 1
        while True:
            give_way()
            found = _ENDS.search(text, at, at + _WINDOW)
            end = min(at + _WINDOW, len(text)) if found is None else found.start()
            out.append(text[at:end])
            if found is None and end < len(text):
                at = end
                continue
            if end >= len(text):
                raise _malformed(text, "Unexpected end of input.")
            if text[end] == '"':
                return joined(out), end + 1
            if end + 1 >= len(text):
                raise _malformed(text, "Unexpected end of input.")
            out.append(text[end + 1])
            at = end + 2


def _measure(items: list[Any], text: str) -> tuple[int, ...]:
    """Return the lengths of a rectangular nest of lists (elements are 1-tuples); ``()`` if it is empty."""
    uneven = "Multidimensional arrays must have sub-arrays with matching dimensions."
    if not items:
        return ()
    if not isinstance(items[0], list):
        if any(isinstance(item, list) for item in paced(items, 1024)):
            raise _malformed(text, uneven)
        return (len(items),)
    inner: set[tuple[int, ...]] = set()
    for item in paced(items):
        if not isinstance(item, list):
            raise _malformed(text, uneven)
        inner.add(_measure(item, text))
    if len(inner) != 1:
        raise _malformed(text, uneven)
    (lengths,) = inner
    return (len(items), *lengths) if lengths else ()


def _freeze(items: list[Any], element: Callable[[str], Any]) -> Array:
    """Turn lists into tuples and texts into elements; done last, so that syntax errors come first."""
    return tupled(
        [
            _freeze(item, element)
            if isinstance(item, list)
            else None
            if item[0] is None
            else element(item[0])
            for item in paced(items)
        ]
    )


def quote(text: str, delimiter: str = ",") -> str:
    """Quote one element's text if it needs to be."""
    if len(text) <= SHORT:
        if _NEEDS_QUOTES[delimiter].search(text):
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return text
    if run_end(_UNQUOTED[delimiter], text, 0) == len(text):
        return text
    return joined(('"', replaced(replaced(text, "\\", "\\\\"), '"', '\\"'), '"'))


def printer(
    element: Callable[[Any], str], *, leaf_is_tuple: bool, plain: bool, delimiter: str = ","
) -> Callable[[Array], str]:
    """Return the function that prints arrays; ``plain`` promises that elements never need quotes."""

    def items(value: Array) -> str:
        if plain:
            return joined(["NULL" if item is None else element(item) for item in paced(value)], delimiter)
        return joined(
            ["NULL" if item is None else quote(element(item), delimiter) for item in paced(value)], delimiter
        )

    def show(value: Array) -> str:
        if not value:
            return "{}"
        lengths = dimensions(value, leaf_is_tuple)
        shown = _show_level(value, len(lengths), items, delimiter)
        if type(value) is BoundedArray:
            return joined((show_bounds(value.lows, lengths), "=", shown), "")
        return shown

    return show


def _show_level(value: Array, depth: int, items: Callable[[Array], str], delimiter: str) -> str:
    if depth > 1:
        inner = depth - 1
        levels = [_show_level(item, inner, items, delimiter) for item in paced(value)]
        return joined(("{", joined_up(levels, delimiter), "}"))
    if (
        len(value) > SHOWN
    ):  # texts of some at a time, so that not all of them are there at once, and freed at once
        parts = [items(value[at : at + SHOWN]) for at in range(0, len(value), SHOWN)]
        parts[0], parts[-1] = joined(("{", parts[0])), joined((parts[-1], "}"))
        return joined(parts, delimiter)
    shown = items(value)
    return "{" + shown + "}" if len(shown) <= PIECE else joined(("{", shown, "}"))


def show_bounds(lows: tuple[int, ...], lengths: tuple[int, ...]) -> str:
    """Return the bounds of an array's dimensions, as ``array_dims`` does."""
    return "".join([f"[{low}:{low + length - 1}]" for low, length in zip(lows, lengths, strict=True)])


SHOWN: Final = 4096
"""Elements of an array that are printed at once."""
_HEADER: Final = struct.Struct(">iii")
_DIMENSION: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")


def recv(data: bytes, element_oid: int, element: Callable[[bytes], Any]) -> Array:
    """Read the binary form; 42804 for another element type, 22P03 for a broken header, 54000 for bounds."""
    items, lows = _received(data, element_oid, element)
    return bounded(items, lows)


def _received(
    data: bytes, element_oid: int, element: Callable[[bytes], Any]
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """As ``recv``: the items, nested by their dimensions, and the lower bounds of these."""
    if len(data) < 12:
        raise DataError("08P01", "insufficient data left in message")
    count, flags, oid = _HEADER.unpack_from(data)
    if count < 0:
        raise DataError("22P03", f"invalid number of dimensions: {count}")
    if count > MAX_DIMENSIONS:
        raise DataError(
            "54000", f"number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
        )
    if flags not in (0, 1):
        raise DataError("22P03", "invalid array flags")
    if oid != element_oid and oid < FIRST_ASSIGNED_OID and element_oid < FIRST_ASSIGNED_OID:
        # clients need not know users' types (array_recv)
        raise DataError(
            "42804", f"binary data has array element type {oid} instead of expected {element_oid}"
        )
    at = 12
    lengths: list[int] = []
    lows: list[int] = []
    for _ in range(count):
        if len(data) < at + 8:
            raise DataError("08P01", "insufficient data left in message")
        length, bound = _DIMENSION.unpack_from(data, at)
        if length < 0:
            raise DataError("22P03", "invalid array length")
        lengths.append(length)
        lows.append(bound)
        at += 8
    check_size(tuple(lengths))
    check_bounds(tuple(lengths), tuple(lows))
    total = 1 if lengths else 0
    for length in lengths:
        total *= length
    items: list[Any] = []
    view = memoryview(data)
    for _ in paced(range(total)):
        if len(data) < at + 4:
            raise DataError("08P01", "insufficient data left in message")
        (size,) = _LENGTH.unpack_from(data, at)
        at += 4
        if size == -1:
            items.append(None)
            continue
        if size < 0 or len(data) < at + size:
            raise DataError("22P03", "insufficient data left in message")
        items.append(element(bytes(cut_bytes(data, at, at + size) if size > PIECE else view[at : at + size])))
        at += size
    if at != len(data):
        raise DataError("22P03", "incorrect binary data format")
    return nest(items, tuple(lengths)), tuple(lows)


def vector_receiver(element_oid: int, element: Callable[[bytes], int]) -> Callable[[bytes], Array]:
    """Return the reader of the binary form of int2vector or oidvector: arrays of one dimension that begin at 0."""

    def receive(data: bytes) -> Array:
        value, lows = _received(data, element_oid, element)
        if value and (lows != (0,) or holds(value, None)):
            name = "oidvector" if element_oid == OID else "int2vector"
            raise DataError("22P03", f"invalid {name} data")
        return value

    return receive


def sender(
    element_oid: int, element: Callable[[Any], bytes], *, leaf_is_tuple: bool, lower_bound: int = 1
) -> Callable[[Array], bytes]:
    """Return the function that gives the binary form."""

    def send(value: Array) -> bytes:
        lengths = dimensions(value, leaf_is_tuple)
        items = flatten(value, len(lengths)) if lengths else []
        if not lengths and lower_bound == 0:
            lengths = (0,)  # an empty vector still has its one dimension
        has_null = False
        parts: list[bytes | bytearray] = []  # behind the header; long items by themselves
        out = bytearray()
        lows = value.lows if type(value) is BoundedArray else (lower_bound,) * len(lengths)
        for length, low in zip(lengths, lows, strict=True):
            out += _DIMENSION.pack(length, low)
        for item in paced(items):
            if item is None:
                has_null = True
                out += b"\xff\xff\xff\xff"
            else:
                data = element(item)
                out += _LENGTH.pack(len(data))
                if len(data) > PIECE:
                    parts += out, data
                    out = bytearray()
                else:
                    out += data
        parts.append(out)
        return joined_bytes((_HEADER.pack(len(lengths), has_null, element_oid), *parts))

    return send
