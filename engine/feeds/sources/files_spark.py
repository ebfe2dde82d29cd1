"""Many bytes of files at once: Spark's tasks read them and write the table's parts, which the batch commits
by reference.

    files ──cut where rows end──> tasks: ``LoadTask`` ──> parts ──names──> one transaction: parts, manifest
                                                     └── the first bad row: its file, line, column

It is COPY FROM on Spark (``engine.changes.bulk.copy_files``) without a session: rows never pass through the
server, and as long as the transaction has not committed no part is anybody's. What a malformed file leaves of
a batch is the files before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.base.server_files import ServerFile
from engine.changes.bulk.copy_files import MIN_TASK_BYTES, Looking
from engine.changes.bulk.load_task import Answer, Failure, LoadTask
from engine.changes.bulk.look import looks_at, splits_of
from engine.changes.bulk.splits import CHUNK_BYTES, numbered
from engine.changes.writes.copy_rows import LoadSpec
from engine.executors.spark.executor import SparkExecutor
from engine.executors.spark.tasks import SparkTasks
from engine.feeds.sources.files_read import placed
from engine.feeds.sources.reader import Temporary
from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from txn.base.errors import OutOfSpace
from txn.persist.parts.job import PartJob, WrittenPart


class BadFile(Exception):
    """A file that cannot be read: ``at``, its place among the files, and ``error``, which names it."""

    def __init__(self, at: int, error: Exception) -> None:
        """Say which and why."""
        super().__init__(at)
        self.at = at
        self.error = error


@dataclass(slots=True)
class SparkLoad:
    """One load. ``rows``: of each file, by its place among them, once ``write`` has returned."""

    spark: SparkExecutor
    spec: LoadSpec
    files: Sequence[ServerFile]
    rows: dict[int, int] = field(default_factory=dict)

    async def write(self, job: PartJob) -> list[WrittenPart]:
        """Read all files, and return the parts that hold their rows. May be called again, for another transaction.

        Raises:
            BadFile: the first in the order of the files.
            Temporary: Spark does not answer, or ended.
            OutOfSpace: a worker's disk is full.
        """
        self.rows = {}
        try:
            tasks = await self.spark.own_tasks(id(self))
            return await self._write(tasks, job)
        except SqlError as error:
            raise Temporary(_said(error)) from error

    async def _write(self, tasks: SparkTasks, job: PartJob) -> list[WrittenPart]:
        spec, options, files = self.spec, self.spec.options, self.files
        size = sum(file.size for file in files)
        chunk_bytes = max(min(CHUNK_BYTES, size // (2 * tasks.parallelism)), MIN_TASK_BYTES)
        looks = looks_at(files, options, chunk_bytes)
        found = []
        for item, answer in zip(looks, await tasks.map(Looking(options), looks), strict=True):
            if isinstance(answer, Failure):
                raise self._bad(item.file, answer.error())
            found.append(answer)
        work = numbered(chunk_bytes, splits_of(files, options, looks, found))
        load = LoadTask(job, spec, (), len(work))
        parts: list[WrittenPart] = []
        for at in range(0, len(work), tasks.wave):
            for answer in await tasks.map(load, work[at : at + tasks.wave]):
                self._take(answer)
                parts += [WrittenPart.decode(part) for part in answer.parts]
        return parts

    def _take(self, answer: Answer) -> None:
        if answer.failure is not None:
            raise self._bad(max(answer.by_file), answer.failure.error())
        if answer.full is not None:
            raise OutOfSpace(answer.full)
        for file, rows in answer.by_file.items():
            self.rows[file] = self.rows.get(file, 0) + rows

    def _bad(self, at: int, error: DataError) -> BadFile:
        return BadFile(at, placed(error, self.files[at].name, self.spec.relation))


async def may_read(spark: SparkExecutor | None, told: Callable[[str], None]) -> bool:
    """Wait until Spark is up, and return whether it is: not where it is switched off or cannot start, which
    ``told`` hears.
    """
    if spark is None or spark.runtime.off:
        return False
    try:
        await spark.runtime.live()
    except SqlError as error:
        told(_said(error))
        return False
    return True


def _said(error: SqlError) -> str:
    return f"{error.sqlstate}: {error.message}" + (f"\nDETAIL: {error.detail}" if error.detail else "")
