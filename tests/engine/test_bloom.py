"""Bloom indexes look rows up by any of their columns, after a restart, too; only superusers bring the extension."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sqllogictest.client import ServerError
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run("CREATE EXTENSION IF NOT EXISTS bloom")
    made.run("CREATE TABLE people (id int PRIMARY KEY, age int, height int, town varchar(9))")
    made.run("INSERT INTO people SELECT g, g % 50, g % 7, 't' || g % 11 FROM generate_series(1, 500) g")
    yield made
    made.run("DROP TABLE people")
    made.close()


def plan(client: FieldsClient, sql: str) -> str:
    return "\n".join(str(row[0]) for row in client.run("EXPLAIN " + sql).rows)


@pytest.mark.parametrize(
    "condition", ["age = 3", "height = 3", "town = 't3'", "town = 't3' AND height = 2", "height IN (2, 3)"]
)
def test_every_column_is_looked_up(client: FieldsClient, condition: str) -> None:
    asked = f"SELECT id FROM people WHERE {condition} ORDER BY id"
    expected = client.run(asked).rows
    assert expected
    assert "people_b" not in plan(client, asked)
    client.run("CREATE INDEX people_b ON people USING bloom (age, height, town) WITH (length = 80, col2 = 4)")
    assert "people_b" in plan(client, asked)
    assert client.run(asked).rows == expected


def test_changes_are_found(client: FieldsClient) -> None:
    client.run("CREATE INDEX people_b ON people USING bloom (height, town)")
    client.run("UPDATE people SET height = 99 WHERE id = 5; DELETE FROM people WHERE id = 6")
    client.run("INSERT INTO people VALUES (501, NULL, NULL, 'new')")
    assert client.run("SELECT id FROM people WHERE height = 99").rows == [("5",)]
    assert client.run("SELECT id FROM people WHERE town = 'new'").rows == [("501",)]
    assert client.run("SELECT count(*) FROM people WHERE height = 6 AND id IN (6, 13)").rows == [("1",)]


def test_who_may_create_it(client: FieldsClient) -> None:
    client.run("DROP EXTENSION bloom; CREATE ROLE gardener; GRANT CREATE ON DATABASE postgres TO gardener")
    client.run("SET ROLE gardener")
    with pytest.raises(ServerError, match='permission denied to create extension "bloom"'):
        client.run("CREATE EXTENSION bloom")
    client.run("RESET ROLE; REVOKE CREATE ON DATABASE postgres FROM gardener; DROP ROLE gardener")
