"""What planning asks of an expression, whichever executor is planned for.

Which ranges it uses, whether it is volatile, returns sets, has sub-selects.
"""

from __future__ import annotations

from pgwire.give_way import give_way, paced
from planner.facts import facts
from planner.indexing.comparisons import conjuncts_of
from planner.query import (
    Aggregate,
    Expr,
    FuncExpr,
    OpExpr,
    QueryBase,
    Range,
    RelationRange,
    SqlCall,
    SubLink,
    Var,
)
from planner.query.rewrite import at_range
from planner.query.walk import children


def ranges_used(node: object, depth: int = 0) -> set[int]:
    """Return the ranges of the query ``depth`` levels out that occur below ``node``, sub-selects included."""
    out: set[int] = set()
    _collect(node, depth, out)
    return out


def _collect(node: object, depth: int, out: set[int]) -> None:
    if isinstance(node, Var):
        if node.level == depth and node.range >= 0:  # -1 stands for an array's element
            out.add(node.range)
        return
    give_way()
    deeper = depth + 1 if isinstance(node, QueryBase) else depth
    for child in node if isinstance(node, tuple) else children(node):
        _collect(child, deeper, out)


def is_volatile(node: object) -> bool:
    """Tell whether a volatile function occurs in ``node``."""
    if isinstance(node, FuncExpr | OpExpr):
        fact = facts().procs.get(node.proc)
        if fact is not None and fact.volatility == "v":
            return True
    if isinstance(node, SqlCall) and node.stays and node.volatility == "v":
        return True
    return any(is_volatile(child) for child in paced(children(node)))


def returns_set(node: object) -> bool:
    """Tell whether a set-returning function occurs in ``node``."""
    if isinstance(node, FuncExpr) and node.returns_set:
        return True
    return any(returns_set(child) for child in paced(children(node)))


def has_sublink(node: object) -> bool:
    """Tell whether a sub-select or an aggregate occurs in ``node``."""
    if isinstance(node, SubLink | Aggregate):
        return True
    return any(has_sublink(child) for child in paced(children(node)))


def row_security_of(item: Range, number: int) -> list[Expr]:
    """Return what row-level security asks of the rows of range ``number``."""
    if not isinstance(item, RelationRange) or item.guard is None:
        return []
    made: list[Expr] = [at_range(expr, number) for expr in conjuncts_of(item.guard.where)]
    return made
