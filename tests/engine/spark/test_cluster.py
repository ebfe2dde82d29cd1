"""Queries, bulk loads, cancelling, and the death of a worker on a standalone cluster: one master, two workers.

The cluster, and the one server that uses it, live as long as this module: starting them takes half a minute on a quiet
machine.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqllogictest.client import Client, ServerError
from tests.support.objects import ObjectStoreServer
from tests.support.server import ServerProcess
from tests.support.spark_cluster import Daemon, SparkCluster, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3000)]  # the machine may be busy
TIMEOUT_S = 1500.0
ROWS = 40_000
TRIES = 20
"""Of catching a worker in the middle of what takes a moment."""
# Tasks of seconds to minutes in both executors: every row of t makes thousands.
# ``SUM`` is what one row's make, in closed form: 4000 is 571 times 7, and 3.
SUM = "CASE WHEN k % 7 = 0 THEN 0 ELSE 571 * 21 + k % 7 + (k * 2) % 7 + (k * 3) % 7 END"
HEAVY = "SELECT count(*), sum((a.k * b.i) % 7) FROM t AS a CROSS JOIN generate_series(1, {times}) AS b(i)"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def server(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(
        tmp_path_factory.mktemp("on-cluster") / "data",
        *cluster.options,
        "--spark-start",
        "background",
        "--memory",
        "1GB",
        "--merge-spark-min-bytes",
        "1",
    )
    client = running.connect(TIMEOUT_S)
    client.run("CREATE TABLE t (k bigint PRIMARY KEY, g int, v text)")
    client.run(f"INSERT INTO t SELECT i, i % 97, 'text ' || i % 1000 FROM generate_series(1, {ROWS}) AS i")
    client.run("CHECKPOINT")
    client.run("UPDATE t SET v = 'changed' WHERE k % 3 = 0")  # more hot rows than travel in a plan
    client.close()
    yield running
    assert running.stop() == 0


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    connection = server.connect(TIMEOUT_S)
    connection.run("SET executor = spark")
    yield connection
    connection.close()


def local(server: ServerProcess, sql: str) -> list[tuple[str | None, ...]]:
    """Return the answer of the server's own executor."""
    connection = server.connect(TIMEOUT_S)
    connection.run("SET executor = local")
    rows = connection.run(sql).rows
    connection.close()
    return rows


def wait_until(what: str, done: object) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not done():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


class Running:
    """A statement in a thread."""

    def __init__(self, server: ServerProcess, sql: str, *settings: str) -> None:
        self.client = server.connect(TIMEOUT_S)
        for setting in ("SET executor = spark", *settings):
            self.client.run(setting)
        self.rows: list[tuple[str | None, ...]] | None = None
        self.error: BaseException | None = None
        self._sql = sql
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.rows = self.client.run(self._sql).rows
        except BaseException as error:
            self.error = error
        finally:
            self.client.close()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> list[tuple[str | None, ...]]:
        self._thread.join(TIMEOUT_S)
        assert not self.alive
        if self.error is not None:
            raise self.error
        assert self.rows is not None
        return self.rows


QUERIES = (
    "SELECT count(*), sum(k), min(v), max(v) FROM t",
    "SELECT g, count(*), avg(k) FROM t GROUP BY g ORDER BY g",
    "SELECT a.g, count(DISTINCT b.v) FROM t AS a JOIN t AS b ON a.k = b.k + 1 WHERE a.g < 9 GROUP BY a.g ORDER BY 1",
    "SELECT k, rank() OVER (PARTITION BY g ORDER BY k DESC) FROM t WHERE k % 501 = 0 ORDER BY k",
    "SELECT v FROM t WHERE k IN (SELECT max(k) FROM t GROUP BY g) ORDER BY k LIMIT 20",
    "SELECT g::numeric / 7, round(avg(k), 5) FROM t GROUP BY g HAVING count(*) > 412 ORDER BY 1",
)


@pytest.mark.parametrize("sql", QUERIES)
def test_answers_are_those_of_the_local_executor(client: Client, server: ServerProcess, sql: str) -> None:
    assert client.run(sql).rows == local(server, sql)


def test_both_workers_compute(client: Client, cluster: SparkCluster) -> None:
    client.run(HEAVY.format(times=20))
    assert all(tasks_of(worker, cluster) for worker in cluster.workers)


def test_executors_write_the_parts_of_a_load(client: Client, server: ServerProcess) -> None:
    client.run("CREATE TABLE loaded (k bigint PRIMARY KEY, g int, v text)")
    client.run("INSERT INTO loaded SELECT k + 1000000, g, v FROM t")
    client.run("CREATE TABLE made AS SELECT k, v FROM loaded WHERE g < 50")
    expected = local(server, "SELECT count(*), sum(k + 1000000), count(DISTINCT v) FROM t")
    assert local(server, "SELECT count(*), sum(k), count(DISTINCT v) FROM loaded") == expected
    assert local(server, "SELECT count(*) FROM made") == local(server, "SELECT count(*) FROM t WHERE g < 50")


def test_cancelling_frees_the_executors(client: Client, server: ServerProcess) -> None:
    running = Running(server, HEAVY.format(times=1_000_000), "SET statement_timeout = '20s'")
    with pytest.raises(ServerError) as caught:
        running.result()
    assert caught.value.sqlstate == "57014"
    # It would have the only core of each worker for hours.
    assert client.run("SELECT count(*) FROM t").rows == [(str(ROWS),)]


def tasks_of(worker: Daemon, cluster: SparkCluster) -> int:
    """Return how many tasks the executors of a worker have begun, by their logs."""
    number = cluster.workers.index(worker) + 1
    logs = (cluster.folder / f"work{number}").glob("app-*/*/stderr")
    return sum(len(re.findall(r"Running task", log.read_text(errors="replace"))) for log in logs)


def kill_in_the_middle(
    server: ServerProcess, cluster: SparkCluster, sql: str
) -> list[tuple[str | None, ...]]:
    """Run a query; kill a worker with its executor when it has begun a task of it; return the answer."""
    victim = next(worker for worker in cluster.workers if worker.process.poll() is None)
    before = tasks_of(victim, cluster)
    running = Running(server, sql)
    wait_until("no task begins on a worker", lambda: tasks_of(victim, cluster) > before or not running.alive)
    assert running.alive, "the query was over before the worker could be killed"
    victim.kill()
    assert running.alive, "the query was over when the worker was killed"
    answer = running.result()
    cluster.add_worker().wait_for("Successfully registered with master")
    return answer


def test_a_worker_killed_in_the_middle_of_a_query_changes_no_answer(
    server: ServerProcess, cluster: SparkCluster
) -> None:
    expected = local(server, f"SELECT count(*) * 4000, sum({SUM}) FROM t")
    assert kill_in_the_middle(server, cluster, HEAVY.format(times=4000)) == expected


def test_a_worker_killed_in_the_middle_of_a_load_doubles_no_row(
    server: ServerProcess, cluster: SparkCluster
) -> None:
    load = (
        "CREATE TABLE survived AS SELECT a.k, sum((a.k * b.i) % 7) AS s FROM t AS a "
        "CROSS JOIN generate_series(1, 4000) AS b(i) GROUP BY a.k"
    )
    kill_in_the_middle(server, cluster, load)
    assert local(server, "SELECT count(*), count(DISTINCT k) FROM survived") == [(str(ROWS), str(ROWS))]
    assert local(server, f"SELECT count(*) FROM survived WHERE s <> {SUM}") == [("0",)]
    wait_until("what the killed executor had begun stays", lambda: not begun(server))


def begun(server: ServerProcess) -> set[Path]:
    """Return the files that somebody writes, or has left unfinished."""
    return {path for path in (server.data_dir / "blobs" / "tmp").rglob("*") if path.is_file()}


def sidecars(server: ServerProcess, index: str) -> dict[str, bytes]:
    """Return the sidecars of an index, by the part's name."""
    [[oid]] = local(server, f"SELECT '{index}'::regclass::oid")
    found = (server.data_dir / "blobs").glob(f"[0-9]*/*.x{oid}")
    return {path.stem: path.read_bytes() for path in found}


def test_executors_write_an_index_also_when_a_worker_is_killed(
    client: Client, server: ServerProcess, cluster: SparkCluster
) -> None:
    client.run("CREATE TABLE indexed (k bigint PRIMARY KEY, g int, v text)")
    client.run(
        "INSERT INTO indexed SELECT i, i % 97, 'text ' || i % 1000 || '-' || i FROM generate_series(1, 800000) AS i"
    )
    build = "CREATE INDEX there ON indexed (v, g)"
    began = sum(tasks_of(worker, cluster) for worker in cluster.workers)
    client.run(build)
    assert sum(tasks_of(worker, cluster) for worker in cluster.workers) > began
    local(server, "CREATE INDEX here ON indexed (v, g)")
    expected = sidecars(server, "here")
    assert len(expected) > 1
    assert sidecars(server, "there") == expected
    for _ in range(TRIES):
        client.run("DROP INDEX there")
        before = {worker: tasks_of(worker, cluster) for worker in cluster.workers}
        building = Running(server, build)
        wait_until("no worker begins", lambda b=building: begun(server) or not b.alive)  # type: ignore[misc]
        at_work = [worker for worker, tasks in before.items() if tasks_of(worker, cluster) > tasks]
        victim = next((worker for worker in at_work if worker.process.poll() is None), None)
        if victim is not None and begun(server):
            victim.kill()
            cluster.add_worker().wait_for("Successfully registered with master")
            building.result()
            break
        building.result()
    else:
        raise AssertionError("no worker was seen at work")
    assert sidecars(server, "there") == expected
    wait_until("unfinished files stay", lambda: not begun(server))


def test_executors_merge_parts(client: Client, server: ServerProcess) -> None:
    client.run("CREATE TABLE merged (k bigint PRIMARY KEY, v text)")
    for low in range(0, 8000, 1000):  # as hot rows, and a part of each thousand
        local(
            server,
            f"INSERT INTO merged SELECT i, 'text ' || i FROM generate_series({low}, {low + 999}) i",
        )
        client.run("CHECKPOINT")
    [[oid]] = local(server, "SELECT 'merged'::regclass::oid")
    folder = server.data_dir / "blobs" / str(oid)

    def by_a_task() -> list[Path]:
        client.run("CHECKPOINT")
        return [path for path in folder.glob("*.parquet") if path.stem.count("-") == 2]  # epoch, job, task

    wait_until("no worker merges", by_a_task)
    wait_until("the merged parts stay", lambda: len(list(folder.glob("*.parquet"))) == 1)
    assert local(server, "SELECT count(*), sum(k) FROM merged") == [("8000", str(sum(range(8000))))]
    wait_until("unfinished files stay", lambda: not begun(server))


def test_a_store_that_this_spark_cannot_read_is_refused(
    cluster: SparkCluster, object_store: ObjectStoreServer, tmp_path: Path
) -> None:
    store = ("--blob", object_store.url(object_store.new_bucket()))
    other = ServerProcess(
        tmp_path / "other", *cluster.options, *store, "--spark-start", "lazy", "--memory", "1GB"
    )
    client = other.connect(TIMEOUT_S)
    client.run("CREATE TABLE t (k int)")
    client.run("INSERT INTO t SELECT generate_series(1, 20000)")
    client.run("CHECKPOINT")
    client.run("SET executor = spark")
    for _ in range(2):  # when the driver has started, and when it is known
        with pytest.raises(ServerError, match="has no file system for s3a://") as caught:
            client.run("SELECT count(*) FROM t")
        assert caught.value.sqlstate == "0A000"
    client.run("RESET executor")
    assert client.run("SELECT count(*) FROM t").rows == [("20000",)]
    client.close()
    assert other.stop() == 0
