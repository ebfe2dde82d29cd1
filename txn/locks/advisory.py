"""Advisory locks: numbers that applications lock (manual 13.3.5), by session or until the transaction ends.

    session 7    {Advisory 1}  session 2, transaction 1 times exclusive     ──> one X lock of the session's LockOwner
                 {Advisory 9}  transaction 1 times shared                   ──> one S lock

A session locks through an owner of its own, beside those of its transactions: its locks may outlive them, and never
conflict with each other. Each is counted, per level and mode, and must be given back as often as it was taken; what the
owner holds of a number is X while any exclusive count is left, else S. The lock table knows which owners belong to one
session (``LockTable.advisory``), so that deadlocks through rows and numbers alike are found.

Nothing is stored: advisory locks end with the connection, and with the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from txn.errors import TooManyLocks, WaitCancelled
from txn.locks.entry import LockOwner
from txn.locks.granule import Advisory
from txn.locks.mode import S, X

if TYPE_CHECKING:
    from txn.locks.table import LockTable

MAX_NUMBERS: Final = 100_000
"""Different numbers that one session may hold."""


@dataclass(slots=True)
class _Counts:
    """How often a number is locked; index 0 shared, 1 exclusive."""

    session: list[int]
    transaction: list[int]

    @property
    def mode(self) -> int | None:
        """What the owner has to hold, None for nothing."""
        if self.session[1] or self.transaction[1]:
            return X
        return S if self.session[0] or self.transaction[0] else None


Held = tuple[Advisory, _Counts]
"""A number and how often it is locked."""


class AdvisoryLocks:
    """The advisory locks of one session."""

    def __init__(self, table: LockTable, session: int, owner_id: int) -> None:
        """``owner_id``: unlike the id of any transaction."""
        self._table = table
        self._owner = LockOwner(owner_id, session)
        self._counts: dict[Advisory, _Counts] = {}
        table.advisory[session] = self._owner

    def lock(
        self, what: Advisory, *, exclusive: bool, transaction: bool, lock_timeout_ms: int = 0
    ) -> Awaitable[None] | None:
        """Lock: None when granted at once, else an awaitable that raises Deadlock, LockTimeout or WaitCancelled.

        Raises TooManyLocks.
        """
        self._check_room(what)
        self._stop_waiting()
        self._owner.lock_timeout_ms = lock_timeout_ms
        wait = self._table.acquire(self._owner, what, X if exclusive else S)
        if wait is None:
            self._count(what, exclusive, transaction)
            return None
        return self._locked(wait, what, exclusive, transaction)

    async def _locked(
        self, wait: Awaitable[None], what: Advisory, exclusive: bool, transaction: bool
    ) -> None:
        try:
            await wait
        except BaseException:
            self._settle(what)  # granted, it may be, when the wait was given up
            raise
        if self._table.advisory.get(self._owner.session) is self._owner:
            self._count(what, exclusive, transaction)

    def try_lock(self, what: Advisory, *, exclusive: bool, transaction: bool) -> bool:
        """Lock unless that has to wait; tell whether it is locked. Raises TooManyLocks."""
        self._check_room(what)
        if not self._table.try_acquire(self._owner, what, X if exclusive else S):
            return False
        self._count(what, exclusive, transaction)
        return True

    def unlock(self, what: Advisory, *, exclusive: bool, transaction: bool = False) -> bool:
        """Give one lock back; False if there is none of that level and mode."""
        counts = self._counts.get(what)
        if counts is None:
            return False
        level = counts.transaction if transaction else counts.session
        if not level[exclusive]:
            return False
        level[exclusive] -= 1
        self._settle(what)
        return True

    def unlock_session(self, pace: Callable[[list[Held]], Iterable[Held]] = iter) -> None:
        """Give all locks of session level back. ``pace`` iterates over them, and may let others run meanwhile."""
        for what, counts in pace(list(self._counts.items())):
            counts.session = [0, 0]
            self._settle(what)

    def unlock_transaction(self) -> None:
        """The transaction has ended: give back what was locked until then, and wait for nothing. Idempotent."""
        self._stop_waiting()
        for what, counts in list(self._counts.items()):
            if any(counts.transaction):
                counts.transaction = [0, 0]
                self._settle(what)

    def close(self) -> None:
        """The session ends."""
        self._counts.clear()
        self._table.release_all(self._owner)
        self._table.advisory.pop(self._owner.session, None)

    def _check_room(self, what: Advisory) -> None:
        if what not in self._counts and len(self._counts) >= MAX_NUMBERS:
            raise TooManyLocks

    def _count(self, what: Advisory, exclusive: bool, transaction: bool) -> None:
        counts = self._counts.get(what)
        if counts is None:
            counts = self._counts[what] = _Counts([0, 0], [0, 0])
        (counts.transaction if transaction else counts.session)[exclusive] += 1

    def _stop_waiting(self) -> None:
        """Leave the queue that an execution which was given up may still stand in."""
        request = self._owner.waiting
        if request is not None:
            self._table.fail_wait(self._owner, WaitCancelled("the statement ended"))
            request.future.exception()  # nobody may be there to take it

    def _settle(self, what: Advisory) -> None:
        """Hold no more than what is counted."""
        counts = self._counts.get(what)
        mode = None if counts is None else counts.mode
        if mode is None:
            self._counts.pop(what, None)
        if mode != self._owner.held.get(what):
            self._table.demote(self._owner, what, mode)
