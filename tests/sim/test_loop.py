"""The simulated loop: virtual time, order from a seed, processes that die without a word or stand still."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from tests.sim.loop import Process, ProcessDied, SimLoop, Stuck


def simulate(
    work: Callable[[SimLoop], Coroutine[Any, Any, Any]], seed: int = 0, disorder: float = 1.0
) -> Any:
    loop = SimLoop(random.Random(seed), disorder)
    try:
        return loop.run_until_complete(work(loop))
    finally:
        loop.close()
        loop.bury()


def test_time_passes_only_while_nobody_can_run() -> None:
    async def work(loop: SimLoop) -> float:
        began = loop.time()
        await asyncio.gather(asyncio.sleep(30), asyncio.sleep(60))
        return loop.time() - began

    assert 60 <= simulate(work) < 60.01


async def _order(_loop: SimLoop) -> str:
    out: list[str] = []

    async def one(name: str) -> None:
        for _ in range(3):
            out.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(one(name) for name in "abc"))
    return "".join(out)


def test_order_comes_from_the_seed() -> None:
    assert simulate(_order, 1) == simulate(_order, 1)
    assert len({simulate(_order, seed) for seed in range(20)}) > 10
    assert simulate(_order, 1, disorder=0.0) == "abcabcabc"


def test_callbacks_of_one_future_keep_their_order() -> None:
    async def work(loop: SimLoop) -> list[int]:
        out: list[int] = []
        future = loop.create_future()
        for n in range(20):
            future.add_done_callback(lambda _future, n=n: out.append(n))
        future.set_result(None)
        await asyncio.sleep(1)
        return out

    for seed in range(10):
        assert simulate(work, seed) == list(range(20))


def test_nothing_to_wait_for_is_told() -> None:
    async def work(loop: SimLoop) -> None:
        await loop.create_future()

    with pytest.raises(Stuck):
        simulate(work)


def test_a_killed_process_does_nothing_more_not_even_clean_up() -> None:
    said: list[str] = []

    async def inside(outside: Awaitable[None]) -> None:
        try:
            await outside
            said.append("went on")
        finally:
            said.append("cleaned up")

    async def work(loop: SimLoop) -> list[str]:
        process = Process(loop, "p")
        answer: asyncio.Future[None] = loop.create_future()
        client = loop.create_task(process.call(inside(answer)))
        await asyncio.sleep(1)
        process.kill()
        answer.set_result(None)
        with pytest.raises(ProcessDied):
            await client
        await asyncio.sleep(10)
        with pytest.raises(ProcessDied):
            await process.call(asyncio.sleep(0))
        return list(said)

    assert simulate(work) == []


def test_children_and_timers_die_with_their_process() -> None:
    said: list[str] = []

    async def inside() -> None:
        asyncio.get_running_loop().call_later(5, said.append, "timer")
        asyncio.get_running_loop().create_task(later())
        await asyncio.sleep(100)

    async def later() -> None:
        await asyncio.sleep(5)
        said.append("child")

    async def work(loop: SimLoop) -> None:
        process = Process(loop, "p")
        process.start(inside())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(10)

    simulate(work)
    assert said == []


def test_a_paused_process_goes_on_where_it_stood() -> None:
    async def inside(said: list[float], loop: SimLoop) -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            said.append(loop.time())

    async def work(loop: SimLoop) -> list[float]:
        process = Process(loop, "p")
        said: list[float] = []
        began = loop.time()
        done = loop.create_task(process.call(inside(said, loop)))
        await asyncio.sleep(1.5)
        process.pause()
        await asyncio.sleep(100)
        assert len(said) == 1
        process.resume()
        await done
        return [time - began for time in said]

    first, second, third = simulate(work)
    assert first < 1.1
    assert 101.5 <= second < 101.6
    assert third > second + 0.9


def test_any_step_can_be_interrupted() -> None:
    async def work(loop: SimLoop) -> int:
        struck: list[int] = []
        loop.after_steps(7, lambda: struck.append(loop.steps))
        began = loop.steps
        for _ in range(20):
            await asyncio.sleep(0)
        return struck[0] - began

    assert simulate(work) == 7


def test_threads_are_refused() -> None:
    async def work(loop: SimLoop) -> None:
        await asyncio.to_thread(print)

    with pytest.raises(AssertionError, match="thread"):
        simulate(work)
