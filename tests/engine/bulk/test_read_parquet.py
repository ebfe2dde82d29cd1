"""Parquet files: columns by name, in the types that go there, each value as its text says."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.base.server_files import ServerFile
from engine.catalog.physical import shard_column
from engine.changes.bulk.look import look, looks_at, splits_of
from engine.changes.bulk.read_split import Reading, read_split, worker_env
from pgwire.codecs import domain as d
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_output
from pgwire.codecs.settings import DEFAULT
from planner.base.errors import SqlError
from tests.engine.bulk.loads import spec
from txn.values.columns import to_python

PARQUET = CopyOptions(format="parquet")
IGNORING = CopyOptions(format="parquet", on_error="ignore")


def load(
    path: Path, options: CopyOptions, *types: int, **more: Any
) -> tuple[list[list[str | None]], list[str]]:
    """Return the loaded rows as texts, and what was said about those left out."""
    file = ServerFile(str(path), str(path), path.stat().st_size)
    looks = looks_at([file], options, 1 << 20)
    splits = splits_of([file], options, looks, [look(options, item) for item in looks])
    made = spec(options, *types, **more)
    rows: list[list[str | None]] = []
    said: list[str] = []
    for split in splits:
        reading = Reading()
        for batch in read_split(made, worker_env(), split, reading, keep=10):
            columns = []
            for column in made.relation.live:
                shard = shard_column(column)
                dims = batch.column(f"c{column.attnum}_dims") if shard.type.kind == "list" else None
                values = to_python(batch.column(f"c{column.attnum}"), shard.type, dims)
                columns.append(
                    [None if v is None else text_output(column.type.oid, v, DEFAULT) for v in values]
                )
            rows += [list(row) for row in zip(*columns, strict=True)]
        said += [reject.message() for reject in reading.rejects.first]
    return rows, said


def one(tmp_path: Path, array: Any, oid: int) -> list[str | None]:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": array}), path)
    return [row[0] for row in load(path, PARQUET, oid)[0]]


CASES: list[tuple[Any, int, list[str | None]]] = [
    (pa.array([1, None, -7], pa.int8()), d.INT4, ["1", None, "-7"]),
    (pa.array([1, None], pa.uint32()), d.INT2, ["1", None]),
    (pa.array([2**40, None], pa.int64()), d.NUMERIC, ["1099511627776", None]),
    (pa.array([1, 2], pa.int32()), d.FLOAT8, ["1", "2"]),
    (pa.array([1.5, None, float("nan"), float("-inf")]), d.FLOAT8, ["1.5", None, "NaN", "-Infinity"]),
    (pa.array([1.5, float("inf")]), d.FLOAT4, ["1.5", "Infinity"]),
    (pa.array([0.1]), d.NUMERIC, ["0.1"]),
    (pa.array([Decimal("1.50"), None]), d.NUMERIC, ["1.50", None]),
    (pa.array([Decimal("1.50")]), d.FLOAT8, ["1.5"]),
    (pa.array([True, None, False]), d.BOOL, ["t", None, "f"]),
    (pa.array(["1", None, " 22 "]), d.INT4, ["1", None, "22"]),
    (pa.array(["yes", "off"]), d.BOOL, ["t", "f"]),
    (pa.array(["a", None, "b"]).dictionary_encode(), d.TEXT, ["a", None, "b"]),
    (pa.array(["2024-01-02", "today"][:1]), d.DATE, ["2024-01-02"]),
    (pa.array([date(2024, 2, 29), None]), d.DATE, ["2024-02-29", None]),
    (pa.array([date(1, 1, 1)], pa.date64()), d.DATE, ["0001-01-01"]),
    (pa.array([datetime(2024, 1, 2, 3, 4, 5, 6)], pa.timestamp("us")), d.TIMESTAMP, ["2024-01-02 03:04:05.000006"]),
    (pa.array([1_500_000_001], pa.timestamp("ns")), d.TIMESTAMP, ["1970-01-01 00:00:01.5"]),
    (pa.array([datetime(2024, 7, 2, 3)], pa.timestamp("ms", tz="Europe/Berlin")), d.TIMESTAMPTZ, ["2024-07-02 03:00:00+00"]),
    (pa.array([time(1, 2, 3, 4)], pa.time64("ns")), d.TIME, ["01:02:03.000004"]),
    (pa.array([b"\x01\xff", None]), d.BYTEA, ["\\x01ff", None]),
    (pa.array([bytes(range(16))], pa.binary(16)), d.UUID, ["00010203-0405-0607-0809-0a0b0c0d0e0f"]),
    (pa.array([[1, None], None, []], pa.list_(pa.int64())), 1007, ["{1,NULL}", None, "{}"]),
    (pa.array([["a\"b", None]], pa.list_(pa.string())), 1009, ['{"a\\"b",NULL}']),
    (pa.array([{"k": [1, 2], "s": "x"}, None]), d.JSON, ['{"k": [1, 2], "s": "x"}', None]),
    (pa.nulls(2), d.INT4, [None, None]),
]  # fmt: skip


@pytest.mark.parametrize(("array", "oid", "texts"), CASES, ids=range(len(CASES)))
def test_values(tmp_path: Path, array: Any, oid: int, texts: list[str | None]) -> None:
    assert one(tmp_path, array, oid) == texts


@pytest.mark.parametrize(
    ("array", "oid", "state", "message"),
    [
        (pa.array([1, 70_000]), d.INT2, "22003", 'value "70000" is out of range for type smallint'),
        (pa.array([1e300]), d.FLOAT4, "22003", '"1e+300" is out of range for type real'),
        (pa.array(["1", "x"]), d.INT4, "22P02", 'invalid input syntax for type integer: "x"'),
    ],
)
def test_values_that_do_not_fit_name_the_row(
    tmp_path: Path, array: Any, oid: int, state: str, message: str
) -> None:
    with pytest.raises(DataError) as caught:
        one(tmp_path, array, oid)
    assert (caught.value.sqlstate, caught.value.message) == (state, message)
    assert str(caught.value.where).startswith(f"COPY t, line {len(array)}, column a: ")
    assert str(caught.value.where).endswith(f'\nfile "{tmp_path}/x.parquet"')


@pytest.mark.parametrize(
    ("array", "oid"),
    [
        (pa.array([1]), d.DATE),
        (pa.array([1.5]), d.INT4),
        (pa.array([date(2024, 1, 1)]), d.TIMESTAMP),
        (pa.array([0], pa.timestamp("us")), d.TIMESTAMPTZ),
        (pa.array([True]), d.INT4),
        (pa.array([{"a": 1}]), d.TEXT),
        (pa.array([b"x"]), d.TEXT),
    ],
)
def test_types_of_another_kind_are_refused(tmp_path: Path, array: Any, oid: int) -> None:
    with pytest.raises(SqlError) as caught:
        one(tmp_path, array, oid)
    assert caught.value.sqlstate == "42804"
    assert f'column "a" of file "{tmp_path}/x.parquet"' in caught.value.message


def test_columns_go_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"b": ["x"], "a": [1]}), path)
    assert load(path, PARQUET, d.INT4, d.TEXT)[0] == [["1", "x"]]
    with pytest.raises(SqlError, match='has no column "c"') as caught:
        load(path, PARQUET, d.INT4, d.TEXT, d.INT4)
    assert caught.value.sqlstate == "42703"
    with pytest.raises(SqlError, match=r'column "b" of file .* is not a column of relation "t"'):
        load(path, PARQUET, d.INT4)
    assert load(path, PARQUET, d.INT4, d.TEXT, attnums=(1,))[0] == [["1", None]]


def test_row_groups_count_rows_on(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts = [str(i) for i in range(50)]
    texts[33] = "bad"
    pq.write_table(pa.table({"a": texts}), path, row_group_size=10)
    with pytest.raises(DataError) as caught:
        load(path, PARQUET, d.INT4)
    assert 'COPY t, line 34, column a: "bad"' in str(caught.value.where)
    rows, said = load(path, IGNORING, d.INT4)
    assert [row[0] for row in rows] == [text for text in texts if text != "bad"]
    assert said == ['skipping row due to data type incompatibility at line 34 for column "a": "bad"']


def test_not_null_and_other_files(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([1, None])}), path)
    with pytest.raises(SqlError) as caught:
        load(path, PARQUET, d.INT4, not_null=(1,))
    assert caught.value.sqlstate == "23502"
    assert "line 2" in str(caught.value.where)
    path.write_bytes(b"PAR1 no, it is not")
    with pytest.raises(SqlError, match="is not a Parquet file") as caught:
        load(path, PARQUET, d.INT4)
    assert caught.value.sqlstate == "22P04"
