"""Long tuples are what Python's own operations make of them, and let others in between."""

from __future__ import annotations

import asyncio
import gc
import sys

import pytest

import pgwire.long.arrays as long
from pgwire.release import release_error

N = long.LONG + long.PIECE + 7


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that grows with each look at the clock."""
    seen: list[None] = []
    monkeypatch.setattr(long, "give_way", lambda: seen.append(None))
    return seen


@pytest.mark.parametrize("n", [0, 1, long.PIECE, long.LONG - 1, long.LONG, N])
def test_making(n: int, ways: list[None]) -> None:
    items = list(range(n))
    assert long.tupled(items) == tuple(items)
    assert long.listed(tuple(items)) == items
    assert long.chained((items, (1, 2), ())) == (*items, 1, 2)
    assert long.repeated("x", n) == ("x",) * n
    assert long.holds(items, n - 1) is bool(n)
    assert not long.holds(items, -1)
    assert bool(ways) is (n >= long.LONG - 2)


@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (5, None), (0, N - 5), (3, 10), (7, 7), (0, 2 * N), (N, None)]
)
def test_cutting(start: int, end: int | None) -> None:
    items = tuple(range(N))
    assert long.cut(items, start, end) == items[start:end]


class _Item:
    """One that can be looked after."""


def test_items_are_referred_to_once_more_and_parts_keep_theirs() -> None:
    item = _Item()
    whole, part = (item,) * N, (item, None)
    before = sys.getrefcount(item)
    made = long.chained((part, whole, part))
    assert made == part + whole + part
    assert sys.getrefcount(item) == before + N + 2
    assert not gc.is_tracked(made), "a collection would walk it"
    assert (part, len(whole)) == ((item, None), N)
    del made
    assert sys.getrefcount(item) == before


def _abandon(whole: tuple[_Item, ...]) -> None:
    try:
        long.chained((whole, whole))
    except asyncio.CancelledError as error:
        trace = error.__traceback__
        while trace is not None:  # whoever looks at what was under way finds tuples
            looked_at = [hash(x) for x in trace.tb_frame.f_locals.values() if type(x) is tuple]
            assert len(looked_at) < 9
            trace = trace.tb_next
        release_error(error)


def test_what_is_abandoned_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    item = _Item()
    whole = (item,) * N
    before = sys.getrefcount(item)
    looks = 0

    def give_way() -> None:
        nonlocal looks
        looks += 1
        gc.collect()
        if looks == 3:
            raise asyncio.CancelledError

    monkeypatch.setattr(long, "give_way", give_way)
    _abandon(whole)
    assert sys.getrefcount(item) == before


def test_comparing(ways: list[None]) -> None:
    items = tuple(range(N))
    for other in (
        items[:-1], (*items, 0), (*items[:-1], 0), (*items[:-1], N), (-1, *items[1:]), items[:5], (*items,),
    ):  # fmt: skip
        a, b = long.differ(items, other)
        assert (a < b, a == b) == (items < other, items == other)
        assert long.equal(items, other) is (items == other)
    assert ways


def test_keys_sort_and_hash_as_the_items_do(ways: list[None]) -> None:
    items = tuple(range(N))
    others = (
        items[:-1],
        (*items, 0),
        (*items[:-1], 0),
        (*items[:-1], N),
        (-1, *items[1:]),
        items[:5],
        (*items,),
    )
    key = long.ordered(items)
    for other in others:
        beside = long.ordered(other)
        assert (key < beside, key > beside, key == beside) == (items < other, items > other, items == other)
        assert (beside < key, beside > key, beside == key) == (other < items, other > items, items == other)
        assert (key <= beside, key >= beside) == (items <= other, items >= other)
        assert (hash(key) == hash(beside)) is (items == other)
    assert len(ways) > 5 * N // long.PIECE
    assert long.ordered(items[:5]) == items[:5]
