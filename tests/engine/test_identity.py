"""Sessions are roles by oid: what has the name of one that was dropped or renamed is somebody else (manual 22, ALTER ROLE)."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[object, ...]]


def opened(server: ServerProcess, user: str = "postgres") -> Connection:
    return psycopg.connect(host="127.0.0.1", port=server.port, user=user, dbname="postgres", autocommit=True)


@pytest.fixture
def root(server: ServerProcess) -> Iterator[Connection]:
    with opened(server) as conn:
        for name in ("eve", "eve_too", "group_of_eve"):
            conn.execute(f"DROP ROLE IF EXISTS {name}".encode())
        conn.execute("CREATE ROLE eve LOGIN")
        conn.execute("CREATE TABLE of_root (a int)")
        yield conn
        conn.execute("DROP TABLE of_root")
        for name in ("eve", "eve_too", "group_of_eve"):
            conn.execute(f"DROP ROLE IF EXISTS {name}".encode())


def test_a_renamed_role_is_who_it_was(server: ServerProcess, root: Connection) -> None:
    with opened(server, user="eve") as eve:
        root.execute("ALTER ROLE eve RENAME TO eve_too")
        root.execute("CREATE ROLE eve SUPERUSER LOGIN")
        assert eve.execute("SELECT current_user, session_user").fetchone() == ("eve_too", "eve_too")
        for sql in ("SELECT a FROM of_root", "CREATE ROLE worse", "SET log_statement = 'all'"):
            with pytest.raises(errors.InsufficientPrivilege):
                eve.execute(sql.encode())
        shown = "SELECT usename FROM pg_stat_activity WHERE pid = %s"
        assert root.execute(shown, (eve.info.backend_pid,)).fetchone() == ("eve_too",)


def test_a_dropped_role_is_nobody(server: ServerProcess, root: Connection) -> None:
    with opened(server, user="eve") as eve:
        eve.execute("PREPARE one AS SELECT 1")
        root.execute("DROP ROLE eve")
        root.execute("CREATE ROLE eve SUPERUSER LOGIN")
        for sql in ("SELECT a FROM of_root", "EXECUTE one", "SELECT current_user", "CREATE ROLE worse"):
            with pytest.raises(errors.UndefinedObject, match=r"^role with OID \d+ does not exist"):
                eve.execute(sql.encode())
        with pytest.raises(errors.InsufficientPrivilege):
            eve.execute("SET SESSION AUTHORIZATION eve")
        shown = "SELECT usename IS NULL FROM pg_stat_activity WHERE pid = %s"
        assert root.execute(shown, (eve.info.backend_pid,)).fetchone() == (True,)


def test_one_may_leave_a_role_that_was_dropped(server: ServerProcess, root: Connection) -> None:
    root.execute("CREATE ROLE group_of_eve ROLE eve")
    with opened(server, user="eve") as eve:
        eve.execute("SET ROLE group_of_eve")
        root.execute("DROP ROLE group_of_eve")
        with pytest.raises(errors.UndefinedObject):
            eve.execute("SELECT 1")
        eve.execute("RESET ROLE")
        assert eve.execute("SELECT current_user").fetchone() == ("eve",)


def test_a_name_that_is_another_roles_now_brings_nothing_of_the_ones_before(
    server: ServerProcess, root: Connection
) -> None:
    root.execute("CREATE ROLE group_of_eve ROLE eve")
    root.execute("GRANT SELECT ON of_root TO group_of_eve")
    root.execute("CREATE SCHEMA of_group AUTHORIZATION group_of_eve")
    with opened(server, user="eve") as eve:
        eve.execute("SET ROLE group_of_eve")
        root.execute("ALTER ROLE group_of_eve RENAME TO eve_too")
        root.execute("CREATE ROLE group_of_eve ROLE eve")
        eve.execute("SET search_path = of_group, public")
        eve.execute("SELECT a FROM of_root")
        assert eve.execute("SELECT current_schema").fetchone() == ("of_group",)
        eve.execute("SET ROLE group_of_eve")  # what the setting holds already
        assert eve.execute("SELECT current_schema").fetchone() == ("public",)
        with pytest.raises(errors.InsufficientPrivilege):
            eve.execute("SELECT a FROM of_root")
        eve.execute("SET ROLE eve_too")
        eve.execute("SELECT a FROM of_root")
    root.execute("DROP SCHEMA of_group")


def test_rights_that_are_taken_away_are_gone_in_open_sessions(
    server: ServerProcess, root: Connection
) -> None:
    root.execute("ALTER ROLE eve SUPERUSER")
    with opened(server, user="eve") as eve:
        eve.execute("SET log_min_duration_statement = 60000")
        root.execute("ALTER ROLE eve NOSUPERUSER")
        with pytest.raises(errors.InsufficientPrivilege):
            eve.execute("SET log_min_duration_statement = 0")


def test_members_see_and_end_what_their_roles_do(server: ServerProcess, root: Connection) -> None:
    root.execute("CREATE ROLE eve_too LOGIN")
    query = "SELECT query <> '<insufficient privilege>' FROM pg_stat_activity WHERE pid = %s"
    with opened(server, user="eve") as eve, opened(server, user="eve_too") as other:
        assert eve.execute(query, (other.info.backend_pid,)).fetchone() == (False,)
        with pytest.raises(errors.InsufficientPrivilege):
            eve.execute("SELECT pg_terminate_backend(%s)", (other.info.backend_pid,))
        root.execute("GRANT eve_too TO eve")
        assert eve.execute(query, (other.info.backend_pid,)).fetchone() == (True,)
        assert eve.execute("SELECT pg_terminate_backend(%s)", (other.info.backend_pid,)).fetchone() == (True,)


def test_the_connections_of_a_role_are_limited(server: ServerProcess, root: Connection) -> None:
    root.execute("ALTER ROLE eve CONNECTION LIMIT 1")
    with opened(server, user="eve"):
        with pytest.raises(psycopg.OperationalError, match='too many connections for role "eve"'):
            opened(server, user="eve")
        root.execute("ALTER ROLE eve SUPERUSER")
        opened(server, user="eve").close()


def test_the_past_is_read_with_the_rights_of_today(server: ServerProcess, root: Connection) -> None:
    root.execute("CREATE SCHEMA closed_later")
    root.execute("CREATE TABLE closed_later.t (a int)")
    root.execute("CREATE TABLE of_eve (a int)")
    root.execute("CREATE TABLE dropped (a int)")
    root.execute("GRANT USAGE ON SCHEMA closed_later TO eve")
    root.execute("GRANT SELECT ON of_root, dropped, closed_later.t TO eve")
    root.execute("ALTER TABLE of_eve OWNER TO eve")
    root.execute("SELECT lo_create(7001)")
    root.execute("GRANT SELECT ON LARGE OBJECT 7001 TO eve")
    root.execute("CREATE ROLE eve_too LOGIN SUPERUSER")
    root.execute("CREATE ROLE group_of_eve ROLE eve")
    moment = root.execute("SHOW holdfast.commit_ts").fetchone()
    assert moment is not None
    then = f"AS OF SYSTEM TIME {moment[0]}"
    tables = ("of_root", "of_eve", "dropped", "closed_later.t")
    with opened(server, user="eve") as eve, opened(server, user="eve_too") as fallen:
        reading = opened(server, user="eve")
        reading.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        for table in tables:
            eve.execute(f"SELECT * FROM {table} {then}".encode())
            reading.execute(f"SELECT * FROM {table}".encode())
        fallen.execute(f"SELECT rolname FROM pg_authid {then}".encode())
        root.execute("REVOKE group_of_eve FROM eve")
        eve.execute(f"BEGIN {then}".encode())
        for sql in ("SET ROLE group_of_eve", "SET SESSION AUTHORIZATION eve_too"):
            with pytest.raises(errors.InsufficientPrivilege), eve.transaction():
                eve.execute(sql.encode())
        eve.execute("ROLLBACK")
        eve.execute(f"SELECT lo_get(7001) {then}".encode())
        root.execute("REVOKE SELECT ON LARGE OBJECT 7001 FROM eve")
        with pytest.raises(errors.InsufficientPrivilege):
            eve.execute(f"SELECT lo_get(7001) {then}".encode())
        root.execute("SELECT lo_unlink(7001)")
        root.execute("REVOKE SELECT ON of_root FROM eve")
        root.execute("REVOKE USAGE ON SCHEMA closed_later FROM eve")
        root.execute("ALTER TABLE of_eve OWNER TO postgres")
        root.execute("ALTER ROLE eve_too NOSUPERUSER")
        root.execute("DROP TABLE dropped")
        with pytest.raises(
            errors.InsufficientPrivilege
        ):  # what is dropped is its last owner's and superusers'
            eve.execute(f"SELECT * FROM dropped {then}".encode())
        for table in ("of_root", "of_eve", "closed_later.t"):
            with pytest.raises(errors.InsufficientPrivilege):
                eve.execute(f"SELECT * FROM {table} {then}".encode())
            with pytest.raises(errors.InsufficientPrivilege):
                eve.execute(f"CREATE TEMP TABLE kept AS SELECT * FROM {table} {then}".encode())
        with pytest.raises(errors.InsufficientPrivilege):
            reading.execute("SELECT * FROM of_root")
        for table in ("of_root", "pg_authid"):
            with pytest.raises(errors.InsufficientPrivilege):
                fallen.execute(f"SELECT * FROM {table} {then}".encode())
        reading.close()
        root.execute("DROP TABLE of_eve")
        root.execute("DROP SCHEMA closed_later CASCADE")
        root.execute("DROP ROLE eve_too")
        with pytest.raises(errors.UndefinedObject):
            fallen.execute(f"SELECT 1 {then}".encode())
