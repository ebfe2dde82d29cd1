"""Figures of columns: how near the estimates are, and what becomes of them where parts are put together."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.executors.local.figures import DuckCounter
from engine.executors.statistics.figures import CannotCount, ColumnFigures, PartFigures, padded, summary
from engine.executors.statistics.records import columns_of
from engine.executors.statistics.sketch import EMPTY, STANDARD_ERROR, estimate, united
from txn.base.types import IndexId, PhysicalType, ShardColumn, ShardId, ShardIndex, ShardSpec

INT = PhysicalType(kind="int64")


@pytest.fixture(scope="module")
def counter() -> DuckCounter:
    return DuckCounter(duckdb.connect().cursor)


def of(counter: DuckCounter, values: Any, type_: PhysicalType = INT) -> ColumnFigures:
    return counter.rows(pa.table({"c1": values}), {1: type_}).columns[1]


@pytest.mark.parametrize("distinct", [1, 2, 10, 500, 2_000, 30_000, 400_000])
def test_estimates_are_within_three_standard_errors(counter: DuckCounter, distinct: int) -> None:
    values = pa.array([n % distinct for n in range(max(distinct, 1000))], pa.int64())
    found = estimate(of(counter, values).registers)
    assert found == pytest.approx(distinct, rel=3 * STANDARD_ERROR)
    connection = duckdb.connect()
    connection.register("given", pa.table({"x": values}))
    assert connection.sql("SELECT approx_count_distinct(x) FROM given").fetchall() == [(round(found),)]


def test_of_nothing_there_is_nothing() -> None:
    assert estimate(EMPTY) == 0.0


def test_registers_of_overlapping_sets_are_united(counter: DuckCounter) -> None:
    one, other, both = (
        of(counter, pa.array(range(*bounds), pa.int64())).registers
        for bounds in ((0, 6000), (4000, 10_000), (0, 10_000))
    )
    assert united(one, other) == both == united(other, one)
    assert united(one, EMPTY) == united(EMPTY, one) == one


def test_every_kind_is_counted(counter: DuckCounter) -> None:
    utc = datetime.timezone.utc  # noqa: UP017 - as Arrow names it
    cases: list[tuple[PhysicalType, Any, tuple[int, Any, Any, int, int]]] = [
        (PhysicalType(kind="int16"), pa.array([3, None, -1], pa.int16()), (2, -1, 3, 0, 0)),
        (PhysicalType(kind="bool"), pa.array([True, False, None]), (2, 0, 1, 0, 0)),
        (PhysicalType(kind="date"), pa.array([datetime.date(1970, 1, 3), datetime.date(1969, 12, 31)]), (2, -1, 2, 0, 0)),
        (PhysicalType(kind="timestamp"), pa.array([5, 7], pa.timestamp("us")), (2, 5, 7, 0, 0)),
        (
            PhysicalType(kind="timestamptz"), pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=utc)], pa.timestamp("us", "UTC")),
            (1, 1_000_000, 1_000_000, 0, 0),
        ),
        (PhysicalType(kind="decimal", precision=9, scale=2), pa.array([Decimal("-0.05"), Decimal("12.30")], pa.decimal128(9, 2)), (2, -5, 1230, 0, 0)),
        (PhysicalType(kind="decimal", precision=30, scale=2), pa.array([Decimal("1.00")], pa.decimal128(30, 2)), (1, None, None, 0, 0)),
        (PhysicalType(kind="float64"), pa.array([0.5, -2.0]), (2, -2.0, 0.5, 0, 0)),
        (PhysicalType(kind="float64"), pa.array([0.5, float("nan")]), (2, None, None, 0, 0)),
        (PhysicalType(kind="text"), pa.array(["ä", "abc", None, ""]), (3, None, None, 5, 3)),
        (PhysicalType(kind="bytes"), pa.array([b"12", b"1"], pa.binary()), (2, None, None, 3, 2)),
        (PhysicalType(kind="uuid"), pa.array([bytes(16)], pa.binary(16)), (1, None, None, 0, 0)),
        (
            PhysicalType(kind="numeric"),
            pa.array([{"u": Decimal(12345), "s": 2}, None], pa.struct([("u", pa.decimal128(38, 0)), ("s", pa.int32())])),
            (1, None, None, 7, 7),
        ),
        (PhysicalType(kind="list", element=INT), pa.array([[1, 2], [], None]), (2, None, None, 2, 2)),
    ]  # fmt: skip
    for type_, values, expected in cases:
        found = of(counter, values, type_)
        assert (found.values, found.low, found.high, found.octets, found.longest) == expected, type_
        distinct = len({str(value) for value in values.to_pylist() if value is not None})
        assert round(estimate(found.registers)) == distinct, type_


def test_infinite_dates_are_bounds_like_others(counter: DuckCounter) -> None:
    values = pa.array([2**31 - 1, 5], pa.int32()).cast(pa.date32())
    assert of(counter, values, PhysicalType(kind="date")).high == 2**31 - 1


def test_a_file_that_cannot_be_read_is_not_counted(counter: DuckCounter, tmp_path: Path) -> None:
    with pytest.raises(CannotCount):
        counter.part(str(tmp_path / "none.parquet"), {1: INT})
    (tmp_path / "bad'.parquet").write_bytes(b"PAR1")
    with pytest.raises(CannotCount):
        counter.part(str(tmp_path / "bad'.parquet"), {1: INT})


def test_a_file_is_counted_like_its_rows(counter: DuckCounter, tmp_path: Path) -> None:
    table = pa.table({"c1": pa.array([1, 1, None], pa.int64()), "c2": ["a", "b", "b"], "s_row_id": [1, 2, 3]})
    pq.write_table(table, tmp_path / "it's.parquet")
    types = {1: INT, 2: PhysicalType(kind="text")}
    found = counter.part(str(tmp_path / "it's.parquet"), types)
    assert found == counter.rows(table, types)
    assert found.rows == 3


def part(counter: DuckCounter, values: list[int | None]) -> PartFigures:
    return counter.rows(pa.table({"c1": pa.array(values, pa.int64())}), {1: INT})


def test_a_table_is_its_parts_together(counter: DuckCounter) -> None:
    parts = [part(counter, [*range(1000), *[None] * 1000]), part(counter, [*range(500, 2500)])]
    found = summary(parts, 1, 4000)
    assert found is not None
    assert (found.null_share, found.low, found.high) == (0.25, 0, 2499)
    assert found.distinct == pytest.approx(2500, rel=3 * STANDARD_ERROR)
    # half of the rows have ended: there are no more values than rows that have one
    fewer = summary(parts, 1, 2000)
    assert fewer is not None
    assert fewer.distinct == 1500
    only = summary(parts, 1, 4000, unique=True)
    assert only is not None
    assert only.distinct == 3000
    assert summary(parts, 2, 4000) is None


def test_bounds_of_some_parts_are_none_of_the_table(counter: DuckCounter) -> None:
    unknown = PartFigures(5, {1: ColumnFigures(5, bytes([1]) + EMPTY[1:])})
    nothing = part(counter, [None, None])
    mixed = summary([part(counter, [1, 2]), unknown], 1, 7)
    assert mixed is not None
    assert (mixed.low, mixed.high) == (None, None)
    known = summary([part(counter, [1, 2]), nothing], 1, 4)
    assert known is not None
    assert (known.low, known.high, known.null_share) == (1, 2, 0.5)
    empty = summary([nothing], 1, 2)
    assert empty is not None
    assert (empty.distinct, empty.null_share) == (0.0, 1.0)


def test_a_column_that_came_later_has_one_value_or_none() -> None:
    before = PartFigures(10, {1: ColumnFigures(10, bytes([3]) + EMPTY[1:], 1, 1)})
    after = padded(before, {1: True, 2: True, 3: False})
    assert after.columns[1] == before.columns[1]
    assert (after.columns[2].values, round(estimate(after.columns[2].registers))) == (10, 1)
    assert (after.columns[3].values, after.columns[3].low) == (0, None)
    assert padded(before, {1: True}) is before


def test_records_are_pg_stats(counter: DuckCounter) -> None:
    text = PhysicalType(kind="text")
    spec = ShardSpec(
        shard=ShardId(1),
        version=1,
        columns=(
            ShardColumn(attnum=1, type=INT),
            ShardColumn(attnum=2, type=text),
            ShardColumn(attnum=3, type=text, dropped=True),
            ShardColumn(attnum=4, type=INT),
        ),
        indexes=(ShardIndex(index=IndexId(2), attnums=(1,), unique=True),),
    )
    rows = 1000
    table = pa.table(
        {
            "c1": pa.array(range(rows), pa.int64()),
            "c2": [f"v{n % 5}" for n in range(rows)],
            "c4": pa.array([n if n % 2 else None for n in range(rows)], pa.int64()),
        }
    )
    figures = counter.rows(table, {1: INT, 2: text, 4: INT})
    found = columns_of(spec, [figures], rows)
    assert sorted(found) == [1, 2, 4]
    assert (found[1].distinct, found[1].null_share, found[1].width) == (-1.0, 0.0, 8)
    assert (found[2].distinct, found[2].width) == (5.0, 3)
    assert found[4].null_share == 0.5
    assert found[4].distinct == pytest.approx(
        -0.5, rel=3 * STANDARD_ERROR
    )  # a share: it grows with the table
    assert columns_of(spec, [], 0) == {}
