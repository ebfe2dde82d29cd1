"""The transaction block of one connection: its transaction, from BEGIN or the first statement to its end.

    ensure_txn ──> transaction runs ──> commit ──> durable, applied        (or it was rolled back, and the error goes on)
                        │    ^                └──> rollback
              savepoint │    │ rollback_to
                        v    │
                   later statements

``engine.session.transaction.block_state`` has the states; here is what happens on the way from one to the
next. Whatever lives as long as a transaction is told of its end in ``_leave``: settings, the catalog as seen,
deferred checks, exported snapshots, portals and cursors (``on_end``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.session.plans.plan import Plan
from engine.session.time_limits import TransactionLimit
from engine.session.transaction import savepoints, snapshots
from engine.session.transaction.block_state import BLOCK, END, FAILED, IDLE, STATEMENT, BlockEvent, next_state
from engine.session.transaction.new_storage import NewStorage
from engine.session.transaction.own_rows import OwnRows
from engine.session.transaction.races import note_gain, note_loss
from engine.session.transaction.savepoints import Savepoint
from engine.session.transaction.timelines import gone, outside
from planner.base.errors import SqlError
from planner.catalog import DEFAULT_TIMELINE
from planner.statements import SetTransaction
from planner.statements import Transaction as TransactionStatement
from txn.api import Transaction
from txn.base.errors import CommitWithdrawn
from txn.base.types import ShardId, Timestamp
from txn.transaction.selection import Selection

if TYPE_CHECKING:
    from engine.session.sequences.values import Counter
    from engine.session.session import Session


MAX_SAVEPOINTS: Final = 100_000
"""Of one transaction that can be gone back to: RELEASE makes room."""


class Block:
    """The transaction block of one session; see the module's prologue.

    Attributes:
        txn: the running transaction, or None; a block has none before its first statement. state: where the
        block stands. savepoints: those that can be gone back to, the oldest first. selection: how the running
        transaction's timestamp was chosen, None where nothing was to choose. observed_ts: the newest
        timestamp the session has committed, or chosen to read at. exported: ids of the running transaction's
        exported snapshots. lost_blocks, lost_tables: blocks lost to races since some have committed
        (``engine.session.transaction.races``), and by which tables. on_end: called with whether it was
        committed when a transaction has ended. one_of_several: the Query message that runs holds more
        statements. endings: transactions that the running statement has ended itself
        (``engine.session.transaction.within``). executes: Execute messages since the last Sync, or since a
        transaction has ended behind it, the running one included. reads_alone: the statement to run is a read
        and a transaction by itself. new_storage: which tables it has created or truncated. own_rows: what it
        has written row by row, in bytes. optimistic: it may be run again, so that its scans need not lock
        their tables (U4). wrote: the running transaction writes, or the last one did if none runs.
    """

    __slots__ = (
        "_entered", "_limit", "_limits", "_modes_set", "_owed", "_read_only", "_root", "_session", "_split", "endings", "executes", "exported", "lost_blocks", "lost_tables", "new_storage",
        "observed_ts", "on_end", "one_of_several", "optimistic", "own_rows", "reads_alone", "savepoints", "selection", "state", "txn",
        "wrote",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        """There is no transaction yet."""
        self._session = session
        self.txn: Transaction | None = None
        self.state = IDLE
        self.savepoints: list[Savepoint] = []
        self.selection: Selection | None = None
        self.observed_ts = Timestamp(0)
        self.exported: list[str] = []
        self.lost_blocks = 0
        self.lost_tables: set[ShardId] = set()
        self.on_end: list[Callable[[bool], None]] = []
        self.one_of_several = False
        self.endings = 0
        self.executes = 0
        self.reads_alone = False
        self.optimistic = False
        self.wrote = False
        self._modes_set = False
        self._split: Mapping[str, Transaction] | None = None  # of a block that reads in several timelines
        self._root: Transaction | None = None  # of these, the one that the others end with
        self._entered = False  # whether a statement has used a table
        self._read_only = False  # of the block whose transaction begins with its first statement
        self.new_storage = NewStorage()
        self.own_rows = OwnRows(session.held)
        self._owed: dict[Counter, int] = {}  # sequences, and how many of their calls have to be stored
        self._limits = (0, 0)  # lock and transaction timeout the running transaction goes by, milliseconds
        self._limit = TransactionLimit(self._timed_out)

    def let_go(self) -> None:
        """The session is over: who has waited for its blocks to end, and the clock of its transactions, go."""
        self.on_end.clear()
        del self._limit

    @property
    def in_block(self) -> bool:
        """Whether BEGIN was said, be it that the block has failed since."""
        return self.state is BLOCK or self.state is FAILED

    @property
    def is_open(self) -> bool:
        """Whether BEGIN was said, and nothing has failed since."""
        return self.state is BLOCK

    @property
    def is_alone(self) -> bool:
        """Whether the statement to run is neither in a block, nor one of several of a Query message, nor a
        function's.
        """
        return not self.in_block and not self.one_of_several and not self._session.system.routines.stack

    def must_be_alone(self, what: str) -> None:
        """Refuse what no transaction can hold within a block, beside other statements in a Query, behind some
        in a pipeline or in a function: 25001.
        """
        if self.in_block or self.one_of_several:
            raise SqlError("25001", f"{what} cannot run inside a transaction block")
        if self.executes > 1:
            raise SqlError("25001", f"{what} cannot be executed within a pipeline")
        if self._session.system.routines.stack:
            raise SqlError("25001", f"{what} cannot be executed from a function")

    @property
    def is_untouched(self) -> bool:
        """True in a block whose first statement is still to come: there is no transaction yet."""
        return self.state is BLOCK and self.txn is None

    @property
    def is_read_only(self) -> bool:
        """Whether the user has said that the transaction shall change nothing."""
        if self.in_block or (self._modes_set and self.txn is not None):
            return self._read_only if self.txn is None else self.txn.read_only
        return self._session.derived.read_only

    def owe(self, counter: Counter) -> None:
        """Note that a value was drawn that is to be stored before the transaction commits."""
        self._owed[counter] = counter.given

    async def _pay(self) -> None:
        owed, self._owed = self._owed, {}
        for counter, given in owed.items():
            await counter.wait(given)

    @property
    def watching(self) -> bool:
        """Whether the transaction has scanned without locks, so that its commit may fail."""
        return self.txn is not None and self.txn.watching

    def lags(self, plan: Plan) -> bool:
        """Tell whether a statement may be answered though another server may have taken over (N14)."""
        return self.selection is not None and not self.selection.lead and plan.only_reads

    # -- begin -------------------------------------------------------------------------------------

    def ensure_txn(self) -> Transaction:
        """Return the running transaction; without one, start an implicit one, or the block's.

        A block's transaction begins with its first statement, not with BEGIN: what was committed in between is
        seen, as in PostgreSQL.
        """
        txn = self.txn
        if txn is not None:
            return txn
        if self.state is BLOCK:
            return self._start_in_block()
        txn = self._start(read_only=self.reads_alone or self._session.derived.read_only)
        self.state = next_state(self.state, STATEMENT)
        return txn

    def enter(self, timeline: str, tables: Sequence[ShardId]) -> None:
        """Have the running transaction, or one that begins now, read and write in a timeline.

        ``tables``: those of the statement, for errors. Raises SqlError 25000 when it is in another one for good, 42704
        when there is no such timeline any more.
        """
        txn = self.txn or self.ensure_txn()
        if self._split is not None or (self._read_only and self._spans and self._begin_spanning(txn)):
            self._enter_another(txn, timeline)
            return
        try:
            other = txn.enter(timeline)
        except KeyError:
            raise gone(timeline) from None
        if other is not None:
            used = [*txn.shards_used(), *tables]
            catalog = self._session.catalog
            relations = [r for r in map(catalog.relation_by_oid, used) if r is not None]
            raise outside(timeline, other, relations)

    @property
    def _spans(self) -> bool:
        """Whether the block may read in several timelines: READ ONLY, and of a level that promises one
        snapshot and no order of commits.
        """
        if self.state is not BLOCK or not self._read_only:
            return False
        settings = self._session.settings
        level = settings.get("transaction_isolation")
        return level == "repeatable read" or (
            level == "serializable" and settings.get("transaction_deferrable") == "on"
        )

    def _begin_spanning(self, txn: Transaction) -> bool:
        self._split = txn.split()
        if self._split is None:
            return False
        self._root = txn
        return True

    def _enter_another(self, txn: Transaction, timeline: str) -> None:
        """Read in a timeline from here on; what is open reads on where it began. Raises SqlError 25000 within
        a function, 42704.
        """
        if self._split is None:
            raise AssertionError("timelines are changed by a block that is not split")
        found = self._split.get(timeline)
        if found is None or not self._session.db.store.has_timeline(timeline):
            raise gone(timeline)
        if found is not txn:
            if self._session.system.routines.stack and self.timeline_name is not None and self._entered:
                raise outside(timeline, self.timeline_name, ())
            self.txn = found
            found.next_statement()
        self._entered = True

    def _join(self) -> None:
        """The transaction that the others end with is the one that runs."""
        if self._split is not None:
            self.txn = self._root
            self._split = self._root = None
            self._entered = False

    @property
    def root(self) -> Transaction:
        """The transaction that stands for the block, whichever timeline the running statement reads."""
        return self._root or self.ensure_txn()

    @property
    def timeline_name(self) -> str | None:
        """The timeline that the running statement reads in; None while that is open."""
        txn = self.txn
        if txn is None:
            return None
        if self._split is None:
            return txn.timeline_name
        return next(name for name, one in self._split.items() if one is txn) if self._entered else None

    def begin_writing(self) -> Transaction:
        """Return the running transaction; without one, start one that may write, whatever the default says."""
        if self.txn is None:
            self._start(read_only=False)
            self.state = next_state(self.state, STATEMENT)
        return self.ensure_txn()

    def start_at(self, chosen: Selection, *, historic: bool, timeline: str | None = None) -> None:
        """Start the transaction of the statement to run, or of the block, at a timestamp that was chosen.

        ``timeline``: which it is of; None: of whichever comes to be entered, and unless it is ``historic``,
        by AS OF SYSTEM TIME, so that it only reads, that is then read as it is now: the newest of one
        timeline may be old in another. Raises ReadBelowSince.
        """
        points = None if historic or timeline is not None else self._session.db.store.read_points()
        if self.state is BLOCK:
            self._start_in_block(at=chosen.ts, timeline=timeline, points=points)
        else:
            read_only = historic or self.reads_alone or self._session.derived.read_only
            self._start(read_only=read_only, at=chosen.ts, timeline=timeline, points=points)
            self.state = next_state(self.state, STATEMENT)
        self.selection = chosen
        if not historic:
            self.observed_ts = max(self.observed_ts, chosen.ts)

    def renew_snapshot(self) -> None:
        """Let a transaction that has waited before it read anything see what it has waited for.

        As long as the definitions are those that it began with, and nobody was told its timestamp.
        """
        session, txn = self._session, self.txn
        told = self.selection is not None or self.exported
        if txn is not None and not told and session.catalog is session.space.catalog:
            txn.renew()

    def catch_up(self) -> bool:
        """Let a transaction that has only read read at the present from here on; tell whether it does.

        It may where all that it has read is the same there, so that to others it is as if it had begun now, and nobody
        was told its timestamp. What catalog queries have shown it does not count (docs/reference/isolation.md).
        """
        session, txn = self._session, self.txn
        told = self.selection is not None or self.exported
        reading = session.cursors is not None and session.cursors.any_reading
        if txn is None or told or reading or session.view.redefined() is not None:
            return False
        if not txn.renew(after_reads=True):
            return False
        session.view.adopt_latest()
        return True

    def import_snapshot(self, points: Mapping[str, Timestamp]) -> None:
        """Start the block's transaction at the timestamps of another one, which holds them: one for each timeline.

        Raises SqlError 42704 where it was dropped.
        """
        timeline = DEFAULT_TIMELINE if DEFAULT_TIMELINE in points else min(points)
        alone = None if len(points) > 1 else timeline
        try:
            self._start_in_block(
                at=points[timeline], timeline=alone, points=points if alone is None else None
            )
        except KeyError:
            raise gone(timeline) from None

    def _start(
        self,
        *,
        read_only: bool,
        at: Timestamp | None = None,
        timeline: str | None = None,
        points: Mapping[str, Timestamp] | None = None,
    ) -> Transaction:
        """Start a transaction whose time and limit count from its first statement."""
        session = self._session
        timeout_ms = session.derived.transaction_timeout_ms
        txn = self._begin(
            read_only=read_only, at=at, timeline=timeline, points=points, deadline_ms=timeout_ms
        )
        if timeout_ms:
            self._limit.start(timeout_ms)
        if not self.endings and not session.timed:
            session.transaction_time_us = session.statement_time_us or session.db.clock_us()
        return txn

    def _start_in_block(
        self,
        at: Timestamp | None = None,
        timeline: str | None = None,
        points: Mapping[str, Timestamp] | None = None,
    ) -> Transaction:
        """Start a block's transaction; its time and its limit count from BEGIN."""
        timeout_ms = self._session.derived.transaction_timeout_ms
        counted = timeout_ms != 0 and timeout_ms == self._limit.timeout_ms
        deadline_ms = self._limit.left_ms() if counted else timeout_ms
        txn = self._begin(
            read_only=self._read_only, at=at, timeline=timeline, points=points, deadline_ms=deadline_ms
        )
        if self.lost_blocks and txn.keeps_reads:
            txn.set_losses(self.lost_blocks)
        if timeout_ms and not counted:
            self._limit.start(timeout_ms)
        return txn

    def _begin(
        self,
        *,
        read_only: bool,
        at: Timestamp | None,
        timeline: str | None,
        points: Mapping[str, Timestamp] | None = None,
        deadline_ms: int,
    ) -> Transaction:
        session = self._session
        db, derived = session.db, session.derived
        catalog = session.space.catalog if at is None else session.space.at(at)
        # Who has temporary tables may write to them in READ ONLY transactions, too: those then keep what they read.
        spared = (
            read_only
            and at is None
            and (self._read_only if self.state is BLOCK else derived.read_only)
            and catalog.schema(session.temp_schema) is not None
        )
        txn: Transaction = db.store.begin(
            read_only=read_only and not spared,
            session=session.pid,
            deadline_ms=deadline_ms or None,
            lock_timeout_ms=derived.lock_timeout_ms,
            at=at,
            timeline=timeline,
            points=points,
        )
        if spared:
            txn.read_only = True
        self.txn = txn
        self.wrote = False
        session.view.begin(catalog)
        self._limits = (derived.lock_timeout_ms, derived.transaction_timeout_ms)
        return txn

    def renew_limits(self) -> None:
        """Give the running transaction the time limits that are set now (SET LOCAL lock_timeout)."""
        derived = self._session.derived
        lock_timeout_ms, deadline_ms = derived.lock_timeout_ms, derived.transaction_timeout_ms
        if self.txn is None or (lock_timeout_ms, deadline_ms) == self._limits:
            return
        self.txn.set_lock_timeout(lock_timeout_ms)
        if deadline_ms != self._limits[1]:
            self.txn.set_deadline(deadline_ms or None)
            self._limit.start(deadline_ms)
        self._limits = (lock_timeout_ms, deadline_ms)

    def _timed_out(self) -> None:
        session = self._session
        connection = session.db.sessions.get(session.pid)
        if connection is not None:
            connection.transaction_timed_out()

    def begin(self, statement: TransactionStatement) -> None:
        """BEGIN / START TRANSACTION."""
        session = self._session
        if self.in_block:
            session.warning("there is already a transaction in progress", "25001")
            return
        derived = session.derived
        read_only = statement.read_only
        if self.txn is not None:
            if self.txn.read_only and read_only is False:
                raise SqlError("25001", "transaction read-write mode must be set before any query")
            read_only = self.txn.read_only or bool(read_only)
        elif read_only is None:
            read_only = derived.read_only
        if self.txn is None:
            session.transaction_time_us = session.statement_time_us or session.db.clock_us()
            if derived.transaction_timeout_ms:
                self._limit.start(derived.transaction_timeout_ms)
        self._read_only = read_only
        self.state = next_state(self.state, BlockEvent.BEGIN)
        isolation = statement.isolation or derived.isolation
        self.set_modes(isolation=isolation, read_only=read_only, deferrable=statement.deferrable, check=False)

    def set_modes(
        self,
        *,
        isolation: str | None,
        read_only: bool | None,
        deferrable: bool | None,
        check: bool = True,
    ) -> None:
        """SET TRANSACTION: all four isolation names are taken and echoed; all run strict serializable."""
        settings = self._session.settings
        self._modes_set = True
        if isolation is not None:
            if check and self.txn is not None and isolation != settings.get("transaction_isolation"):
                raise SqlError("25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query")
            settings.override("transaction_isolation", isolation)
        if read_only is not None:
            txn = self.txn
            if txn is not None:
                if check and not read_only and txn.read_only:
                    if self.savepoints and self.savepoints[-1].read_only:
                        what = "cannot set transaction read-write mode inside a read-only transaction"
                    else:
                        what = "transaction read-write mode must be set before any query"
                    raise SqlError("25001", what)
                txn.read_only = read_only
            self._read_only = read_only
            settings.override("transaction_read_only", "on" if read_only else "off")
        if deferrable is not None:
            if check and self.savepoints:
                raise SqlError(
                    "25001", "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
                )
            if check and self.txn is not None:
                raise SqlError("25001", "SET TRANSACTION [NOT] DEFERRABLE must be called before any query")
            settings.override("transaction_deferrable", "on" if deferrable else "off")

    def set_read_only(self, read_only: bool) -> None:
        """Let the running transaction be read only, or not, as it was at a savepoint that ends."""
        if read_only != self.is_read_only:
            self.set_modes(isolation=None, read_only=read_only, deferrable=None, check=False)

    def set_modes_of_several(self, statement: SetTransaction) -> None:
        """SET TRANSACTION beside other statements in a Query message: of the transaction that they are together."""
        self.set_modes(
            isolation=statement.isolation, read_only=statement.read_only, deferrable=statement.deferrable
        )
        txn = self.ensure_txn()
        if statement.read_only is not None:
            txn.read_only = statement.read_only

    # -- end ---------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Commit the running transaction, durable and applied on return; on failure it is rolled back.

        The block is left in either case (manual, COMMIT).
        """
        self._join()
        txn = self.txn
        if txn is None:
            self._leave(committed=True)
            return
        session = self._session
        try:
            if self._owed:
                await self._pay()
            if session.timing.waiting is not None:
                await session.db.ports.waiting_checks(session)
            if session.commit_actions is not None:
                await session.commit_actions.run(session)
            if self._limit.timeout_ms:
                self._limit.stop()  # transaction_timeout ends where the commit begins
            result = txn.commit()
            if isinstance(result, Awaitable):
                self._committed(await _decided(session, txn, result))
                session.cancelled.decided = True
                session.out.confirmed()  # it was written under this server's epoch
        except BaseException as error:
            note_loss(session, error)
            self.rollback()
            raise
        self._done(txn)

    @property
    def commits_plainly(self) -> bool:
        """Whether committing needs nothing but the log entry: no ON COMMIT action, deferred check or sequence
        to store.
        """
        session = self._session
        return session.commit_actions is None and session.timing.waiting is None and not self._owed

    def start_commit(self) -> asyncio.Future[Timestamp] | None:
        """Commit a transaction that needs nothing but its log entry: None if it is done already.

        Else the caller hands the future, once it is done, to ``finish_commit``. Raises as ``commit``.
        """
        self._join()
        txn = self.txn
        if txn is None:
            raise AssertionError("there is no transaction to end")
        if self._limit.timeout_ms:
            self._limit.stop()
        try:
            result = txn.commit()
        except BaseException as error:
            note_loss(self._session, error)
            self.rollback()
            raise
        if isinstance(result, asyncio.Future):
            return result
        if isinstance(result, Awaitable):  # a large commit, which is prepared in slices before it is queued
            return asyncio.ensure_future(_decided(self._session, txn, result))
        self._done(txn)
        return None

    def finish_commit(self, outcome: asyncio.Future[Timestamp]) -> None:
        """Leave the transaction whose commit is decided; raises what refused it."""
        error = outcome.exception()
        if error is not None:
            note_loss(self._session, error)
            self.rollback()
            raise error
        txn = self.txn
        if txn is None:
            raise AssertionError("there is no transaction to end")
        self._committed(outcome.result())
        self._done(txn)

    def _done(self, txn: Transaction) -> None:
        """The running transaction has committed."""
        if self.lost_blocks and txn.writing and self.state is BLOCK:
            note_gain(self)
        self.txn = None
        self._leave(committed=True)

    def commit_read(self) -> bool:
        """Commit at once if the transaction wrote nothing and owes nothing; else return False."""
        self._join()
        txn = self.txn
        if txn is None or txn.writing or self._owed:
            return False
        if isinstance(txn.commit(), Awaitable):
            raise RuntimeError("a transaction that wrote nothing had to wait to commit")
        self.txn = None
        self._leave(committed=True)
        return True

    def _committed(self, ts: Timestamp) -> None:
        """A commit that wrote something is durable: remember its timestamp and tell the client (N4)."""
        session = self._session
        if ts > self.observed_ts:
            self.observed_ts = ts
        text = str(ts)
        session.settings.note("holdfast.commit_ts", text)
        if session.derived.reports_commits:
            session.out.parameter_status("holdfast.commit_ts", text)

    def rollback(self) -> None:
        """Roll the running transaction back and leave the block."""
        self._join()
        if self.txn is not None:
            self.txn.rollback()
            self.txn = None
        self._leave(committed=False)

    def _leave(self, *, committed: bool) -> None:
        session = self._session
        if session.ahead.builds:
            session.ahead.close()
        if committed:
            session.space.counters.commits += 1
            session.settings.commit()
        else:
            session.space.counters.rollbacks += 1
            session.settings.rollback()
        if self._limit.timeout_ms:
            self._limit.stop()
        if self._modes_set:
            self._modes_set = False
            session.settings.end_modes()
        self.state = next_state(self.state, END)
        self.executes = 0
        self.endings = 0
        self.selection = None
        if self.exported:
            snapshots.withdraw(session)
        if self.savepoints:
            self.savepoints.clear()
        if self._owed:
            self._owed = {}
        if self.own_rows.written[0]:
            self.own_rows.clear()
        session.timed = False
        session.view.end()
        self.new_storage.clear()
        session.timing.reset()
        for callback in tuple(self.on_end):
            callback(committed)

    def fail(self) -> None:
        """An error happened in the running statement: end the implicit transaction or fail the block."""
        if not self.in_block:
            self.rollback()
            return
        session = self._session
        if session.ahead.builds:
            session.ahead.close()
        if not self.savepoints and self.txn is not None:
            self._join()
            self.txn.rollback()  # locks go now; the block stays failed until ROLLBACK
            self.own_rows.clear()
        if self.exported and not self.savepoints:
            snapshots.withdraw(session)
        self.state = next_state(self.state, BlockEvent.ERROR)

    def restart(self) -> None:
        """Drop the implicit transaction so that its only statement can run again on a fresh snapshot."""
        self.restart_block()
        self._limit.stop()
        self._session.timing.reset()
        self.state = IDLE

    def restart_block(self) -> None:
        """Drop a block's transaction, so that its first statement can run again on a fresh snapshot."""
        self._join()
        if self.txn is not None:
            self.txn.rollback()
            self.txn = None
            self.own_rows.clear()
        self._session.view.end()
        self.new_storage.clear()

    # -- savepoints --------------------------------------------------------------------------------

    def savepoint(self, name: str) -> None:
        """SAVEPOINT name. Raises SqlError 53400 for more than ``MAX_SAVEPOINTS``."""
        if len(self.savepoints) >= MAX_SAVEPOINTS:
            raise SqlError("53400", f"more than {MAX_SAVEPOINTS} savepoints")
        self.savepoints.append(savepoints.mark(self._session, self.root, name))

    def begin_part(self) -> Savepoint:
        """Begin a part of the running transaction that can be undone by itself (EXCEPTION of PL/pgSQL);
        nothing has to end it.
        """
        return savepoints.mark(self._session, self.root)

    async def undo_part(self, part: Savepoint) -> None:
        """Undo what came after ``begin_part``. Raises why the transaction has ended, if it has."""
        if self.txn is None:
            raise AssertionError("there is no transaction to undo a part of")
        if self._session.ahead.builds:
            self._session.ahead.close()
        await savepoints.go_back(self._session, self.root, part)

    def release(self, name: str) -> int:
        """RELEASE: forget the savepoint and all after it; their changes stay. Returns its depth."""
        position = savepoints.position_of(self.savepoints, name)
        self.set_read_only(self.savepoints[position].read_only)
        del self.savepoints[position:]
        self.new_storage.released(position)
        return position

    async def rollback_to(self, name: str) -> int:
        """ROLLBACK TO: undo what came after; the savepoint stays. Returns its depth."""
        position = savepoints.position_of(self.savepoints, name)
        del self.savepoints[position + 1 :]
        if self.txn is None:
            raise AssertionError("there is no transaction to undo a part of")
        await savepoints.go_back(self._session, self.root, self.savepoints[position])
        self.new_storage.undone(position)
        self.state = next_state(self.state, BlockEvent.ROLLBACK_TO)
        return position


async def _decided(session: Session, txn: Transaction, work: Awaitable[Timestamp]) -> Timestamp:
    """Await the outcome of a commit. A cancel takes it back while it is queued; later it is forgotten (L39).

    Once the log entry is being written nobody can tell whether it is, so its outcome is the answer. That the client has
    gone is no reason to take it back.
    """
    future = asyncio.ensure_future(work)
    cancelled = False
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            if future.cancelled():
                raise
            if not session.out.lost:
                cancelled = True
                txn.withdraw()
        except Exception:
            break  # raised again, once, below
    try:
        return future.result()
    except CommitWithdrawn:
        if cancelled:
            raise asyncio.CancelledError from None
        raise
