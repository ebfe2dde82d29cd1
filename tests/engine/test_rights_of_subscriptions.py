"""A SUBSCRIBE that runs ends once its query may not be read any more as it was bound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.server import ServerProcess

SETUP = """
CREATE ROLE ann LOGIN; CREATE ROLE own LOGIN; CREATE ROLE members; GRANT members TO ann; CREATE SCHEMA u AUTHORIZATION own;
SET ROLE own;
CREATE TABLE u.t (a int, b text); INSERT INTO u.t VALUES (1, 'x'); CREATE TABLE u.of_members (a int);
CREATE VIEW u.v AS SELECT a FROM u.t; CREATE VIEW u.over AS SELECT a FROM u.v;
CREATE FUNCTION u.f(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1';
GRANT USAGE ON SCHEMA u TO ann; GRANT SELECT ON u.t, u.v, u.over TO ann; GRANT SELECT ON u.of_members TO members; RESET ROLE
"""
CASES = (
    ("u.t", "REVOKE SELECT ON u.t FROM ann", "42501"),
    ("u.t", "REVOKE SELECT ON u.t FROM ann; GRANT SELECT (a) ON u.t TO ann", "42501"),
    ("(SELECT a FROM u.t)", "REVOKE SELECT ON u.t FROM ann; GRANT SELECT (a) ON u.t TO ann", None),
    ("(SELECT count(*) FROM u.t)", "REVOKE SELECT ON u.t FROM ann", "42501"),
    ("u.t", "REVOKE USAGE ON SCHEMA u FROM ann", "42501"),
    ("u.of_members", "REVOKE members FROM ann", "42501"),
    ("u.t", "ALTER TABLE u.t ENABLE ROW LEVEL SECURITY", "42501"),
    ("u.v", "REVOKE SELECT ON u.v FROM ann", "42501"),
    ("u.v", "REVOKE SELECT ON u.t FROM own", "42501"),
    ("u.over", "ALTER VIEW u.v OWNER TO postgres", "55000"),
    ("u.v", "CREATE OR REPLACE VIEW u.v AS SELECT a FROM u.t WHERE a < 0", "55000"),
    ("u.over", "CREATE OR REPLACE VIEW u.v AS SELECT a FROM u.t WHERE a < 0", "55000"),
    ("u.v", "DROP VIEW u.v CASCADE", "42P01"),
    ("(SELECT u.f(a) FROM u.t)", "REVOKE EXECUTE ON FUNCTION u.f(int) FROM PUBLIC", "42501"),
    ("(SELECT u.f(a) FROM u.t)", "CREATE OR REPLACE FUNCTION u.f(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT -$1'", "55000"),
    ("(SELECT u.f(a) FROM u.t)", "DROP FUNCTION u.f(int)", "42883"),
    ("(SELECT u.f(a) FROM u.t)", "ALTER FUNCTION u.f(int) OWNER TO postgres", "55000"),
    ("(SELECT a FROM u.t WHERE pg_has_role('members', 'MEMBER'))", "REVOKE members FROM ann", "42501"),
    ("(SELECT a FROM u.t WHERE has_table_privilege('u.of_members', 'SELECT'))", "REVOKE SELECT ON u.of_members FROM members", "42501"),
    ("(SELECT max(a) FROM u.t WHERE has_table_privilege('u.of_members', 'SELECT'))", "REVOKE SELECT ON u.of_members FROM members", "42501"),
    ("(SELECT a FROM u.t WHERE has_table_privilege('u.of_members', 'SELECT'))", "GRANT SELECT ON u.t TO members", None),
    ("u.t", "GRANT SELECT ON u.t TO PUBLIC; REVOKE SELECT ON u.t FROM ann", None),
    ("u.t", "CREATE INDEX ON u.t (a)", None),
    ("u.t", "DROP VIEW u.v CASCADE", None),
)  # fmt: skip


@contextmanager
def _client(server: ServerProcess, user: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(
        host="127.0.0.1",
        port=server.port,
        user=user,
        dbname="postgres",
        autocommit=True,
        prepare_threshold=None,
    ) as client:
        yield client


@pytest.mark.parametrize(("query", "change", "sqlstate"), CASES)
def test_a_subscription_ends_with_the_right_to_read(
    server: ServerProcess, query: str, change: str, sqlstate: str | None
) -> None:
    with _client(server, "postgres") as root, _client(server, "postgres") as writer:
        root.execute(SETUP)
        try:
            with _client(server, "ann") as ann:
                ann.execute("BEGIN")
                ann.execute(f"DECLARE c CURSOR FOR SUBSCRIBE {query}")
                ann.execute("FETCH ALL FROM c WITH (timeout = '2 seconds')")
                root.execute(change)
                writer.execute("INSERT INTO u.t VALUES (2, 'secret'); INSERT INTO u.of_members VALUES (2)")
                fetch = "FETCH ALL FROM c WITH (timeout = '5 seconds')"
                if sqlstate is None:
                    assert len(ann.execute(fetch).fetchall()) == 1
                else:
                    with pytest.raises(psycopg.Error) as raised:
                        ann.execute(fetch)
                    assert raised.value.sqlstate == sqlstate
        finally:
            root.execute("DROP OWNED BY ann, own, members CASCADE; DROP ROLE ann, own, members")


def test_a_function_that_reads_by_itself_is_refused(server: ServerProcess) -> None:
    with _client(server, "postgres") as root:
        root.execute("CREATE TABLE read_by_f (a int)")
        root.execute(
            "CREATE FUNCTION rows_of() RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT a FROM read_by_f'"
        )
        try:
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                root.execute("SUBSCRIBE (SELECT * FROM rows_of())")
        finally:
            root.execute("DROP TABLE read_by_f; DROP FUNCTION rows_of")
