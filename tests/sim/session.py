"""One simulated transaction: the calls an engine would make, and the notes of what came back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from tests.sim.checker.history import Op
from tests.sim.recorder import Record, Recorder
from tests.sim.tables import (
    BANK,
    CELLS,
    DDL,
    LISTS,
    NAME_OF,
    PK,
    TIDE,
    Sizes,
    content,
    extra,
    families,
    parse,
)
from tests.support.store import snapshot_rows
from txn.base.errors import TxnError
from txn.base.types import IndexId, KeyRange, Row, ShardId, StoredRow
from txn.locks.mode import RowLock
from txn.store import ShardStore
from txn.transaction.transaction import StoreTransaction

T = TypeVar("T")


async def now(value: T | Awaitable[T]) -> T:
    """Await what has to be awaited."""
    return await value if isinstance(value, Awaitable) else value


class GivenUp(TxnError):
    """A client that rolls back."""


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
        store: ShardStore,
    ) -> None:
        self.txn = txn
        self.store = store
        self.record = record
        self.recorder = recorder
        self.rng = rng
        self.sizes = sizes
        self.arrive = arrive
        self.wrote = False
        self._renewals = random.Random(record.id)  # its own: what else is drawn for a seed stays as it was

    async def pause(self) -> None:
        """Let time pass between two statements, as interactive clients do."""
        draw = self.rng.random()
        if draw < 0.5:
            await asyncio.sleep(self.rng.expovariate(1000))
        elif draw < 0.52:
            await asyncio.sleep(self.rng.expovariate(5))

    async def statement(self, shard: ShardId | None = None, scans: Sequence[ShardId] = ()) -> None:
        """Start a statement; one that writes ``shard`` prepares for it, others may look at the present."""
        await self.pause()
        await self.arrive()
        if shard is None and self._renewals.random() < 0.1:
            self.txn.renew(after_reads=True)
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
        for_update = self.row_lock(for_update)
        how = how or rng.choices(("key", "range", "scan", "snapshot"), (80, 14, 5, 1))[0]
        if how == "range" and not self.is_sorted(shard, PK):
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
        if how in ("key", "range") and rng.random() < 0.2:
            await self.compare_with_extra(shard, found)
        return {row.values[0]: row for row in found if row.values[0] in keys}

    def row_lock(self, for_update: bool) -> bool | RowLock:
        """Choose one of the locks under which nobody else can replace a row."""
        draw = self.rng.random()
        if not for_update or draw < 0.6:
            return for_update
        return "update" if draw < 0.7 else "no key update" if draw < 0.85 else "share"

    async def compare_with_extra(self, shard: ShardId, rows: Sequence[StoredRow]) -> None:
        """Find rows that were read a second time by the index that comes and goes, if it is there."""
        index = extra(self.txn.spec(shard))
        if index is None or shard == DDL:
            return
        (attnum,) = index.attnums
        found = await now(self.txn.lookup(shard, index.index, [(row.values[attnum - 1],) for row in rows]))
        expected, seen = (sorted(str(row.values) for row in r) for r in (rows, found))
        self.record.ops.append(Op("total", f"{NAME_OF[shard]} by extra index", (expected, seen)))

    def is_sorted(self, shard: ShardId, index: IndexId) -> bool:
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
        note_row(self.record, shard, k, row, via)

    @property
    def changed(self) -> bool:
        """Something of what it has written is left."""
        return any(op.kind in ("append", "write") for op in self.record.ops)

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


def note_row(record: Record, shard: ShardId, k: int, row: StoredRow | None, via: str) -> None:
    """Note a row, or that there is none, as a register or list."""
    if shard in (LISTS, TIDE):
        (family,) = families(shard)
        record.ops.append(Op("list", (family, k), () if row is None else parse(row.values[2]), via))
    else:
        record.read((NAME_OF[shard], k), None if row is None else content(shard, row.values), via)


def _snapshot(snapshot: Any) -> list[Any]:
    return [(row_id, values, begin) for row_id, begin, values in snapshot_rows(snapshot)]
