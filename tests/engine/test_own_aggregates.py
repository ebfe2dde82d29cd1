"""Aggregates of one's own: plans follow their definitions, other executors refuse them by name, restarts and copies keep them."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from sqllogictest.client import ServerError
from tests.support.server import ServerProcess

MADE = """
CREATE FUNCTION {0}_step(int, int) RETURNS int LANGUAGE sql STRICT AS 'SELECT $1 + $2';
CREATE AGGREGATE {0}(int) (SFUNC = {0}_step, STYPE = int);
"""


def test_plans_follow_the_aggregate_and_its_functions(server: ServerProcess) -> None:
    server.sql(MADE.format("oa"))
    with (
        psycopg.connect(server.url, autocommit=True) as reader,
        psycopg.connect(server.url, autocommit=True) as other,
    ):
        reader.execute("PREPARE q AS SELECT oa(g) FROM generate_series(1, 4) g")

        def value() -> object:
            row = reader.execute("EXECUTE q").fetchone()
            assert row is not None
            return row[0]

        assert value() == 10
        other.execute(
            "CREATE OR REPLACE FUNCTION oa_step(int, int) RETURNS int LANGUAGE sql STRICT AS 'SELECT $1 * $2'"
        )
        assert value() == 24
        other.execute("CREATE OR REPLACE AGGREGATE oa(int) (SFUNC = oa_step, STYPE = int, INITCOND = '2')")
        assert value() == 48
        other.execute(
            "CREATE OR REPLACE FUNCTION oa_step(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $2; END'"
        )
        assert value() == 4
        other.execute("ALTER AGGREGATE oa(int) RENAME TO ob")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            value()
        other.execute("ALTER AGGREGATE ob(int) RENAME TO oa")
        other.execute("REVOKE EXECUTE ON FUNCTION oa(int) FROM PUBLIC")
        assert value() == 4
        reader.execute("SET ROLE pg_monitor")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for aggregate oa"):
            value()
        other.execute("DROP FUNCTION oa_step CASCADE")
        reader.execute("RESET ROLE")
        with pytest.raises(psycopg.errors.UndefinedFunction, match=r"function oa\(integer\) does not exist"):
            value()


def test_other_executors_refuse_them_by_name(server: ServerProcess) -> None:
    server.sql(MADE.format("oc"))
    server.sql("CREATE TABLE oc_rows (k int, v int)")
    server.sql("INSERT INTO oc_rows SELECT g % 3, g FROM generate_series(1, 10) g")
    queries = ("SELECT k, oc(v) FROM oc_rows GROUP BY k", "SELECT oc(v) OVER (PARTITION BY k) FROM oc_rows")
    client = server.connect()
    for sql in queries:
        client.run("SET executor = local")
        with pytest.raises(ServerError, match="aggregate oc in this executor is not supported") as refused:
            client.run(sql)
        assert refused.value.sqlstate == "0A000"
        client.run("RESET executor")
        assert len(client.run(sql).rows) in (3, 10)
    client.close()


def test_aggregates_outlast_kill_9_and_are_in_copies(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql(MADE.format("od"))
        server.sql("CREATE VIEW of_four AS SELECT od(g) FROM generate_series(1, 4) g")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        assert server.sql("SELECT * FROM of_four") == [("10",)]
        server.sql("CREATE DATABASE copy_of_it TEMPLATE postgres")
        server.sql("DROP FUNCTION od_step CASCADE")
        with psycopg.connect(server.url, dbname="copy_of_it", autocommit=True) as copied:
            assert copied.execute("SELECT * FROM of_four").fetchone() == (10,)
            with pytest.raises(psycopg.errors.DependentObjectsStillExist):
                copied.execute("DROP FUNCTION od_step")
    finally:
        server.kill()


def test_many_rows_leave_the_loop_to_others(server: ServerProcess) -> None:
    server.sql(MADE.format("oe"))
    server.sql(
        "CREATE FUNCTION oe_slow(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + $2; END'"
    )
    server.sql("CREATE AGGREGATE oe_slow(int) (SFUNC = oe_slow, STYPE = int, INITCOND = '0')")
    with psycopg.connect(server.url, autocommit=True) as client:
        client.execute("SET statement_timeout = '100ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute("SELECT oe_slow(g ORDER BY g) FROM generate_series(1, 200000) g")
        client.execute("RESET statement_timeout")
        row = client.execute("SELECT oe(g), oe_slow(g) FROM generate_series(1, 2000) g").fetchone()
        assert row == (2001000, 2001000)
