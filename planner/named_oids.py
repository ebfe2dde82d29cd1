"""Which users' objects a stored text names by oid.

    CAST(a AS pg_catalog."#16400")    "#16410"(a)    to_tsvector('"#16420"'::regconfig, b)      names 16400, 16410, 16420
    '"#16400"'::text    "#16400"                                                               a literal, a column: nothing

Such texts are PostgreSQL's syntax as ``planner.deparse`` prints it: strings double their quotes and have no escapes.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    '(?P<string>(?:[^']|'')*)'(?P<reg>(?:::|\s+AS\s+)(?:pg_catalog\.)?reg(?:config|dictionary)\b)?
    | pg_catalog\."\#(?P<type>\d+)"
    | "(?:\#(?P<call>\d+)"(?=\() | (?:[^"]|"")*")
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BY_OID: Final = re.compile(r'"#(\d+)"')


_RELATION: Final = re.compile(r"'(\d+)'::regclass")


def relations_in_text(text: str | None) -> list[int]:
    """Return the oids of the relations that a stored text names by constants (``nextval('16385'::regclass)``)."""
    return [int(oid) for oid in _RELATION.findall(text)] if text and "::regclass" in text else []


def used_oids(text: str | None) -> set[int]:
    """Return what ``named_oids`` does, and the relations that constants name: all that the text cannot be without."""
    return named_oids(text).union(relations_in_text(text))


def named_oids(text: str | None) -> set[int]:
    """Return the oids of users' types, functions and text search objects that a stored text names."""
    if text is None or '"#' not in text:
        return set()
    found: set[int] = set()
    for token in _TOKEN.finditer(text):
        named = token["type"] or token["call"]
        if named:
            found.add(int(named))
        elif token["reg"] and (by_oid := _BY_OID.fullmatch(token["string"])):
            found.add(int(by_oid[1]))
    return found
