"""The end of a transaction: commit or rollback, and what is released then.

    commit ──> nothing written            ended at once, at its read timestamp (or now, if it held locks)
        └────> write set ──> committer    ──> durable, applied: ``settled`` in that tick     locks go, callbacks run
                   └───────────────────────> refused: rolled back, nothing was applied

Between submission and outcome the transaction is "committing": a rollback has no effect, the log decides.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

from txn.base.errors import CommitWithdrawn, WriteConflict
from txn.base.types import Timestamp
from txn.locks.entry import NOBODY
from txn.transaction import entering, journal, writes
from txn.transaction.lifetime import ACTIVE, COMMITTING, ENDED

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState


def commit(txn: TransactionState) -> Timestamp | Awaitable[Timestamp]:
    """Commit; see ``txn.api``."""
    txn.life.check_idle()
    if txn.owner.doomed is not None:
        doomed = txn.owner.doomed
        rollback(txn)
        raise doomed
    for own in txn.own.values():
        if len(own.rows) > writes.PREPARE_ROWS:
            txn.life.state = COMMITTING
            return _commit_slowly(txn)
    return _submit(txn)


async def _commit_slowly(txn: TransactionState) -> Timestamp:
    """Commit a large write set, made in slices."""
    try:
        for own in txn.own.values():
            await writes.prepare(own)
        if txn.owner.doomed is not None:
            raise txn.owner.doomed
    except BaseException:
        txn.life.state = ACTIVE
        rollback(txn)
        raise
    txn.life.state = ACTIVE
    submitted = _submit(txn)
    return submitted if isinstance(submitted, int) else await submitted


def _submit(txn: TransactionState) -> Timestamp | Awaitable[Timestamp]:
    changes = writes.write_set(txn)
    core = txn.core
    try:
        txn.check_scans()
    except WriteConflict:
        rollback(txn)
        raise
    if changes is None:
        if core.staging is not None and txn.writing:
            txn.life.state = COMMITTING
            return _commit_nothing(txn)
        return _end_reading(txn)
    try:
        core.check_retractions(changes, txn.schema_states)
        validate = partial(core.check_watches, txn.scans.watches()) if txn.scans else None
        refused = partial(_refused, txn)
        timeline = txn.timeline
        # Asked even while there is one timeline: a large write set may join the queue when there are more.
        txn.everywhere = not core.only_within(timeline, changes)
        oracle = None if txn.everywhere else timeline.oracle
        future = core.log.committer.submit(changes, validate, refused, at=txn.commit_ts, oracle=oracle)
    except BaseException:
        rollback(txn)
        raise
    txn.life.state = COMMITTING
    txn.life.stop_clock()
    core.committing[txn.id] = txn
    return future


async def _commit_nothing(txn: TransactionState) -> Timestamp:
    """Commit when what it read is readable by all, if what it scanned is still so then.

    It may have met rows of a large commit under way that its scans, of what was readable, have not shown.
    """
    try:
        await txn.core.readable()
        if txn.owner.doomed is not None:
            raise txn.owner.doomed
        txn.check_scans()
    except BaseException:
        txn.life.state = ACTIVE
        rollback(txn)
        raise
    return _end_reading(txn)


def _end_reading(txn: TransactionState) -> Timestamp:
    """End a transaction without writes. What it read under locks is the state of now."""
    ts = txn.timeline.read_ts() if txn.writing else txn.read_ts
    _finish(txn)
    for callback in txn.callbacks:
        callback(ts)
    return ts


def withdraw(txn: TransactionState) -> bool:
    """Take a commit back; see ``txn.api``."""
    if txn.life.state is not COMMITTING:
        return False
    if txn.id in txn.core.committing:
        return txn.core.log.committer.withdraw(txn.id, CommitWithdrawn())
    txn.owner.doomed = CommitWithdrawn()  # its write set is being made
    return True


def settled(txn: TransactionState, ts: Timestamp) -> None:
    """The commit is readable."""
    for callback in txn.callbacks:
        callback(ts)
    _finish(txn)


def _refused(txn: TransactionState) -> None:
    """The committer gives up on it: nothing was applied (called just before the commit's future fails)."""
    if txn.life.state is COMMITTING:
        txn.core.committing.pop(txn.id, None)
        txn.life.state = ACTIVE
        rollback(txn)


def rollback(txn: TransactionState) -> None:
    """Roll back; see ``txn.api``. While a commit is under way it has no effect: the commit decides."""
    if txn.life.state is ACTIVE:
        journal.undo_all(txn)
        _finish(txn)


def _finish(txn: TransactionState) -> None:
    txn.life.state = ENDED
    core = txn.core
    if txn.owner is not NOBODY:  # even if it only reads by now: it may hold locks of a write that failed
        core.locks.release_all(txn.owner)
    txn.hold.release()
    if txn.others:
        entering.release_others(txn)
        _tell(txn)  # those that read beside it
    core.active.pop(txn.id, None)
    if txn.scans is not None:
        txn.scans.end()
        txn.scans = None
    txn.life.stop_clock()
    if txn.owner is NOBODY:
        return
    txn.views.clear()
    if len(txn.journal) > journal.AT_ONCE:
        for own in txn.own.values():
            core.take_apart(own.take_apart())
        core.dismantle(txn.journal)
        txn.journal = []
    txn.own.clear()
    txn.journal.clear()
    txn.calls = None
    _tell(txn)


def _tell(txn: TransactionState) -> None:
    for callback in txn.at_end:
        callback()
    txn.at_end.clear()
