"""Upkeep of shards: hot rows become parts, parts are merged, files and history go when nobody needs them.

One job (``txn.upkeep.flush_job``) works on one generation, in the background, and never makes a reader wait.
It starts when

    a shard has too many hot rows, all shards together have, or their bytes are too many
    superseded versions are too many                              -> they become history parts
    the log is too long
    parts are worth merging (``txn.mvcc.compaction``), or a history part has outlived its readers
    somebody asks

Should rows come faster than they leave, writers wait (``crowded``): commits are not refused for that, they are slow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Sequence
from typing import Final

from txn.base.errors import OutOfSpace, TxnError
from txn.base.resident import resident_bytes
from txn.base.slices import in_turns, over
from txn.base.types import ShardId
from txn.mvcc.generation import Generation
from txn.mvcc.parts import PartState
from txn.persist.parts.manifest import Manifest
from txn.persist.parts.merge_job import Merger
from txn.transaction.coordinator import Coordinator
from txn.upkeep.flush_job import run as job
from txn.upkeep.flush_job import waits_for_hold, wants_merge
from txn.upkeep.merging import Prepared, choose_elsewhere, prepare

TICK_S: Final = 1.0
RETRY_S: Final = 5.0  # after a failed job (no space): do not hammer
KEPT_LOG: Final = 8  # so many times ``log_bytes`` the log may hold for a durable hold
CROWDED: Final = 2  # so many times the budget of hot versions make writers wait
LOOKS: Final = 16  # a sixteenth of the budget has been written: look at once

_log = logging.getLogger(__name__)


class Flusher:
    """Runs the jobs, one at a time. All methods are called on the event loop."""

    def __init__(self, core: Coordinator) -> None:
        self._core = core
        self._wanted: dict[ShardId, None] = {}
        self._history: set[ShardId] = set()  # of those wanted, whose superseded versions are to leave, too
        self._grown = 0  # bytes committed since the last look at memory
        self._relief: Generator[None, None, None] | None = None  # that look, while it goes on
        self._looked = self._swept = 0.0
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._asked: set[asyncio.Task[None]] = set()  # jobs that somebody has asked for
        self._task: asyncio.Task[None] | None = None
        self._merging: asyncio.Task[None] | None = None  # of large parts, by workers elsewhere
        self._preparing: asyncio.Task[Prepared | None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._ending = asyncio.Event()
        core.on_changed = self._changed
        core.on_grown = self._count

    def start(self) -> None:
        """Begin to look after the shards."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="holdfast-flusher")

    async def stop(self) -> None:
        """Finish the running jobs and end."""
        self._ending.set()
        self._wake.set()
        self._let_on()
        if self._task is not None:
            await self._task
        if self._preparing is not None:
            self._preparing.cancel()
        if self._merging is not None:
            await self._merging
        while self._asked:
            await asyncio.wait(self._asked)

    async def idle(self) -> None:
        """Wait until nothing is wanted or running."""
        while self._wanted or not self._idle.is_set() or self._merging is not None:
            self._wake.set()
            await asyncio.sleep(0.005)

    async def flush(self, shard: ShardId | None = None, *, history: bool = False) -> None:
        """Flush one shard, or all, now; ``history``: superseded versions, too. Raises OutOfSpace and whatever
        else the job meets.

        Who is cancelled stops waiting; a job that was begun goes on to its end, since half of one cannot be
        taken back. What there is no space for does not keep others from being flushed: those that have been
        emptied or dropped let the log go.
        """
        reserve = self._core.log.committer.reserve
        if reserve is not None and reserve.tight:
            self._give_up_history()
        shards = list(self._core.shards) if shard is None else [shard]
        full: OutOfSpace | None = None
        for one in shards:
            asked = asyncio.get_running_loop().create_task(self._job(one, history))
            self._asked.add(asked)
            asked.add_done_callback(self._asked.discard)
            try:
                await asyncio.shield(asked)
            except asyncio.CancelledError:
                asked.add_done_callback(_note_failure)
                raise
            except OutOfSpace as error:
                full = full or error
        await self._core.log.tidy(now=True)
        await self._discard()
        if full is not None:
            raise full

    def _give_up_history(self) -> None:
        """Let retention give way: files of what was dropped, emptied or superseded stay for those alone who hold it."""
        moved = False
        for domain in self._core.timelines.domains():
            before = domain.since
            moved |= domain.low_watermark(domain.read_ts()) > before
        if moved:
            _log.warning(
                "the disk is full: the past is not kept for history_retention, so that what was removed makes room"
            )

    async def _job(self, shard: ShardId, history: bool) -> None:
        async with self._lock:
            await job(self._core, shard, history=history)

    def _changed(self, generation: Generation) -> None:
        """Commits of a batch have touched the generation (called for each batch, so it must be cheap)."""
        if generation.log.current >= self._core.options.hot_rows and not generation.flushing:
            self._want(generation.shard)

    def _count(self, size: int) -> None:
        """A commit of ``size`` encoded bytes has been applied."""
        self._grown += size
        if self._grown * LOOKS > self._core.options.hot_bytes:
            self._relieve()

    def _want(self, shard: ShardId, *, history: bool = False) -> None:
        if history:
            self._history.add(shard)
        if shard not in self._wanted:
            self._wanted[shard] = None
            self._wake.set()

    async def _run(self) -> None:
        while not self._ending.is_set():
            try:
                await self._round()
            except Exception:
                # A bug, but without upkeep memory fills and writers wait for ever: try again, and say so.
                _log.exception("upkeep failed")
                self._let_on()
                await self._pause(RETRY_S)
            if self._core.log.committer.failed is not None:
                self._let_on()
                return

    async def _round(self) -> None:
        """Wait until there is something to do, or to look, and do it."""
        if not self._wanted:
            self._idle.set()
            try:
                await asyncio.wait_for(self._wake.wait(), TICK_S)
            except TimeoutError:
                pass
        now = asyncio.get_running_loop().time()
        if now >= self._looked + TICK_S:
            self._looked = self._swept = now
            await self._look()
            if resident_bytes()[1] > self._core.options.mapped_bytes:
                await self._forget_pages()
        self._wake.clear()
        self._idle.clear()
        while self._wanted and not self._ending.is_set():
            now = asyncio.get_running_loop().time()
            if now >= self._swept + TICK_S:
                self._swept = now
                await in_turns(self._core.forgetting())
            shard = next(iter(self._wanted))
            del self._wanted[shard]
            history = shard in self._history
            self._history.discard(shard)
            try:
                await self._job(shard, history)
                if over():  # thousands of dropped ones, of which nothing is to be done but to look
                    await asyncio.sleep(0)
                if self._core.crowded is not None:  # only writers who wait make it worth a look at all shards
                    await in_turns(self._relieving(want=False))
            except (TxnError, OSError) as error:
                # OSError: a file is missing. It may be a successor's doing, of which we are yet to learn.
                self._let_on()
                _log.warning("flush of shard %d failed: %s", shard, error)
                if self._core.log.committer.failed is not None:
                    return
                await self._pause(RETRY_S)
        try:
            await self._core.log.tidy()
            await self._discard()
        except TxnError as error:
            _log.warning("parts could not be deleted: %s", error)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the end has come."""
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            return

    async def _look(self) -> None:
        """Once a second: memory of all shards, the log's length, parts worth merging, history. Others run in
        between.
        """
        core = self._core
        await in_turns(core.forgetting())
        options = core.options
        await asyncio.sleep(0)
        await in_turns(self._relieving())
        await asyncio.sleep(0)
        live = [h.latest.generation for h in core.shards.values() if h.latest.generation is not None]
        live = [g for g in live if g.damage is None]
        superseded = sum(g.log.superseded for g in live)
        changed = [g for g in live if g.log.superseded] if superseded > options.history_versions else ()
        for generation in sorted(changed, key=lambda g: -g.log.superseded):
            if superseded <= options.history_versions:
                break
            superseded -= generation.log.superseded
            self._want(generation.shard, history=True)
        total = sum(len(g.rows) for g in live)
        hot = [g for g in live if g.log.current] if total > options.hot_rows_total else ()
        for generation in sorted(hot, key=lambda g: -g.log.current):
            if total <= options.hot_rows_total:
                break
            total -= generation.log.current
            self._want(generation.shard)
        await asyncio.sleep(0)
        for generation in live:
            # ``resident``: a job has failed amid its eviction
            if (
                generation.resident
                or generation.log.current >= options.hot_rows
                or wants_merge(core, generation)
            ):
                self._want(generation.shard)
            if over():
                await asyncio.sleep(0)
        if core.merger is not None and self._merging is None:
            for generation in live:
                if chosen := choose_elsewhere(core, core.merger, generation):
                    self._merge_elsewhere(core.merger, generation, chosen)
                    break
        await asyncio.sleep(0)
        for shard, history in list(core.shards.items()):
            if over():
                await asyncio.sleep(0)
            manifest = core.log.manifests.get(shard)
            if manifest is None or manifest.forgotten:
                continue
            if history.latest.generation is None or self._has_doomed(manifest):
                self._want(shard)
        await asyncio.sleep(0)
        held = core.log.length
        if held > min(self._log_bound(), KEPT_LOG * options.log_bytes):
            laggards = await core.log.laggards()
            if held > self._log_bound():
                for shard in laggards:
                    self._want(shard)
            if held > KEPT_LOG * options.log_bytes:
                self._stop_keeping(laggards)

    def _log_bound(self) -> int:
        """Return from how many bytes on the log is too long: less where space is, so that it can be flushed
        when there is none.
        """
        bound, reserve = self._core.options.log_bytes, self._core.log.committer.reserve
        if reserve is None or not reserve.size:
            return bound
        return min(bound, max(reserve.free() // 4, reserve.size // 4))

    async def _forget_pages(self) -> None:
        """Let go of what look-ups have read of sidecars: after a large load that is all of them."""
        for history in list(self._core.shards.values()):
            generation = history.latest.generation
            for part in () if generation is None else (*generation.parts, *generation.history):
                for _ in part.file.forget_pages():
                    await asyncio.sleep(0)

    def _merge_elsewhere(self, merger: Merger, generation: Generation, parts: Sequence[PartState]) -> None:
        """Begin a merge by workers; one at a time, and no job waits for it."""
        loop = asyncio.get_running_loop()
        self._core.merging = frozenset(part.ref.name for part in parts)
        self._preparing = loop.create_task(prepare(self._core, merger, generation, parts))
        self._merging = loop.create_task(self._take_merged(self._preparing))

    async def _take_merged(self, preparing: asyncio.Task[Prepared | None]) -> None:
        core = self._core
        try:
            await asyncio.wait([preparing])
            prepared = None if preparing.cancelled() else preparing.result()
            if prepared is not None:
                await self._swap_merged(prepared)
        except (TxnError, OSError) as error:
            _log.warning("a merge by workers failed: %s", error)
        except Exception:  # a bug: the server's own merges go on
            _log.exception("a merge by workers failed")
        finally:
            core.merging = frozenset()
            self._merging = self._preparing = None

    async def _swap_merged(self, prepared: Prepared) -> None:
        """Have a job take what was merged, as soon as one may work on the table; else throw it away."""
        core = self._core
        try:
            while prepared.fits(core) and core.log.committer.failed is None:
                async with self._lock:
                    await job(core, prepared.generation.shard, history=False, prepared=prepared)
                if prepared.taken or self._ending.is_set():
                    break
                await self._pause(TICK_S)  # a schema change is under way
        finally:
            if not prepared.taken and prepared.part is not None:
                core.discard_later(prepared.part.ref.name)

    def _stop_keeping(self, laggards: tuple[ShardId, ...]) -> None:
        """Take the oldest durable hold away if the log is as long as it is because manifests wait for it."""
        core = self._core
        histories = [core.shards[shard] for shard in laggards if shard in core.shards]
        waited_for = {history.domain for history in histories if waits_for_hold(core, history)}
        common = core.timelines.common in waited_for  # what is common waits for holds in any timeline
        durable = [
            hold
            for timeline in core.timelines
            if common or timeline in waited_for
            for hold in timeline.holds.durable()
        ]
        if durable:
            core.take_away(min(durable, key=lambda hold: hold.ts))

    def _relieve(self) -> None:
        """Begin to see how much memory hot versions take; with few shards that is over at once."""
        if self._relief is None:
            self._relief = self._relieving()
            self._core.take_apart(self._relief)

    def _relieving(self, *, want: bool = True) -> Generator[None, None, None]:
        """See how much memory hot versions take, in slices: flush the largest, let writers wait or go on."""
        core = self._core
        self._grown = 0
        budget = core.options.hot_bytes
        total, live = yield from core.hot_sizes()
        self._relief = None
        if total > CROWDED * budget:
            if core.crowded is None and want:
                core.crowded = asyncio.get_running_loop().create_future()
        else:
            self._let_on()
        if total <= budget or not want:
            return
        for size, generation in sorted(live, key=lambda one: -one[0]):
            if total <= budget:
                break
            if generation.damage is not None or not generation.rows:
                continue  # nothing of it may be replaced, or can be flushed
            total -= size
            self._want(generation.shard, history=generation.log.superseded > generation.log.current)

    def _let_on(self) -> None:
        """Let writers go on."""
        if self._core.crowded is not None:
            self._core.crowded.set_result(None)
            self._core.crowded = None

    def _has_doomed(self, manifest: Manifest) -> bool:
        """Tell whether a manifest still names parts that could go otherwise (after TRUNCATE)."""
        doomed = self._core.doomed_parts
        return bool(doomed) and any(p.ref.name in doomed for p in manifest.files)

    # -- files -------------------------------------------------------------------------------------

    async def _discard(self) -> None:
        """Delete parts that left before the oldest hold was taken."""
        core = self._core
        if core.log.committer.failed is not None:
            return  # another server may need them (DurableLog.discard)
        oldest = core.timelines.oldest_serial()
        waiting = core.doomed_parts
        for name, serial in list(waiting.items()):
            if serial >= oldest:
                continue
            try:
                await core.log.discard([name])
            except ValueError:
                continue  # a manifest or the log still names it: after its next checkpoint
            waiting.pop(name, None)


def _note_failure(asked: asyncio.Task[None]) -> None:
    """A job whose asker has gone has ended."""
    error = None if asked.cancelled() else asked.exception()
    if error is not None:
        _log.warning("a flush failed that nobody waits for any more: %s", error)
