"""Stores, clocks and schemas for tests of txn's durable half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.postgres import fresh_schema, url_of
from txn.base.records import RowOp, ShardWrites, WriteSet
from txn.base.time import SystemRng
from txn.base.types import (
    IndexId,
    PhysicalType,
    Row,
    RowId,
    ShardColumn,
    ShardId,
    ShardIndex,
    ShardSpec,
    Timestamp,
    TxnId,
)
from txn.persist.blobs.file_cache import FileCache
from txn.persist.blobs.files import LocalBlob
from txn.persist.blobs.object_url import parse_object_url
from txn.persist.blobs.objects import ObjectBlob, open_filesystem
from txn.persist.faulty import FaultRates, FaultyBlob, FaultyConsensus
from txn.persist.location import Blob, Consensus, inline
from txn.persist.logs.postgres import PostgresConsensus
from txn.persist.logs.sqlite import SqliteConsensus
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk

T = TypeVar("T")
START_MS = 1_700_000_000_000


class ManualClock:
    """A clock that a test sets. ``step`` is added to both times at every reading of the wall clock."""

    def __init__(self, ms: int = START_MS) -> None:
        self.ms = ms
        self.seconds = 100.0

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.seconds

    def boottime(self) -> float:
        return self.seconds

    def pass_ms(self, ms: int) -> None:
        self.ms += ms
        self.seconds += ms / 1000


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run an async test body; anything that hangs fails."""

    async def bounded() -> T:
        async with asyncio.timeout(280):
            return await work()

    return asyncio.run(bounded())


ConsensusOpener = Callable[[], AbstractAsyncContextManager[Consensus]]
SLOW = FaultRates(max_delay_steps=5)


def consensus_opener_of(request: pytest.FixtureRequest, folder: Path) -> ConsensusOpener:
    """Return the opener for a fixture parametrized with ``CONSENSUS_KINDS``; starts PostgreSQL only where needed.

    The test module imports the fixture ``postgres``.
    """
    url = url_of(request.getfixturevalue("postgres")) if request.param.startswith("postgres") else ""
    return consensus_openers(request.param, folder, url)


def consensus_openers(kind: str, folder: Path, url: str = "") -> ConsensusOpener:
    """Return a function that opens handles of one and the same durable state (a new one per call of this)."""
    disk = MemoryDisk()
    schema = fresh_schema()

    @asynccontextmanager
    async def opener() -> AsyncIterator[Consensus]:
        inner: Consensus
        if kind.startswith("memory"):
            inner = MemoryConsensus(disk)
        elif kind.startswith("postgres"):
            inner = await PostgresConsensus.open(url, schema=schema, cluster="test")
        else:
            after = 1 if kind.endswith("process") else None
            inner = await SqliteConsensus.open(str(folder / "log.sqlite"), process_after=after)
        yield FaultyConsensus(inner, SystemRng(7), SLOW) if kind.endswith("slow") else inner
        await inner.close()

    return opener


CONSENSUS_KINDS = [
    "memory",
    "memory-slow",
    "sqlite",
    "sqlite-slow",
    "sqlite-process",
    "postgres",
    "postgres-slow",
]
BLOB_KINDS = ["memory", "memory-slow", "files", "files-slow", "objects", "objects-slow"]


def blob_of(kind: str, folder: Path, url: str = "") -> Blob:
    """Return a new, empty store. ``url``: of the object store, for the kinds that are in one."""
    inner: Blob
    if kind.startswith("memory"):
        inner = MemoryBlob(MemoryDisk())
    elif kind.startswith("objects"):
        where = parse_object_url(url)
        inner = ObjectBlob(where, open_filesystem(where), FileCache(str(folder / "cache"), 1 << 20))
    else:
        inner = LocalBlob(str(folder / "blobs"), offload=inline)
    return FaultyBlob(inner, SystemRng(7), SLOW) if kind.endswith("slow") else inner


def kind(name: str, **more: Any) -> PhysicalType:
    return PhysicalType(kind=name, **more)  # type: ignore[arg-type]


def two_column_spec(shard: int = 7, version: int = 1) -> ShardSpec:
    """(k int64 primary key, v text with an index)."""
    return ShardSpec(
        shard=ShardId(shard),
        version=version,
        columns=(
            ShardColumn(attnum=1, type=kind("int64")),
            ShardColumn(attnum=2, type=kind("text")),
        ),
        indexes=(
            ShardIndex(index=IndexId(1), attnums=(1,), unique=True, primary=True),
            ShardIndex(index=IndexId(2), attnums=(2,), unique=False),
        ),
    )


def write(txn: int, *rows: tuple[int, Row | None], shard: int = 7) -> WriteSet:
    """A write set of (row id, values) on one shard."""
    ops = tuple(RowOp(RowId(i), Timestamp(0), values) for i, values in rows)
    return WriteSet(txn=TxnId(txn), ts=Timestamp(0), shards=(ShardWrites(shard=ShardId(shard), ops=ops),))
