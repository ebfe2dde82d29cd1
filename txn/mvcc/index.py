"""Indexes over hot rows: key -> row ids, multi-versioned by indirection (D29, D30, D62).

An index has an entry for every (key, row) such that some hot version of the row has the key. Who looks a key up
resolves each row id to its visible version and re-checks the key. Entries go when the last hot version with the
key goes (vacuum, eviction).

Equality uses a dict. Order is made on first need and kept from then on, so tables that nobody ranges over pay
nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from typing import Final

from sortedcontainers import SortedList

from txn.base.slices import Slice, free
from txn.base.types import KeyRange, ShardIndex
from txn.mvcc import many_keys
from txn.mvcc.keys import NULL_LAST, IndexKey, KeyMaker

ORDERED: Final = 2000
"""Keys that are put in order at once, or between two turns of the loop."""

MANY_KEYS: Final = 64
"""Keys of one row from which on they are entered together."""


class _Making:
    """The order of an index while it is made: it takes the keys that come and go meanwhile."""

    __slots__ = ("left", "noted", "order")

    def __init__(self, keys: Iterable[IndexKey]) -> None:
        """``keys``: those there are now."""
        self.order: SortedList[IndexKey] = SortedList()
        self.left = list(keys)
        self.noted: set[IndexKey] = set()

    def add(self, key: IndexKey) -> None:
        """Note a key that has come."""
        self.noted.add(key)

    remove = add


class HotIndex:
    """One index of one shard over its hot versions."""

    __slots__ = ("_entered", "_order", "definition", "entering", "entries", "leaving", "make")

    def __init__(self, make: KeyMaker, definition: ShardIndex) -> None:
        self.definition = definition
        self.make = make
        self.entries: dict[IndexKey, int | set[int]] = {}
        self._order: SortedList[IndexKey] | _Making | None = None
        self._entered: IndexKey = None
        self.entering = -1
        """The row that is entered ahead of its version, if any."""
        self.leaving: dict[int, int] = {}
        """Rows some of whose entries are those of versions that have gone (``departing``), and how often."""

    def add(self, key: IndexKey, row_id: int) -> None:
        """Enter a row under a key, or under each of a frozenset of them. Idempotent."""
        entries = self.entries
        if key.__class__ is frozenset:
            if key is self._entered and row_id == self.entering:
                return
            if self._order is None and len(key) > MANY_KEYS:
                known = key & entries.keys()
                entries.update(zip(key - known if known else key, repeat(row_id)))
                key = known
            for one in key:
                HotIndex.add(self, one, row_id)
            return
        ids = entries.get(key)
        if ids is None:
            entries[key] = row_id
            if self._order is not None:
                self._order.add(key)
        elif isinstance(ids, int):
            if ids != row_id:
                entries[key] = {ids, row_id}
        else:
            ids.add(row_id)

    def enter_ahead(self, keys: frozenset[IndexKey], row_id: int) -> Iterator[None]:
        """Enter a row under very many keys, a slice between two yields, before it has the version that has
        them; ``add`` of these very keys finds it done.

        One row at a time, until ``settle``.
        """
        self._entered, self.entering = None, row_id
        pause = Slice(many_keys.PARTS, look=1)
        for part in many_keys.in_parts(keys):
            self.add(part, row_id)
            if pause.over():
                yield
        self._entered = keys

    def settle(self) -> None:
        """The row that was entered ahead has its version."""
        self._entered, self.entering = None, -1

    def is_settled(self, row_id: int) -> bool:
        """Tell whether the entries of a row are those of its versions, so that one that has a single version
        has all of them.
        """
        return row_id != self.entering and row_id not in self.leaving

    def discard(self, key: IndexKey, row_id: int) -> None:
        """Remove an entry if it is there, or each of a frozenset of keys."""
        if key.__class__ is frozenset:
            left: Iterable[IndexKey] = key
            if self._order is None:
                entries, shared = self.entries, []
                for one in key:
                    if entries.get(one) == row_id:
                        del entries[one]
                    else:
                        shared.append(one)
                left = shared
            for one in left:
                self.discard(one, row_id)
            return
        ids = self.entries.get(key)
        if ids is None:
            return
        if isinstance(ids, int):
            if ids != row_id:
                return
        else:
            ids.discard(row_id)
            if ids:
                return
        del self.entries[key]
        if self._order is not None:
            self._order.remove(key)

    def take_apart(self) -> Iterator[None]:
        """Free it, a slice between two yields; nobody uses it any more."""
        order, self._order = self._order, None
        if isinstance(order, SortedList):
            pause = Slice(ORDERED)
            while order:
                order.pop()
                if pause.over():
                    yield
        yield from free(self.entries)

    def ids(self, key: IndexKey) -> tuple[int, ...] | set[int]:
        """Return the row ids under a key, in no particular order. The result must not be kept."""
        ids = self.entries.get(key)
        if ids is None:
            return ()
        return (ids,) if isinstance(ids, int) else ids

    def keys_between(self, bounds: Bounds, reverse: bool = False) -> Iterator[IndexKey]:
        """Yield the keys within ``bounds`` in order. The index must not change meanwhile."""
        if bounds.empty or not self.entries:
            return iter(())
        return bounds.within(self._in_order(), reverse)

    def _in_order(self) -> SortedList[IndexKey]:
        order = self._order
        if not isinstance(order, SortedList):
            order = self._order = SortedList(self.entries)
        return order

    @property
    def unordered(self) -> bool:
        """Tell whether its order is yet to be made, and that takes long: ``put_in_order``."""
        return len(self.entries) > ORDERED and not isinstance(self._order, SortedList)

    def put_in_order(self) -> Iterator[None]:
        """Make its order, which is kept, a slice between two yields, while it may be changed. Whoever else
        does goes on with it.
        """
        making = self._order
        if making is None:
            making = self._order = _Making(self.entries)
        if not isinstance(making, _Making):
            return
        order, entries, left, noted = making.order, self.entries, making.left, making.noted
        pause = Slice(ORDERED)
        while self._order is making:
            if left:
                order.add(left.pop())
            elif noted:
                key = noted.pop()
                if (key in entries) != (key in order):
                    (order.add if key in entries else order.remove)(key)
            else:
                self._order = order
            if pause.over():
                yield

    def key_after(self, bounds: Bounds) -> IndexKey | None:
        """Return the first key beyond ``bounds``, None if there is none."""
        return bounds.after(self._in_order()) if self.entries else None

    def key_ceiling(self, key: IndexKey) -> IndexKey | None:
        """Return the first key at or above ``key``, None if there is none."""
        return next(self._in_order().irange(key), None) if self.entries else None


class BuildingIndex(HotIndex):
    """A hot index that is being built (``txn.transaction.index_build``): it notes the keys that commits enter.

    As long as it is not finished, duplicates are not ruled out: lookups look everywhere.
    """

    __slots__ = ("noted",)

    def __init__(self, make: KeyMaker, definition: ShardIndex) -> None:
        super().__init__(make, replace(definition, unique=False))
        self.noted: set[IndexKey] = set()

    def add(self, key: IndexKey, row_id: int) -> None:
        """Enter a row under a key, and note the key."""
        super().add(key, row_id)
        if key.__class__ is not frozenset:  # an inverted index is not unique: nobody asks
            self.noted.add(key)

    def fill(self, key: IndexKey, row_id: int) -> None:
        """Enter a row that was there before."""
        super().add(key, row_id)

    def finished(self, definition: ShardIndex) -> HotIndex:
        """Return the index that takes over the entries."""
        index = HotIndex(self.make, definition)
        index.entries, index._order, index.leaving = self.entries, self._order, self.leaving
        return index


class _Top:
    """Above everything, NULL included: in bounds, and as the key past the end of an index (+INF)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "+INF"

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True

    __le__ = __lt__
    __ge__ = __gt__


TOP = _Top()


class Bounds:
    """A key range as bounds on index keys. ``low``/``high`` None: unbounded on that side."""

    __slots__ = ("empty", "high", "high_inclusive", "low", "low_inclusive")

    def __init__(
        self,
        low: IndexKey = None,
        low_inclusive: bool = True,
        high: IndexKey = None,
        high_inclusive: bool = True,
        *,
        empty: bool = False,
    ) -> None:
        self.low = low
        self.low_inclusive = low_inclusive
        self.high = high
        self.high_inclusive = high_inclusive
        self.empty = empty

    def within(self, order: SortedList[IndexKey], reverse: bool = False) -> Iterator[IndexKey]:
        """Yield the keys of a sorted list that lie within."""
        if self.empty:
            return iter(())
        return order.irange(self.low, self.high, (self.low_inclusive, self.high_inclusive), reverse=reverse)

    def after(self, order: SortedList[IndexKey]) -> IndexKey | None:
        """Return the first key of a sorted list that lies beyond, None if there is none."""
        if self.high is None:
            return None
        return next(order.irange(self.high, None, (not self.high_inclusive, True)), None)

    def contains(self, key: IndexKey) -> bool:
        """Tell whether an index key lies within."""
        if self.empty:
            return False
        if self.low is not None and (key < self.low if self.low_inclusive else key <= self.low):
            return False
        return self.high is None or bool(key <= self.high if self.high_inclusive else key < self.high)


def bounds_of(make: KeyMaker, wanted: KeyRange) -> Bounds:
    """Translate a range into bounds on index keys.

    A bound on a column excludes its NULLs, which sort last; a prefix with NULL matches nothing.
    """
    if None in wanted.prefix or (wanted.has_lower and wanted.lower is None):
        return Bounds(empty=True)
    if wanted.has_upper and wanted.upper is None:
        return Bounds(empty=True)
    at = len(wanted.prefix)
    bounded = wanted.has_lower or wanted.has_upper
    if make.single:
        if at:
            key = make.part(0, wanted.prefix[0])
            return Bounds(key, True, key, True)
        low = make.part(0, wanted.lower) if wanted.has_lower else None
        if wanted.has_upper:
            return Bounds(low, wanted.lower_inclusive, make.part(0, wanted.upper), wanted.upper_inclusive)
        return Bounds(low, wanted.lower_inclusive, NULL_LAST if bounded else None, not bounded)
    prefix = tuple(make.part(i, value) for i, value in enumerate(wanted.prefix))
    if not bounded:
        return Bounds(prefix, True, (*prefix, TOP), True) if at else Bounds()
    if wanted.has_lower:
        value = make.part(at, wanted.lower)
        low = (*prefix, value) if wanted.lower_inclusive else (*prefix, value, TOP)
    else:
        low = prefix if at else None
    if wanted.has_upper:
        value = make.part(at, wanted.upper)
        high = (*prefix, value, TOP) if wanted.upper_inclusive else (*prefix, value)
    else:
        high = (*prefix, NULL_LAST)
    return Bounds(low, True, high, not (wanted.has_upper and not wanted.upper_inclusive) and wanted.has_upper)
