"""The garbage collector, kept from walking the trees of long statements, and rows on their way.

    with uncollected():                       no collections, in any thread
        await asyncio.to_thread(parse, ...)   a million objects, none of them garbage
                                              what there is by now is frozen, then collections go on

A full collection walks all objects while it holds the interpreter, and how often there is one depends on how many objects are
new. The tree of a list of 100,000 expressions has millions: the collector would stop all connections for seconds, several times, and free nothing,
as trees have no cycles; they go by their reference counts. What has been frozen is not walked again, and goes so, too.

Garbage with cycles that happens to be there at that moment stays. It is what others have made since the last collection of the youngest
objects, some ten thousand at most, and what they make while a long statement is compiled.

Python begins a collection after 700 new objects. A batch of rows is more than that, and gone soon: it is walked for nothing, a fifth of the
time that a list of 15,000 indexes takes. After ``YOUNG`` objects most of what a statement has made is gone.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG: Final = 10_000
"""New objects from one collection to the next; walking them takes less than a millisecond."""

_inside = 0  # long statements that are being compiled; counted by the event loop alone


def collect_less() -> None:
    """Have the collector run once for ``YOUNG`` new objects, and full collections as much less often."""
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


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
