r"""Texts of sessions with ``standard_conforming_strings = off``, whose plain literals know escapes: made into standard ones.

    INSERT INTO t VALUES ('C:\\new', 'it\'s', E'\n')   ->   INSERT INTO t VALUES ('C:\new' , 'it''s', E'\n')

This is where a text comes in; whatever keeps, prints or caches it afterwards sees standard literals alone. A literal is
as long as before (blanks follow it), so that positions hold. The parser library itself decodes the escapes, and says what is wrong with them.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, cast

from pgwire.give_way import PACE, give_way
from planner import ast
from planner.errors import Span, SqlError
from planner.parse import Parsed, parse_one

_BETWEEN: Final = r"(?:[ \t\f\v]|--[^\n\r]*+)*+[\n\r](?:\s|--[^\n\r]*+(?:[\n\r]|\Z))*+"
"""What may stand between two quotes that are one literal: a line end at least."""

_STRING: Final = r"'(?:[^'\\]++|\\.|'')*+'"
_PLAIN: Final = r"'(?:[^']++|'')*+'"

_TOKEN: Final = re.compile(
    rf"""
    (?P<comment> --[^\n\r]*+ )
  | (?P<block> /\* )
  | (?P<unicode> [uU]&' )
  | (?P<other> [uU]&"(?:[^"]++|"")*+" | "(?:[^"]++|"")*+"
        | [eE]{_STRING}(?:{_BETWEEN}{_STRING})*+
        | [bBxX]{_PLAIN}(?:{_BETWEEN}{_PLAIN})*+ )
  | (?P<string> {_STRING}(?:{_BETWEEN}{_STRING})*+ )
  | (?P<open> ' )
  | (?P<dollar> \$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*+)?\$ )
  | [\w\x80-\U0010ffff][\w$\x80-\U0010ffff]*+
    """,
    re.DOTALL | re.VERBOSE | re.ASCII,
)
_ENDS: Final = re.compile(r"/\*|\*/")

_PREFIX: Final = "SELECT E"


class Escape(NamedTuple):
    """The first escape of a plain literal, of which clients are warned: where the literal starts, in characters from 0, and what is said."""

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
    """Return a text of the same length whose plain literals mean as standard ones what they mean with escapes, and which had some.

    Raises SqlError 42601 for a literal that does not end, 0A000 for ``U&'...'``, and what the grammar says of escapes (22025, 22021).
    """
    pieces: list[str] = []
    found: list[Escape] = []
    at = copied = tokens = 0
    while (match := _TOKEN.search(text, at)) is not None:
        start, at = match.span()
        tokens += 1
        if tokens % PACE == 0:
            give_way()
        match match.lastgroup:
            case "block":
                at = _comment_end(text, at)
            case "dollar":
                end = text.find(match[0], at)
                at = len(text) if end < 0 else end + len(match[0])
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
