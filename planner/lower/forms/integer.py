"""Engine forms of integer arithmetic, bit operations and casts.

Operands are widened to the result type first, so an engine overflows exactly where PostgreSQL does (22003). Both
engines divide towards zero and raise on division by zero (22012).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import NAN_SCALE, Fixed, Val, kind_of
from planner.types import SqlType

_WIDTHS = {"2": "int2", "4": "int4", "8": "int8"}
_TYPE_NAMES = {"int16": "smallint", "int32": "integer", "int64": "bigint"}


def arithmetic(symbol: str) -> SqlForm:
    """Return the form of an operator both engines have."""

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        kind = kind_of(result.oid)
        items = [a.node if kind_of(a.type.oid) == kind else d.as_kind(a.node, kind) for a in args]
        made = b.op(symbol, items[0], items[1])
        return d.as_kind(made, kind) if symbol == "//" else d.may_overflow(made, kind)

    return form


def modulo(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """The smallest integer modulo -1 is 0, not an overflow."""
    kind = kind_of(result.oid)
    left, right = (d.as_kind(a.node, kind) for a in args)
    made = b.op("%", left, right)
    if d.name == "spark" or (isinstance(args[1].constant, int) and args[1].constant not in (-1, None)):
        return made
    return d.repeat(
        [left, right],
        lambda x, y: b.case([(b.op("=", y, b.integer(-1)), b.op("-", x, x))], b.op("%", x, y)),
    )


def _negate(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return _negative(d, args[0].node, kind_of(result.oid))


def _negative(d: Dialect, node: Node, kind: str) -> Node:
    """Return ``0 - x``: of a difference both engines tell what overflowed, of a negation neither does."""
    return d.may_overflow(b.op("-", d.as_kind(b.integer(0), kind), node), kind)


def same(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    """The argument itself."""
    return args[0]


def _absolute(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    if d.name == "duckdb":
        return b.fn("abs", args[0].node)
    kind = kind_of(result.oid)
    return d.repeat([args[0].node], lambda x: b.fn("greatest", x, _negative(d, x, kind)))


def _xor(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    if d.name == "duckdb":
        return b.fn("xor", args[0].node, args[1].node)
    return b.op("^", args[0].node, args[1].node)


def convert(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """Convert between integer types; out of range is the engine's 22003."""
    return d.as_kind(args[0].node, kind_of(result.oid))


def _from_float(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    kind = kind_of(result.oid)
    return d.as_kind(args[0].node if d.name == "duckdb" else b.fn("rint", args[0].node), kind)


def _from_numeric(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    kind = kind_of(result.oid)
    if isinstance(args[0].num, Fixed):
        node = args[0].node if d.name == "duckdb" else b.fn("round", args[0].node, b.integer(0))
        return d.as_kind(node, kind)
    label = _TYPE_NAMES[kind]

    def whole(struct: Node) -> Node:
        scale = b.field(struct, "s")
        return b.case(
            [
                (
                    b.op("=", scale, b.integer(NAN_SCALE)),
                    d.error("0A000", f"cannot convert NaN to {label}", scale),
                ),
                (
                    b.op("<", scale, b.integer(0)),
                    d.error("0A000", f"cannot convert infinity to {label}", scale),
                ),
            ],
            numeric.rescale_floating(d, replace(args[0], node=struct), 0),
        )

    return d.as_kind(d.let([args[0].node], whole), kind)


def _to_bool(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return b.op("<>", args[0].node, b.integer(0))


def _both(signature: str, form: SqlForm) -> None:
    REGISTRY.sql(signature, duckdb=form, spark=form)


for _left, _l in _WIDTHS.items():
    for _right, _r in _WIDTHS.items():
        _tag = _left if _left == _right else _left + _right
        for _name, _symbol in (("pl", "+"), ("mi", "-"), ("mul", "*"), ("div", "//")):
            _both(f"int{_tag}{_name}({_l},{_r})", arithmetic(_symbol))
for _tag, _type in _WIDTHS.items():
    _both(f"int{_tag}mod({_type},{_type})", modulo)
    _both(f"mod({_type},{_type})", modulo)
    _both(f"int{_tag}um({_type})", _negate)
    _both(f"int{_tag}up({_type})", same)
    _both(f"int{_tag}abs({_type})", _absolute)
    _both(f"abs({_type})", _absolute)
    _both(f"int{_tag}and({_type},{_type})", arithmetic("&"))
    _both(f"int{_tag}or({_type},{_type})", arithmetic("|"))
    REGISTRY.sql(f"int{_tag}xor({_type},{_type})", duckdb=_xor)
    for _other in _WIDTHS.values():
        if _other != _type:
            _both(f"{_type}({_other})", convert)
    _both(f"{_type}(float4)", _from_float)
    _both(f"{_type}(float8)", _from_float)
    _both(f"{_type}(numeric)", _from_numeric)
_both("int4(bool)", convert)
_both("bool(int4)", _to_bool)
