"""Statements queue for Spark; whatever ends one gives its place to the next; a crash of the JVM ends only what runs in it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.support.server import ServerProcess

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

# The first row is there at once; the second never comes.
SLOW = """
SELECT 0 AS x UNION ALL
SELECT a FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b WHERE a < b AND a + b = -5
"""
WAITS = "SELECT count(*) FROM generate_series(1, 20000)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One statement at a time runs on Spark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        running = ServerProcess(
            tmp_path_factory.mktemp("queue") / "data",
            "--spark-start", "background", "--spark-max-queries", "1", "--spark-nice", "0",
        )  # fmt: skip
    yield running
    assert running.stop() == 0


def connect(server: ServerProcess, executor: str = "spark") -> psycopg.Connection[Any]:
    connection = psycopg.connect(server.url, autocommit=True)
    connection.execute(f"SET executor = {executor}")
    return connection


def until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.05)


class Waiting:
    """A statement that runs in a thread of its own."""

    def __init__(self, connection: psycopg.Connection[Any], sql: str) -> None:
        self.connection, self.sql = connection, sql
        self.rows: list[tuple[Any, ...]] = []
        self.error: psycopg.Error | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.rows = self.connection.execute(self.sql).fetchall()
        except psycopg.Error as error:
            self.error = error


@pytest.mark.parametrize("how", ["close", "rollback", "disconnect", "cancel", "timeout"])
def test_who_ends_gives_its_place_to_the_next(server: ServerProcess, how: str) -> None:
    with connect(server) as first, connect(server) as second, connect(server, "index") as watcher:
        first.execute("BEGIN")
        first.execute(f"DECLARE c CURSOR FOR {SLOW}")
        assert first.execute("FETCH 1 FROM c").fetchall() == [(0,)]
        fetching = None
        if how in ("cancel", "timeout"):
            if how == "timeout":
                first.execute("SET statement_timeout = '1s'")
            fetching = Waiting(first, "FETCH 1 FROM c")
        waiting = Waiting(second, WAITS)
        pid = second.info.backend_pid
        event = "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s"
        if how != "timeout":
            until(lambda: watcher.execute(event, (pid,)).fetchall() == [("Extension", "SparkQueue")])
        if how == "close":
            first.execute("CLOSE c")
        elif how == "rollback":
            first.execute("ROLLBACK")
        elif how == "disconnect":
            first.close()
        elif how == "cancel":
            first.cancel()
        waiting.thread.join()
        assert (waiting.error, waiting.rows) == (None, [(20_000,)])
        if fetching is not None:
            fetching.thread.join()
            assert fetching.error is not None
            assert fetching.error.sqlstate == "57014"


def test_statement_timeout_ends_the_wait_in_the_queue(server: ServerProcess) -> None:
    with connect(server) as first, connect(server) as second:
        first.execute("BEGIN")
        first.execute(f"DECLARE c CURSOR FOR {SLOW}")
        first.execute("FETCH 1 FROM c")
        second.execute("SET statement_timeout = '500ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            second.execute(WAITS)
        first.execute("CLOSE c")
        second.execute("SET statement_timeout = 0")
        assert second.execute(WAITS).fetchall() == [(20_000,)]
        first.execute("COMMIT")


def jvm_of(server: ServerProcess) -> int:
    listed = subprocess.run(
        ["ps", "--ppid", str(server.process.pid), "-o", "pid=,comm="],
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = [int(line.split()[0]) for line in listed.stdout.splitlines() if "java" in line]
    return found


def test_a_crash_of_the_jvm_is_nothing_to_others(server: ServerProcess) -> None:
    with connect(server) as first, connect(server) as second, connect(server, "auto") as other:
        other.execute("CREATE TABLE crashed (a int PRIMARY KEY, b int)")
        other.execute("INSERT INTO crashed VALUES (1, 2)")
        second.execute(WAITS)
        running = Waiting(first, SLOW.replace("SELECT 0 AS x UNION ALL", ""))
        event = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"
        pid = first.info.backend_pid
        until(lambda: other.execute(event, (pid,)).fetchall() == [("SparkJob",)])
        os.kill(jvm_of(server), signal.SIGKILL)
        answered = 0
        while running.thread.is_alive():
            assert other.execute("SELECT b FROM crashed WHERE a = 1").fetchall() == [(2,)]
            answered += 1
        assert answered
        assert running.error is not None
        assert (running.error.sqlstate, running.error.diag.message_primary) == (
            "58000", "the Spark JVM ended while the query ran",
        )  # fmt: skip
        second.execute("SET spark_start_timeout = 1")
        with pytest.raises(psycopg.errors.CannotConnectNow, match="starting up"):
            second.execute(WAITS)
        second.execute("RESET spark_start_timeout")
        assert second.execute(WAITS).fetchall() == [(20_000,)]
