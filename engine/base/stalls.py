"""Detects event loop stalls: a callback that keeps the loop busy longer than a bound is a bug."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback

log = logging.getLogger("holdfast.stalls")

BEATS_PER_BOUND = 4


class StallWatch:
    """A thread that notices when the loop stops ticking and logs what it is doing.

    ``stalls`` counts them; ``worst_ms`` is the longest seen.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, bound_ms: int) -> None:
        """Watch ``loop``; call from its thread."""
        self._loop = loop
        self._bound_s = bound_ms / 1000
        self._beat_s = self._bound_s / BEATS_PER_BOUND
        self._last = time.monotonic()
        self._loop_thread = threading.get_ident()
        self._stopped = threading.Event()
        self.stalls = 0
        self.worst_ms = 0.0
        self._handle = loop.call_soon(self._tick)
        self._thread = threading.Thread(target=self._watch, name="stall-watch", daemon=True)
        self._thread.start()

    def _tick(self) -> None:
        self._last = time.monotonic()
        self._handle = self._loop.call_later(self._beat_s, self._tick)

    def _watch(self) -> None:
        reported = 0.0
        while not self._stopped.wait(self._beat_s):
            silent = time.monotonic() - self._last - self._beat_s
            if silent < self._bound_s:
                continue
            self.worst_ms = max(self.worst_ms, silent * 1000)
            if self._last == reported:
                continue
            reported = self._last
            self.stalls += 1
            frame = sys._current_frames().get(self._loop_thread)
            stack = "".join(traceback.format_stack(frame, limit=12)) if frame is not None else ""
            log.warning("the event loop is stalled (over %.0f ms) in:\n%s", silent * 1000, stack)

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()
        self._handle.cancel()


def watch_stalls(loop: asyncio.AbstractEventLoop, bound_ms: int) -> StallWatch:
    """Start watching ``loop`` for stalls over ``bound_ms`` milliseconds."""
    return StallWatch(loop, bound_ms)
