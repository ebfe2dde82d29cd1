"""Closing a store beside work that is still under way."""

from __future__ import annotations

import asyncio
import warnings
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.store import SHARD, StepClock, make_table, now, open_memory_store
from txn.base.errors import TxnError
from txn.base.time import SequentialIdGen
from txn.base.types import Timestamp
from txn.log.durable import DurableLog
from txn.persist.location import inline
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk
from txn.store import start_store
from txn.transaction.coordinator import Coordinator


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

    with mock.patch("txn.log.group_commit.SPILL_BYTES", 60), mock.patch("txn.wal.apply._MIN_TRIM", 1):
        run(go)


def test_a_start_that_is_thrown_away_leaves_no_coroutine_behind() -> None:
    """The loop is gone, as after a kill in the simulation: closing the log is not begun, for nobody could end it."""

    async def go() -> list[str]:
        async def never(_core: Coordinator) -> None:
            await asyncio.get_running_loop().create_future()

        disk = MemoryDisk()
        log = await DurableLog.assemble(
            MemoryConsensus(disk), MemoryBlob(disk), StepClock(), SequentialIdGen(), offload=inline
        )
        with mock.patch("txn.store.recover", never), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            start = start_store(log)
            start.send(None)
            start.close()
        with mock.patch("txn.store.recover", never):
            cancelled = asyncio.ensure_future(start_store(log))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        with pytest.raises(TxnError, match="shutting down"):
            log.committer.reach(Timestamp(1))
        return [str(warning.message) for warning in said]

    assert run(go) == []
