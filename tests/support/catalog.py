"""A small in-memory catalog for tests of the binder: tables from one-line declarations.

catalog = MemoryCatalog()
catalog.table("emp", "id int4 pk", "name text", "salary numeric(10,2)", "dept int4")
catalog.view("v", "SELECT id FROM public.emp", "id int4")
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from planner import ast
from planner.catalog import (
    ColumnDef,
    ConstraintDef,
    DatabaseDef,
    ExtensionDef,
    FunctionDef,
    IndexDef,
    RelationDef,
    RoleDef,
    RowType,
    SchemaDef,
    TextSearchDef,
    TypeDef,
)
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import ForeignDef, Name
from planner.catalog.opclasses import OpclassDef
from planner.catalog.rights import restricted_functions
from planner.catalog.statistics import StatisticsDef
from planner.conversion.type_names import resolve_type
from planner.facts import PG_CATALOG_OID, PUBLIC_OID
from planner.parse import parse_expression
from planner.types import SqlType


def sql_type(text: str) -> SqlType:
    """Return the type a SQL type name means."""
    cast = parse_expression(f"NULL::{text}")
    assert isinstance(cast, ast.TypeCast)
    return resolve_type(cast.type)


class MemoryCatalog:
    """A Catalog whose content tests write down."""

    fenced: ClassVar[dict[int, object]] = {}

    def __init__(self) -> None:
        self.schemas = {
            "public": SchemaDef(oid=PUBLIC_OID, name="public"),
            "pg_catalog": SchemaDef(oid=PG_CATALOG_OID, name="pg_catalog"),
        }
        self.by_name: dict[tuple[str, str], RelationDef] = {}
        self.by_oid: dict[int, RelationDef] = {}
        self.roles = {"postgres": RoleDef(oid=10, name="postgres", superuser=True, can_login=True)}
        self._next_oid = 16384

    def type_oid(self, schema: str, name: str) -> int | None:
        """Return the oid of a user's type: there are none."""
        return None

    def type_by_oid(self, oid: int) -> TypeDef | None:
        """Return a user's type: there are none."""
        return None

    def row_type(self, oid: int) -> RowType | None:
        """Return a composite type: there are none."""
        return None

    @property
    def guarded_functions(self) -> frozenset[int]:
        """Return the built-in functions that not everybody may call."""
        return frozenset(restricted_functions())

    def constructors_named(self, name: str) -> tuple[tuple[str, int], ...]:
        return ()

    def functions_named(self, name: str) -> tuple[FunctionDef, ...]:
        """Return the functions called ``name``: there are none."""
        return ()

    def functions_in(self, schema: str) -> tuple[FunctionDef, ...]:
        """Return the functions of a schema: there are none."""
        return ()

    def extension(self, name: str) -> ExtensionDef | None:
        """Return an extension: there are none."""
        return None

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        """Return a function: there are none."""
        return None

    def text_search_named(self, named_by: int, schema: str, name: str) -> TextSearchDef | None:
        """Return a text search object: there are none."""
        return None

    def text_search_by_oid(self, oid: int) -> TextSearchDef | None:
        """Return a text search object: there are none."""
        return None

    def statistics_named(self, schema_oid: int, name: str) -> tuple[RelationDef, StatisticsDef] | None:
        """Return extended statistics: there are none."""
        return None

    def foreign_named(self, class_oid: int, name: Name) -> ForeignDef | None:
        """Return a wrapper, server or user mapping: there are none."""
        return None

    def opclass_named(self, class_oid: int, method: int, schema: str, name: str) -> OpclassDef | None:
        """Return an operator class or family: there are none."""
        return None

    def opclass_by_oid(self, oid: int) -> OpclassDef | None:
        """Return an operator class or family: there are none."""
        return None

    def collation_named(self, schema: str, name: str) -> CollationDef | None:
        """Return a collation: there are none."""
        return None

    def collation_by_oid(self, oid: int) -> CollationDef | None:
        """Return a collation: there are none."""
        return None

    def conversion_named(self, schema: str, name: str) -> ConversionDef | None:
        """Return a conversion: there are none."""
        return None

    def conversion_by_oid(self, oid: int) -> ConversionDef | None:
        """Return a conversion: there are none."""
        return None

    def _oid(self) -> int:
        self._next_oid += 1
        return self._next_oid

    def add(self, relation: RelationDef) -> RelationDef:
        """Enter a relation and its indexes."""
        self.by_name[relation.schema, relation.name] = relation
        self.by_oid[relation.oid] = relation
        for index in relation.indexes:
            entry = RelationDef(
                oid=index.oid, schema_oid=relation.schema_oid, schema=relation.schema, name=index.name,
                kind="i", table_oid=relation.oid,
            )  # fmt: skip
            self.by_name[relation.schema, index.name] = entry
            self.by_oid[index.oid] = entry
        return relation

    def add_schema(self, name: str) -> None:
        """Create a schema."""
        self.schemas[name] = SchemaDef(oid=self._oid(), name=name)

    def table(
        self,
        name: str,
        *columns: str,
        schema: str = "public",
        virtual: bool = False,
        unique: Iterable[tuple[str, ...]] = (),
        primary: tuple[str, ...] = (),
    ) -> RelationDef:
        """Create a table. A column is ``name type [not null] [pk] [unique] [default <expression>]``."""
        defs: list[ColumnDef] = []
        keys: list[tuple[tuple[str, ...], bool]] = [(tuple(key), False) for key in unique]
        if primary:
            keys.insert(0, (primary, True))
        for attnum, text in enumerate(columns, 1):
            head, _, default = text.partition(" default ")
            words = head.split(" ", 1)
            rest = words[1]
            flags = {flag: f" {flag}" in rest for flag in ("not null", "pk", "unique")}
            for flag in flags:
                rest = rest.replace(f" {flag}", "")
            column = words[0]
            if flags["pk"]:
                keys.insert(0, ((column,), True))
            if flags["unique"]:
                keys.append(((column,), False))
            defs.append(
                ColumnDef(
                    attnum=attnum, name=column, type=sql_type(rest.strip()),
                    not_null=flags["not null"] or flags["pk"] or column in primary,
                    default_sql=default or None,
                )
            )  # fmt: skip
        numbers = {column.name: column.attnum for column in defs}
        indexes, constraints = [], []
        for key, is_primary in keys:
            label = f"{name}_pkey" if is_primary else f"{name}_{'_'.join(key)}_key"
            attnums = tuple(numbers[column] for column in key)
            oid, constraint_oid = self._oid(), self._oid()
            indexes.append(
                IndexDef(
                    oid=oid, name=label, attnums=attnums, unique=True, primary=is_primary,
                    descending=(False,) * len(key), nulls_first=(False,) * len(key),
                    constraint_oid=constraint_oid,
                )
            )  # fmt: skip
            constraints.append(
                ConstraintDef(
                    oid=constraint_oid, name=label, kind="p" if is_primary else "u", attnums=attnums,
                    index_oid=oid,
                )
            )  # fmt: skip
        return self.add(
            RelationDef(
                oid=self._oid(), schema_oid=self.schemas[schema].oid, schema=schema, name=name, kind="r",
                columns=tuple(defs), indexes=tuple(indexes), constraints=tuple(constraints), virtual=virtual,
            )
        )  # fmt: skip

    def view(self, name: str, sql: str, *columns: str, schema: str = "public") -> RelationDef:
        """Create a view with its stored text and columns (``name type``)."""
        defs = []
        for attnum, text in enumerate(columns, 1):
            column, type_ = text.split(" ", 1)
            defs.append(ColumnDef(attnum=attnum, name=column, type=sql_type(type_)))
        return self.add(
            RelationDef(
                oid=self._oid(), schema_oid=self.schemas[schema].oid, schema=schema, name=name, kind="v",
                columns=tuple(defs), view_sql=sql, view_path=("pg_catalog", "public"),
            )
        )  # fmt: skip

    # --- planner.catalog.Catalog ----------------------------------------------------------------

    def schema(self, name: str) -> SchemaDef | None:
        return self.schemas.get(name)

    def relation(self, schema: str, name: str) -> RelationDef | None:
        return self.by_name.get((schema, name))

    def relation_by_oid(self, oid: int) -> RelationDef | None:
        return self.by_oid.get(oid)

    def relations(self, schema: str) -> Iterable[RelationDef]:
        return [relation for (owner, _), relation in self.by_name.items() if owner == schema]

    def partitions_of(self, oid: int) -> tuple[RelationDef, ...]:
        return tuple(r for r in self.by_name.values() if r.partition_of == oid)

    def typed_tables(self, oid: int) -> tuple[RelationDef, ...]:
        return tuple(r for r in self.by_name.values() if r.of_type == oid)

    def role(self, name: str) -> RoleDef | None:
        return self.roles.get(name)

    def database_named(self, name: str) -> DatabaseDef | None:
        return None
