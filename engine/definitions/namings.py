"""Who names what in a catalog, and how: the objects that the graph has for an oid (``engine.catalog.graph``),
looked at when they are asked for.

    CREATE DOMAIN d AS e    CREATE TYPE c AS (a e)    CREATE TABLE t (x e DEFAULT f())

    e  ──> over: d      attributes: c.a      relations: t          f  ──> relations: t

It is of one snapshot: what was looked at once is not looked at again, though a statement drop thousands of
types. It gives way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from engine.catalog.graph import graph_of, naming
from engine.catalog.state import CatalogSnapshot
from engine.definitions.dropping.dependents import Dependency
from pgwire.give_way import give_way, paced
from planner.catalog import ColumnDef, ConstraintDef, RelationDef, TypeDef
from planner.catalog.named_oids import named_oids, used_oids


class _Named:
    """Who names one oid, oldest first."""

    __slots__ = ("attributes", "checks", "distances", "over", "relations")

    def __init__(self) -> None:
        self.relations: list[RelationDef] = []
        self.over: list[TypeDef] = []
        self.attributes: list[tuple[TypeDef, ColumnDef]] = []
        self.checks: list[tuple[TypeDef, ConstraintDef]] = []
        self.distances: list[TypeDef] = []


class Namings:
    """What names types, functions, text search objects and relations (these by constants), by the oids named;
    oldest first.
    """

    __slots__ = ("_catalog", "_found", "_names")

    def __init__(self, catalog: CatalogSnapshot) -> None:
        """See to it that the graph is there, which takes a walk through the catalog."""
        self._catalog = catalog
        self._found: dict[int, _Named] = {}
        self._names: dict[int, set[int]] = {}  # of relations that have been looked at
        graph_of(catalog)

    def _of(self, oid: int) -> _Named:
        found = self._found.get(oid)
        if found is not None:
            return found
        found = _Named()
        for item in naming(self._catalog, [oid]):
            give_way()
            if isinstance(item, RelationDef):
                if item.oid not in self._names:
                    self._names[item.oid] = _named_by(item)
                if oid in self._names[item.oid]:
                    found.relations.append(item)
            elif isinstance(item, TypeDef):
                if oid == item.base or oid in named_oids(item.default_sql):
                    found.over.append(item)
                found.attributes += [
                    (item, column)
                    for column in item.attributes
                    if not column.dropped and column.declared.oid == oid
                ]
                found.checks += [(item, check) for check in item.checks if oid in used_oids(check.check_sql)]
                if item.kind == "r" and item.subtype_diff == oid:
                    found.distances.append(item)
        self._found[oid] = found
        return found

    def uses_type(self, oid: int) -> bool:
        """Tell whether a column, an attribute, a domain, a range or a stored text names a type."""
        found = self._of(oid)
        return bool(found.relations or found.over or found.attributes or found.checks)

    def over(self, oid: int) -> Sequence[TypeDef]:
        """Return the domains and ranges over a type, and the domains whose defaults name an oid."""
        return self._of(oid).over

    def distances(self, oid: int) -> Sequence[TypeDef]:
        """Return the range types whose distances a function computes."""
        return self._of(oid).distances

    def relations_naming(self, oids: Iterable[int]) -> list[RelationDef]:
        """Return the tables, views and so on whose columns are of any of ``oids``, or whose texts name one."""
        found = {relation.oid: relation for oid in oids for relation in self._of(oid).relations}
        return [found[oid] for oid in sorted(found)]

    def types_over(self, type_: TypeDef) -> list[TypeDef]:
        """Return the domains and ranges over a type, or over its arrays, and the domains whose defaults name it."""
        found = {made.oid: made for oid in type_.family for made in self.over(oid) if made.oid != type_.oid}
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
        found = [each for oid in type_.family for each in self._of(oid).attributes]
        return sorted(found, key=lambda each: (each[0].oid, each[1].attnum))

    def domain_checks(self, oids: Collection[int]) -> list[tuple[TypeDef, ConstraintDef]]:
        """Return the constraints of domains that name any of ``oids``."""
        found = {check.oid: (made, check) for oid in oids for made, check in self._of(oid).checks}
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


def _named_by(relation: RelationDef) -> set[int]:
    """Return what a relation's columns are of and what its texts name."""
    found = {*named_oids(relation.view_sql), relation.of_type}
    for column in paced(relation.live):
        found.add(column.declared.oid)
        found |= used_oids(column.default_sql)
    for constraint in paced(relation.constraints):
        found |= used_oids(constraint.check_sql)
    for index in relation.every_index:
        if index.computed:
            found |= used_oids(" ".join((*index.expressions, index.where_sql)))
            hidden = (relation.column(a) for a in index.kept)
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
