"""How the row executor's pipelines run: batches, waits, and the driver.

A plan node is a generator. It yields

    list      a batch of rows (tuples)
    Wait      something to wait for: whoever drives the pipeline awaits it and puts the answer into it
    None      a tick: "I am still working" (a sort or a hash build between its input batches)

so one pipeline serves both worlds: driven synchronously while nothing has to be waited for (a hot point read
never switches tasks), and by ``drive`` otherwise, which yields to the event loop every few milliseconds and
polls cancellation. Expressions do not yield; they give way (``pgwire.give_way``), which whoever drives a
pipeline allows. When a sub-select inside one meets a Wait, ``Suspend`` carries its half-run generator out to
``evaluate``, which finishes it in the node's own generator and evaluates the batch again.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from engine.base import accounts
from engine.base.eager import Started, eager
from engine.base.executor import ExecContext
from engine.base.loop.strands import turn
from engine.base.pieces import PART_BYTES
from engine.base.rows import MANY_ROWS, RowBatch, RowTuple
from engine.base.slices import SLICE_S
from engine.executors.index.keyed import KeyTable
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import opened, openly
from pgwire.release import release, release_all, release_values
from planner.base.errors import SqlError
from planner.base.large import METER
from planner.evaluate import Env, RowFunction, Shared, Suspend

if TYPE_CHECKING:
    from engine.executors.index.nodes import Node

Rows: TypeAlias = list[RowTuple]
BATCH = 1024
FEW = 16  # rows at a time where each may run a sub-select
SLEEP_SLICE_S = 0.05  # a sleeping statement notices a cancel at least this often


class Wait:
    """A request to wait: ``awaitable`` is awaited and its result stored in ``value``."""

    __slots__ = ("awaitable", "value")

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self.awaitable = awaitable
        self.value: Any = None


Item: TypeAlias = "Rows | Wait | None"
Pipe: TypeAlias = Generator[Item, None, None]


def waited(awaitable: Awaitable[Any]) -> Generator[Item, None, Any]:
    """Wait within a pipeline, which goes on with the result (``yield from``).

    A coroutine that nobody has begun, because an error came on the way to who would drive it, is closed;
    whoever drives keeps the Wait, but not its value.
    """
    wait = Wait(awaitable)
    try:
        yield wait
    finally:
        if isinstance(awaitable, Coroutine):
            awaitable.close()
    value, wait.value = wait.value, None
    return value


class _End:
    """A pipeline has no more items."""


_END = _End()


class ExecState(Shared):
    """State of one execution: the context, and results of sub-selects that depend on nothing."""

    __slots__ = ("cache", "ctx", "memo", "private")

    def __init__(self, ctx: ExecContext) -> None:
        super().__init__()
        self.ctx = ctx
        self.cache: dict[int, Any] = {}
        self.memo: dict[Any, Any] = {}
        self.private: dict[Any, Any] = {}

    def release(self) -> None:
        """Let go of what was kept for the execution, which has ended."""
        for kept in (self.cache, self.memo):
            if kept:
                release_values(kept)
        if self.private:
            for one in list(self.private.values()):
                if one.__class__ is KeyTable:
                    one.release()
                elif one.__class__ is Kept:
                    one.close()
            release_all(self.private)


class Kept(dict[str, "CteState"]):
    """WITH items by name that stay for a whole execution."""

    __slots__ = ()

    def close(self) -> None:
        """The execution has ended."""
        for state in self.values():
            state.close()


class CteState:
    """Rows of a WITH item: produced while they are read, and kept for the next reader.

    What produces them knows the query that the item belongs to, and that has the item: who made it closes it.
    """

    __slots__ = ("done", "pipe", "plan", "rows")

    def __init__(self, plan: Node | None, rows: Rows | None = None) -> None:
        """Nothing is produced yet; without ``plan`` the rows are all there is."""
        self.plan = plan
        self.rows: Rows = rows if rows is not None else []
        self.pipe: Pipe | None = None
        self.done = plan is None

    def close(self) -> None:
        """Nobody reads it any more, whether all was produced or not. Idempotent."""
        pipe, self.pipe = self.pipe, None
        if pipe is not None:
            pipe.close()
        release(self.rows)


class SubRun:
    """A sub-select that met a Wait: its generator, the rows so far, and where the result belongs.

    ``stop_after``: so many rows are enough (0: all are wanted).
    """

    __slots__ = ("pipe", "rows", "stop_after", "store", "waiting")

    def __init__(
        self, pipe: Pipe, rows: Rows, waiting: Wait | None, stop_after: int, store: Callable[[Rows], None]
    ) -> None:
        self.pipe, self.rows, self.waiting, self.store = pipe, rows, waiting, store
        self.stop_after = stop_after


def evaluate(function: RowFunction, rows: Any, e: Env) -> Generator[Item, None, Any]:
    """Run a batch function that may suspend and return its value; called with ``yield from``."""
    shared: ExecState = e.shared
    outer_log, outer_cursor, outer_memo = shared.log, shared.cursor, shared.memo
    log: list[Any] = []
    memo: dict[Any, Any] = {}
    while True:
        shared.log, shared.cursor, shared.memo = log, 0, memo
        try:
            return function(rows, e)
        except Suspend as suspended:
            kind, argument = suspended.kind, suspended.argument
        finally:
            shared.log, shared.cursor, shared.memo = outer_log, outer_cursor, outer_memo
        if kind != "load":
            value = yield from waited(_sleep(argument, shared.ctx) if kind == "sleep" else argument)
            log.append(value if kind == "call" else "")
            continue
        run: SubRun = argument
        if run.waiting is not None:
            yield run.waiting
        for item in run.pipe:
            if item.__class__ is list:
                run.rows.extend(item)
                if run.stop_after and len(run.rows) >= run.stop_after:
                    run.pipe.close()
                    break
            yield None if item.__class__ is list else item
        run.store(run.rows)


def evaluate_rows(function: RowFunction, rows: Rows, e: Env) -> Generator[Item, None, Rows]:
    """Run a batch function over ``rows``; one that may suspend gets few rows at a time.

    Such a function runs a sub-select for each row, so a whole batch could keep the loop for long.
    """
    if not function.may_suspend:
        done: Rows = function(rows, e)
        return done
    out: Rows = []
    for i in range(0, len(rows), FEW):
        out.extend((yield from evaluate(function, rows[i : i + FEW], e)))
        yield None
    return out


async def value_of(function: RowFunction, row: RowTuple, e: Env) -> Any:
    """Return the value of a function that may suspend for one row; ``e.shared`` is an ExecState."""
    if not function.may_suspend:
        return openly(function, row, e)
    ctx = e.shared.ctx
    steps = evaluate(function, row, e)
    deadline = time.monotonic() + SLICE_S
    try:
        while True:
            item = openly(next, steps)
            if isinstance(item, Wait):
                item.value = await item.awaitable
            if time.monotonic() > deadline:
                poll(ctx)
                await turn()
                deadline = time.monotonic() + SLICE_S
    except StopIteration as done:
        return done.value
    finally:
        steps.close()


def stepwise(pipe: Pipe, how: str, e: Env) -> Pipe:
    """Give rows on as they are wanted: one by one ("asked"), or so many at a time as are fetched ("fetched")."""
    wanted = e.shared.ctx.wanted
    for item in pipe:
        if item.__class__ is not list:
            yield item
            continue
        at = 0
        while at < len(item):
            step = 1 if how == "asked" else MANY_ROWS if wanted is None else max(wanted.rows, 1)
            yield item[at : at + step] if at or step < len(item) else item
            at += step


def gather(pipe: Pipe) -> Generator[Item, None, Rows]:
    """Run ``pipe`` to its end and return all rows."""
    out: Rows = []
    try:
        for item in pipe:
            if item.__class__ is list:
                out.extend(item)
                yield None
            else:
                yield item
    except BaseException:
        release(out)
        raise
    return out


def cancelled() -> SqlError:
    """Return 57014."""
    return SqlError("57014", "canceling statement due to user request")


def poll(ctx: ExecContext) -> None:
    """Raise 57014 if the statement was cancelled."""
    if ctx.cancelled is not None and ctx.cancelled.is_set():
        raise cancelled()


async def _sleep(seconds: float, ctx: ExecContext) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        await asyncio.sleep(min(left, SLEEP_SLICE_S))
        poll(ctx)


def run_ready(pipe: Pipe, rows: Rows, *, outermost: bool = False) -> tuple[bool, Item]:
    """Drive ``pipe`` synchronously, appending to ``rows``, until its end, a Wait that has to be waited for,
    or a time slice is used up.

    Also once there are many rows, or many bytes of them. Returns (finished, the Wait met or None).
    ``outermost``: a Wait that is over at once is no reason to stop. Sub-selects, of which many may be run
    between two looks at the clock, do stop.
    """
    deadline = 0.0
    size = 0
    made = METER.made
    was = opened(True)
    try:
        for item in pipe:
            if item.__class__ is list:
                rows.extend(item)
                if len(rows) > 1 or METER.made != made:
                    size += row_bytes(item[-1]) * len(item) if item else 0
                    if len(rows) > 4 * BATCH or size > 4 * PART_BYTES:
                        return False, None
            elif isinstance(item, Wait) and not (outermost and _ready(item)):
                return False, item
            now = time.monotonic()
            if not deadline:
                deadline = now + SLICE_S
            elif now > deadline:
                return False, None
        return True, None
    except BaseException as error:
        forget(error)
        raise
    finally:
        opened(was)


def _ready(wait: Wait) -> bool:
    """Tell whether there was nothing to wait for, as for the hot rows of a small table; else the rest is what
    is waited for.
    """
    if not isinstance(wait.awaitable, Coroutine):
        return False
    value = eager(wait.awaitable)
    if isinstance(value, Started):
        wait.awaitable = value
        return False
    wait.value = value
    return True


_ROOT: Final = Path(__file__).parents[3]
_COMPUTING: Final = (
    "<",
    *(str(_ROOT / part) for part in ("engine/executors/index", "planner", "pgwire/codecs")),
)
"""Where code is that belongs to one statement, and has come to its end when an error has come through it;
generated code, too."""


def forget(error: BaseException) -> None:
    """Let go of the variables of the code that an error has come through, which would all be freed in one
    step with the error.

    Code that calls itself forgets the same error at each level: only what has come since.
    """
    held: list[Any] = []
    at = error.__traceback__
    done = error.__dict__.get("forgotten")  # of the traceback then, which is part of the one now
    error.__dict__["forgotten"] = id(at)
    while at is not None and id(at) != done:
        frame = at.tb_frame
        if frame.f_code.co_filename.startswith(_COMPUTING):
            found = gc.get_referents(frame)
            with suppress(RuntimeError):  # it is still running
                frame.clear()
                held += found
        at = at.tb_next
    release_all(held)


def abandon(pipe: Pipe, waiting: Item) -> None:
    """Give up a pipeline that nobody drives (any more); idempotent."""
    pipe.close()
    if isinstance(waiting, Wait) and isinstance(waiting.awaitable, Coroutine | Started):
        waiting.awaitable.close()


async def drive(pipe: Pipe, ready: Rows, waiting: Item, state: ExecState) -> AsyncIterator[RowBatch]:
    """Yield the batches of a pipeline that has to wait, first those that are ``ready`` already.

    Raises 53200 when what it gathers is too much, 57014 when the statement is cancelled.
    """
    if ready:
        yield RowBatch(rows=ready)
    del ready  # what has been taken is not kept while more is made
    if isinstance(waiting, Wait):
        waiting.value = await waiting.awaitable
    deadline = time.monotonic() + SLICE_S
    try:
        while True:
            item: Item | _End = openly(next, pipe, _END)
            if item.__class__ is list:
                if item:
                    yield RowBatch(rows=item)
                item = None
            elif isinstance(item, Wait):
                item.value = await item.awaitable
            elif item is _END:
                break
            if time.monotonic() > deadline:
                accounts.check()
                poll(state.ctx)
                await turn()
                deadline = time.monotonic() + SLICE_S
    except BaseException as error:
        forget(error)
        raise
    finally:
        pipe.close()
        state.release()
