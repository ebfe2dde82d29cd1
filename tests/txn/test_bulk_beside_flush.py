"""A bulk load beside others: rows that a flush moves to a part still count as duplicates, and the loop makes no columns."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store
from txn.base.errors import DuplicateKey
from txn.persist.memory import MemoryDisk
from txn.transaction import bulk


def test_a_flush_during_a_load_hides_no_duplicate() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(39, 3, "old")])

        async def batches() -> AsyncIterator[Any]:
            await store.flush()
            yield pa.record_batch(
                [pa.array([39]), pa.array([3]), pa.array(["new"])], names=["c1", "c2", "c3"]
            )

        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        with pytest.raises(DuplicateKey):
            await txn.bulk_insert(SHARD, batches())
        txn.rollback()
        await store.close()

    run(go)


def test_a_load_s_columns_are_made_and_freed_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Giving a load's memory back to the system takes milliseconds."""

    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [])
        off_the_loop = False
        made: list[bool] = []
        freed: list[bool] = []

        async def offload(work: Any) -> Any:
            nonlocal off_the_loop
            off_the_loop = True
            try:
                return work()
            finally:
                off_the_loop = False

        assemble = bulk._assemble

        def assembling(schema: Any, gathered: Any) -> Any:
            made.append(off_the_loop)
            tables = assemble(schema, gathered)
            weakref.finalize(tables[0], lambda: freed.append(off_the_loop))
            return tables

        monkeypatch.setattr(bulk, "_assemble", assembling)
        store.core.offload = offload
        txn = store.begin()
        await now(txn.begin_write([SHARD]))

        async def batches() -> AsyncIterator[Any]:
            for key in (1, 2):
                yield pa.record_batch(
                    [pa.array([key]), pa.array([key]), pa.array(["new"])], names=["c1", "c2", "c3"]
                )

        assert await txn.bulk_insert(SHARD, batches()) == 2
        await now(txn.commit())
        assert made == [True]
        assert freed == [True]
        reader = store.begin()
        [row] = await now(reader.lookup(SHARD, BY_K, [(2,)]))
        assert row.values == (2, 2, "new")
        reader.rollback()
        await store.close()

    run(go)


def test_a_load_that_is_cancelled_at_any_turn_leaves_no_file() -> None:
    async def cancelled_after(turns: int) -> bool:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [])

        async def batches() -> AsyncIterator[Any]:
            yield pa.record_batch([pa.array([1]), pa.array([3]), pa.array(["x"])], names=["c1", "c2", "c3"])

        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        load = asyncio.ensure_future(txn.bulk_insert(SHARD, batches()))
        for _ in range(turns):
            await asyncio.sleep(0)
        early = not load.done()
        load.cancel()
        await asyncio.wait([load])
        txn.rollback()
        while store.core.log._removing:
            await asyncio.wait(store.core.log._removing)
        await store.flush()
        assert not disk.blobs
        await store.close()
        return early

    async def go() -> None:
        turns = 0
        while await cancelled_after(turns):
            turns += 1
        assert turns > 10

    run(go)


def test_the_search_for_duplicates_stops_when_its_load_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [])
        asked: list[Callable[[], bool]] = []
        searching = asyncio.Event()

        def first_duplicate(*_args: Any, stopped: Callable[[], bool]) -> None:
            assert not stopped()
            asked.append(stopped)

        async def offload(work: Any) -> Any:
            found = work()
            if asked:
                searching.set()
                await asyncio.sleep(3600)
            return found

        monkeypatch.setattr(bulk, "first_duplicate", first_duplicate)
        monkeypatch.setattr(store.core, "offload", offload)

        async def batches() -> AsyncIterator[Any]:
            yield pa.record_batch([pa.array([1]), pa.array([3]), pa.array(["x"])], names=["c1", "c2", "c3"])

        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        load = asyncio.ensure_future(txn.bulk_insert(SHARD, batches()))
        await searching.wait()
        assert not asked[0]()
        load.cancel()
        await asyncio.wait([load])
        assert asked[0]()
        txn.rollback()
        monkeypatch.undo()
        await store.close()

    run(go)
