"""Queries of DuckDB that end together, as the cursors of a transaction do: some are closed in each turn of
the event loop.

    COMMIT ──> 3,000 cursors ──add──> the first ones at once, the rest by the queue ──> the loop, ``AT_ONCE``
    in each turn

Closing a connection to DuckDB and its reader takes 30 µs to some hundred, so that those of one session would
hold all others up. What a query holds beside them (descriptors, snapshots of files) is given back with them.

For the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 4
"""Queries that are closed in one turn."""


class Closings:
    """Ends of queries that are still to be done."""

    def __init__(self) -> None:
        """There are none."""
        self._left: deque[Callable[[], None]] = deque()
        self._done = 0  # in this turn
        self._waiting = False  # for the next one

    def add(self, close: Callable[[], None]) -> None:
        """Close a query, now or in a turn to come; where no loop runs now. ``close`` is called once."""
        loop = asyncio._get_running_loop()
        if loop is not None and self._done >= AT_ONCE:
            self._left.append(close)
            return
        if loop is not None:
            self._done += 1
            self._wait(loop)
        close()

    def finish(self) -> None:
        """Close all that are left."""
        while self._left:
            self._left.popleft()()

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._waiting:
            self._waiting = True
            loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._waiting = False
        self._done = 0
        try:
            while self._left and self._done < AT_ONCE:
                self._done += 1
                self._left.popleft()()
        finally:  # one that fails does not keep the others
            if self._left:
                self._wait(asyncio.get_running_loop())
            else:
                self._done = 0
