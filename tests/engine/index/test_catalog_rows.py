"""Rows of catalog relations on their way: narrowed behind their filter, joined by batches, sub-selects that find nothing."""

from __future__ import annotations

from typing import Any

import pytest

from engine.executors.index.access import catalog_join
from engine.executors.index.access.virtual_sources import VirtualLookup
from tests.engine.index.test_catalog_plans import TABLES, play

MINE = "c.relname IN ('a', 'b', 'c')"


def ask(*queries: str) -> list[list[tuple[Any, ...]]]:
    return play(*TABLES, *queries)[len(TABLES) :]


@pytest.mark.parametrize("many", [0, 10_000])
def test_joins_find_the_same_rows_by_relation_and_by_an_index_over_all(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_join, "MANY", many)
    monkeypatch.setattr(catalog_join, "KEPT_VALUES", 4)  # so that values are looked up again
    by_key = (
        "SELECT c.relname, i.indisprimary, k.conname, d.relname FROM pg_class c {0} pg_index i ON i.indrelid = c.oid "
        "{0} pg_constraint k ON k.conindid = i.indexrelid {0} pg_class d ON d.oid = i.indexrelid AND d.relname <> 'b_pkey' "
        "ORDER BY 1, 2, 3, 4"
    )
    by_pairs = (
        "SELECT c.relname, i.indisprimary, k.conname, d.relname FROM pg_class c {0} pg_index i ON i.indrelid::int8 = c.oid::int8 "
        "{0} pg_constraint k ON k.conindid::int8 = i.indexrelid::int8 "
        "{0} pg_class d ON d.oid::int8 = i.indexrelid::int8 AND d.relname <> 'b_pkey' ORDER BY 1, 2, 3, 4"
    )
    inner, outer, inner_pairs, outer_pairs = ask(
        *(text.format(kind) for text in (by_key, by_pairs) for kind in ("JOIN", "LEFT JOIN"))
    )
    assert inner == inner_pairs
    assert outer == outer_pairs
    assert inner == [("a", "t", "a_pkey", "a_pkey")]
    assert ("b", "t", "b_pkey", None) in outer


@pytest.mark.parametrize("many", [0, 10_000])
def test_several_rows_of_one_value_follow_their_left_row(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_join, "MANY", many)
    (rows,) = ask(
        "SELECT c.relname, a.attname FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
        "WHERE c.relname IN ('a', 'a_pkey', 'c')"
    )
    assert sorted(rows) == [("a", "x"), ("a", "y"), ("a_pkey", "x"), ("c", "x"), ("c", "y")]


def test_system_columns_and_whole_rows_of_narrowed_rows() -> None:
    namespace = "JOIN pg_namespace n ON n.oid = c.relnamespace"
    answers = ask(
        f"SELECT c.relname, c.tableoid, n.tableoid::regclass FROM pg_class c {namespace} WHERE {MINE} ORDER BY 1",
        f"SELECT c.relname FROM pg_class c {namespace} WHERE {MINE} AND c.tableoid = 1259 AND n.tableoid = 2615 ORDER BY 1",
        f"SELECT c.relname FROM pg_class c {namespace} WHERE {MINE} AND c.tableoid = 2615",
        f"SELECT (n).nspname, (c).relkind FROM pg_class c {namespace} WHERE {MINE} AND c IS NOT NULL IS NOT NULL LIMIT 1",
        f"SELECT count(*), count(DISTINCT c.ctid) FROM pg_class c {namespace}",
        f"SELECT count(*) FROM pg_class c {namespace} WHERE {MINE}",
        f"SELECT c.relname FROM pg_class c {namespace} WHERE {MINE} AND (SELECT c.tableoid) = 1259 ORDER BY 1",
    )
    assert answers[0] == [(name, "1259", "pg_namespace") for name in "abc"]
    assert answers[1] == answers[6] == [("a",), ("b",), ("c",)]
    assert answers[2] == []
    assert answers[3] == [("public", "r")]
    assert answers[4][0][0] == answers[4][0][1] != "0"
    assert answers[5] == [("3",)]


def test_sub_selects_that_find_nothing_share_an_answer_and_others_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = 0
    rows = VirtualLookup.rows

    def counted(self: VirtualLookup, *args: Any) -> Any:
        nonlocal started
        started += self.item.name == "pg_constraint"
        return rows(self, *args)

    monkeypatch.setattr(VirtualLookup, "rows", counted)
    own = "FROM pg_constraint k WHERE k.conrelid = c.oid"
    answers = ask(
        f"SELECT c.relname, (SELECT count(*) {own}), (SELECT k.conname {own}), EXISTS (SELECT 1 {own}), ARRAY(SELECT 'x' {own}) "
        f"FROM pg_class c WHERE {MINE} OR c.relname LIKE 'pg_c%' ORDER BY c.relname NOT LIKE 'pg%', 1",
        f"SELECT (SELECT count(*) + c.oid::int8 {own}) = c.oid::int8 FROM pg_class c WHERE c.relname LIKE 'pg_c%'",
        f"SELECT (SELECT count(*) {own} AND c.relname <> 'a') FROM pg_class c WHERE {MINE} ORDER BY c.relname",
    )
    catalogs, tables = answers[0][:-3], answers[0][-3:]
    assert len(catalogs) > 3
    assert {row[1:] for row in catalogs} == {("0", None, "f", "{}")}
    assert tables == [
        ("a", "1", "a_pkey", "t", "{x}"),
        ("b", "1", "b_pkey", "t", "{x}"),
        ("c", "0", None, "f", "{}"),
    ]
    assert set(answers[1]) == {("t",)}
    assert answers[2] == [("0",), ("1",), ("0",)]
    # of the first query's four sub-selects: once for all relations without constraints, and twice for a and b
    assert started <= 4 * (2 + 2) + len(answers[1]) + 3
