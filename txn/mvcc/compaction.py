"""Which parts are merged, so that there are few of them and each row is written a bounded number of times.

    level of a part = floor(log8(live rows))        as soon as a level has 8 parts, they become one of the next

    level 5   ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪  ── merge ──┐         parts flushed: some 50,000 rows each
    level 6   ▪▪▪▪▪▪▪  <──────────────────┘
    level 7   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪         past ``max_rows`` a part is not merged any more

A merge that loses nothing takes its rows at least one level up, so a row is written at most once per level. A part
of whose rows more than ``DEAD_FRACTION`` nobody can read any more is written anew before that: each row lost pays
for at most ``(1 - DEAD_FRACTION) / DEAD_FRACTION`` rows written. Together (``write_bound``)::

    rows written  <=  rows flushed * (1 + levels)  +  rows lost * (levels + 2.4)

Nothing here reads or writes: the flusher does (``txn.upkeep.flush``), and counts what it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

FANOUT: Final = 8
DEAD_FRACTION: Final = 0.3
DEAD_ROWS: Final = 10_000  # fewer are not worth a job of their own
MAX_ROWS: Final = 2_000_000  # at most so many rows come out of one merge


class Size(NamedTuple):
    """A part as the policy sees it. ``dead``: rows that ended before anybody can read."""

    rows: int
    dead: int

    @property
    def live(self) -> int:
        """Rows that a merge would write."""
        return self.rows - self.dead


@dataclass(slots=True)
class Written:
    """What upkeep has written since the start: ``amplification`` is what the policy bounds.

    ``flushed``, ``merged``, ``history``: rows that left memory, that were written again, that were superseded
    when they left memory. ``lost``: rows that a merge left out. ``bytes``: of all files of parts written.
    """

    flushed: int = 0
    merged: int = 0
    history: int = 0
    lost: int = 0
    merges: int = 0
    bytes: int = 0

    @property
    def amplification(self) -> float:
        """Rows written per row that came (1.0: each once)."""
        came = self.flushed + self.history
        return (came + self.merged) / came if came else 1.0


def level(rows: int) -> int:
    """Return the level of a part with so many live rows; 0 for fewer than ``FANOUT``."""
    found = 0
    while rows >= FANOUT:
        rows //= FANOUT
        found += 1
    return found


def choose(sizes: Sequence[Size], max_rows: int = MAX_ROWS) -> list[int]:
    """Return which parts (positions in ``sizes``) to write anew as one, or none. At most ``max_rows`` live rows.

    A single part is chosen alone only for what is dead in it, whatever its size.
    """
    dead = [i for i, size in enumerate(sizes) if size.dead > size.rows * DEAD_FRACTION]
    chosen = list(dead)
    for group in _full_levels(sizes, max_rows):
        chosen += [i for i in group if i not in dead]
    out: list[int] = []
    total = 0
    for i in sorted(chosen, key=lambda i: sizes[i].live):
        total += sizes[i].live
        if out and total > max_rows:
            break
        out.append(i)
    if len(out) == 1 and out[0] not in dead:
        return []
    return sorted(out)


def _full_levels(sizes: Sequence[Size], max_rows: int) -> list[list[int]]:
    """Return the parts of the lowest level that has enough of them to merge, as a list of one group, or none."""
    levels: dict[int, list[int]] = {}
    for i, size in enumerate(sizes):
        levels.setdefault(level(size.live), []).append(i)
    for number in sorted(levels):
        group = sorted(levels[number], key=lambda i: sizes[i].live)
        while len(group) > FANOUT and sum(sizes[i].live for i in group) > max_rows:
            group.pop()
        if len(group) >= FANOUT and sum(sizes[i].live for i in group) <= max_rows:
            return [group]
    return []


def worth_a_job(sizes: Sequence[Size], max_rows: int = MAX_ROWS) -> bool:
    """Tell whether parts deserve a job of their own; a flush for another reason merges more readily."""
    if any(s.dead >= DEAD_ROWS and s.dead > s.rows * DEAD_FRACTION for s in sizes):
        return True
    return bool(_full_levels(sizes, max_rows))


def write_bound(flushed: int, lost: int, max_rows: int = MAX_ROWS) -> float:
    """Return the most rows that the policy writes for ``flushed`` rows that came and ``lost`` ones that went."""
    levels = level(max_rows) + 1
    return flushed * (1 + levels) + lost * (levels + (1 - DEAD_FRACTION) / DEAD_FRACTION)
