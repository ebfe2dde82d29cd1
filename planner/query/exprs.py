"""Small questions about bound expressions: which query levels they read, and which columns they name.

EXISTS (SELECT 1 FROM d WHERE d.id = e.dept)      reads level 0 (e); d belongs to the inner query
"""

from __future__ import annotations

from typing import Any, Final

from pgwire.give_way import give_way
from planner.base.errors import Span
from planner.facts import facts
from planner.query import (
    ROW_ID,
    Aggregate,
    Const,
    Expr,
    GroupingFunc,
    Param,
    QueryBase,
    SqlCall,
    Var,
    WindowFunc,
)
from planner.query.walk import children, walk


def free_levels(expr: object) -> tuple[list[int], list[tuple[int, Span | None]]]:
    """Return (levels of columns, (level, span) of aggregates) read by ``expr``, relative to its own query.

    What belongs to queries inside the expression is left out.
    """
    if isinstance(expr, Const | Param):
        return [], []
    columns: list[int] = []
    aggregates: list[tuple[int, Span | None]] = []
    stack: list[tuple[object, int]] = [(expr, 0)]
    while stack:
        give_way()
        node, depth = stack.pop()
        if isinstance(node, Var):
            if node.level >= depth and node.range >= 0:
                columns.append(node.level - depth)
            continue
        if isinstance(node, Aggregate | GroupingFunc) and node.level >= depth:
            aggregates.append((node.level - depth, node.span))
        inner = depth + 1 if isinstance(node, QueryBase) else depth
        stack.extend([(child, inner) for child in children(node)])
    return columns, aggregates


def aggregate_name(call: Aggregate | WindowFunc) -> str:
    """Return the name of an aggregate or window function that is called, a user's among them."""
    return facts().procs[call.proc].name if call.own is None else call.own.name


def reads_own_columns(expr: Expr) -> bool:
    """Tell whether an expression reads a column of its own query level."""
    return 0 in free_levels(expr)[0]


_OURS: Final = (ROW_ID,)  # what no statement names


def columns_named(node: object, range_: int = 0) -> frozenset[int]:
    """Return the columns of a range that a query or its parts name, be it from within its sub-queries; 0: the
    whole row, below: system columns.
    """
    found: set[int] = set()
    stack: list[tuple[Any, int]] = [
        (part, 0) for part in (children(node) if isinstance(node, QueryBase) else (node,))
    ]
    while stack:
        current, level = stack.pop()
        if isinstance(current, tuple):
            stack.extend((item, level) for item in current if item is not None)
            continue
        if isinstance(current, Var):
            named = current.attnum not in _OURS and not current.rest
            if current.range == range_ and current.level == level and named:
                found.add(current.attnum)
            continue
        if current is not None:
            inside = level + isinstance(current, QueryBase)
            stack.extend((child, inside) for child in children(current))
    return frozenset(found)


def has_calls(expr: Any) -> bool:
    """Tell whether an expression calls users' functions."""
    return any(isinstance(item, SqlCall) for item in walk(expr))
