"""Rebuilding Query trees: apply a function to the children of a node and keep what did not change.

    replace_children(node, f)   node with f(child) for every dataclass child, through tuples
    shift_levels(expr, by)      the same expression seen from ``by`` query levels further in

Trees are frozen, so a changed child means a new parent; unchanged parts are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

from planner.query import Aggregate, CteRange, Expr, QueryBase, Var

_T = TypeVar("_T")
_Q = TypeVar("_Q", bound=QueryBase)

# Fields that never hold nodes.
_PLAIN = frozenset(("type", "span", "name", "names", "value", "columns", "used", "alias"))


@cache
def _node_fields(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in _PLAIN)


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) is tuple:
        if not value:
            return value
        items = [_map(item, change) for item in value]
        for new, old in zip(items, value, strict=True):
            if new is not old:
                return tuple(items)
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return change(value)
    return value


def replace_children(node: _T, change: Callable[[Any], Any]) -> _T:
    """Return ``node`` with ``change`` applied to its direct child nodes; ``node`` itself if none changed."""
    updates = {}
    for name in _node_fields(cast(Any, type(node))):
        old = getattr(node, name)
        if old is None or isinstance(old, int | str):
            continue
        new = _map(old, change)
        if new is not old:
            updates[name] = new
    return replace(node, **updates) if updates else node  # type: ignore[type-var]


def shift_levels(expr: Expr, by: int) -> Expr:
    """Return ``expr`` as it reads ``by`` query levels further in: its free Vars point further out."""
    if by == 0:
        return expr
    shifted: Expr = _shift(expr, by, 0)
    return shifted


def shift_query(query: _Q, by: int) -> _Q:
    """Return a query as it reads when moved ``by`` levels further in (its own columns stay)."""
    return _shift(query, by, 0) if by else query


def _shift(node: Any, by: int, depth: int) -> Any:
    """``depth``: query levels entered since the expression's own; only references beyond it move."""
    if isinstance(node, Var | CteRange):
        return replace(node, level=node.level + by) if node.level >= depth else node
    if isinstance(node, Aggregate) and node.level >= depth:
        node = replace(node, level=node.level + by)
    if isinstance(node, QueryBase):
        return replace_children(node, lambda child: _shift(child, by, depth + 1))
    return replace_children(node, lambda child: _shift(child, by, depth))
