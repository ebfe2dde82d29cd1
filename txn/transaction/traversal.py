"""What a range of an index holds now: rows and boundaries, of memory, of parts and of the reader's own
intents, in one tick.

Which of it is locked, and why, says ``txn.transaction.next_key``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from txn.base.types import IndexId, Key, KeyRange, Row, RowId
from txn.mvcc.generation import Cold, Generation
from txn.mvcc.index import TOP, Bounds, bounds_of
from txn.mvcc.intents import OwnWrites
from txn.mvcc.keys import IndexKey
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY, Version

if TYPE_CHECKING:
    from txn.locks.table import LockTable

MAX_RANGE_KEYS: Final = 1000
"""A read of more keys than this locks its table instead."""


class Found(NamedTuple):
    """A row met in a range: a hot ``version``, a ``cold`` one, or an intent of the reader's own (both None)."""

    key: IndexKey
    row_id: RowId
    begin: int  # 0: own
    version: Version | None
    cold: Cold | None
    own: Row | None


class Traversal(NamedTuple):
    """What a range read meets in one tick: rows in the order asked for, boundaries ascending, the keys spanned."""

    rows: list[Found]
    boundaries: list[IndexKey]
    span: Bounds


_NOTHING: Final = Traversal([], [], Bounds(empty=True))


def traverse(
    locks: LockTable,
    generation: Generation,
    own: OwnWrites | None,
    statement: int,
    index_id: IndexId,
    wanted: KeyRange,
    reverse: bool,
    limit: int | None,
    max_keys: int = 2**31,
) -> Traversal | None:
    """Look at a range's latest state, own intents included, in one tick; nothing is locked or read from disk.

    With ``limit``, only as far as that many rows go. None: there are more than ``max_keys`` keys.
    """
    shard = generation.shard
    make = generation.indexes[index_id].make
    bounds = bounds_of(make, wanted)
    if bounds.empty or limit == 0:
        return _NOTHING
    keys: set[IndexKey] = set()
    rows: list[Found] = []
    hidden: frozenset[RowId] = frozenset()
    if own is not None and own.rows:
        hidden = own.hidden_ids(statement)
        for ikey in own.index(index_id).keys_between(bounds):
            for row_id, values in own.rows_with(index_id, ikey, statement):
                rows.append(Found(ikey, row_id, 0, None, None, values))
    if not _hot(generation, index_id, bounds, reverse, limit, hidden, max_keys, keys, rows):
        return None
    for part in generation.parts:
        if not _cold(generation, part, index_id, wanted, reverse, limit, hidden, max_keys, keys, rows):
            return None
    rows.sort(key=lambda found: (found.key, found.row_id), reverse=reverse)
    # Between flush and eviction a row is met twice.
    unique = {found.row_id: found for found in reversed(rows)}
    rows = [found for found in rows if unique[found.row_id] is found]
    low, high, stop = bounds, bounds, None
    if limit is not None and len(rows) >= limit:
        del rows[limit:]
        stop = rows[-1].key
        if reverse:
            low = Bounds(stop, True)
        else:
            high = Bounds(None, True, stop, True)
    span = Bounds(low.low, low.low_inclusive, high.high, high.high_inclusive)
    ranges = locks.ranges.get((shard, index_id))
    if ranges is not None:
        keys.update(ranges.bounds)
    boundaries = sorted(key for key in keys if span.contains(key))
    if stop is None or reverse:
        boundaries.append(_beyond(locks, generation, index_id, wanted, bounds))
    elif not boundaries or boundaries[-1] != stop:
        above = [ceiling(generation, index_id, stop, make.values(stop))]
        if ranges is not None:  # a locked key, too, may become a boundary
            above += [*ranges.bounds.irange(stop, None)][:1] + [*ranges.keys.irange(stop, None)][:1]
        boundaries.append(min(above))
    return Traversal(rows, boundaries, span)


def _hot(
    generation: Generation,
    index_id: IndexId,
    bounds: Bounds,
    reverse: bool,
    limit: int | None,
    hidden: frozenset[RowId],
    max_keys: int,
    keys: set[IndexKey],
    rows: list[Found],
) -> bool:
    index = generation.indexes[index_id]
    of_row = index.make.of_row
    padding = generation.padding
    width = padding.width
    count = 0
    for ikey in index.keys_between(bounds, reverse):
        if len(keys) >= max_keys:
            return False
        keys.add(ikey)
        for row_id in index.ids(ikey):
            head = generation.rows.get(row_id)
            if head is None or head.values is None or row_id in hidden:
                continue
            values = head.values
            if of_row(values if len(values) >= width else padding.pad(values)) == ikey:
                rows.append(Found(ikey, RowId(row_id), head.begin, head, None, None))
                count += 1
        if limit is not None and count >= limit:
            break
    return True


def _cold(
    generation: Generation,
    part: PartState,
    index_id: IndexId,
    wanted: KeyRange,
    reverse: bool,
    limit: int | None,
    hidden: frozenset[RowId],
    max_keys: int,
    keys: set[IndexKey],
    rows: list[Found],
) -> bool:
    of_key = generation.indexes[index_id].make.of_key
    count = met = 0
    last: Key | None = None
    for key, position in part.entries_between(index_id, wanted, reverse=reverse):
        if key != last:
            if limit is not None and count >= limit:
                break
            met += 1
            if met > max_keys:
                return False
            last = key
            ikey = of_key(key)
            keys.add(ikey)
        if part.visible(position, INFINITY):
            row_id = part.file.row_id(position)
            if row_id not in hidden:
                rows.append(Found(ikey, row_id, part.begin(position), None, (part, position), None))
                count += 1
    return True


def _beyond(
    locks: LockTable,
    generation: Generation,
    index_id: IndexId,
    wanted: KeyRange,
    bounds: Bounds,
) -> IndexKey:
    """Return the first boundary beyond a range, TOP if there is none; a locked key, too, may become one."""
    index = generation.indexes[index_id]
    after = [index.key_after(bounds)]
    for part in generation.parts:
        key = part.file.key_after(index_id, wanted)
        after.append(None if key is None else index.make.of_key(key))
    ranges = locks.ranges.get((generation.shard, index_id))
    if ranges is not None:
        after += bounds.after(ranges.bounds), bounds.after(ranges.keys)
    return min((key for key in after if key is not None), default=TOP)


def ceiling(generation: Generation, index_id: IndexId, ikey: IndexKey, key: Key) -> IndexKey:
    """Return the first entry at or above a key, visible to anybody or not; TOP if there is none."""
    index = generation.indexes[index_id]
    above = [index.key_ceiling(ikey)]
    for part in generation.parts:
        found = part.file.key_ceiling(index_id, key)
        above.append(None if found is None else index.make.of_key(found))
    return min((found for found in above if found is not None), default=TOP)
