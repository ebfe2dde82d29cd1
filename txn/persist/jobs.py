"""Work of other processes on the blobs: what they may write, for how long, and what is left when it has ended.

    start ──grant──► workers write under it ──► end: the grant goes, then whatever nobody has taken

A grant is an entry of the blob store without which a worker publishes nothing
(``persist.location.BlobGrant``), so that a task which lives on, wherever it is, adds no file to what the
server has adopted or removed. After a crash the next start removes grants and files that nothing names.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable

from txn.base.errors import TxnError
from txn.base.time import IdGen
from txn.base.types import IndexId, PartRef, ShardId, ShardSpec
from txn.persist.location import Blob
from txn.persist.parts.job import PartJob
from txn.persist.parts.part import part_of_blob, sidecar_name
from txn.persist.parts.sidecar_job import SidecarJob
from txn.values.encoding import encode_spec

_log = logging.getLogger(__name__)


class Jobs:
    """The jobs of one server. Used on the event loop."""

    def __init__(self, blob: Blob, epoch: int, ids: IdGen, swept: Callable[[], Awaitable[None]]) -> None:
        """``swept``: waits until the sweep of this start has ended."""
        self._blob = blob
        self._epoch = epoch
        self._ids = ids
        self._swept = swept
        self._ending: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait for what is being ended or removed."""
        while self._ending:
            await asyncio.wait(self._ending)

    async def settled(self) -> None:
        """Wait until what is being removed at the moment is gone."""
        if self._ending:
            await asyncio.wait(tuple(self._ending))

    def _go_on(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something to its end, whether or not somebody waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    # -- parts -------------------------------------------------------------------------------------

    async def start_parts(
        self, shard: ShardId, spec: ShardSpec, first_row_id: int, *, part_rows: int, part_bytes: int
    ) -> PartJob:
        """Let processes elsewhere write parts of a shard until ``end_parts``; see ``PartJob``.

        Raises OutOfSpace, Indeterminate: there is no job.
        """
        prefix = f"{shard}/{self._epoch}-{self._ids.next_id()}"
        return PartJob(
            prefix=prefix,
            grant=await self._blob.grant(_job_name(prefix)),
            spec=encode_spec(spec),
            first_row_id=first_row_id,
            part_rows=part_rows,
            part_bytes=part_bytes,
        )

    async def end_parts(self, job: PartJob, kept: Iterable[str]) -> None:
        """Keep these parts of a job and delete all its other files; none comes into being any more.

        It goes on when the caller is cancelled. A store that fails leaves files for the next start to sweep, and
        nothing else.
        """
        await asyncio.shield(self._go_on(self._end_parts(job, frozenset(kept))))

    async def _end_parts(self, job: PartJob, kept: frozenset[str]) -> None:
        try:
            await self._blob.revoke(_job_name(job.prefix))
            for name in await self._blob.list(f"{job.prefix}-"):
                if part_of_blob(name) not in kept:
                    await self._blob.delete(name)
        except TxnError as error:
            _log.info("files of an unfinished job were left behind: %s", error)

    # -- sidecars ----------------------------------------------------------------------------------

    async def start_sidecars(
        self, spec: ShardSpec, index: IndexId, parts: Iterable[PartRef]
    ) -> SidecarJob | None:
        """Let processes elsewhere write the sidecars of an index for parts until ``end_sidecars``; see ``SidecarJob``.

        None where that cannot be: in an object store, one who comes late might take away what another has written.

        Raises OutOfSpace, Indeterminate: there is no job.
        """
        if self._blob.remote:
            return None
        await self._swept()
        await self.settled()  # the same index may have been given up a moment ago
        for ref in parts:
            await self._blob.delete(sidecar_name(ref.name, index))
        name = f"{spec.shard}-{self._epoch}-{self._ids.next_id()}"
        grant = await self._blob.grant(name)
        return SidecarJob(name=name, grant=grant, spec=encode_spec(spec), index=index)

    async def end_sidecars(self, job: SidecarJob) -> None:
        """End a job: no sidecar comes into being under it any more. It goes on when the caller is cancelled.

        Raises OutOfSpace, Indeterminate: one might, so that none of the job's may be taken.
        """
        await asyncio.shield(self._go_on(self._blob.revoke(job.name)))

    def drop_sidecars(self, index: IndexId, parts: Iterable[str]) -> None:
        """Have the sidecars of an index that nobody will know removed, once jobs that end have ended.

        What a failing store leaves goes with the next start.
        """
        self._go_on(self._drop_sidecars(index, tuple(parts), tuple(self._ending)))

    async def _drop_sidecars(
        self, index: IndexId, parts: tuple[str, ...], before: tuple[asyncio.Task[None], ...]
    ) -> None:
        if before:
            await asyncio.wait(before)
        try:
            for name in parts:
                await self._blob.delete(sidecar_name(name, index))
        except TxnError as error:
            _log.info("sidecars of an unfinished index were left behind: %s", error)


def _job_name(prefix: str) -> str:
    """Return how a job is named in the blob store."""
    return prefix.replace("/", "-")
