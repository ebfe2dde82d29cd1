"""Parquet files whose huge values are written from where they lie: any reader finds in them what Arrow's own would have."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.durable import two_column_spec
from tests.support.physical import P
from txn.base import huge_values
from txn.base.huge_values import SHARED_BYTES, bytes_of
from txn.base.types import ShardColumn
from txn.persist.parts import huge_pages
from txn.persist.parts.write import _huge, sort_table
from txn.values.columns import rows_to_table

GROUPS = [1, 3, 64]
NAMES = ["n", "d", "t", "l"]
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 3),
        st.none() | st.binary(max_size=40),
        st.none() | st.text(max_size=40),
        st.none() | st.lists(st.none() | st.binary(max_size=3), max_size=3),
    ),
    min_size=1,
    max_size=70,
)
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("d", pa.binary()),
        ("t", pa.string()),
        ("l", pa.list_(pa.field("element", pa.binary()))),
    ],
    {b"of": b"mine"},
)


def written(table: Any, huge: dict[str, bool], group_rows: int) -> BytesIO:
    def small(rows: Any, into: Any) -> None:
        leaves = ["n", "d", "t", "l.list.element"]
        pq.write_table(
            rows, into, row_group_size=group_rows, write_page_checksum=True, write_statistics=["n"],
            use_dictionary=[path for path in leaves if path not in huge],
            compression={path: "none" if path in huge else "zstd" for path in leaves},
        )  # fmt: skip

    file = BytesIO()
    huge_pages.write(file, table, huge, group_rows, small)
    file.seek(0)
    return file


@given(
    ROWS,
    st.dictionaries(st.sampled_from(["d", "t"]), st.booleans(), min_size=1),
    st.sampled_from(GROUPS),
    st.sampled_from([1, 50, 1 << 20]),
    st.integers(1, 70),
)
@settings(max_examples=40)
def test_what_is_written_is_read(rows: Any, huge: Any, group_rows: int, page: int, chunk: int) -> None:
    table = pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows], SCHEMA)
    chunks = pa.concat_tables([table.slice(at, chunk) for at in range(0, table.num_rows, chunk)])
    with mock.patch.object(huge_pages, "PAGE_BYTES", page), mock.patch.object(huge_pages, "PIECE_BYTES", 7):
        file = written(chunks, huge, group_rows)
    found = pq.read_table(file, page_checksum_verification=True)
    assert found.equals(table)
    assert found.schema.metadata == table.schema.metadata
    meta = pq.ParquetFile(file).metadata
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [
        min(group_rows, table.num_rows - at) for at in range(0, table.num_rows, group_rows)
    ]
    assert sum(meta.row_group(i).column(0).total_compressed_size for i in range(meta.num_row_groups))
    again = huge_pages.read(huge_pages.written(huge_pages.read(footer := footer_of(file))))
    assert huge_pages.written(again) == footer


def footer_of(file: BytesIO) -> bytes:
    data = file.getvalue()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.parametrize("compressed", [False, True])
def test_other_readers_find_the_same(tmp_path: Path, compressed: bool) -> None:
    value = Random(1).randbytes(6 << 20)
    table = pa.table(
        {
            "n": range(9),
            "d": pa.chunked_array([[value, None], [b"", value[1:]], [b"x", None, value, value, None]]),
            "t": ["é" * (3 << 20), None, "", *"abcdef"],
            "l": pa.array([[b"x"], None, []] * 3, SCHEMA.field("l").type),
        },
        SCHEMA,
    )
    path = tmp_path / "a.parquet"
    path.write_bytes(written(table, {"d": compressed, "t": not compressed}, 2).getvalue())
    query = "SELECT n, md5(d), octet_length(d), md5(t), l FROM {} ORDER BY n"
    with duckdb.connect() as connection:
        connection.register("whole", table)
        found = connection.sql(query.format(f"'{path}'")).fetchall()
        assert found == connection.sql(query.format("whole")).fetchall()


def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    value = Random(2).randbytes(1 << 20)
    table = pa.table({"n": [1], "d": [value], "t": ["a"], "l": [None]}, SCHEMA)
    data = bytearray(written(table, {"d": False}, 1).getvalue())
    data[data.index(value[:100]) + 5000] ^= 1
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(BytesIO(data), page_checksum_verification=True)


def test_what_is_huge_is_not_copied_on_its_way_to_a_part() -> None:
    spec = two_column_spec()
    kinds = [P(kind="int64"), P(kind="bytes"), P(kind="text")]
    columns = tuple(ShardColumn(attnum=at, type=type_) for at, type_ in enumerate(kinds, 1))
    spec = replace(spec, columns=columns, indexes=spec.indexes[:1])
    value, text = Random(3).randbytes(5 << 20), "a" * (5 << 20)
    rows: list[Any] = [
        (4, value, "x"),
        (3, b"y", text),
        (2, None, "é" * SHARED_BYTES),
        (1, b"z"),
        (0, b"", None),
    ]
    before = pa.total_allocated_bytes()
    table = sort_table(rows_to_table(spec, rows, range(5), range(5)), spec)
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert [c.to_pylist() for c in table.columns[:2]] == [[0, 1, 2, 3, 4], [b"", b"z", None, b"y", value]]
    assert table.column(2).to_pylist() == [None, None, rows[2][2], text, "x"]
    assert table.column("c2").chunk(4).buffers()[2].address == pa.py_buffer(value).address
    assert table.column("c3").chunk(3).buffers()[2].address == bytes_of(text).address
    assert _huge(table) == {"c2": False, "c3": True}


@pytest.mark.parametrize(
    "unit", ["a", "\xe9", "\u20ac", "\U0001f600", "ab\xe9", "a\u20ac\U0001f600", b"b\xff"]
)
@pytest.mark.parametrize("end", ["", "\xe9", "\u20ac", "\U0001f600"])
def test_huge_values_are_made_anew_a_piece_at_a_time(unit: str | bytes, end: str) -> None:
    with mock.patch.object(huge_values, "_PIECE", 7):
        for count in (0, 1, 100):
            value: Any = unit * count
            value += end if isinstance(unit, str) else end.encode()
            data = value.encode() if isinstance(value, str) else value
            steps = huge_values.python_of(memoryview(data), isinstance(value, str))
            turns = 0
            try:
                while True:
                    next(steps)
                    turns += 1
            except StopIteration as done:
                made = done.value
            assert made == value
            assert {made: 1}[value]
            assert made.isascii() == value.isascii()
            assert turns >= len(data) // 7
