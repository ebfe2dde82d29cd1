"""What all transactions share: shards, locks, holds, the way into the log, and applying what comes back.

    Transaction.commit ──WriteSet──> committer ──(durable)──> apply ──> oracle ──> settle
                                                              memory              callbacks, locks, futures

``apply`` and ``settle`` run in one loop tick (``CommitterLike``): between them the oracle makes the commit
readable, so nobody ever sees a timestamp whose writes are not in memory, nor a lock released before (D39).

Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Container, Generator, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from txn.base.errors import LockTarget, TxnError, WriteConflict
from txn.base.records import Batch, PartSwap, ShardWrites, WriteSet
from txn.base.slices import free, is_large, over
from txn.base.types import IndexId, PartRef, RowId, ShardId, ShardSpec, Timestamp, TxnId
from txn.locks.granule import Granule, describe
from txn.locks.policy import Policy
from txn.locks.table import LockTable
from txn.log.history import ShardHistory
from txn.log.history_limit import HistoryLimit
from txn.log.holds import Hold, Serials
from txn.log.timeline import DEFAULT_TIMELINE, Domain, Timeline, Timelines
from txn.mvcc.applying import apply_in_slices
from txn.mvcc.compaction import Written
from txn.mvcc.eviction import dismantle
from txn.mvcc.generation import ELEMENT_BYTES, VERSION_BYTES, Generation, StoreCorrupted
from txn.mvcc.many_keys import elements_of
from txn.mvcc.parts import PartState
from txn.mvcc.vacuum import drop_some
from txn.mvcc.validate import validate
from txn.mvcc.version import Version
from txn.persist.location import Offload, in_thread
from txn.transaction.scan_watch import ScanWatch, conflict_with, notice
from txn.values.encoding import written_shards
from txn.wal.feed import Feed

if TYPE_CHECKING:
    from txn.log.durable import DurableLog
    from txn.persist.parts.merge_job import Merger
    from txn.persist.parts.part import Part
    from txn.transaction.ports import Build, Running

VACUUM_DELAY_S: Final = 0.02
VACUUM_IDLE_S: Final = 0.25  # while holds or retention keep everything
STAGING_LOOK_S: Final = 1.0  # whoever waits for the end of a large commit looks so often whether it can come
PURGED_ROWS: Final = 1000  # entries of the garbage queue that are looked at between two turns of the loop
RETRACTIONS: Final = 64  # operations of a commit that are looked at before they are logged: about 0.5 us each
GARBAGE_FACTOR: Final = 4
GARBAGE_BYTES: Final = 120  # of an entry in the garbage queue
LARGE_ROW: Final = 4096  # encoded bytes of a row from which on it may have long arrays
WEIGHED: Final = 32  # rows of a commit that are looked at for those
RECENT_COMMITS: Final = 1024  # remembered to name the other session in conflicts

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOptions:
    """Settings of a store's transactions.

    ``hold_at_start``: see ``txn.upkeep.recovery``. ``retention_ms``: how far back reads stay possible without
    a hold. ``history_versions``: superseded versions kept in memory for that and for holds; more go to
    history parts. ``hot_rows``: hot rows per shard at which a flush starts. ``hot_rows_total``,
    ``hot_bytes``: of all shards together, superseded versions included, at which the largest are flushed; at
    twice ``hot_bytes`` writers wait (``Coordinator.room``). ``log_bytes``: log size at which those are
    flushed that keep it from being trimmed. ``part_bytes``: the Arrow data of one part that a load or a merge
    makes. ``mapped_bytes``: pages of mapped files in memory, past which those of sidecars are let go.
    ``table_locks``: a transaction with more locks in one table tries to lock the table instead.
    ``subscription_versions``: superseded row versions, in memory and in history parts, that subscriptions may
    keep beyond retention; past them the one that is furthest behind ends. So does a durable hold, and one for
    which the log grows past ``KEPT_LOG`` times ``log_bytes``. ``common_shards`` belong to every timeline
    (``txn.log.timeline``). Of ``salvaged_shards`` rows are served as far as they can be read, a lost value as
    None (``txn.upkeep.recovery``).
    """

    policy: str | Policy = "detect"
    lock_timeout_ms: int = 0
    table_locks: int = 5000
    retention_ms: int = 0
    hold_at_start: bool = False
    history_versions: int = 100_000
    subscription_versions: int = 5_000_000
    hot_rows: int = 50_000
    hot_rows_total: int = 400_000
    hot_bytes: int = 512 << 20
    log_bytes: int = 24 << 20
    part_bytes: int = 256 << 20
    mapped_bytes: int = 512 << 20
    common_shards: frozenset[ShardId] = frozenset()
    salvaged_shards: frozenset[ShardId] = frozenset()


@dataclass(slots=True)
class SwapJob:
    """A flush or compaction on its way through the committer.

    ``hot``: the part of ``added`` that the flush wrote, with ``carried`` ends carried over; ``history``: the parts of
    superseded versions, None where they stay hot. ``finish`` carries the last ends of merged parts over, in the tick
    of the swap. ``left``: the parts that left, once applied.
    """

    generation: Generation
    added: list[PartState]
    hot: PartState | None = None
    carried: int = 0
    history: list[PartState] | None = None
    finish: Callable[[], None] = lambda: None
    left: list[PartState] | None = None


def swap_key(swap: PartSwap) -> tuple[str, ...]:
    """Identify a swap by the parts it names (their names are unique)."""
    return (*swap.removed, "->", *(ref.name for ref in swap.added))


class Coordinator:
    """Shards by id, with everything that concerns more than one transaction."""

    def __init__(
        self, log: DurableLog, options: TxnOptions, first_txn_id: int, offload: Offload = in_thread
    ) -> None:
        """``first_txn_id``: above all transaction ids ever used (ids order transactions by age).

        ``offload`` runs what takes long, in a thread unless simulation says otherwise.
        """
        self.log = log
        self.offload = offload
        self.options = options
        self.locks = LockTable(options.policy)
        self.locks.describe = self.describe
        self.shards: dict[ShardId, ShardHistory] = {}
        self._serials = Serials()
        default = Timeline(DEFAULT_TIMELINE, log.oracle, options.retention_ms, self._serials, Feed())
        self.timelines = Timelines(default, options.common_shards)
        for name in log.oracles:
            self.open_timeline(name)
        # of the default timeline, which most transactions are in
        self.garbage = default.garbage
        self.read_ts: Callable[[], Timestamp] = default.read_ts
        self.holds = default.holds
        self.feed = default.feed
        self.committing: dict[TxnId, Running] = {}
        self.active: dict[TxnId, Running] = {}
        self._history_limit = HistoryLimit(options.hot_bytes // 2)
        self.start_holds: list[Hold] = []  # keep all that recovery found, in each timeline; see TxnOptions
        self.on_taken_away: Callable[[Hold], None] = lambda _hold: None
        self.also_forgets: Callable[[], Iterable[None]] = tuple
        self.also_keeps: Callable[[], Iterable[tuple[int, int]]] = tuple
        self.failure: TxnError | None = None
        self.read_damaged: frozenset[ShardId] = frozenset()
        """Shards that are read as far as they can be, although they are damaged: nothing is committed meanwhile."""
        self.doomed_parts: dict[str, int] = {}
        self.on_changed: Callable[[Generation], None] = lambda _generation: None
        self.on_grown: Callable[[int], None] = lambda _bytes: None
        self.builds: dict[IndexId, Build] = {}
        self.first_txn_id = self._next_txn_id = first_txn_id
        self._new_parts: dict[str, PartState] = {}
        self.watches: dict[ShardId, dict[ScanWatch, None]] = {}
        self.swap_jobs: dict[tuple[str, ...], SwapJob] = {}
        self.purging = False
        self.aside: list[tuple[int, Generation, RowId, Version]] = []
        """While ``purging``: entries that come before those of the generation's queue, in order."""
        self.written = Written()
        self.crowded: asyncio.Future[None] | None = None
        """Set while hot versions take twice what they may; done once they do not."""
        self.merger: Merger | None = None
        """Who merges large parts elsewhere."""
        self.merging: frozenset[str] = frozenset()
        """The parts that are being merged there."""
        self.staging: asyncio.Future[None] | None = None
        """Set while a durable batch is half applied; done once it is readable."""
        self._staged: set[tuple[TxnId, ShardId]] = set()
        self._recent: OrderedDict[tuple[int, Timeline | None], int] = OrderedDict()
        """Sessions by timestamp and timeline; None: of all."""
        self._vacuum: asyncio.TimerHandle | None = None

    def new_txn_id(self) -> TxnId:
        """Return the next transaction id; younger transactions have larger ones."""
        txn_id = self._next_txn_id
        self._next_txn_id = txn_id + 1
        return TxnId(txn_id)

    @property
    def next_txn_id(self) -> TxnId:
        """The id that ``new_txn_id`` would return now."""
        return TxnId(self._next_txn_id)

    # -- timelines ---------------------------------------------------------------------------------

    def open_timeline(self, name: str) -> Timeline:
        """Take a timeline whose oracle the log has opened into use; everything up to now is readable in it."""
        oracle = self.log.oracles[name]
        oracle.apply_write(self.log.oracle.read_ts())
        timeline = Timeline(name, oracle, self.options.retention_ms, self._serials, Feed())
        self.timelines.by_name[name] = timeline
        self.log.committer.others.append(oracle)
        return timeline

    def retire_timeline(self, name: str) -> None:
        """Nothing is written or newly read in a timeline any more: all its shards have been dropped."""
        timeline = self.timelines.by_name.pop(name)
        del self.log.oracles[name]
        self.log.committer.others.remove(timeline.oracle)
        timeline.retired = True
        self.timelines.left.append(timeline)

    def newest_manifest(self, timeline: Timeline) -> Timestamp:
        """Return from where on the manifests of a timeline's shards, and of common ones, know history; 0: always."""
        domains = (timeline, self.timelines.common)
        manifests = self.log.manifests.values()
        mine = [manifest.since for manifest in manifests if self.domain_for(manifest.spec) in domains]
        return max(mine, default=Timestamp(0))

    def domain_of(self, shard: ShardId) -> Domain:
        """Return what a shard belongs to; the default timeline if there is no such shard."""
        history = self.shards.get(shard)
        return self.timelines.default if history is None else history.domain

    def domain_for(self, spec: ShardSpec) -> Domain:
        """Return what a shard of that schema belongs to."""
        return self.timelines.domain(spec.shard, spec.timeline)

    def only_within(self, timeline: Timeline, writes: WriteSet) -> bool:
        """Tell whether a write set concerns one timeline and no schema, so that it is that timeline's alone."""
        if writes.schema:
            return False
        shards = self.shards
        for changed in writes.shards:
            history = shards.get(changed.shard)
            if history is None or history.domain is not timeline:
                return False
        return True

    # -- applying ----------------------------------------------------------------------------------

    def apply(self, batch: Batch, seq: int) -> None:
        """Apply a durable batch to memory (committer's ``applier``; also recovery). Idempotent."""
        for writes in batch.writes:
            self.apply_writes(writes)
            if batch.told and writes.txn in batch.told:
                self._note_writer(writes)
        if batch.bytes:  # now that the shards are there which it makes
            self._weigh(batch)
        for swap in batch.swaps:
            self._apply_swap(swap)
        self._staged.clear()

    def _note_writer(self, writes: WriteSet) -> None:
        """Keep the id of a told transaction for the rows that it has made."""
        for changed in writes.shards:
            history = self.shards.get(changed.shard)
            live = None if history is None else history.latest.generation
            if live is not None:
                live.writers[writes.ts] = writes.txn

    def _weigh(self, batch: Batch) -> None:
        """Charge the encoded bytes of a batch to the shards it writes, by their numbers of operations, and
        the elements of arrays, which are objects.
        """
        counts: dict[ShardId, int] = {}
        for writes in batch.writes:
            for changed in writes.shards:
                if changed.ops:
                    counts[changed.shard] = counts.get(changed.shard, 0) + len(changed.ops)
        total = sum(counts.values())
        elements = 0
        if batch.bytes > LARGE_ROW * total:
            for writes in batch.writes:
                for changed in writes.shards:
                    step = len(changed.ops) // WEIGHED + 1
                    some = [op.values for op in changed.ops[::step] if op.values is not None]
                    more = sum(map(elements_of, some)) * step
                    history = self.shards.get(changed.shard) if more else None
                    if history is not None and history.latest.generation is not None:
                        history.latest.generation.log.bytes += more * ELEMENT_BYTES
                        elements += more
        for shard, count in counts.items():
            history = self.shards.get(shard)
            live = None if history is None else history.latest.generation
            if live is not None:
                live.log.bytes += batch.bytes * count / total
        self.on_grown(batch.bytes + total * VERSION_BYTES + elements * ELEMENT_BYTES)

    def weigh(self, writes: WriteSet) -> int:
        """Return about how many rows and entries of indexes applying a write set makes (``Committer.weigh``)."""
        total = 0
        for changed in writes.shards:
            history = self.shards.get(changed.shard)
            live = None if history is None else history.latest.generation
            if live is not None:
                indexes = len(live.indexes)
            else:
                indexes = sum(
                    len(c.spec.indexes) for c in writes.schema if c.shard == changed.shard and c.spec
                )
            total += len(changed.ops) * (1 + indexes)
        return total

    def stage(self, batch: Batch) -> Iterator[None]:
        """Apply a large durable batch ahead of its tick, a slice of rows between two yields (``Committer.stager``).

        What is staged begins above ``read_ts``: no reader at a timestamp sees it, and whoever reads the
        latest state holds locks that the batch's owners keep until it is readable. Only rows and loaded parts
        are staged, in the order of the batch, a part a slice where they end many at once; the first schema
        change ends that, and ``apply`` does the rest.
        """
        self.staging = asyncio.get_running_loop().create_future()
        for writes in batch.writes:
            if writes.schema:
                yield from self._stage_fresh(writes)
                return
            for shard in writes.shards:
                history = self.shards.get(shard.shard)
                live = None if history is None else history.latest.generation
                if live is not None:
                    for ended in shard.ended:
                        yield from live.end_rows_slowly(ended, writes.ts)
                        yield
                    self._add_parts(live, shard, writes.ts)
                    yield from apply_in_slices(live, shard.ops, writes.ts, bool(shard.parts))
                self._staged.add((writes.txn, shard.shard))
                if over():  # of many shards each has few
                    yield

    def _stage_fresh(self, writes: WriteSet) -> Iterator[None]:
        """Stage the rows of generations that the transaction has made itself (CREATE TABLE, TRUNCATE): nobody
        else knows those.
        """
        owner = self.committing.get(writes.txn)
        fresh = {} if owner is None else {c.shard: owner.new_generation(c.shard) for c in writes.schema}
        last = {change.shard: change for change in writes.schema}
        for shard in writes.shards:
            made = fresh.get(shard.shard)
            if made is None or shard.ended:
                continue
            spec = last[shard.shard].spec
            if spec is not None and made.spec is not spec:
                made.set_spec(spec)
            self._add_parts(made, shard, writes.ts)
            yield from apply_in_slices(made, shard.ops, writes.ts, bool(shard.parts))
            self._staged.add((writes.txn, shard.shard))

    async def readable(self) -> None:
        """Wait until no batch is half applied. Raises what made the committer stop: then one may stay so."""
        while self.staging is not None:
            if self.log.committer.failed is not None:
                raise self.log.committer.failed
            await asyncio.wait([self.staging], timeout=STAGING_LOOK_S)

    def let_go(self, *lists: MutableSequence[Any]) -> None:
        """Free lists that nobody needs any more: large ones piece by piece."""
        for rows in lists:
            if is_large(rows):
                self.dismantle(rows)

    def dismantle(self, rows: MutableSequence[Any]) -> None:
        """Free a large list piece by piece: its last reference would hold up the loop."""
        self.take_apart(free(rows))

    def apply_writes(self, writes: WriteSet) -> None:
        """Apply one transaction. The parts it names have been announced with ``announce_part``."""
        ts = writes.ts
        owner = self.committing.get(writes.txn)
        shards = self.shards
        for change in writes.schema:
            history = shards.get(change.shard)
            if history is not None and history.latest.begin >= ts:
                continue  # applied already (C27)
            if change.forget:
                if history is not None:
                    history.change(ts, None, None)
                continue
            spec = change.spec
            latest = None if history is None else history.latest
            if spec is None:
                spec = None if latest is None else latest.spec
            if spec is None:
                raise AssertionError(f"shard {change.shard} is registered without a schema")
            current = None if latest is None else latest.generation
            if current is None or change.truncate:
                generation = None if owner is None else owner.new_generation(change.shard)
                if generation is None:
                    number = 0 if current is None else current.number + 1
                    first = 1 if current is None else current.next_row_id
                    generation = Generation(spec, number, self.domain_for(spec).garbage, first)
                generation.last_change = max(generation.last_change, ts)
                if current is not None:
                    current.last_change = ts
                current = generation
            if current.spec is not spec:
                current.set_spec(spec)
            if history is None:
                shards[change.shard] = ShardHistory(ts, current, spec, self.domain_for(spec))
            else:
                history.change(ts, current, spec)
        for shard in writes.shards:
            history = shards.get(shard.shard)
            live = None if history is None else history.latest.generation
            if live is None:
                continue  # dropped since (replay)
            watches = self.watches.get(shard.shard) if self.watches else None
            if watches is not None:
                notice(self, watches, shard, writes)
            staged = bool(self._staged) and (writes.txn, shard.shard) in self._staged
            if shard.ended and not staged:
                for ended in shard.ended:
                    live.end_rows(ended, ts)
            if not staged:
                if shard.parts:
                    self._add_parts(live, shard, ts)
                if shard.ops:
                    live.apply(shard.ops, ts, bool(shard.parts))

    def _add_parts(self, live: Generation, shard: ShardWrites, ts: Timestamp) -> None:
        if shard.parts:
            live.add_parts((self._part_of(ref) for ref in shard.parts), ts)
            live.next_row_id = max(live.next_row_id, shard.next_row_id)

    def announce_part(self, file: Part, ref: PartRef, ends: Iterable[tuple[int, int]] = ()) -> PartState:
        """Make an open part known by name before the batch that names it is applied."""
        part = PartState(file, ref, ends)
        self._new_parts[ref.name] = part
        return part

    def forget_announced(self, name: str) -> None:
        """Take an announcement back (the load was rolled back)."""
        self._new_parts.pop(name, None)

    def _part_of(self, ref: PartRef) -> PartState:
        part = self._new_parts.pop(ref.name, None)
        if part is None:
            raise AssertionError(f"part {ref.name} was not announced")
        part.ref = part.file.ref = ref
        return part

    def _apply_swap(self, swap: PartSwap) -> None:
        job = self.swap_jobs.pop(swap_key(swap), None)
        if job is not None:
            job.finish()
            job.left = job.generation.swap(swap.removed, job.added, job.hot, job.carried, job.history)

    def settle(self, batch: Batch) -> None:
        """The batch is readable now: run callbacks, release locks, wake who waits (committer's after_apply)."""
        changed: dict[ShardId, None] = {}
        for writes in batch.writes:
            owner = self.committing.pop(writes.txn, None)
            if owner is not None:
                self._recent[writes.ts, None if owner.everywhere else owner.timeline] = owner.session
                owner.settled(writes.ts)
            for written in writes.shards:
                changed[written.shard] = None
        for shard in changed:
            history = self.shards.get(shard)
            if history is not None and history.latest.generation is not None:
                self.on_changed(history.latest.generation)
        for timeline in self.timelines:
            if timeline.feed.subscribers:
                timeline.feed.publish(self._concerning(timeline.feed, batch.writes))
        if self.staging is not None:
            self.staging.set_result(None)
            self.staging = None
        while len(self._recent) > RECENT_COMMITS:
            self._recent.popitem(last=False)
        if self._vacuum is None and not self.purging and (self.garbage or self._has_garbage()):
            self._vacuum = asyncio.get_running_loop().call_later(VACUUM_DELAY_S, self.vacuum)

    def _concerning(self, feed: Feed, commits: tuple[WriteSet, ...]) -> Sequence[WriteSet]:
        """Return the commits that changed something that ``feed`` is about."""
        if len(self.timelines) == 1:
            return commits
        return [c for c in commits if any(self.domain_of(s).feed is feed for s in written_shards(c))]

    def session_of(self, ts: int, shard: ShardId) -> int:
        """Return the session that committed to ``shard`` at ``ts``, 0 if that is not remembered."""
        everywhere = self._recent.get((ts, None))  # then no timeline has another commit of that number
        if everywhere is not None:
            return everywhere
        domain = self.domain_of(shard)
        return self._recent.get((ts, domain), 0) if isinstance(domain, Timeline) else 0

    def describe(self, granule: Granule) -> LockTarget:
        """Say what a granule is, with keys as values (``LockTable.describe``)."""
        target = describe(granule)
        history = self.shards.get(target.shard)
        generation = None if history is None else history.latest.generation
        if target.key is None or target.index is None or generation is None or type(granule) is not tuple:
            return target
        index = generation.indexes.get(target.index)
        return target if index is None else replace(target, key=index.make.values(granule[2]))

    def session_of_txn(self, writes: WriteSet) -> int:
        """Return the session of a transaction that is being committed, 0 if it has gone."""
        owner = self.committing.get(writes.txn)
        return 0 if owner is None else owner.session

    def since_of(self, shard: ShardId) -> Timestamp:
        """Return the lowest readable timestamp of a shard; the store's if it does not exist."""
        history = self.shards.get(shard)
        if history is None:
            return self.holds.since
        return Timestamp(max(history.domain.since, history.entries[0].begin))

    # -- watched scans (txn.transaction.scan_watch) ------------------------------------------------------------

    def watch(self, txn: TxnId, shard: ShardId) -> ScanWatch:
        """Begin to compare what others commit to a table with a transaction's scans of it."""
        watch = ScanWatch(txn, shard)
        self.watches.setdefault(shard, {})[watch] = None
        return watch

    def unwatch(self, watch: ScanWatch) -> None:
        """End it."""
        watches = self.watches[watch.shard]
        del watches[watch]
        if not watches:
            del self.watches[watch.shard]

    def check_watches(self, watches: Iterable[ScanWatch]) -> WriteConflict | None:
        """Return a conflict of a transaction's scans with commits applied, or before it in the batch being formed."""
        for watch in watches:
            if watch.conflict is not None:
                return watch.conflict
        for writes in self.log.committer.forming():
            for shard in writes.shards:
                for watch in watches:
                    if watch.shard == shard.shard:
                        generation = self.shards[shard.shard].latest.generation
                        if generation is not None:
                            conflict = conflict_with(self, watch, generation, shard, writes)
                            if conflict is not None:
                                return conflict
        return None

    def check_retractions(self, changes: WriteSet, fresh: Container[ShardId]) -> None:
        """Refuse to log what ends a version that is not a row's current one: a bug, found while it does no harm (L7).

        The caller holds the rows' locks. Small write sets only, ``RETRACTIONS`` operations at most; in larger ones
        applying finds it. ``fresh``: shards that the transaction itself has made anew. Raises StoreCorrupted.
        """
        left = RETRACTIONS
        for shard in changes.shards:
            left -= len(shard.ops)
        if left < 0:
            return
        for shard in changes.shards:
            generation = None
            for op in shard.ops:
                if not op.replaced:
                    continue
                if generation is None:
                    history = self.shards.get(shard.shard)
                    generation = None if history is None else history.latest.generation
                    if generation is None or shard.shard in fresh:
                        break
                if not generation.is_current(op.row_id, op.replaced):
                    bug = (
                        f"row {op.row_id} of shard {shard.shard} has no current version {op.replaced} to end"
                    )
                    _log.critical("a commit was refused, this is a bug: %s", bug)
                    raise StoreCorrupted(bug)

    # -- garbage -----------------------------------------------------------------------------------

    def vacuum(self) -> None:
        """Drop versions that nobody can read any more: a bounded piece of work, then again if there is more."""
        if self._vacuum is not None:
            self._vacuum.cancel()
            self._vacuum = None
        if any(timeline.feed.subscribers or timeline.holds.durable() for timeline in self.timelines):
            self._bound_subscriptions()
        left = more = False
        for domain in self.timelines.domains():
            more |= self._vacuum_some(domain)
            left |= bool(domain.garbage)
        if left and self.failure is None and not self.purging:
            delay = 0.0 if more else VACUUM_IDLE_S
            self._vacuum = asyncio.get_running_loop().call_later(delay, self.vacuum)

    def _vacuum_some(self, domain: Domain) -> bool:
        """Drop some of what nobody in a timeline can read any more; return whether there is more to be dropped.

        The queue is ordered by the timestamp at which versions were superseded (L34).
        """
        garbage = domain.garbage
        # Should history not get to disk (no space), retention gives way rather than memory.
        excess = len(garbage) - GARBAGE_FACTOR * self.options.history_versions
        watermark = domain.low_watermark(garbage[excess][0] if excess > 0 else 0)
        drop_some(garbage, watermark)
        return bool(garbage) and garbage[0][0] <= watermark

    def _has_garbage(self) -> bool:
        return any(domain.garbage for domain in self.timelines.domains())

    def superseded(self) -> int:
        """Return how many superseded versions are in memory and on the way out."""
        return sum(len(domain.garbage) for domain in self.timelines.domains())

    async def purge(self, left: Generation, cut: int) -> None:
        """Take entries of a generation up to ``cut`` out of the garbage queue: those versions left memory otherwise.

        Those of rows that are deleted in parts stay: their tombstones are in memory still. Whoever looks for
        changes finds all entries meanwhile, or ``Generation.purged_until``.
        """
        self.purging = True
        garbage, kept = left.garbage, self.aside
        try:
            if self._vacuum is not None:
                self._vacuum.cancel()
                self._vacuum = None
            while garbage and garbage[0][0] <= cut:
                for _ in range(min(len(garbage), PURGED_ROWS)):
                    entry = garbage.popleft()
                    ts, generation, row_id, newer = entry
                    if ts > cut or generation is not left or left.rows.get(row_id) is newer:
                        kept.append(entry)
                    else:
                        left.purged_until = max(left.purged_until, ts)
                await asyncio.sleep(0)
        finally:
            garbage.extendleft(reversed(kept))
            self.aside = []
            self.purging = False
        if self._has_garbage():
            self.vacuum()

    def _bound_subscriptions(self) -> None:
        """End the subscriptions that alone keep more superseded versions of their timeline, and common ones,
        than they may.
        """
        most, common = self.options.subscription_versions, self.timelines.common
        kept: dict[Domain, int] = {domain: len(domain.garbage) for domain in self.timelines.domains()}
        for history in self.shards.values():
            for generation in history.generations():
                kept[history.domain] += sum([part.ref.rows for part in generation.history])
        for timeline in self.timelines:
            if kept[timeline] + kept[common] <= most:
                continue
            holds = timeline.holds
            oldest = min((hold.ts for hold in holds.all()), default=timeline.read_ts())
            for subscription in list(timeline.feed.subscribers):
                if subscription.position == oldest < holds.retained:
                    subscription.lapse(most)
            for hold in holds.durable():
                if hold.ts == oldest < holds.retained:
                    self.take_away(hold)

    def take_away(self, hold: Hold) -> None:
        """Give a durable hold up, because what it keeps has grown past its bound."""
        if hold in self.start_holds:
            return
        hold.lost = True
        hold.release()
        _log.warning("the durable hold at %d was taken away: it kept too much", hold.ts)
        self.on_taken_away(hold)

    async def advance_upper(self, timeline: Domain | None = None) -> Timestamp:
        """Commit nothing: the logical upper of a timeline's shards moves above the returned timestamp (C16, L13, L15).

        None, or what is common: of all shards.

        Raises what a commit raises.
        """
        empty = WriteSet(txn=self.new_txn_id(), ts=Timestamp(0), shards=())
        oracle = timeline.oracle if isinstance(timeline, Timeline) else None
        return await self.log.committer.submit(empty, oracle=oracle)

    def forgetting(self) -> Generator[None, None, None]:
        """Drop schemas, generations and indexes of all shards that nobody at or above the low watermark uses,
        in slices: once a second.
        """
        common = self.timelines.common
        domains = {common, *(history.domain for history in self.shards.values())}
        limit = self._history_limit
        # which only rise meanwhile
        watermarks = {domain: domain.low_watermark(limit.beyond(domain)) for domain in domains}
        kept: dict[Domain, list[tuple[int, int]]] = {}
        for shard, history in list(self.shards.items()):
            watermark = watermarks.get(history.domain)
            if watermark is not None and self.shards.get(shard) is history:
                self._forget_history(shard, history, watermark)
                if len(history.entries) > 1:
                    kept.setdefault(history.domain, []).extend(history.changes())
            if over():
                yield
        kept.setdefault(common, []).extend(self.also_keeps())
        limit.seen(kept)
        if self.timelines.left:
            used = {history.domain for history in self.shards.values()}
            self.timelines.left = [t for t in self.timelines.left if t in used or len(t.holds)]
        yield from self.also_forgets()

    def forget_history_of(self, shard: ShardId) -> None:
        """Do for one shard, if it exists, what ``forgetting`` does for all."""
        history = self.shards.get(shard)
        if history is not None:
            self._forget_history(shard, history, history.domain.low_watermark())

    def _forget_history(self, shard: ShardId, history: ShardHistory, watermark: Timestamp) -> None:
        if len(history.entries) > 1:
            for generation in history.prune(watermark):
                for part in generation.parts + generation.history:
                    self.discard_later(part.ref.name)
                self.take_apart(dismantle(generation))
        entry = history.latest
        if entry.generation is not None and not entry.generation.pinned:
            # one that is read under its only schema has all of that schema's indexes: most shards have no others
            only = entry.spec if len(history.entries) == 1 else None
            if only is None or len(entry.generation.indexes) != len(only.indexes):
                entry.generation.forget_indexes(history.indexes_in_use())
        if len(history.entries) == 1 and entry.generation is None:
            manifest = self.log.manifests.get(shard)
            if manifest is None or manifest.forgotten:
                del self.shards[shard]

    def take_apart(self, steps: Iterator[None]) -> None:
        """Run what frees memory to its end, a slice per turn of the loop."""
        for _ in steps:
            asyncio.get_running_loop().call_soon(self.take_apart, steps)
            return

    # -- memory ------------------------------------------------------------------------------------

    def hot_sizes(self) -> Generator[None, None, tuple[int, list[tuple[int, Generation]]]]:
        """Return about what hot versions take in memory, superseded ones and indexes included, and of which
        live generation how much; in slices.
        """
        total = self.superseded() * GARBAGE_BYTES
        live: list[tuple[int, Generation]] = []
        for history in list(self.shards.values()):
            for generation in history.generations():
                size = generation.hot_bytes()
                total += size
                if size and generation is history.latest.generation:
                    live.append((size, generation))
            if over():
                yield
        return total, live

    def discard_later(self, part: str) -> None:
        """Delete a part's files once nobody can have captured it: when all holds of now are gone."""
        self.doomed_parts[part] = self.holds.latest_serial

    def stop_vacuum(self) -> None:
        """End the background work (close)."""
        if self._vacuum is not None:
            self._vacuum.cancel()
            self._vacuum = None
        for domain in self.timelines.domains():
            domain.garbage.clear()
        for history in self.shards.values():
            for generation in history.generations():
                for _ in dismantle(generation):
                    pass

    # -- checking ----------------------------------------------------------------------------------

    def validate(self) -> None:
        """Check every invariant of locks and generations (tests, simulation)."""
        self.locks.validate()
        for history in self.shards.values():
            for generation in history.generations():
                validate(generation)
