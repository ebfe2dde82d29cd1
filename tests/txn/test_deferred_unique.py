"""Unique keys whose check is put off: duplicates of one's own until ``check_unique``, nobody else's ever."""

from __future__ import annotations

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, at_once, make_table, must_wait, now, open_memory_store, settle
from txn.base.errors import DuplicateKey
from txn.base.types import KeyRange
from txn.store import ShardStore


async def _store() -> ShardStore:
    store = await open_memory_store()
    await make_table(store, [(1, 10, "a"), (2, 20, "b")])
    return store


def test_two_own_rows_may_share_a_key_until_it_is_checked() -> None:
    async def go() -> None:
        store = await _store()
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        txn.defer_unique(BY_K, True)
        await now(txn.insert(SHARD, [(1, 11, "c")]))
        with pytest.raises(DuplicateKey):
            await now(txn.check_unique(SHARD, BY_K))
        txn.next_statement()
        first, _second = sorted(await now(txn.lookup(SHARD, BY_K, [(1,)])), key=lambda row: row.values[1])
        await now(txn.delete(SHARD, [first.row_id]))
        await now(txn.check_unique(SHARD, BY_K))
        await now(txn.commit())
        reader = store.begin(read_only=True)
        assert [r.values for r in await now(reader.range(SHARD, BY_K, KeyRange()))] == [
            (1, 11, "c"),
            (2, 20, "b"),
        ]
        reader.rollback()
        await store.close()

    run(go)


def test_the_check_comes_back_when_it_is_no_longer_put_off() -> None:
    async def go() -> None:
        store = await _store()
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        txn.defer_unique(BY_K, True)
        txn.defer_unique(BY_K, False)
        with pytest.raises(DuplicateKey):
            await now(txn.insert(SHARD, [(1, 11, "c")]))
        txn.rollback()
        await store.close()

    run(go)


def test_others_wait_for_a_key_whose_check_is_put_off() -> None:
    async def go() -> None:
        store = await _store()
        one, two = store.begin(), store.begin()
        for txn in (one, two):
            await now(txn.begin_write([SHARD]))
            txn.defer_unique(BY_K, True)
        await now(one.insert(SHARD, [(3, 30, "c")]))
        waiting = must_wait(two.insert(SHARD, [(3, 31, "d")]))
        await now(one.commit())
        await settle()
        await waiting
        with pytest.raises(DuplicateKey):
            at_once(two.check_unique(SHARD, BY_K))
        two.rollback()
        store.validate()
        await store.close()

    run(go)
