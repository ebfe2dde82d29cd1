"""Who goes first when several connections have sent something: those that only read.

    data_received ── reads ─────────────────────────────────────► handled at once
                  └─ writes, and somebody has read lately ─► queue ─► a slice in each turn of the loop

A turn of the loop hands over everything that has arrived, one connection after the other, so a read that arrives behind
eight writers' statements would wait for all of them. Statements of connections that write are therefore put off: each
turn handles one of them, or several that take ``SLICE_S`` together, and then looks at the sockets again. A point
read then waits for one statement, not for as many as there are writers.

Writers are not starved: after others have had the loop for some time, the next slice is half as long. While nobody
reads, nothing is put off, and a turn costs what it did. Slices are measured in processor time: what the machine gives to
other processes makes none of them longer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import thread_time
from typing import Final

SLICE_S: Final = 0.0001  # about one statement that changes a row by its key
READERS_S: Final = 0.1  # a connection that has read so lately may read again soon
WRITERS_SHARE: Final = 0.5  # of the time that others had since the slice before, or more


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class Turns:
    """The queue of work that gives way; one per server. All methods run on the loop."""

    __slots__ = ("_armed", "_clock", "_ended", "_queue", "_read_at", "_spent")

    def __init__(
        self, clock: Callable[[], float] = _loop_time, spent: Callable[[], float] = thread_time
    ) -> None:
        """``clock``: seconds of the world; ``spent``: seconds of processor time of the loop's thread."""
        self._clock = clock
        self._spent = spent
        self._queue: deque[Callable[[], None]] = deque()
        self._armed = False
        self._ended = 0.0  # when the last slice ended, or the queue began to fill
        self._read_at = -READERS_S  # nobody yet

    def has_read(self) -> None:
        """A connection that only reads is about to do so."""
        self._read_at = self._clock()

    @property
    def contended(self) -> bool:
        """Whether somebody has read lately, so that writers' work is to be put off."""
        return self._clock() - self._read_at < READERS_S

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
        until = now + max(SLICE_S, WRITERS_SHARE * (now - self._ended))
        try:
            while queue:
                queue.popleft()()
                if spent() >= until:
                    break
        finally:  # whatever went wrong with one piece is not the others' fault
            self._ended = spent()
            if queue:
                asyncio.get_running_loop().call_soon(self._slice)
            else:
                self._armed = False
