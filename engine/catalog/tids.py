"""ctids: row ids, which count from 1, as blocks of ``BLOCK_ROWS`` rows each.

    row id   1  2 … 32768   32769 …
    ctid     (0,1) (0,2) … (0,32768)   (1,1) …

They tell rows apart and stay with them (docs/reference/differences.md); where a row is stored they do not say.
"""

from __future__ import annotations

from typing import Final

BLOCK_ROWS: Final = 1 << 15

PAGE_BYTES: Final = 8192
"""What SQL's ``block_size`` says."""


def tid_of(row_id: int) -> int:
    """Return the ctid of a row id, as a value of tid: block and position in it."""
    return (((row_id - 1) >> 15) & 0xFFFFFFFF) << 16 | ((row_id - 1) & 0x7FFF) + 1


def block_and_position(tid: int) -> tuple[int, int]:
    """Return the two numbers of a ctid."""
    return divmod(tid, 1 << 16)


def row_id_of(tid: int) -> int | None:
    """Return the row id that a ctid names; None: no row has such a ctid."""
    block, position = block_and_position(tid)
    return (block << 15) + position if 0 < position <= BLOCK_ROWS else None


def row_ids_between(low: int | None, high: int | None, *, low_inclusive: bool, high_inclusive: bool) -> range:
    """Return the row ids whose ctids are between two, either of which may be missing."""
    first = 1 if low is None else _up_to(low, inclusive=not low_inclusive) + 1
    last = 1 << 47 if high is None else _up_to(high, inclusive=high_inclusive)
    return range(first, last + 1)


def _up_to(tid: int, *, inclusive: bool) -> int:
    """Return the greatest row id whose ctid is below one, or at most that."""
    block, position = block_and_position(tid)
    return (block << 15) + min(position if inclusive else max(position - 1, 0), BLOCK_ROWS)


def blocks(row_ids: int) -> int:
    """Return how many blocks there are where so many row ids have been given out."""
    return -(-row_ids // BLOCK_ROWS)
