"""Functions of full-text search (manual 9.13, 12): to_tsvector, to_tsquery and its kin, ranks, headlines, and
what shows how texts are taken apart.

Those without a configuration use ``default_text_search_config``. What PostgreSQL's own configurations and
dictionaries make of a text is a matter of the text alone; users' are looked up in the session's catalog
(``Builtin.of_users``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

from planner.base.errors import SqlError, not_supported
from planner.base.identifiers import split_identifier
from planner.facts import REGCONFIG, rows
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.textsearch import documents
from planner.textsearch.dictionaries import (
    Configuration,
    Dictionary,
    built_in_configuration,
    configuration,
    dictionary,
)
from planner.textsearch.headline import headline
from planner.textsearch.make import (
    phrase_query,
    plain_query,
    to_query,
    vector_of_text,
    vector_of_texts,
    web_query,
)
from planner.textsearch.match import matches
from planner.textsearch.names import find_named, missing
from planner.textsearch.parser import tokens
from planner.textsearch.rank import DEFAULT_WEIGHTS, check_weights, rank, rank_by_covers
from planner.types.facts import FIRST_USER_OID

_PARSER: Final = 3722


def found_configuration(session: EvalSession | None, oid: int) -> Configuration:
    """Return a configuration of the session's catalog. Raises SqlError XX000; 0A000 for a user's where there
    is no session.
    """
    if oid < FIRST_USER_OID:
        return built_in_configuration(oid)
    found: Configuration = _kept(session, configuration, oid)
    return found


def found_dictionary(session: EvalSession | None, oid: int) -> Dictionary:
    """Return a dictionary of the session's catalog. Raises as ``found_configuration``."""
    if oid < FIRST_USER_OID:
        return dictionary(None, oid)
    found: Dictionary = _kept(session, dictionary, oid)
    return found


def _kept(session: EvalSession | None, make: Callable[[Any, int], Any], oid: int) -> Any:
    """Return what ``make`` makes of the session's catalog, which keeps it."""
    if session is None:
        raise not_supported("a text search configuration or dictionary of one's own here")
    kept = session.catalog.derived
    found = kept.get((make, oid))
    if found is None:
        found = kept[make, oid] = make(session.catalog, oid)
    return found


def current(session: EvalSession) -> int:
    """SQL's ``get_current_ts_config``: SqlError 42704 for a setting that names none."""
    name, path = session.setting("default_text_search_config"), session.search_path
    kept = session.catalog.derived
    oid = kept.get((current, name, path))
    if not isinstance(oid, int):
        found = find_named(REGCONFIG, name, session.catalog, path, session.database)
        if found is None:
            raise missing(REGCONFIG, split_identifier(name))
        oid = kept[current, name, path] = found.oid
    return oid


Made = Callable[..., Any]


def _given(function: Made) -> Made:
    """Return ``function`` of a configuration as a function of the oid of one of PostgreSQL's own."""
    return lambda oid, *args: function(built_in_configuration(oid), *args)


def _looked_up(function: Made) -> Made:
    """Return ``function`` of a configuration as a function of the session and an oid."""
    return lambda session, oid, *args: function(found_configuration(session, oid), *args)


def _default(function: Made) -> Made:
    """Return ``function`` of a configuration as a function of the session."""
    return lambda session, *args: function(found_configuration(session, current(session)), *args)


def _vector_of_document(configuration_: Configuration, document: str, filter_: str | None = None) -> bytes:
    kinds = documents.STRINGS if filter_ is None else documents.read_filter(filter_)
    return vector_of_texts(configuration_, documents.texts(document, kinds))


def _headline_of_document(
    configuration_: Configuration, document: str, query: bytes, options: str = "", *, spaces: bool
) -> str:
    def change(text: str) -> str:
        return headline(configuration_, text, query, options)

    return documents.with_strings(document, change, spaces=spaces)


def _token_types() -> Iterator[tuple[int, str, str]]:
    return ((int(row["tokid"]), row["alias"], row["description"]) for row in rows("ts_token_types"))


@functools.cache
def _described() -> dict[int, tuple[str, str]]:
    return {number: (alias, description) for number, alias, description in _token_types()}


def _checked_parser(parser: int | str) -> None:
    if isinstance(parser, int):
        if parser != _PARSER:
            raise SqlError("XX000", f"cache lookup failed for text search parser {parser}")
    elif parser not in ("default", "pg_catalog.default"):
        raise SqlError("42704", f'text search parser "{parser}" does not exist')


def parse(parser: int | str, text: str) -> Iterator[tuple[int, str]]:
    """SQL's ``ts_parse``: type and text of each token. SqlError 42704, XX000 for another parser than the
    default one.
    """
    _checked_parser(parser)
    return tokens(text)


def token_types(parser: int | str) -> Iterator[tuple[int, str, str]]:
    """SQL's ``ts_token_type``."""
    _checked_parser(parser)
    return _token_types()


def debug(configuration_: Configuration, text: str) -> Iterator[tuple[Any, ...]]:
    """SQL's ``ts_debug``: of each token its type, dictionaries, the one that knows it, its lexemes."""
    for type_, token in tokens(text):
        alias, description = _described()[type_]
        known, lexemes = configuration_.known(type_, token)
        yield alias, description, token, configuration_.maps.get(type_, ()), known, lexemes


def lexize(oid: int, token: str) -> tuple[str, ...] | None:
    """SQL's ``ts_lexize`` of one of PostgreSQL's own dictionaries: no lexemes for a stop word."""
    return dictionary(None, oid).lexize(token)


def _lexize_looked_up(session: EvalSession | None, oid: int, token: str) -> tuple[str, ...] | None:
    return found_dictionary(session, oid).lexize(token)


def _ranked(function: Callable[..., float]) -> Iterator[tuple[str, Callable[..., float]]]:
    """Yield the four forms of a rank: with and without weights and normalization."""
    pair = "tsvector,tsquery"
    yield f"({pair})", lambda vector, query: function(DEFAULT_WEIGHTS, vector, query, 0)
    yield f"({pair},int4)", lambda vector, query, method: function(DEFAULT_WEIGHTS, vector, query, method)

    def weighted(weights: Any, vector: bytes, query: bytes, method: int = 0) -> float:
        return function(check_weights(weights), vector, query, method)

    yield f"(_float4,{pair})", weighted
    yield f"(_float4,{pair},int4)", weighted


_BY_CONFIGURATION: Final[tuple[tuple[str, str, Made], ...]] = (
    ("to_tsvector", "text", vector_of_text),
    ("to_tsvector", "json", _vector_of_document),
    ("to_tsvector", "jsonb", _vector_of_document),
    ("json_to_tsvector", "json,jsonb", _vector_of_document),
    ("jsonb_to_tsvector", "jsonb,jsonb", _vector_of_document),
    ("to_tsquery", "text", to_query),
    ("plainto_tsquery", "text", plain_query),
    ("phraseto_tsquery", "text", phrase_query),
    ("websearch_to_tsquery", "text", web_query),
    ("ts_headline", "text,tsquery", headline),
    ("ts_headline", "text,tsquery,text", headline),
    ("ts_headline", "json,tsquery", functools.partial(_headline_of_document, spaces=False)),
    ("ts_headline", "json,tsquery,text", functools.partial(_headline_of_document, spaces=False)),
    ("ts_headline", "jsonb,tsquery", functools.partial(_headline_of_document, spaces=True)),
    ("ts_headline", "jsonb,tsquery,text", functools.partial(_headline_of_document, spaces=True)),
    ("ts_debug", "text", debug),
)


def _register() -> None:
    python = REGISTRY.python
    for name, arguments, function in _BY_CONFIGURATION:
        python(f"{name}(regconfig,{arguments})", _given(function), of_users=_looked_up(function))
        python(f"{name}({arguments})", _default(function), needs_session=True)
    python("get_current_ts_config()", current, needs_session=True)
    for name, form in (("ts_rank", rank), ("ts_rank_cd", rank_by_covers)):
        for arguments, ranked in _ranked(form):
            python(f"{name}{arguments}", ranked)
    for kind in ("oid", "text"):
        python(f"ts_parse({kind},text)", parse)
        python(f"ts_token_type({kind})", token_types)
    python("ts_lexize(regdictionary,text)", lexize, of_users=_lexize_looked_up)
    python("ts_match_tq(text,tsquery)", _default(_match_text), needs_session=True)
    python("ts_match_tt(text,text)", _default(_match_texts), needs_session=True)


def _match_text(configuration_: Configuration, text: str, query: bytes) -> bool:
    return matches(vector_of_text(configuration_, text), query)


def _match_texts(configuration_: Configuration, text: str, query: str) -> bool:
    return matches(vector_of_text(configuration_, text), plain_query(configuration_, query))


_register()
