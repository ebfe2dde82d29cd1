"""The columnar log of hot versions: what snapshots are made of, so that none walks version chains.

Every applied version (tombstones excepted) is appended once, with its begin; when it ends, its end is noted
beside it. A reader at ``ts`` sees the entries with ``begin <= ts < end``; Arrow evaluates that over whole segments.

    segment (at most 1024 entries)     row_ids  7   9   7   4
                                       begins  10  10  12  15
                                       ends    12  oo  oo  oo     reader at 11 sees entries 0 and 1

A full segment's values are converted to Arrow once and kept. Segments are only appended to; whatever removes
entries (eviction after a flush, vacuum) replaces the segment by a new one, so a reader that has captured the list
of segments is not disturbed: the entries it sees stay where it looks.

A version's place is its segment's number and the offset there; the number is ``GONE`` when it has none any more.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

from txn.base.types import ShardSpec
from txn.mvcc.version import INFINITY, Version

SEGMENT_ROWS: Final = 1024
_OFFSETS: Final = tuple(range(SEGMENT_ROWS))  # the integer objects that versions share

GONE: Final = -1
IN_PART: Final = -2
"""``Version.segment`` of a version that is a row of a part, too, and is kept hot only for its chain."""


class Segment:
    """A run of entries. ``dead`` counts entries whose versions vacuum has dropped."""

    __slots__ = (
        "arrow",
        "arrow_spec",
        "begins",
        "dead",
        "ends",
        "max_begin",
        "number",
        "row_ids",
        "versions",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.versions: list[Version] = []
        self.row_ids: array[int] = array("q")
        self.begins: array[int] = array("q")
        self.ends: array[int] = array("q")
        self.dead = 0
        self.max_begin = 0
        # The Arrow table of the first entries under one schema; made by txn.transaction.snapshot.
        self.arrow: Any = None
        self.arrow_spec: ShardSpec | None = None

    def __len__(self) -> int:
        return len(self.versions)

    def live(self) -> Iterator[int]:
        """Yield the offsets of entries that are still in place."""
        number = self.number
        for offset, version in enumerate(self.versions):
            if version.segment == number and version.offset == offset:
                yield offset


class HotLog:
    """All entries of one generation of a shard.

    ``entries``: how many there are. ``bytes``: about what their values take in memory. ``current``: how many
    of them have not ended, which is what a flush would write. ``frozen``: entries stay in their segments,
    because a flush works through them (``tidy`` catches up later).
    """

    __slots__ = ("_numbers", "bytes", "current", "entries", "frozen", "segments", "tail")

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self._numbers = 0
        self.entries = 0
        self.bytes = 0.0
        self.current = 0
        self.frozen = False
        self.tail = self._open()

    def _open(self) -> Segment:
        segment = Segment(self._numbers)
        self._numbers += 1
        self.segments[segment.number] = segment
        return segment

    def append(self, version: Version, row_id: int, end: int = INFINITY) -> None:
        """Enter a version and set its place."""
        tail = self.tail
        offset = len(tail.versions)
        if offset == SEGMENT_ROWS:
            tail = self.tail = self._open()
            offset = 0
        tail.versions.append(version)
        tail.row_ids.append(row_id)
        begin = version.begin
        tail.begins.append(begin)
        tail.ends.append(end)
        if begin > tail.max_begin:
            tail.max_begin = begin
        version.segment = tail.number
        version.offset = _OFFSETS[offset]
        self.entries += 1
        if end == INFINITY:
            self.current += 1

    def end(self, version: Version, ts: int) -> None:
        """Note that a version has been superseded at ``ts``. Nothing happens if it has no entry."""
        number = version.segment
        if number >= 0:
            self.segments[number].ends[version.offset] = ts
            self.current -= 1

    @property
    def superseded(self) -> int:
        """How many entries have ended."""
        return self.entries - self.current

    def _count_out(self) -> None:
        """One entry less; what its values took is taken to be the average."""
        self.bytes -= self.bytes / self.entries
        self.entries -= 1

    def drop(self, version: Version) -> None:
        """Forget a version that nobody can read any more, or not here; sparse segments are emptied into the tail."""
        number = version.segment
        if number < 0:
            return
        self._count_out()
        segment = self.segments[number]
        if segment.ends[version.offset] == INFINITY:
            self.current -= 1
        version.segment = GONE
        segment.dead += 1
        if segment is not self.tail and segment.dead * 2 >= len(segment) and not self.frozen:
            self.rewrite(segment, list(segment.live()))

    def rewrite(self, segment: Segment, keep: list[int]) -> None:
        """Take a segment out and append the entries at ``keep`` anew."""
        del self.segments[segment.number]
        for offset in keep:
            self.entries -= 1
            if segment.ends[offset] == INFINITY:
                self.current -= 1
            self.append(segment.versions[offset], segment.row_ids[offset], segment.ends[offset])

    def leave(self, segment: Segment, offset: int) -> None:
        """Note that an entry's version is in a part from now on."""
        segment.versions[offset].segment = IN_PART
        self._count_out()
        if segment.ends[offset] == INFINITY:
            self.current -= 1

    def sparse(self) -> list[Segment]:
        """Return the segments that deserve ``rewrite``: those that got sparse while the log was frozen."""
        return [s for s in self.segments.values() if s is not self.tail and s.dead * 2 >= len(s)]

    def seal(self) -> None:
        """Let later entries go to a new segment."""
        if len(self.tail):
            self.tail = self._open()

    def capture(self) -> tuple[tuple[Segment, int], ...]:
        """Return the segments and how many entries of each exist now; stays valid whatever happens later."""
        return tuple((s, len(s.versions)) for s in self.segments.values() if s.versions)

    def invalidate_arrow(self) -> None:
        """Forget converted segments (the schema has changed)."""
        for segment in self.segments.values():
            segment.arrow = None
            segment.arrow_spec = None
