"""JSON documents in full-text search: which texts of one are searched, and headlines of its strings (manual 9.13).

{"a": "The Fat", "b": [1, "Rats"]}   strings of values: 'The Fat', 'Rats'   numeric: '1'   key: 'a', 'b'
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from pgwire.codecs.json import quote
from pgwire.give_way import paced_iter
from planner.errors import SqlError

STRINGS: Final = frozenset(("string",))
_ALL: Final = frozenset(("string", "numeric", "boolean", "key"))
_HINT: Final = 'Possible values are: "string", "numeric", "boolean", "key", and "all".'


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Object(list[Any]):
    """An object: pairs, in order, the same key maybe several times."""


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, strict=False
)


def read_filter(text: str) -> frozenset[str]:
    """Return the kinds of values that a jsonb ``["string", "numeric"]`` names. SqlError 22023."""
    found: set[str] = set()
    wanted = json.loads(text)
    if isinstance(wanted, dict):
        raise SqlError("22023", "wrong flag type, only arrays and scalars are allowed")
    for item in wanted if isinstance(wanted, list) else [wanted]:
        if not isinstance(item, str):
            raise SqlError("22023", "flag array element is not a string", hint=_HINT)
        kind = item.lower()
        if kind == "all":
            found |= _ALL
        elif kind in _ALL:
            found.add(kind)
        else:
            raise SqlError("22023", f'wrong flag in flag array: "{item}"', hint=_HINT)
    return frozenset(found)


def texts(document: str, kinds: frozenset[str]) -> Iterator[str]:
    """Yield the texts of a document's keys and values of some kinds, in its order."""
    return _texts(_DECODER.decode(document.strip()), kinds)


def _texts(value: Any, kinds: frozenset[str]) -> Iterator[str]:
    if isinstance(value, _Object):
        for key, item in paced_iter(value):
            if "key" in kinds:
                yield key
            yield from _texts(item, kinds)
    elif isinstance(value, list):
        for item in paced_iter(value):
            yield from _texts(item, kinds)
    elif isinstance(value, bool):
        if "boolean" in kinds:
            yield "true" if value else "false"
    elif isinstance(value, _Number):
        if "numeric" in kinds:
            yield str(value)
    elif value is not None and "string" in kinds:
        yield value


def with_strings(document: str, change: Callable[[str], str], *, spaces: bool) -> str:
    """Return a document whose strings (not keys) are changed; ``spaces`` as jsonb is printed."""
    colon, comma = (": ", ", ") if spaces else (":", ",")
    return _Printer(change, colon, comma).show(_DECODER.decode(document.strip()))


class _Printer:
    """Prints documents; ``change`` is called for each string."""

    __slots__ = ("_change", "_colon", "_comma")

    def __init__(self, change: Callable[[str], str], colon: str, comma: str) -> None:
        self._change = change
        self._colon = colon
        self._comma = comma

    def show(self, value: Any) -> str:
        """Return a decoded value's text."""
        if isinstance(value, _Object):
            colon = self._colon
            parts = (f"{quote(key)}{colon}{self.show(item)}" for key, item in paced_iter(value))
            return "{" + self._comma.join(parts) + "}"
        if isinstance(value, list):
            return "[" + self._comma.join(map(self.show, value)) + "]"
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, _Number) else quote(self._change(value))
