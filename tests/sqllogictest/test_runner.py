"""The runner judges records, labels and connections, and its exit code and JUnit report say the verdict."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from sqllogictest import runner
from sqllogictest.__main__ import collect, main
from sqllogictest.client import Result, ServerError


class FakeClient:
    """Answers ``SELECT n`` with n, ``FAIL`` with an error, ``HANG`` with a time-out; counts connections."""

    opened: list[list[str]] = []  # noqa: RUF012 - reset by the fixture

    def __init__(self, target: object, *, timeout_s: float) -> None:
        self.ran: list[str] = []
        self.opened.append(self.ran)

    def run(self, sql: str, protocol: str = "simple") -> Result:
        self.ran.append(sql)
        if sql.startswith("FAIL"):
            raise ServerError("22012", "division by zero")
        if sql.startswith("HANG"):
            raise TimeoutError("timed out")
        if sql.startswith("SELECT"):
            return Result([(sql.split()[1],)], (23,), "SELECT 1")
        return Result(tag="INSERT 0 2")

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeClient, "opened", [])
    monkeypatch.setattr(runner, "Client", FakeClient)


def run(tmp_path: Path, text: str, *options: str) -> int:
    path = tmp_path / "a.slt"
    path.write_text(text, encoding="utf-8")
    return main(["run", str(path), "--url", "postgresql://u@127.0.0.1:1/d", *options])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("statement ok\nX\n", 0),
        ("statement ok\nFAIL\n", 1),
        ("statement error\nFAIL\n", 0),
        ("statement error\nX\n", 1),
        ("# slt-dialect: rs\nstatement error by zero\nFAIL\n", 0),
        ("# slt-dialect: rs\nstatement error other words\nFAIL\n", 1),
        ("statement count 2\nX\n", 0),
        ("statement count 3\nX\n", 1),
        ("query I\nSELECT 1\n----\n1\n", 0),
        ("query I\nSELECT 1\n----\n2\n", 1),
        ("query I nosort x\nSELECT 1\n----\n1\n\nquery I nosort x\nSELECT 1\n----\n1\n", 0),
        ("query I nosort x\nSELECT 1\n\nquery I nosort x\nSELECT 2\n", 1),
        ("frobnicate\n", 2),
    ],
)
def test_exit_code_tells_the_verdict(tmp_path: Path, text: str, code: int) -> None:
    assert run(tmp_path, text) == code


def test_a_file_that_is_not_there_is_a_usage_error() -> None:
    assert main(["run", "/nowhere/at/all.slt"]) == 2


def test_a_statement_that_does_not_answer_ends_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "statement ok\nHANG\n\nstatement ok\nX\n", "--timeout", "7") == 1
    assert "a.slt:1: no answer in 7 s" in capsys.readouterr().out
    assert "X" not in FakeClient.opened[0]


@pytest.mark.parametrize(
    ("dialect", "options", "connections"),
    [("duckdb", [], 1), ("duckdb", ["--connections", "named"], 3)],
)
def test_names_of_duckdb_files_share_a_connection_unless_asked(
    tmp_path: Path, dialect: str, options: list[str], connections: int
) -> None:
    text = f"# slt-dialect: {dialect}\nstatement ok con1\nX\n\nstatement ok con2\nY\n"
    assert run(tmp_path, text, *options) == 0
    assert len(FakeClient.opened) == connections


def test_rs_files_get_a_connection_for_each_name(tmp_path: Path) -> None:
    assert run(tmp_path, "# slt-dialect: rs\nconnection two\nstatement ok\nX\n") == 0
    assert len(FakeClient.opened) == 2


def test_a_sample_is_spread_over_the_queries_and_keeps_all_statements(tmp_path: Path) -> None:
    queries = "".join(f"query I\nSELECT {i}\n----\n{i}\n\nstatement ok\nX{i}\n\n" for i in range(10))
    assert run(tmp_path, queries, "--sample", "3") == 0
    ran = FakeClient.opened[0]
    assert [sql for sql in ran if sql.startswith("SELECT")] == ["SELECT 0", "SELECT 3", "SELECT 6"]
    assert sum(sql.startswith("X") for sql in ran) == 10


def test_a_sample_larger_than_the_file_is_the_file(tmp_path: Path) -> None:
    assert run(tmp_path, "query I\nSELECT 1\n----\n1\n\nquery I\nSELECT 2\n----\n2\n", "--sample", "9") == 0
    assert FakeClient.opened[0].count("SELECT 1") == FakeClient.opened[0].count("SELECT 2") == 1


def test_a_seed_draws_from_all_files_together_and_parts_make_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for name, first in (("a", 0), ("b", 100), ("c", 200)):
        path = tmp_path / f"{name}.slt"
        records = [f"query I nosort\nSELECT {n}\n----\n{n}\n" for n in range(first, first + 40)]
        path.write_text("\n".join(["statement ok\nMAKE\n", *records]), encoding="utf-8")
        paths.append(str(path))

    def ran(*options: str) -> list[str]:
        FakeClient.opened.clear()
        assert main(["run", *paths, "--url", "postgresql://u@127.0.0.1:1/d", *options]) == 0
        return [sql for session in FakeClient.opened for sql in session if sql.startswith(("SELECT", "MAKE"))]

    whole = ran("--sample", "30", "--seed", "5")
    assert whole.count("MAKE") == 3
    assert len(set(whole)) == 31
    assert whole == ran("--sample", "30", "--seed", "5")
    assert whole != ran("--sample", "30", "--seed", "6")
    parts = [sql for k in (1, 2) for sql in ran("--sample", "30", "--seed", "5", "--part", f"{k}/2")]
    assert sorted(parts) == sorted(whole)
    for wrong in (["--seed", "5"], ["--part", "3/2"], ["--part", "x"]):
        assert main(["run", *paths, "--url", "postgresql://u@127.0.0.1:1/d", *wrong]) == 2
    assert "sample" in capsys.readouterr().err


def test_junit_names_each_failed_record(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    assert run(tmp_path, "statement ok\nFAIL\n\nstatement ok\nX\n", "--junit", str(report)) == 1
    suite = ET.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "22012 division by zero" in (failure.text or "")


def test_folders_are_searched_in_order(tmp_path: Path) -> None:
    for name in ("b.test", "a.slt", "c.txt"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert [p.name for p in collect([str(tmp_path)])] == ["a.slt", "b.test"]


def test_a_file_that_cannot_be_read_fails_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (
        ("a.slt", "nonsense here\n"),
        ("b.slt", "statement\nX\n"),
        ("c.slt", "statement ok\nX\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "a.slt:1: unknown record 'nonsense'" in out
    assert "b.slt:1: 'statement' is incomplete" in out
    assert "c.slt: 1 passed" in out
    assert "3 files: 1 passed, 0 failed, 0 skipped, 2 files unreadable" in out


def test_the_summary_says_which_dialect_was_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "connection two\nstatement ok\nX\n") == 0
    assert "read as rs" in capsys.readouterr().out
    assert run(tmp_path, "connection two\nstatement ok\nX\n", "--dialect", "sqlite") == 0
    assert "read as" not in capsys.readouterr().out
