"""One transaction: lock-free reads at its timestamp, then, from its first write on, strict two-phase locking.

    reading   every read at read_ts; what was read is remembered (keys with the versions found, ranges, scans)
       │      begin_write: lock all of it in one order, check in one tick that it is as it was (promotion)
    writing   reads of the latest committed state and own intents, each under locks held to the end
       │      commit: one write set into the log; a transaction that wrote nothing just ends
    ended

Why that is strictly serializable: a writing transaction holds, at its commit, locks on everything it has read
and written, and what it read before it wrote was proved current while those locks were held; so all of it
happens at once at its commit timestamp, which lies between the grant of its last lock and its acknowledgement.
One that only reads happens at ``read_ts``, which was the latest commit when it began.

Which locks each operation takes is a table in docs/internals/transactions.md.

Operations are generators that yield what they have to wait for; ``run`` drives one without suspending while
nothing has to be waited for, so the usual case is a plain function call. What they do is elsewhere, each a
module of functions over the transaction: ``entering``, ``reads``, ``row_locks``, ``writes``, ``bulk``,
``schema``, ``promotion``, ``journal`` and ``ending``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from txn.base.errors import ReadOnlyTransaction
from txn.base.types import (
    IndexId,
    Key,
    KeyRange,
    Row,
    RowId,
    RowWait,
    ShardId,
    ShardSpec,
    Snapshot,
    StoredRow,
    Timestamp,
)
from txn.locks.entry import NOBODY
from txn.locks.mode import IX, MODES, SUPREMUM, RowLock, S, X
from txn.persist.parts.job import PartJob, WrittenPart
from txn.transaction import (
    bulk,
    bulk_ends,
    ending,
    entering,
    journal,
    one_row,
    promotion,
    reads,
    row_locks,
    schema,
    snapshot,
    spill,
    writes,
)
from txn.transaction.lifetime import ACTIVE
from txn.transaction.scan_watch import OfRows, Predicate
from txn.transaction.state import TransactionState
from txn.transaction.view import Steps

T = TypeVar("T")


class StoreTransaction(TransactionState):
    """Implements ``txn.api.Transaction``: each operation of it, by the modules that do the work."""

    __slots__ = ()

    # -- timelines ---------------------------------------------------------------------------------

    def enter(self, name: str) -> str | None:
        """See ``txn.api``."""
        return entering.enter(self, name)

    def split(self) -> Mapping[str, StoreTransaction] | None:
        """See ``txn.api``."""
        return entering.split(self)

    @property
    def timeline_name(self) -> str | None:
        """See ``txn.api``."""
        return self.timeline.name if self.others is None else None

    def shards_used(self) -> list[ShardId]:
        """See ``txn.api``."""
        locked = [ShardId(granule) for granule in self.owner.held if isinstance(granule, int)]
        used = {*self.views, *self.own, *locked}
        return [shard for shard in sorted(used) if self.core.domain_of(shard) is self.timeline]

    def read_points(self) -> dict[str, Timestamp]:
        """See ``txn.api``."""
        return entering.read_points(self)

    # -- running operations ------------------------------------------------------------------------

    def set_lock_timeout(self, lock_timeout_ms: int) -> None:
        """See ``txn.api``."""
        if self.owner is not NOBODY:
            self.owner.lock_timeout_ms = lock_timeout_ms

    def set_losses(self, losses: int) -> None:
        """See ``txn.api``."""
        if self.owner is not NOBODY:
            self.owner.losses = losses

    def set_deadline(self, deadline_ms: int | None) -> None:
        """See ``txn.api``."""
        self.life.set_deadline(deadline_ms, self._expire)

    def renew(self, *, after_reads: bool = False) -> bool:
        """See ``txn.api``."""
        return promotion.renew(self, after_reads=after_reads)

    def next_statement(self) -> int:
        """Start a statement; see ``txn.api``."""
        self.last_statement += 1
        self.statement = self.last_statement
        return self.statement

    def resume_statement(self, number: int) -> None:
        """See ``txn.api``."""
        self.statement = number

    # -- views -------------------------------------------------------------------------------------

    @property
    def watching(self) -> bool:
        """See ``txn.api``."""
        return bool(self.scans)

    def spec(self, shard: ShardId) -> ShardSpec:
        """See ``txn.api``."""
        spec = self.view(shard, even_damaged=True).spec
        if self.writing and shard not in self.owner.held and shard not in self.schema_states:
            if self.glimpsed is None:
                self.glimpsed = {}
            self.glimpsed.setdefault(shard, spec)  # it has to be the same when the shard is looked at
        return spec

    def stats(self, shard: ShardId) -> snapshot.ShardStats:
        """See ``txn.api``."""
        return snapshot.stats(self, shard)

    # -- reading -----------------------------------------------------------------------------------

    def count_entries(self, shard: ShardId, index: IndexId, keys: Sequence[Key]) -> list[int]:
        """See ``txn.api``."""
        generation = self.view(shard).generation
        return [generation.count_entries(index, key) for key in keys]

    def count_range(self, shard: ShardId, index: IndexId, wanted: KeyRange, most: int) -> int:
        """See ``txn.api``."""
        return self.view(shard).generation.count_range(index, wanted, most)

    def lookup(
        self,
        shard: ShardId,
        index: IndexId,
        keys: Sequence[Key],
        *,
        for_update: bool | RowLock = False,
        peek: bool = False,
    ) -> list[StoredRow] | Awaitable[list[StoredRow]]:
        """See ``txn.api``. Rows come in the order of ``keys``, under one key by row id."""
        if len(keys) == 1 and not self.writing and self.life.state is ACTIVE:
            view = self.view(shard)
            row = reads.one_row(view, index, keys[0], self.read_ts)
            if row is not None:
                rows = [row]
                if self.owner is not NOBODY:
                    self.read_set().add_keys(view, index, keys, rows)
                return rows
        if peek:
            return self.run(reads.peek_keys(self, shard, index, keys))
        return self.run(reads.lookup(self, shard, index, keys, for_update))

    def range(
        self,
        shard: ShardId,
        index: IndexId,
        key_range: KeyRange,
        *,
        reverse: bool = False,
        limit: int | None = None,
        for_update: bool | RowLock = False,
        peek: bool = False,
    ) -> list[StoredRow] | Awaitable[list[StoredRow]]:
        """See ``txn.api``. Equal keys come in the order of row ids (reversed with ``reverse``)."""
        if peek:
            return self.run(reads.peek_range(self, shard, index, key_range, reverse, limit))
        return self.run(reads.range_(self, shard, index, key_range, reverse, limit, for_update))

    async def scan(
        self,
        shard: ShardId,
        *,
        for_update: bool | RowLock = False,
        peek: bool = False,
        predicate: Predicate | None = None,
        ids: Sequence[int] | None = None,
    ) -> AsyncIterator[list[StoredRow]]:
        """See ``txn.api``."""
        if ids is not None:
            predicate = OfRows(ids if isinstance(ids, range) else frozenset(ids))
        steps = (
            reads.peek_table(self, shard) if peek else reads.start_scan(self, shard, for_update, predicate)
        )
        lock = self.run(steps)
        if isinstance(lock, Awaitable):
            await lock
        view = self.view(shard)
        if isinstance(ids, range):
            ids = snapshot.given_ids(view, ids)
        found = snapshot.scan(self, view) if ids is None else snapshot.scan_ids(self, shard, ids)
        async for rows in found:
            if self.life.state is not ACTIVE:
                raise self.life.ended()
            yield rows
            del rows  # before the next ones are read: one may be large

    def snapshot(
        self, shard: ShardId, *, predicate: Predicate | None = None
    ) -> Snapshot | Awaitable[Snapshot]:
        """See ``txn.api``."""
        return self.run(self._snapshot(shard, predicate))

    def _snapshot(self, shard: ShardId, predicate: Predicate | None) -> Steps[Snapshot]:
        yield from reads.start_scan(self, shard, False, predicate)
        return (yield from snapshot.take(self, self.view(shard)))

    # -- promotion (txn.transaction.promotion) ------------------------------------------------------------------

    def begin_write(
        self,
        writes: Iterable[ShardId],
        scans: Iterable[ShardId] = (),
    ) -> Awaitable[None] | None:
        """See ``txn.api``."""
        modes: dict[ShardId, int] = dict.fromkeys(writes, IX)
        if self.read_only and not (self.excepted and self.excepted.issuperset(modes)):
            raise ReadOnlyTransaction("cannot write in a read-only transaction")
        for shard in scans:
            modes[shard] = SUPREMUM[modes[shard]][S] if shard in modes else S
        self.check_scans()
        if self.life.state is ACTIVE:
            if self.writing:
                held = self.owner.held
                if all(held.get(shard) == mode for shard, mode in modes.items()):
                    return None
            elif one_row.begin_write(self, modes):
                return None
        return self.run(promotion.begin_write(self, modes))

    def try_begin_write(self, shard: ShardId) -> bool:
        """See ``txn.api``."""
        return not self.read_only and self.life.state is ACTIVE and one_row.begin_write(self, {shard: IX})

    def lock_table(
        self, shard: ShardId, mode: Literal["IS", "IX", "S", "SIX", "X"]
    ) -> Awaitable[None] | None:
        """See ``txn.api``. Promotes a reading transaction, so that the lock protects what is read next."""
        return self.run(promotion.begin_write(self, {shard: MODES[mode]}))

    # -- writing -----------------------------------------------------------------------------------

    def lock_rows(
        self, shard: ShardId, row_ids: Sequence[RowId], mode: RowLock, wait: RowWait
    ) -> list[StoredRow | None] | Awaitable[list[StoredRow | None]]:
        """See ``txn.api``."""
        return self.run(row_locks.lock_rows(self, shard, row_ids, mode, wait))

    def insert(self, shard: ShardId, rows: Sequence[Row]) -> list[RowId] | Awaitable[list[RowId]]:
        """See ``txn.api``."""
        if len(rows) == 1 and self.life.state is ACTIVE:
            row_id = one_row.insert(self, shard, rows[0])
            if row_id is not None:
                return [row_id]
        return self.run(writes.insert(self, shard, rows))

    def insert_unless(
        self, shard: ShardId, row: Row, indexes: Sequence[IndexId]
    ) -> RowId | StoredRow | Awaitable[RowId | StoredRow]:
        """See ``txn.api``."""
        if self.life.state is ACTIVE:
            row_id = one_row.insert(self, shard, row, indexes)
            if row_id is not None:
                return row_id
        return self.run(one_row.insert_unless(self, shard, row, indexes))

    def update(
        self, shard: ShardId, changes: Sequence[tuple[RowId, Row]], *, keys_kept: bool = False
    ) -> list[bool] | Awaitable[list[bool]]:
        """See ``txn.api``."""
        return self.run(writes.change(self, shard, changes, keys_kept=keys_kept))

    def delete(self, shard: ShardId, row_ids: Sequence[RowId]) -> list[bool] | Awaitable[list[bool]]:
        """See ``txn.api``."""
        return self.run(writes.delete(self, shard, row_ids))

    def defer_unique(self, index: IndexId, deferred: bool) -> None:
        """See ``txn.api``."""
        self.deferred = self.deferred | {index} if deferred else self.deferred - {index}

    def check_unique(self, shard: ShardId, index: IndexId) -> Awaitable[None] | None:
        """See ``txn.api``."""
        return self.run(writes.check_all_unique(self, shard, index))

    async def bulk_insert(self, shard: ShardId, batches: AsyncIterator[Any]) -> int:
        """See ``txn.api``."""
        return await bulk.under_lock(self, shard, lambda view: bulk.insert(self, view, batches))

    async def bulk_insert_parts(
        self,
        shard: ShardId,
        write: Callable[[PartJob], Awaitable[Sequence[WrittenPart]]],
        changed: frozenset[int] | None = None,
    ) -> int:
        """See ``txn.api``."""
        return await bulk.under_lock(self, shard, lambda view: bulk.insert_parts(self, view, write, changed))

    async def bulk_rewrite(self, spec: ShardSpec, batches: AsyncIterator[Any]) -> int:
        """See ``txn.api``."""
        return await bulk.under_lock(self, spec.shard, lambda view: bulk.rewrite(self, view, spec, batches))

    async def bulk_replace(
        self,
        shard: ShardId,
        changes: AsyncIterator[tuple[Iterable[int], Any]],
        changed: frozenset[int],
    ) -> int | None:
        """See ``txn.api``."""
        return await bulk.unless_locked(self, shard, lambda view: bulk.replace(self, view, changes, changed))

    async def bulk_delete(self, shard: ShardId, row_ids: Any) -> int | None:
        """See ``txn.api``."""
        return await bulk.unless_locked(self, shard, lambda view: bulk_ends.end_rows(self, view, row_ids))

    async def spill(self, shard: ShardId, mark: int) -> Sequence[int] | None:
        """See ``txn.api``."""
        if not self.core.locks.try_acquire(self.owner, shard, X):
            return None
        self.life.busy += 1
        try:
            return await spill.spill(self, self.write_view(shard), mark)
        finally:
            self.life.busy -= 1

    async def check_loaded(self, shard: ShardId, changed: frozenset[int]) -> None:
        """See ``txn.api``."""
        await spill.check_loaded(self, self.view(shard), changed)

    def staged_rows(self) -> list[tuple[ShardId, int]]:
        """See ``txn.api``."""
        return [(shard, len(own.rows)) for shard, own in self.own.items() if own.rows]

    # -- schema ------------------------------------------------------------------------------------

    def holds_table(self, shard: ShardId) -> bool:
        """See ``txn.api``."""
        return shard in self.owner.held

    def has_changed(self, shard: ShardId) -> bool:
        """See ``txn.api``."""
        return shard in self.own or shard in self.schema_states

    def changed_within(self, shard: ShardId, row_id: RowId) -> bool:
        """See ``txn.api``."""
        own = self.own.get(shard)
        intent = None if own is None else own.rows.get(row_id)
        return intent is not None and intent.statement > self.statement

    def create_shard(self, spec: ShardSpec) -> None:
        """See ``txn.api``."""
        self.life.check_active()
        if self.read_only:
            raise ReadOnlyTransaction("cannot change a schema in a read-only transaction")
        schema.create(self, spec)

    def alter_shard(self, spec: ShardSpec) -> Awaitable[None] | None:
        """See ``txn.api``."""
        return self.run(schema.change(self, spec.shard, lambda: schema.alter(self, spec)))

    def rewrite(self, shard: ShardId, rows: Sequence[Row]) -> Awaitable[None] | None:
        """See ``txn.api``."""

        def steps() -> Steps[None]:
            schema.truncate(self, shard)
            yield from writes.insert(self, shard, rows)

        return self.run(schema.change(self, shard, steps))

    def truncate(self, shard: ShardId) -> Awaitable[None] | None:
        """See ``txn.api``."""
        return self.run(schema.change(self, shard, lambda: schema.truncate(self, shard)))

    def drop_shard(self, shard: ShardId) -> Awaitable[None] | None:
        """See ``txn.api``."""
        return self.run(schema.change(self, shard, lambda: schema.drop(self, shard)))

    # -- end ---------------------------------------------------------------------------------------

    def on_applied(self, callback: Callable[[Timestamp], None]) -> None:
        """See ``txn.api``."""
        self.callbacks.append(callback)

    def rollback_to(self, savepoint: int) -> Awaitable[None] | None:
        """See ``txn.api``."""
        self.life.check_idle()
        if len(self.journal) - savepoint > journal.AT_ONCE:
            return journal.undo_slowly(self, savepoint)
        journal.undo_to(self, savepoint)
        return None

    def written_since(self, start: int, most: int) -> tuple[int, Sequence[Row | None]]:
        """See ``txn.api``."""
        stop = len(self.journal)
        if stop == start:
            return start, ()
        if stop - start == 1:  # as a short statement leaves it
            entry = self.journal[start]
            if type(entry) is not tuple or entry is spill.GONE:
                return stop, ()
            intent = entry[0].rows.get(entry[1])
            return stop, (None if intent is None else intent.values,)
        stop = min(stop, start + most)
        intents = [
            entry[0].rows.get(entry[1])
            for entry in self.journal[start:stop]
            if type(entry) is tuple and entry is not spill.GONE
        ]
        return stop, [None if intent is None else intent.values for intent in intents]

    def on_undo(self, callback: Callable[[], object]) -> None:
        """See ``txn.api``."""
        self.life.check_active()
        journal.note(self, callback)

    def begin_statement(self) -> int:
        """See ``txn.api``."""
        if self.scans is not None:
            self.scans.answered()
        return len(self.journal)

    def undo_statement(self, mark: int) -> bool | Awaitable[bool]:
        """See ``txn.api``."""
        self.life.check_idle()
        if not self.writing:
            return False
        undoing = self.rollback_to(mark)
        return self._forget_scans() if undoing is None else self._undone(undoing)

    async def _undone(self, undoing: Awaitable[None]) -> bool:
        await undoing
        return self._forget_scans()

    def _forget_scans(self) -> bool:
        if self.scans is not None:
            self.scans.forget()
            self.scans.check()
        return True

    def commit_at(self, ts: Timestamp) -> Timestamp | Awaitable[Timestamp]:
        """See ``txn.api``."""
        self.commit_ts = ts
        return self.commit()

    def commit(self) -> Timestamp | Awaitable[Timestamp]:
        """See ``txn.api``."""
        return ending.commit(self)

    def withdraw(self) -> bool:
        """See ``txn.api``."""
        return ending.withdraw(self)

    def settled(self, ts: Timestamp) -> None:
        """The commit is readable (called by the coordinator, in that tick)."""
        ending.settled(self, ts)

    def rollback(self) -> None:
        """See ``txn.api``. While a commit is under way it has no effect: the commit decides."""
        ending.rollback(self)
