"""A commit is taken back at every moment before its batch is formed, and at none after; what is said of it holds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import SHARD, make_table, now, open_memory_store, settle
from txn.base.errors import CommitWithdrawn
from txn.store import ShardStore
from txn.transaction import writes

FORMS = {"small": (1, 1), "weighed": (40, 1), "encoded in pieces": (2000, 1), "made in pieces": (200, 1), "in a blob": (600, 4000)}  # fmt: skip
"""Rows, and characters of each."""


async def withdrawn_after(store: ShardStore, turns: int, rows: int, width: int) -> bool:
    """Take a commit back some turns after it was asked for; tell whether that was too late."""
    committer = store.core.log.committer
    log, real = committer._txns, committer._txns.append
    formed: list[bool] = []

    async def append(payload: bytes) -> int:
        formed.append(True)
        return await real(payload)

    log.append = append  # type: ignore[method-assign]
    txn = store.begin()
    await now(txn.begin_write([SHARD]))
    first = 100_000 * (turns + 1)
    await now(txn.insert(SHARD, [(first + i, 0, "x" * width) for i in range(rows)]))

    async def commit() -> Any:
        return await now(txn.commit())

    work = asyncio.ensure_future(commit())
    await asyncio.sleep(0)  # it has asked
    for _ in range(turns):
        await asyncio.sleep(0)
    late = work.done() or bool(formed)
    assert txn.withdraw() is not late
    if late:
        await work
    else:
        with pytest.raises(CommitWithdrawn):
            await work
    await settle()
    log.append = real  # type: ignore[method-assign]
    reader = store.begin(read_only=True)
    found = [r async for chunk in reader.scan(SHARD) for r in chunk if r.values[0] >= first]
    reader.rollback()
    assert len(found) == (rows if late else 0)
    assert not store.core.committing
    return late


@pytest.mark.parametrize("form", FORMS)
def test_a_commit_is_taken_back_until_its_batch_is_formed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "made in pieces":
        monkeypatch.setattr(writes, "PREPARE_ROWS", 50)

    async def body() -> None:
        store = await open_memory_store()
        await make_table(store)
        turns = 0
        while not await withdrawn_after(store, turns, *FORMS[form]):
            turns += 1
            assert turns < 200
        store.validate()
        await store.close()

    run(body)
