"""File descriptors: as many as connections may need are asked of the system when the server starts, not when
one is missing.

    max_connections + sockets that have not proved who they are + files of the server  <=  limit of the process

The soft limit is raised to the hard one, ``MOST`` at most; where that is too low the server says so and does
not start. Sidecars keep no descriptor while they are mapped (``txn.persist.mapping``), and parts are opened
for one read, so that the number of tables, indexes and parts does not count.

    limit of the process ─┬─ connections, and half of FILES     whoever opens one file and closes it again
                          └─ the rest, OPENED at least          ``Descriptors``: whoever opens many, or keeps what it opens, takes them first

What is taken is what may be opened at most, so that nobody meets EMFILE because of others.
"""

from __future__ import annotations

import asyncio
import resource
from collections import deque
from typing import Final

from pgwire.session.lobby import STAY

FILES: Final = 256
"""Of the server itself: log, parts and sidecars being read or written, pipes to Spark, what DuckDB opens."""

OPENED: Final = FILES // 2
"""Of these, what may be taken (``Descriptors``) where the limit of the process leaves no more."""

ROOM_S: Final = 5.0
"""How long one waits for others to give descriptors back."""

MOST: Final = 1 << 20
"""So many are asked for at most: some systems allow a thousand times that, and programs that close all they
may have take their time."""


def needed(max_connections: int) -> int:
    """Return how many descriptors a server needs."""
    return max_connections + STAY + FILES


def shortage(max_connections: int) -> str | None:
    """Raise the soft limit to the hard one. Return what to tell where that is too low, else None."""
    want = needed(max_connections)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= max(want, MOST):
        return None
    if hard != resource.RLIM_INFINITY and hard < want:
        return (
            f"max_connections = {max_connections} needs {want} file descriptors, and this process may have {hard}: "
            f"raise the limit (ulimit -n {want}; LimitNOFILE={want} of a systemd unit) or lower max_connections"
        )
    most = max(want, MOST) if hard == resource.RLIM_INFINITY else min(hard, max(want, MOST))
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return None


class Descriptors:
    """Descriptors for those who open many, or keep them: a query of DuckDB, files of cursors. Used on the event loop.

    ``taken``: of all, at present.
    """

    __slots__ = ("_others", "_waiting", "taken")

    def __init__(self, max_connections: int) -> None:
        """Nothing is taken."""
        self._others = max_connections + STAY + FILES - OPENED
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.taken = 0

    @property
    def limit(self) -> int:
        """How many there are, taken ones included; asked of the system each time, since an administrator may
        lower it.
        """
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max((MOST if soft == resource.RLIM_INFINITY else soft) - self._others, OPENED)

    def take_now(self, count: int) -> bool:
        """Take so many if nobody has to wait for it; who got them gives them back."""
        if self._waiting or self.taken + count > self.limit:
            return False
        self.taken += count
        return True

    async def take(self, count: int) -> bool:
        """Take so many, or wait until others have given back enough, ``ROOM_S`` at most; in the order of
        asking. False: they cannot be had.
        """
        if self.take_now(count):
            return True
        if count > self.limit:
            return False
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (count, future)
        self._waiting.append(entry)
        try:
            # not asyncio.timeout, which asks for a task: a statement's first steps are the socket's
            await asyncio.wait((future,), timeout=ROOM_S)
        except BaseException:
            self._leave(entry)
            raise
        if future.done():
            return True
        self._leave(entry)
        return False

    def _leave(self, entry: tuple[int, asyncio.Future[None]]) -> None:
        """Let go of a place among those that wait, or of what it was given in this same turn."""
        count, future = entry
        if future.done():
            self.give(count)
        elif entry in self._waiting:
            self._waiting.remove(entry)
            self._serve()

    def give(self, count: int) -> None:
        """Give back what was taken; the files are closed."""
        self.taken -= count
        self._serve()

    def _serve(self) -> None:
        while self._waiting:
            count, future = self._waiting[0]
            if self.taken + count > self.limit:
                return
            self._waiting.popleft()
            if not future.done():
                self.taken += count
                future.set_result(None)
