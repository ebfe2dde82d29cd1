"""TABLESAMPLE: which rows of a table belong to a sample.

    percentage, REPEATABLE ──sample_key──> one bigint, made once for a scan ──> for each row id: chosen or not

A row is chosen by a hash of its id (BERNOULLI) or of its block (SYSTEM), so that with REPEATABLE the same
rows are, whichever executor reads them and however. The hash is arithmetic that fits 64 bits, which every
engine has:

    place = (id mod P * STRIDE + start) mod P          P = 2^31 - 1, a prime; start: what REPEATABLE says, or a random number
    hash  = place^5 mod P                              a permutation of 0 .. P - 1, for 5 does not divide P - 1
    chosen where hash < limit                          limit = the percentage of P: 0 is none, 100 all

    key = limit * 2^31 + start. Below 0 it is one of ``REFUSALS``: an argument by which no sample can be taken
    is an error where the rows are read, and not before.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from planner.base.errors import SqlError

Method: TypeAlias = Literal["bernoulli", "system"]

METHODS: Final[tuple[Method, ...]] = ("bernoulli", "system")

PRIME: Final = (1 << 31) - 1
STRIDE: Final = 48271
"""A primitive root of ``PRIME``: neighbours get places far from each other."""
SHIFT: Final = 1 << 31
BLOCK: Final = 1 << 15
"""Row ids of one block, as ctids have them."""

REFUSALS: Final[Mapping[int, tuple[str, str]]] = {
    -1: ("2202H", "TABLESAMPLE parameter cannot be null"),
    -2: ("2202G", "TABLESAMPLE REPEATABLE parameter cannot be null"),
    -3: ("2202H", "sample percentage must be between 0 and 100"),
}


def sample_key(percent: float | None, start: int | None) -> int:
    """Return the key of a scan that takes ``percent`` of the rows; ``start``: of ``start_of``, None where
    REPEATABLE was NULL.
    """
    if percent is None:
        return -1
    if start is None:
        return -2
    if math.isnan(percent) or not 0 <= percent <= 100:
        return -3
    return round(percent * PRIME / 100) * SHIFT + start


def start_of(seed: float) -> int:
    """Return the start that a value of REPEATABLE stands for; equal values have one."""
    exact = struct.pack(">d", math.nan if math.isnan(seed) else seed + 0.0)
    return random_start(hashlib.blake2b(exact, digest_size=8).digest())


def random_start(octets: bytes) -> int:
    """Return a start that eight random octets make."""
    return int.from_bytes(octets) % PRIME


def checked(key: int) -> int:
    """Return a key by which a sample can be taken. Raises SqlError 2202H and 2202G for the others."""
    if key < 0:
        raise SqlError(*REFUSALS[key])
    return key


def picker(method: Method, key: int) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """Return what leaves those of some stored rows that are chosen; None: all of them are."""
    limit, start = divmod(checked(key), SHIFT)
    if limit == PRIME:
        return None
    if method == "system":
        blocks: dict[int, bool] = {}

        def of_blocks(rows: Sequence[Any]) -> Sequence[Any]:
            kept = []
            for row in rows:
                block = (row.row_id - 1) // BLOCK
                known = blocks.get(block)
                if known is None:
                    known = blocks[block] = _hash(block * BLOCK, start) < limit
                if known:
                    kept.append(row)
            return kept

        return of_blocks
    return lambda rows: [row for row in rows if _hash(row.row_id, start) < limit]


def _hash(number: int, start: int) -> int:
    place = (number % PRIME * STRIDE + start) % PRIME
    square = place * place % PRIME
    return square * square % PRIME * place % PRIME
