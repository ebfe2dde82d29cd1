"""Advisory locks: numbers that applications lock (manual 13.3.5), by session or until the transaction ends.

    session 7    {Advisory 1}  session 2, transaction 1 times exclusive     ──> one X lock of the session's LockOwner
                 {Advisory 9}  transaction 1 times shared                   ──> one S lock

A session locks through an owner of its own, beside those of its transactions: its locks may outlive them, and never
conflict with each other. Each is counted, per level and mode, and must be given back as often as it was taken; what the
owner holds of a number is X while any exclusive count is left, else S. The lock table knows which owners belong to one
session (``LockTable.advisory``), so that deadlocks through rows and numbers alike are found.

A transaction that ends with very many leaves its owner behind, as any owner of many locks
(``LockTable.release_all``); the session goes on with a new one, which takes over what is locked until the
session ends.

Nothing is stored: advisory locks end with the connection, and with the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from txn.base.errors import TooManyLocks, WaitCancelled
from txn.locks.entry import LockOwner
from txn.locks.granule import Advisory
from txn.locks.mode import S, X
from txn.locks.table import AT_ONCE, LockTable

MAX_NUMBERS: Final = 100_000
"""Different numbers that one session may hold."""


_ONE: Final = (1, 1 << 32)
"""A lock, shared or exclusive, as a number is counted: each kind in a half of an integer."""


def _has(count: int, exclusive: bool) -> bool:
    return count >= _ONE[1] if exclusive else bool(count & (_ONE[1] - 1))


def _mode(count: int) -> int | None:
    """Return what the owner has to hold of a number, None for nothing."""
    if not count:
        return None
    return X if count >= _ONE[1] else S


class AdvisoryLocks:
    """The advisory locks of one session."""

    def __init__(self, table: LockTable, session: int, owner_id: int) -> None:
        """``owner_id``: unlike the id of any transaction."""
        self._table = table
        self._owner = LockOwner(owner_id, session)
        self._session: dict[Advisory, int] = {}
        self._transaction: dict[Advisory, int] = {}
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
        level = self._transaction if transaction else self._session
        count = level.get(what, 0)
        if not _has(count, exclusive):
            return False
        count -= _ONE[exclusive]
        if count:
            level[what] = count
        else:
            del level[what]
        self._settle(what)
        return True

    def unlock_session(self, pace: Callable[[list[Advisory]], Iterable[Advisory]] = iter) -> None:
        """Give all locks of session level back. ``pace`` iterates over them, and may let others run meanwhile."""
        for what in pace(list(self._session)):
            if self._session.pop(what, None) is not None:
                self._settle(what)

    def unlock_transaction(self) -> None:
        """The transaction has ended: give back what was locked until then, and wait for nothing. Idempotent."""
        self._stop_waiting()
        ended, self._transaction = self._transaction, {}
        if len(ended) > AT_ONCE and len(self._session) < len(ended):
            before = self._owner
            self._owner = LockOwner(before.id, before.session)
            self._table.advisory[before.session] = self._owner
            for what, count in self._session.items():
                self._table.hand_over(before, self._owner, what, _mode(count))
            self._table.release_all(before)
        else:
            for what in ended:
                self._settle(what)

    def close(self) -> None:
        """The session ends."""
        self._session.clear()
        self._transaction.clear()
        self._table.release_all(self._owner)
        self._table.advisory.pop(self._owner.session, None)

    def _check_room(self, what: Advisory) -> None:
        held = self._owner.held
        if len(held) >= MAX_NUMBERS and what not in held:
            raise TooManyLocks

    def _count(self, what: Advisory, exclusive: bool, transaction: bool) -> None:
        level = self._transaction if transaction else self._session
        had = level.get(what)
        level[what] = _ONE[exclusive] if had is None else had + _ONE[exclusive]

    def _stop_waiting(self) -> None:
        """Leave the queue that an execution which was given up may still stand in."""
        request = self._owner.waiting
        if request is not None:
            self._table.fail_wait(self._owner, WaitCancelled("the statement ended"))
            request.future.exception()  # nobody may be there to take it

    def _settle(self, what: Advisory) -> None:
        """Hold no more than what is counted."""
        mode = _mode(self._session.get(what, 0) | self._transaction.get(what, 0))
        if mode != self._owner.held.get(what):
            self._table.demote(self._owner, what, mode)
