"""Expression and partial indexes: they are used, they guard, and they lock no more than their keys."""

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
        "CREATE TABLE mails (id int PRIMARY KEY, mail text, kind int DEFAULT 1, gone boolean DEFAULT false)"
    )
    yield made
    made.run("DROP TABLE mails")
    made.close()


def plan(client: FieldsClient, sql: str) -> str:
    return "\n".join(str(row[0]) for row in client.run("EXPLAIN " + sql).rows)


def test_a_look_up_by_an_expression_reads_its_index(client: FieldsClient) -> None:
    client.run("CREATE INDEX mails_lower ON mails (lower(mail))")
    for sql in ("SELECT * FROM mails WHERE lower(mail) = 'x'", "DELETE FROM mails WHERE 'x' = lower(mail)"):
        assert "using mails_lower" in plan(client, sql)
    assert "mails_lower" not in plan(client, "SELECT * FROM mails WHERE upper(mail) = 'X'")


def test_collate_changes_nothing_about_which_index_is_read(client: FieldsClient) -> None:
    client.run("INSERT INTO mails VALUES (1, 'A'), (2, 'b')")
    client.run(
        'CREATE INDEX mails_lower ON mails (lower(mail COLLATE "C")) WHERE mail COLLATE "POSIX" > \'\''
    )
    for written in ("mail", 'mail COLLATE "C"'):
        sql = f"SELECT id FROM mails WHERE lower({written}) = 'a' AND {written} > ''"
        assert "using mails_lower" in plan(client, sql)
        assert client.run(sql).rows == [("1",)]


@pytest.mark.parametrize(
    ("condition", "where", "used"),
    [
        ("NOT gone", "NOT gone", True),
        ("NOT gone", "gone = false", True),
        ("NOT gone", "gone IS FALSE", True),
        ("NOT gone", "gone", False),
        ("NOT gone", "NOT gone OR kind = 1", False),
        ("kind > 5", "kind > 5", True),
        ("kind > 5", "kind > 6", True),
        ("kind > 5", "kind = 6", True),
        ("kind > 5", "kind >= 5", False),
        ("kind > 5", "kind < 9", False),
        ("kind IS NOT NULL", "kind = 3", True),
        ("kind IS NOT NULL", "gone", False),
        ("kind IN (1, 2)", "kind = 2", True),
        ("kind IN (1, 2)", "kind = 3", False),
        ("kind > 5 AND NOT gone", "kind > 5", False),
        ("kind > 5 AND NOT gone", "NOT gone AND kind > 5", True),
    ],
)
def test_a_partial_index_serves_what_it_has_all_rows_of(
    client: FieldsClient, condition: str, where: str, used: bool
) -> None:
    client.run("INSERT INTO mails SELECT i, 'm' || i % 3, i % 10, i % 2 = 0 FROM generate_series(1, 40) i")
    sql = f"SELECT count(*) FROM mails WHERE mail = 'm1' AND ({where})"
    before = client.run(sql).rows
    client.run(f"CREATE INDEX mails_some ON mails (mail) WHERE {condition}")
    assert ("using mails_some" in plan(client, sql)) is used
    assert client.run(sql).rows == before


@pytest.mark.parametrize("executor", ["index", "local"])
def test_many_rows_and_duplicates_among_them(client: FieldsClient, executor: str) -> None:
    client.run(f"SET executor = {executor}")
    client.run(f"INSERT INTO mails SELECT i, 'M' || i FROM generate_series(1, {MANY}) i")
    client.run("CREATE UNIQUE INDEX mails_lower ON mails (lower(mail)) WHERE NOT gone")
    found = "SELECT id FROM mails WHERE lower(mail) = 'm7' AND NOT gone"
    assert client.run(found).rows == [("7",)]
    client.run("UPDATE mails SET mail = mail || 'x'")
    assert client.run(found).rows == []
    assert client.run(found.replace("m7", "m7x")).rows == [("7",)]
    copy = f"INSERT INTO mails SELECT id + {MANY}, mail, 1, "
    failed = client.fails(copy + "id <> 9 FROM mails")
    assert (failed["sqlstate"], failed["constraint"]) == ("23505", "mails_lower")
    assert client.run(copy + "true FROM mails").tag == f"INSERT 0 {MANY}"
    client.run("UPDATE mails SET gone = NOT gone")
    assert client.run(found.replace("m7", "m7x")).rows == [(str(MANY + 7),)]


def test_two_transactions_cannot_both_insert_a_key(client: FieldsClient, server: ServerProcess) -> None:
    """The key that a transaction did not find is locked: whoever comes second waits, and fails."""
    client.run("CREATE UNIQUE INDEX mails_lower ON mails (lower(mail)) WHERE NOT gone")
    other = connect(server.port)
    client.run("BEGIN")
    client.run("INSERT INTO mails VALUES (1, 'A')")
    other.run("INSERT INTO mails VALUES (2, 'a', 1, true)")
    other.run("INSERT INTO mails VALUES (3, 'b')")
    other.run("SET lock_timeout = '50ms'")
    assert other.fails("INSERT INTO mails VALUES (4, 'a')")["sqlstate"] == "55P03"
    client.run("COMMIT")
    assert other.fails("INSERT INTO mails VALUES (4, 'a')")["sqlstate"] == "23505"
    other.close()
