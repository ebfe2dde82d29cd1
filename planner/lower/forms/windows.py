"""Engine forms of window functions (rows of the aggregates table, since they are called alike)."""

from __future__ import annotations

from collections.abc import Sequence

from planner.base.errors import not_supported
from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.value import Val, kind_of
from planner.lower.query.aggregation import AggregateCall
from planner.types import SqlType


def _rank(function: str) -> SqlForm:
    def form(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
        if call.unframed is None:
            raise AssertionError("a window function has no form without a frame")
        made = call.unframed(b.fn(function, *(a.node for a in args)))
        return b.cast(made, call.d.types[kind_of(result.oid)])

    return form


def _ntile(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Node:
    if not isinstance(args[0].constant, int) or args[0].constant <= 0:
        raise not_supported("ntile with a varying number of buckets in this executor")
    return _rank("ntile")(call, args, result)


def _shift(function: str) -> SqlForm:
    def form(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Val:
        if call.unframed is None:
            raise AssertionError("a window function has no form without a frame")
        nodes = [a.node for a in args]
        num = args[0].num
        if len(args) == 3 and num is not None:
            (value, default), num = numeric.unify_columns(call.d, [args[0], args[2]])
            nodes = [value, nodes[1], default]
        if len(args) >= 2 and not isinstance(args[1].constant, int):
            raise not_supported(f"{function} with a varying offset in this executor")
        return Val(
            call.unframed(b.fn(function, *nodes)), result, num, padded=args[0].padded if len(args) < 3 else 0
        )

    return form


def _at(function: str) -> SqlForm:
    def form(call: AggregateCall, args: Sequence[Val], result: SqlType) -> Val:
        if call.over is None:
            raise AssertionError("a window function has no OVER")
        if len(args) == 2 and not (isinstance(args[1].constant, int) and args[1].constant > 0):
            raise not_supported("nth_value with a varying position in this executor")
        return Val(
            call.over(b.fn(function, *(a.node for a in args))), result, args[0].num, padded=args[0].padded
        )

    return form


def _both(signature: str, form: SqlForm) -> None:
    REGISTRY.aggregate_sql(signature, duckdb=form, spark=form)


for _name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist"):
    _both(f"{_name}()", _rank(_name))
_both("ntile(int4)", _ntile)
for _name in ("lag", "lead"):
    _both(f"{_name}(anyelement)", _shift(_name))
    _both(f"{_name}(anyelement,int4)", _shift(_name))
    _both(f"{_name}(anycompatible,int4,anycompatible)", _shift(_name))
for _name in ("first_value", "last_value"):
    _both(f"{_name}(anyelement)", _at(_name))
_both("nth_value(anyelement,int4)", _at("nth_value"))
