"""A cancel reaches what runs, at whatever moment it comes (L39)."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from engine.base.accounts import Account, Statements
from engine.base.eager import settle
from engine.session.interrupts import CancelFlag, Interrupts
from pgwire.errors import BackendError
from pgwire.session.turns import Turns
from planner.base.errors import SqlError
from tests.support.durable import run
from tests.support.store import SHARD, make_table, now, open_memory_store
from txn.base.types import RowId


def interrupts() -> Interrupts:
    session: Any = SimpleNamespace(
        cancelled=CancelFlag(),
        db=SimpleNamespace(lease=None, turns=Turns()),
        block=SimpleNamespace(txn=None),
        account=Account(Statements(limit=1 << 40, each=1 << 40)),
        reads_on=False,
        out=SimpleNamespace(when_complete=lambda work: work()),
    )
    return Interrupts(session)


async def decided(commit: asyncio.Future[int]) -> int:
    """Wait for what cannot be taken back any more (``engine.session.transaction.block``)."""
    while not commit.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(commit)
    return commit.result()


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_cancel_is_met_where_the_statement_waits(turns: int) -> None:
    """After one turn the statement waits, but the task that is to wait for it has not begun yet."""

    async def body() -> None:
        running, met = interrupts(), []

        async def statement() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                met.append(True)
                await asyncio.sleep(0)  # cleaning up may wait, too
                met.append(True)
                raise

        waiting = running.run(statement())
        assert waiting is not None
        client = asyncio.ensure_future(waiting)
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(SqlError) as error:
            await client
        assert error.value.sqlstate == "57014"
        assert met == [True, True]

    run(body)


@pytest.mark.parametrize(
    ("how", "goes_on"),
    [
        ("cancel", True),
        ("cancel early", True),
        ("cancel and leave", False),
        ("end", False),
        ("timed out", False),
    ],
)
def test_a_statement_may_catch_a_cancel_and_nothing_else(how: str, goes_on: bool) -> None:
    """Also where both come before it has its turn; the next cancel is another one."""

    async def body() -> None:
        running, caught = interrupts(), []

        async def statement() -> int:
            for _ in range(2):
                try:
                    if how == "cancel early" and not caught:
                        await asyncio.sleep(0)
                        running._session.cancelled.check()
                    await asyncio.get_running_loop().create_future()
                except (SqlError, asyncio.CancelledError) as error:
                    met = await running.caught(error)
                    if met is None:
                        raise
                    assert isinstance(met, SqlError)
                    caught.append(met.sqlstate)
            return len(caught)

        waiting = running.run(statement())
        assert waiting is not None
        client = asyncio.ensure_future(waiting)
        for _ in range(1 if how == "cancel early" else 3):
            await asyncio.sleep(0)
        if how == "timed out":
            running.end_transaction()
        running.cancel(ends=how == "end")
        if how == "cancel and leave":
            client.cancel()
        for _ in range(6):
            await asyncio.sleep(0)
        assert client.done() is not goes_on
        if goes_on:
            running.cancel()
            assert await client == 2
            assert caught == ["57014", "57014"]
        else:
            with pytest.raises((SqlError, BackendError, asyncio.CancelledError)):
                await client
            assert not caught

    run(body)


def test_what_commits_is_not_cancelled() -> None:
    """Its outcome is the answer, also if the cancel comes before the task that is to wait for it has begun."""

    async def body() -> None:
        for turns in (1, 2):
            running = interrupts()
            commit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            client = asyncio.ensure_future(running.run(decided(commit)))
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.sleep(0)
            commit.set_result(turns)
            assert await client == turns

    run(body)


def test_a_transaction_whose_wait_was_cancelled_at_once_can_go_on() -> None:
    async def body() -> None:
        store = await open_memory_store()
        await make_table(store, [(k, 0, "x") for k in range(3)])
        holder, txn = store.begin(), store.begin()
        await now(holder.begin_write([SHARD]))
        await now(holder.update(SHARD, [(RowId(1), (0, 1, "x")), (RowId(2), (1, 1, "x"))]))
        await now(txn.begin_write([SHARD]))
        mark = txn.savepoint()
        running = interrupts()
        kept = []  # what refers to the statement may live on in a traceback

        async def statement(row: int) -> Any:
            kept.append(txn.update(SHARD, [(RowId(row), (row - 1, 2, "x"))]))
            return await kept[-1]

        client = asyncio.ensure_future(running.run(statement(1)))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(SqlError):
            await client
        assert not store.core.locks.waiting
        txn.rollback_to(mark)
        again = asyncio.ensure_future(statement(2))
        await asyncio.sleep(0)
        holder.rollback()
        assert await again == [True]
        await now(txn.commit())
        store.validate()
        await store.close()

    run(body)


def test_what_the_client_has_still_to_take_is_charged_until_it_has() -> None:
    """A statement that was cancelled in the middle of a long row has ended; its row waits for the client."""

    async def body() -> None:
        running = interrupts()
        session = running._session
        left: list[Any] = []
        session.out = SimpleNamespace(when_complete=left.append)
        account = session.account

        async def statement() -> None:
            await asyncio.sleep(0)
            account.taken = account.statements.taken = 1 << 20

        await settle(running.run(statement()))
        assert account.taken == 1 << 20
        other = asyncio.ensure_future(settle(running.run(asyncio.sleep(3600))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        left.pop()()  # it is the next statement that gives back
        assert account.taken == 1 << 20
        running.cancel()
        with pytest.raises(SqlError):
            await other
        left.pop()()
        assert account.taken == account.statements.taken == 0

    run(body)
