"""Next-key locking: how a range read keeps phantoms away, and what an insert does about it (D52-D57, L24).

A reader of a range locks S the *range* of every boundary it meets and of the first one beyond (``txn.locks.ranges``),
each row it finds, and each key that somebody else has locked but nobody can see yet: of an insert under way. When it
had to wait for any of it, it looks again. An insert waits until nobody else has locked the range that its key lies
in, then locks its key; the range only has to be free at that moment (an instant IX)::

    reader of [3, 8]   S (2,5]  S (5,10]      insert 7:   IX (5,10] waits ...
    insert 7, before:  IX on key 7            reader:     S on key 7 waits ...

Keys and ranges are granules of their own (the orthogonal locks of D57), so reading a key does not hinder inserts
beside it, and unique keys being inserted side by side do not meet.

Why a locked range stays protected until its reader ends, though boundaries come and go:

- A boundary appears when an insert is applied. An insert of somebody else's into a locked range has waited; one
  that had its key before the reader came was waited for, and then the reader looked again. If its key lies beyond
  what was asked for but before the next boundary, nobody waits: it is taken for a boundary already, since when
  it becomes one, a lock of the next would no longer cover what lies before it.
- A boundary that is no entry (a key that is only locked, or whose entry has gone) divides what is locked after it,
  not what was locked before. So an insert asks for every range from its key up to the first entry.
- An own insert is no boundary while its transaction runs, so nothing has to be handed on from the next key to the
  new one (D55's lock state replication; its three scenarios are tests).
- A boundary goes when vacuum, flush or merge drop an entry (D61, D62). If its range is locked it stays as a boundary
  of the lock; if not, the gap above grows, and so does whatever is locked there.
- An update or delete of a row in the range waits for the reader's row lock, and leaves its entry behind.

A reader that has locked a range already does not wait for keys within it: who has locked those waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn.base.types import IndexId, Key, KeyRange, Row, ShardId
from txn.locks.granule import RANGE, Granule
from txn.locks.mode import IX, S
from txn.mvcc.generation import Generation
from txn.mvcc.index import TOP, Bounds
from txn.mvcc.keys import IndexKey
from txn.transaction.traversal import MAX_RANGE_KEYS, Traversal, ceiling, traverse
from txn.transaction.view import Steps, View, make_ready

if TYPE_CHECKING:
    from txn.locks.table import LockTable
    from txn.transaction.state import TransactionState


def lock_range(
    txn: TransactionState,
    view: View,
    index_id: IndexId,
    wanted: KeyRange,
    reverse: bool,
    limit: int | None,
    row_mode: int,
) -> Steps[Traversal | None]:
    """Lock a range with its rows, and return what it holds; None when it takes too many keys.

    The table is held at least IS. What is returned is the state of the tick in which this returns.
    """
    locks, owner, shard = txn.core.locks, txn.owner, view.shard
    shard_index = (shard, index_id)
    yield from make_ready(view, index_id, ordered=True)
    patient = True
    while True:
        met = traverse(
            locks, view.generation, view.own, txn.statement, index_id, wanted, reverse, limit, MAX_RANGE_KEYS
        )
        if met is None:
            return None
        waited = False
        listed = shard_index in locks.ranges
        for key in met.boundaries:
            locks.register_range(owner, shard, index_id, key)
        if not listed and met.boundaries and locks.ranges[shard_index].keys:
            continue  # locked keys are listed from now on: look again, with those beyond the range
        if patient and shard_index not in owner.spans:
            # Once, wait with empty hands for inserts under way: they may go on within the range.
            patient = False
            for key in _inserting(txn, shard, index_id, met.span):
                waited = True
                yield from txn.lock((shard, index_id, key), S)
            if waited:
                continue
        for key in met.boundaries:
            waited |= yield from txn.lock((shard, index_id, key, RANGE), S)
        for key in _inserting(txn, shard, index_id, met.span):
            waited |= yield from txn.lock((shard, index_id, key), S)
        for found in met.rows:
            if found.own is None:
                waited |= yield from txn.lock((shard, found.row_id), row_mode)
        if not waited:
            if met.boundaries:
                span = met.span
                which = span.low, span.low_inclusive, span.high, span.high_inclusive
                owner.spans.setdefault(shard_index, {})[which] = span  # once, however often it is read
            return met


def _inserting(txn: TransactionState, shard: ShardId, index_id: IndexId, span: Bounds) -> list[IndexKey]:
    """Return the keys that others have locked, maybe to insert them, outside of what was locked against that."""
    locks, owner = txn.core.locks, txn.owner
    ranges = locks.ranges.get((shard, index_id))
    if ranges is None:
        return []
    spans = owner.spans.get((shard, index_id), {}).values()
    return [
        key
        for key in span.within(ranges.keys)
        if locks.is_blocked(owner, (shard, index_id, key), S) and not any(s.contains(key) for s in spans)
    ]


def lock_new_key(
    txn: TransactionState, view: View, index_id: IndexId, ikey: IndexKey, row: Row, mode: int
) -> Steps[None]:
    """Lock a key that a row enters, while nobody else has locked a range that it lies in."""
    locks, owner, shard = txn.core.locks, txn.owner, view.shard
    key = (shard, index_id, ikey)
    waited_for: list[tuple[Granule, int | None]] = []
    try:
        while True:
            blocked = None
            if (shard, index_id) in locks.ranges:
                raw = view.generation.indexes[index_id].make.raw(row)
                for end in _ends_above(locks, view.generation, index_id, ikey, raw):
                    if locks.is_blocked(owner, (shard, index_id, end, RANGE), IX):
                        blocked = (shard, index_id, end, RANGE)
                        break
            if blocked is None:
                wait = locks.acquire(owner, key, mode)
                if wait is None:
                    return
                yield wait
                # A reader may have come while this waited; now that the key is locked, the next one will see it.
                continue
            before = owner.held.get(blocked)
            wait = locks.acquire(owner, blocked, IX)
            if wait is None:
                raise AssertionError("a blocked lock was granted at once")
            waited_for.append((blocked, before))  # granted, it may be, and given up all the same
            yield wait
    finally:
        for gap, before in reversed(waited_for):
            locks.demote(owner, gap, before)


def _ends_above(
    locks: LockTable, generation: Generation, index_id: IndexId, ikey: IndexKey, key: Key
) -> list[IndexKey]:
    """Return the ends of all locked ranges that a new key may lie in: up to the first entry at or above it.

    The keys of range locks below that entry are boundaries for who came after them only: whoever had locked the
    entry's range before holds all of what they divide.
    """
    entry = ceiling(generation, index_id, ikey, key)
    ranges = locks.ranges[generation.shard, index_id]
    ends = [bound for bound in ranges.bounds.irange(ikey, None if entry is TOP else entry) if bound != entry]
    return [*ends, entry]
