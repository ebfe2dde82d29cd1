"""The store: shards, transactions, log and upkeep put together. The engine's composition root calls ``open_store``.

store = await open_store(StorageConfig(path=...), clock=..., rng=..., ids=...)
txn = store.begin()
...
await store.close()
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from txn import inspect
from txn.base import huge_values
from txn.base.errors import DamagedFile, OutOfSpace, ReadBelowSince, TxnError
from txn.base.time import COUNTER_BITS, Clock, IdGen, Rng, SystemClock, SystemIdGen, SystemRng
from txn.base.types import IndexId, Key, Row, RowId, ShardId, ShardSpec, StoredRow, Timestamp, TxnId
from txn.base.writers import first_id
from txn.inspect import LogFacts, ShardFacts
from txn.locks.advisory import AdvisoryLocks
from txn.locks.entry import LockRow
from txn.log.durable import DurableLog, StorageConfig
from txn.log.holds import Hold
from txn.log.lease import Lease
from txn.log.timeline import Timeline
from txn.persist.location import Offload, in_thread
from txn.persist.parts.merge_job import Merger
from txn.transaction.coordinator import Coordinator, TxnOptions
from txn.transaction.index_build import Elsewhere, IndexBuild
from txn.transaction.ports import Running
from txn.transaction.reads import one_row
from txn.transaction.transaction import StoreTransaction
from txn.transaction.view import View
from txn.upkeep.flush import Flusher
from txn.upkeep.recovery import recover
from txn.upkeep.subscribe import Subscription

T = TypeVar("T")


async def settled(value: T | Awaitable[T]) -> T:
    """Return what an operation returns at once or later."""
    return await value if isinstance(value, Awaitable) else value


MAX_CLOCK_WAIT_S = 1.0  # the clock may be set meanwhile


class ShardStore:
    """Implements ``txn.api.Store``. Made by ``open_store``; used from one event loop."""

    def __init__(self, core: Coordinator, flusher: Flusher) -> None:
        """Use ``open_store``."""
        self.core = core
        self._flusher = flusher
        self._closed = False

    @property
    def failed(self) -> Exception | None:
        """Why nothing can be committed any more (the server must stop), or None."""
        return self.core.log.committer.failed

    def on_failure(self, callback: Callable[[Exception], None]) -> None:
        """Call ``callback`` when nothing can be committed any more (Fenced, CommitUnknown); at once if so now."""
        self.core.log.committer.on_failure = callback
        if self.failed is not None:
            callback(self.failed)

    def damage_of(self, shard: ShardId) -> DamagedFile | None:
        """Return why a shard cannot be served as a whole, None if it can."""
        return self.core.log.damaged.get(shard)

    def damaged(self) -> Collection[ShardId]:
        """Return the shards that cannot be served as a whole, those among them of which not even the schema
        is known.
        """
        return self.core.log.damaged.keys()

    def lost_files(self, shard: ShardId) -> list[DamagedFile]:
        """Return the damage of files of a shard whose rows are served as far as they can be read."""
        return self.core.log.salvaged.get(shard, [])

    def only_read(self, shard: ShardId, reason: TxnError) -> None:
        """Serve a shard as it was before what is damaged; from now on no commit is accepted, but ``reason`` raised."""
        self.core.read_damaged |= {shard}
        self.core.log.committer.refusal = reason

    def on_long_turn(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` within the longer turns of the loop, where nothing is half done: it may read
        (``read_now``), and begin transactions, but neither lock nor commit.
        """
        self.core.log.committer.yield_to_readers = callback

    def look_for_huge(self, met: Callable[[], bool]) -> None:
        """Have small commits be looked through for huge values only once ``met`` tells that the process has
        had one; until this is called, all are.
        """
        self.core.log.committer.met_huge = lambda: huge_values.met or met()

    async def reserve(self, name: str, floor: int, count: int) -> tuple[int, int]:
        """See ``DurableLog.reserve``."""
        return await self.core.log.reserve(name, floor, count)

    @property
    def lease(self) -> Lease | None:
        """What reads rest on: ask ``valid()`` once a statement has arrived. None: nobody else can lead."""
        return self.core.log.lease

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
    ) -> StoreTransaction:
        """See ``txn.api``. ``at``: read at that timestamp.

        Raises ReadBelowSince when ``at`` is not readable any more; ValueError when it is in the future; KeyError when
        there is no such timeline.
        """
        timelines = self.core.timelines
        chosen = timelines.default if timeline is None else timelines.by_name[timeline]
        if at is not None and at > chosen.read_ts():
            raise ValueError("the timestamp is in the future")
        txn = StoreTransaction(
            self.core,
            read_only=read_only,
            session=session,
            at=at,
            deadline_ms=deadline_ms,
            timeline=chosen,
            open_to_all=timeline is None,
            points=points,
        )
        if lock_timeout_ms is not None and not read_only:  # who only reads takes no locks
            txn.owner.lock_timeout_ms = lock_timeout_ms
        return txn

    def read_ts(self, timeline: str | None = None) -> Timestamp:
        """See ``txn.api``."""
        return self._timeline(timeline).read_ts()

    def read_points(self) -> dict[str, Timestamp]:
        """See ``txn.api``."""
        return {timeline.name: timeline.read_ts() for timeline in self.core.timelines}

    def _timeline(self, name: str | None) -> Timeline:
        timelines = self.core.timelines
        return timelines.default if name is None else timelines.by_name[name]

    # -- timelines ---------------------------------------------------------------------------------

    async def create_timeline(self, name: str) -> None:
        """Make a timeline: durable on return, empty, and readable as of now. Idempotent.

        Raises Fenced, OutOfSpace, Indeterminate.
        """
        await self.core.log.open_oracle(name)
        if name not in self.core.timelines.by_name:
            self.core.open_timeline(name)

    def has_timeline(self, name: str) -> bool:
        """Tell whether there is a timeline of that name."""
        return name in self.core.timelines.by_name

    def drop_timeline(self, name: str) -> Awaitable[None]:
        """Forget a timeline all of whose shards have been dropped, at once; what was in it is no longer readable.

        Who reads in it goes on. What is returned deletes its register, and raises Fenced, OutOfSpace,
        Indeterminate: then ``keep_timelines`` does at the next start. Raises KeyError: there is none;
        ValueError: it has shards.
        """
        timeline = self.core.timelines.by_name[name]
        if timeline is self.core.timelines.default:
            raise ValueError("the default timeline stays")
        for shard, history in self.core.shards.items():
            if history.domain is timeline and history.latest.generation is not None:
                raise ValueError(f"shard {shard} is in timeline {name}")
        self.core.retire_timeline(name)
        return self.core.log.remove_oracle(timeline.oracle)

    async def keep_timelines(self, names: Collection[str]) -> None:
        """After a start: make the timelines be those of ``names`` and the default one.

        A crash leaves an oracle without a timeline, where it fell between the two. Raises as ``create_timeline``.
        """
        for name in [t.name for t in self.core.timelines if t is not self.core.timelines.default]:
            if name not in names:
                await self.drop_timeline(name)
        for name in names:
            await self.create_timeline(name)

    def read_now(self, shard: ShardId, index: IndexId, key: Key) -> StoredRow | None:
        """See ``txn.api``."""
        history = self.core.shards.get(shard)
        entry = None if history is None else history.latest
        if (
            history is None
            or entry is None
            or entry.generation is None
            or entry.spec is None
            or entry.generation.damage
        ):
            return None
        return one_row(View(shard, entry.generation, entry.spec, None), index, key, history.domain.read_ts())

    @property
    def since(self) -> Timestamp:
        """The lowest timestamp that is readable in any timeline."""
        return self.core.timelines.common.since

    def since_of(self, shard: ShardId) -> Timestamp:
        """Return the lowest readable timestamp of a shard (B16): a new one begins where it was made (B11)."""
        return self.core.since_of(shard)

    def present(self, timeline: str | None = None) -> Timestamp:
        """Return the clock of the timestamps: at or below what the next commit gets, and above all before."""
        return self._timeline(timeline).oracle.present()

    def skew_ms(self, timeline: str | None = None) -> int:
        """Return how far the wall clock is behind the clock of the timestamps (>= 0)."""
        return self._timeline(timeline).oracle.skew_ms()

    async def reach(self, ts: Timestamp, timeline: str | None = None) -> None:
        """Make ``ts`` readable: wait until the clock gets there and what was committed at or below it is applied.

        From then on commits are above it (A16). Raises what a commit raises, but for conflicts.
        """
        chosen = self._timeline(timeline)
        oracle = chosen.oracle
        while (ahead := ts - oracle.present()) > 0:
            await asyncio.sleep(min(((ahead >> COUNTER_BITS) + 1) / 1000, MAX_CLOCK_WAIT_S))
        if ts > chosen.read_ts():
            await self.core.log.committer.reach(ts, oracle)

    async def reach_everywhere(self, ts: Timestamp) -> None:
        """Make ``ts`` readable in every timeline; see ``reach``."""
        for timeline in list(self.core.timelines):
            if not timeline.retired:
                await self.reach(ts, timeline.name)

    def hold(
        self, ts: Timestamp | None = None, *, durable: bool = False, timeline: str | None = None
    ) -> Hold:
        """Take a read hold for something that is no transaction; give it back with ``release``.

        ``durable``: the caller takes it again after a restart (before ``started``), and can, for manifests
        keep history from it on. What it may keep is bounded: see ``TxnOptions.subscription_versions`` and
        ``on_taken_away``. Raises ReadBelowSince; for a durable hold also where a restart now would find
        nothing below the newest manifest.
        """
        core, chosen = self.core, self._timeline(timeline)
        if durable and ts is not None and not core.start_holds:
            floor = core.newest_manifest(chosen)
            if ts < floor:
                raise ReadBelowSince(ts, floor)
        return chosen.holds.acquire(ts, durable=durable)

    def kept_durably(self, timeline: str) -> bool:
        """Tell whether somebody has a durable hold in a timeline."""
        return bool(self._timeline(timeline).holds.durable())

    def started(self) -> None:
        """Durable holds have been taken again (``TxnOptions.hold_at_start``): what else recovery found may
        go. Idempotent.
        """
        core = self.core
        if core.start_holds:
            for hold in core.start_holds:
                hold.release()
            core.start_holds.clear()
            core.vacuum()

    def on_taken_away(self, callback: Callable[[Hold], None]) -> None:
        """Call ``callback`` when a durable hold was given up because it kept too much."""
        self.core.on_taken_away = callback

    def on_forgetting(
        self, callback: Callable[[], Iterable[None]], keeps: Callable[[], Iterable[tuple[int, int]]] = tuple
    ) -> None:
        """Have ``callback`` let go, in slices, of what else nobody reads below ``since``: once a second,
        behind the store's own.

        ``keeps``: what that takes, in bytes, by the timestamps from which on it is not needed; it has its
        part in what history may take.
        """
        self.core.also_forgets, self.core.also_keeps = callback, keeps

    def release(self, hold: Hold) -> None:
        """Release a hold. Idempotent."""
        hold.release()

    def subscribe(
        self,
        shards: Sequence[ShardId],
        as_of: Timestamp | None = None,
        until: Timestamp | None = None,
        *,
        snapshot: bool = True,
        rows: bool = True,
        session: int = 0,
    ) -> Subscription:
        """See ``txn.api``. ``rows`` False: changes of a commit tell only that there were some (one, without a row)."""
        return Subscription(self.core, shards, as_of, until, snapshot=snapshot, rows=rows, session=session)

    def listen(self, shard: ShardId, as_of: Timestamp | None = None) -> Subscription:
        """See ``txn.api``."""
        return self.subscribe([shard], as_of, snapshot=False)

    async def register(self, spec: ShardSpec) -> Timestamp:
        """Make a shard in a transaction of its own and return its registration timestamp (C23).

        Idempotent: a shard that exists is left as it is, whatever ``spec`` says, and nothing is written. ValueError for
        one that was forgotten: its id is not used again.
        """
        history = self.core.shards.get(spec.shard)
        if history is None or history.latest.generation is None:
            txn = self.begin()
            try:
                txn.create_shard(spec)
                await settled(txn.begin_write([spec.shard]))
                return await settled(txn.commit())
            except BaseException:
                txn.rollback()
                raise
        return Timestamp(history.registered)

    async def forget(self, shard: ShardId) -> bool:
        """Drop a shard in a transaction of its own, once all writes to it are applied; False: there is none (C28, C42).

        Idempotent. Commits, registration and forgetting share one queue, so a write is before or refused (L9).
        """
        history = self.core.shards.get(shard)
        if history is None or history.latest.generation is None:
            return False
        txn = self.begin()
        try:
            await settled(txn.drop_shard(shard))
            await settled(txn.commit())
        except BaseException:
            txn.rollback()
            raise
        return True

    @property
    def running(self) -> Mapping[TxnId, Running]:
        """The transactions that have not ended, by id, oldest first; one that commits is among them until its
        callbacks have run.
        """
        return MappingProxyType(self.core.active)

    @property
    def first_transaction_id(self) -> int:
        """The lowest id of a transaction of this run."""
        return self.core.first_txn_id

    @property
    def next_transaction_id(self) -> TxnId:
        """Above all transaction ids ever given out."""
        return self.core.next_txn_id

    def shards(self) -> Iterator[tuple[ShardId, ShardSpec]]:
        """Yield the shards that exist now with their schemas."""
        for shard, history in self.core.shards.items():
            spec = history.latest.spec
            if spec is not None:
                yield shard, spec

    def lock_rows(self) -> Iterator[LockRow]:
        """Yield the lock table for ``pg_locks``."""
        return self.core.locks.rows()

    def lock_waits(self) -> Iterator[LockRow]:
        """Yield the requests that wait for a lock."""
        return self.core.locks.waits()

    def blocked_by(self, session: int) -> list[int]:
        """Return the sessions that a session waits for (``pg_blocking_pids``)."""
        return self.core.locks.blockers(session)

    def latest_hot(self, shard: ShardId, row_id: RowId) -> Row | None:
        """Return a row's latest committed values if they are in memory, to name it in errors."""
        history = self.core.shards.get(shard)
        generation = None if history is None else history.latest.generation
        version = None if generation is None else generation.rows.get(row_id)
        return None if version is None else version.values

    def build_index(self, spec: ShardSpec, index: IndexId, elsewhere: Elsewhere | None = None) -> IndexBuild:
        """See ``txn.api``."""
        return IndexBuild(self.core, spec, index, elsewhere)

    def merge_elsewhere(self, merger: Merger) -> None:
        """Have large parts merged by other processes from now on (``txn.upkeep.merging``)."""
        self.core.merger = merger

    def advisory_locks(self, session: int) -> AdvisoryLocks:
        """Return the advisory locks of a session that has none yet; ``close`` them when it ends."""
        return AdvisoryLocks(self.core.locks, session, self.core.new_txn_id())

    def cancel_waits(self, session: int) -> None:
        """See ``txn.api``."""
        self.core.locks.cancel(session)

    def inspect_shards(self) -> Iterator[ShardFacts]:
        """Yield what there is to know of every shard."""
        return inspect.shards(self.core)

    def inspect_log(self) -> LogFacts:
        """Return what there is to know of the log."""
        return inspect.log(self.core)

    async def flush(self, shard: ShardId | None = None, *, history: bool = False) -> None:
        """See ``txn.api``. Also merges parts and trims the log; returns when all of it is durable.

        ``history``: superseded versions that somebody may still read leave memory, too.
        """
        while True:
            try:
                await self._flusher.flush(shard, history=history)
                return
            except OutOfSpace as full:  # what is asked for makes room in the end
                reserve = self.core.log.committer.reserve
                if reserve is None or not full.helped or not reserve.give_to_flush():
                    raise

    async def idle(self) -> None:
        """Wait until no upkeep is running or wanted (tests, orderly measurements)."""
        await self._flusher.idle()

    def validate(self) -> None:
        """Check every invariant; raises AssertionError (tests, simulation)."""
        self.core.validate()

    async def close(self) -> None:
        """See ``txn.api``. Open transactions are rolled back. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for txn in list(self.core.active.values()):
            txn.rollback()
        for timeline in (*self.core.timelines, *self.core.timelines.left):
            for subscription in list(timeline.feed.subscribers):
                subscription.close()
        await self._flusher.stop()
        self.core.stop_vacuum()
        await self.core.log.close()


async def open_store(
    config: StorageConfig,
    options: TxnOptions | None = None,
    *,
    clock: Clock | None = None,
    rng: Rng | None = None,
    ids: IdGen | None = None,
) -> ShardStore:
    """Open (or create) the data directory, recover, and return a store ready for transactions.

    Raises:
        DataDirectoryInUse, UnknownFormat, OutOfSpace: see ``DurableLog.open``.
    """
    log = await DurableLog.open(config, clock or SystemClock(), rng or SystemRng(), ids or SystemIdGen())
    return await start_store(log, options)


async def start_store(
    log: DurableLog, options: TxnOptions | None = None, *, offload: Offload = in_thread
) -> ShardStore:
    """Recover from an opened log and start (simulation assembles the log itself)."""
    core = Coordinator(log, options or TxnOptions(), first_txn_id=first_id(log.epoch), offload=offload)
    try:
        await recover(core)
        log.committer.own_shards = core.options.common_shards
        log.committer.applier = core.apply
        log.committer.stager = core.stage
        log.committer.weigh = core.weigh
        log.committer.after_apply = core.settle
        log.start()
    except (Exception, asyncio.CancelledError):
        # Nothing else: where this coroutine itself is thrown away (GeneratorExit), nothing can be awaited.
        await asyncio.shield(_close_quietly(log))
        raise
    flusher = Flusher(core)
    flusher.start()
    return ShardStore(core, flusher)


async def _close_quietly(log: DurableLog) -> None:
    try:
        await log.close()
    except TxnError:
        return
