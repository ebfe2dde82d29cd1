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


SECURED = """
CREATE ROLE holder LOGIN; CREATE ROLE sees LOGIN; CREATE ROLE passes LOGIN BYPASSRLS; CREATE SCHEMA sec; GRANT ALL ON SCHEMA sec TO PUBLIC; SET ROLE holder;
CREATE TABLE sec.t (a int, o name); INSERT INTO sec.t VALUES (1, 'sees'), (2, 'nobody'); CREATE POLICY p ON sec.t USING (o = current_user);
ALTER TABLE sec.t ENABLE ROW LEVEL SECURITY; GRANT SELECT ON sec.t TO sees; CREATE VIEW sec.of_holder AS SELECT a FROM sec.t;
SET ROLE sees; CREATE VIEW sec.v AS SELECT a FROM sec.t; CREATE VIEW sec.invoked WITH (security_invoker) AS SELECT a FROM sec.t;
CREATE VIEW sec.within AS SELECT a FROM sec.t WHERE a IN (SELECT a FROM sec.t); RESET ROLE; CREATE VIEW sec.nested AS SELECT a FROM sec.v;
GRANT SELECT ON ALL TABLES IN SCHEMA sec TO PUBLIC; REVOKE SELECT ON sec.t FROM PUBLIC
"""
_REFUSED = (
    "v",
    "within",
    "nested",
    "(SELECT max(a) FROM sec.v)",
    "(SELECT 1 WHERE EXISTS (SELECT FROM sec.v))",
)
_OPEN = {
    "postgres": ("t", "of_holder", "invoked"),
    "holder": ("t", "of_holder", "invoked"),
    "passes": ("of_holder",),
    "sees": (),
}


@pytest.fixture
def secured(server: ServerProcess) -> Iterator[psycopg.Connection]:
    with _client(server, "postgres") as root:
        root.execute(SECURED)
        yield root
        root.execute("DROP SCHEMA sec CASCADE; DROP ROLE holder, sees, passes")


def test_policies_count_for_whoever_reads_be_the_user_exempt_or_not(
    server: ServerProcess, secured: psycopg.Connection
) -> None:
    for user, open_ in _OPEN.items():
        with _client(server, user) as client:
            for name in ("t", "of_holder", "invoked", *_REFUSED):
                query = name if name.startswith("(") else f"sec.{name}"
                client.execute("BEGIN")
                try:
                    client.execute(f"DECLARE c CURSOR FOR SUBSCRIBE {query}")
                    found = sorted(row[2] for row in client.execute("FETCH 2 FROM c").fetchall())
                except (psycopg.errors.FeatureNotSupported, psycopg.errors.InsufficientPrivilege):
                    found = []
                client.execute("ROLLBACK")
                assert found == ([1, 2] if name in open_ else []), (user, name)


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE sec.t ENABLE ROW LEVEL SECURITY", "ALTER ROLE sees NOBYPASSRLS", "REVOKE holder FROM sees"],
)
def test_a_subscription_ends_when_policies_come_to_count_for_a_views_owner(
    server: ServerProcess, secured: psycopg.Connection, change: str
) -> None:
    before = {"ALTER TABLE": "ALTER TABLE sec.t DISABLE ROW LEVEL SECURITY", "ALTER ROLE": "ALTER ROLE sees BYPASSRLS",
              "REVOKE holder": "GRANT holder TO sees"}  # fmt: skip
    secured.execute(next(sql for start, sql in before.items() if change.startswith(start)).encode())
    with _client(server, "passes") as client:
        client.execute("BEGIN")
        client.execute("DECLARE c CURSOR FOR SUBSCRIBE sec.v")
        assert len(client.execute("FETCH 2 FROM c").fetchall()) == 2
        secured.execute(change.encode())
        secured.execute("INSERT INTO sec.t VALUES (3, 'nobody')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("FETCH ALL FROM c WITH (timeout = '5 seconds')")


def test_it_is_asked_of_who_subscribed_whoever_fetches(
    server: ServerProcess, secured: psycopg.Connection
) -> None:
    secured.execute("ALTER TABLE sec.t DISABLE ROW LEVEL SECURITY")
    with _client(server, "postgres") as client:
        client.execute("BEGIN; SET LOCAL ROLE sees")
        client.execute("DECLARE c CURSOR FOR SUBSCRIBE sec.t")
        client.execute("RESET ROLE")
        assert len(client.execute("FETCH 2 FROM c").fetchall()) == 2
        secured.execute("ALTER TABLE sec.t ENABLE ROW LEVEL SECURITY; INSERT INTO sec.t VALUES (3, 'nobody')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("FETCH ALL FROM c WITH (timeout = '5 seconds')")
