"""Operators that engines spell differently are spelled for each; answers: tests/conformance/executors."""

from __future__ import annotations

from planner.lower.duckdb import DuckDialect
from planner.lower.spark import SparkDialect
from tests.planner.test_lifting import lowered


def test_an_element_of_each_row_finds_its_place_on_each_engine() -> None:
    sql = "SELECT int4range(1, 3) @> a FROM t"
    assert "xor(" in lowered(sql, DuckDialect())
    assert " ^ " in lowered(sql, SparkDialect())
