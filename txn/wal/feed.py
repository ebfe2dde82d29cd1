"""The latest commits in memory, for subscriptions that keep up (L17).

    settle(batch) ──> recent:  ts 100 | 101 | 104 | 107        floor = 99: every commit above it is here
                                        '── a subscription at 101 takes these, without searching versions
                      wakes subscriptions of the shards that changed

There is only something here while somebody subscribes, and it is bounded: who falls further behind reads history
from the versions themselves (``txn.upkeep.changes``). The write sets are those that were applied, so their rows are
not copies. One process-wide feed takes the place of a physical-to-logical upper map per reader (L17).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, Protocol

from txn.base.records import WriteSet
from txn.base.types import ShardId, Timestamp

MAX_COMMITS: Final = 8192
MAX_OPS: Final = 20_000  # row operations in all; a larger commit is not kept at all
_TRIM: Final = 1024  # commits that may go beyond the bound before the oldest are cut off in one piece


def _ts(writes: WriteSet) -> Timestamp:
    return writes.ts


class Subscriber(Protocol):
    """Who waits for commits (``txn.upkeep.subscribe.Subscription``).

    ``shards``: what it is about; ``position``: everything at or below it has been handed out, what follows is
    held; ``session``: the connection that reads it, 0 for none.
    """

    shards: frozenset[ShardId]
    position: Timestamp
    session: int

    @property
    def serials(self) -> list[int]:
        """Return the serials of its holds."""
        ...

    def ends_by(self, ts: int) -> bool:
        """Tell whether nothing above ``ts`` is wanted."""
        ...

    def lapse(self, versions: int) -> None:
        """End it: it kept more history than ``versions``."""

    def wake(self) -> None:
        """Have it look what is new."""


class Feed:
    """Recent commits and who waits for more. ``floor``: all commits above it that were applied are in ``recent``."""

    def __init__(self) -> None:
        self.subscribers: dict[Subscriber, None] = {}
        self.floor = Timestamp(0)
        self._recent: list[WriteSet] = []
        self._ops = 0

    def join(self, subscription: Subscriber, read_ts: Timestamp) -> None:
        """Keep commits from now on; ``read_ts`` is what is readable in this turn of the loop."""
        if not self.subscribers:
            self._clear(read_ts)
        self.subscribers[subscription] = None

    def leave(self, subscription: Subscriber) -> None:
        """Forget a subscription, and with the last one all commits. Idempotent."""
        self.subscribers.pop(subscription, None)
        if not self.subscribers:
            self._clear(Timestamp(0))

    def publish(self, commits: Sequence[WriteSet]) -> None:
        """Take commits that have just become readable, in order, and wake whom they concern. Cheap."""
        for writes in commits:
            size = sum([len(shard.ops) for shard in writes.shards])
            if size > MAX_OPS or any(shard.ended for shard in writes.shards):
                self._clear(writes.ts)
                continue
            self._recent.append(writes)
            self._ops += size
        if len(self._recent) > MAX_COMMITS + _TRIM or self._ops > MAX_OPS:
            self._trim()
        touched = {w.shard for writes in commits for w in writes.shards}
        touched.update(c.shard for writes in commits for c in writes.schema)
        upper = commits[-1].ts if commits else 0
        for subscription in self.subscribers:
            if not touched.isdisjoint(subscription.shards) or subscription.ends_by(upper):
                subscription.wake()

    def after(self, ts: Timestamp) -> Sequence[WriteSet] | None:
        """Return the commits above ``ts``, None if some of them are no longer here."""
        if ts < self.floor:
            return None
        return self._recent[bisect_right(self._recent, ts, key=_ts) :]

    def _clear(self, floor: Timestamp) -> None:
        self._recent.clear()
        self._ops = 0
        self.floor = floor

    def _trim(self) -> None:
        """Cut the oldest commits off, a quarter below the bounds so that it is not done for every commit."""
        recent = self._recent
        cut = 0
        while len(recent) - cut > MAX_COMMITS or self._ops > MAX_OPS * 3 // 4:
            self._ops -= sum([len(shard.ops) for shard in recent[cut].shards])
            cut += 1
        if cut:
            self.floor = recent[cut - 1].ts
            del recent[:cut]
