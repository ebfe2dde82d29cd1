r"""Texts of sessions with ``standard_conforming_strings = off``, whose plain literals know escapes: made into
standard ones.

    INSERT INTO t VALUES ('C:\\new', 'it\'s', E'\n')   ->   INSERT INTO t VALUES ('C:\new' , 'it''s', E'\n')

This is where a text comes in; whatever keeps, prints or caches it afterwards sees standard literals alone. A
literal is as long as before (blanks follow it), so that positions hold. The parser library itself decodes the
escapes, and says what is wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, cast

from pgwire.give_way import PACE, give_way
from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse import Parsed, parse_one

_BETWEEN: Final = r"(?:[ \t\f\v]|--[^\n\r]*+)*+[\n\r](?:\s|--[^\n\r]*+(?:[\n\r]|\Z))*+"
"""What may stand between two quotes that are one literal: a line end at least."""

_STRING: Final = r"'(?:[^'\\]++|\\.|'')*+'"
_PLAIN: Final = r"'(?:[^']++|'')*+'"


def _tokens(string: str, unicode: str) -> re.Pattern[str]:
    """Return what finds the tokens of a text whose plain literals are ``string``, and those with Unicode
    escapes, or their beginnings, ``unicode``.
    """
    return re.compile(
        rf"""
        (?P<comment> --[^\n\r]*+ )
      | (?P<block> /\* )
      | (?P<unicode> [uU]&{unicode} )
      | (?P<other> [uU]&"(?:[^"]++|"")*+" | "(?:[^"]++|"")*+"
            | [bBxX]{_PLAIN}(?:{_BETWEEN}{_PLAIN})*+ )
      | (?P<escaped> [eE]{_STRING}(?:{_BETWEEN}{_STRING})*+ )
      | (?P<string> {string}(?:{_BETWEEN}{string})*+ )
      | (?P<open> ' )
      | (?P<dollar> \$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*+)?\$ )
      | [\w\x80-\U0010ffff][\w$\x80-\U0010ffff]*+
        """,
        re.DOTALL | re.VERBOSE | re.ASCII,
    )


_TOKEN: Final = _tokens(_STRING, "'")
_STANDARD_TOKEN: Final = _tokens(_PLAIN, _PLAIN)
_ENDS: Final = re.compile(r"/\*|\*/")

_QUOTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\'")
"""A quote behind a backslash that is not itself behind one."""

_PREFIX: Final = "SELECT E"


class Escape(NamedTuple):
    """The first escape of a plain literal, of which clients are warned: where the literal starts, in
    characters from 0, and what is said.
    """

    at: int
    message: str
    hint: str


_WARNINGS: Final = {
    "'": (
        "nonstandard use of \\' in a string literal",
        "Use '' to write quotes in strings, or use the escape string syntax (E'...').",
    ),
    "\\": (
        "nonstandard use of \\\\ in a string literal",
        "Use the escape string syntax for backslashes, e.g., E'\\\\'.",
    ),
}
_ANY_WARNING: Final = (
    "nonstandard use of escape in a string literal",
    "Use the escape string syntax for escapes, e.g., E'\\r\\n'.",
)


def to_standard(text: str) -> tuple[str, list[Escape]]:
    """Return a text of the same length whose plain literals mean as standard ones what they mean with
    escapes, and which had some.

    Raises SqlError 42601 for a literal that does not end, 0A000 for ``U&'...'``, and what the grammar says of
    escapes (22025, 22021).
    """
    pieces: list[str] = []
    found: list[Escape] = []
    copied = 0
    for match in _each(_TOKEN, text):
        start, at = match.span()
        match match.lastgroup:
            case "unicode":
                raise SqlError(
                    "0A000",
                    "unsafe use of string constant with Unicode escapes",
                    detail="String constants with Unicode escapes cannot be used when standard_conforming_strings is off.",
                    span=Span(start, at),
                )
            case "open":
                raise SqlError(
                    "42601",
                    f'unterminated quoted string at or near "{text[start:]}"',
                    span=Span(start, len(text)),
                )
            case "string" if "\\" in match[0]:
                literal = match[0]
                pieces += (text[copied:start], _standard(literal, start).ljust(len(literal)))
                copied = at
                found.append(_warning(literal, start))
    pieces.append(text[copied:])
    return "".join(pieces), found


def refuse_quotes(text: str, *, escapes: bool) -> None:
    r"""Raise SqlError 22P06 for a quote that is written ``\'``; ``escapes``: plain literals know escapes, too."""
    for match in _each(_TOKEN if escapes else _STANDARD_TOKEN, text):
        if match.lastgroup in ("escaped", "string" if escapes else "escaped") and _QUOTE.search(match[0]):
            raise SqlError(
                "22P06",
                "unsafe use of \\' in a string literal",
                hint="Use '' to write quotes in strings. \\' is insecure in client-only encodings.",
                span=Span(*match.span()),
            )


def _each(tokens: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a text that are no comments and not between dollars."""
    at = count = 0
    while (match := tokens.search(text, at)) is not None:
        at = match.end()
        count += 1
        if count % PACE == 0:
            give_way()
        match match.lastgroup:
            case "block":
                at = _comment_end(text, at)
            case "dollar":
                end = text.find(match[0], at)
                at = len(text) if end < 0 else end + len(match[0])
            case _:
                yield match


def _comment_end(text: str, at: int) -> int:
    """Return where the comment ends that is open at ``at``; comments nest."""
    depth = 1
    while depth:
        match = _ENDS.search(text, at)
        if match is None:
            return len(text)
        depth += 1 if match[0] == "/*" else -1
        at = match.end()
    return at


def _standard(literal: str, start: int) -> str:
    """Return a literal with escapes as a standard one, which is never longer."""
    try:
        parsed = parse_one(_PREFIX + literal)
    except SqlError as error:
        if error.span is not None:
            moved = start - len(_PREFIX)
            error.span = Span(max(start, error.span.start + moved), error.span.end + moved)
        raise
    # the grammar makes nothing else of "SELECT E'...'"
    select = cast("ast.Select", cast("Parsed", parsed).statement)
    value = cast(str, cast("ast.Constant", select.targets[0].expr).value)
    return "'" + value.replace("'", "''") + "'"


def _warning(literal: str, start: int) -> Escape:
    message, hint = _WARNINGS.get(literal[literal.index("\\") + 1], _ANY_WARNING)
    return Escape(start, message, hint)
