"""Constraint triggers, transition tables and triggers of views: after a crash, in a copy of the database, in a dump; with COPY."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.engine.catalog.test_dump import PG_DUMP, PSQL, needs_pg_dump
from tests.support.server import ServerProcess

SCHEMA = """
    CREATE TABLE p (id int PRIMARY KEY);
    CREATE TABLE t (id int PRIMARY KEY, v text);
    CREATE TABLE log (n serial, what text);
    CREATE VIEW w AS SELECT id, count(*) OVER () AS c FROM t;
    CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO log (what) SELECT 'late ' || new.id || ' of ' || count(*) FROM t; RETURN NULL; END $$;
    CREATE FUNCTION sums() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO log (what) SELECT 'sum ' || sum(id) FROM made; RETURN NULL; END $$;
    CREATE FUNCTION put() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO t VALUES (new.id, 'by view'); RETURN new; END $$;
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t FROM p DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late();
    CREATE TRIGGER sums AFTER INSERT ON t REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION sums();
    CREATE TRIGGER put INSTEAD OF INSERT ON w FOR EACH ROW EXECUTE FUNCTION put();
    COMMENT ON CONSTRAINT late ON t IS 'at the end';
"""
DEFINED = (
    "SELECT pg_get_triggerdef(g.oid), conname, condeferred, tgconstrrelid::regclass::text, obj_description(c.oid, 'pg_constraint')"
    " FROM pg_trigger g LEFT JOIN pg_constraint c ON c.oid = tgconstraint WHERE NOT tgisinternal ORDER BY 1"
)


def opened(server: ServerProcess, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        f"host=127.0.0.1 port={server.port} user=postgres dbname={database}", autocommit=True
    )


def works(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    """Insert in all ways within one transaction, and see what the triggers have done."""
    with conn.transaction():
        conn.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        with conn.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write(b"3\tc\n4\td\n")
        with conn.cursor().copy("COPY w (id) FROM STDIN") as copy:
            copy.write(b"5\n6\n")
    assert [row[0] for row in conn.execute("SELECT what FROM log ORDER BY n")] == [
        "sum 3",
        "sum 7",
        "sum 5",
        "sum 6",
        *(f"late {n} of 6" for n in range(1, 7)),
    ]
    assert conn.execute("DELETE FROM t").rowcount == 6
    conn.execute("TRUNCATE log")


def test_they_outlive_a_crash_and_are_copied(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    with opened(server) as conn:
        conn.execute(SCHEMA.encode())
        defined = conn.execute(DEFINED).fetchall()
        assert len(defined) == 3
        works(conn)
    server.kill()
    server = ServerProcess(tmp_path)
    try:
        with opened(server) as conn:
            assert conn.execute(DEFINED).fetchall() == defined
            works(conn)
            conn.execute("CREATE DATABASE other TEMPLATE postgres")
        with opened(server, "other") as conn:
            assert conn.execute(DEFINED).fetchall() == defined
            works(conn)
            conn.execute("DROP TABLE p")  # and with it the trigger that is from it
            assert len(conn.execute(DEFINED).fetchall()) == 2
            conn.execute("INSERT INTO t VALUES (1)")
        with opened(server) as conn:
            works(conn)
    finally:
        assert server.stop() == 0


@needs_pg_dump
def test_they_are_dumped(server: ServerProcess) -> None:
    with opened(server) as root:
        root.execute("CREATE DATABASE dumped")
        root.execute("CREATE DATABASE restored")
        try:
            with opened(server, "dumped") as conn:
                conn.execute(SCHEMA.encode())
                defined = conn.execute(DEFINED).fetchall()
            to = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
            dump = subprocess.run([PG_DUMP, *to, "dumped"], capture_output=True, check=True, timeout=60)
            subprocess.run(
                [PSQL, "-X", "-q", "-v", "ON_ERROR_STOP=1", *to, "restored"],
                input=dump.stdout, capture_output=True, check=True, timeout=60,
            )  # fmt: skip
            with opened(server, "restored") as conn:
                found = conn.execute(DEFINED).fetchall()
                # pg_dump leaves out a comment on the constraint that a trigger is
                assert [row[:-1] for row in found] == [row[:-1] for row in defined]
                works(conn)
        finally:
            root.execute("DROP DATABASE dumped")
            root.execute("DROP DATABASE restored")


@pytest.mark.parametrize("executor", ["index", "local", "auto"])
def test_transition_tables_of_many_rows(server: ServerProcess, executor: str) -> None:
    with opened(server) as conn:
        conn.execute("CREATE SCHEMA many; SET search_path = many")
        try:
            conn.execute("CREATE TABLE t (id int, v int); CREATE TABLE log (n bigint, s bigint, o bigint)")
            conn.execute(
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                " INSERT INTO log SELECT count(*), sum(n.v), sum(o.v) FROM n JOIN o USING (id); RETURN NULL; END $$"
            )
            conn.execute("INSERT INTO t SELECT g, 1 FROM generate_series(1, 21000) g")
            conn.execute(
                "CREATE TRIGGER f AFTER UPDATE ON t REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION f()"
            )
            conn.execute(f"SET executor = {executor}".encode())
            conn.execute("UPDATE t SET v = v + 1")
            assert conn.execute("SELECT * FROM log").fetchall() == [(21000, 42000, 21000)]
        finally:
            conn.execute("RESET executor; DROP SCHEMA many CASCADE")
