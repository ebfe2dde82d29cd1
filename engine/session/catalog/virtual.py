"""Virtual relations: the rows of pg_catalog and information_schema, computed from catalog, facts and sessions.

A relation's rows are made by functions in ``pg_catalog.py``, ``pg_monitor.py``, ``information_schema.py`` and
their like that yield dictionaries by column name; what they do not name takes the column's neutral value.
Relations without a function are empty: they describe features this server does not have.

    pg_class = what is built in (made once) + what belongs to users' relations (made once per relation:
    ``engine.catalog.kept``)

What is static or follows the catalog is cached, with hash indexes by column made at first look-up. Most of
what is asked for by name or oid is the rows of one relation: these are made, or found, by themselves, however
many others there are.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from engine.catalog import parameters
from engine.catalog.acl_texts import acl_texts
from engine.catalog.kept import Found, KeptRows, Part, Rows, both, only
from engine.catalog.relations import (
    pg_builtins,
    pg_catalog,
    pg_collations,
    pg_composites,
    pg_conversions,
    pg_default_acl,
    pg_depend,
    pg_domains,
    pg_extensions,
    pg_foreign,
    pg_functions,
    pg_opclasses,
    pg_policies,
    pg_ranges,
    pg_shared,
    pg_shdepend,
    pg_statistic_ext,
    pg_statistics,
    pg_text_search,
    pg_triggers,
    pg_types,
)
from engine.catalog.relations.counted import CountedRows
from engine.catalog.relations.information import constraints as information_constraints
from engine.catalog.relations.information import grants as information_grants
from engine.catalog.relations.information import rights as information_rights
from engine.catalog.relations.information import routines as information_routines
from engine.catalog.relations.information import schema as information_schema
from engine.catalog.relations.information import usage as information_usage
from engine.catalog.relations.information.visible import visible
from engine.catalog.relations.sources import (
    SOURCES,
    Maker,
    RowDict,
    Source,
    definitions,
)
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.attribute_numbers import numbered
from engine.catalog.storage.stored import PG_CLASS_OID, PG_PROC_OID, PG_TYPE_OID
from engine.session.catalog import pg_activity, pg_monitor
from pgwire.codecs.settings import STORED_TEXT
from pgwire.give_way import paced, paced_iter
from pgwire.release import release_all
from planner.base.quoting import printed
from planner.catalog import RelationDef
from planner.catalog.acl_items import AclItem
from planner.facts import BOOL, CHAR, FLOAT4, FLOAT8, INT2, INT4, INT8, NAME, OID, REGPROC, XID
from planner.types.facts import FIRST_USER_OID
from txn.base.slices import over

if TYPE_CHECKING:
    from engine.catalog.reading import Reading
    from engine.session.store_server import Server
    from planner.functions.session import EvalSession

_NO_SESSION: Final = cast("Reading", None)
"""For what is built in, which looks at none."""
CACHED_CATALOG_VERSIONS = 4
# The larger ones of what is built in, which depend on no session
PRELOADED: Final = (
    "pg_catalog.pg_attribute",
    "pg_catalog.pg_type",
    "pg_catalog.pg_proc",
    "pg_catalog.pg_operator",
)
# What clients that list relations read, by the columns that they look them up by
BROWSED: Final[Mapping[str, frozenset[str]]] = {
    "pg_catalog.pg_class": frozenset(("oid", "relnamespace")),
    "pg_catalog.pg_type": frozenset(("oid",)),
    "pg_catalog.pg_index": frozenset(("indexrelid",)),
    "pg_catalog.pg_inherits": frozenset(("inhrelid", "inhparent")),
    "pg_catalog.pg_constraint": frozenset(("oid",)),
    "pg_catalog.pg_trigger": frozenset(),
    "pg_catalog.pg_rewrite": frozenset(),
    "pg_catalog.pg_description": frozenset(("objoid",)),
}

# What has texts that print otherwise for who quotes all names, or writes backslashes twice
_PRINTED: Final = frozenset((
    "pg_catalog.pg_indexes", "information_schema.attributes", "information_schema.check_constraints", "information_schema.columns",
    "information_schema.parameters", "information_schema.routines", "information_schema.sequences",
))  # fmt: skip

# In which they print for all others
_STYLES: Final = (
    STORED_TEXT.date_style, STORED_TEXT.date_order, STORED_TEXT.interval_style, STORED_TEXT.bytea_output,
)  # fmt: skip

# The neutral value of NOT NULL columns that a row does not name.
_NEUTRAL: dict[int, Any] = {
    BOOL: False, INT2: 0, INT4: 0, INT8: 0, OID: 0, XID: 0, REGPROC: 0, FLOAT4: 0.0, FLOAT8: 0.0, NAME: "",
    CHAR: "", 22: (), 30: (), 25: "",
}  # fmt: skip


_static: Final[dict[tuple[int, int], Part]] = {}
"""The rows of static sources by relation and position among its sources (-1: of all of them): one list for
all databases of a process."""


class VirtualCatalog:
    """Implements ``engine.base.executor.VirtualRelations``."""

    def __init__(self, database: Server) -> None:
        """Load the makers."""
        self._db = database
        self._makers = (
            pg_catalog,
            pg_builtins,
            pg_shared,
            pg_shdepend,
            pg_depend,
            pg_types,
            pg_composites,
            pg_collations,
            pg_conversions,
            pg_domains,
            pg_functions,
            pg_extensions,
            pg_foreign,
            pg_ranges,
            pg_triggers,
            pg_policies,
            pg_text_search,
            pg_default_acl,
            pg_monitor,
            pg_opclasses,
            pg_statistic_ext,
            pg_statistics,
            pg_activity,
            parameters,
            information_schema,
            information_constraints,
            information_grants,
            information_rights,
            information_routines,
            information_usage,
        )
        self._relations = definitions()
        self._named = {f"{r.schema}.{r.name}": r for r in self._relations.values()}
        self._sources = {r.oid: SOURCES.get(f"{r.schema}.{r.name}", ()) for r in self._relations.values()}
        self._places = {
            r.oid: {column.name: i for i, column in enumerate(r.columns)} for r in self._relations.values()
        }
        # the parts of other than static sources by catalog version, by relation and position among its sources
        self._by_version: OrderedDict[int, dict[tuple[int, int], Part]] = OrderedDict()
        self._together: dict[int, tuple[list[Rows], Rows]] = {}  # the rows of several sources, as read last
        # by database, relation and position
        self._kept: dict[tuple[int, int, int], KeptRows | CountedRows] = {}

    def preload(self) -> None:
        """Make the rows of what is built in that most clients ask for. For a thread; idempotent."""
        for name in PRELOADED:
            definition = self._named[name]
            for position, source in enumerate(self._sources[definition.oid]):
                if source.scope == "static":
                    self._part(definition.oid, position, source, _NO_SESSION)

    def _cache(self, catalog: CatalogSnapshot) -> dict[tuple[int, int], Part]:
        cache = self._by_version.get(catalog.version)
        if cache is None:
            cache = self._by_version[catalog.version] = {}
            while len(self._by_version) > CACHED_CATALOG_VERSIONS:
                release_all(self._by_version.popitem(last=False)[1])
        return cache

    def _kept_rows(self, oid: int, position: int, source: Source, database: int) -> KeptRows | CountedRows:
        kept = self._kept.get((database, oid, position))
        if kept is None:
            definition = self._relations[oid]
            each = source.each
            if each is None:
                raise AssertionError("a relation without a function for each database is kept")
            made = KeptRows(
                lambda session, item: _tuples(definition, numbered(definition, each(session, item), session)),
                source.needs,
                builtin=source.builtin,
            )
            kept = made
            if source.figures is not None:
                kept = CountedRows(
                    made,
                    source.figures,
                    self._places[oid],
                    lambda: self._db.clock_us(),
                    lambda: self._db.store.read_points(),
                )
            self._kept[database, oid, position] = kept
        return kept

    def forgetting(self) -> Iterator[None]:
        """Let go of the rows of what is no more, in slices: databases, and relations of the others."""
        catalogs = {space.oid: space.catalog for space in self._db.spaces}
        for key, kept in list(self._kept.items()):
            catalog = catalogs.get(key[0])
            if catalog is not None:
                kept.forget(catalog)
            else:
                self._kept.pop(key, None)
            if over():
                yield

    def recount(self) -> None:
        """Have figures be of now for whoever reads them next: ANALYZE or VACUUM has ended."""
        for kept in self._kept.values():
            if isinstance(kept, CountedRows):
                kept.recount()

    def _part(self, oid: int, position: int, source: Source, session: Reading) -> Part:
        """Return one source's rows, from the cache where they may come from it."""
        make, definition = source.make, self._relations[oid]
        if source.scope != "catalog":
            part = _static.get((oid, position))
            if part is None:
                if make is None:
                    raise AssertionError("a relation has neither a part nor a function that makes it")
                part = Part(printed(session, self._made, definition, make, session))
                if source.scope == "static":
                    _static[oid, position] = part
            return part
        catalog: CatalogSnapshot = session.catalog
        if self._prints_otherwise(definition, session):
            return Part(printed(session, self._made, definition, make or all_of(source), session))
        if source.figures is not None:
            return self._kept_rows(oid, position, source, catalog.database).part(session, catalog)
        cache = self._cache(catalog)
        part = cache.get((oid, position))
        if part is None:
            if make is not None:
                part = Part(self._made(definition, make, session))
            else:
                part = self._kept_rows(oid, position, source, catalog.database).part(session, catalog)
            cache[oid, position] = part
        return part

    @staticmethod
    def _made(definition: RelationDef, make: Maker, session: Reading) -> Rows:
        return _tuples(definition, numbered(definition, make(session), session))

    @staticmethod
    def _prints_otherwise(definition: RelationDef, session: Reading) -> bool:
        """Tell whether the rows are made for the session alone, because of how names and literals are written
        in what it reads.
        """
        read = session.output_settings
        styles = read.date_style, read.date_order, read.interval_style, read.bytea_output
        return (session.quotes_all or session.escapes or styles != _STYLES) and (
            f"{definition.schema}.{definition.name}" in _PRINTED
        )

    def rows(self, oid: int, session: EvalSession) -> Rows:
        """Return all rows of a relation that the session's role may see, in attnum order; a sequence has one."""
        reading = cast("Reading", session)  # all sessions are
        if oid not in self._sources:
            return [reading.system.sequences.state(oid)]
        rows = self._all_rows(oid, reading)
        seen = visible(reading, self._relations[oid], self._places[oid])
        return rows if seen is None else seen(rows)

    def _all_rows(self, oid: int, session: Reading) -> Rows:
        rows = self._rows_of_sources(oid, session)
        return rows if oid not in _LISTS else self._with_rights(rows, oid, session)

    def _with_rights(self, rows: Rows, oid: int, session: Reading) -> Rows:
        """Return the rows of one of these with the rights to what is PostgreSQL's own, which few databases
        have granted or revoked.
        """
        lists = built_in_lists(session.catalog, oid)
        if not lists:
            return rows
        place = self._places[oid][_LISTS[oid]]
        return [
            row
            if row[0] not in lists
            else (*row[:place], acl_texts(session, lists[row[0]]), *row[place + 1 :])
            for row in paced(rows)
        ]

    def _rows_of_sources(self, oid: int, session: Reading) -> Rows:
        parts = [
            self._part(oid, position, source, session).rows
            for position, source in enumerate(self._sources[oid])
        ]
        if len(parts) == 1:
            return parts[0]
        parts = [rows for rows in parts if rows]
        known = self._together.get(oid)
        if known is None or len(known[0]) != len(parts) or not all(map(operator.is_, known[0], parts)):
            known = self._together[oid] = (parts, list(itertools.chain.from_iterable(parts)))
        return known[1]

    def find_all(
        self, oid: int, attnum: int, session: EvalSession
    ) -> Callable[[Sequence[Any]], list[Found]] | None:
        """Return the function from values to what is found of each, by an index over all rows.

        None where nothing is cached to index. It serves one statement. Nobody changes what is found.
        """
        reading = cast("Reading", session)  # all sessions are
        sources = self._sources.get(oid)
        if sources is None or any(source.scope == "session" for source in sources):
            return None
        if oid in _LISTS and built_in_lists(reading.catalog, oid):
            return None
        seen = visible(reading, self._relations[oid], self._places[oid])
        getters = [
            self._part(oid, position, source, reading).getter(attnum)
            for position, source in enumerate(sources)
            if source.scope != "static"
        ]
        if len(getters) < len(sources):
            getters.insert(0, self._built_in(oid, reading).getter(attnum))
        first, *others = getters

        def find(values: Sequence[Any]) -> list[Found]:
            found = list(map(first, values))
            for other in others:
                found = [
                    one if more is None else both(one, more)
                    for one, more in zip(found, map(other, values), strict=True)
                ]
            return found if seen is None else only(found, seen)

        return find

    def finder(self, oid: int, attnum: int, session: EvalSession) -> Callable[[Any], Rows] | None:
        """Return the function from a value to the rows whose column equals it, as long as the statement runs.

        None where nothing is cached to index. Nobody changes the lists.
        """
        reading = cast("Reading", session)  # all sessions are
        find = self._finder_of_all(oid, attnum, reading)
        seen = None if find is None else visible(reading, self._relations[oid], self._places[oid])
        if find is None or seen is None:
            return find
        found, keep = find, seen
        return lambda value: keep(found(value))

    def _finder_of_all(self, oid: int, attnum: int, session: Reading) -> Callable[[Any], Rows] | None:
        sources = self._sources.get(oid)
        if sources is None or any(source.scope == "session" for source in sources):
            return None
        if oid in _LISTS and built_in_lists(session.catalog, oid):
            return None
        finders = [
            self._finder(oid, position, source, attnum, session)
            for position, source in enumerate(sources)
            if source.scope != "static"
        ]
        if len(finders) < len(sources):
            built_in = self._built_in(oid, session)
            finders.insert(0, built_in.finder(attnum))
        if len(finders) == 1:
            return finders[0]

        def find(value: Any) -> Rows:
            found: Rows = []
            for each in finders:
                rows = each(value)
                if rows:
                    found = [*found, *rows] if found else rows
            return found

        return find

    def _built_in(self, oid: int, session: Reading) -> Part:
        """Return the rows of all static sources of a relation."""
        part = _static.get((oid, -1))
        if part is None:
            rows: Rows = []
            for position, source in enumerate(self._sources[oid]):
                if source.scope == "static":
                    rows += self._part(oid, position, source, session).rows
            part = _static[oid, -1] = Part(rows)
        return part

    def _finder(
        self, oid: int, position: int, source: Source, attnum: int, session: Reading
    ) -> Callable[[Any], Rows]:
        locate = source.keys.get(self._relations[oid].columns[attnum - 1].name)
        if locate is None or self._prints_otherwise(self._relations[oid], session):
            return self._part(oid, position, source, session).finder(attnum)
        catalog: CatalogSnapshot = session.catalog
        kept = self._kept_rows(oid, position, source, catalog.database)
        place = attnum - 1

        def find(value: Any) -> Rows:
            if value == 0:  # stands for none in a column of oids
                return self._part(oid, position, source, session).find(attnum, value)
            return [
                row
                for item in locate(catalog, value)
                if item is not None
                for row in kept.of(session, catalog, item)
                if row[place] == value
            ]

        return find

    def prepare(self, oid: int, session: EvalSession, attnum: int = 0) -> Iterator[None]:
        """Make the rows of a relation ready for ``rows``, or for ``finder``, in steps between which others
        have their turns.
        """
        reading = cast("Reading", session)  # all sessions are
        name = self._relations[oid].columns[attnum - 1].name if attnum and oid in self._relations else ""
        for position, source in enumerate(self._sources.get(oid, ())):
            if source.each is not None and name not in source.keys:
                catalog: CatalogSnapshot = reading.catalog
                yield from self._kept_rows(oid, position, source, catalog.database).prepare(reading, catalog)

    def ahead(self, session: Reading) -> Iterator[None]:
        """Make what browsing reads whole, in steps between which others have their turns
        (``engine.session.catalog.ahead``).
        """
        for name, columns in BROWSED.items():
            definition = self._named[name]
            yield from self.prepare(definition.oid, session)
            self._all_rows(definition.oid, session)
            yield
            for column in definition.columns:
                if column.name in columns:
                    self.find_all(definition.oid, column.attnum, session)
                    yield


_LISTS: Final = {PG_TYPE_OID: "typacl", PG_PROC_OID: "proacl", PG_CLASS_OID: "relacl"}
"""The catalogs with rows of PostgreSQL's own to which rights can be changed, by oid, and the column that has these."""


def built_in_lists(catalog: CatalogSnapshot, class_oid: int) -> Mapping[int, tuple[AclItem, ...]]:
    """Return the access lists of types, functions or relations of PostgreSQL's own that have others than by
    default, by oid, kept with the catalog.
    """
    known = catalog.derived.get(built_in_lists)
    if known is None:
        found: dict[int, dict[int, tuple[AclItem, ...]]] = {oid: {} for oid in _LISTS}
        for acl in catalog.acls():
            if acl.class_oid in _LISTS and acl.object_oid < FIRST_USER_OID and not acl.sub_id:
                found[acl.class_oid][acl.object_oid] = acl.items
        known = catalog.derived[built_in_lists] = found
    return cast("Mapping[int, Mapping[int, tuple[AclItem, ...]]]", known)[class_oid]


def all_of(source: Source) -> Maker:
    """Return what makes the rows of all relations from what makes those of one."""
    each = source.each
    if each is None:
        raise AssertionError("all rows are asked of a relation that has no function for each object")

    def make(session: Reading) -> Iterator[RowDict]:
        catalog: CatalogSnapshot = session.catalog
        for item in catalog.all_relations():
            if source.builtin or not item.virtual:
                yield from each(session, item)

    return make


@functools.cache
def _neutral_row(oid: int) -> Mapping[str, Any]:
    """Return what each column of a catalog relation has unless something is said."""
    definition = definitions()[oid]
    return {c.name: _NEUTRAL.get(c.type.oid) if c.not_null else None for c in definition.columns}


def _tuples(definition: RelationDef, rows: Iterable[RowDict]) -> Rows:
    neutral = _neutral_row(definition.oid)
    result: Rows = []
    for row in paced_iter(rows):
        merged = {**neutral, **row}
        if len(merged) != len(neutral):
            unknown = set(merged) - set(neutral)
            raise LookupError(f"{definition.name} has no column {sorted(unknown)}")
        result.append(tuple(merged.values()))
    return result
