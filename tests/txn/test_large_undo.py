"""Rollbacks of many rows, whole or to a savepoint: in slices, and nothing of what was undone is left (``txn.transaction.ending``)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store, spec
from txn.base.types import RowId
from txn.store import ShardStore
from txn.transaction import journal, writes
from txn.transaction.journal import OneOfMany
from txn.transaction.transaction import StoreTransaction

ROWS = [(k, k * 10, "old") for k in range(1, 21)]
KEYS = [(k,) for k in range(1, 31)]


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "PREPARE_ROWS", 4)
    monkeypatch.setattr(journal, "UNDO_ROWS", 4)
    monkeypatch.setattr(journal, "AT_ONCE", 4)


async def _begin(store: ShardStore) -> tuple[StoreTransaction, list[RowId]]:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    txn.next_statement()
    found = await now(txn.lookup(SHARD, BY_K, KEYS))
    return txn, [row.row_id for row in found]


async def _change(txn: StoreTransaction, ids: list[RowId], text: str) -> None:
    """Change all rows but the last, which goes, and insert another."""
    txn.next_statement()
    await now(txn.update(SHARD, [(row_id, (k + 1, k, text)) for k, row_id in enumerate(ids[:-1])]))
    await now(txn.delete(SHARD, ids[-1:]))
    txn.next_statement()


async def _seen(txn: StoreTransaction) -> list[tuple[Any, ...]]:
    return sorted(row.values for row in await now(txn.lookup(SHARD, BY_K, KEYS)))


def test_a_savepoint_is_gone_back_to_with_turns_for_others() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        txn, ids = await _begin(store)
        await now(txn.update(SHARD, [(ids[0], (1, 1, "kept"))]))
        mark = txn.savepoint()
        undone: list[str] = []
        txn.on_undo(lambda: undone.append("first"))
        await _change(txn, ids, "gone")
        txn.on_undo(lambda: undone.append("second"))
        undoing = txn.rollback_to(mark)
        assert isinstance(undoing, Awaitable)
        task = asyncio.ensure_future(undoing)
        await asyncio.sleep(0)
        assert not task.done(), "others have no turn"
        task.cancel()  # as a time-out does; it may be asked for again
        with pytest.raises(asyncio.CancelledError):
            await task
        await now(txn.rollback_to(mark))
        assert undone == ["second", "first"]
        txn.next_statement()
        assert await _seen(txn) == [(1, 1, "kept"), *ROWS[1:]]
        await now(txn.commit())
        store.validate()
        reader = store.begin(read_only=True)
        assert await _seen(reader) == [(1, 1, "kept"), *ROWS[1:]]
        reader.rollback()
        await store.close()

    run(go)


@pytest.mark.parametrize("ends", ["rollback", "while it goes back"])
def test_a_large_transaction_leaves_nothing_behind(ends: str) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        txn, ids = await _begin(store)
        undone: list[str] = []
        txn.on_undo(lambda: undone.append("callback"))
        mark = txn.savepoint()
        await _change(txn, ids, "gone")
        await _change(txn, ids[:-1], "gone again")
        txn.create_shard(spec(7))
        if ends == "rollback":
            txn.rollback()
        else:
            task = asyncio.ensure_future(now(txn.rollback_to(mark)))
            await asyncio.sleep(0)
            txn.rollback()
            with pytest.raises(Exception, match="transaction"):
                await task
        assert undone == ["callback"]
        again, same = await _begin(store)
        assert same == ids
        assert await _seen(again) == ROWS
        again.create_shard(spec(7))
        await _change(again, ids, "kept")
        await now(again.commit())
        store.validate()
        reader = store.begin(read_only=True)
        assert await _seen(reader) == [(k, k - 1, "kept") for k in range(1, 20)]
        reader.rollback()
        await store.close()

    run(go)


class Pile:
    """A kind of things that come by the hundred thousand."""

    def __init__(self, undone: list[str]) -> None:
        self.undone = undone

    def undo(self, what: str) -> None:
        self.undone.append(what)

    def undo_all(self) -> None:
        self.undone.append("all")


def test_many_of_a_kind_are_undone_one_by_one_to_a_savepoint_and_at_once_at_the_end() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        txn, _ = await _begin(store)
        undone: list[str] = []
        pile = Pile(undone)
        for n in range(10):
            txn.on_undo(OneOfMany(pile, f"kept {n}"))
        mark = txn.savepoint()
        for n in range(10):
            txn.on_undo(OneOfMany(pile, f"gone {n}"))
        await now(txn.rollback_to(mark))
        assert undone == [f"gone {n}" for n in reversed(range(10))]
        undone.clear()
        txn.on_undo(lambda: undone.append("another"))
        txn.rollback()
        assert undone == ["another", "all"]
        await store.close()

    run(go)


class _Unwalked(list[Any]):
    """A journal that nobody goes through from end to end."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("each intent is looked at")

    __reversed__ = __iter__


def test_a_rollback_looks_at_no_intent() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        txn, ids = await _begin(store)
        undone: list[str] = []
        txn.on_undo(lambda: undone.append("first"))
        await _change(txn, ids, "gone")
        mark = txn.savepoint()
        txn.on_undo(lambda: undone.append("taken back"))
        await now(txn.rollback_to(mark))
        txn.on_undo(lambda: undone.append("second"))
        await _change(txn, ids, "gone")
        txn.journal = _Unwalked(txn.journal)
        txn.rollback()
        assert undone == ["taken back", "second", "first"]
        reader, _ = await _begin(store)
        assert await _seen(reader) == sorted(ROWS)
        reader.rollback()
        await store.close()

    run(go)
