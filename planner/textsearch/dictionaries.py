"""Dictionaries and configurations (manual 12.6, 12.7): which lexemes a token stands for.

    'Running' --asciiword--> english_stem --> ['run']        'the' --> []   a stop word: it counts as a position, and is no lexeme

There are PostgreSQL's own configurations, dictionaries and stop words (``ts_*.csv``). The stemmers are those of the Snowball
project, by ``snowballstemmer`` of the release from which PostgreSQL 15 has them.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from planner.builtins.text import lower
from planner.facts import REGCONFIG, rows
from planner.textsearch.names import shown_name
from planner.textsearch.parser import tokens

MAX_WORD_BYTES: Final = 2047
"""Longer tokens are left out, with a notice."""

_MAX_STEMMED_BYTES: Final = 1000
_OPTION: Final = re.compile(r"(\w+) = '([^']*)'")


class Dictionary:
    """A dictionary of the simple or the snowball template: lower case, no stop words, and the stem where it has a language."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        """Make one with the options of pg_ts_dict."""
        self.name = name
        language = options.get("language", "")
        self.stop_words = _stop_words().get(options.get("stopwords", ""), frozenset())
        self._stem = _stemmer(language) if language else None
        self.lexize = functools.lru_cache(maxsize=8192)(self._lexize)

    def _lexize(self, token: str) -> tuple[str, ...]:
        """Return the lexeme of a token, none for a stop word."""
        word = lower(token)
        if self._stem is None:
            return () if word in self.stop_words else (word,)
        if not word or word in self.stop_words:
            return ()
        if len(word.encode("utf-8")) > _MAX_STEMMED_BYTES:
            return (word,)
        return (self._stem(word) or word,)


def _stemmer(language: str) -> Any:
    module = importlib.import_module(f"snowballstemmer.{language}_stemmer")
    return getattr(module, f"{language.capitalize()}Stemmer")().stemWord


@functools.cache
def _stop_words() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for row in rows("ts_stopwords"):
        found.setdefault(row["language"], set()).add(lower(row["word"]))
    return {language: frozenset(words) for language, words in found.items()}


@functools.cache
def _dictionary_options() -> dict[int, tuple[str, dict[str, str]]]:
    return {
        int(r["oid"]): (r["dictname"], dict(_OPTION.findall(r["dictinitoption"] or "")))
        for r in rows("ts_dicts")
    }


@functools.cache
def dictionary(oid: int) -> Dictionary | None:
    """Return a dictionary, None if there is none with that oid."""
    found = _dictionary_options().get(oid)
    return None if found is None else Dictionary(*found)


class Configuration:
    """Which dictionaries the tokens of each type are asked of."""

    def __init__(self, oid: int, name: str, maps: Mapping[int, tuple[int, ...]]) -> None:
        """Make one of a row of pg_ts_config and its rows of pg_ts_config_map."""
        self.oid = oid
        self.name = name
        self.maps = maps
        self._first = {type_: dictionary(oids[0]) for type_, oids in maps.items()}

    def lexize(self, type_: int, token: str) -> tuple[str, ...] | None:
        """Return the lexemes of a token; None where tokens of its type are left out, as are those too long to be words."""
        # every dictionary here recognizes every word: the first one always answers
        found = self._first.get(type_)
        if found is None or (len(token) * 4 > MAX_WORD_BYTES and len(token.encode("utf-8")) > MAX_WORD_BYTES):
            return None
        return found.lexize(token)

    def words(self, text: str, position: int = 0) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield position and lexemes of each word of a text; a stop word has a position and no lexemes."""
        for type_, token in tokens(text):
            lexemes = self.lexize(type_, token)
            if lexemes is not None:
                position += 1
                yield position, lexemes


@functools.cache
def _maps() -> dict[int, dict[int, tuple[int, ...]]]:
    found: dict[int, dict[int, list[int]]] = {}
    for row in sorted(rows("ts_config_maps"), key=lambda r: int(r["mapseqno"])):
        by_type = found.setdefault(int(row["mapcfg"]), {})
        by_type.setdefault(int(row["maptokentype"]), []).append(int(row["mapdict"]))
    return {config: {t: tuple(d) for t, d in by_type.items()} for config, by_type in found.items()}


@functools.cache
def configuration(oid: int) -> Configuration | None:
    """Return a configuration, None if there is none with that oid."""
    name = shown_name(REGCONFIG, oid)
    return None if name is None else Configuration(oid, name, _maps().get(oid, {}))
