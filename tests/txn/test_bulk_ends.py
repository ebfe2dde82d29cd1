"""Many rows that end at once, named by part and position: seen at once within, by all after the commit, and after a crash."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import AsyncIterator
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from tests.support.crashes import State, three_lives
from tests.support.durable import run
from tests.support.store import (
    BY_K,
    SHARD,
    make_table,
    must_wait,
    now,
    open_memory_store,
    settle,
    snapshot_rows,
    tear_away,
    tiny_limits,
)
from txn.base.errors import DuplicateKey, TxnError, WriteConflict
from txn.base.types import KeyRange, Timestamp
from txn.mvcc import parts as parts_module
from txn.persist.memory import MemoryDisk
from txn.persist.parts.part import Part
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions
from txn.upkeep import flush_job
from txn.values.encoding import decode_entry

Row = tuple[int, int, str]
START = [(k, 0, f"r{k}") for k in range(24)]


async def begin(store: ShardStore) -> Any:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    return txn


async def ids_of(txn: Any, wanted: Any) -> list[int]:
    """Return the ids of the rows that a transaction sees and that are wanted."""
    return [row_id for row_id, _b, row in snapshot_rows(await now(txn.snapshot(SHARD))) if wanted(row)]


async def rows_of(txn: Any) -> list[Row]:
    """Return what a transaction sees: by snapshot, scan and range, and key by key."""
    found = sorted(row for _r, _b, row in snapshot_rows(await now(txn.snapshot(SHARD))))
    assert [row.values for row in await now(txn.range(SHARD, BY_K, KeyRange()))] == found
    by_key = await now(txn.lookup(SHARD, BY_K, [(k,) for k in range(40)]))
    assert sorted(row.values for row in by_key) == found
    assert sorted([row.values async for rows in txn.scan(SHARD) for row in rows]) == found
    return found


async def committed(store: ShardStore, at: Timestamp | None = None) -> list[Row]:
    reader = store.begin(read_only=True, at=at)
    found = await rows_of(reader)
    reader.rollback()
    return found


async def make(disk: MemoryDisk, options: TxnOptions | None = None) -> ShardStore:
    """Two parts, rows of one of which were changed since, and hot rows."""
    store = await open_memory_store(disk, options)
    await make_table(store, START[:10])
    await store.flush()
    txn = await begin(store)
    await now(txn.insert(SHARD, START[10:20]))
    [row] = await now(txn.lookup(SHARD, BY_K, [(3,)], for_update=True))
    await now(txn.update(SHARD, [(row.row_id, (3, 5, "again"))]))
    await now(txn.commit())
    await store.flush()
    txn = await begin(store)
    await now(txn.insert(SHARD, START[20:]))
    [row] = await now(txn.lookup(SHARD, BY_K, [(4,)], for_update=True))
    await now(txn.update(SHARD, [(row.row_id, (4, 6, "hot"))]))
    await now(txn.commit())
    return store


async def reopened(store: ShardStore, disk: MemoryDisk) -> ShardStore:
    await store.close()
    again = await open_memory_store(disk)
    again.validate()
    return again


def odd(row: Row) -> bool:
    return row[0] % 2 == 1


def test_ended_rows_go_within_then_for_all_and_stay_gone() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await make(disk)
        before = await committed(store)
        txn = await begin(store)
        ids = await ids_of(txn, odd)
        assert await txn.bulk_delete(SHARD, pa.array(ids + ids[:3], pa.int64())) == 12, "each counts once"
        assert len(txn.own_of(SHARD).rows) == 2, "rows of parts are bits, hot rows intents"
        assert await rows_of(txn) == before, "a statement does not see its own changes"
        txn.next_statement()
        even = [row for row in before if not odd(row)]
        assert await rows_of(txn) == even
        mark = txn.savepoint()
        assert await txn.bulk_delete(SHARD, array("q", await ids_of(txn, lambda r: r[0] < 8))) == 4
        txn.next_statement()
        assert await rows_of(txn) == [row for row in even if row[0] >= 8]
        txn.rollback_to(mark)
        assert await rows_of(txn) == even
        # A key that was ended is free, one that was not is not.
        await now(txn.insert(SHARD, [(1, 9, "new")]))
        with pytest.raises(DuplicateKey):
            await now(txn.insert(SHARD, [(2, 9, "new")]))
        txn.next_statement()
        assert await txn.bulk_delete(SHARD, array("q", await ids_of(txn, lambda r: r[0] == 1))) == 1
        await now(txn.insert(SHARD, [(1, 10, "newer")]))
        assert await committed(store) == before, "nobody else sees it yet"
        ts = await now(txn.commit())
        after = sorted([*even, (1, 10, "newer")])
        assert await committed(store) == after
        store.validate()
        store = await reopened(store, disk)
        assert await committed(store) == after, "the log is replayed"
        assert ts
        await store.flush()
        assert await committed(store) == after
        store = await reopened(store, disk)
        assert await committed(store) == after
        await store.close()

    run(go)


def test_the_log_names_parts_and_a_rollback_leaves_nothing() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await make(disk)
        before = await committed(store)
        txn = await begin(store)
        assert await txn.bulk_delete(SHARD, array("q", await ids_of(txn, lambda _r: True))) == 24
        txn.rollback()
        assert await committed(store) == before
        txn = await begin(store)
        await txn.bulk_delete(SHARD, array("q", await ids_of(txn, lambda _r: True)))
        await now(txn.commit())
        entries = [decode_entry(data) for _seq, data in await store.core.log._consensus.read_log(1, 1 << 20)]
        last: Any = entries[-1].writes[-1]
        [writes] = last.shards
        assert len(writes.ended) == 2
        assert len(writes.ops) == 5
        assert await committed(store) == []
        await store.close()

    run(go)


def test_readers_of_before_still_see_what_has_ended() -> None:
    async def go() -> None:
        store = await make(MemoryDisk())
        reader = store.begin(read_only=True)
        before = await rows_of(reader)
        txn = await begin(store)
        await txn.bulk_delete(SHARD, array("q", await ids_of(txn, odd)))
        await now(txn.commit())
        await store.flush()
        assert await rows_of(reader) == before
        reader.rollback()
        assert await committed(store) == [row for row in before if not odd(row)]
        await store.close()

    run(go)


def test_rows_in_memory_and_in_a_part_end_in_both() -> None:
    """So they are after a flush, while somebody may read what they were before."""

    async def go() -> None:
        disk = MemoryDisk()
        store = await make(disk)
        reader = store.begin(read_only=True)
        txn = await begin(store)
        for row in await now(txn.range(SHARD, BY_K, KeyRange(), for_update=True)):
            await now(txn.update(SHARD, [(row.row_id, (row.values[0], 7, "once more"))]))
        await now(txn.commit())
        await store.flush()
        assert {21, 23} <= {*store.core.shards[SHARD].latest.generation.rows}
        before = await committed(store)
        txn = await begin(store)
        assert await txn.bulk_delete(SHARD, array("q", await ids_of(txn, odd))) == 12
        await now(txn.commit())
        after = [row for row in before if not odd(row)]
        assert await committed(store) == after
        store.validate()
        reader.rollback()
        store.core.vacuum()
        assert await committed(store) == after
        store = await reopened(store, disk)
        assert await committed(store) == after
        await store.close()

    run(go)


def test_upkeep_waits_for_the_commit() -> None:
    """A merge between the statement and its commit would move the rows that are named by position."""

    async def go() -> None:
        disk = MemoryDisk()
        store = await make(disk)
        before = await committed(store)
        txn = await begin(store)
        await txn.bulk_delete(SHARD, array("q", await ids_of(txn, lambda r: r[0] in (0, 11))))
        with mock.patch.object(flush_job, "choose", lambda sizes, _rows: list(range(len(sizes)))):
            await store.flush()
            await now(txn.commit())
            after = [row for row in before if row[0] not in (0, 11)]
            assert await committed(store) == after
            await store.flush()
        assert await committed(store) == after
        store = await reopened(store, disk)
        assert await committed(store) == after
        await store.close()

    run(go)


def test_parts_that_no_manifest_names_yet_are_not_named_in_the_log() -> None:
    """After a crash they are not there: the rows are hot again."""

    async def go() -> None:
        disk = MemoryDisk()
        store = await make(disk)
        before = await committed(store)
        checkpoint = store.core.log.checkpoint
        stored = asyncio.Event()

        async def later(manifest: Any) -> None:
            await stored.wait()
            await checkpoint(manifest)

        with mock.patch.object(store.core.log, "checkpoint", later):
            flushing = asyncio.ensure_future(store.flush())
            await settle()
            txn = await begin(store)
            ids = array("q", await ids_of(txn, lambda r: r[0] in (0, 21)))
            deleting = must_wait(txn.bulk_delete(SHARD, ids))
            await settle()
            assert not deleting.done(), "a new part is about to be named"
            stored.set()
            await flushing
        assert await deleting == 2
        assert not txn.own_of(SHARD).rows
        await now(txn.commit())
        with mock.patch.object(store.core.log, "checkpoint", side_effect=TxnError("no")):
            txn = await begin(store)
            await now(txn.insert(SHARD, [(30, 0, "x")]))
            await now(txn.commit())
            with pytest.raises(TxnError):
                await store.flush()
            txn = await begin(store)
            ids = array("q", await ids_of(txn, lambda r: r[0] in (1, 30)))
            assert await txn.bulk_delete(SHARD, ids) == 2
            assert len(txn.own_of(SHARD).rows) == 1
            await now(txn.commit())
        after = [row for row in before if row[0] not in (0, 1, 21)]
        assert await committed(store) == after
        await tear_away(store, disk)
        store = await open_memory_store(disk)
        assert await committed(store) == after
        await store.close()

    run(go)


@pytest.mark.parametrize("reads_first", [True, False])
def test_who_has_scanned_what_ended_cannot_commit_what_follows_from_it(reads_first: bool) -> None:
    async def go() -> None:
        store = await make(MemoryDisk())
        other = store.begin()
        if not reads_first:
            await now(other.begin_write([SHARD]))
        seen = sorted([row.values async for rows in other.scan(SHARD) for row in rows])
        if not reads_first:
            store.core.locks.demote(other.owner, SHARD, None)
        txn = await begin(store)
        assert await txn.bulk_delete(SHARD, array("q", await ids_of(txn, odd))) == 12
        await now(txn.commit())

        async def follow() -> None:
            await now(other.begin_write([SHARD]))
            await now(other.insert(SHARD, [(90, len(seen), "count")]))
            await now(other.commit())

        with pytest.raises(WriteConflict):
            await follow()
        other.rollback()
        await store.close()

    run(go)


def test_nothing_is_done_while_others_write_the_table() -> None:
    async def go() -> None:
        store = await make(MemoryDisk())
        other = await begin(store)
        await now(other.insert(SHARD, [(50, 0, "mine")]))
        txn = await begin(store)
        assert await txn.bulk_delete(SHARD, array("q", await ids_of(txn, odd))) is None
        other.rollback()
        txn.rollback()
        await store.close()

    run(go)


def test_many_rows_of_a_part_end_by_columns() -> None:
    """Beyond what goes one by one: dense ends, an idempotent replay, a compaction."""
    many = [(k, k % 7, "x") for k in range(5000)]

    async def batches() -> AsyncIterator[Any]:
        columns = [pa.array([row[i] for row in many]) for i in range(3)]
        yield pa.RecordBatch.from_arrays(columns, names=["c1", "c2", "c3"])

    async def count(store: ShardStore) -> list[int]:
        reader = store.begin(read_only=True)
        found = [row[0] for _r, _b, row in snapshot_rows(await now(reader.snapshot(SHARD)))]
        reader.rollback()
        return sorted(found)

    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store)
        txn = await begin(store)
        await txn.bulk_insert(SHARD, batches())
        await now(txn.commit())
        for wanted, left in (
            (lambda r: r[0] % 5 == 0, [k for k in range(5000) if k % 5]),
            (lambda r: r[0] >= 1000, [k for k in range(1000) if k % 5]),
        ):
            txn = await begin(store)
            ids = await ids_of(txn, wanted)
            assert await txn.bulk_delete(SHARD, array("q", ids)) == len(ids)
            assert not txn.own_of(SHARD).rows
            await now(txn.commit())
            assert await count(store) == left
            # The manifest has the ends of now, and the entry is replayed over it.
            store = await reopened(store, disk)
            assert await count(store) == left
        await store.flush()
        store = await reopened(store, disk)
        assert await count(store) == left
        await store.close()

    run(go)


async def work(
    store: ShardStore, rng: random.Random, acknowledged: list[State], pending: list[State]
) -> None:
    """One client inserts, and ends many rows at once; now and then it flushes."""
    for number in range(40):
        state = dict(acknowledged[-1])
        txn = await begin(store)
        free = [k for k in range(30) if k not in state]
        new = [(k, number, f"{number}.{k}") for k in rng.sample(free, min(len(free), 6))]
        await now(txn.insert(SHARD, new))
        state.update((row[0], row) for row in new)
        txn.next_statement()
        if rng.random() < 0.7:
            gone = set(rng.sample(sorted(state), len(state) // 2))
            mark = txn.savepoint()
            ids = array("q", await ids_of(txn, lambda row, gone=gone: row[0] in gone))
            assert await txn.bulk_delete(SHARD, ids) == len(gone)
            txn.next_statement()
            if rng.random() < 0.2:
                txn.rollback_to(mark)
            else:
                for k in gone:
                    del state[k]
            assert [row.values for row in await now(txn.range(SHARD, BY_K, KeyRange()))] == sorted(
                state.values()
            )
        pending[:] = [state]
        await now(txn.commit())
        acknowledged.append(state)
        pending.clear()
        if rng.random() < 0.5:
            await store.flush()


@pytest.mark.parametrize("seed", range(10))
def test_a_crash_at_any_step_leaves_all_of_it_or_nothing(seed: int) -> None:
    with (
        tiny_limits(),
        mock.patch("txn.wal.txns._RETRY_S", 0.0001),
        mock.patch.object(parts_module, "_ARRAY_ROWS", 2),
    ):
        run(lambda: three_lives(random.Random(seed), work, 160))


def test_row_ids_of_a_part_are_those_of_its_rows() -> None:
    """Consecutive ones are computed, others are the file's own bytes."""

    async def go() -> None:
        store = await make(MemoryDisk())
        for part in store.core.shards[SHARD].latest.generation.parts:
            file: Part = part.file
            assert file.row_ids().to_pylist() == [file.row_id(p) for p in range(part.ref.rows)]
        await store.close()

    run(go)
