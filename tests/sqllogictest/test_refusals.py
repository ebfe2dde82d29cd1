"""Refusals of a pinned executor are counted and judged elsewhere; a run that was cut off goes on from its journal; progress has a rate."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from sqllogictest import runner
from sqllogictest.__main__ import main
from sqllogictest.client import Result, ServerError
from sqllogictest.progress import Progress

REFUSAL = "EXCLUDE is not supported on Spark"


class Server:
    """Answers ``SELECT n`` with n; ``SELECT n REFUSED`` on ``auto`` alone, ``SELECT n WRONG`` with 0; ``GONE`` breaks the connection."""

    ran: list[tuple[str, str]] = []  # noqa: RUF012 - reset by the fixture: executor, statement

    def __init__(self, target: object, *, timeout_s: float) -> None:
        self.executor = ""

    def run(self, sql: str, protocol: str = "simple") -> Result:
        if sql.startswith("SET executor"):
            self.executor = sql.split()[-1]
            return Result(tag="SET")
        self.ran.append((self.executor, sql))
        if sql == "GONE":
            raise ConnectionError("the server closed the connection")
        if "REFUSED" in sql and self.executor == "spark":
            raise ServerError("0A000", REFUSAL)
        if sql.startswith("SELECT"):
            return Result([("0" if "WRONG" in sql else sql.split()[1],)], (23,), "SELECT 1")
        return Result(tag="CREATE TABLE")

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "ran", [])
    monkeypatch.setattr(runner, "Client", Server)


def written(tmp_path: Path, *files: str) -> list[str]:
    paths = []
    for number, sqls in enumerate(files):
        path = tmp_path / f"{number}.test"
        records = ["statement ok\nCREATE TABLE t"]
        records += [
            f"query I\n{sql}\n----\n{sql.split()[1]}" if sql.startswith("SELECT") else f"statement ok\n{sql}"
            for sql in sqls.split("; ")
        ]
        path.write_text("\n\n".join(records) + "\n", encoding="utf-8")
        paths.append(str(path))
    return paths


def run(paths: list[str], *options: str) -> int:
    pinned = ("--executor", "spark", "--otherwise", "auto")
    return main(["run", *paths, "--url", "postgresql://u@127.0.0.1:1/d", *pinned, *options])


def of_tests(sql: str) -> list[str]:
    return [executor for executor, text in Server.ran if text == sql]


def test_a_refusal_is_counted_and_the_other_executor_s_answer_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(written(tmp_path, "SELECT 1; SELECT 2 REFUSED; SELECT 3")) == 0
    out = capsys.readouterr().out
    assert "1 files: 4 passed, 0 failed, 0 skipped, 1 refused; 3 queries asked" in out
    assert f"1 times, and judged on auto: {REFUSAL}" in out
    assert of_tests("CREATE TABLE t") == ["auto"]
    assert of_tests("SELECT 2 REFUSED") == ["spark", "auto"]
    assert of_tests("SELECT 3") == ["spark"]


def test_a_wrong_answer_fails_wherever_it_comes_from(tmp_path: Path) -> None:
    assert run(written(tmp_path, "SELECT 1 WRONG")) == 1
    assert run(written(tmp_path, "SELECT 1 REFUSED WRONG")) == 1


def test_a_refusal_is_a_failure_where_no_other_executor_is_named(tmp_path: Path) -> None:
    paths = written(tmp_path, "SELECT 1 REFUSED")
    assert main(["run", *paths, "--url", "postgresql://u@127.0.0.1:1/d", "--executor", "spark"]) == 1


def test_a_journal_has_what_need_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = written(tmp_path, "SELECT 1; SELECT 2 REFUSED; SELECT 3 WRONG", "SELECT 4; GONE", "SELECT 5")
    journal = ("--journal", str(tmp_path / "journal"))
    assert run(paths, *journal) == 1
    first = capsys.readouterr().out
    assert "connection lost" in first

    Path(paths[1]).write_text("query I\nSELECT 6\n----\n6\n", encoding="utf-8")  # the server is back
    with (tmp_path / "journal").open("a", encoding="utf-8") as file:
        file.write('{"path": "cut sho')
    Server.ran.clear()
    assert run(paths, *journal) == 1
    again = capsys.readouterr().out
    assert [sql for _, sql in Server.ran if sql.startswith("SELECT")] == ["SELECT 6"]
    assert "SELECT 3 WRONG" in again  # with its difference, as if it had run
    assert "3 | 0" in again
    assert "3 files: 6 passed, 1 failed, 0 skipped, 1 refused; 5 queries asked" in again

    Server.ran.clear()
    assert run(paths, *journal) == 1
    assert not Server.ran


def test_a_journal_of_another_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = written(tmp_path, "SELECT 1")
    journal = ("--journal", str(tmp_path / "journal"))
    assert run(paths, *journal) == 0
    assert run(paths, *journal, "--protocol", "extended") == 2
    assert "journal of another run" in capsys.readouterr().err


def test_progress_is_a_line_with_rate_and_time_left() -> None:
    now, out = [100.0], io.StringIO()
    progress = Progress(2, queries=600, every=50, out=out, clock=lambda: now[0])
    for asked in [True] * 49 + [False]:
        progress.record(asked)
    assert not out.getvalue()
    progress.file(3, 7)
    now[0] += 25
    progress.record(True)
    assert out.getvalue() == "50 of 600 queries, 2.0/s, 5 min left; 1/2 files, 3 failed, 7 refused in them\n"
