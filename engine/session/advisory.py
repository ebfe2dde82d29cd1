"""A connection's advisory locks, as the functions over them see it (``planner.functions.session.AdvisorySystem``).

    pg_advisory_lock        held until it is given back, or the connection ends
    pg_advisory_xact_lock   held until the transaction ends, or goes back to a savepoint before it

A block that begins by waiting for one reads what its predecessor has committed: its snapshot moves on after the wait.

The locks are txn's (``txn.locks.advisory``); made at the first use, so that most connections have none.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from engine.session.transaction.work import Working
from pgwire.give_way import paced
from txn.locks.advisory import AdvisoryLocks
from txn.locks.granule import Advisory
from txn.transaction.journal import OneOfMany

if TYPE_CHECKING:
    from engine.session.derived import Derived
    from engine.session.store_server import Server


class Advised(Working, Protocol):
    """A session that takes advisory locks."""

    @property
    def db(self) -> Server:
        """The server that it is of."""

    @property
    def derived(self) -> Derived:
        """What its settings amount to."""


class SessionAdvisory:
    """The advisory locks of one connection."""

    __slots__ = ("_locks", "_session")

    def __init__(self, session: Advised) -> None:
        """Start with none."""
        self._session = session
        self._locks: AdvisoryLocks | None = None

    def _used(self) -> AdvisoryLocks:
        locks = self._locks
        if locks is None:
            locks = self._locks = self._session.db.store.advisory_locks(self._session.pid)
            self._session.block.on_end.append(self._ended)
        return locks

    def _ended(self, committed: bool) -> None:
        if self._locks is not None:
            self._locks.unlock_transaction()

    def _number(self, what: tuple[int, int, bool]) -> Advisory:
        return Advisory(*what, domain=self._session.database_oid)

    def lock(
        self, what: tuple[int, int, bool], *, exclusive: bool, transaction: bool
    ) -> Awaitable[None] | None:
        """Lock a number: None when that was done at once, else what to wait for."""
        number = self._number(what)
        wait = self._used().lock(
            number,
            exclusive=exclusive,
            transaction=transaction,
            lock_timeout_ms=self._session.derived.lock_timeout_ms,
        )
        if wait is not None:
            return self._waited(wait, number, exclusive, transaction)
        if transaction:
            self._note(number, exclusive)
        return None

    async def _waited(
        self, wait: Awaitable[None], number: Advisory, exclusive: bool, transaction: bool
    ) -> None:
        await wait
        self._session.block.renew_snapshot()
        if transaction:
            self._note(number, exclusive)

    def _note(self, number: Advisory, exclusive: bool) -> None:
        """Give the lock back when the transaction is undone to before this point."""
        self._session.block.ensure_txn().on_undo(OneOfMany(self, (number, exclusive)))

    def undo(self, what: tuple[Advisory, bool]) -> None:
        """Give a lock of the transaction back (``txn.transaction.journal.Many``)."""
        number, exclusive = what
        if self._locks is not None:
            self._locks.unlock(number, exclusive=exclusive, transaction=True)

    def undo_all(self) -> None:
        """Give all locks of the transaction back."""
        if self._locks is not None:
            self._locks.unlock_transaction()

    def try_lock(self, what: tuple[int, int, bool], *, exclusive: bool, transaction: bool) -> bool:
        """Lock a number unless another connection is in the way."""
        number = self._number(what)
        if not self._used().try_lock(number, exclusive=exclusive, transaction=transaction):
            return False
        if transaction:
            self._note(number, exclusive)
        return True

    def unlock(self, what: tuple[int, int, bool], *, exclusive: bool) -> bool:
        """Give back a lock of the session; False if there is none."""
        return self._locks is not None and self._locks.unlock(self._number(what), exclusive=exclusive)

    def unlock_all(self) -> None:
        """Give back all locks of the session."""
        if self._locks is not None:
            self._locks.unlock_session(paced)

    def close(self) -> None:
        """The connection ends."""
        if self._locks is not None:
            self._session.block.on_end.remove(self._ended)
            self._locks.close()
            self._locks = None
