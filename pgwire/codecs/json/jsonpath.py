"""jsonpath: its grammar, and the text PostgreSQL prints (manual 9.16.2; PostgreSQL's jsonpath_gram.y).

    'lax $.a[*] ? (@ > 1)'  ──parse──>  Path(lax, root · key a · any element · filter(@ > 1))  ──show──>  $."a"[*]?(@ > 1)

A path is a chain: an item and the accessors that follow it. Values of the type are canonical text; ``parse``
is cached, so that reading one again is a look-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, TypeAlias

from pgwire.codecs import numeric
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax
from pgwire.codecs.json import quote
from pgwire.codecs.text import decode, int_of
from pgwire.give_way import give_way
from pgwire.kept import kept
from pgwire.long.values import cut, find, joined, run_end

METHODS: Final = ("type", "size", "abs", "floor", "ceiling", "double", "keyvalue", "datetime")
LAST: Final = 2**32 - 1  # ``last`` as a level of ``**``
_MAX_DEPTH: Final = 500

_PRIORITY: Final = {
    "||": 0, "&&": 1, "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "starts with": 2, "+": 3, "-": 3,
    "*": 4, "/": 4, "%": 4, "u+": 5, "u-": 5,
}  # fmt: skip
_OPERATORS: Final = frozenset(("==", "!=", "<", "<=", ">", ">=", "starts with", "+", "-", "*", "/", "%"))
_PREDICATES: Final = frozenset(
    ("||", "&&", "==", "!=", "<", "<=", ">", ">=", "starts with", "like_regex", "!", "is unknown", "exists")
)


@dataclass(frozen=True, slots=True)
class Item:
    """One step. ``kind``: an operator, or value, variable, $, @, last, key, .*, [*], [], **, ?, or a method's name.

    ``args``: operands; of ``[]`` pairs (from, to or None). ``value``: constant, key, pattern, levels.
    ``next``: the accessor that follows.
    """

    kind: str
    args: tuple[Any, ...] = ()
    value: Any = None
    next: Item | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A whole path; ``lax`` or strict."""

    lax: bool
    item: Item


_NUMBER: Final = re.compile(r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(
    r'(?:[^?%$.\[\]{}()|&!=<>@#,*:\-+/\\" \t\n\r\f]++|\\u\{[0-9a-fA-F]{1,6}\}|\\.)+', re.DOTALL
)
_BLANK: Final = re.compile(r"[ \t\n\r\f]*+")
_QUOTED: Final = re.compile(r'(?:[^"\\]++|\\.)+', re.DOTALL)
_ESCAPED: Final = re.compile(r"(?:[^\\]++|\\u\{[0-9a-fA-F]{1,6}\}|\\.)+", re.DOTALL)
_SECOND_HALF: Final = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_WINDOW: Final = 1 << 12
"""Characters that are looked at in one call."""
_LONGEST_ESCAPE: Final = len(r"\u{10ffff}")
_LONGEST_NUMBER: Final = 200_000
"""Characters; no numeric has as many."""
_MARKS: Final = ("**", "&&", "||", "==", "!=", "<>", "<=", ">=", *"?%$.[]{}()|&!=<>@#,*:-+/")
_KEYWORDS: Final = frozenset(
    ("is", "to", "abs", "lax", "flag", "last", "size", "type", "with", "floor", "double", "exists", "starts", "strict",
     "ceiling", "unknown", "datetime", "keyvalue", "like_regex")
)  # fmt: skip
LONGEST: Final = max(map(len, _KEYWORDS))
_EXACT: Final = frozenset(("null", "true", "false"))
_SIMPLE: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE: Final = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # a mark, a keyword, or word, string, variable, number, end
    text: str
    value: Any = None


def _window(run: re.Pattern[str], text: str, at: int) -> int:
    """Return how far a run of characters and escapes that begins at ``at`` goes in one window, which does not
    end within an escape.
    """
    stop = at + _WINDOW
    if stop < len(text):
        escape = text.rfind("\\", max(stop - _LONGEST_ESCAPE, at + 1), stop)
        stop = stop if escape < 0 else escape
    found = run.match(text, at, stop)
    return at if found is None else found.end()


def _run(run: re.Pattern[str], text: str, at: int) -> str:
    """Return the longest run that begins at ``at``, "" for none."""
    start = at
    while (end := _window(run, text, at)) > at:
        at = end
        if at == len(text):
            break
        give_way()
    return cut(text, start, at)


def _after_blanks(text: str, at: int) -> int:
    """Return where blanks and comments end."""
    while True:
        at = run_end(_BLANK, text, at)
        close = find(text, "*/", at + 2) if text.startswith("/*", at) else -1
        if close < 0:
            return at
        at = close + 2
        give_way()


def _unescape(text: str) -> str:
    return text if find(text, "\\") < 0 else joined(list(_unescaped(text)))


def _unescaped(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = _window(_ESCAPED, text, at)
        if end == at:  # nothing follows the escape
            end = len(text)
        elif (half := _SECOND_HALF.match(text, end)) is not None:  # surrogates come as two escapes
            end = half.end()
        piece = text[at:end]
        made = _ESCAPE.sub(_character, piece)
        yield made.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in piece else made
        at = end
        give_way()


def _character(escape: re.Match[str]) -> str:
    braced, four, two, plain = escape.groups()
    if plain is not None:
        return _SIMPLE.get(plain, plain)
    code = int(braced or four or two, 16)
    if code == 0:
        raise DataError(
            "22P05", "unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text."
        )
    return chr(code)


def _tokens(text: str) -> list[_Token]:
    """Cut a path into tokens. DataError 42601."""
    found: list[_Token] = []
    at, end = 0, len(text)
    while True:
        give_way()
        at = _after_blanks(text, at)
        if at >= end:
            found.append(_Token("end", ""))
            return found
        char = text[at]
        number = _NUMBER.match(text, at, at + _LONGEST_NUMBER)
        if number is not None:
            at = number.end()
            if len(number[0]) < _LONGEST_NUMBER and _window(_WORD, text, at) > at:
                raise _wrong("trailing junk after numeric literal", text[number.start() : at + 1])
            found.append(_Token("number", number[0], numeric.parse(number[0])))
        elif char == '"' or (char == "$" and text[at + 1 : at + 2] == '"'):
            start = at + (char == "$")
            quoted = _run(_QUOTED, text, start + 1)
            at = start + len(quoted) + 2
            if text[at - 1 : at] != '"':
                raise _wrong("unexpected end of quoted string", "")
            kind = "variable" if char == "$" else "string"
            found.append(_Token(kind, text[start:at], _unescape(quoted)))
        elif char == "$" and (word := _run(_WORD, text, at + 1)):
            at += 1 + len(word)
            found.append(_Token("variable", f"${word}", _unescape(word)))
        elif (mark := next((m for m in _MARKS if text.startswith(m, at)), None)) is not None:
            at += len(mark)
            found.append(_Token(mark, mark))
        elif word := _run(_WORD, text, at):
            at += len(word)
            lowered = word.lower() if len(word) <= LONGEST else ""
            keyword = word in _EXACT or lowered in _KEYWORDS
            kind = (word if word in _EXACT else lowered) if keyword else "word"
            found.append(_Token(kind, word, _unescape(word)))
        else:
            raise _wrong("syntax error", char)


def _wrong(what: str, near: str) -> DataError:
    where = f'at or near "{near}"' if near else "at end"
    return DataError("42601", f"{what} {where} of jsonpath input")


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def take(self, kind: str) -> bool:
        if self.token.kind == kind:
            self.at += 1
            return True
        return False

    def need(self, kind: str) -> _Token:
        token = self.token
        if not self.take(kind):
            raise self.error()
        return token

    def error(self) -> DataError:
        return _wrong("syntax error", self.token.text)

    def path(self) -> Path:
        lax = not self.take("strict")
        if lax:
            self.take("lax")
        item = self.either()
        self.need("end")
        return Path(lax, item)

    def either(self) -> Item:
        """Read an expression or a predicate."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise DataError("54001", "stack depth limit exceeded")
        found = self.conjunction()
        while self.token.kind == "||":
            self.predicate(found)
            self.at += 1
            found = Item("||", (found, self.predicate(self.conjunction())))
        self.depth -= 1
        return found

    def conjunction(self) -> Item:
        found = self.negation()
        while self.token.kind == "&&":
            self.predicate(found)
            self.at += 1
            found = Item("&&", (found, self.predicate(self.negation())))
        return found

    def negation(self) -> Item:
        if self.take("!"):
            if self.token.kind == "(":
                self.at += 1
                inner = self.predicate(self.either())
                self.need(")")
                return Item("!", (inner,))
            if self.token.kind == "exists":
                return Item("!", (self.exists(),))
            raise self.error()
        return self.comparison()

    def exists(self) -> Item:
        self.need("exists")
        self.need("(")
        inner = self.expression(self.either())
        self.need(")")
        return Item("exists", (inner,))

    def comparison(self) -> Item:
        left = self.sum()
        kind = {"<>": "!="}.get(self.token.kind, self.token.kind)
        if kind in ("==", "!=", "<", "<=", ">", ">="):
            self.expression(left)
            self.at += 1
            return Item(kind, (left, self.expression(self.sum())))
        if kind == "starts":
            self.expression(left)
            self.at += 1
            self.need("with")
            if self.token.kind not in ("string", "variable"):
                raise self.error()
            return Item("starts with", (left, self.primary()))
        if kind == "like_regex":
            self.expression(left)
            self.at += 1
            pattern = self.need("string").value
            flags = self.need("string").value if self.take("flag") else ""
            _PATTERNS[0](pattern, kept_flags := _flags(flags))
            return Item("like_regex", (left,), (pattern, kept_flags))
        return left

    def sum(self) -> Item:
        found = self.product()
        while self.token.kind in ("+", "-"):
            self.expression(found)
            kind = self.token.kind
            self.at += 1
            found = Item(kind, (found, self.expression(self.product())))
        return found

    def product(self) -> Item:
        found = self.unary()
        while self.token.kind in ("*", "/", "%"):
            self.expression(found)
            kind = self.token.kind
            self.at += 1
            found = Item(kind, (found, self.expression(self.unary())))
        return found

    def unary(self) -> Item:
        signs: list[str] = []
        while self.token.kind in ("+", "-"):
            signs.append(self.token.kind)
            self.at += 1
        found = self.accessed()
        if signs:
            self.expression(found)
        for number, sign in enumerate(reversed(signs)):
            if found.kind == "value" and isinstance(found.value, Decimal) and found.next is None:
                found = found if sign == "+" else Item("value", value=0 - found.value)
            elif number < _MAX_DEPTH:
                found = Item(f"u{sign}", (found,))
            else:
                raise DataError("54001", "stack depth limit exceeded")
        return found

    def accessed(self) -> Item:
        if self.token.kind == "exists":
            return self.exists()
        if self.take("("):
            inner = self.either()
            self.need(")")
            if _is_predicate(inner) and self.token.kind == "is":
                self.at += 1
                self.need("unknown")
                return Item("is unknown", (inner,))
            steps = self.accessors()
            return _chained(inner, steps)
        return _chained(self.primary(), self.accessors())

    def primary(self) -> Item:
        token = self.token
        self.at += 1
        match token.kind:
            case "$" | "@" | "last":
                return Item(token.kind)
            case "string" | "number":
                return Item("value", value=token.value)
            case "null" | "true" | "false":
                return Item("value", value={"null": None, "true": True, "false": False}[token.kind])
            case "variable":
                return Item("variable", value=token.value)
        self.at -= 1
        raise self.error()

    def accessors(self) -> list[Item]:
        found: list[Item] = []
        while True:
            give_way()
            if self.take("["):
                found.append(self.subscripts())
            elif self.take("?"):
                self.need("(")
                inner = self.predicate(self.either())
                self.need(")")
                found.append(Item("?", (inner,)))
            elif self.take("."):
                found.append(self.member())
            else:
                return found

    def subscripts(self) -> Item:
        if self.take("*"):
            self.need("]")
            return Item("[*]")
        pairs: list[tuple[Item, Item | None]] = []
        while True:
            first = self.expression(self.sum())
            last = self.expression(self.sum()) if self.take("to") else None
            pairs.append((first, last))
            give_way()
            if not self.take(","):
                break
        self.need("]")
        return Item("[]", tuple(pairs))

    def member(self) -> Item:
        token = self.token
        if self.take("*"):
            return Item(".*")
        if self.take("**"):
            if not self.take("{"):
                return Item("**", value=(0, LAST))
            first = self.level()
            last = self.level() if self.take("to") else first
            self.need("}")
            return Item("**", value=(first, last))
        if token.kind in ("word", "string") or token.kind in _KEYWORDS or token.kind in _EXACT:
            self.at += 1
            if token.kind in METHODS and self.token.kind == "(":
                self.at += 1
                template = None
                if token.kind == "datetime" and self.token.kind == "string":
                    template = self.need("string").value
                self.need(")")
                return Item(token.kind, value=template)
            return Item("key", value=token.value)
        raise self.error()

    def level(self) -> int:
        if self.take("last"):
            return LAST
        token = self.need("number")
        if not token.text.isdigit():
            raise _wrong("syntax error", token.text)
        return int_of(token.text)

    def predicate(self, item: Item) -> Item:
        if not _is_predicate(item):
            raise self.error()
        return item

    def expression(self, item: Item) -> Item:
        if _is_predicate(item):
            raise self.error()
        return item


def _is_predicate(item: Item) -> bool:
    return item.kind in _PREDICATES and item.next is None


def _chained(item: Item, steps: list[Item]) -> Item:
    """Return ``item`` followed by ``steps`` (after those it already has)."""
    following: Item | None = None
    for step in reversed(steps):
        following = replace(step, next=following)
    if following is None:
        return item
    return replace(item, next=following if item.next is None else _appended(item.next, following))


def _appended(chain: Item, following: Item) -> Item:
    return replace(chain, next=following if chain.next is None else _appended(chain.next, following))


def _no_matcher(pattern: str, flags: str) -> object:
    raise DataError("0A000", "like_regex is not supported where no matcher is loaded")


PatternCheck: TypeAlias = Callable[[str, str], object]
"""Compiles the pattern of a like_regex with its flags. Raises DataError 2201B."""
_PATTERNS: Final[list[PatternCheck]] = [_no_matcher]


def check_patterns_by(check: PatternCheck) -> None:
    """Have patterns compiled when a path is read, as in PostgreSQL: the matcher (``planner.patterns``) is
    above this layer.
    """
    _PATTERNS[0] = check


def _flags(text: str) -> str:
    for char in text:
        if char not in "ismxq":
            raise DataError(
                "42601",
                "invalid input syntax for type jsonpath",
                detail=f'Unrecognized flag character "{char}" in LIKE_REGEX predicate.',
            )
    if "x" in text and "q" not in text:
        raise DataError("0A000", 'XQuery "x" flag (expanded regular expressions) is not implemented')
    return "".join(char for char in "ismxq" if char in text)


def _check(item: Item | None, nested: int, subscript: bool) -> None:
    """Refuse ``@`` outside of filters and ``last`` outside of subscripts (42601)."""
    while item is not None:
        give_way()
        if item.kind == "@" and not nested:
            raise DataError("42601", "@ is not allowed in root expressions")
        if item.kind == "last" and not subscript:
            raise DataError("42601", "LAST is allowed only in array subscripts")
        if item.kind == "[]":
            for first, last in item.args:
                _check(first, nested, True)
                _check(last, nested, True)
        else:
            inside = nested + (item.kind == "?")
            for arg in item.args:
                _check(arg, inside, subscript)
        item = item.next


@kept(500)
def parse(text: str) -> Path:
    """Read a path. DataError 42601, 22P02 for an empty text, 22P05, 0A000."""
    if not text.strip():
        raise invalid_syntax("jsonpath", text)
    path = _Parser(text).path()
    _check(path.item, 0, False)
    return path


def parse_text(text: str) -> str:
    """Return a path's canonical text."""
    return show(parse(text))


def recv(data: bytes) -> str:
    """Read a path's binary form: version byte 1, then text; 22P03 for another version, 08P01 for none."""
    if not data:
        raise DataError("08P01", "insufficient data left in message")
    if data[0] != 1:
        raise DataError("22P03", f"unsupported jsonpath version number: {data[0]}")
    return parse_text(decode(data[1:]))


def send(value: str) -> bytes:
    """Return version byte 1 and the text."""
    return b"\x01" + value.encode("utf-8")


def show(path: Path) -> str:
    """Return a path as PostgreSQL prints it."""
    return ("" if path.lax else "strict ") + _show(path.item, False, True)


def _priority(item: Item) -> int:
    return _PRIORITY.get(item.kind, 6)


def _operand(item: Item, of: Item) -> str:
    return _show(item, False, _priority(item) <= _priority(of))


def _level(number: int) -> str:
    return "last" if number == LAST else str(number)


def _show(item: Item, in_key: bool, brackets: bool) -> str:
    kind = item.kind
    dot = "." if in_key else ""
    if kind == "value":
        value = item.value
        if value is None:
            text = "null"
        elif isinstance(value, bool):
            text = "true" if value else "false"
        else:
            text = quote(value) if isinstance(value, str) else numeric.show(value)
            text = f"({text})" if item.next is not None and not isinstance(value, str) else text
    elif kind == "variable":
        text = f"${quote(item.value)}"
    elif kind == "key":
        text = dot + quote(item.value)
    elif kind in _OPERATORS or kind in ("||", "&&"):
        text = f"{_operand(item.args[0], item)} {kind} {_operand(item.args[1], item)}"
        text = f"({text})" if brackets else text
    elif kind == "like_regex":
        pattern, flags = item.value
        text = f"{_operand(item.args[0], item)} like_regex {quote(pattern)}"
        text += f' flag "{flags}"' if flags else ""
        text = f"({text})" if brackets else text
    elif kind in ("u+", "u-"):
        text = kind[1] + _operand(item.args[0], item)
        text = f"({text})" if brackets else text
    elif kind == "?":
        text = f"?({_show(item.args[0], False, False)})"
    elif kind == "!":
        text = f"!({_show(item.args[0], False, False)})"
    elif kind == "is unknown":
        text = f"({_show(item.args[0], False, False)}) is unknown"
    elif kind == "exists":
        text = f"exists ({_show(item.args[0], False, False)})"
    elif kind == ".*":
        text = f"{dot}*"
    elif kind == "[]":
        parts = [
            _show(a, False, False) + ("" if b is None else f" to {_show(b, False, False)}")
            for a, b in item.args
        ]
        text = f"[{','.join(parts)}]"
    elif kind == "**":
        first, last = item.value
        text = f"{dot}**"
        if (first, last) != (0, LAST):
            text += f"{{{_level(first)}}}" if first == last else f"{{{_level(first)} to {_level(last)}}}"
    elif kind in METHODS:
        text = f".{kind}({'' if item.value is None else quote(item.value)})"
    else:  # $ @ last [*]
        text = kind
    return text + ("" if item.next is None else _show(item.next, True, True))
