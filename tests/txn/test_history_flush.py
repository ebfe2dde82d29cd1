"""A flush takes superseded versions out of memory: what promotion has to know of them is not lost (txn.transaction.scan_watch).

scan at 10 ── row of a part deleted at 20 ── flush with history at 30 ── promotion: the deletion is still a conflict
"""

from __future__ import annotations

import asyncio
from typing import Any
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.store import SHARD, make_table, now, open_memory_store, settle, spec
from txn.base.errors import WriteConflict
from txn.base.types import RowId, ShardId
from txn.mvcc.generation import Generation
from txn.store import ShardStore
from txn.transaction import coordinator

OTHER = ShardId(2)


def generation_of(store: ShardStore, shard: ShardId = SHARD) -> Generation:
    generation = store.core.shards[shard].latest.generation
    assert generation is not None
    return generation


async def change(store: ShardStore, row: int, values: tuple[Any, ...] | None, shard: ShardId = SHARD) -> None:
    """Commit an update of one row, or its deletion (no values)."""
    txn = store.begin()
    await now(txn.begin_write([shard]))
    if values is None:
        assert await now(txn.delete(shard, [RowId(row)])) == [True]
    else:
        assert await now(txn.update(shard, [(RowId(row), values)])) == [True]
    await now(txn.commit())


async def scan(txn: Any, shard: ShardId = SHARD) -> int:
    """Look for rows with an odd key; returns how many rows there are."""
    return sum([len(rows) async for rows in txn.scan(shard, predicate=lambda row: row[0] % 2 == 1)])


def test_a_deletion_in_a_part_is_a_conflict_after_what_was_superseded_has_left_memory() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(1, 6)])
        await store.flush()
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        (hot,) = await now(txn.insert(SHARD, [(100, 0, "x")]))
        await now(txn.commit())
        await change(store, hot, (100, 1, "y"))  # so that there is something superseded
        reader = store.begin()
        assert await scan(reader) == 6
        await change(store, 3, None)
        await store.flush(SHARD, history=True)
        with pytest.raises(WriteConflict) as conflict:
            await now(reader.begin_write([SHARD]))
        assert conflict.value.key == (3,), "the tombstone is still there to name it"
        reader.rollback()
        store.core.vacuum()
        assert not generation_of(store).rows, "and goes when nobody needs it"
        store.validate()
        await store.close()

    run(body)


def test_a_deletion_is_a_conflict_though_its_row_has_left_memory_altogether() -> None:
    """The row's chain goes on below what a part has: the flush drops all of it, the tombstone included."""

    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(1, 6)])
        old = store.begin(read_only=True)  # keeps what the next update supersedes
        await change(store, 3, (3, 1, "y"))
        await store.flush()
        reader = store.begin()
        assert await scan(reader) == 5
        await change(store, 3, None)
        await store.flush(SHARD, history=True)
        assert not generation_of(store).rows
        assert not store.core.garbage
        with pytest.raises(WriteConflict):
            await now(reader.begin_write([SHARD]))
        reader.rollback()
        old.rollback()
        store.validate()
        await store.close()

    run(body)


def test_changes_of_other_tables_are_found_while_the_garbage_queue_is_gone_through() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(1, 6)])
        await make_table(store, [(k, 0, "x") for k in range(1, 6)], spec(OTHER))
        await store.flush()
        reader = store.begin()
        assert await scan(reader, OTHER) == 5
        await change(store, 3, None, OTHER)
        for row in range(1, 5):
            await change(store, row, None)
        with mock.patch.object(coordinator, "PURGED_ROWS", 1):
            purge = asyncio.ensure_future(store.core.purge(generation_of(store), store.read_ts()))
            await asyncio.sleep(0)
            assert store.core.purging
            with pytest.raises(WriteConflict) as conflict:
                await now(reader.begin_write([OTHER]))
            assert store.core.purging
            assert conflict.value.key == (3,)
            reader.rollback()
            await purge
        assert not store.core.aside
        await settle()
        await store.close()

    run(body)
