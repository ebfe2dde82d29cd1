"""Random histories of concurrent transactions are strictly serializable.

Every transaction notes what it read. Commit timestamps claim a total order; the checker replays the committed
transactions in that order over a plain dict and requires that each read is what the dict says at its place, and
that the order agrees with real time. A claimed order that explains every read is a serialization.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import (
    BY_K,
    BY_V,
    SHARD,
    make_table,
    now,
    open_memory_store,
    snapshot_rows,
    tiny_limits,
)
from txn.base.errors import Deadlock, DuplicateKey, LockNotAvailable, WriteConflict
from txn.base.types import KeyRange
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions

KEYS = 8
State = dict[int, tuple[int, int, str]]


@dataclass
class Committed:
    """A committed transaction: its place in the claimed order, real times, reads in order, final writes."""

    place: tuple[int, int]
    began: int
    ended: int
    name: int
    events: list[tuple[Any, ...]] = field(default_factory=list)


class History:
    def __init__(self) -> None:
        self.transactions: list[Committed] = []
        self.time = 0

    def tick(self) -> int:
        self.time += 1
        return self.time

    def check(self, initial: State) -> None:
        order = sorted(self.transactions, key=lambda t: t.place)
        for txn in order:
            for other in order:
                if other.ended < txn.began:
                    assert other.place <= txn.place, f"{other.name} ended before {txn.name} began"
        state = dict(initial)
        for txn in order:
            for event in txn.events:
                match event:
                    case ("key", k, seen):
                        assert state.get(k) == seen, (txn.name, event)
                    case ("exists", k, seen):
                        assert (k in state) == seen, (txn.name, event)
                    case ("some", v, seen):
                        assert sorted(r for r in state.values() if r[1] == v) == seen, (txn.name, event)
                    case ("value", v, seen):
                        assert sorted(r for r in state.values() if r[1] == v) == seen, (txn.name, event)
                    case ("range", low, high, seen):
                        assert sorted(r for r in state.values() if low <= r[0] <= high) == seen, (
                            txn.name,
                            event,
                        )
                    case ("first", v, reverse, limit, seen):
                        rows = [r for r in state.values() if r[1] >= v]
                        rows.sort(key=lambda r: r[1], reverse=reverse)
                        assert [r[1] for r in rows[:limit]] == [r[1] for r in seen], (txn.name, event)
                        assert all(r in rows for r in seen), (txn.name, event)
                    case ("all", seen):
                        assert sorted(state.values()) == seen, (txn.name, event)
                    case ("put", row):
                        state[row[0]] = row
                    case ("remove", k):
                        del state[k]
                    case _:
                        raise AssertionError(event)


async def pause(rng: random.Random) -> None:
    for _ in range(rng.choice((0, 0, 0, 1, 2, 7))):
        await asyncio.sleep(0)


def strength(txn: Any, rng: random.Random) -> Any:
    """Return a row lock for a read, mostly none."""
    if not txn.writing or rng.random() < 0.6:
        return False
    return rng.choice((True, "update", "no key update", "share", "key share"))


async def lock_found(txn: Any, rng: random.Random, row: Any, events: list[tuple[Any, ...]]) -> None:
    """Lock a row that was read, as SELECT ... FOR does; what it is then may be relied on."""
    mode = rng.choice(("update", "no key update", "share", "key share"))
    wait = rng.choice(("block", "block", "nowait", "skip"))
    (latest,) = await now(txn.lock_rows(SHARD, [row.row_id], mode, wait))
    if latest is not None:
        k = latest.values[0]
        events.append(("exists", k, True) if mode == "key share" else ("key", k, latest.values))


async def read(txn: Any, rng: random.Random, events: list[tuple[Any, ...]]) -> None:
    k = rng.randrange(KEYS)
    how = rng.choice(
        (
            "key",
            "key",
            "key",
            "value",
            "range",
            "range",
            "first",
            "first",
            "all",
            "some",
            "some",
            "snapshot",
            "lock",
        )
    )
    if how == "key":
        mode = strength(txn, rng)
        rows = await now(txn.lookup(SHARD, BY_K, [(k,)], for_update=mode))
        assert len(rows) < 2
        # who locks KEY SHARE relies on the key alone
        found = rows[0].values if rows else None
        events.append(("exists", k, bool(rows)) if mode == "key share" else ("key", k, found))
    elif how == "lock" and txn.writing:
        for row in await now(txn.lookup(SHARD, BY_K, [(k,)], peek=True)):
            await lock_found(txn, rng, row, events)
    elif how == "value":
        v = rng.randrange(3)
        rows = await now(txn.lookup(SHARD, BY_V, [(v,)]))
        events.append(("value", v, sorted(r.values for r in rows)))
    elif how == "range":
        wanted = KeyRange(has_lower=True, lower=k, has_upper=True, upper=k + 2)
        mode = strength(txn, rng)
        rows = await now(txn.range(SHARD, BY_K, wanted, for_update=False if mode == "key share" else mode))
        events.append(("range", k, k + 2, [r.values for r in rows]))
    elif how == "first":
        v, reverse, limit = rng.randrange(3), rng.random() < 0.5, rng.randrange(1, 4)
        wanted = KeyRange(has_lower=True, lower=v)
        rows = await now(txn.range(SHARD, BY_V, wanted, reverse=reverse, limit=limit))
        events.append(("first", v, reverse, limit, [r.values for r in rows]))
    elif how == "some":
        v = rng.randrange(3)
        chunks = txn.scan(
            SHARD, predicate=lambda row: row[1] == v, for_update=txn.writing and rng.random() < 0.3
        )
        events.append(("some", v, sorted([r.values async for c in chunks for r in c if r.values[1] == v])))
    elif how == "snapshot":
        snapshot = await now(txn.snapshot(SHARD))
        events.append(("all", sorted(v for _r, _b, v in snapshot_rows(snapshot))))
    else:
        seen = sorted([r.values async for chunk in txn.scan(SHARD) for r in chunk])
        events.append(("all", seen))


async def write(txn: Any, rng: random.Random, name: int, events: list[tuple[Any, ...]]) -> None:
    k = rng.randrange(KEYS)
    rows = await now(txn.lookup(SHARD, BY_K, [(k,)], for_update=rng.random() < 0.7))
    row = (k, rng.randrange(3), f"{name}.{len(events)}")
    events.append(("key", k, rows[0].values if rows else None))
    if not rows:
        try:
            await now(txn.insert(SHARD, [row]))
        except DuplicateKey:
            raise AssertionError("the key was locked and absent") from None
        events.append(("put", row))
    elif rng.random() < 0.25:
        assert await now(txn.delete(SHARD, [rows[0].row_id])) == [True]
        events.append(("remove", k))
    else:
        assert await now(txn.update(SHARD, [(rows[0].row_id, row)])) == [True]
        events.append(("put", row))
    txn.next_statement()


async def client(
    store: ShardStore, history: History, rng: random.Random, name: int, outcomes: Counter[str]
) -> None:
    for _ in range(6):
        read_only = rng.random() < 0.25
        began = history.tick()
        txn = store.begin(read_only=read_only, session=name)
        txn.next_statement()
        events: list[tuple[Any, ...]] = []
        try:
            for _ in range(rng.randrange(1, 5)):
                await pause(rng)
                mark, before_it = txn.begin_statement(), len(events)
                try:
                    if not read_only and rng.random() < 0.5:
                        if not txn.writing:
                            await now(txn.begin_write([SHARD], [SHARD] if rng.random() < 0.1 else []))
                        await write(txn, rng, name, events)
                    else:
                        await read(txn, rng, events)
                except WriteConflict:
                    if rng.random() < 0.2 or not txn.undo_statement(mark):
                        raise
                    del events[before_it:]
                    outcomes["undone"] += 1
            await pause(rng)
            if rng.random() < 0.1:
                txn.rollback()
                outcomes["rollback"] += 1
                continue
            before = store.read_ts()
            ts = await now(txn.commit())
        except (Deadlock, WriteConflict, LockNotAvailable) as error:
            outcomes[type(error).__name__] += 1
            txn.rollback()
            continue
        outcomes["commit"] += 1
        # At one timestamp, the write comes before those that read it (or wrote nothing in the end).
        place = (ts, 0 if ts > before and txn.writing else 1)
        history.transactions.append(Committed(place, began, history.tick(), name, events))


async def upkeep(store: ShardStore, rng: random.Random, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await pause(rng)
        await asyncio.sleep(0)
        match rng.randrange(3):
            case 0:
                await store.flush()
            case 1:
                store.core.vacuum()
            case _:
                store.validate()


@pytest.mark.parametrize("seed", range(25))
def test_random_histories_are_strictly_serializable(seed: int) -> None:
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()

    async def go() -> None:
        with tiny_limits():
            store = await open_memory_store(options=TxnOptions(table_locks=6 if seed % 4 == 0 else 5000))
            initial = [(k, k % 3, "initial") for k in range(0, KEYS, 2)]
            await make_table(store, initial)
            history = History()
            stop = asyncio.Event()
            care = asyncio.ensure_future(upkeep(store, rng, stop))
            await asyncio.gather(*(client(store, history, rng, n, outcomes) for n in range(1, 9)))
            stop.set()
            await care
            store.validate()
            assert len(store.core.locks) == 0
            assert len(store.core.holds) == 0
            history.check({r[0]: r for r in initial})
            await store.close()

    run(go)
    assert outcomes["commit"] >= 10


def test_the_checker_refuses_a_lost_update() -> None:
    history = History()
    history.transactions = [
        Committed((5, 0), 1, 4, 1, [("key", 1, (1, 0, "a")), ("put", (1, 1, "b"))]),
        Committed((6, 0), 2, 3, 2, [("key", 1, (1, 0, "a")), ("put", (1, 2, "c"))]),
    ]
    with pytest.raises(AssertionError):
        history.check({1: (1, 0, "a")})


def test_the_checker_refuses_a_stale_read() -> None:
    history = History()
    history.transactions = [
        Committed((5, 0), 1, 2, 1, [("put", (1, 1, "b"))]),
        Committed((4, 1), 3, 4, 2, [("key", 1, (1, 0, "a"))]),
    ]
    with pytest.raises(AssertionError):
        history.check({1: (1, 0, "a")})
