"""Rebuilding Query trees: apply a function to the children of a node and keep what did not change.

    replace_children(node, f)   node with f(child) for every dataclass child, through tuples
    shift_levels(expr, by)      the same expression seen from ``by`` query levels further in
    at_range(expr, n)           an expression over range 0 as one over range n

Trees are frozen, so a changed child means a new parent; unchanged parts are shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

from pgwire.give_way import give_way, paced
from planner.query import STEP_INPUT, Aggregate, CteRange, Expr, GroupingFunc, QueryBase, Var
from planner.query.walk import MANY

_T = TypeVar("_T")
_Q = TypeVar("_Q", bound=QueryBase)

_is_node = cache(is_dataclass)

# Annotations of fields that hold no nodes are built from these words alone.
_PLAIN_WORDS = frozenset(
    ("int", "str", "bool", "float", "object", "None", "tuple", "frozenset", "Literal", "SqlType", "Span",
     "SubLinkKind", "JoinKind", "Leaf", "RangeColumn", "OutputColumn", "SortKey", "StatementClass", "Mapping",
     "Written", "JoinWritten")
)  # fmt: skip


@cache
def _node_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a node class that may hold nodes, by their annotations."""
    found = []
    for item in fields(kind):
        annotation = re.sub(r"Literal\[[^\]]*\]", "", str(item.type))
        if not set(re.findall(r"[A-Za-z_]\w*", annotation)) <= _PLAIN_WORDS:
            found.append(item.name)
    return tuple(found)


def _map(items: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return ``items`` with every node in it changed; the same tuple if none was."""
    made: list[Any] | None = None
    for index, item in enumerate(paced(items, MANY)):
        kind = item.__class__
        if kind is tuple:
            new: Any = _map(item, change)
        elif _is_node(kind):
            new = change(item)
        else:
            continue
        if new is not item:
            if made is None:
                made = list(items)
            made[index] = new
    return items if made is None else tuple(made)


def replace_children(node: _T, change: Callable[[Any], Any]) -> _T:
    """Return ``node`` with ``change`` applied to its direct child nodes; ``node`` itself if none changed."""
    give_way()
    updates: dict[str, Any] | None = None
    for name in _node_fields(cast(Any, type(node))):
        old = getattr(node, name)
        kind = old.__class__
        if kind is tuple:
            new: Any = _map(old, change) if old else old
        elif _is_node(kind):
            new = change(old)
        else:
            continue
        if new is not old:
            if updates is None:
                updates = {}
            updates[name] = new
    return node if updates is None else replace(node, **updates)  # type: ignore[type-var]  # nodes are dataclasses


def shift_levels(expr: Expr, by: int) -> Expr:
    """Return ``expr`` as it reads ``by`` query levels further in: its free Vars point further out."""
    if by == 0:
        return expr
    shifted: Expr = _shift(expr, by, 0)
    return shifted


def shift_query(query: _Q, by: int) -> _Q:
    """Return a query as it reads when moved ``by`` levels further in (its own columns stay)."""
    return _shift(query, by, 0) if by else query


def _shift(node: object, by: int, depth: int) -> Any:
    """``depth``: query levels entered since the expression's own; only references beyond it move."""
    if isinstance(node, Var) and node.range in (-1, STEP_INPUT):
        return (
            node  # it stands for an array's element, a sub-select's column, a step's input: of no query level
        )
    if isinstance(node, Var | CteRange):
        return replace(node, level=node.level + by) if node.level >= depth else node
    if isinstance(node, Aggregate | GroupingFunc) and node.level >= depth:
        node = replace(node, level=node.level + by)
    if isinstance(node, QueryBase):
        return replace_children(node, lambda child: _shift(child, by, depth + 1))
    return replace_children(node, lambda child: _shift(child, by, depth))


def at_range(node: object, number: int, depth: int = 0) -> Any:
    """Return an expression over range 0 as one over range ``number``; ``depth``: query levels entered."""
    if isinstance(node, Var):
        return replace(node, range=number) if node.level == depth and node.range == 0 else node
    inside = depth + 1 if isinstance(node, QueryBase) else depth
    return replace_children(node, lambda child: at_range(child, number, inside))
