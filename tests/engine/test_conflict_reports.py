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
