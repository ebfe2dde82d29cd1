"""What the engines that compute in threads, DuckDB and Spark, have in common: a query in flight, and its last columns.

    start      ──thread──> first batch
    batches    ──thread──> next batch, while the client reads the one before; never more, and not even that one where
                           batches are large
    cancelled, closed, or its task cancelled     the engine is interrupted, what it holds is released in the end

The engine is called in pool threads; everything else happens on the loop. Rows are handed on in pieces of at most
``PIECE_BYTES``, so that wide ones do not pile up as text.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor as Pool
from concurrent.futures import Future
from typing import Any, ClassVar, Final

import pyarrow as pa

from engine.base.executor import ExecContext
from engine.base.rows import RowBatch
from engine.base.slices import SLICE_ROWS
from engine.executors.arrow import rows_of
from pgwire.give_way import between, openly
from pgwire.release import release_all
from planner.base.errors import not_supported
from planner.evaluate import Env, Layout, RowFunction, Shared, compile_map
from planner.lower.query.lowering import LoweredQuery


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


PIECE_BYTES: Final = 4 << 20
PREFETCH_BYTES: Final = 32 << 20  # a batch that is larger is handed on before the next one is asked for


def pieces(batch: Any, size: int, most_rows: int | None) -> Iterator[Any]:
    """Yield an Arrow batch of ``size`` bytes in slices of at most ``most_rows`` rows (None: any number) and
    about ``PIECE_BYTES``.

    A row is never divided, however wide.
    """
    rows = len(batch)
    step = rows if most_rows is None else min(rows, most_rows)
    if size > PIECE_BYTES:
        step = min(step, max(rows * PIECE_BYTES // size, 1))
    if step >= rows:
        yield batch
        return
    for start in range(0, rows, step):
        yield batch.slice(start, step)


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
        self._busy = 0  # calls of the engine that run
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

    def ended(self) -> bool:
        """Tell whether it is to go no further; in any thread."""
        return self._closed or (self._cancelled is not None and self._cancelled.is_set())

    # -- running ---------------------------------------------------------------------------------

    async def _in_thread(
        self, work: Callable[..., Any], *args: Any, pool: Pool | None = None, watched: bool = True
    ) -> Any:
        """Run ``work`` in a pool; interrupt it when the statement is cancelled, or closed, or this task is.

        ``watched``: it runs for the statement that runs now, so that a cancel of this one is meant for it,
        and its failure ends the query. A consumer has to be told of any other failure before the query is
        closed.
        """
        loop = asyncio.get_running_loop()
        self._busy += 1
        future = loop.run_in_executor(pool or self._pool, self._call, work, *args)
        interrupted = left = False
        try:
            while True:
                done, _ = await asyncio.wait({future}, timeout=self.poll_s)
                if done:
                    return future.result()
                if self._closed or (watched and self._cancelled is not None and self._cancelled.is_set()):
                    interrupted = True  # again at every turn: it may have been between two steps
                    self._interrupt()
        except asyncio.CancelledError:
            left = True
            self._stop()
            self._end_late(future)
            raise
        except Exception as error:
            self._busy -= 1
            left = True
            if watched:
                self.close()
            translated = self._translated(error, interrupted)
            if translated is error:
                raise
            try:
                raise translated from error
            finally:
                del translated  # else it and this frame would keep each other
        finally:
            if not left:
                self._busy -= 1
            if self._closed and not self._busy:
                self._release()

    def _end_late(self, future: asyncio.Future[Any]) -> None:
        """Interrupt a call that nobody waits for any more until its thread has ended; what it raises is not wanted."""
        if future.done():
            forget(future)
            self._busy -= 1
            if not self._busy:
                self._release()
            return
        self._interrupt()
        asyncio.get_running_loop().call_later(self.poll_s, self._end_late, future)

    async def _fetch(self) -> Any:
        """Return the next batch, None at the end."""
        return await self._in_thread(self._next)

    async def batches(self, first: Any) -> AsyncIterator[RowBatch]:
        """Yield the batches; the next one is computed while the consumer handles the last."""
        batch = first
        most_rows = None if self._finish is None else SLICE_ROWS
        try:
            while batch is not None:
                if self._closed:
                    return
                size = batch.nbytes  # asked once: it takes milliseconds of a thousand columns
                between()
                upcoming = asyncio.ensure_future(self._fetch()) if size <= PREFETCH_BYTES else None
                try:
                    for piece in pieces(batch, size, most_rows):
                        yield openly(self._result, piece)
                        if len(piece) < len(batch):
                            await asyncio.sleep(0)
                except BaseException:
                    if upcoming is not None:
                        upcoming.add_done_callback(forget)
                        upcoming.cancel()
                    raise
                batch = piece = None  # before the next one is there
                batch = await (upcoming or self._fetch())
        finally:
            self.close()

    def close(self) -> None:
        """Interrupt what runs and release; idempotent, callable at any time from the loop."""
        if self._closed:
            return
        self._stop()
        if self._busy or self.runs_ahead:
            self._interrupt()
        if not self._busy:
            self._release()

    def _stop(self) -> None:
        """Note that nobody wants the rest."""
        self._closed = True

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
        rows = rows_of(batch, self._columns)
        try:
            return RowBatch(rows=self._finish(rows, self._env))
        finally:
            release_all(rows)  # one row may have an array of millions
