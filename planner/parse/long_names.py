"""Names that are too long: PostgreSQL's scanner cuts them to 63 bytes and says so.

    SELECT 1 AS "éé...é" (64 bytes)   ->   NOTICE 42622  identifier "éé...é" will be truncated to "éé...é" (62 bytes)

The parser library cuts them, too, but keeps the notices to itself.
"""

from __future__ import annotations

import re
from typing import Final

from pgwire.give_way import paced
from planner.base.errors import SqlError
from planner.parse.scanner import ScanError, scan

MAX_NAME_BYTES: Final = 63
MAX_SEARCHED: Final = 64 * 1024
"""Characters of a text. In longer ones names are cut, too, but it is not told: to find them would hold up others."""

# What may be such a name, where each character is a byte, and where it may be four.
_ASCII_CANDIDATE: Final = re.compile(r'\b[\w$]{64}|"(?:[^"]|""){64}', re.ASCII)
_CANDIDATE: Final = re.compile(r'[\w$\x80-\U0010ffff]{16}|"(?:[^"]|""){16}')


def cut(name: str) -> str:
    """Return a name as it is kept: at most 63 bytes of whole characters."""
    data = name.encode()
    return name if len(data) <= MAX_NAME_BYTES else data[:MAX_NAME_BYTES].decode("utf-8", "ignore")


def truncated(text: str) -> list[tuple[str, str]]:
    """Return the names in a text that are too long, in order, and what becomes of them."""
    if not MAX_NAME_BYTES // 4 < len(text) <= MAX_SEARCHED:
        return []
    candidate = _ASCII_CANDIDATE if text.isascii() else _CANDIDATE
    if candidate.search(text) is None:
        return []
    try:
        tokens = scan(text)
    except (ScanError, SqlError):
        return []  # the grammar says what is wrong
    found = []
    for token in paced(tokens):
        if token.name == "IDENT" and token.end - token.start >= MAX_NAME_BYTES // 4:
            written = text[token.start : token.end + 1]
            name = written[1:-1].replace('""', '"') if written[0] == '"' else _folded(written)
            kept = cut(name)
            if kept != name:
                found.append((name, kept))
    return found


def _folded(name: str) -> str:
    """Return an unquoted name as it is kept: ASCII letters in lower case."""
    return "".join([ch.lower() if ch.isascii() else ch for ch in name])
