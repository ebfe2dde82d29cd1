r"""Tokens of a regular expression, by its flavour: ARE, ERE, BRE or a literal string.

    token          value
    char           the character
    [ [^           (a bracket expression follows: ``parser`` reads it with ``in_brackets``)
    ( (? )         a capturing, a non-capturing group
    look           (ahead, positive)
    * + ? {        whether it is greedy (for { that comes with its end)
    | . ^ $ < >    < and > are the borders of words
    \A \Z \y \Y    constraints
    class, -class  \d, \D and their kin: the name of the class
    back           a back reference: the number
    end            nothing more

Which characters are special depends on what precedes them; so one token is read at a time. Escapes of AREs
are the same in brackets.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from planner.patterns.options import (
    ADVANCED,
    ADVANCED_FORMS,
    EXPANDED,
    EXTENDED,
    NEWLINE,
    QUOTE,
    invalid,
    with_letter,
)


class Token(NamedTuple):
    """A token; ``value`` as the module says."""

    kind: str
    value: str | int | bool | tuple[bool, bool] | None = None


END: Final = Token("end")
_SPACES: Final = frozenset(" \t\n\v\f\r")
_DIGITS: Final = "0123456789abcdef"
_ESCAPED_CHARACTERS: Final = {
    "a": "\a", "b": "\b", "B": "\\", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_ESCAPED: Final = {
    "A": Token("\\A"), "Z": Token("\\Z"), "y": Token("\\y"), "Y": Token("\\Y"), "m": Token("<"), "M": Token(">"),
    "d": Token("class", "digit"), "w": Token("class", "word"), "s": Token("class", "space"),
    "D": Token("-class", "digit"), "W": Token("-class", "word"), "S": Token("-class", "space"),
}  # fmt: skip
_LOOKS: Final = {
    "(?=": (True, True), "(?!": (True, False), "(?<=": (False, True), "(?<!": (False, False),
}  # fmt: skip
_BAD_ESCAPE: Final = "invalid escape \\ sequence"
_BAD_BOUND: Final = "invalid repetition count(s)"


def read_prefixes(pattern: str, bits: int) -> tuple[int, int]:
    """Return where a pattern begins behind ``***:``, ``***=`` and embedded options, and the bits then. Raises 2201B."""
    if bits & QUOTE:
        return 0, bits
    at = 0
    if pattern.startswith("***") and len(pattern) > 3:
        if pattern[3] == "?":
            raise invalid("invalid regexp (reg version 0.8)")
        if pattern[3] == "=":
            return 4, (bits | QUOTE) & ~(ADVANCED | EXPANDED | NEWLINE)
        if pattern[3] != ":":
            raise invalid("quantifier operand invalid")
        at, bits = 4, bits | ADVANCED
    if bits & ADVANCED != ADVANCED:
        return at, bits
    if pattern.startswith("(?", at) and _is_letter(pattern[at + 2 : at + 3]):
        at += 2
        while _is_letter(letter := pattern[at : at + 1]):
            after = with_letter(bits, letter)
            if after is None:
                raise invalid("invalid embedded option")
            bits = after
            at += 1
        if pattern[at : at + 1] != ")":
            raise invalid("invalid embedded option")
        at += 1
        if bits & QUOTE:
            bits &= ~(EXPANDED | NEWLINE)
    return at, bits


def _is_letter(c: str) -> bool:
    return c.isascii() and c.isalpha()


class Lexer:
    """Reads tokens from ``at`` on; ``groups`` is how many capturing groups the parser has begun."""

    def __init__(self, pattern: str, at: int, bits: int) -> None:
        self._p = pattern
        self._at = at
        self._bits = bits
        self._advanced = bool(bits & ADVANCED_FORMS)
        self._last = "start"  # the kind of the token before
        self.groups = 0

    def next(self) -> Token:
        """Return the next token outside brackets. Raises 2201B."""
        token = self._next()
        self._last = token.kind
        return token

    def _next(self) -> Token:
        while True:
            if self._bits & EXPANDED:
                self._skip()
            if self._at >= len(self._p):
                return END
            c = self._p[self._at]
            self._at += 1
            if self._bits & QUOTE:
                return Token("char", c)
            if not self._bits & EXTENDED:
                return self._basic(c)
            if c == "(" and self._advanced and self._p.startswith("?#", self._at):
                end = self._p.find(")", self._at)
                self._at = len(self._p) if end < 0 else end + 1
                continue
            return self._extended(c)

    def _skip(self) -> None:
        """Skip blanks and comments of the expanded form."""
        while self._at < len(self._p):
            if self._p[self._at] in _SPACES:
                self._at += 1
            elif self._p[self._at] == "#":
                end = self._p.find("\n", self._at)
                self._at = len(self._p) if end < 0 else end
            else:
                return

    def _eat(self, text: str) -> bool:
        if self._p.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    # --- AREs and EREs --------------------------------------------------------------------------------

    def _extended(self, c: str) -> Token:
        if c in "*+?":
            return Token(c, not (self._advanced and self._eat("?")))
        if c == "{":
            if self._bits & EXPANDED:
                self._skip()
            if not self._p[self._at : self._at + 1] or self._p[self._at] not in "0123456789":
                return Token("char", c)
            return Token("{")
        if c == "(":
            return self._opening()
        if c == "[":
            return self._bracket()
        if c in "|.^$)":
            return Token(c, c)
        if c != "\\":
            return Token("char", c)
        if self._at >= len(self._p):
            raise invalid(_BAD_ESCAPE)
        if not self._advanced:
            self._at += 1
            return Token("char", self._p[self._at - 1])
        return self._escape()

    def _opening(self) -> Token:
        if not (self._advanced and self._p.startswith("?", self._at)):
            return Token("(")
        if self._eat("?:"):
            return Token("(?")
        for opening, value in _LOOKS.items():
            if self._eat(opening[1:]):
                return Token("look", value)
        raise invalid("quantifier operand invalid")

    def _bracket(self) -> Token:
        for border in "<>":
            if self._eat(f"[:{border}:]]"):
                return Token(border)
        return Token("[^") if self._eat("^") else Token("[")

    def _escape(self) -> Token:
        """Read an escape of an ARE whose backslash has been read."""
        c = self._p[self._at]
        self._at += 1
        if not (c.isascii() and c.isalnum()):
            return Token("char", c)
        if c in _ESCAPED:
            return _ESCAPED[c]
        if c in _ESCAPED_CHARACTERS:
            return Token("char", _ESCAPED_CHARACTERS[c])
        if c == "c":
            if self._at >= len(self._p):
                raise invalid(_BAD_ESCAPE)
            self._at += 1
            return Token("char", chr(ord(self._p[self._at - 1]) & 0o37))
        if c in "uUx":
            shortest, longest = {"u": (4, 4), "U": (8, 8), "x": (1, 255)}[c]
            code = self._digits(16, shortest, longest)
            if code > 0x7FFFFFFE:
                raise invalid(_BAD_ESCAPE)
            return Token("char", _character(code))
        if c not in "0123456789":
            raise invalid(_BAD_ESCAPE)
        return self._number(c)

    def _number(self, c: str) -> Token:
        """Read a back reference or an octal number whose first digit has been read."""
        behind = self._at
        if c != "0":
            self._at -= 1
            number = self._digits(10, 1, 255)
            if self._at == behind or 0 < number <= self.groups:
                return Token("back", number)
        self._at = behind - 1
        code = self._digits(8, 1, 3)
        if code > 0xFF:  # one digit too many
            self._at -= 1
            code >>= 3
        return Token("char", chr(code))

    def _digits(self, base: int, shortest: int, longest: int) -> int:
        """Read digits as an unsigned number of 32 bits, which may wrap around. Raises 2201B where they are too few."""
        code = count = 0
        while count < longest and self._at < len(self._p):
            digit = _DIGITS.find(self._p[self._at].lower()) if self._p[self._at].isascii() else -1
            if not 0 <= digit < base:
                break
            code = (code * base + digit) & 0xFFFFFFFF
            count += 1
            self._at += 1
        if count < shortest:
            raise invalid(_BAD_ESCAPE)
        return code

    # --- bounds ---------------------------------------------------------------------------------------

    def bound(self) -> tuple[int, int | None, bool | None]:
        """Read what follows ``{``: the least and the most (None: no end), and whether it is greedy.

        The last is None where there is one number alone, which has no preference. Raises 2201B.
        """
        low = self._count()
        high: int | None = low
        greedy = None
        comma = self._bound_char() == ","
        if comma:
            self._at += 1
            high = self._count() if self._bound_char() in "0123456789" else None
        closing = "}" if self._bits & EXTENDED else "\\"
        if self._bound_char() != closing or (closing == "\\" and not self._p.startswith("}", self._at + 1)):
            raise invalid(_BAD_BOUND)
        if high is not None and low > high:
            raise invalid(_BAD_BOUND)
        self._at += len(closing) if closing == "}" else 2
        lazy = closing == "}" and self._advanced and self._eat("?")
        if comma:
            greedy = not lazy
        self._last = "}"
        return low, high, greedy

    def _bound_char(self) -> str:
        if self._bits & EXPANDED:
            self._skip()
        if self._at >= len(self._p):
            raise invalid("braces {} not balanced")
        return self._p[self._at]

    def _count(self) -> int:
        number, digits = 0, 0
        while (c := self._bound_char()) in "0123456789":
            if number >= 255:
                raise invalid(_BAD_BOUND)
            number = number * 10 + int(c)
            digits += 1
            self._at += 1
        if number > 255:
            raise invalid(_BAD_BOUND)
        return number

    # --- BREs -----------------------------------------------------------------------------------------

    def _basic(self, c: str) -> Token:
        if c == "*":
            return Token("char", c) if self._last in ("start", "(", "^") else Token("*", True)
        if c == "[":
            return self._bracket()
        if c == ".":
            return Token(".")
        if c == "^":
            return Token("^") if self._last in ("start", "(") else Token("char", c)
        if c == "$":
            if self._bits & EXPANDED:
                self._skip()
            ends = self._at >= len(self._p) or self._p.startswith("\\)", self._at)
            return Token("$") if ends else Token("char", c)
        if c != "\\":
            return Token("char", c)
        if self._at >= len(self._p):
            raise invalid(_BAD_ESCAPE)
        c = self._p[self._at]
        self._at += 1
        if c in "{()<>":
            return Token(c, c)
        if c in "123456789":
            return Token("back", int(c))
        return Token("char", c)

    # --- brackets -------------------------------------------------------------------------------------

    def in_brackets(self, first: bool) -> Token:
        """Return the next token of a bracket expression; ``first``: nothing has been read of it.

        ``char``, ``class``, ``-class``, ``range`` (a - that may stand between two ends), ``]``, and ``[.``,
        ``[=``, ``[:`` whose value is the name between them. Raises 2201B.
        """
        if self._at >= len(self._p):
            raise invalid("brackets [] not balanced")
        c = self._p[self._at]
        self._at += 1
        if c == "]" and not first:
            self._last = "]"
            return Token("]")
        if c == "\\" and self._advanced:
            if self._at >= len(self._p):
                raise invalid(_BAD_ESCAPE)
            token = self._escape()
            if token.kind not in ("char", "class", "-class"):
                raise invalid(_BAD_ESCAPE)
            return token
        if c == "-" and not first and not self._p.startswith("]", self._at):
            return Token("range", c)
        if c == "[":
            if self._at >= len(self._p):
                raise invalid("brackets [] not balanced")
            kind = self._p[self._at]
            if kind in ".=:":
                return Token(f"[{kind}", self._name(kind))
        return Token("char", c)

    def _name(self, kind: str) -> str:
        start = self._at + 1
        end = self._p.find(f"{kind}]", start)
        if end < 0:
            raise invalid("brackets [] not balanced")
        self._at = end + 2
        return self._p[start:end]


def _character(code: int) -> str:
    """Return a character; no text holds those beyond Unicode, so one that no text holds either stands for them."""
    return chr(code) if code <= 0x10FFFF else "\0"
