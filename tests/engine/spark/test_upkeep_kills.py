"""Index builds and merges on Spark, ended in the middle by kill -9: of the JVM, then of the server. Nothing wrong, nothing left.

"In the middle" is when a worker of Spark has a file of the job open: what it writes lies in the job's folder below ``blobs/tmp``.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.changes.bulk.spark_merge import PAUSE_S
from sqllogictest.client import Client, ServerError
from tests.support.server import ServerProcess

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3000)]  # the machine may be busy

PATIENCE_S = 1500.0
PARTS = 8
PART_ROWS = 60_000
TRIES = 30
"""Of catching a worker at work: each takes a moment, and nearly every one succeeds."""
ON_SPARK = ("--spark-start", "background", "--memory", "2GB")


@pytest.fixture
def servers() -> Iterator[list[ServerProcess]]:
    running: list[ServerProcess] = []
    yield running
    for server in running:
        if server.process.poll() is None:
            server.kill()


def fill(client: Client, table: str) -> None:
    """Load parts, one fewer than make a merge."""
    client.run("SET executor = local")
    client.run(f"CREATE TABLE {table} (id int PRIMARY KEY, k int, s text)")
    for part in range(PARTS - 1):
        add_part(client, table, part)


def add_part(client: Client, table: str, part: int) -> None:
    low, high = part * PART_ROWS + 1, (part + 1) * PART_ROWS
    client.run(
        f"INSERT INTO {table} SELECT g, (g::bigint * 7919 % 1000003)::int, 'text ' || g % 1000 || '-' || g "
        f"FROM generate_series({low}, {high}) g"
    )


def only(client: Client, sql: str) -> str | None:
    [[value]] = client.run(sql).rows
    return value


def at_work(server: ServerProcess) -> bool:
    """Whether a worker writes a file now."""
    return any((server.data_dir / "blobs" / "tmp").glob("grant-*/*/*"))


def wait_until(what: str, done: Callable[[], bool], pause_s: float = 0.05) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(pause_s)


def jvm(server: ServerProcess) -> int | None:
    found = subprocess.run(
        ["pgrep", "-P", str(server.process.pid), "-f", "java"], capture_output=True, text=True, check=False
    )
    return int(found.stdout.split()[0]) if found.stdout.split() else None


def kill_jvm(server: ServerProcess) -> None:
    pid = jvm(server)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def spark_is_up(client: Client) -> None:
    """Wait for it, also while one that was killed is started again."""
    client.run("SET spark_start_timeout = '20min'; SET executor = spark")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            assert only(client, "SELECT count(*) FROM generate_series(1, 100)") == "100"
            return
        except ServerError as error:
            if error.sqlstate not in ("57P03", "58000") or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


class Building:
    """CREATE INDEX in a thread. ``before``: the sidecars of the table when it began."""

    def __init__(self, server: ServerProcess, executor: str, oid: str | None) -> None:
        self.before = sidecars(server, oid)
        self._client = server.connect(PATIENCE_S)
        self._client.run(f"SET executor = {executor}; SET index_spark_min_rows = 1")
        self.error: ServerError | OSError | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._client.run("CREATE INDEX made ON t (s, k)")
        except (ServerError, OSError) as error:
            self.error = error
        finally:
            self._client.close()

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> ServerError | OSError | None:
        self._thread.join(PATIENCE_S)
        assert self.over
        return self.error


def build_until_at_work(server: ServerProcess, client: Client, executor: str, oid: str | None) -> Building:
    """Begin an index build, and return while a worker writes for it."""
    for _ in range(TRIES):
        spark_is_up(client)
        building = Building(server, executor, oid)
        wait_until("no worker begins", lambda b=building: b.over or at_work(server), 0.001)  # type: ignore[misc]
        if not building.over:
            return building
        assert building.join() is None
        client.run("DROP INDEX made")
    raise AssertionError("no worker was seen at work")


def sidecars(server: ServerProcess, table: str | None) -> set[str]:
    """Return the names of all finished ones of a table, given by its oid."""
    return {path.name for path in (server.data_dir / "blobs" / str(table)).glob("*.x*")}


def nothing_begun(server: ServerProcess) -> bool:
    return not any(path.is_file() for path in (server.data_dir / "blobs" / "tmp").rglob("*"))


def check_index(client: Client) -> None:
    """Compare what the index finds with what is there."""
    client.run("SET executor = index")
    for n in (4711, 123_456, PARTS * PART_ROWS - PART_ROWS):
        assert only(client, f"SELECT id FROM t WHERE s = 'text {n % 1000}-{n}'") == str(n)
    lines = [row[0] or "" for row in client.run("EXPLAIN SELECT id FROM t WHERE s = 'text 1-1'").rows]
    assert any("made" in line for line in lines)
    assert only(client, "SELECT count(*) FROM t WHERE s >= 'text 7' AND s < 'text 8'") == only(
        client, "SELECT count(*) FROM t WHERE s || '' >= 'text 7' AND s || '' < 'text 8'"
    )


def test_an_index_build_outlives_the_jvm_and_leaves_nothing_when_it_ends_with_it(
    tmp_path: Path, servers: list[ServerProcess]
) -> None:
    server = ServerProcess(tmp_path / "data", *ON_SPARK)
    servers.append(server)
    client = server.connect(PATIENCE_S)
    fill(client, "t")
    oid = only(client, "SELECT 't'::regclass::oid")
    before = sidecars(server, oid)
    assert len(before) == PARTS - 1  # of the primary key
    # A session that lets the router choose: the server builds what Spark has not.
    building = build_until_at_work(server, client, "auto", oid)
    kill_jvm(server)
    assert building.join() is None
    check_index(client)
    assert len(sidecars(server, oid) - building.before) == len(before)  # one of each part
    client.run("DROP INDEX made")  # its sidecars stay for now
    # One that is pinned to Spark fails with it.
    building = build_until_at_work(server, client, "spark", oid)
    kill_jvm(server)
    error = building.join()
    assert isinstance(error, ServerError)
    assert error.sqlstate == "58000"
    assert only(client, "SELECT count(*) FROM pg_class WHERE relname = 'made'") == "0"
    wait_until("sidecars of a build that failed stay", lambda: sidecars(server, oid) == building.before)
    assert nothing_begun(server)
    # The server itself is killed: the next start knows no index, and tidies up.
    building = build_until_at_work(server, client, "spark", oid)
    server.kill()
    client.close()
    again = ServerProcess(tmp_path / "data")
    servers.append(again)
    client = again.connect(PATIENCE_S)
    assert only(client, "SELECT count(*) FROM pg_class WHERE relname = 'made'") == "0"
    # Those of indexes that were dropped go at a start that does not find them in the log any more.
    wait_until(
        "sidecars of a build that was cut off stay", lambda: before <= sidecars(again, oid) <= building.before
    )
    assert nothing_begun(again)
    client.run("CREATE INDEX made ON t (s, k)")
    check_index(client)
    client.close()
    assert again.stop() == 0


def rows_of(client: Client, table: str) -> tuple[str | None, ...]:
    client.run("SET executor = local")
    [row] = client.run(f"SELECT count(*), count(DISTINCT id), sum(k), sum(length(s)) FROM {table}").rows
    return row


def parts_on_disk(server: ServerProcess, oid: str | None) -> int:
    return len(list((server.data_dir / "blobs" / str(oid)).glob("*.parquet")))


def known_parts(client: Client, table: str) -> int:
    return int(only(client, f"SELECT parts FROM holdfast_shards WHERE relname = '{table}'") or 0)


def merge_until_at_work(server: ServerProcess, client: Client, prefix: str) -> str:
    """Make tables whose parts are to be merged until a worker is seen writing one; return that table.

    For a minute after a merge on Spark has failed the server merges by itself (``engine.changes.bulk.spark_merge.PAUSE_S``).
    """
    until = time.monotonic() + PAUSE_S + PATIENCE_S
    for number in itertools.count():
        assert time.monotonic() < until, "no worker was seen at work"
        table = f"{prefix}{number}"
        spark_is_up(client)
        fill(client, table)
        done = int(only(client, "SELECT merges FROM holdfast_storage") or 0)
        add_part(client, table, PARTS - 1)
        deadline = time.monotonic() + PATIENCE_S
        while int(only(client, "SELECT merges FROM holdfast_storage") or 0) == done:
            assert time.monotonic() < deadline, "nothing is merged"
            for _ in range(20):
                if at_work(server):
                    return table
                time.sleep(0.001)
        client.run(f"DROP TABLE {table}")
    raise AssertionError("numbers end")


def expected() -> tuple[str, ...]:
    ids = range(1, PARTS * PART_ROWS + 1)
    return (
        str(len(ids)), str(len(ids)), str(sum(g * 7919 % 1000003 for g in ids)),
        str(sum(len(f"text {g % 1000}-{g}") for g in ids)),
    )  # fmt: skip


def test_a_merge_that_ends_with_the_jvm_or_the_server_changes_no_row_and_leaves_no_file(
    tmp_path: Path, servers: list[ServerProcess]
) -> None:
    server = ServerProcess(tmp_path / "data", *ON_SPARK, "--merge-spark-min-bytes", "1")
    servers.append(server)
    client = server.connect(PATIENCE_S)
    table = merge_until_at_work(server, client, "jvm")
    kill_jvm(server)
    oid = only(client, f"SELECT '{table}'::regclass::oid")
    # The server merges them itself, for Spark has just failed.
    wait_until("parts are not merged", lambda: known_parts(client, table) < PARTS)
    assert rows_of(client, table) == expected()
    wait_until(
        "files of the cut-off merge stay", lambda: parts_on_disk(server, oid) == known_parts(client, table)
    )
    assert nothing_begun(server)
    table = merge_until_at_work(server, client, "server")
    oid = only(client, f"SELECT '{table}'::regclass::oid")
    server.kill()
    client.close()
    again = ServerProcess(tmp_path / "data")
    servers.append(again)
    client = again.connect(PATIENCE_S)
    assert rows_of(client, table) == expected()
    wait_until("parts are not merged", lambda: known_parts(client, table) < PARTS)
    wait_until(
        "files of the cut-off merge stay", lambda: parts_on_disk(again, oid) == known_parts(client, table)
    )
    assert nothing_begun(again)
    assert rows_of(client, table) == expected()
    client.close()
    assert again.stop() == 0
