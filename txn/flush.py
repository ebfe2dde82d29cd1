"""Upkeep of shards: hot rows become parts, parts are merged, files and history go when nobody needs them.

One job works on one generation, in the background, and never makes a commit or a reader wait:

    tick     cut = read_ts; capture segments, parts, schema; applied_seq              (begin_flush)
    threads  convert, sort, write the hot part; read, filter, write the merged part; all synced
    queue    PartSwap through the committer: in one tick the new parts take over, with the ends that
             arrived meanwhile; rows that are now in the hot part stay hot as well
    pieces   evict those rows from the hot store, a segment at a time
    then     checkpoint the manifest (exact state at the cut), trim the log

A job starts when a shard has too many hot rows, when all shards together have, when the log is too long, when many
small parts have gathered or many rows of a part have ended, or on demand.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import pyarrow as pa

from txn.columns import column_arrays, rows_to_table, table_schema
from txn.coordinator import Coordinator, SwapJob, swap_key
from txn.errors import TxnError
from txn.mvcc.generation import Generation
from txn.mvcc.hotlog import Segment
from txn.mvcc.parts import PartState
from txn.persist.manifest import Ends, Manifest, ManifestPart
from txn.records import PartSwap
from txn.types import PartRef, ShardId, ShardSpec

TICK_S: Final = 1.0
RETRY_S: Final = 5.0  # after a failed job (no space): do not hammer
SMALL_PART_ROWS: Final = 250_000
SMALL_PARTS: Final = 8  # so many small parts are merged
ENDED_FRACTION: Final = 0.3  # a part with more ended rows is written anew
ENDED_ROWS: Final = 10_000  # fewer are not worth a job of their own
MERGE_ROWS: Final = 2_000_000  # at most so many rows in one merge
CHUNK_ROWS: Final = 2000

_log = logging.getLogger(__name__)


class Flusher:
    """Runs the jobs, one at a time. All methods are called on the event loop."""

    def __init__(self, core: Coordinator) -> None:
        self._core = core
        self._wanted: dict[ShardId, None] = {}
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._ending = asyncio.Event()
        core.on_changed = self._changed

    def start(self) -> None:
        """Begin to look after the shards."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="holdfast-flusher")

    async def stop(self) -> None:
        """Finish the running job and end."""
        self._ending.set()
        self._wake.set()
        if self._task is not None:
            await self._task

    async def idle(self) -> None:
        """Wait until nothing is wanted or running."""
        while self._wanted or not self._idle.is_set():
            self._wake.set()
            await asyncio.sleep(0.005)

    async def flush(self, shard: ShardId | None = None) -> None:
        """Flush one shard, or all, now. Raises OutOfSpace and whatever else the job meets."""
        shards = list(self._core.shards) if shard is None else [shard]
        for one in shards:
            async with self._lock:
                await self._flush(one)
        await self._discard()

    def _changed(self, generation: Generation) -> None:
        """A commit has touched the generation (called for each, so it must be cheap)."""
        if generation.log.current >= self._core.options.hot_rows and not generation.flushing:
            self._want(generation.shard)

    def _want(self, shard: ShardId) -> None:
        if shard not in self._wanted:
            self._wanted[shard] = None
            self._wake.set()

    async def _run(self) -> None:
        while not self._ending.is_set():
            if not self._wanted:
                self._idle.set()
                try:
                    await asyncio.wait_for(self._wake.wait(), TICK_S)
                except TimeoutError:
                    self._look()
            self._wake.clear()
            self._idle.clear()
            while self._wanted and not self._ending.is_set():
                shard = next(iter(self._wanted))
                del self._wanted[shard]
                try:
                    async with self._lock:
                        await self._flush(shard)
                except (TxnError, OSError) as error:
                    # OSError: a file is missing. It may be a successor's doing, of which we are yet to learn.
                    _log.warning("flush of shard %d failed: %s", shard, error)
                    if self._core.log.committer.failed is not None:
                        return
                    await self._pause(RETRY_S)
            try:
                await self._discard()
            except TxnError as error:
                _log.warning("parts could not be deleted: %s", error)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the end has come."""
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            return

    def _look(self) -> None:
        """Once a second: memory of all shards, the log's length, parts worth merging, history."""
        core = self._core
        core.forget_history()
        options = core.options
        live = [h.latest.generation for h in core.shards.values() if h.latest.generation is not None]
        total = sum(len(g.rows) for g in live)
        for generation in sorted(live, key=lambda g: -g.log.current):
            if total <= options.hot_rows_total or not generation.log.current:
                break
            total -= generation.log.current
            self._want(generation.shard)
        for generation in live:
            if generation.log.current >= options.hot_rows or _worth_merging(generation.parts):
                self._want(generation.shard)
        for shard, history in core.shards.items():
            manifest = core.log.manifests.get(shard)
            if manifest is None or manifest.forgotten:
                continue
            if history.latest.generation is None or self._has_doomed(manifest):
                self._want(shard)
        pressure = core.log.pressure()
        if pressure.bytes > options.log_bytes:
            for shard in pressure.laggards:
                self._want(shard)

    def _has_doomed(self, manifest: Manifest) -> bool:
        """Tell whether a manifest still names parts that could go otherwise (after TRUNCATE)."""
        doomed = self._core.doomed_parts
        return bool(doomed) and any(p.ref.name in doomed for p in manifest.parts)

    # -- one job -----------------------------------------------------------------------------------

    async def _flush(self, shard: ShardId) -> None:
        core = self._core
        await core.readable()  # the cut below must not go through a commit that is half applied
        history = core.shards.get(shard)
        if history is None:
            return
        core.forget_history()
        entry = history.latest
        generation, spec = entry.generation, entry.spec
        if generation is None or spec is None:
            await self._checkpoint_dropped(shard)
            return
        if generation.pinned or generation.flushing or len(generation.indexes) != len(spec.indexes):
            return  # a schema change is under way, or an older reader still needs a dropped index
        seq = core.log.committer.applied_seq
        cut = core.read_ts()
        next_row_id = generation.next_row_id
        at_cut = generation.parts
        manifest = core.log.manifests.get(shard)
        if manifest is not None and manifest.flushed_through >= seq and not _worth_merging(at_cut):
            return
        segments = generation.begin_flush(cut)
        announced: list[PartState] = []
        try:
            merge = _choose_merge(at_cut)
            watermark = core.holds.low_watermark()
            hot = await self._hot_table(spec, segments, cut)
            if hot is not None:
                announced.append(await self._write(spec, hot))
            if merge:
                table = await self._merged_table(spec, merge, watermark)
                if table is not None:
                    announced.append(await self._write(spec, table))
            swap = PartSwap(
                shard=shard, removed=tuple(p.ref.name for p in merge), added=tuple(p.ref for p in announced)
            )
            if announced or merge:
                job = SwapJob(generation, announced)
                core.swap_jobs[swap_key(swap)] = job
                try:
                    await core.log.committer.submit_swap(swap)
                except BaseException:
                    core.swap_jobs.pop(swap_key(swap), None)
                    raise
                for part in merge:
                    core.discard_later(part.ref.name)
        except BaseException:
            generation.abandon_flush()
            for part in announced:
                core.discard_later(part.ref.name)
            raise
        if hot is not None:
            await self._evict(generation, segments)
        else:
            generation.abandon_flush()
        leaving = {p.ref.name for p in merge}
        kept = [p for p in at_cut if p.ref.name not in leaving] + announced
        parts = []
        for part in kept:
            ends = await core.offload(partial(Ends.of, list(part.ends.items())))
            parts.append(ManifestPart(ref=part.ref, ends=ends))
        await core.log.checkpoint(
            Manifest(
                shard=shard,
                spec=spec,
                generation=generation.number,
                flushed_through=seq,
                next_row_id=next_row_id,
                since=cut,
                parts=tuple(parts),
            )
        )

    async def _checkpoint_dropped(self, shard: ShardId) -> None:
        core = self._core
        manifest = core.log.manifests.get(shard)
        if manifest is None or manifest.forgotten:
            return
        seq = core.log.committer.applied_seq
        await core.log.checkpoint(
            Manifest(
                shard=shard,
                spec=manifest.spec,
                generation=manifest.generation,
                flushed_through=seq,
                next_row_id=manifest.next_row_id,
                since=core.read_ts(),
                forgotten=True,
            )
        )

    async def _hot_table(self, spec: ShardSpec, segments: tuple[tuple[Segment, int], ...], cut: int) -> Any:
        """Return what is visible at the cut among hot entries as one Arrow table, or None."""
        tables: list[Any] = []
        for segment, length in segments:
            ends = segment.ends
            versions, row_ids, begins = [], [], []
            for offset in range(length):
                if ends[offset] > cut:
                    versions.append(segment.versions[offset].values or ())
                    row_ids.append(segment.row_ids[offset])
                    begins.append(segment.begins[offset])
            if versions:
                tables.append(rows_to_table(spec, versions, row_ids, begins))
            await asyncio.sleep(0)
        return pa.concat_tables(tables).combine_chunks() if tables else None

    async def _write(self, spec: ShardSpec, table: Any) -> PartState:
        log = self._core.log
        ref: PartRef = await log.write_part(spec.shard, spec, table)
        return PartState(await log.open_part(ref), ref)

    async def _merged_table(self, spec: ShardSpec, merge: Iterable[PartState], watermark: int) -> Any:
        """Return the rows of parts that somebody at or above ``watermark`` may see, or None if there are none."""
        tables: list[Any] = []
        for part in merge:
            table = await part.file.read_arrow()
            hidden = await self._core.offload(partial(part.ended_before, watermark))
            tables.append(await self._core.offload(partial(_live_rows, table, hidden, spec)))
        whole = pa.concat_tables(tables)
        return whole.combine_chunks() if whole.num_rows else None

    async def _evict(self, generation: Generation, segments: tuple[tuple[Segment, int], ...]) -> None:
        for segment, _length in segments:
            generation.evict_segment(segment, self._core.holds.low_watermark())
            await asyncio.sleep(0)
        generation.finish_eviction()
        for segment in generation.log.sparse():
            if segment.number in generation.log.segments:
                generation.log.rewrite(segment, list(segment.live()))
                await asyncio.sleep(0)
        gc.freeze()

    # -- files -------------------------------------------------------------------------------------

    async def _discard(self) -> None:
        """Delete parts that left before the oldest hold was taken."""
        core = self._core
        if core.log.committer.failed is not None:
            return  # another server may need them (DurableLog.discard)
        oldest = core.holds.oldest_serial()
        waiting = core.doomed_parts
        for name, serial in list(waiting.items()):
            if serial >= oldest:
                continue
            try:
                await core.log.discard([name])
            except ValueError:
                continue  # a manifest or the log still names it: after its next checkpoint
            waiting.pop(name, None)


def _worth_merging(parts: tuple[PartState, ...]) -> bool:
    """Tell whether parts deserve a job of their own; a flush for another reason merges more readily."""
    small = sum(p.ref.rows < SMALL_PART_ROWS for p in parts)
    ended = any(p.ended >= ENDED_ROWS and p.ended > p.ref.rows * ENDED_FRACTION for p in parts)
    return small >= SMALL_PARTS or ended


def _choose_merge(parts: tuple[PartState, ...]) -> tuple[PartState, ...]:
    """Choose parts to write anew: those with many ended rows, and small ones once there are enough of them."""
    chosen = [p for p in parts if p.ended > p.ref.rows * ENDED_FRACTION]
    small = [p for p in parts if p.ref.rows < SMALL_PART_ROWS and p not in chosen]
    if len(small) >= SMALL_PARTS:
        chosen += small
    out: list[PartState] = []
    rows = 0
    for part in chosen:
        rows += part.ref.rows - part.ended
        if out and rows > MERGE_ROWS:
            break
        out.append(part)
    return tuple(out)


def _live_rows(table: Any, hidden: Any, spec: ShardSpec) -> Any:
    """Drop rows at the positions ``hidden`` and bring the table into the form of ``spec``. Runs in a thread."""
    if hidden is not None:
        flags = bytearray(b"\x01") * table.num_rows
        for position in hidden.to_pylist():
            flags[position] = 0
        mask = pa.Array.from_buffers(pa.uint8(), table.num_rows, [None, pa.py_buffer(flags)])
        table = table.filter(mask.cast(pa.bool_()))
    schema = table_schema(spec.columns)
    have = set(table.column_names)
    columns: dict[str, Any] = {}
    for column in spec.columns:
        if column.dropped:
            continue
        name = f"c{column.attnum}"
        if name in have:
            columns[name] = table.column(name)
            if f"{name}_dims" in have:
                columns[f"{name}_dims"] = table.column(f"{name}_dims")
        else:
            arrays = column_arrays([column.missing_value] * table.num_rows, column)
            columns[name] = arrays[0]
            if len(arrays) > 1:
                columns[f"{name}_dims"] = arrays[1]
    columns["s_row_id"] = table.column("s_row_id")
    columns["s_begin"] = table.column("s_begin")
    return pa.table([columns[name] for name in schema.names], schema=schema)
