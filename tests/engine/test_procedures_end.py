"""COMMIT and ROLLBACK of procedures beside what scripts compare: the extended protocol, others who look and change meanwhile."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.support.server import ServerProcess


def test_others_see_what_a_procedure_has_committed_while_it_runs(server: ServerProcess) -> None:
    server.sql("CREATE TABLE pe_seen (n int)")
    with (
        psycopg.connect(server.url, autocommit=True) as one,
        psycopg.connect(server.url, autocommit=True) as two,
    ):
        two.execute("SELECT pg_advisory_lock(71)")
        running = threading.Thread(
            target=one.execute,
            args=(
                "DO $$ BEGIN INSERT INTO pe_seen VALUES (1); COMMIT; INSERT INTO pe_seen VALUES (2);"
                " PERFORM pg_advisory_lock(71); END $$",
            ),
        )
        running.start()
        while two.execute("SELECT count(*) FROM pe_seen").fetchone() == (0,):
            pass
        assert two.execute("SELECT n FROM pe_seen").fetchall() == [(1,)]
        two.execute("SELECT pg_advisory_unlock(71)")
        running.join()
        assert two.execute("SELECT n FROM pe_seen ORDER BY n").fetchall() == [(1,), (2,)]


def test_call_of_the_extended_protocol_commits_and_answers_its_outputs(server: ServerProcess) -> None:
    server.sql("CREATE TABLE pe_wire (n int)")
    server.sql(
        "CREATE PROCEDURE pe_load(INOUT n int, many int) LANGUAGE plpgsql AS $$ BEGIN\n"
        "  FOR i IN 1..many LOOP INSERT INTO pe_wire VALUES (i); COMMIT; n := n + 1; END LOOP;\n"
        "  INSERT INTO pe_wire VALUES (0); ROLLBACK; END $$"
    )
    with psycopg.connect(server.url, autocommit=True) as connection:
        for _ in range(2):
            found = connection.execute("CALL pe_load(%s, %s::int)", (10, 3), prepare=True, binary=True)
            assert found.fetchall() == [(13,)]
        assert connection.execute("SELECT count(*), min(n) FROM pe_wire").fetchone() == (6, 1)
    with psycopg.connect(server.url) as connection:  # which sends BEGIN first
        with pytest.raises(psycopg.errors.InvalidTransactionTermination):
            connection.execute("CALL pe_load(1, 1)")
        connection.rollback()
    with psycopg.connect(server.url, autocommit=True) as connection:
        with connection.pipeline():
            connection.execute("INSERT INTO pe_wire VALUES (100)")
            connection.execute("CALL pe_load(1, 1)")
        assert connection.execute("SELECT count(*) FROM pe_wire").fetchone() == (8,)


@pytest.mark.parametrize(("end", "outcome"), [("COMMIT", "fails"), ("NULL", "runs again")])
def test_what_has_committed_something_never_runs_again(server: ServerProcess, end: str, outcome: str) -> None:
    server.sql(
        "DROP TABLE IF EXISTS pe_log, pe_read, pe_sum; CREATE TABLE pe_log (n int); CREATE TABLE pe_read (n int);"
        "CREATE TABLE pe_sum (n int)"
    )
    failed: list[Exception] = []

    def load() -> None:
        try:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(
                    f"DO $$ DECLARE n int; BEGIN INSERT INTO pe_log VALUES (1); {end};"
                    " SELECT count(*) INTO n FROM pe_read; PERFORM pg_advisory_xact_lock(72);"
                    " INSERT INTO pe_sum VALUES (n); END $$"
                )
        except psycopg.Error as error:
            failed.append(error)

    with psycopg.connect(server.url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(72)")
        running = threading.Thread(target=load)
        running.start()
        while not other.execute(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        ).fetchall():
            pass
        other.execute("INSERT INTO pe_read VALUES (1)")
        other.execute("SELECT pg_advisory_unlock(72)")
        running.join()
        assert other.execute("SELECT count(*) FROM pe_log").fetchone() == (1,)
        sums = other.execute("SELECT n FROM pe_sum").fetchall()
    if outcome == "fails":
        assert [type(error) for error in failed] == [psycopg.errors.SerializationFailure]
        assert sums == []
    else:
        assert (failed, sums) == ([], [(1,)])
