"""What can go wrong in a transaction. SQLSTATEs are the engine's business (engine/session/errors.py).

    lost a race       WriteConflict, Deadlock, SchemaChanged ...     rolled back; running it again may succeed
    refused           LockNotAvailable, ReadBelowSince ...           nothing was done
    storage says no   OutOfSpace, Indeterminate                      not done; or, Indeterminate, perhaps done
    must stop         Fenced, CommitUnknown                          this server can commit nothing any more
    damage            DamagedFile, DamagedEntry                      one shard cannot be served, or the log cannot be read

Errors carry what a message needs as fields (which lock, whose, which key), never as text to be taken apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from reprlib import Repr
from typing import Final, Literal, TypeAlias, TypeVar

from txn.base.types import IndexId, Key, RowId, ShardId, Timestamp

E = TypeVar("E", bound=Exception)


_short: Final = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 200
_short.maxtuple = 100
_shown: Final = _short.repr  # a key may be megabytes


class TxnError(Exception):
    """Base of expected failures."""


def anew(error: E) -> E:
    """Return an error that is remembered, to raise it: what it was raised by before is not kept, and does not
    add up.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class Cause(StrEnum):
    """The rule by which a transaction lost: what is counted of 40001 and 40P01."""

    KEY_READ = "key_read"
    RANGE_READ = "range_read"
    SCAN_READ = "scan_read"
    TABLE_READ = "table_read"
    SCAN_WATCHED = "scan_watched"
    TABLE_WATCHED = "table_watched"
    BULK_WATCHED = "bulk_watched"
    DEFINITION = "definition"
    CATALOG = "catalog"
    NAME_TAKEN = "name_taken"
    REPLANNED = "replanned"
    ROWS_TO_LOCK = "rows_to_lock"
    COMMIT_TIMESTAMP = "commit_timestamp"
    DEADLOCK_CHANGES = "deadlock_changes"
    DEADLOCK_READS = "deadlock_reads"
    DEADLOCK_RANGES = "deadlock_ranges"
    DEADLOCK_TABLES = "deadlock_tables"
    DEADLOCK_ADVISORY = "deadlock_advisory"
    LOCK_POLICY = "lock_policy"


class Lost(TxnError):
    """A transaction lost against another one; running it again may succeed. ``cause``: by which rule."""

    def __init__(self, message: str, cause: Cause) -> None:
        super().__init__(message)
        self.cause = cause


class WriteConflict(Lost):
    """Something this transaction read has changed since (40001). Fields explain it (N8)."""

    def __init__(
        self, cause: Cause, shard: ShardId, *, key: Key | None = None, index: IndexId | None = None,
        other_session: int = 0, changed_at: Timestamp | None = None,
    ) -> None:  # fmt: skip
        """``key`` None: somewhere in the table."""
        super().__init__(f"shard {shard} changed since it was read", cause)
        self.shard, self.key, self.index = shard, key, index
        self.other_session, self.changed_at = other_session, changed_at


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTarget:
    """What a lock is on. ``key``: values in index column order; None for a range means the end of the index.

    A ``range`` is the gap below its key, and the key. ``advisory``: no shard; ``key`` is (high, low, 1 or 2 numbers).
    """

    kind: Literal["table", "row", "key", "range", "advisory"]
    shard: ShardId
    index: IndexId | None = None
    key: Key | None = None
    row_id: RowId | None = None

    def __str__(self) -> str:
        """Say it in words, with numbers for names."""
        match self.kind:
            case "table":
                return f"table {self.shard}"
            case "row":
                return f"row {self.row_id} of table {self.shard}"
            case "key":
                return f"key {self.key!r} of index {self.index} of table {self.shard}"
            case "advisory":
                return f"advisory lock {self.key!r}"
            case _:
                end = "the end" if self.key is None else _shown(self.key)
                return f"range up to {end} of index {self.index} of table {self.shard}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockWait:
    """One edge of the wait-for graph: ``waiter`` asks for ``mode``, ``holder`` has ``held`` (None: asks, too).

    Both are sessions; ``waiter_txn`` and ``holder_txn`` are their transactions.
    """

    waiter: int
    holder: int
    waiter_txn: int
    holder_txn: int
    mode: str
    held: str | None
    target: LockTarget


class Deadlock(Lost):
    """This transaction was chosen to end a deadlock (40P01).

    ``waits``: the cycle, each waiter being the holder of the wait before; under the policies ``wait_die``,
    ``wound_wait`` and ``no_wait`` the one wait that was refused. ``cycle``: the same as (waiter, holder, what)
    triples of sessions and words.
    """

    def __init__(self, waits: tuple[LockWait, ...], *, in_cycle: bool = True) -> None:
        """Sessions, not transaction ids, are what clients know. ``in_cycle``: False where a policy refused to wait."""
        super().__init__("deadlock", _cause_of(waits) if in_cycle else Cause.LOCK_POLICY)
        self.waits = waits
        self.cycle = tuple((w.waiter, w.holder, f"{w.mode} on {w.target}") for w in waits)


_READING: Final = frozenset(("IS", "S"))


def _cause_of(waits: tuple[LockWait, ...]) -> Cause:
    """Return the coarsest that a cycle is through: what finer locks would have to begin with."""
    kinds = {wait.target.kind for wait in waits}
    for kind, cause in (
        ("advisory", Cause.DEADLOCK_ADVISORY),
        ("table", Cause.DEADLOCK_TABLES),
        ("range", Cause.DEADLOCK_RANGES),
    ):
        if kind in kinds:
            return cause
    read = any(wait.held in _READING or wait.mode in _READING for wait in waits)
    return Cause.DEADLOCK_READS if read else Cause.DEADLOCK_CHANGES


class LockRefused(TxnError):
    """A lock was not granted in time. ``waits``: what was asked for, and of whom; may be empty."""

    def __init__(self, waits: tuple[LockWait, ...] = ()) -> None:
        """One wait per transaction in the way."""
        what = f"{waits[0].mode} on {waits[0].target}" if waits else "a lock"
        super().__init__(f"could not get {what}")
        self.waits = waits


class LockTimeout(LockRefused):
    """lock_timeout passed (55P03)."""


class LockNotAvailable(LockRefused):
    """NOWAIT, and the lock is not free (55P03). ``target`` says which."""

    def __init__(self, target: LockTarget, waits: tuple[LockWait, ...] = ()) -> None:
        """Name what could not be locked, and who has it."""
        super().__init__(waits)
        self.target = target


class TooManyLocks(TxnError):
    """A session holds as many advisory locks as it may (53200)."""


class WaitCancelled(TxnError):
    """The wait was cancelled from outside (57014)."""


class DuplicateKey(TxnError):
    """A unique index would hold ``key`` twice (23505)."""

    def __init__(self, shard: ShardId, index: IndexId, key: Key) -> None:
        """``key`` in index column order."""
        super().__init__(f"duplicate key {_shown(key)} in index {index} of shard {shard}")
        self.shard, self.index, self.key = shard, index, key
        self.context: str | None = None  # where the row comes from, if whoever inserts it can tell


class NullInColumn(TxnError):
    """A row of a load has a NULL where none may be (23502)."""

    def __init__(self, attnum: int, row: bytes) -> None:
        """``row``: the row, as an Arrow stream of one batch of one row with columns ``c<attnum>``."""
        super().__init__(f"null in column {attnum}")
        self.attnum, self.row = attnum, row


class ReadBelowSince(TxnError):
    """The timestamp is no longer readable; ``since`` is the nearest readable one."""

    def __init__(self, ts: Timestamp, since: Timestamp, reason: str = "") -> None:
        """``reason`` says what limits it, and why."""
        super().__init__(f"timestamp {ts} is below {since}")
        self.ts, self.since, self.reason = ts, since, reason


class ReadInFuture(TxnError):
    """The timestamp is further ahead than a read may wait for; ``latest`` is the highest that may be asked for."""

    def __init__(self, ts: Timestamp, latest: Timestamp) -> None:
        """Both are timestamps."""
        super().__init__(f"timestamp {ts} is above {latest}")
        self.ts, self.latest = ts, latest


class TimestampPassed(Lost):
    """A commit was to happen at a timestamp at which that is no longer possible (C31)."""

    def __init__(self, ts: Timestamp, nearest: Timestamp) -> None:
        """``nearest``: a commit at or above it was possible when this was found."""
        super().__init__(f"timestamp {ts} has passed; the next is {nearest}", Cause.COMMIT_TIMESTAMP)
        self.ts, self.nearest = ts, nearest


class SubscriptionLapsed(TxnError):
    """A subscription read so slowly that the history it needs grew past its bound, and was given up."""

    def __init__(self, position: Timestamp, versions: int) -> None:
        """``position``: what it had read up to. ``versions``: the bound, in superseded row versions."""
        super().__init__(f"the subscription at {position} kept more than {versions} superseded row versions")
        self.position, self.versions = position, versions


class SubscriptionEnded(TxnError):
    """A subscribed shard was dropped, or its columns changed: its rows are no longer of the same kind."""

    def __init__(self, shard: ShardId, ts: Timestamp, *, dropped: bool) -> None:
        """``ts``: when; everything before it has been delivered."""
        super().__init__(f"shard {shard} {'was dropped' if dropped else 'changed its columns'} at {ts}")
        self.shard, self.ts, self.dropped = shard, ts, dropped


class SchemaChanged(Lost):
    """A shard's schema is not the one this transaction used (40001)."""

    def __init__(self, shard: ShardId, cause: Cause = Cause.DEFINITION) -> None:
        """Name the shard."""
        super().__init__(f"the schema of shard {shard} has changed", cause)
        self.shard = shard


class CrossesTimelines(TxnError):
    """Shards of several timelines were to be read at one timestamp (0A000, 25000)."""

    def __init__(self, timelines: Mapping[ShardId, str]) -> None:
        """``timelines``: of each shard concerned."""
        named = ", ".join(f"shard {shard} is in timeline {name}" for shard, name in timelines.items())
        super().__init__(f"a timestamp belongs to one timeline: {named}")
        self.timelines = dict(timelines)


class DeadlineExceeded(TxnError):
    """The transaction's deadline passed; it was rolled back."""


class ReadOnlyTransaction(TxnError):
    """A write in a read-only transaction (25006)."""


class OutOfSpace(TxnError):
    """The commit could not be written for lack of space and was rolled back (53100).

    ``needed``, ``free``: bytes that it would have taken, or that have to be free before anything is written
    again, and that are free; None: not known.
    """

    needed: int | None = None
    free: int | None = None
    lacking: str | None = None
    """What is lacking that is not bytes of the device: a quota, a longer file, another file; None: it is those."""
    helped: bool = True
    """Whether it helps to make bytes free: they are no longer file, and no other one."""
    files: bool = False
    """Whether it is another file that there is no room for."""
    store: str | None = None
    """The object store that is full; None: the file system of the data directory."""


TroubleKind: TypeAlias = Literal["io", "files", "requests", "memory", "space"]
"""What the system, or an object store, is short of: 58030, 53000, 53000, 53200, 53100."""


class StorageError(TxnError):
    """The device refused a write or a read; a commit that meets this was rolled back. ``kind`` says what was
    short (58030, 53000, 53200).
    """

    kind: TroubleKind = "io"


class FileTrouble(StorageError):
    """The system refused to read a file, for a reason that is not the file's: nothing is damaged, and it may
    succeed at another time.
    """

    def __init__(self, file: str, verb: str, reason: str, kind: TroubleKind) -> None:
        """``file``: its path. ``verb``: what could not be done with it. ``reason``: the system's words."""
        super().__init__(f"could not {verb} {file}: {reason}")
        self.file, self.verb, self.reason, self.kind = file, verb, reason, kind


class CopyDamaged(FileTrouble):
    """The local copy of a file in an object store is damaged, and is fetched anew: the next read finds that."""

    def __init__(self, damage: DamagedFile) -> None:
        """``damage``: of the copy."""
        super().__init__(damage.file, "use", f"the local copy is fetched anew, because {damage.what}", "io")


class CommitUnknown(TxnError):
    """It cannot be told whether the commit is durable (08007); the server must stop."""


class Fenced(TxnError):
    """A newer epoch owns the data directory, or may by now; this server must stop (57P01)."""


class Displaced(Fenced):
    """A directory is not where this server opened it; what is written by its path would be lost (57P01, the
    server stops).
    """

    def __init__(self, path: str, what: str) -> None:
        """``what``: has become of it."""
        super().__init__(f"the directory {path} {what} while the server was running")
        self.path, self.what = path, what


class DataDirectoryInUse(TxnError):
    """Another process holds the data directory; ``holder`` says who."""

    def __init__(self, path: str, holder: str) -> None:
        """``holder`` is the text of the lock file (pid, host, start time)."""
        super().__init__(f"data directory {path} is in use by {holder}")
        self.path, self.holder = path, holder


class LeaderAlive(TxnError):
    """Another server leads and renews its lease; ``holder`` says who."""

    def __init__(self, holder: str) -> None:
        """``holder`` is the text in the lease (pid, host, address)."""
        super().__init__(f"another server leads: {holder} (a standby would wait for it)")
        self.holder = holder


class DamagedFile(TxnError):
    """A file does not hold what was written to it (XX001). ``file`` names it, ``what`` says how that shows.

    What does not need the file goes on; nothing that would replace it is done. ``unread``: the system would
    not read it when the server started (58030), and ``what`` is what it said; until the next start it counts
    as damaged, as nobody knows what is in it.
    """

    def __init__(self, file: str, what: str, *, unread: bool = False) -> None:
        """``file``: a path, or a register or log entry with the path of what holds it."""
        super().__init__(f"{file} {'could not be read' if unread else 'is damaged'}: {what}")
        self.file, self.what, self.unread = file, what, unread


class OnlyRead(TxnError):
    """Nothing is committed (XX001): ``damage`` is to something that decides what may be written."""

    def __init__(self, damage: DamagedFile) -> None:
        """Say why."""
        super().__init__(f"nothing is written: {damage}")
        self.damage = damage


class MissingFile(DamagedFile):
    """A file is not there. A server that was deposed and does not know it yet may meet this: its successor
    has swept.
    """

    def __init__(self, file: str) -> None:
        """``file``: its path."""
        super().__init__(file, "it is missing")


class DamagedEntry(DamagedFile):
    """A log entry is damaged. ``shards``: those it writes to, None if not even that can be told.

    ``upper``: the highest timestamp in it, None if it has none or that cannot be told.
    """

    def __init__(
        self,
        file: str,
        what: str,
        shards: tuple[ShardId, ...] | None,
        upper: Timestamp | None,
        *,
        unread: bool = False,
    ) -> None:
        """See the class."""
        super().__init__(file, what, unread=unread)
        self.shards, self.upper = shards, upper


class UnknownFormat(TxnError):
    """A file carries a format version this server does not know."""


class CommitWithdrawn(TxnError):
    """A commit was taken back by its owner before its log entry was written: nothing happened."""

    def __init__(self) -> None:
        super().__init__("the commit was taken back before it was written")
