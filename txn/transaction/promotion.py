"""Promotion: a transaction that has only read begins to write (docs/internals/transactions.md, N8).

    lock      all that was read and is needed now, granule by granule in one order for all transactions; ranges last
    load      what scans have to be compared with and lies on disk
    compare   in one tick, under the locks: schemas, scans, ranges, keys are as they were at the read timestamp
    watch     scans, which are not locked, from this tick on

From then on it reads the latest committed state; nothing that it read before has changed, or it fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from txn.base.errors import ReadOnlyTransaction, SchemaChanged, WriteConflict
from txn.base.types import ShardId
from txn.locks.entry import NOBODY
from txn.locks.granule import Granule
from txn.locks.mode import S
from txn.transaction import entering
from txn.transaction.lifetime import ACTIVE
from txn.transaction.next_key import lock_range
from txn.transaction.view import Steps, View

if TYPE_CHECKING:
    from txn.transaction.read_set import ReadSet
    from txn.transaction.state import TransactionState


def begin_write(txn: TransactionState, modes: dict[ShardId, int]) -> Steps[None]:
    """Lock tables for a writing statement; promote the transaction if this is its first.

    Raises WriteConflict, SchemaChanged, ReadOnlyTransaction, and what waiting for locks raises.
    """
    acquire = txn.core.locks.acquire
    owner = txn.owner
    if owner is NOBODY:
        raise ReadOnlyTransaction("the transaction began as a read-only one")
    if txn.writing:
        for shard, mode in modes.items():
            wait = acquire(owner, shard, mode)
            if wait is not None:
                yield wait
        return
    while txn.core.crowded is not None and not owner.held and not txn.urgent:
        yield asyncio.wait([txn.core.crowded])
    reads = txn.reads_so_far
    wants: Iterable[tuple[Granule, int]] = sorted(modes.items()) if reads is None else reads.wants(modes)
    for granule, mode in wants:
        wait = acquire(owner, granule, mode)
        if wait is not None:
            yield wait
    if reads is not None:
        yield from _lock_ranges(txn, reads)
        yield from reads.load(txn.core, txn.read_ts)
    check_schemas(txn)
    if reads is not None:
        reads.check(txn.core, txn.read_ts)
    _turn(txn, reads)


def is_current(txn: TransactionState) -> bool:
    """Tell whether all that was read is still so; False also where only files could tell. In one tick, without locks.

    What is compared is the latest state, which is never behind ``read_ts()``: unchanged there, unchanged at any
    timestamp until then.
    """
    reads, shards = txn.reads_so_far, txn.core.shards
    try:
        check_schemas(txn)
        if reads is None:
            return True
        for shard in reads.scans:
            generation = shards[shard].latest.generation
            if generation is None or generation.last_change > txn.read_ts:
                return False
        reads.check(txn.core, txn.read_ts)
    except (SchemaChanged, WriteConflict):
        return False
    return True


def _turn(txn: TransactionState, reads: ReadSet | None) -> None:
    """Write from this tick on; what was read is current."""
    txn.writing = True
    if reads is not None:
        for shard, predicates in reads.scans.items():
            watched = txn.unlocked_scans(shard)
            if watched is not None:
                watched.keep(shard, predicates)
        txn.reads_so_far = None
    txn.views.clear()


def _lock_ranges(txn: TransactionState, reads: ReadSet) -> Steps[None]:
    """Lock the ranges that were read, as they are now; their tables are locked IS at least."""
    for shard, index, wanted, reverse, limit, _found in reads.ranges:
        if txn.owner.held[shard] >= S:
            continue
        entry = txn.core.shards[shard].latest
        if entry.generation is None or entry.spec is None or index not in entry.generation.indexes:
            raise SchemaChanged(shard)
        view = View(shard, entry.generation, entry.spec, None)
        if (yield from lock_range(txn, view, index, wanted, reverse, limit, S)) is None:
            yield from txn.lock(shard, S)


def check_schemas(txn: TransactionState) -> None:
    """Raise SchemaChanged unless every schema used so far is still the current one (D77)."""
    for shard, view in txn.views.items():
        if shard in txn.schema_states:
            continue
        latest = txn.core.shards[shard].latest
        if latest.spec is not view.spec or latest.generation is not view.generation:
            raise SchemaChanged(shard)


def renew(txn: TransactionState, *, after_reads: bool) -> bool:
    """Read from now on at the newest timestamp, where nothing that was read says otherwise; see ``txn.api``."""
    if txn.read_only or txn.writing or txn.life.busy or txn.life.state is not ACTIVE:
        return False
    if txn.views or txn.reads_so_far is not None:
        if not after_reads or txn.others or not is_current(txn):
            return False
        txn.views.clear()
    txn.hold.release()
    txn.hold = txn.timeline.holds.acquire()
    txn.read_ts = txn.hold.ts
    if txn.others:
        entering.release_others(txn)
        txn.others = txn.core.timelines.hold_others(txn.timeline, None, None)
    return True
