"""The one DuckDB instance of the process, locked down.

It holds no data of its own: every query names Parquet parts and registered Arrow tables. No extension is installed
or loaded behind our back, files are readable below the blob folder only, Python variables are never looked up, and
the configuration is locked after start.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import duckdb

MIN_MEMORY_BYTES = 64 * 2**20

READERS: Final = 2
"""Threads that read ahead of those that compute. Each keeps some files open that are read next: with DuckDB's eight, more than is gained."""
PER_THREAD: Final = 16
"""Descriptors that a scan of many files has open at once for each thread, at most: twice what was measured (two for each file)."""


def opened_at_most(scans: Iterable[int], threads: int) -> int:
    """Return how many descriptors a query may have open at once: two for each file of a scan, or as many as its threads come to."""
    most = PER_THREAD * (threads + READERS)
    return sum(min(2 * files, most) for files in scans)


def spill_folder(blob_dir: Path, spill: Path | None) -> Path:
    """Return the folder for spilled data: ``spill``, or one inside ``blob_dir``."""
    return blob_dir / "duckdb-spill" if spill is None else spill


def open_instance(blob_dir: Path, *, memory_bytes: int, threads: int, spill: Path | None = None) -> Any:
    """Return a connection to a new in-memory instance.

    Args:
        blob_dir: the only folder whose files may be read, but for what DuckDB itself has spilled.
        spill: the folder for spilled data; None: ``duckdb-spill`` inside ``blob_dir``.
        memory_bytes: what DuckDB may use before it spills.
        threads: worker threads of all queries together, at least 1.
    """
    spill = spill_folder(blob_dir, spill)
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": max(threads, 1),
            "memory_limit": f"{max(memory_bytes, MIN_MEMORY_BYTES)}B",
            "temp_directory": str(spill),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
        },
    )
    for statement in (
        "SET GLOBAL TimeZone = 'UTC'",
        "SET GLOBAL default_null_order = 'nulls_last'",
        "SET GLOBAL preserve_insertion_order = false",
        f"SET GLOBAL async_threads = {READERS}",
        "SET GLOBAL allowed_configs = ['memory_limit']",  # by ``MemoryLimit`` alone
        f"SET GLOBAL allowed_directories = [{_quoted(blob_dir)}, {_quoted(spill)}]",
        # It lifts failing sub-expressions out of CASE branches that are not taken.
        "SET GLOBAL disabled_optimizers = 'common_subexpressions'",
        "SET GLOBAL enable_external_access = false",
        "SET GLOBAL lock_configuration = true",
    ):
        connection.execute(statement)
    return connection


class MemoryLimit:
    """DuckDB's memory limit: more while queries read values of which several would not fit. Used from any thread."""

    def __init__(self, usual: int, most: int) -> None:
        """``usual``, ``most``: in bytes."""
        self._usual = max(usual, MIN_MEMORY_BYTES)
        self._most = most
        self._wanted: list[int] = []
        self._lock = threading.Lock()

    def raise_to(self, cursor: Any, wanted: int) -> bool:
        """Have at least ``wanted`` bytes, or the most there may be, until ``lower``; False: there are so many anyway."""
        if wanted <= self._usual:
            return False
        with self._lock:
            self._wanted.append(wanted)
            self._set(cursor)
        return True

    def lower(self, cursor: Any, wanted: int) -> None:
        """A query has ended that has had the limit raised."""
        with self._lock:
            self._wanted.remove(wanted)
            try:
                self._set(cursor)
            except duckdb.OutOfMemoryException:  # another one has more just now: whoever ends next lowers it
                pass

    def _set(self, cursor: Any) -> None:
        limit = max(self._usual, min(max(self._wanted, default=0), self._most))
        cursor.execute(f"SET GLOBAL memory_limit = '{limit}B'")


def _quoted(path: Path) -> str:
    text = str(path.resolve()).replace("'", "''")
    return f"'{text}'"
