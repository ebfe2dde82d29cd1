"""CREATE INDEX on a table of 300,000 rows while connections write: nobody waits for the build, and the index is right."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest

from sqllogictest.client import Client, ServerError
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk

ROWS = 300_000
WRITERS = 3
BUILDS = 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("online") / "data")
    client = running.connect(timeout_s=120)
    client.run("CREATE TABLE t (id int PRIMARY KEY, v int, s text)")
    client.run(f"INSERT INTO t SELECT i, i, 'x' || i FROM generate_series(1, {ROWS}) i")
    client.close()
    yield running
    assert running.stop() == 0


class Writers:
    """Connections that update, insert and delete single rows until told to stop; how long each statement took."""

    used = 0  # no id more than this above ROWS has been inserted

    def __init__(self, server: ServerProcess) -> None:
        self._stop = threading.Event()
        self._server = server
        self.started = threading.Barrier(WRITERS + 1)
        self.took_s: list[tuple[float, float]] = []  # (when it began, seconds)
        self.errors: list[ServerError] = []
        self._highest: list[int] = []
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(WRITERS)]
        for thread in self._threads:
            thread.start()
        self.started.wait()

    def _run(self, number: int) -> None:
        rng = random.Random(number)
        client = self._server.connect()
        self.started.wait()
        fresh = ROWS + 1 + number + Writers.used
        while not self._stop.is_set():
            k = rng.randrange(1, ROWS)
            choice = rng.random()
            if choice < 0.7:
                sql = f"UPDATE t SET v = v + {ROWS * 2}, s = s || 'y' WHERE id = {k}"
            elif choice < 0.85:
                sql = f"INSERT INTO t VALUES ({fresh}, {-fresh}, 'n{fresh}')"
                fresh += WRITERS
            else:
                sql = f"DELETE FROM t WHERE id = {k}"
            began = time.monotonic()
            try:
                client.run(sql)
            except ServerError as error:
                self.errors.append(error)
            self.took_s.append((began, time.monotonic() - began))
        client.close()
        self._highest.append(fresh)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        Writers.used = max(self._highest) - ROWS

    def longest_s(self, start: float, end: float) -> float:
        return max(took for began, took in self.took_s if start - 1 <= began <= end)

    def answered(self, start: float, end: float) -> int:
        return sum(start <= began and began + took <= end for began, took in self.took_s)


@pytest.mark.parametrize(
    ("statement", "undo", "where"),
    [
        ("CREATE INDEX CONCURRENTLY t_v ON t (v)", "DROP INDEX t_v", "v > -2000000"),
        ("CREATE UNIQUE INDEX t_s ON t (s)", "DROP INDEX t_s", "s >= ''"),
        (
            "ALTER TABLE t ADD CONSTRAINT t_both UNIQUE (s, v)",
            "ALTER TABLE t DROP CONSTRAINT t_both",
            "s >= ''",
        ),
    ],
)
def test_others_write_while_the_index_is_built(
    server: ServerProcess, statement: str, undo: str, where: str
) -> None:
    client = server.connect(timeout_s=120)
    writers = Writers(server)
    phases: set[str] = set()
    watching = threading.Event()

    def watch() -> None:
        eye = server.connect()
        while not watching.is_set():
            rows = eye.run("SELECT phase FROM pg_stat_progress_create_index WHERE relid = 't'::regclass").rows
            phases.update(str(phase) for (phase,) in rows)
            time.sleep(0.002)  # who reads without a pause takes the writers' time
        eye.close()

    watcher = threading.Thread(target=watch)
    watcher.start()
    apart = False
    try:
        for attempt in range(BUILDS):
            if attempt:
                client.run(undo)
            time.sleep(0.3)
            start = time.monotonic()
            client.run(statement)
            end = time.monotonic()
            # With the table locked nobody would be answered before the end, and somebody would wait for nearly all of it. On
            # a busy machine it can look so, too, but not every time.
            wrote = writers.answered(start, end) > 2 * WRITERS
            apart = wrote and writers.longest_s(start, end) < max(0.6 * (end - start), 0.1)
            if apart:
                break
    finally:
        watching.set()
        watcher.join()
        writers.stop()
    assert apart, f"nobody wrote during any of {BUILDS} builds"
    assert not writers.errors
    assert phases, "the build was not to be seen in pg_stat_progress_create_index"
    client.run("SET executor = 'index'")
    plan = "\n".join(str(line) for (line,) in client.run(f"EXPLAIN SELECT * FROM t WHERE {where}").rows)
    assert "Index" in plan or "index" in plan, plan
    digest = "SELECT count(*), sum(id), sum(v::bigint * (id % 1009)), sum(length(s)), min(s), max(s) FROM t"
    through = client.run(f"{digest} WHERE {where}").rows
    client.run("SET executor = 'local'")
    assert through == client.run(digest).rows
    client.close()


def test_a_unique_index_over_duplicates_is_refused_and_leaves_nothing_that_is_kept() -> None:
    async def go() -> None:
        database = await open_database(MemoryDisk())
        client = Session(database, 1)
        await client.run("CREATE TABLE d (id int PRIMARY KEY, a int, b text)")
        await client.run("INSERT INTO d VALUES (1, 7, 'q'), (2, 7, 'q')")
        for flushed in (False, True):
            if flushed:
                await client.run("CHECKPOINT")
            for statement, name in (
                ("CREATE UNIQUE INDEX CONCURRENTLY d_ab ON d (a, b)", "d_ab"),
                ("CREATE UNIQUE INDEX d_ab ON d (a, b)", "d_ab"),
                ("ALTER TABLE d ADD UNIQUE (a, b)", "d_a_b_key"),
            ):
                with pytest.raises(Failed) as caught:
                    await client.run(statement)
                report = caught.value.report
                assert (report.sqlstate, report.message) == (
                    "23505",
                    f'could not create unique index "{name}"',
                )
                assert report.detail == "Key (a, b)=(7, q) is duplicated."
                assert (report.table, report.constraint) == ("d", name)
                if "CONCURRENTLY" in statement:
                    await client.run("DROP INDEX d_ab")  # left behind, not built
        # in a block that removes the duplicate first it works
        await client.run("BEGIN")
        await client.run("DELETE FROM d WHERE id = 2")
        await client.run("CREATE UNIQUE INDEX d_ab ON d (a, b)")
        await client.run("COMMIT")
        indexes = await client.run("SELECT indexname FROM pg_indexes WHERE tablename = 'd' ORDER BY 1")
        assert indexes == [("d_ab",), ("d_pkey",)]
        assert not database.store.core.builds
        database.store.validate()
        await database.close()

    run(go)


def _held(client: Client) -> int:
    return int(str(client.run("SELECT count(*) FROM holdfast_holds WHERE holder = 'snapshot'").rows[0][0]))


def test_a_build_can_be_cancelled(server: ServerProcess) -> None:
    client, other = server.connect(), server.connect()
    client.run("SET statement_timeout = 50")
    for unique in ("", "UNIQUE "):
        with pytest.raises(ServerError) as caught:
            client.run(f"CREATE {unique}INDEX CONCURRENTLY t_gone ON t (s, id, v)")
        assert caught.value.sqlstate == "57014"
        assert other.run("SELECT * FROM pg_stat_progress_create_index").rows == []
        assert _held(other) == 0
        left = "SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 't_gone'::regclass"
        assert other.run(left).rows == [("f", "f")]
        other.run("DROP INDEX t_gone")
    client.run("SET statement_timeout = 0")
    client.run("CREATE INDEX CONCURRENTLY t_gone ON t (s, id, v)")
    client.run("DROP INDEX CONCURRENTLY t_gone")
    client.close()
    other.close()


def test_a_long_writer_holds_up_the_index_but_not_the_others(server: ServerProcess) -> None:
    """The lock for the last step is asked for again and again, so that others get in between."""
    holder, builder, other = server.connect(), server.connect(), server.connect()
    builder.run("CREATE TABLE small (id int PRIMARY KEY, v int)")
    builder.run("INSERT INTO small VALUES (1, 1), (2, 2)")
    holder.run("BEGIN")
    holder.run("UPDATE small SET v = 10 WHERE id = 1")
    thread = threading.Thread(target=builder.run, args=("CREATE INDEX CONCURRENTLY small_v ON small (v)",))

    def update() -> float:
        began = time.monotonic()
        other.run("UPDATE small SET v = v + 1 WHERE id = 2")
        return time.monotonic() - began

    alone_s = max(update() for _ in range(50))  # how slow this machine may be
    thread.start()
    deadline = time.monotonic() + 3.5
    longest_s, count = 0.0, 0
    while time.monotonic() < deadline or count <= 100:
        longest_s, count = max(longest_s, update()), count + 1
    assert thread.is_alive()
    assert longest_s < 1.5 + 10 * alone_s, "nobody waits longer than one try lasts"
    holder.run("COMMIT")
    thread.join(10)
    assert not thread.is_alive()
    assert len(other.run("SELECT id FROM small WHERE v > 0").rows) == 2
    for client in (holder, builder, other):
        client.close()
