"""Cancels and timeouts that PL/pgSQL catches (query_canceled), and ends of connections, which nothing catches."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from sqllogictest.client import ServerError
from tests.support.fields import FieldsClient, connect, fields_of
from tests.support.server import ServerProcess

CANCELED = "canceling statement due to user request"
TIMEOUT = "canceling statement due to statement timeout"
WAITING = {
    "a sleep": "PERFORM pg_sleep(3600)",
    "a scan": "PERFORM count(a % b) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
    "a loop": "LOOP END LOOP",
    "a lock": "PERFORM pg_advisory_lock(77)",
    "a call": "PERFORM sleeps()",
    "a block without a handler for it": "BEGIN PERFORM pg_sleep(3600); EXCEPTION WHEN OTHERS THEN NULL; END",
}
CATCHING = (
    "DO $$ BEGIN BEGIN INSERT INTO met VALUES ('undone'); RAISE NOTICE 'in'; {}; EXCEPTION WHEN query_canceled THEN INSERT INTO met VALUES (sqlerrm); END;"
    " PERFORM pg_sleep(0.05); INSERT INTO met VALUES ('after'); END $$"
)
ENDLESS = "DO $$ BEGIN LOOP BEGIN RAISE NOTICE 'in'; PERFORM pg_sleep(3600); EXCEPTION WHEN query_canceled THEN PERFORM nextval('times'); END; END LOOP; END $$"


@pytest.fixture(scope="module")
def control(server: ServerProcess) -> Iterator[FieldsClient]:
    client = connect(server.port)
    client.run("CREATE TABLE met (what text)")
    client.run(
        "CREATE FUNCTION sleeps() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN 1; END $$"
    )
    client.run("CREATE SEQUENCE times")
    client.run("SELECT pg_advisory_lock(77)")
    yield client
    client.close()


def begin(client: FieldsClient, sql: str) -> None:
    """Have a client run what does not end by itself; returns once it is within its block."""
    client.send(b"Q", sql.encode() + b"\0")
    assert client.answer()[0] == b"N"


def answers(client: FieldsClient) -> list[tuple[bytes, bytes]]:
    """Return what a Query is answered with, but for settings told."""
    return [answer for answer in client.until_ready() if answer[0] not in (b"S", b"Z")]


def caught(control: FieldsClient) -> list[str]:
    found = [str(row[0]) for row in control.run("SELECT what FROM met ORDER BY what").rows]
    control.run("DELETE FROM met")
    return found


@pytest.mark.parametrize("body", WAITING.values(), ids=WAITING)
def test_a_handler_takes_a_cancel_and_a_timeout(
    body: str, control: FieldsClient, server: ServerProcess
) -> None:
    """What the block has done is undone, what follows it goes on, and no clock ends that."""
    client = connect(server.port, timeout_s=60)
    begin(client, CATCHING.format(body))
    client.cancel()
    assert [kind for kind, _ in answers(client)] == [b"C"]
    assert caught(control) == ["after", CANCELED]
    for timeout_ms in (40, 400, 4000):  # on a busy machine it may be over before the block begins
        client.run(f"SET statement_timeout = {timeout_ms}")
        with contextlib.suppress(ServerError):
            client.run(CATCHING.format(body))
            break
    assert caught(control) == ["after", TIMEOUT]
    assert client.fails("SELECT pg_sleep(3600)")["message"] == TIMEOUT
    client.close()


def test_a_cancel_is_met_once_and_others_as_they_come(control: FieldsClient, server: ServerProcess) -> None:
    """A handler for it takes each; one for OTHERS takes none, nor does one that is left by then."""
    client = connect(server.port, timeout_s=60)
    begin(client, ENDLESS)
    for _ in range(3):
        client.cancel()
        assert client.answer()[0] == b"N"  # in again
    others = ENDLESS.replace("query_canceled", "OTHERS")
    client.close()
    client = connect(server.port, timeout_s=60)
    begin(client, others)
    client.cancel()
    [(kind, body)] = answers(client)
    assert (kind, fields_of(body)["sqlstate"]) == (b"E", "57014")
    assert client.run("SELECT 1").rows == [("1",)]
    client.close()


@pytest.mark.parametrize("how", ["terminated", "transaction_timeout", "left"])
def test_the_end_of_a_connection_is_not_caught(
    how: str, control: FieldsClient, server: ServerProcess
) -> None:
    """Also by what has caught cancels before."""
    control.run("SELECT setval('times', 1, false)")
    client = connect(server.port, timeout_s=60)
    pid = client.key[0]
    if how == "transaction_timeout":
        client.run("SET transaction_timeout = '200ms'")
        client.send(b"Q", ENDLESS.encode() + b"\0")
    else:
        begin(client, ENDLESS)
        client.cancel()
        assert client.answer()[0] == b"N"
    if how == "terminated":
        control.run(f"SELECT pg_terminate_backend({pid})")
    if how == "left":
        client._socket.close()
    else:
        while (answer := client.answer())[0] == b"N":
            pass
        assert fields_of(answer[1])["sqlstate"] == ("57P01" if how == "terminated" else "25P04")
        client._socket.close()
    while control.run(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}").rows:
        time.sleep(0.01)
    met = "f" if how == "transaction_timeout" else "t"
    assert control.run("SELECT last_value, is_called FROM times").rows == [("1", met)]
