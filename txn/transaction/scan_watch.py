"""Scans without an index, of transactions that write: not locked, but watched and validated
(docs/internals/transactions.md, U4).

A scan reads a snapshot of the latest commit. From that tick on every commit of somebody else's that is applied to
the table is compared with what the scan asked for; before the own commit joins a batch, so are the batch's earlier
members. So nobody waits for a scan, and who scans learns of the first change that it should have seen::

    scan (predicate p) ──┬─────────────┬──────────────────────> commit: batch [t7, t9, this]
                         │ t5 applied  │ t6 applied                     t7, t9: the same test
                         p(before) or p(after)?  yes: WriteConflict

``predicate(row)`` tells whether a row (a tuple in full width) can matter to the scan; None: every row does. One that
raises counts as true. The test cannot wait: what a row was that lies in a part is kept by the transaction that replaces
it (``OwnWrites.cold``), and loaded ahead at promotion (``Images``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from txn.base.errors import Cause, WriteConflict
from txn.base.records import RowOp, ShardWrites, WriteSet
from txn.base.types import Row, RowId, ShardId, TxnId
from txn.mvcc.generation import Generation
from txn.mvcc.version import INFINITY, Version
from txn.transaction.view import Steps

if TYPE_CHECKING:
    from txn.mvcc.parts import PartState
    from txn.transaction.ports import Commits

Predicate: TypeAlias = Callable[[Row], bool]

MAX_ROW_IDS: Final = 100_000
"""A transaction that reads more rows of a table by their ids than this watches all of it."""

MAX_PREDICATES: Final = 32
"""A transaction that scans a table with more predicates than this watches all of it."""


MAX_COLD_IMAGES: Final = 10_000
"""Rows of parts that a promotion loads to compare them; of more changed ones it takes the worst for granted."""

_ROUNDS: Final = 4
"""While rows are loaded others go on committing, so that more have to be loaded: so often."""

Images: TypeAlias = dict[tuple[str, int], Row]
"""Rows of parts by (part name, position), loaded ahead of a comparison."""

_NOTHING_KEPT: Final[Mapping[RowId, Row]] = MappingProxyType({})
_NO_IMAGES: Final[Mapping[tuple[str, int], Row]] = MappingProxyType({})


class OfRows:
    """The predicate of a scan that reads rows by their ids: what happens to others does not matter to it."""

    __slots__ = ("ids",)

    def __init__(self, ids: Container[int]) -> None:
        self.ids = ids

    def __call__(self, row: Row) -> bool:
        """Every version of such a row matters."""
        return True


def noted(predicates: list[Predicate], predicate: Predicate | None) -> list[Predicate] | None:
    """Return ``predicates`` with one more, None where all rows are to be watched instead. Ids of rows are
    gathered in one.
    """
    if predicate is None:
        return None
    if isinstance(predicate, OfRows) and isinstance(predicate.ids, Set):
        for known in predicates:
            if isinstance(known, OfRows) and isinstance(known.ids, set):
                known.ids.update(predicate.ids)
                return predicates if len(known.ids) <= MAX_ROW_IDS else None
        predicate = OfRows(set(predicate.ids))  # its own, for more are added
    elif predicate in predicates:
        return predicates
    if len(predicates) >= MAX_PREDICATES:
        return None
    predicates.append(predicate)
    return predicates


class ScanWatch:
    """A transaction's scans of one table. ``conflict``: the first change that one of them should have seen."""

    __slots__ = ("conflict", "predicates", "shard", "txn")

    def __init__(self, txn: TxnId, shard: ShardId) -> None:
        """``txn``: who scans; its own changes do not count."""
        self.txn = txn
        self.shard = shard
        self.predicates: list[Predicate] | None = []
        self.conflict: WriteConflict | None = None

    def add(self, predicate: Predicate | None) -> None:
        """Note one more scan."""
        if self.predicates is not None:
            self.predicates = noted(self.predicates, predicate)

    def join(self, other: ScanWatch) -> None:
        """Take over another watch of the same table and transaction."""
        for predicate in (None,) if other.predicates is None else other.predicates:
            self.add(predicate)
        if self.conflict is None:
            self.conflict = other.conflict

    def concerns(self, row_id: RowId, images: Iterable[Row | None]) -> bool:
        """Tell whether a scan would have met one of a row's images. None: an image that cannot be had now."""
        if self.predicates is None:
            return True
        tests = [p for p in self.predicates if p.__class__ is not OfRows or row_id in p.ids]
        if not tests:
            return False
        return any(values is None or matches(test, values) for values in images for test in tests)


def matches(predicate: Predicate, values: Row) -> bool:
    """Tell whether a row can matter to a scan."""
    try:
        return bool(predicate(values))
    except Exception:
        # The scan itself evaluates it elsewhere and reports its errors; here it only has to be on the safe side.
        return True


def images_of(
    generation: Generation, op: RowOp, kept: Mapping[RowId, Row], before: int
) -> Iterator[Row | None]:
    """Yield what a row was at ``before`` and what an operation makes of it; None where that is on disk and
    not ``kept``.

    So it is for a row that a flush has moved since the operation was prepared, and whose row group has left the cache.
    """
    if op.values is not None:
        yield generation.padding.pad(op.values)
    if op.replaced:
        if op.row_id in kept:
            yield generation.padding.pad(kept[op.row_id])
        else:
            yield from image_at(generation, op.row_id, before)


def image_at(
    generation: Generation, row_id: RowId, ts: int, loaded: Mapping[tuple[str, int], Row] = _NO_IMAGES
) -> Iterator[Row | None]:
    """Yield the version of a row that is visible at ``ts``, if there is one; None if it is on disk."""
    place = generation.find_row(row_id, ts)
    if place is None:
        return
    if isinstance(place, Version):
        if place.values is None:
            raise AssertionError("a version with values has none")
        yield generation.padding.pad(place.values)
        return
    part, position = place
    known = loaded.get((part.ref.name, position))
    if known is not None:
        yield generation.padding.pad(known)
        return
    values = part.file.row(position, generation.spec)
    if isinstance(values, tuple):
        yield values
    else:
        values.close()
        yield None


def notice(core: Commits, watches: Iterable[ScanWatch], writes: ShardWrites, by: WriteSet) -> None:
    """Compare a transaction's writes to a table, which are not readable yet, with the scans of others."""
    generation = core.shards[writes.shard].latest.generation
    if generation is None:
        return
    for watch in watches:
        if watch.conflict is None and watch.txn != by.txn:
            watch.conflict = conflict_with(core, watch, generation, writes, by)


def conflict_with(
    core: Commits, watch: ScanWatch, generation: Generation, writes: ShardWrites, by: WriteSet
) -> WriteConflict | None:
    """Return how a transaction's writes to a watched table contradict its scans, None if they do not.

    Some of them may be in memory already, above what is readable (``Coordinator.stage``): what they replace
    is what was there just below their timestamp. ``by`` has none while its batch is being formed, and then
    nothing of it is in memory.
    """
    before = by.ts - 1 if by.ts else INFINITY
    owner = core.committing.get(by.txn)
    own = None if owner is None else owner.own_of(writes.shard)
    kept = _NOTHING_KEPT if own is None else own.cold
    for op in writes.ops:
        if watch.concerns(op.row_id, images_of(generation, op, kept, before)):
            cause = Cause.TABLE_WATCHED if watch.predicates is None else Cause.SCAN_WATCHED
            return explain(cause, core, generation, op.row_id, op.values, by, before)
    if writes.parts or writes.ended:
        return WriteConflict(
            Cause.BULK_WATCHED, watch.shard, other_session=core.session_of_txn(by), changed_at=by.ts
        )
    return None


def explain(
    cause: Cause,
    core: Commits,
    generation: Generation,
    row_id: RowId,
    values: Row | None,
    by: WriteSet,
    before: int,
) -> WriteConflict:
    """Name the row by its primary key (at ``before`` if it is gone since), and who changed it."""
    primary = next((i for i in generation.spec.indexes if i.primary), None)
    key = index = None
    if primary is not None:
        image = values if values is not None else next(image_at(generation, row_id, before), None)
        if image is not None:
            index = primary.index
            key = generation.indexes[index].make.raw(generation.padding.pad(image))
    return WriteConflict(
        cause, generation.shard, key=key, index=index, other_session=core.session_of_txn(by), changed_at=by.ts
    )


def changed_since(core: Commits, generation: Generation, ts: int) -> set[RowId] | None:
    """Return the rows that commits after ``ts`` have touched; None if that cannot be told from memory.

    The caller has a read hold at ``ts``, which keeps superseded versions and tombstones from vacuum.
    """
    if max(generation.history_until, generation.purged_until, generation.bulk_ended) > ts:
        return None
    if any(part.ref.max_begin > ts for part in generation.parts):
        return None
    rows: set[RowId] = set()
    for segment, length in generation.log.capture():
        if segment.max_begin > ts:
            begins, row_ids = segment.begins, segment.row_ids
            rows.update(RowId(row_ids[i]) for i in range(length) if begins[i] > ts)
    for superseded, where, row_id, _newer in chain(reversed(generation.garbage), reversed(core.aside)):
        if superseded <= ts:
            break
        if where is generation:
            rows.add(row_id)
    return rows


def load_changed(core: Commits, generation: Generation, ts: int, loaded: Images) -> Steps[None]:
    """Load the rows that ``changed_for`` is going to compare from the parts that they lie in, into ``loaded``."""
    for _ in range(_ROUNDS):
        rows = changed_since(core, generation, ts) if generation.last_change > ts else None
        if not rows or len(rows) > MAX_COLD_IMAGES:
            return
        by_part: dict[str, tuple[PartState, list[int]]] = {}
        for row_id in rows:
            for moment in (ts, INFINITY):
                place = generation.find_row(row_id, moment)
                if isinstance(place, tuple) and (place[0].ref.name, place[1]) not in loaded:
                    by_part.setdefault(place[0].ref.name, (place[0], []))[1].append(place[1])
        missing = sum(len(positions) for _part, positions in by_part.values())
        if not missing or len(loaded) + missing > MAX_COLD_IMAGES:
            return
        for name, (part, positions) in by_part.items():
            found = part.file.rows(positions, generation.spec)
            if not isinstance(found, list):
                found = yield found
            loaded.update(zip(((name, position) for position in positions), found, strict=True))


def changed_for(
    core: Commits,
    generation: Generation,
    ts: int,
    watch: ScanWatch,
    loaded: Mapping[tuple[str, int], Row] = _NO_IMAGES,
) -> RowId | None:
    """Return a row that a scan at ``ts`` would meet differently now (0: unknown which), None if there is none.

    What happened in between does not matter, only the states then and now.
    """
    if generation.last_change <= ts:
        return None
    rows = changed_since(core, generation, ts)
    if rows is None or watch.predicates is None:
        return min(rows) if rows else RowId(0)
    for row_id in sorted(rows):
        if any(watch.concerns(row_id, image_at(generation, row_id, at, loaded)) for at in (ts, INFINITY)):
            return row_id
    return None
