"""SASLprep (RFC 4013): one form for a password that can be typed in several ways.

Server and client must agree on it byte by byte, so the rules are PostgreSQL's: a password that is not UTF-8,
or that SASLprep forbids, is used as it is.
"""

from __future__ import annotations

import stringprep
import unicodedata
from collections.abc import Callable
from typing import Final

_PROHIBITED: Final[tuple[Callable[[str], bool], ...]] = (
    stringprep.in_table_c12,  # non-ASCII space
    stringprep.in_table_c21_c22,  # control
    stringprep.in_table_c3,  # private use
    stringprep.in_table_c4,  # non-character
    stringprep.in_table_c5,  # surrogate
    stringprep.in_table_c6,  # inappropriate for plain text
    stringprep.in_table_c7,  # inappropriate for canonical representation
    stringprep.in_table_c8,  # change display or deprecated
    stringprep.in_table_c9,  # tagging
    stringprep.in_table_a1,  # unassigned
)


def saslprep(password: str) -> str:
    """Return the prepared password, or ``password`` itself where the profile forbids it."""
    if password.isascii():
        return password if password.isprintable() else _prepare(password)
    return _prepare(password)


def _prepare(password: str) -> str:
    mapped = "".join(
        " " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c)
    )
    prepared = unicodedata.normalize("NFKC", mapped)
    if not prepared or any(check(c) for c in prepared for check in _PROHIBITED):
        return password
    if any(map(stringprep.in_table_d1, prepared)):  # right-to-left text: RFC 3454 section 6
        if any(map(stringprep.in_table_d2, prepared)):
            return password
        if not (stringprep.in_table_d1(prepared[0]) and stringprep.in_table_d1(prepared[-1])):
            return password
    return prepared
