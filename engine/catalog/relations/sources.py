"""Where the rows of catalog relations come from: functions that register themselves by the relation they make rows of.

    @relation("pg_roles", "catalog")          all rows, made once per version of the catalog
    @of_each("pg_attribute", keys=...)        those of one relation, made when looked up, kept while it is the same

They yield dictionaries by column name; what they do not name takes the neutral value of its column.
``engine.session.catalog.virtual`` puts them together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from engine.catalog.kept import Needs
from engine.catalog.relations.builtin_relations import virtual_relations
from engine.catalog.relations.counted import Figures
from engine.catalog.state import CatalogSnapshot
from planner.catalog import RelationDef

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


RowDict: TypeAlias = Mapping[str, Any]
# static: the same for ever; catalog: per catalog version; session: computed for every statement
Scope: TypeAlias = Literal["static", "catalog", "session"]
Maker: TypeAlias = Callable[["Reading"], Iterable[RowDict]]
MakerOfEach: TypeAlias = Callable[["Reading", RelationDef], Iterable[RowDict]]
Locator: TypeAlias = Callable[[CatalogSnapshot, Any], Iterable[RelationDef | None]]


def by_oid(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef | None]:
    """Return the relation whose oid it is."""
    return (catalog.relation_by_oid(value),)


def by_index_oid(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef | None]:
    """Return the table of the index whose oid it is."""
    index = catalog.relation_by_oid(value)
    return () if index is None else (catalog.relation_by_oid(index.table_oid),)


def by_constraint_oid(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef | None]:
    """Return the table of the constraint whose oid it is."""
    found = catalog.constraint_by_oid(value)
    return () if found is None else (found[0],)


def by_row_type(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef | None]:
    """Return the relation of a row type, or of the array type over one; of a composite type the relation that it is."""
    made = catalog.type_by_oid(value)
    if made is not None:
        return (catalog.relation_by_oid(made.relation_oid),) if made.relation_oid else ()
    found = catalog.row_type_relation(value)
    return () if found is None else (found[0],)


def by_name(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef | None]:
    """Return the relations of this name in all schemas."""
    return [catalog.relation(schema.name, value) for schema in catalog.schemas()]


def by_type_name(catalog: CatalogSnapshot, value: Any) -> Iterable[RelationDef | None]:
    """Return the relations whose row types, or array types over them, have this name."""
    return [*by_name(catalog, value), *(by_name(catalog, value[1:]) if value.startswith("_") else ())]


@dataclass(frozen=True, slots=True)
class Source:
    """How rows are made: all by ``make``, or those of each relation, indexes among them, by ``each``.

    Attributes:
        keys: columns that tell which relations a row may belong to.
        needs: see ``of_each``.
        builtin: catalog relations have rows, too.
        figures: what is counted in them.
    """

    scope: Scope
    make: Maker | None = None
    each: MakerOfEach | None = None
    keys: Mapping[str, Locator] = field(default_factory=dict)
    needs: Needs | None = None
    builtin: bool = False
    figures: Figures | None = None


# A relation may have several sources: what is built in (static) and what users made (catalog).
SOURCES: dict[str, tuple[Source, ...]] = {}


def _register(name: str, source: Source) -> None:
    key = name if "." in name else f"pg_catalog.{name}"
    SOURCES[key] = (*SOURCES.get(key, ()), source)


def relation(name: str, scope: Scope) -> Callable[[Maker], Maker]:
    """Register a maker of rows of ``schema.name`` (pg_catalog where no schema is given)."""

    def register(make: Maker) -> Maker:
        _register(name, Source(scope, make))
        return make

    return register


def of_each(
    name: str,
    *,
    keys: Mapping[str, Locator] | None = None,
    needs: Needs | None = None,
    builtin: bool = False,
    figures: Figures | None = None,
) -> Callable[[MakerOfEach], MakerOfEach]:
    """Register a maker of the rows of ``schema.name`` that belong to one relation: a user's, or with ``builtin`` any.

    They may depend on its definition, rights on it, objects other than relations and comments, and on the
    relations whose oids ``needs`` gives; on nothing else of the catalog, and on no session.
    """

    def register(each: MakerOfEach) -> MakerOfEach:
        _register(
            name, Source("catalog", each=each, keys=keys or {}, needs=needs, builtin=builtin, figures=figures)
        )
        return each

    return register


@functools.cache
def keyed_columns(oid: int) -> frozenset[int]:
    """Return the columns of a catalog relation by which users' rows are found one by one."""
    definition = definitions().get(oid)
    if definition is None:
        return frozenset()
    keys = {name for s in SOURCES.get(f"{definition.schema}.{definition.name}", ()) for name in s.keys}
    return frozenset(column.attnum for column in definition.columns if column.name in keys)


@functools.cache
def definitions() -> Mapping[int, RelationDef]:
    """Return what is known of every catalog relation, by oid."""
    return {r.oid: r for r in virtual_relations()}
