"""Dropping versions that nobody can read any more (L34, D62, D71): out of their chains, the hot indexes and
the columnar log.

    chain      5 ──> 3 ──> 1        low watermark 4: a reader at 4 sees 3, nobody sees 1

Each superseded version has one entry in the garbage queue, in the order of time, so that the work is done in
the order in which it falls due. An index entry goes with the last version of the chain that has its key.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final

from txn.base.slices import SLICE_S
from txn.base.types import Row, RowId
from txn.mvcc.departing import leave, leave_inverted
from txn.mvcc.generation import Garbage, Generation
from txn.mvcc.hotlog import IN_PART
from txn.mvcc.keys import KeyMaker
from txn.mvcc.many_keys import is_long
from txn.mvcc.version import Version, at

VACUUM_ROWS: Final = 500
"""Entries of the queue that are worked off in one turn of the loop: about a millisecond."""
VACUUM_ENTRIES: Final = 1000
"""Likewise, of rows and their entries in indexes."""


def drop_some(garbage: Garbage, watermark: int) -> None:
    """Work off the queue's first entries up to ``watermark``, as many as one turn of the loop has time for."""
    left, ends = VACUUM_ENTRIES, perf_counter() + SLICE_S
    for _ in range(VACUUM_ROWS):
        if left <= 0 or not garbage or garbage[0][0] > watermark:
            break
        _ts, generation, row_id, newer = garbage.popleft()
        left -= 1 + len(generation.indexes)
        vacuum(generation, row_id, newer, watermark)
        if perf_counter() > ends:
            break


def unlink(version: Version) -> Version | None:
    """Detach a version from the older ones and return the next: freeing a long chain in one go would recurse."""
    older = version.older
    version.older = None
    return older


def vacuum(generation: Generation, row_id: RowId, newer: Version, watermark: int) -> None:
    """Drop what ``newer`` superseded: its garbage entry's time has come (O(1) however long the chain is)."""
    if newer.values is None or newer.segment == IN_PART:
        vacuum_row(generation, row_id, watermark)
        return
    older = newer.older
    if older is None:
        return
    newer.older = None
    head = generation.rows.get(row_id)
    if older.older is None and older.values is not None and _same_keys(generation, newer, older):
        generation.log.drop(older)
    else:
        drop_versions(generation, row_id, head, older)


def _same_keys(generation: Generation, newer: Version, older: Version) -> bool:
    """Tell whether two versions have equal keys in every index: then dropping one frees no index entry."""
    a, b = generation.padded(newer.values or ()), generation.padded(older.values or ())
    for index in generation.indexes.values():
        make = index.make
        if not (make.of_row(a) == make.of_row(b) if make.long is None else _same(make, a, b)):
            return False
    return True


def _same(make: KeyMaker, a: Row, b: Row) -> bool:
    """Tell whether rows have equal keys; of very many that is not asked: then they have not."""
    if make.long is not None:
        one, other = a[make.long.position], b[make.long.position]
        if one is other:
            return True
        if (one is not None and is_long(one)) or (other is not None and is_long(other)):
            return False
    return bool(make.of_row(a) == make.of_row(b))


def vacuum_row(generation: Generation, row_id: RowId, watermark: int) -> None:
    """Drop the versions of a row that nobody at or above ``watermark`` can see, with their index entries."""
    head = generation.rows.get(row_id)
    keep = at(head, watermark)
    if keep is None:
        return
    older = keep.older
    keep.older = None
    if older is not None:
        drop_versions(generation, row_id, head, older)
    if keep is head and (keep.values is None or keep.segment == IN_PART):
        del generation.rows[row_id]
        if keep.values is not None:
            leave(generation, row_id, generation.padded(keep.values))
    elif keep.values is None and head is not None:
        # A tombstone at the bottom of a chain says no more than the chain's end does.
        newer = head
        while newer.older is not keep:
            if newer.older is None:
                raise AssertionError("a version that is kept is not in its chain")
            newer = newer.older
        newer.older = None


def drop_versions(
    generation: Generation, row_id: RowId, head: Version | None, dropped: Version | None
) -> None:
    """Remove index entries of ``dropped`` and older, unless a version still in the chain has the key."""
    kept: list[Row] = []
    version = head
    while version is not None:
        if version.values is not None:
            kept.append(generation.padded(version.values))
        version = version.older
    inverted = False
    for index in generation.indexes.values():
        of_row = index.make.of_row
        if index.make.long is not None:
            inverted = True
            continue
        keys = [of_row(values) for values in kept]
        version = dropped
        while version is not None:
            if version.values is not None:
                key = of_row(generation.padded(version.values))
                if key not in keys:
                    index.discard(key, row_id)
                    keys.append(key)
            version = version.older
    version = dropped if inverted else None
    while version is not None:
        if version.values is not None:
            values = generation.padded(version.values)
            leave_inverted(generation, row_id, values, kept)
            kept.append(values)
        version = version.older
    while dropped is not None:
        generation.log.drop(dropped)
        dropped = unlink(dropped)
