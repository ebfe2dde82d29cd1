"""Equal calls with volatile arguments are told apart: each is computed by itself.

    SELECT max(nextval('s')), max(nextval('s')) FROM t      two numbers for each row of t

Expressions are equal when they mean the same, and what is equal is computed once: aggregates, window
functions, set-returning functions of a select list. As in PostgreSQL that ends where something volatile is
among the arguments; such calls get numbers, which make them unequal. What PostgreSQL finds in the select list
by its text stays one there: expressions of GROUP BY, of ORDER BY, and of a window's PARTITION BY and ORDER
BY.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeGuard

from planner.query import Aggregate, Expr, FuncExpr, QueryBase, Select, SortBy, WindowFunc
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.statements.classify import is_volatile


def told_apart(query: Select) -> Select:
    """Return ``query`` with a number of its own for each of its aggregates, window functions and sets that is
    volatile.
    """
    if not any(_computed_once(node) and _is_volatile(node) for node in _walk_own(query)):
        return query
    numbering = _Numbering(query)
    targets = tuple([replace(t, expr=numbering.visit(t.expr, 0)) for t in query.targets])
    known = [(old.expr, new.expr) for old, new in zip(query.targets, targets, strict=True)]

    def key(item: SortBy) -> SortBy:
        found = next((new for old, new in known if old == item.expr), None)
        return replace(item, expr=numbering.visit(item.expr, 0) if found is None else found)

    def keys(items: tuple[SortBy, ...]) -> tuple[SortBy, ...]:
        return tuple(map(key, items))

    windows = tuple([replace(w, partition=keys(w.partition), order=keys(w.order)) for w in query.windows])
    having = None if query.having is None else numbering.visit(query.having, 0)
    return replace(query, targets=targets, windows=windows, having=having)


def _walk_own(query: Select) -> Iterator[Any]:
    for target in query.targets:
        yield from walk(target.expr)
    for window in query.windows:
        yield from walk(window)
    if query.having is not None:
        yield from walk(query.having)


def _computed_once(node: object) -> TypeGuard[Aggregate | WindowFunc | FuncExpr]:
    return isinstance(node, Aggregate | WindowFunc) or (isinstance(node, FuncExpr) and node.returns_set)


def _is_volatile(node: Aggregate | WindowFunc | FuncExpr) -> bool:
    """Tell whether a call is, by what is written: what a user's aggregate is made of does not count."""
    return is_volatile(node if isinstance(node, FuncExpr) else replace(node, own=None))


class _Numbering:
    """Numbers the calls of one query."""

    def __init__(self, query: Select) -> None:
        self.group = query.group
        self.last = 0

    def visit(self, node: object, depth: int) -> Any:
        """Return ``node`` with its calls numbered; ``depth``: query levels entered."""
        if not depth and isinstance(node, Expr) and node in self.group:
            return node
        inside = depth + 1 if isinstance(node, QueryBase) else depth
        made: Any = replace_children(node, lambda child: self.visit(child, inside))
        level = node.level if isinstance(node, Aggregate) else 0
        if level == depth and _computed_once(node) and _is_volatile(node):
            self.last += 1
            made = replace(made, occurrence=self.last)
        return made
