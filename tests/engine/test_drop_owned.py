"""DROP OWNED by a member of the role takes what the member could revoke, and no more (PostgreSQL 15's answers)."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess

GRANTS = {
    "table": (
        "GRANT SELECT ON do_s.t TO do_group",
        "SELECT has_table_privilege('do_group', 'do_s.t', 'SELECT')",
        '"t"',
    ),
    "column": (
        "GRANT SELECT (a) ON do_s.t TO do_group",
        "SELECT has_column_privilege('do_group', 'do_s.t', 'a', 'SELECT')",
        'column "a" of relation "t"',
    ),
    "sequence": (
        "GRANT USAGE ON SEQUENCE do_s.q TO do_group",
        "SELECT has_sequence_privilege('do_group', 'do_s.q', 'USAGE')",
        '"q"',
    ),
    "schema": (
        "GRANT CREATE ON SCHEMA do_s TO do_group",
        "SELECT has_schema_privilege('do_group', 'do_s', 'CREATE')",
        '"do_s"',
    ),
    "function": (
        "GRANT EXECUTE ON FUNCTION do_s.f() TO do_group",
        "SELECT has_function_privilege('do_group', 'do_s.f()', 'EXECUTE')",
        '"f"',
    ),
    "type": (
        "GRANT USAGE ON TYPE do_s.e TO do_group",
        "SELECT has_type_privilege('do_group', 'do_s.e', 'USAGE')",
        '"e"',
    ),
}


@pytest.fixture
def roles(server: ServerProcess) -> Iterator[ServerProcess]:
    server.sql(
        "CREATE ROLE do_owner; CREATE ROLE do_group; CREATE ROLE do_member IN ROLE do_group;"
        "CREATE SCHEMA do_s; GRANT CREATE ON SCHEMA do_s TO do_owner;"
        "CREATE TABLE do_s.t (a int); CREATE SEQUENCE do_s.q; CREATE TYPE do_s.e AS ENUM ('x');"
        "CREATE FUNCTION do_s.f() RETURNS int LANGUAGE sql AS 'SELECT 1';"
        "REVOKE ALL ON FUNCTION do_s.f() FROM public; REVOKE ALL ON TYPE do_s.e FROM public"
    )
    yield server
    server.sql(
        "DROP SCHEMA do_s CASCADE; DROP OWNED BY do_owner, do_group, do_member; DROP ROLE do_member, do_group, do_owner"
    )


@pytest.mark.parametrize("kind", GRANTS)
@pytest.mark.parametrize("member", [True, False])
def test_a_member_takes_nothing_that_others_granted_to_the_role(
    roles: ServerProcess, kind: str, member: bool
) -> None:
    grant, holds, named = GRANTS[kind]
    roles.sql(grant)
    heard: list[str] = []
    with psycopg.connect(roles.url, autocommit=True) as connection:
        connection.add_notice_handler(lambda n: heard.append(f"{n.sqlstate} {n.message_primary}"))
        connection.execute(f"SET ROLE {'do_member' if member else 'postgres'}".encode())
        if member and kind == "sequence":  # goes on to columns, of which USAGE shows none
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="tableoid"):
                connection.execute("DROP OWNED BY do_group")
        else:
            connection.execute("DROP OWNED BY do_group")
        connection.execute("RESET ROLE")
        row = connection.execute(holds.encode()).fetchone()
    assert row == (member,)
    if member and kind == "sequence":
        return
    assert heard == ([f"01006 no privileges could be revoked for {named}"] if member else [])
