"""Scans of writing transactions are not locked but validated: at promotion, at commit, within a batch (U4)."""

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
    spec,
)
from txn.base.errors import WriteConflict
from txn.base.types import RowId
from txn.log import group_commit
from txn.store import ShardStore

Body = Callable[[ShardStore], Coroutine[Any, Any, None]]


def with_store(body: Body) -> Callable[[], None]:
    def test() -> None:
        async def go() -> None:
            store = await open_memory_store()
            await make_table(store, [(1, 10, "a"), (2, 20, "b"), (3, 30, "c")])
            await body(store)
            for txn in list(store.core.active.values()):
                txn.rollback()
            store.validate()
            assert not store.core.watches
            assert len(store.core.locks) == 0
            await store.close()

        run(go)

    test.__name__ = body.__name__
    test.__doc__ = body.__doc__
    return test


async def writer(store: ShardStore, **how: Any) -> Any:
    txn = store.begin(**how)
    await now(txn.begin_write([SHARD]))
    return txn


async def scan(txn: Any, predicate: Any = None) -> list[tuple[Any, ...]]:
    return sorted([r.values async for rows in txn.scan(SHARD, predicate=predicate) for r in rows])


async def change(store: ShardStore, row: int, values: tuple[Any, ...] | None, session: int = 9) -> int:
    """Commit one change of somebody else's: an insert (row 0), an update, or a delete (no values)."""
    txn = await writer(store, session=session)
    if row == 0:
        await now(txn.insert(SHARD, [values]))
    elif values is None:
        assert await now(txn.delete(SHARD, [RowId(row)])) == [True]
    else:
        assert await now(txn.update(SHARD, [(RowId(row), values)])) == [True]
    ts: int = await now(txn.commit())
    return ts


def small(row: Any) -> bool:
    return row[1] is not None and row[1] <= 15


CHANGES = [
    ("insert what matches", 0, (4, 5, "x"), True),
    ("insert what does not", 0, (4, 50, "x"), False),
    ("delete what matched", 1, None, True),
    ("delete what did not", 2, None, False),
    ("move in", 2, (2, 12, "x"), True),
    ("move out", 1, (1, 100, "x"), True),
    ("change what does not match", 3, (3, 31, "x"), False),
]
CASES = pytest.mark.parametrize(
    ("row", "values", "matters"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
FLUSHED = pytest.mark.parametrize("flushed", [False, True], ids=["hot", "flushed"])


@CASES
@FLUSHED
@pytest.mark.parametrize("staged", [False, True], ids=["at once", "in slices"])
def test_a_change_after_a_scan_matters_if_the_scan_asked_for_it(
    row: int, values: Any, matters: bool, flushed: bool, staged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the change is in memory before it is compared, because its batch is large."""
    if staged:
        monkeypatch.setattr(group_commit, "STAGE_BYTES", 0)

    @with_store
    async def body(store: ShardStore) -> None:
        txn = await writer(store, session=1)
        if flushed:
            await store.flush()
            reader = store.begin(read_only=True)
            assert len(await scan(reader)) == 3, "the row group is cached: images of cold rows are at hand"
            for k in (1, 2, 3):
                await now(reader.lookup(SHARD, BY_K, [(k,)]))
            reader.rollback()
        assert len(await scan(txn, small)) == 3, "the predicate says what matters, it does not filter"
        await now(txn.insert(SHARD, [(8, 80, "own")]))
        ts = await change(store, row, values)
        if not matters:
            await now(txn.commit())
            return
        with pytest.raises(WriteConflict) as caught:
            await now(txn.commit())
        key = (row or 4,)
        error = caught.value
        assert (error.shard, error.index, error.key) == (SHARD, BY_K, key)
        assert (error.other_session, error.changed_at) == (9, ts)
        assert await now(store.begin(read_only=True).lookup(SHARD, BY_K, [(8,)])) == []

    body()


@CASES
@pytest.mark.parametrize("before", [False, True], ids=["watched", "promoted"])
def test_rows_of_parts_are_compared_although_no_row_group_is_in_memory(
    row: int, values: Any, matters: bool, before: bool
) -> None:
    @with_store
    async def body(store: ShardStore) -> None:
        await store.flush()
        (part,) = store.core.shards[SHARD].latest.generation.parts  # type: ignore[union-attr]
        part.file._cache.budget_bytes = 0  # type: ignore[attr-defined]
        assert await now(part.file.row(0, spec())) == (1, 10, "a")
        assert part.file._cache.bytes == 0, "nothing is kept"  # type: ignore[attr-defined]
        txn = store.begin(session=1)
        if not before:
            await now(txn.begin_write([SHARD]))
        assert len(await scan(txn, small)) == 3
        ts = await change(store, row, values)
        if matters:
            with pytest.raises(WriteConflict) as caught:
                await now(txn.begin_write([SHARD]))
            assert caught.value.changed_at == ts
            return
        await now(txn.begin_write([SHARD]))
        await now(txn.insert(SHARD, [(9, 90, "own")]))
        await now(txn.commit())

    body()


@CASES
@FLUSHED
def test_promotion_compares_what_was_scanned_before(
    row: int, values: Any, matters: bool, flushed: bool
) -> None:
    @with_store
    async def body(store: ShardStore) -> None:
        if flushed:
            await store.flush()
        txn = store.begin(session=1)
        assert len(await scan(txn, small)) == 3
        for k in (1, 2, 3):
            await now(store.begin(read_only=True).lookup(SHARD, BY_K, [(k,)]))
        await change(store, row, values)
        if matters:
            with pytest.raises(WriteConflict) as caught:
                await now(txn.begin_write([SHARD]))
            assert (caught.value.key, caught.value.other_session) == ((row or 4,), 9)
            return
        await now(txn.begin_write([SHARD]))
        await now(txn.insert(SHARD, [(9, 90, "own")]))
        await change(store, 0, (7, 70, "does not match"))
        await now(txn.commit())

    body()


@with_store
async def test_what_was_scanned_before_promotion_is_watched_after_it(store: ShardStore) -> None:
    txn = store.begin(session=1)
    await scan(txn, small)
    await now(txn.begin_write([SHARD]))
    await now(txn.insert(SHARD, [(9, 90, "own")]))
    await change(store, 0, (4, 4, "x"))
    with pytest.raises(WriteConflict):
        await now(txn.commit())


@with_store
async def test_write_skew_over_scans_is_refused(store: ShardStore) -> None:
    a, b = store.begin(session=1), store.begin(session=2)
    assert len(await scan(a)) == len(await scan(b)) == 3
    for txn, k in ((a, 4), (b, 5)):
        await now(txn.begin_write([SHARD]))
        at_once(txn.insert(SHARD, [(k, 1, "x")]))
    results = await asyncio.gather(now(a.commit()), now(b.commit()), return_exceptions=True)
    assert isinstance(results[0], int)
    assert isinstance(results[1], WriteConflict), (
        "both were in one batch: the second was compared with the first"
    )
    assert results[1].other_session == 1


@with_store
async def test_scans_of_one_batch_that_do_not_meet_both_commit(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    await scan(a, small)
    await scan(b, lambda row: row[1] > 1000)
    at_once(a.insert(SHARD, [(4, 99, "x")]))
    at_once(b.insert(SHARD, [(5, 2000, "y")]))
    await asyncio.gather(now(b.commit()), now(a.commit()))


@with_store
async def test_own_changes_do_not_count(store: ShardStore) -> None:
    txn = await writer(store)
    await scan(txn)
    at_once(txn.insert(SHARD, [(4, 1, "x")]))
    assert len(await scan(txn)) == 3, "the same statement"
    txn.next_statement()
    assert len(await scan(txn)) == 4
    await now(txn.commit())


@with_store
async def test_a_scan_neither_waits_nor_makes_wait(store: ShardStore) -> None:
    a = await writer(store)
    at_once(a.update(SHARD, [(RowId(1), (1, 11, "x"))]))
    b = await writer(store)
    assert (1, 10, "a") in await scan(b)
    at_once(b.update(SHARD, [(RowId(2), (2, 21, "x"))]))
    await now(a.commit())
    with pytest.raises(WriteConflict):
        await scan(b)


@with_store
async def test_an_update_computed_from_an_overtaken_scan_is_refused_at_once(store: ShardStore) -> None:
    a, b = await writer(store), await writer(store)
    await scan(b)
    at_once(a.update(SHARD, [(RowId(1), (1, 11, "x"))]))
    waits = must_wait(b.update(SHARD, [(RowId(1), (1, 10 + 1, "from the old value"))]))
    await settle()
    await now(a.commit())
    with pytest.raises(WriteConflict):
        await waits


@with_store
async def test_a_statement_that_lost_is_undone_with_its_scans_and_runs_again(store: ShardStore) -> None:
    txn = await writer(store)
    assert len(await scan(txn, small)) == 3  # of an earlier statement
    mark = txn.begin_statement()
    await scan(txn)
    at_once(txn.insert(SHARD, [(8, 80, "undone")]))
    await change(store, 3, (3, 31, "x"))
    with pytest.raises(WriteConflict):
        at_once(txn.insert(SHARD, [(9, 90, "refused")]))
    assert txn.undo_statement(mark)
    txn.next_statement()
    assert [row for row in await scan(txn) if row[0] != 3] == [(1, 10, "a"), (2, 20, "b")]
    at_once(txn.insert(SHARD, [(9, 90, "second try")]))
    await now(txn.commit())
    reader = store.begin(read_only=True)
    assert [row[0] for row in await scan(reader)] == [1, 2, 3, 9]


@with_store
async def test_what_an_earlier_statement_scanned_is_not_forgiven(store: ShardStore) -> None:
    txn = await writer(store)
    await scan(txn, small)
    mark = txn.begin_statement()
    await scan(txn)
    await change(store, 1, (1, 11, "x"))
    with pytest.raises(WriteConflict):
        at_once(txn.insert(SHARD, [(9, 90, "own")]))
    with pytest.raises(WriteConflict):
        txn.undo_statement(mark)


@with_store
async def test_scans_are_kept_once_the_next_statement_begins(store: ShardStore) -> None:
    txn = await writer(store)
    await scan(txn, small)
    txn.begin_statement()
    mark = txn.begin_statement()
    await change(store, 1, (1, 11, "x"))
    with pytest.raises(WriteConflict):
        txn.undo_statement(mark)


@with_store
async def test_scans_of_several_statements_count_together(store: ShardStore) -> None:
    txn = await writer(store)
    await scan(txn, small)
    txn.begin_statement()
    await scan(txn, lambda row: row[0] == 3)
    mark = txn.begin_statement()
    await change(store, 2, (2, 21, "is nothing to either"))
    at_once(txn.insert(SHARD, [(9, 90, "own")]))
    await change(store, 3, (3, 31, "x"))
    with pytest.raises(WriteConflict):
        txn.undo_statement(mark)


@with_store
async def test_a_transaction_that_does_not_write_yet_starts_over(store: ShardStore) -> None:
    txn = store.begin()
    mark = txn.begin_statement()
    await scan(txn)
    await change(store, 1, (1, 11, "x"))
    with pytest.raises(WriteConflict):
        await now(txn.begin_write([SHARD]))
    assert not txn.undo_statement(mark)


@with_store
async def test_a_locked_table_is_not_compared(store: ShardStore) -> None:
    txn = store.begin()
    await now(txn.begin_write([SHARD], [SHARD]))
    await scan(txn)
    assert not txn.watching
    other = store.begin()
    waits = must_wait(other.begin_write([SHARD]))
    await settle()
    assert not waits.done()
    at_once(txn.insert(SHARD, [(9, 90, "own")]))
    await now(txn.commit())
    await waits


@with_store
async def test_a_predicate_that_fails_counts_as_met(store: ShardStore) -> None:
    txn = await writer(store)
    await scan(txn, lambda row: row[1] / 0 > 1)
    at_once(txn.insert(SHARD, [(9, 90, "own")]))
    await change(store, 3, (3, 31, "x"))
    with pytest.raises(WriteConflict):
        await now(txn.commit())


@with_store
async def test_no_read_shows_another_moment_than_the_scan_before_it(store: ShardStore) -> None:
    """Even if it can never commit: what it computes from the two might make no sense."""
    txn = await writer(store)
    assert (1, 10, "a") in await scan(txn)
    await change(store, 1, (1, 11, "x"))
    with pytest.raises(WriteConflict):
        await now(txn.lookup(SHARD, BY_K, [(1,)]))


@with_store
async def test_a_transaction_that_wrote_nothing_is_compared_too(store: ShardStore) -> None:
    """Else it would have read the table before, and a row after, one commit."""
    txn = await writer(store)
    await scan(txn)
    await now(txn.lookup(SHARD, BY_K, [(2,)]))
    await change(store, 1, (1, 11, "x"))
    with pytest.raises(WriteConflict):
        await now(txn.commit())


@with_store
async def test_statements_that_meet_the_same_rows_in_other_orders_do_not_deadlock(store: ShardStore) -> None:
    holder, a, b = await writer(store), await writer(store), await writer(store)
    at_once(holder.update(SHARD, [(RowId(1), (1, 11, "first"))]))
    first = must_wait(a.update(SHARD, [(RowId(1), (1, 12, "a")), (RowId(2), (2, 22, "a"))]))
    second = must_wait(b.update(SHARD, [(RowId(2), (2, 23, "b")), (RowId(1), (1, 13, "b"))]))
    await settle()
    await now(holder.commit())
    assert await first == [True, True]
    await now(a.commit())
    assert await second == [True, True]
    await now(b.commit())
    reader = store.begin(read_only=True)
    assert await scan(reader) == [(1, 13, "b"), (2, 23, "b"), (3, 30, "c")]
