"""Rows in order: the keys of ORDER BY, sorting by several of them, and merging sorted runs.

    rows ──> runs of ``RUN`` rows, each sorted in one call ──> merged row by row

Nothing here holds the loop for long (``pgwire.give_way``): keys are computed before a run is sorted, and long
strings are compared one by one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

from engine.executors.index.state import Rows
from pgwire.give_way import give_way, paced, paced_iter
from planner.functions.values.compare import hash_key, sort_key
from planner.query import SortKey
from planner.types import SqlType

RUN: Final = 8192
"""Rows that are sorted in one call."""
LONG: Final = 4096
"""Characters or bytes of a value from which on each comparison may take long."""

OrderItem = tuple[int, int, bool, bool]  # position, type oid, descending, nulls first


def order_items(keys: Sequence[SortKey], types: Sequence[SqlType]) -> list[OrderItem]:
    """Return sort keys as (position, type, descending, nulls first)."""
    return [(k.target, types[k.target].oid, k.descending, k.nulls_first) for k in keys]


class _Long:
    """A long string as a key: comparing it lets others run."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Any) -> bool:
        give_way()
        return bool(self.value < (other.value if other.__class__ is _Long else other))

    def __gt__(self, other: Any) -> bool:
        give_way()
        return bool(self.value > (other.value if other.__class__ is _Long else other))

    def __eq__(self, other: object) -> bool:
        give_way()
        return bool(self.value == (other.value if isinstance(other, _Long) else other))

    __hash__ = None  # type: ignore[assignment]  # as Python does itself where __eq__ alone is given


def _is_long(value: Any) -> bool:
    return type(value) in (str, bytes) and len(value) > LONG


def sort_rows(rows: Rows, items: Sequence[OrderItem]) -> Rows:
    """Return rows sorted stably by several keys; may sort them in place."""
    if len(rows) <= RUN:
        return sort_run(rows, items)
    runs = [sort_run(rows[start : start + RUN], items) for start in range(0, len(rows), RUN)]
    return list(merged(runs, items))


def sort_run(rows: Rows, items: Sequence[OrderItem]) -> Rows:
    """As ``sort_rows``, in one go: the last key first; NULLs are set apart and put where they belong."""
    for position, oid, descending, nulls_first in reversed(items):
        nulls = [r for r in rows if r[position] is None]
        if nulls:
            rows = [r for r in rows if r[position] is not None]
        key = sort_key(oid)
        if key is None and rows and type(rows[0][position]) in (str, bytes):
            key = _Long if max([len(r[position]) for r in rows]) > LONG else None
        if key is None:
            rows.sort(key=itemgetter(position), reverse=descending)
        else:
            keys = [key(row[position]) for row in paced(rows, 16)]
            rows = [rows[i] for i in sorted(range(len(rows)), key=keys.__getitem__, reverse=descending)]
        if nulls:
            rows = nulls + rows if nulls_first else rows + nulls
        give_way()
    return rows


def merged(runs: Sequence[Rows], items: Sequence[OrderItem]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of sorted runs in order."""
    return paced_iter(heapq.merge(*runs, key=merge_key(items)))


def compare_key(items: Sequence[OrderItem]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return the function giving the part of a row that peers have in common."""
    getters = [(position, hash_key(oid)) for position, oid, _, _ in items]

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(row[p] if k is None or row[p] is None else k(row[p]) for p, k in getters)

    return key


class _Backwards:
    """A key that orders the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Backwards) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]  # as Python does itself where __eq__ alone is given


def merge_key(items: Sequence[OrderItem]) -> Callable[[tuple[Any, ...]], Any]:
    """Return one key for all sort items: slower than sorting item by item, but runs can be merged by it."""
    columns = [(p, sort_key(oid), descending, nulls_first) for p, oid, descending, nulls_first in items]

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        out: list[Any] = []
        for position, convert, descending, nulls_first in columns:
            value = row[position]
            if value is None:
                out.append((0 if nulls_first else 2,))
                continue
            if convert is not None:
                part = convert(value)
            else:
                part = _Long(value) if _is_long(value) else value
            out.append((1, _Backwards(part) if descending else part))
        return tuple(out)

    return key
