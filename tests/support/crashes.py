"""One client and a disk that tears the power away at a step nobody knows, three times over.

work  ── step ── step ── crash ──> open again: what is read is what was acknowledged, or that and the commit under way
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store, snapshot_rows, tear_away
from txn.base.errors import TxnError
from txn.base.types import KeyRange
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore

State: TypeAlias = dict[int, tuple[Any, ...]]
"""Rows by their key."""
Work: TypeAlias = Callable[[ShardStore, random.Random, list[State], list[State]], Awaitable[None]]
"""Commits transactions: appends to the states acknowledged, and keeps the state of a commit under way in the last list."""


async def content(store: ShardStore) -> list[Any]:
    """Return the committed rows by their key; a scan and a snapshot have to agree."""
    txn = store.begin(read_only=True)
    by_range = [r.values for r in await now(txn.range(SHARD, BY_K, KeyRange()))]
    assert sorted(v for _r, _b, v in snapshot_rows(await now(txn.snapshot(SHARD)))) == by_range
    txn.rollback()
    return by_range


async def three_lives(rng: random.Random, work: Work, most_steps: int) -> None:
    """Let ``work`` crash within ``most_steps`` steps of storage, and look at what is there afterwards, three times."""
    disk = MemoryDisk()
    store = await open_memory_store(disk)
    await make_table(store)
    acknowledged: list[State] = [{}]
    for _life in range(3):
        pending: list[State] = []
        disk.crash_at_step = disk.steps + rng.randrange(1, most_steps)
        try:
            await work(store, rng, acknowledged, pending)
        except TxnError:
            assert disk.generation
        await tear_away(store, disk)
        store = await open_memory_store(disk)
        store.validate()
        found = await content(store)
        assert found in [sorted(s.values()) for s in (acknowledged[-1], *pending)]
        acknowledged.append({row[0]: row for row in found})
    await store.close()
