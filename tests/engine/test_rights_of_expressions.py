"""EXECUTE of what stored expressions call: asked of who stores or casts a value, when it is computed (PostgreSQL 15's answers).

Ann may call neither ``check_it`` nor ``inner_of``; she owns what calls them, from the time when she could.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.roles import logged_in
from tests.support.server import ServerProcess

SETUP = (
    "CREATE SCHEMA e AUTHORIZATION ann",
    "CREATE FUNCTION check_it(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 > 0'",
    "CREATE FUNCTION spelled(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 > 0; END'",
    "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "SET ROLE ann",
    "CREATE DOMAIN e.by_sql AS int CHECK (check_it(VALUE))",
    "CREATE DOMAIN e.by_code AS int CHECK (spelled(VALUE))",
    "CREATE DOMAIN e.above AS e.by_sql",
    "CREATE DOMAIN e.counted AS int DEFAULT one()",
    "CREATE TYPE e.pair AS (a e.by_sql)",
    "CREATE TABLE e.plain (a int)",
    "INSERT INTO e.plain VALUES (1)",
    "CREATE TABLE e.of_domain (a e.by_code, b int)",
    "INSERT INTO e.of_domain VALUES (1)",
    "CREATE TABLE e.checked (a int CHECK (check_it(a)), b int)",
    "INSERT INTO e.checked VALUES (1)",
    "CREATE TABLE e.keyed (a int, b int)",
    "CREATE INDEX ON e.keyed (spelled(a))",
    "CREATE TABLE e.old (a int)",
    "ALTER TABLE e.old ADD CONSTRAINT later CHECK (check_it(a)) NOT VALID",
    "RESET ROLE",
    "REVOKE EXECUTE ON FUNCTION check_it(int), spelled(int), one() FROM PUBLIC",
)

REFUSED = (
    ("SELECT 1::e.by_sql", "check_it"),
    ("SELECT '1'::e.by_sql", "check_it"),
    ("SELECT 1::e.by_code", "spelled"),
    ("SELECT 1::e.above", "check_it"),
    ("SELECT a::e.by_sql FROM e.plain", "check_it"),
    ("SELECT ARRAY[1]::e.by_sql[]", "check_it"),
    ("SELECT jsonb_populate_record(NULL::e.pair, '{\"a\": 1}')", "check_it"),
    ("INSERT INTO e.of_domain VALUES (2)", "spelled"),
    ("UPDATE e.of_domain SET a = 2", "spelled"),
    ("INSERT INTO e.checked VALUES (2)", "check_it"),
    ("UPDATE e.checked SET b = 2", "check_it"),
    ("INSERT INTO e.keyed VALUES (2)", "spelled"),
    ("ALTER TABLE e.plain ADD CHECK (check_it(a))", "check_it"),
    ("ALTER TABLE e.plain ADD CHECK (spelled(a))", "spelled"),
    ("ALTER TABLE e.old VALIDATE CONSTRAINT later", "check_it"),
    ("ALTER TABLE e.plain ADD COLUMN c int DEFAULT one()", "one"),
    ("ALTER TABLE e.plain ADD COLUMN c e.counted", "one"),
    ("EXECUTE echo(check_it(1))", "check_it"),
    ("EXECUTE echo(spelled(1))", "spelled"),
    ("EXECUTE echo(pg_reload_conf())", "pg_reload_conf"),
    ("EXPLAIN EXECUTE echo(check_it(1))", "check_it"),
)

ALLOWED = (
    "SELECT a FROM e.of_domain",
    "UPDATE e.of_domain SET b = 2",
    "DELETE FROM e.checked",
    "DELETE FROM e.of_domain",
    "DELETE FROM e.keyed",
    "ALTER TABLE e.plain ADD CONSTRAINT unseen CHECK (check_it(a)) NOT VALID",
    "ALTER TABLE e.plain ALTER COLUMN a SET DEFAULT one()",
    "EXECUTE echo(true)",
)


@pytest.fixture(scope="module")
def ann(server: ServerProcess) -> Iterator[FieldsClient]:
    after = ("DROP FUNCTION check_it(int), spelled(int), one() CASCADE",)
    with logged_in(server, "ann", before=SETUP, after=after) as client:
        client.run("PREPARE echo AS SELECT $1::bool")
        yield client


@pytest.mark.parametrize(("sql", "function"), REFUSED)
def test_who_may_not_call_a_function_has_it_called_by_no_expression(
    ann: FieldsClient, sql: str, function: str
) -> None:
    error = ann.fails(sql)
    assert (error["sqlstate"], error["message"]) == ("42501", f"permission denied for function {function}")


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_computes_no_expression_asks_for_none(ann: FieldsClient, sql: str) -> None:
    ann.run("BEGIN")
    try:
        ann.run(sql)
    finally:
        ann.run("ROLLBACK")


def test_copy_asks_as_insert_does(ann: FieldsClient) -> None:
    for table in ("e.of_domain", "e.checked", "e.keyed"):
        error = ann.fails(f"COPY {table} (a) FROM STDIN")
        assert error["sqlstate"] == "42501"


def test_placeholders_are_kept_by_superusers_alone(server: ServerProcess, ann: FieldsClient) -> None:
    kept = "CREATE FUNCTION e.kept() RETURNS int LANGUAGE sql SET app.place = 'x' AS 'SELECT 1'"
    for sql in (
        "ALTER ROLE ann SET app.place = 'x'",
        "ALTER ROLE ann IN DATABASE postgres SET app.place = 'x'",
        kept,
    ):
        error = ann.fails(sql)
        assert (error["sqlstate"], error["message"]) == (
            "42501",
            'permission denied to set parameter "app.place"',
        )
    ann.run("ALTER ROLE ann RESET app.place")  # nothing is kept
    ann.run("SET app.place = 'x'")
    root = connect(server.port)
    root.run("ALTER ROLE ann SET app.place = 'x'")
    root.close()
    assert ann.fails("ALTER ROLE ann RESET app.place")["sqlstate"] == "42501"
    ann.run("ALTER ROLE ann RESET ALL")
    assert ann.run("SELECT rolconfig FROM pg_roles WHERE rolname = 'ann'").rows == [("{app.place=x}",)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW e.v AS SELECT NULL::shut AS x", "CREATE MATERIALIZED VIEW e.m AS SELECT NULL::shut AS x", "CREATE TABLE e.c AS SELECT NULL::shut AS x",
        "CREATE MATERIALIZED VIEW e.m AS SELECT NULL::shut AS x WITH NO DATA", "CREATE OR REPLACE VIEW e.old_view AS SELECT 1 AS a, NULL::shut AS x",
    ],
)  # fmt: skip
def test_what_has_columns_of_a_type_asks_for_it(server: ServerProcess, ann: FieldsClient, sql: str) -> None:
    root = connect(server.port)
    root.run("CREATE TYPE shut AS ENUM ('x'); REVOKE USAGE ON TYPE shut FROM PUBLIC")
    ann.run("CREATE VIEW e.old_view AS SELECT 1 AS a")
    try:
        error = ann.fails(sql)
        assert (error["sqlstate"], error["message"]) == ("42501", "permission denied for type shut")
    finally:
        ann.run("DROP VIEW e.old_view")
        root.run("DROP TYPE shut")
        root.close()
