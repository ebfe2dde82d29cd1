"""The scans of one writing transaction: those that were answered for, and those of the statement that runs.

    statement 1   UPDATE … WHERE kind = 'a'     answered ──> kept     a change of it makes the transaction fail
    statement 2   DELETE … WHERE kind = 'b'     runs     ──> fresh    a change of it makes the statement run again

A statement that loses a race before anybody has seen what it read can be undone and run again within its transaction:
its scans are forgotten with its writes, and what the transaction has read before is still as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from txn.base.types import ShardId, TxnId
from txn.transaction.scan_watch import Predicate, ScanWatch

if TYPE_CHECKING:
    from txn.transaction.coordinator import Coordinator


class Scans:
    """What a transaction watches: per table at most one watch that is kept and one that is fresh.

    Invariant: every watch here is registered with the coordinator, and no other of this transaction is.
    """

    __slots__ = ("_core", "_fresh", "_kept", "_txn")

    def __init__(self, core: Coordinator, txn: TxnId) -> None:
        """Nothing is watched yet."""
        self._core = core
        self._txn = txn
        self._kept: dict[ShardId, ScanWatch] = {}
        self._fresh: dict[ShardId, ScanWatch] = {}

    def __bool__(self) -> bool:
        """Tell whether anything is watched."""
        return bool(self._kept or self._fresh)

    def watches(self) -> Iterable[ScanWatch]:
        """Return all of them."""
        return (*self._kept.values(), *self._fresh.values())

    def add(self, shard: ShardId, predicate: Predicate | None) -> None:
        """Watch what the running statement scans, from now on."""
        self._watch(self._fresh, shard).add(predicate)

    def keep(self, shard: ShardId, predicates: Iterable[Predicate | None]) -> None:
        """Watch what was scanned before the transaction began to write."""
        watch = self._watch(self._kept, shard)
        for predicate in predicates:
            watch.add(predicate)

    def _watch(self, where: dict[ShardId, ScanWatch], shard: ShardId) -> ScanWatch:
        watch = where.get(shard)
        if watch is None:
            watch = where[shard] = self._core.watch(self._txn, shard)
        return watch

    def check(self) -> None:
        """Raise WriteConflict if somebody has changed what was scanned."""
        for watch in self._kept.values():
            if watch.conflict is not None:
                raise watch.conflict
        for watch in self._fresh.values():
            if watch.conflict is not None:
                raise watch.conflict

    def answered(self) -> None:
        """The statement's scans have been relied on: from now on they are the transaction's."""
        for shard, fresh in self._fresh.items():
            kept = self._kept.get(shard)
            if kept is None:
                self._kept[shard] = fresh
            else:
                kept.join(fresh)
                self._core.unwatch(fresh)
        self._fresh.clear()

    def forget(self) -> None:
        """The statement is undone: its scans do not count."""
        for watch in self._fresh.values():
            self._core.unwatch(watch)
        self._fresh.clear()

    def end(self) -> None:
        """The transaction has ended."""
        self.forget()
        for watch in self._kept.values():
            self._core.unwatch(watch)
        self._kept.clear()
