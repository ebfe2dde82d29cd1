"""Range types (manual 8.17, 9.20): constructors, tests, operators and aggregates of ranges.

Values are bytes whose bounds compare as bytes (``pgwire.codecs.users.ranges``):

    a      [-----------)          a << b  where the upper bound of a is below the lower bound of b
    b            (----------]     a && b  where neither lower bound is above the other's upper bound
    a * b        (-----)          lower = the greater lower bound, upper = the lesser upper bound
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pgwire.codecs.users.ranges import (
    BUILT_IN,
    RANGES,
    Bound,
    RangeType,
    Span,
    between,
    element,
    hull,
    make,
    pack_range,
    place,
    range_type,
    touch,
    unpack_range,
)
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.values.compare import register_comparisons

Types = tuple[int, ...]
SYMBOLS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLAGS = {"[]": (True, True), "[)": (True, False), "(]": (False, True), "()": (False, False)}


# -- pairs of ranges that are not empty ---------------------------------------------------------------


def overlap(a: Span, b: Span) -> bool:
    """Whether some element is in both."""
    return a[0].key <= b[1].key and b[0].key <= a[1].key


def contains(a: Span, b: Span) -> bool:
    """Whether all of ``b`` is in ``a``."""
    return a[0].key <= b[0].key and b[1].key <= a[1].key


def adjacent(a: Span, b: Span) -> bool:
    """Whether one begins where the other ends."""
    return touch(a[1], b[0]) or touch(b[1], a[0])


def common(type_: RangeType, a: Span, b: Span) -> Span | None:
    """Return what is in both."""
    low: Bound = a[0] if a[0].key >= b[0].key else b[0]
    high: Bound = a[1] if a[1].key <= b[1].key else b[1]
    return between(type_, low, high)


TESTS: dict[str, Callable[[Span, Span], bool]] = {
    "overlaps": overlap,
    "adjacent": adjacent,
    "before": lambda a, b: a[1].key < b[0].key,
    "after": lambda a, b: a[0].key > b[1].key,
    "overleft": lambda a, b: a[1].key <= b[1].key,
    "overright": lambda a, b: a[0].key >= b[0].key,
}


def _test(test: Callable[[Span, Span], bool]) -> Callable[[bytes, bytes], bool]:
    def function(a: bytes, b: bytes) -> bool:
        x, y = unpack_range(a), unpack_range(b)
        return x is not None and y is not None and test(x, y)

    return function


def range_contains(a: bytes, b: bytes) -> bool:
    """SQL's ``a @> b``: the empty range is in all."""
    x, y = unpack_range(a), unpack_range(b)
    return y is None or (x is not None and contains(x, y))


def contains_element(value: bytes, item: Any, *, types: Types) -> bool:
    """SQL's ``range @> element``."""
    span = unpack_range(value)
    return span is not None and span[0].key <= place(range_type(types[0]), item).key <= span[1].key


# -- functions that make ranges ------------------------------------------------------------------------


def range_constructor(type_: RangeType) -> Callable[..., bytes]:
    """Return SQL's function from two elements, and the words for its bounds, to a range."""

    def construct(lower: Any, upper: Any, flags: str | None = "[)") -> bytes:
        if flags is None:
            raise SqlError("22000", "range constructor flags argument must not be null")
        if flags not in _FLAGS:
            raise SqlError(
                "42601", "invalid range bound flags", hint='Valid values are "[]", "[)", "(]", and "()".'
            )
        first, last = _FLAGS[flags]
        return pack_range(type_, make(type_, lower, upper, lower_inclusive=first, upper_inclusive=last))

    return construct


def range_union(a: bytes, b: bytes, *, types: Types) -> bytes:
    """SQL's ``a + b``; 22000 where something is between them."""
    x, y = unpack_range(a), unpack_range(b)
    if x is None or y is None:
        return b if x is None else a
    if not overlap(x, y) and not adjacent(x, y):
        raise SqlError("22000", "result of range union would not be contiguous")
    return pack_range(range_type(types[0]), hull(x, y))


def range_merge(a: bytes, b: bytes, *, types: Types) -> bytes:
    """Return the smallest range that has both."""
    x, y = unpack_range(a), unpack_range(b)
    if x is None or y is None:
        return b if x is None else a
    return pack_range(range_type(types[0]), hull(x, y))


def range_intersect(a: bytes, b: bytes, *, types: Types) -> bytes:
    """SQL's ``a * b``."""
    type_ = range_type(types[0])
    x, y = unpack_range(a), unpack_range(b)
    return pack_range(type_, None if x is None or y is None else common(type_, x, y))


def range_minus(a: bytes, b: bytes, *, types: Types) -> bytes:
    """SQL's ``a - b``; 22000 where two ranges are left."""
    type_ = range_type(types[0])
    x, y = unpack_range(a), unpack_range(b)
    if x is None or y is None or not overlap(x, y):
        return a
    before, after = x[0].key < y[0].key, x[1].key > y[1].key
    if before and after:
        raise SqlError("22000", "result of range difference would not be contiguous")
    if before:
        return pack_range(type_, between(type_, x[0], y[0].moved(-1)))
    return pack_range(type_, between(type_, y[1].moved(1), x[1]) if after else None)


# -- parts --------------------------------------------------------------------------------------------


def _lower(value: bytes) -> Any:
    span = unpack_range(value)
    return None if span is None else element(span[0])


def _upper(value: bytes) -> Any:
    span = unpack_range(value)
    return None if span is None else element(span[1])


def _end(position: int, attribute: str) -> Callable[[bytes], bool]:
    def function(value: bytes) -> bool:
        span = unpack_range(value)
        return span is not None and bool(getattr(span[position], attribute))

    return function


class Intersection:
    """range_intersect_agg."""

    def __init__(self, *, types: Types) -> None:
        """Start without a value."""
        self.types = (types[0], types[0])
        self.value: bytes | None = None

    def step(self, value: bytes) -> None:
        """Take a range."""
        self.value = value if self.value is None else range_intersect(self.value, value, types=self.types)

    def result(self) -> bytes | None:
        """Return what is in all, NULL for none."""
        return self.value


def comparisons(function: Callable[[bytes], bytes]) -> dict[str, Callable[[Any, Any], bool]]:
    """Return the six comparisons by what ``function`` makes of values."""

    def by(compare: Callable[[bytes, bytes], bool]) -> Callable[[bytes, bytes], bool]:
        return lambda a, b: compare(function(a), function(b))

    return {name: by(getattr(operator, name)) for name in SYMBOLS}


def range_key(value: bytes) -> bytes:
    """Return what of a range is compared: all but display scales and elements that are kept."""
    span = unpack_range(value)
    return b"\x00" if span is None else b"\x01" + span[0].key + span[1].key


def register_order(stem: str, pseudo: str, key: Callable[[bytes], bytes]) -> None:
    """Register the comparisons of ranges, or of multiranges."""
    register_comparisons(comparisons(key), f"{stem}_%s", pseudo, pseudo, f"{stem}_cmp")


_DIFFERENCES: dict[str, tuple[str, Callable[[Any, Any], float]]] = {
    "int4range": ("int4", lambda a, b: float(a - b)), "int8range": ("int8", lambda a, b: float(a) - float(b)),
    "numrange": ("numeric", lambda a, b: float(a - b)), "daterange": ("date", lambda a, b: float(a - b)),
    "tsrange": ("timestamp", lambda a, b: (float(a) - float(b)) / 1e6),
    "tstzrange": ("timestamptz", lambda a, b: (float(a) - float(b)) / 1e6),
}  # fmt: skip


def _register() -> None:
    python, pair = REGISTRY.python, "(anyrange,anyrange)"
    register_order("range", "anyrange", range_key)
    for name, test in TESTS.items():
        python(f"range_{name}{pair}", _test(test))
    python(f"range_contains{pair}", range_contains)
    python(f"range_contained_by{pair}", lambda a, b: range_contains(b, a))
    python("range_contains_elem(anyrange,anyelement)", contains_element, needs_types=True)
    python(
        "elem_contained_by_range(anyelement,anyrange)",
        lambda item, value, *, types: contains_element(value, item, types=types[::-1]), needs_types=True,
    )  # fmt: skip
    for name, function in (
        ("union", range_union), ("merge", range_merge), ("intersect", range_intersect), ("minus", range_minus),
    ):  # fmt: skip
        python(f"range_{name}{pair}", function, needs_types=True)
    python("lower(anyrange)", _lower)
    python("upper(anyrange)", _upper)
    python("isempty(anyrange)", lambda value: not value[0])
    for position, name in enumerate(("lower", "upper")):
        python(f"{name}_inc(anyrange)", _end(position, "inclusive"))
        python(f"{name}_inf(anyrange)", _end(position, "infinite"))
    for type_ in (RANGES[oid] for oid in BUILT_IN):
        subtype, difference = _DIFFERENCES[type_.name]
        python(f"{type_.name}({subtype},{subtype})", range_constructor(type_))
        python(f"{type_.name}({subtype},{subtype},text)", range_constructor(type_))
        python(f"{type_.name}_subdiff({subtype},{subtype})", difference)
        if type_.step is not None:
            python(f"{type_.name}_canonical({type_.name})", lambda value: value)
    REGISTRY.aggregate_python("range_intersect_agg(anyrange)", Intersection, needs_types=True)


_register()
