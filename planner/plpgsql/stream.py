"""The tokens of a PL/pgSQL body, and reading SQL out of it up to a word that ends it.

IF  n > 0 AND (SELECT ...)  THEN
───────── piece ──────  until
"""

from __future__ import annotations

import bisect
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pgwire.give_way import give_way, paced
from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse import parse, scan
from planner.plpgsql.tree import Names, Piece

RESERVED: Final = frozenset(
    [
        "all",
        "begin",
        "by",
        "case",
        "declare",
        "else",
        "end",
        "execute",
        "for",
        "foreach",
        "from",
        "if",
        "in",
        "into",
        "loop",
        "not",
        "null",
        "or",
        "strict",
        "then",
        "to",
        "using",
        "when",
        "while",
    ]
)
"""Words that never are names (pl_reserved_kwlist.h)."""

_DOLLAR: Final = "$"


@dataclass(frozen=True, slots=True)
class Token:
    """A token: ``word`` is its text in lower case if it is a bare word, ``name`` its text if it may name something."""

    start: int
    end: int
    text: str
    word: str
    name: str
    is_string: bool


def _token(text: str, start: int, end: int, kind: str, keyword: str) -> Token:
    shown = text[start:end]
    word = name = ""
    if kind in ("IDENT", "UIDENT") or keyword != "NO_KEYWORD":
        if shown.startswith('"'):
            name = shown[1:-1].replace('""', '"')
        else:
            word = shown.lower()
            name = "" if word in RESERVED else word
    elif kind == "PARAM":
        name = shown
    return Token(start, end, shown, word, name, kind in ("SCONST", "USCONST"))


def _line_ends(text: str) -> list[int]:
    found, at = [], text.find("\n")
    while at >= 0:
        found.append(at)
        at = text.find("\n", at + 1)
        give_way()
    return found


class Stream:
    """Reads the tokens of ``text`` one after another."""

    def __init__(self, text: str) -> None:
        """Raises SqlError 42601 and its kin for what is no token."""
        self.text = text
        self.tokens = [_token(text, t.start, t.end + 1, t.name, t.kind) for t in paced(scan(text))]
        self.at = 0
        self._lines = _line_ends(text)

    def line(self, place: int) -> int:
        """Return the line, from 1, of a place in the text."""
        return bisect.bisect_left(self._lines, place) + 1

    def peek(self, ahead: int = 0) -> Token | None:
        """Return a token that is to come, None behind the last."""
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """Return the bare word, or the symbol, that is to come; "" for anything else, and behind the last."""
        token = self.peek(ahead)
        if token is None:
            return ""
        return token.word or ("" if token.name or token.is_string else token.text)

    @property
    def place(self) -> int:
        """Where the next token begins."""
        token = self.peek()
        return len(self.text) if token is None else token.start

    def take(self, *words: str) -> bool:
        """Go on behind these words if they come next."""
        if all(self.word(i) == word for i, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Go on behind these words. Raises SqlError 42601."""
        for word in words:
            if self.word() != word:
                raise self.error()
            self.at += 1

    def next_name(self) -> str:
        """Return the name that comes next, folded. Raises SqlError 42601."""
        token = self.peek()
        if token is None or not token.name or token.name.startswith(_DOLLAR):
            raise self.error()
        self.at += 1
        return token.name

    def error(self, message: str = "syntax error", ahead: int = 0) -> SqlError:
        """Return 42601 at the next token."""
        token = self.peek(ahead)
        if token is None:
            place = len(self.text)
            return SqlError("42601", f"{message} at end of input", span=Span(place, place))
        return SqlError("42601", f'{message} at or near "{token.text}"', span=Span(token.start, token.end))

    # -- SQL ---------------------------------------------------------------------------------------

    def skip_until(
        self, untils: Collection[str], expected: str, *, expression: bool = True
    ) -> tuple[int, int]:
        """Go to the first of ``untils`` outside of parentheses; return where the text before it begins and ends.

        Raises SqlError 42601: there is none before the statement ends, nothing is before it, parentheses do not match.
        """
        what = "expression" if expression else "statement"
        first, depth = self.at, 0
        while True:
            word = self.word()
            token = self.peek()
            if depth == 0 and word in untils and token is not None:
                break
            if word in ("(", "["):
                depth += 1
            elif word in (")", "]"):
                depth -= 1
                if depth < 0:
                    raise self.error("mismatched parentheses")
            elif token is None:
                raise self.error()
            elif word == ";":
                if depth:
                    raise self.error("mismatched parentheses")
                raise SqlError(
                    "42601", f'missing "{expected}" at end of SQL {what}', span=Span(token.start, token.end)
                )
            self.at += 1
        if self.at == first:
            raise self.error("missing expression" if expression else "missing SQL statement")
        return self.tokens[first].start, self.tokens[self.at - 1].end

    def expression(self, names: Names, *untils: str, expected: str = "") -> Piece:
        """Read an expression up to one of ``untils``, which is left to be read. Raises as ``skip_until``, and
        syntax errors.
        """
        start, end = self.skip_until(untils, expected or untils[0])
        return self.piece(start, end, names)

    def statement(self, names: Names, *untils: str) -> Piece:
        """Read a statement of SQL up to one of ``untils``. Raises as ``expression``."""
        start, end = self.skip_until(untils, untils[0], expression=False)
        return self.piece(start, end, names, expression=False)

    def piece(
        self, start: int, end: int, names: Names, *, expression: bool = True, text: str | None = None
    ) -> Piece:
        """Return a part of the text as SQL; ``text``: to be read in its place, as long. Raises SqlError
        42601, 0A000.
        """
        found = Piece(
            self.text[start:end] if text is None else text,
            start,
            names,
            "expression" if expression else "statement",
        )
        try:
            parse_piece(found)
        except SqlError as error:
            if error.span is not None:
                moved = start - (len(PREFIX) if expression else 0)
                error.span = Span(error.span.start + moved, error.span.end + moved)
            raise
        return found


PREFIX: Final = "SELECT "
"""Before an expression, it is a query."""


def parse_piece(piece: Piece) -> ast.StatementNode:
    """Return the tree of a piece; its spans count in its text, PREFIX before it if it is an expression.
    Raises SqlError 42601, 0A000.
    """
    text = PREFIX + piece.text if piece.kind == "expression" else piece.text
    found = parse(text)
    if len(found) != 1 or found[0].as_of is not None:
        raise SqlError("42601", "syntax error at end of input", span=Span(len(text), len(text)))
    return found[0].statement
