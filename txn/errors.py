"""What can go wrong in a transaction. SQLSTATEs are the engine's business (engine/errors.py)."""

from __future__ import annotations

from txn.types import IndexId, Key, RowId, ShardId, Timestamp


class TxnError(Exception):
    """Base of expected failures."""


class WriteConflict(TxnError):
    """Something this transaction read has changed since (40001). Fields explain it (N8)."""

    def __init__(
        self, shard: ShardId, *, key: Key | None = None, index: IndexId | None = None,
        other_session: int = 0, changed_at: Timestamp | None = None,
    ) -> None:  # fmt: skip
        """``key`` None: somewhere in the table."""
        super().__init__(f"shard {shard} changed since it was read")
        self.shard, self.key, self.index = shard, key, index
        self.other_session, self.changed_at = other_session, changed_at


class Deadlock(TxnError):
    """This transaction was chosen to end a deadlock (40P01). ``cycle``: (waiter, holder, what) triples."""

    def __init__(self, cycle: tuple[tuple[int, int, str], ...]) -> None:
        """Sessions, not transaction ids."""
        super().__init__("deadlock")
        self.cycle = cycle


class LockTimeout(TxnError):
    """lock_timeout passed (55P03)."""


class LockNotAvailable(TxnError):
    """A lock asked for with NOWAIT is held by others (55P03). ``row_id`` None: that of the table; 0: an index key."""

    def __init__(self, shard: ShardId, row_id: RowId | None = None) -> None:
        """Name what could not be locked."""
        super().__init__(f"a lock on shard {shard} is not available")
        self.shard, self.row_id = shard, row_id


class WaitCancelled(TxnError):
    """The wait was cancelled from outside (57014)."""


class DuplicateKey(TxnError):
    """A unique index would hold ``key`` twice (23505)."""

    def __init__(self, shard: ShardId, index: IndexId, key: Key) -> None:
        """``key`` in index column order."""
        super().__init__(f"duplicate key {key!r} in index {index} of shard {shard}")
        self.shard, self.index, self.key = shard, index, key


class ReadBelowSince(TxnError):
    """The timestamp is no longer readable; ``since`` is the nearest readable one."""

    def __init__(self, ts: Timestamp, since: Timestamp) -> None:
        """Both are timestamps."""
        super().__init__(f"timestamp {ts} is below {since}")
        self.ts, self.since = ts, since


class SchemaChanged(TxnError):
    """The shard's schema is not the one this transaction used (40001)."""


class DeadlineExceeded(TxnError):
    """The transaction's deadline passed; it was rolled back."""


class ReadOnlyTransaction(TxnError):
    """A write in a read-only transaction (25006)."""


class OutOfSpace(TxnError):
    """The commit could not be written for lack of space and was rolled back (53100)."""


class StorageError(TxnError):
    """The device refused a write or a read (58030); a commit that meets this was rolled back."""


class CommitUnknown(TxnError):
    """It cannot be told whether the commit is durable (08007); the server must stop."""


class Fenced(TxnError):
    """A newer epoch owns the data directory; this server must stop (57P01)."""


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


class UnknownFormat(TxnError):
    """A file carries a format version this server does not know."""
