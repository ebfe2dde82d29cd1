"""Lock escalation: a transaction with very many locks in one table trades them for one lock on the table (D16).

    rows, keys, ranges: S                 table S (with IX: SIX)
    more changes than half the bound      table X

It is tried once a transaction holds ``TxnOptions.table_locks`` locks of a table. If others are in the way it goes on
with fine locks and tries again later, because to wait while holding thousands of locks invites deadlocks; only past
``PATIENCE`` times the bound does it wait, which bounds memory. The fine locks that the table's lock covers are released
then, some in each turn of the loop: nobody can be waiting for them, as all others are kept out of the table by then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from txn.base.types import ShardId
from txn.locks.mode import IS, SUPREMUM, S, X
from txn.transaction.view import Steps

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

PATIENCE: Final = 8


def escalate(txn: TransactionState, shard: ShardId) -> Steps[None]:
    """Lock ``shard`` as a whole if the transaction has too many locks in it. Called past ``escalate_at``
    locks in all.
    """
    owner, locks, bound = txn.owner, txn.core.locks, txn.core.options.table_locks
    reads = changes = 0
    for granule, mode in owner.held.items():
        if type(granule) is tuple and granule[0] == shard:
            if mode in (IS, S):
                reads += 1
            else:
                changes += 1
    held = owner.held.get(shard)
    count = reads + changes
    if held is None or count < bound:
        owner.escalate_at = len(owner.held) + max(bound - count, bound // 4)
        return
    mode = X if changes * 2 > bound else SUPREMUM[held][S]
    if count > bound * PATIENCE:
        yield from txn.lock(shard, mode)
    elif not locks.try_acquire(owner, shard, mode):
        owner.escalate_at = len(owner.held) + bound // 4
        return
    for _ in locks.drop_covered(owner, shard):
        yield asyncio.sleep(0)
    locks.escalations += 1
    owner.escalate_at = len(owner.held) + bound
