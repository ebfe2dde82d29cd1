"""Constant calls that raise: the error of a statement that PostgreSQL meets while it plans, before a row is read.

    SELECT 1 / 0                                     22012
    UPDATE t SET a = 1 / 0 WHERE false               22012      nobody would compute it, but it is planned
    SELECT CASE WHEN a = 1 THEN 0 ELSE 1 / 0 END     22012
    SELECT CASE WHEN $1 THEN 1 / 0 ELSE 0 END        none       the parameter decides, which its plan knows and this rule does not
    SELECT x.a FROM (SELECT a, 1 / 0 FROM t) x       none       nobody reads the column
    SELECT EXISTS (SELECT 1 / 0)                     none       nor what EXISTS selects
    WITH c AS (SELECT 1 / 0) SELECT 1                none       nor an item that nobody names

For trees that have been folded (``planner.rules.fold``): what constants decide has gone, and what raises was
left. Of calls of parameters alone nothing is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pgwire.codecs.errors import DataError
from pgwire.give_way import give_way, paced
from planner.base.errors import SqlError
from planner.query import (
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    Const,
    Cte,
    CteRange,
    FunctionRange,
    Param,
    Select,
    SetOp,
    SubLink,
    SubLinkKind,
    Values,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.walk import children, walk
from planner.rules.fold import error_of
from planner.rules.unread import rows_alone, without_unread


def failure(tree: Any) -> SqlError | None:
    """Return the first error that planning meets in a folded statement or query, or None."""
    error = _failure(tree, None)
    if error is None or isinstance(error, SqlError):
        return error
    return SqlError(error.sqlstate, error.message, detail=error.detail, hint=error.hint, where=error.where)


def _failure(node: object, named: frozenset[str] | None) -> DataError | None:
    """``named``: the WITH items that the outermost query around names anywhere; None: there is no query around."""
    if isinstance(node, Var | Const | Param):
        return None
    if isinstance(node, Select | SetOp | Values):
        if named is None:
            node = without_unread(_without_selected(node))
            named = _named(node)
        below: Iterable[Any] = [c for c in children(node) if not isinstance(c, Cte) or c.name in named]
    elif isinstance(node, FunctionRange):  # what gives rows is called, not computed
        below = [argument for call in node.functions for argument in children(call)]
    elif isinstance(node, BoolExpr | CoalesceExpr):
        below = _surely(node.args)
    elif isinstance(node, CaseExpr):
        below = _surely(
            [*(part for when in node.whens for part in (when.condition, when.result)), node.default]
        )
    else:
        below = children(node)
    for child in paced(list(below)):
        error = _failure(child, named)
        if error is not None:
            return error
    return error_of(node)


def _without_selected(node: object) -> Any:
    """Return a node whose EXISTS ask for rows alone."""
    if isinstance(node, SubLink) and node.kind is SubLinkKind.EXISTS:
        node = replace(node, query=rows_alone(node.query))
    return replace_children(node, _without_selected)


def _named(query: Any) -> frozenset[str]:
    """Return the WITH items of a query, at any depth, that it or an item which it names names."""
    of_item: defaultdict[str, set[str]] = defaultdict(set)

    found = set[str]()
    stack: list[tuple[Any, set[str]]] = [(query, found)]  # nodes, each with where the names below it belong
    while stack:
        give_way()
        node, into = stack.pop()
        if isinstance(node, CteRange):
            into.add(node.name)
        if isinstance(node, Cte):
            into = of_item[node.name]
        stack += [(child, into) for child in children(node)]
    new = list(found)
    while new:
        more = of_item[new.pop()] - found
        found |= more
        new += more
    return frozenset(found)


def _surely(parts: Iterable[Any]) -> list[Any]:
    """Return the operands that are looked at whatever parameters are: those up to the first that has one."""
    sure = []
    for part in parts:
        sure.append(part)
        if any(isinstance(node, Param) for node in walk(part)):
            break
    return sure
