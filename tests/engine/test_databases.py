"""Databases: each its own names, settings, channels and numbers; roles, time and the store are everybody's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.server import ServerProcess


def opened(server: ServerProcess, database: str = "postgres", user: str = "postgres") -> psycopg.Connection:
    return psycopg.connect(
        f"host=127.0.0.1 port={server.port} user={user} dbname={database}", autocommit=True
    )


@pytest.fixture
def root(server: ServerProcess) -> Iterator[psycopg.Connection]:
    with opened(server) as connection:
        connection.execute("CREATE DATABASE db_one")
        yield connection
        connection.execute("DROP DATABASE IF EXISTS db_one WITH (FORCE)")


def test_tables_of_databases_are_apart(server: ServerProcess, root: psycopg.Connection) -> None:
    with opened(server, "db_one") as one:
        one.execute("CREATE TABLE apart (a int PRIMARY KEY, b serial)")
        root.execute("CREATE TABLE apart (c text)")
        one.execute("INSERT INTO apart VALUES (1), (2)")
        root.execute("INSERT INTO apart VALUES ('x')")
        assert one.execute("SELECT a, b FROM apart ORDER BY a").fetchall() == [(1, 1), (2, 2)]
        assert root.execute("SELECT * FROM apart").fetchall() == [("x",)]
        counted = "SELECT count(*) FROM pg_class WHERE relname LIKE 'apart%'"
        assert one.execute(counted).fetchone() == (3,)
        assert root.execute(counted).fetchone() == (1,)
        for executor in ("index", "local"):
            one.execute(f"SET executor = {executor}")
            assert one.execute("SELECT sum(a) FROM apart").fetchone() == (3,)
        for named in (
            "catalog_name FROM information_schema.information_schema_catalog_name",
            "DISTINCT domain_catalog FROM information_schema.domains",
            "DISTINCT table_catalog FROM information_schema.tables",
        ):
            assert root.execute(f"SELECT {named}").fetchall() == [("postgres",)]
            assert one.execute(f"SELECT {named}").fetchall() == [("db_one",)]
        root.execute("DROP TABLE apart")
        assert one.execute("SELECT count(*) FROM apart").fetchone() == (2,)
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            one.execute("SELECT * FROM postgres.public.apart")


def test_a_plan_of_one_database_is_not_used_in_another(
    server: ServerProcess, root: psycopg.Connection
) -> None:
    root.execute("CREATE TABLE planned (a int)")
    root.execute("INSERT INTO planned VALUES (1)")
    with opened(server, "db_one") as one:
        assert root.execute("SELECT a FROM planned").fetchone() == (1,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            one.execute("SELECT a FROM planned")
        assert root.execute("SELECT current_database() FROM planned WHERE a = 1").fetchone() == ("postgres",)
        one.execute("CREATE TABLE planned (a text)")
        one.execute("INSERT INTO planned VALUES ('y')")
        assert one.execute("SELECT a FROM planned").fetchone() == ("y",)
        assert one.execute("SELECT relname FROM pg_class WHERE relname = 'planned'").fetchall() == [
            ("planned",)
        ]
    root.execute("DROP TABLE planned")
    assert root.execute("SELECT relname FROM pg_class WHERE relname = 'planned'").fetchall() == []


def test_roles_are_shared_and_say_where_they_are_needed(
    server: ServerProcess, root: psycopg.Connection
) -> None:
    root.execute("CREATE ROLE db_user LOGIN")
    with opened(server, "db_one") as one:
        one.execute("CREATE TABLE theirs (a int)")
        one.execute("ALTER TABLE theirs OWNER TO db_user")
        one.execute("CREATE TABLE given (a int)")
        one.execute("GRANT SELECT ON given TO db_user")
        with pytest.raises(psycopg.errors.DependentObjectsStillExist) as caught:
            root.execute("DROP ROLE db_user")
        assert caught.value.diag.message_detail == "2 objects in database db_one"
        with opened(server, "db_one", "db_user") as user:
            assert user.execute("SELECT count(*) FROM theirs").fetchone() == (0,)
        one.execute("DROP TABLE theirs, given")
    root.execute("DROP ROLE db_user")


def test_its_owner_makes_tables_in_public(server: ServerProcess, root: psycopg.Connection) -> None:
    root.execute("CREATE ROLE db_boss LOGIN")
    root.execute("ALTER DATABASE db_one OWNER TO db_boss")
    with opened(server, "db_one", "db_boss") as boss:
        boss.execute("CREATE TABLE mine (a int)")
        boss.execute("DROP TABLE mine")
    with opened(server, user="db_boss") as boss, pytest.raises(psycopg.errors.InsufficientPrivilege):
        boss.execute("CREATE TABLE mine (a int)")
    root.execute("ALTER DATABASE db_one OWNER TO postgres")
    root.execute("DROP ROLE db_boss")


def test_settings_begin_as_was_said(server: ServerProcess, root: psycopg.Connection) -> None:
    root.execute("CREATE ROLE db_set LOGIN")
    root.execute("ALTER DATABASE db_one SET timezone TO 'Asia/Tokyo'")
    root.execute("ALTER DATABASE db_one SET datestyle TO 'SQL, DMY'")
    root.execute("ALTER ROLE db_set IN DATABASE db_one SET datestyle TO 'German'")
    root.execute("ALTER ROLE db_set SET work_mem TO '7MB'")

    def shown(database: str, user: str, *options: str) -> tuple[str, ...]:
        with psycopg.connect(
            f"host=127.0.0.1 port={server.port} user={user} dbname={database}",
            options=" ".join(options),
        ) as connection:
            names = ("timezone", "datestyle", "work_mem")
            return tuple(str(connection.execute(f"SHOW {n}").fetchone()[0]) for n in names)  # type: ignore[index]

    assert shown("db_one", "postgres") == ("Asia/Tokyo", "SQL, DMY", "4MB")
    assert shown("db_one", "db_set") == ("Asia/Tokyo", "German, DMY", "7MB")
    assert shown("db_one", "db_set", "-c", "timezone=UTC") == ("UTC", "German, DMY", "7MB")
    assert shown("postgres", "db_set")[1:] == ("ISO, MDY", "7MB")
    root.execute("DROP ROLE db_set")


def test_nobody_becomes_somebody_else_by_a_setting(server: ServerProcess, root: psycopg.Connection) -> None:
    root.execute("CREATE ROLE db_eve LOGIN")
    root.execute("CREATE ROLE db_group")
    root.execute("CREATE ROLE db_member LOGIN IN ROLE db_group")

    def begun(user: str, options: str) -> psycopg.Connection:
        place = f"host=127.0.0.1 port={server.port} user={user} dbname=postgres"
        return psycopg.connect(place, options=options, autocommit=True)

    for setting, word in (("role", "role"), ("session_authorization", "session authorization")):
        denied = f'permission denied to set {word} "postgres"'
        with pytest.raises(psycopg.OperationalError, match=denied):
            begun("db_eve", f"-c {setting}=postgres")
        with begun("db_eve", "") as eve:
            for ask in ("SELECT set_config(%s, %s, false)", "SELECT set_config(upper(%s), %s, true)"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match=denied):
                    eve.execute(ask, (setting, "postgres"))
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=denied):
                eve.execute(f"DO $$ BEGIN PERFORM set_config('{setting}', 'postgres', true); END $$")
            assert eve.execute("SELECT current_user, session_user").fetchone() == ("db_eve", "db_eve")
    with begun("db_member", "-c role=db_group") as member:
        assert member.execute("SELECT current_user, session_user").fetchone() == ("db_group", "db_member")
        member.execute("SET ROLE db_member")
        member.execute("RESET ROLE")  # to what the session began with
        assert member.execute("SELECT current_user").fetchone() == ("db_group",)
        assert member.execute("SELECT set_config('role', 'none', false), current_user").fetchone() == (
            "none",
            "db_member",
        )
    for name in ("db_eve", "db_member", "db_group"):
        root.execute(f"DROP ROLE {name}")


def test_channels_and_advisory_locks_are_of_a_database(
    server: ServerProcess, root: psycopg.Connection
) -> None:
    with opened(server, "db_one") as one, opened(server, "db_one") as two:
        one.execute("LISTEN news")
        root.execute("NOTIFY news, 'elsewhere'")
        two.execute("NOTIFY news, 'here'")
        assert [n.payload for n in one.notifies(timeout=10, stop_after=1)] == ["here"]
        assert one.execute("SELECT pg_try_advisory_lock(5)").fetchone() == (True,)
        assert two.execute("SELECT pg_try_advisory_lock(5)").fetchone() == (False,)
        assert root.execute("SELECT pg_try_advisory_lock(5)").fetchone() == (True,)
        root.execute("SELECT pg_advisory_unlock(5)")


def test_a_snapshot_is_imported_in_its_own_database(server: ServerProcess, root: psycopg.Connection) -> None:
    with opened(server, "db_one") as one:
        root.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        (name,) = root.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        one.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="different database"):
            one.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
        root.execute("ROLLBACK")


@pytest.mark.long
def test_dropping_waits_for_nobody_who_stays(server: ServerProcess, root: psycopg.Connection) -> None:
    with opened(server, "db_one"):
        with pytest.raises(psycopg.errors.ObjectInUse) as caught:
            root.execute("DROP DATABASE db_one")
        assert caught.value.diag.message_detail == "There is 1 other session using the database."


def test_dropping_by_force_ends_who_is_there(server: ServerProcess, root: psycopg.Connection) -> None:
    with opened(server, "db_one") as one:
        one.execute("CREATE TEMP TABLE t (a int)")
        root.execute("DROP DATABASE db_one WITH (FORCE)")
        with pytest.raises(psycopg.OperationalError):
            one.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match='database "db_one" does not exist'):
        opened(server, "db_one")
    with pytest.raises(psycopg.OperationalError, match="not currently accepting connections"):
        opened(server, "template0")


def test_connections_are_limited_and_allowed(server: ServerProcess, root: psycopg.Connection) -> None:
    root.execute("CREATE ROLE db_guest LOGIN")
    root.execute("ALTER DATABASE db_one CONNECTION LIMIT 1")
    with opened(server, "db_one", "db_guest"), pytest.raises(psycopg.OperationalError, match="too many"):
        opened(server, "db_one", "db_guest")
    root.execute("ALTER DATABASE db_one CONNECTION LIMIT -1")
    root.execute("REVOKE CONNECT ON DATABASE db_one FROM public")
    with pytest.raises(psycopg.OperationalError, match='permission denied for database "db_one"'):
        opened(server, "db_one", "db_guest")
    opened(server, user="db_guest").close()
    root.execute("DROP ROLE db_guest")


def test_a_new_database_takes_its_templates_schemas(server: ServerProcess, root: psycopg.Connection) -> None:
    with opened(server, "db_one") as one:
        one.execute("CREATE SCHEMA extra")
        one.execute("COMMENT ON SCHEMA extra IS 'of the template'")
        one.execute("GRANT USAGE ON SCHEMA extra TO public")
    root.execute("CREATE DATABASE db_two TEMPLATE db_one")
    with opened(server, "db_two") as two:
        told = "SELECT obj_description(oid, 'pg_namespace'), nspacl::text FROM pg_namespace WHERE nspname = 'extra'"
        assert two.execute(told).fetchall() == [
            ("of the template", "{postgres=UC/postgres,=U/postgres}"),
        ]
    root.execute("DROP DATABASE db_two")


@pytest.mark.long
def test_databases_survive_a_crash(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    with opened(server) as root:
        root.execute("CREATE DATABASE kept")
        root.execute("CREATE DATABASE gone")
        with opened(server, "gone") as gone:
            gone.execute("CREATE TABLE t (a int)")
        with opened(server, "kept") as kept:
            kept.execute("CREATE TABLE t (a int PRIMARY KEY, n serial)")
            kept.execute("INSERT INTO t VALUES (1)")
            (before,) = kept.execute("SHOW holdfast.commit_ts").fetchone() or ("",)
            kept.execute("ALTER TABLE t ADD COLUMN late int DEFAULT 3")
            kept.execute("CREATE TEMP TABLE of_session (a int)")
            root.execute("DROP DATABASE gone")
        with opened(server) as root:
            root.execute("CREATE DATABASE copied TEMPLATE kept")
            server.kill()
    server = ServerProcess(tmp_path / "data")
    try:
        with opened(server, "kept") as kept:
            assert kept.execute("SELECT * FROM t").fetchall() == [(1, 1, 3)]
            assert kept.execute(f"SELECT * FROM t AS OF SYSTEM TIME {before}").fetchall() == [(1, 1)]
            kept.execute("INSERT INTO t VALUES (2)")
            assert kept.execute("SELECT n > 1 FROM t WHERE a = 2").fetchone() == (True,)
            assert kept.execute("SELECT relname FROM pg_class WHERE relname = 'of_session'").fetchall() == []
        with opened(server) as root:
            names = root.execute("SELECT datname FROM pg_database ORDER BY oid").fetchall()
            assert names == [("template1",), ("template0",), ("postgres",), ("kept",), ("copied",)]
        with opened(server, "copied") as copied:
            assert copied.execute("SELECT * FROM t").fetchall() == [(1, 1, 3)]
            copied.execute("INSERT INTO t VALUES (2)")
            assert copied.execute("SELECT n > 1 FROM t WHERE a = 2").fetchone() == (True,)
    finally:
        server.stop()


def test_ddl_of_one_database_does_not_wait_for_that_of_another(
    server: ServerProcess, root: psycopg.Connection
) -> None:
    statements = (
        "CREATE FUNCTION side() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ALTER FUNCTION side() IMMUTABLE",
        "DROP FUNCTION side()",
        "CREATE AGGREGATE side_sum(int) (SFUNC = int4pl, STYPE = int)",
        "DROP AGGREGATE side_sum(int)",
        "CREATE DOMAIN side_age AS int CHECK (VALUE > 0)",
        "ALTER DOMAIN side_age SET DEFAULT 1",
        "ALTER DOMAIN side_age SET NOT NULL",
        "DROP DOMAIN side_age",
        "CREATE TYPE side_kind AS ENUM ('a')",
        "DROP TYPE side_kind",
        "CREATE EXTENSION hstore",
        "DROP EXTENSION hstore CASCADE",
    )
    with opened(server, "db_one") as one, one.transaction():
        one.execute("CREATE TABLE side (a int)")
        one.execute("CREATE FUNCTION side() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        root.execute("SET lock_timeout = '5s'")
        for statement in statements:
            root.execute(statement)
        with opened(server, "db_one") as other:
            other.execute("SET lock_timeout = '200ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("CREATE DOMAIN side_here AS int")
