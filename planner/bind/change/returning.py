"""RETURNING of UPDATE and DELETE: what cannot be computed from the changed row alone is computed by the source.

    UPDATE t SET b = s.z FROM s ... RETURNING t.b, s.y, (SELECT max(k) FROM q WHERE q.id = t.b)
      source    row id, old columns, new b, extra_1 = s.y, extra_2 = (SELECT ... WHERE q.id = <new b>)
      returning Var 0.b, Var 1.1, Var 1.2

Extras are columns of other ranges, a deleted row's xmin, and whole sub-selects. A sub-select sees the statement's snapshot, as the source
does; where it names an assigned column it gets the expression that was assigned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.query import XMIN, Expr, QueryBase, SubLink, Target, Var
from planner.query.rewrite import replace_children, shift_levels
from planner.statements.classify import is_volatile


def split_returning(
    targets: tuple[Target, ...], assigned: Mapping[int, Expr], *, final: bool = True, deletes: bool = False
) -> tuple[tuple[Target, ...], list[Expr]]:
    """Return RETURNING over range 0 (the row) and range 1 (the extras), and the extra outputs of the source.

    ``assigned``: attnum -> new value of an UPDATE, over the source's ranges; empty for DELETE. Not ``final``:
    what is stored may be something else, and sub-selects that name the row have to wait for it. ``deletes``: the row
    is as it was, so that its xmin is the source's to tell.
    """
    split = _Split(assigned, final, deletes)
    return tuple(map(split.moved, targets)), split.extras


class _StaysError(Exception):
    """The sub-select needs the changed row itself."""


class _Split:
    """One RETURNING; ``extras``: what was found for the source to compute."""

    __slots__ = ("_assigned", "_deletes", "_final", "extras")

    def __init__(self, assigned: Mapping[int, Expr], final: bool, deletes: bool) -> None:
        self._deletes = deletes
        self._assigned = assigned
        self._final = final
        self.extras: list[Expr] = []

    def moved(self, node: object) -> Any:
        """Return a node with Vars in place of the extras."""
        if isinstance(node, Var) and node.level == 0:
            if node.range > 0 or (self._deletes and node.attnum == XMIN):
                return replace(self._extra(node), name=node.name)
            return node
        if isinstance(node, SubLink):
            try:
                return self._extra(self._over_source(node, 0))
            except _StaysError:
                return replace_children(node, self.moved)  # its parts may be extras
        return replace_children(node, self.moved)

    def _extra(self, expr: Expr) -> Var:
        if expr not in self.extras:
            self.extras.append(expr)
        return Var(type=expr.type, range=1, attnum=self.extras.index(expr) + 1, span=expr.span)

    def _over_source(self, node: object, depth: int) -> Any:
        """Return (a part of) a sub-select with new values put in for assigned columns; raises _StaysError
        where that cannot be done.
        """
        if isinstance(node, Var) and node.level == depth and node.range == 0 and self._assigned:
            if node.attnum <= 0 or not self._final:
                raise _StaysError
            value = self._assigned.get(node.attnum)
            if value is None:
                return node
            if is_volatile(value):
                raise _StaysError
            return shift_levels(value, depth)
        inner = depth + 1 if isinstance(node, QueryBase) else depth
        return replace_children(node, lambda child: self._over_source(child, inner))
