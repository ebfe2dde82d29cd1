"""What the engines that compute in threads, DuckDB and Spark, have in common: a query in flight, and its last columns.

    start      ──thread──> first batch
    batches    ──thread──> next batch, while the client reads the one before; never more
    cancelled, closed, or its task cancelled     the engine is interrupted, what it holds is released in the end

All calls of the engine for one query are made in pool threads, one at a time; everything else happens on the loop.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor as Pool
from concurrent.futures import Future
from typing import Any, ClassVar

import pyarrow as pa

from engine.connection.rows import RowBatch
from engine.executor import ExecContext
from engine.reads.arrow import rows_of
from engine.slices import SLICE_ROWS
from planner.errors import not_supported
from planner.evaluate import Env, Layout, RowFunction, Shared, compile_map
from planner.lower.common import LoweredQuery


def finish_function(lowered: LoweredQuery) -> RowFunction | None:
    """Return what turns the engine's rows into the result's, or None if they are the same.

    It is the part of a select list that Python computes from an engine's columns, compiled.

    Raises:
        SqlError: 0A000 where Python cannot compute it either, or would have to wait.
    """
    if lowered.finish is None:
        return None
    layout = Layout(columns={(0, i + 1): i for i in range(len(lowered.columns))})
    made = compile_map(lowered.finish.exprs, layout)
    if made.may_suspend:
        raise not_supported("pg_sleep in this executor")
    return made


def forget(task: Future[Any] | asyncio.Future[Any]) -> None:
    """Take note of an outcome that nobody asks for any more."""
    if not task.cancelled():
        task.exception()


class EngineQuery(ABC):
    """One query in flight.

    Attributes:
        keep: what has to stay referenced until the engine is done: snapshots, whose files it reads.
    """

    poll_s: ClassVar[float]
    """How often a waiting query looks whether it was cancelled, seconds."""

    runs_ahead: ClassVar[bool]
    """Whether the engine may be computing while none of its calls is being waited for."""

    def __init__(
        self,
        pool: Pool,
        ctx: ExecContext,
        lowered: LoweredQuery,
        types: Sequence[Any],
        finish: RowFunction | None,
    ) -> None:
        """``types``: the Arrow types results must have where the engine's differ; None: as it is."""
        self._pool = pool
        self._cancelled = ctx.cancelled
        self._env = Env(ctx.params, ctx.session, shared=Shared())
        self._columns = [column.type for column in lowered.columns]
        self._types = types if any(wanted is not None for wanted in types) else None
        self._finish = finish
        self._closed = False
        self._busy = False
        self.keep: Any = None

    # -- what an engine does ---------------------------------------------------------------------

    @abstractmethod
    def _next(self) -> Any:
        """Return the next batch with rows, None at the end; in a thread."""

    @abstractmethod
    def _interrupt(self) -> None:
        """Make the engine give up what it computes; on the loop, at any time, as often as it takes."""

    @abstractmethod
    def _release(self) -> None:
        """Give back what the query holds, ``keep`` included; none of its calls is running. Idempotent."""

    @abstractmethod
    def _translated(self, error: Exception, interrupted: bool) -> Exception:
        """Return what to raise for an error of a call; ``interrupted``: it was made to give up."""

    def _call(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run ``work``; in a thread."""
        return work(*args)

    # -- running ---------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run ``work`` in the pool; interrupt it when the statement is cancelled, or closed, or this task is."""
        loop = asyncio.get_running_loop()
        self._busy = True
        future = loop.run_in_executor(self._pool, self._call, work, *args)
        interrupted = False
        try:
            while True:
                done, _ = await asyncio.wait({future}, timeout=self.poll_s)
                if done:
                    return future.result()
                if self._closed or (self._cancelled is not None and self._cancelled.is_set()):
                    interrupted = True  # again at every turn: it may have been between two steps
                    self._interrupt()
        except asyncio.CancelledError:
            self._closed = True
            self._interrupt()
            future.add_done_callback(self._finish_late)
            raise
        except Exception as error:
            self._busy = False
            self.close()
            translated = self._translated(error, interrupted)
            if translated is error:
                raise
            raise translated from error
        finally:
            self._busy = False
            if self._closed and future.done():
                self._release()

    def _finish_late(self, future: asyncio.Future[Any]) -> None:
        """A cancelled call has ended in its thread: what it raised is not wanted any more."""
        forget(future)
        self._release()

    async def batches(self, first: Any) -> AsyncIterator[RowBatch]:
        """Yield the batches; the next one is computed while the consumer handles the last."""
        batch = first
        try:
            while batch is not None:
                if self._closed:
                    return
                upcoming = asyncio.ensure_future(self._in_thread(self._next))
                try:
                    if self._finish is None or len(batch) <= SLICE_ROWS:
                        yield self._result(batch)
                    else:
                        for start in range(0, len(batch), SLICE_ROWS):
                            yield self._result(batch.slice(start, SLICE_ROWS))
                            await asyncio.sleep(0)
                except BaseException:
                    upcoming.add_done_callback(forget)
                    upcoming.cancel()
                    raise
                batch = await upcoming
        finally:
            self.close()

    def close(self) -> None:
        """Interrupt what runs and release; idempotent, callable at any time from the loop."""
        if self._closed:
            return
        self._closed = True
        if self._busy or self.runs_ahead:
            self._interrupt()
        if not self._busy:
            self._release()

    def _shaped(self, batch: Any) -> Any:
        """Bring columns to their physical types where the engine has another for the same values."""
        if self._types is None:
            return batch
        columns = [
            column if wanted is None else column.cast(wanted)
            for column, wanted in zip(batch.columns, self._types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _result(self, batch: Any) -> RowBatch:
        """Return what the client gets of an engine batch."""
        if self._finish is None:
            return RowBatch(arrow=batch)
        return RowBatch(rows=self._finish(rows_of(batch, self._columns), self._env))
