"""Text search configurations and dictionaries (manual 12.6, 12.7): rows of pg_ts_config with their maps, and
of pg_ts_dict.

    configuration fr    word ──> unaccent, french_stem      whoever answers first, of a token of that type
                        int  ──> simple
    dictionary d        a template, and what it is told: stopwords = 'french', accept = 'false'

PostgreSQL's own are facts (``planner.textsearch.names``); those of the catalog are what users made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from planner.facts import REGCONFIG, REGDICTIONARY

DEFAULT_PARSER = 3722
"""The one parser that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationDef:
    """A text search configuration. ``maps``: the dictionaries of each token type that has some, in the order
    of the types.
    """

    oid: int
    schema_oid: int
    schema: str
    name: str
    owner: int = 10
    parser: int = DEFAULT_PARSER
    maps: tuple[tuple[int, tuple[int, ...]], ...] = ()

    named_by: ClassVar[int] = REGCONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryDef:
    """A text search dictionary. ``options``: name and literal of what its template is told, as pg_ts_dict shows them.

    ``extension``: the one that it belongs to, 0 for none.
    """

    oid: int
    schema_oid: int
    schema: str
    name: str
    owner: int = 10
    template: int
    options: tuple[tuple[str, str], ...] = ()
    extension: int = 0

    named_by: ClassVar[int] = REGDICTIONARY


TextSearchDef: TypeAlias = ConfigurationDef | DictionaryDef
"""``named_by``: the type whose values name such objects."""
