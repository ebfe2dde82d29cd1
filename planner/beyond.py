"""Statements beyond PostgreSQL's grammar, found by its scanner's tokens: SUBSCRIBE, and FETCH with a timeout.

    SUBSCRIBE [TO] name | (query) [AS OF expr] [UP TO expr] [WITH (snapshot [= bool], progress [= bool])]
    DECLARE c [BINARY] [NO SCROLL] CURSOR FOR SUBSCRIBE ...
    COPY (SUBSCRIBE ...) TO STDOUT [WITH (...)]
    FETCH [...] c WITH (timeout = 'interval')

What PostgreSQL's grammar knows is left to it: the pieces are cut out of the text, with blanks in the place of what
goes before, so that all spans are right as they stand.

    SUBSCRIBE (SELECT a FROM t) AS OF 5 + 1        the statement
               SELECT a FROM t                     its query
    SELECT                            5 + 1        its timestamp

This module knows tokens, not the library they come from (``planner.parse`` is its one door). No statement of
PostgreSQL begins with these words, so nothing changes its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, Protocol

from planner import ast
from planner.errors import Span, SqlError, not_supported

MAY_GO_BEYOND: Final = re.compile(r"\bsubscribe\b|\btimeout\b", re.IGNORECASE)
"""A text that does not match holds none of these statements; one that matches may."""

_OPEN, _CLOSE, _DOT, _COMMA, _EQUALS = "ASCII_40", "ASCII_41", "ASCII_46", "ASCII_44", "ASCII_61"
SEMICOLON: Final = "ASCII_59"
_ON: Final = ("true", "on", "1")
_OFF: Final = ("false", "off", "0")


class Token(Protocol):
    """A token: ``start`` and ``end`` (inclusive) count characters."""

    @property
    def start(self) -> int:
        """First character."""

    @property
    def end(self) -> int:
        """Last character."""

    @property
    def name(self) -> str:
        """What the scanner calls it."""


ParseOne = Callable[[str], ast.Node]
"""Parses a text that holds one statement of PostgreSQL's."""


def words(text: str, tokens: Sequence[Token]) -> list[str]:
    """Return the tokens in lower case as written, quoted identifiers with their quotes."""
    return [text[t.start : t.end + 1].lower() for t in tokens]


def goes_beyond(text: str, tokens: Sequence[Token]) -> bool:
    """Tell whether the tokens of one statement are those of a statement of this module."""
    said = words(text, tokens)
    if not said:
        return False
    if said[0] == "subscribe":
        return True
    if said[0] == "declare":
        return any(a == "for" and b == "subscribe" for a, b in pairwise(said))
    if said[0] == "copy":
        return said[1:3] == ["(", "subscribe"]
    return said[0] in ("fetch", "move") and "with" in said


def read_statement(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.Node:
    """Read one statement that ``goes_beyond``. Raises SqlError 42601, and what ``parse_one`` raises."""
    said = words(text, tokens)
    if said[0] == "subscribe":
        return _subscribe(text, tokens, parse_one)
    if said[0] in ("fetch", "move"):
        return _fetch(text, tokens, parse_one)
    at = said.index("subscribe")
    stop = _closing(text, tokens, at - 1) if said[0] == "copy" else len(tokens)
    inner = _subscribe(text, tokens[at:stop], parse_one)
    masked = text[: tokens[at].start] + "SELECT 1 "
    if stop < len(tokens):
        masked += " " * (tokens[stop].start - len(masked)) + text[tokens[stop].start : tokens[-1].end + 1]
    node = parse_one(masked)
    if isinstance(node, ast.DeclareCursor | ast.Copy):
        return replace(node, query=inner)
    raise AssertionError("DECLARE and COPY read as something else")


def _subscribe(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.Subscribe:
    said = words(text, tokens)
    at = 2 if said[1:2] == ["to"] else 1
    if at >= len(tokens):
        raise _syntax(text, tokens[-1].end + 1)
    if tokens[at].name == _OPEN:
        close = _closing(text, tokens, at)
        first, last, verb = tokens[at].end + 1, tokens[close].start, ""
        at = close + 1
    else:
        first, verb = tokens[at].start, "TABLE"
        at += 1
        while at + 1 < len(tokens) and tokens[at].name == _DOT:
            at += 2
        last = tokens[at - 1].end + 1
    query = parse_one(_after_blanks(text, tokens[0].start, first, last, verb))
    if not isinstance(query, ast.Select | ast.SetOp | ast.Values):
        raise not_supported("SUBSCRIBE to a statement that is not a query", span=query.span)
    found: dict[str, ast.Expression] = {}
    flags = {"snapshot": True, "progress": False}
    while at < len(tokens):
        clause = " ".join(said[at : at + 2])
        if clause in ("as of", "up to"):
            if clause in found:
                raise _syntax(text, tokens[at].start, said[at])
            start = at + 2
            if clause == "as of" and said[start : start + 2] == ["system", "time"]:
                start += 2
            at = _end_of_expression(tokens, said, start)
            if at == start:
                raise _syntax(text, tokens[at].start if at < len(tokens) else tokens[-1].end + 1)
            found[clause] = _expression(text, tokens, start, at, parse_one)
        elif said[at] == "with" and at + 1 < len(tokens) and tokens[at + 1].name == _OPEN:
            close = _closing(text, tokens, at + 1)
            for name, value, token in _options(text, tokens[at + 2 : close], tokens[close]):
                if name not in flags:
                    raise SqlError("42601", f'SUBSCRIBE option "{name}" not recognized', span=_span(token))
                flags[name] = _boolean(name, value, token)
            at = close + 1
        else:
            raise _syntax(text, tokens[at].start, text[tokens[at].start : tokens[at].end + 1])
    return ast.Subscribe(
        query=query,
        as_of=found.get("as of"),
        up_to=found.get("up to"),
        snapshot=flags["snapshot"],
        progress=flags["progress"],
        span=Span(tokens[0].start, tokens[-1].end + 1),
    )


def _fetch(text: str, tokens: Sequence[Token], parse_one: ParseOne) -> ast.Node:
    said = words(text, tokens)
    at = len(said) - 1 - said[::-1].index("with")
    if at + 1 >= len(tokens) or tokens[at + 1].name != _OPEN:
        raise _syntax(text, tokens[at].start, said[at])
    close = _closing(text, tokens, at + 1)
    if close != len(tokens) - 1:
        raise _syntax(text, tokens[close + 1].start, said[close + 1])
    timeout = None
    for name, value, token in _options(text, tokens[at + 2 : close], tokens[close]):
        if name != "timeout":
            raise SqlError("42601", f'FETCH option "{name}" not recognized', span=_span(token))
        if value is None or not value.startswith("'"):
            raise SqlError("22023", "timeout requires an interval, as in '1 second'", span=_span(token))
        timeout = value[1:-1].replace("''", "'")
    node = parse_one(text[: tokens[at].start])
    if not isinstance(node, ast.Fetch):
        raise AssertionError("FETCH reads as something else")
    return replace(node, timeout=timeout)


def _end_of_expression(tokens: Sequence[Token], said: Sequence[str], at: int) -> int:
    """Return where the expression that begins at ``at`` ends: at the next clause, or at the end."""
    depth = 0
    while at < len(tokens):
        name = tokens[at].name
        if name in (_OPEN, "ASCII_91"):
            depth += 1
        elif name in (_CLOSE, "ASCII_93"):
            depth -= 1
        elif depth == 0 and (
            said[at : at + 2] in (["as", "of"], ["up", "to"]) or said[at : at + 2] == ["with", "("]
        ):
            break
        at += 1
    return at


def _expression(
    text: str, tokens: Sequence[Token], start: int, stop: int, parse_one: ParseOne
) -> ast.Expression:
    piece = _after_blanks(text, tokens[0].start, tokens[start].start, tokens[stop - 1].end + 1, "SELECT")
    node = parse_one(piece)
    if isinstance(node, ast.Select) and len(node.targets) == 1 and not node.from_ and node.where is None:
        return node.targets[0].expr
    raise _syntax(text, tokens[start].start, text[tokens[start].start : tokens[start].end + 1])


def _after_blanks(text: str, begin: int, first: int, last: int, verb: str) -> str:
    """Return ``text[first:last]`` at its place, with blanks before it and ``verb`` where the statement begins."""
    head = " " * begin + verb
    return head + " " * (first - len(head)) + text[first:last]


def _options(text: str, tokens: Sequence[Token], end: Token) -> list[tuple[str, str | None, Token]]:
    """Read ``name [=] [value], ...``; values as written, None where there is none."""
    found: list[tuple[str, str | None, Token]] = []
    at = 0
    while True:
        if at >= len(tokens):
            raise _syntax(text, end.start, ")")
        token = tokens[at]
        name = text[token.start : token.end + 1].lower()
        at += 1
        if at < len(tokens) and tokens[at].name == _EQUALS:
            at += 1
            if at >= len(tokens):
                raise _syntax(text, end.start, ")")
        value = None
        if at < len(tokens) and tokens[at].name != _COMMA:
            value = text[tokens[at].start : tokens[at].end + 1]
            at += 1
        found.append((name, value, token))
        if at >= len(tokens):
            return found
        if tokens[at].name != _COMMA:
            raise _syntax(text, tokens[at].start, text[tokens[at].start : tokens[at].end + 1])
        at += 1


def _boolean(name: str, value: str | None, token: Token) -> bool:
    said = "true" if value is None else value.strip("'").lower()
    if said not in (*_ON, *_OFF):
        raise SqlError("42601", f"{name} requires a Boolean value", span=_span(token))
    return said in _ON


def _closing(text: str, tokens: Sequence[Token], at: int) -> int:
    """Return the index of the bracket that closes the one at ``at``."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].name == _OPEN:
            depth += 1
        elif tokens[i].name == _CLOSE:
            depth -= 1
            if depth == 0:
                return i
    raise _syntax(text, tokens[-1].end + 1)


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def _syntax(text: str, at: int, near: str = "") -> SqlError:
    if not near:
        return SqlError("42601", "syntax error at end of input", span=Span(at, at))
    return SqlError("42601", f'syntax error at or near "{near}"', span=Span(at, at + len(near)))
