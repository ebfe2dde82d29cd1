"""Next-key locking: D52-D57 by name, then against brute force: what was read stays so until its reader ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import (
    BY_K,
    BY_V,
    SHARD,
    at_once,
    make_table,
    must_wait,
    now,
    open_memory_store,
    settle,
    tiny_limits,
)
from txn.base.errors import Deadlock, DuplicateKey, WriteConflict
from txn.base.types import IndexId, KeyRange, RowId
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions
from txn.transaction.next_key import MAX_RANGE_KEYS

Body = Callable[[ShardStore], Coroutine[Any, Any, None]]
KEYS = (1, 2, 5, 10, 20)


def with_keys(*keys: int, flushed: bool = False) -> Callable[[Body], Callable[[], None]]:
    """Run the body over rows (k, k, 'x'), in memory or all in a part."""

    def decorate(body: Body) -> Callable[[], None]:
        def test() -> None:
            async def go() -> None:
                store = await open_memory_store()
                await make_table(store, [(k, k, "x") for k in keys])
                if flushed:
                    await store.flush()
                await body(store)
                store.validate()
                for txn in list(store.core.active.values()):
                    txn.rollback()
                store.validate()
                assert len(store.core.locks) == 0
                assert not store.core.locks.ranges
                await store.close()

            run(go)

        test.__name__ = body.__name__
        test.__doc__ = body.__doc__
        return test

    return decorate


async def writer(store: ShardStore, **how: Any) -> Any:
    txn = store.begin(**how)
    await now(txn.begin_write([SHARD]))
    return txn


def between(low: int, high: int, *, exclusive: bool = False) -> KeyRange:
    return KeyRange(
        has_lower=True,
        lower=low,
        lower_inclusive=not exclusive,
        has_upper=True,
        upper=high,
        upper_inclusive=not exclusive,
    )


def keys(rows: Any) -> list[int]:
    return [row.values[0] for row in rows]


def new(k: int) -> list[tuple[int, int, str]]:
    return [(k, k, "new")]


async def blocked(store: ShardStore, k: int) -> bool:
    """Tell whether a newcomer's insert of ``k`` has to wait."""
    txn = await writer(store)
    result = txn.insert(SHARD, new(k))
    if isinstance(result, list):
        txn.rollback()
        return False
    waits = asyncio.ensure_future(now(result))
    await settle()
    assert not waits.done()
    txn.rollback()
    await asyncio.wait([waits])
    assert waits.exception() is not None
    return True


BOTH = pytest.mark.parametrize("flushed", [False, True], ids=["hot", "cold"])
INDEXES = pytest.mark.parametrize("index", [BY_K, BY_V], ids=["unique", "not-unique"])


@BOTH
@INDEXES
def test_a_range_is_locked_up_to_the_first_key_beyond(index: IndexId, flushed: bool) -> None:
    @with_keys(1, 3, 5, 9, flushed=flushed)
    async def body(store: ShardStore) -> None:
        """D53: scan(2, 4) over 1, 3, 5 covers (1, 5]; beside it everything goes on."""
        reader = await writer(store)
        assert keys(await now(reader.range(SHARD, index, between(2, 4, exclusive=True)))) == [3]
        assert [k for k in (0, 2, 4, 6, 10) if await blocked(store, k)] == [2, 4]

    body()


@BOTH
def test_past_the_last_key_comes_the_end_of_the_index(flushed: bool) -> None:
    @with_keys(*KEYS, flushed=flushed)
    async def body(store: ShardStore) -> None:
        reader = await writer(store)
        assert keys(await now(reader.range(SHARD, BY_K, KeyRange(has_lower=True, lower=15)))) == [20]
        assert [k for k in (9, 11, 16, 21, 1000) if await blocked(store, k)] == [11, 16, 21, 1000]

    body()


@BOTH
def test_an_empty_range_is_locked(flushed: bool) -> None:
    @with_keys(*KEYS, flushed=flushed)
    async def body(store: ShardStore) -> None:
        reader = await writer(store)
        assert await now(reader.range(SHARD, BY_K, between(6, 8))) == []
        assert [k for k in (4, 6, 7, 9, 11) if await blocked(store, k)] == [6, 7, 9]

    body()


@BOTH
@pytest.mark.parametrize(
    ("reverse", "found", "waits"),
    [(False, [1, 2], [0]), (True, [20, 10], [6, 15, 25])],
    ids=["forward", "reverse"],
)
def test_a_limit_locks_what_was_traversed(
    flushed: bool, reverse: bool, found: list[int], waits: list[int]
) -> None:
    @with_keys(*KEYS, flushed=flushed)
    async def body(store: ShardStore) -> None:
        reader = await writer(store)
        rows = await now(reader.range(SHARD, BY_K, KeyRange(), reverse=reverse, limit=2))
        assert keys(rows) == found
        assert [k for k in (0, 3, 6, 15, 25) if await blocked(store, k)] == waits

    body()


@with_keys(*KEYS)
async def test_only_the_index_used_is_locked(store: ShardStore) -> None:
    reader = await writer(store)
    await now(reader.range(SHARD, BY_V, between(2, 10)))
    other = await writer(store)
    at_once(other.insert(SHARD, [(7, 100, "beside")]))
    assert {lock.granule[1] for lock in store.lock_rows() if isinstance(lock.granule, tuple) and len(lock.granule) == 4} == {BY_V}  # fmt: skip


@with_keys(*KEYS)
async def test_an_equality_read_does_not_hinder_inserts_beside_it(store: ShardStore) -> None:
    reader = await writer(store)
    await now(reader.lookup(SHARD, BY_K, [(7,)]))
    assert [k for k in (6, 7, 8) if await blocked(store, k)] == [7]


@with_keys(*KEYS)
async def test_an_absent_key_read_by_equality_does_not_split_a_locked_range(store: ShardStore) -> None:
    reader, other = await writer(store), await writer(store)
    await now(reader.range(SHARD, BY_K, between(5, 10)))
    await now(other.lookup(SHARD, BY_K, [(7,)], for_update=True))
    insert = must_wait(other.insert(SHARD, new(6)))
    await settle()
    assert not insert.done(), "6 lies in what the reader has locked, whoever has locked 7"
    reader.rollback()
    await insert


@with_keys(*KEYS)
async def test_inserts_side_by_side_do_not_meet(store: ShardStore) -> None:
    """Also while somebody has locked another range of the index."""
    reader = await writer(store)
    await now(reader.range(SHARD, BY_K, between(1, 2)))
    a, b = await writer(store), await writer(store)
    at_once(a.insert(SHARD, new(8)))
    at_once(b.insert(SHARD, new(7)))
    at_once(a.insert(SHARD, new(6)))


@with_keys(*KEYS)
async def test_without_range_locks_an_insert_takes_its_keys_and_nothing_else(store: ShardStore) -> None:
    """U3: an empty dict is all that is looked at."""
    txn = await writer(store)
    at_once(txn.insert(SHARD, new(7)))
    assert not store.core.locks.ranges
    assert sorted(map(str, txn.owner.held)) == sorted(map(str, [SHARD, (SHARD, BY_K, 7), (SHARD, BY_V, 7)]))


@with_keys(*KEYS)
async def test_a_reader_waits_for_an_insert_under_way(store: ShardStore) -> None:
    """Nobody sees the new key yet, but it is locked; after the wait the reader looks again (L24)."""
    inserter, reader = await writer(store), await writer(store)
    at_once(inserter.insert(SHARD, new(7)))
    reading = must_wait(reader.range(SHARD, BY_K, between(5, 10)))
    await settle()
    assert not reading.done()
    at_once(inserter.insert(SHARD, new(8)))
    await now(inserter.commit())
    assert keys(await reading) == [5, 7, 8, 10]
    assert await blocked(store, 6)


@with_keys(*KEYS)
async def test_a_reader_does_not_wait_for_keys_within_what_it_has_locked(store: ShardStore) -> None:
    reader, inserter = await writer(store), await writer(store)
    await now(reader.range(SHARD, BY_K, between(5, 10)))
    insert = must_wait(inserter.insert(SHARD, new(7)))
    await settle()
    assert keys(at_once(reader.range(SHARD, BY_K, between(5, 10)))) == [5, 10], "no deadlock with who waits"
    reader.rollback()
    await insert


@with_keys(*KEYS)
async def test_an_insert_given_up_in_the_turn_that_lets_it_in_keeps_nothing_of_the_gap(
    store: ShardStore,
) -> None:
    """The gap was granted and its wait cancelled at once; the transaction may go on behind a savepoint."""
    reader, inserter = await writer(store), await writer(store)
    await now(reader.range(SHARD, BY_K, between(5, 10)))
    before = dict(inserter.owner.held)
    insert = must_wait(inserter.insert(SHARD, new(7)))
    await settle()
    reader.rollback()
    insert.cancel()
    await asyncio.wait([insert])
    assert insert.cancelled()
    assert inserter.owner.held == before


# -- D55's scenarios: 1, 2, 5, 10, 20 ---------------------------------------------------------------


@INDEXES
def test_subtle_scenario_1_own_insert_into_own_range(index: IndexId) -> None:
    @with_keys(*KEYS)
    async def body(store: ShardStore) -> None:
        t1 = await writer(store)
        assert keys(await now(t1.range(SHARD, index, between(2, 10)))) == [2, 5, 10]
        at_once(t1.insert(SHARD, new(8)))
        assert await blocked(store, 7)
        t1.next_statement()
        assert keys(await now(t1.range(SHARD, index, between(2, 10)))) == [2, 5, 8, 10]

    body()


@INDEXES
def test_subtle_scenario_2_own_key_inserted_before_the_range_is_read(index: IndexId) -> None:
    @with_keys(1, 2, 5, 20)
    async def body(store: ShardStore) -> None:
        t1 = await writer(store)
        at_once(t1.insert(SHARD, new(10)))
        t1.next_statement()
        assert keys(await now(t1.range(SHARD, index, between(2, 10)))) == [2, 5, 10]
        at_once(t1.insert(SHARD, new(8)))
        assert [k for k in (3, 7, 9) if await blocked(store, k)] == [3, 7, 9]

    body()


@INDEXES
def test_subtle_scenario_3_a_chain_of_own_inserts(index: IndexId) -> None:
    @with_keys(*KEYS)
    async def body(store: ShardStore) -> None:
        t1 = await writer(store)
        await now(t1.range(SHARD, index, between(2, 10)))
        at_once(t1.insert(SHARD, new(8)))
        at_once(t1.insert(SHARD, new(7)))
        assert [k for k in (3, 6, 9, 30) if await blocked(store, k)] == [3, 6, 9]

    body()


# -- uniqueness (D51), deletes (D54, D61, D62) -----------------------------------------------------


@with_keys()
async def test_a_key_whose_holder_moved_away_is_free(store: ShardStore) -> None:
    """D51: [john, 100]; john gets 200; [bill, 100] must succeed although the entry 100 is still there."""
    t1 = await writer(store)
    (john,) = at_once(t1.insert(SHARD, [(100, 1, "john")]))
    await now(t1.commit())
    reader = store.begin(read_only=True)  # keeps the old version and its entry
    t2 = await writer(store)
    assert at_once(t2.update(SHARD, [(john, (200, 1, "john"))])) == [True]
    await now(t2.commit())
    t3 = await writer(store)
    at_once(t3.insert(SHARD, [(100, 2, "bill")]))
    await now(t3.commit())
    reader.rollback()


@with_keys(100)
async def test_a_key_that_a_row_has_is_a_duplicate(store: ShardStore) -> None:
    """D51's other scenario."""
    t1 = await writer(store)
    with pytest.raises(DuplicateKey):
        await now(t1.insert(SHARD, new(100)))


@with_keys(*KEYS)
async def test_nulls_are_met_by_ranges_that_hold_them(store: ShardStore) -> None:
    """D59: a NULL key is a key like others to who reads the whole index."""
    reader, inserter = await writer(store), await writer(store)
    await now(reader.range(SHARD, BY_V, KeyRange()))
    insert = must_wait(inserter.insert(SHARD, [(50, None, "x")]))
    await settle()
    assert not insert.done()
    reader.rollback()
    await insert
    await now(inserter.commit())


@pytest.mark.parametrize("remove", ["vacuum", "merge"])
def test_the_range_of_a_vanished_entry_stays_locked(remove: str) -> None:
    """D62: the boundary is the lock's when the entry goes, in memory or in parts."""

    @with_keys(*KEYS, flushed=remove == "merge")
    async def body(store: ShardStore) -> None:
        gone = await writer(store)
        rows = await now(gone.lookup(SHARD, BY_K, [(1,), (5,)], for_update=True))
        assert at_once(gone.delete(SHARD, [row.row_id for row in rows])) == [True, True]
        await now(gone.commit())
        reader = await writer(store)
        assert keys(await now(reader.range(SHARD, BY_K, between(3, 4)))) == []
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        store.core.vacuum()
        await store.flush()
        await store.flush()
        assert 5 not in generation.indexes[BY_K].entries
        assert all(part.file.key_ceiling(BY_K, (5,)) != (5,) for part in generation.parts)
        assert [k for k in (3, 4, 5, 6, 1000) if await blocked(store, k)] == [3, 4, 5]

    body()


@with_keys(*KEYS)
async def test_a_reader_waits_for_a_delete_and_a_delete_for_a_reader(store: ShardStore) -> None:
    deleter, reader, third = [await writer(store) for _ in range(3)]
    at_once(deleter.delete(SHARD, [RowId(3)]))
    reading = must_wait(reader.range(SHARD, BY_K, between(2, 10)))
    await settle()
    assert not reading.done()
    await now(deleter.commit())
    assert keys(await reading) == [2, 10]
    deleting = must_wait(third.delete(SHARD, [RowId(4)]))
    await settle()
    assert not deleting.done()
    reader.rollback()
    assert await deleting == [True]


@with_keys(*KEYS)
async def test_a_row_that_moves_into_a_range_waits(store: ShardStore) -> None:
    reader, mover = await writer(store), await writer(store)
    await now(reader.range(SHARD, BY_V, between(5, 10)))
    moving = must_wait(mover.update(SHARD, [(RowId(1), (1, 7, "moved"))]))
    await settle()
    assert not moving.done()
    reader.rollback()
    assert await moving == [True]


@pytest.mark.parametrize("ranged", [False, True], ids=["no-ranges-before", "another-range-before"])
def test_an_insert_that_waited_for_its_key_looks_at_the_range_again(ranged: bool) -> None:
    @with_keys(*KEYS)
    async def body(store: ShardStore) -> None:
        """While it waits behind an equality reader of its key, a range reader may come and lock the range."""
        equal, inserter, ranger = [await writer(store) for _ in range(3)]
        if ranged:
            await now((await writer(store)).range(SHARD, BY_V, between(1, 2)))
        await now(equal.lookup(SHARD, BY_V, [(7,)]))
        insert = must_wait(inserter.insert(SHARD, [(7, 7, "new")]))
        await settle()
        assert at_once(ranger.range(SHARD, BY_V, between(6, 8))) == []
        equal.rollback()
        await settle()
        assert not insert.done()
        ranger.rollback()
        await insert

    body()


@with_keys(*KEYS)
async def test_a_failed_wait_does_not_leave_a_range_half_read(store: ShardStore) -> None:
    """A reader that gave up waiting for an insert must wait for it again, though it has the range's lock."""
    inserter, reader = await writer(store), await writer(store, session=5)
    at_once(inserter.insert(SHARD, new(7)))
    for _ in range(2):
        reading = must_wait(reader.range(SHARD, BY_K, between(5, 10)))
        await settle()
        store.cancel_waits(5)
        await asyncio.wait([reading])
        assert reading.exception() is not None
    reading = must_wait(reader.range(SHARD, BY_K, between(5, 10)))
    await settle()
    await now(inserter.commit())
    assert keys(await reading) == [5, 7, 10]


@with_keys(*KEYS)
async def test_promotion_locks_the_ranges_that_were_read(store: ShardStore) -> None:
    reader = store.begin()
    assert keys(await now(reader.range(SHARD, BY_K, between(5, 10)))) == [5, 10]
    assert keys(await now(reader.range(SHARD, BY_K, KeyRange(), limit=1))) == [1]
    assert not await blocked(store, 7)
    await now(reader.begin_write([SHARD]))
    assert [k for k in (0, 3, 7, 11) if await blocked(store, k)] == [0, 3, 7, 11]
    assert not await blocked(store, 25)


@pytest.mark.parametrize("k", [0, 7, 25])
def test_promotion_after_a_phantom_is_refused(k: int) -> None:
    @with_keys(*KEYS)
    async def body(store: ShardStore) -> None:
        reader = store.begin()
        await now(reader.range(SHARD, BY_K, between(5, 10)))
        await now(reader.range(SHARD, BY_K, KeyRange(), limit=1))
        other = await writer(store, session=3)
        at_once(other.insert(SHARD, new(k)))
        await now(other.commit())
        if k == 25:
            await now(reader.begin_write([SHARD]))
        else:
            with pytest.raises(WriteConflict) as caught:
                await now(reader.begin_write([SHARD]))
            assert (caught.value.index, caught.value.other_session) == (BY_K, 3)

    body()


@with_keys(*range(MAX_RANGE_KEYS + 5))
async def test_a_long_range_locks_the_table_instead(store: ShardStore) -> None:
    reader = await writer(store)
    other = await writer(store)
    rows = must_wait(reader.range(SHARD, BY_K, KeyRange(has_lower=True, lower=0)))
    await settle()
    other.rollback()
    assert len(await rows) == MAX_RANGE_KEYS + 5
    assert len(reader.owner.held) == 1


# -- brute force -----------------------------------------------------------------------------------


async def visible(store: ShardStore, wanted: Any, own: dict[int, Any]) -> list[tuple[int, int]]:
    """Return what a read of the latest committed state gives, overlaid with own rows (row id -> values)."""
    txn = store.begin(read_only=True)
    rows = {r.row_id: r.values async for chunk in txn.scan(SHARD) for r in chunk}
    txn.rollback()
    rows.update(own)
    return sorted((v[0], v[1]) for v in rows.values() if v is not None and wanted(v))


async def client(store: ShardStore, rng: random.Random, counts: dict[str, int]) -> None:
    for _ in range(5):
        txn = await writer(store)
        own: dict[int, Any] = {}
        read: list[tuple[Any, str]] = []
        try:
            for _ in range(rng.randrange(1, 6)):
                for _ in range(rng.choice((0, 0, 1, 3))):
                    await asyncio.sleep(0)
                txn.next_statement()
                k, v = rng.randrange(24), rng.choice((None, *range(8)))
                match rng.randrange(5):
                    case 0 | 1:
                        column = rng.randrange(2)
                        low = rng.randrange(20 if column == 0 else 6)
                        high = low + rng.randrange(4)

                        def wanted(row: Any, c: int = column, a: int = low, b: int = high) -> bool:
                            return row[c] is not None and a <= row[c] <= b

                        index = (BY_K, BY_V)[column]
                        rows = await now(txn.range(SHARD, index, between(low, high), reverse=k % 2 == 0))
                        got = sorted((r.values[0], r.values[1]) for r in rows)
                        assert got == await visible(store, wanted, own), "what is read is current"
                        read.append((wanted, f"{index} {low}..{high}"))
                        counts["read"] += 1
                    case 2:
                        (row_id,) = await now(txn.insert(SHARD, [(k, v, "n")]))
                        own[row_id] = (k, v, "n")
                    case _:
                        found = await now(txn.lookup(SHARD, BY_K, [(k,)], for_update=True))
                        if found and rng.random() < 0.5:
                            await now(txn.delete(SHARD, [found[0].row_id]))
                            own[found[0].row_id] = None
                        elif found:
                            await now(txn.update(SHARD, [(found[0].row_id, (k, v, "u"))]))
                            own[found[0].row_id] = (k, v, "u")
            for _ in range(rng.choice((0, 1, 5))):
                await asyncio.sleep(0)
            # Everything read is still so, own changes aside: a serial execution here would read the same.
            for wanted, name in read:
                kept = await visible(store, wanted, own)
                index_id, _, bounds = name.partition(" ")
                low_, high_ = map(int, bounds.split(".."))
                txn.next_statement()
                rows = await now(txn.range(SHARD, IndexId(int(index_id)), between(low_, high_)))
                assert sorted((r.values[0], r.values[1]) for r in rows) == kept, name
                counts["again"] += 1
            await now(txn.commit())
            counts["commit"] += 1
        except (Deadlock, DuplicateKey) as error:
            txn.rollback()
            counts[type(error).__name__] = counts.get(type(error).__name__, 0) + 1


@pytest.mark.parametrize("seed", range(15))
def test_no_phantoms_against_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    counts = {"read": 0, "again": 0, "commit": 0}

    async def upkeep(store: ShardStore, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await asyncio.sleep(0)
            match rng.randrange(3):
                case 0:
                    await store.flush()
                case 1:
                    store.core.vacuum()
                case _:
                    store.validate()

    async def go() -> None:
        with tiny_limits():
            store = await open_memory_store(options=TxnOptions(table_locks=8 if seed % 4 == 0 else 5000))
            await make_table(store, [(k, k % 7, "i") for k in range(0, 24, 3)])
            stop = asyncio.Event()
            care = asyncio.ensure_future(upkeep(store, stop))
            await asyncio.gather(*(client(store, rng, counts) for _ in range(6)))
            stop.set()
            await care
            store.validate()
            assert len(store.core.locks) == 0
            await store.close()

    run(go)
    assert counts["commit"] >= 5, counts
    assert counts["again"] >= 5, counts


@with_keys(1, 2)
async def test_an_insert_under_way_beyond_a_range_does_not_split_its_lock(store: ShardStore) -> None:
    """Its key becomes a boundary when it commits; what lies before it stays locked."""
    inserter = await writer(store)
    await now(inserter.insert(SHARD, [(34, 34, "x")]))
    reader = await writer(store)
    assert at_once(reader.range(SHARD, BY_K, between(18, 24))) == []
    await now(inserter.commit())
    other = await writer(store)
    waits = must_wait(other.insert(SHARD, [(22, 22, "x")]))
    await settle()
    assert not waits.done()
    await now(reader.commit())
    await waits
    await now(other.commit())


@with_keys(1, 2)
async def test_an_insert_under_way_beyond_a_limit_does_not_split_its_lock(store: ShardStore) -> None:
    """The same where the range ends at an own row, which is no boundary."""
    inserter = await writer(store)
    await now(inserter.insert(SHARD, [(34, 34, "x")]))
    reader = await writer(store)
    await now(reader.insert(SHARD, [(20, 20, "own")]))
    reader.next_statement()
    assert [r.values[0] for r in at_once(reader.range(SHARD, BY_K, between(18, 40), limit=1))] == [20]
    await now(inserter.commit())
    other = await writer(store)
    waits = must_wait(other.insert(SHARD, [(19, 19, "x")]))
    await settle()
    assert not waits.done()
    await now(reader.commit())
    await waits
    await now(other.commit())


@with_keys(1, 2)
async def test_a_boundary_that_never_came_to_be_does_not_split_a_lock(store: ShardStore) -> None:
    """A reader took a locked key for one, and holds its range: its own insert still meets who held all of it before."""
    reader = await writer(store)
    assert at_once(reader.range(SHARD, BY_K, between(18, 24))) == []
    locker = await writer(store)
    assert at_once(locker.lookup(SHARD, BY_K, [(34,)], for_update=True)) == []
    other = await writer(store)
    assert at_once(other.range(SHARD, BY_K, between(26, 30))) == []
    locker.rollback()
    waits = must_wait(other.insert(SHARD, [(22, 22, "x")]))
    await settle()
    assert not waits.done()
    await now(reader.commit())
    await waits
    await now(other.commit())
