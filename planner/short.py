"""Which statements surely compute little: those need no strand (``pgwire.give_way``), nor can they need one.

What is not listed here is not short, so that what is forgotten costs a fraction of a microsecond and no more: operators that generated code spells out
(``evaluate_inline``), comparisons, additions, the clock, sequences; over at most ``MOST_NODES`` nodes, none of them a query in a query.
"""

from __future__ import annotations

import functools
from typing import Final

from planner.evaluate_inline import inline_templates
from planner.facts import facts
from planner.query import (
    BooleanTest,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    Const,
    CteRange,
    DistinctExpr,
    Expr,
    FuncExpr,
    FunctionRange,
    NullTest,
    OpExpr,
    Param,
    QueryBase,
    RelabelType,
    SqlCall,
    SubqueryRange,
    Var,
)
from planner.walk import children

MOST_NODES: Final = 200

_EXPRS: Final = frozenset(
    (BoolExpr, BooleanTest, CaseExpr, CoalesceExpr, Const, DistinctExpr, FuncExpr, NullTest, OpExpr, Param, RelabelType, Var)
)  # fmt: skip
_FUNCTIONS: Final = frozenset(
    [
        "now",
        "transaction_timestamp",
        "statement_timestamp",
        "clock_timestamp",
        "nextval",
        "currval",
        "numeric_add",
        "numeric_sub",
        "numeric_eq",
        "numeric_ne",
        "numeric_lt",
        "numeric_le",
        "numeric_gt",
        "numeric_ge",
        "float8pl",
        "float8mi",
        "float8mul",
        "float8div",
        "float8eq",
        "float8ne",
        "float8lt",
        "float8le",
        "float8gt",
        "float8ge",
        "int4div",
        "int4mod",
        "int8div",
        "int8mod",
        "int84div",
        "int48div",
        "int4um",
        "int8um",
        "int4abs",
        "int8abs",
        "timestamptz_pl_interval",
        "timestamptz_mi_interval",
        "timestamp_pl_interval",
        "timestamp_mi_interval",
        "date_pli",
        "date_mii",
        "date_mi",
        "int48",
        "int84",
        "i4toi2",
        "i2toi4",
        "int28",
        "int82",
        "i4tod",
        "dtoi4",
        "i8tod",
        "int4_numeric",
        "int8_numeric",
    ]
)


@functools.cache
def _procs() -> frozenset[int]:
    """Return what may be called, by pg_proc oid."""
    named = {oid for oid, fact in facts().procs.items() if fact.name in _FUNCTIONS}
    return frozenset(named | inline_templates().keys())


def is_short(*nodes: object) -> bool:
    """Tell whether queries and expressions, those below them included, surely compute little for each row."""
    left = MOST_NODES
    stack = list(nodes)
    outermost = True
    while stack:
        node = stack.pop()
        left -= 1
        if left < 0 or isinstance(node, FunctionRange | SubqueryRange | CteRange | SqlCall):
            return False
        if isinstance(node, QueryBase):
            if not outermost:
                return False
            outermost = False
        if isinstance(node, Expr) and type(node) not in _EXPRS:
            return False
        if isinstance(node, FuncExpr | OpExpr) and (
            node.proc not in _procs() or (isinstance(node, FuncExpr) and node.returns_set)
        ):
            return False
        stack.extend(children(node))
    return True
