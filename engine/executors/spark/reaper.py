"""Cancelled queries whose tasks run on.

Spark ends a task by asking it: the task looks between batches of its input, so a loop over few input rows that makes
many (a join of two generated series, say) may not look for hours, and its thread keeps a core that others wait for.
Cluster executors have Spark's own reaper, which ends their process. In local mode that process is the server's JVM:

    query given up --REAP_AFTER_S--> do its tasks run? --no--> done
                                           | yes
                     every POLL_S: does any other query's task run? --yes--> wait on, nobody starves
                                           | no, QUIET_POLLS times
                                     the JVM is replaced (queries that wait for a core get 58000)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.executors.spark.runtime import Live, SparkRuntime

REAP_AFTER_S = 15.0
POLL_S = 1.0
QUIET_POLLS = 3


class Reaper:
    """Watches given-up queries of one runtime. Use from the event loop."""

    def __init__(self, runtime: SparkRuntime, replace: Callable[[Live], None]) -> None:
        """Note who to ask and what to do; ``replace`` gets the session whose JVM has to go."""
        self._runtime = runtime
        self._replace = replace
        self._tags: dict[
            str, tuple[Live, float]
        ] = {}  # with the loop's time from which a running task is too late
        self._task: asyncio.Task[None] | None = None

    def watch(self, live: Live, tag: str) -> None:
        """See to it that no task of the given-up query ``tag`` runs on for ever."""
        loop = asyncio.get_running_loop()
        self._tags[tag] = live, loop.time() + REAP_AFTER_S
        if self._task is None:
            self._task = loop.create_task(self._watch())

    def stop(self) -> None:
        """Watch no more."""
        self._tags.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        quiet = 0
        try:
            await asyncio.sleep(REAP_AFTER_S)
            while self._tags:
                live, tags = self._newest()
                stuck, others = await loop.run_in_executor(self._runtime.control, _running, live, tags)
                for tag in tags - stuck:
                    self._tags.pop(tag, None)
                late = stuck and all(self._tags[tag][1] <= loop.time() for tag in stuck)
                quiet = quiet + 1 if late and not others else 0
                if quiet >= QUIET_POLLS:
                    self._replace(live)
                    quiet = 0
                if self._tags:
                    await asyncio.sleep(POLL_S)
        finally:
            self._task = None

    def _newest(self) -> tuple[Live, set[str]]:
        """Return the session of the newest tag with all its tags; those of earlier sessions went with their JVM."""
        live, _ = next(reversed(self._tags.values()))
        self._tags = {tag: entry for tag, entry in self._tags.items() if entry[0] is live}
        return live, set(self._tags)


def _running(live: Live, tags: set[str]) -> tuple[set[str], int]:
    """Return the tags that have running tasks, and how many tasks of other queries run; blocks."""
    stuck: set[str] = set()
    theirs = total = 0
    with contextlib.suppress(Exception):  # the JVM may end at any moment: then nothing runs
        tracker: Any = live.context._jsc.sc().statusTracker()
        for tag in tags:
            count = sum(_active(tracker, job) for job in tracker.getJobIdsForTag(tag))
            theirs += count
            if count:
                stuck.add(tag)
        total = sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())
        return stuck, max(total - theirs, 0)
    return set(), 0


def _active(tracker: Any, job: int) -> int:
    """Return how many tasks of a job run."""
    found = tracker.getJobInfo(job)
    if found.isEmpty():
        return 0
    stages = [tracker.getStageInfo(stage) for stage in found.get().stageIds()]
    return sum(stage.get().numActiveTasks() for stage in stages if stage.isDefined())
