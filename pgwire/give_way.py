"""Giving way by time: how synchronous code, however deep, lets other sessions run before it has ended.

    expression, binder, codec, sort …            statement's strand                          event loop
        give_way() ── slice is not over ─► goes on
        give_way() ── slice is over ─────► laid aside as it stands, stack and all ─────────► others run
        goes on, or raises 57014     ◄──── taken up again ◄──────────────────────────────── next turn

Call ``give_way`` in every loop whose length or whose steps a client decides, or iterate over
``paced(items)``. It costs a look at the clock (some 80 ns); a loop of cheaper steps calls it every n steps.
What is one long call of C cannot be laid aside: declare it ``outside`` and a worker process runs it where its
input is large, while the strand waits.

Words
    strand   a line of work that can be laid aside: the stack of a statement (``engine.base.loop.strands`` makes them)
    open     a stretch of code within which the strand may be laid aside; everything else keeps its turn. Engine code opens
             where expressions are evaluated, statements planned, values decoded and encoded (``opened``)
    turn     what must happen at once for everybody else; ``whole_turn`` marks it, and nothing of a user's runs within one

Promises: closed is what nobody has opened, so that code that was not looked at keeps its turn. ``give_way``
never lets others run outside an open stretch, nor within ``whole_turn``; there the debug mode
(``HOLDFAST_DEBUG_TURNS``) raises TurnBroken, whether a slice is over or not. Where nothing can be laid aside
(a thread, a worker of Spark) ``give_way`` asks whether the statement has been cancelled (``polled``), and no
more.

This module is plain data and a clock, so that codecs and planner need nothing of the engine; ``install``
gives it its strands.
"""

from __future__ import annotations

import functools
import heapq
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final, ParamSpec, TypeVar, cast

from pgwire.bounded import BoundedArray

T = TypeVar("T")
P = ParamSpec("P")

SLICE_S: Final = 0.005
"""Seconds that a strand keeps the loop for; then others have their turn."""
PACE: Final = 64
"""Steps between two looks at the clock, where each takes some microseconds."""
RUN: Final = 2048
"""Items that are sorted in one call: a millisecond or two."""

_NEVER: Final = float("inf")

_ends = _NEVER  # when ``give_way`` has more to do than to look at the clock; perf_counter's seconds
_slice_ends = _NEVER  # of the strand that runs
_open = False  # it may be laid aside here
_safe = False  # it may be laid aside ``between`` steps of the coroutine that runs
_bound_ends = _NEVER  # when what is ``bounded`` has taken too long
_turns = 0  # whole turns that are under way
_polling = 0  # threads that are asked to look whether they are cancelled
_in_thread = threading.local()
_lay_aside: Callable[[], None] | None = None
_run_outside: Callable[[str, tuple[Any, ...]], Any] | None = None
_run_beside: Callable[[Callable[..., Any], tuple[Any, ...]], Any] | None = None
DEBUG: bool = os.environ.get("HOLDFAST_DEBUG_TURNS", "") not in ("", "0")


class TurnBroken(AssertionError):
    """A bug: something of a user's runs within a turn that has to be whole (debug mode only)."""


# --- what loops call ------------------------------------------------------------------------------


def give_way() -> None:
    """Let others run if this strand has had its slice.

    Raises SqlError 57014 (or what else ends the statement: CancelledError) when it is to go no further.
    """
    if perf_counter() >= _ends:
        _due()


def paced(items: Sequence[T], every: int = PACE) -> Iterable[T]:
    """Return ``items``, to be iterated over as often as one likes, giving way after each ``every`` of them; a
    short sequence as it is.
    """
    if every == 1:
        return _each(items)
    return items if len(items) <= every else _Paced(items, every)


def _each(items: Iterable[T]) -> Iterator[T]:
    for item in items:
        yield item
        give_way()


class _Paced(Iterable[T]):
    __slots__ = ("_every", "_items")

    def __init__(self, items: Sequence[T], every: int) -> None:
        self._items = items
        self._every = every

    def __iter__(self) -> Iterator[T]:
        items, every = self._items, self._every
        for start in range(0, len(items), every):
            yield from items[start : start + every]
            give_way()


def paced_iter(items: Iterable[T], every: int = PACE) -> Iterator[T]:
    """As ``paced``, for what has no length."""
    left = every
    for item in items:
        yield item
        left -= 1
        if not left:
            left = every
            give_way()


def paced_sorted(items: Iterable[T], key: Callable[[T], Any] | None = None) -> list[T]:
    """As ``sorted``, giving way while keys are computed, once for each item, and between runs of ``RUN``
    items that are sorted in one call.
    """
    gathered = list(paced_iter(items))
    keys: list[Any] = gathered if key is None else [key(item) for item in paced(gathered)]
    if len(keys) <= RUN:
        return [gathered[at] for at in sorted(range(len(keys)), key=keys.__getitem__)]
    runs = []
    for start in range(0, len(keys), RUN):
        runs.append(sorted(range(start, min(start + RUN, len(keys))), key=keys.__getitem__))
        give_way()
    return [gathered[at] for at in paced_iter(heapq.merge(*runs, key=keys.__getitem__))]


# --- what decides where a strand may be laid aside ------------------------------------------------


def opened(may: bool) -> bool:
    """Open the code that follows, or close it; returns what it was, which the caller puts back in a ``finally``.

    Within a turn it stays closed, and where no strand has a slice (``NOBODY``): what runs there is no part of
    the stack it stands on. For the event loop's thread alone. No ``await`` may stand between the two calls:
    each step of a coroutine begins closed.
    """
    global _open, _ends
    was = _open
    _open = may and not _turns and _bound_ends == _NEVER != _slice_ends
    _ends = _slice_ends if _open else _closed()
    return was


Closed = tuple[bool, bool]


def needs_closing() -> bool:
    """Tell whether ``closed_step`` would change anything here."""
    return _open or _safe


def closed_step() -> Closed:
    """Close what follows: a step of a coroutine that synchronous code drives, which may be laid aside
    ``between`` its steps if that code is open.

    Returns what ``end_step`` takes, in a ``finally``.
    """
    global _safe
    was = (_open, _safe)
    _safe = _open
    opened(False)
    return was


def end_step(was: Closed) -> None:
    """Go on as before ``closed_step``."""
    global _safe
    _safe = was[1]
    opened(was[0])


def between() -> None:
    """``give_way`` in a coroutine, between two steps of it: where an ``await`` may stand."""
    if _safe:
        was = opened(True)
        try:
            give_way()
        finally:
            opened(was)


def spaced(items: Iterable[T], every: int = PACE) -> Iterator[T]:
    """As ``paced_iter``, in a coroutine, and in what it calls where an ``await`` may stand."""
    left = every
    for item in items:
        yield item
        left -= 1
        if not left:
            left = every
            between()


def openly(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function as open code: its strand may be laid aside within it."""
    was = opened(True)
    try:
        return function(*args, **kwargs)
    finally:
        opened(was)


def opening(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function be open code whoever calls it: a walk over what nobody changes, whose callers hold
    nothing that others may not see half done.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return openly(function, *args, **kwargs)

    return call


def is_open() -> bool:
    """Tell whether the strand that runs may be laid aside here."""
    return _open


class whole_turn:
    """Mark what must happen at once for everybody else: no ``await`` and nothing of a user's within it.

    The strand is not laid aside there. In debug mode ``give_way`` raises TurnBroken. The kinds of turns are
    listed in docs/internals/invariants.md.
    """

    __slots__ = ("_was",)

    def __enter__(self) -> None:
        global _turns
        _turns += 1
        self._was = opened(False)

    def __exit__(self, *error: object) -> None:
        global _turns
        _turns -= 1
        opened(self._was)


@contextmanager
def polled(check: Callable[[], None]) -> Iterator[None]:
    """In a thread beside the loop: have ``give_way`` call ``check``, which raises once the statement is cancelled."""
    global _polling, _ends
    before = getattr(_in_thread, "check", None)
    _in_thread.check = check
    with _count_lock:
        _polling += 1
        _ends = 0.0  # whoever runs looks closer; the loop's next strand sets its own
    try:
        yield
    finally:
        _in_thread.check = before
        with _count_lock:
            _polling -= 1


_count_lock = threading.Lock()


def _closed() -> float:
    """Return when ``give_way`` looks closer in closed code: at once within a turn, and while threads poll,
    for all share the one clock.
    """
    return 0.0 if _polling or (DEBUG and _turns and _bound_ends == _NEVER) else _bound_ends


def in_loop() -> bool:
    """Tell whether this is the event loop's thread."""
    return threading.get_ident() == _loop_thread or not _loop_thread


class OverBudget(BaseException):
    """What ``bounded`` code computes takes longer than it may: it is left for later. Raised by ``give_way``."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Have ``give_way`` raise OverBudget once the code within has taken longer, and what would run
    ``outside`` at once; it is closed meanwhile. May be nested: the inner one counts.

    A turn that has to be whole may hold it, as nobody runs meanwhile. In a thread it changes nothing.
    """
    global _bound_ends
    if not in_loop():
        yield
        return
    before, was = _bound_ends, _open
    _bound_ends = perf_counter() + seconds
    opened(False)
    try:
        yield
    finally:
        _bound_ends = before
        opened(was)


def _due() -> None:
    if not in_loop():
        check = getattr(_in_thread, "check", None)
        if check is not None:
            check()
        return
    if _bound_ends != _NEVER:
        if perf_counter() >= _bound_ends:
            raise OverBudget
    elif _turns and DEBUG:
        raise TurnBroken(
            "something of a user's runs within a turn that has to be whole (docs/internals/invariants.md)"
        )
    if _open and perf_counter() >= _slice_ends and _lay_aside is not None:
        _lay_aside()


# --- what makes strands (engine.base.loop.strands) -----------------------------------------------------

_loop_thread = 0


def install(
    lay_aside: Callable[[], None],
    run_outside: Callable[[str, tuple[Any, ...]], Any] | None,
    run_beside: Callable[[Callable[..., Any], tuple[Any, ...]], Any] | None = None,
) -> None:
    """Tell how a strand is laid aside, what runs functions ``outside`` and what runs them ``beside``; the
    calling thread is the loop's.
    """
    global _lay_aside, _run_outside, _run_beside, _loop_thread
    _lay_aside, _run_outside, _loop_thread = lay_aside, run_outside, threading.get_ident()
    _run_beside = run_beside


Running = tuple[bool, bool, float]
"""What of a strand is kept while another runs: whether it is open, and safe between steps, and when its slice ends."""


def swap(to: Running) -> Running:
    """Let another strand run, or none (``NOBODY``); returns what was."""
    global _open, _safe, _slice_ends, _ends
    was = (_open, _safe, _slice_ends)
    _open, _safe, _slice_ends = to
    _ends = _slice_ends if _open else _closed()
    return was


def fresh_slice(is_open: bool, is_safe: bool) -> Running:
    """Return what ``swap`` takes for a strand whose slice begins now."""
    return (is_open, is_safe, perf_counter() + SLICE_S)


def is_safe() -> bool:
    """Tell whether ``between`` may let others run here, in a coroutine."""
    return _safe


NOBODY: Final[Running] = (False, False, _NEVER)


# --- long calls of C ------------------------------------------------------------------------------

OUTSIDE: dict[str, Callable[..., Any]] = {}
"""Functions that worker processes run, by ``module:name``: nothing else can be asked of them."""


def outside(
    bytes_: int, weigh: Callable[..., int] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Declare a function of plain values as one long call of C, to be run in a worker process where its
    arguments are large.

    ``bytes_``: up to how many (characters count as bytes) it takes less than a slice here. ``weigh``: what
    counts instead of the arguments' size, from the arguments. Arguments and result are None, bool, int,
    float, str, bytes, Decimal, and tuples and lists of them; positional ones only. Must stand at the top of
    its module. Its DataError and SqlError come back as they are; 57014 when the statement is cancelled while
    it runs, 53200 where it takes more memory than a worker may.
    """

    def declare(function: Callable[P, T]) -> Callable[P, T]:
        name = f"{function.__module__}:{function.__qualname__}"
        OUTSIDE[name] = function

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            weight = size_of(args) if weigh is None else weigh(*args)
            if _run_outside is None or weight <= bytes_:
                return function(*args, **kwargs)
            if _bound_ends != _NEVER and in_loop():
                raise OverBudget  # nothing can wait for a process here
            return cast("T", _run_outside(name, args))

        return call

    return declare


def beside(function: Callable[..., T], *args: Any) -> T | None:
    """Call what lets go of the interpreter for long, and is over in a time that grows with its arguments, in
    a thread while others run.

    None where nothing can wait for it, and it is not called. What is cancelled meanwhile goes on without anybody.
    """
    if _run_beside is None or not _open or _bound_ends != _NEVER or not in_loop():
        return None
    return cast("T | None", _run_beside(function, args))


def size_of(value: Any) -> int:
    """Return about how many bytes a plain value has."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value)
    if kind is tuple or kind is list or kind is BoundedArray:
        return sum(map(size_of, value)) + 8 * len(value)
    if isinstance(value, int):
        return value.bit_length() >> 3
    return 8
