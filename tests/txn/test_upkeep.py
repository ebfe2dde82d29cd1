"""Upkeep survives whoever asked for it, and its own bugs; writers who wait for memory are not waited for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import SHARD, make_table, now, open_memory_store, settle, spec, tiny_limits
from txn.base.errors import DeadlineExceeded
from txn.base.types import IndexId, ShardColumn, ShardIndex
from txn.log.durable import StorageConfig
from txn.persist import reserve
from txn.persist.blobs.files import LocalBlob
from txn.store import ShardStore, open_store
from txn.transaction.coordinator import Coordinator, TxnOptions
from txn.upkeep import flush

BY_T = IndexId(12)


async def insert(store: ShardStore, *keys: int) -> None:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    await now(txn.insert(SHARD, [(k, 0, "x") for k in keys]))
    await now(txn.commit())


async def keys_of(store: ShardStore) -> list[int]:
    reader = store.begin(read_only=True)
    rows = [r.values[0] async for chunk in reader.scan(SHARD) for r in chunk]
    reader.rollback()
    return sorted(rows)


@pytest.mark.parametrize("history", [False, True])
def test_a_flush_whose_asker_is_cancelled_at_any_turn_goes_on_to_its_end(history: bool) -> None:
    """Else the table would stay half flushed: no flush and no ALTER TABLE would ever be possible again."""

    async def cancelled_after(turns: int) -> bool:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(30)])
        reader = store.begin(read_only=True)
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        found = [r async for chunk in txn.scan(SHARD) for r in chunk]
        await now(txn.update(SHARD, [(r.row_id, (r.values[0], 1, "y")) for r in found[:20]]))
        await now(txn.commit())
        asked = asyncio.ensure_future(store.flush(SHARD, history=history))
        for _ in range(turns):
            await asyncio.sleep(0)
        early = not asked.done()
        asked.cancel()
        await asyncio.wait([asked])
        await insert(store, 100)
        alter = store.begin()
        wider = spec(version=2)
        wider = replace(wider, columns=(*wider.columns, ShardColumn(attnum=4, type=wider.columns[0].type)))
        await now(alter.alter_shard(wider))
        await now(alter.commit())
        reader.rollback()
        await store.flush()
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        assert not generation.flushing
        assert not generation.log.current
        assert await keys_of(store) == [*range(30), 100]
        store.core.vacuum()
        store.validate()
        await store.close()
        return early

    async def body() -> None:
        turns = 0
        with tiny_limits():
            while await cancelled_after(turns):
                turns += 1
        assert turns > 10

    run(body)


def test_a_flush_that_nobody_waits_for_any_more_ends_before_the_store_does() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(30)])
        asked = asyncio.ensure_future(store.flush())
        await asyncio.sleep(0)
        asked.cancel()
        await store.close()
        assert store.core.log.manifests[SHARD].parts

    run(body)


def test_a_job_looks_at_its_own_shard_alone() -> None:
    """Else checkpoints of n tables, as after a schema was made, take the square of n on the loop that answers queries."""

    async def work() -> None:
        store = await open_memory_store()
        await make_table(store, [(0, 0, "x")])
        sweep = Coordinator.forgetting
        with mock.patch.object(Coordinator, "forgetting", autospec=True, side_effect=sweep) as swept:
            for key in range(1, 21):
                await insert(store, key)
                await store.flush(SHARD)
        assert swept.call_count < 10  # those of the look once a second
        await store.close()

    run(work)


def test_a_bug_in_a_job_does_not_end_upkeep(caplog: pytest.LogCaptureFixture) -> None:
    """Without it memory would fill, and then all writers would wait for ever."""
    calls: list[int] = []
    real = flush.job

    async def job(*args: Any, **how: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError("a bug")
        await real(*args, **how)

    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(hot_rows=5))
        await make_table(store)
        await insert(store, *range(10))
        while len(calls) < 2:
            await insert(store, 100 + len(await keys_of(store)))
            await asyncio.sleep(0.001)
        await store.idle()
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        assert generation.parts
        await store.close()

    with mock.patch.object(flush, "job", job), mock.patch.object(flush, "RETRY_S", 0.0):
        run(body)
    assert "upkeep failed" in caplog.text


def test_who_makes_an_index_known_does_not_wait_for_memory_that_the_index_keeps() -> None:
    """While an index is being built its table is not flushed; so its end must not wait for a flush."""
    schema = spec(version=2)
    schema = replace(schema, indexes=(*schema.indexes, ShardIndex(index=BY_T, attnums=(3,), unique=False)))

    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(hot_bytes=2000))
        await make_table(store)
        build = store.build_index(schema, BY_T)
        await build.run()
        count = 0
        while store.core.crowded is None:
            await insert(store, count)
            count += 1
        writer = asyncio.ensure_future(insert(store, 1000))
        await settle()
        assert not writer.done()
        txn = store.begin()
        txn.urgent = True
        await now(txn.alter_shard(schema))
        await now(txn.commit())
        build.close()
        await writer
        assert await keys_of(store) == [*range(count), 1000]
        await store.close()

    run(body)


def _batch(key: int) -> Any:
    columns = [pa.array([key], pa.int64()), pa.array([0], pa.int64()), pa.array(["x"])]
    return pa.record_batch(columns, names=["c1", "c2", "c3"])


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_load_that_outlives_its_transaction_leaves_no_files(after: int) -> None:
    """The deadline passes, or the connection ends, while the load reads, writes or compares."""

    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(part_bytes=1))
        await make_table(store)
        txn = store.begin()
        expire = DeadlineExceeded("too late")

        def end() -> None:
            txn.life._ended_by = expire
            txn.rollback()

        async def batches() -> AsyncIterator[Any]:
            for key in range(3):
                if key == after:
                    end()
                yield _batch(key)

        with pytest.raises(DeadlineExceeded):
            await txn.bulk_insert(SHARD, batches())
        assert not txn.journal
        assert not store.core._new_parts
        await store.flush()
        assert [name for name in await store.core.log.blob.list("") if name.startswith(f"{SHARD}/")] == []
        assert not store.core.doomed_parts
        await store.close()

    run(body)


def test_a_load_whose_transaction_ends_while_a_part_is_written_leaves_no_file() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store)
        txn = store.begin()
        log = store.core.log
        real = log.write_part

        async def write_part(*args: Any, **how: Any) -> Any:
            ref = await real(*args, **how)
            txn.rollback()
            return ref

        async def batches() -> AsyncIterator[Any]:
            yield _batch(1)

        with mock.patch.object(log, "write_part", write_part), pytest.raises(Exception, match="has ended"):
            await txn.bulk_insert(SHARD, batches())
        assert not store.core._new_parts
        await store.flush()
        assert [name for name in await log.blob.list("") if name.startswith(f"{SHARD}/")] == []
        await store.close()

    run(body)


def test_a_load_that_is_cancelled_while_a_thread_writes_leaves_no_file(tmp_path: Path) -> None:
    """The thread cannot be stopped: what it writes goes when it has ended."""
    writing, go_on = threading.Event(), threading.Event()
    real = LocalBlob._publish

    def publish(self: LocalBlob, *args: Any) -> int:
        writing.set()
        assert go_on.wait(20)
        return real(self, *args)

    async def body() -> None:
        store = await open_store(StorageConfig(path=tmp_path))
        await make_table(store)
        txn = store.begin()

        async def batches() -> AsyncIterator[Any]:
            yield _batch(1)

        with mock.patch.object(LocalBlob, "_publish", publish):
            load = asyncio.ensure_future(txn.bulk_insert(SHARD, batches()))
            await asyncio.to_thread(writing.wait, 20)
            load.cancel()
            await asyncio.wait([load])
            assert load.cancelled()
            txn.rollback()
            go_on.set()
            await store.close()

    run(body)
    assert [path for path in tmp_path.glob(f"blobs/{SHARD}/*") if path.suffix != ".ends"] == []


def test_mapped_pages_past_the_bound_are_let_go_of() -> None:
    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(mapped_bytes=1000))
        await make_table(store, [(k, 0, "x") for k in range(30)])
        await store.flush(SHARD)
        [part] = store.core.shards[SHARD].latest.generation.parts  # type: ignore[union-attr]
        let_go = asyncio.Event()

        def forget() -> Any:
            let_go.set()
            yield

        with (
            mock.patch.object(part.file, "forget_pages", forget),
            mock.patch.object(flush, "TICK_S", 0.0),
            mock.patch.object(flush, "resident_bytes", return_value=(10**9, 1000)) as resident,
        ):
            for _ in range(3):
                store._flusher._wake.set()
                await settle()
            assert not let_go.is_set()
            resident.return_value = (10**9, 1001)
            store._flusher._wake.set()
            await let_go.wait()
        await store.close()

    run(body)


@pytest.mark.parametrize("room", [True, False])
def test_the_past_gives_way_where_no_other_file_can_be_made(room: bool, tmp_path: Path) -> None:
    """Else nothing that is dropped would make room for a file as long as it is kept to be read."""

    async def body() -> None:
        config = StorageConfig(path=tmp_path, reserve_bytes=1 << 16)
        store = await open_store(config, TxnOptions(retention_ms=3_600_000))
        await make_table(store, [(1, 0, "x")])
        await store.flush()
        assert [*tmp_path.glob("blobs/1/*.parquet")]
        txn = store.begin()
        await now(txn.drop_shard(SHARD))
        await now(txn.commit())
        with mock.patch.object(reserve, "no_more_files", return_value=not room):
            await store.flush()
            await store.flush()
        assert bool([*tmp_path.glob("blobs/1/*.parquet")]) is room
        await store.close()

    run(body)
