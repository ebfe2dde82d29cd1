"""A client that has sent all it wants, and says so (``shutdown(SHUT_WR)``), gets its answers, as from PostgreSQL."""

from __future__ import annotations

import socket
import struct

import psycopg
import pytest

from tests.support.server import ServerProcess


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _query(sql: str) -> bytes:
    return _message(b"Q", sql.encode() + b"\0")


EXTENDED = (
    _message(b"P", b"\0SELECT pg_sleep(0.15)\0\0\0")
    + _message(b"B", b"\0" * 8)
    + _message(b"E", b"\0" * 5)
    + _message(b"S", b"")
)


def _answers(port: int, sent: bytes) -> str:
    """Return the kinds of the messages that come until the server closes."""
    body = b"user\0postgres\0database\0postgres\0\0"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock, sock.makefile("rb") as stream:
        sock.sendall(struct.pack("!ii", len(body) + 8, 196608) + body)
        kinds = ""
        while head := stream.read(5):
            if head[:1] == b"Z" and "Z" not in kinds:
                sock.sendall(sent)
                sock.shutdown(socket.SHUT_WR)
            kinds += head[:1].decode()
            stream.read(struct.unpack("!i", head[1:])[0] - 4)
        return kinds[kinds.index("Z") + 1 :].replace("S", "")


@pytest.mark.parametrize(
    ("sent", "kinds"),
    [
        (_query("SELECT 1"), "TDCZ"),
        (_query("SELECT pg_sleep(0.15)"), "TDCZ"),
        (_query("SELECT 1") + _query("SELECT pg_sleep(0.01)") + _query("SELECT 2"), "TDCZ" * 3),
        (EXTENDED, "12DCZ"),
        (_query("BEGIN; SELECT pg_sleep(0.01)"), "CTDCZ"),
        (_query("SELECT repeat('x', 1000) FROM generate_series(1, 1000)"), "T" + "D" * 1000 + "CZ"),
        (_query("SELECT 1") + b"Q\0\0\1", "TDCZ"),
        (_query("COPY (SELECT generate_series(1, 3)) TO STDOUT"), "HdddcCZ"),
    ],
)  # fmt: skip
def test_a_half_closed_connection_is_answered_to_its_end(
    server: ServerProcess, sent: bytes, kinds: str
) -> None:
    assert _answers(server.port, sent) == kinds


def test_what_it_wrote_is_committed(server: ServerProcess) -> None:
    rows = "CREATE TABLE half_closed AS SELECT generate_series(1, 500) a"
    assert _answers(server.port, _query(rows) + _query("DELETE FROM half_closed WHERE a > 100")) == "CZCZ"
    with psycopg.connect(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres") as connection:
        found = connection.execute("SELECT count(*) FROM half_closed").fetchone()
        connection.execute("DROP TABLE half_closed")
    assert found == (100,)


def test_long_names_are_cut_at_login(server: ServerProcess) -> None:
    name = "half_" + "x" * 70
    address = f"host=127.0.0.1 port={server.port}"
    with psycopg.connect(f"{address} user=postgres dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(f"{address} user={name} dbname={name}") as other:
            found = other.execute("SELECT current_user, current_database()").fetchone()
        connection.execute(f"DROP DATABASE {name}")
        connection.execute(f"DROP ROLE {name}")
    assert found == (name[:63], name[:63])
