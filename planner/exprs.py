"""Small questions about bound expressions: which query levels they read.

EXISTS (SELECT 1 FROM d WHERE d.id = e.dept)      reads level 0 (e); d belongs to the inner query
"""

from __future__ import annotations

from planner.errors import Span
from planner.facts import facts
from planner.query import Aggregate, Const, Expr, GroupingFunc, Param, QueryBase, Var, WindowFunc
from planner.walk import children


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
        node, depth = stack.pop()
        if isinstance(node, Var):
            if node.level >= depth and node.range >= 0:
                columns.append(node.level - depth)
            continue
        if isinstance(node, Aggregate | GroupingFunc):
            level = node.level if isinstance(node, Aggregate) else 0
            if level >= depth:
                aggregates.append((level - depth, node.span))
        inner = depth + 1 if isinstance(node, QueryBase) else depth
        stack.extend([(child, inner) for child in children(node)])
    return columns, aggregates


def aggregate_name(call: Aggregate | WindowFunc) -> str:
    """Return the name of an aggregate or window function that is called, a user's among them."""
    return facts().procs[call.proc].name if call.own is None else call.own.name


def reads_own_columns(expr: Expr) -> bool:
    """Tell whether an expression reads a column of its own query level."""
    return 0 in free_levels(expr)[0]
