"""Foreign keys to partitioned tables: the rows that they refer to are in partitions, so these count as
referred to as well.

c ──a──> p (a)          in the catalog: one constraint of c
├─ p1          to changes of p1: the same one, over p1's columns and p1's part of p's unique index
└─ p2 ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.catalog import ConstraintDef, RelationDef
from planner.partitions.bounds import ancestors, column_map, descendants
from planner.partitions.changes import index_of_leaf

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot

Reference = tuple[RelationDef, ConstraintDef]


def references_to(catalog: CatalogSnapshot, relation: RelationDef) -> Sequence[Reference]:
    """Return the foreign keys that refer to rows of a table, oldest first, each with the table it belongs to.

    Those to a partitioned table above it are as if they referred to it alone.
    """
    if not relation.partition_of:
        return catalog.foreign_keys_to(relation.oid)
    kept: dict[Any, Any] = catalog.derived
    key = ("references", relation.oid, relation.version)
    found: Sequence[Reference] | None = kept.get(key)
    if found is None:
        above = references_above(catalog, relation)
        found = sorted([*catalog.foreign_keys_to(relation.oid), *above], key=lambda pair: pair[1].oid)
        kept[key] = found
    return found


def references_above(catalog: CatalogSnapshot, relation: RelationDef) -> list[Reference]:
    """Return of ``references_to`` those that a table has by being a partition."""
    found = []
    for parent in ancestors(relation, catalog):
        for child, constraint in catalog.foreign_keys_to(parent.oid):
            if constraint.foreign is None:
                raise AssertionError(f"constraint {constraint.name} is no foreign key")
            attnums = column_map(parent, relation)
            index = index_of_leaf(constraint.index_oid, relation, catalog)
            foreign = replace(
                constraint.foreign,
                table=relation.oid,
                attnums=tuple(attnums[a] for a in constraint.foreign.attnums),
            )
            found.append((child, replace(constraint, foreign=foreign, index_oid=index.oid)))
    return found


def with_partitions(catalog: CatalogSnapshot, oid: int) -> list[int]:
    """Return a table and those that are its partitions, at all levels."""
    relation = catalog.relation_by_oid(oid)
    below = [] if relation is None else descendants(relation, catalog)
    return [oid, *(partition.oid for partition in below)]


def topmost(catalog: CatalogSnapshot, child: RelationDef, constraint: ConstraintDef) -> Reference:
    """Return the constraint that one of a partition comes from, as messages name it, with its table."""
    while constraint.parent:
        parent = catalog.relation_by_oid(child.partition_of)
        above = (
            None
            if parent is None
            else next((c for c in parent.constraints if c.oid == constraint.parent), None)
        )
        if parent is None or above is None:
            break
        child, constraint = parent, above
    return child, constraint
