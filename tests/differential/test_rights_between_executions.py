"""Prepared statements run again after somebody else changed rights, policies or owners: each answers as on PostgreSQL.

Every way to a table is asked twice after each change: what a session has planned, prepared or kept must not outlive a right.
"""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

STATEMENTS: tuple[tuple[str, tuple[int, ...] | None], ...] = (
    ("SELECT * FROM kept WHERE a = %s", (2,)),
    ("SELECT v FROM kept WHERE a = 2", None),
    ("SELECT a FROM kept WHERE a = %s", (2,)),
    ("SELECT count(*) FROM kept", ()),
    ("SELECT * FROM kept WHERE a = %s FOR UPDATE", (2,)),
    ("INSERT INTO kept VALUES (%s, 'rights_b', 5) ON CONFLICT (a) DO NOTHING", (50,)),
    ("INSERT INTO kept VALUES (nextval('kept_ids') + %s, 'rights_b', 5)", (100,)),
    ("UPDATE kept SET v = v + 1 WHERE a = %s", (2,)),
    ("UPDATE kept SET v = v WHERE a = 2", None),
    ("UPDATE kept SET w = 'rights_b' WHERE a = %s", (1,)),
    ("DELETE FROM kept WHERE a = %s", (99,)),
)
CHANGES = (
    "GRANT ALL ON kept TO rights_a",
    "REVOKE SELECT ON kept FROM rights_a",
    "GRANT SELECT (a) ON kept TO rights_a",
    "GRANT SELECT ON kept TO rights_a",
    "REVOKE UPDATE ON kept FROM rights_a",
    "GRANT UPDATE (v) ON kept TO rights_a",
    "GRANT UPDATE ON kept TO rights_a",
    "ALTER TABLE kept ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY p ON kept USING (w = current_user)",
    "ALTER POLICY p ON kept USING (true) WITH CHECK (w = 'rights_a')",
    "DROP POLICY p ON kept",
    "ALTER TABLE kept OWNER TO rights_a",
    "ALTER TABLE kept FORCE ROW LEVEL SECURITY",
    "ALTER TABLE kept OWNER TO postgres",
    "ALTER TABLE kept DISABLE ROW LEVEL SECURITY",
    "GRANT ALL ON kept TO rights_a",
    "REVOKE USAGE ON SCHEMA kept_rights FROM rights_a",
    "GRANT USAGE ON SCHEMA kept_rights TO rights_a",
    "REVOKE USAGE ON SEQUENCE kept_ids FROM rights_a",
    "GRANT USAGE ON SEQUENCE kept_ids TO rights_a",
    "ALTER ROLE rights_a SUPERUSER",
    "ALTER ROLE rights_a NOSUPERUSER",
    "GRANT rights_b TO rights_a",
    "REVOKE ALL ON kept FROM rights_a",
    "GRANT ALL ON kept TO rights_b",
    "REVOKE rights_b FROM rights_a",
)
SETUP = (
    "CREATE ROLE rights_a LOGIN", "CREATE ROLE rights_b LOGIN", "CREATE SCHEMA kept_rights",
    "GRANT USAGE ON SCHEMA kept_rights TO rights_a, rights_b", "SET search_path = kept_rights",
    "CREATE TABLE kept (a int PRIMARY KEY, w text, v int)", "CREATE SEQUENCE kept_ids",
    "GRANT USAGE ON SEQUENCE kept_ids TO rights_a, rights_b",
    "INSERT INTO kept VALUES (1, 'rights_a', 1), (2, 'rights_b', 2), (3, 'rights_a', 3)",
)  # fmt: skip
TEARDOWN = ("DROP SCHEMA kept_rights CASCADE", "DROP ROLE rights_a, rights_b")


def outcome(user: psycopg.Connection[TupleRow], statement: str, values: tuple[int, ...] | None) -> Any:
    try:
        done = user.execute(statement.encode(), values)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary
    return done.fetchall() if done.description else done.rowcount


def play(admin_dsn: str, changes: list[str]) -> list[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = []
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        for statement in SETUP:
            admin.execute(statement.encode())
        try:
            as_user = psycopg.conninfo.make_conninfo(
                admin_dsn, user="rights_a", options="-c search_path=kept_rights"
            )
            with psycopg.connect(as_user, autocommit=True, prepare_threshold=0) as user:
                for change in ["SELECT 1", *changes]:
                    admin.execute(change.encode())
                    for statement, values in STATEMENTS:
                        for _ in range(2):
                            found.append((change, statement, outcome(user, statement, values)))
                    found.append((change, "SET ROLE", outcome(user, "SET ROLE rights_b", ())))
                    for statement, values in STATEMENTS[:3]:
                        found.append((change, f"then {statement}", outcome(user, statement, values)))
                    user.execute("RESET ROLE")
                    admin.execute("DELETE FROM kept WHERE a >= 50")
        finally:
            for statement in TEARDOWN:
                admin.execute(statement.encode())
    return found


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_rights_hold_for_what_is_prepared(server: ServerProcess, postgres: str, seed: int) -> None:
    changes = list(CHANGES)
    if seed:
        random.Random(seed).shuffle(changes)
        changes = [c for c in changes if "POLICY" not in c]  # which want an order
    ours = play(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", changes)
    theirs = play(postgres, changes)
    for here, there in zip(ours, theirs, strict=True):
        assert here == there
