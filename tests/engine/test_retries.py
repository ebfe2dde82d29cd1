"""Statements that run again by themselves after a conflict, and those that must not (N8, Q13)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from sqllogictest.client import Client, ServerError
from tests.support.server import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    # every wait for a lock is refused with 40P01, so that conflicts need no second party at the right moment
    running = ServerProcess(
        tmp_path_factory.mktemp("retries"), "--deadlock-policy", "no_wait", odd={"HFTEST_PAUSE": "0.04"}
    )
    running.sql("CREATE TABLE t (id int PRIMARY KEY, n int)")
    running.sql("INSERT INTO t VALUES (1, 0), (2, 0)")
    yield running
    assert running.stop() == 0


class Holder:
    """Holds row 1 for some time, at most until it is told to end."""

    def __init__(self, client: Client, seconds: float) -> None:
        client.run("BEGIN")
        client.run("UPDATE t SET n = n + 1 WHERE id = 1")
        self._client, self._seconds = client, seconds
        self._told = threading.Event()
        self._thread = threading.Thread(target=self._end)
        self._thread.start()

    def _end(self) -> None:
        self._told.wait(self._seconds)
        self._client.run("COMMIT")

    def end(self) -> None:
        self._told.set()
        self.join()

    def join(self) -> None:
        self._thread.join()
        self._client.close()


def test_the_policy_is_a_setting(server: ServerProcess) -> None:
    assert server.sql("SHOW deadlock_policy") == [("no_wait",)]


@pytest.mark.parametrize(
    "first", ["UPDATE t SET n = n + 1 WHERE id = 1", "SELECT n FROM t WHERE id = 1 FOR UPDATE"]
)
def test_the_first_statement_of_a_block_runs_again(server: ServerProcess, first: str) -> None:
    client = server.connect()
    client.run("BEGIN")
    holder = Holder(server.connect(), 0.15)
    client.run("SET LOCAL application_name = 'kept'")
    client.run(first)
    assert client.run("SHOW application_name").rows == [("kept",)]
    client.run("COMMIT")
    client.close()
    holder.join()


def test_a_statement_by_itself_runs_again(server: ServerProcess) -> None:
    [[before]] = server.sql("SELECT n FROM t WHERE id = 1")
    holder = Holder(server.connect(), 0.15)
    server.sql("UPDATE t SET n = n + 1 WHERE id = 1")
    holder.join()
    assert server.sql("SELECT n FROM t WHERE id = 1") == [(str(int(str(before)) + 2),)]


@pytest.mark.parametrize(
    "before",
    ["SELECT n FROM t WHERE id = 2", "LOCK TABLE t IN ROW SHARE MODE", "DECLARE c CURSOR FOR SELECT 1"],
)
def test_later_statements_do_not(server: ServerProcess, before: str) -> None:
    client = server.connect()
    client.run("BEGIN")
    client.run(before)
    holder = Holder(server.connect(), 0.15)
    with pytest.raises(ServerError) as caught:
        client.run("UPDATE t SET n = n + 1 WHERE id = 1")
    assert caught.value.sqlstate == "40P01"
    client.run("ROLLBACK")
    client.close()
    holder.join()


def test_there_is_an_end_to_trying(server: ServerProcess) -> None:
    holder = Holder(server.connect(), 60)
    begun = time.monotonic()
    with pytest.raises(ServerError) as caught:
        server.sql("UPDATE t SET n = n + 1 WHERE id = 1")
    assert caught.value.sqlstate == "40P01"
    assert time.monotonic() - begun < 30  # the pauses between the tries are bounded: 3 s at most
    holder.end()
