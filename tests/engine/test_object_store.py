"""Servers whose data files are in an object store: killed, restarted, taken over from, refused by the store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sqllogictest.client import Target
from tests.support.fields import FieldsClient
from tests.support.objects import Fault, ObjectProxy, ObjectStoreServer
from tests.support.postgres import fresh_schema, postgres, url_of  # noqa: F401 - a fixture
from tests.support.server import ServerProcess

FILL = "INSERT INTO t SELECT g, g % 7, 'text ' || g FROM generate_series(1, 3000) AS g"
ANSWERS = (
    "SELECT count(*), sum(k), sum(n), max(v) FROM t",
    "SELECT v FROM t WHERE k = 1234",
    "SELECT count(*) FROM t WHERE n = 3",
)


def answers(client: FieldsClient) -> list[object]:
    found: list[object] = []
    for executor in ("auto", "local", "index"):
        client.run(f"SET executor = {executor}")
        found += [client.run(sql).rows for sql in ANSWERS]
    client.run("SET executor = auto")
    return found


_clients: list[FieldsClient] = []


def connect(server: ServerProcess) -> FieldsClient:
    client = FieldsClient(Target.from_url(server.url), timeout_s=120)
    _clients.append(client)
    return client


@pytest.fixture
def servers() -> Iterator[list[ServerProcess]]:
    running: list[ServerProcess] = []
    yield running
    while _clients:
        _clients.pop()._socket.close()
    for server in running:
        if server.process.poll() is None:
            print(server.log())  # pytest shows it where a test has failed
            server.kill()


def fill(client: FieldsClient) -> None:
    client.run("CREATE TABLE t (k int PRIMARY KEY, n int, v text)")
    client.run("CREATE INDEX ON t (n)")
    client.run(FILL)
    client.run("CHECKPOINT")
    client.run("UPDATE t SET v = 'changed' WHERE k BETWEEN 100 AND 150")
    client.run("DELETE FROM t WHERE k > 2900")
    client.run("CHECKPOINT")
    client.run("UPDATE t SET n = 3 WHERE k = 7")


def test_what_was_committed_outlives_kill_and_the_loss_of_the_cache(
    object_store: ObjectStoreServer, tmp_path: Path, servers: list[ServerProcess]
) -> None:
    options = ("--blob", object_store.url(object_store.new_bucket()))
    first = ServerProcess(tmp_path / "data", *options)
    servers.append(first)
    fill(connect(first))
    expected = answers(connect(first))
    assert expected[1] == [("text 1234",)]
    first.kill()
    assert not (tmp_path / "data" / "blobs").exists()
    second = ServerProcess(tmp_path / "data", *options, "--blob-cache", "1MB")
    servers.append(second)
    assert answers(connect(second)) == expected
    second.sql("CREATE TABLE u AS SELECT * FROM t")
    second.sql("DROP TABLE t")
    assert second.stop() == 0
    third = ServerProcess(tmp_path / "data", *options)
    servers.append(third)
    assert third.sql("SELECT count(*) FROM u") == [("2900",)]
    assert third.stop() == 0


def test_a_store_that_fails_takes_nothing_with_it(
    object_store: ObjectStoreServer, proxy: ObjectProxy, tmp_path: Path, servers: list[ServerProcess]
) -> None:
    bucket = object_store.new_bucket()
    server = ServerProcess(tmp_path / "data", "--blob", object_store.url(bucket, port=proxy.port))
    servers.append(server)
    client = connect(server)
    fill(client)
    expected = answers(client)

    def refuse(method: str, path: str) -> Fault:
        return 403, "AccessDenied"

    proxy.fault = refuse
    failed = client.fails("CHECKPOINT")
    assert failed["sqlstate"] == "58030"
    assert failed["message"].startswith(f"could not access the data files in s3://{bucket}/db")
    assert "ACCESS_DENIED" in failed["detail"]
    # What goes to the log alone goes on, and what is here is read.
    client.run("INSERT INTO t VALUES (9001, 1, 'while it was away')")
    assert client.run("SELECT v FROM t WHERE k = 9001").rows == [("while it was away",)]
    assert client.run("SELECT v FROM t WHERE k = 1234").rows == [("text 1234",)]
    # A load of more than one part needs the store: it fails whole.
    many = "INSERT INTO t SELECT g, 0, repeat('x', 200) FROM generate_series(10001, 60000) AS g"
    assert client.fails(many)["sqlstate"] == "58030"
    assert client.run("SELECT count(*) FROM t WHERE k > 10000").rows == [("0",)]
    proxy.fault = lambda method, path: None
    client.run("DELETE FROM t WHERE k = 9001")
    client.run("CHECKPOINT")
    assert answers(client) == expected
    client.run(many)
    assert client.run("SELECT count(*) FROM t WHERE k > 10000").rows == [("50000",)]
    server.kill()
    again = ServerProcess(tmp_path / "data", "--blob", object_store.url(bucket, port=proxy.port))
    servers.append(again)
    assert again.sql("SELECT count(*) FROM t") == [("52900",)]
    assert again.stop() == 0


def test_reads_of_what_is_not_here_fail_while_the_store_is_away_and_go_on_after(
    object_store: ObjectStoreServer, proxy: ObjectProxy, tmp_path: Path, servers: list[ServerProcess]
) -> None:
    options = ("--blob", object_store.url(object_store.new_bucket(), port=proxy.port))
    first = ServerProcess(tmp_path / "data", *options)
    servers.append(first)
    fill(connect(first))
    expected = answers(connect(first))
    assert first.stop() == 0
    server = ServerProcess(tmp_path / "data", *options)
    servers.append(server)
    client = connect(server)
    proxy.fault = lambda method, path: (403, "AccessDenied")
    for executor in ("local", "index"):
        client.run(f"SET executor = {executor}")
        assert client.fails("SELECT count(v) FROM t")["sqlstate"] == "58030"
    proxy.fault = lambda method, path: None
    assert answers(client) == expected
    assert server.stop() == 0


def test_a_store_that_is_not_there_ends_the_start(object_store: ObjectStoreServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine", "serve", "--port", "0", "--spark-start", "off"]
    where = ["--data-dir", str(tmp_path / "data"), "--blob", object_store.url("no-such-bucket")]
    done = subprocess.run([*command, *where], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "the bucket no-such-bucket does not exist" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_standby_takes_over_a_bucket(
    object_store: ObjectStoreServer,
    postgres: str,  # noqa: F811
    tmp_path: Path,
    servers: list[ServerProcess],
) -> None:
    schema, bucket = fresh_schema(), object_store.new_bucket()
    options = [
        "--consensus", url_of(postgres), "--consensus-schema", schema, "--lease-ms", "4000",
        "--blob", object_store.url(bucket),
    ]  # fmt: skip
    try:
        first = ServerProcess(tmp_path / "one", *options)
        servers.append(first)
        fill(connect(first))
        expected = answers(connect(first))
        first.kill()
        second = ServerProcess(tmp_path / "two", *options)  # waits for the lease of the one that was killed
        servers.append(second)
        assert answers(connect(second)) == expected
        assert second.stop() == 0
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.kill()
        with psycopg.connect(url_of(postgres), autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")  # type: ignore[arg-type]


@pytest.mark.spark
@pytest.mark.timeout(1800)  # the machine may be busy
def test_spark_reads_copies_and_its_workers_write_objects(
    object_store: ObjectStoreServer, tmp_path: Path, servers: list[ServerProcess]
) -> None:
    options = (
        "--blob",
        object_store.url(object_store.new_bucket()),
        "--blob-cache",
        "1MB",
        "--memory",
        "1GB",
    )
    server = ServerProcess(tmp_path / "data", *options, "--spark-start", "background")
    servers.append(server)
    client = connect(server)
    client._socket.settimeout(1500)
    fill(client)
    client.run("SET executor = local")
    expected = [client.run(sql).rows for sql in ANSWERS]
    client.run("SET executor = spark")
    assert [client.run(sql).rows for sql in ANSWERS] == expected
    client.run("CREATE TABLE u AS SELECT * FROM t")
    server.kill()
    again = ServerProcess(tmp_path / "data", *options)
    servers.append(again)
    assert again.sql(ANSWERS[0].replace("FROM t", "FROM u")) == expected[0]
    assert again.stop() == 0
