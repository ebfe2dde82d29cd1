"""Tables that have a row for each member of something closed: what is forgotten fails where the table is made, at import.

Statement = A | B | C          ROWS = total("rights", members(Statement), {A: …, B: …})      TypeError: rights: no row for C
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")


def members(alias: Any) -> tuple[Any, ...]:
    """Return the members of a union, those of unions in it for these, or the values of a Literal."""
    below = get_args(alias)
    return tuple(member for part in below for member in members(part)) if below else (alias,)


def total(what: str, keys: Iterable[_Key], rows: Mapping[_Key, _Row]) -> Mapping[_Key, _Row]:
    """Return ``rows``. Raises TypeError unless they are for exactly ``keys``; ``what`` begins its message."""
    wanted = list(keys)
    missing = [_name(key) for key in wanted if key not in rows]
    if missing:
        raise TypeError(f"{what}: no row for {', '.join(missing)}")
    unknown = [_name(key) for key in rows if key not in wanted]
    if unknown:
        raise TypeError(f"{what}: a row for {', '.join(unknown)}, of which nobody knows")
    return rows


def _name(key: Any) -> str:
    return key.__name__ if isinstance(key, type) else repr(key)
