"""The garbage collector rests: what statements make has no cycles, and goes by its reference counts.

A collection walks objects while it holds the interpreter, some 100 ns for each and for each that one refers to: a list of ten million numbers is
walked three times over, the tree of a long statement or the groups of an aggregate are millions of objects, and each is walked again
in the next generation, for nothing. Counting them does not help: Python counts new objects less those that went, be they old, so where plans
or rows take the place of others it counts none, and walks all of them in the end. All sessions wait meanwhile.

So nothing is collected by itself. A statement leaves two or three objects in cycles (the scripts of tests/differential, 5,353 statements, those that
fail included; tests/engine/test_garbage.py), a session some sixty. They are collected when the process has grown by half beyond what statements and
sessions account for: at a moment when no statement runs, or, where some always do, once it has grown to ``MOST_GROWTH`` and none of them has run
for a second: what a long one has made goes with it (the tree and the code of half a megabyte of text are two hundred, of which it accounts for
some), and a server that is at its limit waits for none. What was there at the start is not walked.
"""

from __future__ import annotations

import gc
from asyncio import get_running_loop
from collections.abc import Callable, Iterable
from typing import Final

GROWTH: Final = 1.5
"""How much the process grows from one collection to the next, where no statement runs then."""

MOST_GROWTH: Final = 2.5
"""How much where statements run, short ones."""

LOOKS_S: Final = 1.0
"""From one look at the size of the process to the next."""

LOOKS: Final = 5
"""At how many in turn it has to have grown: what a statement leaves behind at its end is still being freed then."""


class Collector:
    """Collects when the process has grown by more than anybody accounts for."""

    def __init__(
        self, size: Callable[[], int], running: Callable[[], Iterable[object]], limit_bytes: int
    ) -> None:
        """Switch Python's own off. What there is by now lives as long as the process.

        ``size``: bytes of the process that no running statement accounts for; ``running``: an object for each statement that runs, the same
        one as long as it does; ``limit_bytes``: the size at which nobody is waited for.
        """
        self._size = size
        self._running = running
        self._limit_bytes = limit_bytes
        self._ran: frozenset[int] = frozenset()
        self._looks = 0
        gc.disable()
        gc.collect()
        gc.freeze()
        self._collected_at = size()

    def watch(self) -> None:
        """Look now, and every ``LOOKS_S`` from now on, as long as the running loop does."""
        self.look()
        get_running_loop().call_later(LOOKS_S, self.watch)

    def look(self) -> None:
        """Collect if it is time."""
        before, self._ran = self._ran, frozenset(map(id, self._running()))
        size = self._size()
        grown = size / max(self._collected_at, 1)
        waits = self._ran and size < self._limit_bytes and (grown < MOST_GROWTH or self._ran & before)
        self._looks = self._looks + 1 if grown >= GROWTH and not waits else 0
        if self._looks < LOOKS:
            return
        self._looks = 0
        gc.collect()
        self._collected_at = self._size()
