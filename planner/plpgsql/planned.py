"""What PostgreSQL computes of an expression while it plans it, before anything of it runs.

row(n, 1/0)                1/0 fails, whatever n is
n > 2 AND 1/0 = 1          so it does here
false AND 1/0 = 1          nothing fails: AND of FALSE is FALSE
'{}'::int[]::text::int     is left to run: how an array prints is not fixed

Whoever looks at CONTEXT sees the difference: an error met while planning names the expression, one met while
it runs does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from planner.evaluate import Env, RowFunction, Shared, compile_expr
from planner.facts import facts
from planner.functions.session import EvalSession
from planner.query import (
    ArrayCoerce,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    CoerceToDomain,
    CoerceViaIO,
    Const,
    Expr,
    Param,
    RowExpr,
    SubLink,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.walk import children
from planner.rules.stable import computes_immutably
from planner.types.facts import element_of

_OTHERWISE: Final = frozenset(
    ("aclitem", "date", "interval", "money", "record", "timestamp", "timestamptz", "timetz")
)
"""Base types whose text form depends on settings, or on other types; those of names of objects (regclass) are
like them."""


class Planned:
    """What of one expression PostgreSQL computes while it plans it.

    ``whole``: all of it; ``failing``: what computes the first part that fails, None where none does.
    """

    __slots__ = ("_fixed", "_session", "failing", "whole")

    def __init__(self, expr: Expr, session: EvalSession) -> None:
        """Compute what is constant."""
        self._session = session
        self._fixed: set[int] = set()
        self.whole = self._note(expr)
        self.failing = self._failing(expr)

    def _note(self, node: object) -> bool:
        """Note which nodes are constant; tell whether this one is."""
        if isinstance(node, Const) or (isinstance(node, Var) and node.range == -1):  # or an element of one
            return True
        if isinstance(node, Var | Param | SubLink):  # a sub-select is planned by itself
            return False
        below = [self._note(child) for child in children(node)]
        fixed = all(below) and computes_immutably(node) and not isinstance(node, CoerceToDomain)
        if isinstance(node, CoerceViaIO):
            fixed = fixed and _reads_alike(node.type.oid) and _prints_alike(node.arg.type.oid)
        if fixed:
            self._fixed.add(id(node))
        return fixed

    def _failing(self, node: object) -> RowFunction | None:
        if isinstance(node, Const | Var | Param | SubLink):
            return None
        if isinstance(node, Expr) and not isinstance(node, RowExpr) and id(node) in self._fixed:
            return self._computed(node)[1]
        if isinstance(node, CaseExpr):
            return self._failing_case(node)
        if isinstance(node, ArrayCoerce):  # of its elements nothing is known
            return self._failing(node.arg)
        for child in children(node):
            found = self._failing(child)
            if found is not None:
                return found
            if self._ends(node, child):
                return None
        return None

    def _failing_case(self, node: CaseExpr) -> RowFunction | None:
        for when in node.whens:
            constant, value = self._value(when.condition)
            found = self._failing(when.condition)
            if found is None and not (constant and value is not True):
                found = self._failing(when.result)
            if found is not None or (constant and value is True):
                return found
        return self._failing(node.default)

    def _ends(self, node: object, child: Any) -> bool:
        """Tell whether a constant argument leaves the arguments behind it without effect."""
        if isinstance(node, BoolExpr) and node.kind != "not":
            return self._value(child) == (True, node.kind == "or")
        if isinstance(node, CoalesceExpr):
            constant, value = self._value(child)
            return constant and value is not None
        return False

    def _value(self, node: Expr) -> tuple[bool, Any]:
        """Tell whether an expression is constant, and return its value."""
        if isinstance(node, Const):
            return True, node.value
        return (True, self._computed(node)[0]) if id(node) in self._fixed else (False, None)

    def _computed(self, expr: Expr) -> tuple[Any, RowFunction | None]:
        """Return the value of a constant expression, or the function that fails to compute it."""
        try:
            function = compile_expr(expr)
        except SqlError:  # what is not supported says so when it runs, if it does
            return None, None
        if function.may_suspend:
            return None, None
        try:
            return function((), Env((), self._session, shared=Shared())), None
        except (SqlError, DataError):
            return None, function


def _prints_alike(oid: int) -> bool:
    """Tell whether values of a type are printed alike under all settings and catalogs."""
    fact = facts().types.get(oid)
    if fact is None or fact.kind != "b" or element_of(oid):
        return False
    return fact.name not in _OTHERWISE and not fact.name.startswith("reg")


def _reads_alike(oid: int) -> bool:
    """As ``_prints_alike`` for what texts of a type mean."""
    return _prints_alike(oid) and facts().types[oid].name not in ("time", "xml")


def failing_in(statement: Any, values: Sequence[Any], session: EvalSession) -> RowFunction | None:
    """Return what computes something in a statement that fails and is constant once its parameters have
    ``values``; None where nothing does.
    """
    stack = [_with_values(statement, values)]
    while stack:
        node = stack.pop()
        if isinstance(node, Expr):
            failing = Planned(node, session).failing
            if failing is not None:
                return failing
            stack += _queries(node)
        else:
            stack += children(node)
    return None


def _queries(expr: Expr) -> list[Any]:
    """Return the sub-selects of an expression, those within them left out."""
    if isinstance(expr, SubLink):
        return [expr.query, *(query for left in expr.lefts for query in _queries(left))]
    return [query for child in children(expr) for query in _queries(child)]


def _with_values(node: object, values: Sequence[Any]) -> Any:
    if isinstance(node, Param) and node.number <= len(values):
        return Const(type=node.type, value=values[node.number - 1], span=node.span)
    return replace_children(node, lambda child: _with_values(child, values))
