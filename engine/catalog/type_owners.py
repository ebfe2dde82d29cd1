"""How long types stay known: as long as a definition lives that they come with, in whatever catalog of
whatever server of the process.

    TypeDef, RelationDef ── own ──> its oids, counted       each catalog that has it, what a history kept of it, plans, transactions
      the last one dies ──> ``gone`` ── forgetting ──> planner, codecs: nothing is known of the type

A type is registered by its oid (``engine.catalog.user_types``), for all servers of a process, and used by
whoever may still read values of it: a catalog of the past, a cursor that is open over the DROP, a transaction
that made it and was rolled back. All of these have its definition or a catalog with it, so the definition's
life is the type's. Within retention a history keeps it (``engine.catalog.history``).

Definitions may die in any thread, and in the midst of anything; types are forgotten on the event loop, in slices.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from engine.catalog.storage.stored import Stored, row_array_oid, row_type_oid
from pgwire.codecs.users import register as codecs
from pgwire.release import mind_long
from planner.catalog import RelationDef, TypeDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.conversion.composite import forget_typed
from planner.conversion.row_parts import forget_row
from planner.facts import forget_type
from planner.functions.registry import forget_constructor
from planner.types.domains import forget_domain
from planner.types.facts import forget_range
from txn.base.slices import Slice

Definition: TypeAlias = RelationDef | TypeDef

AT_ONCE: Final = 512
"""Definitions whose types are forgotten in one slice, at most."""


class _Owner(weakref.ref[RelationDef | TypeDef]):
    """A definition, and which types it comes with."""

    __slots__ = ("key", "oids")

    key: int
    oids: tuple[int, ...]


_owners: Final[dict[int, _Owner]] = {}
"""By the identity of the definition, for as long as it lives."""
_counts: Final[dict[int, int]] = {}
"""How many definitions a type has, those among ``_gone`` included."""
_gone: Final[deque[tuple[int, ...]]] = deque()
"""The types of definitions that have died."""


def own(item: Stored | None) -> None:
    """Have the types that come with a definition be known as long as it lives; others come with none. Idempotent."""
    key = id(item)
    if key in _owners or not isinstance(item, RelationDef | TypeDef):
        return
    if isinstance(item, TypeDef):
        mind_long(item.labels)
    oids = _types_of(item)
    if oids:
        owner = _Owner(item, _died)
        owner.key, owner.oids = key, oids
        for oid in oids:
            _counts[oid] = _counts.get(oid, 0) + 1
        _owners[key] = owner


def _types_of(item: Definition) -> tuple[int, ...]:
    """Return the oids of the types that come with a definition, and of the functions that come with these."""
    if isinstance(item, TypeDef):
        return () if item.kind == "b" else tuple(item.family)  # an extension's are known without being there
    if item.kind in ROW_TYPED and not item.virtual:
        return row_type_oid(item.oid), row_array_oid(item.oid)
    return ()


def _died(owner: weakref.ref[Definition]) -> None:
    if not isinstance(owner, _Owner):
        raise AssertionError(f"a reference to {type(owner).__name__} is watched as one to an owner")
    del _owners[owner.key]  # before its memory, and so its identity, is another's
    _gone.append(owner.oids)


def forgetting() -> Iterator[None]:
    """Forget the types whose definitions have all died, in slices."""
    pause = Slice(AT_ONCE)
    while _gone:
        for oid in _gone.popleft():
            left = _counts[oid] - 1
            if left:
                _counts[oid] = left
            else:
                del _counts[oid]
                _forget(oid)
        if pause.over():
            yield


def _forget(oid: int) -> None:
    """Take back what ``engine.catalog.user_types`` has told of a type, or of a function that comes with one,
    whatever it is.
    """
    codecs.forget(oid)
    forget_range(oid)
    forget_domain(oid)
    forget_typed(oid)
    forget_row(oid)
    forget_type(oid)
    forget_constructor(oid)
