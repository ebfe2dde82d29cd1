"""The local executor: snapshots, parameters, streaming, cancelling, what it refuses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engine.executors.engine_query import PIECE_BYTES, pieces
from engine.executors.local import executor as executor_module
from engine.executors.local.errors import to_sql_error
from engine.executors.local.executor import LocalExecutor
from engine.executors.local.instance import MemoryLimit, open_instance
from planner import facts as f
from planner.base.errors import SqlError
from tests.support.lowered import World, sample_world
from txn.persist import trouble

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a < b"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return sample_world(tmp_path_factory.mktemp("local"))


@pytest.fixture
def executor(world: World) -> Iterator[LocalExecutor]:
    made = LocalExecutor(blob_dir=world.folder)
    yield made
    asyncio.run(made.close())


def rows(
    world: World, executor: LocalExecutor, sql: str, params: tuple[Any, ...] = (), types: tuple[int, ...] = ()
) -> list[tuple[str | None, ...]]:
    return asyncio.run(world.answer(executor, sql, params, types))


def test_hidden_rows_stay_hidden_and_hot_rows_show(world: World, executor: LocalExecutor) -> None:
    assert rows(world, executor, "SELECT count(*), count(DISTINCT a) FROM t") == [("6", "6")]


def test_a_column_added_later_reads_as_its_missing_value(world: World, executor: LocalExecutor) -> None:
    oid = next(r.oid for r in world.catalog.by_oid.values() if r.name == "t")
    old = world.snapshots[oid]
    columns = tuple(
        replace(c, missing_value=Decimal("7.5")) if c.attnum == 4 else c for c in old.spec.columns
    )
    part = old.parts[0]
    without = replace(part, ref=replace(part.ref, columns=tuple(a for a in part.ref.columns if a != 4)))
    world.snapshots[oid] = replace(old, spec=replace(old.spec, columns=columns), parts=(without,))
    try:
        found = rows(world, executor, "SELECT d, count(*) FROM t GROUP BY d ORDER BY d")
    finally:
        world.snapshots[oid] = old
    # a = 1 and 4 are hot and have values of their own
    assert found == [("0.001", "1"), ("1.5", "1"), ("7.5", "4")]


@pytest.mark.parametrize(
    ("oid", "type_name", "value", "text"),
    [
        (f.INT4, "int4", 5, "5"),
        (f.INT8, "int8", -(2**63), "-9223372036854775808"),
        (f.NUMERIC, "numeric", Decimal("1.500"), "1.500"),
        (f.NUMERIC, "numeric", Decimal("NaN"), "NaN"),
        (f.NUMERIC, "numeric", Decimal("-Infinity"), "-Infinity"),
        (f.NUMERIC, "numeric", Decimal("9" * 38), "9" * 38),
        (f.TEXT, "text", "it's \\ é", "it's \\ é"),
        (f.BOOL, "bool", True, "t"),
        (f.FLOAT8, "float8", 1e-300, "1e-300"),
        (f.DATE, "date", -1, "1969-12-31"),
        (f.TIMESTAMP, "timestamp", 1, "1970-01-01 00:00:00.000001"),
        (f.TIMESTAMPTZ, "timestamptz", 0, "1970-01-01 00:00:00+00"),
        (f.INTERVAL, "interval", (14, -3, 5), "1 year 2 mons -3 days +00:00:00.000005"),
        (f.BYTEA, "bytea", b"\x00\xff", "\\x00ff"),
        (f.UUID, "uuid", bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (f.TIME, "time", 86_399_999_999, "23:59:59.999999"),
    ],
)
def test_parameters_and_null_make_the_round_trip(
    world: World, executor: LocalExecutor, oid: int, type_name: str, value: Any, text: str
) -> None:
    sql = f"SELECT $1::{type_name} AS x ORDER BY x"
    assert rows(world, executor, sql, (value,), (oid,)) == [(text,)]
    assert rows(world, executor, sql, (None,), (oid,)) == [(None,)]


def test_numeric_parameters_compare_and_add_with_their_own_scale(
    world: World, executor: LocalExecutor
) -> None:
    sql = "SELECT a, c + $1 FROM t WHERE c > $1 ORDER BY a"
    plan = executor.prepare(world.bind(sql, (f.NUMERIC,)), world.catalog)
    assert plan.numerics == (1,)
    assert rows(world, executor, sql, (Decimal("2.000"),), (f.NUMERIC,)) == [
        ("2", "4.250"),
        ("6", "100000001.990"),
    ]


def test_a_placeholder_in_a_text_is_only_text(world: World, executor: LocalExecutor) -> None:
    assert rows(world, executor, "SELECT 'hf_rel_1 ''hf_rel_1' FROM t WHERE a = 1") == [
        ("hf_rel_1 'hf_rel_1",)
    ]


def test_a_series_of_a_known_range_is_no_array(world: World, executor: LocalExecutor) -> None:
    long = "generate_series(1, 2000000000000)"
    assert rows(world, executor, f"SELECT g FROM {long} g LIMIT 2") == [("1",), ("2",)]
    assert rows(world, executor, f"SELECT g, n FROM {long} WITH ORDINALITY s(g, n) LIMIT 2") == [
        ("1", "1"),
        ("2", "2"),
    ]
    edge = 2**63 - 1
    sql = f"SELECT g FROM generate_series({edge - 3}, {edge}, 2) g"
    assert rows(world, executor, sql) == [(str(edge - 3),), (str(edge - 1),)]
    down = "SELECT g FROM generate_series($1::int, 1, -2) g"
    assert rows(world, executor, down, (5,), (f.INT4,)) == [("5",), ("3",), ("1",)]
    assert rows(world, executor, down, (None,), (f.INT4,)) == []
    lateral = "SELECT x, g FROM (VALUES (1), (2)) v(x), generate_series(1, x) g ORDER BY x, g"
    assert rows(world, executor, lateral) == [("1", "1"), ("2", "1"), ("2", "2")]
    with pytest.raises(SqlError, match="step size cannot equal zero"):
        rows(world, executor, "SELECT g FROM generate_series(1, 2, $1::int) g", (0,), (f.INT4,))


def test_a_result_streams_and_stops_when_closed(world: World, executor: LocalExecutor) -> None:
    async def run() -> int:
        plan = executor.prepare(world.bind("SELECT g FROM generate_series(1, 3000000) g"), world.catalog)
        result = await executor.run(plan, world.context())
        seen = 0
        async for batch in result.batches:
            seen += len(batch)
            if seen > 50_000:
                break
        result.close()
        result.close()
        return seen

    assert 50_000 < asyncio.run(run()) < 200_000


def test_cancelling_interrupts_the_query_with_57014(world: World, executor: LocalExecutor) -> None:
    async def run() -> None:
        context = world.context()
        context.cancelled = threading.Event()
        plan = executor.prepare(world.bind(ENDLESS), world.catalog)
        asyncio.get_running_loop().call_later(0.3, context.cancelled.set)
        with pytest.raises(SqlError) as caught:
            await executor.run(plan, context)
        assert caught.value.sqlstate == "57014"

    asyncio.run(asyncio.wait_for(run(), 20))


def test_a_cancelled_task_leaves_the_executor_usable(world: World, executor: LocalExecutor) -> None:
    async def run() -> list[tuple[str | None, ...]]:
        plan = executor.prepare(world.bind(ENDLESS), world.catalog)
        task = asyncio.ensure_future(executor.run(plan, world.context()))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await world.answer(executor, "SELECT count(*) FROM t")

    assert asyncio.run(asyncio.wait_for(run(), 20)) == [("6",)]


def test_an_error_after_the_first_batch_has_its_sqlstate(world: World, executor: LocalExecutor) -> None:
    sql = "SELECT 10 / (200000 - g) FROM generate_series(1, 300000) g"
    with pytest.raises(SqlError) as caught:
        rows(world, executor, sql)
    assert caught.value.sqlstate == "22012"


def test_the_instance_reads_no_file_outside_the_blob_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "data", tmp_path / "other.csv"
    inside.mkdir()
    outside.write_text("a\n1\n")
    instance = open_instance(inside, memory_bytes=2**27, threads=1)
    for statement in (
        f"SELECT * FROM read_csv('{outside}')",
        f"SELECT * FROM '{outside}'",
        f"SELECT * FROM read_text('{outside}')",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"ATTACH '{outside}' AS other",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        "SELECT getenv('HOME')",
        "SELECT * FROM statement",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            instance.execute(statement)
    instance.close()


def test_the_memory_limit_is_higher_while_large_values_are_read(tmp_path: Path) -> None:
    usual, most = 1 << 27, 1 << 29
    instance = open_instance(tmp_path, memory_bytes=usual, threads=1)
    limit = MemoryLimit(usual, most)

    def now() -> str:
        return str(instance.execute("SELECT current_setting('memory_limit')").fetchone()[0])

    assert not limit.raise_to(instance, usual)
    assert now() == "128.0 MiB"
    assert limit.raise_to(instance, 1 << 28)
    assert limit.raise_to(instance.cursor(), 1 << 30)
    assert now() == "512.0 MiB"
    limit.lower(instance, 1 << 30)
    assert now() == "256.0 MiB"
    limit.lower(instance, 1 << 28)
    assert now() == "128.0 MiB"
    with pytest.raises(duckdb.InvalidInputException, match="locked"):
        instance.execute("SET GLOBAL threads = 2")


def test_marked_errors_keep_sqlstate_and_message() -> None:
    error = duckdb.ConversionException("Could not convert string 'HF!22012:division by zero\x1f5' to BOOL")
    found = to_sql_error(error)
    assert (found.sqlstate, found.message) == ("22012", "division by zero")


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("SELECT a + 2147483647 FROM t", "22003", "integer out of range"),
        ("SELECT b + 1 FROM t", "22003", "bigint out of range"),
        ("SELECT (a * 100000)::int2 FROM t", "22003", "smallint out of range"),
        ("SELECT 1 / (a - 1) FROM t", "22012", "division by zero"),
        ("SELECT c / (a - 1) FROM t", "22012", "division by zero"),
        ("SELECT g / (a - 1) FROM t", "22012", "division by zero"),
        ("SELECT e::int FROM t WHERE a = 1", "22P02", 'invalid input syntax for type integer: "abc"'),
        (
            "SELECT (SELECT k FROM s) FROM t",
            "21000",
            "more than one row returned by a subquery used as an expression",
        ),
        ("SELECT substring(e, 1, -a) FROM t", "22011", "negative substring length not allowed"),
    ],
)
def test_errors_are_postgresql_s(
    world: World, executor: LocalExecutor, sql: str, sqlstate: str, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        rows(world, executor, sql)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_wide_rows_come_in_small_batches(world: World, executor: LocalExecutor) -> None:
    """Half a gigabyte of text is never there as one batch."""

    async def body() -> None:
        plan = executor.prepare(
            world.bind("SELECT g, rpad(g::text, 50000, 'ab') FROM generate_series(1, 10000) g"), world.catalog
        )
        stream = await executor.run(plan, world.context())
        expected = 1
        async for batch in stream.batches:
            assert batch.arrow.nbytes <= PIECE_BYTES + 60_000
            numbers = batch.arrow.column(0).to_pylist()
            assert numbers == list(range(expected, expected + len(numbers)))
            expected += len(numbers)
        assert expected == 10_001

    asyncio.run(body())


@pytest.mark.parametrize(
    "text", ["repeat('ab', g * 10000)", "lpad('x', g * 10000)", "rpad('x', g * 10000, 'ab')",
             "replace(repeat('x', g * 6000), 'x', g::text || 'yyyyyyyyyyyyyyyy')"],
)  # fmt: skip
def test_long_texts_are_for_the_row_executor_to_make(
    world: World, executor: LocalExecutor, text: str
) -> None:
    """DuckDB makes 2,048 of them at once, and counts none of that."""

    def lengths(rows_: int) -> list[int]:
        found = rows(world, executor, f"SELECT length({text}) FROM generate_series(0, {rows_}) g ORDER BY g")
        return [length for (length,) in found]

    assert len(lengths(0)) == 1
    with pytest.raises(SqlError) as caught:
        lengths(10)
    assert caught.value.sqlstate == "0A000"


def test_narrow_texts_are_joined_to_large_batches(world: World, executor: LocalExecutor) -> None:
    async def body() -> None:
        plan = executor.prepare(
            world.bind("SELECT g, g::text FROM generate_series(1, 40000) g"), world.catalog
        )
        stream = await executor.run(plan, world.context())
        sizes = [len(batch) async for batch in stream.batches]
        assert sum(sizes) == 40_000
        assert len(sizes) <= 4

    asyncio.run(body())


@pytest.mark.parametrize(
    ("widths", "most_rows", "sizes"),
    [
        ([10] * 5, None, [5]),
        ([10] * 5, 2, [2, 2, 1]),
        ([PIECE_BYTES] * 3, None, [1, 1, 1]),
        ([3 * PIECE_BYTES], None, [1]),
        ([PIECE_BYTES // 2] * 4, None, [1, 1, 1, 1]),
        ([PIECE_BYTES // 4] * 6, 2, [2, 2, 2]),
    ],
)
def test_pieces_are_bounded_by_rows_and_bytes(
    widths: list[int], most_rows: int | None, sizes: list[int]
) -> None:
    batch = pa.record_batch({"t": ["x" * width for width in widths]})
    found = list(pieces(batch, batch.nbytes, most_rows))
    assert [len(piece) for piece in found] == sizes
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([batch]))


@pytest.mark.parametrize(
    ("words", "times", "state"),
    [
        ("Too many open files", 1, None), ("Too many open files", trouble.TRIES - 1, None),
        ("Too many open files", trouble.TRIES, "53000"), ("Input/output error", 1, None), ("Permission denied", 1, "58030"),
    ],
)  # fmt: skip
def test_what_may_pass_before_the_first_batch_is_tried_again(
    world: World,
    executor: LocalExecutor,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    times: int,
    state: str | None,
) -> None:
    monkeypatch.setattr(trouble, "PAUSE_S", 0.0)
    begin = executor_module._Running._begin
    left = times

    def refuse(self: Any, *args: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise duckdb.IOException(f'IO Error: Cannot open file "/x.parquet": {words}')
        return begin(self, *args)

    monkeypatch.setattr(executor_module._Running, "_begin", refuse)
    if state is None:
        assert rows(world, executor, "SELECT count(*) FROM t") == [("6",)]
    else:
        with pytest.raises(SqlError) as met:
            rows(world, executor, "SELECT count(*) FROM t")
        assert met.value.sqlstate == state
    assert left == 0
