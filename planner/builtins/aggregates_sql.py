"""Engine forms of aggregates (also over windows).

Sums of integers and numerics are exact: sum(int4) is a bigint, sum(int8) and sum(numeric) are numeric. avg is the
exact sum divided by the count with PostgreSQL's scale. A varying scale is summed in three parts (whole, two limbs of
18 decimal places), so that nothing is lost; the result has the largest scale met.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner import facts as f
from planner.builtins.registry import REGISTRY, SqlForm
from planner.errors import not_supported
from planner.facts import facts
from planner.lower import build as b
from planner.lower import expr as expressions
from planner.lower import numeric
from planner.lower.aggregation import AggregateCall
from planner.lower.build import Node
from planner.lower.dialect import Named, Parts
from planner.lower.value import FLOATING, INTEGER_DIGITS, Fixed, Val, kind_of
from planner.types import SqlType

WIDE = "DECIMAL(38, 0)"


def _count(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    if not args:
        return call.call("count")
    node = args[0].node
    if call.is_distinct and not expressions.is_plain_for_equality(args[0]):
        node = expressions.sort_key(call.d, args[0])
    return call.call("count", node)


def _sum_integer(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Val:
    node = args[0].node
    if kind_of(args[0].type.oid) == "int64":
        if call.d.name == "spark":
            node = b.cast(node, "DECIMAL(19, 0)")
        return numeric.numeric(b.cast(call.call("sum", node), WIDE), Fixed(38, 0))
    return Val(b.cast(call.call("sum", node), call.d.types["int64"]), result)


def _exact_sum(call: AggregateCall, value: Val) -> Val:
    """Return sum(numeric) with the largest scale met."""
    d = call.d
    if isinstance(value.num, Fixed):
        total = call.call("sum", value.node)
        num = Fixed(38, value.num.scale)
        if value.num.dynamic is not None:
            shown = b.case([(b.is_null(value.node, True), value.num.dynamic)])
            if call.is_distinct:
                raise not_supported("sum(DISTINCT) of a numeric of varying scale in this executor")
            num = Fixed(38, value.num.scale, call.call("max", shown))
        return numeric.numeric(b.cast(total, d.decimal(38, value.num.scale)), num)
    if call.is_distinct:
        raise not_supported("sum(DISTINCT) of a numeric of varying scale in this executor")
    return numeric.numeric(_sum_in_parts(call, value.node), FLOATING)


def _sum_in_parts(call: AggregateCall, node: Node) -> Node:
    """Sum STRUCT(u, s): whole parts and two limbs of 18 decimal places, joined at the largest scale."""
    d = call.d
    limb = b.cast(b.string("1" + "0" * 18), WIDE)
    zero, small = b.cast(b.integer(0), WIDE), d.types["int32"]

    def opened(v: Named) -> Parts:
        u, s = b.field(v("v"), "u"), b.field(v("v"), "s")
        bad = b.or_(b.op("<", s, b.integer(0)), b.op(">", s, b.integer(36)))
        sign = b.case([(b.op("<", u, zero), b.integer(-1))], b.integer(1))
        unit = b.case([(bad, d.error(*numeric.OVERFLOW, s))], numeric.pow10(d, s))
        return [("m", b.fn("abs", u), WIDE), ("s", s, small), ("n", sign, small), ("unit", unit, WIDE)]

    def split(v: Named) -> Parts:
        fraction = numeric.shift_up(d, b.op("%", v("m"), v("unit")), b.op("-", b.integer(36), v("s")))
        return [
            ("w", d.integer_divide(v("m"), v("unit")), WIDE), ("f", fraction, WIDE), ("s", v("s"), small),
            ("n", v("n"), small),
        ]  # fmt: skip

    def limbs(v: Named) -> Node:
        high, low = d.integer_divide(v("f"), limb), b.op("%", v("f"), limb)
        made = d.struct(
            d.types["parts"],
            ("w", b.op("*", v("w"), v("n"))), ("h", b.op("*", high, v("n"))), ("l", b.op("*", low, v("n"))),
            ("s", v("s")),
        )  # fmt: skip
        return b.case([(b.is_null(v("w"), True), made)], b.null())

    made = d.chain([("v", node, d.types["numeric"])], [opened, split], limbs)
    totals = [
        ("w", call.call("sum", b.field(made, "w")), WIDE), ("h", call.call("sum", b.field(made, "h")), WIDE),
        ("l", call.call("sum", b.field(made, "l")), WIDE), ("s", call.call("max", b.field(made, "s")), small),
    ]  # fmt: skip

    def floor_limbs(value: Node) -> Node:
        """Return floor(value / limb), also below zero."""
        down = d.integer_divide(b.fn("abs", value), limb)
        exact = b.op("=", b.op("%", value, limb), zero)
        less = b.cast(b.op("+", down, b.case([(exact, b.integer(0))], b.integer(1))), WIDE)
        return b.case([(b.op("<", value, zero), b.neg(less))], down)

    def carry_low(v: Named) -> Parts:
        return [(n, v(n), WIDE) for n in "whl"] + [("s", v("s"), small), ("c", floor_limbs(v("l")), WIDE)]

    def add_low(v: Named) -> Parts:
        rest = b.op("-", v("l"), b.op("*", v("c"), limb))
        return [
            ("w", v("w"), WIDE), ("h", b.op("+", v("h"), v("c")), WIDE), ("r", rest, WIDE), ("s", v("s"), small),
        ]  # fmt: skip

    def carry_high(v: Named) -> Parts:
        return [(n, v(n), WIDE) for n in "whr"] + [("s", v("s"), small), ("c", floor_limbs(v("h")), WIDE)]

    def fraction(v: Named) -> Parts:
        upper = b.cast(b.op("-", v("h"), b.op("*", v("c"), limb)), WIDE)
        places = b.op("+", b.op("*", upper, limb), v("r"))  # 36 places, not negative
        return [("w", b.op("+", v("w"), v("c")), WIDE), ("f", places, WIDE), ("s", v("s"), small)]

    def join(v: Named) -> Node:
        shown = d.integer_divide(v("f"), numeric.pow10(d, b.op("-", b.integer(36), v("s"))))
        total = b.op("+", numeric.shift_up(d, v("w"), v("s")), shown)
        joined = d.struct(d.types["numeric"], ("u", b.cast(total, WIDE)), ("s", v("s")))
        return b.case([(b.is_null(v("w")), b.null())], joined)

    return d.chain(totals, [carry_low, add_low, carry_high, fraction], join)


def _sum_numeric(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Val:
    return _exact_sum(call, args[0])


def _average_exact(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Val:
    """avg(integer or numeric): the exact sum by the count."""
    d = call.d
    value = args[0]
    if value.num is None:
        digits = INTEGER_DIGITS[kind_of(value.type.oid)]
        node = value.node if d.name == "duckdb" else b.cast(value.node, d.decimal(digits, 0))
        total = numeric.numeric(b.cast(call.call("sum", node), WIDE), Fixed(38, 0))
    else:
        total = _exact_sum(call, value)
    count = numeric.numeric(b.cast(call.call("count", value.node), d.decimal(19, 0)), Fixed(19, 0))
    # No rows: NULL, not a division by zero.
    rows = numeric.numeric(b.fn("nullif", count.node, b.cast(b.integer(0), d.decimal(19, 0))), Fixed(19, 0))
    return numeric.divide(d, total, rows)


def _sum_float(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    wide = call.d.as_kind(args[0].node, "float64")
    total = call.call("sum", wide)
    return total if kind_of(result.oid) == "float64" else call.d.as_kind(total, "float32")


def _average_float(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    return call.call("avg", call.d.as_kind(args[0].node, "float64"))


def _extreme(greatest: bool) -> SqlForm:
    def form(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Val:
        value = args[0]
        if isinstance(value.num, Fixed) and value.num.dynamic is not None:
            value = numeric.floating(call.d, value)
        call.is_distinct = False
        if expressions.is_plain(value):
            node = call.call("max" if greatest else "min", value.node)
        else:
            function, items = call.d.by_key(value.node, expressions.sort_key(call.d, value), greatest)
            node = call.call(function, *items)
        return Val(node, result, value.num, padded=value.padded)

    return form


def _plain(function: str) -> SqlForm:
    def form(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
        return call.call(function, *(a.node for a in args))

    return form


def _string_agg(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    if not isinstance(args[1].constant, str):
        raise not_supported("string_agg with a varying delimiter in this executor")
    if call.d.name == "spark" and (call.order or call.over is not None):
        raise not_supported("string_agg with ORDER BY in this executor")
    if call.d.name == "spark":
        return call.call("listagg", args[0].node, args[1].node)
    return call.call("string_agg", args[0].node, args[1].node, ordered=True)


def _array_agg(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    if call.d.name == "spark":
        raise not_supported("array_agg in this executor")
    node = args[0].node if args[0].num is None else numeric.to_floating(call.d, args[0])
    return call.call("array_agg", node, ordered=True)


def _percentile(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    value, descending = call.within[0]
    fraction = call.direct[0].constant
    if kind_of(value.type.oid) != "float64" or not isinstance(fraction, float) or call.d.name == "spark":
        raise not_supported("percentile_cont of this type in this executor")
    if not 0 <= fraction <= 1:
        raise not_supported("percentile_cont outside 0 and 1 in this executor")
    share = 1 - fraction if descending else fraction
    return call.call("quantile_cont", value.node, call.d.literal(share, "float64"))


def _both(signature: str, form: SqlForm) -> None:
    REGISTRY.aggregate_sql(signature, duckdb=form, spark=form)


def _register_extremes() -> None:
    known = facts()
    for name, greatest in (("max", True), ("min", False)):
        for proc in known.procs_by_name[name]:
            if proc.kind == "a" and proc.arg_types[0] not in (f.ANYARRAY, f.ANYENUM, f.TID, 650, 790, 869):
                _both(known.signature(proc.oid), _extreme(greatest))


_both("count(any)", _count)
_both("count()", _count)
for _type in ("int2", "int4", "int8"):
    _both(f"sum({_type})", _sum_integer)
    _both(f"avg({_type})", _average_exact)
_both("sum(numeric)", _sum_numeric)
_both("avg(numeric)", _average_exact)
for _type in ("float4", "float8"):
    _both(f"sum({_type})", _sum_float)
    _both(f"avg({_type})", _average_float)
for _name, _function in (("bool_and", "bool_and"), ("every", "bool_and"), ("bool_or", "bool_or")):
    _both(f"{_name}(bool)", _plain(_function))
for _name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop"):
    _both(f"{_name}(float8)", _plain(_name))
_both("stddev(float8)", _plain("stddev_samp"))
_both("variance(float8)", _plain("var_samp"))
for _name in ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2"):
    _both(f"{_name}(float8,float8)", _plain(_name))
for _type in ("int2", "int4", "int8"):
    for _name in ("bit_and", "bit_or", "bit_xor"):
        _both(f"{_name}({_type})", _plain(_name))
_both("string_agg(text,text)", _string_agg)
_both("array_agg(anynonarray)", _array_agg)
_both("percentile_cont(float8,float8)", _percentile)
_register_extremes()
