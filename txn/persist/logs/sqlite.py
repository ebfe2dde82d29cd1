"""Consensus in one SQLite file, ``journal_mode=WAL`` and ``synchronous=FULL``: the embedded default.

    loop thread                         writer thread (owns the connection)
    append(epoch, seq, payload) --q-->  INSERT ... WHERE epoch and seq are current; commit = fdatasync
        awaits a future         <-----  loop.call_soon_threadsafe(resolve)

    once much is written                a process with a connection of its own (txn.persist.logs.process)
    append(epoch, seq, payload) ----->  the same; what it refuses, the thread is asked, too, and says why
                                <-----

One statement checks epoch and sequence number and inserts, so the check is inside the durable append (L10, L11).
A statement refused for lack of space has not happened, and SQLite accepts the next one when space is back. Any
other I/O error leaves the outcome open (Indeterminate). Checkpoints of SQLite's own write-ahead file are made by
whoever appends, thread or process, when it is idle or has written much (``txn.persist.logs.process``).

Before anything is written an existing file is looked through, read-only (``sqlite_check``); one that is damaged is left
as it is. Format 1 had no checksums in ``meta`` and ``register``: it is brought to format 2 when it is opened.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote

from txn.base.errors import DamagedFile, Fenced, OutOfSpace, TroubleKind, TxnError, UnknownFormat
from txn.persist.location import Indeterminate, Pulse, SequenceConflict, Versioned
from txn.persist.logs.appender import LogAppender, spawn
from txn.persist.logs.process import APPEND, BUSY_TIMEOUT_S, IDLE_S, NEXT, Written, checkpoint, fits, settle
from txn.persist.logs.space import no_space
from txn.persist.logs.sqlite_check import check_rows, check_wal, meta_crc, register_crc, summed
from txn.persist.logs.sqlite_tail import cut_tail
from txn.persist.regular import regular

T = TypeVar("T")

_APPLICATION_ID = 0x484F4C44  # "HOLD"
_FORMAT = 2
PROCESS_AFTER = 256  # appends by the thread, before a process for them is worth its memory (12 MB)
_TRUNCATE_CHUNK = 2000  # entries per transaction, so that appends get in between
_TRUNCATE_BYTES = 8 << 20  # and bytes: freeing a large entry visits its pages

_LOG = "CREATE TABLE log (seq INTEGER PRIMARY KEY, data BLOB NOT NULL)"
_SCHEMAS = {
    1: {
        "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
        "register": "CREATE TABLE register (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID",
        "log": _LOG,
    },
    2: {
        "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID",
        "register": "CREATE TABLE register (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, data BLOB NOT NULL, "
        "crc INTEGER NOT NULL) WITHOUT ROWID",
        "log": _LOG,
    },
}
_FIRST = {"epoch": 0, "log_first": 1, "register_seq": 0, "registers": 0}
_log = logging.getLogger(__name__)
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class SqliteConsensus:
    """Consensus over the SQLite file ``path``; made by ``open``, used from one event loop."""

    def __init__(self, path: str, expected: bool = False, process_after: int | None = None) -> None:
        """Use ``open``."""
        self._path = self.name = path
        self._expected = expected
        self._queue: queue.SimpleQueue[tuple[Callable[[], object], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="holdfast-log", daemon=True)
        self._closed = False
        self._written = Written()
        self._db: sqlite3.Connection
        self._torn = (
            False  # a write has failed: what it left in the file is to be cut off before anything else
        )
        self._left = process_after  # appends, before a process for them is started
        self._appender: LogAppender | None = None
        self._starting: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, path: str, *, expected: bool = False, process_after: int | None = None
    ) -> SqliteConsensus:
        """Open or create. ``expected``: there must be one, with something in it.

        ``process_after``: after so many appends (> 0) a process is started for the rest; None: never.

        Raises UnknownFormat for a file of another program or a newer format, DamagedFile.
        """
        self = cls(path, expected, process_after)
        self._thread.start()
        try:
            await self._call(self._connect)
        except BaseException:
            await self.close()
            raise
        return self

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        get = self._queue.get
        while True:
            appends = self._appender is None  # else a checkpoint in between would hold the process up
            try:
                job = get(timeout=IDLE_S) if self._written.worth_it and appends else get()
            except queue.Empty:
                self._checkpoint()
                continue
            if job is None:
                break
            work, future = job
            try:
                if self._torn:
                    self._cut_tail()
                result = work()
            except BaseException as error:
                self._post(future, None, error)
            else:
                self._post(future, result, None)
            if self._written.much:
                self._checkpoint()
        if hasattr(self, "_db"):
            self._db.close()

    def _cut_tail(self) -> None:
        try:
            cut_tail(self._db, self._path)
        except sqlite3.Error as error:
            raise _trouble("could not write the log", error) from error
        except OSError as error:
            raise Indeterminate(f"could not write the log: {error}") from error
        self._torn = False

    def _checkpoint(self) -> None:
        checkpoint(self._db)
        self._written.clear()

    def _post(self, future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(_resolve, future, result, error)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    def _call(self, work: Callable[[], T]) -> Awaitable[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(Indeterminate("the log is closed"))
        else:
            self._queue.put((work, future))
        return future

    def _connect(self) -> None:
        for ending in ("", "-wal", "-shm"):  # SQLite would wait at a pipe's end
            with suppress(FileNotFoundError):
                regular(self._path + ending)
        new = not os.path.exists(self._path)
        found = 0 if new else self._inspect()
        if found == 0 and self._expected:
            raise DamagedFile(self._path, "it is missing" if new else "it is empty")
        db = self._db = sqlite3.connect(self._path, isolation_level=None, timeout=BUSY_TIMEOUT_S)
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        settle(db)
        if found != _FORMAT:
            self._transaction(self._create if found == 0 else self._upgrade)
        if new:
            fd = os.open(os.path.dirname(os.path.abspath(self._path)), os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _inspect(self) -> int:
        """Return the format of the file, 0 if it is empty; nothing is written. Raises UnknownFormat, DamagedFile."""
        db = _read_only(self._path)
        try:
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                check_wal(self._path)
                return 0
            application = db.execute("PRAGMA application_id").fetchone()[0]
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            if application != _APPLICATION_ID or not 0 < version <= _FORMAT:
                raise UnknownFormat(
                    f"{self._path} has format {version} (application {application:#x}); "
                    f"this server knows format {_FORMAT}"
                )
            check_wal(self._path)
            tables = dict(db.execute("SELECT name, sql FROM sqlite_master").fetchall())
            if tables != _SCHEMAS[version]:
                raise DamagedFile(self._path, f"its tables are not those of format {version}")
            if version == _FORMAT:
                check_rows(db, self._path)
            return version
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
                raise UnknownFormat(f"{self._path} is not a log file: {error}") from error
            raise _unreadable(self._path, error) from error
        finally:
            db.close()

    def _create(self) -> None:
        for statement in _SCHEMAS[_FORMAT].values():
            self._db.execute(statement)
        for name, value in _FIRST.items():
            self._set_meta(name, value)
        self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        self._db.execute(f"PRAGMA user_version = {_FORMAT}")

    def _upgrade(self) -> None:
        """From format 1: give the rows of ``meta`` and ``register`` their checksums."""
        db = self._db
        meta = dict[str, int](db.execute("SELECT name, value FROM meta").fetchall())
        registers = db.execute("SELECT name, seq, data FROM register").fetchall()
        for table in ("meta", "register"):
            db.execute(f"DROP TABLE {table}")
            db.execute(_SCHEMAS[_FORMAT][table])
        total = 0
        for name, seq, data in registers:
            crc = register_crc(name, seq, data)
            total = summed(total, 0, crc)
            db.execute("INSERT INTO register VALUES (?, ?, ?, ?)", (name, seq, data, crc))
        for name, value in meta.items():
            self._set_meta(name, value)
        self._set_meta("registers", total)
        db.execute(f"PRAGMA user_version = {_FORMAT}")

    def _translate(self, error: sqlite3.Error, size: int = 0) -> TxnError:
        """Undo what is open and say what the error means for the caller, who was writing ``size`` bytes."""
        self._torn = True
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # SQLite had rolled back by itself
        if no_space(self._path, error, size):
            lacking = None
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_FULL:
                lacking = "a quota or a limit on the size of files is exceeded"
            made = OutOfSpace(f"could not write the log: {lacking or 'the device is full'}")
            made.lacking = lacking
            return made
        return _trouble("could not write the log", error)

    def _meta(self, name: str) -> int:
        return int(self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0])

    def _set_meta(self, name: str, value: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, value, meta_crc(name, value)))

    def _check_epoch(self, epoch: int) -> None:
        current = self._meta("epoch")
        if epoch != current:
            raise Fenced(f"epoch {epoch} has been superseded by {current}")

    def _transaction(self, work: Callable[[], T]) -> T:
        """Run ``work`` in one durable transaction."""
        try:
            self._written.note(0)
            self._db.execute("BEGIN IMMEDIATE")
            result = work()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._translate(error) from error
        except (
            BaseException
        ):  # whatever it is: left open, it would take in later appends, which count as durable
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return result

    def _read(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise _unreadable(self._path, error) from error

    # -- Consensus ---------------------------------------------------------------------------------

    def append(self, epoch: int, seq: int, payload: bytes) -> Awaitable[None]:
        """See Consensus."""
        appender = self._appender
        if appender is not None and appender.takes(payload):
            return self._append_beside(appender, epoch, seq, payload)
        if self._left:
            self._left -= 1
            if not self._left:
                self._starting = self._loop.create_task(self._start_appender())
        return self._append_here(epoch, seq, payload)

    async def _append_beside(self, appender: LogAppender, epoch: int, seq: int, payload: bytes) -> None:
        try:
            if await appender.append(epoch, seq, payload):
                return
        except Indeterminate:
            self._torn = True
            if self._appender is appender and not self._closed:
                self._appender = None
                _log.warning(
                    "the process that writes the log has ended; a thread of the server goes on with it"
                )
            raise
        await self._append_here(epoch, seq, payload)

    def _append_here(self, epoch: int, seq: int, payload: bytes) -> Awaitable[None]:
        def work() -> None:
            self._written.note(len(payload))
            try:
                done = self._db.execute(APPEND, (seq, payload, epoch)).rowcount == 1
            except sqlite3.Error as error:
                raise self._translate(error, len(payload)) from error
            if not done:
                self._check_epoch(epoch)
                raise SequenceConflict(seq, self._next())

        return self._call(work)

    async def _start_appender(self) -> None:
        """Have a process append from now on, if it can be had."""
        url = f"file:{quote(os.path.abspath(self._path))}?mode=rw"
        try:
            appender = LogAppender(*await self._call(lambda: spawn(url)))
        except Indeterminate:
            return  # closed meanwhile
        except OSError as error:
            _log.warning("a thread of the server writes the log, a process for it did not start: %r", error)
            return
        if not await appender.ready():
            _log.warning("a thread of the server writes the log, the process for it has ended")
        elif self._closed:
            await appender.close()
        else:
            self._appender = appender

    def _next(self) -> int:
        return int(self._db.execute(f"SELECT {NEXT}").fetchone()[0])

    def _pulse(self) -> Pulse:
        rows = self._db.execute("SELECT name, value FROM meta WHERE name IN ('epoch', 'register_seq')")
        values: dict[str, int] = dict(rows.fetchall())
        return Pulse(values["epoch"], values["register_seq"])

    async def pulse(self) -> Pulse:
        """See Consensus."""
        return await self._call(lambda: self._read(self._pulse))

    async def acquire_epoch(self, at: Pulse | None = None) -> int | None:
        """See Consensus."""

        def work() -> int | None:
            if at is not None and at != self._pulse():
                return None
            epoch = self._meta("epoch") + 1
            self._set_meta("epoch", epoch)
            return epoch

        return await self._call(lambda: self._transaction(work))

    async def head(self, key: str) -> Versioned | None:
        """See Consensus."""

        def work() -> Versioned | None:
            row = self._db.execute("SELECT seq, data FROM register WHERE name = ?", (key,)).fetchone()
            return None if row is None else Versioned(row[0], row[1])

        return await self._call(lambda: self._read(work))

    async def keys(self, prefix: str) -> list[str]:
        """See Consensus."""

        def work() -> list[str]:
            rows = self._db.execute(
                "SELECT name FROM register WHERE substr(name, 1, ?) = ? ORDER BY name", (len(prefix), prefix)
            )
            return [name for (name,) in rows]

        return await self._call(lambda: self._read(work))

    async def compare_and_set(
        self, key: str, expected: int | None, data: bytes | None, *, epoch: int
    ) -> int | None:
        """See Consensus."""

        def work() -> int | None:
            self._check_epoch(epoch)
            row = self._db.execute("SELECT seq, crc FROM register WHERE name = ?", (key,)).fetchone()
            found, old = (None, 0) if row is None else row
            if found != expected:
                return None
            seq = self._meta("register_seq") + 1
            self._set_meta("register_seq", seq)
            crc = 0 if data is None else register_crc(key, seq, data)
            self._set_meta("registers", summed(self._meta("registers"), old, crc))
            if data is None:
                self._db.execute("DELETE FROM register WHERE name = ?", (key,))
                return 0
            self._db.execute("INSERT OR REPLACE INTO register VALUES (?, ?, ?, ?)", (key, seq, data, crc))
            return seq

        return await self._call(lambda: self._transaction(work))

    async def log_bounds(self) -> tuple[int, int]:
        """See Consensus."""

        def work() -> tuple[int, int]:
            first = self._db.execute("SELECT min(seq) FROM log").fetchone()[0]
            return (first if first is not None else self._next()), self._next()

        return await self._call(lambda: self._read(work))

    async def read_log(self, start: int, max_bytes: int = 8 << 20) -> list[tuple[int, bytes]]:
        """See Consensus."""

        def work() -> list[tuple[int, bytes]]:
            entries: list[tuple[int, bytes]] = []
            size = 0
            for seq, data in self._db.execute(
                "SELECT seq, data FROM log WHERE seq >= ? ORDER BY seq", (start,)
            ):
                entries.append((seq, data))
                size += len(data)
                if size >= max_bytes:
                    break
            return entries

        return await self._call(lambda: self._read(work))

    async def truncate(self, before: int, *, epoch: int) -> None:
        """See Consensus."""
        done = False
        while not done:
            done = await self._call(lambda: self._transaction(lambda: self._truncate_some(before, epoch)))

    def _truncate_some(self, before: int, epoch: int) -> bool:
        self._check_epoch(epoch)
        before = min(before, self._next())
        upto, size = before, 0
        oldest = self._db.execute(
            "SELECT seq, length(data) FROM log WHERE seq < ? ORDER BY seq LIMIT ?", (before, _TRUNCATE_CHUNK)
        ).fetchall()
        for seq, length in oldest:
            upto, size = seq + 1, size + length
            if size >= _TRUNCATE_BYTES:
                break
        # The bound first: an emptied log must not start again at 1.
        self._set_meta("log_first", max(self._meta("log_first"), upto))
        self._db.execute("DELETE FROM log WHERE seq < ?", (upto,))
        return upto >= before

    async def shrink(self) -> None:
        """Make the file, and the write-ahead file, as small as what is in them. Raises OutOfSpace, Indeterminate.

        A checkpoint would write the pages of entries that are gone, too, as long as the file counts them: so
        first VACUUM, for which what is left is written once more. Without effect where little is gone.
        """

        def work() -> None:
            db = self._db
            try:
                pages, unused = (
                    int(db.execute(f"PRAGMA {what}").fetchone()[0])
                    for what in ("page_count", "freelist_count")
                )
                if 2 * unused > pages:
                    db.execute("PRAGMA temp_store = MEMORY").fetchall()
                    db.execute("VACUUM")
                if fits(db):
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error as error:
                raise self._translate(error) from error
            self._written.clear()

        await self._call(work)

    async def close(self) -> None:
        """See Consensus."""
        if self._closed:
            return
        self._closed = True
        if self._starting is not None:
            await asyncio.wait([self._starting])
        if self._appender is not None:
            await self._appender.close()
        self._queue.put(None)
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)


def peek(path: str, key: str) -> bytes | None:
    """Return a register of the file ``path``, None if there is none: for looks from outside, also while a server runs.

    Nothing is checked and nothing is changed. Raises DamagedFile where SQLite cannot read it.
    """
    try:
        with closing(_read_only(path)) as db:
            row = db.execute("SELECT data FROM register WHERE name = ?", (key,)).fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    return None if row is None else bytes(row[0])


_KINDS: Final[Mapping[int, TroubleKind]] = {
    sqlite3.SQLITE_NOMEM: "memory",
    sqlite3.SQLITE_CANTOPEN: "files",
    sqlite3.SQLITE_FULL: "space",
}
_SYSTEMS: Final = frozenset(
    (
        *_KINDS, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_AUTH,
    )
)  # fmt: skip
"""Primary codes that tell of the system, not of the file."""


def _trouble(what: str, error: sqlite3.Error) -> Indeterminate:
    """Return what to raise for an error that is the system's."""
    made = Indeterminate(f"{what}: {error}")
    made.kind = _KINDS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "io")
    return made


def _unreadable(path: str, error: sqlite3.Error | UnicodeDecodeError) -> DamagedFile | Indeterminate:
    """Return what to raise for a read: damage, unless SQLite tells of the system."""
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _SYSTEMS:
        return _trouble("could not read the log", error)
    return DamagedFile(path, f"SQLite finds: {error}")


def _read_only(path: str) -> sqlite3.Connection:
    """Connect so that the write-ahead file is left alone when the connection is closed."""
    url = f"file:{quote(os.path.abspath(path))}?mode=ro"
    return sqlite3.connect(url, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)


def _resolve(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
