"""Connections that have not proved who they are: few, and never in the way of those that have.

    accept ──► lobby ──(who it is, is known)──► a place among ``max_connections``
                 │
                 └── too many: the one that has been there longest goes

Nobody keeps out by holding sockets open: whoever comes is heard, and somebody who has been silent for longer
makes room. ``STAY`` may stay. Where there are free places, as many more may be there for their first second:
many clients of one application that connect at once are not sent away (only what they could come to is as
large as that).

Their time has another end (``ServerConfig.authentication_timeout_s``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio

STAY: Final = 32
"""Connections that may be in the lobby for as long as authentication may take."""
RUSH_S: Final = 1.0
"""How long those beyond them may, where places are free."""


class Waiting(Protocol):
    """A session that has not proved who it is."""

    def crowded_out(self) -> None:
        """End it: somebody else needs the place."""


class Lobby:
    """Who is there, the longest first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, free: Callable[[], int]) -> None:
        """Nobody is. ``free()``: how many places there are for those who come through."""
        self._loop = loop
        self._free = free
        self._since: dict[Waiting, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many are there."""
        return len(self._since)

    def enter(self, session: Waiting) -> None:
        """Let somebody in; whoever has been there for too long then is sent away."""
        self._since[session] = self._loop.time()
        if len(self._since) > STAY:
            self._make_room()

    def leave(self, session: Waiting) -> None:
        """Forget a session: it has come through, or has gone. Idempotent."""
        self._since.pop(session, None)

    def _make_room(self) -> None:
        while len(self._since) > STAY:
            session, since = next(iter(self._since.items()))
            left_s = since + RUSH_S - self._loop.time()
            if left_s > 0 and len(self._since) <= STAY + self._free():
                if self._timer is None:
                    self._timer = self._loop.call_later(left_s, self._look_again)
                return
            del self._since[session]
            session.crowded_out()

    def _look_again(self) -> None:
        self._timer = None
        self._make_room()

    def close(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
