"""COPY FROM and TO objects of an S3-compatible store (moto): whole or not at all, below what server_files lists."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from engine.base.server_files import roots_of
from engine.base.stored_objects import StoredObject, all_below, found_objects, open_bytes, split_name, upload
from engine.changes.bulk import copy_files
from engine.changes.bulk.copy_out_objects import ObjectFolder
from engine.changes.bulk.export_task import ExportTask, adopt
from engine.changes.bulk.write_rows import Sheet
from pgwire.codecs import domain as d
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.settings import DEFAULT
from planner.base.errors import SqlError
from tests.engine.bulk.elsewhere import Tasks, opened, refused
from tests.support.engine import Session
from tests.support.objects import ObjectProxy, ObjectStoreServer
from txn.persist.blobs.object_url import parse_object_url

Scenario = Callable[[Session, str, Tasks], Awaitable[None]]


@pytest.fixture
def bucket(object_store: ObjectStoreServer) -> str:
    return object_store.new_bucket()


def at(object_store: ObjectStoreServer, bucket: str, key: str) -> StoredObject:
    return StoredObject(parse_object_url(object_store.url(bucket, "in")), f"{bucket}/{key}")


def put(object_store: ObjectStoreServer, bucket: str, key: str, data: bytes) -> None:
    upload(at(object_store, bucket, key), io.BytesIO(data))


def content(object_store: ObjectStoreServer, bucket: str, key: str) -> bytes:
    with open_bytes(at(object_store, bucket, key)) as file:
        return file.read()


def keys(object_store: ObjectStoreServer, bucket: str) -> list[str]:
    folder = StoredObject(parse_object_url(object_store.url(bucket, "in")), bucket)
    return sorted(one.key.removeprefix(f"{bucket}/") for one in all_below(folder))


@asynccontextmanager
async def session_on(
    object_store: ObjectStoreServer,
    bucket: str,
    tmp_path: Path,
    *,
    port: int | None = None,
    spark: bool = False,
) -> AsyncIterator[tuple[Session, Tasks]]:
    """Open a database whose server_files is the folder ``in`` of the bucket, with an empty table t."""
    async with opened(tmp_path, object_store.url(bucket, "in", port)) as (_database, session, tasks):
        if not spark:
            await session.run("SET executor = local")
        await session.run("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(8,2))")
        yield session, tasks


@pytest.mark.parametrize(
    "options", ["FORMAT csv, HEADER", "FORMAT text", "FORMAT json", "FORMAT parquet", "FORMAT binary"]
)
def test_what_is_written_reads_back(
    object_store: ObjectStoreServer, bucket: str, tmp_path: Path, options: str
) -> None:
    async def scenario() -> None:
        async with session_on(object_store, bucket, tmp_path) as (session, _tasks):
            await session.run("INSERT INTO t SELECT g, 'text ' || g, g / 4.0 FROM generate_series(1, 500) g")
            await session.run("INSERT INTO t VALUES (0, NULL, NULL), (-1, E'x,\"\\n', -1)")
            rows = await session.run("SELECT * FROM t ORDER BY a")
            for name in (f"s3://{bucket}/in/all", f"s3://{bucket}/in/folder/"):
                await session.run(f"COPY (SELECT * FROM t ORDER BY a) TO '{name}' ({options})")
                await session.run("TRUNCATE t")
                await session.run(f"COPY t FROM '{name}' ({options})")
                assert await session.run("SELECT * FROM t ORDER BY a") == rows
        suffix = options.split(",")[0].rpartition(" ")[2].replace("text", "txt").replace("binary", "bin")
        assert keys(object_store, bucket) == [
            "in/all",
            "in/folder/_SUCCESS",
            f"in/folder/part-00000.{suffix}",
        ]

    asyncio.run(scenario())


def test_patterns_folders_and_large_objects_on_workers(
    object_store: ObjectStoreServer, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_files, "MIN_TASK_BYTES", 1 << 10)
    for n in range(3):
        lines = "".join(f'{i},"{i}\n""",{i}.25\n' for i in range(n * 400, n * 400 + 400))
        put(object_store, bucket, f"in/day={n}/part 0+1.csv", ("a,b,c\n" + lines).encode())
    put(object_store, bucket, "in/day=1/_SUCCESS", b"")
    put(object_store, bucket, "in/day=1/.hidden.csv", b"bad\n")
    put(object_store, bucket, "in/day=2/deep/other.csv", b"bad\n")

    async def scenario() -> None:
        async with session_on(object_store, bucket, tmp_path, spark=True) as (session, tasks):
            loaded = "SELECT count(*), min(a), max(a), sum(c) FROM t"
            for name, rows in (
                ("day=*/p*.csv", ("1200", "0", "1199", "719700.00")),
                ("day=1", ("400", "400", "799", "239900.00")),
            ):
                before = tasks.calls
                await session.run("TRUNCATE t")
                await session.run(f"COPY t FROM 's3://{bucket}/in/{name}' (FORMAT csv, HEADER)")
                assert await session.run(loaded) == [rows]
                assert tasks.calls - before > 6
            # Read by the server, on the loop: a default that only the session knows.
            await session.run("SET executor = local")
            await session.run(
                "CREATE SEQUENCE s; CREATE TABLE n (a int, b text, c numeric, n int DEFAULT nextval('s'))"
            )
            await session.run(f"COPY n (a, b, c) FROM 's3://{bucket}/in/day=[01]/*.csv' (FORMAT csv, HEADER)")
            assert await session.run("SELECT count(*), max(n), sum(a) FROM n") == [("800", "800", "319600")]
            put(object_store, bucket, "in/bad.csv", b"1,x,2\n2,x,y\n")
            failed = await refused(session, f"COPY t FROM 's3://{bucket}/in/bad.csv' (FORMAT csv)")
            assert (failed.report.sqlstate, failed.report.where) == ("22P02", 'COPY t, line 2, column c: "y"')

    asyncio.run(scenario())


def test_only_what_server_files_lists(object_store: ObjectStoreServer, bucket: str, tmp_path: Path) -> None:
    other = object_store.new_bucket()
    for place in (bucket, other):
        put(object_store, place, "in/a.csv", b"1\n")
    put(object_store, bucket, "inner/a.csv", b"1\n")

    async def scenario() -> None:
        async with session_on(object_store, bucket, tmp_path) as (session, _tasks):
            for name, state, words in (
                (f"s3://{bucket}/inner/a.csv", "42501", "permission denied to COPY from object"),
                (f"s3://{bucket}/a.csv", "42501", "permission denied"),
                (f"s3://{bucket}/i*/a.csv", "42501", "permission denied"),
                (f"s3://{other}/in/a.csv", "42501", "permission denied"),
                (f"gs://{bucket}/in/a.csv", "42501", "permission denied"),
                (str(tmp_path / "a.csv"), "42501", "permission denied to COPY from file"),
                (f"s3://{bucket}/in/../inner/a.csv", "22023", "invalid URL of an object"),
                (f"s3://{bucket}/in//a.csv", "22023", "invalid URL of an object"),
                (f"s3://key:secret@{bucket}/in/a.csv", "22023", "invalid URL of an object"),
                (
                    f"s3://{bucket}/in/none.csv",
                    "58P01",
                    f'could not open file "s3://{bucket}/in/none.csv" for reading',
                ),
                (f"s3://{bucket}/in/*.json", "58P01", "no file matches"),
                (f"http://{bucket}/in/a.csv", "0A000", 'COPY with the URL scheme "http" is not supported'),
            ):
                failed = await refused(session, f"COPY t (a) FROM '{name}' (FORMAT csv)")
                assert (failed.report.sqlstate, failed.report.message[: len(words)]) == (state, words), name
            failed = await refused(session, f"COPY t TO 's3://{other}/in/b.csv'")
            assert failed.report.sqlstate == "42501"
            assert "below any bucket" in str(failed.report.detail)
            await session.run("CREATE ROLE reader; GRANT ALL ON t TO reader; SET ROLE reader")
            for sql in (f"COPY t (a) FROM 's3://{bucket}/in/a.csv'", f"COPY t TO 's3://{bucket}/in/b.csv'"):
                failed = await refused(session, sql)
                assert failed.report.message.startswith("must be superuser or have privileges")
            await session.run("RESET ROLE")
            await session.run(f"COPY t (a) FROM 's3://{bucket}/in/a.csv'")

    asyncio.run(scenario())


def test_a_folder_with_objects_is_not_written_to(
    object_store: ObjectStoreServer, bucket: str, tmp_path: Path
) -> None:
    put(object_store, bucket, "in/full/sub/x", b"")

    async def scenario() -> None:
        async with session_on(object_store, bucket, tmp_path) as (session, _tasks):
            failed = await refused(session, f"COPY t TO 's3://{bucket}/in/full/'")
            assert failed.report.sqlstate == "58P02"
            failed = await refused(
                session, f"COPY (SELECT 1 / (a - a) FROM (VALUES (1)) v(a)) TO 's3://{bucket}/in/new/'"
            )
            assert failed.report.sqlstate == "22012"
            failed = await refused(session, f"COPY t TO 's3://{bucket}/in/*.csv'")
            assert failed.report.sqlstate == "22023"

    asyncio.run(scenario())
    assert keys(object_store, bucket) == ["in/full/sub/x"]


def test_a_store_that_refuses_is_quoted_and_keeps_the_older_object(
    object_store: ObjectStoreServer, proxy: ObjectProxy, bucket: str, tmp_path: Path
) -> None:
    put(object_store, bucket, "in/old.csv", b"1,x,1\n")

    async def scenario() -> None:
        async with session_on(object_store, bucket, tmp_path, port=proxy.port) as (session, _tasks):
            await session.run(
                "INSERT INTO t SELECT g, md5(g::text) || repeat('x', 300), g FROM generate_series(1, 40000) g"
            )
            name = f"s3://{bucket}/in/old.csv"
            # Of an object of several pieces, one is refused: what is there stays.
            proxy.fault = lambda method, path: (
                (403, "AccessDenied") if method == "PUT" and "partNumber=2" in path else None
            )
            failed = await refused(session, f"COPY t TO '{name}' (FORMAT csv)")
            assert failed.report.sqlstate == "42501", failed
            assert failed.report.message.startswith(f'could not open file "{name}" for writing: ')
            assert "ACCESS_DENIED" in failed.report.message
            assert content(object_store, bucket, "in/old.csv") == b"1,x,1\n"
            proxy.fault = lambda method, path: (403, "AccessDenied") if method in ("GET", "HEAD") else None
            for options in ("FORMAT csv", "FORMAT parquet"):
                failed = await refused(session, f"COPY t FROM '{name}' ({options})")
                assert failed.report.sqlstate == "42501", failed
                assert failed.report.message.startswith(f'could not open file "{name}" for reading: ')
            proxy.fault = lambda method, path: None
            failed = await refused(session, f"COPY t FROM '{name}' (FORMAT parquet)")
            assert (failed.report.sqlstate, failed.report.message) == (
                "22P04",
                f'file "{name}" is not a Parquet file',
            )
            await session.run(f"COPY t TO '{name}' (FORMAT csv)")
            assert content(object_store, bucket, "in/old.csv").count(b"\n") == 40000
            await session.run("TRUNCATE t")
            proxy.requests.clear()
            await session.run(f"COPY t FROM '{name}' (FORMAT csv)")
            assert await session.run("SELECT count(*) FROM t") == [("40000",)]
            assert [method for method, _path in proxy.requests].count("GET") == 2  # 8 MB each

    asyncio.run(scenario())


def test_executors_write_a_folder_and_late_attempts_take_back_theirs(
    object_store: ObjectStoreServer, bucket: str
) -> None:
    folder = ObjectFolder(at(object_store, bucket, "in/out"), "_writing-1")
    upload(folder.at.below(folder.marker), io.BytesIO())
    sheet = Sheet(("a",), (d.INT4,), (-1,), CopyOptions(format="csv"), DEFAULT)
    schema = pa.schema([pa.field("a", pa.int32())])
    task = ExportTask(folder, sheet, schema, [None])
    batch = bytes(pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int32())], schema=schema).serialize())
    answers = [*task(0, [batch]), *task(1, [])]
    put(object_store, bucket, "in/out/part-00000-99.csv", b"of an attempt that did not count")
    assert adopt(folder, sheet, answers) == (2, 4)
    assert keys(object_store, bucket) == ["in/out/_SUCCESS", "in/out/part-00000-0.csv"]
    assert [kind for kind, _ in task(2, [batch])] == ["failed"]
    assert keys(object_store, bucket) == ["in/out/_SUCCESS", "in/out/part-00000-0.csv"]
    assert [one.key for one, _size in found_objects(folder.at)] == [f"{bucket}/in/out/part-00000-0.csv"]
    folder.abandon()
    assert keys(object_store, bucket) == []


def test_keys_are_taken_literally() -> None:
    stores = roots_of("/srv/in, s3://bucket/a/b?region=eu-north-1, s3://bucket/c").stores
    named = split_name("s3://bucket/c/x %2e+.csv", stores)
    assert named is not None
    assert (named.key, named.store.prefix, named.name) == (
        "bucket/c/x %2e+.csv",
        "c/",
        "s3://bucket/c/x %2e+.csv",
    )
    found = split_name("s3://bucket/a/b", stores)
    assert found is not None
    assert dict(found.store.options) == {"region": "eu-north-1"}
    assert split_name("s3://bucket/a/bc", stores) is None
    assert split_name("s3://bucket/", stores) is None
    with pytest.raises(SqlError):
        split_name("s3://bucket/c/./x", stores)
    with pytest.raises(ValueError, match="credentials"):
        roots_of("s3://key:secret@bucket/a")
