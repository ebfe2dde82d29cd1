"""A commit of the SQLite log that failed at its sync, after its frames were written: it is not there after a crash, and no damage."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.support.durable import run
from txn.persist.location import Indeterminate
from txn.persist.logs.sqlite import SqliteConsensus

FAILED = b"x" * 40_000  # ten pages: more than what comes after it


def crashed(log: Path, name: str) -> Path:
    """Return a copy of the files as a crash leaves them: what is in memory, the index of the write-ahead file, is gone."""
    folder = log.parent / name
    folder.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{log}{suffix}", f"{folder / log.name}{suffix}")
    return folder / log.name


async def entries(log: Path) -> dict[int, bytes]:
    consensus = await SqliteConsensus.open(str(log))
    try:
        return dict(await consensus.read_log(1))
    finally:
        await consensus.close()


async def left_behind(log: Path, epoch: int) -> bytes:
    """Return the frames that appending ``FAILED`` as the second entry adds to the write-ahead file."""
    twin = crashed(log, "twin")
    before = Path(f"{twin}-wal").stat().st_size
    consensus = await SqliteConsensus.open(str(twin))
    await consensus.append(epoch, 2, FAILED)
    added = Path(f"{twin}-wal").read_bytes()[before:]
    await consensus.close()
    assert added
    return added


def test_frames_of_a_failed_commit_are_cut_off(tmp_path: Path) -> None:
    async def body() -> None:
        log = tmp_path / "log.sqlite"
        consensus = await SqliteConsensus.open(str(log))
        try:
            epoch = await consensus.acquire_epoch()
            assert epoch is not None
            await consensus.append(epoch, 1, b"first")
            with Path(f"{log}-wal").open("ab") as wal:
                wal.write(await left_behind(log, epoch))
            assert (await entries(crashed(log, "before")))[2] == FAILED  # as if it had been acknowledged

            error = sqlite3.OperationalError("disk I/O error")
            assert isinstance(await consensus._call(lambda: consensus._translate(error)), Indeterminate)
            assert await consensus.log_bounds() == (1, 2)
            assert await entries(crashed(log, "told")) == {1: b"first"}
            await consensus.append(epoch, 2, b"second")
            assert await entries(crashed(log, "after")) == {1: b"first", 2: b"second"}
        finally:
            await consensus.close()

    run(body)


def test_nothing_is_done_while_the_file_cannot_be_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(db: object, path: object) -> None:
        raise OSError(5, "Input/output error")

    async def body() -> None:
        consensus = await SqliteConsensus.open(str(tmp_path / "log.sqlite"))
        try:
            consensus._torn = True
            with monkeypatch.context() as patched:
                patched.setattr("txn.persist.logs.sqlite.cut_tail", failing)
                with pytest.raises(Indeterminate):
                    await consensus.log_bounds()
            assert await consensus.log_bounds() == (1, 1)
        finally:
            await consensus.close()

    run(body)
