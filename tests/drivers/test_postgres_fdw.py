"""postgres_fdw: a PostgreSQL 15 that reads and writes Holdfast's tables as foreign ones."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.support.postgres import postgres, url_of
from tests.support.server import ServerProcess

__all__ = ["postgres"]
pytestmark = pytest.mark.long

TABLES = """
CREATE SCHEMA near;
CREATE TABLE near.item (id int PRIMARY KEY, name varchar(40) NOT NULL, price numeric(8,2) DEFAULT 0, tags text[], at timestamptz);
CREATE TABLE near.orders (id bigint PRIMARY KEY, item int, n smallint);
INSERT INTO near.item SELECT g, 'n' || g, g, '{a,b}', '2024-01-02 03:04:05+00' FROM generate_series(1, 500) g;
INSERT INTO near.orders SELECT g, g % 500 + 1, 2 FROM generate_series(1, 300) g
"""


class Witness:
    """psql on the PostgreSQL that has the foreign tables."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, script: str) -> tuple[list[str], str]:
        """Run statements in one session; return the lines of rows and what was reported."""
        done = subprocess.run(
            ["psql", "-X", "-q", "-A", "-t", "-d", self.url, "-f", "-"],
            input=script, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.stdout.splitlines(), done.stderr

    def rows(self, script: str) -> list[str]:
        lines, said = self.run(script)
        assert "ERROR" not in said, said
        return lines


@pytest.fixture(scope="module")
def witness(postgres: str, server: ServerProcess) -> Iterator[Witness]:
    for statement in TABLES.split(";\n"):
        server.sql(statement)
    made = Witness(url_of(postgres))
    if made.run("CREATE EXTENSION postgres_fdw")[1]:
        pytest.skip("this PostgreSQL has no postgres_fdw")
    made.rows(
        "CREATE SERVER holdfast FOREIGN DATA WRAPPER postgres_fdw OPTIONS"
        f" (host '127.0.0.1', port '{server.port}', dbname 'postgres', fetch_size '50', batch_size '10');"
        "CREATE USER MAPPING FOR postgres SERVER holdfast OPTIONS (user 'postgres'); CREATE SCHEMA far;"
        "IMPORT FOREIGN SCHEMA near FROM SERVER holdfast INTO far;"
    )
    yield made
    made.rows("SET client_min_messages = error; DROP SCHEMA far CASCADE; DROP EXTENSION postgres_fdw CASCADE")


def test_imported_columns_have_their_types(witness: Witness) -> None:
    columns = witness.rows(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
        " WHERE attrelid = 'far.item'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert columns == [
        "id|integer|t", "name|character varying(40)|t", "price|numeric(8,2)|f", "tags|text[]|f",
        "at|timestamp with time zone|f",
    ]  # fmt: skip


def test_reads_push_down(witness: Witness) -> None:
    assert witness.rows(
        "SELECT count(*), sum(price), min(tags), max(at AT TIME ZONE 'UTC') FROM far.item"
    ) == ["500|125250.00|{a,b}|2024-01-02 03:04:05"]
    join = "SELECT o.id, i.name FROM far.orders o JOIN far.item i ON i.id = o.item WHERE i.name LIKE 'n2%' ORDER BY 1 LIMIT 3"
    assert any(
        "INNER JOIN" in line and "LIMIT 3" in line for line in witness.rows(f"EXPLAIN (VERBOSE) {join}")
    )
    assert witness.rows(join) == ["1|n2", "19|n20", "20|n21"]


def test_writes_go_through(witness: Witness, server: ServerProcess) -> None:
    inserted = witness.rows(
        "INSERT INTO far.item SELECT g, 'n' || g, 1 FROM generate_series(1000, 1100) g RETURNING id"
    )
    assert inserted == [str(n) for n in range(1000, 1101)]
    witness.rows("UPDATE far.item SET price = price + 1 WHERE id BETWEEN 1000 AND 1010")
    witness.rows("UPDATE far.item SET name = name || pg_backend_pid() WHERE id = 1011")  # by ctid, row by row
    witness.rows("DELETE FROM far.item WHERE id > 1090")
    witness.rows("COPY far.item FROM stdin;\n6000\tcopied\t2.5\t\\N\t\\N\n\\.\n")
    assert server.sql(
        "SELECT count(*), sum(price), count(*) FILTER (WHERE name = 'n1011') FROM near.item WHERE id >= 1000"
    ) == [("92", "104.50", "0")]


def test_remote_transactions(witness: Witness, server: ServerProcess) -> None:
    witness.rows(
        "BEGIN; INSERT INTO far.item VALUES (7000, 'x', 1); SAVEPOINT s; INSERT INTO far.item VALUES (7001, 'x', 1);"
        "ROLLBACK TO s; COMMIT; BEGIN; INSERT INTO far.item VALUES (7002, 'x', 1); ROLLBACK"
    )
    assert server.sql("SELECT id FROM near.item WHERE id >= 7000") == [("7000",)]
    witness.rows("TRUNCATE far.orders")
    assert server.sql("SELECT count(*) FROM near.orders") == [("0",)]


def test_errors_come_back(witness: Witness) -> None:
    said = witness.run("\\set VERBOSITY verbose\nINSERT INTO far.item VALUES (1, 'again', 1)")[1]
    assert 'ERROR:  23505: duplicate key value violates unique constraint "item_pkey"' in said
    assert "DETAIL:  Key (id)=(1) already exists." in said
