"""Indexes of intervals: nodes against brute force, and as a sorted index of a store."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, INT, SHARD, StepClock, now, open_memory_store, tear_away, tiny_limits
from txn.base.errors import LockNotAvailable
from txn.base.types import IndexId, KeyRange, PhysicalType, ShardColumn, ShardIndex, ShardSpec
from txn.persist.memory import MemoryDisk
from txn.values.intervals import EMPTY, PLACE_BYTES, node, nodes_of

BY_R = IndexId(30)
TOP = 256**PLACE_BYTES - 1
FIXED = 2 << 72  # places of elements begin with 2, values with 1


def place(number: int) -> bytes:
    return number.to_bytes(PLACE_BYTES, "big")


def interval(lower: int, upper: int) -> bytes:
    return b"\x01" + place(lower) + place(upper)


def overlapping(low: int, high: int) -> tuple[list[bytes], KeyRange]:
    """What to ask for, as the executor does."""
    a, b = place(low), place(high)
    around = [n for n in nodes_of(a) if n < a] + [n for n in nodes_of(b) if n > b]
    return around, KeyRange(lower=a, upper=b, has_lower=True, has_upper=True)


@pytest.mark.parametrize("spread", [8, 40, 1 << 20, TOP])
def test_an_interval_stands_on_the_way_to_each_place_in_it(spread: int) -> None:
    rng = random.Random(spread)
    for _ in range(400):
        lower, upper = sorted((rng.randrange(spread + 1), rng.randrange(spread + 1)))
        key = node(interval(lower, upper))
        assert place(lower) <= key <= place(upper)
        for at in (lower, upper, rng.randint(lower, upper)):
            assert key in nodes_of(place(at))
        low, high = sorted((rng.randrange(spread + 1), rng.randrange(spread + 1)))
        around, between = overlapping(low, high)
        found = key in around or between.lower <= key <= between.upper
        if lower <= high and low <= upper:
            assert found
        assert not (key in around and between.lower <= key <= between.upper), "no row comes twice"


def test_the_ends_of_all_places() -> None:
    assert node(interval(0, TOP)) == place(1 << (8 * PLACE_BYTES - 1))
    assert node(interval(TOP, TOP)) == place(TOP)
    assert place(TOP) in nodes_of(place(TOP))
    assert node(interval(0, 0)) == place(0)
    assert place(0) in nodes_of(place(0))
    assert node(b"\x00") == EMPTY
    assert len(nodes_of(place(TOP))) <= 161
    with pytest.raises(ValueError, match="22 bytes"):
        node(b"\x01" + bytes(21))


def spec() -> ShardSpec:
    """k int8 primary key, r an interval."""
    return ShardSpec(
        shard=SHARD,
        version=1,
        columns=(ShardColumn(attnum=1, type=INT), ShardColumn(attnum=2, type=PhysicalType(kind="bytes"))),
        indexes=(
            ShardIndex(index=BY_K, attnums=(1,), unique=True, primary=True),
            ShardIndex(index=BY_R, attnums=(2,), unique=False, kind="intervals"),
        ),
    )


async def find(txn: Any, low: int, high: int) -> list[int]:
    around, between = overlapping(low, high)
    rows = [
        *await now(txn.lookup(SHARD, BY_R, [(n,) for n in around])),
        *await now(txn.range(SHARD, BY_R, between)),
    ]
    return sorted(r.values[0] for r in rows if _meets(r.values[1], low, high))


def _meets(value: bytes, low: int, high: int) -> bool:
    return value[1 : 1 + PLACE_BYTES] <= place(high) and place(low) <= value[1 + PLACE_BYTES :]


@pytest.mark.parametrize("seed", range(3))
def test_overlaps_are_found_in_memory_and_in_parts(seed: int) -> None:
    rng = random.Random(seed)

    async def go() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, clock=clock)
        txn = store.begin()
        await now(txn.begin_write([]))
        txn.create_shard(spec())
        await now(txn.commit())
        rows: dict[int, tuple[int, bytes | None]] = {}
        ids: dict[int, Any] = {}
        for step in range(40):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            lower = rng.randrange(200)
            value = None if rng.random() < 0.1 else interval(lower, lower + rng.choice((0, 2, 30)))
            k = rng.randrange(25)
            if k not in rows:
                (ids[k],) = await now(txn.insert(SHARD, [(k, value)]))
            else:
                await now(txn.update(SHARD, [(ids[k], (k, value))]))
            rows[k] = (k, value)
            txn.next_statement()
            low = rng.randrange(220)
            wanted = sorted(k for k, v in rows.values() if v is not None and _meets(v, low, low + 10))
            assert await find(txn, low, low + 10) == wanted, "own rows"
            await now(txn.commit())
            if step % 7 == 3:
                await store.flush()
            if step % 13 == 9:
                await tear_away(store, disk)
                store = await open_memory_store(disk, clock=clock)
            store.validate()
            reader = store.begin(read_only=True)
            assert await find(reader, low, low + 10) == wanted
            _around, between = overlapping(low, low + 10)
            inside = [
                v for _k, v in rows.values() if v is not None and between.lower <= node(v) <= between.upper
            ]
            assert reader.count_range(SHARD, BY_R, between, 1000) >= len(inside)
            reader.rollback()
        await store.close()

    with tiny_limits():
        run(go)


@pytest.mark.parametrize("cold", [False, True])
def test_nobody_adds_what_would_overlap_with_what_was_looked_for(cold: bool) -> None:
    async def go() -> None:
        store = await open_memory_store(MemoryDisk())
        txn = store.begin()
        await now(txn.begin_write([]))
        txn.create_shard(spec())
        await now(
            txn.insert(
                SHARD,
                [
                    (0, interval(FIXED + 1, FIXED + 2)),
                    (1, interval(FIXED + 500, FIXED + 510)),
                    (2, interval(FIXED + 900, FIXED + 910)),
                ],
            )
        )
        await now(txn.commit())
        if cold:
            await store.flush()
            store.core.vacuum()
        reader = store.begin()
        await now(reader.begin_write([SHARD]))
        assert await find(reader, FIXED + 100, FIXED + 120) == []
        for lower, upper in ((110, 110), (90, 100), (120, 4000), (0, 600), (105, 130)):
            writer = store.begin(lock_timeout_ms=-1)
            await now(writer.begin_write([SHARD]))
            with pytest.raises(LockNotAvailable):
                await now(writer.insert(SHARD, [(3, interval(FIXED + lower, FIXED + upper))]))
            writer.rollback()
        writer = store.begin(lock_timeout_ms=-1)
        await now(writer.begin_write([SHARD]))
        await now(writer.insert(SHARD, [(3, interval(FIXED + 901, FIXED + 905))]))
        await now(writer.commit())
        reader.rollback()
        await store.close()

    run(go)
