"""Expressions that a table's owner wrote for its indexes run with the owner's rights, whoever changes the table's definition.

What PostgreSQL 15 does: it computes them anew where ALTER TABLE rewrites rows, as the owner and restricted (SET ROLE is 42501).
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess

ROLE = "expr_owner"
INDEXES = {
    "expression": "CREATE INDEX ON expr_s.q (expr_s.who(a))",
    "unique expression": "CREATE UNIQUE INDEX ON expr_s.q (expr_s.who(a))",
    "condition": "CREATE INDEX ON expr_s.q (a) WHERE expr_s.who(a) > 0",
    "both": "CREATE INDEX ON expr_s.q (expr_s.who(a)) WHERE expr_s.who(a) > 0",
}
CHANGES = (
    "ALTER TABLE expr_s.q ADD COLUMN d float DEFAULT random()",
    "ALTER TABLE expr_s.q ADD COLUMN d int GENERATED ALWAYS AS IDENTITY",
    "ALTER TABLE expr_s.q ADD COLUMN d serial",
    "ALTER TABLE expr_s.q ADD COLUMN d int GENERATED ALWAYS AS (a + 1) STORED",
    "ALTER TABLE expr_s.q ALTER b TYPE bigint",
    "ALTER TABLE expr_s.q ALTER b TYPE text USING b || 'x'",
    "ALTER TABLE expr_s.q ADD EXCLUDE (a WITH =)",
    "CREATE INDEX ON expr_s.q (expr_s.who(a + 1))",
    "REINDEX TABLE expr_s.q",
    "CREATE TABLE expr_s.p (a int, b int) PARTITION BY RANGE (a); CREATE INDEX ON expr_s.p (expr_s.who(a)); "
    "ALTER TABLE expr_s.p OWNER TO expr_owner; ALTER TABLE expr_s.p ATTACH PARTITION expr_s.q DEFAULT",
)


@pytest.fixture
def table(server: ServerProcess) -> Iterator[ServerProcess]:
    server.sql(f"CREATE ROLE {ROLE}; CREATE SCHEMA expr_s AUTHORIZATION {ROLE}")
    server.sql(
        f"SET ROLE {ROLE}; CREATE TABLE expr_s.q (a int, b int); INSERT INTO expr_s.q VALUES (1, 1), (2, 2);"
        "CREATE FUNCTION expr_s.who(x int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE NOTICE 'as %', current_user; BEGIN PERFORM set_config('role', 'postgres', false); RAISE NOTICE 'as anybody'; "
        "EXCEPTION WHEN insufficient_privilege THEN NULL; END; RETURN x; END $$"
    )
    yield server
    server.sql(f"DROP OWNED BY {ROLE} CASCADE; DROP ROLE {ROLE}")


@pytest.mark.parametrize("index", INDEXES)
def test_who_changes_a_table_lends_its_owner_no_rights(table: ServerProcess, index: str) -> None:
    table.sql(f"SET ROLE {ROLE}; {INDEXES[index]}")
    for change in CHANGES:
        heard: list[str] = []
        with psycopg.connect(table.url) as connection:
            connection.add_notice_handler(
                lambda notice, heard=heard: heard.append(str(notice.message_primary))
            )
            connection.execute(change.encode())
            connection.rollback()
        said = {message for message in heard if message.startswith("as ")}
        assert said <= {f"as {ROLE}"}, change
        computes_nothing = (
            change.startswith("REINDEX")
            or "EXCLUDE" in change
            or ("ATTACH" in change and index == "expression")
        )
        assert said or computes_nothing, change
