"""Which columns a policy of row-level security names: what pg_depend lists of it, and what goes with a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.bind.define.policy import expressions
from planner.bind.stored.named_columns import NONE, column_named
from planner.catalog import Catalog, RelationDef
from planner.catalog.policy import PolicyDef
from planner.query import QueryBase, SubqueryRange, Var
from planner.query.tables import table_range
from planner.query.walk import children


def columns_of(policy: PolicyDef, table: RelationDef, catalog: Catalog) -> set[tuple[int, int]]:
    """Return the columns that a policy names, of its table and of what its sub-selects read: (relation, attnum)."""
    found: set[tuple[int, int]] = set()
    for expr in expressions(policy, table, catalog):
        if expr is not None:
            _collect(expr, [(table_range(table),)], found, catalog)
    found.discard(NONE)
    return found


def _collect(
    node: object, levels: list[Sequence[Any]], found: set[tuple[int, int]], catalog: Catalog
) -> None:
    """Add the columns below ``node``; ``levels``: the ranges of each query around it."""
    if isinstance(node, Var):
        if node.level < len(levels) and node.range >= 0:
            ranges = levels[-1 - node.level]
            if node.range < len(ranges):
                found.add(column_named(ranges[node.range], node.attnum, catalog))
        return
    if isinstance(node, QueryBase):
        levels = [*levels, getattr(node, "ranges", ())]
    if isinstance(node, SubqueryRange) and node.view is not None:
        return  # what a view reads is its own affair
    for child in children(node):
        _collect(child, levels, found, catalog)
