"""An instance of DuckDB for one query, whose spilled data has a bound: ``temp_file_limit`` of its session.

    the shared instance ──lends memory──> own instance ── own-7/ in the folder for spilled data, at most what
    the session has left

DuckDB tells nobody which query of an instance has spilled what, and bounds what an instance spills. So a
query that is bounded has one to itself. It takes some tens of milliseconds to open, and its memory from the
shared one: where that has none left, another executor answers.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from engine.base.temp_files import TempFiles
from engine.executors.local.instance import MIN_MEMORY_BYTES, MemoryLimit, open_instance

_PREFIX: Final = "own-"
_SAYS: Final = "max_temp_directory_size"
"""What DuckDB's error says where the bound is met."""


def spills_too_much(error: Exception) -> bool:
    """Tell whether DuckDB has met the bound of what an instance may spill."""
    return _SAYS in str(error)


def remove_left(spill: Path) -> None:
    """Remove what instances of a server that was killed have left in the folder for spilled data."""
    for folder in spill.glob(f"{_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


def folder_of(spill: Path, number: int) -> Path:
    """Return the folder of an instance."""
    return spill / f"{_PREFIX}{number}"


class OwnInstance:
    """One such instance. Opened, bounded and closed in threads, one at a time."""

    def __init__(
        self, blob_dir: Path, folder: Path, threads: int, memory: MemoryLimit, lent: int, files: TempFiles
    ) -> None:
        """Open it. ``folder``: for spilled data, its own; ``lent``: bytes of ``memory`` that it gives back."""
        self._folder = folder
        self._memory = memory
        self.lent = lent
        self._files = files
        self._bound = files.left(folder)
        try:
            self._instance = open_instance(
                blob_dir,
                memory_bytes=lent,
                threads=min(threads, lent // MIN_MEMORY_BYTES),  # each has some of it that it does not spill
                spill=folder,
                spill_bytes=self._bound,
            )
        except BaseException:
            files.without(folder)
            raise

    def cursor(self) -> Any:
        """Return a connection to it."""
        return self._instance.cursor()

    def bound(self) -> None:
        """Have it spill no more than the session has left by now."""
        left = self._files.left(self._folder)
        if left != self._bound:
            self._bound = left
            self._instance.execute(f"SET GLOBAL max_temp_directory_size = '{left}B'")

    def close(self, shared: Any) -> None:
        """Remove it and what it has spilled, and give its memory back. ``shared``: a connection to the other
        instance; None: there is none.
        """
        try:
            self._instance.close()
            shutil.rmtree(self._folder, ignore_errors=True)
        finally:
            self._files.without(self._folder)
            self._memory.give_back(shared, self.lent)
