"""Row locks asked for by statements: SELECT ... FOR UPDATE | NO KEY UPDATE | SHARE | KEY SHARE, NOWAIT, SKIP LOCKED.

The rows were found by a read of the same transaction. Between that read and the lock somebody else may have committed,
so the caller gets each row's latest version and compares.

    update           X on the row, IX on the table
    no key update    SIX on the row, IX on the table
    share            S on the row, IS on the table
    key share        IS on the row, IS on the table
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from txn.base.types import RowId, RowWait, ShardId, StoredRow, Timestamp
from txn.locks.mode import IS, IX, ROW_MODES, SIX, SUPREMUM, RowLock, S, X
from txn.transaction.view import Steps
from txn.transaction.writes import base_rows

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState


def lock_rows(
    txn: TransactionState, shard: ShardId, row_ids: Sequence[RowId], mode: RowLock, wait: RowWait
) -> Steps[list[StoredRow | None]]:
    """See ``txn.api``."""
    if not txn.writing:
        raise AssertionError("begin_write comes before row locks")
    owner, locks = txn.owner, txn.core.locks
    wanted = ROW_MODES[mode]
    table = IX if wanted >= SIX else IS
    held = owner.held.get(shard)
    if held is None or SUPREMUM[held][table] != held:
        yield from txn.lock(shard, table)
    held = owner.held[shard]
    covered = held == X or (wanted <= S and held >= S)
    skipped: set[RowId] = set()
    if not covered:
        for row_id in row_ids:
            granule = (shard, row_id)
            if wait == "block":
                yield from txn.lock(granule, wanted)
            elif not locks.try_acquire(owner, granule, wanted):
                if wait == "nowait":
                    raise locks.not_available(owner, granule, wanted)
                skipped.add(row_id)
    view = txn.view(shard)
    rows = yield from base_rows(view, row_ids)
    own = view.own.rows if view.own is not None else {}
    return [
        None
        if row is None or row_id in skipped
        else StoredRow(row_id, row[0], Timestamp(0 if row_id in own else row[1]))
        for row_id, row in zip(row_ids, rows, strict=True)
    ]
