"""Restart: manifests, then what the log holds beyond them (C22, C27, U2).

    for each manifest: open its parts, note their ends         -- time grows with the number of parts
    for each log entry not covered: apply it                   -- time grows with the unflushed log

What was readable before a restart stays readable, as far back as retention goes and the newest manifest: a
manifest is the state at one moment, without what went before, unless a durable hold needed that. So a
subscription may go on where it stopped. With ``TxnOptions.hold_at_start`` everything that is there stays
readable until ``Store.started``.

A shard of which a file, a register or a log entry is damaged, or cannot be read, is not served: nothing more
is applied to it, upkeep leaves it alone, the log keeps what it has of it, and no file is swept. The others
are recovered as ever.

Of ``TxnOptions.salvaged_shards`` rows of damaged parts are served with None for what is lost
(``persist.salvage``), as long as it is known which rows these are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from txn.base.errors import DamagedFile
from txn.base.records import Batch
from txn.base.types import ShardId
from txn.log.history import ShardHistory
from txn.mvcc.generation import Generation
from txn.mvcc.parts import PartState
from txn.mvcc.vacuum import vacuum
from txn.persist.parts.manifest import Manifest, ManifestPart
from txn.persist.trouble import starting
from txn.transaction.coordinator import Coordinator
from txn.wal.read import DamagedLog

_log = logging.getLogger(__name__)
_OPEN_AT_ONCE: Final = 16
_YIELD_EVERY: Final = 500


async def recover(core: Coordinator) -> None:
    """Fill ``core`` from its log. Raises UnknownFormat; DamagedEntry, DamagedLog: nothing can be told from the log."""
    log = core.log
    limit = asyncio.Semaphore(_OPEN_AT_ONCE)
    salvaged: list[tuple[PartState, tuple[int, ...]]] = []

    async def open_all(manifest: Manifest, parts: tuple[ManifestPart, ...]) -> tuple[PartState, ...]:
        states: list[PartState] = []
        for part in parts:
            lost: tuple[int, ...] = ()
            async with limit:
                try:
                    if manifest.shard in core.options.salvaged_shards:
                        file, lost = await log.open_salvaged(part.ref, manifest.spec)
                    else:
                        with starting():
                            file = await log.open_part(part.ref)
                except DamagedFile as error:
                    log.damaged[manifest.shard] = error
                    continue
            ends = zip(part.ends.positions, part.ends.timestamps, strict=True)
            states.append(PartState(file, part.ref, ends))
            if lost:
                salvaged.append((states[-1], lost))
        return tuple(states)

    async def restore(manifest: Manifest) -> None:
        domain = core.domain_for(manifest.spec)
        generation = Generation(manifest.spec, manifest.generation, domain.garbage, manifest.next_row_id)
        generation.parts = await open_all(manifest, manifest.parts)
        generation.take_history(await open_all(manifest, manifest.history))
        generation.writers.update(manifest.writers)
        core.shards[manifest.shard] = ShardHistory(0, generation, manifest.spec, domain, manifest.registered)

    await asyncio.gather(*(restore(m) for m in log.manifests.values() if not m.forgotten))
    count = 0
    async for seq, batch in log.replay():
        for writes in batch.writes:
            for shard in writes.shards:
                for ref in shard.parts:
                    try:
                        with starting():
                            core.announce_part(await log.open_part(ref), ref)
                    except DamagedFile as error:
                        log.damaged[shard.shard] = error
        core.apply(_without(batch, log.damaged) if log.damaged else batch, seq)
        count += 1
        if count % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
    for state, lost in salvaged:
        if all(map(state.end_of, lost)) and state.file.spec.shard not in log.damaged:
            state.file.damage = None  # what is lost has been dropped: the rest may be merged away
    _restart_holds(core)
    for domain in core.timelines.domains():
        garbage, watermark = domain.garbage, domain.restarted()
        while garbage and garbage[0][0] <= watermark:
            for _ in range(_YIELD_EVERY):
                if not garbage or garbage[0][0] > watermark:
                    break
                _ts, generation, row_id, newer = garbage.popleft()
                vacuum(generation, row_id, newer, watermark)
            await asyncio.sleep(0)
    for history in core.shards.values():
        history.prune(history.domain.restarted())
    for number, damage in log.damaged.items():
        _log.error("shard %d cannot be served: %s", number, damage)
        entry = core.shards[number].latest if number in core.shards else None
        if entry is not None and entry.generation is not None:
            entry.generation.damage = damage


def _restart_holds(core: Coordinator) -> None:
    """Tell each timeline how far back it is readable: to its newest manifest, and to that of common shards.

    Raises DamagedLog when the log names a timeline of which there is no oracle, and shards that were not dropped.
    """
    for shard, history in core.shards.items():
        if history.domain in core.timelines.left and history.latest.generation is not None:
            name = history.domain.name
            raise DamagedLog(f"the register of timeline {name} is missing, to which shard {shard} belongs")
    whole = core.options.hold_at_start
    for timeline in core.timelines:
        since = timeline.holds.restart(core.newest_manifest(timeline), whole=whole)
        if whole:
            core.start_holds.append(timeline.holds.acquire(since, durable=True))


def _without(batch: Batch, damaged: Mapping[ShardId, DamagedFile]) -> Batch:
    """Return a batch without what it writes to damaged shards (the log keeps it)."""
    writes = tuple(
        msgspec.structs.replace(w, shards=tuple(s for s in w.shards if s.shard not in damaged))
        for w in batch.writes
    )
    return msgspec.structs.replace(batch, writes=writes)
