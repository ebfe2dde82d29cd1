"""A leader stopped at any step of storage, and resumed once its successor has flushed, merged and swept.

Neither may lose a file that the other's durable state names: whatever the old leader still does, a third start finds
exactly what the successor had.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from tests.support.proofs import sampled
from tests.support.store import SHARD, StepClock, make_table, now, open_memory_store, tiny_limits
from tests.txn.test_crash import State, content, work
from tests.txn.test_schema import BY_T, batches, with_index
from txn.base.errors import Fenced, MissingFile
from txn.base.time import SequentialIdGen
from txn.log.durable import DurableLog
from txn.persist.location import inline
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk
from txn.persist.parts.part import sidecar_name
from txn.store import ShardStore, start_store


class Gate:
    """Lets so many steps of storage pass, then none until ``opened``."""

    def __init__(self, stop_at: int) -> None:
        self.left = stop_at
        self.stopped = asyncio.Event()
        self.opened = asyncio.Event()

    async def step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            self.stopped.set()
            await self.opened.wait()


class GatedConsensus(MemoryConsensus):
    gate: Gate

    async def _step(self) -> None:
        await self.gate.step()
        await super()._step()


class GatedBlob(MemoryBlob):
    gate: Gate

    async def _step(self) -> None:
        await self.gate.step()
        await super()._step()


async def open_gated(disk: MemoryDisk, gate: Gate) -> ShardStore:
    consensus, blob = GatedConsensus(disk), GatedBlob(disk)
    consensus.gate = blob.gate = Gate(10**9)
    log = await DurableLog.assemble(consensus, blob, StepClock(), SequentialIdGen("old"), offload=inline)
    store = await start_store(log, offload=inline)
    consensus.gate = blob.gate = gate
    return store


async def rule(
    store: ShardStore, rng: random.Random, acknowledged: list[State], pending: list[State]
) -> None:
    """Commit, flush and merge; in between load in bulk, and roll such a load back."""
    await work(store, rng, acknowledged, pending)
    for kept in (True, False, True):
        state = dict(acknowledged[-1])
        rows = [(k, 1, "bulk") for k in range(len(state) + 100, len(state) + 120)]
        txn = store.begin()
        await txn.bulk_insert(SHARD, batches(rows))
        if not kept:
            txn.rollback()
            await store.flush()
            continue
        state.update({row[0]: row for row in rows})
        for row in [k for k in state if k >= 100 and state[k] not in rows]:
            del state[row]
        pending[:] = [state]
        await now(txn.commit())
        acknowledged.append(state)
        pending.clear()
        break


async def finish(store: ShardStore) -> None:
    for _ in range(50):
        await asyncio.sleep(0)
    store.core.stop_vacuum()
    await store.close()


@pytest.mark.parametrize("seed", sampled(12, range(30)))
def test_old_and_new_leader_leave_each_others_files_alone(seed: int) -> None:
    rng = random.Random(seed)

    async def go() -> None:
        disk = MemoryDisk()
        first = await open_memory_store(disk)
        await make_table(first)
        acknowledged: list[State] = [{}]
        await work(first, rng, acknowledged, [])
        await finish(first)

        gate = Gate(rng.randrange(1, 700))
        old = await open_gated(disk, gate)
        pending: list[State] = []
        ruling = asyncio.ensure_future(rule(old, rng, acknowledged, pending))
        stopped = asyncio.ensure_future(gate.stopped.wait())
        await asyncio.wait([ruling, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        possible = [sorted(s.values()) for s in (acknowledged[-1], *pending)]

        new = await open_memory_store(disk)
        found = await content(new)
        assert found in possible
        states: list[State] = [{row[0]: row for row in found}]
        await work(new, random.Random(seed + 1000), states, [])
        await new.flush()
        sweeper: Any = new.core.log._sweeper
        await asyncio.wait([sweeper])
        expected = await content(new)

        gate.opened.set()
        try:
            await ruling
        except (Fenced, MissingFile):
            pass  # the successor has swept what was not named yet
        await finish(old)

        assert await content(new) == expected
        await finish(new)
        third = await open_memory_store(disk)
        third.validate()
        assert await content(third) == expected
        await finish(third)

    with tiny_limits():
        asyncio.run(go())


@pytest.mark.parametrize("before", [True, False], ids=["before it lists", "after it has listed"])
def test_a_sweep_that_was_stopped_leaves_the_index_of_a_successor(before: bool) -> None:
    """A sidecar's name has no epoch (simulation, seed 92616)."""

    class Stopped(MemoryBlob):
        def __init__(self, disk: MemoryDisk) -> None:
            super().__init__(disk)
            self.listing, self.goes_on = asyncio.Event(), asyncio.Event()

        async def list(self, prefix: str) -> list[str]:
            names = [] if before else await super().list(prefix)
            self.listing.set()
            await self.goes_on.wait()
            return await super().list(prefix) if before else names

    async def go() -> None:
        disk = MemoryDisk()
        first = await open_memory_store(disk)
        await make_table(first, [(k, k % 3, "x") for k in range(20)])
        await first.flush()
        await finish(first)
        blob = Stopped(disk)
        log = await DurableLog.assemble(
            MemoryConsensus(disk), blob, StepClock(), SequentialIdGen("old"), offload=inline
        )
        old = await start_store(log, offload=inline)
        await blob.listing.wait()

        new = await open_memory_store(disk)
        txn = new.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.alter_shard(with_index(False)))
        await now(txn.commit())
        sidecars = {name for name in disk.blobs if name.endswith(sidecar_name("", BY_T))}
        assert sidecars
        blob.goes_on.set()
        await finish(old)
        assert sidecars <= set(disk.blobs)
        await finish(new)

    with tiny_limits():
        asyncio.run(go())
