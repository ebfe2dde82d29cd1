"""Work over many rows on the event loop, a slice at a time: other connections are served in between
(docs/internals/architecture.md).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final, TypeVar

from engine.base.loop.strands import turn
from pgwire.give_way import give_way, openly

T = TypeVar("T")
U = TypeVar("U")

SLICE_ROWS: Final = 2000  # a few milliseconds of Python
SLICE_CELLS: Final = 64 << 10  # likewise, where rows are wide
SLICE_S: Final = 0.005  # the loop gets a turn at least this often


def pause() -> None:
    """Let others run if the slice is over: in a coroutine, where an ``await`` may stand. Costs little enough
    for each row.
    """
    openly(give_way)


def rows_at_once(items: Sequence[object]) -> int:
    """Return how many items are a slice: of wide rows, or pairs with such, few; the first one tells how wide
    they are.
    """
    one, width = items[0] if items else None, 0
    while isinstance(one, tuple) and one:
        width += len(one)
        one = one[-1]
    return min(SLICE_ROWS, max(SLICE_CELLS // max(width, 1), 1))


def given_way(work: Generator[None, None, T]) -> T:
    """Return what work in slices comes to; others run in between where the code is open."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            value: T = done.value
            return value
        give_way()


async def in_slices(items: Sequence[T], work: Callable[[Sequence[T]], Iterable[U]]) -> list[U]:
    """Return what ``work``, which may give way within, gives for each slice, joined. Up to ``SLICE_ROWS``
    items, or ``SLICE_CELLS`` of rows, it does not suspend.
    """
    most = rows_at_once(items)
    if len(items) <= most:
        return list(openly(work, items))
    out: list[U] = []
    for start in range(0, len(items), most):
        out += openly(work, items[start : start + most])
        await turn()
    return out
