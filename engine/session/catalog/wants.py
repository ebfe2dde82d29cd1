"""What a DDL statement wants locked: keys of the catalog, gathered, and which objects refer to which.

    Wants      X on these, S on those, names, tables whose rows are locked too       filled by ``engine.definitions.locks``
    references(item)     the objects that a stored object refers to: it holds as long as they stay as they are

Names are keys of their own, ``name/schema/name``, so that two who make the same name wait for one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from engine.catalog.graph import relations_naming
from engine.catalog.reference_checks import references_to, with_partitions
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    PG_AUTHID_OID,
    PG_CLASS_OID,
    PG_CONSTRAINT_OID,
    PG_DATABASE_OID,
    PG_FOREIGN_DATA_WRAPPER_OID,
    PG_FOREIGN_SERVER_OID,
    PG_NAMESPACE_OID,
    PG_OPCLASS_OID,
    PG_OPFAMILY_OID,
    PG_POLICY_OID,
    PG_PROC_OID,
    PG_STATISTIC_EXT_OID,
    PG_TRIGGER_OID,
    PG_TS_CONFIG_OID,
    PG_TS_DICT_OID,
    PG_TYPE_OID,
    CommentDef,
    Stored,
    StoredKey,
    key_of,
)
from engine.catalog.type_names import array_name
from pgwire.give_way import give_way, paced, paced_iter
from planner import statements as st
from planner.catalog import AclDef, ConfigurationDef, ConstraintDef, DictionaryDef, RelationDef, TypeDef
from planner.catalog.collations import PG_COLLATION, CollationDef
from planner.catalog.conversions import PG_CONVERSION, ConversionDef
from planner.catalog.foreign import MappingDef, ServerDef
from planner.catalog.named_oids import named_oids, relations_in_text
from planner.catalog.opclasses import OperatorClassDef, OperatorFamilyDef
from planner.partitions.bounds import ancestors
from planner.types.facts import FIRST_USER_OID

NAME: Final = "name/"
ROLE_NAME: Final = "role-name/"
WHOLE: Final[StoredKey] = ("everything", 0, 0)
"""Stands for all that a database's catalog has by itself."""


def name_key(schema: str, name: str) -> StoredKey:
    """Return the key that stands for the name of a relation or type; ``schema`` "": the name of a schema."""
    return (f"{NAME}{schema}/{name}", 0, 0)


def role_name_key(name: str) -> StoredKey:
    """Return the key that stands for the name of a role, which all databases share."""
    return (f"{ROLE_NAME}{name}", 0, 0)


class Wants:
    """What one statement locks: keys of the catalog, True for X; and tables whose rows change, X, which come first.

    A transaction that reads a table has it locked, and may go on to refer to it: whoever is going to change the table
    waits for that transaction before it holds anything that this might need.
    """

    __slots__ = ("_catalog", "everything", "keys", "tables")

    def __init__(self, catalog: CatalogSnapshot) -> None:
        """Want nothing yet."""
        self._catalog = catalog
        self.keys: dict[StoredKey, bool] = {}
        self.tables: set[int] = set()
        self.everything = False  # the catalogs of all databases

    def change(self, key: StoredKey) -> None:
        """Lock an object X."""
        self.keys[key] = True

    def rely(self, key: StoredKey) -> None:
        """Lock an object S."""
        self.keys.setdefault(key, False)

    def name(self, schema: str, name: str) -> None:
        """Take or give up a name; an array type that is called so makes room."""
        self.keys[name_key(schema, name)] = True
        oid = self._catalog.type_oid(schema, name)
        made = self._catalog.type_by_oid(oid) if oid is not None else None
        if made is not None and made.chose(name):
            self.change(key_of(made))
            self.array_of(schema, name)

    def array_of(self, schema: str, name: str) -> None:
        """Take the name that an array type over a type of this name will have, as things stand."""
        self.keys[name_key(schema, array_name(self._catalog, schema, name))] = True

    def schema(self, name: str) -> None:
        """Rely on a schema, if it is there."""
        found = self._catalog.schema(name)
        if found is not None:
            self.rely(key_of(found))

    def relation(self, oid: int, *, rows: bool = True) -> RelationDef | None:
        """Change the relation ``oid`` (an index: its table) and, unless not ``rows``, what it stores. Return it."""
        found = self._catalog.relation_by_oid(oid)
        if found is None:
            return None
        if found.kind == "i":
            oid = found.table_oid
            found = self._catalog.relation_by_oid(oid) or found
        self.keys["relation", oid, 0] = True
        if rows and found.stored:
            self.tables.add(oid)
        return found

    def tree(self, oid: int, *, rows: bool = True) -> None:
        """Change the partitions of a table at all levels, with the tables that their foreign keys refer to."""
        for partition in paced(self._catalog.partitions_of(oid)):
            self.relation(partition.oid, rows=rows)
            self.referenced(partition.constraints)
            self.tree(partition.oid, rows=rows)

    def parent(self, oid: int) -> None:
        """Change the partitions that a table has: it, those above it, and its default partition."""
        table = self.relation(oid)
        if table is None:
            return
        self.referenced(table.constraints)
        for above in ancestors(table, self._catalog):
            self.relation(above.oid)
        for partition in self._catalog.partitions_of(oid):
            if partition.bound is not None and partition.bound.strategy == "d":
                self.relation(partition.oid)
                self.tree(partition.oid)

    def text(self, *texts: str | None) -> None:
        """Rely on the types and sequences that stored texts name."""
        for text in texts:
            give_way()
            for key in named_in(self._catalog, text):
                self.rely(key)

    def type(self, oid: int) -> None:
        """Rely on a type, if it is a user's, and on what a domain is over."""
        for key in type_keys(self._catalog, oid):
            self.rely(key)

    def columns(self, specs: Iterable[st.ColumnSpec]) -> None:
        """Rely on what columns to be made refer to."""
        for spec in specs:
            self.type(spec.type.oid)
            self.text(spec.default_sql)

    def foreign_keys(self, specs: Iterable[st.ForeignKeySpec]) -> None:
        """Change the tables that foreign keys to be made refer to: they learn of them."""
        for spec in specs:
            for oid in with_partitions(self._catalog, spec.table):
                self.relation(oid)

    def referenced(self, constraints: Iterable[ConstraintDef]) -> None:
        """Change the tables that foreign keys refer to."""
        for constraint in constraints:
            if constraint.foreign is not None:
                for oid in with_partitions(self._catalog, constraint.foreign.table):
                    self.relation(oid)

    def referring(self, oid: int) -> None:
        """Change the tables with foreign keys to a table."""
        table = self._catalog.relation_by_oid(oid)
        for child, _constraint in () if table is None else references_to(self._catalog, table):
            self.relation(child.oid)

    def views(self, oids: Iterable[int], *, exclusive: bool, deep: bool = True) -> None:
        """Change, or rely on, the views over relations; with ``deep`` those over these, too."""
        todo, seen = list(oids), set[int]()
        while todo:
            give_way()
            for view in paced(views_over(self._catalog, todo.pop())):
                if view.oid in seen:
                    continue
                seen.add(view.oid)
                if exclusive:
                    self.relation(view.oid)
                    self.name(view.schema, view.name)
                else:
                    self.rely(key_of(view))
                if deep:
                    todo.append(view.oid)

    def dropped(self, relation: RelationDef, *, cascade: bool) -> None:
        """Drop a relation with what goes with it; with ``cascade`` also with what depends on it."""
        if relation.partition_of:
            self.parent(relation.partition_of)
        self._gone(relation, cascade=cascade)

    def _gone(self, relation: RelationDef, *, cascade: bool) -> None:
        give_way()
        self.relation(relation.oid)
        for partition in self._catalog.partitions_of(relation.oid):
            self._gone(partition, cascade=cascade)  # its parent goes, too, and has been asked for
        self.name(relation.schema, relation.name)
        self.referenced(relation.constraints)
        gone = [relation.oid]
        for sequence in self._catalog.sequences_of(relation.oid):
            self.relation(sequence.oid)
            self.name(sequence.schema, sequence.name)
            gone.append(sequence.oid)
        self.views([relation.oid], exclusive=cascade)
        for table in relations_naming(self._catalog, [relation.oid]):
            if any(trigger.from_table == relation.oid for trigger in table.triggers):
                self.relation(table.oid)
        if cascade:
            self.referring(relation.oid)
            for table in paced_iter(relations_naming(self._catalog, gone)):
                texts = " ".join(column.default_sql or "" for column in table.live)
                if not set(gone).isdisjoint(relations_in_text(texts)):
                    self.relation(table.oid)

    def whole_schema(self, name: str, *, cascade: bool) -> None:
        """Drop a schema; with ``cascade`` also what is in it, else that is looked at."""
        catalog = self._catalog
        schema = catalog.schema(name)
        if schema is None:
            return
        self.name("", name)
        self.change(key_of(schema))
        for relation in paced_iter(catalog.user_relations()):
            if relation.schema == name:
                if cascade:
                    self.dropped(relation, cascade=True)
                else:
                    self.rely(key_of(relation))
        for type_ in paced_iter(catalog.user_types()):
            if type_.schema == name:
                self.change(key_of(type_))
        for function in catalog.functions_in(name):
            self.change(key_of(function))
        for item in catalog.text_search():
            if item.schema == name:
                self.change(key_of(item))
        for opclass in catalog.opclasses():
            if opclass.schema == name:
                self.change(key_of(opclass))
        for conversion in catalog.conversions():
            if conversion.schema == name:
                self.change(key_of(conversion))
        for collation in catalog.collations():
            if collation.schema == name:
                self.change(key_of(collation))
        for table, statistics in catalog.statistics().values():
            if statistics.schema_oid == schema.oid and table.schema != name:
                self.change(key_of(table))


def type_keys(catalog: CatalogSnapshot, oid: int) -> Iterator[StoredKey]:
    """Yield the keys of a user's type and of those that it is over, at any depth."""
    found = catalog.type_by_oid(oid) if oid >= FIRST_USER_OID else None
    if found is None and oid >= FIRST_USER_OID:
        relation = catalog.row_type_relation(oid)
        if relation is not None:
            yield key_of(relation[0])
    while found is not None:
        yield key_of(found)
        found = catalog.type_by_oid(found.base) if found.base >= FIRST_USER_OID else None


def named_in(catalog: CatalogSnapshot, *texts: str | None) -> Iterator[StoredKey]:
    """Yield the keys of the users' types, functions, schemas and text search objects and of the relations
    that stored texts name.
    """
    for text in texts:
        if not text:
            continue
        for oid in named_oids(text):
            type_ = catalog.type_by_oid(oid)
            if type_ is not None:
                yield key_of(type_)
            elif catalog.function_by_oid(oid) is not None:
                yield ("function", oid, 0)
            elif (search := catalog.text_search_by_oid(oid)) is not None:
                yield key_of(search)
            elif (collation := catalog.collation_by_oid(oid)) is not None:
                yield key_of(collation)
            elif (schema := catalog.schema_by_oid(oid)) is not None:
                yield key_of(schema)
        for oid in relations_in_text(text):
            yield ("relation", oid, 0)


def views_over(catalog: CatalogSnapshot, oid: int) -> Sequence[RelationDef]:
    """Return the views, materialized ones too, whose queries name a relation."""
    return [view for view in relations_naming(catalog, [oid]) if oid in view.depends_on]


def references(catalog: CatalogSnapshot, item: Stored) -> set[StoredKey]:
    """Return the keys of what an object refers to: they have to stay as they are until it is committed."""
    match item:
        case RelationDef():
            return _references_of(catalog, item)
        case TypeDef():
            texts = (item.default_sql, *(c.check_sql for c in item.checks))
            return {
                ("schema", item.schema_oid, 0),
                *type_keys(catalog, item.base),
                *(key for column in item.attributes for key in type_keys(catalog, column.declared.oid)),
                *named_in(catalog, *texts),
                *([("function", item.subtype_diff, 0)] if item.subtype_diff >= FIRST_USER_OID else ()),
            }
        case ConfigurationDef():
            asked = (catalog.text_search_by_oid(oid) for _, each in item.maps for oid in each)
            return {("schema", item.schema_oid, 0), *(key_of(one) for one in asked if one is not None)}
        case DictionaryDef() | ConversionDef() | CollationDef():
            return {("schema", item.schema_oid, 0)}
        case OperatorClassDef():
            return {("schema", item.schema_oid, 0), ("operator family", item.family, 0)}
        case OperatorFamilyDef():
            called = {m.object for m in item.members if m.function and m.object >= FIRST_USER_OID}
            return {("schema", item.schema_oid, 0), *(("function", oid, 0) for oid in called)}
        case ServerDef():
            return {("foreign wrapper", item.wrapper, 0)}
        case MappingDef():
            return {("foreign server", item.server, 0), ("role", item.owner, 0)}
        case CommentDef() | AclDef():
            key = object_key(catalog, item.class_oid, item.object_oid)
            return set() if key is None else {key}
    return set()


def _references_of(catalog: CatalogSnapshot, relation: RelationDef) -> set[StoredKey]:
    found: set[StoredKey] = {("schema", relation.schema_oid, 0)}
    for column in relation.columns:
        found.update(type_keys(catalog, column.declared.oid))
        found.update(named_in(catalog, column.default_sql))
    found.update(named_in(catalog, relation.view_sql, *(c.check_sql for c in relation.constraints)))
    found.update(named_in(catalog, *(t.when_sql for t in relation.triggers)))
    for policy in relation.policies:
        found.update(named_in(catalog, policy.using_sql, policy.check_sql))
        found.update(("relation", oid, 0) for oid in policy.depends_on)
        found.update(("role", oid, 0) for oid in policy.roles if oid >= FIRST_USER_OID)
    for statistics in relation.statistics:
        found.update(named_in(catalog, *statistics.expressions))
        found.add(("schema", statistics.schema_oid, 0))
    found.update(("function", t.function, 0) for t in relation.triggers if t.function >= FIRST_USER_OID)
    found.update(("relation", t.from_table, 0) for t in relation.triggers if t.from_table)
    for index in relation.every_index:
        found.update(named_in(catalog, *index.expressions, index.where_sql))
    found.update(("relation", oid, 0) for oid in relation.depends_on)
    if relation.partition_key is not None:
        found.update(named_in(catalog, *relation.partition_key.expressions))
        found.update(("operator class", oid, 0) for oid in relation.partition_key.own_classes if oid)
    if relation.partition_of:
        found.add(("relation", relation.partition_of, 0))
    found.update(("relation", c.foreign.table, 0) for c in relation.constraints if c.foreign is not None)
    if relation.sequence is not None and relation.sequence.owner_table:
        found.add(("relation", relation.sequence.owner_table, 0))
    timeline = catalog.timelines.get(relation.timeline)
    if timeline is not None:
        found.add(key_of(timeline))
    found.discard(key_of(relation))
    return found


def object_key(catalog: CatalogSnapshot, class_oid: int, oid: int) -> StoredKey | None:
    """Return the key of the object that a comment or a list of rights is about, None for one that is built in."""
    match class_oid:
        case _ if class_oid == PG_CLASS_OID:
            found = catalog.relation_by_oid(oid)
            if found is None or found.virtual:
                return None
            if found.kind == "c":
                return next((key_of(t) for t in catalog.user_types() if t.relation_oid == oid), None)
            return ("relation", found.table_oid if found.kind == "i" else oid, 0)
        case _ if class_oid == PG_CONSTRAINT_OID:
            constraint = catalog.constraint_by_oid(oid) or catalog.domain_constraint(oid)
            return None if constraint is None else key_of(constraint[0])
        case _ if class_oid == PG_TRIGGER_OID:
            trigger = catalog.trigger_by_oid(oid)
            return None if trigger is None else key_of(trigger[0])
        case _ if class_oid == PG_POLICY_OID:
            policy = catalog.policy_by_oid(oid)
            return None if policy is None else key_of(policy[0])
        case _ if class_oid == PG_STATISTIC_EXT_OID:
            statistics = catalog.statistics_by_oid(oid)
            return None if statistics is None else key_of(statistics[0])
        case _ if class_oid in (PG_TS_CONFIG_OID, PG_TS_DICT_OID):
            search = catalog.text_search_by_oid(oid)
            return None if search is None else key_of(search)
        case _ if class_oid in (PG_FOREIGN_SERVER_OID, PG_FOREIGN_DATA_WRAPPER_OID):
            foreign = catalog.foreign_by_oid(oid)
            return None if foreign is None else key_of(foreign)
        case _ if class_oid in (PG_OPCLASS_OID, PG_OPFAMILY_OID):
            opclass = catalog.opclass_by_oid(oid)
            return None if opclass is None else key_of(opclass)
        case _ if class_oid == PG_CONVERSION:
            conversion = catalog.conversion_by_oid(oid)
            return None if conversion is None else key_of(conversion)
        case _ if class_oid == PG_COLLATION:
            collation = catalog.collation_by_oid(oid)
            return None if collation is None else key_of(collation)
        case _ if class_oid == PG_TYPE_OID:
            type_ = catalog.type_by_oid(oid)
            return None if type_ is None else key_of(type_)
    kind = {
        PG_PROC_OID: "function",
        PG_NAMESPACE_OID: "schema",
        PG_AUTHID_OID: "role",
        PG_DATABASE_OID: "database",
    }.get(class_oid)
    key = (kind or "", oid, 0)
    return key if key in catalog.items else None
