"""A single new row, inserted without steps (``txn.transaction.one_row``), meets whatever the steps meet.

Everything here is done to a row that lies in memory and to one that lies in a part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
    spec,
)
from txn.base.errors import Deadlock, DuplicateKey, LockNotAvailable
from txn.base.types import KeyRange, StoredRow
from txn.store import ShardStore
from txn.transaction.transaction import StoreTransaction

Body = Callable[[ShardStore], Awaitable[None]]
ROWS = [(1, 10, "a"), (2, 20, "b")]


def with_stores(body: Body) -> Callable[[bool, bool], None]:
    @pytest.mark.parametrize("unique_v", [False, True])
    @pytest.mark.parametrize("flushed", [False, True])
    def test(flushed: bool, unique_v: bool) -> None:
        async def go() -> None:
            store = await open_memory_store()
            await make_table(store, ROWS, spec(unique_v=unique_v))
            if flushed:
                await store.flush()
                generation = store.core.shards[SHARD].latest.generation
                assert generation is not None
                assert generation.parts
                assert not generation.rows
            await body(store)
            store.validate()
            assert len(store.core.locks) == 0
            await store.close()

        run(go)

    test.__doc__ = body.__doc__
    return test


def writer(store: ShardStore, lock_timeout_ms: int = 0) -> StoreTransaction:
    txn = store.begin(lock_timeout_ms=lock_timeout_ms)
    assert txn.try_begin_write(SHARD)
    return txn


async def rows(store: ShardStore) -> list[Any]:
    reader = store.begin(read_only=True)
    found = [row.values for row in await now(reader.range(SHARD, BY_K, KeyRange()))]
    reader.rollback()
    return found


@with_stores
async def test_the_row_is_there_once_it_is_committed(store: ShardStore) -> None:
    txn = writer(store)
    assert isinstance(at_once(txn.insert_unless(SHARD, (3, 30, "c"), [BY_K])), int)
    assert await rows(store) == ROWS
    await now(txn.commit())
    assert await rows(store) == [*ROWS, (3, 30, "c")]


@with_stores
async def test_a_taken_key_is_refused_and_nothing_stays(store: ShardStore) -> None:
    txn = writer(store)
    with pytest.raises(DuplicateKey) as duplicate:
        await now(txn.insert(SHARD, [(2, 21, "again")]))
    assert duplicate.value.key == (2,)
    found = await now(txn.insert_unless(SHARD, (2, 22, "again"), [BY_K]))
    assert isinstance(found, StoredRow)
    assert found.values == (2, 20, "b")
    txn.rollback()
    assert await rows(store) == ROWS


@with_stores
async def test_the_key_of_a_row_that_is_gone_is_free(store: ShardStore) -> None:
    txn = writer(store)
    (found,) = await now(txn.lookup(SHARD, BY_K, [(1,)]))
    await now(txn.delete(SHARD, [found.row_id]))
    await now(txn.commit())
    txn = writer(store)
    assert isinstance(await now(txn.insert_unless(SHARD, (1, 11, "new"), [BY_K])), int)
    await now(txn.commit())
    assert await rows(store) == [(1, 11, "new"), (2, 20, "b")]


@with_stores
async def test_its_key_is_others_to_wait_for(store: ShardStore) -> None:
    one, two = writer(store), writer(store)
    at_once(one.insert(SHARD, [(3, 30, "one")]))
    waits = must_wait(two.insert_unless(SHARD, (3, 31, "two"), [BY_K]))
    await now(one.commit())
    assert (await waits).values == (3, 30, "one")
    two.rollback()


@with_stores
async def test_a_key_that_was_read_is_waited_for(store: ShardStore) -> None:
    """A reader's locks, be it on a key of either index or on a range, keep the row out until it has ended."""
    reads: list[Callable[[StoreTransaction], Any]] = [
        lambda txn: txn.lookup(SHARD, BY_K, [(3,)]),
        lambda txn: txn.lookup(SHARD, BY_V, [(30,)]),
        lambda txn: txn.range(SHARD, BY_K, KeyRange(has_lower=True, lower=2)),
    ]
    for read in reads:
        reader, txn = writer(store), writer(store, lock_timeout_ms=-1)
        await now(read(reader))
        with pytest.raises(LockNotAvailable):
            await now(txn.insert(SHARD, [(3, 30, "phantom")]))
        reader.rollback()
        txn.rollback()


@with_stores
async def test_a_locked_table_is_no_place_to_begin(store: ShardStore) -> None:
    owner, other = store.begin(), store.begin()
    await now(owner.lock_table(SHARD, "X"))
    assert not other.try_begin_write(SHARD)
    waits = must_wait(other.begin_write([SHARD]))
    owner.rollback()
    await waits
    at_once(other.insert(SHARD, [(3, 30, "c")]))
    other.rollback()


@with_stores
async def test_two_that_want_each_others_keys_do_not_wait_for_ever(store: ShardStore) -> None:
    one, two = writer(store), writer(store)
    at_once(one.insert(SHARD, [(3, 30, "one")]))
    at_once(two.insert(SHARD, [(4, 40, "two")]))
    waits = must_wait(one.insert(SHARD, [(4, 41, "one")]))
    with pytest.raises(Deadlock):
        await now(two.insert(SHARD, [(3, 31, "two")]))
    two.rollback()
    await waits
    await now(one.commit())
    assert await rows(store) == [*ROWS, (3, 30, "one"), (4, 41, "one")]


@with_stores
async def test_a_transaction_that_has_read_is_promoted_first(store: ShardStore) -> None:
    txn = store.begin()
    await now(txn.lookup(SHARD, BY_K, [(3,)]))
    assert not txn.try_begin_write(SHARD)  # what it has read has to be locked and compared
    await now(txn.begin_write([SHARD]))
    at_once(txn.insert(SHARD, [(3, 30, "c")]))
    await now(txn.commit())
