"""INSERT ... SELECT and CREATE TABLE AS on Spark: parts written by its executors, or nothing at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

from sqllogictest.client import Client, ServerError
from tests.support.server import ServerProcess

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]  # the machine may be busy

ROWS = 30_000
COLUMNS = (
    "id bigint PRIMARY KEY, g int, n numeric(12,2), u numeric, t text, ts timestamp, tz timestamptz, d date, uu uuid, "
    "b bool, f float8, by bytea, iv interval, tm time, c char(5), s smallint"
)
FILL = f"""INSERT INTO src SELECT i, nullif(i % 7, 6), i / 100.0, i * 0.001, 't' || i, timestamp '2020-01-01' + i * interval '1 second',
    timestamptz '2020-01-01 00:00:00+00' + i * interval '1 minute', date '2020-01-01' + i % 100,
    ('00010203-0405-0607-0809-0000000' || lpad(i::text, 5, '0'))::uuid, i % 2 = 0, i * 0.5, decode(lpad(i::text, 6, '0'), 'hex'),
    i * interval '1 day', time '00:00:00' + i * interval '1 second', 'x', i % 100 FROM generate_series(1, {ROWS}) i"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("bulk") / "data", "--spark-start", "background")
    client = running.connect()
    client.run(f"CREATE TABLE src ({COLUMNS})")
    client.run(FILL)
    client.run("CHECKPOINT")
    client.run("UPDATE src SET t = 'changed ' || id WHERE id % 1000 = 0")
    client.close()
    yield running
    assert running.stop() == 0


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    connection = server.connect(900.0)
    connection.run("SET executor = spark")
    yield connection
    connection.close()


def blobs(server: ServerProcess, suffix: str = ".parquet") -> set[Path]:
    return set((server.data_dir / "blobs").rglob(f"*{suffix}"))


def only(client: Client, sql: str) -> str | None:
    [[value]] = client.run(sql).rows
    return value


def test_every_type_arrives_as_it_was(client: Client, server: ServerProcess) -> None:
    before = blobs(server)
    client.run("CREATE TABLE copied AS SELECT * FROM src")
    assert len(blobs(server) - before) >= 1
    client.run("SET executor = local")
    copied = client.run("SELECT * FROM copied ORDER BY id").rows
    assert len(copied) == ROWS
    assert copied == client.run("SELECT * FROM src ORDER BY id").rows
    client.run("SET executor = auto")
    here = client.run("SELECT u, n, tz, iv FROM copied WHERE id = 1000").rows
    assert here == client.run("SELECT u, n, tz, iv FROM src WHERE id = 1000").rows


def test_explain_says_who_writes(client: Client) -> None:
    client.run("CREATE TABLE target (id bigint PRIMARY KEY, g int)")
    said = "Rows: written as parts by Spark's executors"

    def explained(sql: str) -> list[str | None]:
        return [row[0] for row in client.run(f"EXPLAIN {sql}").rows]

    assert said in explained("INSERT INTO target SELECT id, g FROM src")
    assert said in explained("CREATE TABLE other AS SELECT g FROM src")
    assert said not in explained("INSERT INTO target SELECT id, g FROM src ORDER BY id LIMIT 10")
    assert said not in explained("INSERT INTO target SELECT count(*), 1 FROM src")
    client.run("SET executor = local")
    assert said not in explained("INSERT INTO target SELECT id, g FROM src")


def test_keys_are_unique_within_the_load_and_against_the_table(client: Client, server: ServerProcess) -> None:
    client.run("CREATE TABLE keyed (id bigint PRIMARY KEY, t text UNIQUE)")
    client.run("INSERT INTO keyed VALUES (50000, 'mine'), (60000, 'yours')")
    before = blobs(server)
    cases = [
        ("id / 2, t || id", "Key (id)=(1) already exists."),
        ("id, 'u' || id / 2", "Key (t)=(u1) already exists."),
        ("id + 30000, t || id", "Key (id)=(50000) already exists."),
        ("id, CASE id WHEN 77 THEN 'yours' ELSE t || id END", "Key (t)=(yours) already exists."),
    ]
    for targets, detail in cases:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("SET executor = spark")
            with pytest.raises(psycopg.errors.UniqueViolation) as caught:
                connection.execute(f"INSERT INTO keyed SELECT {targets} FROM src")
            assert caught.value.diag.message_detail == detail
    client.run("CHECKPOINT")
    assert only(client, "SELECT count(*) FROM keyed") == "2"
    client.run("INSERT INTO keyed SELECT id, t || id FROM src WHERE id <> 500")
    client.run("INSERT INTO keyed VALUES (500, 'late')")
    with pytest.raises(ServerError):
        client.run("INSERT INTO keyed VALUES (501, 'late')")
    assert only(client, "SELECT count(*) FROM keyed") == str(ROWS + 2)
    assert len(blobs(server) - before) >= 1


def test_updates_and_deletes(client: Client, server: ServerProcess) -> None:
    client.run(
        "CREATE TABLE changing (id bigint PRIMARY KEY, g int NOT NULL, t text, n numeric(12,2), UNIQUE (t))"
    )
    client.run("INSERT INTO changing SELECT id, coalesce(g, -1), t, n FROM src")
    client.run("CHECKPOINT")
    client.run("SET executor = auto")
    client.run("UPDATE changing SET n = 0 WHERE id < 10")  # a few rows are hot
    client.run("SET executor = spark")
    update = "UPDATE changing SET n = n * 2, t = 'new ' || t, g = g + 1 WHERE id % 3 = 0"
    assert "Rows: written as parts by Spark's executors" in [
        r[0] for r in client.run(f"EXPLAIN {update}").rows
    ]
    client.run("BEGIN")
    assert client.run(update).tag == f"UPDATE {ROWS // 3}"
    assert client.run("DELETE FROM changing WHERE id % 3 = 1").tag == f"DELETE {ROWS // 3}"
    doubled = f"SELECT id / 2 AS id FROM src WHERE id <= {ROWS // 2}"
    tag = client.run(
        f"UPDATE changing SET g = 1000 FROM ({doubled}) d WHERE d.id = changing.id AND d.id % 3 = 2"
    ).tag
    joined = [k for k in range(ROWS + 1) if k % 3 == 2 and k <= ROWS // 4]
    assert tag == f"UPDATE {len(joined)}"
    client.run("COMMIT")
    client.run("SET executor = local")
    found = client.run("SELECT id, g, t, n FROM changing ORDER BY id").rows
    expected = client.run(
        "SELECT id, CASE WHEN id % 3 = 0 THEN coalesce(g, -1) + 1 "
        f"WHEN id <= {ROWS // 4} THEN 1000 ELSE coalesce(g, -1) END, CASE WHEN id % 3 = 0 THEN 'new ' || t ELSE t END, "
        "(CASE WHEN id < 10 THEN 0 ELSE n END * CASE WHEN id % 3 = 0 THEN 2 ELSE 1 END)::numeric(12,2) "
        "FROM src WHERE id % 3 <> 1 ORDER BY id"
    ).rows
    assert found == expected
    client.run("SET executor = spark")
    for change, sqlstate in (
        ("g = nullif(id, 300)", "23502"),
        ("id = id / 2", "23505"),
        ("t = 'same'", "23505"),
    ):
        with pytest.raises(ServerError) as caught:
            client.run(f"UPDATE changing SET {change}")
        assert caught.value.sqlstate == sqlstate
    client.run("SET executor = auto")
    assert (
        client.run("SELECT g, t FROM changing WHERE id = 300").rows
        == client.run("SELECT coalesce(g, -1) + 1, 'new ' || t FROM src WHERE id = 300").rows
    )
    client.run("SET executor = local")
    assert client.run("SELECT id, g, t, n FROM changing ORDER BY id").rows == expected


def test_a_materialized_view_is_refreshed_by_parts(client: Client, server: ServerProcess) -> None:
    """New parts for the new content, nothing of it before the commit, and what the row executor computes."""
    client.run("CREATE TABLE base AS SELECT id, g, n FROM src")
    client.run("CREATE MATERIALIZED VIEW mv AS SELECT id, g + 1 AS g, n * 2 AS n FROM base WHERE id % 2 = 0")
    client.run("CREATE UNIQUE INDEX ON mv (id)")
    checked = "SELECT count(*), count(DISTINCT id), sum(g), sum(n) FROM mv"
    at_first = client.run(checked).rows
    assert at_first[0][:2] == (str(ROWS // 2), str(ROWS // 2))
    client.run("UPDATE base SET n = n + 1")
    assert client.run(checked).rows == at_first, "not before it is refreshed"
    client.run("BEGIN")
    client.run("REFRESH MATERIALIZED VIEW mv")
    assert client.run(checked).rows != at_first
    client.run("ROLLBACK")
    assert client.run(checked).rows == at_first
    for how in ("", "CONCURRENTLY "):
        before = blobs(server)
        client.run(f"REFRESH MATERIALIZED VIEW {how}mv")
        if not how:
            assert blobs(server) - before, "written as parts"
        expected = "SELECT count(*), count(DISTINCT id), sum(g + 1), sum(n * 2) FROM base WHERE id % 2 = 0"
        client.run("SET executor = local")
        assert client.run(checked).rows == client.run(expected).rows
        client.run("SET executor = spark")
        client.run("UPDATE base SET g = 3, n = 7 WHERE id % 10 = 0")
    client.run("DROP MATERIALIZED VIEW mv")
    client.run("DROP TABLE base")


def test_a_null_names_the_row(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE strict (id bigint, x int NOT NULL, t text)")
        connection.execute("SET executor = spark")
        with pytest.raises(psycopg.errors.NotNullViolation) as caught:
            connection.execute("INSERT INTO strict (t, x, id) SELECT t, nullif(id, 4321)::int, id FROM src")
        assert caught.value.diag.message_detail == "Failing row contains (4321, null, t4321)."
        assert caught.value.diag.column_name == "x"
        assert connection.execute("SELECT count(*) FROM strict").fetchone() == (0,)


def test_a_load_is_one_with_its_transaction(server: ServerProcess) -> None:
    with psycopg.connect(server.url) as one, psycopg.connect(server.url, autocommit=True) as other:
        one.execute("SET executor = spark")
        one.execute("CREATE TABLE part_of (id bigint PRIMARY KEY, t text)")
        one.commit()
        one.execute("INSERT INTO part_of VALUES (-1, 'first')")
        one.execute("SAVEPOINT s")
        one.execute("INSERT INTO part_of SELECT id, t FROM src")
        assert one.execute("SELECT count(*) FROM part_of").fetchone() == (ROWS + 1,)
        one.execute("ROLLBACK TO s")
        assert one.execute("SELECT count(*) FROM part_of").fetchone() == (1,)
        one.execute("INSERT INTO part_of SELECT id, t FROM src WHERE id > 100")
        one.execute("DELETE FROM part_of WHERE id BETWEEN 200 AND 299")
        assert other.execute("SELECT count(*) FROM part_of").fetchone() == (0,)
        one.commit()
        assert other.execute("SELECT count(*) FROM part_of").fetchone() == (ROWS + 1 - 200,)


def test_division_by_zero_in_a_task_is_the_clients_error_and_leaves_no_file(
    client: Client, server: ServerProcess
) -> None:
    client.run("CREATE TABLE divided (x bigint)")
    client.run("CHECKPOINT")
    before = blobs(server, "")
    with pytest.raises(ServerError) as caught:
        client.run(f"INSERT INTO divided SELECT 1 / (id - {ROWS}) FROM src")
    assert caught.value.sqlstate == "22012"
    assert {path for path in blobs(server, "") - before if path.is_file()} == set()


def test_a_cancelled_load_leaves_no_file(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE never (x bigint)")
        connection.execute("SET executor = spark")
        before = blobs(server)
        ended = threading.Event()

        def cancel() -> None:
            while blobs(server) == before and not ended.wait(0.05):
                pass
            connection.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        try:
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(
                    "INSERT INTO never SELECT a.id * b.id FROM src a JOIN src b ON a.id <> b.id"
                )
        finally:
            ended.set()
            canceller.join()
        assert connection.execute("SELECT count(*) FROM never").fetchone() == (0,)
        assert blobs(server) == before


def test_a_server_killed_before_the_commit_shows_and_keeps_nothing(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--spark-start", "background")
    client = server.connect(900.0)
    client.run("CREATE TABLE made (id bigint PRIMARY KEY, t text)")
    client.run("SET executor = spark")
    client.run("BEGIN")
    client.run("INSERT INTO made SELECT i, 'x' || i FROM generate_series(1, 50000) i")
    assert blobs(server)
    server.kill()
    client.close()
    server = ServerProcess(tmp_path / "data")
    client = server.connect()
    assert only(client, "SELECT count(*) FROM made") == "0"
    client.run("INSERT INTO made VALUES (1, 'x')")
    client.close()
    assert server.stop() == 0
    assert {path for path in blobs(server) if "tmp" in path.parts} == set()
    server = ServerProcess(tmp_path / "data")
    client = server.connect()
    assert only(client, "SELECT count(*) FROM made") == "1"
    client.close()
    assert server.stop() == 0
    assert len(blobs(server)) <= 1


def test_an_index_that_workers_write_is_the_server_s(client: Client, server: ServerProcess) -> None:
    client.run("CREATE TABLE indexed AS SELECT * FROM src")
    client.run("ALTER TABLE indexed ADD COLUMN late numeric DEFAULT 1.50")
    client.run("DELETE FROM indexed WHERE id % 100 = 1")
    for columns in ("t, g", "n", "late", "c, tz"):
        client.run("SET executor = spark")
        client.run(f"CREATE INDEX there ON indexed ({columns})")
        client.run("SET executor = local")
        client.run(f"CREATE INDEX here ON indexed ({columns})")
        oids = [only(client, f"SELECT '{name}'::regclass::oid") for name in ("here", "there")]
        here, there = ({p.stem: p.read_bytes() for p in blobs(server, f".x{oid}")} for oid in oids)
        assert len(here) >= 1
        assert here == there
        client.run("DROP INDEX here, there")
    client.run("SET executor = spark")
    with pytest.raises(ServerError) as caught:
        client.run("CREATE UNIQUE INDEX twice ON indexed (s)")
    assert caught.value.sqlstate == "23505"
    client.run("CREATE UNIQUE INDEX once ON indexed (id)")
    client.run("SET executor = index")
    assert only(client, "SELECT n FROM indexed WHERE id = 4711") == "47.11"


def test_parts_are_merged_by_a_worker(tmp_path: Path) -> None:
    running = ServerProcess(tmp_path / "data", "--spark-start", "lazy", "--merge-spark-min-bytes", "1")
    try:
        client = running.connect(900.0)
        client.run("SET executor = spark")
        assert only(client, "SELECT count(*) FROM generate_series(1, 3)") == "3"  # it is up
        client.run("SET executor = local")
        client.run("CREATE TABLE merged (id int PRIMARY KEY, v int, s text UNIQUE)")
        for part in range(8):
            low, high = part * 1000 + 1, part * 1000 + 1000
            client.run(f"INSERT INTO merged SELECT i, i, 'text ' || i FROM generate_series({low}, {high}) i")
            client.run("CHECKPOINT")
        client.run("UPDATE merged SET v = -v WHERE id % 100 = 0")
        folder = running.data_dir / "blobs" / str(only(client, "SELECT 'merged'::regclass::oid"))
        deadline = time.monotonic() + 900
        while len(list(folder.glob("*.parquet"))) > 2:
            assert time.monotonic() < deadline
            client.run("CHECKPOINT")
            time.sleep(0.2)
        [made] = [p for p in folder.glob("*.parquet") if p.stem.count("-") == 2]  # epoch, job, task
        assert pq.read_metadata(made).num_rows == 8000
        assert only(client, "SELECT sum(v) FROM merged") == str(
            sum(-i if i % 100 == 0 else i for i in range(1, 8001))
        )
        client.run("SET executor = index")
        assert only(client, "SELECT id FROM merged WHERE s = 'text 4711'") == "4711"
        client.close()
    finally:
        assert running.stop() == 0
