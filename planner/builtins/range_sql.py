"""Engine forms of the tests of ranges: what a filter over many rows asks.

Ranges of types with a fixed width have their bounds at fixed places (``pgwire.codecs.ranges``); others have no engine form:

    01 | lower bound | upper bound        1 + 10 + 10 bytes; the empty range has one byte, and its bounds here none
         2 .. 11       12 .. 21

Each form has both arguments in each term, so that it is NULL where one of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgwire.codecs.ranges import RANGES, place
from planner.builtins.registry import REGISTRY, SqlForm
from planner.errors import not_supported
from planner.lower import build as b
from planner.lower.build import Node
from planner.lower.dialect import Dialect
from planner.lower.value import NOT_CONSTANT, Val, kind_of
from planner.types import SqlType

_FULL, _EMPTY = 21, 1


def _piece(d: Dialect, value: Node, start: int, stop: int) -> Node:
    if d.name == "duckdb":
        return b.fn("array_slice", value, b.integer(start), b.integer(stop))
    return b.fn("substring", value, b.integer(start), b.integer(stop - start + 1))


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
        return test(d, args[0].node, args[1].node)

    return form


def _place(d: Dialect, range_: Val, item: Val) -> Node:
    """Return the place of an element among bounds; 0A000 for dates and timestamps that are not known before."""
    if item.constant is None:
        return d.literal(None, "bytes")
    if item.constant is not NOT_CONSTANT:
        return d.literal(place(RANGES[range_.type.oid], item.constant).key, "bytes")
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
        value, item = args[range_at], args[1 - range_at]
        at = _place(d, value, item)
        return b.and_(b.op("<=", _lower(d, value.node), at), b.op("<=", at, _upper(d, value.node)))

    return form


def _byte_is(at: int, byte: int) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        return b.op("=", _piece(d, args[0].node, at, at), d.literal(bytes((byte,)), "bytes"))

    return form


def _is_empty(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return b.op("=", _length(args[0].node), b.integer(_EMPTY))


def _register() -> None:
    forms: dict[str, SqlForm] = {
        **{f"range_{name}(anyrange,anyrange)": _test(test) for name, test in _TESTS.items()},
        "range_contains_elem(anyrange,anyelement)": _has_element(0),
        "elem_contained_by_range(anyelement,anyrange)": _has_element(1),
        "isempty(anyrange)": _is_empty,
        "lower_inf(anyrange)": _byte_is(2, 1),
        "upper_inf(anyrange)": _byte_is(12, 4),
        "lower_inc(anyrange)": _byte_is(11, 2),
        "upper_inc(anyrange)": _byte_is(21, 2),
    }
    for signature, form in forms.items():
        REGISTRY.sql(signature, duckdb=form, spark=form)


_register()
