"""How far a run is: a bar on a terminal, elsewhere a line every so many queries with rate and time left."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

BAR_WIDTH = 30
BAR_INTERVAL_S = 0.2


class Progress:
    """Counts what is done; threads may share one.

    ``queries``: how many will be asked, 0 where nobody knows; ``every``: a line after so many of them where ``out`` is
    no terminal, 0 for none.
    """

    def __init__(
        self,
        files: int,
        *,
        queries: int = 0,
        every: int = 0,
        out: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with nothing done; rate and time left count from here."""
        self._lock = threading.Lock()
        self._files, self._files_done = files, 0
        self._total, self._queries, self._records = queries, 0, 0
        self._failed = self._refused = 0
        self._every = every
        self._out = out or sys.stderr
        self._clock = clock
        self._started = clock()
        self._last = 0.0
        self._bar = self._out.isatty()

    def record(self, asked: bool) -> None:
        """One record is done; ``asked``: it was a query that was put to the server."""
        with self._lock:
            self._records += 1
            self._queries += asked
            if self._bar:
                self._draw()
            elif asked and self._every and self._queries % self._every == 0:
                self._line()

    def file(self, failed: int, refused: int) -> None:
        """One file is done, with so many records that did not hold and that the executor had refused."""
        with self._lock:
            self._files_done += 1
            self._failed += failed
            self._refused += refused
            if self._bar:
                self._draw(force=True)

    def _line(self) -> None:
        rate = self._queries / max(self._clock() - self._started, 1e-9)
        of = f" of {self._total}" if self._total else ""
        left = f", {(self._total - self._queries) / rate / 60:.0f} min left" if self._total else ""
        print(
            f"{self._queries}{of} queries, {rate:.1f}/s{left}; "
            f"{self._files_done}/{self._files} files, {self._failed} failed, {self._refused} refused in them",
            file=self._out,
            flush=True,
        )

    def _draw(self, *, force: bool = False) -> None:
        now = self._clock()
        if not force and now - self._last < BAR_INTERVAL_S:
            return
        self._last = now
        full = BAR_WIDTH * self._files_done // max(self._files, 1)
        bar = "#" * full + "." * (BAR_WIDTH - full)
        self._out.write(
            f"\r[{bar}] {self._files_done}/{self._files} files, {self._records} records, {self._failed} failed "
        )
        if self._files_done == self._files:
            self._out.write("\n")
        self._out.flush()
