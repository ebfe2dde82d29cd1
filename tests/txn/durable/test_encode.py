"""Log entries: what goes in comes out, small, and nothing unknown is guessed at."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.durable import two_column_spec, write
from tests.support.physical import TYPES, P, name_of, same, values
from txn.base.errors import DamagedFile, UnknownFormat
from txn.base.huge_values import SHARED_BYTES, bytes_of, is_huge
from txn.base.records import Batch, PartSwap, RowOp, SchemaChange, ShardWrites, WriteSet
from txn.base.types import (
    ROW_MARK,
    PartRef,
    PhysicalType,
    RowId,
    ShardColumn,
    ShardId,
    ShardSpec,
    Timestamp,
    TxnId,
    bounded,
)
from txn.values import encoding as encode
from txn.values.encoding import (
    CHUNK_OPS,
    blob_pieces,
    decode_batch,
    decode_spec,
    decode_write_set,
    encode_at_once,
    encode_batch,
    encode_spec,
    encode_write_set,
    encode_write_set_slowly,
)

TS = Timestamp(1_700_000_000_000 << 16 | 7)


def batch_of(*writes: WriteSet) -> Batch:
    return Batch(epoch=3, writes=writes)


def row_write(*values_: Any) -> WriteSet:
    op = RowOp(RowId(12_345), TS, tuple(values_))
    return WriteSet(txn=TxnId(99), ts=TS, shards=(ShardWrites(shard=ShardId(16384), ops=(op,)),))


@pytest.mark.parametrize("type_", TYPES, ids=name_of)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_rows_of_every_type_round_trip(type_: PhysicalType, data: st.DataObject) -> None:
    one = st.none() | values(type_)
    batch = batch_of(row_write(data.draw(one), 1, data.draw(one)))
    assert same(decode_batch(encode_batch(batch)), batch)


def test_a_whole_batch_round_trips() -> None:
    ref = PartRef(
        name="7/1-a", path="", rows=3, bytes=100, schema_version=1, columns=(1, 2),
        min_begin=Timestamp(1), max_begin=Timestamp(2),
    )  # fmt: skip
    spec = ShardSpec(
        shard=ShardId(7),
        version=4,
        columns=(
            ShardColumn(attnum=1, type=P(kind="numeric"), missing_value=Decimal("1.50")),
            ShardColumn(
                attnum=2, type=P(kind="list", element=P(kind="int32")), missing_value=((1, None), (2, 3))
            ),
        ),
        indexes=two_column_spec().indexes,
    )
    batch = Batch(
        epoch=9,
        writes=(
            WriteSet(
                txn=TxnId(1),
                ts=TS,
                shards=(
                    ShardWrites(shard=ShardId(7), ops=(RowOp(RowId(1), Timestamp(0), None),)),
                    ShardWrites(shard=ShardId(8), parts=(ref,)),
                ),
                schema=(
                    SchemaChange(shard=ShardId(7), spec=spec),
                    SchemaChange(shard=ShardId(5), forget=True),
                    SchemaChange(shard=ShardId(6), truncate=True),
                ),
            ),
            row_write(1, "x"),
        ),
        swaps=(
            PartSwap(
                shard=ShardId(7),
                removed=("7/1-b",),
                added=(ref,),
                ends=((RowId(1), Timestamp(2), Timestamp(3)),),
            ),
        ),
    )
    assert same(decode_batch(encode_batch(batch)), batch)
    assert decode_spec(encode_spec(spec)) == spec


def test_bulk_parts_get_the_commits_timestamp_and_no_path() -> None:
    ref = PartRef(
        name="7/1-a", path="/tmp/somewhere/7/1-a.parquet", rows=3, bytes=100, schema_version=1, columns=(1,),
        min_begin=Timestamp(0), max_begin=Timestamp(0),
    )  # fmt: skip
    writes = WriteSet(txn=TxnId(1), ts=TS, shards=(ShardWrites(shard=ShardId(7), parts=(ref,)),))
    data = encode_batch(batch_of(writes))
    assert b"somewhere" not in data
    (found,) = decode_batch(data).writes[0].shards[0].parts
    assert (found.min_begin, found.max_begin, found.path) == (TS, TS, "")


def test_a_row_costs_little() -> None:
    row = (100_000, 1, 0, Decimal("12.50"), "a filler of thirty characters.")
    assert len(encode_batch(batch_of(row_write(*row)))) < 150


def test_values_outside_the_value_domain_are_refused() -> None:
    with pytest.raises(TypeError):
        encode_write_set(write(1, (1, (object(),))))


def test_unknown_formats_and_damage_are_refused() -> None:
    data = encode_batch(batch_of(row_write(1, Decimal("1.5"))))
    extension = data.replace(b"\xc7\x03\x01", b"\xc7\x03\x63")
    assert extension != data
    for bad in (b"", b"\x63" + data[1:-1] + b"?"):
        with pytest.raises(UnknownFormat):
            decode_batch(bad)
    for bad in (data[:-1], data + b"x", data[:5], extension):
        with pytest.raises(DamagedFile):
            decode_batch(bad)
    for bad in (b"", b"\x02" + encode_spec(two_column_spec())[1:], b"\x01\xc0"):
        with pytest.raises(UnknownFormat):
            decode_spec(bad)


def test_huge_values_are_written_from_where_they_lie() -> None:
    value, text, beyond = bytes(range(256)) * 8192, "ab" * SHARED_BYTES, "é" * SHARED_BYTES
    assert all(map(is_huge, (value, text, beyond)))
    rows = [(1, value, None), (2, text, beyond), (3, value, (value, Decimal(1))), (4, b"short", text)]
    rows += [(5, b"", ""), (6, ROW_MARK + value, None)]
    ops = tuple(RowOp(RowId(i), Timestamp(i), row) for i, row in enumerate(rows))
    writes = WriteSet(txn=TxnId(3), ts=TS, shards=(ShardWrites(shard=ShardId(7), ops=ops),))
    pieces = list(encode_write_set_slowly(writes))
    assert b"".join(pieces) == encode_write_set(writes)
    blob = b"".join(blob_pieces(pieces))
    assert same(decode_write_set(blob, TS), writes)
    places = [pa.py_buffer(piece).address for piece in pieces]
    assert places.count(pa.py_buffer(value).address) == 2
    assert places.count(bytes_of(text).address) == 2


NUMBERS = tuple(Decimal(n) / 8 for n in range(30_000))
LONG_ARRAYS: dict[str, tuple[Any, ...]] = {
    "numbers": NUMBERS,
    "with NULLs": (None, *range(20_000), None),
    "of two dimensions": tuple((n, n + 1) for n in range(20_000)),
    "of two wide rows": (NUMBERS, NUMBERS),
    "of three dimensions": tuple(((n, 1), (None, 2)) for n in range(5_000)),
    "of intervals": tuple((n, 1, 2) for n in range(9_000)),
    "of small integers": (1,) * 20_000,
    "with bounds": bounded(tuple(range(20_000)), (-3,)),
    "with bounds, of two dimensions": bounded(tuple((n, n) for n in range(20_000)), (0, 7)),
}


@pytest.mark.parametrize("value", LONG_ARRAYS.values(), ids=LONG_ARRAYS.keys())
def test_long_arrays_are_encoded_piece_by_piece_to_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, value: tuple[Any, ...]
) -> None:
    ops = (
        RowOp(RowId(1), Timestamp(0), (7, value, Decimal(5))),
        RowOp(RowId(2), Timestamp(3), (8, (1, 2), None)),
    )
    writes = WriteSet(txn=TxnId(3), ts=Timestamp(0), shards=(ShardWrites(shard=ShardId(7), ops=ops),))
    whole = encode_write_set(writes)
    monkeypatch.setattr(encode.Slice, "over", lambda _: True)
    pieces = list(encode_write_set_slowly(writes))
    assert b"".join(pieces) == whole
    assert pieces.count(b"") > 8, "others have no turn"
    assert encode_at_once(writes) is None
    few = WriteSet(txn=TxnId(3), ts=Timestamp(0), shards=(ShardWrites(shard=ShardId(7), ops=ops[1:]),))
    assert encode_at_once(few) == encode_write_set(few)
    many = WriteSet(txn=TxnId(3), ts=Timestamp(0), shards=(ShardWrites(shard=ShardId(7), ops=ops[:1] * 5),))
    assert not encode.is_short(many)


@pytest.mark.parametrize("count", [0, 3, 15, 16, CHUNK_OPS + 7, 70_000])
def test_a_large_write_set_encodes_piece_by_piece_to_the_same_bytes(count: int) -> None:
    ops = tuple(RowOp(RowId(i), Timestamp(i % 3), (i, Decimal(i)) if i % 5 else None) for i in range(count))
    part = PartRef(
        name="7/1-a", path="", rows=3, bytes=100, schema_version=1, columns=(1,),
        min_begin=Timestamp(5), max_begin=Timestamp(6),
    )  # fmt: skip
    writes = WriteSet(
        txn=TxnId(3),
        ts=TS,
        shards=(
            ShardWrites(shard=ShardId(300), ops=ops, parts=(part,), next_row_id=77),
            ShardWrites(shard=ShardId(7), ops=ops[:20]),
        ),
        schema=(SchemaChange(shard=ShardId(7), spec=two_column_spec()),),
    )
    pieces = list(encode_write_set_slowly(writes))
    assert b"".join(pieces) == encode_write_set(writes)
    assert max(map(len, pieces)) < 100_000
    blob = b"".join(blob_pieces(pieces))
    assert same(decode_write_set(blob, TS), writes)
    with pytest.raises(UnknownFormat):
        decode_write_set(b"\x63" + blob[1:-1] + bytes((blob[-1] ^ 1,)), TS)
    with pytest.raises(DamagedFile):
        decode_write_set(blob[:-1], TS)
