"""Timelines: units of consistency, each with an oracle, read holds and history of its own (A9-A12, U13).

    epoch_ms   orders, items     read_ts 900, since 300, holds ...    what is named nowhere else
    sensors    readings          read_ts 870, since 860, holds ...    CREATE TIMELINE sensors
    common     the catalog       committed at moments of all timelines, kept for whoever holds any of them

Every shard belongs to one timeline; a transaction reads at one timestamp of one timeline. A commit within a
timeline takes its timestamp from that timeline's oracle alone. A commit that writes to a common shard, or
changes a schema, or writes outside its transaction's timeline happens *everywhere*: at one timestamp above
all that any oracle has handed out, which becomes readable in all timelines at once (``Committer``). So the
catalog as of a number is the same in every timeline, and a table's schema changes at the same number in the
catalog and in the table's own history (A10: the catalog is what timelines coordinate over, and nothing else).

All timelines follow the one wall clock (A11), each through its own oracle; nothing else relates their timestamps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from txn.base.time import MAX_TIMESTAMP
from txn.base.types import ShardId, Timestamp
from txn.log.holds import Hold, HoldRegistry, Serials

if TYPE_CHECKING:
    from txn.log.oracle import DurableOracle
    from txn.mvcc.generation import Garbage
    from txn.wal.feed import Feed

DEFAULT_TIMELINE: Final = "epoch_ms"


class Timeline:
    """One timeline. ``garbage``: superseded versions of its shards, in the order in which they were (L34).

    ``retired``: it was dropped; what is left of it goes as soon as nobody holds it.
    """

    __slots__ = ("feed", "garbage", "holds", "name", "oracle", "read_ts", "retired")

    def __init__(
        self, name: str, oracle: DurableOracle, retention_ms: int, serials: Serials, feed: Feed
    ) -> None:
        """``serials`` are shared by all timelines of a store. Nothing below the oracle's read_ts is readable."""
        self.name = name
        self.oracle = oracle
        self.read_ts = oracle.read_ts
        self.holds = HoldRegistry(oracle.read_ts, oracle.read_ts(), retention_ms, serials)
        self.garbage: Garbage = deque()
        self.feed = feed
        self.retired = False

    @property
    def since(self) -> Timestamp:
        """The lowest readable timestamp."""
        return self.holds.since

    def low_watermark(self, beyond_retention: int = 0) -> Timestamp:
        """See ``HoldRegistry.low_watermark``; of a retired timeline only holds keep anything."""
        if self.retired:
            return min((hold.ts for hold in self.holds.all()), default=MAX_TIMESTAMP)
        return self.holds.low_watermark(beyond_retention)

    def restarted(self) -> Timestamp:
        """Return up to where nothing that recovery found can be read."""
        return MAX_TIMESTAMP if self.retired else self.since

    def kept_from(self, cut: Timestamp) -> Timestamp:
        """See ``HoldRegistry.kept_from``."""
        return self.holds.kept_from(cut)


class Common:
    """Where shards are that belong to every timeline (the catalog): whatever any timeline may read is kept."""

    __slots__ = ("_timelines", "garbage", "name", "retired")

    def __init__(self, timelines: Timelines) -> None:
        """Of all ``timelines``, those to come included."""
        self._timelines = timelines
        self.garbage: Garbage = deque()
        self.name = "*"
        self.retired = False

    def read_ts(self) -> Timestamp:
        """Return the timestamp up to which every timeline is readable: no common commit is above it."""
        return min(timeline.read_ts() for timeline in self._timelines)

    @property
    def since(self) -> Timestamp:
        """The lowest timestamp that is readable in some timeline."""
        return min(timeline.since for timeline in self._timelines)

    @property
    def holds(self) -> HoldRegistry:
        """Where holds on common shards are taken: in the timeline that is readable furthest back."""
        return min(self._timelines, key=lambda timeline: timeline.since).holds

    @property
    def feed(self) -> Feed:
        """The default timeline's: every common commit is in it."""
        return self._timelines.default.feed

    @property
    def oracle(self) -> DurableOracle:
        """The default timeline's."""
        return self._timelines.default.oracle

    def low_watermark(self, beyond_retention: int = 0) -> Timestamp:
        """Return the lowest timestamp that anybody may still read in any timeline."""
        return min(timeline.low_watermark(beyond_retention) for timeline in self._timelines)

    def restarted(self) -> Timestamp:
        """Return up to where nothing that recovery found can be read."""
        return self.since

    def kept_from(self, cut: Timestamp) -> Timestamp:
        """Return from where on a manifest made at ``cut`` has to know history, for durable holds in any timeline."""
        return min(timeline.kept_from(cut) for timeline in self._timelines)


Domain = Timeline | Common
"""What a shard belongs to."""


class Timelines:
    """The timelines of a store by name, and where a shard belongs. Iterates over those in use."""

    def __init__(self, default: Timeline, common_shards: Iterable[ShardId]) -> None:
        """``common_shards`` belong to every timeline."""
        self.default = default
        self.by_name: dict[str, Timeline] = {default.name: default}
        self.left: list[Timeline] = []
        """Retired ones with shards in somebody's history; their names may be used anew."""
        self.common = Common(self)
        self._common_shards = frozenset(common_shards)

    def __iter__(self) -> Iterator[Timeline]:
        """The default timeline first."""
        return iter(self.by_name.values())

    def __len__(self) -> int:
        """Number of timelines in use."""
        return len(self.by_name)

    def domains(self) -> list[Domain]:
        """Return everything that has garbage."""
        return [*self.by_name.values(), self.common, *self.left]

    def domain(self, shard: ShardId, timeline: str) -> Domain:
        """Return where a shard of a timeline belongs.

        One that is not known any more was dropped, and all its shards with it: the log may still tell of them.
        """
        if shard in self._common_shards:
            return self.common
        found = self.by_name.get(timeline)
        if found is None:
            found = next((left for left in self.left if left.name == timeline), None)
        if found is None:
            default = self.default
            found = Timeline(timeline, default.oracle, 0, default.holds.serials, default.feed)
            found.retired = True
            self.left.append(found)
        return found

    def hold_others(
        self, own: Timeline, at: Timestamp | None, points: Mapping[str, Timestamp] | None
    ) -> dict[Timeline, Hold]:
        """Hold in every timeline but ``own`` the state of this moment, or of ``at``, as far as it is readable.

        ``points``: what to read at instead, by timeline; those that are not among them are not held.
        """
        held: dict[Timeline, Hold] = {}
        for timeline in self:
            if timeline is not own and (points is None or timeline.name in points):
                ts = timeline.read_ts()
                if points is not None:
                    ts = points[timeline.name]
                elif at is not None and at < ts:
                    ts = at
                if ts >= timeline.since:
                    held[timeline] = timeline.holds.acquire(ts)
        return held

    def oldest_serial(self) -> int:
        """Return the serial of the oldest hold in any timeline, or one above the newest ever taken."""
        every = (*self.by_name.values(), *self.left)
        return min(timeline.holds.oldest_serial() for timeline in every)
