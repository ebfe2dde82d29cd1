"""Names as they are written in texts: ``a."B c".d`` is three."""

from __future__ import annotations

import re
from typing import Final

from pgwire.give_way import give_way
from pgwire.long.values import cut, find, joined, mapped, run_end
from planner.base.errors import SqlError

_BLANKS: Final = re.compile(r"\s*+")
_UNQUOTED: Final = re.compile(r"[^.\s]*+")


def split_identifier(text: str) -> list[str]:
    """Split ``a."B c".d`` into its names, folding unquoted ones to lower case; 42602 when malformed."""
    names: list[str] = []
    i = run_end(_BLANKS, text, 0)
    while True:
        give_way()
        if text.startswith('"', i):
            out = []
            while True:
                end = find(text, '"', i + 1)
                if end < 0:
                    raise _malformed()
                out.append(cut(text, i + 1, end))
                i = end + 1
                if not text.startswith('"', i):
                    break
                out.append('"')
                give_way()
            name = joined(out)
        else:
            start = i
            i = run_end(_UNQUOTED, text, i)
            name = mapped(cut(text, start, i), str.lower)
        if not name:
            raise _malformed()
        names.append(name)
        i = run_end(_BLANKS, text, i)
        if i >= len(text):
            return names
        if text[i] != ".":
            raise _malformed()
        i = run_end(_BLANKS, text, i + 1)


def _malformed() -> SqlError:
    return SqlError("42602", "invalid name syntax")
