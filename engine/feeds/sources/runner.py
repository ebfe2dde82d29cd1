"""The task of one source: batch after batch, each one transaction with its offsets, acknowledged once it is
readable (A33-A37).

    open reader at the stored offsets
      ┌─> poll ──> begin, lock tables, source still runs? ──> stage rows, move offsets ──> commit at ts
      │                                                                                      │ durable
      └── acknowledge upstream <── read_ts of the timeline >= ts: every later read sees it <─┘

Nothing is kept between two batches that is not in the offsets, so there is one answer to whatever goes wrong:
throw the reader away and open another. A crash before the commit repeats the batch, one after it goes on
behind it; one between commit and acknowledgement acknowledges again. What may pass is tried again, ever more
slowly; what stays wrong stops the source, with the error in holdfast_sources.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from engine.base.eager import settle
from engine.catalog.storage.spaces import Space
from engine.catalog.storage.store import INDEX as CATALOG_INDEX
from engine.catalog.storage.store import stored_key
from engine.catalog.storage.stored import CATALOG_SHARD, key_of
from engine.feeds.sources import offsets as stored
from engine.feeds.sources.changes import stage
from engine.feeds.sources.options import Options
from engine.feeds.sources.reader import Batch, Reader, Reread, Temporary
from engine.session.conflicts import NOTHING_KNOWN
from engine.session.errors import report_of
from engine.session.source_status import PartitionStatus, Status
from planner.base.errors import SqlError
from planner.catalog import RelationDef, SourceDef
from txn.api import Transaction
from txn.base.errors import (
    CommitUnknown,
    CommitWithdrawn,
    Deadlock,
    Fenced,
    LockRefused,
    OutOfSpace,
    SchemaChanged,
    StorageError,
    WaitCancelled,
    WriteConflict,
)
from txn.base.types import ShardId, Timestamp

if TYPE_CHECKING:
    from engine.feeds.sources.feeding import FeedingServer

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 15.0
TRIES: Final = 20  # of one batch that loses against other transactions, before its reader is opened anew
_LOST: Final = (WriteConflict, Deadlock, SchemaChanged, LockRefused, CommitWithdrawn, WaitCancelled)
_MAY_PASS: Final = (Temporary, stored.OffsetsMoved, *_LOST, OutOfSpace, StorageError, OSError)
_ENDS_SERVER: Final = (Fenced, CommitUnknown)

_log = logging.getLogger(__name__)


class Halted(Exception):
    """The source has been paused, dropped or changed since its task began."""


class Runner:
    """Runs one source until it is stopped, or ``halted``. ``status`` outlives it."""

    def __init__(
        self,
        db: FeedingServer,
        space: Space,
        source: SourceDef,
        status: Status,
        make_reader: Callable[[FeedingServer, SourceDef], Reader],
    ) -> None:
        """Start the task; ``space``: the database of the source."""
        self._db = db
        self._space = space
        self._store = db.store
        self.source = source
        self._status = status
        self._make_reader = make_reader
        self._options = Options(source.kind, source.options)
        self._offsets: dict[str, bytes] = {}
        self._reader: Reader | None = None
        self._context = ""  # of the batch that is being committed
        self.halted = False  # it found itself paused or changed, which may be over by now
        self._between_commits = asyncio.Event()
        self._between_commits.set()
        self._stopping = False
        self._advanced = False  # since the reader was opened
        self._cut_short = asyncio.Event()  # no batch is read any more
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"source {source.name}")

    async def stop(self) -> None:
        """End the task. A commit under way ends first; nothing else is waited for."""
        self._stopping = True
        self._cut_short.set()
        await self._between_commits.wait()
        self._task.cancel()
        await asyncio.wait((self._task,))

    # -- the loop ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping:
            self._advanced = False
            try:
                await self._read_on()
                self._status.state = "done"
                return
            except asyncio.CancelledError:
                return
            except Halted:
                self.halted = True
                return
            except _ENDS_SERVER:
                return  # the store has told the server, which ends
            except Exception as error:
                if not self._note(error):
                    return
                pause_s = FIRST_PAUSE_S if self._advanced else min(pause_s * 2, LONGEST_PAUSE_S)
            finally:
                await self._close_reader()
            await self._sleep(pause_s)

    def _note(self, error: Exception) -> bool:
        """Say what went wrong; tell whether to try again."""
        name = self.source.name
        said = describe(error, self._space, self._db.config.relative)
        context, self._context = self._context, ""
        self._status.last_error = (
            f"{said}\nCONTEXT: {context}" if context and "\nCONTEXT: " not in said else said
        )
        self._status.last_error_us = self._db.clock_us()
        if isinstance(error, _MAY_PASS):
            self._status.state = "retrying"
            _log.warning("source %s tries again: %s", name, self._status.last_error)
            return True
        self._status.state = "stopped"
        if report_of(error, self._space.catalog) is None:
            _log.error("source %s stopped", name, exc_info=error)
        else:
            _log.error("source %s stopped: %s", name, self._status.last_error)
        return False

    async def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    async def _sleep(self, seconds: float) -> None:
        """Wait, no longer than until ``stop``."""
        try:
            await asyncio.wait_for(self._cut_short.wait(), seconds)
        except TimeoutError:
            return

    async def _read_on(self) -> None:
        """Open a reader and go on until there will never be more, or ``stop``."""
        self._offsets = await stored.read(self._store, self.source)
        reader = self._reader = self._make_reader(self._db, self.source)
        places = await reader.open(self._offsets)
        for partition, place in places.items():
            known = self._status.partitions.get(partition)
            if known is None:
                self._status.partitions[partition] = PartitionStatus(place.position, place.rows)
            else:
                known.position, known.rows = place.position, place.rows
        poll_s = self._options.int("poll_interval_ms") / 1000
        limit = self._options.int("max_rows_per_second")
        while not self._stopping:
            if self._status.state != "retrying":  # until something has come of it
                self._status.state = reader.progress.activity
            self._status.lag = reader.progress.lag
            if reader.progress.done:
                return
            batch = await reader.poll()
            self._status.state = reader.progress.activity
            if batch is None:
                await self._sleep(poll_s)
                continue
            self._context = batch.context
            try:
                ts = await self._commit(batch)
            except Reread:
                continue
            self._context = ""
            await self._acknowledge(reader, batch, ts)
            self._advanced = True
            if limit:
                await self._sleep(sum(batch.rows.values()) / limit)

    async def _acknowledge(self, reader: Reader, batch: Batch, ts: Timestamp) -> None:
        """Acknowledge what every later read sees: property 1 (A34-A36)."""
        timeline = self.source.timeline
        if self._store.read_ts(timeline) < ts:
            await self._store.reach(ts, timeline)
        await self._db.wait_leading()
        await reader.acknowledge(batch)
        now_us = self._db.clock_us()
        for partition, position in batch.positions.items():
            shown = self._status.partitions[partition]
            shown.acknowledged_position, shown.acknowledged_ts, shown.acknowledged_us = position, ts, now_us

    # -- one transaction ---------------------------------------------------------------------------

    async def _commit(self, batch: Batch) -> Timestamp:
        """Commit a batch with its offsets, again where others were faster; returns its timestamp."""
        tries = 0
        while True:
            try:
                return await self._attempt(batch)
            except _LOST:
                tries += 1
                if tries >= TRIES or self._stopping:
                    raise
                await self._sleep(0.01 * 2 ** min(tries, 6) * (0.5 + self._db.random()))

    async def _attempt(self, batch: Batch) -> Timestamp:
        source = self.source
        txn = self._store.begin(timeline=source.timeline)
        try:
            # the catalog first, as all DDL does: otherwise the two would meet in deadlocks
            await settle(txn.begin_write([ShardId(source.oid)]))
            relations = await self._still_ours(txn, batch)
            await settle(txn.begin_write(map(ShardId, batch.changes)))
            for oid, changes in batch.changes.items():
                await stage(txn, relations[oid], changes)
                await asyncio.sleep(0)
            await stored.move(txn, source, self._offsets, batch.offsets)
            if self._stopping:
                raise Halted
            self._between_commits.clear()
            ts: Timestamp = await settle(txn.commit())
        except BaseException:
            txn.rollback()
            raise
        finally:
            self._between_commits.set()
        self._committed(batch, ts)
        return ts

    async def _still_ours(self, txn: Transaction, batch: Batch) -> dict[int, RelationDef]:
        """Lock the source's row in the catalog S; return the tables as they are. Raises Halted.

        PAUSE and DROP lock that row X, so they are between two batches.
        """
        key = key_of(self.source)
        row_key = stored_key(self._space.oid, key)
        rows = await settle(txn.lookup(ShardId(CATALOG_SHARD), CATALOG_INDEX, [row_key]))
        catalog = self._space.catalog
        if not rows or catalog.items.get(key) != self.source or self.source.paused:
            raise Halted
        found = {oid: catalog.relation_by_oid(oid) for oid in batch.changes}
        relations = {oid: relation for oid, relation in found.items() if relation is not None}
        if len(relations) < len(found):
            raise Halted
        return relations

    def _committed(self, batch: Batch, ts: Timestamp) -> None:
        for partition, body in batch.offsets.items():
            if body is None:
                self._offsets.pop(partition, None)
            else:
                self._offsets[partition] = body
        now_us = self._db.clock_us()
        for partition, position in batch.positions.items():
            shown = self._status.partitions.setdefault(partition, PartitionStatus(position, 0))
            shown.position, shown.ts, shown.committed_us = position, ts, now_us
            shown.rows += batch.rows.get(partition, 0)


def describe(error: Exception, space: Space, relative: Callable[[str], str]) -> str:
    """Return an error as holdfast_sources shows it: SQLSTATE, message, then detail, context and hint.
    ``relative``: see ``Surroundings``.
    """
    if isinstance(error, Temporary):
        return str(error.args[0])
    if isinstance(error, stored.OffsetsMoved):
        return "another server has gone on with this source"
    report = report_of(error, space.catalog, replace(NOTHING_KNOWN, relative=relative))
    if report is None:
        if isinstance(error, OSError):
            return relative(f"58030: {error}")
        return f"XX000: {type(error).__name__}: {error}"
    lines = [f"{report.sqlstate}: {report.message}"]
    lines += [f"DETAIL: {report.detail}"] if report.detail else []
    lines += [f"CONTEXT: {report.where}"] if report.where else []
    lines += [f"HINT: {report.hint}"] if report.hint else []
    return "\n".join(lines)


def missing(oid: int) -> SqlError:
    """Return the error for a table of a source that is not in the catalog."""
    return SqlError("XX000", f"a table of the source, {oid}, is missing")
