"""A timestamp that is read at becomes readable first: commits at or below it are applied, later ones are above (L6)."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.durable import START_MS, ManualClock
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store
from txn.base.errors import CommitUnknown, ReadBelowSince
from txn.base.time import make_timestamp
from txn.base.types import Timestamp
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions


async def put(store: ShardStore, key: int, value: int = 0) -> Timestamp:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    await now(txn.insert(SHARD, [(key, value, "")]))
    return await now(txn.commit())


async def keys_at(store: ShardStore, ts: Timestamp) -> set[int]:
    txn = store.begin(read_only=True, at=ts)
    try:
        return {row.values[0] for k in range(100) for row in await now(txn.lookup(SHARD, BY_K, [(k,)]))}
    finally:
        txn.rollback()


def test_the_present_is_readable_without_a_commit_and_what_comes_later_is_above() -> None:
    async def body() -> None:
        clock = ManualClock()  # it stands still, so that only the oracle keeps later commits above
        store = await open_memory_store(options=TxnOptions(retention_ms=60_000), clock=clock)
        await make_table(store)
        await put(store, 1)
        logged = store.core.log.committer.applied_seq
        moment = store.present()
        assert moment > store.read_ts()
        with pytest.raises(ValueError, match="future"):
            store.begin(read_only=True, at=moment)
        await store.reach(moment)
        assert store.read_ts() >= moment
        assert store.core.log.committer.applied_seq == logged, "a read wrote to the log"
        assert await keys_at(store, moment) == {1}
        assert await put(store, 2) > moment
        assert await keys_at(store, moment) == {1}
        moment = store.present()  # and in the same batch
        beside = store.begin()
        await now(beside.begin_write([SHARD]))
        await now(beside.insert(SHARD, [(3, 0, "")]))
        reached = store.core.log.committer.reach(moment)
        assert await now(beside.commit()) > moment
        assert await reached == moment
        assert await keys_at(store, moment) == {1, 2}
        await store.close()

    asyncio.run(body())


def test_commits_under_way_below_a_timestamp_are_waited_for() -> None:
    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(retention_ms=60_000))
        await make_table(store)
        for round_ in range(20):
            commits = [asyncio.ensure_future(put(store, round_ * 3 + n)) for n in range(3)]
            for _ in range(round_ % 7):
                await asyncio.sleep(0)
            moment = Timestamp(store.present() - 1)
            reached = asyncio.ensure_future(store.reach(moment))
            more = asyncio.ensure_future(put(store, 99 - round_))
            await reached
            seen = await keys_at(store, moment)
            done = [await commit for commit in commits]
            last = await more
            assert await keys_at(store, moment) == seen, "what was read changed"
            for n, ts in enumerate(done):
                assert (round_ * 3 + n in seen) == (ts <= moment)
            assert (99 - round_ in seen) == (last <= moment)
        await store.close()

    asyncio.run(body())


def test_a_restart_hands_out_nothing_at_or_below_what_was_read() -> None:
    """Idle for an hour, read, killed, and the clock goes back an hour: the read must stay true (A22)."""

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await open_memory_store(disk, options=TxnOptions(retention_ms=60_000), clock=clock)
        await make_table(store)
        clock.pass_ms(3_600_000)
        moment = make_timestamp(START_MS + 3_600_000)
        await store.reach(moment)
        disk.crash()
        clock.ms -= 3_600_000
        again = await open_memory_store(disk, clock=clock)
        assert await put(again, 1) > moment
        await again.close()

    asyncio.run(body())


def test_a_timestamp_ahead_of_the_clock_is_waited_for() -> None:
    async def body() -> None:
        clock = ManualClock()
        store = await open_memory_store(clock=clock)
        await make_table(store)
        moment = make_timestamp(START_MS + 30)
        reached = asyncio.ensure_future(store.reach(moment))
        await asyncio.sleep(0.06)
        assert not reached.done()
        clock.pass_ms(31)
        await asyncio.wait_for(reached, 5)
        assert store.read_ts() >= moment
        await store.close()

    asyncio.run(body())


def test_a_new_shard_begins_where_it_was_made() -> None:
    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(retention_ms=60_000))
        before = store.since
        await make_table(store)
        made = store.read_ts()
        assert store.since_of(SHARD) == made > before
        with pytest.raises(ReadBelowSince):
            store.begin(read_only=True, at=Timestamp(before - 1))
        with pytest.raises(KeyError):
            store.begin(read_only=True, at=before).spec(SHARD)
        await store.close()

    asyncio.run(body())


def test_who_waits_is_told_when_nothing_can_be_committed_any_more() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store)
        store.core.log.committer.fail(CommitUnknown("stopped"))
        with pytest.raises(CommitUnknown):
            await store.reach(store.present())

    asyncio.run(body())


def test_a_commit_without_space_does_not_fail_the_read_beside_it() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store)
        await put(store, 1)
        disk.capacity = disk.used()
        commit = asyncio.ensure_future(put(store, 2))
        await asyncio.sleep(0)
        moment = store.present()
        await store.reach(moment)
        with pytest.raises(Exception, match="space"):
            await commit
        assert await keys_at(store, moment) == {1}
        disk.capacity = None
        await store.close()

    asyncio.run(body())
