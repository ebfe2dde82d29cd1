"""How long a transaction takes part: its state, the operations that run in it, and its deadline.

    active ──> committing ──> ended         the log decides what becomes of a transaction that is committing
      │  ^          │           ^
      │  └──────────┘ refused   │
      └─────────────────────────┘ rolled back, or ended without writes

An operation that waits while its transaction is ended by somebody else (a rollback, the deadline) stops with
the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from txn.base.errors import DeadlineExceeded, TxnError, WaitCancelled

State: TypeAlias = Literal["active", "committing", "ended"]

ACTIVE: Final = "active"
COMMITTING: Final = "committing"
ENDED: Final = "ended"


class Lifetime:
    """The lifetime of one transaction.

    Attributes:
        state: see the module.
        busy: operations that wait for something.
    """

    __slots__ = ("_ended_by", "_timer", "busy", "state")

    def __init__(self) -> None:
        """It is active, and has no deadline."""
        self.state: State = ACTIVE
        self.busy = 0
        self._ended_by: TxnError | None = None
        self._timer: asyncio.TimerHandle | None = None

    def ended(self) -> TxnError:
        """Return the reason why nothing can be done in it any more."""
        if self._ended_by is not None:
            return self._ended_by
        return WaitCancelled("the transaction has ended")

    def check_active(self) -> None:
        """Raise the reason unless it is active."""
        if self.state is not ACTIVE:
            raise self.ended()

    def check_idle(self) -> None:
        """Raise the reason unless it is active; AssertionError while one of its operations runs (L31)."""
        if self.state is not ACTIVE:
            raise self.ended()
        if self.busy:
            raise AssertionError("an operation of this transaction is still running")

    def set_deadline(self, deadline_ms: int | None, expire: Callable[[TxnError], None]) -> None:
        """Let ``expire`` end it, for the reason given, ``deadline_ms`` from now on; None: no limit any more."""
        self.stop_clock()
        if deadline_ms is not None and self.state is ACTIVE:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(deadline_ms / 1000, self._expire, expire)

    def stop_clock(self) -> None:
        """The deadline no longer matters."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, expire: Callable[[TxnError], None]) -> None:
        if self.state is ACTIVE:
            self._ended_by = DeadlineExceeded("the transaction's deadline has passed")
            expire(self._ended_by)
