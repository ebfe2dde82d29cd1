"""The txns shard as the design has it: register, commit_at, apply, tidy, forget; uppers and the critical since (C14-C42)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import pytest

import txn.wal.txns
from tests.support.durable import run
from tests.support.store import BY_K, StepClock, now, open_memory_store, spec, tear_away, tiny_limits
from txn.base.errors import LockTimeout, SchemaChanged, TimestampPassed, TxnError
from txn.base.records import Batch
from txn.base.types import KeyRange, ShardId, Timestamp
from txn.inspect import ShardFacts
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions

D0, D1 = ShardId(1), ShardId(2)


async def put(store: ShardStore, shards: list[ShardId], k: int, at: Timestamp | None = None) -> Timestamp:
    """Insert a row of key ``k`` into shards, in one transaction."""
    txn = store.begin()
    await now(txn.begin_write(shards))
    for shard in shards:
        await now(txn.insert(shard, [(k, k, "x")]))
    return await now(txn.commit() if at is None else txn.commit_at(at))


async def keys(store: ShardStore, shard: ShardId) -> list[int]:
    txn = store.begin(read_only=True)
    found = [r.values[0] for r in await now(txn.range(shard, BY_K, KeyRange()))]
    txn.rollback()
    return found


def facts(store: ShardStore, shard: ShardId) -> ShardFacts:
    return next(f for f in store.inspect_shards() if f.shard == shard)


def soon(store: ShardStore, ahead: int = 100) -> Timestamp:
    """Return a timestamp a little above all handed out."""
    return Timestamp(store.core.log.oracle.present() + ahead)


def test_the_design_s_own_example() -> None:
    """Register two shards, commit to both, lose a timestamp to another, commit higher; the other shard moves along."""

    async def body() -> None:
        store = await open_memory_store()
        registered = await store.register(spec(1)), await store.register(spec(2))
        assert registered[0] < registered[1]
        three = soon(store)
        assert await put(store, [D0, D1], 0, three) == three
        with pytest.raises(TimestampPassed) as passed:
            await put(store, [D0], 1, three)
        assert passed.value.ts == three < passed.value.nearest
        assert await keys(store, D0) == [0]
        four = Timestamp(three + 1)
        assert await put(store, [D0], 1, four) == four == store.read_ts()
        assert (facts(store, D0).physical_upper, facts(store, D1).physical_upper) == (four + 1, three + 1)
        assert facts(store, D0).logical_upper == facts(store, D1).logical_upper == four + 1
        assert [facts(store, d).registered for d in (D0, D1)] == list(registered)
        reader = store.begin(read_only=True, at=three)
        assert len(await now(reader.range(D0, BY_K, KeyRange()))) == 1
        await store.close()

    run(body)


def test_a_refused_commit_leaves_nothing_behind_and_the_rest_of_its_batch_goes_on() -> None:
    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(lock_timeout_ms=50))
        await store.register(spec(1))
        late = await put(store, [D0], 0)
        first, refused, last = (
            asyncio.ensure_future(put(store, [D0], k, at)) for k, at in ((1, None), (2, late), (3, None))
        )
        await asyncio.wait([first, refused, last])
        assert isinstance(refused.exception(), TimestampPassed)
        assert first.result() < last.result()
        assert await keys(store, D0) == [0, 1, 3]
        await put(store, [D0], 2)  # its key is not locked any more
        with pytest.raises(ValueError, match="reservation"):
            await put(store, [D0], 4, soon(store, 60_000 << 16))
        blocker = store.begin()
        await now(blocker.begin_write([D0]))
        await now(blocker.insert(D0, [(4, 4, "y")]))
        with pytest.raises(LockTimeout):
            await put(store, [D0], 4)
        blocker.rollback()
        await store.close()

    run(body)


def test_registering_and_forgetting_twice_is_once() -> None:
    async def body() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store = await open_memory_store(disk, clock=clock)
        at = await store.register(spec(1))
        entries = store.inspect_log().applied
        assert await store.register(spec(1)) == at
        assert store.inspect_log().applied == entries, "nothing is written the second time"
        await put(store, [D0], 1)
        await store.flush()
        await store.close()
        store = await open_memory_store(disk, clock=clock)
        assert await store.register(spec(1)) == at == facts(store, D0).registered
        writer = store.begin()
        await now(writer.begin_write([D0]))
        await now(writer.insert(D0, [(2, 2, "x")]))
        forgetting = asyncio.ensure_future(store.forget(D0))
        await asyncio.sleep(0.01)
        assert not forgetting.done(), "writes come first (C42)"
        await now(writer.commit())
        assert await forgetting
        assert not await store.forget(D0)
        with pytest.raises(SchemaChanged):  # as whoever waited for the drop finds it
            await put(store, [D0], 3)
        with pytest.raises(ValueError, match="exists"):
            await store.register(spec(1))
        await store.close()

    run(body)


def test_applying_and_tidying_again_change_nothing() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await store.register(spec(1))
        batches: list[tuple[Batch, int]] = []
        committer = store.core.log.committer
        real = committer.applier
        assert real is not None

        def noted(batch: Batch, seq: int) -> None:
            batches.append((batch, seq))
            real(batch, seq)

        committer.applier = noted
        for k in range(10):
            await put(store, [D0], k)
        txn = store.begin()
        await now(txn.begin_write([D0]))
        rows = await now(txn.range(D0, BY_K, KeyRange(), for_update=True))
        await now(txn.update(D0, [(rows[0].row_id, (100, 1, "z"))]))
        await now(txn.delete(D0, [rows[1].row_id]))
        await now(txn.commit())
        expected = await keys(store, D0)
        for batch, seq in batches:
            real(batch, seq)
        assert await keys(store, D0) == expected
        store.core.validate()
        await store.flush()
        log = store.inspect_log()
        assert log.critical_since == log.applied + 1, "what manifests cover nobody needs"
        before = store.inspect_log().first
        for _ in range(3):
            await store.core.log._tidy(everything=True)
        assert store.inspect_log().first >= before
        await store.close()

    run(body)


def test_empty_commits_move_every_upper_and_nothing_else() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await store.register(spec(1))
        wrote = await put(store, [D0], 1)
        moved = await store.core.advance_upper()
        assert moved > wrote
        assert (facts(store, D0).physical_upper, facts(store, D0).logical_upper) == (wrote + 1, moved + 1)
        await store.flush()
        assert store.inspect_log().critical_since == store.inspect_log().applied + 1
        await store.close()

    run(body)


State = dict[int, list[int]]
Step = Callable[[ShardStore], Awaitable[Any]]


async def content(store: ShardStore) -> State:
    return {shard: await keys(store, shard) for shard, _spec in store.shards()}


STEPS: list[tuple[str, Step]] = [
    ("register d0", lambda s: s.register(spec(1))),
    ("register d1", lambda s: s.register(spec(2))),
    ("commit to both", lambda s: put(s, [D0, D1], 1)),
    ("commit at a timestamp", lambda s: put(s, [D0, D1], 2, soon(s))),
    ("flush", lambda s: s.flush()),
    ("advance", lambda s: s.core.advance_upper()),
    ("commit to one", lambda s: put(s, [D1], 3)),
    ("forget d0", lambda s: s.forget(D0)),
    ("commit after", lambda s: put(s, [D1], 4)),
    ("flush again", lambda s: s.flush()),
]


def test_a_crash_between_any_two_steps_leaves_a_prefix() -> None:
    """Storage stops at its n-th operation, for every n; what was acknowledged is there, and the rest can be repeated."""
    crashes = 0

    async def life(disk: MemoryDisk, crash_at: int | None) -> bool:
        """Run all steps, crash, reopen, check; False when the crash came after the end."""
        clock = StepClock()
        store = await open_memory_store(disk, clock=clock)
        if crash_at is not None:
            disk.crash_at_step = disk.steps + crash_at
        done: State = {}
        after: State | None = None
        reached = len(STEPS)
        for number, (_name, step) in enumerate(STEPS):
            done = await content(store)
            try:
                await step(store)
            except TxnError:
                reached = number
                break
        else:
            done = await content(store)
        crashed = bool(disk.generation)
        await tear_away(store, disk)
        store = await open_memory_store(disk, clock=clock)
        found = await content(store)
        if found != done:
            # The step that met the crash may have happened; then it is there completely.
            assert reached < len(STEPS)
            again = await open_memory_store(clock=StepClock())
            for _name, step in STEPS[: reached + 1]:
                await step(again)
            after = await content(again)
            await again.close()
            assert found == after, STEPS[reached][0]
        store.core.validate()
        for name, step in STEPS[reached:]:  # whoever tries again at least once gets there
            if "commit" not in name or found != after:
                await step(store)
            found = {}
        expected = {D1: [1, 2, 3, 4]}
        assert await content(store) == expected
        await store.close()
        return crashed and reached < len(STEPS)

    async def body() -> None:
        nonlocal crashes
        crash_at = 1
        while await life(MemoryDisk(), crash_at):
            crashes += 1
            crash_at += 1

    with tiny_limits(), mock.patch.object(txn.wal.txns, "_RETRY_S", 0.0):
        run(body)
    assert crashes > 20
