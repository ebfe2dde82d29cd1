"""A full disk is left from inside: what makes room goes on, with a reserve kept for that, and says what is missing; the server starts."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import psycopg
import pytest

from engine.session.errors import report_of
from planner.catalog import Catalog
from sqllogictest.client import ServerError
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.server import ServerProcess
from txn.base.errors import DataDirectoryInUse, OutOfSpace
from txn.base.time import SystemClock, SystemIdGen, SystemRng
from txn.log.durable import DurableLog, StorageConfig
from txn.log.leadership import DirectoryLock
from txn.persist import reserve as reserve_module
from txn.persist import trouble
from txn.persist.memory import MemoryDisk
from txn.persist.reserve import NAME, SMALL_CHANGE_BYTES, STEPS, Reserve, make_way
from txn.transaction.coordinator import TxnOptions

SIZE = 60_000


class MemoryReserve(Reserve):
    """A reserve of a disk in memory."""

    def __init__(self, disk: MemoryDisk, size: int) -> None:
        self.disk, self.size, self.short = disk, size, False
        self.held = 0
        self._resize(size)

    def free(self) -> int:
        assert self.disk.capacity is not None
        return max(self.disk.capacity - self.disk.used(), 0)

    def crowded(self) -> bool:
        return False

    def _held(self) -> int:
        return self.held

    def _allocate(self, size: int, held: int) -> bool:
        self._resize(size)
        return True

    def _resize(self, size: int) -> None:
        assert self.disk.capacity is not None
        self.disk.capacity -= size - self.held
        self.held = size


@pytest.mark.parametrize(
    "way", ["DELETE FROM t WHERE k < 400", "TRUNCATE t", "DROP TABLE t", "BEGIN; DELETE FROM t; COMMIT"]
)
def test_what_makes_room_goes_on_and_the_rest_when_there_is_some(way: str) -> None:
    async def main() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run(
            "CREATE TABLE t (k int PRIMARY KEY, v text); CREATE TABLE u (k int); CREATE INDEX ui ON u (k)"
        )
        await session.run("INSERT INTO t SELECT i, repeat('x', 50) FROM generate_series(1, 500) i")
        disk.capacity = disk.used() + SIZE + 40_000
        reserve = database.store.core.log.committer.reserve = MemoryReserve(disk, SIZE)

        async def fill() -> None:
            for k in range(1000, 9000):
                await session.run(f"INSERT INTO t VALUES ({k}, repeat('y', 300))")

        with pytest.raises(Failed) as full:
            await fill()
        report = full.value.report
        assert report.sqlstate == "53100"
        assert "bytes have to be free" in str(report.detail)
        assert not reserve.short
        disk.capacity = disk.used()  # not a byte, but for the reserve
        assert await session.run("SELECT v FROM t WHERE k = 1") == [("x" * 50,)]
        await session.run(way)
        assert reserve.short
        for refused in (
            "INSERT INTO u VALUES (1)",
            "CREATE TABLE w AS SELECT 1",
            "UPDATE u SET k = 1; INSERT INTO u VALUES (2)",
        ):
            with pytest.raises(Failed) as short:
                await session.run(refused)
            assert short.value.report.sqlstate == "53100"
            assert f"{reserve.wanted} bytes have to be free" in str(short.value.report.detail)
            assert "TRUNCATE" in str(short.value.report.hint)
        await session.run("CHECKPOINT")
        await session.run(
            "DROP INDEX ui; GRANT SELECT ON u TO public; COMMENT ON TABLE u IS 'full'; REVOKE ALL ON u FROM public"
        )
        with pytest.raises(Failed) as long:
            await session.run(f"COMMENT ON TABLE u IS '{'x' * 2 * SMALL_CHANGE_BYTES}'")
        assert long.value.report.sqlstate == "53100"
        await session.run("DELETE FROM u")
        await session.run("BEGIN; SELECT count(*) FROM u; COMMIT")
        disk.capacity = disk.used() + reserve.wanted
        await session.run("INSERT INTO u VALUES (3)")
        assert not reserve.short
        assert await session.run("SELECT k FROM u") == [("3",)]
        await database.close()

    run(main)


@pytest.mark.parametrize("way", ["DROP TABLE t", "TRUNCATE t"])
def test_the_past_gives_way_on_a_full_disk_but_not_what_somebody_reads(way: str) -> None:
    """What was dropped was kept for ``history_retention``, ten minutes, however full the disk was."""

    async def main() -> None:
        disk = MemoryDisk()
        database = await open_database(disk, TxnOptions(retention_ms=600_000))
        session, reader = Session(database, 1), Session(database, 2)
        await session.run("CREATE TABLE t (k int); CREATE TABLE u (k int)")
        await session.run("INSERT INTO t SELECT generate_series(1, 500)")
        await session.run("CHECKPOINT")
        [(oid,)] = await session.run("SELECT 't'::regclass::oid")

        def files() -> list[str]:
            return [name for name in disk.blobs if name.startswith(f"{oid}/")]

        [(before,)] = await session.run("SELECT read_ts FROM holdfast_oracle")
        await session.run(way)
        await session.run("CHECKPOINT")
        assert files(), "there is space"
        disk.capacity = disk.used() + SIZE + 2_000_000
        database.store.core.log.committer.reserve = MemoryReserve(disk, SIZE)
        await session.run("CHECKPOINT")
        assert files(), "there is space"
        past = f"SELECT count(*) FROM t AS OF SYSTEM TIME {before}"
        await reader.run("BEGIN")
        assert await reader.run(past) == [("500",)]
        disk.capacity = disk.used() + 100_000
        await session.run("CHECKPOINT")
        assert files(), "somebody reads them"
        assert await reader.run(past) == [("500",)]
        await reader.run("COMMIT")
        await session.run("CHECKPOINT")
        assert not files()
        with pytest.raises(Failed) as gone:
            await session.run(past)
        assert gone.value.report.sqlstate == "72000"
        await database.close()

    run(main)


def test_the_file_is_allocated_given_up_and_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = Reserve(str(tmp_path), 1 << 16)
    path = tmp_path / NAME
    assert path.stat().st_blocks * 512 >= 1 << 16
    assert Reserve(str(tmp_path), 1 << 16).short is False
    reserve.check(1)
    assert reserve.give_up("a test")
    assert path.stat().st_size == reserve.last == 1 << 14
    assert not reserve.give_up("a test")
    for step in range(STEPS):
        assert path.stat().st_size == reserve.last * (STEPS - step) // STEPS
        assert reserve.give_some("a test")
    assert not path.exists()
    assert not reserve.give_some("a test")
    monkeypatch.setattr(Reserve, "free", lambda self: 100)
    with pytest.raises(OutOfSpace) as refused:
        reserve.check(1)
    assert (refused.value.needed, refused.value.free) == (reserve.wanted, 100)
    monkeypatch.setattr(Reserve, "free", lambda self: 1 << 21)
    reserve.check(1)
    assert not reserve.short
    assert path.exists()
    if shutil.disk_usage(tmp_path).free >= 1 << 20:
        make_way(str(tmp_path), 1 << 16)
        assert path.stat().st_size == 1 << 16
    assert not Reserve(str(tmp_path), 0).give_up("there is none")
    assert not path.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_file_system_is_left_from_inside_and_a_server_starts_on_it(small_disk: Path) -> None:
    def fill(server: ServerProcess, first: int) -> None:
        with psycopg.connect(server.url, autocommit=True) as c:
            for k in range(first, 2 * first + 100_000):
                c.execute(
                    "INSERT INTO t SELECT %s, string_agg(md5(random()::text), '') FROM generate_series(1, 3000)",
                    (k,),
                )

    def fill_rest(file: Path) -> None:
        with file.open("wb", buffering=0) as out:
            while True:
                out.write(b"x" * 4096)

    server = ServerProcess(small_disk / "data", "--disk-reserve", "4MB")
    server.sql("CREATE TABLE t (k int PRIMARY KEY, v text); CREATE TABLE kept AS SELECT 1 AS a")
    with pytest.raises(psycopg.errors.DiskFull):
        fill(server, 0)
    filler = small_disk / "filler"
    server.stop()  # its log becomes smaller
    with pytest.raises(OSError, match="No space left"):
        fill_rest(filler)
    again = ServerProcess(small_disk / "data", "--disk-reserve", "4MB")
    assert again.sql("SELECT a FROM kept") == [("1",)]
    with pytest.raises(psycopg.errors.DiskFull, match="no space left") as full:
        fill(again, 100_000)
    assert "have to be free" in str(full.value.diag.message_detail)
    with psycopg.connect(again.url, autocommit=True) as c:
        c.execute("DELETE FROM t WHERE k = 0")
        c.execute("TRUNCATE t")
        c.execute("DROP TABLE t")
        c.execute("CHECKPOINT")
    filler.unlink()
    with psycopg.connect(again.url, autocommit=True) as c:
        for _ in range(100):
            try:
                c.execute("INSERT INTO kept VALUES (2)")
                break
            except psycopg.errors.DiskFull:
                c.execute("SELECT pg_sleep(0.1)")
        assert c.execute("SELECT a FROM kept ORDER BY a").fetchall() == [(1,), (2,)]
    again.stop()


def test_a_log_longer_than_the_reserve_goes_once_its_tables_are_empty(small_disk: Path) -> None:
    server = ServerProcess(small_disk / "data", "--disk-reserve", "2MB")
    server.sql("CREATE TABLE t (k int PRIMARY KEY, v text); CREATE TABLE kept AS SELECT 1 AS a")
    filler = small_disk / "filler"
    with psycopg.connect(server.url, autocommit=True) as c:
        for k in range(80):  # five megabytes that only the log has
            c.execute(
                "INSERT INTO t SELECT %s, string_agg(md5(random()::text), '') FROM generate_series(1, 2000)",
                (k,),
            )

    def fill_rest() -> None:
        with filler.open("ab", buffering=0) as out:
            while True:
                out.write(b"x" * 4096)

    for _ in range(2):  # each start takes a little of what is kept for that
        with pytest.raises(OSError, match="No space left"):
            fill_rest()
        server.kill()
        server = ServerProcess(small_disk / "data", "--disk-reserve", "2MB")
        with pytest.raises(ServerError, match="53100"):
            server.sql("INSERT INTO kept SELECT i FROM generate_series(1, 300000) i")
    with pytest.raises(OSError, match="No space left"):
        fill_rest()
    with psycopg.connect(server.url, autocommit=True) as c:
        c.execute("TRUNCATE t")
        c.execute("CHECKPOINT")
    free = shutil.disk_usage(small_disk).free
    assert free > 3 << 20
    server.sql("INSERT INTO kept VALUES (2)")
    assert server.sql("SELECT a FROM kept ORDER BY a") == [("1",), ("2",)]
    server.stop()


def test_a_reserve_is_no_longer_than_files_may_be(tmp_path: Path) -> None:
    """With a limit below its size it could not be allocated: nothing was ever written, for want of bytes of which there were plenty."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        reserve = Reserve(str(tmp_path), 1 << 16)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not reserve.short
    assert (tmp_path / NAME).stat().st_size == 10_000


def test_a_reserve_takes_what_a_quota_leaves_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 20_000
    allocate = os.posix_fallocate

    def quota(fd: int, offset: int, size: int) -> None:
        if size > left:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        allocate(fd, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", quota)
    monkeypatch.setattr(Reserve, "free", lambda self: 1 << 30)
    reserve = Reserve(str(tmp_path), 1 << 16)
    assert not reserve.short
    assert (tmp_path / NAME).stat().st_size == 1 << 14
    left = 0
    while reserve.give_some("a test"):
        pass
    with pytest.raises(OutOfSpace) as refused:
        reserve.check(1)
    assert (refused.value.lacking, refused.value.needed) == ("disk quota exceeded", None)


def test_a_second_server_leaves_the_reserve_of_the_first_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start() -> None:
        config = StorageConfig(path=tmp_path, reserve_bytes=1 << 16)
        await (await DurableLog.open(config, SystemClock(), SystemRng(), SystemIdGen())).close()

    asyncio.run(start())
    whole = (tmp_path / NAME).stat().st_size
    lock = DirectoryLock.acquire(str(tmp_path), SystemClock())
    monkeypatch.setattr(reserve_module, "free_bytes", lambda folder: 0)
    with pytest.raises(DataDirectoryInUse):
        asyncio.run(start())
    assert (tmp_path / NAME).stat().st_size == whole == 1 << 16
    lock.release()
    asyncio.run(start())
    assert (tmp_path / NAME).stat().st_size < whole


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_what_cannot_be_written_names_what_is_lacking(number: int) -> None:
    full = trouble.refused("a data file", OSError(number, os.strerror(number)))
    assert isinstance(full, OutOfSpace)
    report = report_of(full, cast(Catalog, None))
    assert report is not None
    assert report.sqlstate == "53100"
    assert report.message == f"could not write the commit: {os.strerror(number).lower()}"
    assert full.helped == (number != errno.EFBIG)
