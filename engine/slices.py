"""Work over many rows on the event loop, a slice at a time: other connections are served in between (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from engine.loop.strands import turn
from pgwire.give_way import give_way, openly

T = TypeVar("T")
U = TypeVar("U")

SLICE_ROWS: Final = 2000  # a few milliseconds of Python
SLICE_S: Final = 0.005  # the loop gets a turn at least this often


def pause() -> None:
    """Let others run if the slice is over: in a coroutine, where an ``await`` may stand. Costs little enough for each row."""
    openly(give_way)


async def in_slices(items: Sequence[T], work: Callable[[Sequence[T]], Iterable[U]]) -> list[U]:
    """Return what ``work``, which may give way within, gives for each slice, joined. Up to ``SLICE_ROWS`` items it does not suspend."""
    if len(items) <= SLICE_ROWS:
        return list(openly(work, items))
    out: list[U] = []
    for start in range(0, len(items), SLICE_ROWS):
        out += openly(work, items[start : start + SLICE_ROWS])
        await turn()
    return out
