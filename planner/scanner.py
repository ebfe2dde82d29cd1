"""The tokens of a text, as PostgreSQL's scanner finds them: with ``planner.parse`` what knows the parser library.

    scan("a <> 'b' -- c")  ──►  (0, 0, IDENT, NO_KEYWORD)  (2, 3, NOT_EQUALS, …)  (5, 7, SCONST, …)  (9, 12, SQL_COMMENT, …)

The library makes all tokens in one call, of some two microseconds for each; those of a long text are made in a process beside the server.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pglast import parser as _pg

from pgwire.give_way import outside, paced
from pgwire.long_values import joined, split
from planner.errors import SqlError

HERE: Final = 8 << 10
"""Characters of a text whose tokens are made here: some milliseconds."""
COMMENTS: Final = frozenset(("C_COMMENT", "SQL_COMMENT"))


class Token(NamedTuple):
    """A token: ``start`` and ``end`` (inclusive) count characters; ``name`` and ``kind`` are what the scanner calls it and its keyword."""

    start: int
    end: int
    name: str
    kind: str


class ScanError(Exception):
    """There is no token where the scanner stands: its message, and the place that it tells, if any."""


def scan(text: str) -> list[Token]:
    """Return the tokens of a text, comments too. Raises ScanError; SqlError 22021 for what is not UTF-8."""
    if len(text) <= HERE:
        try:
            return [Token(t.start, t.end, t.name, t.kind) for t in _scanned(text)]
        except _pg.ParseError as error:
            raise ScanError(*error.args) from None
    shown, problem = _shown(text)
    if problem:
        raise ScanError(*problem)
    found = []
    for line in paced(split(shown, "\n") if shown else []):
        start, end, name, kind = line.split(" ")
        found.append(Token(int(start), int(end), name, kind))
    return found


def _scanned(text: str) -> list[_pg.Token]:
    try:
        return list(_pg.scan(text))
    except UnicodeEncodeError as error:
        raise SqlError("22021", "the statement text is not valid UTF-8") from error


@outside(HERE)
def _shown(text: str) -> tuple[str, tuple[str | int, ...]]:
    """Return the tokens, one in a line, and what a ScanError has."""
    try:
        return joined([f"{t.start} {t.end} {t.name} {t.kind}" for t in _scanned(text)], "\n"), ()
    except _pg.ParseError as error:
        return "", error.args
