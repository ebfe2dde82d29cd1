"""ALTER COLUMN TYPE: values, constraints, defaults and indexes follow, or the statement leaves everything as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run("CREATE TABLE retyped (a int PRIMARY KEY, b text, c numeric(6,2) DEFAULT 1.5, CHECK (a > 0))")
    made.run("INSERT INTO retyped VALUES (1, '10', 2.25), (2, '20', 3.75)")
    made.run("ALTER TABLE retyped ADD d varchar(5) DEFAULT 'old'")
    yield made
    made.run("DROP TABLE retyped CASCADE")
    made.close()


def test_values_are_converted_and_keys_still_find_them(client: FieldsClient) -> None:
    client.run(
        "ALTER TABLE retyped ALTER a TYPE bigint, ALTER b TYPE int USING b::int * 2, ALTER c TYPE numeric"
    )
    assert client.run("SELECT * FROM retyped WHERE a = 2").rows == [("2", "40", "3.75", "old")]
    client.run("CHECKPOINT")
    assert client.run("SELECT sum(b), pg_typeof(sum(b)) FROM retyped").rows == [("60", "bigint")]
    assert client.fails("INSERT INTO retyped (a) VALUES (2)")["sqlstate"] == "23505"
    assert client.fails("INSERT INTO retyped (a) VALUES (0)")["sqlstate"] == "23514"


def test_a_wider_type_keeps_the_rows_and_their_missing_values(client: FieldsClient) -> None:
    client.run("ALTER TABLE retyped ALTER d TYPE varchar(20)")
    client.run("ALTER TABLE retyped ALTER d TYPE text")
    assert client.run("SELECT d FROM retyped").rows == [("old",), ("old",)]


@pytest.mark.parametrize(
    ("action", "sqlstate"),
    [
        ("ALTER b TYPE int", "42804"),
        ("ALTER b TYPE int USING 'x'", "22P02"),
        ("ALTER b TYPE varchar(1)", "22001"),
        ("ALTER a TYPE text", "42883"),
        ("ALTER a TYPE int USING NULL", "23502"),
        ("ALTER a TYPE int USING 0", "23514"),
        ("ALTER a TYPE int USING 1", "23505"),
        ("ALTER c TYPE numeric(6,2) USING 'Infinity'", "22003"),
    ],
)
def test_what_does_not_fit_leaves_the_table_alone(client: FieldsClient, action: str, sqlstate: str) -> None:
    assert client.fails(f"ALTER TABLE retyped {action}")["sqlstate"] == sqlstate
    assert client.run("SELECT * FROM retyped ORDER BY a").rows == [
        ("1", "10", "2.25", "old"),
        ("2", "20", "3.75", "old"),
    ]


def test_a_column_that_a_view_reads_keeps_its_type(client: FieldsClient) -> None:
    client.run("CREATE VIEW reads_b AS SELECT b FROM retyped")
    error = client.fails("ALTER TABLE retyped ALTER b TYPE varchar(9)")
    assert error["sqlstate"] == "0A000"
    assert error["detail"] == 'rule _RETURN on view reads_b depends on column "b"'
    client.run("ALTER TABLE retyped ALTER c TYPE int")
    assert client.run("SELECT c FROM retyped ORDER BY a").rows == [("2",), ("4",)]


def test_it_is_undone_with_its_transaction(client: FieldsClient) -> None:
    client.run("BEGIN")
    client.run("ALTER TABLE retyped ALTER c TYPE text")
    assert client.run("SELECT c FROM retyped WHERE a = 1").rows == [("2.25",)]
    client.run("ROLLBACK")
    assert client.run("SELECT c + 1 FROM retyped WHERE a = 1").rows == [("3.25",)]
