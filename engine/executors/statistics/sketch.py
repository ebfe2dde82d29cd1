"""How many different values there are, from HyperLogLog registers.

    values ─hash─► register = the first 10 bits, rank = zeros before the first one of the other 54, + 1
    registers of two sets, the greater of each pair ─► registers of their union

DuckDB fills the registers (``approx_count_distinct(x) EXPORT_STATE``); those of parts are united here, which
DuckDB does only while it has them, and estimated by O. Ertl's improved raw estimator (New cardinality
estimation algorithms for HyperLogLog sketches, 2017, algorithm 6), which is DuckDB's too. The standard error
is 1.04 / sqrt(1024), 3.3 %.
"""

from __future__ import annotations

import math
from typing import Final

PRECISION: Final = 10
REGISTERS: Final = 1 << PRECISION
EMPTY: Final = bytes(REGISTERS)
STANDARD_ERROR: Final = 1.04 / math.sqrt(REGISTERS)
_RANKS: Final = 64 - PRECISION  # a register is at most one more


def united(one: bytes, other: bytes) -> bytes:
    """Return the registers of two sets' union."""
    if one == EMPTY:
        return other
    return one if other == EMPTY else bytes(map(max, one, other))


def estimate(registers: bytes) -> float:
    """Return about how many different values were seen, 0 of none.

    ``registers``: ``REGISTERS`` ranks of 0 to 55.
    """
    counts = [registers.count(rank) for rank in range(_RANKS + 2)]
    if counts[0] == REGISTERS:
        return 0.0
    total = REGISTERS * _tau(1 - counts[_RANKS + 1] / REGISTERS)
    for rank in range(_RANKS, 0, -1):
        total = (total + counts[rank]) / 2
    total += REGISTERS * _sigma(counts[0] / REGISTERS)
    return REGISTERS * REGISTERS / (2 * math.log(2) * total)


def _sigma(share: float) -> float:
    """Return the correction for registers that are still 0; ``share`` of them, less than 1."""
    weight, total = 1.0, share
    while True:
        share *= share
        before = total
        total += share * weight
        weight += weight
        if total == before:
            return total


def _tau(share: float) -> float:
    """Return the correction for registers that are full; ``share`` are not."""
    if share in (0.0, 1.0):
        return 0.0
    weight, total = 1.0, 1 - share
    while True:
        share = math.sqrt(share)
        before = total
        weight /= 2
        total -= (1 - share) ** 2 * weight
        if total == before:
            return total / 3
