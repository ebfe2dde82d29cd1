"""Timelines: units of consistency, each with one oracle (A9-A12).

Every shard belongs to exactly one timeline and a transaction reads from exactly one (U13). The embedded
server has the one, ``epoch_ms``; sources with clocks of their own will add others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from txn.types import ShardId

DEFAULT_TIMELINE = "epoch_ms"


@dataclass(slots=True)
class Timelines:
    """Which shard belongs to which timeline; what is not named belongs to ``epoch_ms``."""

    _special: dict[ShardId, str] = field(default_factory=dict)

    def assign(self, shard: ShardId, timeline: str) -> None:
        """Put a shard into a timeline, before its first read or write. ValueError if it is in another."""
        current = self._special.get(shard, timeline)
        if current != timeline:
            raise ValueError(f"shard {shard} belongs to timeline {current}")
        if timeline != DEFAULT_TIMELINE:
            self._special[shard] = timeline

    def of(self, shard: ShardId) -> str:
        """Return a shard's timeline."""
        return self._special.get(shard, DEFAULT_TIMELINE)

    def common(self, shards: tuple[ShardId, ...]) -> str | None:
        """Return the one timeline of all ``shards``, ``epoch_ms`` for none, None if they differ."""
        found = {self.of(s) for s in shards}
        if len(found) > 1:
            return None
        return found.pop() if found else DEFAULT_TIMELINE
