"""Bound expressions as Python callables.

The row executor, column defaults, CHECK constraints and constant folding evaluate expressions here. An
expression becomes Python source, compiled once: a column is an index into the row tuple, a constant or a
function is a name in the namespace (the text never holds a value), three-valued logic is spelt out.

    WHERE a = $1 AND b + 1 > 10                     layout: a -> 0, b -> 2

    def f(r, e):
        return ((t1 := r[0]) is not None and (t2 := e.params[0]) is not None and t1 == t2
                and (t3 := int4pl(...)) is not None and t3 > k1)

Words
    layout   where a node's rows keep each (range, attnum) and each expression that is already computed
    env      what is fixed while a row is looked at: parameters, session, the row of the query outside
    test     a source that is truthy exactly when the expression is TRUE (NULL counts as false)

Generated code gives way (``pgwire.give_way``): functions of many rows every few rows, others where they
begin, if they call any function.

Promises: AND, OR, CASE, COALESCE evaluate left to right and only what they need; strict functions are not
called with NULL; deep expressions are cut into several functions, so depth is bounded by the binder's limit and
not by Python's parser.

``evaluate_unit`` generates the source, ``evaluate_nodes`` has one function per node; ``evaluate_runtime``,
``evaluate_assign`` and ``evaluate_inline`` are what generated code calls and contains.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from planner.base.arrays import flat
from planner.base.errors import SqlError
from planner.base.suspend import Suspend
from planner.evaluate import nodes as _nodes  # noqa: F401 - completes the unit
from planner.evaluate.calls import walk
from planner.evaluate.env import EMPTY_LAYOUT, Env, Layout, Row, RowFunction, Shared
from planner.evaluate.runtime import record_maker
from planner.evaluate.unit import Unit, value_function
from planner.facts import facts
from planner.functions.session import EvalSession
from planner.query import Expr

__all__ = [
    "EMPTY_LAYOUT", "Env", "Layout", "Row", "RowFunction", "Shared", "Suspend", "compile_column", "compile_expr", "compile_filter",
    "compile_map", "compile_operator", "compile_predicate", "compile_row", "evaluate_constant", "flat", "record_maker",
    "walk",
]  # fmt: skip


_Compile = TypeVar("_Compile", bound=Callable[..., RowFunction])


def _bounded(compile_: _Compile) -> _Compile:
    """Turn Python's own limit on nesting into 54001."""

    @functools.wraps(compile_)
    def limited(*args: Any) -> RowFunction:
        try:
            return compile_(*args)
        except RecursionError:
            raise SqlError("54001", "stack depth limit exceeded") from None

    return cast("_Compile", limited)


@_bounded
def compile_expr(expr: Expr, layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(row, env)`` giving the value of ``expr``. Raises 0A000 where no Python form exists."""
    return value_function(expr, layout)


@_bounded
def compile_row(exprs: Sequence[Expr], layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(row, env)`` giving the tuple of the values of ``exprs``."""
    unit = Unit(layout, exprs)
    return unit.function(f"    return {unit.tuple_of(exprs)}\n")


@_bounded
def compile_predicate(conjuncts: Sequence[Expr], layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(row, env)``, truthy exactly when every conjunct is TRUE."""
    unit = Unit(layout, conjuncts)
    return unit.function(f"    return {unit.all_true(conjuncts)}\n")


@_bounded
def compile_filter(conjuncts: Sequence[Expr], layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(rows, env)`` giving the list of the rows for which every conjunct is TRUE."""
    unit = Unit(layout, conjuncts, many=True)
    test = unit.all_true(conjuncts)
    return unit.function(
        f"{unit.prologue}    out = []\n    add = out.append\n    for r in {unit.rows(test)}:\n        if {test}:\n            add(r)\n"
        "    return out\n",
        "rows",
    )


@_bounded
def compile_map(exprs: Sequence[Expr | int], layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(rows, env)`` giving the list of the tuples of ``exprs`` for each row.

    A number stands for the value at that place of the row.
    """
    unit = Unit(layout, [x for x in exprs if not isinstance(x, int)], many=True)
    row = unit.tuple_of(exprs)
    return unit.function(
        f"{unit.prologue}    out = []\n    add = out.append\n    for {unit.row} in {unit.rows(row, len(exprs))}:\n        add({row})\n    return out\n",
        "rows",
    )


@_bounded
def compile_column(expr: Expr, layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(rows, env)`` giving the list of the values of ``expr`` for each row."""
    unit = Unit(layout, (expr,), many=True)
    value = unit.value(expr, 0)
    return unit.function(f"{unit.prologue}    return [{value} for r in {unit.rows(value)}]\n", "rows")


def evaluate_constant(expr: Expr, session: EvalSession | None = None, params: Sequence[Any] = ()) -> Any:
    """Return the value of an expression without columns."""
    return compile_expr(expr)((), Env(params, session, shared=Shared()))


def compile_operator(proc: int, left: int, right: int) -> Callable[[Any, Any, Env], Any]:
    """Return ``f(x, y, env)`` for an operator's function on types ``left``, ``right``; NULL when either is."""
    unit = Unit(EMPTY_LAYOUT, ())
    call = unit.operator(proc, "x", "y", left, right)
    fact = facts().procs.get(proc)
    guard = "None if x is None or y is None else " if fact is None or fact.strict else ""
    unit.helpers.append(f"def op(x, y, e):\n    return {guard}{call}\n")
    unit.function("    return None\n")
    return cast("Callable[[Any, Any, Env], Any]", unit.names.pop("op"))
