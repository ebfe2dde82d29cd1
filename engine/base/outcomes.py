"""What became of transactions whose ids were asked for, and which of them a reader does not see (manual 9.27.8).

    txid_current() ──tell──> told, commits ──> pg_xact_status
                                   └─────────> pg_current_snapshot, with the transactions that run

A transaction has its id from its beginning, also while nobody knows whether it will write. Rows carry an id
only if it was asked for, so that only those are kept. A snapshot lists as running

    every transaction that runs now and may write      it may yet commit, with an id as old as its beginning
    every one told that committed after the reader's   ts > the reader's read timestamp, in the timeline of its rows: not seen,
    read timestamp                                     however long ago that is by now

so that an id below xmin, or another one that the snapshot sees, has rolled back or is seen by the reader's statement.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pgwire.codecs.snapshot import compose
from planner.base.errors import SqlError
from txn.base.types import Timestamp, TxnId

if TYPE_CHECKING:
    from txn.api import Transaction
    from txn.store import ShardStore

KEPT: Final = 65_536
"""Transactions whose outcome is remembered."""
_ALWAYS: Final = (1, 2)
"""Numbers of PostgreSQL's that stand for what was there from the beginning."""


class _Commit(NamedTuple):
    txn: TxnId
    timeline: str
    ts: Timestamp


class Outcomes:
    """The transactions of one run of the server whose ids were asked for; the last ``KEPT`` of them."""

    def __init__(self, store: ShardStore) -> None:
        """None has been asked for; what was committed before is seen by whoever reads no earlier than now."""
        self._store = store
        self._told: dict[TxnId, bool] = {}  # whether it has committed
        self._commits: deque[_Commit] = deque()  # ascending in each timeline
        self._latest: dict[str, Timestamp] = {}
        self._forgotten = store.read_points()

    def tell(self, txn: Transaction) -> int:
        """Return the id of a running transaction, whose outcome is remembered from now on, and which its rows show."""
        txn.tell_id()
        if txn.id not in self._told:
            self._remember(txn.id, False)
            txn.on_applied(partial(self._applied, txn.id))
        return txn.id

    def _remember(self, txn: TxnId, committed: bool) -> None:
        self._told.pop(txn, None)  # so that it counts as the newest
        self._told[txn] = committed
        if len(self._told) > KEPT:
            del self._told[next(iter(self._told))]

    def _applied(self, txn: TxnId, ts: Timestamp) -> None:
        """It has committed. One that wrote still runs in this tick; of another there is nothing to see."""
        self._remember(txn, True)
        writer = self._store.running.get(txn)
        if writer is None:
            return
        timeline = writer.timeline.name
        self._commits.append(_Commit(txn, timeline, ts))
        self._latest[timeline] = ts
        if len(self._commits) > KEPT:
            oldest = self._commits.popleft()
            self._forgotten[oldest.timeline] = oldest.ts

    def status(self, number: int) -> str | None:
        """Return what became of a transaction: in progress, committed, aborted; None: not known (any more).

        Raises SqlError 22023 for a number that has not been given out yet.
        """
        if number >= self._store.next_transaction_id:
            raise SqlError("22023", f"transaction ID {number} is in the future")
        txn = TxnId(number)
        if txn in self._store.running:
            return "in progress"
        if number in _ALWAYS:
            return "committed"
        committed = self._told.get(txn)
        return None if committed is None else "committed" if committed else "aborted"

    def snapshot(self, txn: Transaction) -> str:
        """Return which transactions ``txn`` sees, as a pg_snapshot; ``txn`` itself runs.

        Raises SqlError 72000 where it reads so far back that commits since are not all known: before the start of the
        server, or more than ``KEPT`` of them ago.
        """
        points = txn.read_points()
        if any(ts < self._forgotten.get(timeline, 0) for timeline, ts in points.items()):
            raise SqlError(
                "72000",
                "snapshot too old",
                detail="It is not known any more which transactions have committed since.",
            )
        running = {other.id for other in self._store.running.values() if not other.read_only}
        running.add(txn.id)
        newer = {timeline for timeline, ts in points.items() if self._latest.get(timeline, 0) > ts}
        for commit in reversed(self._commits):
            if not newer:
                break
            if commit.timeline in newer:
                if commit.ts > points[commit.timeline]:
                    running.add(commit.txn)
                else:
                    newer.remove(commit.timeline)
        xip = sorted(running)
        return compose(xip[0], self._store.next_transaction_id, xip)
