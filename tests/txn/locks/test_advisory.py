"""Advisory locks: counts per level and mode, waits that end in every way, deadlocks across a session's two owners."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.support.durable import run
from tests.txn.locks.test_lock_table import owner, turns, waiting
from txn.base.errors import Deadlock, LockTimeout, TooManyLocks, WaitCancelled
from txn.locks import advisory
from txn.locks import table as locktable
from txn.locks.advisory import AdvisoryLocks
from txn.locks.granule import Advisory, Granule
from txn.locks.mode import X
from txn.locks.table import LockTable

ONE, TWO = Advisory(0, 1), Advisory(0, 2)


def locks(table: LockTable, session: int) -> AdvisoryLocks:
    return AdvisoryLocks(table, session, 1000 + session)


def take(of: AdvisoryLocks, what: Advisory, *, exclusive: bool = True, transaction: bool = False) -> None:
    assert of.lock(what, exclusive=exclusive, transaction=transaction) is None


def test_a_number_is_held_as_long_as_any_count_is_left() -> None:
    """Random locks and unlocks of one session against counters; a second session asks what is free."""

    async def go() -> None:
        draw = random.Random(7)
        table = LockTable()
        mine, other = locks(table, 1), locks(table, 2)
        counts: dict[tuple[Advisory, bool, bool], int] = {}
        for _ in range(3000):
            what = draw.choice((ONE, TWO))
            exclusive, transaction = draw.random() < 0.5, draw.random() < 0.3
            key = (what, exclusive, transaction)
            step = draw.random()
            if step < 0.45:
                take(mine, what, exclusive=exclusive, transaction=transaction)
                counts[key] = counts.get(key, 0) + 1
            elif step < 0.95:
                had = counts.get(key, 0) > 0
                assert mine.unlock(what, exclusive=exclusive, transaction=transaction) is had
                if had:
                    counts[key] -= 1
            elif step < 0.98:
                mine.unlock_transaction()
                counts = {k: n for k, n in counts.items() if not k[2]}
            else:
                mine.unlock_session()
                counts = {k: n for k, n in counts.items() if k[2]}
            for number in (ONE, TWO):
                held = {k[1] for k, n in counts.items() if n and k[0] == number}
                for alone in (False, True):
                    free = not held or (held == {False} and not alone)
                    assert other.try_lock(number, exclusive=alone, transaction=False) is free
                    assert other.unlock(number, exclusive=alone) is free
            table.validate()
        mine.close()
        other.close()
        assert not table.entries
        assert not table.advisory

    run(go)


def test_a_wait_ends_by_timeout_cancel_or_the_end_of_its_session_and_leaves_nothing() -> None:
    async def go() -> None:
        table = LockTable()
        a, b = locks(table, 1), locks(table, 2)
        take(a, ONE)
        timed = b.lock(ONE, exclusive=True, transaction=False, lock_timeout_ms=1)
        with pytest.raises(LockTimeout):
            await waiting(timed)
        cancelled = waiting(b.lock(ONE, exclusive=False, transaction=True))
        await turns()
        assert table.cancel(2) == 1
        with pytest.raises(WaitCancelled):
            await cancelled
        closed = waiting(b.lock(ONE, exclusive=True, transaction=False))
        await turns()
        b.close()
        with pytest.raises(WaitCancelled):
            await closed
        assert a.unlock(ONE, exclusive=True)
        assert not table.entries

    run(go)


def test_a_lock_granted_to_a_statement_that_was_given_up_is_free_again() -> None:
    async def go() -> None:
        table = LockTable()
        a, b = locks(table, 1), locks(table, 2)
        take(a, ONE)
        late = waiting(b.lock(ONE, exclusive=True, transaction=False))
        await turns()
        assert a.unlock(ONE, exclusive=True)  # b's by now
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert a.try_lock(ONE, exclusive=True, transaction=False)
        never_awaited = b.lock(ONE, exclusive=True, transaction=False)
        take(b, TWO)  # leaves the queue it stood in
        assert a.unlock(ONE, exclusive=True)
        assert a.try_lock(ONE, exclusive=True, transaction=False)
        with pytest.raises(WaitCancelled):
            await waiting(never_awaited)

    run(go)


@pytest.mark.parametrize("policy", ["detect", "wound_wait", "wait_die"])
@pytest.mark.parametrize("number_first", [True, False])
@pytest.mark.parametrize("ids", [(1, 2), (2, 1)])
def test_cycles_through_a_row_and_a_number_are_found(
    policy: str, number_first: bool, ids: tuple[int, int]
) -> None:
    """Session 1 holds number ONE and wants a row that session 2's transaction holds, which wants ONE."""

    async def go() -> None:
        table = LockTable(policy)
        one, two = locks(table, 1), locks(table, 2)
        first, second = owner(ids[0]), owner(ids[1])
        first.session, second.session = 1, 2
        take(one, ONE)
        assert table.acquire(second, ("t", 1), X) is None

        async def ask_row() -> None:
            if (wait := table.acquire(first, ("t", 1), X)) is not None:
                await wait

        async def ask_number() -> None:
            if (wait := two.lock(ONE, exclusive=True, transaction=True)) is not None:
                await wait

        tasks = []
        for ask in (ask_number, ask_row) if number_first else (ask_row, ask_number):
            tasks.append(asyncio.ensure_future(ask()))
            await turns()
        failed = [task.exception() for task in tasks if task.done()]
        if second.doomed is not None:  # wounded: it gives up at its next request
            failed.append(second.doomed)
        assert failed, "nobody gave up"
        for error in failed:
            assert isinstance(error, Deadlock)
            assert {wait.waiter for wait in error.waits} <= {1, 2}
        for task in tasks:
            task.cancel()
        await turns()
        table.validate()

    run(go)


def test_a_session_may_hold_so_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advisory, "MAX_NUMBERS", 3)
    table = LockTable()
    mine = locks(table, 1)
    for number in range(3):
        take(mine, Advisory(1, number))
    take(mine, Advisory(1, 2))
    with pytest.raises(TooManyLocks):
        mine.try_lock(Advisory(1, 3), exclusive=True, transaction=False)
    with pytest.raises(TooManyLocks):
        mine.lock(Advisory(1, 4), exclusive=False, transaction=True)
    assert mine.unlock(Advisory(1, 0), exclusive=True)
    take(mine, Advisory(1, 3))


@pytest.mark.parametrize("kept", [0, 3, 30], ids=["nothing is kept", "few", "more than end"])
def test_a_transaction_with_many_ends_in_one_short_turn(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """Its numbers are free at once and forgotten in turns to come; what the session has locked stays, in its own mode."""

    async def go() -> None:
        monkeypatch.setattr(advisory, "AT_ONCE", 5)
        monkeypatch.setattr(locktable, "AT_ONCE", 5)
        table = LockTable()
        mine, other = locks(table, 1), locks(table, 2)
        numbers = [Advisory(1, n) for n in range(40)]
        for number in numbers[:kept]:
            take(mine, number, exclusive=False)
        for number in numbers[:20]:
            take(mine, number, transaction=True)
        waits = waiting(other.lock(numbers[19], exclusive=True, transaction=False))
        await turns()
        settled: list[Granule] = []
        demote = table.demote
        monkeypatch.setattr(table, "demote", lambda *args: (settled.append(args[1]), demote(*args)))
        mine.unlock_transaction()
        assert len(settled) <= (20 if kept > 20 else kept)
        for at, number in enumerate(numbers[:19]):
            assert other.try_lock(number, exclusive=True, transaction=False) is (at >= kept)
            assert other.try_lock(number, exclusive=False, transaction=False)
        mine.unlock_transaction()
        if kept < 20:
            await waits
        else:
            waits.cancel()
        await turns()
        table.validate()
        assert {row.granule for row in table.rows() if row.session == 1} == set(numbers[:kept])
        mine.unlock_session()
        other.close()
        mine.close()
        await turns()
        assert not table.entries
        assert not table.advisory

    run(go)
