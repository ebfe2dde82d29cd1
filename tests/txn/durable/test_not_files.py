"""What is in a file's place and is none: nothing waits for it, and whoever reads it says what is wrong.

A read of a pipe that nobody writes to would hang a start, or a thread for good; each of these tests would, so that it runs beside a clock.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.base.private_files import SECRET, stored_secret
from engine.catalog.storage.unreadable import FILE, noted
from engine.executors.statistics.files import StatisticsFiles
from txn.base.errors import FileTrouble
from txn.base.time import SystemClock, SystemIdGen, SystemRng
from txn.log.durable import DurableLog, StorageConfig
from txn.log.leadership import DirectoryLock
from txn.persist.blobs.files import LocalBlob
from txn.persist.regular import NotRegularFile, open_regular
from txn.persist.reserve import Reserve
from txn.persist.trouble import opened, reading, whole

PATIENCE_S = 20.0


def in_time(work: Callable[[], object]) -> object:
    """Do ``work`` in a thread that is left behind where it hangs; return what it gives or the error that it raises."""
    done: list[object] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:
            done.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert done, "it hangs"
    return done[0]


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def linked_pipe(path: Path) -> None:
    pipe(path.with_name("pipe"))
    path.unlink(missing_ok=True)
    path.symlink_to("pipe")


def bound(path: Path) -> None:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


PUT = (pipe, linked_pipe, bound, endless, folder)


@pytest.mark.parametrize("put", PUT)
def test_nothing_but_a_regular_file_is_read(tmp_path: Path, put: Callable[[Path], None]) -> None:
    path = tmp_path / "x"
    put(path)

    def read() -> bytes:
        with opened(str(path)) as file:
            return whole(file)

    assert isinstance(in_time(read), NotRegularFile)
    told = in_time(lambda: reading(str(path), read))
    assert isinstance(told, FileTrouble)
    assert told.reason == "Not a regular file"
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT):
        assert isinstance(in_time(lambda f=flags: open_regular(str(path), f)), NotRegularFile)  # type: ignore[misc]


def test_a_link_to_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"here")
    (tmp_path / "link").symlink_to("x")
    with opened(str(tmp_path / "link")) as file:
        assert whole(file) == b"here"
    with pytest.raises(NotRegularFile):
        open_regular(str(tmp_path / "link"), os.O_RDONLY | os.O_NOFOLLOW)


@pytest.mark.parametrize("put", PUT)
def test_libraries_are_not_given_one(tmp_path: Path, put: Callable[[Path], None]) -> None:
    blob = LocalBlob(str(tmp_path / "blobs"))
    asyncio.run(blob.put("7/a.parquet", b"x"))
    assert blob.source("7/a.parquet") == blob.local_path("7/a.parquet")
    put(Path(blob.local_path("7/a.parquet")))
    assert isinstance(in_time(lambda: blob.source("7/a.parquet")), NotRegularFile)


@pytest.mark.parametrize(
    "name", ["FORMAT", "lock", "reserve", "log.sqlite", "log.sqlite-wal", "log.sqlite-shm"]
)
@pytest.mark.parametrize("put", [pipe, endless, folder])
def test_a_start_names_what_is_no_file(tmp_path: Path, name: str, put: Callable[[Path], None]) -> None:
    config = StorageConfig(path=tmp_path, reserve_bytes=1 << 20)

    async def start() -> None:
        log = await DurableLog.open(config, SystemClock(), SystemRng(), SystemIdGen())
        await log.close()

    asyncio.run(start())
    put(tmp_path / name)
    told = in_time(lambda: asyncio.run(start()))
    assert isinstance(told, NotRegularFile)
    assert told.filename == str(tmp_path / name)


@pytest.mark.parametrize("put", [pipe, endless, folder])
def test_what_a_start_can_do_without_it_does_without(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / SECRET)
    assert len(str(in_time(lambda: stored_secret(tmp_path).hex()))) == 64
    put(tmp_path / FILE)
    assert isinstance(in_time(lambda: noted(tmp_path)), NotRegularFile)
    (tmp_path / "statistics").mkdir()
    put(tmp_path / "statistics" / "analyzed")
    assert in_time(lambda: StatisticsFiles(tmp_path / "statistics", "").records()) == {}


def test_a_reserve_that_is_not_wanted_goes_whatever_it_is(tmp_path: Path) -> None:
    pipe(tmp_path / "reserve")
    in_time(lambda: Reserve(str(tmp_path), 0))
    assert not (tmp_path / "reserve").exists()
    lock = DirectoryLock.acquire(str(tmp_path / "new"), SystemClock())
    lock.release()
