"""Looks every second at what the server's processes have: those beside it count as its own, and what is free inside it goes back to the system.

    in memory        |--------- three quarters of the ceiling ---------|------------ ceiling
      below            nothing is done
      above                                                              processes that nobody uses end; what is free goes back (a thread)
      past the ceiling                                                   statements that take more than a little end (``engine.accounts``)

Allocators keep what is freed, so that it is at hand. One statement after the other would find the server at its ceiling for nothing.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable
from typing import Final

from engine.accounts import Statements, give_back
from txn.resident import resident_bytes

LOOKS_S: Final = 1.0
"""From one look to the next."""
GROWN_BYTES: Final = 8 << 20
"""How much the process has to have grown since it has given back, to do so again."""


class Ceiling:
    """The looks of one server."""

    def __init__(self, statements: Statements, beside: Callable[[], int], *spare: Callable[[], None]) -> None:
        """``beside``: returns the private bytes of all processes beside the server. ``spare``: end those that nobody uses."""
        self._statements = statements
        self._beside = beside
        self._spare = spare
        self._left = 0

    def watch(self) -> None:
        """Look now, and every ``LOOKS_S`` from now on, as long as the running loop does: also behind a look that has failed."""
        get_running_loop().call_later(LOOKS_S, self.watch)
        self.look()

    def look(self) -> None:
        """Count what is beside the server; where much is there, end what is not used, and have what is free given back."""
        statements = self._statements
        self.look_beside()
        has = resident_bytes()[0]
        self._left = min(self._left, has)
        if statements.has() <= statements.ceiling * 3 // 4:
            return
        if statements.beside:
            for end in self._spare:
                end()
        if has >= self._left + GROWN_BYTES:
            self._left = has
            get_running_loop().run_in_executor(None, give_back)

    def look_beside(self) -> None:
        """Count what is beside the server."""
        self._statements.beside = self._beside()
