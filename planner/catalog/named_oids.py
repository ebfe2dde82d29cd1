"""Which users' objects a stored text names by oid.

    CAST(a AS pg_catalog."#16400")    "#16410"(a)    to_tsvector('"#16420"'::regconfig, b)      names 16400, 16410, 16420
    '16400'::regtype    '16410'::regproc    '16430'::regnamespace                               names 16400, 16410, 16430
    '"#16400"'::text    "#16400"                                                               a literal, a column: nothing

Such texts are PostgreSQL's syntax as ``planner.deparse`` prints it: strings double their quotes and have no escapes.
"""

from __future__ import annotations

import re
from typing import Final

from planner.types.facts import FIRST_USER_OID

_TOKEN: Final = re.compile(
    r"""
    '(?P<string>(?:[^']|'')*)'(?P<reg>(?:::|\s+AS\s+)(?:pg_catalog\.)?reg(?:config|dictionary|type|proc|procedure|namespace|collation)\b(?!\[))?
    | pg_catalog\."\#(?P<type>\d+)"(?P<array>\[\])?
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
    """Return the oids of users' types, functions, text search objects, collations and schemas that a stored
    text names.
    """
    if text is None or ('"#' not in text and text.count("::reg") == text.count("::regclass")):
        return set()
    return _named(text, constants=True)


def array_elements(text: str | None) -> tuple[set[int], set[int]]:
    """Return of which users' types a stored text names the array types, and which types it names themselves;
    not those of whole rows, ``t.*::…``.
    """
    found: tuple[set[int], set[int]] = (set(), set())
    text = text or ""
    for token in _TOKEN.finditer(text):
        if token["type"] and not text.endswith(".*::", 0, token.start()):
            found[not token["array"]].add(int(token["type"]))
    return found


def needed_oids(text: str | None) -> set[int]:
    """Return those that a text cannot be read without: constants that are numbers are no more than that to
    who reads it.
    """
    return set() if text is None or '"#' not in text else _named(text, constants=False)


def _named(text: str, *, constants: bool) -> set[int]:
    found: set[int] = set()
    for token in _TOKEN.finditer(text):
        named = token["type"] or token["call"]
        if named:
            found.add(int(named))
        elif token["reg"]:
            written = token["string"]
            if by_oid := _BY_OID.fullmatch(written):
                found.add(int(by_oid[1]))
            elif constants and written.isdecimal() and int(written) >= FIRST_USER_OID:
                found.add(int(written))
    return found
