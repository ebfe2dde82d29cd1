"""RETURNING of UPDATE and DELETE: what cannot be computed from the changed row alone is computed by the source.

    UPDATE t SET b = s.z FROM s ... RETURNING t.b, s.y, (SELECT max(k) FROM q WHERE q.id = t.b)
      source    row id, old columns, new b, extra_1 = s.y, extra_2 = (SELECT ... WHERE q.id = <new b>)
      returning Var 0.b, Var 1.1, Var 1.2

Extras are columns of other ranges and whole sub-selects. A sub-select sees the statement's snapshot, as the source
does; where it names an assigned column it gets the expression that was assigned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.classify import is_volatile
from planner.query import Expr, QueryBase, SubLink, Target, Var
from planner.rewrite import replace_children, shift_levels


def split_returning(
    targets: tuple[Target, ...], assigned: Mapping[int, Expr], *, final: bool = True
) -> tuple[tuple[Target, ...], list[Expr]]:
    """Return RETURNING over range 0 (the row) and range 1 (the extras), and the extra outputs of the source.

    ``assigned``: attnum -> new value of an UPDATE, over the source's ranges; empty for DELETE. Not ``final``: what is stored may be
    something else, and sub-selects that name the row have to wait for it.
    """
    extras: list[Expr] = []

    def extra(expr: Expr) -> Var:
        if expr not in extras:
            extras.append(expr)
        return Var(type=expr.type, range=1, attnum=extras.index(expr) + 1, span=expr.span)

    def moved(node: Any) -> Any:
        if isinstance(node, Var) and node.level == 0 and node.range > 0:
            return replace(extra(node), name=node.name)
        if isinstance(node, SubLink):
            computed = _over_source(node, assigned, final)
            if computed is not None:
                return extra(computed)
        return replace_children(node, moved)

    return tuple(moved(target) for target in targets), extras


class _StaysError(Exception):
    """The sub-select needs the changed row itself."""


def _over_source(link: SubLink, assigned: Mapping[int, Expr], final: bool) -> SubLink | None:
    """Return a sub-select with new values put in for assigned columns; None when that cannot be done."""

    def visit(node: Any, depth: int) -> Any:
        if isinstance(node, Var) and node.level == depth and node.range == 0 and assigned:
            if node.attnum <= 0 or not final:
                raise _StaysError
            value = assigned.get(node.attnum)
            if value is None:
                return node
            if is_volatile(value):
                raise _StaysError
            return shift_levels(value, depth)
        inner = depth + 1 if isinstance(node, QueryBase) else depth
        return replace_children(node, lambda child: visit(child, inner))

    try:
        found: SubLink = visit(link, 0)
    except _StaysError:
        return None
    return found
