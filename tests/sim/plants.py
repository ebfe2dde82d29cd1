"""More bugs to plant: in subscriptions, timestamps, row locks, staged commits, index builds (see ``mutations``)."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import msgspec

import txn.transaction.scan_watch
import txn.upkeep.subscribe
from txn.base.records import WriteSet
from txn.base.types import Timestamp
from txn.locks.mode import IS
from txn.locks.table import LockTable
from txn.log.group_commit import Committer
from txn.log.oracle import DurableOracle, TimestampOracle
from txn.mvcc.generation import Generation
from txn.mvcc.index import BuildingIndex, HotIndex
from txn.mvcc.version import INFINITY
from txn.upkeep.changes import Window
from txn.upkeep.subscribe import Changes, Subscription
from txn.wal.feed import Feed


def delivered_again() -> AbstractContextManager[Any]:
    """What comes after a timestamp begins with the commit at it."""

    def careless(self: Feed, ts: Timestamp) -> Sequence[WriteSet] | None:
        if ts < self.floor:
            return None
        return self._recent[bisect_left(self._recent, ts, key=lambda writes: writes.ts) :]

    return mock.patch.object(Feed, "after", careless)


def resumed_below() -> AbstractContextManager[Any]:
    """A subscription without a snapshot begins just below the timestamp that it names."""
    init = Subscription.__init__

    def early(
        self: Subscription, core: Any, shards: Any, as_of: Timestamp | None, *args: Any, **more: Any
    ) -> None:
        init(self, core, shards, as_of, *args, **more)
        if as_of is not None and not more["snapshot"]:
            self.position = Timestamp(as_of - 1)

    return mock.patch.object(Subscription, "__init__", early)


def split_commit() -> AbstractContextManager[Any]:
    """Of each commit only the first table's changes are delivered with it."""
    from_commit = Subscription._from_commit

    def part(self: Subscription, writes: WriteSet) -> AsyncIterator[Changes]:
        mine = tuple(w for w in writes.shards if w.shard in self.shards)
        return from_commit(self, msgspec.structs.replace(writes, shards=mine[:1]))

    return mock.patch.object(Subscription, "_from_commit", part)


def cut_window() -> AbstractContextManager[Any]:
    """A window over history takes a commit's first change for all of it."""
    in_order = Subscription._in_order

    async def short(self: Subscription, windows: list[Window], lo: int, hi: int) -> AsyncIterator[Changes]:
        before = lo
        async for changes in in_order(self, windows, lo, hi):
            if changes.ts > before:
                before = changes.ts
                yield changes._replace(rows=changes.rows[:1])

    return mock.patch.object(Subscription, "_in_order", short)


def progress_too_early() -> AbstractContextManager[Any]:
    """Progress passes timestamps that have been handed out, but whose commits are under way."""
    return mock.patch.object(
        Subscription, "_readable", lambda self: Timestamp(max(self.position, self._core.log.oracle.last_ts))
    )


@contextmanager
def position_not_held() -> Iterator[None]:
    """A subscription holds nothing, neither where it stands nor what it is reading."""
    init = Subscription.__init__

    def unheld(self: Subscription, *args: Any, **more: Any) -> None:
        init(self, *args, **more)
        self._holds.release(self._hold)

    def careless(self: Subscription, ts: Timestamp) -> None:
        self.position = max(self.position, ts)

    with (
        mock.patch.object(Subscription, "__init__", unheld),
        mock.patch.object(Subscription, "_move", careless),
        mock.patch.object(Subscription, "_guard_now", return_value=None),
    ):
        yield


def no_history_parts() -> AbstractContextManager[Any]:
    """Superseded versions that have left memory for parts of their own are not found there."""
    return mock.patch.object(Generation, "parts_at", lambda self, ts: self.parts)


def reached_at_once() -> AbstractContextManager[Any]:
    """A timestamp is readable as soon as somebody wants to read at it."""

    def hasty(
        self: Committer, ts: Timestamp, oracle: TimestampOracle | None = None
    ) -> asyncio.Future[Timestamp]:
        (oracle or self._oracle).apply_write(ts)
        future: asyncio.Future[Timestamp] = asyncio.get_running_loop().create_future()
        future.set_result(ts)
        return future

    return mock.patch.object(Committer, "reach", hasty)


def claimed_in_the_past() -> AbstractContextManager[Any]:
    """``commit_at`` gets any timestamp that it wants."""
    return mock.patch.object(DurableOracle, "claim", lambda self, ts: ts < self._bound)


def staged_is_current() -> AbstractContextManager[Any]:
    """What a large commit replaces is looked for after it has been replaced."""
    images_of = txn.transaction.scan_watch.images_of
    return mock.patch.object(
        txn.transaction.scan_watch,
        "images_of",
        lambda generation, op, kept, _before: images_of(generation, op, kept, INFINITY),
    )


def no_key_share() -> AbstractContextManager[Any]:
    """FOR KEY SHARE locks no row."""
    acquire = LockTable.acquire

    def careless(self: LockTable, owner: Any, granule: Any, mode: int) -> Any:
        is_row = isinstance(granule, tuple) and len(granule) == 2
        return None if is_row and mode == IS else acquire(self, owner, granule, mode)

    return mock.patch.object(LockTable, "acquire", careless)


def skips_nothing() -> AbstractContextManager[Any]:
    """SKIP LOCKED and NOWAIT take every row, locked or not."""
    return mock.patch.object(LockTable, "try_acquire", return_value=True)


def other_oracle() -> AbstractContextManager[Any]:
    """A commit of another timeline takes its timestamp from the default oracle."""
    submit = Committer.submit

    def careless(self: Committer, *args: Any, **more: Any) -> Any:
        return submit(self, *args, **{**more, "oracle": self._oracle if more.get("oracle") else None})

    return mock.patch.object(Committer, "submit", careless)


def not_kept_up() -> AbstractContextManager[Any]:
    """An index that is being built does not hear of commits."""
    return mock.patch.object(BuildingIndex, "add", return_value=None)


def not_noted() -> AbstractContextManager[Any]:
    """A unique index that is being built enters what commits enter, but does not compare it."""
    return mock.patch.object(BuildingIndex, "add", lambda self, key, row_id: HotIndex.add(self, key, row_id))
