"""One simulated transaction: the calls an engine would make, and the notes of what came back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from tests.sim.checker.history import Op
from tests.sim.recorder import Record, Recorder
from tests.sim.tables import BANK, CELLS, DDL, LISTS, NAME_OF, PK, Sizes, parse
from tests.support.store import snapshot_rows
from txn.transaction import StoreTransaction
from txn.types import IndexId, KeyRange, Row, ShardId, StoredRow

T = TypeVar("T")


async def now(value: T | Awaitable[T]) -> T:
    """Await what has to be awaited."""
    return await value if isinstance(value, Awaitable) else value


class Session:
    """A transaction with its record; bodies of workloads call it."""

    def __init__(
        self,
        txn: StoreTransaction,
        record: Record,
        recorder: Recorder,
        rng: random.Random,
        sizes: Sizes,
        arrive: Callable[[], Awaitable[None]],
    ) -> None:
        self.txn = txn
        self.record = record
        self.recorder = recorder
        self.rng = rng
        self.sizes = sizes
        self.arrive = arrive
        self.wrote = False

    async def pause(self) -> None:
        """Let time pass between two statements, as interactive clients do."""
        draw = self.rng.random()
        if draw < 0.5:
            await asyncio.sleep(self.rng.expovariate(1000))
        elif draw < 0.52:
            await asyncio.sleep(self.rng.expovariate(5))

    async def statement(self, shard: ShardId | None = None, scans: Sequence[ShardId] = ()) -> None:
        """Start a statement; one that writes ``shard`` prepares for it."""
        await self.pause()
        await self.arrive()
        self.txn.next_statement()
        if shard is not None:
            await now(self.txn.begin_write([shard], scans))
            self.wrote = True

    # -- reading -------------------------------------------------------------------------------------

    async def rows(
        self, shard: ShardId, keys: Sequence[int], how: str = "", *, for_update: bool = False
    ) -> dict[int, StoredRow]:
        """Read rows by primary key; ``how``: key, range, scan, snapshot (drawn if not given). Missing ones are left out."""
        txn, rng = self.txn, self.rng
        how = how or rng.choices(("key", "range", "scan", "snapshot"), (80, 14, 5, 1))[0]
        if how == "range" and not self._is_sorted(shard, PK):
            how = "scan"
        if how == "key":
            if rng.random() < 0.5:
                found = await now(txn.lookup(shard, PK, [(k,) for k in keys], for_update=for_update))
            else:
                found = []
                for k in keys:
                    found += await now(txn.lookup(shard, PK, [(k,)], for_update=for_update))
        elif how == "range":
            bounds = KeyRange(has_lower=True, lower=min(keys), has_upper=True, upper=max(keys))
            found = await now(txn.range(shard, PK, bounds, reverse=rng.random() < 0.3, for_update=for_update))
        elif how == "scan" or shard == DDL:
            wanted = set(keys)
            rows = txn.scan(shard, for_update=for_update, predicate=lambda row: row[0] in wanted)
            found = [row async for chunk in rows for row in chunk]
        else:
            found = [StoredRow(*row) for row in _snapshot(await now(txn.snapshot(shard)))]
        self.check_unique(shard, found)
        return {row.values[0]: row for row in found if row.values[0] in keys}

    def _is_sorted(self, shard: ShardId, index: IndexId) -> bool:
        return next(i.kind for i in self.txn.spec(shard).indexes if i.index == index) == "sorted"

    def check_unique(self, shard: ShardId, rows: Sequence[StoredRow]) -> None:
        """Note the primary keys found if one was found twice."""
        keys = tuple(row.values[0] for row in rows)
        if len(set(keys)) < len(keys):
            self.record.ops.append(Op("unique", f"{NAME_OF[shard]} primary key", keys))

    async def read(
        self, shard: ShardId, keys: Sequence[int], how: str = "", *, for_update: bool = False
    ) -> dict[int, StoredRow]:
        """Read and note registers or lists."""
        how = how or self.rng.choices(("key", "range", "scan"), (80, 15, 5))[0]
        rows = await self.rows(shard, keys, how, for_update=for_update)
        for k in keys:
            self.note(shard, k, rows.get(k), how)
        return rows

    def note(self, shard: ShardId, k: int, row: StoredRow | None, via: str) -> None:
        """Note one row read by primary key."""
        if shard == LISTS:
            value = () if row is None else parse(row.values[2])
            self.record.ops.append(Op("list", ("list", k), value, via))
        else:
            self.record.read((NAME_OF[shard], k), None if row is None else content(shard, row.values), via)

    # -- writing -------------------------------------------------------------------------------------

    async def put(self, shard: ShardId, k: int, row: Row, old: StoredRow | None) -> None:
        """Insert or replace a row that was read before."""
        txn = self.txn
        if old is None:
            await now(txn.insert(shard, [row]))
        elif self.rng.random() < 0.1:
            # The same for everyone else, but another row.
            await now(txn.delete(shard, [old.row_id]))
            if self.rng.random() < 0.5:
                txn.next_statement()
            await now(txn.insert(shard, [row]))
        elif await now(txn.update(shard, [(old.row_id, row)])) != [True]:
            raise AssertionError(f"a locked row of {NAME_OF[shard]} has vanished")

    async def write(self, shard: ShardId, k: int, old: StoredRow | None, balance: int = 0) -> None:
        """Set a register to a new tag and note it."""
        tag = self.recorder.value()
        second = {CELLS: tag % 3, BANK: balance}.get(shard, k % 4)
        row = (k, second, str(tag))
        await self.put(shard, k, row, old)
        self.record.write((NAME_OF[shard], k), content(shard, row), "unique" if old is None else "key")


def content(shard: ShardId, row: Row) -> Any:
    """Return a register row's value."""
    return (row[1], int(row[2])) if shard == BANK else int(row[2])


def _snapshot(snapshot: Any) -> list[Any]:
    return [(row_id, values, begin) for row_id, begin, values in snapshot_rows(snapshot)]
