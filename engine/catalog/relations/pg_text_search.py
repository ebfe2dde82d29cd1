"""Full-text search in pg_catalog: PostgreSQL's own configurations, dictionaries, parser and templates, users'
configurations and dictionaries, and the templates of extensions.

pg_ts_config ──> pg_ts_parser        pg_ts_config_map (configuration, token type) ──> pg_ts_dict ──> pg_ts_template
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import (
    PG_EXTENSION_OID,
    PG_NAMESPACE_OID,
    PG_PROC_OID,
    PG_TS_DICT_OID,
    PG_TS_TEMPLATE_OID,
)
from planner.bind.define.text_search import CLASSES
from planner.catalog import ConfigurationDef, DictionaryDef, TextSearchDef
from planner.catalog.extensions import TEMPLATES
from planner.facts import facts, rows
from planner.textsearch.descriptions import descriptions as own_descriptions
from planner.textsearch.names import built_in
from planner.textsearch.options import shown_options

if TYPE_CHECKING:
    from engine.catalog.reading import Reading
    from planner.catalog import ExtensionDef

_NUMBERS = frozenset(
    ("oid", "cfgnamespace", "cfgowner", "cfgparser", "mapcfg", "maptokentype", "mapseqno", "mapdict", "dictnamespace",
     "dictowner", "dicttemplate", "prsnamespace", "tmplnamespace")
)  # fmt: skip
_FUNCTIONS = frozenset(
    ("prsstart", "prstoken", "prsend", "prsheadline", "prslextype", "tmplinit", "tmpllexize")
)

_PINNED_BELOW = 12000
_PINNED_TEMPLATES = frozenset((3727, 3730, 3733, 3742))
"""PostgreSQL keeps no dependencies on what cannot be dropped."""


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
def pg_ts_config(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_config."""
    return _rows("ts_configs")


@relation("pg_ts_config_map", "static")
def pg_ts_config_map(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_config_map."""
    return _rows("ts_config_maps")


@relation("pg_ts_dict", "static")
def pg_ts_dict(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_dict."""
    return _rows("ts_dicts")


@relation("pg_ts_parser", "static")
def pg_ts_parser(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_parser."""
    return _rows("ts_parsers")


@relation("pg_ts_template", "static")
def pg_ts_template(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_template."""
    return _rows("ts_templates")


@relation("pg_depend", "static")
def own_depend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of PostgreSQL's own configurations and dictionaries, as far as they could be dropped there."""
    for item in built_in().values():
        if item.oid >= _PINNED_BELOW:
            yield from _needs(item)


def _needs(item: TextSearchDef) -> Iterator[RowDict]:
    """Yield pg_depend of a configuration on dictionaries, of a dictionary on its template."""
    class_ = CLASSES[item.named_by]
    if isinstance(item, DictionaryDef):
        if item.template not in _PINNED_TEMPLATES:
            yield depends(class_, item.oid, PG_TS_TEMPLATE_OID, item.template)
        return
    for oid in sorted({oid for _, asked in item.maps for oid in asked if oid >= _PINNED_BELOW}):
        yield depends(class_, item.oid, PG_TS_DICT_OID, oid)


@relation("pg_description", "static")
def descriptions(session: Reading) -> Iterator[RowDict]:
    """Yield pg_description of PostgreSQL's own objects of full-text search, and of what runs them."""
    for class_, texts in own_descriptions().items():
        for oid, text in texts.items():
            yield {"objoid": oid, "classoid": class_, "objsubid": 0, "description": text}


# --- what users made, and extensions brought --------------------------------------------------------


@relation("pg_ts_config", "catalog")
def users_configurations(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_config of users' configurations."""
    for item in session.catalog.text_search():
        if isinstance(item, ConfigurationDef):
            yield {
                "oid": item.oid, "cfgname": item.name, "cfgnamespace": item.schema_oid, "cfgowner": item.owner,
                "cfgparser": item.parser,
            }  # fmt: skip


@relation("pg_ts_config_map", "catalog")
def users_maps(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_config_map of users' configurations."""
    for item in session.catalog.text_search():
        if isinstance(item, ConfigurationDef):
            for type_, asked in item.maps:
                for number, oid in enumerate(asked, 1):
                    yield {"mapcfg": item.oid, "maptokentype": type_, "mapseqno": number, "mapdict": oid}


@relation("pg_ts_dict", "catalog")
def users_dictionaries(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_dict of users' dictionaries."""
    for item in session.catalog.text_search():
        if isinstance(item, DictionaryDef):
            yield {
                "oid": item.oid, "dictname": item.name, "dictnamespace": item.schema_oid, "dictowner": item.owner,
                "dicttemplate": item.template, "dictinitoption": shown_options(item.options),
            }  # fmt: skip


def _templates(session: Reading) -> Iterator[tuple[ExtensionDef, int, str, int, int]]:
    """Yield the extensions that bring a template, its oid and name, and the functions that PostgreSQL runs it by."""
    for of, (oid, name) in TEMPLATES.items():
        extension = session.catalog.extension(of)
        if extension is not None:
            made = {f.name: f.oid for f in session.catalog.functions() if f.extension == extension.oid}
            yield extension, oid, name, made.get(f"{name}_init", 0), made.get(f"{name}_lexize", 0)


@relation("pg_ts_template", "catalog")
def extension_templates(session: Reading) -> Iterator[RowDict]:
    """Yield pg_ts_template of extensions' templates."""
    for extension, oid, name, init, lexize in _templates(session):
        yield {
            "oid": oid, "tmplname": name, "tmplnamespace": extension.schema_oid, "tmplinit": init, "tmpllexize": lexize,
        }  # fmt: skip


@relation("pg_depend", "catalog")
def text_search_depends(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of configurations, dictionaries and extensions' templates."""
    for item in session.catalog.text_search():
        class_ = CLASSES[item.named_by]
        yield depends(class_, item.oid, PG_NAMESPACE_OID, item.schema_oid)
        yield from _needs(item)
        if isinstance(item, DictionaryDef) and item.extension:
            yield depends(class_, item.oid, PG_EXTENSION_OID, item.extension, "e")
    for extension, oid, _, init, lexize in _templates(session):
        yield depends(PG_TS_TEMPLATE_OID, oid, PG_NAMESPACE_OID, extension.schema_oid)
        yield depends(PG_TS_TEMPLATE_OID, oid, PG_EXTENSION_OID, extension.oid, "e")
        for function in (init, lexize):
            if function:
                yield depends(PG_TS_TEMPLATE_OID, oid, PG_PROC_OID, function)
