"""Building an index while its table goes on being changed (N10, L33).

    enter      one tick: the index stands in the generation, so commits keep it up from here on     (BuildingIndex)
    fill       hot versions, a slice per turn; a sidecar for each part, in a thread, or by workers elsewhere (``Elsewhere``)
    compare    a unique index: every key that two live rows might share, latest state, no locks
    catch up   keys that commits have entered meanwhile are compared, until few are left
    adopt      under the table's X, as part of ``alter_shard``: what is left is compared, parts loaded meanwhile get
               their sidecar, and the index is an index like others; the commit of the schema makes it known

Nobody reads the index before that commit, for no schema names it. A build that is given up removes its sidecars;
one cut off by a crash leaves some that nobody opens, and the next start removes them.

Why the keys noted since ``enter`` are enough at the end: two rows that share a key then did so already when
that key was compared, which raised DuplicateKey, or one of them has come by its key since, which has noted
it.

Upkeep leaves the generation alone meanwhile (``pinned``), and a hold keeps its files.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from txn.base.errors import DuplicateKey, SchemaChanged
from txn.base.slices import LOOK, Slice
from txn.base.types import IndexId, Key, KeyRange, PartRef, Row, RowId, ShardId, ShardIndex, ShardSpec
from txn.mvcc.generation import Cold, Generation
from txn.mvcc.index import BuildingIndex
from txn.mvcc.keys import IndexKey, KeyMaker, but
from txn.mvcc.many_keys import LongValues, held
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY, Version
from txn.persist.parts.sidecar_job import SidecarJob
from txn.transaction.duplicates import Run, first_duplicate

if TYPE_CHECKING:
    from txn.transaction.coordinator import Coordinator
    from txn.transaction.view import Steps

T = TypeVar("T")

CHUNK_ROWS: Final = 500
"""Rows entered or compared between two turns of the event loop: about a millisecond."""

FEW_KEYS: Final = 200
"""So many keys may be left for ``adopt`` to compare under the table lock."""

CATCH_UP_ROUNDS: Final = 20
"""Rounds of catching up before the rest is left to ``adopt`` anyway: the changes come faster than they are compared."""

FLUSH_POLL_S: Final = 0.005


class Progress(NamedTuple):
    """How far a build is. ``phase`` in PostgreSQL's words (manual 28.4.4); rows are entered or compared ones."""

    phase: str
    rows: int
    of_rows: int


class Elsewhere(Protocol):
    """Has sidecars written by other processes."""

    def wants(self, rows: int) -> bool:
        """Tell whether parts with so many rows in all are to be indexed there."""
        ...

    async def write(
        self, job: SidecarJob, refs: Sequence[PartRef], done: Callable[[int], None]
    ) -> Sequence[PartRef]:
        """Write sidecars with ``SidecarJob.write``; return the parts that have got one, the server does the others.

        ``done``: told now and then how many rows have been read. What it raises ends the build.
        """
        ...


class IndexBuild:
    """One index on its way. ``run`` it, have a transaction ``alter_shard`` to a schema with the index, ``close`` it."""

    def __init__(
        self, core: Coordinator, spec: ShardSpec, index: IndexId, elsewhere: Elsewhere | None = None
    ) -> None:
        """``spec``: the shard's schema with the new index in it. ``elsewhere``: who may write sidecars.
        Nothing happens yet.
        """
        self._core = core
        self.shard: ShardId = spec.shard
        self.spec = spec
        self.definition = next(i for i in spec.indexes if i.index == index)
        self.generation: Generation | None = None
        self.index = BuildingIndex(KeyMaker(spec.columns, self.definition), self.definition)
        self.progress = Progress("initializing", 0, 0)
        self._holds = core.domain_of(spec.shard).holds
        self._hold = self._holds.acquire()
        self._elsewhere = elsewhere
        self._sidecars: set[str] = set()
        self._tried: set[str] = set()  # parts that may have a sidecar, finished or not
        self._stopped = False
        core.builds[index] = self

    async def run(self) -> None:
        """Build as far as is possible without locks.

        Raises DuplicateKey; SchemaChanged when the shard is gone; OutOfSpace and what else storage raises. ``close``
        comes afterwards in any case.
        """
        await self._enter()
        generation = self.generation
        if generation is None:
            raise AssertionError("an index is built without a generation")
        await self._fill(generation)
        await self._build_sidecars(generation)
        if not self.definition.unique:
            self.index.noted.clear()
            return
        await self._compare_parts(generation)
        await self._compare(generation, list(self.index.entries), "index validation: scanning index")
        for _ in range(CATCH_UP_ROUNDS):
            if len(self.index.noted) <= FEW_KEYS:
                break
            noted, self.index.noted = self.index.noted, set()
            await self._compare(generation, list(noted), "index validation: scanning table")
        self.progress = self.progress._replace(phase="waiting for writers before validation")

    async def _enter(self) -> None:
        while True:
            history = self._core.shards.get(self.shard)
            generation = None if history is None else history.latest.generation
            if generation is None:
                raise SchemaChanged(self.shard)
            if not generation.flushing:
                break
            await asyncio.sleep(FLUSH_POLL_S)  # upkeep writes parts without the new index
        generation.pinned += 1
        self.generation = generation
        generation.indexes[self.definition.index] = self.index

    async def _fill(self, generation: Generation) -> None:
        row_ids = list(generation.rows)
        total = len(row_ids) + sum(part.ref.rows for part in generation.parts)
        fill, make = self.index.fill, self.index.make
        pause = Slice(CHUNK_ROWS, look=1 if make.long else LOOK)
        for count, row_id in enumerate(row_ids, 1):
            if make.long is not None:
                await self._fill_ahead(generation, RowId(row_id), make.long)
            else:
                for row in _rows(generation, row_id):
                    fill(make.of_row(row), row_id)
            if pause.over():
                self.progress = Progress("building index: scanning table", count, total)
                await asyncio.sleep(0)
        self.progress = Progress("building index: scanning table", len(row_ids), total)

    async def _fill_ahead(self, generation: Generation, row_id: RowId, long: LongValues) -> None:
        """Enter the versions of a row, each of which may have very many keys; what goes meanwhile leaves none
        behind.
        """
        index, of_row = self.index, self.index.make.of_row
        rows = list(_rows(generation, row_id))
        with held([long], *rows) as making:
            for _ in making:
                await asyncio.sleep(0)
            for row in rows:
                if long.has(row):
                    for _ in index.enter_ahead(of_row(row), row_id):
                        await asyncio.sleep(0)
                    index.settle()
                else:
                    index.fill(of_row(row), row_id)
            if any(map(long.has, rows)):
                now = [of_row(row) for row in _rows(generation, row_id)]
                for key in map(of_row, rows):
                    if key not in now:
                        index.discard(but(key, now), row_id)

    async def _build_sidecars(self, generation: Generation) -> None:
        parts = self._without_sidecar(generation)
        if self._elsewhere is not None and self._elsewhere.wants(sum(part.ref.rows for part in parts)):
            await self._build_elsewhere(self._elsewhere, parts)
        while missing := self._without_sidecar(generation):
            for part in missing:
                self._tried.add(part.ref.name)
                await self._core.log.build_sidecar(part.ref, self.spec, self.definition.index)
                self._sidecars.add(part.ref.name)
                done = self.progress.rows + part.ref.rows
                self.progress = self.progress._replace(rows=done, of_rows=max(done, self.progress.of_rows))

    async def _build_elsewhere(self, elsewhere: Elsewhere, parts: Sequence[PartState]) -> None:
        jobs = self._core.log.jobs
        refs = [part.ref for part in parts]
        job = await jobs.start_sidecars(self.spec, self.definition.index, refs)
        if job is None:
            return
        self._tried.update(ref.name for ref in refs)
        before = self.progress.rows

        def done(rows: int) -> None:
            self.progress = self.progress._replace(rows=max(before + rows, self.progress.rows))

        try:
            written = await elsewhere.write(job, refs, done)
        finally:
            await jobs.end_sidecars(job)
        for part in parts:
            part.file.forget_sidecar(self.definition.index)
        self._sidecars.update(ref.name for ref in written)
        self.progress = self.progress._replace(rows=before + sum(ref.rows for ref in written))

    def _without_sidecar(self, generation: Generation) -> list[PartState]:
        return [p for p in generation.parts if p.ref.name not in self._sidecars]

    async def _compare(self, generation: Generation, keys: list[IndexKey], phase: str) -> None:
        entries = self.index.entries
        await self._core.readable()  # half a commit may have a key twice
        for count, ikey in enumerate(keys, 1):
            if generation.parts or not isinstance(entries.get(ikey), int):
                self._compare_key(generation, ikey)
            if count % CHUNK_ROWS == 0:
                self.progress = Progress(phase, count, len(keys))
                await asyncio.sleep(0)
                await self._core.readable()

    def _compare_key(self, generation: Generation, ikey: IndexKey) -> None:
        """Raise DuplicateKey if two committed rows have a key now."""
        make = self.index.make
        if make.exempt(ikey):
            return
        raw = (self._raw_key(generation, row_id, ikey) for row_id in self.index.ids(ikey))
        key = next((k for k in raw if k is not None), None)
        if key is None:
            return  # no row that is in memory has it any more
        self._compare_raw(generation, key)

    def _compare_raw(self, generation: Generation, key: Key) -> None:
        found: dict[RowId, Version] = {}
        cold: dict[RowId, Cold] = {}
        generation.find(self.definition.index, key, INFINITY, found, cold)
        if len(found) + len(cold) > 1:
            raise DuplicateKey(self.shard, self.definition.index, key)

    def _raw_key(self, generation: Generation, row_id: int, ikey: IndexKey) -> Key | None:
        """Return the key's values as the row's latest version has them; None if it has another key."""
        head = generation.rows.get(row_id)
        if head is None or head.values is None:
            return None
        row = head.values
        if len(row) < generation.padding.width:
            row = generation.padding.pad(row)
        return self.index.make.raw(row) if self.index.make.of_row(row) == ikey else None

    async def _compare_parts(self, generation: Generation) -> None:
        """Raise DuplicateKey if two rows of parts share a key. Their live rows only get fewer meanwhile."""
        parts = generation.parts
        if not await self._may_repeat(parts):
            return
        merged = merge_parts(parts, self.definition)
        while (pair := await self._in_thread(partial(merged.next, lambda: self._stopped))) is not None:
            part, position = pair
            row = part.file.row(position, self.spec)
            if not isinstance(row, tuple):
                row = await row
            key = self.index.make.raw(row)
            if not self.definition.exempt(key):
                await self._core.readable()
                self._compare_raw(generation, key)

    async def _may_repeat(self, parts: Sequence[PartState]) -> bool:
        """Tell whether two rows of parts shared a key a moment ago: over whole columns, which leaves little
        to look into.
        """
        hiding = [part.hiding(INFINITY) for part in parts]

        def compare() -> Key | None:
            index = self.definition.index
            runs = [Run(p.file.sorted_keys(index), dead()) for p, dead in zip(parts, hiding, strict=True)]
            return first_duplicate(runs, self.definition, stopped=lambda: self._stopped) if runs else None

        return await self._in_thread(compare) is not None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do something in a thread; a cancel makes it stop before it is raised, for it reads files."""
        running = asyncio.ensure_future(self._core.offload(work))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._stopped = True
            await asyncio.wait([running])
            raise

    # -- within the transaction that alters the shard ----------------------------------------------

    def fits(self, generation: Generation, definition: ShardIndex) -> bool:
        """Tell whether this is the index ``definition`` of a generation (primary or not)."""
        return (
            self.generation is generation
            and replace(self.definition, primary=definition.primary) == definition
        )

    def adopt(self, generation: Generation, definition: ShardIndex) -> Steps[None]:
        """Finish under the table's X: compare what is left, and become an index like others.

        The transaction has staged no rows of its own in the table. Raises DuplicateKey.
        """
        for part in self._without_sidecar(generation):
            yield self._core.log.build_sidecar(part.ref, self.spec, self.definition.index)
            self._sidecars.add(part.ref.name)
        if self.definition.unique:
            for count, ikey in enumerate(list(self.index.noted), 1):
                self._compare_key(generation, ikey)
                if count % CHUNK_ROWS == 0:
                    yield asyncio.sleep(0)
        generation.indexes[self.definition.index] = self.index.finished(definition)
        del self._core.builds[self.definition.index]  # from here on the transaction answers for it

    def close(self) -> None:
        """Give the build up unless it was adopted. Idempotent."""
        self._stopped = True
        generation = self.generation
        if generation is not None:
            generation.pinned -= 1
            if generation.indexes.get(self.definition.index) is self.index:
                del generation.indexes[self.definition.index]
                self._core.log.jobs.drop_sidecars(self.definition.index, self._tried)
            self.generation = None
        self._core.builds.pop(self.definition.index, None)
        self._holds.release(self._hold)


def _rows(generation: Generation, row_id: int) -> Iterator[Row]:
    """Yield the rows that the hot versions of a row are, the newest first."""
    return (generation.padded(v.values) for v in generation.chain(row_id) if v.values is not None)


Entry: TypeAlias = tuple[bytes, RowId, PartState, int]


def _entries(part: PartState, definition: ShardIndex, skip: frozenset[RowId]) -> Iterator[Entry]:
    end_of = part.end_of
    for key, position in part.file.range(definition.index, KeyRange()):
        if not end_of(position):
            row_id = part.file.row_id(position)
            if row_id not in skip:
                yield key, row_id, part, position


class Duplicates:
    """The parts' sidecars merged, to find rows of parts that share a key."""

    def __init__(self, merged: Iterator[Entry]) -> None:
        self._merged = merged
        self._before: Entry | None = None

    def next(self, stopped: Callable[[], bool] | None = None) -> Cold | None:
        """Return the place of the next row whose key another one has, or None. Runs in a thread.

        ``stopped()`` is asked now and then and ends the search.
        """
        before = self._before
        for count, entry in enumerate(self._merged):
            if before is not None and entry[0] == before[0] and entry[1] != before[1]:
                self._before = entry
                return entry[2], entry[3]
            before = entry
            if count % CHUNK_ROWS == 0 and stopped is not None and stopped():
                break
        self._before = None
        return None


def merge_parts(
    parts: tuple[PartState, ...], definition: ShardIndex, skip: frozenset[RowId] = frozenset()
) -> Duplicates:
    """Merge the sidecars of an index. ``skip``: rows that do not count."""
    return Duplicates(heapq.merge(*(_entries(p, definition, skip) for p in parts), key=lambda e: e[0]))
