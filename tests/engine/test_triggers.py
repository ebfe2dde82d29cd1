"""Triggers on a running server: every way of changing rows asks them. What they do beside PostgreSQL is in ``tests/differential``.

``suppress_redundant_updates_trigger`` leaves out an update that changes nothing, so row counts tell whether it was asked.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess

SUPPRESS = "EXECUTE FUNCTION suppress_redundant_updates_trigger()"


@pytest.fixture
def conn(server: ServerProcess) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(server.url, autocommit=True) as made:
        made.execute("CREATE SCHEMA trg; SET search_path = trg")
        yield made
        made.execute("RESET executor; DROP SCHEMA trg CASCADE")


def changed(conn: psycopg.Connection[tuple[object, ...]], sql: str) -> int:
    return conn.execute(sql.encode()).rowcount


def suppressing(conn: psycopg.Connection[tuple[object, ...]], rows: int = 3) -> None:
    conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    conn.execute(f"INSERT INTO t SELECT g, g % 2 FROM generate_series(1, {rows}) g".encode())
    conn.execute(f"CREATE TRIGGER same BEFORE UPDATE ON t FOR EACH ROW {SUPPRESS}".encode())


@pytest.mark.parametrize("executor", ["index", "local", "auto"])
def test_an_update_asks_triggers_whichever_executor_finds_its_rows(
    conn: psycopg.Connection[tuple[object, ...]], executor: str
) -> None:
    suppressing(conn)
    conn.execute(f"SET executor = {executor}".encode())
    assert changed(conn, "UPDATE t SET v = 1") == 1
    assert changed(conn, "UPDATE t SET v = 1") == 0


def test_an_update_of_many_rows_asks_them_all(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    suppressing(conn, 25_000)  # without triggers the new rows become parts, column by column
    conn.execute("SET executor = local")
    assert changed(conn, "UPDATE t SET v = 1 WHERE id <= 24999") == 12_499


def test_an_update_by_key_asks_a_trigger_made_since_its_plan(
    conn: psycopg.Connection[tuple[object, ...]],
) -> None:
    conn.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    conn.execute("INSERT INTO t VALUES (1, 1)")
    update = "UPDATE t SET v = %s WHERE id = %s"
    for _ in range(3):
        assert conn.execute(update, (1, 1), prepare=True).rowcount == 1
    conn.execute(f"CREATE TRIGGER same BEFORE UPDATE ON t FOR EACH ROW {SUPPRESS}".encode())
    for _ in range(3):
        assert conn.execute(update, (1, 1), prepare=True).rowcount == 0
    conn.execute("ALTER TABLE t DISABLE TRIGGER same")
    assert conn.execute(update, (1, 1), prepare=True).rowcount == 1


@pytest.mark.parametrize(
    "update",
    [
        "INSERT INTO t VALUES (1, 1), (2, 1) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
        "MERGE INTO t USING (VALUES (1, 1), (2, 1)) s (id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
        "WITH u AS (UPDATE t SET v = 1 WHERE id < 3 RETURNING id) SELECT * FROM u",
        "UPDATE shown SET v = 1 WHERE id < 3",
        "UPDATE t SET v = s.v FROM (VALUES (1, 1), (2, 1)) s (id, v) WHERE t.id = s.id",
    ],
)
def test_only_what_changes_is_updated(conn: psycopg.Connection[tuple[object, ...]], update: str) -> None:
    suppressing(conn)
    conn.execute("CREATE VIEW shown AS SELECT * FROM t")
    assert changed(conn, update) == 1
    assert conn.execute("SELECT * FROM t ORDER BY id").fetchall() == [(1, 1), (2, 1), (3, 1)]


def test_an_action_of_a_foreign_key_asks_triggers(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    conn.execute("CREATE TABLE p (id int PRIMARY KEY)")
    conn.execute("CREATE TABLE c (id int REFERENCES p ON DELETE CASCADE)")
    conn.execute("INSERT INTO p VALUES (1); INSERT INTO c VALUES (1)")
    conn.execute(f"CREATE TRIGGER t BEFORE DELETE ON c FOR EACH ROW {SUPPRESS}".encode())
    with pytest.raises(psycopg.Error) as caught:
        conn.execute("DELETE FROM p")
    assert caught.value.sqlstate == "39P01"
    assert conn.execute("SELECT count(*) FROM p, c").fetchone() == (1,)  # all of it is undone


def test_copy_asks_triggers(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    conn.execute("CREATE TABLE t (id int)")
    conn.execute(f"CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW {SUPPRESS}".encode())
    with pytest.raises(psycopg.Error) as caught, conn.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write(b"1\n2\n")
    assert caught.value.sqlstate == "39P01"
    assert caught.value.diag.context == 'COPY t, line 1: "1"'


@pytest.mark.parametrize("event", ["INSERT", "TRUNCATE"])
@pytest.mark.parametrize("when", ["BEFORE", "AFTER"])
def test_an_error_of_a_statement_trigger_undoes_the_statement(
    conn: psycopg.Connection[tuple[object, ...]], event: str, when: str
) -> None:
    conn.execute("CREATE TABLE t (id int)")
    conn.execute("INSERT INTO t VALUES (1)")
    conn.execute(f"CREATE TRIGGER t {when} {event} ON t FOR EACH STATEMENT {SUPPRESS}".encode())
    with pytest.raises(psycopg.Error) as caught:
        conn.execute("TRUNCATE t" if event == "TRUNCATE" else "INSERT INTO t SELECT 2")
    assert caught.value.sqlstate == "39P01"
    assert conn.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_a_copied_database_has_the_triggers(
    server: ServerProcess, conn: psycopg.Connection[tuple[object, ...]]
) -> None:
    conn.execute("CREATE DATABASE trg_one")
    try:
        with psycopg.connect(
            f"postgresql://postgres@127.0.0.1:{server.port}/trg_one", autocommit=True
        ) as one:
            one.execute("CREATE TABLE t (id int, v int)")
            one.execute("INSERT INTO t VALUES (1, 1)")
            one.execute(f"CREATE TRIGGER same BEFORE UPDATE ON t FOR EACH ROW {SUPPRESS}".encode())
            one.execute("COMMENT ON TRIGGER same ON t IS 'kept'")
        conn.execute("CREATE DATABASE trg_two TEMPLATE trg_one")
        with psycopg.connect(
            f"postgresql://postgres@127.0.0.1:{server.port}/trg_two", autocommit=True
        ) as two:
            assert two.execute("UPDATE t SET v = 1").rowcount == 0
            said = two.execute("SELECT obj_description(oid, 'pg_trigger') FROM pg_trigger").fetchall()
            assert said == [("kept",)]
    finally:
        conn.execute("DROP DATABASE IF EXISTS trg_two")
        conn.execute("DROP DATABASE trg_one")


def test_triggers_are_there_after_a_rename_of_all_they_name(
    conn: psycopg.Connection[tuple[object, ...]],
) -> None:
    suppressing(conn)
    conn.execute(
        f"CREATE OR REPLACE TRIGGER same BEFORE UPDATE OF v ON t FOR EACH ROW WHEN (old.v = new.v) {SUPPRESS}".encode()
    )
    conn.execute("ALTER TABLE t RENAME v TO w")
    conn.execute("ALTER TABLE t RENAME TO tt")
    assert changed(conn, "UPDATE tt SET w = 1") == 1
    assert changed(conn, "UPDATE tt SET id = id, w = w") == 0
    assert changed(conn, "UPDATE tt SET id = id") == 3  # not one of UPDATE OF's columns


def noting(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    """Make ``t`` with statement triggers that note in ``log`` how many rows there are."""
    conn.execute("CREATE TABLE t (id int, v int)")
    conn.execute("CREATE TABLE log (n int, w text, rows int)")
    conn.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log SELECT pg_trigger_depth(), TG_WHEN,"
        " count(*) FROM t; RETURN NULL; END $$"
    )
    for when in ("BEFORE", "AFTER"):
        made = f"CREATE TRIGGER {when}_t {when} INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note()"
        conn.execute(made.encode())


MANY = 21_000  # without triggers they are written as parts


@pytest.mark.parametrize("executor", ["local", "auto"])
def test_many_rows_inserted_fire_statement_triggers(
    conn: psycopg.Connection[tuple[object, ...]], executor: str
) -> None:
    noting(conn)
    conn.execute(f"SET executor = {executor}".encode())
    conn.execute(f"INSERT INTO t SELECT g, g FROM generate_series(1, {MANY}) g".encode())
    assert conn.execute("SELECT * FROM log ORDER BY rows").fetchall() == [
        (1, "BEFORE", 0),
        (1, "AFTER", MANY),
    ]


def test_many_rows_copied_fire_statement_triggers(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    noting(conn)
    with conn.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write(b"".join(b"%d\t1\n" % i for i in range(MANY)))
    assert conn.execute("SELECT * FROM log ORDER BY rows").fetchall() == [
        (1, "BEFORE", 0),
        (1, "AFTER", MANY),
    ]


def test_triggers_that_fire_each_other_for_ever_are_ended(
    conn: psycopg.Connection[tuple[object, ...]],
) -> None:
    conn.execute("CREATE TABLE t (id int)")
    conn.execute(
        "CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (1); RETURN NEW; END $$"
    )
    conn.execute("CREATE TRIGGER again AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION again()")
    with pytest.raises(psycopg.Error) as caught:
        conn.execute("INSERT INTO t VALUES (0)")
    assert caught.value.sqlstate == "54001"
    assert conn.execute("SELECT count(*), pg_trigger_depth() FROM t").fetchone() == (0, 0)
