"""Named anomalies and waits: what two or three transactions may and may not do to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import (
    BY_K,
    BY_V,
    SHARD,
    at_once,
    make_table,
    must_wait,
    now,
    open_memory_store,
    settle,
    spec,
)
from txn.base.errors import (
    DeadlineExceeded,
    Deadlock,
    DuplicateKey,
    LockTarget,
    LockTimeout,
    ReadBelowSince,
    ReadOnlyTransaction,
    SchemaChanged,
    WaitCancelled,
    WriteConflict,
)
from txn.base.types import KeyRange, ShardId, StoredRow, Timestamp
from txn.store import ShardStore
from txn.transaction.coordinator import TxnOptions

Body = Callable[[ShardStore], Coroutine[Any, Any, None]]


def with_store(rows: Any = ((1, 10, "a"), (2, 20, "b"))) -> Callable[[Body], Callable[[], None]]:
    def decorate(body: Body) -> Callable[[], None]:
        def test() -> None:
            async def go() -> None:
                store = await open_memory_store()
                await make_table(store, list(rows))
                await body(store)
                store.validate()
                await store.close()

            run(go)

        test.__name__ = body.__name__
        test.__doc__ = body.__doc__
        return test

    return decorate


async def get(txn: Any, k: int, **how: Any) -> tuple[Any, ...] | None:
    rows = await now(txn.lookup(SHARD, BY_K, [(k,)], **how))
    return rows[0].values if rows else None


async def put(txn: Any, k: int, v: int | None) -> None:
    (row,) = await now(txn.lookup(SHARD, BY_K, [(k,)], for_update=True))
    assert await now(txn.update(SHARD, [(row.row_id, (k, v, "new"))])) == [True]


async def writer(store: ShardStore, **how: Any) -> Any:
    txn = store.begin(**how)
    await now(txn.begin_write([SHARD]))
    return txn


async def scan(txn: Any) -> list[tuple[Any, ...]]:
    return sorted([r.values async for rows in txn.scan(SHARD) for r in rows])


@with_store()
async def test_reader_never_waits_and_sees_one_moment(store: ShardStore) -> None:
    reader = store.begin()
    a = await writer(store)
    await put(a, 1, 11)
    assert at_once(reader.lookup(SHARD, BY_K, [(1,)]))[0].values == (1, 10, "a")
    await now(a.commit())
    assert at_once(reader.lookup(SHARD, BY_K, [(1,)]))[0].values == (1, 10, "a")
    assert await scan(reader) == [(1, 10, "a"), (2, 20, "b")]
    reader.rollback()
    assert await get(store.begin(), 1) == (1, 11, "new")


@with_store()
async def test_write_skew_is_refused(store: ShardStore) -> None:
    a, b = store.begin(session=1), store.begin(session=2)
    for txn in (a, b):
        assert await get(txn, 1) == (1, 10, "a")
        assert await get(txn, 2) == (2, 20, "b")
    await now(a.begin_write([SHARD]))
    second = b.begin_write([SHARD])
    await now(second)
    # Both hold S on both keys; each wants to change one that the other has read.
    first_put = asyncio.ensure_future(put(a, 1, 0))
    await settle()
    with pytest.raises(Deadlock):
        await put(b, 2, 0)
    b.rollback()
    await first_put
    await now(a.commit())


@with_store()
async def test_conflict_names_key_and_session(store: ShardStore) -> None:
    a = store.begin(session=7)
    await get(a, 1)
    b = await writer(store, session=8)
    await put(b, 1, 5)
    ts = await now(b.commit())
    with pytest.raises(WriteConflict) as caught:
        await now(a.begin_write([SHARD]))
    error = caught.value
    assert (error.key, error.index, error.other_session, error.changed_at) == ((1,), BY_K, 8, ts)
    a.rollback()


@with_store()
async def test_promotion_ignores_changes_of_what_was_not_read(store: ShardStore) -> None:
    a = store.begin()
    await get(a, 1)
    await now(a.range(SHARD, BY_K, KeyRange(has_upper=True, upper=1)))
    b = await writer(store)
    await put(b, 2, 5)
    await now(b.insert(SHARD, [(9, 9, "x")]))
    await now(b.commit())
    await now(a.begin_write([SHARD]))
    assert await get(a, 2) == (2, 5, "new"), "reads are of the latest state now"
    a.rollback()


@pytest.mark.parametrize("what", ["insert", "delete", "away", "into", "update"])
def test_key_reads_notice_every_kind_of_change(what: str) -> None:
    @with_store(((1, 10, "a"), (2, 20, "b")))
    async def body(store: ShardStore) -> None:
        a = store.begin()
        await now(a.lookup(SHARD, BY_V, [(10,), (30,)]))
        b = await writer(store)
        match what:
            case "insert":
                await now(b.insert(SHARD, [(5, 30, "x")]))
            case "delete":
                await now(b.delete(SHARD, [1]))
            case "away":
                await put(b, 1, 11)
            case "into":
                await put(b, 2, 30)
            case _:
                await put(b, 1, 10)
        await now(b.commit())
        await store.flush()
        with pytest.raises(WriteConflict):
            await now(a.begin_write([SHARD]))
        a.rollback()

    body()


@with_store()
async def test_phantom_under_a_key_read_by_a_writer_waits(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    assert await now(a.lookup(SHARD, BY_V, [(77,)])) == []
    insert = must_wait(b.insert(SHARD, [(5, 77, "x")]))
    await settle()
    assert not insert.done()
    await now(a.commit())
    await insert
    await now(b.commit())


@with_store()
async def test_different_rows_of_one_key_are_inserted_in_parallel(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    at_once(a.insert(SHARD, [(5, 77, "x")]))
    at_once(b.insert(SHARD, [(6, 77, "y")]))
    await asyncio.gather(*(now(t.commit()) for t in (a, b)))


@with_store()
async def test_range_read_by_a_writer_keeps_inserts_away(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    at_once(a.range(SHARD, BY_K, KeyRange()))
    waits = must_wait(b.insert(SHARD, [(3, 3, "x")]))
    await settle()
    assert not waits.done()
    a.rollback()
    await waits
    b.rollback()


@with_store()
async def test_lost_update_is_refused(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    assert await get(a, 1) is not None
    assert await get(b, 1) is not None
    waits = asyncio.ensure_future(put(a, 1, 11))
    await settle()
    with pytest.raises(Deadlock):
        await put(b, 1, 12)
    b.rollback()
    await waits
    await now(a.commit())


@with_store()
async def test_a_deadlock_says_who_waits_for_whom_and_what(store: ShardStore) -> None:
    a, b = await writer(store, session=1), await writer(store, session=2)
    await get(a, 1, for_update=True)
    await get(b, 2, for_update=True)
    waits = asyncio.ensure_future(get(a, 2))
    await settle()
    with pytest.raises(Deadlock) as caught:
        await get(b, 1)
    edges = {(w.waiter, w.holder, w.waiter_txn, w.mode, w.held, w.target) for w in caught.value.waits}
    key = {"kind": "key", "shard": SHARD, "index": BY_K}
    assert edges == {
        (1, 2, a.id, "S", "X", LockTarget(**key, key=(2,))),
        (2, 1, b.id, "S", "X", LockTarget(**key, key=(1,))),
    }
    b.rollback()
    await waits


@with_store()
async def test_a_lock_timeout_says_who_is_in_the_way(store: ShardStore) -> None:
    a = await writer(store, session=1)
    b = store.begin(session=2, lock_timeout_ms=5)
    await now(a.range(SHARD, BY_V, KeyRange(has_lower=True, lower=15)))
    await now(b.begin_write([SHARD]))
    with pytest.raises(LockTimeout) as caught:
        await now(b.insert(SHARD, [(3, 30, "c")]))
    (wait,) = caught.value.waits
    assert (wait.waiter, wait.holder, wait.mode, wait.held) == (2, 1, "IX", "S")
    assert wait.target == LockTarget(kind="range", shard=SHARD, index=BY_V)
    assert str(wait.target) == "range up to the end of index 11 of table 1"


@with_store()
async def test_for_update_serialises_read_modify_write(store: ShardStore) -> None:
    async def add() -> None:
        txn = await writer(store)
        values = await get(txn, 1, for_update=True)
        assert values is not None
        await put(txn, 1, values[1] + 1)
        await now(txn.commit())

    await asyncio.gather(*(add() for _ in range(20)))
    assert await get(store.begin(), 1) == (1, 30, "new")


@with_store()
async def test_read_only_anomaly_is_impossible(store: ShardStore) -> None:
    """Fekete's example: a report between two withdrawals sees a state that no serial order has."""
    a = store.begin(session=1)  # will read both and withdraw from 1
    assert await get(a, 1)
    assert await get(a, 2)
    b = await writer(store, session=2)  # deposits into 2
    await put(b, 2, 120)
    await now(b.commit())
    report = store.begin(read_only=True)
    assert await get(report, 2) == (2, 120, "new")
    with pytest.raises(WriteConflict):
        await now(a.begin_write([SHARD]))
    a.rollback()


@with_store()
async def test_insert_of_a_key_waits_for_its_uncommitted_owner(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    at_once(a.insert(SHARD, [(5, 1, "x")]))
    waits = must_wait(b.insert(SHARD, [(5, 2, "y")]))
    await settle()
    await now(a.commit())
    with pytest.raises(DuplicateKey) as caught:
        await waits
    assert (caught.value.index, caught.value.key) == (BY_K, (5,))
    b.rollback()


@pytest.mark.parametrize("outcome", ["commit", "rollback"])
def test_key_freed_by_an_uncommitted_delete_is_decided_by_its_end(outcome: str) -> None:
    @with_store()
    async def body(store: ShardStore) -> None:
        a, b = await writer(store), await writer(store)
        assert at_once(a.delete(SHARD, [1])) == [True]
        waits = must_wait(b.insert(SHARD, [(1, 5, "mine")]))
        await settle()
        assert not waits.done()
        if outcome == "commit":
            await now(a.commit())
            await waits
            await now(b.commit())
            assert await get(store.begin(), 1) == (1, 5, "mine")
        else:
            a.rollback()
            with pytest.raises(DuplicateKey):
                await waits
            b.rollback()

    body()


@with_store(tuple((k, k, "x") for k in range(1, 6)))
async def test_shifting_unique_keys_is_checked_at_the_end_of_the_statement(store: ShardStore) -> None:
    txn = await writer(store)
    rows = [r async for chunk in txn.scan(SHARD, for_update=True) for r in chunk]
    shifted = [(r.row_id, (r.values[0] + 1, *r.values[1:])) for r in rows]
    assert at_once(txn.update(SHARD, shifted)) == [True] * 5
    txn.next_statement()
    with pytest.raises(DuplicateKey):
        at_once(txn.update(SHARD, [(rows[0].row_id, (5, 0, "clash"))]))
    assert [r[0] for r in await scan(txn)] == [2, 3, 4, 5, 6], "the failed statement left nothing"
    await now(txn.commit())


def test_nulls_in_unique_indexes() -> None:
    async def go() -> None:
        import dataclasses

        for distinct in (True, False):
            store = await open_memory_store()
            schema = spec(unique_v=True)
            indexes = (schema.indexes[0], dataclasses.replace(schema.indexes[1], nulls_distinct=distinct))
            await make_table(store, [(1, None, "a")], dataclasses.replace(schema, indexes=indexes))
            for flushed in (False, True):
                if flushed:
                    await store.flush()
                txn = await writer(store)
                if distinct:
                    at_once(txn.insert(SHARD, [(2, None, "b"), (3, None, "c")]))
                else:
                    with pytest.raises(DuplicateKey):
                        await now(txn.insert(SHARD, [(2, None, "b")]))
                txn.rollback()
            await store.close()

    run(go)


@with_store()
async def test_insert_unless_locks_the_key_and_returns_its_owner(store: ShardStore) -> None:
    txn, other = await writer(store), await writer(store)
    found = at_once(txn.insert_unless(SHARD, (1, 0, ""), [BY_K]))
    assert isinstance(found, StoredRow)
    assert found.values == (1, 10, "a")
    row_id = at_once(txn.insert_unless(SHARD, (3, 1, "won"), [BY_K]))
    assert isinstance(row_id, int)
    again = at_once(txn.insert_unless(SHARD, (3, 2, "late"), [BY_K]))
    assert again == StoredRow(row_id, (3, 1, "won"), Timestamp(0))
    waits = must_wait(other.insert(SHARD, [(3, 3, "x")]))
    await now(txn.commit())
    with pytest.raises(DuplicateKey):
        await waits
    other.rollback()


@with_store()
async def test_a_deadline_rolls_back_and_says_so(store: ShardStore) -> None:
    txn = store.begin(deadline_ms=20)
    await now(txn.begin_write([SHARD]))
    await put(txn, 1, 99)
    await asyncio.sleep(0.05)
    with pytest.raises(DeadlineExceeded):
        await now(txn.commit())
    assert await get(store.begin(), 1) == (1, 10, "a")
    assert len(store.core.locks) == 0


@with_store()
async def test_lock_timeout_and_cancel_reach_waits(store: ShardStore) -> None:
    a = await writer(store)
    await put(a, 1, 5)
    b = store.begin(lock_timeout_ms=10, session=4)
    await now(b.begin_write([SHARD]))
    with pytest.raises(LockTimeout):
        await get(b, 1)
    b.owner.lock_timeout_ms = 0
    waits = asyncio.ensure_future(get(b, 1))
    await settle()
    store.cancel_waits(4)
    with pytest.raises(WaitCancelled):
        await waits
    b.rollback()
    a.rollback()


@with_store()
async def test_rollback_while_an_operation_waits_ends_it_and_leaks_nothing(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    await put(a, 1, 5)
    waits = must_wait(b.lookup(SHARD, BY_K, [(1,), (2,)], for_update=True))
    await settle()
    b.rollback()
    with pytest.raises(WaitCancelled):
        await waits
    await now(a.commit())
    assert len(store.core.locks) == 0
    assert len(store.core.holds) == 0


@with_store()
async def test_what_wrote_nothing_commits_at_once_at_its_read_timestamp(store: ShardStore) -> None:
    txn = store.begin()
    assert at_once(txn.commit()) == txn.read_ts
    writer_ = await writer(store)
    await put(writer_, 1, 5)
    ts = await now(writer_.commit())
    assert store.read_ts() == ts > txn.read_ts


@with_store()
async def test_on_applied_runs_when_the_commit_is_readable(store: ShardStore) -> None:
    txn = await writer(store)
    await put(txn, 1, 5)
    seen: list[tuple[int, int]] = []
    txn.on_applied(lambda ts: seen.append((ts, store.read_ts())))
    ts = await now(txn.commit())
    assert seen == [(ts, ts)]


@with_store()
async def test_reads_in_the_past_stop_at_since(store: ShardStore) -> None:
    before = store.read_ts()
    held = store.hold()
    txn = await writer(store)
    await put(txn, 1, 5)
    await now(txn.commit())
    old = store.begin(read_only=True, at=before)
    assert await get(old, 1) == (1, 10, "a")
    old.rollback()
    store.release(held)
    store.core.vacuum()
    with pytest.raises(ReadBelowSince) as caught:
        store.begin(read_only=True, at=before)
    assert caught.value.since == store.since


@with_store()
async def test_a_read_only_transaction_refuses_writes(store: ShardStore) -> None:
    txn = store.begin(read_only=True)
    with pytest.raises(ReadOnlyTransaction):
        txn.begin_write([SHARD])
    with pytest.raises(ReadOnlyTransaction):
        txn.create_shard(spec(5))


@with_store()
async def test_a_schema_change_under_a_reading_transaction_stops_its_promotion(store: ShardStore) -> None:
    reader = store.begin()
    await get(reader, 1)
    ddl = store.begin()
    await now(ddl.alter_shard(spec(version=2)))
    await now(ddl.commit())
    assert reader.spec(SHARD).version == 1
    with pytest.raises(SchemaChanged):
        await now(reader.begin_write([SHARD]))
    reader.rollback()


@pytest.mark.parametrize("on_disk", [True, False])
def test_retention_keeps_the_past_readable_within_its_bound(on_disk: bool) -> None:
    async def go() -> None:
        store = await open_memory_store(options=TxnOptions(retention_ms=3_600_000, history_versions=10))
        await make_table(store, [(1, 0, "a")])
        moments = []
        for n in range(1, 61):
            txn = await writer(store)
            await put(txn, 1, n)
            moments.append((await now(txn.commit()), n))
            if on_disk and n % 20 == 0:
                await store.flush(history=True)  # what upkeep does once a second
        store.core.vacuum()
        readable = (-8, 3, 25) if on_disk else (-8, -30)
        for at in readable:
            old = store.begin(read_only=True, at=moments[at][0])
            assert await get(old, 1) == (1, moments[at][1], "new")
            old.rollback()
        if on_disk:
            assert not store.core.garbage, "memory has nothing of it"
        else:  # history does not get to disk: retention gives way, not memory
            with pytest.raises(ReadBelowSince):
                store.begin(read_only=True, at=moments[3][0])
            assert len(store.core.garbage) <= 40
        store.validate()
        await store.close()

    run(go)


@with_store()
async def test_a_schema_seen_before_its_table_was_locked_must_still_be_the_one(store: ShardStore) -> None:
    await make_table(store, [], spec(2))
    txn = store.begin()
    await now(txn.begin_write([ShardId(2)]))
    assert txn.spec(SHARD).version == 1
    ddl = store.begin()
    await now(ddl.alter_shard(spec(version=2)))
    await now(ddl.commit())
    with pytest.raises(SchemaChanged):
        await now(txn.lookup(SHARD, BY_K, [(1,)]))
    txn.rollback()
