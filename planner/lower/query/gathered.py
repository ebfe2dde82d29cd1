"""Aggregates and set-returning functions that Python computes for DuckDB, a group or a call at a time (``callouts``).

    percentile_disc(0.5) WITHIN GROUP (ORDER BY n)     hf_py_1(array_agg(n ORDER BY n) FILTER (WHERE n IS NOT NULL), 0.5)
    jsonb_each_text(js) AS t (key, value)              SELECT s.f1, s.f2 FROM (SELECT unnest(hf_py_2(js)) AS s)

DuckDB gathers and sorts the values of a group, and Python steps the aggregate's state with them. A set comes
back as a list, at most ``engine.executors.local.callouts.SET_ITEMS`` long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner import facts as f
from planner import query as q
from planner.base.errors import SqlError
from planner.evaluate import Env
from planner.evaluate.aggregates import state_maker
from planner.facts import facts
from planner.functions.json.records import as_reader, is_reader
from planner.lower.kit import build as b
from planner.lower.kit.value import Fixed, Val, declared_num
from planner.lower.query import expr as expressions
from planner.lower.query.aggregation import AggregateCall
from planner.lower.query.callouts import Arguments, compiled, register
from planner.lower.query.scope import Column, Compute
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext


def aggregate(
    lw: LoweringContext,
    proc: int,
    call: AggregateCall,
    args: Sequence[Val],
    result: SqlType,
    refusal: SqlError,
) -> Val:
    """Return an aggregate over gathered values; ``args`` as ``lower_call`` takes them.

    Raises:
        SqlError: ``refusal`` where Python has no form either, or for windows and hypothetical sets.
    """
    row, kind = lw.registry.aggregates.get(proc), facts().aggregates[proc].kind
    inputs = [lw.column_value(v) for v in ([value for value, _ in call.within] if kind == "o" else args)]
    arrays = [facts().types[v.type.oid].array if v.type.oid in facts().types else 0 for v in inputs]
    if (
        not lw.calls_out
        or row is None
        or row.python is None
        or kind == "h"
        or call.over is not None
        or not all(arrays)
        or not inputs
    ):
        raise refusal.copy()
    if facts().procs[proc].variadic == f.ANY and len(inputs) > 1 and facts().procs[proc].name == "count":
        raise refusal.copy()
    if call.is_distinct and (len(inputs) > 1 or not _is_plain(inputs[0])):
        raise refusal.copy()
    order = list(call.order)
    if kind == "o":
        order = [b.ordered(expressions.sort_key(lw.d, v), descending, False) for v, descending in call.within]
    tests = [b.is_null(b.copied(v.node), negated=True) for v in inputs] if row.skip_nulls else []
    if call.condition is not None:
        tests.insert(0, call.condition)
    gathering = replace(call, order=order, condition=b.and_(*tests) if tests else None)
    lists = []
    for value, array in zip(inputs, arrays, strict=True):
        item = b.cast(value.node, lw.d.engine_type(value.type, value.num))
        lists.append((gathering.call("array_agg", item, ordered=True), SqlType(array), value))
    make = state_maker(row, tuple(v.type.oid for v in inputs))
    num = declared_num(result)
    node = register(
        lw,
        _stepped(make, len(inputs), kind == "o"),
        [*(_list(lw, *each) for each in lists), *(call.direct if kind == "o" else ())],
        (result, lw.d.engine_type(result, num)),
    )
    return Val(node, result, num)


def _is_plain(value: Val) -> bool:
    return isinstance(value.num, Fixed) or (value.num is None and expressions.is_plain(value))


def _list(lw: LoweringContext, node: b.Node, array: SqlType, item: Val) -> Val:
    """Return a list of items as an argument; its engine type is the item's, so that decimals stay decimals."""
    return Val(b.cast(node, lw.d.list_of(lw.d.engine_type(item.type, item.num))), array, item.num)


def _stepped(make: Any, inputs: int, has_direct: bool) -> Compute:
    def function(rows: Sequence[tuple[Any, ...]], env: Env) -> list[tuple[Any, ...]]:
        found = []
        for row in rows:
            state = make(env, row[inputs:] if has_direct else None)
            lists = row[:inputs]
            if lists[0] is not None:
                many = getattr(state, "many", None)
                if many is not None and inputs == 1:
                    many(list(lists[0]))
                else:
                    for values in zip(*lists, strict=True):
                        state.step(*values)
            found.append((state.result(),))
        return found

    return function


def rows(
    lw: LoweringContext, call: q.FuncExpr, types: Sequence[SqlType], prefix: str, refusal: SqlError
) -> tuple[b.Node, list[Column]]:
    """Return the rows of a set-returning function as a query, and its columns, which are of ``types``.

    Raises:
        SqlError: ``refusal`` where Python may not, or cannot, compute it.
    """
    reading = as_reader(call)
    if reading is call and call.type.oid == f.RECORD and facts().procs[call.proc].result == f.ANYELEMENT:
        raise refusal.copy()  # rows like an argument's, which need not be of the types that FROM names
    if not lw.calls_out or (isinstance(reading, q.FuncExpr) and is_reader(reading.proc)):
        raise refusal.copy()
    arguments = Arguments(lw)
    columns = [Column(f"{prefix}_{i}", type_, declared_num(type_)) for i, type_ in enumerate(types, 1)]
    engine_types = [lw.d.engine_type(c.type, c.num) for c in columns]
    item = (
        engine_types[0]
        if len(types) == 1
        else lw.d.struct_type([(f"f{i}", t) for i, t in enumerate(engine_types, 1)])
    )
    try:
        computed = replace(call, args=tuple(arguments.of(a) for a in call.args))
        function = compiled(computed, arguments)
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise
        raise refusal.copy() from error
    made = b.fn(
        lw.d.explode, register(lw, function, arguments.values, (call.type, lw.d.list_of(item)), types)
    )
    if len(types) == 1:
        return b.select([b.alias(made, columns[0].name)]), columns
    label, whole = lw.d.fresh("r"), lw.d.fresh("u")
    targets = [b.alias(b.field(b.col(label, whole), f"f{i}"), c.name) for i, c in enumerate(columns, 1)]
    return b.select(targets, source=b.derived(b.select([b.alias(made, whole)]), label)), columns
