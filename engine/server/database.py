"""The running server: store, catalog, executors, plan cache and sessions joined (composition root).

    open    lock the data directory, recover the log, read (or create) the catalog, start Spark as configured
    serve   pgwire's server asks ``authentication`` and ``connect`` for every client
    close   sessions end, the store flushes what it must and releases the directory

Everything that tells time or draws random bytes is injected here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.base import access_rules, accounts
from engine.base.accounts import Sessions, Statements
from engine.base.config import Config
from engine.base.eager import OnStrand, settle
from engine.base.executor import Executor
from engine.base.loop import strands
from engine.base.loop.descriptors import Descriptors
from engine.base.loop.outside import Outside
from engine.base.loop.turns import check_turns
from engine.base.memory import FIXED_BYTES, MemoryPlan
from engine.base.outcomes import Outcomes
from engine.base.rows import RowTuple
from engine.base.server_files import roots_of
from engine.base.settings import server_defaults
from engine.base.settings.defs import REPORTED
from engine.base.upkeep import Upkeep
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage import lost_rows, unreadable
from engine.catalog.storage.fences import Unread
from engine.catalog.storage.initial import initial_databases, initial_roles, new_database_items
from engine.catalog.storage.spaces import Space, Spaces
from engine.catalog.storage.store import (
    SPEC,
    Unreadable,
    encode,
    know_types,
    read_items,
    read_undo,
    stored_key,
)
from engine.catalog.storage.stored import DATABASE_OID, Stored, StoredKey, highest_oid, key_of
from engine.changes.bulk.server import LoadingServer
from engine.changes.bulk.spark_merge import SparkMerges
from engine.changes.bulk.worker_pool import WorkerPool
from engine.connection.backend import Connection
from engine.definitions.oids import OidSource
from engine.executors.arrow import rows_of
from engine.executors.index.executor import IndexExecutor
from engine.executors.local.executor import LocalExecutor
from engine.executors.local.figures import VERSION as SKETCHES
from engine.executors.local.figures import DuckCounter
from engine.executors.spark import calibration
from engine.executors.spark.calibration import Calibration
from engine.executors.spark.executor import SparkExecutor
from engine.executors.spark.files import SparkFiles, spark_files
from engine.executors.statistics.keeper import Statistics
from engine.feeds.sources.feeding import FeedingServer
from engine.feeds.sources.registry import Sources
from engine.server import admission
from engine.server.admission import Attendance
from engine.server.forgetting import forgetting
from engine.server.leftovers import drop_ended, drop_leftovers
from engine.server.ports import PORTS
from engine.server.preload import preload
from engine.server.standing import LeaseStanding
from engine.session.catalog.ahead import RowsAhead
from engine.session.catalog.virtual import VirtualCatalog
from engine.session.channels import Channels
from engine.session.errors import report_of
from engine.session.large_objects.shards import SHARDS as LARGE_OBJECT_SHARDS
from engine.session.large_objects.shards import create_shards
from engine.session.named_subscriptions import SHARD as NAMED_SHARD
from engine.session.named_subscriptions import NamedSubscriptions
from engine.session.plans.caches import PlanCaches
from engine.session.sequences.values import SHARD as SEQUENCE_SHARD
from engine.session.sequences.values import Counters as SequenceCounters
from engine.session.server import Client, SessionServer
from engine.session.session import Session
from engine.session.transaction.snapshots import SnapshotRegistry
from pgwire import give_way, release
from pgwire.backend import Authentication, MaybeAwaitable, Responder
from pgwire.codecs.text.encodings import at_hand
from pgwire.codecs.text.encodings import encoding as tables_of
from pgwire.messages.framing import Room
from pgwire.session.turns import Turns
from planner.base.errors import SqlError
from planner.catalog import DatabaseDef, TimelineDef
from planner.query import OutputColumn
from txn.base import huge_values
from txn.base.errors import DamagedFile, Fenced, OnlyRead, TxnError
from txn.base.resident import resident_bytes
from txn.base.types import Timestamp
from txn.log.durable import StorageConfig
from txn.log.lease import Lease, LeaseOptions
from txn.log.shared import ObjectStore, SharedConfig
from txn.persist.blobs.object_url import parse_object_url
from txn.persist.scratch import sweep
from txn.store import ShardStore, open_store
from txn.transaction.coordinator import TxnOptions
from txn.upkeep.subscribe import Changes

log = logging.getLogger("holdfast")
_OF_ITSELF: Final = frozenset(("08", "0A", "25", "53", "54", "57"))
"""Classes of SQLSTATEs that do not rest on what is stored: the connection's, the block's, limits, cancels and
time-outs."""


SALVAGED_SHARDS: Final = frozenset((SPEC.shard, NAMED_SHARD, SEQUENCE_SHARD))
"""What a start reads: rows of damaged files are fenced off one by one."""
COMMON_SHARDS: Final = frozenset((SPEC.shard, NAMED_SHARD, SEQUENCE_SHARD, *LARGE_OBJECT_SHARDS))
"""The server's own: every timeline has them."""


def _databases() -> dict[StoredKey, Stored]:
    """Return what the catalog shard of a new server holds of its databases, postgres' own objects apart."""
    items = initial_databases()
    found = {key_of(item): item for item in items}
    for item in items:
        if isinstance(item, DatabaseDef) and item.oid != DATABASE_OID:
            found |= {stored_key(item.oid, key_of(own)): own for own in new_database_items()}
    return found


if TYPE_CHECKING:

    def _is_what_each_floor_takes_it_for(
        server: Database,
    ) -> tuple[SessionServer, LoadingServer, FeedingServer]:
        """For the type checker: ``executing``, ``loading`` and ``feeding`` say of a session's server what
        holds of this one.
        """
        return server, server, server


class Database:
    """One server on one data directory; implements ``pgwire.backend.Database``."""

    def __init__(self, config: Config, store: ShardStore) -> None:
        """Use ``open`` instead."""
        self.config = config
        self.store = store
        self.ports = PORTS
        memory = MemoryPlan.of(config.memory)
        before = max(sum(resident_bytes()) - FIXED_BYTES, 0)  # where it is one part of a larger process
        self.statements = Statements(memory.statements, memory.statement, memory.ceiling + before)
        self.kept = Sessions(memory.sessions, memory.session)
        self.messages = Room(memory.messages, self.statements.left)
        self.descriptors = Descriptors(config.max_connections)
        accounts.install(self.statements)
        self.lease: Lease | None = None  # asked at every statement, so kept close
        self.failed: Exception | None = None
        self.spaces = Spaces(self.next_catalog_version)
        self.attendance = Attendance(self)
        self.plans = PlanCaches(memory.plans)
        self.snapshots = SnapshotRegistry()
        self.outcomes = Outcomes(store)
        self.named = NamedSubscriptions(self)
        self.sources = Sources(self)
        self.sequences = SequenceCounters(self)
        self.channels = Channels()
        self.sessions: dict[int, Connection] = {}
        self.virtual = VirtualCatalog(self)
        store.look_for_huge(lambda: release.met_long)
        huge_values.mind = release.mind
        store.on_forgetting(
            lambda: forgetting(self),
            lambda: [change for space in self.spaces for change in space.history.kept],
        )
        self.ahead = RowsAhead()
        self.executors: dict[str, Executor] = {}
        self.spark: SparkExecutor | None = None  # also among the executors
        self.statistics: Statistics | None = None  # of an open server
        self.calibration: Calibration | None = None
        self.worker_pool: WorkerPool | None = None  # of a server that may start processes
        self._outside: Outside | None = None  # the same
        self.server_files = roots_of(config.server_files)
        self.setting_defaults = server_defaults(config.setting)
        self.start_time_us = self.load_time_us = self.clock_us()
        self.upkeep = Upkeep()
        self.stopping: Callable[[], None] | None = None
        self.access_rules = access_rules.read(config.access_rules) if config.access_rules else ()
        self._preloading: asyncio.Future[None] | None = None
        self._sweeping: asyncio.Future[list[str]] | None = None
        # ends a session by its pid, with a report other than 57P01 if one is given; False if there is none
        self.terminate: Callable[..., bool] = lambda pid, report=None: False
        self.interrupt: Callable[[int], bool] = lambda pid: False  # cancels what a session runs
        self.turns = Turns()  # the server's, once there is one: whose work gives way to whose
        self._random = random.Random(secrets.randbits(128))
        self._version = 0
        self._oids = OidSource(store.reserve)
        self._removals: set[asyncio.Future[None]] = set()  # of dropped timelines' registers

    # -- injected sources --------------------------------------------------------------------------

    def clock_us(self) -> int:
        """Return the wall clock in microseconds since 1970."""
        return time.time_ns() // 1000

    def random(self) -> float:
        """Return a uniform random number in [0, 1)."""
        return self._random.random()

    def seeded_random(self, seed: float) -> Callable[[], float]:
        """Return a generator that ``seed`` determines."""
        return random.Random(seed).random

    def random_bytes(self, count: int) -> bytes:
        """Return unguessable bytes."""
        return secrets.token_bytes(count)

    # -- life --------------------------------------------------------------------------------------

    @classmethod
    async def open(cls, config: Config, waiting: Callable[[str], None] | None = None) -> Database:
        """Open the data directory, creating it if absent, or become the leader of shared stores.

        ``waiting(holder)`` is called when another server leads and has to be waited for.

        Raises txn's DataDirectoryInUse, LeaderAlive, UnknownFormat, Indeterminate (a store that does not answer).
        """
        give_way.install(strands.lay_aside, None, strands.beside)
        if give_way.DEBUG:
            check_turns()
        memory = MemoryPlan.of(config.memory)
        store = await open_store(
            StorageConfig(
                path=Path(config.data_dir),
                cache_bytes=memory.cache,
                reserve_bytes=config.disk_reserve,
                shared=_shared(config, waiting),
                objects=_objects(config) if not config.consensus else None,
            ),
            TxnOptions(
                policy=config.deadlock_policy,
                hot_rows=config.flush_rows,
                hot_bytes=memory.hot,
                part_bytes=memory.part,
                mapped_bytes=memory.mapped,
                retention_ms=config.history_retention * 1000,
                hold_at_start=True,
                common_shards=COMMON_SHARDS,
                salvaged_shards=SALVAGED_SHARDS,
            ),
        )
        database = cls(config, store)
        database.calibration = _calibration(Path(config.data_dir))
        database.lease = store.lease
        store.on_failure(database.fail_stop)
        await database.open_own_shards()
        local = LocalExecutor(
            blob_dir=config.blob_dir,
            spill=Path(config.data_dir) / "duckdb-spill",
            memory_bytes=memory.duckdb,
            values_bytes=memory.duckdb_values,
            threads=config.local_threads,
            queries=config.local_queries,
            descriptors=database.descriptors,
        )
        database.statistics = Statistics(
            store,
            Path(config.data_dir) / "statistics",
            lambda: DuckCounter(local.cursor),
            SKETCHES,
            database.clock_us,
        )
        await database.statistics.load()
        database.spark = SparkExecutor(
            master=config.spark_master,
            mode=config.spark_start,
            data_dir=Path(config.data_dir),
            heap_bytes=memory.jvm,
            queries=config.spark_max_queries,
            nice=config.spark_nice,
            conf=dict(config.spark_conf),
            files=_spark_files(config),
            statistics=database.statistics,
        )
        store.merge_elsewhere(SparkMerges(database.spark, config.merge_spark_min_bytes, memory.part))
        database.executors = {
            "index": IndexExecutor(),
            "local": local,
            "spark": database.spark,
        }
        return database

    def run_outside(self, processes: Outside) -> None:
        """Have long calls of C run in processes, which ``close`` ends."""
        self._outside = processes
        give_way.install(strands.lay_aside, processes.run, strands.beside)

    async def open_own_shards(self) -> None:
        """Read the server's own shards, ``COMMON_SHARDS``, and make those that are not there yet."""
        await self._load_catalog()
        await self.sequences.open(
            [r for space in self.spaces for r in space.catalog.user_relations()],
            {oid for space in self.spaces for oid in space.catalog.fenced},
        )
        await self.named.open()
        if self.spaces.lost:
            return
        await create_shards(self.store)
        for space in self.spaces:
            await drop_leftovers(self, space)

    async def _load_catalog(self) -> None:
        if (damage := self.store.damage_of(SPEC.shard)) is not None:
            self.store.only_read(SPEC.shard, OnlyRead(damage))
        txn = self.store.begin()
        unread: dict[StoredKey, Unreadable] = {}
        lost = "" if damage is None else f"{damage}"
        try:
            txn.spec(SPEC.shard)
        except (KeyError, DamagedFile):
            items = {key_of(item): item for item in (*initial_roles(), *new_database_items())}
            missing = {**items, **_databases()}
            if damage is None:
                txn.create_shard(SPEC)
        else:
            files = "; ".join(str(one) for one in self.store.lost_files(SPEC.shard))
            items, unread, nameless = await read_items(txn, files)
            items |= lost_rows.assumed(unread, _databases())
            if nameless:
                damage = damage or self.store.lost_files(SPEC.shard)[0]
                self.store.only_read(SPEC.shard, OnlyRead(damage))
                lost = f"{damage}, {nameless} of its rows are lost without their keys"
            # a directory from before there were several
            missing = {} if any(key[0] == "database" for key in (*items, *unread)) else _databases()
        if damage is not None:
            txn.rollback()
            first = {key_of(item): item for item in (*initial_roles(), *new_database_items())}
            await self._load_damaged({**first, **missing, **items}, unread, lost)
            return
        if missing:
            await settle(txn.begin_write([SPEC.shard]))
            await settle(txn.insert(SPEC.shard, [(*key, encode(item)) for key, item in missing.items()]))
            await settle(txn.commit())
        else:
            txn.rollback()
        await self._load_spaces({**items, **missing}, unread)
        unreadable.note(Path(self.config.data_dir), self.spaces)
        await self._oids.open(max(highest_oid(space.catalog.items.values()) for space in self.spaces) + 1)
        await self._keep_timelines(self.spaces.any.catalog)

    async def _load_damaged(
        self, items: dict[StoredKey, Stored], unread: dict[StoredKey, Unreadable], lost: str
    ) -> None:
        """Make the catalogs of what there is of one of which rows are missing, or old: to be read by
        superusers, and by nobody else.
        """
        log.error("the catalog is damaged, nothing is written and superusers alone get in: %s", lost)
        stored = dict(self.store.shards())
        lost_rows.add_tables(items, unread, stored, self.store.damaged())
        stale = partial(lost_rows.stale, stored, lost)
        self.spaces.load(items, unread, self.store.read_ts(), lost, stale)
        unreadable.note(Path(self.config.data_dir), self.spaces)
        await self._oids.open(max(highest_oid(space.catalog.items.values()) for space in self.spaces) + 1)
        for name in self.spaces.any.catalog.timelines:
            if self.store.has_timeline(name):
                await self.store.create_timeline(name)

    async def _keep_timelines(self, catalog: CatalogSnapshot) -> None:
        """Make the store's timelines those of the catalog; where one of these cannot be read, none goes."""
        behind = {f.object.name for f in catalog.fences.values() if isinstance(f.object, TimelineDef)}
        if not behind:
            await self.store.keep_timelines(catalog.timelines)
            return
        for name in catalog.timelines:
            if name not in behind:
                await self.store.create_timeline(name)

    async def _load_spaces(
        self, items: Mapping[StoredKey, Stored], unread: Mapping[StoredKey, Unreadable]
    ) -> None:
        """Make the catalogs, and learn what they were before this start, as far back as they can be read."""
        floor, now = self.store.since_of(SPEC.shard), self.store.read_ts()
        self.spaces.load(items, unread, floor)
        undos: dict[Timestamp, dict[StoredKey, Stored | None]] = {}
        if floor < now:
            changes = self.store.subscribe([SPEC.shard], floor, Timestamp(now + 1), snapshot=False)
            events = [event async for event in changes if isinstance(event, Changes)]
            know_types(change.row for event in events for change in event.rows)
            for event in events:
                try:
                    read_undo(event.rows, undos.setdefault(event.ts, {}))
                except Unread as error:
                    log.error("what the catalog was before %d cannot be read: %s", event.ts, error)
                    undos.clear()
                    self.spaces.forget_before(event.ts)
        for ts, undo in undos.items():
            self.spaces.replay(ts, undo)

    async def close(self) -> None:
        """Stop sources and executors, and release the data directory."""
        await self.ahead.close()
        await self.sources.close()
        if self.worker_pool is not None:
            await self.worker_pool.close()
        if self._outside is not None:
            await self._outside.close()
        if self.statistics is not None:
            await self.statistics.close()
        for executor in self.executors.values():
            await executor.close()
        await self.named.close()
        await self.sequences.close()
        if self._removals:
            await asyncio.wait(self._removals)
        await self.store.close()

    # -- catalog -----------------------------------------------------------------------------------

    def next_catalog_version(self) -> int:
        """Return a version no snapshot or relation of this process has had (they restart with the server)."""
        self._version = max(self._version + 1, self.clock_us())
        return self._version

    def allocate_oids(self, count: int) -> int:
        """Reserve ``count`` consecutive oids and return the first."""
        return self._oids.allocate(count)

    async def oids_ready(self, count: int) -> None:
        """Wait until ``allocate_oids`` has that many. SqlError 53000."""
        await self._oids.ready(count)

    def publish(
        self,
        space: Space,
        catalog: CatalogSnapshot,
        changes: Mapping[StoredKey, Stored | None],
        ts: Timestamp,
    ) -> None:
        """Make a catalog committed at ``ts`` the current one; called in the tick in which it is applied."""
        self.spaces.publish(space, catalog, changes, ts, self.store.since)

    def settle_timeline(self, name: str) -> None:
        """A transaction that made or dropped a timeline has ended: keep what the catalog says, and no more."""
        if name not in self.spaces.any.catalog.timelines and self.store.has_timeline(name):
            removal = asyncio.ensure_future(self.store.drop_timeline(name))
            self._removals.add(removal)
            removal.add_done_callback(self._removed)

    def _removed(self, removal: asyncio.Future[None]) -> None:
        self._removals.discard(removal)
        error = None if removal.cancelled() else removal.exception()
        if error is not None:
            log.warning(
                "the register of a dropped timeline was left behind: %s", error
            )  # until the next start

    def load_ahead(self) -> None:
        """Have a thread load what statements need; sessions begin when it has. To be called before clients
        are served.
        """
        self._preloading = asyncio.get_running_loop().run_in_executor(None, preload, self.virtual)

    async def start_background(self) -> None:
        """Start what may take a while without keeping clients waiting: Spark's JVM, and sources once their
        statements find all loaded.
        """
        self._sweeping = asyncio.get_running_loop().run_in_executor(None, sweep)
        if self.spark is not None:
            self.spark.start_background()
        await self._preloaded()
        self.sources.start()

    async def _preloaded(self) -> None:
        """Wait until statements find all that they need loaded; whoever gives up takes nothing along."""
        if self._preloading is not None:
            await asyncio.shield(self._preloading)

    @property
    def spark_available(self) -> bool:
        """True when the router may choose Spark by itself."""
        return self.spark is not None and self.spark.ready

    def wait_in_spark(self, session: Session) -> str | None:
        """Return what a session waits for in Spark, as pg_stat_activity calls it; None for nothing."""
        return None if self.spark is None else self.spark.runtime.waits.of(id(session))

    def arrow_rows(self, batch: Any, columns: Sequence[OutputColumn]) -> list[RowTuple]:
        """Return an Arrow batch as tuples in the value domain."""
        return rows_of(batch, [column.type for column in columns])

    # -- pgwire.backend.Database -------------------------------------------------------------------

    def authentication(
        self, user: str, database: str, peer: str, tls: bool
    ) -> MaybeAwaitable[Authentication]:
        """Choose the method by the access rules, without them by ``auth``. FATAL 28000 for whom they keep out."""
        return admission.authentication(self, user, database, peer, tls)

    def reload(self) -> None:
        """Read the access rules again; where they cannot be read they stay as they are, and the log says so.
        For SIGHUP.
        """
        if self.config.access_rules:
            try:
                self.access_rules = access_rules.read(self.config.access_rules)
            except access_rules.AccessRulesError as error:
                log.error("the access rules stay as they were: %s", error)
                return
            log.info("read %d access rules", len(self.access_rules))
        self.load_time_us = self.clock_us()

    def connect(
        self, parameters: Mapping[str, str], pid: int, peer: str, out: Responder
    ) -> MaybeAwaitable[tuple[Connection, Mapping[str, str]]]:
        """Open a session. FATAL 28000, 3D000, 55000, 53300, 42501, 42704, 22023 as PostgreSQL raises them."""
        if self._preloading is not None and not self._preloading.done():
            return self._connect_once_loaded(parameters, pid, peer, out)
        connection = admission.admit(self, parameters, pid, peer, out)
        self.sessions[pid] = connection
        connection.session.space.counters.sessions += 1
        connection.log.begins()
        self.ahead.begin(connection.session)
        status = {reported: connection.session.settings.get(reported) for reported in REPORTED}
        encoding = connection.session.settings.get("client_encoding")
        if not at_hand(encoding):
            return self._greet(connection, status, encoding, out)
        out.client_encoding(encoding)
        return connection, status

    async def _connect_once_loaded(
        self, parameters: Mapping[str, str], pid: int, peer: str, out: Responder
    ) -> tuple[Connection, Mapping[str, str]]:
        """As ``connect``, for clients of the first moments: they would import on the loop what a thread is loading."""
        await self._preloaded()
        return await settle(self.connect(parameters, pid, peer, out))

    async def _greet(
        self, connection: Connection, status: Mapping[str, str], encoding: str, out: Responder
    ) -> tuple[Connection, Mapping[str, str]]:
        """Finish ``connect`` for the first client of an encoding whose tables have to be made."""
        try:
            await asyncio.to_thread(tables_of, encoding)
        except BaseException:  # given up: nobody has the connection that could close it
            self.sessions.pop(connection.session.pid, None)
            raise
        out.client_encoding(encoding)
        return connection, status

    def session_closed(self, connection: Client) -> MaybeAwaitable[None]:
        """A connection ended: forget it and its advisory locks, drop its temporary tables."""
        session = connection.session
        self.sessions.pop(session.pid, None)
        if session.catalog.schema(session.temp_schema) is not None:
            return self.attendance.leaving(session, self._without_temporaries(connection))
        session.system.advisory.close()
        connection.let_go()
        return None

    async def _drop_temporaries(self, session: Session) -> None:
        """Drop the temporary tables of a session that ends, in a transaction of its own."""
        try:
            await drop_ended(self, session.space, session.pid)
        except (TxnError, SqlError) as error:
            log.warning("temporary tables of pid %d stay until the next start: %s", session.pid, error)

    async def _without_temporaries(self, connection: Client) -> None:
        """Drop a session's temporary objects before its advisory locks: who waits for one of these finds none
        of them left.
        """
        try:
            await OnStrand.of(
                self._drop_temporaries(connection.session)
            )  # what looks for what hangs on them gives way
        finally:
            connection.session.system.advisory.close()
            connection.let_go()

    @property
    def standing(self) -> LeaseStanding | None:
        """See ``pgwire.backend.Database``."""
        return None if self.lease is None else LeaseStanding(self.lease, self.spaces.any.catalog)

    def leading(self) -> bool:
        """Tell whether this server is sure to lead: ask before every answer that rests on what it knows (A41)."""
        lease = self.lease
        return lease is None or lease.valid()

    async def reason(self, error: Exception) -> Exception:
        """Return the error that a statement failed with; Fenced if it failed because another server leads.

        What it has met once the lease has run out may be so no longer (a duplicate key), or come of its
        successor, which removes files that this server may be about to read. So nothing is reported before it
        is known which it was, but what says nothing of what is stored (``_OF_ITSELF``): this waits for the
        next renewal.
        """
        if self.leading():
            return error
        report = report_of(error, self.spaces.any.catalog)
        if report is not None and report.sqlstate[:2] in _OF_ITSELF:
            return error
        try:
            await self.wait_leading()
        except Fenced as deposed:
            return deposed
        return error

    async def wait_leading(self) -> None:
        """Return once it is sure again, which takes as long as the consensus store does not answer.

        Raises txn's Fenced when another server leads.
        """
        if self.lease is not None:
            await self.lease.wait_valid()

    def fail_stop(self, error: Exception) -> None:
        """The log's state is unknown or another server took over: stop serving (promise P2)."""
        log.critical("stopping: %s", error)
        self.failed = error
        if self.stopping is not None:
            self.stopping()


def _calibration(data_dir: Path) -> Calibration | None:
    """Return what ``holdfast calibrate --store`` left; a file that is none counts as none, with a warning."""
    try:
        return calibration.load(data_dir)
    except (OSError, ValueError) as error:
        log.warning("%s; what it sets keeps its default", error)
        return None


def _shared(config: Config, waiting: Callable[[str], None] | None) -> SharedConfig | None:
    """Return what the settings say about stores shared with other servers."""
    if not config.consensus:
        return None
    holder = f"pid {os.getpid()} on {socket.gethostname()}, listening on {config.host}:{config.port}"
    return SharedConfig(
        consensus=config.consensus,
        schema=config.consensus_schema,
        blob=_objects(config) or Path(config.blob),
        lease=LeaseOptions(holder=holder, duration_ms=config.lease_ms),
        standby=config.standby,
        waiting=waiting,
    )


def _objects(config: Config) -> ObjectStore | None:
    """Return the object store that holds the data files, None if there is none."""
    return ObjectStore(url=config.blob, cache_bytes=config.blob_cache) if config.object_store else None


def _spark_files(config: Config) -> SparkFiles:
    """Return where Spark finds the data files."""
    url = parse_object_url(config.blob) if config.object_store else None
    shared = Path(config.blob) if config.consensus and url is None else None
    return spark_files(config.spark_master, Path(config.data_dir), shared, url, config.blob_dir)
