"""The number of the transaction that made a version (txn.base.writers): one from before its commit until nobody reads it.

what was told before the commit, or is computed from the timestamp ── log ── memory ── parts ── merges ── restart
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from array import array
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import SHARD, make_table, now, open_memory_store, tear_away, tiny_limits
from tests.txn.test_merging import Worker, merge
from txn.base.records import Batch
from txn.base.types import RowId, Timestamp, TxnId
from txn.base.writers import NUMBER_MASK, Writers, first_id, number_of, writers_of
from txn.mvcc.generation import Generation
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions
from txn.values.encoding import ENTRY_FORMAT, TOLD_FORMAT, decode_batch, encode_batch

Seen = dict[int, tuple[int, int]]
"""Of each key: the begin of its version, and the number that it showed first."""


def generation_of(store: ShardStore) -> Generation:
    generation = store.core.shards[SHARD].latest.generation
    assert generation is not None
    return generation


async def rows_at(store: ShardStore, at: Timestamp | None = None) -> list[Any]:
    txn = store.begin(read_only=True, at=at)
    found = [row async for rows in txn.scan(SHARD) for row in rows]
    for row in found:
        assert txn.writer_of(SHARD, row.begin) == generation_of(store).writer_of(row.begin)
    txn.rollback()
    return found


async def check(store: ShardStore, known: Seen, at: Timestamp | None = None) -> None:
    rows = await rows_at(store, at)
    writer_of = generation_of(store).writer_of
    assert {row.values[0]: (row.begin, writer_of(row.begin)) for row in rows} == known


async def batches(keys: list[int]) -> AsyncIterator[Any]:
    yield pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.int64()), pa.array([0] * len(keys), pa.int64()), pa.array(["b"] * len(keys))],
        names=["c1", "c2", "c3"],
    )


class Model:
    """Random changes, of some of which somebody is told the number before they are committed."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.known: Seen = {}
        self.next = 0
        self.past: list[tuple[Timestamp, Seen]] = []

    async def change(self, store: ShardStore) -> None:
        rng = self.rng
        txn = store.begin()
        told = rng.random() < 0.6
        touched: set[int] = set()
        await now(txn.begin_write([SHARD]))
        if rng.random() < 0.2:
            keys = list(range(self.next, self.next + rng.randrange(1, 8)))
            await txn.bulk_insert(SHARD, batches(keys))
            self.next = keys[-1] + 1
            touched.update(keys)
        for _ in range(rng.randrange(1, 4)):
            existing = [row async for rows in txn.scan(SHARD) for row in rows]
            what = rng.randrange(3)
            txn.next_statement()
            if what == 0 or not existing:
                await now(txn.insert(SHARD, [(self.next, 0, "a")]))
                touched.add(self.next)
                self.next += 1
            else:
                row = rng.choice(existing)
                if what == 1:
                    await now(txn.update(SHARD, [(row.row_id, (row.values[0], rng.randrange(9), "u"))]))
                    touched.add(row.values[0])
                else:
                    await now(txn.delete(SHARD, [RowId(row.row_id)]))
                    touched.discard(row.values[0])
                    self.known.pop(row.values[0], None)
            txn.next_statement()
        if told:
            assert txn.writer_of(SHARD, Timestamp(0)) == txn.id
        ts = await now(txn.commit())
        number = txn.id if told else number_of(ts)
        self.known.update(dict.fromkeys(touched, (ts, number)))


@pytest.mark.parametrize("seed", range(12))
def test_a_version_has_one_number(seed: int) -> None:
    async def body() -> None:
        rng = random.Random(seed)
        disk = MemoryDisk()
        options = TxnOptions(retention_ms=10_000_000)
        store = await open_memory_store(disk, options)
        await make_table(store)
        model = Model(rng)
        for _ in range(80):
            match rng.randrange(10):
                case 0:
                    await store.flush(SHARD)
                case 1:
                    await store.flush(SHARD, history=True)
                case 2:
                    store.core.vacuum()
                case 3 if rng.random() < 0.3:
                    if rng.random() < 0.5:
                        await tear_away(store, disk)
                    else:
                        await store.close()
                    store = await open_memory_store(disk, options)
                    model.past.clear()
                case _:
                    await model.change(store)
            await check(store, model.known)
            if rng.random() < 0.2:
                model.past.append((store.read_ts(), dict(model.known)))
            for at, known in model.past[-3:]:
                await check(store, known, at)
        store.validate()
        await store.close()

    with tiny_limits():
        run(body)


def test_memory_keeps_no_more_than_what_is_hot_or_was_loaded() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store)
        for key in range(40):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            if key % 10 == 9:
                await txn.bulk_insert(SHARD, batches([key]))
            else:
                await now(txn.insert(SHARD, [(key, 0, "a")]))
            assert txn.writer_of(SHARD, Timestamp(0)) == txn.id
            await now(txn.commit())
        generation = generation_of(store)
        assert len(generation.writers) == 40
        await store.flush(SHARD)
        held = sum(len(part.writers) for part in generation.parts if part.writers is not None)
        assert held + len(generation.loaded_writers(generation.parts)) == 40
        assert generation.writers == generation.loaded_writers(generation.parts)
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        rows = [row async for some in txn.scan(SHARD) for row in some]
        await now(txn.delete(SHARD, [row.row_id for row in rows if row.values[0] != 5]))
        await now(txn.commit())
        for _ in range(3):
            await store.flush(SHARD)
            store.core.vacuum()
        assert sum(len(part.writers) for part in generation.parts if part.writers is not None) == 1
        assert not generation.writers
        await store.close()

    run(body)


def test_merges_elsewhere_take_numbers_along() -> None:
    async def body() -> None:
        store = await open_memory_store()
        worker = Worker()
        worker.works = False
        store.merge_elsewhere(worker)
        await make_table(store)
        known: Seen = {}
        for n in range(3):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            keys = list(range(n * 20, n * 20 + 20))
            if n == 1:
                await txn.bulk_insert(SHARD, batches(keys))
            else:
                await now(txn.insert(SHARD, [(key, 0, "a") for key in keys]))
            number = txn.writer_of(SHARD, Timestamp(0))
            ts = await now(txn.commit())
            known |= {key: (int(ts), number) for key in keys}
            await store.flush(SHARD)
        with tiny_limits():
            worker.works = True
            await merge(store, worker)
        assert (worker.jobs, len(generation_of(store).parts)) == (1, 1)
        await check(store, known)
        assert not generation_of(store).loaded_writers(generation_of(store).parts)
        await store.close()

    run(body)


def test_what_is_stored_is_computed_as_ever() -> None:
    """Numbers of stored rows are not stored, so that the function must stay as it is."""
    assert [number_of(ts) for ts in (1, 2, 1_700_000_000_000 << 16, (1_700_000_000_000 << 16) + 1)] == [
        2348664055,
        3838741285,
        3128472948,
        4290644265,
    ]
    base = 1_700_000_000_000 << 16
    ticks = [base + n for n in range(1000)] + [base + n * 65_536_000 * 65_536 // 1000 for n in range(1, 1000)]
    numbers = [number_of(ts) for ts in ticks]
    assert len(set(numbers)) == len(set(ticks))
    assert all(1 << 31 <= number < 1 << 32 for number in numbers)


def test_ids_of_runs_are_apart() -> None:
    firsts = [first_id(epoch) for epoch in range(1, 2000)]
    assert firsts == sorted(firsts)
    assert all(first >> 32 == epoch for epoch, first in enumerate(firsts, 1))
    low = sorted(first & NUMBER_MASK for first in firsts)
    assert min(low) > 2
    assert max(low) < (1 << 30) + 4
    assert min(b - a for a, b in itertools.pairwise(low)) > 100_000


def test_only_entries_with_told_transactions_are_of_the_newer_format() -> None:
    plain = Batch(epoch=3)
    told = Batch(epoch=3, told=(TxnId(7), TxnId(9)))
    assert encode_batch(plain)[0] == ENTRY_FORMAT
    assert encode_batch(told)[0] == TOLD_FORMAT
    assert decode_batch(encode_batch(told)) == told
    assert decode_batch(encode_batch(plain)) == plain


def test_timestamps_are_found_among_others() -> None:
    pairs = {5: 50, 2: 20, 9: 90}
    found = writers_of(pairs)
    assert found == Writers(array("q", [2, 5, 9]), array("q", [20, 50, 90]))
    assert [found.of(ts) for ts in range(11)] == [0, 0, 20, 0, 0, 50, 0, 0, 0, 90, 0]
    assert dataclasses.replace(found, begins=array("q"), ids=array("q")).of(5) == 0
