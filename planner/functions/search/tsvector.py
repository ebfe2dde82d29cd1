"""tsvector (manual 9.13): weights, parts, concatenation, comparison, and ``@@`` with a tsquery."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from pgwire.codecs.invalid import quoting
from pgwire.codecs.text.tsvector import (
    LAST_POSITION,
    MAX_LEXEME_BYTES,
    MAX_PLACES,
    WEIGHTS,
    Places,
    limited,
    merged,
    pack,
    position,
    size,
    walk,
    weight,
)
from pgwire.give_way import paced, paced_iter
from pgwire.long.arrays import gathered, tupled
from pgwire.long.sets import distinct
from pgwire.long.values import in_order, utf8_length
from pgwire.release import release
from planner.base.arrays import flat
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.values.compare import register_comparisons
from planner.functions.values.range import comparisons
from planner.textsearch.match import matches


def _weight(letter: str) -> int:
    found = WEIGHTS.find(letter.upper()) if len(letter) == 1 else -1
    if found < 0:
        raise SqlError("22023", quoting("unrecognized weight: ", letter))
    return found


def _weighted(places: Places, new: int) -> Places:
    return tuple(position(place) | new << 14 for place in places)


def set_weight(value: bytes, letter: str) -> bytes:
    """SQL's ``setweight`` of all positions. SqlError 22023 for a letter that is none of A to D."""
    new = _weight(letter)
    return pack((lexeme, _weighted(places, new)) for lexeme, places in walk(value))


def set_weight_of(value: bytes, letter: str, lexemes: Any) -> bytes:
    """SQL's ``setweight`` of some lexemes; NULL among them is passed over."""
    new, wanted = _weight(letter), distinct(flat(lexemes))
    return pack(
        (lexeme, _weighted(places, new) if lexeme in wanted else places) for lexeme, places in walk(value)
    )


def strip(value: bytes) -> bytes:
    """SQL's ``strip``: no positions."""
    return pack((lexeme, ()) for lexeme, _ in walk(value))


def concat(a: bytes, b: bytes) -> bytes:
    """SQL's ``||``: the second's positions begin behind the first's last one."""
    shift = 0
    joined: dict[str, Places] = {}
    for lexeme, places in walk(a):
        joined[lexeme] = places
        if places:
            shift = max(shift, *map(position, places))
    for lexeme, places in walk(b):
        found = list(joined.get(lexeme, ()))
        for place in places:
            if len(found) >= MAX_PLACES or (found and position(found[-1]) == LAST_POSITION):
                break
            found.append(limited(position(place) + shift) | weight(place) << 14)
        joined[lexeme] = tuple(found)
    ordered = in_order(list(paced_iter(joined)))
    try:
        return pack((lexeme, joined[lexeme]) for lexeme in ordered)
    finally:
        release(joined, ordered)


def without(value: bytes, lexemes: Iterable[str | None]) -> bytes:
    """SQL's ``ts_delete``; NULL is passed over."""
    gone = distinct(lexemes)
    return pack(entry for entry in walk(value) if entry[0] not in gone)


def filtered(value: bytes, letters: Any) -> bytes:
    """SQL's ``ts_filter``: positions of some weights. SqlError 22004, 22023."""
    wanted = set()
    for letter in paced(flat(letters)):
        if letter is None:
            raise SqlError("22004", "weight array may not contain nulls")
        found = WEIGHTS.find(letter.upper()) if letter else -1
        if found < 0:
            raise SqlError("22023", quoting("unrecognized weight: ", letter))
        wanted.add(found)
    kept = ((lexeme, tuple([p for p in places if weight(p) in wanted])) for lexeme, places in walk(value))
    return pack((lexeme, places) for lexeme, places in kept if places)


def from_array(lexemes: Any) -> bytes:
    """SQL's ``array_to_tsvector``: 22004, 2200F, 54000."""
    found = list(flat(lexemes))
    for lexeme in paced(found):
        if lexeme is None:
            raise SqlError("22004", "lexeme array may not contain nulls")
        if not lexeme:
            raise SqlError("2200F", "lexeme array may not contain empty strings")
        if (length := utf8_length(lexeme)) > MAX_LEXEME_BYTES:
            raise SqlError("54000", f"word is too long ({length} bytes, max {MAX_LEXEME_BYTES} bytes)")
    return merged((lexeme, ()) for lexeme in found)


def entries(value: bytes) -> Iterator[tuple[str, tuple[int, ...] | None, tuple[str, ...] | None]]:
    """SQL's ``unnest``: lexeme, positions, weights; the latter two NULL where there are none."""
    for lexeme, places in walk(value):
        yield (
            lexeme,
            tuple(map(position, places)) or None,
            tuple(WEIGHTS[weight(place)] for place in places) or None,
        )


_ONE: Final[dict[str, Callable[..., Any]]] = {
    "length(tsvector)": size,
    "strip(tsvector)": strip,
    "setweight(tsvector,char)": set_weight,
    "setweight(tsvector,char,_text)": set_weight_of,
    "tsvector_concat(tsvector,tsvector)": concat,
    "ts_delete(tsvector,text)": lambda value, lexeme: without(value, (lexeme,)),
    "ts_delete(tsvector,_text)": lambda value, lexemes: without(value, flat(lexemes)),
    "ts_filter(tsvector,_char)": filtered,
    "tsvector_to_array(tsvector)": lambda value: tupled(gathered(lexeme for lexeme, _ in walk(value))),
    "array_to_tsvector(_text)": from_array,
    "unnest(tsvector)": entries,
    "ts_match_vq(tsvector,tsquery)": matches,
    "ts_match_qv(tsquery,tsvector)": lambda query, vector: matches(vector, query),
}


def _register() -> None:
    for signature, function in _ONE.items():
        REGISTRY.python(signature, function)
    register_comparisons(
        comparisons(lambda value: value), "tsvector_%s", "tsvector", "tsvector", "tsvector_cmp"
    )


_register()
