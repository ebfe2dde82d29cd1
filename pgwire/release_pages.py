"""Huge texts and bytes, whose pages go back to the system in a thread: 250 MB that are freed at once hold all
of the process for 8 to 60 ms.

    loop     free_pages([text]) ──► queue
    thread                          madvise(its pages, MADV_DONTNEED), without the interpreter's lock; then the object is freed, which has no pages left

Giving pages back takes the lock on the process's memory as a reader, so that others have page faults
meanwhile; unmapping them takes it as a writer.

The caller has looked that nobody else refers to the value: its contents are gone from then on, its header,
which stands before them, is not.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from queue import Empty, SimpleQueue
from typing import Any, Final

HUGE: Final = 16 << 20
"""Characters or bytes of a value from which on its pages are freed by the thread: below, it is half a millisecond."""
_AT_ONCE: Final = 32 << 20
"""Bytes of one call."""
_HEADER: Final = 128
"""More than the header of a text or bytes takes."""
_DONT_NEED: Final = 4  # Linux's MADV_DONTNEED

_madvise = getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
if _madvise is not None:
    _madvise.restype, _madvise.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class _Thread:
    """The thread, which begins with the first value, and what waits for it."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[Any] = SimpleQueue()
        self.thread: threading.Thread | None = None

    def add(self, values: list[Any]) -> None:
        while values:
            self.waiting.put(values.pop())
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="free pages", daemon=True)
            self.thread.start()

    def _run(self) -> None:
        while True:
            value = self.waiting.get()
            _empty(value)
            del value


_thread = _Thread()


def _forked() -> None:
    global _thread
    _thread = _Thread()


os.register_at_fork(after_in_child=_forked)


def free_pages(values: list[Any]) -> None:
    """Free texts and bytes that nobody but this list refers to; they are taken out of it."""
    if _madvise is None:
        values.clear()
    else:
        _thread.add(values)


def free_waiting() -> None:
    """Free at once what the thread has not begun with."""
    try:
        while True:
            _thread.waiting.get_nowait()
    except Empty:
        pass


def _empty(value: str | bytes) -> None:
    """Give back the pages of a value that nobody will read again, the one with its header apart."""
    # of a text that is not ASCII a character is a byte at least: where it is more, the rest is left to whoever frees it
    size = len(value)
    start = -(-(id(value) + _HEADER) // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (id(value) + size) // mmap.PAGESIZE * mmap.PAGESIZE
    if _madvise is None:
        raise AssertionError("pages are emptied where the system has no madvise")
    for at in range(start, end, _AT_ONCE):
        _madvise(at, min(_AT_ONCE, end - at), _DONT_NEED)
