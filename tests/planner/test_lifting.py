"""Scalar sub-selects become joins for Spark: which ones, and in what form. Answers: tests/conformance/executors."""

from __future__ import annotations

import re

import pytest

from planner.base.errors import SqlError
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.duckdb import DuckDialect
from planner.lower.kit.spark import SparkDialect
from planner.lower.query.lowering import lower_query
from planner.statements import QueryStatement
from tests.planner.tables import bind

OWN = "SELECT max(z) FROM s WHERE id = t.a"


def lowered(sql: str, dialect: Dialect | None = None) -> str:
    statement = bind(sql).statement
    assert isinstance(statement, QueryStatement)
    return lower_query(statement.query, dialect or SparkDialect()).text


@pytest.mark.parametrize(
    ("sql", "on"),
    [
        (f"SELECT b FROM t WHERE a < ({OWN})", "ON (s5.q4_2 = r1.c1)"),
        ("SELECT b FROM t WHERE a < (SELECT max(z) FROM s WHERE t.a = id)", "ON (r1.c1 = s5.q4_2)"),
        (f"SELECT ({OWN}) FROM t", "ON (s5.q4_2 = r1.c1)"),
        (f"SELECT count(*) FROM t WHERE a + ({OWN}) > 3", "ON (s5.q4_2 = r1.c1)"),
        ("SELECT b FROM t WHERE a < (SELECT max(z) FROM s WHERE id = t.a AND y = t.b)", "ON ((s5.q4_2 = r1.c1) AND (s5.q4_3 = r1.c2))"),
        ("SELECT b FROM t WHERE a < (SELECT max(z) FROM s WHERE id + 1 = t.a * 2)", "ON (s5.q4_2 = (r1.c1 * 2))"),
    ],
)  # fmt: skip
def test_a_correlated_aggregate_is_a_join_by_its_own_columns(sql: str, on: str) -> None:
    text = lowered(sql)
    assert "JOIN (SELECT" in text
    assert on in text
    assert "GROUP BY r2.c1" in text or "GROUP BY (r2.c1 + 1)" in text


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        (f"SELECT b FROM t WHERE a < ({OWN})", "INNER"),
        (f"SELECT b FROM t WHERE g AND a + 1 < -({OWN})", "INNER"),
        (f"SELECT b FROM t WHERE a < ({OWN}) OR g", "LEFT"),
        (f"SELECT b FROM t WHERE ({OWN}) IS NULL", "LEFT"),
        (f"SELECT b FROM t WHERE coalesce(({OWN}), 0) < 1", "LEFT"),
        ("SELECT b FROM t WHERE a > (SELECT count(*) FROM s WHERE id = t.a)", "LEFT"),
        (f"SELECT ({OWN}) FROM t", "LEFT"),
        (f"SELECT ({OWN}) FROM t WHERE a < ({OWN})", "INNER"),
    ],
)
def test_rows_without_a_match_stay_unless_the_condition_fails_of_null(sql: str, kind: str) -> None:
    text = lowered(sql)
    assert f" {kind} JOIN (SELECT" in text
    assert text.count("JOIN") == 1


def test_count_of_nothing_is_zero() -> None:
    text = lowered("SELECT (SELECT count(*) FROM s WHERE id = t.a) FROM t")
    assert "LEFT JOIN" in text
    assert "coalesce(s5.q4_1, 0)" in text


def test_an_average_of_everything_is_a_cross_join_and_a_maximum_stays() -> None:
    assert "CROSS JOIN (SELECT" in lowered("SELECT b FROM t WHERE c > (SELECT avg(c) FROM t)")
    assert "JOIN" not in lowered("SELECT b FROM t WHERE a > (SELECT max(z) FROM s)")
    having = "SELECT b FROM t GROUP BY b HAVING sum(c) > (SELECT avg(c) FROM t)"
    assert ") AS s2 CROSS JOIN (SELECT" in lowered(having)


def test_it_is_joined_once_all_of_its_condition_is_there() -> None:
    text = lowered(
        "SELECT 1 FROM t, s, t AS u WHERE s.id = t.a AND s.z < (SELECT max(z) FROM s AS v WHERE v.id = t.a)"
    )
    assert text.index("hf_rel_2") < text.index("INNER JOIN (SELECT") < text.index("hf_rel_4")
    joined = lowered(
        f"SELECT 1 FROM t JOIN s ON s.id = t.a, t AS u WHERE t.a < ({OWN.replace('s WHERE', 's AS v WHERE')})"
    )
    assert joined.index("hf_rel_2") < joined.rindex("INNER JOIN (SELECT") < joined.index("hf_rel_4")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(z) FROM s WHERE id < t.a",  # not an equality
        "SELECT max(z) FROM s WHERE id = t.a OR y = t.b",  # not in every branch
        "SELECT max(z + t.a) FROM s WHERE id = t.a",  # the value itself is correlated
        "SELECT coalesce(max(z), 0) FROM s WHERE id = t.a",  # not NULL of nothing
        "SELECT count(*) + 1 FROM s WHERE id = t.a",
        "SELECT max(z) FROM s WHERE id = t.a HAVING count(*) > 1",
        "SELECT max(z) FROM s WHERE id = t.a LIMIT 1",
        "SELECT z FROM s WHERE id = t.a",  # may be several rows
        "SELECT max(z) FROM s WHERE id = t.a GROUP BY y",
        "SELECT max(z) FROM s WHERE id::float8 = t.a::float8",  # minus zero
        "SELECT max(z * random()) FROM s WHERE id = t.a",
    ],
)
def test_others_are_left_to_spark(query: str) -> None:
    statement = bind(f"SELECT b FROM t WHERE a < ({query})").statement
    assert isinstance(statement, QueryStatement)
    from planner.lower.query.lifting import lifts_in
    from planner.query import Select

    assert isinstance(statement.query, Select)
    assert lifts_in(statement.query.where) == []


def test_duckdb_has_none_of_it() -> None:
    assert "JOIN" not in lowered(f"SELECT b FROM t WHERE a < ({OWN})", DuckDialect())


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT b FROM t WHERE c < (SELECT 0.2 * avg(u.c) FROM t AS u WHERE u.a = t.a)", 6000),
        ("SELECT b FROM t WHERE c < (SELECT avg(c) FROM t)", 6000),
        ("SELECT x FROM (SELECT a, avg(c) AS x FROM t GROUP BY a) AS u ORDER BY a", 3000),
        ("SELECT x FROM (SELECT a, c / 7 AS x FROM t) AS u ORDER BY a", 3000),
        ("SELECT x FROM (SELECT a, c / c AS x FROM t) AS u ORDER BY a", 3000),
    ],
)
def test_quotients_of_declared_numerics_are_short(sql: str, most: int) -> None:
    """Spark takes a tenth of a millisecond or so for each character; the general form has 17,000."""
    assert len(lowered(sql)) < most


def test_an_aggregate_of_a_sub_select_stays_in_its_query() -> None:
    # what is computed of the call, as an average's quotient is, would else take it into a query of one row
    text = lowered("SELECT avg((SELECT max(z) FROM s WHERE id > 3)) FROM t ORDER BY 1")
    [argument] = set(re.findall(r"sum\(CAST\((\w+\.h\w+) |sum\((\w+\.h\w+)\)", text)) or {("", "")}
    assert any(argument), text


def test_what_would_take_it_there_all_the_same_is_refused() -> None:
    with pytest.raises(SqlError) as caught:
        lowered("SELECT avg(a) FILTER (WHERE EXISTS (SELECT FROM s)) FROM t ORDER BY 1")
    assert (
        caught.value.message
        == "this expression over an aggregate with a sub-select in this executor is not supported"
    )
