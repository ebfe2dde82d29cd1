"""Bulk load: Arrow batches become parts by reference (C18).

The table is locked X. Batches gather into parts of about a million rows, written and synced before the
commit's log entry names them; the entry itself stays small. Or they never come here: ``insert_parts`` has
workers elsewhere write the parts (``persist.part_job``), and is told their names. Duplicates are looked for
once, over the sidecars (``txn.transaction.duplicates``): among the new rows, against older parts whose key
range overlaps, and against hot rows and own intents through the new parts' sidecars. A table that this
transaction created or truncated has no old rows to look at.

The parts belong to the transaction like intents: later statements of it read them, a rollback forgets them.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.errors import DuplicateKey, SchemaChanged
from txn.base.slices import over
from txn.base.types import Key, PartRef, Row, ShardId, ShardIndex, ShardSpec
from txn.locks.mode import IX, X
from txn.mvcc.generation import Generation
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY
from txn.persist.parts.job import PartJob, WrittenPart
from txn.transaction import promotion, schema
from txn.transaction.bulk_ends import end_rows
from txn.transaction.duplicates import Run, first_duplicate, ranges_meet
from txn.transaction.journal import note, undo_load
from txn.transaction.looked_up import looked_up
from txn.transaction.view import View
from txn.values.columns import table_schema
from txn.values.exact import concatenated, table_of

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

PART_ROWS: Final = 1 << 20
Columns: TypeAlias = frozenset[int] | None
CHUNK_ROWS: Final = 1000
OWN_BYTES: Final = 16  # per row: its id and its begin


def let_go(txn: TransactionState, shard: ShardId) -> None:
    """Give up IX on a table that is about to be locked X, where that has protected nothing yet.

    Two loads that both hold it, as COPY does while it gathers its first rows, would wait for each other. The caller
    looks whether the schema is still the same once it has X.
    """
    owner = txn.owner
    if owner.held.get(shard) != IX or shard in txn.own or shard in txn.schema_states:
        return
    if any(type(granule) is tuple and granule[0] == shard for granule in owner.held):
        return
    txn.forget_view(shard)
    txn.core.locks.demote(owner, shard, None)


async def unless_locked(
    txn: TransactionState, shard: ShardId, change: Callable[[View], Awaitable[int]]
) -> int | None:
    """Do it under X on the table, or return None where somebody else has a lock on it.

    Not waited for: what the rows were found by may have been overtaken when the lock comes.
    """
    txn.life.check_active()
    if not txn.core.locks.try_acquire(txn.owner, shard, X):
        return None
    txn.check_scans()
    txn.life.busy += 1
    try:
        return await change(txn.write_view(shard))
    finally:
        txn.life.busy -= 1


async def under_lock(txn: TransactionState, shard: ShardId, load: Callable[[View], Awaitable[int]]) -> int:
    """Lock the table for a load, and do it."""
    spec = txn.view(shard).spec
    let_go(txn, shard)
    lock = txn.run(promotion.begin_write(txn, {shard: X}))
    if isinstance(lock, Awaitable):
        await lock
    if txn.view(shard).spec is not spec:
        raise SchemaChanged(shard)
    txn.life.busy += 1
    try:
        return await load(txn.write_view(shard))
    finally:
        txn.life.busy -= 1


async def insert(
    txn: TransactionState, view: View, batches: AsyncIterator[Any], changed: Columns = None
) -> int:
    """Write batches to parts of the transaction; returns the number of rows. The caller holds table X.

    ``changed``: the rows replace others of the transaction, which differ from them in these columns only.

    Raises DuplicateKey, and what ended the transaction meanwhile; then, and when ``batches`` fails, nothing of the load
    remains.
    """
    mark = txn.savepoint()
    new_parts: list[PartState] = []

    async def keep(ref: PartRef) -> None:
        new_parts.append(await adopt(txn, view, ref))  # at once: until then nobody would remove it again

    try:
        total = await _write(txn, view.shard, view.generation, batches, keep)
        await check_new(txn, view, new_parts, changed)
    except BaseException as error:
        await undo_load(txn, mark, error)
        raise
    return total


async def rewrite(txn: TransactionState, view: View, spec: ShardSpec, batches: AsyncIterator[Any]) -> int:
    """Write batches to parts that take the place of all rows, with another schema; returns the number of
    rows. The caller holds table X.

    What reads the table while ``batches`` are made finds the old rows, under the old schema. Raises as ``insert``.
    """
    generation = schema.following(view, spec)
    written: deque[PartRef] = deque()

    async def keep(ref: PartRef) -> None:
        written.append(ref)

    mark = txn.savepoint()
    try:
        total = await _write(txn, view.shard, generation, batches, keep)
        schema.start(txn, txn.view(view.shard), generation)
        await _adopt_all(txn, txn.view(view.shard), written, None)
    except BaseException as error:
        for ref in written:
            txn.core.discard_later(ref.name)
        await undo_load(txn, mark, error)
        raise
    return total


async def _write(
    txn: TransactionState,
    shard: ShardId,
    generation: Generation,
    batches: AsyncIterator[Any],
    keep: Callable[[PartRef], Awaitable[None]],
) -> int:
    """Write batches to parts of a generation, each given to ``keep`` as soon as it is there; returns the
    number of rows.
    """
    spec = generation.spec
    columns = table_schema(spec.columns)
    gathered: list[tuple[int, Any]] = []
    rows = size = total = 0

    async def write() -> None:
        nonlocal gathered, rows, size
        some, gathered, rows, size = gathered, [], 0, 0
        # Threads make and free the columns: giving memory back to the system takes milliseconds.
        tables = await txn.core.offload(partial(_assemble, columns, some))
        await keep(await txn.core.log.write_part(shard, spec, tables[0]))
        await txn.core.offload(tables.clear)

    async for batch in batches:
        txn.life.check_active()
        count = batch.num_rows
        if not count:
            continue
        gathered.append((generation.take_row_ids(count), batch))
        rows += count
        total += count
        size += batch.nbytes + count * OWN_BYTES
        del batch  # not beside the next one
        if over():  # batches may come without a wait
            await asyncio.sleep(0)
        if rows >= PART_ROWS or size >= txn.core.options.part_bytes:
            await write()
    if gathered:
        await write()
    return total


def _assemble(schema: Any, gathered: list[tuple[int, Any]]) -> list[Any]:
    """Return one table of batches with their row ids, in a list; ``gathered`` is emptied."""
    names = schema.names[:-2]
    tables: list[Any] = []
    for first, batch in gathered:
        columns = [batch.column(name) for name in names]
        columns.append(_count_up(first, batch.num_rows))
        columns.append(pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows))
        tables.append(table_of(columns, schema))
    gathered.clear()
    return [concatenated(tables)]


async def insert_parts(
    txn: TransactionState,
    view: View,
    write: Callable[[PartJob], Awaitable[Sequence[WrittenPart]]],
    changed: Columns = None,
) -> int:
    """Let ``write`` have parts written elsewhere, and make them the transaction's. The caller holds table X.

    As for ``insert``; whatever ``write`` does not return, of whichever attempt, is deleted.
    """
    mark = txn.savepoint()
    log = txn.core.log
    generation = view.generation
    part_bytes = txn.core.options.part_bytes
    job = await log.jobs.start_parts(
        view.shard, view.spec, int(generation.next_row_id), part_rows=PART_ROWS, part_bytes=part_bytes
    )
    try:
        written = await write(job)
    except BaseException as error:
        try:
            await undo_load(txn, mark, error)
        finally:  # also when it is cancelled: what workers are still at must not outlive this
            await log.jobs.end_parts(job, ())
        raise
    left = deque(log.here(part.ref) for part in written)
    try:
        await log.jobs.end_parts(job, [ref.name for ref in left])
        txn.life.check_active()
        generation.next_row_id = max([int(generation.next_row_id), *(part.next_row_id for part in written)])
        await _adopt_all(txn, view, left, changed)
    except BaseException as error:
        for ref in left:
            txn.core.discard_later(ref.name)
        await undo_load(txn, mark, error)
        raise
    return sum(part.ref.rows for part in written)


async def _adopt_all(txn: TransactionState, view: View, left: deque[PartRef], changed: Columns) -> None:
    """Adopt written parts, each taken out of ``left`` as soon as the transaction has it, and check their
    rows. Raises DuplicateKey.
    """
    new_parts: list[PartState] = []
    while left:
        new_parts.append(await adopt(txn, view, left.popleft()))
    await check_new(txn, view, new_parts, changed)


async def adopt(txn: TransactionState, view: View, ref: PartRef) -> PartState:
    """Make a part that is written the transaction's own, for its later statements and its commit."""
    own = txn.own_writes(view)
    try:
        file = await txn.core.log.open_part(ref)
        txn.life.check_active()  # else nobody would undo what follows
    except BaseException:
        txn.core.discard_later(ref.name)
        raise
    part = txn.core.announce_part(file, ref)
    statement = txn.statement
    own.parts.append((statement, part))

    def undo() -> None:
        own.parts.remove((statement, part))
        txn.core.forget_announced(ref.name)
        txn.core.discard_later(ref.name)

    note(txn, undo)
    return part


def _count_up(first: int, count: int) -> Any:
    """Return the int64 array first, first + 1, ... without holding the GIL."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), count)
    return pc.cumulative_sum(ones, start=pa.scalar(first - 1, pa.int64()))


async def replace(
    txn: TransactionState, view: View, changes: AsyncIterator[tuple[Iterable[int], Any]], changed: Columns
) -> int:
    """End rows and write what replaces them, under new ids, to parts. The caller holds table X. As ``insert``."""

    async def replacing() -> AsyncIterator[Any]:
        replaced = array("q")
        async for row_ids, batch in changes:
            replaced.extend(row_ids)
            yield batch
        if await end_rows(txn, view, replaced) != len(replaced):
            raise AssertionError(f"a row of shard {view.shard} that was scanned under lock has gone")

    return await insert(txn, view, replacing(), changed)


async def check_new(
    txn: TransactionState, view: View, new_parts: Sequence[PartState], changed: Columns
) -> None:
    """Raise DuplicateKey if a unique index would hold a key twice."""
    for definition in view.spec.indexes:
        kept = changed is not None and changed.isdisjoint(definition.attnums)
        if definition.unique and new_parts and not kept:
            await _check(txn, view, definition, tuple(new_parts))
    txn.life.check_active()


async def _check(
    txn: TransactionState, view: View, definition: ShardIndex, new_parts: tuple[PartState, ...]
) -> None:
    # Parts and hot rows of one tick: a flush beside the load moves rows from these to those.
    old_parts = tuple(part for part in view.parts(INFINITY) if part not in new_parts)
    hot = _hot_rows(view)
    overwritten = tuple(view.own.rows) if view.own is not None else ()
    hiding = [part.hiding(INFINITY) for part in old_parts]

    stopped = False

    def compare() -> Key | None:
        new = [Run(part.file.sorted_keys(definition.index)) for part in new_parts]
        old: list[Run] = []
        for part, dead in zip(old_parts, hiding, strict=True):
            keys = part.file.sorted_keys(definition.index)
            if not definition.nulls_distinct or any(ranges_meet(keys, run.sorted) for run in new):
                replaced = [p for row_id in overwritten for p in part.file.positions(row_id)]
                old.append(Run(keys, dead(), replaced))
        return first_duplicate([*new, *old], definition, stopped=lambda: stopped)

    try:
        duplicate = await txn.core.offload(compare)
    finally:
        stopped = True
    if duplicate is not None:
        raise DuplicateKey(view.shard, definition.index, duplicate)
    await _check_hot(view, definition, hot, new_parts)


def _hot_rows(view: View) -> list[Row]:
    """Return the hot rows and own intents as they are now."""
    own_rows = view.own.rows if view.own is not None else {}
    hot = [h.values for r, h in view.generation.rows.items() if h.values is not None and r not in own_rows]
    hot.extend(i.values for i in own_rows.values() if i.values is not None)
    return hot


async def _check_hot(
    view: View, definition: ShardIndex, hot: list[Row], new_parts: tuple[PartState, ...]
) -> None:
    """Raise DuplicateKey if a hot row or an own intent has a key of the new parts."""
    make = view.generation.indexes[definition.index].make
    padding = view.padding
    own_rows = view.own.rows if view.own is not None else {}
    for count, values in enumerate(hot, 1):
        if count % CHUNK_ROWS == 0:
            await asyncio.sleep(0)
        values = padding.pad(values)
        if make.exempt(make.of_row(values)):
            continue
        key = make.raw(values)
        with looked_up(new_parts if make.may_be_long else (), definition.index, (key,)) as looking:
            for step in looking:
                await step
            for part in new_parts:
                for position in part.lookup(definition.index, key):
                    if part.file.row_id(position) not in own_rows:
                        raise DuplicateKey(view.shard, definition.index, key)
