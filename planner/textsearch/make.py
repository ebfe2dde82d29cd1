"""tsvector and tsquery made of texts and documents: to_tsvector, to_tsquery and its kin (manual 9.13, 12.3).

english   'The Fat Rats'   to_tsvector          'fat':2 'rat':3
                           plainto_tsquery      'fat' & 'rat'
                           phraseto_tsquery     'fat' <-> 'rat'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pgwire.codecs.text import tsquery, tsvector
from pgwire.codecs.text.tsquery import AND, PHRASE, Expand, Item, Operator, Stop, Word
from pgwire.codecs.text.tsvector import LAST_POSITION, MAX_PLACES, limited
from pgwire.give_way import paced_iter
from pgwire.long.values import in_order
from pgwire.release import release
from planner.textsearch.dictionaries import Configuration

_MOST_PLACES: Final = MAX_PLACES - 1
"""to_tsvector keeps one position less of a lexeme than the type can hold, as PostgreSQL does."""


class Builder:
    """Collects the lexemes of one tsvector."""

    def __init__(self, configuration: Configuration) -> None:
        """Begin with none."""
        self.configuration = configuration
        self.position = 0
        self.places: dict[str, list[int]] = {}

    def add(self, text: str) -> bool:
        """Add the words of a text behind those there are; tell whether there were lexemes among them."""
        any_lexemes = False
        for position, lexemes in self.configuration.words(text, self.position):
            self.position = position
            place = limited(position)
            for lexeme in lexemes:
                any_lexemes = True
                places = self.places.setdefault(lexeme, [])
                if not places or (len(places) < _MOST_PLACES and places[-1] not in (LAST_POSITION, place)):
                    places.append(place)
        return any_lexemes

    def value(self) -> bytes:
        """Return the tsvector, once; 54000 where it is too large."""
        ordered = in_order(list(self.places))
        try:
            return tsvector.pack((lexeme, tuple(self.places[lexeme])) for lexeme in ordered)
        finally:
            release(self.places, ordered)


def vector_of_text(configuration: Configuration, text: str) -> bytes:
    """Return to_tsvector(config, text)."""
    builder = Builder(configuration)
    builder.add(text)
    return builder.value()


def vector_of_texts(configuration: Configuration, texts: Iterable[str]) -> bytes:
    """Return the tsvector of a document's texts: phrases do not reach from one into the next."""
    builder = Builder(configuration)
    for text in paced_iter(texts, 1):
        if builder.add(text):
            builder.position += 1
    return builder.value()


def expander(configuration: Configuration, joined: int) -> Expand:
    """Return what makes a query of an operand's words: joined by AND or PHRASE, with places where stop words were."""

    def expand(text: str, weights: int, prefix: bool) -> list[Item]:
        found: list[Item] = []
        at = 0
        for position, lexemes in configuration.words(text):
            if not lexemes:
                continue
            while 0 < at < position - 1:
                found += (Stop(), Operator(joined, joined == PHRASE))
                at += 1
            first = not found
            at = position
            for number, lexeme in enumerate(lexemes):
                found.append(Word(lexeme, weights, prefix))
                if number:
                    found.append(Operator(AND))
            if not first:
                found.append(Operator(joined, joined == PHRASE))
        return found or [Stop()]

    return expand


def to_query(configuration: Configuration, text: str) -> bytes:
    """Return to_tsquery(config, text): 42601, 22023, 54000."""
    return tsquery.read(text, expander(configuration, PHRASE))


def plain_query(configuration: Configuration, text: str) -> bytes:
    """Return plainto_tsquery(config, text)."""
    return _whole(configuration, AND, text)


def phrase_query(configuration: Configuration, text: str) -> bytes:
    """Return phraseto_tsquery(config, text)."""
    return _whole(configuration, PHRASE, text)


def _whole(configuration: Configuration, joined: int, text: str) -> bytes:
    items = list(expander(configuration, joined)(text, 0, False)) if text else []
    return tsquery.made(items or [tsquery.Stop()] if text else [], text)


def web_query(configuration: Configuration, text: str) -> bytes:
    """Return websearch_to_tsquery(config, text)."""
    return tsquery.read_web(text, expander(configuration, PHRASE))
