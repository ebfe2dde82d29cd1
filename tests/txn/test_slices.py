"""Work on many rows, or on wide ones, goes in slices wherever it stands: undone after an error, made before a first use, encoded, freed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, Final

import pytest
from sortedcontainers import SortedList

from tests.support.durable import run
from tests.support.store import BY_K, BY_V, INT, SHARD, make_table, now, open_memory_store, spec
from txn.base import slices
from txn.base.errors import DuplicateKey, TxnError
from txn.base.records import RowOp, SchemaChange, ShardWrites, WriteSet
from txn.base.slices import Slice, free
from txn.base.types import KeyRange, PhysicalType, RowId, ShardId, ShardIndex, ShardSpec, Timestamp, TxnId
from txn.mvcc import index as hot_index
from txn.mvcc import intents
from txn.mvcc.applying import apply_in_slices
from txn.mvcc.generation import Generation
from txn.mvcc.index import Bounds, HotIndex
from txn.mvcc.intents import OwnWrites
from txn.mvcc.keys import KeyMaker
from txn.store import ShardStore
from txn.transaction import journal
from txn.transaction.transaction import StoreTransaction
from txn.values import encoding as encode
from txn.values.encoding import encode_write_set, encode_write_set_slowly, is_short

MOST: Final = 4
ROWS: Final = [(k, k * 10, "old") for k in range(1, 31)]


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "UNDO_ROWS", MOST)
    monkeypatch.setattr(journal, "AT_ONCE", MOST)
    monkeypatch.setattr(intents, "FILL_ROWS", MOST)
    monkeypatch.setattr(hot_index, "ORDERED", MOST)


class Turns:
    """Counts what is done in each turn of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        """``name``: the method whose calls are counted."""
        self.counts: Counter[int] = Counter()
        self._turn = 0
        real = getattr(owner, name)

        def counted(*args: Any) -> Any:
            self.counts[self._turn] += 1
            return real(*args)

        monkeypatch.setattr(owner, name, counted)

    async def run(self, work: Awaitable[Any]) -> Any:
        """Await ``work`` while turns are counted."""
        beat = asyncio.ensure_future(self._beat())
        try:
            return await work
        finally:
            beat.cancel()

    async def _beat(self) -> None:
        while True:
            self._turn += 1
            await asyncio.sleep(0)

    def check(self, least: int) -> None:
        """Nothing of it, ``least`` at least, was done at once."""
        assert sum(self.counts.values()) >= least
        assert max(self.counts.values()) <= MOST


async def _begin(store: ShardStore) -> tuple[StoreTransaction, list[RowId]]:
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    txn.next_statement()
    found = await now(txn.lookup(SHARD, BY_K, [(k,) for k, _v, _t in ROWS]))
    txn.next_statement()
    return txn, [row.row_id for row in found]


Work = Callable[[StoreTransaction, list[RowId]], Awaitable[Any]]


async def _insert(txn: StoreTransaction, ids: list[RowId]) -> None:
    await now(txn.insert(SHARD, [*((k, 0, "new") for k in range(100, 130)), (7, 0, "duplicate")]))


async def _update(txn: StoreTransaction, ids: list[RowId]) -> None:
    await now(txn.update(SHARD, [(r, (k + 200 if k < 30 else 201, 0, "")) for k, r in enumerate(ids, 1)]))


async def _alter(txn: StoreTransaction, ids: list[RowId]) -> None:
    await now(txn.rewrite(SHARD, [*((k, 0, "new") for k in range(100, 130)), (100, 0, "duplicate")]))


async def _bulk(txn: StoreTransaction, ids: list[RowId]) -> None:
    async def batches() -> Any:
        await _update_all(txn, ids)
        raise DuplicateKey(SHARD, BY_K, (1,))
        yield

    await txn.bulk_insert(SHARD, batches())


async def _update_all(txn: StoreTransaction, ids: list[RowId]) -> None:
    await now(txn.update(SHARD, [(r, (k, 1, "")) for k, r in enumerate(ids, 1)]))


@pytest.mark.parametrize("work", [_insert, _update, _alter, _bulk], ids=lambda work: work.__name__[1:])
def test_what_failed_late_is_undone_in_slices(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        txn, ids = await _begin(store)
        undone = Turns(monkeypatch, OwnWrites, "pop")
        with pytest.raises(DuplicateKey):
            await undone.run(work(txn, ids))
        undone.check(30)
        txn.next_statement()
        found = await now(txn.lookup(SHARD, BY_K, [(k,) for k in range(300)]))
        assert sorted(row.values for row in found) == ROWS
        await now(txn.update(SHARD, [(ids[0], (1, 1, "kept"))]))
        await now(txn.commit())
        store.validate()
        await store.close()

    run(go)


@pytest.mark.parametrize("ends", ["cancelled again", "rolled back", "given up"])
def test_undoing_ends_at_once_where_nobody_waits(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS)
        txn, ids = await _begin(store)
        undone = Turns(monkeypatch, OwnWrites, "pop")
        inserting = txn.insert(SHARD, [*((k, 0, "new") for k in range(100, 130)), (7, 0, "duplicate")])
        assert isinstance(inserting, Awaitable)
        if ends == "given up":
            assert isinstance(inserting, Coroutine)
            while not undone.counts:
                inserting.send(None)
            inserting.close()
        else:
            task = asyncio.ensure_future(inserting)
            while not undone.counts:
                await asyncio.sleep(0)
            assert len(txn.journal) > MOST
            if ends == "rolled back":
                txn.rollback()
            else:
                task.cancel()
            with pytest.raises(TxnError if ends == "rolled back" else asyncio.CancelledError):
                await task
        assert not txn.journal
        if ends != "rolled back":
            found = await now(txn.lookup(SHARD, BY_K, [(k,) for k in range(300)]))
            assert sorted(row.values for row in found) == ROWS
            txn.rollback()
        again, same = await _begin(store)
        assert same == ids
        again.rollback()
        store.validate()
        await store.close()

    run(go)


@pytest.mark.parametrize("inverted", [False, True])
def test_rows_with_many_keys_are_applied_one_at_a_time(
    inverted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a look at the clock after each; after some of others."""
    elements = replace(spec().columns[1], type=PhysicalType(kind="list", element=INT))
    by_element = ShardIndex(index=BY_V, attnums=(2,), unique=False, kind="elements")
    plain = spec()
    made = replace(plain, columns=(plain.columns[0], elements, plain.columns[2]), indexes=(by_element,))
    generation = Generation(made if inverted else plain, 0, deque())
    ops = [RowOp(RowId(n), Timestamp(0), (n, (n, n + 1) if inverted else n, "")) for n in range(1, 41)]
    sizes = []
    real = Generation.apply
    monkeypatch.setattr(
        Generation, "apply", lambda self, ops, *more: sizes.append(len(ops)) or real(self, ops, *more)
    )
    list(apply_in_slices(generation, ops, 5))
    assert sizes == ([1] * 40 if inverted else [16, 16, 8])
    assert len(generation.rows) == 40


@pytest.mark.parametrize("ordered", [False, True])
def test_many_keys_of_rows_are_entered_together(ordered: bool) -> None:
    definition = spec().indexes[1]
    index, plain = (HotIndex(KeyMaker(spec().columns, definition), definition) for _ in range(2))
    if ordered:
        list(index.put_in_order())
    for row_id, keys in ((1, range(200)), (2, range(100, 300)), (1, range(50, 250)), (3, range(10))):
        index.add(frozenset(keys), row_id)
        for key in keys:
            plain.add(key, row_id)
    assert index.entries == plain.entries
    assert list(index.keys_between(Bounds())) == sorted(plain.entries)


_ALL: Final = KeyRange()


def test_indexes_over_intents_and_orders_are_made_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """At their first use, by a check of unique keys, a look-up and a range, of a table that changes meanwhile."""

    async def go() -> None:
        store = await open_memory_store()
        await make_table(store)
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        entered = Turns(monkeypatch, HotIndex, "add")
        await entered.run(now(txn.insert(SHARD, ROWS)))
        entered.check(len(ROWS))
        txn.next_statement()
        entered.counts.clear()
        assert [r.values for r in await entered.run(now(txn.lookup(SHARD, BY_V, [(70,)])))] == [ROWS[6]]
        entered.check(len(ROWS))
        await now(txn.commit())
        ordered = Turns(monkeypatch, SortedList, "add")
        reader, other = store.begin(), store.begin()
        await now(other.begin_write([SHARD]))
        reading = asyncio.ensure_future(ordered.run(now(reader.range(SHARD, BY_V, _ALL))))
        await asyncio.sleep(0)
        await now(other.insert(SHARD, [(99, 5, "meanwhile")]))
        await now(other.commit())
        assert [r.values for r in await reading] == ROWS
        ordered.check(len(ROWS))
        later = store.begin()
        assert [r.values for r in await now(later.range(SHARD, BY_V, _ALL))] == [(99, 5, "meanwhile"), *ROWS]
        for one in (reader, later):
            one.rollback()
        store.validate()
        await store.close()

    run(go)


@pytest.mark.parametrize("seed", range(20))
def test_an_order_that_is_made_while_keys_come_and_go_is_theirs(seed: int) -> None:
    rng = random.Random(seed)
    definition = spec().indexes[1]
    index = HotIndex(KeyMaker(spec().columns, definition), definition)
    for key in rng.sample(range(100), 40):
        index.add(key, 1)
    makers = [index.put_in_order()]
    for _ in range(200):
        for _ in range(rng.randrange(4)):
            key = rng.randrange(100)
            (index.discard if rng.random() < 0.5 else index.add)(key, 1)
        if rng.random() < 0.1:
            makers.append(index.put_in_order())  # somebody else begins, too
        next(rng.choice(makers), None)
    for maker in makers:
        list(maker)
    assert not index.unordered
    for key in range(0, 100, 7):
        index.add(key, 2)
        index.discard(key + 1, 1)
    assert list(index.keys_between(Bounds())) == sorted(index.entries)


def test_write_sets_are_encoded_piece_by_piece_where_their_schemas_rows_or_texts_are_long() -> None:
    wide = ShardSpec(
        shard=ShardId(9),
        version=1,
        columns=tuple(replace(spec().columns[2], attnum=n + 1) for n in range(300)),
    )
    row = RowOp(RowId(1), Timestamp(0), ("x",) * 300)
    for shards, schema in (
        ([ShardWrites(shard=ShardId(9), ops=(row,) * 100)], ()),
        ([ShardWrites(shard=ShardId(9), ops=(RowOp(RowId(1), Timestamp(0), ("x" * 400_000,)),) * 7)], ()),
        ([], [SchemaChange(shard=ShardId(n), spec=spec()) for n in range(100)]),
        ([], [SchemaChange(shard=ShardId(9), spec=wide)] * 3),
    ):
        writes = WriteSet(txn=TxnId(3), ts=Timestamp(0), shards=tuple(shards), schema=tuple(schema))
        assert not is_short(writes)
        pieces = list(encode_write_set_slowly(writes))
        whole = encode_write_set(writes)
        assert b"".join(pieces) == whole
        assert max(map(len, pieces)) <= encode.PIECE_BYTES + 400_100
    few = WriteSet(
        txn=TxnId(3), ts=Timestamp(0), shards=(ShardWrites(shard=ShardId(1), ops=(row,) * 5),), schema=()
    )
    assert is_short(few)


def test_a_slice_ends_by_number_and_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(slices, "perf_counter", lambda: clock[0])
    pause = Slice(100, look=3)
    assert [n for n in range(1, 301) if pause.over()] == [100, 200, 300]
    said = []
    for _ in range(20):
        clock[0] += slices.SLICE_S / 4
        said.append(pause.over())
    assert [n for n, over in enumerate(said, 1) if over] == [6, 12, 18]

    held = list(range(3 * slices.FREED))
    assert [len(held) for _ in free(held)] == [2 * slices.FREED, slices.FREED]
    assert not held
    held = list(range(slices.FREED))
    monkeypatch.setattr(slices, "perf_counter", lambda: clock.append(0.0) or len(clock) * slices.SLICE_S)
    assert len([len(held) for _ in free(held)]) > 10
