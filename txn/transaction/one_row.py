"""One new row, the usual INSERT: as plain calls where nothing has to be waited for, as steps
(``txn.transaction.writes``) otherwise.

    begin_write       the table's lock is free, nothing was read before
    insert            keys locked ─> nobody has the unique ones ─> intent staged ─> row id
    insert_unless     some unique keys looked up first: a row that has one is the answer instead

A step costs a generator, which a single row would need half a dozen of. What begins at once either ends at
once, or has changed nothing but locks that are held, which the steps find held when they start over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from txn.base.types import IndexId, Row, RowId, ShardId, StoredRow
from txn.locks.entry import NOBODY
from txn.locks.mode import IX, X
from txn.transaction import writes
from txn.transaction.looked_up import is_long
from txn.transaction.promotion import check_schemas
from txn.transaction.view import IndexView, Steps, View

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState


def begin_write(txn: TransactionState, modes: dict[ShardId, int]) -> bool:
    """Do what ``promotion.begin_write`` does for a transaction that has read nothing; False: that has to do it.

    Raises SchemaChanged, and Deadlock for a victim.
    """
    core, owner = txn.core, txn.owner
    if txn.writing or txn.reads_so_far is not None or core.crowded is not None or owner is NOBODY:
        return False
    for shard, mode in sorted(modes.items()) if len(modes) > 1 else modes.items():
        if not core.locks.try_acquire(owner, shard, mode):
            return False
    if txn.views:
        check_schemas(txn)
        txn.views.clear()
    txn.writing = True
    return True


def insert(txn: TransactionState, shard: ShardId, row: Row, first: Sequence[IndexId] = ()) -> RowId | None:
    """Stage a new row and return its id; None: ``writes.insert`` has to, or there may be another with one of its keys.

    ``first``: unique indexes whose keys are looked up before the others are locked. Raises Deadlock for a victim.
    """
    owner, locks = txn.owner, txn.core.locks
    held = owner.held
    if locks.ranges or held.get(shard) != IX or len(held) > owner.escalate_at:
        return None
    view = txn.write_view(shard)
    if view.own is not None or txn.scans is not None:
        return None
    if len(row) < view.padding.width:
        row = view.padding.pad(row)
    indexes = view.index_views()
    if first:
        for index in indexes:
            if index.id in first and not _enter(txn, view, index, row):
                return None
    for index in indexes:
        if index.id not in first and not _enter(txn, view, index, row):
            return None
    row_id = view.generation.take_row_ids(1)
    own = txn.own_writes(view)
    own.put(row_id, row, txn.statement, 0)
    txn.journal.append((own, row_id))
    return row_id


def _enter(txn: TransactionState, view: View, index: IndexView, row: Row) -> bool:
    """Lock the key that ``row`` has in an index; False: it is not free, or a row may have it that must not."""
    if index.inverted:
        return False  # any number of keys, which are not made twice
    key = index.of_row(row)
    if index.unique and not index.make.exempt(key):
        if not txn.core.locks.try_acquire(txn.owner, (view.shard, index.id, key), X):
            return False
        generation = view.generation
        if key in generation.indexes[index.id].entries:
            return False
        if not generation.parts:
            return True
        raw = index.make.raw(row)
        if index.make.may_be_long and is_long(raw):
            return False
        # Where a part has it, maybe of a row that has ended, the steps look closer.
        return not any(part.lookup(index.id, raw) for part in generation.parts)
    if not index.sorted and index.make.has_null(key):
        return True  # nobody can look it up, nor meet it in a range
    return txn.core.locks.try_acquire(txn.owner, (view.shard, index.id, key), IX)


def insert_unless(
    txn: TransactionState, shard: ShardId, row: Row, indexes: Sequence[IndexId]
) -> Steps[RowId | StoredRow]:
    """Stage a new row and return its id, or return, locked X, a row that has one of its keys in ``indexes``."""
    found = yield from writes.find_conflicts(txn, shard, row, indexes)
    if found is not None:
        return found
    (row_id,) = yield from writes.insert(txn, shard, [row])
    return row_id
