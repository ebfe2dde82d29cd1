"""The extensions that there are, and what is said of them (CREATE EXTENSION, manual 38.17).

An extension here is a list of functions of the catalog, each of which stands for a built-in one (``planner.facts.ExtensionFact``,
``planner.builtins.extension_*``). What they add to operators, types and index methods is there without them, or is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from planner.facts import facts

COMMENTS: Final[Mapping[str, str]] = {
    "btree_gist": "plain types in exclusion constraints (built in: it adds nothing)",
    "fuzzystrmatch": "Levenshtein distances and Soundex of strings",
    "pgcrypto": "hashes, keyed hashes and random bytes",
    "unaccent": "characters without diacritics",
    "uuid-ossp": "UUIDs by time, by name and at random",
}

INSTEAD: Final[Mapping[str, str]] = {
    "citext": "An index on lower(column) may serve instead.",
    "hstore": "Columns of type jsonb may serve instead.",
    "pg_trgm": "levenshtein() of fuzzystrmatch, LIKE and regular expressions may serve instead.",
    "plpgsql": "Functions can be written in LANGUAGE sql.",
}
"""Hints for some of those that there are not."""


def available() -> Iterator[tuple[Any, ...]]:
    """Yield pg_available_extensions(): name, default_version, comment."""
    return ((fact.name, fact.version, COMMENTS[fact.name]) for fact in facts().extensions.values())


def versions() -> Iterator[tuple[Any, ...]]:
    """Yield pg_available_extension_versions(): one version of each, which any role may have in its database."""
    for name, version, comment in available():
        yield name, version, True, True, True, None, None, comment
