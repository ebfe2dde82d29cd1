"""A full disk is left from inside: what makes room goes on, with a reserve kept for that, and says what is missing; the server starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.server import ServerProcess
from txn.errors import OutOfSpace
from txn.persist.memory import MemoryDisk
from txn.persist.reserve import NAME, START_BYTES, Reserve, make_way

SIZE = 60_000


class MemoryReserve(Reserve):
    """A reserve of a disk in memory."""

    def __init__(self, disk: MemoryDisk, size: int) -> None:
        self.disk, self.size, self.short = disk, size, False
        self.held = False
        assert self._take()

    def free(self) -> int:
        assert self.disk.capacity is not None
        return max(self.disk.capacity - self.disk.used(), 0)

    def _take(self) -> bool:
        if not self.held and self.free() >= self.size // 4 + (START_BYTES if self.short else 0):
            assert self.disk.capacity is not None
            self.disk.capacity -= self.size
            self.held = True
        return self.held

    def _remove(self) -> bool:
        had, self.held = self.held, False
        if had:
            assert self.disk.capacity is not None
            self.disk.capacity += self.size
        return had


@pytest.mark.parametrize(
    "way", ["DELETE FROM t WHERE k < 400", "TRUNCATE t", "DROP TABLE t", "BEGIN; DELETE FROM t; COMMIT"]
)
def test_what_makes_room_goes_on_and_the_rest_when_there_is_some(way: str) -> None:
    async def main() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE TABLE t (k int PRIMARY KEY, v text); CREATE TABLE u (k int)")
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
            "CREATE TABLE w ()",
            "UPDATE u SET k = 1; INSERT INTO u VALUES (2)",
        ):
            with pytest.raises(Failed) as short:
                await session.run(refused)
            assert short.value.report.sqlstate == "53100"
            assert f"{reserve.wanted} bytes have to be free" in str(short.value.report.detail)
            assert "TRUNCATE" in str(short.value.report.hint)
        await session.run("CHECKPOINT")
        await session.run("DELETE FROM u")
        await session.run("BEGIN; SELECT count(*) FROM u; COMMIT")
        disk.capacity = disk.used() + reserve.wanted
        await session.run("INSERT INTO u VALUES (3)")
        assert not reserve.short
        assert await session.run("SELECT k FROM u") == [("3",)]
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
    assert not path.exists()
    assert not reserve.give_up("a test")
    monkeypatch.setattr(Reserve, "free", lambda self: 100)
    with pytest.raises(OutOfSpace) as refused:
        reserve.check(1)
    assert (refused.value.needed, refused.value.free) == (reserve.wanted, 100)
    monkeypatch.setattr(Reserve, "free", lambda self: 1 << 21)
    reserve.check(1)
    assert not reserve.short
    assert path.exists()
    make_way(str(tmp_path))
    assert path.exists() == (shutil.disk_usage(tmp_path).free >= 1 << 20)
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
