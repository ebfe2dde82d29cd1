"""Merges of large parts by workers elsewhere, beside upkeep: flushes of all tables go on meanwhile.

    look       parts worth merging, of many bytes, while workers are there                       (choose_elsewhere)
    prepare    watermark; rows that ended by then ─► MergeJob ─► one part, durable, nobody's     (takes what it takes)
    job        an ordinary job of upkeep (``txn.upkeep.flush_job``) takes it for a merge of its own: ends since the watermark are
               carried over, the swap goes through the queue

Until the job, nothing has changed: the parts are in no other merge meanwhile (``Coordinator.merging``), and a
hold keeps their files. What has been written is thrown away where it does not fit any more: the table was
emptied or dropped, its columns or indexes have changed, a durable hold needs the parts. A worker that fails
leaves the parts to the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from txn.base.types import ShardSpec, Timestamp
from txn.base.writers import writers_of
from txn.mvcc.compaction import choose, worth_a_job
from txn.mvcc.generation import Generation
from txn.mvcc.parts import PartState
from txn.persist.parts.merge_job import MergeJob, MergePiece, Merger
from txn.transaction.coordinator import Coordinator
from txn.upkeep.flush_job import ROW_BYTES, gone_before, mergeable, sizes, stored_spec, waits_for_hold


@dataclass(slots=True)
class Prepared:
    """Parts that have been merged into ``part`` (None: no row is left of them), as of ``watermark``.

    ``stored``: the schema that it was written under. ``taken``: the parts have been replaced.
    """

    generation: Generation
    stored: ShardSpec
    parts: tuple[PartState, ...]
    part: PartState | None
    watermark: Timestamp
    before: int
    lost: int
    taken: bool = False

    def fits(self, core: Coordinator) -> bool:
        """Tell whether the part may still replace the others."""
        history = core.shards.get(self.generation.shard)
        if history is None or history.latest.generation is not self.generation or history.latest.spec is None:
            return False
        if waits_for_hold(core, history):
            return False
        parts = self.generation.parts
        return (
            all(part in parts and part.file.damage is None for part in self.parts)
            and stored_spec(history, history.latest.spec) == self.stored
        )


def choose_elsewhere(core: Coordinator, merger: Merger, generation: Generation) -> list[PartState]:
    """Return the parts of a generation that are to be merged elsewhere now, or none."""
    if generation.pinned or generation.damage is not None:
        return []
    if not merger.wants(sum(part.ref.bytes for part in generation.parts)):
        return []
    parts = mergeable(core, generation)
    widest = max((part.file.row_bytes for part in parts), default=ROW_BYTES)
    most = max(1, merger.max_bytes // max(widest, ROW_BYTES))
    found = sizes(parts, core.domain_of(generation.shard).low_watermark())
    if not worth_a_job(found, most):
        return []
    chosen = [parts[i] for i in choose(found, most)]
    return chosen if merger.wants(sum(part.ref.bytes for part in chosen)) else []


async def prepare(
    core: Coordinator, merger: Merger, generation: Generation, parts: Sequence[PartState]
) -> Prepared | None:
    """Have parts merged; None where that has not come about. Cancelled, it leaves nothing.

    Raises what storage answers.
    """
    shard = generation.shard
    history = core.shards[shard]
    spec = history.latest.spec
    if history.latest.generation is not generation or spec is None:
        return None
    stored = stored_spec(history, spec)
    domain = core.domain_of(shard)
    watermark = domain.low_watermark()
    hold = domain.holds.acquire()
    jobs = core.log.jobs
    try:
        pieces = []
        for part in parts:
            gone = gone_before(part, watermark)
            pieces.append(MergePiece(part.ref, await core.offload(partial(part.ended_before, gone))))
        job = await jobs.start_parts(shard, stored, 0, part_rows=0, part_bytes=0)
        kept: list[str] = []
        try:
            loaded = writers_of(generation.loaded_writers(parts))
            merged = await merger.write(MergeJob(job, tuple(pieces), loaded))
            if merged is not None and merged.ref is not None:
                kept.append(merged.ref.name)
        finally:
            await jobs.end_parts(job, kept)
        if merged is None:
            return None
        made: PartState | None = None
        if merged.ref is not None:
            ref = core.log.here(merged.ref)
            try:
                made = PartState(await core.log.open_part(ref), ref)
            except BaseException:
                core.discard_later(ref.name)
                raise
        return Prepared(generation, stored, tuple(parts), made, watermark, merged.before, merged.lost)
    finally:
        domain.holds.release(hold)
