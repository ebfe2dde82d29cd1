"""Row locks: PostgreSQL's four, what they let through, NOWAIT and SKIP LOCKED, and what a lock returns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import (
    BY_K,
    SHARD,
    at_once,
    make_table,
    must_wait,
    now,
    open_memory_store,
    settle,
)
from txn.base.errors import LockNotAvailable, LockTarget
from txn.base.types import RowId
from txn.locks.mode import COMPATIBLE, ROW_CONFLICTS, ROW_MODES, RowLock
from txn.store import ShardStore

Body = Callable[[ShardStore], Coroutine[Any, Any, None]]
ROW = RowId(1)
LOCKS = list(ROW_MODES)


def with_store(body: Body) -> Callable[[], None]:
    def test() -> None:
        async def go() -> None:
            store = await open_memory_store()
            await make_table(store, [(1, 10, "a"), (2, 20, "b")])
            await body(store)
            store.validate()
            await store.close()

        run(go)

    test.__name__ = body.__name__
    return test


async def writer(store: ShardStore, **how: Any) -> Any:
    txn = store.begin(**how)
    await now(txn.begin_write([SHARD]))
    return txn


def test_the_modes_conflict_as_the_manual_says() -> None:
    for a in LOCKS:
        for b in LOCKS:
            assert COMPATIBLE[ROW_MODES[a]][ROW_MODES[b]] == (b not in ROW_CONFLICTS[a]), (a, b)


@pytest.mark.parametrize("held", LOCKS)
@pytest.mark.parametrize("asked", LOCKS)
def test_lock_rows_waits_skips_and_refuses_by_the_table(held: RowLock, asked: RowLock) -> None:
    @with_store
    async def body(store: ShardStore) -> None:
        a, b = await writer(store, session=1), await writer(store, session=2)
        (row,) = at_once(a.lock_rows(SHARD, [ROW], held, "block"))
        assert row.values == (1, 10, "a")
        if asked not in ROW_CONFLICTS[held]:
            for wait in ("block", "nowait", "skip"):
                assert at_once(b.lock_rows(SHARD, [ROW], asked, wait)) == [row]
            return
        assert [r and r.row_id for r in at_once(b.lock_rows(SHARD, [ROW, RowId(2)], asked, "skip"))] == [
            None,
            2,
        ]
        with pytest.raises(LockNotAvailable) as caught:
            await now(b.lock_rows(SHARD, [ROW], asked, "nowait"))
        assert caught.value.target == LockTarget(kind="row", shard=SHARD, row_id=ROW)
        assert [(w.waiter, w.holder) for w in caught.value.waits] == [(2, 1)]
        waits = must_wait(b.lock_rows(SHARD, [ROW], asked, "block"))
        await settle()
        assert not waits.done()
        a.rollback()
        assert await waits == [row]

    body()


@pytest.mark.parametrize(
    ("change", "key_share_waits"),
    [((1, 99, "other columns"), False), ((3, 10, "a unique key"), True), (None, True)],
)
def test_a_key_share_lock_hinders_only_changes_of_keys(change: Any, key_share_waits: bool) -> None:
    @with_store
    async def body(store: ShardStore) -> None:
        """What a foreign key's check needs: its parent row stays, the rest may change."""
        child, parent = await writer(store), await writer(store)
        (row,) = at_once(child.lookup(SHARD, BY_K, [(1,)], for_update="key share"))
        assert row.row_id == ROW
        result = parent.delete(SHARD, [ROW]) if change is None else parent.update(SHARD, [(ROW, change)])
        if not key_share_waits:
            assert at_once(result) == [True]
            other = await writer(store)
            assert at_once(other.lookup(SHARD, BY_K, [(1,)], for_update="key share"))[0].row_id == ROW
            reader = must_wait(other.lookup(SHARD, BY_K, [(1,)]))
            await settle()
            assert not reader.done(), "who reads the row does wait"
            await now(parent.commit())
            assert [r.values for r in await reader] == [change]
            return
        waits = must_wait(result)
        await settle()
        assert not waits.done()
        child.rollback()
        assert await waits == [True]
        blocked = await writer(store)
        check = must_wait(blocked.lookup(SHARD, BY_K, [(1,)], for_update="key share"))
        await settle()
        assert not check.done()
        await now(parent.commit())
        assert await check == []

    body()


@with_store
async def test_a_read_for_no_key_update_lets_the_update_go_on(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    (row,) = at_once(a.lookup(SHARD, BY_K, [(1,)], for_update="no key update"))
    second = must_wait(b.lookup(SHARD, BY_K, [(1,)], for_update="no key update"))
    await settle()
    assert not second.done()
    assert at_once(a.update(SHARD, [(row.row_id, (1, 11, "a"))])) == [True]
    await now(a.commit())
    assert [r.values for r in await second] == [(1, 11, "a")]


@with_store
async def test_a_lock_returns_the_latest_version_or_none(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    assert at_once(a.update(SHARD, [(ROW, (1, 11, "new"))])) == [True]
    assert at_once(a.delete(SHARD, [RowId(2)])) == [True]
    locked = must_wait(b.lock_rows(SHARD, [ROW, RowId(2)], "update", "block"))
    await settle()
    ts = await now(a.commit())
    first, gone = await locked
    assert (first.values, first.begin, gone) == ((1, 11, "new"), ts, None)


@with_store
async def test_skip_locked_reads_past_locks_and_locks_no_key(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    at_once(a.lookup(SHARD, BY_K, [(1,)], for_update=True))
    rows = at_once(b.lookup(SHARD, BY_K, [(1,), (2,)], peek=True))
    assert [r.row_id for r in rows] == [1, 2]
    got = at_once(b.lock_rows(SHARD, [r.row_id for r in rows], "update", "skip"))
    assert [r and r.row_id for r in got] == [None, 2]
    assert sorted(map(str, b.owner.held)) == sorted(map(str, [SHARD, (SHARD, 2)]))
    third = await writer(store)
    at_once(third.insert(SHARD, [(3, 30, "c")]))


@with_store
async def test_a_key_update_waits_for_key_shares(store: ShardStore) -> None:
    a = await writer(store)
    b = await writer(store)
    at_once(b.lock_rows(SHARD, [ROW], "key share", "block"))
    update = asyncio.ensure_future(now(a.update(SHARD, [(ROW, (7, 1, "x"))])))
    await settle()
    assert not update.done()
    b.rollback()
    assert await update == [True]
