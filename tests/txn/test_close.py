"""Closing a store beside work that is still under way."""

from __future__ import annotations

import asyncio
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.store import SHARD, make_table, now, open_memory_store
from txn.errors import TxnError
from txn.persist.memory import MemoryDisk


@pytest.mark.parametrize("turns", range(0, 40, 2))
def test_close_beside_a_flush_is_orderly(turns: int) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store)
        for k in range(5):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            await now(txn.insert(SHARD, [(k, k, "x" * 100)]))
            await now(txn.commit())
        flush = asyncio.ensure_future(store.flush())
        for _ in range(turns):
            await asyncio.sleep(0)
        await store.close()
        await asyncio.wait([flush])
        assert flush.exception() is None or isinstance(flush.exception(), TxnError)
        store = await open_memory_store(disk)
        txn = store.begin(read_only=True)
        assert len([row async for chunk in txn.scan(SHARD) for row in chunk]) == 5
        txn.rollback()
        await store.close()

    with mock.patch("txn.group_commit.SPILL_BYTES", 60), mock.patch("txn.wal.apply._MIN_TRIM", 1):
        run(go)
