"""Compaction of large parts on Spark: a task reads them and writes one, the server swaps it in
(docs/internals/storage.md).

    upkeep ──parts, positions of dead rows──► a Spark task ──► one part, durable ──► upkeep: ends since, swap, manifest
                                                   └── Spark is off, down or fails: the server merges, as far
                                                   as its memory goes

See ``txn.upkeep.merging`` for how it goes beside everything else.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from engine.changes.bulk.merge_task import NotMerged, merge
from engine.executors.spark.executor import SparkExecutor
from planner.base.errors import SqlError
from txn.api import MergedPart, MergeJob

PAUSE_S: Final = 60.0
"""How long the server merges by itself after a merge on Spark has failed."""
FACTOR: Final = 2
"""How many times the Arrow data of one part made by the server a merge on Spark may have."""

_log = logging.getLogger(__name__)


class SparkMerges:
    """Has parts merged on Spark; see ``txn.persist.parts.merge_job.Merger``."""

    def __init__(self, spark: SparkExecutor, min_bytes: int, part_bytes: int) -> None:
        """``min_bytes``: files of less are the server's. ``part_bytes``: the Arrow data of a part that the
        server makes.
        """
        self.max_bytes = FACTOR * part_bytes
        self._spark = spark
        self._min_bytes = min_bytes
        self._not_before_s = 0.0

    def wants(self, size: int) -> bool:
        """Tell whether files of ``size`` bytes are Spark's to merge: it is up, and has not failed a moment ago."""
        if size < self._min_bytes or not self._spark.ready:
            return False
        return asyncio.get_running_loop().time() >= self._not_before_s

    async def write(self, job: MergeJob) -> MergedPart | None:
        """Have a job done; None where Spark has not done it."""
        try:
            tasks = await self._spark.own_tasks(id(self))
            [answer] = await tasks.map(merge, [job])
        except SqlError as error:
            answer = NotMerged(error.message)
        if isinstance(answer, MergedPart):
            return answer
        self._not_before_s = asyncio.get_running_loop().time() + PAUSE_S
        _log.warning(
            "Spark has not merged parts (%s): the server does for the next %.0f s", answer.reason, PAUSE_S
        )
        return None
