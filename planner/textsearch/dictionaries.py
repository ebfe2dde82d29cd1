"""Dictionaries and configurations (manual 12.6, 12.7): which lexemes a token stands for.

    'Running' --asciiword--> english_stem --> ['run']        'the' --> []   a stop word: it counts as a position, and is no lexeme
    'Hôtels' --word--> unaccent, which filters: 'Hotels' --> french_stem --> ['hotel']

A token is shown to the dictionaries of its type one after the other until one knows it. A dictionary is a
template and its options. The stemmers are those of the Snowball project, by ``snowballstemmer`` of the
release from which PostgreSQL 15 has them; stop words are PostgreSQL's.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from planner.base.errors import SqlError, not_supported
from planner.base.letters import lower
from planner.catalog import Catalog, ConfigurationDef, DictionaryDef
from planner.catalog.extensions import UNACCENT_TEMPLATE
from planner.facts import REGCONFIG, REGDICTIONARY, rows
from planner.textsearch.names import by_oid
from planner.textsearch.options import option_value, truth, unique_options
from planner.textsearch.parser import tokens
from planner.textsearch.unaccent import without_accents

MAX_WORD_BYTES: Final = 2047
"""Longer tokens are left out, with a notice."""

SIMPLE, SYNONYM, ISPELL, THESAURUS, SNOWBALL = 3727, 3730, 3733, 3742, 13150
"""Templates of PostgreSQL's own, by oid."""

_OF_FILES: Final = {SYNONYM: "synonym", ISPELL: "ispell", THESAURUS: "thesaurus"}
_MAX_STEMMED_BYTES: Final = 1000
_UNACCENT_RULES: Final = "unaccent"

Options = tuple[tuple[str, str], ...]
Lexize = Callable[[str], tuple[str, ...] | None]


class Dictionary:
    """What a dictionary makes of words. ``filters``: what it knows goes on to the next dictionary, changed."""

    def __init__(self, lexize: Lexize, *, filters: bool = False) -> None:
        """Make one of a function that returns a word's lexemes, none for a stop word, None for a word it does
        not know.
        """
        self.lexize = functools.lru_cache(maxsize=8192)(lexize)
        self.filters = filters


@functools.lru_cache(maxsize=256)
def dictionary_of(template: int, options: Options) -> Dictionary:
    """Return the dictionary of a template with options. Raises SqlError 22023, 42601, 42704, F0000 for
    options that it has not, 0A000.
    """
    make = _TEMPLATES.get(template)
    if make is None:
        raise not_supported(
            f"a text search dictionary of the template {_OF_FILES.get(template, template)}",
            hint="Such a dictionary reads files of PostgreSQL's installation. There are dictionaries of the templates simple, snowball and unaccent.",
        )
    return make(options)


def _simple(options: Options) -> Dictionary:
    found = unique_options(
        options, {"stopwords": "StopWords", "accept": "Accept"}, 'simple dictionary parameter: "{}"'
    )
    stop_words = _stop_list(found["stopwords"]) if "stopwords" in found else frozenset()
    accepts = truth("accept", found["accept"]) if "accept" in found else True

    def lexize(token: str) -> tuple[str, ...] | None:
        word = lower(token)
        if not word or word in stop_words:
            return ()
        return (word,) if accepts else None

    return Dictionary(lexize)


def _snowball(options: Options) -> Dictionary:
    found = unique_options(
        options, {"stopwords": "StopWords", "language": "Language"}, 'Snowball parameter: "{}"'
    )
    stop_words = _stop_list(found["stopwords"]) if "stopwords" in found else frozenset()
    if "language" not in found:
        raise SqlError("22023", "missing Language parameter")
    stem = _stemmer(option_value(found["language"]))

    def lexize(token: str) -> tuple[str, ...]:
        word = lower(token)
        if len(word.encode("utf-8")) > _MAX_STEMMED_BYTES:
            return (word,)
        if not word or word in stop_words:
            return ()
        return (stem(word) or word,)

    return Dictionary(lexize)


def _unaccent(options: Options) -> Dictionary:
    found = unique_options(options, {"rules": "Rules"}, 'Unaccent parameter: "{}"')
    if "rules" not in found:
        raise SqlError("22023", "missing Rules parameter")
    name = _file_name(option_value(found["rules"]))
    if name != _UNACCENT_RULES:
        raise SqlError("F0000", f'could not open unaccent file "{name}.rules": No such file or directory')

    def lexize(token: str) -> tuple[str, ...] | None:
        word = without_accents(token)
        return None if word == token else (word,)

    return Dictionary(lexize, filters=True)


_TEMPLATES: Final = {SIMPLE: _simple, SNOWBALL: _snowball, UNACCENT_TEMPLATE: _unaccent}


def preload() -> None:
    """Import the stemmers, of all languages at once: a tenth of a second of the statement that needs one first."""
    importlib.import_module("snowballstemmer")


def _stemmer(language: str) -> Callable[[str], str]:
    name = language.lower()
    if name not in _languages():
        raise SqlError(
            "42704", f'no Snowball stemmer available for language "{language}" and encoding "UTF8"'
        )
    module = importlib.import_module(f"snowballstemmer.{name}_stemmer")
    stem: Callable[[str], str] = getattr(module, f"{name.capitalize()}Stemmer")().stemWord
    return stem


@functools.cache
def _languages() -> frozenset[str]:
    """Return the languages that there are stemmers for: those of PostgreSQL's dictionaries, and Porter's of English."""
    stems = [row["dictname"].removesuffix("_stem") for row in rows("ts_dicts")]
    return frozenset(("porter", *(name for name in stems if name != "simple")))


def _file_name(name: str) -> str:
    if any(not (char.isascii() and (char.islower() or char.isdigit() or char == "_")) for char in name):
        raise SqlError("22023", f'invalid text search configuration file name "{name}"')
    return name


def _stop_list(literal: str) -> frozenset[str]:
    name = _file_name(option_value(literal))
    found = _stop_words().get(name)
    if found is None:
        raise SqlError("F0000", f'could not open stop-word file "{name}.stop": No such file or directory')
    return found


@functools.cache
def _stop_words() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for row in rows("ts_stopwords"):
        found.setdefault(row["language"], set()).add(lower(row["word"]))
    return {language: frozenset(words) for language, words in found.items()}


def dictionary(catalog: Catalog | None, oid: int) -> Dictionary:
    """Return a dictionary. Raises SqlError XX000 where there is none with that oid."""
    found = by_oid(catalog, REGDICTIONARY, oid)
    if not isinstance(found, DictionaryDef):
        raise SqlError("XX000", f"cache lookup failed for text search dictionary {oid}")
    return dictionary_of(found.template, found.options)


class Configuration:
    """Which dictionaries the tokens of each type are asked of."""

    def __init__(self, definition: ConfigurationDef, dictionaries: Sequence[Sequence[Dictionary]]) -> None:
        """Make one of its definition and the dictionaries of each of its maps."""
        self.maps = dict(definition.maps)
        self._asked = {
            type_: tuple(asked) for (type_, _), asked in zip(definition.maps, dictionaries, strict=True)
        }

    def lexize(self, type_: int, token: str) -> tuple[str, ...] | None:
        """Return the lexemes of a token; None where no dictionary knows it, nor of those too long to be words."""
        asked = self._asked.get(type_)
        if asked is None or (len(token) * 4 > MAX_WORD_BYTES and len(token.encode("utf-8")) > MAX_WORD_BYTES):
            return None
        for one in asked:
            found = one.lexize(token)
            if found is None:
                continue
            if not one.filters:
                return found
            [token] = found
        return None

    def known(self, type_: int, token: str) -> tuple[int | None, tuple[str, ...] | None]:
        """Return which dictionary is the first to know a token by itself, else the first of all, and its lexemes."""
        found: tuple[int | None, tuple[str, ...] | None] = (None, None)
        for oid, one in zip(self.maps.get(type_, ()), self._asked.get(type_, ()), strict=True):
            lexemes = one.lexize(token)
            if lexemes is not None:
                return oid, lexemes
            found = found if found[0] is not None else (oid, None)
        return found

    def words(self, text: str, position: int = 0) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield position and lexemes of each word of a text; a stop word has a position and no lexemes."""
        for type_, token in tokens(text):
            lexemes = self.lexize(type_, token)
            if lexemes is not None:
                position += 1
                yield position, lexemes


@functools.lru_cache(maxsize=256)
def _configuration(
    definition: ConfigurationDef, parts: tuple[tuple[tuple[int, Options], ...], ...]
) -> Configuration:
    return Configuration(definition, [[dictionary_of(*part) for part in asked] for asked in parts])


def configuration(catalog: Catalog | None, oid: int) -> Configuration:
    """Return a configuration; without a catalog one of PostgreSQL's own. Raises SqlError XX000 where there is
    none with that oid.

    It is a pure function of the definitions, so it is kept by these.
    """
    definition = by_oid(catalog, REGCONFIG, oid)
    if not isinstance(definition, ConfigurationDef):
        raise SqlError("XX000", f"cache lookup failed for text search configuration {oid}")
    parts: list[tuple[tuple[int, Options], ...]] = []
    for _, oids in definition.maps:
        asked = []
        for one in oids:
            found = by_oid(catalog, REGDICTIONARY, one)
            if not isinstance(found, DictionaryDef):
                raise SqlError("XX000", f"cache lookup failed for text search dictionary {one}")
            asked.append((found.template, found.options))
        parts.append(tuple(asked))
    return _configuration(definition, tuple(parts))


@functools.cache
def built_in_configuration(oid: int) -> Configuration:
    """Return one of PostgreSQL's own. Raises SqlError XX000."""
    return configuration(None, oid)
