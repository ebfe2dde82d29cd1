"""Sub-queries rewritten for Spark (``planner.lower.decorrelate.unnest``) answer as they were written; DuckDB, which takes both forms, is asked.

What Spark itself answers: tests/conformance/executors, over the same queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from engine.executors.arrow import rows_of
from engine.executors.local.executor import LocalExecutor
from planner.base.errors import SqlError
from planner.lower.decorrelate.unnest import remaining, unnest
from planner.lower.kit.correlations import SPARK
from planner.query import QueryExpr
from tests.conformance.executors.compare import ordered
from tests.conformance.executors.corpus import HERE, lines
from tests.support.lowered import World, texts

QUERIES = lines(HERE / "correlated.sql")
UNSUITED = ("t v where v.f <> t.f",)  # equal values of float8 need not be the same
Rows = list[tuple[str | None, ...]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("unnest"))
    made.table("x", "a int4 pk", "b int4", "c text", rows=[
        (str(a), str(b), f"c{a}{b}") for a in range(1, 5) for b in range(1, 4)
    ])  # fmt: skip
    made.table("nokey", "k int4", "v int4", rows=[
        ("1", "1"), ("1", "1"), ("2", None), (None, "3"), ("2", "5"), ("3", "9"),
    ])  # fmt: skip
    made.table(
        "t", "id int4 pk", "i2 int2", "i4 int4", "n numeric", "d numeric(12,3)", "f float8", "s text", "c char(5)",
        rows=[
            ("1", "1", "10", "1.5", "1.250", "1.5", "alpha", "ab"), ("2", "-1", "-10", "-2.50", "-3.333", "-0.0", "Beta", "cd"),
            ("3", "32767", "2147483647", "1234.5678", "999999999.999", "1e300", "gamma%", ""), ("4", "0", "0", "0", "0", "NaN", "", "zz"),
            ("5", None, None, None, None, None, None, None), ("6", "7", "3", "10", "2.500", "Infinity", "é", "ab"),
            ("7", "2", "2", "1.50", "0.001", "1e-5", "a\\b", "AB"),
        ],
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def executor(world: World) -> Iterator[LocalExecutor]:
    made = LocalExecutor(blob_dir=world.folder)
    yield made
    asyncio.run(made.close())


def answer(world: World, executor: LocalExecutor, query: QueryExpr) -> Rows | str:
    """Return a query's rows as texts, or the SQLSTATE of its error."""

    async def ask() -> Rows:
        result = await executor.run(executor.prepare(query, world.catalog), world.context())
        types = [c.type for c in result.columns]
        found: Rows = []
        async for batch in result.batches:
            rows = batch.rows if batch.rows is not None else rows_of(batch.arrow, types)
            found.extend(texts(row, types) for row in rows)
        return found

    try:
        return asyncio.run(ask())
    except SqlError as error:
        return error.sqlstate


def test_the_rewritten_query_answers_as_the_one_that_was_written(
    world: World, executor: LocalExecutor
) -> None:
    rewritten = refused = 0
    for sql in QUERIES[::2]:  # all in tests/conformance/executors, on Spark
        written = world.bind(sql)
        made = unnest(written, SPARK)
        if made is written:
            continue
        rewritten += 1
        expected, found = answer(world, executor, written), answer(world, executor, made)
        refused += expected == "0A000"
        if not ordered(sql) and not isinstance(expected, str) and not isinstance(found, str):
            expected, found = sorted(expected, key=repr), sorted(found, key=repr)
        assert found == expected, sql
    assert rewritten > 20
    assert refused == len(UNSUITED)


def test_no_form_remains_that_spark_refuses(world: World) -> None:
    for sql in QUERIES:
        left = remaining(unnest(world.bind(sql), SPARK), SPARK)
        assert bool(left) == any(word in sql for word in UNSUITED), (sql, left)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, (SELECT sum(y.b * x.b) FROM x y WHERE random() > 0.5) FROM x",  # another answer for each row
        "SELECT CASE WHEN EXISTS (SELECT FROM nokey WHERE k = x.a) THEN (SELECT sum(y.b / x.b) FROM x y) END FROM x",
        "SELECT id, (SELECT max(u.f * t.f) FROM t u) FROM t",  # minus zero
        "SELECT x.a FROM x FULL JOIN nokey n ON (SELECT max(y.b * n.k) FROM x y) > (SELECT max(n.v * x.a + m.k) FROM nokey m)",
        "SELECT a, (SELECT sum(y.b * x.b) FROM x y LIMIT $1) FROM x",
    ],
)
def test_what_has_no_such_form_is_refused_by_name(world: World, sql: str) -> None:
    types = (20,) if "$1" in sql else ()
    assert "sub-" in remaining(unnest(world.bind(sql, types), SPARK), SPARK)


def test_a_guarded_sub_select_is_asked_where_it_is_needed_only(world: World, executor: LocalExecutor) -> None:
    made = unnest(
        world.bind(
            "SELECT a, CASE WHEN a <> 2 THEN (SELECT sum(y.b / (x.a - 2)) FROM x y) END FROM x ORDER BY 1"
        ),
        SPARK,
    )
    assert not remaining(made, SPARK)
    assert isinstance(answer(world, executor, made), list)  # no division by zero
