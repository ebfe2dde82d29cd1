"""A flush, stopped after every single turn of the event loop: readers and writers never notice it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.proofs import sampled
from tests.support.store import (
    BY_K,
    BY_V,
    SHARD,
    make_table,
    now,
    open_memory_store,
    snapshot_rows,
    tiny_limits,
)
from txn.base.types import KeyRange
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore

State = dict[int, tuple[int, int, str]]


async def look(txn: Any, expected: State) -> None:
    """Compare every way of reading with what should be there."""
    rows = sorted(expected.values())
    assert [
        v for _r, _b, v in sorted(snapshot_rows(await now(txn.snapshot(SHARD))), key=lambda r: r[2])
    ] == rows
    assert [r.values for r in await now(txn.range(SHARD, BY_K, KeyRange()))] == rows
    assert sorted([r.values async for chunk in txn.scan(SHARD) for r in chunk]) == rows
    for k in (0, 5, 62, 63, 100):
        found = await now(txn.lookup(SHARD, BY_K, [(k,)]))
        assert [r.values for r in found] == [r for r in rows if r[0] == k]
    found = await now(txn.lookup(SHARD, BY_V, [(1,)]))
    assert sorted(r.values for r in found) == [r for r in rows if r[1] == 1]


async def change(store: ShardStore, state: State, k: int, row: tuple[int, int, str] | None) -> State:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    (found,) = await now(txn.lookup(SHARD, BY_K, [(k,)], for_update=True))
    if row is None:
        await now(txn.delete(SHARD, [found.row_id]))
    else:
        await now(txn.update(SHARD, [(found.row_id, row)]))
    await now(txn.commit())
    state = dict(state)
    del state[k]
    if row is not None:
        state[row[0]] = row
    return state


@pytest.mark.parametrize("every", sampled(1, [3, 1]))
@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_flush_is_invisible_at_every_turn(again: bool, history: bool, every: int) -> None:
    """Each third turn; ``make proofs``: each."""

    async def attempt(turns: int) -> bool:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        state: State = {k: (k, k % 3, f"first {k}") for k in range(64)}
        await make_table(store, list(state.values()))
        if again:
            await store.flush(history=history)
            state = await change(store, state, 7, (7, 1, "between"))
        oldest, oldest_state = store.begin(read_only=True), state
        state = await change(store, state, 5, (5, 1, "second"))
        state = await change(store, state, 11, None)
        old, old_state = store.begin(read_only=True), state
        flushing = asyncio.ensure_future(store.flush(history=history))
        for _ in range(turns):
            await asyncio.sleep(0)
        over = flushing.done()
        readers = [(oldest, oldest_state), (old, old_state)]
        fresh = store.begin(read_only=True)
        for txn, expected in (*readers, (fresh, state)):
            snapshot = sorted(v for _r, _b, v in snapshot_rows(await now(txn.snapshot(SHARD))))
            assert snapshot == sorted(expected.values()), turns
        # One row of a part moves to another key, one goes, one changes twice: all while the flush goes on.
        state = await change(store, state, 62, (100, 1, "moved"))
        state = await change(store, state, 63, None)
        state = await change(store, state, 5, (5, 2, "third"))
        state = await change(store, state, 5, (5, 1, "fourth"))
        for txn, expected in (*readers, (store.begin(read_only=True), state)):
            seen = sorted(v for _r, _b, v in snapshot_rows(await now(txn.snapshot(SHARD))))
            assert seen == sorted(expected.values())
        await flushing
        store.validate()
        if history and not again:
            generation = store.core.shards[SHARD].latest.generation
            assert generation is not None
            assert generation.history
            assert not any(v.begin <= old.read_ts for _r, v in generation.versions()), (
                "all of then left memory"
            )
        for txn, expected in (*readers, (store.begin(read_only=True), state)):
            await look(txn, expected)
        for txn in list(store.core.active.values()):
            txn.rollback()
        store.core.vacuum()
        await store.flush(history=history)
        await store.flush()
        store.validate()
        assert not any(h.latest.generation.history for h in store.core.shards.values() if h.latest.generation)
        await look(store.begin(read_only=True), state)
        await store.close()
        store = await open_memory_store(disk)
        await look(store.begin(read_only=True), state)
        await store.close()
        return over

    async def go() -> None:
        turns = 0
        while not await attempt(turns):
            turns += every
        assert turns > 20

    with tiny_limits():
        run(go)


def test_hot_rows_leave_memory_and_history_goes_when_nobody_needs_it() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, k, "x") for k in range(50)])
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        hold = store.hold()
        state = {k: (k, k, "x") for k in range(50)}
        for n in range(20):
            state = await change(store, state, n, (n, 0, "y"))
        await store.flush()
        assert 0 < len(generation.rows) <= 20, "only what the hold needs is hot"
        store.release(hold)
        store.core.vacuum()
        assert not generation.rows
        assert not any(index.entries for index in generation.indexes.values())
        assert generation.log.entries == 0
        await look(store.begin(read_only=True), state)
        await store.close()

    run(go)


def test_many_small_parts_become_one_and_ended_rows_go() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store)
        for n in range(12):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            await now(txn.insert(SHARD, [(n * 10 + i, n, "x") for i in range(10)]))
            await now(txn.commit())
            await store.flush()
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        assert len(generation.parts) < 9
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        rows = await now(txn.range(SHARD, BY_K, KeyRange(has_lower=True, lower=30), for_update=True))
        await now(txn.delete(SHARD, [r.row_id for r in rows]))
        await now(txn.commit())
        for _ in range(3):
            await store.flush()
        assert sum(p.ref.rows for p in generation.parts) == 30
        parquet = [name for name in disk.blobs if name.endswith(".parquet")]
        assert len(parquet) == len(generation.parts), "files of merged parts were deleted"
        await store.close()

    run(go)


@pytest.mark.parametrize("every", sampled(1, [3, 1]))
def test_a_merge_is_invisible_at_every_turn(every: int) -> None:
    """A row of a part that is being merged ends at each third moment of the merge (``make proofs``: at each): the merged part knows."""

    async def attempt(turns: int) -> bool:
        store = await open_memory_store()
        await make_table(store)
        state: State = {}
        for n in range(3):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            rows = [(n * 4 + i, n, "x") for i in range(4)]
            await now(txn.insert(SHARD, rows))
            await now(txn.commit())
            state |= {r[0]: r for r in rows}
            if n < 2:
                await store.flush()
        hold = store.hold()  # what ends from now on is carried over, not left out
        await store.flush()
        state = await change(store, state, 1, (1, 7, "before"))
        old, old_state = store.begin(read_only=True), state
        merging = asyncio.ensure_future(store.flush())
        for _ in range(turns):
            await asyncio.sleep(0)
        over = merging.done()
        for k in (4, 5, 9):  # commits take turns of their own: each meets another moment
            state = await change(store, state, k, None if k == 5 else (k, 8, "meanwhile"))
        await merging
        store.validate()
        await look(old, old_state)
        await look(store.begin(read_only=True), state)
        store.release(hold)
        for txn in list(store.core.active.values()):
            txn.rollback()
        await store.close()
        return over

    async def go() -> None:
        turns = 0
        while not await attempt(turns):
            turns += every
        assert turns > 20

    with tiny_limits():
        run(go)
