"""Who may run Spark jobs: first come, first served; whoever gives up leaves the queue without holding others up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from engine.spark.slots import JOB, QUEUE, FairPools, Slots, Waits


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 60))


async def turns() -> None:
    """Let what is ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_those_beyond_the_limit_go_in_the_order_they_came() -> None:
    async def body() -> None:
        slots = Slots(2)
        entered: list[int] = []

        async def client(number: int) -> None:
            await slots.enter()
            entered.append(number)

        tasks = [asyncio.ensure_future(client(number)) for number in range(5)]
        await turns()
        assert (entered, slots.running, slots.waiting) == ([0, 1], 2, 3)
        slots.leave()
        await turns()
        assert (entered, slots.running, slots.waiting) == ([0, 1, 2], 2, 2)
        slots.leave()
        slots.leave()
        await turns()
        assert (entered, slots.running, slots.waiting) == ([0, 1, 2, 3, 4], 2, 0)
        slots.leave()
        slots.leave()
        await asyncio.gather(*tasks)
        assert slots.running == 0

    run(body())


def test_nobody_overtakes_the_queue() -> None:
    async def body() -> None:
        slots = Slots(1)
        await slots.enter()
        first = asyncio.ensure_future(slots.enter())
        await turns()
        slots.leave()  # the slot is the first one's before it has run on
        late = asyncio.ensure_future(slots.enter())
        await turns()
        assert (first.done(), late.done()) == (True, False)
        slots.leave()
        await late

    run(body())


@pytest.mark.parametrize("just_called", [False, True])
def test_who_is_cancelled_leaves_its_place_to_the_next(just_called: bool) -> None:
    async def body() -> None:
        slots = Slots(1)
        await slots.enter()
        gives_up = asyncio.ensure_future(slots.enter())
        next_one = asyncio.ensure_future(slots.enter())
        await turns()
        if just_called:
            slots.leave()  # its turn comes, and it is cancelled before it knows
            gives_up.cancel()
        else:
            gives_up.cancel()
            await turns()
            assert slots.waiting == 1
            slots.leave()
        await next_one
        assert gives_up.cancelled()
        assert (slots.running, slots.waiting) == (1, 0)

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
