"""Who has how much memory: accounts in bytes, and the bounds of a statement, of all statements, and of a session.

    server ─┬─ statements    1/2 of ``memory``     what running statements have gathered, together
            │    └─ statement      1/4              rows in sorts and hash tables, values that functions make, variables
            └─ sessions      1/4                   what stays between statements, together
                 └─ session       1/8               settings, prepared statements, parameters of portals, uncommitted rows

    a slice of a statement            large values: promised             the slice ends: measured
    |--- entered --- charge(n) --- charge(n) --- (too much? measure) --- left ---|    taken += what the process has grown

Counting each value that a sort, a hash table or an aggregate keeps would cost every row something and still
miss one. So what a statement has taken is measured: the process's private memory before and after each of its
slices, in which nobody else runs on the loop; a few microseconds per slice. A large value that a function
makes (``planner.base.large``) is charged before that, as it comes, since one slice may make many; where the
promises would be too much, the process is looked at: what was dropped meanwhile costs nothing. Nobody is
refused for what Arrow has taken meanwhile: row groups, batches, parts being written and hot rows for DuckDB
have bounds of their own (``engine.base.memory``), and most of it is made for others. What threads take in the
meantime is counted with it, and memory that was free inside the process is not: the bounds are coarse, and
there to keep the server alive. What sessions keep is counted value by value.

What a statement gives back stays with the allocators where something small lies between, and costs the next
one nothing: one after the other could so take its share on top of what the last had left. So the server's
processes have a ceiling, too, helpers and mapped files included: past it no statement grows that has taken
more than a little, and no thread that works for one (``Grown``). Within one call, of a function or of what
reads and writes one value, a statement may have twice its share (``check_within``).

Short statements (``Interrupts.run``: point reads, one-row writes) are not measured; a large value of theirs is charged.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Awaitable, Callable, Generator
from threading import get_ident
from time import perf_counter
from typing import Any, Final, TypeVar

import pyarrow as pa

from pgwire.codecs.users.types import NAMES, Names
from pgwire.release import free_huge
from pgwire.voice import VOICE, Severity, Tell
from planner.base.errors import SqlError
from planner.base.large import METER
from txn.base.resident import resident_bytes

T = TypeVar("T")

LITTLE: Final = 8
"""A statement that has taken less than its share divided by this is not refused for what the process has."""
OF_ALL: Final = 4
"""What all statements together may have so, in shares of one; then it is they that fill the process, however
little each of them has."""
LEAST: Final = 512
"""What each may have even then: somebody has to look, and end others."""
COARSE: Final = 16
"""A statement is refused past its share and one of so many parts of it: two values of an eighth of ``memory``
are its share, and the measure has small things with them."""
WITHIN_A_CALL: Final = 2
"""How many of its shares a statement may have within one call."""
LOOKS_S: Final = 0.005
"""From one look at what a thread has taken to the next."""
ROOM_S: Final = 5.0
"""How long a statement waits for others to end where all together have too much."""
HINT: Final = (
    'A statement may have a quarter of the setting "memory", all together a half (docs/guide/operate/memory.md). '
    "Look for a query that yields more than meant, or raise the setting."
)


def megabytes(size: int) -> str:
    """Return a size as errors say it."""
    return f"{size >> 20} MB" if size >= 10 << 20 else f"{size >> 10} kB"


_libc = ctypes.CDLL(None)
_trim = getattr(_libc, "malloc_trim", None)  # glibc's
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
RETURNED_BYTES: Final = 4 << 20
"""What is freed goes back to the system at once if it was allocated as one piece of so much."""


OF_ARENA: Final = 128 << 20
"""How much of what statements may have there is for each of the C library's arenas; there are two at least."""


def return_large(limit: int) -> None:
    """Have large pieces of memory returned when they are freed; glibc would keep up to 32 MB of each, once
    one has been freed.

    ``limit``: bytes that statements may have together. Each arena, of which glibc makes eight for each
    processor, keeps some of what its threads have freed.
    """
    mallopt = getattr(_libc, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, RETURNED_BYTES)
        mallopt(_M_ARENA_MAX, min(max(limit // OF_ARENA, 2), 1 << 20))


_left = 0  # what the process had when it last gave back, or has had since
_gave_at = 0.0  # perf_counter() then
GROWN_BYTES: Final = 4 << 20
"""How much the process has to have grown since it gave back, to do so again at once."""
AGAIN_S: Final = 0.1
"""After which it does so again in any case: what was used then may be free by now."""


def give_back() -> None:
    """Let go of memory that is free inside the process: some milliseconds, so only before somebody is
    refused, and not over and over for nothing.
    """
    global _left, _gave_at
    has = resident_bytes()[0]
    _left = min(_left, has)
    if 0 < has < _left + GROWN_BYTES and perf_counter() < _gave_at + AGAIN_S:
        return
    free_huge()
    pa.default_memory_pool().release_unused()
    if _trim is not None:
        _trim(0)
    _left, _gave_at = resident_bytes()[0], perf_counter()


class Statements:
    """What all running statements have taken.

    Attributes:
        limit: bytes that all may take together. each: bytes that one may take. ceiling: bytes in memory of
        the server's processes, mapped files included, past which a statement that has taken more than a
        little of its share (``little``) takes no more. taken: bytes taken now. lent: bytes that processes
        beside the server may take for them now (``engine.base.loop.outside``). beside: bytes that all
        processes beside the server had when they were last looked at (``engine.base.loop.ceiling``). last:
        whose slice was the last one.
    """

    __slots__ = ("_waiting", "beside", "ceiling", "each", "last", "lent", "limit", "taken")

    def __init__(self, limit: int, each: int, ceiling: int = 1 << 62) -> None:
        """Nothing is taken."""
        self.limit = limit
        self.each = each
        self.ceiling = ceiling
        self.taken = 0
        self.lent = 0
        self.beside = 0
        self.last: Account | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def crowded(self) -> bool:
        """Whether the next statement has to wait."""
        return self.taken + self.lent > self.limit

    @property
    def elsewhere(self) -> int:
        """Bytes of the processes beside the server, as far as they have them or may yet."""
        return max(self.lent, self.beside)

    def little(self, limit: int) -> int:
        """Return up to how many bytes a statement with a share of ``limit`` goes on where the processes are
        past the ceiling.
        """
        return min(limit // LITTLE, max(self.each // OF_ALL - self.taken, limit // LEAST))

    def lend(self, account: Account | None, most: int) -> int:
        """Return how many bytes a process may take for a statement, up to ``most``: what the statement may
        still have, and the server.

        A little is always lent, as no statement is refused that has taken a little. They are lent until ``returned``.
        """
        room = min(most, self.left(most) * 2 // 3)  # what it answers comes on top
        if account is not None:
            room = min(room, account.limit - account.taken)
        room = max(room, self.each // LITTLE)
        self.lent += room
        return room

    def returned(self, lent: int) -> None:
        """A process has ended what it was lent memory for."""
        self.lent -= lent
        self.freed()

    def freed(self) -> None:
        """Something was given back: let those look again who wait."""
        if self._waiting and not self.crowded:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def room(self) -> None:
        """Wait until the next statement may begin. SqlError 53200 where it has waited for ``ROOM_S``."""
        loop = asyncio.get_running_loop()
        end = loop.time() + ROOM_S
        while self.crowded:
            future = loop.create_future()
            self._waiting.append(future)
            try:
                await asyncio.wait_for(future, max(end - loop.time(), 0.001))
            except TimeoutError:
                raise self.too_much() from None

    def has(self) -> int:
        """Return the bytes in memory of the server's processes: their own, and those of mapped files."""
        return sum(resident_bytes()) + self.elsewhere

    def left(self, wanted: int) -> int:
        """Return how many bytes the processes may still take; where that is less than is ``wanted``, once
        what is free has been given back.
        """
        left = self.ceiling - self.has()
        if left < wanted:
            give_back()
            left = self.ceiling - self.has()
        return left

    def check_ceiling(self, more: int) -> None:
        """For what no account counts: SqlError 53200 where the process has no room for ``more`` bytes, once
        what is free has been given back.
        """
        if self.has() + more > self.ceiling:
            give_back()
            has = self.has()
            if has + more > self.ceiling:
                raise self.past_ceiling(has)

    def past_ceiling(self, has: int) -> SqlError:
        """Return 53200 for the process."""
        return SqlError(
            "53200",
            "out of memory",
            detail=f"The server has {megabytes(has)}; {megabytes(self.ceiling)} are allowed.",
            hint=HINT,
        )

    def too_much(self, more: int = 0) -> SqlError:
        """Return 53200 for all statements together."""
        return SqlError(
            "53200",
            "out of memory",
            detail=f"All statements together have {megabytes(self.taken + self.lent + more)}; {megabytes(self.limit)} are allowed.",
            hint=HINT,
        )


class Account:
    """What one session's running statement has taken.

    Attributes:
        limit: bytes it may take: the server's share of a statement, or less where ``statement_memory`` says
        so. taken: bytes measured so far. promised: bytes of large values made since the last measurement.
        names: what the session calls objects of the catalog. hears: takes what functions have to say beside
        their results. decided: whether what the statement has done is durable: nobody is refused then, since
        what is left is its answer, which is sent in parts.
    """

    __slots__ = (
        *(
            "_arrow",
            "_base",
            "_mapped",
            "_measures",
            "decided",
            "hears",
            "limit",
            "most",
            "names",
            "promised",
            "statements",
            "taken",
        ),
    )

    def __init__(self, statements: Statements) -> None:
        """Nothing is taken."""
        self.statements = statements
        self.limit = statements.each
        self.taken = 0
        self.promised = 0
        self.most = 0  # that it had at once, since its session began
        self._mapped = 0  # of files, then
        self._base = 0  # what the process had when the slice began, or the last measurement was made
        self._measures = False
        self._arrow = 0  # what Arrow had when it had taken nothing
        self.names = Names()
        self.hears: Tell = lambda severity, sqlstate, message: None
        self.decided: Callable[[], bool] = lambda: False

    # -- a slice -------------------------------------------------------------------------------------

    def begins(self) -> None:
        """A slice of a statement that may take long begins.

        What the process has let go of since its last one, where nobody else has had one, is its own: rows
        that a thread has written and freed.
        """
        now, self._mapped = resident_bytes()
        statements = self.statements
        if not self.taken:
            self._arrow = pa.total_allocated_bytes()
        elif now < self._base and statements.last is self:
            less = min(self._base - now, self.taken)
            self.taken -= less
            statements.taken -= less
            statements.freed()
        self._base = now
        self._measures = True
        statements.last = self

    def ends(self) -> None:
        """A slice has ended."""
        if self._measures:
            self._measure()
            self._measures = False

    def check(self, shares: int = 1) -> None:
        """Between steps of what gathers: SqlError 53200 where the statement has more than ``shares`` shares by now."""
        if not self._measures:
            self.begins()
        self._measure()
        self._check(0, shares)

    def _measure(self) -> None:
        now, self._mapped = resident_bytes()
        grown = max(self.taken + now - self._base, 0) - self.taken
        self._base = now
        self.promised = 0
        self.taken += grown
        self.most = max(self.most, self.taken)
        self.statements.taken += grown

    def charge(self, size: int, ahead: bool = False) -> None:
        """Count a large value that was made, or (``ahead``) ask whether it may be. SqlError 53200."""
        if not self._measures:
            self.begins()
        statements = self.statements
        held = self.promised + size
        if (
            self.taken + held > self.limit
            or statements.taken + statements.lent + held > statements.limit
            or self._base + self._mapped + statements.elsewhere + held > statements.ceiling
        ):
            self._measure()
            self._check(size if ahead else 0)
            return
        if not ahead:
            self.promised = held

    def _check(self, more: int, shares: int = 1) -> None:
        if self.decided():
            return
        statements = self.statements
        limit = self.limit * shares if shares > 1 else self.limit + self.limit // COARSE
        more_of_all = more + statements.lent
        high = (
            self.taken + more > statements.little(self.limit)
            and self._base + self._mapped + statements.elsewhere + more > statements.ceiling
        )
        if (
            high
            or self.taken + more > limit
            or (self.taken and statements.taken + more_of_all > statements.limit)
        ):
            give_back()  # what allocators keep for later is nobody's
            self._measure()
        others = max(pa.total_allocated_bytes() - self._arrow, 0)
        if max(self.taken - others, 0) + more > limit:
            raise SqlError(
                "53200",
                "out of memory",
                detail=f"The statement has {megabytes(self.taken)}"
                + (f" and asks for {megabytes(more)} more" if more else "")
                + f"; {megabytes(self.limit)} are allowed.",
                hint=HINT,
            )
        if more + self.taken and statements.taken + more_of_all > statements.limit:
            raise statements.too_much(more)
        has = self._base + self._mapped + statements.elsewhere
        if high and has - others + more > statements.ceiling:
            raise statements.past_ceiling(has)

    @property
    def used(self) -> bool:
        """Whether there is anything to give back."""
        return self._measures or self.taken > 0

    # -- a statement -----------------------------------------------------------------------------------

    def clear(self) -> None:
        """The statement has ended, and nothing of it is left."""
        self._measures = False
        self.promised = 0
        if self.statements.last is self:
            self.statements.last = None
        if self.taken:
            self.statements.taken -= self.taken
            self.taken = 0
            self.statements.freed()


class Grown:
    """What the process grows by while a thread works beside the loop; nobody's account, since others run meanwhile."""

    __slots__ = ("_began", "_looks_at")

    def __init__(self) -> None:
        """It begins to work."""
        self._began = resident_bytes()[0]
        self._looks_at = 0.0

    def check(self) -> None:
        """Called as often as one likes. SqlError 53200 where the process has no room, and has grown by more
        than a little.
        """
        if perf_counter() >= self._looks_at:
            self._looks_at = perf_counter() + LOOKS_S
            if resident_bytes()[0] - self._began > _statements.each // LITTLE:
                _statements.check_ceiling(0)

    def ends(self) -> None:
        """It has ended: where it took much, what it has let go of goes back to the system."""
        if resident_bytes()[0] - self._began > _statements.each // LITTLE:
            give_back()


class Held:
    """What a session keeps between statements: bytes by what they are for. ``limit``: of one session, in bytes."""

    __slots__ = ("_sessions", "bytes", "parts")

    def __init__(self, sessions: Sessions) -> None:
        """Nothing is kept."""
        self._sessions = sessions
        self.parts: dict[str, int] = {}
        self.bytes = 0

    def hold(self, what: str, size: int) -> None:
        """Keep ``size`` bytes for ``what``, in place of what was kept for it. SqlError 53200: then all is as it was."""
        more = size - self.parts.get(what, 0)
        sessions = self._sessions
        if more > 0:
            if self.bytes + more > sessions.each:
                raise self._too_much("The session keeps", self.bytes + more, sessions.each)
            if sessions.bytes + more > sessions.limit:
                raise self._too_much("All sessions together keep", sessions.bytes + more, sessions.limit)
        if size:
            self.parts[what] = size
        else:
            self.parts.pop(what, None)
        self.bytes += more
        sessions.bytes += more

    @staticmethod
    def _too_much(who: str, size: int, limit: int) -> SqlError:
        return SqlError(
            "53200",
            "out of memory",
            detail=f"{who} {megabytes(size)} between statements; {megabytes(limit)} are allowed.",
            hint="Settings, prepared statements, parameters of portals and rows of the transaction count. "
            'A session may keep an eighth of the setting "memory", all together a quarter.',
        )

    def release(self) -> None:
        """The session has ended."""
        self._sessions.bytes -= self.bytes
        self.bytes = 0
        self.parts.clear()


class Sessions:
    """What all sessions keep. ``limit`` and ``each`` in bytes: for all, and for one."""

    __slots__ = ("bytes", "each", "limit")

    def __init__(self, limit: int, each: int) -> None:
        """Nothing is kept."""
        self.limit = limit
        self.each = each
        self.bytes = 0


# --- whose slice it is ----------------------------------------------------------------------------

_running: Account | None = None
_NO_NAMES = Names()
_loop_thread = 0
_statements = Statements(1 << 62, 1 << 62)  # of the server; until it is there, nothing is bounded


def enter(account: Account | None) -> Account | None:
    """Let what is made be charged to an account; returns what it was, which the caller puts back in a ``finally``."""
    global _running
    was, _running = _running, account
    return was


def running() -> Account | None:
    """Return whose slice it is; None where nobody's is."""
    return _running


def check_within() -> None:
    """Look what the statement that runs has by now, within one call of a function or codec. SqlError 53200.

    Reading or writing one value has several copies of it for a moment: a statement's share holds two values
    of an eighth of ``memory``, and what is in between may come to as much again.
    """
    if _running is not None:
        _running.check(WITHIN_A_CALL)


def check() -> None:
    """Look what the statement that runs has by now. SqlError 53200."""
    if _running is not None:
        _running.check()


def _charge(size: int, ahead: bool) -> None:
    """Charge whoever runs; in a thread beside the loop, or outside statements, a value is compared with what
    one may have, and with what the server has left.
    """
    if _running is not None and get_ident() == _loop_thread:
        _running.charge(size, ahead)
        return
    statements = _statements
    if size > statements.each:
        raise SqlError(
            "53200",
            "out of memory",
            detail=f"A value of {megabytes(size)}; {megabytes(statements.each)} are allowed.",
            hint=HINT,
        )
    if size > statements.each // LITTLE:
        statements.check_ceiling(size if ahead else 0)


def _room() -> int:
    """Return how many bytes a statement may take before anything is given back."""
    return min(_statements.each, _statements.ceiling - _statements.has())


def _tell(severity: Severity, sqlstate: str, message: str) -> None:
    """Have the session that runs hear a notice; in a thread beside the loop nobody does."""
    if _running is not None and get_ident() == _loop_thread:
        _running.hears(severity, sqlstate, message)


def _names() -> Names:
    """Return what the session that runs calls objects; nothing is known in a thread beside the loop. Short
    statements have none.
    """
    return _running.names if _running is not None and get_ident() == _loop_thread else _NO_NAMES


def install(statements: Statements) -> None:
    """Have large values charged, and users' types called by their names. The calling thread is the loop's."""
    global _statements, _loop_thread
    _statements, _loop_thread = statements, get_ident()
    return_large(statements.limit)
    METER.charge, METER.each, METER.room = _charge, statements.each, _room
    VOICE.tell = _tell
    NAMES.find = lambda oid: _names().find(oid)
    NAMES.show = lambda oid, value: _names().show(oid, value)
    NAMES.read = lambda oid, text: _names().read(oid, text)


class Charged(Awaitable[T]):
    """A statement's work whose slices are charged to its account. They are measured here, and judged where
    they can fail (``check``).
    """

    __slots__ = ("_account", "_work")

    def __init__(self, work: Awaitable[T], account: Account) -> None:
        self._work = work
        self._account = account

    def close(self) -> None:
        """Give it up: nobody waits for the rest."""
        close = getattr(self._work, "close", None)
        if close is not None:
            close()

    def __await__(self) -> Generator[Any, Any, T]:
        account = self._account
        work = self._work.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            was = enter(account)
            account.begins()
            pending: Any = None
            try:
                if error is None:
                    pending = work.send(value)
                else:
                    pending = work.throw(error)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                error = None  # it has this frame, which would have it (``Failed.result``)
                enter(was)
                account.ends()
            value = None
            try:
                value = yield pending
            except GeneratorExit:
                work.close()
                raise
            except BaseException as thrown:
                error = thrown
