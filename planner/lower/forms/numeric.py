"""Engine forms of numeric arithmetic, rounding and casts; the rules are in ``planner.lower.kit.numeric``."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from planner.base.errors import not_supported
from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.forms.integer import same
from planner.lower.kit import build as b
from planner.lower.kit import division, numeric
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import INFINITY_SCALE, MAX_PRECISION, MINUS_INFINITY_SCALE, Fixed, Val
from planner.types import SqlType


def _add(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    return numeric.add(d, args[0], args[1])


def _subtract(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    return numeric.add(d, args[0], args[1], "-")


def _multiply(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    return numeric.multiply(d, args[0], args[1])


def _divide(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    return division.divide(d, args[0], args[1])


def _fixed(value: Val, what: str) -> Fixed:
    if not isinstance(value.num, Fixed) or value.num.dynamic is not None:
        raise not_supported(f"{what} of a numeric of varying scale in this executor")
    return value.num


def _modulo(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    x, y = _fixed(args[0], "modulo"), _fixed(args[1], "modulo")
    scale = max(x.scale, y.scale)
    whole = max(x.precision - x.scale, y.precision - y.scale)
    num = Fixed(min(whole + scale, MAX_PRECISION), scale)
    left, right = (b.cast(a.node, d.decimal(num.precision, scale)) for a in args)
    return numeric.numeric(b.cast(b.op("%", left, right), d.decimal(num.precision, scale)), num)


def _map(d: Dialect, value: Val, change_fixed: str) -> Val:
    """Apply ``abs`` or negation, which keep scale and precision."""
    if isinstance(value.num, Fixed):
        node = b.neg(value.node) if change_fixed == "neg" else b.fn("abs", value.node)
        return numeric.numeric(node, value.num)

    def body(p: Node) -> Node:
        u, s = b.field(p, "u"), b.field(p, "s")
        changed = b.neg(u) if change_fixed == "neg" else b.fn("abs", u)
        made = d.struct(d.types["numeric"], ("u", changed), ("s", s))
        if change_fixed == "neg":
            swapped = b.case(
                [
                    (b.op("=", s, b.integer(INFINITY_SCALE)), b.integer(MINUS_INFINITY_SCALE)),
                    (b.op("=", s, b.integer(MINUS_INFINITY_SCALE)), b.integer(INFINITY_SCALE)),
                ],
                s,
            )
        else:
            swapped = b.case([(b.op("=", s, b.integer(MINUS_INFINITY_SCALE)), b.integer(INFINITY_SCALE))], s)
        special = d.struct(d.types["numeric"], ("u", u), ("s", swapped))
        return b.case([(b.is_null(p), b.null()), (b.op("<", s, b.integer(0)), special)], made)

    return numeric.numeric(d.let([value.node], body), value.num)  # type: ignore[arg-type]


def _negate(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    if isinstance(args[0].constant, Decimal) and args[0].constant.is_finite():
        return numeric.constant(d, args[0].constant.copy_negate() if args[0].constant else args[0].constant)
    return _map(d, args[0], "neg")


def _absolute(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    return _map(d, args[0], "abs")


def _round(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    if len(args) == 1:
        return numeric.round_to(d, args[0], 0)
    places = args[1].constant
    if not isinstance(places, int):
        raise not_supported("round(numeric, integer) with a varying number of digits in this executor")
    return numeric.round_to(d, args[0], places)


def _whole(function: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
        num = args[0].num
        if not isinstance(num, Fixed):
            raise not_supported(f"{function} of a numeric of varying scale in this executor")
        target = Fixed(min(num.precision - num.scale + 1, MAX_PRECISION), 0)
        node = b.fn("floor" if function == "trunc" else function, args[0].node)
        if function == "trunc":
            negative = b.op("<", args[0].node, b.integer(0))
            node = b.case([(negative, b.fn("ceil", args[0].node))], node)
        return numeric.numeric(b.cast(node, d.decimal(target.precision, 0)), target)

    return form


def _truncate(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    """trunc(x, n): x less its remainder modulo the unit kept."""
    num = _fixed(args[0], "trunc")
    places = args[1].constant
    if not isinstance(places, int) or places < 0:
        raise not_supported("trunc(numeric, integer) with these digits in this executor")
    if places >= num.scale:
        return numeric.round_to(d, args[0], places)
    target = Fixed(max(num.precision - num.scale + places, 1), places)
    same_type = d.decimal(num.precision, num.scale)
    unit = b.cast(b.string(format(Decimal((0, (1,), -places)), "f")), same_type)

    def body(x: Node) -> Node:
        whole_units = b.op("-", x, b.cast(b.op("%", x, unit), same_type))
        return b.cast(whole_units, d.decimal(target.precision, places))

    if num.precision - num.scale == 0 and places == 0:
        return numeric.numeric(
            b.case([(b.is_null(args[0].node, True), b.cast(b.integer(0), d.decimal(1, 0)))]), target
        )
    return numeric.numeric(d.repeat([args[0].node], body), target)


def _sign(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    _fixed(args[0], "sign")
    node = b.cast(b.fn("sign", args[0].node), d.decimal(1, 0))
    return numeric.numeric(node, Fixed(1, 0))


def _scale(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    [value] = args
    if isinstance(value.num, Fixed):
        dynamic = value.num.dynamic
        shown = b.integer(value.num.scale) if dynamic is None else dynamic
        return b.case([(b.is_null(value.node, True), b.cast(shown, d.types["int32"]))])

    def body(x: Node) -> Node:
        s = b.field(x, "s")
        return b.case([(b.op(">=", s, b.integer(0)), s)])  # NULL of NaN and infinities

    return d.repeat([value.node], body)


def _from_integer(d: Dialect, args: Sequence[Val], result: SqlType) -> Val:
    return numeric.from_integer(d, args[0])


def _to_float8(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return numeric.to_double(d, args[0])


def _both(signature: str, form: SqlForm) -> None:
    REGISTRY.sql(signature, duckdb=form, spark=form)


_both("numeric_add(numeric,numeric)", _add)
_both("numeric_sub(numeric,numeric)", _subtract)
_both("numeric_mul(numeric,numeric)", _multiply)
_both("numeric_div(numeric,numeric)", _divide)
_both("numeric_mod(numeric,numeric)", _modulo)
_both("mod(numeric,numeric)", _modulo)
_both("numeric_uminus(numeric)", _negate)
_both("numeric_uplus(numeric)", same)
_both("numeric_abs(numeric)", _absolute)
_both("abs(numeric)", _absolute)
_both("round(numeric)", _round)
_both("round(numeric,int4)", _round)
_both("trunc(numeric)", _whole("trunc"))
_both("trunc(numeric,int4)", _truncate)
_both("ceil(numeric)", _whole("ceil"))
_both("ceiling(numeric)", _whole("ceil"))
_both("floor(numeric)", _whole("floor"))
_both("sign(numeric)", _sign)
_both("scale(numeric)", _scale)
for _type in ("int2", "int4", "int8"):
    _both(f"numeric({_type})", _from_integer)
_both("float8(numeric)", _to_float8)
