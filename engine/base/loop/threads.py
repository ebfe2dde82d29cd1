"""Who gets a processor first: the event loop, before threads that compute.

    waking          a thread that has the processor          gets it
    the loop        a worker, another program                at once: it asks for less
    another program a worker                                 at once
    a worker        any                                      when the time slice of the other is over

Linux gives a waking thread the processor at once only if it asks for a shorter time slice than the one that
has it (EEVDF, since 6.12; ``sched_setattr(2)``, ``sched_runtime`` of a normal thread); else it waits for up
to a tick, 4 ms. A point read would wait so for each block of a COPY that a worker looks through. The loop's
turns last fractions of a millisecond, so it asks for slices of 0.1 ms, the shortest there are; workers ask
for long ones. Nobody's share of the processors changes, and no privilege is needed. Older kernels and other
systems are left as they are.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from engine.base import accounts
from pgwire.give_way import polled
from pgwire.release import release_all, release_error
from planner.base.errors import SqlError

T = TypeVar("T")
P = ParamSpec("P")

LOOP_SLICE_NS: Final = 100_000
WORKER_SLICE_NS: Final = 20_000_000
WORKERS: Final = min(32, (os.cpu_count() or 1) + 4)  # as many as the standard library takes

_CALLS: Final = {"x86_64": (314, 315), "aarch64": (274, 275)}  # sched_setattr, sched_getattr
_ATTRIBUTES: Final = "=IIQiIQQQ"  # size, policy, flags, nice, priority, runtime, deadline, period
_SIZE: Final = struct.calcsize(_ATTRIBUTES)
_RESET_ON_FORK: Final = (
    1  # threads and processes that this thread starts begin with the system's slice, and nice at least 0
)
_NORMAL: Final = (0, 3)  # SCHED_OTHER, SCHED_BATCH


def put_loop_first() -> bool:
    """Have the calling thread, which is the event loop's, run as soon as it wakes; tell whether the system took it."""
    return _ask_for(LOOP_SLICE_NS, inherited=False)


def stand_back() -> None:
    """Have the calling thread, a worker, give the processor to whoever else wakes. For pools' ``initializer``."""
    _ask_for(WORKER_SLICE_NS, inherited=True)


def worker_pool() -> ThreadPoolExecutor:
    """Return the pool for ``asyncio.to_thread`` and its like."""
    return ThreadPoolExecutor(WORKERS, thread_name_prefix="worker", initializer=stand_back)


async def beside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread; where nobody waits for it any more, ``give_way`` ends it there.

    Python ends no thread: only for what gives way in all its loops, and reads nothing that changes meanwhile.
    SqlError 53200 where the process has too much and has grown by more than a little since.
    """
    left = False
    made: list[T] = []
    failed: list[BaseException] = []
    loop = asyncio.get_running_loop()

    grown = accounts.Grown()

    def check() -> None:
        if left:
            raise SqlError("57014", "canceling statement due to user request")
        grown.check()

    def work() -> None:
        try:
            with polled(check):
                made.append(function(*args, **kwargs))
        except BaseException as error:  # whoever waits raises it
            failed.append(error)
        grown.ends()
        if left:
            loop.call_soon_threadsafe(_let_go, made, failed)

    try:
        await asyncio.to_thread(work)
    except asyncio.CancelledError:
        left = True
        _let_go(made, failed)
        raise
    if failed:
        raise failed.pop()
    return made.pop()


def _let_go(made: list[T], failed: list[BaseException]) -> None:
    """Free what nobody waits for any more in slices: the tree of a long statement, or all of it that an
    error's frames hold.
    """
    while failed:
        release_error(failed.pop())
    if made:
        release_all([made.pop()])


def slice_ns(thread: int = 0) -> int | None:
    """Return the time slice a thread asks for (0: the calling one); None where the system does not say."""
    found = _attributes(thread)
    return found[5] or None if found is not None else None


def _attributes(thread: int) -> tuple[int, ...] | None:
    calls = _CALLS.get(platform.machine()) if platform.system() == "Linux" else None
    if calls is None:
        return None
    buffer = ctypes.create_string_buffer(_SIZE)
    if ctypes.CDLL(None).syscall(calls[1], thread, buffer, _SIZE, 0) != 0:
        return None
    return struct.unpack(_ATTRIBUTES, buffer.raw)


def _ask_for(nanoseconds: int, *, inherited: bool) -> bool:
    found = _attributes(0)
    if found is None or found[1] not in _NORMAL or not found[5]:
        return False
    _size, policy, _flags, nice = found[:4]
    # Where the server was given a higher priority, that is inherited, and the slice with it.
    flags = 0 if inherited or nice < 0 else _RESET_ON_FORK
    wanted = struct.pack(_ATTRIBUTES, _SIZE, policy, flags, nice, 0, nanoseconds, 0, 0)
    set_attributes, _get = _CALLS[platform.machine()]
    return bool(ctypes.CDLL(None).syscall(set_attributes, 0, wanted, 0) == 0)
