"""Parts merged by workers elsewhere: nobody sees it, whatever is committed, altered or emptied meanwhile; or nothing is left of it."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import SHARD, make_table, now, open_memory_store, spec, tiny_limits
from tests.txn.test_flush import State, change, look
from txn.base.types import IndexId, ShardColumn, ShardIndex
from txn.persist.memory import MemoryDisk
from txn.persist.parts.merge_job import MergedPart, MergeJob
from txn.store import ShardStore

BY_T = IndexId(12)


class Worker:
    """Merges in a thread; ``meanwhile`` is awaited before it begins, or once it is done."""

    def __init__(self, *, early: bool = False) -> None:
        self.max_bytes = 1 << 30
        self.least = 1
        self.jobs = 0
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        self._early = early
        self.works = True

    def wants(self, size: int) -> bool:
        return self.works and size >= self.least

    async def write(self, job: MergeJob) -> MergedPart | None:
        self.jobs += 1
        then, self.meanwhile = self.meanwhile, None
        if then is not None and self._early:
            await then()
        if not self.works:
            return None
        made = await asyncio.to_thread(job.write, f"w{self.jobs}")
        if then is not None and not self._early:
            await then()
        return made


async def three_parts(store: ShardStore) -> State:
    """Make a table of three parts, which the server does not merge by itself."""
    await make_table(store)
    state: State = {}
    for n in range(3):
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        rows = [(n * 20 + i, i % 3, f"first {i}") for i in range(20)]
        await now(txn.insert(SHARD, rows))
        await now(txn.commit())
        state |= {row[0]: row for row in rows}
        if n < 2:
            await store.flush()
    return state


async def merge(store: ShardStore, worker: Worker) -> None:
    """Have the upkeep look once, and wait until it has done what it found."""
    store.merge_elsewhere(worker)
    await store._flusher._look()
    await store.idle()


def parts_of(store: ShardStore) -> tuple[Any, ...]:
    generation = store.core.shards[SHARD].latest.generation
    assert generation is not None
    return tuple(part.ref.name for part in generation.parts)


def files(disk: MemoryDisk) -> set[str]:
    return {name.removesuffix(".parquet") for name in disk.blobs if name.endswith(".parquet")}


@pytest.mark.parametrize("early", [True, False])
def test_what_ends_before_meanwhile_and_afterwards_has_ended(early: bool) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        worker = Worker(early=early)
        worker.works = False
        store.merge_elsewhere(worker)
        state = await three_parts(store)
        with tiny_limits():
            worker.works = True  # from here on a third part is one to merge, elsewhere
            await store.flush()
            assert len(parts_of(store)) == 3
            state = await change(store, state, 1, (1, 7, "before"))
            state = await change(store, state, 2, None)
            old, old_state = store.begin(read_only=True), state

            async def meanwhile() -> None:
                nonlocal state
                state = await change(store, state, 21, (21, 8, "meanwhile"))
                state = await change(store, state, 22, None)
                state = await change(store, state, 1, (1, 9, "again"))
                worker.works = False  # for others: this one goes on
                await store.flush()  # waits for no worker, and leaves the parts alone
                worker.works = True
                kept.extend(set(before) & set(parts_of(store)))

            before = parts_of(store)
            kept: list[str] = []
            worker.meanwhile = meanwhile
            await merge(store, worker)
            assert (worker.jobs, len(kept)) == (1, 3)
            assert not set(before) & set(parts_of(store))
            state = await change(store, state, 41, None)
            store.validate()
            await look(old, old_state)
            old.rollback()
            await look(store.begin(read_only=True), state)
            for txn in list(store.core.active.values()):
                txn.rollback()
            await store.flush()
            assert files(disk) >= set(parts_of(store))
            assert not files(disk) & set(before)
            await store.close()
            store = await open_memory_store(disk)
            await look(store.begin(read_only=True), state)
            await store.close()

    run(go)


async def add_index(store: ShardStore) -> None:
    base = spec(version=2)
    schema = dataclasses.replace(
        base, indexes=(*base.indexes, ShardIndex(index=BY_T, attnums=(3,), unique=False))
    )
    await alter(store, schema)


async def add_column(store: ShardStore) -> None:
    base = spec(version=2)
    column = ShardColumn(attnum=4, type=base.columns[0].type, missing_value=5)
    await alter(store, dataclasses.replace(base, columns=(*base.columns, column)))


async def alter(store: ShardStore, schema: Any) -> None:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    await now(txn.alter_shard(schema))
    await now(txn.commit())


async def truncate(store: ShardStore) -> None:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    await now(txn.truncate(SHARD))
    await now(txn.commit())


async def drop(store: ShardStore) -> None:
    txn = store.begin()
    await now(txn.drop_shard(SHARD))
    await now(txn.begin_write([SHARD]))
    await now(txn.commit())


@pytest.mark.parametrize("what", [add_index, add_column, truncate, drop])
def test_what_does_not_fit_any_more_is_thrown_away(what: Callable[[ShardStore], Awaitable[None]]) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        worker = Worker()
        worker.works = False
        store.merge_elsewhere(worker)
        await three_parts(store)
        with tiny_limits():
            worker.works = True
            await store.flush()
            before = parts_of(store)
            made: set[str] = set()

            async def meanwhile() -> None:
                made.update(files(disk) - set(before))
                await what(store)

            worker.meanwhile = meanwhile
            await merge(store, worker)
            assert len(made) == 1
            await store.flush()
            assert not files(disk) & made
            if what in (add_index, add_column):
                assert parts_of(store) == before
                await merge(store, worker)
                assert len(parts_of(store)) == 1
                await store.flush()
                assert files(disk) == set(parts_of(store))
            else:
                assert not files(disk) & set(before)
            assert worker.jobs == (2 if what in (add_index, add_column) else 1)
            await store.close()

    run(go)


def test_a_worker_that_fails_leaves_the_parts_to_the_server() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        worker = Worker(early=True)
        worker.works = False
        store.merge_elsewhere(worker)
        state = await three_parts(store)
        with tiny_limits():
            worker.works = True
            await store.flush()

            async def fail() -> None:
                worker.works = False

            worker.meanwhile = fail
            await merge(store, worker)
            assert worker.jobs == 1
            await merge(store, worker)
            assert worker.jobs == 1
            assert len(parts_of(store)) == 1
            await store.flush()
            assert files(disk) == set(parts_of(store))
            await look(store.begin(read_only=True), state)
            for txn in list(store.core.active.values()):
                txn.rollback()
            await store.close()

    run(go)


def test_few_bytes_are_merged_by_the_server() -> None:
    async def go() -> None:
        store = await open_memory_store()
        worker = Worker()
        worker.works = False
        store.merge_elsewhere(worker)
        await three_parts(store)
        with tiny_limits():
            worker.works, worker.least = True, 1 << 20
            await store.flush()
            await merge(store, worker)
            assert (worker.jobs, len(parts_of(store))) == (0, 1)
        await store.close()

    run(go)


def test_a_store_that_closes_waits_for_no_worker(tmp_path: Path) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        worker = Worker()
        worker.works = False
        store.merge_elsewhere(worker)
        state = await three_parts(store)
        with tiny_limits():
            worker.works = True
            await store.flush()
            before = parts_of(store)
            reached = asyncio.Event()

            async def hang() -> None:
                reached.set()
                await asyncio.Event().wait()

            worker.meanwhile = hang
            await store._flusher._look()
            await reached.wait()
            assert len(files(disk)) == 4
            await store.close()
            assert files(disk) == set(before)
            store = await open_memory_store(disk)
            await look(store.begin(read_only=True), state)
            await store.close()

    run(go)


@pytest.mark.parametrize("seed", range(4))
def test_merges_amid_random_changes(seed: int) -> None:
    """Workers merge again and again while rows come, change and go, readers hold the past, and upkeep does its own."""
    rng = random.Random(seed)

    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        worker = Worker(early=rng.random() < 0.5)
        await make_table(store)
        state: State = {}
        readers: list[tuple[Any, State]] = []
        fresh = 0

        async def some() -> None:
            nonlocal state, fresh
            for _ in range(rng.randrange(12)):
                if rng.random() < 0.4 and state:
                    k = rng.choice(sorted(state))
                    row = None if rng.random() < 0.5 else (k, rng.randrange(9), f"x{rng.random()}")
                    state = await change(store, state, k, row)
                else:
                    fresh += 1
                    txn = store.begin()
                    await now(txn.begin_write([SHARD]))
                    await now(txn.insert(SHARD, [(fresh, fresh % 3, "new")]))
                    await now(txn.commit())
                    state = {**state, fresh: (fresh, fresh % 3, "new")}
                if rng.random() < 0.05:
                    readers.append((store.begin(read_only=True), state))
            if rng.random() < 0.8:
                await store.flush(SHARD)

        with tiny_limits():
            for _ in range(40):
                await some()
                worker.works = rng.random() < 0.8
                worker.meanwhile = some
                await merge(store, worker)
                worker.meanwhile = None
                store.validate()
                if readers and rng.random() < 0.5:
                    reader, then = readers.pop(rng.randrange(len(readers)))
                    await look(reader, then)
                    reader.rollback()
            assert worker.jobs > 2
            await look(store.begin(read_only=True), state)
            for txn in list(store.core.active.values()):
                txn.rollback()
            await store.flush()
            assert files(disk) >= set(parts_of(store))
            await store.close()
            store = await open_memory_store(disk)
            await look(store.begin(read_only=True), state)
            await store.close()

    run(go)
