"""What is read alike in all statements beyond PostgreSQL's grammar: names, queries, expressions, options, by tokens.

    CREATE SUBSCRIPTION feed FOR (SELECT a FROM t) WITH (snapshot = off)
                        identifier   queried             options

What PostgreSQL's grammar knows is left to it: the pieces are cut out of the text, with blanks in the place of what
goes before, so that all spans are right as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from planner import ast
from planner.base.errors import Span, SqlError, not_supported

OPEN, CLOSE, DOT, COMMA, EQUALS = "ASCII_40", "ASCII_41", "ASCII_46", "ASCII_44", "ASCII_61"
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


ParseOne = Callable[[str], ast.StatementNode]
"""Parses a text that holds one statement of PostgreSQL's."""


def words(text: str, tokens: Sequence[Token]) -> list[str]:
    """Return the tokens in lower case as written, quoted identifiers with their quotes."""
    return [text[t.start : t.end + 1].lower() for t in tokens]


def identifier(text: str, tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """Return the name that stands at ``at``, folded as PostgreSQL's are, and where the text goes on. Raises 42601."""
    if at >= len(tokens):
        raise syntax_error(text, tokens[-1].end + 1)
    written = text[tokens[at].start : tokens[at].end + 1]
    if written.startswith('"') and len(written) > 2:
        return written[1:-1].replace('""', '"'), at + 1
    if not written.replace("_", "a").replace("$", "a").isalnum() or written[0].isdigit():
        raise syntax_error(text, tokens[at].start, written)
    return written.lower(), at + 1


def queried(text: str, tokens: Sequence[Token], at: int, parse_one: ParseOne) -> tuple[ast.QueryNode, int]:
    """Read ``name`` or ``(query)`` at ``at``; returns the query and where the text goes on. Raises 42601, 0A000."""
    if tokens[at].name == OPEN:
        close = closing(text, tokens, at)
        first, last, verb = tokens[at].end + 1, tokens[close].start, ""
        at = close + 1
    else:
        first, verb = tokens[at].start, "TABLE"
        at += 1
        while at + 1 < len(tokens) and tokens[at].name == DOT:
            at += 2
        last = tokens[at - 1].end + 1
    query = parse_one(after_blanks(text, tokens[0].start, first, last, verb))
    if not isinstance(query, ast.Select | ast.SetOp | ast.Values):
        raise not_supported("SUBSCRIBE to a statement that is not a query", span=query.span)
    return query, at


def end_of_expression(tokens: Sequence[Token], said: Sequence[str], at: int) -> int:
    """Return where the expression that begins at ``at`` ends: at the next clause, or at the end."""
    depth = 0
    while at < len(tokens):
        name = tokens[at].name
        if name in (OPEN, "ASCII_91"):
            depth += 1
        elif name in (CLOSE, "ASCII_93"):
            depth -= 1
        elif depth == 0 and (
            said[at : at + 2] in (["as", "of"], ["up", "to"]) or said[at : at + 2] == ["with", "("]
        ):
            break
        at += 1
    return at


def expression(
    text: str, tokens: Sequence[Token], start: int, stop: int, parse_one: ParseOne
) -> ast.Expression:
    """Return the expression in the tokens from ``start`` to below ``stop``. Raises 42601."""
    piece = after_blanks(text, tokens[0].start, tokens[start].start, tokens[stop - 1].end + 1, "SELECT")
    node = parse_one(piece)
    if isinstance(node, ast.Select) and len(node.targets) == 1 and not node.from_ and node.where is None:
        return node.targets[0].expr
    raise syntax_error(text, tokens[start].start, text[tokens[start].start : tokens[start].end + 1])


def after_blanks(text: str, begin: int, first: int, last: int, verb: str) -> str:
    """Return ``text[first:last]`` at its place, with blanks before it and ``verb`` where the statement begins."""
    head = " " * begin + verb
    return head + " " * (first - len(head)) + text[first:last]


def options(text: str, tokens: Sequence[Token], end: Token) -> list[tuple[str, str | None, Token]]:
    """Read ``name [=] [value], ...``; values as written, None where there is none."""
    found: list[tuple[str, str | None, Token]] = []
    at = 0
    while True:
        if at >= len(tokens):
            raise syntax_error(text, end.start, ")")
        token = tokens[at]
        name = text[token.start : token.end + 1].lower()
        at += 1
        if at < len(tokens) and tokens[at].name == EQUALS:
            at += 1
            if at >= len(tokens):
                raise syntax_error(text, end.start, ")")
        value = None
        if at < len(tokens) and tokens[at].name != COMMA:
            value = text[tokens[at].start : tokens[at].end + 1]
            at += 1
        found.append((name, value, token))
        if at >= len(tokens):
            return found
        if tokens[at].name != COMMA:
            raise syntax_error(text, tokens[at].start, text[tokens[at].start : tokens[at].end + 1])
        at += 1


def boolean(name: str, value: str | None, token: Token) -> bool:
    """Return an option's value; without one it is true. Raises 42601."""
    said = "true" if value is None else value.strip("'").lower()
    if said not in (*_ON, *_OFF):
        raise SqlError("42601", f"{name} requires a Boolean value", span=span_of(token))
    return said in _ON


def closing(text: str, tokens: Sequence[Token], at: int) -> int:
    """Return the index of the bracket that closes the one at ``at``."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].name == OPEN:
            depth += 1
        elif tokens[i].name == CLOSE:
            depth -= 1
            if depth == 0:
                return i
    raise syntax_error(text, tokens[-1].end + 1)


def span_of(token: Token) -> Span:
    """Return where a token stands."""
    return Span(token.start, token.end + 1)


def syntax_error(text: str, at: int, near: str = "") -> SqlError:
    """Return a syntax error at ``near``, which stands at ``at``; at the end of the input without it."""
    if not near:
        return SqlError("42601", "syntax error at end of input", span=Span(at, at))
    return SqlError("42601", f'syntax error at or near "{near}"', span=Span(at, at + len(near)))
