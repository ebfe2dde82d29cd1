"""Many locks in a table become one on the table, when nobody is in the way, and are released."""

from __future__ import annotations

import asyncio
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
)
from txn.base.errors import Deadlock
from txn.base.types import KeyRange, RowId
from txn.locks.mode import IX, NAMES, SIX, S, X
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions

Body = Callable[[ShardStore], Coroutine[Any, Any, None]]


def with_store(body: Body) -> Callable[[], None]:
    def test() -> None:
        async def go() -> None:
            store = await open_memory_store(options=TxnOptions(table_locks=20))
            await make_table(store, [(k, k, "x") for k in range(400)])
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
    return test


async def writer(store: ShardStore) -> Any:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    return txn


@with_store
async def test_reads_become_a_shared_lock(store: ShardStore) -> None:
    before = store.core.locks.escalations
    reader = store.begin()
    await now(reader.begin_write([]))
    for k in range(30):
        at_once(reader.lookup(SHARD, BY_K, [(k,)]))
    assert reader.owner.held == {SHARD: S}
    assert store.core.locks.escalations == before + 1
    other = store.begin()
    waits = must_wait(other.begin_write([SHARD]))
    await settle()
    assert not waits.done()
    reader.rollback()
    await waits


@with_store
async def test_changes_become_an_exclusive_lock(store: ShardStore) -> None:
    txn = await writer(store)
    for k in range(30):
        at_once(txn.update(SHARD, [(RowId(k + 1), (k, k, "new"))]))
    assert txn.owner.held == {SHARD: X}
    at_once(txn.insert(SHARD, [(1000, 1, "x")]))
    at_once(txn.delete(SHARD, [RowId(50)]))
    assert txn.owner.held == {SHARD: X}
    await now(txn.commit())
    rows = await now(store.begin(read_only=True).lookup(SHARD, BY_K, [(3,), (49,), (1000,)]))
    assert [r.values for r in rows] == [(3, 3, "new"), (1000, 1, "x")]


@with_store
async def test_few_changes_among_many_reads_stay_as_they_are(store: ShardStore) -> None:
    txn = await writer(store)
    at_once(txn.update(SHARD, [(RowId(1), (0, 0, "new"))]))
    for low in (10, 40, 70):
        at_once(txn.range(SHARD, BY_V, KeyRange(has_lower=True, lower=low, has_upper=True, upper=low + 9)))
    assert {str(g): NAMES[m] for g, m in txn.owner.held.items()} == {"1": "SIX", "(1, 1)": "SIX"}
    assert not store.core.locks.ranges, "the range locks went, too"


@with_store
async def test_with_others_in_the_way_it_goes_on_with_fine_locks(store: ShardStore) -> None:
    other = await writer(store)
    at_once(other.update(SHARD, [(RowId(400), (399, 0, "mine"))]))
    txn = await writer(store)
    for k in range(60):
        at_once(txn.update(SHARD, [(RowId(k + 1), (k, k, "new"))]))
    assert txn.owner.held[SHARD] == IX
    assert len(txn.owner.held) == 61
    await now(other.commit())
    for k in range(60, 80):
        at_once(txn.update(SHARD, [(RowId(k + 1), (k, k, "new"))]))
    assert txn.owner.held == {SHARD: X}


@with_store
async def test_past_all_patience_it_waits(store: ShardStore) -> None:
    other = await writer(store)
    at_once(other.update(SHARD, [(RowId(400), (399, 0, "mine"))]))
    txn = await writer(store)

    async def many() -> None:
        for k in range(300):
            await now(txn.update(SHARD, [(RowId(k + 1), (k, k, "new"))]))

    work = asyncio.ensure_future(many())
    await settle()
    assert not work.done()
    assert 160 < len(txn.owner.held) < 200
    await now(other.commit())
    await work
    assert txn.owner.held == {SHARD: X}


@with_store
async def test_two_that_want_the_table_are_a_deadlock_and_one_goes_on(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    at_once(a.lookup(SHARD, BY_K, [(1,)]))
    at_once(b.lookup(SHARD, BY_K, [(2,)]))
    first = must_wait(a.lock_table(SHARD, "S"))
    with pytest.raises(Deadlock) as caught:
        await now(b.lock_table(SHARD, "S"))
    assert [(w.mode, w.held, w.target.kind) for w in caught.value.waits] == [("SIX", "IX", "table")] * 2
    b.rollback()
    await first
    assert a.owner.held[SHARD] == SIX
