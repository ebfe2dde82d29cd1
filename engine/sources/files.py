"""FILES sources: the new files of a directory, each once.

    a.csv   done, 4000 rows             offsets, a row for each file: the manifest
    b.csv   3000 rows so far            read again from its beginning after a crash, and 3000 rows passed over
    c.csv   just seen                   taken once size and time have stayed the same for settle_ms
    .d.csv  _SUCCESS                    not looked at: hidden files and markers

A file is known by its name; once it is being read it must not change (then the source stops and names it). Who writes files here
had best write them under a hidden name, and rename them. Files are taken in the order of their times, then names. One that takes
several batches is read to its end before the first. After the commit of its last row a file is kept, moved or deleted;
moved and deleted ones leave the manifest.
"""

from __future__ import annotations

import asyncio
import fnmatch
import os
import stat
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from engine.bulk.server_files import local_path, permitted
from engine.sources import offsets as stored
from engine.sources.changes import TableChanges, primary_key
from engine.sources.files_read import Rows, read_file
from engine.sources.options import Options
from engine.sources.reader import Batch, Lag, Place, Progress, Temporary
from pgwire.codecs.errors import DataError
from planner.catalog import RelationDef, SourceDef
from planner.errors import SqlError
from txn.types import Row

BATCH_FILES: Final = 1000  # in one transaction at most
TOTALS: Final = ""
"""The partition of a source's sums; no file has this name."""


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


@dataclass(frozen=True, slots=True, order=True)
class _Found:
    """A file in the directory."""

    mtime_ns: int
    name: str
    size: int


@dataclass(slots=True)
class _Open:
    """The file that is being read, ``rows`` far; ``rest``: rows that are read and in no batch yet."""

    found: _Found
    rows: int
    committed: int
    path: Path
    pieces: Rows
    rest: list[Row]
    proved: bool = False


class FilesReader:
    """See ``engine.sources.reader.Reader``."""

    def __init__(self, source: SourceDef, relation: RelationDef, roots: Sequence[str]) -> None:
        """``roots``: the directories of the setting server_files."""
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
        self._files: dict[str, Offset] = {}
        self._totals = Totals(0, 0, "", 0)
        self._since: dict[str, tuple[_Found, float]] = {}  # since when a file has been as it is
        self._ready: deque[_Found] = deque()  # complete files, the next ones to be read
        self._unsettled = 0
        self._error: DataError | None = None  # of the file behind the last batch
        self._open: _Open | None = None
        self._gone: set[str] = set()  # files that have left the directory, and not yet the manifest
        self._directory = Path()

    async def open(self, offsets: Mapping[str, bytes]) -> Mapping[str, Place]:
        """See Reader. Raises SqlError 42501, 58P01."""
        self._directory = await asyncio.to_thread(directory, self._options.need("path"), self._roots)
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
        if self._open is None and not await self._next_file():
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
                assert reading is not None
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
            context=f"files {', '.join(names[:3])}{' ...' if len(names) > 3 else ''} of {self._directory}",
        )

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
        return str(self._directory)

    @staticmethod
    def _shown(totals: Totals) -> str:
        return f"{totals.last}:{totals.at}"

    # -- which file comes next ---------------------------------------------------------------------

    async def _next_file(self) -> bool:
        """Open the next file that is complete, if there is one. Raises SqlError 55000 for one that has changed."""
        if not self._ready:
            listed = await asyncio.to_thread(_listed, self._directory, self._options.need("pattern"))
            self._look_at(listed, asyncio.get_running_loop().time())
        self.progress.lag.amount = len(self._ready) + self._unsettled
        if not self._ready:
            return False
        ready = self._ready.popleft()
        known = self._files.get(ready.name)
        skip = 0 if known is None else known.rows
        path = await asyncio.to_thread(self._allowed, ready.name)
        pieces = read_file(path, self._relation, self._options, skip)
        self._open = _Open(ready, skip, skip, path, pieces, [])
        return True

    def _look_at(self, listed: Sequence[_Found], now: float) -> None:
        """Find the files that are to be read and complete. Raises SqlError 55000 for one that has changed."""
        since: dict[str, tuple[_Found, float]] = {}
        self._unsettled = 0
        for found in listed:
            known = self._files.get(found.name)
            same = known is not None and (known.size, known.mtime_ns) == (found.size, found.mtime_ns)
            if known is not None and known.done and (same or found.name in self._gone):
                continue  # done; or another of that name, which is new once the first is forgotten
            if known is not None and not same:
                raise _changed(self._directory / found.name)
            before, at = self._since.get(found.name, (found, now))
            since[found.name] = (found, at if before == found else now)
            if known is not None or now - since[found.name][1] >= self._settle_s:
                self._ready.append(found)
            else:
                self._unsettled += 1
        self._since = since

    def _allowed(self, name: str) -> Path:
        """Return where a file is once links are followed. Raises SqlError 42501 if that is outside."""
        return Path(_below(str(self._directory / name), self._roots))

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
            await asyncio.to_thread(self._check_same, reading)
            done = len(rows) <= most
        taken, reading.rest = rows[:most], rows[most:]
        reading.rows += len(taken)
        return taken, done

    async def _prove(self, reading: _Open) -> None:
        """Read a file that takes several batches to its end, before the first: so it is not half here if it is malformed."""
        pieces = read_file(reading.path, self._relation, self._options, 0)
        async with aclosing(pieces):
            async for _rows in pieces:
                await asyncio.sleep(0)
        await asyncio.to_thread(self._check_same, reading)
        reading.proved = True

    def _check_same(self, reading: _Open) -> None:
        """Look whether the file is still as it was when it was found. Raises Temporary, or 55000 if rows are committed."""
        path = self._directory / reading.found.name
        try:
            status = path.stat()
        except FileNotFoundError:
            return  # it was read to its end through what was open
        if (status.st_size, status.st_mtime_ns) != (reading.found.size, reading.found.mtime_ns):
            if reading.committed:
                raise _changed(path)
            raise Temporary(f'file "{path}" changed while it was read')

    # -- what becomes of files ---------------------------------------------------------------------

    async def _put_away(self, names: Sequence[str]) -> None:
        """Move or delete files that are done, if they are still there, and remember to forget them."""
        for name in names:
            await asyncio.to_thread(self._put_one_away, name)
            self._gone.add(name)

    def _put_one_away(self, name: str) -> None:
        path = self._directory / name
        offset = self._files[name]
        try:
            status = path.stat()
            if (status.st_size, status.st_mtime_ns) != (offset.size, offset.mtime_ns):
                return  # another one of that name
            if self._after == "delete":
                path.unlink()
                return
            target = directory(self._options.need("move_to"), self._roots) / name
            if target.exists():
                target = target.with_name(f"{name}.{offset.mtime_ns}")
            path.rename(target)
        except FileNotFoundError:
            return  # it was put away before a crash

    def _forgotten(self) -> dict[str, bytes | None]:
        """Return what leaves the manifest with the next batch."""
        for name in self._gone:
            self._files.pop(name, None)
        return dict.fromkeys(self._gone)


def directory(path: str, roots: Sequence[str]) -> Path:
    """Return a directory that a source may use, resolved. Blocks. Raises SqlError 42602, 42501, 58P01, 42809."""
    resolved = Path(_below(local_path(path, "from"), roots))
    if not resolved.exists():
        raise SqlError("58P01", f'directory "{path}" does not exist')
    if not resolved.is_dir():
        raise SqlError("42809", f'"{path}" is not a directory')
    return resolved


def _below(path: str, roots: Sequence[str]) -> str:
    try:
        return permitted(path, roots, "from")
    except SqlError as error:
        raise SqlError(
            error.sqlstate,
            f'permission denied for a source to use "{path}"',
            detail=error.detail,
            hint="The setting server_files of the server lists the directories that sources may use.",
        ) from None


def _listed(path: Path, pattern: str) -> list[_Found]:
    """Return the files of a directory that a source looks at, in its order. Blocks."""
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.startswith((".", "_")) or not fnmatch.fnmatchcase(entry.name, pattern):
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                found.append(_Found(status.st_mtime_ns, entry.name, status.st_size))
    return sorted(found)


def _changed(path: Path) -> SqlError:
    return SqlError(
        "55000",
        f'file "{path}" changed after the source had read from it',
        hint="Files are written once: under a name that begins with a dot, and renamed when they are complete.",
    )
