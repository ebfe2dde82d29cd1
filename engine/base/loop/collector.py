"""The garbage collector rests: what statements make has no cycles, and goes by its reference counts.

A collection walks objects while it holds the interpreter, some 100 ns for each and for each that one refers
to: a list of ten million numbers is walked three times over, the tree of a long statement or the groups of an
aggregate are millions of objects, and each is walked again in the next generation, for nothing. Counting them
does not help: Python counts new objects less those that went, be they old, so where plans or rows take the
place of others it counts none, and walks all of them in the end. All sessions wait meanwhile.

So nothing is collected by itself. Statements are to leave nothing in cycles (tests/engine/test_garbage.py).
What others leave, libraries and sessions that end, is collected when the process has grown by ``STEP_BYTES``
beyond what statements and sessions account for, at a moment when no statement has run for a second: what a
long one has made goes with it. All that is there after that is never walked again (it is still freed by its
counts), so that a collection takes some milliseconds, however large the process is. Where the process has
grown by more than ``WALKED_BYTES`` meanwhile, that is rows, plans or a catalog, which are alive: none of it
is walked, and the little in it that is not alive stays. So it is where it has more than ``WALKED`` objects,
or such as refer to many, be it that they are accounted for (cursors that are open) or stand where others
went. Only where the process is past its ``memory``, and no statement runs, is everything walked, at most
every ``RARE_S``. What was there at the start is not walked but then.

Python keeps some ten thousand small objects that went, to use them again (tuples, most of them), until a
collection. Once much has been freed in slices (``pgwire.release``) they lie between what has gone, wherever
that was, and some tens of megabytes stay for a megabyte of them: what is collected then may be nothing, but
they go.
"""

from __future__ import annotations

import gc
from asyncio import get_running_loop
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from sys import getsizeof
from time import monotonic
from typing import Final

STEP_BYTES: Final = 8 << 20
"""How much the process grows from one collection to the next."""

WALKED_BYTES: Final = 16 << 20
"""Growth whose objects are walked in some 20 ms."""

FREED_PARTS: Final = 200
"""Of what is freed in slices: some hundred thousand objects."""

WALKED: Final = 40_000
"""New objects that are walked: some 100 ns each, more where they have not been touched for long."""

REFERRED_BYTES: Final = 16 << 20
"""What they take, and with that what they refer to: some 5 ns for each reference, three times over."""

LOOKS_S: Final = 1.0
"""From one look at the size of the process to the next."""

LOOKS: Final = 5
"""At how many in turn it has to have grown: what a statement leaves behind at its end is still being freed then."""

RARE_S: Final = 900.0
"""From one walk over everything to the next."""


class Collector:
    """Collects when the process has grown by more than anybody accounts for."""

    def __init__(
        self,
        size: Callable[[], int],
        running: Callable[[], Iterable[object]],
        limit_bytes: int,
        freed: Callable[[], int],
    ) -> None:
        """Switch Python's own off. What there is by now lives as long as the process.

        ``size``: bytes of the process that no running statement accounts for; ``running``: an object for each
        statement that runs, the same one as long as it does; ``limit_bytes``: the size past which everything
        is walked; ``freed``: how much has been freed in slices so far (``pgwire.release.freed``).
        """
        self._size = size
        self._running = running
        self._limit_bytes = limit_bytes
        self._freed = freed
        self._ran: frozenset[int] = frozenset()
        self._looks = 0
        gc.disable()
        gc.collect()
        gc.freeze()
        self._base = size()
        self._freed_before = freed()
        self._walked_at = monotonic()

    def watch(self) -> None:
        """Look now, and every ``LOOKS_S`` from now on, as long as the running loop does."""
        self.look()
        get_running_loop().call_later(LOOKS_S, self.watch)

    def look(self) -> None:
        """Collect if it is time."""
        before, self._ran = self._ran, frozenset(map(id, self._running()))
        size = self._size()
        self._base = min(self._base, size)
        grown = size - self._base
        self._looks = self._looks + 1 if grown >= STEP_BYTES and not self._ran & before else 0
        freed = self._freed()
        if self._looks < LOOKS and freed < self._freed_before + FREED_PARTS:
            return
        self._freed_before = freed
        self._looks = 0
        if size > self._limit_bytes and not self._ran and monotonic() > self._walked_at + RARE_S:
            gc.unfreeze()
            gc.collect()
            self._walked_at = monotonic()
        elif grown <= WALKED_BYTES and _few():
            gc.collect()
        gc.freeze()
        gc.collect()  # walks nothing now, and lets go of what Python keeps to use again, which lies between what has gone
        self._base = self._size()


def _few() -> bool:
    """Tell whether few objects are new, and small. Python's count, which costs nothing, is too low where new
    ones have taken the place of old ones.
    """
    return gc.get_count()[0] <= WALKED and _tracked() <= WALKED and _bytes() <= REFERRED_BYTES


def _tracked() -> int:
    """Count what the collector would walk, in one call of C, within which no other thread runs.

    A list of it refers to tuples that other threads are just making, too, and a tuple that is made of a
    generator is resized, which fails where somebody else refers to it: SystemError, in the thread that makes
    it.
    """
    return next(map(len, map(gc.get_objects, (None,))))


def _bytes() -> int:
    """Measure it, likewise: one list that a statement is making may refer to ten million numbers."""
    return sum(chain.from_iterable(map(partial(map, getsizeof), map(gc.get_objects, (None,)))))
