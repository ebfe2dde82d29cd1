"""The garbage collector, kept from walking the trees of long statements, and rows on their way.

    with uncollected():                       no collections, in any thread
        await asyncio.to_thread(parse, ...)   a million objects, none of them garbage
                                              what there is by now is frozen, then collections go on

A full collection walks all objects while it holds the interpreter: 100 ns each, and a statement may have millions. They would be
walked several times over, for nothing, as what statements make has no cycles (tests/engine/test_garbage.py): it goes by its reference counts.
So only the youngest two generations are collected as Python does it, at most ``YOUNG * OLDER`` objects at once. What has lived through both is
left alone until the process has grown by half beyond what statements and sessions account for, and then walked once no statement runs
(``Whole``): sessions are cycles, and what foreign code leaves.

The tree of a list of 100,000 expressions is walked for nothing even while it is young. What has been frozen is not walked again, and goes
by reference counts, too. Garbage with cycles that happens to be there at that moment stays until everything is walked: what others have made since
the last collection of the youngest objects, some ten thousand at most, and what they make while a long statement is compiled.

Python counts new objects less those that went, be they old. Where plans take the place of others it counts none, and would walk all of them at
once in the end: what plans are made of is counted by the characters of their texts.

Python begins a collection after 700 new objects. A batch of rows is more than that, and gone soon: it is walked for nothing, a fifth of the
time that a list of 15,000 indexes takes. After ``YOUNG`` objects most of what a statement has made is gone.
"""

from __future__ import annotations

import gc
from asyncio import get_running_loop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

YOUNG: Final = 10_000
"""New objects from one collection to the next; walking them takes less than a millisecond."""

OLDER: Final = 4
"""Collections of the youngest generation to one of the next, which walks what four of them and those before have left."""

PLANNED: Final = 4000
"""Characters of texts that were planned from one collection to the next: some 20 ms of planning."""

GROWTH: Final = 1.5
"""How much the process grows from one walk over everything to the next, where no statement runs then."""

MOST_GROWTH: Final = 3.0
"""How much where statements run."""

LOOKS_S: Final = 1.0
"""From one look at the size of the process to the next."""

_planned = 0  # characters since the last collection for them
_inside = 0  # long statements that are being compiled; counted by the event loop alone


def collect_less() -> None:
    """Have the collector run once for ``YOUNG`` new objects, over older ones as much less often, and over all of them never by itself."""
    gc.set_threshold(YOUNG, OLDER, 1 << 30)


def planned(characters: int) -> None:
    """A text of so many characters has a plan, which is kept: once they are many, collect. From the event loop's thread only."""
    global _planned
    _planned += characters
    if _planned >= PLANNED and not _inside:
        _planned = 0
        gc.collect(1)


class Whole:
    """Walks everything when the process has grown by more than anybody accounts for."""

    def __init__(self, size: Callable[[], int], busy: Callable[[], bool]) -> None:
        """What there is by now lives as long as the process, and is not looked at before it grows.

        ``size``: bytes of the process that no running statement accounts for; ``busy``: whether statements run.
        """
        self._size = size
        self._busy = busy
        gc.collect()
        gc.freeze()
        self._walked_at = size()

    def watch(self) -> None:
        """Look now, and every ``LOOKS_S`` from now on, as long as the running loop does."""
        self.look()
        get_running_loop().call_later(LOOKS_S, self.watch)

    def look(self) -> None:
        """Walk everything if it is time."""
        grown = self._size() / max(self._walked_at, 1)
        if _inside or grown < GROWTH or (grown < MOST_GROWTH and self._busy()):
            return
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._walked_at = self._size()


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector off what is made within. From the event loop's thread only; may be nested."""
    global _inside
    if not _inside:
        gc.collect(1)  # so that little garbage is frozen
        gc.disable()
    _inside += 1
    try:
        yield
    finally:
        _inside -= 1
        if not _inside:
            gc.freeze()
            gc.enable()
