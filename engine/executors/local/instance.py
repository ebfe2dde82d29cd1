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
RETURN_S: Final = 2.0
"""How long a query waits for the memory of one that has ended: its files are being removed."""
LENT: Final = 2
"""The share of DuckDB's memory that an instance for one query has."""

READERS: Final = 2
"""Threads that read ahead of those that compute. Each keeps some files open that are read next: with DuckDB's
eight, more than is gained."""
PER_THREAD: Final = 16
"""Descriptors that a scan of many files has open at once for each thread, at most: twice what was measured
(two for each file)."""


def opened_at_most(scans: Iterable[int], threads: int) -> int:
    """Return how many descriptors a query may have open at once: two for each file of a scan, or as many as
    its threads come to.
    """
    most = PER_THREAD * (threads + READERS)
    return sum(min(2 * files, most) for files in scans)


def spill_folder(blob_dir: Path, spill: Path | None) -> Path:
    """Return the folder for spilled data: ``spill``, or one inside ``blob_dir``."""
    return blob_dir / "duckdb-spill" if spill is None else spill


def open_instance(
    blob_dir: Path,
    *,
    memory_bytes: int,
    threads: int,
    spill: Path | None = None,
    spill_bytes: int | None = None,
) -> Any:
    """Return a connection to a new in-memory instance.

    Args:
        blob_dir: the only folder whose files may be read, but for what DuckDB itself has spilled.
        spill: the folder for spilled data; None: ``duckdb-spill`` inside ``blob_dir``.
        memory_bytes: what DuckDB may use before it spills.
        threads: worker threads of all queries together, at least 1.
        spill_bytes: what it may spill, and such a bound may be set again; None: as much as there is room for.
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
        # by ``MemoryLimit`` and ``own.OwnInstance`` alone
        f"SET GLOBAL allowed_configs = [{'memory_limit' if spill_bytes is None else 'max_temp_directory_size'!r}]",
        *([] if spill_bytes is None else [f"SET GLOBAL max_temp_directory_size = '{spill_bytes}B'"]),
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
        self._lent = self._returning = 0
        self._lock = threading.Condition()

    def raise_to(self, cursor: Any, wanted: int) -> bool:
        """Have at least ``wanted`` bytes, or the most there may be, until ``lower``; False: there are so many
        anyway.
        """
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

    def lend(self, cursor: Any) -> int | None:
        """Take some memory for another instance, and return how many bytes, at least what any needs; None
        where too little is left.

        For what is being given back it waits a moment.
        """
        size = max(self._usual // LENT, MIN_MEMORY_BYTES)
        with self._lock:
            self._lock.wait_for(lambda: self._has(size) or not self._returning, RETURN_S)
            if not self._has(size):
                return None
            self._lent += size
            try:
                self._set(cursor)
            except duckdb.OutOfMemoryException:  # in use
                self._lent -= size
                return None
        return size

    def _has(self, size: int) -> bool:
        return not self._lent or self._usual - self._lent - size >= MIN_MEMORY_BYTES

    def returning(self, size: int) -> None:
        """An instance that has ``size`` bytes is about to end."""
        with self._lock:
            self._returning += size

    def give_back(self, cursor: Any, size: int) -> None:
        """An instance has ended that was ``returning`` its bytes. ``cursor``: of this one; None: it is no more."""
        with self._lock:
            self._lent -= size
            self._returning -= size
            if cursor is not None:
                self._set(cursor)
            self._lock.notify_all()

    def _set(self, cursor: Any) -> None:
        usual = max(self._usual - self._lent, MIN_MEMORY_BYTES)
        limit = max(usual, min(max(self._wanted, default=0), self._most))
        cursor.execute(f"SET GLOBAL memory_limit = '{limit}B'")


def _quoted(path: Path) -> str:
    text = str(path.resolve()).replace("'", "''")
    return f"'{text}'"
