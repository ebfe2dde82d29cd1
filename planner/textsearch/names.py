"""Names of text search configurations and dictionaries: what regconfig and regdictionary read and print (manual 8.19).

All there are are PostgreSQL's own, in pg_catalog, so that a literal is a constant when its statement is bound.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.errors import SqlError
from planner.facts import REGCONFIG, REGDICTIONARY, rows
from planner.identifiers import split_identifier

SEARCH_NAMES: Final = {REGCONFIG: "text search configuration", REGDICTIONARY: "text search dictionary"}
"""The types whose values are such names, and what messages call what they name."""


class Named(NamedTuple):
    """A row of pg_ts_config or pg_ts_dict."""

    oid: int
    name: str


@functools.cache
def configurations() -> Mapping[str, Named]:
    """Return the configurations by name."""
    return {r["cfgname"]: Named(int(r["oid"]), r["cfgname"]) for r in rows("ts_configs")}


@functools.cache
def dictionaries() -> Mapping[str, Named]:
    """Return the dictionaries by name."""
    return {r["dictname"]: Named(int(r["oid"]), r["dictname"]) for r in rows("ts_dicts")}


def _named(type_oid: int) -> Mapping[str, Named]:
    return configurations() if type_oid == REGCONFIG else dictionaries()


def find_named(type_oid: int, text: str) -> int | None:
    """Return the oid of what a possibly qualified name means, None if there is none. SqlError 42602, 42601."""
    names = split_identifier(text)
    if len(names) > 3:
        raise SqlError("42601", f"improper qualified name (too many dotted names): {text}")
    if len(names) > 1 and names[-2] != "pg_catalog":
        return None
    found = _named(type_oid).get(names[-1])
    return None if found is None else found.oid


def read_name(type_oid: int, text: str) -> int:
    """Read a regconfig or regdictionary: a name, a number, ``-`` for 0. SqlError 42704, 42601, 42602."""
    stripped = text.strip()
    if stripped == "-":
        return 0
    if stripped.isascii() and stripped.isdigit():
        return int(stripped)
    found = find_named(type_oid, text)
    if found is None:
        shown = ".".join(split_identifier(text))
        raise SqlError("42704", f'{SEARCH_NAMES[type_oid]} "{shown}" does not exist')
    return found


def shown_name(type_oid: int, value: int) -> str | None:
    """Return the name of what has an oid, None if nothing has it."""
    return next((found.name for found in _named(type_oid).values() if found.oid == value), None)
