"""What pg_description says of PostgreSQL's own objects of full-text search, and of the functions that run its
parser.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Final

from planner.catalog import ConfigurationDef
from planner.facts import facts, rows
from planner.textsearch.names import built_in

PG_PROC, PG_TS_DICT, PG_TS_PARSER, PG_TS_CONFIG, PG_TS_TEMPLATE = 1255, 3600, 3601, 3602, 3764

_TEMPLATES: Final = {
    "simple": "simple dictionary: just lower case and check for stopword",
    "synonym": "synonym dictionary: replace word by its synonym",
    "ispell": "ispell dictionary",
    "thesaurus": "thesaurus dictionary: phrase by phrase substitution",
    "snowball": "snowball stemmer",
}
PARSER_FUNCTIONS: Final = ("prsstart", "prstoken", "prsend", "prsheadline", "prslextype")
"""The columns of pg_ts_parser that name functions."""


def _texts() -> Iterator[tuple[int, int, str]]:
    for item in built_in().values():
        if isinstance(item, ConfigurationDef):
            plain = item.name == "simple"
            text = "simple configuration" if plain else f"configuration for {item.name} language"
            yield PG_TS_CONFIG, item.oid, text
        else:
            language = item.name.removesuffix("_stem")
            text = (
                _TEMPLATES["simple"] if language == "simple" else f"snowball stemmer for {language} language"
            )
            yield PG_TS_DICT, item.oid, text
    for row in rows("ts_templates"):
        yield PG_TS_TEMPLATE, int(row["oid"]), _TEMPLATES[row["tmplname"]]
    for row in rows("ts_parsers"):
        yield PG_TS_PARSER, int(row["oid"]), "default word parser"
        for column in PARSER_FUNCTIONS:
            for proc in facts().procs_by_name.get(row[column], ()):
                yield PG_PROC, proc.oid, "(internal)"


@functools.cache
def descriptions() -> Mapping[int, Mapping[int, str]]:
    """Return the texts by catalog and oid."""
    found: dict[int, dict[int, str]] = {}
    for class_, oid, text in _texts():
        found.setdefault(class_, {})[oid] = text
    return found
