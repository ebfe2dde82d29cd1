"""One connection's state: user, settings, transaction block, catalog as it sees it.

A transaction sees one catalog: the one current when it began (its read timestamp is the latest applied commit, so
they belong together), replaced when the transaction starts to write and so moves to the latest state, and
extended by its own DDL. Whoever writes holds table locks, so what it was bound against cannot change under it;
``Replan`` says that it changed just before.

``Session`` is also what functions see of the session (``engine.executor.Session``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from engine import snapshots
from engine.catalog.locks import CatalogLocks
from engine.catalog.state import CatalogSnapshot, Stored, StoredKey, key_of
from engine.catalog.store import write_changes
from engine.conflicts import Surroundings
from engine.constraints.timing import Mark, Timing
from engine.derived import Derived, split_identifiers
from engine.eager import settle, uninterrupted
from engine.index_ahead import BuiltAhead
from engine.plans import Plan
from engine.races import note_loss
from engine.settings import Settings
from engine.system import SystemView
from engine.temporary import CommitActions
from engine.txn_block import BlockEvent, BlockState, next_state
from pgwire.backend import Responder
from pgwire.codecs.settings import CodecSettings
from pgwire.errors import ErrorReport
from planner.catalog import RoleDef
from planner.errors import SqlError
from planner.statements import CreateTable
from planner.statements import Transaction as TransactionStatement
from txn.api import Transaction
from txn.errors import SchemaChanged
from txn.selection import Selection
from txn.types import ShardId, Timestamp

if TYPE_CHECKING:
    from engine.database import Database

ISOLATION_LEVELS = ("serializable", "repeatable read", "read committed", "read uncommitted")

_NOTICE_RANK = {
    "debug5": 0, "debug4": 1, "debug3": 2, "debug2": 3, "debug1": 4, "log": 5, "notice": 6, "warning": 7,
    "error": 8,
}  # fmt: skip


class Replan(Exception):
    """The statement's plan no longer fits the catalog: bind it again and run that."""


class CancelFlag:
    """What long loops poll: has the running statement been cancelled?"""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        """Look at ``session``."""
        self._session = session

    def is_set(self) -> bool:
        """Return whether a cancel or timeout is pending."""
        return bool(self._session.cancel_requested)


class Savepoint:
    """One SAVEPOINT: what to go back to."""

    __slots__ = ("changes", "handle", "name", "settings", "timing")

    def __init__(
        self, name: str, handle: int, settings: int, changes: Mapping[StoredKey, Stored | None], timing: Mark
    ) -> None:
        """Remember the marks of txn, settings and deferred constraints, and the catalog changes until now."""
        self.name, self.handle, self.settings, self.changes = name, handle, settings, changes
        self.timing = timing


class Session:
    """State of one connection; see the module's prologue.

    Attributes:
        database: the server this session belongs to.
        txn: the running transaction, or None.
        state: where the transaction block stands.
        catalog: the catalog the current statement sees.
        timestamp_hold: none; holds live in the transaction.
    """

    def __init__(
        self,
        database: Database,
        *,
        pid: int,
        user: RoleDef,
        database_name: str,
        settings: Settings,
        out: Responder,
        peer: str = "",
    ) -> None:
        """Open a session for an authenticated user."""
        self.db = database
        self.pid = pid
        self.peer = peer
        self.settings = settings
        self.out = out
        self.database = database_name
        self._session_user = user
        self.txn: Transaction | None = None
        self.state = BlockState.IDLE
        self._catalog = database.catalog
        self._base_catalog = database.catalog
        self.savepoints: list[Savepoint] = []
        self.timing = Timing()
        self._used: dict[int, int] = {}
        self._ddl_staged = False
        self.own_changes: Mapping[StoredKey, Stored | None] = {}  # of the catalog; replaced, never changed
        self.catalog_locks = CatalogLocks(self)
        self.ahead = BuiltAhead(self)
        self._after_commit: list[Callable[[], None]] = []
        self.transaction_time_us = 0
        self.statement_time_us = 0
        self.backend_start_us = database.clock_us()
        self.state_change_us = self.backend_start_us
        self.query_text = ""
        self.activity = "idle"
        self.cancel_requested = ""
        self.cancelled = CancelFlag(self)
        self._derived: Derived | None = None
        self._codec: CodecSettings | None = None
        self._modes_set = False
        self.one_of_several = False  # the Query message that runs holds more statements
        self.reads_alone = False  # the statement to run is a read and a transaction by itself
        self.optimistic = False  # it may be run again, so that its scans need not lock their tables (U4)
        self.lost_blocks = 0  # to races, since one has committed (engine.races)
        self.has_temporaries = False  # once true, plans depend on whose session it is
        self._path: tuple[str, ...] | None = None
        self._path_key: tuple[int, int] = (-1, -1)
        self.on_block_end: list[Callable[[bool], None]] = []
        self._limits = (
            0,
            0,
        )  # lock and transaction timeout that the running transaction goes by, milliseconds
        self._timeout: asyncio.TimerHandle | None = None  # of the running transaction
        self._ends_s = 0.0  # when that is due, on the loop's clock
        self._watched_ms = 0
        self._block_read_only = False
        self.commit_actions: CommitActions | None = None  # of temporary tables, once one has any
        self._random: Callable[[], float] = database.random
        self.system = SystemView(self)
        self.observed_ts = Timestamp(0)  # the newest it has committed, or chosen to read at
        self.selection: Selection | None = None  # how the running transaction's timestamp was chosen
        self.exported: list[str] = []  # snapshots of the running transaction
        self._lens: CatalogSnapshot | None = None  # seen instead of the latest catalog outside a transaction
        self._historic = False  # the running transaction began with an older catalog

    # -- what functions see ------------------------------------------------------------------------

    @property
    def catalog(self) -> CatalogSnapshot:
        """The catalog the current transaction sees, or the latest outside one."""
        if self.txn is not None:
            return self._catalog
        return self.db.catalog if self._lens is None else self._lens

    @contextmanager
    def looking_at(self, catalog: CatalogSnapshot) -> Iterator[None]:
        """See ``catalog`` while a statement is bound that will read in the past; a running transaction sees its own."""
        before, self._lens = self._lens, None if catalog is self.db.catalog else catalog
        try:
            yield
        finally:
            self._lens = before

    def setting(self, name: str) -> str:
        """Return a setting as SHOW prints it."""
        return self.settings.show(name)

    def set_setting(self, name: str, value: str, *, local: bool) -> str:
        """set_config(): change a setting and return what SHOW prints."""
        self.settings.set(name, value, local=local)
        return self.settings.show(name)

    @property
    def user(self) -> str:
        """current_user."""
        role = self.settings.get("role")
        return self.session_user if role == "none" else role

    @property
    def session_user(self) -> str:
        """session_user: who logged in, or whom SET SESSION AUTHORIZATION made of them."""
        return self.settings.get("session_authorization")

    @property
    def authenticated_user(self) -> str:
        """Who logged in."""
        return self._session_user.name

    @property
    def is_superuser(self) -> bool:
        """True when the current user is a superuser."""
        role = self.catalog.role(self.user)
        return role is not None and role.superuser

    @property
    def temp_schema(self) -> str:
        """Name of this session's schema for temporary tables."""
        return f"pg_temp_{self.pid}"

    @property
    def search_path(self) -> tuple[str, ...]:
        """Existing schemas in resolution order; pg_temp and pg_catalog first unless listed."""
        catalog = self.catalog
        key = (self.settings.generation, catalog.namespace_version)
        if self._path is None or self._path_key != key:
            self._path = self._resolve_path(catalog)
            self._path_key = key
        return self._path

    def _resolve_path(self, catalog: CatalogSnapshot) -> tuple[str, ...]:
        names: list[str] = []
        for entry in split_identifiers(self.settings.get("search_path")):
            name = self.user if entry == "$user" else entry
            if name == "pg_temp":
                name = self.temp_schema
            if name not in names and catalog.schema(name) is not None:
                names.append(name)
        if "pg_catalog" not in names:
            names.insert(0, "pg_catalog")
        if self.temp_schema not in names and catalog.schema(self.temp_schema) is not None:
            names.insert(0, self.temp_schema)
        return tuple(names)

    @property
    def explicit_search_path(self) -> tuple[str, ...]:
        """Existing schemas that the setting names: what current_schemas(false) shows."""
        catalog = self.catalog
        names: list[str] = []
        for entry in split_identifiers(self.settings.get("search_path")):
            name = self.user if entry == "$user" else entry
            if name == "pg_temp":
                name = self.temp_schema
            if name not in names and catalog.schema(name) is not None:
                names.append(name)
        return tuple(names)

    def clock_time_us(self) -> int:
        """clock_timestamp()."""
        return self.db.clock_us()

    def random(self) -> float:
        """Return a number uniform in [0, 1): from the server's source, or the sequence setseed() began."""
        return self._random()

    def set_seed(self, seed: float) -> None:
        """setseed(): from now on random() yields a sequence that ``seed`` (-1 .. 1) determines."""
        self._random = self.db.seeded_random(seed)

    def random_bytes(self, count: int) -> bytes:
        """Random bytes for gen_random_uuid()."""
        return self.db.random_bytes(count)

    @property
    def derived(self) -> Derived:
        """What the settings amount to; made anew only when one changed."""
        derived = self._derived
        if derived is None or derived.generation != self.settings.generation:
            derived = self._derived = Derived(self.settings, self.user)
            self._codec = None
        return derived

    @property
    def output_settings(self) -> CodecSettings:
        """Settings that decide how values print (they know no current time)."""
        return self.derived.codec

    @property
    def codec_settings(self) -> CodecSettings:
        """Settings that decide how values read and print; ``now_us`` is the transaction's time."""
        base = self.derived.codec
        codec = self._codec
        if codec is None or codec.now_us != self.transaction_time_us:
            codec = self._codec = replace(base, now_us=self.transaction_time_us)
        return codec

    @property
    def plan_key(self) -> tuple[object, ...]:
        """Everything binding folds in besides the text."""
        key = self.derived.plan_key
        return (key, self.pid) if self.has_temporaries else key

    # -- others ------------------------------------------------------------------------------------

    @property
    def surroundings(self) -> Surroundings:
        """What error reports may tell of others."""
        return Surroundings(self._query_of, self.db.store.latest_hot)

    def _query_of(self, pid: int) -> str | None:
        connection = self.db.sessions.get(pid)
        if connection is None or not self.may_watch(connection.session.session_user):
            return None
        return connection.session.query_text or None

    def may_watch(self, user: str) -> bool:
        """Tell whether the current user may see what sessions of ``user`` do."""
        return self.is_superuser or user == self.user

    # -- notices -----------------------------------------------------------------------------------

    def notice(
        self,
        message: str,
        *,
        severity: str = "NOTICE",
        sqlstate: str = "00000",
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Send a notice unless client_min_messages hides it."""
        rank = _NOTICE_RANK.get(severity.lower(), 6)
        if severity == "INFO" or rank >= _NOTICE_RANK[self.settings.get("client_min_messages")]:
            self.out.notice(
                ErrorReport(severity=severity, sqlstate=sqlstate, message=message, detail=detail, hint=hint)
            )

    def warning(self, message: str, sqlstate: str = "01000") -> None:
        """Send a WARNING."""
        self.notice(message, severity="WARNING", sqlstate=sqlstate)

    @property
    def bind_settings(self) -> CodecSettings:
        """Settings literals are read under."""
        return self.codec_settings

    @property
    def in_own_ddl(self) -> bool:
        """True when the transaction sees a catalog of its own, or a past one: its plans must not be shared."""
        if self.txn is None:
            return self._lens is not None
        return self._historic or self._catalog is not self._base_catalog

    @property
    def role_oid(self) -> int:
        """Oid of the current user."""
        role = self.catalog.role(self.user)
        if role is None:
            raise SqlError("42704", f'role "{self.user}" does not exist')
        return role.oid

    # -- transactions ------------------------------------------------------------------------------

    def ensure_txn(self) -> Transaction:
        """Return the running transaction; without one, start an implicit one, or the block's.

        A block's transaction begins with its first statement, not with BEGIN: what was committed in between is
        seen, as in PostgreSQL.
        """
        if self.txn is None:
            if self.state is BlockState.BLOCK:
                self._start_in_block()
                assert self.txn is not None
                return self.txn
            self._start(read_only=self.reads_alone or self.derived.read_only)
            self.state = next_state(self.state, BlockEvent.STATEMENT)
        assert self.txn is not None
        return self.txn

    def begin_writing(self) -> Transaction:
        """Return the running transaction; without one, start one that may write, whatever the default says."""
        if self.txn is None:
            self._start(read_only=False)
            self.state = next_state(self.state, BlockEvent.STATEMENT)
        return self.ensure_txn()

    def start_at(self, chosen: Selection, *, historic: bool) -> None:
        """Start the transaction of the statement to run, or of the block, at a timestamp that was chosen.

        ``historic``: by AS OF SYSTEM TIME; it only reads. Raises ReadBelowSince.
        """
        if self.state is BlockState.BLOCK:
            self._start_in_block(at=chosen.ts)
        else:
            self._start(read_only=historic or self.reads_alone or self.derived.read_only, at=chosen.ts)
            self.state = next_state(self.state, BlockEvent.STATEMENT)
        self.selection = chosen
        if not historic:
            self.observed_ts = max(self.observed_ts, chosen.ts)

    def import_snapshot(self, ts: Timestamp) -> None:
        """Start the block's transaction at the timestamp of another one, which holds it."""
        self._start_in_block(at=ts)

    def _start(self, *, read_only: bool, at: Timestamp | None = None) -> None:
        derived = self.derived
        catalog = self.db.catalog if at is None else self.db.catalog_at(at)
        self.txn = self.db.store.begin(
            read_only=read_only,
            session=self.pid,
            deadline_ms=derived.transaction_timeout_ms or None,
            lock_timeout_ms=derived.lock_timeout_ms,
            at=at,
        )
        self._catalog = self._base_catalog = catalog
        self._historic = catalog is not self.db.catalog
        self._limits = (derived.lock_timeout_ms, derived.transaction_timeout_ms)
        if derived.transaction_timeout_ms:
            self._watch(derived.transaction_timeout_ms)
        self.transaction_time_us = self.statement_time_us or self.db.clock_us()

    def _start_in_block(self, at: Timestamp | None = None) -> None:
        """Start a block's transaction; its time and its limit count from BEGIN."""
        time_us, ends_s, watched_ms = self.transaction_time_us, self._ends_s, self._watched_ms
        self._start(read_only=self._block_read_only, at=at)
        self.transaction_time_us = time_us
        timeout_ms = self.derived.transaction_timeout_ms
        if timeout_ms and timeout_ms == watched_ms and self.txn is not None:
            left_ms = max(int((ends_s - asyncio.get_running_loop().time()) * 1000), 1)
            self.txn.set_deadline(left_ms)
            self._watch(left_ms)
            self._watched_ms = timeout_ms

    def renew_limits(self) -> None:
        """Give the running transaction the time limits that are set now (SET LOCAL lock_timeout)."""
        derived = self.derived
        lock_timeout_ms, deadline_ms = derived.lock_timeout_ms, derived.transaction_timeout_ms
        if self.txn is None or (lock_timeout_ms, deadline_ms) == self._limits:
            return
        self.txn.set_lock_timeout(lock_timeout_ms)
        if deadline_ms != self._limits[1]:
            self.txn.set_deadline(deadline_ms or None)
            self._watch(deadline_ms)
        self._limits = (lock_timeout_ms, deadline_ms)

    def _watch(self, timeout_ms: int) -> None:
        """End the connection when the transaction that begins now lasts longer than ``timeout_ms`` (0: no limit).

        The transaction's own deadline sees to it that nothing is committed later (D63).
        """
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
        self._watched_ms = timeout_ms
        if timeout_ms:
            loop = asyncio.get_running_loop()
            self._timeout = loop.call_later(timeout_ms / 1000, self._timed_out)
            self._ends_s = loop.time() + timeout_ms / 1000

    def _timed_out(self) -> None:
        self._timeout = None
        connection = self.db.sessions.get(self.pid)
        if connection is not None:
            connection.transaction_timed_out()

    def begin_block(self, statement: TransactionStatement) -> None:
        """BEGIN / START TRANSACTION."""
        if self.state in (BlockState.BLOCK, BlockState.FAILED):
            self.warning("there is already a transaction in progress", "25001")
            return
        defaults = self.settings
        read_only = statement.read_only
        if read_only is None:
            read_only = defaults.get("default_transaction_read_only") == "on"
        if self.txn is None:
            self.transaction_time_us = self.statement_time_us or self.db.clock_us()
            if self.derived.transaction_timeout_ms:
                self._watch(self.derived.transaction_timeout_ms)
        elif statement.read_only is not None:
            self.txn.read_only = read_only
        self._block_read_only = read_only
        self.state = next_state(self.state, BlockEvent.BEGIN)
        isolation = statement.isolation or defaults.get("default_transaction_isolation")
        self.set_transaction(
            isolation=isolation, read_only=read_only, deferrable=statement.deferrable, check=False
        )

    def set_transaction(
        self,
        *,
        isolation: str | None,
        read_only: bool | None,
        deferrable: bool | None,
        check: bool = True,
    ) -> None:
        """SET TRANSACTION: all four isolation names are taken and echoed; all run strict serializable."""
        self._modes_set = True
        if isolation is not None:
            self.settings.override("transaction_isolation", isolation)
        if read_only is not None:
            txn = self.txn
            if txn is not None:
                if check and not read_only and txn.read_only:
                    raise SqlError("25001", "transaction read-write mode must be set before any query")
                if read_only and txn.writing:
                    raise SqlError("25001", "cannot set transaction read-only mode after a write")
                txn.read_only = read_only
            self._block_read_only = read_only
            self.settings.override("transaction_read_only", "on" if read_only else "off")
        if deferrable is not None:
            self.settings.override("transaction_deferrable", "on" if deferrable else "off")

    async def commit(self) -> None:
        """Commit the running transaction, durable and applied on return; on failure it is rolled back.

        The block is left in either case (manual, COMMIT).
        """
        txn = self.txn
        if txn is None:
            self._leave(committed=True)
            return
        try:
            if self.timing.waiting is not None:
                from engine.constraints.checks import make_waiting_checks

                await make_waiting_checks(self)
            if self.commit_actions is not None:
                await self.commit_actions.run(self)
            result = txn.commit()
            if isinstance(result, Awaitable):
                self._committed(await uninterrupted(result))
        except BaseException as error:
            note_loss(self, error)
            self.rollback()
            raise
        if self.lost_blocks and txn.writing and self.state is BlockState.BLOCK:
            self.lost_blocks = 0
        self.txn = None
        self._leave(committed=True)

    def lags(self, plan: Plan) -> bool:
        """Tell whether a statement may be answered though another server may have taken over (N14)."""
        return self.selection is not None and not self.selection.lead and plan.only_reads

    @property
    def watching(self) -> bool:
        """Whether the transaction has scanned without locks, so that its commit may fail."""
        return self.txn is not None and self.txn.watching

    @property
    def commits_plainly(self) -> bool:
        """Whether committing needs nothing but the log entry: no ON COMMIT action, no deferred check."""
        return self.commit_actions is None and self.timing.waiting is None

    def start_commit(self) -> asyncio.Future[Timestamp] | None:
        """Commit a transaction that needs nothing but its log entry: None if it is done already.

        Else the caller hands the future, once it is done, to ``finish_commit``. Raises as ``commit``.
        """
        assert self.txn is not None
        try:
            result = self.txn.commit()
        except BaseException:
            self.rollback()
            raise
        if isinstance(result, asyncio.Future):
            return result
        self.txn = None
        self._leave(committed=True)
        return None

    def finish_commit(self, outcome: asyncio.Future[Timestamp]) -> None:
        """Leave the transaction whose commit is decided; raises what refused it."""
        error = outcome.exception()
        if error is not None:
            self.rollback()
            raise error
        self.txn = None
        self._committed(outcome.result())
        self._leave(committed=True)

    def _committed(self, ts: Timestamp) -> None:
        """A commit that wrote something is durable: remember its timestamp and tell the client (N4)."""
        if ts > self.observed_ts:
            self.observed_ts = ts
        text = str(ts)
        self.settings.note("holdfast.commit_ts", text)
        if self.derived.reports_commits:
            self.out.parameter_status("holdfast.commit_ts", text)

    def commit_read(self) -> bool:
        """Commit at once if the transaction wrote nothing; else return False."""
        txn = self.txn
        if txn is None or txn.writing:
            return False
        if isinstance(txn.commit(), Awaitable):
            raise RuntimeError("a transaction that wrote nothing had to wait to commit")
        self.txn = None
        self._leave(committed=True)
        return True

    def rollback(self) -> None:
        """Roll the running transaction back and leave the block."""
        if self.txn is not None:
            self.txn.rollback()
            self.txn = None
        self._leave(committed=False)

    def _leave(self, *, committed: bool) -> None:
        if self.ahead.builds:
            self.ahead.close()
        if committed:
            self.db.counters.commits += 1
            self.settings.commit()
        else:
            self.db.counters.rollbacks += 1
            self.settings.rollback()
        if self._timeout is not None:
            self._watch(0)
        if self._modes_set:
            self._modes_set = False
            for name in ("transaction_isolation", "transaction_read_only", "transaction_deferrable"):
                self.settings.override(name, None)
        self.state = next_state(self.state, BlockEvent.END)
        self.selection = None
        if self.exported:
            snapshots.withdraw(self)
        if self.savepoints:
            self.savepoints.clear()
        self._used.clear()
        self._forget_ddl()
        self.timing.reset()
        for callback in tuple(self.on_block_end):
            callback(committed)

    def fail(self) -> None:
        """An error happened in the running statement: end the implicit transaction or fail the block."""
        if self.state in (BlockState.IDLE, BlockState.IMPLICIT):
            self.rollback()
            return
        if self.ahead.builds:
            self.ahead.close()
        if not self.savepoints and self.txn is not None:
            self.txn.rollback()  # locks go now; the block stays failed until ROLLBACK
        if self.exported and not self.savepoints:
            snapshots.withdraw(self)
        self.state = next_state(self.state, BlockEvent.ERROR)

    def restart(self) -> None:
        """Drop the implicit transaction so that its only statement can run again on a fresh snapshot."""
        if self.txn is not None:
            self.txn.rollback()
            self.txn = None
        if self._timeout is not None:
            self._watch(0)
        self._used.clear()
        self._forget_ddl()
        self.timing.reset()
        self.state = BlockState.IDLE

    @property
    def block_is_untouched(self) -> bool:
        """True in a block whose first statement is still to come: there is no transaction yet."""
        return self.state is BlockState.BLOCK and self.txn is None

    def restart_block(self) -> None:
        """Drop a block's transaction, so that its first statement can run again on a fresh snapshot."""
        if self.txn is not None:
            self.txn.rollback()
            self.txn = None
        self._used.clear()
        self._forget_ddl()

    def _forget_ddl(self) -> None:
        """The transaction is over."""
        if self._ddl_staged or self.catalog_locks.any:
            self._ddl_staged = False
            self.own_changes = {}
            self.catalog_locks.clear()

    # -- savepoints --------------------------------------------------------------------------------

    def savepoint(self, name: str) -> None:
        """SAVEPOINT name."""
        txn = self.ensure_txn()
        self.savepoints.append(
            Savepoint(name, txn.savepoint(), self.settings.mark(), self.own_changes, self.timing.mark())
        )

    def _find_savepoint(self, name: str) -> int:
        for position in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[position].name == name:
                return position
        raise SqlError("3B001", f'savepoint "{name}" does not exist')

    def release(self, name: str) -> None:
        """RELEASE: forget the savepoint and all after it; their changes stay."""
        del self.savepoints[self._find_savepoint(name) :]

    def rollback_to(self, name: str) -> int:
        """ROLLBACK TO: undo what came after; the savepoint stays. Returns its depth."""
        position = self._find_savepoint(name)
        point = self.savepoints[position]
        del self.savepoints[position + 1 :]
        assert self.txn is not None
        self.txn.rollback_to(point.handle)
        self.settings.undo_to(point.settings)
        if self.own_changes is not point.changes:
            self.own_changes = point.changes
            self._overlay()
        self.timing.go_back(point.timing)
        self.state = next_state(self.state, BlockEvent.ROLLBACK_TO)
        return position

    # -- catalog -----------------------------------------------------------------------------------

    def use(self, plan: Plan) -> None:
        """Remember what the transaction relied on, for ``adopt_catalog``; once it writes, it has that locked."""
        if self.txn is not None and not self.txn.writing:
            for oid, version in plan.bound.versions:
                self._used[oid] = version

    def is_current(self, plan: Plan) -> bool:
        """Tell whether a query may run at once: if the transaction writes, its tables have to be locked already.

        A transaction that only reads has the catalog of its timestamp; one that writes reads what is latest.
        """
        txn = self.txn
        if txn is None or not txn.writing:
            return True
        return self._base_catalog is self.db.catalog and all(map(txn.holds_table, plan.tables))

    async def start_read(self, plan: Plan) -> None:
        """Lock a query's tables by intention, so that they stay as it was planned for. Raises Replan when they are not."""
        if self.is_current(plan):
            return
        await self._hold_tables(plan)
        self.adopt_catalog()
        if not plan.fresh(self._catalog):
            raise Replan

    async def _hold_tables(self, plan: Plan) -> None:
        txn = self.ensure_txn()
        for shard in plan.tables:
            if not txn.holds_table(shard):
                await settle(txn.lock_table(shard, "IS"))

    async def start_write(
        self,
        plan: Plan,
        writes: Iterable[ShardId],
        scans: Sequence[ShardId] = (),
    ) -> None:
        """Promote and lock for a writing statement. Raises Replan when its plan went stale.

        ``scans``: tables to be locked because they are read otherwise than by key.
        """
        txn = self.ensure_txn()
        if txn.read_only:
            raise SqlError("25006", f"cannot execute {plan.bound.tag} in a read-only transaction")
        waiting = txn.begin_write(writes, scans)
        if waiting is not None:
            await waiting
        if not self.is_current(plan):
            await self._hold_tables(plan)
            self.adopt_catalog()
        if not plan.fresh(self._catalog):
            raise Replan

    def renew_catalog(self) -> None:
        """Before a statement is planned: what a writing transaction reads next is the latest. Raises SchemaChanged."""
        if (
            self.txn is not None
            and self.txn.writing
            and self.state in (BlockState.BLOCK, BlockState.IMPLICIT)
        ):
            self.adopt_catalog()

    def adopt_catalog(self) -> None:
        """Move to the latest catalog, where the transaction's reads now are (after promotion).

        Own changes stay on top: they are of objects that the transaction has locked. Raises SchemaChanged when a
        relation that was read before the transaction wrote is no longer as it was.
        """
        latest = self.db.catalog
        if self._base_catalog is latest:
            return
        for oid, version in self._used.items():
            relation = latest.relation_by_oid(oid)
            if relation is None or relation.version != version:
                raise SchemaChanged(ShardId(oid))
        if self.txn is not None and self.txn.writing:
            self._used.clear()  # locked from here on
        self._base_catalog = latest
        self._historic = False
        self._overlay()

    def _overlay(self) -> None:
        """See own changes on top of the catalog last adopted."""
        base = self._base_catalog
        own = self.own_changes
        self._catalog = base.overlaid(own, self.db.next_catalog_version()) if own else base

    async def start_ddl(self, plan: Plan) -> None:
        """Lock what the statement is about in the catalog, and take the latest one. Raises Replan, and txn's errors."""
        txn = self.ensure_txn()
        if txn.read_only:
            raise SqlError("25006", f"cannot execute {plan.bound.tag} in a read-only transaction")
        await self.catalog_locks.take_for(plan)
        if isinstance(plan.bound.statement, CreateTable) and plan.bound.statement.query is not None:
            await self._hold_tables(plan)
            self.adopt_catalog()
        if not plan.fresh(self._catalog):
            raise Replan

    async def change_catalog(self, puts: Sequence[Stored], deletes: Sequence[StoredKey] = ()) -> None:
        """Stage catalog changes in the transaction; it sees them at once, others when it commits."""
        txn = self.ensure_txn()
        await self.catalog_locks.cover(puts, deletes)
        await write_changes(txn, self._catalog, puts, deletes)
        own = dict(self.own_changes)
        own.update((key_of(item), item) for item in puts)
        own.update((key, None) for key in deletes if key in self._catalog.items)
        self.own_changes = own
        self._catalog = self._catalog.with_changes(puts, deletes, self.db.next_catalog_version())
        if not self._ddl_staged:
            self._ddl_staged = True
            txn.on_applied(self._publish)

    def _publish(self, ts: Timestamp) -> None:
        """The commit is readable: make its changes part of the current catalog, which others may have changed."""
        latest = self.db.catalog
        if latest is self._base_catalog:
            self.db.publish(self._catalog, ts)
        elif self.own_changes:
            self.db.publish(latest.overlaid(self.own_changes, self.db.next_catalog_version()), ts)
