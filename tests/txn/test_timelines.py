"""Several timelines in one store: whose timestamps are whose, across crashes and beside common commits (A9-A12, U13)."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Mapping
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, StepClock, now, open_memory_store, spec, tear_away, tiny_limits
from txn.base.errors import CrossesTimelines, ReadBelowSince, TxnError
from txn.base.slices import at_once
from txn.base.types import KeyRange, Row, ShardId, Timestamp
from txn.log.timeline import DEFAULT_TIMELINE
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions
from txn.upkeep.subscribe import Changes
from txn.wal.read import DamagedLog

COMMON = ShardId(99)
OPTIONS = TxnOptions(retention_ms=10**9, common_shards=frozenset((COMMON,)))
NAMES = (DEFAULT_TIMELINE, "a", "b")

State = dict[ShardId, dict[int, int]]
"""Of each shard the values by key."""


async def open_(disk: MemoryDisk, clock: StepClock | None = None) -> ShardStore:
    return await open_memory_store(disk, OPTIONS, clock)


async def make(store: ShardStore, shard: int, timeline: str = DEFAULT_TIMELINE) -> ShardId:
    txn = store.begin()
    txn.create_shard(dataclasses.replace(spec(shard), timeline=timeline))
    await now(txn.begin_write([ShardId(shard)]))
    await now(txn.commit())
    return ShardId(shard)


async def put(
    store: ShardStore, rows: Mapping[ShardId, Mapping[int, int]], timeline: str | None
) -> Timestamp:
    """Set values by key in one transaction of a timeline; None: one that enters none."""
    txn = store.begin(timeline=timeline)
    await now(txn.begin_write(sorted(rows)))
    for shard, wanted in rows.items():
        for k, v in wanted.items():
            found = await now(txn.lookup(shard, BY_K, [(k,)], for_update=True))
            if found:
                await now(txn.update(shard, [(found[0].row_id, (k, v, str(v)))]))
            else:
                await now(txn.insert(shard, [(k, v, str(v))]))
        txn.next_statement()
    return await now(txn.commit())


async def read(
    store: ShardStore, shard: ShardId, timeline: str, at: Timestamp | None = None
) -> dict[int, int]:
    txn = store.begin(read_only=True, at=at, timeline=timeline)
    rows: list[Row] = [r.values for r in await now(txn.range(shard, BY_K, KeyRange()))]
    txn.rollback()
    return {k: v for k, v, _text in rows}


def test_a_commit_moves_its_own_timeline_and_a_common_one_moves_all() -> None:
    async def body() -> None:
        store = await open_(MemoryDisk())
        await store.create_timeline("a")
        await make(store, 99)
        here, there = await make(store, 1), await make(store, 2, "a")
        before = store.read_ts()
        assert store.read_ts("a") == before, "the last schema change is in both"
        first = await put(store, {there: {1: 1}}, "a")
        assert (store.read_ts(), store.read_ts("a")) == (before, first)
        second = await put(store, {here: {1: 1}}, None)
        assert (store.read_ts(), store.read_ts("a")) == (second, first)
        for timeline in NAMES[:2]:
            common = await put(store, {COMMON: {1: 1}}, timeline)
            assert store.read_ts() == store.read_ts("a") == common > max(first, second)
        assert await put(store, {there: {1: 2}}, "a") > common
        # what should never be asked for is still one moment of both
        both = await put(store, {here: {1: 3}, there: {1: 3}}, None)
        assert store.read_ts() == store.read_ts("a") == both
        await store.close()

    run(body)


def test_a_timestamp_means_nothing_in_another_timeline() -> None:
    async def body() -> None:
        store = await open_(MemoryDisk())
        await store.create_timeline("a")
        await make(store, 99)
        here, there = await make(store, 1), await make(store, 2, "a")
        for timeline, other in ((None, there), ("a", here)):
            txn = store.begin(timeline=timeline)
            with pytest.raises(CrossesTimelines, match=f"shard {other}"):
                await now(txn.range(other, BY_K, KeyRange()))
            await now(txn.range(COMMON, BY_K, KeyRange()))
            txn.rollback()
        with pytest.raises(CrossesTimelines, match="timeline a"):
            store.subscribe([here, there])
        txn = store.begin()
        assert txn.timeline_name is None
        assert set(txn.read_points()) == {DEFAULT_TIMELINE, "a"}
        await put(store, {there: {1: 1}}, "a")
        assert txn.enter("a") is None
        assert await now(txn.range(there, BY_K, KeyRange())) == [], "as of when it began"
        assert txn.shards_used() == [there]
        assert txn.enter(DEFAULT_TIMELINE) == "a"
        with pytest.raises(KeyError):
            store.begin().enter("nowhere")
        txn.rollback()
        await store.close()

    run(body)


def test_holds_and_history_are_of_a_timeline() -> None:
    async def body() -> None:
        options = dataclasses.replace(OPTIONS, retention_ms=0)
        store = await open_memory_store(MemoryDisk(), options)
        await store.create_timeline("a")
        await make(store, 99)
        here, there = await make(store, 1), await make(store, 2, "a")
        await put(store, {COMMON: {1: 0}}, None)
        held = store.hold(timeline="a")
        at = store.read_ts("a")
        for n in range(5):
            await put(store, {here: {1: n}}, None)
            await put(store, {there: {1: n}}, "a")
            await put(store, {COMMON: {1: n + 1}}, None)
        store.core.vacuum()
        assert not store.core.garbage, "a hold in one timeline keeps nothing of another"
        assert await read(store, there, "a", at) == {}
        assert await read(store, COMMON, "a", at) == {1: 0}, "what is common is kept for whoever holds it"
        with pytest.raises(ReadBelowSince):
            store.begin(read_only=True, at=at)
        store.release(held)
        store.core.vacuum()
        assert store.core.superseded() == 0
        with pytest.raises(ReadBelowSince):
            store.begin(read_only=True, at=at, timeline="a")
        assert len(store.core.holds) == 0
        await store.close()

    run(body)


def test_a_dropped_timeline_leaves_nothing_behind() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        store = await open_(disk)
        await store.create_timeline("a")
        there = await make(store, 2, "a")
        await put(store, {there: {1: 1}}, "a")
        with pytest.raises(ValueError, match="shard 2"):
            store.drop_timeline("a")
        reader = store.begin(read_only=True, timeline="a")
        await store.forget(there)
        removal = store.drop_timeline("a")
        assert not store.has_timeline("a")
        await store.create_timeline("a")  # before the old register is gone
        await removal
        newest = await put(store, {await make(store, 3, "a"): {1: 1}}, "a")
        assert [r.values[1] for r in await now(reader.range(there, BY_K, KeyRange()))] == [1]
        reader.rollback()
        await store.flush()
        at_once(store.core.forgetting())
        assert not store.core.timelines.left
        assert there not in store.core.shards
        await tear_away(store, disk)
        store = await open_(disk)
        await store.keep_timelines(["a"])
        assert store.read_ts("a") >= newest
        await store.forget(ShardId(3))
        await store.drop_timeline("a")
        await tear_away(store, disk)
        store = await open_(disk)  # the log still tells of shards in it
        assert not store.has_timeline("a")
        await store.create_timeline("b")
        await tear_away(store, disk)
        store = await open_(disk)
        await store.keep_timelines([])
        assert len(store.core.timelines) == 1
        await store.close()

    run(body)


def test_a_subscription_follows_its_own_timeline() -> None:
    async def body() -> None:
        store = await open_(MemoryDisk())
        await store.create_timeline("a")
        here, there = await make(store, 1), await make(store, 2, "a")
        one, two = store.subscribe([here]), store.subscribe([there])
        stamps: dict[ShardId, list[Timestamp]] = {here: [], there: []}
        for n in range(6):
            shard, name = ((here, DEFAULT_TIMELINE), (there, "a"))[n % 2]
            stamps[shard].append(await put(store, {shard: {n: n}}, name))
        for subscription, shard in ((one, here), (two, there)):
            seen: list[Timestamp] = []
            while len(seen) < 3:
                event = await subscription.poll(5)
                assert event is not None
                if isinstance(event, Changes):
                    assert {change.row[0] % 2 for change in event.rows} == {shard - 1}
                    seen.append(event.ts)
            assert seen == stamps[shard]
        until = Timestamp(store.read_ts("a") + 1)
        last = store.subscribe([there], until=until, snapshot=False)
        assert [event async for event in last], "it ends: an empty commit tells that until is reached"
        one.close()
        two.close()
        await store.close()

    run(body)


def test_an_idle_timeline_is_no_obstacle_to_common_commits() -> None:
    """Its reservation has run out, and another timeline is ahead of the clock: all of them hand the same one out."""

    async def body() -> None:
        clock = StepClock()
        store = await open_(MemoryDisk(), clock)
        await store.create_timeline("a")
        await make(store, 99)
        there = await make(store, 2, "a")
        clock.ms += 3_600_000
        oracle = store.core.timelines.by_name["a"].oracle
        assert oracle.bound < store.present()
        common = await put(store, {COMMON: {1: 1}}, None)
        assert store.read_ts("a") == store.read_ts() == common < oracle.bound
        oracle.validate()
        ahead = Timestamp(store.present("a") + (9_000 << 16))
        await oracle.wait_ready(ahead)
        assert oracle.pass_by(ahead)
        before = store.core.log.oracle.bound
        assert before < ahead
        common = await put(store, {COMMON: {1: 2}}, None)
        assert common > ahead
        store.core.log.oracle.validate()
        assert await put(store, {there: {1: 1}}, "a") > common
        await store.close()

    run(body)


@pytest.mark.parametrize("seed", range(30))
def test_timelines_survive_crashes_at_any_step(seed: int) -> None:
    """What was acknowledged is there at its timestamp in its timeline, and timestamps never come again."""
    rng = random.Random(seed)
    shards = {DEFAULT_TIMELINE: ShardId(1), "a": ShardId(2), "b": ShardId(3)}

    async def work(
        store: ShardStore, state: State, newest: dict[str, Timestamp], points: list[tuple[str, Timestamp, State]],
        pending: list[State],
    ) -> None:  # fmt: skip
        for number in range(30):
            name = rng.choice(NAMES)
            changed: State = {shards[name]: {rng.randrange(6): number}}
            common = rng.random() < 0.25
            if common:
                changed[COMMON] = {rng.randrange(3): number}
            after = {shard: {**state[shard], **changed.get(shard, {})} for shard in state}
            pending[:] = [after]
            ts = await put(store, changed, name)
            pending.clear()
            state.update(after)
            for other in NAMES if common else (name,):
                assert ts > newest[other], "timestamps of a timeline only grow"
                newest[other] = ts
                assert store.read_ts(other) >= ts
            points.append(
                (name, ts, {s: dict(rows) for s, rows in state.items() if s in (shards[name], COMMON)})
            )
            if rng.random() < 0.2:
                await store.flush()

    async def check(store: ShardStore, points: list[tuple[str, Timestamp, State]]) -> int:
        checked = 0
        for name, ts, then in points:
            for shard, rows in then.items():
                if ts >= store.since_of(shard) and ts >= store.core.timelines.by_name[name].since:
                    assert await read(store, shard, name, ts) == rows, (name, ts, shard)
                    checked += 1
        return checked

    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_(disk, clock)
        for name in NAMES[1:]:
            await store.create_timeline(name)
        await make(store, 99)
        for name, shard in shards.items():
            await make(store, shard, name)
        state: State = {shard: {} for shard in (*shards.values(), COMMON)}
        newest = {name: store.read_ts(name) for name in NAMES}
        points: list[tuple[str, Timestamp, State]] = []
        for _life in range(4):
            pending: list[State] = []
            disk.crash_at_step = disk.steps + rng.randrange(1, 150)
            try:
                await work(store, state, newest, points, pending)
            except TxnError:
                assert disk.generation
            else:
                assert await check(store, points)
            await tear_away(store, disk)
            store = await open_(disk, clock)
            store.validate()
            for name in NAMES:
                assert store.read_ts(name) >= newest[name]
                store.core.timelines.by_name[name].oracle.validate()
            found: State = {COMMON: await read(store, COMMON, DEFAULT_TIMELINE)}
            for name, shard in shards.items():
                found[shard] = await read(store, shard, name)
                assert await read(store, COMMON, name) == found[COMMON], "all timelines see one catalog"
            assert found in [state, *pending]
            state.update(found)
            await check(store, points)
        await store.close()

    with tiny_limits(), mock.patch("txn.wal.txns._RETRY_S", 0.0001):
        run(body)


def test_common_commits_beside_many_writers() -> None:
    """Batches that hold commits of several timelines and common ones: in the log's order each timeline only grows."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_(disk)
        for name in NAMES[1:]:
            await store.create_timeline(name)
        await make(store, 99)
        shards = {name: await make(store, n, name) for n, name in enumerate(NAMES, 1)}
        work = []
        for number in range(120):
            name = NAMES[number % 3]
            rows: State = {shards[name]: {number: number}}
            if number % 10 == 0:
                rows[COMMON] = {number: number}
            work.append(put(store, rows, name))
        stamps = await asyncio.gather(*work)
        common = [ts for number, ts in enumerate(stamps) if number % 10 == 0]
        for n, name in enumerate(NAMES):
            mine = [ts for number, ts in enumerate(stamps) if number % 3 == n and number % 10]
            assert len(set(mine)) == len(mine)
            assert not set(mine) & set(common)
            # exactly what was committed at or below a common commit is there at it
            for ts in common:
                seen = await read(store, shards[name], name, ts)
                assert set(seen) == {k for k in range(n, 120, 3) if stamps[k] <= ts}
        await tear_away(store, disk)
        store = await open_(disk)
        for n, name in enumerate(NAMES):
            assert set(await read(store, shards[name], name)) == set(range(n, 120, 3))
        await store.close()

    run(body)


@pytest.mark.parametrize("lost", ["nothing", "registers"])
def test_a_restart_begins_above_what_every_timeline_has_handed_out(lost: str) -> None:
    """A timestamp that was only read at is told by the register, one that was committed by the log as well."""

    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_(disk, clock)
        for name in NAMES[1:]:
            await store.create_timeline(name)
        here, there = await make(store, 1), await make(store, 2, "a")
        oracle = store.core.timelines.by_name["a"].oracle
        high = Timestamp(store.present("a") + (9_000 << 16))
        await oracle.wait_ready(high)
        assert oracle.pass_by(high)
        if lost == "registers":
            high = await put(store, {there: {1: 1}}, "a")
            assert await put(store, {here: {1: 1}}, None) < high, (
                "the last entry of the log is another timeline's"
            )
        await tear_away(store, disk)
        if lost == "nothing":
            store = await open_(disk, clock)
        else:
            with mock.patch("txn.log.oracle.unseal_number", return_value=Timestamp(0)):
                store = await open_(disk, clock)
        assert store.read_ts("a") >= high
        assert await put(store, {there: {1: 2}}, "a") > high
        await store.close()

    run(body)


def test_a_lost_register_is_no_licence_to_begin_anew() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        store = await open_(disk)
        await store.create_timeline("a")
        await make(store, 2, "a")
        await store.core.log.oracles["a"].remove()
        await tear_away(store, disk)
        with pytest.raises(DamagedLog, match="timeline a is missing"):
            await open_(disk)

    run(body)
