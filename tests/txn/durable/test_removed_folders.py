"""Folders that are removed under a running server are made again, and what there is no room for says how much that is."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from tests.support.durable import run
from txn.base.errors import OutOfSpace
from txn.persist import sized
from txn.persist.blobs.files import Files, LocalBlob
from txn.persist.location import Indeterminate, inline

GONE = ("tmp", "7", ".")


@pytest.mark.parametrize("writer", ["", "1-a"])
@pytest.mark.parametrize("gone", GONE)
def test_a_folder_that_somebody_has_removed_is_made_again(tmp_path: Path, gone: str, writer: str) -> None:
    async def body() -> None:
        root = tmp_path / "blobs"
        blob = LocalBlob(str(root), writer=writer, leads=lambda: True, offload=inline)
        await blob.put("7/1-a.sys", b"a")
        for name in ("7/1-b.sys", "7/1-c.sys"):
            shutil.rmtree(root / gone)
            await blob.put(name, b"b")
            assert await blob.get(name) == b"b"
        shutil.rmtree(root / gone)
        grant = await blob.grant("job")
        lent = grant.open("w")
        await lent.put("7/1-d.sys", b"d")
        assert await blob.get("7/1-d.sys") == b"d"
        shutil.rmtree(root / "tmp")
        with pytest.raises(Indeterminate):  # as where the grant was revoked
            await lent.put("7/1-e.sys", b"e")
        assert os.listdir(root) == ["7"]

    run(body)


def test_a_folder_that_a_successor_may_have_removed_stays_away(tmp_path: Path) -> None:
    """Whoever is deposed meanwhile takes back what it has made."""

    async def body() -> None:
        answers: list[bool] = []
        blob = LocalBlob(str(tmp_path), writer="1-a", leads=lambda: answers.pop(0), offload=inline)
        for told in ([False], [True, False]):
            answers[:] = told
            shutil.rmtree(tmp_path / "tmp" / "1-a", ignore_errors=True)
            with pytest.raises(Indeterminate):
                await blob.put("7/1-a.sys", b"a")
            assert not answers
            assert not (tmp_path / "tmp" / "1-a").exists()
        answers[:] = [True, True]
        await blob.put("7/1-a.sys", b"a")

    run(body)


class Full(Files):
    """A device that is full after so many writes, or when the file is synced."""

    def __init__(self, left: int) -> None:
        self.left = left

    def open_new(self, path: str) -> BinaryIO:
        outer = self
        file = open(path, "xb", buffering=0)  # noqa: SIM115 - closed by ``__exit__``

        class Writing:
            def write(self, data: Any) -> int:
                if not outer.left:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                outer.left -= 1
                return file.write(data)

            def __enter__(self) -> Writing:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            tell, flush, fileno = file.tell, file.flush, file.fileno

        return cast(BinaryIO, Writing())

    def sync(self, file: BinaryIO) -> None:
        if not self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _pieces(count: int) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        for number in range(count):
            assert file.tell() == 1000 * number
            file.write(memoryview(b"x" * 1000).cast("H"))

    return write


@pytest.mark.parametrize("left", [0, 3, 5])
def test_a_data_file_without_room_says_how_large_it_would_be(
    tmp_path: Path, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sized, "free_bytes", lambda folder: 77)

    async def body() -> None:
        blob = LocalBlob(str(tmp_path), files=Full(left), offload=inline)
        with pytest.raises(OutOfSpace) as full:
            await blob.publish("7/1-a.parquet", _pieces(5))
        assert (full.value.needed, full.value.free, full.value.lacking) == (5000, 77, None)
        monkeypatch.setattr(sized, "no_more_files", lambda folder: True)
        with pytest.raises(OutOfSpace) as full:
            await blob.publish("7/1-a.parquet", _pieces(5))
        assert full.value.needed is None
        assert "inodes" in str(full.value.lacking)
        assert os.listdir(tmp_path) == ["tmp"]
        assert os.listdir(tmp_path / "tmp") == []

    run(body)


def test_a_file_that_may_not_be_as_long_says_so(tmp_path: Path) -> None:
    async def body() -> None:
        blob = LocalBlob(str(tmp_path), offload=inline)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
        try:
            with pytest.raises(OutOfSpace) as full:
                await blob.publish("7/1-a.parquet", _pieces(5))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (full.value.needed, full.value.lacking) == (None, "file too large")

    run(body)
