"""The parser reads three dialects; conditions, labels, connections and errors come out as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqllogictest.records import AnyRecord, Dialect, ParseError, Query, Sleep, Statement, read


def records(tmp_path: Path, text: str, engine: str = "postgresql") -> list[AnyRecord]:
    path = tmp_path / "a.slt"
    path.write_text(text, encoding="utf-8")
    return read(path, engine)[1]


def test_a_file_without_a_header_is_sqlites(tmp_path: Path) -> None:
    path = tmp_path / "a.slt"
    path.write_text("statement ok\nSELECT 1\n", encoding="utf-8")
    assert read(path)[0] is Dialect.SQLITE


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_header_names_the_dialect(tmp_path: Path, dialect: Dialect) -> None:
    path = tmp_path / "a.slt"
    path.write_text(f"# slt-dialect: {dialect.value}\n", encoding="utf-8")
    assert read(path)[0] is dialect


def test_query_has_types_sort_label_and_expected_lines(tmp_path: Path) -> None:
    (query,) = records(tmp_path, "query IT rowsort label-1\nSELECT 1,\n 'a'\n----\n1\na\n\n")
    assert isinstance(query, Query)
    assert (query.types, query.sort, query.label) == ("IT", "rowsort", "label-1")
    assert query.sql == "SELECT 1,\n 'a'"
    assert query.expected == ("1", "a")


def test_no_separator_means_no_expectation(tmp_path: Path) -> None:
    (query,) = records(tmp_path, "query I\nSELECT 1\n")
    assert isinstance(query, Query)
    assert query.expected is None


def test_conditions_hold_for_one_record(tmp_path: Path) -> None:
    text = "skipif postgresql # why\nstatement ok\nA\n\nstatement ok\nB\n\nonlyif mysql\nstatement ok\nC\n"
    assert [bool(r.skip) for r in records(tmp_path, text) if isinstance(r, Statement)] == [True, False, True]
    assert [bool(r.skip) for r in records(tmp_path, text, "mysql") if isinstance(r, Statement)] == [False] * 3


def test_halt_ends_the_file_unless_it_is_for_another_engine(tmp_path: Path) -> None:
    text = "onlyif mysql\nhalt\n\nstatement ok\nA\n\nhalt\n\nstatement ok\nB\n"
    assert [r.sql for r in records(tmp_path, text) if isinstance(r, Statement)] == ["A"]


def test_rs_connection_holds_for_one_record(tmp_path: Path) -> None:
    text = "# slt-dialect: rs\nconnection two\nstatement ok\nA\n\nstatement ok\nB\n"
    assert [r.connection for r in records(tmp_path, text) if isinstance(r, Statement)] == ["two", ""]


def test_duckdb_connection_stands_behind_the_result(tmp_path: Path) -> None:
    text = "# slt-dialect: duckdb\nstatement ok con1\nA\n\nquery I con2\nB\n----\n1\n"
    assert [r.connection for r in records(tmp_path, text)] == ["con1", "con2"]


def test_rs_errors_carry_a_pattern(tmp_path: Path) -> None:
    text = "# slt-dialect: rs\nstatement error divi.* zero\nA\n\nquery error bad\nB\n\nstatement count 3\nC\n"
    statement, query, count = records(tmp_path, text)
    assert isinstance(statement, Statement)
    assert statement.error == "divi.* zero"
    assert isinstance(query, Query)
    assert query.error == "bad"
    assert isinstance(count, Statement)
    assert count.count == 3


def test_sleep_is_in_seconds(tmp_path: Path) -> None:
    found = records(tmp_path, "sleep 3s\n\nsleep 200ms\n")
    assert [r.seconds for r in found if isinstance(r, Sleep)] == [3.0, 0.2]


def test_unknown_records_are_refused_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=r"a\.slt:2: unknown record 'frobnicate'"):
        records(tmp_path, "\nfrobnicate\n")


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("query II\nSELECT 1, 2\n----\n1\n2\n", Dialect.SQLITE),
        ("query II\nSELECT 1, 2\n----\n1 2\n", Dialect.RS),
        ("query II rowsort\nSELECT a, b FROM t\n----\n1 2\n3 4\n5 6\n", Dialect.RS),
        (
            "query III\nSELECT a\n----\n30 values hashing to 3c13dee48d9356ae19af2515e05e6b54\n",
            Dialect.SQLITE,
        ),
        ("statement count 3\nDELETE FROM t\n", Dialect.RS),
        ("query error division\nSELECT 1/0\n", Dialect.RS),
        ("include ./other.slt.part\n", Dialect.RS),
        ("statement error\nSELECT nosuch\n", Dialect.SQLITE),
        ("query I rowsort\nSELECT 1\n----\n1\n", Dialect.SQLITE),
    ],
)
def test_the_dialect_is_guessed_where_none_is_named(tmp_path: Path, text: str, dialect: Dialect) -> None:
    path = tmp_path / "a.slt"
    path.write_text(text, encoding="utf-8")
    assert read(path)[0] is dialect
    assert read(path, dialect=Dialect.DUCKDB)[0] is Dialect.DUCKDB
