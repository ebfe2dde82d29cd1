"""Strands: lines of work that are laid aside in the middle of a call, however deep, and taken up again (decision 18).

    event loop's task          strand (a greenlet: a stack of its own)
      step(function) ────────► function() … expression … give_way(): the slice is over
      Parked         ◄──────── laid aside
      waits for its turn
      taken_up       ────────► … goes on … ends
      Done           ◄──────── the strand waits for other work

Coroutines wait where ``await`` stands, so what an expression, the binder or a codec does in between would
hold the loop. A strand is what lets those give way (``pgwire.give_way``) without being written as coroutines.
The steps of a statement's coroutine run on one (``engine.base.eager``), and so does the handling of a message
that may take long (``Interrupts``). ``wait`` waits for an awaitable from within such code.

Strands belong to the event loop's thread. Those that have nothing to do are kept, up to ``KEPT``. A work that
is abandoned meets CancelledError where it was laid aside, so that ``finally`` clauses run, and is not laid
aside again.

What was laid aside has its next slice by rota: each turn of the loop holds one slice, so that a short
statement waits for one, not for as many as there are long statements.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeAlias

import greenlet

from engine.base import accounts
from pgwire import give_way as way

KEPT: Final = 16
"""Strands without work that are kept: each has a stack of its own, some kilobytes."""


class Done:
    """A work, or a step of a coroutine, has ended with a value."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def take(self) -> Any:
        """Return the value, once: a strand that waits for other work would keep it."""
        value, self._value = self._value, None
        return value


class Failed:
    """It has raised an error; StopIteration where a coroutine has ended."""

    __slots__ = ("_error",)

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    def result(self) -> Any:
        """Return what a coroutine ended with, or raise the error; once.

        An error has the frames that it went through, which have their variables: none of these may be the
        error, or what has it. They would keep one another, with the text of the statement and all else that
        the frames know, until a full collection.
        """
        error, self._error = self._error, None
        if error is None:
            raise AssertionError("a failed strand has no error, or it was taken before")
        try:
            if isinstance(error, StopIteration):
                return error.value
            raise error
        finally:
            del error


class Strand(greenlet.greenlet):  # type: ignore[misc] # it comes without types
    """One stack, that works on one thing after another."""

    driver: greenlet.greenlet
    is_open = False  # where it was laid aside
    is_safe = True
    closing = False  # its work is to end: it is not laid aside any more
    awaited: Awaitable[Any] | None = None  # what it waits for; None: its next slice

    def run(self, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Work for ever; ends with GreenletExit."""
        while True:
            outcome: Done | Failed
            try:
                outcome = Done(work(*args))
            except greenlet.GreenletExit:
                return
            except BaseException as error:
                outcome = Failed(error)
            del work, args  # so that nothing is kept while there is nothing to do
            work, args = self.driver.switch(outcome)


class Parked:
    """A work that was laid aside. To be taken up again, or ended, once."""

    __slots__ = ("_strand",)

    def __init__(self, strand: Strand) -> None:
        self._strand = strand

    def taken_up(self) -> Generator[Any, Any, Outcome]:
        """Wait for what the work waits for, its turn if nothing else, and let it go on; for ``yield from`` in
        an ``__await__``.

        What is thrown in meanwhile the work meets where it was laid aside; GeneratorExit ends it.
        """
        strand = self._strand
        value = None
        try:
            if strand.awaited is None:
                yield from _rota.turn()
            else:
                value = yield from strand.awaited.__await__()
        except GeneratorExit:
            self.end()
            raise
        except BaseException as error:
            return _switch(strand, (error, None))
        return _switch(strand, (None, value))

    def end(self) -> None:
        """Have the work meet CancelledError where it is, and run to its end, or to where its coroutine waits."""
        strand = self._strand
        if strand.awaited is not None:
            close = getattr(strand.awaited, "close", None)
            if close is not None:
                close()
        strand.closing = True
        _switch(strand, (asyncio.CancelledError(), None))


Outcome: TypeAlias = "Done | Failed | Parked"


class _Rota:
    """Who goes on next, of those that gave way: one in each turn of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._armed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def turn(self) -> Generator[Any, Any, None]:
        """Wait for the next turn; for ``yield from``."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._armed = loop, False
            self._waiting.clear()
        future = loop.create_future()
        self._waiting.append(future)
        if not self._armed:
            self._armed = True
            loop.call_soon(self._next)
        yield from future

    def _next(self) -> None:
        waiting = self._waiting
        while waiting:
            future = waiting.popleft()
            if not future.done():
                future.set_result(None)
                break
        if waiting and self._loop is not None:
            self._loop.call_soon(self._next)
        else:
            self._armed = False


_rota = _Rota()
_idle: list[Strand] = []
_count = 0


def step(function: Callable[..., Any], *args: Any) -> Outcome:
    """Call ``function`` on a strand of its own and return what became of it; it raises nothing.

    Also from within another strand, which goes on as soon as this one ends or is laid aside.
    """
    global _count
    if _idle:
        return _switch(_idle.pop(), (function, args))
    _count += 1
    return _switch(Strand(), (function, args))


def _switch(strand: Strand, message: tuple[Any, ...]) -> Outcome:
    global _count
    strand.driver = greenlet.getcurrent()
    before = way.swap(way.fresh_slice(strand.is_open, strand.is_safe))
    # A strand that begins takes the message as arguments of ``run``.
    outcome: Outcome = strand.switch(message) if strand else strand.switch(*message)
    way.swap(before)
    if type(outcome) is not Parked:
        strand.is_open = strand.closing = False
        strand.is_safe = True
        if len(_idle) < KEPT:
            _idle.append(strand)
        else:
            _count -= 1
            strand.parent = greenlet.getcurrent()  # who gets control when it ends: not whoever made it
            strand.throw()
    return outcome


def current() -> Strand | None:
    """Return the strand that runs this code, if any."""
    found = greenlet.getcurrent()
    return found if type(found) is Strand else None


def count() -> int:
    """Return how many strands there are, those without work included."""
    return _count


def busy() -> int:
    """Return how many strands have work that was laid aside or runs."""
    return _count - len(_idle)


def lay_aside() -> None:
    """Let others run; for ``give_way``, in open code whose slice is over. SqlError 53200 where its statement
    has too much by now.
    """
    strand = current()
    if strand is not None and not strand.closing:
        accounts.check_within()  # what a loop gathers, however deep, is judged where it gives way
        _park(strand)


def may_wait() -> bool:
    """Tell whether ``wait`` can wait here."""
    strand = current()
    return strand is not None and not strand.closing and way.is_open()


def wait(awaitable: Awaitable[Any]) -> Any:
    """Wait for an awaitable in synchronous code, where ``may_wait``; returns and raises what it does."""
    strand = current()
    if strand is None or not may_wait():
        raise RuntimeError("nothing can be waited for here")
    strand.awaited = awaitable
    return _park(strand)


def beside(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a function in a thread, and wait for it; None where nothing can wait: what ``give_way.install`` takes."""
    return wait(asyncio.to_thread(function, *args)) if may_wait() else None


def _park(strand: Strand) -> Any:
    strand.is_open = True
    strand.is_safe = way.is_safe()
    error, value = strand.driver.switch(Parked(strand))
    strand.awaited = None
    if error is not None:
        try:
            raise error
        finally:
            del error  # else it and this frame would keep each other
    return value


async def turn() -> None:
    """Let others run, as a strand that is laid aside does: until the rota comes round."""
    await _Turn()


class _Turn(Awaitable[None]):
    def __await__(self) -> Generator[Any, Any, None]:
        return _rota.turn()
