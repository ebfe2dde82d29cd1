"""Clients that vanish, in the middle of anything, leave nothing: no session, no lock, nobody who waits for them.

Each case brings a client to a point, ends it by FIN or by RST, and waits until the server has noticed; how long that takes is
not judged.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

PATIENCE_S = 120.0
_NUMBERS = itertools.count(1)


def query(sql: str) -> bytes:
    return b"Q" + struct.pack("!I", len(sql) + 5) + sql.encode() + b"\0"


# what it sends and does not wait for, and what pg_stat_activity says of it then
POINTS: dict[str, tuple[bytes, str]] = {
    "in a block": (query("BEGIN; UPDATE {t} SET n = 1 WHERE id = 2"), "idle in transaction"),
    "waiting for a lock": (query("UPDATE {t} SET n = 1 WHERE id = 1"), "active"),
    "waiting for a lock in a block": (query("BEGIN; UPDATE {t} SET n = 1 WHERE id = 2; UPDATE {t} SET n = 1 WHERE id = 1"), "active"),
    "waiting for a table": (query("BEGIN; LOCK TABLE {t}"), "active"),
    "asleep": (query("SELECT pg_sleep(100000)"), "active"),
    "in a large query": (query("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b"), "active"),
    "in a large answer": (query("SELECT repeat('x', 1000) FROM generate_series(1, 300000)"), "active"),
}  # fmt: skip


@pytest.fixture
def witness(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port, timeout_s=PATIENCE_S)
    yield made
    made.close()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@pytest.mark.parametrize("how", ["FIN", "RST"])
@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_left_of_a_client(
    server: ServerProcess, witness: FieldsClient, point: str, how: str
) -> None:
    table = f"left_{next(_NUMBERS)}"
    witness.run(f"CREATE TABLE {table} (id int PRIMARY KEY, n int)")
    witness.run(f"INSERT INTO {table} VALUES (1, 0), (2, 0)")
    holder = connect(server.port, timeout_s=PATIENCE_S)
    holder.run("BEGIN")
    holder.run(f"UPDATE {table} SET n = 2 WHERE id = 1")
    client = connect(server.port, timeout_s=PATIENCE_S)
    pid = client.run("SELECT pg_backend_pid()").rows[0][0]
    sent, state = POINTS[point]
    length = len(table) - len("{t}")
    if sent.startswith(b"Q") and b"{t}" in sent:
        first = int.from_bytes(sent[1:5], "big")
        count = sent.count(b"{t}")
        sent = b"Q" + struct.pack("!I", first + count * length) + sent[5:].replace(b"{t}", table.encode())
    client.send_raw(sent)
    seen = f"SELECT state FROM pg_stat_activity WHERE pid = {pid}"
    asked = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND query NOT LIKE '%pg_backend_pid%'"
    wait_for(
        lambda: witness.run(seen).rows == [(state,)] and witness.run(asked).rows == [("1",)],
        f"{point}: {state}",
    )
    if how == "RST":
        client._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client._socket.close()
    wait_for(lambda: witness.run(seen).rows == [], f"{point}: the session has ended")
    wait_for(
        lambda: witness.run(f"SELECT count(*) FROM pg_locks WHERE pid = {pid}").rows == [("0",)],
        f"{point}: its locks are free",
    )
    assert holder.run("COMMIT").tag == "COMMIT"
    holder.close()
    assert witness.run(f"SELECT id, n FROM {table} ORDER BY id").rows == [("1", "2"), ("2", "0")]
    witness.run(f"DROP TABLE {table}")
