"""Engine forms of aggregates (also over windows).

Sums of integers and numerics are exact: sum(int4) is a bigint, sum(int8) and sum(numeric) are numeric. avg is the
exact sum divided by the count with PostgreSQL's scale. Sums of a varying scale are
``planner.lower.kit.sums``'s, maxima and keys ``planner.lower.kit.varying``'s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from planner import facts as f
from planner.base.errors import not_supported
from planner.facts import facts
from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.kit import build as b
from planner.lower.kit import division, numeric, sums, varying
from planner.lower.kit.build import Node
from planner.lower.kit.value import FLOATING, INTEGER_DIGITS, Fixed, Floating, Val, kind_of
from planner.lower.query import expr as expressions
from planner.lower.query.aggregation import AggregateCall
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
    return numeric.numeric(sums.total(call.d, value, call.call, call.stage), FLOATING)


def _sum_numeric(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Val:
    return _exact_sum(call, args[0])


def _average_exact(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Val:
    """avg(integer or numeric): the exact sum by the count."""
    d = call.d
    value = args[0]
    if value.num is None:
        digits: int | None = INTEGER_DIGITS[kind_of(value.type.oid)]
        node = value.node if d.name == "duckdb" else b.cast(value.node, d.decimal(digits or 0, 0))
        total = numeric.numeric(b.cast(call.call("sum", node), WIDE), Fixed(38, 0))
    else:
        digits = value.num.precision if isinstance(value.num, Fixed) else None
        total = _exact_sum(call, value)
    # No table has 10 ** 17 rows, and a divisor of fewer digits is a shorter expression (``division``).
    width = division.BOUNDED_DIGITS
    count = b.cast(call.call("count", value.node), d.decimal(width, 0))
    # No rows: NULL, not a division by zero.
    rows = b.fn("nullif", count, b.cast(b.integer(0), d.decimal(width, 0)))
    return division.divide(d, total, numeric.numeric(rows, Fixed(width, 0)), digits=digits)


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
        if isinstance(value.num, Floating):

            def by_key(node: Node, key: Node) -> Node:
                function, items = call.d.by_key(node, key, greatest)
                return call.call(function, *items)

            return Val(varying.extreme(call.d, value, greatest, call.call, by_key), result, value.num)
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


def _unbounded(call: AggregateCall, args: Sequence[Val]) -> Node:
    """Return whether a row whose arguments are all there has one that is NaN or infinite; NULL where there is
    no such row.
    """
    there = b.and_(*(b.is_null(b.copied(a.node), True) for a in args))
    odd = [test(b.copied(a.node)) for a in args for test in (call.d.is_infinite, call.d.is_nan)]
    return call.call("bool_or", b.case([(there, b.or_(*odd))]))


def _variance(function: str) -> SqlForm:
    """Return the form of a variance or deviation: NaN where a value is NaN or infinite, of which the engines
    make 0 or an error.
    """

    def form(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
        value = args[0].node
        plain = b.case(
            [
                (
                    b.not_(b.or_(call.d.is_infinite(b.copied(value)), call.d.is_nan(b.copied(value)))),
                    b.copied(value),
                )
            ]
        )
        few = (
            [(b.op("<", call.call("count", b.copied(value)), b.integer(2)), b.null())]
            if "samp" in function
            else []
        )
        odd = b.case(few, call.d.literal(math.nan, "float64")) if few else call.d.literal(math.nan, "float64")
        return b.case([(_unbounded(call, args), odd)], call.call(function, plain))

    return form


def _of_pairs(form: SqlForm, name: str) -> SqlForm:
    """Return the form of an aggregate of pairs, which the row executor computes where one of them is NaN or
    infinite.
    """

    def of_finite(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node | Val:
        what = f"NaN or an infinity in {name}() in this executor is not supported"
        error = call.d.error("0A000", what, call.call("max", b.copied(args[0].node)))
        made = form(call, args, result)
        if isinstance(made, Val):
            raise AssertionError(f"the form of {name}() carries what it knows of its value")
        return b.case([(_unbounded(call, args), error)], made)

    return of_finite


def _of_spread(function: str, *spreads: str) -> SqlForm:
    """Return the form of an aggregate that is NULL where all values of a side are one: the engines divide by
    zero there.
    """

    def form(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
        def value(name: str) -> Node:
            return call.call(name, *(b.copied(a.node) for a in args))

        none = [(b.op("=", value(spread), b.integer(0)), b.null()) for spread in spreads]
        return b.case(none, value(function))

    return form


def _string_agg(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    if not isinstance(args[1].constant, str):
        raise not_supported("string_agg with a varying delimiter in this executor")
    if call.d.name == "spark" and (call.is_ordered or call.over is not None):
        raise not_supported("string_agg with ORDER BY in this executor")
    if call.d.name == "spark" and call.is_distinct:
        values = replace(call, is_distinct=False).call("collect_set", args[0].node)
        joined = b.fn("array_join", b.fn("sort_array", values), args[1].node)
        return b.case([(b.op(">", b.fn("size", b.copied(values)), b.integer(0)), joined)])
    if call.d.name == "spark":
        return call.call("listagg", args[0].node, args[1].node)
    return call.call("string_agg", args[0].node, args[1].node, ordered=True)


def _array_agg(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    if call.d.name == "spark":
        raise not_supported("array_agg in this executor")
    if call.is_distinct and not (args[0].num is None and expressions.is_plain(args[0])):
        raise not_supported("array_agg with DISTINCT of values that are compared by keys in this executor")
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
            if proc.kind == "a" and proc.arg_types[0] not in (f.ANYARRAY, f.TID):
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
    _both(f"{_name}(float8)", _variance(_name))
_both("stddev(float8)", _variance("stddev_samp"))
_both("variance(float8)", _variance("var_samp"))
for _name, _form in (
    *((name, _plain(name)) for name in ("covar_pop", "covar_samp", "regr_intercept", "regr_r2")),
    ("corr", _of_spread("corr", "regr_sxx", "regr_syy")), ("regr_slope", _of_spread("regr_slope", "regr_sxx")),
):  # fmt: skip
    _both(f"{_name}(float8,float8)", _of_pairs(_form, _name))
for _type in ("int2", "int4", "int8"):
    for _name in ("bit_and", "bit_or", "bit_xor"):
        _both(f"{_name}({_type})", _plain(_name))
_both("string_agg(text,text)", _string_agg)
_both("array_agg(anynonarray)", _array_agg)
_both("percentile_cont(float8,float8)", _percentile)
_register_extremes()
