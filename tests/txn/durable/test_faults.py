"""System calls that fail: every step of publishing a blob, and SQLite's errors."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.support.durable import ManualClock, run
from txn.base.errors import DataDirectoryInUse, OutOfSpace, UnknownFormat
from txn.log.leadership import DirectoryLock
from txn.persist.blobs.files import Files, LocalBlob
from txn.persist.location import Indeterminate, inline
from txn.persist.logs.sqlite import SqliteConsensus


class FailingFiles(Files):
    """Fails the named call with an errno as long as ``armed``."""

    def __init__(self, call: str, code: int) -> None:
        self.call, self.code, self.armed = call, code, False
        self.done: list[str] = []

    def _maybe(self, call: str) -> None:
        self.done.append(call)
        if self.armed and call == self.call:
            raise OSError(self.code, "injected")

    def open_new(self, path: str) -> BinaryIO:
        self._maybe("open")
        return super().open_new(path)

    def sync(self, file: BinaryIO) -> None:
        self._maybe("sync")
        super().sync(file)

    def rename(self, source: str, target: str) -> None:
        self._maybe("rename")
        super().rename(source, target)

    def sync_directory(self, path: str) -> None:
        self._maybe("sync_directory")
        super().sync_directory(path)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["open", "sync", "rename", "sync_directory"])
def test_a_failing_step_leaves_no_half_blob(tmp_path: Path, call: str, code: int) -> None:
    async def body() -> None:
        files = FailingFiles(call, code)
        blob = LocalBlob(str(tmp_path), files=files, offload=inline)
        await blob.put("a/first", b"1")
        files.armed = True
        expected: type[Exception] = OutOfSpace if code == errno.ENOSPC else Indeterminate
        if call == "sync_directory":
            expected = Indeterminate  # it has its name already, maybe durably
        with pytest.raises(expected):
            await blob.put("a/second", b"2")
        files.armed = False
        assert not list((tmp_path / "tmp").iterdir())
        if call != "sync_directory":
            assert await blob.get("a/second") is None
            await blob.put("a/second", b"2")
        assert await blob.get("a/first") == b"1"

    run(body)


def test_a_blob_is_synced_before_and_after_its_rename(tmp_path: Path) -> None:
    async def body() -> None:
        files = FailingFiles("", 0)
        blob = LocalBlob(str(tmp_path), files=files, offload=inline)
        files.done.clear()
        await blob.put("a/b", b"1")
        # The new directory's own name is made durable too.
        assert files.done == ["open", "sync", "sync_directory", "rename", "sync_directory"]

    run(body)


def test_leftovers_are_removed_and_names_are_checked(tmp_path: Path) -> None:
    async def body() -> None:
        LocalBlob(str(tmp_path), offload=inline)
        (tmp_path / "tmp" / "17").write_bytes(b"half")
        blob = LocalBlob(str(tmp_path), offload=inline)
        assert not list((tmp_path / "tmp").iterdir())
        for bad in ("../x", "/etc/passwd", "a//b", "", "tmp/1", "A", "a/../../b"):
            with pytest.raises(ValueError, match="not a blob name"):
                await blob.put(bad, b"")

    run(body)


class _FailingConnection:
    """Delegates to a connection, but statements that begin with ``verb`` raise."""

    def __init__(self, inner: sqlite3.Connection, verb: str, error: sqlite3.Error, *, perform: bool) -> None:
        self._inner, self._verb, self._error, self._perform = inner, verb, error, perform

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql.startswith(self._verb):
            if self._perform:
                self._inner.execute(sql, *parameters)
            raise self._error
        return self._inner.execute(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("injected")
    error.sqlite_errorcode = code  # type: ignore[misc]
    return error


@pytest.mark.parametrize("perform", [False, True])
def test_sqlite_errors_are_told_apart(tmp_path: Path, perform: bool) -> None:
    async def body() -> None:
        c = await SqliteConsensus.open(str(tmp_path / "log"))
        epoch = await c.acquire_epoch()
        await c.append(epoch, 1, b"1")
        real = c._db
        io_error = sqlite_error(sqlite3.SQLITE_IOERR_FSYNC)
        c._db = _FailingConnection(real, "INSERT", io_error, perform=perform)  # type: ignore[assignment]
        with pytest.raises(Indeterminate):
            await c.append(epoch, 2, b"2")
        if not perform:
            full = sqlite_error(sqlite3.SQLITE_FULL)
            c._db = _FailingConnection(real, "INSERT", full, perform=False)  # type: ignore[assignment]
            with pytest.raises(OutOfSpace):
                await c.append(epoch, 2, b"2")
            assert await c.read_log(1) == [(1, b"1")], "reads go on"
            c._db = _FailingConnection(real, "COMMIT", full, perform=False)  # type: ignore[assignment]
            with pytest.raises(OutOfSpace):
                await c.compare_and_set("r", None, b"1", epoch=epoch)
            c._db = real
            assert await c.head("r") is None, "what failed was rolled back"
            await c.append(epoch, 2, b"2")
        c._db = real
        assert await c.read_log(1) == [(1, b"1"), (2, b"2")]
        await c.close()

    run(body)


def test_whatever_stops_a_transaction_it_does_not_stay_open(tmp_path: Path) -> None:
    """An append in a transaction that nobody commits would be acknowledged, and be gone after a crash."""

    async def body() -> None:
        c = await SqliteConsensus.open(str(tmp_path / "log"))
        epoch = await c.acquire_epoch()
        set_meta = c._set_meta

        def out_of_memory(name: str, value: int) -> None:
            set_meta(name, value)
            raise MemoryError

        c._set_meta = out_of_memory  # type: ignore[method-assign]
        with pytest.raises(MemoryError):
            await c.compare_and_set("r", None, b"1", epoch=epoch)
        del c._set_meta
        await c.append(epoch, 1, b"1")
        other = sqlite3.connect(tmp_path / "log")
        assert other.execute("SELECT seq, data FROM log").fetchall() == [(1, b"1")]
        other.close()
        assert await c.compare_and_set("r", None, b"1", epoch=epoch) == 1
        await c.close()

    run(body)


def test_a_directory_has_one_owner_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    lock = DirectoryLock.acquire(path, ManualClock())
    with pytest.raises(DataDirectoryInUse) as raised:
        DirectoryLock.acquire(path, ManualClock())
    assert "pid" in raised.value.holder
    assert raised.value.path == path
    lock.release()
    lock.release()
    DirectoryLock.acquire(path, ManualClock()).release()


@pytest.mark.parametrize("put", ["nothing", "another"])
def test_without_its_lock_file_a_directory_has_one_owner_still(tmp_path: Path, put: str) -> None:
    path = tmp_path / "db"
    lock = DirectoryLock.acquire(str(path), ManualClock())
    (path / "lock").unlink()
    if put == "another":
        (path / "lock").write_text("pid 1 on elsewhere")
    (tmp_path / "link").symlink_to(path)
    for name in ("db", "link"):
        with pytest.raises(DataDirectoryInUse, match="lock file was removed"):
            DirectoryLock.acquire(str(tmp_path / name), ManualClock())
    lock.release()
    DirectoryLock.acquire(str(path), ManualClock()).release()


def test_where_directories_cannot_be_locked_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def files_alone(fd: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EBADF, "NFS")
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", files_alone)
    lock = DirectoryLock.acquire(str(tmp_path), ManualClock())
    with pytest.raises(DataDirectoryInUse, match="pid"):
        DirectoryLock.acquire(str(tmp_path), ManualClock())
    lock.release()


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_bytes(b"\xff\xfe")
    with pytest.raises(UnknownFormat):
        DirectoryLock.acquire(str(tmp_path), ManualClock())
    (tmp_path / "FORMAT").write_text("holdfast data directory, format 1\n")
    DirectoryLock.acquire(str(tmp_path), ManualClock()).release()


def test_a_long_log_is_truncated_in_bounded_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn.persist.logs.sqlite._TRUNCATE_CHUNK", 3)
    monkeypatch.setattr("txn.persist.logs.sqlite._TRUNCATE_BYTES", 50)

    async def body() -> None:
        c = await SqliteConsensus.open(str(tmp_path / "log"))
        epoch = await c.acquire_epoch()
        for seq in range(1, 31):
            await c.append(epoch, seq, b"x" * seq)
        steps: list[int] = []
        truncate_some = c._truncate_some
        monkeypatch.setattr(
            c, "_truncate_some", lambda before, epoch: (steps.append(before), truncate_some(before, epoch))[1]
        )
        await c.truncate(29, epoch=epoch)
        assert await c.log_bounds() == (29, 31)
        assert len(steps) >= 10
        await c.close()

    run(body)
