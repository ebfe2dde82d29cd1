"""The catalog at one moment: an immutable snapshot with indexes by name and oid.

    CatalogSnapshot  ──with_changes(puts, deletes)──>  CatalogSnapshot'

Each database has one (``engine.catalog.storage.spaces``): its own objects, and those that all databases share.

A snapshot is what ``planner.catalog.Catalog`` promises. Virtual relations (pg_catalog, information_schema)
are part of every snapshot: their columns come from the catalog facts. A change is a list of puts and deletes
of stored objects (``engine.catalog.storage.stored``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from engine.catalog.graph import Edges
from engine.catalog.indexes import (
    KINDS,
    Constructors,
    Groups,
    Pace,
    at_once,
    by_kind,
    by_name,
    by_oid,
    grouped,
    named_relations,
    named_types,
    with_constructors,
)
from engine.catalog.named_definitions import NAMED, FindsNamed
from engine.catalog.relation_indexes import (
    OwnedConstraint,
    OwnedStatistics,
    with_constraints,
    with_made_types,
    with_owned,
    with_partitions,
    with_references,
    with_statistics,
)
from engine.catalog.relations.builtin_relations import catalog_row_types, virtual_relations
from engine.catalog.shapes import FindShape
from engine.catalog.storage.fences import NO_FENCES, Fence, fenced_oids
from engine.catalog.storage.stored import (
    DATABASE_OID,
    PG_CLASS_OID,
    PG_PROC_OID,
    CommentDef,
    Stored,
    StoredKey,
    comment_kind,
    key_of,
    new_names,
    predefined_roles,
    row_array_oid,
    row_type_oid,
    same_names,
)
from engine.catalog.type_owners import own
from engine.catalog.user_types import (
    note_columns,
    register,
    register_catalog_rows,
    register_rows_of,
    row_shape,
    with_enums,
)
from pgwire.codecs.users.composite import RowShape
from pgwire.codecs.users.types import UserTypes
from pgwire.give_way import paced_iter
from planner.catalog import (
    DEFAULT_TIMELINE,
    AclDef,
    ConstraintDef,
    DatabaseDef,
    DefaultsDef,
    ExtensionDef,
    FunctionDef,
    RelationDef,
    RoleDef,
    RowType,
    SchemaDef,
    SourceDef,
    TimelineDef,
    TypeDef,
)
from planner.catalog.acl_items import AclItem
from planner.catalog.extensions import PLPGSQL
from planner.catalog.information_domains import information_domain_oids, information_domains
from planner.catalog.opclasses import OperatorClassDef, OperatorFamilyDef
from planner.catalog.policy import PolicyDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.catalog.rights import restricted_functions
from planner.catalog.trigger import TriggerDef
from planner.conversion.polymorphic import register_typed
from planner.facts import INFORMATION_SCHEMA_OID, PG_CATALOG_OID
from planner.functions.registry import forget_constructor
from planner.partitions.bounds import is_division
from planner.types.facts import FIRST_USER_OID
from txn.base.types import ShardId

MAX_ADDED = 1000
"""Namespace versions of which a snapshot knows which names came; then it begins anew, and what was planned is
planned anew."""

_NAMED: Final[Mapping[type, str]] = {
    SchemaDef: "_schemas", RoleDef: "roles", TimelineDef: "timelines", SourceDef: "sources", DatabaseDef: "databases",
    ExtensionDef: "extensions",
}  # fmt: skip
"""Kinds of objects that no two have a name of, and where they are found by it."""

_BY_KEY: Final = frozenset((AclDef, CommentDef, DefaultsDef))
"""Kinds of objects that are found by their keys alone."""

if KINDS ^ {*_NAMED, *_BY_KEY, *NAMED, RelationDef, TypeDef, FunctionDef}:
    raise TypeError("CatalogSnapshot has to index each kind of stored objects")


class CatalogSnapshot(FindsNamed):
    """An immutable catalog; implements ``planner.catalog.Catalog``.

    ``version`` names the snapshot for caches; ``namespace_version`` changes only when a name may now resolve
    differently (create, drop, rename). Where relations were made and nothing else changed names since
    ``added_to``, which is such a version, ``added`` has their names by the version in which they came, oldest
    first. ``basis`` is the same as long as nothing but relations, comments and rights changes; ``rights`` has
    the version in which those on a relation changed last, since ``basis``. ``fences``: what could not be read
    when the server started; ``fenced``: what of that is still there, by the oids that name it; ``lost``: why
    there may be more than is known.
    """

    __slots__ = (
        "__weakref__",
        "_by_name",
        "_by_oid",
        "_constraints",
        "_constructors",
        "_functions",
        "_functions_by_name",
        "_made_types",
        "_owned",
        "_partitions",
        "_references",
        "_roles_by_oid",
        "_schemas",
        "_schemas_by_oid",
        "_shapes",
        "_types",
        "_types_by_name",
        "added",
        "added_to",
        "basis",
        "codec_types",
        "database",
        "databases",
        "derived",
        "edges",
        "extensions",
        "fenced",
        "fences",
        "guarded_functions",
        "items",
        "lost",
        "namespace_version",
        "rights",
        "roles",
        "sources",
        "timelines",
        "version",
    )  # fmt: skip

    def __init__(
        self,
        items: Mapping[StoredKey, Stored],
        version: int = 0,
        namespace_version: int = 0,
        *,
        database: int = DATABASE_OID,
        fences: Mapping[StoredKey, Fence] = NO_FENCES,
    ) -> None:
        """Build the indexes over ``items``, those of the database ``database`` and the shared ones.
        ``fences``: around what of them.
        """
        self.database = database
        self.fences = fences
        self.lost = ""
        self.fenced = fenced_oids(fences, items)
        self.items = items
        self.version = version
        self.namespace_version = namespace_version
        self.added: dict[int, frozenset[str]] = {}
        self.added_to = namespace_version
        self.basis = version
        self._schemas: dict[str, SchemaDef] = {
            "pg_catalog": SchemaDef(oid=PG_CATALOG_OID, name="pg_catalog"),
            "information_schema": SchemaDef(oid=INFORMATION_SCHEMA_OID, name="information_schema"),
        }
        self._by_name: dict[tuple[str, str], RelationDef] = {}
        self._by_oid: dict[int, RelationDef] = {}
        self.roles: dict[str, RoleDef] = dict(predefined_roles())
        self.timelines: dict[str, TimelineDef] = {}  # without the default one
        self.sources: dict[str, SourceDef] = {}
        self.databases: dict[str, DatabaseDef] = {}
        self._types: dict[int, TypeDef] = {}  # by oid, and by oid of the array type
        self._types_by_name: dict[tuple[str, str], int] = {}
        self.extensions: dict[str, ExtensionDef] = {}
        self._functions: dict[int, FunctionDef] = {}
        self._constructors: Constructors = {}
        self._functions_by_name: Groups[str, FunctionDef] = {}
        self._named_oids = {}
        self._named_names = {}
        self._by_name.update(((item.schema, item.name), item) for item in virtual_relations())
        self._by_oid.update((item.oid, item) for item in virtual_relations())
        self._shapes: dict[int, RowShape | None] = {}
        # what their values are called: the same object as long as no type and no relation changes
        self.codec_types = UserTypes({}, FindShape(self), database)
        self._roles_by_oid = {role.oid: role for role in self.roles.values()}
        self._schemas_by_oid = {schema.oid: schema for schema in self._schemas.values()}
        self._constraints: dict[int, OwnedConstraint] | None = None
        self._references: dict[int, tuple[OwnedConstraint, ...]] | None = None
        self._owned: Groups[int, RelationDef] | None = None
        self._made_types: dict[int, RelationDef] | None = None
        self._partitions: Groups[int, RelationDef] | None = None
        self.edges = Edges()  # who names whom
        self.rights: Mapping[int, int] = {}
        self.guarded_functions = _guarded(items)
        self.derived: dict[object, object] = {}  # what others made of this snapshot and keep with it
        for built_in in information_domains().values():
            register(built_in)
        for relation in virtual_relations():
            register_catalog_rows(relation)
        self._turn((), tuple(items.values()))

    # -- planner.catalog.Catalog -------------------------------------------------------------------

    def schema(self, name: str) -> SchemaDef | None:
        """Return the schema called ``name``."""
        return self._schemas.get(name)

    def relation(self, schema: str, name: str) -> RelationDef | None:
        """Return relation ``schema.name`` of any kind."""
        return self._by_name.get((schema, name))

    def relation_by_oid(self, oid: int) -> RelationDef | None:
        """Return the relation with this oid."""
        return self._by_oid.get(oid)

    def relations(self, schema: str) -> Iterable[RelationDef]:
        """Yield the relations of a schema."""
        return (r for r in self._by_oid.values() if r.schema == schema)

    def has_timeline(self, name: str) -> bool:
        """Tell whether there is a timeline called ``name``."""
        return name == DEFAULT_TIMELINE or name in self.timelines

    def role(self, name: str) -> RoleDef | None:
        """Return the role called ``name``."""
        return self.roles.get(name)

    def database_named(self, name: str) -> DatabaseDef | None:
        """Return the server's database called ``name``."""
        return self.databases.get(name)

    def database_by_oid(self, oid: int) -> DatabaseDef | None:
        """Return the server's database with this oid."""
        found = self.items.get(("database", oid, 0))
        return found if isinstance(found, DatabaseDef) else None

    def type_oid(self, schema: str, name: str) -> int | None:
        """Return the oid of the user's type, or array type, called ``schema.name``; of a domain of
        information_schema's, too.
        """
        if schema == "information_schema":
            return information_domain_oids().get(name)
        return self._types_by_name.get((schema, name))

    def type_by_oid(self, oid: int) -> TypeDef | None:
        """Return the user's type that has this oid, or whose array type or multirange type has; a domain of
        information_schema's, too.
        """
        found = self._types.get(oid)
        return found if found is not None or oid >= FIRST_USER_OID else information_domains().get(oid)

    def row_type(self, oid: int) -> RowType | None:
        """Return the composite type with this oid, None for any other type."""
        made = self._types.get(oid)
        if made is not None:
            if made.kind != "c" or made.oid != oid:
                return None
            return RowType(oid=oid, name=made.name, columns=made.attributes)
        found = self.row_type_relation(oid)
        if found is None or found[1]:
            return None
        relation = found[0]
        return RowType(oid=oid, name=relation.name, columns=relation.columns, relation=relation.oid)

    def row_shape(self, oid: int) -> RowShape | None:
        """Return the composite type with this oid as codecs know it, None for any other type."""
        if oid not in self._shapes:
            made = self.row_type(oid)
            self._shapes[oid] = None if made is None else row_shape(made)
        return self._shapes[oid]

    def written_alone(self, tables: Iterable[int]) -> list[ShardId]:
        """Return those of tables about to be written that have an exclusion constraint: one transaction at a
        time writes them.
        """
        found: list[ShardId] = []
        for oid in tables:
            relation = self.relation_by_oid(oid)
            if relation is not None and relation.exclusions:
                found.append(ShardId(oid))
        return found

    def constructors_named(self, name: str) -> Sequence[tuple[str, int]]:
        """Return (schema, oid) of the constructors of users' range types that are called ``name``."""
        return self._constructors.get(name, ())

    def functions_named(self, name: str) -> Sequence[FunctionDef]:
        """Return the users' functions called ``name`` in any schema, oldest first."""
        found = self._functions_by_name.get(name)
        return () if found is None else tuple(found.values())

    def functions_in(self, schema: str) -> Iterable[FunctionDef]:
        """Yield the users' functions of a schema, oldest first."""
        return (function for function in self.functions() if function.schema == schema)

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        """Return the user's function with this oid."""
        return self._functions.get(oid)

    # -- the engine's own view ---------------------------------------------------------------------

    def schemas(self) -> Iterable[SchemaDef]:
        """Yield all schemas, virtual ones included."""
        return self._schemas.values()

    @property
    def relations_by_oid(self) -> Mapping[int, RelationDef]:
        """All relations by their oids: the same object as long as none changes."""
        return self._by_oid

    def all_relations(self) -> Iterable[RelationDef]:
        """Yield all relations: virtual ones, tables, views and indexes."""
        return self._by_oid.values()

    def user_relations(self) -> Iterable[RelationDef]:
        """Yield stored tables, views and sequences (not indexes)."""
        return (item for item in self.items.values() if isinstance(item, RelationDef))

    def user_types(self) -> Iterable[TypeDef]:
        """Yield users' types."""
        return (item for oid, item in self._types.items() if item.oid == oid)

    def extension(self, name: str) -> ExtensionDef | None:
        """Return the extension called ``name``."""
        return PLPGSQL if name == PLPGSQL.name else self.extensions.get(name)

    def functions(self) -> Iterable[FunctionDef]:
        """Yield users' functions, oldest first."""
        return iter(sorted(self._functions.values(), key=lambda f: f.oid))

    def schema_by_oid(self, oid: int) -> SchemaDef | None:
        """Return the schema with this oid."""
        return self._schemas_by_oid.get(oid)

    def constraint_by_oid(self, oid: int) -> tuple[RelationDef, ConstraintDef] | None:
        """Return the constraint with this oid and its table."""
        if self._constraints is None:
            self._constraints = with_constraints({}, (), self.user_relations())
        return self._constraints.get(oid)

    def domain_constraint(self, oid: int) -> tuple[TypeDef, ConstraintDef] | None:
        """Return the CHECK of a domain with this oid, and the domain."""
        types = self.user_types() if oid >= FIRST_USER_OID else information_domains().values()
        return next(((t, c) for t in types for c in t.checks if c.oid == oid), None)

    def policy_by_oid(self, oid: int) -> tuple[RelationDef, PolicyDef] | None:
        """Return the policy with this oid and its table."""
        return next(((r, p) for r in self.user_relations() for p in r.policies if p.oid == oid), None)

    def statistics(self) -> Mapping[int, OwnedStatistics]:
        """Return extended statistics by their oids, oldest first, each with its table."""
        return with_statistics(self.derived, self.user_relations())

    def statistics_by_oid(self, oid: int) -> OwnedStatistics | None:
        """Return the extended statistics with this oid and their table."""
        return self.statistics().get(oid)

    def statistics_named(self, schema_oid: int, name: str) -> OwnedStatistics | None:
        """Return the extended statistics of that name in a schema, with their table."""
        every = self.statistics().values()
        return next((p for p in every if (p[1].schema_oid, p[1].name) == (schema_oid, name)), None)

    def trigger_by_oid(self, oid: int) -> tuple[RelationDef, TriggerDef] | None:
        """Return the trigger with this oid and its table."""
        return next(((r, t) for r in self.user_relations() for t in r.triggers if t.oid == oid), None)

    def foreign_keys_to(self, oid: int) -> Sequence[tuple[RelationDef, ConstraintDef]]:
        """Return the foreign keys that refer to a table, each with the table it belongs to, oldest first."""
        if self._references is None:
            self._references = with_references({}, (), self.user_relations())
        return self._references.get(oid, ())

    def sequences_of(self, table: int) -> Sequence[RelationDef]:
        """Return the sequences that a table's columns own, oldest first."""
        if self._owned is None:
            self._owned = with_owned({}, (), self.user_relations())
        found = self._owned.get(table)
        return () if found is None else tuple(found.values())

    def with_made_types(self) -> list[RelationDef]:
        """Return the tables and materialized views with columns of types that users made, oldest first."""
        if self._made_types is None:
            self._made_types = with_made_types({}, (), paced_iter(self.user_relations()))
        return sorted(self._made_types.values(), key=lambda item: item.oid)

    def partitions_of(self, oid: int) -> Sequence[RelationDef]:
        """Return the partitions of a table, oldest first."""
        if self._partitions is None:
            self._partitions = with_partitions({}, (), self.user_relations())
        found = self._partitions.get(oid)
        return () if found is None else tuple(found.values())

    def typed_tables(self, oid: int) -> Sequence[RelationDef]:
        """Return the tables of a composite type (CREATE TABLE ... OF), oldest first."""
        found = [relation for relation in paced_iter(self.user_relations()) if relation.of_type == oid]
        return sorted(found, key=lambda relation: relation.oid)

    def rights_mark(self, oid: int) -> int:
        """Return a number that is another one when rights on a relation or its columns have changed."""
        return self.rights.get(oid, 0)

    def row_type_relation(self, oid: int) -> tuple[RelationDef, bool] | None:
        """Return the relation whose row type has this oid; True with it for the array type over that."""
        if oid < FIRST_USER_OID:
            return catalog_row_types().get(oid)
        for distance, array in ((1, False), (2, True)):
            relation = self._by_oid.get(oid - distance)
            if relation is not None and relation.kind in ROW_TYPED and not relation.virtual:
                return relation, array
        return None

    def role_by_oid(self, oid: int) -> RoleDef | None:
        """Return the role with this oid."""
        return self._roles_by_oid.get(oid)

    def source_by_oid(self, oid: int) -> SourceDef | None:
        """Return the source with this oid."""
        found = self.items.get(("source", oid, 0))
        return found if isinstance(found, SourceDef) else None

    def comment(self, class_oid: int, object_oid: int, sub_id: int = 0) -> str | None:
        """Return the comment on an object, or None."""
        found = self.items.get((comment_kind(class_oid), object_oid, sub_id))
        return found.text if isinstance(found, CommentDef) else None

    def comments_on(self, class_oid: int) -> Callable[[int], str | None]:
        """Return what gives the comments on objects of one catalog by their oids."""
        kind, find = comment_kind(class_oid), self.items.get

        def comment(object_oid: int) -> str | None:
            found = find((kind, object_oid, 0))
            return found.text if found is not None and isinstance(found, CommentDef) else None

        return comment

    def acl(self, class_oid: int, object_oid: int, sub_id: int = 0) -> tuple[AclItem, ...] | None:
        """Return the access control list of an object, None where it is the default one."""
        found = self.items.get((f"acl/{class_oid}", object_oid, sub_id))
        return found.items if isinstance(found, AclDef) else None

    def lost_columns(self, relation: int) -> frozenset[int]:
        """Return those of a relation that have been dropped by now: none, for a catalog by itself knows no
        other time.
        """
        return frozenset()

    def defaults(self) -> Iterable[DefaultsDef]:
        """Yield what settings begin with, for databases and roles."""
        return (item for item in self.items.values() if isinstance(item, DefaultsDef))

    def defaults_of(self, database: int, role: int) -> DefaultsDef | None:
        """Return what settings begin with in a database, for a role (0: in all, for all), as far as it was said."""
        found = self.items.get(("defaults", database, role))
        return found if isinstance(found, DefaultsDef) else None

    def beginning(self, role: int) -> Mapping[str, str]:
        """Return what settings begin with for a role in this database: what is more special counts."""
        found: dict[str, str] = {}
        for key in ((0, 0), (self.database, 0), (0, role), (self.database, role)):
            item = self.defaults_of(*key)
            if item is not None:
                found |= item.settings
        return found

    def acls(self) -> Iterable[AclDef]:
        """Yield all access control lists."""
        return (item for item in self.items.values() if isinstance(item, AclDef))

    def comments(self) -> Iterable[CommentDef]:
        """Yield all comments."""
        return (item for item in self.items.values() if isinstance(item, CommentDef))

    def with_changes(
        self,
        puts: Sequence[Stored],
        deletes: Sequence[StoredKey],
        version: int,
        pace: Pace = at_once,
    ) -> CatalogSnapshot:
        """Return a new snapshot with objects put and deleted; deletes of absent keys are ignored.

        It costs copies of dictionaries, not a look at every object. ``pace``: what the changes are iterated
        over with, for others may run meanwhile (``paced``) or may not, where it has to be one turn.
        """
        items = dict(self.items)
        renamed = False
        names: set[str] = set()
        gone: list[Stored] = []
        for key in pace(deletes):
            item = items.pop(key, None)
            if item is not None:
                gone.append(item)
                renamed = True
        made: list[Stored] = []
        for item in pace(puts):
            key = key_of(item)
            old = items.get(key)
            items[key] = item
            if not same_names(old, item):
                came = new_names(old, item)
                renamed |= came is None
                names |= came or frozenset()
            made.append(item)
            if old is not None:
                gone.append(old)
        added, added_to = self.added, self.added_to
        if renamed or (names and len(added) >= MAX_ADDED):
            added, added_to = {}, version
        elif names:
            added = {**added, version: frozenset(names)}
        namespace_version = version if renamed or names else self.namespace_version
        new = self._copy()
        new.items, new.version, new.namespace_version = items, version, namespace_version
        new.added, new.added_to = added, added_to
        if self.fences:
            new.fenced = fenced_oids(self.fences, items)
        both = pace((*gone, *made))
        if not all(isinstance(item, RelationDef | CommentDef | AclDef) for item in both):
            new.basis, new.rights = version, {}
        elif changed := {
            item.object_oid for item in both if isinstance(item, AclDef) and item.class_oid == PG_CLASS_OID
        }:
            new.rights = {**self.rights, **dict.fromkeys(changed, version)}
        if any(isinstance(item, AclDef) and _about_built_in(item) for item in pace((*gone, *made))):
            new.guarded_functions = _guarded(items)
        if not any(
            isinstance(item, TypeDef | FunctionDef | OperatorFamilyDef | OperatorClassDef)
            for item in pace(gone)
        ) and not any(
            isinstance(item, RelationDef) and (item.partition_of or item.kind == "p") for item in both
        ):
            new.derived = {key: kept for key, kept in self.derived.items() if is_division(key)}
        put = {key_of(item): item for item in pace(made)}
        last = list(put.values())
        new.edges = self.edges.next([key for key in pace(deletes) if key not in put], last, len(items))
        new._turn(gone, last, pace)
        return new

    def _copy(self) -> CatalogSnapshot:
        """Return a snapshot like this one, which shares all that a change does not touch."""
        new = object.__new__(CatalogSnapshot)
        for name in (*FindsNamed.__slots__, *CatalogSnapshot.__slots__):
            if name != "__weakref__":
                setattr(new, name, getattr(self, name))
        new.derived = {}
        new._shapes = {}
        new.codec_types = UserTypes(self.codec_types.enums, FindShape(new), self.database)
        return new

    def _turn(self, gone: Sequence[Stored], made: Sequence[Stored], pace: Pace = at_once) -> None:
        """Have the indexes know ``made``, and ``gone`` no more: those that have any of either become copies,
        the others stay as they are.

        So it costs what changes, and copies of dictionaries, which C makes (10 ns an entry): no look at any
        other object.
        """
        left, came = by_kind(gone, pace), by_kind(made, pace)
        relations, types = left.pop(RelationDef, []), left.pop(TypeDef, [])
        new_relations, new_types = came.pop(RelationDef, []), came.pop(TypeDef, [])
        for relation in pace(new_relations):
            if relation.kind in ROW_TYPED:  # there may be domains over the types of its rows
                register_rows_of(row_type_oid(relation.oid), row_array_oid(relation.oid))
        for type_ in pace(sorted(new_types, key=lambda t: t.oid)):  # what a domain is over was made before it
            register(type_)
        if relations or new_relations:
            self._turn_relations(pace(relations), pace(new_relations))
        if types or new_types:
            self._turn_types(pace(types), pace(new_types))
        if relations or new_relations or types or new_types:
            self._by_name, self._by_oid = named_relations(
                self._by_name, self._by_oid, [*relations, *types], [*new_relations, *new_types], pace
            )
        for kind in {*left, *came}:
            before, after = pace(left.get(kind, [])), pace(came.get(kind, []))
            if kind is FunctionDef:
                for function in after:
                    forget_constructor(function.oid)
                self._functions = by_oid(self._functions, before, after)
                self._functions_by_name = grouped(
                    self._functions_by_name, before, after, lambda function: function.name, pace
                )
            elif kind in NAMED:
                self._turn_named(before, after)
            elif kind in _NAMED:
                index = _NAMED[kind]
                setattr(self, index, by_name(getattr(self, index), before, after, lambda item: item.name))
                if kind is RoleDef:
                    self._roles_by_oid = by_oid(self._roles_by_oid, before, after)
                elif kind is SchemaDef:
                    self._schemas_by_oid = by_oid(self._schemas_by_oid, before, after)

    def _turn_relations(self, gone: Iterable[RelationDef], made: Iterable[RelationDef]) -> None:
        for item in made:
            if item.kind in ROW_TYPED:
                own(item)
                row, array = row_type_oid(item.oid), row_array_oid(item.oid)
                register_rows_of(row, array, item.name, "_" + item.name)
                note_columns(item, committed=False)
                if item.of_type:
                    register_typed(row, item.of_type)
        if self._constraints is not None:
            self._constraints = with_constraints(self._constraints, gone, made)
        if self._references is not None:
            self._references = with_references(self._references, gone, made)
        if self._owned is not None:
            self._owned = with_owned(self._owned, gone, made)
        if self._made_types is not None:
            self._made_types = with_made_types(self._made_types, gone, made)
        if self._partitions is not None:
            self._partitions = with_partitions(self._partitions, gone, made)

    def _turn_types(self, gone: Iterable[TypeDef], made: Iterable[TypeDef]) -> None:
        self._types, self._types_by_name = named_types(self._types, self._types_by_name, gone, made)
        for item in made:
            note_columns(item, committed=False)
        if any(type_.kind == "r" for type_ in (*gone, *made)):
            self._constructors = with_constructors(self._constructors, gone, made)
        enums = with_enums(self.codec_types.enums, gone, made)
        self.codec_types = UserTypes(enums, self.codec_types.row, self.database)

    def overlaid(self, changes: Mapping[StoredKey, Stored | None], version: int) -> CatalogSnapshot:
        """Return a new snapshot with ``changes`` on top: objects put, or deleted where there is None."""
        puts = [item for item in changes.values() if item is not None]
        return self.with_changes(puts, [key for key, item in changes.items() if item is None], version)

    def apart(self, changes: Mapping[StoredKey, Stored | None], version: int) -> CatalogSnapshot:
        """As ``overlaid``, for a catalog of another time: nothing that was planned or kept for this one is
        taken for good there.
        """
        new = self.overlaid(changes, version)
        new.namespace_version = new.added_to = new.basis = version
        new.added, new.rights, new.derived = {}, {}, {}
        new.guarded_functions |= self.guarded_functions  # whoever calls one is asked for today's rights
        return new


def _about_built_in(rights: AclDef) -> bool:
    """Tell whether rights are to a built-in function."""
    return rights.class_oid == PG_PROC_OID and rights.object_oid < FIRST_USER_OID


def _guarded(items: Mapping[StoredKey, Stored]) -> frozenset[int]:
    """Return the built-in functions that not everybody may call, and those whose rights have been changed."""
    own = [item.object_oid for item in items.values() if isinstance(item, AclDef) and _about_built_in(item)]
    return frozenset((*restricted_functions(), *own))
