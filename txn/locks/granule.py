"""What can be locked: granules, and how they are told.

A granule is any hashable value; transactions use::

    shard                        a table
    (shard, row id)              a row
    (shard, index, key)          an index key, whether a row has it or not
    (shard, index, key, RANGE)   the gap below a key of a sorted index, and the key (txn.locks.ranges)

and sessions ``Advisory`` numbers (txn.locks.advisory). Keys are index keys (``txn.mvcc.keys``); ``TOP`` is
the end of an index.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from txn.base.errors import LockTarget
from txn.base.types import IndexId, RowId, ShardId
from txn.mvcc.index import TOP

Granule: TypeAlias = Hashable
IndexKey: TypeAlias = Any

RANGE: Final = "range"
"""Fourth element of a range lock's granule."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """What is locked: a bigint as its two halves, or (``pair``) two integers. Each half is 0 .. 2**32 - 1.

    ``domain``: whose numbers they are; those of different domains have nothing to do with each other.
    """

    high: int
    low: int
    pair: bool = False
    domain: int = 0


def key_of(granule: Hashable) -> tuple[tuple[int, int], IndexKey] | None:
    """Return ((shard, index), key) if a granule is a key of an index, else None."""
    if type(granule) is tuple and len(granule) == 3:
        return granule[:2], granule[2]
    return None


def describe(granule: Granule) -> LockTarget:
    """Return what a granule is; keys as they are compared."""
    if isinstance(granule, Advisory):
        numbers = (granule.domain, granule.high, granule.low, 2 if granule.pair else 1)
        return LockTarget(kind="advisory", shard=ShardId(0), key=numbers)
    if not isinstance(granule, tuple):
        return LockTarget(kind="table", shard=ShardId(granule))  # type: ignore[arg-type]  # a shard, of transactions
    shard = ShardId(granule[0])
    if len(granule) == 2:
        return LockTarget(kind="row", shard=shard, row_id=RowId(granule[1]))
    key = granule[2] if type(granule[2]) is tuple else None if granule[2] is TOP else (granule[2],)
    kind: Literal["key", "range"] = "key" if len(granule) == 3 else "range"
    return LockTarget(kind=kind, shard=shard, index=IndexId(granule[1]), key=key)
