"""Slices of the event loop's time: work on many rows lets others run by time as well as by number, for rows
may be wide and have many keys.

pause = Slice(CHUNK_ROWS)
for row in rows:
    ...                              some microseconds, or a thousand times as much
    if pause.over():
        yield asyncio.sleep(0)       or: await
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator, Iterator, MutableSequence, Sequence
from time import perf_counter
from typing import Any, Final, TypeVar

T = TypeVar("T")

SLICE_S: Final = 0.002
"""Seconds after which others run."""
LOOK: Final = 16
"""Steps between two looks at the clock."""
FREED: Final = 2048
"""Entries that are freed in one slice, at most."""
LARGE_ROWS: Final = 4000
"""Rows that are freed piece by piece from there on."""
LARGE_CELLS: Final = 64 << 10
"""Likewise, what wide rows have together."""


class Slice:
    """Counts steps; the clock runs from the first one after a pause."""

    __slots__ = ("_done", "_ends", "_look", "_most")

    def __init__(self, most: int, look: int = LOOK) -> None:
        """``most``: steps of a slice that ends no sooner by time. ``look``: steps between two looks at the clock."""
        self._most = most
        self._look = look
        self._done = 0
        self._ends = 0.0

    def over(self) -> bool:
        """Count a step; tell whether others are to run now."""
        self._done = done = self._done + 1
        if done >= self._most:
            self._done = 0
            return True
        if done == 1:
            self._ends = perf_counter() + SLICE_S
        elif not done % self._look and perf_counter() > self._ends:
            self._done = 0
            return True
        return False


_ends = 0.0


def over() -> bool:
    """Tell whether others are to run now, as ``Slice``, for steps of many calls: whoever asks after a slice
    of anybody's is told so. Not to be asked after each step.
    """
    global _ends
    now = perf_counter()
    if now <= _ends:
        return False
    _ends = now + SLICE_S
    return True


def at_once(work: Generator[None, None, T]) -> T:
    """Return what work in slices comes to."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            value: T = done.value
            return value


def steps_of(work: Generator[None, None, T]) -> Generator[Awaitable[Any], Any, T]:
    """Return what work in slices comes to, others run in between (``txn.transaction.view.Steps``)."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            value: T = done.value
            return value
        yield asyncio.sleep(0)


async def in_turns(work: Generator[None, None, T]) -> T:
    """Do the same for a coroutine."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            value: T = done.value
            return value
        await asyncio.sleep(0)


def free(held: MutableSequence[Any] | dict[Any, Any]) -> Iterator[None]:
    """Empty a list or dict that nobody needs any more, a slice between two yields."""
    pause = Slice(FREED // LOOK, look=1)
    while held:
        if isinstance(held, dict):
            for _ in range(min(LOOK, len(held))):
                held.popitem()
        else:
            del held[-LOOK:]
        if pause.over() and held:
            yield


def is_large(rows: Sequence[Any]) -> bool:
    """Tell whether rows, or tuples that end in one, are freed piece by piece; the first one tells how wide they are."""
    if len(rows) > LARGE_ROWS or not rows:
        return len(rows) > LARGE_ROWS
    one, width = rows[0], 0
    while isinstance(one, tuple) and one:
        width += len(one)
        one = one[-1]
    return len(rows) * width > LARGE_CELLS
