"""Engine forms of the tests of ranges: what a filter over many rows asks.

Ranges of types with a fixed width have their bounds at fixed places (``pgwire.codecs.users.ranges``); others
have no engine form:

    01 | lower bound | upper bound        1 + 10 + 10 bytes; the empty range has one byte, and its bounds here none
         2 .. 11       12 .. 21

Each form has both arguments in each term, so that it is NULL where one of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgwire.codecs.users.ranges import place, range_type
from planner.base.errors import not_supported
from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import NOT_CONSTANT, Val, kind_of
from planner.types import TIMESTAMP_INFINITY, SqlType

_FULL, _EMPTY = 21, 1
_ELEMENTS = ("int32", "int64", "date", "timestamp", "timestamptz")
"""Kinds of elements that are made of the bytes of a bound."""


def _piece(d: Dialect, value: Node, start: int, stop: int) -> Node:
    return d.bytes_of(value, b.integer(start), b.integer(stop - start + 1))


def _fixed(value: Val) -> Node:
    """Return the bytes of a range whose bounds are at fixed places; 0A000 for others."""
    if kind_of(value.type.oid) != "bytes" or not range_type(value.type.oid).fixed:
        raise not_supported("a function of such ranges in this executor")
    return value.node


def _lower(d: Dialect, value: Node) -> Node:
    return _piece(d, value, 2, 11)


def _upper(d: Dialect, value: Node) -> Node:
    return _piece(d, value, 12, 21)


def _length(value: Node) -> Node:
    return b.fn("octet_length", value)


def _both_full(left: Node, right: Node) -> Node:
    return b.op("=", b.op("+", _length(left), _length(right)), b.integer(2 * _FULL))


def _contains(d: Dialect, left: Node, right: Node) -> Node:
    return b.or_(
        b.and_(b.op("=", _length(right), b.integer(_EMPTY)), b.op(">", _length(left), b.integer(0))),
        b.and_(
            b.op("<=", _lower(d, left), _lower(d, right)),
            b.op("<=", _upper(d, right), _upper(d, left)),
        ),
    )


_Test = Callable[[Dialect, Node, Node], Node]
_TESTS: dict[str, _Test] = {
    "overlaps": lambda d, x, y: b.and_(
        b.op("<=", _lower(d, x), _upper(d, y)), b.op("<=", _lower(d, y), _upper(d, x)), _both_full(x, y)
    ),
    "before": lambda d, x, y: b.and_(b.op("<", _upper(d, x), _lower(d, y)), _both_full(x, y)),
    "after": lambda d, x, y: b.and_(b.op("<", _upper(d, y), _lower(d, x)), _both_full(x, y)),
    "overleft": lambda d, x, y: b.and_(b.op("<=", _upper(d, x), _upper(d, y)), _both_full(x, y)),
    "overright": lambda d, x, y: b.and_(b.op("<=", _lower(d, y), _lower(d, x)), _both_full(x, y)),
    "contains": _contains,
    "contained_by": lambda d, x, y: _contains(d, y, x),
}  # fmt: skip


def _test(test: _Test) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        return test(d, _fixed(args[0]), _fixed(args[1]))

    return form


def _place(d: Dialect, range_: Val, item: Val) -> Node:
    """Return the place of an element among bounds; 0A000 for dates and timestamps that are not known before."""
    if item.constant is None:
        return d.literal(None, "bytes")
    if item.constant is not NOT_CONSTANT:
        return d.literal(place(range_type(range_.type.oid), item.constant).key, "bytes")
    if kind_of(item.type.oid) not in ("int32", "int64"):
        raise not_supported("a range and an element of each row in this executor")
    number, sign = d.as_kind(item.node, "int64"), d.literal(-(2**63), "int64")
    flipped = b.fn("xor", number, sign) if d.name == "duckdb" else b.op("^", number, sign)
    digits = b.fn("lpad", b.fn("hex", flipped), b.integer(16), b.string("0"))
    return b.fn(
        "unhex", b.op("||", b.op("||", b.string("02"), digits), b.string("02"))
    )  # concat() skips NULLs


def _has_element(range_at: int) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        range_ = args[range_at]
        value, at = _fixed(range_), _place(d, range_, args[1 - range_at])
        return b.and_(b.op("<=", _lower(d, value), at), b.op("<=", at, _upper(d, value)))

    return form


def _byte_is(at: int, byte: int) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        return b.op("=", _piece(d, _fixed(args[0]), at, at), d.literal(bytes((byte,)), "bytes"))

    return form


def _half(d: Dialect, digits: Node, start: int) -> Node:
    """Return eight hexadecimal digits as a number."""
    return d.number_of_hex(b.fn("substring", digits, b.integer(start), b.integer(8)))


def _of_number(d: Dialect, number: Node, kind: str) -> Node:
    """Return the value of a kind that the value domain has as ``number`` (``planner.types``)."""
    if kind in ("int32", "int64"):
        return d.as_kind(number, kind)
    if kind == "date":
        days = d.as_kind(number, "int32")
        return b.fn("make_date" if d.name == "duckdb" else "date_from_unix_date", days)
    if d.name == "duckdb":
        made = b.fn("make_timestamp" if kind == "timestamp" else "make_timestamptz", number)
        ends = (TIMESTAMP_INFINITY, -TIMESTAMP_INFINITY)
        return b.case([(b.op("=", number, d.literal(n, "int64")), d.literal(n, kind)) for n in ends], made)
    return d.as_kind(b.fn("timestamp_micros", number), kind)


def _end(start: int) -> SqlForm:
    """Return the form of the element of the bound that begins at ``start``, NULL where there is none."""

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        value = _fixed(args[0])
        if kind_of(result.oid) not in _ELEMENTS:
            raise not_supported("the bounds of such ranges in this executor")
        digits = b.fn("hex", _piece(d, value, start + 1, start + 8))
        high = b.op("-", _half(d, digits, 1), d.literal(2**31, "int64"))
        number = b.op("+", b.op("*", high, d.literal(2**32, "int64")), _half(d, digits, 9))
        found = _of_number(d, number, kind_of(result.oid))
        is_finite = b.op("=", _piece(d, value, start, start), d.literal(b"\x02", "bytes"))
        return b.case([(is_finite, found)])

    return form


def _is_empty(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return b.op("=", _length(_fixed(args[0])), b.integer(_EMPTY))


def _register() -> None:
    forms: dict[str, SqlForm] = {
        **{f"range_{name}(anyrange,anyrange)": _test(test) for name, test in _TESTS.items()},
        "range_contains_elem(anyrange,anyelement)": _has_element(0),
        "elem_contained_by_range(anyelement,anyrange)": _has_element(1),
        "lower(anyrange)": _end(2),
        "upper(anyrange)": _end(12),
        "isempty(anyrange)": _is_empty,
        "lower_inf(anyrange)": _byte_is(2, 1),
        "upper_inf(anyrange)": _byte_is(12, 4),
        "lower_inc(anyrange)": _byte_is(11, 2),
        "upper_inc(anyrange)": _byte_is(21, 2),
    }
    for signature, form in forms.items():
        REGISTRY.sql(signature, duckdb=form, spark=form)


_register()
