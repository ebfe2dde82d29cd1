"""FILES sources: the new files of a directory or of a folder of an object store, each once.

    a.csv   done, 4000 rows             offsets, a row for each file: the manifest
    b.csv   3000 rows so far            read again from its beginning after a crash, and 3000 rows passed over
    c.csv   just seen                   taken once size and time have stayed the same for settle_ms
    .d.csv  _SUCCESS                    not looked at: hidden files and markers

A file is known by its name; once it is being read it must not change (then the source stops and names it).
Who writes files here had best write them under a hidden name, and rename them. Files are taken in the order
of their times, then names. One that takes several batches is read to its end before the first. After the
commit of its last row a file is kept, moved or deleted; moved and deleted ones leave the manifest.

Where spark_min_bytes wait that nobody has begun to read, they are one batch, which Spark's tasks read
(``files_spark``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar

import msgspec

from engine.base.server_files import Roots, ServerFile
from engine.base.stored_objects import beside
from engine.changes.bulk.portable import obstacle
from engine.executors.spark.executor import SparkExecutor
from engine.feeds.sources import offsets as stored
from engine.feeds.sources.changes import TableChanges, primary_key
from engine.feeds.sources.files_directory import Found, changed, changing
from engine.feeds.sources.files_folder import Folder, open_folder
from engine.feeds.sources.files_read import Rows, load_spec, read_file
from engine.feeds.sources.files_spark import BadFile, SparkLoad, may_read
from engine.feeds.sources.options import Options
from engine.feeds.sources.reader import Batch, Place, Progress, Reread, Temporary
from engine.session.source_status import Lag
from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from planner.catalog import RelationDef, SourceDef
from txn.api import PartJob, WrittenPart
from txn.base.types import Row
from txn.persist.blobs.object_url import is_object_url

BATCH_FILES: Final = 1000  # in one transaction at most
BATCH_BYTES: Final = 16 << 30  # the same for Spark, but for a single file
TOTALS: Final = ""
"""The partition of a source's sums; no file has this name."""

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)


class Offset(msgspec.Struct, frozen=True):
    """How far a file has been read. ``mtime_ns``: since 1970."""

    size: int
    mtime_ns: int
    rows: int
    done: bool


class Totals(msgspec.Struct, frozen=True):
    """Sums over all files, those that are gone included. ``last``: the file read last, ``at`` rows far."""

    files: int
    rows: int
    last: str
    at: int


@dataclass(slots=True)
class _Open:
    """The file that is being read, ``rows`` far; ``rest``: rows that are read and in no batch yet."""

    found: Found
    rows: int
    committed: int
    file: ServerFile
    pieces: Rows
    rest: list[Row]
    proved: bool = False


class FilesReader:
    """See ``engine.feeds.sources.reader.Reader``."""

    def __init__(
        self, source: SourceDef, relation: RelationDef, roots: Roots, spark: SparkExecutor | None
    ) -> None:
        """``roots``: what the setting server_files lists. ``spark``: for large batches."""
        options = self._options = Options("files", source.options)
        self.progress = Progress(lag=Lag(unit="files"))
        self._relation = relation
        self._roots = roots
        self._after = options.need("after")
        self._settle_s = options.int("settle_ms") / 1000
        self._most = options.int("max_batch_rows")
        index = primary_key(relation)
        upsert = options.need("envelope") == "upsert" and index is not None
        self._key = tuple(attnum - 1 for attnum in index.attnums) if upsert and index is not None else ()
        self._spec = load_spec(relation, options)
        plain = not self._key and not options.int("max_rows_per_second") and obstacle(self._spec) is None
        self._spark = spark if plain else None
        self._spark_bytes = options.int("spark_min_bytes")
        self._files: dict[str, Offset] = {}
        self._totals = Totals(0, 0, "", 0)
        self._since: dict[str, tuple[Found, float]] = {}  # since when a file has been as it is
        self._ready: deque[Found] = deque()  # complete files, the next ones to be read
        self._unsettled = 0
        self._error: DataError | None = None  # of the file behind the last batch
        self._bad: tuple[str, Exception] | None = None  # a file that Spark could not read, behind others
        self._open: _Open | None = None
        self._gone: set[str] = set()  # files that have left the directory, and not yet the manifest
        self._stored = is_object_url(options.need("path"))
        self._opened: Folder | None = None

    async def open(self, offsets: Mapping[str, bytes]) -> Mapping[str, Place]:
        """See Reader. Raises SqlError 42501, 58P01, 42809; Temporary."""
        self._opened = await self._beside(open_folder, self._options.need("path"), self._roots)
        for name, body in offsets.items():
            if name == TOTALS:
                self._totals = stored.decode(body, Totals)
            else:
                self._files[name] = stored.decode(body, Offset)
        if self._after != "keep":
            await self._put_away([name for name, offset in self._files.items() if offset.done])
        if TOTALS not in offsets:
            return {}
        return {self._partition: Place(position=self._shown(self._totals), rows=self._totals.rows)}

    async def poll(self) -> Batch | None:
        """See Reader: rows of as many files as make a batch. What is before a malformed file comes before its error."""
        if self._error is not None:
            raise self._error
        self.progress.activity = "running"
        if self._open is None:
            large = await self._large()
            if large and await may_read(self._spark, self._not_on_spark):
                return self._batch_on_spark(large)
            if not await self._next_file():
                forgotten = self._forgotten()
                return Batch(changes={}, offsets=forgotten, rows={}, positions={}) if forgotten else None
        changes = TableChanges(oid=self._relation.oid)
        after: dict[str, bytes | None] = {}
        names: list[str] = []
        count, files = 0, self._totals.files
        while count < self._most and len(names) < BATCH_FILES:
            try:
                if self._open is None and not await self._next_file():
                    break
                reading = self._open
                if reading is None:
                    raise AssertionError("the folder is polled, and no file is open")
                rows, done = await self._take(reading, self._most - count)
                if not done and not reading.committed and not reading.proved:
                    await self._prove(reading)
            except DataError as error:
                if not names:
                    raise
                self._error = error
                break
            count += len(rows)
            if self._key:
                for row in rows:
                    changes.put(tuple([row[position] for position in self._key]), row)
            else:
                changes.append(rows)
            found = reading.found
            names.append(found.name)
            offset = Offset(found.size, found.mtime_ns, reading.rows, done)
            after[found.name] = stored.encode(offset)
            self._files[found.name] = offset
            if not done:
                break
            files += 1
            self._open = None
            await reading.pieces.aclose()
        self._totals = Totals(files, self._totals.rows + count, names[-1], self._files[names[-1]].rows)
        after.update(self._forgotten())
        after[TOTALS] = stored.encode(self._totals)
        return Batch(
            changes={self._relation.oid: changes},
            offsets=after,
            rows={self._partition: count},
            positions={self._partition: self._shown(self._totals)},
            context=self._context(names),
        )

    def _context(self, names: Sequence[str]) -> str:
        return f"files {', '.join(names[:3])}{' ...' if len(names) > 3 else ''} of {self._folder.name}"

    async def acknowledge(self, batch: Batch) -> None:
        """See Reader: what has been read to its end is put away."""
        for name, body in batch.offsets.items():
            if body is None:
                self._gone.discard(name)
        if self._open is not None:
            self._open.committed = self._open.rows
        done = [name for name in batch.offsets if name in self._files and self._files[name].done]
        if self._after != "keep":
            await self._put_away(done)

    async def close(self) -> None:
        """See Reader."""
        reading, self._open = self._open, None
        if reading is not None:
            await reading.pieces.aclose()

    @property
    def _partition(self) -> str:
        return self._folder.name

    @property
    def _folder(self) -> Folder:
        if self._opened is None:
            raise AssertionError("the reader is not open")
        return self._opened

    async def _beside(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Do what blocks in a thread."""
        return await beside(self._stored, work, *args, **more)

    @staticmethod
    def _shown(totals: Totals) -> str:
        return f"{totals.last}:{totals.at}"

    # -- which file comes next ---------------------------------------------------------------------

    async def _look(self) -> None:
        """Find what is ready to be read, where nothing is left. Raises SqlError 58P01, and 55000 for a file
        that has changed.
        """
        if not self._ready:
            found = await self._beside(self._folder.listed, self._options.need("pattern"))
            self._look_at(found, asyncio.get_running_loop().time())
        self.progress.lag.amount = len(self._ready) + self._unsettled

    async def _next_file(self) -> bool:
        """Open the next file that is complete, if there is one. Raises what ``_look`` does, and 42501."""
        await self._look()
        if not self._ready:
            return False
        if self._bad is not None and self._bad[0] == self._ready[0].name:
            raise self._bad[1]
        ready = self._ready.popleft()
        known = self._files.get(ready.name)
        skip = 0 if known is None else known.rows
        file = await self._beside(self._folder.file, ready)
        self._open = _Open(ready, skip, skip, file, read_file(file, self._spec, skip), [])
        return True

    def _look_at(self, files: Sequence[Found], now: float) -> None:
        """Find the files that are to be read and complete. Raises SqlError 55000 for one that has changed."""
        since: dict[str, tuple[Found, float]] = {}
        self._unsettled = 0
        for found in files:
            known = self._files.get(found.name)
            same = known is not None and (known.size, known.mtime_ns) == (found.size, found.mtime_ns)
            if known is not None and known.done and (same or found.name in self._gone):
                continue  # done; or another of that name, which is new once the first is forgotten
            if known is not None and not same:
                raise changed(self._folder.shown(found.name))
            before, at = self._since.get(found.name, (found, now))
            since[found.name] = (found, at if before == found else now)
            if known is not None or now - since[found.name][1] >= self._settle_s:
                self._ready.append(found)
            else:
                self._unsettled += 1
        self._since = since

    async def _take(self, reading: _Open, most: int) -> tuple[list[Row], bool]:
        """Return at most ``most`` further rows of a file, and whether these were its last."""
        rows, done = reading.rest, False
        while len(rows) <= most and not done:
            piece = await anext(reading.pieces, None)
            if piece is None:
                done = True
            else:
                rows.extend(piece)
        if done:
            await self._check_same(reading)
            done = len(rows) <= most
        taken, reading.rest = rows[:most], rows[most:]
        reading.rows += len(taken)
        return taken, done

    async def _prove(self, reading: _Open) -> None:
        """Read a file that takes several batches to its end, before the first: so it is not half here if it
        is malformed.
        """
        pieces = read_file(reading.file, self._spec, 0)
        async with aclosing(pieces):
            async for _rows in pieces:
                await asyncio.sleep(0)
        await self._check_same(reading)
        reading.proved = True

    async def _check_same(self, reading: _Open) -> None:
        """Look whether the file is still as it was when it was found. Raises Temporary, or 55000 if rows are
        committed.
        """
        if await self._beside(self._folder.is_other, reading.found):
            shown = self._folder.shown(reading.found.name)
            raise changed(shown) if reading.committed else changing(shown)

    # -- many bytes: Spark reads them --------------------------------------------------------------

    async def _large(self) -> list[tuple[Found, ServerFile]]:
        """Return the next files if they are so many bytes that Spark is to read them, else none."""
        if self._spark is None:
            return []
        await self._look()
        found: list[Found] = []
        size = 0
        for ready in self._ready:
            begun = ready.name in self._files
            bad = self._bad is not None and self._bad[0] == ready.name
            if begun or bad or len(found) == BATCH_FILES or (found and size + ready.size > BATCH_BYTES):
                break
            found.append(ready)
            size += ready.size
        if not found or size < self._spark_bytes:
            return []
        return await self._beside(self._to_open, found)

    def _to_open(self, files: Sequence[Found]) -> list[tuple[Found, ServerFile]]:
        """Return files with what is to be opened. Raises SqlError 42501 for the first, stops before another
        one that is outside.
        """
        allowed: list[tuple[Found, ServerFile]] = []
        for found in files:
            try:
                allowed.append((found, self._folder.file(found)))
            except SqlError:
                if not allowed:
                    raise
                break
        return allowed

    def _not_on_spark(self, why: str) -> None:
        _log.warning("files of %s are read by the server, not by Spark: %s", self._folder.name, why)

    def _batch_on_spark(self, large: Sequence[tuple[Found, ServerFile]]) -> Batch:
        """Return a batch whose rows Spark writes while it is staged; what is known only then is entered in it then."""
        if self._spark is None:
            raise AssertionError("Spark is to read the files, and there is none")
        files = [found for found, _file in large]
        for _ in files:
            self._ready.popleft()
        self.progress.activity = "loading"
        load = SparkLoad(self._spark, self._spec, [file for _found, file in large])
        before = self._totals
        offsets = self._forgotten()
        rows: dict[str, int] = {}
        positions: dict[str, str] = {}

        async def write(job: PartJob) -> list[WrittenPart]:
            try:
                parts = await load.write(job)
            except BadFile as bad:
                if bad.at == 0 or isinstance(bad.error, Temporary):
                    raise bad.error from None
                self._bad = (files[bad.at].name, bad.error)
                self._ready.extendleft(reversed(files))
                raise Reread from None
            for found in files:
                if await self._beside(self._folder.is_other, found):
                    raise changing(self._folder.shown(found.name))
            counts = [load.rows.get(at, 0) for at in range(len(files))]
            for found, count in zip(files, counts, strict=True):
                self._files[found.name] = Offset(found.size, found.mtime_ns, count, True)
                offsets[found.name] = stored.encode(self._files[found.name])
            total = sum(counts)
            self._totals = Totals(before.files + len(files), before.rows + total, files[-1].name, counts[-1])
            offsets[TOTALS] = stored.encode(self._totals)
            rows[self._partition], positions[self._partition] = total, self._shown(self._totals)
            return parts

        changes = TableChanges(oid=self._relation.oid)
        changes.parts = write
        return Batch(
            changes={self._relation.oid: changes},
            offsets=offsets,
            rows=rows,
            positions=positions,
            context=self._context([found.name for found in files]),
        )

    # -- what becomes of files ---------------------------------------------------------------------

    async def _put_away(self, names: Sequence[str]) -> None:
        """Move or delete files that are done, if they are still there, and remember to forget them."""
        move_to = self._options.need("move_to") if self._after == "move" else None
        for name in names:
            offset = self._files[name]
            found = Found(offset.mtime_ns, name, offset.size)
            await self._beside(self._folder.put_away, found, move_to)
            self._gone.add(name)

    def _forgotten(self) -> dict[str, bytes | None]:
        """Return what leaves the manifest with the next batch."""
        for name in self._gone:
            self._files.pop(name, None)
        return dict.fromkeys(self._gone)
