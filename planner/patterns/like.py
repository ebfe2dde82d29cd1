r"""LIKE and ILIKE (manual 9.7.1): a pattern is segments between ``%``, a segment is runs of text and places
for any character.

    'ab%c_d%'      begins with ab, then somewhere c·d behind it

Each segment is taken where it first fits behind the one before it, and never tried again: what is left for
the next ones is as much as can be. The last one, unless ``%`` follows it, has to fit at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgwire.give_way import paced
from pgwire.kept import kept
from pgwire.long.arrays import tupled
from pgwire.long.values import LONG, find, joined_up
from pgwire.release import mind_long
from planner.base.errors import SqlError
from planner.base.letters import lower
from planner.patterns.steps import spend

_PLAIN: Final = re.compile(r"[^%_\\]+")
_WINDOW: Final = 1 << 14
"""Characters of a pattern that are looked at in one call."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """What stands between two ``%``: texts with their offsets, and how long the whole is; ``anchor`` is the
    longest text.
    """

    runs: tuple[tuple[int, str], ...]
    length: int
    anchor: tuple[int, str] | None

    def fits(self, s: str, at: int) -> bool:
        """Tell whether it stands at a place of a text; it may be past the end."""
        if at + self.length > len(s):
            return False
        for number, (offset, run) in enumerate(self.runs):
            if number % 64 == 63:
                spend(64 * 4)
            if not s.startswith(run, at + offset):
                return False
        return True

    def find(self, s: str, at: int) -> int:
        """Return the first place at or behind ``at`` where it stands, -1 where there is none."""
        if self.anchor is None:
            return at if at + self.length <= len(s) else -1
        offset, run = self.anchor
        while True:
            before = at
            found = find(s, run, at + offset)
            if found < 0:
                return -1
            at = found - offset
            if self.fits(s, at):
                return at
            spend((at - before) // 16 + 10)
            at += 1


class _Reading:
    """Segments while they are read."""

    def __init__(self) -> None:
        self.segments: list[_Segment] = []
        self._begin()

    def _begin(self) -> None:
        self._runs: list[tuple[int, str]] = []
        self._anchor: tuple[int, str] | None = None
        self._text: list[str] = []
        self._length = 0

    def text(self, text: str) -> None:
        """Go on with a run."""
        self._text.append(text)
        self._length += len(text)

    def anything(self) -> None:
        """A place for any character."""
        self._end_run()
        self._length += 1

    def end(self) -> None:
        """The segment ends."""
        self._end_run()
        runs = mind_long(tupled(self._runs))
        self.segments.append(_Segment(runs, self._length, self._anchor))
        self._begin()

    def _end_run(self) -> None:
        if self._text:
            run = joined_up(self._text)
            placed = (self._length - len(run), run)
            self._runs.append(placed)
            if self._anchor is None or len(run) > len(self._anchor[1]):
                self._anchor = placed
            self._text = []


def _read(pattern: str) -> tuple[list[_Segment], bool]:
    """Return the segments of a pattern (one more than its ``%``), and whether it ends in its escape."""
    reading = _Reading()
    i = steps = 0
    unfinished = False
    while i < len(pattern):
        steps += 1
        if steps % 64 == 0:
            spend(512)
        plain = _PLAIN.match(pattern, i, i + _WINDOW)
        if plain is not None:
            reading.text(plain[0])
            i = plain.end()
            spend(len(plain[0]) >> 2)
            continue
        c = pattern[i]
        if c == "\\":
            i += 1
            if i == len(pattern):
                unfinished = True
                break
            reading.text(pattern[i])
        elif c == "%":
            reading.end()
        else:
            reading.anything()
        i += 1
    reading.end()
    return mind_long(reading.segments), unfinished


@kept(1000)
def like_matcher(pattern: str, ignore_case: bool = False) -> Callable[[str], bool]:
    r"""Return the test for a LIKE pattern whose escape character is ``\``; 22025 for a trailing escape, where
    a match gets there.

    ``ignore_case``: small letters of the text are compared with those of the pattern, as PostgreSQL does it,
    so 'K' (Kelvin) is like 'k', and 'ſ' is not like 's'.
    """
    if ignore_case:
        test = like_matcher(lower(pattern))
        return lambda s: test(lower(s))
    segments, unfinished = _read(pattern)
    first, last = segments[0], segments[-1]
    if unfinished:
        return lambda s: _unfinished(segments, s)
    if len(segments) == 1:
        if not first.runs:
            return lambda s: len(s) == first.length
        if first.length == len(first.runs[0][1]):
            return first.runs[0][1].__eq__
        return lambda s: len(s) == first.length and first.fits(s, 0)
    between = paced(range(1, len(segments) - 1))
    middle = mind_long([segments[number] for number in between if segments[number].length])
    plain = _plain(first, middle, last)
    if plain is not None:
        return plain

    def match(s: str) -> bool:
        at = first.length
        end = len(s) - last.length
        if at > end or not first.fits(s, 0) or not last.fits(s, end):
            return False
        for segment in paced(middle):
            at = segment.find(s, at)
            if at < 0:
                return False
            at += segment.length
        return at <= end

    return match


def _plain(first: _Segment, middle: list[_Segment], last: _Segment) -> Callable[[str], bool] | None:
    """Return a shorter test for text%, %text and %text%; None for anything else."""
    if len(middle) > 1:
        return None
    some = [segment for segment in (first, *middle, last) if segment.length]
    if len(some) != 1 or not some[0].runs or some[0].length != len(some[0].runs[0][1]):
        return None
    text = some[0].runs[0][1]
    if first.length:
        return lambda s: s.startswith(text)
    if last.length:
        return lambda s: s.endswith(text)
    return lambda s: text in s if len(s) < LONG else find(s, text) >= 0


def _unfinished(segments: list[_Segment], s: str) -> bool:
    """Match a pattern that ends in its escape: 22025 once the match gets there with text left, else it does
    not match.
    """
    if not segments[0].fits(s, 0):
        return False
    at = segments[0].length
    skipping = False  # behind % and _ alone what follows is looked at before the text
    for segment in segments[1:]:
        if at >= len(s) and not skipping:
            return False
        at = segment.find(s, at)
        if at < 0:
            return False
        at += segment.length
        skipping = segment.anchor is None
    if at < len(s) or skipping:
        raise SqlError("22025", "LIKE pattern must not end with escape character")
    return False
