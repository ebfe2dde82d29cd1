r"""PostgreSQL's regular expressions, translated to Python's ``re``.

Flavours: ARE (the default), ERE and BRE-free quoted strings (``***=``). What maps:

    atoms        ( ) (?: ) [...] with [:class:], [.x.], [=x=]; . ; escapes; back references \1 ...
    classes      \d \w \s \D \W \S; outside and inside brackets
    constraints  ^ $ \A \Z \m \M \y \Y; lookahead (?= (?! and lookbehind (?<= (?<!
    quantifiers  * + ? {m} {m,} {m,n} and their non-greedy forms
    options      leading (?i), (?x), (?n), (?s), (?c), (?q) ... and the flags argument

Known difference: PostgreSQL finds the longest match of a greedy expression whatever the order of its alternatives,
``re`` the first alternative that matches. Alternations of plain strings are therefore put longest first; others keep
the order of ``re``. Whether a string matches at all is the same either way; which part matched can differ for an
alternation whose earlier branch matches a prefix of what a later one would, and where greedy and non-greedy
quantifiers are mixed.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from planner.builtins.regex_linear import Pattern, TooComplex, watched
from planner.errors import SqlError, not_supported

_CLASSES = {
    "alpha": r"^\W\d_", "digit": r"0-9", "alnum": r"^\W_", "upper": "A-Z", "lower": "a-z", "space": r" \t\n\r\f\v",
    "blank": r" \t", "punct": r"!-/:-@\[-`{-~", "cntrl": r"\x00-\x1f\x7f", "xdigit": r"0-9A-Fa-f",
    "print": r" -~", "graph": r"!-~", "word": r"\w",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """Flags of a regular expression; newline: "" (ordinary), "p"artial or "n" (both) or "w"eird."""

    ignore_case: bool = False
    expanded: bool = False
    newline: str = ""
    literal: bool = False
    global_: bool = False


def parse_flags(flags: str, *, allow_global: bool = False, function: str = "") -> Options:
    """Read a flags argument; 22023 for an unknown flag or a ``g`` that the function does not take."""
    ignore = expanded = literal = global_ = False
    newline = ""
    for c in flags:
        if c == "g":
            if not allow_global:
                if function:
                    raise SqlError("22023", f'{function} does not support the "global" option')
                raise SqlError("22023", f'invalid regular expression option: "{c}"')
            global_ = True
        elif c == "i":
            ignore = True
        elif c == "c":
            ignore = False
        elif c == "x":
            expanded = True
        elif c == "t":
            expanded = False
        elif c == "s":
            newline = ""
        elif c in "nm":
            newline = "n"
        elif c == "p":
            newline = "p"
        elif c == "w":
            newline = "w"
        elif c == "q":
            literal = True
        elif c in "be":
            raise not_supported(f'regular expression option "{c}"')
        else:
            raise SqlError("22023", f'invalid regular expression option: "{c}"')
    return Options(ignore, expanded, newline, literal, global_)


def invalid(reason: str) -> SqlError:
    """Return 2201B."""
    return SqlError("2201B", f"invalid regular expression: {reason}")


@functools.lru_cache(maxsize=2000)
def compiled(pattern: str, options: Options = Options()) -> Pattern:
    """Return the compiled pattern, which is sure to end (``regex_linear``).

    Raises 2201B for a malformed or too complex one, 0A000 for what does not map.
    """
    if pattern.startswith("***="):
        pattern = pattern[4:]
        options = Options(options.ignore_case, False, options.newline, True, options.global_)
    elif pattern.startswith("***:"):
        pattern = pattern[4:]
    elif pattern.startswith("***"):
        raise invalid("quantifier operand invalid")
    if options.literal:
        return re.compile(re.escape(pattern), re.IGNORECASE if options.ignore_case else 0)
    embedded = re.match(r"\(\?([a-z]+)\)", pattern)
    if embedded:
        pattern = pattern[embedded.end() :]
        options = _embed(options, embedded.group(1))
        if options.literal:
            return re.compile(re.escape(pattern), re.IGNORECASE if options.ignore_case else 0)
    source = _Translator(pattern, options).translate()
    try:
        return watched(re.compile(source, re.IGNORECASE if options.ignore_case else 0))
    except (re.error, OverflowError) as error:
        message = str(error)
        if "look-behind" in message:
            raise not_supported("a lookbehind of variable length in a regular expression") from error
        if "group reference" in message or "reference to" in message:
            raise invalid("invalid backreference number") from error
        raise invalid(message) from error
    except (RecursionError, TooComplex) as error:
        raise invalid("regular expression is too complex") from error


def _embed(options: Options, letters: str) -> Options:
    more = parse_flags(letters)
    ignore = options.ignore_case
    for c in letters:
        ignore = True if c == "i" else False if c == "c" else ignore
    newline = more.newline if any(c in "snmpw" for c in letters) else options.newline
    expanded = more.expanded if any(c in "xt" for c in letters) else options.expanded
    return Options(ignore, expanded, newline, more.literal, options.global_)


class _Translator:
    """One pass over the pattern, left to right."""

    def __init__(self, pattern: str, options: Options) -> None:
        self.p = pattern
        self.i = 0
        self.o = options
        self.groups = 0
        self.open = 0

    def translate(self) -> str:
        out = self.alternation()
        if self.i < len(self.p):
            raise invalid("parentheses () not balanced")
        return out

    def peek(self) -> str:
        return self.p[self.i] if self.i < len(self.p) else ""

    def alternation(self) -> str:
        branches = [self.branch()]
        while self.peek() == "|":
            self.i += 1
            branches.append(self.branch())
        if len(branches) == 1:
            return branches[0]
        return "|".join(order_branches(branches))

    def branch(self) -> str:
        out: list[str] = []
        while (c := self.peek()) and c != "|":
            if c == ")":
                if self.open:
                    break
                raise invalid("parentheses () not balanced")
            if self.o.expanded and self.skip():
                continue
            if self.p.startswith("(?#", self.i):
                end = self.p.find(")", self.i)
                if end < 0:
                    raise invalid("parentheses () not balanced")
                self.i = end + 1
                continue
            atom, quantifiable = self.atom()
            out.append(self.quantified(atom, quantifiable))
        return "".join(out)

    def skip(self) -> bool:
        c = self.peek()
        if c.isspace():
            self.i += 1
            return True
        if c == "#":
            end = self.p.find("\n", self.i)
            self.i = len(self.p) if end < 0 else end + 1
            return True
        return False

    def quantified(self, atom: str, quantifiable: bool) -> str:
        c = self.peek()
        if not c or c not in "*+?{":
            return atom
        if c == "{" and not self.p[self.i + 1 : self.i + 2].isdigit():
            return atom
        if not quantifiable:
            raise invalid("quantifier operand invalid")
        if c == "{":
            m = re.compile(r"\{(\d+)(?:(,)(\d*))?\}").match(self.p, self.i)
            if not m:
                raise invalid("invalid repetition count(s)")
            low, high = int(m.group(1)), m.group(3)
            if low > 255 or (high and (int(high) > 255 or int(high) < low)):
                raise invalid("invalid repetition count(s)")
            quantifier = m.group(0)
            self.i = m.end()
        else:
            quantifier = c
            self.i += 1
        if self.peek() == "?":
            quantifier += "?"
            self.i += 1
        if self.peek() and self.peek() in "*+?":
            raise invalid("quantifier operand invalid")
        return atom + quantifier

    def atom(self) -> tuple[str, bool]:
        c = self.p[self.i]
        self.i += 1
        if c == "(":
            return self.group()
        if c == "[":
            if self.p.startswith("[:<:]]", self.i):
                self.i += 6
                return r"(?<!\w)(?=\w)", False
            if self.p.startswith("[:>:]]", self.i):
                self.i += 6
                return r"(?<=\w)(?!\w)", False
            return self.bracket(), True
        if c == ".":
            return (r"[^\n]" if self.o.newline in ("n", "p") else r"[\s\S]"), True
        if c == "^":
            return ("(?m:^)" if self.o.newline in ("n", "w") else r"\A"), False
        if c == "$":
            return ("(?m:$)" if self.o.newline in ("n", "w") else r"\Z"), False
        if c == "\\":
            return self.escape()
        if c in "*+?":
            raise invalid("quantifier operand invalid")
        if c == "{" and self.peek().isdigit():
            raise invalid("quantifier operand invalid")
        return re.escape(c), True

    def group(self) -> tuple[str, bool]:
        opening = "("
        quantifiable = True
        if self.peek() == "?":
            for prefix in ("?:", "?=", "?!", "?<=", "?<!"):
                if self.p.startswith(prefix, self.i):
                    opening = "(" + prefix
                    self.i += len(prefix)
                    quantifiable = prefix == "?:"
                    break
            else:
                raise invalid("invalid regular expression option")
        else:
            self.groups += 1
        self.open += 1
        inner = self.alternation()
        if self.peek() != ")":
            raise invalid("parentheses () not balanced")
        self.i += 1
        self.open -= 1
        return f"{opening}{inner})", quantifiable

    def escape(self) -> tuple[str, bool]:
        if self.i >= len(self.p):
            raise invalid("invalid escape \\ sequence")
        c = self.p[self.i]
        self.i += 1
        if c in "dDwWsS":
            return {"d": "[0-9]", "D": "[^0-9]"}.get(c, "\\" + c), True
        simple = {"A": r"\A", "Z": r"\Z", "y": r"\b", "Y": r"\B", "m": r"\b(?=\w)", "M": r"\b(?<=\w)"}
        if c in simple:
            return simple[c], False
        if c in "123456789":
            start = self.i - 1
            while self.peek().isdigit():
                self.i += 1
            number = int(self.p[start : self.i])
            if number >= 10 and number > self.groups:
                self.i = start
                return re.escape(self.character()), True
            if number > self.groups:
                raise invalid("invalid backreference number")
            return f"(?:\\{number})", True
        self.i -= 1
        return re.escape(self.character()), True

    def character(self) -> str:
        """Read a character escape whose backslash has been read."""
        c = self.p[self.i]
        self.i += 1
        table = {
            "a": "\a",
            "b": "\b",
            "B": "\\",
            "e": "\x1b",
            "f": "\f",
            "n": "\n",
            "r": "\r",
            "t": "\t",
            "v": "\v",
        }
        if c in table:
            return table[c]
        if c == "c":
            if self.i >= len(self.p):
                raise invalid("invalid escape \\ sequence")
            self.i += 1
            return chr(ord(self.p[self.i - 1]) & 31)
        widths = {"u": "4", "U": "8"}
        if c in widths or c == "x":
            pattern = "[0-9A-Fa-f]{" + widths.get(c, "1,255") + "}"
            m = re.compile(pattern).match(self.p, self.i)
            if not m:
                raise invalid("invalid escape \\ sequence")
            self.i = m.end()
            code = int(m.group(0), 16)
            if code > 0x10FFFF:
                raise invalid("invalid escape \\ sequence")
            return chr(code)
        if c.isdigit():
            m = re.compile(r"[0-7]{1,3}").match(self.p, self.i - 1)
            if not m:
                raise invalid("invalid escape \\ sequence")
            self.i = m.end()
            return chr(int(m.group(0), 8))
        if c.isalnum() and c.isascii():
            raise invalid("invalid escape \\ sequence")
        return c

    def bracket(self) -> str:
        """Translate a bracket expression; the ``[`` has been read."""
        negated = self.peek() == "^"
        if negated:
            self.i += 1
        parts: list[str] = []
        others: list[str] = []  # classes that Python writes as a complement of their own
        first = True
        while True:
            if self.i >= len(self.p):
                raise invalid("brackets [] not balanced")
            c = self.p[self.i]
            if c == "]" and not first:
                self.i += 1
                break
            first = False
            if self.p.startswith("[:", self.i):
                end = self.p.find(":]", self.i)
                name = self.p[self.i + 2 : end] if end > 0 else ""
                if name not in _CLASSES:
                    raise invalid("invalid character class")
                self.i = end + 2
                if name in ("alpha", "alnum"):
                    others.append(_CLASSES[name])
                elif name in ("upper", "lower") and self.o.ignore_case:
                    others.append(_CLASSES["alpha"])
                else:
                    parts.append(_CLASSES[name])
                continue
            if c == "\\" and self.p[self.i + 1 : self.i + 2] in tuple("dws"):
                parts.append({"d": "0-9", "w": r"\w", "s": r"\s"}[self.p[self.i + 1]])
                self.i += 2
                continue
            if c == "\\" and self.p[self.i + 1 : self.i + 2] in tuple("DWS"):
                raise invalid("invalid escape \\ sequence")
            low = self.endpoint()
            if self.peek() == "-" and self.p[self.i + 1 : self.i + 2] not in ("]", ""):
                self.i += 1
                high = self.endpoint()
                if low > high:
                    raise invalid("invalid character range")
                parts.append(f"{_in_set(low)}-{_in_set(high)}")
            else:
                parts.append(_in_set(low))
        newline = "\n" if negated and self.o.newline in ("n", "p") else ""
        if not others:
            return f"[{'^' if negated else ''}{''.join(parts)}{newline}]"
        choices = [f"[{x}]" for x in others] + ([f"[{''.join(parts)}]"] if parts else [])
        either = "|".join(choices)
        if negated:
            return f"(?:(?!{either})[^{newline}])" if newline else rf"(?:(?!{either})[\s\S])"
        return f"(?:{either})"

    def endpoint(self) -> str:
        for opening, closing in (("[.", ".]"), ("[=", "=]")):
            if self.p.startswith(opening, self.i):
                end = self.p.find(closing, self.i)
                name = self.p[self.i + 2 : end] if end > 0 else ""
                if len(name) != 1:
                    raise invalid("invalid collating element")
                self.i = end + 2
                return name
        c = self.p[self.i]
        self.i += 1
        if c == "\\":
            if self.i >= len(self.p):
                raise invalid("brackets [] not balanced")
            return self.character()
        return c


def _in_set(c: str) -> str:
    return "\\" + c if c in "\\]^[-&~|" else c


_LITERAL = re.compile(r"(?:[^\\.\[\](){}*+?^$|]|\\[^0-9A-Za-z])*\Z")


def order_branches(branches: list[str]) -> list[str]:
    """Put plain strings longest first, so that ``re`` finds the longest alternative as PostgreSQL does."""
    if all(_LITERAL.match(b) for b in branches):
        return sorted(branches, key=len, reverse=True)
    return branches
