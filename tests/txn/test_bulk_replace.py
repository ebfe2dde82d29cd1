"""Updates that write parts: old versions end, new ones stand in parts under new ids; all or nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store, snapshot_rows
from txn.base.errors import DuplicateKey, WriteConflict
from txn.base.types import KeyRange
from txn.persist.memory import MemoryDisk

Rows = Sequence[tuple[Any, ...]]
V = frozenset((2,))
K = frozenset((1,))


def batch(rows: Rows) -> Any:
    types = [pa.int64(), pa.int64(), pa.string()]
    return pa.RecordBatch.from_arrays(
        [pa.array([row[i] for row in rows], t) for i, t in enumerate(types)], names=["c1", "c2", "c3"]
    )


async def begin(store: Any) -> Any:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    return txn


async def rows_of(txn: Any) -> list[tuple[Any, ...]]:
    """Return what a transaction sees, by scan, by range and key by key."""
    found = sorted(values for _r, _b, values in snapshot_rows(await now(txn.snapshot(SHARD))))
    assert [row.values for row in await now(txn.range(SHARD, BY_K, KeyRange()))] == found
    by_key = await now(txn.lookup(SHARD, BY_K, [(k,) for k in range(-1, 30)]))
    assert sorted(row.values for row in by_key) == found
    return found


async def committed(store: Any) -> list[tuple[Any, ...]]:
    reader = store.begin(read_only=True)
    found = await rows_of(reader)
    reader.rollback()
    return found


async def replacing(txn: Any, change: Any, wanted: Any = lambda _row: True) -> AsyncIterator[Any]:
    """Yield the changes of all rows that are wanted, three at a time."""
    found = [(row_id, values) for row_id, _b, values in snapshot_rows(await now(txn.snapshot(SHARD)))]
    found = [(row_id, values) for row_id, values in found if wanted(values)]
    for at in range(0, len(found), 3):
        some = found[at : at + 3]
        yield [row_id for row_id, _v in some], batch([change(values) for _r, values in some])


START = [(k, 0, f"r{k}") for k in range(12)]


def bumped(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[0], row[1] + 1, row[2])


async def make(disk: MemoryDisk) -> Any:
    """Half of the rows in a part, of which some were changed since, half of them hot."""
    store = await open_memory_store(disk)
    await make_table(store, START[:8])
    await store.flush()
    txn = await begin(store)
    await now(txn.insert(SHARD, START[8:]))
    [row] = await now(txn.lookup(SHARD, BY_K, [(3,)], for_update=True))
    await now(txn.update(SHARD, [(row.row_id, (3, 5, "again"))]))
    await now(txn.commit())
    return store


def test_replaced_rows_are_seen_within_then_by_all_and_after_a_restart() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await make(disk)
        before = await committed(store)
        txn = await begin(store)
        assert await txn.bulk_replace(SHARD, replacing(txn, bumped, lambda r: r[0] % 2), V) == 6
        assert await rows_of(txn) == before, "a statement does not see its own changes"
        txn.next_statement()
        expected = sorted(bumped(row) if row[0] % 2 else row for row in before)
        assert await rows_of(txn) == expected
        mark = txn.savepoint()
        assert await txn.bulk_replace(SHARD, replacing(txn, bumped), V) == 12
        txn.next_statement()
        assert await rows_of(txn) == sorted(map(bumped, expected))
        txn.rollback_to(mark)
        txn.next_statement()
        assert await rows_of(txn) == expected
        assert await txn.bulk_replace(SHARD, replacing(txn, bumped, lambda r: r[0] == 1), V) == 1
        [row] = await now(txn.lookup(SHARD, BY_K, [(5,)], for_update=True))
        await now(txn.delete(SHARD, [row.row_id]))
        assert await committed(store) == before
        await now(txn.commit())
        expected = sorted(bumped(row) if row[0] == 1 else row for row in expected if row[0] != 5)
        assert await committed(store) == expected
        store.validate()
        await store.flush()
        assert await committed(store) == expected
        await store.close()
        store = await open_memory_store(disk)
        assert await committed(store) == expected
        await store.close()

    run(go)


def test_a_rollback_leaves_neither_change_nor_file() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await make(disk)
        before = await committed(store)
        txn = await begin(store)
        await txn.bulk_replace(SHARD, replacing(txn, bumped), V)
        txn.rollback()
        assert await committed(store) == before
        await store.flush()
        await store.close()
        store = await open_memory_store(disk)
        assert await committed(store) == before
        await store.close()
        named = {name.rpartition(".")[0] for name in disk.blobs if name.endswith(".parquet")}
        assert len(named) <= 2, "only flushed parts are left"

    run(go)


def test_keys_may_be_exchanged_but_not_shared() -> None:
    async def go() -> None:
        store = await make(MemoryDisk())
        txn = await begin(store)
        moved = replacing(txn, lambda row: (row[0] + 1, *row[1:]))
        assert await txn.bulk_replace(SHARD, moved, K) == 12
        await now(txn.commit())
        after = await committed(store)
        assert [row[0] for row in after] == list(range(1, 13))
        for taken in (7, 12):  # in a part, hot no more but in the new part
            txn = await begin(store)
            with pytest.raises(DuplicateKey) as caught:
                await txn.bulk_replace(
                    SHARD, replacing(txn, lambda row, k=taken: (k, *row[1:]), lambda r: r[0] == 2), K
                )
            assert caught.value.key == (taken,)
            txn.rollback()
        assert await committed(store) == after
        await store.close()

    run(go)


def test_nothing_is_done_while_others_write_the_table() -> None:
    async def go() -> None:
        store = await make(MemoryDisk())
        before = await committed(store)
        other = await begin(store)
        await now(other.insert(SHARD, [(50, 0, "mine")]))
        txn = await begin(store)
        assert await txn.bulk_replace(SHARD, replacing(txn, bumped), V) is None
        other.rollback()
        assert await rows_of(txn) == before
        txn.rollback()
        await store.close()

    run(go)


def test_a_scan_that_was_overtaken_is_noticed() -> None:
    async def go() -> None:
        store = await make(MemoryDisk())
        txn = await begin(store)
        changes = [change async for change in replacing(txn, bumped)]
        other = await begin(store)
        [row] = await now(other.lookup(SHARD, BY_K, [(9,)], for_update=True))
        await now(other.update(SHARD, [(row.row_id, (9, 99, "theirs"))]))
        await now(other.commit())

        async def stale() -> AsyncIterator[Any]:
            for change in changes:
                yield change

        with pytest.raises(WriteConflict):
            await txn.bulk_replace(SHARD, stale(), V)
        txn.rollback()
        assert (9, 99, "theirs") in await committed(store)
        await store.close()

    run(go)
