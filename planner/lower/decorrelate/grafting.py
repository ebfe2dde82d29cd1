"""FROM items that read a domain (``dependent``) from places where it cannot stand beside them get copies of
it, joined by equality.

d, (L(d) JOIN R ON c(d))            (d JOIN L(d)) JOIN R ON c(d)                                   leftmost: no copy
d, (L(d) RIGHT JOIN R ON c(d))      d JOIN ((d1, L(d1)) RIGHT JOIN (d2, R) ON d1 = d2 AND c(d2)) ON d = d2
d, (L(d) FULL JOIN R ON c(d))       d JOIN ((d1, L(d1)) FULL JOIN (d2, R) ON d1 = d2 AND c(d1)) ON d = coalesce(d1, d2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from planner import query as q
from planner.lower.kit.from_items import conjunction, crossed, ranges_in, ranges_of, same, terms

Keys = tuple[q.Expr, ...]
"""A domain's columns, as the query that has it in FROM reads them."""


class Grafting:
    """The joins of one query's FROM list.

    Args:
        ranges: the query's; grows by the copies, and what reads the domain is replaced. copy: the domain as a
        range of the query. own: returns a node with the domain's columns, as they are given, for what they
        hold; the node itself where it reads none.
    """

    def __init__(self, ranges: list[q.Range], copy: q.SubqueryRange, own: Callable[[Any, Keys], Any]) -> None:
        self.ranges = ranges
        self._copy = copy
        self._own = own

    def keys(self, index: int) -> Keys:
        """Return the columns of the domain where it is range ``index``."""
        return tuple(
            q.Var(type=c.type, range=index, attnum=c.attnum, name=c.name) for c in self._copy.columns
        )

    def reads(self, item: q.FromItem) -> bool:
        """Return whether a FROM item reads the domain: one of its ranges, or a condition."""
        if isinstance(item, q.RangeRef):
            return self._is_read(self.ranges[item.range])
        return self._is_read(item.on) or self.reads(item.left) or self.reads(item.right)

    def _is_read(self, node: object) -> bool:
        return node is not None and self._own(node, self.keys(0)) is not node

    # -- without a copy ------------------------------------------------------------------------------

    def is_spine(self, item: q.FromItem, before: frozenset[int]) -> bool:
        """Return whether all in an item that reads the domain sees it where it stands leftmost, behind the
        ranges ``before``.
        """
        if isinstance(item, q.RangeRef) or not self.reads(item):
            return True
        if item.kind in (q.JoinKind.INNER, q.JoinKind.LEFT):
            right = isinstance(item.right, q.RangeRef) or not self.reads(item.right)
            return right and self.is_spine(item.left, before)
        if item.kind is q.JoinKind.RIGHT and not self.reads(item.left):
            behind = any(ranges_of(self.ranges[n]) & before for n in ranges_in(item.left))
            return not behind and self.is_spine(item.right, before)
        return False

    def on_spine(self, before: q.FromItem, item: q.FromItem, keys: Keys) -> q.FromItem:
        """Return ``before``, which has the domain, joined with an item that ``is_spine``."""
        if isinstance(item, q.RangeRef):
            self._put(item.range, keys)
            return crossed(before, item)
        if not self.reads(item):
            return crossed(before, item)
        on = None if item.on is None else self._own(item.on, keys)
        if item.kind is q.JoinKind.RIGHT:
            return replace(item, right=self.on_spine(before, item.right, keys), on=on)
        left = self.on_spine(before, item.left, keys)
        if isinstance(item.right, q.RangeRef):
            self._put(item.right.range, keys)
        return replace(item, left=left, on=on)

    def beside(self, item: q.FromItem, keys: Keys) -> q.FromItem:
        """Return an item of the list that has the domain before it: a range, or a join that reads none."""
        if isinstance(item, q.RangeRef):
            self._put(item.range, keys)
        return item

    def _put(self, index: int, keys: Keys) -> None:
        """Have a range read the domain's columns."""
        range_ = self.ranges[index]
        made = self._own(range_, keys)
        if made is not range_ and isinstance(made, q.SubqueryRange | q.FunctionRange):
            made = replace(made, lateral=True)
        self.ranges[index] = made

    # -- with copies ---------------------------------------------------------------------------------

    def copied(self, item: q.FromItem) -> tuple[q.FromItem, Keys | None]:
        """Return an item with copies of the domain where it reads it, and the columns by which its rows
        belong to the domain's.

        None: it reads none.
        """
        if isinstance(item, q.RangeRef):
            if not self.reads(item):
                return item, None
            first, keys = self._new()
            self._put(item.range, keys)
            return crossed(first, item), keys
        left, ours = self.copied(item.left)
        right, theirs = item.right, None
        if isinstance(right, q.RangeRef) and item.kind in (q.JoinKind.INNER, q.JoinKind.LEFT):
            if self.reads(right):
                left, ours = self._with(left, ours)
                self._put(right.range, ours)
        else:
            right, theirs = self.copied(right)
        if ours is None and theirs is None and not self._is_read(item.on):
            return replace(item, left=left, right=right), None
        if item.kind in (q.JoinKind.LEFT, q.JoinKind.FULL) or (ours is None and theirs is None):
            left, ours = self._with(left, ours)
        if item.kind in (q.JoinKind.RIGHT, q.JoinKind.FULL):
            right, theirs = self._with(right, theirs)
        either = ours if ours is not None else theirs
        if either is None:
            raise AssertionError("a range is copied to neither side")
        on = [self._own(term, either) for term in terms(item.on)]
        keys = theirs if item.kind is q.JoinKind.RIGHT and theirs is not None else either
        if ours is not None and theirs is not None:
            pairs = list(zip(ours, theirs, strict=True))
            on = [*(same(x, y) for x, y in pairs), *on]
            if item.kind is q.JoinKind.FULL:
                keys = tuple(q.CoalesceExpr(type=x.type, args=pair) for pair in pairs for x in pair[:1])
        return replace(item, left=left, right=right, on=conjunction(on)), keys

    def _with(self, item: q.FromItem, keys: Keys | None) -> tuple[q.FromItem, Keys]:
        if keys is not None:
            return item, keys
        first, made = self._new()
        return crossed(first, item), made

    def _new(self) -> tuple[q.RangeRef, Keys]:
        index = len(self.ranges)
        self.ranges.append(self._copy)
        return q.RangeRef(range=index), self.keys(index)


def equalities(left: Sequence[q.Expr], right: Sequence[q.Expr]) -> list[q.Expr]:
    """Return ``IS NOT DISTINCT FROM`` of each pair."""
    return [same(x, y) for x, y in zip(left, right, strict=True)]
