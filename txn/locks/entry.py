"""What the lock table is made of: owners, granules with their holders and queues, requests that wait.

LockOwner t2 ──held──> {granule: S}          Entry granule   counts  S:2
└─waiting─> Request S->X ──entry──>          holders  t1:S t2:S
queue    [t2 S->X upgrade] [t5 IX]
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple

from txn.base.errors import TxnError
from txn.base.types import IndexId, ShardId
from txn.locks.granule import Granule, IndexKey
from txn.locks.mode import NAMES
from txn.mvcc.index import Bounds

NO_SPANS: Final[dict[Any, Any]] = {}


class LockOwner:
    """Someone who holds locks: one transaction.

    ``lock_timeout_ms`` 0 means no limit, a negative one that nothing is waited for (LockNotAvailable).
    ``doomed`` is set when a policy chose this owner while it was not waiting; its next acquisition raises it.
    ``losses``: how often its session has lost lately; who has lost more is spared (``txn.locks.policy``).
    ``gone``: it has ended; what the table still has of it keeps nobody out.
    """

    __slots__ = (
        "doomed",
        "escalate_at",
        "gone",
        "held",
        "id",
        "lock_timeout_ms",
        "losses",
        "ranges",
        "session",
        "spans",
        "waiting",
    )

    def __init__(self, txn_id: int, session: int = 0, lock_timeout_ms: int = 0) -> None:
        self.id = txn_id
        self.session = session
        self.lock_timeout_ms = lock_timeout_ms
        self.held: dict[Granule, int] = {}
        self.escalate_at = 2**31  # with more locks than this, see txn.transaction.escalation
        self.waiting: Request | None = None
        self.doomed: TxnError | None = None
        self.gone = False
        self.losses = 0
        self.ranges: dict[tuple[ShardId, IndexId, IndexKey, str], None] | None = (
            None  # registered in IndexRanges
        )
        self.spans: dict[tuple[ShardId, IndexId], dict[Any, Bounds]] = (
            NO_SPANS  # what txn.transaction.next_key has locked
        )


NOBODY: Final = LockOwner(0)
"""Stands for the owner in transactions that began as read-only ones. It must never own a lock: many share it."""


class Entry:
    """One granule that somebody holds or waits for. ``counts``: holders per mode, packed (mode.ONE)."""

    __slots__ = ("counts", "granule", "holders", "queue")

    def __init__(self, granule: Granule) -> None:
        self.granule = granule
        self.counts = 0
        self.holders: dict[LockOwner, int] = {}
        self.queue: list[Request] | None = None


class Request:
    """A waiting request: ``mode`` is what the owner will hold when it is granted."""

    __slots__ = ("entry", "future", "mode", "owner", "since_s", "timer", "upgrade")

    def __init__(self, owner: LockOwner, entry: Entry, mode: int, upgrade: bool) -> None:
        self.owner = owner
        self.entry = entry
        self.mode = mode
        self.upgrade = upgrade
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = loop.create_future()
        self.since_s = loop.time()
        self.timer: asyncio.TimerHandle | None = None


class LockRow(NamedTuple):
    """One line of the lock table, for ``pg_locks``.

    ``since_s``: when the wait began, on the event loop's clock; None for what is granted.
    """

    granule: Granule
    session: int
    txn: int
    mode: str
    granted: bool
    since_s: float | None = None


def waiting_row(request: Request) -> LockRow:
    """Return the line of a request that waits."""
    owner = request.owner
    return LockRow(
        request.entry.granule, owner.session, owner.id, NAMES[request.mode], False, request.since_s
    )
