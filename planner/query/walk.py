"""Generic walks over the Query tree, and over an AST: children of any node, by dataclass fields.

For questions that most kinds of nodes answer in the same way (which ranges, which parameters, any sublink?);
passes that change the tree are in ``planner.query.rewrite``. Which fields of a class hold nodes is looked up
once per class.

The classes of nodes have no common base: whoever takes a node of any kind takes an ``object``, and asks which
it is before reading it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, Final

from pgwire.give_way import PACE, give_way, paced, paced_iter
from planner.query import QueryBase, QueryExpr, Range

_OTHER: Final = ("type", "span", "leaves", "written", "fails")
# Annotations of fields that hold no node.
_PLAIN: Final = re.compile(r"Literal\[[^]]*]|\b(?:int|str|bool|float|bytes|None|tuple|frozenset)\b|[][|,. ]")


def _nothing(_node: Any) -> list[Any]:
    """Return the nodes below a leaf: what has this function in ``_KINDS`` need not be asked."""
    return []


def _children_of(kind: type) -> Callable[[Any], list[Any]]:
    names = [f.name for f in fields(kind) if f.name not in _OTHER and _PLAIN.sub("", str(f.type))]
    if not names:
        return _nothing
    if len(names) == 1:
        (name,) = names
        return lambda node: _gathered((getattr(node, name),))
    values = attrgetter(*names)
    return lambda node: _gathered(values(node))


class _Kinds(dict[type, "Callable[[Any], list[Any]] | None"]):
    """Class -> the function from one of its objects to the nodes directly below it; None: they are no nodes."""

    def __missing__(self, kind: type) -> Callable[[Any], list[Any]] | None:
        """Look once."""
        found = self[kind] = _children_of(kind) if is_dataclass(kind) else None
        return found


_KINDS: Final = _Kinds()


def children(node: object) -> list[Any]:
    """Return the dataclass nodes directly below ``node`` (through tuples), in field order. Whoever goes
    through many of them gives way.
    """
    below = _KINDS[node.__class__]
    if below is None:
        raise TypeError(f"{node.__class__.__name__} is no node")
    found = below(node)
    return found if len(found) <= MANY else _Many(found)


MANY: Final = 512
"""Nodes of a list, constants maybe, that are looked at between two looks at the clock."""


class _Many(list[Any]):
    """Many nodes: what looks at each, in whatever way, lets others run."""

    def __iter__(self) -> Iterator[Any]:
        return paced_iter(super().__iter__(), MANY)


def _gathered(items: tuple[Any, ...]) -> list[Any]:
    out: list[Any] = []
    for item in items if len(items) <= PACE else paced(items):
        kind = item.__class__
        if kind is tuple:
            if item:
                out += _gathered(item)
        elif _KINDS[kind] is not None:
            out.append(item)
    return out


def walk(node: object) -> Iterator[Any]:
    """Yield ``node`` and everything below it, outer first; iterative, so depth is no limit."""
    stack = [node]
    left = PACE
    while stack:
        current = stack.pop()
        yield current
        left -= 1
        if not left:
            left = PACE
            give_way()
        below = _KINDS[current.__class__]
        if below is None:
            raise TypeError(f"{current.__class__.__name__} is no node")
        if below is not _nothing:
            stack += below(current)[::-1]


def nests_deeper(node: object, most: int) -> bool:
    """Tell whether there are more than ``most`` levels of nodes below ``node``."""
    level = [node]
    for _ in range(most + 1):
        below: list[Any] = []
        for count, one in enumerate(level, start=1):
            below += children(one)
            if not count % PACE:
                give_way()
        if not below:
            return False
        level = below
    return True


def placed(node: object, kinds: AbstractSet[type]) -> Iterator[tuple[Any, int]]:
    """Yield what is of one of ``kinds`` at or below ``node``, in no order, each with the depth of the query
    that it belongs to.

    0: ``node``, or a query that is in none below it; -1: none, where ``node`` is an expression. ``kinds`` are
    classes, not bases of them, and no queries.
    """
    if node.__class__ in kinds:
        yield node, -1
    pending = [(node, 0 if isinstance(node, QueryBase) else -1)]
    while pending:
        top, depth = pending.pop()
        stack = [top]
        while stack:
            give_way()
            for child in children(stack.pop()):
                kind = child.__class__
                if kind in kinds:
                    yield child, depth
                if _KINDS[kind] is _nothing:
                    continue
                if isinstance(child, QueryBase):
                    pending.append((child, depth + 1))
                else:
                    stack.append(child)


def ranges_of(query: QueryExpr) -> list[Range]:
    """Return all ranges of a query, those of sub-queries, CTEs and sublinks included."""
    return [node for node in walk(query) if isinstance(node, Range)]


def queries_of(node: object) -> Iterator[QueryBase]:
    """Yield all queries below ``node``, itself included."""
    return (item for item in walk(node) if isinstance(item, QueryBase))
