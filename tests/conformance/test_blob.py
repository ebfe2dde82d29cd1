"""One suite for every Blob: memory, files, an object store, and each behind a delaying delegate."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.durable import BLOB_KINDS, blob_of, run
from txn.persist.location import Blob, Indeterminate


@pytest.fixture(params=BLOB_KINDS)
def blob(request: pytest.FixtureRequest, tmp_path: Path) -> Blob:
    url = ""
    if request.param.startswith("objects"):
        server = request.getfixturevalue("object_store")
        url = server.url(server.new_bucket())
    return blob_of(request.param, tmp_path, url)


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
        held = await blob.hold("p/q")
        with open(blob.local_path("p/q"), "rb") as file:
            assert file.read() == b"12345"
        del held

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


def test_a_source_reads_pieces(blob: Blob) -> None:
    data = bytes(range(256)) * 1000

    async def body() -> None:
        await blob.put("p/q.parquet", data)
        source = blob.source("p/q.parquet")
        with open(source, "rb") if isinstance(source, str) else source as file:
            assert file.seek(-10, 2) == len(data) - 10
            assert file.read(20) == data[-10:]
            file.seek(70_000)
            assert file.read(5) == data[70_000:70_005]
            assert file.tell() == 70_005
            assert file.read() == data[70_005:]

    run(body)


def test_what_is_not_there_cannot_be_read(blob: Blob) -> None:
    def read() -> None:
        source = blob.source("p/none")
        if isinstance(source, str):
            Path(source).read_bytes()

    async def body() -> None:
        with pytest.raises(FileNotFoundError):
            read()
        if blob.remote:
            with pytest.raises(FileNotFoundError):
                await blob.hold("p/none")

    run(body)


def test_sidecars_that_are_kept_are_files(blob: Blob) -> None:
    async def body() -> None:
        for name in ("7/1-a.parquet", "7/1-a.sys", "7/1-a.x2", "7/1-b.sys"):
            await blob.put(name, name.encode())
        await blob.keep("7/1-a")
        for name in ("7/1-a.sys", "7/1-a.x2"):
            with open(blob.local_path(name), "rb") as file:
                assert file.read() == name.encode()

    run(body)


@pytest.mark.parametrize("name", ["../a", "tmp/a", "A", "/a", "a//b", ""])
def test_names_are_checked(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a blob name"):
        blob_of("files", tmp_path).local_path(name)


def test_a_grant_lets_others_write_until_it_is_revoked(blob: Blob) -> None:
    async def body() -> None:
        grant = await blob.grant("7-1-a")
        lent = grant.open("0-w")
        assert await lent.publish("7/1-a-0.parquet", lambda file: file.write(b"abc") and None) == 3
        assert await blob.get("7/1-a-0.parquet") == b"abc"
        await blob.revoke("7-1-a")
        await blob.revoke("7-1-a")
        with pytest.raises(Indeterminate):
            await lent.put("7/1-a-1.parquet", b"late")
        assert await blob.list("") == ["7/1-a-0.parquet"]

    run(body)
