"""Durable holds: what their owner had not taken is there after a crash, whatever was flushed, merged or altered (N6)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.support.durable import run
from tests.support.proofs import sampled
from tests.support.store import INT, SHARD, StepClock, make_table, now, open_memory_store, spec, tear_away
from tests.txn.test_subscribe import OTHER, Mirror, change, load, small_pieces, table
from txn.base.errors import ReadBelowSince, SubscriptionEnded
from txn.base.types import ShardColumn, ShardId, Timestamp
from txn.log.holds import Hold
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions
from txn.upkeep.subscribe import Progress

HELD = TxnOptions(hold_at_start=True, hot_rows=15)


async def end(store: ShardStore, crash: MemoryDisk | None) -> None:
    """Close a store, or end what is left of it after a crash of its disk."""
    if crash is None:
        await store.close()
    else:
        await tear_away(store, crash)


@pytest.mark.parametrize("seed", sampled(6, range(16)))
def test_a_consumer_goes_on_where_it_was_after_every_crash(seed: int) -> None:
    """No retention keeps anything: only the hold does. Each stop is compared with what readers saw there before."""
    rng = random.Random(seed)

    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, HELD, clock)
        store.started()
        shards = [SHARD, OTHER]
        await make_table(store, [(k, 0, "x") for k in range(5)])
        await make_table(store, [(k, 0, "y") for k in range(3)], spec(2))
        await store.flush()
        hold = store.hold(durable=True)
        mirror = Mirror(store.subscribe(shards, hold.ts))
        await mirror.catch_up()
        taken = (mirror.progress, mirror.rows.copy())
        states = {}
        for step in range(60):
            roll = rng.random()
            shard = rng.choice(shards)
            if roll < 0.55:
                await change(store, rng, shard, rng.choice([1, 3, 8]))
            elif roll < 0.6:
                await load(store, range(1000 * (step + 1), 1000 * (step + 1) + rng.choice([2, 9])), shard)
            elif roll < 0.65:
                txn = store.begin()
                await now(txn.truncate(shard))
                await now(txn.insert(shard, [(1, 1, "after")]))
                await now(txn.commit())
            elif roll < 0.8:
                await store.flush(shard, history=rng.random() < 0.3)
            elif roll < 0.85:
                store.core.vacuum()
            elif roll < 0.93:  # take some of it, and say so
                for _ in range(rng.randrange(1, 12)):
                    event = await mirror.subscription.poll(0)
                    if event is None:
                        break
                    mirror.take(event)
                    if isinstance(event, Progress):
                        taken = (event.ts, mirror.rows.copy())
                        if event.ts in states:
                            assert (mirror.shown(), mirror.shown(OTHER)) == states[event.ts]
                before, hold = hold, store.hold(taken[0], durable=True)
                store.release(before)
            else:
                await end(store, disk if rng.random() < 0.5 else None)
                store = await open_memory_store(disk, HELD, clock)
                if rng.random() < 0.3:
                    await store.flush()  # upkeep comes before its owner
                assert store.since <= hold.ts
                hold = store.hold(hold.ts, durable=True)
                store.started()
                mirror = Mirror(store.subscribe(shards, taken[0], snapshot=False), taken[1])
            store.validate()
            now_ = store.read_ts()
            states[now_] = (await table(store, now_), await table(store, now_, OTHER))
        at = await mirror.catch_up()
        assert (mirror.shown(), mirror.shown(OTHER)) == states[at]
        store.release(hold)
        mirror.subscription.close()
        store.core.vacuum()
        await store.flush()
        await store.flush()
        for shard in shards:
            assert not store.core.log.manifests[shard].history, "history that nobody needs stays"
        await store.close()

    with small_pieces():
        run(body)


def test_without_a_durable_hold_manifests_know_no_history() -> None:
    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, TxnOptions(retention_ms=3_600_000), clock)
        early = await make_table(store, [(1, 1, "x")])
        plain = store.hold()
        await change(store, random.Random(1))
        await store.flush(history=True)
        manifest = store.core.log.manifests[SHARD]
        assert not manifest.history
        assert manifest.since > early
        with pytest.raises(ReadBelowSince):
            store.hold(plain.ts, durable=True)  # a restart could not keep that promise
        await store.close()

    run(body)


async def altered(store: ShardStore, shard: ShardId) -> Timestamp:
    """Add a column to a shard and return when."""
    txn = store.begin()
    old = txn.spec(shard)
    await now(
        txn.alter_shard(
            replace(
                old,
                version=old.version + 1,
                columns=(*old.columns, ShardColumn(attnum=len(old.columns) + 1, type=INT, missing_value=7)),
            )
        )
    )
    return await now(txn.commit())


@pytest.mark.parametrize("what", ["alter", "drop"])
def test_what_came_before_a_change_of_schema_survives_the_crash_after_it(what: str) -> None:
    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, HELD, clock)
        store.started()
        await make_table(store, [(k, 0, "x") for k in range(4)])
        await store.flush()
        hold = store.hold(durable=True)
        before = await table(store, hold.ts)
        await change(store, random.Random(3))
        last = store.read_ts()
        wanted = await table(store, last)
        if what == "alter":
            await altered(store, SHARD)
        else:
            await store.forget(SHARD)
        await store.flush()
        await end(store, disk)
        store = await open_memory_store(disk, HELD, clock)
        hold = store.hold(hold.ts, durable=True)
        store.started()
        mirror = Mirror(store.subscribe([SHARD], hold.ts))
        with pytest.raises(SubscriptionEnded):
            await mirror.catch_up()
        assert mirror.shown() == wanted != before
        assert mirror.at == last
        # Once it has passed that, upkeep goes on.
        store.release(hold)
        mirror.subscription.close()
        store.core.vacuum()
        await store.flush()
        manifest = store.core.log.manifests.get(SHARD)
        assert manifest is None or manifest.forgotten == (what == "drop")
        assert not store.core.log.pressure().laggards
        await store.close()

    run(body)


def test_a_durable_hold_that_keeps_too_much_is_taken_away() -> None:
    async def body() -> None:
        options = replace(HELD, subscription_versions=100, history_versions=50)
        store = await open_memory_store(options=options)
        store.started()
        await make_table(store, [(k, 0, "x") for k in range(5)])
        lost: list[Hold] = []
        store.on_taken_away(lost.append)
        hold = store.hold(durable=True)
        rng = random.Random(1)
        for _ in range(30):
            await change(store, rng, size=8)
            store.core.vacuum()
        assert lost == [hold]
        assert hold.lost
        assert store.since > hold.ts
        await store.close()

    run(body)


def test_a_log_kept_for_a_change_of_schema_is_bounded() -> None:
    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, replace(HELD, log_bytes=200), clock)
        store.started()
        await make_table(store, [(k, 0, "x") for k in range(5)])
        await store.flush()
        hold = store.hold(durable=True)
        await altered(store, SHARD)
        rng = random.Random(1)
        for i in range(40):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            await now(txn.insert(SHARD, [(100 + i, rng.randrange(100), "more", 1)]))
            await now(txn.commit())
        await store._flusher._look()
        assert hold.lost
        await store.idle()
        await store.flush()
        assert not store.core.log.pressure().laggards
        await store.close()

    run(body)


def test_a_tombstone_takes_nothing_from_a_durable_hold() -> None:
    """A table that was dropped before the hold is forgotten after it: what the hold keeps is readable all the same."""

    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, HELD, clock)
        store.started()
        await make_table(store, [(k, 0, "x") for k in range(5)])
        await make_table(store, [(1, 1, "x")], spec(int(OTHER)))
        await store.flush()
        await store.forget(OTHER)
        hold = store.hold(durable=True)
        rng = random.Random(1)
        await change(store, rng)
        between = store.read_ts()
        await change(store, rng)
        await store.flush()
        assert store.core.log.manifests[OTHER].forgotten
        moved = store.hold(between, durable=True)  # an acknowledgement
        store.release(moved)
        await end(store, disk)
        store = await open_memory_store(disk, HELD, clock)
        assert store.since <= hold.ts
        store.hold(hold.ts, durable=True)
        store.started()
        await store.close()

    run(body)
