"""Ways to relations that are asked for rarely: by their constraints, by who refers to them, by whose
sequences they are, by what they hold.

Each is a dictionary that is made of all relations when first asked for (``before`` empty, ``gone`` nothing),
and then carried from snapshot to snapshot: a copy, with what a change of the catalog took away and brought.
None is ever changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from engine.catalog.indexes import Groups, at_once, grouped
from pgwire.give_way import paced_iter
from planner.catalog import ConstraintDef, RelationDef
from planner.catalog.relation_kinds import STORING
from planner.catalog.statistics import StatisticsDef
from planner.types.facts import FIRST_USER_OID

OwnedConstraint: TypeAlias = tuple[RelationDef, ConstraintDef]


def with_constraints(
    before: Mapping[int, OwnedConstraint], gone: Iterable[RelationDef], made: Iterable[RelationDef]
) -> dict[int, OwnedConstraint]:
    """Return constraints by oid, each with its table."""
    after = dict(before)
    for item in gone:
        for constraint in item.constraints:
            after.pop(constraint.oid, None)
    after.update((c.oid, (item, c)) for item in made for c in item.constraints)
    return after


def _references_of(item: RelationDef) -> Iterator[tuple[int, OwnedConstraint]]:
    for constraint in item.foreign_keys:
        if constraint.foreign is not None:
            yield constraint.foreign.table, (item, constraint)


def with_references(
    before: Mapping[int, tuple[OwnedConstraint, ...]],
    gone: Iterable[RelationDef],
    made: Iterable[RelationDef],
) -> dict[int, tuple[OwnedConstraint, ...]]:
    """Return by table the foreign keys that refer to it, each with the table it belongs to, oldest first."""
    after = dict(before)
    left = [item for item in gone if item.foreign_keys]
    oids = {item.oid for item in left}
    for target in {target for item in left for target, _ in _references_of(item)}:
        after[target] = tuple(pair for pair in after.get(target, ()) if pair[0].oid not in oids)
    grown: dict[int, list[OwnedConstraint]] = {}
    for item in made:
        for target, pair in _references_of(item):
            grown.setdefault(target, []).append(pair)
    for target, pairs in grown.items():
        after[target] = tuple(sorted((*after.get(target, ()), *pairs), key=lambda pair: pair[1].oid))
    return after


def with_partitions(
    before: Groups[int, RelationDef], gone: Iterable[RelationDef], made: Iterable[RelationDef]
) -> Groups[int, RelationDef]:
    """Return by partitioned table its partitions, oldest first."""
    return grouped(before, gone, made, lambda item: item.partition_of or None, at_once)


def with_owned(
    before: Groups[int, RelationDef], gone: Iterable[RelationDef], made: Iterable[RelationDef]
) -> Groups[int, RelationDef]:
    """Return by table the sequences that its columns own, oldest first."""
    return grouped(
        before,
        gone,
        made,
        lambda item: None if item.sequence is None else item.sequence.owner_table or None,
        at_once,
    )


def with_made_types(
    before: Mapping[int, RelationDef], gone: Iterable[RelationDef], made: Iterable[RelationDef]
) -> dict[int, RelationDef]:
    """Return by oid the tables and materialized views with columns of types that users made."""
    after = dict(before)
    for item in gone:
        after.pop(item.oid, None)
    for item in made:
        if item.kind in STORING and any(c.declared.oid >= FIRST_USER_OID for c in item.stored_columns):
            after[item.oid] = item
    return after


OwnedStatistics: TypeAlias = tuple[RelationDef, StatisticsDef]


def with_statistics(derived: dict[object, object], made: Iterable[RelationDef]) -> dict[int, OwnedStatistics]:
    """Return extended statistics by oid, oldest first, each with its table; they are few, and kept in
    ``derived`` of one snapshot.
    """
    known = derived.get(with_statistics)
    if not isinstance(known, dict):
        every = [(one.oid, (item, one)) for item in paced_iter(made) for one in item.statistics]
        known = derived[with_statistics] = dict(sorted(every, key=lambda pair: pair[0]))
    return known
