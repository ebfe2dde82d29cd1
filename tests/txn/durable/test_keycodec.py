"""Memcomparable keys order as PostgreSQL orders values; ranges of keys are ranges of bytes."""

from __future__ import annotations

import functools
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.physical import SCALARS, TYPES, P, name_of, values
from txn.base.types import BoundedArray, IndexId, KeyRange, PhysicalType, ShardColumn, ShardIndex, bounded
from txn.mvcc.keys import KeyMaker
from txn.values import keycodec
from txn.values.columns import column_arrays, flatten_list
from txn.values.keycodec import KeyCodec

_DAY = 86_400_000_000


def compare(type_: PhysicalType, a: Any, b: Any) -> int:
    """PostgreSQL's btree comparison, written plainly."""

    def sign(x: Any, y: Any) -> int:
        return (x > y) - (x < y)

    kind = type_.kind
    if kind in ("float32", "float64", "decimal", "numeric"):
        nan_a, nan_b = a != a, b != b
        if nan_a or nan_b:
            return int(nan_a) - int(nan_b)
        return sign(a, b)
    if kind == "text":
        return sign(a.encode(), b.encode())
    if kind == "interval":
        return sign(*((30 * m + d) * _DAY + u for m, d, u in (a, b)))
    if kind == "timetz":
        return sign(*((t + z * 1_000_000, z) for t, z in (a, b)))
    if kind == "list":
        element = type_.element
        assert element is not None
        (dims_a, flat_a), (dims_b, flat_b) = (flatten_list(v, element) for v in (a, b))
        for x, y in zip(flat_a, flat_b, strict=False):
            if x is None or y is None:
                c = int(x is None) - int(y is None)
            else:
                c = compare(element, x, y)
            if c:
                return c
        lows = [
            v.lows if isinstance(v, BoundedArray) else (1,) * len(d) for v, d in ((a, dims_a), (b, dims_b))
        ]
        shapes = sign(len(flat_a), len(flat_b)) or sign(len(dims_a), len(dims_b)) or sign(dims_a, dims_b)
        return shapes or sign(*lows)
    return sign(a, b)


def compare_keys(types: tuple[PhysicalType, ...], a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    for type_, x, y in zip(types, a, b, strict=True):
        if x is None or y is None:
            c = int(x is None) - int(y is None)
        else:
            c = compare(type_, x, y)
        if c:
            return c
    return 0


@pytest.mark.parametrize("type_", TYPES, ids=name_of)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_bytes_order_as_values_do(type_: PhysicalType, data: st.DataObject) -> None:
    one = st.none() | values(type_)
    a, b = data.draw(one), data.draw(one)
    codec = KeyCodec([type_])
    x, y = codec.encode((a,)), codec.encode((b,))
    assert (x > y) - (x < y) == compare_keys((type_,), (a,), (b,))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_composite_keys_order_column_by_column(data: st.DataObject) -> None:
    types = tuple(data.draw(st.lists(st.sampled_from(SCALARS), min_size=2, max_size=3)))
    key = st.tuples(*(st.none() | values(t) for t in types))
    keys = data.draw(st.lists(key, min_size=2, max_size=6))
    # Equal first columns are what composite order is about.
    keys += [(keys[0][0], *k[1:]) for k in keys]
    codec = KeyCodec(types)
    by_value = sorted(keys, key=functools.cmp_to_key(lambda a, b: compare_keys(types, a, b)))
    by_bytes = sorted(keys, key=codec.encode)
    assert [codec.encode(k) for k in by_value] == [codec.encode(k) for k in by_bytes]


def test_arrays_that_begin_elsewhere_have_keys_of_their_own() -> None:
    """In ranges, too: what follows in a key of several columns does not get between them."""
    types = (P(kind="list", element=P(kind="int32")), P(kind="int32"))
    codec = KeyCodec(types)
    items = ((1, 2), ((1,), (2,)), ((1, 2),))
    lows = [(-1, 5), (0, 0), (0, 1), (1, -4), (1, 1), (1, 2), (2, -7)]
    ordered = [
        bounded(i, low[: 1 + isinstance(i[0], tuple)]) for i in sorted(items, key=_shape) for low in lows
    ]
    ordered = list(dict.fromkeys(ordered))
    keys = [(value, other) for value in ordered for other in (-5, 3, None)]
    encoded = [codec.encode(key) for key in keys]
    assert encoded == sorted(encoded)
    assert [codec.decode(data) for data in encoded] == keys
    for at, value in enumerate(ordered):
        start, stop = codec.bounds(KeyRange(prefix=(value,)))
        assert [k for k, e in zip(keys, encoded, strict=True) if start <= e < stop] == keys[
            3 * at : 3 * at + 3
        ]
        start, stop = codec.bounds(KeyRange(lower=value, lower_inclusive=False, has_lower=True))
        assert [k for k, e in zip(keys, encoded, strict=True) if start <= e < stop] == keys[3 * at + 3 :]
    maker = KeyMaker(
        tuple(ShardColumn(attnum=i + 1, type=t) for i, t in enumerate(types)),
        ShardIndex(index=IndexId(1), attnums=(1, 2), unique=False),
    )
    mapped = [maker.of_row(key) for key in keys]
    assert mapped == sorted(mapped)
    assert len(set(mapped)) == len(keys)
    assert [maker.values(key) for key in mapped] == keys


def _shape(items: Any) -> tuple[int, ...]:
    return (1, len(items)) if not isinstance(items[0], tuple) else (2, len(items))


def test_equal_values_of_other_scale_are_one_key() -> None:
    codec = KeyCodec([P(kind="numeric")])
    assert codec.encode((Decimal("1.0"),)) == codec.encode((Decimal("1.000"),))
    assert codec.encode((Decimal("0.00"),)) == codec.encode((Decimal("0"),))
    assert codec.encode((Decimal("100"),)) == codec.encode((Decimal("1E+2"),))
    floats = KeyCodec([P(kind="float64")])
    assert floats.encode((-0.0,)) == floats.encode((0.0,))
    other_nan = struct.unpack(">d", b"\xff\xf8\x00\x00\x00\x00\x00\x01")[0]
    assert floats.encode((other_nan,)) == floats.encode((float("nan"),))
    intervals = KeyCodec([P(kind="interval")])
    assert intervals.encode(((1, 0, 0),)) == intervals.encode(((0, 30, 0),))


_RANGE_TYPES = (P(kind="text"), P(kind="bytes"), P(kind="int32"), P(kind="numeric"), P(kind="float64"))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_range_of_bytes_holds_exactly_the_range_of_keys(data: st.DataObject) -> None:
    types = tuple(data.draw(st.lists(st.sampled_from(_RANGE_TYPES), min_size=1, max_size=3)))
    small = [st.none() | values(t) for t in types]
    keys = data.draw(st.lists(st.tuples(*small), min_size=1, max_size=8))
    pool = [*keys, tuple(data.draw(s) for s in small)]
    width = data.draw(st.integers(0, len(types)))
    prefix = data.draw(st.sampled_from(pool))[:width]
    bounded = width < len(types)
    wanted = KeyRange(
        prefix=prefix,
        lower=data.draw(st.sampled_from(pool))[width] if bounded else None,
        upper=data.draw(st.sampled_from(pool))[width] if bounded else None,
        lower_inclusive=data.draw(st.booleans()),
        upper_inclusive=data.draw(st.booleans()),
        has_lower=bounded and data.draw(st.booleans()),
        has_upper=bounded and data.draw(st.booleans()),
    )
    codec = KeyCodec(types)
    start, stop = codec.bounds(wanted)
    for key in pool:
        assert (start <= codec.encode(key) < stop) == in_range(types, wanted, key), (wanted, key)


@pytest.mark.parametrize("type_", TYPES, ids=name_of)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_decoded_key_is_equal_to_the_encoded_one(type_: PhysicalType, data: st.DataObject) -> None:
    key = data.draw(st.tuples(st.none() | values(type_), st.none() | st.text(max_size=3)))
    text = P(kind="text")
    codec = KeyCodec((type_, text))
    back = codec.decode(codec.encode(key))
    assert codec.encode(back) == codec.encode(key)
    columns = (ShardColumn(attnum=1, type=type_), ShardColumn(attnum=2, type=text))
    make = KeyMaker(columns, ShardIndex(index=IndexId(1), attnums=(1, 2), unique=False))
    assert make.of_key(back) == make.of_key(key)
    assert make.of_key(make.values(make.of_key(key))) == make.of_key(key)


def in_range(types: tuple[PhysicalType, ...], wanted: KeyRange, key: tuple[Any, ...]) -> bool:
    width = len(wanted.prefix)
    if compare_keys(types[:width], key[:width], wanted.prefix):
        return False
    if not (wanted.has_lower or wanted.has_upper):
        return True
    value, type_ = key[width], types[width]
    if value is None:
        return False
    if wanted.has_lower:
        if wanted.lower is None:
            return False
        c = compare(type_, value, wanted.lower)
        if c < 0 or (c == 0 and not wanted.lower_inclusive):
            return False
    if wanted.has_upper:
        if wanted.upper is None:
            return False
        c = compare(type_, value, wanted.upper)
        if c > 0 or (c == 0 and not wanted.upper_inclusive):
            return False
    return True


@pytest.mark.parametrize("type_", TYPES, ids=name_of)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_whole_columns_encode_as_single_values_do(type_: PhysicalType, data: st.DataObject) -> None:
    column = ShardColumn(attnum=1, type=type_)
    drawn = data.draw(st.lists(st.none() | values(type_), min_size=1, max_size=10))
    arrays = column_arrays(drawn, column)
    ints = ShardColumn(attnum=2, type=P(kind="int16"))
    (second,) = column_arrays([None if i % 3 == 0 else -i for i in range(len(drawn))], ints)
    codec = KeyCodec([type_, ints.type])
    dims = [arrays[1] if len(arrays) > 1 else None, None]
    wanted = [codec.encode((v, None if i % 3 == 0 else -i)) for i, v in enumerate(drawn)]
    assert codec.encode_arrow([arrays[0], second], dims).to_pylist() == wanted
    # Also from the middle of a column.
    sliced = codec.encode_arrow([arrays[0].slice(1), second.slice(1)], [d and d.slice(1) for d in dims])
    assert sliced.to_pylist() == wanted[1:]


@pytest.mark.parametrize("type_", TYPES, ids=name_of)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_key_is_decoded_piece_by_piece_as_it_is_at_once(type_: PhysicalType, data: st.DataObject) -> None:
    codec = KeyCodec([type_, PhysicalType(kind="bytes"), type_])
    value = st.none() | values(type_)
    encoded = codec.encode((data.draw(value), data.draw(st.none() | st.binary()), data.draw(value)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keycodec, "PIECE", data.draw(st.sampled_from((1, 2, 3, 1 << 16))))
        piecewise, whole = codec.decode_long(memoryview(encoded)), codec.decode(encoded)
    assert repr(piecewise) == repr(whole)
