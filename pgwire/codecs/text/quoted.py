"""Texts within a composite's or a range's literal, up to what ends them outside quotes.

They are quoted whole, in part or not at all; within quotes, "" is a quote, and a backslash takes what follows
as it is everywhere.
"""

from __future__ import annotations

import re
from typing import Final

from pgwire.give_way import give_way
from pgwire.long.values import joined

_INSIDE: Final = re.compile(r'[^"\\]+')
_WINDOW: Final = 1 << 16
"""Characters that are looked at in one call."""


class Ends:
    """Characters that end a text outside quotes."""

    def __init__(self, marks: str) -> None:
        """Take them."""
        self.marks = marks
        self.plain = re.compile(rf'[^"\\{re.escape(marks)}]+')  # what stands for itself


class Unended(ValueError):
    """The literal ends before what it should contain."""


def read_quoted(text: str, at: int, ends: Ends) -> tuple[str, int]:
    """Return the text that begins at ``at``, without its quotes and backslashes, and where one of ``ends`` ends it.

    Raises:
        Unended: nothing ends it.
    """
    out: list[str] = []
    quoted, size = False, len(text)
    while at < size:
        found = (_INSIDE if quoted else ends.plain).match(text, at, at + _WINDOW)
        give_way()
        if found is not None:
            out.append(found[0])
            at = found.end()
            continue
        char = text[at]
        if not quoted and char in ends.marks:
            return joined(out), at
        at += 1
        if char == "\\":
            if at == size:
                break
            out.append(text[at])
            at += 1
        elif char != '"':
            out.append(char)
        elif not quoted:
            quoted = True
        elif text[at : at + 1] == '"':
            out.append('"')
            at += 1
        else:
            quoted = False
    raise Unended(text)
