"""What a session sets of its TCP connection holds for the server's socket."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import psycopg
import pytest

from sqllogictest.client import ServerError
from tests.support.fields import connect
from tests.support.server import ServerProcess

KEEPALIVE_TIMER = "02"
JIFFIES_PER_S = 100


def keepalive_in_s(mine: int, port: int) -> float:
    """Return when the server's end of the connection from port ``mine`` is going to probe, as the kernel says."""
    end = time.monotonic() + 30
    while time.monotonic() < end:  # until our end has acknowledged what it got, another timer runs
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            local, remote = (int(address.rpartition(":")[2], 16) for address in words[1:3])
            kind, _, when = words[5].partition(":")
            if (local, remote, kind) == (port, mine, KEEPALIVE_TIMER):
                return int(when, 16) / JIFFIES_PER_S
        time.sleep(0.01)
    raise AssertionError("the connection is not there, or has no such timer")


def test_keepalives_are_those_of_the_socket(server: ServerProcess) -> None:
    client = connect(server.port)
    mine = client._socket.getsockname()[1]
    system = client.run("SHOW tcp_keepalives_idle").rows[0][0]
    idle_s = client._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
    assert system == str(idle_s)
    client.run("SET tcp_keepalives_idle = 30000")
    assert idle_s < keepalive_in_s(mine, server.port) <= 30000
    client.run("BEGIN; SET tcp_keepalives_idle = 20000; ROLLBACK")
    assert 20000 < keepalive_in_s(mine, server.port) <= 30000
    client.run("SET tcp_keepalives_idle = 0")
    assert client.run("SHOW tcp_keepalives_idle").rows == [(system,)]
    assert keepalive_in_s(mine, server.port) <= idle_s
    client.close()


def test_they_are_set_at_the_start_and_bounded_by_the_system(server: ServerProcess) -> None:
    with psycopg.connect(server.url, options="-c tcp_keepalives_idle=29000") as beginning:
        with socket.socket(fileno=os.dup(beginning.fileno())) as same:
            mine = same.getsockname()[1]
        assert keepalive_in_s(mine, server.port) > 20000
    client = connect(server.port)
    for name in ("tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"):
        client.run(f"SET {name} = 100")
        assert client.run(f"SHOW {name}").rows[0][0] == "100"
    with pytest.raises(ServerError) as refused:
        client.run("SET tcp_keepalives_count = 100000")
    assert refused.value.sqlstate == "22023"
    assert client.run("SHOW tcp_keepalives_count").rows == [("100",)]
    client.close()


def test_what_waits_for_a_client_that_does_not_read_is_bounded_and_counted(server: ServerProcess) -> None:
    """In the server and in the system's send buffer, which by itself would grow to megabytes."""
    with (
        psycopg.connect(server.url, autocommit=True) as other,
        psycopg.connect(server.url, autocommit=True) as silent,
    ):
        silent.pgconn.send_query(b"SELECT repeat('x', 100000) FROM generate_series(1, 400)")
        sizes = [0]
        while not sizes[-1] or sizes[-1] != sizes[-2]:
            found = other.execute(
                "SELECT bytes FROM holdfast_memory WHERE owner = 'output' AND pid = %s",
                (silent.info.backend_pid,),
            ).fetchone()
            assert found is not None
            sizes.append(found[0])
            other.execute("SELECT pg_sleep(0.2)")
        assert 0 < max(sizes) < 3 << 20
        while silent.pgconn.get_result() is not None:
            pass
