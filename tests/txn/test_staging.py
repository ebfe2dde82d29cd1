"""Large commits are applied in slices, and nobody can tell (``Coordinator.stage``)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator
from sys import getallocatedblocks
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store, snapshot_rows, spec
from txn.base import huge_values
from txn.base.errors import CommitUnknown, WriteConflict
from txn.base.huge_values import SHARED_BYTES
from txn.base.records import RowOp, WriteSet
from txn.base.types import KeyRange, PhysicalType, RowId, Timestamp
from txn.log import group_commit
from txn.mvcc import applying, vacuum
from txn.mvcc.eviction import dismantle
from txn.mvcc.generation import Generation
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction import coordinator, writes
from txn.values.columns import to_arrow, to_python

ROWS = 300


def small_slices() -> Any:
    """Stage every commit of more than a few rows, 7 rows a slice."""
    return mock.patch.multiple(applying, STAGE_ROWS=7)


async def start(disk: MemoryDisk | None = None) -> ShardStore:
    store = await open_memory_store(disk)
    await make_table(store, [(k, 0, "x") for k in range(ROWS)])
    return store


async def update_all(store: ShardStore, value: int, drop_from: int = ROWS) -> Any:
    """Give all rows a value, delete those from ``drop_from`` on and insert as many new ones; not yet committed."""
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    found = await now(txn.range(SHARD, BY_K, KeyRange(), for_update=True))
    await now(
        txn.update(SHARD, [(r.row_id, (r.values[0], value, "y")) for r in found if r.values[0] < drop_from])
    )
    await now(txn.delete(SHARD, [r.row_id for r in found if r.values[0] >= drop_from]))
    await now(txn.insert(SHARD, [(k + 1000, value, "y") for k in range(drop_from, ROWS)]))
    return txn


async def rows_at(store: ShardStore) -> list[tuple[Any, ...]]:
    """Read all rows in every way there is; they must agree."""
    txn = store.begin(read_only=True)
    ranged = [r.values for r in await now(txn.range(SHARD, BY_K, KeyRange()))]
    shown = sorted(v for _r, _b, v in snapshot_rows(await now(txn.snapshot(SHARD))))
    assert shown == ranged
    txn.rollback()
    return ranged


def test_readers_see_all_of_a_large_commit_or_nothing() -> None:
    async def body() -> None:
        store = await start()
        txn = await update_all(store, 1, drop_from=250)
        with (
            small_slices(),
            mock.patch.object(group_commit, "STAGE_BYTES", 100),
            mock.patch.object(writes, "PREPARE_ROWS", 20),
        ):
            committed = asyncio.ensure_future(now(txn.commit()))
            looks = []
            while not committed.done():
                looks.append(await rows_at(store))
                await asyncio.sleep(0)
            await committed
        after = await rows_at(store)
        assert [r[1] for r in after] == [1] * ROWS
        assert after[-1][0] == 1000 + ROWS - 1
        before = [(k, 0, "x") for k in range(ROWS)]
        assert len(looks) > 40
        assert all(look in (before, after) for look in looks)
        store.core.validate()
        await store.close()

    run(body)


def test_no_turn_applies_more_than_a_slice() -> None:
    sizes: list[int] = []
    real = Generation.apply

    def noted(self: Generation, ops: Any, ts: int, over_parts: bool = False) -> None:
        sizes.append(len(ops))
        real(self, ops, ts, over_parts)

    async def body() -> None:
        store = await start()
        txn = await update_all(store, 1)
        with (
            small_slices(),
            mock.patch.object(group_commit, "STAGE_BYTES", 100),
            mock.patch.object(Generation, "apply", noted),
        ):
            await now(txn.commit())
        await store.close()

    run(body)
    assert sum(sizes) == ROWS
    assert max(sizes) <= 7


def test_a_large_commit_that_also_loads_parts_is_applied_in_slices() -> None:
    sizes: list[int] = []
    real = Generation.apply

    def noted(self: Generation, ops: Any, ts: int, over_parts: bool = False) -> None:
        sizes.append(len(ops))
        real(self, ops, ts, over_parts)

    async def loaded() -> AsyncIterator[Any]:
        keys = range(2000, 2000 + ROWS)
        yield pa.record_batch(
            {
                "c1": pa.array(keys, pa.int64()),
                "c2": pa.array([0] * ROWS, pa.int64()),
                "c3": pa.array(["z"] * ROWS),
            }
        )

    async def body() -> None:
        disk = MemoryDisk()
        store = await start(disk)
        before = await rows_at(store)
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        assert await txn.bulk_insert(SHARD, loaded()) == ROWS
        txn.next_statement()
        for value in (
            1,
            2,
        ):  # of rows that were there and of those just loaded, which never were to be seen as they were
            found = await now(txn.range(SHARD, BY_K, KeyRange(), for_update=True))
            await now(txn.update(SHARD, [(r.row_id, (r.values[0], value, "y")) for r in found]))
            txn.next_statement()
        await now(txn.delete(SHARD, [r.row_id for r in found if r.values[0] % 3 == 0]))
        with (
            small_slices(),
            mock.patch.object(group_commit, "STAGE_BYTES", 100),
            mock.patch.object(Generation, "apply", noted),
        ):
            committed = asyncio.ensure_future(now(txn.commit()))
            looks = []
            while not committed.done():
                looks.append(await rows_at(store))
                await asyncio.sleep(0)
            await committed
        keys = [*range(ROWS), *range(2000, 2000 + ROWS)]
        after = [(k, 2, "y") for k in keys if k % 3]
        assert await rows_at(store) == after
        assert len(looks) > 40
        assert all(look in (before, after) for look in looks)
        store.core.validate()
        await store.close()
        again = await open_memory_store(disk)
        assert await rows_at(again) == after
        await again.close()

    run(body)
    assert sum(sizes) >= 2 * ROWS
    assert max(sizes) <= 7


@pytest.mark.parametrize("change", ["rows", "rows of a truncated table", "rows of a new table"])
def test_rows_with_many_indexes_are_applied_in_smaller_slices(change: str) -> None:
    """However few bytes their commit has; also those that come with what makes their table."""
    sizes: list[int] = []
    real = Generation.apply

    def noted(self: Generation, ops: Any, ts: int, over_parts: bool = False) -> None:
        sizes.append(len(ops))
        real(self, ops, ts, over_parts)

    async def body() -> None:
        store = await open_memory_store()
        schema = spec()
        rows = [(k, 0, "x") for k in range(ROWS)]
        if change != "rows of a new table":
            await make_table(store, [(-1, 0, "old")])
        txn = store.begin()
        if change == "rows of a new table":
            txn.create_shard(schema)
        await now(txn.begin_write([SHARD]))
        if change == "rows of a truncated table":
            await now(txn.truncate(SHARD))
        await now(txn.insert(SHARD, rows))
        per_row = 1 + len(schema.indexes)
        with (
            mock.patch.object(group_commit, "STAGE_BYTES", 1 << 30),
            mock.patch.object(group_commit, "STAGE_ENTRIES", ROWS),
            mock.patch.object(applying, "SLICE_ENTRIES", 10 * per_row),
            mock.patch.object(Generation, "apply", noted),
        ):
            ts = await now(txn.commit())
        assert sizes == [10] * (ROWS // 10)
        assert ts == store.read_ts()
        expected = rows if change != "rows" else [(-1, 0, "old"), *rows]
        assert await rows_at(store) == expected
        store.core.validate()
        await store.close()

    run(body)


def test_a_turn_of_the_vacuum_is_shorter_where_there_are_many_indexes() -> None:
    async def body() -> None:
        store = await start()
        core = store.core
        await now((await update_all(store, 1, drop_from=0)).commit())
        domain = next(domain for domain in core.timelines.domains() if domain.garbage)
        before = len(domain.garbage)
        per_row = 1 + len(spec().indexes)
        with mock.patch.object(vacuum, "VACUUM_ENTRIES", 10 * per_row):
            assert core._vacuum_some(domain)
        assert before - len(domain.garbage) == 10
        await store.close()

    run(body)


def test_a_flush_does_not_cut_through_a_commit() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        store = await start(disk)
        txn = await update_all(store, 1, drop_from=200)
        with small_slices(), mock.patch.object(group_commit, "STAGE_BYTES", 100):
            committed = asyncio.ensure_future(now(txn.commit()))
            while store.core.staging is None:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not committed.done()
            flushed = asyncio.ensure_future(store.flush())
            await committed
            await flushed
        expected = await rows_at(store)
        assert [r[1] for r in expected] == [1] * ROWS
        await store.close()
        again = await open_memory_store(disk)
        assert await rows_at(again) == expected
        again.core.validate()
        await again.close()

    run(body)


def test_a_crash_amid_the_slices_loses_nothing() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        store = await start(disk)
        txn = await update_all(store, 1, drop_from=200)
        with small_slices(), mock.patch.object(group_commit, "STAGE_BYTES", 100):
            committed = asyncio.ensure_future(now(txn.commit()))
            while store.core.staging is None:
                await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.gather(committed, return_exceptions=True)
        again = await open_memory_store(disk)
        assert [r[1] for r in await rows_at(again)] == [1] * ROWS
        await again.close()

    run(body)


def test_who_found_nothing_commits_only_when_that_is_readable() -> None:
    """A deleted key is gone for a writer amid the slices; it may not say so before readers can see it."""

    async def body() -> None:
        store = await start()
        txn = await update_all(store, 1, drop_from=0)
        with small_slices(), mock.patch.object(group_commit, "STAGE_BYTES", 100):
            committed = asyncio.ensure_future(now(txn.commit()))
            other = store.begin()
            await now(other.begin_write([SHARD]))
            while store.core.staging is None:
                await asyncio.sleep(0)
            looking = asyncio.ensure_future(now(other.lookup(SHARD, BY_K, [(3,)])))
            assert await looking == []
            await now(other.commit())
            assert [r[0] for r in await rows_at(store)] == [k + 1000 for k in range(ROWS)]
            await committed
        await store.close()

    run(body)


def test_who_scanned_before_and_found_nothing_amid_the_slices_is_refused() -> None:
    """The scan shows the rows as they were, the lookup that one of them is gone: together that never was so."""

    async def body() -> None:
        store = await start()
        txn = await update_all(store, 1, drop_from=0)
        with small_slices(), mock.patch.object(group_commit, "STAGE_BYTES", 100):
            committed = asyncio.ensure_future(now(txn.commit()))
            other = store.begin()
            await now(other.begin_write([SHARD]))
            while store.core.staging is None:
                await asyncio.sleep(0)
            assert len([r async for rows in other.scan(SHARD) for r in rows]) == ROWS
            looking = asyncio.ensure_future(now(other.lookup(SHARD, BY_K, [(3,)])))
            assert await looking == []
            with pytest.raises(WriteConflict):
                await now(other.commit())
            await committed
        assert not len(store.core.locks)
        await store.close()

    run(body)


CHANGES = {"deleted": None, "moved out": (5, 7, "z"), "moved in": (5, 9, "z")}


@pytest.mark.parametrize("flushed", [False, True], ids=["hot", "flushed"])
@pytest.mark.parametrize("scanned", ["before", "between slices"])
@pytest.mark.parametrize("change", CHANGES)
def test_scans_of_others_notice_what_a_large_commit_changes(change: str, scanned: str, flushed: bool) -> None:
    """By the time they are compared with it its rows are in memory already; what they were counts as well."""
    after = CHANGES[change]

    async def body() -> None:
        store = await start()
        row = RowId(6)
        if flushed:
            await store.flush()
        reader, writer = store.begin(), store.begin()
        await now(reader.begin_write([SHARD]))
        await now(reader.insert(SHARD, [(1000, 0, "own")]))
        await now(writer.begin_write([SHARD]))
        others = [(RowId(k), (k - 1, 0, "z")) for k in range(20, 60)]
        await now(writer.update(SHARD, others))
        await now(writer.delete(SHARD, [row]) if after is None else writer.update(SHARD, [(row, after)]))

        async def scan() -> None:
            async for _ in reader.scan(
                SHARD, predicate=lambda r: r[0] == 5 and r[1] in ((9,) if change == "moved in" else (0,))
            ):
                pass

        with small_slices(), mock.patch.object(group_commit, "STAGE_BYTES", 100):
            if scanned == "before":
                await scan()
            committed = asyncio.ensure_future(now(writer.commit()))
            if scanned != "before":
                while store.core.staging is None:
                    await asyncio.sleep(0)
                await scan()
                assert not committed.done()
            await committed
        with pytest.raises(WriteConflict) as conflict:
            await now(reader.commit())
        assert conflict.value.key == (5,)
        await store.close()

    run(body)


def test_a_large_commit_that_cannot_be_applied_keeps_nobody_waiting() -> None:
    async def body() -> None:
        store = await start()
        txn = await update_all(store, 1)
        looker = store.begin()
        await now(looker.begin_write([SHARD]))
        real = Generation.apply
        slices: list[int] = []

        def breaking(self: Generation, ops: Any, ts: int, over_parts: bool = False) -> None:
            slices.append(1)
            if len(slices) == 10:
                raise ZeroDivisionError("a bug")
            real(self, ops, ts, over_parts)

        with (
            small_slices(),
            mock.patch.object(coordinator, "STAGING_LOOK_S", 0.001),
            mock.patch.object(group_commit, "STAGE_BYTES", 100),
            mock.patch.object(Generation, "apply", breaking),
        ):
            committed = asyncio.ensure_future(now(txn.commit()))
            while store.core.staging is None:
                await asyncio.sleep(0)
            read_only = asyncio.ensure_future(now(looker.commit()))
            flush = asyncio.ensure_future(store.flush())
            for waiting in (committed, read_only, flush):
                with pytest.raises(CommitUnknown):
                    await waiting
            await store.close()

    run(body)


def test_a_generation_that_nobody_reads_is_freed_in_slices() -> None:
    generation = Generation(spec(), 0, deque())
    generation.apply(
        [RowOp(RowId(n), Timestamp(0), (n + 1000, n + 2000, f"{n}")) for n in range(1, 20_000)], 5
    )
    steps = dismantle(generation)
    del generation
    most, left = 0, True
    while left:
        before = getallocatedblocks()
        left = next(steps, "end") != "end"
        most = max(most, before - getallocatedblocks())
    assert most < 40_000


def test_one_row_with_a_huge_value_is_encoded_piece_by_piece() -> None:
    def at_once(writes: WriteSet) -> bytes:
        raise AssertionError("60 MB would be copied in one turn")

    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 10, "a")])
        text = "é" * (3 * SHARED_BYTES)
        for start in ("insert", "update"):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            if start == "insert":
                await now(txn.insert(SHARD, [(2, 20, text)]))
            else:
                (row,) = await now(txn.lookup(SHARD, BY_K, [(2,)]))
                await now(txn.update(SHARD, [(row.row_id, (2, 21, text))]))
            with mock.patch.object(group_commit, "encode_at_once", at_once):
                await now(txn.commit())
        reader = store.begin(read_only=True)
        (row,) = await now(reader.lookup(SHARD, BY_K, [(2,)]))
        assert row.values == (2, 21, text)
        reader.rollback()
        await store.flush()
        for _ in range(2):  # read from the file, and in memory by then, perhaps
            reader = store.begin(read_only=True)
            reading = asyncio.ensure_future(now(reader.lookup(SHARD, BY_K, [(2,), (1,)])))
            turns = 0
            while not reading.done():
                await asyncio.sleep(0)
                turns += 1
            assert sorted(row.values for row in await reading) == [(1, 10, "a"), (2, 21, text)]
            assert turns >= 10, "6 MB would be copied in one turn"
            reader.rollback()
        await store.close()

    run(go)


def test_it_is_noted_that_a_huge_value_has_come_out_of_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huge_values, "met", False)
    text = PhysicalType(kind="text")
    to_python(to_arrow(["x" * 100] * 20_000, text), text)
    assert not huge_values.met, "many short ones"
    to_python(to_arrow(["x", "y" * SHARED_BYTES], text), text)
    assert huge_values.met


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=str)
def test_views_of_values_are_no_copies(type_: Any) -> None:
    texts = ["a", None, "", "héllo", "x" * 100]
    whole = pa.array([text if text is None else text.encode() for text in texts], pa.large_binary()).cast(
        type_
    )
    begin = whole.buffers()[2].address
    for values, wanted in ((whole, texts), (whole.slice(1, 3), texts[1:4]), (whole.slice(0, 0), [])):
        views = list(huge_values.views_of(values))
        assert [None if view is None else bytes(view).decode() for view in views] == wanted
        for view in views:
            if view:
                assert begin <= pa.py_buffer(view).address < begin + whole.buffers()[2].size


def test_the_width_of_a_text_is_told_whoever_has_encoded_its_letters() -> None:
    """CPython keeps the encoded form of a letter, which is everybody's, beside it once somebody in C has asked for it."""
    code = (
        "import ctypes; f = ctypes.pythonapi.PyUnicode_AsUTF8; f.argtypes = [ctypes.py_object]; f.restype = ctypes.c_char_p\n"
        "for n in range(128, 256): f(chr(n))\n"
        "from txn.base.huge_values import _widest\n"
        "print([_widest(t.encode().decode()) for t in ('ab', '\\xe9', '\\xe9a', '\\u20ac', '\\u20aca', '\\U0001f600a')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [0x7F, 0xFF, 0xFF, 0xFFFF, 0xFFFF, 0x10FFFF]
