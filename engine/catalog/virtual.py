"""Virtual relations: the rows of pg_catalog and information_schema, computed from catalog, facts and sessions.

A relation's rows are made by one function in ``pg_catalog.py``, ``pg_monitor.py`` or ``information_schema.py`` that
yields dictionaries by column name; what it does not name takes the column's neutral value. Relations without a
function are empty: they describe features this server does not have.

    pg_class = what is built in (made once) + what users made (made once per catalog version)

What is static or follows the catalog is cached, with hash indexes by column made at first lookup; so DDL costs the
next reader of the catalog only what users' objects cost.
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
    from engine.connection.session import Session
    from engine.database import Database

RowDict: TypeAlias = Mapping[str, Any]
# static: the same for ever; catalog: per catalog version; recent: the same for at most RECENT_US; session: computed
# for every statement
Scope: TypeAlias = Literal["static", "catalog", "recent", "session"]
Rows: TypeAlias = list[tuple[Any, ...]]

CACHED_CATALOG_VERSIONS = 4
# How old the figures may be that relations of scope "recent" show (row counts in pg_class).
RECENT_US = 1_000_000

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


# A relation may have several sources: what is built in (static) and what users made (catalog).
SOURCES: dict[str, tuple[Source, ...]] = {}


def relation(
    name: str, scope: Scope
) -> Callable[[Callable[[Session], Iterable[RowDict]]], Callable[[Session], Iterable[RowDict]]]:
    """Register a maker of rows of ``schema.name`` (pg_catalog where no schema is given)."""

    def register(
        make: Callable[[Session], Iterable[RowDict]],
    ) -> Callable[[Session], Iterable[RowDict]]:
        key = name if "." in name else f"pg_catalog.{name}"
        SOURCES[key] = (*SOURCES.get(key, ()), Source(scope, make))
        return make

    return register


class _Part:
    """The cached rows of one source, with an index for each column asked for."""

    __slots__ = ("indexes", "made_us", "rows")

    def __init__(self, rows: Rows, made_us: int) -> None:
        self.rows = rows
        self.made_us = made_us
        self.indexes: dict[int, dict[Any, Rows]] = {}

    def find(self, attnum: int, value: Any) -> Rows:
        index = self.indexes.get(attnum)
        if index is None:
            index = self.indexes[attnum] = {}
            position = attnum - 1
            for row in self.rows:
                index.setdefault(row[position], []).append(row)
        return index.get(value, [])


# the parts of one cache, by relation and position among its sources
_Cache: TypeAlias = dict[tuple[int, int], _Part]


class VirtualCatalog:
    """Implements ``engine.executor.VirtualRelations``."""

    def __init__(self, database: Database) -> None:
        """Load the makers."""
        from engine.catalog import (
            information_schema,
            pg_activity,
            pg_catalog,
            pg_default_acl,
            pg_domains,
            pg_functions,
            pg_monitor,
            pg_types,
        )

        self._db = database
        self._makers = (
            pg_catalog,
            pg_types,
            pg_domains,
            pg_functions,
            pg_default_acl,
            pg_monitor,
            pg_activity,
            information_schema,
        )
        self._relations = {r.oid: r for r in virtual_relations()}
        self._sources = {r.oid: SOURCES.get(f"{r.schema}.{r.name}", ()) for r in self._relations.values()}
        self._static: _Cache = {}
        self._by_version: OrderedDict[int, _Cache] = OrderedDict()

    def _cache(self, scope: Scope, catalog: CatalogSnapshot) -> _Cache:
        if scope == "static":
            return self._static
        cache = self._by_version.get(catalog.version)
        if cache is None:
            cache = self._by_version[catalog.version] = {}
            while len(self._by_version) > CACHED_CATALOG_VERSIONS:
                self._by_version.popitem(last=False)
        return cache

    def _part(self, oid: int, position: int, source: Source, session: Any) -> _Part:
        """Return one source's rows, from the cache where they may come from it."""
        if source.scope == "session":
            return _Part(_tuples(self._relations[oid], source.make(session)), 0)
        cache = self._cache(source.scope, session.catalog)
        part = cache.get((oid, position))
        if part is not None and source.scope == "recent" and self._db.clock_us() - part.made_us > RECENT_US:
            part = None
        if part is None:
            rows = _tuples(self._relations[oid], source.make(session))
            part = cache[oid, position] = _Part(rows, self._db.clock_us())
        return part

    def rows(self, oid: int, session: Any) -> Rows:
        """Return all rows of a relation in attnum order; a sequence has one."""
        if oid not in self._sources:
            return [session.system.sequences.state(oid)]
        sources = self._sources[oid]
        if len(sources) == 1:
            return self._part(oid, 0, sources[0], session).rows
        return [
            row
            for position, source in enumerate(sources)
            for row in self._part(oid, position, source, session).rows
        ]

    def lookup(
        self, oid: int, attnum: int, values: Sequence[Any], session: Any
    ) -> Sequence[tuple[Any, ...]] | None:
        """Return the rows whose column equals one of ``values``; None where nothing is cached to index."""
        sources = self._sources.get(oid)
        if sources is None:
            return None
        if any(source.scope == "session" for source in sources):
            return None
        wanted = values if len(values) == 1 else dict.fromkeys(v for v in values if v is not None)
        parts = [self._part(oid, position, source, session) for position, source in enumerate(sources)]
        if len(parts) == 1 and len(values) == 1:
            return parts[0].find(attnum, values[0])
        return [row for value in wanted for part in parts for row in part.find(attnum, value)]


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
