"""ORDER BY, GROUP BY, DISTINCT: which target an item means, and by which operators it is ordered.

SQL92 rules, for items written as one bare word or an integer:

    ORDER BY x     the output column x, else the input column
    GROUP BY x     the input column x, else the output column
    ... 2          the second output column

Anything else is an expression over input columns; if it equals a target, it is that target, else it
becomes a junk target (ORDER BY, DISTINCT ON).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.expression.expr import bind_clause
from planner.bind.scope import Scope, window_call_in
from planner.conversion.casts import coerce_type
from planner.conversion.composite import FindRow
from planner.conversion.order import default_equality, default_less, family_operator, operator_strategies
from planner.conversion.pathways import CastContext
from planner.conversion.resolve import resolve_operator
from planner.facts import TEXT, UNKNOWN
from planner.query import (
    Expr,
    GroupingItem,
    RelabelType,
    SortKey,
    Target,
)
from planner.query.exprs import free_levels
from planner.query.location import location
from planner.types import SqlType
from planner.types.facts import element_of, type_kind

# Bounds of GROUPING SETS, as PostgreSQL's.
MAX_GROUPING_SETS = 4096
MAX_CUBE = 12


# --- operators ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _default_operators(oid: int) -> tuple[int, int]:
    return default_less(oid).proc, default_equality(oid).proc


def sort_operators(oid: int, item: ast.SortItem, span: Span | None, find: FindRow) -> tuple[bool, int, int]:
    """Return (descending, < proc, = proc) for ordering values of a type by an ORDER BY item.

    Raises SqlError 42883 when the type has no order, 42809 when USING names no ordering operator.
    """
    if item.direction == "using":
        return _using(oid, item, span)
    try:
        if type_kind(element_of(oid) or oid) in "cd":
            default_less(oid, None, find)
        lt, eq = _default_operators(oid)
    except SqlError as error:
        raise SqlError(error.sqlstate, error.message, hint=error.hint, span=span) from None
    return item.direction == "desc", lt, eq


def _using(oid: int, item: ast.SortItem, span: Span | None) -> tuple[bool, int, int]:
    name = item.using[-1]
    op = resolve_operator(name, oid, oid, item.span).op
    for family, strategy in operator_strategies(op.oid):
        if strategy in (1, 5):
            lt = family_operator(family, op.left, op.right, 1)
            eq = family_operator(family, op.left, op.right, 3)
            if lt is not None and eq is not None:
                return strategy == 5, lt.proc, eq.proc
    raise SqlError(
        "42809",
        f"operator {name} is not a valid ordering operator",
        hint='Ordering operators must be "<" or ">" members of btree operator families.',
        span=item.span,
    )


# --- finding targets ----------------------------------------------------------------------------


def settle(scope: Scope, targets: list[Target], index: int) -> None:
    """Give a target whose type is still unknown the type text."""
    target = targets[index]
    if target.expr.type.oid == UNKNOWN:
        expr = coerce_type(target.expr, SqlType(TEXT), CastContext.IMPLICIT, scope.context.env)
        targets[index] = replace(target, expr=expr)


def _by_position(node: ast.Constant, targets: Sequence[Target], clause: str) -> int:
    if node.kind != "int" or not isinstance(node.value, int):
        raise SqlError("42601", f"non-integer constant in {clause}", span=node.span)
    position = 0
    for index, target in enumerate(targets):
        if not target.junk:
            position += 1
            if position == node.value:
                return index
    raise SqlError("42P10", f"{clause} position {node.value} is not in select list", span=node.span)


def find_target(scope: Scope, targets: list[Target], node: ast.Expression, clause: str) -> int:
    """Return the index of the target an item means; appends a junk target for a new expression.

    ``clause`` is ORDER BY, GROUP BY or DISTINCT ON. Raises SqlError 42702 (ambiguous output name), 42P10
    (no such position), 42601 (a constant that is no integer).
    """
    if isinstance(node, ast.ColumnRef) and len(node.names) == 1 and not node.star:
        name = node.names[0]
        if not (clause == "GROUP BY" and scope.find_column(name, node.span, local=True) is not None):
            found = -1
            for index, target in enumerate(targets):
                if target.junk or target.name != name:
                    continue
                if found >= 0 and targets[found].expr != target.expr:
                    raise SqlError("42702", f'{clause} "{name}" is ambiguous', span=node.span)
                if found < 0:
                    found = index
            if found >= 0:
                return found
    if isinstance(node, ast.Constant):
        return _by_position(node, targets, clause)
    return find_expression(scope, targets, node, clause)


def find_expression(scope: Scope, targets: list[Target], node: ast.Expression, clause: str) -> int:
    """Return the index of the target equal to an expression, appending a junk one where there is none."""
    expr = bind_clause(scope, node, clause)
    for index, target in enumerate(targets):
        if target.expr == expr:
            return index
    targets.append(Target(expr=expr, name="", junk=True))
    return len(targets) - 1


# --- ORDER BY -----------------------------------------------------------------------------------


def bind_order(scope: Scope, targets: list[Target], items: Sequence[ast.SortItem]) -> tuple[SortKey, ...]:
    """Bind ORDER BY of a SELECT; may append junk targets."""
    keys: list[SortKey] = []
    for item in items:
        index = find_target(scope, targets, item.expr, "ORDER BY")
        settle(scope, targets, index)
        if any(key.target == index for key in keys):
            continue
        keys.append(sort_key(index, targets[index].expr.type.oid, item, scope.context.env.row_type))
    return tuple(keys)


def sort_key(target: int, oid: int, item: ast.SortItem, find: FindRow) -> SortKey:
    """Return the key that orders target ``target`` of type ``oid`` by an item."""
    descending, lt, eq = sort_operators(oid, item, item.expr.span, find)
    nulls_first = item.nulls == "first" if item.nulls else descending
    return SortKey(target=target, descending=descending, nulls_first=nulls_first, lt=lt, eq=eq)


# --- DISTINCT -----------------------------------------------------------------------------------


def bind_distinct(
    scope: Scope,
    targets: list[Target],
    nodes: Sequence[ast.Expression],
    order: Sequence[SortKey],
) -> bool | tuple[int, ...]:
    """Bind DISTINCT (``nodes`` empty) or DISTINCT ON: True, or the target indexes."""
    if not nodes:
        for key in order:
            if targets[key.target].junk:
                raise SqlError(
                    "42P10",
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    span=location(targets[key.target].expr),
                )
        for index, target in enumerate(targets):
            if not target.junk:
                settle(scope, targets, index)
                default_equality(
                    targets[index].expr.type.oid, location(target.expr), scope.context.env.row_type
                )
        return True
    found: list[int] = []
    spans: dict[int, Span | None] = {}
    for node in nodes:
        index = find_target(scope, targets, node, "DISTINCT ON")
        spans.setdefault(index, node.span)
        settle(scope, targets, index)
        if index not in found:
            found.append(index)
        default_equality(targets[index].expr.type.oid, node.span, scope.context.env.row_type)
    skipped = False
    for key in order:
        if key.target in found:
            if skipped:
                raise _distinct_mismatch(spans[key.target])
        else:
            skipped = True
    matched = 0
    for key in order:
        if key.target not in found:
            break
        matched += 1
    if skipped and matched < len(found):
        missing = next(i for i in found if all(key.target != i for key in order))
        raise _distinct_mismatch(spans[missing])
    return tuple(found)


def _distinct_mismatch(span: Span | None) -> SqlError:
    return SqlError(
        "42P10",
        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
        span=span,
    )


# --- GROUP BY -----------------------------------------------------------------------------------


def _check_grouped_target(expr: Expr) -> None:
    """Refuse a target as grouping key that has aggregates (42803) or window functions (42P20): a select list
    admits them.
    """
    spans = [span for level, span in free_levels(expr)[1] if level == 0]
    if spans:
        first = min((span for span in spans if span is not None), default=None)
        raise SqlError("42803", "aggregate functions are not allowed in GROUP BY", span=first)
    window = window_call_in(expr)
    if window is not None:
        raise SqlError("42P20", "window functions are not allowed in GROUP BY", span=window.span)


class Grouping:
    """The grouping expressions being collected, and the grouping sets over their indexes."""

    def __init__(self, scope: Scope, targets: list[Target]) -> None:
        """Collect for one query."""
        self.scope = scope
        self.targets = targets
        self.group: list[Expr] = []
        # the index in ``group``: by that of the target which is grouped by, and by the expression where no target is
        self._of_target: dict[int, int] = {}
        self._others: dict[Expr, int] = {}

    def index(self, node: ast.Expression) -> int:
        """Return the index in ``group`` of one grouping item."""
        before = len(self.targets)
        position = find_target(self.scope, self.targets, node, "GROUP BY")
        settle(self.scope, self.targets, position)
        expr = self.targets[position].expr
        if len(self.targets) > before:
            self.targets.pop()  # a new expression is a grouping key, no target
            known = self._others.setdefault(expr, len(self.group))
        else:
            _check_grouped_target(expr)
            known = self._of_target.setdefault(position, len(self.group))
        default_equality(expr.type.oid, node.span or expr.span, self.scope.context.env.row_type)
        if known == len(self.group):
            self.group.append(expr)
        return known

    def tell_apart(self) -> None:
        """Have targets that are equal and grouped by one by one differ, since grouping sets may have one of
        them and not the other.

        The first keeps its expression, which is what others that are equal to it mean.
        """
        seen: dict[Expr, int] = {}
        for position, index in sorted(self._of_target.items()):
            expr = self.group[index]
            times = seen[expr] = seen.get(expr, -1) + 1
            for _ in range(times):
                expr = RelabelType(type=expr.type, arg=expr, span=expr.span)
            self.group[index] = expr
            if times:
                self.targets[position] = replace(self.targets[position], expr=expr)

    def items(self, node: ast.Expression | ast.GroupingSet) -> list[int]:
        """Return the indexes of one element of ROLLUP or CUBE: an expression or a (list)."""
        if isinstance(node, ast.Row) and not node.explicit:
            return [index for item in node.items for index in self.items(item)]
        if isinstance(node, ast.GroupingSet):
            raise AssertionError("a grouping set stands within ROLLUP or CUBE")
        return [self.index(node)]

    def read(self, node: ast.Expression | ast.GroupingSet) -> GroupingItem:
        """Return one GROUP BY item; GROUPING SETS in each other are one. Raises SqlError 54011."""
        if not isinstance(node, ast.GroupingSet):
            return GroupingItem(kind="simple", members=tuple(dict.fromkeys(self.items(node))))
        items: list[GroupingItem] = []
        for one in node.items:
            item = self.read(one)
            items += item.items if node.kind == item.kind == "sets" else [item]
        if node.kind == "cube" and len(items) > MAX_CUBE:
            raise SqlError("54011", f"CUBE is limited to {MAX_CUBE} elements", span=node.span)
        return GroupingItem(kind=node.kind, items=tuple(items))


def _sets(item: GroupingItem) -> list[tuple[int, ...]]:
    """Return the grouping sets one GROUP BY item stands for."""
    if item.kind == "simple":
        return [item.members]
    if item.kind == "empty":
        return [()]
    if item.kind == "sets":
        return [one for inner in item.items for one in _sets(inner)]
    parts = [inner.members for inner in item.items]
    if item.kind == "rollup":
        return [_flat(parts[:count]) for count in range(len(parts), -1, -1)]
    found = []
    for mask in range(2 ** len(parts) - 1, -1, -1):
        found.append(_flat([p for i, p in enumerate(parts) if mask >> i & 1]))
    return found


def _shown(written: Sequence[GroupingItem]) -> tuple[GroupingItem, ...]:
    """Return the items as PostgreSQL keeps them: of plain columns each once and by itself, no empty set
    beside others.
    """
    found: list[GroupingItem] = []
    seen: set[int] = set()
    for item in written:
        if item.kind == "simple":
            new = [member for member in item.members if member not in seen]
            seen.update(new)
            found += [GroupingItem(kind="simple", members=(member,)) for member in new]
        elif item.kind != "empty":
            found.append(item)
    return tuple(found) or (GroupingItem(kind="empty"),)


def _flat(parts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(parts)))


def bind_group(
    scope: Scope, targets: list[Target], node: ast.Select
) -> tuple[tuple[Expr, ...], tuple[tuple[int, ...], ...] | None, tuple[GroupingItem, ...]]:
    """Bind GROUP BY: the distinct grouping expressions, the grouping sets (None for a plain list), and what
    these were written as.
    """
    grouping = Grouping(scope, targets)
    if not any(isinstance(item, ast.GroupingSet) for item in node.group):
        for item in node.group:
            if isinstance(item, ast.GroupingSet):
                continue
            grouping.items(item)
        return tuple(dict.fromkeys(grouping.group)), None, ()
    combined: list[tuple[int, ...]] = [()]
    written: list[GroupingItem] = []
    for item in node.group:
        written.append(grouping.read(item))
        options = _sets(written[-1])
        if len(combined) * len(options) > MAX_GROUPING_SETS:
            raise SqlError(
                "54001",
                f"too many grouping sets present (maximum {MAX_GROUPING_SETS})",
                span=item.span,
            )
        combined = [tuple(dict.fromkeys((*left, *right))) for left in combined for right in options]
    if node.group_distinct:
        unique: dict[frozenset[int], tuple[int, ...]] = {}
        for one in combined:
            unique.setdefault(frozenset(one), one)
        combined = list(unique.values())
    grouping.tell_apart()
    shown = _shown(written)
    if all(item.kind == "simple" for item in shown):  # beside an empty set that means nothing
        return tuple(grouping.group), None, ()
    return tuple(grouping.group), tuple(combined), shown
