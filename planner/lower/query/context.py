"""What lowers expressions asks of what lowers the queries around them
(``planner.lower.query.lowering.Lowering``, which is one).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from planner import query as q
from planner.functions.registry import Registry
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import Val
from planner.lower.query.scope import Callout, Result


class LoweringContext(Protocol):
    """One lowering of one statement.

    ``d``: the engine it is for; ``values``: the parameters' values where the dialect writes them as literals,
    else None; ``registry``: of built-in functions; ``callouts``: what the engine is to call; ``calls_out``:
    whether it may.
    """

    d: Dialect
    values: Sequence[object] | None
    registry: Registry
    callouts: list[Callout]
    calls_out: bool

    def without_callouts(self) -> AbstractContextManager[None]:
        """Refuse what the engine itself cannot compute, inside the block."""
        ...

    def expr(self, expr: q.Expr) -> Val:
        """Return a lowered expression of the innermost query level."""
        ...

    def substituted(self, expr: q.Expr) -> Val | None:
        """Return the column that already holds ``expr`` after grouping, if there is one."""

    def correlated(self, query: q.QueryExpr) -> tuple[Result, bool]:
        """Return a lowered sub-query, and whether it depends on the levels around it."""
        ...

    def variable(self, var: q.Var) -> Val:
        """Return the value of a column reference."""
        ...

    def placeholder_row(self, columns: Sequence[Val]) -> AbstractContextManager[None]:
        """Let Var(range=-1, attnum=i) mean ``columns[i - 1]`` inside the block."""
        ...

    def query(self, query: q.QueryExpr) -> Result:
        """Return a lowered query, as a new level inside the open ones."""
        ...

    def column_value(self, value: Val) -> Val:
        """Return the value in a form that is one column: a varying display scale becomes Floating."""
        ...

    def typed(self, value: Val) -> Node:
        """Return the node, cast to its engine type unless it is a column."""
        ...

    def condition(self, expr: q.Expr, *, outer_join: bool = False) -> Node:
        """Return a WHERE, ON or HAVING condition; of a sub-select only its truth is asked. ``outer_join``:
        the ON of one.
        """
        ...

    def window_function(self, expr: q.WindowFunc) -> Val:
        """Return a window function call of the innermost SELECT."""
        ...
