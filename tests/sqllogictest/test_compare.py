"""Answers are compared as each dialect prints them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sqllogictest.client import Result
from sqllogictest.compare import digest, mismatch, sqlite_cell
from sqllogictest.records import Dialect, Query, SortMode

INT, BOOL, TEXT, NUMERIC = 23, 16, 25, 1700


def query(*expected: str, types: str = "I", sort: SortMode = "nosort", threshold: int = 0) -> Query:
    return Query(
        path=Path("a"), line=1, sql="", types=types, sort=sort, expected=expected, hash_threshold=threshold
    )


def result(oids: tuple[int, ...], *rows: tuple[str | None, ...]) -> Result:
    return Result(list(rows), oids, "SELECT")


@pytest.mark.parametrize(
    ("cell", "kind", "shown"),
    [
        (None, "I", "NULL"), ("3.9", "I", "3"), ("t", "I", "1"), ("x", "I", "0"), ("1.5", "R", "1.500"),
        ("", "T", "(empty)"), ("a\tb", "T", "a@b"), ("é", "T", "@"),
    ],
)  # fmt: skip
def test_sqlite_cells(cell: str | None, kind: str, shown: str) -> None:
    assert sqlite_cell(cell, kind) == shown


def test_digest_is_md5_over_values_and_newlines() -> None:
    hashed = hashlib.md5(b"1\na\n", usedforsecurity=False).hexdigest()
    assert digest(["1", "a"]) == f"2 values hashing to {hashed}"


def test_sqlite_hashes_compare() -> None:
    answer = result((INT,), ("2",), ("1",))
    assert mismatch(query(digest(["1", "2"]), sort="rowsort"), answer, Dialect.SQLITE) is None
    assert mismatch(query(digest(["2", "1"]), sort="rowsort"), answer, Dialect.SQLITE) is not None


def test_sqlite_valuesort_sorts_over_rows() -> None:
    answer = result((INT, INT), ("3", "1"), ("2", "0"))
    assert mismatch(query("0", "1", "2", "3", types="II", sort="valuesort"), answer, Dialect.SQLITE) is None


def test_rs_ignores_how_much_blank_is_between_cells_before_it_sorts() -> None:
    answer = result((NUMERIC, NUMERIC), ("0", "NaN"), ("-1", "1"))
    assert mismatch(query("   0  NaN", "  -1    1", sort="rowsort"), answer, Dialect.RS) is None


def test_rs_order_counts_without_a_sort_mode() -> None:
    assert mismatch(query("2", "1"), result((INT,), ("1",), ("2",)), Dialect.RS) is not None


@pytest.mark.parametrize("spelt", ["1", "t", "true", "True"])
def test_duckdb_booleans_may_be_spelt_in_any_way(spelt: str) -> None:
    assert mismatch(query(spelt), result((BOOL,), ("t",)), Dialect.DUCKDB) is None
    assert mismatch(query(spelt), result((BOOL,), ("f",)), Dialect.DUCKDB) is not None


def test_duckdb_one_is_not_true_in_an_integer_column() -> None:
    assert mismatch(query("true"), result((INT,), ("1",)), Dialect.DUCKDB) is not None


def test_duckdb_booleans_sort_as_they_compare() -> None:
    answer = result((BOOL, INT), ("t", "1"), ("f", "2"))
    assert mismatch(query("1\t1", "0\t2", sort="rowsort"), answer, Dialect.DUCKDB) is None


def test_duckdb_numbers_compare_as_numbers() -> None:
    assert mismatch(query("10.000"), result((NUMERIC,), ("10",)), Dialect.DUCKDB) is None
    assert mismatch(query("10.001"), result((NUMERIC,), ("10",)), Dialect.DUCKDB) is not None


def test_duckdb_values_may_stand_one_a_line() -> None:
    answer = result((INT, TEXT), ("2", "b"), ("1", "a"))
    assert mismatch(query("1", "a", "2", "b", sort="rowsort"), answer, Dialect.DUCKDB) is None


def test_a_tab_inside_the_only_column_is_part_of_its_value() -> None:
    assert mismatch(query("a\tb"), result((TEXT,), ("a\tb",)), Dialect.DUCKDB) is None


def test_null_and_empty_are_told_apart() -> None:
    assert mismatch(query("NULL"), result((TEXT,), ("",)), Dialect.DUCKDB) is not None
    assert mismatch(query("(empty)"), result((TEXT,), ("",)), Dialect.DUCKDB) is None
