"""A crash at any step of storage: what was acknowledged is there, the rest is there completely or not at all."""

from __future__ import annotations

import asyncio
import logging
import random
from unittest import mock

import pytest

from tests.support.crashes import State, content, three_lives
from tests.support.durable import run
from tests.support.logs import log_level
from tests.support.proofs import sampled
from tests.support.store import (
    BY_K,
    SHARD,
    make_table,
    now,
    open_memory_store,
    tiny_limits,
)
from txn.base.errors import TxnError
from txn.persist.location import Indeterminate
from txn.persist.memory import MemoryDisk
from txn.persist.parts.part import part_of_blob
from txn.store import ShardStore


async def work(
    store: ShardStore, rng: random.Random, acknowledged: list[State], pending: list[State]
) -> None:
    """One client changes several rows per transaction; now and then it flushes."""
    for number in range(40):
        state = dict(acknowledged[-1])
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        for k in rng.sample(range(12), 3):
            found = await now(txn.lookup(SHARD, BY_K, [(k,)], for_update=True))
            row = (k, number, f"{number}.{k}")
            if not found:
                await now(txn.insert(SHARD, [row]))
                state[k] = row
            elif rng.random() < 0.3:
                await now(txn.delete(SHARD, [found[0].row_id]))
                del state[k]
            else:
                await now(txn.update(SHARD, [(found[0].row_id, row)]))
                state[k] = row
            txn.next_statement()
        pending[:] = [state]
        await now(txn.commit())
        acknowledged.append(state)
        pending.clear()
        if rng.random() < 0.4:
            await store.flush()


@pytest.mark.parametrize("seed", sampled(15, range(40)))
def test_acknowledged_commits_survive_and_others_are_atomic(seed: int) -> None:
    with tiny_limits(), mock.patch("txn.wal.txns._RETRY_S", 0.0001):
        run(lambda: three_lives(random.Random(seed), work, 120))


def test_no_space_fails_the_commit_and_the_server_goes_on() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(1, 1, "a")])
        disk.capacity = disk.used()
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.insert(SHARD, [(2, 2, "b" * 1000)]))
        with pytest.raises(TxnError):
            await now(txn.commit())
        assert len(store.core.locks) == len(store.core.holds) == 0
        assert await content(store) == [(1, 1, "a")]
        with pytest.raises(TxnError):
            await store.flush()
        store.validate()
        assert await content(store) == [(1, 1, "a")]
        disk.capacity = None
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.insert(SHARD, [(2, 2, "b")]))
        await now(txn.commit())
        await store.flush()
        assert await content(store) == [(1, 1, "a"), (2, 2, "b")]
        await store.close()

    run(go)


def test_a_commit_whose_waiter_is_cancelled_is_decided_all_the_same() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store)
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.insert(SHARD, [(1, 1, "a")]))

        async def commit() -> None:
            await now(txn.commit())

        task = asyncio.ensure_future(commit())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0.05)
        assert await content(store) == [(1, 1, "a")]
        assert len(store.core.locks) == len(store.core.holds) == 0
        await store.close()

    run(go)


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_crash_at_any_step_of_upkeep_leaves_no_file_that_nothing_names(every: int) -> None:
    """Flush, history part, merge, deletion, five times: killed at each seventh step of storage (``make proofs``: each), then started again."""

    async def upkeep(disk: MemoryDisk) -> None:
        store = await open_memory_store(disk)
        await make_table(store, [(k, k, "x") for k in range(30)])
        for n in range(5):
            hold = store.hold()
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            rows = await now(txn.lookup(SHARD, BY_K, [(n,), (n + 5,)], for_update=True))
            await now(txn.update(SHARD, [(rows[0].row_id, (n, 100 + n, "y"))]))
            await now(txn.delete(SHARD, [rows[1].row_id]))
            await now(txn.insert(SHARD, [(100 + n, 0, "z")]))
            await now(txn.commit())
            await store.flush(history=True)
            store.release(hold)
        store.core.vacuum()
        await store.flush()
        await store.close()

    async def killed(step: int | None) -> int:
        disk = MemoryDisk()
        disk.crash_at_step = step
        try:
            await upkeep(disk)
        except (TxnError, Indeterminate):
            pass
        steps = disk.steps
        disk.crash_at_step = None
        disk.crash()
        store = await open_memory_store(disk)
        log = store.core.log
        sweeper = log._sweeper
        assert sweeper is not None
        await sweeper
        await store.idle()
        named = {p.ref.name for m in log.manifests.values() for p in m.parts} | set(log._loaded)
        parts = {part_of_blob(n) for n in disk.blobs if not n.startswith("txn/")}
        assert parts <= named, f"left behind after a crash at step {step}"
        assert named <= parts, f"missing after a crash at step {step}"
        if SHARD in store.core.shards:
            found = await content(store)
            assert len(found) == len({r[0] for r in found})
            store.validate()
        await store.close()
        return steps

    async def go() -> None:
        total = await killed(None)
        assert total > 150
        for step in range(1, total + 1, every):
            await killed(step)

    with (
        tiny_limits(),
        mock.patch("txn.wal.txns._RETRY_S", 0.0001),
        mock.patch("txn.upkeep.flush.RETRY_S", 0.001),
        log_level("txn", logging.CRITICAL),
    ):
        run(go)
