"""What temporary files of one session take on disk, all together, and ``temp_file_limit``, which bounds it.

    rows that a statement gathers   ┐ grow, shrink
    rows of cursors                 ┘
    DuckDB, an instance of the query's own ── its folder for spilled data

PostgreSQL's limit is one for all files of a session at a time, not for each. Files that hold what is stored
(parts that a statement writes, also before it commits) are not among them, as tables are not there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from planner.base.errors import SqlError


class TempFiles:
    """Counts the bytes of a session's temporary files. Used from any thread."""

    __slots__ = ("_bytes", "_folders", "_limit", "_lock")

    def __init__(self, limit: Callable[[], int]) -> None:
        """``limit``: ``temp_file_limit`` as it is now, in kB; -1: none."""
        self._limit = limit
        self._bytes = 0
        self._folders: set[Path] = set()
        self._lock = threading.Lock()

    @property
    def limited(self) -> bool:
        """Whether there is a limit now."""
        return self._limit() >= 0

    def grow(self, size: int) -> None:
        """Count ``size`` more bytes, about to be written. Raises SqlError 53400 where the session has too many then."""
        with self._lock:
            limit = self._limit()
            if limit >= 0 and self._bytes + self._elsewhere(None) + size > limit << 10:
                raise exceeded(limit)
            self._bytes += size

    def shrink(self, size: int) -> None:
        """Count ``size`` fewer bytes: their file has gone."""
        with self._lock:
            self._bytes -= size

    def left(self, folder: Path) -> int:
        """Return how many bytes the files of a folder may come to, of which they are part, and count them
        from now on.
        """
        with self._lock:
            self._folders.add(folder)
            return max((self._limit() << 10) - self._bytes - self._elsewhere(folder), 0)

    def without(self, folder: Path) -> None:
        """Count a folder no longer. Idempotent."""
        with self._lock:
            self._folders.discard(folder)

    def exceeded(self) -> SqlError:
        """Return the error of a session past its limit."""
        return exceeded(self._limit())

    def _elsewhere(self, but: Path | None) -> int:
        return sum(_size(folder) for folder in self._folders if folder != but)


def exceeded(limit_kb: int) -> SqlError:
    """Return PostgreSQL's error for temporary files past a limit in kB."""
    return SqlError("53400", f"temporary file size exceeds temp_file_limit ({limit_kb}kB)")


def _size(folder: Path) -> int:
    """Return what the files of a folder take that its owner may be writing or removing."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    total += entry.stat().st_blocks * 512
                except FileNotFoundError:
                    continue
    except FileNotFoundError:
        return 0
    return total
