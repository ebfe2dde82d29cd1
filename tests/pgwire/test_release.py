"""Memory that is let go of is freed in slices: all of it, and nothing that somebody else has."""

from __future__ import annotations

import asyncio
import functools
import gc
import mmap
import os
import weakref
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pgwire import release, release_pages

MANY = 3 * release.LARGE


class Thing:
    """What can be watched going."""

    def __init__(self, *inside: Any) -> None:
        self.inside = inside


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def _emptied() -> None:
    for _ in range(100_000):
        if not release.freeing():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not end")


CONTAINERS: dict[str, Callable[[], Any]] = {
    "list": lambda: [(i, str(i)) for i in range(MANY)],
    "lists": lambda: [[Thing(i) for i in range(MANY)] for _ in range(3)],
    "dict": lambda: {(i, "x"): [Thing(i)] for i in range(MANY)},
    "dict of a list": lambda: {1: [(i, Thing(i)) for i in range(MANY)]},
    "counter": lambda: Counter(range(MANY)),
    "set": lambda: {(i, "x") for i in range(MANY)},
    "deque": lambda: deque(Thing(i) for i in range(MANY)),
    "objects": lambda: [Thing({i: Thing(tuple(range(5)))}) for i in range(MANY)],
    "wide": lambda: [tuple(range(2000)) for _ in range(50)],
    "one tuple": lambda: [tuple((i, i) for i in range(MANY))],
    "mixed": lambda: [Thing(i) if i % 3 else (i, [i]) if i % 2 else i for i in range(MANY)],
    "generators": lambda: [(x for x in (i,)) for i in range(MANY)],
}


@pytest.mark.parametrize("name", CONTAINERS)
@in_loop
async def test_all_of_it_goes(name: str) -> None:
    """The container is empty in the end, and what it held is no more."""
    container = CONTAINERS[name]()
    last = Thing()
    gone = weakref.ref(last)
    if isinstance(container, dict):
        container["last"] = last
    elif isinstance(container, set):
        container.add(last)
    else:
        container.append(last)
    del last
    release.release_all(container)
    await _emptied()
    assert not container
    assert gone() is None


@in_loop
async def test_what_others_have_stays() -> None:
    """Contents that somebody else refers to are left as they are, at any depth."""
    inner, deep = list(range(MANY)), Thing([Thing(1)])
    release.release_all([[inner, (deep,)] for _ in range(MANY)])
    await _emptied()
    assert len(inner) == MANY
    assert deep.inside[0][0].inside == (1,)


@in_loop
async def test_rows_that_many_lists_share_are_gone_through_once() -> None:
    """As those of an aggregate with a thousand arguments: each of the lists costs its references, and the last one the rows."""
    lists, rows, width = 400, release.PART, 200
    parts = 0
    real = release._free

    def counted(part: list[Any], stack: list[Any]) -> None:
        nonlocal parts
        parts += 1
        real(part, stack)

    shared = [(Thing(), *range(width)) for _ in range(rows)]
    gone = [weakref.ref(shared[i][0]) for i in (0, -1)]
    held = [list(shared) for _ in range(lists)]
    shared.clear()
    with mock.patch.object(release, "_free", counted):
        release.release_all(held)
        await _emptied()
    assert [one() for one in gone] == [None, None]
    assert parts < lists + 5 * rows * width // release.PART


@in_loop
async def test_what_is_small_is_left_to_python() -> None:
    """No turn of the loop is taken for it."""
    small = list(range(release.LARGE))
    release.release(small, {}, set())
    assert not release.freeing()
    assert len(small) == release.LARGE


@in_loop
async def test_others_run_in_between() -> None:
    """A million entries take many turns."""
    before = release.freed()
    release.release([(i, i) for i in range(1_000_000)])
    turns = 0
    while release.freeing():
        turns += 1
        assert release.freed() == before, "not yet all of it"
        await asyncio.sleep(0)
    assert turns > 3
    assert release.freed() >= before + 1_000_000 // release.PART


@in_loop
async def test_a_wide_tuple_goes_in_pieces() -> None:
    """No list of all its entries is made on the way; one that somebody else has stays as it is."""
    mine = tuple(range(20 * release.WIDE))
    release.release_all([tuple(Thing(i) for i in range(20 * release.WIDE)), mine])
    longest = 0
    while release.freeing():
        await asyncio.sleep(0)
        longest = max([longest, *(len(x) for x in release._queue.stack if isinstance(x, list))])
    assert 0 < longest <= 4 * release.WIDE
    assert mine == tuple(range(20 * release.WIDE))


@in_loop
async def test_what_a_failure_leaves_goes_in_slices() -> None:
    """Of all errors that came of each other; what their code shares with others stays."""
    shared = list(range(MANY))

    def inner() -> None:
        gathered = [Thing(i) for i in range(MANY)]
        known = shared
        gone.append(weakref.ref(gathered[0]))
        raise ValueError(len(gathered) + len(known))

    def outer() -> None:
        rows = {i: Thing(i) for i in range(MANY)}
        gone.append(weakref.ref(rows[0]))
        try:
            inner()
        except ValueError as error:
            raise KeyError(len(rows)) from error

    gone: list[weakref.ref[Thing]] = []
    error: BaseException | None = None
    try:
        outer()
    except KeyError as caught:
        error = caught
    assert error is not None
    release.release_error(error)
    assert error.__traceback__ is None
    assert all(one() is not None for one in gone), "freed in one step"
    await _emptied()
    assert all(one() is None for one in gone)
    assert shared == list(range(MANY))


@pytest.mark.parametrize("made", [tuple, list])
@in_loop
async def test_what_is_minded_goes_in_slices_once_nobody_has_it(
    made: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        release, "_minded", release._Minded(release._queue.add)
    )  # what other tests left is not looked at
    taken: list[int] = []
    real = release._free

    def noted(part: list[Any], stack: list[Any]) -> None:
        taken.append(len(part))
        real(part, stack)

    things = [Thing(i) for i in range(MANY)]
    last = weakref.ref(things[-1])
    had = release.mind(made(things))
    other = release.mind(had)  # who has it does not know that it is minded
    del things, had
    release._minded._look()
    await _emptied()
    assert last() is not None
    assert len(other) == MANY, "somebody has it"
    del other
    with mock.patch.object(release, "_free", noted):
        release._minded._look()
        assert last() is not None, "it is freed in the turns that follow"
        await _emptied()
    assert last() is None
    assert sum(taken) >= MANY
    assert max(taken) <= release.WIDE
    assert not release._minded.held


def test_without_a_loop_nothing_happens() -> None:
    """In a thread, or in a worker, Python frees as ever."""
    rows = list(range(MANY))
    release.release(rows)
    assert not release.freeing()
    assert len(rows) == MANY


@in_loop
async def test_wide_rows_go_in_slices_though_they_are_few() -> None:
    def rows(width: int) -> list[Any]:
        return [tuple(range(width)) for _ in range(900)]

    pairs = [(n, row) for n, row in enumerate(rows(100))]
    for held in (rows(10), rows(1000)[: release.FEW], [], [()] * 900, {1: "x"}):
        release.let_go(held)
        release.release(held)
        assert not release.freeing()
    for held in (rows(100), pairs, dict(pairs), deque(rows(100)), [(1, {})] * 5000):
        release.let_go(held)
        assert release.freeing()
        await _emptied()
    await _emptied()


@pytest.mark.parametrize(
    "made", [lambda n: "x" * n, lambda n: b"x" * n, lambda n: "é" * n], ids=["ascii", "bytes", "wide"]
)
@in_loop
async def test_huge_values_are_freed_by_the_thread_once_nobody_has_them(
    made: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[Any] = []
    monkeypatch.setattr(release, "_huge", release._Minded(freed.extend))
    one = release.mind_huge(made(release.HUGE))
    other = release.mind_huge(one)
    short = release.mind_huge(made(8))
    del one
    release._huge._look()
    assert freed == [], "somebody has it"
    assert len(other) == release.HUGE
    del other
    release._huge._look()
    assert [len(value) for value in freed] == [release.HUGE]
    assert len(short) == 8
    assert not release._huge.held
    monkeypatch.undo()
    before = _resident()
    release.free_pages(freed)
    assert freed == []
    for _ in range(200):
        if _resident() <= before - (release.HUGE * 3 // 4):
            break
        await asyncio.sleep(0.01)
    else:
        pytest.fail("its pages are still there")


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@in_loop
async def test_a_loop_of_huge_values_has_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    monkeypatch.setattr(release, "_huge", release._Minded(lambda gone: freed.extend(map(len, gone))))
    for _ in range(5):
        release.mind_huge("x" * release.HUGE)
        assert len(release._huge.held) == 1
    assert len(freed) == 4
    release.free_huge()
    assert not release._huge.held


def test_a_forked_process_has_a_thread_of_its_own() -> None:
    release.free_pages(["x" * release.HUGE])
    thread = release_pages._thread
    child = os.fork()
    if not child:
        os._exit(0 if release_pages._thread is not thread else 1)
    assert os.waitpid(child, 0)[1] == 0


@in_loop
async def test_the_collector_leaves_long_values_alone() -> None:
    made = release.mind(tuple([i] for i in range(MANY)))
    assert not gc.is_tracked(made)
    last = made[-1]
    del made
    release._minded._look()
    await _emptied()
    assert last == [MANY - 1]


@pytest.mark.parametrize("row", [lambda text: text, lambda text: (1, text)], ids=["texts", "rows"])
@in_loop
async def test_long_texts_go_some_megabytes_at_a_time(row: Callable[[str], Any]) -> None:
    held = [row("x" * (1 << 20)) for _ in range(100)]
    stack: list[Any] = [held]
    left = 100
    while stack:
        release._free_some(stack)
        assert left - sum(map(len, stack)) <= release.LONG >> 20
        left = sum(map(len, stack))
    assert not held


def test_it_is_noted_that_there_has_been_a_long_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "met_long", False)
    release.mind_huge("x" * (release.MET_LONG - 1))
    assert not release.met_long
    release.mind_huge(b"x" * release.MET_LONG)
    assert release.met_long
