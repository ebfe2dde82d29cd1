"""Names in a schema without USAGE: whether something is called so is told by no statement and no function (PostgreSQL 15's answers)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.roles import logged_in
from tests.support.server import ServerProcess

SETUP = (
    "CREATE SCHEMA hid",
    "CREATE TABLE hid.t (a int)",
    "CREATE FUNCTION hid.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE SEQUENCE hid.s",
    "CREATE TYPE hid.e AS ENUM ('x')",
    "CREATE VIEW hid.v AS SELECT 1 AS a",
    "GRANT ALL ON hid.t, hid.v, hid.s TO ann",
    "CREATE SCHEMA own AUTHORIZATION ann",
)

REFUSED = (
    "SELECT to_regclass('hid.t')", "SELECT to_regclass('hid.gone')", "SELECT to_regproc('hid.f')", "SELECT to_regprocedure('hid.f()')",
    "SELECT to_regtype('hid.e')", "SELECT to_regtype('hid.gone')", "SELECT 'hid.t'::regclass", "SELECT 'hid.gone'::regclass",
    "SELECT has_table_privilege('hid.t', 'select')", "SELECT has_table_privilege('hid.gone', 'select')",
    "SELECT has_column_privilege('hid.t', 'a', 'select')", "SELECT has_any_column_privilege('hid.t', 'select')",
    "SELECT has_sequence_privilege('hid.s', 'usage')", "SELECT has_function_privilege('hid.f()', 'execute')",
    "SELECT has_type_privilege('hid.e', 'usage')", "SELECT row_security_active('hid.t')", "SELECT pg_get_viewdef('hid.v')",
    "SELECT pg_get_serial_sequence('hid.t', 'a')",
    "DROP TABLE IF EXISTS hid.t", "DROP TABLE IF EXISTS hid.gone", "DROP VIEW IF EXISTS hid.gone", "DROP TYPE IF EXISTS hid.gone",
    "DROP FUNCTION IF EXISTS hid.f()", "DROP FUNCTION IF EXISTS hid.gone()", "DROP AGGREGATE IF EXISTS hid.gone(int)",
    "DROP POLICY IF EXISTS p ON hid.t", "DROP POLICY IF EXISTS p ON hid.gone", "DROP TRIGGER IF EXISTS p ON hid.t",
    "DROP TRIGGER IF EXISTS p ON hid.gone", "ALTER TABLE IF EXISTS hid.gone ADD COLUMN b int",
    "ALTER TABLE IF EXISTS hid.gone RENAME TO x", "ALTER SEQUENCE IF EXISTS hid.gone RESTART", "ALTER VIEW IF EXISTS hid.gone RENAME TO x",
    "DO $$ DECLARE x hid.t.a%TYPE; BEGIN NULL; END $$", "DO $$ DECLARE x hid.t%ROWTYPE; BEGIN NULL; END $$",
)  # fmt: skip


@pytest.fixture(scope="module")
def ann(server: ServerProcess) -> Iterator[FieldsClient]:
    with logged_in(server, "ann", before=SETUP, after=("DROP SCHEMA hid, own CASCADE",)) as client:
        yield client


@pytest.mark.parametrize("sql", REFUSED)
def test_nothing_is_told_of_a_schema_without_usage(ann: FieldsClient, sql: str) -> None:
    error = ann.fails(sql)
    assert (error["sqlstate"], error["message"]) == ("42501", "permission denied for schema hid")


def test_what_is_shown_to_owners_and_watchers_alone(ann: FieldsClient) -> None:
    assert ann.run("SELECT name FROM pg_settings WHERE name = 'server_files'").rows == []
    assert ann.fails("SHOW server_files")["sqlstate"] == "42501"
    assert ann.run("SELECT pid FROM pg_stat_gssapi WHERE pid <> pg_backend_pid()").rows == []
    ann.run("CREATE SEQUENCE own.s")
    ann.run("SELECT nextval('own.s')")
    assert ann.run(
        "SELECT last_value FROM pg_sequences WHERE sequencename = 's' AND schemaname = 'own'"
    ).rows == [("1",)]


def test_who_may_create_in_a_schema_need_not_look_into_it(server: ServerProcess, ann: FieldsClient) -> None:
    root = connect(server.port)
    root.run("CREATE SCHEMA mailbox; GRANT CREATE ON SCHEMA mailbox TO ann")
    for sql in (
        "CREATE TABLE mailbox.t (a int PRIMARY KEY, CHECK (a > 0))", "CREATE TABLE mailbox.c AS SELECT 1",
        "CREATE VIEW mailbox.v AS SELECT 1", "CREATE SEQUENCE mailbox.s", "CREATE TYPE mailbox.e AS ENUM ('x')", "CREATE DOMAIN mailbox.d AS int",
        "CREATE FUNCTION mailbox.f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE TYPE mailbox.p AS (a int)",
    ):  # fmt: skip
        ann.run(sql)
    assert ann.fails("SELECT * FROM mailbox.c")["sqlstate"] == "42501"
    root.run("DROP SCHEMA mailbox CASCADE")
    root.close()
