"""Rows and arrays with columns and elements that have no comparison: what is compared fails where PostgreSQL 15 fails, and nowhere else.

``python -m tests.engine.test_uncompared_columns PORT`` records what PostgreSQL answers to the queries of the file beside this one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.support.server import ServerProcess

RECORDED: Final = Path(__file__).with_suffix(".json")
SETUP: Final = """
CREATE TYPE pt AS (a int, p point); CREATE TYPE nest AS (n int, q pt); CREATE TYPE arr AS (n int, q pt[]); CREATE TYPE xs AS (a int, x xid);
CREATE TYPE nxs AS (a int, x xs); CREATE TYPE ti AS (a int, b int); CREATE DOMAIN dn AS nest; CREATE TABLE t (id int, c pt, d nest, a point[], b pt[], x xs);
INSERT INTO t VALUES (1, row(1,'(1,1)'), row(1,null), '{"(1,1)"}', array[row(1,'(1,1)')::pt], row(1,'5')),
 (2, row(2,'(1,1)'), row(2,null), '{"(1,2)"}', array[row(2,'(1,1)')::pt], row(2,'5'));
"""
DOMAIN_NAMED: Final = ("array['(1,)'::dn] = array['(1,)'::dn]",)
"""Which of a domain and the type under it a message names differs."""


def _answer(client: psycopg.Connection[Any], query: str) -> list[list[str | None]] | str:
    try:
        rows = client.execute(query.encode()).fetchall()
    except psycopg.Error as error:
        return f"{error.sqlstate} {error.diag.message_primary}"
    return [[None if value is None else str(value) for value in row] for row in rows]


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(
        f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", autocommit=True
    ) as made:
        made.execute("CREATE SCHEMA uncompared; SET search_path = uncompared")
        made.execute(SETUP)
        yield made
        made.execute("DROP SCHEMA uncompared CASCADE")


@pytest.mark.parametrize("executor", ["index", "auto", "local"])
def test_comparisons_fail_where_a_column_without_one_is_met(
    client: psycopg.Connection[Any], executor: str
) -> None:
    client.execute(f"SET executor = {executor}")
    wrong = []
    for query, expected in json.loads(RECORDED.read_text()).items():
        found = _answer(client, query)
        if executor == "local" and isinstance(found, str) and found.startswith("0A000"):
            continue
        if found != expected and not any(known in query for known in DOMAIN_NAMED):
            wrong.append((query, expected, found))
    assert not wrong, "\n".join(map(str, wrong))


def test_what_columns_a_row_type_has_is_what_is_committed(server: ServerProcess) -> None:
    at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    compared = "SELECT array[row(1, row(1))::outer_row] = array[row(1, row(1))::outer_row]"
    refused = "42883 could not identify an equality operator for type outer_row"
    with psycopg.connect(at, autocommit=True) as one, psycopg.connect(at, autocommit=True) as other:
        one.execute("CREATE TYPE inner_row AS (a int); CREATE TYPE outer_row AS (n int, q inner_row)")
        assert _answer(one, compared) == [["True"]]
        one.execute("BEGIN")
        one.execute("ALTER TYPE inner_row ADD ATTRIBUTE j json")
        assert _answer(other, compared) == [["True"]]
        one.execute("ROLLBACK")
        assert _answer(one, compared) == [["True"]]
        one.execute("ALTER TYPE inner_row ADD ATTRIBUTE j json")
        compared = compared.replace("row(1))", "row(1, NULL))")
        assert _answer(one, compared) == refused
        one.execute("ALTER TYPE inner_row ALTER ATTRIBUTE j TYPE text")
        assert _answer(other, compared) == [["True"]]
        one.execute("DROP TYPE outer_row, inner_row")


def test_what_compares_columns_can_be_stored(client: psycopg.Connection[Any]) -> None:
    client.execute("SET executor = auto")
    client.execute("CREATE VIEW compared AS SELECT id, d = '(1,)'::nest AS e FROM t")
    assert (
        _answer(client, "SELECT * FROM compared")
        == "42883 could not identify an equality operator for type pt"
    )
    assert _answer(client, "SELECT * FROM compared WHERE id = 2") == [["2", "False"]]
    client.execute(
        "CREATE FUNCTION same(nest, nest) RETURNS bool LANGUAGE sql RETURN $1 = $2; CREATE TABLE kept (d nest CHECK (d <> '(1,)'::nest))"
    )
    assert _answer(client, "SELECT same('(1,)', '(2,)')") == [["False"]]
    assert (
        _answer(client, "SELECT same('(1,)', '(1,)')")
        == "42883 could not identify an equality operator for type pt"
    )
    client.execute("INSERT INTO kept VALUES ('(2,)')")
    assert (
        _answer(client, "INSERT INTO kept VALUES ('(1,)')")
        == "42883 could not identify an equality operator for type pt"
    )


if __name__ == "__main__":
    with psycopg.connect(
        f"host=127.0.0.1 port={sys.argv[1]} user=postgres dbname=postgres", autocommit=True
    ) as theirs:
        theirs.execute(
            "DROP SCHEMA IF EXISTS uncompared CASCADE; CREATE SCHEMA uncompared; SET search_path = uncompared"
        )
        theirs.execute(SETUP)
        answers = {query: _answer(theirs, query) for query in json.loads(RECORDED.read_text())}
        RECORDED.write_text(json.dumps(answers, indent=0) + "\n")
