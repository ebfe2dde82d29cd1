"""Full-text search in pg_catalog: PostgreSQL's own configurations, dictionaries, parser and templates; no others can be made.

pg_ts_config ──> pg_ts_parser        pg_ts_config_map (configuration, token type) ──> pg_ts_dict ──> pg_ts_template
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.virtual import RowDict, relation
from planner.facts import facts, rows

if TYPE_CHECKING:
    from engine.connection.session import Session

_NUMBERS = frozenset(
    ("oid", "cfgnamespace", "cfgowner", "cfgparser", "mapcfg", "maptokentype", "mapseqno", "mapdict", "dictnamespace",
     "dictowner", "dicttemplate", "prsnamespace", "tmplnamespace")
)  # fmt: skip
_FUNCTIONS = frozenset(
    ("prsstart", "prstoken", "prsend", "prsheadline", "prslextype", "tmplinit", "tmpllexize")
)


def _rows(file: str) -> Iterator[RowDict]:
    for row in rows(file):
        yield {name: _value(name, text) for name, text in row.items()}


def _value(name: str, text: str) -> object:
    if name in _NUMBERS:
        return int(text)
    if name in _FUNCTIONS:
        found = facts().procs_by_name.get(text)
        return found[0].oid if found else 0
    return text or None


@relation("pg_ts_config", "static")
def pg_ts_config(session: Session) -> Iterator[RowDict]:
    """Yield pg_ts_config."""
    return _rows("ts_configs")


@relation("pg_ts_config_map", "static")
def pg_ts_config_map(session: Session) -> Iterator[RowDict]:
    """Yield pg_ts_config_map."""
    return _rows("ts_config_maps")


@relation("pg_ts_dict", "static")
def pg_ts_dict(session: Session) -> Iterator[RowDict]:
    """Yield pg_ts_dict."""
    return _rows("ts_dicts")


@relation("pg_ts_parser", "static")
def pg_ts_parser(session: Session) -> Iterator[RowDict]:
    """Yield pg_ts_parser."""
    return _rows("ts_parsers")


@relation("pg_ts_template", "static")
def pg_ts_template(session: Session) -> Iterator[RowDict]:
    """Yield pg_ts_template."""
    return _rows("ts_templates")
