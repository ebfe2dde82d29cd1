"""An engine that gives up a query: who runs it instead, for how long, and what somebody who pinned the engine is told."""

from __future__ import annotations

import asyncio
import logging
import re
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from engine.base.executor import EngineLimit
from engine.executors.local.errors import to_sql_error
from engine.executors.local.executor import LocalExecutor, _Running
from engine.plans import query as running
from planner.base.errors import SqlError
from planner.rules.route import Route
from tests.support.fields import connect
from tests.support.server import ServerProcess

BROKEN = EngineLimit("XX000", "the local executor failed", lasting=True)
BEYOND = EngineLimit("0A000", "a numeric of more than 38 digits in this executor is not supported")


class Answers:
    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer

    async def run(self, plan: object, ctx: object) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Routed:
    """A session with two executors; the row executor is chosen where the local one is refused."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        local: str | Exception,
        index: str | Exception = "rows",
        pinned: str = "auto",
        rows: int = 10,
    ) -> None:
        self.query: Any = SimpleNamespace(refused={}, tables=("t", "u"))
        self.session: Any = SimpleNamespace(
            db=SimpleNamespace(executors={"local": Answers(local), "index": Answers(index)}),
            derived=SimpleNamespace(executor=pinned, temp_limited=False),
        )
        self.txn: Any = SimpleNamespace(stats=lambda shard: SimpleNamespace(rows=rows))
        monkeypatch.setattr(running, "choose_route", self.choose)
        monkeypatch.setattr(running, "compile_for", lambda session, query, name: None)

    def choose(self, session: object, query: object, params: object, txn: object) -> tuple[Route, None]:
        if "index" in self.query.refused:
            raise self.query.refused["index"]
        return Route("index" if "local" in self.query.refused else "local", ""), None

    def run(self) -> object:
        ctx: Any = SimpleNamespace(params=(), txn=self.txn)
        return asyncio.run(running._run_on(self.session, self.query, ctx, Route("local", ""), None))


def test_what_an_engine_fails_at_runs_elsewhere_from_then_on_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    routed = Routed(monkeypatch, local=BROKEN)
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert routed.run() == "rows"
    assert {name: str(error) for name, error in routed.query.refused.items()} == {"local": str(BROKEN)}
    assert caplog.messages == [f"{BROKEN.message}; the query runs on the index executor instead"]


def test_values_beyond_an_engine_run_elsewhere_this_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    routed = Routed(monkeypatch, local=BEYOND)
    assert routed.run() == "rows"
    assert routed.query.refused == {}
    assert not caplog.messages


@pytest.mark.parametrize("error", [BROKEN, BEYOND])
def test_a_pinned_engine_says_that_it_gives_up(monkeypatch: pytest.MonkeyPatch, error: EngineLimit) -> None:
    with pytest.raises(EngineLimit) as raised:
        Routed(monkeypatch, local=error, pinned="local").run()
    assert raised.value is error


ZERO = SqlError("22012", "division by zero")
ELSEWHERE = SqlError("22P02", "invalid input syntax for type integer")


def test_an_error_in_a_value_that_comes_of_an_engines_order_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    routed = Routed(monkeypatch, local=ZERO)
    assert routed.run() == "rows"
    assert routed.query.refused == {}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"index": ELSEWHERE}, ELSEWHERE),
        ({"index": SqlError("0A000", "it is not supported")}, ZERO),
        ({"pinned": "local"}, ZERO),
        ({"rows": running.SECOND_OPINION_ROWS}, ZERO),
    ],
)
def test_an_error_in_a_value_is_the_answer(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], expected: SqlError
) -> None:
    with pytest.raises(SqlError) as raised:
        Routed(monkeypatch, local=ZERO, **more).run()
    assert raised.value is expected


def test_values_that_a_join_leaves_out_are_not_converted(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run("CREATE TABLE thing (id int PRIMARY KEY, kind int)")
    client.run("CREATE TABLE val (thing int, field int, value text)")
    client.run("INSERT INTO thing SELECT g, g % 3 FROM generate_series(1, 900) g")
    for field, prefix in ((1, "s"), (2, "")):
        client.run(f"INSERT INTO val SELECT g, {field}, '{prefix}' || g FROM generate_series(1, 900) g")
    query = "SELECT count(*) FROM thing LEFT JOIN val ON field = {} AND thing = id WHERE value::numeric(9,3) >= 500 AND kind = 1"
    assert "Route: local" in [row[0] for row in client.run("EXPLAIN " + query.format(2)).rows]
    assert client.run(query.format(2)).rows == [("133",)]
    assert client.fails(query.format(1))["message"] == 'invalid input syntax for type numeric: "s1"'
    client.run("DROP TABLE thing, val")
    client.close()


def test_where_nobody_else_can_the_first_error_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    routed = Routed(monkeypatch, local=BEYOND)
    routed.query.refused["index"] = SqlError("0A000", "it is not supported")
    with pytest.raises(EngineLimit) as raised:
        routed.run()
    assert raised.value is BEYOND
    assert "local" not in routed.query.refused


@pytest.mark.parametrize(
    ("error", "sqlstate", "lasting"),
    [
        (duckdb.InternalException("INTERNAL Error: a bug"), "XX000", True),
        (duckdb.ConversionException("'HF!22003:value overflows numeric format\x1f5'"), "0A000", False),
        (duckdb.OutOfRangeException("Out of Range Error: Overflow in multiplication of DECIMAL(38)"), "0A000", False),
        (duckdb.BinderException("Binder Error: No function matches"), "0A000", None),
        (duckdb.ParserException("Parser Error: syntax"), "0A000", None),
        (duckdb.InvalidInputException("Invalid Input Error: ArrowTypeError: Expected bytes"), "0A000", None),
        (duckdb.IOException("IO Error: Could not write file /data/x: No space left on device"), "53100", None),
        (duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block"), "53200", None),
        (duckdb.OutOfRangeException("Out of Range Error: Overflow of INT32 (1 + 2)"), "22003", None),
        (duckdb.ConversionException("'HF!22012:division by zero\x1f5'"), "22012", None),
    ],
)  # fmt: skip
def test_failures_and_limits_of_duckdb_are_told_from_errors(
    error: Exception, sqlstate: str, lasting: bool | None
) -> None:
    found = to_sql_error(error)
    assert found.sqlstate == sqlstate
    assert not re.search(
        "Error|DECIMAL|INT32|Arrow|/data", f"{found.message} {found.detail}"
    )  # DuckDB's words are the log's
    assert (found.lasting if isinstance(found, EngineLimit) else None) is lasting


@pytest.mark.parametrize("kind", [duckdb.InternalException, duckdb.FatalException])
def test_an_instance_that_failed_within_is_given_up(tmp_path: Any, kind: type[Exception]) -> None:
    executor = LocalExecutor(blob_dir=tmp_path, memory_bytes=2**27, threads=1)
    one: Any = _Running.__new__(_Running)
    one._owner, one._files = executor, None
    one.callouts = SimpleNamespace(error_of=lambda error: None)
    try:
        executor.cursor().close()
        assert executor.is_open
        found = one._translated(kind("INTERNAL Error: a bug"), False)
        assert found.sqlstate == "XX000"
        assert not executor.is_open
    finally:
        asyncio.run(executor.close())


def test_an_instance_given_up_is_replaced(tmp_path: Any) -> None:
    executor = LocalExecutor(blob_dir=tmp_path, memory_bytes=2**27, threads=1)
    try:
        before = executor.cursor()
        executor.give_up_instance()
        after = executor.cursor()
        before.execute("CREATE TABLE only_here (a INT)")
        with pytest.raises(duckdb.CatalogException):
            after.execute("FROM only_here")
        before.close()
        after.close()
    finally:
        asyncio.run(executor.close())
