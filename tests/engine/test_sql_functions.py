"""Users' functions: durable as all DDL, the same on every executor, run with the rights of whoever calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqllogictest.client import ServerError
from tests.support.server import ServerProcess

BODIES = """
CREATE TABLE fx (id int PRIMARY KEY, k int);
INSERT INTO fx SELECT g, g % 3 FROM generate_series(1, 10) g;
CREATE FUNCTION fx_inc(a int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a + 1';
CREATE FUNCTION fx_max(wanted int) RETURNS int LANGUAGE sql STABLE AS 'SELECT max(id) FROM fx WHERE k = wanted';
CREATE FUNCTION fx_any(wanted int) RETURNS int LANGUAGE sql AS 'SELECT id FROM fx WHERE k = wanted ORDER BY id DESC';
CREATE FUNCTION fx_rows(wanted int) RETURNS SETOF fx LANGUAGE sql AS 'SELECT * FROM fx WHERE k = $1';
CREATE FUNCTION fx_sum(a int, b int) RETURNS int LANGUAGE sql STRICT AS 'SELECT coalesce(a, 0) + coalesce(b, 0)';
"""


def test_every_executor_gives_what_functions_return(server: ServerProcess) -> None:
    server.sql(BODIES)
    queries = {
        "SELECT id, fx_inc(id), fx_any(k), fx_max(k) FROM fx WHERE id < 3 ORDER BY id": [
            ("1", "2", "10", "10"),
            ("2", "3", "8", "8"),
        ],
        "SELECT f.id, r.id FROM fx f, fx_rows(f.id) r WHERE f.id < 3 AND r.id < 6 ORDER BY 1, 2": [
            ("1", "1"),
            ("1", "4"),
            ("2", "2"),
            ("2", "5"),
        ],
        "SELECT sum(fx_sum(id, nullif(k, 0))) FROM fx": [("47",)],
    }
    for executor in ("index", "local"):
        client = server.connect()
        client.run(f"SET executor = {executor}")
        for sql, expected in queries.items():
            assert list(map(tuple, client.run(sql).rows)) == expected, (executor, sql)
        client.close()


def test_a_volatile_argument_is_evaluated_once(server: ServerProcess) -> None:
    server.sql("CREATE SEQUENCE drawn")
    server.sql(
        "CREATE FUNCTION same(a bigint) RETURNS boolean LANGUAGE sql AS 'SELECT a = a AND a IS NOT NULL'"
    )
    assert server.sql("SELECT same(nextval('drawn'))") == [("t",)]
    assert server.sql("SELECT last_value FROM drawn") == [("1",)]
    # called for every row, rather than once for all of them
    assert server.sql("SELECT same(nextval('drawn')) FROM generate_series(1, 3)") == [("t",)] * 3
    server.sql("CREATE FUNCTION drawn_next() RETURNS bigint LANGUAGE sql AS $$SELECT nextval('drawn')$$")
    assert server.sql("SELECT drawn_next() FROM generate_series(1, 3)") == [("5",), ("6",), ("7",)]


def test_functions_outlast_kill_9_and_keep_what_needs_them(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql("CREATE TABLE t (id int PRIMARY KEY)")
        server.sql("INSERT INTO t VALUES (1), (2)")
        server.sql("CREATE FUNCTION total() RETURNS bigint BEGIN ATOMIC SELECT sum(id) FROM t; END")
        server.sql("CREATE FUNCTION more(n bigint DEFAULT 40) RETURNS bigint RETURN total() + n")
        server.sql("CREATE VIEW v AS SELECT more() AS m")
        server.sql("ALTER TABLE t RENAME TO renamed")
        server.sql("ALTER TABLE renamed RENAME COLUMN id TO number")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        assert server.sql("SELECT * FROM v") == [("43",)]
        [(body,)] = server.sql("SELECT pg_get_function_sqlbody('total'::regproc)")
        assert body == "BEGIN ATOMIC\n SELECT sum(renamed.number) AS sum\n    FROM renamed;\nEND"
        for sql in ("DROP TABLE renamed", "ALTER TABLE renamed DROP COLUMN number", "DROP FUNCTION total()"):
            with pytest.raises(ServerError) as caught:
                server.sql(sql)
            assert caught.value.sqlstate == "2BP01"
        server.sql("ALTER TABLE renamed DROP COLUMN number CASCADE")
        assert server.sql("SELECT proname FROM pg_proc WHERE prolang = 14 AND oid >= 16384") == []
        assert server.sql("SELECT relname FROM pg_class WHERE relname = 'v'") == []
    finally:
        server.stop()


def test_bodies_run_with_the_rights_of_whoever_calls(server: ServerProcess) -> None:
    server.sql("CREATE ROLE fr_caller")
    server.sql("CREATE TABLE fr_secret (a int)")
    server.sql("CREATE FUNCTION fr_peek() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM fr_secret'")
    server.sql("CREATE FUNCTION fr_kept() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    server.sql("REVOKE EXECUTE ON FUNCTION fr_kept() FROM public")
    server.sql("CREATE VIEW fr_view AS SELECT fr_peek() AS p")
    server.sql("CREATE TABLE fr_target AS SELECT 1 AS a")
    server.sql("CREATE VIEW fr_through AS SELECT a FROM fr_target WHERE fr_peek() >= 0")
    server.sql("GRANT ALL ON fr_view, fr_through TO fr_caller")
    client = server.connect()
    client.run("SET ROLE fr_caller")
    denied = {
        "SELECT fr_kept()": "permission denied for function fr_kept",
        "SELECT fr_peek()": "permission denied for table fr_secret",
        # a view's owner may read the table, but the function in it is called by whoever reads the view
        "SELECT * FROM fr_view": "permission denied for table fr_secret",
        "UPDATE fr_through SET a = 1": "permission denied for table fr_secret",
    }
    for sql, message in denied.items():
        with pytest.raises(ServerError) as caught:
            client.run(sql)
        assert (caught.value.sqlstate, caught.value.message) == ("42501", message), sql
    server.sql("GRANT SELECT ON fr_secret TO fr_caller")
    server.sql("GRANT EXECUTE ON FUNCTION fr_kept() TO fr_caller")
    assert [tuple(row) for row in client.run("SELECT p, fr_kept() FROM fr_view").rows] == [("0", "1")]
    client.close()


def test_a_dropped_function_cannot_be_called_by_what_was_prepared(server: ServerProcess) -> None:
    server.sql("CREATE FUNCTION gone(a int) RETURNS int LANGUAGE sql AS 'SELECT a'")
    client = server.connect()
    client.run("PREPARE calls AS SELECT gone(7)")
    assert [tuple(row) for row in client.run("EXECUTE calls").rows] == [("7",)]
    server.sql("CREATE OR REPLACE FUNCTION gone(a int) RETURNS int LANGUAGE sql AS 'SELECT a + 1'")
    assert [tuple(row) for row in client.run("EXECUTE calls").rows] == [("8",)]
    server.sql("DROP FUNCTION gone(int)")
    with pytest.raises(ServerError) as caught:
        client.run("EXECUTE calls")
    assert caught.value.sqlstate == "42883"
    client.close()


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("CREATE FUNCTION n() RETURNS int LANGUAGE c AS 'n'", "LANGUAGE c"),
        ("CREATE FUNCTION n() RETURNS void BEGIN ATOMIC INSERT INTO nt VALUES (DEFAULT); END", "INSERT of DEFAULT in BEGIN ATOMIC"),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT n_wipe()", "a function that changes data in a cursor"),
        ("COPY (SELECT n_wipe()) TO STDOUT", "a function that changes data in COPY"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(server: ServerProcess, sql: str, construct: str) -> None:
    server.sql("CREATE TABLE IF NOT EXISTS nt (a int)")
    server.sql("CREATE OR REPLACE FUNCTION n_wipe() RETURNS void LANGUAGE sql AS 'DELETE FROM nt'")
    with pytest.raises(ServerError) as caught:
        server.sql(sql)
    assert (caught.value.sqlstate, caught.value.message) == ("0A000", f"{construct} is not supported")
