"""One job of upkeep on one generation: what is hot becomes a part, parts are merged, the manifest is stored.

    tick     cut = read_ts; capture segments and parts; applied_seq; watermark          (plan)
    threads  convert, sort and write  - what is current at the cut       -> a part
                                      - what is superseded, on demand    -> a history part
                                      - the live rows of parts to merge  -> a part; all synced
    slices   ends that arrived meanwhile are carried over to the new parts (Carry)
    queue    PartSwap through the committer: in one tick the last ends, and the new parts take over
    slices   those rows leave the hot store
    then     checkpoint the manifest (exact state at the cut), trim the log

A history part is in no log entry, and in the manifest only where a durable hold needs what is older than the
manifest (``HoldRegistry.kept_from``): else nothing older is readable after a restart. A manifest has one
schema and one generation, so while such a hold has yet to pass a TRUNCATE, a DROP or a change of columns, it
is not replaced, and the log kept.
"""

from __future__ import annotations

import asyncio
import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from txn.base.records import PartSwap
from txn.base.slices import in_turns
from txn.base.types import PartRef, ShardId, ShardSpec, Timestamp
from txn.base.writers import Writers, writers_of
from txn.log.history import ShardHistory
from txn.mvcc.compaction import Size, choose, worth_a_job
from txn.mvcc.eviction import evict_all, evict_segment, let_go
from txn.mvcc.generation import Generation
from txn.mvcc.hotlog import Segment
from txn.mvcc.parts import PartState
from txn.persist.parts.manifest import Ends, Manifest, ManifestPart
from txn.persist.parts.merge_job import live_rows
from txn.transaction.coordinator import Coordinator, SwapJob, swap_key
from txn.values.arrow import ArrowTable
from txn.values.columns import joined, rows_to_table_slowly

if TYPE_CHECKING:
    from txn.upkeep.merging import Prepared

SLICE_ROWS: Final = 500  # rows or ends looked at between two turns of the loop: about two milliseconds
ROW_BYTES: Final = 64  # the least that a row is taken to need, as Arrow

Captured = Sequence[tuple[Segment, int]]


async def run(core: Coordinator, shard: ShardId, *, history: bool, prepared: Prepared | None = None) -> None:
    """Flush a shard, merge its parts, store its manifest. Raises OutOfSpace and whatever else storage answers.

    ``history``: superseded versions leave memory, too. ``prepared``: the merge, done elsewhere; it is
    ``taken`` if it still fits, else nothing happens. A shard that was dropped gets its tombstone.
    """
    await core.readable()  # the cut below must not go through a commit that is half applied
    found = core.shards.get(shard)
    if found is None:
        return
    core.forget_history_of(shard)  # all others: a round of many jobs would take the square of their number
    entry = found.latest
    if entry.generation is None or entry.spec is None:
        await _checkpoint_dropped(core, shard)
        return
    generation, spec = entry.generation, entry.spec
    if generation.pinned:
        return  # a schema change is under way
    if generation.damage is not None:
        return  # nothing of it may be replaced
    if generation.resident:  # a job has ended in the middle of that
        generation.upkeep = True
        try:
            await _evict(core, generation)
        finally:
            generation.upkeep = False
        await run(core, shard, history=history, prepared=prepared)
        return
    if waits_for_hold(core, found) and not history and generation.log.current < core.options.hot_rows:
        return  # nothing could be made durable
    if prepared is not None and not prepared.fits(core):
        return
    generation.upkeep = True
    try:
        await Job(core, generation, spec, stored_spec(found, spec)).run(history=history, prepared=prepared)
    finally:
        generation.upkeep = False


def waits_for_hold(core: Coordinator, history: ShardHistory) -> bool:
    """Tell whether a durable hold needs a schema or generation of before the latest, which a manifest would
    leave out.
    """
    domain, latest = history.domain, history.latest
    kept = domain.kept_from(domain.read_ts())
    for entry, following in pairwise(history.entries):
        if following.begin > kept and (
            entry.generation is not latest.generation
            or entry.spec is None
            or latest.spec is None
            or entry.spec.columns != latest.spec.columns
        ):
            return True
    return False


def stored_spec(history: ShardHistory, spec: ShardSpec) -> ShardSpec:
    """Return the schema to write parts under: with the columns and indexes that were dropped but that
    somebody may still use.
    """
    spec = _with_columns(history, spec)
    indexes = tuple(history.indexes_in_use().values())
    return spec if len(indexes) == len(spec.indexes) else dataclasses.replace(spec, indexes=indexes)


def _with_columns(history: ShardHistory, spec: ShardSpec) -> ShardSpec:
    before = {
        c.attnum: c
        for entry in history.entries[:-1]
        if entry.spec is not None and entry.generation is history.latest.generation
        for c in entry.spec.columns
        if not c.dropped
    }
    if not any(c.dropped and c.attnum in before for c in spec.columns):
        return spec
    columns = tuple(before.get(c.attnum, c) if c.dropped else c for c in spec.columns)
    return dataclasses.replace(spec, columns=columns)


async def _checkpoint_dropped(core: Coordinator, shard: ShardId) -> None:
    manifest = core.log.manifests.get(shard)
    if manifest is None or manifest.forgotten or waits_for_hold(core, core.shards[shard]):
        return
    seq = core.log.committer.applied_seq
    domain = core.shards[shard].domain
    await core.log.checkpoint(
        Manifest(
            shard=shard,
            spec=manifest.spec,
            generation=manifest.generation,
            flushed_through=seq,
            next_row_id=manifest.next_row_id,
            since=domain.kept_from(domain.read_ts()),
            forgotten=True,
            registered=manifest.registered,
        )
    )


def sizes(parts: Iterable[PartState], watermark: int) -> list[Size]:
    """Return parts as the merge policy sees them."""
    return [Size(p.ref.rows, p.count_ended(watermark)) for p in parts]


def mergeable(core: Coordinator, generation: Generation) -> list[PartState]:
    """Return the parts that may be merged: damaged ones, and those that are being merged elsewhere, stay
    where they are.
    """
    return [p for p in generation.parts if p.file.damage is None and p.ref.name not in core.merging]


def gone_before(part: PartState, watermark: int) -> int:
    """Return by when a row of a part has to have ended to be left out of a merge.

    Rows that their own transaction replaced end where they begin; they never were visible.
    """
    return max(watermark, part.ref.min_begin) if part.ref.min_begin == part.ref.max_begin else watermark


def _left_elsewhere(core: Coordinator, parts: Sequence[PartState]) -> bool:
    """Tell whether parts that the server might merge are for others to merge."""
    return core.merger is not None and core.merger.wants(sum(part.ref.bytes for part in parts))


def _chosen(core: Coordinator, parts: Sequence[PartState], found: Sequence[Size]) -> list[PartState]:
    """Return which parts, of these sizes, the server merges."""
    chosen = [parts[i] for i in choose(found, max_rows(core, parts))]
    return [] if _left_elsewhere(core, chosen) else chosen


def max_rows(core: Coordinator, parts: Sequence[PartState]) -> int:
    """Return how many rows one merge may write, by what they need in memory."""
    widest = max((p.file.row_bytes for p in parts), default=ROW_BYTES)
    return max(1, core.options.part_bytes // max(widest, ROW_BYTES))


def wants_merge(core: Coordinator, generation: Generation) -> bool:
    """Tell whether a generation's parts deserve a job of their own, or a history part has outlived its readers."""
    if not generation.parts and not generation.history:
        return False
    watermark = core.domain_of(generation.shard).low_watermark()
    parts = mergeable(core, generation)
    found = sizes(parts, watermark)
    if worth_a_job(found, max_rows(core, parts)) and _chosen(core, parts, found):
        return True
    return any(p.last_end <= watermark for p in generation.history)


async def _evict(core: Coordinator, generation: Generation) -> None:
    """Have what is in parts leave memory. Where that ends in the middle, the next job goes on with it: nobody
    reads it there meanwhile.
    """
    everything, cut = generation.resident_history, generation.resident
    for _ in _eviction(core, generation):
        await asyncio.sleep(0)
    segments = list(generation.flushed)
    generation.finish_eviction()
    core.take_apart(let_go(segments))
    for segment in generation.log.sparse():
        if segment.number in generation.log.segments:
            generation.log.rewrite(segment, list(segment.live()))
            await asyncio.sleep(0)
    if everything:
        await core.purge(generation, cut)


def _eviction(core: Coordinator, generation: Generation) -> Iterator[None]:
    if generation.resident_history:
        yield from evict_all(generation, generation.flushed, SLICE_ROWS)
        return
    domain = core.domain_of(generation.shard)
    for segment, _length in generation.flushed:
        if segment.number in generation.log.segments:
            yield from evict_segment(generation, segment, domain.low_watermark())
        yield


class Carry:
    """Takes the ends of parts that leave over to the part that replaces them, in the order of their timestamps.

    The bulk of them in slices, before the new part is anybody's; the last few in the tick of the swap.
    """

    def __init__(self, leaving: Sequence[PartState], merged: PartState, watermark: int) -> None:
        """``watermark``: rows that ended by then are not in ``merged``."""
        self._leaving = leaving
        self._merged = merged
        self._done = [part.count_ended(watermark) for part in leaving]

    @property
    def waiting(self) -> int:
        """How many ends have not been carried over."""
        return sum(p.ended - done for p, done in zip(self._leaving, self._done, strict=True))

    def steps(self) -> Iterator[None]:
        """Carry over what is there now; a slice between two yields."""
        streams = []
        for i, part in enumerate(self._leaving):
            stop = part.ended
            streams.append(self._stream(part, self._done[i], stop))
            self._done[i] = stop
        merged = self._merged
        for count, (ts, row_id, begin) in enumerate(heapq.merge(*streams), 1):
            for position in merged.file.positions(row_id):
                if merged.begin(position) == begin:
                    merged.end(position, ts)
            if count % SLICE_ROWS == 0:
                yield

    def _stream(self, part: PartState, start: int, stop: int) -> Iterator[tuple[int, Any, int]]:
        for position, ts in part.ends_between(start, stop):
            begin = part.begin(position)
            if ts > begin:  # else it is not in ``merged``, and what replaced it has its row id and its begin
                yield ts, part.file.row_id(position), begin

    def finish(self) -> None:
        """Carry over the rest (in the tick of the swap)."""
        for _ in self.steps():
            pass


class Job:
    """See the module. Made and run in one turn of the loop up to the first ``await``: that is the cut."""

    def __init__(self, core: Coordinator, generation: Generation, spec: ShardSpec, stored: ShardSpec) -> None:
        """``stored``: the schema of parts, which may have more columns than ``spec``."""
        self._core = core
        self._generation = generation
        self._spec = spec
        self._stored = stored
        self._seq = core.log.committer.applied_seq
        self._domain = core.domain_of(generation.shard)
        self._cut = self._domain.read_ts()
        self._next_row_id = generation.next_row_id
        self._at_cut = generation.parts
        self._watermark = self._domain.low_watermark()
        self._since = self._domain.kept_from(self._cut)
        self._waits = waits_for_hold(core, core.shards[generation.shard])
        self._writers: dict[int, int] = {}
        """Of told transactions whose rows have been met among hot ones."""

    async def run(self, *, history: bool, prepared: Prepared | None) -> None:
        """Do the job; whatever fails leaves the generation as it was."""
        core, generation = self._core, self._generation
        merge: Sequence[PartState] = ()
        # What the manifest still names must not be replaced as long as the manifest is not.
        if self._waits:
            prepared = None
        elif prepared is not None:
            merge = prepared.parts
        else:
            candidates = mergeable(core, generation)
            merge = _chosen(core, candidates, sizes(candidates, self._watermark))
        outlived = [p for p in generation.history if p.last_end <= self._watermark and not self._waits]
        manifest = core.log.manifests.get(generation.shard)
        history = (history or self._since < self._cut) and generation.log.superseded > 0
        if (
            manifest is not None
            and manifest.flushed_through >= self._seq
            and not (merge or outlived or history)
        ):
            return
        made: list[PartState] = []
        try:
            generation.begin_flush(self._cut)
            current = await self._current(generation.flushed)
            hot = await self._write(current, made, await self._met())
            if hot is not None:
                core.written.flushed += hot.ref.rows
            past = await self._write_history(generation.flushed, made) if history else None
            if prepared is None:
                merged, watermark = await self._merge(merge, made), self._watermark
            else:
                merged, watermark = prepared.part, prepared.watermark
            await self._swap(merge, outlived, hot, merged, past, watermark)
        except BaseException:
            if not generation.resident:  # else they have been swapped in
                generation.abandon_flush()
                for part in made:
                    core.discard_later(part.ref.name)
            raise
        if prepared is not None:
            prepared.taken = True
            self._count(prepared)
        if hot is not None or past is not None:
            await _evict(core, generation)
        else:
            generation.abandon_flush()
        for _ in generation.forget_writers():
            await asyncio.sleep(0)
        if not self._waits:
            await self._checkpoint(merge, [p for p in (hot, merged) if p is not None])

    # -- writing -----------------------------------------------------------------------------------

    async def _current(self, segments: Captured) -> Any:
        """Return what is visible at the cut among hot entries as one Arrow table, or None."""
        cut = self._cut
        tables: list[Any] = []
        for segment, length in segments:
            ends = segment.ends
            await self._add(tables, segment, [i for i in range(length) if ends[i] > cut])
            await asyncio.sleep(0)
        return joined(tables) if tables else None

    async def _add(self, tables: list[Any], segment: Segment, offsets: Sequence[int]) -> None:
        """Add the Arrow table of a segment's versions, if there are any."""
        if offsets:
            versions, row_ids, begins = segment.versions, segment.row_ids, segment.begins
            table = rows_to_table_slowly(
                self._stored,
                [versions[i].values or () for i in offsets],
                [row_ids[i] for i in offsets],
                [begins[i] for i in offsets],
            )
            tables.append(await in_turns(table))
            writers = self._generation.writers
            if writers:
                self._writers.update({b: writers[b] for i in offsets if (b := begins[i]) in writers})

    async def _met(self) -> Sequence[Writers]:
        """Return the told transactions whose rows have been met."""
        return [await self._core.offload(lambda: writers_of(self._writers))] if self._writers else ()

    async def _write(
        self, table: ArrowTable, made: list[PartState], writers: Sequence[Writers]
    ) -> PartState | None:
        """Write a part, note it in ``made`` and return it open; None for no rows.

        ``writers``: where the told transactions are that made rows of it.
        """
        if table is None or not table.num_rows:
            return None
        core = self._core
        ref: PartRef = await core.log.write_part(self._spec.shard, self._stored, table, writers=writers)
        core.written.bytes += ref.bytes
        part = PartState(await core.log.open_part(ref), ref)
        made.append(part)
        return part

    async def _write_history(self, segments: Captured, made: list[PartState]) -> list[PartState]:
        """Write what is superseded at the cut and still readable by somebody; returns its parts, complete with ends."""
        cut, watermark = self._cut, self._watermark
        tables: list[Any] = []
        ends_of: dict[tuple[int, int], int] = {}
        for segment, length in segments:
            ends = segment.ends
            number = segment.number
            offsets = [
                i for i in range(length)
                if watermark < ends[i] <= cut and segment.versions[i].segment == number
            ]  # fmt: skip
            await self._add(tables, segment, offsets)
            row_ids, begins = segment.row_ids, segment.begins
            ends_of.update({(row_ids[i], begins[i]): ends[i] for i in offsets})
            await asyncio.sleep(0)
        part = await self._write(joined(tables), made, await self._met()) if tables else None
        if part is None:
            return []
        self._core.written.history += part.ref.rows
        file = part.file
        ended: list[tuple[int, int]] = []
        for position in range(part.ref.rows):
            ended.append((ends_of[file.row_id(position), part.begin(position)], position))
            if position % SLICE_ROWS == 0:
                await asyncio.sleep(0)
        await self._core.offload(ended.sort)
        for count, (ts, position) in enumerate(ended, 1):
            part.end(position, ts)
            if count % SLICE_ROWS == 0:
                await asyncio.sleep(0)
        return [part]

    async def _merge(self, merge: Sequence[PartState], made: list[PartState]) -> PartState | None:
        """Write the rows of parts that somebody at or above the watermark may see as one part."""
        if not merge:
            return None
        core = self._core
        tables: list[Any] = []
        before = 0
        for part in merge:
            table = await part.file.read_arrow()
            before += table.num_rows
            gone = gone_before(part, self._watermark)
            hidden = await core.offload(partial(part.ended_before, gone))
            tables.append(await core.offload(partial(live_rows, table, hidden, self._stored)))
        whole = await core.offload(lambda: joined(tables))
        tables.clear()
        core.written.merges += 1
        core.written.merged += whole.num_rows
        core.written.lost += before - whole.num_rows
        writers = [part.writers for part in merge if part.writers is not None]
        if loaded := self._generation.loaded_writers(merge):
            writers.append(writers_of(loaded))
        return await self._write(whole, made, writers)

    def _count(self, prepared: Prepared) -> None:
        written = self._core.written
        written.merges += 1
        written.merged += prepared.before - prepared.lost
        written.lost += prepared.lost
        written.bytes += 0 if prepared.part is None else prepared.part.ref.bytes

    # -- changing over -----------------------------------------------------------------------------

    async def _swap(
        self,
        merge: Sequence[PartState],
        outlived: Sequence[PartState],
        hot: PartState | None,
        merged: PartState | None,
        history: list[PartState] | None,
        watermark: int,
    ) -> None:
        core, generation = self._core, self._generation
        added = [p for p in (hot, merged) if p is not None]
        leaving = [*merge, *outlived]
        if not added and not leaving and history is None:
            return
        job = SwapJob(generation, added, hot=hot, history=history)
        carry = None if merged is None else Carry(merge, merged, watermark)
        while True:
            late = 0
            if carry is not None:
                late = carry.waiting
                for _ in carry.steps():
                    await asyncio.sleep(0)
            if hot is not None:
                late += len(generation.flush_ended) - job.carried
                job.carried = generation.carry_flush_ends(hot, job.carried, SLICE_ROWS)
                if job.carried < len(generation.flush_ended):
                    await asyncio.sleep(0)
                    continue
            if late <= SLICE_ROWS:
                break
            await asyncio.sleep(0)
        if carry is not None:
            job.finish = carry.finish
        swap = PartSwap(
            shard=generation.shard,
            removed=tuple(p.ref.name for p in leaving),
            added=tuple(p.ref for p in added),
        )
        core.swap_jobs[swap_key(swap)] = job
        try:
            await core.log.committer.submit_swap(swap)
        except BaseException:
            core.swap_jobs.pop(swap_key(swap), None)
            raise
        for part in leaving:
            core.discard_later(part.ref.name)

    async def _checkpoint(self, merge: Sequence[PartState], added: Sequence[PartState]) -> None:
        core, generation = self._core, self._generation
        leaving = {p.ref.name for p in merge}
        parts = [
            await self._named(part)
            for part in [*(p for p in self._at_cut if p.ref.name not in leaving), *added]
        ]
        past = [await self._named(part) for part in generation.history if part.last_end > self._since]
        named = {part.ref.name for part in (*parts, *past)}
        loaded = generation.loaded_writers(
            p for p in (*generation.parts, *generation.history) if p.ref.name in named
        )
        await core.log.checkpoint(
            Manifest(
                shard=generation.shard,
                spec=self._spec,
                generation=generation.number,
                flushed_through=self._seq,
                next_row_id=self._next_row_id,
                since=self._since,
                parts=tuple(parts),
                history=tuple(past),
                registered=Timestamp(core.shards[generation.shard].registered),
                writers=loaded,
            )
        )

    async def _named(self, part: PartState) -> ManifestPart:
        """Return a part as a manifest names it. Ends later than the cut may be in it, too: replay meets them
        again (C27).
        """
        core = self._core
        ends = await core.offload(partial(Ends.of_arrays, *part.capture_ends(self._domain.read_ts())))
        return ManifestPart(ref=part.ref, ends=ends)
