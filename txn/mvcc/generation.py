"""One generation of a shard: hot rows above parts, and the rules that make them one multi-version table.

Each committed version is in one of two places, and found there alone:

    hot     in a chain of ``rows``; entered in every hot index under its key; visible at ts if it is the newest
            of its chain with begin <= ts
    part    a row of a part; found by sidecar; visible at ts if begin <= ts < end (``PartState``)

Superseded versions that memory has no room for are rows of *history parts*, which only readers below
``history_until`` look at: writers and readers of the present never meet them.

A version that replaces a part's row starts a chain and ends the part's row in the same tick. Between a flush and
the eviction of what it wrote, a version is in both places; results are keyed by row id, so it counts once.

Apply order is commit order; applying an operation twice is harmless (C27); a retraction that does not name the
current version is refused (L7). TRUNCATE and rewrites start a new generation; older readers keep the old one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Generator, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from txn.base.errors import DamagedFile
from txn.base.records import EndedRows, RowOp
from txn.base.slices import at_once
from txn.base.types import IndexId, Key, KeyRange, Row, RowId, ShardColumn, ShardId, ShardSpec
from txn.base.writers import find, number_of
from txn.mvcc.hotlog import IN_PART, HotLog, Segment
from txn.mvcc.index import HotIndex, bounds_of
from txn.mvcc.keys import KeyMaker
from txn.mvcc.many_keys import NOT_JUDGED, Judged, Known, LongValues, is_long
from txn.mvcc.parts import PartState, mask_of
from txn.mvcc.version import Version, at

Cold: TypeAlias = tuple[PartState, int]
Garbage: TypeAlias = "deque[tuple[int, Generation, RowId, Version]]"
"""(timestamp, generation, row, the version that superseded another then), in order of the timestamps (L34)."""


VERSION_BYTES: Final = 400  # of a hot version beside its encoded values: objects, index and log entries
ELEMENT_BYTES: Final = (
    60  # of an element of an array, beside its encoded bytes: an int takes 36, a numeric 112
)
ENTRY_BYTES: Final = 100  # of a key of an inverted index, of which a version may have any number: its object and its place in a table that is a third empty


WRITER_BYTES: Final = (
    160  # of an entry of ``Generation.writers``: two numbers, and a place in a table that is a third empty
)
FORGOTTEN: Final = 20_000  # entries looked at between two turns of the loop: about a millisecond


class StoreCorrupted(AssertionError):
    """A broken invariant of the store: the server must not go on."""


class Padding:
    """Fills rows written before ADD COLUMN with the columns' missing values."""

    __slots__ = ("_missing", "width")

    def __init__(self, columns: Sequence[ShardColumn]) -> None:
        self.width = max((c.attnum for c in columns), default=0)
        missing: list[Any] = [None] * self.width
        for column in columns:
            missing[column.attnum - 1] = column.missing_value
        self._missing = tuple(missing)

    def pad(self, values: Row) -> Row:
        """Return ``values`` in full width."""
        return values + self._missing[len(values) :]


class Departure(NamedTuple):
    """A row that leaves memory and has, or had, very many keys in some indexes (``departing``)."""

    row_id: RowId
    values: Row
    indexes: list[HotIndex]


class Generation:
    """Hot rows, hot indexes and parts of a shard between two TRUNCATEs.

    ``hot_rows``: rows with a chain. ``last_change``: timestamp of the newest commit that touched it.
    ``padding`` already knows the columns of a schema change under way, ``reader_padding`` does not.
    ``pinned``: schema changes under way; upkeep leaves the generation alone. ``resident``: commits up to here
    are in parts as well as in segments not yet evicted (0: none are); ``resident_history``: so are the
    superseded versions of then. ``history``: parts of superseded versions, the newest of which ended at
    ``history_until``. ``purged_until``: what was superseded up to then may be missing in the garbage queue,
    because it left memory with a flush. ``newest_part``: no row of a part began later than the first one of
    that part did. ``upkeep``: a job of upkeep runs. ``bulk_ended``: when rows last ended many at once, which
    left no trace in the garbage queue. ``flushed``: the segments, and how far, of the flush under way.
    ``departing``: rows whose many keys are being taken out of inverted indexes. ``writers``: ids of told
    transactions by their timestamps, of those whose rows are hot or in parts as they were loaded.
    """

    __slots__ = (
        "bulk_ended", "damage", "departing", "flush_cut", "flush_ended", "flushed", "flushing", "garbage", "history", "history_until", "index_views", "indexes", "key_makers",
        "last_change", "log", "newest_part", "next_row_id", "number", "padding", "parts", "pinned", "purged_until", "reader_padding",
        "resident", "resident_history", "rows", "shard", "spec", "upkeep", "writers",
    )  # fmt: skip

    def __init__(self, spec: ShardSpec, number: int, garbage: Garbage, next_row_id: int = 1) -> None:
        """``garbage``: the queue vacuum works through, shared by all generations."""
        self.shard: ShardId = spec.shard
        self.number = number
        self.garbage = garbage
        self.rows: dict[int, Version] = {}
        self.indexes: dict[IndexId, HotIndex] = {}
        self.parts: tuple[PartState, ...] = ()
        self.log = HotLog()
        self.next_row_id = next_row_id
        self.last_change = 0
        self.damage: DamagedFile | None = None
        """A file that must be read before anything of this generation can be: reads and writes raise it."""
        self.history: tuple[PartState, ...] = ()
        self.history_until = 0
        self.purged_until = 0
        self.newest_part = 0
        self.resident = 0
        self.resident_history = False
        self.departing: deque[Departure] = deque()
        self.writers: dict[int, int] = {}
        self.flushing = False
        self.pinned = 0
        self.upkeep = False
        self.bulk_ended = 0
        self.flush_cut = 0
        self.flush_ended: list[tuple[RowId, int]] = []
        self.flushed: tuple[tuple[Segment, int], ...] = ()
        self.spec = spec
        self.index_views: tuple[ShardSpec, list[Any], Sequence[LongValues]] | None = (
            None  # kept for txn.transaction.view
        )
        self.padding = self.reader_padding = Padding(spec.columns)
        for index in spec.indexes:
            self.indexes[index.index] = HotIndex(KeyMaker(spec.columns, index), index)

    # -- reading -----------------------------------------------------------------------------------

    def parts_at(self, ts: int) -> tuple[PartState, ...]:
        """Return the parts in which a reader at ``ts`` may find something.

        Later ones may lack what its schema has: the sidecar of an index that was dropped before they were loaded.
        """
        parts = self.parts_since(ts)
        if ts < self.newest_part:
            parts = tuple([part for part in parts if part.ref.min_begin <= ts])
        return parts

    def parts_since(self, ts: int) -> tuple[PartState, ...]:
        """Return the parts with rows that were there at ``ts``, or came later."""
        return self.parts if ts >= self.history_until else self.parts + self.history

    def writer_of(self, begin: int) -> int:
        """Return the number of the transaction that made the versions which begin at a timestamp."""
        found = self.writers.get(begin)
        if found is None:
            found = find(begin, [w for part in self.parts + self.history if (w := part.writers) is not None])
        return found or number_of(begin)

    def loaded_writers(self, parts: Iterable[PartState]) -> dict[int, int]:
        """Return of ``writers`` what concerns parts as they were loaded, which hold none themselves."""
        if not self.writers:
            return {}
        begins = [p.ref.min_begin for p in parts if p.ref.min_begin == p.ref.max_begin and p.writers is None]
        return {begin: self.writers[begin] for begin in begins if begin in self.writers}

    def forget_writers(self) -> Iterator[None]:
        """Forget of ``writers`` what parts hold by now, or nobody reads any more; a slice between two yields."""
        if not self.writers:
            return
        until = self.last_change
        kept: set[int] = set()
        for segment in list(self.log.segments.values()):
            kept.update(begin for begin in segment.begins if begin in self.writers)
            yield
        kept.update(self.loaded_writers(self.parts + self.history))
        for count, begin in enumerate(list(self.writers), 1):
            if begin <= until and begin not in kept:
                del self.writers[begin]
            if count % FORGOTTEN == 0:
                yield

    def find(
        self,
        index_id: IndexId,
        key: Key,
        ts: int,
        found: dict[RowId, Version],
        cold: dict[RowId, Cold],
        parts: tuple[PartState, ...] | None = None,
        own_parts: bool = False,
        judged: Known = NOT_JUDGED,
    ) -> None:
        """Collect the versions visible at ``ts`` whose key in an index equals ``key`` (full; NULL equals NULL).

        ``parts``: those to look at, by default this generation's at ``ts``. ``own_parts``: some are the
        reader's own, and may hold a unique key that a hot row has, which the reader has deleted. ``judged``:
        what ``judge`` has found of this key.
        """
        index = self.indexes[index_id]
        ikey = index.make.of_key(key)
        ids = index.entries.get(ikey)
        hit = False
        if ids is not None:
            padding = self.padding
            width = padding.width
            of_row = index.make.of_row
            inverted = index.make.long is not None
            for row_id in (ids,) if isinstance(ids, int) else ids:
                head = version = self.rows.get(row_id)
                while version is not None and version.begin > ts:
                    version = version.older
                if version is None:
                    continue
                values = version.values
                if values is None:
                    continue
                if inverted:
                    if version is head and version.older is None and index.is_settled(row_id):
                        found[row_id] = version  # type: ignore[index]  # whose entry it is: its keys, which may be very many, are not made
                        hit = True
                        continue
                    known = judged.get(id(version))
                    if known is not None:
                        if known[1]:
                            found[row_id] = version  # type: ignore[index]
                            hit = True
                        continue
                key_now = of_row(values if len(values) >= width else padding.pad(values))
                if key_now == ikey or (key_now.__class__ is frozenset and ikey in key_now):
                    found[row_id] = version  # type: ignore[index]  # RowId(...) would be a call a row
                    hit = True
        if parts is None:
            parts = self.parts_at(ts)
        if parts and (own_parts or not (hit and index.definition.unique)):
            for part in parts:
                for position in part.lookup(index_id, key):
                    if part.visible(position, ts):
                        row_id = part.file.row_id(position)
                        if row_id not in found:
                            cold[row_id] = (part, position)

    def judge(self, index_id: IndexId, key: Key, ts: int, judged: Judged) -> Iterator[None]:
        """Look ahead for ``find`` whether versions have a key of an inverted index, a slice between two yields.

        A row with several versions stands under the keys of each: all keys of the one that is visible are
        gone through, which may be very many.
        """
        index = self.indexes[index_id]
        long = index.make.long
        ids = index.entries.get(index.make.of_key(key)) if long is not None else None
        if long is None or ids is None:
            return
        ikey = index.make.of_key(key)
        for row_id in (ids,) if isinstance(ids, int) else list(ids):
            head = self.rows.get(RowId(row_id))
            version = at(head, ts)
            if version is None or version.values is None or id(version) in judged:
                continue
            if version is head and version.older is None and index.is_settled(row_id):
                continue
            values = self.padded(version.values)
            value = values[long.position]
            if value is not None and is_long(value):
                judged[id(version)] = version, (yield from long.looked(values, ikey))

    def identities(
        self, index_id: IndexId, key: Key, ts: int, judged: Known = NOT_JUDGED
    ) -> list[tuple[RowId, int]]:
        """Return (row id, begin) of the versions ``find`` would collect, sorted; never touches row values."""
        found: dict[RowId, Version] = {}
        cold: dict[RowId, Cold] = {}
        self.find(index_id, key, ts, found, cold, judged=judged)
        out = [(row_id, version.begin) for row_id, version in found.items()]
        out.extend((row_id, part.begin(position)) for row_id, (part, position) in cold.items())
        out.sort()
        return out

    def count_entries(self, index_id: IndexId, key: Key) -> int:
        """Return about how many rows are under a key: old versions and ended rows count, too."""
        index = self.indexes[index_id]
        found = len(index.ids(index.make.of_key(key)))
        return found + sum(part.file.count(index_id, key) for part in self.parts)

    def count_range(self, index_id: IndexId, wanted: KeyRange, most: int) -> int:
        """Return about how many entries lie in a range, as ``count_entries``; it stops counting above ``most``."""
        found = sum(part.file.count_range(index_id, wanted) for part in self.parts)
        index = self.indexes[index_id]
        for key in index.keys_between(bounds_of(index.make, wanted)):
            if found > most:
                break
            found += len(index.ids(key))
        return found

    def find_hot_range(
        self,
        index_id: IndexId,
        wanted: KeyRange,
        ts: int,
        reverse: bool,
        limit: int | None,
        skip: frozenset[RowId],
    ) -> dict[RowId, Version]:
        """Collect the hot versions visible at ``ts`` within a range, without rows in ``skip``.

        With ``limit``, the first ``limit`` of them in the order asked for (more under the last key, perhaps).
        """
        index = self.indexes[index_id]
        of_row = index.make.of_row
        found: dict[RowId, Version] = {}
        padding = self.padding
        width = padding.width
        rows = self.rows
        for ikey in index.keys_between(bounds_of(index.make, wanted), reverse):
            for row_id in index.ids(ikey):
                if row_id in skip:
                    continue
                version = at(rows.get(row_id), ts)
                if version is None or version.values is None:
                    continue
                values = version.values
                if of_row(values if len(values) >= width else padding.pad(values)) == ikey:
                    found[RowId(row_id)] = version
            if limit is not None and len(found) >= limit:
                break
        return found

    def find_row(
        self, row_id: RowId, ts: int, parts: tuple[PartState, ...] | None = None
    ) -> Version | Cold | None:
        """Return one row's version visible at ``ts``: hot, cold, or None if there is none."""
        version = self.rows.get(row_id)
        if version is not None:
            version = at(version, ts)
            if version is not None:
                return None if version.values is None else version
        for part in self.parts_at(ts) if parts is None else parts:
            position = part.find(row_id, ts)
            if position is not None:
                return part, position
        return None

    def counts(self) -> tuple[int, int, int]:
        """Return (rows, hot rows, bytes), roughly."""
        if not self.parts and not self.rows:
            return 0, 0, 0
        live = sum(p.ref.rows - p.ended for p in self.parts)
        in_both = self.resident > 0
        hot = len(self.rows)
        return live + (0 if in_both else hot), hot, sum(p.ref.bytes for p in self.parts) + hot * 100

    def live_rows(self) -> int:
        """Return how many rows there are: in parts those that have not ended, in memory the versions that
        have not. Roughly while both have the same ones.
        """
        live = sum(p.ref.rows - p.ended for p in self.parts)
        return live if self.resident > 0 else live + self.log.current

    def hot_bytes(self) -> int:
        """Return about what the hot versions take in memory, superseded ones and indexes included."""
        inverted = sum([len(i.entries) for i in self.indexes.values() if i.make.long is not None])
        return (
            int(self.log.bytes)
            + max(self.log.entries, len(self.rows)) * VERSION_BYTES
            + inverted * ENTRY_BYTES
            + len(self.writers) * WRITER_BYTES
        )

    # -- changing ----------------------------------------------------------------------------------

    def take_row_ids(self, count: int) -> RowId:
        """Give out ``count`` consecutive new row ids and return the first."""
        first = self.next_row_id
        self.next_row_id = first + count
        return RowId(first)

    def apply(self, ops: Iterable[RowOp], ts: int, over_parts: bool = False) -> None:
        """Make one transaction's operations committed versions that begin at ``ts``.

        ``over_parts``: the same transaction also loaded parts, and its operations may change their rows: what
        they replace then never was visible. Raises StoreCorrupted when an operation does not replace the
        current version (L7).
        """
        rows = self.rows
        log = self.log
        padding = self.padding
        width = padding.width
        indexes = list(self.indexes.values())
        for op in ops:
            row_id = op.row_id
            values = op.values
            head = rows.get(row_id)
            if values is not None and len(values) < width:
                values = padding.pad(values)
            if head is None:
                if op.replaced and not self._end_part_row(row_id, op.replaced, ts):
                    raise StoreCorrupted(f"row {row_id} of shard {self.shard} has no version {op.replaced}")
                if over_parts and not op.replaced:
                    self._end_part_row(row_id, ts, ts)
                if row_id >= self.next_row_id:
                    self.next_row_id = row_id + 1
                version = Version(ts, values, None)
                rows[row_id] = version
                if values is None:
                    self.garbage.append((ts, self, row_id, version))
                    continue
                for index in indexes:
                    index.add(index.make.of_row(values), row_id)
                log.append(version, row_id)
                continue
            begin = head.begin
            if begin >= ts:
                continue
            if begin != op.replaced and (head.values is not None or op.replaced):
                raise StoreCorrupted(f"row {row_id} of shard {self.shard}: {begin}, not {op.replaced}")
            version = Version(ts, values, head)
            rows[row_id] = version
            place = head.segment
            if place >= 0:
                log.end(head, ts)
            if place == IN_PART or begin <= self.resident:
                self._end_part_row(row_id, begin, ts)
            if begin <= self.flush_cut:
                self.flush_ended.append((row_id, ts))
            self.garbage.append((ts, self, row_id, version))
            if values is None:
                continue
            log.append(version, row_id)
            old = head.values
            if old is not None:
                if len(old) < width:
                    old = padding.pad(old)
                for index in indexes:
                    of_row = index.make.of_row
                    key = of_row(values)
                    if key != of_row(old):
                        index.add(key, row_id)
            else:
                for index in indexes:
                    index.add(index.make.of_row(values), row_id)
        self.last_change = ts

    def padded(self, values: Row) -> Row:
        """Return the values of a row in the full width of the schema, that under way included."""
        return values if len(values) >= self.padding.width else self.padding.pad(values)

    def is_current(self, row_id: RowId, begin: int) -> bool:
        """Tell whether a row's current version is the one that began at ``begin``."""
        head = self.rows.get(row_id)
        if head is not None:
            return head.begin == begin and head.values is not None
        return any(
            part.begin(position) == begin and not part.end_of(position)
            for part in self.parts
            for position in part.file.positions(row_id)
        )

    def _end_part_row(self, row_id: RowId, begin: int, ts: int) -> bool:
        for part in self.parts:
            for position in part.file.positions(row_id):
                if part.begin(position) == begin and not 0 < part.end_of(position) <= begin:
                    part.end(position, ts)
                    return True
        return False

    def add_parts(self, parts: Iterable[PartState], ts: int) -> None:
        """Add a bulk load's parts; their rows begin at ``ts``. Idempotent by name."""
        known = {p.ref.name for p in self.parts}
        new = [p for p in parts if p.ref.name not in known]
        self.parts += tuple(new)
        self._note_newest(new)
        self.last_change = max(self.last_change, ts)

    def end_rows(self, ended: EndedRows, ts: int) -> None:
        """As ``end_rows_slowly``, in one go."""
        at_once(self.end_rows_slowly(ended, ts))

    def end_rows_slowly(self, ended: EndedRows, ts: int) -> Generator[None, None, None]:
        """End many rows of a part, a slice between two yields. Idempotent. Raises StoreCorrupted when one is
        not current (L7).
        """
        part = next((part for part in self.parts if part.ref.name == ended.part), None)
        if part is None:
            raise StoreCorrupted(f"shard {self.shard} has no part {ended.part}")
        if not (yield from part.end_rows_slowly(mask_of(ended, part.ref.rows), ts)):
            raise StoreCorrupted(f"a row of part {ended.part} has ended before {ts}")
        self.last_change = max(self.last_change, ts)
        self.bulk_ended = max(self.bulk_ended, ts)

    def _note_newest(self, parts: Iterable[PartState]) -> None:
        self.newest_part = max(self.newest_part, *(part.ref.min_begin for part in parts), 0)

    # -- flush -------------------------------------------------------------------------------------

    def begin_flush(self, cut: int) -> None:
        """Start a flush of what is visible at ``cut`` (now): of what ``flushed`` holds."""
        self.flushing = True
        self.flush_cut = cut
        self.flush_ended = []
        self.log.seal()
        self.log.frozen = True
        self.flushed = self.log.capture()

    def abandon_flush(self) -> None:
        """Forget a flush that failed."""
        self.flush_cut = 0
        self.flush_ended = []
        self.finish_eviction()

    def carry_flush_ends(self, hot: PartState, start: int, limit: int) -> int:
        """End rows of a flushed part that ended since the cut: at most ``limit`` from the ``start``-th on.

        Returns how many have been carried over in all. The part is nobody's yet.
        """
        ended = self.flush_ended
        stop = min(start + limit, len(ended))
        for i in range(start, stop):
            row_id, ts = ended[i]
            for position in hot.file.positions(row_id):
                hot.end(position, ts)
        return stop

    def swap(
        self,
        removed: Sequence[str],
        added: Sequence[PartState],
        hot: PartState | None = None,
        carried: int = 0,
        history: Sequence[PartState] | None = None,
    ) -> list[PartState]:
        """Replace parts after a flush (``hot`` is among ``added``) or a compaction; returns those that left.

        Ends of rows of ``hot`` that arrived since the cut are carried over here as far as they have not been
        (``carry_flush_ends``); those of merged parts the caller has carried. ``history``: parts of what was
        superseded at the cut, None if that stays hot. Versions of a flush stay hot until evicted.
        """
        leaving = [p for p in self.parts if p.ref.name in removed]
        self.parts = tuple(p for p in self.parts if p.ref.name not in removed) + tuple(added)
        self._note_newest(added)
        left = [p for p in self.history if p.ref.name in removed]
        self.history = tuple(p for p in self.history if p.ref.name not in removed)
        if self.flush_cut:
            if hot is not None:
                self.carry_flush_ends(hot, carried, len(self.flush_ended))
            if hot is not None or history is not None:
                self.resident = self.flush_cut
                self.resident_history = history is not None
            self.flush_cut = 0
            self.flush_ended = []
        self.take_history(history or ())
        return leaving + left

    def take_history(self, parts: Iterable[PartState]) -> None:
        """Add history parts, complete with their ends."""
        self.history += tuple(parts)
        self.history_until = max((p.last_end for p in self.history), default=0)

    def finish_eviction(self) -> None:
        """All segments of the last flush are evicted: nothing is in both places any more."""
        self.resident = 0
        self.resident_history = False
        self.log.frozen = False
        self.flushed = ()
        self.flushing = False

    # -- schema ------------------------------------------------------------------------------------

    def set_spec(self, spec: ShardSpec) -> None:
        """Adopt a changed schema. New indexes are filled from hot rows here; their sidecars exist already.

        Indexes that the schema no longer has are kept up: older readers use them (``forget_indexes``).
        """
        self.spec = spec
        self.padding = self.reader_padding = Padding(spec.columns)
        self.log.invalidate_arrow()
        for definition in spec.indexes:
            if definition.index not in self.indexes:
                self.indexes[definition.index] = self.fill_index(spec, definition.index)

    def fill_index(self, spec: ShardSpec, index_id: IndexId) -> HotIndex:
        """Make the hot index of an index of ``spec`` over all hot versions."""
        definition = next(i for i in spec.indexes if i.index == index_id)
        index = HotIndex(KeyMaker(spec.columns, definition), definition)
        padding = Padding(spec.columns)
        for row_id, head in self.rows.items():
            version: Version | None = head
            while version is not None:
                if version.values is not None:
                    index.add(index.make.of_row(padding.pad(version.values)), row_id)
                version = version.older
        return index

    def forget_indexes(self, wanted: Container[IndexId]) -> None:
        """Drop the indexes that no schema has any more under which somebody may read."""
        for index_id in [i for i in self.indexes if i not in wanted]:
            del self.indexes[index_id]

    # -- checking ----------------------------------------------------------------------------------

    def versions(self) -> Iterator[tuple[RowId, Version]]:
        """Yield every hot version with its row id (tests, validation)."""
        for row_id, head in self.rows.items():
            version: Version | None = head
            while version is not None:
                yield RowId(row_id), version
                version = version.older

    def chain(self, row_id: int) -> Iterator[Version]:
        """Yield a row's hot versions, the newest first."""
        version = self.rows.get(row_id)
        while version is not None:
            yield version
            version = version.older
