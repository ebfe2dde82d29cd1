"""PL/pgSQL beside what scripts compare: messages to the client, cancels, classes of statements, transactions, changes of what a body names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from engine.programs.plpgsql import raising
from planner.base.errors import SqlError
from sqllogictest.client import ServerError
from tests.support.server import ServerProcess
from txn.base.errors import Deadlock, SchemaChanged, WriteConflict


def test_a_notice_has_the_fields_of_raise_and_its_context(server: ServerProcess) -> None:
    server.sql(
        "CREATE OR REPLACE FUNCTION pl_tells(n int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN\n"
        "  RAISE WARNING 'n is %', n USING DETAIL = 'd', HINT = 'h', ERRCODE = '01ABC', TABLE = 'tt';\n END $$"
    )
    told: list[tuple[str | None, ...]] = []
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.add_notice_handler(
            lambda n: told.append(
                (
                    n.severity,
                    n.sqlstate,
                    n.message_primary,
                    n.message_detail,
                    n.message_hint,
                    n.table_name,
                    n.context,
                )
            )
        )
        connection.execute("DO $$ BEGIN PERFORM pl_tells(7); RAISE DEBUG 'hidden'; RAISE INFO 'seen'; END $$")
    context = (
        'PL/pgSQL function pl_tells(integer) line 2 at RAISE\nSQL statement "SELECT pl_tells(7)"\n'
        "PL/pgSQL function inline_code_block line 1 at PERFORM"
    )
    assert told[0] == ("WARNING", "01ABC", "n is 7", "d", "h", "tt", context)
    assert [fields[:3] for fields in told[1:]] == [("INFO", "00000", "seen")]


def test_an_endless_loop_ends_by_its_time_out_and_by_a_cancel(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET statement_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute("DO $$ BEGIN LOOP NULL; END LOOP; END $$")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute(
                "DO $$ BEGIN LOOP BEGIN LOOP NULL; END LOOP; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$"
            )
        connection.execute("RESET statement_timeout")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def statement_class(server: ServerProcess, sql: str) -> str:
    """Return what EXPLAIN calls a statement."""
    return next(
        line.removeprefix("Statement Class: ")
        for line in [str(row[0]) for row in server.sql(f"EXPLAIN (COSTS OFF) {sql}")]
        if line.startswith("Statement Class: ")
    )


def test_a_function_that_cannot_write_leaves_a_statement_read_only(server: ServerProcess) -> None:
    server.sql("CREATE TABLE IF NOT EXISTS pl_rows (a int)")
    for name, body in {
        "pl_reads": "BEGIN RETURN (SELECT count(*) FROM pl_rows); END",
        "pl_calls_reads": "BEGIN RETURN pl_reads(); END",
        "pl_writes": "BEGIN INSERT INTO pl_rows VALUES (1); RETURN 1; END",
        "pl_calls_writes": "BEGIN RETURN pl_writes(); END",
        "pl_locks": "DECLARE n int; BEGIN SELECT a INTO n FROM pl_rows FOR UPDATE; RETURN n; END",
        "pl_unknown": "BEGIN EXECUTE 'SELECT 1'; RETURN 1; END",
    }.items():
        server.sql(f"CREATE OR REPLACE FUNCTION {name}() RETURNS int LANGUAGE plpgsql AS $$ {body} $$")
    classes = {
        name: statement_class(server, f"SELECT {name}()")
        for name in ("pl_reads", "pl_calls_reads", "pl_writes", "pl_calls_writes", "pl_locks", "pl_unknown")
    }
    assert classes == {
        "pl_reads": "read only", "pl_calls_reads": "read only", "pl_writes": "read then write",
        "pl_calls_writes": "read then write", "pl_locks": "read then write", "pl_unknown": "read then write",
    }  # fmt: skip


def test_a_function_goes_on_with_what_its_tables_have_become(server: ServerProcess) -> None:
    server.sql(
        "DROP TABLE IF EXISTS pl_moves; CREATE TABLE pl_moves (a int, b text); INSERT INTO pl_moves VALUES (1, 'x')"
    )
    server.sql(
        "CREATE OR REPLACE FUNCTION pl_row() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r pl_moves; v pl_moves.a%TYPE; "
        "BEGIN SELECT * INTO r FROM pl_moves; v := r.a; RETURN r::text || pg_typeof(v); END $$"
    )
    client = server.connect()
    assert [tuple(row) for row in client.run("SELECT pl_row()").rows] == [("(1,x)integer",)]
    server.sql(
        "ALTER TABLE pl_moves ADD COLUMN c int DEFAULT 9; ALTER TABLE pl_moves ALTER COLUMN a TYPE bigint"
    )
    assert [tuple(row) for row in client.run("SELECT pl_row()").rows] == [("(1,x,9)bigint",)]
    client.run(
        "CREATE OR REPLACE FUNCTION pl_row() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'new'; END $$"
    )
    assert [tuple(row) for row in client.run("SELECT pl_row()").rows] == [("new",)]
    client.close()


def test_what_fails_in_a_block_with_a_handler_is_undone_alone(server: ServerProcess) -> None:
    server.sql("DROP TABLE IF EXISTS pl_part; CREATE TABLE pl_part (a int PRIMARY KEY)")
    client = server.connect()
    client.run("BEGIN")
    client.run("INSERT INTO pl_part VALUES (1)")
    client.run(
        "DO $$ BEGIN INSERT INTO pl_part VALUES (2); BEGIN INSERT INTO pl_part VALUES (3); INSERT INTO pl_part VALUES (1); "
        "EXCEPTION WHEN unique_violation THEN INSERT INTO pl_part VALUES (4); END; INSERT INTO pl_part VALUES (5); END $$"
    )
    client.run("SAVEPOINT s")
    with pytest.raises(ServerError):
        client.run("DO $$ BEGIN INSERT INTO pl_part VALUES (6); PERFORM 1 / 0; END $$")
    client.run("ROLLBACK TO s")
    client.run("COMMIT")
    client.close()
    assert server.sql("SELECT a FROM pl_part ORDER BY a") == [("1",), ("2",), ("4",), ("5",)]


def test_others_wait_for_what_a_function_has_changed(server: ServerProcess) -> None:
    server.sql(
        "DROP TABLE IF EXISTS pl_count; CREATE TABLE pl_count (n int); INSERT INTO pl_count VALUES (0)"
    )
    server.sql(
        "CREATE OR REPLACE PROCEDURE pl_add() LANGUAGE plpgsql AS $$ DECLARE now int; BEGIN SELECT n INTO now FROM pl_count; "
        "UPDATE pl_count SET n = now + 1; END $$"
    )
    one, two = psycopg.connect(server.url), psycopg.connect(server.url, autocommit=True)
    with one, two:
        one.execute("CALL pl_add()")
        two.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            two.execute("CALL pl_add()")
        one.commit()
        two.execute("SET lock_timeout = 0")
        two.execute("CALL pl_add()")
        assert two.execute("SELECT n FROM pl_count").fetchone() == (2,)


def test_a_transaction_that_lost_a_race_does_not_run_the_body(server: ServerProcess) -> None:
    server.sql(
        "DROP TABLE IF EXISTS pl_race; CREATE TABLE pl_race (k int PRIMARY KEY, n int); INSERT INTO pl_race VALUES (1, 0)"
    )
    one, two = psycopg.connect(server.url), psycopg.connect(server.url, autocommit=True)
    told: list[str | None] = []
    one.add_notice_handler(lambda notice: told.append(notice.message_primary))
    with one, two:
        assert one.execute("SELECT n FROM pl_race WHERE k = 1").fetchone() == (0,)
        two.execute("UPDATE pl_race SET n = 5 WHERE k = 1")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.execute(
                "DO $$ BEGIN UPDATE pl_race SET n = n + 1 WHERE k = 1; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'taken'; END $$"
            )
        one.rollback()
    assert told == []


def test_no_handler_takes_the_loss_of_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Exception] = []
    monkeypatch.setattr(raising, "report_of", lambda error, *_: reports.append(error))
    session: Any = SimpleNamespace(catalog=None, surroundings=None)
    for kind in (WriteConflict, Deadlock, SchemaChanged):
        assert raising.caught(session, kind.__new__(kind)) is None
    assert reports == []  # they are not even looked into
    other = SqlError("22012", "division by zero")
    raising.caught(session, other)
    assert reports == [other]


def test_calls_nest_to_a_bound(server: ServerProcess) -> None:
    server.sql(
        "CREATE OR REPLACE FUNCTION pl_deep(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF n = 0 THEN RETURN 0; END IF; "
        "RETURN 1 + pl_deep(n - 1); END $$"
    )
    assert server.sql("SELECT pl_deep(100)") == [("100",)]
    with pytest.raises(ServerError) as caught:
        server.sql("SELECT pl_deep(100000)")
    assert caught.value.sqlstate == "54001"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("RETURN x::text;", ["(1,2)", "(7)", "(7)", "(x,t,3)"]),
        ("y := x; RETURN y;", ["(1,2)", "(7)", "(7)", "(x,t,3)"]),
        ("RETURN row_to_json(x);", ['{"a":1,"b":2}', '{"a":7}', '{"a":7}', '{"a":"x","c":true,"d":3}']),
        ("RETURN (x IS NULL)::text || (x = x)::text;", ["falsetrue"] * 4),
        ("FOR i IN 1 .. 2 LOOP y := coalesce(y, '') || x::text; END LOOP; RETURN y;", ["(1,2)(1,2)", "(7)(7)", "(7)(7)", "(x,t,3)(x,t,3)"]),
        ("IF x IS NOT NULL THEN RETURN 'full'; END IF; RETURN 'none';", ["full"] * 4),
    ],
)  # fmt: skip
def test_a_whole_record_is_what_it_holds_in_every_call(
    server: ServerProcess, made: str, expected: list[str]
) -> None:
    server.sql(
        "CREATE OR REPLACE FUNCTION pl_whole(q text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE x record; y text;\n"
        f"BEGIN EXECUTE q INTO x; {made} END $$"
    )
    queries = (
        "SELECT 1 AS a, 2 AS b",
        "SELECT 7 AS a",
        "SELECT 7 AS a",
        "SELECT text 'x' AS a, true AS c, 3 AS d",
    )
    client = server.connect()
    try:
        assert [client.run(f"SELECT pl_whole($q${q}$q$)").rows[0][0] for q in queries] == expected
    finally:
        client.close()


def test_parameters_of_the_extended_protocol_reach_a_function(server: ServerProcess) -> None:
    server.sql(
        "CREATE OR REPLACE FUNCTION pl_join(a int, b text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN $1 || b; END $$"
    )
    with psycopg.connect(server.url, autocommit=True) as connection:
        for n in range(3):
            assert connection.execute("SELECT pl_join(%s::int, %s)", (n, "x"), prepare=True).fetchone() == (
                f"{n}x",
            )


@pytest.mark.parametrize(
    ("body", "construct"),
    [
        ("#print_strict_params on\nBEGIN NULL; END", "#print_strict_params on"),
        ("BEGIN CREATE RULE r AS ON INSERT TO t DO NOTHING; END", "CREATE RULE"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_when_the_function_is_created(
    server: ServerProcess, body: str, construct: str
) -> None:
    with pytest.raises(ServerError) as caught:
        server.sql(f"CREATE PROCEDURE pl_refused() LANGUAGE plpgsql AS $$ {body} $$")
    assert (caught.value.sqlstate, caught.value.message) == ("0A000", f"{construct} is not supported")
