"""UPDATE and DELETE of many rows, which go by columns: the same rows as one by one, errors, blocks, others at work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sqllogictest.client import Client
from tests.support.server import ServerProcess

ROWS = 30_000
FILL = f"""INSERT INTO before SELECT i, i % 11, i / 100.0, CASE WHEN i % 3 > 0 THEN 't' || i END, i * 1.5, date '2020-01-01' + i % 500
    FROM generate_series(1, {ROWS}) i"""


def parts(server: ServerProcess) -> int:
    return len(list((server.data_dir / "blobs").rglob("*.parquet")))


COLUMNS = "k int, g int, n numeric(12,2), t text, u numeric, d date"


@pytest.fixture(scope="module")
def filled(server: ServerProcess) -> Iterator[None]:
    """The rows that every test begins with."""
    connection = server.connect()
    connection.run(f"CREATE TABLE before ({COLUMNS})")
    connection.run(FILL)
    yield
    connection.run("DROP TABLE before")
    connection.close()


@pytest.fixture
def client(server: ServerProcess, filled: None) -> Iterator[Client]:
    connection = server.connect()
    connection.run(f"CREATE TABLE big ({COLUMNS}, PRIMARY KEY (k), UNIQUE (t))")
    connection.run("ALTER TABLE big ALTER g SET NOT NULL")
    connection.run("CREATE INDEX ON big (g)")
    connection.run("INSERT INTO big SELECT * FROM before")
    connection.run("UPDATE big SET g = g WHERE k < 20")  # a few rows are hot
    yield connection
    connection.run("ROLLBACK")
    connection.run("DROP TABLE big")
    connection.close()


def differing(client: Client, expected: str) -> list[tuple[str | None, ...]]:
    """Return the keys of rows in which ``big`` differs from a query over ``before``."""
    columns = ("g", "n", "t", "u", "d")
    differ = " OR ".join(f"b.{c} IS DISTINCT FROM e.{c}" for c in columns)
    return client.run(
        f"SELECT b.k, e.k FROM big b FULL JOIN ({expected}) e ON b.k = e.k WHERE b.k IS NULL OR e.k IS NULL OR {differ} LIMIT 3"
    ).rows


def test_columns_of_all_kinds_change(server: ServerProcess, client: Client) -> None:
    had = parts(server)
    answer = client.run(
        "UPDATE big SET g = g + 100, n = n * 2, t = upper(t), u = u / 3, d = d + 1 WHERE k % 5 > 0"
    )
    assert answer.tag == f"UPDATE {ROWS * 4 // 5}"
    assert parts(server) > had, "the new versions went to parts"
    changed = "k % 5 > 0"
    expected = ", ".join(
        f"CASE WHEN {changed} THEN {value} ELSE {column} END AS {column}"
        for column, value in (
            ("g", "g + 100"),
            ("n", "n * 2"),
            ("t", "upper(t)"),
            ("u", "u / 3"),
            ("d", "d + 1"),
        )
    )
    assert differing(client, f"SELECT k, {expected} FROM before") == []
    assert client.run("SELECT k, t FROM big WHERE t = 'T7'").rows == [("7", "T7")]
    assert (
        client.run("SELECT count(*) FROM big WHERE g = 5").rows
        == client.run("SELECT count(*) FROM before WHERE g = 5 AND k % 5 = 0").rows
    )


def test_many_rows_go(client: Client) -> None:
    assert client.run("DELETE FROM big WHERE k % 5 > 0").tag == f"DELETE {ROWS * 4 // 5}"
    assert differing(client, "SELECT * FROM before WHERE k % 5 = 0") == []
    assert client.run("SELECT count(*) FROM big WHERE k = 7").rows == [("0",)]
    client.run("INSERT INTO big SELECT * FROM before WHERE k % 5 > 0")
    assert differing(client, "SELECT * FROM before") == []


def test_rows_joined_several_times_are_changed_once(client: Client) -> None:
    client.run("CREATE TABLE other AS SELECT k / 2 AS k, 7 AS g FROM before")
    try:
        tag = client.run("UPDATE big SET g = big.g + o.g FROM other o WHERE o.k = big.k").tag
        assert tag == f"UPDATE {ROWS // 2}"
        assert differing(
            client, f"SELECT k, CASE WHEN k <= {ROWS // 2} THEN g + 7 ELSE g END AS g, n, t, u, d FROM before"
        ) == []  # fmt: skip
        tag = client.run(f"DELETE FROM big USING other o WHERE o.k = big.k AND o.k < {ROWS}").tag
        assert tag == f"DELETE {ROWS // 2}"
    finally:
        client.run("DROP TABLE other")


def test_keys_move_as_a_whole(client: Client) -> None:
    assert client.run("UPDATE big SET k = k + 1").tag == f"UPDATE {ROWS}"
    assert differing(client, "SELECT k + 1 AS k, g, n, t, u, d FROM before") == []


@pytest.mark.parametrize(
    ("change", "sqlstate", "detail"),
    [
        (f"SET k = k / 2 + {ROWS * 2}", "23505", f"Key (k)=({ROWS * 2 + 1}) already exists."),
        ("SET t = 't' || k / 2", "23505", "Key (t)=(t1) already exists."),
        (
            "SET g = nullif(k, 24445), d = NULL",
            "23502",
            "Failing row contains (24445, null, 244.45, t24445, 36667.5, null).",
        ),
        (f"SET n = 1 / (k - {ROWS - 1})", "22012", None),
    ],
)
def test_an_error_changes_nothing(
    server: ServerProcess, client: Client, change: str, sqlstate: str, detail: str | None
) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("SAVEPOINT s")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(f"UPDATE big {change}")
        assert caught.value.sqlstate == sqlstate
        assert caught.value.diag.message_detail == detail
        connection.execute("ROLLBACK TO s")
        connection.execute("UPDATE big SET g = 1 WHERE k = 1")
        connection.rollback()
    assert differing(client, "SELECT * FROM before") == []


def test_a_block_sees_its_changes_and_others_do_not(server: ServerProcess, client: Client) -> None:
    other = server.connect()
    client.run("BEGIN")
    client.run("UPDATE big SET g = g + 1")
    client.run("SAVEPOINT s")
    client.run("UPDATE big SET g = g * 1000")
    client.run("DELETE FROM big WHERE k > 100")
    assert client.run("SELECT count(*), min(g) FROM big").rows == [("100", "1000")]
    client.run("ROLLBACK TO s")
    client.run("UPDATE big SET n = 0 WHERE k <= 25000")
    client.run("DELETE FROM big WHERE k > 28000")
    client.run("UPDATE big SET t = 'one' WHERE k = 5")
    assert other.run("SELECT sum(g) FROM big").rows == other.run("SELECT sum(g) FROM before").rows
    client.run("COMMIT")
    expected = (
        "SELECT k, g + 1 AS g, CASE WHEN k <= 25000 THEN 0 ELSE n END AS n, CASE WHEN k = 5 THEN 'one' ELSE t END AS t, u, d "
        "FROM before WHERE k <= 28000"
    )
    assert differing(other, expected) == []
    other.close()


def test_others_changes_are_waited_for_and_counted(server: ServerProcess, client: Client) -> None:
    with psycopg.connect(server.url) as other:
        other.execute("UPDATE big SET n = 1000000 WHERE k = 77")
        ended = threading.Event()

        def work() -> None:
            client.run("UPDATE big SET n = n + 1")
            ended.set()

        worker = threading.Thread(target=work)
        worker.start()
        with psycopg.connect(server.url, autocommit=True) as watcher:
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while watcher.execute(waiting).fetchone() == (0,) and not ended.is_set():
                pass
        assert not ended.is_set()
        other.commit()
        worker.join()
    assert client.run("SELECT n FROM big WHERE k = 77").rows == [("1000001.00",)]
    assert differing(
        client, "SELECT k, g, CASE WHEN k = 77 THEN 1000001 ELSE n + 1 END AS n, t, u, d FROM before"
    ) == []  # fmt: skip


def test_a_kill_keeps_what_was_committed_and_nothing_else(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    client = server.connect()
    client.run("CREATE TABLE big (k int PRIMARY KEY, v int)")
    client.run("INSERT INTO big SELECT i, 0 FROM generate_series(1, 50000) i")
    client.run("UPDATE big SET v = 1")
    client.run("DELETE FROM big WHERE k > 30000")
    client.run("BEGIN")
    client.run("UPDATE big SET v = 2")
    client.run("DELETE FROM big WHERE k > 10")
    server.kill()
    client.close()
    server = ServerProcess(tmp_path / "data")
    client = server.connect()
    assert client.run("SELECT count(*), min(v), max(v), max(k) FROM big").rows == [
        ("30000", "1", "1", "30000")
    ]
    client.run("CHECKPOINT")
    client.run("UPDATE big SET v = v + 1 WHERE k <= 25000")
    client.close()
    assert server.stop() == 0
    server = ServerProcess(tmp_path / "data")
    client = server.connect()
    assert client.run("SELECT count(*), sum(v) FROM big").rows == [("30000", "55000")]
    client.close()
    assert server.stop() == 0
