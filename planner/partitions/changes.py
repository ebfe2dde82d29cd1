"""INSERT into a partitioned table as each of its partitions has to do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.base.errors import SqlError
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.partitions.bounds import column_map
from planner.query import Expr, Insert, OnConflict, QueryBase, RowCheck, Var
from planner.query.rewrite import replace_children


def insert_into(statement: Insert, parent: RelationDef, leaf: RelationDef, catalog: Catalog) -> Insert:
    """Return an INSERT into ``parent`` as one into a partition, for rows that are complete; RETURNING stays
    with the parent.
    """
    attnums = column_map(parent, leaf)
    conflict = statement.on_conflict
    if conflict is not None:
        conflict = _conflict(conflict, parent, leaf, attnums, catalog)
    return replace(
        statement,
        table=leaf.oid,
        attnums=tuple(attnums[a] for a in statement.attnums),
        source=None,
        defaults=(),
        on_conflict=conflict,
        returning=(),
        columns=(),
        through=None,
        row_checks=row_checks_of(statement.row_checks, parent, leaf),
    )


def row_checks_of(checks: Sequence[RowCheck], parent: RelationDef, leaf: RelationDef) -> tuple[RowCheck, ...]:
    """Return what row-level security asks of rows of ``parent`` as it is asked of rows of a partition."""
    attnums = column_map(parent, leaf) if checks else {}
    return tuple(replace(check, condition=over_columns(check.condition, attnums)) for check in checks)


def _conflict(
    clause: OnConflict, parent: RelationDef, leaf: RelationDef, attnums: dict[int, int], catalog: Catalog
) -> OnConflict:
    made = replace(
        clause,
        arbiters=tuple(index_of_leaf(oid, leaf, catalog).oid for oid in clause.arbiters),
        assignments=tuple((attnums[a], _over(expr, attnums, 0)) for a, expr in clause.assignments),
    )
    return made if clause.where is None else replace(made, where=_over(clause.where, attnums, 0))


def index_of_leaf(oid: int, leaf: RelationDef, catalog: Catalog) -> IndexDef:
    """Return the part that the index ``oid`` of a partitioned table has in a table below. Raises SqlError
    42P10 where it has none.
    """
    for index in leaf.indexes:
        above = index.parent
        while above and above != oid:
            above = _parent_of(above, catalog)
        if above == oid:
            return index
    raise SqlError(
        "42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification"
    )


def _parent_of(oid: int, catalog: Catalog) -> int:
    index = catalog.relation_by_oid(oid)
    table = None if index is None else catalog.relation_by_oid(index.table_oid)
    if table is None:
        return 0
    return next((i.parent for i in table.indexes if i.oid == oid), 0)


def over_columns(expr: Expr, attnums: dict[int, int]) -> Expr:
    """Return an expression over a partitioned table's columns as one over a partition's."""
    made: Expr = _over(expr, attnums, 0)
    return made


def _over(node: object, attnums: dict[int, int], depth: int) -> Any:
    """Return an expression over the parent's columns (ranges 0 and 1) as one over the partition's."""
    if isinstance(node, Var):
        if node.level == depth and node.range in (0, 1) and node.attnum > 0:
            return replace(node, attnum=attnums[node.attnum])
        return node
    inside = depth + isinstance(node, QueryBase)
    return replace_children(node, lambda child: _over(child, attnums, inside))
