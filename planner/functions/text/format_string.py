"""SQL's ``format``: a template whose specifiers take arguments (manual 9.4.1).

    %[position$][-][width]type      type s (text), I (identifier) or L (literal)
                                    width a number, * (the next argument) or *n$ (the n-th)

    format('%s|%*s|%-5L|', 'a', 3, 'b', 'c')        a|  b|'c'  |

An argument without a position is the one after the last that was taken, be it as a value or as a width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pgwire.codecs.text import int_of
from pgwire.give_way import give_way
from pgwire.long import values as long
from planner.base.errors import SqlError
from planner.base.large import foresee
from planner.base.quoting import quote_ident
from planner.facts import INT4, TEXT
from planner.functions.session import EvalSession
from planner.functions.values.casts import from_text

_HINT = 'For a single "%" use "%%".'
_NEXT = 0  # as the position of an argument


class Specifier(NamedTuple):
    """One specifier. ``width``: characters; ``width_at``: the argument that tells it, None where the template does."""

    kind: str
    position: int
    minus: bool
    width: int
    width_at: int | None


def quote_literal(s: str) -> str:
    """SQL's ``quote_literal``: with an E prefix when there is a backslash."""
    quoted = long.replaced(s, "'", "''")
    if long.find(s, "\\") < 0:
        return long.joined(("'", quoted, "'"))
    return long.joined(("E'", long.replaced(quoted, "\\", "\\\\"), "'"))


class _Template:
    """Reads a template from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def pieces(self) -> Iterator[str | Specifier]:
        """Yield literal text and specifiers in order. Raises SqlError 22023, 22003."""
        while (found := self.text.find("%", self.at)) >= 0:
            if found > self.at:
                yield self.text[self.at : found]
            self.at = found + 1
            if self._take("%"):
                yield "%"
            else:
                yield self._specifier()
        yield self.text[self.at :]

    def _specifier(self) -> Specifier:
        position, minus, width, width_at = _NEXT, False, 0, None
        number = self._number()
        if number is not None and self._take("$"):
            position = _numbered(number)
            number = None
        if number is None:
            while self._take("-"):
                minus = True
            if self._take("*"):
                width_at = _NEXT
                number = self._number()
                if number is not None:
                    if not self._take("$"):
                        raise SqlError("22023", 'width argument position must be ended by "$"')
                    width_at = _numbered(number)
            else:
                width = self._number() or 0
        else:
            width = number
        kind = self._peek()
        self.at += 1
        if kind not in "sIL":
            raise SqlError("22023", f'unrecognized format() type specifier "{kind}"', hint=_HINT)
        return Specifier(kind, position, minus, width, width_at)

    def _peek(self) -> str:
        if self.at >= len(self.text):
            raise SqlError("22023", "unterminated format() type specifier", hint=_HINT)
        return self.text[self.at]

    def _take(self, expected: str) -> bool:
        if self._peek() != expected:
            return False
        self.at += 1
        return True

    def _number(self) -> int | None:
        """Read digits, if there are any; something has to follow them."""
        start = self.at
        while "0" <= self._peek() <= "9":
            self.at += 1
        if self.at == start:
            return None
        number = int_of(self.text[start : self.at])
        if number > 2**31 - 1:
            raise SqlError("22003", "number is out of range")
        return number


def _numbered(position: int) -> int:
    if position == 0:
        raise SqlError("22023", "format specifies argument 0, but arguments are numbered from 1")
    return position


def format_string(
    session: EvalSession,
    template: str | None,
    values: Sequence[Any],
    types: Sequence[int],
    text_of: Callable[[EvalSession, int, Any], str],
) -> str | None:
    """Return the template with its specifiers replaced; NULL for no template.

    ``types``: of the values. ``text_of(session, type, value)``: how a value that is not NULL prints.
    Raises SqlError 22023, 22003, 22004 (NULL as an identifier), 22P02 (a width that is no integer), 54000 (too long).
    """
    if template is None:
        return None
    taken = 0

    def take(position: int) -> tuple[int, Any]:
        nonlocal taken
        taken = position or taken + 1
        if taken > len(values):
            raise SqlError("22023", "too few arguments for format()")
        return (types[taken - 1] if taken <= len(types) else TEXT), values[taken - 1]

    out: list[str] = []
    size = 0
    for piece in _Template(template).pieces():
        if isinstance(piece, str):
            text, width, minus = piece, 0, False
        else:
            width, minus = piece.width, piece.minus
            if piece.width_at is not None:
                oid, value = take(piece.width_at)
                width = _width(session, oid, value, text_of)
                minus, width = minus or width < 0, abs(width)
            oid, value = take(piece.position)
            text = _shown(piece.kind, None if value is None else text_of(session, oid, value))
        size += max(len(text), width)
        foresee(size)
        blanks = long.repeated(" ", width - len(text))
        out += (text, blanks) if minus else (blanks, text)
        give_way()
    return long.joined(out)


def _shown(kind: str, text: str | None) -> str:
    """Return an argument as its specifier wants it; ``text`` None for NULL."""
    if text is None:
        if kind == "I":
            raise SqlError("22004", "null values cannot be formatted as an SQL identifier")
        return "NULL" if kind == "L" else ""
    return quote_ident(text) if kind == "I" else quote_literal(text) if kind == "L" else text


def _width(
    session: EvalSession, oid: int, value: Any, text_of: Callable[[EvalSession, int, Any], str]
) -> int:
    if value is None:
        return 0
    width: int = value if oid == INT4 else from_text(INT4, text_of(session, oid, value), session)
    if width <= -(2**31):
        raise SqlError("22003", "number is out of range")
    return width
