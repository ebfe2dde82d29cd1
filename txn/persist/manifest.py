"""A shard's durable state: which parts it consists of, which of their rows have ended, and up to where.

A manifest is the *exact* state of a shard after all commits with log sequence numbers up to
``flushed_through``; nothing of it is hot. So recovery is simple::

    state of a shard  =  its manifest  +  the log's entries for it with seq > flushed_through

       log    ... 41  42  43 | 44  45  46 ...          manifest: flushed_through = 43
                             '--- replayed on top ---

Ends that the manifest already knows may be met again in the replayed entries: ending the same version at the
same timestamp twice is harmless (C27).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from txn.types import PartRef, ShardId, ShardSpec, Timestamp


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of versions in one part: ``positions`` rising, ``timestamps[i]`` the end of ``positions[i]``.

    Both are ``array('q')``, of equal length, and not to be changed.
    """

    positions: array[int] = field(default_factory=lambda: array("q"))
    timestamps: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPart:
    """A part of the shard with the ends known at the manifest's cut."""

    ref: PartRef
    ends: Ends = field(default_factory=Ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A shard at the cut ``flushed_through`` (a log sequence number; commits up to and with it are in here).

    ``since``: reads below it are refused, because versions have been dropped. ``next_row_id``: above all row
    ids given before the cut. ``generation`` counts TRUNCATEs. ``forgotten``: dropped at the cut; kept until the
    log has been trimmed past it.
    """

    shard: ShardId
    spec: ShardSpec
    generation: int
    flushed_through: int
    next_row_id: int
    since: Timestamp
    parts: tuple[ManifestPart, ...] = ()
    forgotten: bool = False
