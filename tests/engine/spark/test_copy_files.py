"""COPY FROM files on Spark: every format and type, as the server itself reads them; cancelled, killed, counted."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqllogictest.client import Client, ServerError
from tests.support.server import ServerProcess

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]  # the machine may be busy

COLUMNS = (
    "id bigint PRIMARY KEY, g int, n numeric(12,2), u numeric, t text, ts timestamp, tz timestamptz, d date, uu uuid, "
    "b bool, f float8, by bytea, iv interval, tm time, c char(5), s smallint, a int[], j jsonb, k int DEFAULT 1 + 2"
)
ROWS = 60_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("files")
    running = ServerProcess(folder / "data", "--spark-start", "background", "--server-files", str(folder))
    yield running
    assert running.stop() == 0


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    connection = server.connect(900.0)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def folder(server: ServerProcess) -> Path:
    """Return a directory of CSV files that are cut into several splits."""
    folder = server.data_dir.parent / "csv"
    folder.mkdir()
    for n in range(2):
        with (folder / f"{n}.csv").open("w") as file:
            for i in range(n * ROWS, (n + 1) * ROWS):
                file.write(
                    f'{i},{i % 7 if i % 7 < 6 else ""},{i}.25,{i}.{i % 1000},"t ""{i}""\nx",2020-01-01 00:00:{i % 60:02},'
                    f"2020-01-01 00:00:00+00,2020-01-{i % 28 + 1:02},00010203-0405-0607-0809-{i:012},{'t' if i % 2 else 'f'},"
                    f'{i}.5,\\x{i % 256:02x},{i} days,01:02:03,ab,{i % 100},"{{1,{i},NULL}}","{{""a"": {i}}}"\n'
                )
    return folder


LISTED = COLUMNS.replace(", k int DEFAULT 1 + 2", "")
NAMES = ", ".join(
    word.strip().split(" ")[0] for word in LISTED.replace("numeric(12,2)", "numeric").split(", ")
)


def test_the_same_rows_as_the_server_s(client: Client, folder: Path, server: ServerProcess) -> None:
    for executor in ("local", "spark"):
        client.run(f"CREATE TABLE by_{executor} ({COLUMNS})")
        client.run(f"SET executor = {executor}")
        assert (
            client.run(f"COPY by_{executor} ({NAMES}) FROM '{folder}' (FORMAT csv)").tag == f"COPY {2 * ROWS}"
        )
    client.run("SET executor = auto")
    for column in (*NAMES.split(", "), "k"):
        [[different]] = client.run(
            f"SELECT count(*) FROM by_local x JOIN by_spark y USING (id) WHERE x.{column} IS DISTINCT FROM y.{column}"
        ).rows
        assert different == "0", column
    assert client.run("SELECT count(*) FROM by_spark").rows == [(str(2 * ROWS),)]
    assert server.process.poll() is None


def test_encodings(client: Client, server: ServerProcess) -> None:
    target = server.data_dir.parent / "latin"
    client.run("CREATE TABLE accents (id int PRIMARY KEY, t text)")
    client.run("INSERT INTO accents SELECT g, 'é' || g FROM generate_series(1, 1000) g")
    client.run("SET executor = spark")
    client.run(f"COPY (SELECT * FROM accents) TO '{target}' (ENCODING 'latin1')")
    lines = b"".join(file.read_bytes() for file in sorted(target.glob("*.txt"))).splitlines()
    assert sorted(lines) == sorted(b"%d\t\xe9%d" % (g, g) for g in range(1, 1001))
    with psycopg.connect(server.url, autocommit=True, client_encoding="LATIN1") as latin:
        latin.execute("SET executor = spark")
        result = latin.pgconn.exec_(b"SELECT t FROM accents ORDER BY id")
        assert [result.get_value(row, 0) for row in range(2)] == [b"\xe91", b"\xe92"]
        with pytest.raises(psycopg.errors.UntranslatableCharacter):
            latin.execute("SELECT t || chr(8364) FROM accents")
    client.run("CREATE TABLE back (id int PRIMARY KEY, t text)")
    with pytest.raises(ServerError, match="COPY FROM on Spark with data in LATIN1") as caught:
        client.run(f"COPY back FROM '{target}' (ENCODING 'latin1')")
    assert caught.value.sqlstate == "0A000"
    client.run("SET executor = auto")
    client.run("SET copy_spark_min_bytes = 0")  # the server reads it all the same
    assert client.run(f"COPY back FROM '{target}' (ENCODING 'latin1')").tag == "COPY 1000"
    assert client.run("SELECT count(*) FROM back JOIN accents USING (id, t)").rows == [("1000",)]


def test_foreign_keys_and_keys_of_the_table_are_checked(client: Client, server: ServerProcess) -> None:
    path = server.data_dir.parent / "child.parquet"
    pq.write_table(
        pa.table({"id": range(50_000), "p": [i % 100 for i in range(50_000)]}), path, row_group_size=5000
    )
    client.run("CREATE TABLE parent (p int PRIMARY KEY)")
    client.run("INSERT INTO parent SELECT g FROM generate_series(0, 98) g")
    client.run("CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent)")
    client.run("SET executor = spark")
    with pytest.raises(ServerError) as caught:
        client.run(f"COPY child FROM '{path}' (FORMAT parquet)")
    assert caught.value.sqlstate == "23503"
    client.run("INSERT INTO parent VALUES (99)")
    client.run("INSERT INTO child VALUES (49999, 1)")
    with pytest.raises(ServerError) as caught:
        client.run(f"COPY child FROM '{path}' (FORMAT parquet)")
    assert caught.value.sqlstate == "23505"
    client.run("DELETE FROM child")
    assert client.run(f"COPY child FROM '{path}' (FORMAT parquet)").tag == "COPY 50000"


def large(server: ServerProcess, rows: int = 3_000_000) -> Path:
    path = server.data_dir.parent / "large.csv"
    if not path.exists():
        with path.open("w") as file:
            for i in range(0, rows, 1000):
                file.write(
                    "".join(f"{k},2020-01-01 00:00:00 BC\n" for k in range(i, i + 1000))
                )  # read value by value
    return path


def parts(server: ServerProcess) -> set[Path]:
    return set((server.data_dir / "blobs").rglob("*.parquet"))


def test_a_cancel_ends_a_load_and_leaves_nothing(client: Client, server: ServerProcess) -> None:
    path = large(server)
    client.run("DROP TABLE IF EXISTS big")
    client.run("CREATE TABLE big (a int, b timestamp)")
    before = parts(server)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET executor = spark")
        started = threading.Event()

        def cancel() -> None:
            view = "SELECT count(*) FROM pg_stat_progress_copy WHERE bytes_processed > 0"
            while client.run(view).rows == [("0",)]:
                time.sleep(0.1)
            started.set()
            connection.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(f"COPY big FROM '{path}' (FORMAT csv)")
        thread.join()
        assert started.is_set()
        assert connection.execute("SELECT count(*) FROM big").fetchone() == (0,)
        connection.execute("INSERT INTO big VALUES (1)")
    while parts(server) - before:
        time.sleep(0.1)


def test_a_killed_jvm_ends_a_load_and_the_next_one_works(client: Client, server: ServerProcess) -> None:
    path = large(server)
    client.run("CREATE TABLE bigger (a int, b timestamp)")
    client.run("SET executor = spark")
    killed = threading.Event()

    def kill() -> None:
        watcher = server.connect()
        while watcher.run("SELECT count(*) FROM pg_stat_progress_copy WHERE bytes_processed > 0").rows == [
            ("0",)
        ]:
            time.sleep(0.1)
        watcher.close()
        found = subprocess.run(
            ["pgrep", "-P", str(server.process.pid), "-f", "java"], capture_output=True, text=True, check=True
        )
        os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
        killed.set()

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(ServerError) as caught:
        client.run(f"COPY bigger FROM '{path}' (FORMAT csv)")
    thread.join()
    assert killed.is_set()
    assert caught.value.sqlstate == "58000"
    assert client.run("SELECT count(*) FROM bigger").rows == [("0",)]
    assert client.run(f"COPY bigger FROM '{path}' (FORMAT csv)").tag == "COPY 3000000"
