"""Servers that stand by for each other over PostgreSQL, as processes: killed, stopped and resumed, cut off."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import fresh_schema, postgres, url_of  # noqa: F401 - a fixture
from tests.support.server import ServerProcess

# Long enough for a busy machine not to depose a leader by itself.
LEASE_MS = 4000


class Cluster:
    """Servers over one consensus schema and one blob directory."""

    def __init__(self, url: str, folder: Path, lease_ms: int = LEASE_MS) -> None:
        self.url, self.folder, self.lease_ms = url, folder, lease_ms
        self.schema = fresh_schema()
        self.running: list[ServerProcess] = []
        self._count = 0

    def options(self) -> list[str]:
        return [
            "--consensus", self.url, "--consensus-schema", self.schema, "--blob", str(self.folder / "blob"),
            "--lease-ms", str(self.lease_ms), "--flush-rows", "500",
        ]  # fmt: skip

    def start(self, *more: str, wait: bool = True) -> ServerProcess:
        self._count += 1
        server = ServerProcess(self.folder / f"server{self._count}", *self.options(), *more, wait=wait)
        self.running.append(server)
        return server

    def standby(self, *more: str) -> ServerProcess:
        server = self.start("--standby", *more, wait=False)
        deadline = time.monotonic() + 120
        while b"waiting for the lease" not in _stdout_so_far(server):
            assert time.monotonic() < deadline, "the standby does not say that it waits"
            time.sleep(0.05)
        return server

    def end(self) -> None:
        for server in self.running:
            if server.process.poll() is None:
                print(server.log())  # pytest shows it where a test has failed
                server.resume()
                server.kill()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {self.schema} CASCADE")  # type: ignore[arg-type]


def _stdout_so_far(server: ServerProcess) -> bytes:
    """Return what can be read from a server's output without waiting for more."""
    output = server.process.stdout
    assert output is not None
    os.set_blocking(output.fileno(), False)
    try:
        seen = os.read(output.fileno(), 1 << 16)
    except BlockingIOError:
        seen = b""
    finally:
        os.set_blocking(output.fileno(), True)
    return seen


@pytest.fixture
def cluster(postgres: str, tmp_path: Path) -> Iterator[Cluster]:  # noqa: F811
    made = Cluster(url_of(postgres), tmp_path)
    yield made
    made.end()


class Asked:
    """A question on its way to a server that may answer later, or never."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self.answer: object = None
        self.error: Exception | None = None
        self._ask = ask
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.answer = self._ask()
        except Exception as error:
            self.error = error

    def done(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


def _connect(server: ServerProcess) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        server.url, autocommit=True, prepare_threshold=0, connect_timeout=10, sslmode="disable"
    )


def _questions(server: ServerProcess, number: int) -> dict[str, Callable[[], object]]:
    """Return every kind of question, ready to be asked on a connection of its own that has asked it before."""
    found: dict[str, Callable[[], object]] = {}

    def add(name: str, text: str, *params: object, begin: int = 0, simple: bool = False) -> None:
        connection = _connect(server)
        if begin:
            connection.execute("BEGIN")
            connection.execute("UPDATE round SET value = value WHERE id = %s", (begin,))

        def ask() -> object:
            if simple:
                cursor = psycopg.ClientCursor(connection)
                return cursor.execute(text, params).fetchall()
            return connection.execute(text, params, prepare=True).fetchall()  # type: ignore[arg-type]

        if text.startswith("SELECT"):
            for _ in range(3):
                assert ask() == [(number,)]
        found[name] = ask

    add("point read, simple", "SELECT value FROM round WHERE id = 1", simple=True)
    add("point read, prepared", "SELECT value FROM round WHERE id = %s", 1)
    add("scan", "SELECT max(value) FROM round")
    add("read in a writing transaction", "SELECT value FROM round WHERE id = 1", begin=2)
    add("insert of a row", "INSERT INTO round VALUES (%s, 0) RETURNING id", 1000 + number)
    add("insert of a duplicate", "INSERT INTO round VALUES (1, 0)", simple=True)
    add("update", "UPDATE round SET value = -1 WHERE id = 1 RETURNING value")
    add("commit", "COMMIT", begin=3)
    held = _connect(server)
    held.execute("BEGIN")
    held.execute("DECLARE c CURSOR FOR SELECT value FROM round WHERE id = 1")
    found["ddl"] = lambda: _connect_and_create(held)
    return found


def _waiting(server: ServerProcess) -> tuple[dict[str, Asked], list[psycopg.Connection[tuple[object, ...]]]]:
    """Return questions that wait already, and the connections whose end lets them go on."""
    advisory, row = _connect(server), _connect(server)
    advisory.execute("SELECT pg_advisory_lock(7)")
    row.execute("BEGIN")
    row.execute("UPDATE held SET value = value")
    asked: dict[str, Asked] = {}
    for name, text in (
        ("advisory lock, waiting", "SELECT pg_advisory_lock(7)"),
        ("for update, waiting", "SELECT value FROM held FOR UPDATE"),
        ("sleep", "SELECT pg_sleep(1)"),
    ):
        connection = _connect(server)
        asked[name] = Asked(lambda c=connection, t=text: c.execute(t).fetchall())  # type: ignore[misc]
    with _connect(server) as client:
        while client.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchall() != [(2,)]:
            time.sleep(0.02)
    return asked, [advisory, row]


def _connect_and_create(connection: psycopg.Connection[tuple[object, ...]]) -> object:
    connection.execute("CREATE TABLE from_the_grave (a int)")
    connection.execute("COMMIT")
    return "created"


def stall_and_resume(cluster: Cluster, rounds: int) -> None:
    leader = cluster.start()
    with _connect(leader) as client:
        client.execute("CREATE TABLE round (id int PRIMARY KEY, value int)")
        client.execute("INSERT INTO round VALUES (1, 0), (2, 0), (3, 0)")
        client.execute("CREATE TABLE held (value int)")
        client.execute("INSERT INTO held VALUES (0)")
    for number in range(rounds):
        standby = cluster.standby()
        questions = _questions(leader, number)
        waiting, holders = _waiting(leader)
        leader.pause()
        for holder in holders:
            holder.close()  # the leader sees that when it goes on, and lets who waits have the lock
        standby.wait_ready()
        with _connect(standby) as client:
            assert client.execute("SELECT pg_try_advisory_lock(7)").fetchall() == [(True,)]
            assert client.execute("SELECT value FROM round WHERE id = 1").fetchall() == [(number,)]
            client.execute("UPDATE round SET value = %s WHERE id = 1", (number + 1,))
            client.execute("DELETE FROM round WHERE id = 1")
            client.execute("INSERT INTO round VALUES (1, %s)", (number + 1,))
        asked = waiting | {name: Asked(ask) for name, ask in questions.items()}
        time.sleep(0.1)
        leader.resume()
        for name, question in asked.items():
            assert question.done(20), f"{name}: no end"
            assert question.error is not None, f"{name} was answered by a deposed leader: {question.answer}"
            sqlstate = getattr(question.error, "sqlstate", None)
            # 57P01 or a closed connection; a commit may also find out in the log itself
            assert sqlstate in ("57P01", "08006", None), f"{name}: {sqlstate} {question.error}"
        code, said = leader.wait_end()
        assert code == 1
        assert "superseded" in said
        with _connect(standby) as client:
            assert client.execute("SELECT id, value FROM round ORDER BY id").fetchall() == [
                (1, number + 1),
                (2, 0),
                (3, 0),
            ]
            assert client.execute(
                "SELECT count(*) FROM pg_class WHERE relname = 'from_the_grave'"
            ).fetchall() == [(0,)]
        leader = standby
        print(f"round {number + 1}: every question refused, the old leader has ended", flush=True)


def test_a_resumed_old_leader_neither_answers_nor_writes(cluster: Cluster) -> None:
    stall_and_resume(cluster, 2)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_resumed_old_leader_neither_answers_nor_writes_many_times(cluster: Cluster) -> None:
    stall_and_resume(cluster, 40)


def test_a_standby_takes_over_what_a_killed_leader_acknowledged(cluster: Cluster) -> None:
    leader = cluster.start()
    with _connect(leader) as client:
        client.execute("CREATE TABLE counted (id int PRIMARY KEY, big text)")
    standby = cluster.standby()
    acknowledged: list[int] = []

    def write() -> None:
        client = _connect(leader)
        rows = "INSERT INTO counted SELECT %s * 50 + i, repeat('x', 50) FROM generate_series(1, 50) AS g (i)"
        for number in range(100_000):
            client.execute(rows, (number,))
            acknowledged.append(number)

    writer = Asked(write)
    deadline = time.monotonic() + 20
    while len(acknowledged) < 40 and time.monotonic() < deadline:  # 2000 rows: parts and manifests are there
        time.sleep(0.01)
    leader.kill()
    assert writer.done(10)
    standby.wait_ready()
    with _connect(standby) as client:
        present = [row[0] for row in client.execute("SELECT id FROM counted ORDER BY id").fetchall()]
        assert len(acknowledged) >= 40
        assert len(present) in (50 * len(acknowledged), 50 * len(acknowledged) + 50)
        assert present == list(range(1, len(present) + 1))
        client.execute("INSERT INTO counted VALUES (-1, 'after')")
    assert standby.stop() == 0


@pytest.mark.long
def test_a_leader_that_ends_cleanly_is_not_waited_for(postgres: str, tmp_path: Path) -> None:  # noqa: F811
    cluster = Cluster(url_of(postgres), tmp_path, lease_ms=60_000)
    try:
        leader = cluster.start()
        with _connect(leader) as client:
            client.execute("CREATE TABLE kept (a int)")
        standby, other = cluster.standby(), cluster.standby()
        other.process.terminate()
        assert other.wait_end()[0] == 0  # a standby that is told to end ends
        assert leader.stop() == 0
        ended = time.monotonic()
        standby.wait_ready()
        assert time.monotonic() - ended < 30  # of 60
        with _connect(standby) as client:
            assert client.execute("SELECT count(*) FROM kept").fetchall() == [(0,)]
    finally:
        cluster.end()


class Cable:
    """A TCP relay in threads that can be held: bytes wait until it is released."""

    def __init__(self, url: str) -> None:
        head, _, tail = url.rpartition("@")
        address, _, name = tail.partition("/")
        host, _, port = address.partition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{head}@127.0.0.1:{self._listener.getsockname()[1]}/{name}"
        self.free = threading.Event()
        self.free.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self.free.wait()
                sink.sendall(data)
        except OSError:
            pass
        finally:
            source.close()
            sink.close()

    def close(self) -> None:
        self.free.set()
        self._listener.close()


@pytest.mark.long
def test_a_leader_cut_off_from_the_consensus_answers_again_when_it_is_back(cluster: Cluster) -> None:
    cable = Cable(cluster.url)
    plain, cluster.url = cluster.url, cable.url
    try:
        leader = cluster.start()
        client = _connect(leader)
        client.execute("CREATE TABLE cut (a int PRIMARY KEY)")
        client.execute("INSERT INTO cut VALUES (1)")
        point = "SELECT a FROM cut WHERE a = %s"
        for _ in range(3):
            assert client.execute(point, (1,)).fetchall() == [(1,)]
        client.execute("SET statement_timeout = '300ms'")
        cable.free.clear()
        time.sleep(1.2 * LEASE_MS / 1000)
        for text, params in ((point, (1,)), ("SELECT count(*) FROM cut", ())):
            with pytest.raises(psycopg.errors.QueryCanceled):
                client.execute(text, params)  # type: ignore[arg-type]
        client.execute("SET statement_timeout = 0")
        waiting = Asked(lambda: client.execute(point, (1,)).fetchall())
        other = _connect(leader)
        writing = Asked(lambda: other.execute("INSERT INTO cut VALUES (2)"))
        assert not waiting.done(1)
        assert not writing.done(0.1)
        cable.free.set()
        assert waiting.done(20)
        assert waiting.answer == [(1,)]
        assert writing.done(20)
        assert writing.error is None
        assert client.execute("SELECT count(*) FROM cut").fetchall() == [(2,)]
        client.close()
        other.close()
        assert leader.stop() == 0
    finally:
        cluster.url = plain
        cable.close()


@pytest.mark.long
def test_a_second_leader_is_refused_and_told_who_leads(cluster: Cluster) -> None:
    leader = cluster.start()
    done = subprocess.run(
        [sys.executable, "-m", "engine", "serve", "--port", "0", "--spark-start", "off", "--log-level", "debug",
         "--data-dir", str(cluster.folder / "second"), *cluster.options()],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"another server leads: pid {leader.process.pid} " in done.stderr
    assert leader.sql("SELECT 1") == [("1",)]
    assert leader.stop() == 0


@pytest.mark.long
def test_a_resumed_old_leader_whose_files_its_successor_removed_says_that_it_was_deposed(
    cluster: Cluster,
) -> None:
    """Whatever it touches is gone: that is no bug and no damage, but 57P01, or the old snapshot's own answer."""
    leader = cluster.start("--history-retention", "0")
    rows = 6000
    with _connect(leader) as client:
        for name in ("scanned", "keyed", "loaded"):
            client.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, value text)")
            client.execute(
                f"INSERT INTO {name} SELECT i, repeat('x', 40) FROM generate_series(1, {rows}) AS g (i)"
            )
        client.execute("CHECKPOINT")
    standby = cluster.standby("--history-retention", "0")
    questions: dict[str, Callable[[], object]] = {}

    def add(name: str, text: str, *before: str) -> None:
        connection = _connect(leader)
        for statement in before:
            connection.execute(statement)
        questions[name] = lambda: (
            connection.execute(text).fetchall()
            if text.startswith(("SELECT", "FETCH"))
            else connection.execute(text)
        )

    old = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SELECT 1 FROM pg_class LIMIT 1")
    for executor in ("index", "local"):
        add(f"scan, {executor}", "SELECT count(value) FROM scanned", f"SET executor = '{executor}'")
        add(f"scan of an old snapshot, {executor}", "SELECT count(value) FROM scanned", f"SET executor = '{executor}'",
            *old)  # fmt: skip
    add("keys of an old snapshot", "SELECT value FROM keyed WHERE id IN (3, 5000)", *old)
    add("cursor", "FETCH ALL FROM c", "BEGIN", "DECLARE c CURSOR FOR SELECT * FROM scanned")
    add("update of many", "UPDATE keyed SET value = 'y' WHERE id > 10")
    add("index", "CREATE INDEX keyed_value ON keyed (value)")
    add("load", "INSERT INTO loaded SELECT i + 100000, 'z' FROM generate_series(1, 25000) AS g (i)")
    add("checkpoint", "CHECKPOINT", "INSERT INTO loaded VALUES (-1, 'late')")
    leader.pause()
    standby.wait_ready()
    with _connect(standby) as client:
        for name in ("scanned", "keyed", "loaded"):
            client.execute(f"TRUNCATE {name}")
        client.execute("CHECKPOINT")
        deadline = time.monotonic() + 60
        (oids,) = client.execute(
            "SELECT array_agg(oid::text) FROM pg_class WHERE relname IN ('scanned', 'keyed', 'loaded')"
        )
        folders = [cluster.folder / "blob" / oid for oid in oids[0]]  # type: ignore[union-attr]
        while any(list(folder.glob("1-*.parquet")) for folder in folders):  # of the first epoch
            assert time.monotonic() < deadline, "the successor keeps its predecessor's parts"
            client.execute("CHECKPOINT")
            time.sleep(0.1)
    asked = {name: Asked(ask) for name, ask in questions.items()}
    time.sleep(0.1)
    leader.resume()
    for name, question in asked.items():
        assert question.done(30), f"{name}: no end"
        if question.error is None:
            assert "snapshot" in name, f"{name} was answered by a deposed leader"
            assert question.answer in ([(rows,)], [("x" * 40,)] * 2), name
            continue
        sqlstate = getattr(question.error, "sqlstate", None)
        assert sqlstate in ("57P01", "08006", None), f"{name}: {sqlstate} {question.error}"
    code, said = leader.wait_end()
    assert code == 1
    assert "superseded" in said
    assert "Traceback" not in said, said
    with _connect(standby) as client:
        for name in ("scanned", "keyed", "loaded"):
            assert client.execute(f"SELECT count(*) FROM {name}").fetchall() == [(0,)]  # type: ignore[arg-type]
