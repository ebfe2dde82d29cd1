"""The garbage collector rests: what statements make has no cycles, and goes by its reference counts.

A collection walks objects while it holds the interpreter, some 100 ns for each and for each that one refers to: a list of ten million numbers is
walked three times over, the tree of a long statement or the groups of an aggregate are millions of objects, and each is walked again
in the next generation, for nothing. Counting them does not help: Python counts new objects less those that went, be they old, so where plans
or rows take the place of others it counts none, and walks all of them in the end. All sessions wait meanwhile.

So nothing is collected by itself. A statement leaves two or three objects in cycles (the scripts of tests/differential, 5,353 statements, those that
fail included; tests/engine/test_garbage.py), a session some sixty. They are collected when the process has grown by half beyond what statements and
sessions account for: at a moment when no statement runs, or once it has grown to ``MOST_GROWTH``. What was there at the start is not walked.
"""

from __future__ import annotations

import gc
from asyncio import get_running_loop
from collections.abc import Callable
from typing import Final

GROWTH: Final = 1.5
"""How much the process grows from one collection to the next, where no statement runs then."""

MOST_GROWTH: Final = 2.5
"""How much where statements run."""

LOOKS_S: Final = 1.0
"""From one look at the size of the process to the next."""


class Collector:
    """Collects when the process has grown by more than anybody accounts for."""

    def __init__(self, size: Callable[[], int], busy: Callable[[], bool]) -> None:
        """Switch Python's own off. What there is by now lives as long as the process.

        ``size``: bytes of the process that no running statement accounts for; ``busy``: whether statements run.
        """
        self._size = size
        self._busy = busy
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
        grown = self._size() / max(self._collected_at, 1)
        if grown < GROWTH or (grown < MOST_GROWTH and self._busy()):
            return
        gc.collect()
        self._collected_at = self._size()
