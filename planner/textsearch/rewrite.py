"""ts_rewrite (manual 12.4.2.1): a part of a query replaced by another, wherever it is.

    a & b & c   with  b & c -> x    a & x      operands of & and | are sets: neither their order nor parentheses matter

The result is in PostgreSQL's order, which is that of checksums of lexemes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key

from pgwire.codecs.text import tsquery
from pgwire.codecs.text.tsquery import AND, NOT, OR, PHRASE, Item, Operator, Word, checksum
from pgwire.give_way import give_way
from pgwire.release import LARGE, release, release_all
from planner.base.errors import SqlError

_MAX_DEPTH = 400


@dataclass(slots=True, eq=False)
class _Node:
    """A word, or an operator over nodes; right operands come first. ``final``: it was put in, and is left alone."""

    item: Item
    children: list[_Node] = field(default_factory=list)
    final: bool = False

    @property
    def kind(self) -> int:
        return self.item.kind if isinstance(self.item, Operator) else 0


def _tree(items: Sequence[Item]) -> _Node:
    def join(operator: Operator, a: tuple[_Node, int], b: tuple[_Node, int]) -> tuple[_Node, int]:
        return _Node(operator, [b[0], a[0]]), 1 + max(a[1], b[1])

    def negate(a: tuple[_Node, int]) -> tuple[_Node, int]:
        return _Node(Operator(NOT), [a[0]]), 1 + a[1]

    node, depth = tsquery.fold(items, lambda item: (_Node(item), 1), negate, join)
    if depth > _MAX_DEPTH:
        raise SqlError("54001", "stack depth limit exceeded")
    return node


def _compare(a: _Node, b: _Node) -> int:
    """Order nodes: operators before words, both backwards by number (kind, operands, checksum), as PostgreSQL does."""
    give_way()
    if bool(a.kind) != bool(b.kind):
        return -1 if a.kind else 1
    if not a.kind:
        if not isinstance(a.item, Word):
            raise AssertionError(f"{type(a.item).__name__} in a tsquery is neither a word nor an operator")
        if not isinstance(b.item, Word):
            raise AssertionError(f"{type(b.item).__name__} in a tsquery is neither a word nor an operator")
        x, y = a.item.text.encode("utf-8"), b.item.text.encode("utf-8")
        return (checksum(y) > checksum(x)) - (checksum(y) < checksum(x)) or (x > y) - (x < y)
    if a.kind != b.kind:
        return -1 if a.kind > b.kind else 1
    if len(a.children) != len(b.children):
        return -1 if len(a.children) > len(b.children) else 1
    for left, right in zip(a.children, b.children, strict=True):
        found = _compare(left, right)
        if found:
            return found
    if a.kind == PHRASE and a.item != b.item:
        return -1 if a.item > b.item else 1
    return 0


_BY_ORDER = cmp_to_key(_compare)


def _flat(node: _Node) -> None:
    """Put the operands of nested & into the outer one, so of |; all in order."""
    children: list[_Node] = []
    for child in node.children:
        give_way()
        _flat(child)
        if node.kind in (AND, OR) and child.kind == node.kind:
            children += child.children
        else:
            children.append(child)
    node.children = children


def _sorted(node: _Node) -> None:
    for child in node.children:
        give_way()
        _sorted(child)
    if node.kind in (AND, OR):
        node.children.sort(key=_BY_ORDER)


def _replaced(node: _Node, wanted: _Node, new: _Node | None) -> _Node | None:
    """Return a node with ``wanted`` replaced in it, None where nothing is left."""
    found = _at(node, wanted, new)
    if found is None or found.final or not found.kind:
        return found
    children = [_replaced(child, wanted, new) for child in found.children]
    found.children = [child for child in children if child is not None]
    if not found.children:
        return None
    if len(found.children) == 1 and found.kind != NOT:
        return found.children[0]
    return found


def _at(node: _Node, wanted: _Node, new: _Node | None) -> _Node | None:
    if node.final or node.kind != wanted.kind:
        return node
    if _compare(node, wanted) == 0:
        return None if new is None else _copied(new)
    if not node.kind or not 0 < len(wanted.children) < len(node.children):
        return node
    # some operands of & or |, both sides in order
    matched: set[int] = set()
    at = 0
    for number, child in enumerate(node.children):
        if at == len(wanted.children):
            break
        order = _compare(child, wanted.children[at])
        if order == 0:
            matched.add(number)
            at += 1
        elif order > 0:
            return node
    if at < len(wanted.children):
        return node
    node.children = [child for number, child in enumerate(node.children) if number not in matched]
    if new is not None:
        node.children.append(_copied(new))
    _sorted(node)
    return node


def _copied(new: _Node) -> _Node:
    return _Node(new.item, new.children, True)


def _items(node: _Node, out: list[Item]) -> None:
    """Write a node's items, left operands first; operators over several become nested ones."""
    give_way()
    if not node.kind:
        out.append(node.item)
        return
    if node.kind == NOT:
        _items(node.children[0], out)
        out.append(node.item)
        return
    # nested as PostgreSQL nests them: the first two, then the last one, then those between
    first, second, *others = node.children
    for operand in (*others, second, first):
        _items(operand, out)
    out += (Operator(node.kind),) * len(others)
    out.append(node.item)


def rewrite(query: bytes, target: bytes, substitute: bytes) -> bytes:
    """Return ts_rewrite(query, target, substitute); 54001 for queries nested too deeply."""
    items, wanted, new = tsquery.unpack(query), tsquery.unpack(target), tsquery.unpack(substitute)
    if not items or not wanted:
        return query
    tree, part = _tree(items), _tree(wanted)
    for node in (tree, part):
        _flat(node)
        _sorted(node)
    found = _replaced(tree, part, _tree(new) if new else None)
    if found is None:
        return tsquery.EMPTY
    out: list[Item] = []
    _items(found, out)
    try:
        return tsquery.pack(out)
    finally:
        release(out)
        if len(items) > LARGE:
            release_all([items, tree, part, found])
