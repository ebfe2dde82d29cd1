"""What was taken away counts at once in transactions that began before, and in those that read the past: what no plan asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.server import ServerProcess


@contextmanager
def connected(server: ServerProcess, user: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(
        host="127.0.0.1",
        port=server.port,
        user=user,
        dbname="postgres",
        autocommit=True,
        prepare_threshold=None,
    ) as client:
        yield client


SETUP = """
CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE cal LOGIN; CREATE SCHEMA n; GRANT USAGE ON SCHEMA n TO PUBLIC;
CREATE SEQUENCE n.s; GRANT ALL ON SEQUENCE n.s TO ann;
CREATE TABLE n.t (a int CHECK (a > 0), b text DEFAULT 'hidden'); GRANT SELECT, INSERT ON n.t TO ann;
GRANT pg_signal_backend, pg_read_all_stats TO ann
"""
TAKEN = """
REVOKE ALL ON SEQUENCE n.s FROM ann; REVOKE SELECT ON n.t FROM ann; REVOKE pg_signal_backend, pg_read_all_stats FROM ann
"""


@pytest.fixture
def root(server: ServerProcess) -> Iterator[psycopg.Connection]:
    with connected(server, "postgres") as client:
        client.execute(SETUP)
        yield client
        client.execute("DROP SCHEMA n CASCADE; DROP OWNED BY ann, bob, cal; DROP ROLE ann, bob, cal")


def _refused(client: psycopg.Connection, sql: str) -> psycopg.errors.InsufficientPrivilege:
    client.execute("SAVEPOINT s")
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as raised:
        client.execute(sql)
    client.execute("ROLLBACK TO s")
    return raised.value


SIGNAL = "SELECT pg_{}_backend(pid) FROM pg_stat_activity WHERE usename = 'bob'"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nextval('n.s')", "SELECT currval('n.s')", "SELECT lastval()", "SELECT setval('n.s', 7)", "SELECT last_value FROM n.s",
        SIGNAL.format("cancel"), SIGNAL.format("terminate"), "SELECT b FROM n.t",
    ],
)  # fmt: skip
def test_a_transaction_that_began_before_has_lost_it_too(
    server: ServerProcess, root: psycopg.Connection, sql: str
) -> None:
    with connected(server, "ann") as ann, connected(server, "bob"):
        ann.execute("BEGIN")
        ann.execute("SELECT nextval('n.s'), count(*) FROM n.t")
        root.execute(TAKEN)
        _refused(ann, sql)
        ann.execute("ROLLBACK")


def test_nor_does_an_error_show_what_may_not_be_read_any_more(
    server: ServerProcess, root: psycopg.Connection
) -> None:
    with connected(server, "ann") as ann:
        ann.execute("BEGIN")
        ann.execute("SELECT count(*) FROM n.t")
        root.execute(TAKEN)
        ann.execute("SAVEPOINT s")
        with pytest.raises(psycopg.errors.CheckViolation) as raised:
            ann.execute("INSERT INTO n.t (a) VALUES (-1)")
        assert raised.value.diag.message_detail == "Failing row contains (a) = (-1)."


@pytest.mark.parametrize("what", ["cancel", "terminate"])
def test_who_was_a_member_then_signals_nobody(
    server: ServerProcess, root: psycopg.Connection, what: str
) -> None:
    with connected(server, "ann") as ann, connected(server, "bob"):
        then = root.execute("SELECT read_ts FROM holdfast_timelines WHERE timeline = 'epoch_ms'").fetchone()
        root.execute(TAKEN)
        ann.execute(f"BEGIN AS OF SYSTEM TIME {then[0] if then else 0}")
        _refused(ann, SIGNAL.format(what))
        shown = ann.execute("SELECT DISTINCT query FROM pg_stat_activity WHERE usename = 'bob'").fetchall()
        assert shown == [("<insufficient privilege>",)]
