"""What a transaction has read before its first write, and the proof that it is still so (N8).

Reads are remembered as coarsely as they may conflict:

    by key   (shard, index, key) with the (row id, begin) pairs found, also when none were
    range    (shard, index, range, direction, limit) with the pairs found, in order
    scan     (shard, predicate), or the whole shard

Begins are never given twice, so equal pairs mean that nothing happened in between. Promotion locks keys and
ranges, in one order for all transactions, and then compares in one tick; scans are compared and then watched
(txn.transaction.scan_watch).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from txn.base.errors import Cause, WriteConflict
from txn.base.types import IndexId, Key, KeyRange, RowId, ShardId, StoredRow, Timestamp, TxnId
from txn.locks.granule import Granule
from txn.locks.mode import IS, S
from txn.mvcc.generation import Generation
from txn.mvcc.keys import IndexKey, each
from txn.mvcc.many_keys import NOT_JUDGED, Judged
from txn.mvcc.version import INFINITY
from txn.transaction.scan_watch import (
    Images,
    Predicate,
    ScanWatch,
    changed_for,
    image_at,
    load_changed,
    noted,
)
from txn.transaction.traversal import MAX_RANGE_KEYS, traverse

if TYPE_CHECKING:
    from txn.transaction.coordinator import Coordinator
    from txn.transaction.view import Steps, View

MAX_READ_KEYS: Final = 4096
"""A transaction that has read more keys, ranges, or rows of a range remembers table scans instead."""

MAX_READ_RANGES: Final = 256
"""The same for ranges: each is traversed again at promotion."""

NO_ROW: Final = RowId(0)

Found: TypeAlias = list[tuple[RowId, int]]


class RangeRead(NamedTuple):
    """A range as it was read: what was asked for, and what was found."""

    shard: ShardId
    index_id: IndexId
    wanted: KeyRange
    reverse: bool
    limit: int | None
    found: Found


class ReadSet:
    """The reads of one transaction at its read timestamp."""

    __slots__ = ("_images", "_judged", "_keys", "_many", "ranges", "scans")

    def __init__(self) -> None:
        self._keys: dict[tuple[ShardId, IndexId, IndexKey], tuple[Key, Found]] = {}
        self.ranges: list[RangeRead] = []
        self.scans: dict[ShardId, list[Predicate | None]] = {}
        self._images: dict[ShardId, Images] = {}
        self._judged: dict[tuple[ShardId, IndexId, IndexKey], Judged] = {}
        self._many = False  # keys of an index were looked up under which a row may have very many

    def add_keys(
        self,
        view: View,
        index: IndexId,
        keys: Sequence[Key],
        rows: list[StoredRow],
        under: dict[IndexKey, Found] | None = None,
    ) -> None:
        """Note keys that were looked up, with what was found. ``under``: which of the rows stand under which
        of them, where that has been told.
        """
        shard = view.shard
        if None in self.scans.get(shard, ()):
            return
        make = view.generation.indexes[index].make
        noted = self._keys
        self._many = self._many or make.long is not None
        if len(keys) == 1:
            pairs: Found = [(row.row_id, row.begin) for row in rows]
            noted.setdefault((shard, index, make.of_key(keys[0])), (keys[0], pairs))
        else:
            by_key: dict[IndexKey, Found] = {} if under is None else under
            for row in rows if under is None else ():
                for ikey in each(make.of_row(row.values)):
                    by_key.setdefault(ikey, []).append((row.row_id, row.begin))
            for key in keys:
                ikey = make.of_key(key)
                noted.setdefault((shard, index, ikey), (key, by_key.get(ikey, [])))
        if len(noted) > MAX_READ_KEYS:
            for other, _index, _key in noted:
                self.add_scan(other, None)
            noted.clear()

    def add_range(
        self,
        shard: ShardId,
        index: IndexId,
        wanted: KeyRange,
        reverse: bool,
        limit: int | None,
        rows: list[StoredRow],
    ) -> None:
        """Note a range that was read, as far as ``limit`` rows go."""
        if None in self.scans.get(shard, ()):
            return
        if len(rows) > MAX_RANGE_KEYS or len(self.ranges) >= MAX_READ_RANGES:
            self.add_scan(shard, None)
        else:
            pairs: Found = [(row.row_id, row.begin) for row in rows]
            self.ranges.append(RangeRead(shard, index, wanted, reverse, limit, pairs))

    def add_scan(self, shard: ShardId, predicate: Predicate | None) -> None:
        """Note that rows of the shard have been read: those with ``predicate``, or any."""
        predicates = self.scans.setdefault(shard, [])
        if None in predicates:
            return
        if noted(cast("list[Predicate]", predicates), predicate) is None:
            self.scans[shard] = [None]

    def wants(self, modes: dict[ShardId, int]) -> list[tuple[Granule, int]]:
        """Return the locks that cover the reads and the table locks ``modes``, in the one global order."""
        tables = dict(modes)
        for shard in self.scans:
            tables.setdefault(shard, IS)
        for read in self.ranges:
            tables.setdefault(read.shard, IS)
        ordered: list[tuple[Any, Granule, int]] = []
        for (shard, index, ikey), (_key, found) in self._keys.items():
            if tables.setdefault(shard, IS) >= S:
                continue
            ordered.append(((shard, 1, index, ikey), (shard, index, ikey), S))
            ordered.extend(((shard, 2, row_id), (shard, row_id), S) for row_id, _begin in found)
        ordered.extend(((shard, 0), shard, mode) for shard, mode in tables.items())
        ordered.sort(key=lambda want: want[0])
        return [(granule, mode) for _order, granule, mode in ordered]

    def load(self, core: Coordinator, read_ts: int) -> Steps[None]:
        """Bring what ``check`` compares of scans into memory, because it may not wait, and look through rows
        with very many keys, because that takes long.
        """
        for shard, predicates in self.scans.items():
            generation = core.shards[shard].latest.generation
            if generation is not None and None not in predicates:
                yield from load_changed(core, generation, read_ts, self._images.setdefault(shard, {}))
        for place, (key, _found) in self._keys.items() if self._many else ():
            shard, index, _ikey = place
            generation = core.shards[shard].latest.generation
            if generation is None or generation.last_change <= read_ts:
                continue
            made = generation.indexes.get(index)
            if made is not None and made.make.long is not None:
                for _ in generation.judge(index, key, INFINITY, self._judged.setdefault(place, {})):
                    yield asyncio.sleep(0)

    def check(self, core: Coordinator, read_ts: int) -> None:
        """Raise WriteConflict unless everything is still as it was at ``read_ts``. Under the locks; one tick."""
        shards = core.shards
        for shard, predicates in self.scans.items():
            generation = shards[shard].latest.generation
            if generation is None:
                raise _conflict(Cause.TABLE_READ, core, read_ts, shard, generation)
            watch = ScanWatch(TxnId(0), shard)
            for predicate in predicates:
                watch.add(predicate)
            row_id = changed_for(core, generation, read_ts, watch, self._images.get(shard, {}))
            if row_id is not None:
                cause = Cause.TABLE_READ if watch.predicates is None or not row_id else Cause.SCAN_READ
                raise _conflict(cause, core, read_ts, shard, generation, row_id=row_id)
        for read in self.ranges:
            shard = read.shard
            generation = shards[shard].latest.generation
            if generation is None:
                raise _conflict(Cause.RANGE_READ, core, read_ts, shard, generation)
            if generation.last_change > read_ts:
                met = traverse(
                    core.locks, generation, None, 0, read.index_id, read.wanted, read.reverse, read.limit
                )
                if met is None or [(found.row_id, found.begin) for found in met.rows] != read.found:
                    raise _conflict(Cause.RANGE_READ, core, read_ts, shard, generation, read.index_id)
        for place, (key, before) in self._keys.items():
            shard, index, _ikey = place
            generation = shards[shard].latest.generation
            if generation is None:
                raise _conflict(Cause.KEY_READ, core, read_ts, shard, generation)
            if generation.last_change > read_ts:
                current = generation.identities(index, key, INFINITY, self._judged.get(place, NOT_JUDGED))
                if current != sorted(before):
                    raise _conflict(
                        Cause.KEY_READ, core, read_ts, shard, generation, index, key, before, current
                    )


def _conflict(
    cause: Cause,
    core: Coordinator,
    read_ts: int,
    shard: ShardId,
    generation: Generation | None,
    index: IndexId | None = None,
    key: Key | None = None,
    before: Found | None = None,
    current: Found | None = None,
    row_id: RowId = NO_ROW,
) -> WriteConflict:
    """Explain a conflict: where, when, and whose commit it was if that is still remembered."""
    changed_at = 0 if generation is None else generation.last_change
    if generation is not None and before is not None and current is not None:
        begins = [begin for _row, begin in current if begin > read_ts]
        for row_id, _begin in before:
            head = generation.rows.get(row_id)
            if head is not None and head.begin > read_ts:
                begins.append(head.begin)
        changed_at = max(begins, default=changed_at)
    head = generation.rows.get(row_id) if generation is not None and row_id else None
    if generation is not None and head is not None:
        changed_at = head.begin
        values = next(image_at(generation, row_id, INFINITY), None) or next(
            image_at(generation, row_id, read_ts), None
        )
        primary = next((i for i in generation.spec.indexes if i.primary), None)
        if primary is not None and values is not None:
            index = primary.index
            key = generation.indexes[index].make.raw(generation.padding.pad(values))
    return WriteConflict(
        cause,
        shard,
        key=key,
        index=index,
        other_session=core.session_of(changed_at, shard),
        changed_at=Timestamp(changed_at),
    )
