"""Generated columns follow their row on every way by which rows are stored, few or many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.changes.writes.dml import BULK_ROWS
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

MANY = BULK_ROWS + 1_000


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run(
        "CREATE TABLE computed (id int PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2) STORED, "
        "c text GENERATED ALWAYS AS ('n' || a::text) STORED)"
    )
    yield made
    made.run("DROP TABLE computed")
    made.close()


def wrong(client: FieldsClient) -> list[tuple[str | None, ...]]:
    """Return how many rows there are, and how many whose generated columns are not what they should be."""
    sql = "SELECT count(*), count(*) FILTER (WHERE b IS DISTINCT FROM a * 2 OR c IS DISTINCT FROM 'n' || a) FROM computed"
    return client.run(sql).rows


@pytest.mark.parametrize("executor", ["index", "local"])
def test_many_rows(client: FieldsClient, executor: str) -> None:
    """INSERT ... SELECT and UPDATE of so many rows that they are written as parts."""
    client.run(f"SET executor = {executor}")
    client.run(f"INSERT INTO computed (id, a) SELECT i, i % 100 FROM generate_series(1, {MANY}) i")
    assert wrong(client) == [(str(MANY), "0")]
    assert client.run("UPDATE computed SET a = a + 1").tag == f"UPDATE {MANY}"
    assert wrong(client) == [(str(MANY), "0")]
    client.run("CHECKPOINT")
    assert client.run("SELECT b, c FROM computed WHERE id = 7").rows == [("16", "n8")]


def test_an_index_on_a_generated_column_follows_it(client: FieldsClient) -> None:
    client.run("CREATE UNIQUE INDEX computed_b ON computed (b)")
    client.run("INSERT INTO computed (id, a) VALUES (1, 1), (2, 2)")
    failed = client.fails("UPDATE computed SET a = 1 WHERE id = 2")
    assert (failed["sqlstate"], failed["detail"]) == ("23505", "Key (b)=(2) already exists.")
    client.run("UPDATE computed SET a = 5 WHERE id = 1")
    assert client.run("SELECT id FROM computed WHERE b = 10").rows == [("1",)]
    assert client.run("SELECT id FROM computed WHERE b = 2").rows == []


def test_a_column_added_later_has_a_value_in_every_row(client: FieldsClient) -> None:
    client.run(f"INSERT INTO computed (id, a) SELECT i, i FROM generate_series(1, {MANY}) i")
    client.run("BEGIN")
    client.run("ALTER TABLE computed ADD d int GENERATED ALWAYS AS (id + a) STORED")
    assert client.run("SELECT sum(d - id - a), count(d) FROM computed").rows == [("0", str(MANY))]
    client.run("ROLLBACK")
    assert client.fails("SELECT d FROM computed")["sqlstate"] == "42703"
