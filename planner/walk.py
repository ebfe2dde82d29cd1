"""Generic walks over the Query tree: children of any node, by dataclass fields."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast

from planner.query import Expr, QueryBase, QueryExpr, Range


@cache
def _field_names(kind: Hashable) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cast(Any, kind)) if f.name not in ("type", "span"))


def children(node: Any) -> Iterator[Any]:
    """Yield the dataclass nodes directly below ``node`` (through tuples), in field order."""
    for name in _field_names(type(node)):
        yield from _nodes(getattr(node, name))


@cache
def _is_node(kind: Hashable) -> bool:
    return is_dataclass(kind)


def _nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)
    elif value is not None and _is_node(value.__class__):
        yield value


def walk(node: Any) -> Iterator[Any]:
    """Yield ``node`` and everything below it, outer first; iterative, so depth is no limit."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))


def ranges_of(query: QueryExpr) -> list[Range]:
    """Return all ranges of a query, those of sub-queries, CTEs and sublinks included."""
    return [node for node in walk(query) if isinstance(node, Range)]


def expressions_of(node: Any) -> Iterator[Expr]:
    """Yield all expressions below ``node``."""
    return (item for item in walk(node) if isinstance(item, Expr))


def queries_of(node: Any) -> Iterator[QueryBase]:
    """Yield all queries below ``node``, itself included."""
    return (item for item in walk(node) if isinstance(item, QueryBase))
