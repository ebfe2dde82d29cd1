"""Virtual relations: the rows of pg_catalog and information_schema, computed from catalog, facts and sessions.

A relation's rows are made by one function in ``pg_catalog.py``, ``pg_monitor.py`` or ``information_schema.py`` that
yields dictionaries by column name; what it does not name takes the column's neutral value. Relations without a
function are empty: they describe features this server does not have.

    pg_class = what is built in (made once) + what users made (made once per catalog version)

What is static or follows the catalog is cached, with hash indexes by column made at first lookup. Rows that belong to one
user's relation each are kept with it, so that DDL costs the next reader of the catalog the rows of what it changed; row counts,
which change without DDL, are put into the rows there are.

    version 7   t1: rows   t2: rows   t3: rows          a relation whose definition is the same object has the same rows,
    version 8   t1: same   t2: made   t3: same          as long as nothing but relations and comments has changed
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from engine.catalog.state import CatalogSnapshot, virtual_relations
from planner.catalog import RelationDef
from planner.facts import BOOL, CHAR, FLOAT4, FLOAT8, INT2, INT4, INT8, NAME, OID, REGPROC, XID

if TYPE_CHECKING:
    from engine.connection.session import Session
    from engine.database import Database

RowDict: TypeAlias = Mapping[str, Any]
# static: the same for ever; catalog: per catalog version; session: computed for every statement
Scope: TypeAlias = Literal["static", "catalog", "session"]
Rows: TypeAlias = list[tuple[Any, ...]]

CACHED_CATALOG_VERSIONS = 4
# How old the figures may be that pg_class shows, if there have been commits since.
RECENT_US = 1_000_000

# The neutral value of NOT NULL columns that a row does not name.
_NEUTRAL: dict[int, Any] = {
    BOOL: False, INT2: 0, INT4: 0, INT8: 0, OID: 0, XID: 0, REGPROC: 0, FLOAT4: 0.0, FLOAT8: 0.0, NAME: "",
    CHAR: "", 22: (), 30: (), 25: "",
}  # fmt: skip


Maker: TypeAlias = Callable[["Session"], Iterable[RowDict]]
MakerOfEach: TypeAlias = Callable[["Session", RelationDef], Iterable[RowDict]]
# Given where each column stands, and the rows: which rows have other figures now, by position, and these.
Recount: TypeAlias = Callable[["Session", Mapping[str, int], Rows], Iterator[tuple[int, RowDict]]]


@dataclass(frozen=True, slots=True)
class Source:
    """How one relation's rows are made: all by ``make``, or those of each user's relation, indexes included, by ``each``."""

    scope: Scope
    make: Maker | None = None
    each: MakerOfEach | None = None
    recount: Recount | None = None  # one row for each relation, then


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


def of_each(name: str, *, recount: Recount | None = None) -> Callable[[MakerOfEach], MakerOfEach]:
    """Register a maker of the rows of pg_catalog's ``name`` that belong to one user's relation.

    They may depend on its definition, and on objects that are no relations or comments.
    """

    def register(each: MakerOfEach) -> MakerOfEach:
        _register(name, Source("catalog", each=each, recount=recount))
        return each

    return register


class _Part:
    """The cached rows of one source, with an index for each column asked for.

    Attributes:
        kept: the rows of each relation, by its oid, with the definition that they were made of.
        basis: what else they were made of (``CatalogSnapshot.basis``).
        counted_us, counted_at: when the figures were looked at, and after which commits (None: unknown).
    """

    __slots__ = ("basis", "counted_at", "counted_us", "indexes", "kept", "rows")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.indexes: dict[int, dict[Any, Rows]] = {}
        self.kept: dict[int, tuple[RelationDef, Rows]] = {}
        self.basis = -1
        self.counted_us = 0
        self.counted_at: object = None

    def find(self, attnum: int, value: Any) -> Rows:
        index = self.indexes.get(attnum)
        if index is None:
            index = self.indexes[attnum] = {}
            position = attnum - 1
            for row in self.rows:
                index.setdefault(row[position], []).append(row)
        return index.get(value, [])

    def replace(self, changed: Sequence[tuple[int, tuple[Any, ...]]]) -> None:
        """Put other rows in the places of some: those of as many relations, which have one each."""
        if not changed:
            return
        self.rows = list(self.rows)  # a reader may be at the old list
        for position, row in changed:
            self.rows[position] = row
            oid = row[0]
            self.kept[oid] = (self.kept[oid][0], [row])
        self.indexes = {}


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
        self._last: dict[
            tuple[int, int, int], _Part
        ] = {}  # the parts of the latest catalogs read, by database and key

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
            assert source.make is not None
            return _Part(_tuples(self._relations[oid], source.make(session)))
        cache = self._cache(source.scope, session.catalog)
        part = cache.get((oid, position))
        if part is None:
            if source.each is not None:
                part = self._of_relations((oid, position), source.each, session)
            else:
                assert source.make is not None
                part = _Part(_tuples(self._relations[oid], source.make(session)))
            cache[oid, position] = part
        if source.recount is not None:
            self._recount(oid, part, source.recount, session)
        return part

    def _of_relations(self, key: tuple[int, int], each: MakerOfEach, session: Any) -> _Part:
        """Return the rows of all users' relations; those are made that the part made last does not have."""
        catalog: CatalogSnapshot = session.catalog
        definition = self._relations[key[0]]
        last = self._last.get((catalog.database, *key))
        kept = last.kept if last is not None and last.basis == catalog.basis else {}
        part = _Part([])
        part.basis = catalog.basis
        for item in catalog.all_relations():
            if item.virtual:
                continue
            found = kept.get(item.oid)
            if found is None or found[0] is not item:
                found = (item, _tuples(definition, each(session, item)))
            part.kept[item.oid] = found
            part.rows += found[1]
        if last is None or catalog is session.space.catalog:
            self._last[catalog.database, *key] = part
        return part

    def _recount(self, oid: int, part: _Part, recount: Recount, session: Any) -> None:
        """Put the figures of now into the rows, unless they are those of lately, or nothing has been committed since."""
        now = self._db.clock_us()
        if part.counted_us and now - part.counted_us <= RECENT_US:
            return
        txn = session.block.txn
        # what a writing transaction counts is its own; nobody else is to keep that
        at = None if txn is not None and txn.writing else self._db.store.read_points()
        if at is None or at != part.counted_at:
            at_column = {column.name: i for i, column in enumerate(self._relations[oid].columns)}
            changed: list[tuple[int, tuple[Any, ...]]] = []
            for position, figures in recount(session, at_column, part.rows):
                row = list(part.rows[position])
                for name, value in figures.items():
                    row[at_column[name]] = value
                changed.append((position, tuple(row)))
            part.replace(changed)
        part.counted_us, part.counted_at = now, at

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


@functools.cache
def _neutral_row(oid: int) -> Mapping[str, Any]:
    """Return what each column of a catalog relation has unless something is said."""
    definition = next(r for r in virtual_relations() if r.oid == oid)
    return {c.name: _NEUTRAL.get(c.type.oid) if c.not_null else None for c in definition.columns}


def _tuples(definition: RelationDef, rows: Iterable[RowDict]) -> Rows:
    neutral = _neutral_row(definition.oid)
    result: Rows = []
    for row in rows:
        merged = {**neutral, **row}
        if len(merged) != len(neutral):
            unknown = set(merged) - set(neutral)
            raise LookupError(f"{definition.name} has no column {sorted(unknown)}")
        result.append(tuple(merged.values()))
    return result
