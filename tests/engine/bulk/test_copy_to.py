"""COPY TO files and in the format json: what is written reads back, whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.changes.bulk.copy_out_files import LocalFolder
from engine.changes.bulk.export_task import ExportTask, adopt
from engine.changes.bulk.write_rows import Sheet, Sink
from pgwire.codecs import domain as d
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.settings import DEFAULT
from planner.base.errors import SqlError
from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[Any, ...]]

TABLE = (
    "a int PRIMARY KEY, b text, c numeric(10,2), n numeric, f float8, o bool, d date, ts timestamp, tz timestamptz, "
    "u uuid, y bytea, i interval, r int[], j jsonb, v varchar(10), tm time"
)
ROWS = """(1, E'x,"y"\\n\\\\', 1.5, 'NaN', 'Infinity', true, '2024-02-29', '2024-01-02 03:04:05.6', '2024-01-02 03:04:05+02',
    '00010203-0405-0607-0809-0a0b0c0d0e0f', '\\x00ff', '1 day 02:00', '{1,NULL,3}', '{"k": [1, "z"]}', 'ä', '01:02:03'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, '', -0.01, 12345678901234567890.1234, 0.1, false, '0001-01-01', '1969-12-31 23:59:59', '2000-01-01', NULL, '', '-1 mon',
    '{}', '[]', '', '00:00')"""


@pytest.fixture
def connection(server: ServerProcess) -> Iterator[Connection]:
    with psycopg.connect(server.url, autocommit=True) as made:
        for name in ("t", "back"):
            made.execute(f"DROP TABLE IF EXISTS {name}")
            made.execute(f"CREATE TABLE {name} ({TABLE})")
        made.execute(f"INSERT INTO t VALUES {ROWS}")
        yield made


@pytest.mark.parametrize(
    "options", ["FORMAT csv, HEADER", "FORMAT text", "FORMAT binary", "FORMAT json", "FORMAT parquet"]
)
@pytest.mark.parametrize(("slash", "stored"), [("", "hot"), ("/", "parts")])
def test_what_is_written_reads_back(
    connection: Connection, tmp_path: Path, options: str, slash: str, stored: str
) -> None:
    if stored == "parts":
        connection.execute("CHECKPOINT")
        connection.execute("SET executor = local")
    path = tmp_path / "out"
    assert connection.execute(f"COPY t TO '{path}{slash}' ({options})").rowcount == 3
    assert path.is_dir() == bool(slash)
    assert connection.execute(f"COPY back FROM '{path}' ({options})").rowcount == 3
    connection.execute("SET executor = auto")
    different = connection.execute(
        "SELECT count(*) FROM (SELECT t::text FROM t EXCEPT SELECT back::text FROM back) x"
    )
    assert different.fetchone() == (0,)
    assert os.listdir(tmp_path) == ["out"]


def test_json_is_row_to_json_s(connection: Connection, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    connection.execute(f"COPY (SELECT * FROM t ORDER BY a) TO '{path}' (FORMAT json)")
    expected = [row[0] for row in connection.execute("SELECT row_to_json(t)::text FROM t ORDER BY a")]
    assert path.read_text().splitlines() == expected
    with connection.cursor().copy("COPY (SELECT * FROM t ORDER BY a) TO STDOUT (FORMAT json)") as copy:
        sent = [bytes(row).decode() for row in copy]
    assert [line.rstrip("\n") for line in sent] == expected
    assert json.loads(expected[0])["j"] == {"k": [1, "z"]}


def test_types_of_parquet_columns_depend_on_the_statement_alone(
    connection: Connection, tmp_path: Path
) -> None:
    for name, where in (("some", "true"), ("none", "false")):
        connection.execute(f"COPY (SELECT * FROM t WHERE {where}) TO '{tmp_path}/{name}' (FORMAT parquet)")
    schema = pq.read_schema(tmp_path / "some")
    assert schema.equals(pq.read_schema(tmp_path / "none"))
    assert schema.field("c").type == pa.decimal128(10, 2)
    assert schema.field("n").type == pa.string()
    assert schema.field("tz").type == pa.timestamp("us", tz="UTC")
    assert pq.read_table(tmp_path / "none").num_rows == 0


def test_a_file_is_replaced_and_a_directory_is_not(connection: Connection, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    connection.execute(f"COPY (SELECT 1) TO '{path}'")
    assert path.read_text() == "1\n"
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(f"COPY (SELECT 1) TO '{path}/'")
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (
        "58P02",
        f'"{path}/" already exists',
    )
    (tmp_path / "folder").mkdir()
    with pytest.raises(psycopg.errors.WrongObjectType, match="Is a directory"):
        connection.execute(f"COPY (SELECT 1) TO '{tmp_path}/folder'")
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(f"COPY (SELECT 1) TO '{tmp_path}/no/where'")
    assert caught.value.sqlstate == "58P01"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_query_that_fails_leaves_nothing(connection: Connection, tmp_path: Path, slash: str) -> None:
    path = tmp_path / "out"
    if not slash:
        path.write_text("old")
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute(
            f"COPY (SELECT 1 / (50000 - g) FROM generate_series(1, 60000) g) TO '{path}{slash}'"
        )
    assert os.listdir(tmp_path) == ([] if slash else ["out"])
    assert slash or path.read_text() == "old"


def test_nan_with_a_precision_goes_to_parquet_as_text_alone(connection: Connection, tmp_path: Path) -> None:
    connection.execute("UPDATE t SET c = 'NaN' WHERE a = 1")
    with pytest.raises(psycopg.Error, match='a value of column "c" does not go to a Parquet file') as caught:
        connection.execute(f"COPY (SELECT a, c FROM t) TO '{tmp_path}/c' (FORMAT parquet)")
    assert caught.value.sqlstate == "22003"
    assert caught.value.diag.message_detail == "Parquet's decimal(10,2) has no NaN."
    assert (
        caught.value.diag.message_hint
        == "Cast the column to numeric without a precision, which is written as text."
    )
    connection.execute(f"COPY (SELECT c::numeric FROM t ORDER BY a) TO '{tmp_path}/c' (FORMAT parquet)")
    assert pq.read_table(tmp_path / "c").column(0).to_pylist() == ["NaN", None, "-0.01"]


def test_columns_of_one_name_do_not_go_to_parquet(connection: Connection, tmp_path: Path) -> None:
    with pytest.raises(psycopg.errors.DuplicateColumn):
        connection.execute(f"COPY (SELECT 1 AS a, 2 AS a) TO '{tmp_path}/x' (FORMAT parquet)")


# -- what executors do, without them -------------------------------------------------------------------


def payload(batch: Any) -> bytes:
    return bytes(batch.serialize())


def test_files_of_executors_are_numbered_in_order_and_leftovers_go(tmp_path: Path) -> None:
    sheet = Sheet(("a",), (d.INT4,), (-1,), CopyOptions(format="csv", header=True), DEFAULT)
    schema = pa.schema([pa.field("a", pa.int32())])
    task = ExportTask(LocalFolder(str(tmp_path)), sheet, schema, [None])
    answers: list[Any] = []
    for index, numbers in enumerate([[1, 2], [], [3]]):
        batches = [payload(pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32())], schema=schema))]
        answers += list(task(index, batches))
    (tmp_path / "part-00001-99.csv").write_text("of an attempt that did not count")
    rows, _size = adopt(LocalFolder(str(tmp_path)), sheet, answers)
    assert rows == 3
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "part-00000.csv": "a\n1\n2\n", "part-00001.csv": "a\n3\n",
    }  # fmt: skip


def test_an_executor_s_failure_is_the_client_s(tmp_path: Path) -> None:
    sheet = Sheet(("a",), (d.INT4,), (-1,), CopyOptions(format="csv"), DEFAULT)
    task = ExportTask(
        LocalFolder(str(tmp_path / "gone")), sheet, pa.schema([pa.field("a", pa.int32())]), [None]
    )
    answers = list(task(0, []))
    tmp_path.joinpath("gone").mkdir()
    with pytest.raises(SqlError, match="could not write to COPY file: No such file or directory"):
        adopt(LocalFolder(str(tmp_path / "gone")), sheet, answers)


def test_rows_and_batches_make_the_same_parquet_file(tmp_path: Path) -> None:
    options = CopyOptions(format="parquet")
    sheet = Sheet(
        ("a", "n", "t"), (d.INT8, d.NUMERIC, d.TIMESTAMP), (-1, (10 << 16 | 2) + 4, -1), options, DEFAULT
    )
    arrays = [
        pa.array([1, None]),
        pa.array(["1.50", None]).cast(pa.decimal128(38, 4)),
        pa.array([5, None], pa.timestamp("us")),
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=["x", "y", "z"])
    for name, rows, arrow in (
        ("rows", [(1, Decimal("1.50"), 5), (None, None, None)], None),
        ("arrow", None, batch),
    ):
        with open(tmp_path / name, "wb") as file:
            sink = Sink(file, sheet)
            sink.write(rows, arrow)
            sink.close()
    assert pq.read_table(tmp_path / "rows").equals(pq.read_table(tmp_path / "arrow"))
