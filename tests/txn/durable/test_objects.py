"""An object store that refuses, breaks off, lies or is not there: clear errors, nothing half written."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.support.durable import blob_of, run, two_column_spec
from tests.support.objects import Fault, ObjectProxy, ObjectStoreServer
from txn.base.errors import DamagedFile, OutOfSpace, UnknownFormat
from txn.base.time import SystemClock, SystemIdGen, SystemRng
from txn.base.types import ShardId
from txn.log.durable import DurableLog, StorageConfig
from txn.log.shared import ObjectStore
from txn.persist.blobs import objects
from txn.persist.blobs.object_url import parse_object_url
from txn.persist.blobs.objects import ObjectBlob
from txn.persist.location import StoreUnavailable
from txn.values.columns import rows_to_table


@pytest.fixture
def bucket(object_store: ObjectStoreServer) -> str:
    return object_store.new_bucket()


@pytest.fixture
def blob(object_store: ObjectStoreServer, proxy: ObjectProxy, bucket: str, tmp_path: Path) -> ObjectBlob:
    """A store behind the proxy."""
    made = blob_of("objects", tmp_path, object_store.url(bucket, port=proxy.port))
    assert isinstance(made, ObjectBlob)
    return made


def direct(server: ObjectStoreServer, bucket: str, folder: Path) -> ObjectBlob:
    """The same store, past the proxy."""
    made = blob_of("objects", folder / "direct", server.url(bucket))
    assert isinstance(made, ObjectBlob)
    return made


# -- URLs ------------------------------------------------------------------------------------------


def test_a_url_is_read() -> None:
    url = parse_object_url("s3://b-1/a/b?endpoint_override=http://127.0.0.1:9&region=eu-north-1")
    assert (url.root, url.name, url.spark) == ("b-1/a/b/", "s3://b-1/a/b", "s3a://b-1/a/b/")
    assert dict(url.options) == {"endpoint_override": "127.0.0.1:9", "scheme": "http", "region": "eu-north-1"}
    assert parse_object_url("gs://bucket").root == "bucket/"
    assert parse_object_url("gs://bucket/x").spark == "gs://bucket/x/"


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:hush@bucket/p", "s3://hush@bucket/p", "s3://bucket:80/p", "s3://B/p", "s3://", "s3:///p", "http://bucket/p",
        "s3://bucket/../p", "s3://bucket/a//b", "s3://bucket/a b", "s3://bucket/p?access_key=hush",
        "s3://bucket/p?scheme=ftp", "gs://bucket/p?region=x", "s3://bucket/p#hush",
    ],
)  # fmt: skip
def test_other_urls_are_refused_without_showing_them(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_object_url(url)
    assert "hush" not in str(caught.value)


# -- a store that refuses --------------------------------------------------------------------------


def test_a_bucket_that_is_not_there(object_store: ObjectStoreServer, tmp_path: Path) -> None:
    async def body() -> None:
        url = parse_object_url(object_store.url("no-such-bucket"))
        with pytest.raises(StoreUnavailable, match="the bucket no-such-bucket does not exist"):
            await ObjectBlob.open(url, str(tmp_path / "cache"), 1 << 20)

    run(body)


def test_an_endpoint_that_is_down(
    proxy: ObjectProxy, object_store: ObjectStoreServer, tmp_path: Path
) -> None:
    port = proxy.port
    proxy.close()

    async def body() -> None:
        url = parse_object_url(object_store.url("bucket", port=port))
        with pytest.raises(StoreUnavailable, match=r"could not look at s3://bucket/db: .*connect"):
            await ObjectBlob.open(url, str(tmp_path / "cache"), 1 << 20)

    run(body)


def test_access_denied_names_the_operation_and_changes_nothing(blob: ObjectBlob, proxy: ObjectProxy) -> None:
    async def body() -> None:
        await blob.put("7/1-a.sys", b"there")
        proxy.fault = lambda method, path: (403, "AccessDenied")
        with pytest.raises(StoreUnavailable, match=r"could not write s3://.*/db/7/1-b\.sys: .*ACCESS_DENIED"):
            await blob.put("7/1-b.sys", b"new")
        with pytest.raises(StoreUnavailable, match=r"could not read s3://.*/db/7/1-a\.sys: "):
            await blob.get("7/1-a.sys")
        with pytest.raises(StoreUnavailable, match="could not list"):
            await blob.list("")
        with pytest.raises(StoreUnavailable, match="could not delete"):
            await blob.delete("7/1-a.sys")
        proxy.fault = lambda method, path: None
        assert await blob.list("") == ["7/1-a.sys"]
        assert await blob.get("7/1-a.sys") == b"there"

    run(body)


def test_a_store_that_is_full_is_out_of_space(blob: ObjectBlob, proxy: ObjectProxy) -> None:
    async def body() -> None:
        proxy.fault = lambda method, path: (400, "QuotaExceeded") if method == "PUT" else None
        with pytest.raises(OutOfSpace):
            await blob.put("7/1-b.sys", b"new")
        proxy.fault = lambda method, path: None
        assert await blob.list("") == []

    run(body)


BIG = os.urandom(1 << 20) * 24
"""Uploaded in pieces of 8 MB."""


@pytest.mark.parametrize("broken", ["partNumber=2", "partNumber=3", "complete"])
@pytest.mark.parametrize("how", ["cut", "refuse"])
def test_an_upload_that_breaks_off_leaves_nothing(
    blob: ObjectBlob,
    proxy: ObjectProxy,
    object_store: ObjectStoreServer,
    bucket: str,
    tmp_path: Path,
    broken: str,
    how: str,
) -> None:
    def fault(method: str, path: str) -> Fault:
        complete = method == "POST" and "uploadId=" in path
        if (broken == "complete" and complete) or broken in path:
            return "cut" if how == "cut" else (403, "AccessDenied")
        return None

    def write(file: BinaryIO) -> None:
        file.write(BIG)

    async def body() -> None:
        proxy.fault = fault
        with pytest.raises(StoreUnavailable, match="could not write"):
            await blob.publish("7/1-a.parquet", write)
        past = direct(object_store, bucket, tmp_path)
        assert await past.list("") == []
        assert [name for _, _, names in os.walk(blob.cache.root) for name in names] == []
        proxy.fault = lambda method, path: None
        assert await blob.publish("7/1-a.parquet", write) == len(BIG)
        assert await past.get("7/1-a.parquet") == BIG

    run(body)


# -- a store that lies -----------------------------------------------------------------------------


def test_bytes_that_are_not_those_written_are_damage(
    blob: ObjectBlob,
    object_store: ObjectStoreServer,
    bucket: str,
    tmp_path: Path,
) -> None:
    async def body() -> None:
        await blob.put("7/1-a.parquet", b"as written")
        info: Any = blob._fs.open_input_stream(blob.url.root + "7/1-a.parquet").metadata()
        with blob._fs.open_output_stream(
            blob.url.root + "7/1-a.parquet", metadata={"Content-Type": info["Content-Type"].decode()}
        ) as stream:
            stream.write(b"as wriTten")
        for read in (blob.get, blob.hold):
            with pytest.raises(DamagedFile, match="the checksum of the object is wrong"):
                await read("7/1-a.parquet")
        assert [name for _, _, names in os.walk(blob.cache.root) for name in names] == []

    run(body)


# -- reading pieces --------------------------------------------------------------------------------


def test_pieces_come_by_ranges_until_it_pays_to_have_the_file(blob: ObjectBlob, proxy: ObjectProxy) -> None:
    data = os.urandom(1 << 18)

    async def body() -> None:
        await blob.put("7/1-a.parquet", data)
        for _ in range(objects.WARM_READS):
            with blob.source("7/1-a.parquet") as file:
                file.seek(1000)
                assert file.read(10) == data[1000:1010]
        assert blob.cache.fetched == 0
        with blob.source("7/1-a.parquet") as file:
            assert file.read() == data
        assert blob.cache.fetched == 1
        before = len(proxy.requests)
        with blob.source("7/1-a.parquet") as file:
            assert file.read(5) == data[:5]
        assert len(proxy.requests) == before

    run(body)


def test_a_store_that_goes_away_while_pieces_are_read_is_no_damage(
    blob: ObjectBlob, proxy: ObjectProxy
) -> None:
    async def body() -> None:
        await blob.put("7/1-a.parquet", os.urandom(1 << 18))
        with blob.source("7/1-a.parquet") as file:
            proxy.fault = lambda method, path: (403, "AccessDenied")
            with pytest.raises(StoreUnavailable, match="could not read"):
                file.read(10)

    run(body)


def test_what_was_published_is_read_from_the_cache(blob: ObjectBlob, proxy: ObjectProxy) -> None:
    async def body() -> None:
        await blob.publish("7/1-a.parquet", lambda file: file.write(b"abc") and None)
        await blob.publish("7/1-a.sys", lambda file: file.write(b"abc") and None)
        before = len(proxy.requests)
        held = await blob.hold("7/1-a.parquet")
        assert Path(blob.local_path("7/1-a.parquet")).read_bytes() == b"abc"
        assert Path(blob.local_path("7/1-a.sys")).read_bytes() == b"abc"
        assert len(proxy.requests) == before
        await blob.delete("7/1-a.parquet")
        assert not os.path.exists(blob.local_path("7/1-a.parquet"))
        del held

    run(body)


# -- whose it is -----------------------------------------------------------------------------------


def test_a_store_belongs_to_one_database(blob: ObjectBlob) -> None:
    async def body() -> None:
        assert await blob.claim("one", fresh=False) is None  # a log, and no files: the wrong store
        assert await blob.claim("one", fresh=True) == "one"
        assert await blob.claim("one", fresh=False) == "one"
        assert await blob.claim("two", fresh=True) == "one"
        assert await blob.list("") == []

    run(body)


def test_a_store_with_something_else_in_it_is_not_taken(blob: ObjectBlob) -> None:
    async def body() -> None:
        await blob.put("7/1-a.parquet", b"whose")
        assert await blob.claim("one", fresh=True) is None
        assert await blob.list("") == ["7/1-a.parquet"]

    run(body)


def test_a_database_below_the_prefix_of_another_is_not_its_own(
    object_store: ObjectStoreServer, bucket: str, tmp_path: Path
) -> None:
    async def body() -> None:
        outer, inner = (
            blob_of("objects", tmp_path / str(at), object_store.url(bucket, prefix))
            for at, prefix in enumerate(("db", "db/7"))
        )
        assert isinstance(outer, ObjectBlob)
        assert isinstance(inner, ObjectBlob)
        assert await outer.claim("outer", fresh=True) == "outer"
        await outer.put("6/1-a.sys", b"")
        assert await inner.claim("inner", fresh=True) == "inner"
        await inner.put("7/1-a.parquet", b"")
        assert await outer.list("") == ["6/1-a.sys"]  # what it would sweep
        assert await inner.list("") == ["7/1-a.parquet"]

    run(body)


def test_many_requests_at_once(blob: ObjectBlob) -> None:
    async def body() -> None:
        names = [f"7/1-{number}.sys" for number in range(40)]
        await asyncio.gather(*(blob.put(name, name.encode()) for name in names))
        assert await asyncio.gather(*(blob.get(name) for name in names)) == [name.encode() for name in names]
        assert await blob.list("7/") == sorted(names)

    run(body)


def test_a_directory_and_a_store_belong_together(object_store: ObjectStoreServer, tmp_path: Path) -> None:
    url, other = (object_store.url(object_store.new_bucket()) for _ in range(2))

    async def opened(folder: str, where: str | None) -> None:
        objects = None if where is None else ObjectStore(url=where, cache_bytes=1 << 20)
        config = StorageConfig(path=tmp_path / folder, objects=objects)
        log = await DurableLog.open(config, SystemClock(), SystemRng(1), SystemIdGen())
        async for _ in log.replay():
            pass
        await log.write_part(
            ShardId(7), two_column_spec(), rows_to_table(two_column_spec(), [(1, "a")], [1], [5])
        )
        await log.close()

    async def body() -> None:
        await opened("a", url)
        for folder, where, said in (
            ("a", None, "start the server with blob set to it"),
            ("b", url, "belongs to another database"),
            ("a", object_store.url("no-such-bucket"), "does not exist"),
        ):
            with pytest.raises((UnknownFormat, StoreUnavailable), match=said):
                await opened(folder, where)
        await opened("c", None)
        with pytest.raises(UnknownFormat, match="in the directory itself"):
            await opened("c", other)
        # What was refused has done nothing: those that belong together still do.
        await opened("a", url)
        await opened("c", None)

    run(body)
