"""Without GRANT a role may use what it owns, read the catalogs, and nothing else; PostgreSQL's words for the rest."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.roles import logged_in
from tests.support.server import ServerProcess

SETUP = [
    "CREATE ROLE bob",
    "CREATE TABLE private (a int PRIMARY KEY, b int)",
    "INSERT INTO private VALUES (1, 2)",
    "CREATE INDEX bounds ON private USING brin (b)",
    "CREATE INDEX keys ON private USING gin ((ARRAY[a]))",
    "CREATE VIEW window_on AS SELECT a FROM private",
    "CREATE VIEW given AS SELECT a FROM private",
    "ALTER VIEW given OWNER TO ann",
    "CREATE MATERIALIZED VIEW kept AS SELECT a FROM private",
    "CREATE SCHEMA hidden CREATE TABLE t (a int)",
    "CREATE SCHEMA own AUTHORIZATION ann",
    "CREATE TABLE own.s (x int)",
    "ALTER TABLE own.s OWNER TO ann",
]


@pytest.fixture
def ann(server: ServerProcess) -> Iterator[FieldsClient]:
    after = ("DROP SCHEMA own, hidden CASCADE", "DROP TABLE private CASCADE", "DROP ROLE bob")
    with logged_in(server, "ann", before=SETUP, after=after) as client:
        yield client


DENIED = [
    ("SELECT * FROM private", "permission denied for table private"),
    ("SELECT 1 WHERE EXISTS (SELECT FROM private)", "permission denied for table private"),
    ("SELECT * FROM window_on", "permission denied for view window_on"),
    ("SELECT * FROM kept", "permission denied for materialized view kept"),
    ("SELECT * FROM given", "permission denied for table private"),
    ("SELECT * FROM hidden.t", "permission denied for schema hidden"),
    ("INSERT INTO private VALUES (2, 2)", "permission denied for table private"),
    ("UPDATE private SET b = 1", "permission denied for table private"),
    ("DELETE FROM private", "permission denied for table private"),
    (
        "MERGE INTO private p USING own.s ON true WHEN MATCHED THEN DELETE",
        "permission denied for table private",
    ),
    (
        "MERGE INTO own.s USING private p ON true WHEN MATCHED THEN DELETE",
        "permission denied for table private",
    ),
    ("WITH d AS (DELETE FROM private RETURNING a) SELECT a FROM d", "permission denied for table private"),
    (
        "WITH q AS (SELECT a FROM private) INSERT INTO own.s SELECT a FROM q",
        "permission denied for table private",
    ),
    ("TRUNCATE private", "permission denied for table private"),
    ("COPY private TO STDOUT", "permission denied for table private"),
    ("EXPLAIN ANALYZE DELETE FROM private", "permission denied for table private"),
    ("CREATE TABLE own.copied AS SELECT * FROM private", "permission denied for table private"),
    ("CREATE MATERIALIZED VIEW own.copied AS SELECT * FROM private", "permission denied for table private"),
    ("CREATE MATERIALIZED VIEW x AS SELECT 1", "permission denied for schema public"),
    ("REFRESH MATERIALIZED VIEW kept", "must be owner of materialized view kept"),
    ("DROP MATERIALIZED VIEW kept", "must be owner of materialized view kept"),
    ("ALTER MATERIALIZED VIEW kept RENAME TO mine", "must be owner of materialized view kept"),
    ("CREATE TABLE x (a int)", "permission denied for schema public"),
    ("CREATE SCHEMA x", "permission denied for database postgres"),
    ("CREATE INDEX ON private (b)", "must be owner of table private"),
    ("ALTER TABLE private ADD c int", "must be owner of table private"),
    ("ALTER TABLE private RENAME TO mine", "must be owner of table private"),
    ("DROP TABLE private", "must be owner of table private"),
    ("DROP VIEW window_on", "must be owner of view window_on"),
    ("DROP SCHEMA hidden CASCADE", "must be owner of schema hidden"),
    ("COMMENT ON TABLE private IS 'x'", "must be owner of table private"),
    ("SELECT brin_summarize_new_values('bounds')", "must be owner of index bounds"),
    ("SELECT brin_summarize_range('bounds', 0)", "must be owner of index bounds"),
    ("SELECT brin_desummarize_range('bounds', 0)", "must be owner of index bounds"),
    ("SELECT gin_clean_pending_list('keys')", "must be owner of index keys"),
    ("SELECT rolpassword FROM pg_authid", "permission denied for table pg_authid"),
    ("SET ROLE bob", 'permission denied to set role "bob"'),
    ("CREATE ROLE eve", "permission denied to create role"),
    ("SET log_min_messages = debug1", 'permission denied to set parameter "log_min_messages"'),
]


def test_what_a_role_does_not_own_is_closed_to_it(ann: FieldsClient) -> None:
    for sql, message in DENIED:
        error = ann.fails(sql)
        assert (error["sqlstate"], error["message"]) == ("42501", message), sql


def test_indexes_of_temporary_tables_are_looked_after_by_their_session(
    server: ServerProcess, ann: FieldsClient
) -> None:
    root = connect(server.port)
    ann.run("CREATE TEMP TABLE own_rows (b int)")
    ann.run("CREATE INDEX own_bounds ON own_rows USING brin (b)")
    assert ann.run("SELECT brin_summarize_new_values('own_bounds')").rows == [("0",)]
    error = root.fails("SELECT brin_summarize_new_values(oid) FROM pg_class WHERE relname = 'own_bounds'")
    assert (error["sqlstate"], error["message"]) == (
        "0A000",
        "cannot access temporary tables of other sessions",
    )
    root.close()


def test_alter_group_asks_what_alter_role_asks(server: ServerProcess, ann: FieldsClient) -> None:
    root = connect(server.port)
    root.run("ALTER ROLE ann CREATEROLE")
    for client in (root, ann):
        for action in ("ADD", "DROP"):
            error = client.fails(f"ALTER GROUP pg_monitor {action} USER bob")
            assert (error["sqlstate"], error["message"]) == ("42939", 'role name "pg_monitor" is reserved')
    error = ann.fails("ALTER GROUP postgres ADD USER bob")
    assert (error["sqlstate"], error["message"]) == (
        "42501",
        "must be superuser to alter superuser roles or change superuser attribute",
    )
    root.run("ALTER ROLE ann NOCREATEROLE")
    assert ann.fails("ALTER GROUP pg_monitor ADD USER bob")["message"] == "permission denied"
    root.close()


def test_predefined_roles_are_members_like_others_and_stay_as_they_are(
    server: ServerProcess, ann: FieldsClient
) -> None:
    """But the one whose member is who owns the database."""
    root = connect(server.port)
    root.run("BEGIN")
    for sql in (
        "GRANT bob TO pg_monitor WITH ADMIN OPTION", "GRANT pg_read_all_data TO pg_signal_backend", "CREATE ROLE tom ROLE pg_monitor",
        "ALTER GROUP bob ADD USER pg_checkpoint", "REVOKE pg_read_all_stats FROM pg_monitor", "GRANT pg_monitor TO ann",
    ):  # fmt: skip
        root.run(sql)
    members = "SELECT pg_has_role('pg_monitor', 'tom', 'USAGE'), pg_has_role('pg_monitor', 'pg_read_all_stats', 'USAGE')"
    assert root.run(members).rows == [("t", "f")]
    root.run("GRANT SELECT ON private TO bob; SET LOCAL ROLE ann")
    assert root.run("SELECT a FROM private").rows == [("1",)]
    root.run("ROLLBACK")
    for sql, sqlstate in (
        ("GRANT bob TO pg_database_owner", "0LP01"), ("GRANT pg_database_owner TO bob", "0LP01"), ("GRANT pg_monitor TO pg_read_all_stats", "0LP01"),
        ("ALTER ROLE pg_monitor SET work_mem = '1MB'", "42939"), ("ALTER ROLE pg_monitor IN DATABASE postgres RESET ALL", "42939"),
        ("DROP OWNED BY pg_database_owner", "2BP01"), ("REASSIGN OWNED BY pg_monitor TO bob", "2BP01"),
    ):  # fmt: skip
        assert root.fails(sql)["sqlstate"] == sqlstate, sql
    assert ann.fails("ALTER ROLE pg_monitor SET work_mem = '1MB'")["sqlstate"] == "42939"
    root.close()


NOT_READ = (
    "CREATE TABLE own.n AS SELECT * FROM private WITH NO DATA", "CREATE TABLE own.n AS SELECT * FROM window_on WITH NO DATA",
    "CREATE TABLE own.n AS SELECT 1 AS a WHERE EXISTS (SELECT FROM kept) WITH NO DATA", "CREATE TABLE own.n AS SELECT pg_read_file('x') AS a WITH NO DATA",
    "CREATE MATERIALIZED VIEW own.n AS SELECT * FROM private WITH NO DATA", "CREATE VIEW own.n AS SELECT * FROM private",
    "PREPARE n AS SELECT * FROM private",
)  # fmt: skip


def test_what_is_not_read_asks_for_nothing_until_it_is(ann: FieldsClient) -> None:
    """EXPLAIN and CREATE TABLE AS EXECUTE plan it for a run, DECLARE begins one."""
    for sql in NOT_READ:
        ann.run("BEGIN")
        ann.run(sql)
        if not sql.startswith("PREPARE"):
            ann.run("SAVEPOINT s")
            query = "REFRESH MATERIALIZED VIEW own.n" if "MATERIALIZED" in sql else "SELECT * FROM own.n"
            if "VIEW" in sql:
                assert ann.fails(query)["sqlstate"] == "42501", sql
            else:
                assert ann.run(query).rows == []
        ann.run("ROLLBACK")
    for sql in ("EXECUTE n", "EXPLAIN EXECUTE n", "CREATE TABLE own.n AS EXECUTE n WITH NO DATA", f"EXPLAIN {NOT_READ[0]}", f"EXPLAIN {NOT_READ[4]}"):  # fmt: skip
        error = ann.fails(sql)
        assert (error["sqlstate"], error["message"]) == ("42501", "permission denied for table private"), sql
    ann.run("BEGIN")
    assert ann.fails("DECLARE c CURSOR FOR SELECT * FROM private")["sqlstate"] == "42501"
    ann.run("ROLLBACK")
    ann.run("DEALLOCATE n")


def test_what_a_role_owns_is_its_own(ann: FieldsClient) -> None:
    for sql in (
        "CREATE TABLE own.t (a int PRIMARY KEY)",
        "INSERT INTO own.t VALUES (1), (2)",
        "CREATE VIEW own.v AS SELECT a FROM own.t",
        "CREATE MATERIALIZED VIEW own.m AS SELECT a FROM own.t",
        "REFRESH MATERIALIZED VIEW own.m",
        "ALTER TABLE own.t ADD b text DEFAULT 'x'",
        "CREATE INDEX ON own.t (b)",
        "UPDATE own.t SET b = 'y' WHERE a = 1",
        "CREATE TEMP TABLE scratch AS SELECT * FROM own.v",
        "ALTER ROLE ann PASSWORD 'secret'",
    ):
        ann.run(sql)
    assert ann.run("SELECT b FROM own.t ORDER BY a").rows == [("y",), ("x",)]
    assert ann.run("SELECT a FROM scratch ORDER BY a").rows == [("1",), ("2",)]
    assert ann.run("SELECT count(*) > 0 FROM pg_roles").rows == [("t",)]


def test_a_plan_made_by_one_role_is_not_a_door_for_another(server: ServerProcess, ann: FieldsClient) -> None:
    root = connect(server.port)
    root.run("PREPARE p AS SELECT b FROM private WHERE a = 1")
    for _ in range(3):
        assert root.run("EXECUTE p").rows == [("2",)]
        assert root.run("SELECT b FROM private WHERE a = 1").rows == [("2",)]
    root.run("SET ROLE bob")
    assert root.fails("EXECUTE p")["sqlstate"] == "42501"
    assert root.fails("SELECT b FROM private WHERE a = 1")["sqlstate"] == "42501"
    root.run("RESET ROLE")
    assert root.run("EXECUTE p").rows == [("2",)]
    root.close()


def test_session_authorization_changes_who_one_is(server: ServerProcess, ann: FieldsClient) -> None:
    root = connect(server.port)
    root.run("SET SESSION AUTHORIZATION ann")
    assert root.run("SELECT session_user, current_user, current_setting('is_superuser')").rows == [
        ("ann", "ann", "off")
    ]
    assert root.fails("SET ROLE bob")["sqlstate"] == "42501"
    root.run("RESET SESSION AUTHORIZATION")
    assert root.run("SELECT session_user, current_user, current_setting('is_superuser')").rows == [
        ("postgres", "postgres", "on")
    ]
    root.run("BEGIN")
    root.run("SET LOCAL ROLE bob")
    assert root.run("SELECT current_user").rows == [("bob",)]
    root.run("COMMIT")
    assert root.run("SELECT current_user").rows == [("postgres",)]
    root.close()


def test_files_of_the_server_are_for_those_who_were_given_the_role(
    ann: FieldsClient, server: ServerProcess
) -> None:
    root = connect(server.port)
    read = "COPY own.s FROM '/nowhere'"
    assert "pg_read_server_files role" in ann.fails(read)["message"]
    root.run("GRANT pg_read_server_files TO ann")
    assert "server_files" in ann.fails(read)["hint"]  # now it is the directory that is not allowed
    assert "pg_write_server_files role" in ann.fails("COPY own.s TO '/nowhere'")["message"]
    root.run("REVOKE pg_read_server_files FROM ann")
    assert "pg_read_server_files role" in ann.fails(read)["message"]
    root.close()


def test_connecting_and_temporary_tables_are_rights_on_the_database(
    ann: FieldsClient, server: ServerProcess
) -> None:
    root = connect(server.port)
    try:
        root.run("REVOKE CONNECT, TEMPORARY ON DATABASE postgres FROM PUBLIC")
        error = ann.fails("CREATE TEMPORARY TABLE mine (a int)")
        assert error["message"] == 'permission denied to create temporary tables in database "postgres"'
        refused = psycopg.OperationalError
        with pytest.raises(refused, match='permission denied for database "postgres"'):
            psycopg.connect(f"host=127.0.0.1 port={server.port} user=ann dbname=postgres")
    finally:
        root.run("GRANT CONNECT, TEMPORARY ON DATABASE postgres TO PUBLIC")
        root.close()
    ann.run("CREATE TEMPORARY TABLE mine (a int)")


def test_errors_of_copy_show_what_the_user_gave(server: ServerProcess, ann: FieldsClient) -> None:
    root = connect(server.port)
    root.run(
        "CREATE TABLE rated (id int PRIMARY KEY, n int CHECK (n < 9), kept text DEFAULT 'not to be seen')"
    )
    root.run("GRANT INSERT (id, n) ON rated TO ann")
    with (
        psycopg.connect(host="127.0.0.1", port=server.port, user="ann", dbname="postgres") as conn,
        pytest.raises(psycopg.errors.CheckViolation) as failed,
        conn.cursor().copy("COPY rated (id, n) FROM STDIN") as copy,
    ):
        copy.write("1\t10\n")
    root.run("DROP TABLE rated")
    root.close()
    assert failed.value.diag.message_detail == "Failing row contains (id, n) = (1, 10)."
