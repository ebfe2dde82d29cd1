"""The extensions that there are, and what is said of them (CREATE EXTENSION, manual 38.17).

An extension here is a list of functions of the catalog, each of which stands for a built-in one
(``planner.facts.ExtensionFact``, ``planner.functions.extension_*``), and of types, which are known to planner
and codecs whether the extension is there or not; so are the types' operators and casts. pg_trgm's operators
are calls of its functions (``planner.bind.define.extension_operators``); operator classes are in
``planner.indexing.opclass_extensions``. unaccent brings a text search template and a dictionary, lo a domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from planner.catalog import Catalog, ExtensionDef
from planner.facts import OID, PG_CATALOG_OID, facts

COMMENTS: Final[Mapping[str, str]] = {
    "bloom": "indexes of integers and texts for conditions on any of their columns",
    "btree_gin": "plain types in gin indexes, beside arrays and documents",
    "citext": "texts that compare without regard to case",
    "btree_gist": "plain types in gist indexes (exclusion constraints have them without it)",
    "fuzzystrmatch": "Levenshtein distances and Soundex of strings",
    "hstore": "sets of keys with values",
    "lo": "large objects that go with what refers to them",
    "pg_trgm": "how similar texts are, by groups of three characters",
    "pgcrypto": "hashes, keyed hashes and random bytes",
    "unaccent": "characters without diacritics",
    "uuid-ossp": "UUIDs by time, by name and at random",
}

UNACCENT_TEMPLATE: Final = 9060
"""The text search template that the extension unaccent brings, in its schema; the oid is of this project."""

TEMPLATES: Final[Mapping[str, tuple[int, str]]] = {"unaccent": (UNACCENT_TEMPLATE, "unaccent")}
"""Oid and name of the text search template of an extension."""

DICTIONARIES: Final[Mapping[str, tuple[str, tuple[tuple[str, str], ...]]]] = {
    "unaccent": ("unaccent", (("rules", "'unaccent'"),))
}
"""Name and options of the text search dictionary that an extension makes of its template."""

DOMAINS: Final[Mapping[str, tuple[str, int, str]]] = {"lo": ("lo", OID, "lo_oid")}
"""Name of the domain that an extension makes, what it is over, and the function in SQL that returns that of
its values."""

PLPGSQL: Final = ExtensionDef(oid=13559, name="plpgsql", schema_oid=PG_CATALOG_OID, version="1.0")
"""The one that every database has from its beginning; it has no functions that users call."""

PLPGSQL_COMMENT: Final = "PL/pgSQL procedural language"


WITH_OPERATORS: Final = ("citext", "hstore")
"""Those with operators of types of their own."""


def with_operators(catalog: Catalog, path: Sequence[str]) -> tuple[str, ...]:
    """Return which of them are there, in a schema of the path."""
    found = []
    for name in WITH_OPERATORS:
        made = catalog.extension(name)
        if made is not None and any(
            (schema := catalog.schema(entry)) is not None and schema.oid == made.schema_oid for entry in path
        ):
            found.append(name)
    return tuple(found)


def available() -> Iterator[tuple[Any, ...]]:
    """Yield pg_available_extensions(): name, default_version, comment."""
    yield PLPGSQL.name, PLPGSQL.version, PLPGSQL_COMMENT
    for fact in facts().extensions.values():
        yield fact.name, fact.version, COMMENTS[fact.name]


def versions() -> Iterator[tuple[Any, ...]]:
    """Yield pg_available_extension_versions(): one version of each; a trusted one any role may have in its database."""
    yield PLPGSQL.name, PLPGSQL.version, True, True, False, "pg_catalog", None, PLPGSQL_COMMENT
    for fact in facts().extensions.values():
        yield fact.name, fact.version, True, fact.trusted, fact.relocatable, None, None, COMMENTS[fact.name]
