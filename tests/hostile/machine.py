"""How fast the machine is at the moment: figures of a row mean little without it where processors and memory are lent.

    speed() -> Speed(loop_ms, page_us)     wall time; about 20 ms on a machine that does nothing else

On machines that others share, the same loop takes two to five times as long from one minute to the next, and a page that the process has
not had before between 0.3 and 12 microseconds.
"""

from __future__ import annotations

import mmap
import time
from dataclasses import dataclass
from typing import Final

ROUNDS: Final = 100_000
TRIES: Final = 3
PAGES: Final = 2_000


@dataclass(frozen=True, slots=True)
class Speed:
    """What the machine needed.

    Attributes:
        loop_ms: milliseconds for 100,000 rounds of an empty loop, the shortest of three.
        page_us: microseconds for a page of memory that is touched for the first time, on average.
    """

    loop_ms: float
    page_us: float

    def slower(self, other: Speed) -> Speed:
        """Return the worse of both, figure by figure."""
        return Speed(max(self.loop_ms, other.loop_ms), max(self.page_us, other.page_us))


def speed() -> Speed:
    """Measure it."""
    loops = []
    for _ in range(TRIES):
        began = time.perf_counter()
        for _ in range(ROUNDS):
            pass
        loops.append(time.perf_counter() - began)
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as pages:
        began = time.perf_counter()
        for start in range(0, len(pages), mmap.PAGESIZE):
            pages[start] = 1
        touched = time.perf_counter() - began
    return Speed(round(min(loops) * 1000, 2), round(touched / PAGES * 1e6, 2))
