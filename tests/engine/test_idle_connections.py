"""Connections that do nothing: they cost little, and past the limit the next one is told so at once."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from bench.idle import resident_kib
from engine.base.loop import descriptors
from sqllogictest.client import ServerError
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

MOST_KIB_EACH = 256  # an interpreter keeps some of what others needed meanwhile
FIRST = "SELECT relname FROM pg_class WHERE relname = 'pg_class'"


def opened(server: ServerProcess, count: int) -> list[FieldsClient]:
    clients = []
    for _ in range(count):
        clients.append(connect(server.port))
        clients[-1].run(FIRST)
    return clients


def test_a_hundred_idle_connections_cost_little(server: ServerProcess) -> None:
    witness = connect(server.port)
    for client in opened(server, 20):  # what the first ones make is there for all
        client.close()
    before = resident_kib(server.process.pid)
    idle = opened(server, 100)
    grown = resident_kib(server.process.pid) - before
    assert witness.run(FIRST).rows == [("pg_class",)]
    for client in idle:
        client.close()
    witness.close()
    assert grown < 100 * MOST_KIB_EACH


@pytest.mark.long
def test_a_thousand_idle_connections_and_no_more(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--max-connections", "1001")
    witness = connect(server.port)
    before = resident_kib(server.process.pid)
    idle = opened(server, 1000)
    assert resident_kib(server.process.pid) - before < 1000 * MOST_KIB_EACH
    for _ in range(3):
        with pytest.raises(ServerError) as refused:
            connect(server.port)
        assert refused.value.sqlstate == "53300"
    idle.pop().close()
    while witness.run("SELECT count(*) FROM pg_stat_activity").rows != [("1000",)]:
        pass  # it has not noticed yet
    connect(server.port).close()
    for client in idle:
        assert client.run("SELECT 1").rows == [("1",)]
        client.close()
    witness.close()
    assert server.stop() == 0


def test_descriptors_are_asked_for_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: asked.append(limits))
    need = descriptors.needed(1000)
    assert need > 1000
    for soft, hard, expected in (
        (1024, 4096, [(4096, 4096)]),
        (1024, resource.RLIM_INFINITY, [(descriptors.MOST, resource.RLIM_INFINITY)]),
        (need, need, []),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, []),
    ):
        asked.clear()
        monkeypatch.setattr(resource, "getrlimit", lambda what, held=(soft, hard): held)
        assert descriptors.shortage(1000) is None
        assert asked == expected
    monkeypatch.setattr(resource, "getrlimit", lambda what: (need - 1, need - 1))
    told = descriptors.shortage(1000)
    assert told is not None
    assert f"needs {need} file descriptors, and this process may have {need - 1}" in told
    assert f"ulimit -n {need}" in told
