"""The GROUP BY check: what a grouped query may use outside its aggregates.

Every expression must be built from grouping expressions, aggregates of this query, and columns of outer ones. A
table whose whole primary key is grouped may be used freely: its other columns depend on the key. Sub-queries
are entered too, where only single columns are matched. GROUPING(...) gets its indexes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.base.errors import SqlError
from planner.bind.expression.funcs import PendingGrouping
from planner.bind.scope import Scope
from planner.query import (
    Aggregate,
    ComposeRow,
    Const,
    Expr,
    GroupingFunc,
    Param,
    QueryBase,
    RelationRange,
    Var,
)
from planner.query.rewrite import replace_children, shift_levels


class GroupCheck:
    """Checks the expressions of one grouped query."""

    def __init__(
        self,
        scope: Scope,
        group: Sequence[Expr],
        sets: tuple[tuple[int, ...], ...] | None,
    ) -> None:
        """``sets``: the grouping sets; a column missing from all of them is never free."""
        self.scope = scope
        self.group = tuple(group)
        self.has_complex = any(not isinstance(expr, Var) for expr in group)
        common = set(range(len(self.group)))
        for one in sets or ():
            common &= set(one)
        keys = {
            (expr.range, expr.attnum)
            for index, expr in enumerate(self.group)
            if isinstance(expr, Var) and expr.level == 0 and index in common
        }
        self._keys = keys
        # a whole row is grouped by as a value of its type, and used in other forms, too; these are carried,
        # so no set may lack it
        rows = [
            expr.arg if isinstance(expr, ComposeRow) and index in common else expr
            for index, expr in enumerate(self.group)
        ]
        self._columns = {(x.range, x.attnum) for x in rows if isinstance(x, Var) and x.level == 0}
        self._dependent: dict[int, bool] = {}
        self._direct = False  # within direct arguments of an ordered-set aggregate

    def check(self, expr: Expr) -> Expr:
        """Return ``expr`` with GROUPING resolved. Raises SqlError 42803 for an ungrouped column."""
        checked: Expr = self._visit(expr, 0)
        return checked

    def _visit(self, node: object, depth: int) -> Any:
        if isinstance(node, Const | Param):
            return node
        if isinstance(node, Var):
            if node.level == depth and node.range >= 0:
                self._var(node, depth)
            return node
        if isinstance(node, PendingGrouping):
            return self._grouping(node, depth) if node.level == depth else node
        if isinstance(node, Aggregate):
            if node.level == depth:
                # direct arguments are evaluated per group
                self._direct = True
                for expr in node.direct:
                    self._visit(expr, depth)
                self._direct = False
                return node
            if node.level > depth:
                return node
        if depth == 0 and self.has_complex and isinstance(node, Expr) and node in self.group:
            return node
        inner = depth + 1 if isinstance(node, QueryBase) else depth
        return replace_children(node, lambda child: self._visit(child, inner))

    def _var(self, node: Var, depth: int) -> None:
        if (node.range, node.attnum) in self._columns or self._depends_on_key(node.range):
            return
        made = self.scope.ranges[node.range]
        name = node.name or next((c.name for c in made.columns if c.attnum == node.attnum), "")
        shown = f"{made.alias}.{name}" if node.attnum != 0 else f"{made.alias}.*"
        if depth:
            message = f'subquery uses ungrouped column "{shown}" from outer query'
        else:
            message = (
                f'column "{shown}" must appear in the GROUP BY clause or be used in an aggregate function'
            )
        detail = "Direct arguments of an ordered-set aggregate must use only grouped columns."
        raise SqlError("42803", message, span=node.span, detail=detail if self._direct else None)

    def _depends_on_key(self, range_: int) -> bool:
        known = self._dependent.get(range_)
        if known is not None:
            return known
        made = self.scope.ranges[range_]
        answer = False
        context = self.scope.context
        if isinstance(made, RelationRange):
            relation = context.catalog.relation_by_oid(made.oid)
            if relation is not None:
                for index in relation.indexes:
                    if index.primary and not index.deferrable:
                        answer = all((range_, attnum) in self._keys for attnum in index.attnums)
                        if answer:
                            context.keys.add((context.view_depth, index.constraint_oid))
        self._dependent[range_] = answer
        return answer

    def _grouping(self, node: PendingGrouping, depth: int) -> GroupingFunc:
        indexes = []
        for arg in [shift_levels(arg, -depth) for arg in node.args]:
            if arg not in self.group:
                raise SqlError(
                    "42803",
                    "arguments to GROUPING must be grouping expressions of the associated query level",
                    span=arg.span,
                )
            indexes.append(self.group.index(arg))
        return GroupingFunc(type=node.type, indexes=tuple(indexes), level=depth, span=node.span)
