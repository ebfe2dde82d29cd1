"""A bulk load beside a flush: rows that move from memory to a part meanwhile still count as duplicates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest

from tests.support.durable import run
from tests.support.store import SHARD, make_table, now, open_memory_store
from txn.errors import DuplicateKey


def test_a_flush_during_a_load_hides_no_duplicate() -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, [(39, 3, "old")])

        async def batches() -> AsyncIterator[Any]:
            await store.flush()
            yield pa.record_batch(
                [pa.array([39]), pa.array([3]), pa.array(["new"])], names=["c1", "c2", "c3"]
            )

        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        with pytest.raises(DuplicateKey):
            await txn.bulk_insert(SHARD, batches())
        txn.rollback()
        await store.close()

    run(go)
