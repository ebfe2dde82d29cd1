"""Limits that a client controls: an answer or a clean error just below and just above each, and nothing kept of what was too much."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator

import pytest

import planner.parse
from planner.base.errors import SqlError
from planner.base.long_search import OVERLAP, STEP, occurs
from tests.support.fields import FieldsClient, connect, fields_of
from tests.support.server import ServerProcess

STARTUP_BYTES = 10_000


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    yield made
    made.close()


def bound(client: FieldsClient, names: int, values: int) -> list[tuple[bytes, bytes]]:
    """Prepare a statement with ``names`` parameters and bind ``values``."""
    text = "SELECT 1 WHERE 1 IN (" + ",".join(f"${n}::int" for n in range(1, names + 1)) + ")"
    client.send(b"P", b"\0" + text.encode() + b"\0\0\0")
    client.send(b"B", b"\0\0\0\0" + struct.pack("!H", values) + b"\0\0\0\x011" * values + b"\0\0")
    client.send(b"E", b"\0\0\0\0\0")
    client.send(b"S")
    return client.until_ready()


def test_parameters_are_counted_without_a_sign(client: FieldsClient) -> None:
    assert [kind for kind, _ in bound(client, 2_000, 2_000)] == [b"1", b"2", b"D", b"C", b"Z"]
    said = bound(client, 3, 65_535)
    assert fields_of(said[1][1])["sqlstate"] == "08P01"
    assert fields_of(said[1][1])["message"].startswith("bind message supplies 65535 parameters")


@pytest.mark.long
def test_sixty_five_thousand_parameters_and_no_more(client: FieldsClient) -> None:
    assert [kind for kind, _ in bound(client, 65_535, 65_535)] == [b"1", b"2", b"D", b"C", b"Z"]
    said = bound(client, 65_536, 0)
    assert said[0][0] == b"E"
    assert fields_of(said[0][1])["sqlstate"] == "42P02"
    assert client.run("SELECT 1").rows == [("1",)]


def test_tables_have_at_most_1600_columns(client: FieldsClient) -> None:
    columns = ", ".join(f"c{n} int" for n in range(1600))
    client.run(f"CREATE TEMP TABLE widest ({columns})")
    for sql in (f"CREATE TEMP TABLE wider ({columns}, more int)", "ALTER TABLE widest ADD COLUMN more int"):
        error = client.fails(sql)
        assert (error["sqlstate"], error["message"]) == ("54011", "tables can have at most 1600 columns")
    assert client.run("SELECT count(*) FROM widest").rows == [("0",)]


def test_ten_thousand_parentheses_are_too_deep(client: FieldsClient) -> None:
    error = client.fails("SELECT " + "(" * 10_000 + "1" + ")" * 10_000)
    assert (error["sqlstate"], error["message"]) == ("54001", "stack depth limit exceeded")
    assert client.run("SELECT 1").rows == [("1",)]


@pytest.mark.parametrize(("more", "answer"), [(0, b"R"), (1, b"E")])
def test_a_start_up_packet_has_at_most_10000_bytes(server: ServerProcess, more: int, answer: bytes) -> None:
    body = b"\0\3\0\0user\0postgres\0application_name\0"
    body += b"x" * (STARTUP_BYTES + more - len(body) - 2) + b"\0\0"
    with socket.create_connection(("127.0.0.1", server.port), 60) as sock:
        sock.sendall(struct.pack("!I", len(body) + 4) + body)
        assert sock.recv(1) == answer


def test_a_text_that_is_too_long_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner.parse, "MAX_TEXT_CHARS", 100)

    def never(pattern: re.Pattern[str], text: str) -> bool:
        raise AssertionError("searched")

    monkeypatch.setattr(planner.parse, "occurs", never)
    with pytest.raises(SqlError) as caught:
        planner.parse.parse("x" * 101)
    assert caught.value.sqlstate == "54000"


@pytest.mark.parametrize("at", [0, 7, STEP - 6, STEP - 1, STEP, STEP + OVERLAP - 3, 3 * STEP - 2])
def test_long_texts_are_searched_in_steps_that_cut_no_word(at: int) -> None:
    pattern = re.compile(r"\bsource\b")
    text = " " * at + "source" + " " * (3 * STEP)
    assert occurs(pattern, text, ("source",))
    assert not occurs(pattern, text.replace("source", "sauce!"), ("source",))


def test_of_a_long_statement_others_see_the_beginning_once_it_has_ended(
    server: ServerProcess, client: FieldsClient
) -> None:
    client.run(f"SELECT 'shown', length('{'y' * 200_000}')")
    other = connect(server.port)
    (query,) = [
        row[0]
        for row in other.run("SELECT query FROM pg_stat_activity WHERE query LIKE 'SELECT ''shown''%'").rows
    ]
    other.close()
    assert query is not None
    assert len(query) == 64 * 1024 + 3
    assert query.endswith("yyy...")


@pytest.mark.long
def test_a_statement_of_300_megabytes_is_refused_and_forgotten(
    server: ServerProcess, client: FieldsClient
) -> None:
    client.send(b"Q", b"SELECT length('" + b"x" * (300 << 20) + b"')\0")
    said = client.until_ready()
    assert fields_of(said[0][1])["sqlstate"] == "54000"
    client.send(b"P", b"\0SELECT length($1)\0\0\0")
    client.send(b"B", b"\0\0\0\0\0\1" + struct.pack("!i", 256 << 20) + b"x" * (256 << 20) + b"\0\0")
    client.send(b"E", b"\0\0\0\0\0")
    client.send(b"S")
    assert (b"D", struct.pack("!Hi", 1, 9) + b"268435456") in client.until_ready()
    other = connect(server.port)
    other.send_raw(b"Q" + struct.pack("!I", 600 << 20))
    kind, body = other.answer()
    other._socket.close()
    assert (kind, fields_of(body)["sqlstate"]) == (b"E", "08P01")
    assert client.run("SELECT 1").rows == [("1",)]
