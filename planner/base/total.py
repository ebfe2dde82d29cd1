"""Tables that have a row for each member of something closed: what is forgotten fails where the table is
made, at import.

Statement = A | B | C          ROWS = total("rights", members(Statement), {A: …, B: …})      TypeError: rights: no row for C
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")
_Base = TypeVar("_Base")


def members(alias: Any) -> tuple[Any, ...]:
    """Return the members of a union, those of unions in it for these, or the values of a Literal."""
    below = get_args(alias)
    return tuple(member for part in below for member in members(part)) if below else (alias,)


def leaves(names: Mapping[str, Any], base: type[_Base]) -> tuple[type[_Base], ...]:
    """Return the classes of a namespace that are derived from ``base`` and that no other of them is derived from."""
    derived = [item for item in names.values() if isinstance(item, type) and issubclass(item, base)]
    return tuple(
        one for one in derived if not any(other is not one and issubclass(other, one) for other in derived)
    )


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


def joined(what: str, *parts: Mapping[_Key, _Row]) -> dict[_Key, _Row]:
    """Return the rows of all parts. Raises TypeError, which ``what`` begins, where two have one for the same key."""
    rows: dict[_Key, _Row] = {}
    for part in parts:
        twice = [_name(key) for key in part if key in rows]
        if twice:
            raise TypeError(f"{what}: two rows for {', '.join(twice)}")
        rows.update(part)
    return rows


def _name(key: Any) -> str:
    return key.__name__ if isinstance(key, type) else repr(key)
