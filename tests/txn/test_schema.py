"""Transactional DDL and bulk load: visible to their transaction, atomic for others, durable, undone without trace."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import (
    BY_K,
    BY_V,
    INT,
    SHARD,
    at_once,
    make_table,
    must_wait,
    now,
    open_memory_store,
    settle,
    snapshot_rows,
    spec,
    tiny_limits,
)
from txn.base.errors import DuplicateKey, SchemaChanged
from txn.base.types import IndexId, KeyRange, ShardColumn, ShardId, ShardIndex, ShardSpec
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore

BY_T = IndexId(12)
UNSET = ShardColumn(attnum=4, type=INT)


def with_column(version: int = 2) -> ShardSpec:
    """The usual schema plus a column that older rows lack."""
    base = spec(version=version)
    extra = ShardColumn(attnum=4, type=INT, missing_value=7)
    return dataclasses.replace(base, columns=(*base.columns, extra))


def with_index(unique: bool, attnums: tuple[int, ...] = (3,), version: int = 2) -> ShardSpec:
    base = spec(version=version)
    return dataclasses.replace(
        base, indexes=(*base.indexes, ShardIndex(index=BY_T, attnums=attnums, unique=unique))
    )


async def reopen(store: ShardStore, disk: MemoryDisk) -> ShardStore:
    store.validate()
    await store.close()
    return await open_memory_store(disk)


async def everything(store: ShardStore, shard: ShardId = SHARD) -> list[tuple[Any, ...]]:
    """Read a shard in all ways; they must agree."""
    txn = store.begin(read_only=True)
    scanned = sorted([r.values async for chunk in txn.scan(shard) for r in chunk])
    in_range = [r.values for r in await now(txn.range(shard, BY_K, KeyRange()))]
    assert sorted(in_range) == scanned
    snapshot = await now(txn.snapshot(shard))
    assert sorted(v for _r, _b, v in snapshot_rows(snapshot)) == scanned
    txn.rollback()
    return scanned


async def write(store: ShardStore, shard: ShardId = SHARD) -> Any:
    txn = store.begin()
    await now(txn.begin_write([shard]))
    return txn


async def batches(rows: list[tuple[Any, ...]], size: int = 3) -> AsyncIterator[Any]:
    for at in range(0, len(rows), size):
        chunk = rows[at : at + size]
        yield pa.record_batch(
            {
                "c1": pa.array([r[0] for r in chunk], pa.int64()),
                "c2": pa.array([r[1] for r in chunk], pa.int64()),
                "c3": pa.array([r[2] for r in chunk], pa.string()),
            }
        )


def test_created_shard_is_usable_at_once_and_absent_elsewhere() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        txn = store.begin()
        txn.create_shard(spec())
        await now(txn.begin_write([SHARD]))
        at_once(txn.insert(SHARD, [(1, 1, "a")]))
        txn.next_statement()
        assert len(at_once(txn.lookup(SHARD, BY_K, [(1,)]))) == 1
        with pytest.raises(KeyError):
            store.begin().spec(SHARD)
        before = store.begin()
        await now(txn.commit())
        with pytest.raises(KeyError):
            before.spec(SHARD)
        store = await reopen(store, disk)
        assert await everything(store) == [(1, 1, "a")]
        await store.close()

    run(go)


def test_ddl_of_what_another_drops_meanwhile_has_lost() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a")])
        first, second = store.begin(), store.begin()
        await now(first.drop_shard(SHARD))
        waits = must_wait(second.alter_shard(with_column()))
        await settle()
        await now(first.commit())
        with pytest.raises(SchemaChanged):
            await waits
        second.rollback()
        await store.close()

    run(go)


@pytest.mark.parametrize("flushed", [False, True])
def test_added_column_gives_older_rows_its_missing_value(flushed: bool) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(1, 1, "a"), (2, 2, "b")])
        if flushed:
            await store.flush()
        old = store.begin(read_only=True)
        ddl = await write(store)
        at_once(ddl.insert(SHARD, [(3, 3, "c")]))
        await now(ddl.alter_shard(with_column()))
        ddl.next_statement()
        at_once(ddl.insert(SHARD, [(4, 4, "d", 40)]))
        await now(ddl.commit())
        expected = [(1, 1, "a", 7), (2, 2, "b", 7), (3, 3, "c", 7), (4, 4, "d", 40)]
        assert await everything(store) == expected
        assert [r.values for r in await now(old.lookup(SHARD, BY_K, [(1,)]))] == [(1, 1, "a")]
        assert len(snapshot_rows(await now(old.snapshot(SHARD)))) == 2
        old.rollback()
        store = await reopen(store, disk)
        assert await everything(store) == expected
        await store.flush()
        store = await reopen(store, disk)
        assert await everything(store) == expected
        await store.close()

    run(go)


def test_a_column_undone_leaves_nothing_in_rows_for_the_next_one_of_its_number() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [])
        ddl = await write(store)
        at_once(ddl.insert(SHARD, [(1, 1, "a"), (2, 2, "b")]))
        mark = ddl.savepoint()
        await now(ddl.alter_shard(dataclasses.replace(with_column(), columns=(*spec().columns, UNSET))))
        ddl.next_statement()
        at_once(ddl.insert(SHARD, [(3, 3, "c", 30)]))
        ddl.rollback_to(mark)
        await now(ddl.commit())
        store.validate()
        ddl = await write(store)
        await now(ddl.alter_shard(with_column()))
        await now(ddl.commit())
        for _ in range(2):
            assert await everything(store) == [(1, 1, "a", 7), (2, 2, "b", 7)]
            store = await reopen(store, disk)
        await store.close()

    run(go)


@pytest.mark.parametrize("flushed", [False, True])
def test_new_index_covers_hot_rows_parts_and_own_intents(flushed: bool) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(k, k, f"t{k % 3}") for k in range(10)])
        if flushed:
            await store.flush()
        ddl = await write(store)
        at_once(ddl.insert(SHARD, [(20, 0, "t1")]))
        await now(ddl.alter_shard(with_index(False)))
        ddl.next_statement()
        found = await now(ddl.lookup(SHARD, BY_T, [("t1",)]))
        assert [r.values[0] for r in found] == [1, 4, 7, 20]
        await now(ddl.commit())
        for _ in range(2):
            txn = store.begin()
            found = await now(txn.lookup(SHARD, BY_T, [("t1",)]))
            assert [r.values[0] for r in found] == [1, 4, 7, 20]
            txn.rollback()
            store = await reopen(store, disk)
        await store.close()

    run(go)


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("second", ["b", None, "a"])
def test_new_unique_index_refuses_duplicates_wherever_they_are(flushed: bool, second: str | None) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a"), (2, 2, None), (3, 3, None)])
        if flushed:
            await store.flush()
        ddl = await write(store)
        at_once(ddl.insert(SHARD, [(4, 4, second)]))
        if second == "a":
            with pytest.raises(DuplicateKey) as caught:
                await now(ddl.alter_shard(with_index(True)))
            assert (caught.value.index, caught.value.key) == (BY_T, ("a",))
            ddl.rollback()
            assert BY_T not in store.core.shards[SHARD].latest.generation.indexes  # type: ignore[union-attr]
            txn = await write(store)
            at_once(txn.insert(SHARD, [(5, 5, "a")]))
            await now(txn.commit())
        else:
            await now(ddl.alter_shard(with_index(True)))
            await now(ddl.commit())
        store.validate()
        await store.close()

    run(go)


def test_duplicates_within_parts_are_found_by_a_new_unique_index() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, k, f"t{k}") for k in range(5)])
        await store.flush()
        txn = await write(store)
        at_once(txn.insert(SHARD, [(9, 9, "t3")]))
        await now(txn.commit())
        await store.flush()
        ddl = store.begin()
        with pytest.raises(DuplicateKey) as caught:
            await now(ddl.alter_shard(with_index(True)))
        assert caught.value.key == ("t3",)
        ddl.rollback()
        await store.close()

    run(go)


def test_dropped_index_serves_older_readers() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a")])
        old = store.begin(read_only=True)
        ddl = store.begin()
        only_key = dataclasses.replace(spec(version=2), indexes=spec().indexes[:1])
        await now(ddl.alter_shard(only_key))
        await now(ddl.commit())
        txn = await write(store)
        await now(txn.delete(SHARD, [1]))
        await now(txn.commit())
        await store.flush()
        assert len(await now(old.lookup(SHARD, BY_V, [(1,)]))) == 1
        old.rollback()
        await store.flush()
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        assert list(generation.indexes) == [BY_K]
        await store.close()

    run(go)


@pytest.mark.parametrize("how", ["truncate", "rewrite", "drop"])
@pytest.mark.parametrize("flushed", [False, True])
def test_emptying_a_shard_leaves_older_readers_their_rows(how: str, flushed: bool) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        rows = [(1, 1, "a"), (2, 2, "b")]
        await make_table(store, rows)
        if flushed:
            await store.flush()
        old = store.begin(read_only=True)
        for commit in (False, True):
            ddl = await write(store)
            at_once(ddl.insert(SHARD, [(3, 3, "c")]))
            mark = ddl.savepoint()
            if how == "truncate":
                await now(ddl.truncate(SHARD))
            elif how == "rewrite":
                await now(ddl.rewrite(SHARD, [(1, 9, "z")]))
            else:
                await now(ddl.drop_shard(SHARD))
            ddl.next_statement()
            if how == "drop":
                with pytest.raises(KeyError):
                    ddl.spec(SHARD)
            else:
                assert len(at_once(ddl.range(SHARD, BY_K, KeyRange()))) == (how == "rewrite")
            if not commit:
                ddl.rollback_to(mark)
                ddl.next_statement()
                assert len(await now(ddl.range(SHARD, BY_K, KeyRange()))) == 3
                ddl.rollback()
                assert await everything(store) == rows
            else:
                await now(ddl.commit())
        assert sorted(v for _r, _b, v in snapshot_rows(await now(old.snapshot(SHARD)))) == rows
        assert len(await now(old.lookup(SHARD, BY_K, [(1,), (2,)]))) == 2
        old.rollback()
        for _ in range(2):
            if how == "drop":
                with pytest.raises(KeyError):
                    store.begin().spec(SHARD)
            else:
                assert await everything(store) == ([(1, 9, "z")] if how == "rewrite" else [])
            await store.flush()
            store = await reopen(store, disk)
        await store.flush()
        live = 1 if how == "rewrite" else 0
        assert sum(name.endswith(".parquet") for name in disk.blobs) == live, "old parts were deleted"
        await store.close()

    run(go)


def test_ddl_waits_for_writers_and_keeps_them_away() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a")])
        writer = await write(store)
        ddl = store.begin()
        waits = must_wait(ddl.alter_shard(with_column()))
        await settle()
        assert not waits.done()
        await now(writer.commit())
        await waits
        late = store.begin()
        blocked = must_wait(late.begin_write([SHARD]))
        await now(ddl.commit())
        await blocked
        assert late.spec(SHARD).version == 2
        late.rollback()
        await store.close()

    run(go)


@pytest.mark.parametrize("flushed", [False, True])
def test_bulk_load_is_visible_to_its_transaction_then_to_all_and_durable(flushed: bool) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        old_rows = [(k, k % 3, f"old{k}") for k in range(5)]
        await make_table(store, old_rows)
        if flushed:
            await store.flush()
        reader = store.begin(read_only=True)
        load = await write(store)
        new_rows = [(k, k % 3, f"new{k}") for k in range(10, 20)]
        assert await load.bulk_insert(SHARD, batches(new_rows)) == 10
        load.next_statement()
        assert len(await now(load.range(SHARD, BY_K, KeyRange()))) == 15
        (row,) = await now(load.lookup(SHARD, BY_K, [(12,)], for_update=True))
        assert at_once(load.update(SHARD, [(row.row_id, (12, 0, "changed"))])) == [True]
        (row,) = await now(load.lookup(SHARD, BY_K, [(13,)]))
        assert at_once(load.delete(SHARD, [row.row_id])) == [True]
        load.next_statement()
        expected = sorted(
            [*old_rows, *((12, 0, "changed") if r[0] == 12 else r for r in new_rows if r[0] != 13)]
        )
        assert sorted(v for _r, _b, v in snapshot_rows(await now(load.snapshot(SHARD)))) == expected
        assert len(snapshot_rows(await now(reader.snapshot(SHARD)))) == 5
        await now(load.commit())
        assert len(snapshot_rows(await now(reader.snapshot(SHARD)))) == 5
        assert len(await now(reader.lookup(SHARD, BY_K, [(11,)]))) == 0
        reader.rollback()
        assert await everything(store) == expected
        again = await write(store)
        (new_id,) = at_once(again.insert(SHARD, [(99, 9, "x")]))
        again.rollback()
        store = await reopen(store, disk)
        assert await everything(store) == expected
        again = await write(store)
        (after_restart,) = at_once(again.insert(SHARD, [(99, 9, "x")]))
        assert after_restart >= new_id - 1, "row ids are not given twice"
        again.rollback()
        await store.flush()
        store = await reopen(store, disk)
        assert await everything(store) == expected
        await store.close()

    with tiny_limits():
        run(go)


@pytest.mark.parametrize("where", ["within", "part", "hot", "own"])
def test_bulk_load_finds_duplicates(where: str) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(1, 1, "a")])
        if where == "part":
            await store.flush()
        load = await write(store)
        if where == "own":
            at_once(load.insert(SHARD, [(50, 1, "mine")]))
        rows = [(k, 0, "x") for k in range(2, 9)]
        clash = {"within": 4, "part": 1, "hot": 1, "own": 50}[where]
        with pytest.raises(DuplicateKey) as caught:
            await load.bulk_insert(SHARD, batches([*rows, (clash, 0, "y")]))
        assert caught.value.key == (clash,)
        load.next_statement()
        assert len(await now(load.range(SHARD, BY_K, KeyRange()))) == (2 if where == "own" else 1)
        load.rollback()
        await store.flush()
        await store.idle()
        assert sum(name.endswith(".parquet") for name in disk.blobs) == 1, "the load's files were deleted"
        await store.close()

    run(go)


def test_a_loaded_row_is_found_by_the_key_of_a_hot_row_deleted_before() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 0, "old")])
        load = await write(store)
        (row,) = await now(load.lookup(SHARD, BY_K, [(1,)], for_update=True))
        await now(load.delete(SHARD, [row.row_id]))
        assert await load.bulk_insert(SHARD, batches([(1, 1, "new")])) == 1
        load.next_statement()
        assert [r.values for r in await now(load.lookup(SHARD, BY_K, [(1,)]))] == [(1, 1, "new")]
        with pytest.raises(DuplicateKey):
            await now(load.insert(SHARD, [(1, 2, "again")]))
        await now(load.commit())
        assert await everything(store) == [(1, 1, "new")]
        await store.close()

    run(go)


def test_bulk_load_into_a_deleted_range_is_no_duplicate() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "a") for k in range(5)])
        await store.flush()
        txn = await write(store)
        rows = await now(txn.range(SHARD, BY_K, KeyRange(), for_update=True))
        await now(txn.delete(SHARD, [r.row_id for r in rows[:3]]))
        await now(txn.commit())
        load = await write(store)
        (row,) = await now(load.lookup(SHARD, BY_K, [(3,)], for_update=True))
        await now(load.delete(SHARD, [row.row_id]))
        assert await load.bulk_insert(SHARD, batches([(k, 1, "b") for k in range(4)])) == 4
        await now(load.commit())
        assert [r[1] for r in await everything(store)] == [1, 1, 1, 1, 0]
        await store.close()

    run(go)


def test_a_loaded_row_that_the_same_transaction_changes_survives_merges_and_later_changes() -> None:
    """Its first form, which nobody saw, has the same row id and the same begin as its second."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store)
        kept = store.hold()  # so that a merge keeps what nobody saw, too
        load = store.begin()
        await now(load.begin_write([SHARD]))
        await load.bulk_insert(SHARD, batches([(k, 1, "b") for k in range(4)]))
        load.next_statement()
        row, once = await now(load.lookup(SHARD, BY_K, [(0,), (1,)], for_update=True))
        await now(load.update(SHARD, [(row.row_id, (0, 2, "c")), (once.row_id, (1, 2, "c"))]))
        await now(load.commit())
        for value in range(2, 12):
            await store.flush()
            reader = store.begin(read_only=True)
            found = [r.values for r in await now(reader.range(SHARD, BY_K, KeyRange()))]
            assert found == [(0, value, "c"), (1, 2, "c"), (2, 1, "b"), (3, 1, "b")]
            assert sorted(v for _r, _b, v in snapshot_rows(await now(reader.snapshot(SHARD)))) == found
            reader.rollback()
            change = store.begin()
            await now(change.begin_write([SHARD]))
            await now(change.update(SHARD, [(row.row_id, (0, value + 1, "c"))]))
            await now(change.commit())
        assert store.core.written.merges
        store.release(kept)
        store.core.validate()
        await store.close()

    with tiny_limits():
        run(body)


def test_a_transaction_pins_a_generation_once_however_often_it_alters_it() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 10, "a")])
        generation = store.core.shards[SHARD].latest.generation
        for ends in (lambda txn: txn.commit(), lambda txn: txn.rollback()):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            for version in range(2, 40):
                await now(txn.alter_shard(with_column(version)))
            assert generation.pinned == 1
            assert len(txn.at_end) == 1, "what is called when it is readable, all in one turn"
            await now(ends(txn))
            assert generation.pinned == 0
        await store.close()

    run(go)
