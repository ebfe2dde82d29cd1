"""Restart: manifests, then what the log holds beyond them (C22, C27, U2).

    for each manifest: open its parts, note their ends         -- time grows with the number of parts
    for each log entry not covered: apply it                   -- time grows with the unflushed log

What was readable before a restart stays readable, as far back as retention goes and the newest manifest: a
manifest is the state at one moment, without what went before. So a subscription may go on where it stopped.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Final

from txn.coordinator import Coordinator
from txn.mvcc.generation import Generation
from txn.mvcc.history import ShardHistory
from txn.mvcc.parts import PartState
from txn.persist.manifest import Manifest
from txn.types import Timestamp

_OPEN_AT_ONCE: Final = 16
_YIELD_EVERY: Final = 500


async def recover(core: Coordinator) -> None:
    """Fill ``core`` from its log. Raises UnknownFormat, FileNotFoundError (a part is missing)."""
    log = core.log
    limit = asyncio.Semaphore(_OPEN_AT_ONCE)

    async def restore(manifest: Manifest) -> None:
        states: list[PartState] = []
        for part in manifest.parts:
            async with limit:
                file = await log.open_part(part.ref)
            ends = zip(part.ends.positions, part.ends.timestamps, strict=True)
            states.append(PartState(file, part.ref, ends))
        generation = Generation(manifest.spec, manifest.generation, core.garbage, manifest.next_row_id)
        generation.parts = tuple(states)
        core.shards[manifest.shard] = ShardHistory(0, generation, manifest.spec, manifest.registered)

    await asyncio.gather(*(restore(m) for m in log.manifests.values() if not m.forgotten))
    count = 0
    async for seq, batch in log.replay():
        for writes in batch.writes:
            for shard in writes.shards:
                for ref in shard.parts:
                    core.announce_part(await log.open_part(ref), ref)
        core.apply(batch, seq)
        count += 1
        if count % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
    watermark = core.holds.restart(max((m.since for m in log.manifests.values()), default=Timestamp(0)))
    while core.garbage and core.garbage[0][0] <= watermark:
        for _ in range(_YIELD_EVERY):
            if not core.garbage or core.garbage[0][0] > watermark:
                break
            _ts, generation, row_id, newer = core.garbage.popleft()
            generation.vacuum(row_id, newer, watermark)
        await asyncio.sleep(0)
    for history in core.shards.values():
        history.prune(watermark)
    gc.freeze()
