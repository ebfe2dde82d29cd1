"""``'now'`` as a literal and as a parameter is now(): the time of the transaction, never that of the one before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

Protocol = Literal["simple", "extended"]
PAUSE_S = 0.2
IS_NOW = "SELECT 'now'::timestamptz = now(), date 'today' = current_date, clock_timestamp() - timestamptz 'now' < interval '1 min'"
BOTH = pytest.mark.parametrize("protocol", ["simple", "extended"])


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    yield made
    made.close()


@BOTH
def test_of_the_first_statement_and_after_a_pause(client: FieldsClient, protocol: Protocol) -> None:
    assert client.run(IS_NOW, protocol).rows == [("t", "t", "t")]
    time.sleep(PAUSE_S)
    assert client.run(IS_NOW, protocol).rows == [("t", "t", "t")]


@BOTH
def test_what_is_stored(client: FieldsClient, protocol: Protocol) -> None:
    client.run("CREATE TEMP TABLE stored (at timestamptz, made timestamptz DEFAULT now())")
    time.sleep(PAUSE_S)
    client.run("INSERT INTO stored VALUES ('now')", protocol)
    time.sleep(PAUSE_S)
    client.run("INSERT INTO stored VALUES ('now'), ('now')", protocol)
    client.run("BEGIN")
    time.sleep(PAUSE_S)
    client.run("INSERT INTO stored VALUES ('now')", protocol)
    client.run("COMMIT")
    assert client.run("SELECT count(*) FROM stored WHERE at = made").rows == [("4",)]


def test_of_a_parameter_of_a_statement_that_was_prepared_before(client: FieldsClient) -> None:
    client.send(b"P", b"s\0SELECT $1::timestamptz = now(), clock_timestamp() - $1 < interval '1 min'\0\0\0")
    client.send(b"S")
    client.until_ready()
    for _ in range(2):
        time.sleep(PAUSE_S)
        client.send(b"B", b"\0s\0\0\0\0\1\0\0\0\3now\0\0")
        client.send(b"E", b"\0\0\0\0\0")
        client.send(b"S")
        rows = [body for kind, body in client.until_ready() if kind == b"D"]
        assert rows == [b"\0\2\0\0\0\1t\0\0\0\1t"]


def test_of_an_argument_of_execute(client: FieldsClient) -> None:
    client.run("PREPARE p (timestamptz) AS SELECT $1 = now()")
    time.sleep(PAUSE_S)
    assert client.run("EXECUTE p('now')").rows == [("t",)]
