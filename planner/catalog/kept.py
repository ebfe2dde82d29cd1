"""What is made of a definition and kept with it: as long as the definition lives, which it does not keep alive.

    proc_fact(function)      function ──dies──> what was made of it goes

A cache that keeps its arguments has the bodies of functions, and the types of tables, that were dropped long ago.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

D = TypeVar("D")
T = TypeVar("T")

MOST: Final = 4096
"""Definitions of which something is kept in one place."""


class _Made(weakref.ref[Any]):
    """A definition, and what was made of it."""

    __slots__ = ("key", "made")

    key: int
    made: Any


def kept_with_definition(make: Callable[[D], T]) -> Callable[[D], T]:
    """Keep what ``make`` returns for a definition; equal ones are different ones here."""
    kept: dict[int, _Made] = {}

    def died(definition: weakref.ref[Any]) -> None:
        if not isinstance(definition, _Made):
            raise AssertionError(
                f"a reference to {type(definition).__name__} is watched as one to a definition"
            )
        kept.pop(definition.key, None)

    @functools.wraps(make)
    def get(definition: D) -> T:
        key = id(definition)
        found = kept.get(key)
        if found is None or found() is not definition:
            made = make(definition)
            if len(kept) >= MOST:
                kept.clear()
            found = kept[key] = _Made(definition, died)
            found.key, found.made = key, made
        result: T = found.made
        return result

    return get
