"""One suite for every Blob: memory, files, and both behind a delaying delegate."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.durable import BLOB_KINDS, blob_of, run
from txn.persist.location import Blob


@pytest.fixture(params=BLOB_KINDS)
def blob(request: pytest.FixtureRequest, tmp_path: Path) -> Blob:
    return blob_of(request.param, tmp_path)


def test_what_was_put_is_got_and_listed(blob: Blob) -> None:
    async def body() -> None:
        await blob.put("7/1-a.parquet", b"abc")
        await blob.put("7/1-a.sys", b"")
        await blob.put("9/1-b.parquet", b"x")
        assert await blob.get("7/1-a.parquet") == b"abc"
        assert await blob.get("7/1-a.sys") == b""
        assert await blob.get("7/none") is None
        assert await blob.list("7/") == ["7/1-a.parquet", "7/1-a.sys"]
        assert len(await blob.list("")) == 3

    run(body)


def test_a_name_is_written_once(blob: Blob) -> None:
    async def body() -> None:
        await blob.put("a", b"1")
        with pytest.raises(FileExistsError):
            await blob.put("a", b"2")
        assert await blob.get("a") == b"1"

    run(body)


def test_publish_writes_what_the_function_writes_and_returns_its_size(blob: Blob) -> None:
    def write(file: BinaryIO) -> None:
        file.write(b"12")
        file.write(b"345")

    async def body() -> None:
        assert await blob.publish("p/q", write) == 5
        assert await blob.get("p/q") == b"12345"
        with open(blob.local_path("p/q"), "rb") as file:
            assert file.read() == b"12345"

    run(body)


def test_a_failing_writer_leaves_nothing(blob: Blob) -> None:
    def write(file: BinaryIO) -> None:
        file.write(b"half")
        raise RuntimeError("stop")

    async def body() -> None:
        with pytest.raises(RuntimeError, match="stop"):
            await blob.publish("p", write)
        assert await blob.list("") == []
        await blob.put("p", b"whole")
        assert await blob.get("p") == b"whole"

    run(body)


def test_deletion_is_idempotent(blob: Blob) -> None:
    async def body() -> None:
        await blob.put("a/b", b"1")
        await blob.delete("a/b")
        await blob.delete("a/b")
        assert await blob.get("a/b") is None
        assert await blob.list("") == []

    run(body)
