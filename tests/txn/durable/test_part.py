"""Parts and sidecars: every physical type round trips, sidecars answer as brute force does, padding, caching."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import inspect
import random
from collections.abc import Awaitable, Callable
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.durable import run, two_column_spec
from tests.support.physical import TYPES, P, name_of, same, values
from tests.txn.durable.test_keycodec import compare_keys, in_range
from txn.base import huge_values
from txn.base.errors import DamagedFile, MissingFile, UnknownFormat
from txn.base.types import (
    IndexId,
    KeyRange,
    PhysicalType,
    Row,
    RowId,
    ShardColumn,
    ShardId,
    ShardIndex,
    ShardSpec,
    bounded,
)
from txn.mvcc.parts import PartState
from txn.persist.blobs.files import LocalBlob
from txn.persist.checksum import write_blocks
from txn.persist.location import inline
from txn.persist.parts import part as part_module
from txn.persist.parts import sidecar as sidecar_module
from txn.persist.parts.part import (
    GROUP_BYTES,
    GROUP_ROWS,
    SCAN_BYTES,
    Part,
    RowGroupCache,
    open_part,
    parquet_name,
    sidecar_name,
    system_name,
)
from txn.persist.parts.sidecar import KeySidecar, build_key_sidecar
from txn.persist.parts.write import delete_part, write_part
from txn.transaction import snapshot
from txn.values import columns, keycodec
from txn.values.columns import column_arrays, rows_to_table, to_python, value_getter
from txn.values.keycodec import KeyCodec

T = TypeVar("T")
SPEC = two_column_spec()


async def now_or_later(result: T | Awaitable[T]) -> T:
    return await result if inspect.isawaitable(result) else result


def spec_of(*types: PhysicalType, indexes: tuple[ShardIndex, ...] = ()) -> ShardSpec:
    columns = tuple(ShardColumn(attnum=i + 1, type=t) for i, t in enumerate(types))
    return ShardSpec(shard=ShardId(7), version=1, columns=columns, indexes=indexes)


async def make_part(
    folder: Path, spec: ShardSpec, rows: list[Row], *, ids: Any = None, begins: Any = None,
    cache_bytes: int = 1 << 20, sort: bool = True,
) -> tuple[Part, RowGroupCache]:  # fmt: skip
    blob = LocalBlob(str(folder), offload=inline)
    ids = range(1, len(rows) + 1) if ids is None else ids
    table = rows_to_table(spec, rows, ids, [5] * len(rows) if begins is None else begins)
    ref = await write_part(blob, inline, "7/1-part", spec, table, sort=sort)
    cache = RowGroupCache(cache_bytes)
    return await open_part(ref, blob, inline, cache), cache


async def all_rows(part: Part, spec: ShardSpec) -> list[Row]:
    found: list[Row] = []
    async for first, rows in part.scan(spec):
        assert first == len(found)
        found += rows
    return found


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", TYPES, ids=name_of)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_columns_round_trip_through_arrow(type_: PhysicalType, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.none() | values(type_), max_size=12))
    arrays = column_arrays(drawn, ShardColumn(attnum=1, type=type_))
    dims = arrays[1] if len(arrays) > 1 else None
    assert same(to_python(arrays[0], type_, dims), drawn)
    get = value_getter(arrays[0], type_, dims)
    assert same([get(i) for i in range(len(drawn))], drawn)
    if len(drawn) > 2:
        middle = arrays[0].slice(1, len(drawn) - 2), dims and dims.slice(1, len(drawn) - 2)
        assert same(to_python(middle[0], type_, middle[1]), drawn[1:-1])
        get = value_getter(middle[0], type_, middle[1])
        assert same([get(i) for i in range(len(drawn) - 2)], drawn[1:-1])


@pytest.mark.parametrize("type_", TYPES, ids=name_of)
def test_values_of_every_type_round_trip_through_a_part(type_: PhysicalType, tmp_path: Path) -> None:
    @settings(max_examples=3, deadline=None)
    @given(drawn=st.lists(st.none() | values(type_), min_size=1, max_size=20))
    def check(drawn: list[Any]) -> None:
        async def body() -> None:
            spec = spec_of(type_, P(kind="int32"))
            rows = [(v, i) for i, v in enumerate(drawn)]
            part, _ = await make_part(tmp_path, spec, rows)
            try:
                assert same(await all_rows(part, spec), rows)
                for position in (0, len(rows) - 1):
                    assert same(await now_or_later(part.row(position, spec)), rows[position])
                assert same(await now_or_later(part.rows(range(len(rows)), spec)), rows)
            finally:
                await delete_part(LocalBlob(str(tmp_path), offload=inline), part.ref.name)

        run(body)

    check()


# -- order, ids, begins ----------------------------------------------------------------------------


def test_a_part_is_sorted_by_primary_key_and_its_ids_follow(tmp_path: Path) -> None:
    async def body() -> None:
        rows: list[Row] = [(5, "e"), (1, "a"), (3, None), (2, "b")]
        part, _ = await make_part(tmp_path, SPEC, rows, ids=[50, 10, 30, 20], begins=[9, 7, 8, 7])
        assert [r[0] for r in await all_rows(part, SPEC)] == [1, 2, 3, 5]
        assert [part.row_id(i) for i in range(4)] == [10, 20, 30, 50]
        assert [part.begin(i) for i in range(4)] == [7, 7, 8, 9]
        assert [list(part.positions(RowId(i))) for i in (10, 30, 50, 11, 0)] == [[0], [2], [3], [], []]
        assert (part.ref.min_begin, part.ref.max_begin, part.ref.rows) == (7, 9, 4)
        table = await part.read_arrow([2])
        assert table.column_names == ["c2", "s_row_id", "s_begin"]
        assert table.column("s_begin").to_pylist() == [7, 7, 8, 9]

    run(body)


@settings(max_examples=60, deadline=None)
@given(ids=st.lists(st.integers(1, 12), min_size=1, max_size=15), shift=st.integers(0, 1 << 40))
def test_row_ids_are_found_whether_dense_sorted_or_neither(
    tmp_path_factory: pytest.TempPathFactory, ids: list[int], shift: int
) -> None:
    async def body() -> None:
        ids_ = [i + shift for i in ids]
        rows: list[Row] = [(i, None) for i in range(len(ids_))]
        part, _ = await make_part(tmp_path_factory.mktemp("part"), SPEC, rows, ids=ids_)
        for wanted in range(shift, shift + 14):
            assert sorted(part.positions(RowId(wanted))) == [i for i, x in enumerate(ids_) if x == wanted]
        assert [part.row_id(i) for i in range(len(ids_))] == ids_

    run(body)


def test_a_part_without_primary_key_is_in_row_id_order(tmp_path: Path) -> None:
    async def body() -> None:
        spec = spec_of(P(kind="text"))
        part, _ = await make_part(tmp_path, spec, [("c",), ("a",), ("b",)], ids=[3, 1, 2])
        assert await all_rows(part, spec) == [("a",), ("b",), ("c",)]

    run(body)


# -- sidecars against brute force ------------------------------------------------------------------

_KEYS = [
    (P(kind="int32"),),
    (P(kind="timestamptz"),),
    (P(kind="text"),),
    (P(kind="numeric"),),
    (P(kind="int64"), P(kind="text")),
    (P(kind="interval"), P(kind="bool")),
    (P(kind="list", element=P(kind="int16")),),
]


@pytest.mark.parametrize("long", [False, True], ids=["short", "piece by piece"])
@pytest.mark.parametrize("types", _KEYS, ids=lambda ts: "+".join(map(name_of, ts)))
def test_sidecars_answer_as_brute_force_does(
    types: tuple[PhysicalType, ...], long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if long:  # as keys of megabytes are, which are never copied
        monkeypatch.setattr(sidecar_module, "LONG_VALUE", 0)
        monkeypatch.setattr(sidecar_module, "LONG_KEY", 3)
        monkeypatch.setattr(keycodec, "PIECE", 2)
        monkeypatch.setattr(keycodec, "_CHUNK", 1)
        monkeypatch.setattr(keycodec, "_ELEMENTS", 1)
    codec = KeyCodec(types)
    count = [0]

    @settings(max_examples=40, deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        one = st.tuples(*(st.none() | values(t) for t in types))
        keys = data.draw(st.lists(one, min_size=1, max_size=12))
        keys += keys[:3]
        if data.draw(st.booleans()):
            keys.sort(key=codec.encode)
        arrays = [
            column_arrays([k[i] for k in keys], ShardColumn(attnum=1, type=t)) for i, t in enumerate(types)
        ]
        count[0] += 1
        path = tmp_path / str(count[0])
        dims = [a[1] if len(a) > 1 else None for a in arrays]
        with path.open("wb") as file:
            write_blocks(file, build_key_sidecar(codec, [a[0] for a in arrays], dims))
        sidecar = KeySidecar(str(path))
        pool = [*keys, data.draw(one)]
        for key in pool:
            if None not in key:
                wanted = [i for i, k in enumerate(keys) if compare_keys_nulls(types, k, key)]
                assert sidecar.lookup(key) == wanted
            assert b"".join(codec.pieces(key)) == codec.encode(key)
        width = data.draw(st.integers(0, len(types)))
        bounded = width < len(types)
        wanted_range = KeyRange(
            prefix=data.draw(st.sampled_from(pool))[:width],
            lower=data.draw(st.sampled_from(pool))[width] if bounded else None,
            upper=data.draw(st.sampled_from(pool))[width] if bounded else None,
            lower_inclusive=data.draw(st.booleans()),
            upper_inclusive=data.draw(st.booleans()),
            has_lower=bounded and data.draw(st.booleans()),
            has_upper=bounded and data.draw(st.booleans()),
        )
        inside = [i for i, k in enumerate(keys) if in_range(types, wanted_range, k)]
        inside.sort(key=lambda i: (codec.encode(keys[i]), i))
        got = list(sidecar.range(wanted_range))
        assert got == [(codec.encode(keys[i]), i) for i in inside]
        assert list(sidecar.range(wanted_range, reverse=True)) == got[::-1]

    check()


def compare_keys_nulls(types: tuple[PhysicalType, ...], a: Row, b: Row) -> bool:
    return compare_keys(types, a, b) == 0


def test_a_part_has_a_sidecar_per_index(tmp_path: Path) -> None:
    async def body() -> None:
        rows: list[Row] = [(i, f"v{i % 3}" if i % 4 else None) for i in range(20)]
        part, _ = await make_part(tmp_path, SPEC, rows)
        assert part.lookup(IndexId(1), (7,)) == [7]
        assert part.lookup(IndexId(2), ("v1",)) == [1, 7, 10, 13, 19]
        found = [p for _, p in part.range(IndexId(1), KeyRange(lower=17, has_lower=True))]
        assert found == [17, 18, 19]
        with pytest.raises(MissingFile):
            part.lookup(IndexId(3), (1,))

    run(body)


# -- schema changes --------------------------------------------------------------------------------


def test_rows_are_padded_to_the_readers_schema(tmp_path: Path) -> None:
    later = ShardSpec(
        shard=ShardId(7),
        version=2,
        columns=(
            ShardColumn(attnum=1, type=P(kind="int64")),
            ShardColumn(attnum=2, type=P(kind="text"), dropped=True),
            ShardColumn(attnum=3, type=P(kind="numeric"), missing_value=Decimal("1.50")),
        ),
    )

    async def body() -> None:
        part, _ = await make_part(tmp_path, SPEC, [(1, "a"), (2, "b")])
        assert same(await now_or_later(part.row(1, later)), (2, None, Decimal("1.50")))
        assert await now_or_later(part.row(1, SPEC)) == (2, "b")
        assert (await all_rows(part, later))[0][1] is None
        gathered = await now_or_later(part.rows([1, 0], later))
        assert same(gathered[0], (2, None, Decimal("1.50")))

    run(body)


def test_an_engine_reads_physical_columns(tmp_path: Path) -> None:
    async def body() -> None:
        spec = spec_of(P(kind="numeric"), P(kind="list", element=P(kind="int32")), P(kind="timestamptz"))
        part, _ = await make_part(
            tmp_path, spec, [(Decimal("1.50"), (1, 2), 5), (Decimal("NaN"), ((1,), (2,)), 2**63 - 1)]
        )
        table = pq.read_table(part.ref.path)
        assert table.column("c1").to_pylist() == [
            {"u": Decimal(150), "s": 2},
            {"u": Decimal(0), "s": -1},
        ]
        assert table.column("c2").to_pylist() == [[1, 2], [1, 2]]
        assert table.column("c2_dims").to_pylist() == [None, [2, 1]]
        assert table.schema.field("c3").type == pa.timestamp("us", tz="UTC")
        assert table.column_names[-2:] == ["s_row_id", "s_begin"]

    run(body)


# -- long rows -------------------------------------------------------------------------------------


def test_a_row_group_of_long_rows_has_few_of_them(tmp_path: Path) -> None:
    """What is decoded for one row, and what a scan makes at once, is bounded by bytes."""

    async def body() -> None:
        spec = spec_of(P(kind="int32"), P(kind="bytes"))
        length = GROUP_BYTES // 10
        rows: list[Row] = [(i, bytes([i]) * length) for i in range(21)]
        part, cache = await make_part(tmp_path, spec, rows, cache_bytes=1 << 30)
        file = pq.read_metadata(part.ref.path)
        assert [file.row_group(i).num_rows for i in range(file.num_row_groups)] == [8, 8, 5]
        for position in (0, 7, 8, 15, 16, 20):
            assert await now_or_later(part.row(position, spec)) == rows[position]
        cache.drop(part.ref.name)
        await now_or_later(part.row(9, spec))
        assert cache.bytes < GROUP_BYTES
        spread = [20, 0, 8, 7, 8, 16]
        assert await now_or_later(part.rows(spread, spec)) == [rows[i] for i in spread]
        sizes = []
        found: list[Row] = []
        async for first, some in part.scan(spec):
            assert first == len(found)
            sizes.append(len(some) * length)
            found += some
        assert found == rows
        assert max(sizes) <= SCAN_BYTES
        narrow = spec_of(P(kind="int32"))
        assert await all_rows(part, narrow) == [row[:1] for row in rows]

    run(body)


def test_a_scan_makes_few_wide_rows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn.persist.parts.part._CHUNK_CELLS", 12)

    async def body() -> None:
        spec = spec_of(P(kind="int32"), P(kind="int64"), P(kind="int64"))
        part, _ = await make_part(tmp_path, spec, [(i, -i, 2 * i) for i in range(21)])
        found = [some async for _, some in part.scan(spec)]
        assert [row for some in found for row in some] == [(i, -i, 2 * i) for i in range(21)]
        assert max(map(len, found)) == 4

    run(body)


# -- caching ---------------------------------------------------------------------------------------


def test_warm_rows_come_at_once_and_the_cache_stays_within_its_budget(tmp_path: Path) -> None:
    async def body() -> None:
        count = GROUP_ROWS * 3 + 10
        rows: list[Row] = [(i, None) for i in range(count)]
        part, cache = await make_part(tmp_path, SPEC, rows, cache_bytes=400_000)
        for position in (0, GROUP_ROWS - 1, GROUP_ROWS, count - 1):
            assert (await now_or_later(part.row(position, SPEC)))[0] == position
        assert part.row(count - 1, SPEC) == (count - 1, None)
        assert 0 < cache.bytes <= cache.budget_bytes
        spread = [count - 1, 3, GROUP_ROWS * 2 + 5, 3, GROUP_ROWS]
        assert [r[0] for r in await now_or_later(part.rows(spread, SPEC))] == spread
        many = list(range(GROUP_ROWS, GROUP_ROWS * 2, 7))
        assert [r[0] for r in await now_or_later(part.rows(many, SPEC))] == many
        assert len(await all_rows(part, SPEC)) == count
        part.close()
        assert cache.bytes == 0

    run(body)


def resident_of(name: str) -> int:
    """Bytes of mapped files with this end of their name that are in memory."""
    found, counts = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            counts = line.endswith(name)
        elif counts and line.startswith("Rss:"):
            found += int(line.split()[1]) << 10
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux to see what is mapped")
def test_pages_of_sidecars_go_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn.persist.parts.sidecar._SLICE_BYTES", 1 << 12)  # several, the last one shorter
    index = ShardIndex(index=IndexId(9), attnums=(1,), unique=True)
    spec = spec_of(P(kind="int64"), indexes=(index,))
    rows: list[Row] = [(i * 7 % 20_011,) for i in range(20_011)]

    async def go() -> None:
        part, _ = await make_part(tmp_path, spec, rows, sort=False)

        def ask() -> list[list[int]]:
            return [
                list(part.lookup(index.index, row)) + part.positions(RowId(i + 1))
                for i, row in enumerate(rows)
            ]

        answers = ask()
        name = sidecar_name("7/1-part", index.index)
        full = resident_of(name)
        assert full > 100_000
        slices = part.forget_pages()
        next(slices)
        assert resident_of(name) > 0
        assert part.lookup(index.index, rows[5]) == [5], "anybody may read in between"
        assert len(list(slices)) > 10
        assert resident_of(name) < full / 2, "but for what was read around that one key"
        assert ask() == answers

    run(go)


def test_concurrent_readers_decode_a_row_group_once(tmp_path: Path) -> None:
    async def body() -> None:
        part, cache = await make_part(tmp_path, SPEC, [(i, None) for i in range(100)])
        found = await asyncio.gather(*(now_or_later(part.row(i, SPEC)) for i in range(20)))
        assert [r[0] for r in found] == list(range(20))
        assert len(cache._groups) == 1
        assert not part._loading

    run(body)


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["parquet", "sys", "x1"])
def test_damaged_or_unknown_files_are_refused(tmp_path: Path, name: str) -> None:
    async def body() -> None:
        part, _ = await make_part(tmp_path, SPEC, [(i, "x") for i in range(5, 0, -1)], sort=False)
        blob = LocalBlob(str(tmp_path), offload=inline)
        blob_name = {
            "parquet": parquet_name(part.ref.name),
            "sys": system_name(part.ref.name),
            "x1": sidecar_name(part.ref.name, IndexId(1)),
        }[name]
        path = Path(blob.local_path(blob_name))
        data = path.read_bytes()
        damaged = [data[: len(data) // 2], b"", data[:-1] + b"X" if name == "parquet" else b"X" + data[1:]]
        if name != "parquet":
            damaged.append(data[:8] + b"\x63" + data[9:])  # another format
        for bad in damaged:
            path.unlink()
            path.write_bytes(bad)
            with pytest.raises((UnknownFormat, DamagedFile)):
                (await open_part(part.ref, blob, inline, RowGroupCache(0))).lookup(IndexId(1), (1,))

    run(body)


def test_a_part_with_lower_bounds_says_that_it_has_some(tmp_path: Path) -> None:
    """A server that knows none refuses it by its format; parts without any are as they were."""

    async def body() -> None:
        spec = spec_of(P(kind="list", element=P(kind="int32")))
        rows: dict[str, list[Row]] = {
            "1": [((1, 2),), (((1,), (2,)),), (None,), ((),)],
            "2": [((1, 2),), (None,), (bounded((1, 2), (0,)),), (bounded(((1,), (2,)), (1, -1)),)],
        }
        for name, values_ in rows.items():
            part, _ = await make_part(tmp_path / name, spec, values_)
            assert same(await all_rows(part, spec), values_)
            path = LocalBlob(str(tmp_path / name), offload=inline).local_path(parquet_name(part.ref.name))
            footer = pq.read_metadata(path).metadata
            assert footer is not None
            assert footer[b"holdfast.format"] == name.encode()
        assert pq.read_table(path).column("c1_dims").to_pylist() == [None, None, [0, 2, 0], [0, 2, 1, 1, -1]]

    run(body)


def test_a_part_of_another_length_than_its_reference_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        part, _ = await make_part(tmp_path, SPEC, [(1, "a")])
        other = dataclasses.replace(part.ref, rows=2)
        with pytest.raises(DamagedFile, match="1 rows"):
            await open_part(other, LocalBlob(str(tmp_path), offload=inline), inline, RowGroupCache(0))

    run(body)


def test_dictionaries_are_made_of_values_that_repeat_in_the_part(tmp_path: Path) -> None:
    types = P(kind="int32"), P(kind="text"), P(kind="numeric"), P(kind="list", element=P(kind="int64"))

    async def body() -> None:
        rows: list[Row] = [(i, f"text {i}", Decimal(i % 7), (i % 5, i % 3)) for i in range(GROUP_ROWS)]
        part, _ = await make_part(tmp_path, spec_of(*types), rows)
        group = pq.read_metadata(part.ref.path).row_group(0)
        columns = [group.column(i) for i in range(group.num_columns)]
        made = {c.path_in_schema for c in columns if c.has_dictionary_page}
        assert made == {"c3.u", "c3.s", "c4.list.element", "c4_dims.list.element", "s_begin"}
        assert await all_rows(part, spec_of(*types)) == rows

    run(body)


def test_columns_of_large_values_have_neither_bounds_nor_dictionaries(tmp_path: Path) -> None:
    """Arrow would keep copies of the least and the greatest value, and of each one that it counts."""

    async def body() -> None:
        types = P(kind="int32"), P(kind="text"), P(kind="bytes"), P(kind="list", element=P(kind="int64"))
        rows: list[Row] = [(i, "short", b"x" * (1 << 17), (i, 1)) for i in range(64)]
        part, _ = await make_part(tmp_path, spec_of(*types), rows)
        group = pq.read_metadata(part.ref.path).row_group(0)
        columns = [group.column(i) for i in range(group.num_columns)]
        assert {c.path_in_schema for c in columns if not c.is_stats_set} == {"c3"}
        assert not any(c.has_dictionary_page for c in columns if c.path_in_schema == "c3")
        assert await all_rows(part, spec_of(*types)) == rows

    run(body)


def test_a_scan_keeps_no_row_that_it_has_handed_on(tmp_path: Path) -> None:
    """Of rows larger than what a scan makes at once there is one at a time."""

    class Watched(tuple[Any, ...]):
        alive = 0

        def __init__(self, _values: object) -> None:
            Watched.alive += 1

        def __del__(self) -> None:
            Watched.alive -= 1

    async def body() -> None:
        spec = spec_of(P(kind="int32"), P(kind="bytes"))
        part, _ = await make_part(tmp_path, spec, [(i, bytes([i]) * (SCAN_BYTES + 1)) for i in range(5)])
        state = PartState(part, part.ref)
        most: list[int] = []
        original = snapshot.StoredRow

        def watched(row_id: RowId, values: Row, begin: Any) -> Any:
            most.append(Watched.alive)
            return original(row_id, Watched(values), begin)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(snapshot, "StoredRow", watched)
            async for rows in snapshot.scan_part(state, spec, 1 << 60):
                assert len(rows) == 1
                del rows
        assert most == [0] * 5

    run(body)


def test_long_lists_are_made_into_columns_some_elements_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    column = ShardColumn(attnum=1, type=P(kind="list", element=P(kind="numeric")))
    lists = [tuple(Decimal(n) / 4 for n in range(50)), None, (), (None, Decimal(1)), ((Decimal(1),), (None,))]
    whole = columns.column_arrays(lists, column)
    monkeypatch.setattr(columns, "AT_ONCE", 7)
    monkeypatch.setattr(columns, "SLOW_AT_ONCE", 7)
    monkeypatch.setattr(columns, "PARTS", 1)
    steps = columns.column_arrays_slowly(lists, column)
    turns, made = 0, None
    while made is None:
        try:
            next(steps)
            turns += 1
        except StopIteration as done:
            made = done.value
    assert made == whole
    assert turns >= 8


@pytest.mark.parametrize(
    "value",
    [
        tuple((n, None) for n in range(50)),
        tuple(((n, 1), (2, 3)) for n in range(50)),
        bounded(tuple((n, 1) for n in range(50)), (0, 3)),
        (tuple(range(50)), tuple(range(50))),
    ],
    ids=["two dimensions", "three", "with bounds", "wide"],
)
def test_long_lists_of_dimensions_are_made_into_columns_some_elements_at_a_time(
    monkeypatch: pytest.MonkeyPatch, value: tuple[Any, ...]
) -> None:
    column = ShardColumn(attnum=1, type=P(kind="list", element=P(kind="int32")))
    wholes = [columns.column_arrays(lists, column) for lists in ([value], [value, None, (1,)])]
    monkeypatch.setattr(columns, "AT_ONCE", 7)
    monkeypatch.setattr(columns, "LONG_LIST", 9)
    monkeypatch.setattr(columns, "PARTS", 1)
    for lists, whole in zip(([value], [value, None, (1,)]), wholes, strict=True):
        steps = columns.column_arrays_slowly(lists, column)
        turns = sum(1 for _ in steps)
        assert turns >= 6
        assert columns.column_arrays(lists, column) == whole
        assert to_python(whole[0], column.type, whole[1]) == lists
    with pytest.raises(ValueError, match="rectangular"):
        columns.column_arrays([((1, 2), (1,)) * 9], column)


def test_rows_with_long_lists_are_made_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of a million elements takes as long to be made as a million rows: by key, and several at once."""
    monkeypatch.setattr(part_module, "LONG_LIST", 20)
    monkeypatch.setattr(columns, "LONG_LIST", 20)
    monkeypatch.setattr(huge_values, "LONG_LIST", 20)
    monkeypatch.setattr(part_module, "LISTS_BYTES", 1)
    minded: list[Any] = []
    monkeypatch.setattr(huge_values, "mind", minded.append)
    in_thread, made_there = [False], []
    true_rows = part_module.table_rows

    async def offload(work: Callable[[], T]) -> T:
        in_thread[0] = True
        try:
            return work()
        finally:
            in_thread[0] = False

    def table_rows(table: Any, plan: Any) -> Any:
        made_there.append(in_thread[0])
        return true_rows(table, plan)

    monkeypatch.setattr(part_module, "table_rows", table_rows)
    spec = spec_of(P(kind="int64"), P(kind="list", element=P(kind="int32")))
    rows = [(n, tuple(range(n))) for n in range(40)]

    async def body() -> None:
        made, cache = await make_part(tmp_path, spec, rows)
        opened = await open_part(made.ref, LocalBlob(str(tmp_path), offload=offload), offload, cache)
        for n in (3, 39, 3, 39):
            assert await now_or_later(opened.row(n, spec)) == rows[n]
        assert isinstance(opened.row(3, spec), tuple), "a short one takes a microsecond"
        assert await now_or_later(opened.rows([39, 3, 25], spec)) == [rows[39], rows[3], rows[25]]
        assert made_there
        assert all(made_there)
        assert minded == [rows[39][1], rows[39][1], rows[39][1], rows[25][1]]
        assert await all_rows(opened, spec) == rows

    run(body)


def test_huge_values_are_compressed_where_that_saves_much(tmp_path: Path) -> None:
    """Pages of a value that does not shrink would be beside it while it is written, and while it is read."""
    spec = spec_of(*(PhysicalType(kind=kind) for kind in ("bytes", "bytes", "text", "bytes", "int64")))
    noise = random.Random(1).randbytes(5 << 20)
    letters = base64.b64encode(random.Random(2).randbytes(4 << 20)).decode()
    short = random.Random(3).randbytes(1 << 20)
    rows: list[Row] = [(noise, bytes(5 << 20), letters, short, n) for n in range(2)] + [(None,) * 5]

    async def body() -> None:
        part, _ = await make_part(tmp_path, spec, rows)
        assert await all_rows(part, spec) == rows
        metadata = pq.read_metadata(part.ref.path)
        found = {
            (column.path_in_schema, column.compression)
            for group in range(metadata.num_row_groups)
            for column in (metadata.row_group(group).column(i) for i in range(metadata.num_columns))
        }
        assert {path for path, how in found if how == "UNCOMPRESSED"} == {"c1", "c3"}
        assert {path for path, how in found if how == "ZSTD"} == {"c2", "c4", "c5", "s_row_id", "s_begin"}

    run(body)


def test_many_cells_become_rows_in_a_thread_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_module, "GATHERED", 100)
    monkeypatch.setattr(columns, "CELLS_AT_ONCE", 20)
    asked: list[int] = []
    sizes: list[int] = []

    async def offload(work: Any) -> Any:
        asked.append(1)
        return work()

    def noted(rest: Any, some: int) -> Any:
        sizes.append(some)
        return islice(rest, some)

    async def body() -> None:
        wide = spec_of(*[P(kind="int32")] * 10)
        rows = [tuple(range(n, n + 10)) for n in range(200)]
        part, _ = await make_part(tmp_path, wide, rows)
        part._offload = offload
        await now_or_later(part.rows([0], wide))  # its row group is there from now on
        asked.clear()
        monkeypatch.setattr(columns, "islice", noted)
        spread = list(range(0, 200, 2))
        assert isinstance(part.rows(spread[:10], wide), list)
        found = part.rows(spread, wide)
        assert not isinstance(found, list)
        assert await found == [rows[n] for n in spread]
        assert asked == [1]
        assert set(sizes) == {2}

    run(body)
