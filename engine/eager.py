"""Run a coroutine until it has to wait; hand out its result at once if it never does.

The hot paths of the server are written as plain ``async def`` code whose awaits are nearly always satisfied
already (hot rows, free locks). Making a task for each would cost more than the work. ``eager(coro)`` starts
the coroutine on the spot:

    finished without suspending  ->  its result, synchronously
    suspended on a future        ->  an awaitable that continues it inside the awaiting task

The part that runs eagerly has no current task of its own, so it must not use ``asyncio.timeout`` or
``asyncio.current_task`` before its first suspension.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def eager(coro: Coroutine[Any, Any, T]) -> T | Awaitable[T]:
    """Run ``coro`` to its first suspension; return its result, or an awaitable of it."""
    try:
        first = coro.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    return Started(coro, first)


async def settle(value: T | Awaitable[T]) -> T:
    """Await ``value`` if it is awaitable, else return it."""
    if isinstance(value, Awaitable):
        return await value
    return value


def give_up(coro: Coroutine[Any, Any, Any]) -> None:
    """End a started coroutine that nobody waits for, as cancelling its task would; idempotent.

    ``close`` alone leaves an asynchronous generator that it waits in marked as running (Python 3.11), with its ``finally`` not run:
    the loop then cannot close it either.
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
                    pending = coro.throw(error)
                else:
                    pending = coro.send(sent)
        except StopIteration as stop:
            result: T = stop.value
            return result
