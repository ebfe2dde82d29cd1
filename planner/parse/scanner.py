"""The tokens of a text, as PostgreSQL's scanner finds them: with ``planner.parse`` what knows the parser library.

    scan("a <> 'b' -- c")  ──►  (0, 0, IDENT, NO_KEYWORD)  (2, 3, NOT_EQUALS, …)  (5, 7, SCONST, …)  (9, 12, SQL_COMMENT, …)

The library makes all tokens in one call, of some two microseconds for each; those of a long text are made in
a process beside the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from pglast import parser as _pg

from pgwire.give_way import give_way, outside, paced
from pgwire.long.values import joined, split
from planner.base.errors import SqlError

HERE: Final = 8 << 10
"""Characters of a text whose tokens are made here: some milliseconds."""
STEP: Final = 2 << 10
"""Characters of a text whose tokens are made at once where they are wanted one after the other."""
COMMENTS: Final = frozenset(("C_COMMENT", "SQL_COMMENT"))
_ALONE: Final = frozenset("(),;[]")
"""Characters that are tokens whatever follows."""


class Token(NamedTuple):
    """A token: ``start`` and ``end`` (inclusive) count characters; ``name`` and ``kind`` are what the scanner
    calls it and its keyword.
    """

    start: int
    end: int
    name: str
    kind: str


class ScanError(Exception):
    """There is no token where the scanner stands: its message, and the place that it tells, if any."""


def scan(text: str, told: bool = True) -> list[Token]:
    """Return the tokens of a text, comments too. Raises ScanError, without its message unless it is to be
    ``told``: that quotes as much as it likes; SqlError 22021 for what is not UTF-8.
    """
    if len(text) <= HERE:
        try:
            return [Token(t.start, t.end, t.name, t.kind) for t in _scanned(text)]
        except _pg.ParseError as error:
            raise ScanError(*error.args) from None
    shown, problem = _shown(text, told)
    if problem:
        raise ScanError(*problem)
    found = []
    for line in paced(split(shown, "\n") if shown else []):
        start, end, name, kind = line.split(" ")
        found.append(Token(int(start), int(end), name, kind))
    return found


def each(text: str) -> Iterator[Token]:
    """Yield the tokens of a text without comments; those of a long text are made step by step, as far as they
    are asked for.

    Raises ScanError, whose place counts from where the scanner last began; SqlError 22021 for what is not UTF-8.
    """
    at, size = 0, STEP
    while at < len(text):
        end = min(at + size, len(text))
        try:
            tokens = [t for t in scan(text[at:end], end == len(text)) if t.name not in COMMENTS]
        except ScanError:
            if end == len(text):
                raise
            tokens = []  # a literal or comment that is cut, perhaps
        settled = len(tokens) if end == len(text) else _settled(text, at, tokens)
        if settled == 0 and end < len(text):
            size *= 2
            continue
        for start, stop, name, kind in tokens[:settled]:
            yield Token(at + start, at + stop, name, kind)
        at, size = (at + tokens[settled].start if settled < len(tokens) else end), STEP
        give_way()


def _settled(text: str, at: int, tokens: list[Token]) -> int:
    """Return how many of the tokens of a piece that begins at ``at`` are the same whatever follows.

    Not the last one, nor what it adjoins, nor a literal before it: what looks like a minus may begin the
    comment behind which that goes on.
    """
    last = len(tokens) - 1
    while last > 0:
        before = tokens[last - 1]
        end = text[at + before.end]
        if end in _ALONE or (end != "'" and before.end + 1 < tokens[last].start):
            break
        last -= 1
    return max(last, 0)


def _scanned(text: str) -> list[_pg.Token]:
    try:
        return list(_pg.scan(text))
    except UnicodeEncodeError as error:
        raise SqlError("22021", "the statement text is not valid UTF-8") from error


def raise_out_of_memory(error: Exception) -> None:
    """Raise MemoryError where that is what libpg_query has met, in PostgreSQL's words: it says nothing about
    the text.
    """
    if str(error.args[0]).startswith("out of memory"):
        raise MemoryError


@outside(HERE)
def _shown(text: str, told: bool) -> tuple[str, tuple[str | int, ...]]:
    """Return the tokens, one in a line, and what a ScanError has."""
    try:
        return joined([f"{t.start} {t.end} {t.name} {t.kind}" for t in _scanned(text)], "\n"), ()
    except _pg.ParseError as error:
        raise_out_of_memory(error)
        return "", error.args if told else ("",)
