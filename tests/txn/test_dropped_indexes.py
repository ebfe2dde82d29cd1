"""An index is dropped while somebody still reads by it: the reader goes on, and so does upkeep.

by v at 10 ── DROP INDEX at 20 ── rows, loads, flushes, merges ── by v at 10 still, until the reader ends
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import (
    BY_K,
    BY_V,
    SHARD,
    make_table,
    now,
    open_memory_store,
    spec,
    tiny_limits,
)
from txn.base.types import KeyRange
from txn.mvcc.generation import Generation
from txn.store import ShardStore


async def drop_index(store: ShardStore) -> Any:
    """Make a table of ten rows, begin to read it by v, and drop that index. Returns the reader."""
    await make_table(store, [(k, k % 3, "x") for k in range(10)])
    await store.flush()
    reader = store.begin(read_only=True)
    await look(reader)
    txn, schema = store.begin(), spec(version=2)
    await now(txn.alter_shard(replace(schema, indexes=schema.indexes[:1])))
    await now(txn.commit())
    return reader


async def look(reader: Any) -> None:
    for v in range(3):
        found = await now(reader.lookup(SHARD, BY_V, [(v,)]))
        assert sorted(r.values[0] for r in found) == list(range(v, 10, 3))
    assert len(await now(reader.range(SHARD, BY_V, KeyRange()))) == 10


async def insert(store: ShardStore, *keys: int) -> None:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    await now(txn.insert(SHARD, [(k, k % 3, "y") for k in keys]))
    await now(txn.commit())


async def load(store: ShardStore, *keys: int) -> None:
    async def batches() -> AsyncIterator[Any]:
        columns = [
            pa.array(keys, pa.int64()),
            pa.array([0] * len(keys), pa.int64()),
            pa.array(["z"] * len(keys)),
        ]
        yield pa.record_batch(columns, names=["c1", "c2", "c3"])

    txn = store.begin()
    await txn.bulk_insert(SHARD, batches())
    await now(txn.commit())


def generation_of(store: ShardStore) -> Generation:
    generation = store.core.shards[SHARD].latest.generation
    assert generation is not None
    return generation


def test_upkeep_does_not_wait_for_readers_of_a_dropped_index() -> None:
    """Else memory would fill, and in the end all writers would wait for one idle reader."""

    async def body() -> None:
        store = await open_memory_store()
        reader = await drop_index(store)
        for n in range(4):
            await insert(store, *range(100 + 10 * n, 110 + 10 * n))
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            (row,) = await now(txn.lookup(SHARD, BY_K, [(n,)], for_update=True))
            await now(txn.delete(SHARD, [row.row_id]))
            await now(txn.commit())
            await store.flush(history=n % 2 == 1)
            assert generation_of(store).log.current == 0
            await look(reader)
            store.validate()
        assert store.core.written.merges, "parts of before and after the drop became one"
        reader.rollback()
        await insert(store, 500)
        await store.flush()
        assert list(generation_of(store).indexes) == [BY_K]
        await store.close()

    with tiny_limits():
        run(body)


@pytest.mark.parametrize("flushed", [False, True])
def test_rows_loaded_after_the_drop_do_not_disturb_who_reads_before_it(flushed: bool) -> None:
    """Their part has no sidecar of that index."""

    async def body() -> None:
        store = await open_memory_store()
        reader = await drop_index(store)
        await load(store, 200, 201)
        if flushed:
            await insert(store, 300)
            await store.flush()
        await look(reader)
        assert await now(reader.lookup(SHARD, BY_K, [(200,)])) == []
        later = store.begin(read_only=True)
        assert len(await now(later.lookup(SHARD, BY_K, [(200,)]))) == 1
        later.rollback()
        reader.rollback()
        await store.close()

    run(body)


def test_an_index_is_forgotten_as_soon_as_nobody_can_read_by_it() -> None:
    """Even while somebody reads under a schema that is older than the latest, but no longer had the index."""

    async def body() -> None:
        store = await open_memory_store()
        reader = await drop_index(store)
        later = store.begin(read_only=True)
        assert len(await now(later.lookup(SHARD, BY_K, [(1,)]))) == 1
        txn, schema = store.begin(), spec(version=3)
        await now(txn.alter_shard(replace(schema, indexes=schema.indexes[:1])))
        await now(txn.commit())
        await insert(store, 20)
        await store.flush()
        assert set(generation_of(store).indexes) == {BY_K, BY_V}
        reader.rollback()
        await insert(store, 21)
        await store.flush()
        assert list(generation_of(store).indexes) == [BY_K]
        assert len(store.core.shards[SHARD].entries) == 2
        later.rollback()
        await store.close()

    run(body)
