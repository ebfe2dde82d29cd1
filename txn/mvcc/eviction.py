"""Hot versions leaving memory: those that a flush has written to parts, and those of a generation that nobody
can read any more.

While versions are both hot and in a part, up to ``Generation.resident``, readers leave the hot ones out; here
they go, in slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import getrefcount
from typing import Final

from txn.base.slices import Slice, free
from txn.base.types import RowId
from txn.mvcc.departing import leave, leave_inverted
from txn.mvcc.generation import Generation
from txn.mvcc.hotlog import Segment
from txn.mvcc.vacuum import drop_versions, unlink, vacuum_row
from txn.mvcc.version import Version

EVICTED_ROWS: Final = 500
DISMANTLE_ROWS: Final = 5000  # about a millisecond, where chains are short


def evict_segment(generation: Generation, segment: Segment, watermark: int) -> Iterator[None]:
    """Drop a segment's versions that are in a part, from the log and, where nothing newer needs them, hot; in slices.

    A version whose chain has older ones that somebody may still read stays (marked IN_PART) until vacuum.
    """
    resident = generation.resident
    keep: list[int] = []
    pause = Slice(EVICTED_ROWS, look=1)  # a row may have very many keys
    for offset in list(segment.live()):
        if pause.over():
            yield
        version = segment.versions[offset]
        if version.segment != segment.number or version.offset != offset:
            continue  # it has gone meanwhile
        if version.begin > resident or segment.ends[offset] <= resident:
            keep.append(offset)
            continue
        row_id = RowId(segment.row_ids[offset])
        generation.log.leave(segment, offset)
        if version.older is not None and version.begin <= watermark:
            vacuum_row(generation, row_id, watermark)
        head = generation.rows.get(row_id)
        if head is None or version.older is not None:
            continue
        if head is version:
            del generation.rows[row_id]
            leave(generation, row_id, generation.padded(version.values or ()))
            continue
        newer = head
        while newer.older is not None and newer.older is not version:
            newer = newer.older
        if newer.older is version:
            newer.older = None
            drop_versions(generation, row_id, head, version)
    generation.log.rewrite(segment, [o for o in keep if segment.versions[o].segment >= 0])


def evict_all(
    generation: Generation, segments: Sequence[tuple[Segment, int]], slice_rows: int
) -> Iterator[None]:
    """Drop all versions that began by ``resident`` from memory, in slices of about ``slice_rows``.

    All of them are in parts: current ones in the flushed part, superseded ones in a history part unless nobody
    can read them. Chains are cut once, where the cut of the flush went through them.
    """
    resident = generation.resident
    pause = Slice(slice_rows, look=1)
    for segment, length in segments:
        for offset in range(length):
            version = segment.versions[offset]
            if version.segment != segment.number or version.offset != offset:
                continue
            if pause.over():
                yield
            row_id = RowId(segment.row_ids[offset])
            newer: Version | None = None
            found = generation.rows.get(row_id)
            while found is not None and found.begin > resident:
                newer, found = found, found.older
            if found is None:
                generation.log.drop(version)
                continue
            if newer is not None:
                newer.older = None
            else:
                del generation.rows[row_id]
            while found is not None:
                _forget(generation, row_id, found)
                found = unlink(found)
                if pause.over():
                    yield
        generation.log.segments.pop(segment.number, None)


def let_go(segments: list[tuple[Segment, int]]) -> Iterator[None]:
    """Free segments that have been evicted and that nobody else reads, in slices."""
    while segments:
        segment, _length = segments.pop()
        if getrefcount(segment) == 2:  # ours, and the call's
            yield from free(segment.versions)
            yield


def _forget(generation: Generation, row_id: RowId, version: Version) -> None:
    """Drop one version that has left its chain, with its index entries unless the chain still has the key."""
    generation.log.drop(version)
    if version.values is None:
        return
    values = generation.padded(version.values)
    kept = [generation.padded(v.values) for v in generation.chain(row_id) if v.values is not None]
    for index in generation.indexes.values():
        if index.make.long is None:
            of_row = index.make.of_row
            key = of_row(values)
            if key not in [of_row(other) for other in kept]:
                index.discard(key, row_id)
    leave_inverted(generation, row_id, values, kept)


def dismantle(generation: Generation) -> Iterator[None]:
    """Take all chains apart, once nobody can read this generation any more; a slice of rows between two yields."""
    pause = Slice(DISMANTLE_ROWS)
    for head in generation.rows.values():
        version: Version | None = head
        while version is not None:
            version = unlink(version)
        if pause.over():
            yield
    if getrefcount(generation) > 2:  # ours, and the call's: others have it still, and free it
        return
    yield from free(generation.rows)
    for index in generation.indexes.values():
        yield from index.take_apart()
    for segment in generation.log.segments.values():
        yield from free(segment.versions)
        yield
