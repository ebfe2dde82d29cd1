"""Writing within a transaction: lock, read what is replaced, stage intents, check unique keys, undo on failure.

A statement's changes are staged together and checked together at the end, so that ``SET k = k + 1`` works where
the final state is unique. A failed statement leaves nothing but its locks.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, cast

from txn.base.errors import DuplicateKey
from txn.base.records import RowOp, SchemaChange, ShardWrites, WriteSet
from txn.base.slices import LOOK, Slice, over
from txn.base.types import IndexId, Row, RowId, ShardId, StoredRow, Timestamp
from txn.locks.mode import IX, SIX, SUPREMUM, S, X
from txn.mvcc.generation import Cold
from txn.mvcc.intents import Intent, OwnWrites
from txn.mvcc.keys import IndexKey, but
from txn.mvcc.many_keys import LongValues, held
from txn.mvcc.version import INFINITY, Version
from txn.transaction.escalation import escalate
from txn.transaction.journal import undo_failed
from txn.transaction.looked_up import is_long, looked_up
from txn.transaction.next_key import lock_new_key
from txn.transaction.reads import fetch
from txn.transaction.view import IndexView, Steps, View, make_ready

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

_ROW_ID: Final = itemgetter(0)

ESCALATE_ROWS: Final = 2000
"""An insert, update or delete of more rows than this takes table X instead of row locks."""

CHUNK_ROWS: Final = 500
FEW_ROWS: Final = 16
"""Rows that one turn takes however many indexes they have."""
"""Rows locked or checked between two turns of the event loop."""

SORTED_AT_ONCE: Final = 2048
"""Keys of an inverted index that one call sorts."""

PREPARE_ROWS: Final = 4000
"""Rows of a write set made between two turns of the event loop; one of more rows is made ahead."""


def insert(txn: TransactionState, shard: ShardId, rows: Sequence[Row]) -> Steps[list[RowId]]:
    """Stage new rows; returns their ids."""
    yield from intend(txn, shard)
    if len(rows) > ESCALATE_ROWS:
        # not waited for: two transactions that both hold IX would wait for each other
        txn.core.locks.try_acquire(txn.owner, shard, X)
    view = txn.write_view(shard)
    own = txn.own_writes(view)
    exclusive = txn.owner.held[shard] == X
    entered: list[tuple[IndexView, IndexKey, Row]] = []
    width = view.padding.width
    full: list[Row] = []
    pause = Slice(_chunk(view, len(rows)))
    view.index_views()
    longs = view.longs
    for row in rows:
        if len(row) < width:
            row = view.padding.pad(row)
        full.append(row)
        if longs:
            yield from _lock_many_keys(txn, view, longs, row, None, exclusive, entered)
        else:
            yield from lock_keys(txn, view, row, None, exclusive, entered)
        if pause.over():
            yield asyncio.sleep(0)
            if len(txn.owner.held) > txn.owner.escalate_at:
                yield from escalate(txn, shard)
                exclusive = txn.owner.held[shard] == X
    first = view.generation.take_row_ids(len(full))
    ids = cast("list[RowId]", list(range(first, first + len(full))))
    mark = len(txn.journal)
    statement = txn.statement
    try:
        for row_id, row in zip(ids, full, strict=True):
            own.put(row_id, row, statement, 0)
            txn.journal.append((own, row_id))
            if pause.over():
                yield asyncio.sleep(0)
        if len(full) > FEW_ROWS:
            yield from _ready_to_check(txn, view, entered)
        # One row and no part: a key that no hot row has is nobody's (the usual case, at a glance).
        single = len(own.rows) == 1 and not view.generation.parts and not own.parts
        for count, (index, ikey, row) in enumerate(entered, 1):
            if single and ikey not in view.generation.indexes[index.id].entries:
                continue
            yield from check_unique(txn, view, own, index, ikey, row, exclusive)
            if count % CHUNK_ROWS == 0:
                yield asyncio.sleep(0)
    except BaseException as error:
        yield from undo_failed(txn, mark, error)
        raise
    if len(full) > 1:
        txn.core.let_go(entered, full)
    return ids


def _chunk(view: View, rows: int) -> int:
    """Return of how many rows the keys are locked between two turns of the event loop, at most."""
    return CHUNK_ROWS if rows < FEW_ROWS else max(CHUNK_ROWS // max(len(view.index_views()), 1), FEW_ROWS)


def intend(txn: TransactionState, shard: ShardId) -> Steps[None]:
    """Hold at least IX on a shard that is about to be written."""
    owner = txn.owner
    if len(owner.held) > owner.escalate_at:
        yield from escalate(txn, shard)
    held = owner.held.get(shard)
    if txn.writing and (held is None or SUPREMUM[held][IX] != held):
        yield from txn.lock(shard, IX)


def lock_keys(
    txn: TransactionState,
    view: View,
    row: Row,
    old: Row | None,
    exclusive: bool,
    entered: list[tuple[IndexView, IndexKey, Row]],
) -> Steps[None]:
    """Lock the keys that ``row`` enters (those that ``old`` does not have); note the unique ones.

    A key that several rows may have (with NULL, unless NULLs are not distinct) is as in a non-unique index (D59).
    """
    ranges = txn.core.locks.ranges  # usually empty: then nobody has to be kept from seeing phantoms (U3)
    for index in view.index_views():
        if exclusive and index.inverted:
            continue
        ikey = index.of_row(row)
        before = () if old is None else (index.of_row(old),)
        if ikey in before:
            continue
        if ikey.__class__ is frozenset:
            if over():
                yield asyncio.sleep(0)
            ikey = but(ikey, before)
            if over():
                yield asyncio.sleep(0)
            yield from _lock_entries(txn, view, index.id, ikey)
            continue
        mode = IX
        if index.unique and not index.make.exempt(ikey):
            if index.id not in txn.deferred:
                entered.append((index, ikey, row))
            mode = X
        elif not index.sorted and index.make.has_null(ikey):
            continue  # nobody can look it up, nor meet it in a range
        if exclusive:
            continue
        if ranges and index.sorted:
            yield from lock_new_key(txn, view, index.id, ikey, row, mode)
            continue
        wait = txn.core.locks.acquire(txn.owner, (view.shard, index.id, ikey), mode)
        if wait is not None:
            yield wait
            if ranges and index.sorted:
                yield from lock_new_key(txn, view, index.id, ikey, row, mode)


def _lock_many_keys(
    txn: TransactionState,
    view: View,
    longs: Sequence[LongValues],
    row: Row,
    old: Row | None,
    exclusive: bool,
    entered: list[tuple[IndexView, IndexKey, Row]],
) -> Steps[None]:
    """As ``lock_keys``, where a row may have very many."""
    with held([] if exclusive else longs, row, *(() if old is None else (old,))) as making:
        for _ in making:
            yield asyncio.sleep(0)
        yield from lock_keys(txn, view, row, old, exclusive, entered)


def _in_order(keys: frozenset[IndexKey]) -> Steps[Iterable[IndexKey]]:
    """Return keys in their order; many are sorted some at a time, and merged while they are asked for."""
    if len(keys) <= SORTED_AT_ONCE:
        return sorted(keys)
    left, runs = iter(keys), []
    while run := sorted(islice(left, SORTED_AT_ONCE)):
        runs.append(run)
        if over():
            yield asyncio.sleep(0)
    return heapq.merge(*runs)


def _lock_entries(
    txn: TransactionState, view: View, index: IndexId, keys: frozenset[IndexKey]
) -> Steps[None]:
    """Lock the keys that a row enters in an inverted index, which may be many, as those of a plain one."""
    owner = txn.owner
    ordered = yield from _in_order(keys)
    for count, ikey in enumerate(ordered, 1):
        if not count % LOOK and over():
            yield asyncio.sleep(0)
        if len(owner.held) > owner.escalate_at:
            yield from escalate(txn, view.shard)
        if owner.held[view.shard] == X:
            return
        wait = txn.core.locks.acquire(owner, (view.shard, index, ikey), IX)
        if wait is not None:
            yield wait


def live_with(
    view: View, own: OwnWrites | None, index: IndexView, ikey: IndexKey, row: Row
) -> tuple[list[RowId], list[RowId]]:
    """Return (own rows, committed rows not overwritten) that have a key now, all statements counted."""
    mine = [r for r, _v in own.rows_with(index.id, ikey, INFINITY)] if own is not None else []
    generation = view.generation
    parts = view.parts(INFINITY)
    if not parts and ikey not in generation.indexes[index.id].entries:
        return mine, []
    found: dict[RowId, Version] = {}
    cold: dict[RowId, Cold] = {}
    own_parts = own is not None and bool(own.parts)
    generation.find(index.id, index.make.raw(row), INFINITY, found, cold, parts, own_parts)
    rows = own.rows if own is not None else {}
    return mine, [r for r in (*found, *cold) if r not in rows]


def _ready_to_check(
    txn: TransactionState, view: View, entered: Sequence[tuple[IndexView, IndexKey, Row]]
) -> Steps[None]:
    """Make the indexes over intents in which unique keys are about to be looked for."""
    for index in view.index_views() if entered else ():
        if index.unique and index.id not in txn.deferred:
            yield from make_ready(view, index.id)


def check_unique(
    txn: TransactionState,
    view: View,
    own: OwnWrites,
    index: IndexView,
    ikey: IndexKey,
    row: Row,
    exclusive: bool,
) -> Steps[None]:
    """Raise DuplicateKey if two rows have a key that this transaction has locked (D51)."""
    if index.make.may_be_long and is_long(key := index.make.raw(row)):
        with looked_up(view.parts(INFINITY), index.id, [key]) as looking:
            yield from looking
            yield from _check_unique(txn, view, own, index, ikey, row, exclusive)
    else:
        yield from _check_unique(txn, view, own, index, ikey, row, exclusive)


def _check_unique(
    txn: TransactionState,
    view: View,
    own: OwnWrites,
    index: IndexView,
    ikey: IndexKey,
    row: Row,
    exclusive: bool,
) -> Steps[None]:
    while True:
        mine, committed = live_with(view, own, index, ikey, row)
        if len(mine) + len(committed) <= 1:
            return
        # Whoever has locked the row may be deleting it, or giving it another key.
        waits = len(mine) <= 1 and committed and not exclusive
        if waits and (yield from txn.lock((view.shard, committed[0]), S)):
            continue
        raise DuplicateKey(view.shard, index.id, index.make.raw(row))


def check_all_unique(txn: TransactionState, shard: ShardId, index_id: IndexId) -> Steps[None]:
    """Check all own rows against one unique index whose check was deferred; their keys are locked X already."""
    view = txn.view(shard)
    own = view.own
    if own is None:
        return
    exclusive = txn.owner.held[shard] == X
    index = next(i for i in view.index_views() if i.id == index_id)
    yield from make_ready(view, index_id)
    for count, intent in enumerate(list(own.rows.values()), 1):
        if count % CHUNK_ROWS == 0:
            yield asyncio.sleep(0)
        if intent.values is not None:
            ikey = index.of_row(intent.values)
            if not index.make.exempt(ikey):
                yield from check_unique(txn, view, own, index, ikey, intent.values, exclusive)


def find_conflicts(
    txn: TransactionState, shard: ShardId, row: Row, indexes: Sequence[IndexId]
) -> Steps[StoredRow | None]:
    """Lock the unique keys a row would have and return a row that has one, locked X, or None."""
    yield from intend(txn, shard)
    view = txn.write_view(shard)
    exclusive = txn.owner.held[shard] == X
    if len(row) < view.padding.width:
        row = view.padding.pad(row)
    for index in view.index_views():
        if index.id not in indexes:
            continue
        ikey = index.of_row(row)
        if index.make.exempt(ikey):
            continue
        if not exclusive:
            yield from txn.lock((shard, index.id, ikey), X)
        if index.make.may_be_long and is_long(key := index.make.raw(row)):
            with looked_up(view.parts(INFINITY), index.id, [key]) as looking:
                yield from looking
                found = yield from _row_with(txn, view, index, ikey, row, exclusive)
        else:
            found = yield from _row_with(txn, view, index, ikey, row, exclusive)
        if found is not None:
            return found
    return None


def _row_with(
    txn: TransactionState, view: View, index: IndexView, ikey: IndexKey, row: Row, exclusive: bool
) -> Steps[StoredRow | None]:
    """Return a row that has a key that is locked, locked X, or None."""
    while True:
        mine, committed = live_with(view, view.own, index, ikey, row)
        if mine and view.own is not None:
            return StoredRow(mine[0], view.own.rows[mine[0]].values or (), Timestamp(0))
        if not committed:
            return None
        if not exclusive and (yield from txn.lock((view.shard, committed[0]), X)):
            continue
        (base,) = yield from base_rows(view, committed[:1])
        if base is None:
            raise AssertionError("a locked row has vanished")
        return StoredRow(committed[0], base[0], Timestamp(base[1]))


def change(
    txn: TransactionState,
    shard: ShardId,
    changes: Sequence[tuple[RowId, Row | None]],
    *,
    keys_kept: bool = False,
) -> Steps[list[bool]]:
    """Update (or delete, where the new row is None): lock, read what is replaced, stage, check.

    ``keys_kept``: no column of an index changes.
    """
    owner = txn.owner
    if owner.held.get(shard) != IX or len(owner.held) > owner.escalate_at:
        yield from intend(txn, shard)
    view = txn.write_view(shard)
    own = txn.own_writes(view)
    if len(changes) > ESCALATE_ROWS:
        txn.core.locks.try_acquire(owner, shard, X)
    exclusive = owner.held[shard] == X
    if not exclusive:
        acquire = txn.core.locks.acquire
        # In one order for all: scans meet the same rows in different orders, which would make them deadlock.
        ordered = changes if len(changes) == 1 else sorted(changes, key=_ROW_ID)
        for count, (row_id, row) in enumerate(ordered, 1):
            wait = acquire(owner, (shard, row_id), X if row is None else SIX)
            if wait is not None:
                yield wait
            if count % CHUNK_ROWS == 0:
                yield asyncio.sleep(0)
                if len(owner.held) > owner.escalate_at:
                    yield from escalate(txn, shard)
                    if exclusive := owner.held[shard] == X:
                        break
    if txn.scans is not None:
        txn.check_scans()  # the new values were made from what a scan saw
    if exclusive and len(changes) > 1 and (keys_kept or all(row is None for _id, row in changes)):
        return (yield from _replace_plainly(txn, view, own, changes))
    bases: list[tuple[Row, int] | None] = []
    at_hand = None
    if len(changes) == 1:
        at_hand = _base_at_hand(view, own, changes[0][0], keep=not exclusive)
    if at_hand is not None:
        bases.append(at_hand)
    else:
        for start in range(0, len(changes), PREPARE_ROWS):
            some = changes[start : start + PREPARE_ROWS]
            bases += yield from base_rows(view, [row_id for row_id, _row in some], keep=not exclusive)
    width = view.padding.width
    entered: list[tuple[IndexView, IndexKey, Row]] = []
    staged: list[tuple[RowId, Row | None, int]] = []
    pause = Slice(_chunk(view, len(changes))) if len(changes) > 1 else None
    indexes = view.index_views()
    longs = () if exclusive else view.longs
    for (row_id, row), base in zip(changes, bases, strict=True):
        if base is None:
            continue
        if row is not None:
            if len(row) < width:
                row = view.padding.pad(row)
            old = base[0]
            if longs:
                with held(longs, row, old) as making:
                    for _ in making:
                        yield asyncio.sleep(0)
                    yield from _lock_changed(txn, view, indexes, row_id, row, old, exclusive, entered)
            else:
                for index in indexes:  # as ``_lock_changed``, which most changes do not come to
                    if not (exclusive and index.inverted) and index.of_row(row) != index.of_row(old):
                        yield from _lock_changed(txn, view, indexes, row_id, row, old, exclusive, entered)
                        break
        staged.append((row_id, row, base[1]))
        if pause is not None and pause.over():
            yield asyncio.sleep(0)
    mark = len(txn.journal)
    statement = txn.statement
    try:
        for row_id, row, begin in staged:
            own.put(row_id, row, statement, begin)
            txn.journal.append((own, row_id))
            if pause is not None and pause.over():
                yield asyncio.sleep(0)
        if len(staged) > FEW_ROWS:
            yield from _ready_to_check(txn, view, entered)
        for count, (index, ikey, row) in enumerate(entered, 1):
            yield from check_unique(txn, view, own, index, ikey, row, exclusive)
            if count % CHUNK_ROWS == 0:
                yield asyncio.sleep(0)
    except BaseException as error:
        yield from undo_failed(txn, mark, error)
        raise
    found = [base is not None for base in bases]
    if len(found) > 1:
        txn.core.let_go(bases, staged, entered)
    return found


def _lock_changed(
    txn: TransactionState,
    view: View,
    indexes: Sequence[IndexView],
    row_id: RowId,
    row: Row,
    old: Row,
    exclusive: bool,
    entered: list[tuple[IndexView, IndexKey, Row]],
) -> Steps[None]:
    """Lock what a row enters that has other keys than it had, where that has to be locked or looked at."""
    for index in indexes:
        if not (exclusive and index.inverted) and index.of_row(row) != index.of_row(old):
            break
    else:
        return
    if not exclusive and _leaves_key(view, row, old):
        yield from txn.lock((view.shard, row_id), X)
    yield from lock_keys(txn, view, row, old, exclusive, entered)


def delete(txn: TransactionState, shard: ShardId, row_ids: Sequence[RowId]) -> Steps[list[bool]]:
    """Delete rows, as ``change`` does."""
    changes: list[tuple[RowId, Row | None]] = []
    for start in range(0, len(row_ids), PREPARE_ROWS):
        if start:
            yield asyncio.sleep(0)
        changes += [(row_id, None) for row_id in row_ids[start : start + PREPARE_ROWS]]
    found = yield from change(txn, shard, changes)
    txn.core.let_go(changes)
    return found


def _replace_plainly(
    txn: TransactionState, view: View, own: OwnWrites, changes: Sequence[tuple[RowId, Row | None]]
) -> Steps[list[bool]]:
    """Stage changes under table X that enter no key: the old values need not be read, so parts are not."""
    width = view.padding.width
    statement = txn.statement
    mark = len(txn.journal)
    note = txn.journal.append
    found: list[bool] = []
    try:
        for start in range(0, len(changes), CHUNK_ROWS):
            some = changes[start : start + CHUNK_ROWS]
            for (row_id, row), begin in zip(some, _begins(view, own, some), strict=True):
                found.append(begin is not None)
                if begin is not None:
                    if row is not None and len(row) < width:
                        row = view.padding.pad(row)
                    own.put(row_id, row, statement, begin)
                    note((own, row_id))
            yield asyncio.sleep(0)
    except BaseException as error:
        yield from undo_failed(txn, mark, error)
        raise
    return found


def _begins(view: View, own: OwnWrites, changes: Sequence[tuple[RowId, Row | None]]) -> Iterator[int | None]:
    """Yield the begin of each row's committed version (0: it has none), None where the row is gone."""
    own_rows, rows = own.rows, view.generation.rows
    parts = view.parts(INFINITY)
    for row_id, _row in changes:
        intent = own_rows.get(row_id)
        if intent is not None:
            yield None if intent.values is None else intent.base
            continue
        head = rows.get(row_id)
        if head is not None:
            yield None if head.values is None else head.begin
            continue
        for part in parts:
            position = part.find(row_id, INFINITY)
            if position is not None:
                yield part.begin(position)
                break
        else:
            yield None


def _leaves_key(view: View, row: Row, old: Row) -> bool:
    """Tell whether a unique key changes: others may rely on the old one (``key share``)."""
    return any(index.unique and index.of_row(row) != index.of_row(old) for index in view.index_views())


def _base_at_hand(view: View, own: OwnWrites, row_id: RowId, *, keep: bool) -> tuple[Row, int] | None:
    """Return what ``base_rows`` would of a row at hand without own intents, the usual case; None says nothing."""
    if row_id in own.rows:
        return None
    head = view.generation.rows.get(row_id)
    if head is not None:
        values = head.values
        if values is None:
            return None
        return (values if len(values) >= view.padding.width else view.padding.pad(values)), head.begin
    place = view.generation.find_row(row_id, INFINITY, view.parts(INFINITY))
    if not isinstance(place, tuple):
        return None
    part, position = place
    stored = part.file.row(position, view.spec)
    if not isinstance(stored, tuple):
        stored.close()  # its row group has to be read first
        return None
    if keep:
        own.cold[row_id] = stored
    return stored, part.begin(position)


def base_rows(
    view: View, row_ids: Sequence[RowId], *, keep: bool = False
) -> Steps[list[tuple[Row, int] | None]]:
    """Return each row's newest values and the begin of its committed version; None where it is gone.

    ``keep``: the rows are about to be replaced, and others may have scanned the table (no lock keeps them out); so
    those that lie in parts are remembered, because their row group may not be in memory any more at the commit.
    """
    generation = view.generation
    own_rows = view.own.rows if view.own is not None else {}
    padding = view.padding
    width = padding.width
    out: list[tuple[Row, int] | None] = []
    missing: list[tuple[int, RowId, Cold]] = []
    parts = view.parts(INFINITY)
    for count, row_id in enumerate(row_ids, 1):
        if count % CHUNK_ROWS == 0:
            yield asyncio.sleep(0)
            parts = view.parts(INFINITY)  # a flush may have moved rows meanwhile
        intent = own_rows.get(row_id)
        if intent is not None:
            out.append(None if intent.values is None else (intent.values, intent.base))
            continue
        head = generation.rows.get(row_id)
        if head is not None:
            values = head.values
            if values is not None and len(values) < width:
                values = padding.pad(values)
            out.append(None if values is None else (values, head.begin))
            continue
        place = generation.find_row(row_id, INFINITY, parts)
        if isinstance(place, tuple):
            missing.append((len(out), row_id, place))
        out.append(None)
    if missing:
        stored: list[StoredRow | None] = [None] * len(out)
        yield from fetch(view, missing, stored)
        for place_, row_id, _cold in missing:
            row = stored[place_]
            if row is not None:
                out[place_] = (row.values, row.begin)
                if keep and view.own is not None:
                    view.own.cold[row_id] = row.values
    return out


def _row_ops(own: OwnWrites, intents: Iterable[tuple[RowId, Intent]]) -> list[RowOp]:
    """Return what the log must know of intents; of a row inserted and deleted here, nothing."""
    return [
        RowOp(row_id, Timestamp(intent.base), intent.values)
        for row_id, intent in intents
        if intent.values is not None or intent.base or own.parts
    ]


async def prepare(own: OwnWrites) -> None:
    """Make a large write set's operations in slices; nothing is written to ``own`` meanwhile."""
    ops: list[RowOp] = []
    rows = iter(own.rows.items())
    while chunk := list(islice(rows, PREPARE_ROWS)):
        ops += _row_ops(own, chunk)
        await asyncio.sleep(0)
    own.ops = ops


def write_set(txn: TransactionState) -> WriteSet | None:
    """Return what the log must know, or None if nothing was written."""
    changes: list[SchemaChange] = []
    for shard, state in txn.schema_states.items():
        if state.dropped:
            if not state.created:
                changes.append(SchemaChange(shard=shard, forget=True))
        else:
            changes.append(SchemaChange(shard=shard, spec=state.spec, truncate=state.truncated))
    writes: list[ShardWrites] = []
    for shard, own in txn.own.items():
        dropped = txn.schema_states.get(shard)
        if dropped is not None and dropped.dropped:
            continue
        ops = _row_ops(own, own.rows.items()) if own.ops is None else own.ops
        if ops and not own.parts and not own.ended:
            writes.append(ShardWrites(shard=shard, ops=tuple(ops)))
        elif ops or own.parts or own.ended:
            writes.append(
                ShardWrites(
                    shard=shard,
                    ops=tuple(ops),
                    parts=tuple(part.ref for _statement, part in own.parts),
                    next_row_id=own.generation.next_row_id if own.parts else 0,
                    ended=tuple(part.record for _statement, parts in own.ended for part in parts.values()),
                )
            )
    if not changes and not writes:
        return None
    return WriteSet(txn=txn.id, ts=Timestamp(0), shards=tuple(writes), schema=tuple(changes))
