"""A log that may not grow is told as a full device is, and goes on once it may: limits on the size of files, quotas."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from tests.support.durable import run
from txn.base.errors import OutOfSpace
from txn.persist.logs import space as log_space
from txn.persist.logs.process import DONE, FAILED, REFUSED, append, settle
from txn.persist.logs.sqlite import SqliteConsensus

KIB = 1 << 10
LONG = bytes(900 * KIB)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_server_goes_on_where_the_log_may_not_grow(tmp_path: Path) -> None:
    async def body() -> None:
        log = await SqliteConsensus.open(str(tmp_path / "log"))
        epoch = await log.acquire_epoch()
        await log.append(epoch, 1, b"1")
        with files_of_at_most(500 * KIB):
            for _ in range(3):
                with pytest.raises(OutOfSpace, match="a quota or a limit"):
                    await log.append(epoch, 2, LONG)
            await log.append(epoch, 2, b"short")
        await log.append(epoch, 3, LONG)
        assert await log.read_log(1) == [(1, b"1"), (2, b"short"), (3, LONG)]
        await log.close()
        again = await SqliteConsensus.open(str(tmp_path / "log"))
        assert [seq for seq, _ in await again.read_log(1)] == [1, 2, 3]
        await again.close()

    run(body)


def test_its_process_refuses_what_has_no_room(tmp_path: Path) -> None:
    async def make() -> int:
        log = await SqliteConsensus.open(str(tmp_path / "log"))
        epoch = await log.acquire_epoch()
        await log.close()
        assert epoch is not None
        return epoch

    epoch = run(make)
    db = sqlite3.connect(tmp_path / "log", isolation_level=None)
    settle(db)
    with files_of_at_most(500 * KIB):
        assert append(db, epoch, 1, LONG) == REFUSED
        assert append(db, epoch, 1, b"short") == DONE
    assert append(db, epoch, 2, LONG) == DONE
    assert db.execute("SELECT seq FROM log").fetchall() == [(1,), (2,)]
    db.close()


@pytest.mark.parametrize("code", [28, 122, 27], ids=["ENOSPC", "EDQUOT", "EFBIG"])
def test_a_quota_is_found_out_by_trying(tmp_path: Path, code: int) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE  # type: ignore[misc]
    path = str(tmp_path / "log")
    assert not log_space.no_space(path, error, 100), "there is room: it was something else"
    with mock.patch("os.posix_fallocate", side_effect=OSError(code, "no")):
        assert log_space.no_space(path, error, 100)
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC  # type: ignore[misc]
        assert not log_space.no_space(path, error, 100), "what could not be synced may have happened"


def test_what_may_have_happened_is_told_so() -> None:
    db = mock.Mock()
    db.in_transaction = False
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC  # type: ignore[misc]
    db.execute.side_effect = error
    assert append(db, 1, 1, b"") == FAILED
