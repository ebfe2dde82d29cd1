"""Texts within a composite's or a range's literal, up to what ends them outside quotes.

They are quoted whole, in part or not at all; within quotes, "" is a quote, and a backslash takes what follows as it is everywhere.
"""

from __future__ import annotations


class Unended(ValueError):
    """The literal ends before what it should contain."""


def read_quoted(text: str, at: int, ends: str) -> tuple[str, int]:
    """Return the text that begins at ``at``, without its quotes and backslashes, and where one of ``ends`` ends it.

    Raises:
        Unended: nothing ends it.
    """
    out: list[str] = []
    quoted, size = False, len(text)
    while at < size:
        char = text[at]
        if not quoted and char in ends:
            return "".join(out), at
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
