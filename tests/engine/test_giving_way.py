"""What computes for ever ends with its time-out, wherever it stands, and others are answered meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess

SETUP = """
CREATE FUNCTION fib(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    'BEGIN IF n < 2 THEN RETURN n; END IF; RETURN fib(n - 1) + fib(n - 2); END';
CREATE FUNCTION ever() RETURNS bool LANGUAGE plpgsql AS 'BEGIN LOOP NULL; END LOOP; END';
CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM ever(); RETURN NEW; END';
CREATE TABLE many (a int);
INSERT INTO many SELECT i FROM generate_series(1, 5000) i;
CREATE TABLE checked (a int CHECK (fib(a) >= 0));
CREATE TABLE given (a int, b int DEFAULT fib(50));
CREATE TABLE fired (a int);
CREATE TRIGGER t BEFORE INSERT ON fired FOR EACH ROW EXECUTE FUNCTION fires();
CREATE TABLE late (a int);
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fires();
CREATE TABLE ruled (a int);
INSERT INTO ruled VALUES (1);
CREATE ROLE reader;
ALTER TABLE ruled ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON ruled USING (ever());
GRANT SELECT ON ruled TO reader;
"""

FOR_EVER = {
    "a recursive function": "SELECT fib(60)",
    "a function in a condition": "SELECT count(*) FROM many WHERE fib(a) > 5",
    "a loop": "DO 'BEGIN LOOP NULL; END LOOP; END'",
    "a loop that swallows errors": "DO 'BEGIN LOOP BEGIN PERFORM fib(12); EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END'",
    "a join of all with all": "SELECT count(*) FROM many a, many b, many c WHERE a.a + b.a + c.a < 0",
    "a recursive query": "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    "a series": "SELECT sum(length(i::text)) FROM generate_series(1, 1000000000) i, pg_class",
    "a CHECK": "INSERT INTO checked VALUES (50)",
    "a default": "INSERT INTO given VALUES (1)",
    "a trigger": "INSERT INTO fired VALUES (1)",
    "a policy": "SET LOCAL ROLE reader; SELECT * FROM ruled",
    "an argument of EXECUTE": "PREPARE x(int) AS SELECT $1; EXECUTE x(fib(50))",
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("giving_way"))
    with psycopg.connect(running.url, autocommit=True) as c:
        c.execute(SETUP)
    yield running
    assert running.stop() == 0


@pytest.mark.parametrize("what", FOR_EVER)
def test_it_ends_with_its_time_out_and_others_are_answered(prepared: ServerProcess, what: str) -> None:
    with (
        psycopg.connect(prepared.url, autocommit=True) as other,
        psycopg.connect(prepared.url, autocommit=True, options="-c statement_timeout=300") as c,
    ):
        met: list[str | None] = []

        def run() -> None:
            try:
                c.execute(FOR_EVER[what])
                met.append(None)
            except psycopg.Error as error:
                met.append(error.sqlstate)

        thread = threading.Thread(target=run)
        thread.start()
        answered = 0
        while thread.is_alive():
            other.execute("SELECT 1")
            answered += 1
        thread.join()
        assert met == ["57014"]
        assert answered > 1
        assert c.execute("SELECT 2").fetchone() == (2,)


def test_a_cancel_reaches_checks_at_the_end_of_a_transaction(prepared: ServerProcess) -> None:
    with psycopg.connect(prepared.url) as c, psycopg.connect(prepared.url, autocommit=True) as other:
        c.execute("INSERT INTO late VALUES (1)")
        threading.Timer(
            0.3, lambda: other.execute("SELECT pg_cancel_backend(%s)", (c.info.backend_pid,))
        ).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.commit()


@pytest.mark.parametrize("form", ["PREPARE later AS {}", "EXPLAIN {}"])
def test_constants_that_take_long_are_not_computed_ahead(prepared: ServerProcess, form: str) -> None:
    query = "SELECT length(repeat('x', 900000000)), 1.0000001 ^ 123456789.5 WHERE repeat('x', 300) ~ '(x*)*y'"
    with psycopg.connect(prepared.url, autocommit=True, options="-c statement_timeout=5000") as c:
        c.execute(form.format(query))
