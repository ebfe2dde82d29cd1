"""What a connection runs at the moment, and what may stop it (L39).

    CancelRequest, statement_timeout   57014, the statement fails        pg_cancel_backend() asks for the same
    transaction_timeout                25P04, the connection ends
    disconnect                         the task is cancelled

What answers without waiting is never interrupted. What waits runs as a task: interrupting it cancels that, and long
loops, which do not wait, poll ``CancelFlag``. After the durable point of a commit a cancel no longer reaches it
(``engine.eager.uninterrupted``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from engine.eager import eager
from engine.limits import TRANSACTION_TIMEOUT
from pgwire.backend import MaybeAwaitable
from pgwire.errors import BackendError
from planner.errors import SqlError

if TYPE_CHECKING:
    from engine.session import Session

T = TypeVar("T")


class CancelFlag:
    """What long loops poll: has the running statement been cancelled?

    Attributes:
        reason: the message of the error it ends with; empty while nobody wants it to end.
    """

    __slots__ = ("reason",)

    def __init__(self) -> None:
        """Nobody wants it to end."""
        self.reason = ""

    def is_set(self) -> bool:
        """Return whether a cancel or timeout is pending."""
        return bool(self.reason)


class Interrupts:
    """The running statement of one connection."""

    __slots__ = ("_session", "_task", "_timer", "_unending")

    def __init__(self, session: Session) -> None:
        """Nothing runs."""
        self._session = session
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unending = False  # what runs is not meant to end: statement_timeout does not count

    def reset(self) -> None:
        """A new statement comes: what concerned the one before is forgotten."""
        self._unending = False
        self._session.cancelled.reason = ""

    def run(self, coro: Coroutine[Any, Any, T]) -> MaybeAwaitable[T]:
        """Run a statement's coroutine: at once if it can, else interruptibly."""
        result = eager(coro)
        if result is not None and isinstance(result, Awaitable):
            return self._interruptible(result)
        return result

    async def _interruptible(self, work: Awaitable[T]) -> T:
        async def body() -> T:
            return await work

        loop = asyncio.get_running_loop()
        task = loop.create_task(body())
        self._task = task
        timeout_ms = self._session.derived.statement_timeout_ms
        if timeout_ms and not self._unending:
            self._timer = loop.call_later(
                timeout_ms / 1000, self._interrupt, "canceling statement due to statement timeout"
            )
        try:
            return await task
        except asyncio.CancelledError:
            if self._session.cancelled.reason:
                raise self._cancelled() from None
            if not task.done():
                task.cancel()
            raise
        finally:
            self._task = None
            self._stop_timer()

    def goes_on(self) -> None:
        """Say that the running statement is not meant to end (SUBSCRIBE): statement_timeout no longer counts."""
        self._unending = True
        self._stop_timer()

    def cancel(self) -> None:
        """CancelRequest: interrupt the running statement, if any."""
        self._interrupt("canceling statement due to user request")

    def end_transaction(self) -> bool:
        """transaction_timeout has passed: interrupt what runs; False if nothing does."""
        if self._task is None:
            return False
        self._interrupt(TRANSACTION_TIMEOUT.message)
        return True

    def close(self) -> None:
        """The connection has ended: what runs is abandoned."""
        if self._task is not None:
            self._task.cancel()

    def _interrupt(self, reason: str) -> None:
        if self._task is not None and not self._task.done():
            self._session.cancelled.reason = reason
            self._task.cancel()

    def _cancelled(self) -> SqlError | BackendError:
        cancelled = self._session.cancelled
        reason, cancelled.reason = cancelled.reason, ""
        if reason == TRANSACTION_TIMEOUT.message:
            return BackendError(TRANSACTION_TIMEOUT)
        return SqlError("57014", reason)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
