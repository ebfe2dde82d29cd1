"""Rows of many partitions stand side by side as a tree that is as flat as it can be.

    ((p1 + p2) + p3) + p4          as bound: a thousand partitions are a thousand levels
    (p1 + p2) + (p3 + p4)          balanced: ten

``+`` is UNION ALL. Whoever walks over a tree goes as deep as it is, so that the first form meets the limit of the stack (54001), and what copies
sub-trees on its way (sqlglot's printing) takes time that grows with the square of its depth. The order of the parts stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from planner.query import QueryExpr, RelationRange, Select, SetOp, SubLink, Var
from planner.rewrite import replace_children
from planner.walk import walk

IN_A_ROW: Final = 16
"""Parts that may stay a chain."""


def balanced(tree: Any) -> Any:
    """Return a tree in which long chains of UNION ALL over single tables are balanced; what else there is stays as it is."""
    if isinstance(tree, Var):
        return tree
    if isinstance(tree, SetOp):
        parts = _parts(tree)
        if len(parts) > IN_A_ROW and all(map(_stands_alone, parts)):
            return _side_by_side(tree, parts)
    return replace_children(tree, balanced)


def _parts(chain: SetOp) -> list[QueryExpr]:
    """Return the queries of a chain, in their order; what is no plain UNION ALL into the chain's columns is one of them."""
    parts: list[QueryExpr] = []
    item: QueryExpr = chain
    while isinstance(item, SetOp) and item == SetOp(
        columns=chain.columns, op="union", all=True, left=item.left, right=item.right
    ):
        parts.append(item.right)
        item = item.left
    parts.append(item)
    return parts[::-1]


def _stands_alone(part: QueryExpr) -> bool:
    """Tell whether a query reads one table and names nothing around it, so that it may stand at any level."""
    if not isinstance(part, Select) or part.ctes or len(part.ranges) != 1:
        return False
    if not isinstance(part.ranges[0], RelationRange):
        return False
    return not any(
        isinstance(node, SubLink) or (isinstance(node, Var) and node.level > 0) for node in walk(part)
    )


def _side_by_side(chain: SetOp, parts: Sequence[QueryExpr]) -> QueryExpr:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _side_by_side(chain, parts[:half]), _side_by_side(chain, parts[half:])
    return SetOp(columns=chain.columns, op="union", all=True, left=left, right=right)
