"""Generic walks over the Query tree: children of any node, by dataclass fields.

For questions that most kinds of nodes answer in the same way (which ranges, which parameters, any sublink?); passes that change the tree
are in ``planner.rewrite``. Which fields of a class hold nodes is looked up once per class.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast

from planner.query import QueryBase, QueryExpr, Range


@cache
def _field_names(kind: Hashable) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cast(Any, kind)) if f.name not in ("type", "span", "leaves"))


@cache
def _is_node(kind: Hashable) -> bool:
    return is_dataclass(kind)


def children(node: Any) -> Iterator[Any]:
    """Yield the dataclass nodes directly below ``node`` (through tuples), in field order."""
    out: list[Any] = []
    for name in _field_names(node.__class__):
        value = getattr(node, name)
        if value.__class__ is tuple:
            _gather(value, out)
        elif value is not None and _is_node(value.__class__):
            out.append(value)
    return iter(out)


def _gather(items: tuple[Any, ...], out: list[Any]) -> None:
    for item in items:
        if item.__class__ is tuple:
            _gather(item, out)
        elif item is not None and _is_node(item.__class__):
            out.append(item)


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


def queries_of(node: Any) -> Iterator[QueryBase]:
    """Yield all queries below ``node``, itself included."""
    return (item for item in walk(node) if isinstance(item, QueryBase))
