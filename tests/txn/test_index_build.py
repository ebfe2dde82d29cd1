"""Indexes built while others write: complete and right afterwards, whatever was committed in between; no trace if not."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from typing import Any
from unittest import mock

import pytest

import txn.transaction.index_build as index_build
from tests.support.durable import run
from tests.support.store import (
    BY_K,
    INT,
    SHARD,
    make_table,
    now,
    open_memory_store,
    spec,
    tear_away,
    tiny_limits,
)
from txn.base.errors import DuplicateKey, SchemaChanged, TxnError
from txn.base.types import IndexId, KeyRange, ShardColumn, ShardIndex, ShardSpec
from txn.log import group_commit
from txn.mvcc import applying
from txn.mvcc.index import BuildingIndex
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore

BY_T = IndexId(12)
KEYS = 24


def with_index(unique: bool, version: int = 2) -> ShardSpec:
    """The usual (k, v, t) with an index on t."""
    base = spec(version=version)
    return dataclasses.replace(
        base, indexes=(*base.indexes, ShardIndex(index=BY_T, attnums=(3,), unique=unique))
    )


async def rows_of(store: ShardStore) -> list[tuple[Any, ...]]:
    reader = store.begin(read_only=True)
    rows = sorted([r.values async for chunk in reader.scan(SHARD) for r in chunk])
    reader.rollback()
    return rows


async def rows_by_index(store: ShardStore) -> list[tuple[Any, ...]]:
    """Read all through the new index: by range, and by each key."""
    reader = store.begin(read_only=True)
    ranged = sorted(r.values for r in await now(reader.range(SHARD, BY_T, KeyRange())))
    for text in {row[2] for row in ranged}:
        found = sorted(r.values for r in await now(reader.lookup(SHARD, BY_T, [(text,)])))
        assert found == [row for row in ranged if row[2] == text]
    reader.rollback()
    return ranged


async def write_until(
    done: asyncio.Event, store: ShardStore, rng: random.Random, texts: int, chaos: bool
) -> None:
    """Insert, move and delete rows, one per transaction, without ever making two texts alike unless ``chaos``."""
    while not done.is_set():
        txn = store.begin()
        try:
            await now(txn.begin_write([SHARD]))
            k = rng.randrange(KEYS)
            text = f"{rng.randrange(texts)}" if chaos else f"{k}.{rng.randrange(3)}"
            found = await now(txn.lookup(SHARD, BY_K, [(k,)], for_update=True))
            if not found:
                await now(txn.insert(SHARD, [(k, k, text)]))
            elif rng.random() < 0.3:
                await now(txn.delete(SHARD, [found[0].row_id]))
            else:
                await now(txn.update(SHARD, [(found[0].row_id, (k, k, text))]))
            await now(txn.commit())
        except TxnError:
            txn.rollback()
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)


async def build(store: ShardStore, schema: ShardSpec) -> None:
    """Build BY_T and commit ``schema``."""
    building = store.build_index(schema, BY_T)
    try:
        await building.run()
        txn = store.begin()
        try:
            await now(txn.begin_write([SHARD]))
            await now(txn.alter_shard(schema))
            await now(txn.commit())
        except BaseException:
            txn.rollback()
            raise
    finally:
        building.close()


@pytest.mark.parametrize("chaos", [False, True])
@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_written_meanwhile_is_in_the_index(seed: int, unique: bool, chaos: bool) -> None:
    rng = random.Random(seed)

    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(k, k, f"{k}.0") for k in range(0, KEYS, 2)])
        for _ in range(rng.randrange(3)):
            await store.flush()
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            k = rng.randrange(0, KEYS, 2)
            (row,) = await now(txn.lookup(SHARD, BY_K, [(k,)], for_update=True))
            await now(txn.update(SHARD, [(row.row_id, (k, k, f"{k}.1"))]))
            await now(txn.commit())
        done = asyncio.Event()
        writers = [asyncio.ensure_future(write_until(done, store, rng, 40, chaos)) for _ in range(3)]
        await asyncio.sleep(0)
        refused: DuplicateKey | None = None
        try:
            await build(store, with_index(unique))
        except DuplicateKey as error:
            refused = error
        assert refused is None or (unique and chaos and refused.index == BY_T)
        for _ in range(50):
            await asyncio.sleep(0)
        done.set()
        await asyncio.gather(*writers)
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        assert generation.pinned == 0
        assert not store.core.builds
        assert len(store.core.holds) == len(store.core.locks) == 0
        store.validate()
        if refused:
            assert BY_T not in generation.indexes
        else:
            rows = await rows_of(store)
            assert await rows_by_index(store) == rows
            assert not unique or len({row[2] for row in rows}) == len(rows)
            await store.flush()
            assert await rows_by_index(store) == rows
            await store.close()
            store = await open_memory_store(disk)
            assert await rows_by_index(store) == rows
        await store.close()

    with tiny_limits(), mock.patch.object(index_build, "CHUNK_ROWS", 2), mock.patch.object(
        index_build, "FEW_KEYS", 3
    ):  # fmt: skip
        run(go)


@pytest.mark.parametrize("flushed", [False, True])
def test_a_duplicate_written_while_the_index_is_built_is_found(flushed: bool) -> None:
    """It is made after both rows were compared, so only the keys noted since tell."""

    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a"), (2, 2, "b")])
        if flushed:
            await store.flush()
        building = store.build_index(with_index(True), BY_T)
        await building.run()
        other = store.begin()
        await now(other.begin_write([SHARD]))
        (row,) = await now(other.lookup(SHARD, BY_K, [(2,)], for_update=True))
        await now(other.update(SHARD, [(row.row_id, (2, 2, "a"))]))
        await now(other.commit())
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        with pytest.raises(DuplicateKey) as caught:
            await now(txn.alter_shard(with_index(True)))
        assert caught.value.key == ("a",)
        txn.rollback()
        building.close()
        store.validate()
        await store.close()

    run(go)


def test_a_key_that_changes_hands_within_a_large_commit_is_no_duplicate() -> None:
    """Such a commit is applied in slices: for a while two rows have the key, but never at any timestamp."""

    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, k, f"{k}") for k in range(200)])
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        found = [r async for chunk in txn.scan(SHARD) for r in chunk]
        await now(txn.insert(SHARD, [(1000, 0, "7")]))
        await now(txn.update(SHARD, [(r.row_id, (*r.values[:2], f"{r.values[2]}.")) for r in found[10:]]))
        await now(txn.delete(SHARD, [r.row_id for r in found if r.values[2] == "7"]))
        with mock.patch.object(applying, "STAGE_ROWS", 1), mock.patch.object(
            group_commit, "STAGE_BYTES", 100
        ):  # fmt: skip
            committed = asyncio.ensure_future(now(txn.commit()))
            while store.core.staging is None:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            await build(store, with_index(True))
            await committed
        assert await rows_by_index(store) == await rows_of(store)
        store.validate()
        await store.close()

    run(go)


def test_nulls_are_no_duplicates_unless_the_index_says_so() -> None:
    async def go() -> None:
        for distinct in (True, False):
            store = await open_memory_store()
            await make_table(store, [(1, 1, None), (2, 2, None)])
            index = ShardIndex(index=BY_T, attnums=(3,), unique=True, nulls_distinct=distinct)
            schema = dataclasses.replace(spec(version=2), indexes=(*spec().indexes, index))
            if distinct:
                await build(store, schema)
            else:
                with pytest.raises(DuplicateKey):
                    await build(store, schema)
            await store.close()

    run(go)


def test_a_guarded_index_compares_the_keys_whose_last_column_is_not_null() -> None:
    async def go() -> None:
        for rows, twice in (
            ([(1, 1, None), (2, 1, None)], False),
            ([(1, None, "t"), (2, None, "u")], False),
            ([(1, None, "t"), (2, None, "t")], True),
        ):
            for flushed in (False, True):
                store = await open_memory_store()
                await make_table(store, rows)
                if flushed:
                    await store.flush()
                index = ShardIndex(
                    index=BY_T, attnums=(2, 3), unique=True, nulls_distinct=False, guarded=True
                )
                schema = dataclasses.replace(spec(version=2), indexes=(*spec().indexes, index))
                if twice:
                    with pytest.raises(DuplicateKey):
                        await build(store, schema)
                else:
                    await build(store, schema)
                await store.close()

    run(go)


def test_an_abandoned_build_leaves_nothing_and_upkeep_goes_on() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, k, "t") for k in range(20)])
        await store.flush()
        building = store.build_index(with_index(False), BY_T)
        running = asyncio.ensure_future(building.run())
        for _ in range(4):
            await asyncio.sleep(0)
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        assert isinstance(generation.indexes[BY_T], BuildingIndex)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        building.close()
        building.close()
        assert BY_T not in generation.indexes
        assert generation.pinned == len(store.core.holds) == len(store.core.builds) == 0
        await store.flush()
        await build(store, with_index(False))
        assert await rows_by_index(store) == await rows_of(store)
        await store.close()

    run(go)


def test_a_rolled_back_alter_does_not_leave_a_half_kept_index() -> None:
    """After the rollback nobody keeps the index up, so a second ALTER must not take it for complete."""

    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a")])
        building = store.build_index(with_index(False), BY_T)
        await building.run()
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        mark = txn.savepoint()
        await now(txn.alter_shard(with_index(False)))
        txn.rollback_to(mark)
        await now(txn.insert(SHARD, [(2, 2, "b")]))
        await now(txn.alter_shard(with_index(False)))
        await now(txn.commit())
        building.close()
        assert await rows_by_index(store) == [(1, 1, "a"), (2, 2, "b")]
        store.validate()
        await store.close()

    run(go)


def test_a_shard_emptied_or_gone_meanwhile() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a"), (2, 2, "a")])
        building = store.build_index(with_index(False), BY_T)
        await building.run()
        other = store.begin()
        await now(other.truncate(SHARD))
        await now(other.insert(SHARD, [(3, 3, "c")]))
        await now(other.commit())
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.alter_shard(with_index(False)))
        await now(txn.commit())
        building.close()
        assert await rows_by_index(store) == [(3, 3, "c")]
        other = store.begin()
        await now(other.drop_shard(SHARD))
        await now(other.commit())
        building = store.build_index(with_index(False, 3), BY_T)
        with pytest.raises(SchemaChanged):
            await building.run()
        building.close()
        assert len(store.core.holds) == 0
        await store.close()

    run(go)


def test_a_column_added_meanwhile_does_not_disturb() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a"), (2, 2, "b")])
        await store.flush()
        building = store.build_index(with_index(True), BY_T)
        await building.run()
        wide = (*spec().columns, ShardColumn(attnum=4, type=INT, missing_value=7))
        txn = store.begin()
        await now(txn.alter_shard(dataclasses.replace(spec(version=2), columns=wide)))
        await now(txn.commit())
        txn = store.begin()
        await now(txn.alter_shard(dataclasses.replace(with_index(True, 3), columns=wide)))
        await now(txn.commit())
        building.close()
        assert await rows_by_index(store) == [(1, 1, "a", 7), (2, 2, "b", 7)]
        store.validate()
        await store.close()

    run(go)


def test_sidecars_of_builds_that_were_cut_off_and_of_dropped_indexes_go_at_the_next_start() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(k, k, str(k)) for k in range(KEYS)])
        await store.flush()
        ref = store.core.log.manifests[SHARD].parts[0].ref
        await store.core.log.build_sidecar(ref, with_index(False), BY_T)  # and no commit comes
        left = f"{ref.name}.x{BY_T}"
        assert left in disk.blobs
        disk.crash()
        store = await open_memory_store(disk)
        assert store.core.log._sweeper is not None
        await store.core.log._sweeper
        assert left not in disk.blobs
        assert f"{ref.name}.x10" in disk.blobs, "that of an index that is there stays"
        building = store.build_index(with_index(False), BY_T)
        await building.run()
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.alter_shard(with_index(False)))
        await now(txn.commit())
        building.close()
        await tear_away(store, disk)
        store = await open_memory_store(disk)
        assert store.core.log._sweeper is not None
        await store.core.log._sweeper
        assert left in disk.blobs, "only the log defines the index, and it is there"
        assert len(await rows_by_index(store)) == KEYS
        await store.close()

    run(go)
