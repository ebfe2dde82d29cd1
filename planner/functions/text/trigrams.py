"""Trigrams of texts, as the extension pg_trgm takes them (manual F.35).

    'Holdfast db'     words hold fast db in small letters, two blanks before and one behind, in windows of three:
                      '  h' ' ho' 'hol' 'old' 'ldf' ... 'st '   '  d' ' db' 'db '
    LIKE '%fast d%'   what every text that matches has: 'fas' 'ast' 'st ' '  d', not ' d?': the word may go on

A trigram of other characters than ASCII is three bytes of a checksum, as in PostgreSQL, and is shown as
'0x…'; two that collide are one. Whatever compares texts here compares those as they are shown.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Final

from pgwire.give_way import give_way, paced, paced_iter
from pgwire.long.arrays import gathered
from pgwire.long.sets import distinct
from pgwire.long.values import joined, pieces
from pgwire.release import mind_long, release
from planner.base.letters import lower

WIDTH: Final = 3
_PART: Final = 1024
"""Characters of a text that are looked at at once."""
_KEPT_CHARS: Final = 8192
"""Longer texts are taken apart each time."""


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text in small letters: runs of letters and digits."""
    begun: list[str] = []  # of a word that has not ended in the parts before
    for part in pieces(text, _PART):
        start = 0 if begun else -1
        for at, char in enumerate(part):
            if _in_word(char):
                if start < 0:
                    start = at
            elif start >= 0:
                begun.append(part[start:at])
                yield lower(joined(begun))
                begun, start = [], -1
        if start >= 0:
            begun.append(part[start:])
    if begun:
        yield lower(joined(begun))


def _in_word(char: str) -> bool:
    return char.isalpha() or char.isdecimal()


def _windows(padded: str) -> Iterator[str]:
    for start in paced(range(len(padded) - WIDTH + 1), 512):
        yield _shown(padded[start : start + WIDTH])


def _shown(trigram: str) -> str:
    if trigram.isascii():
        return trigram
    # PostgreSQL's legacy CRC-32 runs the other way round than zlib's: bytes come in at its upper end
    crc = 0xFFFFFFFF
    for byte in trigram.encode("utf-8", "surrogatepass"):
        crc = _table()[(crc >> 24) ^ byte] ^ ((crc << 8) & 0xFFFFFFFF)
    return f"0x{(crc ^ 0xFFFFFFFF).to_bytes(4, 'little')[:WIDTH].hex()}"


@functools.cache
def _table() -> Sequence[int]:
    """Return the table of the reflected CRC-32: entry n is what zlib makes of a byte, without its first and
    last inversion.
    """
    return [zlib.crc32(bytes((n,)), 0xFFFFFFFF) ^ 0xFFFFFFFF for n in range(256)]


def in_order(text: str) -> list[str]:
    """Return the trigrams of a text as they come, with those that come again."""
    return gathered(trigram for word in _words(text) for trigram in _windows(joined(("  ", word, " "))))


def trigrams(text: str) -> AbstractSet[str]:
    """Return the trigrams of a text; none where it has no word."""
    if len(text) <= _KEPT_CHARS:
        return _kept(text)
    found: set[str] = set()
    for word in _words(text):
        found.update(_windows(joined(("  ", word, " "))))
    return found


@functools.lru_cache(maxsize=512)
def _kept(text: str) -> frozenset[str]:
    return frozenset(in_order(text))


def of_pattern(pattern: str) -> frozenset[str]:
    """Return the trigrams that every text has which a LIKE or ILIKE pattern matches; a backslash is its
    escape character.
    """
    found: set[str] = set()
    for before, word, behind in _pieces(pattern):
        found.update(_windows(f"{before}{lower(word)}{behind}"))
    return frozenset(found)


def _pieces(pattern: str) -> Iterator[tuple[str, str, str]]:
    """Yield the runs of letters and digits between others, with the blanks that surely are around them in a text."""
    word: list[str] = []
    before = "  "
    chars = iter(pattern)
    for written in chars:
        wild = written in "%_"
        char = next(chars, "") if written == "\\" else written
        if not wild and char and _in_word(char):
            word.append(char)
            continue
        if word:
            yield before, "".join(word), "" if wild else " "
            word.clear()
        before = "" if wild else "  "
    if word:
        yield before, "".join(word), " "


def similarity(one: str, other: str) -> float:
    """Return how many trigrams two texts share, of those that either has: 0 to 1."""
    ones, others = trigrams(one), trigrams(other)
    fewer, more = sorted((ones, others), key=len)
    shared = sum(trigram in more for trigram in paced_iter(fewer, 512))
    found = shared / (len(ones) + len(others) - shared) if ones and others else 0.0
    release(*(each for each in (ones, others) if isinstance(each, set)))  # others are kept
    return found


def word_similarity(words: str, text: str, *, strict: bool = False) -> float:
    """Return the greatest similarity of ``words`` to a run of trigrams of ``text``: 0 to 1.

    ``strict``: only runs that begin and end where words do. PostgreSQL's search
    (``iterate_word_similarity``): not each run is tried, the begin of the best run so far never moves back.
    """
    wanted = trigrams(words)
    places = in_order(text)
    if not wanted or not places:
        return 0.0
    begins, ends = _bounds(text) if strict else ((), ())
    last: dict[str, int] = {}
    inside = shared = 0
    low = 0 if strict else -1
    best = 0.0
    for at, trigram in enumerate(places):
        give_way()
        known = trigram in wanted
        if low >= 0 or known:
            if trigram not in last:
                inside += 1
                shared += known
            last[trigram] = at
        if not (at in ends if strict else known):
            continue
        if low == -1:
            low, inside = at, 1
        current = shared / (len(wanted) + inside - shared)
        old_low, try_shared, try_inside = low, shared, inside
        for start in paced(range(low, at + 1)):
            if not strict or start in begins:
                value = try_shared / (len(wanted) + try_inside - try_shared)
                if value > current:
                    current, inside, low, shared = value, try_inside, start, try_shared
            left = places[start]
            if last.get(left) == start:
                try_inside -= 1
                try_shared -= left in wanted
        best = max(best, current)
        for start in paced(range(old_low, low)):
            if last.get(places[start]) == start:
                del last[places[start]]
    return best


def _bounds(text: str) -> tuple[Collection[int], Collection[int]]:
    """Return at which trigrams of a text words begin, and at which they end."""
    starts = mind_long([0, *accumulate(len(word) + 1 for word in _words(text))])
    return distinct(paced_iter(starts[:-1])), distinct(start - 1 for start in paced_iter(starts[1:]))
