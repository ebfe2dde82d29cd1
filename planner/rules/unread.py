"""Columns of sub-queries that nobody reads are not computed.

    SELECT x.a FROM (SELECT a, (SELECT b FROM u) AS b FROM t) x
    SELECT x.a FROM (SELECT a, NULL           AS b FROM t) x

PostgreSQL does the same (``remove_unused_subquery_outputs``), and it can be seen: a sub-select of two rows is
an error (21000) only where its value is wanted. Of what EXISTS selects nothing is. What stays, as there: what
orders the sub-query or tells its rows apart, volatile functions, and those that give rows. Columns keep their
places and types, so nothing around changes.

One pass from outside in. Of a query the WITH items come last, before them the ranges, both backwards, as only
what is around and later items read them (LATERAL), so whatever is looked at has already lost what nobody
reads. A WITH item counts where PostgreSQL takes it for a sub-query: referred to once, or NOT MATERIALIZED.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from planner.query import (
    WHOLE_ROW,
    Aggregate,
    Const,
    Cte,
    CteRange,
    FuncExpr,
    QueryBase,
    QueryExpr,
    RangeColumn,
    Select,
    SetOp,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Target,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.statements.classify import is_volatile

_Q = TypeVar("_Q", bound=QueryBase)


@dataclass(slots=True)
class _Level:
    """What is read of one query: the columns (attnums) of each range, and those of each reference to its WITH items."""

    columns: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    ctes: defaultdict[str, list[set[int]]] = field(default_factory=lambda: defaultdict(list))


def without_unread(query: QueryExpr) -> QueryExpr:
    """Return ``query`` with NULL for what its sub-queries in FROM compute in vain."""
    if not any(isinstance(node, SubqueryRange | CteRange) for node in walk(query)):
        return query
    pruned: QueryExpr = _visit(query, [])
    return pruned


def _visit(node: object, levels: list[_Level]) -> Any:
    """Return ``node`` without what is not read, and note in ``levels`` (innermost last) what it reads."""
    if isinstance(node, Var):
        if node.range >= 0 and node.level < len(levels):
            levels[-1 - node.level].columns[node.range].add(node.attnum)
        return node
    if isinstance(node, QueryBase):
        return _query(node, [*levels, _Level()])
    if isinstance(node, SubLink) and node.kind is SubLinkKind.EXISTS:
        node = replace(node, query=rows_alone(node.query))
    return replace_children(node, lambda child: _visit(child, levels))


def rows_alone(query: QueryExpr) -> QueryExpr:
    """Return what EXISTS asks of a query: whether it has rows, whatever these are (PostgreSQL's
    ``simplify_EXISTS_query``).
    """
    if not isinstance(query, Select) or query.grouping_sets is not None or query.having is not None:
        return query
    if query.windows or query.row_marks or query.offset is not None or (query.grouped and not query.group):
        return query
    limit = query.limit.value if isinstance(query.limit, Const) else None
    if query.limit is not None and not (isinstance(limit, int) and limit > 0):
        return query
    for target in query.targets:
        for node in walk(target.expr):
            if isinstance(node, Aggregate) or (isinstance(node, FuncExpr) and node.returns_set):
                return query
    targets = tuple(_nothing(target) for target in query.targets if not target.junk)
    return replace(query, targets=targets, grouped=False, group=(), distinct=False, order=())


def _query(query: _Q, levels: list[_Level]) -> _Q:
    own = levels[-1]
    ranges = list(query.ranges) if isinstance(query, Select) else []
    bare = replace(query, ranges=(), ctes=()) if isinstance(query, Select) else replace(query, ctes=())
    bare = replace_children(bare, lambda child: _visit(child, levels))
    for mark in query.row_marks if isinstance(query, Select) else ():
        own.columns[mark.range].update(mark.row or ())
    for index in range(len(ranges) - 1, -1, -1):
        made, read = ranges[index], own.columns[index]
        if isinstance(made, CteRange) and made.level < len(levels):
            levels[-1 - made.level].ctes[made.name].append(read)
        if isinstance(made, SubqueryRange):
            made = replace(made, query=_forget(made.query, _unread(made.columns, read)))
        ranges[index] = replace_children(made, lambda child: _visit(child, levels))
    ctes = list(query.ctes)
    for index in range(len(ctes) - 1, -1, -1):
        item = ctes[index]
        columns = [RangeColumn(name=c.name, type=c.type, attnum=n) for n, c in enumerate(item.columns, 1)]
        unread = _unread(columns, set().union(*own.ctes[item.name]))
        if unread and _is_sub_query(item, len(own.ctes[item.name])):
            item = replace(item, query=_forget(item.query, unread))
        ctes[index] = replace_children(item, lambda child: _visit(child, levels))
    if isinstance(bare, Select):
        return replace(bare, ranges=tuple(ranges), ctes=tuple(ctes))
    return replace(bare, ctes=tuple(ctes))


def _is_sub_query(item: Cte, references: int) -> bool:
    if item.recursive or item.materialized or not references:
        return False
    return (references == 1 or item.materialized is False) and not is_volatile(item.query)


def _unread(columns: Iterable[RangeColumn], read: set[int]) -> set[int]:
    """Return the places (from 0) of the columns that nobody reads."""
    if WHOLE_ROW in read:
        return set()
    return {place for place, column in enumerate(columns) if column.attnum not in read}


def _forget(query: QueryExpr, unread: set[int]) -> QueryExpr:
    """Return a query without the values of its output columns ``unread`` (from 0)."""
    if isinstance(query, SetOp) and query.op == "union" and query.all:
        unread = unread - {key.target for key in query.order}
        left, right = _forget(query.left, unread), _forget(query.right, unread)
        return (
            query if left is query.left and right is query.right else replace(query, left=left, right=right)
        )
    if not isinstance(query, Select) or query.distinct is True:
        return query
    kept = {key.target for key in query.order} | set(query.distinct or ())
    targets: list[Target] = []
    output = -1
    for index, target in enumerate(query.targets):
        output += not target.junk
        vain = output in unread and index not in kept and not target.junk
        targets.append(_nothing(target) if vain and _may_go(target, query) else target)
    return query if targets == list(query.targets) else replace(query, targets=tuple(targets))


def _may_go(target: Target, query: Select) -> bool:
    if target.expr in query.group:
        return False
    makes_rows = any(isinstance(node, FuncExpr) and node.returns_set for node in walk(target.expr))
    return not (makes_rows or is_volatile(target.expr))


def _nothing(target: Target) -> Target:
    if isinstance(target.expr, Const):
        return target
    return replace(target, expr=Const(type=target.expr.type, value=None))
