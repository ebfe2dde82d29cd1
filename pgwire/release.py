"""Memory that a statement lets go of, freed a slice at a time: a million rows are one call of C, 100 ms,
where their container just goes.

    node, function …   finally: release(table) ──► queue ──► the event loop empties it, 2 ms in each turn

Call ``release`` in the ``finally`` of whatever gathers as much as a client likes: it ends so whether it has
come to its end, an error, a cancel, or is abandoned. It takes what has many entries and leaves the rest to
Python at once. What a statement that failed or was cancelled was at goes by ``release_error``, whether its
code thought of that or not.

A container that is released is nobody else's any more: it is emptied, whoever still refers to it (a traceback
does). What is in it is freed, and emptied in its turn, only where nothing else refers to it.

What is made within an expression has no end of its own: the value goes with whoever has it last, an argument,
a row, a variable. Who makes a large list or tuple calls ``mind``: the module keeps it, looks at times whether
anybody else does, and frees it in slices when nobody has it any more. So does who makes a huge text or bytes,
whose pages go back to the system in a thread of its own then (``pgwire.release_pages``).

For the event loop's thread; elsewhere, and where no loop runs, ``release`` and ``mind`` do nothing.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections import deque
from collections.abc import Callable, Collection, Iterable
from itertools import chain
from sys import getrefcount
from time import perf_counter
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final, TypeVar

from pgwire.release_pages import HUGE, free_pages, free_waiting

_T = TypeVar("_T")
_V = TypeVar("_V", str, bytes)

LARGE: Final = 4096
"""Entries of a container from which on it is freed in slices."""
FEW: Final = 16
"""Entries that are never many, however wide."""
CELLS: Final = 16 * LARGE
"""As ``LARGE``, of what the entries have together where they are rows, or pairs with rows: half a millisecond
to two."""
SLICE_S: Final = 0.002
"""Seconds of a turn of the loop that freeing takes."""
PART: Final = 512
"""Entries that are freed between two looks at the clock."""
WIDE: Final = 16 * PART
"""What the tuples of a part may hold together."""

LONG: Final = 16 << 20
"""Characters and bytes of values that are freed at once: half a millisecond."""

MET_LONG: Final = 1 << 20
met_long = False
"""Whether the process has had a text or bytes of so much: until then nobody need look for one among many values."""

LOOK_S: Final = 0.02
"""From when something is minded to the first look whether anybody has it; twice as long to the next look, and so on."""
RARELY_S: Final = 1.0
"""The longest time from one look to the next, and that what was dropped stays."""
MINDED: Final = 4096
"""How much is minded; the oldest are left to Python."""

_HAS_GC: Final = 1 << 14  # Py_TPFLAGS_HAVE_GC: objects of such a type may refer to others
_CONTAINERS: Final = (list, dict, set, deque)
_HELD: Final = (*_CONTAINERS, tuple, frozenset)  # other collections have ways of their own to let go
_RUNNING: Final = frozenset({GeneratorType, CoroutineType, AsyncGeneratorType})  # freeing one runs code


_API: Final = ctypes.pythonapi
_keep = _API.Py_IncRef
_keep.restype, _keep.argtypes = None, (ctypes.py_object,)
_drop = _API.Py_DecRef
_drop.restype, _drop.argtypes = None, (ctypes.c_void_p,)
_untrack = _API.PyObject_GC_UnTrack
_untrack.restype, _untrack.argtypes = None, (ctypes.py_object,)
_slice = _API.PyTuple_GetSlice
_slice.restype, _slice.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)
_resize = _API._PyTuple_Resize
_resize.restype, _resize.argtypes = ctypes.c_int, (ctypes.POINTER(ctypes.c_void_p), ctypes.c_ssize_t)


class _Wide:
    """A tuple of many entries that is nobody else's: it is made shorter, by what CPython documents for that,
    which asks for the only reference.
    """

    __slots__ = ("_address", "_size")

    def __init__(self, holder: list[Any]) -> None:
        """Take the last entry out of ``holder``, a tuple that nothing else refers to."""
        value = holder.pop()
        self._size = len(value)
        self._address = ctypes.c_void_p(id(value))
        _keep(value)

    def __len__(self) -> int:
        return self._size

    def take(self) -> list[Any]:
        """Take some entries off its end."""
        rest = max(self._size - WIDE, 0)
        part = list(_slice(self._address, rest, self._size))
        self._size = 0  # where it cannot be made shorter, it has gone as a whole
        _resize(ctypes.byref(self._address), rest)
        self._size = rest
        return part

    def __del__(self) -> None:
        if self._address.value:
            _drop(self._address)


class _Queue:
    """What is to be emptied, and the loop that does it."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.parts = 0  # that have been freed
        self.parts_when_empty = 0

    def add(self, container: Any) -> None:
        """Have a container emptied from the next turn of the running loop on; without a loop nothing happens."""
        loop = asyncio._get_running_loop()
        if loop is None:
            return
        self.stack.append(container)
        if self.loop is not loop:
            self.loop = loop
            loop.call_soon(self._turn)

    def _turn(self) -> None:
        stack = self.stack
        until = perf_counter() + SLICE_S
        try:
            while stack and perf_counter() < until:
                _free_some(stack)
                self.parts += 1
        finally:  # what could not be freed in pieces does not keep the rest
            if stack and self.loop is not None:
                self.loop.call_soon(self._turn)
            else:
                self.loop = None
                self.parts_when_empty = self.parts


_queue = _Queue()


class _Minded:
    """Values that others have, until they are this one's alone."""

    def __init__(self, free: Callable[[list[Any]], None]) -> None:
        """``free`` is given those that nobody else has any more, in a list of its own."""
        self._free = free
        # by identity: what two functions mind is there once, or each of the two would be somebody who has it
        self.held: dict[int, Any] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.pause_s = LOOK_S
        self.timer: asyncio.TimerHandle | None = None

    def add(self, container: Any) -> None:
        loop = asyncio._get_running_loop()
        if loop is None:
            return
        held = self.held
        held[id(container)] = container
        if len(held) > MINDED:
            del held[next(iter(held))]
        if self.loop is not loop or self.timer is None or self.pause_s > LOOK_S:
            if self.loop is loop and self.timer is not None:
                self.timer.cancel()
            self.loop = loop
            self._look_after(LOOK_S)

    def _look_after(self, pause_s: float) -> None:
        if self.loop is None:
            raise AssertionError("values are released before there is an event loop")
        self.pause_s = pause_s
        self.timer = self.loop.call_later(pause_s, self._look)

    def take(self) -> list[Any]:
        """Return those that nobody else has any more; they are minded no longer."""
        held, gone = self.held, []
        for key in list(held):
            container = held.pop(key)
            if getrefcount(container) == 2:  # this variable's, and the call's
                gone.append(container)
            else:
                held[key] = container
            del container
        return gone

    def free(self) -> None:
        """Free those that nobody else has any more."""
        gone = self.take()
        if gone:
            self._free(gone)

    def _look(self) -> None:
        self.timer = None
        self.free()
        if self.held:
            self._look_after(min(2 * self.pause_s, RARELY_S))


_minded = _Minded(_queue.add)
_huge = _Minded(free_pages)


def mind(container: _T) -> _T:
    """Return a list or tuple of many entries that was just made; once nobody has it any more it is freed in slices.

    A tuple is a value, which no circle of references goes through: the collector, which would look through
    all of a new one twice (170 ms for eight million entries), is told to leave it alone.
    """
    if type(container) is tuple:
        _untrack(container)
    _minded.add(container)
    return container


def is_large(container: Collection[Any]) -> bool:
    """Tell whether a container has more entries than are freed at once, or rows, or pairs with rows, that
    have as much together; the first one tells how wide they are.
    """
    size = len(container)
    if not FEW < size <= LARGE:
        return size > LARGE
    one, width = next(iter(container.values() if isinstance(container, dict) else container)), 0
    while isinstance(one, tuple | list) and one:
        width += len(one)
        one = one[-1]
    return size * width > CELLS


def mind_huge(value: _V) -> _V:
    """Return a text or bytes that was just made; where it is huge, its pages are freed in a thread once
    nobody has it any more.

    Those that nobody has by now go first, so that a loop that makes one after the other has no more than two.
    """
    global met_long
    if len(value) >= MET_LONG:
        met_long = True
    if len(value) >= HUGE:
        _huge.free()
        _huge.add(value)
    return value


def free_huge() -> None:
    """Free at once what ``mind_huge`` would have freed in its thread: for who is about to refuse somebody memory."""
    _huge.take().clear()
    free_waiting()


def mind_long(container: _T) -> _T:
    """As ``mind``, of one that may have few entries: then it is left to Python."""
    return mind(container) if is_large(container) else container  # type: ignore[arg-type]  # lists and tuples are collections


def release(*containers: Any) -> None:
    """Let go of lists, dicts, sets and deques: large ones, of many entries or of wide rows, are emptied in
    the turns that follow.
    """
    for container in containers:
        if is_large(container):
            _queue.add(container)


def let_go(*held: Collection[Any]) -> None:
    """Let go of containers that others may have, too: of large ones, as ``release`` says, what nobody else
    has is freed in the turns that follow.

    For the last words of a function: what its caller has stays whole, and would go as one later.
    """
    for one in held:
        if len(one) > FEW:
            break
    else:  # short statements come by here
        return
    large = [one for one in held if isinstance(one, _HELD) and is_large(one)]
    if large:
        _queue.add(large)


def release_all(container: Any) -> None:
    """As ``release``, of one with few entries that hold much."""
    _queue.add(container)


def release_values(kept: dict[Any, Any]) -> None:
    """Let go of a dict and of the containers that are its values, if it or one of them is large."""
    if is_large(kept) or any(isinstance(x, _CONTAINERS) and is_large(x) for x in kept.values()):
        release_all(kept)


def release_error(error: BaseException) -> None:
    """Drop the frames of an error that has been dealt with, and of those it came of; what they had gathered
    goes in slices.

    So whatever a statement was at when it failed, or was cancelled, is freed without holding others up,
    whether its code thought of that or not.
    """
    found: dict[int, Any] = {}
    errors = [error]
    for one in errors:  # which grows meanwhile
        trace, one.__traceback__ = one.__traceback__, None
        while trace is not None:
            found.update((id(value), value) for value in trace.tb_frame.f_locals.values())
            trace = trace.tb_next
        errors += [
            other for other in (one.__cause__, one.__context__) if other is not None and other.__traceback__
        ]
    held = [value for value in found.values() if _refers(type(value))]
    if held:
        release_all(held)


def freeing() -> tuple[object, ...]:
    """Return the queue while it has something left, as what runs (``engine.base.loop.collector``)."""
    return (_queue,) if _queue.stack else ()


def freed() -> int:
    """Return how many parts, of ``PART`` entries at most, had been freed when the queue last became empty."""
    return _queue.parts_when_empty


def _free_some(stack: list[Any]) -> None:
    """Free some entries of the container on top; what they alone refer to comes on top of it."""
    top = stack[-1]
    if not top:
        stack.pop()
    elif isinstance(top, list):
        part = top[-PART:]
        del top[-PART:]
        del top
        _free(part, stack)
    elif isinstance(top, _Wide):
        _free(top.take(), stack)
    elif isinstance(top, dict):
        keys, values = [], []
        for _ in range(min(PART, len(top))):
            key, value = top.popitem()
            keys.append(key)
            values.append(value)
            del key, value
        _free(keys, stack)
        _free(values, stack)
    else:
        part = [top.pop() for _ in range(min(PART, len(top)))]
        _free(part, stack)


def _free(part: list[Any], stack: list[Any]) -> None:
    """Empty a list; what its entries alone refer to is put on the stack.

    Who has an entry is asked before anything else is: rows that a thousand lists share would be gone through
    a thousand times.
    """
    kinds = set(map(type, part))
    if not any(map(_refers, kinds)):
        if not (len(part) > 1 and kinds & _TEXTS and _is_long(part) and _free_half(part, stack)):
            part.clear()
        return
    owned = [x for x in part if getrefcount(x) == 3]  # the list's, the loop's, and the call's
    if len(owned) < len(part):  # what is there twice does not look like ours alone
        once = {id(x): x for x in part}
        if len(once) < len(part):
            part[:] = once.values()
            once.clear()
            owned.clear()
            owned = [x for x in part if getrefcount(x) == 3]
        del once
    part.clear()
    if set(map(type, owned)) == _TUPLES:
        if sum(map(len, owned)) > WIDE:
            if _free_half(owned, stack):
                return
        else:
            kinds = set(map(type, chain.from_iterable(owned)))
            if not any(map(_refers, kinds)):
                if not (kinds & _TEXTS and _is_long(chain.from_iterable(owned)) and _free_half(owned, stack)):
                    owned.clear()
                return
    stack += [x for x in owned if isinstance(x, _CONTAINERS) and len(x) > PART]
    wide = [x for x in owned if type(x) is tuple and len(x) > WIDE]
    if wide:
        owned = [x for x in owned if type(x) is not tuple or len(x) <= WIDE]
        while wide:
            stack.append(_Wide(wide))
    found = gc.get_referents(*(x for x in owned if not _stays_whole(x)))
    owned.clear()
    if found:
        stack.append(found)


def _free_half(part: list[Any], stack: list[Any]) -> bool:
    """Free one half of a list, and put the other on the stack; False, with nothing done, where it has one entry."""
    half = len(part) // 2
    if half:
        stack.append(part[half:])
        del part[half:]
        _free(part, stack)
    return half > 0


def _is_long(values: Iterable[Any]) -> bool:
    """Tell whether the texts and bytes among values have more bytes together than are freed at once."""
    return sum([len(x) for x in values if type(x) in _TEXTS]) > LONG


_TUPLES: Final = {tuple}
_TEXTS: Final = frozenset({str, bytes})


def _stays_whole(entry: Any) -> bool:
    return type(entry) in _RUNNING or (isinstance(entry, _CONTAINERS) and len(entry) > PART)


def _refers(kind: type) -> bool:
    return bool(kind.__flags__ & _HAS_GC)
