"""Memory that a statement lets go of, freed a slice at a time: a million rows are one call of C, 100 ms, where their container just goes.

    node, function …   finally: release(table) ──► queue ──► the event loop empties it, 2 ms in each turn

Call ``release`` in the ``finally`` of whatever gathers as much as a client likes: it ends so whether it has come to its end, an error, a cancel, or is
abandoned. It takes what has many entries and leaves the rest to Python at once.

A container that is released is nobody else's any more: it is emptied, whoever still refers to it (a traceback does). What is in it is freed, and
emptied in its turn, only where nothing else refers to it.

For the event loop's thread; elsewhere, and where no loop runs, ``release`` does nothing.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from itertools import chain
from sys import getrefcount
from time import perf_counter
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final

LARGE: Final = 4096
"""Entries of a container from which on it is freed in slices."""
SLICE_S: Final = 0.002
"""Seconds of a turn of the loop that freeing takes."""
PART: Final = 512
"""Entries that are freed between two looks at the clock."""
WIDE: Final = 16 * PART
"""What the tuples of a part may hold together."""

_HAS_GC: Final = 1 << 14  # Py_TPFLAGS_HAVE_GC: objects of such a type may refer to others
_CONTAINERS: Final = (list, dict, set, deque)
_RUNNING: Final = frozenset({GeneratorType, CoroutineType, AsyncGeneratorType})  # freeing one runs code


class _Queue:
    """What is to be emptied, and the loop that does it."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.loop: asyncio.AbstractEventLoop | None = None

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
        while stack and perf_counter() < until:
            _free_some(stack)
        if stack and self.loop is not None:
            self.loop.call_soon(self._turn)
        else:
            self.loop = None


_queue = _Queue()


def release(*containers: Any) -> None:
    """Let go of lists, dicts, sets and deques: those with more than ``LARGE`` entries are emptied in the turns that follow."""
    for container in containers:
        if len(container) > LARGE:
            _queue.add(container)


def release_all(container: Any) -> None:
    """As ``release``, of one with few entries that hold much."""
    _queue.add(container)


def release_values(kept: dict[Any, Any]) -> None:
    """Let go of a dict and of the containers that are its values, if it or one of them is large."""
    if len(kept) > LARGE or any(isinstance(x, _CONTAINERS) and len(x) > LARGE for x in kept.values()):
        release_all(kept)


def left() -> int:
    """Return how many containers are still to be emptied."""
    return len(_queue.stack)


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
    """Empty a list; what its entries alone refer to is put on the stack."""
    kinds = set(map(type, part))
    if not any(map(_refers, kinds)):
        part.clear()
        return
    if kinds == _TUPLES:
        if sum(map(len, part)) > WIDE:
            if len(part) > 1:
                half = len(part) // 2
                stack.append(part[half:])
                del part[half:]
                _free(part, stack)
                return
        elif not any(map(_refers, set(map(type, chain.from_iterable(part))))):
            part.clear()
            return
    owned = [x for x in part if getrefcount(x) == 3]  # the list's, the loop's, and the call's
    part.clear()
    stack += [x for x in owned if isinstance(x, _CONTAINERS) and len(x) > PART]
    found = gc.get_referents(*(x for x in owned if not _stays_whole(x)))
    owned.clear()
    if found:
        stack.append(found)


_TUPLES: Final = {tuple}


def _stays_whole(entry: Any) -> bool:
    return type(entry) in _RUNNING or (isinstance(entry, _CONTAINERS) and len(entry) > PART)


def _refers(kind: type) -> bool:
    return bool(kind.__flags__ & _HAS_GC)
