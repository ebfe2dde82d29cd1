"""About how many bytes a change of the catalog keeps for reads of the past, weighed once, in slices.

    before ─┬─ parts that ``after`` has too     live on anyway
            └─ all others                       what the history keeps

A definition is a tree of immutable values. Which of its parts the next one has taken over is told by identity
one level deep: the columns, labels, constraints of a table or type. A source text of a megabyte counts as
such, an empty schema as what its entry takes.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any, Final

from engine.catalog.storage.stored import Stored
from planner.catalog import RelationDef, TypeDef
from planner.catalog.relation_kinds import ROW_TYPED
from txn.base.slices import Slice

OF_ENTRY: Final = 512
"""An undo's dictionary, the key, and the places that lead there."""
OF_TYPES: Final = 1500
"""What planner and codecs keep of the types that come with a definition (``engine.catalog.type_owners``)."""
AT_ONCE: Final = 512
"""Values that are weighed in one slice, at most."""


def kept_bytes(before: Stored | None, after: Stored | None, pause: Slice) -> Generator[None, None, int]:
    """Return about what is kept of ``before`` once ``after`` (None: nothing) is in its place, in slices,
    which ``pause`` tells of many changes.
    """
    size = OF_ENTRY
    if before is None:
        return size
    if after is None and (
        isinstance(before, TypeDef) or (isinstance(before, RelationDef) and before.kind in ROW_TYPED)
    ):
        size += OF_TYPES
    taken_over = yield from _parts(after, pause)
    left: list[Iterator[Any]] = [iter((before,))]
    while left:
        for value in left[-1]:
            if pause.over():
                yield
            if isinstance(value, int | None) or value in taken_over:
                continue
            size += sys.getsizeof(value)
            inner = _within(value)
            if inner is not None:
                left.append(inner)
                break
        else:
            left.pop()
    return size


def _within(value: Any) -> Iterator[Any] | None:
    """Return what is in a value, None for one that is whole; a list of labels is as long as a client likes."""
    if isinstance(value, tuple | frozenset):
        return iter(value)
    if isinstance(value, Mapping):
        return chain(value, value.values())
    if is_dataclass(value):
        return (getattr(value, field.name) for field in fields(value))
    return None


class _Parts:
    """Values by identity, in several sets: one of 300,000 takes 10 ms to grow."""

    __slots__ = ("_sets",)

    def __init__(self) -> None:
        self._sets: list[set[int]] = [set() for _ in range(_SETS)]

    def add(self, value: Any) -> None:
        self._sets[(id(value) >> _ALIGNED) % _SETS].add(id(value))

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._sets[(id(value) >> _ALIGNED) % _SETS]


_SETS: Final = 61
_ALIGNED: Final = 4
"""Bits of an address that are the same in all."""


def _parts(item: Stored | None, pause: Slice) -> Generator[None, None, _Parts]:
    """Return the fields of a definition and what is in them, in slices."""
    found = _Parts()
    if item is not None:
        for field in fields(item):
            value = getattr(item, field.name)
            found.add(value)
            for part in value if isinstance(value, tuple) else ():
                found.add(part)
                if pause.over():
                    yield
    return found
