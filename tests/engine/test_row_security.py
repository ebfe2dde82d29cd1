"""Row-level security: every way in which a client reaches a table shows the rows that policies let it see, and no others."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.engine.catalog.test_dump import PG_DUMP, PSQL, needs_pg_dump
from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[object, ...]]

SCHEMA = """
    DROP TABLE IF EXISTS doc, seen CASCADE;
    CREATE TABLE doc (id int PRIMARY KEY, owner text, n int, m int, tags int[]);
    INSERT INTO doc SELECT g, CASE WHEN g % 4 = 0 THEN 'reader' ELSE 'other' END, CASE WHEN g % 4 = 0 THEN g ELSE 0 END, g, ARRAY[g]
      FROM generate_series(1, 400) g;
    CREATE INDEX ON doc (m);
    CREATE INDEX ON doc ((m + 1));
    CREATE INDEX ON doc USING gin (tags);
    CREATE TABLE seen AS SELECT * FROM doc WHERE owner = 'reader';
    GRANT ALL ON doc, seen TO reader;
    GRANT ALL ON SCHEMA public TO reader;
    CREATE POLICY own ON doc USING (owner = current_user);
    ALTER TABLE doc ENABLE ROW LEVEL SECURITY;
"""

QUERIES = (
    "SELECT id FROM {t} WHERE 1 / n = 0 ORDER BY id",
    "SELECT id FROM {t} WHERE n <> 0 OR 1 / n = 1 ORDER BY id",
    "SELECT sum(100 / n), max(m), min(m), count(*) FROM {t}",
    "SELECT max(m) FROM {t}",
    "SELECT id, x FROM (SELECT id, 100 / n AS x FROM {t}) q WHERE x > 1 ORDER BY id",
    "SELECT count(*) FROM {t} a JOIN {t} b ON a.id = b.id WHERE 1 / a.n < 2 AND 1 / b.n < 2",
    "SELECT count(*) FROM {t} a LEFT JOIN {t} b ON 100 / b.n = a.n",
    "SELECT count(*) FROM {t} a FULL JOIN {t} b ON a.id = b.id AND 100 / b.n > 3",
    "SELECT count(*) FROM {t} WHERE 1 / coalesce(nullif(n, 0), 0) = 0",
    "SELECT count(*) FROM {t} WHERE id IN (SELECT id FROM {t} t WHERE 1 / t.n >= 0)",
    "SELECT count(*) FROM {t} WHERE EXISTS (SELECT 1 FROM {t} t WHERE t.m = {t}.id AND 1 / t.n >= 0)",
    "WITH q AS (SELECT * FROM {t}) SELECT count(*) FROM q WHERE 1 / n >= 0",
    "WITH q AS MATERIALIZED (SELECT * FROM {t}) SELECT count(*) FROM q a, q b WHERE 1 / a.n >= 0 AND a.id = b.m",
    "SELECT n / 100, count(*) FROM {t} GROUP BY n / 100 HAVING min(100 / n) >= 0 ORDER BY 1",
    "SELECT id, rank() OVER (ORDER BY 100 / n, id) FROM {t} WHERE 1 / n >= 0 ORDER BY id LIMIT 3",
    "SELECT id FROM {t} WHERE 1 / n >= 0 UNION SELECT id FROM {t} WHERE 2 / n > 1000 ORDER BY 1 LIMIT 3",
    "SELECT id FROM {t} ORDER BY 1 / n, id LIMIT 3",
    "SELECT id FROM {t} ORDER BY m LIMIT 3",
    "SELECT id FROM {t} ORDER BY m DESC LIMIT 3",
    "SELECT DISTINCT 1000 / n / 100 FROM {t} ORDER BY 1",
    "SELECT id FROM {t} WHERE id = 8",
    "SELECT id FROM {t} WHERE id = 9",
    "SELECT id FROM {t} WHERE id IN (7, 8, 9) ORDER BY id",
    "SELECT id FROM {t} WHERE id BETWEEN 5 AND 13 ORDER BY id",
    "SELECT id FROM {t} WHERE m = 9 OR m = 12",
    "SELECT id FROM {t} WHERE m + 1 = 10",
    "SELECT id FROM {t} WHERE tags @> ARRAY[9]",
    "SELECT id FROM {t} WHERE tags @> ARRAY[12]",
    "SELECT g, (SELECT id FROM {t} WHERE m = g) FROM generate_series(7, 9) g ORDER BY g",
    "SELECT g.g, d.id FROM generate_series(7, 9) g LEFT JOIN {t} d ON d.id = g.g ORDER BY g",
    "SELECT count(*) FROM generate_series(1, 99) g, LATERAL (SELECT 1 / n FROM {t} d WHERE d.id = g * 4) q",
)


@pytest.fixture(scope="module")
def admin(server: ServerProcess) -> Iterator[Connection]:
    with opened(server) as conn:
        conn.execute("CREATE ROLE reader LOGIN")
        yield conn


@pytest.fixture
def reader(server: ServerProcess, admin: Connection) -> Iterator[Connection]:
    admin.execute(SCHEMA.encode())
    with opened(server, "reader") as conn:
        yield conn


def opened(server: ServerProcess, user: str = "postgres", database: str = "postgres") -> Connection:
    return psycopg.connect(
        f"host=127.0.0.1 port={server.port} user={user} dbname={database}", autocommit=True
    )


def count(conn: Connection, sql: str = "SELECT count(*) FROM doc") -> object:
    row = conn.execute(sql.encode()).fetchone()
    return None if row is None else row[0]


@pytest.mark.parametrize("executor", ["auto", "index", "local"])
@pytest.mark.parametrize("flushed", [False, True], ids=["hot", "parts"])
def test_a_query_is_as_over_a_table_of_the_visible_rows(
    admin: Connection, reader: Connection, executor: str, flushed: bool
) -> None:
    if flushed:
        admin.execute("VACUUM FULL doc")
    reader.execute(f"SET executor = {executor}".encode())
    for query in QUERIES:
        wanted = reader.execute(query.format(t="seen").encode()).fetchall()
        assert reader.execute(query.format(t="doc").encode()).fetchall() == wanted, query


def test_duckdb_keeps_conditions_above_the_policies(reader: Connection) -> None:
    reader.execute("SET executor = local")
    plan = reader.execute("EXPLAIN (VERBOSE) SELECT id FROM doc WHERE m < 10").fetchall()
    assert "OFFSET CAST('0' AS BIGINT)" in "\n".join(str(row[0]) for row in plan)


def test_executors_that_check_each_other_agree(reader: Connection) -> None:
    reader.execute("SET verify_executors = on")
    assert count(reader, "SELECT count(*) FROM doc WHERE 1 / n >= 0") == 100


def test_prepared_plans_and_caches_are_of_the_role_and_the_policies(
    admin: Connection, reader: Connection
) -> None:
    for _ in range(8):  # as often as it takes until plans are kept and short ways taken
        assert reader.execute("SELECT id FROM doc WHERE id = %s", (9,), prepare=True).fetchall() == []
        assert reader.execute("SELECT id FROM doc WHERE id = 9").fetchall() == []
        assert admin.execute("SELECT id FROM doc WHERE id = %s", (9,), prepare=True).fetchall() == [(9,)]
        assert admin.execute("SELECT id FROM doc WHERE id = 9").fetchall() == [(9,)]
    admin.execute("CREATE POLICY nine ON doc USING (id = 9)")
    assert reader.execute("SELECT id FROM doc WHERE id = %s", (9,), prepare=True).fetchall() == [(9,)]
    admin.execute("ALTER POLICY nine ON doc USING (false)")
    assert reader.execute("SELECT id FROM doc WHERE id = %s", (9,), prepare=True).fetchall() == []
    admin.execute("ALTER ROLE reader BYPASSRLS")
    assert reader.execute("SELECT id FROM doc WHERE id = %s", (9,), prepare=True).fetchall() == [(9,)]
    admin.execute("ALTER ROLE reader NOBYPASSRLS")
    assert reader.execute("SELECT id FROM doc WHERE id = %s", (9,), prepare=True).fetchall() == []
    admin.execute("ALTER TABLE doc DISABLE ROW LEVEL SECURITY")
    assert reader.execute("SELECT id FROM doc WHERE id = %s", (9,), prepare=True).fetchall() == [(9,)]


def test_a_changed_row_is_checked_each_time_a_plan_runs(admin: Connection, reader: Connection) -> None:
    """Also where a statement's rows are found by one key, which is known from its second execution on."""
    admin.execute("CREATE POLICY small ON doc AS RESTRICTIVE FOR UPDATE USING (true) WITH CHECK (m < 1000)")
    change = "UPDATE doc SET m = %s WHERE id = 8"
    for m, allowed in ((9, True), (2000, False), (10, True), (3000, False)):
        for prepare in (True, False):
            sql = change if prepare else change % m
            if allowed:
                assert reader.execute(sql, (m,) if prepare else None, prepare=prepare).rowcount == 1
                continue
            with pytest.raises(
                psycopg.errors.InsufficientPrivilege, match='row-level security policy "small"'
            ):
                reader.execute(sql, (m,) if prepare else None, prepare=prepare)
    assert reader.execute("SELECT m FROM doc WHERE id = 8").fetchall() == [(10,)]


def test_copy_shows_and_takes_what_policies_allow(reader: Connection, tmp_path: Path) -> None:
    with reader.cursor().copy("COPY doc (id) TO STDOUT") as copy:
        assert sorted(int(row[0]) for row in copy.rows()) == list(range(4, 401, 4))
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="row-level security"):
        reader.execute("COPY doc FROM STDIN")


def test_changes_in_bulk_leave_hidden_rows(admin: Connection, reader: Connection) -> None:
    for executor in ("local", "index"):
        reader.execute(f"SET executor = {executor}".encode())
        assert reader.execute("UPDATE doc SET m = m + 1 WHERE 1 / n >= 0").rowcount == 100
    assert count(admin, "SELECT count(*) FROM doc WHERE m <> id") == 100
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="new row violates"):
        reader.execute("INSERT INTO doc SELECT id + 1000, 'other', n, m FROM seen")
    assert reader.execute("DELETE FROM doc").rowcount == 100
    assert count(admin) == 300


def test_policies_of_today_count_over_the_rows_of_then(admin: Connection, reader: Connection) -> None:
    admin.execute("ALTER TABLE doc DISABLE ROW LEVEL SECURITY")
    with reader.transaction():
        assert count(reader) == 400
        before = count(reader, "SELECT now()::text")
        admin.execute("ALTER TABLE doc ENABLE ROW LEVEL SECURITY")
        assert count(reader) == 100
    assert count(reader) == 100
    assert count(reader, f"SELECT count(*) FROM doc AS OF SYSTEM TIME '{before}'") == 100
    reader.execute(f"CREATE TEMP TABLE mine AS SELECT * FROM doc AS OF SYSTEM TIME '{before}'".encode())
    assert count(reader, "SELECT count(*) FROM mine") == 100
    assert count(admin, f"SELECT count(*) FROM doc AS OF SYSTEM TIME '{before}'") == 400


def test_a_time_that_policies_of_today_do_not_fit_is_not_read(admin: Connection, reader: Connection) -> None:
    admin.execute("ALTER TABLE doc DISABLE ROW LEVEL SECURITY")
    changed = pytest.raises(psycopg.errors.InsufficientPrivilege, match="has changed since")
    with reader.transaction():
        assert count(reader) == 400
        before = count(reader, "SELECT now()::text")
        admin.execute("ALTER TABLE doc ADD COLUMN seen_by text")
        admin.execute("CREATE POLICY late ON doc AS RESTRICTIVE USING (seen_by IS NULL)")
        admin.execute("ALTER TABLE doc ENABLE ROW LEVEL SECURITY")
        with changed, reader.transaction():
            count(reader)
    with changed:
        count(reader, f"SELECT count(*) FROM doc AS OF SYSTEM TIME '{before}'")
    with changed:
        reader.execute(f"CREATE TEMP TABLE mine AS SELECT * FROM doc AS OF SYSTEM TIME '{before}'".encode())
    assert count(admin, f"SELECT count(*) FROM doc AS OF SYSTEM TIME '{before}'") == 400
    admin.execute("DROP POLICY late ON doc")


def test_subscriptions_are_refused_and_end(
    server: ServerProcess, admin: Connection, reader: Connection
) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="row-level security"):
        reader.execute("SUBSCRIBE (SELECT id FROM doc)")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="row-level security"):
        reader.execute("CREATE SUBSCRIPTION s FOR (SELECT id FROM doc)")
    admin.execute("ALTER TABLE doc DISABLE ROW LEVEL SECURITY")
    reader.execute("CREATE SUBSCRIPTION early FOR (SELECT count(*) FROM doc)")
    with reader.transaction():
        reader.execute("DECLARE c CURSOR FOR SUBSCRIBE (SELECT id FROM doc)")
        assert len(reader.execute("FETCH 400 FROM c").fetchall()) == 400
        admin.execute("ALTER TABLE doc ENABLE ROW LEVEL SECURITY")
        admin.execute("INSERT INTO doc VALUES (1001, 'other')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="the subscription ends"):
            list(map(reader.execute, ["FETCH 10 FROM c"] * 2))
        raise psycopg.Rollback
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="the subscription ends"):
        reader.execute("SUBSCRIBE SUBSCRIPTION early")
    reader.execute("DROP SUBSCRIPTION early")


def test_explain_shows_the_policies(reader: Connection) -> None:
    for executor, shown in (("index", "Filter: "), ("local", "WHERE (r2.c2 = CAST(")):
        reader.execute(f"SET executor = {executor}".encode())
        plan = reader.execute("EXPLAIN (VERBOSE) SELECT count(*) FROM doc WHERE m < 10").fetchall()
        assert shown in "\n".join(str(row[0]) for row in plan)


def test_who_turns_row_security_off_sees_all_rows_or_an_error(admin: Connection, reader: Connection) -> None:
    for conn in (admin, reader):
        conn.execute("SET row_security = off")
    assert count(admin) == 400
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="would be affected"):
        count(reader)
    assert count(reader, "SELECT count(*) FROM seen") == 100
    for conn in (admin, reader):
        conn.execute("RESET row_security")
    assert count(reader) == 100


def test_errors_and_statistics_tell_nothing_of_rows(admin: Connection, reader: Connection) -> None:
    admin.execute("ALTER TABLE doc ADD CHECK (m < 5000), ADD UNIQUE (m), ALTER n SET NOT NULL")
    for sql in (
        "INSERT INTO doc VALUES (1, 'reader', 1, 1000)",
        "INSERT INTO doc VALUES (500, 'reader', 1, 1)",
        "INSERT INTO doc VALUES (500, 'reader', 1, 6000)",
        "INSERT INTO doc VALUES (500, 'reader', NULL, 600)",
        "UPDATE doc SET m = 1 WHERE id = 4",
    ):
        with pytest.raises(psycopg.errors.IntegrityError) as caught:
            reader.execute(sql.encode())
        assert caught.value.diag.message_detail is None, sql
    admin.execute("ANALYZE doc")
    assert count(reader, "SELECT count(*) FROM pg_stats WHERE tablename = 'doc'") == 0


def test_policies_outlive_a_crash_and_are_copied(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    shown = "SELECT policyname, permissive, roles, cmd, qual, with_check FROM pg_policies ORDER BY 1"
    with opened(server) as conn:
        conn.execute("CREATE ROLE reader LOGIN")
        conn.execute(SCHEMA.encode())
        conn.execute("CREATE FUNCTION small(int) RETURNS boolean LANGUAGE sql AS 'SELECT $1 < 100'")
        conn.execute(
            "CREATE POLICY less ON doc AS RESTRICTIVE FOR ALL TO reader USING (small(m)) WITH CHECK (EXISTS (SELECT FROM seen))"
        )
        conn.execute("COMMENT ON POLICY less ON doc IS 'few'")
        before = conn.execute(shown.encode()).fetchall()
        assert len(before) == 2
    server.kill()
    server = ServerProcess(tmp_path)
    try:
        with opened(server) as conn:
            assert conn.execute(shown.encode()).fetchall() == before
            conn.execute("CREATE DATABASE other TEMPLATE postgres")
        for database in ("postgres", "other"):
            with opened(server, "reader", database) as conn:
                assert count(conn) == 24
        with opened(server, database="other") as conn:
            assert conn.execute(shown.encode()).fetchall() == before
            assert (
                count(conn, "SELECT obj_description(oid, 'pg_policy') FROM pg_policy WHERE polname = 'less'")
                == "few"
            )
            with pytest.raises(psycopg.errors.DependentObjectsStillExist):
                conn.execute("DROP FUNCTION small(int)")
        with opened(server) as conn:
            with pytest.raises(psycopg.errors.DependentObjectsStillExist) as caught:
                conn.execute("DROP ROLE reader")
            assert "1 object in database other" not in str(caught.value.diag.message_detail).splitlines()[0]
    finally:
        server.stop()


@needs_pg_dump
def test_a_dump_makes_them_anew(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    shown = "SELECT policyname, permissive, roles, cmd, qual, with_check FROM pg_policies ORDER BY 1"
    flags = "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'doc'"
    try:
        with opened(server) as conn:
            conn.execute("CREATE ROLE reader LOGIN")
            conn.execute(SCHEMA.encode())
            conn.execute(
                "CREATE POLICY ins ON doc FOR INSERT TO reader WITH CHECK (EXISTS (SELECT FROM seen WHERE seen.id = doc.id))"
            )
            conn.execute("CREATE POLICY less ON doc AS RESTRICTIVE USING (m < 100)")
            conn.execute("ALTER TABLE doc FORCE ROW LEVEL SECURITY")
            before = conn.execute(shown.encode()).fetchall()
            conn.execute("CREATE DATABASE again")
        where = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
        dump = subprocess.run([str(PG_DUMP), *where, "postgres"], capture_output=True, text=True, check=True)
        done = subprocess.run(
            [str(PSQL), *where, "-d", "again", "-v", "ON_ERROR_STOP=1", "-q"],
            input=dump.stdout, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        with opened(server, database="again") as conn:
            assert conn.execute(shown.encode()).fetchall() == before
            assert conn.execute(flags.encode()).fetchall() == [(True, True)]
            assert count(conn) == 400
        with opened(server, "reader", "again") as conn:
            assert count(conn) == 24
    finally:
        server.stop()
