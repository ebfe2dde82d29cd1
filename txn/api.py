"""What the engine calls: a store of shards and its transactions.

Methods typed ``MaybeAwaitable`` answer at once when nothing has to be waited for (hot rows, free locks) and
return an awaitable otherwise; callers test with ``isinstance(x, Awaitable)``. Errors are those of
``txn.base.errors``; the engine maps them to SQLSTATEs.

A transaction's life (docs/internals/transactions.md):

    begin ── lock-free reads at read_ts ──> begin_write (promotion: read set locked and checked)
          ── reads of the latest committed state + own intents, strict two-phase locking ──> commit
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from txn.base.types import (
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
    TxnId,
)
from txn.base.types import RowWait as RowWait
from txn.base.types import ShardStats as ShardStats
from txn.locks.mode import RowLock as RowLock
from txn.persist.parts.job import PartJob as PartJob
from txn.persist.parts.job import WrittenPart as WrittenPart
from txn.persist.parts.merge_job import MergedPart as MergedPart
from txn.persist.parts.merge_job import MergeJob as MergeJob
from txn.persist.parts.sidecar_job import SidecarJob as SidecarJob
from txn.transaction.scan_watch import Predicate as Predicate

if TYPE_CHECKING:
    from txn.transaction.index_build import Elsewhere, IndexBuild
    from txn.upkeep.subscribe import Changes, Progress

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]

TableLock: TypeAlias = Literal["IS", "IX", "S", "SIX", "X"]


class Transaction(Protocol):
    """One transaction. Not thread-safe; used from the event loop only.

    ``statement``: the number of the one that runs.

    ``read_only``: it must not write, but to ``excepted``. One that began otherwise may be told so, and that
    it may again.

    ``urgent``: set it where others wait for what this one is going to do. It then begins to write even while
    hot versions take twice the memory that they may.
    """

    id: TxnId
    read_ts: Timestamp
    read_only: bool
    excepted: frozenset[ShardId]
    urgent: bool
    statement: int

    @property
    def keeps_reads(self) -> bool:
        """Whether it remembers what it reads, since it may write yet: False where it began as a read-only one."""

    @property
    def writing(self) -> bool:
        """True once ``begin_write`` succeeded (reads then see the latest state, under locks)."""

    @property
    def watching(self) -> bool:
        """True if it has scanned without locks while ``writing``: then its commit may raise WriteConflict."""

    def set_lock_timeout(self, lock_timeout_ms: int) -> None:
        """Change the limit of lock waits (0: none; negative: raise LockNotAvailable instead of waiting)."""

    def set_losses(self, losses: int) -> None:
        """Say how often its session has lost lately: of transactions in a deadlock who has lost more is spared."""

    def set_deadline(self, deadline_ms: int | None) -> None:
        """Change the deadline, counted from now; None: there is none."""

    def renew(self, *, after_reads: bool = False) -> bool:
        """Read at ``read_ts()`` of now from here on, if nothing has been read or written yet; tell whether it does.

        ``after_reads``: also where something has been read, if all of it is still as it was, as far as memory can tell;
        nobody may still be reading at the timestamp of before.
        """

    def enter(self, name: str) -> str | None:
        """Read, and write, in a timeline; None if it does, else the name of the one that it is in for good.

        A transaction that was begun without a timeline may enter any, once: it then reads that timeline's
        state of the moment at which it began. Raises KeyError when there is no such timeline, ReadBelowSince
        when that state is gone.
        """

    def split(self) -> Mapping[str, Transaction] | None:
        """Return a transaction for each timeline, this one among them: reads in one are of the moment at
        which this one began.

        They end with this one, whose ``read_points`` go on naming all. None where it cannot be in several: it
        was begun to write, there is one timeline only, or it is in one for good.
        """

    @property
    def timeline_name(self) -> str | None:
        """The timeline that it reads in; None while that is open."""

    def shards_used(self) -> list[ShardId]:
        """Return the shards of its timeline that it has looked at, locked or changed."""

    def read_points(self) -> dict[str, Timestamp]:
        """Return what it reads, or may yet read, at: one timestamp for each timeline that it can be in."""

    def next_statement(self) -> int:
        """Start a statement: from now on reads see own intents of *earlier* statements only. Returns its number."""

    def resume_statement(self, number: int) -> None:
        """Go on with an earlier statement, within which others have run: reads see again what they saw in it."""

    # -- reads -----------------------------------------------------------------------------------

    def spec(self, shard: ShardId) -> ShardSpec:
        """Return the shard's schema as this transaction sees it; KeyError if it does not exist."""

    def lookup(
        self,
        shard: ShardId,
        index: IndexId,
        keys: Sequence[Key],
        *,
        for_update: bool | RowLock = False,
        peek: bool = False,
    ) -> MaybeAwaitable[list[StoredRow]]:
        """Return the visible rows whose index key equals one of ``keys`` (full keys, no NULLs).

        Of an inverted index a key is one entry, ``(None,)`` that of empty lists; a row with several of them comes once.

        Recorded in the read set. When ``writing``, each key is locked first, then the rows found: S, or X with
        ``for_update``. A ``RowLock`` there is what the rows get; keys get X for ``update``, else S. ``key share``
        is for who only wants to know that the rows are there: what else they hold may change.
        With ``peek`` (SKIP LOCKED; writing transactions only) the latest committed state is read past all locks
        but those of schema changes, and nothing is recorded: it may have changed when the caller looks at it.
        """

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
    ) -> MaybeAwaitable[list[StoredRow]]:
        """Return visible rows in key order (sorted indexes only). Locks as documented in txn.locks."""

    def scan(
        self,
        shard: ShardId,
        *,
        for_update: bool | RowLock = False,
        peek: bool = False,
        predicate: Predicate | None = None,
        ids: Sequence[int] | None = None,
    ) -> AsyncIterator[list[StoredRow]]:
        """Yield all visible rows in chunks, without blocking the loop for long.

        ``ids``: those with these ids, in their order, each once; of a ``range`` that is longer than the
        table, others as well. Changes of rows with other ids then do not matter, whatever the ``predicate``.

        Locks the table IS (``for_update``: IX) and no row: what others commit afterwards is compared with
        ``predicate`` (None: any change matters), and the first that matches makes this transaction fail with
        WriteConflict, at its next ``begin_write``, scan or update or at its commit
        (``txn.transaction.scan_watch``). A table that is locked S or more is not compared.
        """

    def snapshot(self, shard: ShardId, *, predicate: Predicate | None = None) -> MaybeAwaitable[Snapshot]:
        """Return the shard as engines read it. Counts as a scan."""

    def stats(self, shard: ShardId) -> ShardStats:
        """Return figures for the router; no read is recorded."""

    def count_entries(self, shard: ShardId, index: IndexId, keys: Sequence[Key]) -> list[int]:
        """Return about how many committed rows are under each key of an index, to choose among them; no read
        is recorded.
        """

    def count_range(self, shard: ShardId, index: IndexId, wanted: KeyRange, most: int) -> int:
        """Return about how many entries an index has within a range, as ``count_entries``; above ``most`` any
        such number.
        """

    def tell_id(self) -> TxnId:
        """Return its id, which rows that it has written show from then on, also once they are committed."""

    def writer_of(self, shard: ShardId, begin: Timestamp) -> int:
        """Return the number of the transaction that made a version which this one has read, by where it begins.

        Of its own (0) that is its id, which they show from then on; else the same as always for that version. Of
        numbers the low 32 bits count (``txn.base.writers``).
        """

    # -- writes ----------------------------------------------------------------------------------

    def begin_write(
        self,
        writes: Iterable[ShardId],
        scans: Iterable[ShardId] = (),
    ) -> MaybeAwaitable[None]:
        """Prepare a writing statement: promote if this is the first, lock tables (IX; SIX/S for ``scans``).

        Tables that are scanned need not be in ``scans``: they are then watched (U4). A statement that loses
        (WriteConflict) may be run again; one that loses too often should pass the table in ``scans``.

        Raises WriteConflict when something read since read_ts has changed; Deadlock; LockTimeout;
        ReadOnlyTransaction (25006 is the engine's).
        """

    def try_begin_write(self, shard: ShardId) -> bool:
        """As ``begin_write`` of one table, the transaction's first operation, where nothing has to be waited
        for; False: call that.
        """

    def lock_table(self, shard: ShardId, mode: TableLock) -> MaybeAwaitable[None]:
        """Take a table lock explicitly (DDL takes X)."""

    def lock_rows(
        self, shard: ShardId, row_ids: Sequence[RowId], mode: RowLock, wait: RowWait
    ) -> MaybeAwaitable[list[StoredRow | None]]:
        """Lock rows that this transaction has read, and return their latest versions (own ones begin at 0).

        An entry is None where the row no longer exists, or, with ``skip``, is locked by others. The transaction
        is ``writing``. Raises LockNotAvailable with ``nowait``.
        """

    def insert(self, shard: ShardId, rows: Sequence[Row]) -> MaybeAwaitable[list[RowId]]:
        """Stage new rows. Takes X on their unique keys; raises DuplicateKey(shard, index, key)."""

    def insert_unless(
        self, shard: ShardId, row: Row, indexes: Sequence[IndexId]
    ) -> MaybeAwaitable[RowId | StoredRow]:
        """Stage a new row, as ``insert``, and return its id; where a live row has one of its keys in
        ``indexes``, return that.

        The indexes are unique. Takes X on their keys first, and on the row that is returned.
        """

    def update(
        self, shard: ShardId, changes: Sequence[tuple[RowId, Row]], *, keys_kept: bool = False
    ) -> MaybeAwaitable[list[bool]]:
        """Stage new values for rows (ids from reads of this transaction). Unique keys as for insert.

        All of one statement's changes are checked together at its end, so that ``SET k = k + 1`` works
        where the final state is unique.  Entry i is False when row i no longer exists. ``keys_kept``: the caller
        knows that no column of an index changes, so old values need not be read.
        """

    def delete(self, shard: ShardId, row_ids: Sequence[RowId]) -> MaybeAwaitable[list[bool]]:
        """Stage deletions."""

    def defer_unique(self, index: IndexId, deferred: bool) -> None:
        """Let this transaction's writes put a key of a unique index in several rows, until ``check_unique``.

        The caller checks before it commits. ``bulk_insert`` finds duplicates at once all the same.
        """

    def check_unique(self, shard: ShardId, index: IndexId) -> MaybeAwaitable[None]:
        """Raise DuplicateKey if a row this transaction has written shares its key with another row."""

    def bulk_insert(self, shard: ShardId, batches: AsyncIterator[Any]) -> Awaitable[int]:
        """Insert pyarrow.RecordBatches (columns ``c<attnum>``) by writing parts; returns the row count.

        Takes table X; finds duplicates by sort and merge; raises DuplicateKey. Visible to later statements
        of this transaction, and to others at commit, like any other write.
        """

    def bulk_replace(
        self,
        shard: ShardId,
        changes: AsyncIterator[tuple[Iterable[int], Any]],
        changed: frozenset[int],
    ) -> Awaitable[int | None]:
        """Update rows by writing parts: ``changes`` are ids of rows, and pyarrow.RecordBatches of what replaces them.

        The new versions get new ids. ``changed``: the attnums in which they differ. Returns the row count; None, and
        nothing is done, where table X is not to be had at once. All else as for ``bulk_insert``.
        """

    def bulk_delete(self, shard: ShardId, row_ids: Any) -> Awaitable[int | None]:
        """Delete many rows: ``array('q')`` of their ids, or an Arrow int64 array; returns how many were there.

        Rows of parts take a bit of memory each until the commit, and a bit of the log
        (``txn.transaction.bulk_ends``). None, and nothing is done, where table X is not to be had at once.
        """

    def spill(self, shard: ShardId, mark: int) -> Awaitable[Sequence[int] | None]:
        """Make a part of rows that the running statement, and what runs within it, has written one by one
        since a savepoint (``txn.transaction.spill``).

        No later savepoint may be gone back to. What replaces rows comes under new ids, which are returned;
        None, and nothing is done, where table X is not to be had at once. Raises OutOfSpace and what else
        writing a part raises: then the statement has to be undone.
        """

    def check_loaded(self, shard: ShardId, changed: frozenset[int]) -> Awaitable[None]:
        """Raise DuplicateKey if a row that the running statement has spilled shares a key with another;
        ``changed``: the attnums in which those that replace others differ.
        """

    def staged_rows(self) -> list[tuple[ShardId, int]]:
        """Return how many rows, written one by one, it has in memory, by shard."""

    def bulk_insert_parts(
        self,
        shard: ShardId,
        write: Callable[[PartJob], Awaitable[Sequence[WrittenPart]]],
        changed: frozenset[int] | None = None,
    ) -> Awaitable[int]:
        """Insert rows that processes elsewhere write as parts; returns the row count.

        Takes table X, then awaits ``write(job)``, which has the workers call
        ``txn.persist.parts.job.write_parts`` and returns what they have written. ``write`` may
        ``bulk_delete`` rows that the new ones replace; ``changed`` are then the attnums in which they differ.
        All the rest as for ``bulk_insert``. Whatever else the workers wrote, and all of it when anything
        fails or the transaction ends, is deleted; a task that lives on can write nothing more.
        """

    # -- schema ----------------------------------------------------------------------------------

    def holds_table(self, shard: ShardId) -> bool:
        """Tell whether this transaction has a lock on a table, so that its schema stays as it is."""

    def has_changed(self, shard: ShardId) -> bool:
        """Tell whether this transaction has rows or a schema of its own in a shard."""

    def changed_within(self, shard: ShardId, row_id: RowId) -> bool:
        """Tell whether a statement that ran within the running one (``resume_statement``) has changed a row."""

    def create_shard(self, spec: ShardSpec) -> None:
        """Register a shard when this transaction commits; usable inside it at once."""

    def alter_shard(self, spec: ShardSpec) -> MaybeAwaitable[None]:
        """Change a shard's schema; takes X. New indexes are built or, if built ahead, completed; unique ones
        checked (DuplicateKey).
        """

    def rewrite(self, shard: ShardId, rows: Sequence[Row]) -> MaybeAwaitable[None]:
        """Replace all rows (ALTER that must touch rows); takes X."""

    def bulk_rewrite(self, spec: ShardSpec, batches: AsyncIterator[Any]) -> Awaitable[int]:
        """Replace all rows of a shard, and its schema, by writing parts, as ``bulk_insert`` does; returns the
        row count. Takes X.

        Until the last batch has been written, the transaction reads the old rows under the old schema:
        ``batches`` may be made of them.
        """

    def truncate(self, shard: ShardId) -> MaybeAwaitable[None]:
        """Empty a shard by starting a new generation; takes X."""

    def drop_shard(self, shard: ShardId) -> MaybeAwaitable[None]:
        """Forget a shard when this transaction commits; takes X."""

    # -- end -------------------------------------------------------------------------------------

    def on_applied(self, callback: Callable[[Timestamp], None]) -> None:
        """Call ``callback(commit_ts)`` in the same loop tick in which the commit becomes readable."""

    def on_undo(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` when the transaction is rolled back, or back to a savepoint before now.

        An ``txn.transaction.journal.OneOfMany`` where there may be very many: all are undone at once at the end.
        """

    def savepoint(self) -> int:
        """Mark a savepoint and return its handle."""

    def rollback_to(self, savepoint: int) -> Awaitable[None] | None:
        """Undo intents and schema changes since ``savepoint``; locks stay.

        Much is undone in slices: then it has to be awaited, and can be asked for again if that is given up.
        """

    def written_since(self, start: int, most: int) -> tuple[int, Sequence[Row | None]]:
        """Return the rows written one by one since a savepoint, as they are now (None: deleted), and the
        savepoint until which they are.

        ``most``: changes that are looked at; where they are used up there may be more. A row that was written
        twice comes twice; what was loaded or ended in bulk does not come.
        """

    def begin_statement(self) -> int:
        """Mark where a client's statement begins that ``undo_statement`` may undo; what was scanned before is kept."""

    def undo_statement(self, mark: int) -> MaybeAwaitable[bool]:
        """Undo a statement that met WriteConflict, so that it can run again: its writes, in slices where they
        are many, and its scans.

        Only where nobody has seen what it read. False if the transaction must start over, because it does not write
        yet; raises WriteConflict if something scanned by an earlier statement has changed. Locks stay.
        """

    def commit(self) -> MaybeAwaitable[Timestamp]:
        """Commit; when nothing was written returns the timestamp of what was read. Durable and applied on return (P2).

        Raises WriteConflict (a scan was overtaken), OutOfSpace (both: rolled back, server goes on),
        CommitUnknown (08007, server stops), Fenced.
        """

    def withdraw(self) -> bool:
        """Ask a commit that is under way back, while its log entry is not being written; False: that decides now.

        True: await what ``commit`` returned all the same, which raises CommitWithdrawn (rolled back), or had nothing to
        write.
        """

    def commit_at(self, ts: Timestamp) -> MaybeAwaitable[Timestamp]:
        """Commit at exactly ``ts``, which makes it and everything below readable (C9); else as ``commit``.

        Raises TimestampPassed if that is no longer possible: rolled back, to be tried again at a higher one (C31).
        ValueError: it lies further ahead than timestamps are reserved (seconds); rolled back, too.
        """

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when a transaction that may write has ended, in the tick in which its locks go.

        What it committed has been applied, and ``on_applied`` was called before.
        """

    def rollback(self) -> None:
        """Drop intents, locks and holds. Idempotent."""


class Store(Protocol):
    """A running set of shards with one log and lock table, and an oracle for each timeline."""

    def begin(
        self,
        *,
        read_only: bool = False,
        session: int = 0,
        deadline_ms: int | None = None,
        at: Timestamp | None = None,
        lock_timeout_ms: int | None = None,
        timeline: str | None = None,
        points: Mapping[str, Timestamp] | None = None,
    ) -> Transaction:
        """Start a transaction at ``read_ts()`` with a read hold. ``session`` names the connection in errors.

        ``at``: read at that timestamp instead (raises ReadBelowSince; ValueError above ``read_ts()``:
        ``reach`` it first). One that writes all the same must find what it has read unchanged, as always.
        ``lock_timeout_ms``: limit of each lock wait, 0 for none, None for the store's default. ``timeline``:
        None for the default one, unless ``Transaction.enter`` says otherwise before it has read anything.
        KeyError when there is no such timeline. ``points``: with ``at``, what it reads at in the timelines
        that it may enter (``Transaction.read_points``).
        """

    def read_ts(self, timeline: str | None = None) -> Timestamp:
        """Return the timestamp of a timeline's latest commit that is durable and applied; None: of the default one."""

    def read_points(self) -> dict[str, Timestamp]:
        """Return ``read_ts`` of every timeline."""

    def reach(self, ts: Timestamp, timeline: str | None = None) -> Awaitable[None]:
        """Make ``ts`` readable: wait for the clock and for commits at or below it; later ones are above (A16, L6)."""

    def read_now(self, shard: ShardId, index: IndexId, key: Key) -> StoredRow | None:
        """Return the row under a full key at ``read_ts()`` if that is certain at a glance (hot, or cached).

        None says nothing about the key. The answer is that of a read-only transaction which begins and ends in this
        turn of the event loop.
        """

    def subscribe(
        self,
        shards: Sequence[ShardId],
        as_of: Timestamp | None = None,
        until: Timestamp | None = None,
        *,
        snapshot: bool = True,
        rows: bool = True,
        session: int = 0,
    ) -> AsyncIterator[Changes | Progress]:
        """Yield the rows of shards at ``as_of`` (default: now), then every change above it and below ``until`` (C8).

        ``snapshot`` False: only the changes. See ``txn.upkeep.subscribe`` for what is promised, and
        ``Subscription`` for ``position``, ``poll`` and ``close``.

        Raises ReadBelowSince; ValueError if ``as_of`` is in the future; KeyError if a shard does not exist then;
        CrossesTimelines if they are not of one timeline.
        """

    def listen(self, shard: ShardId, as_of: Timestamp | None = None) -> AsyncIterator[Changes | Progress]:
        """Yield the changes of a shard above ``as_of`` (default: now), without its rows at that time (C36)."""

    def build_index(self, spec: ShardSpec, index: IndexId, elsewhere: Elsewhere | None = None) -> IndexBuild:
        """Return the build, not begun, of an index of ``spec``, which a later ``alter_shard`` to ``spec`` completes.

        Meanwhile the shard goes on being changed (``txn.transaction.index_build``). ``close`` it in any case.
        ``elsewhere``: who may write its sidecars.
        """

    def cancel_waits(self, session: int) -> None:
        """Make the session's pending lock waits raise WaitCancelled."""

    def flush(self, shard: ShardId | None = None) -> Awaitable[None]:
        """Write hot rows to parts now (CHECKPOINT, VACUUM, tests)."""

    def close(self) -> Awaitable[None]:
        """Finish queued commits and release the data directory."""
