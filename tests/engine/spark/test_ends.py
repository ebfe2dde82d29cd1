"""Whoever ends a query ends its jobs: cancel, CLOSE, ROLLBACK, disconnect and statement_timeout, as Spark itself sees it.

Spark's web interface (loopback, a port of the system's) answers which jobs and tasks run. How long it took is printed; what
is asserted is only that it is over long before the query would be.
"""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.engine.spark.test_queue import SLOW, Waiting, connect
from tests.support.server import ServerProcess

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
ENDED_S = 120.0  # the machine may be busy; on an idle one it is a fraction of a second


class Interface:
    """What Spark's web interface says of the one application."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/applications"

    def _get(self, path: str = "") -> Any:
        with urllib.request.urlopen(self._url + path, timeout=60) as answer:
            return json.load(answer)

    def busy(self) -> bool:
        """Tell whether a job or a task runs."""
        [application] = self._get()
        at = f"/{application['id']}"
        return bool(self._get(f"{at}/jobs?status=running")) or any(
            executor["activeTasks"] for executor in self._get(f"{at}/executors")
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, Interface]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    running = ServerProcess(
        tmp_path_factory.mktemp("ends") / "data", "--spark-start", "background",
        "--spark-conf", "spark.ui.enabled=true", "--spark-conf", f"spark.ui.port={port}",
    )  # fmt: skip
    yield running, Interface(port)
    assert running.stop() == 0


def until_busy(interface: Interface, wanted: bool) -> float:
    """Wait until jobs run, or until none does; return the seconds."""
    began = time.monotonic()
    while interface.busy() != wanted:
        assert time.monotonic() < began + (ENDED_S if not wanted else 900), "jobs run on"
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.parametrize("how", ["cancel", "close", "rollback", "disconnect", "timeout"])
def test_no_job_outlives_its_query(
    served: tuple[ServerProcess, Interface], how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server, interface = served
    with connect(server) as client:
        client.execute("BEGIN")
        client.execute(f"DECLARE c CURSOR FOR {SLOW}")
        assert client.execute("FETCH 1 FROM c").fetchall() == [(0,)]
        fetching = None
        if how in ("cancel", "timeout"):
            if how == "timeout":
                client.execute("SET statement_timeout = '10s'")
            fetching = Waiting(client, "FETCH 1 FROM c")
        until_busy(interface, True)
        if how == "cancel":
            client.cancel()
        elif how == "close":
            client.execute("CLOSE c")
        elif how == "rollback":
            client.execute("ROLLBACK")
        elif how == "disconnect":
            client.close()
        if fetching is not None:
            fetching.thread.join()
            assert isinstance(fetching.error, psycopg.errors.QueryCanceled)
        took = until_busy(interface, False)
    with capsys.disabled():
        print(f"\nafter {how} Spark was idle within {took:.2f} s", end="")
