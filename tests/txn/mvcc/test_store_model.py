"""The store against brute force: random statements of one writer and several readers, with flushes, merges,
vacuum and restarts at random moments, compared with a dict of rows per timestamp."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.support.logs import log_level
from tests.support.store import (
    BY_K,
    BY_V,
    SHARD,
    StepClock,
    make_table,
    now,
    open_memory_store,
    snapshot_rows,
    tear_away,
    tiny_limits,
)
from txn.base.errors import DuplicateKey
from txn.base.slices import at_once
from txn.base.types import KeyRange
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore

Rows = dict[int, tuple[Any, ...]]
keys = st.integers(0, 12)
values = st.one_of(st.none(), st.integers(0, 4))


class StoreModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.limits = ExitStack()
        self.limits.enter_context(tiny_limits())
        self.limits.enter_context(log_level("txn", logging.ERROR))
        self.disk = MemoryDisk()
        self.clock = StepClock()
        self.store: ShardStore
        self.committed: Rows = {}
        self.readers: list[tuple[Any, Rows]] = []
        self.writer: Any = None
        self.own: Rows = {}
        self.seen: Rows = {}
        self.savepoints: list[tuple[int, Rows, Rows]] = []
        self.serial = 0

    def run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)

    @initialize()
    def start(self) -> None:
        async def go() -> None:
            self.store = await open_memory_store(self.disk, clock=self.clock)
            await make_table(self.store)

        self.run(go())

    def teardown(self) -> None:
        async def go() -> None:
            await self.store.close()

        try:
            self.run(go())
        finally:
            self.limits.close()
            self.loop.close()

    async def call(self, name: str, *arguments: Any) -> Any:
        """Run an operation of the writer, within the loop."""
        return await now(getattr(self.writer, name)(*arguments))

    # -- readers

    @precondition(lambda self: len(self.readers) < 4)
    @rule()
    def open_reader(self) -> None:
        self.readers.append((self.store.begin(read_only=True), dict(self.committed)))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def close_reader(self, data: st.DataObject) -> None:
        txn, expected = self.readers.pop(data.draw(st.integers(0, len(self.readers) - 1)))
        self.check(txn, expected)
        txn.rollback()

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def use_reader(self, data: st.DataObject) -> None:
        self.check(*self.readers[data.draw(st.integers(0, len(self.readers) - 1))])

    @rule()
    def read_latest(self) -> None:
        txn = self.store.begin(read_only=True)
        self.check(txn, self.committed)
        txn.rollback()

    # -- the writer

    def begin(self) -> None:
        if self.writer is None:
            self.writer = self.store.begin()
            self.own = dict(self.committed)
            self.run(self.call("begin_write", [SHARD]))
        self.writer.next_statement()
        self.seen = dict(self.own)

    @rule(rows=st.lists(st.tuples(keys, values), min_size=1, max_size=3))
    def insert(self, rows: list[tuple[int, int | None]]) -> None:
        self.begin()
        made = []
        for k, v in rows:
            self.serial += 1
            made.append((k, v, f"t{self.serial}"))
        taken = {r[0] for r in self.own.values()}
        duplicate = len({k for k, _v in rows}) < len(rows) or any(k in taken for k, _v in rows)
        try:
            ids = self.run(self.call("insert", SHARD, made))
        except DuplicateKey:
            assert duplicate
            return
        assert not duplicate
        self.own.update(zip(ids, made, strict=True))

    @precondition(lambda self: self.own if self.writer else self.committed)
    @rule(data=st.data(), shift=st.integers(0, 3), value=values)
    def update(self, data: st.DataObject, shift: int, value: int | None) -> None:
        self.begin()
        ids = sorted(self.own)
        chosen = data.draw(st.lists(st.sampled_from(ids), unique=True, min_size=1, max_size=3))
        changes = []
        for row_id in chosen:
            self.serial += 1
            changes.append((row_id, (self.own[row_id][0] + shift, value, f"t{self.serial}")))
        after = {**self.own, **dict(changes)}
        duplicate = len({r[0] for r in after.values()}) < len(after)
        try:
            done = self.run(self.call("update", SHARD, changes))
        except DuplicateKey:
            assert duplicate
            return
        assert not duplicate
        assert done == [True] * len(changes)
        self.own = after

    @precondition(lambda self: self.own if self.writer else self.committed)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.begin()
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.own)), unique=True, min_size=1, max_size=4))
        assert self.run(self.call("delete", SHARD, chosen)) == [True] * len(chosen)
        assert self.run(self.call("delete", SHARD, chosen)) == [False] * len(chosen)
        for row_id in chosen:
            del self.own[row_id]

    @precondition(lambda self: self.writer)
    @rule()
    def read_own(self) -> None:
        """Within the statement its own changes are invisible; from the next statement on they count."""
        self.check(self.writer, self.seen)
        self.writer.next_statement()
        self.seen = dict(self.own)
        self.check(self.writer, self.own)

    @precondition(lambda self: self.writer and len(self.savepoints) < 3)
    @rule()
    def savepoint(self) -> None:
        self.savepoints.append((self.writer.savepoint(), dict(self.own), dict(self.seen)))

    @precondition(lambda self: self.writer and self.savepoints)
    @rule()
    def rollback_to(self) -> None:
        mark, own, _seen = self.savepoints.pop()
        self.writer.rollback_to(mark)
        self.writer.next_statement()
        self.own, self.seen = own, dict(own)

    @precondition(lambda self: self.writer)
    @rule()
    def commit(self) -> None:
        async def go() -> None:
            await now(self.writer.commit())

        self.run(go())
        self.committed, self.writer, self.savepoints = self.own, None, []
        self.read_latest()

    @precondition(lambda self: self.writer is None)
    @rule(data=st.data(), value=values, remove=st.booleans())
    def change_and_commit(self, data: st.DataObject, value: int | None, remove: bool) -> None:
        if remove and self.committed:
            self.delete(data)
        elif self.committed:
            self.update(data, 0, value)
        else:
            self.insert([(1, value), (2, value)])
        self.commit()

    @precondition(lambda self: self.writer)
    @rule()
    def rollback(self) -> None:
        self.writer.rollback()
        self.writer, self.savepoints = None, []

    # -- upkeep

    @rule()
    def flush(self) -> None:
        self.run(self.store.flush())

    @rule()
    def flush_history(self) -> None:
        self.run(self.store.flush(history=True))
        self.store.validate()

    @rule(
        data=st.data(),
        value=values,
        pauses=st.lists(st.integers(0, 15), min_size=1, max_size=4),
        commit_at=st.integers(0, 3),
        history=st.booleans(),
    )
    def flush_in_steps(
        self, data: st.DataObject, value: int | None, pauses: list[int], commit_at: int, history: bool
    ) -> None:
        """Reads and a commit arrive at any moment of a flush."""
        if self.writer is None:
            taken = {r[0] for r in self.committed.values()}
            free = [k for k in range(16) if k not in taken]
            if free:
                self.insert([(free[0], value)])
                self.commit()
            self.update(data, 0, value)
            if data.draw(st.booleans()):
                self.delete(data)

        async def go() -> None:
            flushing = asyncio.ensure_future(self.store.flush(history=history))
            for step, turns in enumerate(pauses):
                for _ in range(turns):
                    await asyncio.sleep(0)
                if step == commit_at and self.writer is not None:
                    await now(self.writer.commit())
                    self.committed, self.writer, self.savepoints = self.own, None, []
                latest = self.store.begin(read_only=True)
                for txn, expected in [(latest, self.committed), *self.readers]:
                    snapshot = await now(txn.snapshot(SHARD))
                    assert [(r, v) for r, _b, v in snapshot_rows(snapshot)] == sorted(expected.items())
                await self.compare(latest, self.committed)
                latest.rollback()
            await flushing

        self.run(go())
        self.read_latest()

    @rule()
    def vacuum(self) -> None:
        async def go() -> None:
            self.store.core.vacuum()
            at_once(self.store.core.forgetting())

        self.run(go())

    @rule()
    def validate(self) -> None:
        self.store.validate()

    @precondition(lambda self: not self.readers and self.writer is None)
    @rule(crash=st.booleans())
    def restart(self, crash: bool) -> None:
        async def go() -> None:
            if crash:
                await tear_away(self.store, self.disk)
            else:
                await self.store.close()
            self.store = await open_memory_store(self.disk, clock=self.clock)

        self.run(go())
        self.read_latest()

    # -- comparison

    def check(self, txn: Any, expected: Rows) -> None:
        self.run(self.compare(txn, expected))

    async def compare(self, txn: Any, expected: Rows) -> None:
        everything = sorted(expected.items())
        for k in range(16):
            found = await now(txn.lookup(SHARD, BY_K, [(k,)]))
            assert [(r.row_id, r.values) for r in found] == [e for e in everything if e[1][0] == k], k
        found = await now(txn.lookup(SHARD, BY_V, [(1,), (3,)]))
        wanted = [e for v in (1, 3) for e in everything if e[1][1] == v]
        assert [(r.row_id, r.values) for r in found] == wanted
        for reverse in (False, True):
            for limit in (None, 2):
                wanted_range = KeyRange(
                    has_lower=True, lower=3, has_upper=True, upper=9, upper_inclusive=False
                )
                found = await now(txn.range(SHARD, BY_K, wanted_range, reverse=reverse, limit=limit))
                rows = sorted(
                    (e for e in everything if 3 <= e[1][0] < 9), key=lambda e: e[1][0], reverse=reverse
                )
                assert [(r.row_id, r.values) for r in found] == rows[:limit]
        found = await now(txn.range(SHARD, BY_V, KeyRange()))
        order = sorted(everything, key=lambda e: (e[1][1] is None, e[1][1], e[0]))
        assert [(r.row_id, r.values) for r in found] == order, "NULLs sort last"
        scanned = []
        async for rows_ in txn.scan(SHARD):
            scanned.extend((r.row_id, r.values) for r in rows_)
        assert sorted(scanned) == everything
        snapshot = await now(txn.snapshot(SHARD))
        assert [(r, v) for r, _b, v in snapshot_rows(snapshot)] == everything


StoreModel.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.timeout(300)
class TestStoreModel(StoreModel.TestCase):
    pass
