"""A server's life as a user meets it: limits of sessions and time, shutting down, starting wrong, crashing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from engine.base.config import ConfigError, add_arguments, load
from sqllogictest.client import ServerError
from tests.support.fields import FieldsClient, connect, fields_of
from tests.support.server import ServerProcess


def holdfast(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine", *words], capture_output=True, text=True, timeout=60, check=False
    )


def farewell(client: FieldsClient) -> dict[str, str]:
    """Wait for the server's last word."""
    kind, body = client.answer()
    while kind in (b"1", b"2", b"T"):  # of the statement that did not finish
        kind, body = client.answer()
    assert kind == b"E"
    with pytest.raises(ConnectionError):
        client.answer()
    client._socket.close()
    return fields_of(body)


def test_an_idle_transaction_ends_with_25P03(server: ServerProcess) -> None:
    client = connect(server.port, timeout_s=20)
    client.run("SET idle_in_transaction_session_timeout = '150ms'")
    client.run("BEGIN")
    said = farewell(client)
    assert (said["severity"], said["sqlstate"]) == ("FATAL", "25P03")
    assert said["message"] == "terminating connection due to idle-in-transaction timeout"


def test_an_idle_session_ends_with_57P05_but_not_inside_a_transaction(server: ServerProcess) -> None:
    client = connect(server.port, timeout_s=20)
    client.run("SET idle_session_timeout = '200ms'; BEGIN")
    time.sleep(0.4)
    client.run("COMMIT")
    assert farewell(client)["sqlstate"] == "57P05"


def test_lock_timeout_may_be_set_inside_the_transaction(server: ServerProcess) -> None:
    holder, waiter = connect(server.port), connect(server.port, timeout_s=20)
    holder.run("CREATE TABLE locked_row (a int PRIMARY KEY, b int)")
    holder.run("INSERT INTO locked_row VALUES (1, 1)")
    holder.run("BEGIN")
    holder.run("UPDATE locked_row SET b = 2 WHERE a = 1")
    waiter.run("BEGIN")
    waiter.run("SET LOCAL lock_timeout = '100ms'")
    error = waiter.fails("UPDATE locked_row SET b = 3 WHERE a = 1")
    assert error["sqlstate"] == "55P03"
    assert error["message"] == "canceling statement due to lock timeout"
    waiter.run("ROLLBACK")
    holder.run("ROLLBACK")
    waiter.run("SET statement_timeout = '100ms'")
    holder.run("BEGIN")
    holder.run("UPDATE locked_row SET b = 2 WHERE a = 1")
    assert waiter.fails("UPDATE locked_row SET b = 3 WHERE a = 1")["sqlstate"] == "57014"
    holder.close()
    waiter.run("DROP TABLE locked_row")
    waiter.close()


def test_a_transaction_past_its_timeout_ends_with_its_connection(server: ServerProcess) -> None:
    client, other = connect(server.port, timeout_s=20), connect(server.port, timeout_s=20)
    client.run("CREATE TABLE late (a int PRIMARY KEY)")
    client.run("SET transaction_timeout = '150ms'")
    client.run("BEGIN")
    client.run("INSERT INTO late VALUES (1)")
    said = farewell(client)  # idle
    assert (said["severity"], said["sqlstate"]) == ("FATAL", "25P04")
    assert said["message"] == "terminating connection due to transaction timeout"
    other.run("BEGIN")
    other.run("INSERT INTO late VALUES (2)")
    for statement in ("INSERT INTO late VALUES (2)", "SELECT pg_sleep(20)"):  # waiting for a lock; running
        client = connect(server.port, timeout_s=20)
        client.run("SET transaction_timeout = '150ms'")
        client.run("BEGIN")
        client.send(b"Q", statement.encode() + b"\0")
        said = farewell(client)
        assert (said["severity"], said["sqlstate"]) == ("FATAL", "25P04")
    client = connect(server.port, timeout_s=20)
    client.run("BEGIN")
    client.run("SET LOCAL transaction_timeout = '200ms'")
    client.run("COMMIT")
    time.sleep(0.3)
    assert client.run("SELECT a FROM late").rows == []
    other.run("COMMIT")
    client.run("DROP TABLE late")
    client.close()
    other.close()


def test_terminating_a_session_tells_it_so(server: ServerProcess) -> None:
    victim, other = connect(server.port, timeout_s=20), connect(server.port)
    [[pid]] = victim.run("SELECT pg_backend_pid()").rows
    assert other.run(f"SELECT pg_terminate_backend({pid})").rows == [("t",)]
    assert farewell(victim)["sqlstate"] == "57P01"
    assert other.run("SELECT pg_terminate_backend(99999)").rows == [("f",)]
    other.close()


def ask(client: FieldsClient, sql: bytes, *, extended: bool) -> None:
    """Send a statement, which ends with NUL, by either protocol; read nothing."""
    if extended:
        client.send(b"P", b"\0" + sql + b"\0\0")
        client.send(b"B", b"\0\0\0\0\0\0\0\0")
        client.send(b"E", b"\0\0\0\0\0")
        client.send(b"S", b"")
    else:
        client.send(b"Q", sql)


@pytest.mark.parametrize("extended", [False, True])
def test_terminating_a_session_that_waits_tells_it_that_alone(server: ServerProcess, extended: bool) -> None:
    victim, other = connect(server.port, timeout_s=20), connect(server.port)
    [[pid]] = victim.run("SELECT pg_backend_pid()").rows
    other.run("SELECT pg_advisory_lock(57)")
    sql = b"SELECT pg_advisory_lock(57)\0"
    ask(victim, sql, extended=extended)
    waits = f"SELECT 1 FROM pg_locks WHERE pid = {pid} AND NOT granted"
    deadline = time.monotonic() + 60
    while not other.run(waits).rows:
        assert time.monotonic() < deadline, "it does not wait"
    assert other.run(f"SELECT pg_terminate_backend({pid})").rows == [("t",)]
    assert farewell(victim)["sqlstate"] == "57P01"
    assert other.run("SELECT pg_advisory_unlock(57)").rows == [("t",)]
    other.close()


@pytest.mark.parametrize("extended", [False, True])
def test_a_session_that_terminates_itself_is_told_so(server: ServerProcess, extended: bool) -> None:
    client = connect(server.port, timeout_s=20)
    # The first call on a server is answered with its row and its end, and then with the farewell; PostgreSQL sends the row, too.
    client.run("SELECT pg_terminate_backend(99999)")
    before = server.log().count("unexpected error")
    sql = b"SELECT pg_terminate_backend(pg_backend_pid())\0"
    ask(client, sql, extended=extended)
    assert farewell(client)["sqlstate"] == "57P01"
    assert server.log().count("unexpected error") == before


def test_sessions_past_the_limit_are_refused(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--max-connections", "2")
    clients = [connect(server.port)]
    clients[0].run("CREATE ROLE ann LOGIN")
    with pytest.raises(ServerError, match="remaining connection slots are reserved") as reserved:
        connect(server.port, user="ann")
    assert reserved.value.sqlstate == "53300"
    assert clients[0].run("SHOW superuser_reserved_connections").rows == [("1",)]
    clients.append(connect(server.port))
    with pytest.raises(ServerError) as caught:
        connect(server.port)
    assert caught.value.sqlstate == "53300"
    for client in clients:
        client.close()
    assert server.stop() == 0


def test_the_collector_rests_from_the_start(tmp_path: Path) -> None:
    script = """
import gc, sys, engine.__main__ as start

def stop(**settings):  # the store is open, nobody listens yet
    print(gc.isenabled())
    raise OSError("stopped here")

start.ServerConfig = stop
sys.exit(start.main(sys.argv[1:]))
"""
    words = ["serve", "--data-dir", str(tmp_path / "data"), "--spark-start", "off", "--port", "0"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("False\n", 1), done.stderr
    assert "stopped here" in done.stderr


def test_sigterm_lets_a_running_statement_finish_and_sends_idle_clients_away(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", fresh=True)
    busy, idle = connect(server.port), connect(server.port, timeout_s=20)
    rows: list[object] = []
    thread = threading.Thread(target=lambda: rows.extend(busy.run("SELECT 'done', pg_sleep(1)").rows))
    thread.start()
    time.sleep(0.3)
    server.process.terminate()
    assert farewell(idle)["sqlstate"] == "57P01"
    thread.join()
    assert rows == [("done", "")]
    busy._socket.close()
    assert server.process.wait(20) == 0
    assert "leaked" not in server.log()
    server._end()


def test_a_second_server_names_who_holds_the_directory(server: ServerProcess) -> None:
    second = holdfast("serve", "--port", "0", "--data-dir", str(server.data_dir), "--spark-start", "off")
    assert second.returncode == 1
    assert f"{server.process.pid}" in second.stderr
    assert "in use" in second.stderr
    assert "leaked" not in second.stderr
    assert "Traceback" not in second.stderr


LEFT = (
    "SELECT count(*) FROM (SELECT relname FROM pg_class UNION ALL SELECT typname FROM pg_type "
    "UNION ALL SELECT proname FROM pg_proc) AS o (name) WHERE name IN ('mine', 'mood', 'of_mood', 'of_mine')"
)


def test_what_is_temporary_belongs_to_one_session_and_ends_with_it(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    one, two = connect(server.port), connect(server.port)
    for client, value in ((one, 1), (two, 2)):
        client.run("CREATE TEMP TABLE mine (a int)")
        client.run(f"INSERT INTO pg_temp.mine VALUES ({value})")
        client.run("CREATE TYPE pg_temp.mood AS ENUM ('fine')")
        client.run("CREATE FUNCTION pg_temp.of_mood() RETURNS mood LANGUAGE sql AS $$ SELECT 'fine'::mood $$")
    both = int(one.run(LEFT).rows[0][0] or 0)
    two.run("CREATE FUNCTION public.of_mine(mine) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    assert one.run("SELECT a FROM mine").rows == [("1",)]
    assert two.run("SELECT a FROM mine").rows == [("2",)]
    two.close()
    for _ in range(100):
        if one.run(LEFT).rows == [(str(both // 2),)]:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("something of the closed session is still there")
    one.run("DISCARD TEMP")
    assert one.run(LEFT).rows == [("0",)]
    one.run("CREATE FUNCTION pg_temp.of_mood() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    one.run("BEGIN")
    one.run("CREATE TEMP TABLE short (a int) ON COMMIT DROP")
    one.run("CREATE TEMP TABLE emptied (a int) ON COMMIT DELETE ROWS")
    one.run("INSERT INTO short VALUES (1)")
    one.run("INSERT INTO emptied VALUES (1)")
    one.run("COMMIT")
    assert one.fails("SELECT a FROM short")["sqlstate"] == "42P01"
    assert one.run("SELECT a FROM emptied").rows == []
    one._socket.close()
    server.kill()
    again = ServerProcess(tmp_path / "data")
    assert again.sql("SELECT count(*) FROM pg_class WHERE relname IN ('mine', 'emptied')") == [("0",)]
    assert again.sql(LEFT) == [("0",)]
    assert again.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg_temp%'") == [("0",)]
    assert again.stop() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "abc"], "--port: port cannot be 'abc'"),
        (["--port", "70000"], "port must be at most 65535"),
        (["--auth", "none"], "auth must be one of trust, scram-sha-256"),
        (["--host", "0.0.0.0"], "trust authentication is refused"),
        (["--tls-cert", "x"], "tls_cert and tls_key go together"),
    ],
)
def test_a_wrong_option_is_named(words: list[str], said: str) -> None:
    done = holdfast("serve", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_come_from_file_environment_and_command_line_in_that_order(tmp_path: Path) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    file = tmp_path / "holdfast.toml"
    file.write_text('port = 1\nmemory = "2GB"\nlog_level = "debug"\n')
    config = load(parser.parse_args(["--config", str(file), "--log-level", "error"]), {"HOLDFAST_PORT": "2"})
    assert (config.port, config.memory, config.log_level) == (2, 2 << 30, "error")
    file.write_text("prot = 1\n")
    with pytest.raises(ConfigError, match="there is no setting prot"):
        load(parser.parse_args(["--config", str(file)]), {})
    file.write_text("port = [")
    with pytest.raises(ConfigError, match="cannot read"):
        load(parser.parse_args(["--config", str(file)]), {})
    with pytest.raises(ConfigError, match="HOLDFAST_MEMORY"):
        load(parser.parse_args([]), {"HOLDFAST_MEMORY": "much"})


def test_help_names_every_option_and_command() -> None:
    top = holdfast("--help").stdout
    assert all(word in top for word in ("serve", "doctor", "sql", "slt"))
    serve = holdfast("serve", "--help").stdout
    assert "--data-dir" in serve
    assert "(default: 7432)" in serve


def test_modules_of_functions_are_loaded_before_a_statement_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first aggregate would import them on the loop: 0.3 s in which nobody is answered."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    server = ServerProcess(tmp_path / "data", fresh=True)
    try:
        until = time.monotonic() + 60
        # one that the last family imports: -X importtime does not show the families themselves
        while "planner.patterns.pattern" not in server.log():
            assert time.monotonic() < until, server.log()[-2000:]
            time.sleep(0.05)
    finally:
        assert server.stop() == 0


def test_a_statement_that_gathers_too_much_fails_alone(tmp_path: Path) -> None:
    """The rows of an endless recursion; another connection keeps its answers."""
    server = ServerProcess(tmp_path / "data", "--memory", "320MB")
    try:
        endless = (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT t.n + g FROM t, generate_series(1, 50) g) "
            "SELECT count(*) FROM t"
        )
        client = server.connect(timeout_s=120)
        with pytest.raises(ServerError) as caught:
            client.run(endless)
        assert caught.value.sqlstate == "53200"
        assert client.run("SELECT 1").rows == [("1",)]
        client.close()
        assert server.sql("SELECT 1") == [("1",)]
    finally:
        assert server.stop() == 0
