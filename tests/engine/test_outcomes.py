"""What is known of transactions (engine.base.outcomes) where timelines differ, memory ends, and the server was restarted."""

from __future__ import annotations

import dataclasses

import pytest

from engine.base import outcomes
from engine.base.outcomes import Outcomes
from planner.base.errors import SqlError
from tests.support.durable import run
from tests.support.store import now, open_memory_store, spec
from txn.base.types import ShardId
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions

OPTIONS = TxnOptions(retention_ms=10**9)


async def table(store: ShardStore, number: int, timeline: str) -> ShardId:
    txn = store.begin()
    txn.create_shard(dataclasses.replace(spec(number), timeline=timeline))
    await now(txn.begin_write([ShardId(number)]))
    await now(txn.commit())
    return ShardId(number)


async def write(store: ShardStore, known: Outcomes, shard: ShardId, timeline: str, key: int) -> int:
    """Commit a row in a transaction whose id is asked for; returns the id."""
    txn = store.begin(timeline=timeline)
    number = known.tell(txn)
    await now(txn.begin_write([shard]))
    await now(txn.insert(shard, [(key, key, str(key))]))
    await now(txn.commit())
    return number


def running(value: str) -> set[int]:
    return set(map(int, value.split(":")[2].split(",")))


def test_commits_count_in_their_own_timeline() -> None:
    async def play() -> None:
        store = await open_memory_store(MemoryDisk(), OPTIONS)
        await store.create_timeline("a")
        await store.create_timeline("b")
        in_a, in_b = await table(store, 1, "a"), await table(store, 2, "b")
        known = Outcomes(store)
        before = store.begin(timeline="a")
        open_to_all = store.begin()
        first = await write(store, known, in_a, "a", 1)
        second = await write(store, known, in_b, "b", 1)
        for reader, missed in ((before, {first}), (open_to_all, {first, second}), (store.begin(), set())):
            seen = running(known.snapshot(reader))
            assert reader.id in seen
            assert {first, second} & seen == missed
        assert known.status(first) == known.status(second) == "committed"
        await store.close()

    run(play)


def test_a_reader_of_what_is_forgotten_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "KEPT", 2)

    async def play() -> None:
        store = await open_memory_store(MemoryDisk(), OPTIONS)
        await store.create_timeline("a")
        shard = await table(store, 1, "a")
        known = Outcomes(store)
        start = store.read_ts("a")
        reader = store.begin(timeline="a")
        told = store.begin(timeline="a")
        long = known.tell(told)
        numbers = [await write(store, known, shard, "a", key) for key in range(2)]
        assert set(numbers) <= running(known.snapshot(reader))
        numbers.append(await write(store, known, shard, "a", 2))
        with pytest.raises(SqlError, match="snapshot too old") as caught:
            known.snapshot(reader)
        assert caught.value.sqlstate == "72000"
        assert [known.status(number) for number in numbers] == [None, "committed", "committed"]
        assert known.status(long) == "in progress"
        await now(told.commit())
        assert known.status(long) == "committed"
        again = Outcomes(store)  # as after a restart
        assert again.status(numbers[-1]) is None
        again.snapshot(store.begin(timeline="a"))
        with pytest.raises(SqlError, match="snapshot too old"):
            again.snapshot(store.begin(read_only=True, at=start, timeline="a"))
        await store.close()

    run(play)
