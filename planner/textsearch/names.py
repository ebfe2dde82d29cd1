"""Names of text search configurations and dictionaries: what regconfig and regdictionary read and print (manual 8.19).

PostgreSQL's own are facts, in pg_catalog; users' are in the catalog, found along the search path, temporary
schemas left out. A stored text names users' by oid, ``'"#16500"'::regconfig``, so that it means the same when
they are renamed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from planner.base.errors import SqlError
from planner.base.identifiers import split_identifier
from planner.catalog import Catalog, ConfigurationDef, DictionaryDef, TextSearchDef
from planner.facts import PG_CATALOG_OID, REGCONFIG, REGDICTIONARY, rows
from planner.types.facts import FIRST_USER_OID

SEARCH_NAMES: Final = {REGCONFIG: "text search configuration", REGDICTIONARY: "text search dictionary"}
"""The types whose values are such names, and what messages call what they name."""

PG_CATALOG: Final = "pg_catalog"
_OPTION: Final = re.compile(r"(\w+) = ('(?:[^']|'')*')")
_BY_OID: Final = re.compile(r'"#(\d+)"')


def _maps() -> Mapping[int, Mapping[int, tuple[int, ...]]]:
    found: dict[int, dict[int, tuple[int, ...]]] = {}
    for row in sorted(rows("ts_config_maps"), key=lambda r: (int(r["maptokentype"]), int(r["mapseqno"]))):
        by_type = found.setdefault(int(row["mapcfg"]), {})
        type_ = int(row["maptokentype"])
        by_type[type_] = (*by_type.get(type_, ()), int(row["mapdict"]))
    return found


def _configurations() -> Iterator[ConfigurationDef]:
    maps = _maps()
    for row in rows("ts_configs"):
        oid = int(row["oid"])
        yield ConfigurationDef(
            oid=oid,
            schema_oid=PG_CATALOG_OID,
            schema=PG_CATALOG,
            name=row["cfgname"],
            maps=tuple(maps.get(oid, {}).items()),
        )


def _dictionaries() -> Iterator[DictionaryDef]:
    for row in rows("ts_dicts"):
        yield DictionaryDef(
            oid=int(row["oid"]),
            schema_oid=PG_CATALOG_OID,
            schema=PG_CATALOG,
            name=row["dictname"],
            template=int(row["dicttemplate"]),
            options=tuple(_OPTION.findall(row["dictinitoption"] or "")),
        )


@functools.cache
def built_in() -> Mapping[int, TextSearchDef]:
    """Return PostgreSQL's own configurations and dictionaries by oid."""
    found: dict[int, TextSearchDef] = {item.oid: item for item in _configurations()}
    found |= {item.oid: item for item in _dictionaries()}
    return found


@functools.cache
def _built_in_named() -> Mapping[tuple[int, str], TextSearchDef]:
    return {(found.named_by, found.name): found for found in built_in().values()}


def by_oid(catalog: Catalog | None, named_by: int, oid: int) -> TextSearchDef | None:
    """Return what has an oid; without a catalog PostgreSQL's own alone."""
    found = built_in().get(oid)
    if found is None and catalog is not None and oid >= FIRST_USER_OID:
        found = catalog.text_search_by_oid(oid)
    return found if found is not None and found.named_by == named_by else None


def _in_schema(catalog: Catalog | None, named_by: int, schema: str, name: str) -> TextSearchDef | None:
    if schema == PG_CATALOG:
        return _built_in_named().get((named_by, name))
    return None if catalog is None else catalog.text_search_named(named_by, schema, name)


def find(
    catalog: Catalog | None, path: Sequence[str], named_by: int, names: Sequence[str]
) -> TextSearchDef | None:
    """Return what a name means, along a path where it has no schema. Raises SqlError 3F000 for a schema that
    is not there.
    """
    if len(names) > 1:
        schema = names[-2]
        if catalog is not None and schema != PG_CATALOG and catalog.schema(schema) is None:
            raise SqlError("3F000", f'schema "{schema}" does not exist')
        return _in_schema(catalog, named_by, schema, names[-1])
    for schema in path:
        if not schema.startswith("pg_temp"):
            found = _in_schema(catalog, named_by, schema, names[-1])
            if found is not None:
                return found
    return None


def find_named(
    named_by: int, text: str, catalog: Catalog | None, path: Sequence[str], database: str
) -> TextSearchDef | None:
    """Return what a possibly qualified name means, None if there is none. SqlError 42602, 42601, 3F000, 0A000."""
    names = split_identifier(text)
    shown = ".".join(names)
    if len(names) > 3:
        raise SqlError("42601", f"improper qualified name (too many dotted names): {shown}")
    if len(names) == 3 and names[0] != database:
        raise SqlError("0A000", f"cross-database references are not implemented: {shown}")
    return find(catalog, path, named_by, names)


def missing(named_by: int, names: Sequence[str]) -> SqlError:
    """Return 42704 for a name that means nothing."""
    return SqlError("42704", f'{SEARCH_NAMES[named_by]} "{".".join(names)}" does not exist')


def read_stored(named_by: int, text: str) -> int:
    """Read a regconfig or regdictionary of a stored text: by oid, or the name of one of PostgreSQL's own.
    SqlError 42704.
    """
    number = _BY_OID.fullmatch(text)
    if number is not None:
        return int(number[1])
    return read_name(named_by, text, None, (PG_CATALOG,), "")


def read_name(named_by: int, text: str, catalog: Catalog | None, path: Sequence[str], database: str) -> int:
    """Read a regconfig or regdictionary: a name, a number, ``-`` for 0. SqlError 42704 and what
    ``find_named`` raises.
    """
    stripped = text.strip()
    if stripped == "-":
        return 0
    if stripped.isascii() and stripped.isdigit():
        return int(stripped)
    found = find_named(named_by, text, catalog, path, database)
    if found is None:
        raise missing(named_by, split_identifier(text))
    return found.oid


def is_visible(catalog: Catalog, path: Sequence[str], found: TextSearchDef) -> bool:
    """Tell whether a name alone means an object."""
    seen = find(catalog, path, found.named_by, (found.name,))
    return seen is not None and seen.oid == found.oid


def built_in_name(named_by: int, oid: int) -> str | None:
    """Return the name of one of PostgreSQL's own."""
    found = by_oid(None, named_by, oid)
    return None if found is None else found.name
