"""The protocol by which binding and system functions look things up; the engine's snapshots implement it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from planner.catalog.acl_items import AclItem
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import ForeignDef, Name
from planner.catalog.objects import DatabaseDef, ExtensionDef, RoleDef, SchemaDef
from planner.catalog.opclasses import OpclassDef
from planner.catalog.policy import PolicyDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.catalog.relations import ConstraintDef, RelationDef
from planner.catalog.statistics import StatisticsDef
from planner.catalog.text_search import TextSearchDef
from planner.catalog.trigger import TriggerDef
from planner.catalog.types import FunctionDef, RowType, TypeDef


class Catalog(Protocol):
    """An immutable view of the catalog."""

    def schema(self, name: str) -> SchemaDef | None:
        """Return the schema called ``name``."""

    def relation(self, schema: str, name: str) -> RelationDef | None:
        """Return relation ``schema.name`` of any kind, indexes included."""

    def relation_by_oid(self, oid: int) -> RelationDef | None:
        """Return the relation with this oid."""

    def relations(self, schema: str) -> Iterable[RelationDef]:
        """Yield the relations of a schema, in any order."""

    def partitions_of(self, oid: int) -> Sequence[RelationDef]:
        """Return the partitions of a table, oldest first."""
        ...

    def typed_tables(self, oid: int) -> Sequence[RelationDef]:
        """Return the tables of a composite type (CREATE TABLE ... OF), oldest first."""
        ...

    def role(self, name: str) -> RoleDef | None:
        """Return the role called ``name``."""

    def role_by_oid(self, oid: int) -> RoleDef | None:
        """Return the role with this oid."""

    def database_named(self, name: str) -> DatabaseDef | None:
        """Return the server's database called ``name``."""

    def type_oid(self, schema: str, name: str) -> int | None:
        """Return the oid of the user's type, or array type, called ``schema.name``."""

    def type_by_oid(self, oid: int) -> TypeDef | None:
        """Return the user's type that has this oid, or whose array type has."""

    def row_type(self, oid: int) -> RowType | None:
        """Return the composite type with this oid, None for any other type."""

    def constructors_named(self, name: str) -> Sequence[tuple[str, int]]:
        """Return (schema, oid) of the constructors of users' range types that are called ``name``."""
        ...

    def functions_named(self, name: str) -> Sequence[FunctionDef]:
        """Return the users' functions called ``name`` in any schema, oldest first."""

    @property
    def guarded_functions(self) -> frozenset[int]:
        """The built-in functions whose callers are asked for EXECUTE: those that not everybody may call from
        the start, and those with a list of their own.
        """

    def functions_in(self, schema: str) -> Iterable[FunctionDef]:
        """Yield the users' functions of a schema, oldest first."""

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        """Return the user's function with this oid."""

    def extension(self, name: str) -> ExtensionDef | None:
        """Return the extension called ``name``."""

    def text_search_named(self, named_by: int, schema: str, name: str) -> TextSearchDef | None:
        """Return the users' text search object ``schema.name`` that values of the type ``named_by`` name."""

    def text_search_by_oid(self, oid: int) -> TextSearchDef | None:
        """Return the users' text search configuration or dictionary with this oid."""

    def statistics_named(self, schema_oid: int, name: str) -> tuple[RelationDef, StatisticsDef] | None:
        """Return the extended statistics of that name in a schema, with their table."""

    def foreign_named(self, class_oid: int, name: Name) -> ForeignDef | None:
        """Return the wrapper or server of that name, or the user mapping for a role at a server, of the
        catalog ``class_oid``.
        """

    def collation_named(self, schema: str, name: str) -> CollationDef | None:
        """Return the users' collation ``schema.name``."""

    def collation_by_oid(self, oid: int) -> CollationDef | None:
        """Return the users' collation with this oid."""

    def conversion_named(self, schema: str, name: str) -> ConversionDef | None:
        """Return the users' conversion ``schema.name``."""

    def conversion_by_oid(self, oid: int) -> ConversionDef | None:
        """Return the users' conversion with this oid."""

    def opclass_named(self, class_oid: int, method: int, schema: str, name: str) -> OpclassDef | None:
        """Return the users' operator class or family of an index method, of the catalog ``class_oid``."""

    def opclass_by_oid(self, oid: int) -> OpclassDef | None:
        """Return the users' operator class or family with this oid."""


class SystemCatalog(Catalog, Protocol):
    """What catalog functions (``pg_get_constraintdef``, ``obj_description`` ...) ask besides: objects by oid.

    ``derived``: what others made of it and keep with it.
    """

    derived: dict[object, object]

    @property
    def database(self) -> int:
        """Oid of the database whose catalog this is."""

    @property
    def namespace_version(self) -> int:
        """A number that changes when a name may resolve differently."""

    def database_by_oid(self, oid: int) -> DatabaseDef | None:
        """Return the server's database with this oid."""

    def schemas(self) -> Iterable[SchemaDef]:
        """Yield all schemas."""

    def schema_by_oid(self, oid: int) -> SchemaDef | None:
        """Return the schema with this oid."""

    def constraint_by_oid(self, oid: int) -> tuple[RelationDef, ConstraintDef] | None:
        """Return the constraint with this oid and its table."""

    def domain_constraint(self, oid: int) -> tuple[TypeDef, ConstraintDef] | None:
        """Return the CHECK of a domain with this oid, and the domain."""

    def trigger_by_oid(self, oid: int) -> tuple[RelationDef, TriggerDef] | None:
        """Return the trigger with this oid and its table."""

    def policy_by_oid(self, oid: int) -> tuple[RelationDef, PolicyDef] | None:
        """Return the row-level security policy with this oid and its table."""

    def statistics_by_oid(self, oid: int) -> tuple[RelationDef, StatisticsDef] | None:
        """Return the extended statistics with this oid and their table."""

    def foreign_by_oid(self, oid: int) -> ForeignDef | None:
        """Return the foreign-data wrapper, server or user mapping with this oid."""

    def opclasses(self) -> Sequence[OpclassDef]:
        """Return users' operator classes and families, oldest first."""

    def sequences_of(self, table: int) -> Sequence[RelationDef]:
        """Return the sequences that a table's columns own, oldest first."""

    def row_type_relation(self, oid: int) -> tuple[RelationDef, bool] | None:
        """Return the relation whose row type has this oid; True with it for the array type over that."""

    def acl(self, class_oid: int, object_oid: int, sub_id: int = 0) -> tuple[AclItem, ...] | None:
        """Return the access control list of an object of the catalog ``class_oid``, None where it is the
        default one.
        """

    def lost_columns(self, relation: int) -> frozenset[int]:
        """Return the columns of a relation that are there in this catalog, but have been dropped by now."""

    def comment(self, class_oid: int, object_oid: int, sub_id: int = 0) -> str | None:
        """Return the comment on an object of the catalog ``class_oid``, or None."""

    def comments_on(self, class_oid: int) -> Callable[[int], str | None]:
        """Return what gives the comments on objects of that catalog by their oids, None where there is none."""


def row_type_named(catalog: Catalog, schema: str, name: str) -> tuple[RelationDef, int] | None:
    """Return the relation whose rows' type, or the array type over it, is called ``schema.name``, and the oid
    of that type.
    """
    relation = catalog.relation(schema, name)
    if relation is not None and relation.kind in ROW_TYPED:
        return relation, relation.row_type
    relation = catalog.relation(schema, name[1:]) if name.startswith("_") else None
    return None if relation is None or relation.kind not in ROW_TYPED else (relation, relation.row_array)
