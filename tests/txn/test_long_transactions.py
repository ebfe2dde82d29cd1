"""Transactions of very many statements: what they remember is bounded, and their end frees it without a deep recursion."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store, settle
from txn.base.errors import WriteConflict
from txn.base.types import KeyRange
from txn.transaction.scan_watch import MAX_PREDICATES

# More intents of one row than a recursion over them could free within 8 MB of stack.
DEEP = 400_000
SCRIPT = f"""
import asyncio, sys
from tests.support.store import SHARD, make_table, now, open_memory_store, settle

async def main(end: str) -> None:
    store = await open_memory_store()
    await make_table(store, [(1, 0, "x")])
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    async for (row,) in txn.scan(SHARD):
        row_id = row.row_id
    own = None
    for n in range({DEEP}):
        if own is None:
            txn.next_statement()
            txn.update(SHARD, [(row_id, (1, n, "x"))])
            own = txn.own[SHARD]
        else:
            own.put(row_id, (1, n, "x"), n + 2, own.rows[row_id].base)
            txn.journal.append((own, row_id))
    del own
    txn.next_statement()
    if end == "truncate":
        await now(txn.truncate(SHARD))
    await now(txn.commit() if end != "rollback" else txn.rollback())
    for _ in range(1000):
        await asyncio.sleep(0)
    txn = store.begin(read_only=True)
    values = [r.values[1] async for chunk in txn.scan(SHARD) for r in chunk]
    assert values == {{"commit": [{DEEP} - 1], "rollback": [0], "truncate": []}}[end], values
    txn.rollback()
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("end", ["commit", "rollback", "truncate"])
def test_a_row_that_was_updated_very_often_does_not_end_the_server(end: str) -> None:
    """In a process of its own, since it is the process that would not survive."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, end], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_reads_of_a_block_that_has_yet_to_write_are_remembered_in_bounded_space() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(5)])
        txn = store.begin()
        for n in range(10 * MAX_PREDICATES):

            def wanted(row: Any, n: int = n) -> bool:
                return bool(row[0] == 1000 + n)

            async for _ in txn.scan(SHARD, predicate=wanted):
                pass
        assert txn.reads_so_far is not None
        assert len(txn.reads_so_far.scans[SHARD]) <= MAX_PREDICATES
        other = store.begin()
        await now(other.begin_write([SHARD]))
        await now(other.insert(SHARD, [(7, 0, "x")]))
        await now(other.commit())
        with pytest.raises(WriteConflict):
            await now(txn.begin_write([SHARD]))
        txn.rollback()
        await store.close()

    run(body)


def test_a_range_that_is_read_again_and_again_is_remembered_once() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(5)])
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        wanted = KeyRange(lower=1, upper=3, has_lower=True, has_upper=True)
        for _ in range(100):
            assert len(await now(txn.range(SHARD, BY_K, wanted))) == 3
        assert [len(spans) for spans in txn.owner.spans.values()] == [1]
        txn.rollback()
        await settle()
        store.validate()
        await store.close()

    run(body)
