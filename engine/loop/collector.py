"""The garbage collector, kept from walking the trees of long statements, and rows on their way.

    with uncollected():                       no collections, in any thread
        await asyncio.to_thread(parse, ...)   a million objects, none of them garbage
                                              what there is by now is frozen, then collections go on

A full collection walks all objects while it holds the interpreter, and how often there is one depends on how many objects are
new. The tree of a list of 100,000 expressions has millions: the collector would stop all connections for seconds, several times, and free nothing,
as trees have no cycles; they go by their reference counts. What has been frozen is not walked again, and goes so, too.

Garbage with cycles that happens to be there at that moment stays. It is what others have made since the last collection of the youngest
objects, some ten thousand at most, and what they make while a long statement is compiled.

What a full collection leaves alive (plans above all, which have no cycles) is frozen as well: the next one walks what has been made since.
Garbage that came about among what is frozen would stay for good, so once the process has grown by half everything is walked.

Python counts new objects less those that went, be they old. Where plans take the place of others it counts none, and would walk all of them at
once in the end: what plans are made of is counted by the characters of their texts.

Python begins a collection after 700 new objects. A batch of rows is more than that, and gone soon: it is walked for nothing, a fifth of the
time that a list of 15,000 indexes takes. After ``YOUNG`` objects most of what a statement has made is gone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal

from txn.resident import resident_bytes

YOUNG: Final = 10_000
"""New objects from one collection to the next; walking them takes less than a millisecond."""

OLDER: Final = 5
"""Collections of one generation to one of the next. A full one walks some 250,000 objects, where the survivors of others are frozen."""

PLANNED: Final = 4000
"""Characters of texts that were planned from one collection to the next: some 20 ms of planning."""

GROWTH: Final = 1.5
"""How much the process grows from one walk over everything to the next."""

_FULL: Final = 2  # the generation of all objects

_planned = 0  # characters since the last collection for them
_inside = 0  # long statements that are being compiled; counted by the event loop alone


def collect_less() -> None:
    """Have the collector run once for ``YOUNG`` new objects, and over older ones as much less often."""
    gc.set_threshold(YOUNG, OLDER, OLDER)


def keep_survivors() -> None:
    """Freeze what is loaded by now, which lives as long as the process, and from now on what full collections leave alive."""
    gc.collect()
    gc.freeze()
    gc.callbacks.append(Survivors(lambda: resident_bytes()[0]))


def planned(characters: int) -> None:
    """A text of so many characters has a plan, which is kept: once they are many, collect and freeze. From the event loop's thread only."""
    global _planned
    _planned += characters
    if _planned >= PLANNED and not _inside:
        _planned = 0
        gc.collect(1)
        gc.freeze()


class Survivors:
    """A callback of the collector that keeps it from walking again what full collections have left alive."""

    def __init__(self, size: Callable[[], int]) -> None:
        """``size``: of the process, in bytes."""
        self._size = size
        self._looked_at = size()  # when everything was walked last
        self._all = False  # this collection walks everything

    def __call__(self, phase: Literal["start", "stop"], info: Mapping[str, int]) -> None:
        """A collection begins or has ended, in whatever thread."""
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._all = self._size() >= self._looked_at * GROWTH
            if self._all:
                gc.unfreeze()
            return
        gc.freeze()
        if self._all:
            self._looked_at = self._size()


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
