"""Clocks that end a connection which lasts too long: transaction_timeout and the two idle timeouts.

    transaction_timeout                   BEGIN, or the statement that is a transaction by itself ──> its end
    idle_session_timeout                  ReadyForQuery outside a block ──> the next message
    idle_in_transaction_session_timeout   ReadyForQuery within a block  ──> the next message

statement_timeout, which ends a statement and no more, is in ``engine.session.interrupts``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from engine.session.derived import Derived
from pgwire.errors import ErrorReport

IDLE_SESSION: Final = ErrorReport(
    severity="FATAL", sqlstate="57P05", message="terminating connection due to idle-session timeout"
)
IDLE_IN_TRANSACTION: Final = ErrorReport(
    severity="FATAL", sqlstate="25P03", message="terminating connection due to idle-in-transaction timeout"
)
TRANSACTION_TIMEOUT: Final = ErrorReport(
    severity="FATAL", sqlstate="25P04", message="terminating connection due to transaction timeout"
)


class TransactionLimit:
    """transaction_timeout of the transaction that runs, or of a block whose transaction is still to begin.

    The transaction's own deadline sees to it that nothing is committed later (D63); this ends the connection.

    Attributes:
        timeout_ms: the limit that counts, 0 for none.
    """

    __slots__ = ("_due_s", "_expired", "_timer", "timeout_ms")

    def __init__(self, expired: Callable[[], None]) -> None:
        """Call ``expired`` when the limit has passed."""
        self._expired = expired
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self.timeout_ms = 0

    def start(self, timeout_ms: int) -> None:
        """Count ``timeout_ms`` from now on, in place of what counted before; 0 is no limit."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.timeout_ms = timeout_ms
        if timeout_ms:
            loop = asyncio.get_running_loop()
            self._due_s = loop.time() + timeout_ms / 1000
            self._timer = loop.call_at(self._due_s, self._fire)

    def stop(self) -> None:
        """Count no more."""
        if self._timer is not None:
            self.start(0)

    def left_ms(self) -> int:
        """Return how much is left of the limit that counts, 1 at least."""
        return max(int((self._due_s - asyncio.get_running_loop().time()) * 1000), 1)

    def _fire(self) -> None:
        self._timer = None
        self._expired()


class IdleLimit:
    """The clock of a connection whose client says nothing.

    Attributes:
        timer: what ends the connection; None while nothing does: ``stop`` need not be called then.
    """

    __slots__ = ("_end", "timer")

    def __init__(self, end: Callable[[ErrorReport], None]) -> None:
        """Call ``end`` with the reason when the client has been silent for too long."""
        self._end = end
        self.timer: asyncio.TimerHandle | None = None

    def start(self, derived: Derived, *, in_block: bool) -> None:
        """The server waits for the client from now on."""
        self.stop()
        limit_ms = derived.idle_in_transaction_ms if in_block else derived.idle_session_ms
        if limit_ms:
            report = IDLE_IN_TRANSACTION if in_block else IDLE_SESSION
            self.timer = asyncio.get_running_loop().call_later(limit_ms / 1000, self._end, report)

    def stop(self) -> None:
        """The client has said something, or has gone."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
