"""The lock table: matrices, fairness, upgrades, deadlocks, timeouts, and a property test of its invariants."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.support.durable import run
from txn.base.errors import Deadlock, LockTimeout, WaitCancelled
from txn.locks.entry import LockOwner
from txn.locks.mode import COMPATIBLE, IS, IX, NAMES, SIX, SUPREMUM, S, X
from txn.locks.table import AT_ONCE, LockTable


def owner(number: int, timeout_ms: int = 0) -> LockOwner:
    return LockOwner(number, session=number, lock_timeout_ms=timeout_ms)


def waiting(value: Awaitable[None] | None) -> asyncio.Task[None]:
    assert value is not None, "granted at once"

    async def wait() -> None:
        await value

    return asyncio.ensure_future(wait())


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_compatibility_is_symmetric_and_supremum_is_the_weakest_upper_bound() -> None:
    for a in range(5):
        for b in range(5):
            assert COMPATIBLE[a][b] == COMPATIBLE[b][a]
            above = [
                m
                for m in range(5)
                if all(COMPATIBLE[m][x] <= (COMPATIBLE[a][x] and COMPATIBLE[b][x]) for x in range(5))
            ]
            weakest = max(above, key=lambda m: sum(COMPATIBLE[m]))
            assert SUPREMUM[a][b] == weakest, (NAMES[a], NAMES[b])


def test_compatible_modes_share_and_others_wait_in_order() -> None:
    async def go() -> None:
        table = LockTable()
        a, b, c, d = (owner(i) for i in range(1, 5))
        assert table.acquire(a, "t", IX) is None
        assert table.acquire(b, "t", IX) is None
        third = waiting(table.acquire(c, "t", S))
        # An IX would fit the holders, but it must not overtake the waiting S.
        fourth = waiting(table.acquire(d, "t", IX))
        await turns()
        assert not third.done()
        assert not fourth.done()
        table.validate()
        table.release_all(a)
        table.release_all(b)
        await third
        await turns()
        assert not fourth.done()
        table.release_all(c)
        await fourth
        table.validate()
        table.release_all(d)
        assert len(table) == 0

    run(go)


def test_newcomer_that_fits_everybody_is_served_at_once() -> None:
    async def go() -> None:
        table = LockTable()
        a, b, c = owner(1), owner(2), owner(3)
        assert table.acquire(a, "t", IX) is None
        waiter = waiting(table.acquire(b, "t", S))
        assert table.acquire(c, "t", IS) is None
        table.release_all(a)
        await waiter

    run(go)


def test_upgrade_goes_before_newcomers() -> None:
    async def go() -> None:
        table = LockTable()
        a, b, c = owner(1), owner(2), owner(3)
        assert table.acquire(a, "r", S) is None
        assert table.acquire(b, "r", S) is None
        newcomer = waiting(table.acquire(c, "r", X))
        upgrade = waiting(table.acquire(a, "r", X))
        table.release_all(b)
        await upgrade
        await turns()
        assert not newcomer.done()
        table.release_all(a)
        await newcomer

    run(go)


def test_shared_and_intention_exclusive_add_up() -> None:
    async def go() -> None:
        table = LockTable()
        a, b = owner(1), owner(2)
        assert table.acquire(a, "t", S) is None
        assert table.acquire(a, "t", IX) is None
        assert a.held["t"] == SIX
        assert table.acquire(a, "t", S) is None, "held already"
        assert table.acquire(b, "t", IS) is None
        upgrade = waiting(table.acquire(b, "t", IX))
        await turns()
        assert not upgrade.done()
        table.release_all(a)
        await upgrade
        table.validate()

    run(go)


def test_youngest_of_a_cycle_gives_up() -> None:
    async def go() -> None:
        table = LockTable()
        old, young = owner(1), owner(2)
        assert table.acquire(old, "a", X) is None
        assert table.acquire(young, "b", X) is None
        victim = waiting(table.acquire(young, "a", X))
        survivor = waiting(table.acquire(old, "b", X))
        with pytest.raises(Deadlock) as caught:
            await victim
        assert {(w, h) for w, h, _what in caught.value.cycle} == {(1, 2), (2, 1)}
        table.release_all(young)
        await survivor
        table.validate()

    run(go)


def test_requester_that_closes_the_cycle_and_is_youngest_gives_up_at_once() -> None:
    async def go() -> None:
        table = LockTable()
        old, young = owner(1), owner(2)
        assert table.acquire(old, "a", X) is None
        assert table.acquire(young, "b", X) is None
        waiter = waiting(table.acquire(old, "b", X))
        with pytest.raises(Deadlock):
            table.acquire(young, "a", X)
        table.release_all(young)
        await waiter

    run(go)


def test_two_upgrades_of_one_granule_are_a_deadlock() -> None:
    async def go() -> None:
        table = LockTable()
        a, b = owner(1), owner(2)
        assert table.acquire(a, "r", S) is None
        assert table.acquire(b, "r", S) is None
        first = waiting(table.acquire(a, "r", X))
        with pytest.raises(Deadlock):
            table.acquire(b, "r", X)
        table.release_all(b)
        await first

    run(go)


def test_cycle_through_a_queue_is_found() -> None:
    """c waits only because b waits before it; b waits for a; a waits for c."""

    async def go() -> None:
        table = LockTable()
        a, b, c = owner(1), owner(2), owner(3)
        assert table.acquire(a, "t", IX) is None
        assert table.acquire(c, "u", X) is None
        second = waiting(table.acquire(b, "t", S))
        third = waiting(table.acquire(c, "t", IX))
        first = waiting(table.acquire(a, "u", X))
        with pytest.raises(Deadlock):
            await third
        table.release_all(c)
        await first
        table.release_all(a)
        await second

    run(go)


def test_lock_timeout_ends_the_wait_and_lets_others_pass() -> None:
    async def go() -> None:
        table = LockTable()
        a, b, c = owner(1), owner(2, timeout_ms=10), owner(3)
        assert table.acquire(a, "t", S) is None
        impatient = waiting(table.acquire(b, "t", X))
        behind = waiting(table.acquire(c, "t", S))
        with pytest.raises(LockTimeout):
            await impatient
        await behind
        table.validate()

    run(go)


def test_cancelled_task_leaves_the_queue() -> None:
    async def go() -> None:
        table = LockTable()
        a, b, c = owner(1), owner(2), owner(3)
        assert table.acquire(a, "t", S) is None
        gone = waiting(table.acquire(b, "t", X))
        behind = waiting(table.acquire(c, "t", S))
        await turns()
        gone.cancel()
        await behind
        table.validate()

    run(go)


def test_cancel_of_a_session_ends_its_wait_only() -> None:
    async def go() -> None:
        table = LockTable()
        a, b, c = owner(1), owner(2), owner(3)
        assert table.acquire(a, "t", X) is None
        mine = waiting(table.acquire(b, "t", X))
        other = waiting(table.acquire(c, "t", X))
        assert table.blockers(2) == [1]
        assert table.cancel(2) == 1
        with pytest.raises(WaitCancelled):
            await mine
        assert table.cancel(2) == 0
        table.release_all(a)
        await other

    run(go)


def test_try_acquire_never_waits() -> None:
    async def go() -> None:
        table = LockTable()
        a, b = owner(1), owner(2)
        assert table.try_acquire(a, "r", X)
        assert table.try_acquire(a, "r", S)
        assert not table.try_acquire(b, "r", S)
        table.release_all(a)
        assert table.try_acquire(b, "r", S)

    run(go)


@pytest.mark.parametrize("policy", ["wound_wait", "wait_die", "no_wait"])
def test_prevention_policies_leave_no_cycle(policy: str) -> None:
    async def go() -> None:
        table = LockTable(policy)
        old, young = owner(1), owner(2)
        assert table.acquire(old, "a", X) is None
        assert table.acquire(young, "b", X) is None
        failed = []
        waits: list[Any] = []
        for who, what in ((old, "b"), (young, "a")):
            try:
                wait = table.acquire(who, what, X)
            except Deadlock:
                failed.append(who)
                table.release_all(who)
            else:
                if wait is not None:
                    waits.append((who, waiting(wait)))
        await turns()
        for who in (old, young):
            if who.doomed is not None:
                failed.append(who)
                table.release_all(who)
        await turns()
        for who, task in waits:
            if who not in failed:
                await asyncio.wait_for(task, 1)
            else:
                task.cancel()
        assert failed, "somebody had to give up"
        if policy != "no_wait":
            assert failed == [young]

    run(go)


@pytest.mark.parametrize("policy", ["wound_wait", "wait_die", "detect"])
def test_an_upgrade_granted_beside_waiters_closes_no_cycle_unseen(policy: str) -> None:
    """``n`` waits for ``p`` alone, then for ``u`` as well, whose upgrade nobody had to wait for."""

    async def go() -> None:
        table = LockTable(policy)
        u, n, p = owner(1), owner(2), owner(3)
        if policy == "wound_wait":
            u, p = p, u
        assert table.acquire(u, "t", IS) is None
        assert table.acquire(p, "t", IX) is None
        assert table.acquire(n, "r", X) is None
        first = waiting(table.acquire(n, "t", S))
        await turns()
        assert table.acquire(u, "t", IX) is None
        try:
            second = table.acquire(u, "r", X)
        except Deadlock:
            table.release_all(u)
        else:
            assert second is not None
            last = waiting(second)
            await turns()
            with pytest.raises(Deadlock):
                await first
            table.release_all(n)
            await last
        table.release_all(p)
        await turns()
        assert first.done()
        table.validate()

    run(go)


@pytest.mark.parametrize("policy", ["detect", "wound_wait", "wait_die"])
@pytest.mark.parametrize("seed", range(30))
def test_random_use_keeps_every_invariant_and_always_ends(seed: int, policy: str) -> None:
    """Many transactions take random locks in random order; all end, by commit or as deadlock victims."""
    rng = random.Random(seed)

    async def go() -> None:
        table = LockTable(policy)
        ended = {"committed": 0, "deadlock": 0, "cancelled": 0}

        async def transaction(number: int) -> None:
            me = owner(number)
            try:
                for _ in range(rng.randrange(1, 6)):
                    wait = table.acquire(me, rng.randrange(4), rng.choice((IS, IX, S, SIX, X)))
                    if wait is not None:
                        await wait
                    table.validate()
                    for _ in range(rng.randrange(3)):
                        await asyncio.sleep(0)
                ended["committed"] += 1
            except Deadlock:
                ended["deadlock"] += 1
            except WaitCancelled:
                ended["cancelled"] += 1
            finally:
                table.release_all(me)
                table.validate()

        tasks = [asyncio.ensure_future(transaction(n)) for n in range(1, 25)]
        await asyncio.sleep(0)
        table.cancel(rng.randrange(1, 25))
        await asyncio.gather(*tasks)
        assert len(table) == 0
        assert ended["committed"] > 0

    run(go)


def test_many_locks_keep_nobody_out_once_their_owner_has_ended_and_go_in_slices() -> None:
    async def go() -> None:
        table = LockTable()
        many, other, third = owner(1), owner(2), owner(3)
        granules = [(1, number) for number in range(3 * AT_ONCE)]
        for granule in granules:
            assert table.try_acquire(many, granule, X)
        assert table.try_acquire(other, "shared", S)
        assert table.try_acquire(many, "shared", S)
        waiter = waiting(table.acquire(other, granules[7], S))
        await turns()
        table.release_all(many)
        table.validate()
        assert other.held[granules[7]] == S  # in the same turn
        assert {row.txn for row in table.rows()} == {2}
        assert not table.is_blocked(third, granules[9], X)
        assert table.holders(granules[9], X) == []
        assert table.try_acquire(third, granules[8], X)
        table.demote(many, granules[8], None)  # an instant lock, whose end comes late
        assert not table.try_acquire(third, granules[7], X)  # the waiter has it
        assert not table.try_acquire(third, "shared", X)
        assert table.try_acquire(other, "shared", X)  # an upgrade that only who is gone kept back
        table.validate()
        left = len(table)
        assert left > 2 * AT_ONCE  # the rest goes later
        sizes = [left]
        while len(table) > 3:
            await asyncio.sleep(0)
            table.validate()
            assert len(table) >= sizes[-1] - AT_ONCE
            sizes.append(len(table))
        await waiter
        table.release_all(many)  # idempotent
        table.release_all(other)
        table.release_all(third)
        assert len(table) == 0

    asyncio.run(go())
