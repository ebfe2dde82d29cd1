"""DDL that once broke something for others: catalogs that pg_dump cannot read, views that nobody can bind, objects that outlive their session."""

from __future__ import annotations

import itertools
import threading
import time

import psycopg
import pytest

from engine.base.eager import settle
from engine.catalog.references import missing
from engine.catalog.storage.store import decode, encode
from engine.catalog.storage.stored import key_of
from engine.definitions.oids import BLOCK
from engine.server.database import Database
from planner.bind.stored import rebase_view
from planner.catalog import ColumnDef, RelationDef
from planner.types import SqlType
from planner.types.facts import FIRST_USER_OID
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk

_APART = itertools.count(1000, 1000)


async def _opened(disk: MemoryDisk) -> Database:
    """Open a new database, with other oids than those before: what a process knows of types it knows by oids, as a server has each once."""
    database = await open_database(disk)
    apart = next(_APART)
    await database.oids_ready(apart)
    database.allocate_oids(apart)
    return database


def state_of(statements: str, query: str = "") -> tuple[str, list[tuple[str | None, ...]]]:
    """Run statements in a new database up to the first that fails; return its SQLSTATE and what ``query`` answers after it."""

    async def body() -> tuple[str, list[tuple[str | None, ...]]]:
        session = Session(await _opened(MemoryDisk()), 1)
        state = ""
        for statement in statements.split(";\n"):
            try:
                await session.run(statement)
            except Failed as error:
                state = error.report.sqlstate
                break
        return state, await session.run(query) if query else []

    return run(body)


def dangling(statements: str) -> list[str]:
    """Run statements, which succeed, in a new database; return what of its catalog refers to what is not there."""

    async def body() -> list[str]:
        session = Session(await _opened(MemoryDisk()), 1)
        for statement in statements.split(";\n"):
            await session.run(statement)
        items = session.connection.session.space.catalog.items.values()
        return [f"{item} {reference}" for item, reference in missing(items)]

    return run(body)


@pytest.mark.parametrize(
    ("made", "dropped"),
    [
        ("CREATE TABLE t (a int);\nCREATE VIEW v AS SELECT a FROM t", "DROP TABLE t CASCADE"),
        ("CREATE TABLE t (a int);\nCREATE VIEW w AS SELECT a FROM t;\nCREATE MATERIALIZED VIEW v AS SELECT a FROM w", "DROP VIEW w CASCADE"),
        ("CREATE SEQUENCE s;\nCREATE VIEW v AS SELECT nextval('s') AS a", "DROP SEQUENCE s CASCADE"),
        ("CREATE SCHEMA z;\nCREATE TABLE z.t (a int);\nCREATE VIEW v AS SELECT a FROM z.t", "DROP SCHEMA z CASCADE"),
        ("CREATE TABLE t (a int, b int);\nCREATE VIEW v AS SELECT b FROM t", "ALTER TABLE t DROP COLUMN b CASCADE"),
        ("CREATE TYPE e AS ENUM ('a');\nCREATE VIEW v AS SELECT 'a'::e AS a", "DROP TYPE e CASCADE"),
        ("CREATE TEMP TABLE t (a int);\nCREATE VIEW v AS SELECT a FROM t", "DISCARD TEMP"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "over",
    [
        "CREATE DOMAIN d AS v;\nCREATE TABLE u (k int, x v, y d)",
        "CREATE TABLE u (k int, x v);\nCREATE VIEW uv AS SELECT x FROM u;\nCREATE VIEW uw AS SELECT k FROM u",
        "CREATE TYPE c AS (x v, y int);\nCREATE FUNCTION f(c) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE u (k int);\nCREATE INDEX ON u ((NULL::v IS NULL AND k > 0));\nCREATE POLICY p ON u USING (NULL::v IS NULL)",
    ],
)
def test_what_uses_the_rows_of_a_view_goes_with_it(made: str, dropped: str, over: str) -> None:
    """However the view goes: it was left behind, and the next start could not read it."""
    assert dangling(f"{made};\n{over};\n{dropped}") == []


COLUMNS = (
    "SELECT attnum, attisdropped, atttypid = 0, relnatts FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
    "WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum"
)


@pytest.mark.parametrize("index", ["((a + 1))", "(a) WHERE a > 1", "((a + 1), (a + 2)) WHERE a > 1"])
def test_columns_are_numbered_without_gaps_beside_what_an_index_keeps(index: str) -> None:
    _, made = state_of(f"CREATE TABLE t (a int);\nCREATE INDEX ON t {index}", COLUMNS)
    assert made == [("1", "f", "f", "1")]
    _, rows = state_of(
        f"CREATE TABLE t (a int);\nCREATE INDEX ON t {index};\nALTER TABLE t ADD c int;\nALTER TABLE t ADD d int", COLUMNS
    )  # fmt: skip
    assert [int(row[0] or 0) for row in rows] == list(range(1, int(rows[0][3] or 0) + 1))
    assert [row[1] for row in rows].count("f") == 3
    assert all(row[1] == row[2] for row in rows)


def test_a_dropped_column_keeps_no_value_of_a_type_that_may_be_gone() -> None:
    column = ColumnDef(
        attnum=1, name="x", type=SqlType(FIRST_USER_OID + 99_999_999), dropped=True, missing_value="a"
    )
    table = RelationDef(
        oid=FIRST_USER_OID + 1, schema_oid=2200, schema="public", name="t", kind="r", columns=(column,)
    )
    found = decode(key_of(table), encode(table))
    assert isinstance(found, RelationDef)
    assert found.columns[0].missing_value is None


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE VIEW a AS SELECT 1 AS x;\nCREATE VIEW b AS SELECT * FROM a;\nCREATE OR REPLACE VIEW a AS SELECT * FROM b",
        "CREATE VIEW a AS SELECT 1 AS x;\nCREATE OR REPLACE VIEW a AS SELECT * FROM a",
        "CREATE VIEW a AS SELECT 1 AS x;\nCREATE VIEW b AS SELECT 1 AS x WHERE EXISTS (SELECT 1 FROM a);\n"
        "CREATE VIEW c AS SELECT * FROM b;\nCREATE OR REPLACE VIEW a AS SELECT x FROM c UNION SELECT 2",
    ],
)
def test_a_view_that_would_read_itself_is_refused_and_others_are_served(statements: str) -> None:
    """PostgreSQL makes it, and refuses to read it; here nobody could list views any more."""
    state, views = state_of(statements, "SELECT count(definition) > 0 FROM pg_views WHERE viewname = 'a'")
    assert (state, views) == ("42P17", [("t",)])


def _stack(name: str, height: int, base: str) -> list[str]:
    below = [base, *(f"{name}{level}" for level in range(1, height))]
    return [f"CREATE VIEW {name}{level} AS SELECT a FROM {on}" for level, on in enumerate(below, 1)]


def test_views_are_nested_as_deep_as_they_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    deepest = 6
    monkeypatch.setattr("planner.bind.context.MAX_VIEW_DEPTH", deepest)
    monkeypatch.setattr("engine.definitions.table.view_nesting.MAX_VIEW_DEPTH", deepest)
    query = "SELECT count(definition) FROM pg_views WHERE schemaname = 'public'"
    deep = ["CREATE TABLE t (a int)", *_stack("v", deepest, "t")]
    assert state_of(";\n".join(deep), query) == ("", [("6",)])
    over = [*deep, "CREATE VIEW w AS SELECT a FROM v6"]
    assert state_of(";\n".join(over), query) == ("42P17", [("6",)])
    halves = [
        "CREATE TABLE t (a int)",
        *_stack("v", 4, "t"),
        *_stack("w", 4, "t"),
        "CREATE OR REPLACE VIEW v1 AS SELECT a FROM w4",
    ]
    assert state_of(";\n".join(halves), query) == ("42P17", [("8",)])


@pytest.mark.parametrize(
    ("statements", "state"),
    [
        ("CREATE TEMP TABLE t (a int);\nCREATE VIEW public.v AS SELECT * FROM t", "42P16"),
        ("CREATE TEMP TABLE t (a int);\nCREATE VIEW v AS SELECT * FROM t", ""),
        ("CREATE TYPE v AS ENUM ('a');\nCREATE VIEW v AS SELECT 1 AS a", "42710"),
        ("CREATE TYPE pg_temp.e AS ENUM ('a');\nALTER TYPE pg_temp.e SET SCHEMA public", "0A000"),
        ("CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql RETURN 1;\nALTER FUNCTION pg_temp.f() SET SCHEMA public", "0A000"),
        ("CREATE TEMP TABLE t (a int);\nALTER TABLE t SET SCHEMA public", "0A000"),
    ],
)  # fmt: skip
def test_nothing_becomes_permanent_that_is_temporary(statements: str, state: str) -> None:
    assert state_of(statements)[0] == state


def test_an_enum_may_have_more_labels_than_oids_are_reserved_at_once() -> None:
    labels = ", ".join(f"'l{number}'" for number in range(BLOCK + 100))
    assert state_of(f"CREATE TYPE e AS ENUM ({labels})", "SELECT count(*) FROM pg_enum") == (
        "",
        [(str(BLOCK + 100),)],
    )


@pytest.mark.parametrize("what", ["TEMP", "ALL"])
@pytest.mark.parametrize(
    "make",
    [
        "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql RETURN 1",
        "CREATE TYPE pg_temp.e AS ENUM ('a')",
        "CREATE DOMAIN pg_temp.d AS int;\nCREATE TABLE t (a pg_temp.d, b int)",
        "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql RETURN 1;\nCREATE VIEW v AS SELECT pg_temp.f()",
    ],
)
def test_discard_takes_what_is_no_table(what: str, make: str) -> None:
    left = (
        "SELECT proname FROM pg_proc WHERE pronamespace = pg_my_temp_schema() UNION ALL "
        "SELECT typname FROM pg_type WHERE typnamespace = pg_my_temp_schema()"
    )
    assert state_of(f"{make};\nDISCARD {what}", left) == ("", [])


def test_a_prepared_insert_that_waits_for_a_drop_hears_that_the_table_is_gone(server: ServerProcess) -> None:
    with (
        psycopg.connect(server.url, autocommit=True) as boss,
        psycopg.connect(server.url, autocommit=True) as client,
    ):
        boss.execute(
            "CREATE TABLE waited (id int PRIMARY KEY, b int); CREATE TABLE child (b int REFERENCES waited)"
        )
        for number in range(3):
            client.execute("INSERT INTO waited VALUES (%s, 1)", (number,), prepare=True)
        answers: list[str | None] = []

        def insert() -> None:
            try:
                client.execute("INSERT INTO waited VALUES (%s, 1)", (9,), prepare=True)
                answers.append("")
            except psycopg.Error as error:
                answers.append(error.sqlstate)

        boss.execute("BEGIN; DROP TABLE waited CASCADE")
        worker = threading.Thread(target=insert)
        worker.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = %s"
        for _ in range(400):
            if boss.execute(waiting, (client.info.backend_pid,)).fetchone() == (1,) or not worker.is_alive():
                break
            time.sleep(0.005)
        boss.execute("COMMIT")
        worker.join(20)
        boss.execute("DROP TABLE child")
    assert answers == ["42P01"]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ("(a) INCLUDE (b) WHERE a IS NOT NULL", "d_a_b_idx"),
        ("((a + 1), b) INCLUDE (c)", "d_expr_b_c_idx"),
        ("((a + 1)) INCLUDE (c, b) WHERE b > 0", "d_expr_c_b_idx"),
    ],
)
def test_a_partition_has_its_part_of_a_computed_index_that_includes_columns(
    keys: str, name: str, before: bool
) -> None:
    steps = ["CREATE TABLE d PARTITION OF p DEFAULT", f"CREATE INDEX ON p {keys}"]
    made = ";\n".join(
        [
            "CREATE TABLE p (a int, b int, c text) PARTITION BY LIST (c)",
            *(steps if before else reversed(steps)),
        ]
    )
    assert state_of(made, "SELECT indexname FROM pg_indexes WHERE tablename = 'd'") == ("", [(name,)])


ROWS_HELD = (
    "CREATE TABLE a (k int, c {used}, z text);\nCREATE TABLE b (r a, s a[], n int);\nCREATE TYPE over AS (p a);\n"
    "CREATE TABLE u (q over);\nCREATE TABLE h (r a) PARTITION BY LIST (((r).k));\nCREATE TABLE h1 PARTITION OF h DEFAULT;\n"
    "INSERT INTO b VALUES (ROW(1, NULL, 'x'), ARRAY[ROW(2, NULL, 'y')::a, NULL], 5);\nINSERT INTO u VALUES (ROW(ROW(3, NULL, 'z')));\n"
    "INSERT INTO h VALUES (ROW(4, NULL, 'w'))"
)
"""Rows of ``a``, whose second column goes, are values elsewhere."""


@pytest.mark.parametrize(
    ("made", "used", "dropped"),
    [
        ("CREATE TYPE ty AS (x int)", "ty", "DROP TYPE ty CASCADE"),
        ("CREATE DOMAIN ty AS int", "ty", "DROP DOMAIN ty CASCADE"),
        ("CREATE SCHEMA s;\nCREATE TYPE s.ty AS ENUM ('a')", "s.ty", "DROP SCHEMA s CASCADE"),
        ("CREATE TABLE ty (x int)", "ty[]", "DROP TABLE ty CASCADE"),
        ("CREATE TYPE pg_temp.ty AS (x int)", "pg_temp.ty", "DISCARD TEMP"),
        ("CREATE TYPE pg_temp.ty AS (x int)", "pg_temp.ty", ""),
        ("CREATE TEMP TABLE tt (x int);\nCREATE DOMAIN ty AS tt", "ty", ""),
        ("SELECT", "int", "ALTER TABLE a DROP COLUMN c"),
    ],
)
@pytest.mark.parametrize("ends", [True, False])
def test_values_of_a_row_lose_the_column_that_its_table_has_lost(
    made: str, used: str, dropped: str, ends: bool
) -> None:
    """However it went, and though the server is killed: "" is the end of the session."""

    async def body() -> tuple[list[tuple[str | None, ...]], ...]:
        disk = MemoryDisk()
        session = Session(await _opened(disk), 1)
        for statement in f"{made};\n{ROWS_HELD.format(used=used)};\n{dropped or 'SELECT'}".split(";\n"):
            await session.run(statement)
        if ends:
            await settle(session.connection.close())
        again = Session(await open_database(disk), 2)
        return (
            await again.run("SELECT r, s, (r).z FROM b WHERE r = ROW(1, 'x')::a"),
            await again.run("SELECT q FROM u"),
            await again.run("SELECT r FROM h"),
            await again.run("SELECT object FROM holdfast_unreadable_objects"),
            await again.run("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pg_temp%'"),
        )

    assert run(body) == ([("(1,x)", '{"(2,y)",NULL}', "x")], [('("(3,z)")',)], [("(4,w)",)], [], [])


def test_what_names_a_temporary_object_is_shown_to_other_sessions() -> None:
    """One constraint that is read against another session's path fails no list of all of them, which pg_dump asks for."""

    async def body() -> list[tuple[str | None, ...]]:
        database = await _opened(MemoryDisk())
        owner, other = Session(database, 1), Session(database, 2)
        await owner.run("CREATE TEMP SEQUENCE q")
        await owner.run("CREATE TABLE t (a oid, CONSTRAINT c CHECK (a <> 'pg_temp.q'::regclass))")
        await owner.run("CREATE DOMAIN d AS oid CONSTRAINT cd CHECK (VALUE <> 'pg_temp.q'::regclass)")
        return await other.run(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE oid >= 16384 ORDER BY conname"
        )

    assert run(body) == [
        ("c", "CHECK ((a <> ('pg_temp_1.q'::regclass)::oid))"),
        ("cd", "CHECK ((VALUE <> ('pg_temp_1.q'::regclass)::oid))"),
    ]


SELECTING = (
    "CREATE TYPE ty AS (x int);\nCREATE TABLE a (k int, c ty, z int);\n"
    "CREATE TABLE b (r a, n int, CONSTRAINT gone CHECK (((r).c).x > 0), g int GENERATED ALWAYS AS (((r).c).x) STORED);\n"
    "CREATE VIEW v AS SELECT (r).c FROM b;\nCREATE VIEW vv AS SELECT c FROM v;\nCREATE VIEW kept AS SELECT (r).k FROM b;\n"
    "CREATE INDEX gone ON b ((((r).c).x));\nCREATE INDEX kept_index ON b (((r).k));\nCREATE POLICY p ON b USING ((r).c IS NULL);\n"
    "CREATE FUNCTION f(q a) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT ((q).c).x; END;\n"
    "CREATE DOMAIN d AS a CHECK (((VALUE).c).x > 0);\nINSERT INTO b VALUES (ROW(1, ROW(2), 3))"
)


@pytest.mark.parametrize("dropped", ["ALTER TABLE a DROP COLUMN c CASCADE", "DROP TYPE ty CASCADE"])
def test_what_selects_the_column_from_rows_elsewhere_goes_with_it(dropped: str) -> None:
    assert state_of(f"{SELECTING};\nALTER TABLE a DROP COLUMN c", "SELECT (r).c FROM b") == (
        "2BP01",
        [("(2)",)],
    )
    left = """
        SELECT indexname FROM pg_indexes WHERE schemaname = 'public' UNION ALL SELECT viewname FROM pg_views WHERE schemaname = 'public'
        UNION ALL SELECT conname FROM pg_constraint WHERE oid >= 16384 UNION ALL SELECT proname FROM pg_proc WHERE oid >= 16384
        UNION ALL SELECT polname FROM pg_policy UNION ALL SELECT attname FROM pg_attribute WHERE attrelid = 'b'::regclass AND attname = 'g'
        UNION ALL SELECT k::text FROM kept"""
    assert state_of(f"{SELECTING};\n{dropped}", left) == ("", [("kept_index",), ("kept",), ("1",)])


def test_what_selects_an_attribute_keeps_it_and_goes_with_its_type() -> None:
    made = (
        "CREATE TYPE ty AS (x int);\nCREATE TYPE c AS (k int, f ty);\nCREATE TABLE b (r c, CONSTRAINT gone CHECK ((r).f IS NULL));\n"
        "CREATE VIEW v AS SELECT (r).f FROM b;\nCREATE VIEW kept AS SELECT (r).k FROM b"
    )
    views = "SELECT viewname FROM pg_views WHERE schemaname = 'public' ORDER BY 1"
    assert state_of(f"{made};\nALTER TYPE c DROP ATTRIBUTE f", views) == ("2BP01", [("kept",), ("v",)])
    assert state_of(f"{made};\nDROP TYPE ty CASCADE;\nINSERT INTO b VALUES (ROW(1))", views) == (
        "",
        [("kept",)],
    )


def test_dropping_a_column_binds_no_text_of_others_that_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where values of the table's row type are somewhere does a name alone make a text one to look at."""
    bound: list[str] = []

    def rebase(view: RelationDef, *args: object) -> object:
        bound.append(view.name)
        return rebase_view(view, *args)  # type: ignore[arg-type]

    monkeypatch.setattr("engine.definitions.dropping.field_uses.rebase_view", rebase)
    views = [f"CREATE TABLE a{n} (id int);\nCREATE VIEW v{n} AS SELECT a{n}.id FROM a{n}" for n in range(3)]
    assert (
        dangling(";\n".join([*views, "CREATE TABLE gone (id int, k int)", "ALTER TABLE gone DROP id"])) == []
    )
    assert bound == []
    held = "CREATE TABLE gone (id int, k int);\nCREATE TABLE holder (r gone)"
    assert dangling(";\n".join([*views, held, "ALTER TABLE gone DROP id"])) == []
    assert list(dict.fromkeys(bound)) == ["v0", "v1", "v2"]
