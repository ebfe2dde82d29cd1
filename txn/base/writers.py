"""Which transaction made a row's version, as a number that clients see (PostgreSQL's ``xmin``).

A version knows the timestamp at which it begins, and from that its number is made. But a transaction may be asked for
the number of rows that it has yet to commit, and then there is no timestamp: it says its own id, and that is kept.

    of its own rows            id of the transaction                    from then on it is *told*
    begin of a told one        id of the transaction                    log entry ─► ``Generation.writers`` ─► part
    any other begin            ``number_of``: a hash of the timestamp   nothing is kept

So a version has one number from before its commit until nobody can read it, and transactions that nobody has asked pay
nothing. As 32 bits, the ids of a run of the server are small, and hashes have the highest bit set: the ones are none
of the others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

NUMBER_BITS: Final = 32
NUMBER_MASK: Final = (1 << NUMBER_BITS) - 1
_HASHED: Final = 1 << NUMBER_BITS - 1
_MASK: Final = (1 << 64) - 1
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
_FIRST_BITS: Final = 30


def number_of(begin: int) -> int:
    """Return the number of a transaction that was not told, by its timestamp: 32 bits, of which the highest is set.

    Stored data has none of it, so that it must never change. Neighbouring timestamps have unlike numbers, and no period
    repeats; two of many rows may still share one, as may two transactions of PostgreSQL's 2**32 apart.
    """
    mixed = (begin ^ begin >> 32) * _FACTORS[0] & _MASK
    mixed = (mixed ^ mixed >> 32) * _FACTORS[1] & _MASK
    return mixed >> 33 | _HASHED


def first_id(epoch: int) -> int:
    """Return the first id of the transactions of a server's run, above all of earlier runs.

    The low 32 bits, which rows show, begin elsewhere in each run, and have the highest bit clear for 2**30 transactions
    at least.
    """
    low = epoch * _FACTORS[0] >> 16 & (1 << _FIRST_BITS) - 1
    return (epoch << NUMBER_BITS) + low + 3  # above those of PostgreSQL's that have a meaning of their own


@dataclass(frozen=True, slots=True)
class Writers:
    """Ids of told transactions by their timestamps: parallel sequences of int64, ``begins`` ascending, each once.

    They are ``array('q')`` or memory of a file.
    """

    begins: Any
    ids: Any

    def of(self, begin: int) -> int:
        """Return the id of the transaction that committed at a timestamp; 0: it was not told."""
        begins: Sequence[int] = self.begins
        at = bisect_left(begins, begin)
        return int(self.ids[at]) if at < len(begins) and begins[at] == begin else 0

    def __len__(self) -> int:
        return len(self.begins)


def find(begin: int, writers: Iterable[Writers]) -> int:
    """Return the id in the first of several that has the timestamp, 0 if none has."""
    for some in writers:
        found = some.of(begin)
        if found:
            return found
    return 0


def writers_of(pairs: Mapping[int, int]) -> Writers:
    """Return pairs of timestamp and id in order. Many are sorted in a thread."""
    begins = sorted(pairs)
    return Writers(array("q", begins), array("q", map(pairs.__getitem__, begins)))
