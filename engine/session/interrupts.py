"""What a connection runs at the moment, and what may stop it (L39).

    CancelRequest, statement_timeout   57014, the statement fails        pg_cancel_backend() asks for the same
    transaction_timeout                25P04, the connection ends
    disconnect                         the task is cancelled

What answers without waiting, within a slice of time, is never interrupted. What waits runs as a task, and so
does what was laid aside in the middle of a call (``engine.base.loop.strands``): interrupting it cancels the
task, and it meets that where it is, however deep. A commit is taken back while it is queued; once its log
entry is being written a cancel no longer reaches it (``engine.session.transaction.block``). From then until
the statement is answered nothing does: what is durable is answered with success (``CancelFlag.decided``). An
interrupt that comes meanwhile is met where the Query message or the procedure goes on behind the commit, and
forgotten where nothing follows, as in PostgreSQL. Short statements are never met while they run: a cancel
that comes between two messages is kept for the next one of the batch (``unmet``).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.base.accounts import Charged, enter
from engine.base.eager import LaidAside, OnStrand, Started, call_on_strand, eager, on_strand
from engine.base.slices import SLICE_S
from engine.session.time_limits import TRANSACTION_TIMEOUT
from pgwire.backend import MaybeAwaitable
from pgwire.errors import BackendError
from pgwire.give_way import between, is_safe
from pgwire.release import release_error
from planner.base.errors import SqlError

if TYPE_CHECKING:
    from engine.session.session import Session

T = TypeVar("T")

TIMEOUT: Final = "canceling statement due to statement timeout"
CANCELED: Final = "canceling statement due to user request"


class CancelFlag:
    """What long loops poll: has the running statement been cancelled?

    Attributes:
        reason: the message of the error it ends with; empty while nobody wants it to end.
        deadline_s: when statement_timeout is over, on the loop's clock; 0 for never.
        decided: its commit is durable, so that it can only succeed; until the next statement begins.
    """

    __slots__ = ("deadline_s", "decided", "reason", "slice_ends")

    def __init__(self) -> None:
        """Nobody wants it to end."""
        self.reason = ""
        self.deadline_s = 0.0
        self.decided = False
        self.slice_ends = 0.0  # of ``turn``; 0 until it is asked for the first time

    def check(self) -> None:
        """Raise SqlError 57014 (25P04 ends the connection) if it should have ended; between steps that hold
        the loop up, when no timer can fire.
        """
        if self.decided:
            return
        if not self.reason and self.deadline_s and asyncio.get_running_loop().time() > self.deadline_s:
            self.reason = TIMEOUT
        if self.reason:
            raise self.met()

    def met(self) -> SqlError | BackendError:
        """Return the error that what runs ends with, where it is to end. Who catches it goes on without a
        timeout, as in PostgreSQL.
        """
        reason, self.reason = self.reason, ""
        if reason == TRANSACTION_TIMEOUT.message:
            return BackendError(TRANSACTION_TIMEOUT)
        if reason == TIMEOUT:
            self.deadline_s = 0.0
        return SqlError("57014", reason)

    async def turn(self) -> None:
        """Between steps, each of which may be over without a wait: let others go on once a slice of time is
        used up, and notice a cancel.

        The first call since the statement began starts the slice. Raises SqlError 57014.
        """
        if self.reason:
            self.check()
        if is_safe():
            between()
            return
        now = time.monotonic()
        if not self.slice_ends:
            self.slice_ends = now + SLICE_S
        elif now > self.slice_ends:
            self.check()
            await asyncio.sleep(0)
            self.slice_ends = time.monotonic() + SLICE_S

    def is_set(self) -> bool:
        """Return whether a cancel or timeout is pending."""
        return bool(self.reason) and not self.decided

    def is_decided(self) -> bool:
        """Return ``decided``."""
        return self.decided

    def go_on(self) -> None:
        """What is committed was not all: the statement that follows may be interrupted again. Raises SqlError 57014."""
        self.decided = False
        self.check()


class Interrupts:
    """The running statement of one connection."""

    __slots__ = ("_asked", "_begun", "_ends", "_late", "_session", "_task", "_timer", "_unending")

    def __init__(self, session: Session) -> None:
        """Nothing runs."""
        self._session = session
        self._task: asyncio.Task[Any] | None = None
        self._asked = 0  # how often the task was cancelled for a cancel or a timeout, and not for the end of the connection
        self._ends = False  # the connection is to end
        self._timer: asyncio.TimerHandle | None = None
        self._unending = False  # what runs is not meant to end: statement_timeout does not count
        self._begun = False  # something has begun whose task, made in the next turn of the loop, has still to take its first step
        self._late = False  # the last cancel came where nothing ran

    def reset(self) -> None:
        """A new statement comes: what concerned the one before is forgotten."""
        self._unending = self._begun = False
        cancelled = self._session.cancelled
        cancelled.reason = ""
        cancelled.slice_ends = 0.0
        cancelled.decided = False
        self._set_deadline()

    def next_statement(self) -> None:
        """The next statement of a Query begins: statement_timeout, as it is set by now, counts for it alone.

        Raises SqlError 57014 for a cancel that came while the one before was past being interrupted.
        """
        self._unending = False
        self._set_deadline()
        self._stop_timer()
        if self._task is not None:
            self._start_timer()
        cancelled = self._session.cancelled
        if cancelled.reason == TIMEOUT:  # of the one before, which was committed
            cancelled.reason = ""
        cancelled.go_on()

    def _set_deadline(self) -> None:
        timeout_ms = self._session.derived.statement_timeout_ms
        self._session.cancelled.deadline_s = (
            asyncio.get_running_loop().time() + timeout_ms / 1000 if timeout_ms else 0.0
        )

    def run(self, coro: Coroutine[Any, Any, T], *, short: bool = False) -> MaybeAwaitable[T]:
        """Run a statement's coroutine: at once if it can, else interruptibly. In the middle of others' work
        it has to wait.

        ``short``: nothing that it computes takes long or is large, so that it needs neither strand nor account.
        """
        if self._session.db.lease is not None:
            coro = self._as_leader(coro)
        if self._session.db.turns.preempting:
            self._begun = True
            return self._interruptible(coro if short else Charged(OnStrand.of(coro), self._session.account))
        if short:
            begun = eager(coro)
            if type(begun) is Started:
                self._begun = True
                return self._interruptible(begun)
            return begun
        account = self._session.account
        was = enter(account)
        try:
            result = on_strand(coro)
        except BaseException:
            self._give_back()
            raise
        finally:
            enter(was)
        if type(result) is OnStrand:
            self._begun = True
            return self._interruptible(Charged(result, account))
        self._give_back()
        return result

    def _give_back(self) -> None:
        """What ran has ended: what it had gathered is given back, unless something is open that goes on
        reading, or the client has still to take a row of it.
        """
        account = self._session.account
        if account.used and not self._session.reads_on:
            self._session.out.when_complete(self._clear)

    def _clear(self) -> None:
        if self._task is None:  # else it is what runs that gives back
            self._session.account.clear()

    def call(self, function: Callable[..., T], *args: Any) -> MaybeAwaitable[T]:
        """Call what may take long: at once if it can, else interruptibly."""
        account = self._session.account
        was = enter(account)
        try:
            result = call_on_strand(function, *args)
        except BaseException:
            self._give_back()
            raise
        finally:
            enter(was)
        if type(result) is LaidAside:
            self._begun = True
            return self._interruptible(Charged(result, account))
        self._give_back()
        return result

    @property
    def waiting(self) -> bool:
        """Whether what runs had to wait, and goes on as a task."""
        return self._task is not None

    async def _as_leader(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a statement where another server may come to lead meanwhile (``Database.reason``)."""
        try:
            return await work
        except Exception as error:
            reason = await self._session.db.reason(error)
            if reason is error:
                raise
            raise reason from error

    async def _interruptible(self, work: Awaitable[T]) -> T:
        """Wait for a statement in a task of its own, until it has ended: also of a caller that is cancelled.

        An interrupt that comes before the task's first step is met where the statement waits already: it has
        to clean up, and is not cancelled at all where it commits.
        """
        interrupted = False

        async def body() -> T:
            self._begun = False
            if interrupted or self._session.cancelled.reason:
                self._asked += not interrupted
                task.cancel()
            return await work

        loop = asyncio.get_running_loop()
        self._begun = True
        task: asyncio.Task[T] = loop.create_task(body())
        self._task = task
        self._asked = 0
        self._start_timer()
        try:
            while True:
                try:
                    return await task
                except asyncio.CancelledError as error:
                    if task.done() and not task.cancelled():
                        return task.result()  # whoever waited was cut short, what it waited for has ended
                    if not task.done():
                        task.cancel()
                    elif self._begun:
                        interrupted = True
                        task = self._task = loop.create_task(body())
                        self._asked = 0
                    elif self._session.cancelled.reason:
                        release_error(error)
                        raise self._session.cancelled.met() from None
                    else:
                        raise
        finally:
            self._task = None
            self._begun = False
            self._stop_timer()
            self._give_back()

    def goes_on(self) -> None:
        """Say that the running statement is not meant to end (SUBSCRIBE): statement_timeout no longer counts."""
        self._unending = True
        self._session.cancelled.deadline_s = 0.0
        self._stop_timer()

    def cancel(self, *, ends: bool = False) -> None:
        """CancelRequest: interrupt the running statement, if any, or the commit that a Sync waits for.
        ``ends``: nothing may catch it.
        """
        self._ends |= ends
        txn = self._session.block.txn
        if self._task is not None or self._begun:
            self._late = not self._interrupt(CANCELED)
        else:
            self._late = txn is None or self._session.out.lost or not txn.withdraw()

    def unmet(self) -> bool:
        """Tell, once, whether the last cancel is still to be met: nothing ran, or what ran has ended, past
        being interrupted.
        """
        cancelled = self._session.cancelled
        unmet = self._late or cancelled.reason == CANCELED
        self._late = False
        if unmet:
            cancelled.reason = ""
        return unmet

    def end_transaction(self) -> bool:
        """transaction_timeout has passed: interrupt what runs; False if nothing does."""
        if self._task is None and not self._begun:
            return False
        self._interrupt(TRANSACTION_TIMEOUT.message)
        return True

    def close(self) -> None:
        """The connection has ended: what runs is abandoned."""
        if self._task is not None:
            self._task.cancel()

    def _interrupt(self, reason: str) -> bool:
        """Have what runs end; False where it has, and only its outcome is still to be handed on."""
        cancelled = self._session.cancelled
        if not self._begun and (self._task is None or self._task.done()):
            return False
        if cancelled.reason != TRANSACTION_TIMEOUT.message:  # it ends the connection, whatever else comes
            cancelled.reason = reason
        if not self._begun and self._task is not None and not cancelled.decided:
            self._asked += 1
            self._task.cancel()
        return True

    async def caught(self, error: BaseException) -> Exception | None:
        """Return what a handler may take of a cancel or timeout, which what runs has met as ``error``; it goes on then.

        None where it has to end all the same: its connection ends, or it is a part of something that ends.
        """
        task, cancelled = self._task, self._session.cancelled
        if self._ends or cancelled.reason == TRANSACTION_TIMEOUT.message:
            return None
        if isinstance(error, Exception) and not self._asked:
            return error  # raised by what runs itself, or met before there was a task
        if task is None or asyncio.current_task() is not task or task.cancelling() > self._asked:
            return None
        if isinstance(error, Exception):  # met ahead of the task's own cancel, which comes where it waits
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            if self._ends or task.cancelling() > self._asked:
                raise asyncio.CancelledError
        elif not cancelled.reason:
            return None
        while self._asked:
            task.uncancel()
            self._asked -= 1
        return cancelled.met() if cancelled.reason else error if isinstance(error, Exception) else None

    def _start_timer(self) -> None:
        deadline_s = self._session.cancelled.deadline_s
        if deadline_s and not self._unending:
            self._timer = asyncio.get_running_loop().call_at(deadline_s, self._interrupt, TIMEOUT)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
