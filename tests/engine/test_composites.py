"""Composite types: stored values outlast changes of their types, kill -9 and merges into parts; all executors answer alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqllogictest.client import ServerError
from tests.support.server import ServerProcess

ROWS = (
    "(1, '(1,x,2.50)', NULL), (2, '(1,x,2.5)', '{\"(1,,)\"}'), (3, '(,,)', '{}'), (4, '(-5,\"a b\",1e3)', NULL), "
    "(5, '(1,,)', NULL), (6, NULL, NULL)"
)


def test_values_outlast_changes_of_the_type_and_kill_9(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql("CREATE TYPE spot AS (n int, t text, d numeric)")
        server.sql("CREATE TABLE spots (id int PRIMARY KEY, s spot, a spot[])")
        server.sql(f"INSERT INTO spots VALUES {ROWS}")
        server.sql("CHECKPOINT")
        server.sql("ALTER TYPE spot ADD ATTRIBUTE late date")
        server.sql("INSERT INTO spots VALUES (7, '(1,x,2.500,2020-01-01)', NULL)")
        server.sql("ALTER TYPE spot RENAME ATTRIBUTE t TO called")
        server.sql("ALTER TYPE spot RENAME TO place")
        server.sql("ALTER TABLE spots ADD COLUMN b place DEFAULT ROW(9, 'nine', 9.90, NULL)")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        server.sql("INSERT INTO spots (id, s.called) VALUES (8, 'only')")
        ordered = "SELECT id, s, b FROM spots ORDER BY s, id"
        expected = [
            ("4", '(-5,"a b",1e3,)'), ("7", "(1,x,2.500,2020-01-01)"), ("1", "(1,x,2.50,)"), ("2", "(1,x,2.5,)"), ("5", "(1,,,)"),
            ("8", "(,only,,)"), ("3", "(,,,)"), ("6", None),
        ]  # fmt: skip
        nine = "(9,nine,9.90,)"
        expected[0] = ("4", '(-5,"a b",1000,)')
        for executor in ("index", "local"):
            client = server.connect()
            client.run(f"SET executor = {executor}")
            assert [(r[0], r[1]) for r in client.run(ordered).rows] == expected
            assert {r[2] for r in client.run(ordered).rows} == {nine}
            groups = client.run("SELECT count(*) FROM spots GROUP BY s ORDER BY 1 DESC").rows
            assert [r[0] for r in groups] == ["2", "1", "1", "1", "1", "1", "1"]
            pairs = "SELECT count(*) FROM spots x JOIN spots y ON x.s = y.s"
            assert list(map(tuple, client.run(pairs).rows)) == [("9",)]
            client.close()
        assert server.sql("SELECT (s).called, (s).late FROM spots WHERE id IN (2, 7) ORDER BY id") == [
            ("x", None),
            ("x", "2020-01-01"),
        ]
    finally:
        server.stop()


def test_rows_of_tables_as_values_outlast_kill_9(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql("CREATE SEQUENCE before_type")
        server.sql("CREATE TYPE shade AS ENUM ('dark')")
        server.sql("CREATE TABLE base (a int, b text)")
        server.sql("CREATE DOMAIN checked AS base CHECK ((VALUE).a > 0)")
        server.sql("CREATE TABLE users (id int, x base, d checked)")
        server.sql("INSERT INTO users VALUES (1, '(1,q)', ROW(2, 'r'))")
        server.sql("ALTER TABLE users ADD COLUMN y base DEFAULT '(5,five)'")
        server.sql("ALTER TABLE users ADD COLUMN z base[] DEFAULT '{\"(6,six)\"}'")
        server.sql("ALTER TABLE base ADD COLUMN late int")
        server.sql("CREATE FUNCTION twice(base) RETURNS int LANGUAGE sql AS 'SELECT ($1).a * 2'")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        assert server.sql("SELECT *, (y).b, twice(x), (d).b FROM users") == [
            ("1", "(1,q,)", "(2,r,)", "(5,five,)", '{"(6,six,)"}', "five", "2", "r"),
        ]
        assert server.sql("SELECT to_json('dark'::shade)") == [('"dark"',)]
        with pytest.raises(ServerError, match="violates check constraint"):
            server.sql("INSERT INTO users (d) VALUES (ROW(-1, 'x', 0))")
        server.sql("CHECKPOINT")
        assert server.sql("SELECT u FROM users u") == [
            ('(1,"(1,q,)","(2,r,)","(5,five,)","{""(6,six,)""}")',)
        ]
    finally:
        server.stop()


def test_a_past_read_has_the_attributes_of_then(server: ServerProcess) -> None:
    server.sql("CREATE TYPE earlier_row AS (a int)")
    server.sql("CREATE TABLE earlier_rows AS SELECT '(1)'::earlier_row AS v")
    [(before,)] = server.sql("SELECT clock_timestamp()")
    server.sql("ALTER TYPE earlier_row ADD ATTRIBUTE b int")
    server.sql("ALTER TABLE earlier_rows ADD COLUMN w int DEFAULT 7")
    assert server.sql("SELECT v, t FROM earlier_rows t") == [("(1,)", '("(1,)",7)')]
    past = f"FROM earlier_rows t AS OF SYSTEM TIME '{before}'"
    assert server.sql(f"SELECT v {past}") == [("(1)",)]


def test_a_transaction_sees_its_own_attributes(server: ServerProcess) -> None:
    server.sql("CREATE TYPE own_row AS (a int)")
    server.sql("CREATE TABLE own_rows AS SELECT '(1)'::own_row AS v")
    one, other = server.connect(), server.connect()
    one.run("BEGIN")
    one.run("ALTER TYPE own_row ADD ATTRIBUTE b int")
    assert list(map(tuple, one.run("SELECT v, (v).b FROM own_rows").rows)) == [("(1,)", None)]
    assert list(map(tuple, other.run("SELECT v FROM own_rows").rows)) == [("(1)",)]
    one.run("ROLLBACK")
    assert list(map(tuple, one.run("SELECT v FROM own_rows").rows)) == [("(1)",)]
    one.close()
    other.close()


def test_an_attribute_goes_from_values_at_any_depth_and_they_compare_without_it(
    server: ServerProcess,
) -> None:
    server.sql(
        "CREATE TYPE lost_part AS (x int, y int); CREATE TYPE lost_whole AS (p lost_part[], n numeric)"
    )
    server.sql("CREATE DOMAIN lost_domain AS lost_part")
    server.sql("CREATE TABLE lost (a lost_part, b lost_part[], c lost_whole, d lost_domain, e int)")
    server.sql("CREATE INDEX ON lost (a)")
    for y in (1, 2):
        server.sql(
            f"INSERT INTO lost VALUES ((7, {y}), ARRAY[(8, {y}), NULL]::lost_part[], (ARRAY[(9, {y})]::lost_part[], 1.50), "
            f"(6, {y})::lost_part, {y}), (NULL, NULL, NULL, NULL, 3)"
        )
    assert server.sql("SELECT count(DISTINCT a), count(DISTINCT b), count(DISTINCT c) FROM lost") == [
        ("2", "2", "2")
    ]
    server.sql("ALTER TYPE lost_part DROP ATTRIBUTE y")
    assert server.sql("SELECT DISTINCT a, b, c, d FROM lost WHERE e < 3") == [
        ("(7)", "{(8),NULL}", '("{(9)}",1.50)', "(6)")
    ]
    assert server.sql("SELECT count(DISTINCT a), count(DISTINCT b), count(DISTINCT c) FROM lost") == [
        ("1", "1", "1")
    ]
    assert server.sql("SELECT count(*) FROM lost WHERE a = ROW(7)::lost_part") == [("2",)]
    server.sql("DROP TABLE lost; DROP TYPE lost_whole; DROP TYPE lost_part CASCADE")


def test_stored_rows_compare_without_a_column_that_their_table_has_lost(server: ServerProcess) -> None:
    server.sql("DROP TABLE IF EXISTS holder")
    server.sql("DROP TABLE IF EXISTS held")
    server.sql("DROP TYPE IF EXISTS held_part")
    server.sql("CREATE TYPE held_part AS (x int, y int)")
    server.sql("CREATE TABLE held (a held_part, b int)")
    server.sql("CREATE TABLE holder (h held)")
    server.sql("INSERT INTO holder VALUES (ROW(ROW(1, 2), 3)), (ROW(ROW(1, 2), 4)), (ROW(ROW(1, 3), 4))")
    server.sql("CREATE INDEX ON holder (h)")
    server.sql("ALTER TABLE held DROP COLUMN b")
    assert server.sql("SELECT DISTINCT h FROM holder ORDER BY h") == [('("(1,2)")',), ('("(1,3)")',)]
    assert server.sql("SELECT count(*) FROM holder WHERE h = ROW(ROW(1, 2))::held") == [("2",)]


@pytest.mark.parametrize(
    ("made", "change"),
    [
        ("CREATE VIEW named_view AS SELECT (v).a FROM named_rows", 'ALTER TYPE named_row RENAME ATTRIBUTE a TO "new"'),
        ("ALTER TABLE named_rows ADD CHECK ((v).a > 0)", "ALTER TYPE named_row RENAME ATTRIBUTE a TO b"),
        ("CREATE DOMAIN named_domain AS named_row CHECK ((VALUE).a > 0)", "ALTER TYPE named_row RENAME ATTRIBUTE a TO b"),
        ("CREATE INDEX ON named_rows (((v).a))", "ALTER TYPE named_row RENAME ATTRIBUTE a TO b"),
        (
            "CREATE TABLE named_holders (h named_rows, CHECK (((h).v).a > 0))",
            "ALTER TABLE named_rows RENAME v TO b",
        ),
    ],
)  # fmt: skip
def test_stored_texts_follow_the_names_of_fields(server: ServerProcess, made: str, change: str) -> None:
    server.sql("DROP TABLE IF EXISTS named_rows CASCADE")
    server.sql("DROP TABLE IF EXISTS named_holders CASCADE")
    server.sql("DROP TYPE IF EXISTS named_row CASCADE")
    server.sql("CREATE TYPE named_row AS (a int, z int)")
    server.sql("CREATE TABLE named_rows (v named_row, w int)")
    server.sql(made)
    server.sql("BEGIN; " + change + "; ROLLBACK")
    server.sql("INSERT INTO named_rows VALUES (ROW(1, 2), 3)")
    server.sql(change)
    server.sql("ALTER TYPE named_row RENAME ATTRIBUTE z TO y")
    server.sql("ALTER TABLE named_rows RENAME w TO x")
    server.sql("INSERT INTO named_rows VALUES (ROW(2, 3), 4)")
    column = "b" if "RENAME v" in change else "v"
    assert server.sql(f"SELECT ({column}).y, x FROM named_rows ORDER BY x") == [("2", "3"), ("3", "4")]
    if "VIEW" in made:
        assert server.sql("SELECT a FROM named_view ORDER BY a") == [("1",), ("2",)]
    if "CHECK" in made:
        broken = {
            "named_rows ADD": "INSERT INTO named_rows VALUES (ROW(0, 2), 3)",
            "DOMAIN": "SELECT ROW(0, 2)::named_row::named_domain",
            "named_holders": "INSERT INTO named_holders VALUES (ROW(ROW(0, 2), 3))",
        }
        [sql] = [sql for word, sql in broken.items() if word in made]
        with pytest.raises(ServerError) as caught:
            server.sql(sql)
        assert caught.value.sqlstate == "23514"


def test_bodies_that_are_kept_as_expressions_know_attributes(server: ServerProcess) -> None:
    server.sql("CREATE TYPE kept_row AS (a int, b text)")
    server.sql("CREATE TABLE kept_rows AS SELECT (g, 'x')::kept_row AS v FROM generate_series(1, 3) g")
    server.sql("CREATE FUNCTION kept_field(x kept_row) RETURNS int LANGUAGE sql RETURN (x).a")
    server.sql(
        "CREATE FUNCTION kept_named(x kept_row) RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT x.b; END"
    )
    server.sql("CREATE FUNCTION kept_whole(r kept_rows) RETURNS kept_row LANGUAGE sql RETURN r.v")
    server.sql(
        "CREATE FUNCTION kept_sum() RETURNS bigint LANGUAGE sql RETURN (SELECT sum((v).a) FROM kept_rows)"
    )
    server.sql("ALTER TYPE kept_row ADD ATTRIBUTE c int")
    server.sql("ALTER TABLE kept_rows ADD COLUMN w int")
    found = server.sql(
        "SELECT kept_field(v), kept_named(v), kept_whole(r), kept_sum() FROM kept_rows r ORDER BY 1"
    )
    assert found == [(str(i), "x", f"({i},x,)", "6") for i in (1, 2, 3)]
