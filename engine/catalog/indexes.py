"""Ways to objects of a catalog, by name and by oid: dictionaries that pass from snapshot to snapshot.

    by_name(before, gone, made, name) ──> after        a copy of ``before`` without ``gone``, with ``made``

A change costs what it changes, and a copy that C makes, some 10 ns an entry. Nothing is changed in place: a
snapshot that somebody has stays as it is. An object that is put in its own place keeps its place in the
order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar, get_args

from engine.catalog.relations.as_relations import relation_names, relations_of
from engine.catalog.storage.stored import Stored
from planner.catalog import RANGE_CONSTRUCTORS, RelationDef, TypeDef


class Numbered(Protocol):
    """An object with an oid."""

    @property
    def oid(self) -> int:
        """Which names it as long as it lives."""


N = TypeVar("N", bound=Numbered)
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

KINDS: Final = frozenset(get_args(Stored))


def kind_of(one: type) -> type:
    """Return the kind of stored objects that objects of a class are: a ``BorrowedView`` is a ``RelationDef``.

    Raises TypeError for a class of none.
    """
    for base in one.__mro__:
        if base in KINDS:
            return base
    raise TypeError(f"{one.__name__} is no kind of object in a catalog")


class Pace(Protocol):
    """What a sequence is iterated over with, as often as one likes: ``pgwire.give_way.paced``, or ``at_once``."""

    def __call__(self, items: Sequence[T], /) -> Iterable[T]:
        """Return what yields ``items``."""


def at_once(items: Sequence[T], /) -> Iterable[T]:
    """Return ``items``: nobody else runs meanwhile."""
    return items


def by_kind(items: Sequence[Stored], pace: Pace = at_once) -> dict[type, list[Any]]:
    """Return objects by their kinds."""
    found: dict[type, list[Any]] = {}
    for item in pace(items):
        found.setdefault(kind_of(type(item)), []).append(item)
    return found


def by_oid(before: Mapping[int, N], gone: Iterable[N], made: Iterable[N]) -> dict[int, N]:
    """Return objects by their oids."""
    after, now = dict(before), {item.oid: item for item in made}
    for item in gone:
        if item.oid not in now:
            after.pop(item.oid, None)
    return after | now


def by_name(
    before: Mapping[K, N], gone: Iterable[N], made: Iterable[N], name: Callable[[N], K]
) -> dict[K, N]:
    """Return objects by names that one has at a time; they may have exchanged theirs."""
    after, now = dict(before), {name(item): item for item in made}
    for item in gone:
        called = name(item)
        found = after.get(called)
        if called not in now and found is not None and found.oid == item.oid:
            del after[called]
    return after | now


Groups: TypeAlias = Mapping[K, Mapping[int, N]]
"""Objects that have a key in common, by their oids, oldest first."""


def grouped(
    before: Groups[K, N], gone: Iterable[N], made: Iterable[N], key: Callable[[N], K | None], pace: Pace
) -> dict[K, Mapping[int, N]]:
    """Return the objects that have a key in common; None: one has none. A thousand may go at once.

    One that is put in its own place costs a copy of its group, which C makes; only what comes out of order
    has a group sorted.
    """
    lost: dict[K, set[int]] = {}
    for item in gone:
        if (found := key(item)) is not None:
            lost.setdefault(found, set()).add(item.oid)
    grown: dict[K, dict[int, N]] = {}
    for item in made:
        if (found := key(item)) is not None:
            grown.setdefault(found, {})[item.oid] = item
    after = dict(before)
    for found in pace([*{*lost, *grown}]):
        group, came = dict(after.get(found, ())), grown.get(found, {})
        for oid in lost.get(found, set()) - came.keys():
            group.pop(oid, None)
        fresh = sorted(came.keys() - group.keys())
        last = next(reversed(group), 0)
        group |= {oid: came[oid] for oid in (*fresh, *(came.keys() & group.keys()))}
        if fresh and fresh[0] < last:
            group = dict(sorted(group.items()))
        if group:
            after[found] = group
        else:
            after.pop(found, None)
    return after


def named_relations(
    before: Mapping[tuple[str, str], RelationDef],
    oids: Mapping[int, RelationDef],
    gone: Sequence[RelationDef | TypeDef],
    made: Sequence[RelationDef | TypeDef],
    pace: Pace,
) -> tuple[dict[tuple[str, str], RelationDef], dict[int, RelationDef]]:
    """Return tables and the like, their indexes and composite types, by schema and name, and by oid."""
    lost = [name for item in pace(gone) for name in relation_names(item)]
    came = [relation for item in pace(made) for relation in relations_of(item)]
    kept = {relation.oid for relation in pace(came)}
    after, by_number = dict(before), dict(oids)
    for schema, name, oid in pace(lost):
        found = after.get((schema, name))
        if found is not None and found.oid == oid:
            del after[schema, name]
        if oid not in kept:
            by_number.pop(oid, None)
    for relation in pace(came):
        after[relation.schema, relation.name] = relation
        by_number[relation.oid] = relation
    return after, by_number


def named_types(
    types: Mapping[int, TypeDef],
    before: Mapping[tuple[str, str], int],
    gone: Iterable[TypeDef],
    made: Iterable[TypeDef],
) -> tuple[dict[int, TypeDef], dict[tuple[str, str], int]]:
    """Return types by all oids that come with them, and these by schema and name."""
    kept = {oid for type_ in made for oid in type_.names}
    by_number, after = dict(types), dict(before)
    for type_ in gone:
        for oid, name in type_.names.items():
            if after.get((type_.schema, name)) == oid:
                del after[type_.schema, name]
            if oid not in kept:
                by_number.pop(oid, None)
    for type_ in made:
        for oid, name in type_.names.items():
            by_number[oid] = type_
            after[type_.schema, name] = oid
    return by_number, after


Constructors: TypeAlias = Mapping[str, tuple[tuple[str, int], ...]]
"""Schema and oid of the constructors of range types, oldest first, by what they are called."""


def with_constructors(before: Constructors, gone: Iterable[TypeDef], made: Iterable[TypeDef]) -> Constructors:
    """Return them after types have gone and come."""
    after = dict(before)
    for type_ in gone:
        for name, place in _constructors_of(type_):
            left = tuple(one for one in after.pop(name, ()) if one[1] != place[1])
            if left:
                after[name] = left
    for type_ in made:
        for name, place in _constructors_of(type_):
            after[name] = tuple(sorted((*after.get(name, ()), place), key=lambda one: one[1]))
    return after


def _constructors_of(type_: TypeDef) -> Iterator[tuple[str, tuple[str, int]]]:
    if type_.kind == "r":
        of_range, of_multirange = type_.constructors
        for number in range(RANGE_CONSTRUCTORS):
            called = of_range if number < 2 else of_multirange
            yield called, (type_.schema, type_.first_constructor + number)
