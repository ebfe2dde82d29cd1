"""A job of upkeep that fails at any of its steps leaves a table that reads, writes, changes its schema and is flushed as before."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.store import (
    SHARD,
    make_table,
    now,
    open_memory_store,
    snapshot_rows,
    spec,
    tiny_limits,
)
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.upkeep import flush

FANOUT = 3  # tiny_limits
STEPS = 18
"""A job over as few rows as here waits so often."""


class Broken(Exception):
    """What the job meets."""


class Breaking:
    """Awaits a job, which meets an error at its ``step``-th wait; waits for the commit of its own swap do not count, since only the log ends these."""

    def __init__(self, job: Coroutine[Any, Any, None], store: ShardStore, step: int) -> None:
        self.job, self.store, self.left = job, store, step

    def __await__(self) -> Generator[Any, None, None]:
        waits = self.job.__await__()
        try:
            while True:
                waited = next(waits)
                if not self.store.core.swap_jobs:
                    self.left -= 1
                    if self.left == 0:
                        waited = waits.throw(Broken())
                yield waited
        except StopIteration:
            return


async def changed(store: ShardStore, key: int) -> None:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    await now(txn.insert(SHARD, [(key + i, 0, "x") for i in range(5)]))
    found = [r async for chunk in txn.scan(SHARD) for r in chunk]
    await now(txn.update(SHARD, [(r.row_id, (r.values[0], r.values[1] + 1, "y")) for r in found[::3]]))
    await now(txn.delete(SHARD, [r.row_id for r in found[1:-16:3]]))
    await now(txn.commit())


async def rows_of(store: ShardStore, *, everywhere: bool = True) -> list[tuple[Any, ...]]:
    """Return the rows, which scans and, ``everywhere``, engines see alike."""
    reader = store.begin(read_only=True)
    scanned = [tuple(r.values[:3]) async for chunk in reader.scan(SHARD) for r in chunk]
    if everywhere:
        held = [row[2][:3] for row in snapshot_rows(await now(reader.snapshot(SHARD)))]
        assert sorted(scanned) == sorted(held)
    reader.rollback()
    return sorted(scanned)


@pytest.mark.parametrize("history", [False, True])
def test_a_job_may_fail_at_any_step(history: bool) -> None:
    real = flush.job

    async def broken_at(store: ShardStore, step: int) -> bool:
        reader = store.begin(read_only=True)  # what is superseded stays readable
        for earlier in range(FANOUT):  # so that the job has something to merge
            await changed(store, 1000 * step + 100 * earlier)
            await store.flush(SHARD, history=history)
        await changed(store, 1000 * step + 400)
        before = await rows_of(store, everywhere=False)
        met = []

        async def job(*args: Any, **how: Any) -> None:
            try:
                await Breaking(real(*args, **how), store, 0 if met else step)
            except Broken:
                met.append(step)
                raise

        with mock.patch.object(flush, "job", job):
            try:
                await store.flush(SHARD, history=history)
            except Broken:
                assert await rows_of(store) == before
        await changed(store, 1000 * step + 500)
        after = await rows_of(store, everywhere=False)
        async with asyncio.timeout(60):
            alter = store.begin()
            await now(alter.alter_shard(spec(version=1 + step)))
            await now(alter.commit())
        assert await rows_of(store) == after
        reader.rollback()
        return bool(met)

    async def body() -> None:
        step = 1
        disk = MemoryDisk()
        with tiny_limits(), mock.patch.object(flush, "TICK_S", 0.01):
            store = await open_memory_store(disk)
            await make_table(store, [(k, 0, "x") for k in range(20)])
            while await broken_at(store, step) and step < STEPS:
                step += 1
            async with asyncio.timeout(60):  # upkeep may be at it, and merges what the broken jobs left
                while True:
                    await store.flush()
                    generation = store.core.shards[SHARD].latest.generation
                    assert generation is not None
                    at_rest = not generation.flushing and not generation.log.current
                    if at_rest and (store.core.written.merges or history):
                        break
                    await asyncio.sleep(0.01)
            store.core.vacuum()
            store.validate()
            rows = await rows_of(store)
            await store.close()
            again = await open_memory_store(disk)
            assert await rows_of(again) == rows
            await again.close()
        assert step > 10

    run(body)
