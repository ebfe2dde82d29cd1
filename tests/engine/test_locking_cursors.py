"""DECLARE … FOR UPDATE: when its rows are locked, and which these are. Values of PostgreSQL 15, which locks one after another, where this locks all at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.server import ServerProcess

Client = psycopg.Connection[Any]


@pytest.fixture
def clients(server: ServerProcess) -> Iterator[tuple[Client, Client]]:
    at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with psycopg.connect(at, autocommit=True) as one, psycopg.connect(at, autocommit=True) as other:
        one.execute("DROP TABLE IF EXISTS lc; CREATE TABLE lc (id int PRIMARY KEY, v int)")
        one.execute("INSERT INTO lc SELECT g, g FROM generate_series(1, 5) g")
        other.execute("SET lock_timeout = '200ms'")
        yield one, other


def _free(client: Client) -> list[int]:
    found = []
    for number in range(1, 6):
        try:
            client.execute(f"UPDATE lc SET v = v + 1 WHERE id = {number}")
            found.append(number)
        except psycopg.errors.LockNotAvailable:
            continue
    return found


def test_rows_are_locked_when_the_first_one_is_fetched(clients: tuple[Client, Client]) -> None:
    one, other = clients
    one.execute("BEGIN; DECLARE c CURSOR FOR SELECT * FROM lc WHERE id < 3 ORDER BY id FOR UPDATE")
    assert _free(other) == [1, 2, 3, 4, 5]
    assert one.execute("FETCH c").fetchall() == [(1, 2)]  # as it is now
    assert 1 not in _free(other)
    assert one.execute("FETCH ALL FROM c").fetchall()[0][0] == 2
    assert _free(other) == [3, 4, 5]
    one.execute("COMMIT")
    assert _free(other) == [1, 2, 3, 4, 5]


def test_rows_that_are_not_fetched_are_not_locked(clients: tuple[Client, Client]) -> None:
    one, other = clients
    one.execute("BEGIN; DECLARE c CURSOR FOR SELECT * FROM lc FOR UPDATE; CLOSE c")
    assert _free(other) == [1, 2, 3, 4, 5]
    one.execute("COMMIT")


def test_rows_that_the_transaction_has_changed_since_are_left_out(clients: tuple[Client, Client]) -> None:
    one, other = clients
    one.execute("BEGIN; DECLARE c CURSOR FOR SELECT * FROM lc ORDER BY id FOR UPDATE")
    one.execute(
        "UPDATE lc SET v = 100 WHERE id = 1; DELETE FROM lc WHERE id = 2; INSERT INTO lc VALUES (9, 9)"
    )
    assert one.execute("FETCH ALL FROM c").fetchall() == [(3, 3), (4, 4), (5, 5)]
    one.execute("COMMIT; BEGIN; DECLARE c CURSOR FOR SELECT id FROM lc ORDER BY id FOR UPDATE")
    other.execute("DELETE FROM lc WHERE id = 3")
    assert one.execute("FETCH ALL FROM c").fetchall() == [(1,), (4,), (5,), (9,)]
    one.execute("COMMIT")


def test_a_change_of_where_the_cursor_stands(clients: tuple[Client, Client]) -> None:
    one, _ = clients
    one.execute("BEGIN; DECLARE c CURSOR FOR SELECT v FROM lc ORDER BY id FOR UPDATE")
    one.execute(
        "MOVE 2 FROM c; UPDATE lc SET v = 20 WHERE CURRENT OF c; MOVE c; DELETE FROM lc WHERE CURRENT OF c"
    )
    assert one.execute("FETCH c").fetchall() == [(4,)]
    one.execute("COMMIT")
    assert one.execute("SELECT * FROM lc ORDER BY id").fetchall() == [(1, 1), (2, 20), (4, 4), (5, 5)]
