"""AS OF SYSTEM TIME: found in the text before the grammar sees it, which does not know it.

    SELECT a FROM t AS OF SYSTEM TIME '-5s' WHERE a > 1       a query: after its FROM clause, at most once
    SELECT a FROM t                         WHERE a > 1       what the grammar is given: every position stays
    BEGIN AS OF SYSTEM TIME '-5s'                             a transaction that only reads
    BEGIN READ ONLY

No statement of PostgreSQL's has the words AS OF SYSTEM in a row, so nothing else can be meant. The clause ends
where the query goes on: at WHERE, GROUP, ORDER, UNION ..., at a closing parenthesis, or with the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from planner.base.errors import Span, SqlError
from planner.base.long_search import occurs

_MAYBE = re.compile(r"\bsystem\b", re.IGNORECASE)
_CLAUSE = ("AS", "OF", "SYSTEM", "TIME")
_ENDS_QUERY = frozenset(
    ("WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "UNION", "INTERSECT", "EXCEPT",
     "WITH")
)  # fmt: skip
_ENDS_MODE = frozenset((",", "READ", "ISOLATION", "NOT", "DEFERRABLE"))
_MODES = frozenset(("BEGIN", "START", "SET"))  # what a statement begins with that takes transaction modes
_DEEPER = frozenset(("COPY",))  # what a statement begins with whose query stands in parentheses

Token = tuple[str, int, int]
"""A word or sign in upper case, with the characters it stands at: [start, end)."""


@dataclass(frozen=True, slots=True)
class AsOf:
    """One clause: the text of its expression, and where that stands in the whole text."""

    text: str
    span: Span


def possible(text: str) -> bool:
    """Tell at a glance whether ``text`` may hold a clause."""
    return occurs(_MAYBE, text, ("system",))


def cut(text: str, tokens: Iterable[Token]) -> tuple[str, list[AsOf]]:
    """Return the text with every clause blanked out, and the clauses in order.

    Raises SqlError: 42601 for a clause without a value or a second one in a statement; 0A000 for one in a sub-query.
    """
    words = list(tokens)
    found: list[AsOf] = []
    first, depth, taken = "", 0, False
    pieces: list[str] = []
    done = position = 0
    while position < len(words):
        word, start, _end = words[position]
        if word == ";" and depth == 0:
            first, taken = "", False
        elif not first:
            first = word
        if tuple(w for w, _, _ in words[position : position + 4]) != _CLAUSE:
            depth += (word == "(") - (word == ")")
            position += 1
            continue
        span = Span(start, words[position + 3][2])
        if depth > (first in _DEEPER):
            raise SqlError(
                "0A000",
                "AS OF SYSTEM TIME is not supported in a sub-query",
                hint="It belongs behind the FROM clause of the whole statement, which it applies to.",
                span=span,
            )
        if taken:
            raise SqlError("42601", "AS OF SYSTEM TIME may be given once in a statement", span=span)
        taken = True
        last = _end_of_value(words, position + 4, _ENDS_MODE if first in _MODES else _ENDS_QUERY)
        if last == position + 4:
            raise SqlError("42601", "AS OF SYSTEM TIME needs a timestamp", span=span)
        value = Span(words[position + 4][1], words[last - 1][2])
        found.append(AsOf(text[value.start : value.end], value))
        pieces += [text[done:start], ("READ ONLY" if first in _MODES else "").ljust(value.end - start)]
        done = value.end
        position = last
    pieces.append(text[done:])
    return "".join(pieces), found


def _end_of_value(words: list[Token], position: int, ends: frozenset[str]) -> int:
    """Return the position behind the expression that begins at ``position``."""
    depth = 0
    while position < len(words):
        word = words[position][0]
        if depth == 0 and (word in ends or word in (";", ")")):
            break
        depth += (word in ("(", "[")) - (word in (")", "]"))
        position += 1
    return position
