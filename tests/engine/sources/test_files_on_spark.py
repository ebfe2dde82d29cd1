"""Large batches of FILES sources: Spark's tasks read them, each batch whole and once, whatever happens to the JVM."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.base.stored_objects import StoredObject, all_below, upload
from tests.engine.sources import support
from tests.engine.sources.support import Connection, connect, rows, value
from tests.engine.sources.test_files import put
from tests.support.objects import ObjectStoreServer
from tests.support.server import ServerProcess
from txn.persist.blobs.object_url import parse_object_url

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]  # the machine may be busy

ON_SPARK = "settle_ms = 0, poll_interval_ms = 20, spark_min_bytes = 100000, max_batch_rows = 1"
LINES = 50_000
PATIENCE_S = 900.0  # a JVM that starts beside other work may take minutes


@pytest.fixture(scope="module")
def bucket(object_store: ObjectStoreServer) -> str:
    return object_store.new_bucket()


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, object_store: ObjectStoreServer, bucket: str
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("files")
    roots = f"{folder},{object_store.url(bucket, 'in')}"
    running = ServerProcess(folder / "data", "--spark-start", "background", "--server-files", roots)
    yield running
    assert running.stop() == 0


@pytest.fixture
def here(server: ServerProcess) -> Iterator[Connection]:
    with connect(server) as c:
        yield c
        for [name] in rows(c, "SELECT DISTINCT name FROM holdfast_sources"):
            c.execute(f"DROP SOURCE {name} CASCADE")


@pytest.fixture
def folder(server: ServerProcess, request: pytest.FixtureRequest) -> Path:
    path = server.data_dir.parent / request.node.name
    path.mkdir()
    return path


def wait_for(c: Connection, sql: str, expected: Any) -> None:
    support.wait_for(c, sql, expected, PATIENCE_S)


def error_of(c: Connection, name: str) -> str:
    wait_for(c, f"SELECT state FROM holdfast_sources WHERE name = '{name}'", "stopped")
    return str(value(c, f"SELECT last_error FROM holdfast_sources WHERE name = '{name}'"))


def lines(first: int, count: int = LINES) -> str:
    return "".join(f"{i},row {i}\n" for i in range(first, first + count))


def ordered(folder: Path, texts: dict[str, str]) -> None:
    """Write files whose times follow the order of their names, all of them before the first is seen."""
    for name, text in texts.items():
        (folder / f".{name}").write_text(text)
        os.utime(folder / f".{name}", ns=(0, ord(name[0])))
    for name in texts:
        (folder / f".{name}").rename(folder / name)


def all_here(c: Connection, table: str, count: int) -> None:
    wait_for(c, f"SELECT count(*) FROM {table}", count)
    assert rows(c, f"SELECT min(id), max(id), count(DISTINCT id) FROM {table}") == [(0, count - 1, count)]


def test_large_files_come_whole_with_their_manifest(here: Connection, folder: Path) -> None:
    ordered(folder, {"a": lines(0), "b": lines(LINES)})
    here.execute(
        f"CREATE SOURCE large (id bigint PRIMARY KEY, v text) FROM FILES (path = '{folder}', format = csv, {ON_SPARK})"
    )
    end = time.monotonic() + PATIENCE_S
    while (found := value(here, "SELECT count(*) FROM large")) != 2 * LINES:
        assert found == 0  # row by row these would be 100,000 batches
        assert time.monotonic() < end
    assert value(here, "SELECT count(*) FROM large WHERE v = 'row ' || id") == 2 * LINES
    about = "SELECT position, rows FROM holdfast_sources WHERE name = 'large'"
    wait_for(here, "SELECT acknowledged_ts = ts FROM holdfast_sources WHERE name = 'large'", True)
    assert rows(here, about) == [(f"b:{LINES}", 2 * LINES)]
    put(folder, "c", "100000,small\n")  # by the server itself
    wait_for(here, "SELECT max(v) FROM large WHERE id = 100000", "small")
    put(folder, "d", lines(7))
    error = error_of(here, "large")
    assert error.startswith('23505: duplicate key value violates unique constraint "large_pkey"')
    assert error.endswith(f"CONTEXT: files d of {folder}")
    (folder / "d").unlink()
    here.execute("ALTER SOURCE large RESUME")
    put(folder, "e", lines(2 * LINES + 1))
    wait_for(here, "SELECT count(*) FROM large", 3 * LINES + 1)


def test_large_objects_come_whole(here: Connection, object_store: ObjectStoreServer, bucket: str) -> None:
    store = parse_object_url(object_store.url(bucket, "in"))

    def put_object(name: str, text: str) -> None:
        upload(StoredObject(store, f"{bucket}/in/large/{name}"), io.BytesIO(text.encode()))

    put_object("a", lines(0))
    put_object("b", lines(LINES))
    here.execute(
        f"CREATE SOURCE objects (id bigint PRIMARY KEY, v text) FROM FILES (path = 's3://{bucket}/in/large',"
        f" format = csv, after = delete, {ON_SPARK})"
    )
    end = time.monotonic() + PATIENCE_S
    while (found := value(here, "SELECT count(*) FROM objects")) != 2 * LINES:
        assert found == 0  # row by row these would be 100,000 batches
        assert time.monotonic() < end
    wait_for(here, "SELECT acknowledged_position FROM holdfast_sources WHERE name = 'objects'", f"b:{LINES}")
    all_here(here, "objects", 2 * LINES)
    assert list(all_below(StoredObject(store, f"{bucket}/in/large"))) == []
    put_object("c", lines(2 * LINES) + "x,y\n")
    assert error_of(here, "objects") == (
        f'22P02: invalid input syntax for type bigint: "x"\nCONTEXT: file "s3://{bucket}/in/large/c", line {LINES + 1},'
        ' column id: "x"'
    )


def test_what_is_before_a_malformed_file_is_here(here: Connection, folder: Path) -> None:
    ordered(
        folder, {"a": lines(0), "b": lines(LINES), "c": lines(2 * LINES) + "x,y\n", "d": lines(3 * LINES)}
    )
    here.execute(
        f"CREATE SOURCE several (id bigint, v text) FROM FILES (path = '{folder}', format = csv, {ON_SPARK})"
    )
    error = error_of(here, "several")
    assert error == (
        f'22P02: invalid input syntax for type bigint: "x"\nCONTEXT: file "{folder}/c", line {LINES + 1}, column id: "x"'
    )
    all_here(here, "several", 2 * LINES)
    (folder / "c").write_text(lines(2 * LINES))
    os.utime(folder / "c", ns=(0, ord("c")))
    here.execute("ALTER SOURCE several RESUME")
    all_here(here, "several", 4 * LINES)


def test_parquet_of_another_schema_and_no_parquet(here: Connection, folder: Path) -> None:
    for name, columns in (("a", {"id": list(range(LINES))}), ("b", {"id": [i / 2 for i in range(LINES)]})):
        pq.write_table(pa.table(columns), folder / f".{name}")
        os.utime(folder / f".{name}", ns=(0, ord(name)))
    for name in "ab":
        (folder / f".{name}").rename(folder / name)
    here.execute(
        f"CREATE SOURCE wide (id bigint) FROM FILES (path = '{folder}', format = parquet, {ON_SPARK})"
    )
    assert error_of(here, "wide").startswith(
        f'42804: column "id" of file "{folder}/b" has type double, which does not go to a column of type int8'
    )
    all_here(here, "wide", LINES)
    (folder / "b").write_bytes(b"PAR1" + bytes(200_000))
    here.execute("ALTER SOURCE wide RESUME")
    wait_for(here, "SELECT split_part(last_error, E'\\n', 1) FROM holdfast_sources WHERE name = 'wide'",
             f'22P04: file "{folder}/b" is not a Parquet file')  # fmt: skip
    all_here(here, "wide", LINES)


def test_a_killed_jvm_neither_loses_nor_repeats_a_file(
    here: Connection, folder: Path, server: ServerProcess
) -> None:
    # a JVM that is killed while it starts leaves a file to the server, which would take hours row by row
    batches = ON_SPARK.replace("max_batch_rows = 1", f"max_batch_rows = {LINES}")
    here.execute(
        f"CREATE SOURCE killed (id bigint, v text) FROM FILES (path = '{folder}', format = csv, after = delete, {batches})"
    )
    rng = random.Random(5)
    for number in range(2):
        put(folder, f"f{number}", lines(number * 4 * LINES, 4 * LINES))
        begun = f"SELECT state = 'loading' OR rows > {number * 4 * LINES} FROM holdfast_sources WHERE name = 'killed'"
        wait_for(here, begun, True)
        time.sleep(rng.random())  # anywhere in the load, or behind it
        kill_jvm(server)
        all_here(here, "killed", (number + 1) * 4 * LINES)
    wait_for(here, "SELECT lag FROM holdfast_sources WHERE name = 'killed'", 0)


def kill_jvm(server: ServerProcess) -> None:
    """Kill the server's JVM, which may be starting again after the last time."""
    command = ["pgrep", "-P", str(server.process.pid), "-f", "java"]
    for _ in range(600):
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        if found:
            os.kill(int(found[0]), signal.SIGKILL)
            return
        time.sleep(0.1)
    raise AssertionError("no JVM came up")
