"""FOR UPDATE and its kin as they are bound: what is marked, and PostgreSQL's restrictions word for word."""

from __future__ import annotations

import pytest

from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.bind.query.locking import locking_selects, statement_name
from planner.deparse import deparse_query
from planner.parse import parse_one
from planner.query import RowMark, Select, SubqueryRange
from planner.statements import BoundStatement, QueryStatement, StatementClass
from tests.support.catalog import MemoryCatalog

CATALOG = MemoryCatalog()
CATALOG.table("t", "a int4 pk", "b int4")
CATALOG.table("u", "a int4 pk", "c int4")
CATALOG.view("v", "SELECT t.a, t.b FROM public.t", "a int4", "b int4")
CATALOG.view("grouped", "SELECT t.b FROM public.t GROUP BY t.b", "b int4")
CATALOG.table("pg_class", "oid oid", schema="pg_catalog", virtual=True)


def bind(text: str) -> BoundStatement:
    parsed = parse_one(text)
    assert parsed is not None
    return bind_statement(parsed.statement, parsed.text, CATALOG, ("public",))


def tree(text: str) -> Select:
    statement = bind(text).statement
    assert isinstance(statement, QueryStatement)
    assert isinstance(statement.query, Select)
    return statement.query


def marks(query: Select) -> list[tuple[str, str, str]]:
    return [(query.ranges[m.range].alias, m.strength, m.wait) for m in query.row_marks]


def test_every_table_is_marked_unless_of_names_some():
    assert marks(tree("SELECT 1 FROM t, u FOR SHARE")) == [("t", "share", "block"), ("u", "share", "block")]
    assert marks(tree("SELECT 1 FROM t x, u FOR KEY SHARE OF x NOWAIT")) == [("x", "key share", "nowait")]


def test_the_strongest_of_several_clauses_counts():
    text = "SELECT 1 FROM t, u FOR SHARE SKIP LOCKED FOR NO KEY UPDATE OF u NOWAIT FOR KEY SHARE OF t"
    assert marks(tree(text)) == [("t", "share", "skip"), ("u", "no key update", "nowait")]


@pytest.mark.parametrize("from_", ["v", "(SELECT * FROM t) v"])
def test_a_clause_goes_on_into_views_and_sub_selects(from_: str):
    query = tree(f"SELECT * FROM {from_} FOR UPDATE SKIP LOCKED")
    assert query.row_marks == (RowMark(range=0, strength="update", wait="skip"),)
    (inner,) = query.ranges
    assert isinstance(inner, SubqueryRange)
    assert isinstance(inner.query, Select)
    assert inner.query.row_marks == (RowMark(range=0, strength="update", wait="skip", pushed=True),)


def test_what_has_no_rows_to_lock_is_passed_over():
    text = (
        "WITH c AS (SELECT * FROM t) SELECT 1 FROM c, u, generate_series(1, 2) g, (VALUES (1)) x FOR UPDATE"
    )
    assert marks(tree(text)) == [("u", "update", "block"), ("x", "update", "block")]


def test_a_locking_query_is_no_read():
    bound = bind("SELECT 1 FROM t WHERE a IN (SELECT a FROM u FOR KEY SHARE)")
    assert bound.class_ is StatementClass.READ_THEN_WRITE
    assert statement_name(bound.statement) == "SELECT FOR KEY SHARE"
    assert bind("SELECT 1 FROM t").class_ is StatementClass.READ_ONLY


def test_clauses_print_as_postgresql_prints_them():
    query = tree("SELECT t.a FROM t JOIN u ON t.a = u.a FOR NO KEY UPDATE OF t FOR SHARE OF u SKIP LOCKED")
    printed = deparse_query(query)
    assert printed.endswith("\n FOR NO KEY UPDATE OF t\n FOR SHARE OF u SKIP LOCKED")
    again = tree(printed)
    assert [s.row_marks for s in locking_selects(again)] == [query.row_marks]
    pushed = tree("SELECT * FROM (SELECT t.a FROM t) s FOR UPDATE")
    assert deparse_query(pushed).count("FOR UPDATE") == 1


NOT_ALLOWED = "FOR UPDATE is not allowed with "
CANNOT = "FOR UPDATE cannot be applied to "


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("VALUES (1) FOR UPDATE", "0A000", CANNOT + "VALUES"),
        ("SELECT a FROM t UNION SELECT a FROM u FOR UPDATE", "0A000", NOT_ALLOWED + "UNION/INTERSECT/EXCEPT"),
        (
            "SELECT a FROM t UNION (SELECT a FROM u FOR UPDATE)",
            "0A000",
            NOT_ALLOWED + "UNION/INTERSECT/EXCEPT",
        ),
        ("SELECT DISTINCT a FROM t FOR UPDATE", "0A000", NOT_ALLOWED + "DISTINCT clause"),
        ("SELECT b FROM t GROUP BY b FOR UPDATE", "0A000", NOT_ALLOWED + "GROUP BY clause"),
        ("SELECT 1 FROM t HAVING true FOR UPDATE", "0A000", NOT_ALLOWED + "HAVING clause"),
        ("SELECT count(*) FROM t FOR UPDATE", "0A000", NOT_ALLOWED + "aggregate functions"),
        ("SELECT row_number() OVER () FROM t FOR UPDATE", "0A000", NOT_ALLOWED + "window functions"),
        (
            "SELECT generate_series(1, 2) FROM t FOR UPDATE",
            "0A000",
            NOT_ALLOWED + "set-returning functions in the target list",
        ),
        ("SELECT * FROM grouped FOR UPDATE", "0A000", NOT_ALLOWED + "GROUP BY clause"),
        ("SELECT * FROM (SELECT DISTINCT a FROM t) s FOR UPDATE", "0A000", NOT_ALLOWED + "DISTINCT clause"),
        (
            "SELECT * FROM t FOR UPDATE OF x",
            "42P01",
            'relation "x" in FOR UPDATE clause not found in FROM clause',
        ),
        (
            "SELECT * FROM t x FOR UPDATE OF t",
            "42P01",
            'relation "t" in FOR UPDATE clause not found in FROM clause',
        ),
        (
            "SELECT * FROM t FOR UPDATE OF public.t",
            "42601",
            "FOR UPDATE must specify unqualified relation names",
        ),
        ("SELECT * FROM (t JOIN u USING (a)) j FOR UPDATE OF j", "0A000", CANNOT + "a join"),
        ("SELECT * FROM generate_series(1, 2) g FOR UPDATE OF g", "0A000", CANNOT + "a function"),
        (
            "WITH c AS (SELECT * FROM t) SELECT * FROM c FOR UPDATE OF c",
            "0A000",
            CANNOT + "a WITH query",
        ),
        (
            "SELECT * FROM t LEFT JOIN u ON t.a = u.a FOR UPDATE",
            "0A000",
            CANNOT + "the nullable side of an outer join",
        ),
        (
            "SELECT * FROM t FULL JOIN u ON t.a = u.a FOR UPDATE OF t",
            "0A000",
            CANNOT + "the nullable side of an outer join",
        ),
        (
            "SELECT a FROM t ORDER BY a FETCH FIRST 1 ROW WITH TIES FOR UPDATE SKIP LOCKED",
            "42601",
            "SKIP LOCKED and WITH TIES options cannot be used together",
        ),
        (
            "SELECT * FROM pg_catalog.pg_class FOR UPDATE",
            "0A000",
            "SELECT FOR UPDATE of a catalog relation is not supported",
        ),
        (
            "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t FOR UPDATE",
            "0A000",
            "DECLARE CURSOR WITH HOLD ... FOR UPDATE is not supported",
        ),
        (
            "DECLARE c SCROLL CURSOR FOR SELECT * FROM t FOR UPDATE",
            "0A000",
            "DECLARE SCROLL CURSOR ... FOR UPDATE is not supported",
        ),
        (
            "DECLARE c INSENSITIVE CURSOR FOR SELECT * FROM t FOR UPDATE",
            "42P11",
            "DECLARE INSENSITIVE CURSOR ... FOR UPDATE is not valid",
        ),
    ],
)
def test_restrictions(text: str, sqlstate: str, message: str):
    with pytest.raises(SqlError) as caught:
        bind(text)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t LEFT JOIN u ON t.a = u.a FOR UPDATE OF t",
        "SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE u.c > 1 FOR UPDATE",
        "SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE u.c IS NOT NULL FOR UPDATE",
        "SELECT * FROM t FULL JOIN u ON t.a = u.a WHERE t.b = 1 AND u.c IN (1, 2) FOR UPDATE",
        "SELECT * FROM t JOIN u USING (a) FOR UPDATE",
    ],
)
def test_a_side_whose_absence_a_condition_rules_out_may_be_locked(text: str):
    assert tree(text).row_marks
