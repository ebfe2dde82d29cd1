"""What a client is told of a conflict: the row, the connections, and what they run, as far as it may see that (N8)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

UPDATE_1 = "UPDATE spot SET n = n + 1 WHERE id = 1"
UPDATE_2 = "UPDATE spot SET n = n + 1 WHERE id = 2"
RETRY = "The transaction might succeed if retried."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("reports"))
    running.sql("CREATE ROLE ann LOGIN")
    running.sql("CREATE TABLE spot (id int PRIMARY KEY, n int)")
    running.sql("ALTER TABLE spot OWNER TO ann")
    running.sql("INSERT INTO spot VALUES (1, 0), (2, 0)")
    yield running
    assert running.stop() == 0


def pid_of(client: FieldsClient) -> str:
    [[pid]] = client.run("SELECT pg_backend_pid()").rows
    return str(pid)


def test_a_lock_timeout_tells_who_has_the_row(server: ServerProcess) -> None:
    holder, waiter = connect(server.port), connect(server.port)
    holding, waiting = pid_of(holder), pid_of(waiter)
    holder.run("BEGIN")
    holder.run(UPDATE_1)
    waiter.run("SET lock_timeout = '50ms'")
    error = waiter.fails(UPDATE_1)
    assert (error["sqlstate"], error["message"]) == ("55P03", "canceling statement due to lock timeout")
    assert error["detail"].split("\n") == [
        f'Process {waiting} waits for ExclusiveLock on row (id = 1) of table "spot"; blocked by process {holding}.',
        f"Process {waiting}: {UPDATE_1}",
        f"Process {holding}: {UPDATE_1}",
    ]
    holder.run("ROLLBACK")
    holder.close()
    waiter.close()


def test_other_users_do_not_see_what_is_run(server: ServerProcess) -> None:
    holder, waiter = connect(server.port), connect(server.port, user="ann")
    waiting = pid_of(waiter)
    holder.run("BEGIN")
    holder.run(UPDATE_1)
    waiter.run("SET lock_timeout = '50ms'")
    _waits, *queries = waiter.fails(UPDATE_1)["detail"].split("\n")
    assert queries == [f"Process {waiting}: {UPDATE_1}"]
    holder.run("ROLLBACK")
    holder.close()
    waiter.close()


def test_a_deadlock_prints_its_cycle(server: ServerProcess) -> None:
    older, younger = connect(server.port), connect(server.port)
    pids = pid_of(older), pid_of(younger)
    older.run("BEGIN")
    older.run(UPDATE_1)
    younger.run("BEGIN")
    younger.run(UPDATE_2)
    waiting = threading.Thread(target=older.run, args=(UPDATE_2,))
    waiting.start()
    control = server.connect()
    while control.run(f"SELECT cardinality(pg_blocking_pids({pids[0]}))").rows == [("0",)]:
        pass
    error = younger.fails(UPDATE_1)
    waiting.join()
    assert (error["sqlstate"], error["message"], error["hint"]) == ("40P01", "deadlock detected", RETRY)
    lines = error["detail"].split("\n")
    assert len(lines) == 4
    waits = {line for line in lines if " waits for " in line}
    assert any(
        line.startswith(f"Process {pids[0]} ") and line.endswith(f"by process {pids[1]}.") for line in waits
    )
    assert any(
        line.startswith(f"Process {pids[1]} ") and line.endswith(f"by process {pids[0]}.") for line in waits
    )
    assert {f"Process {pids[0]}: {UPDATE_2}", f"Process {pids[1]}: {UPDATE_1}"} == set(lines) - waits
    assert all('table "spot"' in line and "(id = " in line for line in waits)
    for client in (older, younger, control):
        client.close()


def test_a_serialization_failure_tells_who_changed_what(server: ServerProcess) -> None:
    reader, writer = connect(server.port), connect(server.port)
    writing = pid_of(writer)
    reader.run("BEGIN")
    reader.run("SELECT n FROM spot WHERE id = 1")
    writer.run(UPDATE_1)
    error = reader.fails(UPDATE_1)
    assert (error["sqlstate"], error["hint"]) == ("40001", RETRY)
    assert error["message"] == "could not serialize access due to concurrent update"
    assert error["detail"].split("\n") == [
        f'Key (id = 1) of table "spot" was changed by the connection with pid {writing} '
        "after this transaction's snapshot was taken.",
        f"Process {writing}: {UPDATE_1}",
    ]
    reader.close()
    writer.close()


@pytest.fixture
def stranger(server: ServerProcess) -> Iterator[FieldsClient]:
    """A role that may change the notes of rows whose keys it may not read: of one table all, of another those that a policy hides."""
    server.sql(
        "CREATE TABLE closed (id text PRIMARY KEY, note text, UNIQUE (note)); INSERT INTO closed VALUES ('s3cret', 'n0te'); "
        "CREATE TABLE hidden (id text PRIMARY KEY, o name); INSERT INTO hidden VALUES ('s3cret', 'postgres'), ('mine', 'eve'); "
        "ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON hidden USING (o = current_user); "
        "CREATE ROLE eve LOGIN; GRANT UPDATE (note), DELETE ON closed TO eve; GRANT ALL ON hidden TO eve"
    )
    client = connect(server.port, "eve")
    client.run("SET lock_timeout = '200ms'")
    yield client
    client.close()
    server.sql("DROP TABLE closed, hidden; DROP ROLE eve")


@pytest.mark.parametrize(
    "waits", ["UPDATE closed SET note = 'e'", "DELETE FROM closed", "DELETE FROM hidden WHERE id = 's3cret'"]
)
def test_who_waits_is_not_told_a_key_that_he_may_not_read(
    server: ServerProcess, stranger: FieldsClient, waits: str
) -> None:
    holder = connect(server.port)
    holder.run("BEGIN")
    for statement in (
        "UPDATE closed SET note = 'n1ote'",
        "UPDATE hidden SET o = o",
        "INSERT INTO closed VALUES ('s4cret')",
    ):
        holder.run(statement)
    error = stranger.fails(waits)
    assert error["sqlstate"] == "55P03"
    assert " waits for " in error["detail"]
    assert "cret" not in error["detail"].split("\nProcess ")[0]
    assert "ote" not in error["detail"].split("\nProcess ")[0]
    holder.run("ROLLBACK")
    holder.close()


def test_who_loses_a_race_is_not_told_a_key_that_he_may_not_read(
    server: ServerProcess, stranger: FieldsClient
) -> None:
    stranger.run("BEGIN")
    stranger.run("SELECT * FROM hidden WHERE id = 's3cret'")
    server.sql("UPDATE hidden SET o = 'nobody' WHERE id = 's3cret'")
    error = stranger.fails("INSERT INTO hidden VALUES ('new', 'eve')")
    stranger.run("ROLLBACK")
    assert error["sqlstate"] == "40001"
    assert 'index "hidden_pkey" of table "hidden" was changed' in error["detail"]
    assert "s3cret" not in error["detail"]


def test_nowait_tells_who_has_the_row(server: ServerProcess) -> None:
    holder, other = connect(server.port), connect(server.port)
    holder.run("BEGIN")
    holder.run("SELECT n FROM spot WHERE id = 2 FOR UPDATE")
    error = other.fails("SELECT n FROM spot WHERE id = 2 FOR UPDATE NOWAIT")
    assert error["sqlstate"] == "55P03"
    assert error["message"] == 'could not obtain lock on row in relation "spot"'
    assert f"blocked by process {pid_of(holder)}." in error["detail"]
    holder.close()
    other.close()
