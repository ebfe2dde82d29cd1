"""COPY FROM files that are more than one stream of bytes: several files, Parquet, or so much that Spark reads it.

                        ┌─ here: split by split in a thread ──batches──> transaction
    files ──looked at──>┤
                        └─ Spark: tasks ──parts by reference──> transaction          (``load_task``)

Spark takes a load of at least ``copy_spark_min_bytes``, if it is up, or any whose session is pinned to it.
Rows then never pass through the server. What only a session can tell (``portable``) keeps a load here. Either
way the load is one statement of its transaction: all rows or none, at its timestamp.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.base.eager import settle
from engine.base.executor import ExecContext
from engine.base.server_files import ServerFile, file_error
from engine.base.stored_objects import StoredObject, beside, fetch
from engine.catalog.physical import shard_spec
from engine.changes.bulk.find_key import FindTask, Place, locate
from engine.changes.bulk.load_task import MOST_KEPT, Failure, LoadTask, Sum
from engine.changes.bulk.look import Look, RowGroups, look, looks_at, splits_of
from engine.changes.bulk.portable import obstacle
from engine.changes.bulk.read_split import Reading, read_split
from engine.changes.bulk.rejected import tell_rejects
from engine.changes.bulk.splits import CHUNK_BYTES, Split, Survey, numbered
from engine.changes.constraints import effects
from engine.changes.constraints.setwise import check_bulk
from engine.changes.triggers.firing import firing_of
from engine.changes.triggers.rows import begin
from engine.changes.writes.copy_rows import LoadSpec, Rejects, too_many
from engine.changes.writes.returning import make_env
from engine.executors.server import executing
from engine.session.progress import CopyProgress
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.errors import DataError
from planner.base.errors import not_supported
from planner.catalog import RelationDef
from txn.base.errors import DuplicateKey
from txn.base.types import Row, ShardId
from txn.persist.parts.job import PartJob, WrittenPart
from txn.persist.scratch import Scratch
from txn.values.columns import RowPlan, table_rows

if TYPE_CHECKING:
    from engine.session.session import Session

FEW_ROWS: Final = 20_000
"""Loads of no more rows are staged as an INSERT's."""

MIN_TASK_BYTES: Final = 4 << 20


def on_spark(session: Session, spec: LoadSpec, files: Sequence[ServerFile]) -> bool:
    """Return whether Spark is to do a load. Raises SqlError 0A000 where the session wants that and it cannot."""
    pinned = session.derived.executor == "spark"
    if not pinned:
        spark = executing(session.db).spark
        least = session.settings.integer("copy_spark_min_bytes")
        if session.derived.executor != "auto" or spark is None or not spark.ready:
            return False
        if sum(file.size for file in files) < least:
            return False
    why = obstacle(spec)
    if why is None and not effects.may_bulk_load(session, spec.relation):
        fires = firing_of(session, spec.relation, "INSERT") is not None
        why = "triggers" if fires else "a key whose check is deferred"
    if why is not None and pinned:
        raise not_supported(f"COPY FROM on Spark with {why}")
    return why is None


async def load_here(
    session: Session, spec: LoadSpec, ctx: ExecContext, progress: CopyProgress, files: Sequence[ServerFile]
) -> int:
    """Load files in this process, a thread reading ahead of the transaction; return the number of rows.

    Raises DataError and SqlError as ``read_split``, and what constraints raise.
    """
    firing = firing_of(session, spec.relation, "INSERT")
    if firing is not None and firing.before_row:
        raise not_supported(
            "COPY FROM of several files, or of Parquet, into a table with BEFORE ROW triggers or a view"
        )
    await begin(session, firing)
    looks = looks_at(files, spec.options, 1 << 62)
    found = [await beside(not isinstance(item.path, str), look, spec.options, item) for item in looks]
    splits = splits_of(files, spec.options, looks, found)
    relation = spec.relation
    load = _Here(spec, ctx, progress, splits)
    batches = load.batches()
    first: list[Any] = []
    count = 0
    bulk = effects.may_bulk_load(session, relation)
    async for batch in batches:
        first.append(batch)
        count += batch.num_rows
        if count > FEW_ROWS and bulk:
            break
    txn = session.block.ensure_txn()
    shard = ShardId(relation.oid)
    try:
        if count <= FEW_ROWS or not bulk:
            rows = [row for batch in first for row in _rows(relation, batch)]
            if rows:
                await settle(txn.insert(shard, rows))
            if rows or firing is not None:
                await effects.inserted(session, relation, rows, firing)
        else:
            count = await txn.bulk_insert(shard, _chained(first, batches))
            await check_bulk(session, relation)
    except DuplicateKey as error:
        await locate(session, spec, ctx.params, error, [(split,) for split in splits])
        raise
    tell_rejects(session, spec.options, load.rejects)
    return count


def _rows(relation: RelationDef, batch: Any) -> list[Row]:
    plan = RowPlan(shard_spec(relation), [c.attnum for c in relation.stored_columns])
    return table_rows(pa.Table.from_batches([batch]), plan)


async def _chained(first: Sequence[Any], rest: AsyncIterator[Any]) -> AsyncIterator[Any]:
    for batch in first:
        yield batch
    async for batch in rest:
        yield batch


class _Here:
    """The batches of splits, read one after the other: in threads, or on the loop where they ask the session."""

    def __init__(
        self, spec: LoadSpec, ctx: ExecContext, progress: CopyProgress, splits: Sequence[Split]
    ) -> None:
        self._spec = spec
        self._env = make_env(ctx)
        self._progress = progress
        self._splits = splits
        self._gentle = obstacle(spec) is not None
        self._fetched: dict[StoredObject, str] = {}
        self._folder: Scratch | None = None
        self.rejects = Rejects(MOST_KEPT)

    async def batches(self) -> AsyncIterator[Any]:
        progress, rejects = self._progress, self.rejects
        progress.bytes_total = sum(split.size for split in self._splits)
        before = 0
        for place in self._splits:
            split = await self._near(place)
            reading = Reading()
            keep = MOST_KEPT - len(rejects.first)
            batches = read_split(self._spec, self._env, split, reading, keep=keep, gentle=self._gentle)
            far = not isinstance(split.path, str)
            while (batch := await self._next(batches, far)) is not None:
                progress.bytes = before + reading.read
                progress.tuples += batch.num_rows
                yield batch
            before += split.size
            progress.bytes = before
            progress.excluded += reading.excluded
            rejects.count += reading.rejects.count
            rejects.first += reading.rejects.first
            limit = self._spec.options.reject_limit
            if limit and rejects.count > limit:
                over = rejects.first[limit] if limit < len(rejects.first) else None
                raise too_many(limit, None if over is None else over.where(self._spec.relation.name))

    async def _near(self, split: Split) -> Split:
        """Have the file at hand where it is read on the loop: an object is fetched before, once."""
        if not self._gentle or isinstance(split.path, str):
            return split
        if split.path not in self._fetched:
            if self._folder is None:
                self._folder = Scratch("copy")
            path = os.path.join(self._folder.path, str(len(self._fetched)))
            try:
                await beside(True, fetch, split.path, path)
            except OSError as error:
                raise file_error(error, split.name, "reading") from None
            self._fetched[split.path] = path
        return replace(split, path=self._fetched[split.path])

    async def _next(self, batches: Iterator[Any], far: bool) -> Any:
        if not self._gentle:
            return await beside(far, next, batches, None)
        await asyncio.sleep(0)
        return next(batches, None)


async def load_on_spark(
    session: Session, spec: LoadSpec, ctx: ExecContext, progress: CopyProgress, files: Sequence[ServerFile]
) -> int:
    """Load files on Spark; return the number of rows.

    Raises:
        SqlError: the error of the first bad row, and 58000 where Spark fails; what constraints raise.
    """
    spark = executing(session.db).spark
    if spark is None:
        raise AssertionError("Spark was chosen, and does not run")
    relation, options = spec.relation, spec.options
    progress.bytes_total = total = sum(file.size for file in files)
    tasks = await spark.tasks(ctx)
    chunk_bytes = max(min(CHUNK_BYTES, total // (2 * tasks.parallelism)), MIN_TASK_BYTES)
    looks = looks_at(files, options, chunk_bytes)
    found = [_unwrapped(answer) for answer in await tasks.map(Looking(options), looks)]
    work = numbered(chunk_bytes, splits_of(files, options, looks, found))
    progress.bytes_total = sum(split.size for splits in work for split in splits)  # of Parquet: as decoded
    summed = Sum(relation.name, options)

    async def write(job: PartJob) -> list[WrittenPart]:
        task = LoadTask(job, spec, tuple(ctx.params), len(work))
        for at in range(0, len(work), tasks.wave):
            wave = work[at : at + tasks.wave]
            size = sum(split.size for splits in wave for split in splits)
            begun = progress.bytes

            def done(ended: int, begun: int = begun, size: int = size, of: int = len(wave)) -> None:
                progress.bytes = max(progress.bytes, begun + size * min(ended, of) // of)

            for answer in await tasks.map(task, wave, done):
                summed.add(answer)
            progress.bytes = begun + size
            progress.tuples, progress.excluded = summed.rows, summed.excluded
        return summed.parts

    if not work:
        return 0
    progress.by_row = False
    try:
        count = await session.block.ensure_txn().bulk_insert_parts(ShardId(relation.oid), write)
    except DuplicateKey as error:

        async def find(task: FindTask, work: Sequence[Sequence[Split]]) -> list[list[Place]]:
            return [
                places
                for at in range(0, len(work), tasks.wave)
                for places in await tasks.map(task, work[at : at + tasks.wave])
            ]

        await locate(session, spec, ctx.params, error, work, find)
        raise
    await check_bulk(session, relation)
    tell_rejects(session, options, summed.rejects)
    return count


class Looking:
    """The function of the tasks that look over files. Can be pickled."""

    def __init__(self, options: CopyOptions) -> None:
        """Look for the row ends of these options."""
        self._options = options

    def __call__(self, item: Look, worker: str) -> Survey | RowGroups | Failure:
        """Return what was found, or the error."""
        del worker
        try:
            return look(self._options, item)
        except DataError as error:
            return Failure.of(error)


def _unwrapped(found: Survey | RowGroups | Failure) -> Survey | RowGroups:
    if isinstance(found, Failure):
        raise found.error()
    return found
