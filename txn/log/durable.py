"""The durable half of ``txn`` behind one class: log, oracle, parts and manifests of one data directory.

    <data>/lock, FORMAT      ownership and format of the directory
    <data>/log.sqlite        consensus: epoch, registers (oracle bound, manifests), the log
    <data>/blobs/<shard>/    parts, sidecars, ends
    <data>/blobs/txn/        large write sets, until the log is trimmed past them

A start, in this order (A38-A40, U2, L10)::

    lock the directory -> raise the epoch (older leaders are fenced from here on) -> read manifests
      -> oracle above max(reserved bound, log upper) -> replay(): what the manifests do not cover
      -> start(): commits are accepted; blobs that nothing refers to are swept away

The user (``txn.transaction.coordinator`` and its kin) applies replayed batches to memory exactly as it
applies new ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO
from weakref import WeakValueDictionary

from txn.base.errors import DamagedEntry, DamagedFile, Fenced, OutOfSpace, TxnError
from txn.base.records import Batch
from txn.base.slices import over
from txn.base.time import Clock, IdGen
from txn.base.types import IndexId, PartRef, ShardId, ShardSpec, Timestamp
from txn.base.writers import Writers
from txn.log.group_commit import Committer
from txn.log.leadership import DirectoryLock, Leadership, take_leadership, watch
from txn.log.lease import Lease
from txn.log.oracle import ORACLE_PREFIX, DurableOracle, SteadyClock
from txn.log.shared import ObjectStore, SharedConfig, object_cluster, open_own_objects, open_shared
from txn.log.timeline import DEFAULT_TIMELINE
from txn.persist.blobs.files import LocalBlob
from txn.persist.checksum import seal_number, unseal_number
from txn.persist.jobs import Jobs
from txn.persist.location import Blob, Consensus, Indeterminate, Offload, in_thread, register_name
from txn.persist.logs.sqlite import PROCESS_AFTER, SqliteConsensus
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk
from txn.persist.parts.manifest import Manifest, ManifestStore
from txn.persist.parts.part import Part, RowGroupCache, epoch_of_blob, open_part, part_of_blob, sidecar_name
from txn.persist.parts.salvage import examine
from txn.persist.parts.write import build_sidecar, delete_part, write_part
from txn.persist.reserve import Reserve, make_way
from txn.persist.trouble import telling
from txn.values.arrow import ArrowTable
from txn.values.encoding import Piece, blob_pieces, decode_entry
from txn.wal.apply import tidy
from txn.wal.cache import LogMap
from txn.wal.read import DamagedLog, Uncovered, read_entries
from txn.wal.txns import ATTEMPTS, TxnsLog

_RESERVED = "reserved/"
_RESERVE_ATTEMPTS = 5
_SHARDS_PER_TIDY = 64  # with fewer shards than that every manifest trims the log
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """Where the data lies. ``path`` None: everything in memory (tests).

    ``shared``: log and blobs are there, and ``path`` is only this server's own.
    """

    path: Path | None
    shared: SharedConfig | None = None
    objects: ObjectStore | None = None
    """Data files are in an object store, the log is in ``path``; not together with ``shared``."""
    cache_bytes: int = 64 << 20
    """Budget of decoded row groups, in bytes of Arrow data."""
    reserve_bytes: int = 0
    """Kept in ``path`` for a full disk (``persist.reserve``); 0: nothing. Not where ``shared``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPressure:
    """What the log holds, and the shards whose unflushed entries keep it, the oldest first."""

    bytes: int
    entries: int
    laggards: tuple[ShardId, ...]
    critical_since: int
    """The lowest entry that a shard may still need (C40); the next one to come if none does."""


class DurableLog:
    """One leader's durable state. Made by ``open`` or ``assemble``; used from one event loop.

    ``oracle`` (of the default timeline), ``oracles`` (of the others, by name), ``committer``, ``blob``, ``cache`` and
    ``epoch`` are its parts, for direct use.
    """

    def __init__(
        self,
        *,
        consensus: Consensus,
        blob: Blob,
        offload: Offload,
        ids: IdGen,
        epoch: int,
        oracle: DurableOracle,
        oracles: dict[str, DurableOracle],
        clock: SteadyClock,
        manifests: ManifestStore,
        log: TxnsLog,
        cache: RowGroupCache,
        lock: DirectoryLock | None,
        lease: Lease | None,
    ) -> None:
        """Use ``open`` or ``assemble``."""
        self.epoch = epoch
        self.lease = lease
        self.oracle = oracle
        self.oracles = oracles
        self._clock = clock
        self._oracle_lock = asyncio.Lock()
        self.blob = blob
        self.cache = cache
        self.committer = Committer(log, oracle)
        self.committer.noted = self._note
        self.committer.spill = self._spill
        self.committer.unspill = blob.delete
        if lease is not None:
            lease.on_lost = self.committer.fail
            if lease.lost is not None:
                self.committer.fail(lease.lost)
        self._consensus = consensus
        self._offload = offload
        self._ids = ids
        self._store = manifests
        self.damaged: dict[ShardId, DamagedFile] = manifests.damaged
        """Shards that cannot be served, with the reason; complete once ``replay`` is exhausted."""
        self.salvaged: dict[ShardId, list[DamagedFile]] = {}
        """Damage of parts that are served as far as they can be read."""
        self._salvage_blob: MemoryBlob | None = None
        self.log_name = consensus.name
        self._txns = log
        self._lock = lock
        self._parts: WeakValueDictionary[str, Part] = WeakValueDictionary()
        self._opening: dict[str, asyncio.Task[Part]] = {}
        self._manifest_lock = asyncio.Lock()
        # Bulk-loaded parts by the entry that brought them, and per shard the entry that the next manifest
        # must cover because such a part has been replaced: replaying it would bring the part back.
        self._loaded: dict[str, tuple[ShardId, int]] = {}
        self._untidied = 0  # manifests stored since the log was trimmed
        self.shrink: Callable[[], Awaitable[None]] | None = None
        """Makes the log's file as small as what is in it, where that can be had. Raises OutOfSpace, Indeterminate."""
        self._must_cover: dict[ShardId, int] = {}
        self._spilled: dict[str, int] = {}  # blobs of large write sets -> the entry that names them
        self._indexes: set[str] = (
            set()
        )  # "<shard>.x<index>" of all that manifests and replayed entries define
        self._replayed = False
        self._sweeper: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._removing: set[asyncio.Task[None]] = set()  # parts that nobody waits for any more
        self.jobs = Jobs(blob, epoch, ids, self._swept)
        """What other processes write."""
        self._closed = False

    # -- opening -----------------------------------------------------------------------------------

    @classmethod
    async def open(cls, config: StorageConfig, clock: Clock, rng: object, ids: IdGen) -> DurableLog:
        """Open or create a data directory and become its leader. ``rng`` is not needed yet.

        Raises:
            DataDirectoryInUse: another process holds it.
            UnknownFormat: a newer server wrote it, or it is something else.
            DamagedFile, DamagedLog: it cannot be told any more what it held.
            OutOfSpace: the first reservation cannot be stored.
            LeaderAlive, Indeterminate: see ``open_shared``.
        """
        if config.path is None:
            disk = MemoryDisk()
            return await cls.assemble(
                MemoryConsensus(disk), MemoryBlob(disk), clock, ids, cache_bytes=config.cache_bytes
            )
        path = str(config.path)
        if config.shared is not None:
            stores = await open_shared(config.shared, path, clock, ids)
            try:
                opened = await cls.assemble(
                    stores.consensus, stores.blob, clock, ids, cache_bytes=config.cache_bytes,
                    lock=stores.lock, leadership=stores.leadership, append_attempts=stores.append_attempts,
                )  # fmt: skip
                if isinstance(stores.blob, LocalBlob):
                    opened.watch(stores.blob.check_place)
                return opened
            except BaseException:
                await stores.close()
                raise
        lock = await asyncio.to_thread(
            DirectoryLock.acquire, path, clock, room=partial(make_way, path, config.reserve_bytes)
        )
        consensus: SqliteConsensus | None = None
        try:
            reserve = await asyncio.to_thread(Reserve, path, config.reserve_bytes)
            blobs = os.path.join(path, "blobs")
            store = config.objects
            owned = object_cluster(path, None if store is None else store.url, str(ids.next_id()))
            # What says where the files are is made once the log is durable: with it but without a log, that is lost.
            consensus = await SqliteConsensus.open(
                os.path.join(path, "log.sqlite"),
                expected=os.path.isdir(blobs) if owned is None else owned[1],
                process_after=PROCESS_AFTER,
            )
            blob: Blob
            if store is None or owned is None:
                blob = await asyncio.to_thread(LocalBlob, blobs, owned=lock.check)
            else:
                blob = await open_own_objects(store, path, owned, consensus)
            opened = await cls.assemble(
                consensus, blob, clock, ids, cache_bytes=config.cache_bytes, lock=lock
            )
            opened.committer.reserve = reserve
            opened.shrink = consensus.shrink
            opened.watch(blob.check_place if isinstance(blob, LocalBlob) else lock.check)
            return opened
        except BaseException:
            if consensus is not None:
                await consensus.close()
            lock.release()
            raise

    @classmethod
    async def assemble(
        cls,
        consensus: Consensus,
        blob: Blob,
        clock: Clock,
        ids: IdGen,
        *,
        offload: Offload = in_thread,
        cache_bytes: int = 64 << 20,
        lock: DirectoryLock | None = None,
        leadership: Leadership | None = None,
        append_attempts: int = ATTEMPTS,
    ) -> DurableLog:
        """Become the leader of given stores (tests and simulation choose them, and ``offload``).

        ``leadership``: what ``take_leadership`` gave for ``consensus``; None: take it at once, without a lease.
        """
        if leadership is None:
            leadership = await take_leadership(consensus, clock)
        epoch = leadership.epoch
        manifests = ManifestStore(consensus, blob, ids, epoch)
        await manifests.load()
        first, end = await consensus.log_bounds()
        through = max((m.flushed_through for m in manifests.current.values()), default=0)
        if through >= end:
            raise DamagedLog(
                f"{consensus.name} is damaged: it ends at entry {end - 1}, a manifest covers entry {through}"
            )
        upper = await _log_upper(consensus, end)
        # One clock for all: were one timeline ahead of what the others have seen of it, commits that happen everywhere
        # would take these there, too, to wait until their clocks have followed.
        steady = SteadyClock(clock)
        oracle = await DurableOracle.open(consensus, DEFAULT_TIMELINE, epoch, steady, log_upper=upper)
        oracles: dict[str, DurableOracle] = {}
        for key in await consensus.keys(ORACLE_PREFIX):
            name = key.removeprefix(ORACLE_PREFIX)
            if name != DEFAULT_TIMELINE:
                oracles[name] = await DurableOracle.open(consensus, name, epoch, steady, log_upper=upper)
        # Nothing readable in one timeline is ahead of another: what happens everywhere was applied to all.
        start = max(one.read_ts() for one in (oracle, *oracles.values()))
        for one in (oracle, *oracles.values()):
            await one.wait_ready(start)
            one.apply_write(start)
        return cls(
            consensus=consensus,
            blob=blob,
            offload=offload,
            ids=ids,
            epoch=epoch,
            oracle=oracle,
            oracles=oracles,
            clock=steady,
            manifests=manifests,
            log=TxnsLog(consensus, epoch, LogMap(first), append_attempts),
            cache=RowGroupCache(cache_bytes),
            lock=lock,
            lease=leadership.lease,
        )

    def watch(self, check: Callable[[], None]) -> None:
        """Commit nothing any more once ``check`` says that files are not where they were (Displaced)."""
        self._watch = asyncio.get_running_loop().create_task(watch(check, self.committer.fail))

    @property
    def manifests(self) -> Mapping[ShardId, Manifest]:
        """The durable manifests, kept current by ``checkpoint``; forgotten shards included."""
        return self._store.current

    async def replay(self) -> AsyncIterator[tuple[int, Batch]]:
        """Yield (seq, batch) in log order: what no manifest covers, without part swaps. To be exhausted, once.

        Raises:
            UnknownFormat: an entry of a newer server.
            DamagedLog: entries are missing.
            DamagedEntry: one of which it cannot be told which shards it writes to.
        """
        uncovered = Uncovered(
            self._store.current, lambda part: self.blob.local_path(f"{part}.parquet"), self.damaged
        )
        log_map = self._txns.map
        async for seq, whole, blobs in read_entries(self._consensus, self.blob, log_map, self.log_name):
            if isinstance(whole, DamagedEntry):
                uncovered.damage(seq, whole)
                continue
            batch = uncovered.cut(seq, whole)
            self._note(batch or Batch(epoch=whole.epoch), seq, blobs)
            if batch is not None:
                yield seq, batch
        for shard, manifest in self._store.current.items():
            log_map.flushed(shard, manifest.flushed_through)
        self.committer.applied_seq = log_map.next - 1
        self._replayed = True

    def start(self) -> None:
        """Begin to accept commits; ``replay`` is exhausted and ``committer.applier`` is set."""
        if not self._replayed:
            raise AssertionError("start before the log was replayed")
        self.committer.start()
        if self.damaged:
            # What is damaged does not say what it refers to, so nothing is swept before it is mended or given up.
            _log.warning("unused files are not looked for: %d shards are damaged", len(self.damaged))
            return
        for manifest in self._store.current.values():
            self._define(manifest.spec)
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep(self._referenced()))

    def _define(self, spec: ShardSpec) -> None:
        """Note which sidecars a schema calls for."""
        self._indexes.update(sidecar_name(str(spec.shard), index.index) for index in spec.indexes)

    def _note(self, batch: Batch, seq: int, blobs: list[str]) -> None:
        for name in blobs:
            self._spilled[name] = seq
        for write_set in batch.writes:
            for writes in write_set.shards:
                for part in writes.parts:
                    self._loaded[part.name] = (writes.shard, seq)
            if not self._replayed:
                for change in write_set.schema:
                    if change.spec is not None:
                        self._define(change.spec)
        for swap in batch.swaps:
            for name in swap.removed:
                loaded = self._loaded.get(name)
                if loaded is not None:
                    self._must_cover[swap.shard] = max(self._must_cover.get(swap.shard, 0), loaded[1])

    async def _spill(self, pieces: list[Piece]) -> str:
        """Write a large write set to a blob and return its name."""
        name = f"txn/{self.epoch}-{self._ids.next_id()}.ops"

        def write(file: BinaryIO) -> None:
            for piece in blob_pieces(pieces):
                file.write(piece)

        await self.blob.publish(name, write)
        return name

    # -- timelines ---------------------------------------------------------------------------------

    async def open_oracle(self, name: str) -> None:
        """Make the oracle of a new timeline, durably; its timestamps begin above the default timeline's. Idempotent.

        Raises Fenced, OutOfSpace, Indeterminate: there may be a register, which the next start finds.
        """
        async with self._oracle_lock:
            if name in self.oracles:
                return
            upper = self.oracle.last_ts
            oracle = await DurableOracle.open(
                self._consensus, name, self.epoch, self._clock, log_upper=Timestamp(upper + 1)
            )
            while not oracle.pass_by(newest := self.oracle.last_ts):
                await oracle.wait_ready(newest)
            self.oracles[name] = oracle

    async def remove_oracle(self, oracle: DurableOracle) -> None:
        """Delete the register of a timeline that was dropped, after it was taken out of ``oracles``.

        Raises Fenced, OutOfSpace, Indeterminate: the register may be there still, which the next start finds.
        """
        async with self._oracle_lock:
            await oracle.remove()

    # -- parts -------------------------------------------------------------------------------------

    async def write_part(
        self,
        shard: ShardId,
        spec: ShardSpec,
        table: ArrowTable,
        *,
        sort: bool = True,
        writers: Sequence[Writers] = (),
    ) -> PartRef:
        """Write a part and its sidecars, durably, under a new name. Heavy work runs in threads.

        ``table``: a pyarrow.Table of ``txn.values.columns.table_schema`` columns (``rows_to_table`` makes one);
        ``s_begin`` 0 throughout for a bulk load, whose timestamp comes at commit. ``sort`` False: it is already in
        order of the primary key (row ids where there is none). ``writers``: where the told transactions are found that
        may have made rows of it.

        Raises:
            OutOfSpace: what was written is removed.
            Indeterminate: as above, as far as possible; the next start sweeps the rest.

        When it is cancelled, threads may go on with a file; what they have written is removed as soon as they
        have ended.
        """
        name = f"{shard}/{self.epoch}-{self._ids.next_id()}"
        writing = asyncio.ensure_future(
            write_part(self.blob, self._offload, name, spec, table, sort=sort, writers=writers)
        )
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            task = asyncio.get_running_loop().create_task(self._remove_unwanted(writing, name))
            self._removing.add(task)
            task.add_done_callback(self._removing.discard)
            raise
        except BaseException:
            await self._remove_unfinished(name)
            raise

    async def _remove_unwanted(self, writing: asyncio.Future[PartRef], name: str) -> None:
        await asyncio.wait([writing])
        if not writing.cancelled():
            writing.exception()  # nobody asks for it any more
        await self._remove_unfinished(name)

    async def _remove_unfinished(self, name: str) -> None:
        try:
            await delete_part(self.blob, name)
        except TxnError as error:
            _log.info("an unfinished part was left behind: %s", error)

    def named_parts(self, shard: ShardId) -> set[str]:
        """Return the parts that are there after a restart by their names: in the manifest, or the entry that
        brought them.
        """
        manifest = self._store.current.get(shard)
        named = {part.ref.name for part in manifest.parts} if manifest is not None else set()
        return named | {name for name, (of, _seq) in self._loaded.items() if of == shard}

    def here(self, ref: PartRef) -> PartRef:
        """Return the reference of a part with the path under which this server reads it: a worker's may be another."""
        return dataclasses.replace(ref, path=self.blob.local_path(f"{ref.name}.parquet"))

    async def open_part(self, ref: PartRef) -> Part:
        """Open a part; the same object for the same name while somebody holds it.

        Raises DamagedFile, UnknownFormat.
        """
        part = self._parts.get(ref.name)
        if part is None:
            task = self._opening.get(ref.name)
            if task is None:
                task = asyncio.get_running_loop().create_task(self._open(ref))
                self._opening[ref.name] = task
                task.add_done_callback(lambda _: self._opening.pop(ref.name, None))
            part = await asyncio.shield(task)
        if ref.max_begin and not part.ref.max_begin:
            part.ref = ref  # a bulk load that has got its timestamp since
        return part

    async def _open(self, ref: PartRef) -> Part:
        part = await open_part(ref, self.blob, self._offload, self.cache)
        self._parts[ref.name] = part  # in this turn: between it and that of whoever waits, others may ask
        return part

    async def open_salvaged(self, ref: PartRef, spec: ShardSpec) -> tuple[Part, tuple[int, ...]]:
        """Open a part, all of whose files are read, or what is left of it; returns the positions of rows with
        lost values, too.

        Raises UnknownFormat, FileTrouble, OutOfSpace, StoreUnavailable.
        """
        # What is damaged is found again, file by file.
        with contextlib.suppress(DamagedFile), telling(ref.path):
            await self.blob.keep(ref.name)
        found = await self._offload(lambda: examine(ref, spec, self.blob))
        if found is None:
            return await self.open_part(ref), ()
        shard = spec.shard
        for damage in found.damage:
            _log.error("of shard %d, %d rows of a part have lost values: %s", shard, len(found.lost), damage)
        self.salvaged.setdefault(shard, []).extend(found.damage)
        if not found.certain:
            self.damaged.setdefault(shard, found.damage[0])
        if self._salvage_blob is None:
            self._salvage_blob = MemoryBlob(MemoryDisk())
        blob = self._salvage_blob
        made = await write_part(
            blob, self._offload, ref.name, spec, found.table, sort=False, writers=found.writers
        )
        part = await open_part(made, blob, self._offload, self.cache)
        part.damage = found.damage[0] if found.lost or not found.certain else None
        self._parts[ref.name] = part
        return part, found.lost

    async def build_sidecar(self, ref: PartRef, spec: ShardSpec, index: IndexId) -> None:
        """Write the sidecar of an index of ``spec`` for an existing part, durably. May be repeated.

        Columns that the part lacks count with their missing value. A sidecar that is there already is replaced:
        it belongs to an index of the same id that was rolled back, or lost in a crash. Nobody may be reading it.
        """
        await self._swept()
        await self.jobs.settled()  # the same index may have been given up a moment ago
        definition = next(i for i in spec.indexes if i.index == index)
        part = await self.open_part(ref)
        await self.blob.delete(sidecar_name(ref.name, index))
        part.forget_sidecar(index)
        await build_sidecar(self.blob, self._offload, part, spec, definition)

    async def _swept(self) -> None:
        """Wait until the sweep of this start has ended: it may just be removing a sidecar that is about to be
        written.
        """
        if self._sweeper is not None and not self._sweeper.done():
            await asyncio.wait([self._sweeper])

    async def discard(self, parts: Iterable[str]) -> None:
        """Delete parts and their sidecars (rolled back bulk loads, what a swap replaced). Idempotent.

        A server that can commit no more deletes no more either: whether a log entry of its own names a part may
        be unknown to it, and another server may serve that entry by now. The next start sweeps.

        Raises:
            ValueError: a manifest, stored or perhaps stored, or a log entry that no manifest covers, still names one.
            Fenced, CommitUnknown: the server must stop.
        """
        for name in parts:
            if self.committer.failed is not None:
                raise self.committer.failed
            owner = ShardId(int(name.partition("/")[0]))
            manifest = self._store.current.get(owner)
            if self._store.names(owner, name):
                raise ValueError(f"part {name} is in a manifest of shard {owner}")
            loaded = self._loaded.get(name)
            if loaded is not None and (manifest is None or manifest.flushed_through < loaded[1]):
                raise ValueError(f"part {name} is named by log entry {loaded[1]}, which is not flushed")
            self._loaded.pop(name, None)
            part = self._parts.pop(name, None)
            if part is not None:
                part.close()
            await delete_part(self.blob, name)

    async def reserve(self, name: str, floor: int, count: int) -> tuple[int, int]:
        """Return ``(first, end)``: numbers at or above ``floor`` that no other leader has been or will be given.

        Files that are named by such a number (the sidecar of an index) stay apart, also from what a leader writes
        that does not know yet that it was deposed. ``name``: one sequence of numbers; ``count`` > 0.

        Raises Fenced, OutOfSpace, Indeterminate (numbers may have been wasted).
        """
        key = f"{_RESERVED}{name}"
        for _ in range(_RESERVE_ATTEMPTS):
            head = await self._consensus.head(key)
            bound = 0 if head is None else unseal_number(register_name(key, self._consensus), head.data)
            first = max(bound, floor)
            data = seal_number(first + count)
            expected = None if head is None else head.seq
            if await self._consensus.compare_and_set(key, expected, data, epoch=self.epoch) is not None:
                return first, first + count
        raise Indeterminate(f"the register {key} keeps changing")

    # -- manifests ---------------------------------------------------------------------------------

    async def checkpoint(self, manifest: Manifest) -> None:
        """Make ``manifest`` its shard's durable state, then trim the log as far as all shards allow.

        ``manifest.flushed_through`` is ``committer.applied_seq`` as read in the tick in which the hot rows were
        captured: all commits up to it are in the manifest's parts and ends. Parts that are no longer in it
        may be discarded afterwards.

        Raises:
            ValueError: it is older than the current one, ahead of what is applied, or too old for a bulk-loaded
                part that has been replaced.
            OutOfSpace, Indeterminate: the old manifest may still be the durable one; calling again is safe.
            Fenced: the server must stop.
        """
        shard, through = manifest.shard, manifest.flushed_through
        if through > self.committer.applied_seq:
            raise ValueError(f"manifest of shard {shard} is ahead of the log")
        if through < self._must_cover.get(shard, 0):
            raise ValueError(f"manifest of shard {shard} must cover entry {self._must_cover[shard]}")
        async with self._manifest_lock:
            await self._store.store(manifest)
            self._txns.map.flushed(shard, through)
            if self._must_cover.get(shard, through + 1) <= through:
                del self._must_cover[shard]
            for name in [n for n, (s, at) in self._loaded.items() if s == shard and at <= through]:
                del self._loaded[name]
            # tidying looks at every shard, so with thousands of them it waits for several manifests
            self._untidied += 1
            if self._untidied * _SHARDS_PER_TIDY > len(self._store.current):
                await self._tidy()

    async def tidy(self, *, now: bool = False) -> None:
        """Trim the log by the manifests stored since it was trimmed. Failing to is logged only. Raises Fenced.

        ``now``: on a full disk all that may go goes at once, and the file becomes as small as what is left.
        """
        reserve = self.committer.reserve
        short = now and reserve is not None and reserve.short
        if self._untidied or short:
            async with self._manifest_lock:
                await self._tidy(everything=short)
                if short and self.shrink is not None:
                    await self._shrink_file(self.shrink)

    async def _shrink_file(self, shrink: Callable[[], Awaitable[None]]) -> None:
        """Make the log's file smaller, with what is left of the reserve. Failing to is logged only."""
        reserve = self.committer.reserve
        while True:
            try:
                await shrink()
                return
            except OutOfSpace as error:
                if reserve is None or not reserve.give_some("the log's file is made smaller"):
                    _log.warning("the log's file did not become smaller: %s", error)
                    return
            except TxnError as error:
                _log.warning("the log's file did not become smaller: %s", error)
                return

    async def _tidy(self, *, everything: bool = False) -> None:
        """Trim the log, then remove the registers of shards that it no longer mentions."""
        self._untidied = 0
        try:
            first = await self._trimmed(everything)
            for name in [n for n, seq in self._spilled.items() if seq < first]:
                await self.blob.delete(name)
                del self._spilled[name]
            for shard, manifest in list(self._store.current.items()):
                if manifest.forgotten and manifest.flushed_through < first:
                    await self._store.remove(shard)
                    self._txns.map.forget(shard)
        except Fenced:
            raise
        except TxnError as error:
            _log.warning("the log was not trimmed: %s", error)  # the next checkpoint tries again

    async def _trimmed(self, everything: bool) -> int:
        """Trim the log; on a full disk with what is left of the reserve. Returns its first entry."""
        reserve = self.committer.reserve
        while True:
            try:
                return await tidy(self._txns, everything=everything)
            except OutOfSpace:
                if reserve is None or not (
                    everything and reserve.short and reserve.give_some("the log is trimmed")
                ):
                    raise

    @property
    def length(self) -> int:
        """Encoded bytes of the entries that the log holds."""
        return self._txns.map.bytes

    async def laggards(self) -> tuple[ShardId, ...]:
        """Return the shards whose unflushed entries keep the log, the oldest first; others run meanwhile, for
        they may be thousands.
        """
        held = []
        for one in self._txns.map.lagging():
            if one is not None:
                held.append(one)
            if over():
                await asyncio.sleep(0)
        return tuple(shard for _, shard in sorted(held))

    def pressure(self) -> LogPressure:
        """Return what the log holds, and for whom: a look at every shard with unflushed entries, a microsecond each."""
        log_map = self._txns.map
        return LogPressure(
            bytes=log_map.bytes,
            entries=log_map.next - log_map.first,
            laggards=log_map.laggards(),
            critical_since=log_map.trim_point(),
        )

    # -- sweeping and closing ----------------------------------------------------------------------

    def _referenced(self) -> set[str]:
        parts = {p.ref.name for m in self._store.current.values() for p in m.files}
        return parts | set(self._loaded) | set(map(part_of_blob, self._spilled))

    async def _sweep(self, parts: set[str]) -> None:
        """Delete blobs of earlier epochs that neither a manifest nor an uncovered log entry names.

        What this epoch writes meanwhile is told by its name, so ``parts`` may be older than the listing. A
        sidecar's name has no epoch: those of dropped indexes and of builds that were cut off go, and builds
        wait (``build_sidecar``). A successor's build does not wait for this, so what is listed counts only if
        there was none by then.
        """
        ends = self._store.blob_names()
        try:
            names = await self.blob.list("")
            if (await self._consensus.pulse()).epoch != self.epoch:
                return  # the successor sweeps
            for name in names:
                epoch = epoch_of_blob(name)
                if epoch is None or epoch >= self.epoch:
                    continue
                used = name in ends if ".ends" in name else part_of_blob(name) in parts
                if used and ".x" in name:
                    shard, _, file = name.partition("/")
                    used = f"{shard}.{file.rpartition('.')[2]}" in self._indexes
                if not used:
                    await self.blob.delete(name)
        except TxnError as error:
            _log.warning("unused files were not all removed: %s", error)  # the next start goes on

    async def close(self) -> None:
        """Finish queued commits, give unused timestamps back, release everything. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
        await self.committer.close()
        await self.jobs.close()
        while self._removing:
            await asyncio.wait(self._removing)
        if self._sweeper is not None:
            await asyncio.wait([self._sweeper])
        if self._replayed and self.committer.failed is None:
            try:
                async with self._manifest_lock:  # a checkpoint may be tidying
                    await self._tidy(everything=True)
            except TxnError as error:
                _log.info("the log was not trimmed at the end: %s", error)
        for oracle in (self.oracle, *self.oracles.values()):
            await oracle.close()
        if self.lease is not None:
            await self.lease.release()  # last: whoever comes next need not wait for reads of ours
        await self._consensus.close()
        if self._lock is not None:
            self._lock.release()


async def _log_upper(consensus: Consensus, end: int) -> Timestamp:
    """Return a timestamp above all commits in the log (0: it is empty).

    The last entry may hold part swaps only, so this looks back until one with a timestamp comes.
    """
    first, _ = await consensus.log_bounds()
    for seq in range(end - 1, first - 1, -1):
        entries = await consensus.read_log(seq, 1)
        if not entries or entries[0][0] != seq:
            break
        try:
            upper = decode_entry(entries[0][1], f"log entry {seq} in {consensus.name}").upper
        except DamagedEntry as error:
            if error.shards is None:
                raise
            upper = error.upper
        if upper is not None:
            return Timestamp(upper + 1)
    return Timestamp(0)
