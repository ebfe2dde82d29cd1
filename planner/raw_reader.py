"""The raw parse tree and its places: what every reader of it is built on.

The raw tree is the parser's JSON, decoded: every node is ``{"Kind": {fields}}``, fields that are zero, false or
empty are left out, and locations are byte offsets.

    PlaceReader            byte offsets -> spans in characters; refusals with a span          here
      ExpressionReader     expressions                                                        ``planner.raw_expr``
        RawReader          queries                                                            ``planner.raw_query``
          OptionReader     options of statements; statements                                  ``planner.raw_option``, ``planner.raw_statement``
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from planner.errors import Span, SqlError, not_supported

Raw: TypeAlias = dict[str, Any]

# One token, good enough to find where it ends: the span an error message would blame.
_TOKEN = re.compile(
    r"""\w[\w$]*(?:\.\d\w*)?|'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|\$\d+|\.\d\w*|::|:=|=>"""
    r"""|[-+*/<>=~!@#%^&|`?]+|."""
)


def strings(nodes: Sequence[Raw]) -> tuple[str, ...]:
    """Return the texts of a list of String nodes."""
    return tuple([node["String"].get("sval", "") for node in nodes])


class PlaceReader:
    """Knows the places of one raw tree over ``text``; spans are characters of ``text``."""

    def __init__(self, text: str) -> None:
        """Prepare for trees parsed from ``text``."""
        self.text = text
        self._chars: list[int] | None = None
        if not text.isascii():
            chars: list[int] = []
            for index, char in enumerate(text):
                chars.extend([index] * len(char.encode("utf-8")))
            chars.append(len(text))
            self._chars = chars

    # --- places ---------------------------------------------------------------------------------

    def offset(self, location: int) -> int:
        """Return the character offset of a byte offset."""
        if self._chars is None:
            return location
        return self._chars[min(location, len(self._chars) - 1)]

    def span(self, body: Raw) -> Span | None:
        """Return the token at a node's location, None where it has none."""
        location = body.get("location", 0)
        if location < 0:
            return None
        start = location if self._chars is None else self.offset(location)
        match = _TOKEN.match(self.text, start)
        return Span(start, match.end() if match else start)

    def refuse(self, construct: str, body: Raw | None = None) -> SqlError:
        """Return the 0A000 error for a construct that has a location."""
        span = self.span(body) if body is not None and "location" in body else None
        return not_supported(construct, span=span)

    def syntax_error(self, span: Span | None) -> SqlError:
        """Return PostgreSQL's syntax error at a span (for grammar newer than version 15)."""
        near = self.text[span.start : span.end] if span else ""
        return SqlError("42601", f'syntax error at or near "{near}"', span=span)
