"""Operators that engines spell differently are spelled for each; answers: tests/conformance/executors."""

from __future__ import annotations

import pytest

from planner import query as q
from planner.base.errors import SqlError
from planner.lower.kit.dialect import error_of, error_text
from planner.lower.kit.duckdb import DuckDialect
from planner.lower.kit.spark import SparkDialect
from planner.lower.query import expr
from tests.planner.test_lifting import lowered


def test_an_element_of_each_row_finds_its_place_on_each_engine() -> None:
    sql = "SELECT int4range(1, 3) @> a FROM t"
    assert "xor(" in lowered(sql, DuckDialect())
    assert " ^ " in lowered(sql, SparkDialect())


def test_a_text_that_is_no_number_is_tried_on_each_engine() -> None:
    for dialect in (DuckDialect(), SparkDialect()):
        assert "TRY_CAST(" in lowered("SELECT a::text::int FROM t", dialect)


def test_an_expression_has_a_form_or_a_name_for_its_refusal() -> None:
    kinds = {kind for kind in vars(q).values() if isinstance(kind, type) and issubclass(kind, q.Expr)} - {
        q.Expr
    }
    assert kinds == set(expr._HANDLERS) | set(expr._REFUSED)
    assert not set(expr._HANDLERS) & set(expr._REFUSED)


@pytest.mark.parametrize(
    "fields", [{}, {"detail": "d"}, {"hint": "h"}, {"where": "JSON data"}, {"detail": "d", "where": "w"}]
)
def test_an_error_comes_back_from_an_engine_with_all_its_fields(fields: dict[str, str]) -> None:
    found = error_of("22P02", error_text(SqlError("22P02", "wrong", **fields)))
    assert (found.sqlstate, found.message) == ("22P02", "wrong")
    assert {name: getattr(found, name) for name in ("detail", "hint", "where")} == dict.fromkeys(
        ("detail", "hint", "where")
    ) | fields
