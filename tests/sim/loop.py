"""An event loop in virtual time whose order of events is drawn from a seed, with processes that can die.

    ready handles   one is drawn at random and run; each takes a few virtual microseconds
    nothing ready   time jumps to the next timer
    nothing at all  Stuck: the simulated system waits for something that will never come

No thread, no socket, no clock: a run is a function of its seed.

What asyncio promises is kept: callbacks of one future run in the order in which they were added. Beyond that its
``call_soon`` is first in, first out; a correct program may not rely on which of two *tasks* goes on first, so
the draw is among all that are ready (``disorder`` is the probability of drawing instead of taking the oldest).

A **process** is what dies together (kill -9) or stands still together (SIGSTOP). A handle belongs to the process in whose
context it was made; handles of a dead process are dropped unrun, so nothing is cleaned up, no ``finally`` runs, and
whatever it awaited is simply never heard of again. What it had handed to the outside before lives on.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

HANDLE_S = 5e-6
"""Virtual seconds that one callback takes."""

MAX_S = 1200.0
"""Virtual time starts at 1000 s; a run that gets here does not end: timers of upkeep tick, but nobody gets on."""

MAX_STEPS = 500_000
"""A run that takes more steps than this does not end."""

_process: ContextVar[Process | None] = ContextVar("process", default=None)


class Stuck(AssertionError):
    """Nothing can ever happen again, or too much has."""


class ProcessDied(Exception):
    """The process that was asked has died: the client's view of a lost connection."""


class Process:
    """A set of tasks that die or stand still together."""

    def __init__(self, loop: SimLoop, name: str) -> None:
        self.loop = loop
        self.name = name
        self.alive = True
        self.paused = False
        self.stash: list[asyncio.Handle] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self._callers: dict[asyncio.Future[Any], None] = {}
        self.context: Context = copy_context()
        self.context.run(_process.set, self)
        loop.processes.append(self)

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` inside the process and return its result to a caller outside; ProcessDied if it dies."""
        if not self.alive:
            work.close()
            raise ProcessDied(self.name)
        answer: asyncio.Future[T] = self.loop.create_future()
        self._callers[answer] = None

        def done(task: asyncio.Task[T]) -> None:
            self._callers.pop(answer, None)
            if answer.done():
                return
            if task.cancelled():
                answer.cancel()
            elif (error := task.exception()) is not None:
                answer.set_exception(error)
            else:
                answer.set_result(task.result())

        self.start(work).add_done_callback(done)
        return await answer

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run ``work`` inside the process."""
        return self.loop.create_task(work, context=self.context.copy())

    def kill(self) -> None:
        """End the process at once. Idempotent."""
        self.alive = False
        self.stash.clear()
        for answer in self._callers:
            if not answer.done():
                answer.set_exception(ProcessDied(self.name))
        self._callers.clear()

    def pause(self) -> None:
        """Stop running it; time goes on."""
        self.paused = True

    def resume(self) -> None:
        """Go on where it stood."""
        self.paused = False
        self.loop.put_back(self.stash)
        self.stash.clear()


class SimLoop(asyncio.BaseEventLoop):
    """See the module's text."""

    def __init__(self, rng: random.Random, disorder: float = 1.0) -> None:
        super().__init__()
        self._now = 1000.0
        self._rng = rng
        self._disorder = disorder
        self._ready: list[asyncio.Handle] = []  # type: ignore[assignment]
        self._scheduled: list[asyncio.TimerHandle] = []
        self.steps = 0
        self.processes: list[Process] = []
        self.problems: list[str] = []
        self._trips: list[tuple[int, int, Callable[[], None]]] = []
        self._trip_count = 0
        self._trip_at = MAX_STEPS
        self.set_task_factory(_make_task)
        self.set_exception_handler(self._note_problem)

    # -- what asyncio asks of a loop -----------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def _run_once(self) -> None:
        ready = self._ready
        draw = self._rng.random
        while not self._stopping:  # type: ignore[attr-defined]
            self._wake_timers()
            if not ready:
                if self._scheduled and self._now < MAX_S:
                    self._now = max(self._now, self._scheduled[0].when())
                    continue
                raise Stuck(f"every task waits, at {self._now:.3f} s")
            count = len(ready)
            at = int(draw() * count) if count > 1 and draw() < self._disorder else 0
            if at:
                at = _first_of_its_future(ready, at)
            handle = ready.pop(at)
            if handle._cancelled:  # type: ignore[attr-defined]
                continue
            process = handle._context.get(_process)  # type: ignore[attr-defined]
            if process is not None:
                if not process.alive:
                    continue
                if process.paused:
                    process.stash.append(handle)
                    continue
            self._now += HANDLE_S
            self.steps += 1
            handle._run()
            if self.steps >= self._trip_at:
                self._run_trips()

    def _wake_timers(self) -> None:
        scheduled = self._scheduled
        while scheduled and (scheduled[0]._cancelled or scheduled[0].when() <= self._now):  # type: ignore[attr-defined]
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # type: ignore[attr-defined]
            if not handle._cancelled:  # type: ignore[attr-defined]
                self._ready.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are passed over when their time comes."""

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """An asynchronous generator was dropped half-way: end it in the process that dropped it."""
        self._asyncgens.discard(agen)  # type: ignore[attr-defined]
        if not self.is_closed():
            self.call_soon(self.create_task, agen.aclose())

    def call_soon_threadsafe(self, *args: Any, **more: Any) -> Any:
        raise AssertionError("a thread in a simulation")

    def run_in_executor(self, *args: Any) -> Any:
        raise AssertionError("a thread in a simulation")

    def _write_to_self(self) -> None:
        raise AssertionError("a thread in a simulation")

    def _process_events(self, event_list: Any) -> None:
        raise AssertionError("a socket in a simulation")

    # -- what simulations ask ------------------------------------------------------------------------

    def put_back(self, handles: list[asyncio.Handle]) -> None:
        """Make handles of a resumed process ready."""
        self._ready.extend(handles)

    def after_steps(self, steps: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` between two handles, when so many more have run: at any await of anybody."""
        self._trip_count += 1
        heapq.heappush(self._trips, (self.steps + steps, self._trip_count, callback))
        self._trip_at = min(self._trips[0][0], MAX_STEPS)

    def forget_trips(self) -> None:
        """Drop what ``after_steps`` has still to call."""
        self._trips.clear()

    def _run_trips(self) -> None:
        if self.steps >= MAX_STEPS:
            raise Stuck(f"no end after {self.steps} steps")
        while self._trips and self._trips[0][0] <= self.steps:
            heapq.heappop(self._trips)[2]()
        self._trip_at = min(self._trips[0][0] if self._trips else MAX_STEPS, MAX_STEPS)

    def _note_problem(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that nobody caught. Those found by the collector are not: when it runs is no fact."""
        if "handle" in context:
            self.problems.append(f"{context['message']}: {context.get('exception')!r}")

    def broken_tasks(self) -> list[tuple[Process, str, BaseException]]:
        """Return the background tasks of processes (they have names) that an exception has ended."""
        found = []
        for process in self.processes:
            for task in process.tasks:
                if task.get_name().startswith("holdfast") and task.done() and not task.cancelled():
                    error = task.exception()
                    if error is not None:
                        found.append((process, task.get_name(), error))
        return found

    def bury(self) -> None:
        """After the run: end the coroutines of dead processes quietly, whatever they would still like to do."""
        for process in self.processes:
            for task in process.tasks:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    try:
                        task.get_coro().close()
                    except BaseException as error:
                        _last_words.append(type(error).__name__)
            process.tasks.clear()
        _last_words.clear()


_last_words: list[str] = []
"""What coroutines of dead processes raised when they were closed; of no interest."""


def _make_task(loop: Any, work: Any, context: Context | None = None) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
    process = _process.get() if context is None else context.get(_process)
    if process is not None:
        process.tasks.append(task)
    return task


def _first_of_its_future(ready: list[asyncio.Handle], at: int) -> int:
    """Return the oldest handle that is called with the same future as ``ready[at]``."""
    args = ready[at]._args  # type: ignore[attr-defined]
    if args and isinstance(args[0], asyncio.Future):
        for earlier in range(at):
            others = ready[earlier]._args  # type: ignore[attr-defined]
            if others and others[0] is args[0]:
                return earlier
    return at
