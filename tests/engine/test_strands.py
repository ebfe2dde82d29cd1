"""Strands: work that gives way in the middle of a call, however deep, and what ends it (``engine.base.loop.strands``, ``pgwire.give_way``)."""

from __future__ import annotations

import asyncio
import functools
import gc
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import pytest

from engine.base.eager import LaidAside, OnStrand, call_on_strand, eager, on_strand
from engine.base.loop import strands
from engine.base.loop.threads import beside
from pgwire import give_way as way
from pgwire.give_way import TurnBroken, give_way, opened, openly, paced, paced_iter, whole_turn
from pgwire.session.turns import Turns

Clock = Callable[[float], None]


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A clock that stands still until the test moves it."""
    now = [100.0]
    monkeypatch.setattr(way, "perf_counter", lambda: now[0])
    way.install(strands.lay_aside, None)
    gc.freeze()  # what other tests have left need not be walked below
    busy = strands.busy()

    def move(seconds: float) -> None:
        now[0] += seconds

    yield move
    gc.collect()
    assert strands.busy() == busy, "a strand has leaked"


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(body())


def deep(depth: int, work: Callable[[], Any]) -> Any:
    """Call ``work`` below calls of C that call Python."""
    return functools.reduce(lambda _, d: deep(d, work), [depth - 1], None) if depth else work()


def test_others_run_before_a_deep_call_has_ended(pass_time: Clock) -> None:
    seen: list[str] = []

    def work() -> str:
        seen.append("begins")
        pass_time(0.006)
        give_way()
        seen.append("ends")
        return "value"

    async def body() -> None:
        result = call_on_strand(openly, deep, 3, work)
        assert isinstance(result, LaidAside)
        seen.append("others")
        assert await result == "value"

    run(body)
    assert seen == ["begins", "others", "ends"]


def test_nothing_gives_way_before_its_slice_is_over(pass_time: Clock) -> None:
    def work() -> int:
        pass_time(0.004)
        give_way()
        return 1

    assert call_on_strand(openly, work) == 1


def test_code_that_nobody_has_opened_keeps_its_turn(pass_time: Clock) -> None:
    def closed() -> int:
        pass_time(1)
        give_way()
        return 1

    async def statement() -> int:
        opened(True)
        await asyncio.sleep(0)  # whatever was left open: the next step begins closed
        return closed()

    async def body() -> None:
        assert call_on_strand(closed) == 1
        assert call_on_strand(openly, openly, lambda: 1) == 1
        waiting = on_strand(statement())
        assert isinstance(waiting, OnStrand)
        assert await waiting == 1

    run(body)


def test_a_coroutine_within_open_code_is_closed(pass_time: Clock) -> None:
    """What an expression calls may stage rows."""

    async def called() -> int:
        pass_time(1)
        give_way()
        return 1

    assert call_on_strand(openly, lambda: eager(called())) == 1


def test_each_step_of_a_coroutine_gives_way_and_waits(pass_time: Clock) -> None:
    seen: list[Any] = []

    def computes(n: int) -> int:
        pass_time(0.006)
        give_way()
        return n

    async def statement() -> int:
        total = openly(computes, 1)
        total += await asyncio.sleep(0.001, 10)
        total += openly(computes, 100)
        return total

    async def other() -> None:
        for n in range(3):
            seen.append(n)
            await asyncio.sleep(0)

    async def body() -> None:
        waiting = on_strand(statement())
        beside = asyncio.create_task(other())
        assert isinstance(waiting, OnStrand)
        assert await waiting == 111
        await beside

    run(body)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("as_call", [True, False])
def test_a_cancel_is_met_where_the_work_is(pass_time: Clock, as_call: bool) -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            while True:
                pass_time(0.006)
                give_way()
        except Exception:
            seen.append("swallowed")
        finally:
            give_way()
            seen.append("cleaned up")

    async def statement() -> None:
        openly(work)

    async def body() -> None:
        waiting: Any = call_on_strand(openly, work) if as_call else on_strand(statement())
        task = asyncio.ensure_future(waiting)
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(body)
    assert seen == ["cleaned up"]


@pytest.mark.parametrize("as_call", [True, False])
def test_what_is_given_up_runs_its_finally_clauses(pass_time: Clock, as_call: bool) -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            pass_time(0.006)
            give_way()
        finally:
            pass_time(0.006)
            give_way()  # it is not laid aside again
            seen.append("deep")

    async def statement() -> None:
        try:
            openly(work)
        finally:
            await asyncio.sleep(0)
            seen.append("coroutine")

    async def body() -> None:
        waiting: Any = call_on_strand(openly, work) if as_call else on_strand(statement())
        waiting.close()

    run(body)
    assert seen[0] == "deep"


def test_one_slice_in_each_turn_of_the_loop(pass_time: Clock) -> None:
    """Ten long works hold a short one up for a slice or two, not for ten."""
    slices = 0

    def long() -> None:
        nonlocal slices
        for _ in range(50):
            slices += 1
            pass_time(0.006)
            give_way()

    async def body() -> None:
        works = [asyncio.ensure_future(call_on_strand(openly, long)) for _ in range(10)]  # type: ignore[arg-type]
        for _ in range(20):  # all of them wait
            await asyncio.sleep(0)
        for _ in range(10):
            before = slices
            await asyncio.sleep(0)
            assert slices - before <= 1
        await asyncio.gather(*works)
        assert slices == 500

    run(body)


def test_what_waits_in_synchronous_code(pass_time: Clock) -> None:
    async def answer(value: int) -> int:
        await asyncio.sleep(0)
        if value < 0:
            raise ValueError(value)
        return value

    def work() -> int:
        assert strands.may_wait()
        with pytest.raises(ValueError, match="-1"):
            strands.wait(answer(-1))
        return strands.wait(answer(1)) + strands.wait(answer(2))

    async def body() -> None:
        assert not strands.may_wait()
        waiting = call_on_strand(openly, work)
        assert isinstance(waiting, Awaitable)
        assert await waiting == 3
        given_up = call_on_strand(openly, work)
        assert isinstance(given_up, LaidAside)
        given_up.close()

    run(body)


def test_a_turn_that_has_to_be_whole_is(pass_time: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def users() -> None:
        pass_time(1)
        openly(give_way)

    def turn() -> str:
        with whole_turn():
            users()
        return "whole"

    monkeypatch.setattr(way, "DEBUG", True)
    with pytest.raises(TurnBroken):
        call_on_strand(openly, turn)
    with pytest.raises(TurnBroken):
        turn()
    give_way()


def test_in_production_a_turn_is_closed(pass_time: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way, "DEBUG", False)

    def turn() -> str:
        with whole_turn():
            pass_time(1)
            openly(give_way)
        return "whole"

    assert call_on_strand(openly, turn) == "whole"


def test_strands_within_strands(pass_time: Clock) -> None:
    """A reader's message that is handled in the middle of a writer's statement may be laid aside, and the writer goes on."""
    seen: list[str] = []

    def reader() -> str:
        pass_time(0.006)
        give_way()
        seen.append("reader ends")
        return "read"

    async def body() -> None:
        def writer() -> Any:
            inner = call_on_strand(openly, reader)
            seen.append("writer goes on")
            pass_time(1)
            give_way()  # closed
            return inner

        inner = call_on_strand(writer)
        assert isinstance(inner, LaidAside)
        assert await inner == "read"

    run(body)
    assert seen == ["writer goes on", "reader ends"]


def test_errors_come_out_as_they_are(pass_time: Clock) -> None:
    def fails() -> None:
        pass_time(0.006)
        give_way()
        raise LookupError("here")

    async def statement() -> None:
        openly(fails)

    async def body() -> None:
        with pytest.raises(LookupError, match="here"):
            await call_on_strand(openly, fails)  # type: ignore[misc]
        with pytest.raises(LookupError, match="here"):
            await on_strand(statement())  # type: ignore[misc]
        with pytest.raises(LookupError, match="there"):
            call_on_strand(lambda: {}["there"])  # type: ignore[index]

    run(body)


def test_strands_are_kept_up_to_a_bound(pass_time: Clock) -> None:
    def work() -> None:
        pass_time(0.006)
        give_way()

    async def body() -> None:
        works = [call_on_strand(openly, work) for _ in range(5 * strands.KEPT)]
        assert strands.count() >= 5 * strands.KEPT
        for one in works:
            await one  # type: ignore[misc]

    run(body)
    assert strands.count() <= strands.KEPT


def test_paced_loops_yield_what_there_is() -> None:
    for length in (0, 1, 63, 64, 65, 200):
        items = paced(range(length))
        assert list(items) == list(items) == list(range(length))
        assert list(paced_iter(iter(range(length)))) == list(range(length))


def test_threads_look_whether_they_are_cancelled(pass_time: Clock) -> None:
    def cancelled() -> None:
        raise InterruptedError

    def beside() -> None:
        give_way()
        with way.polled(cancelled):
            give_way()

    async def body() -> None:
        with pytest.raises(InterruptedError):
            await asyncio.to_thread(beside)

    run(body)


def test_a_thread_that_nobody_waits_for_ends(pass_time: Clock) -> None:
    ended = threading.Event()

    def work() -> None:
        try:
            while True:
                give_way()
        finally:
            ended.set()

    async def body() -> None:
        task = asyncio.ensure_future(beside(work))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(ended.wait, 10)

    run(body)


def test_what_goes_first_is_no_part_of_the_strand_that_gives_way_to_it(pass_time: Clock) -> None:
    """A writer whose slice is over looks at its readers' sockets: what is handled there is not laid aside, nor cancelled, with it."""
    turns = Turns(clock=lambda: 0.0)
    seen: list[object] = []
    ours, theirs = socket.socketpair()

    def looks() -> None:
        pass_time(1)
        give_way()
        seen.append(strands.may_wait())

    def handle() -> None:
        ours.recv(10)
        openly(looks)
        own = call_on_strand(openly, looks)  # what has a strand of its own gives way as ever
        assert isinstance(own, LaidAside)
        seen.append("laid aside")
        own.close()

    def writer() -> None:
        pass_time(1)
        turns.yield_to_readers()
        seen.append("handled")
        give_way()
        seen.append("gave way")

    async def body() -> None:
        result = call_on_strand(openly, writer)
        assert isinstance(result, LaidAside)
        assert seen == [False, "laid aside", "handled"]
        await result
        assert seen[3:] == ["gave way"]

    with ours, theirs:
        theirs.send(b"read")
        turns.watch(ours.fileno(), handle)
        turns.has_read()
        run(body)
        turns.close()


def test_a_strand_that_ends_goes_back_to_whoever_runs_not_to_who_made_it(
    pass_time: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strands, "KEPT", 0)

    def gives_way() -> str:
        pass_time(1)
        give_way()
        return "inner"

    async def body() -> None:
        made: list[Any] = []

        def outer() -> str:
            made.append(call_on_strand(openly, gives_way))
            pass_time(1)
            give_way()
            return "outer"

        other = call_on_strand(openly, outer)
        assert isinstance(other, LaidAside)
        assert await made[0] == "inner"  # its strand ends while the one that made it is laid aside
        assert await other == "outer"

    run(body)
