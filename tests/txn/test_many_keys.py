"""Look-ups of many keys go in pieces: others have their turns, and what is read is of one time all the same (``txn.transaction.reads``)."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store, settle
from txn.transaction import reads

ROWS = [(k, k * 10, "old") for k in range(1, 9)]
KEYS = [(k,) for k in (3, 1, 8, 3, 7, 9, 5, 1)]
IN_ORDER = [3, 1, 8, 7, 5]  # each row once


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "CHUNK_KEYS", 2)


@pytest.mark.parametrize("flushed", [False, True], ids=["hot", "in parts"])
def test_a_reader_sees_one_state_whatever_happens_between_the_pieces(flushed: bool) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        if flushed:
            await store.flush(SHARD)
        reader = store.begin()
        reading = asyncio.ensure_future(now(reader.lookup(SHARD, BY_K, KEYS)))
        await asyncio.sleep(0)
        assert not reading.done(), "others have no turn"
        writer = store.begin()
        await now(writer.begin_write([SHARD]))
        writer.next_statement()
        found = await now(writer.lookup(SHARD, BY_K, [(5,), (7,)]))
        await now(writer.update(SHARD, [(row.row_id, (row.values[0], 0, "new")) for row in found]))
        await now(writer.commit())
        await store.flush(SHARD)
        assert [(row.values[0], row.values[2]) for row in await reading] == [(k, "old") for k in IN_ORDER]
        await now(reader.commit())
        await store.close()

    run(go)


@pytest.mark.parametrize("for_update", [False, True])
def test_a_writer_keeps_what_it_has_read_locked(for_update: bool) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        one, two = store.begin(), store.begin()
        for txn in (one, two):
            await now(txn.begin_write([SHARD]))
            txn.next_statement()
        [third] = await now(two.lookup(SHARD, BY_K, [(4,)], for_update=True))
        reading = asyncio.ensure_future(now(one.lookup(SHARD, BY_K, KEYS, for_update=for_update)))
        await asyncio.sleep(0)
        assert not reading.done(), "others have no turn"
        found = await reading
        assert [row.values[0] for row in found] == IN_ORDER
        late = asyncio.ensure_future(now(two.update(SHARD, [(found[0].row_id, (3, 0, "late"))])))
        await settle()
        assert not late.done(), "the first piece's locks are gone"
        one.rollback()
        assert await late == [True]
        assert third.values[0] == 4
        await now(two.commit())
        store.validate()
        await store.close()

    run(go)
