"""Who goes first when several connections have sent something: those that only read.

    data_received ── reads ─────────────────────────────────────► handled at once
                  └─ writes, and somebody has read lately ─► queue ─► a slice in each turn of the loop
                                                                     ▲        ▲        ▲
                                            a read that has arrived ─┴────────┴────────┘ goes first

A turn of the loop hands over everything that has arrived, one connection after the other, so a read that arrives behind
eight writers' statements would wait for all of them. Statements of connections that write are therefore put off: each
turn handles one of them, or several that take ``SLICE_S`` together, and then looks at the sockets again. A point
read then waits for one statement, not for as many as there are writers.

Even one statement that changes a row takes longer than the read that waits for it. So there are points within
the work of writers, and of the log, at which nothing is half done (``yield_to_readers``): there the sockets
of readers are looked at, which costs a microsecond, and what has arrived is handled in between. Only reads
that take no locks and finish at once are run there (``preempting`` tells who may run something else that it
has to wait for the next turn), so that to everybody else a turn of the loop stays what happens at once.

Writers are not starved: after others have had the loop for some time, the next slice is half as long. While
nobody reads, nothing is put off, and a turn costs what it did. Slices are measured in processor time: what
the machine gives to other processes makes none of them longer.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from collections.abc import Callable
from time import thread_time
from typing import Final

from pgwire.give_way import NOBODY, swap

SLICE_S: Final = 0.0001  # about one statement that changes a row by its key
READERS_S: Final = 0.1  # a connection that has read so lately may read again soon
WRITERS_SHARE: Final = 0.5  # of the time that others had since the slice before, or more


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class Turns:
    """The queue of work that gives way; one per server. All methods run on the loop.

    Attributes:
        preempting: a reader's message is being handled in the middle of others' work. Whatever could change or lock
            something that others see, or take long, must wait for a turn of its own.
    """

    __slots__ = (
        "_armed",
        "_clock",
        "_ended",
        "_epoll",
        "_queue",
        "_read_at",
        "_readers",
        "_reading",
        "_spent",
        "_until",
        "preempting",
    )

    def __init__(
        self, clock: Callable[[], float] = _loop_time, spent: Callable[[], float] = thread_time
    ) -> None:
        """``clock``: seconds of the world; ``spent``: seconds of processor time of the loop's thread."""
        self._clock = clock
        self._spent = spent
        self._queue: deque[Callable[[], None]] = deque()
        self._armed = False
        self._readers: dict[int, Callable[[], None]] = {}
        self._epoll = (
            select.epoll() if hasattr(select, "epoll") else None
        )  # else readers wait for the next turn
        self.preempting = False
        self._until = 0.0  # the running slice
        self._ended = 0.0  # when the last slice ended, or the queue began to fill
        self._reading = False  # somebody had read lately when that was last asked
        self._read_at = -READERS_S  # nobody yet

    def has_read(self) -> None:
        """A connection that only reads is about to do so."""
        self._read_at = self._clock()
        self._reading = True

    @property
    def contended(self) -> bool:
        """Whether somebody has read lately, so that writers' work is to be put off."""
        if not self._reading:  # the usual case without readers, for which the clock need not be asked
            return False
        self._reading = self._clock() - self._read_at < READERS_S
        return self._reading

    def watch(self, fd: int, handle: Callable[[], None]) -> None:
        """Look at a reader's socket, too, when writers give way; ``handle`` takes what has arrived (``read_ahead``)."""
        if self._epoll is not None:
            self._epoll.register(fd, select.EPOLLIN)
            self._readers[fd] = handle

    def unwatch(self, fd: int) -> None:
        """Leave a socket to its transport alone. It is still open."""
        if self._epoll is not None and self._readers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """The server has ended: watch nobody any more. Idempotent."""
        self._readers.clear()
        if self._epoll is not None:
            self._epoll.close()
            self._epoll = None

    def yield_to_readers(self) -> None:
        """Handle what readers have sent meanwhile. To be called where nothing is half done, within work of a
        tenth of a millisecond or more.

        Costs a look at the clock where nobody has read lately, a system call otherwise. Nothing is raised.
        What is handled is not part of the strand that gives way: laid aside with that, it would go on, or be
        cancelled, with the writer's statement.
        """
        if not self._readers or self.preempting or self._epoll is None or not self.contended:
            return
        ready = self._epoll.poll(0)
        if not ready:
            return
        self.preempting = True
        began = self._spent()
        writer = swap(NOBODY)
        try:
            for fd, _ in ready:
                handle = self._readers.get(fd)  # who came before may have ended others
                if handle is not None:
                    handle()
                if self._spent() - began >= SLICE_S:
                    break  # the others wait for the next point: who gives way is to get on, too
        finally:
            swap(writer)
            self.preempting = False
            self._until += (1 + WRITERS_SHARE) * (self._spent() - began)

    def put_off(self, work: Callable[[], None]) -> None:
        """Run ``work`` after what is queued, in one of the next turns of the loop."""
        self._queue.append(work)
        if not self._armed:
            self._armed = True
            self._ended = self._spent()
            asyncio.get_running_loop().call_soon(self._slice)

    def _slice(self) -> None:
        """Run what fits into a slice, at least one piece; the rest comes after the sockets have been looked at."""
        queue, spent = self._queue, self._spent
        now = spent()
        self._until = now + max(SLICE_S, WRITERS_SHARE * (now - self._ended))
        try:
            while queue:
                queue.popleft()()
                if spent() >= self._until:
                    break
                self.yield_to_readers()
        finally:  # whatever went wrong with one piece is not the others' fault
            self._ended = spent()
            if queue:
                asyncio.get_running_loop().call_soon(self._slice)
            else:
                self._armed = False
