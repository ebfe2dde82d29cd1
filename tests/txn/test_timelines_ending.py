"""Timelines that come and go beside commits, readers and upkeep that are under way (A9-A12, A24, U13)."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, StepClock, now, open_memory_store, settle, tear_away
from tests.txn.test_durable_holds import altered
from tests.txn.test_timelines import COMMON, OPTIONS, make, open_, put, read
from txn.base.errors import WriteConflict
from txn.base.records import WriteSet
from txn.base.slices import at_once
from txn.base.types import KeyRange, Timestamp
from txn.log import group_commit
from txn.log.oracle import CONFIRM_S, DurableOracle
from txn.log.timeline import DEFAULT_TIMELINE
from txn.persist.memory import MemoryDisk
from txn.upkeep.subscribe import Changes

HOUR_MS = 3_600_000


def test_a_definition_that_is_encoded_while_a_timeline_is_made_happens_in_it_too() -> None:
    """It was submitted when there was one timeline, and joins the queue when there are two."""

    async def body() -> None:
        store = await open_(MemoryDisk())
        await make(store, 99)
        encoded = asyncio.Event()

        def in_pieces(writes: WriteSet) -> Iterator[bytes]:
            while not encoded.is_set():
                yield b""
            yield from slowly(writes)

        slowly = group_commit.encode_write_set_slowly
        with (
            mock.patch.object(group_commit, "FEW_OPS", 0),
            mock.patch.object(group_commit, "is_short", return_value=False),
            mock.patch.object(group_commit, "encode_write_set_slowly", in_pieces),
        ):
            definition = asyncio.ensure_future(put(store, {COMMON: {1: 1}}, None))
            await settle()
            assert store.core.committing
        await store.create_timeline("a")
        there = await make(store, 2, "a")
        before = await put(store, {there: {1: 1}}, "a")
        encoded.set()
        ts = await definition
        assert ts > before, "it is above all that any oracle had handed out"
        assert store.read_ts("a") >= ts, "what is acknowledged is seen in every timeline"
        assert await read(store, COMMON, "a") == {1: 1}
        await store.close()

    run(body)


def test_who_was_in_a_dropped_timeline_defines_by_the_oracles_that_are_left() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        store = await open_(disk)
        await store.create_timeline("a")
        await make(store, 99)
        here = await make(store, 1)
        txn = store.begin(timeline="a")
        await now(txn.begin_write([COMMON]))
        await store.drop_timeline("a")
        before = await put(store, {here: {1: 1}}, None)
        await now(txn.insert(COMMON, [(1, 1, "1")]))
        ts = await now(txn.commit())
        assert ts > before, "timestamps of the default timeline only grow"
        assert store.read_ts() == ts
        assert list(await store.core.log._consensus.keys("oracle/")) == ["oracle/epoch_ms"]
        await store.close()

    run(body)


def test_a_reader_keeps_the_files_of_a_dropped_timeline_whose_name_is_used_anew() -> None:
    async def body() -> None:
        store = await open_memory_store(MemoryDisk(), dataclasses.replace(OPTIONS, retention_ms=0))
        for life in range(2):
            await store.create_timeline("a")
            there = await make(store, 2 + life, "a")
            await put(store, {there: {1: life}}, "a")
            await store.flush()
            if life == 0:
                reader, shard = store.begin(read_only=True, timeline="a"), there
                assert store.core.timelines.oldest_serial() == reader.hold.serial
            await store.forget(there)
            await store.drop_timeline("a")
        await store.create_timeline("a")
        assert store.core.timelines.oldest_serial() == reader.hold.serial, "its files are kept for it"
        await store.flush()
        assert [r.values[1] for r in await now(reader.range(shard, BY_K, KeyRange()))] == [0]
        reader.rollback()
        await store.flush()
        at_once(store.core.forgetting())
        assert not store.core.timelines.left
        await store.close()

    run(body)


def test_a_conflict_names_the_session_of_its_own_timeline() -> None:
    """Commits of two timelines may have the same timestamp."""

    async def body() -> None:
        store = await open_(MemoryDisk())
        await store.create_timeline("a")
        await make(store, 99)
        here, there = await make(store, 1), await make(store, 2, "a")
        same = Timestamp(store.present() + 10)
        readers = {
            shard: store.begin(session=1, timeline=name) for shard, name in ((here, None), (there, "a"))
        }
        for shard, reader in readers.items():
            await now(reader.lookup(shard, BY_K, [(1,)]))
        for session, shard, name in ((7, here, None), (8, there, "a")):
            txn = store.begin(session=session, timeline=name)
            await now(txn.begin_write([shard]))
            await now(txn.insert(shard, [(1, 1, "1")]))
            assert await now(txn.commit_at(same)) == same
        for session, (shard, reader) in zip((7, 8), readers.items(), strict=True):
            with pytest.raises(WriteConflict) as error:
                await now(reader.begin_write([shard]))
            assert error.value.other_session == session
            reader.rollback()
        # a definition has a timestamp of its own, by whichever timeline its transaction came
        for shard, name, other in ((here, None, "a"), (there, "a", None)):
            reader = store.begin(timeline=name)
            await now(reader.lookup(COMMON, BY_K, [(shard,)]))
            txn = store.begin(session=9, timeline=other)
            await now(txn.begin_write([COMMON]))
            await now(txn.insert(COMMON, [(shard, 1, "1")]))
            await now(txn.commit())
            with pytest.raises(WriteConflict) as error:
                await now(reader.begin_write([COMMON]))
            assert error.value.other_session == 9
            reader.rollback()
        await store.close()

    run(body)


@pytest.mark.parametrize("restart", [False, True])
def test_a_clock_that_is_set_back_stops_no_timeline(restart: bool) -> None:
    """One timeline has followed the clock to where it was set; a definition takes the others there as well."""

    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_(disk, clock)
        await store.create_timeline("a")
        await make(store, 99)
        there = await make(store, 2, "a")
        oracle = store.core.timelines.by_name["a"].oracle
        clock.ms += HOUR_MS
        oracle.present()
        clock.ms += int(CONFIRM_S * 1000) + 1
        if restart:  # only the register tells how far it was
            await store.reach(before := store.present("a"), "a")
        else:
            before = await put(store, {there: {1: 1}}, "a")
        clock.ms -= HOUR_MS
        if restart:
            await tear_away(store, disk)
            store = await open_(disk, clock)
        assert await put(store, {COMMON: {1: 1}}, None) > before
        for timeline in store.core.timelines:
            assert timeline.oracle.try_write_ts() is not None, f"{timeline.name} waits an hour for the clock"
        await store.close()

    run(body)


def test_a_durable_hold_is_not_taken_away_for_what_another_timeline_keeps() -> None:
    async def body() -> None:
        options = dataclasses.replace(
            OPTIONS, retention_ms=0, subscription_versions=40, history_versions=1_000_000
        )
        store = await open_memory_store(MemoryDisk(), options)
        await store.create_timeline("a")
        here, there = await make(store, 1), await make(store, 2, "a")
        await put(store, {there: {1: 0}}, "a")
        kept = store.hold(durable=True, timeline="a")
        reader = store.begin(read_only=True, timeline=DEFAULT_TIMELINE)
        for n in range(60):
            await put(store, {here: {1: n}}, None)
        await put(store, {there: {1: 1}}, "a")
        store.core.vacuum()
        assert store.core.superseded() > 40
        assert not kept.lost
        for n in range(60):
            await put(store, {there: {1: n}}, "a")
        store.core.vacuum()
        assert kept.lost
        reader.rollback()
        await store.close()

    run(body)


def test_a_log_that_a_durable_hold_keeps_costs_no_other_timeline_its_own() -> None:
    async def body() -> None:
        options = dataclasses.replace(OPTIONS, hold_at_start=True, hot_rows=15, log_bytes=200)
        store = await open_memory_store(MemoryDisk(), options)
        store.started()
        await store.create_timeline("a")
        here, there = await make(store, 1), await make(store, 2, "a")
        await put(store, {there: {1: 0}}, "a")
        elsewhere = store.hold(durable=True, timeline="a")
        await put(store, {here: {1: 0}}, None)
        await store.flush()
        keeping = store.hold(durable=True)
        await altered(store, here)
        for n in range(40):
            txn = store.begin()
            await now(txn.begin_write([here]))
            await now(txn.insert(here, [(100 + n, n, "more", 1)]))
            await now(txn.commit())
        await store._flusher._look()
        assert keeping.lost
        assert not elsewhere.lost
        await store.close()

    run(body)


def test_what_waits_for_an_oracle_that_goes_brings_no_register_back() -> None:
    async def body() -> None:
        store = await open_(MemoryDisk())
        await store.create_timeline("a")
        oracle = store.core.timelines.by_name["a"].oracle
        assert isinstance(oracle, DurableOracle)
        beyond = Timestamp(oracle.bound + (1 << 26))
        removal = store.drop_timeline("a")
        queued = store.core.log.committer.reach(beyond, oracle)
        await removal
        assert await queued == beyond
        await store.core.advance_upper(None)
        await oracle.wait_ready(beyond)
        assert list(await store.core.log._consensus.keys("oracle/")) == ["oracle/epoch_ms"]
        await store.close()

    run(body)


def test_a_subscription_to_what_is_common_ends_though_a_timeline_is_behind() -> None:
    """An empty commit has to happen everywhere for all of them to have passed ``until``."""

    async def body() -> None:
        store = await open_(MemoryDisk())
        await store.create_timeline("a")
        await make(store, 99)
        here = await make(store, 1)
        common = await put(store, {COMMON: {1: 1}}, "a")
        newest = await put(store, {here: {1: 1}}, None)
        assert store.read_ts("a") == common < newest
        changes = store.subscribe([COMMON], common, Timestamp(newest + 1))
        events = [event async for event in changes]
        assert any(isinstance(event, Changes) for event in events)
        assert store.read_ts("a") >= newest
        await store.close()

    run(body)


def test_a_subscription_to_what_is_common_does_not_vouch_for_commits_of_before() -> None:
    """It joins the feed of the default timeline, which is ahead of what is readable in all."""

    async def body() -> None:
        store = await open_(MemoryDisk())
        await store.create_timeline("a")
        await make(store, 99)
        here = await make(store, 1)
        start = await put(store, {COMMON: {1: 1}}, None)
        newest = await put(store, {here: {1: 1}}, None)
        common = store.subscribe([COMMON], start, snapshot=False)
        changes = store.subscribe([here], start, Timestamp(newest + 1), snapshot=False)
        stamps = [event.ts async for event in changes if isinstance(event, Changes)]
        assert stamps == [newest]
        common.close()
        await store.close()

    run(body)
