"""What DuckDB asks Python for in the middle of a query, and what not. Its answers: tests/differential/test_callouts.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.executors.local.executor import LocalExecutor
from planner.base.errors import SqlError
from tests.support.lowered import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("callouts"))
    made.table(
        "e", "k int4 pk", "n numeric(8,2)", "v numeric", "f float8", "s text", "d date", "t time", "ts timestamp", "z timestamptz",
        "iv interval", "a int4[]", "b bytea", "u uuid", "j jsonb",
        rows=[
            ("1", "1.50", "1.0", "0", "abc def", "2020-01-31", "10:11:12", "2020-01-31 10:11:12.5", "2020-03-29 00:30:00+00", "1 mon 2 days",
             "{1,2}", "\\x00ff", "00112233-4455-6677-8899-aabbccddeeff", '{"k": 1, "l": [7]}'),
            ("2", "-2.25", "1.00", "-0", "bob", "1999-12-31", "00:00:00", "1999-12-31 23:59:59", "1999-12-31 23:59:59+00", "-3 days 04:00:00",
             "{}", "\\x", "00000000-0000-0000-0000-000000000000", '{"k": "x", "l": []}'),
            ("3", None, None, None, None, None, None, None, None, None, None, None, None, None),
            ("4", "0.00", "2.50", "1e300", "", "2024-02-29", "23:59:59.999999", "2024-02-29 00:00:00", "2021-10-31 00:30:00+00", "00:00:01",
             "{NULL,7}", "\\xdeadbeef", "ffffffff-ffff-ffff-ffff-ffffffffffff", '{"l": ["8"]}'),
            ("5", "999.99", "2.5", "-1.5", "12", "2024-02-29", "12:00:00", "2001-01-01 01:02:03", "2021-10-31 01:30:00+00", "1 year",
             "{5}", "\\x61", "00112233-4455-6677-8899-aabbccddeeff", '{"k": 1}'),
        ],
    )  # fmt: skip
    return made


@pytest.fixture
def executor(world: World) -> Any:
    return LocalExecutor(blob_dir=world.folder)


def _outcome(run: Any) -> Any:
    try:
        return run()
    except Exception as error:
        sqlstate = getattr(error, "sqlstate", None)
        if sqlstate is None:
            raise
        return sqlstate


@pytest.mark.parametrize(
    "expression",
    [
        "gen_random_uuid()::text",
        "s::regclass::text",
        "pg_get_viewdef(k)",
        "pg_sleep(1)::text",
        "clock_timestamp()",
    ],
)
def test_what_changes_waits_or_reads_the_catalog_is_not_asked_for(
    expression: str, world: World, executor: Any
) -> None:
    with pytest.raises(SqlError) as caught:
        executor.prepare(world.bind(f"select max({expression}) from e"), world.catalog)
    assert caught.value.sqlstate == "0A000"


def test_a_value_beyond_the_engines_types_is_left_to_the_row_executor(world: World, executor: Any) -> None:
    for query in ("select max(power(n, 20)) from e", "select max(array[a, a]) from e"):
        found = _outcome(lambda q=query: asyncio.run(world.answer(executor, q)))
        assert found == "0A000", query


def test_an_error_keeps_its_detail(world: World, executor: Any) -> None:
    with pytest.raises(SqlError) as caught:
        asyncio.run(world.answer(executor, "select max(to_date(s, 'YYYY')) from e"))
    assert caught.value.sqlstate == "22007"
    assert caught.value.detail


def test_functions_go_with_their_query(world: World, executor: Any) -> None:
    for _ in range(3):
        asyncio.run(world.answer(executor, "select max(initcap(s)) from e"))
    names = executor.cursor().execute(
        "select function_name from duckdb_functions() where function_name like 'hf_py%'"
    )
    assert names.fetchall() == []
