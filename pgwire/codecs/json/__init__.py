"""json and jsonb.

json keeps the text as given, after checking it; jsonb is held as PostgreSQL's canonical text: keys
deduplicated (the last one wins) and ordered by length, then bytes; ``", "`` and ``": "`` as separators; numbers as
numeric prints them. Values are ``str`` both times; ``load`` and ``dump`` go between canonical text and Python
objects (dict, list, str, Decimal or int, bool, None).
"""

from __future__ import annotations

import json as _json
import re
from decimal import Decimal
from typing import Any, Final, TypeAlias

from pgwire.codecs import numeric
from pgwire.codecs.errors import DataError
from pgwire.codecs.json import long as json_long
from pgwire.codecs.text import decode
from pgwire.give_way import give_way, outside, paced, paced_iter
from pgwire.long.values import (
    LONG,
    Ordered,
    encoded,
    find,
    in_order,
    joined,
    joined_bytes,
    joined_up,
    mapped,
    run_end,
    utf8_length,
)
from pgwire.release import mind_long

Json: TypeAlias = Any

OUTSIDE_BYTES: Final = 1 << 18
"""Characters of a document that is read in this process: it takes some milliseconds."""
MAX_DEPTH: Final = 6000
_PIECE: Final = 1 << 13
_ESCAPES: Final = re.compile(r'[\x00-\x1f"\\]')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PARTIAL_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?")
_NAMED: Final = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
_ESCAPE: Final = 6
_BAD_UNICODE: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})")


def _number(text: str) -> Decimal:
    give_way()
    return numeric.parse(text)


def _integer(text: str) -> int | Decimal:
    give_way()
    return int(text) if len(text) < 1000 else numeric.parse(text)


def _refuse(text: str) -> None:
    raise ValueError(text)


def _object(value: dict[str, Any]) -> dict[str, Any]:
    give_way()
    return value


_DECODER: Final = _json.JSONDecoder(
    object_hook=_object, parse_float=_number, parse_int=_integer, parse_constant=_refuse
)
_CHECKER: Final = _json.JSONDecoder(
    parse_float=lambda _: None, parse_int=lambda _: None, parse_constant=_refuse
)


@outside(OUTSIDE_BYTES)
def parse_json(text: str) -> str:
    """Check that ``text`` is one JSON value and return it unchanged; 22P02 with PostgreSQL's detail."""
    _decode(_CHECKER, text)
    return text


@outside(OUTSIDE_BYTES)
def parse_jsonb(text: str) -> str:
    r"""Return the canonical text of a JSON value; 22P02, 22P05 for ``\u0000``."""
    return dump(read(text))


def read(text: str) -> Json:
    """Parse any JSON text as jsonb does; 22P02, 22P05."""
    value = _decode(_DECODER, text, unescape=True)
    check_escapes(text)
    return value


def check_escapes(text: str) -> None:
    r"""Raise 22P05 for ``\u0000`` and 22P02 for half a surrogate in a text that is JSON."""
    at = find(text, "\\u")
    while 0 <= at < len(text):
        if _BAD_UNICODE.search(text, at, at + json_long.WINDOW + _ESCAPE):
            _Diagnosis(text, unescape=True).run()
            return
        at += json_long.WINDOW
        give_way()


def load(canonical: str) -> Json:
    """Parse text that is known to be valid (a jsonb value)."""
    return json_long.decoded(_DECODER, canonical, numeric.parse)


def _decode(decoder: _json.JSONDecoder, text: str, *, unescape: bool = False) -> Json:
    try:
        return decoder.decode(text)
    except DataError:
        raise
    except RecursionError:
        raise DataError("54001", "stack depth limit exceeded") from None
    except ValueError:
        pass
    _Diagnosis(text, unescape=unescape).run()
    raise DataError("22P02", "invalid input syntax for type json")


def quote(text: str) -> str:
    """Return ``text`` as a JSON string."""
    if len(text) <= _PIECE:
        return f'"{_escaped(text)}"'
    return joined(('"', mapped(text, _escaped, _PIECE), '"'))


def _escaped(text: str) -> str:
    if _ESCAPES.search(text):
        return _ESCAPES.sub(lambda m: _NAMED.get(m[0]) or f"\\u{ord(m[0]):04x}", text)
    return text


def key_order(key: str) -> tuple[int, str | Ordered]:
    """Return what orders jsonb keys: length in bytes, then bytes, which is the order of code points."""
    size = utf8_length(key)
    return size, key if size < LONG else Ordered(key)


def _member(key: str, value: Json) -> str:
    shown = dump(value)
    return f"{quote(key)}: {shown}" if len(shown) < _PIECE else joined((quote(key), ": ", shown))


def dump(value: Json) -> str:
    """Return the canonical jsonb text of a Python value."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return quote(value)
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, dict):
        give_way()
        keys = mind_long(in_order(list(value), key_order)) if len(value) > 1 else value
        members = [_member(k, value[k]) for k in paced_iter(keys)]
        return joined(("{", joined_up(members, ", "), "}"))
    if isinstance(value, (list, tuple)):
        give_way()
        return joined(("[", joined_up([dump(item) for item in paced(value)], ", "), "]"))
    if isinstance(value, Decimal):
        return numeric.show(value)
    return str(value)


def recv_json(data: bytes) -> str:
    """Read a json value: its text."""
    return parse_json(decode(data))


def recv_jsonb(data: bytes) -> str:
    """Read a jsonb value: version byte 1, then text; 22P03 for another version, 08P01 for none."""
    if not data:
        raise DataError("08P01", "insufficient data left in message")
    if data[0] != 1:
        raise DataError("22P03", f"unsupported jsonb version number {data[0]}")
    return parse_jsonb(decode(data[1:]))


def send_jsonb(value: str) -> bytes:
    """Return version byte 1 and the text."""
    return joined_bytes((b"\x01", encoded(value)))


_BLANKS: Final = " \t\n\r"
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_WORD: Final = re.compile("[\\w\x80-\U0010ffff]*")
_TAIL: Final = re.compile("[A-Za-z0-9_\x80-\U0010ffff]*")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')


class _Diagnosis:
    """A slow parser that says what PostgreSQL would say about a text that is not JSON."""

    def __init__(self, text: str, *, unescape: bool) -> None:
        self.text = text
        self.at = 0
        self.unescape = unescape

    def run(self) -> None:
        """Raise the error for the text, if it has one."""
        self.value()
        self.skip()
        if self.at < len(self.text):
            raise self.expected("Expected end of input, but found {}.")

    def skip(self) -> None:
        if self.text[self.at : self.at + 1] in _BLANKS:
            self.at = run_end(_BLANK, self.text, self.at)

    def token_end(self) -> int:
        """Return where the token ends that begins here: one punctuation mark, or a run of word characters."""
        at = self.at
        text = self.text
        if at >= len(text):
            return at
        if text[at] == '"':
            closing = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL).match(text, at)
            return closing.end() if closing else len(text)
        number = _NUMBER.match(text, at)
        if number is not None:
            return number.end()
        return max(run_end(_WORD, text, at), at + 1)

    def context(self, end: int) -> str:
        """Return the CONTEXT line: the line with the error, cut after it."""
        line_start = self.text.rfind("\n", 0, end) + 1
        number = self.text.count("\n", 0, line_start) + 1
        start = line_start
        prefix = ""
        if end - start >= 50:
            start, prefix = end - 49, "..."
        suffix = "..." if end < len(self.text) and self.text[end : end + 1] not in ("\n", "\r") else ""
        return f"JSON data, line {number}: {prefix}{self.text[start:end]}{suffix}"

    def error(self, detail: str, end: int, sqlstate: str = "22P02", message: str = "") -> DataError:
        return DataError(
            sqlstate, message or "invalid input syntax for type json", detail=detail, where=self.context(end)
        )

    def expected(self, what: str) -> DataError:
        """Return the error for the token here, which is not what the grammar wants."""
        self.skip()
        if self.at >= len(self.text):
            return self.error("The input string ended unexpectedly.", len(self.text))
        self.lex()
        end = self.token_end()
        return self.error(what.format(f'"{self.text[self.at : end]}"'), end)

    def lex(self) -> None:
        """Raise if the token here is not even a token."""
        text, at = self.text, self.at
        char = text[at]
        if char in "{}[],:":
            return
        if char == '"':
            self.string(keep=True)
            return
        end = self.token_end()
        word = text[at:end]
        if char == "-" or char.isdigit():
            match = _NUMBER.match(text, at)
            partial = _PARTIAL_NUMBER.match(text, at)
            stop = partial.end() if partial else at + 1
            stop_bad = run_end(_TAIL, text, stop)
            if match is None or stop_bad > match.end():
                raise self.error(f'Token "{text[at:stop_bad]}" is invalid.', stop_bad)
            return
        if word not in ("true", "false", "null"):
            raise self.error(f'Token "{word}" is invalid.', end)

    def value(self) -> None:
        give_way()
        self.skip()
        if self.at >= len(self.text):
            raise self.error("The input string ended unexpectedly.", len(self.text))
        char = self.text[self.at]
        if char == "{":
            self.object()
        elif char == "[":
            self.array()
        elif char == '"':
            self.string()
        elif char in "}],:":
            raise self.expected("Expected JSON value, but found {}.")
        else:
            self.lex()
            self.at = self.token_end()

    def peek(self) -> str:
        self.skip()
        return self.text[self.at] if self.at < len(self.text) else ""

    def array(self) -> None:
        self.at += 1
        if self.peek() == "]":
            self.at += 1
            return
        while True:
            if self.peek() in ("]", "}", ",", ":") and self.peek():
                raise self.expected("Expected JSON value, but found {}.")
            self.value()
            mark = self.peek()
            if mark == "]":
                self.at += 1
                return
            if mark != ",":
                raise self.expected('Expected "," or "]", but found {}.')
            self.at += 1

    def object(self) -> None:
        self.at += 1
        if self.peek() == "}":
            self.at += 1
            return
        first = True
        while True:
            if self.peek() != '"':
                what = 'Expected string or "}}", but found {}.' if first else "Expected string, but found {}."
                raise self.expected(what)
            self.string()
            if self.peek() != ":":
                raise self.expected('Expected ":", but found {}.')
            self.at += 1
            self.value()
            mark = self.peek()
            if mark == "}":
                self.at += 1
                return
            if mark != ",":
                raise self.expected('Expected "," or "}}", but found {}.')
            self.at += 1
            first = False

    def string(self, *, keep: bool = False) -> None:
        """Read a string (``keep``: only check it)."""
        text = self.text
        start = at = self.at
        at += 1
        high = False
        while True:
            if not high:
                at = run_end(_PLAIN, text, at)
            give_way()
            if at >= len(text):
                raise self.error(f'Token "{text[start:]}" is invalid.', len(text))
            char = text[at]
            if high and not text.startswith("\\u", at):
                end = at + 1 if char == '"' else at
                raise self.surrogate("Unicode low surrogate must follow a high surrogate.", end)
            if char == '"':
                break
            if char < " ":
                raise self.error(f"Character with value 0x{ord(char):02x} must be escaped.", at)
            at += 1
            if char != "\\":
                continue
            escape = text[at : at + 1]
            if not escape:
                raise self.error(f'Token "{text[start:]}" is invalid.', len(text))
            if escape == "u":
                high = self.unicode(at, high)
                at += 5
            elif escape in '"\\/bfnrt':
                at += 1
            else:
                raise self.error(f'Escape sequence "\\{escape}" is invalid.', at + 1)
        if not keep:
            self.at = at + 1

    def unicode(self, at: int, high: bool) -> bool:
        """Check ``uXXXX`` at ``at``; whether it is a high surrogate."""
        digits = re.compile("[0-9a-fA-F]{0,4}").match(self.text, at + 1)
        found = digits[0] if digits else ""
        if len(found) < 4:
            raise self.error(
                '"\\u" must be followed by four hexadecimal digits.', min(at + 2 + len(found), len(self.text))
            )
        code = int(found, 16)
        if not self.unescape:
            return False
        if code == 0:
            raise self.error(
                "\\u0000 cannot be converted to text.", at + 5, "22P05", "unsupported Unicode escape sequence"
            )
        if 0xD800 <= code < 0xDC00:
            if high:
                raise self.surrogate("Unicode high surrogate must not follow a high surrogate.", at + 5)
            return True
        if 0xDC00 <= code < 0xE000 and not high:
            raise self.surrogate("Unicode low surrogate must follow a high surrogate.", at + 5)
        if high and not 0xDC00 <= code < 0xE000:
            raise self.surrogate("Unicode low surrogate must follow a high surrogate.", at + 5)
        return False

    def surrogate(self, detail: str, end: int) -> DataError:
        return self.error(detail, end)
