"""Who may run Spark jobs: first come, first served; whoever gives up leaves the queue without holding others up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from engine.executors.spark.slots import JOB, QUEUE, Client, FairPools, Slots, Waits


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 60))


ONE = Client(session=1)


async def turns() -> None:
    """Let what is ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_those_beyond_the_limit_go_in_the_order_they_came() -> None:
    async def body() -> None:
        slots = Slots(2)
        entered: list[int] = []

        async def client(number: int) -> None:
            await slots.enter(ONE)
            entered.append(number)

        tasks = [asyncio.ensure_future(client(number)) for number in range(5)]
        await turns()
        assert (entered, slots.running, slots.waiting) == ([0, 1], 2, 3)
        slots.leave(ONE)
        await turns()
        assert (entered, slots.running, slots.waiting) == ([0, 1, 2], 2, 2)
        slots.leave(ONE)
        slots.leave(ONE)
        await turns()
        assert (entered, slots.running, slots.waiting) == ([0, 1, 2, 3, 4], 2, 0)
        slots.leave(ONE)
        slots.leave(ONE)
        await asyncio.gather(*tasks)
        assert slots.running == 0

    run(body())


def test_nobody_overtakes_the_queue() -> None:
    async def body() -> None:
        slots = Slots(1)
        await slots.enter(ONE)
        first = asyncio.ensure_future(slots.enter(ONE))
        await turns()
        slots.leave(ONE)  # the slot is the first one's before it has run on
        late = asyncio.ensure_future(slots.enter(ONE))
        await turns()
        assert (first.done(), late.done()) == (True, False)
        slots.leave(ONE)
        await late

    run(body())


@pytest.mark.parametrize("just_called", [False, True])
def test_who_is_cancelled_leaves_its_place_to_the_next(just_called: bool) -> None:
    async def body() -> None:
        slots = Slots(1)
        await slots.enter(ONE)
        gives_up = asyncio.ensure_future(slots.enter(ONE))
        next_one = asyncio.ensure_future(slots.enter(ONE))
        await turns()
        if just_called:
            slots.leave(ONE)  # its turn comes, and it is cancelled before it knows
            gives_up.cancel()
        else:
            gives_up.cancel()
            await turns()
            assert slots.waiting == 1
            slots.leave(ONE)
        await next_one
        assert gives_up.cancelled()
        assert (slots.running, slots.waiting) == (1, 0)

    run(body())


def test_a_role_has_its_bound_over_all_its_sessions_and_others_pass() -> None:
    async def body() -> None:
        slots = Slots(3)
        entered: list[str] = []
        ann = [Client(session=n, role=10, most=1) for n in range(3)]
        ben = [Client(session=n, role=11, most=2) for n in range(3, 6)]

        async def client(name: str, who: Client) -> None:
            await slots.enter(who)
            entered.append(name)

        tasks = [asyncio.ensure_future(client(f"ann {n}", who)) for n, who in enumerate(ann)]
        tasks += [asyncio.ensure_future(client(f"ben {n}", who)) for n, who in enumerate(ben)]
        tasks.append(asyncio.ensure_future(client("server", ONE)))
        await turns()
        assert entered == ["ann 0", "ben 0", "ben 1"]
        assert (slots.running, slots.waiting) == (3, 4)
        assert slots.wanted(ann[0])
        slots.leave(ann[0])
        await turns()
        assert entered[3:] == ["ann 1"]  # of its own role, and first in the queue
        slots.leave(ann[1])
        slots.leave(ben[0])
        await turns()
        assert entered[4:] == ["ann 2", "ben 2"]
        assert slots.wanted(ben[1])  # by the server
        slots.leave(ben[1])
        await turns()
        assert entered[6:] == ["server"]
        assert not slots.wanted(ben[2])
        late = asyncio.ensure_future(client("ann 3", Client(session=9, role=10, most=1)))
        await turns()
        assert slots.wanted(ann[2])
        assert not slots.wanted(ben[2])  # whose slot ann could not have
        assert not slots.wanted(ONE)
        slots.leave(ann[2])
        await turns()
        assert late.done()
        await asyncio.gather(*tasks)
        for who in (ann[0], ben[0], ONE):
            slots.leave(who)
        assert slots.running == 0

    run(body())


def test_connections_have_a_pool_each_and_leave_its_name_to_others() -> None:
    pools = FairPools()
    assert [pools.enter(7), pools.enter(8), pools.enter(7)] == [
        "connection_1",
        "connection_2",
        "connection_1",
    ]
    pools.leave(7)
    assert pools.enter(9) == "connection_3"  # 7 has a job left
    pools.leave(7)
    assert pools.enter(10) == "connection_1"
    assert pools.enter(8) == "connection_2"


def test_what_a_session_waits_for_is_what_it_met_last() -> None:
    waits = Waits()
    waits.enter(1, JOB)
    waits.enter(1, QUEUE)
    assert (waits.of(1), waits.of(2)) == (QUEUE, None)
    waits.leave(1, QUEUE)
    assert waits.of(1) == JOB
    waits.leave(1, JOB)
    assert waits.of(1) is None
