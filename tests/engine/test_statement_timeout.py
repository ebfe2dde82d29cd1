"""statement_timeout and cancel while a statement is planned: a long one is planned beside others, and its waiting can end."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from engine.plans.planning import LONG_TEXT
from pgwire.give_way import give_way
from planner.base.errors import SqlError
from tests.hostile.talk import bind, execute, frame, parse
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.fields import connect
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("planning"))
    yield running
    assert running.stop() == 0


ROWS = ",".join(f"({i}, 'row {i}')" for i in range(30_000))
LONG = f"INSERT INTO long VALUES {ROWS}"
SHORT = "SELECT count(*) FROM " + ", ".join(f"long l{i}" for i in range(40))
"""Short to read and long to plan: the rest of it is 40 joins."""
SHORT += " WHERE " + " AND ".join(f"l{i}.a = l{i + 1}.a" for i in range(39))


@pytest.mark.parametrize("sql", [LONG, SHORT])
@pytest.mark.parametrize("extended", [False, True])
def test_planning_ends_with_the_timeout(server: ServerProcess, sql: str, extended: bool) -> None:
    """The connection with the timeout runs nothing else: within a millisecond, even SET may not end."""
    with (
        psycopg.connect(server.url, autocommit=True) as c,
        psycopg.connect(server.url, autocommit=True, options="-c statement_timeout=1") as hasty,
    ):
        c.execute("CREATE TABLE IF NOT EXISTS long (a int, b text)")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            hasty.execute(sql, prepare=extended)
        assert c.execute("SELECT count(*) FROM long").fetchone() == (0,)
        assert c.execute(SHORT, prepare=extended).fetchone() == (0,)


def test_a_cancel_ends_planning(server: ServerProcess) -> None:
    """Others are answered while it is planned, the one that cancels among them."""
    with (
        psycopg.connect(server.url, autocommit=True) as c,
        psycopg.connect(server.url, autocommit=True) as other,
    ):
        c.execute("CREATE TABLE IF NOT EXISTS long (a int, b text)")
        outcome: list[str | None] = []

        def run() -> None:
            try:
                c.execute(f"INSERT INTO long VALUES {ROWS},{ROWS},{ROWS}")
            except psycopg.Error as error:
                outcome.append(error.sqlstate)

        thread = threading.Thread(target=run)
        thread.start()
        active = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
        while other.execute(active, (c.info.backend_pid,)).fetchone() is None:
            time.sleep(0.001)
        other.execute("SELECT pg_cancel_backend(%s)", (c.info.backend_pid,))
        thread.join()
        assert outcome == ["57014"]
        assert other.execute("SELECT count(*) FROM long").fetchone() == (0,)


@pytest.mark.parametrize("place", ["engine.connection.simple", "engine.connection.prepared"])
def test_a_thread_that_nobody_waits_for_ends(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read in a thread (a long statement, what PREPARE prepares) is not read to its end once it is cancelled."""
    begun, ended = threading.Event(), threading.Event()

    def never(text: str) -> None:
        begun.set()
        until = time.monotonic() + 25
        try:
            while time.monotonic() < until:
                give_way()
                time.sleep(0.001)
        except SqlError:
            ended.set()
            raise

    async def body() -> None:
        session = Session(await open_database(MemoryDisk()), 1)
        monkeypatch.setattr(f"{place}.parse", never)
        running = asyncio.get_running_loop().create_task(
            session.run(f"PREPARE p AS SELECT '{'x' * LONG_TEXT}'")
        )
        assert await asyncio.to_thread(begun.wait, 60)
        session.connection.cancel()
        with pytest.raises(Failed, match="57014"):
            await running
        assert await asyncio.to_thread(ended.wait, 20)

    run(body)


@pytest.mark.parametrize("behind", [[], [parse("SELECT 1"), bind(), execute()], [frame(b"H")] * 3])
def test_a_cancelled_statement_has_ended_though_its_client_reads_nothing(
    server: ServerProcess, behind: list[bytes]
) -> None:
    """What follows it in its batch is passed over meanwhile, up to Sync."""
    client, watcher = connect(server.port), connect(server.port)
    sql = "SELECT repeat('x', 100000) FROM generate_series(1, 1000)"
    client.send_raw(b"".join([parse(sql), bind(), execute(), *behind, frame(b"S")]))
    active = f"SELECT 1 FROM pg_stat_activity WHERE pid = {client.key[0]} AND state = 'active'"
    client._socket.recv(1, socket.MSG_PEEK)
    time.sleep(0.3)  # all that it may send before somebody reads is on its way
    assert watcher.run(active).rows
    client.cancel()
    until = time.monotonic() + 20
    while watcher.run(active).rows:
        assert time.monotonic() < until
        time.sleep(0.01)
    kinds = [kind for kind, _body in client.until_ready() if kind != b"D"]
    assert kinds == [b"1", b"2", b"E", b"Z"]
    client.close()
    watcher.close()
