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

Which locks each operation takes is a table in docs/transactions.md.

Operations are generators that yield what they have to wait for; ``run`` drives one without suspending while
nothing has to be waited for, so the usual case is a plain function call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeVar

from txn import bulk, promotion, reads, row_locks, schema, snapshot, writes
from txn.api import RowWait
from txn.coordinator import Coordinator
from txn.errors import (
    DeadlineExceeded,
    ReadOnlyTransaction,
    SchemaChanged,
    TxnError,
    WaitCancelled,
    WriteConflict,
)
from txn.locks.entry import LockOwner
from txn.locks.granule import Granule
from txn.locks.mode import IS, IX, MODES, SUPREMUM, RowLock, S, X
from txn.mvcc.generation import Generation
from txn.mvcc.intents import OwnWrites
from txn.mvcc.version import INFINITY
from txn.read_set import ReadSet
from txn.scan_watch import Predicate
from txn.scans import Scans
from txn.schema import SchemaState
from txn.types import (
    IndexId,
    Key,
    KeyRange,
    Row,
    RowId,
    ShardId,
    ShardSpec,
    Snapshot,
    StoredRow,
    Timestamp,
)
from txn.view import Steps, View

T = TypeVar("T")

_ACTIVE: Final = "active"
_COMMITTING: Final = "committing"
_ENDED: Final = "ended"


_NOBODY: Final = LockOwner(0)
"""Stands for the owner in read-only transactions, which lock nothing."""


class StoreTransaction:
    """Implements ``txn.api.Transaction``."""

    __slots__ = (
        "_busy", "_callbacks", "_commit_ts", "_deadline", "_ended_by", "_glimpsed", "_reads", "_state", "_views", "at_end",
        "core", "deferred", "hold", "id", "journal", "own", "owner", "read_only", "read_ts", "scans", "schema_states",
        "session", "statement", "writing",
    )  # fmt: skip

    def __init__(
        self,
        core: Coordinator,
        *,
        read_only: bool,
        session: int,
        at: Timestamp | None,
        deadline_ms: int | None,
    ) -> None:
        """``at``: read there instead of now (read-only). ``deadline_ms``: from now on."""
        self.core = core
        self.hold = core.holds.acquire(at)
        self.id = core.new_txn_id()
        self.read_ts: Timestamp = self.hold.ts
        self.read_only = read_only
        self.session = session
        self.statement = 0
        if read_only:
            self.owner = _NOBODY
        else:
            self.owner = LockOwner(self.id, session, core.options.lock_timeout_ms)
            self.owner.escalate_at = core.options.table_locks
        self.writing = False
        self.scans: Scans | None = None  # while there are none
        self._state = _ACTIVE
        self._busy = 0
        self._ended_by: TxnError | None = None
        self._commit_ts: Timestamp | None = None
        self._views: dict[ShardId, View] = {}
        self.own: dict[ShardId, OwnWrites] = {}
        self.schema_states: dict[ShardId, SchemaState] = {}
        self.deferred: frozenset[IndexId] = frozenset()
        self.journal: list[tuple[OwnWrites, RowId] | Callable[[], None]] = []
        self.at_end: list[Callable[[], None]] = []
        self._callbacks: list[Callable[[Timestamp], None]] = []
        self._reads: ReadSet | None = None
        self._glimpsed: dict[ShardId, ShardSpec] | None = None  # schemas seen without a lock, while writing
        self._deadline: asyncio.TimerHandle | None = None
        if deadline_ms is not None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(deadline_ms / 1000, self._expire)
        core.active[self.id] = self

    # -- running operations ------------------------------------------------------------------------

    def run(self, steps: Steps[T]) -> T | Awaitable[T]:
        """Drive an operation as far as it goes without waiting."""
        if self._state is not _ACTIVE:
            raise self._ended()
        try:
            waiting = next(steps)
        except StopIteration as done:
            if self.scans is not None:
                self.scans.check()
            return done.value  # type: ignore[no-any-return]
        self._busy += 1
        return self._drive(steps, waiting)

    async def _drive(self, steps: Steps[T], waiting: Awaitable[Any]) -> T:
        """Wait, and go on, until the operation is done; it stops when the transaction has ended meanwhile."""
        try:
            while True:
                try:
                    answer = await waiting
                except BaseException as error:
                    waiting = steps.throw(error)
                    continue
                if self._state is not _ACTIVE:
                    waiting = steps.throw(self._ended())
                    continue
                waiting = steps.send(answer)
        except StopIteration as done:
            if self.scans is not None:
                self.scans.check()
            return done.value  # type: ignore[no-any-return]
        finally:
            self._busy -= 1

    def _ended(self) -> TxnError:
        if self._ended_by is not None:
            return self._ended_by
        return WaitCancelled("the transaction has ended")

    def _expire(self) -> None:
        if self._state is _ACTIVE:
            self._ended_by = DeadlineExceeded("the transaction's deadline has passed")
            self.core.locks.fail_wait(self.owner, self._ended_by)
            self.rollback()

    def set_lock_timeout(self, lock_timeout_ms: int) -> None:
        """See ``txn.api``."""
        if self.owner is not _NOBODY:
            self.owner.lock_timeout_ms = lock_timeout_ms

    def set_deadline(self, deadline_ms: int | None) -> None:
        """See ``txn.api``."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if deadline_ms is not None and self._state is _ACTIVE:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(deadline_ms / 1000, self._expire)

    def next_statement(self) -> int:
        """Start a statement; see ``txn.api``."""
        self.statement += 1
        return self.statement

    def lock(self, granule: Granule, mode: int) -> Steps[bool]:
        """Lock a granule; the result tells whether it had to wait."""
        wait = self.core.locks.acquire(self.owner, granule, mode)
        if wait is None:
            return False
        yield wait
        return True

    # -- views -------------------------------------------------------------------------------------

    def view(self, shard: ShardId, *, even_damaged: bool = False) -> View:
        """Return the shard as this transaction sees it now; KeyError if it does not exist.

        Raises DamagedFile when it cannot be served, unless ``even_damaged``: to look at its schema, or to give it up.
        """
        view = self._views.get(shard)
        if view is not None:
            return view
        changed = self.schema_states.get(shard)
        if changed is not None:
            if changed.dropped:
                raise KeyError(shard)
            view = View(shard, changed.generation, changed.spec, self.own.get(shard))
        else:
            damaged = self.core.log.damaged
            if damaged and shard in damaged and shard not in self.core.shards:
                raise damaged[shard]
            history = self.core.shards[shard]
            entry = history.latest if self.writing else history.at(self.read_ts)
            if entry is None or entry.generation is None or entry.spec is None:
                raise KeyError(shard)
            if entry.generation.damage is not None:
                if not even_damaged:
                    raise entry.generation.damage
                return View(shard, entry.generation, entry.spec, self.own.get(shard))
            view = View(shard, entry.generation, entry.spec, self.own.get(shard))
            if self.writing and shard not in self.owner.held:
                return view  # it may change until it is locked
            if self._glimpsed is not None and self._glimpsed.get(shard, entry.spec) is not entry.spec:
                raise SchemaChanged(shard)
        self._views[shard] = view
        return view

    def forget_view(self, shard: ShardId) -> None:
        """The shard has changed within this transaction."""
        self._views.pop(shard, None)

    def own_writes(self, view: View) -> OwnWrites:
        """Return the place of the transaction's intents in a shard, made if need be."""
        own = view.own
        if own is None:
            own = self.own[view.shard] = view.own = OwnWrites(view.generation)
        return own

    def replace_own(self, shard: ShardId, own: OwnWrites | None) -> None:
        """Set the shard's intents aside or bring them back (TRUNCATE and its undoing)."""
        if own is None:
            self.own.pop(shard, None)
        else:
            self.own[shard] = own

    def own_of(self, shard: ShardId) -> OwnWrites | None:
        """Return the transaction's intents in a shard, if any."""
        return self.own.get(shard)

    @property
    def watching(self) -> bool:
        """See ``txn.api``."""
        return bool(self.scans)

    @property
    def ts(self) -> int:
        """The timestamp at which reads see committed versions: everything, once under locks."""
        return INFINITY if self.writing else self.read_ts

    def spec(self, shard: ShardId) -> ShardSpec:
        """See ``txn.api``."""
        spec = self.view(shard, even_damaged=True).spec
        if self.writing and shard not in self.owner.held and shard not in self.schema_states:
            if self._glimpsed is None:
                self._glimpsed = {}
            self._glimpsed.setdefault(shard, spec)
        return spec

    def stats(self, shard: ShardId) -> snapshot.ShardStats:
        """See ``txn.api``."""
        view = self.view(shard)
        rows, hot, size = view.generation.counts()
        if view.own is not None:
            rows += len(view.own.rows) + sum(p.ref.rows for _s, p in view.own.parts)
        return snapshot.ShardStats(rows=rows, hot_rows=hot, parts=len(view.generation.parts), bytes=size)

    # -- reading -----------------------------------------------------------------------------------

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
        if len(keys) == 1 and not self.writing and self._state is _ACTIVE:
            view = self.view(shard)
            row = reads.one_row(view, index, keys[0], self.read_ts)
            if row is not None:
                rows = [row]
                if not self.read_only:
                    self.read_set().add_keys(view, index, keys, rows)
                return rows
        if peek:
            return self.run(reads.peek_keys(self, shard, index, keys))
        return self.run(reads.lookup(self, shard, index, keys, for_update))

    def read_set(self) -> ReadSet:
        """Return what the transaction has read so far, for promotion."""
        if self._reads is None:
            self._reads = ReadSet()
        return self._reads

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
    ) -> AsyncIterator[list[StoredRow]]:
        """See ``txn.api``."""
        steps = reads.peek_table(self, shard) if peek else self._start_scan(shard, for_update, predicate)
        lock = self.run(steps)
        if isinstance(lock, Awaitable):
            await lock
        async for rows in snapshot.scan(self, self.view(shard)):
            if self._state is not _ACTIVE:
                raise self._ended()
            yield rows

    def snapshot(
        self, shard: ShardId, *, predicate: Predicate | None = None
    ) -> Snapshot | Awaitable[Snapshot]:
        """See ``txn.api``."""
        return self.run(self._snapshot(shard, predicate))

    def _snapshot(self, shard: ShardId, predicate: Predicate | None) -> Steps[Snapshot]:
        yield from self._start_scan(shard, False, predicate)
        return (yield from snapshot.take(self, self.view(shard)))

    def _start_scan(
        self, shard: ShardId, for_update: bool | RowLock, predicate: Predicate | None
    ) -> Steps[None]:
        """Remember a scan, or watch what it reads from this tick on (``txn.scan_watch``)."""
        if self.writing:
            yield from self.lock(shard, IX if for_update else IS)
            scans = self._unlocked(shard)
            if scans is not None:
                scans.add(shard, predicate)
            self.check_scans()
        elif not self.read_only:
            self.read_set().add_scan(shard, predicate)

    def _unlocked(self, shard: ShardId) -> Scans | None:
        """Return where to note a scan of a table, None if a lock keeps the table as it is."""
        if self.owner.held[shard] >= S or shard in self.schema_states:
            return None
        if self.scans is None:
            self.scans = Scans(self.core, self.id)
        return self.scans

    def check_scans(self) -> None:
        """Raise WriteConflict if somebody has changed what this transaction has scanned.

        Every operation ends with it, so that what it returns and what was scanned before are of one moment.
        """
        if self.scans is not None:
            self.scans.check()

    # -- promotion (txn.promotion) ------------------------------------------------------------------

    def begin_write(
        self,
        writes: Iterable[ShardId],
        scans: Iterable[ShardId] = (),
    ) -> Awaitable[None] | None:
        """See ``txn.api``."""
        if self.read_only:
            raise ReadOnlyTransaction("cannot write in a read-only transaction")
        modes: dict[ShardId, int] = dict.fromkeys(writes, IX)
        for shard in scans:
            modes[shard] = SUPREMUM[modes[shard]][S] if shard in modes else S
        self.check_scans()
        if self.writing:
            held = self.owner.held
            if all(held.get(shard) == mode for shard, mode in modes.items()) and self._state is _ACTIVE:
                return None
        return self.run(promotion.begin_write(self, modes))

    @property
    def reads_so_far(self) -> ReadSet | None:
        """What was read before the first write, for promotion; None if nothing was."""
        return self._reads

    def views(self) -> Iterable[tuple[ShardId, View]]:
        """Return the shards that were looked at, as they were seen."""
        return self._views.items()

    def now_writing(self, reads: ReadSet | None) -> None:
        """Promotion has succeeded, in this tick; ``reads`` are current."""
        self.writing = True
        if reads is not None:
            for shard, predicates in reads.scans.items():
                watched = self._unlocked(shard)
                if watched is not None:
                    watched.keep(shard, predicates)
            self._reads = None
        self._views.clear()

    def lock_table(
        self, shard: ShardId, mode: Literal["IS", "IX", "S", "SIX", "X"]
    ) -> Awaitable[None] | None:
        """See ``txn.api``. Promotes a reading transaction, so that the lock protects what is read next."""
        return self.run(promotion.begin_write(self, {shard: MODES[mode]}))

    # -- writing -----------------------------------------------------------------------------------

    def write_view(self, shard: ShardId) -> View:
        """Return the shard for writing; the caller has called ``begin_write``."""
        if self.read_only:
            raise ReadOnlyTransaction("cannot write in a read-only transaction")
        if not self.writing:
            raise AssertionError("begin_write comes before the first write")
        return self.view(shard)

    def lock_rows(
        self, shard: ShardId, row_ids: Sequence[RowId], mode: RowLock, wait: RowWait
    ) -> list[StoredRow | None] | Awaitable[list[StoredRow | None]]:
        """See ``txn.api``."""
        return self.run(row_locks.lock_rows(self, shard, row_ids, mode, wait))

    def insert(self, shard: ShardId, rows: Sequence[Row]) -> list[RowId] | Awaitable[list[RowId]]:
        """See ``txn.api``."""
        return self.run(writes.insert(self, shard, rows))

    def find_conflicts(
        self, shard: ShardId, row: Row, indexes: Sequence[IndexId]
    ) -> StoredRow | Awaitable[StoredRow | None] | None:
        """See ``txn.api``. The row found is locked X."""
        return self.run(writes.find_conflicts(self, shard, row, indexes))

    def update(
        self, shard: ShardId, changes: Sequence[tuple[RowId, Row]]
    ) -> list[bool] | Awaitable[list[bool]]:
        """See ``txn.api``."""
        return self.run(writes.change(self, shard, changes))

    def delete(self, shard: ShardId, row_ids: Sequence[RowId]) -> list[bool] | Awaitable[list[bool]]:
        """See ``txn.api``."""
        return self.run(writes.change(self, shard, [(row_id, None) for row_id in row_ids]))

    def defer_unique(self, index: IndexId, deferred: bool) -> None:
        """See ``txn.api``."""
        self.deferred = self.deferred | {index} if deferred else self.deferred - {index}

    def check_unique(self, shard: ShardId, index: IndexId) -> Awaitable[None] | None:
        """See ``txn.api``."""
        return self.run(writes.check_all_unique(self, shard, index))

    async def bulk_insert(self, shard: ShardId, batches: AsyncIterator[Any]) -> int:
        """See ``txn.api``."""
        lock = self.run(promotion.begin_write(self, {shard: X}))
        if isinstance(lock, Awaitable):
            await lock
        self._busy += 1
        try:
            return await bulk.insert(self, self.write_view(shard), batches)
        finally:
            self._busy -= 1

    # -- schema ------------------------------------------------------------------------------------

    def holds_table(self, shard: ShardId) -> bool:
        """See ``txn.api``."""
        return shard in self.owner.held

    def has_changed(self, shard: ShardId) -> bool:
        """See ``txn.api``."""
        return shard in self.own or shard in self.schema_states

    def create_shard(self, spec: ShardSpec) -> None:
        """See ``txn.api``."""
        self._only_when_active()
        if self.read_only:
            raise ReadOnlyTransaction("cannot change a schema in a read-only transaction")
        schema.create(self, spec)

    def alter_shard(self, spec: ShardSpec) -> Awaitable[None] | None:
        """See ``txn.api``."""
        return self.run(self._schema_change(spec.shard, lambda: schema.alter(self, spec)))

    def rewrite(self, shard: ShardId, rows: Sequence[Row]) -> Awaitable[None] | None:
        """See ``txn.api``."""

        def steps() -> Steps[None]:
            schema.truncate(self, shard)
            yield from writes.insert(self, shard, rows)

        return self.run(self._schema_change(shard, steps))

    def truncate(self, shard: ShardId) -> Awaitable[None] | None:
        """See ``txn.api``."""

        def steps() -> Steps[None]:
            schema.truncate(self, shard)
            yield from ()

        return self.run(self._schema_change(shard, steps))

    def drop_shard(self, shard: ShardId) -> Awaitable[None] | None:
        """See ``txn.api``."""

        def steps() -> Steps[None]:
            schema.drop(self, shard)
            yield from ()

        return self.run(self._schema_change(shard, steps))

    def _schema_change(self, shard: ShardId, steps: Callable[[], Steps[None]]) -> Steps[None]:
        if self.read_only:
            raise ReadOnlyTransaction("cannot change a schema in a read-only transaction")
        yield from promotion.begin_write(self, {shard: X})
        mark = len(self.journal)
        try:
            yield from steps()
        except BaseException:
            self.undo_to(mark)
            raise

    def new_generation(self, shard: ShardId) -> Generation | None:
        """Return the generation this transaction has made for a shard, if it made one."""
        state = self.schema_states.get(shard)
        return state.generation if state is not None and (state.created or state.truncated) else None

    # -- end ---------------------------------------------------------------------------------------

    def _only_when_active(self) -> None:
        if self._state is not _ACTIVE:
            raise self._ended()

    def on_applied(self, callback: Callable[[Timestamp], None]) -> None:
        """See ``txn.api``."""
        self._callbacks.append(callback)

    def savepoint(self) -> int:
        """See ``txn.api``."""
        self._only_when_active()
        return len(self.journal)

    def rollback_to(self, savepoint: int) -> None:
        """See ``txn.api``."""
        self._only_when_active()
        if self._busy:
            raise AssertionError("an operation of this transaction is still running")
        self.undo_to(savepoint)

    def begin_statement(self) -> int:
        """See ``txn.api``."""
        if self.scans is not None:
            self.scans.answered()
        return len(self.journal)

    def undo_statement(self, mark: int) -> bool:
        """See ``txn.api``."""
        self._only_when_active()
        if self._busy:
            raise AssertionError("an operation of this transaction is still running")
        if not self.writing:
            return False
        self.undo_to(mark)
        if self.scans is not None:
            self.scans.forget()
            self.scans.check()
        return True

    def undo_to(self, mark: int) -> None:
        """Undo everything the journal holds beyond ``mark``, latest first."""
        journal = self.journal
        while len(journal) > mark:
            entry = journal.pop()
            if isinstance(entry, tuple):
                own, row_id = entry
                own.pop(row_id)
            else:
                entry()

    def commit_at(self, ts: Timestamp) -> Timestamp | Awaitable[Timestamp]:
        """See ``txn.api``."""
        self._commit_ts = ts
        return self.commit()

    def commit(self) -> Timestamp | Awaitable[Timestamp]:
        """See ``txn.api``."""
        self._only_when_active()
        if self._busy:
            raise AssertionError("an operation of this transaction is still running (L31)")
        if self.owner.doomed is not None:
            doomed = self.owner.doomed
            self.rollback()
            raise doomed
        for own in self.own.values():
            if len(own.rows) > writes.PREPARE_ROWS:
                self._state = _COMMITTING
                return self._commit_slowly()
        return self._submit()

    async def _commit_slowly(self) -> Timestamp:
        """Commit a large write set, made in slices."""
        try:
            for own in self.own.values():
                await writes.prepare(own)
            if self.owner.doomed is not None:
                raise self.owner.doomed
        except BaseException:
            self._state = _ACTIVE
            self.rollback()
            raise
        self._state = _ACTIVE
        submitted = self._submit()
        return submitted if isinstance(submitted, int) else await submitted

    async def _commit_nothing(self) -> Timestamp:
        """Commit when what it read is readable by all."""
        try:
            await self.core.readable()
        finally:
            ts = self._end_reading()
        return ts

    def _end_reading(self) -> Timestamp:
        """End a transaction without writes. What it read under locks is the state of now."""
        ts = self.core.read_ts() if self.writing else self.read_ts
        self._finish()
        for callback in self._callbacks:
            callback(ts)
        return ts

    def _submit(self) -> Timestamp | Awaitable[Timestamp]:
        changes = writes.write_set(self)
        core = self.core
        try:
            self.check_scans()
        except WriteConflict:
            self.rollback()
            raise
        if changes is None:
            if core.staging is not None and self.writing:
                self._state = _COMMITTING
                return self._commit_nothing()
            return self._end_reading()
        try:
            core.check_retractions(changes, self.schema_states)
            validate = partial(core.check_watches, self.scans.watches()) if self.scans else None
            future = core.log.committer.submit(changes, validate, self._refused, at=self._commit_ts)
        except BaseException:
            self.rollback()
            raise
        self._state = _COMMITTING
        if self._deadline is not None:
            self._deadline.cancel()
        core.committing[self.id] = self
        return future

    def settled(self, ts: Timestamp) -> None:
        """The commit is readable (called by the coordinator, in that tick)."""
        for callback in self._callbacks:
            callback(ts)
        self._finish()

    def _refused(self) -> None:
        """The committer gives up on it: nothing was applied (called just before the commit's future fails)."""
        if self._state is _COMMITTING:
            self.core.committing.pop(self.id, None)
            self._state = _ACTIVE
            self.rollback()

    def rollback(self) -> None:
        """See ``txn.api``. While a commit is under way it has no effect: the commit decides."""
        if self._state is not _ACTIVE:
            return
        self.undo_to(0)
        self._finish()

    def _finish(self) -> None:
        self._state = _ENDED
        core = self.core
        if not self.read_only:
            core.locks.release_all(self.owner)
        core.holds.release(self.hold)
        core.active.pop(self.id, None)
        if self.scans is not None:
            self.scans.end()
            self.scans = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self.read_only:
            return
        self._views.clear()
        if len(self.journal) > writes.PREPARE_ROWS:
            for own in self.own.values():
                core.dismantle(own.ops or [])
                core.dismantle(list(own.rows.values()))
            core.dismantle(self.journal)
            self.journal = []
        self.own.clear()
        self.journal.clear()
        for callback in self.at_end:
            callback()
        self.at_end.clear()
