"""Cursors and portals whose reading was interrupted: what they had not read is not missing in silence."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sqllogictest.client import ServerError
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

ROWS = 400_000
BAD = 300_000  # far behind what is read ahead


@pytest.fixture(scope="module")
def table(server: ServerProcess) -> str:
    server.sql(f"CREATE TABLE broken AS SELECT x AS a FROM generate_series(1, {ROWS}) x")
    return f"SELECT a, 10 / (a - {BAD}) AS b FROM broken"


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run("SET executor = local")
    yield made
    made.close()


def bind(client: FieldsClient, sql: str) -> None:
    """Bind portal ``c``."""
    client.send(b"P", b"\0" + sql.encode() + b"\0\0\0")
    client.send(b"B", b"c\0\0\0\0\0\0\0\0")


def execute(client: FieldsClient, rows: int) -> list[bytes]:
    """Execute portal ``c``, Sync; return what came but the rows."""
    client.send(b"E", b"c\0" + rows.to_bytes(4, "big"))
    client.send(b"S")
    return [body if kind == b"E" else kind for kind, body in client.until_ready() if kind not in (b"D", b"S")]


@pytest.mark.parametrize("kind", ["cursor", "portal", "portal fetched from"])
def test_one_whose_query_failed_cannot_be_read_any_more(client: FieldsClient, table: str, kind: str) -> None:
    client.run("BEGIN")
    if kind == "cursor":
        client.run(f"DECLARE c CURSOR FOR {table}")
    else:
        bind(client, table)
        assert b"s" in execute(client, 2)
    if kind != "portal":
        assert len(client.run("FETCH 2 FROM c").rows) == 2
    client.run("SAVEPOINT s")
    if kind == "portal":
        assert any(b"22012" in answer for answer in execute(client, ROWS))
    else:
        assert client.fails(f"MOVE {ROWS} FROM c")["sqlstate"] == "22012"
    client.run("ROLLBACK TO s")
    for _ in range(2):
        if kind == "cursor":
            error = client.fails("FETCH 1 FROM c")
            assert (error["sqlstate"], error["message"]) == ("55000", 'portal "c" cannot be run')
        else:
            assert any(b"55000" in answer for answer in execute(client, 1))
        client.run("ROLLBACK TO s")
    client.run("ROLLBACK")


def test_a_cancelled_fetch_does_not_end_the_rows(client: FieldsClient, table: str) -> None:
    """It broke the cursor, or has come while rows were put aside, which goes on."""
    client.run("BEGIN; DECLARE c CURSOR FOR SELECT a, md5(a::text) FROM broken, generate_series(1, 4) x")
    client.run("FETCH 2 FROM c")
    client.run("SAVEPOINT s")
    client.run("SET LOCAL statement_timeout = '30ms'")
    assert client.fails("MOVE ALL FROM c")["sqlstate"] == "57014"
    client.run("ROLLBACK TO s")
    refused = ""
    try:
        client.run("MOVE ALL FROM c")
    except ServerError as error:
        refused = error.sqlstate
    if not refused:
        client.run("MOVE ABSOLUTE 0 FROM c")
        assert client.run("MOVE ALL FROM c").tag == f"MOVE {4 * ROWS}"
    assert refused in ("", "55000")
    client.run("ROLLBACK")


def test_one_with_hold_that_failed_is_closed_by_the_commit(client: FieldsClient, table: str) -> None:
    client.run(f"BEGIN; DECLARE c CURSOR WITH HOLD FOR {table}; SAVEPOINT s")
    assert client.fails("MOVE ALL FROM c")["sqlstate"] == "22012"
    client.run("ROLLBACK TO s")
    client.run("COMMIT")
    assert client.fails("FETCH 1 FROM c")["sqlstate"] == "34000"


@pytest.mark.parametrize("commit", ["COMMIT", "COMMIT AND CHAIN"])
def test_a_commit_that_fails_over_one_with_hold_leaves_the_block(
    client: FieldsClient, table: str, commit: str
) -> None:
    client.run(f"BEGIN; CREATE TABLE undone (); DECLARE c CURSOR WITH HOLD FOR {table}")
    assert client.fails(commit)["sqlstate"] == "22012"
    assert client.run("SELECT to_regclass('undone')").rows == [(None,)]
    assert client.fails("FETCH 1 FROM c")["sqlstate"] == "34000"
    client.send(b"S")
    assert client.until_ready() == [(b"Z", b"I")]


def test_time_limits_count_for_each_execute_of_a_portal(client: FieldsClient, table: str) -> None:
    """Neither what passes between two of them counts, nor does the clock of an idle block run while rows are sent."""
    client.run("SET statement_timeout = '2s'")
    client.run("BEGIN")
    bind(client, "SELECT a, repeat('x', 1000) FROM broken")
    assert b"s" in execute(client, 2)
    time.sleep(2.5)
    assert b"s" in execute(client, 2000)
    client.run("SET LOCAL statement_timeout = 0")
    client.run("SET LOCAL idle_in_transaction_session_timeout = '500ms'")
    client.send(b"E", b"c\0" + (30_000).to_bytes(4, "big"))
    client.send(b"S")
    time.sleep(1.5)  # more is sent than sockets hold, so it waits
    assert [kind for kind, _ in client.until_ready() if kind != b"D"][-2:] == [b"s", b"Z"]


def test_the_statement_timeout_counts_for_each_statement_of_a_query(client: FieldsClient) -> None:
    client.run("SET statement_timeout = '2s'; SELECT pg_sleep(1.2); SELECT pg_sleep(1.2)")
    with pytest.raises(ServerError, match="statement timeout"):
        client.run("SET statement_timeout = '200ms'; SELECT pg_sleep(60)")
    with pytest.raises(ServerError, match="statement timeout"):
        client.run("SELECT pg_sleep(0.01); SELECT pg_sleep(60)")


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN"])
def test_of_many_cursors_those_with_hold_outlive_a_commit(client: FieldsClient, ending: str) -> None:
    client.run("SET executor = index")
    client.run("BEGIN")
    for number in range(100):
        hold = "WITH HOLD" if number % 40 == 0 else ""
        client.run(f"DECLARE c{number} CURSOR {hold} FOR SELECT * FROM generate_series({number}, 200)")
    client.run("FETCH 2 FROM c41")
    client.run(ending)
    held = [("c0",), ("c40",), ("c80",)] if ending != "ROLLBACK" else []
    assert client.run("SELECT name FROM pg_cursors ORDER BY creation_time, name").rows == held
    if held:
        assert client.run("FETCH 1 FROM c40").rows == [("40",)]
    client.run("CLOSE ALL")
