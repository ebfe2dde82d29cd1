"""ts_headline (manual 12.3.4): the stretch of a document that shows best why it matches, the query's words marked.

a cover is a shortest stretch that matches;    MaxFragments = 0: the best one, widened or cut to MinWords .. MaxWords
                                               > 0: several, each widened to both sides
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pgwire.codecs.int import parse_int4
from pgwire.codecs.invalid import quoting
from pgwire.codecs.text import tsquery
from pgwire.codecs.text.tsquery import Item, Word
from pgwire.codecs.text.tsvector import limited
from pgwire.give_way import give_way, paced
from pgwire.long.values import cut, joined, run_end, utf8_length
from planner.base.errors import SqlError
from planner.textsearch.dictionaries import MAX_WORD_BYTES, Configuration
from planner.textsearch.match import NO, YES, Match, execute
from planner.textsearch.parser import WORD_TYPES, tokens


def _types(*names: str) -> frozenset[int]:
    return frozenset(WORD_TYPES[name] for name in names)


_TAG: Final = WORD_TYPES["tag"]
_COMPOUND: Final = _types("url", "numhword", "asciihword", "hword")
_NO_WORD: Final = _COMPOUND | _types("blank", "tag")
_NO_END: Final = _NO_WORD | _types("sfloat", "version", "float", "int", "uint", "protocol", "entity")
_TRUE: Final = frozenset(("1", "on", "true", "t", "y", "yes"))
_SPACES: Final = re.compile(r"\s*")
_GAP: Final = re.compile(r"[\s,]*")
_NAME: Final = re.compile(r"[^\s=]*")
_BARE: Final = re.compile(r"[^\s,]*")
_WITHIN: Final = {'"': re.compile('[^"]*'), "'": re.compile(r"[^'\\]*")}
"""By the mark that a value stands in: what means itself there. What else there is means itself, too, once
where it is doubled."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_LONGEST: Final = 32
"""Characters of a name or a value that is known."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the options text says."""

    max_words: int = 35
    min_words: int = 15
    short_word: int = 3
    max_fragments: int = 0
    highlight_all: bool = False
    start: str = "<b>"
    stop: str = "</b>"
    delimiter: str = " ... "

    def check(self) -> None:
        """Raise SqlError 22023 where numbers do not fit together."""
        if self.highlight_all:
            return
        for wrong, message in (
            (self.min_words >= self.max_words, "MinWords should be less than MaxWords"),
            (self.min_words <= 0, "MinWords should be positive"),
            (self.short_word < 0, "ShortWord should be >= 0"),
            (self.max_fragments < 0, "MaxFragments should be >= 0"),
        ):
            if wrong:
                raise SqlError("22023", message)


_NUMBERS: Final = {
    "maxwords": "max_words", "minwords": "min_words", "shortword": "short_word", "maxfragments": "max_fragments",
}  # fmt: skip
_TEXTS: Final = {"startsel": "start", "stopsel": "stop", "fragmentdelimiter": "delimiter"}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of ``name = value, name = "value"``: SqlError 42601."""
    at = run_end(_GAP, text, 0)
    while at < len(text):
        give_way()
        if text[at] == '"':
            name, at = _quoted(text, at)
        else:
            end = run_end(_NAME, text, at + 1)
            name, at = cut(text, at, end), end
        at = run_end(_SPACES, text, at)
        if text[at : at + 1] != "=":
            raise _invalid(text)
        at = run_end(_SPACES, text, at + 1)
        if at == len(text):
            raise _invalid(text)
        if text[at] == "E" and text[at + 1 : at + 2] == "'":
            at += 1
        if text[at] in _WITHIN:
            value, at = _quoted(text, at)
        else:
            end = run_end(_BARE, text, at + 1)
            value, at = _bare(cut(text, at, end)), end
        yield name, value
        at = run_end(_GAP, text, at)


def _quoted(text: str, at: int) -> tuple[str, int]:
    """Return what stands between two marks, and where it has ended: SqlError 42601."""
    mark, parts = text[at], list[str]()
    inside = _WITHIN[mark]
    at += 1
    while True:
        end = run_end(inside, text, at)
        parts.append(cut(text, at, end))
        if end == len(text):
            raise _invalid(text)
        found = text[end]
        doubled = text[end + 1 : end + 2] == found
        if found == mark and not doubled:
            return joined(parts), end + 1
        parts.append(found)
        at = end + 1 + doubled
        give_way()


def _bare(value: str) -> str:
    """Return what a value without marks means: of an integer, what is printed of it."""
    if len(value) < _LONGEST and _INTEGER.fullmatch(value) and -(1 << 31) <= int(value) < 1 << 31:
        return str(int(value))
    return value


def _lowered(text: str) -> str:
    """Return a text in small letters; nothing for one that is too long to be known."""
    return text.lower() if len(text) < _LONGEST else ""


def _invalid(text: str) -> SqlError:
    return SqlError("42601", quoting("invalid parameter list format: ", text))


def read_options(text: str) -> Options:
    """Read ``MaxWords=5, StartSel="<i>"``: SqlError 22023, 22P02, 42601."""
    found: dict[str, Any] = {}
    for name, value in list(_pairs(text)):  # what is no list at all is said first
        known = _lowered(name)
        if known in _NUMBERS:
            found[_NUMBERS[known]] = parse_int4(value)
        elif known in _TEXTS:
            found[_TEXTS[known]] = value
        elif known == "highlightall":
            found["highlight_all"] = _lowered(value) in _TRUE
        else:
            raise SqlError("22023", quoting("unrecognized headline parameter: ", name))
    return Options(**found)


@dataclass(slots=True)
class _Token:
    """A token of the document; one that several operands mean is there once for each, all but the first
    ``repeated``.
    """

    type: int
    text: str
    position: int = 0
    operand: int | None = None  # place in the query
    repeated: bool = False
    selected: bool = False
    shown: bool = False
    replaced: bool = False
    skipped: bool = False

    @property
    def interesting(self) -> bool:
        return self.operand is not None and not self.repeated

    @property
    def counts(self) -> bool:
        return self.type not in _NO_WORD


class _Document:
    def __init__(self, configuration: Configuration, text: str, items: Sequence[Item]) -> None:
        self.items = items
        self.tokens: list[_Token] = []
        operands = [
            (len(items) - 1 - place, item)
            for place, item in enumerate(reversed(items))
            if isinstance(item, Word)
        ]
        at = 0
        for type_, token in tokens(text):
            give_way()
            if utf8_length(token) > MAX_WORD_BYTES:
                continue
            found = _Token(type_, token, limited(at + 1))
            self.tokens.append(found)
            lexemes = configuration.lexize(type_, token)
            if lexemes is None:
                found.position = limited(at)
                continue
            at += 1
            for lexeme in lexemes:
                for place, word in operands:
                    if lexeme.startswith(word.text) if word.prefix else lexeme == word.text:
                        if found.operand is None:
                            found.operand = place
                        else:
                            self.tokens.append(replace(found, operand=place, repeated=True))

    def bad_end(self, at: int, short_word: int) -> bool:
        """Whether a headline had better not end here: at no word, or at a short one that is not looked for."""
        give_way()
        token = self.tokens[at]
        return (token.type in _NO_END or len(token.text.encode()) <= short_word) and not token.interesting

    def covers(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield first and last token of each shortest stretch that matches and has less than about ``most`` tokens."""
        places = [at for at, token in enumerate(self.tokens) if token.operand is not None]
        for number, first in enumerate(paced(places)):
            for last in places[number:]:
                give_way()
                if last != first and last - first >= most:
                    break
                give_way()
                if self.matches(first, last):
                    yield first, last
                    break

    def matches(self, first: int, last: int) -> bool:
        found: dict[int, list[int]] = {}
        for token in paced(self.tokens[first : last + 1]):
            if token.operand is not None:
                positions = found.setdefault(token.operand, [])
                if not positions or positions[-1] < token.position:
                    positions.append(token.position)

        def find(place: int, _: Word, wanted: bool) -> Match:
            if place not in found:
                return Match(NO)
            return Match(YES, tuple(found[place]) if wanted else ())

        return execute(self.items, find) == YES

    def mark(self, first: int, last: int, highlight_all: bool) -> None:
        for token in paced(self.tokens[first : last + 1]):
            token.selected = token.selected or token.operand is not None
            if not highlight_all and token.type == _TAG:
                token.replaced = True
            elif token.type in _COMPOUND:
                token.skipped = True
            token.shown = not token.repeated

    def mark_begin(self, options: Options) -> None:
        """Show the first words, where nothing better was found."""
        words = last = 0
        for at, token in enumerate(self.tokens):
            if words >= options.min_words:
                break
            words += token.counts
            last = at
        self.mark(0, last, options.highlight_all)

    def text(self, options: Options) -> str:
        parts: list[str] = []
        fragments, within = 0, False
        for token in paced(self.tokens):
            if token.shown and not token.repeated:
                if not within:
                    within = True
                    fragments += 1
                    if fragments > 1:
                        parts.append(options.delimiter)
                if token.replaced:
                    parts.append(" ")
                elif not token.skipped:
                    parts += (options.start, token.text, options.stop) if token.selected else (token.text,)
            elif not token.repeated:
                within = False
        return joined(parts)


# -- one stretch ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Stretch:
    """A candidate: ``first`` .. ``last`` inclusive, its words, those of the query among them."""

    first: int
    last: int
    words: int = 0
    hits: int = 0


def _fitted(document: _Document, options: Options, first: int, last: int) -> _Stretch:
    """Return a cover widened or cut to the wanted number of words."""
    all_tokens = document.tokens
    found = _Stretch(first, first)

    def take(at: int) -> None:
        give_way()
        found.words += all_tokens[at].counts
        found.hits += all_tokens[at].interesting

    at = first
    while at <= last and found.words < options.max_words:
        take(at)
        found.last = at
        at += 1
    if found.words < options.max_words:
        at -= 1
        while at < len(all_tokens) and found.words < options.max_words:
            if at > last:
                take(at)
            found.last = at
            if not document.bad_end(at, options.short_word) and found.words >= options.min_words:
                break
            at += 1
        if found.words < options.min_words:
            at = first - 1
            while at >= 0:
                take(at)
                if found.words >= options.max_words:
                    break
                if not document.bad_end(at, options.short_word) and found.words >= options.min_words:
                    break
                at -= 1
            found.first = max(at, 0)
        return found
    at = min(at, last)
    while found.words > options.min_words and document.bad_end(at, options.short_word):
        found.words -= all_tokens[at].counts
        found.hits -= all_tokens[at].interesting
        found.last = at - 1
        at -= 1
    return found


def _mark_words(document: _Document, options: Options) -> None:
    if options.highlight_all:
        document.mark(0, len(document.tokens) - 1, True)
        return
    best: _Stretch | None = None
    best_covers = False
    for first, last in document.covers(max(options.max_words * 10, 100)):
        found = _fitted(document, options, first, last)
        covers = found.first <= first and found.last >= last
        if (
            best is None
            or covers > best_covers
            or (covers == best_covers and found.hits > best.hits)
            or (
                covers == best_covers
                and found.hits == best.hits
                and not document.bad_end(found.last, options.short_word)
                and document.bad_end(best.last, options.short_word)
            )
        ):
            best, best_covers = found, covers
    if best is None:
        document.mark_begin(options)
    else:
        document.mark(best.first, best.last, False)


# -- fragments ------------------------------------------------------------------------------------------


def _pieces(document: _Document, options: Options, first: int, last: int) -> Iterator[_Stretch]:
    """Yield a cover in pieces of at most MaxWords words that begin and end with words of the query."""
    all_tokens, end = document.tokens, last
    while first <= end:
        at = first
        while at < end and not all_tokens[at].interesting:
            at += 1
        found = _Stretch(at, end)
        while at <= end and found.words < options.max_words:
            found.words += all_tokens[at].counts
            found.hits += all_tokens[at].interesting
            at += 1
        if end > at:
            found.last = at
            while at >= found.first:
                found.last = at
                if all_tokens[at].interesting:
                    break
                found.words -= all_tokens[at].counts
                at -= 1
        give_way()
        yield found
        first = found.last + 1


def _widen(document: _Document, options: Options, found: _Stretch) -> None:
    """Widen a piece to both sides up to MaxWords words, not into other pieces."""
    all_tokens, short = document.tokens, options.short_word
    if found.words >= options.max_words:
        return
    most, stretched = (options.max_words - found.words) // 2, 0
    at, marker = found.first - 1, found.first
    while at >= 0 and stretched < most and not all_tokens[at].shown:
        found.words += all_tokens[at].counts
        stretched += all_tokens[at].counts
        marker = at
        at -= 1
    at = marker
    while at < found.first and document.bad_end(at, short):
        found.words -= all_tokens[at].counts
        at += 1
    found.first = at
    at, marker = found.last + 1, found.last
    while at < len(all_tokens) and found.words < options.max_words and not all_tokens[at].shown:
        found.words += all_tokens[at].counts
        marker = at
        at += 1
    at = marker
    while at > found.last and document.bad_end(at, short):
        found.words -= all_tokens[at].counts
        at -= 1
    found.last = at


def _mark_fragments(document: _Document, options: Options) -> None:
    most = max(options.max_words * 10, 100) * options.max_fragments
    left = [
        piece for first, last in document.covers(most) for piece in _pieces(document, options, first, last)
    ]
    chosen = 0
    while chosen < options.max_fragments:
        give_way()
        candidates = [
            piece for piece in paced(left) if piece.hits > 0 or (piece.hits == 0 and piece.words < 2**31 - 1)
        ]
        if not candidates:
            break
        best = min(candidates, key=lambda piece: (-piece.hits, piece.words))
        left.remove(best)
        _widen(document, options, best)
        document.mark(best.first, best.last, options.highlight_all)
        chosen += 1
        left = [
            piece
            for piece in paced(left)
            if not (
                best.first <= piece.first <= best.last
                or best.first <= piece.last <= best.last
                or (piece.first < best.first and piece.last > best.last)
            )
        ]
    if not chosen:
        document.mark_begin(options)


def headline(configuration: Configuration, text: str, query: bytes, options_text: str = "") -> str:
    """Return ts_headline(): the document's best stretch, or its first words where nothing matches."""
    options = read_options(options_text)
    document = _Document(configuration, text, tsquery.unpack(query))
    options.check()
    if options.max_fragments == 0:
        _mark_words(document, options)
    else:
        _mark_fragments(document, options)
    return document.text(options)
