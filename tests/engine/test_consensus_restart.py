"""The PostgreSQL below is killed and started again while clients write: they wait, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import BINARIES, _as_server_user
from tests.support.server import ServerProcess

pytestmark = pytest.mark.long


class Below:
    """A PostgreSQL of our own that can be killed and started."""

    def __init__(self, folder: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        init = [str(BINARIES / "initdb"), "-D", f"{folder}/data", "-A", "trust", "-U", "postgres"]
        subprocess.run(_as_server_user(init), check=True, capture_output=True)
        self.control("start")

    def control(self, action: str) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        words = [str(BINARIES / "pg_ctl"), "-D", f"{self.folder}/data", "-w", "-m", "immediate"]
        words += ["-o", options, "-l", f"{self.folder}/log", action]
        subprocess.run(_as_server_user(words), check=True, capture_output=True)


@pytest.fixture
def below() -> Iterator[Below]:
    if not (BINARIES / "initdb").exists():
        pytest.skip("no PostgreSQL 15 server binaries on this machine")
    folder = tempfile.mkdtemp(prefix="holdfast-below-")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    made = Below(folder)
    yield made
    made.control("stop")
    shutil.rmtree(folder, ignore_errors=True)


def test_clients_wait_while_the_consensus_database_restarts(below: Below, tmp_path: Path) -> None:
    server = ServerProcess(
        tmp_path / "server", "--consensus", below.url, "--blob", str(tmp_path / "blob"), "--lease-ms", "2000"
    )
    with psycopg.connect(server.url, autocommit=True, sslmode="disable") as client:
        client.execute("CREATE TABLE written (writer int, n int, PRIMARY KEY (writer, n))")
    stop = threading.Event()
    acknowledged = [0, 0, 0]
    errors: list[Exception] = []

    def write(writer: int) -> None:
        try:
            with psycopg.connect(server.url, autocommit=True, sslmode="disable") as client:
                while not stop.is_set():
                    client.execute("INSERT INTO written VALUES (%s, %s)", (writer, acknowledged[writer]))
                    acknowledged[writer] += 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(w,)) for w in range(3)]
    for thread in threads:
        thread.start()

    def progress() -> None:
        """Wait until some more commits are acknowledged."""
        goal, deadline = sum(acknowledged) + 20, time.monotonic() + 40
        while sum(acknowledged) < goal and not errors:
            assert time.monotonic() < deadline, "the writers do not get on"
            time.sleep(0.02)

    for pause in (0.0, 1.0, 4.0):  # the last outlives the lease and the timestamp reservation
        progress()
        below.control("stop")
        time.sleep(pause)
        below.control("start")
    progress()
    stop.set()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with psycopg.connect(server.url, autocommit=True, sslmode="disable") as client:
        rows = client.execute(
            "SELECT writer, count(*), max(n) FROM written GROUP BY writer ORDER BY writer"
        ).fetchall()
    assert rows == [(w, acknowledged[w], acknowledged[w] - 1) for w in range(3)]
    assert server.stop() == 0
