"""Small stores for tests of the memory half: memory disk, sequential clock and ids, tiny limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest import mock

import pyarrow.parquet as pq

import txn.mvcc.compaction
import txn.mvcc.hotlog
import txn.transaction.snapshot
from txn.base.time import Clock, SequentialIdGen
from txn.base.types import (
    IndexId,
    PhysicalType,
    ShardColumn,
    ShardId,
    ShardIndex,
    ShardSpec,
    Snapshot,
    Timestamp,
)
from txn.log.durable import DurableLog
from txn.persist.location import inline
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk
from txn.store import ShardStore, start_store
from txn.transaction.coordinator import TxnOptions

T = TypeVar("T")

INT = PhysicalType(kind="int64")
TEXT = PhysicalType(kind="text")
SHARD = ShardId(1)
BY_K = IndexId(10)
BY_V = IndexId(11)


def spec(shard: int = 1, version: int = 1, *, unique_v: bool = False, hash_v: bool = False) -> ShardSpec:
    """k int8 primary key, v int8 indexed, t text."""
    return ShardSpec(
        shard=ShardId(shard),
        version=version,
        columns=(
            ShardColumn(attnum=1, type=INT),
            ShardColumn(attnum=2, type=INT),
            ShardColumn(attnum=3, type=TEXT),
        ),
        indexes=(
            ShardIndex(index=BY_K, attnums=(1,), unique=True, primary=True),
            ShardIndex(index=BY_V, attnums=(2,), unique=unique_v, kind="hash" if hash_v else "sorted"),
        ),
    )


class StepClock:
    """A clock that moves a millisecond per look."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def boottime(self) -> float:
        return self.monotonic()

    def monotonic(self) -> float:
        return self.ms / 1000


async def now(value: T | Awaitable[T]) -> T:
    """Await what has to be awaited."""
    return await value if isinstance(value, Awaitable) else value


def at_once(value: T | Awaitable[T]) -> T:
    """Return a result that must not need waiting."""
    assert not isinstance(value, Awaitable), "had to wait"
    return value


def must_wait(value: Any) -> asyncio.Task[Any]:
    """Start waiting for a result that must not be there at once."""
    assert isinstance(value, Awaitable), "did not have to wait"

    async def wait() -> Any:
        return await value

    return asyncio.ensure_future(wait())


async def settle() -> None:
    """Give every ready task some turns."""
    for _ in range(20):
        await asyncio.sleep(0)


async def open_memory_store(
    disk: MemoryDisk | None = None, options: TxnOptions | None = None, clock: Clock | None = None
) -> ShardStore:
    """Open a store over a memory disk (kept by the caller to reopen it)."""
    disk = disk or MemoryDisk()
    log = await DurableLog.assemble(
        MemoryConsensus(disk), MemoryBlob(disk), clock or StepClock(), SequentialIdGen(), offload=inline
    )
    return await start_store(log, options, offload=inline)


async def tear_away(store: ShardStore, disk: MemoryDisk) -> None:
    """Tear the power away, at a step that was planned or now, and end what is left of the store's tasks."""
    disk.crash_at_step = None
    disk.crash()
    store.core.stop_vacuum()
    await store._flusher.stop()
    await store.core.log.close()


async def make_table(store: ShardStore, rows: Any = (), schema: ShardSpec | None = None) -> Timestamp:
    """Create a shard with some rows."""
    schema = schema or spec()
    txn = store.begin()
    txn.create_shard(schema)
    await now(txn.begin_write([schema.shard]))
    if rows:
        await now(txn.insert(schema.shard, rows))
    return await now(txn.commit())


def snapshot_rows(snapshot: Snapshot) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Read a snapshot as an engine does: (row id, begin, values of int and text columns), sorted."""
    names = [f"c{c.attnum}" for c in snapshot.spec.columns if not c.dropped]
    missing = {f"c{c.attnum}": c.missing_value for c in snapshot.spec.columns}
    out = []
    for part in snapshot.parts:
        hidden = set() if part.hidden is None else set(part.hidden.to_pylist())
        if part.hidden is not None:
            assert part.hidden.to_pylist() == sorted(hidden), "hidden is sorted, without duplicates"
        for position, row in enumerate(pq.read_table(part.ref.path).to_pylist()):
            if position not in hidden:
                begin = row["s_begin"] or part.ref.min_begin
                out.append((row["s_row_id"], begin, tuple(row.get(n, missing[n]) for n in names)))
    for row in snapshot.hot.to_pylist():
        out.append((row["s_row_id"], row["s_begin"], tuple(row[n] for n in names)))
    assert len(out) == snapshot.rows
    return sorted(out)


@contextmanager
def tiny_limits() -> Iterator[None]:
    """Segments of 8 rows, merges of 2 parts, chunks of 3 rows: every boundary is met in small tests."""
    with (
        mock.patch.object(txn.mvcc.hotlog, "SEGMENT_ROWS", 8),
        mock.patch.object(txn.mvcc.compaction, "FANOUT", 3),
        mock.patch.object(txn.transaction.snapshot, "CHUNK_ROWS", 3),
    ):
        yield
