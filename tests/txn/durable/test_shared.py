"""Shared stores: which directories fit together, and who may delete whose files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from engine.definitions.oids import BLOCK, OidSource
from planner.base.errors import SqlError
from tests.support.durable import run, write
from tests.support.postgres import fresh_schema, postgres, url_of  # noqa: F401 - a fixture
from tests.support.virtual_loop import run_virtual
from txn.base.errors import CommitUnknown, DataDirectoryInUse, Fenced, LeaderAlive, UnknownFormat
from txn.base.time import SequentialIdGen, SystemClock, SystemIdGen, SystemRng
from txn.log.durable import DurableLog, StorageConfig
from txn.log.leadership import DATA, SCRATCH, DirectoryLock, take_leadership
from txn.log.lease import LeaseOptions
from txn.log.shared import SharedConfig
from txn.persist.blobs.files import LocalBlob
from txn.persist.location import Indeterminate, inline
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk

LEASE = LeaseOptions(holder="the other", duration_ms=400)


def config(url: str, schema: str, blob: Path, **more: bool) -> SharedConfig:
    return SharedConfig(consensus=url, schema=schema, blob=blob, lease=LEASE, **more)


def test_directories_and_stores_that_do_not_belong_together_are_refused(
    postgres: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    url, schema, blob = url_of(postgres), fresh_schema(), tmp_path / "blob"

    async def start(name: str, shared: SharedConfig) -> DurableLog:
        return await DurableLog.open(
            StorageConfig(path=tmp_path / name, shared=shared), SystemClock(), SystemRng(), SystemIdGen()
        )

    async def body() -> None:
        log = await start("a", config(url, schema, blob))
        with pytest.raises(LeaderAlive, match="the other"):
            await start("b", config(url, schema, blob))
        with pytest.raises(DataDirectoryInUse):
            await start("a", config(url, schema, blob))
        async for _ in log.replay():
            pass
        log.committer.applier = lambda batch, seq: None
        log.start()
        await log.committer.submit(write(1, (1, (1, "a"))))
        await log.close()
        with pytest.raises(UnknownFormat, match="is it the right one"):
            await start("b", config(url, schema, tmp_path / "empty"))
        (tmp_path / "theirs").mkdir()
        (tmp_path / "theirs" / "file").write_text("x")
        with pytest.raises(UnknownFormat, match="not a shared blob directory"):
            await start("b", config(url, schema, tmp_path / "theirs"))
        with pytest.raises(UnknownFormat, match="belongs to another database"):
            await start("b", config(url, fresh_schema(), blob))
        assert (blob / "CLUSTER").exists()
        with pytest.raises(UnknownFormat, match="shared consensus store"):
            await DurableLog.open(
                StorageConfig(path=tmp_path / "a"), SystemClock(), SystemRng(), SystemIdGen()
            )
        embedded = await DurableLog.open(
            StorageConfig(path=tmp_path / "c"), SystemClock(), SystemRng(), SystemIdGen()
        )
        await embedded.close()
        with pytest.raises(UnknownFormat, match="needs another"):
            await start("c", config(url, schema, blob))
        again = await start("b", config(url, schema, blob))  # every refusal has let go of the lease
        assert [seq async for seq, _ in again.replay()] == [1]
        await again.close()

    run(body)


def test_the_two_kinds_of_directories_are_told_apart(tmp_path: Path) -> None:
    clock = SystemClock()
    for first, other in ((DATA, SCRATCH), (SCRATCH, DATA)):
        path = str(tmp_path / first)
        DirectoryLock.acquire(path, clock, first).release()
        with pytest.raises(UnknownFormat):
            DirectoryLock.acquire(path, clock, other)
        DirectoryLock.acquire(path, clock, first).release()


def test_a_new_leader_leaves_an_old_one_nothing_to_publish_with(tmp_path: Path) -> None:
    async def body() -> None:
        root = str(tmp_path / "blobs")
        old = LocalBlob(root, writer="1-a", offload=inline)
        await old.put("7/1-x.parquet", b"old")
        entered = asyncio.Event()

        def slowly(file: object) -> None:
            entered.set()

        new = LocalBlob(root, writer="2-b", offload=inline)
        with pytest.raises(Indeterminate):
            await old.publish("7/1-y.parquet", slowly)
        assert not entered.is_set()
        await new.put("7/2-z.parquet", b"new")
        assert await new.list("7/") == ["7/1-x.parquet", "7/2-z.parquet"]
        assert os.listdir(os.path.join(root, "tmp")) == ["2-b"]

    run(body)


class VirtualClock:
    def boottime(self) -> float:
        return asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return self.boottime()

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(self.boottime() * 1000)


async def lead(disk: MemoryDisk, blob: MemoryBlob, name: str) -> DurableLog:
    consensus = MemoryConsensus(disk)
    clock = VirtualClock()
    leadership = await take_leadership(
        consensus, clock, LeaseOptions(holder=name, duration_ms=5000), standby=True
    )
    return await DurableLog.assemble(
        consensus, blob, clock, SequentialIdGen(name), offload=inline, leadership=leadership
    )


async def serve(log: DurableLog) -> None:
    async for _ in log.replay():
        pass
    log.committer.applier = lambda batch, seq: None
    log.start()


def test_losing_the_lease_ends_commits_and_deletions_at_once() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        blob = MemoryBlob(disk)
        old = await lead(disk, blob, "a")
        await serve(old)
        told: list[Exception] = []
        old.committer.on_failure = told.append
        assert old.lease is not None
        assert old.lease._task is not None
        old.lease._task.remove_done_callback(old.lease._ended)
        old.lease._task.cancel()  # stalled
        await asyncio.sleep(1)
        new = await lead(disk, blob, "b")
        await serve(new)
        assert not old.lease.valid()
        assert not told
        with pytest.raises(Fenced):
            await old.lease.renew()
        assert [type(e) for e in told] == [Fenced]
        with pytest.raises(Fenced):
            old.committer.submit(write(1, (1, (1, "a"))))
        with pytest.raises(Fenced):
            await old.discard(["7/1-a0000000000000001"])
        assert (await new.committer.submit(write(2, (1, (1, "a"))))) > 0
        await old.close()
        await new.close()
        assert new.lease is not None
        assert not new.lease.valid()

    run_virtual(body)


def test_a_part_of_a_commit_whose_outcome_is_unknown_is_not_deleted() -> None:
    """The entry that names it may be in the log, and the next leader may serve it."""

    async def body() -> None:
        disk = MemoryDisk()
        blob = MemoryBlob(disk)
        log = await lead(disk, blob, "a")
        await serve(log)
        await blob.put("7/1-a1.parquet", b"part")
        log.committer.fail(CommitUnknown("nobody knows"))
        with pytest.raises(CommitUnknown):
            await log.discard(["7/1-a1"])
        assert await blob.get("7/1-a1.parquet") == b"part"
        await log.close()

    run_virtual(body)


def test_numbers_reserved_by_one_leader_are_never_given_by_another() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        blob = MemoryBlob(disk)
        old = await lead(disk, blob, "a")
        assert await old.reserve("oid", 16384, 100) == (16384, 16484)
        assert await old.reserve("oid", 16390, 100) == (16484, 16584)
        assert await old.reserve("other", 1, 10) == (1, 11)
        assert old.lease is not None
        assert old.lease._task is not None
        old.lease._task.cancel()
        new = await lead(disk, blob, "b")
        # What the old leader made with its numbers was not committed, so the new one's catalog ends lower.
        assert await new.reserve("oid", 16385, 100) == (16584, 16684)
        with pytest.raises(Fenced):
            await old.reserve("oid", 16484, 100)
        assert await new.reserve("oid", 20000, 100) == (20000, 20100)
        await old.close()
        await new.close()

    run_virtual(body)


def test_oids_are_reserved_ahead_of_use() -> None:
    async def body() -> None:
        asked: list[int] = []
        answers = asyncio.Event()

        async def reserve(name: str, floor: int, count: int) -> tuple[int, int]:
            if asked:
                await answers.wait()
            asked.append(floor)
            return floor, floor + count

        oids = OidSource(reserve)
        await oids.open(16384)
        given = [oids.allocate(4) for _ in range(BLOCK // 4)]
        with pytest.raises(SqlError, match="being reserved"):
            oids.allocate(1)
        answers.set()
        await asyncio.sleep(0.01)
        given += [oids.allocate(4) for _ in range(10)]
        assert given == list(range(16384, 16384 + BLOCK + 40, 4))
        assert asked == [16384, 16384 + BLOCK]

    run_virtual(body)
