"""The outermost pipeline goes on where there was nothing to wait for, and hands out what has begun to wait."""

from __future__ import annotations

import asyncio
import gc

import pytest

from engine.executors.index.state import Pipe, Rows, Wait, abandon, run_ready, waited
from planner.base.errors import SqlError


async def _at_once() -> str:
    return "here"


async def _later(gate: asyncio.Future[str], steps: list[str]) -> str:
    steps.append("begun")
    return await gate


def _pipe(*waits: Wait) -> Pipe:
    for wait in waits:
        yield wait
        yield [(wait.value,)]


def test_what_is_there_at_once_is_not_waited_for() -> None:
    rows: Rows = []
    assert run_ready(_pipe(Wait(_at_once()), Wait(_at_once())), rows, outermost=True) == (True, None)
    assert rows == [("here",), ("here",)]


def test_a_sub_select_stops_at_each_wait() -> None:
    rows: Rows = []
    pipe = _pipe(Wait(_at_once()))
    finished, wait = run_ready(pipe, rows)
    assert (finished, rows) == (False, [])
    assert isinstance(wait, Wait)
    abandon(pipe, wait)


def test_what_has_to_wait_begins_once_and_is_handed_out() -> None:
    async def run() -> None:
        steps: list[str] = []
        gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        rows: Rows = []
        pipe = _pipe(Wait(_at_once()), Wait(_later(gate, steps)))
        finished, wait = run_ready(pipe, rows, outermost=True)
        assert (finished, rows, steps) == (False, [("here",)], ["begun"])
        assert isinstance(wait, Wait)
        gate.set_result("there")
        wait.value = await wait.awaitable
        assert list(pipe) == [[("there",)]]
        assert steps == ["begun"]

    asyncio.run(run())


def test_what_nobody_has_begun_to_wait_for_is_closed(recwarn: pytest.WarningsRecorder) -> None:
    begun: list[int] = []

    async def read() -> int:
        begun.append(1)
        return 7

    def above(pipe: Pipe) -> Pipe:
        for item in pipe:
            assert isinstance(item, Wait)
            raise SqlError("57014", "an error on the way to who drives")
        yield None

    def pipe() -> Pipe:
        yield [((yield from waited(read())),)]

    with pytest.raises(SqlError):
        next(above(pipe()))
    gc.collect()
    steps = pipe()
    item = next(steps)
    assert isinstance(item, Wait)
    item.value = asyncio.run(item.awaitable)  # type: ignore[arg-type]
    assert next(steps) == [(7,)]
    assert item.value is None
    assert begun == [1]
    assert not [w for w in recwarn if "never awaited" in str(w.message)]
