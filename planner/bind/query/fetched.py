"""Queries whose rows are asked for one after another: those of cursors and loops, and what INTO takes a row of.

    FOR r IN SELECT f(a) FROM t WHERE g(a) LOOP       f and g are called for ten rows, then the body runs ten times, and so on
    SELECT 1 / a INTO n FROM t                        for no row behind the first

What a row needs is computed when it is asked for, so that nobody sees it called, or failing, for rows that
are not. What sorts, groups or tells rows apart has all of them before the first is there, as everywhere. A
query that computes nothing that could be noticed stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final, Literal

from planner.facts import BOOL, facts
from planner.query import (
    BoolExpr,
    Const,
    Expr,
    NullTest,
    OpExpr,
    Param,
    QueryExpr,
    RelabelType,
    Select,
    SetOp,
    SqlCall,
    SubqueryRange,
    Var,
)
from planner.query.walk import children, walk
from planner.statements.classify import is_volatile

InTurn = Literal["asked", "fetched"]

_COMPARES: Final = re.compile(
    r"(int\d+|text|bpchar|bool|oid|float\d+|date|timestamp|timestamptz|uuid|name|numeric)_?(eq|ne|lt|le|gt|ge)"
)


def as_fetched(query: QueryExpr) -> QueryExpr:
    """Return the query of a cursor of SQL: as many rows are computed as are fetched; one by one where a
    function may do something.
    """
    return _told(query, "asked" if may_do_something(query) else "fetched")


def as_asked(query: QueryExpr) -> QueryExpr:
    """Return a query each row of which is computed when it is asked for."""
    return _told(query, "asked")


def may_do_something(node: object) -> bool:
    """Tell whether a function is called that is volatile, be it one that may be inlined yet."""
    return is_volatile(node) or any(isinstance(one, SqlCall) and one.volatility == "v" for one in walk(node))


def _told(query: QueryExpr, how: InTurn) -> QueryExpr:
    if isinstance(query, SetOp):
        if query.op != "union" or not query.all or query.order:
            return query
        left, right = _told(query.left, how), _told(query.right, how)
        if not (left.in_turn or right.in_turn or any(map(_computes_alone, (left, right)))):
            return query
        return replace(query, left=left, right=right, in_turn=how)
    if not isinstance(query, Select) or query.row_marks or not query.ranges:
        return query
    if query.grouped or query.distinct:
        return query
    ranges = tuple(
        replace(item, query=_told(item.query, how))
        if isinstance(item, SubqueryRange) and not item.parent
        else item
        for item in query.ranges
    )
    ctes = tuple(cte if cte.recursive else replace(cte, query=_told(cte.query, how)) for cte in query.ctes)
    inner = any(item.query.in_turn for item in ranges if isinstance(item, SubqueryRange))
    inner = inner or any(cte.query.in_turn for cte in ctes)
    if not inner and not any(map(_computes, _expressions(query))):
        return query
    return replace(query, ranges=ranges, ctes=ctes, in_turn=how)


def _computes_alone(query: QueryExpr) -> bool:
    """Tell whether a query of one row computes something."""
    return isinstance(query, Select) and not query.ranges and any(map(_computes, _expressions(query)))


def _expressions(query: Select) -> list[Any]:
    """Return what a query computes of a row."""
    return [*(target.expr for target in query.targets), query.where, *query.from_, *query.windows]


def _computes(node: object) -> bool:
    """Tell whether something is computed that may fail, or be noticed."""
    if isinstance(node, OpExpr):
        proc = facts().procs.get(node.proc)
        plain = proc is not None and node.type.oid == BOOL and _COMPARES.fullmatch(proc.name) is not None
        return not plain or any(map(_computes, children(node)))
    if isinstance(node, Expr) and not isinstance(
        node, Var | Const | Param | BoolExpr | NullTest | RelabelType
    ):
        return True
    return node is not None and any(map(_computes, children(node)))
