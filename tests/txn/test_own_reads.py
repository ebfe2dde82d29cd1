"""What a writing transaction reads under a unique key: own intents, at a glance while they are few (``txn.transaction.reads``)."""

from __future__ import annotations

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, at_once, make_table, must_wait, now, open_memory_store, settle
from txn.base.types import RowId
from txn.store import ShardStore
from txn.transaction.reads import FEW_INTENTS
from txn.transaction.transaction import StoreTransaction

ROWS = [(k, k * 10, "old") for k in range(1, 6)]


async def _begin(store: ShardStore, many: bool) -> StoreTransaction:
    """Begin to write; ``many``: with so many intents of other rows that none is found at a glance."""
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    txn.next_statement()
    if many:
        await now(txn.insert(SHARD, [(1000 + i, 0, "other") for i in range(FEW_INTENTS + 1)]))
        txn.next_statement()
    return txn


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@pytest.mark.parametrize("flushed", [False, True], ids=["hot", "in parts"])
def test_a_key_finds_the_row_that_has_it_now(many: bool, flushed: bool) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        if flushed:
            await store.flush(SHARD)
        txn = await _begin(store, many)

        async def under(key: int) -> list[tuple[RowId, tuple[object, ...]]]:
            return [(row.row_id, row.values) for row in await now(txn.lookup(SHARD, BY_K, [(key,)]))]

        ids = {key: (await under(key))[0][0] for key in range(1, 6)}
        await now(txn.update(SHARD, [(ids[1], (1, 11, "new"))]))
        assert await under(1) == [(ids[1], (1, 10, "old"))], "a statement does not see its own changes"
        txn.next_statement()
        assert await under(1) == [(ids[1], (1, 11, "new"))]
        assert await under(2) == [(ids[2], (2, 20, "old"))]

        await now(txn.update(SHARD, [(ids[2], (20, 20, "moved"))]))
        await now(txn.delete(SHARD, [ids[3]]))
        txn.next_statement()
        assert await under(2) == []
        assert await under(20) == [(ids[2], (20, 20, "moved"))]
        assert await under(3) == []
        [again] = await now(txn.insert(SHARD, [(3, 33, "again")]))
        txn.next_statement()
        assert await under(3) == [(again, (3, 33, "again"))]

        mark = txn.savepoint()
        await now(txn.update(SHARD, [(ids[1], (1, 12, "newer"))]))
        await now(txn.update(SHARD, [(ids[4], (4, 44, "undone"))]))
        txn.next_statement()
        assert await under(1) == [(ids[1], (1, 12, "newer"))]
        txn.rollback_to(mark)
        assert await under(1) == [(ids[1], (1, 11, "new"))]
        assert await under(4) == [(ids[4], (4, 40, "old"))]
        await now(txn.commit())
        store.validate()
        reader = store.begin(read_only=True)
        for key, value in ((1, "new"), (20, "moved"), (3, "again"), (4, "old"), (5, "old")):
            assert [r.values[2] for r in await now(reader.lookup(SHARD, BY_K, [(key,)]))] == [value]
        reader.rollback()
        await store.close()

    run(go)


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_what_is_read_at_a_glance_is_locked(many: bool) -> None:
    """The key and the row found, whether the transaction has changed it or another one of the table."""

    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        one = await _begin(store, many)
        [first] = await now(one.lookup(SHARD, BY_K, [(1,)]))
        await now(one.update(SHARD, [(first.row_id, (1, 11, "new"))]))
        one.next_statement()
        [second] = await now(one.lookup(SHARD, BY_K, [(2,)]))
        two = store.begin()
        await now(two.begin_write([SHARD]))
        two.next_statement()
        waiting = must_wait(two.update(SHARD, [(second.row_id, (2, 21, "late"))]))
        # A delete needs more of the row than the update before it took.
        [again] = at_once(one.lookup(SHARD, BY_K, [(1,)], for_update=True))
        assert again.values == (1, 11, "new")
        await now(one.commit())
        await settle()
        assert await waiting == [True]
        await now(two.commit())
        store.validate()
        await store.close()

    run(go)
