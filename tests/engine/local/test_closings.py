"""Queries that end together are closed some in a turn, each once."""

from __future__ import annotations

import asyncio

import pytest

from engine.executors.local import closings
from engine.executors.local.closings import AT_ONCE, Closings


def test_many_are_closed_in_turns_and_in_order() -> None:
    async def go() -> None:
        ends = Closings()
        closed: list[int] = []
        for n in range(10 * AT_ONCE):
            ends.add(lambda n=n: closed.append(n))
        for turn in range(1, 10):
            assert len(closed) == turn * AT_ONCE
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert closed == list(range(10 * AT_ONCE))
        ends.add(lambda: closed.append(-1))
        assert closed[-1] == -1, "nothing is in its way, and it had to wait"

    asyncio.run(go())


def test_one_that_fails_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closings, "AT_ONCE", 1)

    def fail() -> None:
        raise ValueError

    async def go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        ends = Closings()
        closed: list[str] = []
        ends.add(lambda: closed.append("first"))
        ends.add(fail)
        ends.add(lambda: closed.append("third"))
        for _ in range(4):
            await asyncio.sleep(0)
        assert closed == ["first", "third"]

    asyncio.run(go())


def test_what_is_left_is_closed_at_the_end() -> None:
    async def go() -> None:
        ends = Closings()
        closed: list[int] = []
        for n in range(2 * AT_ONCE):
            ends.add(lambda n=n: closed.append(n))
        ends.finish()
        await asyncio.sleep(0)
        assert closed == list(range(2 * AT_ONCE))

    asyncio.run(go())


def test_where_no_loop_runs_nothing_waits() -> None:
    ends = Closings()
    closed: list[int] = []
    for n in range(2 * AT_ONCE):
        ends.add(lambda n=n: closed.append(n))
    assert len(closed) == 2 * AT_ONCE
