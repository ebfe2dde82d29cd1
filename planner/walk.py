"""Generic walks over the Query tree: children of any node, by dataclass fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from planner.query import Expr, QueryBase, QueryExpr, Range


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in ("type", "span"))


def children(node: Any) -> Iterator[Any]:
    """Yield the dataclass nodes directly below ``node`` (through tuples), in field order."""
    for name in _field_names(type(node)):
        yield from _nodes(getattr(node, name))


def _nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)
    elif is_dataclass(value) and not isinstance(value, type):
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
