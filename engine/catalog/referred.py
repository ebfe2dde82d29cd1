"""Which relations have rows of pg_depend that refer to an object: those of one object are found without
making all others.

    t <── its row type, constraints, indexes, defaults, rules      t itself
      <── sequences of its columns, partitions, foreign keys       known to the catalog by t
      <── views that read it, defaults that name it                gathered once per catalog

A function here is a ``Locator`` of one source of pg_depend: it may return relations that have no such row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from engine.catalog.state import CatalogSnapshot
from pgwire.give_way import give_way
from planner.catalog import RelationDef
from planner.catalog.named_oids import relations_in_text, used_oids
from planner.catalog.relation_kinds import BY_QUERY, COLUMNED
from planner.types.facts import FIRST_UNPINNED, element_of


def by_referred(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef]:
    """Return the relations of which something may depend on a relation, a constraint or a schema."""
    relation = catalog.relation_by_oid(value)
    if relation is None:
        owned = catalog.constraint_by_oid(value)
        if owned is not None:
            return (owned[0], *catalog.partitions_of(owned[0].oid))
        schema = catalog.schema_by_oid(value)
        return () if schema is None else catalog.relations(schema.name)
    found = [
        relation,
        *(table for table, _ in catalog.foreign_keys_to(relation.table_oid or value)),
        *catalog.partitions_of(relation.table_oid or value),
        *catalog.sequences_of(value),
        *_readers(catalog).get(value, ()),
    ]
    return {item.oid: item for item in found}.values()


def by_referred_in_views(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef]:
    """Return the views that may depend on a relation or a constraint, itself among them."""
    owned = catalog.constraint_by_oid(value)
    oid = value if owned is None else owned[0].oid
    relation = catalog.relation_by_oid(oid)
    return () if relation is None else (relation, *_readers(catalog).get(oid, ()))


def by_referred_type(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef]:
    """Return the relation, of which the row type depends on it, or the relations with columns of a type."""
    relation = catalog.relation_by_oid(value)
    if relation is not None:
        return (relation,)
    if value < FIRST_UNPINNED:
        return ()
    of_row = catalog.row_type_relation(value)
    if of_row is None and catalog.type_by_oid(value) is None:
        return ()
    found = [
        r for r in _made(catalog) if r.of_type == value or any(c.declared.oid == value for c in r.columns)
    ]
    if of_row is not None and not of_row[0].virtual:
        found.append(of_row[0])
    return {item.oid: item for item in found}.values()


def by_referred_function(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef]:
    """Return the relations whose texts call a user's function, or name a type, a schema, a text search object
    or, by a constant, a relation.
    """
    known = catalog.derived.get(by_referred_function)
    if known is None:
        found: dict[int, list[RelationDef]] = {}
        for item in _made(catalog):
            domains = {c.declared.oid for c in item.columns if c.default_sql and c.declared != c.type}
            for oid in domains.union(*map(used_oids, _texts(item))):
                found.setdefault(oid, []).append(item)
            give_way()
        known = catalog.derived[by_referred_function] = found
    by_oid = cast("dict[int, list[RelationDef]]", known)
    found_by = (
        *by_oid.get(value, ()),
        *by_oid.get(element_of(value), ()),
    )  # an array type is named by its element's
    return {item.oid: item for item in found_by}.values()


def with_policies(catalog: CatalogSnapshot, value: Any) -> Sequence[RelationDef]:
    """Return the tables with row-level security, whatever their policies depend on: there are few."""
    known = catalog.derived.get(with_policies)
    if known is None:
        known = catalog.derived[with_policies] = [r for r in _made(catalog) if r.policies]
    return cast("list[RelationDef]", known)


def with_statistics(catalog: CatalogSnapshot, value: Any) -> Sequence[RelationDef]:
    """Return the tables with extended statistics, whatever these depend on: there are few."""
    return list({table.oid: table for table, _ in catalog.statistics().values()}.values())


def by_referred_in_triggers(catalog: CatalogSnapshot, value: Any) -> Sequence[RelationDef]:
    """Return the tables that have triggers on, of, calling or naming an object: themselves, triggers,
    functions, tables that a foreign key refers to, what conditions name.
    """
    known = catalog.derived.get(by_referred_in_triggers)
    if known is None:
        found: dict[int, dict[int, RelationDef]] = {}
        for item in _made(catalog):
            for trigger in item.triggers:
                for oid in (
                    item.oid, trigger.oid, trigger.from_table, trigger.function, *used_oids(trigger.when_sql),
                ):  # fmt: skip
                    found.setdefault(oid, {})[item.oid] = item
        known = catalog.derived[by_referred_in_triggers] = {
            oid: tuple(items.values()) for oid, items in found.items()
        }
    return cast("dict[int, tuple[RelationDef, ...]]", known).get(value, ())


def _made(catalog: CatalogSnapshot) -> Iterable[RelationDef]:
    """Return users' relations, composite types among them."""
    return [item for item in catalog.relations_by_oid.values() if not item.virtual]


def _texts(item: RelationDef) -> Iterable[str | None]:
    """Yield what of a relation may call functions."""
    yield item.view_sql
    for column in item.columns:
        yield column.default_sql
    for constraint in item.constraints:
        yield constraint.check_sql
    for index in item.every_index:
        yield from index.expressions
        yield index.where_sql
    if item.partition_key is not None:
        yield from item.partition_key.expressions


def _readers(catalog: CatalogSnapshot) -> Mapping[int, Sequence[RelationDef]]:
    """Return by oid of a relation the views that read it, and the tables with defaults that name it."""
    known = catalog.derived.get(_readers)
    if known is None:
        found: dict[int, list[RelationDef]] = {}
        for item in _made(catalog):
            if item.kind not in COLUMNED:
                continue
            oids = [oid for c in item.columns if c.default_sql for oid in relations_in_text(c.default_sql)]
            if item.kind in BY_QUERY:
                oids += (*item.depends_on, *relations_in_text(item.view_sql))
            for oid in dict.fromkeys(oids):
                found.setdefault(oid, []).append(item)
        known = catalog.derived[_readers] = found
    return cast("dict[int, list[RelationDef]]", known)
