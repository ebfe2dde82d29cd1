"""Where binding comes back to itself: a query within an expression or a FROM item, a statement within WITH or
the body of a function, a function that is called as if it was a column.

    expression ──QUERY──► query ──STATEMENT──► statements of all kinds, which bind expressions
    column ──CALL_ON──► call ──► its arguments, columns
    WITH ──ITEM_CHANGE──► a change of rows ──► its source, a query with WITH

Who binds the inner one stands above who meets it, so it is asked for here; ``planner.bind.supplied`` and
``planner.bind`` say who answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from planner.base.port import Port

if TYPE_CHECKING:
    from planner import ast
    from planner import statements as st
    from planner.base.errors import Span
    from planner.bind.context import BindContext
    from planner.bind.scope import Scope
    from planner.catalog import RelationDef
    from planner.query import Expr, ItemChange, OutputColumn, QueryExpr


class BindQuery(Protocol):
    """Binds a query (``planner.bind.query.select.bind_query``)."""

    def __call__(
        self,
        context: BindContext,
        node: ast.QueryNode,
        parent: Scope | None = None,
        *,
        resolve_unknowns: bool = True,
    ) -> QueryExpr:
        """Return it, one level inside ``parent``. Raises SqlError."""
        ...


class Envelope(Protocol):
    """Wraps a bound statement with what executors need to know (``planner.bind.envelope``)."""

    def __call__(
        self,
        node: ast.StatementNode,
        text: str,
        context: BindContext,
        bound: st.Statement,
        *,
        finish: bool = True,
    ) -> st.BoundStatement:
        """Return it. Raises SqlError."""
        ...


QUERY: Final[Port[BindQuery]] = Port("the binder of queries")
VIEW: Final[Port[Callable[[BindContext, RelationDef], QueryExpr]]] = Port("the binder of views")
STATEMENT: Final[Port[Callable[[BindContext, ast.StatementNode], st.Statement]]] = Port(
    "the binder of statements"
)
CALL_ON: Final[Port[Callable[[Scope, str, Expr, Span | None], Expr | None]]] = Port(
    "the binder of functions in column notation"
)
ITEM_CHANGE: Final[Port[Callable[[Scope, ast.Cte], tuple[ItemChange, tuple[OutputColumn, ...]]]]] = Port(
    "the binder of items of WITH that change data, as they are printed"
)
ENVELOPE: Final[Port[Envelope]] = Port("what is told of a bound statement")

PORTS: Final = (QUERY, VIEW, CALL_ON, ITEM_CHANGE, STATEMENT, ENVELOPE)
