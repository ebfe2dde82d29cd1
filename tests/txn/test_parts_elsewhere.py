"""Parts that workers elsewhere write: adopted whole, or gone; nothing is added once the job has ended."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import (
    BY_K,
    SHARD,
    make_table,
    now,
    open_memory_store,
    snapshot_rows,
    spec,
)
from txn.api import PartJob, WrittenPart
from txn.base.errors import DuplicateKey, NullInColumn
from txn.base.types import KeyRange
from txn.persist.blobs.files import LocalBlob
from txn.persist.location import Indeterminate, inline
from txn.persist.memory import MemoryDisk
from txn.persist.parts.job import write_parts
from txn.persist.parts.part import RowGroupCache, open_part
from txn.values.columns import table_schema
from txn.values.encoding import encode_spec

Rows = Sequence[tuple[Any, ...]]


def batch(rows: Rows) -> Any:
    types = [pa.int64(), pa.int64(), pa.string()]
    return pa.RecordBatch.from_arrays(
        [pa.array([row[i] for row in rows], t) for i, t in enumerate(types)], names=["c1", "c2", "c3"]
    )


def workers(*tasks: Rows, keep: bool = True) -> Callable[[PartJob], Awaitable[list[WrittenPart]]]:
    """Return what has each task's rows written, each by two attempts, of which the second counts."""

    async def write(job: PartJob) -> list[WrittenPart]:
        found: list[WrittenPart] = []
        for attempt in ("lost", "good"):
            found.clear()
            for task, rows in enumerate(tasks):
                pieces = [batch(rows[at : at + 3]) for at in range(0, len(rows), 3)]
                found += await asyncio.to_thread(
                    lambda t=task, p=pieces, a=attempt: list(write_parts(job, t, len(tasks), a, p))
                )
        assert all(WrittenPart.decode(part.encode()) == part for part in found)
        return found

    return write


async def begin(store: Any) -> Any:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    return txn


async def rows_of(store: Any) -> list[tuple[Any, ...]]:
    reader = store.begin(read_only=True)
    found = sorted(values for _r, _b, values in snapshot_rows(await now(reader.snapshot(SHARD))))
    reader.rollback()
    return found


def parts_on(disk: MemoryDisk) -> list[str]:
    return sorted(name for name in disk.blobs if name.endswith(".parquet"))


def test_rows_become_the_transactions_then_everybodys() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(1, 0, "old")])
        one = [(k, 0, "one") for k in range(10, 20)]
        two = [(k, 0, "two") for k in range(30, 25, -1)]
        txn = await begin(store)
        assert await txn.bulk_insert_parts(SHARD, workers(one, two)) == 15
        txn.next_statement()
        assert len(await now(txn.range(SHARD, BY_K, KeyRange()))) == 16
        assert len(parts_on(disk)) == 2, "what the lost attempts wrote is gone"
        assert await rows_of(store) == [(1, 0, "old")]
        await now(txn.commit())
        expected = sorted([(1, 0, "old"), *one, *two])
        assert await rows_of(store) == expected
        ids = [row.row_id for row in await _all(store)]
        assert len(set(ids)) == 16
        later = await begin(store)
        (fresh,) = await now(later.insert(SHARD, [(99, 9, "x")]))
        assert fresh > max(ids), "row ids of the load are not given out again"
        later.rollback()
        store.validate()
        await store.close()
        store = await open_memory_store(disk)
        assert await rows_of(store) == expected
        await store.close()

    run(go)


async def _all(store: Any) -> list[Any]:
    reader = store.begin(read_only=True)
    found = list(await now(reader.range(SHARD, BY_K, KeyRange())))
    reader.rollback()
    return found


@pytest.mark.parametrize("where", ["task", "tasks", "part", "hot"])
def test_a_duplicate_is_found_and_nothing_stays(where: str) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(1, 1, "a"), (50, 1, "b")])
        if where == "part":
            await store.flush()
        clash = {"task": 12, "tasks": 31, "part": 50, "hot": 50}[where]
        one = [*((k, 0, "x") for k in range(10, 20)), (clash, 0, "again")]
        txn = await begin(store)
        with pytest.raises(DuplicateKey) as caught:
            await txn.bulk_insert_parts(SHARD, workers(one, [(k, 0, "y") for k in range(30, 35)]))
        assert caught.value.key == (clash,)
        txn.rollback()
        await store.flush()
        await store.idle()
        assert len(parts_on(disk)) == 1, "the load's files were deleted"
        await store.close()

    run(go)


def test_a_key_whose_row_was_deleted_is_free() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "a") for k in range(5)])
        await store.flush()
        txn = await begin(store)
        rows = await now(txn.range(SHARD, BY_K, KeyRange(), for_update=True))
        await now(txn.delete(SHARD, [r.row_id for r in rows[:3]]))
        await now(txn.commit())
        load = await begin(store)
        (row,) = await now(load.lookup(SHARD, BY_K, [(3,)], for_update=True))
        await now(load.delete(SHARD, [row.row_id]))
        assert await load.bulk_insert_parts(SHARD, workers([(k, 1, "b") for k in range(4)])) == 4
        await now(load.commit())
        assert [values[:2] for values in await rows_of(store)] == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 0)]
        await store.close()

    run(go)


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
def test_what_a_job_wrote_before_it_ended_is_deleted(how: str) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store)
        txn = await begin(store)
        jobs: list[PartJob] = []
        written = asyncio.Event()

        async def write(job: PartJob) -> list[WrittenPart]:
            await workers([(1, 0, "x")])(job)
            jobs.append(job)
            written.set()
            if how == "fails":
                raise RuntimeError("a task failed")
            await asyncio.get_running_loop().create_future()
            raise AssertionError

        load = asyncio.ensure_future(txn.bulk_insert_parts(SHARD, write))
        await written.wait()
        if how == "is cancelled":
            assert parts_on(disk)
            load.cancel()
        with pytest.raises((RuntimeError, asyncio.CancelledError)):
            await load
        txn.rollback()
        await store.close()  # it waits for files to be deleted
        assert parts_on(disk) == []
        with pytest.raises(Indeterminate):
            await asyncio.to_thread(list, write_parts(jobs[0], 0, 1, "late", [batch([(1, 0, "x")])]))
        assert parts_on(disk) == []

    run(go)


def test_a_crash_before_the_commit_leaves_files_that_the_next_start_sweeps() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, [(1, 0, "a")])
        txn = await begin(store)
        await txn.bulk_insert_parts(SHARD, workers([(k, 0, "x") for k in range(2, 9)]))
        assert parts_on(disk)
        disk.crash()
        store = await open_memory_store(disk)
        assert await rows_of(store) == [(1, 0, "a")]
        await store.close()
        assert parts_on(disk) == []

    run(go)


def test_a_null_names_its_row() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store)
        txn = await begin(store)

        async def write(job: PartJob) -> list[WrittenPart]:
            return await workers([(1, 5, "x"), (2, None, "y"), (3, None, "z")])(job.requiring([1, 2]))

        with pytest.raises(NullInColumn) as caught:
            await txn.bulk_insert_parts(SHARD, write)
        assert caught.value.attnum == 2
        row = pa.ipc.open_stream(caught.value.row).read_all().to_pylist()
        assert row == [{"c1": 2, "c2": None, "c3": "y"}]
        txn.rollback()
        await store.close()

    run(go)


def test_files_by_a_grant_from_another_process(tmp_path: Path) -> None:
    """Parts are bounded, sorted, dense; a grant can be pickled, and its end leaves nothing in ``tmp``."""

    async def go() -> None:
        blob = LocalBlob(str(tmp_path / "blobs"), offload=inline)
        shape = spec()
        job = PartJob(
            prefix="7/3-5", grant=await blob.grant("7-3-5"), spec=encode_spec(shape), first_row_id=100,
            part_rows=4, part_bytes=1 << 20,
        )  # fmt: skip
        job = pickle.loads(pickle.dumps(job))
        rows = [(k, 0, "x") for k in range(9, 0, -1)]
        parts = await asyncio.to_thread(list, write_parts(job, 1, 2, "a", [batch(rows)]))
        assert [(p.ref.rows, p.next_row_id) for p in parts] == [(4, 108), (4, 116), (1, 121)]
        part = await open_part(parts[0].ref, blob, inline, RowGroupCache(0))
        table = await part.read_arrow()
        assert table.column("c1").to_pylist() == [6, 7, 8, 9]
        assert table.column("s_row_id").to_pylist() == [104, 105, 106, 107]
        assert table.schema.names == table_schema(shape.columns).names
        other = job.grant.open("1-b")
        await blob.revoke("7-3-5")
        await blob.revoke("7-3-5")
        with pytest.raises(Indeterminate):
            await other.put("7/late", b"x")
        assert await blob.get("7/late") is None
        assert list((tmp_path / "blobs" / "tmp").iterdir()) == []

    run(go)
