"""Taking back what a transaction has done: a savepoint, a statement that failed, all of it.

``StoreTransaction.journal`` has an entry for each thing done, latest last: an intent to take back, as (own writes, row id), or a function
to call. A place in it is a *mark*: how long it was then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from txn.lifetime import ACTIVE

if TYPE_CHECKING:
    from txn.transaction import StoreTransaction

UNDO_ROWS: Final = 4000  # taken back in one turn of the loop


def undo_to(txn: StoreTransaction, mark: int) -> None:
    """Undo everything the journal holds beyond ``mark``, latest first."""
    journal = txn.journal
    while len(journal) > mark:
        entry = journal.pop()
        if isinstance(entry, tuple):
            own, row_id = entry
            own.pop(row_id)
        else:
            entry()


async def undo_slowly(txn: StoreTransaction, mark: int) -> None:
    """Undo much, a slice per turn of the loop; who gives up in between finds what is left in the journal."""
    txn.life.busy += 1
    try:
        while len(txn.journal) - mark > UNDO_ROWS:
            undo_to(txn, len(txn.journal) - UNDO_ROWS)
            await asyncio.sleep(0)
            if txn.life.state is not ACTIVE:
                raise txn.life.ended()
    finally:
        txn.life.busy -= 1
    undo_to(txn, mark)


def undo_all(txn: StoreTransaction) -> None:
    """Undo everything, of a transaction that ends: many intents go with what holds them (``txn.ending``)."""
    if len(txn.journal) <= UNDO_ROWS:
        undo_to(txn, 0)
        return
    for entry in reversed(txn.journal):
        if not isinstance(entry, tuple):
            entry()
