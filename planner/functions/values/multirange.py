"""Multirange types (manual 8.17, 9.20): constructors, tests, operators and aggregates.

A multirange is an ordered list of ranges that neither overlap nor touch; a range beside one is a list of at most one:

    a        [--)     [------)   [---]
    b    [------------)      [------)
    a - b             [------)      [-]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from pgwire.codecs.users.ranges import (
    BUILT_IN,
    RANGES,
    RangeType,
    Span,
    between,
    element,
    normalized,
    pack_multirange,
    pack_range,
    place,
    range_type,
    unpack_multirange,
    unpack_range,
)
from pgwire.give_way import PACE, give_way, paced, paced_iter
from pgwire.long.arrays import gathered
from pgwire.long.values import joined_bytes_up
from pgwire.release import mind_long
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.values.range import Types, adjacent, common, contains, overlap, register_order

Spans = Sequence[Span]


def _of_range(value: bytes) -> Spans:
    span = unpack_range(value)
    return () if span is None else (span,)


_READ: dict[str, Callable[[bytes], Spans]] = {"range": _of_range, "multirange": unpack_multirange}


def _whole(spans: Spans) -> Span:
    return spans[0][0], spans[-1][1]


def spans_overlap(a: Spans, b: Spans) -> bool:
    """Whether some element is in both; both are ordered."""
    i = j = 0
    while i < len(a) and j < len(b):
        if overlap(a[i], b[j]):
            return True
        if a[i][1].key < b[j][1].key:
            i += 1
        else:
            j += 1
        if not (i + j) % PACE:
            give_way()
    return False


def spans_contain(a: Spans, b: Spans) -> bool:
    """Whether each range of ``b`` is in one of ``a``; both are ordered."""
    i = 0
    for span in paced(b):
        while i < len(a) and a[i][1].key < span[0].key:
            i += 1
            if not i % PACE:
                give_way()
        if i == len(a) or not contains(a[i], span):
            return False
    return True


def spans_minus(type_: RangeType, a: Spans, b: Spans) -> list[Span]:
    """Return what is in ``a`` and not in ``b``; both are ordered."""
    out: list[Span] = []
    first = 0
    for low, high in paced(a):
        while first < len(b) and b[first][1].key < low.key:
            first += 1
            if not first % PACE:
                give_way()
        rest: Span | None = (low, high)
        for number in paced(range(first, len(b))):
            other = b[number]
            if rest is None or other[0].key > rest[1].key:
                break
            if other[0].key > rest[0].key:
                piece = between(type_, rest[0], other[0].moved(-1))
                if piece is not None:
                    out.append(piece)
            rest = between(type_, other[1].moved(1), rest[1]) if other[1].key < rest[1].key else None
        if rest is not None:
            out.append(rest)
    return mind_long(out)


def spans_intersect(type_: RangeType, a: Spans, b: Spans) -> list[Span]:
    """Return what is in both; both are ordered."""
    out: list[Span] = []
    i = j = 0
    while i < len(a) and j < len(b):
        found = common(type_, a[i], b[j])
        if found is not None:
            out.append(found)
        if a[i][1].key < b[j][1].key:
            i += 1
        else:
            j += 1
        if not (i + j) % PACE:
            give_way()
    return mind_long(out)


_TESTS: dict[str, Callable[[Spans, Spans], bool]] = {
    "overlaps": spans_overlap,
    "adjacent": lambda a, b: bool(a and b) and adjacent(_whole(a), _whole(b)),
    "before": lambda a, b: bool(a and b) and a[-1][1].key < b[0][0].key,
    "after": lambda a, b: bool(a and b) and a[0][0].key > b[-1][1].key,
    "overleft": lambda a, b: bool(a and b) and a[-1][1].key <= b[-1][1].key,
    "overright": lambda a, b: bool(a and b) and a[0][0].key >= b[0][0].key,
    "contains": spans_contain,
    "contained_by": lambda a, b: spans_contain(b, a),
}


def _test(left: str, right: str, test: Callable[[Spans, Spans], bool]) -> Callable[[bytes, bytes], bool]:
    first, second = _READ[left], _READ[right]
    return lambda a, b: test(first(a), second(b))


def contains_element(value: bytes, item: Any, *, types: Types) -> bool:
    """SQL's ``multirange @> element``."""
    at = place(range_type(types[0]), item).key
    return any(low.key <= at <= high.key for low, high in paced(unpack_multirange(value)))


def _made(combine: Callable[[RangeType, Spans, Spans], Spans]) -> Callable[..., bytes]:
    def function(a: bytes, b: bytes, *, types: Types) -> bytes:
        type_ = range_type(types[0])
        return pack_multirange(type_, combine(type_, unpack_multirange(a), unpack_multirange(b)))

    return function


def multirange_constructor(type_: RangeType) -> Callable[..., bytes]:
    """Return SQL's function from an array of ranges to a multirange."""

    def construct(values: tuple[bytes | None, ...] = ()) -> bytes:
        if values and isinstance(values[0], tuple):
            raise SqlError("21000", "multiranges cannot be constructed from multidimensional arrays")
        spans: list[Span] = []
        for value in paced(values):
            if value is None:
                raise SqlError("22004", "multirange values cannot contain null members")
            spans += _of_range(value)
        return pack_multirange(type_, normalized(mind_long(spans)))

    return construct


def of_range(value: bytes, *, types: Types) -> bytes:
    """Return a range as a multirange."""
    return pack_multirange(range_type(types[0]), _of_range(value))


def unnest(value: bytes, *, types: Types) -> Iterator[bytes]:
    """Return the ranges of a multirange."""
    type_ = range_type(types[0])
    return iter(gathered(pack_range(type_, span) for span in paced(unpack_multirange(value))))


def merged(value: bytes, *, types: Types) -> bytes:
    """Return the smallest range that has all of a multirange."""
    spans = unpack_multirange(value)
    return pack_range(range_type(types[0]), _whole(spans) if spans else None)


def _bound(position: int) -> Callable[[bytes], Any]:
    def function(value: bytes) -> Any:
        spans = unpack_multirange(value)
        return element(_whole(spans)[position]) if spans else None

    return function


def _end(position: int, attribute: str) -> Callable[[bytes], bool]:
    def function(value: bytes) -> bool:
        spans = unpack_multirange(value)
        return bool(spans) and bool(getattr(_whole(spans)[position], attribute))

    return function


def multirange_key(value: bytes) -> bytes:
    """Return what of a multirange is compared."""
    return joined_bytes_up(
        [*(b"\x01" + low.key + high.key for low, high in paced(unpack_multirange(value))), b"\x00"]
    )


class Union:
    """range_agg of ranges or of multiranges."""

    def __init__(self, *, types: Types) -> None:
        """Start without a value."""
        self.type = range_type(types[0])
        self.read = _READ["range" if types[0] in RANGES else "multirange"]
        self.spans: list[Span] = []
        self.seen = False

    def step(self, value: bytes) -> None:
        """Add a range or a multirange."""
        self.seen = True
        for span in paced(self.read(value)):
            self.spans.append(span)

    def result(self) -> bytes | None:
        """Return all that is in some, NULL for no values."""
        return pack_multirange(self.type, normalized(self.spans)) if self.seen else None


class Intersection:
    """range_intersect_agg of multiranges."""

    def __init__(self, *, types: Types) -> None:
        """Start without a value."""
        self.type = range_type(types[0])
        self.spans: Spans | None = None

    def step(self, value: bytes) -> None:
        """Take a multirange."""
        spans = unpack_multirange(value)
        self.spans = spans if self.spans is None else spans_intersect(self.type, self.spans, spans)

    def result(self) -> bytes | None:
        """Return what is in all, NULL for no values."""
        return None if self.spans is None else pack_multirange(self.type, self.spans)


def _register() -> None:
    python = REGISTRY.python
    register_order("multirange", "anymultirange", multirange_key)
    for left, right in (("range", "multirange"), ("multirange", "range"), ("multirange", "multirange")):
        for name, test in _TESTS.items():
            python(f"{left}_{name}_{right}(any{left},any{right})", _test(left, right, test))
    python("multirange_contains_elem(anymultirange,anyelement)", contains_element, needs_types=True)
    python(
        "elem_contained_by_multirange(anyelement,anymultirange)",
        lambda item, value, *, types: contains_element(value, item, types=types[::-1]), needs_types=True,
    )  # fmt: skip
    operators: dict[str, Callable[[RangeType, Spans, Spans], Spans]] = {
        "union": lambda _, a, b: normalized(gathered(paced_iter(chain(a, b)))), "minus": spans_minus, "intersect": spans_intersect,
    }  # fmt: skip
    for name, combine in operators.items():
        python(f"multirange_{name}(anymultirange,anymultirange)", _made(combine), needs_types=True)
    for position, name in enumerate(("lower", "upper")):
        python(f"{name}(anymultirange)", _bound(position))
        python(f"{name}_inc(anymultirange)", _end(position, "inclusive"))
        python(f"{name}_inf(anymultirange)", _end(position, "infinite"))
    python("isempty(anymultirange)", lambda value: not value[0])
    python("range_merge(anymultirange)", merged, needs_types=True)
    python("multirange(anyrange)", of_range, needs_types=True)
    python("unnest(anymultirange)", unnest, needs_types=True)
    for type_ in (RANGES[oid] for oid in BUILT_IN):
        construct = multirange_constructor(type_)
        python(f"{type_.multirange_name}()", construct)
        python(
            f"{type_.multirange_name}({type_.name})", lambda value, construct=construct: construct((value,))
        )
        python(f"{type_.multirange_name}(_{type_.name})", construct)
    for pseudo in ("anyrange", "anymultirange"):
        REGISTRY.aggregate_python(f"range_agg({pseudo})", Union, needs_types=True)
    REGISTRY.aggregate_python("range_intersect_agg(anymultirange)", Intersection, needs_types=True)


_register()
