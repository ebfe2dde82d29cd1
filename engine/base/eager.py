"""Run a coroutine until it has to wait; hand out its result at once if it never does.

The hot paths of the server are written as plain ``async def`` code whose awaits are nearly always satisfied
already (hot rows, free locks). Making a task for each would cost more than the work. ``eager(coro)`` starts
the coroutine on the spot:

    finished without suspending  ->  its result, synchronously
    suspended on a future        ->  an awaitable that continues it inside the awaiting task
    laid aside by ``give_way``   ->  the same; of ``on_strand``, whose steps run on strands (``engine.base.loop.strands``)

The part that runs eagerly has no current task of its own, so it must not use ``asyncio.timeout`` or
``asyncio.current_task`` before its first suspension.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

from engine.base.loop.strands import Done, Failed, Outcome, Parked, step
from pgwire.give_way import closed_step, end_step, needs_closing

T = TypeVar("T")


def eager(coro: Coroutine[Any, Any, T]) -> T | Awaitable[T]:
    """Run ``coro`` to its first suspension; return its result, or an awaitable of it.

    Within a strand it is part of that; else nothing within it can give way, but at its awaits.
    """
    if needs_closing():
        was = closed_step()
        try:
            first = coro.send(None)
        except StopIteration as stop:
            inner: T = stop.value
            return inner
        finally:
            end_step(was)
        return Started(coro, first)
    try:  # what is closed already, as it nearly always is where this counts
        first = coro.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    return Started(coro, first)


def on_strand(coro: Coroutine[Any, Any, T]) -> T | Awaitable[T]:
    """As ``eager``, on strands: what it computes can give way (``pgwire.give_way``)."""
    first = step(coro.send, None)
    if type(first) is Failed:
        result: T = first.result()
        return result
    return OnStrand(coro, first)


def call_on_strand(function: Callable[..., T], *args: Any) -> T | Awaitable[T]:
    """Call a function that may give way on a strand; return its value, or an awaitable of it where it was
    laid aside.
    """
    first = step(function, *args)
    if type(first) is Done:
        result: T = first.take()
        return result
    if type(first) is Failed:
        first.result()
    if type(first) is not Parked:
        raise AssertionError("a first step is neither done nor failed nor parked")
    return LaidAside(first)


async def settle(value: T | Awaitable[T]) -> T:
    """Await ``value`` if it is awaitable, else return it."""
    if isinstance(value, Awaitable):
        return await value
    return value


def give_up(coro: Coroutine[Any, Any, Any]) -> None:
    """End a started coroutine that nobody waits for, as cancelling its task would; idempotent.

    ``close`` alone leaves an asynchronous generator that it waits in marked as running (Python 3.11), with
    its ``finally`` not run: the loop then cannot close it either.
    """
    if inspect.getcoroutinestate(coro) == inspect.CORO_SUSPENDED:
        try:
            coro.throw(asyncio.CancelledError())
        except (asyncio.CancelledError, StopIteration):
            return
    coro.close()


class Started(Awaitable[T]):
    """The rest of a started coroutine: hands on what it waits for, sends back what the loop answers."""

    __slots__ = ("_coro", "_pending")

    def __init__(self, coro: Coroutine[Any, Any, T], pending: Any) -> None:
        self._coro = coro
        self._pending = pending

    def close(self) -> None:
        """Give it up: nobody waits for the rest."""
        give_up(self._coro)

    def __await__(self) -> Generator[Any, Any, T]:
        coro, pending = self._coro, self._pending
        try:
            while True:
                try:
                    sent = yield pending
                except GeneratorExit:
                    give_up(coro)
                    raise
                except BaseException as error:
                    pending = None  # it may have the error, which has this frame
                    pending = coro.throw(error)
                else:
                    pending = coro.send(sent)
        except StopIteration as stop:
            result: T = stop.value
            return result


class OnStrand(Awaitable[T]):
    """As ``Started``, of a coroutine whose steps run on strands."""

    __slots__ = ("_coro", "_last")

    def __init__(self, coro: Coroutine[Any, Any, T], last: Outcome | None) -> None:
        """``last``: what became of its step so far; None: it has not begun."""
        self._coro = coro
        self._last = last

    @classmethod
    def of(cls, coro: Coroutine[Any, Any, T]) -> OnStrand[T]:
        """Return a coroutine that has not begun, to run on strands."""
        return cls(coro, None)

    def close(self) -> None:
        """Give it up: nobody waits for the rest."""
        if type(self._last) is Parked:
            self._last.end()
        give_up(self._coro)

    def __await__(self) -> Generator[Any, Any, T]:
        coro, last = self._coro, self._last
        if last is None:
            last = step(coro.send, None)
        while True:
            try:
                while type(last) is Parked:
                    last = yield from last.taken_up()
            except GeneratorExit:
                give_up(coro)
                raise
            if type(last) is Failed:
                result: T = last.result()
                return result
            if type(last) is not Done:
                raise AssertionError("a step that ended neither failed nor is done")
            try:
                sent = yield last.take()
            except GeneratorExit:
                give_up(coro)
                raise
            except BaseException as error:
                last = step(coro.throw, error)
            else:
                last = step(coro.send, sent)


class LaidAside(Awaitable[T]):
    """A call that was laid aside: its value, once it has been taken up and has ended."""

    __slots__ = ("_parked",)

    def __init__(self, parked: Parked) -> None:
        self._parked = parked

    def close(self) -> None:
        """Give it up."""
        self._parked.end()

    def __await__(self) -> Generator[Any, Any, T]:
        last: Outcome = self._parked
        while type(last) is Parked:
            last = yield from last.taken_up()
        if type(last) is Failed:
            last.result()
        if type(last) is not Done:
            raise AssertionError("a step that ended neither failed nor is done")
        result: T = last.take()
        return result
