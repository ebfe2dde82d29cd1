"""Subscriptions: what they deliver is what was committed, transaction by transaction (C8, N6)."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import txn.upkeep.changes
import txn.upkeep.subscribe
import txn.wal.feed
from tests.support.durable import run
from tests.support.store import (
    BY_K,
    INT,
    SHARD,
    StepClock,
    make_table,
    now,
    open_memory_store,
    settle,
    snapshot_rows,
    spec,
    tear_away,
    tiny_limits,
)
from txn.base.errors import ReadBelowSince, SubscriptionEnded, SubscriptionLapsed, TxnError
from txn.base.types import KeyRange, ShardColumn, ShardId, Timestamp
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions
from txn.upkeep.changes import Window
from txn.upkeep.subscribe import Changes, Progress, Subscription

OTHER = ShardId(2)
Rows = Counter[Any]
MINUTE_MS = 60_000
KEEP = TxnOptions(retention_ms=60 * MINUTE_MS)


@contextmanager
def small_pieces(commits: int = 4, ops: int = 20) -> Iterator[None]:
    """Tiny windows, pieces and feed: every boundary is met, and slow readers fall back to versions."""
    with ExitStack() as stack:
        stack.enter_context(tiny_limits())
        for module, name, value in (
            (txn.upkeep.changes, "PIECE_ROWS", 3),
            (txn.upkeep.subscribe, "PIECE_ROWS", 3),
            (txn.upkeep.subscribe, "WINDOW_ROWS", 5),
            (txn.wal.feed, "MAX_COMMITS", commits),
            (txn.wal.feed, "MAX_OPS", ops),
            (txn.wal.feed, "_TRIM", 0),
        ):
            stack.enter_context(mock.patch.object(module, name, value))
        yield


async def change(store: ShardStore, rng: random.Random, shard: ShardId = SHARD, size: int = 3) -> None:
    """Commit one transaction of random inserts, updates and deletes of keys 0 .. 19."""
    txn = store.begin()
    await now(txn.begin_write([shard]))
    for k in rng.sample(range(20), size):
        found = await now(txn.lookup(shard, BY_K, [(k,)], for_update=True))
        row = (k, rng.randrange(100), f"{rng.randrange(1000)}")
        if not found:
            await now(txn.insert(shard, [row]))
        elif rng.random() < 0.3:
            await now(txn.delete(shard, [found[0].row_id]))
        else:
            await now(txn.update(shard, [(found[0].row_id, row)]))
        txn.next_statement()
    await now(txn.commit())


async def load(store: ShardStore, keys: range, shard: ShardId = SHARD) -> None:
    """Commit a bulk load of rows, one of which the same transaction then changes and one of which it deletes."""
    txn = store.begin()
    await now(txn.begin_write([shard]))

    async def batches() -> Any:
        columns = {"c1": list(keys), "c2": [0] * len(keys), "c3": ["bulk"] * len(keys)}
        yield pa.record_batch(
            columns, pa.schema([("c1", pa.int64()), ("c2", pa.int64()), ("c3", pa.string())])
        )

    await txn.bulk_insert(shard, batches())
    txn.next_statement()
    first, second = await now(txn.lookup(shard, BY_K, [(keys[0],), (keys[1],)], for_update=True))
    await now(txn.update(shard, [(first.row_id, (keys[0], 7, "changed"))]))
    await now(txn.delete(shard, [second.row_id]))
    await now(txn.commit())


async def replace_some(store: ShardStore, rng: random.Random, shard: ShardId = SHARD) -> None:
    """Commit an update of a random half of the rows that writes its new versions as a part."""
    txn = store.begin()
    await now(txn.begin_write([shard]))
    found = [(row_id, values) for row_id, _b, values in snapshot_rows(await now(txn.snapshot(shard)))]
    found = [entry for entry in found if rng.random() < 0.5]

    async def changes() -> Any:
        if found:
            columns = {
                "c1": [v[0] for _r, v in found], "c2": [v[1] + 1 for _r, v in found], "c3": ["new"] * len(found),
            }  # fmt: skip
            schema = pa.schema([("c1", pa.int64()), ("c2", pa.int64()), ("c3", pa.string())])
            yield [row_id for row_id, _v in found], pa.record_batch(columns, schema)

    assert await txn.bulk_replace(shard, changes(), frozenset((2, 3))) == len(found)
    await now(txn.commit())


async def delete_some(store: ShardStore, rng: random.Random, shard: ShardId = SHARD) -> None:
    """Commit the end of a random half of the rows, named by their places in parts."""
    txn = store.begin()
    await now(txn.begin_write([shard]))
    rows = snapshot_rows(await now(txn.snapshot(shard)))
    ids = array("q", [row_id for row_id, _b, _v in rows if rng.random() < 0.5])
    assert await txn.bulk_delete(shard, ids) == len(ids)
    await now(txn.commit())


async def table(store: ShardStore, at: Timestamp, shard: ShardId = SHARD) -> Rows:
    """Read a shard at a timestamp, as any reader does."""
    txn = store.begin(read_only=True, at=at)
    rows: Rows = Counter()
    async for chunk in txn.scan(shard):
        rows.update(r.values for r in chunk)
    txn.rollback()
    return rows


class Mirror:
    """Follows a subscription and checks what it promises about order, pieces and progress."""

    def __init__(self, subscription: Subscription, rows: Rows | None = None) -> None:
        self.subscription = subscription
        self.rows: Rows = Counter(rows)
        self.at = Timestamp(0)
        self.progress = Timestamp(0)
        self.commits: list[Timestamp] = []

    def take(self, event: Changes | Progress) -> None:
        if isinstance(event, Progress):
            assert event.ts >= max(self.progress, self.at)
            self.progress = event.ts
            return
        assert event.rows
        assert event.ts >= self.at, "timestamps fell"
        assert event.ts > self.progress or not self.commits, "a change below progress"
        if event.ts != self.at:
            self.commits.append(event.ts)
        self.at = event.ts
        for row in event.rows:
            assert row.ts == event.ts
            self.rows[(row.shard, row.row)] += row.diff

    async def catch_up(self) -> Timestamp:
        """Read until nothing is left, and return up to where that is."""
        while (event := await self.subscription.poll(0)) is not None:
            self.take(event)
        assert all(count >= 0 for count in self.rows.values())
        return self.subscription.position

    def shown(self, shard: ShardId = SHARD) -> Rows:
        return Counter({row: n for (s, row), n in self.rows.items() if n and s == shard})


@pytest.mark.parametrize("seed", range(12))
def test_a_subscription_is_the_table_at_every_timestamp(seed: int) -> None:
    """Random commits, loads, truncates and flushes; readers of every speed; each stop is compared with a reader there."""
    rng = random.Random(seed)

    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(retention_ms=60 * MINUTE_MS, hot_rows=15))
        await make_table(store, [(k, 0, "x") for k in range(5)])
        await make_table(store, [(k, 0, "y") for k in range(3)], spec(2))
        shards = [SHARD, OTHER]
        mirrors = [Mirror(store.subscribe(shards)) for _ in range(3)]
        states = {}
        for step in range(40):
            roll = rng.random()
            shard = rng.choice(shards)
            if roll < 0.75:
                await change(store, rng, shard, rng.choice([1, 3, 8]))
            elif roll < 0.8:
                await load(store, range(1000 * (step + 1), 1000 * (step + 1) + rng.choice([2, 9])), shard)
            elif roll < 0.83:
                await replace_some(store, rng, shard)
            elif roll < 0.86:
                await delete_some(store, rng, shard)
            elif roll < 0.88:
                txn = store.begin()
                await now(txn.truncate(shard))
                await now(txn.insert(shard, [(1, 1, "after")]))
                await now(txn.commit())
            elif roll < 0.95:
                await store.flush(shard)
            else:
                store.core.vacuum()
            states[store.read_ts()] = (
                await table(store, store.read_ts()),
                await table(store, store.read_ts(), OTHER),
            )
            for speed, mirror in enumerate(mirrors):
                if speed == 0 or (speed == 1 and rng.random() < 0.1):
                    at = await mirror.catch_up()
                    assert at == store.read_ts()
                    assert (mirror.shown(), mirror.shown(OTHER)) == states[at]
        for mirror in mirrors:
            at = await mirror.catch_up()
            assert (mirror.shown(), mirror.shown(OTHER)) == states[at]
            mirror.subscription.close()
        assert mirrors[0].commits == mirrors[2].commits
        # Once more from the beginning of history, a commit at a time.
        again = Mirror(store.subscribe(shards, min(states)))
        while (event := await again.subscription.poll(0)) is not None:
            again.take(event)
            if isinstance(event, Progress) and event.ts in states:
                assert (again.shown(), again.shown(OTHER)) == states[event.ts]
        for ts in rng.sample(sorted(states), 5):
            there = Mirror(store.subscribe(shards, min(states), ts + 1))
            async for event in there.subscription:
                there.take(event)
            assert (there.shown(), there.shown(OTHER)) == states[ts]
        assert not [h for h in store.core.holds.all() if h is not again.subscription._hold]
        again.subscription.close()
        store.core.validate()
        await store.close()

    with small_pieces(*rng.choice([(4, 20), (1000, 100_000)])):
        run(body)


@pytest.mark.parametrize("seed", range(8))
def test_going_on_after_a_crash_loses_and_repeats_nothing(seed: int) -> None:
    """Readers stop at random progress marks; the server crashes; they go on without a snapshot (N6)."""
    rng = random.Random(seed)

    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, KEEP, clock)
        await make_table(store)
        token, mirror = store.read_ts(), Mirror(store.subscribe([SHARD]))
        for _life in range(5):
            for _step in range(rng.randrange(1, 12)):
                await change(store, rng)
                if rng.random() < 0.5:
                    event = await mirror.subscription.poll(0)
                    if event is not None:
                        mirror.take(event)
            # What was taken after the last mark is repeated, so a client keeps only what the mark covers.
            await mirror.catch_up()
            token = mirror.progress
            before = mirror.shown()
            assert before == await table(store, token)
            for _step in range(rng.randrange(6)):
                await change(store, rng)
            await tear_away(store, disk)
            store = await open_memory_store(disk, KEEP, clock)
            mirror = Mirror(
                store.subscribe([SHARD], token, snapshot=False),
                Counter({(SHARD, row): n for row, n in before.items()}),
            )
            at = await mirror.catch_up()
            assert all(ts > token for ts in mirror.commits)
            assert mirror.shown() == await table(store, at)
        mirror.subscription.close()
        await store.close()

    run(body)


def test_history_older_than_a_flush_is_refused_after_a_restart() -> None:
    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, KEEP, clock)
        early = await make_table(store, [(1, 1, "x")])
        await store.flush()
        cut = store.core.log.manifests[SHARD].since
        await change(store, random.Random(1))
        await store.close()
        store = await open_memory_store(disk, KEEP, clock)
        with pytest.raises(ReadBelowSince) as refused:
            store.subscribe([SHARD], Timestamp(early - 1))
        assert refused.value.since == store.since == cut
        mirror = Mirror(store.subscribe([SHARD], cut))
        assert await mirror.catch_up() == store.read_ts()
        assert mirror.shown() == await table(store, store.read_ts())
        assert next(f for f in store.inspect_shards() if f.shard == SHARD).registered == early
        mirror.subscription.close()
        await store.close()

    run(body)


def test_old_rows_go_and_new_ones_come_at_one_timestamp() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a"), (2, 2, "b")])
        subscription = store.listen(SHARD)
        txn = store.begin()
        one, two = await now(txn.range(SHARD, BY_K, KeyRange()))
        await now(txn.begin_write([SHARD]))
        await now(txn.update(SHARD, [(one.row_id, (1, 5, "a"))]))
        await now(txn.delete(SHARD, [two.row_id]))
        await now(txn.insert(SHARD, [(3, 3, "c")]))
        ts = await now(txn.commit())
        assert await anext(subscription) == Progress(Timestamp(subscription.position))
        event = await anext(subscription)
        assert isinstance(event, Changes)
        assert event.ts == ts
        assert sorted((c.diff, c.row) for c in event.rows) == [
            (-1, (1, 1, "a")), (-1, (2, 2, "b")), (1, (1, 5, "a")), (1, (3, 3, "c")),
        ]  # fmt: skip
        assert await anext(subscription) == Progress(ts)
        subscription.close()
        with pytest.raises(StopAsyncIteration):
            await anext(subscription)
        await store.close()

    run(body)


def test_the_hold_follows_the_reader_and_vacuum_follows_the_hold() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(20)])
        subscription = store.subscribe([SHARD])
        start = subscription.position
        for _ in range(30):
            await change(store, random.Random(1))
        store.core.vacuum()
        assert store.since <= start
        assert store.core.garbage
        while await subscription.poll(0) is not None:
            pass
        assert subscription.position == store.read_ts()
        while store.core.garbage:
            store.core.vacuum()
        assert store.since == store.read_ts()
        subscription.close()
        await store.close()

    run(body)


def test_a_reader_that_keeps_too_much_history_ends_and_others_go_on() -> None:
    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(subscription_versions=40))
        await make_table(store, [(k, 0, "x") for k in range(20)])
        slow, quick = store.subscribe([SHARD]), store.subscribe([SHARD])
        mirror = Mirror(quick)
        for step in range(60):
            await change(store, random.Random(step))
            await mirror.catch_up()
            store.core.vacuum()
        with pytest.raises(SubscriptionLapsed) as lapsed:
            await anext(slow)
        assert lapsed.value.position == slow.position
        assert len(store.core.garbage) <= 40
        assert mirror.shown() == await table(store, store.read_ts())
        assert list(store.core.feed.subscribers) == [quick]
        quick.close()
        await store.close()

    run(body)


def test_inserts_behind_a_slow_reader_go_to_disk_and_not_to_memory() -> None:
    """100,000 rows are written while nobody reads: what stays in memory is the feed's bound and what is hot anyway."""

    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(hot_rows=5000))
        await make_table(store)
        subscription = store.subscribe([SHARD])
        most = 0
        for start in range(0, 100_000, 2000):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            await now(txn.insert(SHARD, [(k, k, "x") for k in range(start, start + 2000)]))
            await now(txn.commit())
            await store.idle()
            generation = store.core.shards[SHARD].latest.generation
            assert generation is not None
            feed = sum(len(s.ops) for w in store.core.feed._recent for s in w.shards)
            most = max(most, len(generation.rows) + feed)
        assert most < 40_000
        seen, sizes, stamps = 0, set(), []
        while (event := await subscription.poll(0)) is not None:
            if isinstance(event, Changes):
                seen += len(event.rows)
                sizes.add(len(event.rows))
                stamps.append(event.ts)
        assert seen == 100_000
        assert max(sizes) <= txn_piece()
        assert len(stamps) == len(set(stamps)) == 50
        subscription.close()
        await store.close()

    run(body)


def txn_piece() -> int:
    return txn.upkeep.changes.PIECE_ROWS


def test_columns_that_change_end_it_and_indexes_do_not() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(1, 1, "a")])
        mirror = Mirror(store.subscribe([SHARD]))
        txn = store.begin()
        await now(txn.alter_shard(replace(spec(version=2), indexes=spec().indexes[:1])))
        await now(txn.commit())
        await change(store, random.Random(1))
        await mirror.catch_up()
        assert mirror.shown() == await table(store, store.read_ts())
        wider = replace(spec(version=3), columns=(*spec().columns, ShardColumn(attnum=4, type=INT)))
        await change(store, random.Random(2))
        expected = await table(store, store.read_ts())
        txn = store.begin()
        await now(txn.alter_shard(wider))
        altered = await now(txn.commit())
        await change(store, random.Random(3))
        with pytest.raises(SubscriptionEnded) as ended:
            await mirror.catch_up()
        assert (ended.value.ts, ended.value.dropped) == (altered, False)
        assert mirror.shown() == expected
        mirror = Mirror(store.subscribe([SHARD]))
        txn = store.begin()
        await now(txn.drop_shard(SHARD))
        dropped = await now(txn.commit())
        with pytest.raises(SubscriptionEnded) as ended:
            await mirror.catch_up()
        assert (ended.value.ts, ended.value.dropped) == (dropped, True)
        with pytest.raises(KeyError):
            store.subscribe([SHARD])
        assert not len(store.core.holds)
        await store.close()

    run(body)


def test_until_is_reached_without_anybody_committing() -> None:
    async def body() -> None:
        clock = StepClock()
        store = await open_memory_store(clock=clock)
        await make_table(store, [(1, 1, "a")])
        until = Timestamp((clock.ms + 200) << 16)
        events = [event async for event in store.subscribe([SHARD], until=until)]
        assert isinstance(events[0], Changes)
        assert events[-1] == Progress(Timestamp(until - 1))
        assert store.read_ts() >= until
        with pytest.raises(ValueError, match="future"):
            store.subscribe([SHARD], Timestamp(store.read_ts() + 1))
        await store.close()

    with mock.patch.object(txn.upkeep.subscribe, "TURN_S", 0.01):
        run(body)


def test_cancelling_a_reader_loses_nothing() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store)
        mirror = Mirror(store.subscribe([SHARD]))
        rng = random.Random(5)
        for _ in range(40):
            waiting = asyncio.ensure_future(anext(mirror.subscription))
            for _ in range(rng.randrange(6)):
                await asyncio.sleep(0)
            if not waiting.cancel():
                mirror.take(await waiting)
            await asyncio.wait([waiting])
            if not waiting.cancelled() and waiting.exception() is None and waiting.result() is not None:
                continue
            await change(store, rng)
        await mirror.catch_up()
        assert mirror.shown() == await table(store, store.read_ts())
        mirror.subscription.close()
        await store.close()

    run(body)


@pytest.mark.parametrize("history", [False, True])
def test_history_is_the_same_at_every_turn_of_a_flush(history: bool) -> None:
    """Between a flush and its eviction versions are in memory and in parts; each counts once."""

    async def body() -> None:
        store = await open_memory_store(options=KEEP)
        start = await make_table(store, [(k, 0, "x") for k in range(20)])
        kept = store.hold(start)
        rng = random.Random(3)
        looks: list[tuple[Timestamp, Window]] = []

        async def changes() -> None:
            for _ in range(8):
                await change(store, rng, size=2)

        for _round in range(4):
            await changes()
            work = asyncio.gather(store.flush(SHARD, history=history), changes())
            while not work.done():
                looks.append((store.read_ts(), Window(SHARD, store.core.shards[SHARD], spec(), start)))
                await asyncio.sleep(0)
            await work
        assert len(looks) > 100
        for ts, window in looks:
            rows = await table(store, start)
            async for places in window.places(start, ts):
                for found in await window.read(places):
                    rows[found.row] += found.diff
            assert {r: n for r, n in rows.items() if n} == await table(store, ts)
        store.release(kept)
        await store.close()

    with small_pieces():
        run(body)


def test_closing_wakes_who_waits() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store)
        subscription = store.listen(SHARD)
        await anext(subscription)
        waiting = asyncio.ensure_future(anext(subscription))
        await settle()
        assert not waiting.done()
        await store.close()
        with pytest.raises(StopAsyncIteration):
            await waiting
        assert not len(store.core.holds)

    run(body)


def test_the_bank_holds_the_same_sum_at_every_timestamp() -> None:
    """Four clients transfer at once; at every timestamp that a subscription names the total is what it was."""
    accounts, each = 10, 100

    async def client(store: ShardStore, rng: random.Random) -> None:
        for _ in range(60):
            txn = store.begin()
            try:
                a, b = rng.sample(range(accounts), 2)
                rows = await now(txn.lookup(SHARD, BY_K, [(a,), (b,)]))
                amount = rng.randrange(1, 9)
                await now(txn.begin_write([SHARD]))
                changes = [
                    (r.row_id, (r.values[0], r.values[1] + d, ""))
                    for r, d in zip(rows, (-amount, amount), strict=True)
                ]
                await now(txn.update(SHARD, changes))
                await now(txn.commit())
            except TxnError:
                txn.rollback()
            await asyncio.sleep(0)

    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(hot_rows=12))
        await make_table(store, [(k, each, "") for k in range(accounts)])
        totals: list[int] = []

        async def watch(subscription: Subscription, slow: bool) -> None:
            total, at = 0, 0
            async for event in subscription:
                ts = event.ts
                if ts != at or isinstance(event, Progress):
                    if at:
                        totals.append(total)
                    at = ts
                if isinstance(event, Changes):
                    total += sum(c.row[1] * c.diff for c in event.rows)
                if slow:
                    await asyncio.sleep(0.001)

        watched = [store.subscribe([SHARD]) for _ in range(3)]
        watchers = [asyncio.ensure_future(watch(s, i > 0)) for i, s in enumerate(watched)]
        await asyncio.gather(*(client(store, random.Random(i)) for i in range(4)))
        end = store.read_ts()
        while any(s.position < end for s in watched):
            await asyncio.sleep(0.005)
        for subscription in watched:
            subscription.close()
        await asyncio.gather(*watchers)
        assert len(totals) > 100
        assert set(totals) == {accounts * each}
        await store.close()

    with small_pieces():
        run(body)


@pytest.mark.parametrize("lapses", [False, True])
def test_closed_before_its_first_step_a_subscription_just_ends(lapses: bool) -> None:
    """Whoever waits for it is told so, not that he has been cancelled."""

    async def go() -> None:
        store = await open_memory_store()
        await make_table(store)
        subscription = store.subscribe([SHARD])
        waiting = asyncio.ensure_future(anext(subscription))
        await asyncio.sleep(0)  # it has begun to read, and nothing has been read
        if lapses:
            subscription.lapse(3)
            with pytest.raises(SubscriptionLapsed):
                await waiting
        else:
            subscription.close()
            with pytest.raises(StopAsyncIteration):
                await waiting
        await store.close()

    run(go)
