"""Looks every second at what the server's processes have: those beside it count as its own, and what is free
inside it goes back to the system.

    in memory        |--------- three quarters of the ceiling ---------|------------ ceiling
      below            nothing is done
      above                                                              processes that nobody uses end; what is free goes back (a thread)
      above seven eighths, at most every half minute                     plans are forgotten: between what statements gave back they keep all of it
      past the ceiling                                                   statements that take more than a little end (``engine.base.accounts``)

Allocators keep what is freed, so that it is at hand. One statement after the other would find the server at
its ceiling for nothing.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable, Sequence
from typing import Final

from engine.base.accounts import Statements, give_back
from txn.base.resident import resident_bytes

LOOKS_S: Final = 1.0
"""From one look to the next."""
FORGETS_S: Final = 30.0
"""From one time that plans are forgotten to the next: a server that needs all it has is not to plan each
statement anew."""
GROWN_BYTES: Final = 8 << 20
"""How much the process has to have grown since it has given back, to do so again."""


class Ceiling:
    """The looks of one server."""

    def __init__(
        self,
        statements: Statements,
        beside: Callable[[], int],
        *,
        end_idle: Sequence[Callable[[], None]],
        forget: Callable[[], None],
    ) -> None:
        """Arguments that are called.

        beside: returns the private bytes of all processes beside the server.
        end_idle: each ends those of them that nobody uses.
        forget: lets go of what is kept for statements to come.
        """
        self._statements = statements
        self._beside = beside
        self._end_idle = end_idle
        self._forget = forget
        self._forgot_at = -FORGETS_S
        self._left = 0

    def watch(self) -> None:
        """Look now, and every ``LOOKS_S`` from now on, as long as the running loop does: also behind a look
        that has failed.
        """
        get_running_loop().call_later(LOOKS_S, self.watch)
        self.look()

    def look(self) -> None:
        """Count what is beside the server; where much is there, end what is not used, and have what is free
        given back.
        """
        statements = self._statements
        self.look_beside()
        has = resident_bytes()[0]
        self._left = min(self._left, has)
        if statements.has() <= statements.ceiling * 3 // 4:
            return
        loop = get_running_loop()
        for end in self._end_idle:
            end()
        if statements.has() > statements.ceiling * 7 // 8 and loop.time() >= self._forgot_at + FORGETS_S:
            self._forgot_at = loop.time()
            self._forget()
        if has >= self._left + GROWN_BYTES:
            self._left = has
            loop.run_in_executor(None, give_back)

    def look_beside(self) -> None:
        """Count what is beside the server."""
        self._statements.beside = self._beside()
