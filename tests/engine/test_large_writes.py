"""Writes of many rows: routes, results as PostgreSQL's, and other connections answered meanwhile."""

from __future__ import annotations

import struct
import threading
import time
from pathlib import Path

import pytest

from sqllogictest.client import Client, ServerError
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

ROWS = 60_000


def route(client: Client, sql: str) -> str:
    """Return the route that EXPLAIN names."""
    lines = [row[0] or "" for row in client.run(f"EXPLAIN {sql}").rows]
    return next(line.split(":", 1)[1].strip() for line in lines if line.strip().startswith("Route:"))


def test_long_series_run_on_duckdb_and_short_ones_do_not(server: ServerProcess) -> None:
    client = server.connect()
    try:
        assert route(client, "SELECT i FROM generate_series(1, 100) i") == "index"
        assert route(client, "SELECT i FROM generate_series(1, 100000) i") == "local"
        assert route(client, "SELECT i FROM generate_series(100000, 1, -1) i") == "local"
        assert route(client, "SELECT i FROM generate_series(1, 100, 0) i") == "index"
        assert route(client, "SELECT i FROM generate_series(1, 2000000000) i") == "index"
        assert client.run("SELECT 'n' || i, i || '' FROM generate_series(1, 30000) i").rows[-1] == (
            "n30000",
            "30000",
        )
        rows = client.run("SELECT i FROM generate_series(90000, 1, -3) i").rows
        assert [int(row[0] or 0) for row in rows] == list(range(90000, 0, -3))
    finally:
        client.close()


def extended(client: FieldsClient, sql: str, values: list[int]) -> list[bytes]:
    """Run ``sql`` once for each value, all up to one Sync; return the kinds of the messages that came."""
    packed = bytearray()

    def add(kind: bytes, body: bytes) -> None:
        packed.extend(kind + struct.pack("!I", len(body) + 4) + body)

    add(b"P", b"\0" + sql.encode() + b"\0\0\0")
    for value in values:
        text = str(value).encode()
        add(b"B", b"\0\0\0\0\0\1" + struct.pack("!I", len(text)) + text + b"\0\0")
        add(b"E", b"\0\0\0\0\0")
    add(b"S", b"")
    writer = threading.Thread(target=client.send_raw, args=(bytes(packed),))
    writer.start()
    kinds = [
        kind for kind, _body in client.until_ready() if kind != b"S"
    ]  # a ParameterStatus may come any time
    writer.join()
    return kinds


def test_many_rows_up_to_one_sync_are_committed_before_it_is_answered(server: ServerProcess) -> None:
    """The extended protocol's own transaction, large enough that its commit is prepared in slices."""
    client, other = connect(server.port), server.connect()
    client.run("CREATE TABLE synced (k int PRIMARY KEY, v int)")
    kinds = extended(client, "INSERT INTO synced VALUES ($1, 0)", list(range(6000)))
    assert kinds.count(b"C") == 6000
    assert other.run("SELECT count(*) FROM synced").rows == [("6000",)]
    assert extended(client, "UPDATE synced SET v = 1 WHERE k < $1", [5000]) == [b"1", b"2", b"C", b"Z"]
    assert other.run("SELECT sum(v) FROM synced").rows == [("5000",)]
    assert extended(client, "DELETE FROM synced WHERE k < $1", [4500]) == [b"1", b"2", b"C", b"Z"]
    assert other.run("SELECT count(*) FROM synced").rows == [("1500",)]
    assert other.run("SELECT count(*) FROM pg_locks WHERE relation = 'synced'::regclass").rows == [("0",)]
    other.run("DROP TABLE synced")
    client.close()
    other.close()


def test_rows_written_by_the_thousand_are_all_there(server: ServerProcess) -> None:
    """Row by row (a default, a CHECK) and in bulk; another connection reads all the while."""
    client, other = server.connect(), server.connect()
    client.run("CREATE TABLE many (k int PRIMARY KEY, v int CHECK (v >= 0), t text DEFAULT 'd')")
    done = threading.Event()
    sums: set[tuple[str | None, ...]] = set()

    def look() -> None:
        while not done.is_set():
            sums.add(other.run("SELECT count(*), sum(v) FROM many").rows[0])

    watching = threading.Thread(target=look)
    watching.start()
    try:
        assert (
            client.run(f"INSERT INTO many SELECT i, 1 FROM generate_series(1, {ROWS}) i").tag
            == f"INSERT 0 {ROWS}"
        )
        assert client.run("UPDATE many SET v = 3").tag == f"UPDATE {ROWS}"
        assert client.run("DELETE FROM many WHERE k % 3 = 0").tag == f"DELETE {ROWS // 3}"
        client.run(f"CREATE TABLE copied AS SELECT i AS k, 'r' || i AS t FROM generate_series(1, {ROWS}) i")
    finally:
        done.set()
        watching.join()
    half = [
        (str(ROWS), str(ROWS)),
        (str(ROWS), str(3 * ROWS)),
        (str(ROWS - ROWS // 3), str(3 * (ROWS - ROWS // 3))),
    ]
    assert sums <= {("0", None), *half}
    assert other.run("SELECT count(*), sum(v), min(t) FROM many").rows == [(*half[-1], "d")]
    assert other.run("SELECT count(*), max(k), max(t) FROM copied").rows == [(str(ROWS), str(ROWS), "r9999")]
    client.close()
    other.close()


def test_rewriting_a_large_table_keeps_rows_indexes_and_older_readers(server: ServerProcess) -> None:
    """ALTER TYPE and a volatile default write the rows anew as parts; a rollback takes that back."""
    client, reader = server.connect(), server.connect()
    client.run("CREATE TABLE wide (k int PRIMARY KEY, v int UNIQUE, gone int, a int[])")
    client.run(f"INSERT INTO wide SELECT i, i, 0, ARRAY[i, NULL] FROM generate_series(1, {ROWS}) i")
    client.run("ALTER TABLE wide DROP COLUMN gone")
    reader.run("BEGIN")
    assert reader.run("SELECT v, a FROM wide WHERE k = 7").rows == [("7", "{7,NULL}")]
    longest_s = 0.0
    done = threading.Event()

    def look() -> None:
        nonlocal longest_s
        other = server.connect()
        while not done.is_set():
            began = time.monotonic()
            other.run("SELECT 1")
            longest_s = max(longest_s, time.monotonic() - began)
        other.close()

    watching = threading.Thread(target=look)
    watching.start()
    began = time.monotonic()
    try:
        client.run("BEGIN")
        client.run("ALTER TABLE wide ALTER COLUMN v TYPE text USING 'x' || v")
        assert client.run("SELECT k, v, a FROM wide WHERE v = 'x9'").rows == [("9", "x9", "{9,NULL}")]
        client.run("ROLLBACK")
        assert client.run("SELECT count(*), max(v) FROM wide").rows == [(str(ROWS), str(ROWS))]
        client.run("ALTER TABLE wide ALTER COLUMN v TYPE text USING 'x' || v")
        client.run("ALTER TABLE wide ADD COLUMN r float8 DEFAULT random() NOT NULL CHECK (r >= 0)")
    finally:
        done.set()
        watching.join()
    assert longest_s < max(1.0, (time.monotonic() - began) / 6), "others waited for a rewrite"
    assert client.run("SELECT count(*), count(DISTINCT v), count(r), count(a) FROM wide").rows == [
        (str(ROWS),) * 4
    ]
    assert client.run("SELECT k, v, a FROM wide WHERE v = 'x9'").rows == [("9", "x9", "{9,NULL}")]
    assert client.run("SELECT v FROM wide WHERE k = 7").rows == [("x7",)]
    for statement, sqlstate in (
        ("ALTER TABLE wide ALTER COLUMN v TYPE int USING 1", "23505"),
        ("ALTER TABLE wide ALTER COLUMN v TYPE int USING substr(v, 1, 1)::int", "22P02"),
        ("ALTER TABLE wide ADD CHECK (k < 60000)", "23514"),
    ):
        with pytest.raises(ServerError) as caught:
            client.run(statement)
        assert caught.value.sqlstate == sqlstate
    assert client.run("SELECT k, v FROM wide WHERE v = 'x9'").rows == [("9", "x9")]
    assert reader.run("SELECT v, a FROM wide WHERE v = 7").rows == [("7", "{7,NULL}")]
    reader.run("COMMIT")
    client.run("DROP TABLE wide")
    client.close()
    reader.close()


@pytest.mark.parametrize("rows", [3000, 6000, 30_000])  # at once, committed in slices, as a part
def test_rows_of_a_statement_of_the_extended_protocol_are_committed(server: ServerProcess, rows: int) -> None:
    client, other = server.connect(), server.connect()
    try:
        client.run(f"CREATE TABLE sent{rows} (k int PRIMARY KEY)", "extended")
        for sign in (1, -1):
            done = client.run(
                f"INSERT INTO sent{rows} SELECT {sign} * i FROM generate_series(1, {rows}) i", "extended"
            )
            assert done.tag == f"INSERT 0 {rows}"
        assert other.run(f"SELECT count(*) FROM sent{rows}", "extended").rows == [(str(2 * rows),)]
        other.run(f"INSERT INTO sent{rows} VALUES (0)", "extended")  # no lock has stayed
        assert client.run(f"DELETE FROM sent{rows} WHERE k < 0", "extended").tag == f"DELETE {rows}"
        assert other.run(f"SELECT count(*) FROM sent{rows}").rows == [(str(rows + 1),)]
    finally:
        client.close()
        other.close()


@pytest.mark.parametrize(
    ("way", "rows"),
    [
        ("copy", 3000),
        ("copy", 25_000),
        ("insert", 3000),
        ("insert", 25_000),
        ("block", 3000),
        ("block", 12_000),
    ],
)
def test_several_connections_load_one_table_at_once(
    server: ServerProcess, way: str, rows: int, tmp_path: Path
) -> None:
    """Past the sizes at which a table is locked as a whole, and at which rows are written as parts."""
    admin = server.connect()
    admin.run("CREATE TABLE loaded (k int PRIMARY KEY, v int)")
    errors: list[str] = []
    begin = threading.Barrier(3)

    def load(base: int) -> None:
        client = server.connect()
        try:
            for part in range(2):
                first = base + part * 100_000
                source = f"SELECT g, 1 FROM generate_series({first + 1}, {first + rows}) g"
                begin.wait(60)
                if way == "copy":
                    file = tmp_path / f"{first}.copy"
                    file.write_text("".join(f"{k}\t1\n" for k in range(first + 1, first + rows + 1)))
                    client.run(f"COPY loaded FROM '{file}'")
                elif way == "insert":
                    client.run(f"INSERT INTO loaded {source}")
                else:
                    client.run("BEGIN")
                    client.run(f"INSERT INTO loaded VALUES ({first}, 1)")
                    client.run(f"INSERT INTO loaded {source}")
                    client.run("COMMIT")
        except ServerError as error:
            errors.append(str(error))
            begin.abort()
        finally:
            client.close()

    loaders = [threading.Thread(target=load, args=(number * 1_000_000,)) for number in range(3)]
    for loader in loaders:
        loader.start()
    for loader in loaders:
        loader.join()
    assert not errors
    expected = 6 * (rows + (way == "block"))
    assert admin.run("SELECT count(*), count(DISTINCT k) FROM loaded").rows == [
        (str(expected), str(expected))
    ]
    admin.run("DROP TABLE loaded")
    admin.close()


def test_merge_of_many_rows(server: ServerProcess) -> None:
    client = server.connect()
    try:
        client.run("CREATE TABLE goods AS SELECT i AS id, 0 AS n FROM generate_series(1, 30000) i")
        client.run("ALTER TABLE goods ADD PRIMARY KEY (id)")
        client.run("CREATE TABLE news AS SELECT i AS id, i % 3 AS what FROM generate_series(20001, 40000) i")
        merge = (
            "MERGE INTO goods g USING news n ON g.id = n.id WHEN MATCHED AND what = 0 THEN DELETE "
            "WHEN MATCHED AND what = 1 THEN UPDATE SET n = n.id WHEN MATCHED THEN DO NOTHING "
            "WHEN NOT MATCHED AND what < 2 THEN INSERT VALUES (n.id, -1)"
        )
        assert client.run(merge).tag == f"MERGE {3334 + 3333 + 6667}"
        rows = client.run(
            "SELECT count(*), count(*) FILTER (WHERE n > 0), count(*) FILTER (WHERE n < 0) FROM goods"
        )
        assert rows.rows == [(f"{30000 - 3334 + 6667}", "3333", "6667")]
        found = client.run("SELECT n FROM goods WHERE id IN (20001, 20002, 39999) ORDER BY id").rows
        assert found == [("20002",), ("-1",)]
    finally:
        client.run("DROP TABLE IF EXISTS goods, news")
        client.close()
