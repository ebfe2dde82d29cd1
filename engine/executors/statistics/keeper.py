"""Who counts figures of columns, keeps them and hands them out.

    ANALYZE t ─────────────────┐                 parts without figures, one after the other ─► DuckDB ─► kept by part, in a file
    a query on Spark reads t ──┴─► one thread ─► hot rows ───────────────────────────────────► DuckDB ─┐
                                                 all of them together: the table's record ◄────────────┘ pg_stats
    Spark plans a query over t ──► figures of the parts it reads, if they are there

Nobody waits but ANALYZE: a query over a table that is not counted yet is planned by the sizes of its files.
Merges and flushes make new parts, which are counted when the next query on Spark reads them, and so are parts
of which many rows have ended; until then the others speak for them, if they are most of the table.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.base.eager import settle
from engine.base.loop.threads import stand_back
from engine.base.statistics_records import ExtendedRecord, TableRecord
from engine.executors.statistics.figures import CannotCount, PartFigures
from engine.executors.statistics.files import StatisticsFiles
from engine.executors.statistics.records import columns_of
from txn.base.types import PhysicalType, ShardId, ShardSpec, Snapshot, SnapshotPart

if TYPE_CHECKING:
    from txn.store import ShardStore

MOST: Final = 0.9
"""The share of a table's rows whose parts have to be counted for them to speak for all."""
STALE: Final = 0.1
"""The share of a part's rows that may end before it is counted again."""
KEPT_BYTES: Final = 32 << 20
"""Figures in memory, of the tables used last; those of others are read again."""
_COLUMN_BYTES: Final = 1200

log = logging.getLogger("holdfast")


class Counter(Protocol):
    """Counts figures, for one thread at a time."""

    def part(
        self,
        path: str,
        columns: Mapping[int, PhysicalType],
        hidden: Any = None,
        exact: Collection[int] = (),
    ) -> PartFigures:
        """Return those of a part's file without rows at ``hidden`` positions; ``columns``: which it has.
        Blocks. Raises CannotCount.

        ``exact``: columns in their exact form (``txn.values.exact``).
        """

    def rows(self, table: Any, columns: Mapping[int, PhysicalType]) -> PartFigures:
        """Return those of an Arrow table. Blocks. Raises CannotCount."""

    def interrupt(self) -> None:
        """Make what is being counted fail with CannotCount; from any thread."""


@dataclass(frozen=True, slots=True)
class Known:
    """The figures of what a query reads of a table: of its parts that are counted, and whether these are all."""

    parts: tuple[PartFigures, ...]
    complete: bool


class _Pass:
    """One look over a table, which may be called off."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.off = False

    def call_off(self) -> None:
        self.off = True
        self.counter.interrupt()


class Statistics:
    """The figures of a server's tables. On the event loop but where a method says that it blocks."""

    def __init__(
        self,
        store: ShardStore,
        folder: Path,
        counter: Callable[[], Counter],
        sketches: str,
        clock_us: Callable[[], int],
    ) -> None:
        """Note where everything is; see ``load``.

        Args:
            store: gives snapshots (``txn.api``).
            folder: for the files.
            counter: makes one.
            sketches: see ``StatisticsFiles``.
            clock_us: the time.
        """
        self._store = store
        self._files = StatisticsFiles(folder, sketches)
        self._counter = counter
        self._clock_us = clock_us
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="statistics", initializer=stand_back)
        self._lock = threading.Lock()
        self._tables: OrderedDict[int, dict[str, PartFigures]] = (
            OrderedDict()
        )  # a table's is replaced, never changed
        self._seen: dict[int, dict[str, int]] = {}  # parts and their rows when a table was looked over last
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by table, those that nobody asked for
        self._running: set[_Pass] = set()
        self.records: Mapping[int, TableRecord] = {}
        """What was found of each table, by oid; replaced, never changed."""
        self.extended: Mapping[int, ExtendedRecord] = {}
        """What was found by each statistics object, by oid; replaced, never changed."""

    async def load(self) -> None:
        """Read what ANALYZE found before the last restart."""
        shards = {int(shard) for shard, _ in self._store.shards()}
        self.records = await asyncio.get_running_loop().run_in_executor(self._pool, self._load, shards)

    def _load(self, shards: Collection[int]) -> dict[int, TableRecord]:
        try:
            self._files.sweep(shards)
        except OSError as error:
            log.warning("statistics of dropped tables are left behind: %s", error)
        self.extended = self._files.extended()
        return {shard: found for shard, found in self._files.records().items() if shard in shards}

    async def close(self) -> None:
        """Stop counting."""
        for task in self._tasks.values():
            task.cancel()
        for each in self._running:
            each.call_off()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)

    # -- counting ----------------------------------------------------------------------------------

    async def analyze(self, tables: Sequence[tuple[int, str]]) -> None:
        """Count what has not been counted of tables, and note what is found. ``tables``: oid and timeline of each.

        Tables that are not there for others (made by a transaction that runs) and rows that are not committed
        do not count.
        """
        found: dict[int, TableRecord] = {}
        try:
            for shard, timeline in tables:
                record = await self._look_over(shard, timeline, by_itself=False)
                if record is not None:
                    found[shard] = record
        finally:
            await self._note(found)

    def wanted(self, snapshot: Snapshot) -> None:
        """A query that the figures would help reads a table: count what has not been counted, by and by."""
        shard = int(snapshot.spec.shard)
        if shard in self._tasks or not snapshot.parts:
            return
        seen = self._seen.get(shard, {})
        if all(_speaks(seen.get(part.ref.name), part) for part in snapshot.parts):
            return
        task = asyncio.get_running_loop().create_task(self._by_itself(shard, snapshot.spec.timeline))
        self._tasks[shard] = task
        task.add_done_callback(lambda _: self._tasks.pop(shard, None))

    async def _by_itself(self, shard: int, timeline: str) -> None:
        try:
            record = await self._look_over(shard, timeline, by_itself=True)
            if record is not None:
                await self._note({shard: record})
        except Exception:  # nobody waits for it; the next query that reads new parts tries again
            log.warning("the columns of table %d could not be counted", shard, exc_info=True)

    async def _look_over(self, shard: int, timeline: str, *, by_itself: bool) -> TableRecord | None:
        """Count a table's parts and hot rows, as far as they can be read; None where that is nothing."""
        try:
            txn = self._store.begin(read_only=True, timeline=timeline)
        except KeyError:
            return None
        work = _Pass(self._counter())
        self._running.add(work)
        try:
            try:
                snapshot = await settle(txn.snapshot(ShardId(shard)))
            except KeyError:
                return None
            loop = asyncio.get_running_loop()
            done = loop.run_in_executor(self._pool, self._count, work, snapshot)
            try:
                figures = await asyncio.shield(done)
            except asyncio.CancelledError:
                work.call_off()
                await asyncio.wait({done})
                raise
            self._seen[shard] = {part.ref.name: _rows(part) for part in snapshot.parts}
        finally:
            self._running.discard(work)
            txn.rollback()
        if figures is None:
            return None
        return await loop.run_in_executor(
            self._pool, self._recorded, snapshot.spec, figures, snapshot.rows, by_itself
        )

    def _recorded(
        self, spec: ShardSpec, figures: Iterable[PartFigures], rows: int, by_itself: bool
    ) -> TableRecord:
        before = self.records.get(int(spec.shard))
        asked_us = before.asked_us if before is not None else None
        by_itself_us = before.by_itself_us if before is not None else None
        if by_itself:
            by_itself_us = self._clock_us()
        else:
            asked_us = self._clock_us()
        return TableRecord(rows, columns_of(spec, figures, rows), asked_us, by_itself_us)

    def _count(self, work: _Pass, snapshot: Snapshot) -> list[PartFigures] | None:
        """Return the figures of all parts and of the hot rows; None where some cannot be read. Blocks."""
        shard = int(snapshot.spec.shard)
        columns = _columns(snapshot.spec)
        known = self._table(shard)
        found: dict[str, PartFigures] = {}
        missing = False
        for part in snapshot.parts:
            if work.off:
                return None
            name = part.ref.name
            present = {n: type_ for n, type_ in columns.items() if n in part.ref.columns}
            before = known.get(name)
            if before and _speaks(before.rows, part) and present.keys() <= before.columns.keys():
                found[name] = before
                continue
            many = not _speaks(part.ref.rows, part)
            try:
                found[name] = work.counter.part(
                    part.ref.path, present, part.hidden if many else None, part.exact
                )
            except CannotCount as error:
                missing = True
                if not work.off:
                    log.warning("a part of table %d has no statistics: %s", shard, error)
        if found != known:
            self._keep(shard, found)
        if missing or work.off:
            return None
        figures = list(found.values())
        if snapshot.hot.num_rows:
            try:
                figures.append(work.counter.rows(snapshot.hot, columns))
            except CannotCount as error:
                if not work.off:
                    log.warning("new rows of table %d have no statistics: %s", shard, error)
                return None
        return figures

    async def _note(self, found: Mapping[int, TableRecord]) -> None:
        if not found:
            return
        living = {int(shard) for shard, _ in self._store.shards()}
        records = {**self.records, **found}
        self.records = {shard: record for shard, record in records.items() if shard in living}
        await asyncio.get_running_loop().run_in_executor(self._pool, self._write_records)

    async def note_extended(self, found: Mapping[int, ExtendedRecord], living: Collection[int]) -> None:
        """Note what ANALYZE has found by statistics objects; of those that are not ``living`` nothing is kept."""
        records = {**self.extended, **found}
        self.extended = {oid: record for oid, record in records.items() if oid in living}
        await asyncio.get_running_loop().run_in_executor(self._pool, self._write_extended)

    def _write_extended(self) -> None:
        try:
            self._files.write_extended(self.extended)
        except OSError as error:
            log.warning("extended statistics are not kept over a restart: %s", error)

    def _write_records(self) -> None:
        try:
            self._files.write_records(self.records)
        except OSError as error:
            log.warning("statistics are not kept over a restart: %s", error)

    # -- what is known -----------------------------------------------------------------------------

    def known(self, shard: int, parts: Mapping[str, int]) -> Known | None:
        """Return the figures of some parts of a table, None where too few are counted. Blocks; called by any thread.

        ``parts``: the rows of each by its name.
        """
        table = self._table(shard)
        rows = sum(parts.values())
        found = {name: table[name] for name in parts if name in table}
        if not found or sum(parts[name] for name in found) < MOST * rows:
            return None
        return Known(tuple(found.values()), len(found) == len(parts))

    def of_rows(self, table: Any, spec_columns: Mapping[int, PhysicalType]) -> PartFigures | None:
        """Return the figures of hot rows, None where they cannot be counted. Blocks; called by any thread."""
        try:
            return self._counter().rows(table, spec_columns)
        except CannotCount as error:
            log.warning("new rows have no statistics: %s", error)
            return None

    def _table(self, shard: int) -> dict[str, PartFigures]:
        with self._lock:
            found = self._tables.get(shard)
            if found is not None:
                self._tables.move_to_end(shard)
                return found
        read = self._files.parts(shard)
        with self._lock:
            found = self._tables.setdefault(shard, read)
            self._make_room()
            return found

    def _keep(self, shard: int, found: dict[str, PartFigures]) -> None:
        """Have a table's figures at hand, and in its file."""
        with self._lock:
            self._tables[shard] = found
            self._tables.move_to_end(shard)
            self._make_room()
        try:
            self._files.write_parts(shard, found)
        except OSError as error:
            log.warning("statistics are not kept over a restart: %s", error)

    def _make_room(self) -> None:
        sizes = {shard: _size(table) for shard, table in self._tables.items()}
        total = sum(sizes.values())
        while total > KEPT_BYTES and len(self._tables) > 1:
            shard, _ = self._tables.popitem(last=False)
            total -= sizes[shard]


def _rows(part: SnapshotPart) -> int:
    """Return how many rows of a part are seen."""
    return part.ref.rows - (0 if part.hidden is None else len(part.hidden))


def _speaks(counted: int | None, part: SnapshotPart) -> bool:
    """Tell whether what was counted when a part had so many rows (None: never) still holds."""
    return counted is not None and counted - _rows(part) <= STALE * part.ref.rows


def _columns(spec: ShardSpec) -> dict[int, PhysicalType]:
    return {column.attnum: column.type for column in spec.columns if not column.dropped}


def _size(table: Mapping[str, PartFigures]) -> int:
    return sum(len(part.columns) for part in table.values()) * _COLUMN_BYTES
