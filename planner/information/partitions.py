"""What a session asks about partitions: the tree below a table or index, its root, and whether a hash
partition has a row.

A partitioned index is a tree as its table is; both are told alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.conversion.pathways import is_binary_coercible
from planner.evaluate.calls import SpreadTypes
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.partitions.bounds import divided
from planner.types.facts import format_type


def _above(session: EvalSession, relation: RelationDef) -> int:
    """Return the oid of the table or index that this is a part of, 0 for none."""
    if relation.kind != "i":
        return relation.partition_of
    table = session.catalog.relation_by_oid(relation.table_oid)
    return 0 if table is None else next((i.parent for i in table.every_index if i.oid == relation.oid), 0)


def _below(session: EvalSession, relation: RelationDef) -> list[RelationDef]:
    catalog = session.catalog
    if relation.kind != "i":
        return list(catalog.partitions_of(relation.oid))
    found = []
    for table in catalog.partitions_of(relation.table_oid):
        oid = next((i.oid for i in table.every_index if i.parent == relation.oid), 0)
        index = catalog.relation_by_oid(oid)
        if index is not None:
            found.append(index)
    return found


def _divided(session: EvalSession, relation: RelationDef) -> bool:
    """Tell whether something is partitioned, or an index of what is."""
    if relation.kind != "i":
        return relation.kind == "p"
    table = session.catalog.relation_by_oid(relation.table_oid)
    return table is not None and table.kind == "p"


def _belongs(session: EvalSession, oid: int) -> RelationDef | None:
    """Return a relation that is partitioned or a partition, None for any other."""
    relation = session.catalog.relation_by_oid(oid)
    if relation is None or not (_divided(session, relation) or _above(session, relation)):
        return None
    return relation


def tree(session: EvalSession, oid: int) -> Iterator[tuple[Any, ...]]:
    """SQL's ``pg_partition_tree``: relid, parentrelid, isleaf, level, the root first, then level by level."""
    root = _belongs(session, oid)
    level = 0
    todo = [] if root is None else [root]
    while todo:
        after: list[RelationDef] = []
        for relation in todo:
            above = _above(session, relation) or None
            yield relation.oid, above, not _divided(session, relation), level
            after += _below(session, relation)
        todo, level = after, level + 1


def ancestors(session: EvalSession, oid: int) -> Iterator[int]:
    """SQL's ``pg_partition_ancestors``: the relation and those above it."""
    relation = _belongs(session, oid)
    while relation is not None:
        yield relation.oid
        relation = session.catalog.relation_by_oid(_above(session, relation))


def root(session: EvalSession, oid: int) -> int | None:
    """SQL's ``pg_partition_root``."""
    found = list(ancestors(session, oid))
    return found[-1] if found else None


def satisfies_hash(
    session: EvalSession,
    oid: int | None,
    modulus: int | None,
    remainder: int | None,
    *values: Any,
    types: tuple[int, ...],
) -> bool:
    """SQL's ``satisfies_hash_partition``. Raises SqlError 22023; XX000 for what is no relation."""
    if oid is None or modulus is None or remainder is None:
        return False
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        raise SqlError("XX000", f"could not open relation with OID {oid}")  # as PostgreSQL
    key = relation.partition_key
    if key is None or key.strategy != "h":
        raise SqlError("22023", f'"{relation.name}" is not a hash partitioned table')
    if modulus <= 0:
        raise SqlError("22023", "modulus for hash partition must be an integer value greater than zero")
    if remainder < 0:
        raise SqlError(
            "22023", "remainder for hash partition must be an integer value greater than or equal to zero"
        )
    if remainder >= modulus:
        raise SqlError("22023", "remainder for hash partition must be less than modulus")
    if isinstance(types, SpreadTypes):  # an array's items are of the very types of the columns
        for place, wanted in enumerate(key.types, 1):
            if types.element != wanted.oid:
                raise SqlError(
                    "22023",
                    f'column {place} of the partition key has type "{format_type(wanted.oid)}", but supplied value is of type '
                    f'"{format_type(types.element)}"',
                )
    if len(values) != len(key.types):
        raise SqlError(
            "22023",
            f"number of partitioning columns ({len(key.types)}) does not match number of partition keys provided ({len(values)})",
        )
    for place, (wanted, given) in enumerate(zip(key.types, types[3:], strict=True), 1):
        if not is_binary_coercible(given, wanted.oid):
            raise SqlError(
                "22023",
                f"column {place} of the partition key has type {format_type(wanted.oid)}, but supplied value is of type "
                f"{format_type(given)}",
            )
    return divided(relation, session.catalog).hash(values) % modulus == remainder


def _register() -> None:
    python = REGISTRY.python
    python("pg_partition_tree(regclass)", tree, needs_session=True)
    python("pg_partition_ancestors(regclass)", ancestors, needs_session=True)
    python("pg_partition_root(regclass)", root, needs_session=True)
    python(
        "satisfies_hash_partition(oid,int4,int4,any)", satisfies_hash, needs_session=True, needs_types=True
    )


_register()
