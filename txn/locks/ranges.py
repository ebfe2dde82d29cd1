"""Which key ranges of which sorted indexes are locked: the bookkeeping of next-key locking (D52-D57, L24).

A lock on ``(shard, index, key, RANGE)`` covers the keys from just above the boundary before ``key`` up to ``key``
itself; ``TOP`` stands for the end of the index (+INF). Boundaries are all entries of the index, visible to anybody or
not, and the keys of the range locks themselves::

    entries          2     5    (7)   10                  7 was deleted, and vacuum has taken its entry
    range locks            S     S     S                  of a reader of [3, 8]
    covered             (2,5] (5,7] (7,10]                so its boundary stays until the reader ends

An ``IndexRanges`` exists while anybody holds a range lock on its index; else an insert does not look further than
``LockTable.ranges`` being empty (U3). It also lists the index's locked keys in order: a reader has to wait for those
whom nobody can see yet, but who have locked the key they will insert.
"""

from __future__ import annotations

from collections.abc import Iterable

from sortedcontainers import SortedList

from txn.locks.granule import IndexKey
from txn.mvcc.index import TOP


class IndexRanges:
    """The range locks of one index: ``bounds`` (their keys, without TOP) and ``keys`` (its locked keys), in order."""

    __slots__ = ("_owners", "bounds", "keys")

    def __init__(self, keys: Iterable[IndexKey]) -> None:
        """``keys``: those of the index that are locked now."""
        self.keys: SortedList[IndexKey] = SortedList(keys)
        self.bounds: SortedList[IndexKey] = SortedList()
        self._owners: dict[IndexKey, int] = {}

    def __bool__(self) -> bool:
        """Tell whether any range lock is registered."""
        return bool(self._owners)

    def register(self, key: IndexKey) -> None:
        """Note one more owner that holds the range lock of ``key``, or waits for it."""
        owners = self._owners.get(key, 0)
        self._owners[key] = owners + 1
        if not owners and key is not TOP:
            self.bounds.add(key)

    def unregister(self, key: IndexKey) -> None:
        """Note one owner less."""
        owners = self._owners[key] - 1
        if owners:
            self._owners[key] = owners
            return
        del self._owners[key]
        if key is not TOP:
            self.bounds.remove(key)
