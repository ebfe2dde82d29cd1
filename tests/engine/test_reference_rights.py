"""What foreign keys ask of the owners of the tables that they look at, step by step as PostgreSQL 15 answered: an owner has lost what it has revoked from itself."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess

SETUP = """
CREATE ROLE fk_one; CREATE ROLE fk_two; CREATE SCHEMA fk AUTHORIZATION fk_one; GRANT ALL ON SCHEMA fk TO fk_two; SET ROLE fk_one;
CREATE TABLE fk.p (a int PRIMARY KEY, b int); INSERT INTO fk.p SELECT g FROM generate_series(1, 20) g; GRANT ALL ON fk.p TO fk_two;
CREATE TABLE fk.ip (a int, b int, PRIMARY KEY (a, b)) PARTITION BY LIST (a); CREATE TABLE fk.ip1 PARTITION OF fk.ip FOR VALUES IN (1);
INSERT INTO fk.ip SELECT 1, g FROM generate_series(1, 9) g; GRANT ALL ON fk.ip TO fk_two; SET ROLE fk_two
"""
KINDS = {
    "none": "a int REFERENCES fk.p",
    "restrict": "a int REFERENCES fk.p ON DELETE RESTRICT ON UPDATE RESTRICT",
    "cascade": "a int REFERENCES fk.p ON DELETE CASCADE ON UPDATE CASCADE",
    "null": "a int REFERENCES fk.p ON DELETE SET NULL ON UPDATE SET NULL",
    "default": "a int DEFAULT 20 REFERENCES fk.p ON DELETE SET DEFAULT ON UPDATE SET DEFAULT",
    "deferred": "a int REFERENCES fk.p INITIALLY DEFERRED",
}
DELETE, UPDATE, INSERT = (
    "DELETE FROM fk.p WHERE a = 1",
    "UPDATE fk.p SET a = 100 WHERE a = 1",
    "INSERT INTO fk.c VALUES (2)",
)

# What is left to the owner of which table, what is done, and by kind of key what comes of it: - done, c and p 42501 for the table, ! 23503.
STEPS = (
    ("c", "SELECT, UPDATE", DELETE, "none ! restrict ! cascade c null - default - deferred !"),
    ("c", "SELECT, UPDATE", UPDATE, "none ! restrict ! cascade - null - default - deferred !"),
    ("c", "SELECT, DELETE", DELETE, "none c restrict c cascade - null c default c deferred c"),
    ("c", "SELECT, DELETE", UPDATE, "none c restrict c cascade c null c default c deferred c"),
    ("c", "UPDATE, DELETE", DELETE, "none c restrict c cascade c null c default c deferred c"),
    ("c", "SELECT (a), UPDATE (x)", UPDATE, "none ! restrict ! cascade c null c default c deferred !"),
    ("c", "SELECT (x), UPDATE", UPDATE, "none c restrict c cascade c null c default c deferred c"),
    ("c", "INSERT", INSERT, "none - restrict - cascade - null - default - deferred -"),
    ("p", "SELECT", INSERT, "none p restrict p cascade p null p default p deferred p"),
    ("p", "UPDATE", INSERT, "none p restrict p cascade p null p default p deferred p"),
    ("p", "SELECT (a), UPDATE (b)", INSERT, "none - restrict - cascade - null - default - deferred -"),
    ("p", "SELECT (b), UPDATE (b)", INSERT, "none p restrict p cascade p null p default p deferred p"),
    ("p", "SELECT", DELETE, "none p restrict ! cascade - null - default p deferred p"),
)  # fmt: skip


@pytest.fixture
def client(server: ServerProcess) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(SETUP)
        yield connection
        connection.execute("ROLLBACK; RESET ROLE; DROP OWNED BY fk_one, fk_two; DROP ROLE fk_one, fk_two")


def _answer(client: psycopg.Connection, sql: str) -> str:
    """Return what comes of a statement of somebody who may everything, in a transaction that is rolled back."""
    try:
        client.execute(f"RESET ROLE; {sql}; SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.errors.InsufficientPrivilege as error:
        if not str(error.diag.context).startswith('SQL statement "'):
            return "no CONTEXT"
        return str(error.diag.message_primary).removeprefix("permission denied for table ")
    except psycopg.errors.ForeignKeyViolation:
        return "!"
    return "-"


def _left(client: psycopg.Connection, table: str, rights: str) -> None:
    owner = "fk_two" if table == "c" else "fk_one"
    client.execute(
        f"BEGIN; SET ROLE {owner}; REVOKE ALL ON fk.{table} FROM {owner}; GRANT {rights} ON fk.{table} TO {owner}"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_owner_is_asked_for_each_statement_of_a_key(client: psycopg.Connection, kind: str) -> None:
    client.execute(f"CREATE TABLE fk.c ({KINDS[kind]}, x int); INSERT INTO fk.c VALUES (1), (3)")
    for table, rights, statement, expected in STEPS:
        words = expected.split()
        _left(client, table, rights)
        found = _answer(client, statement)
        client.execute("ROLLBACK")
        assert found == dict(zip(words[::2], words[1::2], strict=True))[kind], (table, rights, statement)


def test_of_partitions_the_whole_table_counts(client: psycopg.Connection) -> None:
    client.execute(
        "CREATE TABLE fk.c (a int, b int, c int, FOREIGN KEY (a, b) REFERENCES fk.ip ON DELETE CASCADE) PARTITION BY LIST (c); "
        "CREATE TABLE fk.c1 PARTITION OF fk.c FOR VALUES IN (1); INSERT INTO fk.c VALUES (1, 1, 1)"
    )
    for owner, revoked, statement, expected in (
        ("fk_two", "DELETE ON fk.c1", "DELETE FROM fk.ip WHERE b = 1", "-"),
        ("fk_two", "DELETE ON fk.c", "DELETE FROM fk.ip WHERE b = 1", "c"),
        ("fk_two", "DELETE ON fk.c", "DELETE FROM fk.ip1 WHERE b = 1", "c"),
        ("fk_one", "SELECT ON fk.ip1", "INSERT INTO fk.c1 VALUES (1, 2, 1)", "-"),
        ("fk_one", "SELECT ON fk.ip", "INSERT INTO fk.c1 VALUES (1, 2, 1)", "ip"),
        ("fk_one", "SELECT ON fk.ip", "INSERT INTO fk.c1 VALUES (1, NULL, 1)", "-"),
    ):
        client.execute(f"BEGIN; SET ROLE {owner}; REVOKE {revoked} FROM {owner}")
        assert _answer(client, statement) == expected, (revoked, statement)
        client.execute("ROLLBACK")


def test_a_load_in_bulk_asks_too_and_temporary_tables_are_reached(client: psycopg.Connection) -> None:
    client.execute("CREATE TABLE fk.c (a int REFERENCES fk.p)")
    many = "INSERT INTO fk.c SELECT 1 FROM generate_series(1, 25000)"
    _left(client, "p", "SELECT")
    assert _answer(client, many) == "p"
    client.execute("ROLLBACK; RESET ROLE; GRANT TEMPORARY ON DATABASE postgres TO fk_one; SET ROLE fk_one")
    client.execute(
        "BEGIN; CREATE TEMP TABLE tp (a int PRIMARY KEY); CREATE TEMP TABLE tc (a int REFERENCES tp ON DELETE CASCADE); "
        "INSERT INTO tp VALUES (1); INSERT INTO tc VALUES (1); DELETE FROM tp"
    )
    assert client.execute("SELECT count(*) FROM tc").fetchone() == (0,)
