"""Files that the system will not read when the server starts: their table is not served, the others are, and nothing is lost by it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.store import SHARD, StepClock, make_table, now
from tests.txn.test_damage import OTHER, ROWS, everything, left, put, two_tables
from txn.base.errors import DamagedFile, FileTrouble
from txn.base.time import SequentialIdGen
from txn.log.durable import DurableLog
from txn.persist import trouble
from txn.persist.blobs.files import LocalBlob
from txn.persist.location import inline
from txn.persist.memory import MemoryConsensus, MemoryDisk
from txn.store import ShardStore, start_store

LARGE = (3000, 1, "x" * 1_200_000)


async def open_at(disk: MemoryDisk, root: Path) -> ShardStore:
    log = await DurableLog.assemble(
        MemoryConsensus(disk), LocalBlob(str(root), offload=inline), StepClock(), SequentialIdGen(), offload=inline
    )  # fmt: skip
    return await start_store(log, None, offload=inline)


async def laid_out(disk: MemoryDisk, root: Path) -> None:
    """Put two tables of ``two_tables`` on a disk, with a large commit to the first that only the log has."""
    await two_tables(disk, many_ends=True)
    for name, data in disk.blobs.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    store = await open_at(disk, root)
    await put(store, SHARD, LARGE)
    disk.crash()
    await store.close()


def folder(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.mkdir()


def loop(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to(path.name)


def restored(path: Path) -> None:
    path.unlink() if path.is_symlink() else path.rmdir()
    path.with_name("aside").rename(path)


@pytest.mark.parametrize("put_there", [folder, loop])
@pytest.mark.parametrize("kind", [".parquet", ".sys", ".ends", ".ops"])
def test_a_table_that_cannot_be_read_leaves_the_others(
    tmp_path: Path, kind: str, put_there: Callable[[Path], None]
) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await laid_out(disk, tmp_path)
        place = tmp_path / ("txn" if kind == ".ops" else str(SHARD))
        (path, *_rest) = sorted(p for p in place.iterdir() if kind in p.name)
        put_there(path)
        before = {p for p in tmp_path.rglob("*") if p.parent.name == str(SHARD)}
        store = await open_at(disk, tmp_path)
        with pytest.raises(DamagedFile, match="could not be read: ") as told:
            await everything(store, SHARD)
        assert told.value.unread
        assert told.value.file == str(path)
        assert await everything(store, OTHER) == left(many_ends=True)
        await put(store, OTHER, (5000, 0, "goes on"))
        await store.flush()
        await store.idle()
        assert before == {p for p in tmp_path.rglob("*") if p.parent.name == str(SHARD)}
        await store.close()
        restored(path)
        store = await open_at(disk, tmp_path)
        assert await everything(store, SHARD) == [*left(many_ends=True), LARGE]
        assert await everything(store, OTHER) == [*left(many_ends=True), (5000, 0, "goes on")]
        await store.close()

    run(go)


def test_a_table_that_cannot_be_read_can_be_given_up(tmp_path: Path) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await laid_out(disk, tmp_path)
        (path, *_rest) = sorted((tmp_path / str(SHARD)).glob("*.sys"))
        folder(path)
        store = await open_at(disk, tmp_path)
        txn = store.begin()
        await now(txn.truncate(SHARD))
        await now(txn.commit())
        await put(store, SHARD, (1, 1, "new"))
        assert await everything(store, SHARD) == [(1, 1, "new")]
        await store.close()

    run(go)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM])
def test_what_is_short_for_all_is_no_tables(tmp_path: Path, number: int) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_at(disk, tmp_path)
        await make_table(store, ROWS)
        await store.flush(SHARD)
        await store.close()
        with (
            mock.patch.object(trouble, "open_regular", side_effect=OSError(number, os.strerror(number))),
            pytest.raises(FileTrouble) as told,
        ):
            await open_at(disk, tmp_path)
        assert told.value.kind in ("files", "memory")

    run(go)
