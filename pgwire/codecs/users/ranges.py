"""Range and multirange types: values as bytes that order as the types do, and their text and binary forms.

    range       00                                  empty, below all others
                01 lower upper
    multirange  range ... 00                        ordered, apart from each other; shorter ones first

    bound       01 and nine 00                            no lower bound
                02 element (8 bytes, sign flipped) at     int4, int8, date, timestamp, timestamptz ...
                03 element (ends itself)           at     numeric; floats, texts ... in ranges of one's own
                04 and nine 00                            no upper bound
    at          01 just below the element (upper, exclusive) · 02 at it (inclusive) · 03 just above it (lower, exclusive)

Elements: ``pgwire.codecs.users.range_elements``. So the ranges of the first kind, but for the empty one, have
21 bytes, and the engines find bounds by their places (``planner.lower.forms.range``). Any two bounds compare
as bytes, lower ones with upper ones, too (PostgreSQL's range_cmp_bounds). A numeric's display scale does not
count in comparisons; ``numrange`` and ``nummultirange`` keep the scales behind what does:

    what is compared | two bytes for each bound | length of that, four bytes

Ranges over types without keys of their own (arrays, intervals ...) keep the elements there, each behind four
bytes with its length.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pgwire.codecs import domain
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import quoting
from pgwire.codecs.text.quoted import Ends, Unended, read_quoted
from pgwire.codecs.time.calendar import check_date
from pgwire.codecs.users.packed import pack_values, unpack_values
from pgwire.codecs.users.range_elements import (
    FIXED,
    KEPT,
    SIGN,
    fixed_key,
    kept_key,
    key_end,
    number_key,
    other_key,
    value_of,
)
from pgwire.give_way import PACE, give_way, paced, paced_iter
from pgwire.long.values import (
    LONG,
    cut_bytes,
    in_order,
    joined,
    joined_bytes,
    joined_bytes_up,
    joined_up,
    replaced,
    run_end,
)
from pgwire.release import mind_long

_LOWEST, _FIXED, _OTHER, _HIGHEST = 1, 2, 3, 4
_BELOW, _AT, _ABOVE = 1, 2, 3
_KEPT_BOUND: Final = bytes((_OTHER, KEPT))


class Bound(NamedTuple):
    """An end of a range: what is compared, the display scale of a numeric element (else 0), and a value that
    is kept (``RangeType.keeps``).
    """

    key: bytes
    scale: int = 0
    kept: bytes = b""

    @property
    def infinite(self) -> bool:
        """Whether there is no bound."""
        return self.key[0] in (_LOWEST, _HIGHEST)

    @property
    def inclusive(self) -> bool:
        """Whether the element belongs to the range."""
        return not self.infinite and self.key[-1] == _AT

    def moved(self, by: int) -> Bound:
        """Return the same place as the other kind of bound: an upper one's as lower (1), a lower one's as
        upper (-1).
        """
        return Bound(self.key[:-1] + bytes((self.key[-1] + by,)), self.scale, self.kept)


Span = tuple[Bound, Bound]
"""A range that is not empty: lower and upper bound."""

NO_LOWER: Final = Bound(bytes((_LOWEST, *[0] * 9)))
NO_UPPER: Final = Bound(bytes((_HIGHEST, *[0] * 9)))


@dataclass(frozen=True, slots=True)
class RangeType:
    """A range type and its multirange type: a built-in one, or one of CREATE TYPE ... AS RANGE.

    Attributes:
        subtype: the type of elements; where they are of a domain, what that is over. declared: that domain, 0
        for none; ``typmod``: what it is over is limited to. step: of discrete types: the function to the next
        element (22003, 22008), the element itself where it is infinite. compared: of types whose values are
        kept: the function to bytes that order as they do.
    """

    oid: int
    name: str
    subtype: int
    multirange: int
    multirange_name: str
    step: Callable[[int], int] | None = None
    compared: Callable[[Any], bytes] | None = None
    declared: int = 0
    typmod: int = -1

    @property
    def keeps(self) -> bool:
        """Whether elements are kept beside what is compared of them."""
        return self.compared is not None

    @property
    def tailed(self) -> bool:
        """Whether values end in what is not compared."""
        return self.scaled or self.keeps

    @property
    def scaled(self) -> bool:
        """Whether elements have display scales."""
        return self.subtype == domain.NUMERIC

    @property
    def fixed(self) -> bool:
        """Whether bounds are at fixed places."""
        return self.subtype in FIXED


def _step_int4(value: int) -> int:
    if value >= 2**31 - 1:
        raise DataError("22003", "integer out of range")
    return value + 1


def _step_int8(value: int) -> int:
    if value >= 2**63 - 1:
        raise DataError("22003", "bigint out of range")
    return value + 1


def _step_date(value: int) -> int:
    if abs(value) == domain.DATE_INFINITY:
        return value
    return check_date(value + 1)


_ALL: Final = (
    RangeType(3904, "int4range", domain.INT4, 4451, "int4multirange", _step_int4),
    RangeType(3906, "numrange", domain.NUMERIC, 4532, "nummultirange"),
    RangeType(3908, "tsrange", domain.TIMESTAMP, 4533, "tsmultirange"),
    RangeType(3910, "tstzrange", domain.TIMESTAMPTZ, 4534, "tstzmultirange"),
    RangeType(3912, "daterange", domain.DATE, 4535, "datemultirange", _step_date),
    RangeType(3926, "int8range", domain.INT8, 4536, "int8multirange", _step_int8),
)
BUILT_IN: Final = frozenset(type_.oid for type_ in _ALL)
RANGES: Final = {type_.oid: type_ for type_ in _ALL}
"""By oid, users' ones too (``pgwire.codecs.users.register.register_range``)."""
MULTIRANGES: Final = {type_.multirange: type_ for type_ in _ALL}


def range_type(oid: int) -> RangeType:
    """Return the range type with an oid, or that of a multirange type."""
    return RANGES.get(oid) or MULTIRANGES[oid]


# -- elements --------------------------------------------------------------------------------------------


def place(type_: RangeType, value: Any) -> Bound:
    """Return the place of an element among bounds: that of an inclusive bound."""
    if type_.fixed:
        return Bound(bytes((_FIXED,)) + fixed_key(value) + bytes((_AT,)))
    if type_.scaled:
        exponent = value.as_tuple().exponent
        scale = -exponent if isinstance(exponent, int) else 0
        return Bound(bytes((_OTHER,)) + number_key(value) + bytes((_AT,)), scale)
    if type_.compared is not None:
        key = kept_key(type_.compared(value))
        return Bound(bytes((_OTHER,)) + key + bytes((_AT,)), kept=pack_values((value,)))
    return Bound(bytes((_OTHER,)) + other_key(type_.subtype, value) + bytes((_AT,)))


def element(bound: Bound) -> Any:
    """Return the element of a bound, None where it is infinite."""
    if bound.infinite:
        return None
    if bound.key[0] == _FIXED:
        return int.from_bytes(bound.key[1:9], "big") - SIGN
    if bound.key[1] == KEPT:
        return unpack_values(bound.kept)[0]
    return value_of(bound.key[1:-1], bound.scale)


# -- values ----------------------------------------------------------------------------------------------


def make(
    type_: RangeType, lower: Any, upper: Any, *, lower_inclusive: bool = True, upper_inclusive: bool = False
) -> Span | None:
    """Return the range between two elements, None for the empty one; elements None are no bounds.

    Raises:
        DataError: 22000 for a lower bound above the upper one; 22003, 22008 where there is no next element.
    """
    low = NO_LOWER if lower is None else place(type_, lower)
    high = NO_UPPER if upper is None else place(type_, upper)
    if lower is not None and upper is not None and low.key > high.key:
        raise DataError("22000", "range lower bound must be less than or equal to range upper bound")
    if not lower_inclusive and lower is not None:
        low = low.moved(1)
    if not upper_inclusive and upper is not None:
        high = high.moved(-1)
    return between(type_, low, high)


def between(type_: RangeType, low: Bound, high: Bound) -> Span | None:
    """Return the range between two bounds in its canonical form, None where it is empty."""
    if low.key > high.key:
        return None
    if type_.step is not None:
        if not low.infinite and not low.inclusive:
            value = element(low)
            after = type_.step(value)
            low = low if after == value else place(type_, after)
        if high.inclusive:
            value = element(high)
            after = type_.step(value)
            high = high if after == value else place(type_, after).moved(-1)
        if low.key > high.key:
            return None
    return low, high


def _tailed(type_: RangeType, key: bytes, spans: Iterable[Span]) -> bytes:
    if not type_.tailed:
        return key
    bounds = (bound for span in paced_iter(spans) for bound in span)
    if type_.keeps:
        tail = joined_bytes_up([len(b.kept).to_bytes(4, "big") + b.kept for b in bounds])
    else:
        tail = joined_bytes_up([bound.scale.to_bytes(2, "big") for bound in bounds])
    return joined_bytes((key, tail, len(tail).to_bytes(4, "big")))


def pack_range(type_: RangeType, span: Span | None) -> bytes:
    """Return the value of a range."""
    if span is None:
        return _tailed(type_, b"\x00", ())
    return _tailed(type_, b"\x01" + span[0].key + span[1].key, (span,))


def pack_multirange(type_: RangeType, spans: Iterable[Span]) -> bytes:
    """Return the value of a multirange; ``spans`` in order and apart from each other (``normalized``)."""
    ordered = mind_long(tuple(paced_iter(spans)))
    key = joined_bytes_up([*(b"\x01" + low.key + high.key for low, high in paced(ordered)), b"\x00"])
    return _tailed(type_, key, ordered)


def _bound_end(data: bytes, at: int) -> int:
    return key_end(data, at + 1) + 1 if data[at] == _OTHER else at + 10


def _read(data: bytes, at: int) -> tuple[Span, int]:
    middle = _bound_end(data, at + 1)
    end = _bound_end(data, middle)
    return (Bound(data[at + 1 : middle]), Bound(data[middle:end])), end


def _with_tail(data: bytes, end: int, spans: list[Span]) -> list[Span]:
    if len(data) - end <= 4:  # none: other elements, or the value comes back from an index's key
        return spans
    if any(bound.key[:2] == _KEPT_BOUND for bound in spans[0]):
        return _with_kept(data, end, spans)
    scale = iter([int.from_bytes(data[i : i + 2], "big") for i in paced(range(end, len(data) - 4, 2), 1024)])
    return mind_long(
        [(Bound(low.key, next(scale)), Bound(high.key, next(scale))) for low, high in paced(spans)]
    )


def _with_kept(data: bytes, at: int, spans: list[Span]) -> list[Span]:
    out: list[Span] = []
    for span in paced(spans):
        bounds: list[Bound] = []
        for bound in span:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            bounds.append(Bound(bound.key, kept=bytes(data[at + 4 : end])))
            at = end
        out.append((bounds[0], bounds[1]))
    return mind_long(out)


def unpack_range(data: bytes) -> Span | None:
    """Return the bounds of a range, None for the empty one."""
    if not data[0]:
        return None
    span, end = _read(data, 0)
    return _with_tail(data, end, [span])[0]


def unpack_multirange(data: bytes) -> list[Span]:
    """Return the ranges of a multirange in order."""
    spans: list[Span] = []
    at = 0
    while data[at]:
        span, at = _read(data, at)
        spans.append(span)
        if not len(spans) % PACE:
            give_way()
    return _with_tail(data, at + 1, mind_long(spans))


def comparable(data: bytes) -> bytes:
    """Return what is compared of a value that has a tail (``RangeType.tailed``)."""
    end = len(data) - 4 - int.from_bytes(data[-4:], "big")
    return data[:end] if end < LONG else cut_bytes(data, 0, end)


def _key(span: Span) -> tuple[bytes, bytes]:
    return span[0].key, span[1].key


def normalized(spans: Sequence[Span]) -> list[Span]:
    """Return ranges in order, those that overlap or touch merged (PostgreSQL's multirange_canonicalize)."""
    out: list[Span] = []
    for low, high in paced_iter(mind_long(in_order(spans, _key))):
        if out and (low.key <= out[-1][1].key or touch(out[-1][1], low)):
            out[-1] = hull(out[-1], (low, high))
        else:
            out.append((low, high))
    return mind_long(out)


def hull(a: Span, b: Span) -> Span:
    """Return the smallest range that holds both; of equal bounds those of ``b``, as PostgreSQL has it."""
    return a[0] if a[0].key < b[0].key else b[0], a[1] if a[1].key > b[1].key else b[1]


def touch(upper: Bound, lower: Bound) -> bool:
    """Whether nothing is between an upper bound and the lower bound of a range behind it, and no element in both."""
    return not upper.infinite and upper.key[:-1] == lower.key[:-1] and upper.key[-1] + 1 == lower.key[-1]


# -- text ------------------------------------------------------------------------------------------------

_SPACES: Final = " \t\n\v\f\r"
_BLANK: Final = re.compile(r"[ \t\n\v\f\r]*")
_PLAIN: Final = re.compile(r"[^\"\\()\[\], \t\n\v\f\r]*")
_ENDS: Final = Ends(",)]")


class _Malformed(Exception):
    """Says what is wrong with a literal: the DETAIL."""


def _skip(text: str, at: int) -> int:
    if text[at : at + 1] not in _SPACES:
        return at
    return run_end(_BLANK, text, at)


def _bound_text(text: str, at: int) -> tuple[str | None, int]:
    """Return the text of a bound, None where there is none, and where it ends."""
    if text[at : at + 1] in _ENDS.marks and at < len(text):
        return None, at
    try:
        return read_quoted(text, at, _ENDS)
    except Unended:
        raise _Malformed("Unexpected end of input.") from None


def _parse_range(type_: RangeType, text: str, parse: Callable[[str], Any]) -> Span | None:
    give_way()
    at = _skip(text, 0)
    if text[at : at + 5].lower() == "empty":
        if _skip(text, at + 5) != len(text):
            raise _Malformed('Junk after "empty" key word.')
        return None
    if text[at : at + 1] not in ("[", "("):
        raise _Malformed("Missing left parenthesis or bracket.")
    opening = text[at]
    lower, at = _bound_text(text, at + 1)
    if text[at] != ",":
        raise _Malformed("Missing comma after lower bound.")
    upper, at = _bound_text(text, at + 1)
    closing = text[at]
    if closing == ",":
        raise _Malformed("Too many commas.")
    if _skip(text, at + 1) != len(text):
        raise _Malformed("Junk after right parenthesis or bracket.")
    return make(
        type_, None if lower is None else parse(lower), None if upper is None else parse(upper),
        lower_inclusive=opening == "[", upper_inclusive=closing == "]",
    )  # fmt: skip


def _span_of(type_: RangeType, text: str, parse: Callable[[str], Any]) -> Span | None:
    try:
        return _parse_range(type_, text, parse)
    except _Malformed as found:
        raise DataError("22P02", quoting("malformed range literal: ", text), detail=str(found)) from None


def range_parser(type_: RangeType, parse: Callable[[str], Any]) -> Callable[[str], bytes]:
    """Return the function that reads a range; it raises 22P02 and what ``make`` and elements raise."""
    return lambda text: pack_range(type_, _span_of(type_, text, parse))


def _pieces(text: str) -> list[str]:
    """Return the literals of the ranges of a multirange's literal."""
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise _Malformed("Missing left brace.")
    at = _skip(text, at + 1)
    pieces: list[str] = []
    first = True
    while True:
        if text[at : at + 1] == "}" and first:
            break
        start = at
        if text[at : at + 5].lower() == "empty":
            at += 5
        elif text[at : at + 1] in ("[", "(") and at < len(text):
            at = _range_end(text, at)
        elif at == len(text):
            raise _Malformed("Unexpected end of input.")
        else:
            raise _Malformed("Expected range start.")
        pieces.append(text[start:at])
        give_way()
        at = _skip(text, at)
        first = False
        char = text[at : at + 1]
        if char == "}":
            break
        if char == "":
            raise _Malformed("Unexpected end of input.")
        if char != ",":
            raise _Malformed("Expected comma or end of multirange.")
        at = _skip(text, at + 1)
    if _skip(text, at + 1) != len(text):
        raise _Malformed("Junk after closing right brace.")
    return pieces


def _range_end(text: str, at: int) -> int:
    quoted = False
    while True:
        at = run_end(_WITHIN if quoted else _WITHOUT, text, at)
        char = text[at : at + 1]
        if char == "\\":
            at += 2
        elif char == '"':
            quoted = not quoted
            at += 1
        elif char:
            return at + 1
        else:
            raise _Malformed("Unexpected end of input.")
        give_way()


_WITHIN: Final = re.compile(r'[^"\\]*')
_WITHOUT: Final = re.compile(r'[^"\\)\]]*')


def multirange_parser(type_: RangeType, parse: Callable[[str], Any]) -> Callable[[str], bytes]:
    """Return the function that reads a multirange; it raises 22P02 and what ``make`` and elements raise."""

    def read(text: str) -> bytes:
        try:
            pieces = _pieces(text)
        except _Malformed as found:
            raise DataError(
                "22P02", quoting("malformed multirange literal: ", text), detail=str(found)
            ) from None
        spans = mind_long([_span_of(type_, piece, parse) for piece in mind_long(pieces)])
        return pack_multirange(type_, normalized([span for span in spans if span is not None]))

    return read


def _escaped(text: str) -> str:
    if text and run_end(_PLAIN, text, 0) == len(text):
        return text
    return joined(('"', replaced(replaced(text, "\\", "\\\\"), '"', '""'), '"'))


def _span_text(span: Span | None, show: Callable[[Any], str]) -> str:
    if span is None:
        return "empty"
    low, high = span
    lower = "" if low.infinite else _escaped(show(element(low)))
    upper = "" if high.infinite else _escaped(show(element(high)))
    return f"{'[' if low.inclusive else '('}{lower},{upper}{']' if high.inclusive else ')'}"


def range_printer(show: Callable[[Any], str]) -> Callable[[bytes], str]:
    """Return the function that prints a range."""
    return lambda value: _span_text(unpack_range(value), show)


def multirange_printer(show: Callable[[Any], str]) -> Callable[[bytes], str]:
    """Return the function that prints a multirange."""
    return lambda value: joined(
        (
            "{",
            joined_up([_span_text(span, show) for span in paced(unpack_multirange(value))], ","),
            "}",
        )
    )


# -- binary ----------------------------------------------------------------------------------------------

EMPTY, LOWER_INCLUSIVE, UPPER_INCLUSIVE, LOWER_INFINITE, UPPER_INFINITE = 1, 2, 4, 8, 16
_LENGTH: Final = struct.Struct(">i")


def flags_of(span: Span | None) -> int:
    """Return PostgreSQL's flags of a range, as its binary form and hash have them."""
    if span is None:
        return EMPTY
    low, high = span
    flags = LOWER_INFINITE if low.infinite else LOWER_INCLUSIVE if low.inclusive else 0
    return flags | (UPPER_INFINITE if high.infinite else UPPER_INCLUSIVE if high.inclusive else 0)


def _send_span(span: Span | None, send: Callable[[Any], bytes]) -> bytes:
    out = bytes((flags_of(span),))
    for bound in span or ():
        if not bound.infinite:
            data = send(element(bound))
            out += _LENGTH.pack(len(data)) + data
    return out


def range_sender(send: Callable[[Any], bytes]) -> Callable[[bytes], bytes]:
    """Return the function to a range's binary form: flags, then each bound with its length."""
    return lambda value: _send_span(unpack_range(value), send)


def multirange_sender(send: Callable[[Any], bytes]) -> Callable[[bytes], bytes]:
    """Return the function to a multirange's binary form: how many ranges, then each with its length."""

    def function(value: bytes) -> bytes:
        spans = unpack_multirange(value)
        parts = [_LENGTH.pack(len(spans))]
        for span in paced(spans):
            data = _send_span(span, send)
            parts.append(_LENGTH.pack(len(data)) + data)
        return joined_bytes_up(parts)

    return function


_MOST_RANGES: Final = 2**27 - 1
"""Of a multirange: what PostgreSQL has the memory for."""


def _take(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes whose length is at ``at``, and their end; 08P01."""
    if at + 4 > len(data):
        raise DataError("08P01", "insufficient data left in message")
    (length,) = _LENGTH.unpack_from(data, at)
    end = at + 4 + length
    if length < 0 or end > len(data):
        raise DataError("08P01", "insufficient data left in message")
    return bytes(data[at + 4 : end]), end


def _recv_span(type_: RangeType, data: bytes, recv: Callable[[bytes], Any]) -> Span | None:
    if not data:
        raise DataError("08P01", "no data left in message")
    flags, at = data[0], 1
    lower = upper = None
    if not flags & (EMPTY | LOWER_INFINITE):
        piece, at = _take(data, at)
        lower = recv(piece)
    if not flags & (EMPTY | UPPER_INFINITE):
        piece, at = _take(data, at)
        upper = recv(piece)
    if at != len(data):
        raise DataError("22P03", "incorrect binary data format")
    if flags & EMPTY:
        return None
    return make(
        type_, lower, upper, lower_inclusive=bool(flags & LOWER_INCLUSIVE),
        upper_inclusive=bool(flags & UPPER_INCLUSIVE),
    )  # fmt: skip


def range_receiver(type_: RangeType, recv: Callable[[bytes], Any]) -> Callable[[bytes], bytes]:
    """Return the function from a range's binary form; it raises 08P01, 22P03 and what ``make`` raises."""
    return lambda data: pack_range(type_, _recv_span(type_, data, recv))


def multirange_receiver(type_: RangeType, recv: Callable[[bytes], Any]) -> Callable[[bytes], bytes]:
    """Return the function from a multirange's binary form; it raises 08P01, 22P03 and what ``make`` raises."""

    def function(data: bytes) -> bytes:
        if len(data) < 4:
            raise DataError("08P01", "insufficient data left in message")
        (count,) = _LENGTH.unpack_from(data)
        if not 0 <= count <= _MOST_RANGES:
            raise DataError("22P03", f"invalid number of ranges: {count}")
        at = 4
        spans = []
        for _ in range(count):
            piece, at = _take(data, at)
            spans.append(_recv_span(type_, piece, recv))
            give_way()
        mind_long(spans)
        if at != len(data):
            raise DataError("22P03", "incorrect binary data format")
        return pack_multirange(type_, normalized([span for span in spans if span is not None]))

    return function
