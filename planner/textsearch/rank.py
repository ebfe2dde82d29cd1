"""ts_rank and ts_rank_cd (manual 12.3.3): how well a document fits a query, in PostgreSQL's arithmetic.

    ts_rank      how often the query's lexemes occur, and for & and <-> how near to one another
    ts_rank_cd   covers: shortest stretches of the document that match by themselves; fewer other words, a higher rank

PostgreSQL computes ts_rank in single precision, rounded after each operation; so does this, or last digits
would differ.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pgwire.codecs.text import tsquery, tsvector
from pgwire.codecs.text.tsquery import AND, PHRASE, Item, Operator, Word
from pgwire.codecs.text.tsvector import LAST_POSITION, Vector, position, weight
from pgwire.give_way import give_way, paced, paced_iter
from pgwire.long.values import in_order
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.textsearch.match import NO, YES, Match, entries_of, execute

_SINGLE: Final = struct.Struct("<f")


def single(value: float) -> float:
    """Round to single precision."""
    return float(_SINGLE.unpack(_SINGLE.pack(value))[0])


DEFAULT_WEIGHTS: Final = tuple(map(single, (0.1, 0.2, 0.4, 1.0)))
"""Of D, C, B, A."""

LOG_LENGTH, LENGTH, EXTENT_DISTANCE, UNIQUE, LOG_UNIQUE, R_DIV_R_PLUS_1 = 1, 2, 4, 8, 16, 32
_LOG_2: Final = math.log(2.0)


def check_weights(given: Sequence[float | None]) -> tuple[float, ...]:
    """Return the weights of D, C, B, A as given, the default one for a negative one. SqlError 2202E, 22004, 22023."""
    if given and isinstance(given[0], tuple):
        raise SqlError("2202E", "array of weight must be one-dimensional")
    if not given:
        raise SqlError("2202E", "array of weight must be one-dimensional")
    if len(given) < len(DEFAULT_WEIGHTS):
        raise SqlError("2202E", "array of weight is too short")
    if None in given:
        raise SqlError("22004", "array of weight must not contain nulls")
    found = []
    for value, default in zip(given, DEFAULT_WEIGHTS, strict=False):
        if value is None:
            raise AssertionError("a weight is NULL")
        found.append(value if value >= 0 else default)
        if found[-1] > 1.0:
            raise SqlError("22023", "weight out of range")
    return tuple(found)


def _length(vector: Vector) -> int:
    return sum(len(places) or 1 for _, places in paced(vector))


def _operands(items: Sequence[Item]) -> list[Word]:
    """Return the query's operands in order, each lexeme once."""
    found: dict[str, Word] = {}
    for item in paced_iter(reversed(items)):  # as PostgreSQL goes through them
        if isinstance(item, Word):
            found.setdefault(item.text, item)
    return [found[text] for text in in_order(list(found))]


# -- ts_rank --------------------------------------------------------------------------------------------


def _distance_weight(distance: int) -> float:
    if distance > 100:
        return single(1e-30)
    return single(1.0 / (1.005 + 0.05 * math.exp(single(distance) / 1.5 - 2)))


_NO_PLACES_AND: Final = (LAST_POSITION,)
_NO_PLACES_OR: Final = (0,)


def _rank_near(weights: Sequence[float], vector: Vector, items: Sequence[Item]) -> float:
    """Rank by how near the operands are to one another; -1 where no two are there."""
    operands = _operands(items)
    if len(operands) < 2:
        return _rank_often(weights, vector, items)
    result = -1.0
    seen: list[
        tuple[tuple[int, ...], bool]
    ] = []  # places of earlier operands; whether they have none of their own
    for word in operands:
        last: tuple[tuple[int, ...], bool] | None = None
        for _, own in entries_of(vector, word):
            give_way()
            places, bare = own or _NO_PLACES_AND, not own
            last = places, bare
            for others, others_bare in seen:
                for a in places:
                    give_way()
                    for b in others:
                        distance = abs(position(a) - position(b))
                        if not distance:
                            if not (bare or others_bare):
                                continue
                            distance = LAST_POSITION + 1
                        both = single(weights[weight(a)] * weights[weight(b)])
                        near = single(math.sqrt(single(both * _distance_weight(distance))))
                        result = near if result < 0 else single(1.0 - (1.0 - result) * (1.0 - near))
        if last is not None:
            seen.append(last)
    return result


def _rank_often(weights: Sequence[float], vector: Vector, items: Sequence[Item]) -> float:
    """Rank by how often the operands are there."""
    operands = _operands(items)
    result = 0.0
    for word in operands:
        for _, own in entries_of(vector, word):
            give_way()
            total, greatest, at = 0.0, -1.0, 0
            for number, place in enumerate(own or _NO_PLACES_OR):
                give_way()
                value = weights[weight(place)]
                total = single(total + single(value / ((number + 1) * (number + 1))))
                if value > greatest:
                    greatest, at = value, number
            rest = single(single(greatest + total) - single(greatest / ((at + 1) * (at + 1))))
            result = single(result + rest / 1.64493406685)
    return single(result / len(operands)) if operands else result


def rank(weights: Sequence[float], vector_value: bytes, query: bytes, method: int) -> float:
    """Return ts_rank(): 0 .. 1 unless ``method`` divides by less than 1."""
    vector, items = tsvector.unpack(vector_value), tsquery.unpack(query)
    if not vector or not items:
        return 0.0
    root = items[-1]
    near = isinstance(root, Operator) and root.kind in (AND, PHRASE)
    result = _rank_near(weights, vector, items) if near else _rank_often(weights, vector, items)
    if result < 0:
        result = single(1e-20)
    if method & LOG_LENGTH:
        result = single(result / (math.log(_length(vector) + 1) / _LOG_2))
    if method & LENGTH and _length(vector):
        result = single(result / _length(vector))
    if method & UNIQUE:
        result = single(result / len(vector))
    if method & LOG_UNIQUE:
        result = single(result / (math.log(len(vector) + 1) / _LOG_2))
    if method & R_DIV_R_PLUS_1:
        result = single(result / single(result + 1))
    let_go(vector, items)
    return result


# -- ts_rank_cd -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """A place of the document with the operands, by their place in the query, that are found there."""

    place: int
    operands: list[int] = field(default_factory=list)


def _document(vector: Vector, items: Sequence[Item]) -> list[_Place]:
    """Return the places of the query's operands in the order of their positions."""
    numbers = {lexeme: number for number, (lexeme, _) in enumerate(paced(vector))}
    found: list[tuple[int, int, int, int, int]] = []
    for number, item in enumerate(items):
        if isinstance(item, Word):
            for lexeme, places in entries_of(vector, item):
                give_way()
                found += [
                    (position(p), weight(p), numbers[lexeme], number, p)
                    for p in places
                    if not item.weights or item.weights >> weight(p) & 1
                ]
    joined: list[_Place] = []
    last: tuple[int, int] | None = None
    for _, _, entry, number, place in paced(in_order(found)):
        if last != (place, entry):
            joined.append(_Place(place))
            last = place, entry
        joined[-1].operands.append(number)
    return joined


class _Covers:
    """Finds stretches of the document that match, from left to right."""

    def __init__(self, document: Sequence[_Place], items: Sequence[Item]) -> None:
        self.document = document
        self.items = items
        self.next_start = 0

    def matches(self, found: dict[int, set[int]]) -> bool:
        def find(number: int, _: Word, wanted: bool) -> Match:
            if number not in found:
                return Match(NO)
            return Match(YES, tuple(sorted(found[number])) if wanted else ())

        return execute(self.items, find) == YES

    def next(self) -> tuple[int, int] | None:
        """Return the first and last place (inclusive) of the next cover, None behind the last one."""
        document = self.document
        while True:
            start = self.next_start
            last = self._grow(range(start, len(document)))
            if last is None:
                return None
            first = self._grow(range(last, start - 1, -1))
            if first is not None:
                self.next_start = first + 1
                return first, last
            self.next_start = start + 1

    def _grow(self, places: range) -> int | None:
        found: dict[int, set[int]] = {}
        for at in places:
            give_way()
            entry = self.document[at]
            for operand in entry.operands:
                found.setdefault(operand, set()).add(position(entry.place))
            if self.matches(found):
                return at
        return None


def rank_by_covers(weights: Sequence[float], vector_value: bytes, query: bytes, method: int) -> float:
    """Return ts_rank_cd()."""
    vector, items = tsvector.unpack(vector_value), tsquery.unpack(query)
    if not items:
        return 0.0
    document = _document(vector, items)
    if not document:
        return 0.0
    # PostgreSQL divides by a weight of 0, too: infinity
    inverse = [1.0 / w if w else math.inf for w in weights]
    covers = _Covers(document, items)
    result = distances = last_middle = 0.0
    extents = 0
    while (cover := covers.next()) is not None:
        give_way()
        first, last = cover
        total = sum(inverse[weight(document[at].place)] for at in range(first, last + 1))
        begin, end = position(document[first].place), position(document[last].place)
        noise = end - begin - (last - first)
        if noise < 0:
            noise = (last - first) // 2
        result += (last - first + 1) / total / (1 + noise)
        middle = (begin + end) / 2.0
        if extents and middle > last_middle:
            distances += 1.0 / (middle - last_middle)
        last_middle = middle
        extents += 1
    if method & LOG_LENGTH and vector:
        result /= math.log(_length(vector) + 1)
    if method & LENGTH and _length(vector):
        result /= _length(vector)
    if method & EXTENT_DISTANCE and extents and distances > 0:
        result /= extents / distances
    if method & UNIQUE and vector:
        result /= len(vector)
    if method & LOG_UNIQUE and vector:
        result /= math.log(len(vector) + 1) / _LOG_2
    if method & R_DIV_R_PLUS_1:
        result /= result + 1
    let_go(vector, items, document)
    return single(result)
