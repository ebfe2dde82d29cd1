"""What changed in a shard between two timestamps, found in its versions (C8, C36).

Every version says when it begins and when it ends; so the changes in ``(lo, hi]`` are

    +1 at its begin   for each version with  lo < begin <= hi
    -1 at its end     for each version with  lo < end   <= hi

    row 7   |--- v1 ---|--- v2 ----------      lo < 12 <= hi:   (12, -1, v1)  (12, +1, v2)
           5          12

and nothing needs to have been written down for it: all versions that somebody at or above ``lo`` can see are kept,
because the subscription holds ``lo``. Versions are hot (segments of the columnar log) or rows of parts; one that is
in both, between a flush and its eviction, is taken from the part, as snapshots do. TRUNCATE ends all rows of a
generation at once; rows that begin and end at the same timestamp (a bulk load corrected within its transaction)
never were visible.

``Window`` captures a shard in one turn of the loop and stays valid (``txn.transaction.snapshot``). Counting
costs 8 bytes per change; their rows are only read piece by piece.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.errors import anew
from txn.base.types import Row, RowId, ShardId, ShardSpec, Timestamp
from txn.log.history import ShardHistory
from txn.mvcc.generation import Generation, Padding
from txn.mvcc.hotlog import Segment
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY, Version
from txn.values.columns import int64_array

PIECE_ROWS: Final = 2000
"""Changes handed on at once, and rows looked at between two turns of the loop."""


class Change(NamedTuple):
    """One row that came (``diff`` 1) or went (-1) at ``ts``. ``row`` is as wide as the schema."""

    ts: Timestamp
    shard: ShardId
    row: Row
    diff: int
    row_id: RowId


class Place(NamedTuple):
    """A change whose row has not been read yet: ``at`` is a hot version, or a part and a position in it."""

    ts: int
    diff: int
    row_id: RowId
    at: Version | tuple[PartState, int]


class _Life(NamedTuple):
    """A generation as captured: its versions end with it at ``end``."""

    segments: tuple[tuple[Segment, int], ...]
    parts: tuple[PartState, ...]
    resident: int
    resident_history: bool
    end: int


class Window:
    """One shard's versions, as they are at the moment it is made."""

    def __init__(self, shard: ShardId, history: ShardHistory, spec: ShardSpec, lo: int) -> None:
        """Capture the generations that readers above ``lo`` use. The caller holds ``lo`` from before until it
        is done.
        """
        self.shard = shard
        self.spec = spec
        self._padding = Padding(spec.columns)
        self._lives: list[_Life] = []
        ends: dict[Generation, int] = {}
        for entry, following in zip(history.entries, [*history.entries[1:], None], strict=True):
            if entry.generation is not None:
                ends[entry.generation] = INFINITY if following is None else following.begin
        for generation, end in ends.items():
            if end > lo:
                if generation.damage is not None:
                    raise anew(generation.damage)
                self._lives.append(
                    _Life(
                        generation.log.capture(),
                        generation.parts_since(lo),
                        generation.resident,
                        generation.resident_history,
                        end,
                    )
                )

    async def timestamps(self, lo: int, hi: int) -> Any:
        """Return an Arrow int64 array with the timestamp of every change in ``(lo, hi]``, in no order."""
        found = array("q")
        async for places in self._scan(lo, hi, rows=False):
            found.extend(places)
        return int64_array(found)

    async def places(self, lo: int, hi: int) -> AsyncIterator[list[Place]]:
        """Yield the changes in ``(lo, hi]``, in no order."""
        async for places in self._scan(lo, hi, rows=True):
            yield places

    async def read(self, places: list[Place]) -> list[Change]:
        """Return the changes with their rows, in the order of ``places``."""
        out: list[Any] = [None] * len(places)
        padding, width = self._padding, self._padding.width
        by_part: dict[str, tuple[PartState, list[int], list[int]]] = {}
        for i, place in enumerate(places):
            at = place.at
            if isinstance(at, tuple):
                part, position = at
                _part, indexes, positions = by_part.setdefault(part.ref.name, (part, [], []))
                indexes.append(i)
                positions.append(position)
                continue
            values = at.values
            if values is None:
                raise AssertionError("a version with values has none")
            if len(values) < width:
                values = padding.pad(values)
            out[i] = Change(Timestamp(place.ts), self.shard, values, place.diff, place.row_id)
        for part, indexes, positions in by_part.values():
            rows = part.file.rows(positions, self.spec)
            if isinstance(rows, Awaitable):
                rows = await rows
            for i, row in zip(indexes, rows, strict=True):
                place = places[i]
                out[i] = Change(Timestamp(place.ts), self.shard, row, place.diff, place.row_id)
        return out

    # -- searching ---------------------------------------------------------------------------------

    async def _scan(self, lo: int, hi: int, *, rows: bool) -> AsyncIterator[list[Any]]:
        for life in self._lives:
            looked = 0
            for segment, length in life.segments:
                found = _in_segment(segment, length, life, lo, hi, rows)
                if found:
                    yield found
                looked += length
                if looked >= PIECE_ROWS:
                    looked = 0
                    await asyncio.sleep(0)
            for part in life.parts:
                async for found in _in_part(part, life.end, lo, hi, rows):
                    yield found
                    await asyncio.sleep(0)


def _in_segment(segment: Segment, length: int, life: _Life, lo: int, hi: int, rows: bool) -> list[Any]:
    """Return places, or only timestamps, of the changes that a segment's entries make in ``(lo, hi]``."""
    all_end = life.end <= hi
    if segment.max_begin <= lo and not all_end:
        ends = int64_array(segment.ends[:length])
        low, high = pa.scalar(lo, pa.int64()), pa.scalar(hi, pa.int64())  # plain ints cost ten times as much
        if not pc.any(pc.and_(pc.greater(ends, low), pc.less_equal(ends, high))).as_py():
            return []
    found: list[Any] = []
    resident, gone = life.resident, life.end
    for offset in range(length):
        begin, end = segment.begins[offset], segment.ends[offset]
        if begin <= resident and (life.resident_history or end > resident):
            continue  # it is in a part, too
        end = min(end, gone)
        if begin >= end:
            continue
        if lo < begin <= hi:
            found.append(
                Place(begin, 1, RowId(segment.row_ids[offset]), segment.versions[offset]) if rows else begin
            )
        if lo < end <= hi:
            found.append(
                Place(end, -1, RowId(segment.row_ids[offset]), segment.versions[offset]) if rows else end
            )
    return found


async def _in_part(part: PartState, gone: int, lo: int, hi: int, rows: bool) -> AsyncIterator[list[Any]]:
    """Yield places, or only timestamps, of the changes that a part's rows make in ``(lo, hi]``, piece by piece."""
    begun = await _begun_in_part(part, lo, hi)
    all_end = lo < gone <= hi
    ended = range(part.ref.rows) if all_end else part.ended_between(lo, hi)
    for diff, positions in ((1, begun), (-1, ended)):
        for start in range(0, len(positions), PIECE_ROWS):
            found: list[Any] = []
            for position in positions[start : start + PIECE_ROWS]:
                begin = part.begin(position)
                end = min(part.end_of(position) or INFINITY, gone)
                ts = begin if diff > 0 else end
                if begin < end and lo < ts <= hi:
                    found.append(
                        Place(ts, diff, part.file.row_id(position), (part, position)) if rows else ts
                    )
            if found:
                yield found


async def _begun_in_part(part: PartState, lo: int, hi: int) -> Any:
    """Return the positions (a range, or a list) of the part's rows that begin in ``(lo, hi]``."""
    ref = part.ref
    if ref.max_begin <= lo or ref.min_begin > hi:
        return ()
    if ref.min_begin == ref.max_begin:
        return range(ref.rows)
    begins = (await part.file.read_arrow([])).column("s_begin").combine_chunks()
    low, high = pa.scalar(lo, pa.int64()), pa.scalar(hi, pa.int64())
    wanted = pc.and_(pc.greater(begins, low), pc.less_equal(begins, high))
    return pc.indices_nonzero(wanted).to_pylist()
