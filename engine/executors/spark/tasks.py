"""Python functions on Spark's executors: one call per item, in processes of their own, with the answers in order.

    items ──wave──> one Spark task each ──Python worker──> function(item, worker) ──> answers      the next wave follows

The functions and what they answer are pickled, so functions are those of modules, or objects of their classes. What a
client is to hear of an error is part of an answer: an exception ends the whole, as a failure of Spark.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from engine.executors.engine_query import forget
from engine.executors.spark.errors import lost, text_of
from engine.executors.spark.runtime import Live, SparkRuntime
from engine.executors.spark.slots import JOB, POOL_PROPERTY, Client
from engine.executors.spark.workers import prepare_workers
from planner.base.errors import SqlError

T = TypeVar("T")

POLL_S: Final = 0.5
WAVE: Final = 8
"""Items per processor and wave: an error ends the work after its wave, and between waves processors may idle."""


class Calls:
    """What a Spark task runs: the function over the items of a partition."""

    def __init__(self, function: Callable[[Any, str], Any]) -> None:
        """``function``: takes an item, and a name that no other task, nor another attempt of it, has."""
        self._function = function

    def __call__(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the answers."""
        from pyspark import TaskContext

        context = TaskContext.get()
        worker = str(0 if context is None else context.taskAttemptId())
        for item in items:
            yield self._function(item, worker)


class SparkTasks:
    """The Spark jobs of one statement. Used from the event loop."""

    def __init__(self, runtime: SparkRuntime, live: Live, tag: str, parallelism: int, client: Client) -> None:
        """Run under the job tag ``tag``, which nobody else has.

        ``parallelism``: the application's. ``client``: who wants it; each ``map`` takes one of its slots.
        """
        self._client = client
        self._runtime = runtime
        self._live = live
        self._tag = tag
        self._parallelism = max(parallelism, 1)

    @property
    def parallelism(self) -> int:
        """How many tasks run at once, at least 1."""
        return self._parallelism

    @property
    def wave(self) -> int:
        """How many items make one wave."""
        return WAVE * self._parallelism

    async def map(
        self,
        function: Callable[[Any, str], Any],
        items: Sequence[Any],
        done: Callable[[int], None] | None = None,
    ) -> list[Any]:
        """Return the answers for items, one Spark task each.

        ``done``: told now and then how many tasks have ended.

        Raises:
            SqlError: 58000 where the JVM or a task failed.
            asyncio.CancelledError: the jobs are cancelled.
        """
        if not items:
            return []

        def call(live: Live) -> list[Any]:
            context = live.context
            prepare_workers(context)
            return list(context.parallelize(list(items), len(items)).mapPartitions(Calls(function)).collect())

        return await self.run(call, done)

    async def run(self, work: Callable[[Live], T], done: Callable[[int], None] | None = None) -> T:
        """Return what ``work`` does with the JVM, in a thread and a slot, its jobs under the tag. Else as ``map``."""
        loop = asyncio.get_running_loop()
        pool = await self._runtime.enter(self._client)
        running = loop.run_in_executor(self._runtime.jobs, self._tagged, pool, work)
        self._runtime.waits.enter(self._client.session, JOB)
        try:
            while True:
                finished, _ = await asyncio.wait({running}, timeout=POLL_S)
                if finished:
                    return running.result()
                if done is not None:
                    done(await loop.run_in_executor(self._runtime.control, self._ended))
        except asyncio.CancelledError:
            running.add_done_callback(forget)
            self._cancel()
            raise
        except SqlError:
            raise
        except Exception as error:
            raise translated(self._runtime, self._live, error) from error
        finally:
            self._runtime.waits.leave(self._client.session, JOB)
            self._runtime.leave(self._client)

    def _tagged(self, pool: str, work: Callable[[Live], T]) -> T:
        context = self._live.context
        context.addJobTag(self._tag)
        context.setLocalProperty(POOL_PROPERTY, pool)
        try:
            return work(self._live)
        finally:
            with contextlib.suppress(Exception):  # a JVM that is gone has no tags
                context.clearJobTags()
                context.setLocalProperty(POOL_PROPERTY, None)

    def _ended(self) -> int:
        """Return how many tasks of the running job have ended; 0 where it is not known."""
        if not self._live.gateway.alive:
            return 0
        with contextlib.suppress(Exception):  # the JVM may end at any moment
            tracker = self._live.context.statusTracker()
            jobs = self._live.context._jsc.sc().statusTracker().getJobIdsForTag(self._tag)
            ended = 0
            for job in jobs:
                info = tracker.getJobInfo(job)
                for stage in () if info is None or info.status != "RUNNING" else info.stageIds:
                    details = tracker.getStageInfo(stage)
                    ended += 0 if details is None else details.numCompletedTasks
            return ended
        return 0

    def _cancel(self) -> None:
        with contextlib.suppress(RuntimeError):  # the control thread is gone: the server stops
            self._runtime.control.submit(cancel_jobs, self._live, self._tag)
        self._runtime.given_up(self._live, self._tag)


def translated(runtime: SparkRuntime, live: Live, error: Exception) -> SqlError:
    """Return the 58000 of an exception of the JVM of ``live``, which another one replaces if it has ended."""
    if not live.gateway.alive or lost(error):
        runtime.lost(live)
        return SqlError(
            "58000",
            "the Spark JVM ended while the statement ran",
            hint="It starts again by itself: retry.",
        )
    lines = [
        line for line in text_of(error).splitlines() if line.strip() and not line.startswith(("\t", " "))
    ]
    what = next((line for line in reversed(lines) if ": " in line), lines[0] if lines else "no message")
    return SqlError("58000", "a task of the statement failed on Spark", detail=what)


def cancel_jobs(live: Live, tag: str) -> None:
    """Cancel jobs by tag; runs in the control thread."""
    if live.gateway.alive:
        with contextlib.suppress(Exception):  # the JVM may end at any moment: then nothing is left to cancel
            live.context.cancelJobsWithTag(tag)
