"""Hot versions leaving memory: those that a flush has written to parts, and those of a generation that nobody can read any more.

While versions are both hot and in a part, up to ``Generation.resident``, readers leave the hot ones out; here they go, in slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import getrefcount
from typing import Any, Final

from txn.mvcc.generation import Generation
from txn.mvcc.hotlog import Segment
from txn.mvcc.keys import but
from txn.mvcc.vacuum import drop_versions, unlink, vacuum_row
from txn.mvcc.version import Version
from txn.types import RowId

DISMANTLE_ROWS: Final = 5000  # about a millisecond
FREED_ROWS: Final = 1000  # likewise, with their values


def evict_segment(generation: Generation, segment: Segment, watermark: int) -> None:
    """Drop a segment's versions that are in a part, from the log and, where nothing newer needs them, hot.

    A version whose chain has older ones that somebody may still read stays (marked IN_PART) until vacuum.
    """
    resident = generation.resident
    keep: list[int] = []
    for offset in list(segment.live()):
        version = segment.versions[offset]
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
            for index in generation.indexes.values():
                index.discard(index.make.of_row(generation.padded(version.values or ())), row_id)
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
    done = 0
    for segment, length in segments:
        for offset in range(length):
            version = segment.versions[offset]
            if version.segment != segment.number or version.offset != offset:
                continue
            done += 1
            if done % slice_rows == 0:
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
                done += 1
                if done % slice_rows == 0:
                    yield
        generation.log.segments.pop(segment.number, None)


def _forget(generation: Generation, row_id: RowId, version: Version) -> None:
    """Drop one version that has left its chain, with its index entries unless the chain still has the key."""
    generation.log.drop(version)
    if version.values is None:
        return
    values = generation.padded(version.values)
    kept = [generation.padded(v.values) for v in generation.chain(row_id) if v.values is not None]
    for index in generation.indexes.values():
        of_row = index.make.of_row
        key = of_row(values)
        others = [of_row(other) for other in kept]
        if key not in others:
            index.discard(but(key, others), row_id)


def dismantle(generation: Generation) -> Iterator[None]:
    """Take all chains apart, once nobody can read this generation any more; a slice of rows between two yields."""
    for count, head in enumerate(generation.rows.values(), 1):
        version: Version | None = head
        while version is not None:
            version = unlink(version)
        if count % DISMANTLE_ROWS == 0:
            yield
    if getrefcount(generation) > 2:  # ours, and the call's: others have it still, and free it
        return
    dicts: list[dict[Any, Any]] = [generation.rows, *(i.entries for i in generation.indexes.values())]
    for held in dicts:
        while len(held) > DISMANTLE_ROWS:
            for _ in range(DISMANTLE_ROWS):
                held.popitem()
            yield
    for segment in generation.log.segments.values():
        while len(segment.versions) > FREED_ROWS:
            del segment.versions[-FREED_ROWS:]
            yield
