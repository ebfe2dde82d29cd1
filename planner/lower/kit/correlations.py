"""Which sub-queries that read the query around them an engine unnests by itself, and rightly; others are
written anew (``unnest``) or refused.

Spark unnests sub-queries whose references to the query around stand in WHERE, in the select list or in
conditions of joins, under aggregates, LIMIT, UNION, window functions. It does not if they stand inside an
aggregate or a window, in VALUES, in a WITH item or in a sub-select within, and takes correlated sub-selects
in conditions of joins only exceptionally. In conditions of outer joins it takes them and answers wrongly.

DuckDB unnests nearly everything, and loses rows, invents some or fails where references stand below set
operations, grouping sets, outer joins of both sides or of the right one, windows, or more than one level in.
So only what one SELECT reads by itself is left to it. Random queries beside PostgreSQL
(tests/differential/test_nested.py) are the proof of what is left.
"""

from __future__ import annotations

from typing import Final, Protocol

from planner import query as q
from planner.facts import facts
from planner.lower.kit.from_items import ranges_in, ranges_of
from planner.query.walk import children


def is_equality(link: q.SubLink) -> bool:
    """Return whether a sub-select is compared by ``=`` in one column."""
    return len(link.lefts) == 1 and not link.row_kind and facts().operators[link.ops[0]].name == "="


def is_plain_in(expr: q.Expr) -> bool:
    """Return whether ``expr`` is ``x = ANY (sub-select)``, whose negation is a condition in both engines too."""
    return isinstance(expr, q.SubLink) and expr.kind is q.SubLinkKind.ANY and is_equality(expr)


class Correlations(Protocol):
    """One engine's."""

    named: str
    """What it refuses, for the message of 0A000."""
    is_asked_by_exists: bool
    """Whether comparisons with ANY and ALL are to be EXISTS in the tree, in conditions of joins, too; Spark
    takes EXISTS in fewer places."""

    def refuses(self, query: q.QueryExpr) -> bool:
        """Return whether a sub-query is not taken for where it reads the query around it."""

    def takes_in_join(self, join: q.Join, term: q.Expr, link: q.SubLink) -> bool:
        """Return whether a correlated sub-select of a term of a join's condition is taken."""

    def refuses_place(self, select: q.Select) -> bool:
        """Return whether a query has LATERAL items where they are not taken, whatever they are."""


def _is_outward(node: object, depth: int) -> bool:
    return (
        isinstance(node, q.Var | q.Aggregate) and node.level >= depth > 0 and getattr(node, "range", 0) >= 0
    )


def _is_outer_join(node: object) -> bool:
    return isinstance(node, q.Join) and node.kind is not q.JoinKind.INNER


class _Spark:
    is_asked_by_exists = False
    named = (
        "a sub-query that reads the query around it inside an aggregate, a window, VALUES, WITH, an outer join or a "
        "sub-select of its own"
    )

    def refuses(self, query: q.QueryExpr) -> bool:
        return self._refuses(query, 0, False)

    def _refuses(self, node: object, depth: int, inside: bool) -> bool:
        if isinstance(node, q.Var | q.Aggregate) and depth and node.level == depth:
            return inside
        if (
            isinstance(node, q.Select)
            and depth
            and any(self._refuses(e, depth + 1, True) for e in node.group)
        ):
            return True
        within = inside or (
            depth > 0
            and isinstance(node, q.SubLink | q.Aggregate | q.WindowFunc | q.Window | q.Cte | q.Values)
        )
        if (isinstance(node, q.Values) and not depth) or _is_outer_join(node):
            within = True
        inner = depth + isinstance(node, q.QueryBase)
        return any(self._refuses(child, inner, within) for child in children(node))

    def takes_in_join(self, join: q.Join, term: q.Expr, link: q.SubLink) -> bool:
        """EXISTS, of the side that is joined."""
        side = {q.JoinKind.LEFT: join.right, q.JoinKind.RIGHT: join.left}.get(join.kind)
        if (
            term is not link
            or link.kind is not q.SubLinkKind.EXISTS
            or side is None
            or self.refuses(link.query)
        ):
            return False
        return ranges_of(link.query) <= ranges_in(side)

    def refuses_place(self, select: q.Select) -> bool:
        return False


class _DuckDB:
    is_asked_by_exists = True
    named = "a sub-query that reads the query around it from below a set operation, grouping sets, a window, an outer join or another sub-query"

    def refuses(self, query: q.QueryExpr) -> bool:
        return self._refuses(query, 0, False)

    def _refuses(self, node: object, depth: int, inside: bool) -> bool:
        if _is_outward(node, depth):
            return inside
        if isinstance(node, q.QueryBase):
            inside = inside or depth > 0 or not isinstance(node, q.Select) or _is_delicate(node)
            depth += 1
        return any(self._refuses(child, depth, inside) for child in children(node))

    def takes_in_join(self, join: q.Join, term: q.Expr, link: q.SubLink) -> bool:
        return join.kind in (q.JoinKind.INNER, q.JoinKind.LEFT) and not self.refuses(link.query)

    def refuses_place(self, select: q.Select) -> bool:
        reading = {
            n
            for n, r in enumerate(select.ranges)
            if isinstance(r, q.SubqueryRange) and r.lateral and ranges_of(r)
        }
        return any(_misplaced(item, select, reading) for item in select.from_ if isinstance(item, q.Join))


def _is_delicate(select: q.Select) -> bool:
    return bool(select.grouping_sets is not None or select.windows or any(map(_is_outer, select.from_)))


def _is_outer(item: q.FromItem) -> bool:
    if isinstance(item, q.RangeRef):
        return False
    return item.kind in (q.JoinKind.FULL, q.JoinKind.RIGHT) or _is_outer(item.left) or _is_outer(item.right)


def _misplaced(join: q.Join, select: q.Select, reading: set[int]) -> bool:
    """Return whether a LATERAL item that reads others is not the right side of a join with what it reads."""
    for side in (join.left, join.right):
        if isinstance(side, q.Join):
            if _misplaced(side, select, reading):
                return True
        elif side.range in reading and not (
            side is join.right
            and join.kind in (q.JoinKind.INNER, q.JoinKind.LEFT)
            and ranges_of(select.ranges[side.range]) <= ranges_in(join.left)
        ):
            return True
    return False


SPARK: Final[Correlations] = _Spark()
DUCKDB: Final[Correlations] = _DuckDB()
