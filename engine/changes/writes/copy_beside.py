"""COPY FROM past the bulk bound, read by a process beside the server (``engine.changes.bulk.worker_pool``).

    client ──chunks──> Tape ──> first rows, on the loop
                        └── the same from the beginning, and all that follows ──> process ──parts by
                        reference──> transaction

The process reads all rows, also those that were read to learn that the load is large: so lines, errors and
what is left out are counted in one place. What only a session can tell (``engine.changes.bulk.portable``)
stays in the server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from engine.base.executor import ExecContext
from engine.changes.bulk.portable import obstacle
from engine.changes.bulk.rejected import told
from engine.changes.bulk.server import loading
from engine.changes.bulk.stream_task import StreamTask
from engine.changes.bulk.worker_pool import LoadWorker, WorkerEnded, WorkerPool, ended
from engine.changes.writes.copy_rows import LoadSpec, Rejects
from engine.session.progress import CopyProgress
from pgwire.errors import BackendError
from txn.api import PartJob, WrittenPart
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

TAPE_BYTES: Final = 32 << 20
"""Of first rows that are larger than that, nothing is kept: the server reads the load."""
PART_BYTES: Final = 48 << 20
"""Arrow data of one part: the process has some four copies of it."""
EARLY_BYTES: Final = 128 << 10
"""Of a load that has come so far, a process is started: it may be one of the large ones."""


class Tape:
    """A load's chunks, kept until ``stop`` so that they can be had again."""

    def __init__(self, chunks: AsyncIterator[bytes], pool: WorkerPool | None) -> None:
        """Keep what comes from ``chunks`` unless ``pool`` is None."""
        self._chunks = chunks
        self._pool = pool
        self._kept: list[bytes] = []
        self._size = 0

    def __aiter__(self) -> Tape:
        """Return itself."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk, and keep it."""
        chunk = await anext(self._chunks)
        if self._pool is not None:
            self._kept.append(chunk)
            self._size += len(chunk)
            if self._size >= EARLY_BYTES:
                self._pool.prepare()
            if self._size > TAPE_BYTES:
                self.stop()
        return chunk

    def stop(self) -> None:
        """Keep nothing any more."""
        self._pool = None
        self._kept.clear()

    async def take(self) -> LoadWorker | None:
        """Return a process to load what is here; None: the server has to, and nothing is kept any more."""
        worker = None if self._pool is None else await self._pool.take()
        if worker is None:
            self.stop()
        return worker

    async def again(self) -> AsyncIterator[bytes]:
        """Yield all chunks from the first one on, once."""
        kept = self._kept[::-1]
        self.stop()
        while kept:
            yield kept.pop()
        async for chunk in self._chunks:
            yield chunk


def pool_for(session: Session, spec: LoadSpec) -> WorkerPool | None:
    """Return where a load finds a process to read its rows; None: the server reads them."""
    pool = loading(session.db).worker_pool
    if pool is None or session.settings.get("copy_worker") != "on" or obstacle(spec) is not None:
        return None
    return pool


async def load_beside(
    session: Session, spec: LoadSpec, ctx: ExecContext, progress: CopyProgress, tape: Tape, worker: LoadWorker
) -> tuple[int, Rejects]:
    """Have a process load all that is on a tape and that follows; return the number of rows, and those left out.

    Raises:
        SqlError: the error of the first bad row; 58000 where the process has ended.
        DuplicateKey, and all else that ``Transaction.bulk_insert_parts`` raises.
    """
    pool = loading(session.db).worker_pool
    if pool is None:
        raise AssertionError("a COPY loads beside the server, which has no pool of workers")
    rejects = Rejects()
    used = False

    async def write(job: PartJob) -> list[WrittenPart]:
        nonlocal used
        used = True
        small = replace(job, part_bytes=min(job.part_bytes, PART_BYTES))
        task = StreamTask(small, spec, tuple(ctx.params), told(spec.options))
        try:
            answer = await worker.load(task, tape.again(), progress)
        except WorkerEnded:
            raise ended(await pool.drop(worker)) from None
        except BackendError:
            pool.give(worker)
            raise
        except BaseException:
            pool.drop(worker)
            raise
        pool.give(worker)
        rejects.count, rejects.first = answer.rejected, answer.rejects
        return answer.written()

    progress.by_row = False
    try:
        rows = await session.block.ensure_txn().bulk_insert_parts(ShardId(spec.relation.oid), write)
    finally:
        if not used:
            pool.give(worker)
    return rows, rejects
