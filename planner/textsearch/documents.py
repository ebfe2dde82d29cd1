"""JSON documents in full-text search: which texts of one are searched, and headlines of its strings (manual 9.13).

{"a": "The Fat", "b": [1, "Rats"]}   strings of values: 'The Fat', 'Rats'   numeric: '1'   key: 'a', 'b'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pgwire.codecs.json import quote
from pgwire.codecs.json.long import WINDOW, past_atom, past_blanks, string
from pgwire.give_way import give_way
from pgwire.long.values import cut, joined, joined_up
from planner.base.errors import SqlError

STRINGS: Final = frozenset(("string",))
_ALL: Final = frozenset(("string", "numeric", "boolean", "key"))
_HINT: Final = 'Possible values are: "string", "numeric", "boolean", "key", and "all".'
_WORDS: Final = {"t": "boolean", "f": "boolean", "n": "null"}

_PACE: Final = 32

Token = tuple[str, str]
"""One of ``{}[],:`` twice; or key, string (decoded), numeric, boolean or null, and its text."""


def _tokens(text: str) -> Iterator[Token]:
    """Yield what a document consists of, in its order, giving way: it is never decoded as a whole."""
    at, size, pace = past_blanks(text, 0), len(text), _PACE
    while at < size:
        char = text[at]
        if char == '"':
            value, at = string(text, at)
            at = past_blanks(text, at)
            yield ("key" if text.startswith(":", at) else "string"), value
        elif char in "{}[],:":
            yield char, char
            at = past_blanks(text, at + 1)
        else:
            end = past_atom(text, at)
            yield _WORDS.get(char, "numeric"), cut(text, at, end)
            at = past_blanks(text, end)
        pace -= 1
        if not pace:
            pace = _PACE
            give_way()


def read_filter(text: str) -> frozenset[str]:
    """Return the kinds of values that a jsonb ``["string", "numeric"]`` names. SqlError 22023."""
    found: set[str] = set()
    for number, (kind, item) in enumerate(_tokens(text)):
        if kind in (",", "]") or (kind == "[" and not number):
            continue
        if kind == "{" and not number:
            raise SqlError("22023", "wrong flag type, only arrays and scalars are allowed")
        if kind != "string":
            raise SqlError("22023", "flag array element is not a string", hint=_HINT)
        flag = item.lower() if len(item) <= WINDOW else item
        if flag == "all":
            found |= _ALL
        elif flag in _ALL:
            found.add(flag)
        else:
            raise SqlError("22023", joined(('wrong flag in flag array: "', item, '"')), hint=_HINT)
    return frozenset(found)


def texts(document: str, kinds: frozenset[str]) -> Iterator[str]:
    """Yield the texts of a document's keys and values of some kinds, in its order."""
    return (text for kind, text in _tokens(document) if kind in kinds)


def with_strings(document: str, change: Callable[[str], str], *, spaces: bool) -> str:
    """Return a document whose strings (not keys) are changed; ``spaces`` as jsonb is printed."""
    marks = {":": ": ", ",": ", "} if spaces else {}
    parts: list[str] = []
    for kind, text in _tokens(document):
        if kind == "string":
            parts.append(quote(change(text)))
        elif kind == "key":
            parts.append(quote(text))
        else:
            parts.append(marks.get(kind, text))
    return joined_up(parts)
