"""Processor time of the loop's turns, written by the server's process into a page that the test's process looks at.

    server   _timed(callback) ─► Meter.run ─► page: turn 4711 has begun / has ended; the longest so far; in the collector
    test     Gauge.longest_ms, Gauge.held_ms (of a turn that has not ended yet)      nothing is asked of the server

Time is ``CLOCK_THREAD_CPUTIME_ID`` of the loop's thread: what other programs take of the machine makes no turn longer. The
test sees a turn that does not end, too, although the interpreter of the server is held: from ``/proc`` and the page alone.
"""

from __future__ import annotations

import faulthandler
import gc
import mmap
import signal
import struct
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = 4096
# turns begun or ended (odd: within one), thread of the loop, its processor seconds when the turn began; longest turn, the
# longest run of the collector (seconds, not part of the turn), bytes of the longest turn's name
_TURN: Final = struct.Struct("=QQd")
_LONGEST: Final = struct.Struct("=ddI")
_LONGEST_AT: Final = 64
_NAME_AT: Final = 128


class Meter:
    """The server's side: times what the loop runs (``tests.support.timed_loop``)."""

    def __init__(self, page: Path, stacks: Path) -> None:
        """Write to ``page``; at SIGUSR1 where all threads stand is added to ``stacks``, whoever holds the interpreter."""
        with page.open("r+b") as handle:
            self._page = mmap.mmap(handle.fileno(), PAGE_BYTES)
        self._stacks = stacks.open("ab")
        faulthandler.register(signal.SIGUSR1, self._stacks, all_threads=True)
        self._turns = 0
        self._inside = False
        self._thread = threading.get_native_id()
        self._collecting_since = 0.0
        self._collected = 0.0
        gc.callbacks.append(self._collector)

    def run(self, name: Callable[[], str], work: Callable[..., object], args: Sequence[object]) -> None:
        """Run and time ``work``, unless it is part of a turn that is being timed."""
        if self._inside:
            work(*args)
            return
        self._inside = True
        self._collected = 0.0
        self._turns += 1
        began = time.thread_time()
        _TURN.pack_into(self._page, 0, self._turns, self._thread, began)
        try:
            work(*args)
        finally:
            self._ended(time.thread_time() - began - self._collected, name)

    def _ended(self, spent: float, name: Callable[[], str]) -> None:
        self._inside = False
        self._turns += 1
        struct.pack_into("=Q", self._page, 0, self._turns)
        longest, collector, size = _LONGEST.unpack_from(self._page, _LONGEST_AT)
        if spent > longest:
            called = name().encode()[: PAGE_BYTES - _NAME_AT]
            size = len(called)
            self._page[_NAME_AT : _NAME_AT + size] = called
        elif self._collected <= collector:
            return
        _LONGEST.pack_into(
            self._page, _LONGEST_AT, max(spent, longest), max(self._collected, collector), size
        )

    def _collector(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_native_id() != self._thread:
            return
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting_since


class Gauge:
    """The test's side of a page."""

    def __init__(self, page: Path) -> None:
        """Make the page."""
        page.write_bytes(bytes(PAGE_BYTES))
        with page.open("r+b") as handle:
            self._page = mmap.mmap(handle.fileno(), PAGE_BYTES)
        self.pid = 0
        self._seen: tuple[int, int, float] = (0, 0, 0.0)

    def reset(self) -> None:
        """Forget the longest turn."""
        _LONGEST.pack_into(self._page, _LONGEST_AT, 0.0, 0.0, 0)

    @property
    def longest_ms(self) -> float:
        """Processor time of the longest turn that has ended since ``reset``, the collector's apart."""
        return float(_LONGEST.unpack_from(self._page, _LONGEST_AT)[0]) * 1000

    @property
    def collector_ms(self) -> float:
        """What the collector took of one turn at most."""
        return float(_LONGEST.unpack_from(self._page, _LONGEST_AT)[1]) * 1000

    @property
    def longest_name(self) -> str:
        """What the loop ran in the longest turn."""
        size = _LONGEST.unpack_from(self._page, _LONGEST_AT)[2]
        return self._page[_NAME_AT : _NAME_AT + size].decode("utf-8", "replace")

    @property
    def held_ms(self) -> float:
        """Processor time that the turn under way has taken so far; 0 between turns, and for one that was not under way when last asked.

        The page is written piece by piece, so that what is read while a turn begins may be half of the one before.
        """
        written = _TURN.unpack_from(self._page, 0)
        turn, thread, began = written
        before, self._seen = self._seen, written
        if turn % 2 == 0 or written != before:
            return 0.0
        spent = _thread_seconds(self.pid, thread)
        if _TURN.unpack_from(self._page, 0) != written:
            return 0.0
        return max(0.0, spent - began) * 1000

    @property
    def loop_ms(self) -> float:
        """Processor time of the loop's thread since it began."""
        thread = _TURN.unpack_from(self._page, 0)[1]
        return _thread_seconds(self.pid, thread) * 1000 if thread else 0.0


def _thread_seconds(pid: int, thread: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def peak_bytes(pid: int) -> int:
    """Return the largest resident set that a process has had since ``reset_peak``."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def reset_peak(pid: int) -> None:
    """Count the largest resident set from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
