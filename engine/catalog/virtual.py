"""Virtual relations: the rows of pg_catalog and information_schema, computed from catalog, facts and sessions.

A relation's rows are made by one function in ``pg_catalog.py``, ``pg_monitor.py`` or ``information_schema.py`` that
yields dictionaries by column name; what it does not name takes the column's neutral value. Relations without a
function are empty: they describe features this server does not have. Static relations and those that follow
the catalog are cached per catalog version, with hash indexes by column made at first lookup.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from engine.catalog.state import CatalogSnapshot, virtual_relations
from planner.catalog import RelationDef
from planner.facts import BOOL, CHAR, FLOAT4, FLOAT8, INT2, INT4, INT8, NAME, OID, REGPROC, XID

if TYPE_CHECKING:
    from engine.database import Database
    from engine.session import Session

RowDict: TypeAlias = Mapping[str, Any]
# static: the same for ever; catalog: per catalog version; session: computed for every statement
Scope: TypeAlias = Literal["static", "catalog", "session"]
Rows: TypeAlias = list[tuple[Any, ...]]

CACHED_CATALOG_VERSIONS = 4

# The neutral value of NOT NULL columns that a row does not name.
_NEUTRAL: dict[int, Any] = {
    BOOL: False, INT2: 0, INT4: 0, INT8: 0, OID: 0, XID: 0, REGPROC: 0, FLOAT4: 0.0, FLOAT8: 0.0, NAME: "",
    CHAR: "", 22: (), 30: (), 25: "",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """How one relation's rows are made."""

    scope: Scope
    make: Callable[[Session], Iterable[RowDict]]


SOURCES: dict[str, Source] = {}


def relation(
    name: str, scope: Scope
) -> Callable[[Callable[[Session], Iterable[RowDict]]], Callable[[Session], Iterable[RowDict]]]:
    """Register the maker of ``schema.name`` (pg_catalog where no schema is given)."""

    def register(
        make: Callable[[Session], Iterable[RowDict]],
    ) -> Callable[[Session], Iterable[RowDict]]:
        SOURCES[name if "." in name else f"pg_catalog.{name}"] = Source(scope, make)
        return make

    return register


class _Cache:
    """Rows and indexes of the relations at one scope."""

    __slots__ = ("indexes", "rows")

    def __init__(self) -> None:
        self.rows: dict[int, Rows] = {}
        self.indexes: dict[tuple[int, int], dict[Any, Rows]] = {}


class VirtualCatalog:
    """Implements ``engine.executor.VirtualRelations``."""

    def __init__(self, database: Database) -> None:
        """Load the makers."""
        from engine.catalog import information_schema, pg_catalog, pg_monitor

        self._db = database
        self._makers = (pg_catalog, pg_monitor, information_schema)
        self._relations = {r.oid: r for r in virtual_relations()}
        self._static = _Cache()
        self._by_version: OrderedDict[int, _Cache] = OrderedDict()

    def _cache(self, scope: Scope, catalog: CatalogSnapshot) -> _Cache | None:
        if scope == "static":
            return self._static
        if scope == "session":
            return None
        cache = self._by_version.get(catalog.version)
        if cache is None:
            cache = self._by_version[catalog.version] = _Cache()
            while len(self._by_version) > CACHED_CATALOG_VERSIONS:
                self._by_version.popitem(last=False)
        return cache

    def rows(self, oid: int, session: Any) -> Rows:
        """Return all rows of a relation in attnum order."""
        definition = self._relations[oid]
        source = SOURCES.get(f"{definition.schema}.{definition.name}")
        if source is None:
            return []
        cache = self._cache(source.scope, session.catalog)
        if cache is None:
            return _tuples(definition, source.make(session))
        rows = cache.rows.get(oid)
        if rows is None:
            rows = cache.rows[oid] = _tuples(definition, source.make(session))
        return rows

    def lookup(
        self, oid: int, attnum: int, values: Sequence[Any], session: Any
    ) -> Sequence[tuple[Any, ...]] | None:
        """Return the rows whose column equals one of ``values``; None where nothing is cached to index."""
        definition = self._relations[oid]
        source = SOURCES.get(f"{definition.schema}.{definition.name}")
        if source is None:
            return []
        cache = self._cache(source.scope, session.catalog)
        if cache is None:
            return None
        index = cache.indexes.get((oid, attnum))
        if index is None:
            index = {}
            for row in self.rows(oid, session):
                index.setdefault(row[attnum - 1], []).append(row)
            cache.indexes[oid, attnum] = index
        if len(values) == 1:
            return index.get(values[0], ())
        seen = dict.fromkeys(value for value in values if value is not None)
        return [row for value in seen for row in index.get(value, ())]


def _tuples(definition: RelationDef, rows: Iterable[RowDict]) -> Rows:
    columns = definition.columns
    neutral = {c.name: _NEUTRAL.get(c.type.oid) if c.not_null else None for c in columns}
    names = tuple(neutral)
    result: Rows = []
    for row in rows:
        merged = {**neutral, **row}
        if len(merged) != len(names):
            unknown = set(merged) - set(names)
            raise LookupError(f"{definition.name} has no column {sorted(unknown)}")
        result.append(tuple(merged.values()))
    return result
