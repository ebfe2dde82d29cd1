"""What dropped and changed tables keep for readers of the past has a bound: retention gives way, memory does not."""

from __future__ import annotations

import pytest

from tests.support.durable import run
from tests.support.store import make_table, now, open_memory_store, spec
from txn.base.errors import ReadBelowSince
from txn.base.slices import at_once
from txn.base.types import IndexId, PhysicalType, ShardColumn, ShardId, ShardIndex, ShardSpec, Timestamp
from txn.log.history_limit import CHANGE_BYTES
from txn.mvcc.generation import ELEMENT_BYTES, ENTRY_BYTES
from txn.transaction.coordinator import TxnOptions

MOST = 10


@pytest.mark.parametrize("held", [False, True])
def test_the_oldest_changes_go_once_there_are_too_many(held: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        options = TxnOptions(retention_ms=3_600_000, hot_bytes=2 * MOST * CHANGE_BYTES)
        store = await open_memory_store(options=options)
        at: list[Timestamp] = []

        async def come_and_go(first: int, count: int) -> None:
            for number in range(first, first + count):
                shard = ShardId(100 + number)
                at.append(await make_table(store, [(number, 0, "")], spec(shard)))
                txn = store.begin()
                await now(txn.drop_shard(shard))
                await now(txn.commit())

        def there(number: int) -> bool:
            try:
                txn = store.begin(read_only=True, at=at[number])
            except ReadBelowSince:
                return False
            txn.rollback()
            return True

        await come_and_go(0, MOST)
        reader = store.begin(read_only=True, at=at[2]) if held else None
        for _ in range(2):
            at_once(store.core.forgetting())
        assert there(0)
        assert len(store.core.shards) == MOST
        await come_and_go(MOST, 2 * MOST)
        for _ in range(2):  # what is too much is seen, then goes
            at_once(store.core.forgetting())
        if reader is not None:
            assert there(2)
            assert len(store.core.shards) >= 3 * MOST - 3, "what a reader needs, and all that is later"
            reader.rollback()
            at_once(store.core.forgetting())
        assert [there(number) for number in (2 * MOST - 1, 2 * MOST + 1)] == [False, True]
        changed = [history for history in store.core.shards.values() if len(history.entries) > 1]
        assert len(changed) == MOST
        assert caplog.text.count("the past is not kept") == 1
        store.validate()
        await store.close()

    run(body)


def test_rows_in_memory_of_tables_that_were_emptied_do_not_keep_writers_waiting() -> None:
    async def body() -> None:
        options = TxnOptions(retention_ms=3_600_000, hot_bytes=1 << 20)
        store = await open_memory_store(options=options)
        shard = ShardId(100)
        before = await make_table(store, [(number, number, "x") for number in range(2000)], spec(shard))
        txn = store.begin()
        await now(txn.truncate(shard))
        await now(txn.commit())
        for _ in range(2):
            at_once(store.core.forgetting())
        assert at_once(store.core.hot_sizes())[0] < options.hot_bytes // 2
        with pytest.raises(ReadBelowSince):
            store.begin(read_only=True, at=before)
        assert len(store.core.shards[shard].entries) == 1
        store.validate()
        await store.close()

    run(body)


def test_keys_of_rows_in_memory_count() -> None:
    """An inverted index has far more of a row of many elements than the log had of it, also of one that was dropped."""

    async def body() -> None:
        options = TxnOptions(retention_ms=3_600_000, hot_bytes=4 << 20)
        store = await open_memory_store(options=options)
        shard = ShardId(100)
        txn = store.begin()
        await now(txn.begin_write([]))
        txn.create_shard(
            ShardSpec(
                shard=shard,
                version=1,
                columns=(
                    ShardColumn(attnum=1, type=PhysicalType(kind="list", element=PhysicalType(kind="int32"))),
                ),
                indexes=(ShardIndex(index=IndexId(20), attnums=(1,), unique=False, kind="elements"),),
            )
        )
        await now(txn.insert(shard, [(tuple(range(20_000)),)]))
        await now(txn.commit())
        assert at_once(store.core.hot_sizes())[0] > 20_000 * ENTRY_BYTES
        txn = store.begin()
        await now(txn.drop_shard(shard))
        await now(txn.commit())
        for _ in range(2):
            at_once(store.core.forgetting())
        assert shard not in store.core.shards
        store.validate()
        await store.close()

    run(body)


@pytest.mark.parametrize("rows", [1, 50])
def test_elements_of_arrays_in_memory_count(rows: int) -> None:
    """They are objects; the log has a few bytes of each."""

    async def body() -> None:
        store = await open_memory_store()
        shard = ShardId(100)
        numbers = PhysicalType(kind="list", element=PhysicalType(kind="int32"))
        columns = (ShardColumn(attnum=1, type=numbers),)
        txn = store.begin()
        await now(txn.begin_write([]))
        txn.create_shard(ShardSpec(shard=shard, version=1, columns=columns, indexes=()))
        await now(txn.insert(shard, [(((tuple(range(5000))), tuple(range(5000))),)] * rows))
        await now(txn.commit())
        assert 1 <= at_once(store.core.hot_sizes())[0] / (rows * 10_000 * ELEMENT_BYTES) < 1.3
        store.validate()
        await store.close()

    run(body)


def test_what_others_keep_of_the_past_counts() -> None:
    """Definitions of the catalog that were replaced: the oldest go once they take too much together, and no more than has to."""

    async def body() -> None:
        store = await open_memory_store(options=TxnOptions(retention_ms=3_600_000, hot_bytes=2 << 20))
        at = [await make_table(store, [], spec(ShardId(number))) for number in range(100, 109)]
        kept = [(int(ts), 256 << 10) for ts in at]
        store.on_forgetting(tuple, lambda: [change for change in kept if change[0] > store.since])
        for _ in range(3):
            at_once(store.core.forgetting())
        assert store.since == at[-5], "four of 256 kB are what a megabyte holds"
        with pytest.raises(ReadBelowSince):
            store.begin(read_only=True, at=at[3])
        store.begin(read_only=True, at=at[5]).rollback()
        await store.close()

    run(body)
