"""Columns in their exact form: which need it, both forms in one table, and back to the plain one."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.physical import P, same, values
from tests.txn.durable.test_encode import batch_of, row_write
from txn.base.records import ShardWrites, WriteSet
from txn.base.types import (
    IndexId,
    PhysicalType,
    ShardColumn,
    ShardId,
    ShardIndex,
    ShardSpec,
    Timestamp,
    TxnId,
)
from txn.persist.blobs.files import LocalBlob
from txn.persist.location import inline
from txn.persist.parts.salvage import examine
from txn.persist.parts.write import write_part
from txn.values.columns import RowPlan, column_arrays, joined, rows_to_table, table_rows, to_arrow
from txn.values.encoding import decode_batch, disk_value, encode_batch, is_short
from txn.values.exact import alike, exact_columns, fits, has_exact, pieces_of, plain_type, settled, table_of
from txn.values.keycodec import KeyCodec

NAN = Decimal("NaN")
TEN = P(kind="decimal", precision=10, scale=2)
NUMERIC = P(kind="numeric")
KINDS = (TEN, NUMERIC, P(kind="list", element=TEN), P(kind="list", element=NUMERIC))


def spec_of(type_: PhysicalType) -> ShardSpec:
    return ShardSpec(shard=ShardId(7), version=1, columns=(ShardColumn(attnum=1, type=type_),))


def table_with(type_: PhysicalType, drawn: list[Any]) -> Any:
    rows = [(value,) for value in drawn]
    return rows_to_table(spec_of(type_), rows, range(len(rows)), [1] * len(rows))


@pytest.mark.parametrize(
    ("type_", "value", "exact"),
    [
        (NUMERIC, Decimal(10**38 - 1), False),
        (NUMERIC, Decimal(10**38), True),
        (NUMERIC, Decimal("1e37"), False),
        (NUMERIC, Decimal("1e38"), True),
        (NUMERIC, Decimal("0." + "0" * 200 + "1"), False),
        (NUMERIC, Decimal("0." + "1" * 39), True),
        (NUMERIC, Decimal("-1." + "0" * 100), True),
        (NUMERIC, NAN, False),
        (NUMERIC, Decimal("-Infinity"), False),
        (TEN, Decimal("1.50"), False),
        (TEN, NAN, True),
    ],
)
def test_a_column_has_its_exact_form_where_a_value_needs_it(
    type_: PhysicalType, value: Decimal, exact: bool
) -> None:
    column = ShardColumn(attnum=1, type=type_)
    (array,) = column_arrays([None, value], column)
    assert has_exact(array.type) is exact
    assert array.null_count == 1
    assert fits(type_.kind, value) is not exact
    if exact:
        with pytest.raises((OverflowError, pa.ArrowInvalid)):
            to_arrow([value], type_)


def test_what_is_neither_is_no_exact_form() -> None:
    """A number of more digits than its declaration allows is a mistake of whoever stored it."""
    with pytest.raises(pa.ArrowInvalid):
        column_arrays([Decimal("123456789.00"), NAN], ShardColumn(attnum=1, type=TEN))
    with pytest.raises(ValueError, match="column c1 is of int64"):
        table_of([pa.array([1])], pa.schema([pa.field("c1", pa.string())]))


@pytest.mark.parametrize("type_", KINDS, ids=["decimal", "numeric", "decimals", "numerics"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_tables_of_both_forms_are_joined_and_settled(type_: PhysicalType, data: st.DataObject) -> None:
    one = st.lists(st.none() | values(type_), max_size=6)
    pieces = data.draw(st.lists(one, min_size=1, max_size=4))
    plan = RowPlan(spec_of(type_), [1])
    whole = joined([table_with(type_, piece) for piece in pieces])
    everything = [value for piece in pieces for value in piece]
    assert same([row[0] for row in table_rows(whole, plan)], everything)
    start = data.draw(st.integers(0, len(everything)))
    for left in (whole, whole.slice(start), whole.take(pa.array(range(start), pa.int64()))):
        kept = settled(left)
        assert same(table_rows(kept, plan), table_rows(left, plan))
        needed = exact_columns(table_with(type_, [row[0] for row in table_rows(left, plan)]).schema)
        assert exact_columns(kept.schema) == needed
    columns = alike([table_with(type_, piece).column("c1") for piece in pieces])
    assert len({column.type for column in columns}) == 1
    assert plain_type(columns[0].type) == plain_type(whole.column("c1").type)


def test_long_numbers_are_a_few_at_a_time() -> None:
    long = Decimal("9" * 131072)
    assert [len(range(*piece.indices(40))) <= 4 for piece in pieces_of([long] * 40, 8192)] == [True] * 10
    assert len(list(pieces_of([Decimal(1), None] * 4096, 8192))) == 1
    assert len(list(pieces_of([Decimal(1)] * 8193, 8192))) == 2


def test_a_server_that_knows_no_exact_form_refuses_the_log_by_a_number() -> None:
    """Extension 1 is what it knows; the column of a value is not known to the log, so NaN is told wherever it is."""
    codes = {text: disk_value(Decimal(text)).code for text in ("1.50", "Infinity", "1e37", "NaN", "1e38")}
    assert codes == {"1.50": 1, "Infinity": 1, "1e37": 1, "NaN": 5, "1e38": 5}
    assert disk_value(Decimal("0." + "0" * 200 + "1")).code == 1


def test_numbers_of_many_digits_are_encoded_a_few_at_a_time() -> None:
    """One takes half a millisecond."""

    def writes(values_: list[Decimal]) -> WriteSet:
        ops = tuple(op for value in values_ for op in row_write(value).shards[0].ops)
        return WriteSet(txn=TxnId(1), ts=Timestamp(5), shards=(ShardWrites(shard=ShardId(7), ops=ops),))

    long = Decimal("9" * 131072)
    assert is_short(writes([Decimal("1.50")] * 1000))
    assert is_short(writes([long]))
    assert not is_short(writes([long] * 10))
    batch = batch_of(writes([long, NAN]))
    assert same(decode_batch(encode_batch(batch)), batch)
    started = process_time()
    codec = KeyCodec([NUMERIC])
    assert codec.decode(codec.encode((long,))) == (long,)
    assert process_time() - started < 0.1, "by its digits one by one it takes twice that"


def test_what_is_left_of_a_damaged_part_keeps_exact_forms(tmp_path: Path) -> None:
    """Row groups of one part are read one by one; a lost one is NULLs, in the form of the others."""
    spec = ShardSpec(
        shard=ShardId(7),
        version=1,
        columns=(
            ShardColumn(attnum=1, type=NUMERIC),
            ShardColumn(attnum=2, type=P(kind="list", element=TEN)),
        ),
        indexes=(ShardIndex(index=IndexId(3), attnums=(1,), unique=True, primary=True),),
    )
    rows: list[tuple[Any, ...]] = [(Decimal(n), (NAN, None, Decimal("1.50"))) for n in range(20_000)]
    rows += [(Decimal(10**40 + n), None) for n in range(20_000)]

    async def body() -> None:
        blob = LocalBlob(str(tmp_path), offload=inline)
        table = rows_to_table(spec, rows, range(1, len(rows) + 1), [5] * len(rows))
        ref = await write_part(blob, inline, "7/1-part", spec, table)
        assert examine(ref, spec, blob) is None
        footer = pq.read_metadata(ref.path)
        last = footer.row_group(footer.num_row_groups - 1)
        with open(ref.path, "r+b") as file:
            file.seek(last.column(0).data_page_offset + 40)
            byte = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([byte[0] ^ 255]))
        found = examine(ref, spec, blob)
        assert found is not None
        assert found.lost == ()
        left = table_rows(found.table, RowPlan(spec, [1, 2]))
        assert [row[0] for row in left] == [row[0] for row in rows]  # keys do not have scales
        assert same([row[1] for row in left], [row[1] for row in rows])

    asyncio.run(body())
