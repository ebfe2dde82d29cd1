"""What is known in memory about the log: its size, and per shard where its unflushed entries begin.

The log may be trimmed up to the lowest entry that some shard's manifest does not cover (C40). Entries are
counted in segments of 64, so a table with millions of commits between two flushes costs a few bytes per
hundred commits, and the answer may be up to 63 entries early, which is harmless.

    seq        1 .......... 64 | 65 ........ 128 | 129 ...
    shard 7    x     x         |                 |  x        segments [0, 2]
    shard 9                    |     x           |           segments [1]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from txn.base.types import ShardId

_SEGMENT_BITS = 6


class LogMap:
    """Sizes and owners of the entries ``first .. next - 1``."""

    def __init__(self, first: int) -> None:
        """``first``: the sequence number of the oldest entry (or the next one if there is none)."""
        self.first = first
        self.next = first
        self.bytes = 0
        self._gone = 0  # bytes of trimmed entries
        self._segment_bytes: dict[int, int] = {}
        self._dirty: dict[ShardId, list[int]] = {}
        self._last_write: dict[ShardId, int] = {}  # exact; same keys as _dirty
        self._flushed: dict[ShardId, int] = {}

    def note(self, seq: int, size: int, shards: Iterable[ShardId]) -> None:
        """Record that entry ``seq`` (the next one) has ``size`` bytes and concerns ``shards``."""
        if seq != self.next:
            raise AssertionError(f"entry {seq} noted, {self.next} expected")
        self.next = seq + 1
        self.bytes += size
        segment = seq >> _SEGMENT_BITS
        self._segment_bytes[segment] = self._segment_bytes.get(segment, 0) + size
        for shard in shards:
            self._last_write[shard] = seq
            segments = self._dirty.get(shard)
            if segments is None:
                self._dirty[shard] = [segment]
            elif segments[-1] != segment:
                segments.append(segment)

    @property
    def noted(self) -> int:
        """Bytes of all entries noted so far, trimmed ones included."""
        return self.bytes + self._gone

    def flushed(self, shard: ShardId, through: int) -> None:
        """Record that the shard's manifest covers everything up to and with ``through``. Idempotent."""
        self._flushed[shard] = max(through, self._flushed.get(shard, 0))
        segments = self._dirty.get(shard)
        if segments is None:
            return
        if self._last_write[shard] <= through:
            del self._dirty[shard], self._last_write[shard]
            return
        # All entries of a segment that ends at or below ``through`` are covered; the last segment does not.
        covered = 0
        while ((segments[covered] + 1) << _SEGMENT_BITS) - 1 <= through:
            covered += 1
        del segments[:covered]

    def holds(self, shard: ShardId) -> int | None:
        """Return the lowest entry that the shard may still need, None if it needs none."""
        segments = self._dirty.get(shard)
        if segments is None:
            return None
        return max(segments[0] << _SEGMENT_BITS, self._flushed.get(shard, 0) + 1, self.first)

    def trim_point(self) -> int:
        """Return the sequence number below which no shard needs the log."""
        flushed = self._flushed.get
        held = [
            max(segments[0] << _SEGMENT_BITS, flushed(shard, 0) + 1)
            for shard, segments in self._dirty.items()
        ]
        return max(self.first, min(held)) if held else self.next

    def lagging(self) -> Iterator[tuple[int, ShardId] | None]:
        """Yield the shards that need log entries, in no order, each with the oldest it needs; None for one
        that has been flushed meanwhile.
        """
        for shard in list(self._dirty):
            at = self.holds(shard)
            yield None if at is None else (at, shard)

    def laggards(self) -> tuple[ShardId, ...]:
        """Return the shards that need log entries, the one that needs the oldest first."""
        return tuple(shard for _, shard in sorted(one for one in self.lagging() if one is not None))

    def trimmed(self, before: int) -> None:
        """Record that the log now begins at ``before``. Idempotent."""
        self.first = max(self.first, before)
        gone = (before + (1 << _SEGMENT_BITS) - 1 if before == self.next else before) >> _SEGMENT_BITS
        for segment in [s for s in self._segment_bytes if s < gone]:
            gone_bytes = self._segment_bytes.pop(segment)
            self.bytes -= gone_bytes
            self._gone += gone_bytes

    def forget(self, shard: ShardId) -> None:
        """Drop what is known about a shard whose tombstone has gone."""
        self._dirty.pop(shard, None)
        self._last_write.pop(shard, None)
        self._flushed.pop(shard, None)
