"""Who names what in a catalog: a map by oid, made in one walk.

    CREATE DOMAIN d AS e    CREATE TYPE c AS (a e)    CREATE TABLE t (x e DEFAULT f())

    e  ──> over: d      attributes: c.a      relations: t          f  ──> relations: t

A statement may drop thousands of types or functions, and what hangs on each is looked for: whoever walked the catalog for each would walk it
thousands of times. A map is of one snapshot; the walk gives way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from engine.catalog.state import CatalogSnapshot
from engine.ddl.dependents import Dependency
from pgwire.give_way import give_way, paced
from planner.catalog import ColumnDef, ConstraintDef, RelationDef, TypeDef
from planner.named_oids import named_oids, used_oids


class Namings:
    """What names types, functions, text search objects and relations (these by constants), by the oids named; oldest first.

    Attributes:
        relations: tables, views and so on, by what their columns are of and what their texts name.
        over: domains and ranges by what they are over, and domains by what their defaults name.
        attributes: those of composite types by the types that they are of.
        checks: constraints of domains by what they name.
        distances: range types by the functions that compute distances.
    """

    __slots__ = ("attributes", "checks", "distances", "over", "relations")

    def __init__(self, catalog: CatalogSnapshot) -> None:
        """Walk through a catalog."""
        self.relations: dict[int, list[RelationDef]] = {}
        self.over: dict[int, list[TypeDef]] = {}
        self.attributes: dict[int, list[tuple[TypeDef, ColumnDef]]] = {}
        self.checks: dict[int, list[tuple[TypeDef, ConstraintDef]]] = {}
        self.distances: dict[int, list[TypeDef]] = {}
        for relation in sorted(catalog.user_relations(), key=_by_age):
            for oid in _named_by(relation):
                self.relations.setdefault(oid, []).append(relation)
            give_way()
        for made in sorted(catalog.user_types(), key=_by_age):
            for oid in {made.base, *named_oids(made.default_sql)}:
                self.over.setdefault(oid, []).append(made)
            for column in made.attributes:
                if not column.dropped:
                    self.attributes.setdefault(column.declared.oid, []).append((made, column))
            for check in made.checks:
                for oid in used_oids(check.check_sql):
                    self.checks.setdefault(oid, []).append((made, check))
            if made.kind == "r":
                self.distances.setdefault(made.subtype_diff, []).append(made)
            give_way()

    def uses_type(self, oid: int) -> bool:
        """Tell whether a column, an attribute, a domain, a range or a stored text names a type."""
        return any(oid in found for found in (self.relations, self.over, self.attributes, self.checks))

    def relations_naming(self, oids: Iterable[int]) -> list[RelationDef]:
        """Return the relations that name any of ``oids``."""
        found = {relation.oid: relation for oid in oids for relation in self.relations.get(oid, ())}
        return [found[oid] for oid in sorted(found)]

    def types_over(self, type_: TypeDef) -> list[TypeDef]:
        """Return the domains and ranges over a type, or over its arrays, and the domains whose defaults name it."""
        found = {
            made.oid: made for oid in type_.family for made in self.over.get(oid, ()) if made.oid != type_.oid
        }
        return [found[oid] for oid in sorted(found)]

    def with_types_over(self, types: Sequence[TypeDef]) -> list[TypeDef]:
        """Return types and, at any depth, the domains and ranges that hang on them, each once."""
        found = {type_.oid: type_ for type_ in types}
        todo = list(found.values())
        for type_ in todo:
            for other in self.types_over(type_):
                if other.oid not in found:
                    found[other.oid] = other
                    todo.append(other)
            give_way()
        return todo

    def attributes_of(self, type_: TypeDef) -> list[tuple[TypeDef, ColumnDef]]:
        """Return the attributes of composite types that are of a type or of the array type over it."""
        found = [each for oid in type_.family for each in self.attributes.get(oid, ())]
        return sorted(found, key=lambda each: (each[0].oid, each[1].attnum))

    def domain_checks(self, oids: Collection[int]) -> list[tuple[TypeDef, ConstraintDef]]:
        """Return the constraints of domains that name any of ``oids``."""
        found = {check.oid: (made, check) for oid in oids for made, check in self.checks.get(oid, ())}
        return sorted(found.values(), key=lambda each: (each[0].oid, each[1].oid))


def check_dependencies(
    checks: Iterable[tuple[TypeDef, ConstraintDef]], oids: Collection[int]
) -> list[Dependency]:
    """Return how constraints of domains hang on those of ``oids`` that they name."""
    found: list[Dependency] = []
    for made, check in checks:
        key = ("check", made.oid, check.name)
        used = used_oids(check.check_sql).intersection(oids)
        found.append(Dependency(key, check.oid, f"constraint {check.name}", min(used)))
        found.append(Dependency(key, check.oid, "", ("type", made.oid)))  # goes with its domain
    return found


def _by_age(item: RelationDef | TypeDef) -> int:
    return item.oid


def _named_by(relation: RelationDef) -> set[int]:
    """Return what a relation's columns are of and what its texts name."""
    found = {*named_oids(relation.view_sql), relation.of_type}
    for column in paced(relation.live):
        found.add(column.declared.oid)
        found |= used_oids(column.default_sql)
    for constraint in paced(relation.constraints):
        found |= used_oids(constraint.check_sql)
    for index in relation.indexes:
        if index.computed:
            found |= used_oids(" ".join((*index.expressions, index.where_sql)))
            hidden = (relation.column(a) for a in index.attnums)
            found.update(*(used_oids(column.default_sql) for column in hidden if column.hidden))
    for trigger in relation.triggers:
        found |= used_oids(trigger.when_sql)
        found.add(trigger.function)
    for policy in relation.policies:
        found |= used_oids(f"{policy.using_sql} {policy.check_sql}")
    for statistics in relation.statistics:
        found |= used_oids(" ".join(statistics.expressions))
    if relation.partition_key is not None:
        found |= used_oids(" ".join(relation.partition_key.expressions))
    return found
