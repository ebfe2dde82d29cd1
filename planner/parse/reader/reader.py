"""The raw parse tree and its places: what every reader of it is built on.

The raw tree is the parser's JSON, decoded: every node is ``{"Kind": {fields}}``, fields that are zero, false or
empty are left out, and locations are byte offsets.

    PlaceReader            byte offsets -> spans in characters; refusals with a span          here
      ExpressionReader     expressions                                                        ``planner.parse.reader.expr``
        RawReader          queries                                                            ``planner.parse.reader.query``
          OptionReader     options of statements; statements                                  ``planner.parse.reader.option``, ``planner.parse.reader.statement``
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from pgwire.give_way import give_way, paced
from pgwire.long.values import LONG, encoded
from planner.base.errors import Span, SqlError, not_supported
from planner.base.long_search import token_end

Raw: TypeAlias = dict[str, Any]
T = TypeVar("T")

_BLOCK: Final = 1024
"""Bytes of a text between two places of which it is known how many characters begin before."""
_CONTINUE: Final = bytes(range(0x80, 0xC0))
"""The bytes that begin no character."""


def read_each(read: Callable[[Raw], T], nodes: Iterable[Raw]) -> tuple[T, ...]:
    """Read each of so many nodes as a client likes.

    Where reading is cancelled, what has been read goes by ``pgwire.release.release_error``, which sees the
    locals of frames: the list of a comprehension would go at once, and hold everybody up.
    """
    found: list[T] = []
    for node in nodes:
        found.append(read(node))
    return tuple(found)


def strings(nodes: Sequence[Raw]) -> tuple[str, ...]:
    """Return the texts of a list of String nodes."""
    give_way()
    return tuple([node["String"].get("sval", "") for node in paced(nodes, 4096)])


class Places:
    """Byte offsets in the UTF-8 of a text as offsets in characters: made once for all statements of a text."""

    __slots__ = ("_before", "_data", "text")

    def __init__(self, text: str) -> None:
        """Count, giving way."""
        self.text = text
        self._data = (
            b"" if text.isascii() else text.encode() if len(text) <= LONG else encoded(text, str.encode)
        )
        self._before = array("q", [0])  # characters that begin before each block
        count = 0
        for at in paced(range(0, len(self._data), _BLOCK)):
            count += len(self._data[at : at + _BLOCK].translate(None, _CONTINUE))
            self._before.append(count)

    def offset(self, location: int) -> int:
        """Return the character offset of a byte offset at which a character begins, or of one at the end or past it."""
        if not self._data:
            return location
        block = location // _BLOCK
        if block >= len(self._before):
            return len(self.text)
        return self._before[block] + len(self._data[block * _BLOCK : location].translate(None, _CONTINUE))


class PlaceReader:
    """Knows the places of one raw tree over ``text``; spans are characters of ``text``."""

    def __init__(self, places: Places) -> None:
        """Prepare for trees parsed from the text of ``places``."""
        self.text = places.text
        self.offset = places.offset

    # --- places ---------------------------------------------------------------------------------

    def span(self, body: Raw) -> Span | None:
        """Return the token at a node's location, None where it has none."""
        give_way()  # what has no expressions in it comes by here
        location = body.get("location", 0)
        if location < 0:
            return None
        start = self.offset(location)
        return Span(start, token_end(self.text, start))

    def refuse(self, construct: str, body: Raw | None = None) -> SqlError:
        """Return the 0A000 error for a construct that has a location."""
        span = self.span(body) if body is not None and "location" in body else None
        return not_supported(construct, span=span)

    def syntax_error(self, span: Span | None) -> SqlError:
        """Return PostgreSQL's syntax error at a span (for grammar newer than version 15)."""
        near = self.text[span.start : span.end] if span else ""
        return SqlError("42601", f'syntax error at or near "{near}"', span=span)
