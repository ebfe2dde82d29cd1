"""What rows take in memory, as far as it depends on their values.

text, varchar, json, bytea …     sys.getsizeof of each value, in C: 60 ns
arrays, ranges, composites …     their parts
numbers, dates, booleans …       nothing: a row of them is small, whatever it holds
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from operator import itemgetter
from sys import getsizeof
from typing import Any, Final, TypeAlias

from pgwire.bounded import BoundedArray
from pgwire.codecs import domain
from pgwire.give_way import PACE, give_way

Measure: TypeAlias = Callable[[Sequence[tuple[Any, ...]]], int]
"""From rows to the bytes that their values of any size take."""

SMALL: Final = frozenset({
    domain.BOOL, domain.INT2, domain.INT4, domain.INT8, domain.OID, domain.XID, domain.FLOAT4, domain.FLOAT8, domain.CHAR,
    domain.NAME, domain.DATE, domain.TIME, domain.TIMETZ, domain.TIMESTAMP, domain.TIMESTAMPTZ, domain.INTERVAL, domain.UUID,
})  # fmt: skip
"""Types whose values are a few bytes."""
BOUNDED_CHARS: Final = 1000
"""Of char(n) and varchar(n): with at most so many a value is small, too."""
_FLAT: Final = frozenset({
    domain.TEXT, domain.VARCHAR, domain.BPCHAR, domain.JSON, domain.JSONB, domain.BYTEA, domain.UNKNOWN, domain.CSTRING,
})  # fmt: skip
"""Types whose values are one str or bytes."""


def is_bounded(oid: int, typmod: int) -> bool:
    """Tell whether every value that a column of this type stores is a few kilobytes at most."""
    if oid in (domain.VARCHAR, domain.BPCHAR):
        return 4 <= typmod <= 4 + BOUNDED_CHARS  # 4 and the number of characters, -1 without one
    return oid in SMALL or (oid == domain.NUMERIC and typmod >= 0)


def measure_of(type_oids: Sequence[int]) -> Measure | None:
    """Return the function that measures rows of these types; None where no row can be large."""
    flat = [itemgetter(i) for i, oid in enumerate(type_oids) if oid in _FLAT]
    deep = [itemgetter(i) for i, oid in enumerate(type_oids) if oid not in _FLAT and oid not in SMALL]
    if not flat and not deep:
        return None

    def measure(rows: Sequence[tuple[Any, ...]]) -> int:
        total = 0
        for get in flat:
            total += sum(map(getsizeof, map(get, rows)))
        for get in deep:
            total += sum(map(value_bytes, map(get, rows)))
        return total

    return measure


def row_bytes(row: Sequence[Any]) -> int:
    """Return the bytes that a row's values take, of whatever types. A long array gives way: call it
    ``openly`` where it may.
    """
    if _COMPOUND.isdisjoint(map(type, row)):
        return sum(map(getsizeof, row))
    return sum(map(value_bytes, row))


def value_bytes(value: Any) -> int:
    """Return the bytes that a value takes, with its parts."""
    if value.__class__ in _COMPOUND:
        parts = value.values() if value.__class__ is dict else value
        total = getsizeof(value)
        left = iter(parts)
        while piece := tuple(islice(left, PACE)):
            total += row_bytes(piece)
            if len(piece) == PACE:
                give_way()
        return total
    return getsizeof(value)


_COMPOUND: Final = frozenset((tuple, list, dict, set, frozenset, BoundedArray))
