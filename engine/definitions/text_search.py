"""CREATE, ALTER and DROP TEXT SEARCH CONFIGURATION and DICTIONARY as catalog changes, and what hangs on them.

    dictionary d <── configuration fr <── column t.words, index over to_tsvector('fr', body), view v, function f

Stored texts name configurations and dictionaries by oid, as they name functions, so what uses them is found
as what calls a function is. What an index or a generated column has computed stays when a configuration
changes, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_TS_CONFIG_OID, PG_TS_DICT_OID, StoredKey, key_of
from engine.definitions import functions
from engine.definitions.dropping.dependents import (
    Dependency,
    in_report_order,
    kept_by_extension,
    still_needed,
)
from engine.definitions.dropping.drop import drop_relations
from engine.definitions.dropping.function_uses import drop_parts
from engine.definitions.dropping.notices import notice_cascade
from engine.definitions.named_places import alter_named, schema_oid
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.give_way import opening
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.define.text_search import changed_options
from planner.catalog import ConfigurationDef, DictionaryDef, TextSearchDef
from planner.facts import REGCONFIG, REGDICTIONARY
from planner.functions.values.reg import search_object_name
from planner.textsearch.names import SEARCH_NAMES, by_oid

Params = tuple[Any, ...]

_PINNED_BELOW: Final = 12000
"""PostgreSQL's own objects below cannot be dropped; others could be there, which is refused here."""

_COLUMNS: Final[Mapping[int, tuple[str, str, str]]] = {
    REGCONFIG: ("pg_ts_config", "cfgname", "cfgnamespace"),
    REGDICTIONARY: ("pg_ts_dict", "dictname", "dictnamespace"),
}

Maps = dict[int, tuple[int, ...]]


def text_search_words(session: Session, item: TextSearchDef) -> str:
    """Return what messages about what depends on what call a configuration or dictionary."""
    return f"{SEARCH_NAMES[item.named_by]} {search_object_name(session, item)}"


def check_new(session: Session, named_by: int, schema: str, name: str) -> None:
    """Raise SqlError 23505 where there is one of that name, as PostgreSQL notices by its index."""
    if session.catalog.text_search_named(named_by, schema, name) is not None:
        table, column, namespace = _COLUMNS[named_by]
        raise SqlError(
            "23505",
            f'duplicate key value violates unique constraint "{table}_{column}_index"',
            detail=f"Key ({column}, {namespace})=({name}, {schema_oid(session, schema)}) already exists.",
            schema="pg_catalog",
            table=table,
            constraint=f"{table}_{column}_index",
        )


async def create_configuration(
    session: Session, plan: Plan, statement: st.CreateConfiguration, params: Params
) -> Outcome:
    """CREATE TEXT SEARCH CONFIGURATION. Raises SqlError 23505."""
    check_new(session, REGCONFIG, statement.schema, statement.name)
    maps: tuple[tuple[int, tuple[int, ...]], ...] = ()
    if statement.copy:
        copied = by_oid(session.catalog, REGCONFIG, statement.copy)
        if not isinstance(copied, ConfigurationDef):
            raise Replan
        maps = copied.maps
    made = ConfigurationDef(
        oid=session.db.allocate_oids(1),
        schema_oid=schema_oid(session, statement.schema),
        schema=statement.schema,
        name=statement.name,
        owner=session.role_oid,
        maps=maps,
    )
    await session.view.change([made])
    return Command(plan.bound.tag)


async def create_dictionary(
    session: Session, plan: Plan, statement: st.CreateDictionary, params: Params
) -> Outcome:
    """CREATE TEXT SEARCH DICTIONARY. Raises SqlError 23505."""
    check_new(session, REGDICTIONARY, statement.schema, statement.name)
    made = DictionaryDef(
        oid=session.db.allocate_oids(1),
        schema_oid=schema_oid(session, statement.schema),
        schema=statement.schema,
        name=statement.name,
        owner=session.role_oid,
        template=statement.template,
        options=statement.options,
    )
    await session.view.change([made])
    return Command(plan.bound.tag)


def _changed(session: Session, oid: int, verb: str) -> TextSearchDef:
    """Return what a statement changes. Raises SqlError 0A000 for PostgreSQL's own."""
    found = session.catalog.text_search_by_oid(oid)
    if found is not None:
        return found
    for named_by, what in SEARCH_NAMES.items():
        if by_oid(None, named_by, oid) is not None:
            raise not_supported(f"{verb} {what.upper()} of PostgreSQL's own")
    raise Replan


async def alter_mapping(session: Session, plan: Plan, statement: st.AlterMapping, params: Params) -> Outcome:
    """ALTER TEXT SEARCH CONFIGURATION ... MAPPING. Raises SqlError 42704, 23505, 0A000 for PostgreSQL's own."""
    found = _changed(session, statement.configuration, "ALTER")
    if not isinstance(found, ConfigurationDef):
        raise AssertionError(f"a text search configuration is {type(found).__name__}")
    maps = dict(found.maps)
    match statement.action:
        case "add":
            _add(found, maps, statement)
        case "alter":
            maps |= {type_: statement.dictionaries for type_, _ in statement.tokens}
        case "replace":
            _replace(maps, statement)
        case "drop":
            _drop_maps(session, maps, statement)
    await session.view.change([replace(found, maps=tuple(sorted(maps.items())))])
    return Command(plan.bound.tag)


def _add(found: ConfigurationDef, maps: Maps, statement: st.AlterMapping) -> None:
    for type_, _ in statement.tokens:
        if type_ in maps:
            raise SqlError(
                "23505",
                'duplicate key value violates unique constraint "pg_ts_config_map_index"',
                detail=f"Key (mapcfg, maptokentype, mapseqno)=({found.oid}, {type_}, 1) already exists.",
                schema="pg_catalog",
                table="pg_ts_config_map",
                constraint="pg_ts_config_map_index",
            )
        maps[type_] = statement.dictionaries


def _replace(maps: Maps, statement: st.AlterMapping) -> None:
    old, new = statement.dictionaries
    for type_ in [type_ for type_, _ in statement.tokens] or list(maps):
        if type_ in maps:
            maps[type_] = tuple(new if one == old else one for one in maps[type_])


def _drop_maps(session: Session, maps: Maps, statement: st.AlterMapping) -> None:
    for type_, alias in statement.tokens:
        if type_ in maps:
            del maps[type_]
            continue
        message = f'mapping for token type "{alias}" does not exist'
        if not statement.if_exists:
            raise SqlError("42704", message)
        session.notice(f"{message}, skipping")


async def alter_dictionary(
    session: Session, plan: Plan, statement: st.AlterDictionary, params: Params
) -> Outcome:
    """ALTER TEXT SEARCH DICTIONARY with options. Raises SqlError 22023, 42601, 42704, F0000, 0A000."""
    found = _changed(session, statement.dictionary, "ALTER")
    if not isinstance(found, DictionaryDef):
        raise AssertionError(f"a text search dictionary is {type(found).__name__}")
    await session.view.change([changed_options(found, statement.changes)])
    return Command(plan.bound.tag)


async def alter_text_search(
    session: Session, plan: Plan, statement: st.AlterTextSearch, params: Params
) -> Outcome:
    """RENAME TO, SET SCHEMA, OWNER TO. Raises SqlError 42710, 0A000 for PostgreSQL's own."""
    found = _changed(session, statement.object, "ALTER")
    await alter_named(session, found, statement, partial(check_free, session.catalog, found))
    return Command(plan.bound.tag)


def check_free(catalog: CatalogSnapshot, item: TextSearchDef, schema: str, name: str) -> None:
    """Raise SqlError 42710 where a schema has a text search object of that kind and name."""
    if catalog.text_search_named(item.named_by, schema, name) is not None:
        what = SEARCH_NAMES[item.named_by]
        raise SqlError("42710", f'{what} "{name}" already exists in schema "{schema}"')


# --- DROP ------------------------------------------------------------------------------------------


async def drop_text_search(
    session: Session, plan: Plan, statement: st.DropTextSearch, params: Params
) -> Outcome:
    """DROP TEXT SEARCH CONFIGURATION and DICTIONARY. Raises SqlError 2BP01, 0A000 for some of PostgreSQL's own."""
    for notice in statement.missing:
        session.notice(notice)
    targets = []
    for oid, _ in statement.objects:
        for named_by, what in SEARCH_NAMES.items():
            own = by_oid(None, named_by, oid)
            if own is not None and oid < _PINNED_BELOW:
                shown = f"{what} {search_object_name(session, own)}"
                raise SqlError("2BP01", f"cannot drop {shown} because it is required by the database system")
        targets.append(_changed(session, oid, "DROP"))
    for target in targets:
        if isinstance(target, DictionaryDef) and target.extension:
            name = next(e.name for e in session.catalog.extensions.values() if e.oid == target.extension)
            raise kept_by_extension(text_search_words(session, target), name)
    if targets:
        await drop_objects(session, targets, cascade=statement.cascade)
    return Command(plan.bound.tag)


def configurations_with(catalog: CatalogSnapshot, dictionaries: Iterable[int]) -> list[ConfigurationDef]:
    """Return the configurations that ask any of some dictionaries, oldest first."""
    wanted = set(dictionaries)
    return [
        item
        for item in catalog.text_search()
        if isinstance(item, ConfigurationDef) and any(not wanted.isdisjoint(asked) for _, asked in item.maps)
    ]


def asked_by(
    session: Session, targets: Sequence[TextSearchDef]
) -> tuple[list[ConfigurationDef], list[Dependency]]:
    """Return the configurations beside ``targets`` that ask dictionaries among these, and how configurations
    hang on dictionaries.
    """
    oids = {target.oid for target in targets}
    asking = configurations_with(session.catalog, oids)
    links = [
        Dependency(one.oid, one.oid, text_search_words(session, one), asked)
        for one in asking
        for asked in sorted(oids & {oid for _, each in one.maps for oid in each})
    ]
    return [one for one in asking if one.oid not in oids], links


@opening
def hanging(session: Session, targets: Sequence[TextSearchDef]) -> tuple[list[TextSearchDef], list[Dependency]]:  # fmt: skip
    """Return ``targets`` with the configurations that ask dictionaries among them, and how all that needs
    these hangs on them.
    """
    asking, links = asked_by(session, targets)
    every = [*targets, *asking]
    links += functions.dependents(session, {item.oid for item in every})[2]
    return every, links


async def drop_objects(
    session: Session, targets: Sequence[TextSearchDef], *, cascade: bool, quiet: bool = False
) -> None:
    """Drop configurations and dictionaries; with ``cascade`` also what needs them. Raises SqlError 2BP01."""
    targets = [found for t in targets if (found := session.catalog.text_search_by_oid(t.oid)) is not None]
    if not targets:
        return
    every, links = hanging(session, targets)
    told = [one for one in in_report_order([target.oid for target in targets], links) if one.what]
    if told and not cascade:
        raise still_needed(
            text_search_words(session, targets[0]) if len(targets) == 1 else None,
            (f"{one.what} depends on {functions.words_of(session, one.on)}" for one in told),
        )
    if not quiet:
        notice_cascade(session, [one.what for one in told])
    oids = {item.oid for item in every}
    views, called, _ = functions.dependents(session, oids)
    await drop_parts(session, oids)
    await functions.forget_functions(session, called)
    left = [view for view in views if session.catalog.relation_by_oid(view.oid) is not None]
    if left:
        await drop_relations(session, left, cascade=True, quiet=True)
    await _forget(session, every)


async def _forget(session: Session, items: Sequence[TextSearchDef]) -> None:
    """Take objects out of the catalog, and the comments on them."""
    oids = {item.oid for item in items}
    deletes: list[StoredKey] = [key_of(item) for item in items]
    deletes += [
        key_of(comment)
        for comment in session.catalog.comments()
        if comment.class_oid in (PG_TS_CONFIG_OID, PG_TS_DICT_OID) and comment.object_oid in oids
    ]
    await session.view.change([], deletes)


def made_of_template(catalog: CatalogSnapshot, template: int) -> list[DictionaryDef]:
    """Return the dictionaries of a template, oldest first."""
    return [i for i in catalog.text_search() if isinstance(i, DictionaryDef) and i.template == template]
